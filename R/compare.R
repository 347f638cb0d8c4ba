# Compares two versions of a program by their recorded runs.

#' Compare profiles of two versions
#'
#' @description
#' `compare_profiles()` compares recorded runs of two versions of a program, and reports which
#' functions, files, lines or packages take more or less than before, by how much, and how certain that is.
#'
#' The unit is the run: a row of `sources`. Record several runs of each version, at least three, for example
#' with [benchmark_profile()]. Two runs of the same program never take the same time, and only several runs
#' show how much they differ.
#'
#' @details
#' # Amounts
#'
#' By default, the sampled time of each run is compared: the number of samples times the sampling period, or else the
#' type of the run that is a time, whatever its name and unit. So runs with different periods can be compared, and files
#' of different formats. With `type`, or if the time of a run is not known, the sum of a sample type, such as
#' `alloc_space`, is compared. Values in several units of time or memory are converted.
#'
#' With `scale = "share"`, shares of the run are compared. Shares do not depend on the speed of the machine and vary
#' less from run to run. But if one function takes more, the shares of all others decrease.
#'
#' # Statistics
#'
#' `ratio` is the ratio of the geometric means of both versions, with a 95% interval by Welch's test of the logarithms.
#' If amounts are sampled, half a sample is added to each, so that runs without samples have a logarithm: a version that
#' is too fast to be sampled takes less. With few samples, `ratio` is therefore closer to 1 than `new / base`. `p_value`
#' is the p value of this test for a single row: if nothing changed, one of twenty rows has a p value below 0.05.
#' `p_adjusted` is adjusted for all rows together by Holm's method, with the share of a row as its weight. The `verdict`
#' is `"more"` or `"less"` if `p_adjusted` is below 0.05, otherwise `"none found"`. This does not mean that there is no
#' difference: `detectable` is the ratio that a comparison of this kind would find in 80% of cases. Functions with equal
#' amounts in all runs, such as a function and its only caller, count as one row.
#'
#' Memory that R's profiler has measured at samples is a lower bound. It cannot be compared with exact memory of
#' `record_profile(memory = "exact")`.
#'
#' To find smaller differences, record more runs, or name the functions or packages of interest in `only`: the
#' fewer rows, the smaller the adjustment.
#'
#' If the outermost function differs, such as `f_old` and `f_new` in `benchmark_profile(base = f_old(x), new =
#' f_new(x))`, they are one row, `f_old -> f_new`, unless `only` is given.
#'
#' If the runs of each version do not vary at all, as with exact amounts, each difference is certain: `print()` shows
#' `exact` instead of an interval, and `detectable` is 1.
#'
#' With fewer than three runs on a side there is no verdict. Shares of single runs have an interval, which
#' assumes independent samples.
#'
#' The whole run is compared in a separate test; the result is in the attribute `whole`.
#'
#' # Memory in use
#'
#' Snapshots of the heap are not sampled, so their differences are exact: two of them are enough, and there are no
#' statistics. If `base` and `new` are snapshots, `by` is `"path"` by default, which compares the memory below each path
#' of [holders()]. A step of a path is compared only with a step of the same name below the same path. A row follows a
#' path as long as one step has 80% of the growth of its start; where the growth is divided, further rows begin.
#'
#' `by = "path"` also compares other profiles of memory in use, such as heap profiles of Go, or snapshots that were read
#' from a format that does not say what they are, such as pprof. Each side must have one source, or several processes,
#' see below. `scale`, `what`, `type` and `only` have no meaning here; `min_share` is a share of the sum of all changes,
#' growth and decrease alike.
#'
#' Snapshots of several processes, by `snapshot_memory(children = TRUE)`, are compared process by process, whose role or
#' name is the first step of each path. A process of `new` is compared with the same one in `base`. The others are
#' compared by their roles, in order: worker 1 with worker 1, the first fork with the first fork. The whole memory of a
#' process that is in one of both only is one row, whose name says so. Printing shows the growth of each process first.
#'
#' @param base,new Profiles of the old and the new version, see [profile_data]; lists of profiles; or paths of
#'   files, for [read_profile()]. Each source is a run. `base` may also be the result of [benchmark_profile()] for two
#'   expressions, without `new`: the expressions named `base` and `new` are compared, or the first one with the second
#'   one.
#' @param ... Must be empty.
#' @param by What is compared: `"function"`, `"file"`, `"line"` or `"package"`, see *Words for `by`* in the help of
#'   [summary()][summary.profile_data()]; or `"path"` for memory in use, which is the default for snapshots of the heap.
#' @param scale `"amount"`, or `"share"` for shares of the run.
#' @param what `"total"` for the amount of a function and everything that it called, or `"self"` for the amount of the
#'   function alone.
#' @param type The sample type, as in [summary()][summary.profile_data()]. `NULL` for the sampled time, or if it is not
#'   known for the default type.
#' @param only Names of functions, files or packages to compare. `NULL` for all rows that `min_share` selects.
#' @param min_share The smallest share of the runs, averaged over both versions, of rows to compare; by path, the
#'   smallest share of all changes.
#' @param x A comparison.
#' @param n The number of rows to print, by default 20; `Inf` for all.
#' @param width The width of the lines, by default the width of the console.
#'
#' @return A tibble of class `profile_comparison`. Rows with a verdict of more or less come first, then the
#'   others, both in descending order of the change of amounts.
#'   \describe{
#'   \item{name, filename, line, package}{as in [call_tree()]}
#'   \item{base, new}{double: the geometric mean of the runs, in the unit of the type (seconds for time), or
#'     as a share}
#'   \item{ratio}{double: the estimated ratio of `new` and `base`, `Inf` if the row is not in any run of `base`}
#'   \item{lower, upper}{double: the 95% interval of the ratio, up to `Inf` if the row is not in any run of
#'     `base`}
#'   \item{p_value, p_adjusted}{double: the p values of Welch's test, before and after Holm's adjustment}
#'   \item{detectable}{double: the smallest ratio greater than 1 that such a comparison would find in 80% of cases; its
#'     inverse is the largest ratio below 1. 1 if all runs of each version are equal}
#'   \item{verdict}{character: `"more"`, `"less"`, or `"none found"`; `NA` with fewer than three runs}
#'   }
#'   Attributes: `whole`, a tibble with one row and these columns from `base` on, for the whole run; `runs`,
#'   the number of runs of each version; `type` and `unit`; `by`, `scale` and `what`.
#'
#'   With `by = "path"`, a tibble of class `profile_growth`, the largest changes in either direction first:
#'   \describe{
#'   \item{base, new}{double: the bytes below this path, 0 if it does not exist}
#'   \item{growth}{double: `new - base`, in bytes; negative for a decrease}
#'   \item{objects}{double: the growth of the number of objects below this path, `NA` if they were not counted}
#'   \item{held_by}{character: the path, as in [holders()]. Entries of a cache that are all new are one row, such as
#'     `globalenv > $cache > $key* (20 new)`}
#'   }
#'   Rows may be part of other rows. Attributes: `whole`, a tibble with one row and the columns `base`, `new`, `growth`
#'   and `objects` of all memory; `objects`, the number of objects of `base` and `new`; `type` and `unit`; if there are
#'   several processes, `processes`, a tibble with the columns `process`, `base`, `new` and `growth`.
#'
#' @section Errors:
#' - `profile_error_unsupported` if the runs cannot be compared: a run has no values of the type, some have CPU time and
#'   others elapsed time, some have memory that was measured at samples and others exact memory, amounts are below
#'   1e-150 or above 1e150, or counts of samples have different or partly unknown periods;
#' - `profile_error_invalid` if a profile is not valid;
#' - `profile_error_argument` for other invalid arguments, such as `by = "path"` for profiles without memory in use or
#'   with several sources that are not different processes.
#' @seealso [expect_no_regression()], [benchmark_profile()]; `profile_page(new, base = base)` for a picture
#' @export
#' @examples
#' work <- function(n) for (i in seq_len(n)) sort(paste("key", 1:5000), method = "radix")
#' runs <- benchmark_profile(base = work(200), new = work(300), runs = 3, warmup = 0, measure = "time")
#' compare_profiles(runs)
compare_profiles <- function(
    base, new = NULL, ..., by = c("function", "file", "line", "package", "path"), scale = c("amount", "share"),
    what = c("total", "self"), type = NULL, only = NULL, min_share = 0.01) {
  call <- call_without_dots()
  by_default <- missing(by)
  given <- c(scale = !missing(scale), what = !missing(what), type = !is.null(type), only = !is.null(only))
  by <- check_by(by, "compare_profiles", call)$word
  scale <- check_choice(scale, c("amount", "share"), "scale", call)
  what <- check_choice(what, c("total", "self"), "what", call)
  check_type(type, call)
  if (!is.null(only) && !(is.character(only) && all(is_valid_text(only)))) {
    abort_argument("`only` must be a character vector of names, or `NULL`.", call)
  }
  check_share(min_share, "min_share", call)
  versions <- two_versions(base, new, call)
  if (by == "path" || by_default && all(vapply(unlist(versions, recursive = FALSE), is_snapshot, NA))) {
    return(growth_by_path(versions, given, min_share, call))
  }
  data <- figures_of_runs(versions, type, by, call, only)
  comparison_of(data, call, by = by, scale = scale, what = what, only = only, min_share = min_share)
}

