# Writes a profile to a database: first checks that names and types can be stored, then appends rows.

# ---- What a database can store ---------------------------------------------

check_storable <- function(x, call) {
  if (".next_ids" %in% names(x)) {
    abort_unstorable("this name is reserved in databases; rename the table", ".next_ids", call = call)
  }
  for (table in names(x)) {
    if (!is.data.frame(x[[table]])) {
      abort_invalid("must be a data frame", table, call = call)
    }
    columns <- names(x[[table]])
    if ("" %in% columns) {
      abort_invalid("has a column without a name", table, call = call)
    }
    reserved <- intersect(c(".row", own_columns(table)), columns)
    if (length(reserved) > 0) {
      rule <- "this name is reserved in databases; rename the column"
      abort_unstorable(rule, table, reserved[[1]], call = call)
    }
    for (column in columns) {
      rule <- unstorable_type(x[[table]][[column]])
      if (!is.null(rule)) {
        abort_unstorable(rule, table, column, call = call)
      }
    }
  }
}

# Why the values of a column cannot be stored: a reason for each row.
unstorable_type <- function(x) {
  if (inherits(x, "blob")) {
    return(NULL)
  }
  if (length(dim(x)) > 1) {
    return("is a table or a matrix, which a column of a database cannot store")
  }
  if (!is.factor(x) && !typeof(x) %in% c("logical", "integer", "double", "character")) {
    return(paste0("has type ", typeof(x), ", which a column of a database cannot store"))
  }
  text <- if (is.factor(x)) levels(x) else x
  if (is.character(text) && any(Encoding(text) == "bytes")) {
    return("has text in encoding \"bytes\"; convert it to UTF-8 with `iconv()`")
  }
  NULL
}

# ---- Tables and columns ----------------------------------------------------

create_tables <- function(con, schema, call) {
  model <- data_model()$required
  there <- list_tables(con, schema)
  if (".next_ids" %in% there) {
    return()
  }
  taken <- intersect(names(model), there)
  if (length(taken) > 0) {
    abort_foreign(taken[[1]], call)
  }
  # Another writer may create them at the same time.
  tryCatch(
    in_transaction(con, call = call, {
      next_ids <- data.frame(key = c(names(data_model()$keys), ".row"), next_id = 1)
      create_table(con, schema, ".next_ids", next_ids, call)
      DBI::dbAppendTable(con, table_id(schema, ".next_ids"), next_ids)
      for (table in names(model)) {
        create_table(con, schema, table, model[[table]], call)
      }
      create_index(con, schema)
      version <- data.frame(key = "version", value = "2.0")
      DBI::dbAppendTable(con, table_id(schema, "meta"), version)
    }),
    error = function(e) {
      if (!".next_ids" %in% list_tables(con, schema)) {
        rlang::cnd_signal(e)
      }
    }
  )
}

abort_foreign <- function(table, call) {
  rule <- "the database has another table of this name; choose another schema or database"
  abort_invalid(rule, table, call = call)
}

create_index <- function(con, schema) {
  index <- "samples_of_source"
  samples <- quoted(con, schema, "samples")
  if (is_sqlite(con) && !is.null(schema)) {
    # In SQLite the schema is part of the name of the index, not of that of its table.
    index <- quoted(con, schema, index)
    samples <- "samples"
  }
  DBI::dbExecute(con, paste("CREATE INDEX", index, "ON", samples, "(source_id)"))
}

# Adds the tables and columns that no stored profile has.
make_room <- function(con, schema, x, call) {
  known <- data_model()$required
  there <- list_tables(con, schema)
  locked <- FALSE
  for (table in names(x)) {
    rows <- x[[table]]
    # The columns of the model were created with the tables.
    columns <- setdiff(names(rows), names(known[[table]]))
    if (table %in% there) {
      if (length(columns) == 0) {
        next
      }
      fields <- list_fields(con, schema, table)
      if (!belongs(table, fields)) {
        abort_foreign(table, call)
      }
      check_types(con, schema, table, rows[intersect(columns, fields)], call)
    } else {
      # The other columns one by one, so that an error can name the column.
      key <- intersect(data_model()$primary_keys[[table]], columns)
      create_table(con, schema, table, rows[key], call)
      fields <- key
    }
    new <- setdiff(columns, fields)
    if (length(new) > 0 && table %in% there && !locked) {
      wait_for_readers(con, schema)
      locked <- TRUE
    }
    add_columns(con, schema, table, rows[new], call)
  }
}

# PostgreSQL adds a column only while nobody reads the table. Every reader starts with `sources`, so locking
# that table avoids a deadlock with readers that hold one table and wait for another.
wait_for_readers <- function(con, schema) {
  if (is_postgres(con)) {
    DBI::dbExecute(con, paste("LOCK TABLE", quoted(con, schema, "sources"), "IN ACCESS EXCLUSIVE MODE"))
  }
}

create_table <- function(con, schema, table, rows, call) {
  columns <- c(names(rows), own_columns(table))
  types <- vapply(columns, column_type, "", con = con, table = table, rows = rows)
  parts <- paste(DBI::dbQuoteIdentifier(con, columns), types)
  key <- if (table == ".next_ids") "key" else data_model()$primary_keys[[table]]
  if (!is.null(key)) {
    key <- paste(DBI::dbQuoteIdentifier(con, key), collapse = ", ")
    parts <- c(parts, paste0("PRIMARY KEY (", key, ")"))
  }
  parts <- paste(parts, collapse = ", ")
  sql <- paste0("CREATE TABLE ", quoted(con, schema, table), " (", parts, ")")
  or_refused(DBI::dbExecute(con, sql), table, call = call)
  if (!table %in% list_tables(con, schema)) {
    abort_unstorable("the database changes this name; rename it", table, call = call)
  }
}

