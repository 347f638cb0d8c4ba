# Stores profiles in a database, run after run. Works with any database that DBI supports: the driver supplies the types
# of columns (dbDataType) and quotes names. The database has its own 64-bit ids: a profile gets new ids when it is
# stored, and ids 1, 2, 3, ... when it is loaded. database-layout.R describes the tables, and content-keys.R the rows
# that profiles share.

#' Store profiles in a database
#'
#' @description
#' `copy_profile_to()` appends a profile to the tables of a database, and creates the tables if necessary.
#' `profile_from_con()` loads selected runs. [tbl_profile()] lets the database compute summaries, so that a database can
#' contain more profiles than fit into memory.
#'
#' @details The database has the tables and columns of version 2.0, with the same names. Further tables and columns,
#' including your own, are added when a profile has them: tables whose names begin with a dot with all their columns,
#' and columns of the seven tables whose names begin with a dot. Other names are an error, see [profile_data]. Ids have
#' 64 bits, and primary keys are set.
#'
#' Samples of a service repeat their stacks, so stacks are stored once for all profiles, and so are functions,
#' locations, sets of labels, scopes and resources. A sample is stored in one row, and `sample_values`,
#' `sample_locations` and `.labels` are views:
#'
#' | | |
#' |---|---|
#' | `samples` | also has `.stack_id`, `.label_set_id`, and the values: `.value_1`, `.value_2`, ... |
#' | `.value_types` | `number`, `type` and `unit` of these columns |
#' | `.stacks`, `.stack_locations` | the stacks, and their frames: `stack_id`, `depth`, `location_id` |
#' | `.label_sets`, `.set_labels` | the sets of labels, and the labels in them |
#' | `.other_values` | values with columns of your own, and values of types beyond the first 100 |
#' | `.next_ids` | the next free id of each key |
#'
#' Storing many small profiles together is faster: `copy_profile_to(con, combine_profiles(profiles))`.
#'
#' A query that first sums values by `.stack_id` and then joins `.stack_locations` takes a fraction of the time of a
#' query that joins `sample_locations`. See `vignette("always-on")` for examples.
#'
#' Shared tables have a column `.key`, computed from the content of the row. Two kinds of rows are stored separately for
#' each profile: rows that your own tables refer to, and locations of native code with a mapping. Tables whose order is
#' not determined by a key have a column `.row`, which grows from profile to profile, and `.mappings` has a column
#' `source_id`. In a loaded profile, functions and locations may be in a different order than before, and equal ones are
#' merged.
#'
#' Databases of the development versions before 2.0.0, in which `sample_locations` was a table, are read-only.
#'
#' Columns whose names begin with a dot and that are `NA` for all loaded runs are left out. Columns of your own have the
#' type that the database returns: a factor becomes character; in SQLite, a logical becomes integer, dates and times
#' become numbers, and `NaN` becomes `NA`.
#'
#' ## Concurrent access
#'
#' A profile is written in one transaction. Writers wait for each other. After an error or Ctrl-C the database contains
#' no part of the profile. `profile_from_con()` reads a consistent state, even if others write meanwhile; in PostgreSQL
#' it waits for a writer that adds columns, for example for the first profile with a new type of values. SQLite does not
#' wait by default; these functions set a busy timeout of one minute while they write and read. [tbl_profile()] does not
#' reset that timeout, since its tables are read later.
#'
#' ## Drivers
#'
#' These functions work with every driver whose `DBI::dbBegin()` begins a transaction; otherwise there is an error of
#' class `profile_error_unsupported`. They were tried with
#'
#' - SQLite with RSQLite 2.2.20, and with odbc 1.3.4 and libsqliteodbc 0.9998, which reads 15 digits of a number;
#' - PostgreSQL 15.18 with RPostgres 1.4.5 and RPostgreSQL 0.7-5, and with odbc 1.3.4 and odbc-postgresql 13.2, connected
#'   with `BoolsAsChar = "0"` and `Protocol = "7.4-0"`;
#' - MariaDB 10.11.19 with RMariaDB 1.2.2 and RMySQL 0.10.25, and with odbc 1.3.4 and odbc-mariadb 3.1.15;
#' - DuckDB 1.4.4 with duckdb 1.4.4. A file of DuckDB can be open in one process only.
#'
#' In MariaDB and MySQL, creating tables and adding columns cannot be undone, so tables and columns stay, without rows,
#' after an error or Ctrl-C, and reading can fail while the first profile is being stored. Readers see a consistent
#' state with the default isolation level, `REPEATABLE READ`. MySQL itself and other databases were not tried.
#'
#' ## Transactions of your own
#'
#' With RSQLite and RPostgres you can call these functions inside a transaction of your own. They then use a savepoint:
#' after an error, your previous changes are still part of the transaction, and the profile is stored when you commit.
#' In SQLite, start such a transaction with `DBI::dbExecute(con, "BEGIN IMMEDIATE")` if there are other writers: a
#' transaction that reads before it writes cannot wait for them. With other drivers, `copy_profile_to()` does not store
#' a profile inside of your transaction, which stays open: there is an error of class `profile_error_unsupported`.
#'
#' ## Names and types that cannot be stored
#'
#' If a profile has one of the following, nothing is written, and there is an error of class `profile_error_unsupported`
#' with the fields `table` and `column`:
#'
#' - a table or column of your own with one of the names above;
#' - names that the database does not accept or changes: in SQLite, names that differ only in case; in PostgreSQL, names
#'   of more than 63 bytes and the names of its system columns, such as `ctid`;
#' - columns without exactly one value for each row (lists, except lists of the package blob; matrices; data frames), of
#'   type complex or raw, or with strings in encoding "bytes";
#' - a column of your own whose type is incompatible with previously stored profiles, such as text instead of numbers,
#'   or fractions instead of whole numbers.
#'
#' @param con A connection, from `DBI::dbConnect()`. For `profile_from_con()` and [tbl_profile()] also a data set: the path
#'   of [write_profile_dataset()], a list of its tables `samples`, `frames` and, optionally, `labels` on any engine that
#'   dplyr supports, or a value of `tbl_profile()`.
#' @param x A profile, see [profile_data], of either version, or a dm.
#' @param ... For `copy_profile_to()`, must be empty. For `profile_from_con()`, conditions on the columns of
#'   the table `sources`, or of `samples` and `day` of a data set, as in `dplyr::filter()`; by default all runs are loaded.
#' @param schema The schema of the tables, by default the default schema of the database.
#'
#' @return `copy_profile_to()`: the rows of `sources` with their ids in the database, invisibly; ids are
#'   double. `profile_from_con()`: a profile of version 2.0. A data set is summed up by its engine, and the profile has a
#'   sample for each stack and set of labels of each source: a service, its version and host.
#'
#' @section Errors:
#' - `profile_error_invalid` if `x` is not valid, the database does not contain profiles, or it contains
#'   another table with the same name;
#' - `profile_error_unsupported` if the database cannot store a name or a type, or has no transactions, see above, or was
#'   created by an earlier version.
#'
#' Errors of the database are passed on unchanged.
#' @seealso [roll_up_profiles()] to sum up old runs, [prune_profiles()] to remove them
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
  call <- call_without_dots()
  check_database(con, schema, call)
  x <- move_files_to_next_sample(as_v2(x, call))
  check_storable(x, call)
  stored <- stored_form(x, call)
  prepare <- function() {
    create_tables(con, schema, call)
    wait_for_writers(con, schema)
    stored <<- with_value_columns(stored, con, schema)
    add_missing_columns(con, schema, stored$tables, call)
  }
  commits <- dialect(con)$commits
  if (commits) {
    altering(con, prepare(), call)
  }
  in_transaction(con, call = call, {
    if (commits) wait_for_writers(con, schema) else prepare()
    claimed <- claim_ids(con, schema, stored)
    tables <- intersect(union(stored_key_tables(), names(stored$tables)), names(stored$tables))
    report <- progress_report("Storing rows", "tasks", call)
    rows <- sum(lengths(claimed$rows[tables]))
    done <- 0
    for (table in tables) {
      append_table(con, schema, stored, table, claimed, call, function(n) {
        show_progress(report, done, rows)
        done <<- done + n
      })
    }
  })
  sources <- x$sources
  sources$source_id <- claimed$ids$source_id
  invisible(sources)
}

