# tier: gate
# The agent in this process: its samples, and the profiles that arrive. The rules for time and counts are tested in Rust,
# in src/rust/agent, with a clock that the tests move. test-agent-robust.R tests events in the process,
# test-agent-forward.R the forwarder, and test-agent-environment.R starting by environment variables.

test_that("every sample arrives, with its CPU time, stack, labels and resource", {
  server <- http_server(list(headers = protobuf()))
  withr::local_envvar(
    OTEL_RESOURCE_ATTRIBUTES = "team=a%20b,service.name=other,service.version=1", OTEL_SERVICE_NAME = "api",
    OTEL_EXPORTER_OTLP_HEADERS = "x-one=1%2C2"
  )
  start <- Sys.time()
  # A user in the URL is not shown.
  url <- sub("//", "//us%40er:secret@", server$url, fixed = TRUE)
  local_agent(url, resource = c(service.version = "2", "ü" = "ö"), headers = c("X-Two" = "x"))
  work_until_taken()
  labels <- function(x) unique(x$.labels$str[x$.labels$key == "route"])
  profiles <- list()
  arrive <- function() {
    # Each profile is read once.
    requests <- server$requests()
    for (i in setdiff(seq_along(requests), seq_along(profiles))) profiles[[i]] <<- profile_of_request(requests[[i]])
    profiles
  }
  with_labels(c(route = "/api"), work_until(function() length(unlist(lapply(arrive(), labels))) > 0))
  status <- stop_when_sent()

  requests <- server$requests()
  expect_identical(as.numeric(length(requests)), status$chunks_sent)
  profiles <- lapply(requests, profile_of_request)
  expect_identical(samples_of(profiles), status$sent)
  expect_legal(profiles)
  expect_true(has_seen(profiles, "busy_loop"))
  expect_false(has_seen(profiles, "profile_label"))
  expect_identical(unique(unlist(lapply(profiles, labels))), "/api")
  expect_length(labels(profiles[[1]]), 0)
  cpu <- agent_values(profiles, "cpu")
  expect_gt(cpu, 0)
  for (x in profiles) expect_cpu_times(x)

  request <- requests[[1]]
  expect_identical(request[c("method", "path")], list(method = "POST", path = "/v1development/profiles"))
  expect_identical(request$headers[["content-encoding"]], "gzip")
  expect_identical(request$headers[["content-type"]], "application/x-protobuf")
  # printf 'us@er:secret' | base64
  expect_identical(request$headers[["authorization"]], "Basic dXNAZXI6c2VjcmV0")
  expect_identical(unname(unlist(request$headers[c("x-one", "x-two")])), c("1,2", "x"))
  expect_identical(request$headers[["host"]], sub("http://", "", server$url))
  expect_identical(status$to, paste0(server$url, "/v1development/profiles"))
  x <- profiles[[1]]
  attributes <- rlang::set_names(x$.resource_attributes$value, x$.resource_attributes$key)
  expect_identical(
    attributes[c("service.name", "service.version", "team", "ü", "process.runtime.name")],
    c(service.name = "api", service.version = "2", team = "a b", "ü" = "ö", process.runtime.name = "R")
  )
  expect_false("process.command_line" %in% x$.source_attributes$key)
  expect_identical(unique(x$locations$.frame_type), "r")
  times <- vapply(profiles, function(x) x$sources$source_timestamp, 0)
  expect_false(is.unsorted(times))
  expect_true(all(times >= floor(as.numeric(start)) & times <= as.numeric(Sys.time())))
  expect_identical(status$method, "reader")
})

test_that("stacks of this process that were never there are not recorded", {
  code <- new.env()
  code$ready <- function() NULL
  for (call in parse(test_path("processes", "chains.R"))) {
    if (!identical(call[[1]], quote(`repeat`))) eval(call, code)
  }
  # The functions are defined in the global environment.
  withr::defer(rm(list = c(paste0("a", 1:12), paste0("b", 1:12)), envir = globalenv()))
  chains <- list()
  local_agent(interval = 0.001, function(x) {
    new <- lapply(strsplit(stacks(x), " < ", fixed = TRUE), grep, pattern = "^[ab][0-9]+$", value = TRUE)
    chains <<- c(chains, new[lengths(new) > 0])
  })
  end <- Sys.time() + 300
  while (length(chains) < 20 && Sys.time() < end) {
    for (i in 1:500) code$both()
    agent_status()
  }
  expect_complete(stop_agent())
  expect_gte(length(chains), 20)
  is_chain <- vapply(chains, FUN.VALUE = NA, function(names) {
    identical(rev(names), paste0(substr(names[[1]], 1, 1), seq_along(names)))
  })
  expect_identical(chains[!is_chain], list())
})

