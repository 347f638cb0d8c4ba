# The agent: a thread that profiles this process for weeks and sends the profiles, see src/rust/agent.
#
# R starts it, stops it, and asks what it does. Everything else happens without R, except that chunks for a function of
# R wait until R calls it.

#' Profile this R process all the time
#'
#' @description
#' `start_agent()` starts a thread that takes samples of the stack of this R process, as long as it runs, and sends them
#' every few seconds: to an OpenTelemetry collector or Grafana Pyroscope, to a folder, or to a function. It is made for
#' services and long jobs: it takes three to four percent of a core while R computes, less than
#' one while R waits, and its memory is bounded.
#'
#' `agent_status()` shows what it does, `stop_agent()` stops it.
#'
#' It requires Linux: on x86-64 with the GNU C library R 4.2 or later, and elsewhere R 4.3 or later, see `source`.
#'
#' @details
#' ## What is recorded
#'
#' Samples have R's functions with files and lines, without native code. With `event = "cpu"`, there are no samples while
#' R waits. Labels of [with_labels()] become labels of the samples, such as the route of a request. Forked processes,
#' such as those of `parallel::mclapply()`, have no agent, but may start their own.
#'
#' With `source = "reader"`, samples are those of [profile_process()]. A sample has the CPU time of R's thread since
#' the last one (type `cpu`), and the time that has passed (`wall`). R's stack is read from memory, without a signal and
#' without stopping R. So the agent does not disturb [Rprof()], `profvis::profvis()`, [start_profiler()] and debuggers,
#' and they do not disturb it. See *Samples of Rprof()* for the other source.
#'
#' After a gap of more than two seconds, for example because the system was suspended, a new part begins.
#'
#' ## Where profiles go
#'
#' | `to` | profiles are |
#' |---|---|
#' | a URL | sent to an OpenTelemetry server, as by [send_otlp()], whose rules for endpoints apply |
#' | `NULL` | the same, with the URL in the environment variables of [send_otlp()] |
#' | a folder | written to files in the format of [write_pprof()], which get their names when they are complete |
#' | a function | passed to that function, as an object like the result of [profile_process()] |
#'
#' To an `http://` URL, the thread sends profiles itself, without proxies. For `https://`, see below.
#'
#' Parts that cannot be sent wait in a queue of at most 16 MB, after compression; the option `profile.agent_queue_mb`
#' changes that. If it is full, the oldest parts are dropped and counted. Errors are retried by the rules of
#' [send_otlp()], but without a limit; `Retry-After` is respected up to an hour. Parts that the server
#' refuses, or does not answer in time, are dropped and counted.
#'
#' A function is called by R's thread, when R is idle: after a command at R's prompt, and, if the package later is installed, whenever
#' an application with an event loop, such as a Shiny app or a plumber API, waits for requests. In a script
#' that only computes, it is called by `agent_status()` and `stop_agent()`. If it fails, that part is dropped and
#' counted.
#'
#' ## HTTPS
#'
#' The thread has no encryption. To send to an `https://` URL, it starts a helper: another R process, which sends with the
#' package curl, as [send_otlp()] does, with the same environment variables for certificates and proxies. All agents of a
#' user on a machine share one helper if they use the same library and the same settings for proxies and TLS. If it is
#' killed, an agent starts it again, and requests that it was sending are repeated, so a part may arrive twice.
#' About five seconds after the last agent has ended, in whatever way, the helper ends as well.
#'
#' The helper takes about 100 MB of memory and 0.15 percent of a core while it waits. Requests reach it through a folder,
#' one at a time from each agent: `profile-relay-`, followed by the number of the user and letters and digits, beside the
#' session's temporary directory, usually in `/tmp`. Only this user can read it. It contains headers, so possibly secrets,
#' until the server has answered, and it is removed when the helper ends.
#'
#' ## Samples of Rprof()
#'
#' With `source = "rprof"`, samples are those of [Rprof()]: a signal interrupts R at each tick. They have a count of 1
#' (type `samples`), and `interval` as their time, whose type is `cpu` or `wall` by `event`. CPU time is that of all
#' threads of the process. The times of samples are unknown, so those with the same stack and labels are summed. `interval`
#' is 0.01 at least, and samples whose functions have more than 10,000 characters are missing. The lines go to a
#' file in memory, which is emptied every second, and is gone with the process.
#'
#' R has one such profiler. If other code calls `Rprof()`, such as `profvis::profvis()`, it ends that of the agent, which
#' has no samples until the other one has ended and R is idle or `agent_status()` is called; the time is counted as
#' `paused`. [record_profile()] and [start_profiler()] interrupt the agent in the same way. The agent does not start
#' while another profiler is running.
#'
#' ## The end of the process
#'
#' When R quits, or the package is unloaded, the agent tries for up to three seconds to send what it has. If the
#' process is killed, the last parts are lost, and nothing else is left behind.
#'
#' ## Profile an application without changing its code
#'
#' If the environment variable `R_PROFILE_AGENT` is set when this package is loaded, the agent is started: with the
#' value `true` or `1`, profiles are sent to the endpoint in the environment variables; any other value is used as `to`.
#' To load the package in every R process, use `R_DEFAULT_PACKAGES`:
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
#' the agent cannot start, there is a warning, and the application runs without it.
#'
#' The environment variables of OpenTelemetry are respected: those of [send_otlp()]; `OTEL_SERVICE_NAME` and
#' `OTEL_RESOURCE_ATTRIBUTES` (`key=value,key=value`, percent-encoded) for the resource, in which `resource` takes
#' precedence; and `OTEL_SDK_DISABLED=true`, with which the agent is not started by `R_PROFILE_AGENT`.
#'
#' @param to Where to send profiles: the URL of a server, the path of a folder, a function, or `NULL` to use
#'   environment variables. See *Where profiles go*.
#' @param ... Must be empty.
#' @param interval Seconds between two samples.
#' @param every Seconds between two profiles that are sent.
#' @param event `"cpu"` for samples while R uses CPU time, `"wall"` for samples at all times.
#' @param resource Attributes of what is profiled: a named character vector, such as
#'   `c(service.name = "my-api", service.version = "1.2")`. The name of the service is `unknown_service:R` by default.
#' @param source How samples are taken: `"reader"` reads R's memory, which requires Linux on x86-64 with the GNU C library;
#'   `"rprof"` uses [Rprof()], which requires R 4.3, or R 4.4 for `event = "wall"`, and a Linux of 64 bits. `"auto"` is
#'   `"reader"` if it works, else `"rprof"`.
#' @param headers Headers of the requests: a named character vector.
#' @param timeout For `start_agent()`, the number of seconds that each request may take. For `stop_agent()`, how long
#'   to try to send what is left.
#'
#' @return `start_agent()`: `NULL`, invisibly.
#'
#'   `agent_status()` and, invisibly, `stop_agent()`: an object of class `profile_agent_status`, a list with these
#'   elements:
#'   \describe{
#'   \item{state}{`"running"`, `"paused"` if another profiler runs instead of that of the agent, `"stopped"`, `"failed"` if
#'   the thread has ended by itself, or `"none"` if none was started in this process}
#'   \item{taken}{number of samples. It is exactly `sent + queued + open + dropped`:}
#'   \item{sent}{those that have arrived}
#'   \item{queued, open}{those that wait, and those of the current part}
#'   \item{dropped}{those that were lost. It is the sum of `dropped_full`: the queue was full; `dropped_refused`: the
#'   server or function refused them, or it is unknown whether they have arrived; and `dropped_lost`: they could
#'   not be sent before the end, or memory ran out}
#'   \item{unread}{how often the stack changed each time it was read. These are no samples; their time is part of the
#'   next one}
#'   \item{cut}{samples whose outer calls were left out, because there were more than 20,000}
#'   \item{paused}{seconds without samples, because R's profiler worked for others, or not yet again for
#'   the agent}
#'   \item{rejected}{profiles that the server rejected, in parts that it accepted}
#'   \item{chunks_sent, chunks_queued, bytes_queued}{the parts}
#'   \item{cpu_time}{seconds of CPU time that the thread has used}
#'   \item{last_sent}{when a part was sent, as `POSIXct`}
#'   \item{last_error, last_error_time}{the last error, and when it occurred}
#'   \item{since, until}{when the agent was started and stopped}
#'   \item{pid, to, event, interval, every, source}{the process and the arguments}
#'   }
#'
#' @section Errors:
#' - `profile_error_argument` for invalid arguments, for `start_agent()` if the agent is running, and for
#'   `stop_agent()` if it is not;
#' - `profile_error_unsupported` on other systems, if `Rprof()` cannot be used, for `https://` if curl is not installed,
#'   and if others can read or have made the folder of the helper;
#' - `profile_error_write` if a folder does not exist, or that of the helper cannot be made;
#' - `profile_error_process` if R's memory cannot be read;
#' - `profile_error_memory` if there is not enough memory.
#' @seealso [profile_process()] to profile a process from outside
#' @export
#' @examples
#' supported <- Sys.info()[["sysname"]] == "Linux" && R.version$arch == "x86_64"
#' if (supported && interactive()) {
#'   folder <- tempfile("profiles-")
#'   dir.create(folder)
#'   start_agent(folder, every = 1)
#'   for (i in 1:50) sort(runif(1e6))
#'   agent_status()
#'   stop_agent()
#'   dir(folder)
#' }
start_agent <- function(
    to = NULL,
    ...,
    interval = 0.01,
    every = 15,
    event = c("cpu", "wall"),
    resource = character(),
    source = c("auto", "reader", "rprof"),
    headers = character(),
    timeout = 10) {
  call <- rlang::current_env()
  rlang::check_dots_empty()
  check_interval(interval, call)
  check_every(every, interval, call)
  event <- check_choice(event, c("cpu", "wall"), "event", call)
  source <- check_choice(source, c("auto", "reader", "rprof"), "source", call)
  check_texts(resource, "resource", call)
  check_sending(timeout, 0, call)
  if (agent_state() == "running") {
    abort_argument("The agent is running already; `stop_agent()` stops it.", call)
  }
  megabytes <- number_option("profile.agent_queue_mb", 16, call)
  resource <- agent_resource(resource, call)
  settings <- c(
    list(
      interval = as.numeric(interval), every = as.numeric(every), event = event,
      keys = as.list(enc2utf8(names(resource))), values = as.list(enc2utf8(unname(resource))),
      queue = megabytes * 2^20
    ),
    agent_target(to, headers, timeout, resource, call)
  )
  source <- start_sampling(settings, source, call)
  agent$run <- list(
    pid = Sys.getpid(), since = Sys.time(), until = NULL, to = settings$shown, event = event, interval = interval,
    every = every, source = source
  )
  agent$give <- if (is.function(to)) to
  stop_agent_at_quit()
  if (is.function(to) || source == "rprof") {
    work_when_idle()
  }
  invisible(NULL)
}

