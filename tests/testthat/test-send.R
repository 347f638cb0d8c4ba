# What is sent is what otlp_message() makes, in bytes; what the server got is in its log.

protobuf <- function(...) c("Content-Type" = "application/x-protobuf", ...)
as_json <- function(...) c("Content-Type" = "application/json", ...)

# As `protoc --encode` makes them.
# partial_success { rejected_profiles: 300 error_message: "100% {full}" }
partial <- as.raw(c(0x0a, 0x10, 0x08, 0xac, 0x02, 0x12, 0x0b, charToRaw("100% {full}")))
# partial_success { error_message: "old" }
remark <- as.raw(c(0x0a, 0x05, 0x12, 0x03, charToRaw("old")))
# code: 3 message: "100% {bad}"
status <- as.raw(c(0x08, 0x03, 0x12, 0x0a, charToRaw("100% {bad}")))

# Without what differs from run to run and from one version of curl to another.
steady <- function(lines) {
  lines <- gsub("127\\.0\\.0\\.1:[0-9]+", "127.0.0.1:<port>", lines)
  lines <- gsub("Retrying in [0-9.]+ seconds", "Retrying in <n> seconds", lines)
  gsub("((onnection failed|without an answer|is incomplete): ).*", "\\1<curl>", lines)
}

at <- function(...) http_server(list(...), .local_envir = parent.frame())$url

send <- function(..., x = small_profile()) send_otlp(x, ...)

quietly <- function(expr) suppressMessages(expr, "profile_message_retry")

failed <- function(...) tryCatch(quietly(send(...)), profile_error_send = identity)

expect_taken <- function(expr) {
  expect_no_warning(expect_message(expr, NA))
}

inflated <- function(bytes) {
  con <- gzcon(rawConnection(bytes))
  on.exit(close(con))
  readBin(con, "raw", 1e6)
}

test_that("a profile arrives as it is, in both codings, compressed or not", {
  server <- http_server(list(headers = protobuf()))
  x <- small_profile()
  expect_identical(withVisible(expect_taken(send_otlp(x, server$url))), list(value = x, visible = FALSE))
  expect_taken(send_otlp(x, server$url, compress = FALSE))
  expect_taken(send_otlp(x, server$url, format = "json"))
  expect_taken(send_otlp(x, server$url, format = "json", compress = FALSE, aggregate = FALSE, resource = c(service.name = "ü")))

  requests <- server$requests()
  expect_length(requests, 4)
  header <- function(name) vapply(requests, function(r) c(r$headers[[name]], "")[[1]], "")
  expect_identical(header("content-type"), rep(c("application/x-protobuf", "application/json"), each = 2))
  expect_identical(header("content-encoding"), c("gzip", "", "gzip", ""))
  agent <- paste0("OTel-OTLP-Exporter-R/", utils::packageVersion("profile"))
  expect_identical(header("user-agent"), rep(agent, 4))
  expect_identical(header("expect"), rep("", 4))
  for (request in requests) {
    expect_identical(request[c("method", "path")], list(method = "POST", path = "/v1development/profiles"))
  }

  message <- function(json, aggregate, resource = character()) {
    otlp_message(x, json, aggregate, resource, call = rlang::current_env())
  }
  bytes <- message(FALSE, TRUE, resource = character())
  expect_identical(inflated(requests[[1]]$body), bytes)
  expect_identical(requests[[2]]$body, bytes)
  expect_identical(inflated(requests[[3]]$body), message(TRUE, TRUE, resource = character()))
  expect_identical(requests[[4]]$body, message(TRUE, FALSE, resource = c(service.name = "ü")))
})

test_that("gzip is gzip", {
  skip_on_os("windows")
  skip_if(Sys.which("gzip") == "", "gzip is not installed")
  bytes <- as.raw(rep(0:255, 10000))
  path <- write_bytes(gzip(bytes))
  expect_lt(file.size(path), 1e5)
  out <- withr::local_tempfile()
  expect_identical(system2("gzip", c("-dc", shQuote(path)), stdout = out), 0L)
  expect_identical(file_bytes(out), bytes)
  expect_identical(inflated(gzip(raw())), raw())
})

