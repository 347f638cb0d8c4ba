# The processes that record what works for a session, see R/children.R: the helper, and workers that record themselves.

# ---- The helper --------------------------------------------------------------------

# Runs in a process of its own. `arguments`: the folder, and the id of the process that collects the result.
run_helper <- function(arguments) {
  folder <- arguments[[1]]
  collector <- as.integer(arguments[[2]])
  save_complete(Sys.getpid(), folder, "pid.rds")
  file <- in_folder(folder, "request.rds")
  while (!file.exists(file)) {
    if (!dir.exists(folder) || !tools::pskill(collector, 0L)) {
      return(invisible())
    }
    Sys.sleep(0.005)
  }
  request <- readRDS(file)
  result <- tryCatch(
    if (is.null(request$heaps)) {
      if (isTRUE(request$peak)) rust(rust_peaks_start(request$asked$pid), NULL)
      recorded <- rust(rust_family_record(request$asked, request$settings, recording_of(folder, request)), NULL)
      c(recorded_of(recorded, TRUE, FALSE), list(peak = if (isTRUE(request$peak)) end_peaks(NULL, lazy = FALSE)))
    } else {
      # The folder is removed when the user presses Ctrl-C.
      lapply(request$heaps, function(pid) if (dir.exists(folder)) heap_or_error(pid, FALSE))
    },
    error = identity
  )
  if (!dir.exists(folder)) {
    return(invisible())
  }
  if (!tools::pskill(collector, 0L)) {
    # It was killed, and nobody else removes this.
    unlink(folder, recursive = TRUE)
    return(invisible())
  }
  save_complete(result, folder, "result.rds")
  invisible()
}

# The function by which the core says that the recording has begun, and asks whether it goes on.
recording_of <- function(folder, request) {
  force(folder)
  force(request)
  file <- in_folder(folder, "recording.rds")
  has_begun <- FALSE
  function(may_look) {
    if (is.na(may_look)) {
      return(dir.exists(folder))
    }
    if (!has_begun) {
      # How workers join: inst/record/worker.R.
      save_complete(list(
        folder = folder, helper = Sys.getpid(), is_refused = !may_look, interval = request$settings$interval,
        clock = request$settings$clock, threshold = request$settings$threshold, library = own_library()
      ), folder, basename(file))
      has_begun <<- TRUE
    }
    file.exists(file)
  }
}

# ---- Workers that record themselves ------------------------------------------------

# Called by inst/record/worker.R: starts the agent for the time of the recording, into a folder of its own. Its chunks are
# kept there as for a function.
record_itself <- function(joining) {
  folder <- new_private_folder(in_folder(joining$folder, paste0("own-", Sys.getpid())))
  mark <- in_folder(folder, "open")
  file.create(mark)
  save_complete(list(pid = Sys.getpid(), names = names_of_process(commandArgs())), folder, "about.rds")
  settings <- list(
    interval = joining$interval, every = 2, memory = numeric(), clock = joining$clock, waits = "names",
    keys = list(), values = list(),
    lease = c(in_folder(joining$folder, "recording.rds"), mark), kind = "function", shown = "a recording",
    path = rep(in_folder(folder, "spool"), 2), limit = 512 * 2^20
  )
  run_agent(settings, "auto", NULL, NULL, NULL)
}

# Called by inst/record/worker.R: records the vectors that this process allocates, until their file is read.
record_own_allocations <- function(joining) {
  folder <- new_private_folder(in_folder(joining$folder, paste0("exact-", Sys.getpid())))
  # Where it is not possible, the master says so.
  suppressMessages(start_allocations(joining$threshold, folder, NULL, forks = TRUE))
}

# The vectors of all workers and their forks, as a profile with a source for each process; NULL if there are none.
allocations_of_workers <- function(folder) {
  folders <- list.files(folder, "^exact-", full.names = TRUE)
  found <- lapply(folders, function(own) list(read_allocations(own, NULL), read_allocations(own, NULL, forks = TRUE)))
  found <- Filter(function(x) !is.null(x), unlist(found, recursive = FALSE))
  if (length(found) > 0) bind_profiles(found, NULL)
}

# A list with a list for each process that was to record itself, with its id as the name: its `profile` and the `names` of
# its program and script, or `why` there is no profile.
recorded_by_themselves <- function(folder) {
  folders <- list.files(folder, "^own-", full.names = TRUE)
  since <- proc.time()[["elapsed"]]
  lapply(rlang::set_names(folders, sub(".*/own-", "", folders)), function(own) {
    file <- in_folder(own, "about.rds")
    if (!file.exists(file)) {
      return(list(why = "It was just about to begin when the recording ended."))
    }
    about <- readRDS(file)
    if (!is.null(about$why)) {
      # A message of rlang, whose bullets are two characters wide.
      lines <- strsplit(about$why, "\n", fixed = TRUE)[[1]]
      return(list(why = shown_text(paste(c(lines[1], substring(lines[-1], 3)), collapse = " "))))
    }
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
