# tier: gate
# The agent with samples of R's own profiler: which profiles arrive, and what happens if other code uses this profiler.
# Rust tests in src/rust/agent/src/rprof.rs test the conversion of lines to chunks, since R before 4.3 writes lines
# late.

# The sum of the values of a type.
total_of <- function(profiles, type) {
  sum(vapply(profiles, function(x) sum(x$sample_values$value[x$sample_values$type == type]), 0))
}

rprof_user <- function() profile:::rust(profile:::rust_agent_rprof(), NULL)$user

# Descriptors of files in memory to which the agent and R have access.
memory_files <- function() {
  files <- dir("/proc/self/fd", full.names = TRUE)
  files[grepl("^/memfd:profile-agent", Sys.readlink(files))]
}

# A function in a file of its own, whose time is in line 3.
local_lines <- function(envir = parent.frame()) {
  path <- withr::local_tempfile(fileext = ".R", .local_envir = envir)
  writeLines(c(
    "line_work <- function(n) {",
    "  x <- 0",
    "  for (i in seq_len(n)) x <- x + sqrt(i)",
    "}"
  ), path)
  code <- new.env()
  source(path, local = code, keep.source = TRUE)
  code$path <- path
  code
}

test_that("samples agree with Rprof(), with all lines in each part", {
  skip_without_rprof_agent()
  code <- local_lines()
  # The name by which the function is called.
  line_work <- code$line_work
  got <- list()
  start <- as.numeric(Sys.time())
  local_agent(function(x) got[[length(got) + 1]] <<- x, method = "rprof")
  # Later parts contain the files of lines as well.
  has_lines <- function(x) "line_work" %in% x$functions$name
  work_until(function() {
    for (i in 1:10) line_work(1e4)
    agent_status()
    sum(vapply(got, has_lines, NA)) > 1
  })
  status <- stop_when_sent()
  expect_identical(status$method, "rprof")
  expect_equal(total_of(got, "samples"), status$sent)
  expect_equal(total_of(got, "cpu"), status$sent * 1e7)
  frames <- do.call(rbind, lapply(got, as_tibble))
  frames <- frames[frames$name == "line_work", ]
  # A function that has just been called has no line yet: R writes the line of its caller.
  in_work <- basename(frames$filename) == basename(code$path)
  expect_true(any(in_work))
  expect_true(all(frames$line[in_work] %in% 1:4))
  expect_true(all(basename(frames$filename[!in_work]) == "test-agent-rprof.R"))
  end <- start
  for (x in got) {
    expect_no_error(validate_profile(x))
    expect_identical(x$sources$source_type, "process")
    expect_identical(unique(x$sample_values$type), c("samples", "cpu"))
    # The parts do not overlap.
    expect_gte(x$sources$source_timestamp, end - 1e-3)
    end <- x$sources$source_timestamp + x$sources$.duration_nanos / 1e9
  }
  expect_identical(rprof_user(), "nobody")
})

test_that("every sample arrives at a server, with labels and resource", {
  skip_without_rprof_agent()
  server <- http_server(list(status = 503), list(headers = protobuf()))
  local_agent(server$url, method = "rprof", resource = c(service.name = "api"))
  work_until_taken(5)
  before <- length(server$requests())
  labels <- function(x) x$.labels[x$.labels$key == "route", ]
  with_labels(c(route = "/api"), work_until(function() {
    requests <- server$requests()
    new <- lapply(requests[seq_along(requests) > max(before, 1)], profile_of_request)
    any(vapply(new, function(x) length(labels(x)$str), 0L) > 0)
  }))
  status <- stop_when_sent()
  profiles <- lapply(server$requests()[-1], profile_of_request)
  expect_equal(total_of(profiles, "samples"), status$sent)
  expect_equal(total_of(profiles, "cpu"), status$sent * 1e7)
  x <- do.call(combine_profiles, profiles)
  expect_identical(unique(labels(x)$str), "/api")
  labelled <- x$sample_values$sample_id %in% labels(x)$sample_id & x$sample_values$type == "samples"
  expect_lt(sum(x$sample_values$value[labelled]), status$sent)
  expect_no_match(x$functions$name, "profile_label")
  attributes <- profiles[[1]]$.resource_attributes
  expect_identical(attributes$value[attributes$key == "service.name"], "api")
})

test_that("a warning says that R had no room for names of files", {
  skip_without_rprof_agent()
  rooms <- profile:::rprof_files
  withr::defer(utils::assignInNamespace("rprof_files", rooms, "profile"))
  utils::assignInNamespace("rprof_files", 1L, "profile")
  folder <- withr::local_tempdir()
  local_agent(folder, method = "rprof")
  # Both functions are in the samples.
  for (code in list(local_lines(), local_lines())) {
    taken <- agent_status()$taken
    while (agent_status()$taken < taken + 10) for (i in 1:10) code$line_work(1e4)
  }
  expect_warning(status <- stop_agent(300), "numfiles", class = "profile_warning_incomplete")
  expect_complete(status)
  expect_identical(status$sent, status$taken)
})

