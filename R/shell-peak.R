# How a script has ended that `profile record` has run, and how much memory it took; with `--snapshot peak`, what held it when
# it was highest.

# Adds the highest memory of the process of the script, the CPU time of its threads, and how it ended, unless a helper has done
# so.
with_end_of_script <- function(x, ran) {
  # R had not written any samples.
  if (nrow(x$sources) == 0) {
    return(x)
  }
  x <- with_thread_times(x, ran$threads)
  about <- c(
    profile.memory.peak = if (!is.na(ran$peak)) sprintf("%.0f", ran$peak),
    profile.process.end = if (nrow(ran$endings) > 0) ran$endings$end
  )
  source <- x$sources$source_id[[1]]
  known <- x$.source_attributes$key[x$.source_attributes$source_id == source]
  about <- about[!names(about) %in% known]
  if (length(about) == 0) {
    return(x)
  }
  rows <- tibble::tibble(
    source_id = source, key = names(about), value = unname(about),
    type = ifelse(names(about) == "profile.memory.peak", "int", "string"), unit = NA_character_
  )
  x$.source_attributes <- vctrs::vec_rbind(x$.source_attributes, rows)
  x
}

# Where the snapshot is written that belongs to a profile.
file_of_peak <- function(output) sub("([^./\\\\]+)([^/\\\\]*)$", "\\1-peak\\2", output)

# What `end_peaks()` has returned in the helper, or an error of the helper.
peak_of_helper <- function(helped) if (inherits(helped, "error")) helped else helped[["peak"]]

# Shows and writes the snapshot at the highest memory. `peak`: see `peak_of_helper()`; NULL if there was no helper.
shell_finish_peak <- function(peak, output, options) {
  if (is.null(peak) || inherits(peak, "error")) {
    shell_message(
      "profile: There is no snapshot of the memory", if (is.null(peak)) "." else paste(":", conditionMessage(peak))
    )
    return()
  }
  if (!isTRUE(options$quiet)) {
    shell_message(paste(format_peaks(peak, 5, line_width(NULL, NULL)), collapse = "\n"))
  }
  write_profile(peak$snapshot, output)
  shell_written(output)
}
