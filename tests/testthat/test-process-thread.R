# tier: gate
# R in a thread other than the first one of its process, as in programs that embed R. The first thread only waits. Rust
# tests check how the thread is found (src/rust/reader/src/process/linux/thread/runner/tests.rs), and that R is followed
# from one thread to another (src/rust/reader/tests/reader/session.rs).

computing_code <- c(
  "f <- function() {",
  "  ready()",
  "  repeat {",
  "    runif(1e4)",
  "  }",
  "}",
  "f()"
)

test_that("R that computes in another thread is seen, stopped and recorded", {
  skip_without_processes()
  pid <- local_r_process(computing_code, host = threaded_host())
  expect_gt(length(dir(sprintf("/proc/%d/task", pid))), 1)
  expect_true(wait_for(function() {
    x <- dump_stack(pid)
    "f" %in% x$name && attr(x, "state") == "running"
  }))
  for (pause in c(TRUE, FALSE)) {
    x <- profile_until(pid, pause = pause)
    expect_true("f" %in% x$functions$name)
    expect_setequal(x$.labels$str[x$.labels$key == "state"], "running")
    expect_cpu_times(x)
  }
  expect_true(wait_for(function() {
    all <- list_r_processes()
    identical(all$state[all$pid == pid], "running") && all$cpu_time[all$pid == pid] > 0
  }))
})

test_that("native code that R calls in another thread is recorded", {
  skip_without_processes()
  pid <- local_r_process(computing_code, host = threaded_host())
  x <- profile_until(pid, function(x) "Rf_runif" %in% x$functions$name, native = TRUE)
  called <- Filter(function(names) "Rf_runif" %in% names, functions_of_samples(x))
  expect_true(all(vapply(called, function(names) "f" %in% names, NA)))
})

test_that("R that waits in another thread is in its own system call", {
  skip_without_processes()
  pid <- local_r_process(sleeping_code, host = threaded_host())
  x <- wait_for_stack(pid, sleeping_stack)
  # The first thread waits for the other one, with futex().
  expect_match(attr(x, "system_call"), "select|poll|nanosleep")
  expect_identical(x$line[x$name == "nap"], 3L)
  x <- profile_until(pid, clock = "wall")
  expect_setequal(x$.labels$str[x$.labels$key == "state"], "sleeping")
})

test_that("the heap of R in another thread is read from outside and from inside", {
  skip_without_snapshots()
  file <- withr::local_tempfile()
  pid <- local_r_process(with_package(
    "kept <- numeric(1e6)",
    sprintf("saveRDS(snapshot_memory(), '%s')", file),
    computing_code
  ), host = threaded_host())
  for (x in list(snapshot_memory(pid), readRDS(file))) {
    paths <- paths_in(x)
    expect_gte(sum(paths$bytes[grepl("kept", paths$path)]), 8e6)
  }
})

test_that("R that computes in another thread records itself", {
  skip_without_agent()
  dir <- withr::local_tempdir()
  dir.create(file.path(dir, "profiles"))
  local_r_process(with_package(
    "f <- function(is_done) {",
    "  while (!is_done()) runif(1e4)",
    "}",
    sprintf("start_agent('%s', every = 0.05)", file.path(dir, "profiles")),
    "f(function() agent_status()$sent > 0)",
    "stop_agent()",
    "repeat {",
    "  left <- 1e3",
    "  x <- record_profile(f(function() (left <<- left - 1) == 0), native = TRUE)",
    "  if ('Rf_runif' %in% x$functions$name) break",
    "}",
    sprintf("saveRDS(x, '%s')", file.path(dir, "recorded")),
    "ready()"
  ), host = threaded_host())
  agent <- combine_profiles(lapply(dir(file.path(dir, "profiles"), full.names = TRUE), read_profile))
  recorded <- readRDS(file.path(dir, "recorded"))
  for (x in list(agent, recorded)) {
    expect_identical(validate_profile(x), x)
    expect_true("f" %in% x$functions$name)
  }
  expect_setequal(agent$.labels$str[agent$.labels$key == "state"], "running")
})
