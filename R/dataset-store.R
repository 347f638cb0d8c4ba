# The files of a data set. All uses of the package arrow are here and in dataset-compact.R.
#
#   ROOT/_profile_dataset                             the version of the layout
#   ROOT/TABLE/day=DAY/NAME.parquet                   what writers add
#   ROOT/compact/...                                  see dataset-compact.R
#
# Files on this machine are written under another name and renamed. Object storage has no incomplete files: an object
# exists when all of it was stored.

# The version of the layout. It changes if older versions of this package could not read new data sets.
dataset_layout <- "2"
layout_file <- "_profile_dataset"
# A day without rows.
empty_day <- "1970-01-01"

# A data set: its root and its file system. `shown` is for messages.
open_store <- function(path, call) {
  need_package("arrow", call)
  if (is_path(path) && grepl("^[a-z][a-z0-9+.-]+://", path)) {
    opened <- tryCatch(arrow::FileSystem$from_uri(path), error = function(e) {
      abort_unsupported(c(
        paste0("The package arrow cannot open `", shown_url(path), "`."), x = conditionMessage(e)
      ), call)
    })
    is_local <- inherits(opened$fs, "LocalFileSystem")
    return(list(root = opened$path, fs = opened$fs, is_local = is_local, shown = shown_url(path)))
  }
  root <- file_path(path, "profile_error_write", call)
  list(root = root[[1]], fs = arrow::LocalFileSystem$create(), is_local = TRUE, shown = root[[2]])
}

# Creates the layout, or checks its version. Empty files are added for all tables, since engines refuse to read a
# table without a file. Several writers may do this at the same time.
create_layout <- function(store, call) {
  if (check_dataset_layout(store, call)) {
    return(invisible())
  }
  # Another writer may have created it meanwhile.
  if (has_foreign_files(store, call) && !check_dataset_layout(store, call)) {
    abort_profile(c(
      paste0("The folder `", store$shown, "` is not empty, and not a data set of profiles."),
      i = "Use an empty folder, or one that does not exist yet."
    ), "profile_error_write", path = store$shown, call = call)
  }
  for (table in names(dataset_columns)) {
    for (file in empty_files(table)) put_table(store, file, empty_table(table), table, call)
  }
  put_file(store, layout_file, call, function(path, stream) {
    text <- charToRaw(paste0(dataset_layout, "\n"))
    if (is.null(stream)) writeBin(text, path) else stream$write(text)
  })
}

empty_files <- function(table) {
  day <- paste0(table, "/day=", empty_day, "/")
  name <- if (table == "samples") "valid_from=0/minute-run-1.parquet" else "empty.parquet"
  c(paste0(day, "empty.parquet"), paste0("compact/", day, name))
}

# Whether a folder contains more than what is written before the version of the layout. Pruning would remove it.
has_foreign_files <- function(store, call) {
  paths <- function(folder, recursive) {
    selector <- arrow::FileSelector$create(folder, allow_not_found = TRUE, recursive = recursive)
    found <- reading(store, call, store$fs$GetFileInfo(selector))
    if (recursive) found <- Filter(function(info) info$type == arrow::FileType$File, found)
    vapply(found, function(info) info$path, "")
  }
  top <- basename(paths(store$root, FALSE))
  folders <- intersect(top, c(names(dataset_columns), "compact"))
  is_new <- grepl("^[.][^/]*[.]new$", top)
  files <- unlist(lapply(in_folder(store$root, folders), paths, TRUE))
  own <- unlist(lapply(names(dataset_columns), empty_files))
  is_own <- vapply(files, function(file) any(endsWith(file, in_folder("", own))), NA)
  !all(top[!is_new] %in% c(folders, layout_file)) || !all(is_own)
}

check_is_dataset <- function(store, call) {
  if (!check_dataset_layout(store, call)) {
    abort_profile(c(
      paste0("There is no data set of profiles at `", store$shown, "`."),
      i = "`store_profiles()` creates one."
    ), "profile_error_open", path = store$shown, call = call)
  }
}

# Whether there is a data set at this path, whose layout this version knows.
check_dataset_layout <- function(store, call) {
  if (!reading(store, call, is_file(store, layout_file))) {
    return(FALSE)
  }
  version <- reading(store, call, paste(read_lines(store, layout_file), collapse = "\n"))
  if (version != dataset_layout) {
    abort_unsupported(c(
      paste0(
        "The data set `", store$shown, "` has layout ", version, ", and this version of the package knows layout ",
        dataset_layout, "."
      ),
      i = "Use the version of the package that wrote it."
    ), call)
  }
  TRUE
}

# ---- Reading -------------------------------------------------------------------------

is_file <- function(store, path) {
  store$fs$GetFileInfo(in_folder(store$root, path))[[1]]$type == arrow::FileType$File
}

read_lines <- function(store, path) {
  stream <- store$fs$OpenInputFile(in_folder(store$root, path))
  on.exit(stream$close())
  bytes <- as.raw(stream$Read(stream$GetSize()))
  strsplit(rawToChar(bytes), "\n", fixed = TRUE)[[1]]
}

# The rows of files, whose paths include the root.
open_files <- function(store, files) {
  factory <- arrow::FileSystemDatasetFactory$create(
    store$fs,
    paths = files, format = arrow::FileFormat$create("parquet")
  )
  factory$Finish()
}

