# Functions that the benchmarks share: they generate files, measure time and memory, and report figures.

scratch <- tempfile("bench")
dir.create(scratch)

# The arguments without options such as `--small`, which selects sizes that take only about a minute.
arguments <- grep("^--", commandArgs(TRUE), value = TRUE, invert = TRUE)
small <- "--small" %in% commandArgs(TRUE)

# -- Figures ---------------------------------------------------------------------

# Prints a figure, and adds it to the table that bench/all collects. `n` is the number of measurements, `interval` the
# bounds of the figure, as quartiles() and the functions below compute them, and `seed` the seed of random numbers.
report <- function(name, value, unit = "", n = NA, interval = NULL, seed = NA) {
  details <- c(
    if (!is.null(interval)) interval_text(interval),
    if (!is.na(n)) paste("n =", figure_text(n)),
    if (!is.na(seed)) paste("seed", seed)
  )
  details <- if (length(details) > 0) paste0("  (", paste(details, collapse = "; "), ")") else ""
  cat(sprintf("  %-60s %10s %s%s\n", name, figure_text(value), unit, details))
  record(name, value, unit, n, interval, seed)
}

# The same without printing, for benchmarks that print tables of their own. The table is a file that the environment
# variable PROFILE_BENCH_TABLE names: a line for each figure, with fields between tabs, and the load before and after.
record <- function(name, value, unit = "", n = NA, interval = NULL, seed = NA) {
  table <- Sys.getenv("PROFILE_BENCH_TABLE")
  if (table == "") {
    return(invisible())
  }
  fields <- c(
    benchmark, if (subject == "") name else paste0(subject, ": ", name), figure_text(value), unit, figure_text(n),
    if (is.null(interval)) "" else interval_text(interval), if (is.na(seed)) "" else seed, load_at_start, load_now()
  )
  cat(paste(gsub("[\t\n]", " ", fields), collapse = "\t"), "\n", sep = "", file = table, append = TRUE)
}

# The subject of the next figures, such as the file that is measured. It is part of their names in the table.
subject <- ""

# Formats whole numbers exactly, others with four digits.
figure_text <- function(x) {
  if (is.na(x)) {
    return("")
  }
  format(if (x == round(x)) x else signif(x, 4), big.mark = ",", scientific = FALSE, digits = 15)
}

interval_text <- function(interval) {
  kind <- attr(interval, "kind")
  bounds <- paste(figure_text(interval[[1]]), "to", figure_text(interval[[2]]))
  paste0(if (is.null(kind)) "95%" else kind, ": ", bounds)
}

# The range of the middle half of the values, and the range of all values.
quartiles <- function(x) structure(stats::quantile(x, c(0.25, 0.75), names = FALSE), kind = "quartiles")
extremes <- function(x) structure(range(x), kind = "range")

# For a share: `found` of `n` independent cases, in percent.
share_interval <- function(found, n) structure(100 * stats::binom.test(found, n)$conf.int[1:2], kind = "95%")

# The number of processes that wanted a CPU, a mean of the last minute. Linux only.
load_now <- function() {
  if (file.exists("/proc/loadavg")) sub(" .*", "", readLines("/proc/loadavg")) else ""
}
load_at_start <- load_now()
benchmark <- basename(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[[1]]))

# -- Time and memory -------------------------------------------------------------

# Seconds of tasks that take turns, so that a slow moment of the machine affects all: a row for each task, a column for
# each turn. Writers get a new file each time, since replacing one makes some file systems wait for the disk.
time_tasks <- function(tasks, n) {
  take_turns(lapply(tasks, timed), n)
}

# The same for tasks that return their seconds themselves.
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
  matrix(seconds, length(tasks), dimnames = list(names(tasks)))
}

timed <- function(task) {
  function(fresh) {
    # system.time() has milliseconds only.
    start <- Sys.time()
    task(fresh)
    as.numeric(Sys.time() - start, units = "secs")
  }
}

# The CPU time of this process, of all its threads, instead of the time that passes.
cpu_time <- function(task) {
  function(fresh) {
    before <- proc.time()
    task(fresh)
    used <- proc.time() - before
    used[["user.self"]] + used[["sys.self"]]
  }
}