#' @rdname start_agent
#' @export
agent_status <- function() {
  if (agent_state() == "running") {
    give_chunks()
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
      "profile_warning_incomplete",
      call = call
    )
  }
  invisible(status)
}

# `run` describes the last agent, and `give` is the function that gets its chunks.
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
  give_chunks()
  rust(rust_agent_clear(), NULL)
  new_agent_status(rust(rust_agent_status(), NULL))
}

check_every <- function(every, interval, call) {
  if (!is.numeric(every) || length(every) != 1 || !isTRUE(every >= interval && every <= 3600)) {
    abort_argument("`every` must be a number of seconds, at least `interval` and at most 3600.", call)
  }
}

# ---- Where profiles go ---------------------------------------------------------------

# The part of the settings that depends on `to`, see src/rust/src/agent.rs. `shown` is for messages.
agent_target <- function(to, headers, timeout, resource, call) {
  if (is.function(to)) {
    return(list(kind = "function", shown = "a function"))
  }
  if (!is.null(to) && !is_path(to)) {
    abort_argument("`to` must be a URL, the path of a folder, a function, or `NULL`.", call)
  }
  if (!is.null(to) && !grepl("^[A-Za-z][A-Za-z0-9+.-]*://", to)) {
    return(agent_folder(to, resource, call))
  }
  url <- otlp_url(to, call, "to")
  headers <- otlp_headers(headers, FALSE, TRUE, call)
  limit <- number_option("profile.otlp_max_response", 4 * 2^20, call)
  is_secure <- grepl("^https:", url, ignore.case = TRUE)
  c(
    list(
      shown = shown_url(url), timeout = as.numeric(timeout), backoff = number_option("profile.otlp_backoff", 1, call),
      limit = limit
    ),
    if (is_secure) relay_target(url, headers, timeout, limit, call) else http_target(url, headers)
  )
}

