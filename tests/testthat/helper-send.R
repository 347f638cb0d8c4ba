# Helpers for the tests of `send_otlp()`. The server is in http/server.R.

protobuf <- function(...) c("Content-Type" = "application/x-protobuf", ...)
as_json <- function(...) c("Content-Type" = "application/json", ...)

# The output of `protoc --encode` for: partial_success { rejected_profiles: 300 error_message: "100% {full}" }
partial_response <- as.raw(c(0x0a, 0x10, 0x08, 0xac, 0x02, 0x12, 0x0b, charToRaw("100% {full}")))
# partial_success { error_message: "old" }
remark_response <- as.raw(c(0x0a, 0x05, 0x12, 0x03, charToRaw("old")))
# code: 3 message: "100% {bad}"
status_response <- as.raw(c(0x08, 0x03, 0x12, 0x0a, charToRaw("100% {bad}")))

# Removes text that differs between runs and between versions of curl.
steady <- function(lines) {
  lines <- gsub("127\\.0\\.0\\.1:[0-9]+", "127.0.0.1:<port>", lines)
  lines <- gsub("Retrying in [0-9.]+ seconds", "Retrying in <n> seconds", lines)
  gsub("((onnection failed|without an answer|is incomplete): ).*", "\\1<curl>", lines)
}

at_server <- function(...) http_server(list(...), .local_envir = parent.frame())$url

# The limit applies to servers that never answer. On a busy machine the default may be too short.
send <- function(..., x = small_profile(), timeout = 300) send_otlp(x, ..., timeout = timeout)

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

# Makes delays take no time until the end of the test. Returns a function that returns the requested delays.
delays <- function(.local_envir = parent.frame()) {
  passed <- numeric()
  replace_function("sleep", function(seconds) passed <<- c(passed, seconds), .local_envir)
  function() passed
}

# Replaces the results of curl until the end of the test by these: lists with some of the fields of `attempt_request()`,
# and `seen`, the names of the events that were seen. The last one is repeated.
fake_answers <- function(..., .local_envir = parent.frame()) {
  answers <- list(...)
  attempts <- 0
  replace_function("attempt_request", function(handle, pool, request) {
    attempts <<- attempts + 1
    answer <- answers[[min(attempts, length(answers))]]
    seen <- c("request", "tls_answer", "tls_alert")
    answer$seen <- as.list(rlang::set_names(seen %in% answer$seen, seen))
    utils::modifyList(list(status = 0L, failure = NA_character_, late = FALSE, headers = raw(), body = raw(), size = 0), answer)
  }, .local_envir)
  function() attempts
}
