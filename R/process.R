# Records running R processes with `profile_process()`.

# The name of the platforms on which native code and the memory of processes can be recorded, and whether this is one of
# them, for help, examples, vignettes and tests. Elsewhere, the core's errors contain the same name.
live_platforms <- function() rust(rust_live_platforms(), NULL)$name
is_live_platform <- function() rust(rust_live_platforms(), NULL)$here

#' Profile a running R process
#'
#' @description
#' `profile_process()` records where a running R process spends its time, and returns a profile. The process needs no
#' preparation. While it runs, it is stopped for a moment for each sample.
#'
#' @details
#' A sample contains the functions that were running, with files and lines if their code has source references (see *Why
#' there are no lines* in [read_rprof()]), CPU time and real time, see *CPU time*, and the time when it was taken.
#' Samples also have the labels that the process has set with [with_labels()], and the ids and the name of the active
#' span, see [with_span_ids()] and [tracer_provider].
#'
#' The label `state` is the state of the process at that time: `running`, `sleeping`, `waiting` for a disk, or
#' `stopped`. A process that has lost its CPU to another one is running; one that was woken and waits for a CPU is
#' sleeping. If the process has set a label with this key, samples have both. With `clock = "wall"`, samples of a process
#' that does not compute also have the label `waits_for`, such as `network`, and `waits_for.name`, such as
#' `127.0.0.1:5432`, see *Waiting* in [dump_stack()].
#'
#' Functions have the names by which they were called, as in [Rprof()], or those of their definition, see *Names of
#' functions*.
#'
#' R's list of calls is read from the memory of the process. A process that sleeps or waits is read as it is. One that
#' runs is stopped meanwhile, so each sample is the stack of one moment, however fast it changes: the shares of lines
#' are those of [Rprof()], apart from chance.
#'
#' @section Names of functions:
#' A function has the name by which it was called, unless its definition says more:
#'
#' - A method of R6, of a Reference class or of ggproto, or an active binding of R6, has the name of the class, such as
#'   `Counter$run` for a call `self$run()`. It is the class that defines the method; for ggproto, that of the object.
#' - A method of S7 has its generic and its classes, such as `area(shapes::Circle)`.
#' - A function that is called as `FUN`, as in [lapply()], by a similar name, or without a name, has the name of the
#'   variable that contains it in the environment where it was defined, such as `clean` in `lapply(x, clean)`. An active
#'   binding has its own name. If there is none, the place of the definition is added, as in `FUN (report.R:12)`, if
#'   the function has a source reference.
#'
#' The column `system_name` of `functions` is the name by which it was called.
#'
#' @section Lines of packages:
#' Functions without source references have lines of their deparsed text, as in [record_profile()]: `annotate_lines(x,
#' "stats::lm")` shows them. The process is not asked to compile anything. Where a function is in its byte code is read with
#' its stack, and the function of the same name is compiled in this session, if it has the same code: the same instructions,
#' names, and starts of texts and numbers. So the version of R must be the same. Functions of packages that are part of R have
#' lines, and those of packages that are loaded in this session: load those that the process uses first. `profile record --pid`
#' loads them itself.
#'
#' There are no lines for functions that are not on the stack under the name of their variable, such as methods of S4 and R6
#' and the functions that other functions return, and for code that several functions on a stack have. The attribute
#' `profile.lines.skipped`, and the option `profile.deparsed_lines`, are those of [record_profile()].
#'
#' @section CPU time:
#' Samples are taken at random times, one in each `interval` on average. A sample stands for one interval of real time,
#' and for one interval of CPU time if the process computes at that moment. So the shares of CPU time are right, apart
#' from chance, also for a process that mostly waits: `Sys.sleep()` and other calls that wait have hardly any CPU time.
#' If the system is so busy that processes wait for a CPU, shares are less exact: with four times as many busy processes
#' as CPUs, they were off by up to 9 percentage points.
#'
#' All CPU times are multiplied by the same factor, which makes their sum the CPU time of R's thread by the clock of the
#' system. `.source_attributes` has the number of intervals in which the process computed (`profile.cpu.ticks`), the CPU
#' time by the clock in nanoseconds (`profile.cpu.clock`), the factor (`profile.cpu.factor`), and CPU time that was used
#' although the process computed at no sample (`profile.cpu.missed`). `profile.cpu.delay` is for how long it waited for a
#' processor.
#'
#' @section How the process is stopped:
#' A process that runs is stopped by `ptrace()`, as debuggers do, for 0.02 to 0.1 ms in most samples, and in total for a
#' quarter of the time at most: if stacks of thousands of calls take longer, there are fewer samples, which stand for
#' more than one interval each. How often it was stopped, how long in total, and the longest time are in
#' `.source_attributes`, as `profile.pauses`, `profile.pauses.total` and `profile.pauses.longest`, in nanoseconds.
#' - Only R's thread is stopped; other threads continue. Their CPU time is recorded, see *Other threads* in
#'   [record_profile()].
#' - No debugger can be attached during that time. If one is attached already, the process is not stopped, and a warning
#'   says for how many samples; with `native = TRUE`, there is an error.
#' - A process that waits in a system call is not stopped, except with `native = TRUE`. The system then interrupts and
#'   continues the call: `Sys.sleep()` takes as long as usual, and sockets and pipes lose no data.
#' - Signals are delivered as usual. A process that was already stopped remains stopped.
#' - If this R process is interrupted, fails, or is killed, the other process continues.
#'
#' The recording of a process ends when the process does, or when it executes another program. If that is R, it is
#' recorded as another source; otherwise a warning names the program.
#'
#' @section Memory:
#' `.source_attributes` also contains, in bytes, `profile.memory.peak`, the highest memory of the process during the recording
#' (*resident set size*), as the kernel knows it. With `children = TRUE`, the first source has `profile.memory.together`, the
#' highest memory of all recorded processes together at one moment, and `profile.memory.processes`, their number then: what
#' forks share counts once, as for the limit of a container. It is measured when the sum of what all have mapped is higher than
#' before, in at most 5% of the time, so it is a lower bound.
#'
#' If the first process belongs to a cgroup with a limit, its source has `profile.memory.limit`, and, if the kernel has
#' noted them during the recording, `profile.memory.cgroup.peak`, the highest memory of the cgroup, including files that are
#' kept in memory, and `profile.memory.kills`, the number of its processes that were killed because memory ran out. If there are
#' signs that a recorded process was killed for this reason, a warning of class `profile_warning_incomplete` names it, see
#' *Processes that were killed* in [watch_process()]. `profile.process.end` contains how a process ended, unless it ended by
#' itself or the end is unknown.
#'
#' @section Without stopping the process:
#' With `pause = FALSE`, the list of calls is read twice and compared, in at most five attempts for each sample. If it
#' changes each time, there is no sample, and a warning of class `profile_warning_incomplete` says how often this has
#' happened. No stack is wrong, but functions that return after a few microseconds have too few samples, and others too
#' many. If functions took 4 to 16 microseconds, the shares of lines differed by up to 25 percentage points from those
#' of [Rprof()]; if they took 40 to 160 microseconds, by one point.
#'
#' @section What cannot be seen:
#' - Some builtin functions, whose time is attributed to their caller: those that are called by code that is not
#'   byte-compiled, as in the first two calls of most functions, or by another builtin; and those that the compiler
#'   replaces, such as arithmetic, comparisons, `[`, `sqrt()` and `rep()`. [Rprof()] does not see the latter either.
#' - Garbage collection, and memory in use.
#' - Native code, except with `native = TRUE`.
#' - Some outer calls of stacks of more than 3,000 calls: a call named `<outer calls not read>` replaces them, and
#'   [profile_problems()] says for which samples, and why.
#'
#' @section Native code:
#' With `native = TRUE`, the process is stopped for each sample, also while it sleeps, and its native stack is copied.
#' Samples then have native frames between R frames, like samples of [start_profiler()]: functions of C, C++, Fortran
#' and Rust, with files and lines if they were compiled with `-g`, and a row in `.mappings` for each library. The column
#' `.frame_type` of `locations` is `"r"` or `"native"`. The sections *Names of native functions* and *Incomplete
#' samples* in [start_profiler()] apply as well. Names are looked up when recording ends. The files of libraries in a
#' container are found. Separate files with debug information are found only on this system.
#'
#' While the process waits for a device, it is not stopped, and samples have no native frames.
#'
#' @section R in another thread:
#' A program that embeds R, such as Java, Python or a server, may run R in any of its threads. The thread that runs R is
#' found at each sample, and its state and CPU time are recorded. If R runs in several threads in turn, samples of only
#' one of them have native frames.
#'
#' @section Permissions:
#' Users can profile their own processes, and root all processes. If the kernel module Yama is active with
#' `kernel.yama.ptrace_scope = 1`, as on Ubuntu, users can profile only processes that this R process has started; root
#' can profile all. In a container, root needs the capability `SYS_PTRACE`. The processes of a container are visible on
#' the host: profile them from there as root.
#'
#' @param pid The id of the process, or of several processes. See [list_r_processes()].
#' @param seconds How long to record. `Inf` to record until the process ends or you press Ctrl-C, which returns
#'   what was recorded.
#' @param ... Must be empty.
#' @param interval Seconds between two samples, on average: the times are irregular, so that they are not in step with
#'   the process.
#' @param clock `"cpu"` for samples while the process computes, `"wall"` for samples at all times.
#' @param children Whether to also record R processes that the process has started or will start, for example by
#'   `parallel::mclapply()` or the package callr, and those that work for it: the workers of `parallel::makeCluster()`
#'   and of the packages future and mirai on this machine, which have the address of a socket of the process on their
#'   command line. The ids of processes, or a cluster of [parallel::makeCluster()], for workers that would not be found.
#' @param native Whether to record native code as well, see *Native code*.
#' @param pause Whether to stop the process for a moment for each sample while it runs. See *Without stopping the
#'   process* for what `FALSE` means. `native = TRUE` needs `TRUE`.
#'
#' @return A profile of version 2.0, see [profile_data]. Each process is a source of type `"process"`. In
#'   `.source_attributes` are its process id, the time when it started, the file name of its program
#'   (`process.executable.name`) and of its script (`profile.process.script`), and, if there are children, its role in
#'   `profile.process.role`: `master`, `worker 1 of 2`, `dispatcher`, `fork of 1234`, `callr`, or `child of 1234`. `summary(by =
#'   "process")` has a row for each. Arguments, code of `-e` and folders are not recorded, since they may contain
#'   secrets.
#'
#'   The sample types are `cpu` and `wall`, in nanoseconds: the CPU time and the real time that a sample stands for, see
#'   *CPU time*. `clock` is the default type.
#'
#' @section Errors:
#' - `profile_error_process` if there is no such process, if it does not run R, or if the system does not permit
#'   reading its memory or stopping it; the message gives the reason;
#' - `profile_error_unsupported` on systems other than `r live_platforms()`;
#' - `profile_error_argument` for invalid arguments.
#' @seealso [dump_stack()] for a single stack
#' @export
#' @examplesIf profile:::is_live_platform()
#' # A process that computes something:
#' script <- tempfile(fileext = ".R")
#' writeLines("cat(Sys.getpid(), '\n'); repeat sort(runif(1e5))", script)
#' output <- pipe(paste(shQuote(file.path(R.home("bin"), "Rscript")), shQuote(script)), open = "r")
#' pid <- as.integer(readLines(output, 1))
#'
#' try(summary(profile_process(pid, seconds = 1)))
#' tools::pskill(pid)
#' try(close(output), silent = TRUE)
profile_process <- function(
    pid, seconds = 10, ..., interval = 0.01, clock = c("cpu", "wall"), children = FALSE, native = FALSE, pause = TRUE) {
  call <- call_without_dots()
  pid <- check_pids(pid, call)
  children <- check_children(children, call)
  clock <- checked_clock(clock, seconds, interval, pause, call)
  check_flag(native, "native", call)
  if (native && !pause) {
    abort_argument("`native = TRUE` needs `pause = TRUE`: the process must stand still while its stack is copied.", call)
  }
  report <- progress_report("Recording", "iterator")
  # Later, they may have ended.
  folders <- folders_of_processes(pid)
  recorded <- processes_recorded(
    pid, seconds, interval, clock, children, call, pause, native, report,
    positions = most_deparsed_lines(call) > 0
  )
  others <- recorded$problems$problem != "unread_sample"
  words <- c(
    format_unread(recorded), format_missing_children(recorded), format_kills(recorded$endings),
    format_problem_counts(recorded$problems[others, ])
  )
  if (length(words) > 0) {
    warn_profile(c(
      "The profile is incomplete.", rlang::set_names(words, "x"),
      if (nrow(recorded$problems) > 0) c("*" = "See `profile_problems()` for details.")
    ), "profile_warning_incomplete", unread = recorded$unread, problems = recorded$problems, call = call)
  }
  with_test_labels(with_lines_of_code(with_bill(recorded$profile, recorded), call), folders, call)
}

