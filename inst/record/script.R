# Evaluated by R before a script that `profile record` runs (R/shell-record.R), where this package is not loaded: starts
# R's profiler, and stops it when the process ends. Whatever happens here, the script runs as without it. What the user
# should know is written to the file `notes` of the recording's folder.
#
# `settings`: interval, clock, event (NULL for R's default), native, children, folder (of the recording), library (of this
# package), script, document (whether the script only renders one), collector (the process that reads what was recorded).

settings$pid <- Sys.getpid()
# The file of R's profiler.
file <- file.path(settings$folder, "Rprof.out")

note <- function(...) {
  cat(..., "\n", sep = "", file = file.path(settings$folder, "notes"), append = TRUE)
}

# ---- Lines of the script -----------------------------------------------------------
#
# R parses one expression of the script after the other, each as a file without a name whose lines begin at 1. When an
# expression has been evaluated, its file gets a name with its first line in the script, so that functions that it has
# defined are recorded with it. Until then, lines of a file without a name are those of the expression that runs.

options(keep.source = TRUE)

# The expressions of the script; those before the first syntax error if there is one, since R evaluates these.
parsed <- function() {
  parse_first <- function(n) tryCatch(parse(settings$script, n = n, keep.source = TRUE), error = identity)
  exprs <- parse_first(-1L)
  if (!inherits(exprs, "error")) {
    return(exprs)
  }
  reason <- exprs
  good <- 0L
  bad <- 1L
  while (!inherits(exprs <- parse_first(bad), "error")) {
    good <- bad
    bad <- 2L * bad
  }
  while (bad - good > 1L) {
    n <- (good + bad) %/% 2L
    if (inherits(parse_first(n), "error")) bad <- n else good <- n
  }
  if (good > 0) parse_first(good) else reason
}

exprs <- if (!isTRUE(settings$document)) suppressWarnings(parsed())
if (inherits(exprs, "error")) {
  note("The script's own code has no lines: ", strsplit(conditionMessage(exprs), "\n")[[1]][[1]])
  exprs <- NULL
}
lines_of <- function(i) vapply(attr(exprs, "srcref"), function(srcref) srcref[[i]], 0L)
firsts <- lines_of(1L)
lasts <- lines_of(3L)

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

# A call as a list, whose only attributes are its names: parts of a list have its source references, too.
parts_of <- function(code) {
  parts <- as.list(code)
  attributes(parts) <- if (!is.null(names(parts))) list(names = names(parts))
  parts
}

# Whether two lists of code are equal without their source references.
is_same <- function(a, b) {
  if (identical(a, b)) {
    return(TRUE)
  }
  if (length(a) != length(b) || !identical(names(a), names(b))) {
    return(FALSE)
  }
  # The last element of a definition is its source reference.
  is_definition <- identical(a[1], list(quote(`function`)))
  for (i in seq_len(if (is_definition) 3L else length(a))) {
    if (!identical(a[i], b[i])) {
      is_code <- typeof(a[[i]]) %in% c("language", "pairlist") && typeof(a[[i]]) == typeof(b[[i]])
      if (!is_code || !is_same(parts_of(a[[i]]), parts_of(b[[i]]))) {
        return(FALSE)
      }
    }
  }
  TRUE
}

# ---- Places ------------------------------------------------------------------------
#
# Code that is in no function is in no sample. So a log has the size of the profiler's file at each time when other code
# of the script, or of a document, begins to run: lines after this size are samples of that code. A row has the kind of
# the place ("script" or "document"), the size, the first and the last line, and the file. Without lines, no code of this
# kind runs; lines 0 are unknown. A later row with the same size and kind replaces an earlier one.

# Why there is no log; NULL if there is one.
no_places <- NULL
flush_profiler <- function() NULL

start_places <- function() {
  if (.Platform$OS.type == "windows") {
    no_places <<- "on Windows, the size of a file to which R writes is not known"
  } else if (getRversion() < "4.3.0") {
    # R buffers what its profiler writes. Only the library of the package can flush that, under another name, as the
    # package is not loaded.
    loaded <- tryCatch({
      link <- file.path(settings$folder, paste0("places", .Platform$dynlib.ext))
      file.symlink(file.path(settings$library, "profile", "libs", .Platform$r_arch, paste0("profile", .Platform$dynlib.ext)), link)
      getNativeSymbolInfo("profile_flush_streams", dyn.load(link))$address
    }, error = identity)
    if (inherits(loaded, "error")) {
      no_places <<- conditionMessage(loaded)
    } else {
      flush_profiler <<- function() .Call(loaded)
    }
  }
  if (!is.null(no_places)) {
    note("Code outside of functions has no lines: ", no_places)
  } else if (length(firsts) > 0) {
    .mark_place("script", firsts[[1]], lasts[[1]], settings$script)
  }
}

