# The snapshot at the peak of `record_profile(snapshot = "peak")`. While each vector is recorded, the core makes an image of
# this process, a copy that stands still, whenever its memory is higher than ever (src/rust/allocations/src/linux/images.rs).
# Another R process reads the image at once, since R has to copy each page that it changes as long as there is one. Its
# memory and time are its own.
#
# They communicate by files in the folder of the recording. Those of R are complete when they have this name.
#
# | file           | written by  | content                                                          | read by     |
# |----------------|-------------|------------------------------------------------------------------|-------------|
# | `log`          | a shell     | the reader's output                                              | nobody      |
# | `pid.rds`      | the reader  | its process id                                                   | the session |
# | `request`      | the core    | an image, see `read_request()`; a newer one replaces it          | the reader  |
# | `reading`      | the reader  | a request that it has taken, until it has read the image         | the session |
# | `snapshot.rds` | the reader  | a list: the last request, and `heap`, the snapshot, or an error  | the session |
# | `refused`      | the core    | why an image was not made                                        | the session |
# | `ended`        | a shell     | `log`, renamed, when the reader has ended                        | the session |
#
# The reader ends when the folder is removed, or the session has ended.

# Starts the reader in this folder, and returns its process id.
start_reader <- function(folder, call) {
  run_in_background("profile:::read_images(commandArgs(TRUE))", folder, Sys.getpid())
  file <- in_folder(folder, "pid.rds")
  stop_if_failed(wait_for_helper(folder, function() file.exists(file)), call)
  readRDS(file)
}

# Runs in a process of its own. `arguments`: the folder, and the id of the session.
read_images <- function(arguments) {
  folder <- arguments[[1]]
  session <- as.integer(arguments[[2]])
  # If memory runs out, this process is to be killed, and not the session.
  try(writeLines("1000", "/proc/self/oom_score_adj"), silent = TRUE)
  save_complete(Sys.getpid(), folder, "pid.rds")
  while (dir.exists(folder) && tools::pskill(session, 0L)) {
    if (!file.exists(in_folder(folder, "request"))) {
      Sys.sleep(0.005)
      next
    }
    reading <- in_folder(folder, "reading")
    file.rename(in_folder(folder, "request"), reading)
    request <- read_request(readLines(reading, encoding = "UTF-8"))
    heap <- heap_or_error(request$image, FALSE, request$malloc)
    # If there is a newer image, this one has ended.
    if (!inherits(heap, "error") || !file.exists(in_folder(folder, "request"))) {
      save_complete(c(request, list(heap = heap)), folder, "snapshot.rds")
    }
    end_image(request$image)
    unlink(reading)
  }
}

# An image: its id; the bytes of vectors that were in use, those of the one that was just being allocated, and the call that
# did so; the date; and what `malloc()` of the session says.
read_request <- function(lines) {
  list(
    image = as.integer(lines[[1]]), bytes = as.numeric(lines[[3]]), pending = as.numeric(lines[[4]]),
    date = as.numeric(lines[[5]]) / 1e9, name = lines[[6]], filename = lines[[7]], line = as.integer(lines[[8]]),
    malloc = list(allocator = lines[[9]], used = as.numeric(lines[[10]]), free = as.numeric(lines[[11]]))
  )
}

end_image <- function(pid) {
  name <- tryCatch(readLines(sprintf("/proc/%d/comm", pid)), error = function(error) "", warning = function(warning) "")
  if (name == "profile-image") tools::pskill(pid, tools::SIGKILL)
}

# Waits until the last image has been read.
wait_for_reader <- function(folder) {
  files <- in_folder(folder, c("request", "reading"))
  while (any(file.exists(files)) && !file.exists(in_folder(folder, "ended"))) Sys.sleep(0.005)
}

# The snapshot of the highest peak that has one; NULL if there is none, which a message explains.
snapshot_of_reader <- function(folder, call) {
  file <- in_folder(folder, "snapshot.rds")
  why <- if (file.exists(in_folder(folder, "refused"))) readLines(in_folder(folder, "refused"), 1, warn = FALSE)
  taken <- if (file.exists(file)) readRDS(file)
  if (inherits(taken$heap, "error")) {
    why <- c(why, conditionMessage(taken$heap))
    taken <- NULL
  }
  if (is.null(taken) || length(why) > 0) {
    inform_profile(c(
      if (is.null(taken)) "There is no snapshot of the peak." else "There is no snapshot of a later peak.",
      i = if (length(why) > 0) shown_text(paste(why, collapse = " "))
    ), "profile_message_memory")
  }
  if (!is.null(taken)) with_pending_vector(taken, call)
}

# The snapshot as one of this session, with the vector that was just being allocated, which was no object of R yet.
with_pending_vector <- function(taken, call) {
  x <- taken$heap
  about <- x$.source_attributes
  about$value[about$key == "process.pid"] <- as.character(Sys.getpid())
  # The stops were those of the image, which shares all memory with this session.
  x$.source_attributes <- about[!grepl("^profile[.](pauses|heap[.]with_others)", about$key), ]
  x$sources$source_uri <- paste0("pid:", Sys.getpid())
  x$sources$source_timestamp <- taken$date
  place <- if (nzchar(taken$filename)) paste0(" (", basename(taken$filename), ":", taken$line, ")")
  names <- c("vector", paste0("allocated by ", taken$name, place))
  functions <- max(x$functions$function_id) + 1:2
  locations <- max(x$locations$location_id) + 1:2
  sample <- max(x$samples$sample_id) + 1L
  x$functions <- vctrs::vec_rbind(x$functions, tibble::tibble(
    function_id = functions, name = names, system_name = names, filename = "", start_line = 0L
  ))
  x$locations <- vctrs::vec_rbind(x$locations, tibble::tibble(
    location_id = locations, function_id = functions, line = 0L, .frame_type = c("type", "root")
  ))
  x$samples <- vctrs::vec_rbind(x$samples, tibble::tibble(sample_id = sample, source_id = x$sources$source_id))
  x$sample_locations <- vctrs::vec_rbind(x$sample_locations, tibble::tibble(
    sample_id = sample, depth = 1:2, location_id = locations
  ))
  types <- vctrs::vec_unique(x$sample_values[c("type", "unit")])
  x$sample_values <- vctrs::vec_rbind(x$sample_values, tibble::tibble(
    sample_id = sample, type = types$type, unit = types$unit, value = ifelse(types$unit == "bytes", taken$pending, 1)
  ))
  mark_session(validate_profile(x))
}
