# tier: gate
# Other users of the database and of the connection: transactions of the user, other writers and readers.

begin_as <- list(
  driver = function(con) DBI::dbBegin(con),
  sql = function(con) DBI::dbExecute(con, "BEGIN")
)

commit_as <- list(
  driver = function(con) DBI::dbCommit(con),
  sql = function(con) DBI::dbExecute(con, "COMMIT")
)

rollback_as <- list(
  driver = function(con) DBI::dbRollback(con),
  sql = function(con) DBI::dbExecute(con, "ROLLBACK")
)

with_user_table <- function(con, schema) {
  DBI::dbExecute(con, paste("CREATE TABLE", quoted(con, schema, "of_user"), "(a INTEGER)"))
}

insert_as_user <- function(con, schema) {
  DBI::dbExecute(con, paste("INSERT INTO", quoted(con, schema, "of_user"), "VALUES (1)"))
}

# A profile that the database refuses after rows have been written.
failing_profile <- function(x) {
  x$.zzz <- tibble::tibble(sample_id = c(1L, 99L))
  x
}

test_that("a copy in a transaction of the user is stored if that is committed", {
  for_each_database(function(con, schema, connect) {
    x <- small_profile()
    with_user_table(con, schema)
    other <- connect_again(connect)
    for (way in names(begin_as)) {
      begin_as[[way]](con)
      insert_as_user(con, schema)
      copy_profile_to(con, x, schema = schema)
      copy_profile_to(con, x, schema = schema)
      y <- profile_from_con(con, schema = schema)
      expect_true(is_transacting(con))
      commit_as[[way]](con)
      expect_false(is_transacting(con))
      expect_identical(profile_from_con(other, schema = schema), y)
    }
    expect_identical(profile_from_con(con, schema = schema), combine_profiles(x, x, x, x))
    expect_equal(count_rows(con, schema, "of_user"), 2)
    DBI::dbWithTransaction(con, copy_profile_to(con, x, schema = schema))
    expect_equal(count_rows(other, schema, "sources"), 5)
  })
})

test_that("a copy in a transaction of the user is undone if that is rolled back", {
  for_each_database(function(con, schema, connect) {
    x <- small_profile()
    before <- list_tables(con, schema)
    for (way in names(begin_as)) {
      begin_as[[way]](con)
      copy_profile_to(con, x, schema = schema)
      rollback_as[[way]](con)
      expect_false(is_transacting(con))
      expect_equal(list_tables(con, schema), before)
    }
    copy_profile_to(con, x, schema = schema)
    begin_as$driver(con)
    expect_equal(copy_profile_to(con, x, schema = schema)$source_id, 2)
    rollback_as$driver(con)
    expect_equal(copy_profile_to(con, x, schema = schema)$source_id, 2)
    expect_identical(profile_from_con(con, schema = schema), combine_profiles(x, x))
  })
})

test_that("an error leaves a transaction of the user open, and no part of a profile", {
  for_each_database(function(con, schema, connect) {
    x <- small_profile()
    with_user_table(con, schema)
    for (way in names(begin_as)) {
      begin_as[[way]](con)
      insert_as_user(con, schema)
      expect_error(copy_profile_to(con, failing_profile(x), schema = schema), class = "profile_error_invalid")
      expect_equal(list_tables(con, schema), "of_user")
      expect_error(profile_from_con(con, schema = schema), class = "profile_error_invalid")
      copy_profile_to(con, x, schema = schema)
      expect_error(copy_profile_to(con, failing_profile(x), schema = schema), class = "profile_error_invalid")
      insert_as_user(con, schema)
      expect_identical(profile_from_con(con, schema = schema), x)
      expect_true(is_transacting(con))
      rollback_as[[way]](con)
    }
    expect_equal(count_rows(con, schema, "of_user"), 0)
    begin_as$sql(con)
    insert_as_user(con, schema)
    copy_profile_to(con, x, schema = schema)
    expect_error(copy_profile_to(con, failing_profile(x), schema = schema), class = "profile_error_invalid")
    commit_as$sql(con)
    expect_identical(profile_from_con(con, schema = schema), x)
    expect_equal(count_rows(con, schema, "of_user"), 1)
  })
})

