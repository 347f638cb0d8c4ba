# tier: gate
# The agent: what it records, what arrives, and that each sample is counted once. test-agent-robust.R has what may go
# wrong in the process, and test-agent-environment.R starting by environment variables.

test_that("every sample arrives, with its CPU time, stack and resource", {
  server <- http_server(list(headers = protobuf()))
  withr::local_envvar(
    OTEL_RESOURCE_ATTRIBUTES = "team=a%20b,service.name=other,service.version=1", OTEL_SERVICE_NAME = "api",
    OTEL_EXPORTER_OTLP_HEADERS = "x-one=1%2C2"
  )
  before <- kernel_cpu_time(Sys.getpid())
  local_agent(server$url, resource = c(service.version = "2", "ü" = "ö"), headers = c(Authorization = "Bearer x"))
  busy(1.5)
  status <- stop_agent()
  used <- (kernel_cpu_time(Sys.getpid()) - before) / 1e9
  expect_complete(status)
  expect_identical(status$sent, status$taken)
  expect_gt(status$taken, 20)

  requests <- server$requests()
  expect_identical(as.numeric(length(requests)), status$chunks_sent)
  profiles <- lapply(requests, profile_of_request)
  expect_identical(samples_of(profiles), status$sent)
  # The time before the first tick and after the last one is missing.
  cpu <- agent_values(profiles, "cpu")
  expect_lt(cpu, used)
  expect_gt(cpu, used - 0.3)
  frames <- do.call(rbind, lapply(profiles, as_tibble))
  expect_gt(mean(vapply(split(frames$name, frames$sample_id), function(n) "busy_loop" %in% n, NA)), 0.8)

  request <- requests[[1]]
  expect_identical(request[c("method", "path")], list(method = "POST", path = "/v1development/profiles"))
  expect_identical(request$headers[["content-encoding"]], "gzip")
  expect_identical(request$headers[["content-type"]], "application/x-protobuf")
  expect_identical(request$headers[["authorization"]], "Bearer x")
  expect_identical(request$headers[["x-one"]], "1,2")
  expect_identical(request$headers[["host"]], sub("http://", "", server$url))
  x <- profiles[[1]]
  attributes <- rlang::set_names(x$.resource_attributes$value, x$.resource_attributes$key)
  expect_identical(
    attributes[c("service.name", "service.version", "team", "ü", "process.runtime.name")],
    c(service.name = "api", service.version = "2", team = "a b", "ü" = "ö", process.runtime.name = "R")
  )
  expect_false("process.command_line" %in% x$.source_attributes$key)
  expect_lt(abs(x$sources$source_timestamp - as.numeric(Sys.time())), 60)
  durations <- vapply(profiles, function(x) x$sources$.duration_nanos / 1e9, 0)
  expect_true(all(durations[-length(durations)] > 0.19 & durations[-length(durations)] < 0.6), info = format(durations))
})

test_that("stacks of this process that were never there are not recorded", {
  folder <- withr::local_tempdir()
  code <- new.env()
  code$ready <- function() NULL
  for (call in parse(test_path("processes", "chains.R"))) {
    if (!identical(call[[1]], quote(`repeat`))) eval(call, code)
  }
  # They are defined in the global environment.
  withr::defer(rm(list = c(paste0("a", 1:12), paste0("b", 1:12)), envir = globalenv()))
  local_agent(folder, interval = 0.001, every = 60)
  end <- proc.time()[[1]] + 3
  while (proc.time()[[1]] < end) for (i in 1:500) code$both()
  status <- stop_agent()
  expect_complete(status)
  expect_gt(status$taken, 100)
  frames <- as_tibble(read_pprof(list.files(folder, full.names = TRUE)))
  frames <- frames[grepl("^[ab][0-9]+$", frames$name), ]
  stacks <- split(frames$name, frames$sample_id)
  is_chain <- vapply(stacks, FUN.VALUE = NA, function(names) {
    identical(rev(names), paste0(substr(names[[1]], 1, 1), seq_along(names)))
  })
  expect_gt(length(is_chain), 10)
  expect_identical(sum(!is_chain), 0L)
})