# A list: `profile`; `problems` of stacks, a table of counts; `unread`, the number of stacks that could not be read;
# `pause`, whether the process was to be stopped; `traced`, the number of samples for which it could not be, because
# another process traces it; `unstopped`, the number for which the system does not permit it, and `why_unstopped`;
# `pauses`, how long it was stopped each time, in seconds; `ended`, the processes that ended; `left`, those that executed
# a program other than R, with its name; `was_stopped`, whether the user pressed Ctrl-C; `refused`, a table of processes
# into which this one may not look; `left_out`, a table of those that were too many; `endings`, see `format_endings()`;
# `tracks`, what each process did at each tick, see `with_bill()`.
# `report` is of `progress_report()`; with `positions`, those in byte code are recorded, see R/code-lines.R.
processes_recorded <- function(
    pid, seconds, interval, clock, children, call, pause = TRUE, native = FALSE, report = NULL, positions = FALSE) {
  settings <- list(
    interval = as.numeric(interval), seconds = as.numeric(seconds), clock = clock, children = children$any,
    pause = pause, native = native, positions = positions
  )
  lazy <- lazy_columns(call)
  was_stopped <- FALSE
  result <- tryCatch(
    rust(rust_processes_record(pid, children$pids, settings, lazy, report), call),
    interrupt = function(condition) {
      was_stopped <<- TRUE
      rust(rust_processes_recorded(lazy), call)
    }
  )
  recorded_of(result, pause, was_stopped)
}