test_that("dm and tables of version 1.0 are sent, other things are not", {
  server <- http_server(list(headers = protobuf()))
  expect_taken(send(server$url, x = small_profile(version = "1.0")))
  bad <- small_profile()
  bad$locations <- NULL
  expect_error(send(server$url, x = bad), class = "profile_error_invalid")
  expect_error(send(server$url, x = 1), class = "profile_error_invalid")
  expect_length(server$requests(), 1)
  skip_if_not_installed("dm")
  expect_taken(send(server$url, x = dm_from_profile(small_profile())))
})

test_that("a profile without samples is not sent", {
  server <- http_server(list())
  x <- small_profile()
  x$samples <- x$samples[0, ]
  x$sample_locations <- x$sample_locations[0, ]
  x$sample_values <- x$sample_values[0, ]
  expect_snapshot(send(server$url, x = x))
  expect_length(server$requests(), 0)
})

test_that("statuses that pass are tried again, on one connection", {
  server <- http_server(
    list(status = 429, keep = TRUE), list(status = 502, keep = TRUE, body = "x"),
    list(status = 503, headers = protobuf(), body = status, keep = TRUE),
    list(status = 504), list(headers = protobuf())
  )
  withr::local_options(profile.otlp_backoff = 0.05)
  expect_snapshot(send(server$url), transform = steady)
  requests <- server$requests()
  expect_length(requests, 5)
  expect_identical(vapply(requests, `[[`, 0, "connection") - requests[[1]]$connection, c(0, 0, 0, 0, 1))
  expect_length(unique(lapply(requests, `[[`, "body")), 1)
  # Twice as long each time, give or take a half.
  waits <- diff(vapply(requests, `[[`, 0, "time"))
  expect_true(all(waits > 0.05 * 2^(0:3) * 0.5), info = format(waits))
  expect_lt(sum(waits), 0.05 * 15 * 1.5 + 2)
})

test_that("waits grow to a bound, by chance, and leave R's random numbers alone", {
  seed <- .GlobalEnv$.Random.seed
  waits <- vapply(1:200, function(i) {
    Sys.sleep(0.0001)
    backoff(1)
  }, 0)
  expect_identical(.GlobalEnv$.Random.seed, seed)
  expect_true(all(waits >= 0.5 & waits <= 1.5))
  expect_gt(diff(range(waits)), 0.5)
  expect_gte(backoff(1000), 15)
  expect_lte(backoff(1000), 45)
})

test_that("it is tried so often and not more", {
  server <- http_server(list(status = 503, headers = protobuf(), body = status))
  cnd <- failed(server$url, retries = 2)
  expect_identical(
    cnd[c("endpoint", "status", "attempts", "answer")],
    list(
      endpoint = paste0(server$url, "/v1development/profiles"), status = 503L,
      attempts = 3L, answer = "100% {bad}"
    )
  )
  expect_length(server$requests(), 3)
  expect_identical(failed(server$url, retries = 0)$attempts, 1L)
  expect_snapshot(error = TRUE, quietly(send(server$url, retries = 1)), transform = steady)
})

test_that("the server determines how long to wait", {
  withr::local_locale(LC_TIME = "C")
  http_date <- function(seconds) format(Sys.time() + seconds, "%a, %d %b %Y %H:%M:%S GMT", tz = "GMT")
  server <- http_server(
    list(status = 503, headers = c("retry-after" = "1")),
    list(status = 429, headers = c("Retry-After" = http_date(-1000))),
    list(status = 503, headers = c("Retry-After" = "soon")),
    list(status = 503, headers = c("Retry-After" = "-5")),
    list()
  )
  quietly(send(server$url))
  waits <- diff(vapply(server$requests(), `[[`, 0, "time"))
  expect_gte(waits[[1]], 1)
  expect_lt(waits[[1]], 2)
  expect_true(all(waits[-1] > 0 & waits[-1] < 1), info = format(waits))

  asked <- function(value) {
    retry_after(list(headers = charToRaw(paste0("HTTP/1.1 503 \r\nRetry-After: ", value, "\r\n\r\n"))), NULL)
  }
  expect_identical(asked("007"), 7)
  expect_equal(asked(http_date(30)), 30, tolerance = 0.1)
  expect_equal(asked(format(as.POSIXct(Sys.time() + 30), "%A, %d-%b-%y %T GMT", tz = "GMT")), 30, tolerance = 0.1)
  for (value in c("", "soon", "-5", "1.5", "\xff")) {
    expect_identical(asked(value), NA_real_)
  }

  for (asked in c("3600", http_date(3600), strrep("9", 400))) {
    server <- http_server(list(status = 503, headers = c("Retry-After" = asked)))
    cnd <- failed(server$url)
    expect_identical(cnd$attempts, 1L)
    expect_match(conditionMessage(cnd), "requests a delay")
  }
  # Only where it is tried again.
  server <- http_server(list(status = 400, headers = c("Retry-After" = "0")))
  expect_identical(failed(server$url)$attempts, 1L)
})

