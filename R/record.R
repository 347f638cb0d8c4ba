# Records an expression with R's own profiler: the simplest way to get a profile.

#' Record a profile of an expression
#'
#' @description
#' `record_profile()` evaluates an expression, records where it spends its time, and returns the profile. It uses R's
#' profiler, [Rprof()], on all platforms, and also records memory, garbage collection and lines. With `native = TRUE` it
#' records the C, C++, Fortran and Rust code that R calls as well. Printing the result shows the summary of
#' [describe_profile()]; see [plot()][plot.profile_data()] and [profile_page()] for pictures.
#'
#' If the expression fails or is interrupted, its error is raised as usual. `last_profile()` then returns the profile of
#' the code that ran before the error.
#'
#' @details
#' The value of the expression is not returned. Assign it in the expression: `record_profile(y <- work())`.
#'
#' The profile contains the expression as a comment of its source (table `.comments`), which [profile_page()] shows as
#' its title, and only the calls of the expression: frames of the callers of `record_profile()` and samples
#' outside of the expression are removed. If a block of code in braces has source references, its outermost frame is
#' `<expression>`, which has the lines of the block, so that you see how long each step takes.
#'
#' By default a sample is taken once per `interval` of CPU time, so nothing is recorded while R waits; with
#' `clock = "wall"`, waiting is recorded as well. Code that runs for less than a second has few samples; repeat
#' it, as in `record_profile(for (i in 1:100) work())`, or choose a shorter `interval`.
#'
#' Functions have lines if their code was parsed with source references. While the expression runs, the option
#' `keep.source` is `TRUE`, so that code that it reads with [source()] has lines, even under Rscript. When recording
#' ends, the text of source files and the packages of functions are added, see [add_source_text()] and [add_packages()].
#' Functions that were typed at the prompt have no file: their lines are those of a file `<f>` for a function `f`, and
#' those of functions within the expression are in `<expression>`. Functions of packages have lines as well, see *Lines of
#' packages*.
#'
#' Functions have the names by which they were called. For names such as `FUN`, `<Anonymous>` and `self$run`, the source
#' file says what is defined at this line, so they become `clean`, `FUN (report.R:12)` and `Counter$run`, see *Names of
#' functions* in [profile_process()]. Functions without source references, as in most installed packages, keep the names of
#' the calls, except for methods of ggproto that only one class of the loaded packages has, such as `GeomPoint$draw_panel`.
#'
#' If a profiler is already running, it is stopped.
#'
#' To see which packages take the time of `library()` or of the start of an app, use
#' [summary(x, by = "loaded")][summary.profile_data()]; its section *Start-up* says when packages are known.
#'
#' @section Lines of packages:
#' Most packages are installed without source references. On `r live_platforms()`, with R 4.2 to 4.6, where a function runs in
#' its byte code is therefore recorded beside the samples of R's profiler. When recording ends, the function is compiled
#' again, from the text that [deparse()] returns for it. If the instructions are the same, the lines of this text are known:
#' `annotate_lines(x, "stats::lm")` shows them. They belong to a file `<stats::lm>`, whose text is in `.source_text`. A function
#' `f` in the global environment that has no source references has the file `<f>`.
#'
#' The text has the layout of `deparse()` and no comments. There is no line
#' - for code that is not byte-compiled, as in the first two calls of most functions that you define;
#' - for functions that are neither variables of a package nor of the global environment when recording ends, such as
#'   methods of R6, unless a function that is creates them;
#' - in a promise, if the function has several promises with the same code.
#'
#' Lines of your source files keep their self values: a sample may count for a line of your file, and for a line of a
#' package further inside.
#'
#' Processes that are recorded by `children = TRUE` have such lines for functions that have the same code in this session, see
#' [profile_process()]. In the process of a script, `profile record` loads the native code of this package, and compiles
#' functions when the script has ended. If positions could not be recorded, the digest says why.
#'
#' Compiling takes about 0.2 ms for each line of text, once in a session. The functions with most samples come first, up to
#' 4,000 lines for a recording. The attribute `profile.lines.skipped` is the number of other functions, which the digest shows.
#' The option `profile.deparsed_lines` changes the limit; with 0, no such lines are recorded.
#'
#' @section Numbers of calls:
#' Samples show where the time goes, but not whether a function is slow or called often. With `count`, the calls of
#' functions are counted exactly: the sample type `calls`, and the columns `calls` and `time_per_call` of
#' [summary()][summary.profile_data()]; the digest has them as well.
#'
#' While the expression is evaluated, these functions begin with a statement that counts, which takes about 20
#' nanoseconds; afterwards they are as before, also after errors and interrupts. Only functions of your own are changed:
#' those of the global environment and of functions around the call of `record_profile()`, and those of packages that
#' were loaded with `pkgload::load_all()`. The code of others is never changed.
#'
#' Calls of a function by its name are counted, in this process. Not counted are calls of copies that were made before,
#' such as methods of existing objects of R6 and reference classes, or functions in lists and of [Vectorize()]; functions
#' that the expression defines; and calls in forks and other processes, where a function that is sent there works as usual.
#' Of S4, count the functions that methods call.
#'
#' `body()`, `sys.function()` and hashes of these functions see the statement. So calls cannot be counted in a pipeline of
#' targets, in a cached chunk of knitr, and of functions that are memoised.
#'
#' @section CPU time:
#' R's profiler loses samples if all processors are busy, or if `interval` is shorter than that of the system's timer. The
#' shares of functions and lines are still right, but their time is too short. If other threads compute, such as those of
#' BLAS, there are more samples. So the CPU time that R's thread has used while the expression was evaluated is recorded as
#' well, on Linux and macOS, with `clock = "cpu"`: `profile.cpu.clock` in `.source_attributes`, in nanoseconds, beside
#' `profile.cpu.ticks`, the number of samples. If the time of the samples differs from it by more than 10 %, and by more
#' than two intervals, the digest, [profile_page()], and the output of [summary()][summary.profile_data()] and
#' [print()][print.profile_data()] show both: *170 samples, 1.7 s of 2.4 s used*. A profile from which samples were removed,
#' for example by [filter_profile()], is not compared.
#'
#' With `children = TRUE`, CPU times are multiplied by a factor instead, as in [profile_process()].
#'
#' @section Other threads:
#' Samples show the thread that runs R. Libraries that compute in parallel have threads of their own: BLAS, OpenMP, TBB, and
#' packages with threads of C++ or Rust. On `r live_platforms()`, the CPU time of all threads is recorded as well, without
#' their stacks, by the library that started them: *31 threads of libopenblas used 240 s, R's own 12 s; 4 processors are
#' allowed.* With more threads than processors, they wait for each other. [profile_process()], `profile record`, `children` and
#' the agent record the same.
#'
#' A thread is named after the package or library of the function that it began with. Threads of C++ have the name of their
#' creator. Those of OpenMP and TBB work for all libraries that are linked with them; these are in parentheses, as in
#' `libgomp (data.table)`. R itself is mentioned there only if there is no other one. The name is `unknown` with glibc older
#' than 2.33.
#'
#' The row `R` and those of the libraries add up to the CPU time of the process, except for threads of this package. What was
#' used by threads that ended before they were read belongs to *threads that ended*. They are read about four times in a
#' second, and each reading may be late by one tick of the kernel for each thread, at most 10 ms. The number of threads is the
#' highest one at a reading, and counts those that have used CPU time. How many processors are allowed follows from those to
#' which threads are bound (*affinity*), and from the limit of the cgroup.
#'
#' `summary(x)` has the attribute `threads`, a tibble: `library`, `R` in the first row and `NA` for threads that ended;
#' `threads`, their number; and `cpu`, in seconds. `NULL` if other threads have used less than 1% of the CPU time. Its attribute
#' `processors` is how many are allowed. What is below 1% is only in `.source_attributes`, in nanoseconds:
#' `profile.threads.r`, `profile.threads.cpu.` and `profile.threads.count.` with the name of a library, `profile.threads.ended`,
#' and `profile.threads.processors`. Files of pprof have them as comments.
#'
#' @section Exact memory:
#' The memory figures of [Rprof()] are samples: a lower bound, see [describe_profile()]. With `memory = "exact"`, each vector is
#' recorded with its stack and line, on `r live_platforms()`. Stacks that allocate are additional samples with the types
#'
#' - `alloc_space` (bytes) and `alloc_objects` (count): all vectors. The label `allocation` is `"conversion"` if R's
#'   `coerceVector()` allocates a vector to convert another one, and `"growth"` where vectors become larger and larger, as in
#'   `x <- c(x, i)`;
#' - `copy_space` and `copy_objects`: the part of them that are copies, because R duplicates an object before it modifies one
#'   of several references to it. The label `copy.reason` says which, such as *`x` is also `y`*, if they are variables of
#'   running calls, of the functions around them or of the global environment, elements of lists and variables of
#'   environments in them, or attributes. It begins with a variable of the innermost code that has lines;
#' - `inuse_space` and `inuse_objects`: those that can still be reached when the expression has been evaluated, after a garbage
#'   collection;
#' - `peak_space` and `peak_objects`: those that were allocated and not freed yet at the moment at which this was most: at
#'   the peak. Garbage that R had not collected yet is included. `.source_attributes` has the moment as `profile.peak.after`, in
#'   nanoseconds since the recording began, and the most bytes right after a garbage collection, `profile.peak.collected`;
#' - `gc_share` (nanoseconds): the time of each garbage collection, shared by the bytes that were allocated since the last one.
#'   This blames who fills the memory, while the frame `<GC>` is where collections happen to run. It is not the time that would
#'   be saved: collections take longer the more objects are in use, see [holders()].
#'
#' So `summary(x, type = "copy_space")` shows where copies are made. The attribute `profile.memory` of the source is
#' `"exact"`, and `profile.memory.time` is about how much time recording the vectors took, in nanoseconds: few events
#' are timed.
#'
#' Sizes include the header of a vector, 48 bytes. Not seen are vectors of at most 128 bytes and the cells of lists, for which R
#' allocates whole pages, and vectors with an allocator of their own, as some packages create. Vectors are attributed to the
#' line of the statement that runs. Those that finalizers written in C allocate have a stack of their own, `<finalizer>`: the
#' code that a garbage collection interrupts has not called them.
#'
#' With `children`, forks record their vectors as well, and so do the workers of a cluster that is named, and R processes that
#' start and read `R_PROFILE_USER`. What is in use is not known of them. A message of class `profile_message_memory` names other
#' processes.
#'
#' R calls `malloc()`, `free()` and `getrusage()` through a table of addresses in its library. While the expression is
#' evaluated, the entries for these functions contain the addresses of functions of this package, which call the
#' original ones. They are restored when it ends, fails or is interrupted, and if the package is unloaded. No function
#' of R is changed. To see how R calls them, one vector is allocated and copied at the start; if that does not show
#' what is expected, nothing is recorded in this way. Then, and on other systems, [Rprofmem()] records each vector in a
#' second source, without lines and copies, and with other names of functions (see [read_rprofmem()]); a message of
#' class `profile_message_memory` has the reason. With `options(profile.replace_entries = FALSE)`, no entry is ever
#' replaced.
#'
#' @section The peak:
#' With `snapshot = "peak"`, the result also has what held the memory when it was highest: [holders()] shows it, and the digest
#' its largest parts. Each vector is recorded as with `memory = "exact"`. When a vector is allocated, and the memory is 10%
#' more than at the last snapshot, an image of the process is made: a copy that stands still, in which another R process
#' finds all objects and what holds them. A newer image replaces the one before, so that the last one is kept.
#'
#' The snapshot itself is `attr(x, "snapshot")`, a profile for [profile_page()], [compare_profiles()] and [write_profile()] like
#' those of [snapshot_memory()]. The page of the recording contains it as well; other files do not.
#'
#' The vector that is just being allocated is no object of R yet. It is a row of its own, such as *allocated by fit
#' (fit.R:12)*. Garbage that R has not collected yet is included, as `garbage not collected yet`.
#'
#' Making images takes at most 5% of the time and one more second: some milliseconds for each, and, as long as it is read,
#' some time for each page of memory that R changes. No image is made if too little memory is left for it, by the limit of the
#' cgroup or on the machine; a message of class `profile_message_memory` says so. Forks have no snapshots. To watch a process
#' that runs already, or a script, see [watch_process()] and `profile record --snapshot peak`.
#'
#' @section Parallel code:
#' With `children = TRUE`, R processes that work for this one are recorded as well: those that it starts, for example by
#' `parallel::mclapply()`, callr or [system()]; the workers of `parallel::makeCluster()`, and of the packages future and
#' mirai on this machine, which may exist already; and what these start. The profile has a source for each process, with
#' its role (`master`, `worker 1 of 2`, `dispatcher` of mirai, `fork of 1234`, `callr`, `child of 1234`), id, program and
#' script in `.source_attributes`: `summary(x, by = "process")` has a row for each. `vignette("parallel")` shows examples.
#'
#' This requires `r live_platforms()`. A helper, another R process, records the others as [profile_process()] does, and takes
#' up to a second to start. Samples have the types `cpu` or `wall` in nanoseconds, and the times when they were taken; those
#' of this session are still samples of [Rprof()], with memory and garbage collections.
#'
#' The helper also looks at this session at each tick, without stopping it, and at the stacks of workers that wait. So
#' [describe_profile()] and [profile_page()] begin with what the workers did, whatever the `clock`.
#'
#' A process that executes R, such as one of callr, has a source with its role from then on. Other programs are no sources,
#' although they are started by forks.
#'
#' At most 256 processes are recorded. Forks that end before they can be recorded, usually within 20 milliseconds, are
#' counted: `profile.process.forks` and `profile.process.forks.missed` in `.source_attributes` are the number of forks of
#' this process that go on with R, and how many of them are not in the profile. There is a warning if they have used much CPU
#' time.
#'
#' The system may not permit the helper to look into other processes. On Ubuntu, where a process may look only into its
#' descendants (`kernel.yama.ptrace_scope = 1`), this session, its forks and new workers permit the helper to. If the system
#' refuses that as well, as in some containers, new workers record themselves, by the agent of [start_agent()]. So do the
#' workers of a cluster that is named, as in `children = cluster`. To reach new workers, the environment variable
#' `R_PROFILE_USER` names a file that evaluates the user's own profile first; R processes that do not read it, such as those
#' that callr starts or with the option `--vanilla`, do not record themselves, and neither do forks. A warning names
#' processes that were missed, and the reason for each.
#'
#' Without `children`, there is a message of class `profile_message_children` if other R processes have worked while this one
#' has waited.
#'
#' @param expr An expression, evaluated where `record_profile()` is called.
#' @param ... Must be empty.
#' @param interval Seconds between two samples, measured by `clock`.
#' @param clock `"cpu"` for samples while R uses CPU time, `"wall"` for samples at all times, which requires
#'   R 4.4. On Windows, [Rprof()] takes samples at all times.
#' @param memory Whether to record the memory in use at each sample, from which a lower bound of the allocated memory is
#'   computed. With `"exact"`, each vector that is allocated is recorded as well, see *Exact memory*. This slows code that
#'   allocates many small vectors.
#' @param threshold With `memory = "exact"`, the size in bytes of the smallest vectors to record.
#' @param snapshot `"peak"` for a snapshot of what held the memory when it was highest, see *The peak*; `NULL` for none.
#' @param gc,lines Whether to record garbage collections, and lines.
#' @param native Whether to record native code as well, as in [start_profiler()], whose help describes what is recorded. The
#'   frame `<copy>` then shows where R copies objects.
#'   This requires `r live_platforms()`, and R 4.2 to 4.6.
#' @param children Whether to also record R processes that work for this one, see *Parallel code*. The ids of processes, or
#'   a cluster of [parallel::makeCluster()], for workers that would not be found.
#'
#' @param count Functions whose calls are counted: their names, or `TRUE` for all functions of your own. See *Numbers of
#'   calls*.
#'
#' @return A profile of version 2.0, see [profile_data]. It also has class `profile_recording`, for printing.
#'
#' @section Errors:
#' - errors of the expression;
#' - `profile_error_argument` for invalid arguments, such as a function instead of a call of it, and for
#'   `last_profile()` if nothing was recorded in this session;
#' - `profile_error_unsupported` if R was built without its profiler, is too old for `clock = "wall"`, or cannot record
#'   allocations; with `native = TRUE`, see [start_profiler()];
#' - with `count`, `profile_error_argument` for functions that are not found or whose calls cannot be counted, and
#'   `profile_error_unsupported` where functions are hashed;
#' - with `children`, `profile_error_unsupported` on systems other than `r live_platforms()`, and `profile_error_process` if
#'   the helper cannot be started, if there is no process with a given id, or if a cluster does not answer.
#' @seealso [describe_profile()], [call_tree()], [profile_page()]
#' @export
#' @examples
#' x <- record_profile(for (i in 1:200) lm(dist ~ speed, data = cars))
#' x
#'
#' # Until an error:
#' try(record_profile({
#'   for (i in 1:200) lm(dist ~ speed, data = cars)
#'   stop("Oh no")
#' }))
#' last_profile()
#'
#' # Which functions copy data?
#' if (capabilities("profmem")) {
#'   x <- record_profile(for (i in 1:200) lm(dist ~ speed, data = cars), memory = "exact")
#'   if (profile:::is_live_platform()) summary(x, type = "copy_space")
#' }
#'
#' # With the functions of BLAS:
#' if (profile:::is_live_platform() && interactive()) {
#'   record_profile(for (i in 1:20) solve(matrix(runif(250000), 500)), native = TRUE)
#' }
record_profile <- function(
    expr, ..., interval = 0.01, clock = c("cpu", "wall"), memory = TRUE, threshold = 0, snapshot = NULL, gc = TRUE,
    lines = TRUE, native = FALSE, children = FALSE, count = FALSE) {
  call <- call_without_dots()
  if (missing(expr)) {
    abort_missing("expr", call, i = "It is the code to record, as in `record_profile(work())`.")
  }
  code <- substitute(expr)
  env <- rlang::caller_env()
  check_code(code, env, "record_profile", call)
  check_interval(interval, call)
  clock <- check_choice(clock, c("cpu", "wall"), "clock", call)
  check_snapshot(snapshot, call)
  if (!is.null(snapshot)) memory <- "exact"
  is_exact <- check_exact_memory(memory, threshold, call)
  check_flag(gc, "gc", call)
  check_flag(lines, "lines", call)
  check_flag(native, "native", call)
  children <- check_children(children, call)
  counting <- counting_of(count, env, call)
  options <- list(
    interval = interval, memory.profiling = !isFALSE(memory), gc.profiling = gc, line.profiling = lines
  )
  options$event <- rprof_event(if (clock == "wall") "elapsed" else "cpu", "`clock = \"wall\"`", call)
  if (is_recording()) {
    abort_argument("`record_profile()` is running already.", call)
  }
  # The number of frames of this function and its callers.
  frames <- sys.nframe() - count_label_frames(sys.calls())
  folder <- new_recording_folder()
  remove_folder <- remover_of(folder)
  on.exit(remove_folder())
  # Ends with the folder.
  reader <- if (!is.null(snapshot)) start_reader(folder, call)
  end_helper <- if (children$any) {
    settings <- helper_settings(interval, clock, native, threshold = if (is_exact) threshold, positions = lines)
    start_helper(children, settings, call, folder)
  }
  started <- Sys.time()
  end_lookout <- if (!children$any) start_lookout(started)
  # If the profiler cannot start.
  on.exit({
    if (children$any) end_helper() else rust(rust_lookout_end(), NULL)
    remove_folder()
  })
  ended <- FALSE
  pid <- Sys.getpid()
  cpu_time <- function() NULL
  used <- NULL
  alone <- NULL
  .start_of_recording <- function() {
    if (is_exact) finish <<- with_allocations(finish, threshold, folder, children$any, reader, call)
    if (!is.null(counting)) counting$start()
    cpu_time <<- start_cpu_clock(clock)
  }
  .end_of_recording <- function() {
    # A fork that leaves the expression ends nothing.
    if (ended || Sys.getpid() != pid) {
      return()
    }
    if (is.null(used)) used <<- cpu_time()
    if (!children$any && is.null(alone)) alone <<- end_lookout()
    if (!is.null(counting)) counting$end()
    options(old)
    the$recording <- NULL
    duration <- as.numeric(difftime(Sys.time(), started, units = "secs"))
    counts <- if (children$any) end_helper()
    x <- tidy_recording(finish(), frames, started, code, env, call)
    x <- with_thread_times(with_cpu_time(x, used), alone$threads)
    x <- with_reason_for_no_lines(x, isTRUE(old$keep.source))
    at_peak <- if (!is.null(reader)) snapshot_of_reader(folder, call)
    # From here on, Ctrl-C loses what others have recorded.
    the$last_profile <- complete_recording(x, at_peak, counting, code, call, env)
    ended <<- TRUE
    if (children$any) {
      x <- with_children(x, result_of_helper(folder, counts), frames, duration, clock, call)
      the$last_profile <- complete_recording(x, at_peak, counting, code, call, env)
    } else {
      alone$say()
    }
  }
  # Whatever was started is ended.
  suspendInterrupts({
    finish <- if (native) start_native_recording(options, folder, call) else start_recording(options, folder, call)
    the$recording <- environment()
    old <- options(keep.source = lines || isTRUE(getOption("keep.source")))
    on.exit({
      if (!ended) {
        # Another Ctrl-C has to wait.
        suspendInterrupts(.end_of_recording())
        inform_profile("See `last_profile()` for the profile until then.", "profile_message_recorded")
      }
      remove_folder()
    })
    .start_of_recording()
  })
  # `force()` would add a frame.
  expr
  .end_of_recording()
  the$last_profile
}