recorded_of <- function(result, pause, was_stopped) {
  profile <- new_profile_data(result$tables, "2.0")
  if (length(result$starts) > 0) {
    profile <- part_with(profile, setdiff(profile$sources$source_id, result$starts), NULL)
  }
  list(
    profile = profile, problems = result$counts, unread = result$unread,
    pause = pause, traced = result$traced, unstopped = result$unstopped, why_unstopped = result$why_unstopped,
    pauses = result$pauses, ended = result$ended,
    left = rlang::set_names(result$left, result$programs), was_stopped = was_stopped,
    refused = tibble::tibble(
      pid = as.character(result$refused), role = result$refused_roles, why = result$refusals
    ),
    left_out = tibble::tibble(pid = as.character(result$left_out), role = result$left_out_roles),
    readings = result[c("date", "cpu")], endings = result$endings, tracks = result$tracks
  )
}

format_unread <- function(recorded) {
  taken <- recorded$unread + nrow(recorded$profile$samples)
  c(
    format_left(recorded$left),
    if (recorded$unread > 0) {
      problems <- profile_problems(recorded$profile)
      paste0(
        format_count(recorded$unread), " of ", count_of(taken, "sample"), " could not be read",
        if (!recorded$pause || recorded$traced + recorded$unstopped > 0) ", since the process was not stopped",
        ". The first one: ", problems$text[match("unread_sample", problems$problem)], "."
      )
    },
    if (recorded$traced > 0) {
      paste0(
        count_of(recorded$traced, "sample"), if (recorded$traced == 1) " was" else " were",
        " taken without stopping the process, because another process, such as a debugger, traces it. Functions that",
        " return quickly have too few samples then."
      )
    },
    if (recorded$unstopped > 0) {
      paste0(
        count_of(recorded$unstopped, "sample"), if (recorded$unstopped == 1) " was" else " were",
        " taken without stopping the process, because the system does not permit that. ", recorded$why_unstopped,
        " Functions that return quickly have too few samples then."
      )
    }
  )
}

