# Replaces the many small files of a day by few, and sums up old days.
#
# Writers add files to the folder of the current day. When a day has passed, its rows are written again, service by
# service and sorted, to a folder that gets its name when it is complete:
#
#   ROOT/compact/samples/day=DAY/valid_from=SECONDS/PERIOD-APART-N.parquet     sums, see `dataset_periods` and `dataset_parts`
#   ROOT/compact/samples/day=DAY/valid_from=SECONDS/_files               the files of writers that they contain
#   ROOT/compact/frames/day=DAY/STAMP-N.parquet                          and likewise `labels`
#
# Queries read a day from its latest folder that is valid, else from the files of writers. A query may list files
# several times, and must see the same state each time. Therefore a folder becomes valid a minute after it appeared, and
# what it replaces stays for another hour. Frames and labels have no such rule, since duplicates of them do no harm.
#
# A file of a writer that came after its day was compacted is not in `_files`: the writer was stopped for a while, or
# its clock is wrong. dataset-read.R reads such a file, and the next call sums up the last folder and the file together.
#
# A process that is killed leaves hidden folders, which a later call removes, and perhaps frames without samples. All
# decisions are in `plan_day()`, which knows only names of files. If two processes compact a day at once, the sums of
# one are used: a folder gets its name only while the folder that it replaces is still the last one.

# Seconds after the end of a day in which its last writers finish, from the appearance of a folder until it is valid, in
# which queries that have begun earlier end, and after which a hidden folder is of a process that was killed.
dataset_delays <- c(writers = 3600, valid = 60, readers = 3600, killed = 86400)

# The number of rows that are sorted at once, which determines the memory that is needed.
most_rows <- 5e5
# More files are merged first, since each part opens all of them. Otherwise merging takes longer than it saves.
many_files <- 64

roll_up_dataset <- function(path, before, period, apart, call) {
  store <- open_local_store(path, "roll_up_profiles", call)
  remove_leftovers(store)
  days <- days_before(store, before)
  report <- progress_report("Summing days", "tasks")
  written <- 0
  for (i in seq_along(days)) {
    show_progress(report, i - 1, length(days))
    plan <- plan_day(list_day(store, days[[i]]), period, apart, current_time())
    written <- written + carry_out(store, days[[i]], plan, call)
  }
  invisible(written)
}

prune_dataset <- function(path, before, call) {
  store <- open_local_store(path, "prune_profiles", call)
  remove_leftovers(store)
  days <- days_before(store, before)
  for (day in days) {
    # Samples first, so that no samples are without frames, and their sums last, since they hide the files of writers.
    for (table in names(dataset_columns)) {
      hide_and_remove(store, paste0(c("", "compact/"), table, "/day=", day), call)
    }
  }
  invisible(length(days))
}

open_local_store <- function(path, verb, call) {
  store <- open_store(path, call)
  check_is_dataset(store, call)
  if (!store$is_local) {
    abort_unsupported(c(
      paste0("`", verb, "()` cannot change the data set `", store$shown, "`: object storage cannot rename folders."),
      i = "Use it on a file system, or compact the tables with an engine such as Spark."
    ), call)
  }
  store
}

# ---- Plans ---------------------------------------------------------------------------

# The days that have passed and end before a time, in seconds since 1970. Writers that began before midnight have time
# to finish.
days_before <- function(store, before) {
  paths <- in_folder(store$root, c(names(dataset_columns), in_folder("compact", names(dataset_columns))))
  days <- sub("^day=", "", list.files(paths, "^day=[0-9]{4}-[0-9]{2}-[0-9]{2}$"))
  closed_days(days, before, current_time())
}

closed_days <- function(days, before, now) {
  days <- setdiff(days, empty_day)
  ends <- as.numeric(as.POSIXct(paste0(days, recycle0 = TRUE), tz = "UTC", format = "%Y-%m-%d")) + 86400
  # The folder of a day that does not exist, such as February 30, is not of a writer.
  sort(days[which(ends <= before & ends + dataset_delays[["writers"]] <= now)])
}

# The files that writers added on a day, and for each folder of sums `valid_from`, how it was summed up, and the files
# in it.
list_day <- function(store, day) {
  # First the files: what is removed meanwhile is in a folder.
  files <- list.files(in_folder(store$root, paste0("samples/day=", day)), "^[^._].*[.]parquet$")
  list(files = files, folders = list_folders(store, day))
}

list_folders <- function(store, day) {
  of_day <- paste0("compact/samples/day=", day)
  folders <- list.files(in_folder(store$root, of_day), "^valid_from=[0-9]+$")
  folders <- lapply(rlang::set_names(folders), function(name) {
    folder <- in_folder(in_folder(store$root, of_day), name)
    listed <- in_folder(folder, "_files")
    kind <- list.files(folder, "^(minute|hour|day)-(run|host|none)-[0-9]+[.]parquet$")[1]
    list(
      valid_from = as.numeric(sub("valid_from=", "", name)), period = sub("-.*", "", kind),
      apart = sub("^[a-z]+-([a-z]+)-.*", "\\1", kind), files = if (file.exists(listed)) readLines(listed)
    )
  })
  Filter(function(folder) !is.na(folder$period), folders)
}

