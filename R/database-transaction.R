# Runs code in a transaction, or in a savepoint if a transaction is open already.

savepoint <- "profile_savepoint"

# With `reading = TRUE` the code sees a consistent state of the database while others write. Ctrl-C is not an error, so
# this function uses `on.exit()` and not error handlers.
in_transaction <- function(con, code, reading = FALSE, call) {
  timeout <- wait_for_others(con)
  on.exit(set_busy_timeout(con, timeout))
  unit <- if (is_transacting(con)) savepoint_of(con) else transaction_of(con, reading, call)
  done <- FALSE
  # If a transaction did not begin, or the engine has ended it (for example because its disk was full), there
  # is nothing to roll back, and the first error should be reported.
  on.exit(if (!done) try(unit$undo(), silent = TRUE), add = TRUE, after = FALSE)
  unit$begin()
  value <- code
  unit$end()
  done <- TRUE
  value
}

transaction_of <- function(con, reading, call) {
  force(con)
  force(reading)
  force(call)
  begin <- if (is_sqlite(con)) {
    # A transaction that reads before it writes cannot wait for another writer.
    function() DBI::dbExecute(con, if (reading) "BEGIN" else "BEGIN IMMEDIATE")
  } else if (is_postgres(con)) {
    # A writer that has waited must see what was written in the meantime.
    level <- if (reading) "REPEATABLE READ, READ ONLY" else "READ COMMITTED"
    function() {
      DBI::dbBegin(con)
      DBI::dbExecute(con, paste("SET TRANSACTION ISOLATION LEVEL", level))
    }
  } else {
    function() {
      tryCatch(DBI::dbBegin(con), error = function(e) {
        abort_profile(c(
          "Cannot begin a transaction.",
          i = "A connection that is in a transaction can be used with RSQLite and RPostgres only."
        ), "profile_error_unsupported", parent = e, call = call)
      })
    }
  }
  list(
    begin = begin,
    end = function() DBI::dbCommit(con),
    undo = function() DBI::dbRollback(con)
  )
}

savepoint_of <- function(con) {
  force(con)
  execute <- function(...) DBI::dbExecute(con, paste(..., savepoint))
  release <- function() execute("RELEASE SAVEPOINT")
  list(
    begin = function() execute("SAVEPOINT"),
    end = release,
    undo = function() {
      execute("ROLLBACK TO SAVEPOINT")
      release()
    }
  )
}

# DBI cannot report this, and drivers know only transactions that DBI has begun.
is_transacting <- function(con) {
  if (is_sqlite(con)) {
    # BEGIN does not lock anything yet; it fails only inside a transaction.
    begun <- tryCatch(DBI::dbExecute(con, "BEGIN"), error = function(e) NULL)
    if (!is.null(begun)) {
      DBI::dbExecute(con, "ROLLBACK")
    }
    return(is.null(begun))
  }
  if (is_postgres(con)) {
    # A local setting lasts until the end of the transaction, which may be this statement. Trying a SAVEPOINT
    # instead would leave an error in the log of the server.
    DBI::dbGetQuery(con, "SELECT set_config('profile.transacting', 'yes', true)")
    set <- DBI::dbGetQuery(con, "SELECT current_setting('profile.transacting', true)")[[1]]
    return(identical(set, "yes"))
  }
  FALSE
}

# Sets a timeout in SQLite, which otherwise does not wait. Returns the previous timeout.
wait_for_others <- function(con) {
  if (!is_sqlite(con)) {
    return(NULL)
  }
  before <- DBI::dbGetQuery(con, "PRAGMA busy_timeout")[[1]]
  set_busy_timeout(con, max(before, 60000L))
  before
}

set_busy_timeout <- function(con, milliseconds) {
  if (!is.null(milliseconds)) {
    DBI::dbGetQuery(con, paste("PRAGMA busy_timeout =", format(milliseconds, scientific = FALSE)))
  }
}

is_sqlite <- function(con) {
  inherits(con, "SQLiteConnection")
}

is_postgres <- function(con) {
  inherits(con, "PqConnection")
}
