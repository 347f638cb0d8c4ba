# Evaluated by R at the start of a process in place of the user's profile (R/shell-record.R, hook.R): does what R
# does without that. `settings`: user_profile, the value of R_PROFILE_USER before, NA if it was not set.

# Processes that this one starts have the user's profile.
if (is.na(settings$user_profile)) {
  Sys.unsetenv("R_PROFILE_USER")
} else {
  Sys.setenv(R_PROFILE_USER = settings$user_profile)
}
# As R does without a hook.
own <- c(if (is.na(settings$user_profile)) c(".Rprofile", "~/.Rprofile") else settings$user_profile)
own <- own[file.exists(own)]
if (length(own) > 0) {
  sys.source(own[[1]], globalenv())
}
