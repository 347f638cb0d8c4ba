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
  join <- take("R_PROFILE_RECORDING_JOIN")
  hook <- new.env(parent = baseenv())
  hook$settings <- list(recording = "", user_profile = take("R_PROFILE_RECORDING_USER"))
  if (file.exists(join)) {
    hook$settings <- c(hook$settings["user_profile"], readRDS(join))
  }
  # sys.source() would restore the options that these set.
  for (file in c("user-profile.R", "worker.R")) {
    eval(parse(file.path(folder, file), keep.source = FALSE), hook)
  }
  invisible()
})
