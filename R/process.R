# Inspects running R processes: profiles processes, shows the stack of a process, and lists processes.

#' Profile a running R process
#'
#' @description
#' `profile_process()` records where a running R process spends its time, and returns a profile. The process needs no
#' preparation. It is not stopped, except with `native = TRUE`, which also records native code.
#'
#' @details
#' A sample contains the functions that were running, with files and lines if their code has source references (see *Why
#' there are no lines* in [read_rprof()]), the CPU time and the real time since the previous sample, and the time when
#' it was taken. The label `state` is the state of the process at that time: `running` (or waiting for a CPU),
#' `sleeping`, `waiting` for a disk, or `stopped`. Samples also have the labels that the process has set with
#' [with_labels()]. A label with the key `state` does not replace the state of the process: samples have both.
#'
#' R's list of calls is read from the memory of the process. The list may change meanwhile, so it is read twice and
#' compared. A sample is the stack at the time of the first reading. If some calls have changed meanwhile, the sample
#' contains the calls that were certainly on the stack at that time, and is completed from a similar stack: a recent
#' sample, or a stack that is seen within 0.15 milliseconds. Without such a stack, the innermost calls are missing, and
#' their time is attributed to the function that called them. If this applies to more than 5% of the samples, there is a
#' warning of class `profile_warning_incomplete`. The warning also counts stacks that could not be read at all. They are
#' rare, even if a program only calls functions that take about a microsecond.
#'
#' In programs with functions that take 4 to 160 microseconds, the shares of lines in 3,000 samples were within 7
#' percentage points of the shares of `Rprof()`; chance explains 3 points. Without functions that take less than 40
#' microseconds, they were within 2 points. With `native = TRUE`, the stack does not change while it is read.
#'
#' While recording, this R process avoids the CPU on which the other process runs. If all CPUs are busy, or there is
#' only one, too many samples are taken while the process makes system calls.
#'
#' @section What cannot be seen:
#' - Some builtin functions. R does not record calls of builtins unless [Rprof()] runs. If byte-compiled code calls a
#'   builtin by its name, as in `sum(x)` or `.Call(f, x)`, the call is found in the tables of the compiler and is a
#'   frame of the stack. Otherwise the time of the builtin is attributed to its caller. This applies if the caller is
#'   not compiled, as in the first two calls of most functions; if another builtin is the caller; if the compiler
#'   replaces the builtin by instructions, such as arithmetic, comparisons, `[` and `sqrt()`; or if it treats the
#'   builtin as a special function, such as `rep()`. [Rprof()] does not see builtins of the last two kinds either.
#' - Garbage collection, and memory in use.
#' - Native code, except with `native = TRUE`.
#' - More than 20,000 calls of a stack: a call named `<outer calls not read>` replaces the outer calls.
#'
#' @section Native code:
#' With `native = TRUE`, the process is stopped while its stacks are read and copied. Samples then have native frames
#' between R frames, like samples of [start_profiler()]: functions of C, C++, Fortran and Rust, with files and lines if
#' they were compiled with `-g`, and a row in `.mappings` for each library. The column `.frame_type` of `locations` is
#' `"r"` or `"native"`. The sections *Names of native functions* and *Incomplete samples* in [start_profiler()] apply as
#' well. Names are looked up when recording ends. The files of libraries in a container are found. Separate files with
#' debug information are found only on this system.
#'
#' Effects on the process:
#' - It is stopped for 0.05 to 0.15 ms in most samples, longer if its stack is deep, and up to tens of
#'   milliseconds if all CPUs are busy, since the recorder may then have to wait for a CPU.
#' - Only R's thread is stopped; other threads continue.
#' - The system interrupts and continues system calls in which the process waits, as for a signal without a handler:
#'   `Sys.sleep()` takes as long as usual, and sockets and pipes lose no data. A few system calls, such as
#'   `epoll_wait()`, fail with `EINTR`. Programs that use them handle this, since signals have the same effect.
#' - Signals are delivered as usual. A process that was already stopped remains stopped.
#' - It is traced while it is stopped, so no debugger can be attached during that time. If a debugger is already
#'   attached, there is an error. If a debugger is attached later, samples have no native frames.
#'
#' If this R process is interrupted, fails, or is killed, the kernel continues the other process. While the other
#' process waits for a device, it is not stopped, and samples have no native frames.
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
#' @param interval Seconds between two samples.
#' @param clock `"cpu"` for samples while the process uses CPU time, `"wall"` for samples at all times.
#' @param children Whether to also record R processes that the process has started or will start, for example by
#'   `parallel::mclapply()` or the package callr.
#' @param native Whether to record native code as well. The process is stopped for each sample, see *Native code*.
#'
#' @return A profile of version 2.0, see [profile_data]. Each process is a source of type `"process"`. Its process
#'   id, command line and start are in `.source_attributes`.
#'
#'   The sample types are `cpu` and `wall`, in nanoseconds: the CPU time and the real time since the previous sample,
#'   without the intervals that `clock = "cpu"` leaves out. `clock` is the default type. A sample whose CPU time is
#'   not known has no value of `cpu`.
#'
#' @section Errors:
#' - `profile_error_process` if there is no such process, if it does not run R, or if the system does not permit
#'   reading its memory or stopping it; the message gives the reason;
#' - `profile_error_unsupported` on systems other than Linux on x86-64 with the GNU C library;
#' - `profile_error_argument` for invalid arguments.
#' @seealso [dump_stack()] for a single stack
#' @export
#' @examplesIf identical(Sys.info()[["sysname"]], "Linux") && identical(R.version$arch, "x86_64")
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
    pid, seconds = 10, ..., interval = 0.01, clock = c("cpu", "wall"), children = FALSE, native = FALSE) {
  call <- rlang::current_env()
  rlang::check_dots_empty()
  pid <- check_pids(pid, call)
  check_seconds(seconds, "seconds", call)
  check_interval(interval, call)
  clock <- check_choice(clock, c("cpu", "wall"), "clock", call)
  check_flag(children, "children", call)
  check_flag(native, "native", call)
  record_processes(pid, seconds, interval, clock, children, call, native = native)
}

