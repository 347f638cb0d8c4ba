# The agent: a thread that continuously profiles this process and sends the profiles, see src/rust/agent.
#
# R starts it, stops it, and queries its status. Everything else happens without R, except that chunks for an R
# function wait in a temporary spool until R calls it.

#' Continuously profile this R process
#'
#' @description
#' `start_agent()` starts a thread that samples the stack of this R process as long as the process runs. Every few
#' seconds the thread sends the samples to an OpenTelemetry collector or Grafana Pyroscope, to a folder, or to a
#' function. The agent is made for services and long jobs: it takes one to two percent of a core while R computes and
#' less than one percent while R waits, and its memory is bounded.
#'
#' `agent_status()` reports the state of the agent and how many samples were taken, sent and dropped. `stop_agent()`
#' stops the agent.
#'
#' To send to a server, the agent needs the package curl. It requires R 4.2 or later on `r live_platforms()`, and R 4.3
#' or later on other 64-bit Linux. See `method`.
#'
#' @details
#' ## What is recorded
#'
#' Samples contain R functions with files and lines, but no native code. With `clock = "cpu"`, no samples are taken
#' while R waits. Labels of [with_labels()], such as the route of a request, become labels of the samples. With
#' `method = "reader"`, samples also have the ids of the active span, see [with_span_ids()], and its
#' name, see [tracer_provider]. Forked processes, for example of `parallel::mclapply()`, have no agent, but can start
#' their own.
#'
#' [agent_details] describes the sample types, and how the agent takes and sends samples.
#'
#' ## Memory
#'
#' Each profile contains how much memory R and its process use, so that a leak is visible before anybody looks for it:
#' see [agent_details]. With `memory = 3600`, the agent also takes a snapshot of R's heap once an hour, as
#' [snapshot_memory()] does with `gc = FALSE`, and sends it like a profile. [holders()] shows who holds the memory of one
#' snapshot, and [compare_profiles()] what has grown between two.
#'
#' With `memory = "peak"`, the agent takes a snapshot whenever the memory of the process is at least 10% more than at the last
#' one, so that the last snapshot before a container runs out of memory shows what it was used for. They take at most a second
#' of CPU time and 5% of the time. A peak that is shorter than 0.02 seconds, or that comes while another snapshot is being
#' taken, can be missed. If a snapshot could need more memory than the limit of the cgroup (of the container) or the machine
#' leaves, it is not taken: `agent_status()` counts it in `snapshots_lost`, and `last_error` says why.
#'
#' A snapshot stops R for some 50 milliseconds for each GB of memory. It takes about half a second of CPU time for a
#' million objects, in another thread, and 120 bytes of memory for each object.
#'
#' ## Where profiles go
#'
#' | `to` | profiles are |
#' |---|---|
#' | a URL | sent to an OpenTelemetry server, by the rules of [send_otlp()] for endpoints |
#' | `NULL` | sent in the same way, to the URL in the environment variables of [send_otlp()] |
#' | a folder, which is created if its parent folder exists | written to files in the format of [write_pprof()]. They never replace each other, so that containers can share a folder. [forward_profiles()] can send them |
#' | a function | passed to this function, as an object like the result of [profile_process()] |
#'
#' Samples are sent in parts, one every `every` seconds.
#'
#' For a URL, parts wait in a folder, the spool, until another R process has sent them, see [agent_details]. The spool
#' has at most 16 MB for each agent, after compression; the option `profile.agent_queue_mb` changes this limit. If it is
#' full, the oldest parts are dropped. Errors are retried by the rules of [send_otlp()], but any number of times, and
#' timeouts as well; `Retry-After` is respected up to a day. Parts that the server refuses, and parts that cannot be
#' written, for example because the disk is full, are dropped. `agent_status()` counts what was dropped.
#'
#' If `to` is a function, R's thread calls it when R is idle: after a command at R's prompt, and, if the package later
#' is installed, whenever an application with an event loop, such as a Shiny app or a plumber API, waits for requests.
#' In a script that only computes, `agent_status()` and `stop_agent()` call it. If the function fails, the part is
#' dropped and counted.
#'
#' When R quits, or the package is unloaded, the agent waits for up to three seconds until the remaining parts are sent;
#' it does not wait if the server is unavailable. Parts that remain, also of a process that is killed, stay in the
#' spool. They are sent later, at the latest when an agent of this user starts on this machine with the same URL,
#' headers, and settings for proxies and TLS. Its status counts their samples as `found`. A process that is killed loses
#' only the current part. In rare cases, a part arrives twice, with the same profile id.
#'
#' ## Profile an application without changing its code
#'
#' The agent starts when this package is loaded if the environment variable `R_PROFILE_AGENT` is set: to `true` or `1`
#' to send profiles to the endpoint in the environment variables, or to a value for `to`. To load the package in every
#' R process, set `R_DEFAULT_PACKAGES`:
#'
#' ```sh
#' export R_PROFILE_AGENT=true
#' export R_DEFAULT_PACKAGES=datasets,utils,grDevices,graphics,stats,methods,profile
#' export OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318
#' export OTEL_SERVICE_NAME=my-api
#' Rscript app.R
#' ```
#'
#' Or add the line `if (Sys.getenv("R_PROFILE_AGENT") != "") invisible(loadNamespace("profile"))` to `Rprofile.site`. If
#' the agent cannot start, there is a warning (a message if the option `warn` is 2), and the application runs without
#' it.
#'
#' The agent respects these environment variables of OpenTelemetry:
#'
#' - the variables of [send_otlp()];
#' - `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` (`key=value,key=value`, percent-encoded) for the resource. The
#'   argument `resource` takes precedence. A variable that is not valid, for example because it is text in another
#'   encoding than the locale's, is not used, with a warning of class `profile_warning_environment`;
#' - `OTEL_SDK_DISABLED=true`, which prevents `R_PROFILE_AGENT` from starting the agent.
#'
#' `R_PROFILE_AGENT_SPOOL` is the default of `spool`.
#'
#' @section Lines of packages:
#' Functions without source references have positions in their byte code, unless profiles are sent to a server: files such as
#' `<bytecode: 994122ed43c5ff49>`. [add_source_text()] replaces them by lines of the deparsed functions, in a session with the
#' same version of R in which the packages are loaded. With the option `profile.deparsed_lines = 0`, there are none.
#'
#' @param to Where to send profiles: the URL of a server, the path of a folder, a function, or `NULL` to use
#'   environment variables. See *Where profiles go*.
#' @param ... Must be empty.
#' @param interval Seconds between two samples, on average: the times are irregular, so that they are not in step with
#'   R.
#' @param every Seconds between two profiles that are sent.
#' @param clock `"cpu"` for samples while R computes, `"wall"` for samples at all times.
#' @param resource Attributes of the service or job that is profiled: a named character vector, such as
#'   `c(service.name = "my-api", service.version = "1.2")`. `service.name` is `unknown_service:R` by default.
#'   `service.instance.id` and `process.creation.time` identify the process, whose parts are one run in a store.
#' @param method How samples are taken: `"reader"` reads R's memory, which requires `r live_platforms()`;
#'   `"rprof"` uses [Rprof()], which requires R 4.3, or R 4.4 for `clock = "wall"`, and 64-bit Linux. `"auto"` is
#'   `"reader"` if that works, otherwise `"rprof"`.
#' @param headers Headers of the requests: a named character vector.
#' @param timeout For `start_agent()`, the number of seconds that each request may take. For `stop_agent()`, the number
#'   of seconds to wait until the remaining parts are sent, if the server is available.
#' @param spool For a URL: a folder in which parts wait until they are sent, which must not be accessible to others. It
#'   is created if it does not exist. `NULL` is the folder in the environment variable `R_PROFILE_AGENT_SPOOL`, or a
#'   folder next to the temporary folders of R sessions, usually in `/tmp`. Provide a folder that outlives a container
#'   if parts should as well.
#' @param memory Seconds between two snapshots of R's heap, `"peak"` for snapshots whenever the memory is higher than before,
#'   or `NULL` for no snapshots. See *Memory*.
#' @param waits With `clock = "wall"` and `method = "reader"`, samples have the label `waits_for`, see *Waiting* in
#'   [dump_stack()]. `"names"` adds the label `waits_for.name`: addresses of servers, names of files and of programs, which
#'   may be private.
#'
#' @return `start_agent()`: `NULL`, invisibly.
#'
#'   `agent_status()` and, invisibly, `stop_agent()`: an object of class `profile_agent_status`, a list with these
#'   elements:
#'   \describe{
#'   \item{state}{`"running"`, `"paused"` if another profiler runs instead of the agent's, `"stopped"`, `"failed"` if
#'   the thread has ended on its own, or `"none"` if no agent was started in this process}
#'   \item{taken}{number of samples that were taken}
#'   \item{found}{number of samples that earlier processes have left in the spool. `taken + found` always equals
#'   `sent + queued + open + dropped`}
#'   \item{sent}{samples that have arrived}
#'   \item{queued, open}{samples in the spool, and samples in the current part}
#'   \item{dropped}{samples that were lost: the sum of `dropped_full` (the spool was full), `dropped_refused` (the
#'   server or function refused them), and `dropped_lost` (they could not be written, for example because the disk or
#'   memory was full, or files in the spool were removed)}
#'   \item{unread}{number of times that a stack could not be read because it changed during each attempt. These do not
#'   count as samples}
#'   \item{cut}{samples whose outer calls were left out, see *What cannot be seen* in [profile_process()]}
#'   \item{paused}{seconds without samples, because other code used R's profiler, or because it was not yet restarted
#'   for the agent}
#'   \item{rejected}{profiles that the server rejected, in parts that it accepted}
#'   \item{chunks_sent, chunks_queued, bytes_queued}{number of parts that were sent and that are in the spool, and their
#'   size in bytes, including snapshots}
#'   \item{snapshots, snapshots_lost}{number of snapshots of R's heap, and of those that could not be taken or stored}
#'   \item{cpu_time}{seconds of CPU time that the thread, and those for snapshots, have used}
#'   \item{last_sent}{when the last part was sent, as `POSIXct`}
#'   \item{last_error, last_error_time}{the last error, and when it occurred}
#'   \item{since, until}{when the agent was started and stopped}
#'   \item{pid, to, clock, interval, every, memory, method}{the process and the arguments; `memory` is `NA` without
#'   snapshots}
#'   \item{spool}{the folder in which parts wait, `NA` if `to` is a folder}
#'   }
#'
#' @section Errors:
#' - `profile_error_argument` for invalid arguments, if the agent is already running (`start_agent()`), and if it is
#'   not running (`stop_agent()`);
#' - `profile_error_unsupported` on other systems, if `Rprof()` cannot be used, with `memory` if R's memory cannot be
#'   read, for a URL if curl is not installed, and if the spool belongs to another user or can be read by others;
#' - `profile_error_write` if a folder or the spool cannot be created;
#' - `profile_error_process` if R's memory, or its heap for snapshots, cannot be read;
#' - `profile_error_memory` if there is not enough memory.
#' @seealso [profile_process()] to profile a process from outside; [forward_profiles()] to send profiles in a folder
#' @export
#' @examples
#' if (profile:::is_live_platform() && interactive()) {
#'   folder <- tempfile("profiles-")
#'   start_agent(folder, every = 1)
#'   for (i in 1:50) sort(runif(1e6))
#'   agent_status()
#'   stop_agent()
#'   dir(folder)
#' }
start_agent <- function(
    to = NULL, ..., interval = 0.01, every = 15, clock = c("cpu", "wall"), resource = character(),
    method = c("auto", "reader", "rprof"), headers = character(), timeout = 10, spool = NULL, memory = NULL,
    waits = c("classes", "names")) {
  call <- call_without_dots()
  check_interval(interval, call)
  check_every(every, interval, call)
  check_memory(memory, every, call)
  clock <- check_choice(clock, c("cpu", "wall"), "clock", call)
  method <- check_choice(method, c("auto", "reader", "rprof"), "method", call)
  waits <- check_choice(waits, c("classes", "names"), "waits", call)
  check_texts(resource, "resource", call)
  check_sending(timeout, 0, call)
  if (agent_state() == "running") {
    abort_argument("The agent is running already; `stop_agent()` stops it.", call)
  }
  if (!is.null(spool) && (!is_path(spool) || spool == "")) {
    abort_argument("`spool` must be the path of a folder, or `NULL`.", call)
  }
  resource <- agent_resource(resource, call)
  settings <- c(
    list(
      interval = as.numeric(interval), every = as.numeric(every), memory = agent_memory(memory), clock = clock, waits = waits,
      lease = character(),
      keys = as.list(enc2utf8(names(resource))), values = as.list(enc2utf8(unname(resource)))
    ),
    agent_target(to, headers, timeout, resource, spool, call)
  )
  run_agent(settings, method, memory, if (is.function(to)) to, call)
  invisible(NULL)
}

