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

local_sqlite <- function(.local_envir = parent.frame()) {
  con <- DBI::dbConnect(RSQLite::SQLite())
  withr::defer(DBI::dbDisconnect(con), envir = .local_envir)
  con
}

on_database <- function(connect, schema, code) {
  con <- eval(parse(text = connect))
  on.exit(DBI::dbDisconnect(con))
  code(con, schema, connect)
}

count_rows <- function(con, schema, table) {
  as.numeric(DBI::dbGetQuery(con, paste("SELECT count(*) AS n FROM", quoted(con, schema, table)))$n)
}

# The sums of a store by function and sample type, which do not depend on how they are stored.
sums_of_store <- function(from, ..., schema = NULL) {
  x <- read_profile(tbl_profile(from, ..., schema = schema))
  types <- sort(unique(x$sample_values$type))
  lapply(rlang::set_names(types), function(type) {
    rows <- as.data.frame(summary(x, type = type)$by_function)[c("name", "self", "total")]
    rows <- rows[order(rows$name, method = "radix"), ]
    row.names(rows) <- NULL
    rows
  })
}

# As if all rows had been written on another day, which is a part of the keys of origins.
move_to <- function(con, day, schema = NULL) {
  for (table in c("profile_origins", "profile_sums")) {
    DBI::dbExecute(con, paste("UPDATE", quoted(con, schema, table), "SET origin_key = -1 - origin_key"))
  }
  for (table in c("profile_origins", "profile_uses")) {
    day_column <- DBI::dbQuoteIdentifier(con, "day")
    DBI::dbExecute(con, paste("UPDATE", quoted(con, schema, table), "SET", day_column, "=", quoted_text(con, day)))
  }
}

stored_tables_of <- function(con, schema = NULL) {
  tables <- setdiff(names(store_tables), "profile_layout")
  vapply(rlang::set_names(tables), function(table) count_rows(con, schema, table), 0)
}

# A second connection to the same database.
connect_again <- function(connect, .local_envir = parent.frame()) {
  con <- eval(parse(text = connect))
  withr::defer(DBI::dbDisconnect(con), envir = .local_envir)
  con
}

# Expects that four writers and two readers at the same time lose nothing and never fail. Each writes or reads this
# number of times.
expect_no_loss <- function(rounds) {
  testthat::skip_on_cran()
  testthat::skip_on_os("windows")
  testthat::skip_if_not_installed("dbplyr")
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
          sprintf("x <- read_rprof(%s)", deparse(file)),
          sprintf("while (!file.exists(%s)) Sys.sleep(0.005)", deparse(start)),
          ...,
          "cat('done\n')"
        ))
      }
      writers <- lapply(paste0("writer", 1:4), function(name) {
        script(name, sprintf(
          "for (i in 1:%d) store_profiles(x, con, schema = schema, resource = c(service.name = paste0('%s', i %%%% 2)))",
          rounds, name
        ))
      })
      # A part of a profile would have other sums.
      readers <- lapply(1:2, function(i) {
        script(
          "reader",
          "stored <- function() 'profile_layout' %in% profile:::list_tables(con, schema)",
          "while (!tryCatch(stored(), error = function(e) FALSE)) Sys.sleep(0.005)",
          sprintf("for (i in 1:%d) {", rounds),
          "  sums <- dplyr::collect(dplyr::summarise(tbl_profile(con, schema = schema)$samples, n = sum(sample_count, na.rm = TRUE)))",
          "  if (isTRUE(as.numeric(sums$n) %% nrow(x$samples) != 0)) stop('a part of a profile')",
          "}"
        )
      })
      file.create(start)
      for (process in c(writers, readers)) expect_printed(process, "^done")
      x <- read_quietly(file)
      all <- read_profile(tbl_profile(con, schema = schema))
      one <- flat_tables(x, character(), NULL)$samples
      testthat::expect_equal(
        sum(all$sample_values$value[all$sample_values$type == "samples"]), 4 * rounds * nrow(x$samples)
      )
      testthat::expect_equal(count_rows(con, schema, "samples"), 4 * rounds * nrow(one))
      # Each stack once, although all writers have it.
      testthat::expect_equal(count_rows(con, schema, "profile_uses"), 8 * length(unique(one$stack_key)))
    }
  })
}