#' @rdname copy_profile_to
#' @export
profile_from_con <- function(con, ..., schema = NULL) {
  call <- rlang::current_env()
  if (!missing(con) && is_dataset(con)) {
    return(profile_of_dataset(dataset_tables(con, rlang::enquos(...), call), call))
  }
  check_database(con, schema, call)
  conditions <- rlang::enquos(...)
  x <- in_transaction(con, reading = TRUE, call = call, {
    source_ids <- chosen_sources(con, conditions, schema, call)
    select_sources(con, source_ids, schema)
  })
  as_loaded(x, call)
}

# An open connection to a database, and a schema in it.
check_database <- function(con, schema, call) {
  if (missing(con)) {
    abort_missing("con", call, i = "It is a connection, as returned by `DBI::dbConnect()`.")
  }
  need_package("DBI", call)
  if (!inherits(con, "DBIConnection")) {
    abort_argument(c(
      paste0("`con` must be a connection, as returned by `DBI::dbConnect()`, not ", describe_object(con), "."),
      i = if (has_tables(con)) {
        "The connection comes first, then the profile."
      } else if (rlang::is_string(con)) {
        paste0("For a file of SQLite, use `DBI::dbConnect(RSQLite::SQLite(), ", in_quotes(short_text(con)), ")`.")
      }
    ), call)
  }
  # RPostgreSQL has no method.
  if (!tryCatch(DBI::dbIsValid(con), error = function(e) TRUE)) {
    abort_argument("The connection `con` has been closed.", call)
  }
  if (is.null(schema)) {
    return()
  }
  if (!is_text(schema) || schema == "") {
    abort_argument(paste0("`schema` must be the name of a schema, or `NULL`, not ", describe_object(schema), "."), call)
  }
  known <- if (is_sqlite(con)) DBI::dbGetQuery(con, "PRAGMA database_list")$name
  if (!is.null(known) && !tolower(schema) %in% c("temp", tolower(known))) {
    abort_argument(c(
      paste0("The database has no schema `", schema, "`."),
      i = paste0("It has ", paste0("`", known, "`", collapse = ", "), ". `ATTACH DATABASE` adds another file.")
    ), call)
  }
}

