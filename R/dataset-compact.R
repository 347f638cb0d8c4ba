# Replaces the many small files of a day by few, and sums up old days.
#
# Writers add files to the folder of the current day. When a day has passed, its rows are written again, service by
# service and sorted, to a folder that gets its name when it is complete:
#
#   ROOT/compact/samples/day=DAY/valid_from=SECONDS/PERIOD-N.parquet     sums of minutes, hours or the day
#   ROOT/compact/samples/day=DAY/valid_from=SECONDS/_files               the files of writers that they contain
#   ROOT/compact/frames/day=DAY/STAMP-N.parquet                          and likewise `labels`
#
# Queries read a day from its latest folder that is valid, else from the files of writers. A query may list files
# several times, and must see the same state each time. Therefore a folder becomes valid a minute after it appeared, and
# what it replaces stays for another hour. Frames and labels have no such rule, since duplicates of them do no harm.
#
# A process that is killed leaves hidden folders, which a later call removes, and perhaps frames without samples. All
# decisions are in `plan_day()`, which knows only names of files.

# Seconds after the end of a day in which its last writers finish, from the appearance of a folder until it is valid, in
# which queries that have begun earlier end, and after which a hidden folder is of a process that was killed.
dataset_delays <- c(writers = 3600, valid = 60, readers = 3600, killed = 86400)

# The number of rows that are sorted at once, which determines the memory that is needed.
most_rows <- 1e6

roll_up_dataset <- function(path, before, period, call, now = Sys.time()) {
  store <- open_local_store(path, "roll_up_profiles", call)
  remove_leftovers(store, now)
  plans <- lapply(days_before(store, before, now), function(day) {
    list(day = day, plan = plan_day(list_day(store, day), period, now))
  })
  report <- progress_report("Summing days", "tasks")
  written <- 0
  for (i in seq_along(plans)) {
    show_progress(report, i - 1, length(plans))
    written <- written + carry_out(store, plans[[i]]$day, plans[[i]]$plan, period, now, call)
  }
  invisible(written)
}

