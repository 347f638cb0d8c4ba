#!/usr/bin/env Rscript
# Compares profile_check() with what R CMD check and testthat say about the time of the same package, and measures what
# it costs.
#
# usage: bench/check/run.R [OPTIONS] PACKAGE...
#
# PACKAGE is a folder with the source of a package, whose dependencies are installed, OPTIONS are those of R CMD check.
# In the same run, the check itself says how long examples (PKG-Ex.timings, by `--timings`) and steps (00check.log, by
# _R_CHECK_TIMINGS_=0) took. The tests are run again with testthat's list reporter, and the check again without
# recording. Linux only. Nothing passes or fails.

suppressPackageStartupMessages(library(profile))

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[[1]])
source(file.path(dirname(dirname(normalizePath(script))), "measure.R"))
benchmark <- "check"
options(warn = 1)
packages <- normalizePath(arguments)
Sys.setenv(`_R_CHECK_TIMINGS_` = "0")
# Suggested packages may be missing.
Sys.setenv(`_R_CHECK_FORCE_SUGGESTS_` = "false")
Sys.unsetenv("R_TESTS")

cpu_of_children <- function() sum(proc.time()[c("user.child", "sys.child")])

# The seconds in a line of the log such as `* checking examples ... [2s/3s] OK`, NA if there are none.
seconds_in_log <- function(log, step) {
  # The figures may be in the line that follows.
  lines <- grep(step, log, fixed = TRUE)
  found <- unlist(lapply(lines, function(line) {
    text <- paste(log[line:min(line + 1, length(log))], collapse = " ")
    if (grepl("\\[[0-9.]+[sm]/[0-9.]+[sm]\\]", text)) {
      text <- sub("^.*?\\[[0-9.]+[sm]/([0-9.]+[sm])\\].*$", "\\1", text, perl = TRUE)
      as.numeric(sub("[sm]$", "", text)) * if (endsWith(text, "m")) 60 else 1
    }
  }))
  if (length(found) > 0) sum(found) else NA
}

