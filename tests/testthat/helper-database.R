# The databases that tests run on: SQLite in a file, and PostgreSQL if PROFILE_TEST_POSTGRES contains a connection, such
# as "host=127.0.0.1 port=5432 user=postgres dbname=postgres". Each test creates a schema and drops it. On Debian, with
# the package postgresql and as a user other than root, this starts a temporary server:
#
#   bin=$(ls -d /usr/lib/postgresql/*/bin); data=$(mktemp -d)
#   $bin/initdb -D $data -A trust
#   $bin/pg_ctl -D $data -l $data/log -o "-p 5433 -k $data -c listen_addresses=127.0.0.1" -w start

# Connects to an empty database; `connect` is R code that does it in another process.
for_each_database <- function(code) {
  skip_if_not_installed("DBI")
  skip_if_not_installed("bit64")
  tested <- 0
  if (rlang::is_installed("RSQLite")) {
    path <- withr::local_tempfile()
    # Setting the journal mode would fail with a warning while another process writes.
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
    # The driver looks up the time zone of the machine, which may be unknown.
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

# Expects that an error names the place of the invalid value and leaves the database unchanged.
expect_unstorable <- function(con, schema, x, table, column = NULL, class = "profile_error_unsupported") {
  before <- sort(list_tables(con, schema))
  error <- expect_error(copy_profile_to(con, x, schema = schema), class = class)
  expect_equal(error$table, table)
  expect_equal(error$column, column)
  expect_match(conditionMessage(error), table, fixed = TRUE)
  expect_equal(sort(list_tables(con, schema)), before)
}

# Expects that four writers and two readers at the same time lose nothing and never fail. Each writes or reads this
# number of times. Of four profiles of a writer, three have a new column or table.
expect_no_loss <- function(rounds) {
  testthat::skip_on_cran()
  testthat::skip_on_os("windows")
  journals <- c("DELETE", "WAL")
  for_each_database(function(con, schema, connect) {
    for (journal in if (is_sqlite(con)) journals else "") {
      if (is_sqlite(con)) {
        objects <- DBI::dbGetQuery(con, "SELECT type, name FROM sqlite_master WHERE type IN ('table', 'view')")
        for (i in seq_len(nrow(objects))) {
          DBI::dbExecute(con, paste("DROP", objects$type[[i]], quoted(con, schema, objects$name[[i]])))
        }
        DBI::dbGetQuery(con, paste("PRAGMA journal_mode =", journal))
      }
      start <- tempfile()
      file <- normalizePath(rprof_path("basic_all.out"))
      script <- function(name, ...) {
        run_r(wait = FALSE, c(
          "library(profile)",
          sprintf("con <- %s", connect),
          sprintf("schema <- %s", deparse(schema)),
          sprintf("x <- read_rprof(%s, source_uri = '%s')", deparse(file), name),
          sprintf("while (!file.exists(%s)) Sys.sleep(0.005)", deparse(start)),
          ...,
          "cat('done\n')"
        ))
      }
      writers <- lapply(paste0("writer", 1:4), script,
        sprintf("for (i in 1:%d) {", rounds),
        "  y <- x",
        "  own <- paste0('.', x$sources$source_uri, '_', i)",
        "  if (i %% 4 == 0) y$samples[[own]] <- seq_len(nrow(x$samples))",
        "  if (i %% 4 == 2) y$sources[[own]] <- i",
        "  if (i %% 4 == 3) y[[own]] <- x$samples['sample_id']",
        "  copy_profile_to(con, y, schema = schema)",
        "}"
      )
      # An incomplete profile would have too few samples, values or frames.
      readers <- lapply(paste0("reader", 1:2), script,
        "stored <- function() '.next_ids' %in% profile:::list_tables(con, schema)",
        "while (!tryCatch(stored(), error = function(e) FALSE)) Sys.sleep(0.005)",
        "lazy <- requireNamespace('dbplyr', quietly = TRUE)",
        sprintf("for (i in 1:%d) {", rounds),
        "  y <- profile_from_con(con, schema = schema)",
        "  n <- nrow(y$sources)",
        "  for (table in c('samples', 'sample_values', 'sample_locations')) {",
        "    if (nrow(y[[table]]) != n * nrow(x[[table]])) stop(table, ' of ', n, ' runs')",
        "  }",
        "  if (lazy && i %% 5 == 0) {",
        "    sums <- dplyr::collect(summary(tbl_profile(con, schema = schema)))",
        "    if (sum(sums$self) %% nrow(x$samples) != 0) stop('half a run in summary()')",
        "  }",
        "}"
      )
      all <- c(writers, readers)
      file.create(start)
      for (process in all) expect_printed(process, "^done")
      y <- profile_from_con(con, schema = schema)
      x <- read_rprof(file)
      testthat::expect_equal(as.vector(table(y$sources$source_uri)), rep(rounds, 4))
      testthat::expect_identical(stacks(y), rep(stacks(x), 4 * rounds))
      testthat::expect_equal(nrow(y$sample_values), 4 * rounds * nrow(x$sample_values))
      testthat::expect_equal(sum(grepl("^[.]writer", names(y))), 4 * sum(seq_len(rounds) %% 4 == 3))
      testthat::expect_equal(sum(grepl("^[.]writer", c(names(y$samples), names(y$sources)))), 4 * sum(seq_len(rounds) %% 2 == 0))
    }
  })
}
