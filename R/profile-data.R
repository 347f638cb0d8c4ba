# The classes: constructor, summary, as_tibble. How they look is in print.R.

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
#' @section What is counted:
#' A sample is counted if it has a stack, that is at least one frame, and a value of the type
#' that is summed. Left out are samples without a stack, which a memory profile records while
#' no function runs and a filter can leave behind, and samples that have values of other types
#' only, as in profiles that were combined. [print()][print.profile_data()] shows the same figures and
#' how many samples are left out.
#'
#' The memory that is in use at each sample (`vsize_small`, `vsize_large` and `nodes` of [Rprof()])
#' cannot be summed: to add up levels of several moments means nothing. What was
#' allocated is in `alloc_size`.
#'
#' @param object A profile, see [profile_data].
#' @param ... Must be empty.
#' @param type The sample type to sum, such as `"samples"` or `"alloc_space"`. By
#'   default the one that counts samples, else the one a viewer shows first, else the last one
#'   that can be summed.
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
#'
#'   Attributes say what was summed: `type` and `unit`; `sum`; and `counted`, a list of
#'   `samples`, how many are counted, `sum`, their sum, `without_stack` and `sum_without_stack`,
#'   the same of those that have a value but no stack, and `without_value`, how many have no value
#'   of the type.
#'
#' @section Errors:
#' `profile_error_unsupported` when the profile has no values of `type`, or when they cannot be
#' summed; `profile_error_invalid` when `object` breaks a rule; `profile_error_argument` when `type` is
#' no string.
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
  sums <- rust(rust_summarise(as_profile(object, call), type), call)
  counted <- as.list(rlang::set_names(sums$counted, counted_fields))
  structure(
    list(
      by_function = finish_figures(sums$by_function, counted$sum),
      by_line = finish_figures(sums$by_line, counted$sum)
    ),
    class = "profile_summary",
    type = sums$type,
    unit = sums$unit,
    types = sums$types,
    sum = counted$sum,
    counted = counted,
    time = if (length(sums$time) == 1) sums$time / 1e9
  )
}

# As the core gives them.
counted_fields <- c("samples", "sum", "without_stack", "sum_without_stack", "without_value")

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
  rust(rust_frames(as_profile(x, call)), call)
}

#' @importFrom tibble as_tibble
#' @export
tibble::as_tibble
