# The joint profiler: R's own, with the native stack beside each of its samples.
#
# `Rprof()` does the timing and writes R's side to `path`; the sampler's handler
# stands before R's and records (src/rust/sampler). After the run the core puts both
# together (src/rust/core/src/joint), and the file at `path` is written anew.

#' Profile R and native code together
#'
#' @description
#' `start_profiler()` starts [Rprof()], and beside it a sampler that records the stack of
#' native code at the same ticks. `stop_profiler()` stops both and puts them together: the
#' time under `.Call()` is then that of C, C++, Fortran or Rust functions, with files and
#' lines, also where they call R functions that call native code again.
#'
#' `joint_profile()` profiles an expression; if that ends in an error, there is no profile.
#' `joint_pprof()` does so too and shows the result in the browser, see [serve_pprof()].
#'
#' They work on Linux on x86-64 with glibc 2.35 or later (such as Debian 12 or Ubuntu 22.04), and
#' R 4.2 to 4.6.
#'
#' @details
#' ## What is recorded
#'
#' A sample is what [Rprof()] records, with native frames between R's. R functions stand for
#' the frames of R's own evaluator, which are left out (but not where native code has R
#' evaluate a promise), and so is the C library where R calls it. Where native code calls R's
#' functions in C, such as `Rf_allocVector()`, these are shown. Items `.Call`, `.External`, `.C` and the like, which R records when code is not
#' byte-compiled, are replaced by what they called.
#'
#' In the profile the column `.frame_type` of `locations` is `"r"` or `"native"`. Native
#' frames have an `.address`, and a row in `.mappings` for their library.
#'
#' ## Names of native functions
#'
#' Functions, files and lines come from debug information, with functions that the compiler
#' inlined: compile with `-g`, which is R's default, and do not strip. Separate files with
#' debug information (Debian's `-dbgsym` packages) are used. Without, names are those that a
#' library exports, and `library+0x1234`, with the address where the function begins, for code
#' that has none. The file of a library must be the one that was loaded.
#'
#' In `functions` the column `name` is as programmers write it, `system_name` as the linker
#' has it. C++ names have no arguments.
#'
#' ## Ticks
#'
#' By default time is that of the CPU, for all threads of the process. With threads that
#' compute beside R's there are more ticks, and each one is a sample of R's thread.
#' `event = "elapsed"` counts real time (from R 4.4 on). No CPU time passes while R waits, and
#' a tick comes once in an `interval`: code that runs for less may have no sample.
#'
#' R functions have lines if their code was parsed with source references: set
#' `options(keep.source = TRUE)` before, which is not the default under Rscript. [read_rprof()] says more on
#' this.
#'
#' In the profile `source_timestamp` in `sources` is when the profiler was started, and
#' `.duration_nanos` the time until it was stopped. The file at `path` cannot hold them.
#'
#' Processes that are forked while the profiler runs, as by `parallel::mclapply()`, are not
#' profiled. One that calls [Rprof()] or quits R in the usual way can, up to R 4.2, write what R
#' had not written yet to its parent's file once more: then no sample can be matched.
#'
#' While the profiler runs, the file at `path` holds what [Rprof()] has recorded (up to R 4.2 the
#' last lines are missing). If R is killed, it has the R side of the profile.
#'
#' If the profiled code calls [Rprof()] itself, or another library takes the signal
#' `SIGPROF`, recording ends there. `stop_profiler()` then warns and gives what there is.
#'
#' ## Memory
#'
#' A sample takes some 0.8 KB until the profiler is stopped, more if stacks are deep. There is
#' room for 512 MB, some 600,000 samples; the option `profile.recording_mb` sets another limit.
#' Samples beyond it have R's stack alone, and are counted.
#'
#' ## What is certain
#'
#' R's stack and the native one are only put together if both have the same calls of R.
#' Samples that do not fit keep R's stack alone. They are counted in a warning of class
#' `profile_warning_incomplete`, and [profile_problems()] lists them.
#'
#' A native stack is followed by the unwind tables that compilers write. Some code has none: the
#' kernels of OpenBLAS, which are written in assembler, and code that is made at run time, as by
#' Java. Of such a sample the innermost function is shown, below R's; what called it is not.
#'
#' @param path The file for `Rprof()`'s format; a device or a pipe will not do. It can be read by [utils::summaryRprof()] and by
#'   [read_rprof()], and has native functions beside R's.
#' @param ... For `joint_profile()`, arguments of `start_profiler()`; for `joint_pprof()`,
#'   of [serve_pprof()]. For `start_profiler()` it must be empty.
#' @param interval Seconds between two samples.
#' @param memory.profiling,gc.profiling,line.profiling,event,numfiles,bufsize As in
#'   [Rprof()]. `event` is for R >= 4.4.
#' @param expr An expression.
#'
#' @return `start_profiler()`: `path`, invisibly.
#'
#'   `stop_profiler()`: the profile, invisibly; an object of class `profile_data`, see
#'   [profile_data]. `joint_profile()`: such a profile.
#'
#'   `joint_pprof()`: the handle of the server, see [serve_pprof()].
#'
#' @section Errors:
#' `profile_error_unsupported` on other systems than Linux on x86-64 with glibc 2.35 or later,
#' with an R whose calls cannot be told apart as in those known (R 4.2 to 4.6), or when another
#' profiler is running or another library handles `SIGPROF`; `profile_error_write` when the
#' file cannot be written: when it is no regular file, or the disk is full; `profile_error_memory` when there is none for the recording;
#' `profile_error_argument` for arguments, and for `stop_profiler()` when nothing was started.
#'
#' @seealso [write_pprof()], [filter_profile()]; `vignette("joint", package = "profile")`
#' @export
#' @examples
#' supported <- Sys.info()[["sysname"]] == "Linux" && R.version$arch == "x86_64"
#' if (supported && interactive()) {
#'   x <- joint_profile(for (i in 1:20) solve(matrix(runif(250000), 500)))
#'   x
#' }
start_profiler <- function(
    path = "Rprof.out",
    ...,
    interval = 0.02,
    memory.profiling = FALSE,
    gc.profiling = TRUE,
    line.profiling = TRUE,
    event = "cpu",
    numfiles = 100L,
    bufsize = 10000L) {
  call <- rlang::current_env()
  rlang::check_dots_empty()
  file <- file_path(path, "profile_error_write", call)
  check_flag(memory.profiling, "memory.profiling", call)
  check_flag(gc.profiling, "gc.profiling", call)
  check_flag(line.profiling, "line.profiling", call)
  # Of more than a second R 4.2 cannot make a timer, and ends.
  if (!is.numeric(interval) || length(interval) != 1 || !isTRUE(interval >= 1e-6 && interval < 1)) {
    abort_argument("`interval` must be a number of seconds, at least 1e-6 and less than 1.", call)
  }
  check_count(numfiles, "numfiles", call)
  check_count(bufsize, "bufsize", call)
  if (!is_text(event) || !event %in% c("cpu", "elapsed")) {
    abort_argument("`event` must be \"cpu\" or \"elapsed\".", call)
  }
  run <- list(path = absolute_path(file, call), shown = file[[2]], uri = file[[2]], memory = memory.profiling)
  options <- list(
    interval = interval,
    # Each tick then has a line, also where R has no call to print.
    memory.profiling = TRUE,
    gc.profiling = gc.profiling,
    line.profiling = line.profiling,
    numfiles = as.integer(numfiles),
    bufsize = as.integer(bufsize),
    event = event
  )
  start_run(run, options, call)
  invisible(path)
}

