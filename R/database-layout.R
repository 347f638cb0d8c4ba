# How a database stores profiles: stacks and sets of labels, which many samples share, are stored once.
#
# Samples repeat their stacks, and so do the profiles of one service. A database stores each stack and each set of
# labels once, with a key (content-keys.R), and samples refer to them. The values of a sample are columns of `samples`,
# so a sample takes one row. `sample_values`, `sample_locations` and `.labels` are views that look like the tables of a
# profile.
#
#   samples           .stack_id ──► .stacks ◄── .stack_locations ──► locations ──► functions
#                     .label_set_id ──► .label_sets ◄── .set_labels
#                     .value_1, .value_2, ...: the types in .value_types
#   .other_values     values with columns that only sample_values has, such as .value_exact

# Tables of a profile whose rows are stored in sets that samples share: the table of the sets, its id, and the table
# with the rows of the sets.
sets_of_rows <- list(
  sample_locations = list(sets = ".stacks", id = "stack_id", rows = ".stack_locations"),
  .labels = list(sets = ".label_sets", id = "label_set_id", rows = ".set_labels")
)

# The tables that only databases have, apart from tables of users.
stored_tables <- c(
  ".next_ids", ".stacks", ".stack_locations", ".label_sets", ".set_labels", ".value_types", ".other_values"
)

# The ids of stacks and of sets of labels, with their tables. `samples` refers to them by columns with a leading dot.
stored_keys <- c(stack_id = ".stacks", label_set_id = ".label_sets")

# The key columns of a table in a database, with the key that each contains.
stored_keys_of <- function(table, columns) {
  keys <- keys_of(columns)
  if (table %in% c("samples", stored_tables)) {
    own <- rlang::set_names(sub("^[.]", "", columns), columns)
    keys <- c(keys, own[own %in% names(stored_keys)])
  }
  keys
}

# The tables of all keys in a database, parents first.
stored_key_tables <- function() {
  keys <- data_model()$keys
  before <- match("samples", keys) - 1
  append(keys, stored_keys, before)
}

# The maximum number of types whose values are columns of `samples`. Values of further types are in `.other_values`,
# since databases limit the number of columns.
most_value_columns <- 100L

value_column <- function(numbers) {
  sprintf(".value_%d", numbers)
}

is_value_column <- function(columns) {
  grepl("^[.]value_[0-9]+$", columns)
}

# ---- From a profile ----------------------------------------------------------

# The tables in their stored form, with the ids of the profile. `types` are the types of values, and `values` has a
# column for each type. `keys` contains the keys of the rows of shared tables, see content-keys.R.
stored_form <- function(x, call) {
  # Copies, since the columns of a profile that are computed when needed would otherwise stay in memory.
  for (table in intersect(c("sample_values", "sample_locations"), names(x))) {
    x[[table]] <- slice_rows(x[[table]], seq_len(nrow(x[[table]])))
  }
  count <- nrow(x$samples)
  content <- content_of(x, call)
  tables <- x[setdiff(names(x), c("sample_values", names(sets_of_rows)))]
  for (table in intersect(names(sets_of_rows), names(x))) {
    set <- sets_of_rows[[table]]
    stored <- stored_sets(x, table, content, call)
    tables[[set$sets]] <- tibble::new_tibble(rlang::set_names(list(seq_along(stored$keys)), set$id), nrow = length(stored$keys))
    tables[[set$rows]] <- stored$rows
    tables$samples[[paste0(".", set$id)]] <- stored$of_sample
    content$keys[[set$sets]] <- stored$keys
  }
  values <- x$sample_values
  extra <- setdiff(names(values), names(data_model()$required$sample_values))
  is_other <- rep(FALSE, nrow(values))
  for (column in extra) {
    is_other <- is_other | !is.na(values[[column]])
  }
  pairs <- values[c("type", "unit")]
  types <- vctrs::vec_unique(pairs)
  number <- vctrs::vec_match(pairs, types)
  row <- rows_of_ids(as_ids(values$sample_id, "sample_values", "sample_id", call), x, "sample_id", call)
  columns <- lapply(seq_len(nrow(types)), function(i) {
    at <- which(number == i & !is_other)
    column <- rep(NA_real_, count)
    column[row[at]] <- values$value[at]
    column
  })
  tables$.other_values <- slice_rows(values, which(is_other))
  list(tables = tables, types = types, values = columns, keys = content$keys)
}

