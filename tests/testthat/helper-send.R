# What the tests of `send_otlp()` share. The server is in http/server.R.

protobuf <- function(...) c("Content-Type" = "application/x-protobuf", ...)
as_json <- function(...) c("Content-Type" = "application/json", ...)

# As `protoc --encode` makes them.
# partial_success { rejected_profiles: 300 error_message: "100% {full}" }
partial_response <- as.raw(c(0x0a, 0x10, 0x08, 0xac, 0x02, 0x12, 0x0b, charToRaw("100% {full}")))
# partial_success { error_message: "old" }
remark_response <- as.raw(c(0x0a, 0x05, 0x12, 0x03, charToRaw("old")))
# code: 3 message: "100% {bad}"
status_response <- as.raw(c(0x08, 0x03, 0x12, 0x0a, charToRaw("100% {bad}")))

# Without what differs from run to run and from one version of curl to another.
steady <- function(lines) {
  lines <- gsub("127\\.0\\.0\\.1:[0-9]+", "127.0.0.1:<port>", lines)
  lines <- gsub("Retrying in [0-9.]+ seconds", "Retrying in <n> seconds", lines)
  gsub("((onnection failed|without an answer|is incomplete): ).*", "\\1<curl>", lines)
}

at_server <- function(...) http_server(list(...), .local_envir = parent.frame())$url

send <- function(..., x = small_profile()) send_otlp(x, ...)

without_messages <- function(expr) suppressMessages(expr, "profile_message_retry")

failed <- function(...) tryCatch(without_messages(send(...)), profile_error_send = identity)

expect_taken <- function(expr) {
  expect_no_warning(expect_message(expr, NA))
}

inflated <- function(bytes) {
  con <- gzcon(rawConnection(bytes))
  on.exit(close(con))
  readBin(con, "raw", 1e6)
}
