# Reads profiles: checks arguments, calls the core, and constructs the profile.

#' Read profiler data
#'
#' @description
#' `read_rprof()` reads the files of [Rprof()], with any combination of memory, GC and line profiling, several runs in
#' one file (`append = TRUE`), and incomplete or edited files.
#'
#' `read_pprof()` reads files in the format of `pprof` (`profile.proto`), which Go and many other
#' languages and tools write.
#'
#' @details
#' Samples are returned as recorded, one row for each in the order of the file. Files compressed with gzip
#' are decompressed.
#'
#' Irregularities are reported in *one* warning of class `profile_warning` and listed by [profile_problems()]. If data
#' were lost, as at the end of a file whose process was killed, the warning has class `profile_warning_incomplete`. The
#' following are skipped: runs of NUL bytes, left by a system crash or by truncating a file that is being written; lines
#' of more than 64 MiB; and zero bytes after gzip data.
#'
#' ## Why there are no lines
#'
#' R knows the lines of code that was parsed with source references. By default, R keeps source references in
#' interactive sessions, but not in Rscript and `R CMD BATCH`: set `options(keep.source = TRUE)` before the code is
#' parsed. For the script that Rscript runs itself, this works in its first line. Packages have lines if they were
#' installed with `R CMD INSTALL --with-keep.source` or the environment variable `R_KEEP_PKG_SOURCE=yes`. [record_profile()]
#' finds lines of other packages as well. The code of documents of knitr has none, whatever is set: write functions to a
#' file, and read it with `source(file, keep.source = TRUE)`.
#'
#' ## Why there are few samples, or none
#'
#' By default [Rprof()] measures CPU time, which does not pass while R sleeps or waits for a file, a server or
#' another process. From R 4.4 on, `event = "elapsed"` measures real time. There is one sample for each
#' interval, by default 20 milliseconds, so code that runs for a shorter time may have none: repeat it, or
#' choose a shorter `interval`.
#'
#' ## Lines in Rprof files
#'
#' With `line.profiling = TRUE`, Rprof records for each function the file and line that was running *inside*
#' it: `line` in `locations` and `filename` in `functions`. A function seen in two files has two rows.
#' Promises run in the frame of the function that needs their value, so a function such as `data.frame()` may
#' be shown with a line of your own file.
#'
#' Rprof does not record the time of a sample, the clock used, or where a function starts (`start_line` is
#' 0).
#'
#' ## Times of Rprof files
#'
#' Rprof does not record when a run began. `source_timestamp` is the time when the file was last modified,
#' minus the time that the samples of the run, and of the runs after it in the file, represent. This is the
#' latest time at which the run can have begun. It began earlier if R was waiting, since Rprof counts CPU
#' time, or if the file was modified again later, for example by copying it. For bytes and connections the
#' time is `NA`. [start_profiler()] records the time.
#'
#' ## Names and encodings
#'
#' Function names are not changed: `data.frame` remains `data.frame`. Bytes that are not UTF-8 are read as
#' Latin-1 (Windows-1252).
#'
#' Paths are treated as in R's own functions: a path of unknown encoding is used unchanged; any other path is translated
#' to the encoding of the locale, and if that is impossible, there is an error. Bytes that are not valid text are shown
#' as `<e9>` in messages and in `source_uri`.
#'
#' ## What is kept of pprof files
#'
#' Everything that the file contains is kept, in the tables that [profile_data] describes. Each line of a location is a
#' row of `locations`, inlined calls innermost first; a location without lines is a row without a function. Each sample
#' is a row, with all its values, including zeros. Numbers are exact: numbers that R cannot represent are also stored as
#' text. `drop_frames` and `keep_frames` are not applied, see `drop` in [filter_profile()].
#'
#' Fields that the format does not define, the order of the string table, and bytes of strings that are not UTF-8 or
#' contain a NUL are not kept; [profile_problems()] lists how such strings were read. Like Go's reader, `read_pprof()`
#' ignores references to a missing mapping. It rejects the same files as Go's reader, except for lines without a
#' function, which it accepts.
#'
#' ## Sources of pprof files
#'
#' A file is one source, unless labels of its samples specify other sources, as written by
#' `write_pprof(source_labels = TRUE)`. These sources have the URI that they had when they were written. They are
#' ordered by their numbers, or by their first samples if files with the same numbers were merged. If some samples have
#' no such labels, the file itself is the first source. Irregular labels of this kind remain in `.labels`.
#'
#' The labels `trace_id` and `span_id` of a sample become columns of `samples`, if they are ids of OpenTelemetry.
#'
#' ## Size
#'
#' A small file can represent a huge profile: gzip compresses by up to a thousand times, and a stack that
#' many samples refer to is repeated for each of them. A file is rejected with an error of class
#' `profile_error_budget` if it would take more than 4 GB of memory and more than 64 times its size on disk.
#' To read it anyway, set `options(profile.max_memory = )` to the number of bytes that a file may take.
#'
#' Tables have a row for each frame of each sample, but most of their columns take no memory until their
#' values are needed, see *Computed columns* in [profile_data].
#'
#' @param path A path, or a connection as for [readLines()]. An open connection is read from its current
#'   position, a closed one from the start.
#' @param ... Must be empty.
#' @param version `"2.0"` for the tables of [profile_data], `"1.0"` for the tables of versions 1.x of this package.
#'   Specify it if your code depends on the tables.
#' @param source_uri The value of `sources$source_uri`, by default the path. `NA` if there is none.
#'
#' @return An object of class `profile_data`, see [profile_data]. It is valid by the rules of
#'   [validate_profile()].
#'
#' @section Errors:
#' All errors except those about `...` have class `profile_error`. The class is also `profile_error_open` if
#' the file is missing or cannot be read, and `profile_error_parse` if its content has another format or is
#' too damaged to be read; the message says what the content looks like, and where the problem is. Archives, R
#' objects, profiles in pprof's legacy formats and many other kinds of files are recognised, and the message says
#' what to do with them.
#'
#' @seealso [read_otlp()], [read_profile()] for files of unknown format, [write_rprof()],
#'   [write_pprof()], [summary.profile_data()]
#' @export
#' @examples
#' path <- system.file("samples/rprof/1.out", package = "profile")
#' x <- read_rprof(path)
#' x
#'
#' # the tables
#' x$functions
#' x$sample_locations
#'
#' path <- system.file("samples/proto/1.out.prof.pb.gz", package = "profile")
#' read_pprof(path)
read_rprof <- function(path, ..., version = "2.0", source_uri = path) {
  call <- call_without_dots()
  read_format(path, "rprof", version, source_uri, call)
}

