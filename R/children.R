# The processes that work for this session, for `record_profile(children = TRUE)` and `snapshot_memory(children = TRUE)`.
#
# A helper, another R process, reads them from outside. This session must not do that: if it stopped its own children,
# each stop would be reported to all that wait for them, so that system(), parallel and processx would be confused.
#
# Processes that are started during the recording inherit an environment variable with the name of the recording's folder,
# by which the helper finds those that have another parent, such as the workers of parallel and future.
#
# Where the system forbids the helper to look into them, workers permit it (Yama), or record themselves. Existing ones are
# asked to (`join_cluster()`); for those that are started, R evaluates inst/record/hook.R.
#
# All of them speak by files of the folder, which are complete when they have these names:
#
# | file            | by          | what                                                                              |
# |-----------------|-------------|-----------------------------------------------------------------------------------|
# | request.rds     | the session | what to record, or of which heaps to take snapshots: `run_helper()`                |
# | pid             | the helper  | its process id                                                                    |
# | permitted       | the session | the helper may begin: the session has permitted it to look                        |
# | recording       | the helper  | the recording has begun ("refused": it may not look); the session ends it by removing this |
# | join.rds        | the session | how workers join, for inst/record/worker.R                                        |
# | own-PID/about.rds, open, spool | a worker | it records itself, its agent has not ended, its chunks                  |
# | own-PID/refused | a worker    | why it does not record itself                                                     |
# | result.rds      | the helper  | the result, or an error                                                           |
# | log, ended      | a shell     | output of the helper; it has ended                                                |

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
# of its children that have ended, in seconds. The process `collector` then calls `result_of_helper()`.
start_helper <- function(children, settings, call, folder, collector = Sys.getpid()) {
  force(call)
  folder <- new_private_folder(in_folder(folder, "children"))
  recording <- in_folder(folder, "recording")
  asked <- list(
    pid = Sys.getpid(), variable = paste0(variable_of_recording, "=", basename(dirname(folder))), workers = children$pids,
    file = c(recording, shown_text(recording))
  )
  is_ready <- FALSE
  on.exit(if (!is_ready) {
    permit_helper(0L)
    remove_folder_of_helper(folder)
  })
  joining <- list(
    recording = recording, is_refused = FALSE, interval = settings$interval, clock = settings$clock,
    library = dirname(getNamespaceInfo("profile", "path"))
  )
  joining$helper <- ask_helper(folder, list(asked = asked, settings = settings, collector = collector), call)
  must_permit <- permit_helper(joining$helper)
  if (must_permit) {
    join_cluster(children$cluster, joining, call)
  }
  file.create(in_folder(folder, "permitted"))
  stop_if_failed(wait_for_helper(folder, function() file.exists(recording)), call)
  is_refused <- identical(readLines(recording), "refused")
  variables <- rlang::set_names(basename(dirname(folder)), variable_of_recording)
  if (is_refused || must_permit) {
    joining$is_refused <- is_refused
    if (is_refused) {
      join_cluster(children$cluster, joining, call)
    }
    variables <- c(variables, variables_of_hook(folder, joining))
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

# The environment variables with which workers that are started join the recording. The recording may have ended when they
# read them.
variables_of_hook <- function(folder, joining) {
  join <- in_folder(folder, "join.rds")
  saveRDS(joining, join)
  user_profile <- environment_values("R_PROFILE_USER", NA)
  names <- c("R_PROFILE_USER", variable_of_joining, if (!is.na(user_profile)) variable_of_profile)
  hook <- system.file("record", "hook.R", package = "profile", mustWork = TRUE)
  rlang::set_names(c(hook, join, if (!is.na(user_profile)) user_profile), names)
}

helper_settings <- function(interval, clock, native) {
  list(interval = as.numeric(interval), seconds = Inf, clock = clock, children = TRUE, pause = TRUE, native = native)
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

# The result of a helper whose recording has ended: what `recorded_of()` describes, `own`, the processes that have recorded
# themselves, and `master`, what the function of `start_helper()` has returned, NULL if its process was killed. Or an error.
# The folder is removed.
result_of_helper <- function(folder, master) {
  folder <- in_folder(folder, "children")
  on.exit(remove_folder_of_helper(folder))
  result <- wait_for_helper(folder, function() FALSE)
  if (!inherits(result, "error")) {
    result$own <- recorded_by_themselves(folder)
    result$master <- master
  }
  result
}

# Snapshots of the heaps of processes that may be children of this session, see `heap_or_error()`.
heaps_by_helper <- function(pids, call) {
  folder <- new_recording_folder()
  on.exit(remove_folder_of_helper(folder))
  ask_helper(folder, list(heaps = pids, collector = Sys.getpid()), call)
  stop_if_failed(wait_for_helper(folder, function() FALSE), call)
}

# Starts a helper, and returns its process id. `request` is what `run_helper()` reads.
ask_helper <- function(folder, request, call) {
  if (!is_live_platform()) {
    abort_unsupported(paste0("Other processes can be read only on ", live_platforms(), "."), call)
  }
  saveRDS(request, in_folder(folder, "request.rds"))
  run_in_background("profile:::run_helper(commandArgs(TRUE)[[1]])", folder)
  file <- in_folder(folder, "pid")
  stop_if_failed(wait_for_helper(folder, function() file.exists(file)), call)
  as.integer(readLines(file))
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
  repeat {
    # It writes the result before it ends.
    has_ended <- file.exists(in_folder(folder, "ended")) || !dir.exists(folder)
    if (file.exists(result)) {
      return(readRDS(result))
    }
    if (is_done()) {
      return(NULL)
    }
    if (has_ended) {
      log <- in_folder(folder, "log")
      said <- if (file.exists(log)) utils::tail(readLines(log, warn = FALSE), 3)
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

# Runs code in a new R process beside this one. When it has ended, for any reason, there is the file `ended`.
run_in_background <- function(code, folder) {
  # Variables that would configure R differently, start an agent, or have the process recorded.
  others <- c("R_PROFILE_AGENT", "R_TESTS", "OTEL_R_TRACES_EXPORTER", variable_of_recording)
  libraries <- c(dirname(getNamespaceInfo("profile", "path")), .libPaths())
  command <- c(
    "env", paste0("-u", others), paste0("R_LIBS=", paste(unique(libraries), collapse = .Platform$path.sep)),
    "R_DEFAULT_PACKAGES=NULL", file.path(R.home("bin"), "Rscript"), "--vanilla", "-e", code, folder
  )
  file <- function(name) shQuote(in_folder(folder, name))
  run <- paste(paste(shQuote(command), collapse = " "), "</dev/null >", file("log"), "2>&1")
  system(paste0("{ ", run, "; test -d ", shQuote(folder), " && : >", file("ended"), "; }"), wait = FALSE)
}

# ---- The helper --------------------------------------------------------------------

run_helper <- function(folder) {
  new <- in_folder(folder, "pid.new")
  writeLines(as.character(Sys.getpid()), new)
  file.rename(new, in_folder(folder, "pid"))
  request <- readRDS(in_folder(folder, "request.rds"))
  while (is.null(request$heaps) && !file.exists(in_folder(folder, "permitted"))) {
    if (!dir.exists(folder) || !tools::pskill(request$collector, 0L)) {
      return(invisible())
    }
    Sys.sleep(0.005)
  }
  result <- tryCatch(
    if (is.null(request$heaps)) {
      recorded_of(rust(rust_family_record(request$asked, request$settings), NULL), TRUE, FALSE)
    } else {
      # The folder is removed when the user presses Ctrl-C.
      lapply(request$heaps, function(pid) if (dir.exists(folder)) heap_or_error(pid, FALSE))
    },
    error = identity
  )
  if (!dir.exists(folder)) {
    return(invisible())
  }
  if (!tools::pskill(request$collector, 0L)) {
    # It was killed, and nobody else removes this.
    unlink(folder, recursive = TRUE)
    return(invisible())
  }
  new <- in_folder(folder, "result.new")
  saveRDS(result, new, compress = FALSE)
  file.rename(new, in_folder(folder, "result.rds"))
  invisible()
}

# ---- Workers that record themselves ------------------------------------------------

# Called by inst/record/worker.R: starts the agent for the time of the recording, into a folder of its own. Its chunks are
# kept there as for a function.
record_itself <- function(joining) {
  folder <- new_private_folder(in_folder(dirname(joining$recording), paste0("own-", Sys.getpid())))
  mark <- in_folder(folder, "open")
  file.create(mark)
  spool <- rep(in_folder(folder, "spool"), 2)
  new <- in_folder(folder, "about.new")
  saveRDS(list(pid = Sys.getpid(), names = names_of_process(commandArgs())), new)
  file.rename(new, in_folder(folder, "about.rds"))
  settings <- list(
    interval = joining$interval, every = 2, memory = numeric(), clock = joining$clock, keys = list(), values = list(),
    lease = c(joining$recording, mark), kind = "function", shown = "a recording", path = spool, limit = 512 * 2^20
  )
  run_agent(settings, "auto", NULL, NULL, NULL)
}

# A list with a list for each process that was to record itself, with its id as the name: its `profile` and the `names` of
# its program and script, or `why` there is no profile.
recorded_by_themselves <- function(folder) {
  folders <- list.files(folder, "^own-", full.names = TRUE)
  since <- proc.time()[["elapsed"]]
  lapply(rlang::set_names(folders, sub(".*/own-", "", folders)), function(own) {
    refused <- in_folder(own, "refused")
    if (file.exists(refused)) {
      # A message of rlang, whose bullets are two characters wide.
      lines <- readLines(refused, warn = FALSE, encoding = "UTF-8")
      return(list(why = shown_text(paste(c(lines[1], substring(lines[-1], 3)), collapse = " "))))
    }
    if (!file.exists(in_folder(own, "about.rds"))) {
      return(list(why = "It was just about to begin when the recording ended."))
    }
    about <- readRDS(in_folder(own, "about.rds"))
    mark <- in_folder(own, "open")
    # Its thread needs a moment for the last chunk.
    while (file.exists(mark) && tools::pskill(about$pid, 0L) && proc.time()[["elapsed"]] - since < longest_end) {
      Sys.sleep(0.01)
    }
    chunks <- lapply(spooled_files(in_folder(own, "spool")), function(path) {
      new_profile_data(rust(rust_agent_chunk(c(path, path), FALSE), NULL), "2.0")
    })
    if (length(chunks) == 0) {
      return(list(why = "It has ended, or did not answer, before it had written any samples."))
    }
    list(profile = as_one_source(bind_profiles(chunks, NULL)), names = about$names)
  })
}

# How long workers may take to write their last chunks, in seconds.
longest_end <- 5

# The chunks of one agent as one source.
as_one_source <- function(x) {
  first <- x$sources$source_id[[1]]
  x$samples$source_id <- rep(first, nrow(x$samples))
  x$sources$.duration_nanos[[1]] <- sum(x$sources$.duration_nanos)
  x[] <- lapply(x, function(table) {
    if ("source_id" %in% names(table)) table[table$source_id == first, ] else table
  })
  x
}