prune_dataset <- function(path, before, call, now = Sys.time()) {
  store <- open_local_store(path, "prune_profiles", call)
  remove_leftovers(store, now)
  days <- days_before(store, before, now)
  for (day in days) {
    # Samples first, so that no samples are without frames.
    for (table in names(dataset_columns)) {
      hide_and_remove(store, in_folder(c("compact/", ""), paste0(table, "/day=", day)))
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

# The days that have passed and end before a time, in seconds since 1970. Writers that began before midnight have time to finish.
days_before <- function(store, before, now) {
  paths <- in_folder(store$root, c(names(dataset_columns), in_folder("compact", names(dataset_columns))))
  days <- sub("^day=", "", list.files(paths, "^day=[0-9]{4}-[0-9]{2}-[0-9]{2}$"))
  closed_days(days, before, now)
}

closed_days <- function(days, before, now) {
  ends <- as.numeric(as.POSIXct(paste0(days, " 00:00:00", recycle0 = TRUE), tz = "UTC")) + 86400
  is_closed <- ends <= before & ends + dataset_delays[["writers"]] <= as.numeric(now)
  sort(unique(setdiff(days[is_closed], empty_day)))
}

# The files of a day: those of writers, and for each folder of sums `valid_from`, its period and the list of files in it.
list_day <- function(store, day) {
  of_day <- in_folder(store$root, paste0("compact/samples/day=", day))
  folders <- list.files(of_day, "^valid_from=[0-9]+$")
  list(
    files = list.files(in_folder(store$root, paste0("samples/day=", day)), "[.]parquet$"),
    folders = lapply(rlang::set_names(folders), function(folder) {
      names <- list.files(in_folder(of_day, folder), "[.]parquet$")
      listed <- in_folder(in_folder(of_day, folder), "_files")
      list(
        valid_from = as.numeric(sub("valid_from=", "", folder)), period = sub("-.*", "", names[1]),
        files = if (file.exists(listed)) readLines(listed)
      )
    })
  )
}

# What to do with a day: `sum`: the folder whose rows are summed up, "" for the files of writers, NULL if nothing is to
# be summed; `late`: files of writers that came after the day was summed up; `obsolete` folders and `done` files, which
# no query reads any more.
plan_day <- function(listed, period, now) {
  folders <- listed$folders
  if (length(folders) == 0) {
    return(list(sum = if (length(listed$files) > 0) ""))
  }
  valid_from <- vapply(folders, `[[`, 0, "valid_from")
  last <- which.max(valid_from)
  known <- unlist(lapply(folders, `[[`, "files"))
  seconds <- dataset_periods[vapply(folders, `[[`, "", "period")]
  is_old <- as.numeric(now) >= valid_from[[last]] + dataset_delays[["readers"]]
  list(
    sum = if (seconds[[last]] < dataset_periods[[period]]) names(folders)[[last]],
    late = setdiff(listed$files, known),
    obsolete = if (is_old) names(folders)[-last],
    done = if (is_old) intersect(listed$files, known)
  )
}

# ---- Carrying out ----------------------------------------------------------------------

# Returns whether sums were written.
carry_out <- function(store, day, plan, period, now, call) {
  for (file in plan$late) {
    move_to_today(store, day, file, now, call)
  }
  if (length(plan$obsolete) > 0) {
    hide_and_remove(store, in_folder(paste0("compact/samples/day=", day), plan$obsolete))
  }
  for (file in plan$done) {
    unlink(in_folder(store$root, paste0(c("samples", "frames", "labels"), "/day=", day, "/", file)))
  }
  if (is.null(plan$sum)) {
    return(FALSE)
  }
  sum_day(store, day, plan$sum, period, call)
  TRUE
}

# The files of one call of a writer, first those to which samples refer.
move_to_today <- function(store, day, file, now, call) {
  today <- format(now, "%Y-%m-%d", tz = "UTC")
  for (table in c("frames", "labels", "samples")) {
    from <- in_folder(store$root, paste0(table, "/day=", day, "/", file))
    if (file.exists(from)) {
      rename_into_place(store, from, paste0(table, "/day=", today, "/", file), call)
    }
  }
}

sum_day <- function(store, day, from, period, call) {
  hidden <- paste0(".compact-", unique_name())
  on.exit(unlink(in_folder(store$root, hidden), recursive = TRUE))
  if (from == "") {
    # Listed once: what arrives meanwhile is late.
    files <- list.files(in_folder(store$root, paste0("samples/day=", day)), "[.]parquet$")
    for (table in c("frames", "labels")) {
      rows <- rows_of_files(store, in_folder(paste0(table, "/day=", day), files))
      if (!is.null(rows)) write_sorted(store, rows, table, in_folder(paste0("compact/", table, "/day=", day), unique_name()), call)
    }
    rows <- rows_of_files(store, in_folder(paste0("samples/day=", day), files))
  } else {
    folder <- in_folder(paste0("compact/samples/day=", day), from)
    files <- readLines(in_folder(in_folder(store$root, folder), "_files"))
    names <- list.files(in_folder(store$root, folder), "[.]parquet$")
    rows <- rows_of_files(store, in_folder(folder, names))
  }
  write_sorted(store, rows, "samples", in_folder(hidden, period), call, period)
  failing(store, call, writeLines(files, in_folder(in_folder(store$root, hidden), "_files")))
  valid_from <- format(ceiling(as.numeric(Sys.time()) + dataset_delays[["valid"]]), scientific = FALSE)
  rename_into_place(store, in_folder(store$root, hidden), paste0("compact/samples/day=", day, "/valid_from=", valid_from), call)
}

# NULL if no file exists: samples without labels have none.
rows_of_files <- function(store, files) {
  files <- in_folder(store$root, files)
  files <- files[file.exists(files)]
  if (length(files) > 0) arrow::open_dataset(files, format = "parquet")
}

# Writes the distinct rows of frames or labels, or sums of samples, in files `to-1.parquet`, `to-2.parquet`, ... that
# are sorted by service. Each contains the rows of some services, or a part of the stacks or sets of labels of one.
write_sorted <- function(store, rows, table, to, call, period = NULL) {
  .data <- rlang::.data
  columns <- names(dataset_columns[[table]])
  key <- if (table == "labels") "label_key" else "stack_key"
  counts <- dplyr::collect(dplyr::count(rows, .data$service))
  parts <- parts_of_services(counts$service, as.numeric(counts$n))
  for (i in seq_along(parts)) {
    part <- dplyr::filter(rows, .data$service %in% !!parts[[i]]$services)
    if (!is.null(parts[[i]]$letters)) {
      part <- dplyr::filter(part, substr(.data[[key]], 1, 1) %in% !!parts[[i]]$letters)
    }
    part <- if (table == "samples") sums_by_period(part, period) else dplyr::distinct(dplyr::select(part, !!columns))
    order <- list(
      samples = c("service", "sample_type", "minute", "stack_key"), frames = c("service", "stack_key", "depth"),
      labels = c("service", "label_key", "label", "value")
    )
    part <- dplyr::arrange(part, !!!rlang::syms(order[[table]]))
    part <- dplyr::compute(dplyr::select(part, !!columns))
    put_table(store, paste0(to, "-", i, ".parquet"), part, table, call)
  }
}

# Sums have no trace, unless they are of one minute.
sums_by_period <- function(rows, period) {
  .data <- rlang::.data
  if (period != "minute") {
    # arrow knows this function of lubridate, which need not be installed.
    start <- rlang::call2("floor_date", rlang::sym("minute"), period)
    rows <- dplyr::mutate(rows, minute = !!start, trace_id = NA_character_)
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

# Keys are in base64 for URLs.
letters_of_keys <- c(LETTERS, letters, 0:9, "-", "_")

# ---- Removing --------------------------------------------------------------------------

# A folder gets a hidden name first, so that no query sees a part of it.
hide_and_remove <- function(store, folders) {
  folders <- in_folder(store$root, folders)
  for (folder in folders[dir.exists(folders)]) {
    hidden <- in_folder(store$root, paste0(".removed-", unique_name()))
    if (file.rename(folder, hidden)) {
      unlink(hidden, recursive = TRUE)
    }
  }
}

remove_leftovers <- function(store, now) {
  hidden <- list.files(store$root, "^[.].*", all.files = TRUE, no.. = TRUE, full.names = TRUE)
  hidden <- grep("/[.](compact|removed)-[^/]*$|/[.][^/]*[.]new$", hidden, value = TRUE)
  age <- as.numeric(now) - as.numeric(file.mtime(hidden))
  unlink(hidden[which(age > dataset_delays[["killed"]])], recursive = TRUE)
}