test_that("requests with transient errors are retried until they have arrived once", {
  server <- http_server(
    list(status = 503), list(status = 429), list(close = "read"), list(close = "unread"), list(status = 502),
    list(status = 504, headers = c("Retry-After" = "0")), list(headers = protobuf())
  )
  local_agent(server$url)
  work_until(function() length(server$requests()) > 7)
  status <- stop_when_sent()
  expect_match(status$last_error, "HTTP 504")
  requests <- server$requests()
  expect_length(unique(lapply(requests[c(1:3, 5:7)], `[[`, "body")), 1)
  expect_identical(samples_of(lapply(requests[-(1:6)], profile_of_request)), status$sent)
})

test_that("requests with permanent errors are dropped and counted", {
  server <- http_server(
    list(status = 400, headers = protobuf(), body = status_response), list(headers = protobuf(), body = partial_response),
    list(headers = protobuf())
  )
  local_agent(server$url)
  work_until(function() agent_status()$dropped_refused > 0)
  expect_match(agent_status()$last_error, "HTTP 400: 100% {bad}|rejected 300 profiles: 100% {full}", perl = TRUE)
  work_until(function() agent_status()$chunks_sent > 1)
  status <- stop_agent(300)
  expect_complete(status)
  expect_identical(status$dropped_refused + status$sent, status$taken)
  expect_identical(status$rejected, 300)
  profiles <- lapply(server$requests(), profile_of_request)
  expect_identical(samples_of(profiles[1]), status$dropped_refused)
  expect_identical(samples_of(profiles[-1]), status$sent)
  expect_match(status$last_error, "rejected 300 profiles: 100% {full}", fixed = TRUE)
})

test_that("the queue is bounded while the server is away", {
  withr::local_options(profile.agent_queue_mb = 0.01)
  local_settings(environment())
  local_agent("http://127.0.0.1:1")
  work_until(function() agent_status()$dropped_full > 0)
  status <- agent_status()
  expect_complete(status)
  expect_gt(status$queued, 0)
  expect_lte(status$bytes_queued, 0.01 * 2^20)
  work_until(function() !is.na(agent_status()$last_error))
  expect_match(agent_status()$last_error, "^http://127.0.0.1:1/v1development/profiles: Connection failed: ")
  status <- stop_agent(0)
  expect_complete(status)
  # What remains is for the next agent.
  expect_gt(status$queued, 0)
  expect_identical(samples_in(dir(status$spool, "otlp[.]gz$|sending$")), status$queued)
})

test_that("files of a folder are complete", {
  folder <- withr::local_tempdir()
  local_agent(folder, resource = c(service.name = "my api/1"))
  work_until(function() length(dir(folder, "[.]pb[.]gz$")) > 1)
  status <- stop_when_sent()
  files <- dir(folder, all.files = TRUE, no.. = TRUE)
  expect_identical(as.numeric(length(files)), status$chunks_sent)
  expect_match(files, paste0("^my-api-1-", Sys.getpid(), "-[0-9a-f]{8}-[0-9]{8}T[0-9]{6}Z-[0-9]+[.]pb[.]gz$"))
  profiles <- lapply(file.path(folder, files), read_pprof)
  expect_gt(agent_values(profiles, "cpu"), 0)
  expect_legal(profiles)
})

test_that("a function gets all profiles", {
  got <- list()
  local_agent(function(x) got[[length(got) + 1]] <<- x)
  work_until(function() {
    agent_status()
    has_seen(got, "busy_loop")
  })
  status <- stop_when_sent()
  expect_identical(samples_of(got), status$sent)
  expect_identical(got[[1]]$sources$source_type, "process")
  expect_legal(got)

  local_agent(function(x) stop("100% no"))
  work_until(function() agent_status()$dropped_refused > 0)
  status <- stop_agent()
  expect_complete(status)
  expect_identical(status$dropped_refused, status$taken)
  expect_identical(status$last_error, "The function failed: 100% no")
})