http_target <- function(url, headers) {
  lines <- lapply(seq_along(headers), function(i) {
    c(charToRaw(names(headers)[[i]]), charToRaw(": "), charToRaw(headers[[i]]), charToRaw("\r\n"))
  })
  list(kind = "http", url = url, headers = as.raw(unlist(lines)))
}

agent_folder <- function(to, resource, call) {
  file <- file_path(to, "profile_error_write", call)
  if (!dir.exists(file[[1]])) {
    abort_profile(
      paste0("Cannot write to `", file[[2]], "`: there is no such folder."), "profile_error_write",
      path = file[[2]], call = call
    )
  }
  # Files of services that share a folder are told apart.
  name <- gsub("[^A-Za-z0-9._-]+", "-", resource[["service.name"]])
  path <- normalizePath(file[[1]])
  list(kind = "folder", shown = file[[2]], path = c(path, file[[2]]), name = substr(name, 1, 100))
}

# The attributes of the resource: the defaults, those of the environment, and the user's.
agent_resource <- function(resource, call) {
  host <- Sys.info()[["nodename"]]
  known <- c(
    service.name = "unknown_service:R",
    process.runtime.name = "R",
    process.runtime.version = as.character(getRversion()),
    if (is_text(host) && host != "") c(host.name = host)
  )
  setting <- Sys.getenv("OTEL_RESOURCE_ATTRIBUTES", names = TRUE)
  own <- setting_headers(setting)
  if (!all(is_valid_text(c(names(own), own))) || any(names(own) == "")) {
    abort_argument(
      "The environment variable `OTEL_RESOURCE_ATTRIBUTES` must have the form `key=value,key=value`.", call
    )
  }
  name <- Sys.getenv("OTEL_SERVICE_NAME")
  for (new in list(own, if (name != "") c(service.name = name), resource)) {
    known[names(new)] <- new
  }
  known
}

