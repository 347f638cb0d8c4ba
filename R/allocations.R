# Records each vector that R allocates, with the stack at which it does: `record_profile(memory = "exact")`. While the code
# runs, entries of R's table of addresses are replaced (src/rust/allocations). Where that is not possible, `Rprofmem()`
# records functions only.

# The length of a vector that R allocates and copies once at the start, so that the core sees how R does this. No other
# vector has this size at that moment.
probe_length <- 54321L

# Checks the arguments `memory` and `threshold`, and returns whether each vector is to be recorded.
check_exact_memory <- function(memory, threshold, call) {
  is_exact <- identical(memory, "exact")
  if (!is_exact && !rlang::is_bool(memory)) {
    abort_argument("`memory` must be `TRUE`, `FALSE` or \"exact\".", call)
  }
  check_count(threshold, "threshold", call, least = 0)
  is_exact
}

# Starts to record vectors of at least `threshold` bytes. Returns whether this is possible; the reason is reported if not.
start_allocations <- function(threshold, call) {
  if (isFALSE(getOption("profile.replace_entries"))) {
    return(without_hook("The option `profile.replace_entries` is `FALSE`.", call))
  }
  if (rust(rust_allocations_on(), call)) {
    return(without_hook("Another recording records them already.", call))
  }
  settings <- list(threshold = as.integer(threshold), probe = 48L + 8L * probe_length)
  measure_collections()
  started <- FALSE
  on.exit(if (!started) {
    rust(rust_allocations_stop(FALSE), call)
    end_measuring()
  })
  tryCatch(
    {
      rust(rust_allocations_look(), call)
      rust(rust_allocations_prepare(settings), call)
      allocate_and_copy(probe_length)
      run_at_collection()
      gc(full = FALSE)
      rust(rust_allocations_begin(), call)
      started <- TRUE
    },
    profile_error_unsupported = function(error) without_hook(conditionMessage(error), call),
    # R's memory cannot be read.
    profile_error_process = function(error) without_hook(conditionMessage(error), call)
  )
}

without_hook <- function(reason, call) {
  check_profmem(call)
  inform_profile(
    c("Allocations are recorded by `Rprofmem()`, without lines and copies.", i = shown_text(reason)),
    "profile_message_memory"
  )
  FALSE
}

# R measures the time of collections only if it is asked to, and does not say whether it was: if it was, its sum has changed
# since this package has stopped it.
measure_collections <- function() {
  sum <- gc.time(TRUE)
  the$was_measured <- any(sum > 0) && !identical(sum, the$measured)
}

end_measuring <- function() {
  the$measured <- gc.time(the$was_measured)
}

allocate_and_copy <- function(length) {
  vector <- numeric(length)
  copy <- vector
  copy[1] <- 1
  invisible()
}

# The next garbage collection runs a finalizer, by which the core sees how R does this.
run_at_collection <- function() {
  reg.finalizer(new.env(), function(env) rust(rust_allocations_finalizer(), NULL))
}

# Stops recording, and returns the profile of the vectors, which has one source; NULL if there is none.
stop_allocations <- function(call) {
  # What is still in use afterwards can be reached. This collection, and the finalizers that it runs, are not part of
  # the code.
  rust(rust_allocations_end(), call)
  gc.time(FALSE)
  gc()
  end_measuring()
  is_on <- rust(rust_allocations_on(), call)
  result <- rust(rust_allocations_stop(lazy_columns(call)), call)
  if (!is_on) {
    warn_profile(c(
      "Allocations are incomplete.",
      x = "Another library has replaced the recording, so that later vectors are missing."
    ), "profile_warning_incomplete", call = call)
  }
  if (is.null(result)) {
    return(NULL)
  }
  if (result$lost > 0) {
    warn_profile(c(
      "Allocations are incomplete.",
      x = paste0(format_count(result$lost), " vectors are missing: their stacks could not be read, or memory has run out.")
    ), "profile_warning_incomplete", call = call)
  }
  x <- mark_session(new_profile_data(result$tables, "2.0"))
  with_attributes(x, x$sources$source_id, c(profile.memory.time = result$time))
}

# The samples of both profiles as one recorded run: those of the profiler, and the vectors.
join_allocations <- function(x, allocations, call) {
  if (is.null(allocations)) {
    return(x)
  }
  types <- vctrs::vec_unique(tibble::new_tibble(list(
    type = c("samples", as.character(x$sample_values$type)), unit = c("count", as.character(x$sample_values$unit))
  )))
  run <- x$sources$source_id
  x$.sample_types <- tibble::new_tibble(list(
    source_id = rep(run, nrow(types)), type = types$type, unit = types$unit, recorded = types$type
  ))
  both <- bind_profiles(list(x, allocations), call)
  both$.sample_types$source_id[] <- run
  both$samples$source_id[] <- run
  both$.source_attributes$source_id[] <- run
  both$sources <- slice_rows(both$sources, 1L)
  about <- tibble::tibble(
    source_id = run, key = "profile.memory", value = "exact", type = "string", unit = NA_character_
  )
  both$.source_attributes <- vctrs::vec_rbind(both$.source_attributes, about)
  both
}
