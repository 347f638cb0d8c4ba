# Keys for the rows that profiles in a database share. A key is computed from the content of a row, so equal rows have
# equal keys.
#
# A function, a location, a stack, a scope or a resource that is equal to a stored one is not stored again. Its key is
# computed from its columns, its attributes, and the keys of the rows that it refers to. Some rows are not shared: rows
# to which tables of the user refer, rows with list columns, and rows with a mapping, because the order of mappings
# determines which one is the program.

# Shared tables, each after those that it refers to, with the tables that are part of them.
shared_tables <- list(
  .resources = c(".resource_attributes", ".resource_entities"),
  .scopes = ".scope_attributes",
  functions = character(),
  locations = ".location_attributes"
)

# The columns that refer to these tables.
references_to_shared <- list(
  .resources = ".scopes", .scopes = "sources", functions = "locations", locations = "sample_locations"
)

# The keys of the rows of each shared table. `keys` is NA for rows that cannot be shared; in `names` these have a unique
# name.
content_of <- function(x, call) {
  content <- list(keys = list(), names = list())
  for (table in intersect(names(shared_tables), names(x))) {
    key <- names(data_model()$keys)[data_model()$keys == table]
    rows <- x[[table]]
    cells <- cells_of(x, table, rows[names(rows) != key], content, call)
    is_own <- cells$is_own
    for (part in intersect(shared_tables[[table]], names(x))) {
      row <- rows_of_ids(as_ids(x[[part]][[key]], part, key, call), x, key, call)
      inner <- cells_of(x, part, x[[part]][names(x[[part]]) != key], content, call)
      is_own[row[inner$is_own]] <- TRUE
      # NA for rows without parts, so that a table without a row for them makes no difference.
      keys <- rust(rust_content_keys(inner$columns, row, nrow(rows)), call)
      keys[!seq_len(nrow(rows)) %in% row] <- NA
      cells$columns[[part]] <- keys
    }
    is_own[rows_of_users(x, table, key, call)] <- TRUE
    keys <- rust(rust_content_keys(cells$columns, NULL, nrow(rows)), call)
    content$names[[table]] <- ifelse(is_own, paste0("#", seq_len(nrow(rows))), keys)
    keys[is_own] <- NA
    content$keys[[table]] <- keys
  }
  content
}

# The columns of rows for `rust_content_keys()`: ids become rows and their keys. `is_own`: whether a row cannot be
# shared.
cells_of <- function(x, table, rows, content, call) {
  keys <- keys_of(names(rows))
  is_own <- rep(FALSE, nrow(rows))
  columns <- unclass(rows)
  attributes(columns) <- list(names = names(rows))
  for (column in names(columns)) {
    if (column %in% names(keys)) {
      key <- keys[[column]]
      parent <- data_model()$keys[[key]]
      row <- rows_of_ids(as_ids(rows[[column]], table, column, call), x, key, call)
      names <- content$names[[parent]]
      shared <- content$keys[[parent]]
      if (is.null(names)) {
        names <- paste0("#", seq_along(ids_of(x, key)))
        shared <- rep(NA_character_, length(names))
      }
      is_own <- is_own | !is.na(row) & is.na(shared[row])
      columns[[column]] <- list(row, names)
    } else if (is.list(columns[[column]])) {
      is_own[] <- TRUE
      columns[[column]] <- seq_len(nrow(rows))
    } else {
      # Without class and names. 64-bit integers are not R numbers, so they become text.
      value <- columns[[column]]
      is_text <- is.factor(value) || inherits(value, "integer64")
      columns[[column]] <- if (is_text) as.character(value) else as.vector(unclass(value))
    }
  }
  list(columns = columns, is_own = is_own)
}

# The rows of a table that tables of users refer to, or other tables that are not part of its content.
rows_of_users <- function(x, table, key, call) {
  others <- setdiff(names(x), c(table, shared_tables[[table]], references_to_shared[[table]]))
  rows <- lapply(others, function(other) {
    columns <- names(x[[other]])
    columns <- columns[columns %in% names(keys_of(columns)[keys_of(columns) == key])]
    lapply(columns, function(column) {
      rows_of_ids(as_ids(x[[other]][[column]], other, column, call), x, key, call)
    })
  })
  rows <- unlist(rows)
  rows[!is.na(rows)]
}
