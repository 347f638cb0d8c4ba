# Converts profiles to dm objects. All uses of the package dm are here.

#' Convert a profile to a dm
#'
#' @description `dm_from_profile()` converts a profile to an object of the package
#' [dm](https://dm.cynkra.com): the same tables with their keys, so that you can filter and join across
#' tables. `dm::as_dm()` does the same.
#'
#' All functions of this package that accept a profile also accept such a dm, filtered or not. Generics such as
#' `summary()`, `print()` and `as_tibble()` call the methods of the dm package: `combine_profiles(tables)` returns a
#' profile of the tables.
#'
#' @details The primary keys are `source_id` of `sources`, `sample_id` of `samples`, `location_id` of `locations`,
#' `function_id` of `functions`, `mapping_id` of `.mappings`, `resource_id` of `.resources`, `scope_id` of `.scopes`;
#' `sample_id` and `type` of `sample_values`; `sample_id` and `depth` of `sample_locations`. Foreign keys are the
#' columns with the same names in other tables, `.mapping_id` in `locations`, and `.scope_id` in `sources`.
#' `dm::dm_filter()` requires that the keys form a tree. Therefore a table with a leading dot has only one foreign key,
#' the first that applies.
#'
#' The columns are shared with `x`, not copied.
#'
#' `dm::dm_filter()` keeps the rows of each table that are connected to the remaining rows of the other tables. So a
#' filter on `functions` keeps only the frames of these functions, and the samples with such a frame. To keep whole
#' samples, filter `samples` by the ids of these samples, as in the example.
#'
#' @section Databases:
#' [store_profiles()] stores profiles in a database that grows with each run. `dm::copy_dm_to()` copies one dm. It
#' needs `set_key_constraints = FALSE`, since dm creates an index for each foreign key and does not quote its name,
#' which is not valid in SQL if a table or column has a leading dot. The dm that it returns has all keys;
#' `dplyr::collect()` loads it, filtered or not. Databases
#' without a logical type, such as SQLite and MariaDB, return 0 and 1 for `FALSE` and `TRUE`, which all functions accept
#' in logical columns.
#'
#' @param x A profile of either version, see [profile_data]; version 1.0 is converted first, see [profile_v2_from_v1()].
#'   A dm of a profile is returned as it is.
#'
#' @return A dm with all tables of the profile.
#'
#' @section Errors:
#' `profile_error_unsupported` if dm is not installed, `profile_error_invalid` if `x` is not valid, is a
#' zoomed dm or a dm of a database.
#' @export
#' @examplesIf rlang::is_installed("dm")
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#' tables <- dm_from_profile(x)
#' tables
#'
#' # Filter functions: only the frames of this function remain
#' of_function <- dm::dm_filter(tables, functions = (name == "lm.fit"))
#' combine_profiles(of_function)
#'
#' # Whole samples: all frames of the samples that contain this function
#' ids <- of_function$samples$sample_id
#' whole <- dm::dm_filter(tables, samples = (sample_id %in% !!ids))
#' summary(combine_profiles(whole))
dm_from_profile <- function(x) {
  call <- rlang::current_env()
  need_package("dm", call)
  x <- as_v2(x, call)
  tables <- unclass(x)
  out <- dm::new_dm(tables)
  for (table in intersect(names(data_model()$primary_keys), names(tables))) {
    out <- dm::dm_add_pk(out, !!table, !!data_model()$primary_keys[[table]])
  }
  for (table in names(tables)) {
    keys <- references(table, names(tables[[table]]))
    if (startsWith(table, ".")) {
      keys <- utils::head(keys, 1)
    }
    # If a key column is entirely NA, its table may not exist.
    keys <- keys[data_model()$keys[keys] %in% names(tables)]
    for (column in names(keys)) {
      out <- dm::dm_add_fk(out, !!table, !!column, !!data_model()$keys[[keys[[column]]]])
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
  need_package("dm", call)
  if (inherits(x, "dm_zoomed")) {
    abort_profile(c(
      "`x` is a dm that is zoomed to one of its tables.",
      i = "`dm::dm_update_zoomed()` or `dm::dm_discard_zoomed()` ends that."
    ), "profile_error_invalid", call = call)
  }
  tables <- dm::dm_get_tables(x)
  local <- vapply(tables, is.data.frame, TRUE)
  if (!all(local)) {
    abort_invalid(
      "is not in memory; `dplyr::collect()` loads a dm, `read_profile()` a selection of a store",
      names(tables)[!local][[1]],
      call = call
    )
  }
  new_profile_data(as.list(tables), "2.0")
}
