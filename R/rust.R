# The gate to the core: the only place that takes apart what it returns.
#
# Each entry point gives list(result, bug). A result is list(value, error); one of
# the two is NULL. A bug is such a list too, for a panic, and NULL if there was
# none. An error says its class, its message, and the fields of the condition.

rust <- function(outcome, call) {
  outcome <- if (is.null(outcome[[2]])) outcome[[1]] else outcome[[2]]
  error <- outcome$error
  if (is.null(error)) {
    return(outcome$value)
  }
  fields <- error[setdiff(names(error), c("class", "message"))]
  fields <- fields[!vapply(fields, is.null, logical(1))]
  rlang::inject(
    abort_profile(error$message, error$class, !!!fields, call = call)
  )
}