# `data`: figures of runs. `detectable`: whether to compute this column, which takes most of the time.
comparison_of <- function(
    data, call, by = "function", scale = "amount", what = "total", only = NULL, min_share = 0.01, detectable = TRUE) {
  check_comparable(data, scale, call)
  rows <- rows_to_compare(data, what, only, min_share, call)
  amounts <- matrix(0, length(rows), length(data$sums))
  figures <- data$figures[data$figures$group %in% rows, ]
  amounts[cbind(match(figures$group, rows), figures$run)] <- figures[[what]]
  compared <- compared_rows(amounts, data, scale, detectable)
  whole <- compared_rows(matrix(data$sums, 1), data, "amount")
  found <- compared$verdict %in% c("more", "less")
  # Names of a million characters would take seconds, also if they differ in the first one.
  name <- substr(data$groups$name[rows], 1, most_characters)
  order <- order(!found, -abs(compared$new - compared$base), name, method = "radix")
  tibble::new_tibble(
    vctrs::vec_cbind(data$groups[rows, ], compared)[order, ],
    whole = whole,
    runs = c(base = sum(!data$is_new), new = sum(data$is_new)),
    type = data$type, unit = data$unit, by = by, scale = scale, what = what, few_samples = few_samples(data),
    class = "profile_comparison"
  )
}