#' @rdname read_rprof
#' @export
read_pprof <- function(path, ..., version = "2.0", source_uri = path) {
  call <- call_without_dots()
  read_format(path, "pprof", version, source_uri, call)
}

#' Read a profile of unknown format
#'
#' `read_profile()` detects the format of a file by its content and calls [read_rprof()], [read_pprof()],
#' [read_otlp()], [read_rprofmem()], or a reader of [another format][read_speedscope()]. The name of the file does not
#' matter. It also reads the pages of [profile_page()] and of the package profvis.
#'
#' @details
#' A page of this package contains the profile that it shows, but less than a file in another format, see
#' [profile_page()]: the stacks with files, lines and packages, and either all samples in their order or, without the
#' timeline, one sample for each stack and set of labels. Times are exact to half a period. Comments, mappings,
#' addresses, attributes other than those about CPU time, columns of your own, the text of source files, and values that cannot
#' be summed are missing. The type of its sources is `page`, or `heap` for heap snapshots. A page that compares two profiles is an error.
#'
#' Pages of profvis, including `.Rprofvis` files, are read as the files of [Rprof()] that profvis had read, without
#' the memory in use.
#'
#' @inheritParams read_rprof
#'
#' @return An object of class `profile_data`, see [profile_data]. `sources$source_type` is the format.
#'
#' @section Errors:
#' The errors of these functions. For a file of an unsupported format, the message of `profile_error_parse` describes
#' what the file looks like.
#' @export
#' @examples
#' read_profile(system.file("samples/rprof/1.out", package = "profile"))
#' read_profile(system.file("samples/proto/1.out.prof.pb.gz", package = "profile"))
read_profile <- function(path, ..., version = "2.0", source_uri = path) {
  call <- call_without_dots()
  if (!missing(path) && inherits(path, "tbl_profile")) {
    return(as_version(profile_of_dataset(path, call), version, call))
  }
  read_format(path, "", version, source_uri, call)
}

