# Queries stores: the engine filters and sums, whichever it is, and the sums become an ordinary profile.
#
# The tables are of any package that supports the verbs of dplyr: arrow for files, dbplyr for DuckDB, Spark and others,
# or data frames. So all code here uses these verbs, and only expressions that all of them can translate.

# The tables of a store, with `filter()` applied.
dataset_tables <- function(x, conditions, call, schema = NULL) {
  tables <- tables_of_store(x, schema, call)
  last_day <- isTRUE(attr(tables, "last_day"))
  tables <- tables[intersect(names(dataset_columns), names(tables))]
  check_dataset_columns(tables, call)
  names <- columns_of(tables$samples[[1]])
  conditions <- checked_conditions(conditions, names, call)
  tables$samples <- lapply(tables$samples, filter_table, conditions, call)
  # What belongs to the service and the day of a sample is in rows with the same service and day. Engines skip the
  # others, which a join does not achieve. In a database, rows have the last day only.
  for (table in setdiff(names(tables), "samples")) {
    shared <- intersect(c("service", if (!last_day) "day"), columns_of(tables[[table]][[1]]))
    is_shared <- vapply(conditions, function(condition) {
      compares_columns(rlang::quo_get_expr(condition), names, shared)
    }, TRUE)
    tables[[table]] <- lapply(tables[[table]], filter_table, conditions[is_shared], call)
  }
  structure(lapply(tables, function(parts) Reduce(dplyr::union_all, parts)), last_day = last_day)
}

# Each table is a list of parts, which are filtered one by one: arrow would read all rows of a union.
tables_of_store <- function(x, schema, call) {
  if (inherits(x, "DBIConnection")) {
    tables_of_database(x, schema, call)
  } else if (is_path(x) && x != "") {
    check_folder(x, call)
    files_of_dataset(open_store(x, call), call)
  } else if (inherits(x, "tbl_profile") || is_list_of_tables(x)) {
    structure(lapply(unclass(x), list), last_day = attr(x, "last_day"))
  } else {
    abort_argument(c(
      paste0("`from` must be a connection of DBI, the path of a data set, or its tables, not ", describe_object(x), "."),
      i = profile_hint(x)
    ), call)
  }
}

# Before arrow is needed.
check_folder <- function(path, call) {
  if (grepl("^[a-z][a-z0-9+.-]+://", path)) {
    return(invisible())
  }
  file <- file_path(path, "profile_error_open", call)
  if (!dir.exists(file[[1]])) {
    abort_profile(c(
      paste0("There is no data set of profiles at `", file[[2]], "`."),
      i = if (file.exists(file[[1]])) {
        "To a file of a database, connect with DBI. `read_profile()` reads the file of one profile."
      }
    ), "profile_error_open", path = file[[2]], call = call)
  }
}

is_list_of_tables <- function(x) {
  is.list(x) && !is.data.frame(x) && all(c("samples", "frames") %in% names(x)) && !is_profile(x)
}

# `colnames()` has no method for queries of arrow.
columns_of <- function(table) {
  as.character(dplyr::tbl_vars(table))
}

check_dataset_columns <- function(tables, call) {
  for (table in names(tables)) {
    missing <- setdiff(names(dataset_columns[[table]]), columns_of(tables[[table]][[1]]))
    if (length(missing) > 0) {
      abort_invalid("is missing in the data set", table, missing[[1]], call = call)
    }
  }
}

# The parts of the tables of the files. A day that was compacted is read from there, with those files of writers that
# came later. What a compaction replaces remains for a while, so that the days can be determined from the first listing.
files_of_dataset <- function(store, call) {
  check_is_dataset(store, call)
  .data <- rlang::.data
  reading(store, call, {
    compact <- files_of_table(store, "compact/samples", c("day", "valid_from"))
    valid <- valid_folders(compact$files)
    contained <- files_in_folders(store)
    lapply(rlang::set_names(names(dataset_columns)), function(table) {
      columns <- c(names(dataset_columns[[table]]), "day")
      old <- if (table == "samples") {
        dplyr::filter(compact, paste(.data$day, .data$valid_from) %in% !!paste(valid$day, valid$valid_from))
      } else {
        dplyr::filter(files_of_table(store, in_folder("compact", table), "day"), .data$day %in% !!valid$day)
      }
      written <- files_of_table(store, table, "day")
      late <- late_files(written$files, valid, contained)
      late <- lapply(names(late), function(day) dplyr::mutate(open_files(store, late[[day]]), day = !!day))
      new <- dplyr::filter(written, !.data$day %in% !!valid$day)
      lapply(c(list(new, old), late), dplyr::select, !!columns)
    })
  })
}

