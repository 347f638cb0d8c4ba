# tier: gate
# How `send_otlp()` connects: endpoint, headers, certificates, and connections that fail.

test_that("missing and closed connections are retried", {
  server <- http_server(list(close = "read"), list(close = "unread"), list())
  without_messages(send(server$url))
  requests <- server$requests()
  expect_length(requests, 3)
  expect_identical(requests[[3]]$body, requests[[1]]$body)

  expect_snapshot(error = TRUE, transform = steady, {
    send("http://127.0.0.1:9", retries = 1)
    send(at_server(close = "read"), retries = 0)
  })
})

test_that("a host that is not found is retried", {
  skip_without_curl()
  attempts <- fake_answers(list(failure = "Could not resolve host: example.invalid"))
  waits <- delays()
  cnd <- failed("http://example.invalid", retries = 1)
  expect_identical(cnd[c("status", "attempts", "answer")], list(status = NA_integer_, attempts = 2L, answer = NA_character_))
  expect_match(conditionMessage(cnd), "Connection failed: Could not resolve host")
  expect_equal(attempts(), 2)
  expect_length(waits(), 1)
})

test_that("a timeout is not retried", {
  skip_without_curl()
  cnd <- failed(silent_server(), timeout = 0.3, retries = 0)
  expect_identical(cnd[c("status", "attempts", "answer")], list(status = NA_integer_, attempts = 1L, answer = NA_character_))

  # A request that has arrived is not sent again. (Above, it is unknown whether it has arrived.)
  attempts <- fake_answers(list(failure = "Timeout was reached", late = TRUE, seen = "request"))
  expect_snapshot(error = TRUE, send("http://127.0.0.1:9", timeout = 0.3), transform = steady)
  expect_equal(attempts(), 1)
})

test_that("half an answer is judged by its status", {
  server <- http_server(
    list(status = 503, headers = protobuf(), body = status_response, cut = 5), list(status = 500, body = "bad one", cut = 4)
  )
  cnd <- failed(server$url)
  expect_identical(cnd[c("status", "attempts", "answer")], list(status = 500L, attempts = 2L, answer = "bad"))
})

test_that("a server with another protocol is not retried", {
  # A frame of HTTP/2, which is what a port for gRPC answers.
  settings <- as.raw(c(0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0x40, 0))
  server <- http_server(list(early = settings))
  expect_snapshot(error = TRUE, send(server$url), transform = steady)
  expect_length(server$requests(), 1)

  # If the server does not close the connection, there is a timeout.
  fake_answers(list(failure = "Timeout was reached", late = TRUE, seen = "request", body = charToRaw("SSH-2.0-x\r\n"), size = 11))
  cnd <- failed(server$url)
  expect_identical(cnd$attempts, 1L)
  expect_match(conditionMessage(cnd), "The answer is not HTTP/1")
})

test_that("a refused TLS connection is not retried", {
  server <- http_server(list(early = charToRaw("HTTP/1.1 400 Bad Request\r\n\r\n")))
  cnd <- failed(sub("http:", "https:", server$url))
  expect_identical(cnd$attempts, 1L)
  expect_match(conditionMessage(cnd), "TLS connection failed: ")

  # A connection that is closed while it is established is retried.
  https <- sub("http:", "https:", http_server(list(close = "unread"))$url)
  expect_identical(failed(https, retries = 1)$attempts, 2L)
})

test_that("certificates that are not accepted are not retried", {
  ours <- certificate()
  server <- tls_server(ours)
  cnd <- failed(server)
  expect_identical(cnd$attempts, 1L)
  expect_match(conditionMessage(cnd), "TLS connection failed: ")

  # The server requests a certificate of the client, late in TLS 1.3, and then does not trust its issuer.
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
    # These files are not used here.
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

test_that("Ctrl-C ends the waiting", {
  skip_on_os("windows")
  listen <- listen_to_interrupts()
  # A process that continued to wait would get an answer in the end and finish.
  server <- http_server(list(delay = 3600), list(status = 503, headers = c("Retry-After" = "50")), list())
  path <- withr::local_tempfile()
  saveRDS(small_profile(), path)
  send <- sprintf(
    "cat(tryCatch({ send_otlp(x, '%s', timeout = 3600); 'finished' }, interrupt = function(e) 'interrupted'), '\\n')",
    server$url
  )
  process <- run_r(wait = FALSE, env = listen, c("library(profile)", sprintf("x <- readRDS('%s')", path), send, send))
  expect_event(function() length(server$requests()) == 1, process)
  tools::pskill(process$pid(), tools::SIGINT)
  expect_printed(process, "^(interrupted|finished)")
  expect_printed(process, "Retrying in 50 seconds")
  tools::pskill(process$pid(), tools::SIGINT)
  ends <- function() grep("^(interrupted|finished)", process$lines(), value = TRUE)
  expect_event(function() length(ends()) == 2, process)
  expect_equal(trimws(ends()), c("interrupted", "interrupted"))
  expect_length(server$requests(), 2)
})
