# A profile of processes that worked together, from a start of 1e9 seconds since 1970, with an interval of 1 s.
#
# `seconds`: for each role, the seconds at which the process computed, in a function that has the name of the kind of
# its role; the pids are 100, 101, ... `recorded`: for how long each of them was recorded, NA if unknown.
profile_of_processes <- function(seconds, recorded = rep(10, length(seconds)), gc = FALSE) {
  n <- length(seconds)
  role <- names(seconds)
  source <- rep(seq_len(n), lengths(seconds))
  sample <- seq_along(source)
  kind <- sub(" .*", "", role)
  functions <- c(unique(kind), "main")
  outermost <- length(functions)
  attributes <- tibble::tibble(
    source_id = rep(seq_len(n), each = 2), key = rep(c("process.pid", "profile.process.role"), n),
    type = rep(c("int", "string"), n), value = as.vector(rbind(99L + seq_len(n), role)), unit = NA_character_
  )
  x <- structure(class = "profile_data", list(
    meta = tibble::tibble(key = "version", value = "2.0"),
    sources = tibble::tibble(
      source_id = seq_len(n), source_type = "process", source_uri = paste0("pid:", 99 + seq_len(n)),
      source_timestamp = 1e9, .duration_nanos = recorded * 1e9, .period = 1e9, .period_type = "cpu",
      .period_unit = "nanoseconds", .gc_profiling = c(gc, rep(NA, n - 1))
    ),
    samples = tibble::tibble(
      sample_id = sample, source_id = source, .timestamp = 1e9 + unlist(seconds, use.names = FALSE)
    ),
    sample_values = tibble::tibble(sample_id = sample, type = "cpu", unit = "nanoseconds", value = 1e9),
    sample_locations = tibble::tibble(
      sample_id = rep(sample, each = 2), depth = rep(1:2, length(sample)),
      location_id = as.vector(rbind(match(kind[source], functions), outermost))
    ),
    locations = tibble::tibble(location_id = seq_along(functions), function_id = location_id, line = 0L),
    functions = tibble::tibble(
      function_id = seq_along(functions), name = functions, system_name = functions, filename = "", start_line = 0L
    ),
    .source_attributes = attributes[!is.na(attributes$value), ]
  ))
  validate_profile(x)
  x
}
