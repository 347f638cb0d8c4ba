# Readers: check the arguments, call the core, make the object.

#' Read profiler data
#'
#' @description
#' `read_rprof()` reads what [Rprof()] wrote: every combination of memory, GC and
#' line profiling, several runs in one file (`append = TRUE`), and files that a
#' killed process or an editor left behind.
#'
#' `read_pprof()` reads the profiles of `pprof` (`profile.proto`), as Go, and
#' many other languages and tools, write them.
#'
#' @details
#' A file is read as it is: one row of `samples` for each sample as recorded, in
#' its order. Files compressed with gzip are read as they are.
#'
#' What is odd in an Rprof file is read as well as it can be, reported in *one*
#' warning of class `profile_warning`, and listed by [profile_problems()]. The
#' warning has class `profile_warning_incomplete` when something is missing, as
#' at the end of a file whose process was killed.
#' Runs of NUL bytes, as a crash of the machine or emptying a file that is being written
#' leaves them, and lines of more than 64 MiB are skipped.
#' Zero bytes after gzip data, as tapes add them, are skipped as well, in any format.
#'
#' ## Places in Rprof files
#'
#' With `line.profiling = TRUE` Rprof notes a file and a line before an item: the
#' line that was running *inside* that function. That is what `line` in
#' `locations` and `filename` in `functions` mean. A function seen in two files
#' has two rows. With promises, code that a caller wrote runs inside the callee's
#' frame: `data.frame()` can be shown with a line of your own file.
#'
#' Rprof does not record when a sample was taken, which clock was used, or where
#' a function starts (`start_line` is 0).
#'
#' ## Why there are no lines
#'
#' R knows the lines of code that it parsed with source references. In an interactive session it keeps
#' them, under Rscript and `R CMD BATCH` it does not: set `options(keep.source = TRUE)` before the
#' code is parsed. The script that Rscript itself runs is parsed as it goes on, so this may be
#' its first line. Packages have lines if they were installed with `R CMD INSTALL --with-keep.source`, or with
#' the environment variable `R_KEEP_PKG_SOURCE=yes`.
#'
#' ## Why there are few samples, or none
#'
#' By default [Rprof()] measures CPU time. None passes while R sleeps, or waits for a file, a
#' server or another process; from R 4.4 on, `event = "elapsed"` measures real time. A sample is
#' taken once in an interval, by default 20 milliseconds: code that runs for less may have none. Repeat
#' it, or choose a shorter `interval`.
#'
#' ## Times of Rprof files
#'
#' Rprof does not record when a run began. `source_timestamp` is the time at which the file was
#' last written, minus the time that the samples of the run stand for; where a file has several runs, minus that
#' of those behind it as well. So it is the latest time at which the run can have begun: it is
#' earlier if R waited, since Rprof counts CPU time, or if the file was written again later, as
#' a copy is. Bytes and connections have no time. [start_profiler()] does record it.
#'
#' ## Names
#'
#' Function names are kept as they are: `data.frame` stays `data.frame`. Bytes
#' that are not UTF-8 are read as Latin-1 (Windows-1252).
#'
#' Files are opened as R's own functions open them: a path of unknown encoding is its bytes,
#' any other is translated to the encoding of the locale; it is an error if that has no such
#' characters. In messages and in `source_uri` bytes that are no text are shown as `<e9>`.
#'
#' ## Sources of pprof files
#'
#' A file is one source, unless labels of its samples tell others, as
#' `write_pprof(sources = TRUE)` writes them. Those sources have the URI that they
#' had then. They stand in the order of their numbers, or where files with the same
#' numbers were merged, of their first samples; before them stands the file itself,
#' if it has samples that tell no source. `.labels` has labels that tell nothing of
#' that kind, or not as they should.
#'
#' ## What is kept of pprof files
#'
#' All that a file says, as it says it: see [profile_data] for where. Each line of a
#' location is a row of `locations`, those of inlined calls innermost first; a location
#' without a line is a row without a function. Samples are one row each, with all
#' their values, also if those are 0. Numbers are exact, beyond what R's own can hold as
#' text beside them. `drop_frames` and `keep_frames` are not applied, see [drop_frames()].
#'
#' Not kept are fields that the format does not define, the order of the string table,
#' and the bytes of texts that are no UTF-8 or hold a NUL: what became of those is in
#' [profile_problems()]. As in Go's reader a mapping that is not there is none. What that
#' reader refuses is refused here too, but for lines without a function.
#'
#' ## Size
#'
#' A small file can stand for a huge profile: gzip makes a thousand bytes of one, and a stack
#' that many samples refer to is written out for each of them. A file that would take
#' more than 4 GB of memory, and more than 64 times its size as stored, is refused with
#' an error of class `profile_error_budget`. To read it all the same,
#' set `options(profile.max_memory = )` to the bytes that a file may take.
#'
#' @param path A path, or a connection as [readLines()] takes it. What
#'   is left in one that is open is read; one that is not is read from its start.
#' @param ... Must be empty.
#' @param version `"2.0"` for the tables of [profile_data], `"1.0"` for those of
#'   versions 1.x of this package. Pass it if your code depends on the tables.
#' @param source_uri What `sources$source_uri` shall say of the file, by default the
#'   path. `NA` for nothing.
#'
#' @return An object of class `profile_data`, see [profile_data]. It is valid by
#'   the rules of [validate_profile()].
#'
#' @section Errors:
#' All but that of arguments in `...` have class `profile_error`. A file that is missing or cannot be read gives
#' `profile_error_open`; content of another kind, or damaged beyond reading,
#' `profile_error_parse`, which says what it looks like, and where.
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
  call <- rlang::current_env()
  rlang::check_dots_empty()
  check_version(version, call)
  input <- profile_input(path, source_uri, call)
  result <- rust(rust_read_rprof(input$data, input$name, version, input$uri, input$max_memory), call)
  finish_read(result, input, version, call)
}

