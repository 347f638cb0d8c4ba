# Every class of error and warning that this package raises.
#
# An error has class "profile_error" and one of
#   profile_error_open         a file cannot be opened or read
#   profile_error_write        a file cannot be written; the old one is unchanged
#   profile_error_parse        the content is not of the format (path, line, byte, looks_like, remedy)
#   profile_error_invalid      a table breaks a rule (table, column, row, rule)
#   profile_error_lossy        the target format, or `version` of the tables, cannot store the profile
#   profile_error_unsupported  a valid request that is not supported here
#   profile_error_budget       a file would take more memory than its size suggests (path, needed)
#   profile_error_memory       an allocation failed
#   profile_error_process      a process, running or in a core file, cannot be inspected
#   profile_error_pprof        the pprof tool did not start, or its port is in use
#   profile_error_send         a server did not accept a profile (endpoint, status, attempts)
#   profile_error_argument     an argument is not as documented
#   profile_error_regression   a version of a program takes more than another (comparison)
#   profile_error_internal     a bug of this package
#
# A warning has class "profile_warning" and, if it is specific, one of
#   profile_warning_incomplete recorded data were lost (of processes: unread)
#   profile_warning_repaired   the input had irregularities, no data was lost
#   profile_warning_lossy      some information could not be stored in a file or message
#   profile_warning_rejected   a server rejected some profiles (rejected, answer)
#   profile_warning_answer     a server answered with a message, or unexpectedly (answer)
#   profile_warning_labels     the labels of a handler cannot be used, or a router has no endpoints
#   profile_warning_unsent     there was nothing to send or to store
#   profile_warning_environment  an environment variable is not used
#   profile_warning_agent      the agent that environment variables request cannot be started
#   profile_warning_inconclusive  the runs of two versions do not show which takes more (comparison)
#
# A message has class "profile_message" and
#   profile_message_source_files    source files were read for a profile of somebody else, or left out (read, left_out)
#   profile_message_retry      a request is repeated after a delay
#   profile_message_forward    a server has refused a forwarded profile, or said something about it
#   profile_message_children   other processes that have worked for the recorded one are not in the profile
#   profile_message_short      recorded runs have few samples
#   profile_message_runs       which version of a package is being installed, or how many runs are recorded
#   profile_message_agent      the same as profile_warning_agent, if warnings are errors
#   profile_message_recorded   an expression failed while it was recorded

# Messages contain names, paths and text from files, whose control characters are escaped. A text that is too long for a
# message is shortened in the middle, so that the start and the end of a sentence remain.
message_text <- function(message) {
  message[] <- printable(message, 2000, "middle")
  message
}

abort_profile <- function(message, class, ..., call) {
  rlang::abort(message_text(message), class = c(class, "profile_error"), ..., call = call)
}

warn_profile <- function(message, class, ..., call) {
  rlang::warn(message_text(message), class = c(class, "profile_warning"), ..., call = call)
}

inform_profile <- function(message, class, ...) {
  rlang::inform(message_text(message), class = c(class, "profile_message"), ...)
}

# Evaluates a call of another exported function. Its errors name the user's call.
with_call <- function(code, call) {
  force(call)
  named <- function(error) {
    error$call <- call
    rlang::cnd_signal(error)
  }
  tryCatch(code, profile_error = named, rlib_error_dots_nonempty = named)
}

# An error about memory is made without `rlang::abort()`, which reads the file DESCRIPTION of rlang: without memory, that
# fails with an error about a connection instead.
abort_memory <- function(message, call, ...) {
  class <- c("profile_error_memory", "profile_error")
  rlang::cnd_signal(rlang::error_cnd(class, message = message_text(message), call = call, ...))
}

abort_argument <- function(message, call) {
  abort_profile(message, "profile_error_argument", call = call)
}

abort_unsupported <- function(message, call) {
  abort_profile(message, "profile_error_unsupported", call = call)
}

# For rules that are checked in R. The message has the same form as messages of the core.
abort_invalid <- function(rule, table, column = NULL, row = NULL, class = "profile_error_invalid", ..., call) {
  place <- paste0(
    "Table `", table, "`",
    if (!is.null(column)) paste0(", column `", column, "`"), if (!is.null(row)) paste0(", row ", row)
  )
  # As in "Table `samples` is missing."
  separator <- if (grepl("^(is|has) ", rule)) " " else ": "
  abort_profile(
    paste0(place, separator, rule, "."), class,
    table = table, column = column, row = row, rule = rule, ..., call = call
  )
}

# `file`: see file_path().
abort_no_folder <- function(file, class, call, ...) {
  verb <- if (class == "profile_error_write") "write to" else "read"
  message <- paste0("Cannot ", verb, " `", file[[2]], "`: there is no such folder.")
  abort_profile(c(message, ...), class, path = file[[2]], call = call)
}

# Warns once about all irregularities of a file: `counts` has a row for each kind of problem.
warn_problems <- function(counts, name, call) {
  if (nrow(counts) == 0) {
    return()
  }
  lost <- any(counts$lost)
  message <- c(
    paste0(name, if (lost) " is incomplete." else " has irregularities; no data was lost."),
    rlang::set_names(format_problem_counts(counts), ifelse(counts$lost, "x", "i")),
    if (lost) c("*" = "See `profile_problems()` for details.")
  )
  class <- if (lost) "profile_warning_incomplete" else "profile_warning_repaired"
  warn_profile(message, class, problems = counts, call = call)
}

format_problem_counts <- function(counts) {
  times <- format(counts$count, big.mark = ",", trim = TRUE, scientific = FALSE)
  paste0(ifelse(counts$count == 1, "", paste0(times, " times: ")), counts$description, recycle0 = TRUE)
}

# Warns once about everything that a file or message could not store: `losses` has a row for each kind of loss.
warn_losses <- function(losses, target, call) {
  if (nrow(losses) == 0) {
    return()
  }
  bullets <- paste0(losses$description, ": ", format_count(losses$count), ".")
  warn_profile(
    c(paste0("Some information could not be stored in ", target, "."), rlang::set_names(bullets, "x")),
    "profile_warning_lossy", losses = rlang::set_names(losses$count, losses$loss), call = call
  )
}

# What users can do about an error of the core, which suggests remedies for files that cannot be read.
error_hint <- function(error) {
  if (!is.null(error$remedy)) {
    error$remedy
  } else if (!is.null(error$looks_like)) {
    formats <- data_model()$formats
    reader <- formats$reader[match(error$looks_like, formats$format)]
    if (!is.na(reader)) paste0("Use `", reader, "()`.")
  } else if (!is.null(error$needed)) {
    enough <- sub("+", "", formatC(10 * error$needed, format = "e", digits = 0), fixed = TRUE)
    paste0("If you trust the file, allow more bytes, such as `options(profile.max_memory = ", enough, ")`.")
  } else if (error$class %in% c("profile_error_open", "profile_error_write") && is_text(error$path)) {
    file_hint(error$path)
  }
}

# What users can do about an error of a reader: a profile that version 1.0 cannot represent may be read as version 2.0.
reader_hint <- function(error) {
  if (identical(error$version, "1.0")) {
    "Use `version = \"2.0\"`."
  } else {
    folder <- if (error$class == "profile_error_open" && is_text(error$path)) folder_hint(error$path)
    folder %||% error_hint(error)
  }
}
