# Removes the oldest days of a store.

#' Remove old profiles from a database or a data set
#'
#' `prune_profiles()` removes the days that ended before a point in time: the rows of `samples` that were written on
#' them, and the stacks and labels that no later row refers to.
#'
#' A database reuses the space for new profiles. To return it to the system, run `VACUUM` afterwards. All rows are
#' removed in one transaction. In a data set, the folders of whole days are removed; queries that read them fail.
#'
#' @inheritParams store_profiles
#' @param store A connection, from `DBI::dbConnect()`, or the path of a data set.
#' @param before A date-time or a date: days that ended by then, and at least an hour ago. Profiles belong to the
#'   day in UTC on which they were stored.
#' @param ... Must be empty.
#'
#' @return The number of days that were removed, invisibly.
#'
#' @section Errors:
#' - `profile_error_argument` if `before` is not one date or date-time, or `store` is neither a connection nor a path;
#' - `profile_error_open` if there are no profiles;
#' - `profile_error_unsupported` if the package arrow is not installed, if another version of this package has created
#'   the store in another layout, or if a data set is in object storage.
#' @export
#' @examplesIf rlang::is_installed(c("DBI", "RSQLite"))
#' con <- DBI::dbConnect(RSQLite::SQLite())
#' store_profiles(system.file("samples/rprof/1.out", package = "profile"), con)
#'
#' # What was written more than two weeks ago:
#' prune_profiles(con, before = Sys.Date() - 14)
#' DBI::dbDisconnect(con)
prune_profiles <- function(store, before, ..., schema = NULL) {
  call <- call_without_dots()
  change_store(store, before, schema, call, prune_dataset, prune_database)
}

# Calls the function for the kind of a store, with the seconds since 1970 of `before`.
change_store <- function(store, before, schema, call, of_dataset, of_database) {
  if (missing(store)) {
    abort_missing("store", call, i = "It is a connection of DBI, or the path of a data set.")
  }
  before <- check_before(before, call)
  if (is_path(store) && store != "") {
    check_folder(store, call)
    return(of_dataset(store, before, call))
  }
  if (!inherits(store, "DBIConnection")) {
    abort_argument(
      paste0("`store` must be a connection of DBI or the path of a data set, not ", describe_object(store), "."), call
    )
  }
  check_database(store, "store", schema, call)
  check_has_profiles(store, schema, call)
  of_database(store, schema, before, call)
}

# Seconds since 1970.
check_before <- function(before, call) {
  if (missing(before)) {
    abort_missing("before", call, i = "It is a time, such as `Sys.time() - 24 * 60 * 60`.")
  }
  hint <- if (is_text(before)) "A text is no date: use one such as `as.Date(\"2026-01-01\")`."
  # Converted first, since a POSIXlt is a list of fields.
  before <- if (inherits(before, c("POSIXt", "Date"))) as.POSIXct(before)
  if (length(before) != 1 || is.na(before)) {
    abort_argument(c("`before` must be one date-time or date.", i = hint), call)
  }
  as.numeric(before)
}