files_of_table <- function(store, table, partitions) {
  types <- lapply(rlang::set_names(partitions), function(name) arrow::utf8())
  factory <- arrow::FileSystemDatasetFactory$create(
    store$fs,
    selector = arrow::FileSelector$create(in_folder(store$root, table), recursive = TRUE),
    format = arrow::FileFormat$create("parquet"), partitioning = arrow::hive_partition(!!!types)
  )
  factory$Finish()
}

# The last folder of each day with sums, from the paths of files. The rules of dataset-compact.R would also permit an
# earlier one, since all files of `samples` were listed once.
valid_folders <- function(files) {
  parts <- regmatches(files, regexec("day=([^/]*)/valid_from=([0-9]+)/(minute|hour|day)-(run|host|none)-[0-9]+[.]parquet$", files))
  parts <- parts[lengths(parts) > 0]
  folders <- unique(tibble::tibble(day = vapply(parts, `[`, "", 2), valid_from = vapply(parts, `[`, "", 3)))
  folders <- folders[order(as.numeric(folders$valid_from), decreasing = TRUE), ]
  folders[!duplicated(folders$day), ]
}

# A function that returns the names of the files whose rows a folder contains. It reads them once.
files_in_folders <- function(store) {
  force(store)
  known <- list()
  function(day, valid_from) {
    folder <- paste0("compact/samples/day=", day, "/valid_from=", valid_from)
    known[[folder]] <<- known[[folder]] %||% read_lines(store, in_folder(folder, "_files"))
    known[[folder]]
  }
}

# The files of writers whose day was compacted without them, by day.
late_files <- function(files, valid, contained) {
  days <- sub(".*/day=([^/]*)/[^/]*$", "\\1", files)
  is_compacted <- days %in% valid$day & days != empty_day
  by_day <- split(files[is_compacted], days[is_compacted])
  late <- lapply(rlang::set_names(names(by_day)), function(day) {
    known <- contained(day, valid$valid_from[[match(day, valid$day)]])
    by_day[[day]][!basename(by_day[[day]]) %in% known]
  })
  late[lengths(late) > 0]
}

# Periods to which samples are summed up, in seconds.
dataset_periods <- c(minute = 60, hour = 3600, day = 86400)

# What stays apart when samples are summed up: each run, only the runs of different hosts, or only versions of services.
dataset_parts <- c("run", "host", "none")

# ---- To a profile ----------------------------------------------------------------------

# What a source of the profile is: the runs that compare_profiles() counts.
origin_columns <- c(
  "service", "version", "host", "run_start", "run", "sampling_period", "sampling_type", "sampling_unit", "default_type"
)

# Sums by stack, labels and what was profiled, computed by the engine, as a profile.
profile_of_dataset <- function(tables, call, ...) {
  if (!isTRUE(attr(tables, "last_day"))) {
    return(summed_profile(tables, call, ...))
  }
  # Others may remove frames meanwhile.
  con <- dbplyr::remote_con(tables$samples)
  in_transaction(con, summed_profile(tables, call, ...), reading = TRUE, call = call)
}

summed_profile <- function(
    tables, call, by = c(origin_columns, "sample_type", "unit", "stack_key", "label_key")) {
  .data <- rlang::.data
  sums <- dplyr::group_by(tables$samples, dplyr::across(dplyr::all_of(!!by)))
  sums <- dplyr::summarise(sums, value = sum(.data$value, na.rm = TRUE), .groups = "drop")
  sums <- collected(sums, "samples", call)
  if (any(is.infinite(sums$value))) {
    abort_sums(call)
  }
  for (column in setdiff(c(origin_columns, "label_key"), by)) {
    is_number <- column %in% c("run_start", "sampling_period")
    sums[[column]] <- rep(if (is_number) NA_real_ else NA_character_, nrow(sums))
  }
  frames <- collected(rows_in_use(tables$frames, tables$samples, "stack_key"), "frames", call)
  labels <- if (!is.null(tables$labels) && !all(is.na(sums$label_key))) {
    collected(rows_in_use(tables$labels, tables$samples, "label_key"), "labels", call)
  }
  profile_of_rows(sums, frames, labels, call)
}

# The distinct rows of a table to which samples refer. Different services may have the same rows.
rows_in_use <- function(table, samples, key) {
  used <- dplyr::distinct(dplyr::select(samples, dplyr::all_of(!!key)))
  rows <- dplyr::semi_join(table, used, by = key)
  dplyr::distinct(dplyr::select(rows, -dplyr::any_of(c("service", "day"))))
}

