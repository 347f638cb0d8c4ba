# Converts columns of equivalent types. All functions accept profiles through `as_profile()`, which calls
# `normalize_tables()`. It converts columns to the equivalent type of the data model, so that all functions treat them
# alike. The core checks everything else: names, lengths and types of columns, and all rules for their values.

normalize_tables <- function(x, call) {
  tables <- names(x)
  if (is.null(tables) || anyNA(tables) || any(Encoding(tables) == "bytes")) {
    # R cannot look for a table among such names. The core refuses them.
    rust(rust_validate(x), call)
  }
  columns <- unlist(unclass(x), recursive = FALSE, use.names = FALSE)
  # The tables that this package returns have no attributes.
  if (any(lengths(lapply(columns, attributes)))) {
    for (i in seq_along(tables)) {
      if (is.data.frame(x[[i]])) {
        check_rows(x[[i]], tables[[i]], call)
        x[[i]] <- plain_columns(x[[i]], tables[[i]], call)
      }
    }
  }
  for (table in intersect(tables, names(data_model()$flags))) {
    if (is.data.frame(x[[table]])) {
      x[[table]] <- restore_flags(x[[table]], table, call)
    }
  }
  x
}

# Databases without a logical type, such as SQLite and MariaDB, return 0 and 1 for logical columns.
restore_flags <- function(rows, table, call) {
  for (column in intersect(names(rows), data_model()$flags[[table]])) {
    values <- .subset2(rows, column)
    if (is.numeric(values) && is.null(attributes(values))) {
      row <- which(!is.na(values) & values != 0 & values != 1)
      if (length(row) > 0) {
        abort_invalid("must be TRUE, FALSE, 1 or 0", table, column, row[[1]], call = call)
      }
      rows <- set_column(rows, column, as.logical(values))
    }
  }
  rows
}

# Checks the lengths of columns that have a class or dimensions: `row.names` determines the number of rows. The core
# checks all other columns.
check_rows <- function(rows, table, call) {
  wanted <- .row_names_info(rows, 2L)
  columns <- unclass(rows)
  has_form <- vapply(columns, function(column) is.object(column) || !is.null(dim(column)), NA)
  for (i in which(has_form & lengths(columns) != wanted)) {
    size <- tryCatch(vctrs::vec_size(columns[[i]]), error = function(e) NA)
    if (!identical(size, wanted)) {
      rule <- if (is.na(size)) "is not a vector" else paste0("has ", size, " rows, but the table has ", wanted)
      abort_invalid(rule, table, names(columns)[[i]], call = call)
    }
  }
}

# Removes attributes of columns of the data model that do not change the meaning of the values.
plain_columns <- function(rows, table, call) {
  columns <- unclass(rows)
  has_attributes <- !vapply(columns, function(column) is.null(attributes(column)), TRUE)
  if (!any(has_attributes)) {
    return(rows)
  }
  known <- data_model()
  wanted <- c(data_model()$version1[[table]], known$required[[table]], known$optional[[table]])
  for (column in intersect(names(columns)[has_attributes], names(wanted))) {
    values <- plain(columns[[column]], wanted[[column]], table, column, call)
    if (!is.null(values)) {
      columns[[column]] <- values
    }
  }
  attributes(columns) <- attributes(rows)
  columns
}

# The values as a plain vector; NULL if the class changes their meaning.
plain <- function(x, wanted, table, column, call) {
  if (inherits(x, "AsIs")) {
    oldClass(x) <- setdiff(oldClass(x), "AsIs")
  }
  if (!is.null(dim(x))) {
    NULL
  } else if (inherits(x, "integer64")) {
    if (is.logical(wanted)) {
      from_integer64(x, double(), table, column, call)
    } else if (is.numeric(wanted)) {
      from_integer64(x, wanted, table, column, call)
    }
  } else if (column %in% data_model()$times && inherits(x, "POSIXt")) {
    as.numeric(as.POSIXct(x))
  } else if (column %in% data_model()$times && inherits(x, "Date")) {
    as.numeric(unclass(x)) * 86400
  } else if (inherits(x, c("character", "numeric", "integer", "double", "logical", "list"))) {
    # Without a class, or with a class that inherits from a type of R, such as the classes of the packages glue and fs.
    attributes(x) <- NULL
    x
  }
}

# Converts 64-bit integers exactly, or raises an error. bit64 stores the 64 bits of an integer in a double; the
# package does not have to be installed.
from_integer64 <- function(x, wanted, table, column, call) {
  halves <- matrix(readBin(writeBin(as.vector(unclass(x)), raw()), "integer", 2 * length(x)), nrow = 2)
  if (.Platform$endian == "big") {
    halves <- halves[2:1, , drop = FALSE]
  }
  # A half in which only the highest bit is set is read as NA.
  low <- ifelse(is.na(halves[1, ]), 2^31, halves[1, ] %% 2^32)
  high <- ifelse(is.na(halves[2, ]), -2^31, halves[2, ])
  values <- high * 2^32 + low
  values[high == -2^31 & low == 0] <- NA
  largest <- if (is.integer(wanted)) .Machine$integer.max else 2^53
  row <- which(abs(values) > largest)
  if (length(row) > 0) {
    rule <- paste0("cannot be converted to ", typeof(wanted), " without loss")
    abort_invalid(rule, table, column, row[[1]], call = call)
  }
  if (is.integer(wanted)) as.integer(values) else values
}

# Selects rows of a table. vctrs would compute all values of computed columns.
slice_rows <- function(rows, i) {
  if (!has_plain_rows(rows)) {
    return(vctrs::vec_slice(rows, i))
  }
  if (is.logical(i)) {
    i <- which(i)
  }
  with_columns(rows, lapply(unclass(rows), function(column) {
    if (is.atomic(column) && is.null(attributes(column))) column[i] else vctrs::vec_slice(column, i)
  }))
}

# Whether rows can be selected column by column: in a plain data frame or tibble without row names.
has_plain_rows <- function(rows) {
  class <- setdiff(oldClass(rows), c("tbl_df", "tbl"))
  identical(class, "data.frame") && .row_names_info(rows) <= 0 && length(rows) > 0
}

# Sets a column of a table. The methods of tibbles take most of the time of small profiles.
set_column <- function(rows, column, values) {
  if (!has_plain_rows(rows)) {
    rows[[column]] <- values
    return(rows)
  }
  columns <- unclass(rows)
  columns[[column]] <- values
  attributes <- attributes(rows)
  attributes$names <- names(columns)
  attributes(columns) <- attributes
  columns
}

# Replaces the columns of a table by these, which are in the same order.
with_columns <- function(rows, columns) {
  attributes <- attributes(rows)
  attributes$row.names <- .set_row_names(length(columns[[1]]))
  attributes(columns) <- attributes
  columns
}
