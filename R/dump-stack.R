# The stack of an R process at one moment, of a running one or from a core file, and how it prints.

#' Show the stack of an R process, running or from a core file
#'
#' @description
#' `dump_stack()` returns the stack of a running R process, with files and lines, and reports whether the process
#' computes, sleeps, or waits in a system call. If it runs, it is stopped for a moment.
#'
#' If a process crashed, or was killed because it hung, `dump_stack("core.1234")` returns its stack from the core file.
#'
#' From a shell: `profile dump 1234` or `profile dump core.1234`, see `vignette("processes")`.
#'
#' @details
#' See [profile_process()] for what cannot be seen and which permissions are required.
#'
#' @section Waiting:
#' `waits_for` says what a process waits for, and `waits_for_name` the name of it, if it is known. What R does decides
#' first, then the system call and what its file descriptors refer to:
#'
#' | `waits_for` | situation | `waits_for_name` |
#' |---|---|---|
#' | `network` | a server or a client, such as a database, a download, a worker of a cluster | its address, such as `127.0.0.1:5432` |
#' | `file` | a file that is read, written or flushed, or a terminal; standard input that is a file | its path |
#' | `child` | the end of a child process, as in [system()] | its program |
#' | `pipe` | the other end of a pipe, such as the output of a child or standard input, or of a local (unix) socket | the program of a child; the path of a socket |
#' | `lock` | a lock of a file, or of threads | the path of a file |
#' | `threads` | other threads of the process, which compute meanwhile; only in recordings | |
#' | `processor` | a processor: it could run, but others do, or its cgroup is throttled; only in recordings | |
#' | `page fault` | memory that is read from a file, by the kernel | |
#' | `sleep` | [Sys.sleep()], or another call that only waits for a time | |
#' | `idle` | R waits for work: at the prompt, in the loop of the package later, as Shiny and plumber do, or as a worker for its master | |
#' | `unknown` | another system call, or one of which the system does not permit to know more | |
#'
#' In recordings with `clock = "wall"` of [profile_process()] and [watch_process()], of `children`, and of the agent, see
#' [start_agent()], each sample that does not compute has the label `waits_for`, and, if the name is known, the label
#' `waits_for.name`: files without their folders, and other processes of the recording by their role, such as `worker 2`.
#' `summary(x, by = "waits_for")` sums the samples, `filter_profile(x, labels = c(waits_for = "network"))` selects some, and
#' the page colours them. [describe_profile()] shows the sums.
#'
#' - A wait is looked up once: a process that was given no processor since the last sample is still in it.
#' - A server that waits for another one without blocking, as with the package promises, looks like one without work: both are
#'   `idle`, except while a span is active, see [tracer_provider].
#' - `processor` is where the process could have run. A process that lost its processor while it was computing keeps its CPU
#'   time. The exact sum is in `.source_attributes`, in nanoseconds, also for `clock = "cpu"` and for [record_profile()]:
#'   `profile.cpu.delay`. `profile.cpu.throttled` is how long its cgroup was throttled meanwhile, which the kernel counts for
#'   all processes of the cgroup together.
#' - The other end of a pipe or a local connection is known among the children of the process and the other processes of the
#'   recording. For local sockets without a path, only the agent can know the path of the other end.
#' - Reading a file from a disk is mostly the kernel's work, and then computing.
#' - If the system does not permit to look, as for the agent in a process that is not dumpable, all waits are `unknown`,
#'   `.source_attributes` has `profile.waits.refused`, and [agent_status()] says so in `last_error`.
#'
#' @section Core files:
#' Linux writes a core file when a process crashes, if the limit on its size allows it (`ulimit -c unlimited`). Where it
#' is depends on the system: see core(5) and, with systemd, coredumpctl(1). `kill -ABRT 1234` ends a process with a core
#' file. `gcore 1234`, a part of GDB, writes a core file and lets the process continue.
#'
#' The core file is enough: `dump_stack()` needs neither debug symbols nor the R installation of the process, which may
#' have run in a container, on another machine, or with another version of R. It reads only the parts that it needs, so
#' the core file may be larger than the memory.
#'
#' Decompress core files of systemd-coredump first: `coredumpctl dump -o core 1234`, or `zstd -d FILE`.
#'
#' @param pid The id of the process, see [list_r_processes()], or the path of a core file.
#' @param x A stack.
#' @param ... Must be empty.
#' @param n The number of calls to print, by default 50; `Inf` for all. In longer stacks, the calls in the middle are left
#'   out.
#' @param width The width of the lines, by default the width of the console.
#'
#' @return A tibble of class `profile_stack` with a row for each call, innermost first, that prints as
#'   [traceback()] does.
#'   \describe{
#'   \item{name}{character: the function}
#'   \item{filename, line}{where the function is; `NA` if its code has no source references}
#'   \item{package}{character: the package that the function belongs to; `NA` if it belongs to none, or if it is unknown}
#'   }
#'   Attributes: `pid`; `command`; `start`, when the process started, as `POSIXct`; `state`, as in
#'   [profile_process()]; `system_call`, the name of the system call that it is in, or `NA`; `waits_for` and
#'   `waits_for_name`, see below, or `NA`; `children`, the
#'   ids of processes that it has started; `toplevel`, a row with file and line from which the outermost function
#'   was called; `labels`, a named vector, see [with_labels()]; `is_cut`, whether outer calls were left out, because
#'   the stack has more than 100,000 calls, or inner calls ended before outer ones were read; `unknown`, the version of R
#'   if the layout of its contexts is unknown, so that only the innermost function may have a place, else empty.
#'
#'   From a core file, `start` is `NA`, `children` is empty, and there are two more attributes: `core`, the path of the
#'   file, and `signal`, the name of the signal that ended the process, such as `"SIGSEGV"`, or `NA`. If a signal ended
#'   it, `state` is `"killed"`.
#'
#' @section Errors:
#' - `profile_error_process` if there is no such process, if it does not run R, or if the system does not permit
#'   reading its memory; or if R's stack cannot be read from a core file, because the process did not run R, or a part
#'   of its memory is missing; the message gives the reason;
#' - `profile_error_open` if a core file cannot be opened;
#' - `profile_error_parse` if the file is not a core file, is compressed, or is damaged;
#' - `profile_error_unsupported` for processes on systems other than `r live_platforms()`, and for core files of other
#'   machines;
#' - `profile_error_argument` for invalid arguments.
#' @seealso [profile_process()]
#' @export
#' @examplesIf profile:::is_live_platform()
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
  core <- if (!missing(pid) && is_core_path(pid)) file_path(pid, "profile_error_open", call)
  if (is.null(core)) {
    dump <- rust(rust_process_dump(check_pid(pid, call)), call)
  } else {
    dump <- rust(rust_core_dump(core), call)
  }
  x <- tibble::new_tibble(
    dump$frames,
    nrow = nrow(dump$frames),
    pid = dump$pid,
    command = readable_command(dump$command),
    start = as.POSIXct(if (is.nan(dump$start)) NA_real_ else dump$start, origin = "1970-01-01"),
    state = dump$state,
    system_call = c(dump$system_call, NA_character_)[[1]],
    waits_for = c(dump$waits_for, NA_character_)[[1]],
    waits_for_name = c(dump$waits_for_name, NA_character_)[[1]],
    children = dump$children,
    toplevel = dump$toplevel,
    labels = rlang::set_names(dump$labels$values, dump$labels$keys),
    is_cut = dump$is_cut,
    unknown = dump$unknown,
    class = "profile_stack"
  )
  if (!is.null(core)) {
    attr(x, "core") <- core[[2]]
    attr(x, "signal") <- c(dump$signal, NA_character_)[[1]]
  }
  x
}

