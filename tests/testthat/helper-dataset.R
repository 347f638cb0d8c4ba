# Data sets of profiles. Writers and compaction take the day from the clock, so tests that need days that have passed
# pretend that it is later.

local_dataset <- function(env = parent.frame()) {
  skip_if_not_installed("arrow")
  skip_if_not_installed("dplyr")
  withr::local_tempdir("dataset-", .local_envir = env)
}

# What a data set contains, in a form that does not depend on its files.
sums_of_dataset <- function(path) {
  by <- c("service", "version", "sample_type", "stack_key")
  rows <- dplyr::group_by(tbl_profile(path)$samples, !!!rlang::syms(by))
  rows <- dplyr::collect(dplyr::summarise(rows, value = sum(value), count = sum(sample_count), .groups = "drop"))
  rows <- as.data.frame(rows)
  rows <- rows[do.call(order, c(rows[by], method = "radix")), ]
  row.names(rows) <- NULL
  rows
}

days_later <- function(days) {
  Sys.time() + days * 86400
}

# Compacts all that was written until now, as if it was `days` later.
compact_dataset <- function(path, period = "minute", days = 2, apart = "run") {
  pretend_days(days)
  roll_up_dataset(path, as.numeric(days_later(days - 0.5)), period, apart, NULL)
}

pretend_days <- function(days, envir = parent.frame()) {
  replace_function("current_time", function() as.numeric(days_later(days)), envir)
}

files_of <- function(path) {
  list.files(path, recursive = TRUE, all.files = TRUE)
}
