# Writes text formats of other tools: collapsed stacks, and callgrind's format.

#' @description
#' `write_collapsed()` writes collapsed (folded) stacks, which all tools for flame graphs read:
#' [FlameGraph](https://github.com/brendangregg/FlameGraph) (`flamegraph.pl path > graph.svg`), inferno, speedscope,
#' and [Firefox Profiler](https://profiler.firefox.com).
#'
#' `write_callgrind()` writes a file for [KCachegrind](https://kcachegrind.github.io) (`kcachegrind path`),
#' QCachegrind, `callgrind_annotate` and gprof2dot.
#'
#' @details
#' ## Collapsed stacks
#'
#' The file has one line for each distinct stack of names, in the order of their first samples. A line contains the
#' names of functions, outermost first and separated by `;`, a blank, and the sum of the values of `type`. By default,
#' `type` is the type that `summary()` shows. Firefox needs counts, `type = "samples"`, since it creates one sample for
#' each. Files, lines, sources and labels are not written. Stacks whose sum is 0 are left out.
#'
#' With `frame_types = TRUE`, names get the suffixes by which `flamegraph.pl --color=java` colours frames: `_[k]` for
#' the `.frame_type` `kernel`, `_[j]` for `jit`, `_[w]` for `waker`, `_[0]` for `interpreted`, `_[1]` for `c1`, and
#' `_[i]` for inlined frames. Other tools show the suffix.
#'
#' The format has no escapes: `;` in names becomes `:`, and line feeds become blanks. The warning counts such
#' names, samples without frames, and stacks with negative sums, which are left out.
#'
#' ## callgrind
#'
#' The events are the sample types, such as `samples`, `cpu_nanoseconds` and `alloc_space_bytes`, with self values of
#' lines of functions, and inclusive values of calls. The number of calls is the number of samples that contain the
#' call, since a sampling profiler does not count calls. Times with fractions become whole nanoseconds.
#'
#' The format stores calls, not stacks. If a function occurs several times in a stack, only its innermost call is used,
#' so that all readers show the same inclusive values as [summary()][summary.profile_data]; outer calls of recursive
#' functions are not shown. As in `summary()`, functions of the same name are merged. In this format a function has one
#' file: the file with most of its values is written. Its lines in other files are written as line 0, and the warning
#' counts such functions. It also counts names with control characters, which become blanks, and samples without frames.
#' @param type The name of the sample type to write, such as `"cpu"` or `"alloc_space"`. `NULL`, the default, for the
#'   type that [summary()][summary.profile_data()] shows, which counts samples for most profiles.
#' @param frame_types Whether names get suffixes for types of frames, such as `_[k]` for the kernel.
#' @rdname write_speedscope
#' @order 4
#' @export
#' @examples
#'
#' path <- tempfile()
#' write_collapsed(x, path)
#' head(readLines(path), 3)
#'
#' write_callgrind(x, tempfile("callgrind.out."))
write_collapsed <- function(x, path, ..., type = NULL, frame_types = FALSE) {
  call <- call_without_dots()
  check_type(type, call)
  check_flag(frame_types, "frame_types", call)
  write_format(x, path, "collapsed", list(type = type, frame_types = frame_types), call)
}

#' @rdname write_speedscope
#' @order 5
#' @export
write_callgrind <- function(x, path, ...) {
  call <- call_without_dots()
  write_format(x, path, "callgrind", list(), call)
}