# Whether `record_profile()` is on the stack. If Ctrl-C has ended the call before, what it has started may still be there.
is_recording <- function() {
  if (any(vapply(sys.frames(), identical, NA, the$recording))) {
    return(TRUE)
  }
  if (!is.null(the$recording)) {
    the$recording <- NULL
    suspendInterrupts(rust(rust_allocations_stop(), NULL))
  }
  FALSE
}

#' @rdname record_profile
#' @export
last_profile <- function() {
  if (is.null(the$last_profile)) {
    abort_argument("`record_profile()` has not recorded a profile in this session.", rlang::current_env())
  }
  the$last_profile
}

# Starts a profiler, whose file is in this folder, and returns the function that stops it and returns the profile.
start_recording <- function(options, folder, call) {
  force(options)
  force(call)
  path <- in_folder(folder, "Rprof.out")
  # R omits the lines of files beyond this limit. Large programs exceed the default.
  if (options$line.profiling) {
    options$numfiles <- 1000L
  }
  missing <- start_with_sampler(path, options, call)
  has_sampler <- !isTRUE(names(missing) == "sampler")
  if (!has_sampler) start_rprof(path, options, call)
  log_spans(path)
  function() {
    if (has_sampler) {
      rust_native_block(TRUE)
      on.exit(rust_native_block(FALSE))
    }
    utils::Rprof(NULL)
    resume_agent()
    spans <- logged_spans(path, call)
    x <- if (has_sampler) {
      read_with_lines(path, options$memory.profiling, call)
    } else {
      read_format(path, "rprof", "2.0", NA_character_, call)
    }
    mark_session(with_missing_lines(with_spans(x, spans, call), missing))
  }
}

