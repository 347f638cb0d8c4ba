# tier: gate
# What a database can store: names and types are restored exactly, or refused before anything is written.

with_table <- function(rows, name = ".notes", x = small_profile(.local_envir = parent.frame())) {
  x[[name]] <- rows
  x
}

# Tables of users are in the order of the database.
expect_same_tables <- function(x, y) {
  expect_setequal(names(x), names(y))
  expect_identical(unclass(x)[names(y)], unclass(y)[names(y)])
}

test_that("names of own tables, and of own columns in the seven tables, begin with a dot", {
  for_each_database(function(con, schema, connect) {
    x <- small_profile()
    column <- table <- x
    column$sources$version <- "1.0"
    table$notes <- tibble::tibble(sample_id = 1L, note = "first")
    expect_unstorable(con, schema, column, "sources", class = "profile_error_invalid")
    expect_unstorable(con, schema, table, "notes", class = "profile_error_invalid")
    x$sources$.version <- "1.0"
    x$.notes <- tibble::tibble(sample_id = 1L, note = "first", .by = "me")
    x$.comments <- tibble::tibble(source_id = 1L, comment = "a test", author = "me")
    copy_profile_to(con, x, schema = schema)
    expect_identical(profile_from_con(con, schema = schema), combine_profiles(x))
  })
})

test_that("unusual names are restored", {
  for_each_database(function(con, schema, connect) {
    words <- c(
      "a\"b", "a'b", "a`b", "a.b", "a b", "caf\u00e9", "select", "$1", ":x", "?", "[a]", "%s",
      "a\nb", ";", "\\", "{x}", "rowid", "oid", "_rowid_", "next_id", "key", strrep("n", 63)
    )
    rows <- tibble::as_tibble(rlang::set_names(as.list(as.numeric(seq_along(words))), words))
    x <- with_table(rows)
    for (word in words) {
      x$samples[[paste0(".", substr(word, 1, 62))]] <- word
      x[[paste0(".", substr(word, 1, 62))]] <- tibble::tibble(sample_id = 1L, word = word)
    }
    plain <- small_profile()
    store(con, list(x, plain, x), schema)
    expect_same_tables(profile_from_con(con, schema = schema), combine_profiles(x, plain, x))
    # Rows without a key belong to all runs.
    last <- profile_from_con(con, source_id == 3, schema = schema)
    expect_same_tables(last, combine_profiles(with_table(rbind(rows, rows), x = x)))
  })
})

test_that("names that databases need themselves are refused", {
  for_each_database(function(con, schema, connect) {
    x <- small_profile()
    y <- x
    y$samples$.row <- 3:1
    expect_unstorable(con, schema, y, "samples", ".row")
    y <- x
    y$sample_locations$.row <- seq_len(nrow(x$sample_locations))
    expect_unstorable(con, schema, y, "sample_locations", ".row")
    expect_unstorable(con, schema, with_table(tibble::tibble(.row = 1)), ".notes", ".row")
    expect_unstorable(con, schema, with_table(tibble::tibble(a = 1), ".next_ids"), ".next_ids")
    copy_profile_to(con, x, schema = schema)
    expect_unstorable(con, schema, y, "sample_locations", ".row")
    expect_identical(profile_from_con(con, schema = schema), x)
  })
})

test_that("names that the database cannot distinguish are rejected", {
  for_each_database(function(con, schema, connect) {
    x <- small_profile()
    columns <- with_table(tibble::tibble(a = 1, A = 2))
    tables <- with_table(tibble::tibble(a = 2), ".Notes", with_table(tibble::tibble(a = 1)))
    rows <- with_table(tibble::tibble(.ROW = 1))
    lower <- with_table(tibble::tibble(a = 1))
    upper <- with_table(tibble::tibble(A = 1))
    other <- with_table(tibble::tibble(a = 1), ".NOTES")
    if (is_sqlite(con)) {
      expect_unstorable(con, schema, columns, ".notes", "A")
      expect_unstorable(con, schema, tables, ".Notes")
      expect_unstorable(con, schema, rows, ".notes", ".ROW")
      copy_profile_to(con, lower, schema = schema)
      expect_unstorable(con, schema, upper, ".notes", "A")
      expect_unstorable(con, schema, other, ".NOTES")
      expect_identical(profile_from_con(con, schema = schema), lower)
    } else {
      all <- list(columns, tables, rows, lower, upper, other)
      store(con, all, schema)
      expect_same_tables(profile_from_con(con, schema = schema), combine_profiles(all))
    }
  })
})

