# The gate to the core: the only place that takes apart what it returns.
#
# Each entry point (R/extendr-wrappers.R) returns list(value, error, NULL), where either is NULL.
# An error has a class, a message, and the fields of the condition. An entry point returns
# NULL alone where R has to continue a jump, for an error of its own or for Ctrl-C, which was
# held up until Rust was done (src/guard.c).

# `hint` adds to errors what the caller's user can do.
rust <- function(outcome, call, hint = error_hint) {
  if (is.null(outcome)) {
    .External(profile_resume)
    # There was no jump, so there was no memory for the error.
    abort_profile("Not enough memory.", "profile_error_memory", call = call)
  }
  error <- outcome[[2]]
  if (is.null(error)) {
    return(outcome[[1]])
  }
  fields <- error[setdiff(names(error), c("class", "message"))]
  rlang::inject(
    abort_profile(c(error$message, i = hint(error)), error$class, !!!fields, call = call)
  )
}

.onLoad <- function(libname, pkgname) {
  .External(profile_load)
}