start_rprof <- function(path, options, call) {
  tryCatch(
    rlang::inject(utils::Rprof(path, !!!options)),
    error = function(error) {
      abort_unsupported(c("R's profiler cannot be started.", x = shown_text(conditionMessage(error))), call)
    }
  )
}

# Starts R's profiler and the sampler beside it, which records titles of calls and, with lines, positions in byte code.
# Returns why something is missing, if it is: a text with the name `sampler` if it is not running, which is empty on systems
# that it does not support, and with the name `positions` if it records no positions.
start_with_sampler <- function(path, options, call) {
  if (!is_live_platform()) {
    return(c(sampler = ""))
  }
  # With memory figures R writes a line for each sample, to which the one of the sampler belongs.
  options$memory.profiling <- TRUE
  settings <- sampler_settings(
    c(path, path),
    native = FALSE, lines = options$line.profiling,
    closures = sys.nframe() + 1L, call = call
  )
  # The signal is blocked until both are ready.
  rust_native_block(TRUE)
  on.exit(rust_native_block(FALSE))
  start_rprof(path, options, call)
  # Not an argument of `rust()`, since that would add a frame.
  start <- rust_native_start(settings)
  tryCatch(
    {
      rust(start, call)
      follow_loading()
      missing_positions(settings, options, call)
    },
    profile_error = function(error) c(sampler = shown_text(conditionMessage(error)))
  )
}