test_that("code whose stack changes all the time has its share", {
  folder <- withr::local_tempdir()
  # Which is calls of many functions, in the last line, and loops.
  writeLines(c(
    "loop <- function(n) {",
    "  x <- 0",
    "  while (x < n) x <- x + 1",
    "}",
    "main <- function() {",
    "  loop(1000)",
    "  lapply(1:3, function(i) loop(300))",
    "  stats::lm(dist ~ speed, datasets::cars)",
    "}"
  ), file.path(folder, "program.R"))
  code <- new.env()
  source(file.path(folder, "program.R"), code, keep.source = TRUE)
  work <- function(seconds) {
    end <- proc.time()[[1]] + seconds
    while (proc.time()[[1]] < end) for (i in 1:50) code$main()
  }
  work(0.5)
  path <- file.path(folder, "Rprof.out")
  profiles <- file.path(folder, "profiles")
  dir.create(profiles)
  withr::defer(Rprof(NULL))
  Rprof(path, interval = 0.01, line.profiling = TRUE)
  local_agent(profiles, interval = 0.005, every = 60)
  part <- part_of_cpu(work(6))
  expect_complete(stop_agent())
  Rprof(NULL)
  share <- function(x) {
    lines <- summary(x)$by_line
    lines$total_share[basename(lines$filename) == "program.R" & lines$line == 8]
  }
  ours <- share(read_pprof(list.files(profiles, full.names = TRUE)))
  theirs <- share(suppressWarnings(read_rprof(path)))
  # Both have some hundreds of samples.
  skip_if_busy(abs(ours - theirs) >= 0.1, part)
  expect_lt(abs(ours - theirs), 0.1)
})

test_that("labels arrive", {
  server <- http_server(list(headers = protobuf()))
  local_agent(server$url)
  with_labels(c(route = "/api"), busy(0.5))
  busy(0.3)
  stop_agent()
  profiles <- lapply(server$requests(), profile_of_request)
  x <- do.call(combine_profiles, profiles)
  labels <- x$.labels[x$.labels$key == "route", ]
  expect_identical(unique(labels$str), "/api")
  expect_gt(nrow(labels), 10)
  expect_lt(nrow(labels), nrow(x$samples))
  expect_no_match(x$functions$name, "profile_label")
})

test_that("a user in the URL is authenticated", {
  server <- http_server(list(headers = protobuf()))
  local_agent(sub("//", "//us%40er:secret@", server$url, fixed = TRUE))
  busy(0.3)
  status <- stop_agent()
  expect_identical(status$to, paste0(server$url, "/v1development/profiles"))
  # printf 'us@er:secret' | base64
  expect_identical(server$requests()[[1]]$headers[["authorization"]], "Basic dXNAZXI6c2VjcmV0")
})

test_that("what passes is tried again, until it has arrived once", {
  server <- http_server(
    list(status = 503), list(status = 429), list(close = "read"), list(close = "unread"), list(status = 502),
    list(status = 504, headers = c("Retry-After" = "0")), list(headers = protobuf())
  )
  local_agent(server$url)
  busy(2)
  status <- stop_agent(10)
  expect_complete(status)
  expect_identical(status$sent, status$taken)
  expect_match(status$last_error, "HTTP 504")
  requests <- server$requests()
  expect_length(unique(lapply(requests[c(1:3, 5:7)], `[[`, "body")), 1)
  expect_identical(samples_of(lapply(requests[-(1:6)], profile_of_request)), status$sent)
})

