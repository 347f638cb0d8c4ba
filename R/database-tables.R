# Creates the tables of a database and adds columns to them, after a check of what is there.

create_tables <- function(con, schema, call) {
  model <- data_model()$required
  next_ids <- data.frame(key = c(names(stored_key_tables()), ".row"), next_id = 1)
  tables <- c(
    list(.next_ids = next_ids), model[setdiff(names(model), c("sample_values", names(sets_of_rows)))],
    list(.stacks = data.frame(stack_id = 0), .value_types = data.frame(number = 0L, type = "", unit = ""))
  )
  there <- list_tables(con, schema)
  engine <- dialect(con)
  unfinished <- if (engine$commits) unfinished_tables(con, schema, tables[names(tables) %in% there])
  if (".next_ids" %in% setdiff(there, unfinished)) {
    return(check_layout(there, call))
  }
  taken <- setdiff(intersect(c(names(model), stored_tables), there), unfinished)
  if (length(taken) > 0) {
    abort_foreign(taken[[1]], call)
  }
  # Another writer may create them at the same time.
  tryCatch(
    in_transaction(con, call = call, {
      for (table in unfinished) {
        DBI::dbExecute(con, paste("DROP TABLE", quoted(con, schema, table)))
      }
      for (table in names(tables)) {
        create_table(con, schema, table, tables[[table]], call)
      }
      if (engine$index) {
        create_index(con, schema, "samples_of_source", "samples", "source_id")
      }
      declare_run_size(con, schema)
      insert_rows(con, schema, "meta", data.frame(key = "version", value = "2.0"))
      insert_rows(con, schema, ".next_ids", next_ids)
    }),
    error = function(e) {
      # Listing fails if the connection was lost.
      there <- tryCatch(list_tables(con, schema), error = function(other) character())
      is_created <- engine$savepoint && ".next_ids" %in% there
      if (!is_created) {
        rlang::cnd_signal(e)
      }
    }
  )
}

# The tables of a creation that was interrupted, on engines that cannot undo it. `.next_ids` gets its rows last.
unfinished_tables <- function(con, schema, tables) {
  is_ours <- vapply(names(tables), FUN.VALUE = TRUE, function(table) {
    identical(list_fields(con, schema, table), c(names(tables[[table]]), own_columns(table))) &&
      nrow(read_table(con, schema, table)) == 0
  })
  if (isTRUE(is_ours[".next_ids"][[1]])) names(tables)[is_ours]
}

# Databases of earlier versions can be read, but not changed.
check_layout <- function(there, call) {
  if (is_old_layout(there)) {
    abort_unsupported(c(
      "The database was created by an earlier version of this package, and can only be read.",
      i = "Load its profiles with `profile_from_con()`, and store them in a new database."
    ), call)
  }
}

abort_foreign <- function(table, call) {
  rule <- "the database has another table of this name; choose another schema or database"
  abort_invalid(rule, table, call = call)
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

# Declares to PostgreSQL that a run has about a hundred samples. PostgreSQL would estimate several times as many,
# because it examines a part of the pages and the rows of a run share their pages. It would then read all samples
# instead of using the index to find the samples of some runs.
declare_run_size <- function(con, schema) {
  if (is_postgres(con)) {
    samples <- quoted(con, schema, "samples")
    DBI::dbExecute(con, paste("ALTER TABLE", samples, "ALTER COLUMN source_id SET (n_distinct = -0.01)"))
  }
}

# Adds the tables and columns that the database lacks for this profile, and updates the views.
add_missing_columns <- function(con, schema, x, call) {
  known <- data_model()$required
  there <- list_tables(con, schema)
  locked <- FALSE
  is_changed <- FALSE
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
      # The other columns are added one by one, so that an error can name the column.
      key <- intersect(primary_key_of(table), columns)
      create_table(con, schema, table, rows[key], call)
      fields <- key
    }
    new <- setdiff(columns, fields)
    if (length(new) > 0 && table %in% there && !locked) {
      wait_for_readers(con, schema)
      locked <- TRUE
    }
    add_columns(con, schema, table, rows[new], call)
    is_changed <- is_changed || length(new) > 0 || !table %in% there
  }
  if (is_changed) {
    create_views(con, schema)
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
  key <- primary_key_of(table)
  if (!is.null(key)) {
    parts <- c(parts, paste0("PRIMARY KEY (", paste(DBI::dbQuoteIdentifier(con, key), collapse = ", "), ")"))
  }
  parts <- paste(parts, collapse = ", ")
  # Otherwise SQLite stores a compound key twice: in the rows and in an index of them.
  layout <- if (is_sqlite(con) && length(key) > 1) " WITHOUT ROWID"
  sql <- paste0("CREATE TABLE ", quoted(con, schema, table), " (", parts, ")", dialect(con)$table, layout)
  with_name_errors(DBI::dbExecute(con, sql), table, call = call)
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
    with_name_errors(DBI::dbExecute(con, sql), table, column, call)
  }
  # PostgreSQL truncates long names without an error.
  changed <- if (length(rows) > 0) setdiff(names(rows), list_fields(con, schema, table))
  if (length(changed) > 0) {
    abort_unstorable("the database changes this name; rename it", table, changed[[1]], call = call)
  }
}

# Names the table or column if the database refuses it: only the engine knows which names are reserved or equal. Names
# that this package has chosen are not the reason of an error.
with_name_errors <- function(code, table, column = NULL, call) {
  model <- data_model()$columns
  is_own <- if (is.null(column)) table %in% model$table else column %in% model$column[model$table == table]
  if (is_own || table %in% stored_tables) {
    return(code)
  }
  tryCatch(code, error = function(e) {
    abort_unstorable("the database does not accept it", table, column, parent = e, call = call)
  })
}

# A column has one type for all profiles. SQLite would store any type, and load all values as the type of the
# first.
check_types <- function(con, schema, table, rows, call) {
  rows <- rows[setdiff(names(rows), names(stored_keys_of(table, names(rows))))]
  if (length(rows) == 0) {
    return()
  }
  columns <- paste(DBI::dbQuoteIdentifier(con, names(rows)), collapse = ", ")
  sql <- paste("SELECT", columns, "FROM", quoted(con, schema, table), "WHERE 1 = 0")
  stored <- rlang::set_names(DBI::dbGetQuery(con, sql), names(rows))
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
  engine <- dialect(con)
  own <- column == ".row" || table == ".next_ids" && column == "next_id"
  if (own || length(stored_keys_of(table, column)) == 1) {
    return(engine$id)
  }
  if (column == ".key" && column %in% own_columns(table)) {
    return("VARCHAR(22) UNIQUE")
  }
  x <- rows[[column]]
  type <- if (inherits(x, "integer64")) {
    "BIGINT"
  } else {
    switch(kind_of(x),
      text = engine[[if (column %in% primary_key_of(table)) "key_text" else "text"]],
      blob = engine$blob,
      number = if (is.logical(x)) engine$logical
    )
  }
  type %||% DBI::dbDataType(con, if (is.factor(x)) as.character(x) else x)
}
