# Stores profiles: in a database (store-database.R), or in a data set of flat Parquet files (dataset-store.R). Both have
# the same tables, which src/rust/core/src/analysis/flat.rs computes; tbl-profile.R queries them.

#' Store profiles in a database or a data set
#'
#' @description
#' `store_profiles()` adds profiles to a store, and creates it if necessary: a database, or a data set, which is a folder
#' of Parquet files that Apache Spark, Trino, ClickHouse, DuckDB and Apache Arrow query where they are. A file keeps a
#' profile; a store answers questions about many of them. Any number of processes can write to a store at the same time.
#' [tbl_profile()] queries it, [roll_up_profiles()] sums up old profiles, and [prune_profiles()] removes them.
#' [forward_profiles()] stores the profiles of agents.
#'
#' @details
#' A store has three tables; in a database they are views. The same SQL works in all engines:
#'
#' | `samples` | |
#' |---|---|
#' | `service`, `version`, `host` | the attributes `service.name`, `service.version` and `host.name` of what was profiled; `service` is `"unknown_service"` if it is not known |
#' | `run`, `run_start` | the recorded run, and when it began, a timestamp in UTC; `NULL` if runs were summed up. A run is a source of a profile; all parts that an agent writes are one run. A source that contains no time, such as a file of collapsed stacks, is another run each time it is stored |
#' | `minute` | the minute in which the samples were taken, or else their run began; a timestamp in UTC |
#' | `sample_type`, `unit` | what was measured |
#' | `value` | the sum of the values of all samples with the same other columns, a double |
#' | `sample_count` | their number |
#' | `stack_key`, `label_key` | refer to the other tables; `label_key` is `NULL` for samples without labels |
#' | `trace_id` | the trace of OpenTelemetry to which the samples belong |
#' | `sampling_period`, `sampling_type`, `sampling_unit` | what was counted between two samples, as `.period`, `.period_type` and `.period_unit` in [profile_data]; `NULL` if not known |
#' | `default_type` | the sample type that [summary.profile_data()] sums by default |
#' | `day` | the day in UTC on which the row was written, a text such as `2026-11-27`: not the day of the samples, which may arrive late |
#'
#' | `frames` | a row for each frame of each stack of a service |
#' |---|---|
#' | `service`, `stack_key` | the stack |
#' | `depth` | 1 for the innermost frame |
#' | `name`, `file`, `line`, `package`, `frame_type` | the frame, as in [as_tibble.profile_data()]; `NULL` if not recorded. Packages are not looked up, see [add_packages()], which you can call before |
#' | `day` | in a data set, each day with samples of this stack has its frames; in a database, only the last of these days: a condition on it must be `day >=` |
#'
#' | `labels` | a row for each label of each set of labels |
#' |---|---|
#' | `service`, `label_key` | the set |
#' | `label`, `value` | a label and its value, as a text |
#' | `number`, `unit` | the value and its unit, if it is a number |
#' | `day` | as in `frames` |
#'
#' The keys are hashes of the content, so that equal stacks have equal keys whoever wrote them: texts in a data set, whole
#' numbers below 2^53 in a database. A stack may occur several times in a data set: select `DISTINCT` rows of `frames` and
#' `labels`. `vignette("fleet")` shows SQL for all questions.
#'
#' Not kept in a store: addresses, columns of source text, mappings, the time within a minute and the order of
#' samples, spans, attributes other than the three above, tables and columns of your own, and the memory in use at each
#' sample (`vsize_small`, `vsize_large`, `nodes`), whose sums would be meaningless. Values of `Rprof()` are stored as the
#' types of pprof, as in [write_pprof()], except that `alloc_size` keeps its name: a lower bound is not added to exact
#' memory. A profile that is stored twice is counted twice.
#'
#' ## Databases
#'
#' A profile is written in one transaction: after an error or Ctrl-C the database contains no part of it. Writers wait for
#' each other, readers do not wait. The views show tables whose names begin with `profile_`, in which each stack, frame
#' and set of labels occurs once. SQLite does not wait by default; these functions set a busy timeout of one minute while
#' they write. Many small profiles are stored faster together, as a list.
#'
#' These functions work with every driver whose `DBI::dbBegin()` begins a transaction; otherwise there is an error of
#' class `profile_error_unsupported`. They were tried with
#'
#' - SQLite with RSQLite 2.2.20, and with odbc 1.3.4 and libsqliteodbc 0.9998, which reads 15 digits of a number;
#' - PostgreSQL 15.18 with RPostgres 1.4.5 and RPostgreSQL 0.7-5, and with odbc 1.3.4 and odbc-postgresql 13.2, connected
#'   with `BoolsAsChar = "0"` and `Protocol = "7.4-0"`;
#' - MariaDB 10.11.19 with RMariaDB 1.2.2 and RMySQL 0.10.25, and with odbc 1.3.4 and odbc-mariadb 3.1.15;
#' - DuckDB 1.4.4 with duckdb 1.4.4. A file of DuckDB can be open in one process only.
#'
#' In MariaDB and MySQL, creating tables cannot be undone, so tables stay, without rows, after an error or Ctrl-C. MySQL
#' itself and other databases were not tried.
#'
#' With RSQLite and RPostgres you can call these functions inside a transaction of your own. They then use a savepoint:
#' after an error, your previous changes are still part of the transaction, and the profile is stored when you commit.
#' In SQLite, start such a transaction with `DBI::dbExecute(con, "BEGIN IMMEDIATE")` if there are other writers: a
#' transaction that reads before it writes cannot wait for them. With other drivers there is an error of class
#' `profile_error_unsupported`.
#'
#' ## Data sets
#'
#' The files of a table are in folders such as `samples/day=2026-11-27`. When a day has passed, its files do not change
#' any more. Files of the same call have the same name in all tables, and the file of `samples` appears last. While a file
#' is written, its name begins with a dot and does not end in `.parquet`. The folder `compact` has the tables in the form
#' of [roll_up_profiles()]; the SQL of `vignette("fleet")` has views that unite both forms. After an error or Ctrl-C no
#' file is left incomplete.
#'
#' The package arrow writes the files. It is not among the packages of Debian 12 and 13; `install.packages("arrow")`
#' installs it from CRAN.
#'
#' @param x A profile, see [profile_data], of either version, a dm, or a list of profiles; or paths of files for
#'   [read_profile()], and of folders with the files of agents, see [start_agent()].
#' @param to A connection to a database, from `DBI::dbConnect()`; or the path of the folder of a data set, which is created
#'   if necessary. Paths that begin with `s3://` or `gs://` are passed to the package arrow, whose help describes how to
#'   build it with this support.
#' @param ... Must be empty.
#' @param resource Attributes of what was profiled: a named character vector such as `c(service.name = "checkout",
#'   service.version = "2.3")`. They replace attributes of the profiles. Files in the format of [write_pprof()] have such
#'   attributes only if an agent has written them.
#' @param schema The schema of the tables of a database, by default its default schema.
#'
#' @return `x`, invisibly.
#'
#' @section Errors:
#' - `profile_error_argument` if `to` is neither a connection nor a path, or `x` is empty;
#' - `profile_error_unsupported` if the package arrow is not installed, if another version of this package has created the
#'   store in another layout, or if a database has no transactions, see above;
#' - `profile_error_invalid` if a profile is not valid, or the database has other tables with these names;
#'   `profile_error_parse` and others of [read_profile()] for files;
#' - `profile_error_write` if a file cannot be written. Parts of `x` before it then remain: about a quarter of a million
#'   samples are written at a time. Also if the folder contains other files and is not a data set.
#'
#' Errors of the database are passed on unchanged.
#' @seealso [combine_profiles()]
#' @export
#' @examplesIf rlang::is_installed(c("DBI", "RSQLite", "dplyr", "dbplyr"))
#' con <- DBI::dbConnect(RSQLite::SQLite())
#' path <- system.file("samples/rprof/1.out", package = "profile")
#' for (version in c("2.2", "2.3")) {
#'   about <- c(service.name = "report", service.version = version)
#'   store_profiles(path, con, resource = about)
#' }
#' DBI::dbGetQuery(con, "SELECT version, sum(sample_count) FROM samples GROUP BY version")
#'
#' # Filtered and summed by the database, and then an ordinary profile:
#' x <- dplyr::collect(tbl_profile(con, service == "report", version == "2.3"))
#' summary(x)$by_function
#' DBI::dbDisconnect(con)
store_profiles <- function(x, to, ..., resource = character(), schema = NULL) {
  call <- call_without_dots()
  if (missing(x)) {
    abort_missing("x", call, i = "It is a profile, a list of profiles, or paths of files and folders.")
  }
  if (inherits(x, "DBIConnection")) {
    abort_argument("The profile comes first, then the store: `store_profiles(x, con)`.", call)
  }
  if (missing(to)) {
    abort_missing("to", call, i = "It is a connection of DBI, or the path of a folder.")
  }
  check_resource(resource, call)
  inputs <- profile_inputs(x, call)
  if (length(x) == 0 && !is_profile(x)) {
    abort_argument("`x` contains no profile to store.", call)
  }
  if (length(inputs) == 0) {
    warn_profile(c(
      "Nothing was stored.",
      i = "Of a folder, the files that an agent has written are read; pass other files by their paths."
    ), "profile_warning_unsent", call = call)
  }
  store <- writable_store(to, schema, call)
  report <- progress_report("Storing profiles", "tasks")
  written <- 0
  write_batches(inputs, resource, call, function(tables, count) {
    show_progress(report, written, length(inputs))
    store$append(tables)
    written <<- written + count
  })
  invisible(x)
}

