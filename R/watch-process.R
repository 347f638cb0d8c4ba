# Shows again and again where a running R process spends its time, and takes a snapshot of its memory at the peak.

#' Watch a running R process
#'
#' @description
#' `watch_process()` repeatedly shows where a running R process spends its time, by function and line, until you press
#' Ctrl-C or the process ends. While it runs, it is stopped for a moment for each sample, see
#' [profile_process()].
#'
#' With `clock = "wall"`, an update also shows what the process waits for, see *Waiting* in [dump_stack()].
#'
#' An update also shows the highest memory of the process since the previous one, and, with `children = TRUE`, of all processes
#' together, see *Memory* in [profile_process()].
#'
#' In a terminal, each update replaces the previous one. Otherwise, for example in a file, updates are appended.
#'
#' With `snapshot = "peak"`, it also answers *What was the memory used for when it was highest?*, even if the process is then
#' killed because memory runs out: the result is the last snapshot of its heap, for [holders()].
#'
#' From a shell: `profile top 1234`, see `vignette("processes")`.
#'
#' @section Snapshots of the peak:
#' With `snapshot = "peak"`, the memory of the process (*resident set size*) is read every 0.02 seconds. Whenever it is 10%
#' more than at the last snapshot, another one replaces it, see [snapshot_memory()]. For each of them the process is stopped
#' for about 0.1 seconds for a million objects: in total for at most a tenth of the time and one more second. If this is used
#' up, the next snapshot is taken later, if the memory is still as high.
#'
#' A peak that is shorter than this can be missed: it has no snapshot, or one in which what it has used is already
#' `garbage not collected yet`. The highest memory is known nevertheless, since the kernel notes it; the last lines show it
#' and the memory at the snapshot. In `.source_attributes`, `profile.memory.peak` is the highest memory of the process in
#' bytes, and `profile.memory.snapshots` the number of snapshots.
#'
#' Only processes in `pid` have snapshots, not their children.
#'
#' @section Processes that were killed:
#' If there is no memory left, the kernel kills a process by signal 9 (`SIGKILL`). If the process belongs to a *cgroup* with a
#' limit, as in containers and in jobs of batch systems, that happens when the limit is reached. The kernel counts such kills
#' for each cgroup. If a process ends by signal 9, and its cgroup has had one more of them in the last ten seconds, it was
#' killed for memory. If the kernel has counted one elsewhere on the machine, or if the signal is unknown because another
#' process was notified first, the message says that both happened at the same time, and no more. Otherwise another process
#' may have sent the signal. If little memory was left at the last reading, the message says how much. The column `value` of
#' `.source_attributes` contains how a process ended, for the key `profile.process.end`, unless it ended by itself.
#'
#' @inheritParams profile_process
#' @param seconds How long to watch.
#' @param every Seconds between two updates. An update shows the samples since the previous one.
#' @param n The number of functions and of lines to show; `Inf` for all.
#' @param snapshot `"peak"` for snapshots of the heap whenever memory is highest, `NULL` for none. See *Snapshots of the peak*.
#'
#' @return The profile of the last update, invisibly, see [profile_process()]. With `snapshot = "peak"`, the last snapshot,
#'   a profile as described in [snapshot_memory()], with a source for each process.
#' @inheritSection profile_process Errors
#' @seealso [profile_process()] to keep all samples, [dump_stack()] for one stack, [snapshot_memory()] for one snapshot
#' @export
#' @examplesIf profile:::is_live_platform()
#' script <- tempfile(fileext = ".R")
#' writeLines("cat(Sys.getpid(), '\n'); repeat sort(runif(1e5))", script)
#' output <- pipe(paste(shQuote(file.path(R.home("bin"), "Rscript")), shQuote(script)), open = "r")
#' pid <- as.integer(readLines(output, 1))
#'
#' try(watch_process(pid, seconds = 1, every = 0.5))
#'
#' # What was its memory used for when it was highest?
#' x <- try(watch_process(pid, seconds = 1, snapshot = "peak"))
#' try(holders(x, n = 3))
#' tools::pskill(pid)
#' try(close(output), silent = TRUE)
watch_process <- function(
    pid, seconds = Inf, ..., every = 1, interval = 0.01, clock = c("cpu", "wall"), children = FALSE, n = 10,
    pause = TRUE, snapshot = NULL) {
  call <- call_without_dots()
  pid <- check_pids(pid, call)
  children <- check_children(children, call)
  clock <- checked_clock(clock, seconds, interval, pause, call)
  check_seconds(every, "every", call)
  n <- check_most_rows(n, call)
  check_snapshot(snapshot, call)
  if (!is.null(snapshot)) {
    rust(rust_peaks_start(pid), call)
    # If this is interrupted or fails.
    on.exit(rust(rust_peaks_end(FALSE), NULL))
  }
  started <- Sys.time()
  shown <- 0
  recorded <- NULL
  notes <- character()
  repeat {
    left <- seconds - as.numeric(difftime(Sys.time(), started, units = "secs"))
    part <- tryCatch(
      processes_recorded(pid, min(every, max(left, 0.01)), interval, clock, children, call, pause),
      profile_error_process = identity
    )
    if (inherits(part, "error")) {
      # A process may have ended between two updates, or just after its first snapshot.
      ended <- if (!is.null(recorded) || !is.null(snapshot)) setdiff(pid, list_r_processes()$pid)
      if (length(ended) == 0) rlang::cnd_signal(part)
      cat("ended: ", paste(ended, collapse = ", "), "\n", sep = "")
      shown <- 0
      pid <- setdiff(pid, ended)
      if (length(pid) == 0) break else next
    }
    recorded <- part
    # A terminal shows the last update only; in a file, a note is not repeated.
    known <- if (isatty(stdout())) character() else notes
    lines <- watched_lines(recorded, min(every, seconds), n, known, if (!is.null(snapshot)) peaks_so_far())
    notes <- union(notes, watched_note(recorded))
    clear_lines(shown)
    cat(lines, sep = "\n")
    shown <- length(lines)
    pid <- setdiff(pid, c(recorded$ended, recorded$left))
    if (recorded$was_stopped || left <= every || length(pid) == 0) {
      break
    }
  }
  if (is.null(snapshot)) {
    return(invisible(recorded$profile))
  }
  ended <- end_peaks(call)
  on.exit()
  cat(c(format_endings(ended$endings), format_peaks(ended, n, line_width(NULL, NULL))), sep = "\n")
  invisible(ended$snapshot)
}

