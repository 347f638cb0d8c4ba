# A profile as a dm, and back: the only file that names dm.

#' A profile as a dm
#'
#' @description
#' `dm_from_profile()` converts a profile to an object of the
#' [dm](https://dm.cynkra.com) package: the same tables with their keys set, so that
#' filters reach from one table to the others and tables join along their keys.
#' `dm::as_dm()` does the same. `profile_from_dm()` converts it back.
#'
#' All functions of this package that take a profile take such a dm as well, also one that
#' was filtered. Generics such as `summary()`, `print()` and `as_tibble()` do
#' with a dm what the dm package does: use `summary(profile_from_dm(x))` for those.
#'
#' @details
#' Primary keys are `source_id` of `sources`, `sample_id` of `samples`, `location_id`
#' of `locations`, `function_id` of `functions`, `mapping_id` of `.mappings`, `resource_id` of
#' `.resources`, `scope_id` of `.scopes`; `sample_id` and `type` of
#' `sample_values`; `sample_id` and `depth` of `sample_locations`. Foreign keys are
#' the columns of those names in other tables, `.mapping_id` in `locations` and `.scope_id` in
#' `sources`. They form a tree, which
#' `dm::dm_filter()` needs; so a table with a leading dot has one foreign key only, its
#' first.
#'
#' The columns are those of `x`, not copies.
#'
#' A filter of `dm::dm_filter()` keeps in each table the rows that belong to what is left of
#' the others. So a filter on `functions` keeps the frames of these functions only, and the
#' samples that have such a frame. To keep whole samples, find their ids this way and filter
#' `samples` by them, as in the example.
#'
#' @param x For `dm_from_profile()`, a profile of either version, see [profile_data]. One of
#'   version 1.0 is converted first ([profile_v2_from_v1()]). For `profile_from_dm()`, a dm
#'   with the tables of a profile. Each function also takes what it returns.
#'
#' @return `dm_from_profile()`: a dm with a table for each of the profile.
#'   `profile_from_dm()`: a profile of version 2.0, with the rows that are in the dm.
#'
#' @section Errors:
#' `profile_error_unsupported` when dm is not installed, `profile_error_invalid` when
#' `x` breaks a rule, is a zoomed dm or one in a database.
#' @export
#' @examplesIf rlang::is_installed("dm")
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#' tables <- dm_from_profile(x)
#' tables
#'
#' # A filter on functions: the frames of this function, without the others
#' of_function <- dm::dm_filter(tables, functions = (name == "lm.fit"))
#' profile_from_dm(of_function)
#'
#' # Whole samples: all frames of those that have a frame of this function
#' ids <- of_function$samples$sample_id
#' whole <- dm::dm_filter(tables, samples = (sample_id %in% !!ids))
#' summary(profile_from_dm(whole))
dm_from_profile <- function(x) {
  call <- rlang::current_env()
  need_package("dm", call)
  if (is_dm(x)) {
    # A table may have been lost, or its keys.
    x <- as_profile(x, call)
  }
  x <- as_v2(x, call)
  tables <- unclass(x)
  out <- dm::new_dm(tables)
  for (table in intersect(names(primary_keys), names(tables))) {
    out <- dm::dm_add_pk(out, !!table, !!primary_keys[[table]])
  }
  for (table in names(tables)) {
    keys <- references(table, names(tables[[table]]))
    if (startsWith(table, ".")) {
      keys <- utils::head(keys, 1)
    }
    # A column of keys may say nothing, and have no table then.
    keys <- keys[key_parents[keys] %in% names(tables)]
    for (column in names(keys)) {
      out <- dm::dm_add_fk(out, !!table, !!column, !!key_parents[[keys[[column]]]])
    }
  }
  out
}

#' @rdname dm_from_profile
#' @export
profile_from_dm <- function(x) {
  as_v2(x, rlang::current_env())
}

#' @exportS3Method dm::as_dm
as_dm.profile_data <- function(x, ...) {
  rlang::check_dots_empty()
  dm_from_profile(x)
}

is_dm <- function(x) {
  inherits(x, "dm")
}

tables_of_dm <- function(x, call) {
  need_package("dm", call)
  if (inherits(x, "dm_zoomed")) {
    abort_profile(
      c(
        "`x` is a dm that is zoomed to one of its tables.",
        i = "`dm::dm_update_zoomed()` or `dm::dm_discard_zoomed()` ends that."
      ),
      "profile_error_invalid",
      call = call
    )
  }
  tables <- dm::dm_get_tables(x)
  local <- vapply(tables, is.data.frame, TRUE)
  if (!all(local)) {
    abort_invalid(
      "is not in memory; `dplyr::collect()` loads a dm, `profile_from_con()` the tables of a database",
      names(tables)[!local][[1]],
      call = call
    )
  }
  new_profile_data(as.list(tables), "2.0")
}
