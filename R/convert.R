# Converts between the two versions of the tables.

#' Convert between versions of the tables
#'
#' @description
#' `profile_v2_from_v1()` converts a profile from version 1.0 of the tables to version 2.0,
#' `profile_v1_from_v2()` from 2.0 to 1.0. [profile_data] describes both versions.
#'
#' @details From 1.0 to 2.0, everything that version 1.0 documents is kept. A sample with a `value` of n
#' becomes n samples, each with the value 1 of type `samples` and unit `count`. All samples belong to one
#' source, with type `"rprof"` if there is a hidden component `.rprof`, `"pprof"` if there is a component
#' `.msg`, otherwise `"manual"`, and the URI `NA`. Interval and options from the header in `.rprof` become
#' columns of `sources`, its `#File` lines the table `.files`, and comments in `.msg` the table `.comments`.
#' If there are several headers, as in a file written with `append = TRUE`, each further one becomes a
#' source without samples, since version 1.0 does not record which sample belongs to which run.
#'
#' From 2.0 to 1.0, each sample becomes one row, in the same order; equal stacks are not aggregated. `value` is the
#' value of type `samples` and unit `count`, or else of the first type with the unit `count`; samples with the value 0
#' are left out. Headers and `#File` lines of Rprof sources become `.rprof`, otherwise comments become `.msg`; if all
#' sources are `"manual"`, neither component exists. Other types, labels, sources and their times, and all other columns
#' and tables with a leading dot cannot be represented.
#'
#' In both directions ids are assigned anew. Columns and tables of your own, and text in `.rprof` that
#' `Rprof()` does not write, are left out.
#'
#' @param x A profile, or a dm of its tables. A profile of the requested version is returned unchanged.
#'
#' @return A profile of the other version.
#'
#' @section Errors:
#' `profile_error_invalid` if `x` is not valid. For `profile_v1_from_v2()` also `profile_error_lossy` if no
#' type has the unit `count`, or a count is not an integer in R's range.
#' @export
#' @examples
#' path <- system.file("samples/rprof/1.out", package = "profile")
#' old <- read_rprof(path, version = "1.0")
#' new <- profile_v2_from_v1(old)
#' new$samples
#' profile_v1_from_v2(new)$samples
profile_v2_from_v1 <- function(x) {
  as_version(x, "2.0", rlang::current_env())
}

#' @rdname profile_v2_from_v1
#' @export
profile_v1_from_v2 <- function(x) {
  as_version(x, "1.0", rlang::current_env())
}

# The tables of a profile or dm, checked, and converted to `version` if necessary.
as_version <- function(x, version, call) {
  x <- as_profile(x, call)
  other <- if (version == "2.0") "1.0" else "2.0"
  if (!identical(profile_version(x), other)) {
    rust(rust_validate(x), call)
    return(x)
  }
  tables <- rust(rust_convert(x, version, lazy_columns(call)), call)
  # Problems found while reading are kept. In version 1.0 they have no source.
  problems <- x[[".problems"]]
  if (!is.null(problems)) {
    problems$source_id <- NULL
    tables$.problems <- tibble::tibble(source_id = if (version == "2.0") 1L, problems)
  }
  mark_session_of(new_profile_data(tables, version), list(x))
}