# `check`: whether each stack is read a second time and compared, which only a test switches off.
record_processes <- function(pid, seconds, interval, clock, children, call, check = TRUE, native = FALSE) {
  recorded <- processes_recorded(pid, seconds, interval, clock, children, call, check, native)
  words <- c(format_unread(recorded), format_problem_counts(recorded$problems))
  if (length(words) > 0) {
    warn_profile(
      c(
        "The profile is incomplete.", rlang::set_names(words, "x"),
        if (nrow(recorded$problems) > 0) c("*" = "See `profile_problems()` for details.")
      ),
      "profile_warning_incomplete",
      unread = recorded$unread, problems = recorded$problems, call = call
    )
  }
  recorded$profile
}

# A list: `profile`; `problems` of native stacks, a table of counts; `unread`, the number of stacks that could not be
# read; `cut` and `partial`, the numbers of samples without some outer or inner calls; `ended`, the processes that
# ended; `was_stopped`, whether the user pressed Ctrl-C.
processes_recorded <- function(
    pid, seconds, interval, clock, children, call, check = TRUE, native = FALSE) {
  settings <- list(
    interval = as.numeric(interval), seconds = as.numeric(seconds), clock = clock, children = children,
    check = check, native = native
  )
  lazy <- lazy_columns(call)
  was_stopped <- FALSE
  result <- tryCatch(
    rust(rust_processes_record(pid, settings, lazy), call),
    interrupt = function(condition) {
      was_stopped <<- TRUE
      rust(rust_processes_recorded(lazy), call)
    }
  )
  list(
    profile = new_profile_data(result$tables, "2.0"), problems = result$counts, unread = result$unread, cut = result$cut,
    partial = result$partial, ended = result$ended, was_stopped = was_stopped
  )
}

format_unread <- function(recorded) {
  taken <- recorded$unread + nrow(recorded$profile$samples)
  c(
    if (recorded$unread > 0) {
      paste0(
        format_count(recorded$unread), " of ", count_of(taken, "sample"),
        " could not be read, because R's calls changed each time."
      )
    },
    if (recorded$cut > 0) {
      paste0(count_of(recorded$cut, "sample"), " had more than 20,000 calls, of which the outer ones were left out.")
    },
    # In fewer samples, the effect on shares is smaller than the effect of chance.
    if (recorded$partial > 0.05 * taken) {
      paste0(
        count_of(recorded$partial, "sample"), if (recorded$partial == 1) " lacks" else " lack",
        " the innermost functions, which had returned before they could be read."
      )
    }
  )
}

