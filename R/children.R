# The processes that work for this session, for `record_profile(children = TRUE)`.
#
# A helper, another R process, records them from outside. This session must not do that: if it stopped its own children,
# each stop would be reported to all that wait for them, so that system(), parallel and processx would be confused.
#
# Processes that are started during the recording inherit an environment variable with the recording's folder, by which
# the helper finds those that have another parent, such as the workers of parallel and future.

variable_of_recording <- "R_PROFILE_RECORDING"

# Checks the argument `children`, and returns a list: whether there are any, and those that the user names.
check_children <- function(children, call) {
  if (rlang::is_bool(children)) {
    return(list(any = children, pids = integer()))
  }
  if (inherits(children, "cluster")) {
    return(list(any = TRUE, pids = pids_of_cluster(children)))
  }
  if (!is.numeric(children)) {
    abort_argument(c(
      paste0("`children` must be `TRUE`, `FALSE`, the ids of processes, or a cluster, not ", describe_object(children), "."),
      i = "A cluster is made by `parallel::makeCluster()`."
    ), call)
  }
  list(any = TRUE, pids = check_pids(children, call))
}

# The workers of a cluster of the package parallel on this machine.
pids_of_cluster <- function(cluster) {
  about <- parallel::clusterCall(cluster, function() list(pid = Sys.getpid(), node = Sys.info()[["nodename"]]))
  here <- vapply(about, function(one) one$node == Sys.info()[["nodename"]], NA)
  as.integer(vapply(about[here], `[[`, 0L, "pid"))
}

# Starts to record the processes, and returns a function that stops this and returns what `recorded_of()` describes.
start_helper <- function(children, settings, call) {
  force(call)
  folder <- tempfile("children-")
  dir.create(folder, mode = "0700")
  value <- in_folder(normalizePath(folder), "recording")
  asked <- list(
    pid = Sys.getpid(), variable = paste0(variable_of_recording, "=", value), workers = children$pids,
    file = c(value, shown_text(value))
  )
  saveRDS(list(asked = asked, settings = settings), in_folder(folder, "request.rds"))
  is_ready <- FALSE
  on.exit(if (!is_ready) unlink(folder, recursive = TRUE))
  run_in_background("profile:::run_helper(commandArgs(TRUE)[[1]])", folder, in_folder(folder, "log"))
  result <- wait_for_helper(folder, function() file.exists(value))
  if (inherits(result, "error")) {
    result$call <- call
    rlang::cnd_signal(result)
  }
  is_ready <- TRUE
  do.call(Sys.setenv, rlang::set_names(list(value), variable_of_recording))
  function() {
    Sys.unsetenv(variable_of_recording)
    unlink(value)
    on.exit(unlink(folder, recursive = TRUE))
    wait_for_helper(folder, function() FALSE)
  }
}

# Waits until there is a result of the helper, which is returned, or `is_done()`.
wait_for_helper <- function(folder, is_done) {
  result <- in_folder(folder, "result.rds")
  pid <- in_folder(folder, "pid")
  since <- proc.time()[["elapsed"]]
  repeat {
    is_lost <- if (file.exists(pid)) {
      # It writes the result before it ends.
      !tools::pskill(as.integer(readLines(pid)), 0L)
    } else {
      proc.time()[["elapsed"]] - since > longest_start
    }
    if (file.exists(result)) {
      return(readRDS(result))
    }
    if (is_done()) {
      return(NULL)
    }
    if (is_lost || !dir.exists(folder)) {
      said <- vapply(utils::tail(lines_of(in_folder(folder, "log")), 3), shown_text, "", USE.NAMES = FALSE)
      return(rlang::error_cnd(
        c("profile_error_process", "profile_error"),
        message = paste(c("The process that records the children has ended.", said), collapse = "\n")
      ))
    }
    Sys.sleep(0.01)
  }
}

lines_of <- function(file) if (file.exists(file)) readLines(file, warn = FALSE)

# How long R may take to start, in seconds.
longest_start <- 60