start_native_recording <- function(options, folder, call) {
  force(call)
  start_run(in_folder(folder, "Rprof.out"), c(options, list(numfiles = 100L, bufsize = 10000L)), call)
  native$run$uri <- NA_character_
  function() stop_run(call, write = FALSE)$profile
}

# Also records each allocation: in the same source with its lines or, where that is not possible, in a second one.
with_allocations <- function(finish, threshold, folder, forks, reader, call) {
  force(finish)
  force(call)
  if (start_allocations(threshold, folder, call, forks, reader)) {
    is_on <- TRUE
    return(function() {
      if (!is.null(reader)) wait_for_reader(folder)
      # Called again if Ctrl-C ends the rest.
      suspendInterrupts(if (is_on) {
        is_on <<- FALSE
        stop_allocations(call)
      })
      join_allocations(finish(), read_allocations(folder, call), call)
    })
  }
  path <- in_folder(folder, "Rprofmem.out")
  utils::Rprofmem(path, threshold = threshold)
  function() {
    utils::Rprofmem("")
    profile <- finish()
    allocations <- mark_session(read_format(path, "rprofmem", "2.0", NA_character_, call))
    bind_profiles(list(profile, allocations), call)
  }
}

# Removes the frames of callers, and adds information that can be collected only in this session.
tidy_recording <- function(x, frames, started, code, env, call) {
  x$sources$source_timestamp <- as.numeric(started)
  x$.comments <- tibble::tibble(source_id = x$sources$source_id, comment = code_in_one_line(code))
  # The profiler already runs while the rest is started, and still runs while it is being stopped.
  x <- without_callers(x, frames, call, list(ignore = "^[.](start|end)_of_recording$"))
  with_typed_code(without_code_of_callers(x), code, env)
}