#' Watch a running R process
#'
#' @description
#' `watch_process()` repeatedly shows where a running R process spends its time, by function and line, until you press
#' Ctrl-C or the process ends. The process is not stopped.
#'
#' In a terminal, each update replaces the previous one. Otherwise, for example in a file, updates are appended.
#'
#' From a shell: `Rscript -e 'profile::watch_process(1234)'`.
#'
#' @inheritParams profile_process
#' @param seconds How long to watch.
#' @param every Seconds between two updates. An update shows the samples since the previous one.
#' @param n The number of functions and of lines to show.
#'
#' @return The profile of the last update, invisibly, see [profile_process()].
#' @inheritSection profile_process Errors
#' @seealso [profile_process()] to keep all samples, [dump_stack()] for one stack
#' @export
#' @examplesIf identical(Sys.info()[["sysname"]], "Linux") && identical(R.version$arch, "x86_64")
#' script <- tempfile(fileext = ".R")
#' writeLines("cat(Sys.getpid(), '\n'); repeat sort(runif(1e5))", script)
#' output <- pipe(paste(shQuote(file.path(R.home("bin"), "Rscript")), shQuote(script)), open = "r")
#' pid <- as.integer(readLines(output, 1))
#'
#' try(watch_process(pid, seconds = 2))
#' tools::pskill(pid)
#' try(close(output), silent = TRUE)
watch_process <- function(
    pid, seconds = Inf, ..., every = 1, interval = 0.01, clock = c("cpu", "wall"), children = FALSE, n = 10) {
  call <- rlang::current_env()
  rlang::check_dots_empty()
  pid <- check_pids(pid, call)
  check_seconds(seconds, "seconds", call)
  check_seconds(every, "every", call)
  check_interval(interval, call)
  clock <- check_choice(clock, c("cpu", "wall"), "clock", call)
  check_flag(children, "children", call)
  check_count(n, "n", call)
  started <- Sys.time()
  shown <- 0
  recorded <- NULL
  repeat {
    left <- seconds - as.numeric(difftime(Sys.time(), started, units = "secs"))
    part <- tryCatch(
      processes_recorded(pid, min(every, max(left, 0.01)), interval, clock, children, call),
      profile_error_process = identity
    )
    if (inherits(part, "error")) {
      # A process may have ended between two updates.
      ended <- if (!is.null(recorded)) setdiff(pid, list_r_processes()$pid)
      if (length(ended) == 0) rlang::cnd_signal(part)
      cat("ended: ", paste(ended, collapse = ", "), "\n", sep = "")
      shown <- 0
      pid <- setdiff(pid, ended)
      if (length(pid) == 0) break else next
    }
    recorded <- part
    lines <- watched_lines(recorded, min(every, seconds), n)
    clear_lines(shown)
    cat(lines, sep = "\n")
    shown <- length(lines)
    pid <- setdiff(pid, recorded$ended)
    if (recorded$was_stopped || left <= every || length(pid) == 0) {
      break
    }
  }
  invisible(recorded$profile)
}

# The lines that are shown for an update.
watched_lines <- function(recorded, every, n) {
  x <- recorded$profile
  width <- line_width(NULL, NULL)
  values <- x$sample_values
  cpu <- sum(values$value[values$type == "cpu"], na.rm = TRUE) / 1e9
  sources <- sub("^pid:", "", x$sources$source_uri)
  head <- paste0(
    "<R ", if (length(sources) == 1) "process " else "processes ", paste(sources, collapse = ", "), "> ",
    trimws(percent(cpu / every)), "% of a CPU, ", count_of(nrow(x$samples), "sample"),
    if (recorded$unread > 0) paste0(", ", format_count(recorded$unread), " not read"),
    if (length(recorded$ended) > 0) paste0(", ended: ", paste(recorded$ended, collapse = ", "))
  )
  summary <- summary(x)
  by_line <- utils::head(summary$by_line[!is.na(summary$by_line$line) & summary$by_line$line > 0, ], n)
  lines <- c(
    head,
    if (nrow(summary$by_function) > 0) format_hottest(summary, n, width),
    if (nrow(by_line) > 0) {
      c(
        "  self%  total%  line",
        paste0(
          " ", percents(by_line$self_share), "  ", percents(by_line$total_share), "  ",
          shown_name(format_place(by_line$filename, by_line$line), width)
        )
      )
    },
    if (nrow(x$samples) == 0 && recorded$unread == 0 && length(recorded$ended) == 0) {
      "It has used no CPU time; `clock = \"wall\"` shows where it waits."
    }
  )
  shorten(lines, width)
}

