# The processes that work for this session, for `record_profile(children = TRUE)` and `snapshot_memory(children = TRUE)`.
#
# A helper, another R process, reads them from outside (R/children-helper.R). This session must not do that: if it stopped
# its own children, each stop would be reported to all that wait for them, so that system(), parallel and processx would be
# confused.
#
# Processes that are started during the recording inherit an environment variable with the name of the recording's folder,
# by which the helper finds those that have another parent, such as the workers of parallel and future.
#
# Where the system forbids the helper to look into them, workers permit it (Yama), or record themselves: they evaluate
# inst/record/worker.R. Existing ones are asked to (`join_cluster()`); for those that are started, R evaluates
# inst/record/hook.R.
#
# All of them communicate by files in the folder `children` of the recording, in this order. Files of R objects are written
# under another name first, so that they are complete.
#
# | file                | written by  | when                                  | content             | read by                    |
# |---------------------|-------------|---------------------------------------|---------------------|----------------------------|
# | `log`               | a shell     | it starts the helper                  | the helper's output | nobody                     |
# | `pid.rds`           | the helper  | it has started                        | its process id      | the session                |
# | `request.rds`       | the session | it has permitted the helper to look   | see `run_helper()`  | the helper                 |
# | `recording.rds`     | the helper  | the recording has begun               | how workers join    | the session, workers       |
# | `own-PID/open`      | a worker    | it begins to record itself            | nothing             | the collector              |
# | `own-PID/about.rds` | a worker    | it begins to record itself, or cannot | its names, or why   | the collector              |
# | `own-PID/spool/`    | a worker    | it records itself                     | chunks of its agent | the collector              |
# | `exact-PID/`        | a worker    | it records the vectors that it        | see                 | the collector              |
# |                     |             | allocates                             | `read_allocations()`|                            |
# | `result.rds`        | the helper  | the recording has ended               | a list, or an error | the collector              |
# | `ended`             | a shell     | the helper has ended, for any reason  | `log`, renamed      | the session, the collector |
#
# The session ends the recording by removing `recording.rds`; an agent removes `open` when it has ended.
# The collector is the process that returns the profile: the session or, for a script, `profile record`.

variable_of_recording <- "R_PROFILE_RECORDING"
# For inst/record/hook.R.
variable_of_joining <- "R_PROFILE_RECORDING_JOIN"
variable_of_profile <- "R_PROFILE_RECORDING_USER"

# Checks the argument `children`, and returns a list: whether there are any, and those that the user names.
check_children <- function(children, call) {
  if (rlang::is_bool(children)) {
    return(list(any = children, pids = integer()))
  }
  if (inherits(children, "cluster")) {
    return(workers_here(children, call))
  }
  if (!is.numeric(children)) {
    abort_argument(c(
      paste0("`children` must be `TRUE`, `FALSE`, the ids of processes, or a cluster, not ", describe_object(children), "."),
      i = "A cluster is made by `parallel::makeCluster()`."
    ), call)
  }
  list(any = TRUE, pids = check_pids(children, call, "children"))
}

# The workers of a cluster of the package parallel on this machine.
workers_here <- function(cluster, call) {
  about <- call_workers(cluster, function() list(pid = Sys.getpid(), node = Sys.info()[["nodename"]]), call)
  here <- vapply(about, function(one) one$node == Sys.info()[["nodename"]], NA)
  list(any = TRUE, pids = as.integer(vapply(about[here], `[[`, 0L, "pid")), cluster = cluster[here])
}

# Calls a function in all workers, where this package may be missing.
call_workers <- function(cluster, what, call, ...) {
  environment(what) <- baseenv()
  tryCatch(parallel::clusterCall(cluster, what, ...), error = function(error) {
    abort_profile(
      c("The workers of the cluster do not answer.", x = shown_text(conditionMessage(error))), "profile_error_process",
      call = call
    )
  })
}

