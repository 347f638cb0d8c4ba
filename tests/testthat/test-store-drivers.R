# tier: gate
# Drivers other than RSQLite and RPostgres. test-store-servers.R tests them with servers.

# Calls a function of a package that is not a dependency.
driver_of <- function(package, name) {
  getExportedValue(package, name)()
}

test_that("profiles are stored with a driver that is not known", {
  skip_if_not_installed("RSQLite")
  expect_stored(other_driver(), lazy = FALSE)
})

test_that("a transaction of the user stays as it is with a driver that is not known", {
  skip_if_not_installed("RSQLite")
  expect_untouched(other_driver())
})

test_that("a driver without transactions is refused by name", {
  skip_if_not_installed("RSQLite")
  con <- other_driver(transactions = FALSE)
  error <- expect_error(store_profiles(small_profile(), con), class = "profile_error_unsupported")
  expect_match(conditionMessage(error), "databases without transactions")
  expect_equal(DBI::dbListTables(con), character())
})

test_that("profiles are stored in DuckDB", {
  skip_if_not_installed("duckdb")
  path <- withr::local_tempfile()
  con <- DBI::dbConnect(driver_of("duckdb", "duckdb"), path)
  withr::defer(DBI::dbDisconnect(con, shutdown = TRUE))
  expect_stored(con)
  expect_untouched(con)
  DBI::dbExecute(con, "CREATE SCHEMA other")
  expect_stored(con, "other")
})

test_that("profiles are stored in SQLite with odbc", {
  skip_if_not_installed("odbc")
  skip_if_not("SQLite3" %in% driver_of("odbc", "odbcListDrivers")$name, "libsqliteodbc is not installed")
  con <- DBI::dbConnect(driver_of("odbc", "odbc"), driver = "SQLite3", database = withr::local_tempfile())
  withr::defer(DBI::dbDisconnect(con))
  # The driver reads 15 digits of a number, and dbplyr does not know it.
  expect_stored(con, lazy = FALSE, same = function(...) expect_equal(..., tolerance = 1e-14))
  expect_untouched(con)
})