add_columns <- function(con, schema, table, rows, call) {
  for (column in names(rows)) {
    sql <- paste(
      "ALTER TABLE", quoted(con, schema, table), "ADD COLUMN",
      DBI::dbQuoteIdentifier(con, column), column_type(column, con, table, rows)
    )
    or_refused(DBI::dbExecute(con, sql), table, column, call)
  }
  # PostgreSQL truncates long names without an error.
  changed <- if (length(rows) > 0) setdiff(names(rows), list_fields(con, schema, table))
  if (length(changed) > 0) {
    abort_unstorable("the database changes this name; rename it", table, changed[[1]], call = call)
  }
}

# Only the engine knows which names are reserved, and which it considers equal.
or_refused <- function(code, table, column = NULL, call) {
  tryCatch(code, error = function(e) {
    abort_unstorable("the database does not accept it", table, column, parent = e, call = call)
  })
}

# A column has one type for all profiles. SQLite would store any type, and load all values as the type of the
# first.
check_types <- function(con, schema, table, rows, call) {
  rows <- rows[setdiff(names(rows), names(keys_of(names(rows))))]
  if (length(rows) == 0) {
    return()
  }
  columns <- paste(DBI::dbQuoteIdentifier(con, names(rows)), collapse = ", ")
  sql <- paste("SELECT", columns, "FROM", quoted(con, schema, table), "WHERE 1 = 0")
  stored <- DBI::dbGetQuery(con, sql)
  for (column in names(rows)) {
    x <- rows[[column]]
    type <- stored[[column]]
    whole <- is.integer(type) && is.double(x) && !inherits(x, "integer64")
    if (kind_of(x) != kind_of(type) || whole && any(x != trunc(x), na.rm = TRUE)) {
      rule <- paste0("is ", typeof(x), ", but has type ", typeof(type), " in the database")
      abort_unstorable(rule, table, column, call = call)
    }
  }
}

kind_of <- function(x) {
  if (is.list(x)) "blob" else if (is.character(x) || is.factor(x)) "text" else "number"
}

column_type <- function(column, con, table, rows) {
  own <- column == ".row" || table == ".next_ids" && column == "next_id"
  if (own || length(keys_of(column)) == 1) {
    return("BIGINT")
  }
  x <- rows[[column]]
  DBI::dbDataType(con, if (is.factor(x)) as.character(x) else x)
}

# ---- Rows ------------------------------------------------------------------

# The number of ids of each key that are in use. The update makes other writers wait until the end of the
# transaction.
claim_ids <- function(con, schema, x) {
  rows <- vapply(data_model()$keys, function(table) NROW(x[[table]]), 0L)
  rows[[".row"]] <- max(vapply(x[needs_row(names(x))], nrow, 0L))
  for (key in names(rows)) {
    DBI::dbExecute(con, paste0(
      "UPDATE ", quoted(con, schema, ".next_ids"),
      " SET next_id = next_id + ", rows[[key]],
      " WHERE ", DBI::dbQuoteIdentifier(con, "key"), " = ", DBI::dbQuoteString(con, key)
    ))
  }
  claimed <- DBI::dbReadTable(con, table_id(schema, ".next_ids"))
  ends <- as.numeric(claimed$next_id)[match(names(rows), claimed$key)]
  rlang::set_names(ends - rows - 1, names(rows))
}

# A part at a time, since a database gets copies of all columns, some of which take no memory in the profile.
append_table <- function(con, schema, x, table, offsets, call, size = 1e6) {
  n <- nrow(x[[table]])
  for (before in seq(0, max(n - 1, 0), by = size)) {
    part <- as.integer(before) + seq_len(min(size, n - before))
    append_rows(con, schema, table, with_database_ids(x, table, part, offsets, call))
  }
}

# These rows of a table with the ids of the database.
with_database_ids <- function(x, table, part, offsets, call) {
  rows <- slice_rows(x[[table]], part)
  keys <- keys_of(names(rows))
  for (column in names(keys)) {
    key <- keys[[column]]
    ids <- as_ids(rows[[column]], table, column, call)
    found <- rows_of_ids(ids, x, key, call)
    check_resolved(ids, found, table, column, call)
    rows[[column]] <- wide_ids(found, offsets[[key]], call)
  }
  if (table == ".mappings") {
    # A mapping that no location refers to would not be found otherwise.
    rows$source_id <- wide_ids(rep(1L, nrow(rows)), offsets[["source_id"]], call)
  }
  if (needs_row(table)) {
    rows$.row <- wide_ids(part, offsets[[".row"]], call)
  }
  factors <- vapply(rows, is.factor, TRUE)
  rows[factors] <- lapply(rows[factors], as.character)
  rows
}

# Integers if they fit, since some databases would receive a double as 3e+09.
wide_ids <- function(rows, offset, call) {
  if (offset + max(rows, 0L, na.rm = TRUE) <= .Machine$integer.max) {
    return(rows + as.integer(offset))
  }
  need_package("bit64", call)
  bit64::as.integer64(rows + offset)
}

append_rows <- function(con, schema, table, rows) {
  name <- table_id(schema, table)
  if (table == "meta") {
    there <- DBI::dbReadTable(con, name)[c("key", "value")]
    rows <- rows[!vctrs::vec_in(rows[c("key", "value")], tibble::as_tibble(there)), ]
  }
  if (nrow(rows) > 0) {
    DBI::dbAppendTable(con, name, as.data.frame(rows))
  }
}