test_that("all other statuses are final, and the message of the server is reported", {
  for (code in c(400, 401, 404, 408, 413, 500, 501, 505)) {
    server <- http_server(list(status = code, headers = protobuf(), body = status))
    cnd <- failed(server$url)
    expect_identical(cnd[c("status", "attempts", "answer")], list(status = as.integer(code), attempts = 1L, answer = "100% {bad}"))
    expect_length(server$requests(), 1)
  }
  expect_snapshot(error = TRUE, transform = steady, {
    send(at(status = 400, headers = protobuf(), body = status))
    send(at(status = 400, headers = as_json(), body = "{\"message\": \"bad\\n %d\"}"))
    send(at(status = 413))
    send(at(status = 404, headers = c("Content-Type" = "text/html"), body = "<html>\r\n<b>no such\tpage"))
    send(at(status = 500, headers = c("Content-Type" = "text/plain"), body = as.raw(c(0x1b, 0x63, 0xe9, 0, 0xff))))
  })
})

test_that("empty and overlong messages are shortened", {
  server <- http_server(list(status = 400, headers = protobuf(), body = as.raw(c(8, 3))))
  expect_identical(failed(server$url)$answer, NA_character_)
  server <- http_server(list(status = 400, headers = c("Content-Type" = "text/plain"), body = strrep("no ", 10000)))
  expect_lt(nchar(failed(server$url)$answer), 600)
  # A header that is no text.
  server <- http_server(list(status = 400, headers = c("Content-Type" = "\xff\xfe"), body = "caf\xe9"))
  expect_identical(failed(server$url)$answer, "caf\u00e9")
})

test_that("redirects are reported and not followed", {
  server <- http_server(list(status = 307, headers = c(Location = "https://u:secret@example.com/x?key=secret")))
  expect_snapshot(error = TRUE, send(server$url), transform = steady)
  for (code in c(301, 308)) {
    server <- http_server(list(status = code, headers = c(Location = "/other")), list())
    expect_identical(failed(server$url)$status, as.integer(code))
    expect_length(server$requests(), 1)
  }
})

test_that("profiles that are rejected are a warning, and not sent again", {
  server <- http_server(list(headers = protobuf(), body = partial))
  cnd <- tryCatch(send(server$url), warning = identity)
  expect_s3_class(cnd, c("profile_warning_rejected", "profile_warning"))
  expect_identical(cnd[c("rejected", "answer")], list(rejected = 300, answer = "100% {full}"))
  expect_length(server$requests(), 1)
  json <- "{\"partialSuccess\": {\"rejectedProfiles\": \"9007199254740992\"}}"
  expect_snapshot(transform = steady, {
    send(at(headers = protobuf(), body = partial))
    # The coding is what the answer says it is.
    send(at(headers = as_json(), body = json))
  })
})

test_that("a server that accepts everything can return a message", {
  skip_without_curl()
  expect_snapshot(transform = steady, {
    send(at(headers = protobuf(), body = remark))
    send(at(headers = as_json("X" = "a"), body = "{\"partialSuccess\": {\"errorMessage\": \"old\"}}"), format = "json")
  })
  for (body in list(raw(), as.raw(c(0x0a, 0x00)))) {
    server <- http_server(list(headers = protobuf(), body = body))
    expect_taken(send(server$url))
  }
  # Nobody says which coding it is: that of the request.
  server <- http_server(list(body = "{\"partialSuccess\": {}}"))
  expect_taken(send(server$url, format = "json"))
  server <- http_server(list(status = 204))
  expect_taken(send(server$url))
})

test_that("a success that cannot be read is a warning", {
  skip_without_curl()
  expect_snapshot(transform = steady, {
    send(at(headers = c("Content-Type" = "text/html; charset=utf-8"), body = "<html>Hello"))
    send(at(headers = protobuf(), body = as.raw(c(0x0a, 0x05, 0x08))))
    send(at(headers = protobuf(), body = partial, cut = 5))
  })
  # Also where what has come makes sense.
  server <- http_server(list(headers = protobuf(), body = c(partial, as.raw(c(0x18, 0x01))), cut = 2))
  expect_warning(send(server$url), class = "profile_warning_answer")
})

