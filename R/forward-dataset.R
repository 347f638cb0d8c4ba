# Writes the profiles in a folder to a data set: the sender of forward_profiles() if `to` is a folder or object storage.
#
# A file for each profile would be too small, so the profiles of some minutes are written together. Their names and the
# name of the new file are noted in a file "batch" first. If the process is killed, the next one finds it and knows from
# the new file, which gets its name when it is complete, whether the profiles were written.

# Whether `to` is a data set and not a server. A word such as `host:4318` is more likely an address without `http://`.
is_dataset_target <- function(to) {
  is_path(to) && (grepl("^(s3|gs)://", to) || dir.exists(path.expand(to)))
}

# Seconds to collect profiles, and the maximum number of files that are written together.
dataset_pause <- 300
most_files <- 1000

# Has the functions of `new_sender()`. `once`: whether nothing is waited for.
new_dataset_sender <- function(folder, to, resource, once, tell, call) {
  force(folder)
  force(resource)
  force(once)
  force(tell)
  force(call)
  store <- open_store(to, call)
  create_layout(store, call)
  counts <- c(sent = 0L, refused = 0L)
  attempts <- 0
  first_seen <- NULL
  next_time <- 0
  last <- NA_character_
  note <- in_folder(folder, "batch")
  finish_batch(store, folder, note, call)
  for (file in list.files(folder, "[.]sending$", full.names = TRUE)) {
    file.rename(file, with_end(file, ".otlp.gz"))
  }
  step <- function() {
    waiting <- spooled_files(folder)
    if (length(waiting) == 0 || current_time() < next_time) {
      return(FALSE)
    }
    first_seen <<- first_seen %||% current_time()
    if (!once && length(waiting) < most_files && current_time() < first_seen + dataset_pause) {
      return(FALSE)
    }
    batch <- read_batch(utils::head(waiting, most_files), function(taken, error) {
      counts[["refused"]] <<- counts[["refused"]] + 1L
      finish_file(taken, list(kind = "refused"))
      tell("refused", paste0("`", basename(taken$path), "`: ", shown_text(conditionMessage(error))))
    })
    problem <- tryCatch(
      {
        write_batch(store, batch, resource, note, call)
        NULL
      },
      profile_error = function(e) e
    )
    if (!is.null(problem)) {
      attempts <<- attempts + 1
      next_time <<- current_time() + min(2^attempts, 300)
      last <<- shown_text(conditionMessage(problem))
      for (taken in batch$taken) finish_file(taken, list(kind = "again"))
      tell("again", last)
      return(FALSE)
    }
    for (taken in batch$taken) finish_file(taken, list(kind = "sent", rejected = 0))
    unlink(note)
    counts[["sent"]] <<- counts[["sent"]] + length(batch$taken)
    attempts <<- 0
    first_seen <<- NULL
    TRUE
  }
  list(
    step = step, is_idle = function() length(spooled_files(folder)) == 0, attempts = function() attempts,
    last = function() last, counts = function() counts
  )
}

# Takes files until there are enough samples, and reads them. `refuse()` is called for files that are no profiles.
read_batch <- function(files, refuse) {
  taken <- profiles <- list()
  samples <- 0
  for (path in files) {
    if (samples >= most_samples) {
      break
    }
    # The folder may have been removed meanwhile, or the agent has dropped the file.
    file <- take_file(path)
    if (is.null(file) || !file.exists(file$held)) {
      next
    }
    x <- tryCatch(
      suppressWarnings(read_profile(file$held, source_uri = NA), "profile_warning"),
      profile_error = function(e) {
        refuse(file, e)
        NULL
      }
    )
    if (!is.null(x)) {
      taken <- c(taken, list(file))
      profiles <- c(profiles, list(x))
      samples <- samples + nrow(x$samples)
    }
  }
  list(taken = taken, profiles = profiles)
}

write_batch <- function(store, batch, resource, note, call) {
  if (length(batch$profiles) == 0) {
    return(invisible())
  }
  x <- bind_profiles(batch$profiles, call)
  name <- paste0(unique_name(), ".parquet")
  day <- today_in_utc()
  held <- vapply(batch$taken, function(taken) basename(taken$held), "")
  failing(store, call, {
    writeLines(c(day, name, held), paste0(note, ".new"))
    if (!file.rename(paste0(note, ".new"), note)) stop("The file `batch` cannot be renamed.")
  })
  append_tables(store, flat_tables(x, resource, call), call, name, day)
}

# What a forwarder that was killed has written is not written again.
finish_batch <- function(store, folder, note, call) {
  if (!file.exists(note)) {
    return(invisible())
  }
  lines <- readLines(note)
  if (reading(store, call, has_file(store, lines[[1]], lines[[2]]))) {
    for (held in in_folder(folder, lines[-(1:2)])) {
      path <- if (grepl("[.]sending$", held)) with_end(held, ".otlp.gz") else held
      if (file.exists(held)) finish_file(list(path = path, held = held), list(kind = "sent", rejected = 0))
    }
  }
  unlink(note)
}

# Whether a file of a writer was added, even if its day was compacted and it was removed.
has_file <- function(store, day, name) {
  folder <- paste0("compact/samples/day=", day)
  selector <- arrow::FileSelector$create(in_folder(store$root, folder), allow_not_found = TRUE, recursive = TRUE)
  lists <- Filter(function(info) basename(info$path) == "_files", store$fs$GetFileInfo(selector))
  contained <- lapply(lists, function(info) {
    read_lines(store, in_folder(folder, in_folder(basename(dirname(info$path)), "_files")))
  })
  name %in% unlist(contained) || is_file(store, paste0("samples/day=", day, "/", name))
}
