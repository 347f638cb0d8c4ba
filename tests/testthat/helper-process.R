# R processes that tests look into.

skip_without_processes <- function() {
  testthat::skip_on_cran()
  if (!grepl("^x86_64-.*linux-gnu$", R.version$platform)) {
    testthat::skip("other processes can be looked into on Linux on x86-64 with glibc only")
  }
}

# The code of a file in processes/.
process_code <- function(name) readLines(testthat::test_path("processes", name))

# Starts a process that runs code, and returns its id when the code has called `ready()`. It ends with the
# test.
local_r_process <- function(code, limits = "true", envir = parent.frame()) {
  dir <- withr::local_tempdir(.local_envir = envir)
  at <- function(name) file.path(dir, name)
  writeLines(c(
    "ready <- function() {",
    sprintf("  writeLines(as.character(Sys.getpid()), '%s')", at("new")),
    sprintf("  invisible(file.rename('%s', '%s'))", at("new"), at("pid")),
    "}"
  ), at("ready.R"))
  writeLines(code, at("code.R"))
  expression <- sprintf("source('%s'); source('%s', keep.source = TRUE)", at("ready.R"), at("code.R"))
  command <- sprintf(
    "%s; exec %s %s -e %s > %s 2>&1", limits, with_ctrl_c(), shQuote(file.path(R.home("bin"), "Rscript")),
    shQuote(expression), shQuote(at("output"))
  )
  system2("sh", c("-c", shQuote(command)), wait = FALSE)
  pid <- NULL
  for (i in 1:600) {
    if (file.exists(at("pid"))) {
      pid <- as.integer(readLines(at("pid")))
      break
    }
    Sys.sleep(0.05)
  }
  if (is.null(pid)) {
    stop("The process did not start: ", paste(readLines(at("output")), collapse = "\n"))
  }
  withr::defer(tools::pskill(pid, tools::SIGKILL), envir)
  pid
}

# Shells start programs in the background with SIGINT ignored, which R from 4.6 on leaves so.
with_ctrl_c <- function() {
  has_option <- suppressWarnings(system2("env", c("--default-signal=INT", "true"), stdout = FALSE, stderr = FALSE)) == 0
  if (has_option) "env --default-signal=INT" else ""
}

# The process id that a shell writes to a file.
pid_in <- function(path) {
  for (i in 1:100) {
    Sys.sleep(0.05)
    if (file.exists(path) && length(readLines(path)) == 1) break
  }
  as.integer(readLines(path))
}

# Waits until a process has this state.
wait_for_state <- function(pid, state) {
  for (i in 1:200) {
    if (identical(attr(dump_stack(pid), "state"), state)) {
      return(TRUE)
    }
    Sys.sleep(0.02)
  }
  FALSE
}

# The CPU time of a process in nanoseconds, by the kernel.
kernel_cpu_time <- function(pid) {
  as.numeric(strsplit(readLines(sprintf("/proc/%d/task/%d/schedstat", pid, pid)), " ")[[1]][[1]])
}
