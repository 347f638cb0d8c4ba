# Profiles in a database: the same tables, run after run.
#
# Whatever DBI connects to will do; what differs between engines is left to them
# by asking for types (dbDataType) and quoting names. Ids in the database are 64 bits
# wide and belong to it: a profile gets new ones when it is stored, and 1, 2, 3, ...
# when it is loaded.

#' Keep profiles in a database
#'
#' @description
#' `copy_profile_to()` appends a profile to the tables of a database, and makes them
#' if they are not there. `profile_from_con()` loads the runs that are asked for.
#' With them a team's profiles can outgrow one machine's memory. See [tbl_profile()]
#' for summaries that the database computes.
#'
#' @details
#' The tables are those of version 2.0, under their names, with their columns; tables
#' and columns with a leading dot are added when a profile has them. Ids are `BIGINT`,
#' primary keys are set. Two things are added: `.next_ids` holds the next free
#' id of each key, and tables whose rows have an order that no key tells have it in a
#' column `.row`, a number that grows from profile to profile. Functions and locations are stored for each profile; when profiles
#' are loaded, equal ones become one.
#'
#' All is written in one transaction, whose first statement claims the ids: writers
#' wait for each other, and after an error or Ctrl-C nothing of the profile is
#' there. To wait for other writers, SQLite gets a busy timeout of a minute
#' meanwhile.
#'
#' Columns with a leading dot that are `NA` for all loaded runs are left out. What a user
#' has added there comes back as the database's type for it: a factor as text, on
#' SQLite a logical as integer.
#'
#' @param con A connection, from `DBI::dbConnect()`. It must not be in a transaction.
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
#' `profile_error_invalid` when `x` breaks a rule, or the database does not hold
#' profiles. Errors of the database are passed on.
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
  create_tables(con, schema, call)
  in_transaction(con, {
    offsets <- claim_ids(con, schema, x)
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
  source_ids <- chosen_sources(con, rlang::enquos(...), schema, call)
  load_sources(con, source_ids, schema, call)
}

# ---- Writing ---------------------------------------------------------------

# Ctrl-C is no error, so this does not rely on handlers of errors.
in_transaction <- function(con, code) {
  if (inherits(con, "SQLiteConnection")) {
    timeout <- DBI::dbGetQuery(con, "PRAGMA busy_timeout")[[1]]
    on.exit(DBI::dbGetQuery(con, paste("PRAGMA busy_timeout =", timeout)), add = TRUE)
    DBI::dbGetQuery(con, "PRAGMA busy_timeout = 60000")
  }
  DBI::dbBegin(con)
  done <- FALSE
  on.exit(if (!done) DBI::dbRollback(con), add = TRUE, after = FALSE)
  force(code)
  DBI::dbCommit(con)
  done <- TRUE
}

create_tables <- function(con, schema, call) {
  if (has_table(con, schema, ".next_ids")) {
    return()
  }
  # Another writer may be doing the same; then its tables will do.
  tryCatch(
    in_transaction(con, {
      tables <- data_model()$tables
      for (table in names(tables)) {
        create_table(con, schema, table, tables[[table]])
      }
      DBI::dbExecute(con, paste(
        "CREATE INDEX samples_of_source ON", quoted(con, schema, "samples"), "(source_id)"
      ))
      next_ids <- data.frame(key = c(names(key_parents), ".row"), next_id = 1)
      create_table(con, schema, ".next_ids", next_ids)
      DBI::dbAppendTable(con, table_id(schema, ".next_ids"), next_ids)
      version <- data.frame(key = "version", value = "2.0")
      DBI::dbAppendTable(con, table_id(schema, "meta"), version)
    }),
    error = function(e) {
      if (!has_table(con, schema, ".next_ids")) {
        rlang::cnd_signal(e)
      }
    }
  )
}

create_table <- function(con, schema, table, rows) {
  columns <- union(names(rows), if (needs_row(table)) ".row")
  types <- vapply(columns, column_type, "", con = con, rows = rows)
  parts <- paste(DBI::dbQuoteIdentifier(con, columns), types)
  key <- if (table == ".next_ids") "key" else primary_keys[[table]]
  if (!is.null(key)) {
    key <- paste(DBI::dbQuoteIdentifier(con, key), collapse = ", ")
    parts <- c(parts, paste0("PRIMARY KEY (", key, ")"))
  }
  parts <- paste(parts, collapse = ", ")
  DBI::dbExecute(con, paste0("CREATE TABLE ", quoted(con, schema, table), " (", parts, ")"))
}

column_type <- function(column, con, rows) {
  if (length(keys_of(column)) == 1 || column %in% c("next_id", ".row")) {
    return("BIGINT")
  }
  x <- rows[[column]]
  DBI::dbDataType(con, if (is.factor(x)) as.character(x) else x)
}

# Tables whose order no key tells.
needs_row <- function(table) {
  !table %in% c(key_parents, "sample_locations", "meta", ".next_ids")
}

# How many ids there were of each key before ours. As the first statement of the
# transaction the update makes other writers wait until its end.
claim_ids <- function(con, schema, x) {
  rows <- vapply(key_parents, function(table) NROW(x[[table]]), 0L)
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

# The rows of a table as they will stand in the database.
with_database_ids <- function(x, table, offsets, call) {
  rows <- x[[table]]
  keys <- keys_of(names(rows))
  for (column in names(keys)) {
    key <- keys[[column]]
    ids <- as_ids(rows[[column]], table, column, call)
    rows[[column]] <- wide_ids(rows_of_ids(ids, x, key, call), offsets[[key]], call)
  }
  if (table == ".mappings") {
    # One that no location refers to would not be found otherwise.
    rows$source_id <- wide_ids(rep(1L, nrow(rows)), offsets[["source_id"]], call)
  }
  if (needs_row(table)) {
    rows$.row <- wide_ids(seq_len(nrow(rows)), offsets[[".row"]], call)
  }
  factors <- vapply(rows, is.factor, TRUE)
  rows[factors] <- lapply(rows[factors], as.character)
  rows
}

# Integers as long as they fit; a double would reach some databases as 3e+09.
wide_ids <- function(rows, offset, call) {
  if (offset + max(rows, 0L, na.rm = TRUE) <= .Machine$integer.max) {
    return(rows + as.integer(offset))
  }
  need_package("bit64", call)
  bit64::as.integer64(rows + offset)
}

append_rows <- function(con, schema, table, rows) {
  name <- table_id(schema, table)
  # The columns of the model were made with the tables.
  known <- data_model()$tables[[table]]
  if (is.null(known) && !has_table(con, schema, table)) {
    create_table(con, schema, table, rows)
  }
  new <- setdiff(names(rows), c(names(known), ".row"))
  if (length(new) > 0) {
    new <- setdiff(new, DBI::dbListFields(con, name))
  }
  for (column in new) {
    DBI::dbExecute(con, paste(
      "ALTER TABLE", quoted(con, schema, table), "ADD COLUMN",
      DBI::dbQuoteIdentifier(con, column), column_type(column, con, rows)
    ))
  }
  if (table == "meta") {
    there <- DBI::dbReadTable(con, name)[c("key", "value")]
    rows <- rows[!vctrs::vec_in(rows[c("key", "value")], tibble::as_tibble(there)), ]
  }
  if (nrow(rows) > 0) {
    DBI::dbAppendTable(con, name, as.data.frame(rows))
  }
}

# ---- Reading ---------------------------------------------------------------

# The ids of the sources for which all conditions hold, in their order.
chosen_sources <- function(con, conditions, schema, call) {
  if (!has_table(con, schema, "sources")) {
    abort_invalid("it is missing in the database", "sources", call = call)
  }
  sources <- typed_columns(select_rows(con, schema, "sources"), "sources")
  chosen <- rep(TRUE, nrow(sources))
  for (condition in conditions) {
    holds <- tryCatch(rlang::eval_tidy(condition, sources), error = function(e) {
      said <- paste0("Cannot evaluate `", rlang::as_label(condition), "` on the sources.")
      abort_profile(said, "profile_error_argument", parent = e, call = call)
    })
    if (!is.logical(holds) || !length(holds) %in% c(1, nrow(sources))) {
      abort_argument("A condition must be `TRUE` or `FALSE` for each source.", call)
    }
    chosen <- chosen & !is.na(holds) & holds
  }
  sources$source_id[chosen]
}

load_sources <- function(con, source_ids, schema, call) {
  known <- data_model()
  dotted <- setdiff(names(known$dotted), names(known$tables))
  listed <- setdiff(listed_tables(con, schema), ".next_ids")
  x <- list()
  for (table in union(names(known$tables), c(dotted, listed))) {
    if (has_table(con, schema, table)) {
      x[[table]] <- select_rows(con, schema, table, source_ids)
    }
  }
  x <- from_database_ids(x)
  x <- lapply(Map(typed_columns, x, names(x)), without_silent_columns)
  x <- x[names(x) %in% names(known$tables) | vapply(x, nrow, 0L) > 0]
  rust(.Call(C_validate, x), call)
  bind_profiles(list(x), call)
}

# Tables with a leading dot that a user has added.
listed_tables <- function(con, schema) {
  tables <- if (is.null(schema)) {
    DBI::dbListTables(con)
  } else {
    objects <- DBI::dbListObjects(con, DBI::Id(schema = schema))$table
    vapply(objects, function(id) utils::tail(id@name, 1), "")
  }
  tables[startsWith(tables, ".")]
}

# The rows of a table that belong to some sources, by the keys it has. Ids come as
# double, which every driver has.
select_rows <- function(con, schema, table, source_ids = NULL) {
  columns <- DBI::dbListFields(con, table_id(schema, table))
  name <- DBI::dbQuoteIdentifier(con, columns)
  is_id <- columns %in% c(names(keys_of(columns)), ".row")
  selected <- ifelse(is_id, paste0("CAST(", name, " AS double precision) AS ", name), name)
  order <- intersect(primary_keys[[table]], columns)
  if (".row" %in% columns) {
    order <- ".row"
  }
  sql <- paste(
    "SELECT", paste(selected, collapse = ", "), "FROM", quoted(con, schema, table),
    where_sources(con, schema, table, columns, source_ids)
  )
  if (length(order) > 0) {
    sql <- paste(sql, "ORDER BY", paste(DBI::dbQuoteIdentifier(con, order), collapse = ", "))
  }
  tibble::as_tibble(DBI::dbGetQuery(con, sql))
}

where_sources <- function(con, schema, table, columns, source_ids) {
  if (is.null(source_ids)) {
    return("")
  }
  within <- function(key, from, where, column = key) {
    column <- DBI::dbQuoteIdentifier(con, column)
    paste0(key, " IN (SELECT ", column, " FROM ", quoted(con, schema, from), " WHERE ", where, ")")
  }
  # No id is 0: an empty list is no SQL.
  ids <- format(c(0, source_ids), scientific = FALSE, trim = TRUE)
  by_source <- paste0("source_id IN (", paste(ids, collapse = ", "), ")")
  by_sample <- within("sample_id", "samples", by_source)
  by_frame <- within("location_id", "sample_locations", by_sample)
  by_address <- within("mapping_id", "locations", by_frame, ".mapping_id")
  by_mapping <- paste(by_source, "OR", by_address)
  # A column that no source has needed may be missing.
  by_scope <- if (".scope_id" %in% DBI::dbListFields(con, table_id(schema, "sources"))) {
    within("scope_id", "sources", by_source, ".scope_id")
  } else {
    "1 = 0"
  }
  where <- if (table == ".mappings") {
    by_mapping
  } else if ("mapping_id" %in% columns) {
    within("mapping_id", ".mappings", by_mapping)
  } else if ("scope_id" %in% columns) {
    by_scope
  } else if ("resource_id" %in% columns) {
    within("resource_id", ".scopes", by_scope)
  } else if ("source_id" %in% columns) {
    by_source
  } else if ("sample_id" %in% columns) {
    by_sample
  } else if ("location_id" %in% columns) {
    by_frame
  } else if ("function_id" %in% columns) {
    within("function_id", "locations", by_frame)
  }
  if (is.null(where)) "" else paste("WHERE", where)
}

from_database_ids <- function(x) {
  keys <- rlang::set_names(names(key_parents))
  parents <- lapply(keys, function(key) ids_of(x, key))
  for (table in names(x)) {
    keys <- keys_of(names(x[[table]]))
    for (column in names(keys)) {
      x[[table]][[column]] <- vctrs::vec_match(x[[table]][[column]], parents[[keys[[column]]]])
    }
    x[[table]]$.row <- NULL
  }
  x$.mappings$source_id <- NULL
  x
}

# As version 2.0 has them; ids may still be double.
typed_columns <- function(rows, table) {
  known <- data_model()
  wanted <- c(known$tables[[table]], known$dotted[[table]])
  for (column in intersect(names(rows), names(wanted))) {
    if (length(keys_of(column)) == 1) {
      next
    }
    rows[[column]] <- switch(typeof(wanted[[column]]),
      integer = as.integer(rows[[column]]),
      double = as.numeric(rows[[column]]),
      logical = as.logical(rows[[column]]),
      character = as.character(rows[[column]])
    )
  }
  rows
}

# Columns with a leading dot that say nothing are there for other runs.
without_silent_columns <- function(rows) {
  empty <- vapply(rows, function(column) all(is.na(column)), TRUE)
  rows[!(empty & startsWith(names(rows), "."))]
}

# ---- Names -----------------------------------------------------------------

table_id <- function(schema, table) {
  if (is.null(schema)) table else DBI::Id(schema = schema, table = table)
}

quoted <- function(con, schema, table) {
  DBI::dbQuoteIdentifier(con, table_id(schema, table))
}

has_table <- function(con, schema, table) {
  DBI::dbExistsTable(con, table_id(schema, table))
}
