#!/usr/bin/env Rscript
# Compares record_profile(children = TRUE) of parallel work with what the workers know about themselves, and measures
# what it costs.
#
# usage: bench/children/run.R [--small] [SECONDS] [ROUNDS]
#
# SECONDS (4) is the CPU time of a worker that computes all the time, ROUNDS (5) how often each recording is repeated.
# It takes about ten minutes, and two with `--small`. The truth is the CPU time of R's thread by the kernel, which each
# worker reads before and after its own function, `f_1()` to `f_6()`, and for shares of functions the number of their
# iterations, with `Rprof()` in the same worker as a witness. Linux only. Nothing passes or fails.

suppressPackageStartupMessages(library(profile))

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[[1]])
source(file.path(dirname(dirname(normalizePath(script))), "measure.R"))
benchmark <- "children"
options(warn = 1)
arguments <- as.numeric(arguments)
seconds <- if (length(arguments) > 0) arguments[[1]] else if (small) 2 else 4
rounds <- if (length(arguments) > 1) arguments[[2]] else if (small) 2 else 5
internal <- asNamespace("profile")

# -- The work -----------------------------------------------------------------------

# They are compiled before, so that this is no part of what is measured.
compiled <- compiler::cmpfun
burn <- compiled(function(n) {
  x <- 0
  while (x < n) x <- x + 1
  x
})
# The number of iterations that take a millisecond.
unit <- local({
  time <- median(vapply(1:5, function(i) system.time(burn(3e6))[["user.self"]], 0))
  3e6 / time / 1000
})
# `n` is the time in milliseconds, about.
f_1 <- compiled(function(n) for (i in seq_len(n)) burn(unit))
f_2 <- compiled(function(n) for (i in seq_len(n)) burn(unit))
# Sleeps half of the time.
f_3 <- compiled(function(n) {
  for (i in seq_len(n / 100)) {
    burn(50 * unit)
    Sys.sleep(0.05)
  }
})
# Short bursts.
f_4 <- compiled(function(n) {
  for (i in seq_len(n / 20)) {
    burn(5 * unit)
    Sys.sleep(0.015)
  }
})
# Deep stacks.
f_5 <- compiled(function(n) {
  end <- Sys.time() + n / 1000
  while (Sys.time() < end) lm(dist ~ speed, data = cars)
})
# 70% of its iterations are in one function, in random order.
heavy <- compiled(function(n) burn(n))
light <- compiled(function(n) burn(n))
f_6 <- compiled(function(n) {
  for (is_heavy in sample(rep(c(TRUE, FALSE), n / 3 * c(0.7, 0.3)))) if (is_heavy) heavy(3 * unit) else light(3 * unit)
})

# Sums over threads, in seconds.
kernel_cpu <- function(paths) {
  lines <- vapply(paths, readLines, "")
  sum(as.numeric(sub(" .*", "", lines))) / 1e9
}
# What a worker does. It tells its process id, and the times that its function has taken.
work <- function(task) {
  thread <- sprintf("/proc/self/task/%d/schedstat", Sys.getpid())
  call <- call(task$name, task$n)
  if (!is.null(task$file)) Rprof(task$file, interval = 0.01)
  begin <- c(kernel_cpu(thread), as.numeric(Sys.time()))
  eval(call)
  used <- c(kernel_cpu(thread), as.numeric(Sys.time())) - begin
  Rprof(NULL)
  data.frame(name = task$name, pid = Sys.getpid(), cpu = used[[1]], elapsed = used[[2]])
}
# `names` are the functions of the workers, `n` their times in milliseconds.
tasks_of <- function(names, n, files = NULL) {
  lapply(seq_along(names), function(i) list(name = names[[i]], n = n[[i]], file = files[i]))
}

# Two workers that exist before the recording. They wait while forks work.
cluster <- parallel::makeCluster(2)
parallel::clusterExport(cluster, c("burn", "unit", paste0("f_", 1:6), "heavy", "light", "kernel_cpu"))
run_by <- list(
  forks = function(tasks) parallel::mclapply(tasks, work, mc.cores = length(tasks)),
  workers = function(tasks) parallel::clusterApply(cluster, tasks, work)
)

# -- Recordings -----------------------------------------------------------------------

