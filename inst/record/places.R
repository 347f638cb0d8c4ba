# Logs which line of a recorded script, or of a document, runs. R evaluates this file before script.R, which defines what it
# uses: `settings`, `note()` and `file`, the file of R's profiler.

# ---- Lines of the script -----------------------------------------------------------
#
# R parses one expression of the script after the other, each as a file without a name whose lines begin at 1. When an
# expression has been evaluated, its file gets a name with its first line in the script, so that functions that it has
# defined are recorded with it. Until then, lines of a file without a name are those of the expression that runs.

exprs <- NULL
firsts <- lasts <- integer()

# Finds the lines of the script's expressions, and gets to know when each has been evaluated.
read_script <- function() {
  found <- suppressWarnings(parsed())
  if (inherits(found, "error")) {
    note("The script's own code has no lines: ", strsplit(conditionMessage(found), "\n")[[1]][[1]])
  }
  if (!is.expression(found) || length(found) == 0) {
    return()
  }
  exprs <<- found
  firsts <<- vapply(attr(found, "srcref"), `[[`, 0L, 1L)
  lasts <<- vapply(attr(found, "srcref"), `[[`, 0L, 3L)
  callback <- function(expr, value, ok, visible) {
    .after_expression(expr)
    TRUE
  }
  addTaskCallback(callback, name = "profile")
}

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

file_of <- function(code) {
  found <- NULL
  visit <- function(code) {
    is_definition <- is.call(code) && identical(code[[1]], quote(`function`)) && length(code) > 3
    srcrefs <- list(attr(code, "srcref"), if (is_definition) code[[4]])
    for (srcref in srcrefs) {
      if (is.list(srcref)) srcref <- srcref[[1]]
      if (is.null(found) && inherits(srcref, "srcref")) found <<- attr(srcref, "srcfile")
    }
    if (is.null(found) && (is.call(code) || is.expression(code))) {
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

# Names the file of source references in code, if it has the name `former`.
name_file <- function(code, former, name) {
  srcfile <- file_of(code)
  if (is.environment(srcfile) && identical(srcfile$filename, former)) assign("filename", name, srcfile)
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
      names <- paste0(c("profile", "places"), .Platform$dynlib.ext)
      link <- file.path(settings$folder, names[[2]])
      file.symlink(file.path(settings$library, "profile", "libs", .Platform$r_arch, names[[1]]), link)
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

log_place <- function(kind, size, first, last, name) {
  row <- sprintf("%s %.0f %d %d %s\n", kind, size, first, last, name)
  cat(row, file = file.path(settings$folder, "places"), append = TRUE)
  marks <<- marks + 1L
  if (isTRUE(settings$exact)) profile_namespace()$rust_allocations_mark(marks)
}

# The number of rows of the log, with which vectors are marked that are allocated afterwards.
marks <- 0L

# The place that the last row of each kind has.
places <- list()

# Returns the place before.
.mark_place <- function(kind, first, last = first, name = "") {
  before <- places[[kind]]
  if (is.null(no_places) && Sys.getpid() == settings$pid) {
    # Whatever happens here, the script goes on.
    tryCatch({
      flush_profiler()
      size <- file.size(file)
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
  is_logged <- !is.null(wrong) && !is.na(wrong$first) && Sys.getpid() == settings$pid
  if (is_logged) log_place(kind, wrong$size, 0L, 0L, wrong$name)
}

# R would remove a callback that is interrupted or fails, and go on with the script.
.after_expression <- function(expr) suspendInterrupts(tryCatch(note_expression(expr), error = function(error) NULL))

done <- 0L
note_expression <- function(expr) {
  at <- done + 1L
  while (at <= length(exprs) && !is_same(list(expr), list(exprs[[at]]))) at <- at + 1L
  # An expression that is not evaluated to its end, or that the script reads as its input, ends without a callback.
  if (at != done + 1L) .unmark_place("script")
  if (at <= length(exprs)) {
    name_file(expr, "", paste0(settings$script, "?line=", firsts[[at]]))
    done <<- at
    if (at < length(exprs)) {
      .mark_place("script", firsts[[at + 1L]], lasts[[at + 1L]], settings$script)
    } else {
      .mark_place("script", NA_integer_)
    }
  }
}
