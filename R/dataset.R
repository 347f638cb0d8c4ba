# Data sets of flat Parquet files, for the profiles of many services. src/rust/core/src/analysis/flat.rs computes the
# rows; the package arrow writes and reads the files (dataset-store.R). dataset-read.R makes a profile of what a query
# returns, and dataset-compact.R replaces the many small files of a day by few.

#' Write profiles to a data set of Parquet files
#'
#' @description
#' `write_profile_dataset()` appends profiles to a data set: a folder of Parquet files that Apache Spark, Trino,
#' ClickHouse, DuckDB and Apache Arrow query where they are. Any number of processes can write to it at the same time,
#' on many machines. [tbl_profile()] and [profile_from_con()] query it from R, [roll_up_profiles()] merges its small
#' files, and [prune_profiles()] removes old days. [forward_profiles()] writes the profiles of agents to a data set.
#'
#' @details
#' A data set has three tables without nested columns, so that the same SQL works in all engines:
#'
#' | `samples` | |
#' |---|---|
#' | `service`, `version`, `host` | the attributes `service.name`, `service.version` and `host.name` of what was profiled; `service` is `"unknown_service"` if it is not known |
#' | `minute` | the minute in which the samples were taken, or else their run began; a timestamp in UTC |
#' | `sample_type`, `unit` | what was measured |
#' | `value` | the sum of the values of all samples with the same other columns, a double |
#' | `sample_count` | their number |
#' | `stack_key`, `label_key` | refer to the other tables; `label_key` is `NULL` for samples without labels |
#' | `trace_id` | the trace of OpenTelemetry to which the samples belong |
#'
#' | `frames` | a row for each frame of each stack of a service |
#' |---|---|
#' | `service`, `stack_key` | the stack |
#' | `depth` | 1 for the innermost frame |
#' | `name`, `file`, `line`, `package`, `frame_type` | the frame, as in [as_tibble.profile_data()]; `NULL` if not known |
#'
#' | `labels` | a row for each label of each set of labels |
#' |---|---|
#' | `service`, `label_key` | the set |
#' | `label`, `value` | a label and its value, as a text |
#' | `number`, `unit` | the value and its unit, if it is a number |
#'
#' The keys are hashes of the content, so that equal stacks have equal keys whoever wrote them. A stack may have been
#' written by several processes: select `DISTINCT` rows of `frames` and `labels`.
#'
#' The files of a table are in folders such as `samples/day=2026-11-27`. `day` is the day in UTC on which the file was
#' written, not the day of the samples: when a day has passed, its files do not change any more, even if profiles
#' arrive late. Files of the same call have the same name in all tables, and the file of `samples` appears last. While
#' a file is written, its name begins with a dot and does not end in `.parquet`. The folder `compact` has the tables in
#' the form of [roll_up_profiles()]. `vignette("fleet")` shows SQL for all questions, and views that unite both forms.
#'
#' What a data set does not contain: addresses, columns of source text, mappings, the time within a minute, spans,
#' attributes other than the three above, and the memory in use at each sample (`vsize_small`, `vsize_large`, `nodes`),
#' whose sums would be meaningless. Values of `Rprof()` are written as the types of pprof, as in [write_pprof()].
#'
#' @param x A profile, see [profile_data], of either version, a dm, or a list of profiles; or paths of files for
#'   [read_profile()], and of folders with the files of agents, see [start_agent()].
#' @param path The path of the folder, which is created if necessary. Paths that begin with `s3://` or `gs://` are
#'   passed to the package arrow, whose help describes how to build it with this support.
#' @param ... Must be empty.
#' @param resource Attributes of what was profiled: a named character vector such as `c(service.name = "checkout",
#'   service.version = "2.3")`. They replace attributes of the profiles. Files in the format of [write_pprof()] have such
#'   attributes only if an agent has written them.
#'
#' @return `x`, invisibly.
#'
#' @section Errors:
#' - `profile_error_unsupported` if the package arrow is not installed, or if another version of this package has
#'   created the data set in another layout;
#' - `profile_error_invalid` if a profile is not valid, `profile_error_parse` and others of [read_profile()] for files;
#' - `profile_error_write` if a file cannot be written. Files of earlier parts of `x` then remain: about a quarter of a
#'   million samples are written at a time.
#'
#' arrow is not among the packages of Debian 12 and 13. `install.packages("arrow")` installs it from CRAN.
#'
#' After an error or Ctrl-C no file is left incomplete.
#' @seealso [copy_profile_to()] for a database
#' @export
#' @examplesIf rlang::is_installed(c("arrow", "dplyr"))
#' folder <- tempfile("profiles-")
#' path <- system.file("samples/rprof/1.out", package = "profile")
#' for (version in c("2.2", "2.3")) {
#'   about <- c(service.name = "report", service.version = version)
#'   write_profile_dataset(path, folder, resource = about)
#' }
#' list.files(folder, recursive = TRUE)
#'
#' # Filtered and summed by the engine, and then an ordinary profile:
#' x <- profile_from_con(folder, service == "report", version == "2.3")
#' summary(x)$by_function
write_profile_dataset <- function(x, path, ..., resource = character()) {
  call <- call_without_dots()
  if (missing(x)) {
    abort_missing("x", call, i = "It is a profile, a list of profiles, or paths of files and folders.")
  }
  check_path(path, call, writing = TRUE)
  check_texts(resource, "resource", call)
  inputs <- dataset_inputs(x, call)
  store <- open_store(path, call)
  create_layout(store, call)
  report <- progress_report("Writing profiles", "tasks")
  written <- 0
  write_batches(inputs, resource, call, function(tables, count) {
    show_progress(report, written, length(inputs))
    append_tables(store, tables, call)
    written <<- written + count
  })
  invisible(x)
}

