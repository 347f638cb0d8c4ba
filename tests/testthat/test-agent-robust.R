# tier: gate
# Events in a process that has an agent: nothing may hang, crash or remain. test-agent-storm.R repeats them many times.

test_that("other profilers work beside the agent, and it beside them", {
  got <- list()
  local_agent(function(x) got[[length(got) + 1]] <<- x)
  more <- function() {
    taken <- agent_status()$taken
    function() agent_status()$taken >= taken + 5
  }
  path <- withr::local_tempfile()
  Rprof(path, interval = 0.01)
  work_until(more())
  Rprof(NULL)
  expect_s3_class(suppressWarnings(read_rprof(path)), "profile_data")
  work_until(more())
  expect_s3_class(record_profile(work_until(more())), "profile_data")
  work_until(more())
  if (!inherits(try(record_profile(1, native = TRUE), silent = TRUE), "try-error")) {
    expect_s3_class(suppressWarnings(record_profile(work_until(more()), native = TRUE)), "profile_data")
    work_until(more())
  }
  status <- stop_when_sent()
  expect_identical(samples_of(got), status$sent)
  expect_legal(got)
})

test_that("a forked process has no agent, and may start one", {
  skip_on_os("windows")
  folder <- withr::local_tempdir()
  local_agent(folder)
  in_child <- withr::local_tempdir()
  result <- parallel::mclapply(1:2, function(i) {
    before <- agent_status()$state
    stopped <- tryCatch(stop_agent(), profile_error_argument = function(e) "no agent")
    start_agent(in_child, every = 0.05)
    work_until_taken(5)
    list(before = before, stopped = stopped, status = stop_agent(300))
  }, mc.cores = 2)
  for (child in result) {
    expect_identical(child$before, "none")
    expect_identical(child$stopped, "no agent")
    expect_complete(child$status)
    expect_identical(child$status$sent, child$status$taken)
  }
  expect_identical(agent_status()$state, "running")
  taken <- agent_status()$taken
  work_until_taken(taken + 5)
  status <- stop_when_sent()
  expect_length(dir(folder), status$chunks_sent)
})

test_that("a forked process that quits leaves the agent of its parent alone", {
  skip_without_agent()
  folder <- withr::local_tempdir()
  out <- agent_script(c(
    "library(profile)", script_work,
    sprintf("start_agent('%s', every = 0.1)", folder),
    "child <- parallel::mcparallel({ gc(); quit('no') })",
    "invisible(suppressWarnings(parallel::mccollect(child)))",
    "taken <- agent_status()$taken",
    "work_until_taken(taken + 10)",
    "status <- stop_agent(200)",
    "cat(status$state, status$sent == status$taken, '\n')"
  ))
  # The forked process may have a warning of cli, whose thread it does not have.
  expect_identical(trimws(utils::tail(out, 1)), "stopped TRUE")
})

test_that("forks at any moment are harmless", {
  skip_on_os("windows")
  folder <- withr::local_tempdir()
  local_agent(folder, interval = 0.001, every = 0.01)
  for (i in 1:10) {
    child <- parallel::mcparallel(agent_status()$state)
    expect_identical(parallel::mccollect(child)[[1]], "none")
  }
  stop_when_sent()
})

test_that("it can be started and stopped again and again", {
  skip_without_agent()
  folder <- withr::local_tempdir()
  threads <- function() length(dir("/proc/self/task"))
  files <- function() length(dir("/proc/self/fd"))
  before <- NULL
  for (i in 1:20) {
    start_agent(folder, interval = 0.001)
    work_until_taken(1)
    stop_when_sent()
    if (i == 5) before <- c(threads(), files())
  }
  expect_identical(c(threads(), files()), before)
  expect_gte(length(dir(folder)), 20)
  for (path in dir(folder, full.names = TRUE)) expect_gt(nrow(read_pprof(path)$samples), 0)
})

test_that("R quits with a last attempt to send, and without one if it is killed", {
  skip_without_agent()
  server <- http_server(list(headers = protobuf()))
  code <- c("library(profile)", script_work, sprintf("start_agent('%s', every = 100)", server$url), "work_until_taken()")
  agent_script(c(code, "quit('no', status = 3)"), status = 3L)
  # There are more parts if the process was stopped for some seconds meanwhile. If the forwarder does not start in time,
  # it sends them nevertheless.
  expect_true(wait_for(function() samples_of(lapply(server$requests(), profile_of_request)) >= 20))

  folder <- withr::local_tempdir()
  code[length(code) - 1:0] <- c(
    sprintf("start_agent('%s', every = 0.02)", folder), "work_until(function() agent_status()$chunks_sent > 3)"
  )
  agent_script(c(code, "tools::pskill(Sys.getpid(), tools::SIGKILL)"), status = 137L)
  # An incomplete file has another name.
  names <- dir(folder, "[.]pb[.]gz$", full.names = TRUE)
  expect_gt(length(names), 3)
  for (name in names) expect_gt(nrow(read_pprof(name)$samples), 0)
})

test_that("the package can be unloaded and loaded again", {
  skip_without_agent()
  folder <- withr::local_tempdir()
  out <- agent_script(c(
    "threads <- function() sum(grepl('^profile', vapply(dir('/proc/self/task', full.names = TRUE), function(t) readLines(file.path(t, 'comm')), '')))",
    "before <- threads()", script_work,
    "for (i in 1:3) {",
    sprintf("  profile::start_agent('%s', every = 100)", folder),
    "  work_until_taken(5)",
    "  unloadNamespace('profile')",
    "  invisible(gc())",
    "}",
    "cat(threads() - before, is.null(getLoadedDLLs()[['profile']]), '\n')",
    # The thread has ended, and none of its code is called when R quits.
    "for (i in 1:10) f()"
  ))
  expect_identical(trimws(utils::tail(out, 1)), "0 TRUE")
  expect_gte(length(dir(folder)), 3)
})

test_that("garbage collections at every allocation change nothing", {
  got <- list()
  local_agent(function(x) got[[length(got) + 1]] <<- x, interval = 0.001)
  work_until_taken(1)
  gctorture(TRUE)
  for (i in 1:5) busy_loop(10)
  gctorture(FALSE)
  status <- stop_agent()
  expect_complete(status)
  expect_identical(samples_of(got), status$sent)
})
