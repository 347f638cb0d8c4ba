#!/usr/bin/env Rscript
# Runs the programs of public reports about memory in programs.R, each in a fresh R process, and prints what this
# package answers.
#
# usage: bench/reports/run.R [NAME]
#
# NAME is a function of programs.R; without it, all run, in about a minute. Linux only. Nothing passes or fails.

options(keep.source = TRUE, width = 120)
.script <- normalizePath(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[[1]]))

# Starts an R process with these lines, in which `ready()` says that it can be asked. Returns its id; the attribute
# `words` is what `ready()` was called with.
start_script <- function(...) {
  folder <- tempfile()
  dir.create(folder)
  file <- file.path(folder, "ready")
  ready <- sprintf(
    "ready <- function(...) { cat(Sys.getpid(), ..., file = '%s.new'); file.rename('%s.new', '%s') }", file, file, file
  )
  writeLines(c(ready, ...), file.path(folder, "service.R"))
  system2(file.path(R.home("bin"), "Rscript"), shQuote(file.path(folder, "service.R")), wait = FALSE, stdout = FALSE)
  wait_until(function() file.exists(file))
  words <- strsplit(readLines(file, warn = FALSE), " ")[[1]]
  pid <- as.integer(words[[1]])
  reg.finalizer(globalenv(), function(environment) tools::pskill(pid), onexit = TRUE)
  structure(pid, words = words[-1])
}

wait_until <- function(condition) {
  for (i in 1:600) {
    if (condition()) {
      return(invisible())
    }
    Sys.sleep(0.05)
  }
  stop("The process has not started.")
}

# Programs without packages that they need are not run.
.packages <- list(
  rows_as_json = "jsonlite", last_answer = c("plumber", "httr"), native_library = "xml2", many_tables = "data.table",
  plot_of_matrix = "ggplot2", observer = "shiny", worker_garbage = "future"
)

.code <- new.env()
sys.source(file.path(dirname(.script), "programs.R"), .code, keep.source = TRUE)
if (length(commandArgs(TRUE)) == 1) {
  .name <- commandArgs(TRUE)
  .missing <- Filter(function(package) !requireNamespace(package, quietly = TRUE), .packages[[.name]])
  cat("\n---- ", .name, "\n\n", sep = "")
  if (length(.missing) > 0) {
    cat("not installed: ", paste(.missing, collapse = ", "), "\n", sep = "")
  } else {
    suppressPackageStartupMessages(library(profile))
    # Its variables are those of the global environment, as in the session of somebody who asks.
    eval(body(.code[[.name]]), globalenv())
  }
} else {
  .names <- names(sort(vapply(as.list(.code), function(f) attr(f, "srcref")[[1]], 0L)))
  for (.name in .names) system2(file.path(R.home("bin"), "Rscript"), shQuote(c(.script, .name)))
}