# The name of the folder of a day from which queries read; empty if there is none.
last_folder <- function(folders) {
  names(folders)[which.max(vapply(folders, `[[`, 0, "valid_from"))] %||% character()
}

# What to do with a day: `period` and `apart`: how its rows are summed up, NULL if nothing is to be summed; `last`: the folder
# whose sums are used, and `files` of writers that it does not contain; `obsolete` folders and `done` files, which no
# query reads any more.
plan_day <- function(listed, period, apart, now) {
  folders <- listed$folders
  last <- last_folder(folders)
  if (length(last) == 0) {
    if (length(listed$files) == 0) period <- apart <- NULL
    return(list(period = period, apart = apart, last = last, files = listed$files))
  }
  sums <- folders[[last]]
  files <- setdiff(listed$files, sums$files)
  # What was summed up stays so.
  longer <- names(dataset_periods)[dataset_periods == max(dataset_periods[c(period, sums$period)])]
  coarser <- dataset_parts[max(match(c(apart, sums$apart), dataset_parts))]
  is_new <- length(files) > 0 || longer != sums$period || coarser != sums$apart
  is_old <- now >= sums$valid_from + dataset_delays[["readers"]]
  list(
    period = if (is_new) longer, apart = if (is_new) coarser, last = last, files = files,
    obsolete = if (is_old) setdiff(names(folders), last), done = if (is_old) intersect(listed$files, sums$files)
  )
}

# ---- Carrying out ----------------------------------------------------------------------

# Returns whether sums were written.
carry_out <- function(store, day, plan, call) {
  hide_and_remove(store, in_folder(paste0("compact/samples/day=", day), plan$obsolete), call)
  for (file in plan$done) {
    # Samples first, so that no samples are without frames.
    unlink(in_folder(store$root, paste0(names(dataset_columns), "/day=", day, "/", file)), expand = FALSE)
  }
  !is.null(plan$period) && sum_day(store, day, plan, call)
}

sum_day <- function(store, day, plan, call) {
  hidden <- paste0(".compact-", unique_name())
  on.exit(unlink(in_folder(store$root, hidden), recursive = TRUE, expand = FALSE))
  of_day <- paste0("compact/samples/day=", day)
  for (table in c("frames", "labels")) {
    files <- files_that_exist(store, in_folder(paste0(table, "/day=", day), plan$files))
    write_sorted(store, files, table, in_folder(paste0("compact/", table, "/day=", day), unique_name()), call)
  }
  sums <- in_folder(of_day, plan$last)
  names <- list.files(in_folder(store$root, sums), "^[^._].*[.]parquet$", full.names = TRUE)
  new <- in_folder(in_folder(store$root, paste0("samples/day=", day)), plan$files)
  write_sorted(store, c(names, new), "samples", in_folder(hidden, paste0(plan$period, "-", plan$apart)), call, plan)
  if (!dir.exists(in_folder(store$root, hidden))) {
    return(FALSE)
  }
  # What was summed is still there, unless another process has compacted or removed the day.
  read <- c(new, if (length(plan$last) > 0) in_folder(store$root, sums))
  now <- list_folders(store, day)
  if (!identical(last_folder(now), plan$last) || !all(file.exists(read))) {
    return(FALSE)
  }
  before <- if (length(plan$last) > 0) now[[plan$last]]
  failing(store, call, {
    writeLines(union(before$files, plan$files), in_folder(in_folder(store$root, hidden), "_files"))
  })
  # Later than the folder before, even if the clock of another machine is wrong.
  valid_from <- max(ceiling(current_time() + dataset_delays[["valid"]]), before$valid_from + 1)
  to <- paste0(of_day, "/valid_from=", format(valid_from, scientific = FALSE))
  rename_into_place(store, in_folder(store$root, hidden), to, call)
  # If the day was removed in between, this has created it again. If it is removed from now on, so is this folder.
  is_there <- all(file.exists(read))
  if (!is_there) hide_and_remove(store, to, call)
  is_there
}

# Samples without labels have no file of labels.
files_that_exist <- function(store, files) {
  files <- in_folder(store$root, files)
  files[file.exists(files)]
}

