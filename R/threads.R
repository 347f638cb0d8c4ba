# The CPU time of the threads of a process, beside R's own: recorded by the core (src/rust/reader/src/record/threads), and
# stored as attributes of the source, see src/rust/core/src/analysis/threads.rs.

# Adds it to the first source. `facts`: rows of `.source_attributes`, without a source.
with_thread_times <- function(x, facts) {
  if (NROW(facts) == 0 || nrow(x$sources) == 0 || any(startsWith(as.character(x$.source_attributes$key), "profile.threads."))) {
    return(x)
  }
  rows <- tibble::tibble(
    source_id = x$sources$source_id[[1]], key = facts$key, value = facts$value, type = facts$type, unit = NA_character_
  )
  x$.source_attributes <- vctrs::vec_rbind(x$.source_attributes, rows)
  x
}

# `31 threads of libopenblas used 240 s, threads that ended 1.2 s, R's own 12 s; 4 processors are allowed.` `threads` is the
# table of the core, without threads that have used less than 1% of all. The page does the same (text.js).
threads_text <- function(threads, processors) {
  name <- function(library, count) {
    if (is.na(library)) {
      "threads that ended"
    } else if (is.na(count)) {
      "R's own"
    } else {
      paste(count_of(count, "thread"), "of", shown_label(library))
    }
  }
  # R's own is the first row.
  threads <- threads[c(seq_len(nrow(threads))[-1], 1), ]
  used <- paste0(
    mapply(name, threads$library, threads$threads), c(" used ", rep(" ", nrow(threads) - 1)),
    vapply(threads$cpu, format_seconds, "")
  )
  allowed <- if (!is.null(processors)) {
    paste0(format(signif(processors, 3)), if (processors == 1) " processor is" else " processors are", " allowed")
  }
  paste0(paste(c(paste(used, collapse = ", "), allowed), collapse = "; "), ".")
}

# For `describe_profile()`.
described_threads <- function(summary) {
  used <- attr(summary, "threads")
  if (!is.null(used)) list(used = used, processors = attr(summary, "processors"))
}

format_threads <- function(threads, processors, width) {
  if (!is.null(threads)) wrap("Threads:   ", threads_text(threads, processors), width)
}