# The columns of stores are attributes of resources with other names.
check_resource <- function(resource, call) {
  check_texts(resource, "resource", call)
  column <- intersect(names(resource), names(resource_keys))
  if (length(column) > 0) {
    abort_argument(c(
      paste0("`resource` has no meaning for a store with the name `", column[[1]], "`."),
      i = paste0("Did you mean `", resource_keys[[column[[1]]]], "`?")
    ), call)
  }
}

# A store as a list with the function `append(tables)`.
writable_store <- function(to, schema, call) {
  force(call)
  if (inherits(to, "DBIConnection")) {
    check_database(to, "to", schema, call)
    return(list(append = function(tables) store_in_database(to, schema, tables, call)))
  }
  if (rlang::is_string(to) && grepl("^https?://", to)) {
    abort_argument(c(
      paste0("`to` must be a connection or the path of a folder, not the URL `", shown_url(to), "`."),
      i = "`send_otlp()` sends a profile to a server."
    ), call)
  }
  if (is_profile(to) || !is_path(to) || to == "") {
    abort_argument(c(
      paste0("`to` must be a connection of DBI or the path of a folder, not ", describe_object(to), "."),
      i = if (is_profile(to)) "The profile comes first, then the store."
    ), call)
  }
  if (grepl("[.](sqlite3?|db|duckdb)$", to) && !dir.exists(path.expand(to))) {
    abort_argument(c(
      paste0("`to` must be a connection or the path of a folder, not of a database, `", short_text(to), "`."),
      i = paste0("For a file of SQLite, use `DBI::dbConnect(RSQLite::SQLite(), ", in_quotes(short_text(to)), ")`.")
    ), call)
  }
  check_path(to, call, writing = TRUE)
  store <- open_store(to, call)
  create_layout(store, call)
  list(append = function(tables) append_tables(store, tables, call))
}