test_that("names that the database would change are refused", {
  for_each_database(function(con, schema, connect) {
    x <- small_profile()
    long <- paste0(".", strrep("n", 63))
    column <- x
    column$samples[[long]] <- 1:3
    own <- with_table(rlang::set_names(tibble::tibble(a = 1, b = 2), c("a", long)))
    table <- with_table(tibble::tibble(a = 1), long)
    if (is_postgres(con)) {
      suppressMessages({
        expect_unstorable(con, schema, column, "samples", long)
        expect_unstorable(con, schema, own, ".notes", long)
        expect_unstorable(con, schema, table, long)
        expect_unstorable(con, schema, with_table(tibble::tibble(a = 1, ctid = 2)), ".notes", "ctid")
      })
    } else {
      store(con, list(column, own, table), schema)
      expect_same_tables(profile_from_con(con, schema = schema), combine_profiles(column, own, table))
    }
  })
})

test_that("values that a column cannot store are refused", {
  for_each_database(function(con, schema, connect) {
    columns <- list(
      list(1, 2), complex(2), as.raw(1:2), matrix(1:4, 2), tibble::tibble(u = 1:2),
      as.POSIXlt(c(0, 1), origin = "1970-01-01"), numeric_version(c("1.2", "3")),
      expression(a, b)
    )
    for (column in columns) {
      x <- small_profile()
      rows <- tibble::new_tibble(list(sample_id = 1:2, what = column), nrow = 2L)
      expect_unstorable(con, schema, with_table(rows), ".notes", "what")
    }
    bytes <- c("a\xe9", NA)
    Encoding(bytes) <- "bytes"
    expect_unstorable(con, schema, with_table(tibble::tibble(what = bytes)), ".notes", "what", "profile_error_invalid")
    invalid <- function(rows) {
      expect_unstorable(con, schema, with_table(rows), ".notes", class = "profile_error_invalid")
    }
    invalid(list(1))
    invalid(rlang::set_names(tibble::tibble(a = 1, b = 2), c("a", "")))
    invalid(rlang::set_names(tibble::tibble(a = 1, b = 2), c("a", NA)))
  })
})

test_that("messages name the table and the column", {
  skip_if_not_installed("RSQLite")
  con <- DBI::dbConnect(RSQLite::SQLite())
  withr::defer(DBI::dbDisconnect(con))
  listed <- small_profile()
  listed$samples$.what <- as.list(1:3)
  reserved <- small_profile()
  reserved$samples$.row <- 1:3
  expect_snapshot(error = TRUE, {
    copy_profile_to(con, listed)
    copy_profile_to(con, reserved)
    copy_profile_to(con, with_table(tibble::tibble(a = 1), ".next_ids"))
    profile_from_con(con)
  })
})

test_that("natural types are stored", {
  for_each_database(function(con, schema, connect) {
    x <- small_profile()
    x$samples$.date <- as.Date("2024-02-29") + 0:2
    x$samples$.factor <- factor(c("a", NA, "b"))
    x$samples$.wide <- bit64::as.integer64(c("9007199254740993", "1", NA))
    x$samples$.flag <- c(TRUE, NA, FALSE)
    x$samples$.blob <- blob::as_blob(list(as.raw(1), as.raw(0:3), as.raw(255)))
    latin1 <- "caf\xe9"
    Encoding(latin1) <- "latin1"
    x$samples$.text <- c(latin1, NA, "\u65e5")
    copy_profile_to(con, x, schema = schema)
    y <- profile_from_con(con, schema = schema)
    expect_equal(as.numeric(y$samples$.date), as.numeric(x$samples$.date))
    expect_equal(y$samples$.factor, c("a", NA, "b"))
    expect_identical(y$samples$.wide, x$samples$.wide)
    expect_equal(as.logical(y$samples$.flag), x$samples$.flag)
    expect_equal(y$samples$.blob, x$samples$.blob)
    expect_equal(y$samples$.text, x$samples$.text)
  })
})