# Runs code in a new R process, which is no child of this one: the shell that has started it ends at once.
run_in_background <- function(code, argument, log) {
  # Variables that would configure R differently, or start an agent.
  others <- c("R_PROFILE_AGENT", "R_TESTS", "OTEL_R_TRACES_EXPORTER")
  libraries <- c(dirname(getNamespaceInfo("profile", "path")), .libPaths())
  command <- c(
    "env", paste0("-u", others), paste0("R_LIBS=", paste(unique(libraries), collapse = .Platform$path.sep)),
    "R_DEFAULT_PACKAGES=NULL", file.path(R.home("bin"), "Rscript"), "--vanilla", "-e", code, argument
  )
  system(paste(paste(shQuote(command), collapse = " "), "</dev/null >", shQuote(log), "2>&1"), wait = FALSE)
}

# ---- The helper --------------------------------------------------------------------

run_helper <- function(folder) {
  new <- in_folder(folder, "pid.new")
  writeLines(as.character(Sys.getpid()), new)
  file.rename(new, in_folder(folder, "pid"))
  request <- readRDS(in_folder(folder, "request.rds"))
  result <- tryCatch(
    recorded_of(rust(rust_family_record(request$asked, request$settings), NULL), TRUE, FALSE),
    error = identity
  )
  if (!dir.exists(folder)) {
    return(invisible())
  }
  if (!tools::pskill(request$asked$pid, 0L)) {
    # The session was killed, and nobody else removes this.
    unlink(folder, recursive = TRUE)
    return(invisible())
  }
  new <- in_folder(folder, "result.new")
  saveRDS(result, new, compress = FALSE)
  file.rename(new, in_folder(folder, "result.rds"))
  invisible()
}

# ---- One profile -------------------------------------------------------------------

# Adds the processes that the helper has recorded to the profile of this session, whose samples get the same unit, and the
# times at which they were taken.
with_children <- function(x, recorded, clock, call) {
  family <- recorded$profile
  own <- x$sources$source_id[[1]]
  x <- with_amounts_of_time(x, own, clock)
  x$samples$.timestamp <- times_of_samples(x, own, clock, recorded$readings)
  about <- family$.source_attributes
  is_own <- about$source_id == family$sources$source_id[[1]]
  x$.source_attributes <- about[is_own, ]
  x$.source_attributes$source_id <- rep(own, sum(is_own))
  x$sources$source_uri[[1]] <- paste0("pid:", Sys.getpid())
  others <- family$sources$source_id[-1]
  if (length(others) == 0) {
    return(x)
  }
  family[] <- lapply(family, function(table) {
    if ("source_id" %in% names(table)) table[table$source_id %in% others, ] else table
  })
  bind_profiles(list(x, family), call)
}

# A sample of R's profiler is a count; those of processes are times.
with_amounts_of_time <- function(x, source, clock) {
  row <- match(source, x$sources$source_id)
  nanoseconds <- x$sources$.period[[row]] * seconds_in[[x$sources$.period_unit[[row]]]] * 1e9
  values <- x$sample_values
  of_source <- x$samples$source_id[match(values$sample_id, x$samples$sample_id)] == source
  counts <- which(of_source & values$type == "samples")
  values$type[counts] <- clock
  values$unit[counts] <- "nanoseconds"
  values$value[counts] <- values$value[counts] * nanoseconds
  x$sample_values <- values
  x$sources$.period[[row]] <- nanoseconds
  x$sources$.period_type[[row]] <- clock
  x$sources$.period_unit[[row]] <- "nanoseconds"
  x$sources$.default_type <- clock
  x
}

# When the samples were taken, in seconds since 1970: R's profiler takes them at equal distances of its clock, whose
# readings the helper has noted.
times_of_samples <- function(x, source, clock, readings) {
  times <- rep(NA_real_, nrow(x$samples))
  rows <- which(x$samples$source_id == source)
  if (length(rows) == 0 || length(readings$date) < 2) {
    return(times)
  }
  dates <- readings$date / 1e9
  passed <- if (clock == "cpu") readings$cpu else dates
  # The first of equal readings is when the process began to wait.
  at <- seq(passed[[1]], passed[[length(passed)]], length.out = length(rows) + 1)[-1]
  times[rows] <- stats::approx(passed, dates, at, ties = "ordered")$y
  times
}