#' @rdname start_profiler
#' @export
stop_profiler <- function() {
  call <- rlang::current_env()
  path <- joint$run$path
  x <- stop_run(call)
  withCallingHandlers(
    tryCatch(write_rprof(x, path), profile_error_write = function(error) {
      abort_profile(
        c(
          "The profile was recorded, but cannot be written.",
          x = conditionMessage(error),
          i = "The field `profile` of this error has it: see `rlang::last_error()`."
        ),
        "profile_error_write",
        path = path,
        profile = x,
        call = call
      )
    }),
    # A sample without a stack has no line in R's own files either.
    profile_warning_lossy = function(warning) {
      if (identical(names(warning$losses), "empty_samples")) rlang::cnd_muffle(warning)
    }
  )
  invisible(x)
}

#' @rdname start_profiler
#' @export
joint_profile <- function(expr, ...) {
  call <- rlang::current_env()
  path <- tempfile("joint-", fileext = ".out")
  # Where an error or Ctrl-C ends the expression, nobody gets the profile.
  on.exit({
    if (joint_state() != "off" && identical(basename(joint$run$path), basename(path))) {
      drop_run()
    }
    unlink(path)
  })
  start_profiler(path, ...)
  joint$run$uri <- NA_character_
  # `force()` would be a frame of its own.
  expr
  stop_run(call)
}

#' @rdname start_profiler
#' @export
joint_pprof <- function(expr, ...) {
  # Before the expression, which may take long.
  locate_pprof(rlang::current_env())
  serve_pprof(joint_profile(expr), ...)
}

# ---- A run -------------------------------------------------------------------------

# `run` is about the run that is on, if joint_state() says that one is: the path of its
# file, the URI that its source shall have, and whether memory was asked for.
joint <- new.env(parent = emptyenv())