# Moves the cursor of a terminal up, and clears what is below.
clear_lines <- function(count) {
  if (count > 0 && isatty(stdout())) {
    cat(sprintf("\033[%dA\033[J", count))
  }
}

#' Show the stack of a running R process
#'
#' @description
#' `dump_stack()` returns the stack of a running R process, with files and lines, and reports whether the process
#' computes, sleeps, or waits in a system call. The process is not stopped.
#'
#' From a shell: `Rscript -e 'profile::dump_stack(1234)'`.
#'
#' @details
#' See [profile_process()] for what cannot be seen and which permissions are required.
#'
#' @inheritParams profile_process
#' @param pid The id of the process, see [list_r_processes()].
#' @param x A stack.
#' @param n The number of calls to print; in longer stacks, the calls in the middle are left out.
#' @param width The width of the lines, by default the width of the console.
#'
#' @return A tibble of class `profile_stack` with a row for each call, innermost first, that prints as
#'   [traceback()] does.
#'   \describe{
#'   \item{name}{character: the function}
#'   \item{filename, line}{where the function is; `NA` if its code has no source references}
#'   }
#'   Attributes: `pid`; `command`; `start`, when the process started, as `POSIXct`; `state`, as in
#'   [profile_process()]; `system_call`, the name of the system call that it is in, or `NA`; `children`, the
#'   ids of processes that it has started; `toplevel`, a row with file and line from which the outermost function
#'   was called; `labels`, a named vector, see [with_labels()]; `is_cut`, whether outer calls were left out, because
#'   the stack has more than 20,000 calls.
#' @inheritSection profile_process Errors
#' @seealso [profile_process()]
#' @export
#' @examplesIf identical(Sys.info()[["sysname"]], "Linux") && identical(R.version$arch, "x86_64")
#' script <- tempfile(fileext = ".R")
#' writeLines(c(
#'   "options(keep.source = TRUE)",
#'   "nap <- function(seconds) {",
#'   "  Sys.sleep(seconds)",
#'   "}",
#'   "cat(Sys.getpid(), '\n')",
#'   "nap(1000)"
#' ), script)
#' output <- pipe(paste(shQuote(file.path(R.home("bin"), "Rscript")), shQuote(script)), open = "r")
#' pid <- as.integer(readLines(output, 1))
#'
#' try(dump_stack(pid))
#' tools::pskill(pid)
#' try(close(output), silent = TRUE)
dump_stack <- function(pid) {
  call <- rlang::current_env()
  pid <- check_pids(pid, call)
  if (length(pid) != 1) {
    abort_argument("`pid` must be the number of one process.", call)
  }
  dump <- rust(rust_process_dump(pid), call)
  tibble::new_tibble(
    dump$frames,
    nrow = nrow(dump$frames),
    pid = pid,
    command = readable_command(dump$command),
    start = as.POSIXct(dump$start, origin = "1970-01-01"),
    state = dump$state,
    system_call = c(dump$system_call, NA_character_)[[1]],
    children = dump$children,
    toplevel = dump$toplevel,
    labels = rlang::set_names(dump$labels$values, dump$labels$keys),
    is_cut = dump$is_cut,
    class = "profile_stack"
  )
}

#' List running R processes
#'
#' `list_r_processes()` lists the processes on this machine that run R and that you may inspect, including this one.
#'
#' @return A tibble with a row for each process:
#'   \describe{
#'   \item{pid}{integer: its process id}
#'   \item{state}{character: as in [profile_process()]}
#'   \item{cpu_time}{double: the CPU time of its main thread, in seconds}
#'   \item{start}{`POSIXct`: when it started}
#'   \item{command}{character: its command line}
#'   }
#' @section Errors:
#' `profile_error_unsupported` on systems other than Linux on x86-64 with the GNU C library.
#' @seealso [dump_stack()], [profile_process()]
#' @export
#' @examplesIf identical(Sys.info()[["sysname"]], "Linux") && identical(R.version$arch, "x86_64")
#' list_r_processes()
list_r_processes <- function() {
  processes <- rust(rust_processes(), rlang::current_env())
  processes$start <- as.POSIXct(processes$start, origin = "1970-01-01")
  processes$command <- readable_command(processes$command)
  processes
}

# Rscript replaces blanks and line ends in expressions.
readable_command <- function(command) {
  gsub("~(\\+|n)~", " ", command)
}

