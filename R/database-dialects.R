# What the engines of databases need beyond the SQL that all of them have.

# `classes`: the classes of connections; with odbc, a class has the name of the engine.
# `id`, `double`: types of ids, and of ids that are read. `text`: the type of texts, by default TEXT. `table`: what
#   follows CREATE TABLE.
# `begin`: statements that begin a transaction, by default `dbBegin()`. `isolation`: its level, set after `dbBegin()`.
# `is_transacting`: whether there is a transaction, whoever has begun it; DBI cannot report this, and drivers know only
#   transactions that DBI has begun.
# `savepoint`: whether a part of a transaction can be undone. `commits`: whether CREATE ends a transaction.
# `catalogue`: the default schema, if information_schema lists tables and columns.
# `drop_temporary`: drops a temporary table. `index`: whether there is an index of the sums of each origin.
# `time`: seconds since 1970 as a timestamp in UTC.
# `text_of_integer64`: whether integer64 is passed as text.
standard_sql <- list(
  id = "BIGINT", double = "DOUBLE PRECISION", table = "",
  is_transacting = function(con) FALSE, savepoint = FALSE, commits = FALSE, drop_temporary = "DROP TABLE", index = TRUE,
  text_of_integer64 = FALSE, time = "%s"
)

dialects <- list(
  sqlite = list(
    classes = c("SQLiteConnection", "SQLite"),
    # All integers have up to 64 bits, and a primary key of this type takes no space.
    id = "INTEGER",
    # A transaction that reads before it writes cannot wait for another writer.
    begin = list(read = "BEGIN", write = "BEGIN IMMEDIATE"),
    is_transacting = function(con) {
      # BEGIN does not lock anything yet; it fails only inside a transaction.
      begun <- tryCatch(DBI::dbExecute(con, "BEGIN"), error = function(e) NULL)
      if (!is.null(begun)) {
        DBI::dbExecute(con, "ROLLBACK")
      }
      is.null(begun)
    },
    savepoint = TRUE,
    # As dbplyr writes times.
    time = "strftime('%%Y-%%m-%%dT%%H:%%M:%%SZ', %s, 'unixepoch')"
  ),
  postgres = list(
    classes = c("PqConnection", "PostgreSQLConnection", "PostgreSQL"),
    # A writer that has waited must see what was written in the meantime.
    isolation = list(read = "REPEATABLE READ, READ ONLY", write = "READ COMMITTED"),
    is_transacting = function(con) {
      # A local setting lasts until the end of the transaction, which may be this statement. Trying a SAVEPOINT
      # instead would leave an error in the log of the server.
      DBI::dbGetQuery(con, "SELECT set_config('profile.transacting', 'yes', true)")
      set <- DBI::dbGetQuery(con, "SELECT current_setting('profile.transacting', true)")[[1]]
      identical(set, "yes")
    },
    savepoint = TRUE,
    catalogue = "current_schema()", time = "to_timestamp(%s) AT TIME ZONE 'UTC'"
  ),
  mysql = list(
    classes = c("MariaDBConnection", "MySQLConnection", "MariaDB", "MySQL"),
    double = "DOUBLE", text = "LONGTEXT",
    # Other collations take names for equal that differ in case, accents or trailing blanks.
    table = " ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
    # The level is the default, REPEATABLE READ: RMariaDB would reset another before the transaction begins. A writer
    # reads nothing before it has waited for others, so it sees what they have written.
    is_transacting = function(con) {
      # Outside of a transaction, a savepoint ends with its statement.
      DBI::dbExecute(con, "SAVEPOINT profile_transacting")
      released <- tryCatch(DBI::dbExecute(con, "RELEASE SAVEPOINT profile_transacting"), error = function(e) NULL)
      !is.null(released)
    },
    savepoint = TRUE, commits = TRUE, drop_temporary = "DROP TEMPORARY TABLE",
    catalogue = "DATABASE()", time = "TIMESTAMPADD(SECOND, %s, TIMESTAMP '1970-01-01 00:00:00')"
  ),
  duckdb = list(
    classes = "duckdb_connection",
    is_transacting = function(con) {
      id <- function() DBI::dbGetQuery(con, "SELECT CAST(txid_current() AS VARCHAR) AS id")$id
      id() == id()
    },
    # Finding the sums of an origin needs none.
    index = FALSE,
    catalogue = "current_schema()", time = "TIMESTAMP '1970-01-01' + to_seconds(%s)",
    # The driver would store the bits of a double.
    text_of_integer64 = TRUE
  )
)

dialect <- function(con) {
  known <- Find(function(engine) inherits(con, engine$classes), dialects)
  found <- utils::modifyList(standard_sql, as.list(known))
  # PostgreSQL's driver of ODBC has savepoints of its own around each statement, so ours cannot be released.
  found$savepoint <- found$savepoint && !inherits(con, "OdbcConnection")
  found
}

is_sqlite <- function(con) {
  inherits(con, dialects$sqlite$classes)
}

is_postgres <- function(con) {
  inherits(con, dialects$postgres$classes)
}

is_transacting <- function(con) {
  dialect(con)$is_transacting(con)
}

# ---- Rows as text ------------------------------------------------------------

# Drivers that append no rows in our transaction: the statements of RMySQL and RPostgreSQL have no parameters, and RMariaDB
# and odbc begin a transaction of their own. Engines that are not known may limit the rows of a statement.
needs_literals <- function(con) {
  drivers <- c("MySQLConnection", "PostgreSQLConnection", "MariaDBConnection", "OdbcConnection")
  !is.null(dialect(con)$classes) && inherits(con, drivers)
}

insert_rows <- function(con, schema, table, rows) {
  rows <- as.data.frame(rows)
  if (dialect(con)$text_of_integer64) {
    wide <- vapply(rows, inherits, TRUE, "integer64")
    rows[wide] <- lapply(rows[wide], as.character)
  }
  if (!needs_literals(con)) {
    with_first_error(DBI::dbAppendTable(con, table_id(schema, table), rows))
    return()
  }
  columns <- paste(DBI::dbQuoteIdentifier(con, names(rows)), collapse = ", ")
  values <- do.call(paste, c(unname(lapply(rows, literals, con = con)), sep = ", "))
  # Servers limit the length of a statement, to 16 MB by default.
  part <- cumsum(nchar(values, "bytes") + 4) %/% 1e6
  for (lines in split(values, part)) {
    DBI::dbExecute(con, paste0(
      "INSERT INTO ", quoted(con, schema, table), " (", columns, ") VALUES ", paste0("(", lines, ")", collapse = ", ")
    ))
  }
}

literals <- function(x, con) {
  text <- if (inherits(x, "integer64") || is.integer(x)) {
    as.character(x)
  } else if (is.character(x)) {
    quoted_text(con, enc2utf8(x))
  } else {
    sprintf("%.17g", x)
  }
  ifelse(is.na(x), "NULL", text)
}