.size_of_profile <- function() {
  flush_profiler()
  file.size(file)
}

log_place <- function(kind, size, first, last, name) {
  cat(sprintf("%s %.0f %d %d %s\n", kind, size, first, last, name), file = file.path(settings$folder, "places"), append = TRUE)
}

# The place that the last row of each kind has.
places <- list()

# Returns the place before.
.mark_place <- function(kind, first, last = first, name = "") {
  before <- places[[kind]]
  if (is.null(no_places) && Sys.getpid() == settings$pid) {
    # Whatever happens here, the script goes on.
    tryCatch({
      size <- .size_of_profile()
      if (!is.na(size)) {
        log_place(kind, size, first, last, name)
        places[[kind]] <<- list(kind = kind, first = first, last = last, name = name, size = size)
      }
    }, error = function(error) NULL)
  }
  before
}

# What has run since the last row is not what was expected.
.unmark_place <- function(kind) {
  wrong <- places[[kind]]
  if (!is.null(wrong) && !is.na(wrong$first)) log_place(kind, wrong$size, 0L, 0L, wrong$name)
}

done <- 0L
.after_expression <- function(expr) {
  if (Sys.getpid() == settings$pid) {
    at <- done + 1L
    while (at <= length(exprs) && !is_same(list(expr), list(exprs[[at]]))) at <- at + 1L
    # An expression that is not evaluated to its end, or that the script reads as its input, ends without a callback.
    if (at != done + 1L) .unmark_place("script")
    if (at <= length(exprs)) {
      srcfile <- file_of(expr)
      if (is.environment(srcfile) && identical(srcfile$filename, "")) {
        assign("filename", paste0(settings$script, "?line=", firsts[[at]]), srcfile)
      }
      done <<- at
      if (at < length(exprs)) {
        .mark_place("script", firsts[[at + 1L]], lasts[[at + 1L]], settings$script)
      } else {
        .mark_place("script", NA_integer_)
      }
    }
  }
  TRUE
}
# R would remove a callback that is interrupted, and go on with the script.
if (length(exprs) > 0) {
  addTaskCallback(function(expr, value, ok, visible) suspendInterrupts(.after_expression(expr)), name = "profile")
}

# ---- Labels of chunks, tests and targets -------------------------------------------

# The script may have another library.
profile_namespace <- function() loadNamespace("profile", lib.loc = c(settings$library, .libPaths()))

# Samples of this function are left out, see R/shell-record.R.
.label_units <- function(package) {
  tryCatch(
    if (package == "knitr") {
      profile_namespace()$label_chunks(.mark_place)
    } else {
      profile_namespace()[[paste0("label_", package)]]()
    },
    error = function(error) note("There are no labels for ", package, ": ", conditionMessage(error))
  )
}
for (package in c("knitr", "testthat", "targets")) {
  if (isNamespaceLoaded(package)) {
    # By the user's profile.
    .label_units(package)
  } else {
    setHook(packageEvent(package, "onLoad"), function(package, path) .label_units(package))
  }
}

# ---- Recording ---------------------------------------------------------------------

started_at <- NULL
end_helper <- NULL

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

start <- function() {
  if (settings$native || settings$children) {
    profile <- profile_namespace()
  }
  if (settings$children) {
    end_helper <<- profile$start_helper(
      list(any = TRUE, pids = integer()), profile$helper_settings(settings$interval, settings$clock, settings$native), NULL,
      settings$folder, settings$collector
    )
  }
  arguments <- list(file, interval = settings$interval)
  arguments$event <- settings$event
  if (settings$native) {
    do.call(profile$start_profiler, arguments)
  } else {
    recorded <- list(memory.profiling = TRUE, gc.profiling = TRUE, line.profiling = TRUE, numfiles = 1000L)
    do.call(utils::Rprof, c(arguments, recorded))
  }
  started_at <<- Sys.time()
  link <- descriptor_of_recording()
  descriptor <<- structure(link, names = Sys.readlink(link))
  start_places()
}

.end_of_recording <- function() {
  if (Sys.getpid() != settings$pid) {
    return(end_of_child())
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
  } else if (is_whole) {
    utils::Rprof(NULL)
  }
  if (length(exprs) > 0 && !"profile" %in% getTaskCallbackNames()) {
    note("The script has removed the task callback `profile`: what it has run and defined afterwards has no lines.")
    .unmark_place("script")
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