# Starts to record the processes that work for this one, and returns a function that ends this. That returns `forks`, the
# ids of the forks of this process that go on with R, and of their forks (NULL if they are unknown), and `cpu`, the CPU time
# of its children that have ended, in seconds. The process `collector` then calls `result_of_helper()`. `peak`: whether to take
# snapshots of this process when its memory is highest.
start_helper <- function(children, settings, call, folder, collector = Sys.getpid(), peak = FALSE) {
  name <- basename(folder)
  folder <- new_private_folder(in_folder(folder, "children"))
  recording <- in_folder(folder, "recording.rds")
  is_ready <- FALSE
  on.exit(if (!is_ready) {
    permit_helper(0L)
    remove_folder_of_helper(folder)
  })
  helper <- run_helper_beside(folder, collector, call)
  must_permit <- permit_helper(helper)
  if (must_permit) {
    # The helper finds out whether that suffices.
    join_cluster(children$cluster, list(helper = helper, is_refused = FALSE, library = own_library()), call)
  }
  asked <- list(
    pid = Sys.getpid(), variable = paste0(variable_of_recording, "=", name), workers = children$pids
  )
  save_complete(list(asked = asked, settings = settings, peak = peak), folder, "request.rds")
  stop_if_failed(wait_for_helper(folder, function() file.exists(recording)), call)
  joining <- readRDS(recording)
  must_join <- joining$is_refused || !is.null(joining$threshold)
  if (must_join) {
    join_cluster(children$cluster, joining, call)
  }
  variables <- rlang::set_names(name, variable_of_recording)
  if (children$any && (must_join || must_permit)) {
    variables <- c(variables, variables_of_hook(recording))
  }
  restore <- set_variables(variables)
  cpu <- function() sum(proc.time()[c("user.child", "sys.child")])
  before <- list(forks = rust(rust_count_forks(), NULL), cpu = cpu())
  is_ready <- TRUE
  function() {
    restore()
    permit_helper(0L)
    unlink(recording)
    list(forks = rust(rust_forked(before$forks), NULL), cpu = cpu() - before$cpu)
  }
}

# The environment variables with which workers that are started join the recording. It may have ended when they read them.
variables_of_hook <- function(recording) {
  user_profile <- environment_values("R_PROFILE_USER", NA)
  names <- c("R_PROFILE_USER", variable_of_joining, if (!is.na(user_profile)) variable_of_profile)
  hook <- system.file("record", "hook.R", package = "profile", mustWork = TRUE)
  rlang::set_names(c(hook, recording, if (!is.na(user_profile)) user_profile), names)
}

# With `threshold`, workers also record the vectors that they allocate.
helper_settings <- function(interval, clock, native, children = TRUE, threshold = NULL, positions = TRUE) {
  list(
    interval = as.numeric(interval), seconds = Inf, clock = clock, children = children, pause = TRUE, native = native,
    threshold = threshold, positions = positions && most_deparsed_lines(NULL) > 0
  )
}

# A folder for the files of a recording, beside that of the session: R removes the latter if a fork calls `quit()`.
new_recording_folder <- function() new_private_folder(tempfile("profile-recording-", dirname(tempdir())))

# A function that removes it, and does nothing in a fork.
remover_of <- function(folder) {
  force(folder)
  pid <- Sys.getpid()
  function() if (Sys.getpid() == pid) remove_folder_of_helper(folder)
}

# A folder that others cannot read, with its absolute path.
new_private_folder <- function(path) {
  dir.create(path, mode = "0700")
  normalizePath(path)
}

# The helper may write a file just then, and the folder is not removed as long as it has one. Afterwards it writes nothing.
remove_folder_of_helper <- function(folder) {
  for (attempt in 1:100) {
    unlink(folder, recursive = TRUE)
    if (!dir.exists(folder)) break
    Sys.sleep(0.01)
  }
}

# Sets environment variables, and returns a function that restores them.
set_variables <- function(values) {
  before <- rlang::set_names(environment_values(names(values), NA), names(values))
  do.call(Sys.setenv, as.list(values))
  function() {
    Sys.unsetenv(names(before)[is.na(before)])
    if (!all(is.na(before))) do.call(Sys.setenv, as.list(before[!is.na(before)]))
  }
}

# Permits the helper to look into this process and its forks, if the system requires that, and returns whether it does.
permit_helper <- function(pid) rust(rust_permit_process(pid), NULL)

# Lets existing workers join the recording, which otherwise only those do that start. `joining` is described in
# inst/record/worker.R.
join_cluster <- function(cluster, joining, call) {
  if (is.null(cluster)) {
    return()
  }
  code <- parse(system.file("record", "worker.R", package = "profile"), keep.source = FALSE)
  call_workers(cluster, function(settings, code) {
    try(eval(code, list2env(list(settings = settings), parent = baseenv())), silent = TRUE)
    NULL
  }, call, joining, code)
}

