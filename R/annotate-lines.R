# The figures of the lines of a source file, and how they print: the code with its time.

#' Show the code of a file with the time of each line
#'
#' @description
#' `annotate_lines()` returns the lines of one source file with their self and total, and with their text if it is
#' available: in the profile, or in a file that [add_source_text()] may read.
#'
#' Printed, they are code with figures: the lines with the largest totals, and a few lines around them. If counts of
#' samples are summed, and their interval is known, totals are times. `self%` counts the samples in which no frame further
#' inside has a line (for source files, lines of the deparsed text of packages do not count), and `alloc` is the memory that was allocated in them, see [summary()][summary.profile_data()]. It is
#' marked as *at least* if R's profiler has measured memory at each sample. If each vector was recorded, see
#' [`record_profile(memory = "exact")`][record_profile()], the amounts are exact: `copied` is the part of `alloc` that was
#' copied from other vectors, and `in use` the part that was still in use at the end of the recording.
#'
#' @param x A profile, see [profile_data], or the path of its file, for [read_profile()]. For `print()` and `format()`,
#'   the lines of a file.
#' @param file A file of the profile, or the end of its path, if it is unique; or a function of a package, such as
#'   `"stats::lm"`, whose lines [record_profile()] finds without its source files. The default is the file whose lines have
#'   the greatest self, regardless of its sign.
#' @param ... Must be empty. For `print()`, arguments of `format()`.
#' @param n The number of lines to print, by default 50; `Inf` for all.
#' @param width The width of the lines, by default the width of the console.
#' @param type The sample type to sum, as in [summary()][summary.profile_data()].
#'
#' @return A tibble of class `profile_lines` with the columns `line`, `text` (`NA` if unknown), the figures of `summary(x)$by_line` (`self`,
#'   `total`, `self_share`, `total_share`, ...), `copied` and `in_use`, in bytes, if each vector was recorded, and
#'   `filename`. If the text is known, it has a row for each line of the
#'   text, with 0 if nothing was recorded, and one row for each line with samples that is missing from the text.
#'   Otherwise it has a row for each line with samples.
#'
#'   The attributes `type`, `unit`, `sum`, `whole`, `at_least`, `sum_at_least` and `since_previous` are those of the summary, and `changed` is the value of this column
#'   in [add_source_text()]. `format()` returns a string for each line of text, `print()` returns `x`, invisibly.
#' @section Errors:
#' - `profile_error_argument` if the profile has no lines of `file`, or if the paths of several files end with it;
#' - the errors of [summary()][summary.profile_data()].
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#' annotate_lines(x, "sales.R")
#'
#' # As a table
#' as_tibble(annotate_lines(x, "sales.R"))
annotate_lines <- function(x, file = NULL, ..., type = NULL) {
  call <- call_without_dots()
  check_type(type, call)
  x <- as_unchecked_v2(x, call)
  summary <- summary_of(x, type, call)
  figures <- summary$by_line
  no_lines <- all_zero(summary) %||% c("The profile has no lines of files.", i = hint_for(x, summary))
  file <- find_file(file, figures, no_lines, call)
  figures <- figures[figures$filename == file, ]
  figures <- figures[order(figures$line), ]
  ended <- end_of_recording(x, attr(summary, "time"))
  source <- with_source_text(x, ended, call, only = file)$.source_text
  source <- source[match(file, source$filename), ]
  text <- strsplit(source$text, "\n", fixed = TRUE)[[1]]
  known <- !is.na(source$text)
  # A profile can have lines that the text lacks.
  line <- if (known) sort(union(seq_along(text), figures$line)) else figures$line
  row <- match(line, figures$line)
  columns <- as.list(figures[setdiff(names(figures), c("filename", "line"))])
  columns <- c(columns, recorded_bytes(x, summary, figures, call))
  columns <- lapply(columns, function(column) {
    column <- column[row]
    column[is.na(row)] <- 0
    column
  })
  lines <- c(list(line = line, text = text[line]), columns, list(filename = rep(file, length(line))))
  sums <- attributes(summary)[c("type", "unit", "sum", "whole", "at_least", "sum_at_least", "since_previous")]
  rlang::inject(tibble::new_tibble(
    lines,
    nrow = length(line), !!!sums, changed = source$changed, class = "profile_lines"
  ))
}

