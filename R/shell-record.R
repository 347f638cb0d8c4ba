# `profile record`: runs a script in a new R process, and records it there with R's profiler.
#
# The script is run by Rscript itself, so its arguments, its output, its input and its exit status are those of Rscript.
# A hook, the user profile of the new process, starts the profiler before the script. When the process has ended, for
# any reason, this process reads what was recorded.

shell_record <- function(options, values) {
  interval <- shell_number(options, "interval", 0.01)
  clock <- shell_clock(options)
  native <- isTRUE(options$native)
  if (!is.null(options$pid)) {
    if (length(values) > 0) {
      abort_usage("`--pid` records a running process, so it cannot be used with a script.")
    }
    x <- profile_process(
      shell_pids(options$pid), shell_number(options, "seconds", 10), interval = interval, clock = clock, native = native
    )
    shell_finish(x, options, paste0("process-", options$pid))
    return(0L)
  }
  if (length(values) == 0) {
    abort_usage("Expected a script, or `--pid`. See `profile record --help`.")
  }
  script <- values[[1]]
  if (!file.exists(script)) {
    abort_usage(paste0("There is no file `", script, "`."))
  }
  if (!is.null(options$output)) {
    # An unknown format is reported before the script runs.
    writer_of(options$output, rlang::current_env())
  }
  folder <- tempfile("record-")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  event <- rprof_event(if (clock == "wall") "elapsed" else "cpu", "`--clock wall`", rlang::current_env())
  started <- Sys.time()
  status <- run_recorded(script, values[-1], folder, list(interval = interval, event = event, native = native))
  x <- recorded_script(script, folder, started, paste(c(basename(script), values[-1]), collapse = " "), status > 128)
  if (is.null(x)) {
    shell_message("profile: The script ended before anything was recorded.")
    return(if (status == 0L) 1L else status)
  }
  shell_finish(x, options, sub("[.][rR]$", "", basename(script)))
  status
}

# Runs the script and returns its exit status.
run_recorded <- function(script, args, folder, settings) {
  settings$folder <- folder
  settings$library <- dirname(getNamespaceInfo("profile", "path"))
  settings$script <- script
  settings$user_profile <- Sys.getenv("R_PROFILE_USER", NA)
  hook <- file.path(folder, "hook.R")
  # The hook has no other environment than base, since this package is not loaded there.
  code <- c("settings <-", deparse(settings), "hook <-", deparse(script_hook), "hook(settings)")
  writeLines(c("local({", code, "})"), hook)
  variables <- c(R_PROFILE_USER = Sys.getenv("R_PROFILE_USER", NA))
  Sys.setenv(R_PROFILE_USER = hook)
  on.exit(if (is.na(variables)) Sys.unsetenv("R_PROFILE_USER") else Sys.setenv(R_PROFILE_USER = variables))
  command <- paste(shQuote(c(file.path(R.home("bin"), "Rscript"), script, args)), collapse = " ")
  # The shell's status of a process that a signal has ended is 128 and the number of the signal.
  system(if (.Platform$OS.type == "windows") command else paste0(command, "; exit $?"))
}