# Errors of arrow become errors of this package. `store` is NULL for tables of a user.
reading <- function(store, call, code, hint = NULL) {
  tryCatch(code, error = function(e) {
    if (inherits(e, "profile_error")) {
      rlang::cnd_signal(e)
    }
    what <- if (is.null(store)) "Cannot read the profiles of the store." else paste0("Cannot read the data set `", store$shown, "`.")
    abort_profile(c(what, x = conditionMessage(e), i = hint), "profile_error_open", path = store$shown, call = call)
  })
}

empty_table <- function(table) {
  columns <- lapply(as.list(dataset_columns[[table]]), function(type) {
    switch(type,
      utf8 = character(), float64 = , int64 = double(), int32 = integer(),
      timestamp = as.POSIXct(double(), origin = "1970-01-01", tz = "UTC")
    )
  })
  tibble::new_tibble(columns, nrow = 0)
}

# ---- Writing -------------------------------------------------------------------------

# Appends flat tables. Rows of `samples` become visible after the rows that they refer to. `day` is today by default,
# when the files get their names.
append_tables <- function(store, tables, call, name = paste0(unique_name(), ".parquet"), day = NULL) {
  if (nrow(tables$samples) > 0) {
    tables <- Map(function(rows, columns) rows[names(columns)], tables[names(dataset_columns)], dataset_columns)
    put_tables(store, Filter(nrow, tables[c("frames", "labels", "samples")]), name, day, call)
  }
}

# Another name for each call in any process on any machine, even in containers, whose process ids and host names are
# equal.
unique_name <- function() substr(rlang::hash(unique_parts()), 1, 20)

unique_parts <- function() {
  list(Sys.info()[["nodename"]], Sys.getpid(), as.numeric(Sys.time()), tempfile(), random_bytes())
}

# Does not change R's random numbers.
random_bytes <- function() {
  tryCatch(readBin("/dev/urandom", "raw", 16), error = function(e) NULL, warning = function(e) NULL)
}

today_in_utc <- function() {
  format(as.POSIXct(current_time(), origin = "1970-01-01"), "%Y-%m-%d", tz = "UTC")
}

# Writes all tables, and then gives all of them their names, in the folder of the same day.
put_tables <- function(store, tables, name, day, call) {
  place <- function(table, day) paste0(table, "/day=", day, "/", name)
  if (!store$is_local) {
    day <- day %||% today_in_utc()
    for (table in names(tables)) put_table(store, place(table, day), tables[[table]], table, call)
    return(invisible())
  }
  new <- in_folder(store$root, paste0(".", unique_name(), ".", names(tables), ".new"))
  names(new) <- names(tables)
  on.exit(unlink(new, expand = FALSE))
  for (table in names(tables)) {
    failing(store, call, write_parquet(tables[[table]], table, new[[table]]))
  }
  day <- day %||% today_in_utc()
  for (table in names(tables)) {
    rename_into_place(store, new[[table]], place(table, day), call)
  }
}

put_table <- function(store, to, rows, table, call) {
  put_file(store, to, call, function(path, stream) write_parquet(rows, table, stream %||% path))
}

# Calls `write(path, stream)`, one of which is not NULL, for a file that gets its name when it is complete.
put_file <- function(store, to, call, write) {
  if (store$is_local) {
    new <- in_folder(store$root, paste0(".", unique_name(), ".new"))
    on.exit(unlink(new, expand = FALSE))
    failing(store, call, {
      dir.create(store$root, showWarnings = FALSE, recursive = TRUE)
      write(new, NULL)
    })
    return(rename_into_place(store, new, to, call))
  }
  failing(store, call, {
    stream <- store$fs$OpenOutputStream(in_folder(store$root, to))
    write(NULL, stream)
    stream$close()
  })
}

rename_into_place <- function(store, new, to, call) {
  to <- in_folder(store$root, to)
  failing(store, call, {
    dir.create(dirname(to), showWarnings = FALSE, recursive = TRUE)
    if (!file.rename(new, to)) stop("The file cannot be renamed.")
  })
}

failing <- function(store, call, code) {
  tryCatch(withCallingHandlers(code, warning = function(w) stop(conditionMessage(w))), error = function(e) {
    abort_profile(
      c(paste0("Cannot write to the data set `", store$shown, "`."), x = conditionMessage(e)), "profile_error_write",
      path = store$shown, call = call
    )
  })
}

# Rows of a service are together, and engines skip groups of rows by the range of their services and minutes.
rows_of_group <- 131072L

write_parquet <- function(rows, table, sink) {
  types <- list(
    utf8 = arrow::utf8(), float64 = arrow::float64(), int64 = arrow::int64(), int32 = arrow::int32(),
    timestamp = arrow::timestamp("us", "UTC")
  )
  columns <- dataset_columns[[table]]
  schema <- arrow::schema(!!!rlang::set_names(types[columns], names(columns)))
  rows <- if (is.data.frame(rows)) arrow::arrow_table(!!!lapply(rows, arrow_column)) else rows
  # Factors become texts here, so that all files have the same types.
  arrow::write_parquet(rows$cast(schema), sink, compression = "zstd", chunk_size = rows_of_group)
}

# arrow's own conversion of factors takes four times longer.
arrow_column <- function(column) {
  if (!is.factor(column)) {
    return(column)
  }
  codes <- as.integer(column) - 1L
  arrow::DictionaryArray$create(codes, arrow::Array$create(levels(column), type = arrow::utf8()))
}