# A number in quotes is a mistake, unless there is such a file: the kernel may be set up to name core files so.
is_core_path <- function(pid) {
  is_path(pid) && nzchar(pid) && (!grepl("^ *[0-9]+ *$", pid) || file.exists(pid))
}

# ---- Printing ----------------------------------------------------------------------

#' @rdname dump_stack
#' @export
format.profile_stack <- function(x, ..., n = NULL, width = NULL) {
  is_whole <- !is.null(attr(x, "pid")) && all(c("name", "filename", "line") %in% names(x))
  text_of_table(x, n, width, is_whole, text_of_stack)
}

text_of_stack <- function(x, n, width) {
  age <- as.numeric(Sys.time()) - as.numeric(attr(x, "start"))
  head <- c(
    paste0(
      "<R process ", attr(x, "pid"), ">",
      if (!is.na(age)) paste0(" started ", ago(age)),
      if (!is.null(attr(x, "core"))) shown_name(paste0(" from ", attr(x, "core")), width)
    ),
    command_lines(attr(x, "command"), width),
    wrap("", format_activity(
      attr(x, "state"), attr(x, "system_call"), attr(x, "children"), attr(x, "signal"),
      attr(x, "waits_for"), attr(x, "waits_for_name")
    ), width)
  )
  labels <- attr(x, "labels")
  if (length(labels) > 0) {
    head <- c(head, shown_name(paste0("Labels: ", paste0(names(labels), "=", labels, collapse = ", ")), width))
  }
  lines <- if (nrow(x) == 0) "No function is running." else stack_lines(x, n, width)
  unknown <- sprintf("The layout of the contexts of %s is unknown: only the first line may have a place.", attr(x, "unknown"))
  hint <- c(unknown, if (all(is.na(x$line))) hint_without_lines())
  hint <- if (nrow(x) > 0 && length(hint) > 0) wrap("", hint[[1]], width)
  shorten(c(head, "", lines, hint), width)
}

#' @export
as_tibble.profile_stack <- function(x, ...) without_class(x)

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
format_activity <- function(state, system_call, children, signal = NULL, waits_for = NULL, name = NULL) {
  words <- c(
    running = "Running", sleeping = "Sleeping", waiting = "Waiting for a device", stopped = "Stopped"
  )
  word <- if (state == "killed") {
    paste("Killed by", signal)
  } else if (state %in% names(words)) {
    words[[state]]
  } else {
    paste0("In the state \"", state, "\"")
  }
  paste0(
    word,
    if (!is.na(system_call)) paste0(", in the system call ", system_call, "()"),
    format_wait(waits_for, name),
    ".",
    if (length(children) > 0) {
      paste0(
        " It has started ", if (length(children) == 1) "process " else "the processes ",
        paste(children, collapse = ", "), "."
      )
    }
  )
}

# `, and waits for the network: 127.0.0.1:5432`. The name may be the path of a file or the address of a server.
format_wait <- function(waits_for, name) {
  words <- c(
    network = "the network", file = "a file", child = "a child process", pipe = "a pipe", lock = "a lock",
    "page fault" = "memory that is read from a file", idle = "work"
  )
  if (!is.null(waits_for) && waits_for %in% names(words)) {
    paste0(", and waits for ", words[[waits_for]], if (!is.na(name)) paste0(": ", shown_text(name)))
  }
}