start_run <- function(run, options, call) {
  megabytes <- getOption("profile.recording_mb", 512L)
  check_count(megabytes, "getOption(\"profile.recording_mb\")", call)
  version <- getRversion()
  settings <- list(
    path = c(run$path, run$shown),
    megabytes = as.integer(megabytes),
    # This function's, its callers', and that of the wrapper of the entry point.
    closures = sys.nframe() + 1L,
    node_stack = version >= "4.4.0",
    sizes_tell = version >= "4.3.0"
  )
  # Before `Rprof()`, which empties the file. Within `rust()` it would be called from
  # further in.
  checked <- rust_joint_check(settings)
  rust(checked, call)
  check_no_run(call)
  has_event <- "event" %in% names(formals(utils::Rprof))
  if (!has_event) {
    if (options$event != "cpu") {
      abort_profile("`event` needs R 4.4 or later.", "profile_error_unsupported", call = call)
    }
    options$event <- NULL
  }

  started <- FALSE
  on.exit({
    if (!started) {
      utils::Rprof(NULL)
    }
    rust_joint_block(FALSE)
  })
  # The first tick comes when both are ready.
  rust_joint_block(TRUE)
  tryCatch(
    rlang::inject(utils::Rprof(run$path, !!!options)),
    error = function(error) {
      abort_profile(
        c(paste0("`Rprof()` cannot start with the file `", run$shown, "`."), x = shown_text(conditionMessage(error))),
        "profile_error_write",
        path = run$shown,
        call = call
      )
    }
  )
  joint$run <- run
  start <- rust_joint_start(settings)
  rust(start, call)
  started <- TRUE
  stop_at_quit()
}

stop_run <- function(call) {
  check_run(call)
  run <- joint$run
  on.exit(rust_joint_block(FALSE))
  rust_joint_block(TRUE)
  state <- joint_state()
  warnings <- stop_rprof(state)
  result <- rust(rust_joint_stop(c(run$path, run$shown), "R's file", run$uri, run$memory), call)
  for (warning in warnings) {
    rlang::cnd_signal(warning)
  }
  if (state != "on") {
    warn_profile(
      c(
        "The profile is not complete.",
        x = "The profiler's signal was taken while it ran, by `Rprof()` or another profiler.",
        i = "There is what was recorded until then."
      ),
      "profile_warning_incomplete",
      call = call
    )
  }
  warn_problems(result$counts, "The profile", call)
  new_profile_data(result$tables, "2.0")
}

# Ends a run without a profile.
drop_run <- function() {
  on.exit(rust_joint_block(FALSE))
  rust_joint_block(TRUE)
  stop_rprof(joint_state())
  rust(rust_joint_drop(), NULL)
}

# Has R close its file, unless that is another one by now; gives R's warnings, which must
# not keep the recording from being stopped as well.
stop_rprof <- function(state) {
  warnings <- list()
  if (state != "restarted") {
    withCallingHandlers(utils::Rprof(NULL), warning = function(warning) {
      warnings[[length(warnings) + 1]] <<- warning
      rlang::cnd_muffle(warning)
    })
  }
  warnings
}

# "off", "on", "replaced" by another handler of the signal, "restarted" as R's profiler alone,
# or "elsewhere": in the process that this one is a fork of.
joint_state <- function() {
  rust(rust_joint_state(), NULL)
}

check_no_run <- function(call) {
  state <- joint_state()
  if (state == "elsewhere") {
    abort_elsewhere(call)
  }
  if (state != "off") {
    abort_argument("The profiler is running already; `stop_profiler()` stops it.", call)
  }
}

check_run <- function(call) {
  state <- joint_state()
  if (state == "elsewhere") {
    abort_elsewhere(call)
  }
  if (state == "off") {
    abort_argument("The profiler is not running; `start_profiler()` starts it.", call)
  }
}

abort_elsewhere <- function(call) {
  abort_argument("The profiler runs in another process, of which this one is a fork.", call)
}

# The folder may be left while the profiler runs.
absolute_path <- function(file, call) {
  folder <- dirname(file[[1]])
  if (!dir.exists(folder)) {
    abort_profile(
      paste0("Cannot write `", file[[2]], "`: there is no such folder."),
      "profile_error_write",
      path = file[[2]],
      call = call
    )
  }
  in_folder(normalizePath(folder), basename(file[[1]]))
}

# ---- The end of R, and of the package ---------------------------------------------

# Whoever quits R without `stop_profiler()` still has the file.
stop_at_quit <- function() {
  if (is.null(joint$stops_at_quit)) {
    joint$stops_at_quit <- TRUE
    reg.finalizer(joint, function(joint) stop_before_end(), onexit = TRUE)
  }
}

stop_before_end <- function() {
  # Without a run the library may be gone already.
  if (!is.null(joint$run) && joint_state() %in% c("on", "replaced", "restarted")) {
    stop_profiler()
  }
}

.onUnload <- function(libpath) {
  try(stop_before_end())
  joint$run <- NULL
  library.dynam.unload("profile", libpath)
}
