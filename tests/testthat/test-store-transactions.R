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

# The number of samples of a small profile that were stored.
stored_samples <- function(con, schema = NULL) {
  sums <- DBI::dbGetQuery(con, paste(
    "SELECT sum(sample_count) AS n FROM", quoted(con, schema, "samples"), "WHERE sample_type = 'samples'"
  ))
  as.numeric(sums$n)
}

# Storing fails after rows have been written.
with_failure <- function(code) {
  insert <- insert_rows
  replace_function("insert_rows", function(con, schema, table, rows) {
    if (table == "profile_sums") abort_invalid("fails", "samples", call = NULL)
    insert(con, schema, table, rows)
  }, environment())
  expect_error(code, class = "profile_error_invalid")
}

test_that("what is stored in a transaction of the user is stored if that is committed", {
  for_each_database(function(con, schema, connect) {
    x <- small_profile()
    n <- nrow(x$samples)
    with_user_table(con, schema)
    other <- connect_again(connect)
    for (way in names(begin_as)) {
      begin_as[[way]](con)
      insert_as_user(con, schema)
      for (i in 1:2) store_profiles(x, con, schema = schema)
      inside <- stored_samples(con, schema)
      expect_true(is_transacting(con))
      commit_as[[way]](con)
      expect_false(is_transacting(con))
      expect_identical(stored_samples(other, schema), inside)
    }
    expect_equal(stored_samples(con, schema), 4 * n)
    expect_equal(count_rows(con, schema, "of_user"), 2)
    DBI::dbWithTransaction(con, store_profiles(x, con, schema = schema))
    expect_equal(stored_samples(other, schema), 5 * n)
  })
})

test_that("what is stored in a transaction of the user is undone if that is rolled back", {
  for_each_database(function(con, schema, connect) {
    x <- small_profile()
    before <- list_tables(con, schema)
    for (way in names(begin_as)) {
      begin_as[[way]](con)
      store_profiles(x, con, schema = schema)
      rollback_as[[way]](con)
      expect_false(is_transacting(con))
      expect_equal(list_tables(con, schema), before)
    }
    store_profiles(x, con, schema = schema)
    counts <- stored_tables_of(con, schema)
    begin_as$driver(con)
    store_profiles(x, con, schema = schema)
    rollback_as$driver(con)
    expect_equal(stored_tables_of(con, schema), counts)
  })
})

test_that("an error leaves a transaction of the user open, and no part of a profile", {
  for_each_database(function(con, schema, connect) {
    x <- small_profile()
    n <- nrow(x$samples)
    with_user_table(con, schema)
    for (way in names(begin_as)) {
      begin_as[[way]](con)
      insert_as_user(con, schema)
      with_failure(store_profiles(x, con, schema = schema))
      expect_equal(list_tables(con, schema), "of_user")
      store_profiles(x, con, schema = schema)
      with_failure(store_profiles(x, con, schema = schema))
      insert_as_user(con, schema)
      expect_equal(stored_samples(con, schema), n)
      expect_true(is_transacting(con))
      rollback_as[[way]](con)
    }
    expect_equal(count_rows(con, schema, "of_user"), 0)
    begin_as$sql(con)
    insert_as_user(con, schema)
    store_profiles(x, con, schema = schema)
    with_failure(store_profiles(x, con, schema = schema))
    commit_as$sql(con)
    expect_equal(stored_samples(con, schema), n)
    expect_equal(count_rows(con, schema, "of_user"), 1)
  })
})

# Runs code in another process, in which storing ends after the rows of a table were written.
interrupting <- function(connect, schema, table, how, ...) {
  run_r(c(
    "library(profile)", sprintf("con <- %s", connect),
    sprintf("x <- read_rprof(%s)", deparse(normalizePath(rprof_path("basic_all.out")))),
    sprintf("store <- function() store_profiles(x, con, schema = %s)", deparse(schema)),
    "insert <- getFromNamespace('insert_rows', 'profile')",
    "interrupted <- function(con, schema, table, rows) {", "  insert(con, schema, table, rows)",
    sprintf("  if (table == '%s') %s", table, how), "}",
    "assignInNamespace('insert_rows', interrupted, 'profile')", ...
  ))
}

test_that("Ctrl-C leaves a transaction of the user open, and no part of a profile", {
  skip_on_cran()
  skip_on_os("windows")
  for_each_database(function(con, schema, connect) {
    with_user_table(con, schema)
    result <- interrupting(
      connect, schema, "profile_sums", "rlang::interrupt()", "DBI::dbBegin(con)",
      sprintf("DBI::dbExecute(con, %s)", deparse(paste("INSERT INTO", quoted(con, schema, "of_user"), "VALUES (1)"))),
      "for (i in 1:2) cat(tryCatch(store(), interrupt = function(e) 'interrupted'), '\\n')",
      "assignInNamespace('insert_rows', insert, 'profile')", "store()", "DBI::dbCommit(con)"
    )
    expect_ran(result)
    expect_equal(sum(grepl("interrupted", result$output)), 2)
    expect_equal(count_rows(con, schema, "of_user"), 1)
    x <- read_rprof(rprof_path("basic_all.out"))
    expect_equal(stored_samples(con, schema), nrow(x$samples))
  })
})

test_that("nothing is left by a process that was killed, and the next one continues", {
  skip_on_cran()
  skip_on_os("windows")
  for_each_database(function(con, schema, connect) {
    for (table in c("profile_layout", "profile_stacks", "profile_sums")) {
      interrupting(connect, schema, table, "tools::pskill(Sys.getpid(), tools::SIGKILL)", "store()")
      expect_equal(list_tables(con, schema), character())
    }
    store_profiles(small_profile(), con, schema = schema)
    counts <- stored_tables_of(con, schema)
    interrupting(connect, schema, "profile_sums", "tools::pskill(Sys.getpid(), tools::SIGKILL)", "store()")
    expect_equal(stored_tables_of(con, schema), counts)
  })
})

