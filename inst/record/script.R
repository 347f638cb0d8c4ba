# Evaluated by R before a script that `profile record` runs (R/shell-record.R), where this package is not loaded: starts
# R's profiler, and stops it when the process ends. Whatever happens here, the script runs as without it. What the user
# should know is written to the file `notes` of the recording's folder. places.R and lines.R are evaluated before.
#
# `settings`: interval, clock, event (NULL for R's default), native, exact (whether each vector is recorded), children,
# peak (whether snapshots are taken when the memory is highest), folder (of the recording), library (of this package),
# script, document (whether the script only renders one), collector (the process that reads what was recorded), positions
# (whether those in byte code are recorded), megabytes and titled (for these).

settings$pid <- Sys.getpid()
# The file of R's profiler.
file <- file.path(settings$folder, "Rprof.out")

note <- function(...) {
  cat(..., "\n", sep = "", file = file.path(settings$folder, "notes"), append = TRUE)
}

# ---- Places of code ----------------------------------------------------------------

options(keep.source = TRUE)
if (!isTRUE(settings$document)) read_script()

# ---- Labels of chunks --------------------------------------------------------------

# The script may have another library.
profile_namespace <- function() loadNamespace("profile", lib.loc = c(settings$library, .libPaths()))

# Samples of this function are left out, see R/shell-record.R.
.label_units <- function() {
  tryCatch(
    profile_namespace()$label_chunks(.mark_place, name_file),
    error = function(error) note("There are no labels for knitr: ", conditionMessage(error))
  )
}
if (isNamespaceLoaded("knitr")) {
  # By the user's profile.
  .label_units()
} else {
  setHook(packageEvent("knitr", "onLoad"), function(...) .label_units())
}

# ---- Recording ---------------------------------------------------------------------

started_at <- NULL
cpu_at_start <- NA
end_helper <- NULL
# Whether each vector is recorded.
has_hook <- FALSE

# R has one profiler: if the script starts or stops it, this recording ends, and R closes its file. So the descriptor of
# the file, where Linux has a link to it, shows whether that has happened. On other systems this is not known.
descriptor <- character()

descriptor_of_recording <- function() {
  all <- list.files("/proc/self/fd", full.names = TRUE)
  utils::head(all[Sys.readlink(all) == normalizePath(file)], 1)
}

# The link still begins with the path if the script has deleted the file.
is_open <- function() {
  length(descriptor) == 0 || isTRUE(startsWith(Sys.readlink(descriptor), names(descriptor)))
}

# The CPU time in nanoseconds of R's thread, the first one of the process; NA on systems other than Linux.
cpu_time <- function() {
  tryCatch(scan("/proc/self/schedstat", n = 1, quiet = TRUE), error = function(error) NA, warning = function(warning) NA)
}

start <- function() {
  if (settings$native || settings$children || isTRUE(settings$peak) || isTRUE(settings$exact)) {
    profile <- profile_namespace()
  }
  if (settings$children || isTRUE(settings$peak)) {
    end_helper <<- profile$start_helper(
      list(any = settings$children, pids = integer()),
      profile$helper_settings(
        settings$interval, settings$clock, settings$native && settings$children, settings$children,
        if (settings$children && isTRUE(settings$exact)) 0
      ),
      NULL, settings$folder, settings$collector, isTRUE(settings$peak)
    )
  }
  if (isTRUE(settings$exact)) {
    record <- function() has_hook <<- profile$start_allocations(0, settings$folder, NULL, settings$children)
    withCallingHandlers(record(), message = function(message) {
      note(gsub("\n[^ ]+ ", " ", trimws(conditionMessage(message))))
      tryInvokeRestart("muffleMessage")
    })
  }
  arguments <- list(file, interval = settings$interval)
  arguments$event <- settings$event
  if (settings$native) {
    do.call(profile$start_profiler, arguments)
  } else {
    recorded <- list(memory.profiling = TRUE, gc.profiling = TRUE, line.profiling = TRUE, numfiles = 1000L)
    is_on <- FALSE
    record <- function() {
      do.call(utils::Rprof, c(arguments, recorded))
      is_on <<- TRUE
    }
    if (isTRUE(settings$positions)) {
      tryCatch({
        prepare_positions()
        begin_positions(record)
      }, error = miss_positions)
    }
    if (!is_on) record()
  }
  started_at <<- Sys.time()
  cpu_at_start <<- cpu_time()
  link <- descriptor_of_recording()
  descriptor <<- structure(link, names = Sys.readlink(link))
  start_places()
}

