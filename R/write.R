# Writers: check the arguments, call the core, return the profile.

#' Write profiler data
#'
#' @description
#' `write_pprof()` writes a file for [pprof](https://github.com/google/pprof) and
#' all tools that read its format: speedscope, Pyroscope, Grafana, and others.
#'
#' `write_rprof()` writes what [Rprof()] would have written, for [summaryRprof()],
#' profvis, proftools and others.
#'
#' @details
#' ## pprof
#'
#' The file is compressed with gzip. It holds
#' - the value types: for Rprof data `samples` in `count`, `cpu` in `nanoseconds`
#'   (the count times the sampling interval), and for memory profiles
#'   `alloc_space` in `bytes`; for other data the types it has;
#' - functions under their R names, their files and lines;
#' - the labels of the samples, and for Rprof data the label `gc`;
#' - where there is more than one source, the label `run` (`run-1`, `run-2`, …), or
#'   with `sources = TRUE` labels that tell each sample's source;
#' - the sampling period, the duration, the time stamp, and as a comment where
#'   the data came from.
#'
#' The format has no field for the `.frame_type` of `locations`, which is left out, nor for much
#' that OpenTelemetry says: resources, scopes, attributes of profiles, mappings and
#' locations, those of samples that are neither text nor integer, times and traces of samples.
#' [write_otlp()] writes all of that. Nor are there places for the `#File` lines of Rprof files
#' and the places from which R was called at top level, nor for your own columns and tables. A
#' sample without a value of a type has 0 there.
#'
#' A warning of class `profile_warning_lossy` reports, with the number of each: lines without a
#' function are left out, as Go's pprof refuses them; periods that are not whole numbers are rounded
#' (with `sources = TRUE` labels have them); time stamps outside the years 1678 to 2262 and durations
#' that add up to more than 292 years are left out.
#'
#' With `aggregate = TRUE` equal stacks (with equal labels) become one sample,
#' with the sums of their values, by the rules of Go's own merging: samples that are 0
#' throughout go, and so does what no sample needs; mappings of the same file and size
#' are one, and addresses in them are moved accordingly. This is smaller and all that `pprof` needs. The
#' levels that a memory profile records (`vsize_small` and so on) have no
#' meaningful sum: only `aggregate = FALSE` writes them, along with every sample
#' in its order, which viewers that show time need, and the tables as they are, under
#' the ids that they had in their file. So a pprof file that was read comes back the
#' same. [compact_profile()] removes what you filtered away from those tables.
#'
#' Where several sources become one file, it has the earliest time stamp, the longest
#' period (if all are of one type), the sum of the durations, each comment once, and
#' `drop_frames` and `keep_frames` of the first source.
#'
#' ## Sources in pprof files
#'
#' A pprof file says once where all its samples come from. With `sources = TRUE`
#' every sample says it: [read_pprof()] makes the table `sources` of that again,
#' also from files that were merged (`pprof -proto a b`), and
#' `pprof -tagfocus=source_uri=a.out` shows one source of several. The labels are
#'
#' | label | what it is |
#' |---|---|
#' | `source_id` | the row in `sources` |
#' | `source_type`, `source_uri`, `source_default_type` | the texts of these columns |
#' | `source_timestamp`, `source_duration` | in nanoseconds |
#' | `source_period`, `source_period_type` | the period in its own unit; one that is not whole is a text, such as `0.5 seconds` |
#' | `source_options` | such as `memory gc line`, or `none`, for a run of `Rprof()` |
#'
#' What is `NA` has no label. A source without a sample has none that could tell
#' of it, which a warning of class `profile_warning_lossy` says. Comments are those
#' of the file, and are read as those of its first source.
#'
#' ## Rprof
#'
#' A regular file that was read comes back byte for byte: header, interval, the
#' `#File` lines where they stood, memory figures, and the runs of a file written
#' with `append = TRUE`. A sample with a count of n becomes n lines. Files, lines and memory
#' figures are written where samples have them, also if `.line_profiling` or
#' `.memory_profiling` is `FALSE`. A function that is not known is written as `<unknown>`,
#' without its line.
#'
#' A warning of class `profile_warning_lossy` reports, with the number of each: intervals that
#' are not whole microseconds, times that are not whole intervals and memory figures that are not
#' whole are rounded; memory figures of samples that lack one of the four, samples without a
#' frame, lines without a function and lines beyond 2^31 - 1 are left out; in names that would be
#' read as something else, such as files with a line feed, line feeds become blanks and quotes `'`.
#'
#' An Rprof file consists of intervals and options, memory figures, and stacks of names, files and lines.
#' Nothing else is written: other values than those and the count of samples, labels,
#' comments, mappings, addresses and columns in lines, times, URIs, and your own columns
#' and tables.
#'
#' ## Safety
#'
#' The data go to a temporary file beside `path`, which replaces `path` when it is
#' complete: after an error, a full disk or Ctrl-C the old file is as it was. A process that is
#' killed leaves its temporary file, `.profile-<process>-<number>.tmp`. Whoever writes to the
#' same directory later removes it, when it is more than a day old.
#'
#' So an existing file becomes a new one with the same name and permissions. It keeps owner and
#' group where the system permits that; as a rule only root can create files of other
#' users. Its access control lists are lost, and other hard links to it keep the old
#' content. To write into the existing file instead, which is not safe in this way, copy:
#'
#' ```r
#' temporary <- tempfile()
#' write_pprof(x, temporary)
#' file.copy(temporary, path, overwrite = TRUE, copy.mode = FALSE)
#' ```
#'
#' A symbolic link stays, and the file it leads to is replaced. Devices, pipes and
#' `/dev/stdout` are written directly.
#'
#' @param x A profile, see [profile_data], or a dm of its tables; it is checked by the
#'   rules of [validate_profile()].
#' @param path Path of the file to write.
#' @param ... Must be empty.
#' @param aggregate Whether to sum up equal stacks.
#' @param sources Whether to tell the source of each sample, by labels.
#'
#' @return `x`, invisibly.
#'
#' @section Errors:
#' `profile_error_write` when the file cannot be written, `profile_error_invalid`
#' when `x` breaks a rule, `profile_error_lossy` when `x` has nothing the format
#' could hold: no counts of samples, intervals that are negative or round to 0, or memory figures
#' that are negative (Rprof), or values that are no integers (pprof); with `sources = TRUE` also a time stamp after the year 2262, and samples
#' with a label that has the name of one above.
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
write_pprof <- function(x, path, ..., aggregate = TRUE, sources = FALSE) {
  call <- rlang::current_env()
  rlang::check_dots_empty()
  tables <- as_profile(x, call)
  file <- file_path(path, "profile_error_write", call)
  check_flag(aggregate, "aggregate", call)
  check_flag(sources, "sources", call)
  report <- rust(rust_write_pprof(tables, file, aggregate, sources), call)
  warn_losses(path_in_words(path), report, c(
    untold_sources = "Sources without a sample are not in the file: %s.",
    other_labels = "Labels that are neither text nor integer are not in the file: %s.",
    lines_without_function = "Lines without a function are not in the file, as Go's pprof refuses them: %s.",
    untold_messages
  ), call)
  invisible(x)
}

