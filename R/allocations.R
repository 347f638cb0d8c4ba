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

# Starts to record vectors of at least `threshold` bytes in a file of this folder, those of forks as well if `forks`. If there
# is a `reader`, see R/peak-images.R, it reads what is in use at peaks. Returns whether this is possible; the reason is
# reported if not.
start_allocations <- function(threshold, folder, call, forks = FALSE, reader = NULL) {
  if (isFALSE(getOption("profile.replace_entries"))) {
    return(without_hook("The option `profile.replace_entries` is `FALSE`.", call))
  }
  if (rust(rust_allocations_on(), call)) {
    return(without_hook("Another recording records them already.", call))
  }
  settings <- list(
    threshold = as.integer(threshold), probe = 48L + 8L * probe_length, forks = forks, reader = as.integer(reader),
    titled = titled_functions()
  )
  file <- file_of_allocations(folder)
  measure_collections()
  started <- FALSE
  on.exit(if (!started) {
    rust(rust_allocations_stop(), call)
    end_measuring()
    unlink(file)
  })
  tryCatch(
    {
      rust(rust_allocations_look(), call)
      rust(rust_allocations_prepare(settings, file_path(file, "profile_error_write", call)), call)
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

file_of_allocations <- function(folder) in_folder(folder, "allocations")

# The next garbage collection runs a finalizer, by which the core sees how R does this.
run_at_collection <- function() {
  reg.finalizer(new.env(), function(env) rust(rust_allocations_finalizer(), NULL))
}

# Stops recording.
stop_allocations <- function(call) {
  # What is still in use afterwards can be reached. This collection, and the finalizers that it runs, are not part of
  # the code.
  rust(rust_allocations_end(), call)
  gc.time(FALSE)
  gc()
  end_measuring()
  is_on <- rust(rust_allocations_on(), call)
  rust(rust_allocations_stop(), call)
  if (!is_on) {
    warn_profile(c(
      "Allocations are incomplete.",
      x = "Another library has replaced the recording, so that later vectors are missing."
    ), "profile_warning_incomplete", call = call)
  }
}

# The profile of the vectors that were recorded in this folder, which has one source; or those of forks, with a source for
# each. NULL if there is none.
read_allocations <- function(folder, call, forks = FALSE) {
  file <- file_of_allocations(folder)
  if (!file.exists(file)) {
    return(NULL)
  }
  result <- rust(rust_allocations_read(file_path(file, "profile_error_open", call), forks, lazy_columns(call)), call)
  if (result$lost > 0 && !forks) {
    warn_profile(c(
      "Allocations are incomplete.",
      x = paste0(format_count(result$lost), " vectors are missing: their stacks could not be read, or there was no room.")
    ), "profile_warning_incomplete", call = call)
  }
  new_profile_data(result$tables, "2.0")
}

# The samples of both profiles as one recorded run: those of the profiler, and the vectors of the same process.
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
  both <- mark_session_of(bind_profiles(list(x, allocations), call), list(x))
  mark_exact_memory(merge_sources(both, both$sources$source_id[[2]], run), run)
}

# Adds the vectors of other processes to their sources, or a source for a process that has none.
join_allocations_of_others <- function(x, allocations, call) {
  if (is.null(allocations) || nrow(allocations$sources) == 0) {
    return(x)
  }
  known <- x$sources$source_id
  both <- bind_profiles(list(x, allocations), call)
  id <- both$sources$source_id
  added <- setdiff(id, known)
  pid <- source_attribute(both, "process.pid")
  # A fork that executes a program has another source afterwards.
  as_fork <- paste(pid, grepl("^fork", roles_of(both)))
  same_as <- function(process) known[match(process[id %in% added], process[id %in% known])]
  same <- ifelse(is.na(same_as(as_fork)), same_as(pid), same_as(as_fork))
  is_known <- !is.na(same)
  both <- merge_sources(both, added[is_known], same[is_known])
  mark_exact_memory(both, ifelse(is_known, same, added))
}

# Makes the samples of the sources `from` those of the sources `to`, about which nothing changes that is known.
merge_sources <- function(x, from, to) {
  sources <- x$sources
  for (name in names(x)) {
    id <- x[[name]][["source_id"]]
    if (is.null(id)) next
    at <- match(id, from)
    x[[name]]$source_id <- ifelse(is.na(at), id, to[at])
  }
  x$sources <- slice_rows(sources, which(!sources$source_id %in% from))
  about <- x$.source_attributes
  x$.source_attributes <- slice_rows(about, which(!duplicated(about[c("source_id", "key")])))
  x
}

mark_exact_memory <- function(x, sources) {
  about <- tibble::tibble(
    source_id = sources, key = "profile.memory", value = "exact", type = "string", unit = NA_character_
  )
  x$.source_attributes <- vctrs::vec_rbind(x$.source_attributes, about)
  x
}
