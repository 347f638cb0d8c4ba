# The status of the agent: the result of `agent_status()` and `stop_agent()`, and how it prints.

# `counts` is NULL if there is no agent in this process.
new_agent_status <- function(counts) {
  state <- agent_state()
  run <- if (state != "none") agent$run
  is_paused <- resume_agent()
  time <- function(seconds) as.POSIXct(c(seconds, NA_real_)[[1]], origin = "1970-01-01")
  numbers <- c(
    "taken", "found", "sent", "queued", "open", "dropped", "dropped_full", "dropped_refused", "dropped_lost", "unread",
    "cut", "paused", "rejected", "chunks_sent", "chunks_queued", "bytes_queued", "snapshots",
    "snapshots_lost", "cpu_time"
  )
  values <- lapply(rlang::set_names(numbers), function(name) if (state == "none") 0 else counts[[name]])
  structure(
    c(
      list(state = if (is_paused) "paused" else state),
      values,
      list(
        last_sent = time(counts$last_sent),
        last_error = if (is.null(counts$last_error)) NA_character_ else counts$last_error,
        last_error_time = time(counts$last_error_time),
        since = if (is.null(run)) time(NULL) else run$since,
        until = if (is.null(run$until)) time(NULL) else run$until,
        pid = if (is.null(run)) Sys.getpid() else run$pid,
        to = if (is.null(run)) NA_character_ else run$to,
        clock = if (is.null(run)) NA_character_ else run$clock,
        interval = if (is.null(run)) NA_real_ else run$interval,
        every = if (is.null(run)) NA_real_ else run$every,
        memory = if (is.null(run$memory)) NA_real_ else run$memory,
        method = if (is.null(run)) NA_character_ else run$method,
        spool = if (is.null(run$spool)) NA_character_ else run$spool
      )
    ),
    class = "profile_agent_status"
  )
}

#' @export
format.profile_agent_status <- function(x, ...) {
  text_call()
  describe_agent_status(x, Sys.time())
}

# The lines to print at the time `now`.
describe_agent_status <- function(x, now) {
  if (x$state == "none") {
    return("<profile agent> not running in this process")
  }
  end <- if (is.na(x$until)) now else x$until
  seconds <- as.numeric(difftime(end, x$since, units = "secs"))
  since <- function(time) ago(max(0, as.numeric(difftime(now, time, units = "secs"))))
  lines <- c(
    paste0(
      "<profile agent> ", x$state, ", process ", x$pid, ", started ", since(x$since),
      if (!is.na(x$until)) paste0(", stopped ", since(x$until))
    ),
    paste0(
      if (x$clock == "cpu") "CPU time" else "All time", " at ", format(signif(1 / x$interval, 3)), " Hz, sent to ", x$to,
      " every ", format(x$every), " s"
    ),
    paste0(
      "Samples: ", format_count(x$taken), " taken",
      if (x$found > 0) paste0(" + ", format_count(x$found), " of earlier processes"), " = ",
      format_count(x$sent), " sent + ", format_count(x$queued), " queued + ", format_count(x$open),
      " in the current part + ", format_count(x$dropped), " dropped"
    ),
    if (x$dropped > 0) {
      paste0(
        "Dropped: ", format_count(x$dropped_full), " because the queue was full, ", format_count(x$dropped_refused),
        " refused, ", format_count(x$dropped_lost), " lost"
      )
    },
    if (x$paused >= 1) {
      paste0("No samples while another profiler ran: ", format_count(round(x$paused)), " s")
    },
    if (x$unread > 0) paste0("Stacks that could not be read: ", format_count(x$unread)),
    if (x$rejected > 0) paste0("Profiles rejected by the server: ", format_count(x$rejected)),
    if (x$chunks_queued > 0) {
      paste0(
        "Queue: ", count_of(x$chunks_queued, "part"), ", ", mebibytes(x$bytes_queued), ", in ", x$spool,
        if (x$state == "stopped") "; the next agent with this target sends them"
      )
    },
    if (!is.na(x$memory)) {
      lost <- if (x$snapshots_lost > 0) paste0(", ", format_count(x$snapshots_lost), " failed")
      paste0("Snapshots of R's heap: ", format_count(x$snapshots), lost,
        if (identical(x$memory, "peak")) ", at peaks of the memory" else paste0(", one every ", format(x$memory), " s"))
    },
    if (!is.na(x$last_sent)) paste0("Last sent: ", since(x$last_sent)),
    if (!is.na(x$last_error)) paste0("Last error, ", since(x$last_error_time), ": ", x$last_error),
    paste0(
      "Cost: ", format(signif(x$cpu_time, 2), scientific = FALSE), " s of CPU time, ",
      format(signif(100 * x$cpu_time / max(seconds, 1e-3), 2), scientific = FALSE), "% of a core"
    )
  )
  printable(lines)
}
