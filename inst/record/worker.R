# Evaluated by R in a process that works for one that is recorded with its children (R/children.R), if the helper that
# records them may not look into others: permits it to do so, or lets this process record itself. Whatever happens here, the
# process goes on as without it; what is missing then is counted by the helper.
#
# `settings`: recording (the file that exists as long as the recording), helper (its process id), is_refused (whether its
# permission would not suffice), library (of this package), interval, clock.

if (file.exists(settings$recording)) {
  tryCatch(
    {
      profile <- loadNamespace("profile", lib.loc = c(settings$library, .libPaths()))
      if (settings$is_refused) profile$record_itself(settings) else profile$permit_helper(settings$helper)
    },
    error = function(error) NULL
  )
}