test_that("R goes on if a function is slower than the agent", {
  waiting <- function() length(profile:::spooled_files(profile:::agent$run$spool))
  calls <- 0
  # It ends when the next chunk waits. The limit is for an agent that also gives that one to it at once.
  slow <- function(x) {
    calls <<- calls + 1
    if (calls <= 50) work_until(function() waiting() > 0)
  }
  local_agent(slow)
  work_until(function() waiting() > 0)
  agent_status()
  expect_gt(calls, 0)
  expect_gt(waiting(), 0)
  calls <- 50
  stop_when_sent()
})

test_that("samples of a process that waits have its state, and an event loop gives them to a function", {
  skip_if_not_installed("later")
  states <- character()
  local_agent(function(x) states <<- c(states, x$.labels$str[x$.labels$key == "state"]), clock = "wall")
  expect_true(wait_for(function() {
    later::run_now(0.1)
    "sleeping" %in% states
  }))
  expect_complete(stop_agent())
})

test_that("states and arguments", {
  local_settings(environment())
  skip_without_agent()
  expect_snapshot(error = TRUE, {
    stop_agent()
    start_agent("http://localhost", 1)
    start_agent(1)
    start_agent("http://")
    start_agent("/no/such/folder")
    start_agent("localhost")
    start_agent("http://a", interval = 1)
    start_agent("http://a", every = 0.001)
    start_agent("http://a", clock = "gpu")
    start_agent("http://a", resource = "x")
    start_agent("http://a", headers = c(`Content-Type` = "x"))
    start_agent("http://a", timeout = 0)
    start_agent("http://a", spool = "")
    start_agent("http://a", spool = "/no/such/folder")
    stop_agent(-1)
  })
  # A new folder is created.
  folder <- file.path(withr::local_tempdir(), "new")
  local_agent(folder)
  expect_identical(agent_status()$state, "running")
  expect_true(dir.exists(folder))
  expect_snapshot(error = TRUE, start_agent(folder))
  stop_agent()
  expect_identical(agent_status()$state, "stopped")
  expect_snapshot(error = TRUE, stop_agent())
})

test_that("the status is printed", {
  now <- as.POSIXct("2026-03-04 05:06:07", tz = "UTC")
  status <- structure(
    list(
      state = "running", taken = 12345, found = 0, sent = 12000, queued = 300, open = 40, dropped = 5, dropped_full = 1,
      dropped_refused = 2, dropped_lost = 2, unread = 3, cut = 0, paused = 0, rejected = 7, chunks_sent = 8, chunks_queued = 2,
      bytes_queued = 35000, snapshots = 0, snapshots_lost = 0, cpu_time = 1.234, last_sent = now - 4.4, last_error = "No connection\033",
      last_error_time = now - 300, since = now - 3600 * 5, until = as.POSIXct(NA), pid = 12L,
      to = "http://localhost", clock = "cpu", interval = 0.01, every = 15, memory = NA, method = "reader",
      spool = "/tmp/spool"
    ),
    class = "profile_agent_status"
  )
  expect_snapshot(writeLines(describe_agent_status(status, now)))
  status[c("state", "until", "paused", "clock", "found")] <- list("stopped", now - 60, 7.4, "wall", 1000)
  expect_snapshot(writeLines(describe_agent_status(status, now)))
  status$state <- "none"
  expect_snapshot(print(status))
})

test_that("an agent reads stacks of thousands of calls", {
  skip_without_agent()
  skip_if(system("ulimit -s unlimited", ignore.stderr = TRUE) != 0, "the system limits the size of stacks")
  folder <- withr::local_tempdir()
  local_r_process(
    limits = "ulimit -s unlimited", options = "--max-ppsize=500000",
    with_package(
      "invisible(compiler::enableJIT(0))",
      "options(expressions = 5e5)",
      "f <- function(n) if (n > 1) f(n - 1) else {",
      sprintf("  start_agent('%s')", folder),
      "  while (agent_status()$taken < 20) sum(sqrt(runif(1e5)))",
      "  stop_agent()",
      "}",
      "f(20000)",
      "ready()",
      "Sys.sleep(1e6)"
    )
  )
  samples <- unlist(lapply(dir(folder, full.names = TRUE), function(path) functions_of_samples(read_profile(path))), FALSE)
  expect_gt(length(samples), 0)
  expect_identical(unique(vapply(samples, function(names) sum(names == "f"), 0L)), 20000L)
})
