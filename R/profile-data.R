# The class of profiles: constructor, summary() and as_tibble(). See print.R for printing.

new_profile_data <- function(tables, version) {
  class <- if (version == "2.0") c("profile_v2", "profile_data") else "profile_data"
  structure(tables, class = class)
}

# The version in `meta`, NA if there is none.
profile_version <- function(x) {
  meta <- x[["meta"]]
  if (!is.data.frame(meta)) {
    return(NA_character_)
  }
  meta <- unclass(meta)
  value <- meta[["value"]][match("version", meta[["key"]])]
  if (is.null(value)) NA_character_ else as.character(value)
}

#' Summarise a profile by function and line
#'
#' @description `summary()` computes self and total of every function and every line. *Self* counts the samples in which
#' the function was innermost, that is, running; *total* counts the samples in which it was on the stack, including the
#' time of the functions it called. A function that occurs several times on a stack is counted once.
#'
#' The figures agree with [summaryRprof()], apart from three errors of that function: it splits names with blanks, uses
#' one interval for all runs, and counts the header of a second run as a sample.
#'
#' @section What is counted:
#' Samples are counted if they have a stack of at least one frame and a value of the summed type. Samples without a
#' stack occur in memory profiles, while no function runs, and after filtering. Samples without a value of the type
#' occur in combined profiles. [print()][print.profile_data()] shows the same figures and how many samples are left out.
#'
#' The memory in use at each sample (`vsize_small`, `vsize_large` and `nodes` of [Rprof()]) cannot be
#' summed, since the sum would count the same memory several times. `alloc_size` is the memory that was
#' allocated, at least: memory that was freed before the next sample is missing. For exact figures, see
#' `record_profile(memory = "exact")` and [read_rprofmem()]. Exact allocations are rows without a count of samples, see
#' *Memory profiles* in [profile_data]: they are not left-out samples. If all sources have exact bytes, `self_alloc` and
#' `total_alloc` contain these.
#'
#' A garbage collection, `<GC>`, takes time but allocates nothing. The memory that its samples report was allocated by
#' its caller, to which it is added. With native frames, see `record_profile(native = TRUE)`, the memory that [Rprof()] reports
#' is added to the innermost function of R: the native function that runs when the sample is taken need not have allocated.
#'
#' `alloc_size`, `dealloc_size` and `duplications` are measured since the previous sample. Part of them belongs to other
#' functions and lines, which ran before. The sum is not affected by this.
#'
#' @section Words for `by`:
#' `by` says what the rows of a table, or the nodes of a tree, are. The words mean the same in
#' all functions; the help of each says which of them it takes.
#'
#' Parts of stacks:
#' - `"function"`: the frames with the same name;
#' - `"file"`: the frames of functions in the same source file, or, for code without symbols, in the same program or
#'   library;
#' - `"line"`: the frames in the same line of a file;
#' - `"package"`: the frames of the same package, see [add_packages()]. Code without an R package has the package in the
#'   name of a Go function, otherwise the program or library that contains it.
#'
#' - `"loaded"`: the packages that were loaded or attached, see *Start-up* below.
#'
#' What whole samples belong to:
#' - the key of a label, such as `"route"`, see [with_labels()];
#' - `"process"`, such as `worker 1 of 2, pid 1234`;
#' - `"source"`: the file or the process from which the samples come;
#' - `"run"`: the number of the row in the table `sources`, such as `run-1`, as in pprof files;
#' - `"trace_id"` and `"span_id"` of OpenTelemetry.
#'
#' `summary()` and [call_tree()] know all words, but only `summary()` knows `"loaded"`; [callers()], [callees()] and
#' [compare_profiles()] know the first four, and [holders()] the words for whole samples. If a label has the key `"file"` or another one of these words, `summary()`, `call_tree()`
#' and `holders()` use the label.
#'
#' @section Start-up:
#' Why does `library(dplyr)` take so long? `summary(x, by = "loaded")` has a row for each package that was loaded or attached,
#' in `record_profile(library(dplyr))` or in any other recording. Each sample belongs to the package that was being loaded or
#' attached innermost: all of `self` add up to the time of loading. The columns are
#'
#' - `package`; `self` and `total`, with and without the packages that it loads; `self_time` and `total_time` in seconds, if
#'   the sampling period is known;
#' - the parts of `self`: `on_load` (`.onLoad()`), `s3_methods` (registering them), `imports` (copying them), `native` (its shared
#'   library), `code` (reading code and descriptions), `s4` (classes, generics and methods), `attach` (attaching it,
#'   `.onAttach()`, and the rest of `library()`; loading is not part of it), and `other`;
#' - `first`: who asked for the package first: the package that was being loaded, or your call. A package that others need is
#'   loaded once, and this one pays for it;
#' - `only`: the only package of the table that needs it, `"shared"` if several do, `NA` if only you do. What a package needs is
#'   what it was seen to load, and what the fields Depends and Imports in its description say. So `only` is also `NA` if a
#'   package of the table is not installed here, unless several were seen.
#'
#' R reads the code of functions, and updates the caches of S4, when they are needed. If that happens while a package is loaded,
#' it is the time of that package.
#'
#' The names of packages are in the names of frames, such as `loadNamespace(dplyr)`, so any file format keeps them. R's own
#' profiler does not record them. They are recorded by [record_profile()], [start_profiler()], [profile_process()], and
#' [benchmark_profile()] with `fresh = TRUE`; by `profile record` with `--native`. This requires `r live_platforms()`, and
#' R 4.2 to 4.6. Otherwise there is a single row, with `NA` for the package, and a message of class
#' `profile_message_loaded` says what to do.
#'
#' @section Differences:
#' A difference of two profiles, such as `go tool pprof -proto -diff_base=base.pb.gz new.pb.gz` writes, contains
#' negative values, and their sum may be 0 although functions have changed. Shares are therefore relative to the
#' sum of absolute values, as in pprof, and negative for functions that take less. If samples have the label
#' `pprof::base`, which `-diff_base` adds to the samples of the base, shares are relative to these samples only. To
#' compare profiles in R, see [compare_profiles()].
#'
#' @param object A profile, see [profile_data].
#' @param ... Must be empty.
#' @param type The sample type to sum, such as `"samples"` or `"alloc_space"`. The default for pprof files and the output
#'   of `perf script` is the type that their own tools show: the default type of the file, such as the periods of the
#'   event that `perf` recorded, or else its last type. For other sources, and if the defaults differ, it is the type
#'   that counts samples; if there is none, the default type that a source specifies; otherwise the last type that can
#'   be summed.
#' @param by What the rows of the result are: `"file"`, `"package"`, `"process"`, the key of a label, or one of the
#'   other *Words for `by`* below. `NULL` for the tables of functions and of lines.
#'
#' @return Without `by`, a list of class `profile_summary` with two tibbles, sorted by decreasing self, regardless of
#'   its sign:
#'   \describe{
#'   \item{by_function}{`name` and the figures below. Functions of the same name in several files are one row. Code
#'     without symbols, whose functions are unknown, has a row for each program or library that contains it, such as
#'     `[libfoo.so.1]`; if the library is unknown as well, a row for each address, or `<unknown>`.}
#'   \item{by_line}{`filename`, `line` and the figures below, for frames that have a line. Self counts the
#'     innermost frame with a line.}
#'   }
#'   The figures are double: `self` and `total` in the unit of the type; `self_share` and
#'   `total_share`, relative to `whole` (see below); `self_time` and `total_time` in
#'   seconds, if the sampling period is known; and `self_alloc` and `total_alloc` in bytes, if allocated memory was
#'   recorded with counts of samples, see *Sample types* in [profile_data]. If calls were counted, see `count` in
#'   [record_profile()], `by_function` also has `calls`, their number, and `time_per_call`, the total time of a call in
#'   seconds; `NA` for functions that were not counted.
#'
#'   With `by = "function"` or `by = "line"`, one of these tibbles. With `by = "file"` or `by = "package"`, a tibble
#'   with the same figures, whose first column is `file` or `package`: self counts the innermost frame, so that each
#'   sample counts for one row, and total counts a sample once for each file or package on its stack. `NA` stands for
#'   frames whose file or package is unknown.
#'
#'   With `by = "loaded"`, a tibble, sorted by decreasing self, see *Start-up*. Without such calls it has no rows.
#'
#'   With a label, or another word for whole samples, a tibble, sorted by decreasing total: a column with the name of
#'   the label, which contains its values as text, and `NA` for samples without the label; `samples`, the number of
#'   samples; `total`, `total_share`, and, if known, `total_time` and `total_alloc`, as above; and for `"process"`, if known,
#'   `peak_memory`, the highest memory of the process during the recording (*resident set size*), in bytes; and, if
#'   processes worked for another one, a column for each class of *Parallel work* in [describe_profile()], in seconds. A
#'   sample that has several values of the label counts for each.
#'
#'   The attributes `type`, `unit` and `sum` of the list contain what was summed, `whole` is the sum of absolute values,
#'   `at_least` is whether allocated memory is a lower bound, `sum_at_least` whether `sum` is one, `since_previous` whether
#'   values were measured since the previous sample, see *Memory profiles* in [profile_data], `time` is the sampled time in
#'   seconds (`NULL` if unknown), `alloc_type` is the sample type of allocated memory, `exact_memory` whether each vector
#'   was recorded in all sources, `used` the CPU time of R's thread (`NULL`, except if it differs from `time`, see *CPU
#'   time* in [record_profile()]), `threads` and `processors` are described in *Other threads* there, and `counted` is a list: `samples` is the number of samples counted, `sum` their sum,
#'   `without_stack` and `sum_without_stack` are the same for samples with a value but without a stack, and `without_value`
#'   is the number of samples without a value of the type.
#'
#' @section Errors:
#' - `profile_error_unsupported` if the profile has no values of `type`, or they cannot be summed;
#' - `profile_error_invalid` if `object` is not valid;
#' - `profile_error_argument` if `type` is not a string, or if `by` is neither one of the words nor the key of a label.
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#' summary(x)
#' summary(x)$by_line
#' summary(x, by = "package")
#' summary(x, by = "file")
#'
#' # Which step takes the most time?
#' x <- record_profile({
#'   with_labels(c(step = "sort"), for (i in 1:20) sort(runif(1e5)))
#'   with_labels(c(step = "fit"), for (i in 1:50) lm(dist ~ speed, data = cars))
#' })
#' try(summary(x, by = "step"))
summary.profile_data <- function(object, ..., type = NULL, by = NULL) {
  call <- call_without_dots()
  check_type(type, call)
  if (is.null(by)) {
    return(summary_of(as_profile(object, call), type, call))
  }
  x <- as_unchecked_v2(object, call)
  by <- check_by(by, "summary", call, x)
  if (by$is_label) {
    return(label_figures(x, summary_of(x, type, call), by$word, call))
  }
  x <- with_packages_for(x, by$word, call)
  switch(by$word,
    "function" = summary_of(x, type, call)$by_function,
    line = summary_of(x, type, call)$by_line,
    loaded = loading_figures(x, type, call),
    rlang::set_names(summary_of(x, type, call, by$word)$by_function, function(names) c(by$word, names[-1]))
  )
}