# `give`: the user's function that receives the chunks.
run_agent <- function(settings, method, memory, give, call) {
  # Servers cannot look up their lines, see R/code-lines.R.
  settings$positions <- settings$kind != "forward" && most_deparsed_lines(call) > 0
  method <- start_sampling(settings, method, call)
  agent$run <- list(
    pid = Sys.getpid(), since = Sys.time(), until = NULL, to = settings$shown, clock = settings$clock,
    interval = settings$interval, every = settings$every, memory = memory, method = method,
    spool = if (settings$kind != "folder") settings$path[[1]]
  )
  agent$give <- give
  at_quit(agent, stop_agent_before_end)
  if (is.function(give) || method == "rprof") {
    work_when_idle()
  }
}

#' @rdname start_agent
#' @export
agent_status <- function() {
  if (agent_state() == "running") {
    deliver_chunks()
  }
  new_agent_status(rust(rust_agent_status(), rlang::current_env()))
}

#' @rdname start_agent
#' @export
stop_agent <- function(timeout = 3) {
  call <- rlang::current_env()
  if (!is.numeric(timeout) || length(timeout) != 1 || !isTRUE(timeout >= 0 && timeout < 1e6)) {
    abort_argument("`timeout` must be a number of seconds, 0 or greater.", call)
  }
  if (agent_state() == "none" || !is.null(agent$run$until)) {
    abort_argument("The agent is not running; `start_agent()` starts it.", call)
  }
  status <- end_agent(timeout)
  if (length(agent$run$skipped) > 0) {
    warn_profile(
      c("Some profiles of the agent are incomplete.", rlang::set_names(agent$run$skipped, "x")),
      "profile_warning_incomplete", call = call
    )
  }
  invisible(status)
}

