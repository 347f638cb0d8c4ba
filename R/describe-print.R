# Prints descriptions of profiles: a page of text with sections, each a table.

#' @rdname describe_profile
#' @export
as.list.profile_description <- function(x, ...) {
  rlang::check_dots_empty()
  unclass(x)$parts
}

#' @rdname describe_profile
#' @export
format.profile_description <- function(x, ..., n = NULL, width = NULL) {
  call <- text_call()
  check_shown(n, call)
  width <- line_width(width, call)
  description <- unclass(x)
  parts <- description$parts
  n <- n %||% description$n %||% 7
  least <- description$min_share
  unit <- parts$run$unit
  top <- function(rows) utils::head(rows[pmax(abs(rows$self_share), abs(rows$total_share)) >= least, ], n)
  shown <- function(names) shown_name(names, width, ellipsis = "~")
  head <- c(description_head(parts, width), format_parallel(parts$parallel, n, width))
  tables <- c(
    if (parts$run$whole > 0) c(
      description_functions(top(parts$functions), unit, shown),
      description_lines(top(parts$lines), unit, shown),
      description_packages(parts$packages, parts$run$own_share, least, unit, n, shown),
      description_labels(parts$labels, unit, n, least, shown)
    ),
    description_calls(parts$calls, n, shown),
    format_spread(parts$spread, n, width, shown, !is.null(parts$parallel)),
    description_memory(parts, n, least, width, shown),
    description_copies(parts$copies, n, width, shown), description_at_peak(parts$at_peak, n, width, shown)
  )
  notes <- unlist(lapply(parts$notes, function(note) wrap("Note: ", note, width)))
  end <- c(if (length(notes) > 0) c("", notes), "", "Next:", paste0("  ", parts$next_calls))
  # The tree also needs lines for a blank line, two headings, and the note about omitted branches.
  space <- floor(8.5 * n) + 1 - length(c(head, tables, end)) - 4
  tree <- if (parts$run$whole > 0 && n >= 1) {
    rows <- description$tree_rows %||% min(2 * n, max(space, half(n)))
    lines <- tree_lines(parts$tree, rows, least, width, ellipsis = "~")
    title <- paste0("Call tree", if (!is.null(attr(parts$tree, "hidden"))) ", without plumbing")
    c("", title, lines$head, lines$text, lines$note)
  }
  shorten(c(head, tree, tables, end), width, ellipsis = "~")
}

# Half of a number of rows, but at least one, except for 0.
half <- function(n) max(floor(n / 2), min(n, 1))

description_head <- function(parts, width) {
  run <- parts$run
  time <- time_beside(run$seconds, run$used, run$unit)
  interval <- if (!is.null(run$interval)) {
    paste("a sample every", format_amount(run$interval * 1e9, "nanoseconds"))
  }
  amount <- if (run$type == "samples") {
    count_of(run$sum, "sample")
  } else {
    paste0(if (run$at_least) "at least ", format_amount(run$sum, run$unit), " of ", shown_label(run$type))
  }
  start <- run$sources$source_timestamp
  c(
    paste(c(paste("<profile>", amount), time, interval, count_of(run$functions, "function")), collapse = ", "),
    format_origin(run$sources, run$processes, width, ellipsis = "~", run$sources$program),
    format_threads(parts$threads$used, parts$threads$processors, width),
    format_peak(parts$peak, width),
    if (length(start) == 1) {
      # The time of a file of Rprof() is derived from the modification time of the file.
      latest <- run$sources$source_type == "rprof" && !is.na(run$sources$source_uri)
      format_recorded(start, latest)
    }
  )
}

# `latest`: whether the time is the latest one that is possible. Nothing if the time is unknown.
format_recorded <- function(start, latest = FALSE) {
  if (!is.na(start)) {
    time <- as.POSIXct(start, origin = "1970-01-01", tz = "UTC")
    paste0("Recorded:  ", format(time, "%Y-%m-%d %H:%M:%S UTC"), if (latest) " or before")
  }
}

# A table with percentages, an amount, and text.
description_table <- function(title, figures, columns, text) {
  if (length(figures$amount) == 0) {
    return()
  }
  amounts <- format(c(columns[[length(columns)]], figures$amount), justify = "right")
  shares <- lapply(figures$shares, function(share) paste0("  ", formatC(percent(share), width = 6)))
  head <- paste0("  ", formatC(columns[-length(columns)], width = 6), collapse = "", recycle0 = TRUE)
  rows <- do.call(paste0, c(unname(shares), list("  ", amounts[-1])))
  c("", paste0(head, "  ", amounts[[1]], "  ", title), paste0(rows, "  ", text))
}