test_that("samples of wall time are taken while R waits", {
  skip_without_rprof_agent()
  skip_if(getRversion() < "4.4", "event = \"wall\" needs R 4.4")
  got <- list()
  local_agent(function(x) got[[length(got) + 1]] <<- x, method = "rprof", clock = "wall")
  expect_true(wait_for(function() agent_status()$taken >= 20))
  status <- stop_when_sent()
  expect_equal(total_of(got, "wall"), status$sent * 1e7)
  expect_equal(total_of(got, "cpu"), 0)
})

test_that("the memory of lines is freed when they are read", {
  skip_without_rprof_agent()
  folder <- withr::local_tempdir()
  local_agent(folder, method = "rprof")
  # R's descriptor and ours.
  expect_length(memory_files(), 2)
  path <- sub("self", Sys.getpid(), memory_files()[[1]])
  sizes <- function() as.numeric(strsplit(system2("stat", c("-L", "-c", shQuote("%s %b"), path), stdout = TRUE), " ")[[1]])
  deep <- function(n) if (n == 0) for (i in 1:50) busy_loop(1e4) else deep(n - 1)
  expect_true(wait_for(function() {
    deep(100)
    sizes()[[1]] > 50000
  }))
  # A page that is used in part remains.
  expect_true(wait_for(function() sizes()[[2]] <= 8))
  stop_when_sent()
  expect_length(memory_files(), 0)
})

test_that("Rprof() of others interrupts the agent, and is not disturbed", {
  skip_without_rprof_agent()
  got <- list()
  local_agent(function(x) got[[length(got) + 1]] <<- x, method = "rprof")
  events <- if (getRversion() >= "4.4") list("cpu", "elapsed") else list(NULL)
  for (event in events) {
    work_until_taken(agent_status()$taken + 5)
    status <- agent_status()
    expect_identical(status$state, "running")
    paused <- status$paused
    path <- withr::local_tempfile()
    rlang::inject(Rprof(path, interval = 0.01, !!!list(event = event)[!is.null(event)]))
    expect_identical(agent_status()$state, "paused")
    # Samples until then are read.
    expect_true(wait_for(function() agent_status()$paused > paused))
    taken <- agent_status()$taken
    # The other profiler has samples, and the agent has none.
    work_until(function() is_written(path) && file.size(path) > 1000 || agent_status()$paused > paused + 5)
    paused <- agent_status()$paused
    expect_true(wait_for(function() agent_status()$paused > paused))
    status <- agent_status()
    expect_identical(status$state, "paused")
    expect_identical(status$taken, taken)
    Rprof(NULL)
    theirs <- suppressWarnings(read_rprof(path))
    expect_length(theirs$sources$source_id, 1)
    expect_identical(agent_status()$state, "running")
    work_until_taken(taken + 1)
  }
  # No profiler is running, and no other code has started one.
  Rprof(NULL)
  expect_identical(agent_status()$state, "running")
  status <- stop_when_sent()
  expect_identical(status$last_error, NA_character_)
  expect_equal(total_of(got, "samples"), status$sent)
})

test_that("profilers of this package interrupt the agent, which goes on by itself", {
  skip_without_rprof_agent()
  folder <- withr::local_tempdir()
  local_agent(folder, method = "rprof")
  expect_s3_class(record_profile(for (i in 1:100) busy_loop(1e4)), "profile_data")
  expect_identical(rprof_user(), "agent")
  expect_error(suppressMessages(record_profile(stop("no"))), "no")
  expect_identical(rprof_user(), "agent")
  path <- withr::local_tempfile()
  native <- tryCatch(start_profiler(path), profile_error_unsupported = function(e) NULL)
  if (is.null(native)) {
    expect_identical(rprof_user(), "agent")
  } else {
    expect_identical(agent_status()$state, "paused")
    for (i in 1:100) busy_loop(1e4)
    expect_s3_class(suppressWarnings(stop_profiler()), "profile_data")
    expect_identical(rprof_user(), "agent")
    expect_error(record_profile(stop("no"), native = TRUE), "no")
    expect_identical(rprof_user(), "agent")
  }
  expect_identical(agent_status()$state, "running")
  expect_complete(stop_agent())
})

test_that("the agent goes on when R is idle", {
  skip_without_rprof_agent()
  skip_if_not_installed("later")
  folder <- withr::local_tempdir()
  local_agent(folder, method = "rprof")
  Rprof(NULL)
  expect_identical(rprof_user(), "nobody")
  expect_true(wait_for(function() {
    later::run_now(0.1)
    rprof_user() == "agent"
  }))
  stop_agent()
})

test_that("it does not start while another profiler runs", {
  skip_without_rprof_agent()
  folder <- withr::local_tempdir()
  path <- withr::local_tempfile()
  events <- if (getRversion() >= "4.4") list("cpu", "elapsed") else list(NULL)
  for (event in events) {
    rlang::inject(Rprof(path, interval = 0.01, !!!list(event = event)[!is.null(event)]))
    withr::defer(Rprof(NULL))
    expect_error(start_agent(folder, method = "rprof"), "Another profiler is running", class = "profile_error_unsupported")
    for (i in 1:100) busy_loop(1e4)
    Rprof(NULL)
    expect_s3_class(suppressWarnings(read_rprof(path)), "profile_data")
  }
  expect_identical(agent_status()$state %in% c("none", "stopped"), TRUE)
  expect_length(memory_files(), 0)
})

