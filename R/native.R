# Records R and native code together: the native stack with each sample of R's profiler. `record_profile(native = TRUE)`
# and the functions of the package jointprof use this; jointprof's names and arguments are kept.
#
# `Rprof()` runs the timer and writes R's stacks to `path`. The signal handler of the sampler
# (src/rust/sampler) records the native stack and then calls R's handler. After the run the core combines
# both (src/rust/core/src/joint), and the file at `path` is rewritten.

#' Profile R and native code together
#'
#' @description `start_profiler()` starts [Rprof()] and a sampler that records the stack of native code at the same
#' times. `stop_profiler()` stops both and combines the results: the time inside `.Call()` is attributed to C, C++,
#' Fortran or Rust functions, with files and lines, even if native code calls R functions that call native code again.
#'
#' These functions have the names and arguments of the package jointprof. To record an expression, prefer
#' `record_profile(native = TRUE)`, which records as described here.
#'
#' These functions require `r live_platforms()` (such as Debian 10, RHEL 8 or Ubuntu 20.04), and R 4.2 to 4.6. On
#' aarch64, this package was tested under emulation only.
#'
#' @details
#' ## What is recorded
#'
#' A sample contains the stack that [Rprof()] records, with native frames between the frames of R. Two kinds of frames
#' are left out: R's evaluator, since R functions represent it (except if native code evaluates a promise), and the C
#' library if R calls it. Functions of R's C interface that native code calls, such as `Rf_allocVector()`, are included.
#' `.Call`, `.External`, `.C` and similar, which R records for code that is not byte-compiled, are replaced by the
#' functions that they called.
#'
#' While R copies an object, by `Rf_duplicate()` or `Rf_shallow_duplicate()`, the innermost frame is `<copy>`, as it is
#' `<GC>` during a garbage collection. Allocating memory for the copy is not part of `<copy>`.
#'
#' The column `.frame_type` of `locations` is `"r"` or `"native"`. Native frames have an `.address`, and a
#' row in `.mappings` for their library. `.mapping_attributes` has the hash that OpenTelemetry defines as build id,
#' `process.executable.build_id.htlhash`, if the file of the library can be read when the recording ends.
#'
#' ## Times
#'
#' By default, CPU time of all threads of the process is measured. If other threads compute in parallel with R's thread,
#' there are more samples. All samples show R's thread. `event = "elapsed"` measures real time (from R 4.4 on). CPU time
#' does not pass while R waits, and code that runs for less than an `interval` may have no sample.
#'
#' R functions have lines if their code was parsed with source references: set `options(keep.source = TRUE)` before the
#' code is parsed, since this is not the default under Rscript. See [read_rprof()] for details. Other functions, such as those
#' of packages, have lines of the text into which R deparses them, see *Lines of packages* in [record_profile()].
#'
#' `source_timestamp` in `sources` is the time at which the profiler was started, `.duration_nanos` the time
#' until it was stopped. The CPU time of R's thread is recorded as by [record_profile()], see *CPU time* there. The file
#' at `path` cannot store them.
#'
#' ## Names of native functions
#'
#' Functions, files and lines are taken from debug information, including functions that the compiler inlined: compile
#' with `-g`, which is R's default, and do not strip libraries. Separate debug files (Debian's `-dbgsym` packages) are
#' used. Without debug information, functions have the names that a library exports, or names like `library+0x1234`,
#' with the address of the function. The file of a library must not have been replaced since it was loaded.
#'
#' In `functions`, `name` is the name in the source code, and `system_name` is the name for the linker. C++ names have
#' no arguments.
#'
#' ## Incomplete samples
#'
#' R's stack and the native stack are combined only if both contain the same calls of R. Otherwise the
#' sample has R's stack alone. These samples are counted in a warning of class `profile_warning_incomplete`,
#' and listed by [profile_problems()].
#'
#' Native stacks are followed with the unwind tables that compilers write. Some code has none: OpenBLAS's
#' kernels, which are written in assembler, and code that is generated at run time, such as Java's. Samples in such
#' code have the innermost native function below R's stack, without its callers.
#'
#' ## While the profiler runs
#'
#' The file at `path` contains what [Rprof()] has recorded so far (up to R 4.2, without the last lines). If
#' R is killed, the R side of the profile remains there.
#'
#' If the profiled code calls [Rprof()] itself, or another library handles the signal `SIGPROF`, recording ends.
#' `stop_profiler()` then warns and returns what was recorded before.
#'
#' Forked processes, for example of `parallel::mclapply()`, are not profiled. Up to R 4.2, a forked process that calls
#' [Rprof()] or quits R in the usual way can write buffered output to its parent's file once more, and then no sample
#' can be combined.
#'
#' ## Memory
#'
#' A sample takes about 0.8 KB until the profiler is stopped, more if stacks are deep. The limit is 512 MB,
#' about 600,000 samples; the option `profile.recording_mb` changes it. Samples beyond the limit have R's
#' stack alone, and are counted.
#'
#' @param path The file to write in the format of [Rprof()]. It must not be a device or a pipe. It contains native
#'   functions between R functions, and can be read by [utils::summaryRprof()] and [read_rprof()].
#' @param ... Must be empty.
#' @param interval Seconds between two samples.
#' @param memory.profiling,gc.profiling,line.profiling,event,numfiles,bufsize As in [Rprof()]. `event`
#'   requires R >= 4.4.
#'
#' @param memory,threshold As in [record_profile()]; with `memory = "exact"`, each vector is recorded. The file at `path`
#'   cannot store them.
#'
#' @return `start_profiler()`: `path`, invisibly.
#'
#'   `stop_profiler()`: the profile, invisibly; an object of class `profile_data`, see [profile_data].
#'
#' @section Errors:
#' - `profile_error_unsupported` on other systems, in other versions of R, or if another profiler is running or another
#'   library handles `SIGPROF`;
#' - `profile_error_write` if the file cannot be written, is not a regular file, or the disk is full;
#' - `profile_error_memory` if there is not enough memory for the recording;
#' - `profile_error_argument` for invalid arguments, and for `stop_profiler()` if the profiler is not running.
#'
#' @seealso [joint_pprof()], [write_pprof()], [filter_profile()]; `vignette("native", package = "profile")`
#' @export
#' @examples
#' if (profile:::is_live_platform() && interactive()) {
#'   start_profiler(path <- tempfile(fileext = ".out"))
#'   for (i in 1:20) solve(matrix(runif(250000), 500))
#'   x <- stop_profiler()
#'   x
#' }
start_profiler <- function(
    path = "Rprof.out", ..., interval = 0.02, memory.profiling = FALSE, gc.profiling = TRUE, line.profiling = TRUE,
    event = "cpu", numfiles = 100L, bufsize = 10000L, memory = memory.profiling, threshold = 0) {
  call <- call_without_dots()
  check_flag(memory.profiling, "memory.profiling", call)
  check_flag(gc.profiling, "gc.profiling", call)
  check_flag(line.profiling, "line.profiling", call)
  check_interval(interval, call)
  check_count(numfiles, "numfiles", call)
  check_count(bufsize, "bufsize", call)
  event <- check_choice(event, c("cpu", "elapsed"), "event", call)
  options <- list(
    interval = interval, memory.profiling = memory.profiling, gc.profiling = gc.profiling,
    line.profiling = line.profiling, numfiles = as.integer(numfiles), bufsize = as.integer(bufsize)
  )
  options$event <- rprof_event(event, "`event`", call)
  is_exact <- check_exact_memory(memory, threshold, call)
  options$memory.profiling <- !isFALSE(memory)
  started <- FALSE
  folder <- if (is_exact) new_recording_folder()
  has_hook <- is_exact && start_allocations(threshold, folder, call)
  on.exit({
    if (has_hook && !started) stop_allocations(call)
    if (!has_hook || !started) unlink(folder, recursive = TRUE)
  })
  start_run(path, options, call)
  started <- TRUE
  if (has_hook) native$run$folder <- folder
  invisible(path)
}

