# Profiles in a database: the same tables, run after run.
#
# Whatever DBI connects to will do; what differs between engines is left to them
# by asking for types (dbDataType) and quoting names. Ids in the database are 64 bits
# wide and belong to it: a profile gets new ones when it is stored, and 1, 2, 3, ...
# when it is loaded.

#' Keep profiles in a database
#'
#' @description
#' `copy_profile_to()` appends a profile to the tables of a database, and creates them
#' if they are missing. `profile_from_con()` loads the runs that are asked for.
#' With them a team's profiles can outgrow one machine's memory. See [tbl_profile()]
#' for summaries that the database computes.
#'
#' @details
#' The tables are those of version 2.0, under their names, with their columns; tables
#' and columns with a leading dot are added when a profile has them. Ids are `BIGINT`,
#' primary keys are set. Three things are added: the table `.next_ids` has the next free
#' id of each key; tables whose rows are in an order that no key gives have it in a
#' column `.row`, a number that grows from profile to profile; and `.mappings` has a
#' column `source_id`. Functions and locations are stored for each profile; when profiles
#' are loaded, equal ones become one.
#'
#' Columns with a leading dot that are `NA` for all loaded runs are left out. Columns that
#' you have added come back as the database's type for them: a factor as text, and on
#' SQLite a logical as integer, dates and times as numbers, `NaN` as `NA`.
#'
#' ## Writers and readers at the same time
#'
#' A profile is written in one transaction. Writers wait for each other, and after an error
#' or Ctrl-C nothing of the profile is in the database. `profile_from_con()` reads one
#' state of the database, whoever writes meanwhile. SQLite does not wait by default; here
#' it gets a busy timeout of a minute while it writes and reads. [tbl_profile()] leaves
#' that timeout set, since its tables are read later.
#'
#' With RSQLite and RPostgres the connection may be in a transaction of yours. Then
#' a savepoint of that transaction is used: after an error, what you did before is still
#' in it, and the profile is stored when you commit. In SQLite start such a transaction with
#' `DBI::dbExecute(con, "BEGIN IMMEDIATE")` if there are other writers: one that has read
#' something before it writes cannot wait for them.
#'
#' ## Names and types that cannot be stored
#'
#' These are errors, of class `profile_error_unsupported` with the fields `table` and
#' `column`, and nothing is written:
#'
#' - a table or a column of your own that is called like the three above;
#' - names that the database does not accept or does not keep: in SQLite names that
#'   differ only in case, in PostgreSQL names of more than 63 bytes and those of
#'   its own columns, such as `ctid`;
#' - columns that do not have one value for each row (lists, but not those of the package
#'   blob; matrices, data frames), of type complex or raw, or with strings in encoding
#'   "bytes";
#' - a column of your own with text, or with fractions, that has numbers, or whole
#'   numbers, in the profiles that are stored already, and the like.
#'
#' @param con A connection, from `DBI::dbConnect()`.
#' @param x A profile, see [profile_data], of either version, or a dm.
#' @param ... For `copy_profile_to()`, must be empty. For `profile_from_con()`,
#'   conditions on the columns of the table `sources`, as in `dplyr::filter()`; by
#'   default all runs are loaded.
#' @param schema The schema that the tables are in; by default where the database
#'   looks by itself.
#'
#' @return `copy_profile_to()`: the rows of `sources` with the ids they now have in the
#'   database, invisibly; ids are double. `profile_from_con()`: a profile of version 2.0.
#'
#' @section Errors:
#' `profile_error_invalid` when `x` breaks a rule, the database does not contain
#' profiles, or has another table with the name of one of theirs.
#' `profile_error_unsupported` when the database cannot hold a name or a type, see above.
#' Errors of the database are passed on.
#' @export
#' @examplesIf rlang::is_installed(c("DBI", "RSQLite"))
#' con <- DBI::dbConnect(RSQLite::SQLite())
#' path <- system.file("samples/rprof", c("1.out", "memory.out"), package = "profile")
#' for (run in path) copy_profile_to(con, read_rprof(run))
#'
#' DBI::dbReadTable(con, "sources")
#' profile_from_con(con)
#' profile_from_con(con, .memory_profiling == 1)
#' DBI::dbDisconnect(con)
copy_profile_to <- function(con, x, ..., schema = NULL) {
  call <- rlang::current_env()
  rlang::check_dots_empty()
  need_package("DBI", call)
  x <- settle_files(as_v2(x, call))
  check_storable(x, call)
  in_transaction(con, call = call, {
    create_tables(con, schema, call)
    offsets <- claim_ids(con, schema, x)
    make_room(con, schema, x, call)
    for (table in parents_first(names(x))) {
      append_rows(con, schema, table, with_database_ids(x, table, offsets, call))
    }
  })
  sources <- x$sources
  sources$source_id <- offsets[["source_id"]] + seq_len(nrow(sources))
  invisible(sources)
}

#' @rdname copy_profile_to
#' @export
profile_from_con <- function(con, ..., schema = NULL) {
  call <- rlang::current_env()
  need_package("DBI", call)
  conditions <- rlang::enquos(...)
  x <- in_transaction(con, reading = TRUE, call = call, {
    source_ids <- chosen_sources(con, conditions, schema, call)
    select_sources(con, source_ids, schema)
  })
  as_loaded(x, call)
}

# ---- Tables and their names ------------------------------------------------

# Tables whose order no key tells.
needs_row <- function(table) {
  !table %in% c(key_parents, "sample_locations", "meta", ".next_ids")
}

# Columns that tables have in the database only, so that a user's own cannot have
# their names.
own_columns <- function(table) {
  c(if (needs_row(table)) ".row", if (table == ".mappings") "source_id")
}

# Whether a table with these columns is one of ours, not just one of that name.
belongs <- function(table, columns) {
  all(c(primary_keys[[table]], own_columns(table)) %in% columns)
}

table_id <- function(schema, table) {
  if (is.null(schema)) table else DBI::Id(schema = schema, table = table)
}

quoted <- function(con, schema, table) {
  DBI::dbQuoteIdentifier(con, table_id(schema, table))
}

list_fields <- function(con, schema, table) {
  DBI::dbListFields(con, table_id(schema, table))
}

# Names as they are: whether a table exists, an engine may say of another case.
list_tables <- function(con, schema) {
  if (is.null(schema)) {
    return(DBI::dbListTables(con))
  }
  if (is_sqlite(con)) {
    # dbListObjects() knows nothing of attached databases.
    master <- paste0(DBI::dbQuoteIdentifier(con, schema), ".sqlite_master")
    return(DBI::dbGetQuery(con, paste("SELECT name FROM", master, "WHERE type IN ('table', 'view')"))$name)
  }
  objects <- DBI::dbListObjects(con, DBI::Id(schema = schema))$table
  vapply(objects, function(id) utils::tail(id@name, 1), "")
}

has_table <- function(con, schema, table) {
  table %in% list_tables(con, schema)
}