# ---- Amounts -----------------------------------------------------------------------

# list(base, new), lists of profiles of version 2.0. `base` alone may be what benchmark_profile() returns for two
# expressions: those with the names `base` and `new`, in any order, or the first and the second one.
two_versions <- function(base, new, call) {
  both <- "Two profiles are compared: `base`, of the old version, and `new`."
  if (missing(base)) {
    abort_missing("base", call, i = both)
  }
  versions <- if (is.null(new)) base else list(base = base, new = new)
  if (is.null(new) && !(is_list_of_profiles(base) && rlang::is_named(base))) {
    abort_argument(c(
      "`new` is missing.", i = both, i = "The result of `benchmark_profile(base = , new = )` contains both."
    ), call)
  }
  if (length(versions) != 2) {
    names <- paste0("`", shown_label(names(base)), "`", collapse = ", ")
    abort_argument(c(
      paste0("`base` must contain two versions, not ", length(base), ": ", names, "."),
      i = "Choose two of them, as in `compare_profiles(runs$a, runs$b)`."
    ), call)
  }
  sides <- c("base", "new")
  versions <- if (setequal(names(versions), sides)) versions[sides] else rlang::set_names(versions, sides)
  Map(list_of_profiles, versions, sides, list(call))
}

figures_of_runs <- function(versions, type, by, call, only = NULL) {
  both <- unlist(versions, recursive = FALSE, use.names = FALSE)
  if (by == "package" && !any(vapply(both, has_packages, NA))) {
    both <- all_packages_added(both, call)
  }
  result <- rust(rust_runs(both, type, by), call)
  is_new <- rep(seq_along(both) > length(versions$base), vapply(both, function(x) nrow(x$sources), 0L))
  data <- new_figures(result, is_new, type)
  # Rows that are chosen by name keep theirs.
  if (by == "function" && is.null(only)) with_common_expression(data, both) else data
}