#' @rdname start_profiler
#' @export
stop_profiler <- function() {
  call <- rlang::current_env()
  run <- stop_run(call, write = TRUE)
  if (!is.null(run$error)) {
    abort_profile(c(
      "The profile was recorded, but cannot be written.",
      x = run$error,
      i = "The field `profile` of this error contains it: see `rlang::last_error()`."
    ), "profile_error_write", path = run$path, profile = run$profile, call = call)
  }
  # R does not write samples without a stack either.
  if (!identical(run$losses$loss, "empty_samples")) {
    warn_losses(run$losses, format_path(run$path), call)
  }
  invisible(run$profile)
}

# ---- A run -------------------------------------------------------------------------

# `run` describes the current run, if recorder_state() reports one: the path of its file, the URI of its source, and
# whether memory profiling was requested.
native <- new.env(parent = emptyenv())

# The functions whose calls are named after an argument, such as `loadNamespace(dplyr)`; `NULL` for those that are not
# loaded. The sampler recognizes them by their addresses.
titled_functions <- function() {
  known <- data_model()$titled
  Map(function(package, name) {
    if (isNamespaceLoaded(package)) get0(name, asNamespace(package), mode = "function", inherits = FALSE)
  }, known$package, known$`function`)
}

# While the sampler runs, such functions of packages that are loaded later become known by R's hook for that.
follow_loading <- function() {
  packages <- setdiff(data_model()$titled$package, loadedNamespaces())
  hook <- function(...) rust_native_titled(titled_functions())
  for (package in packages) setHook(packageEvent(package, "onLoad"), hook)
  native$end_following <- function() {
    for (package in packages) {
      event <- packageEvent(package, "onLoad")
      setHook(event, Filter(function(known) !identical(known, hook), getHook(event)), "replace")
    }
    native$end_following <- NULL
  }
}

