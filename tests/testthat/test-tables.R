# tier: gate
# Edited tables, and the results of R's own functions for profiles.

expect_refused <- function(x, pattern, functions = list(validate_profile, summary)) {
  class(x) <- "profile_data"
  for (f in functions) {
    error <- expect_error(f(x), class = "profile_error_invalid")
    expect_match(conditionMessage(error), pattern)
  }
  expect_match(format(x), "Not valid", all = FALSE)
}

expect_all_refuse <- function(x, pattern) {
  expect_refused(x, pattern, functions_of_profiles(withr::local_tempfile()))
}

test_that("a duplicate table is rejected by all functions", {
  x <- small_profile()
  expect_all_refuse(c(unclass(x), unclass(x)), "Table `meta`: duplicate table name")
  expect_all_refuse(
    c(unclass(x), list(.mine = data.frame(a = 1), .mine = data.frame(a = 1))),
    "Table `.mine`: duplicate table name"
  )
  y <- unclass(small_profile(version = "1.0"))
  expect_all_refuse(c(y, y["samples"]), "Table `samples`: duplicate table name")
})

test_that("lists of tables without names, or with names that are missing, are rejected by all functions", {
  class <- class(small_profile())
  for (x in list(list(), list(1, 2), list(a = 1, NA))) {
    expect_all_refuse(structure(x, class = class), "Table `meta` is missing")
  }
  x <- small_profile()
  names(x)[[3]] <- NA
  expect_all_refuse(x, "the name of one of its tables is not valid text: NA")
})

test_that("a profile is checked even if it has no sources", {
  x <- small_profile()
  for (table in c("sources", "samples", "sample_values", "sample_locations")) {
    x[[table]] <- x[[table]][0, ]
  }
  x$locations$line[[1]] <- -1L
  functions <- list(
    validate_profile, summary, as_tibble, profile_problems, describe_profile, combine_profiles, profile_page, call_tree,
    add_packages, add_source_text, annotate_lines, plot_quietly, as_profvis
  )
  expect_refused(x, "Table `locations`, column `line`, row 1: must not be negative", functions)
})

test_that("a duplicate column is rejected by all functions", {
  x <- unclass(small_profile())
  for (table in c("meta", "samples", "functions")) {
    y <- x
    columns <- unclass(y[[table]])
    y[[table]] <- structure(c(columns, columns[1]), class = class(x$meta), row.names = attr(columns, "row.names"))
    expect_all_refuse(y, paste0("Table `", table, "`, column `", names(columns)[[1]], "`: duplicate column name"))
  }
  x$.mine <- structure(list(a = 1, a = 2), class = "data.frame", row.names = 1L)
  expect_all_refuse(x, "Table `.mine`, column `a`: duplicate column name")
})

test_that("row names that contradict the columns are refused by all functions", {
  x <- unclass(small_profile())
  x$.mine <- data.frame(a = 1:3)
  for (table in c(names(small_profile()), ".mine")) {
    rows <- nrow(x[[table]])
    for (names in list(integer(), seq_len(rows - 1), seq_len(rows + 1), c(NA, -rows - 7L), letters)) {
      y <- x
      attr(y[[table]], "row.names") <- names
      expect_refused(y, paste0("Table `[.]?", sub(".", "", table, fixed = TRUE), "`, column `.*` has [0-9]+ rows, but the table has [0-9]+"))
    }
  }
  # All functions use one check: the last of these for all of them.
  expect_all_refuse(y, "Table `.mine`, column `.*` has 3 rows, but the table has 26")
  y <- x
  attr(y$samples, "row.names") <- NULL
  expect_all_refuse(y, "but the table has 0")
})

test_that("columns of several lengths are refused, also in tables of a user", {
  x <- unclass(small_profile())
  ragged <- function(...) structure(list(...), class = "data.frame", row.names = 1:3)
  x$.mine <- ragged(a = 1:3, b = 1:2)
  expect_all_refuse(x, "Table `.mine`, column `b` has 2 rows, but the table has 3")
  x$.mine <- ragged(a = 1:3, b = mean)
  expect_all_refuse(x, "Table `.mine`, column `b` is not a vector")
  # Matrices, data frames and records are columns with their number of rows.
  x$.mine <- ragged(
    a = matrix(1:6, 3), b = data.frame(x = 1:3, y = 1:3), c = as.POSIXlt(1:3, origin = "1970-01-01"), d = as.list(1:3)
  )
  expect_identical(validate_profile(x), x)
})

test_that("names that are not valid text are refused", {
  x <- unclass(small_profile())
  bytes <- rawToChar(as.raw(c(0x2e, 0xe9)))
  for (encoding in c("bytes", "UTF-8")) {
    Encoding(bytes) <- encoding
    y <- x
    y[[length(y) + 1]] <- data.frame(a = 1)
    names(y)[[length(y)]] <- bytes
    expect_all_refuse(y, "the name of one of its tables is not valid text")
    y <- x
    y$.mine <- data.frame(a = 1)
    names(y$.mine) <- bytes
    expect_all_refuse(y, "Table `.mine`: the name of one of its columns is not valid text")
  }
})

test_that("tables are removed, replaced and added as in a list", {
  x <- small_profile()
  expect_s3_class(x[["samples"]], "tbl_df")
  y <- x
  y$functions$name[[1]] <- "renamed"
  expect_s3_class(y, "profile_data")
  expect_identical(y[["functions"]]$name[[1]], "renamed")
  y[[".mine"]] <- tibble::tibble(sample_id = 1L)
  expect_identical(validate_profile(y), y)
  y$samples <- NULL
  expect_error(validate_profile(y), "Table `samples` is missing", class = "profile_error_invalid")
})

test_that("a part of the tables is not a profile", {
  for (version in c("1.0", "2.0")) {
    x <- small_profile(version = version)
    x$.mine <- tibble::tibble(a = 1)
    part <- x["samples"]
    expect_identical(class(part), "list")
    expect_identical(part, unclass(x)["samples"])
    expect_identical(class(x[c("meta", "meta")]), "list")
    expect_identical(class(x[integer()]), "list")
    expect_identical(x[], x)
    expect_identical(x[names(x)], x)
    less <- x[names(x) != ".mine"]
    expect_s3_class(less, "profile_data")
    expect_identical(validate_profile(less), less)
  }
  x$meta <- NULL
  expect_identical(class(x["samples"]), "list")
})

test_that("functions that would break a profile name an alternative", {
  x <- small_profile()
  calls <- expression(
    c(x, x), c(x), rbind(x, x), cbind(x, x), head(x), head(x, 3), tail(x), unique(x), t(x)
  )
  for (call in calls) {
    expect_error(eval(call), class = "profile_error_unsupported")
  }
  expect_snapshot(error = TRUE, {
    c(x, x)
    rbind(x, x)
    head(x)
    unique(x)
    t(x)
  })
})

test_that("as.data.frame() gives all frames", {
  x <- small_profile()
  frames <- as.data.frame(x)
  expect_identical(class(frames), "data.frame")
  expect_identical(tibble::as_tibble(frames), as_tibble(x))
})
