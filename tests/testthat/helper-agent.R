# Tests of the agent: work to record, and what arrived.

skip_without_agent <- function() {
  skip_without_processes()
  if (getRversion() < "4.2") testthat::skip("the agent needs R 4.2")
}

skip_without_rprof_agent <- function() {
  testthat::skip_on_cran()
  testthat::skip_on_os(c("windows", "mac", "solaris"))
  if (getRversion() < "4.3") testthat::skip("Rprof() as the source of the agent needs R 4.3")
}

# Uses so many seconds of CPU time, which takes longer on a busy machine.
busy <- function(seconds) {
  end <- proc.time()[[1]] + seconds
  while (proc.time()[[1]] < end) busy_loop(1e4)
}
busy_loop <- function(n) {
  x <- 0
  for (i in seq_len(n)) x <- x + sqrt(i)
  x
}

# The environment of the user is no part of tests, and no agent outlives a test.
local_agent <- function(to, ..., every = 0.2, envir = parent.frame()) {
  if (identical(list(...)$source, "rprof")) skip_without_rprof_agent() else skip_without_agent()
  start_agent(to, ..., every = every)
  withr::defer(if (agent_status()$state %in% c("running", "paused", "failed")) stop_agent(0), envir = envir)
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
  # If R itself read the file, a forked process that quits would set it back to the line that it was at, since both
  # have one position in it, and R would run the lines behind that again.
  run <- c("-e", shQuote(sprintf("source(%s)", deparse(path))))
  result <- withr::with_envvar(environment, {
    system2(file.path(R.home("bin"), "Rscript"), run, stdout = out, stderr = out, timeout = 120)
  })
  testthat::expect_identical(result, status, info = paste(readLines(out), collapse = "\n"))
  readLines(out, warn = FALSE)
}

# ---- HTTPS -------------------------------------------------------------------

# A folder for temporary files of other processes, so that they share a helper with nobody else.
local_relay_base <- function(envir = parent.frame()) {
  base <- normalizePath(withr::local_tempdir(.local_envir = envir))
  withr::local_envvar(TMPDIR = base, .local_envir = envir)
  withr::defer(tools::pskill(relay_helpers(base), tools::SIGKILL), envir)
  base
}

# The helpers of agents, see R/relay.R, whose folders are in this one.
relay_helpers <- function(base) {
  is_helper <- function(pid) {
    bytes <- tryCatch(
      suppressWarnings(readBin(file.path("/proc", pid, "cmdline"), "raw", 4096)),
      error = function(error) raw()
    )
    words <- rawToChar(replace(bytes, bytes == 0, charToRaw(" ")))
    # Before it is R, it is a shell.
    grepl("run_relay", words, fixed = TRUE) && grepl(base, words, fixed = TRUE) &&
      basename(Sys.readlink(file.path("/proc", pid, "exe"))) == "R"
  }
  pids <- grep("^[0-9]+$", dir("/proc"), value = TRUE)
  as.integer(Filter(is_helper, pids))
}

relay_folders <- function(base) dir(base, "^profile-relay-", full.names = TRUE)

# Neither a helper nor its folder remains.
expect_no_relay <- function(bases) {
  testthat::expect_true(wait_for(function() length(unlist(lapply(bases, relay_helpers))) == 0, 40))
  testthat::expect_true(wait_for(function() length(unlist(lapply(bases, relay_folders))) == 0))
}
