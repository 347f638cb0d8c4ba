# Loads profiles from a database: selected sources and all rows that belong to them.

# The ids of the sources that satisfy all conditions, in their order.
chosen_sources <- function(con, conditions, schema, call) {
  sources_matching(con, conditions, schema, call)$source_id
}

sources_matching <- function(con, conditions, schema, call) {
  check_model(con, schema, call)
  sources <- typed_columns(select_rows(con, schema, "sources"), "sources")
  chosen <- rep(TRUE, nrow(sources))
  for (i in seq_along(conditions)) {
    condition <- conditions[[i]]
    holds <- tryCatch(rlang::eval_tidy(condition, sources), error = function(e) {
      message <- paste0("Cannot evaluate `", rlang::as_label(condition), "` on the sources.")
      columns <- paste0("`", names(sources), "`", collapse = ", ")
      abort_profile(
        c(message, i = paste0("The columns are ", columns, ".")), "profile_error_argument",
        parent = e, call = call
      )
    })
    if (!is.logical(holds) || !length(holds) %in% c(1, nrow(sources))) {
      name <- names(conditions)[[i]]
      abort_argument(c(
        "A condition must be `TRUE` or `FALSE` for each source.",
        i = if (name != "") paste0("Did you mean `", name, " == ", rlang::as_label(condition), "`?")
      ), call)
    }
    chosen <- chosen & !is.na(holds) & holds
  }
  slice_rows(sources, which(chosen))
}

check_model <- function(con, schema, call) {
  model <- data_model()$required
  there <- list_tables(con, schema)
  # `sources` comes first, see wait_for_readers().
  for (table in union("sources", names(model))) {
    if (!table %in% there) {
      abort_invalid("is missing in the database", table, call = call)
    }
    missing <- setdiff(names(model[[table]]), list_fields(con, schema, table))
    if (length(missing) > 0) {
      abort_invalid("is missing in the database", table, missing[[1]], call = call)
    }
  }
}

# Loads the tables, with the ids of the database.
select_sources <- function(con, source_ids, schema) {
  there <- list_tables(con, schema)
  is_old <- is_old_layout(there)
  tables <- intersect(model_and_dotted(there), there)
  if (!is_old) {
    tables <- setdiff(tables, c("sample_values", names(sets_of_rows)))
  }
  x <- list()
  report <- progress_report("Loading tables", "tasks")
  for (table in tables) {
    show_progress(report, match(table, tables) - 1, length(tables))
    fields <- list_fields(con, schema, table)
    if (is_old || belongs(table, fields)) {
      x[[table]] <- select_rows(con, schema, table, source_ids)
    }
  }
  if (is_old) x else profile_form(x)
}

# Databases of earlier versions have the stack of each sample in `sample_locations`.
is_old_layout <- function(there) {
  !".stacks" %in% there
}

# The tables of the model in its order, then the tables that users have added.
model_and_dotted <- function(there) {
  known <- data_model()
  own <- setdiff(there[startsWith(there, ".")], c(".next_ids", stored_keys))
  unique(c(names(known$required), names(known$optional), own))
}

as_loaded <- function(x, call) {
  known <- names(data_model()$required)
  x <- from_database_ids(x)
  x <- lapply(Map(typed_columns, x, names(x)), without_silent_columns)
  x <- x[names(x) %in% known | vapply(x, nrow, 0L) > 0]
  rust(rust_validate(x), call)
  bind_profiles(list(x), call)
}

# The rows of a table that belong to selected sources, by its keys. Ids are double, which every driver
# supports.
select_rows <- function(con, schema, table, source_ids = NULL) {
  columns <- list_fields(con, schema, table)
  select_rows_where(con, schema, table, where_sources(con, schema, table, columns, source_ids), columns)
}

select_rows_where <- function(con, schema, table, where, columns = list_fields(con, schema, table)) {
  name <- DBI::dbQuoteIdentifier(con, columns)
  is_id <- columns %in% c(names(stored_keys_of(table, columns)), ".row")
  selected <- ifelse(is_id, paste0("CAST(", name, " AS ", dialect(con)$double, ") AS ", name), name)
  order <- intersect(primary_key_of(table), columns)
  if (".row" %in% columns) {
    order <- ".row"
  }
  sql <- paste(
    "SELECT", paste(selected, collapse = ", "), "FROM", quoted(con, schema, table), where
  )
  if (length(order) > 0) {
    sql <- paste(sql, "ORDER BY", paste(DBI::dbQuoteIdentifier(con, order), collapse = ", "))
  }
  # SQLite's driver of ODBC drops what is before a dot in a name.
  rows <- tibble::as_tibble(rlang::set_names(DBI::dbGetQuery(con, sql), columns))
  # Some drivers return what is computed as text.
  rows[is_id] <- lapply(rows[is_id], as.numeric)
  rows
}

where_sources <- function(con, schema, table, columns, source_ids) {
  if (is.null(source_ids)) {
    return("")
  }
  within <- function(key, from, where, column = key) {
    column <- DBI::dbQuoteIdentifier(con, column)
    paste0(key, " IN (SELECT ", column, " FROM ", quoted(con, schema, from), " WHERE ", where, ")")
  }
  # The column is missing if no stored profile has it.
  within_dotted <- function(key, from, where) {
    column <- paste0(".", key)
    there <- column %in% list_fields(con, schema, from)
    if (there) within(key, from, where, column) else "1 = 0"
  }
  # No id is 0. An empty list would not be valid SQL.
  ids <- format(c(0, source_ids), scientific = FALSE, trim = TRUE)
  by_source <- paste0("source_id IN (", paste(ids, collapse = ", "), ")")
  by_sample <- within("sample_id", "samples", by_source)
  in_sets <- function(table) {
    set <- sets_of_rows[[table]]
    within(set$id, "samples", by_source, paste0(".", set$id))
  }
  by_frame <- if (is_old_layout(list_tables(con, schema))) {
    within("location_id", "sample_locations", by_sample)
  } else {
    within("location_id", ".stack_locations", in_sets("sample_locations"))
  }
  by_mapping <- paste(by_source, "OR", within_dotted("mapping_id", "locations", by_frame))
  by_scope <- within_dotted("scope_id", "sources", by_source)
  by_key <- c(
    if (table %in% stored_tables) c(stack_id = in_sets("sample_locations"), label_set_id = in_sets(".labels")),
    mapping_id = if (table == ".mappings") by_mapping else within("mapping_id", ".mappings", by_mapping),
    scope_id = by_scope,
    resource_id = within("resource_id", ".scopes", by_scope),
    source_id = by_source,
    sample_id = by_sample,
    location_id = by_frame,
    function_id = within("function_id", "locations", by_frame)
  )
  key <- utils::head(intersect(names(by_key), columns), 1)
  if (length(key) == 0) {
    return("")
  }
  # Rows of a user's own table need not belong to a source.
  known <- data_model()
  own <- !table %in% c(names(known$required), names(known$optional), stored_tables)
  paste("WHERE", by_key[[key]], if (own) paste("OR", key, "IS NULL"))
}

from_database_ids <- function(x) {
  keys <- rlang::set_names(names(data_model()$keys))
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

# Restores the types of version 2.0; ids may still be double.
typed_columns <- function(rows, table) {
  known <- data_model()
  wanted <- c(known$required[[table]], known$optional[[table]])
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

# Removes columns with a leading dot that are NA in all loaded runs.
without_silent_columns <- function(rows) {
  empty <- vapply(rows, function(column) all(is.na(column)), TRUE)
  rows[!(empty & startsWith(names(rows), "."))]
}

# ---- Names -----------------------------------------------------------------
