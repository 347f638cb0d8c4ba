# The CPU time that R's thread used while R's profiler ran: the profiler loses ticks if all processors are busy. The core
# compares it with the time of the samples (src/rust/core/src/analysis/cpu_clock.rs).

# Nanoseconds of CPU time of this thread, NULL if the system has no clock for it. The attribute `delay` is for how long it
# waited for a processor, and for how long its cgroup was throttled, `NaN` if unknown.
time_of_thread <- function() {
  times <- rust(rust_thread_time(), NULL)
  if (!is.null(times)) structure(times[[1]], delay = times[2:3])
}

# Starts a clock of CPU time, and returns a function that returns the nanoseconds since then; NULL if `clock` is not "cpu",
# since samples of other clocks are compared with none.
start_cpu_clock <- function(clock) {
  started <- if (clock == "cpu") time_of_thread()
  function() {
    if (!is.null(started)) {
      now <- time_of_thread()
      delay <- if (!is.null(attr(now, "delay"))) attr(now, "delay") - attr(started, "delay")
      structure(as.numeric(now) - as.numeric(started), delay = delay)
    }
  }
}

# The number of samples of R's profiler, which has recorded the first source. Each of them is a row, as are allocations that
# were recorded beside them.
count_ticks <- function(x) {
  is_tick <- !is_allocation_row(x)
  if (nrow(x$sources) == 1) sum(is_tick) else sum(is_tick & x$samples$source_id == x$sources$source_id[[1]])
}

# Adds the CPU time in nanoseconds to the first source, which R's profiler has recorded, and the number of its samples, so
# that it shows whether some of them are removed later.
with_cpu_time <- function(x, used) {
  if (is.null(used) || nrow(x$sources) == 0) {
    return(x)
  }
  delay <- attr(used, "delay") %||% c(NA, NA)
  names(delay) <- c("profile.cpu.delay", "profile.cpu.throttled")
  # A group that was never throttled has nothing to report.
  delay <- delay[!is.na(delay) & (delay > 0 | names(delay) == "profile.cpu.delay")]
  values <- c(profile.cpu.ticks = count_ticks(x), profile.cpu.clock = round(as.numeric(used)), delay)
  about <- x$.source_attributes
  if (!is.null(about)) {
    x$.source_attributes <- about[!about$key %in% names(values), ]
  }
  with_attributes(x, x$sources$source_id[[1]], values)
}

# `1.7 s`, or `1.7 s of 2.4 s used` if the core has found that R's thread used another CPU time than the samples show, as it
# does if ticks were lost. There are more of them than that if other threads compute.
format_sampled <- function(seconds, used) {
  shown <- format_seconds(seconds)
  if (is.null(used)) {
    shown
  } else if (used > seconds) {
    paste(shown, "of", format_seconds(used), "used")
  } else {
    paste0(shown, ", ", format_used(used))
  }
}

# The same beside values that are times.
format_used <- function(used) {
  if (!is.null(used)) paste("R used", format_seconds(used))
}

# `Waited 11.3 s for a processor; its cgroup was throttled for 8.0 s.`, if that is a part of the time that matters. The kernel
# counts how long a cgroup was throttled for all of its processes.
note_of_delay <- function(x, seconds) {
  times <- function(key) as.numeric(source_attribute(x, key)) / 1e9
  delay <- times("profile.cpu.delay")
  throttled <- times("profile.cpu.throttled")
  waited <- sum(delay, na.rm = TRUE)
  if (waited < 0.1 || waited < 0.05 * (seconds %||% Inf)) {
    return()
  }
  count <- sum(!is.na(delay))
  throttled <- max(throttled, 0, na.rm = TRUE)
  paste0(
    if (count > 1) paste("The", count, "processes waited ") else "Waited ", format_seconds(waited), " for a processor",
    if (throttled > 0) paste0("; ", if (count > 1) "their" else "its", " cgroup was throttled for ", format_seconds(throttled)),
    "."
  )
}