# The self and total of each group in each run: `groups`, `figures` (group, run, self, total), `sums` and
# `quantum` (what a sample counts) of runs, `is_new`, whether runs are of the new version, `type`, `unit`. `result`: of
# the core.
new_figures <- function(result, is_new, type = NULL) {
  is_time <- result$type == "time" && result$unit == "nanoseconds" && is.null(type)
  scale <- if (is_time) 1e9 else 1
  figures <- result$figures
  figures[c("self", "total")] <- lapply(figures[c("self", "total")], `/`, scale)
  is_count <- has_role(result$type, result$unit, "count")
  sums <- result$runs$sum / scale
  # A run can be too short to be sampled.
  sums[result$runs$samples == 0] <- 0
  list(
    groups = result$groups,
    figures = figures,
    sums = sums,
    samples = result$runs$samples,
    periods = result$runs$period,
    # Shares of collections are not sampled, although they are times.
    quantum = if (has_role(result$type, result$unit, "share")) {
      rep(0, nrow(result$runs))
    } else {
      sample_amounts(result$unit, is_count, result$runs$period) / scale
    },
    is_count = is_count,
    is_default = is.null(type),
    is_new = is_new,
    types = result$runs$types,
    names = result$runs$name,
    only_memory = result$runs$memory,
    recorded = result$runs$recorded,
    clocks = result$runs$clock,
    type = result$type,
    unit = if (is_time) "seconds" else result$unit
  )
}

# The amount of one sample in each run: the sampling period, or 1 for counts. It is 0 for other amounts, which are taken
# as exact.
sample_amounts <- function(unit, is_count, periods) {
  nanoseconds <- c(nanoseconds = 1, microseconds = 1e3, milliseconds = 1e6, seconds = 1e9)[unit]
  amounts <- if (is_count) rep(1, length(periods)) else periods / nanoseconds[[1]]
  ifelse(is.na(amounts), 0, amounts)
}

list_of_profiles <- function(x, name, call) {
  if (is_profile(x)) {
    x <- list(x)
  }
  are_paths <- is.character(x) && length(x) > 0 && all(vapply(x, is_path_of_profile, NA))
  if (!are_paths && !is_list_of_profiles(x)) {
    abort_argument(c(
      paste0("`", name, "` must be a profile, or a list of profiles, not ", describe_object(x), "."),
      i = profile_hint(x)
    ), call)
  }
  unname(lapply(x, as_unchecked_v2, call))
}

# The smallest and largest amount with finite ratios and shares.
comparable <- c(1e-150, 1e150)

check_comparable <- function(data, scale, call) {
  refuse <- function(...) abort_unsupported(c(...), call)
  side <- function(run) if (data$is_new[[run]]) "`new`" else "`base`"
  type <- paste0("`", data$type, "`")
  if (!any(data$is_new) || all(data$is_new)) {
    refuse("A profile without sources has no runs to compare.")
  }
  check_exactness(data, call)
  check_common_type(data, call)
  negative <- data$figures$run[data$figures$self < 0 | data$figures$total < 0]
  if (length(negative) > 0) {
    of <- side(negative[[1]])
    refuse(
      paste0(of, " has negative values of ", type, ": it is a difference, whose amounts have no ratio."),
      i = "Compare the two profiles of which it is the difference."
    )
  }
  # A run without samples takes less than a sample represents, and one in which each vector was recorded may have no copies.
  # Such runs have no shares.
  has_none <- data$recorded %in% "exact" & !is.na(data$names)
  is_short <- scale == "amount" & (has_none | data$samples == 0 & any(data$sums > 0, na.rm = TRUE))
  empty <- which(!(data$sums > 0) %in% TRUE & !is_short)
  if (length(empty) > 0) {
    number <- sum(data$is_new[seq_len(empty[[1]])] == data$is_new[[empty[[1]]]])
    refuse(
      paste0("Run ", number, " of ", side(empty[[1]]), " has no samples with a value of ", type, "."),
      i = if (length(empty) > 1) paste0("There are ", length(empty), " such runs.")
    )
  }
  amounts <- abs(c(data$sums, data$figures$self, data$figures$total))
  extreme <- amounts[amounts > comparable[[2]] | amounts < comparable[[1]] & amounts != 0]
  if (length(extreme) > 0) {
    refuse(
      paste0("Amounts of ", type, " are too ", if (any(extreme > 1)) "large" else "small", " to be compared."),
      i = paste0("Their ratios can be computed from ", comparable[[1]], " to ", comparable[[2]], ".")
    )
  }
  if (scale == "amount" && data$is_count && length(unique(data$periods)) > 1) {
    refuse("Counts of samples cannot be compared if sampling periods differ.", i = if (data$is_default) {
      "Use `scale = \"share\"`. The sampled time is unknown, since the sampling period of a run is unknown."
    } else {
      "Use `scale = \"share\"`, or the sampled time (`type = NULL`)."
    })
  }
}

