# The gate to the core: the only place that takes apart what it returns.
#
# Each entry point gives list(list(value, error)); one of the two is NULL. An
# error says its class, its message, and the fields of the condition.

rust <- function(outcome, call) {
  outcome <- outcome[[1]]
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