test_that("an answer may be compressed, and is not read without end", {
  server <- http_server(list(headers = protobuf("Content-Encoding" = "gzip"), body = gzip(partial)))
  expect_warning(send(server$url), class = "profile_warning_rejected")
  expect_match(server$requests()[[1]]$headers[["accept-encoding"]], "gzip")

  withr::local_options(profile.otlp_max_response = length(partial))
  expect_warning(send(server$url), class = "profile_warning_rejected")
  withr::local_options(profile.otlp_max_response = length(partial) - 1)
  expect_identical(failed(server$url)$status, 200L)

  withr::local_options(profile.otlp_max_response = NULL)
  zeros <- raw(20 * 2^20)
  request <- list(url = at(body = zeros), headers = c(A = "b"), body = raw(1), timeout = 5, limit = 1e5)
  expect_lte(length(attempt_request(new_request(request), curl::new_pool(), request)$body), 1e5)
  server <- http_server(list(status = 503, body = zeros))
  expect_snapshot(error = TRUE, send(server$url), transform = steady)
  expect_length(server$requests(), 1)
  server <- http_server(list(headers = protobuf("Content-Encoding" = "gzip"), body = gzip(zeros)))
  expect_error(send(server$url), class = "profile_error_send")
})

test_that("a message that is too large is not sent", {
  server <- http_server(list())
  withr::local_options(profile.otlp_max_request = 3)
  cnd <- failed(server$url)
  expect_identical(cnd[c("status", "attempts")], list(status = NA_integer_, attempts = 0L))
  expect_length(server$requests(), 0)
  expect_identical(c(mebibytes(3e9), mebibytes(64 * 2^20), mebibytes(2^17)), c("2,861 MiB", "64 MiB", "0.125 MiB"))
})

test_that("without a connection, or when it is closed, it is tried again", {
  server <- http_server(list(close = "read"), list(close = "unread"), list())
  quietly(send(server$url))
  requests <- server$requests()
  expect_length(requests, 3)
  expect_identical(requests[[3]]$body, requests[[1]]$body)

  expect_snapshot(error = TRUE, transform = steady, {
    send("http://127.0.0.1:9", retries = 1)
    send(at(close = "read"), retries = 0)
  })
  cnd <- failed("http://no-such-host.invalid", retries = 1)
  expect_identical(cnd[c("status", "attempts", "answer")], list(status = NA_integer_, attempts = 2L, answer = NA_character_))
})

test_that("a server that is silent is waited for, once", {
  server <- http_server(list(delay = 3))
  start <- Sys.time()
  expect_snapshot(error = TRUE, send(server$url, timeout = 0.3), transform = steady)
  expect_lt(Sys.time() - start, 2)
  expect_length(server$requests(), 1)
})

test_that("half an answer is judged by its status", {
  server <- http_server(
    list(status = 503, headers = protobuf(), body = status, cut = 5), list(status = 500, body = "bad one", cut = 4)
  )
  cnd <- failed(server$url)
  expect_identical(cnd[c("status", "attempts", "answer")], list(status = 500L, attempts = 2L, answer = "bad"))
})

test_that("what speaks another language is not tried again", {
  # A frame of HTTP/2, which is what a port for gRPC answers.
  settings <- as.raw(c(0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0x40, 0))
  server <- http_server(list(early = settings))
  expect_snapshot(error = TRUE, send(server$url), transform = steady)
  expect_length(server$requests(), 1)

  # It need not close the connection.
  server <- http_server(list(early = charToRaw("SSH-2.0-x\r\n"), keep = TRUE))
  cnd <- failed(server$url, timeout = 0.5)
  expect_identical(cnd$attempts, 1L)
  expect_match(conditionMessage(cnd), "The answer is not HTTP/1")
})

test_that("a secure connection that is refused is not tried again", {
  server <- http_server(list(early = charToRaw("HTTP/1.1 400 Bad Request\r\n\r\n")))
  cnd <- failed(sub("http:", "https:", server$url))
  expect_identical(cnd$attempts, 1L)
  expect_match(conditionMessage(cnd), "TLS connection failed: ")

  # A connection that is cut while it is made is another matter.
  https <- sub("http:", "https:", http_server(list(close = "unread"))$url)
  expect_identical(failed(https, retries = 1)$attempts, 2L)
})