# The argument `event` of `Rprof()`, which R has from version 4.4 on; NULL for its default, CPU time.
rprof_event <- function(event, argument, call) {
  if (event == "cpu") {
    return(NULL)
  }
  if (!"event" %in% names(formals(utils::Rprof))) {
    abort_unsupported(paste(argument, "needs R 4.4 or later."), call)
  }
  event
}

# `options` are options of `Rprof()`.
start_run <- function(path, options, call) {
  file <- file_path(path, "profile_error_write", call)
  run <- list(path = absolute_path(file, call), shown = file[[2]], uri = file[[2]], memory = options$memory.profiling)
  # With memory figures R writes a line for each sample, even if its stack is empty.
  options$memory.profiling <- TRUE
  settings <- sampler_settings(
    c(run$path, run$shown),
    native = TRUE, lines = options$line.profiling,
    # The number of closures on the stack: this function, its callers, and the wrapper of the entry point.
    closures = sys.nframe() + 1L, call = call
  )
  run$missing <- missing_positions(settings, options, call)
  started <- FALSE
  on.exit(if (!started) resume_agent())
  pause_agent()
  # Checked before `Rprof()` truncates the file. Not an argument of `rust()`, since that would add a frame.
  checked <- rust_native_check(settings)
  rust(checked, call)
  check_run(FALSE, call)

  on.exit({
    if (!started) {
      utils::Rprof(NULL)
    }
    rust_native_block(FALSE)
  }, add = TRUE, after = FALSE)
  # The signal is blocked until both `Rprof()` and the sampler are ready.
  rust_native_block(TRUE)
  tryCatch(
    rlang::inject(utils::Rprof(run$path, !!!options)),
    error = function(error) {
      abort_profile(
        c(paste0("`Rprof()` cannot start with the file `", run$shown, "`."), x = shown_text(conditionMessage(error))),
        "profile_error_write", path = run$shown, call = call
      )
    }
  )
  native$run <- run
  start <- rust_native_start(settings)
  rust(start, call)
  started <- TRUE
  follow_loading()
  log_spans(run$path)
  native$run$cpu_time <- start_cpu_clock(if (is.null(options$event)) "cpu" else "wall")
  # Writes the file if R quits without `stop_profiler()`.
  at_quit(native, stop_before_end)
}

# `lines`: whether to record positions in byte code, if that is possible. `closures`: the number of closures on the stack
# when the sampler starts.
sampler_settings <- function(path, native, lines, closures, call) {
  megabytes <- getOption("profile.recording_mb", 512L)
  check_count(megabytes, "getOption(\"profile.recording_mb\")", call)
  list(
    path = path,
    native = native,
    positions = lines && most_deparsed_lines(call) > 0 && can_record_positions(),
    megabytes = as.integer(megabytes),
    closures = closures,
    titled = titled_functions(),
    version = unlist(getRversion())[1:2]
  )
}

