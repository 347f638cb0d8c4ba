# Between the two versions of the tables.

#' Convert between versions of the tables
#'
#' @description
#' `profile_v2_from_v1()` gives the tables of version 2.0 for a profile of version
#' 1.0, `profile_v1_from_v2()` the other way round. See [profile_data] for both.
#'
#' @details
#' From 1.0 to 2.0 nothing is lost that version 1.0 documents. A sample with a `value` of n becomes n
#' samples, each with the value 1 of type `samples` in `count`. All samples are
#' of one source; its type is `"rprof"` or `"pprof"`, by the hidden component `.rprof` or
#' `.msg`, else `"manual"`, its URI is `NA`. What the header in `.rprof` states, the sampling
#' interval and the options, stands in columns with a leading dot, its `#File` lines in
#' `.files`, comments in `.msg` in `.comments`. Of several headers, as a file written with
#' `append = TRUE` has them, each further one becomes a source without samples, since
#' version 1.0 does not say which samples are whose.
#'
#' From 2.0 to 1.0 each sample becomes one row, also where its neighbours have the
#' same stack, in its order. `value` is the value of type `samples` in `count`, or
#' else of the first type that is in `count`; samples where it is 0 are left out.
#' Headers and `#File` lines of Rprof sources become `.rprof`, else comments become
#' `.msg`; a profile whose sources are all `"manual"` has neither. Other types, labels, sources
#' and their times, and all else with a leading dot, have no place in version 1.0.
#'
#' Both ways ids are numbered anew, and columns and tables of your own (with a
#' leading dot) are left out, as are texts in `.rprof` that `Rprof()` does not write.
#'
#' @param x A profile, or a dm of its tables. One that is of the wanted version comes back as it is.
#'
#' @return A profile of the other version.
#'
#' @section Errors:
#' `profile_error_invalid` when `x` breaks a rule of its version.
#' `profile_v1_from_v2()` has `profile_error_lossy` when no type counts, or a count
#' is no integer that R could hold.
#' @export
#' @examples
#' path <- system.file("samples/rprof/1.out", package = "profile")
#' old <- read_rprof(path, version = "1.0")
#' new <- profile_v2_from_v1(old)
#' new$samples
#' profile_v1_from_v2(new)$samples
profile_v2_from_v1 <- function(x) {
  as_v2(x, rlang::current_env())
}

#' @rdname profile_v2_from_v1
#' @export
profile_v1_from_v2 <- function(x) {
  call <- rlang::current_env()
  x <- as_profile(x, call)
  if (identical(profile_version(x), "1.0")) {
    rust(rust_validate(x), call)
    return(x)
  }
  converted(rust(rust_convert(x, "1.0"), call), x, "1.0")
}

# What was odd when it was read goes along; version 1.0 has no ids of sources.
converted <- function(tables, x, version) {
  problems <- x[[".problems"]]
  if (!is.null(problems)) {
    problems$source_id <- NULL
    of_source <- if (version == "2.0") tibble::tibble(source_id = rep(1L, nrow(problems)))
    tables$.problems <- tibble::as_tibble(c(of_source, problems))
  }
  new_profile_data(tables, version)
}
