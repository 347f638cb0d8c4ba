# How processes that worked together shared the work, for `print()` and `describe_profile()`.

# Whether there are several processes, of which one has a role.
worked_together <- function(x) {
  name <- names_of_processes(x)
  length(unique(name[!is.na(name)])) > 1 && !all(is.na(roles_of(x)))
}

# A row for each process, and in how much time they were recorded: list(table, elapsed), in seconds, NA if unknown.
# NULL unless they `worked_together()`.
processes_of <- function(x, call = NULL) {
  if (!worked_together(x)) {
    return(NULL)
  }
  name <- names_of_processes(x)
  role <- roles_of(x)
  process <- unique(name[!is.na(name)])
  source <- match(x$samples$source_id, x$sources$source_id)
  of_sample <- factor(name[source], process)
  cpu <- cpu_of_samples(x, call)
  used <- vapply(split(cpu, of_sample), function(cpu) {
    if (length(cpu) > 0 && all(is.na(cpu))) NA_real_ else sum(cpu, na.rm = TRUE)
  }, 0, USE.NAMES = FALSE)
  start <- x$sources$source_timestamp
  # The source of R's own profiler has no duration.
  length <- (x$sources[[".duration_nanos"]] %||% rep(NA_real_, length(start))) / 1e9
  end <- c((start + length)[!is.na(name)], times_of(x)[!is.na(of_sample)])
  elapsed <- max(end, -Inf, na.rm = TRUE) - min(start[!is.na(name)], Inf, na.rm = TRUE)
  list(
    table = tibble::tibble(process = process, role = role[match(process, name)], cpu = used),
    elapsed = if (is.finite(elapsed)) elapsed else NA_real_
  )
}

# Seconds of CPU time of each sample, NA if unknown.
cpu_of_samples <- function(x, call) {
  amounts_of_samples(x, "cpu", "nanoseconds", call) / 1e9
}

times_of <- function(x) x$samples[[".timestamp"]] %||% rep(NA_real_, nrow(x$samples))

# Such as `1 master, 4 workers, 12.3 s of CPU in 3.4 s`.
format_processes <- function(processes) {
  one <- c(
    master = "master", dispatcher = "dispatcher", worker = "worker", fork = "fork", callr = "callr process", child = "child",
    process = "process"
  )
  several <- c("masters", "dispatchers", "workers", "forks", "callr processes", "children", "processes")
  # The role is "fork of 1234"; a process that the user named has none.
  kind <- sub(" .*", "", processes$table$role)
  kind[is.na(kind)] <- "process"
  count <- tabulate(match(kind, names(one)), length(one))
  cpu <- sum(processes$table$cpu)
  time <- c(
    if (!is.na(cpu)) paste(format_seconds(cpu), "of CPU"),
    if (!is.na(processes$elapsed)) paste("in", format_seconds(processes$elapsed))
  )
  paste(c(
    paste(format_count(count), ifelse(count == 1, one, several))[count > 0],
    if (length(time) > 0) paste(time, collapse = " ")
  ), collapse = ", ")
}

# ---- The spread of the work --------------------------------------------------------

# What `describe_profile()` calls `spread`: NULL if fewer than two processes worked for another one, or if their CPU
# time is unknown.
described_spread <- function(x, processes, call) {
  table <- processes$table
  table <- table[!is.na(table$role) & !table$role %in% c("master", "dispatcher"), ]
  if (NROW(table) < 2 || anyNA(table$cpu) || sum(table$cpu) == 0) {
    return(NULL)
  }
  source <- match(x$samples$source_id, x$sources$source_id)
  computed <- names_of_processes(x)[source] %in% table$process & (cpu_of_samples(x, call) > 0) %in% TRUE
  times <- times_of(x)[computed]
  interval <- intervals_of(x)[source][computed]
  interval[is.na(interval)] <- 0
  seconds <- max(times + interval) - min(times)
  # Processes that are started for a task, of which one begins when another one has ended, do not wait for each other.
  of <- factor(names_of_processes(x)[source][computed], table$process)
  begin <- tapply(times, of, min)
  end <- tapply(times + interval, of, max)
  overlap <- all(startsWith(table$role, "worker")) || isTRUE(max(begin, na.rm = TRUE) < min(end, na.rm = TRUE))
  even <- mean(table$cpu)
  slowest <- max(table$cpu)
  rows <- tibble::tibble(process = table$process, cpu = table$cpu, busy_share = table$cpu / seconds)
  list(
    processes = rows[order(-rows$cpu, method = "radix"), ], seconds = seconds, even = even, slowest = slowest,
    waiting_share = if (overlap) 1 - even / slowest else NA_real_
  )
}

# Seconds between two samples of each source, NA if unknown.
intervals_of <- function(x) {
  sampling_period(x$sources) * unname(seconds_in[x$sources[[".period_unit"]]])
}

# `has_bill`: whether the digest shows what the workers did otherwise.
format_spread <- function(spread, n, width, shown, has_bill = FALSE) {
  if (is.null(spread)) {
    return()
  }
  # The busiest ones.
  rows <- utils::head(spread$processes, n)
  has_share <- !is.na(spread$seconds)
  c(
    description_table(
      "how well was the work spread",
      list(shares = rows[if (has_share) "busy_share"], amount = format_amount(rows$cpu * 1e9, "nanoseconds")),
      c(if (has_share) "busy%", "cpu"),
      shown(rows$process)
    ),
    if (has_share && n >= 1) {
      wrap("", "busy%: CPU time as a share of the time in which any of them worked.", width)
    },
    if (n >= 1 && !is.na(spread$waiting_share) && !has_bill) wrap("", paste0(
      "Spread evenly, each would take ", format_seconds(spread$even), "; the slowest took ",
      format_seconds(spread$slowest), ": ", trimws(percent(spread$waiting_share)),
      "% of the time was spent waiting for it."
    ), width)
  )
}