test_that("Ctrl-C leaves a transaction of the user open, and no part of a profile", {
  skip_on_cran()
  skip_on_os("windows")
  for_each_database(function(con, schema, connect) {
    with_user_table(con, schema)
    result <- run_r(c(
      "library(profile)",
      sprintf("con <- %s", connect),
      sprintf("x <- read_rprof(%s)", deparse(normalizePath(rprof_path("basic_all.out")))),
      sprintf("store <- function() copy_profile_to(con, x, schema = %s)", deparse(schema)),
      "append <- getFromNamespace('append_rows', 'profile')",
      "interrupted <- function(con, schema, table, rows) {",
      "  append(con, schema, table, rows)",
      "  if (table == 'samples') rlang::interrupt()",
      "}",
      "DBI::dbBegin(con)",
      sprintf("DBI::dbExecute(con, %s)", deparse(paste("INSERT INTO", quoted(con, schema, "of_user"), "VALUES (1)"))),
      "assignInNamespace('append_rows', interrupted, 'profile')",
      "for (i in 1:2) cat(tryCatch(store(), interrupt = function(e) 'interrupted'), '\\n')",
      "assignInNamespace('append_rows', append, 'profile')",
      "store()",
      "DBI::dbCommit(con)"
    ))
    expect_ran(result)
    expect_equal(sum(grepl("interrupted", result$output)), 2)
    expect_equal(count_rows(con, schema, "of_user"), 1)
    expect_equal(count_rows(con, schema, "sources"), 1)
    x <- read_rprof(rprof_path("basic_all.out"))
    expect_identical(stacks(profile_from_con(con, schema = schema)), stacks(x))
  })
})

test_that("the timeout is restored afterwards", {
  skip_if_not_installed("RSQLite")
  con <- DBI::dbConnect(RSQLite::SQLite())
  withr::defer(DBI::dbDisconnect(con))
  timeout <- function() DBI::dbGetQuery(con, "PRAGMA busy_timeout")[[1]]
  for (milliseconds in c(0, 1500, 3000000)) {
    DBI::dbGetQuery(con, paste("PRAGMA busy_timeout =", format(milliseconds, scientific = FALSE)))
    copy_profile_to(con, small_profile())
    profile_from_con(con)
    try(profile_from_con(con, no_such_column), silent = TRUE)
    expect_equal(timeout(), milliseconds)
  }
  skip_if_not_installed("dbplyr")
  tbl_profile(con)
  expect_equal(timeout(), 3000000)
  DBI::dbGetQuery(con, "PRAGMA busy_timeout = 0")
  tbl_profile(con)
  expect_equal(timeout(), 60000)
})

test_that("a consistent state of the database is loaded while others write", {
  for_each_database(function(con, schema, connect) {
    if (is_sqlite(con)) {
      # So a writer need not wait for this reader.
      DBI::dbGetQuery(con, "PRAGMA journal_mode = WAL")
    }
    x <- small_profile()
    y <- x
    y$.notes <- tibble::tibble(what = "of all runs")
    y$meta <- rbind(y$meta, tibble::tibble(key = ".later", value = "yes"))
    copy_profile_to(con, x, schema = schema)
    writer <- connect_again(connect)
    # A condition is evaluated after sources are selected and before their rows are read.
    write_now <- function() nrow(copy_profile_to(writer, y, schema = schema)) == 1
    expect_identical(profile_from_con(con, write_now(), schema = schema), x)
    expect_identical(profile_from_con(con, schema = schema), combine_profiles(x, y))
  })
})