test_that("a forked process has no samples of the agent, and may start one", {
  skip_without_rprof_agent()
  got <- list()
  local_agent(function(x) got[[length(got) + 1]] <<- x, method = "rprof")
  work_until_taken(5)
  in_child <- function() {
    child_only <- function(n) while (agent_status()$taken < n) for (i in 1:10) busy_loop(1e4)
    state <- agent_status()$state
    child_only(0)
    for (i in 1:100) busy_loop(1e4)
    folder <- tempfile()
    dir.create(folder)
    start_agent(folder, every = 0.05, method = "rprof")
    child_only(20)
    status <- stop_agent(300)
    profiles <- lapply(dir(folder, full.names = TRUE), read_pprof)
    unlink(folder, recursive = TRUE)
    list(state = state, status = status, names = unlist(lapply(profiles, function(x) x$functions$name)))
  }
  for (child in parallel::mclapply(1:2, function(i) in_child(), mc.cores = 2)) {
    expect_identical(child$state, "none")
    expect_complete(child$status)
    expect_identical(child$status$sent, child$status$taken)
    expect_true("child_only" %in% child$names)
  }
  expect_identical(agent_status()$state, "running")
  work_until_taken(agent_status()$taken + 20)
  status <- stop_when_sent()
  expect_equal(total_of(got, "samples"), status$sent)
  x <- do.call(combine_profiles, got)
  expect_true("busy_loop" %in% x$functions$name)
  expect_false("child_only" %in% x$functions$name)
})

test_that("R quits with a last attempt to send, and the package can be unloaded", {
  skip_without_rprof_agent()
  server <- http_server(list(headers = protobuf()))
  code <- c(
    script_work,
    sprintf("profile::start_agent('%s', every = 100, method = 'rprof')", server$url),
    "work_until_taken()"
  )
  agent_script(c(code, "quit('no', status = 3)"), status = 3L)
  # The number is larger if the process was stopped for some seconds meanwhile.
  requests <- server$requests()
  expect_gte(total_of(lapply(requests, profile_of_request), "samples"), 20)
  out <- agent_script(c(
    code, "unloadNamespace('profile')", "invisible(gc())",
    "for (i in 1:10) f()",
    "files <- dir('/proc/self/fd', full.names = TRUE)",
    "cat(sum(grepl('memfd:profile', Sys.readlink(files))), is.null(getLoadedDLLs()[['profile']]), '\\n')"
  ))
  expect_identical(trimws(utils::tail(out, 1)), "0 TRUE")
  expect_gt(length(server$requests()), length(requests))
})

test_that("it can be started and stopped again and again", {
  skip_without_rprof_agent()
  folder <- withr::local_tempdir()
  files <- function() length(dir("/proc/self/fd"))
  before <- NULL
  for (i in 1:10) {
    start_agent(folder, method = "rprof", every = 0.05)
    work_until_taken(1)
    stop_when_sent()
    if (i == 3) before <- files()
  }
  expect_identical(files(), before)
})

# As if R's memory could not be read.
local_refusal <- function(envir = parent.frame()) {
  start <- profile:::rust_agent_start
  replace <- function(f) utils::assignInNamespace("rust_agent_start", f, "profile")
  withr::defer(replace(start), envir = envir)
  replace(function(settings) {
    if (settings$method == "auto") list("R's memory looks new.", NULL, NULL) else start(settings)
  })
}

test_that("\"auto\" is Rprof() where R's memory cannot be read", {
  skip_without_rprof_agent()
  folder <- withr::local_tempdir()
  local_refusal()
  local_agent(folder, method = "auto")
  expect_identical(agent_status()$method, "rprof")
  work_until_taken(1)
  stop_when_sent()
})

test_that("\"auto\" says why there is no source", {
  skip_without_agent()
  folder <- withr::local_tempdir()
  local_refusal()
  error <- expect_error(start_agent(folder, interval = 0.001), class = "profile_error_unsupported")
  expect_match(conditionMessage(error), "R's memory looks new.", fixed = TRUE)
  why <- if (getRversion() < "4.3") "need R 4.3 or later" else "every 0.01 seconds at most"
  expect_match(conditionMessage(error), why, fixed = TRUE)
  expect_true(agent_status()$state %in% c("none", "stopped"))
})

test_that("the reader is preferred", {
  folder <- withr::local_tempdir()
  local_agent(folder)
  expect_identical(agent_status()$method, "reader")
  stop_agent()
})

test_that("older versions of R are refused", {
  skip_if(getRversion() >= "4.3", "this version of R writes lines at once")
  folder <- withr::local_tempdir()
  expect_error(start_agent(folder, method = "rprof"), "need R 4.3 or later", class = "profile_error_unsupported")
})
