# Removes old runs from a database, with all rows that no other run refers to.

#' Remove old profiles from a database or a data set
#'
#' `prune_profiles()` removes the runs that were recorded before a point in time, with their samples, and the stacks,
#' labels, functions, locations, scopes and resources that no other run refers to.
#'
#' The database reuses the space for new profiles. To return it to the system, run `VACUUM` afterwards.
#'
#' All rows are removed in one transaction, as in [copy_profile_to()]. This reads all samples once, so call the function
#' once a day, not after each profile.
#'
#' Rows of your own tables are removed if they refer to a removed row. Rows without a reference stay.
#'
#' In a data set of [write_profile_dataset()], the folders of whole days are removed. Queries that read them fail.
#'
#' @inheritParams copy_profile_to
#' @param con A connection, from `DBI::dbConnect()`, or the path of a data set.
#' @param before A date-time or a date: runs whose `source_timestamp` is earlier are removed. Runs without a
#'   timestamp stay. In a data set, days of writing that ended at that time, and an hour ago.
#' @param ... Conditions on the columns of `sources`, as in `dplyr::filter()`: only runs that satisfy all of them are
#'   removed. Must be empty for a data set.
#'
#' @return The number of runs that were removed, invisibly; for a data set, the number of days.
#'
#' @section Errors:
#' - `profile_error_argument` if `before` is not one date or date-time, or a condition is not valid;
#' - `profile_error_invalid` if the database does not contain profiles;
#' - `profile_error_unsupported` if it was created by an earlier version of this package, if the package arrow is not
#'   installed, or if a data set is in object storage;
#' - `profile_error_open` if there is no data set at a path.
#' @export
#' @examplesIf rlang::is_installed(c("DBI", "RSQLite"))
#' con <- DBI::dbConnect(RSQLite::SQLite())
#' path <- system.file("samples/rprof", c("1.out", "memory.out"), package = "profile")
#' for (run in path) copy_profile_to(con, read_rprof(run))
#'
#' # What is older than two weeks:
#' prune_profiles(con, before = Sys.time() - 14 * 24 * 60 * 60)
#' DBI::dbGetQuery(con, "SELECT count(*) FROM samples")
#' DBI::dbDisconnect(con)
prune_profiles <- function(con, before, ..., schema = NULL) {
  call <- rlang::current_env()
  if (!missing(con) && is_dataset_path(con)) {
    rlang::check_dots_empty(call = call)
    return(prune_dataset(con, check_before(before, call), call))
  }
  check_database(con, schema, call)
  conditions <- older_than(before, rlang::enquos(...), call)
  in_transaction(con, call = call, {
    there <- list_tables(con, schema)
    if (".next_ids" %in% there) {
      check_layout(there, call)
      wait_for_writers(con, schema)
    }
    source_ids <- chosen_sources(con, conditions, schema, call)
    if (length(source_ids) > 0) {
      remove_sources(con, schema, source_ids)
    }
  })
  invisible(length(source_ids))
}

# The conditions for runs that began earlier.
older_than <- function(before, conditions, call) {
  seconds <- check_before(before, call)
  .data <- rlang::.data
  c(rlang::quos(.data$source_timestamp < !!seconds), conditions)
}

# Seconds since 1970.
check_before <- function(before, call) {
  if (missing(before)) {
    abort_missing("before", call, i = "It is a time, such as `Sys.time() - 24 * 60 * 60`.")
  }
  # Converted first, since a POSIXlt is a list of fields.
  before <- if (inherits(before, c("POSIXt", "Date"))) as.POSIXct(before)
  if (length(before) != 1 || is.na(before)) {
    abort_argument("`before` must be one date-time or date.", call)
  }
  as.numeric(before)
}

# The tables and columns that refer to the rows of each key. A key comes before the keys that its rows refer to.
used_by <- list(
  stack_id = c("samples", ".stack_id"),
  label_set_id = c("samples", ".label_set_id"),
  location_id = c(".stack_locations", "location_id"),
  function_id = c("locations", "function_id"),
  mapping_id = c("locations", ".mapping_id"),
  scope_id = c("sources", ".scope_id"),
  resource_id = c(".scopes", "resource_id")
)

remove_sources <- function(con, schema, source_ids) {
  fields <- own_fields(con, schema)
  for (by_source in lists_of_ids("source_id", source_ids)) {
    remove_rows_of_sources(con, schema, fields, by_source)
  }
  for (key in names(used_by)) {
    if (used_by[[key]][[2]] %in% fields[[used_by[[key]][[1]]]]) {
      remove_unused(con, schema, fields, key)
    }
  }
}

# The columns of each table of this package and of users.
own_fields <- function(con, schema) {
  there <- list_tables(con, schema)
  tables <- intersect(c(model_and_dotted(there), stored_tables), there)
  tables <- setdiff(tables, c("sample_values", names(sets_of_rows), ".next_ids"))
  fields <- lapply(rlang::set_names(tables), function(table) list_fields(con, schema, table))
  fields[unlist(Map(belongs, tables, fields))]
}

# Conditions on a column that has one of these ids. In parts, since the length of a statement is limited.
lists_of_ids <- function(column, ids) {
  parts <- split(ids, (seq_along(ids) - 1L) %/% 500L)
  vapply(parts, FUN.VALUE = "", function(part) {
    paste0(column, " IN (", paste(format(part, scientific = FALSE, trim = TRUE), collapse = ", "), ")")
  })
}

delete_rows <- function(con, schema, table, where) {
  DBI::dbExecute(con, paste("DELETE FROM", quoted(con, schema, table), "WHERE", where))
}

# Removes these sources, and all rows with the id of one of them or of one of their samples.
remove_rows_of_sources <- function(con, schema, fields, by_source) {
  samples <- quoted(con, schema, "samples")
  by_sample <- paste0("sample_id IN (SELECT sample_id FROM ", samples, " WHERE ", by_source, ")")
  # Mappings may belong to several sources, so they are removed later, when nothing refers to them.
  for (table in setdiff(names(fields), c("samples", "sources", ".mappings"))) {
    if ("sample_id" %in% fields[[table]]) delete_rows(con, schema, table, by_sample)
    if ("source_id" %in% fields[[table]]) delete_rows(con, schema, table, by_source)
  }
  delete_rows(con, schema, "samples", by_source)
  delete_rows(con, schema, "sources", by_source)
}

# Removes the rows of a key that nothing refers to any more, and the rows that belong to them.
remove_unused <- function(con, schema, fields, key) {
  table <- stored_key_tables()[[key]]
  user <- used_by[[key]]
  not_in <- function(column, other, of) {
    column <- DBI::dbQuoteIdentifier(con, column)
    of <- DBI::dbQuoteIdentifier(con, of)
    # Without DISTINCT, PostgreSQL would expect more rows than it can hash, and scan them for each row.
    paste(
      column, "NOT IN (SELECT DISTINCT", of, "FROM", quoted(con, schema, other), "WHERE", of, "IS NOT NULL)"
    )
  }
  unused <- not_in(key, user[[1]], user[[2]])
  if (key == "mapping_id") {
    # A mapping may have no location that refers to it.
    unused <- paste(unused, "AND", not_in("source_id", "sources", "source_id"))
  }
  delete_rows(con, schema, table, unused)
  for (part in setdiff(names(fields), c(table, user[[1]]))) {
    keys <- stored_keys_of(part, fields[[part]])
    for (column in names(keys)[keys == key]) {
      delete_rows(con, schema, part, not_in(column, table, key))
    }
  }
}
