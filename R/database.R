# Connections to databases: the names of tables and columns, and what differs between drivers. database-dialects.R
# describes engines, database-transaction.R transactions.

# An open connection to a database, and a schema in it.
check_database <- function(con, name, schema, call) {
  need_package("DBI", call)
  # RPostgreSQL has no method.
  if (!tryCatch(DBI::dbIsValid(con), error = function(e) TRUE)) {
    abort_argument(paste0("The connection `", name, "` has been closed."), call)
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

# The name of a table in a view. In SQLite, the schema is left out: SQLite would store its name, which changes when the
# file is opened by itself. Without a schema, SQLite uses the tables in the file of the view.
in_view <- function(con, schema, table) {
  quoted(con, if (!is_sqlite(con)) schema, table)
}

create_index <- function(con, schema, index, table, column) {
  name <- DBI::dbQuoteIdentifier(con, index)
  on <- quoted(con, schema, table)
  if (is_sqlite(con) && !is.null(schema)) {
    # In SQLite the schema belongs to the name of the index, not to the name of its table.
    name <- quoted(con, schema, index)
    on <- DBI::dbQuoteIdentifier(con, table)
  }
  DBI::dbExecute(con, paste0(
    "CREATE INDEX ", name, " ON ", on, " (", DBI::dbQuoteIdentifier(con, column), ")"
  ))
}

abort_foreign <- function(table, call) {
  rule <- "the database has another table of this name; choose another schema or database"
  abort_invalid(rule, table, call = call)
}

# Integers if they fit, since some databases would receive a double as 3e+09.
wide_ids <- function(ids, call) {
  if (max(abs(ids), 0, na.rm = TRUE) <= .Machine$integer.max) {
    return(as.integer(ids))
  }
  need_package("bit64", call)
  bit64::as.integer64(ids)
}