# `run` describes the last agent, and `give` is the user's function that receives its chunks.
agent <- new.env(parent = emptyenv())

# "running", "stopped", "failed", or "none".
agent_state <- function() {
  # A forked process has the variables of its parent, but not its threads.
  if (is.null(agent$run) || agent$run$pid != Sys.getpid()) {
    return("none")
  }
  if (!is.null(agent$run$until)) {
    return("stopped")
  }
  if (isTRUE(rust(rust_agent_status(), NULL)$running)) "running" else "failed"
}

end_agent <- function(timeout) {
  agent$run$skipped <- end_rprof()
  rust(rust_agent_stop(as.numeric(timeout)), NULL)
  agent$run$until <- Sys.time()
  deliver_chunks()
  # Others take the chunks of a worker that records itself.
  if (!is.null(agent$give)) {
    rust(rust_agent_clear(), NULL)
  }
  new_agent_status(rust(rust_agent_status(), NULL))
}

check_every <- function(every, interval, call) {
  if (!is.numeric(every) || length(every) != 1 || !isTRUE(every >= interval && every <= 3600)) {
    abort_argument("`every` must be a number of seconds, at least `interval` and at most 3600.", call)
  }
}

check_memory <- function(memory, every, call) {
  is_valid <- is.null(memory) || identical(memory, "peak") ||
    is.numeric(memory) && length(memory) == 1 && isTRUE(memory >= every && memory < 1e8)
  if (!is_valid) {
    abort_argument("`memory` must be `\"peak\"`, a number of seconds that is at least `every`, or `NULL`.", call)
  }
}

