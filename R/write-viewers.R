# Writes files for viewers: speedscope, Chrome, VS Code and Positron, Firefox.

#' Write profiles for other viewers
#'
#' @description
#' `write_speedscope()` writes a file for [speedscope](https://www.speedscope.app): open this page, or run
#' `npx speedscope`, which works without a network connection, and drop the file on the page. The file stays on your
#' computer.
#'
#' `write_cpuprofile()` writes a file with the extension `.cpuprofile`, which Positron and VS Code open in a table, with
#' links to source files, and as a flame graph with the extension *Flame Chart Visualizer for JavaScript Profiles*. In
#' Chrome, load it in the *Performance* panel of the developer tools.
#'
#' `write_firefox()` writes a file for the [Firefox Profiler](https://profiler.firefox.com), which shows stacks over
#' time, call trees, and the source code with the time of each line. Open this page in any browser and drop the file on
#' it. The file stays on your computer unless you upload it.
#'
#' @details
#' An existing file is replaced as in [write_pprof()]. A file whose name ends in `.gz` is compressed.
#'
#' One warning of class `profile_warning_lossy` counts values that were left out or changed although the format has a
#' place for them, such as negative values. Profiles of memory often have several sample types, such as `inuse_space` and
#' `inuse_objects`: the warning also counts those that a format with one type leaves out. There is no warning about other
#' information that the format cannot contain at all, which is listed below.
#'
#' For Rprof data the values are `samples`, `cpu` (the count times the sampling interval) and, for memory profiles,
#' `alloc_size`; for other data the types of the profile. The memory in use at each sample, whose sum has no meaning,
#' is not written. Code without symbols has the name of its program or library, such as `[libfoo.so.1]`, or in Firefox
#' files its address.
#'
#' ## speedscope
#'
#' The file contains a profile for each source and sample type, named after the file that it was read from, such
#' as `Rprof.out: cpu`, and names, files, lines and columns of frames. The default type is shown first.
#'
#' With `aggregate = FALSE`, samples are written in their order, for the view *Time Order*; consecutive samples with
#' equal stacks become one entry, which looks the same. With `aggregate = TRUE` the values of all samples with equal
#' stacks are summed. By default, samples are summed if there are more than 100,000 entries: speedscope takes seconds to
#' open 100,000 samples, and cannot show a million.
#'
#' Labels, times of samples, kinds of frames, packages, mappings, resources and attributes are not written.
#' [read_speedscope()] reads the same sources, with the same values. speedscope supports units of
#' time, bytes, and values without a unit. Fields that it ignores contain the rest: `run` is the number of the source and
#' `period` its period and, if the unit does not identify a type, as for bytes in use and for objects, `sampleType` is the
#' name and unit of the type.
#'
#' ## CPU profiles
#'
#' The file contains times: `cpu` for Rprof data, otherwise the default type of the profile if it is a time, otherwise
#' the first type that is a time. Each sample is an entry, in the order of the profile. Several sources follow one
#' another on one time line, which the warning reports. A sample lasts until the next one, so samples without a time are
#' not written; the warning counts them.
#'
#' Functions have their file and the line where they start. For R functions the start is unknown, and the first of their
#' lines in the profile is written instead. Lines are written for the innermost functions only: the format counts the
#' samples of each line of a function, in each place of the call tree. The lines of callers, columns, labels, kinds of
#' frames, packages, mappings, resources and attributes are not written. [read_cpuprofile()] reads the same stacks and
#' times.
#'
#' ## Firefox
#'
#' The file contains version 66 of the processed profile format; newer viewers convert it. Give it a name that ends in
#' `.firefox.json.gz`, so that it is compressed. Each source is a thread. The weight of its samples is the default type
#' if it is a time or a number of bytes; otherwise a time, which for Rprof data is the count times the interval; or the
#' count if there is no time. Allocated memory (`alloc_space`) is shown in the call tree of native allocations. If the
#' times of samples are unknown, each sample starts when the previous one ends.
#'
#' The categories *R*, *Native code* and *Garbage collection* have different colours. The text of source files is
#' included if the profile contains it: call [add_source_text()] first.
#'
#' Other sample types, labels, packages, resources, attributes and the order of inlined calls are not written. Weights
#' can only be times, counts of samples, or bytes, and the file does not state whether bytes were allocated or are in use.
#' The warning counts sources with another type, and samples without a weight. [read_firefox()] reads the same
#' stacks, times and lines, bytes as the type `memory`, and allocations as separate samples.
#'
#' @inheritParams write_pprof
#' @param aggregate Whether to sum the values of samples with equal stacks. `NULL`, the default, does this for large
#'   profiles.
#'
#' @return `x`, invisibly.
#'
#' @section Errors:
#' - `profile_error_write` if the file cannot be written;
#' - `profile_error_invalid` if `x` is not valid;
#' - `profile_error_argument` for other invalid arguments;
#' - `profile_error_unsupported` if `x` does not have the `type` that `write_collapsed()` should write;
#' - `profile_error_lossy` if `write_cpuprofile()` finds no times in `x`.
#'
#' @seealso [read_speedscope()], [profile_page()] for a viewer that needs no other tool, [write_pprof()]
#' @order 1
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#' path <- tempfile(fileext = ".speedscope.json")
#' write_speedscope(x, path)
#'
#' # with source code
#' x <- add_source_text(x, directory = system.file("samples/report", package = "profile"))
#' write_firefox(x, tempfile(fileext = ".firefox.json.gz"))
write_speedscope <- function(x, path, ..., aggregate = NULL) {
  call <- call_without_dots()
  if (!is.null(aggregate)) {
    check_flag(aggregate, "aggregate", call)
  }
  write_format(x, path, "speedscope", list(aggregate = aggregate %||% NA), call)
}

#' @rdname write_speedscope
#' @order 2
#' @export
write_cpuprofile <- function(x, path, ...) {
  call <- call_without_dots()
  write_format(x, path, "cpuprofile", list(), call)
}

#' @rdname write_speedscope
#' @order 3
#' @export
write_firefox <- function(x, path, ...) {
  call <- call_without_dots()
  check_path(path, call, writing = TRUE)
  text <- as_profile(x, call)[[".source_text"]] %||% no_text
  options <- list(files = as.character(text$filename), texts = as.character(text$text))
  write_format(x, path, "firefox", options, call)
}
