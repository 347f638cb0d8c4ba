# How the agent takes samples: by reading R's memory, or with R's own profiler.
#
# `Rprof()` writes to a file in memory that the thread of the agent reads and empties. R has only one profiler, so other
# code that calls `Rprof()` ends ours, without any condition. When the other profiler has ended, the agent restarts its
# own: when R is idle, in `agent_status()`, and when a profiler of this package ends.

# `Rprof()` searches only the file names that it has seen, so a large limit takes memory but no time.
rprof_files <- 10000L
rprof_bytes <- 1000000L

# Starts the thread, and returns its method. "auto" tries "reader", then "rprof".
start_sampling <- function(settings, method, call) {
  if (!is.null(agent$run)) {
    end_rprof()
  }
  refused <- NULL
  if (method != "rprof") {
    refused <- rust(rust_agent_start(c(settings, list(method = method))), call)
    if (is.null(refused)) {
      return("reader")
    }
  }
  tryCatch(start_rprof_method(settings, call), profile_error_unsupported = function(error) {
    if (is.null(refused)) {
      rlang::cnd_signal(error)
    }
    abort_unsupported(
      c("The agent cannot take samples in this process.", x = refused, x = rlang::cnd_header(error)), call
    )
  })
  "rprof"
}

start_rprof_method <- function(settings, call) {
  refuse <- function(why) abort_unsupported(why, call)
  if (getRversion() < "4.3") {
    refuse("Samples of `Rprof()` need R 4.3 or later: older versions write them late.")
  }
  if (settings$clock == "wall" && !"event" %in% names(formals(utils::Rprof))) {
    refuse("Samples of `Rprof()` with `clock = \"wall\"` need R 4.4 or later.")
  }
  if (settings$interval < 0.01) {
    refuse("`Rprof()` takes samples every 0.01 seconds at most.")
  }
  if (rust(rust_agent_rprof(), call)$user == "other") {
    refuse("Another profiler is running in this process; if it is `Rprof()`, `Rprof(NULL)` stops it.")
  }
  rust(rust_agent_start(c(settings, list(method = "rprof"))), call)
  tryCatch(start_rprof_of_agent(settings), error = function(error) {
    rust(rust_agent_stop(0), NULL)
    rust(rust_agent_clear(), NULL)
    refuse(paste0("`Rprof()` cannot be started: ", shown_text(conditionMessage(error))))
  })
}

start_rprof_of_agent <- function(settings) {
  event <- if (settings$clock == "wall") list(event = "elapsed")
  rlang::inject(utils::Rprof(
    rust(rust_agent_rprof(), NULL)$path,
    append = TRUE, interval = settings$interval, line.profiling = TRUE, numfiles = rprof_files, bufsize = rprof_bytes,
    !!!event
  ))
}

# Stops R's profiler if the agent uses it, and returns R's warnings.
end_rprof <- function() {
  if (rust(rust_agent_rprof(), NULL)$user != "agent") {
    return(character())
  }
  vapply(warnings_of_end(), function(warning) shown_text(conditionMessage(warning)), "")
}

# Restarts R's profiler for the agent if no other code uses it. Returns whether other code does, so that the agent gets
# no samples.
resume_agent <- function() {
  if (agent_state() != "running" || agent$run$method != "rprof") {
    return(FALSE)
  }
  user <- rust(rust_agent_rprof(), NULL)$user
  if (user == "nobody") {
    # R may have too many open files.
    try(start_rprof_of_agent(agent$run), silent = TRUE)
    user <- rust(rust_agent_rprof(), NULL)$user
  }
  user != "agent"
}

# Stops R's profiler for another profiler, which would not start while this one is running.
pause_agent <- function() {
  if (agent_state() == "running" && agent$run$method == "rprof") {
    end_rprof()
  }
}
