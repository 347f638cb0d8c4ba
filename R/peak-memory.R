# The highest memory of processes, snapshots at that time, and processes that were killed for memory: for `watch_process()`,
# recordings with children, digests and the shell command. The core measures and takes all of this, see
# src/rust/reader/src/record/memory.rs and src/rust/reader/src/heap/peak.rs.

check_snapshot <- function(snapshot, call) {
  if (!is.null(snapshot) && !identical(snapshot, "peak")) {
    abort_argument("`snapshot` must be `\"peak\"` or `NULL`.", call)
  }
}

# What is known about processes that `rust_peaks_start()` watches: a row for each, with `pid` and, in bytes, `resident`,
# `highest`, and `taken`, the memory at the last snapshot.
peaks_so_far <- function() rust(rust_peaks_look(), NULL)

# Ends that, and returns `peaks`, the same table; `snapshot`, a profile with the last snapshots of all processes; `errors`, why
# a later one failed; and `endings`, see `format_endings()`.
end_peaks <- function(call, lazy = lazy_columns(call)) {
  found <- rust(rust_peaks_end(lazy), call)
  snapshots <- lapply(found$snapshots, new_profile_data, "2.0")
  list(
    peaks = found$peaks, endings = found$endings, errors = found$errors[nzchar(found$errors)],
    snapshot = if (length(snapshots) == 1) snapshots[[1]] else bind_profiles(snapshots, call)
  )
}

bytes_text <- function(bytes) trimws(format_amount(bytes, "bytes"))

# Lines about snapshots that have ended.
format_peaks <- function(ended, n, width) {
  peaks <- ended$peaks
  texts <- paste0(
    if (nrow(peaks) > 1) paste0("Process ", peaks$pid, ": "), "The snapshot was taken at ", bytes_text(peaks$taken),
    " of memory; the most was ", bytes_text(peaks$highest), ".",
    ifelse(peaks$taken < peaks$highest / 1.1, " That was too short for a snapshot.", "")
  )
  texts <- c(texts, paste("A later snapshot failed:", ended$errors, recycle0 = TRUE))
  c(
    unlist(lapply(texts, function(text) wrap("", text, width))),
    format(holders(ended$snapshot, n = n), width = width)
  )
}

# ---- Processes that have ended -----------------------------------------------------

# A sentence for each process that has not ended as usual. `endings` is a table: `pid`, `role`, `cause`, `signal`, `end` (the
# value of `profile.process.end`), `for_memory` (whether there are signs of a kill for memory), and in bytes, NA unless
# little was left, `used` and `available`, and `limit`.
format_endings <- function(endings, who = NULL) {
  vapply(seq_len(NROW(endings)), function(row) format_ending(endings[row, ], who), "")
}

format_ending <- function(one, who) {
  what <- switch(one$cause,
    killed = "was killed by the kernel to free memory.",
    cgroup = "ended when the kernel killed a process of its cgroup to free memory.",
    machine = "ended by signal 9 when the kernel killed a process of this machine to free memory.",
    paste0("ended by signal ", one$signal, ".")
  )
  limit <- if (!is.na(one$limit) && (one$cause %in% c("killed", "cgroup") || !is.na(one$used))) {
    used <- if (!is.na(one$used)) paste0(", of which ", bytes_text(one$used), " were in use at the last reading")
    paste0("Its cgroup has a limit of ", bytes_text(one$limit), used, ".")
  }
  left <- if (!is.na(one$available)) {
    paste0("At the last reading, ", bytes_text(one$available), " of memory were available on this machine.")
  }
  role <- if (nzchar(one$role)) paste0(", ", one$role, ",")
  who <- who %||% paste0("Process ", one$pid, role)
  paste(c(who, what, if (one$for_memory) c(limit, left)), collapse = " ")
}

# Those for which there are signs of a kill for memory.
format_kills <- function(endings, who = NULL) format_endings(endings[endings$for_memory, ], who)

# ---- In profiles -------------------------------------------------------------------

# What a profile says about the memory of its processes: NULL, or a list, see `describe_profile()`.
described_peak <- function(x) {
  # Other tools may use the same keys for other values.
  number <- function(key) suppressWarnings(as.numeric(source_attribute(x, key)))
  peak <- number("profile.memory.peak")
  first <- function(key) c(stats::na.omit(number(key)), NA_real_)[[1]]
  end <- source_attribute(x, "profile.process.end")
  known <- !is.na(peak) | !is.na(end)
  if (!any(known)) {
    return(NULL)
  }
  name <- names_of_processes(x) %||% rep(NA_character_, length(peak))
  list(
    processes = tibble::tibble(process = name[known], peak = peak[known], end = end[known]),
    together = first("profile.memory.together"), count = first("profile.memory.processes"),
    limit = first("profile.memory.limit"), kills = first("profile.memory.kills")
  )
}

format_peak <- function(peak, width) {
  if (all(is.na(peak$processes$peak))) {
    return()
  }
  most <- which.max(peak$processes$peak)
  name <- peak$processes$process[[most]]
  most <- bytes_text(peak$processes$peak[[most]])
  text <- if (!is.na(peak$together)) {
    paste0(
      "at least ", bytes_text(peak$together), " of ", count_of(peak$count, "process", "processes"),
      " together at one moment, up to ", most, " of one of them (", name, ")"
    )
  } else if (nrow(peak$processes) > 1) {
    paste0("up to ", most, " of one process (", name, ")")
  } else {
    paste0("up to ", most)
  }
  text <- paste0(
    text, if (!is.na(peak$limit)) paste0("; the limit of the cgroup is ", bytes_text(peak$limit)), ".",
    if (!is.na(peak$kills)) {
      paste0(" The kernel has killed ", count_of(peak$kills, "process", "processes"), " to free memory.")
    }
  )
  wrap("Memory:    ", text, width)
}

# Notes about processes that have not ended as usual.
notes_of_ends <- function(peak) {
  rows <- peak$processes[!is.na(peak$processes$end), ]
  paste0(ifelse(is.na(rows$process), "The process", rows$process), " ended: ", rows$end, ".", recycle0 = TRUE)
}