description_functions <- function(rows, unit, shown) {
  # In differences, a part of a total may be larger than the total, or have another sign.
  is_part <- rows$caller_share >= 0 & rows$caller_share <= 0.995
  share <- ifelse(is_part %in% TRUE, sprintf(" %.0f%%", 100 * rows$caller_share), "")
  from <- ifelse(is.na(rows$caller), "", paste0("  <- ", shown(rows$caller), share))
  description_table(
    "function  <- main caller, its share if not all",
    list(shares = rows[c("self_share", "total_share")], amount = format_amount(rows$self, unit)),
    c("self%", "total%", "self"),
    paste0(shown(rows$name), from)
  )
}

description_lines <- function(rows, unit, shown) {
  place <- paste0(shown(file_name(rows$filename)), ":", rows$line)
  description_table(
    "line",
    list(shares = rows[c("self_share", "total_share")], amount = format_amount(rows$total, unit)),
    c("self%", "total%", "total"),
    trimws(paste0(format(place), "  ", ifelse(is.na(rows$text), "", shown(trimmed(rows$text)))), "right")
  )
}

# Frames that are no functions: garbage collections, copies and finalizers. They belong to no package. Garbage collections and
# copies have a line of their own.
frames_of_r <- c("<GC>", "<copy>", "<finalizer>")

# `own`: the share of the user's own code, which has no package.
description_packages <- function(packages, own, least, unit, n, shown) {
  rows <- packages[!packages$package %in% frames_of_r, ]
  unknown <- which(is.na(rows$package))
  rows$package <- ifelse(is.na(rows$package), "(unknown)", shown(rows$package))
  if (length(unknown) == 1 && isTRUE(own > 0 & rows$self_share[unknown] > 0)) {
    part <- min(own / rows$self_share[unknown], 1)
    of <- function(part, name) {
      row <- rows[unknown, ]
      row[c("self", "self_share")] <- row[c("self", "self_share")] * part
      row$package <- name
      row
    }
    rows <- rbind(rows[-unknown, ], of(part, "(your code)"), of(1 - part, "(unknown)"))
    rows <- rows[order(-abs(rows$self_share)), ]
  }
  # A tolerance for rounding errors.
  rows <- rows[abs(rows$self_share) >= max(least, 1e-9), ]
  # A single row is not informative.
  if (nrow(rows) < 2 || n < 1) {
    return()
  }
  rows <- utils::head(rows, half(n))
  description_table(
    "package",
    list(shares = rows["self_share"], amount = format_amount(rows$self, unit)),
    c("self%", "self"),
    rows$package
  )
}

description_labels <- function(labels, unit, n, least, shown) {
  unlist(lapply(names(labels), function(key) {
    rows <- utils::head(labels[[key]][abs(labels[[key]]$total_share) >= least, ], n)
    description_table(
      key,
      list(shares = rows["total_share"], amount = format_amount(rows$total, unit)),
      c("total%", "total"),
      ifelse(is.na(rows[[key]]), if (key == "waits_for") "(computes)" else "(none)", shown(rows[[key]]))
    )
  }))
}

# How often functions were called, and the time of each call.
description_calls <- function(calls, n, shown) {
  rows <- utils::head(calls, n)
  if (NROW(rows) == 0) {
    return()
  }
  each <- ifelse(is.na(rows$time_per_call), "", format_value(1e9 * rows$time_per_call, "nanoseconds"))
  each <- format(c("each", each), justify = "right")
  number <- format(c("calls", vapply(rows$calls, format_count, "")), justify = "right")
  c("", paste0("  ", number, "  ", each, "  ", c("function whose calls were counted", shown(rows$name))))
}

description_memory <- function(parts, n, least, width, shown) {
  memory <- parts$allocated
  table <- function(memory, before, after = NULL) {
    rows <- memory$functions
    whole <- sum(abs(rows$self_alloc))
    rows <- utils::head(rows[abs(rows$self_alloc) >= least * whole, ], half(n))
    if (whole > 0 && nrow(rows) > 0) {
      description_table(
        paste0("allocated by itself, of ", before, format_amount(memory$bytes, "bytes"), after),
        list(shares = list(rows$self_alloc / whole), amount = format_amount(rows$self_alloc, "bytes")),
        c("self%", "self"),
        shown(rows$name)
      )
    }
  }
  c(
    if (!is.null(parts$gc)) {
      c("", paste0(
        "Garbage collection", if (!is.null(parts$gc$process)) paste0(" of ", shown(toString(parts$gc$process))),
        ": ", trimws(percent(parts$gc$self_share)), "% (",
        format_amount(parts$gc$self, parts$run$unit), " ", shown_label(parts$run$type), ")"
      ))
    },
    description_loading(parts$loading, parts$run, width, shown),
    description_copying(parts$copying, parts$run, width, shown),
    # Exact bytes are shown instead of a lower bound.
    if (!is.null(memory) && !isTRUE(memory$recorded$complete)) {
      table(memory, if (memory$at_least) "at least ", if (memory$exact) ", each vector recorded")
    },
    if (!is.null(memory$recorded)) table(memory$recorded, NULL, ", each vector recorded")
  )
}