# The lines that are shown for an update. `known`: notes that were shown before. `peaks`: see `peaks_so_far()`.
watched_lines <- function(recorded, every, n, known = character(), peaks = NULL) {
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
    format_waits(x),
    if (nrow(by_line) > 0) {
      c(
        "  self%  total%  line",
        paste0(
          " ", percents(by_line$self_share), "  ", percents(by_line$total_share), "  ",
          shown_name(format_place(by_line$filename, by_line$line), width)
        )
      )
    },
    unlist(lapply(setdiff(watched_note(recorded), known), function(note) wrap("", note, width))),
    format_left(recorded$left),
    if (is.null(peaks)) {
      c(format_peak(described_peak(x), width), format_endings(recorded$endings))
    } else {
      paste0(
        if (nrow(peaks) > 1) paste0("Process ", peaks$pid, ": "), bytes_text(peaks$resident), " of memory, at most ",
        bytes_text(peaks$highest), ", snapshot at ", bytes_text(peaks$taken)
      )
    }
  )
  shorten(lines, width)
}

# `Waits for: network 60%, sleep 12%`, of the real time; NULL if that is unknown.
format_waits <- function(x) {
  if (has_label(x, "waits_for")) {
    rows <- summary(x, by = "waits_for")
    rows <- rows[!is.na(rows$waits_for) & rows$total_share >= 0.005, ]
    if (nrow(rows) > 0) {
      paste0("Waits for: ", paste0(rows$waits_for, " ", trimws(percent(rows$total_share)), "%", collapse = ", "))
    }
  }
}

# Why an update shows no functions, or no lines.
watched_note <- function(recorded) {
  x <- recorded$profile
  gone <- length(recorded$ended) + length(recorded$left)
  if (nrow(x$samples) == 0 && recorded$unread == 0 && gone == 0) {
    "It was not computing at any sample; `clock = \"wall\"` shows where it waits."
  } else if (nrow(x$samples) > 0 && !has_lines_of_r(x)) {
    hint_without_lines(x)
  }
}

# Moves the cursor of a terminal up, and clears what is below.
clear_lines <- function(count) {
  if (count > 0 && isatty(stdout())) {
    cat(sprintf("\033[%dA\033[J", count))
  }
}
