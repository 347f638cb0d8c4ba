# tier: gate
# forward_profiles(): files of an agent, and other files, in a folder. What it shares with the forwarder of agents is
# tested in test-agent-forward.R.

# A folder with profiles in the format of write_pprof(), oldest first.
local_folder <- function(profiles, envir = parent.frame()) {
  folder <- withr::local_tempdir(.local_envir = envir)
  for (i in seq_along(profiles)) {
    path <- file.path(folder, paste0("a-", i, ".pb.gz"))
    write_pprof(profiles[[i]], path)
    Sys.setFileTime(path, as.POSIXct("2026-01-01", tz = "UTC") + i)
  }
  folder
}
forward_once <- function(...) {
  suppressMessages(forward_profiles(..., timeout = 300, once = TRUE), "profile_message_retry")
}
id_of <- function(request) profile_of_request(request)$sources$.profile_id

test_that("files are sent in order, and removed when they have arrived", {
  x <- small_profile()
  y <- combine_profiles(x, x)
  # Retries take no time.
  delays()
  server <- http_server(list(status = 503), list(close = "read"), list(headers = protobuf()))
  folder <- local_folder(list(x, y))
  writeLines("", file.path(folder, "other.txt"))
  path <- file.path(folder, "a-1.pb.gz")
  hash <- rlang::hash_file(path)
  expected <- vapply(dir(folder, "gz$", full.names = TRUE)[c(1, 1, 1, 2)], function(path) nrow(read_pprof(path)$samples), 0L)
  result <- forward_once(folder, server$url, resource = c(service.name = "shop"), headers = c("X-One" = "1"))
  expect_identical(result, c(sent = 2L, refused = 0L))
  expect_identical(dir(folder), "other.txt")
  requests <- server$requests()
  expect_length(requests, 4)
  # A file that is sent again has the same id.
  expect_identical(vapply(requests[1:3], id_of, ""), rep(hash, 3))
  sizes <- vapply(requests, function(request) nrow(profile_of_request(request)$samples), 0L)
  expect_identical(sizes, unname(expected))
  first <- profile_of_request(requests[[1]])
  expect_identical(first$.resource_attributes$value[first$.resource_attributes$key == "service.name"], "shop")
  expect_identical(requests[[1]]$headers[["x-one"]], "1")
  expect_identical(requests[[1]]$path, "/v1development/profiles")
})

test_that("a server gets the attributes that an agent has written to its files", {
  server <- http_server(list(headers = protobuf()))
  x <- small_profile()
  comments <- c(
    "profile.heap.used: 5", "resource.service.name: my: api", "resource.service.version: 2.3", "resource.host.name: a",
    "resource.my-team: c d", "service.namespace: e", ""
  )
  x$.comments <- tibble::tibble(source_id = x$sources$source_id[[1]], comment = comments)
  forward_once(local_folder(list(x)), server$url, resource = c(host.name = "b"))
  attributes <- profile_of_request(server$requests()[[1]])$.resource_attributes
  expect_identical(attributes$key, c("service.name", "service.version", "my-team", "host.name"))
  expect_identical(attributes$value, c("my: api", "2.3", "c d", "b"))
})

test_that("files that are refused, or are no profiles, are renamed", {
  delays()
  server <- http_server(list(status = 400, headers = protobuf(), body = status_response), list(headers = protobuf(), body = partial_response))
  folder <- local_folder(list(small_profile(), small_profile()))
  writeLines("no profile", file.path(folder, "b.pb.gz"))
  said <- character()
  result <- withCallingHandlers(
    forward_once(folder, server$url),
    profile_message_forward = function(message) {
      said <<- c(said, conditionMessage(message))
      rlang::cnd_muffle(message)
    }
  )
  expect_identical(result, c(sent = 1L, refused = 2L))
  expect_identical(dir(folder), c("a-1.pb.gz.refused", "b.pb.gz.refused"))
  expect_length(said, 3)
  expect_match(said[[1]], "HTTP 400: 100% {bad}", fixed = TRUE)
  expect_match(said[[2]], "rejected 300 profiles: 100% {full}", fixed = TRUE)
  expect_match(said[[3]], "^`b.pb.gz`: ")
})

test_that("a server that is unavailable is an error after some retries, and nothing is removed", {
  waits <- delays()
  server <- http_server(list(status = 503))
  folder <- local_folder(list(small_profile()))
  error <- tryCatch(forward_once(folder, server$url, retries = 2), profile_error_send = identity)
  expect_s3_class(error, "profile_error_send")
  expect_identical(error$attempts, 3)
  expect_match(conditionMessage(error), "HTTP 503")
  expect_length(server$requests(), 3)
  expect_identical(dir(folder), "a-1.pb.gz")
  expect_gt(length(waits()), 0)
})