# The memory that a separate process needs for an expression in `path`, beyond what was in use before: its peak, what it
# still holds afterwards, and the size of the result with all columns in memory. In MB; Linux only.
peak_memory <- function(path, expression, before = "NULL") {
  if (!file.exists("/proc/self/clear_refs")) {
    return(c(peak = NA, held = NA, result = NA))
  }
  code <- c(
    "library(profile)",
    "path <- commandArgs(TRUE)",
    before,
    "memory <- function(what) {",
    "  line <- grep(what, readLines('/proc/self/status'), value = TRUE)",
    "  as.numeric(gsub('[^0-9]', '', line)) * 1024",
    "}",
    # Resets the peak to the memory in use now.
    "writeLines('5', '/proc/self/clear_refs')",
    "before <- memory('VmHWM')",
    sprintf("x <- suppressWarnings(%s)", expression),
    "after <- memory('VmHWM')",
    "invisible(gc())",
    "held <- memory('VmRSS')",
    "cat(after - before, held - before, object.size(x))"
  )
  child <- file.path(scratch, "peak.R")
  writeLines(code, child)
  rscript <- file.path(R.home("bin"), "Rscript")
  output <- system2(rscript, c(child, shQuote(path)), stdout = TRUE)
  bytes <- as.numeric(strsplit(output[[length(output)]], " ")[[1]])
  c(peak = bytes[[1]], held = bytes[[2]], result = bytes[[3]]) / 1e6
}

# -- Tables ----------------------------------------------------------------------

# A line of a table: a figure, its ratio to another figure, and the target of the ratio. With `again`, the figure was in
# a previous line, and only the ratio is new. `n` is the number of measurements of both, `interval` and `ratio_interval`
# are their bounds.
row <- function(what, value, unit, ratio = NA, to = "", target = NA, again = FALSE,
                n = NA, interval = NULL, ratio_interval = NULL) {
  cat(sprintf(
    "  %-36s %10s %-2s  %6s  %-31s %s\n", what, figure_text(value), unit,
    if (is.na(ratio)) "" else sprintf("%.2f", ratio), if (is.na(ratio)) "" else paste("x", to),
    if (is.na(target)) "" else paste("target: at most", target)
  ))
  if (!again) record(what, value, unit, n, interval)
  if (!is.na(ratio)) record(paste(what, "/", to), ratio, "x", n, ratio_interval)
}

# The lines of a task: the median of its times (`times` is a result of time_tasks()), and the median of the ratios to
# each of `others` in the same turn.
time_rows <- function(what, times = NULL, others = character(), targets = NA, mine = times[what, ], unit = "s") {
  scale <- if (unit == "ms") 1000 else 1
  figure <- function(...) {
    row(what, scale * stats::median(mine), unit, n = length(mine), interval = extremes(scale * mine), ...)
  }
  measured <- others %in% rownames(times)
  targets <- rep_len(targets, length(others))[measured]
  others <- others[measured]
  if (length(others) == 0) figure()
  for (i in seq_along(others)) {
    ratios <- mine / times[others[[i]], ]
    figure(stats::median(ratios), others[[i]], targets[[i]], again = i > 1, ratio_interval = extremes(ratios))
  }
}

# -- Files of our own ------------------------------------------------------------

# Real programs have thousands of stacks, a short test file has hundreds. A new stack combines two stacks that share an
# item: the inner frames of one and, from that item on, the outer frames of the other.
cross <- function(lines, n) {
  item <- "([0-9]+#[0-9]+ )?\"[^\"]*\" "
  whole <- grepl(paste0("^(:[0-9:]+:)?(", item, ")+$"), lines)
  lines <- unique(lines[whole])
  figures <- sub("^((:[0-9:]+:)?).*", "\\1", lines)
  items <- regmatches(lines, gregexpr(item, lines))
  places <- data.frame(line = rep(seq_along(lines), lengths(items)), item = unlist(items))
  by_item <- split(places$line, places$item)
  # A few lines can be combined only in a few ways, so this stops after some rounds.
  for (round in 1:5) {
    if (length(lines) >= n) break
    one <- sample.int(length(items), n, replace = TRUE)
    crossed <- vapply(one, function(line) {
      from <- sample(items[[line]], 1)
      others <- by_item[[from]]
      other <- items[[others[[sample.int(length(others), 1)]]]]
      inner <- items[[line]][seq_len(match(from, items[[line]]))]
      outer <- other[-seq_len(match(from, other))]
      paste0(figures[[line]], paste0(c(inner, outer), collapse = ""))
    }, "")
    lines <- unique(c(lines, crossed))
  }
  utils::head(lines, n)
}

# The header and the `#File` lines of a file, then n samples drawn from its own and
# crossed ones.
grow <- function(from, n, to) {
  set.seed(2)
  lines <- readLines(file.path(here, "..", "tests", "testthat", "data", "rprof", from), warn = FALSE)
  is_file <- startsWith(lines, "#File ")
  samples <- cross(lines[-1][!is_file[-1]], min(n %/% 10, 1e4))
  to <- file.path(scratch, to)
  con <- file(to, "wb")
  on.exit(close(con))
  writeLines(c(lines[[1]], lines[is_file]), con)
  for (chunk in seq_len(n %/% 1e4)) {
    writeLines(sample(samples, 1e4, replace = TRUE), con)
  }
  to
}