# Adds information about functions, of all processes, and the snapshot at the peak.
complete_recording <- function(x, snapshot, counting, code, call, env) {
  x <- with_names_of_ggproto(with_packages_in_tables(x, call, env))
  x <- with_defined_names(with_source_text(x, as.numeric(Sys.time()), call))
  x <- with_test_labels(x, folders_of_tests(code, env), call)
  if (!is.null(counting)) x <- with_calls(x, counting$counts())
  attr(x, "snapshot") <- snapshot
  class(x) <- c("profile_recording", class(x))
  x
}

# Without the `frames` outermost frames, which belong to the callers of the expression.
without_callers <- function(x, frames, call, given = list()) {
  of_code <- if (frames > 0) frames_of_code(x, frames)
  if (length(of_code) > 0) {
    x <- name_frames(x, of_code, "<expression>")
    frames <- frames - 1L
  }
  filter_by(x, given, call, outermost = frames)
}

# The rows of `sample_locations` with the frame that evaluates the recorded code, which is number `frames` from the
# outermost one: it has the lines of the code itself. None if the code has no lines, so that the frame says nothing.
frames_of_code <- function(x, frames) {
  rows <- unclass(x$sample_locations)
  at <- match(rows$location_id, x$locations$location_id)
  type <- x$locations[[".frame_type"]]
  # Finalizers that are no R code have no callers.
  finalizers <- x$functions$function_id[x$functions$name %in% "<finalizer>"]
  is_call <- !x$locations$function_id[at] %in% finalizers
  of_r <- which(if (is.null(type)) is_call else is_call & type[at] %in% "r")
  # Frames are stored from the innermost one of each sample on.
  end <- cumsum(rle(as.integer(rows$sample_id[of_r]))$lengths)
  position <- end - frames + 1L
  found <- of_r[position[position > c(0L, end[-length(end)])]]
  # Positions in byte code of this package are no lines of the code.
  file <- x$functions$filename[match(x$locations$function_id[at[found]], x$functions$function_id)]
  if (any(x$locations$line[at[found]] > 0 & !is_byte_code(file))) found
}

