# Writes profiles: checks arguments and calls the core.

#' Write profiler data
#'
#' @description
#' `write_pprof()` writes a file for [pprof](https://github.com/google/pprof) and all tools that read its
#' format, such as speedscope, Pyroscope and Grafana.
#'
#' `write_rprof()` writes a file in the format of [Rprof()], for [summaryRprof()], profvis, proftools and
#' others.
#'
#' @details
#' Both functions write to a temporary file in the directory of `path`, which replaces `path` when it is complete: after
#' an error, a full disk or Ctrl-C, the old file is unchanged. See *Replacing files* below.
#'
#' If some information cannot be stored exactly, one warning of class `profile_warning_lossy` counts what was
#' rounded, changed or left out.
#'
#' ## pprof
#'
#' The file is compressed with gzip. It contains
#' - the values: for Rprof data `samples` in `count`, `cpu` in `nanoseconds` (the count times the sampling interval),
#'   and for memory profiles `alloc_space` in `bytes`; for other data the types of the profile. A missing value is
#'   written as 0;
#' - times with fractions, such as the seconds of py-spy, as whole nanoseconds;
#' - functions with their R names, files and lines;
#' - the labels of samples, and for Rprof data the label `gc`;
#' - the ids of the trace and the span of samples, as the labels `trace_id` and `span_id`;
#' - if there is more than one source, the label `run` (`run-1`, `run-2`, ...), or with `source_labels = TRUE`
#'   labels that identify the source of each sample;
#' - the sampling period, the duration, the time stamp, and the origin of the data as a comment.
#'
#' With `aggregate = TRUE`, samples with equal stacks and labels become one sample with the sums of their values, by
#' Go's rules for merging profiles: samples whose values are all 0 are removed, and so are rows that no sample refers
#' to; mappings of the same file and size become one, and addresses are adjusted. The file is smaller and contains
#' everything that `pprof` needs.
#'
#' With `aggregate = FALSE`, every sample is written, in order, as viewers that show time require. The memory in use
#' (`vsize_small` and others, whose sums are meaningless) is written as well, and tables are written unchanged, with the
#' ids of the original file. This reproduces a pprof file that was read. Use [compact_profile()] to remove unused rows
#' after filtering.
#'
#' Several sources are combined: the file has the earliest time stamp, the longest period (if all have the
#' same type), the sum of the durations, each comment once, and `drop_frames` and `keep_frames` of the first
#' source. The CPU time that [record_profile()] has recorded is written as comments such as `profile.cpu.clock: 2400000000`,
#' unless sources have different periods, or samples were removed.
#'
#' The warning counts
#' - lines without a function, which are left out because Go's pprof rejects them;
#' - periods that are not whole numbers, which are rounded unless `source_labels = TRUE`;
#' - time stamps outside the years 1678 to 2262, and durations with a sum of more than 292 years, which are left out.
#'
#' The format cannot store
#' - `.frame_type` in `locations`;
#' - OpenTelemetry's resources, scopes, attributes of profiles, mappings and locations, attributes of samples other than
#'   text and integers, times and traces of samples (use [write_otlp()] for these);
#' - the `#File` lines of Rprof files and the places that called the outermost frames;
#' - columns and tables of your own.
#'
#' ## Sources in pprof files
#'
#' A pprof file states its origin once for all samples. With `source_labels = TRUE`, labels state the origin of each
#' sample. [read_pprof()] restores the table `sources` from them, also after files were merged (`pprof -proto a b`), and
#' `pprof -tagfocus=source_uri=a.out` shows one source of several. The labels are
#'
#' | label | content |
#' |---|---|
#' | `source_id` | the row of `sources` |
#' | `source_type`, `source_uri`, `source_default_type` | the values of these columns |
#' | `source_timestamp`, `source_duration` | nanoseconds |
#' | `source_period`, `source_period_type` | the period in its own unit; text such as `0.5 seconds` if it is not a whole number |
#' | `source_options` | such as `memory gc line`, or `none`, for a run of `Rprof()` |
#'
#' There is no label for `NA`. Sources without samples cannot be stored; a warning of class `profile_warning_lossy`
#' reports them. Comments belong to the file, and are read as comments of its first source.
#'
#' ## Rprof
#'
#' A file whose name ends in `.gz` is compressed.
#'
#' A regular Rprof file that was read is reproduced byte for byte: header, interval, positions of `#File` lines, memory
#' figures, and the runs of a file written with `append = TRUE`. A sample with a count of n becomes n lines. Files,
#' lines and memory figures are written if samples have them, even if `.line_profiling` or `.memory_profiling` is
#' `FALSE`. An unknown function is written as the program or library that contains it, such as `[libfoo.so.1]`, or as
#' `<unknown>`, without its line.
#'
#' The warning counts
#' - intervals that are not whole microseconds, times that are not whole intervals, and memory figures that are not
#'   whole numbers, which are rounded;
#' - memory figures of samples that lack one of the four, samples without frames, lines without a function, and lines
#'   above 2^31 - 1, which are left out;
#' - names that would be read as something else, such as file names with a line feed: line feeds become blanks and
#'   quotes become `'`.
#'
#' An Rprof file can store intervals and options, memory figures, and stacks of names, files and lines. Everything else
#' is left out: other values, labels, comments, mappings, addresses and columns in lines, times, URIs, and columns and
#' tables of your own.
#'
#' ## Replacing files
#'
#' An existing file is replaced by a new one with the same name and permissions. It keeps its owner and group
#' if the system permits, which is usually the case only for root. Access control lists are lost, and other
#' hard links keep the old content. To write into the existing file, without protection against errors, copy:
#'
#' ```r
#' temporary <- tempfile()
#' write_pprof(x, temporary)
#' file.copy(temporary, path, overwrite = TRUE, copy.mode = FALSE)
#' ```
#'
#' A symbolic link is kept, and the file to which it refers is replaced. Devices, pipes and `/dev/stdout` are
#' written directly. If R is killed, the temporary file `.profile-<process>-<number>.tmp` remains; the next
#' write to the same directory removes it if it is more than a day old.
#'
#' @param x A profile, see [profile_data], or a dm of its tables. It must be valid by the rules of
#'   [validate_profile()].
#' @param path Path of the file to write.
#' @param ... Must be empty.
#' @param aggregate Whether to aggregate samples with equal stacks.
#' @param source_labels Whether to store the source of each sample in labels.
#'
#' @return `x`, invisibly.
#'
#' @section Errors:
#' - `profile_error_write` if the file cannot be written;
#' - `profile_error_invalid` if `x` is not valid;
#' - `profile_error_lossy` if `x` cannot be stored at all. For Rprof: there are no counts of samples, an
#'   interval is negative or rounds to 0, or a memory figure is negative. For pprof: values are not
#'   integers, or, with `source_labels = TRUE`, a time stamp is after the year 2262 or a label of a sample has one
#'   of the names above.
#'
#' @seealso [read_rprof()], [read_pprof()], [write_otlp()]
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#'
#' path <- tempfile(fileext = ".pb.gz")
#' write_pprof(x, path)
#' read_pprof(path)
#'
#' write_rprof(x, tempfile())
write_pprof <- function(x, path, ..., aggregate = TRUE, source_labels = FALSE) {
  call <- call_without_dots()
  check_flag(aggregate, "aggregate", call)
  check_flag(source_labels, "source_labels", call)
  write_format(x, path, "pprof", list(aggregate = aggregate, source_labels = source_labels), call)
}

#' @rdname write_pprof
#' @export
write_rprof <- function(x, path, ...) {
  call <- call_without_dots()
  write_format(x, path, "rprof", list(), call)
}

# Writes a file in a format; `options` are the options of its writer in the core.
write_format <- function(x, path, format, options, call) {
  # Checked first, because users swap the arguments.
  file <- file_path(path, "profile_error_write", call)
  tables <- as_profile(x, call)
  report <- progress_report("Writing", "download")
  losses <- rust(rust_write(tables, file, format, options, report), call)
  warn_losses(losses, format_path(path), call)
  invisible(x)
}

format_path <- function(path) paste0("`", path, "`")