test_that("the server determines how long to wait", {
  server <- http_server(list(status = 503, headers = c("Retry-After" = "1")), list(headers = protobuf()))
  local_agent(server$url)
  busy(2)
  stop_agent()
  times <- vapply(server$requests(), `[[`, 0, "time")
  expect_gte(times[[2]] - times[[1]], 1)
  expect_lt(times[[2]] - times[[1]], 1.9)
  server <- http_server(list(status = 503, headers = c("Retry-After" = "100000")), list(headers = protobuf()))
  local_agent(server$url)
  busy(1)
  status <- stop_agent()
  expect_complete(status)
  expect_gt(status$dropped_refused, 0)
  expect_gt(status$sent, 0)
})

test_that("what does not pass is dropped and counted", {
  for (step in list(
    list(status = 400, headers = protobuf(), body = status_response), list(status = 404), list(status = 301),
    list(early = charToRaw("SSH-2.0-OpenSSH\r\n"))
  )) {
    server <- http_server(step, list(headers = protobuf()))
    local_agent(server$url)
    busy(0.7)
    status <- stop_agent()
    expect_complete(status)
    expect_gt(status$dropped_refused, 0)
    expect_identical(status$dropped_refused + status$sent, status$taken)
    expect_identical(samples_of(lapply(server$requests()[-1], profile_of_request)), status$sent)
    expect_match(status$last_error, if (is.null(step$status)) "not HTTP/1" else paste("HTTP", step$status))
  }
  expect_no_match(status$last_error, "secret")
})

test_that("an answer that is late is not waited for, and nothing is sent twice", {
  server <- http_server(list(delay = 2), list(headers = protobuf()))
  local_agent(server$url, timeout = 0.3)
  busy(1.2)
  # The server still sleeps.
  Sys.sleep(1.5)
  status <- stop_agent()
  expect_complete(status)
  expect_gt(status$dropped_refused, 0)
  expect_match(status$last_error, "did not answer in time")
})

test_that("partial success and other answers are noted", {
  server <- http_server(list(headers = protobuf(), body = partial_response))
  local_agent(server$url)
  busy(0.5)
  status <- stop_agent()
  expect_identical(status$sent, status$taken)
  expect_identical(status$rejected, 300 * status$chunks_sent)
  expect_match(status$last_error, "rejected 300 profiles: 100% {full}", fixed = TRUE)
  server <- http_server(list(body = "<html>hello</html>", headers = c("Content-Type" = "text/html")))
  local_agent(server$url)
  busy(0.5)
  status <- stop_agent()
  expect_identical(status$sent, status$taken)
  expect_match(status$last_error, "does not conform to OTLP. <html>hello", fixed = TRUE)
})

test_that("the queue is bounded while the server is away, and drops the oldest parts", {
  withr::local_options(profile.agent_queue_mb = 0.01)
  local_settings(environment())
  local_agent("http://127.0.0.1:1")
  busy(3)
  status <- agent_status()
  expect_complete(status)
  expect_gt(status$dropped_full, 0)
  expect_gt(status$queued, 0)
  expect_lte(status$bytes_queued, 0.01 * 2^20)
  expect_match(status$last_error, "Connection refused")
  time <- system.time(status <- stop_agent())
  expect_lt(time[["elapsed"]], 2)
  expect_complete(status)
  expect_identical(status$dropped, status$taken)
  expect_gt(status$dropped_lost, 0)
})

test_that("a server that accepts connections but reads nothing does not hold up anything", {
  local_settings(environment())
  port <- NULL
  for (candidate in sample(49152:65535, 50)) {
    socket <- tryCatch(suppressWarnings(serverSocket(candidate)), error = function(e) NULL)
    if (!is.null(socket)) {
      port <- candidate
      break
    }
  }
  withr::defer(close(socket))
  local_agent(paste0("http://127.0.0.1:", port), timeout = 0.3)
  busy(1.5)
  status <- agent_status()
  expect_gt(status$taken, 30)
  time <- system.time(status <- stop_agent(0.5))
  expect_lt(time[["elapsed"]], 1.5)
  expect_complete(status)
  expect_identical(status$sent, 0)
})