# ---- Tables and their names ------------------------------------------------

# Tables whose order is not determined by a key.
needs_row <- function(table) {
  !table %in% c(data_model()$keys, "meta", setdiff(stored_tables, ".set_labels"))
}

# Columns that exist only in the database; users cannot use their names.
own_columns <- function(table) {
  c(
    if (needs_row(table)) ".row", if (table == ".mappings") "source_id",
    if (table %in% c(names(shared_tables), stored_keys)) ".key"
  )
}

primary_key_of <- function(table) {
  switch(table,
    .next_ids = "key",
    .stacks = ,
    .label_sets = names(stored_keys)[stored_keys == table],
    .stack_locations = c("stack_id", "depth"),
    .value_types = "number",
    .other_values = c("sample_id", "type"),
    data_model()$primary_keys[[table]]
  )
}

# Whether a table with these columns is a table of this package, and not another table with the same name.
belongs <- function(table, columns) {
  all(c(primary_key_of(table), own_columns(table)) %in% columns)
}

table_id <- function(schema, table) {
  if (is.null(schema)) table else DBI::Id(schema = schema, table = table)
}

quoted <- function(con, schema, table) {
  DBI::dbQuoteIdentifier(con, table_id(schema, table))
}

# Also of no names, which RMySQL would quote as one.
quoted_names <- function(con, names) {
  if (length(names) > 0) as.character(DBI::dbQuoteIdentifier(con, names))
}

list_fields <- function(con, schema, table) {
  if (!is.null(dialect(con)$catalogue)) {
    where <- paste("AND table_name =", quoted_text(con, table), "ORDER BY ordinal_position")
    return(in_catalogue(con, schema, "columns", "column_name", where))
  }
  DBI::dbListFields(con, table_id(schema, table))
}

# Names in information_schema. Drivers differ in whether they list names of a schema, and which names.
in_catalogue <- function(con, schema, from, column, where = "") {
  of <- if (is.null(schema)) dialect(con)$catalogue else quoted_text(con, schema)
  as.character(DBI::dbGetQuery(con, paste(
    "SELECT", column, "AS name FROM", paste0("information_schema.", from), "WHERE table_schema =", of, where
  ))$name)
}

quoted_text <- function(con, x) {
  # In MySQL a backslash is special, which odbc does not know.
  if (inherits(con, dialects$mysql$classes) && nchar(DBI::dbQuoteString(con, "\\")) == 3) {
    x <- gsub("\\", "\\\\", x, fixed = TRUE)
  }
  DBI::dbQuoteString(con, x)
}

read_table <- function(con, schema, table) {
  DBI::dbGetQuery(con, paste("SELECT * FROM", quoted(con, schema, table)))
}

# Exact names, since engines may ignore case when they are asked whether a table exists.
list_tables <- function(con, schema) {
  if (!is.null(dialect(con)$catalogue)) {
    return(in_catalogue(con, schema, "tables", "table_name"))
  }
  if (is.null(schema)) {
    return(DBI::dbListTables(con))
  }
  if (is_sqlite(con)) {
    # dbListObjects() does not list attached databases.
    master <- paste0(DBI::dbQuoteIdentifier(con, schema), ".sqlite_master")
    return(DBI::dbGetQuery(con, paste("SELECT name FROM", master, "WHERE type IN ('table', 'view')"))$name)
  }
  objects <- DBI::dbListObjects(con, DBI::Id(schema = schema))$table
  vapply(objects, function(id) utils::tail(id@name, 1), "")
}
