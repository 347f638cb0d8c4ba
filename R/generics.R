# Methods of base generics. A profile is neither a vector nor a data frame. Where a default method would return a
# meaningless result, an error names the function to use instead.

#' Base functions for profiles
#'
#' @description
#' A profile is a named list of tables that refer to each other. `x$samples` and `x[["samples"]]` return a
#' table, and can be assigned to; call [compact_profile()] afterwards to make the profile valid.
#' `x[c("samples", "sources")]` is a list of tables, and a profile only if it includes all mandatory tables.
#'
#' `as.data.frame()` returns the table of [as_tibble()][as_tibble.profile_data] as a data frame.
#'
#' `c()`, `rbind()`, `cbind()`, `head()`, `tail()`, `unique()`, `t()`, `subset()`, `merge()`, operators such as `-`, and
#' the verbs of dplyr do not work with profiles and raise an error that names an alternative: [combine_profiles()] for
#' several profiles, [filter_profile()] for a part of one, [compare_profiles()] for the difference of two.
#'
#' @param x A profile, see [profile_data].
#' @param i Names or numbers of tables.
#' @param ... Other profiles, or arguments of the generic function. For `as.data.frame()` it must be
#'   empty.
#' @param row.names,optional Ignored.
#'
#' @return `x[i]`: a list of tables, which is a profile if it is complete. `as.data.frame()`: a data frame.
#'
#' @section Errors:
#' `profile_error_unsupported` for the functions that do not work with profiles.
#'
#' @name profile_generics
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#' names(x)
#' head(x$functions, 3)
#' head(as.data.frame(x), 3)
#'
#' try(c(x, x))
NULL

#' @rdname profile_generics
#' @export
`[.profile_data` <- function(x, i) {
  tables <- unclass(x)
  attributes(tables) <- list(names = names(x))
  version <- profile_version(x)
  if (!missing(i)) {
    tables <- tables[i]
  }
  model <- data_model()
  required <- names(if (identical(version, "1.0")) model$version1 else model$required)
  whole <- !is.na(version) && all(required %in% names(tables))
  if (whole) mark_session_of(new_profile_data(tables, version), list(x)) else tables
}

#' @rdname profile_generics
#' @export
as.data.frame.profile_data <- function(x, row.names = NULL, optional = FALSE, ...) {
  rlang::check_dots_empty()
  as.data.frame(as_tibble(x))
}

# `...` is the bullet that names the alternative.
no_method <- function(generic, ..., call = rlang::caller_env()) {
  abort_unsupported(
    c(paste0("`", generic, if (grepl("^[a-z]", generic)) "()", "` does not work with profiles."), ...), call
  )
}

#' @rdname profile_generics
#' @export
c.profile_data <- function(...) {
  no_method("c", i = "Use `combine_profiles()` to combine several profiles.")
}

#' @rdname profile_generics
#' @export
rbind.profile_data <- function(...) {
  no_method("rbind", i = "Use `combine_profiles()` to combine several profiles.")
}

#' @rdname profile_generics
#' @export
cbind.profile_data <- function(...) {
  no_method("cbind", i = "Use `combine_profiles()` to combine several profiles.")
}

#' @rdname profile_generics
#' @importFrom utils head
#' @export
head.profile_data <- function(x, ...) {
  no_method("head", i = "Use `head(x$samples)` for a table, or `head(as_tibble(x))` for all frames.")
}

#' @rdname profile_generics
#' @importFrom utils tail
#' @export
tail.profile_data <- function(x, ...) {
  no_method("tail", i = "Use `tail(x$samples)` for a table, or `tail(as_tibble(x))` for all frames.")
}

#' @rdname profile_generics
#' @export
unique.profile_data <- function(x, ...) {
  no_method("unique", i = "Use `compact_profile()` to merge equal functions and locations.")
}

#' @rdname profile_generics
#' @export
t.profile_data <- function(x) {
  no_method("t", i = "Use `as_tibble(x)` for a table of all frames.")
}

#' @rdname profile_generics
#' @export
subset.profile_data <- function(x, ...) {
  no_method("subset", i = use_filter("subset"))
}

#' @rdname profile_generics
#' @param y Another profile.
#' @export
merge.profile_data <- function(x, y, ...) {
  no_method("merge", i = "Use `combine_profiles()` to combine several profiles.")
}

#' @rdname profile_generics
#' @param e1,e2 Profiles, or other objects.
#' @export
Ops.profile_data <- function(e1, e2) {
  # R reports the group `Ops` as the function of this call, so the operator is named here.
  call <- sys.call()
  call[[1]] <- as.name(.Generic)
  no_method(
    .Generic,
    i = "Use `compare_profiles()` to compare two profiles, or calculate with the columns of a table.",
    call = call
  )
}

# ---- Verbs of dplyr --------------------------------------------------------------------------

use_filter <- function(verb) {
  paste0(
    "Use `filter_profile()` to select samples by the functions in their stacks, or `", verb,
    "(as_tibble(x), ...)` for rows of a table of all frames."
  )
}

# A method for a verb that works with a table.
no_verb <- function(verb) {
  force(verb)
  function(.data, ...) {
    example <- paste0("`", verb, "(as_tibble(x), ...)`.")
    no_method(verb, i = paste("Use it with a table, such as `x$functions`, or a table of all frames:", example))
  }
}

#' @exportS3Method dplyr::filter
filter.profile_data <- function(.data, ...) {
  no_method("filter", i = use_filter("filter"))
}

#' @exportS3Method dplyr::arrange
arrange.profile_data <- no_verb("arrange")

#' @exportS3Method dplyr::count
count.profile_data <- no_verb("count")

#' @exportS3Method dplyr::distinct
distinct.profile_data <- no_verb("distinct")

#' @exportS3Method dplyr::group_by
group_by.profile_data <- no_verb("group_by")

#' @exportS3Method dplyr::mutate
mutate.profile_data <- no_verb("mutate")

#' @exportS3Method dplyr::pull
pull.profile_data <- no_verb("pull")

#' @exportS3Method dplyr::rename
rename.profile_data <- no_verb("rename")

#' @exportS3Method dplyr::select
select.profile_data <- no_verb("select")

#' @exportS3Method dplyr::slice
slice.profile_data <- no_verb("slice")

#' @exportS3Method dplyr::summarise
summarise.profile_data <- no_verb("summarise")