# The CPU time of the helper that records at this moment, all threads, and the date.
helper_clocks <- function() {
  folder <- list.files(tempdir(), "^children-", full.names = TRUE)
  threads <- Sys.glob(sprintf("/proc/%s/task/*/schedstat", readLines(file.path(folder, "pid"))))
  c(kernel_cpu(threads), as.numeric(Sys.time()))
}

record_tasks <- function(run, tasks) {
  helper <- answers <- NULL
  x <- record_profile(
    {
      begin <- helper_clocks()
      answers <- do.call(rbind, run(tasks))
      helper <- helper_clocks() - begin
    },
    children = TRUE
  )
  list(profile = x, answers = answers, helper = helper[[1]] / helper[[2]], elapsed = helper[[2]])
}

# CPU time of the samples of each source that have a function on the stack, in seconds.
cpu_below <- function(x, frames, name) {
  values <- x$sample_values[x$sample_values$type == "cpu", ]
  cpu <- values$value[match(x$samples$sample_id, values$sample_id)] / 1e9
  with_it <- x$samples$sample_id %in% frames$sample_id[frames$name %in% name]
  vapply(x$sources$source_id, function(id) sum(cpu[with_it & x$samples$source_id == id]), 0)
}

# What a recording says about each of its workers.
compare_with_truth <- function(recorded) {
  x <- recorded$profile
  frames <- as_tibble(x)
  pid <- internal$source_attribute(x, "process.pid")
  held <- as.numeric(internal$source_attribute(x, "profile.pauses.total")) / 1e9
  ticks <- as.numeric(internal$source_attribute(x, "profile.cpu.ticks"))
  seen <- function(id) unique(grep("^f_[0-9]$", frames$name[frames$source_id == id], value = TRUE))
  functions <- lapply(x$sources$source_id, seen)
  answers <- recorded$answers
  row <- match(answers$pid, pid)
  answers$is_found <- !is.na(row)
  # The session itself has none of these functions.
  answers$is_clean <- vapply(seq_along(row), function(i) identical(functions[row[[i]]], list(answers$name[[i]])), NA) &
    length(functions[[1]]) == 0
  answers$recorded <- vapply(seq_along(row), function(i) cpu_below(x, frames, answers$name[[i]])[row[[i]]], 0)
  answers$heavy <- cpu_below(x, frames, "heavy")[row]
  answers$light <- cpu_below(x, frames, "light")[row]
  answers$ticks <- ticks[row]
  answers$held <- held[row]
  answers$helper <- recorded$helper / nrow(answers)
  answers
}

# -- Truth ----------------------------------------------------------------------------

n <- 1000 * seconds
cases <- list(
  "compute" = tasks_of(c("f_1", "f_2"), c(n, 0.6 * n)),
  "sleep" = tasks_of(c("f_3", "f_4"), c(2 * n, 2 * n)),
  "deep stacks" = tasks_of(c("f_5", "f_5"), c(n, n))
)
labels <- c(
  f_1 = "computes", f_2 = "computes, shorter", f_3 = "sleeps half of the time", f_4 = "bursts of 5 ms",
  f_5 = "lm()"
)
rows <- NULL
for (round in seq_len(rounds)) for (kind in names(run_by)) for (case in names(cases)) {
  found <- compare_with_truth(record_tasks(run_by[[kind]], cases[[case]]))
  rows <- rbind(rows, cbind(kind, case, found))
}
cat("Workers\n")
report("in the profile", 100 * mean(rows$is_found), "%", nrow(rows))
report("in the profile, with their own functions only", 100 * mean(rows$is_clean), "%", nrow(rows))
rows$ratio <- rows$recorded / rows$cpu
report("CPU time within 3% of the kernel's", 100 * mean(abs(rows$ratio - 1) <= 0.03), "%", nrow(rows))
report("largest difference of a CPU time from the kernel's", 100 * max(abs(rows$ratio - 1)), "%", nrow(rows))
for (group in split(rows, list(rows$kind, rows$name))) {
  subject <- paste0(group$kind[[1]], ", ", labels[[group$name[[1]]]])
  cat(subject, "\n")
  report("CPU time of the kernel", median(group$cpu), "s", nrow(group), extremes(group$cpu))
  report("CPU time recorded / of the kernel", median(group$ratio), "", nrow(group), extremes(group$ratio))
  missing <- 1000 * (group$cpu - group$recorded)
  report("CPU time of the kernel - recorded", median(missing), "ms", nrow(group), extremes(missing))
  held <- 100 * group$held / group$elapsed
  report("time for which it was stopped", median(held), "%", nrow(group), extremes(held))
}
subject <- ""

