# The keys of the data model, as the schema of the core has them, and what follows for rows.

the <- new.env(parent = emptyenv())

# The data model, which the core is asked for once. Tables without rows: `version1`, and of
# version 2.0 those and their columns that each profile has (`required`), and those that it may
# have (`optional`). `tables` and `columns` say what is known of each. The rest follows.
data_model <- function() {
  if (is.null(the$data_model)) {
    model <- rust(rust_schema(), rlang::caller_env())
    tables <- model$tables
    columns <- model$columns
    # The table of each key, those that others refer to first. A column that is called so holds
    # ids of that table wherever it stands: in the seven tables, and in those with a leading
    # dot, a user's own among them.
    model$keys <- rlang::set_names(model$keys$table, model$keys$column)
    # The columns that tell the rows of a table apart.
    keyed <- columns[!is.na(columns$key), ]
    model$primary_keys <- split(keyed$column, factor(keyed$table, unique(c(model$keys, keyed$table))))
    # Tables of which rows that are equal, with equal attributes, are one thing. The others
    # are of events: what is recorded twice is there twice.
    model$merged <- tables$table[tables$merged]
    # Where the attributes of rows are, beyond their columns.
    model$attributes <- rlang::set_names(tables$attributes, tables$table)
    model$attributes <- model$attributes[!is.na(model$attributes)]
    # The columns without which rows of a table are of no use, by that table: those that
    # refer to others come first.
    used <- tables[!is.na(tables$used_by_table), ]
    used <- used[order(match(used$table, model$keys), decreasing = TRUE), ]
    model$used_by <- rlang::set_names(Map(c, used$used_by_table, used$used_by_column), used$table)
    # Numbers that may be given as date-times.
    model$times <- columns$column[columns$type == "double" & grepl("^seconds since 1970", columns$unit)]
    the$data_model <- model
  }
  the$data_model
}

# The keys that columns hold, by the names of the columns: as a column beside their
# own, `locations` and `sources` can have keys to `.mappings` and `.scopes` with a
# leading dot only.
keys_of <- function(columns) {
  keys <- sub("^[.](?=(mapping|scope)_id$)", "", columns, perl = TRUE)
  keys <- rlang::set_names(keys, columns)
  keys[keys %in% names(data_model()$keys)]
}

# The keys of columns that refer to another table.
references <- function(table, columns) {
  keys <- keys_of(columns)
  keys[data_model()$keys[keys] != table]
}

# The tables in an order in which each comes after those it refers to.
parents_first <- function(tables) {
  union(intersect(data_model()$keys, tables), tables)
}

# Ids of a table under other names. `columns`, `from` and `to` are lists of equal
# length; the answer is one vector. An id that is not in `from` becomes NA.
rename_ids <- function(columns, from, to, key, call) {
  rust(rust_remap(columns, from, to, key), call)
}

# A user's own column of that name may be anything.
as_ids <- function(x, table, column, call) {
  tryCatch(vctrs::vec_cast(x, integer()), vctrs_error_cast = function(e) {
    parent <- data_model()$keys[[keys_of(column)]]
    abort_invalid(paste0("must be integer, ids of table `", parent, "`"), table, column, call = call)
  })
}

# The ids of a table, which may not be there.
ids_of <- function(x, key) {
  x[[data_model()$keys[[key]]]][[key]] %||% integer()
}

# The rows of a table that the ids stand for.
rows_of_ids <- function(ids, x, key, call) {
  parent <- ids_of(x, key)
  rename_ids(list(ids), list(parent), list(seq_along(parent)), key, call)
}

# Ids that refer to no row became NA. The core has checked what it knows; a user's own
# table may refer to nothing.
check_resolved <- function(ids, found, table, column, call) {
  # As a rule all are found, which is quick to see.
  if (anyNA(found) && any(is.na(found) & !is.na(ids))) {
    parent <- data_model()$keys[[keys_of(column)]]
    rule <- paste0("refers to a row that table `", parent, "` does not have")
    abort_invalid(rule, table, column, call = call)
  }
}

# A `#File` line stands before a sample; where that is gone, before the next one.
settle_files <- function(x) {
  ids <- x$.files$sample_id
  gone <- !is.na(ids) & !ids %in% x$samples$sample_id
  if (any(gone)) {
    left <- sort(x$samples$sample_id)
    x$.files$sample_id[gone] <- left[findInterval(ids[gone], left) + 1L]
  }
  x
}
