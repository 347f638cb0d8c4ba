# Unpacks the results of the core. No other file does so.
#
# Each entry point (R/extendr-wrappers.R) returns list(value, error, NULL), in which value or error is NULL.
# An error has a class, a message, and the fields of the condition. If R has to continue a jump, which was
# held up until Rust was done (src/guard.c), an entry point returns NULL instead of a list. R jumps after an
# error of its own, and after Ctrl-C.

# `hint` returns a hint for users that is added to an error.
rust <- function(outcome, call, hint = error_hint) {
  if (is.null(outcome)) {
    .External(profile_resume)
    # There was no jump to continue, so there was not enough memory for the error.
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
  library <- getLoadedDLLs()[[pkgname]][["path"]]
  installed <- as.numeric(file.mtime(library))
  # While columns are in use, the native code that computes them stays in memory. R finds this code instead of the
  # new one.
  if (!identical(.External(profile_load, installed), installed)) {
    abort_profile(c(
      "The package was installed again while profiles that the old version has read are in use.",
      i = "Restart R."
    ), "profile_error_unsupported", call = NULL)
  }
  start_agent_by_environment()
}