# Amounts that R's profiler has measured at samples are a part of the amounts that are recorded one by one, so that a
# comparison would find more in the exact ones. A side that has exact amounts may have samples beside them.
check_exactness <- function(data, call) {
  is_exact <- data$recorded %in% "exact"
  sides <- c("`base`", "`new`")[data$is_new + 1]
  is_sampled <- data$recorded %in% "sampled" & (!is.na(data$names) | !sides %in% sides[is_exact])
  if (!any(is_exact) || !any(is_sampled)) {
    return()
  }
  sampled <- sides[is_sampled][[1]]
  abort_unsupported(c(
    paste0("Sampled memory cannot be compared with exact memory (`", data$type, "`)."),
    x = paste0("The memory of ", sampled, " was measured at samples: its amounts are lower bounds."),
    x = paste0("The memory of ", sides[is_exact][[1]], " is exact: each vector was recorded."),
    i = paste0("Record ", sampled, " with `record_profile(memory = \"exact\")` as well.")
  ), call)
}

# Runs of different tools may have values of different types.
check_common_type <- function(data, call) {
  has_none <- nzchar(data$types) & is.na(data$names)
  sides <- split(has_none, factor(data$is_new, c(FALSE, TRUE)))
  # Allocations may have been recorded beside the time, as a run of their own.
  is_missing <- any(has_none & !data$only_memory) || any(vapply(sides, function(side) any(side) && all(side), NA))
  # A time without a name may be either.
  clocks <- unique(stats::na.omit(data$clocks))
  if (!is_missing && (length(clocks) < 2 || data$type != "time")) {
    return()
  }
  types <- function(is_new) {
    of <- unique(data$types[data$is_new == is_new & nzchar(data$types)])
    if (length(of) == 0) "none" else paste(of, collapse = "; ")
  }
  abort_unsupported(c(
    if (is_missing) {
      paste0("The runs cannot be compared: some have no values of the type `", data$type, "`.")
    } else {
      paste0("The runs cannot be compared: some have ", clocks[[1]], ", others ", clocks[[2]], ".")
    },
    x = paste0("Types of `base`: ", printable(types(FALSE)), "."),
    x = paste0("Types of `new`: ", printable(types(TRUE)), "."),
    i = "Choose a type that all runs have, with `type`."
  ), call)
}

# The groups to compare: by name, or by their average share of the runs.
rows_to_compare <- function(data, what, only, min_share, call) {
  if (!is.null(only)) {
    missing <- setdiff(only, data$groups$name)
    if (length(missing) > 0) {
      abort_argument(c(
        paste0("No run has `", missing[[1]], "`."), i = did_you_mean(missing[[1]], data$groups$name, "`")
      ), call)
    }
    return(which(data$groups$name %in% only))
  }
  figures <- data$figures
  mean <- rowsum(figures[[what]] * share_weights(data)[figures$run], figures$group)
  mean <- mean[mean[, 1] > 0 & mean[, 1] >= min_share, , drop = FALSE]
  as.integer(rownames(mean))
}

# The weight of a run: the part of the mean share of the runs that an amount of 1 in this run represents. Both versions
# have equal weight, whatever their numbers of runs.
share_weights <- function(data) {
  weight <- ifelse(data$is_new, 0.5 / sum(data$is_new), 0.5 / sum(!data$is_new)) / data$sums
  ifelse(data$sums == 0, 0, weight)
}
