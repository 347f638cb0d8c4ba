# Unpacks the results of entry points, in one place, so that all errors of the core are raised in the same way.
#
# Each entry point (R/extendr-wrappers.R) returns list(value, error, NULL), in which value or error is NULL. An error
# has a class, a message, and the fields of the condition. An entry point returns NULL instead of a list if R was about
# to jump, after an error in R or Ctrl-C: src/guard.c delays the jump until the Rust code has returned, and it continues
# here.

# `hint` returns a hint for users that is added to an error.
rust <- function(outcome, call, hint = error_hint) {
  if (is.null(outcome)) {
    .External(profile_resume)
    # Without a jump to continue, there was not enough memory to create the error.
    abort_memory("Not enough memory.", call)
  }
  error <- outcome[[2]]
  if (is.null(error)) {
    return(outcome[[1]])
  }
  fields <- error[setdiff(names(error), c("class", "message"))]
  if (error$class == "profile_error_memory") {
    rlang::inject(abort_memory(error$message, call, !!!fields))
  }
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
    abort_unsupported(c(
      "The package was installed again while profiles that the old version has read are in use.",
      i = "Restart R."
    ), NULL)
  }
  start_agent_by_environment()
}