# As the thread reads it, see src/rust/src/agent.rs.
agent_memory <- function(memory) if (identical(memory, "peak")) 0 else as.numeric(memory)

# ---- Chunks for a function -------------------------------------------------------------

# Calls the user's function for each chunk that waits now. Chunks that arrive meanwhile wait for the next call of this
# function: a loop until no chunk waits would never end if the user's function is slower than the agent.
deliver_chunks <- function() {
  if (is.null(agent$give) || isTRUE(agent$is_giving)) {
    return()
  }
  agent$is_giving <- TRUE
  on.exit(agent$is_giving <- FALSE)
  for (path in spooled_files(agent$run$spool)) {
    taken <- take_file(path)
    if (is.null(taken)) {
      next
    }
    error <- tryCatch(
      {
        tables <- rust(rust_agent_chunk(c(taken$held, taken$held), lazy_columns(NULL)), NULL)
        agent$give(mark_session(new_profile_data(tables, "2.0")))
        NULL
      },
      error = function(error) paste0("The function failed: ", shown_text(conditionMessage(error)))
    )
    if (!is.null(error)) {
      write_report(agent$run$spool, error)
    }
    finish_file(taken, list(kind = if (is.null(error)) "sent" else "refused", rejected = 0))
  }
}

# Works whenever R is idle: after a command at the prompt, and in event loops that run callbacks of the package later.
work_when_idle <- function() {
  run <- agent$run
  is_same_run <- function() {
    identical(agent$run[c("pid", "since")], run[c("pid", "since")]) && agent_state() == "running"
  }
  work <- function() {
    resume_agent()
    deliver_chunks()
  }
  addTaskCallback(function(...) {
    if (is_same_run()) work()
    is_same_run()
  }, name = "profile_agent")
  if (rlang::is_installed("later")) {
    again <- function() {
      if (is_same_run()) {
        work()
        later::later(again, run$every)
      }
    }
    later::later(again, run$every)
  }
}

