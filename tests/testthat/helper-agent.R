# Helpers for tests of the agent: code that is recorded, and checks of the profiles that arrived.

skip_without_agent <- function() {
  skip_without_processes()
  if (getRversion() < "4.2") testthat::skip("the agent needs R 4.2")
}

skip_without_rprof_agent <- function() {
  testthat::skip_on_cran()
  testthat::skip_on_os(c("windows", "mac", "solaris"))
  if (getRversion() < "4.3") testthat::skip("Rprof() as the source of the agent needs R 4.3")
}

# Computes until a condition is true. The limit applies if it never becomes true. This function and `busy_loop()` are
# compiled, since samples would otherwise contain R's compiler.
work_until <- compiler::cmpfun(function(condition, seconds = 300) {
  end <- Sys.time() + seconds
  while (!condition()) {
    if (Sys.time() > end) {
      stop("It has not happened: ", deparse1(body(condition)), "\n", paste(format(agent_status()), collapse = "\n"), call. = FALSE)
    }
    for (i in 1:10) busy_loop(1e4)
  }
})
busy_loop <- compiler::cmpfun(function(n) {
  x <- 0
  for (i in seq_len(n)) x <- x + sqrt(i)
  x
})

# Computes until the agent has taken this number of samples since its start.
work_until_taken <- function(n = 20) work_until(function() agent_status()$taken >= n)

# Stops the agent at the end of the test. It has its own spool, and so its own forwarder. The time limit for requests is
# long enough that none is late.
local_agent <- function(to, ..., every = 0.05, timeout = 300, spool = local_spool(envir), envir = parent.frame()) {
  if (identical(list(...)$method, "rprof")) skip_without_rprof_agent() else skip_without_agent()
  start_agent(to, ..., every = every, timeout = timeout, spool = spool)
  withr::defer(if (agent_status()$state %in% c("running", "paused", "failed")) stop_agent(0), envir = envir)
}

# Stops the agent when the queue is empty.
stop_when_sent <- function() {
  status <- stop_agent(300)
  expect_complete(status)
  testthat::expect_identical(status$sent, status$taken)
  status
}

# Expects that the counts add up: each sample was sent, is queued or in the open part, or was dropped.
expect_complete <- function(status) {
  testthat::expect_s3_class(status, "profile_agent_status")
  testthat::expect_identical(status$sent + status$queued + status$open + status$dropped, status$taken + status$found)
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

# Code for scripts that compute until a condition is true.
script_work <- c(
  "f <- function() { x <- 0; for (i in 1:1e5) x <- x + i; x }",
  "work_until <- function(condition) {",
  "  end <- Sys.time() + 250",
  "  while (!condition()) {",
  "    if (Sys.time() > end) stop('It has not happened: ', deparse1(body(condition)))",
  "    f()",
  "  }",
  "}",
  "work_until_taken <- function(n = 20) work_until(function() profile::agent_status()$taken >= n)"
)

# Whether a function is in a sample.
has_seen <- function(profiles, name) {
  any(vapply(profiles, function(x) name %in% x$functions$name, NA))
}

# Expects that all samples in which `busy_loop()` runs contain its callers in order.
expect_legal <- function(profiles) {
  for (x in profiles) testthat::expect_no_error(validate_profile(x))
  all <- unlist(lapply(profiles, stacks))
  busy <- all[grepl("busy_loop", all, fixed = TRUE)]
  testthat::expect_match(busy, "^([^<]* < )?busy_loop < work_until( < |$)")
}

# Runs code in a new R process and returns its output. The program `timeout` ends it, since R's own limit may wait
# forever for a process whose end the thread of the package later has already noticed.
agent_script <- function(code, environment = character(), status = 0L, spool = local_spool(parent.frame())) {
  environment <- c(R_PROFILE_AGENT_SPOOL = spool, environment)
  path <- withr::local_tempfile(fileext = ".R")
  writeLines(code, path)
  out <- withr::local_tempfile()
  # R must not read the script from the file itself: forked processes share the position in the file, so a fork that
  # quits would reset it, and R would run some lines again.
  run <- c("300", shQuote(file.path(R.home("bin"), "Rscript")), "-e", shQuote(sprintf("source(%s)", deparse(path))))
  result <- withr::with_envvar(environment, system2("timeout", run, stdout = out, stderr = out))
  testthat::expect_identical(result, status, info = paste(readLines(out), collapse = "\n"))
  readLines(out, warn = FALSE)
}

# Code of a script to save `status`. The file gets its final name when it is complete.
save_status <- function(path) sprintf("saveRDS(status, '%1$s.new'); invisible(file.rename('%1$s.new', '%1$s'))", path)

# ---- The forwarder -----------------------------------------------------------

# A folder for spools. At the end of the test, forwarders whose spools are in it are killed.
local_spool <- function(envir = parent.frame()) {
  base <- normalizePath(withr::local_tempdir(.local_envir = envir))
  Sys.chmod(base, "700")
  withr::defer(tools::pskill(forwarders(base), tools::SIGKILL), envir)
  base
}

# The forwarders (see R/forwarder.R) whose spools are in this folder.
forwarders <- function(base) {
  is_forwarder <- function(pid) {
    bytes <- tryCatch(
      suppressWarnings(readBin(file.path("/proc", pid, "cmdline"), "raw", 4096)),
      error = function(error) raw()
    )
    words <- rawToChar(replace(bytes, bytes == 0, charToRaw(" ")))
    # A forwarder is first a shell, and then R.
    grepl("run_forwarder", words, fixed = TRUE, useBytes = TRUE) && grepl(base, words, fixed = TRUE, useBytes = TRUE) &&
      basename(Sys.readlink(file.path("/proc", pid, "exe"))) == "R"
  }
  pids <- grep("^[0-9]+$", dir("/proc"), value = TRUE)
  as.integer(Filter(is_forwarder, pids))
}

# Kills the forwarders, and waits until they have ended: a process has locks for a moment after it has lost its command.
kill_forwarders <- function(base) {
  pids <- forwarders(base)
  tools::pskill(pids, tools::SIGKILL)
  testthat::expect_true(wait_for(function() all(vapply(pids, has_ended, NA))))
}

# Waits until there is one forwarder, and returns it. On a slow machine, an agent may start a second one before the first
# one has its lock; the one without a lock ends.
the_only_forwarder <- function(base) {
  testthat::expect_true(wait_for(function() length(forwarders(base)) == 1))
  forwarders(base)
}

# The folders of the spools, and their chunks.
spools <- function(base) dir(base, "^[0-9a-f]{16}$", full.names = TRUE)
chunks_in <- function(base) dir(spools(base), "[.](otlp[.]gz|sending)$", full.names = TRUE)

# The number of samples in chunks, by their names.
samples_in <- function(chunks) sum(as.numeric(sub(".*-([0-9]+)[.].*", "\\1", chunks)))

# Expects that neither a forwarder nor a spool remains.
expect_no_spool <- function(base) {
  testthat::expect_true(wait_for(function() length(forwarders(base)) == 0))
  testthat::expect_true(wait_for(function() length(spools(base)) == 0))
}