test_that("a column has one type for all profiles", {
  for_each_database(function(con, schema, connect) {
    numbers <- with_table(tibble::tibble(a = 1:2, b = c(0.5, NA), c = c("x", NA)))
    copy_profile_to(con, numbers, schema = schema)
    for (rows in list(
      tibble::tibble(a = "text"), tibble::tibble(a = 2.5), tibble::tibble(b = "0.5", a = 1L), tibble::tibble(c = 1)
    )) {
      expect_unstorable(con, schema, with_table(rows), ".notes", names(rows)[[1]])
    }
    more <- with_table(tibble::tibble(a = 3, b = 4L, c = factor("y")))
    copy_profile_to(con, more, schema = schema)
    y <- profile_from_con(con, schema = schema)$.notes
    expect_equal(as.data.frame(y), data.frame(a = 1:3, b = c(0.5, NA, 4), c = c("x", NA, "y")))
  })
})

test_that("other tables are not changed", {
  for_each_database(function(con, schema, connect) {
    x <- small_profile()
    others <- data.frame(a = 1:2)
    DBI::dbWriteTable(con, table_id(schema, "samples"), others)
    expect_unstorable(con, schema, x, "samples", class = "profile_error_invalid")
    expect_error(profile_from_con(con, schema = schema), "sources", class = "profile_error_invalid")
    DBI::dbExecute(con, paste("DROP TABLE", quoted(con, schema, "samples")))

    DBI::dbWriteTable(con, table_id(schema, ".notes"), others)
    copy_profile_to(con, x, schema = schema)
    expect_identical(profile_from_con(con, schema = schema), x)
    y <- with_table(tibble::tibble(a = 3))
    expect_unstorable(con, schema, y, ".notes", class = "profile_error_invalid")
    expect_equal(DBI::dbReadTable(con, table_id(schema, ".notes")), others)
  })
})

test_that("tables without columns, or with other columns, are not profiles", {
  for_each_database(function(con, schema, connect) {
    DBI::dbWriteTable(con, table_id(schema, "sources"), data.frame(source_id = 1))
    error <- expect_error(profile_from_con(con, schema = schema), class = "profile_error_invalid")
    expect_equal(error$table, "sources")
    expect_equal(error$column, "source_type")
  })
})

test_that("rows of no source are loaded, ids of no row refused", {
  for_each_database(function(con, schema, connect) {
    x <- with_table(tibble::tibble(sample_id = c(2L, NA), what = c("sample", "all")))
    copy_profile_to(con, x, schema = schema)
    expect_identical(profile_from_con(con, schema = schema), x)
    expect_equal(profile_from_con(con, source_id == 99, schema = schema)$.notes$what, "all")
    y <- with_table(tibble::tibble(sample_id = c(2L, 99L)))
    expect_unstorable(con, schema, y, ".notes", "sample_id", class = "profile_error_invalid")
  })
})

test_that("mappings are loaded when no location refers to one", {
  for_each_database(function(con, schema, connect) {
    x <- read_pprof(data_path("pprof", "go_cpu.pb.gz"))
    x$locations$.mapping_id <- NULL
    copy_profile_to(con, x, schema = schema)
    expect_identical(profile_from_con(con, schema = schema), combine_profiles(x))
  })
})

test_that("profiles may be in an attached database of SQLite", {
  skip_if_not_installed("RSQLite")
  con <- DBI::dbConnect(RSQLite::SQLite())
  withr::defer(DBI::dbDisconnect(con))
  DBI::dbExecute(con, "ATTACH ':memory:' AS beside")
  x <- with_table(tibble::tibble(sample_id = 1L, what = "a"))
  copy_profile_to(con, x, schema = "beside")
  copy_profile_to(con, x, schema = "beside")
  expect_identical(profile_from_con(con, schema = "beside"), combine_profiles(x, x))
  expect_equal(DBI::dbListTables(con), character())
})