# Reads a file in the given format; if it is "", the format is detected.
read_format <- function(path, format, version, source_uri, call, payload = FALSE) {
  version <- check_choice(version, c("1.0", "2.0"), "version", call)
  input <- profile_input(path, source_uri, call)
  report <- progress_report(paste("Reading", shown_name(file_name(gsub("`", "", input$name)), 40)), "download")
  result <- rust(rust_read(input, format, version, payload, lazy_columns(call), report), call, reader_hint)
  warn_problems(result$counts, input$name, call)
  new_profile_data(result$tables, version)
}

# The input of the core (a path or bytes), its name for messages, and its URI. The description of a connection is
# queried first, since reading may close the connection.
profile_input <- function(path, source_uri, call) {
  if (missing(path)) {
    abort_missing("path", call, i = "It is the path of the file to read.")
  }
  if (inherits(path, "connection")) {
    shown <- connection_name(path, call)
    uri <- check_uri(source_uri, call)
    data <- read_connection(path, call)
  } else {
    data <- file_path(path, "profile_error_open", call)
    shown <- data[[2]]
    uri <- check_uri(source_uri, call)
  }
  list(name = paste0("`", shown, "`"), uri = uri, data = data, max_memory = max_memory(call))
}

# The number of bytes of memory that a file may take; NULL if it depends on the size of the file.
max_memory <- function(call) {
  bytes <- getOption("profile.max_memory")
  if (is.null(bytes)) {
    return(NULL)
  }
  if (!is.numeric(bytes) || length(bytes) != 1 || is.na(bytes) || bytes < 0) {
    abort_argument("The option `profile.max_memory` must be a number of bytes.", call)
  }
  as.double(bytes)
}

# Whether columns of samples are computed only when their values are needed.
lazy_columns <- function(call) {
  lazy <- getOption("profile.lazy", TRUE)
  if (!rlang::is_bool(lazy)) {
    abort_argument("The option `profile.lazy` must be `TRUE` or `FALSE`.", call)
  }
  lazy
}

#' Problems found while reading
#'
#' `profile_problems()` lists the irregularities that were found in a file, and how they were read. Truncated, damaged
#' or edited files, and files in unexpected encodings, are read as far as possible.
#'
#' @param x A profile, see [profile_data].
#'
#' @return A tibble with a row for each problem, in the order of the file. It has no rows for a regular
#'   file, and at most a thousand for each kind of problem.
#'   \describe{
#'   \item{source_id}{(integer) the source; in an Rprof file with several runs, the first one. Missing in version 1.0}
#'   \item{line, byte}{(double) the position: a line, counted from 1, or a byte, counted from 0. Both are
#'     `NA` for OpenTelemetry in JSON}
#'   \item{problem}{(character) a short name of the kind of problem, stable between releases}
#'   \item{lost}{(logical) whether recorded data were lost}
#'   \item{description}{(character) what was found, and how it was read}
#'   \item{text}{(character) the start of the text concerned; in JSON preceded by its field, such as
#'     `dictionary.locationTable[3].lines[0]`; in profiles of [stop_profiler()] the number of the sample}
#'   }
#' @export
#' @examples
#' path <- tempfile()
#' writeLines(c("sample.interval=20000", "\"f\" \"g\" ", "\"f\" \"g"), path)
#' x <- suppressWarnings(read_rprof(path))
#' profile_problems(x)
profile_problems <- function(x) {
  call <- rlang::current_env()
  x <- as_profile(x, call)
  rust(rust_validate(x), call)
  x[[".problems"]] %||% data_model()$optional$.problems
}