# Bytes of vectors that were copied on these lines, and that are still in use, if each vector was recorded.
recorded_bytes <- function(x, summary, figures, call) {
  if (!attr(summary, "exact_memory")) {
    return(list())
  }
  roles <- c(copied = "copies", in_use = "in use")
  types <- lapply(roles, function(role) types_with_role(attr(summary, "types")$type, role, "bytes"))
  types <- unlist(lapply(types, utils::head, 1))
  types <- types[types != attr(summary, "type")]
  lapply(types, function(type) {
    lines <- summary_of(x, type, call)$by_line
    bytes <- lines$self[match(place_of(figures), place_of(lines))]
    ifelse(is.na(bytes), 0, bytes)
  })
}

place_of <- function(lines) paste0(lines$line, " ", lines$filename)

# `no_lines`: the message if there are none.
find_file <- function(file, figures, no_lines, call) {
  check_text(file, "file", call)
  files <- unique(figures$filename)
  if (length(files) == 0) {
    abort_argument(gsub("\u00a0", " ", no_lines, fixed = TRUE), call)
  }
  if (is.null(file)) {
    return(c(files_by_time(figures), files)[[1]])
  }
  path <- gsub("\\", "/", c(file, files), fixed = TRUE)
  at_end <- files[endsWith(paste0("/", path[-1]), paste0("/", path[[1]]))]
  # A file, or a function of a package, such as `stats::lm`.
  found <- utils::head(intersect(c(file, paste0("<", file, ">")), files), 1)
  if (length(found) == 0) found <- at_end
  if (length(found) != 1) {
    problem <- if (length(found) == 0) "no lines of" else "several files that end with"
    # Files that hardly any time was spent in are rarely meant.
    choices <- if (length(found) == 0) unique(c(files_by_time(figures), files)) else found
    wanted <- if (length(found) == 0) max(1, length(files_by_time(figures))) else length(found)
    shown <- utils::head(choices, min(5, wanted))
    abort_argument(c(
      paste0("The profile has ", problem, " `", file, "`."),
      i = paste0("Files: ", paste0("`", shown, "`", collapse = ", "), if (length(shown) < length(choices)) ", ...", ".")
    ), call)
  }
  found
}

# The files of lines, those with the greatest self first, without those that have less than 1 % of the whole.
files_by_time <- function(lines) {
  share <- lines[["total_share"]] %||% rep(1, nrow(lines))
  largest <- vapply(split(abs(share), factor(lines$filename, unique(lines$filename))), max, 0)
  self <- rowsum(abs(lines$self), lines$filename, reorder = FALSE)[names(largest), ]
  files <- names(largest)[order(-self, -largest)]
  files[largest[files] >= 0.01 & !is.na(largest[files])]
}

# ---- Printing ----------------------------------------------------------------------

#' @rdname annotate_lines
#' @export
format.profile_lines <- function(x, ..., n = NULL, width = NULL) {
  text_of_table(x, n, width, is_whole_file(x), text_of_lines)
}

text_of_lines <- function(x, n, width) {
  shown <- lines_to_show(x, n)
  c(
    shorten(lines_head(x), width, "middle"),
    if (length(shown) > 0) lines_text(x, shown, width),
    format_since_previous(x, width) %||% format_bound(x, width),
    if (isTRUE(attr(x, "changed"))) {
      wrap("", "The file was changed after the profile was recorded, so lines may differ.", width)
    },
    if (all(is.na(x$text))) wrap("", "The text of the file is not known, see `?add_source_text`.", width)
  )
}

format_bound <- function(x, width) {
  if (isTRUE(attr(x, "at_least")) && any(x[["self_alloc"]] != 0)) {
    wrap("", paste("`alloc` is a lower bound.", exact_memory), width)
  }
}