# ---- When R quits, and when the package is loaded or unloaded --------------------------------

# Calls a function when R quits. `state`: an environment of this package, which remembers that it did so.
at_quit <- function(state, stop) {
  force(stop)
  if (is.null(state$stops_at_quit)) {
    state$stops_at_quit <- TRUE
    reg.finalizer(state, function(state) stop(), onexit = TRUE)
  }
}

stop_agent_before_end <- function() {
  # If no agent is running, the shared library may have been unloaded, and must not be called.
  if (!is.null(agent$run) && is.null(agent$run$until) && agent$run$pid == Sys.getpid()) {
    try(end_agent(3), silent = TRUE)
  }
}

# Starts the agent when the package is loaded, if environment variables request it. Nothing that goes wrong here may
# stop the application.
start_agent_by_environment <- function() {
  tryCatch(start_requested_agent(), error = function(error) {
    text <- c("The agent that `R_PROFILE_AGENT` requests cannot be started.", x = conditionMessage(error))
    # If the option `warn` is 2, the warning is an error.
    tryCatch(
      warn_profile(text, "profile_warning_agent", call = NULL),
      error = function(error) inform_profile(text, "profile_message_agent")
    )
  })
}

start_requested_agent <- function() {
  value <- environment_values("R_PROFILE_AGENT")
  word <- tolower(shown_text(value))
  is_off <- word %in% c("", "0", "false", "no", "off")
  if (is_off || tolower(environment_text("OTEL_SDK_DISABLED", NULL)) == "true") {
    return()
  }
  to <- if (!word %in% c("1", "true", "yes", "on")) value
  start_agent(to)
}