check_pids <- function(pid, call) {
  if (missing(pid)) {
    abort_missing("pid", call, i = "`list_r_processes()` lists the numbers of processes.")
  }
  is_whole <- is.numeric(pid) && length(pid) > 0 && !anyNA(pid) && all(pid == trunc(pid))
  if (!is_whole || any(pid < 1 | pid > .Machine$integer.max)) {
    abort_argument(c(
      paste0("`pid` must be the number of a process, not ", describe_object(pid), "."),
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

check_seconds <- function(seconds, name, call) {
  if (!is.numeric(seconds) || length(seconds) != 1 || !isTRUE(seconds > 0)) {
    abort_argument(paste0("`", name, "` must be a positive number, or `Inf`."), call)
  }
}

# ---- Printing ----------------------------------------------------------------------

#' @rdname dump_stack
#' @export
print.profile_stack <- function(x, ...) {
  cat(format(x, ...), sep = "\n")
  invisible(x)
}

#' @rdname dump_stack
#' @export
format.profile_stack <- function(x, ..., n = 50, width = NULL) {
  call <- text_call()
  rlang::check_dots_empty(call = call)
  check_count(n, "n", call)
  width <- line_width(width, call)
  if (is.null(attr(x, "pid")) || !all(c("name", "filename", "line") %in% names(x))) {
    # Columns were removed.
    return(format(as_tibble(x), width = width))
  }
  age <- as.numeric(Sys.time()) - as.numeric(attr(x, "start"))
  head <- c(
    paste0("<R process ", attr(x, "pid"), ">", if (!is.na(age)) paste0(" started ", ago(age))),
    shown_name(attr(x, "command"), width),
    format_activity(attr(x, "state"), attr(x, "system_call"), attr(x, "children"))
  )
  labels <- attr(x, "labels")
  if (length(labels) > 0) {
    head <- c(head, shown_name(paste0("Labels: ", paste0(names(labels), "=", labels, collapse = ", ")), width))
  }
  lines <- if (nrow(x) == 0) "No function is running." else stack_lines(x, n, width)
  shorten(c(head, "", lines), width)
}

#' @export
as_tibble.profile_stack <- function(x, ...) {
  attributes(x) <- attributes(x)[c("names", "row.names")]
  tibble::new_tibble(as.list(x), nrow = length(x[[1]]))
}

stack_lines <- function(x, n, width) {
  number <- rev(seq_len(nrow(x)))
  place <- ifelse(is.na(x$line), "", paste0("  ", format_place(x$filename, x$line)))
  lines <- paste0(format(number), ". ", format(paste0(shown_name(x$name, width), "()")), shown_name(place, width))
  left_out <- nrow(x) - n
  if (left_out > 0) {
    inner <- seq_len(ceiling(n / 2))
    outer <- nrow(x) + 1 - rev(seq_len(n - length(inner)))
    lines <- c(lines[inner], paste0("... and ", count_of(left_out, "call"), " more ..."), lines[outer])
  }
  toplevel <- attr(x, "toplevel")
  c(
    trimws(lines, "right"),
    if (isTRUE(attr(x, "is_cut"))) "... and outer calls, which were not read",
    if (nrow(toplevel) == 1) paste0("called from ", shown_name(format_place(toplevel$filename, toplevel$line), width))
  )
}

# R does not record the file name of the script that Rscript runs.
format_place <- function(filename, line) {
  ifelse(filename %in% c("", NA), paste("line", line), paste0(file_name(filename), ":", line))
}

# What a process is doing: `Sleeping, in the system call clock_nanosleep().`
format_activity <- function(state, system_call, children) {
  words <- c(
    running = "Running", sleeping = "Sleeping", waiting = "Waiting for a device", stopped = "Stopped"
  )
  word <- if (state %in% names(words)) words[[state]] else paste0("In the state \"", state, "\"")
  paste0(
    word,
    if (!is.na(system_call)) paste0(", in the system call ", system_call, "()"),
    if (system_call %in% c("wait4", "waitid")) ", which waits for a child process",
    ".",
    if (length(children) > 0) {
      paste0(
        " It has started ", if (length(children) == 1) "process " else "the processes ",
        paste(children, collapse = ", "), "."
      )
    }
  )
}

# `3.2 s ago`, `2 min ago`, `5.1 h ago`, `12 days ago`.
ago <- function(seconds) {
  units <- c(s = 1, min = 60, h = 3600, days = 86400)
  unit <- sum(units[-1] * 2 <= seconds) + 1
  paste(format(signif(seconds / units[[unit]], 2), trim = TRUE, scientific = FALSE), names(units)[[unit]], "ago")
}
