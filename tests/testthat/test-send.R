# tier: gate
# Requests and responses: the messages that arrive at a server, and how `send_otlp()` handles the answers. The body of a
# request is what otlp_message() returns; the log of the server contains what it received.

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

test_that("the request is compressed with gzip", {
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

test_that("transient statuses are retried, on one connection", {
  server <- http_server(
    list(status = 429, keep = TRUE), list(status = 502, keep = TRUE, body = "x"),
    list(status = 503, headers = protobuf(), body = status_response, keep = TRUE),
    list(status = 504), list(headers = protobuf())
  )
  withr::local_options(profile.otlp_backoff = 0.05)
  waits <- delays()
  expect_snapshot(send(server$url), transform = steady)
  requests <- server$requests()
  expect_length(requests, 5)
  expect_identical(vapply(requests, `[[`, 0, "connection") - requests[[1]]$connection, c(0, 0, 0, 0, 1))
  expect_length(unique(lapply(requests, `[[`, "body")), 1)
  # Delays double each time, and vary by up to half.
  expect_length(waits(), 4)
  expect_true(all(waits() >= 0.05 * 2^(0:3) * 0.5 & waits() <= 0.05 * 2^(0:3) * 1.5), info = format(waits()))
})

test_that("delays grow to a limit, vary randomly, and do not change R's random numbers", {
  seed <- .GlobalEnv$.Random.seed
  backoff <- function(attempt) retry_rule("closed", list(status = 0, headers = raw()), attempt, 1, NULL)$wait
  waits <- vapply(1:200, function(i) backoff(1), 0)
  expect_identical(.GlobalEnv$.Random.seed, seed)
  expect_true(all(waits >= 0.5 & waits <= 1.5))
  expect_gt(length(unique(waits)), 1)
  expect_gte(backoff(1000), 15)
  expect_lte(backoff(1000), 45)
})

test_that("only transient errors are retried", {
  again <- function(result, status = 0) retry_rule(result, list(status = status, headers = raw()), 1, 1, NULL)$again
  results <- c(not_sent = TRUE, closed = TRUE, late = FALSE, tls = FALSE, not_http = FALSE, too_large = FALSE)
  expect_identical(vapply(names(results), again, NA), results)
  statuses <- c(0, 100, 301, 400, 401, 404, 408, 413, 429, 500:505, 600)
  expect_identical(statuses[vapply(statuses, function(status) again("status", status), NA)], c(429, 502, 503, 504))
})

test_that("the number of retries is limited", {
  server <- http_server(list(status = 503, headers = protobuf(), body = status_response))
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
  expect_snapshot(error = TRUE, without_messages(send(server$url, retries = 1)), transform = steady)
})

test_that("the server determines how long to wait", {
  withr::local_locale(LC_TIME = "C")
  # A clock that stands still.
  time <- 1.8e9
  replace_function("current_time", function() time)
  http_date <- function(seconds, form = "%a, %d %b %Y %H:%M:%S GMT") {
    format(as.POSIXct(time + seconds, origin = "1970-01-01"), form, tz = "GMT")
  }
  waits <- delays()
  server <- http_server(
    list(status = 503, headers = c("retry-after" = "7")),
    list(status = 429, headers = c("Retry-After" = http_date(30))),
    list(status = 429, headers = c("Retry-After" = http_date(-1000))),
    list(status = 503, headers = c("Retry-After" = "soon")),
    list(status = 503, headers = c("Retry-After" = "-5")),
    list()
  )
  without_messages(send(server$url))
  expect_length(server$requests(), 6)
  expect_identical(waits()[1:2], c(7, 30))
  # Its own delays, of which the first is 0.02 seconds.
  own <- 0.02 * 2^(2:4)
  expect_true(all(waits()[3:5] >= own * 0.5 & waits()[3:5] <= own * 1.5), info = format(waits()))

  asked <- function(value) {
    answer <- list(status = 503, headers = charToRaw(paste0("HTTP/1.1 503 \r\nRetry-After: ", value, "\r\n\r\n")))
    retry_rule("status", answer, 1, 1, NULL)$asked
  }
  expect_identical(asked(" 007 "), 7)
  # 1994-11-06 08:49:07 UTC, by `date -u -d @784111747`.
  time <- 784111747
  dates <- c("Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994")
  expect_identical(vapply(dates, asked, 0, USE.NAMES = FALSE), c(30, 30, 30))
  expect_identical(asked("Sat, 05 Nov 1994 08:49:07 GMT"), -86400)
  expect_identical(asked("Thu, 29 Feb 1996 00:00:00 GMT"), 41440253)
  time <- 1.8e9
  for (value in c("", "soon", "-5", "1.5", "1e5", "Sun, 32 Nov 1994 08:49:37 GMT", "Sun, 06 Nav 1994 08:49:37 GMT", "\xff")) {
    expect_identical(asked(value), numeric())
  }

  for (asked in c("3600", http_date(3600), strrep("9", 400))) {
    server <- http_server(list(status = 503, headers = c("Retry-After" = asked)))
    cnd <- failed(server$url)
    expect_identical(cnd$attempts, 1L)
    expect_match(conditionMessage(cnd), "requests a delay")
  }
  expect_length(waits(), 5)
  # Only for retried statuses.
  server <- http_server(list(status = 400, headers = c("Retry-After" = "0")))
  expect_identical(failed(server$url)$attempts, 1L)
})

test_that("the system's clock is used, and delays pass", {
  before <- as.numeric(Sys.time())
  sleep(0.001)
  expect_gte(current_time(), before)
  expect_lte(current_time(), as.numeric(Sys.time()))
})

test_that("all other statuses are final, and the message of the server is reported", {
  for (code in c(400, 401, 404, 408, 413, 500, 501, 505)) {
    server <- http_server(list(status = code, headers = protobuf(), body = status_response))
    cnd <- failed(server$url)
    expect_identical(cnd[c("status", "attempts", "answer")], list(status = as.integer(code), attempts = 1L, answer = "100% {bad}"))
    expect_length(server$requests(), 1)
  }
  expect_snapshot(error = TRUE, transform = steady, {
    send(at_server(status = 400, headers = protobuf(), body = status_response))
    send(at_server(status = 400, headers = as_json(), body = "{\"message\": \"bad\\n %d\"}"))
    send(at_server(status = 413))
    send(at_server(status = 404, headers = c("Content-Type" = "text/html"), body = "<html>\r\n<b>no such\tpage"))
    send(at_server(status = 500, headers = c("Content-Type" = "text/plain"), body = as.raw(c(0x1b, 0x63, 0xe9, 0, 0xff))))
  })
})

test_that("empty and overlong messages are shortened", {
  server <- http_server(list(status = 400, headers = protobuf(), body = as.raw(c(8, 3))))
  expect_identical(failed(server$url)$answer, NA_character_)
  server <- http_server(list(status = 400, headers = c("Content-Type" = "text/plain"), body = strrep("no ", 10000)))
  expect_lt(nchar(failed(server$url)$answer), 600)
  # A header that is not valid text.
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
  server <- http_server(list(headers = protobuf(), body = partial_response))
  cnd <- tryCatch(send(server$url), warning = identity)
  expect_s3_class(cnd, c("profile_warning_rejected", "profile_warning"))
  expect_identical(cnd[c("rejected", "answer")], list(rejected = 300, answer = "100% {full}"))
  expect_length(server$requests(), 1)
  json <- "{\"partialSuccess\": {\"rejectedProfiles\": \"9007199254740992\"}}"
  expect_snapshot(transform = steady, {
    send(at_server(headers = protobuf(), body = partial_response))
    # The header of the answer determines the coding.
    send(at_server(headers = as_json(), body = json))
  })
})

test_that("a server that accepts everything can return a message", {
  skip_without_curl()
  expect_snapshot(transform = steady, {
    send(at_server(headers = protobuf(), body = remark_response))
    send(at_server(headers = as_json("X" = "a"), body = "{\"partialSuccess\": {\"errorMessage\": \"old\"}}"), format = "json")
  })
  for (body in list(raw(), as.raw(c(0x0a, 0x00)))) {
    server <- http_server(list(headers = protobuf(), body = body))
    expect_taken(send(server$url))
  }
  # Without a header, the coding of the request is assumed.
  server <- http_server(list(body = "{\"partialSuccess\": {}}"))
  expect_taken(send(server$url, format = "json"))
  server <- http_server(list(status = 204))
  expect_taken(send(server$url))
})

test_that("a success that cannot be read is a warning", {
  skip_without_curl()
  expect_snapshot(transform = steady, {
    send(at_server(headers = c("Content-Type" = "text/html; charset=utf-8"), body = "<html>Hello"))
    send(at_server(headers = protobuf(), body = as.raw(c(0x0a, 0x05, 0x08))))
    send(at_server(headers = protobuf(), body = partial_response, cut = 5))
  })
  # Even if the received part is valid.
  server <- http_server(list(headers = protobuf(), body = c(partial_response, as.raw(c(0x18, 0x01))), cut = 2))
  expect_warning(send(server$url), class = "profile_warning_answer")
})

test_that("an answer may be compressed, and is not read without end", {
  server <- http_server(list(headers = protobuf("Content-Encoding" = "gzip"), body = gzip(partial_response)))
  expect_warning(send(server$url), class = "profile_warning_rejected")
  expect_match(server$requests()[[1]]$headers[["accept-encoding"]], "gzip")

  withr::local_options(profile.otlp_max_response = length(partial_response))
  expect_warning(send(server$url), class = "profile_warning_rejected")
  withr::local_options(profile.otlp_max_response = length(partial_response) - 1)
  expect_identical(failed(server$url)$status, 200L)

  withr::local_options(profile.otlp_max_response = NULL)
  zeros <- raw(20 * 2^20)
  request <- list(url = at_server(body = zeros), headers = c(A = "b"), body = raw(1), timeout = 300, limit = 1e5)
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
