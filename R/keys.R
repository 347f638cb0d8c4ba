# The keys: which column holds ids of which table, and what follows for rows.

# A column of one of these names holds ids of that table wherever it stands: in
# the seven tables, and in those with a leading dot, a user's own among them. Those
# that others refer to come first.
key_parents <- c(
  resource_id = ".resources",
  scope_id = ".scopes",
  source_id = "sources",
  sample_id = "samples",
  function_id = "functions",
  mapping_id = ".mappings",
  location_id = "locations"
)

# The keys that columns hold, by the names of the columns: as a column beside their
# own, `locations` and `sources` can have keys to `.mappings` and `.scopes` with a
# leading dot only.
keys_of <- function(columns) {
  keys <- sub("^[.](?=(mapping|scope)_id$)", "", columns, perl = TRUE)
  keys <- rlang::set_names(keys, columns)
  keys[keys %in% names(key_parents)]
}

# Tables of which rows that are equal, with equal attributes, are one thing. The others
# are of events: what is recorded twice is there twice.
merged_tables <- c("functions", ".mappings", "locations")

# Where the attributes of rows are, beyond their columns.
attribute_tables <- c(.mappings = ".mapping_attributes", locations = ".location_attributes")

# The tables of version 2.0 and what may stand beside them, without rows.
data_model <- function() {
  rust(rust_schema(), rlang::caller_env())
}

# The keys of columns that refer to another table.
references <- function(table, columns) {
  keys <- keys_of(columns)
  keys[key_parents[keys] != table]
}

# The tables in an order in which each comes after those it refers to.
parents_first <- function(tables) {
  union(intersect(key_parents, tables), tables)
}

# Ids of a table under other names. `columns`, `from` and `to` are lists of equal
# length; the answer is one vector. An id that is not in `from` becomes NA.
rename_ids <- function(columns, from, to, key, call) {
  rust(rust_remap(columns, from, to, key_parents[[key]]), call)
}

# A user's own column of that name may be anything.
as_ids <- function(x, table, column, call) {
  tryCatch(vctrs::vec_cast(x, integer()), vctrs_error_cast = function(e) {
    parent <- key_parents[[keys_of(column)]]
    abort_invalid(paste0("must be integer, ids of table `", parent, "`"), table, column, call = call)
  })
}

# The ids of a table, which may not be there.
ids_of <- function(x, key) {
  x[[key_parents[[key]]]][[key]] %||% integer()
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
    parent <- key_parents[[keys_of(column)]]
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

primary_keys <- c(
  as.list(rlang::set_names(names(key_parents), key_parents)),
  list(
    sample_values = c("sample_id", "type"),
    sample_locations = c("sample_id", "depth")
  )
)