# Profiles, and paths of files with profiles.
profile_inputs <- function(x, call) {
  if (is.character(x)) {
    files <- lapply(x, function(path) {
      folder <- file_path(path, "profile_error_open", call)[[1]]
      if (dir.exists(folder)) spooled_files(folder) else path
    })
    return(as.list(unlist(files)))
  }
  if (inherits(x, "tbl_profile") || is_profile(x) || has_tables(x)) list(x) else as.list(x)
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

# The tables of a store with the rows of a profile, and keys of frames. Texts are factors. Packages are not looked up:
# the keys of stacks would depend on what the session has loaded.
flat_tables <- function(x, resource, call) {
  keys <- enc2utf8(names(resource) %||% character())
  tables <- rust(rust_flat(x, keys, enc2utf8(unname(resource)), unique_name()), call)
  times <- c("run_start", "minute")
  tables$samples[times] <- lapply(tables$samples[times], .POSIXct, "UTC")
  tables
}

# The tables and columns of a data set, with the names of arrow's types. The names of columns are not words of SQL, so
# that no engine needs quotes.
dataset_columns <- list(
  samples = c(
    service = "utf8", version = "utf8", host = "utf8", run = "utf8", run_start = "timestamp", minute = "timestamp",
    sample_type = "utf8", unit = "utf8", value = "float64", sample_count = "int64", stack_key = "utf8",
    label_key = "utf8", trace_id = "utf8", sampling_period = "float64", sampling_type = "utf8", sampling_unit = "utf8",
    default_type = "utf8"
  ),
  frames = c(
    service = "utf8", stack_key = "utf8", depth = "int32", name = "utf8", file = "utf8", line = "int32",
    package = "utf8", frame_type = "utf8"
  ),
  labels = c(
    service = "utf8", label_key = "utf8", label = "utf8", value = "utf8", number = "float64", unit = "utf8"
  )
)