for (package in packages) {
  work <- file.path(scratch, basename(package))
  dir.create(work)
  setwd(work)
  name <- subject <- basename(package)
  cat("\n", name, "\n", sep = "")
  options <- c("--no-manual", "--timings", setdiff(grep("^--", commandArgs(TRUE), value = TRUE), "--small"))
  cpu <- cpu_of_children()
  own_cpu <- sum(proc.time()[1:2])
  began <- Sys.time()
  x <- profile_check(package, args = options, quiet = TRUE)
  elapsed <- as.numeric(difftime(Sys.time(), began, units = "secs"))
  recorded_cpu <- cpu_of_children() - cpu
  # The helper is not waited for, so its CPU time is in neither.
  own_cpu <- sum(proc.time()[1:2]) - own_cpu
  report("load when the check ended", as.numeric(load_now()))
  report("exit status of the check", x$status)
  report("whole by profile_check()", x$time, "s", n = 1)
  report("whole by the clock, with starting the helper and the tables", elapsed, "s", n = 1)
  report("parts and between, share of the whole", 100 * sum(x$parts$time) / x$time, "%", n = 1)
  for (i in seq_len(nrow(x$parts))) report(paste("part", x$parts$part[[i]]), x$parts$time[[i]], "s", n = 1)
  report("processes", sum(x$parts$processes))
  report("samples", nrow(x$profile$samples))

  # Steps by the log of the same check.
  log <- readLines(file.path(x$folder, "00check.log"), warn = FALSE)
  of <- function(steps) sum(x$steps$time[steps])
  pairs <- list(
    "installation" = c(of(x$steps$part == "install"), seconds_in_log(log, "checking whether package")),
    "run of all examples" = c(of(endsWith(x$steps$name, "-Ex.R")), seconds_in_log(log, "checking examples ...")),
    "run of all tests" = c(
      of(x$steps$part == "tests" & !startsWith(x$steps$name, "tools:")), seconds_in_log(log, "Running")
    ),
    "vignettes built again" = c(of(grepl("built again", x$steps$name)), seconds_in_log(log, "checking re-building"))
  )
  for (pair in names(pairs)) {
    report(paste0(pair, ", profile_check()"), pairs[[pair]][[1]], "s", n = 1)
    report(paste0(pair, ", 00check.log"), pairs[[pair]][[2]], "s", n = 1)
  }

  # Examples by R's own figures of the same run.
  file <- list.files(x$folder, "-Ex[.]timings$", full.names = TRUE)
  if (length(file) > 0) {
    # Lines end with a tab, except for the first one.
    timings <- do.call(rbind, strsplit(readLines(file[[1]])[-1], "\t", fixed = TRUE))
    examples <- x$items[x$items$kind == "example", ]
    seconds <- as.numeric(timings[match(examples$name, timings[, 1]), 4])
    differences <- abs(examples$time - seconds)
    report("examples", nrow(examples))
    report("examples without a figure of R", sum(is.na(seconds)))
    report("difference of one example from R's figure, median", median(differences, na.rm = TRUE), "s", sum(!is.na(seconds)))
    report("... largest", max(differences, na.rm = TRUE), "s", sum(!is.na(seconds)))
  }

  # Tests by testthat, in another run with the same installed package.
  folder <- file.path(x$folder, "tests", "testthat")
  if (dir.exists(folder) && requireNamespace("testthat", quietly = TRUE)) {
    code <- c(
      sprintf("library(%s, lib.loc = %s)", name, deparse(x$folder)), "library(testthat)", "Sys.setenv(NOT_CRAN = '')",
      sprintf("r <- test_dir(%s, package = '%s', reporter = 'list', stop_on_failure = FALSE,", deparse(folder), name),
      "  load_package = 'installed')",
      "d <- as.data.frame(r)", "saveRDS(d[c('file', 'test', 'real')], 'tests.rds')"
    )
    writeLines(code, "tests.R")
    system2(file.path(R.home("bin"), "Rscript"), "tests.R", stdout = FALSE, stderr = FALSE)
    if (file.exists("tests.rds")) {
      theirs <- readRDS("tests.rds")
      theirs <- stats::aggregate(real ~ file + test, theirs, sum)
      theirs$name <- paste0(theirs$test, " (", basename(theirs$file), ")")
      ours <- x$items[x$items$kind == "test", ]
      slowest <- utils::head(theirs$name[order(-theirs$real)], 10)
      report("tests, testthat", nrow(theirs))
      report("tests, profile_check() (of those without a sample, nothing is known)", nrow(ours))
      report("sum of tests, testthat", sum(theirs$real), "s", n = 1)
      report("sum of tests, profile_check()", sum(ours$time), "s", n = 1)
      report("of testthat's slowest ten, in our slowest ten", sum(slowest %in% utils::head(ours$name, 10)))
      report("... in our slowest twenty", sum(slowest %in% utils::head(ours$name, 20)))
    }
  }

  # The same without recording.
  cpu <- cpu_of_children()
  dir.create("plain")
  plain <- system.time({
    system2(file.path(R.home("bin"), "R"), c("CMD", "build", "--no-manual", shQuote(package)), stdout = FALSE, stderr = FALSE)
    built <- list.files(pattern = "[.]tar[.]gz$")
    system2(file.path(R.home("bin"), "R"), c("CMD", "check", options, "-o", "plain", built), stdout = FALSE, stderr = FALSE)
  })[["elapsed"]]
  report("whole without recording", plain, "s", n = 1)
  report("CPU time of all processes, without recording", cpu_of_children() - cpu, "s", n = 1)
  report("... with recording", recorded_cpu, "s", n = 1)
  report("... of this process, which watches and makes the tables", own_cpu, "s", n = 1)
  print(x)
}