test_that("a late answer is awaited again", {
  skip_without_curl()
  delays()
  fake_answers(list(seen = "request", late = TRUE), list(status = 200L, seen = "request"))
  folder <- local_folder(list(small_profile()))
  expect_message(
    result <- forward_profiles(folder, "http://a", once = TRUE), "No answer within", class = "profile_message_retry"
  )
  expect_identical(result, c(sent = 1L, refused = 0L))
})

test_that("profiles wait as long as the server requests, at most a day", {
  skip_without_curl()
  request <- list(url = "http://a", shown = "http://a", backoff = 1, coding = "protobuf", limit = 1000)
  result <- function(asked, status = 503L) {
    answer <- list(
      status = status, failure = NA_character_, late = FALSE, size = 0, body = raw(),
      headers = charToRaw(paste0("HTTP/1.1 ", status, " x\r\nRetry-After: ", asked, "\r\n"))
    )
    forward_result(answer, request, 1)
  }
  expect_identical(
    result("7200", 429L),
    list(kind = "again", wait = 7200, text = "http://a: HTTP 429 (retrying in 7200 seconds, as the server requests)")
  )
  expect_identical(result("86401")[c("kind", "wait")], list(kind = "again", wait = 86400))
  expect_identical(result(strrep("9", 400))[c("kind", "wait")], list(kind = "again", wait = 86400))
  expect_identical(result("0")[c("kind", "text")], list(kind = "again", text = "http://a: HTTP 503"))
  # A date.
  replace_function("current_time", function() 784111747, environment())
  expect_identical(result("Sun, 06 Nov 1994 10:49:07 GMT")[c("kind", "wait")], list(kind = "again", wait = 7200))
  # Not every status may be retried.
  expect_identical(result("7200", 400L)[c("kind", "text")], list(kind = "refused", text = "http://a: HTTP 400"))
})

test_that("a long delay that a server requests drops nothing", {
  skip_without_curl()
  now <- 0
  replace_function("current_time", function() now, environment())
  replace_function("sleep", function(seconds) now <<- now + 100, environment())
  again <- list(
    status = 429L, seen = "request", headers = charToRaw("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7200\r\n")
  )
  fake_answers(again, list(status = 200L, seen = "request"), list(status = 200L, seen = "request"))
  folder <- local_folder(list(small_profile(), small_profile()))
  expect_message(
    result <- forward_profiles(folder, "http://a", once = TRUE), "retrying in 7200 seconds", class = "profile_message_retry"
  )
  expect_identical(result, c(sent = 2L, refused = 0L))
  expect_gte(now, 7200)
  expect_identical(dir(folder), character())
})

test_that("the spool that an agent has left is sent, by one process at a time", {
  skip_without_agent()
  base <- local_spool()
  local_agent("http://127.0.0.1:1", spool = base)
  # Its forwarder is running.
  work_until(function() agent_status()$chunks_queued > 1 && !is.na(agent_status()$last_error))
  server <- http_server(list(headers = protobuf()))
  expect_error(
    forward_once(agent_status()$spool, server$url), "Another process forwards", class = "profile_error_argument"
  )
  status <- stop_agent(0)
  expect_gt(status$queued, 0)
  kill_forwarders(base)
  result <- forward_once(status$spool, server$url)
  expect_identical(result, c(sent = length(server$requests()), refused = 0L))
  expect_identical(samples_of(lapply(server$requests(), profile_of_request)), status$queued)
  expect_length(spools(base), 0)
})

test_that("arguments are checked", {
  skip_without_curl()
  local_settings(environment())
  folder <- withr::local_tempdir()
  expect_snapshot(error = TRUE, {
    forward_profiles()
    forward_profiles(1)
    forward_profiles("/no/such/folder", "http://a")
    forward_profiles(folder, "host:4318")
    forward_profiles(folder, "http://a", 1)
    forward_profiles(folder, "http://a", resource = "x")
    forward_profiles(folder, "http://a", headers = c(`Content-Type` = "x"))
    forward_profiles(folder, "http://a", timeout = 0)
    forward_profiles(folder, "http://a", once = NA)
    forward_profiles(folder, "http://a", retries = -1)
  })
  expect_identical(forward_profiles(folder, "http://a", once = TRUE), c(sent = 0L, refused = 0L))
})
