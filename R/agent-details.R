# The help page about how the agent works, for readers of the status and of the samples. The code is in agent.R,
# agent-rprof.R and relay.R.

#' How the agent takes and sends samples
#'
#' [start_agent()] takes samples by one of two methods. This page describes the samples of each method, and how
#' profiles are sent over HTTP and HTTPS.
#'
#' @section Reading R's memory:
#' With `method = "reader"`, the thread of the agent reads R's stack from memory, as [profile_process()] does for
#' another process. This needs no signal and does not stop R. So the agent does not interfere with [Rprof()],
#' `profvis::profvis()`, [start_profiler()] or debuggers, and they do not interfere with the agent.
#'
#' A sample has two values: the CPU time of R's thread since the previous sample (type `cpu`), and the elapsed time
#' (type `wall`).
#'
#' @section Samples of Rprof():
#' With `method = "rprof"`, [Rprof()] takes the samples: a signal interrupts R after each interval. `Rprof()` writes to
#' a file in memory, which the agent empties every second, and which disappears with the process.
#'
#' A sample has a count of 1 (type `samples`), and `interval` as its time, whose type is `cpu` or `wall`, as in `clock`.
#' CPU time is measured for all threads of the process together. The times of single samples are unknown, so samples
#' with the same stack and labels are summed. `interval` must be at least 0.01, and samples whose functions have more
#' than 10,000 characters are missing.
#'
#' R has only one such profiler. If other code calls `Rprof()`, as `profvis::profvis()` does, this ends the profiler
#' of the agent. The agent then takes no samples until the other profiler has ended and R is idle or `agent_status()`
#' is called; this time is counted as `paused`. [record_profile()] and [start_profiler()] interrupt the agent in the
#' same way. The agent does not start while another profiler is running.
#'
#' @section HTTP and HTTPS:
#' The thread sends profiles to an `http://` URL itself, without using proxies.
#'
#' The thread cannot encrypt. To send to an `https://` URL, it starts a helper: another R process, which sends
#' with the package curl, as [send_otlp()] does, with the same environment variables for certificates and proxies. All
#' agents of a user on a machine share one helper if they use the same library and the same settings for proxies and
#' TLS. If the helper is killed, an agent restarts it and repeats the requests that were being sent, so a part may
#' arrive twice. The helper ends about five seconds after the last agent, however that agent ended.
#'
#' The helper takes about 100 MB of memory and 0.15 percent of a core while it waits. Agents pass requests to it
#' through a folder, one at a time from each agent. The folder is next to the session's temporary directory, usually
#' in `/tmp`; its name is `profile-relay-`, followed by the user id and by letters and digits. Only this user can read
#' it. It contains the headers of a request, possibly with secrets, until the server has responded. The helper removes
#' the folder when it ends.
#'
#' @seealso [start_agent()]; `vignette("always-on", package = "profile")`
#' @name agent_details
NULL