# Profiles, and paths of files with profiles.
dataset_inputs <- function(x, call) {
  if (is.character(x)) {
    files <- lapply(x, function(path) {
      folder <- file_path(path, "profile_error_open", call)[[1]]
      if (dir.exists(folder)) spooled_files(folder) else path
    })
    return(as.list(unlist(files)))
  }
  if (is_profile(x) || has_tables(x)) list(x) else as.list(x)
}

# The number of samples that are written together. Fewer would result in small files, more would take more memory.
most_samples <- 2.5e5

# Calls `write(tables, count)` with the flat tables of several inputs, and their number.
write_batches <- function(inputs, resource, call, write) {
  batch <- list()
  samples <- 0
  flush <- function() {
    if (length(batch) > 0) {
      x <- if (length(batch) == 1) batch[[1]] else bind_profiles(batch, call)
      count <- length(batch)
      batch <<- list()
      samples <<- 0
      write(flat_tables(x, resource, call), count)
    }
  }
  for (input in inputs) {
    x <- as_v2(if (is.character(input)) read_format(input, "", "2.0", NA, call) else input, call)
    batch <- c(batch, list(x))
    samples <- samples + nrow(x$samples)
    if (samples >= most_samples) {
      flush()
    }
  }
  flush()
}

# The tables of a data set with the rows of a profile. Texts are factors.
flat_tables <- function(x, resource, call) {
  x <- with_packages_for(x, "package", call)
  keys <- enc2utf8(names(resource) %||% character())
  tables <- rust(rust_flat(x, keys, enc2utf8(unname(resource))), call)
  tables$samples$minute <- .POSIXct(tables$samples$minute, "UTC")
  lapply(rlang::set_names(names(dataset_columns)), function(table) tables[[table]][names(dataset_columns[[table]])])
}

# The tables and columns of a data set, with the names of arrow's types. The names of columns are not words of SQL, so
# that no engine needs quotes.
dataset_columns <- list(
  samples = c(
    service = "utf8", version = "utf8", host = "utf8", minute = "timestamp", sample_type = "utf8", unit = "utf8",
    value = "float64", sample_count = "int64", stack_key = "utf8", label_key = "utf8", trace_id = "utf8"
  ),
  frames = c(
    service = "utf8", stack_key = "utf8", depth = "int32", name = "utf8", file = "utf8", line = "int32",
    package = "utf8", frame_type = "utf8"
  ),
  labels = c(
    service = "utf8", label_key = "utf8", label = "utf8", value = "utf8", number = "float64", unit = "utf8"
  )
)
