# What bench/run and bench/pprof share: how time and memory are measured and shown.

scratch <- tempfile("bench")
dir.create(scratch)

# Medians of tasks that take turns, so that a slow moment of the machine hits all.
# Writers get a new file each time: to replace one makes some file systems wait
# for the disk, and that is not what we measure.
time_tasks <- function(tasks, n) {
  take_turns(lapply(tasks, timed), n)
}

# The same for tasks that tell their seconds themselves.
take_turns <- function(tasks, n) {
  seconds <- vapply(
    seq_len(n),
    function(i) {
      vapply(tasks, function(task) {
        fresh <- tempfile(tmpdir = scratch)
        gc(FALSE)
        time <- task(fresh)
        unlink(fresh)
        time
      }, 0)
    },
    numeric(length(tasks))
  )
  apply(matrix(seconds, length(tasks), dimnames = list(names(tasks))), 1, stats::median)
}

timed <- function(task) {
  function(fresh) {
    # system.time() tells milliseconds only.
    start <- Sys.time()
    task(fresh)
    as.numeric(Sys.time() - start, units = "secs")
  }
}

# What a process of its own needs at its peak for an expression in `path`, beyond what
# was in use before, and the size of what it gave. In MB; Linux only.
peak_memory <- function(path, expression, before = "NULL") {
  if (!file.exists("/proc/self/clear_refs")) {
    return(c(peak = NA, result = NA))
  }
  code <- c(
    "library(profile)",
    "path <- commandArgs(TRUE)",
    before,
    "memory <- function(what) {",
    "  line <- grep(what, readLines('/proc/self/status'), value = TRUE)",
    "  as.numeric(gsub('[^0-9]', '', line)) * 1024",
    "}",
    # Sets the peak so far to what is in use now.
    "writeLines('5', '/proc/self/clear_refs')",
    "before <- memory('VmHWM')",
    sprintf("x <- suppressWarnings(%s)", expression),
    "after <- memory('VmHWM')",
    "cat(after - before, object.size(x))"
  )
  child <- file.path(scratch, "peak.R")
  writeLines(code, child)
  rscript <- file.path(R.home("bin"), "Rscript")
  output <- system2(rscript, c(child, shQuote(path)), stdout = TRUE)
  bytes <- as.numeric(strsplit(output[[length(output)]], " ")[[1]])
  c(peak = bytes[[1]], result = bytes[[2]]) / 1e6
}

row <- function(what, value, unit, ratio = NA, to = "", target = NA) {
  cat(sprintf(
    "  %-36s %8s %-2s  %6s  %-31s %s\n", what, value, unit,
    if (is.na(ratio)) "" else sprintf("%.2f", ratio),
    if (is.na(ratio)) "" else paste("x", to),
    if (is.na(target)) "" else paste("target: at most", target)
  ))
}