# The result of a helper whose recording has ended: what `recorded_of()` describes; `peak`, see `end_peaks()`; `own`, the
# processes that have recorded themselves; `allocations`, those of `forks` of the master and of `workers`, see
# `read_allocations()`; and `master`, what the function of `start_helper()` has returned, NULL if its process was killed. Or
# an error. The folder is removed.
result_of_helper <- function(folder, master) {
  recording <- folder
  folder <- in_folder(folder, "children")
  on.exit(remove_folder_of_helper(folder))
  result <- wait_for_helper(folder, function() FALSE)
  if (!inherits(result, "error")) {
    result$own <- recorded_by_themselves(folder)
    result$master <- master
    result$allocations <- list(
      forks = read_allocations(recording, NULL, forks = TRUE), workers = allocations_of_workers(folder)
    )
  }
  result
}

# Snapshots of the heaps of processes that may be children of this session, see `heap_or_error()`.
heaps_by_helper <- function(pids, call) {
  folder <- new_recording_folder()
  on.exit(remove_folder_of_helper(folder))
  run_helper_beside(folder, Sys.getpid(), call)
  save_complete(list(heaps = pids), folder, "request.rds")
  stop_if_failed(wait_for_helper(folder, function() FALSE), call)
}

# Starts a helper that waits for a request, and returns its process id.
run_helper_beside <- function(folder, collector, call) {
  if (!is_live_platform()) {
    abort_unsupported(paste0("Other processes can be read only on ", live_platforms(), "."), call)
  }
  run_in_background("profile:::run_helper(commandArgs(TRUE))", folder, collector)
  file <- in_folder(folder, "pid.rds")
  stop_if_failed(wait_for_helper(folder, function() file.exists(file)), call)
  readRDS(file)
}

# Writes an R object to a file, which is complete when it has this name.
save_complete <- function(value, folder, name) {
  new <- in_folder(folder, paste0(name, ".new"))
  saveRDS(value, new, compress = FALSE)
  file.rename(new, in_folder(folder, name))
}

stop_if_failed <- function(result, call) {
  if (inherits(result, "error")) {
    result$call <- call
    rlang::cnd_signal(result)
  }
  result
}

# Waits until there is a result of the helper, which is returned, or `is_done()`.
wait_for_helper <- function(folder, is_done) {
  result <- in_folder(folder, "result.rds")
  ended <- in_folder(folder, "ended")
  repeat {
    # It writes the result before it ends.
    has_ended <- file.exists(ended) || !dir.exists(folder)
    if (file.exists(result)) {
      return(readRDS(result))
    }
    if (is_done()) {
      return(NULL)
    }
    if (has_ended) {
      said <- if (file.exists(ended)) utils::tail(readLines(ended, warn = FALSE), 3)
      return(rlang::error_cnd(
        c("profile_error_process", "profile_error"),
        message = paste(
          c("The process that reads the children has ended.", vapply(said, shown_text, "", USE.NAMES = FALSE)),
          collapse = "\n"
        )
      ))
    }
    Sys.sleep(0.01)
  }
}

# Runs code in a new R process beside this one, with the folder and another argument. When it has ended, for any reason,
# its output is the file `ended`.
run_in_background <- function(code, folder, argument) {
  # Variables that would configure R differently, start an agent, or have the process recorded.
  others <- c("R_PROFILE_AGENT", "R_TESTS", "OTEL_R_TRACES_EXPORTER", variable_of_recording)
  libraries <- c(own_library(), .libPaths())
  command <- c(
    "env", paste0("-u", others), paste0("R_LIBS=", paste(unique(libraries), collapse = .Platform$path.sep)),
    "R_DEFAULT_PACKAGES=NULL", file.path(R.home("bin"), "Rscript"), "--vanilla", "-e", code, folder, argument
  )
  log <- shQuote(in_folder(folder, "log"))
  run <- paste(paste(shQuote(command), collapse = " "), "</dev/null >", log, "2>&1")
  # The folder may have been removed.
  system(paste("{", run, "; mv", log, shQuote(in_folder(folder, "ended")), "2>/dev/null; }"), wait = FALSE)
}

own_library <- function() dirname(getNamespaceInfo("profile", "path"))
