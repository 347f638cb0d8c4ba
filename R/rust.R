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
  library <- getLoadedDLLs()[[pkgname]][["path"]]
  installed <- as.numeric(file.mtime(library))
  # While columns are in use, the native code that computes them stays in memory, and is what R finds.
  if (!identical(.External(profile_load, installed), installed)) {
    abort_profile(c(
      "The package was installed again while profiles that the old version has read are in use.",
      i = "Restart R."
    ), "profile_error_unsupported", call = NULL)
  }
  start_agent_by_environment()
}
