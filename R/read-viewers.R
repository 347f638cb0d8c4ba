# Reads the files of viewers: speedscope.

#' Read profiles of other profilers and viewers
#'
#' @description
#' `read_speedscope()` reads the JSON files of [speedscope](https://www.speedscope.app), which py-spy, rbspy and others
#' write as well: sampled and evented profiles, in any unit.
#'
#' @details
#' Irregularities are reported as by [read_rprof()]. A file that was truncated is read as far as it goes, where its
#' format allows it. Files compressed with gzip are decompressed.
#'
#' ## speedscope
#'
#' Each profile of the file is a source, and its name is in the table `.comments`, for the first one followed by
#' the name and the exporter of the file. It has one sample type: `samples` in `count` for profiles without a unit,
#' `time` in its unit, or `memory` in `bytes`.
#'
#' An evented profile records when functions were called and returned. The time between two of these events becomes
#' a sample with the functions that were running, so the values are exact, and the number of samples has no meaning.
#' Times in which nothing was running have no sample.
#'
#' @inheritParams read_rprof
#'
#' @return An object of class `profile_data`, see [profile_data]. It is valid by the rules of
#'   [validate_profile()].
#'
#' @section Errors:
#' Those of [read_rprof()]. Indices of rows that do not exist are an error, too.
#'
#' @seealso [write_speedscope()], [read_profile()] for files of unknown format
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#' path <- tempfile(fileext = ".json")
#' write_speedscope(x, path)
#' read_speedscope(path)
read_speedscope <- function(path, ..., version = "2.0", source_uri = path) {
  call <- rlang::current_env()
  rlang::check_dots_empty()
  read_format(path, "speedscope", version, source_uri, call)
}