test_that("the timeout is restored afterwards", {
  skip_if_not_installed("RSQLite")
  con <- DBI::dbConnect(RSQLite::SQLite())
  withr::defer(DBI::dbDisconnect(con))
  timeout <- function() DBI::dbGetQuery(con, "PRAGMA busy_timeout")[[1]]
  for (milliseconds in c(0, 1500, 3000000)) {
    DBI::dbGetQuery(con, paste("PRAGMA busy_timeout =", format(milliseconds, scientific = FALSE)))
    store_profiles(small_profile(), con)
    roll_up_profiles(con, Sys.time())
    prune_profiles(con, Sys.Date() - 10)
    expect_equal(timeout(), milliseconds)
  }
  skip_if_not_installed("dbplyr")
  tbl_profile(con)
  expect_equal(timeout(), 3000000)
  DBI::dbGetQuery(con, "PRAGMA busy_timeout = 0")
  tbl_profile(con)
  expect_equal(timeout(), 60000)
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
    store_profiles(x, con, schema = schema)
    watch <- connect_again(connect)
    DBI::dbBegin(con)
    store_profiles(x, con, schema = schema)
    other <- run_r(wait = FALSE, c(
      "library(profile)",
      sprintf("con <- %s", connect),
      "DBI::dbExecute(con, 'SET default_transaction_isolation = \\'serializable\\'')",
      "cat('backend', DBI::dbGetQuery(con, 'SELECT pg_backend_pid() AS pid')$pid, fill = TRUE)",
      sprintf("x <- read_rprof(%s)", deparse(normalizePath(rprof_path("basic_all.out")))),
      sprintf("store_profiles(x, con, schema = %s)", deparse(schema)),
      "cat('done\\n')"
    ))
    backend <- sub("backend ", "", expect_printed(other, "^backend [0-9]+$"))
    query <- paste("SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid =", backend)
    expect_event(function() as.numeric(DBI::dbGetQuery(watch, query)$n) > 0, other)
    DBI::dbCommit(con)
    expect_printed(other, "^done")
    expect_equal(length(unique(DBI::dbReadTable(con, table_id(schema, "samples"))$run)), 2)
  })
})

# Pruning must not remove the stacks that a writer has found.
test_that("a writer and pruning wait for each other", {
  skip_on_cran()
  skip_on_os("windows")
  skip_if_not_installed("dbplyr")
  for_each_database(function(con, schema, connect) {
    x <- small_profile()
    store_profiles(x, con, schema = schema)
    move_to(con, "2026-01-01", schema)
    go <- tempfile()
    other <- run_r(wait = FALSE, c(
      "library(profile)", sprintf("con <- %s", connect), "cat('ready\\n')",
      sprintf("while (!file.exists(%s)) Sys.sleep(0.005)", deparse(go)),
      sprintf("prune_profiles(con, as.POSIXct('2026-02-01'), schema = %s)", deparse(schema)), "cat('pruned\\n')"
    ))
    expect_printed(other, "^ready")
    insert <- insert_rows
    local({
      # The other process prunes when the stacks were found, and before their samples are written.
      replace_function("insert_rows", function(con, schema, table, rows) {
        if (table == "profile_sums") {
          file.create(go)
          Sys.sleep(0.2)
        }
        insert(con, schema, table, rows)
      }, environment())
      store_profiles(x, con, schema = schema)
    })
    expect_printed(other, "^pruned")
    y <- read_profile(tbl_profile(con, schema = schema))
    expect_identical(sum(y$sample_values$value[y$sample_values$type == "samples"]), as.numeric(nrow(x$samples)))
    samples <- DBI::dbReadTable(con, table_id(schema, "profile_sums"))
    stacks <- DBI::dbReadTable(con, table_id(schema, "profile_stacks"))
    expect_true(all(samples$stack_key %in% stacks$stack_key))
  })
})

test_that("four writers and two readers at once lose nothing and never fail", {
  # test-store-storm.R has more rounds.
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
        store_profiles(x, con)
        NULL
      },
      error = identity
    )
    if (begin) try(DBI::dbRollback(con), silent = TRUE)
    expect_false(is_transacting(con))
    # Nothing of the profile remains, and the connection can be used.
    DBI::dbGetQuery(con, "PRAGMA max_page_count = 100000")
    if (!is.null(error)) {
      store_profiles(x, con)
      expect_equal(stored_samples(con), nrow(x$samples))
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
    store_profiles(x, con, schema = schema)
    n <- stored_samples(con, schema)
    DBI::dbExecute(con, paste("CREATE UNIQUE INDEX of_user ON", quoted(con, schema, "profile_sums"), "(origin_key, stack_key)"))
    error <- tryCatch(store_profiles(x, con, schema = schema), error = identity)
    expect_match(reasons_of(error), "unique", ignore.case = TRUE, all = FALSE)
    expect_no_match(reasons_of(error), "savepoint")
    expect_equal(stored_samples(con, schema), n)
    other <- eval(parse(text = connect))
    replace_function("insert_rows", function(...) {
      DBI::dbDisconnect(other)
      stop("The connection was lost.")
    }, environment())
    error <- tryCatch(store_profiles(x, other, schema = schema), error = identity)
    expect_identical(reasons_of(error), "The connection was lost.")
    expect_equal(stored_samples(con, schema), n)
  })
})
