# A profile as a dm, and back: the only file that names dm.

#' A profile as a dm
#'
#' @description
#' `dm_from_profile()` gives a profile to the
#' [dm](https://dm.cynkra.com) package: the same tables with their keys set, so that
#' filters reach from one table to the others and tables join along their keys.
#' `dm::as_dm()` does the same.
#'
#' All functions here that take a profile take such a dm as well, also one that was
#' filtered.
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
#' @param x A profile of either version, see [profile_data]. One of version 1.0 is
#'   converted first ([profile_v2_from_v1()]).
#'
#' @return A dm with a table for each of the profile.
#'
#' @section Errors:
#' `profile_error_unsupported` when dm is not installed, `profile_error_invalid` when
#' `x` breaks a rule.
#' @export
#' @examplesIf rlang::is_installed("dm")
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#' tables <- dm_from_profile(x)
#' tables
#'
#' # Samples in which any frame is of this function, with all that belongs to them
#' dm::dm_filter(tables, functions = (name == "lm.fit")) |>
#'   compact_profile()
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

#' @exportS3Method dm::as_dm
as_dm.profile_data <- function(x, ...) {
  rlang::check_dots_empty()
  dm_from_profile(x)
}

is_dm <- function(x) {
  inherits(x, "dm")
}

tables_of_dm <- function(x, call) {
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