# Adds the columns of values. Their names depend on the types in the database.
with_value_columns <- function(stored, con, schema) {
  known <- value_types(con, schema)
  pairs <- vctrs::vec_match(stored$types, tibble::as_tibble(known[c("type", "unit")]))
  numbers <- known$number[pairs]
  is_new <- is.na(numbers)
  numbers[is_new] <- nrow(known) + seq_len(sum(is_new))
  if (any(is_new)) {
    new <- stored$types[is_new, ]
    insert_rows(con, schema, ".value_types", data.frame(number = numbers[is_new], new))
  }
  others <- list(stored$tables$.other_values)
  ids <- stored$tables$samples$sample_id
  for (i in seq_along(numbers)) {
    values <- stored$values[[i]]
    if (numbers[[i]] <= most_value_columns) {
      stored$tables$samples[[value_column(numbers[[i]])]] <- values
    } else {
      at <- which(!is.na(values))
      rows <- list(sample_id = ids[at], type = stored$types$type[[i]], unit = stored$types$unit[[i]], value = values[at])
      others <- c(others, list(tibble::as_tibble(rows)))
    }
  }
  stored$tables$.other_values <- vctrs::vec_rbind(!!!others)
  stored
}

# The distinct sets of rows that samples have in a table. `keys` has a key for each set, NA if the set cannot be shared;
# `rows` contains the rows of all sets; `of_sample` is the number of each sample's set. It is NA for a sample without
# rows, except for stacks: every sample has one, which may be empty.
stored_sets <- function(x, table, content, call) {
  set <- sets_of_rows[[table]]
  rows <- x[[table]]
  row <- rows_of_ids(as_ids(rows$sample_id, table, "sample_id", call), x, "sample_id", call)
  check_resolved(rows$sample_id, row, table, "sample_id", call)
  order <- if (table == "sample_locations") order(row, rows$depth) else order(row)
  if (is.unsorted(order)) {
    rows <- slice_rows(rows, order)
    row <- row[order]
  }
  cells <- cells_of(x, table, rows[names(rows) != "sample_id"], content, call)
  count <- nrow(x$samples)
  keys <- rust(rust_content_keys(cells$columns, row, count), call)
  if (table != "sample_locations") {
    keys[!seq_len(count) %in% row] <- NA
  }
  distinct <- which(!duplicated(keys) & !is.na(keys))
  number <- match(keys, keys[distinct])
  is_first <- row %in% distinct
  rows <- slice_rows(rows, is_first)
  rows$sample_id <- number[row[is_first]]
  names(rows)[names(rows) == "sample_id"] <- set$id
  keys <- keys[distinct]
  keys[number[row[cells$is_own]]] <- NA
  list(keys = keys, rows = rows, of_sample = number)
}

# ---- To a profile --------------------------------------------------------------

# The tables of profiles, with the ids of the database.
profile_form <- function(x) {
  samples <- x$samples
  for (table in names(sets_of_rows)) {
    set <- sets_of_rows[[table]]
    rows <- x[[set$rows]]
    if (is.null(rows)) {
      next
    }
    ids <- samples[[paste0(".", set$id)]]
    x[[table]] <- rows_of_samples(samples$sample_id, ids, rows, set$id)
  }
  x$sample_values <- values_of_samples(samples, x$.value_types, x$.other_values)
  x <- x[setdiff(names(x), stored_tables)]
  lapply(rlang::set_names(names(x)), function(table) x[[table]][!is_of_layout(table, names(x[[table]]))])
}

# Whether columns belong to the layout of the database: references to sets, values, and keys of content.
is_of_layout <- function(table, columns) {
  switch(table,
    samples = columns %in% paste0(".", names(stored_keys)) | is_value_column(columns),
    columns == ".key" & table %in% c(names(shared_tables), stored_keys)
  )
}

# A row for each sample and each row of its set. `rows` are sorted by set.
rows_of_samples <- function(sample_ids, set_ids, rows, id) {
  sets <- vctrs::vec_unique_loc(rows[[id]])
  found <- match(set_ids, rows[[id]][sets])
  sizes <- diff(c(sets, nrow(rows) + 1L))[found]
  sizes[is.na(sizes)] <- 0L
  starts <- sets[found]
  at <- sequence(sizes[sizes > 0], starts[sizes > 0])
  expanded <- slice_rows(rows, at)
  expanded[[id]] <- rep(sample_ids, sizes)
  names(expanded)[names(expanded) == id] <- "sample_id"
  expanded[union("sample_id", names(expanded))]
}