# `by`: "function", "file" or "package".
summary_of <- function(x, type, call, by = "function") {
  summary <- new_summary(rust(rust_summarise(x, type, by), call))
  if (by == "function" && !identical(attr(summary, "type"), "calls")) {
    summary$by_function <- with_calls_by_name(summary$by_function, attr(summary, "types"), x, call)
  }
  summary
}

# `summary`: of the core.
new_summary <- function(summary) {
  tables <- c("by_function", "by_line")
  attributes <- c(summary[setdiff(names(summary), tables)], sum = summary$counted$sum)
  rlang::inject(structure(summary[tables], class = "profile_summary", !!!attributes))
}

#' Convert a profile to one flat table
#'
#' `as_tibble()` returns one row for each frame of each sample, with names instead of ids, to inspect, join or plot. The
#' tables of the profile itself are smaller and contain more information.
#'
#' @param x A profile, see [profile_data].
#' @param ... Must be empty.
#'
#' @return A tibble with the columns `sample_id`, `source_id` and `depth` (integer), `name` and
#'   `filename` (character), and `line` (integer), sorted by sample and depth. Samples and sources are
#'   numbered from 1 in their order. Samples without frames have no rows.
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#' as_tibble(x)
as_tibble.profile_data <- function(x, ...) {
  call <- call_without_dots()
  rust(rust_frames(as_profile(x, call), lazy_columns(call)), call)
}

#' @importFrom tibble as_tibble
#' @export
tibble::as_tibble
