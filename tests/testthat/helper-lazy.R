# Lazy columns, and how to recognise them.

# Two profiles with the same content: with computed columns, and with ordinary ones.
fresh <- function(file = "basic_all.out") read_quietly(rprof_path(file))
ordinary <- function(file = "basic_all.out") {
  withr::local_options(profile.lazy = FALSE)
  fresh(file)
}

is_computed <- function(x) {
  any(grepl("compact|computed", utils::capture.output(.Internal(inspect(x)))))
}

large_tables <- list(
  sample_locations = c("sample_id", "depth", "location_id"),
  samples = c("sample_id", "source_id"),
  sample_values = "sample_id"
)

# Calls f(lazy, ordinary) for each column that is computed, with new profiles each time.
each_column <- function(f) {
  for (table in names(large_tables)) {
    for (column in large_tables[[table]]) {
      f(fresh()[[table]][[column]], ordinary()[[table]][[column]], paste0(table, "$", column))
    }
  }
  times <- "basic_plain.out"
  if (file.exists(rprof_path(times))) {
    f(fresh(times)$sample_values$value, ordinary(times)$sample_values$value, "value")
  }
}
