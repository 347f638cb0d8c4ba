# tier: thorough
# MariaDB, with each driver that is installed.

mariadb_drivers <- c(
  RMariaDB = "DBI::dbConnect(RMariaDB::MariaDB(), user = 'root', unix.socket = '%s', dbname = 'test')",
  RMySQL = "DBI::dbConnect(RMySQL::MySQL(), user = 'root', unix.socket = '%s', dbname = 'test')",
  odbc = "DBI::dbConnect(odbc::odbc(), driver = 'MariaDB Unicode', socket = '%s', uid = 'root', database = 'test')"
)

test_that("profiles are stored in MariaDB", {
  drivers <- Filter(rlang::is_installed, names(mariadb_drivers))
  skip_if(length(drivers) == 0, "none of RMariaDB, RMySQL and odbc is installed: MariaDB is not tested")
  emptied <- local_mariadb()
  for (driver in drivers) {
    con <- eval(parse(text = sprintf(mariadb_drivers[[driver]], emptied())))
    expect_stored(con)
    # RMariaDB commits each statement unless DBI has begun.
    expect_untouched(con, sql = driver != "RMariaDB")
    DBI::dbDisconnect(con)
  }
})
