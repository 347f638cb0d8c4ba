# The tables, columns and keys of the data model, which the core declares, and functions for ids.

the <- new.env(parent = emptyenv())

# The schema of the core, requested once. `version1`, `required` and `optional` are tables without rows: `version1` for
# version 1.0, the others with the required and optional columns of version 2.0. `tables` and `columns` describe each
# table and column, `sample_types` the types whose meaning is known, `formats` and `file_names` the functions for each
# format and the names of its files. Everything else is derived from these.
data_model <- function() {
  if (is.null(the$data_model)) {
    model <- rust(rust_schema(), rlang::caller_env())
    tables <- model$tables
    columns <- model$columns
    # The table of each key column; referenced tables come first. A column with the name of a key
    # contains ids of that table in every table, including those that users add.
    model$keys <- rlang::set_names(model$keys$table, model$keys$column)
    # The columns of the primary key of each table.
    keyed <- columns[!is.na(columns$key), ]
    model$primary_keys <- split(keyed$column, factor(keyed$table, unique(c(model$keys, keyed$table))))
    # Tables whose rows are merged if they and their attributes are equal. Rows of other tables are
    # events, which are kept even if equal.
    model$merged <- tables$table[tables$merged]
    # The table with the attributes of a table's rows.
    model$attributes <- rlang::set_names(tables$attributes, tables$table)
    model$attributes <- model$attributes[!is.na(model$attributes)]
    model$column_names <- split(columns$column, columns$table)
    # The logical columns of each table.
    flags <- columns[columns$type == "logical", ]
    model$flags <- split(flags$column, flags$table)
    # Columns of numbers that accept date-times.
    model$times <- columns$column[columns$type == "double" & grepl("^seconds since 1970", columns$unit)]
    # Patterns of file names: most are a suffix, such as `*.pb`, which is compared faster than a regular expression.
    names <- tolower(model$file_names$name)
    model$file_names$suffix <- ifelse(grepl("^[*][^*?]+$", names), substring(names, 2), NA)
    model$file_names$pattern <- utils::glob2rx(names)
    the$data_model <- model
  }
  the$data_model
}

# Whether types with these names and units have a role, such as "level" for the memory in use.
has_role <- function(type, unit, role) {
  known <- data_model()$sample_types
  known <- known[known$role == role, ]
  # Columns of millions of rows have few distinct values, so one known type is compared at a time.
  found <- rep(FALSE, length(type))
  for (i in seq_len(nrow(known))) {
    found <- found | type == known$type[[i]] & unit == known$unit[[i]]
  }
  found
}

# The types with this role and unit that the core knows, and that are among others.
types_with_role <- function(types, role, unit) {
  known <- data_model()$sample_types
  known <- known[known$role %in% role & known$unit %in% unit & known$recorded, ]
  intersect(known$type, types)
}

# Whether rows of the table of samples are allocations that were recorded one by one, and no samples: they have only values
# of types that describe allocations. The core has the same rule.
is_allocation_row <- function(x) {
  values <- x$sample_values
  known <- data_model()$sample_types
  known <- known[known$recorded, ]
  if (!any(known$type %in% unique(values$type))) {
    return(rep(FALSE, nrow(x$samples)))
  }
  is_recorded <- paste(values$type, values$unit) %in% paste(known$type, known$unit)
  x$samples$sample_id %in% values$sample_id[is_recorded] & !x$samples$sample_id %in% values$sample_id[!is_recorded]
}

# The keys that columns contain, named by column. In `locations` and `sources` the keys of `.mappings`
# and `.scopes` are optional columns, so their names begin with a dot.
keys_of <- function(columns) {
  # Names of users' columns may be invalid text, on which regular expressions fail.
  is_optional <- columns %in% c(".mapping_id", ".scope_id")
  keys <- rlang::set_names(columns, columns)
  keys[is_optional] <- substring(columns[is_optional], 2)
  keys[keys %in% names(data_model()$keys)]
}

# The keys of columns that refer to another table.
references <- function(table, columns) {
  keys <- keys_of(columns)
  keys[data_model()$keys[keys] != table]
}

# Replaces the ids `from` by the ids `to`. `columns`, `from` and `to` are lists of equal length; the
# result is one vector. An id that is not in `from` becomes NA.
rename_ids <- function(columns, from, to, key, call) {
  rust(rust_remap(columns, from, to, key), call)
}

# In a user-defined table, a column with the name of a key can have any type.
as_ids <- function(x, table, column, call) {
  tryCatch(vctrs::vec_cast(x, integer()), vctrs_error_cast = function(e) {
    parent <- data_model()$keys[[keys_of(column)]]
    abort_invalid(paste0("must be integer, ids of table `", parent, "`"), table, column, call = call)
  })
}

# The ids of a table, none if the table is missing.
ids_of <- function(x, key) {
  x[[data_model()$keys[[key]]]][[key]] %||% integer()
}

# Raises an error for ids that refer to no row, which became NA. The core has checked the tables of the schema;
# user-defined tables may contain such ids.
check_resolved <- function(ids, found, table, column, call) {
  # Usually all ids are found, which anyNA() determines quickly.
  if (anyNA(found) && any(is.na(found) & !is.na(ids))) {
    parent <- data_model()$keys[[keys_of(column)]]
    rule <- paste0("refers to a row that table `", parent, "` does not have")
    abort_invalid(rule, table, column, call = call)
  }
}

# `sample_id` in `.files` is the sample that a `#File` line precedes. If that sample was removed, the next remaining
# sample is used.
move_files_to_next_sample <- function(x) {
  ids <- x$.files$sample_id
  gone <- !is.na(ids) & !ids %in% x$samples$sample_id
  if (any(gone)) {
    left <- sort(x$samples$sample_id)
    x$.files$sample_id[gone] <- left[findInterval(ids[gone], left) + 1L]
  }
  x
}