#' @export
as_tibble.profile_lines <- function(x, ...) without_class(x)

is_whole_file <- function(x) {
  columns <- c("line", "text", "self", "total", "self_share", "total_share", "filename")
  all(columns %in% names(x)) && is.numeric(attr(x, "whole")) && length(unique(x$filename)) == 1 &&
    !is.unsorted(x$line, strictly = TRUE)
}

lines_head <- function(x) {
  amount <- if (!has_times(x)) {
    paste0(at_least(x), format_amount(sum(x$self), attr(x, "unit")), " of ", shown_label(attr(x, "type")))
  } else {
    format_amount(1e9 * sum(x$self_time), "nanoseconds")
  }
  share <- if (attr(x, "whole") > 0) paste0(", ", trimws(percent(sum(x$self_share))), "%")
  paste0("<lines of ", shown_name(x$filename[[1]], most_characters), "> self: ", amount, share)
}

# Whether times are shown instead of the values, which is useful for counts of samples.
has_times <- function(x) {
  !is.null(x[["self_time"]]) && identical(attr(x, "type"), "samples")
}

# The rows with the largest totals, with two lines before and after each of them.
lines_to_show <- function(x, n) {
  if (nrow(x) <= n) {
    return(seq_len(nrow(x)))
  }
  shown <- integer()
  is_used <- is_used_line(x)
  # Lines that only allocated come last.
  for (row in order(-abs(x$total), -bytes_of_line(x), x$line)) {
    if (!is_used[[row]]) {
      break
    }
    around <- which(abs(x$line - x$line[[row]]) <= 2)
    more <- union(shown, around)
    if (length(more) > n) {
      # At least the line itself.
      more <- union(shown, row)
    }
    if (length(more) > n) {
      break
    }
    shown <- more
  }
  sort(shown)
}

# Whether a line has figures, which may be bytes only.
is_used_line <- function(x) {
  x$total != 0 | x$self != 0 | bytes_of_line(x) != 0
}

bytes_of_line <- function(x) {
  columns <- intersect(c("self_alloc", "copied", "in_use"), names(x))
  Reduce(function(sum, column) sum + abs(x[[column]]), columns, rep(0, length(x$line)))
}

lines_text <- function(x, shown, width) {
  rows <- lapply(as.list(x), function(column) column[shown])
  is_used <- is_used_line(rows)
  column <- function(head, text) format(c(head, ifelse(is_used, text, "")), justify = "right")
  bytes <- function(head, values) {
    if (any(values != 0)) column(head, ifelse(values == 0, "", format_amount(values, "bytes")))
  }
  columns <- list(
    format(c("line", rows$line), justify = "right"),
    column("total%", trimws(percent(rows$total_share))),
    column("self%", trimws(percent(rows$self_share))),
    column("total", if (has_times(x)) {
      format_amount(1e9 * rows$total_time, "nanoseconds")
    } else {
      format_amount(rows$total, attr(x, "unit"))
    }),
    if (!identical(rows$self_alloc, rows$self)) {
      bytes(if (isTRUE(attr(x, "at_least"))) "alloc at least" else "alloc", rows$self_alloc)
    },
    bytes("copied", rows[["copied"]]),
    bytes("in use", rows[["in_use"]])
  )
  figures <- do.call(paste, c(list(""), columns[lengths(columns) > 0]))
  space <- max(width - nchar(figures[[1]]) - 3, 10)
  # Indentation with tabs as blanks.
  code <- gsub("\t", "  ", cut_text(valid_text(rows$text), most_characters, "end"), fixed = TRUE)
  code <- ifelse(is.na(rows$text), "", shown_name(code, space))
  lines <- trimws(paste0(figures[-1], "   ", code), "right")
  gaps <- diff(c(0, shown, nrow(x) + 1)) - 1
  left_out <- ifelse(gaps > 0, paste0(" ... ", vapply(gaps, count_of, "", "line")), NA)
  lines <- as.vector(rbind(left_out, c(lines, NA)))
  c(paste0(figures[[1]], "   code"), lines[!is.na(lines)])
}
