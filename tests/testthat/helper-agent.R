# Tests of the agent: work to record, and what arrived.

skip_without_agent <- function() {
  skip_without_processes()
  if (getRversion() < "4.2") testthat::skip("the agent needs R 4.2")
}

# Uses CPU time for so many seconds.
busy <- function(seconds) {
  end <- proc.time()[["elapsed"]] + seconds
  while (proc.time()[["elapsed"]] < end) busy_loop(1e4)
}
busy_loop <- function(n) {
  x <- 0
  for (i in seq_len(n)) x <- x + sqrt(i)
  x
}

# The environment of the user is no part of tests, and no agent outlives a test.
local_agent <- function(to, ..., every = 0.2, envir = parent.frame()) {
  skip_without_agent()
  start_agent(to, ..., every = every)
  withr::defer(if (agent_status()$state %in% c("running", "failed")) stop_agent(0), envir = envir)
}

# Each sample is somewhere.
expect_complete <- function(status) {
  testthat::expect_s3_class(status, "profile_agent_status")
  testthat::expect_identical(status$sent + status$queued + status$open + status$dropped, status$taken)
  testthat::expect_identical(status$dropped_full + status$dropped_refused + status$dropped_lost, status$dropped)
}

# The profile that a request contains.
profile_of_request <- function(request) {
  path <- withr::local_tempfile(fileext = ".pb.gz")
  writeBin(request$body, path)
  read_otlp(path)
}
samples_of <- function(profiles) {
  as.numeric(sum(vapply(profiles, function(x) nrow(x$samples), 0L)))
}
agent_values <- function(profiles, type) {
  sum(vapply(profiles, function(x) sum(x$sample_values$value[x$sample_values$type == type]), 0)) / 1e9
}

# Runs code in a new R process and returns its output.
agent_script <- function(code, environment = character(), wait = TRUE, status = 0L) {
  path <- withr::local_tempfile(fileext = ".R")
  writeLines(code, path)
  out <- withr::local_tempfile()
  result <- withr::with_envvar(environment, {
    system2(file.path(R.home("bin"), "Rscript"), shQuote(path), stdout = out, stderr = out, timeout = 120)
  })
  testthat::expect_identical(result, status, info = paste(readLines(out), collapse = "\n"))
  readLines(out, warn = FALSE)
}
