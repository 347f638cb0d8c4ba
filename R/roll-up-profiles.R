# Sums up the days of a store that have passed.

#' Sum up old profiles in a database or a data set
#'
#' @description
#' `roll_up_profiles()` replaces the samples of each day that has passed by sums of minutes, hours or the day. The time
#' of a query grows with the number of rows; after the roll-up, it grows with the number of distinct stacks.
#'
#' The sums for functions, lines, labels, services and versions do not change, nor does anything that is computed from
#' them, such as `summary()` and flame graphs.
#'
#' @details
#' Sums of longer periods than a minute have no `trace_id`. Summing cannot be undone, but it can be repeated
#' with longer periods and fewer parts. You can call the function repeatedly, for
#' example each night. After an error or Ctrl-C, some days may be summed up and others not, but no day in part.
#'
#' Others can write and query meanwhile. In a database, each day is a transaction, for which writers wait; the space is
#' reused for new profiles, and `VACUUM` returns it to the system.
#'
#' In a data set, the many small files of each day are replaced by few large ones, some services at a time. The result
#' takes a small part of the space and of the time of queries, so do this each night with `period = "minute"`. Queries
#' read each day once: replaced files are removed by a call at least an hour later, so that a query may take up to an
#' hour. A file that arrives after its day was compacted, for example from a machine with a wrong clock, is read too,
#' and the next call sums it up with the others. If the process is killed, the next call continues. The data set must be
#' on a file system, since object storage cannot rename folders.
#'
#' @inheritParams prune_profiles
#' @param period The period whose samples are summed up: `"minute"`, `"hour"` or `"day"`.
#' @param apart Which samples are not summed together: those of different runs (`"run"`), or only those of different
#'   hosts (`"host"`), or only those of different versions and services (`"none"`). [compare_profiles()] counts runs, so
#'   it needs `"run"`.
#'
#' @return The number of days that were summed up, invisibly.
#'
#' @inheritSection prune_profiles Errors
#' @seealso [prune_profiles()] to remove old days; `vignette("always-on")` for queries
#' @export
#' @examplesIf rlang::is_installed(c("DBI", "RSQLite"))
#' con <- DBI::dbConnect(RSQLite::SQLite())
#' store_profiles(system.file("samples/rprof/1.out", package = "profile"), con)
#'
#' # What was written before yesterday:
#' roll_up_profiles(con, before = Sys.Date() - 1)
#' DBI::dbDisconnect(con)
roll_up_profiles <- function(
    store, before, ..., period = c("minute", "hour", "day"), apart = c("run", "host", "none"), schema = NULL) {
  call <- call_without_dots()
  period <- check_choice(period, c("minute", "hour", "day"), "period", call)
  apart <- check_choice(apart, dataset_parts, "apart", call)
  change_store(
    store, before, schema, call,
    function(path, before, call) roll_up_dataset(path, before, period, apart, call),
    function(con, schema, before, call) roll_up_database(con, schema, before, period, apart, call)
  )
}
