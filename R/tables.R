# Checks the shape of tables, and converts columns of equivalent types.
#
# Every function takes a profile through `as_profile()`, which calls `settled_tables()`.
# What is checked here the core could not see, or vctrs would crash on; what is
# converted here are types that mean the same as those of the data model, so that
# all functions agree about them. Everything else is left for the core to check.

settled_tables <- function(x, call) {
  check_names(names(x), "tables", NULL, call)
  for (table in names(x)) {
    rows <- x[[table]]
    if (is.data.frame(rows)) {
      check_names(names(rows), "columns", table, call)
      check_rows(rows, table, call)
      check_own_texts(rows, table, call)
      x[[table]] <- plain_columns(rows, table, call)
    }
  }
  x
}

check_names <- function(names, of, table, call) {
  broken <- names[!is_valid_text(names)]
  twice <- names[duplicated(names[is_valid_text(names)])]
  if (length(broken) > 0) {
    rule <- paste0("the name of one of its ", of, " is not valid text: ", shown_text(broken[[1]]))
  } else if (length(twice) > 0) {
    rule <- paste0("there are several ", of, " of this name")
  } else {
    return()
  }
  if (is.null(table)) {
    abort_invalid(rule, shown_text(c(broken, twice)[[1]]), call = call)
  }
  abort_invalid(rule, table, if (length(broken) == 0) twice[[1]], call = call)
}

# `row.names` say how many rows a data frame has, whatever its columns are.
check_rows <- function(rows, table, call) {
  wanted <- .row_names_info(rows, 2L)
  columns <- unclass(rows)
  for (column in names(columns)[lengths(columns) != wanted]) {
    size <- tryCatch(vctrs::vec_size(columns[[column]]), error = function(e) NA)
    if (!identical(size, wanted)) {
      has <- if (is.na(size)) "is no column" else paste("has", size, "rows")
      abort_invalid(paste(has, "where the table has", wanted), table, column, call = call)
    }
  }
}

# Of columns that the core does not know. vctrs fails with strings that are marked as bytes.
check_own_texts <- function(rows, table, call) {
  columns <- Filter(is.character, unclass(rows))
  for (column in names(columns)[startsWith(names(columns), ".") | startsWith(table, ".")]) {
    row <- match("bytes", Encoding(columns[[column]]))
    if (!is.na(row)) {
      abort_invalid("the string is marked as bytes, not as text", table, column, row, call = call)
    }
  }
}

# The columns of the data model without attributes that add nothing to their values.
plain_columns <- function(rows, table, call) {
  columns <- unclass(rows)
  odd <- !vapply(columns, function(column) is.null(attributes(column)), TRUE)
  if (!any(odd)) {
    return(rows)
  }
  known <- data_model()
  wanted <- c(data_model()$version1[[table]], known$required[[table]], known$optional[[table]])
  for (column in intersect(names(columns)[odd], names(wanted))) {
    values <- plain(columns[[column]], wanted[[column]], table, column, call)
    if (!is.null(values)) {
      columns[[column]] <- values
    }
  }
  attributes(columns) <- attributes(rows)
  columns
}

# The values as a plain vector, NULL where the class says that they are something else.
plain <- function(x, wanted, table, column, call) {
  if (inherits(x, "AsIs")) {
    oldClass(x) <- setdiff(oldClass(x), "AsIs")
  }
  if (!is.null(dim(x))) {
    NULL
  } else if (inherits(x, "integer64")) {
    if (is.numeric(wanted)) from_integer64(x, wanted, table, column, call)
  } else if (column %in% data_model()$times && inherits(x, "POSIXct")) {
    as.numeric(unclass(x))
  } else if (column %in% data_model()$times && inherits(x, "Date")) {
    as.numeric(unclass(x)) * 86400
  } else if (inherits(x, c("character", "numeric", "integer", "double", "logical", "list"))) {
    # Without a class, or with one that says itself that it is one of R's types, such as
    # those of glue's and fs's texts.
    attributes(x) <- NULL
    x
  }
}

# Exactly, or not at all. bit64 keeps the 64 bits where R has those of a double; it need
# not be installed.
from_integer64 <- function(x, wanted, table, column, call) {
  halves <- matrix(readBin(writeBin(as.vector(unclass(x)), raw()), "integer", 2 * length(x)), nrow = 2)
  if (.Platform$endian == "big") {
    halves <- halves[2:1, , drop = FALSE]
  }
  # As an integer, a half that has its highest bit alone is NA.
  low <- ifelse(is.na(halves[1, ]), 2^31, halves[1, ] %% 2^32)
  high <- ifelse(is.na(halves[2, ]), -2^31, halves[2, ])
  values <- high * 2^32 + low
  values[high == -2^31 & low == 0] <- NA
  largest <- if (is.integer(wanted)) .Machine$integer.max else 2^53
  row <- which(abs(values) > largest)
  if (length(row) > 0) {
    rule <- paste0("cannot be made ", typeof(wanted), " without a loss")
    abort_invalid(rule, table, column, row[[1]], call = call)
  }
  if (is.integer(wanted)) as.integer(values) else values
}

# Those that every profile of a version has.
required_tables <- function(version) {
  model <- data_model()
  names(if (version == "1.0") model$version1 else model$required)
}