test_that("writers wait for each other, whatever isolation PostgreSQL has by default", {
  skip_if(Sys.getenv("PROFILE_TEST_POSTGRES") == "", "PROFILE_TEST_POSTGRES is not set")
  skip_on_cran()
  skip_on_os("windows")
  for_each_database(function(con, schema, connect) {
    if (!is_postgres(con)) {
      return()
    }
    x <- small_profile()
    copy_profile_to(con, x, schema = schema)
    watch <- connect_again(connect)
    DBI::dbBegin(con)
    copy_profile_to(con, x, schema = schema)
    other <- run_r(wait = FALSE, c(
      "library(profile)",
      sprintf("con <- %s", connect),
      "DBI::dbExecute(con, 'SET default_transaction_isolation = \\'serializable\\'')",
      "cat('backend', DBI::dbGetQuery(con, 'SELECT pg_backend_pid() AS pid')$pid, fill = TRUE)",
      sprintf("x <- read_rprof(%s)", deparse(normalizePath(rprof_path("basic_all.out")))),
      sprintf("copy_profile_to(con, x, schema = %s)", deparse(schema)),
      "cat('done\\n')"
    ))
    backend <- sub("backend ", "", expect_printed(other, "^backend [0-9]+$"))
    query <- paste("SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid =", backend)
    expect_event(function() as.numeric(DBI::dbGetQuery(watch, query)$n) > 0, other)
    DBI::dbCommit(con)
    expect_printed(other, "^done")
    expect_equal(count_rows(con, schema, "sources"), 3)
  })
})

test_that("four writers and two readers at once lose nothing and never fail", {
  # test-database-storm.R has more rounds.
  expect_no_loss(4)
})

# ---- Statements that fail ------------------------------------------------------------

# The messages of an error and of its causes.
reasons_of <- function(error) {
  if (is.null(error)) character() else c(conditionMessage(error), reasons_of(error$parent))
}

# SQLite ends the whole transaction when the disk is full, and RSQLite then fails to undo its own savepoint.
test_that("the reason is reported if the disk is full, wherever it becomes full", {
  skip_if_not_installed("RSQLite")
  x <- read_quietly(rprof_path("basic_all.out"))
  stored_with <- function(pages, begin) {
    path <- withr::local_tempfile()
    con <- DBI::dbConnect(RSQLite::SQLite(), path)
    withr::defer(DBI::dbDisconnect(con))
    DBI::dbGetQuery(con, paste("PRAGMA max_page_count =", pages))
    if (begin) DBI::dbBegin(con)
    error <- tryCatch(
      {
        copy_profile_to(con, x)
        NULL
      },
      error = identity
    )
    if (begin) try(DBI::dbRollback(con), silent = TRUE)
    expect_false(is_transacting(con))
    # Nothing of the profile remains, and the connection can be used.
    DBI::dbGetQuery(con, "PRAGMA max_page_count = 100000")
    if (!is.null(error)) {
      copy_profile_to(con, x)
      expect_identical(profile_from_con(con), x)
    }
    error
  }
  for (begin in c(FALSE, TRUE)) {
    failed <- 0
    repeat {
      error <- stored_with(1 + failed, begin)
      if (is.null(error)) {
        break
      }
      expect_match(reasons_of(error), "database or disk is full", fixed = TRUE, all = FALSE)
      expect_no_match(reasons_of(error), "savepoint|name|accept")
      failed <- failed + 1
    }
    expect_gt(failed, 5)
  }
})

test_that("the reason is reported if a row breaks a rule of the user, or the connection is lost", {
  for_each_database(function(con, schema, connect) {
    x <- small_profile()
    copy_profile_to(con, x, schema = schema)
    DBI::dbExecute(con, paste("CREATE UNIQUE INDEX of_user ON", quoted(con, schema, "sources"), "(source_type)"))
    error <- tryCatch(copy_profile_to(con, x, schema = schema), error = identity)
    expect_match(reasons_of(error), "unique", ignore.case = TRUE, all = FALSE)
    expect_no_match(reasons_of(error), "savepoint")
    expect_identical(profile_from_con(con, schema = schema), x)
    other <- eval(parse(text = connect))
    replace_function("append_rows", function(...) {
      DBI::dbDisconnect(other)
      stop("The connection was lost.")
    }, environment())
    error <- tryCatch(copy_profile_to(other, x, schema = schema), error = identity)
    expect_identical(reasons_of(error), "The connection was lost.")
    expect_identical(profile_from_con(con, schema = schema), x)
  })
})
