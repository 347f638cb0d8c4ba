# Evaluated by R at the start of a process in place of the user's profile, if it was started during a recording with
# children that needs its help (R/children.R). R evaluates this where only the package base is attached, and nothing of it
# is to be left there. If the recording has ended, there is nothing to do but what R does without this file.

local({
  take <- function(variable) {
    value <- Sys.getenv(variable, NA)
    Sys.unsetenv(variable)
    value
  }
  folder <- dirname(Sys.getenv("R_PROFILE_USER"))
  recording <- take("R_PROFILE_RECORDING_JOIN")
  hook <- new.env(parent = baseenv())
  # sys.source() would restore the options that these set.
  evaluate <- function(file) eval(parse(file.path(folder, file), keep.source = FALSE), hook)
  hook$settings <- list(user_profile = take("R_PROFILE_RECORDING_USER"))
  evaluate("user-profile.R")
  hook$settings <- tryCatch(readRDS(recording), error = identity, warning = identity)
  if (!inherits(hook$settings, "condition")) {
    evaluate("worker.R")
  }
  invisible()
})
