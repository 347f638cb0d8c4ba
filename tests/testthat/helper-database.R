# The databases that tests run on: SQLite in a file, and PostgreSQL where
# PROFILE_TEST_POSTGRES says how to connect, such as
# "host=127.0.0.1 port=5432 user=postgres dbname=postgres".

# Connects to an empty database; `connect` is R code that does it in another process.
for_each_database <- function(code) {
  skip_if_not_installed("DBI")
  skip_if_not_installed("bit64")
  tested <- 0
  if (rlang::is_installed("RSQLite")) {
    path <- withr::local_tempfile()
    # To set how it writes would fail while another process writes, with a warning.
    connect <- sprintf("DBI::dbConnect(RSQLite::SQLite(), %s, synchronous = NULL)", deparse(path))
    on_database(connect, NULL, code)
    tested <- tested + 1
  }
  postgres <- Sys.getenv("PROFILE_TEST_POSTGRES")
  if (postgres != "" && rlang::is_installed("RPostgres")) {
    words <- strsplit(postgres, " +")[[1]]
    arguments <- paste0(sub("=.*", "", words), " = ", dQuote(sub(".*=", "", words), FALSE))
    connect <- sprintf(
      "DBI::dbConnect(RPostgres::Postgres(), %s, timezone = 'UTC', timezone_out = 'UTC')",
      paste(arguments, collapse = ", ")
    )
    schema <- paste0("profile_test_", Sys.getpid())
    # The driver looks for the time zone of the machine, which may not say it.
    withr::local_envvar(TZ = "UTC")
    con <- eval(parse(text = connect))
    withr::defer({
      DBI::dbExecute(con, paste("DROP SCHEMA IF EXISTS", schema, "CASCADE"))
      DBI::dbDisconnect(con)
    })
    DBI::dbExecute(con, "SET client_min_messages = warning")
    DBI::dbExecute(con, paste("CREATE SCHEMA", schema))
    on_database(connect, schema, code)
    tested <- tested + 1
  }
  if (tested == 0) {
    skip("neither RSQLite nor PostgreSQL is there")
  }
}

on_database <- function(connect, schema, code) {
  con <- eval(parse(text = connect))
  on.exit(DBI::dbDisconnect(con))
  code(con, schema, connect)
}

store <- function(con, profiles, schema) {
  for (x in profiles) copy_profile_to(con, x, schema = schema)
}

count_rows <- function(con, schema, table) {
  as.numeric(DBI::dbGetQuery(con, paste("SELECT count(*) AS n FROM", quoted(con, schema, table)))$n)
}

# The time of a profile, in seconds since 1970.
at_time <- function(x, time) {
  x$sources$source_timestamp <- rep(time, nrow(x$sources))
  x
}

# A second connection to the same database.
connect_again <- function(connect, .local_envir = parent.frame()) {
  con <- eval(parse(text = connect))
  withr::defer(DBI::dbDisconnect(con), envir = .local_envir)
  con
}

# Expects that what is refused names its place and leaves the database as it was.
expect_unstorable <- function(con, schema, x, table, column = NULL, class = "profile_error_unsupported") {
  before <- sort(list_tables(con, schema))
  error <- expect_error(copy_profile_to(con, x, schema = schema), class = class)
  expect_equal(error$table, table)
  expect_equal(error$column, column)
  expect_match(conditionMessage(error), table, fixed = TRUE)
  expect_equal(sort(list_tables(con, schema)), before)
}