test_that("a name that is not found is an error that passes", {
  local_settings(environment())
  local_agent("http://no-such-host.invalid:4318")
  busy(0.6)
  status <- agent_status()
  time <- system.time(status <- stop_agent(0.5))
  expect_lt(time[["elapsed"]], 4)
  expect_complete(status)
  expect_identical(status$dropped_lost, status$taken)
  expect_match(status$last_error, "No connection to http://no-such-host.invalid:4318/v1development/profiles")
})

test_that("files of a folder are complete, and hold all CPU time", {
  folder <- withr::local_tempdir()
  before <- kernel_cpu_time(Sys.getpid())
  local_agent(folder, resource = c(service.name = "my api/1"))
  busy(1)
  status <- stop_agent()
  used <- (kernel_cpu_time(Sys.getpid()) - before) / 1e9
  expect_identical(status$sent, status$taken)
  files <- dir(folder, all.files = TRUE, no.. = TRUE)
  expect_identical(as.numeric(length(files)), status$chunks_sent)
  expect_match(files, paste0("^my-api-1-", Sys.getpid(), "-[0-9]{8}T[0-9]{6}Z-[0-9]+[.]pb[.]gz$"))
  cpu <- agent_values(lapply(file.path(folder, files), read_pprof), "cpu")
  expect_lt(cpu, used)
  expect_gt(cpu, used - 0.3)
})

test_that("a folder that cannot be written is tried again", {
  skip_on_os("windows")
  folder <- withr::local_tempdir()
  local_settings(environment())
  local_agent(folder)
  moved <- paste0(folder, "-moved")
  file.rename(folder, moved)
  busy(0.8)
  status <- agent_status()
  expect_complete(status)
  expect_gt(status$queued, 0)
  expect_match(status$last_error, "Cannot write.*No such file")
  file.rename(moved, folder)
  Sys.sleep(3)
  status <- stop_agent()
  expect_complete(status)
  expect_identical(status$sent, status$taken)
})

test_that("a function gets all profiles", {
  got <- list()
  local_agent(function(x) got[[length(got) + 1]] <<- x)
  busy(0.7)
  status <- agent_status()
  expect_gt(length(got), 0)
  expect_complete(status)
  busy(0.2)
  status <- stop_agent()
  expect_complete(status)
  expect_identical(status$sent, status$taken)
  expect_identical(samples_of(got), status$sent)
  expect_identical(got[[1]]$sources$source_type, "process")
  for (x in got) expect_no_error(validate_profile(x))

  local_agent(function(x) stop("100% no"))
  busy(0.5)
  status <- stop_agent()
  expect_complete(status)
  expect_identical(status$dropped_refused, status$taken)
  expect_identical(status$last_error, "The function failed: 100% no")
})

test_that("an event loop gives profiles to a function", {
  skip_if_not_installed("later")
  got <- 0
  local_agent(function(x) got <<- got + nrow(x$samples), event = "wall")
  end <- Sys.time() + 2
  while (Sys.time() < end && got == 0) later::run_now(0.1)
  expect_gt(got, 0)
  stop_agent()
})

test_that("a process that waits has samples of wall time only", {
  server <- http_server(list(headers = protobuf()))
  local_agent(server$url)
  Sys.sleep(1)
  stop_agent()
  # Event loops that tests have loaded use some.
  expect_lt(agent_values(lapply(server$requests(), profile_of_request), "cpu"), 0.2)
  local_agent(server$url, event = "wall")
  Sys.sleep(1)
  status <- stop_agent()
  expect_gt(status$taken, 50)
  profiles <- lapply(server$requests(), profile_of_request)
  x <- profiles[[length(profiles)]]
  expect_true("sleeping" %in% x$.labels$str)
})