test_that("certificates that are not accepted are not tried again", {
  ours <- certificate()
  server <- tls_server(ours)
  cnd <- failed(server)
  expect_identical(cnd$attempts, 1L)
  expect_match(conditionMessage(cnd), "TLS connection failed: ")

  # The server wants a certificate of the client, says so late in TLS 1.3, and after that
  # does not know who signed it.
  for (version in c("-tls1_2", "-tls1_3")) {
    server <- tls_server(ours, version, "-Verify", "1", "-verify_return_error", "-CAfile", shQuote(ours$certificate))
    withr::local_envvar(OTEL_EXPORTER_OTLP_CERTIFICATE = ours$certificate)
    cnd <- failed(server)
    expect_identical(cnd$attempts, 1L)
    expect_match(conditionMessage(cnd), "TLS connection failed: ")
    other <- certificate()
    cnd <- withr::with_envvar(
      c(OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE = other$certificate, OTEL_EXPORTER_OTLP_CLIENT_KEY = other$key),
      failed(server)
    )
    expect_identical(cnd$attempts, 1L)
  }
})

test_that("files of certificates are checked before anything is sent", {
  server <- http_server(list(headers = protobuf()))
  https <- sub("http:", "https:", server$url)
  none <- withr::local_tempfile(lines = "-----BEGIN PUBLIC KEY-----")
  shown <- function(lines) gsub(none, "<file>", lines, fixed = TRUE)
  errors <- character()
  for (name in paste0("OTEL_EXPORTER_OTLP_", c("CERTIFICATE", "PROFILES_CLIENT_CERTIFICATE", "CLIENT_KEY"))) {
    for (file in c("no-such-file", none)) {
      withr::local_envvar(rlang::set_names(file, name))
      errors <- union(errors, errors_of({ send(https) }, shown))
    }
    # They do not matter here.
    expect_taken(send(server$url))
    withr::local_envvar(rlang::set_names(NA, name))
  }
  expect_snapshot(writeLines(errors))
  expect_length(server$requests(), 3)
})

test_that("the endpoint is the documented one", {
  skip_without_curl()
  none <- c("ENDPOINT", "PROFILES_ENDPOINT")
  none <- rlang::set_names(rep(NA, 2), paste0("OTEL_EXPORTER_OTLP_", none))
  withr::local_envvar(none)
  path <- "/v1development/profiles"
  expect_url <- function(endpoint, url) expect_identical(otlp_url(endpoint, NULL), url)
  expect_url(NULL, paste0("http://localhost:4318", path))
  expect_url("http://h", paste0("http://h", path))
  expect_url("HTTPS://h:1/", paste0("HTTPS://h:1", path))
  expect_url("http://h:/?a=b#c", paste0("http://h:", path, "?a=b"))
  expect_url("http://[::1]:4318", paste0("http://[::1]:4318", path))
  expect_url("http://u:p@h/x/", "http://u:p@h/x/")

  withr::local_envvar(OTEL_EXPORTER_OTLP_ENDPOINT = "http://h/mine/")
  expect_url(NULL, paste0("http://h/mine", path))
  withr::local_envvar(OTEL_EXPORTER_OTLP_ENDPOINT = "http://h:1")
  expect_url(NULL, paste0("http://h:1", path))
  withr::local_envvar(OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT = "http://h:2")
  expect_url(NULL, "http://h:2")
  withr::local_envvar(OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT = "")
  expect_url(NULL, paste0("http://h:1", path))
  expect_url("http://other", paste0("http://other", path))

  server <- http_server(list())
  withr::local_envvar(OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT = server$url)
  send()
  withr::local_envvar(OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT = paste0(server$url, "/a%20b?c=d"))
  send()
  expect_identical(vapply(server$requests(), `[[`, "", "path"), c("/", "/a%20b?c=d"))
})

test_that("headers come from the environment and from the user", {
  server <- http_server(list())
  withr::local_envvar(OTEL_EXPORTER_OTLP_HEADERS = " a=1, Authorization = Basic%20YQ==,,x-id=%C3%BC ")
  send(server$url, headers = c("A" = "2", "User-Agent" = "me", "X-Odd" = "\xff"))
  headers <- server$requests()[[1]]$headers
  expect_identical(
    headers[c("a", "authorization", "user-agent")],
    list(a = "2", authorization = "Basic YQ==", "user-agent" = "me")
  )
  expect_identical(charToRaw(headers[["x-id"]]), as.raw(c(0xc3, 0xbc)))

  withr::local_envvar(OTEL_EXPORTER_OTLP_PROFILES_HEADERS = "b=3")
  send(server$url)
  headers <- server$requests()[[2]]$headers
  expect_identical(headers$b, "3")
  expect_null(headers$authorization)
})