# Sorted by sample, and by the number of the type.
values_of_samples <- function(samples, types, others) {
  types <- types[order(types$number), ]
  inline <- types[value_column(types$number) %in% names(samples), ]
  parts <- lapply(seq_len(nrow(inline)), function(i) {
    value <- as.numeric(samples[[value_column(inline$number[[i]])]])
    row <- which(!is.na(value))
    tibble::new_tibble(list(
      row = row, number = rep(inline$number[[i]], length(row)), sample_id = samples$sample_id[row],
      type = rep(inline$type[[i]], length(row)), unit = rep(inline$unit[[i]], length(row)), value = value[row]
    ), nrow = length(row))
  })
  others$row <- match(others$sample_id, samples$sample_id)
  others$number <- types$number[vctrs::vec_match(others[c("type", "unit")], types[c("type", "unit")])]
  all <- vctrs::vec_rbind(!!!parts, others)
  all <- slice_rows(all, order(all$row, all$number))
  all[setdiff(names(all), c("row", "number"))]
}

# ---- Views -----------------------------------------------------------------------

# Creates the views again, because columns were added.
create_views <- function(con, schema) {
  there <- list_tables(con, schema)
  fields <- function(table) setdiff(list_fields(con, schema, table), own_columns(table))
  for (table in names(sets_of_rows)) {
    set <- sets_of_rows[[table]]
    if (set$rows %in% there) {
      columns <- DBI::dbQuoteIdentifier(con, setdiff(fields(set$rows), set$id))
      id <- DBI::dbQuoteIdentifier(con, set$id)
      of_sample <- DBI::dbQuoteIdentifier(con, paste0(".", set$id))
      create_view(con, schema, table, paste0(
        "SELECT samples.sample_id, ", paste0("set_rows.", columns, collapse = ", "),
        " FROM ", in_view(con, schema, "samples"), " AS samples",
        " JOIN ", in_view(con, schema, set$rows), " AS set_rows ON set_rows.", id, " = samples.", of_sample
      ))
    }
  }
  if (!".other_values" %in% there) {
    return()
  }
  columns <- fields(".other_values")
  types <- value_types(con, schema)
  types <- types[value_column(types$number) %in% list_fields(con, schema, "samples"), ]
  extra <- setdiff(columns, c("sample_id", "type", "unit", "value"))
  nulls <- if (length(extra) > 0) paste("NULL AS", DBI::dbQuoteIdentifier(con, extra))
  inline <- vapply(seq_len(nrow(types)), function(i) {
    value <- DBI::dbQuoteIdentifier(con, value_column(types$number[[i]]))
    constant <- function(x) sprintf(dialect(con)$constant, quoted_text(con, x))
    paste(
      "SELECT sample_id,", constant(types$type[[i]]), "AS type,", constant(types$unit[[i]]), "AS unit,",
      paste(c(paste(value, "AS value"), nulls), collapse = ", "), "FROM", in_view(con, schema, "samples"), "WHERE", value, "IS NOT NULL"
    )
  }, "")
  others <- paste(
    "SELECT", paste(DBI::dbQuoteIdentifier(con, union(c("sample_id", "type", "unit", "value"), extra)), collapse = ", "),
    "FROM", in_view(con, schema, ".other_values")
  )
  create_view(con, schema, "sample_values", paste(c(others, inline), collapse = " UNION ALL "))
}

create_view <- function(con, schema, table, select) {
  name <- quoted(con, schema, table)
  replace <- dialect(con)$replace_view
  if (!replace) {
    DBI::dbExecute(con, paste("DROP VIEW IF EXISTS", name))
  }
  DBI::dbExecute(con, paste("CREATE", if (replace) "OR REPLACE", "VIEW", name, "AS", select))
}

# The name of a table in a view. In SQLite, the schema is left out: SQLite would store its name, which changes when the
# file is opened by itself. Without a schema, SQLite uses the tables in the file of the view.
in_view <- function(con, schema, table) {
  quoted(con, if (!is_sqlite(con)) schema, table)
}

value_types <- function(con, schema) {
  types <- read_table(con, schema, ".value_types")
  types$number <- as.integer(types$number)
  types[order(types$number), ]
}
