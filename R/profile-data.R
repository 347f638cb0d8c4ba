# The classes: constructor, print, format, summary, as_tibble.

new_profile_data <- function(tables, version) {
  class <- if (version == "2.0") c("profile_v2", "profile_data") else "profile_data"
  structure(tables, class = class)
}

# The version that `meta` says, NA where it says none.
profile_version <- function(x) {
  meta <- x[["meta"]]
  if (!is.data.frame(meta)) {
    return(NA_character_)
  }
  value <- meta[["value"]][match("version", meta[["key"]])]
  if (is.null(value)) NA_character_ else as.character(value)
}

#' @export
print.profile_data <- function(x, ...) {
  cat(format(x, ...), sep = "\n")
  invisible(x)
}

#' @export
format.profile_data <- function(x, ..., n = 5) {
  rlang::check_dots_empty()
  version <- profile_version(x)
  head <- paste0("<profile ", version, ">")
  summary <- tryCatch(summary(x), profile_error = identity)
  if (inherits(summary, "profile_error")) {
    # Somebody is editing it, and looks at what there is.
    return(c(head, format_tables(x), paste0("Not valid: ", conditionMessage(summary))))
  }
  c(
    head,
    paste0("Samples:   ", format_samples(x, summary)),
    if (version == "2.0") format_types(attr(summary, "types")),
    if (version == "2.0") format_sources(x$sources),
    format_hottest(summary$by_function, n, attr(summary, "type")),
    format_problems(x)
  )
}

format_tables <- function(x) {
  tables <- Filter(is.data.frame, unclass(x))
  rows <- format(vapply(tables, nrow, 0L), big.mark = ",")
  paste0("  ", format(names(tables)), "  ", rows, " rows")
}

format_count <- function(n) {
  format(n, big.mark = ",", trim = TRUE, scientific = FALSE)
}

format_samples <- function(x, summary) {
  time <- attr(summary, "time")
  sum <- attr(summary, "sum")
  # Aggregated profiles count several in one row.
  counted <- if (attr(summary, "type") == "samples" && sum > nrow(x$samples)) {
    paste0(" rows, ", format_count(sum), " samples")
  }
  paste0(
    format_count(nrow(x$samples)), counted,
    if (!is.null(time)) paste0(", ", format_seconds(time)),
    ", ", format_count(nrow(summary$by_function)), " functions"
  )
}

format_seconds <- function(seconds) {
  paste(format(signif(seconds, 3), big.mark = ",", trim = TRUE, scientific = FALSE), "s")
}

format_types <- function(types) {
  if (nrow(types) == 0) {
    return()
  }
  words <- paste0(types$type, "\u00a0(", types$unit, ")", collapse = ", ")
  lines <- strwrap(words, width = 75, initial = "Values:    ", prefix = "           ")
  gsub("\u00a0", " ", lines, fixed = TRUE)
}

format_sources <- function(sources) {
  shown <- utils::head(sources, 3)
  uri <- ifelse(is.na(shown$source_uri), "", paste0(" ", shown$source_uri))
  more <- nrow(sources) - nrow(shown)
  lines <- c(
    paste0(shown$source_type, uri),
    if (more > 0) paste0("and ", more, " more")
  )
  paste0(c("Sources:   ", rep("           ", length(lines)))[seq_along(lines)], lines)
}

format_hottest <- function(by_function, n, type) {
  if (nrow(by_function) == 0) {
    return("No function was seen running.")
  }
  shown <- utils::head(by_function, n)
  percent <- function(share) {
    formatC(100 * share, format = "f", digits = 1, width = 5)
  }
  name <- ifelse(is.na(shown$name), "<unknown>", shown$name)
  more <- nrow(by_function) - nrow(shown)
  c(
    paste0("  self%  total%  function", if (type != "samples") paste0(", by ", type)),
    paste0("  ", percent(shown$self_share), "   ", percent(shown$total_share), "  ", name),
    if (more > 0) paste0("                 and ", format_count(more), " more, see `summary()`")
  )
}

format_problems <- function(x) {
  n <- NROW(x[[".problems"]])
  if (n > 0) {
    paste0("Problems:  ", format_count(n), ", see `profile_problems()`")
  }
}