#' @rdname write_pprof
#' @export
write_rprof <- function(x, path) {
  call <- rlang::current_env()
  tables <- as_profile(x, call)
  file <- file_path(path, "profile_error_write", call)
  report <- rust(rust_write_rprof(tables, file), call)
  warn_losses(path_in_words(path), report, c(
    assumed_intervals = "The sampling interval is not known: wrote 20000 microseconds, the default of `Rprof()`.",
    rounded_intervals = "Sampling intervals were rounded to whole microseconds: %s.",
    rounded_counts = "Samples whose time is not a whole number of intervals were rounded: %s.",
    rounded_figures = "Samples whose memory figures were rounded to what Rprof counts, such as 8 bytes: %s.",
    partial_figures = "Samples with only some of the four memory figures, which are not in the file: %s.",
    empty_samples = "Samples without a frame have no line in an Rprof file: %s.",
    lost_lines = "Line numbers that are beyond R's integers or without a function are not in the file: %s.",
    changed_names = "Names of functions and files were changed that would be read as something else: %s."
  ), call)
  invisible(x)
}

# What pprof and OpenTelemetry cannot say of sources.
untold_messages <- c(
  periods = "Sampling periods were rounded or left out, as only whole numbers below 2^63 can be written: %s.",
  times = "Time stamps outside the years 1678 to 2262 were not written: %s.",
  durations = "Durations were not written, as they are or add up to more than 292 years: %s."
)

path_in_words <- function(path) paste0("`", path, "`")

# One warning for all that could not be written. `report` has a count for each kind of
# loss, `messages` what to say of it.
warn_losses <- function(what, report, messages, call) {
  counts <- unlist(report)[names(messages)]
  counts <- counts[counts > 0]
  if (length(counts) > 0) {
    said <- mapply(sub, "%s", format_count(counts), messages[names(counts)], MoreArgs = list(fixed = TRUE))
    warn_profile(
      c(paste0(what, " says less than the profile."), rlang::set_names(said, "x")),
      "profile_warning_lossy",
      losses = counts,
      call = call
    )
  }
}
