# Lazy tables of a store: the engine filters and sums, and the sums become an ordinary profile (dataset-read.R).

#' Query profiles in a database or a data set
#'
#' @description
#' `tbl_profile()` returns the tables of a store, see [store_profiles()], for the rows that you select. The engine computes
#' the results of verbs of dplyr on these tables. `dplyr::collect()` loads the selection as an ordinary profile of version
#' 2.0, whose samples the engine has summed up: one for each stack and set of labels of a run. [read_profile()] does the
#' same for users who do not use dplyr.
#'
#' @details
#' In a condition, calls without a column are evaluated in R, as in `minute >= Sys.time() - 3600`, and the engine evaluates
#' the rest: comparisons, `%in%`, and what its package for dplyr translates. Compare `minute` and `run_start` with times,
#' not with texts: in SQLite they are texts such as `2026-01-31T10:00:00Z`.
#'
#' `summary()` lets the engine sum by stack, and summarises the result like [summary.profile_data()].
#'
#' A source of the profile is a run of a service, with its version and host, so that [compare_profiles()] counts the runs.
#' A large data set needs a condition on `day`: whole folders are skipped then.
#'
#' SQLite does not wait for writers by default. Since the tables are read later, `tbl_profile()` sets the busy timeout of an
#' SQLite connection to one minute, unless it is longer already.
#'
#' @inheritParams store_profiles
#' @param from A connection to a database; the path of a data set; a list of its tables `samples`, `frames` and, optionally,
#'   `labels` on any engine that dplyr supports; or a value of `tbl_profile()`.
#' @param ... For `tbl_profile()` and `filter()`, conditions on the columns of `samples`, as in `dplyr::filter()`. For
#'   `print()`, arguments of `format()`. Otherwise, must be empty.
#' @param object,x,.data A value of `tbl_profile()`.
#' @param n The number of services to show, by default 3; `Inf` for all.
#' @param width The width of the lines, by default the width of the console.
#' @param type The sample type to sum, by default that of [summary.profile_data()].
#'
#' @return `tbl_profile()` and `filter()`: a list of class `tbl_profile` with the lazy tables `samples`, `frames` and
#'   `labels`.
#'
#'   `collect()`: a profile of version 2.0. `summary()`: a summary, as of a profile.
#'
#'   `print()`: `x`, invisibly. `format()`: a character vector, a string for each line.
#'
#' @section Errors:
#' - `profile_error_open` if the database or folder contains no profiles or cannot be read, or the engine does not know a
#'   function in a condition;
#' - `profile_error_argument` if a condition cannot be evaluated, or `from` is something else;
#' - `profile_error_unsupported` if another version of this package has created the store in another layout, or a package
#'   is not installed.
#' @export
#' @examplesIf rlang::is_installed(c("DBI", "RSQLite", "dplyr", "dbplyr"))
#' con <- DBI::dbConnect(RSQLite::SQLite())
#' path <- system.file("samples/rprof/1.out", package = "profile")
#' for (version in c("2.2", "2.3")) {
#'   about <- c(service.name = "report", service.version = version)
#'   store_profiles(path, con, resource = about)
#' }
#'
#' runs <- tbl_profile(con, service == "report")
#' runs
#' summary(runs)
#' read_profile(dplyr::filter(runs, version == "2.3"))
#'
#' # Any question, computed by the database
#' dplyr::count(runs$samples, version, wt = sample_count)
#' DBI::dbDisconnect(con)
tbl_profile <- function(from, ..., schema = NULL) {
  call <- rlang::current_env()
  if (missing(from)) {
    abort_missing("from", call, i = "It is a connection of DBI, or the path of a data set.")
  }
  selected_tables(from, rlang::enquos(...), call, schema)
}

selected_tables <- function(from, conditions, call, schema = NULL) {
  need_package("dplyr", call)
  structure(dataset_tables(from, conditions, call, schema), class = "tbl_profile")
}

#' @rdname tbl_profile
#' @exportS3Method dplyr::filter
filter.tbl_profile <- function(.data, ...) {
  selected_tables(.data, rlang::enquos(...), rlang::current_env())
}

#' @rdname tbl_profile
#' @exportS3Method dplyr::collect
collect.tbl_profile <- function(x, ...) {
  call <- call_without_dots()
  profile_of_dataset(x, call)
}

#' @rdname tbl_profile
#' @export
summary.tbl_profile <- function(object, ..., type = NULL) {
  call <- call_without_dots()
  check_type(type, call)
  if (!is.null(type)) {
    .data <- rlang::.data
    object$samples <- dplyr::filter(object$samples, .data$sample_type == !!type)
  }
  # Neither labels nor runs matter, but the time of samples does.
  sampled <- setdiff(origin_columns, c("service", "version", "host", "run_start", "run"))
  x <- profile_of_dataset(object, call, by = c(sampled, "sample_type", "unit", "stack_key"))
  summary(x, type = type)
}

#' @rdname tbl_profile
#' @export
format.tbl_profile <- function(x, ..., n = NULL, width = NULL) {
  call <- text_call()
  n <- check_shown(n, call) %||% 3
  width <- line_width(width, call)
  shorten(format_dataset(x, width, n), width)
}
