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
