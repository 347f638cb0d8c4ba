# The CPU time that R's thread used while R's profiler ran: the profiler loses ticks if all processors are busy. The core
# compares it with the time of the samples (src/rust/core/src/analysis/cpu_clock.rs).

# Nanoseconds of CPU time of this thread, NULL if the system has no clock for it.
time_of_thread <- function() {
  rust(rust_thread_time(), NULL)
}

# Starts a clock of CPU time, and returns a function that returns the nanoseconds since then; NULL if `clock` is not "cpu",
# since samples of other clocks are compared with none.
start_cpu_clock <- function(clock) {
  started <- if (clock == "cpu") time_of_thread()
  function() if (!is.null(started)) time_of_thread() - started
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
  values <- c(profile.cpu.ticks = count_ticks(x), profile.cpu.clock = round(used))
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