# The rows of a table, with the types of a data set: an engine may return a column without values as any type.
collected <- function(rows, table, call) {
  hint <- if (inherits(rows, "tbl_sql")) {
    "The database evaluates conditions: it knows comparisons, `%in%`, and few functions of R."
  }
  rows <- reading(NULL, call, dplyr::collect(rows), hint)
  types <- dataset_columns[[table]]
  for (column in intersect(names(rows), names(types))) {
    rows[[column]] <- switch(types[[column]],
      utf8 = if (is.double(rows[[column]]) && !is.object(rows[[column]])) {
        # Keys of databases have up to 16 digits.
        ifelse(is.na(rows[[column]]), NA_character_, sprintf("%.0f", rows[[column]]))
      } else {
        as.character(rows[[column]])
      },
      timestamp = seconds_of(rows[[column]]),
      as.numeric(rows[[column]])
    )
  }
  rows
}

# Engines return times as times, as seconds since 1970, or as text.
seconds_of <- function(times) {
  if (is.character(times)) times <- as.POSIXct(times, "UTC", format = "%Y-%m-%dT%H:%M:%SZ")
  as.numeric(times)
}

# A profile with a sample for each stack and set of labels of a run.
profile_of_rows <- function(sums, frames, labels, call) {
  by <- sums[c(origin_columns, "stack_key", "label_key", "sample_type", "unit")]
  sums <- sums[do.call(order, c(unname(as.list(by)), method = "radix")), ]
  sources <- vctrs::vec_unique(sums[origin_columns])
  # Values of a type in two units belong to different samples.
  units <- vctrs::vec_unique(sums[c("sample_type", "unit")])
  same <- c(origin_columns, "stack_key", "label_key", if (anyDuplicated(units$sample_type)) "unit")
  samples <- vctrs::vec_unique(sums[same])
  x <- list(meta = tibble::tibble(key = "version", value = "2.0"))
  x$sources <- sources_of_dataset(sources)
  x$samples <- tibble::new_tibble(list(
    sample_id = seq_len(nrow(samples)), source_id = vctrs::vec_match(samples[origin_columns], sources)
  ), nrow = nrow(samples))
  x$sample_values <- tibble::new_tibble(list(
    sample_id = vctrs::vec_match(sums[same], samples), type = sums$sample_type, unit = sums$unit,
    value = as.numeric(sums$value)
  ), nrow = nrow(sums))
  check_frames(samples$stack_key, frames, call)
  x <- c(x, tables_of_frames(samples$stack_key, frames), resources_of_sources(sources), runs_of_sources(sources))
  if (NROW(labels) > 0) {
    x$.labels <- labels_of_samples(samples$label_key, labels)
  }
  x <- new_profile_data(x, "2.0")
  rust(rust_validate(x), call)
  bind_profiles(list(x), call)
}

sources_of_dataset <- function(sources) {
  n <- nrow(sources)
  tibble::new_tibble(list(
    source_id = seq_len(n), source_type = rep("store", n), source_uri = sources$service,
    source_timestamp = sources$run_start, .scope_id = seq_len(n), .period = sources$sampling_period,
    .period_type = sources$sampling_type, .period_unit = sources$sampling_unit, .default_type = sources$default_type
  ), nrow = n)
}

# The attributes of a resource that are columns.
resource_keys <- c(service = "service.name", version = "service.version", host = "host.name")

resources_of_sources <- function(sources) {
  n <- nrow(sources)
  ids <- seq_len(n)
  attributes <- vctrs::vec_rbind(!!!lapply(names(resource_keys), function(column) {
    tibble::tibble(resource_id = ids, key = resource_keys[[column]], type = "string", value = sources[[column]])
  }))
  list(
    .resources = tibble::tibble(resource_id = ids, schema_url = NA_character_, dropped_attributes_count = 0),
    .resource_attributes = slice_rows(attributes, which(!is.na(attributes$value))),
    .scopes = tibble::tibble(
      scope_id = ids, resource_id = ids, name = NA_character_, version = NA_character_, schema_url = NA_character_,
      dropped_attributes_count = 0
    )
  )
}

# The keys of runs, so that the same run gets the same key if the profile is stored again.
runs_of_sources <- function(sources) {
  known <- which(!is.na(sources$run))
  if (length(known) > 0) {
    list(.source_attributes = tibble::tibble(
      source_id = known, key = "profile.run", type = "string", value = sources$run[known], unit = NA_character_
    ))
  }
}