# The places with the most copies are shown, if they are a considerable part of the allocated memory.
most_copies <- 3
least_copied <- 0.05

description_copying <- function(copying, run, width, shown) {
  if (isTRUE(copying$self_share > least_copied)) {
    place <- described_place(tibble::as_tibble(copying), shown)
    text <- paste0(
      trimws(percent(copying$self_share)), "% (", format_amount(copying$self, run$unit), " ", shown_label(run$type),
      "), most in ", place
    )
    wrap("Copying: ", text, width)
  }
}

# The line of code with its text, or the function.
described_place <- function(rows, shown) {
  has_line <- !is.na(rows$filename)
  place <- ifelse(has_line, paste0(shown(file_name(rows$filename)), ":", rows$line), paste0("`", shown(rows$name), "`"))
  code <- ifelse(is.na(rows$text), "", paste0(" `", shown_name(trimmed(rows$text), 60, ellipsis = "~"), "`"))
  paste0(place, gsub("(?<=.) ", "\u00a0", code, perl = TRUE))
}

# The peak is shown if it is considerable, or if there is a snapshot of it.
least_peak <- 1e7

description_at_peak <- function(peak, n, width, shown) {
  if (is.null(peak) || (peak$bytes < least_peak && is.null(peak$snapshot))) {
    return()
  }
  rows <- utils::head(peak$places[peak$places$bytes > least_copied * peak$bytes, ], min(most_copies, n))
  head <- paste0(
    bytes_text(peak$bytes), " allocated and not freed yet",
    if (!is.na(peak$seconds)) paste(" after", format_seconds(peak$seconds)), ", garbage included",
    if (isTRUE(peak$collected > 0)) paste0("; at most ", bytes_text(peak$collected), " right after a garbage collection")
  )
  text <- c(
    head, paste(described_place(rows, shown), "allocated", bytes_text(rows$bytes), "of it"),
    if (!is.null(peak$snapshot)) description_of_snapshot(peak$snapshot, shown)
  )
  title <- paste0("Peak", if (!is.null(peak$process)) paste0(" of ", shown(peak$process)))
  c("", title, unlist(lapply(text, function(line) wrap("  ", line, width))))
}

description_of_snapshot <- function(snapshot, shown) {
  others <- sort(snapshot$others, decreasing = TRUE)
  others <- others[others >= snapshot$bytes / 100]
  held <- snapshot$held
  verb <- rep(c("held by", "by"), c(1, most_copies))[seq_len(nrow(held))]
  held <- paste(bytes_text(held$retained), verb, shown(held$held_by), recycle0 = TRUE)
  others <- paste(bytes_text(others), names(others), recycle0 = TRUE)
  parts <- c(paste(held, collapse = ", "), paste(others, collapse = ", "))
  paste0("the snapshot has ", bytes_text(snapshot$bytes), ": ", paste(parts[nzchar(parts)], collapse = "; "))
}

description_copies <- function(copies, n, width, shown) {
  rows <- utils::head(copies[copies$share > least_copied, ], min(most_copies, n))
  if (nrow(rows) == 0) {
    return()
  }
  number <- ifelse(
    rows$grows | rows$converts,
    paste0(vapply(rows$copies, count_of, "", "vector", "vectors"), ifelse(rows$grows, " of rising size", "")),
    vapply(rows$copies, count_of, "", "copy", "copies")
  )
  count <- ifelse(rows$copies > 0, paste0(" in ", number), "")
  reason <- ifelse(is.na(rows$reason), "", paste0(": ", shown_name(rows$reason, 200, ellipsis = "~")))
  verb <- ifelse(rows$grows, " grows an object: ", ifelse(rows$converts, " converted to another type: ", " copied "))
  text <- paste0(described_place(rows, shown), verb, format_amount(rows$bytes, "bytes"), count, reason)
  c("", "Copies", unlist(lapply(text, function(line) wrap("  ", line, width))))
}