# ---- Chunks for a function -------------------------------------------------------------

# Calls the function for each chunk that waits.
give_chunks <- function() {
  if (is.null(agent$give) || isTRUE(agent$is_giving)) {
    return()
  }
  agent$is_giving <- TRUE
  on.exit(agent$is_giving <- FALSE)
  repeat {
    chunk <- rust(rust_agent_chunk(lazy_columns(NULL)), NULL)
    if (is.null(chunk)) {
      return()
    }
    error <- tryCatch(
      {
        agent$give(new_profile_data(chunk$tables, "2.0"))
        NULL
      },
      error = function(error) paste0("The function failed: ", shown_text(conditionMessage(error)))
    )
    rust(rust_agent_given(chunk$number, error), NULL)
  }
}

# Whenever R is idle: after a command at the prompt, and in event loops that run what the package later schedules.
work_when_idle <- function() {
  run <- agent$run
  goes_on <- function() identical(agent$run[c("pid", "since")], run[c("pid", "since")]) && agent_state() == "running"
  work <- function() {
    resume_agent()
    give_chunks()
  }
  addTaskCallback(function(...) {
    if (goes_on()) work()
    goes_on()
  }, name = "profile_agent")
  if (rlang::is_installed("later")) {
    again <- function() {
      if (goes_on()) {
        work()
        later::later(again, run$every)
      }
    }
    later::later(again, run$every)
  }
}

# ---- The end of R, and of the package, and the beginning -----------------------------------

stop_agent_at_quit <- function() {
  if (is.null(agent$stops_at_quit)) {
    agent$stops_at_quit <- TRUE
    reg.finalizer(agent, function(agent) stop_agent_before_end(), onexit = TRUE)
  }
}

stop_agent_before_end <- function() {
  # If there is none, the shared library may have been unloaded.
  if (!is.null(agent$run) && is.null(agent$run$until) && agent$run$pid == Sys.getpid()) {
    try(end_agent(3), silent = TRUE)
  }
}

# Starts the agent when the package is loaded, if the environment says so.
start_agent_by_environment <- function() {
  value <- Sys.getenv("R_PROFILE_AGENT")
  is_off <- tolower(value) %in% c("", "0", "false", "no", "off")
  if (is_off || tolower(Sys.getenv("OTEL_SDK_DISABLED")) == "true") {
    return()
  }
  to <- if (!tolower(value) %in% c("1", "true", "yes", "on")) value
  tryCatch(start_agent(to), profile_error = function(error) {
    warn_profile(
      c(
        "The agent that `R_PROFILE_AGENT` asks for cannot be started.",
        x = conditionMessage(error)
      ),
      "profile_warning_agent",
      call = NULL
    )
  })
}