#' Where the time went
#'
#' Self and total of every function and every line: *self* is what fell on the
#' innermost frame, the code that was running; *total* also counts what it
#' called. A function that is on a stack more than once counts once there.
#'
#' The figures are those of [summaryRprof()], where that is right: it takes names
#' with blanks apart, knows one interval only, and counts the header of a
#' second run as a sample.
#'
#' @param object A profile, see [profile_data].
#' @param ... Must be empty.
#' @param type The sample type to sum, such as `"samples"` or `"alloc_space"`. By
#'   default the one that counts samples, else the one a viewer shows first.
#'
#' @return A list of class `profile_summary` with two tibbles, the greatest self
#'   first:
#'   \describe{
#'   \item{by_function}{`name` and the figures below. Functions of the same name
#'     in several files are one row; `NA` stands for addresses without a symbol.}
#'   \item{by_line}{`filename`, `line` and the figures below, for frames that have
#'     a line. Self counts the innermost frame that has one.}
#'   }
#'   The figures are double: `self` and `total` in the unit of the type (samples);
#'   `self_share` and `total_share`, from 0 to 1, of all samples that have a
#'   frame; `self_time` and `total_time` in seconds, where the sampling period is
#'   known; and for memory profiles `self_alloc` and `total_alloc` in bytes.
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#' summary(x)
#' summary(x)$by_line
summary.profile_data <- function(object, ..., type = NULL) {
  rlang::check_dots_empty()
  call <- rlang::current_env()
  if (!is.null(type) && !is_text(type)) {
    abort_argument("`type` must be one string, the name of a sample type.", call)
  }
  sums <- rust(.Call(C_summarise, as_profile(object, call), type), call)
  structure(
    list(
      by_function = finish_figures(sums$by_function, sums$sum),
      by_line = finish_figures(sums$by_line, sums$sum)
    ),
    class = "profile_summary",
    type = sums$type,
    unit = sums$unit,
    types = sums$types,
    sum = sums$sum,
    time = if (length(sums$time) == 1) sums$time / 1e9
  )
}

# Shares beside the sums; seconds for the core's nanoseconds.
finish_figures <- function(table, sum) {
  keys <- setdiff(names(table), c("self", "total", grep("_", names(table), value = TRUE)))
  shares <- tibble::tibble(
    self_share = table$self / sum,
    total_share = table$total / sum
  )
  for (column in intersect(c("self_time", "total_time"), names(table))) {
    table[[column]] <- table[[column]] / 1e9
  }
  rest <- setdiff(names(table), c(keys, "self", "total"))
  tibble::as_tibble(c(table[c(keys, "self", "total")], shares, table[rest]))
}

#' @export
print.profile_summary <- function(x, ...) {
  cat(format(x, ...), sep = "\n")
  invisible(x)
}

#' @export
format.profile_summary <- function(x, ...) {
  # A long path would push everything else out of sight.
  place <- paste0(basename(x$by_line$filename), ":", x$by_line$line)
  by_place <- x$by_line
  by_place$line <- NULL
  names(by_place)[[1]] <- "place"
  by_place$place <- place
  c(
    paste0(
      "<profile summary> ", format_count(attr(x, "sum")), " ", attr(x, "type"),
      " (", attr(x, "unit"), ")"
    ),
    "By function:",
    format(x$by_function, ...),
    if (nrow(x$by_line) > 0) c("By line:", format(by_place, ...))
  )
}

#' A profile as one flat table
#'
#' One row for each frame of each sample, with names instead of ids: for a look,
#' a join or a plot. The tables of the profile itself are smaller and keep more.
#'
#' @param x A profile, see [profile_data].
#' @param ... Must be empty.
#'
#' @return A tibble with the columns `sample_id`, `source_id` and `depth`
#'   (integer), `name` and `filename` (character), and `line` (integer), ordered
#'   by sample and depth. Samples and sources are numbered from 1 in their order.
#'   A sample without frames has no row.
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#' as_tibble(x)
as_tibble.profile_data <- function(x, ...) {
  rlang::check_dots_empty()
  call <- rlang::current_env()
  rust(.Call(C_frames, as_profile(x, call)), call)
}

#' @importFrom tibble as_tibble
#' @export
tibble::as_tibble