# Why no positions are recorded, although they are wanted, as a text with the name `positions`.
missing_positions <- function(settings, options, call) {
  if (options$line.profiling && most_deparsed_lines(call) > 0 && !settings$positions) {
    c(positions = "the variables in which this R keeps positions in byte code were not found.")
  }
}

# Returns list(profile, path, losses, error). With `write`, the core also writes the profile to the file: `losses` lists
# what the file could not store, and `error` is the reason if it cannot be written.
stop_run <- function(call, write) {
  check_run(TRUE, call)
  run <- native$run
  used <- run$cpu_time()
  allocations <- NULL
  if (!is.null(run$folder)) {
    stop_allocations(call)
    allocations <- read_allocations(run$folder, call)
    unlink(run$folder, recursive = TRUE)
  }
  on.exit({
    rust_native_block(FALSE)
    resume_agent()
  })
  rust_native_block(TRUE)
  state <- recorder_state()
  # R closes its file, unless the profiled code has opened another one.
  warnings <- if (state != "restarted") warnings_of_end()
  spans <- logged_spans(run$path, call)
  lazy <- lazy_columns(call)
  file <- c(run$path, run$shown)
  target <- if (write) c(run$path, shown_text(run$path))
  found <- suspendInterrupts(lines_of_run(call))
  result <- rust(rust_native_stop(file, "R's file", run$uri, run$memory, found$lines, target, lazy), call)
  for (warning in warnings) {
    rlang::cnd_signal(warning)
  }
  if (state != "on") {
    warn_profile(c(
      "The profile is incomplete.",
      x = "`Rprof()` or another profiler took over the signal `SIGPROF`.",
      i = "It contains everything recorded until then."
    ), "profile_warning_incomplete", call = call)
  }
  warn_problems(result$counts, "The profile", call)
  profile <- with_deparsed_text(new_profile_data(result$tables, "2.0"), found)
  profile <- mark_session(with_missing_lines(with_spans(profile, spans, call), run$missing))
  # Of a run that ended earlier, the CPU time until then is not known.
  if (state == "on") profile <- with_cpu_time(profile, used)
  profile <- join_allocations(profile, allocations, call)
  list(profile = profile, path = run$path, losses = result$losses, error = result$error)
}

# Ends R's profiler, and returns the warnings of that, which must not prevent a recording from being stopped as well.
warnings_of_end <- function() {
  warnings <- list()
  withCallingHandlers(utils::Rprof(NULL), warning = function(warning) {
    warnings[[length(warnings) + 1]] <<- warning
    rlang::cnd_muffle(warning)
  })
  warnings
}

# "off"; "on"; "replaced": another handler of the signal was installed; "restarted": Rprof() was called again; or
# "elsewhere": the profiler runs in the parent of this forked process.
recorder_state <- function() {
  rust(rust_native_state(), NULL)
}

# `is_running`: whether the profiler must be running.
check_run <- function(is_running, call) {
  state <- recorder_state()
  if (state == "elsewhere") {
    abort_argument("The profiler runs in another process, of which this one is a fork.", call)
  }
  if (is_running && state == "off") {
    abort_argument("The profiler is not running; `start_profiler()` starts it.", call)
  }
  if (!is_running && state != "off") {
    abort_argument("The profiler is running already; `stop_profiler()` stops it.", call)
  }
}

# The working directory may change while the profiler runs.
absolute_path <- function(file, call) {
  folder <- dirname(file[[1]])
  if (!dir.exists(folder)) {
    abort_profile(
      paste0("Cannot write `", file[[2]], "`: there is no such folder."),
      "profile_error_write", path = file[[2]], call = call
    )
  }
  in_folder(normalizePath(folder), basename(file[[1]]))
}

# ---- The end of R, and of the package ---------------------------------------------

stop_before_end <- function() {
  # If there is no run, the shared library may have been unloaded.
  if (!is.null(native$run) && recorder_state() %in% c("on", "replaced", "restarted")) {
    stop_profiler()
  }
}

.onUnload <- function(libpath) {
  try(stop_before_end())
  native$run <- NULL
  stop_agent_before_end()
  agent$run <- NULL
  the$is_unloaded <- TRUE
  .External(profile_unload)
  library.dynam.unload("profile", libpath)
}