# Evaluated at the start of the recorded process, in which this package is not loaded.
script_hook <- function(settings) {
  # Processes that the script starts have no hook.
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
  options(keep.source = TRUE)

  # R parses one expression of the script after the other, each as a file without a name whose lines begin at 1. When an
  # expression has been evaluated, its file gets a name with its first line in the script, so that functions that it
  # has defined are recorded with it.
  exprs <- tryCatch(parse(settings$script, keep.source = TRUE), error = function(e) NULL)
  firsts <- vapply(attr(exprs, "srcref"), function(srcref) srcref[[1]], 0L)
  file_of <- function(code) {
    found <- NULL
    visit <- function(code) {
      is_definition <- is.call(code) && identical(code[[1]], quote(`function`)) && length(code) > 3
      srcrefs <- list(attr(code, "srcref"), if (is_definition) code[[4]])
      for (srcref in srcrefs) {
        if (is.list(srcref)) srcref <- srcref[[1]]
        if (is.null(found) && inherits(srcref, "srcref")) found <<- attr(srcref, "srcfile")
      }
      if (is.null(found) && is.call(code)) {
        for (part in as.list(code)) if (is.null(found) && !missing(part)) visit(part)
      }
    }
    visit(code)
    found
  }
  done <- 0L
  .name_lines <- function(expr) {
    done <<- done + 1L
    file <- file_of(expr)
    if (is.environment(file) && identical(file$filename, "") && done <= length(firsts)) {
      assign("filename", paste0(settings$script, "?line=", firsts[[done]]), file)
    }
    TRUE
  }
  addTaskCallback(function(expr, value, ok, visible) .name_lines(expr), name = "profile")

  file <- file.path(settings$folder, "Rprof.out")
  arguments <- list(file, interval = settings$interval)
  # NULL for R's default.
  arguments$event <- settings$event
  if (settings$native) {
    # The script may have another library.
    loadNamespace("profile", lib.loc = c(settings$library, .libPaths()))
    do.call(getExportedValue("profile", "start_profiler"), arguments)
  } else {
    recorded <- list(memory.profiling = TRUE, gc.profiling = TRUE, line.profiling = TRUE, numfiles = 1000L)
    do.call(utils::Rprof, c(arguments, recorded))
  }
  .end_of_recording <- function() {
    if (settings$native) {
      saveRDS(getExportedValue("profile", "stop_profiler")(), file.path(settings$folder, "profile.rds"))
    } else {
      utils::Rprof(NULL)
    }
    writeLines(loadedNamespaces(), file.path(settings$folder, "packages"))
  }
  # Also if the script calls quit() or fails.
  reg.finalizer(environment(), function(e) .end_of_recording(), onexit = TRUE)
  # The callback keeps this environment.
  invisible()
}

# The profile of a script that has ended; NULL if there is none.
recorded_script <- function(script, folder, started, title, was_killed) {
  call <- rlang::current_env()
  file <- file.path(folder, "Rprof.out")
  saved <- file.path(folder, "profile.rds")
  if (file.exists(saved)) {
    x <- readRDS(saved)
  } else if (file.exists(file) && file.size(file) > 0) {
    # If the process was killed, the last sample is incomplete.
    x <- withCallingHandlers(
      read_format(file, "rprof", "2.0", NA_character_, call),
      profile_warning_incomplete = function(warning) if (was_killed) rlang::cnd_muffle(warning)
    )
  } else {
    return(NULL)
  }
  packages <- file.path(folder, "packages")
  if (file.exists(packages)) {
    # Functions are found in packages that are loaded.
    for (package in readLines(packages)) suppressWarnings(suppressMessages(requireNamespace(package, quietly = TRUE)))
  }
  x$sources$source_uri <- NA_character_
  x$sources$source_timestamp <- as.numeric(started)
  x$.comments <- tibble::tibble(source_id = x$sources$source_id, comment = title)
  # The start of R, and the hook.
  x <- filter_by(x, list(ignore = "^([.]First[.]sys|[.]name_lines|[.]end_of_recording)$"), call)
  x <- packages_added(with_lines_of_script(x, script), call)
  with_source_text(x, as.numeric(Sys.time()), call, outside = TRUE)
}

# Moves lines of single expressions to their place in the script.
with_lines_of_script <- function(x, script) {
  functions <- x$functions
  of_script <- startsWith(functions$filename, paste0(script, "?line="))
  first <- as.integer(sub(".*[?]line=", "", functions$filename[of_script]))
  row <- match(functions$function_id[of_script], functions$function_id)
  by <- integer(nrow(functions))
  by[row] <- first - 1L
  functions$filename[of_script] <- script
  moved <- functions$start_line > 0
  functions$start_line[moved] <- functions$start_line[moved] + by[moved]
  x$functions <- functions
  locations <- x$locations
  shift <- by[match(locations$function_id, functions$function_id)]
  has_line <- which(locations$line > 0 & !is.na(shift))
  locations$line[has_line] <- locations$line[has_line] + shift[has_line]
  x$locations <- locations
  compact_profile(x)
}

# Writes the profile, and prints a summary to the standard error.
shell_finish <- function(x, options, name) {
  output <- options$output %||% paste0(name, "-profile.html")
  if (!isTRUE(options$quiet)) {
    shell_message(paste(format(describe_profile(x, n = 4)), collapse = "\n"))
  }
  write_profile(x, output)
  shell_written(output)
}
