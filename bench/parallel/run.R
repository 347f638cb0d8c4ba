#!/usr/bin/env Rscript
# How near the bill of parallel work is to what programs note themselves: see bench/README.md.

suppressPackageStartupMessages(library(profile))
here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)))
source(file.path(here, "..", "measure.R"))
benchmark <- "parallel"

# What each slot did in each millisecond, by the notes: the rules of the bill, without what the notes do not say.
truth_of <- function(folder, workers) {
  notes <- do.call(rbind, lapply(list.files(folder, full.names = TRUE), utils::read.table))
  names(notes) <- c("pid", "what", "begin", "end", "cpu")
  whole <- notes[notes$what == "all", ]
  times <- seq(whole$begin, whole$end, by = 0.001)
  is_in <- function(rows) {
    found <- logical(length(times))
    for (row in rows) found <- found | times >= notes$begin[row] & times < notes$end[row]
    found
  }
  tasks <- which(notes$what == "task")
  # Forks of one slot follow each other, so that only their number matters.
  busy <- Reduce(`+`, lapply(split(tasks, notes$pid[tasks]), is_in), 0)
  free <- workers - busy
  starting <- is_in(which(notes$what == "starting"))
  serial <- is_in(which(notes$what == "serial")) & !starting
  seconds <- whole$end - whole$begin
  share <- function(slots) 100 * sum(slots) / length(times) / workers
  with_rest(c(
    busy = share(busy), work = 100 * sum(notes$cpu[tasks]) / seconds / workers, starting = share(free * starting),
    serial = share(free * serial), seconds = seconds
  ))
}
# What neither is a task nor has a phase of its own: transfers, and waiting for other workers.
with_rest <- function(x) c(x, rest = 100 - sum(x[c("busy", "starting", "serial")]))

measure_program <- function(kind, how, workers) {
  folder <- file.path(scratch, paste(c("notes", kind, how, workers, sample(1e9, 1)), collapse = "-"))
  dir.create(folder)
  about <- list(kind = kind, how = how, workers = workers, folder = folder)
  list2env(about, globalenv())
  sys.source(file.path(here, "program.R"), globalenv())
  x <- withCallingHandlers(record_profile(run_program(), children = TRUE), warning = function(warning) {
    message(conditionMessage(warning))
    tryInvokeRestart("muffleWarning")
  })
  bill <- as.list(describe_profile(x))$parallel
  share <- 100 * stats::setNames(bill$classes$share, bill$classes$class)
  found <- with_rest(c(
    busy = sum(share[c("work", "processor", "task_waits")]), share[c("work", "starting", "serial")],
    seconds = bill$seconds
  ))
  # The program cannot note when the master forks.
  if (how == "forks") found[c("starting", "rest")] <- c(0, found[["rest"]] + found[["starting"]])
  list(found = found, truth = truth_of(folder, workers), parts = share[c("transfer", "others", "master_waits")])
}

rounds <- if (length(arguments) > 0) as.integer(arguments[[1]]) else if (small) 1L else 3L
kinds <- c("even", "slow", "data", "start", "serial")
ways <- c("psock", "forks", if (requireNamespace("future", quietly = TRUE)) "future")
counts <- if (small) 2L else c(2L, 4L)
cells <- expand.grid(kind = kinds, how = ways, workers = counts, stringsAsFactors = FALSE)
# Only workers of a cluster can start slowly.
cells <- cells[cells$kind != "start" | cells$how == "psock", ]

cat("Shares in percent, by the bill (by the program's notes), medians of ", rounds, "; load ", load_now(), "\n", sep = "")
all <- c()
for (row in seq_len(nrow(cells))) {
  cell <- cells[row, ]
  runs <- lapply(seq_len(rounds), function(round) measure_program(cell$kind, cell$how, cell$workers))
  median_of <- function(part) apply(vapply(runs, `[[`, runs[[1]][[part]], part), 1, stats::median)
  found <- median_of("found")
  truth <- median_of("truth")
  parts <- median_of("parts")
  classes <- c("busy", "work", "starting", "serial", "rest")
  difference <- vapply(runs, function(run) max(abs(run$found - run$truth)[classes]), 0)
  all <- c(all, difference)
  cat(sprintf(
    "| %s, %s, %d | %s | %s | %.1f | %.1f |\n", cell$kind, cell$how, cell$workers,
    paste(sprintf("%.1f (%.1f)", found[classes], truth[classes]), collapse = " | "),
    paste(sprintf("%.1f", parts), collapse = " + "), truth[["seconds"]], stats::median(difference)
  ))
  subject <- paste(cell$kind, cell$how, cell$workers)
  record("largest difference of a class", stats::median(difference), "points", rounds, extremes(difference))
}
subject <- ""
report("largest difference of a class, all programs", max(all), "points", length(all), quartiles(all))