# -- Shares of functions -----------------------------------------------------------------

cat("A function with 70% of the iterations of a worker\n")
shares <- NULL
for (round in seq_len(rounds)) for (kind in names(run_by)) {
  found <- compare_with_truth(record_tasks(run_by[[kind]], tasks_of(c("f_6", "f_6"), c(n, n))))
  shares <- rbind(shares, data.frame(
    kind, by = "recorded", found = found$heavy / (found$heavy + found$light) * found$ticks, ticks = found$ticks
  ))
  files <- file.path(scratch, paste0("Rprof-", 1:2))
  run_by[[kind]](tasks_of(c("f_6", "f_6"), c(n, n), files))
  for (file in files) {
    frames <- as_tibble(suppressWarnings(read_rprof(file)))
    ticks <- vapply(c("heavy", "light"), function(name) length(unique(frames$sample_id[frames$name == name])), 0)
    shares <- rbind(shares, data.frame(kind, by = "Rprof()", found = ticks[[1]], ticks = sum(ticks)))
  }
}
for (group in split(shares, list(shares$by, shares$kind))) {
  found <- sum(group$found)
  ticks <- sum(group$ticks)
  subject <- paste0(group$kind[[1]], ", ", group$by[[1]])
  report(paste0("its share, ", subject), 100 * found / ticks, "%", ticks, share_interval(round(found), ticks))
}
subject <- ""

# -- Cost ------------------------------------------------------------------------------

cat("CPU time of the helper for each worker, of a core\n")
for (group in split(rows, list(rows$kind, rows$case))) {
  helper <- 100 * group$helper[!duplicated(group$helper)]
  report(paste0(group$kind[[1]], ", ", group$case[[1]]), median(helper), "%", length(helper), extremes(helper))
}
# All workers together.
report_waiting <- function(name) {
  wait <- function(tasks) {
    Sys.sleep(seconds)
    list()
  }
  helper <- vapply(seq_len(rounds), function(i) 100 * record_tasks(wait, list())$helper, 0)
  report(name, median(helper), "%", rounds, extremes(helper))
}
report_waiting("in total, while two workers of a cluster wait")

# Each turn runs without a recording, with one, and again without.
cat("The same work with a recording, by its time without one\n")
tasks <- tasks_of(c("f_1", "f_2"), c(n, n))
measured <- function(run, is_recorded) {
  gc(FALSE)
  if (is_recorded) {
    recorded <- record_tasks(run, tasks)
    c(recorded$elapsed, sum(recorded$answers$cpu))
  } else {
    begin <- as.numeric(Sys.time())
    answers <- do.call(rbind, run(tasks))
    c(as.numeric(Sys.time()) - begin, sum(answers$cpu))
  }
}
turns <- 2 * rounds + 1
for (kind in names(run_by)) {
  times <- vapply(seq_len(turns), function(i) {
    vapply(c(before = FALSE, recorded = TRUE, after = FALSE), measured, c(elapsed = 0, cpu = 0), run = run_by[[kind]])
  }, matrix(0, 2, 3))
  for (what in 1:2) {
    clock <- c("time that passes", "CPU time of both")[[what]]
    ratio <- times[what, 2, ] / times[what, 1, ]
    report(paste0(kind, ", ", clock), median(ratio), "", turns, quartiles(ratio))
    ratio <- times[what, 3, ] / times[what, 1, ]
    report("  ... of two runs without", median(ratio), "", turns, quartiles(ratio))
  }
}
parallel::stopCluster(cluster)

cat("CPU time of the helper, of a core\n")
report_waiting("while this session waits, without workers")

cat("Recording nothing\n")
times <- time_tasks(list(
  "record_profile(NULL)" = function(fresh) record_profile(NULL),
  "with children = TRUE" = function(fresh) record_profile(NULL, children = TRUE)
), 3 * rounds)
time_rows("record_profile(NULL)", times, unit = "ms")
time_rows("with children = TRUE", times, "record_profile(NULL)", unit = "ms")
cat("Load: ", load_at_start, " before, ", load_now(), " after, ", parallel::detectCores(), " processors\n", sep = "")
