# Every class of error and warning that this package raises.
#
# An error has class "profile_error" and one of
#   profile_error_open         a file cannot be opened or read
#   profile_error_write        a file cannot be written; the old one is whole
#   profile_error_parse        the content is not of the format (path, line, byte)
#   profile_error_invalid      a table breaks a rule (table, column, row, rule)
#   profile_error_lossy        the target cannot hold what the profile says
#   profile_error_unsupported  a valid wish that is not fulfilled here
#   profile_error_budget       a file would take more memory than its size lets expect
#   profile_error_memory       an allocation failed
#   profile_error_pprof        the pprof tool did not start, or its port is taken
#   profile_error_send         a server did not take a profile (endpoint, status, attempts)
#   profile_error_argument     an argument of a function here is not as documented
#   profile_error_internal     a bug of ours
#
# A warning has class "profile_warning" and, where it tells more, one of
#   profile_warning_incomplete something that was recorded is missing
#   profile_warning_repaired   the input was odd, nothing is missing
#   profile_warning_lossy      the file says less than the profile
#   profile_warning_rejected   a server took some profiles only (rejected, answer)
#   profile_warning_answer     what a server answered should be read (answer)
#   profile_warning_unsent     there was nothing to send
#
# A message has class "profile_message" and
#   profile_message_retry      something is tried again after a while

# Texts of files, names and paths are in messages.
abort_profile <- function(message, class, ..., call) {
  message[] <- printable(message)
  rlang::abort(message, class = c(class, "profile_error"), ..., call = call)
}

warn_profile <- function(message, class, ..., call) {
  message[] <- printable(message)
  rlang::warn(message, class = c(class, "profile_warning"), ..., call = call)
}

inform_profile <- function(message, class) {
  message[] <- printable(message)
  rlang::inform(message, class = c(class, "profile_message"))
}

abort_argument <- function(message, call) {
  abort_profile(message, "profile_error_argument", call = call)
}

# As the core says it of what it checks.
abort_invalid <- function(rule, table, column = NULL, row = NULL, call) {
  abort_profile(
    paste0(place_of(table, column, row), ": ", rule, "."), "profile_error_invalid",
    table = table, column = column, row = row, rule = rule, call = call
  )
}

# A valid profile has what the target cannot hold.
abort_unstorable <- function(rule, table, column = NULL, parent = NULL, call) {
  abort_profile(
    paste0(place_of(table, column), ": ", rule, "."), "profile_error_unsupported",
    table = table, column = column, rule = rule, parent = parent, call = call
  )
}

place_of <- function(table, column = NULL, row = NULL) {
  paste0(
    "Table `", table, "`",
    if (!is.null(column)) paste0(", column `", column, "`"),
    if (!is.null(row)) paste0(", row ", row)
  )
}

# One warning for a file, whatever was odd and however often: `counts` has a row
# for each kind of problem.
warn_problems <- function(counts, name, call) {
  if (nrow(counts) == 0) {
    return()
  }
  lost <- any(counts$lost)
  times <- format(counts$count, big.mark = ",", trim = TRUE, scientific = FALSE)
  bullets <- paste0(
    ifelse(counts$count == 1, "", paste0(times, " times: ")),
    counts$description
  )
  warn_profile(
    c(
      if (lost) {
        paste0(name, " is not complete.")
      } else {
        paste0(name, " is odd; nothing is missing.")
      },
      rlang::set_names(bullets, ifelse(counts$lost, "x", "i")),
      if (lost) c("*" = "`profile_problems()` has the places.")
    ),
    if (lost) "profile_warning_incomplete" else "profile_warning_repaired",
    problems = counts,
    call = call
  )
}