test_that("the thread sleeps while R does, and wakes when R goes on", {
  skip_without_agent()
  folder <- withr::local_tempdir()
  # In a process of its own, since packages that show windows let R wake up a hundred times a second.
  wakings <- agent_script(c(
    sprintf("profile::start_agent(%s, every = 60)", deparse(folder)),
    "tasks <- list.files('/proc/self/task', full.names = TRUE)",
    "of_agent <- tasks[vapply(file.path(tasks, 'comm'), readLines, '') == 'profile-agent']",
    "wakings <- function() {",
    "  line <- grep('^voluntary_ctxt_switches', readLines(file.path(of_agent, 'status')), value = TRUE)",
    "  as.numeric(sub('.*:', '', line))",
    "}",
    "Sys.sleep(0.2)",
    "before <- wakings()",
    "Sys.sleep(3)",
    "cat(wakings() - before)",
    "invisible(profile::stop_agent())"
  ))
  # There are 300 intervals.
  expect_lt(as.numeric(wakings), 60)

  unlink(list.files(folder, full.names = TRUE))
  local_agent(folder, every = 60)
  busy(0.1)
  # All CPU time between pauses is found, with the stacks that use it.
  before <- kernel_cpu_time(Sys.getpid())
  elapsed <- 0
  for (i in 1:20) {
    Sys.sleep(0.1)
    elapsed <- elapsed + system.time(busy(0.05), gcFirst = FALSE)[[3]]
  }
  used <- (kernel_cpu_time(Sys.getpid()) - before) / 1e9
  expect_identical(stop_agent()$dropped, 0)
  x <- read_pprof(list.files(folder, full.names = TRUE))
  frames <- as_tibble(x)
  is_busy <- vapply(split(frames$name, frames$sample_id), function(names) "busy" %in% names, NA)
  values <- x$sample_values[x$sample_values$type == "cpu", ]
  cpu <- sum(values$value[values$sample_id %in% names(is_busy)[is_busy]]) / 1e9
  expect_gt(cpu, 0.1 + 0.75 * used)
  expect_lt(sum(values$value) / 1e9, 0.1 + used + 0.5)
  wall <- x$sample_values[x$sample_values$type == "wall", ]
  expect_true(all(wall$value >= values$value[match(wall$sample_id, values$sample_id)]))
  # Pauses, two seconds, are no part of it.
  expect_lt(sum(wall$value[wall$sample_id %in% names(is_busy)[is_busy]]) / 1e9, 0.1 + elapsed + 1)
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
    start_agent("http://a", interval = 1)
    start_agent("http://a", every = 0.001)
    start_agent("http://a", event = "gpu")
    start_agent("http://a", resource = "x")
    start_agent("http://a", headers = c(`Content-Type` = "x"))
    start_agent("http://a", timeout = 0)
    stop_agent(-1)
  })
  withr::with_envvar(c(OTEL_RESOURCE_ATTRIBUTES = "=x"), {
    expect_snapshot(error = TRUE, start_agent("http://a"))
  })
  folder <- withr::local_tempdir()
  local_agent(folder)
  expect_identical(agent_status()$state, "running")
  expect_snapshot(error = TRUE, start_agent(folder))
  stop_agent()
  expect_identical(agent_status()$state, "stopped")
  expect_snapshot(error = TRUE, stop_agent())
})

test_that("the status is printed", {
  status <- structure(
    list(
      state = "running", taken = 12345, sent = 12000, queued = 300, open = 40, dropped = 5, dropped_full = 1,
      dropped_refused = 2, dropped_lost = 2, unread = 3, cut = 0, paused = 0, rejected = 7, chunks_sent = 8, chunks_queued = 2,
      bytes_queued = 35000, cpu_time = 1.234, last_sent = Sys.time() - 4.4, last_error = "No connection\033",
      last_error_time = Sys.time() - 300, since = Sys.time() - 3600 * 5, until = as.POSIXct(NA), pid = 12L,
      to = "http://localhost", event = "cpu", interval = 0.01, every = 15, source = "reader"
    ),
    class = "profile_agent_status"
  )
  expect_snapshot(print(status))
  status$state <- "none"
  expect_snapshot(print(status))
})
