# Reads files of `Rprofmem()`.

#' Read allocations recorded by Rprofmem()
#'
#' `read_rprofmem()` reads the files of [utils::Rprofmem()]: each allocation of a vector above a size threshold, with
#' the functions that were running. Unlike the memory figures of [Rprof()], which are taken at each sample, allocations
#' are exact: the same code allocates the same amount in each run. See [benchmark_profile()] for recording runs to
#' compare.
#'
#' @details
#' Each line of the file is a sample.
#'
#' | line | sample types |
#' |---|---|
#' | `8048 :"double" "f"` | `alloc_space` in `bytes` is 8048, including the header of the vector, and `alloc_objects` in `count` is 1 |
#' | `new page:"f"` | `new_pages` in `count` is 1. R allocated a page for small objects. Its size is not recorded, so `alloc_space` and `alloc_objects` are `NA` |
#'
#' The type `new_pages` is missing if the file has no such lines. [pprof](https://github.com/google/pprof) knows the
#' names `alloc_space` and `alloc_objects` from Go.
#'
#' `Rprofmem()` records the symbol by which a function was called; without one, as in `pkg::f()`, `x$f()` and
#' `x[["f"]]()`, the name is `<Anonymous>`, where [Rprof()] records these texts. So in a profile with both sources, by
#' [record_profile()] with `memory = "exact"`, the same call can have two names. They are not translated: a function can
#' call several others in this way, and samples contain only some of these calls, so a sample with a fitting stack does
#' not prove which of them has allocated memory.
#'
#' `Rprofmem()` records neither times nor lines of code, and does not mark where a file was continued with
#' `append = TRUE`. Names are not escaped, so a name that contains a quote, a blank and another quote is read as two
#' names. Lines that R before 3.5.0 joined are separated. Irregularities are reported as by [read_rprof()].
#'
#' An empty file is a profile without samples: R writes an empty file if no allocation is above the threshold.
#'
#' @inheritParams read_rprof
#'
#' @return An object of class `profile_data`, see [profile_data].
#'
#' @section Errors:
#' The errors of [read_rprof()].
#'
#' @seealso [read_rprof()], [write_pprof()], [profile_page()]
#' @export
#' @examples
#' path <- tempfile()
#' if (capabilities("profmem")) {
#'   Rprofmem(path, threshold = 1000)
#'   x <- lapply(1:10, function(i) cumsum(runif(1000 * i)))
#'   Rprofmem(NULL)
#'   allocations <- read_rprofmem(path)
#'   summary(allocations, type = "alloc_space")
#' }
read_rprofmem <- function(path, ..., version = "2.0", source_uri = path) {
  call <- call_without_dots()
  read_format(path, "rprofmem", version, source_uri, call)
}