format_left <- function(left) {
  program <- names(left)
  paste0(
    "Process ", left, " does not run R any more", ifelse(nzchar(program), paste0(", but `", program, "`"), ""),
    ". It was recorded until then.", recycle0 = TRUE
  )
}

check_pid <- function(pid, call) {
  pid <- check_pids(pid, call)
  if (length(pid) != 1) {
    abort_argument("`pid` must be the number of one process.", call)
  }
  pid
}

check_pids <- function(pid, call, name = "pid") {
  if (missing(pid)) {
    abort_missing("pid", call, i = "`list_r_processes()` lists the numbers of processes.")
  }
  is_whole <- is.numeric(pid) && length(pid) > 0 && !anyNA(pid) && all(pid == trunc(pid))
  if (!is_whole || any(pid < 1 | pid > .Machine$integer.max)) {
    abort_argument(c(
      paste0("`", name, "` must be the number of a process, not ", describe_object(pid), "."),
      i = if (is_text(pid) && grepl("^ *[0-9]+ *$", pid)) {
        paste0("Use a number: ", trimws(pid), " without quotes, or `as.integer()`.")
      } else if (is.data.frame(pid) && "pid" %in% names(pid)) {
        "Use its column `pid`."
      } else {
        "`list_r_processes()` lists the numbers of processes."
      }
    ), call)
  }
  as.integer(unique(pid))
}

# Checks the arguments of recordings, and returns the clock.
checked_clock <- function(clock, seconds, interval, pause, call) {
  check_seconds(seconds, "seconds", call)
  check_interval(interval, call)
  check_flag(pause, "pause", call)
  check_choice(clock, c("cpu", "wall"), "clock", call)
}

check_seconds <- function(seconds, name, call) {
  if (!is.numeric(seconds) || length(seconds) != 1 || !isTRUE(seconds > 0)) {
    abort_argument(paste0("`", name, "` must be a positive number, or `Inf`."), call)
  }
}
