# The keys: which column holds ids of which table, and what follows for rows.

# A column of one of these names holds ids of that table wherever it stands: in
# the seven tables, and in those with a leading dot, a user's own among them.
key_parents <- c(
  source_id = "sources",
  sample_id = "samples",
  function_id = "functions",
  location_id = "locations"
)

# The tables of version 2.0 and what may stand beside them, without rows.
data_model <- function() {
  rust(.Call(C_schema), rlang::caller_env())
}

# The key columns of a table that refer to another one.
references <- function(table, columns) {
  keys <- intersect(columns, names(key_parents))
  keys[key_parents[keys] != table]
}

# The tables in an order in which each comes after those it refers to.
parents_first <- function(tables) {
  union(intersect(key_parents, tables), tables)
}

# Ids of a table under other names. `columns`, `from` and `to` are lists of equal
# length; the answer is one vector. An id that is not in `from` becomes NA.
rename_ids <- function(columns, from, to, key, call) {
  rust(.Call(C_remap, columns, from, to, key_parents[[key]]), call)
}

# A user's own column of that name may be anything.
as_ids <- function(x, table, key, call) {
  tryCatch(vctrs::vec_cast(x, integer()), vctrs_error_cast = function(e) {
    rule <- paste0("must be integer, ids of table `", key_parents[[key]], "`")
    abort_invalid(rule, table, key, call = call)
  })
}

# The rows of a table that the ids stand for.
rows_of_ids <- function(ids, x, key, call) {
  parent <- x[[key_parents[[key]]]][[key]]
  rename_ids(list(ids), list(parent), list(seq_along(parent)), key, call)
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
