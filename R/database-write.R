# Writes a profile to a database: first checks that names and types can be stored, then appends rows.

# ---- What a database can store ---------------------------------------------

check_storable <- function(x, call) {
  reserved <- intersect(stored_tables, names(x))
  if (length(reserved) > 0) {
    abort_unstorable("this name is reserved in databases; rename the table", reserved[[1]], call = call)
  }
  for (table in names(x)) {
    if (!is.data.frame(x[[table]])) {
      abort_invalid("must be a data frame", table, call = call)
    }
    columns <- names(x[[table]])
    if ("" %in% columns) {
      abort_invalid("has a column without a name", table, call = call)
    }
    reserved <- columns[columns %in% c(".row", own_columns(table)) | is_of_layout(table, columns)]
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

# The reason why a database cannot store the values of a column, or NULL.
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
      if (!engine$savepoint || !".next_ids" %in% list_tables(con, schema)) {
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

# Names the table or column if the database refuses it: only the engine knows which names are reserved or equal.
with_name_errors <- function(code, table, column = NULL, call) {
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

# ---- Rows ------------------------------------------------------------------

# Makes other writers wait until the end of the transaction, so that the tables do not change meanwhile.
wait_for_writers <- function(con, schema) {
  DBI::dbExecute(con, paste0(
    "UPDATE ", quoted(con, schema, ".next_ids"), " SET next_id = next_id",
    " WHERE ", DBI::dbQuoteIdentifier(con, "key"), " = '.row'"
  ))
}

# Assigns ids in the database: `ids` contains the ids of the rows of each key, `rows` the rows of each table that are
# new to the database, and `before` is the last `.row` in use.
claim_ids <- function(con, schema, stored) {
  x <- stored$tables
  tables <- stored_key_tables()
  ids <- rows <- list()
  for (key in names(tables)) {
    table <- tables[[key]]
    count <- NROW(x[[table]])
    content <- stored$keys[[table]]
    if (is.null(content)) {
      ids[[key]] <- rep(NA_real_, count)
      rows[[table]] <- seq_len(count)
    } else {
      ids[[key]] <- stored_ids(con, schema, table, key, content)
      rows[[table]] <- which(is.na(ids[[key]]) & (is.na(content) | !duplicated(content)))
    }
  }
  parts <- c(shared_tables, rlang::set_names(lapply(sets_of_rows, `[[`, "rows"), unname(stored_keys)))
  for (table in intersect(names(parts), names(x))) {
    key <- names(tables)[tables == table]
    for (part in intersect(parts[[table]], names(x))) {
      of <- match(x[[part]][[key]], x[[table]][[key]])
      rows[[part]] <- which(of %in% rows[[table]])
    }
  }
  others <- setdiff(names(x), names(rows))
  rows[others] <- lapply(x[others], function(part) seq_len(nrow(part)))
  counts <- lengths(rows)[tables]
  names(counts) <- names(tables)
  counts[[".row"]] <- max(0L, lengths(rows)[needs_row(names(rows))])
  ends <- next_ids(con, schema, counts[counts > 0])
  for (key in intersect(names(tables), names(ends))) {
    new <- rows[[tables[[key]]]]
    ids[[key]][new] <- ends[[key]] - length(new) + seq_along(new)
    content <- stored$keys[[tables[[key]]]]
    if (!is.null(content)) {
      same <- is.na(ids[[key]])
      ids[[key]][same] <- ids[[key]][match(content[same], content)]
    }
  }
  before <- if (".row" %in% names(ends)) ends[[".row"]] - counts[[".row"]] else 0
  list(ids = ids, rows = rows, before = before)
}

# Reserves the next ids of these keys, and returns the last reserved id of each key.
next_ids <- function(con, schema, counts) {
  for (key in names(counts)) {
    DBI::dbExecute(con, paste0(
      "UPDATE ", quoted(con, schema, ".next_ids"),
      " SET next_id = next_id + ", counts[[key]],
      " WHERE ", DBI::dbQuoteIdentifier(con, "key"), " = ", DBI::dbQuoteString(con, key)
    ))
  }
  claimed <- read_table(con, schema, ".next_ids")
  ends <- as.numeric(claimed$next_id)[match(names(counts), claimed$key)]
  rlang::set_names(as.list(ends - 1), names(counts))
}

# The ids of the rows with these content keys, NA for rows that the database does not have.
stored_ids <- function(con, schema, table, key, content, size = 500L) {
  wanted <- unique(content[!is.na(content)])
  found <- lapply(split(wanted, (seq_along(wanted) - 1L) %/% size), function(part) {
    id <- DBI::dbQuoteIdentifier(con, key)
    DBI::dbGetQuery(con, paste0(
      "SELECT CAST(", id, " AS ", dialect(con)$double, ") AS id, ",
      DBI::dbQuoteIdentifier(con, ".key"), " AS content FROM ",
      quoted(con, schema, table), " WHERE ", DBI::dbQuoteIdentifier(con, ".key"), " IN (",
      paste0("'", part, "'", collapse = ", "), ")"
    ))
  })
  found <- vctrs::vec_rbind(!!!unname(found))
  as.numeric(found$id)[match(content, found$content, incomparables = NA)]
}

# Appends a table in parts, since the driver copies all columns, some of which take no memory in the profile.
# `advance` is called with the number of rows that are appended next.
append_table <- function(con, schema, stored, table, claimed, call, advance, size = 1e6) {
  rows <- claimed$rows[[table]]
  n <- length(rows)
  for (before in seq(0, max(n - 1, 0), by = size)) {
    part <- before + seq_len(min(size, n - before))
    advance(length(part))
    append_rows(con, schema, table, with_database_ids(stored, table, rows[part], part, claimed, call))
  }
}

# The given rows of a table, with the ids of the database. `number` is their position among the rows that are written.
with_database_ids <- function(stored, table, part, number, claimed, call) {
  x <- stored$tables
  rows <- slice_rows(x[[table]], part)
  keys <- stored_keys_of(table, names(rows))
  for (column in names(keys)) {
    key <- keys[[column]]
    if (key %in% names(stored_keys)) {
      # Sets are numbered.
      found <- rows[[column]]
    } else {
      ids <- as_ids(rows[[column]], table, column, call)
      found <- rows_of_ids(ids, x, key, call)
      check_resolved(ids, found, table, column, call)
    }
    rows[[column]] <- wide_ids(claimed$ids[[key]][found], call)
  }
  if (table == ".mappings") {
    # A mapping that no location refers to would not be found otherwise.
    rows$source_id <- wide_ids(rep(claimed$ids$source_id[1], nrow(rows)), call)
  }
  if (needs_row(table)) {
    rows$.row <- wide_ids(claimed$before + number, call)
  }
  if (".key" %in% own_columns(table)) {
    rows$.key <- stored$keys[[table]][part]
  }
  factors <- vapply(rows, is.factor, TRUE)
  rows[factors] <- lapply(rows[factors], as.character)
  rows
}

# Integers if they fit, since some databases would receive a double as 3e+09.
wide_ids <- function(ids, call) {
  if (max(ids, 0, na.rm = TRUE) <= .Machine$integer.max) {
    return(as.integer(ids))
  }
  need_package("bit64", call)
  bit64::as.integer64(ids)
}

append_rows <- function(con, schema, table, rows) {
  if (table == "meta") {
    there <- read_table(con, schema, table)[c("key", "value")]
    rows <- rows[!vctrs::vec_in(rows[c("key", "value")], tibble::as_tibble(there)), ]
  }
  if (nrow(rows) > 0) {
    insert_rows(con, schema, table, rows)
  }
}
