# Runs code in a transaction, or in a savepoint if a transaction is open already.

savepoint <- "profile_savepoint"

# The connections whose transactions this package has begun, since not all engines can be asked.
transactions <- new.env(parent = emptyenv())
transactions$begun <- list()

# With `reading = TRUE` the code sees a consistent state of the database while others write. Ctrl-C is not an error, so
# this function uses `on.exit()` and not error handlers.
in_transaction <- function(con, code, reading = FALSE, call) {
  timeout <- wait_for_others(con)
  # Fails if the connection was lost, which has another error.
  on.exit(try(set_busy_timeout(con, timeout), silent = TRUE))
  unit <- part_of_transaction(con, call) %||% transaction_of(con, reading, call)
  done <- FALSE
  # If the engine has ended a transaction (for example because its disk was full), there is nothing to roll back, and
  # the first error should be reported. If none could begin, there may be one of the user, which must stay.
  on.exit(if (!done) try(unit$undo(), silent = TRUE), add = TRUE, after = FALSE)
  tryCatch(unit$begin(), error = function(e) {
    done <<- TRUE
    rlang::cnd_signal(e)
  })
  begun <- transactions$begun
  on.exit(transactions$begun <- begun, add = TRUE)
  transactions$begun <- c(begun, list(con))
  value <- code
  unit$end()
  done <- TRUE
  value
}

# NULL outside of a transaction.
part_of_transaction <- function(con, call) {
  if (dialect(con)$savepoint) {
    if (is_transacting(con)) savepoint_of(con)
  } else if (any(vapply(transactions$begun, identical, TRUE, con))) {
    # An error undoes the whole transaction.
    list(begin = function() NULL, end = function() NULL, undo = function() NULL)
  } else if (is_transacting(con)) {
    abort_transacting(call)
  }
}

abort_transacting <- function(call, ...) {
  abort_profile(
    c(
      "Cannot begin a transaction.",
      i = "If the connection is in a transaction, commit it first.",
      i = "Profiles cannot be stored in databases without transactions."
    ),
    "profile_error_unsupported", ..., call = call
  )
}

transaction_of <- function(con, reading, call) {
  force(con)
  force(call)
  kind <- if (reading) "read" else "write"
  statements <- dialect(con)$begin[[kind]]
  if (is.null(statements)) {
    level <- dialect(con)$isolation[[kind]]
    return(list(
      begin = function() {
        tryCatch(DBI::dbBegin(con), error = function(e) abort_transacting(call, parent = e))
        if (!is.null(level)) set_isolation(con, level, call)
      },
      end = function() DBI::dbCommit(con),
      undo = function() DBI::dbRollback(con)
    ))
  }
  execute <- function(sql) for (statement in sql) DBI::dbExecute(con, statement)
  list(
    begin = function() execute(statements),
    end = function() execute("COMMIT"),
    undo = function() execute("ROLLBACK")
  )
}

# PostgreSQL's driver of ODBC puts a savepoint before each statement, unless it is connected with this option.
set_isolation <- function(con, level, call) {
  tryCatch(DBI::dbExecute(con, paste("SET TRANSACTION ISOLATION LEVEL", level)), error = function(e) {
    try(DBI::dbRollback(con), silent = TRUE)
    abort_profile(
      c("Cannot set the isolation level of a transaction.", i = "With odbc, connect with `Protocol = \"7.4-0\"`."),
      "profile_error_unsupported", parent = e, call = call
    )
  })
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

# Runs code that creates tables, on engines that commit then. Other writers wait.
creating <- function(con, schema, code, call) {
  if (is_transacting(con)) {
    abort_transacting(call)
  }
  # Names of locks have up to 64 characters, as those of databases.
  database <- if (is.null(schema)) "COALESCE(DATABASE(), '')" else quoted_text(con, schema)
  lock <- paste0("CONCAT('profile ', MD5(", database, "))")
  DBI::dbGetQuery(con, paste0("SELECT GET_LOCK(", lock, ", 3600)"))
  # If the connection was lost, the server has released it.
  on.exit(try(DBI::dbGetQuery(con, paste0("SELECT RELEASE_LOCK(", lock, ")")), silent = TRUE))
  code
}

# Calls a driver that undoes its own work if a statement fails, as RSQLite does with a savepoint. If the engine has already
# ended the transaction, for example because its disk was full, this fails as well, with an error that would hide the
# reason.
with_first_error <- function(code) {
  first <- NULL
  tryCatch(
    withCallingHandlers(code, error = function(e) first <<- first %||% e),
    error = function(e) rlang::cnd_signal(first)
  )
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