# Gives these rows of `sample_locations` a function of this name. Other frames may have the same function or location:
# all calls by `do.call()`, and for `Rprofmem()` calls such as `profile::record_profile()`, are `<Anonymous>`.
name_frames <- function(x, rows, name) {
  used <- match(x$sample_locations$location_id[rows], x$locations$location_id)
  locations <- slice_rows(x$locations, unique(used))
  called <- unique(locations$function_id)
  functions <- slice_rows(x$functions, match(called, x$functions$function_id))
  functions$name <- functions$system_name <- rep(name, nrow(functions))
  functions$function_id <- max(x$functions$function_id) + seq_along(called)
  locations$function_id <- functions$function_id[match(locations$function_id, called)]
  locations$location_id <- max(x$locations$location_id) + seq_len(nrow(locations))
  x$sample_locations$location_id[rows] <- locations$location_id[match(used, unique(used))]
  # Rows that no frame uses any more are removed with the frames of callers.
  x$locations <- vctrs::vec_rbind(x$locations, locations)
  x$functions <- vctrs::vec_rbind(x$functions, functions)
  x
}

# Code as a title, such as `for (i in 1:200) lm(dist ~ speed, data = cars)`.
code_in_one_line <- function(code) {
  # Long code is not deparsed as a whole.
  lines <- trimws(deparse(code, 500L, nlines = 20L))
  cut_text(valid_text(paste(lines, collapse = " ")), 100, "end")
}

# If there are no samples, functions of callers and of the profiler are removed as well.
without_code_of_callers <- function(x) {
  if (nrow(x$samples) == 0) {
    x$locations <- slice_rows(x$locations, 0L)
    x$functions <- slice_rows(x$functions, 0L)
  }
  x
}

#' @export
print.profile_recording <- function(x, ...) {
  print(describe_profile(x), ...)
  invisible(x)
}