#' @rdname read_rprof
#' @export
read_pprof <- function(path, ..., version = "2.0", source_uri = path) {
  call <- rlang::current_env()
  rlang::check_dots_empty()
  check_version(version, call)
  input <- profile_input(path, source_uri, call)
  result <- rust(rust_read_pprof(input$data, input$name, version, input$uri, input$max_memory), call)
  finish_read(result, input, version, call)
}

#' Read a profile of whichever format
#'
#' Looks at the bytes of a file and reads it with [read_rprof()], [read_pprof()] or
#' [read_otlp()]. The name of the file does not matter.
#'
#' @inheritParams read_rprof
#'
#' @return An object of class `profile_data`, see [profile_data]. `sources$source_type` says
#'   which format it was.
#'
#' @section Errors:
#' As of those functions. `profile_error_parse` where the file is of another format says
#' what it looks like.
#' @export
#' @examples
#' read_profile(system.file("samples/rprof/1.out", package = "profile"))
#' read_profile(system.file("samples/proto/1.out.prof.pb.gz", package = "profile"))
read_profile <- function(path, ..., version = "2.0", source_uri = path) {
  call <- rlang::current_env()
  rlang::check_dots_empty()
  check_version(version, call)
  input <- profile_input(path, source_uri, call)
  result <- rust(rust_read_profile(input$data, input$name, version, input$uri, input$max_memory), call)
  finish_read(result, input, version, call)
}

# What the core reads (a path or bytes), what messages call it, and its URI. To
# read a connection may end it, so it is asked for its description first.
profile_input <- function(path, source_uri, call) {
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

# The bytes of memory that a file may take; NULL where its size decides.
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

finish_read <- function(result, input, version, call) {
  warn_problems(result$counts, input$name, call)
  new_profile_data(result$tables, version)
}

#' What was odd in an input
#'
#' A file that was cut, torn, edited or written in another encoding is read as
#' well as it can be. This lists what was found and what was made of it.
#'
#' @param x A profile, see [profile_data].
#'
#' @return A tibble with a row for each problem, in the order of the file; no row
#'   for a regular file. Of each kind the first thousand are kept.
#'   \describe{
#'   \item{source_id}{(integer) the source it was found in, the first one of an Rprof
#'     file of several runs; not in version 1.0}
#'   \item{line, byte}{(double) where it is: a line, from 1, or a byte, from 0; both `NA`
#'     for OpenTelemetry in JSON}
#'   \item{problem}{(character) a short name of its kind, stable between releases}
#'   \item{lost}{(logical) whether something that was recorded is missing}
#'   \item{description}{(character) what was found, and how it was read}
#'   \item{text}{(character) the start of the text it is about, in JSON behind the field it
#'     is in, such as `dictionary.locationTable[3].lines[0]`; in profiles of
#'     [stop_profiler()] the number of the sample}
#'   }
#' @export
#' @examples
#' path <- tempfile()
#' writeLines(c("sample.interval=20000", "\"f\" \"g\" ", "\"f\" \"g"), path)
#' x <- suppressWarnings(read_rprof(path))
#' profile_problems(x)
profile_problems <- function(x) {
  x <- as_profile(x, rlang::current_env())
  problems <- x[[".problems"]]
  if (is.null(problems)) {
    problems <- data_model()$dotted$.problems
  }
  problems
}