# Writes the distinct rows of frames or labels, or sums of samples, in files `to-1.parquet`, `to-2.parquet`, ... that
# are sorted by service. Each contains the rows of some services, or a part of the stacks or sets of labels of one.
write_sorted <- function(store, files, table, to, call, plan = NULL) {
  .data <- rlang::.data
  if (length(files) == 0) {
    return(invisible())
  }
  # Frames are far fewer when they are distinct.
  merged <- paste0(".compact-", unique_name())
  on.exit(unlink(in_folder(store$root, merged), recursive = TRUE, expand = FALSE))
  if (length(files) > many_files) {
    groups <- groups_of_files(files)
    for (i in seq_along(groups)) {
      rows <- reading(store, call, open_files(store, groups[[i]]))
      put_rows(store, rows, table, paste0(merged, "/", i, ".parquet"), call, plan)
    }
    files <- list.files(in_folder(store$root, merged), full.names = TRUE)
  }
  rows <- reading(store, call, open_files(store, files))
  counts <- reading(store, call, dplyr::collect(dplyr::count(rows, .data$service)))
  parts <- parts_of_services(counts$service, as.numeric(counts$n))
  key <- if (table == "labels") "label_key" else "stack_key"
  for (i in seq_along(parts)) {
    part <- dplyr::filter(rows, .data$service %in% !!parts[[i]]$services)
    if (!is.null(parts[[i]]$letters)) {
      part <- dplyr::filter(part, substr(.data[[key]], 1, 1) %in% !!parts[[i]]$letters)
    }
    put_rows(store, part, table, paste0(to, "-", i, ".parquet"), call, plan)
  }
}

# Lists of files that are merged first. A byte of a file is a fifth of a row, or less.
groups_of_files <- function(files, most = 5 * most_rows) {
  unname(split(files, cumsum(as.numeric(file.size(files))) %/% most))
}

put_rows <- function(store, rows, table, to, call, plan) {
  columns <- names(dataset_columns[[table]])
  rows <- if (table == "samples") summed_up(rows, plan$period, plan$apart) else dplyr::distinct(dplyr::select(rows, !!columns))
  order <- list(
    samples = c("service", "sample_type", "minute", "stack_key"), frames = c("service", "stack_key", "depth"),
    labels = c("service", "label_key", "label", "value")
  )
  rows <- dplyr::arrange(rows, !!!rlang::syms(order[[table]]))
  rows <- reading(store, call, dplyr::compute(dplyr::select(rows, !!columns)))
  if (table == "samples" && any(is.infinite(as.vector(rows$value)))) {
    abort_sums(call)
  }
  put_table(store, to, rows, table, call)
}

# Sums have no trace, unless they are of one minute.
summed_up <- function(rows, period, apart) {
  .data <- rlang::.data
  if (period != "minute") {
    # arrow knows this function of lubridate, which need not be installed.
    start <- rlang::call2("floor_date", rlang::sym("minute"), period)
    rows <- dplyr::mutate(rows, minute = !!start, trace_id = NA_character_)
  }
  if (apart != "run") {
    rows <- dplyr::mutate(rows, run = NA_character_, run_start = !!as.POSIXct(NA_real_, origin = "1970-01-01", tz = "UTC"))
  }
  if (apart == "none") {
    rows <- dplyr::mutate(rows, host = NA_character_)
  }
  by <- setdiff(names(dataset_columns$samples), c("value", "sample_count"))
  rows <- dplyr::group_by(rows, !!!rlang::syms(by))
  dplyr::summarise(rows, value = sum(.data$value), sample_count = sum(.data$sample_count), .groups = "drop")
}

# Lists of services that together have at most `most` rows. A larger service is divided by the first letter of keys.
parts_of_services <- function(services, rows, most = most_rows) {
  parts <- list()
  size <- Inf
  for (i in order(services, method = "radix")) {
    if (rows[[i]] > most) {
      groups <- split(letters_of_keys, ceiling(seq_along(letters_of_keys) * min(1, rows[[i]] / most / 64)))
      own <- lapply(unname(groups), function(group) list(services = services[[i]], letters = group))
      parts <- c(parts, own)
      size <- Inf
    } else if (size + rows[[i]] > most) {
      parts <- c(parts, list(list(services = services[[i]])))
      size <- rows[[i]]
    } else {
      last <- length(parts)
      parts[[last]]$services <- c(parts[[last]]$services, services[[i]])
      size <- size + rows[[i]]
    }
  }
  parts
}

# ---- Removing --------------------------------------------------------------------------

# A folder gets a hidden name first, so that no query sees a part of it.
hide_and_remove <- function(store, folders, call) {
  folders <- in_folder(store$root, folders)
  for (folder in folders[dir.exists(folders)]) {
    hidden <- paste0(".removed-", unique_name())
    rename_into_place(store, folder, hidden, call)
    unlink(in_folder(store$root, hidden), recursive = TRUE, expand = FALSE)
  }
}

remove_leftovers <- function(store) {
  hidden <- list.files(store$root, "^[.]", all.files = TRUE, no.. = TRUE, full.names = TRUE)
  hidden <- grep("/[.](compact|removed)-[^/]*$|/[.][^/]*[.]new$", hidden, value = TRUE)
  age <- current_time() - as.numeric(file.mtime(hidden))
  unlink(hidden[which(age > dataset_delays[["killed"]])], recursive = TRUE, expand = FALSE)
}
