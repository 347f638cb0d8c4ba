# Reads text formats of other profilers: collapsed stacks, and the output of `perf script`.

#' @description
#' `read_collapsed()` reads collapsed (folded) stacks, the text format of
#' [FlameGraph](https://github.com/brendangregg/FlameGraph) that py-spy, async-profiler, Go's and many other tools
#' write: one line for each stack, with a count.
#'
#' `read_perf_script()` reads the output of `perf script`: samples of all kinds of programs on Linux, including R
#' itself with its native code.
#'
#' @details
#' ## Collapsed stacks
#'
#' Each line is a sample with the sample type `samples` in `count`, even if the count is a decimal number or counts
#' something else, since the format does not specify it. The count follows the last blank of a line. If all lines end
#' in two counts, as in a difference that `difffolded.pl` wrote, the first is the type `samples_before` and the second
#' is `samples`; a problem is reported, since the first count might also belong to a name.
#'
#' The suffix `_[k]` of a name becomes `.frame_type` `kernel`, `_[j]` becomes `jit`, `_[w]` becomes `waker`, and `_[i]`
#' becomes `.inlined`. For async-profiler, `_[0]` becomes `interpreted` and `_[1]` becomes `c1`. Anything else
#' that profilers put into names, such as files and lines, stays in the name.
#'
#' Lines that start with `#` or `//` are comments, as Austin writes them: with a blank behind these characters, or
#' without a count. Their text is kept in `.comments`.
#'
#' [read_profile()] recognises a file as collapsed stacks if at least half of the lines at its start, apart from
#' comments, end in a blank and a number, and some stack has more than one frame. Other lines are skipped and reported.
#' If all stacks have one frame, the file is recognised only if all lines are stacks, with different names of functions.
#'
#' ## perf script
#'
#' To record R code with its native stacks, and to print it:
#'
#' ```sh
#' perf record -F 99 -g -- Rscript script.R
#' perf script --header > perf.txt
#' ```
#'
#' If native stacks end after a few frames, because R was compiled without frame pointers, use `--call-graph dwarf`
#' instead of `-g`.
#'
#' | perf | in a profile |
#' |---|---|
#' | events such as `cycles` | sample types, with the period of the sample as value: nanoseconds for `cpu-clock`, `task-clock`, `offcpu-time` and the trace points `sched:sched_stat_*`, else counts. A sample without a period counts as 1. If there is one event, `samples` in `count` counts samples |
#' | the period, if all samples have the same and it is no duration, as for `offcpu-time` | `.period` in `sources` |
#' | command, process, thread, processor | labels `comm`, `pid`, `tid` and `cpu` |
#' | time | label `time` in nanoseconds. It usually begins when the computer starts, so it is not a time of day. `.duration_nanos` in `sources` is the difference of the last time and the first |
#' | address, symbol, source line | `.address`, `name`, `filename` and `line`. The offset in the function is not kept |
#' | `A->B` in code that was compiled at run time | two functions: B is inlined into A. perf-map-agent writes such names with its option `unfoldall` |
#' | module, such as `(/usr/lib/R/lib/libR.so)` | `.mappings`. Addresses are as printed, for most modules relative to their file |
#' | `(inlined)` | `.inlined` |
#' | kernel | `.frame_type` `kernel`; `native` for other modules |
#' | `--header`, and other lines that start with `#` | `.comments`; a header contains the command line of perf, and of the program that it has started |
#'
#' [summary()][summary.profile_data()] and other views add up the periods of the first event, as `perf report` does; use
#' `type = "samples"` to count samples.
#'
#' Most selections of fields (`perf script -F`) are supported, including output without command, process or time, and
#' samples without a call graph. The output of simpleperf's `report_sample.py`, which has tabs between fields, is
#' supported as well. Addresses and sources of data (`perf mem`), weights, branches, registers, instructions, the fields
#' of trace points, and events such as mappings and new processes are not kept. A sample of a branch, `A => B`, has the
#' frame `A`. Call chains apart from their samples (`--no-merge-callchains`) are not supported. Errors in traces of
#' instructions and lost records are reported as irregularities.
#' @rdname read_speedscope
#' @order 4
#' @export
#' @examples
#'
#' path <- tempfile()
#' writeLines(c("main;read_data;scan 12", "main;fit_model 30"), path)
#' read_collapsed(path)
read_collapsed <- function(path, ..., version = "2.0", source_uri = path) {
  call <- call_without_dots()
  read_format(path, "collapsed", version, source_uri, call)
}

#' @rdname read_speedscope
#' @order 5
#' @export
read_perf_script <- function(path, ..., version = "2.0", source_uri = path) {
  call <- call_without_dots()
  read_format(path, "perf", version, source_uri, call)
}