test_that("a user in the URL is sent only to the server", {
  server <- http_server(list(status = 401))
  cnd <- failed(paste0(sub("//", "//me:secret@", server$url), "/?key=secret"))
  expect_identical(server$requests()[[1]]$headers$authorization, "Basic bWU6c2VjcmV0")
  expect_false(grepl("secret", paste(cnd$endpoint, conditionMessage(cnd))))
  cnd <- failed("http://me:secret@127.0.0.1:9/?key=secret", retries = 0)
  expect_false(grepl("secret", paste(cnd$endpoint, conditionMessage(cnd))))
})

test_that("arguments and variables are checked", {
  skip_without_curl()
  x <- small_profile()
  errors <- errors_of({
    send_otlp(x, "localhost:4318")
    send_otlp(x, "http://localhost:65536")
    send_otlp(x, "http://local host")
    send_otlp(x, NA_character_)
    send_otlp(x, resource = "a")
    send_otlp(x, resource = c(a = "1", a = "2"))
    send_otlp(x, headers = c("a b" = "secret"))
    send_otlp(x, headers = c(a = "secret\r\nb: c"))
    send_otlp(x, headers = c("content-length" = "0"))
    send_otlp(x, format = "xml")
    send_otlp(x, compress = 1)
    send_otlp(x, aggregate = "yes")
    send_otlp(x, timeout = 0)
    send_otlp(x, retries = 1.5)
    withr::with_envvar(c(OTEL_EXPORTER_OTLP_ENDPOINT = "h"), send_otlp(x))
    withr::with_envvar(c(OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT = "ftp://h"), send_otlp(x))
    withr::with_envvar(c(OTEL_EXPORTER_OTLP_HEADERS = "secret"), send_otlp(x))
    withr::with_envvar(c(OTEL_EXPORTER_OTLP_PROFILES_HEADERS = "a=1%0d%0ab:2"), send_otlp(x))
    withr::with_options(list(profile.otlp_max_response = "1"), send_otlp(x))
  })
  expect_snapshot(writeLines(errors))
  # In a Latin-1 locale the byte would be a letter.
  invalid <- "http://\xff"
  Encoding(invalid) <- "UTF-8"
  for (bad in list(invalid, "http://h/\001", "http://h\n", "http://[::1", "http://", c("http://a", "http://b"))) {
    expect_error(send_otlp(x, bad), class = "profile_error_argument")
  }
  for (bad in list(c(a = ""), c(a = " "), c(a = NA), c(a = "\t1"), c("\xff" = "1"), c(a = 1))) {
    expect_error(send_otlp(x, headers = bad), class = "profile_error_argument")
  }
  expect_error(send_otlp(x, "http://h", TRUE), class = "rlib_error_dots_nonempty")
})

test_that("Ctrl-C ends the waiting at once", {
  skip_on_os("windows")
  listen <- listen_to_interrupts()
  server <- http_server(list(delay = 20), list(status = 503, headers = c("Retry-After" = "20")))
  path <- withr::local_tempfile()
  saveRDS(small_profile(), path)
  send <- sprintf(
    "tryCatch({ send_otlp(x, '%s', timeout = 60); 'finished' }, interrupt = function(e) 'interrupted')",
    server$url
  )
  process <- run_r(wait = FALSE, env = listen, c(
    "library(profile)", sprintf("x <- readRDS('%s')", path),
    paste("one <-", send), "time <- Sys.time()", paste("two <-", send),
    "cat(one, two, as.numeric(time), as.numeric(Sys.time()))"
  ))
  pressed <- numeric()
  for (number in 1:2) {
    expect_true(wait_for(function() length(server$requests()) == number))
    Sys.sleep(0.3)
    pressed[[number]] <- as.numeric(Sys.time())
    tools::pskill(process$pid(), tools::SIGINT)
  }
  ends <- "^interrupted interrupted "
  lines <- function() readLines(process$output, warn = FALSE)
  expect_true(wait_for(function() any(grepl(ends, lines()))))
  times <- as.numeric(strsplit(grep(ends, lines(), value = TRUE), " ")[[1]][3:4])
  expect_lt(max(times - pressed), 1.5)
})