.end_of_recording <- function() {
  if (Sys.getpid() != settings$pid) {
    return(end_of_child())
  }
  cpu_at_end <- cpu_time()
  if (has_hook) {
    tryCatch(profile_namespace()$stop_allocations(NULL), error = function(error) {
      note("Allocations are incomplete: ", conditionMessage(error))
    })
  }
  is_whole <- is_open()
  # R has written its last samples when it closed the file.
  ended_at <- if (is_whole) Sys.time() else max(started_at, file.mtime(file), na.rm = TRUE)
  seconds <- as.numeric(difftime(ended_at, started_at, units = "secs"))
  if (!is_whole) {
    note("The script has used R's profiler itself, so the recording ends after ", signif(seconds, 3), " s.")
  }
  if (!is.null(end_helper)) {
    counts <- c(end_helper(), list(started = started_at, ended = ended_at))
    saveRDS(counts, file.path(settings$folder, "counts.rds"))
  }
  if (settings$native) {
    tryCatch(save_native(if (!is_whole) seconds), error = function(error) note(conditionMessage(error)))
  } else if (is_whole && has_positions) {
    tryCatch(save_with_lines(), error = miss_positions)
  } else if (is_whole) {
    utils::Rprof(NULL)
  }
  if (length(exprs) > 0 && !"profile" %in% getTaskCallbackNames()) {
    note("The script has removed the task callback `profile`: what it has run and defined afterwards has no lines.")
    .unmark_place("script")
  }
  if (isTRUE(settings$document) && is.null(no_places) && is.null(places$document) && isNamespaceLoaded("knitr")) {
    note(
      "The document has no lines: none of its chunks has run with the hook `engine` of `knitr::opts_hooks` that the ",
      "recording sets."
    )
  }
  if (is_whole && settings$clock == "cpu" && !is.na(cpu_at_end - cpu_at_start)) {
    writeLines(sprintf("%.0f", cpu_at_end - cpu_at_start), file.path(settings$folder, "cpu"))
  }
  writeLines(loadedNamespaces(), file.path(settings$folder, "packages"))
}

# `ended_after`: the length of a recording that the script has ended, in seconds. Native code then says that the signal
# of the profiler was taken over.
save_native <- function(ended_after) {
  # R's file remains as it is, since the places of samples are known in it.
  stopped <- withCallingHandlers(profile_namespace()$stop_run(NULL, write = FALSE), warning = function(warning) {
    text <- gsub("\n[^ ]+ ", " ", conditionMessage(warning))
    if (is.null(ended_after) || !grepl("SIGPROF", text, fixed = TRUE)) note(text)
    tryInvokeRestart("muffleWarning")
  })
  x <- stopped$profile
  if (!is.null(ended_after)) x$sources$.duration_nanos <- ended_after * 1e9
  saveRDS(x, file.path(settings$folder, "profile.rds"))
}

# A child that was created by fork() has no timer, but before R 4.3 it has a copy of the samples that R has not written
# to the file yet, and writes them when it quits. `copies` has the first and the last byte of each copy.
end_of_child <- function() {
  if (!settings$native && getRversion() < "4.3" && is_open()) {
    before <- file.size(file)
    utils::Rprof(NULL)
    # cat() would round large numbers.
    range <- sprintf("%.0f %.0f\n", before + 1, file.size(file))
    cat(range, file = file.path(settings$folder, "copies"), append = TRUE)
  }
}

tryCatch(start(), error = function(error) {
  note("The script is not recorded: ", conditionMessage(error))
  if (!is.null(end_helper)) {
    end_helper()
    unlink(file.path(settings$folder, "children"), recursive = TRUE)
  }
})
if (!is.null(started_at)) {
  # The base environment lives as long as the process, so this is called when it ends, also by quit() or an error.
  reg.finalizer(baseenv(), function(e) suspendInterrupts(.end_of_recording()), onexit = TRUE)
}
