# Reads the files of viewers: speedscope, Chrome and Node, Firefox.

#' Read profiles of other profilers and viewers
#'
#' @description
#' `read_speedscope()` reads the JSON files of [speedscope](https://www.speedscope.app), which py-spy, rbspy and others
#' write as well: sampled and evented profiles, in any unit.
#'
#' `read_cpuprofile()` reads the CPU profiles of Chrome and Node (`.cpuprofile`, `node --cpu-prof`), and the traces
#' that Chrome's performance panel saves.
#'
#' `read_firefox()` reads processed profiles of the [Firefox Profiler](https://profiler.firefox.com), which its viewer
#' saves and samply and others write.
#'
#' @details
#' [read_profile()] recognises the files of all these functions by their content. Use a function for one format if a
#' file of another format should be an error.
#'
#' Irregularities are reported as by [read_rprof()]. A truncated file is read as far as possible, if its format allows
#' it. Files compressed with gzip are decompressed.
#'
#' ## speedscope
#'
#' Each profile of the file is a source, and its name is in the table `.comments`; for the first profile, the name and
#' the exporter of the file follow. A source has one sample type: `samples` in `count` for profiles without a unit,
#' `time` in its unit, or `memory` in `bytes`.
#'
#' An evented profile records when functions were called and returned. The time between two of these events becomes
#' a sample with the functions that were running, so the values are exact, and the number of samples has no meaning.
#' Periods in which nothing was running have no sample. A function that does not return is running until the end of its
#' profile (`endValue`).
#'
#' ## CPU profiles of Chrome and Node
#'
#' The samples have a count of 1 and a `time` in `microseconds`: a sample lasts until the next one. Samples that are not
#' in the order of time are sorted. A last sample of `(root)` without a duration only marks the end, and is not a row.
#' `(idle)`, `(program)` and `(garbage collector)` are functions, and functions without a name are `(anonymous)`. Times
#' of samples are kept if they are relative to 1970. Node and Chrome write times relative to the start of the computer,
#' which are not kept.
#'
#' `filename` is the URL of the script, and `start_line` is the line where the function starts. A file contains how
#' often each line of a function was running, but not which line was running in each sample: lines are assigned to
#' its samples in the order of the file, so that their sums are right. The lines of callers are not known. Old files
#' only count samples, or contain nested nodes; both are read. The columns where functions start, optimisation states
#' and the memory of heap profiles are not read.
#'
#' The last sample ends at the end of the profile, if the file contains that time. A node that other nodes refer to but
#' that is missing from the file, for example because a chunk of a trace was lost, becomes an unknown function, which
#' the warning reports.
#'
#' In a trace, each profiled thread is a source with its name as comment. Traces contain profiles only if they were
#' recorded with JavaScript samples, and all other events are skipped. A trace that is an array of events need not end
#' with a bracket.
#'
#' ## Firefox
#'
#' Each thread with samples or allocations is a source, with its name, process and program as comments, and the sampling
#' interval as period. The weight of its samples is `samples` in `count`, `time` in `milliseconds`, or `memory` in
#' `bytes`. Further types are `cpu`, the CPU time since the previous sample in the unit of the file; and `alloc_space`
#' and `dealloc_space` in `bytes`, which have separate samples. Times of samples are kept.
#'
#' Tested with versions 40 to 66 of the format; older ones from 7 on, and newer ones up to 70, differ little. Frames of
#' libraries refer to `.mappings`. Frames without symbols are rows without a function, with their address. Markers,
#' counters, categories, pages, the text of sources, and positions in original sources are not kept. A file in the
#' format in which Firefox itself records must be converted: open it in the viewer and save it.
#'
#' @inheritParams read_rprof
#'
#' @return An object of class `profile_data`, see [profile_data]. It is valid by the rules of
#'   [validate_profile()].
#'
#' @section Errors:
#' The errors of [read_rprof()]. Indices of rows that do not exist are an error as well.
#'
#' @seealso [write_speedscope()], [read_profile()] for files of unknown format
#' @order 1
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#' path <- tempfile(fileext = ".json")
#' write_speedscope(x, path)
#' read_speedscope(path)
read_speedscope <- function(path, ..., version = "2.0", source_uri = path) {
  call <- call_without_dots()
  read_format(path, "speedscope", version, source_uri, call)
}

#' @rdname read_speedscope
#' @order 2
#' @export
read_cpuprofile <- function(path, ..., version = "2.0", source_uri = path) {
  call <- call_without_dots()
  read_format(path, "cpuprofile", version, source_uri, call)
}

#' @rdname read_speedscope
#' @order 3
#' @export
read_firefox <- function(path, ..., version = "2.0", source_uri = path) {
  call <- call_without_dots()
  read_format(path, "firefox", version, source_uri, call)
}