# The keys of the stack without frames: in a data set, and in a database.
keys_without_frames <- function(call) {
  if (is.null(the$keys_without_frames)) {
    x <- data_model()$required
    x$meta <- tibble::tibble(key = "version", value = "2.0")
    x$sources <- tibble::tibble(source_id = 1L, source_type = "manual", source_uri = NA_character_, source_timestamp = NA_real_)
    x$samples <- tibble::tibble(sample_id = 1L, source_id = 1L)
    x$sample_values <- tibble::tibble(sample_id = 1L, type = "samples", unit = "count", value = 1)
    key <- as.character(flat_tables(new_profile_data(x, "2.0"), character(), call)$samples$stack_key)
    the$keys_without_frames <- c(key, sprintf("%.0f", number_of_key(key)))
  }
  the$keys_without_frames
}

check_frames <- function(stack_keys, frames, call) {
  lost <- setdiff(stack_keys, frames$stack_key)
  if (length(setdiff(lost, keys_without_frames(call))) > 0) {
    abort_profile(c(
      paste0("The store has no frames for ", format_count(length(lost)), " of its stacks."),
      i = "If they were removed while the store was read, read it again."
    ), "profile_error_open", call = call)
  }
}

tables_of_frames <- function(stack_keys, frames) {
  functions <- vctrs::vec_unique(frames[c("name", "file", "package")])
  frames$function_id <- vctrs::vec_match(frames[names(functions)], functions)
  locations <- vctrs::vec_unique(frames[c("function_id", "line", "frame_type")])
  frames$location_id <- vctrs::vec_match(frames[names(locations)], locations)
  frames <- frames[order(frames$stack_key, frames$depth, method = "radix"), ]
  rows <- frames[c("stack_key", "depth", "location_id")]
  rows$depth <- as.integer(rows$depth)
  n <- nrow(functions)
  lines <- as.integer(locations$line)
  lines[is.na(lines)] <- 0L
  files <- functions$file
  files[is.na(files)] <- ""
  # Without these columns, the packages of all functions are looked up when they are needed.
  packages <- if (!all(is.na(functions$package))) {
    list(.package = functions$package, .package_from = ifelse(is.na(functions$package), NA_character_, "store"))
  }
  list(
    sample_locations = rows_of_samples(seq_along(stack_keys), stack_keys, rows, "stack_key"),
    locations = tibble::new_tibble(list(
      location_id = seq_len(nrow(locations)), function_id = locations$function_id, line = lines,
      .frame_type = locations$frame_type
    ), nrow = nrow(locations)),
    functions = tibble::new_tibble(c(list(
      function_id = seq_len(n), name = functions$name, system_name = functions$name, filename = files,
      start_line = rep(0L, n)
    ), packages), nrow = n)
  )
}

# A row for each sample and each row of its set. `rows` are sorted by set.
rows_of_samples <- function(sample_ids, set_ids, rows, id) {
  sets <- vctrs::vec_unique_loc(rows[[id]])
  found <- match(set_ids, rows[[id]][sets])
  sizes <- diff(c(sets, nrow(rows) + 1L))[found]
  sizes[is.na(sizes)] <- 0L
  starts <- sets[found]
  at <- sequence(sizes[sizes > 0], starts[sizes > 0])
  expanded <- slice_rows(rows, at)
  expanded[[id]] <- rep(sample_ids, sizes)
  names(expanded)[names(expanded) == id] <- "sample_id"
  expanded[union("sample_id", names(expanded))]
}

labels_of_samples <- function(label_keys, labels) {
  texts <- labels$value
  texts[!is.na(labels$number)] <- NA
  rows <- tibble::new_tibble(list(
    label_key = labels$label_key, key = labels$label, str = texts,
    num = as.numeric(labels$number), unit = labels$unit
  ), nrow = nrow(labels))
  rows <- rows[order(rows$label_key, rows$key, rows$str, rows$num, method = "radix"), ]
  rows_of_samples(seq_along(label_keys), label_keys, rows, "label_key")
}

# ---- Printing --------------------------------------------------------------------------

format_dataset <- function(x, width, n) {
  .data <- rlang::.data
  found <- dplyr::collect(dplyr::distinct(x$samples, .data$service, .data$version, .data$sample_type, .data$unit))
  found <- found[order(found$service, found$version, method = "radix"), ]
  types <- sort(unique(paste0(found$sample_type, " (", found$unit, ")", recycle0 = TRUE)), method = "radix")
  if (length(types) == 0) types <- "none"
  versions <- unique(ifelse(is.na(found$version), found$service, paste(found$service, found$version)))
  more <- length(versions) - n
  c(
    if (isTRUE(attr(x, "last_day"))) "<profiles in a database>" else "<profiles in a data set>",
    wrap("Values:    ", paste(types, collapse = ", "), width),
    paste0("Services:  ", format_count(length(unique(found$service)))),
    paste0("  ", vapply(utils::head(versions, n), shown_name, "", width = width), recycle0 = TRUE),
    if (more > 0) paste0("  and ", format_count(more), " more")
  )
}
