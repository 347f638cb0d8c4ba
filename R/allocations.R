# Records each vector that R allocates, with the stack at which it does: `record_profile(memory = "exact")`. While the code
# runs, two entries of R's table of addresses are replaced (src/rust/allocations). Where that is not possible, `Rprofmem()`
# records functions only.

# The length of a vector that R allocates and copies once at the start, so that the core sees how R does this. No other
# vector has this size at that moment.
probe_length <- 54321L

# Starts to record vectors of at least `threshold` bytes. Returns whether this is possible; the reason is reported if not.
start_allocations <- function(threshold, call) {
  settings <- list(threshold = as.integer(threshold), probe = 48L + 8L * probe_length)
  tryCatch(
    {
      rust(rust_allocations_prepare(settings), call)
      allocate_and_copy(probe_length)
      rust(rust_allocations_begin(), call)
      TRUE
    },
    profile_error_unsupported = function(error) {
      check_profmem(call)
      inform_profile(c(
        "Allocations are recorded by `Rprofmem()`, without lines and copies.",
        i = shown_text(conditionMessage(error))
      ), "profile_message_memory")
      FALSE
    }
  )
}

allocate_and_copy <- function(length) {
  vector <- numeric(length)
  copy <- vector
  copy[1] <- 1
  invisible()
}

# Stops recording, and returns the profile of the vectors, which has one source.
stop_allocations <- function(call) {
  # What is still in use afterwards can be reached.
  gc()
  result <- rust(rust_allocations_stop(lazy_columns(call)), call)
  mark_session(new_profile_data(result$tables, "2.0"))
}

# The samples of both profiles as one recorded run: those of the profiler, and the vectors.
join_allocations <- function(x, allocations, call) {
  types <- vctrs::vec_unique(tibble::new_tibble(list(
    type = c("samples", as.character(x$sample_values$type)), unit = c("count", as.character(x$sample_values$unit))
  )))
  run <- x$sources$source_id
  both <- bind_profiles(list(x, allocations), call)
  own <- both$.sample_types
  own$source_id[] <- run
  recorded <- tibble::new_tibble(list(
    source_id = rep(run, nrow(types)), type = types$type, unit = types$unit, recorded = types$type
  ))
  both$.sample_types <- vctrs::vec_rbind(recorded, own)
  both$samples$source_id[] <- run
  both$sources <- slice_rows(both$sources, 1L)
  about <- tibble::tibble(
    source_id = run, key = "profile.memory", value = "exact", type = "string", unit = NA_character_
  )
  both$.source_attributes <- vctrs::vec_rbind(both$.source_attributes, about)
  both
}
