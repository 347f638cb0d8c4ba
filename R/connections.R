# Reads all bytes of a connection, or raises an error that states the reason.

# The description of a connection, for messages.
connection_name <- function(con, call) {
  about <- tryCatch(summary(con), error = function(error) {
    abort_connection("the connection", conditionMessage(error), call)
  })
  shown_text(about$description)
}

# R reports the reason in a warning, while the error is often just "cannot open the connection". If there is
# only a warning, as for damaged compressed data, R has returned fewer bytes than expected.
read_connection <- function(con, call) {
  name <- paste0("`", connection_name(con, call), "`")
  reasons <- character()
  bytes <- withCallingHandlers(
    tryCatch(read_bytes(con), error = function(error) {
      abort_connection(name, c(reasons, conditionMessage(error))[[1]], call)
    }),
    warning = function(warning) {
      reasons <<- c(reasons, conditionMessage(warning))
      rlang::cnd_muffle(warning)
    }
  )
  if (length(reasons) > 0) {
    abort_connection(name, reasons[[1]], call)
  }
  bytes
}

abort_connection <- function(name, reason, call) {
  reason <- sub("[.]$", "", shown_text(reason))
  abort_profile(paste0("Cannot read ", name, ": ", reason, "."), "profile_error_open", call = call)
}

read_bytes <- function(con) {
  if (isOpen(con)) {
    return(remaining_bytes(con))
  }
  # close() destroys a connection, so the user's connection is not opened. Instead, another one with the same
  # description is opened, if that is possible.
  about <- summary(con)
  con <- switch(
    sub("-.*", "", about$class),
    file = file(about$description, "rb"),
    gzfile = gzfile(about$description, "rb"),
    bzfile = bzfile(about$description, "rb"),
    xzfile = xzfile(about$description, "rb"),
    pipe = pipe(about$description, "rb"),
    url = url(about$description, "rb"),
    {
      open(con, "rb")
      con
    }
  )
  done <- FALSE
  on.exit(if (!done) close(con))
  bytes <- remaining_bytes(con)
  done <- TRUE
  # The exit status of a command, which may have failed after it produced output.
  status <- close(con)
  if (!is.null(status) && status != 0) {
    stop("the command failed")
  }
  bytes
}

remaining_bytes <- function(con) {
  if (summary(con)$text == "text") {
    # An open connection in text mode returns lines only.
    lines <- readLines(con, warn = FALSE)
    return(charToRaw(paste0(lines, rep("\n", length(lines)), collapse = "")))
  }
  chunks <- list()
  repeat {
    chunk <- readBin(con, "raw", 2^24)
    if (length(chunk) == 0) {
      return(as.raw(unlist(chunks)))
    }
    chunks[[length(chunks) + 1]] <- chunk
  }
}
