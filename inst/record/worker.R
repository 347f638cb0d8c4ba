# Evaluated by R in a process that works for one that is recorded with its children (R/children.R). If the helper that
# records them may not look into others: permits it to do so, or lets this process record itself. If vectors are recorded as
# well: records its own. Whatever happens here, the process goes on as without it; why it does not record itself is
# written to a file.
#
# `settings`: helper (its process id), is_refused (whether its permission would not suffice), library (of this package);
# folder (of the recording), interval, clock to record itself; and threshold to record vectors, or NULL.

tryCatch(
  {
    profile <- loadNamespace("profile", lib.loc = c(settings$library, .libPaths()))
    if (settings$is_refused) profile$record_itself(settings) else profile$permit_helper(settings$helper)
    if (!is.null(settings$threshold)) profile$record_own_allocations(settings)
  },
  error = function(error) {
    # Otherwise the helper knows the reason.
    if (settings$is_refused) {
      own <- file.path(settings$folder, paste0("own-", Sys.getpid()))
      dir.create(own, showWarnings = FALSE, mode = "0700")
      new <- file.path(own, "about.rds.new")
      try(saveRDS(list(why = conditionMessage(error)), new), silent = TRUE)
      file.rename(new, file.path(own, "about.rds"))
    }
  }
)
