# tier: thorough
# MariaDB, with each driver that is installed.

mariadb_drivers <- c(
  RMariaDB = "DBI::dbConnect(RMariaDB::MariaDB(), user = 'root', unix.socket = '%s', dbname = 'test')",
  RMySQL = "DBI::dbConnect(RMySQL::MySQL(), user = 'root', unix.socket = '%s', dbname = 'test')",
  odbc = "DBI::dbConnect(odbc::odbc(), driver = 'MariaDB Unicode', socket = '%s', uid = 'root', database = 'test')"
)

# Temporary tables are not part of a transaction in MariaDB, and writers wait for those of the same schema.
expect_summed_after_error <- function(con) {
  store_profiles(small_profile(), con, resource = c(service.name = strrep("s", 1e5)))
  expect_equal(max(nchar(DBI::dbGetQuery(con, "SELECT service FROM profile_services")$service)), 1e5)
  move_to(con, "2026-01-01")
  local({
    replace_function("check_sums", function(con, call) abort_sums(call), environment())
    expect_error(roll_up_profiles(con, Sys.time()), class = "profile_error_unsupported")
  })
  expect_identical(roll_up_profiles(con, Sys.time()), 1)
  locked <- function(schema) {
    DBI::dbGetQuery(con, sprintf("SELECT IS_USED_LOCK(CONCAT('profile ', MD5('%s'))) AS id", schema))$id
  }
  creating(con, "other", expect_false(is.na(locked("other"))), NULL)
  creating(con, NULL, expect_false(is.na(locked("test"))), NULL)
}

test_that("profiles are stored in MariaDB", {
  drivers <- Filter(rlang::is_installed, names(mariadb_drivers))
  skip_if(length(drivers) == 0, "none of RMariaDB, RMySQL and odbc is installed: MariaDB is not tested")
  emptied <- local_mariadb()
  for (driver in drivers) {
    con <- eval(parse(text = sprintf(mariadb_drivers[[driver]], emptied())))
    expect_stored(con)
    # RMariaDB commits each statement unless DBI has begun.
    expect_untouched(con, sql = driver != "RMariaDB")
    expect_summed_after_error(con)
    DBI::dbDisconnect(con)
  }
})
