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
#' By default, the sampled time of each run is compared: the number of samples times the sampling period, or else the type
#' of the run that is a time, whatever its name and unit. So runs with different periods can be compared, and files of
#' different formats. With `type`, or if the time of a run is not known, the sum of a sample type, such as `alloc_space`, is
#' compared. Values in several units of time or memory are converted.
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
#' To find smaller differences, record more runs, or name the functions or packages of interest in `only`: the
#' fewer rows, the smaller the adjustment.
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
#' of [holders()]. A step of a path is compared only with a step of the same name below the same path. A row goes down as
#' long as one step keeps 80% of the growth of its start; where the growth is divided, further rows begin.
#'
#' `by = "path"` also compares other profiles of memory in use, such as heap profiles of Go, or snapshots that were read
#' from a format that does not say what they are, such as pprof. Each side must have one source, or several processes, see
#' below. `scale`, `what`, `type` and `only` have no meaning here; `min_share` is a share of the sum of all changes,
#' growth and decrease alike.
#'
#' Snapshots of several processes, by `memory_profile(children = TRUE)`, are compared process by process, whose role or name
#' is the first step of each path. A process of `new` is compared with the same one in `base`. Those that are left are compared
#' by their roles, in order: worker 1 with worker 1, the first fork with the first fork. Others are only in one of both,
#' as their name says: their whole memory is one row. Printing shows the growth of each process first.
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
#'   others elapsed time, amounts are below
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
  data <- figures_of_runs(versions, type, by, call)
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
  order <- order(!found, -abs(compared$new - compared$base), data$groups$name[rows], method = "radix")
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

figures_of_runs <- function(versions, type, by, call) {
  both <- unlist(versions, recursive = FALSE, use.names = FALSE)
  if (by == "package" && !any(vapply(both, has_packages, NA))) {
    both <- lapply(both, packages_added, call)
  }
  result <- rust(rust_runs(both, type, by), call)
  is_new <- rep(seq_along(both) > length(versions$base), vapply(both, function(x) nrow(x$sources), 0L))
  new_figures(result, is_new, type)
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
    quantum = sample_amounts(result$unit, is_count, result$runs$period) / scale,
    is_count = is_count,
    is_default = is.null(type),
    is_new = is_new,
    types = result$runs$types,
    names = result$runs$name,
    only_memory = result$runs$memory,
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
  check_common_type(data, call)
  negative <- data$figures$run[data$figures$self < 0 | data$figures$total < 0]
  if (length(negative) > 0) {
    of <- side(negative[[1]])
    refuse(
      paste0(of, " has negative values of ", type, ": it is a difference, whose amounts have no ratio."),
      i = "Compare the two profiles of which it is the difference."
    )
  }
  # A run without samples takes less than a sample represents. It has no shares.
  is_short <- data$samples == 0 & scale == "amount" & any(data$sums > 0, na.rm = TRUE)
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

# ---- Statistics --------------------------------------------------------------------

# The columns of the result from `base` on. `amounts` has a row for each row of it, a column for each run.
compared_rows <- function(amounts, data, scale, detectable = TRUE) {
  is_new <- data$is_new
  quantum <- mean(data$quantum)
  # The logarithm of 0 samples is not finite. So half a sample is added to each amount, for the estimate of the ratio,
  # its interval and its test alike.
  offset <- if (quantum > 0) rep(quantum / 2, nrow(amounts)) else half_of_smallest(amounts)
  counted <- amounts
  if (scale == "share") {
    amounts <- sweep(amounts, 2, data$sums, `/`)
    quantum <- quantum / mean(data$sums)
    offset <- offset / mean(data$sums)
  }
  base <- amounts[, !is_new, drop = FALSE]
  new <- amounts[, is_new, drop = FALSE]
  columns <- list(
    base = geometric_mean(base, offset),
    new = geometric_mean(new, offset)
  )
  test <- welch_log(base, new, offset, quantum)
  columns$ratio <- ifelse(columns$base == 0, columns$new / columns$base, exp(test$log_ratio))
  columns$ratio[columns$new == 0 & columns$base > 0] <- 0
  rows <- nrow(amounts)
  unknown <- rep(NA_real_, rows)
  columns[c("lower", "upper", "p_value", "p_adjusted", "detectable")] <- list(unknown)
  columns$verdict <- rep(NA_character_, rows)
  if (min(sum(is_new), sum(!is_new)) >= minimum_runs) {
    columns[c("lower", "upper")] <- ratio_interval(test)
    columns$p_value <- p_value(test)
    # Rows with equal amounts in all runs count as one test.
    tests <- vctrs::vec_group_id(as.data.frame(counted))
    first <- !duplicated(tests)
    weight <- as.vector(counted %*% share_weights(data))
    adjusted <- holm_weighted(columns$p_value[first], weight[first])
    columns$p_adjusted <- adjusted[match(tests, tests[first])]
    if (detectable) {
      columns$detectable <- detectable_ratio(test$se, test$df, significance_level * weight / sum(weight[first]))
    }
    columns$verdict <- ifelse(
      columns$p_adjusted >= significance_level, "none found", ifelse(test$log_ratio > 0, "more", "less")
    )
  } else if (scale == "share" && all(data$quantum > 0)) {
    counts <- sweep(counted, 2, data$quantum, `/`)
    sizes <- data$sums / data$quantum
    side <- function(of) {
      list(count = rowSums(counts[, of, drop = FALSE]), size = sum(sizes[of]))
    }
    columns[c("lower", "upper")] <- share_ratio_interval(side(!is_new), side(is_new))
  }
  # Rows that occur in only one version.
  columns$upper[rowSums(base) == 0 & !is.na(columns$upper)] <- Inf
  columns$lower[rowSums(new) == 0 & !is.na(columns$lower)] <- 0
  tibble::new_tibble(
    columns[c("base", "new", "ratio", "lower", "upper", "p_value", "p_adjusted", "detectable", "verdict")],
    nrow = rows
  )
}

# The offset of exact (not sampled) amounts. A row that is missing in some runs needs a logarithm of 0 as well: half its
# smallest amount is used.
half_of_smallest <- function(amounts) {
  vapply(seq_len(nrow(amounts)), function(row) {
    found <- amounts[row, amounts[row, ] > 0]
    if (length(found) %in% c(0, ncol(amounts))) 0 else min(found) / 2
  }, 0)
}

geometric_mean <- function(amounts, offset) {
  mean <- exp(rowMeans(log(amounts + offset))) - offset
  # Exactly 0, without rounding errors.
  ifelse(rowSums(amounts) == 0, 0, mean)
}

# Advice if a version has hardly any samples; otherwise NULL.
few_samples <- function(data) {
  mean <- c(base = mean(data$samples[!data$is_new]), new = mean(data$samples[data$is_new]))
  if (all(data$quantum == 0) || min(mean) >= 5) {
    return(NULL)
  }
  paste0(
    "The runs of `", names(which.min(mean)), "` have ", if (min(mean) == 0) "no samples" else "few samples",
    ", so little is known about them. Use `times` of `benchmark_profile()` to repeat the code in each run."
  )
}

# ---- Text --------------------------------------------------------------------------

#' @rdname compare_profiles
#' @export
format.profile_comparison <- function(x, ..., n = NULL, width = NULL) {
  columns <- c("name", "filename", "line", "base", "new", "ratio", "lower", "upper", "detectable", "verdict")
  is_whole <- is.data.frame(attr(x, "whole")) && all(columns %in% names(x))
  text_of_table(x, n, width, is_whole, text_of_comparison, 20)
}

text_of_comparison <- function(x, n, width) {
  whole <- attr(x, "whole")
  runs <- attr(x, "runs")
  unit <- attr(x, "unit")
  enough <- min(runs) >= minimum_runs
  head <- paste0(
    "<comparison by ", attr(x, "by"), "> ", shown_label(attr(x, "type")),
    " per run, ", count_of(runs[["base"]], "run"), " of base and ", runs[["new"]], " of new"
  )
  shown <- utils::head(x, n)
  few <- attr(x, "few_samples")
  note <- if (!enough) {
    paste0(
      "There is no verdict: that needs at least ", minimum_runs, " runs of each version, since runs of ",
      "the same code differ. See `benchmark_profile()`.",
      if (attr(x, "scale") == "amount") " Shares of single runs can be compared with `scale = \"share\"`."
    )
  } else if (nrow(x) > 0 && all(x$verdict == "none found")) {
    # The whole run may differ because of functions that are not shown.
    where <- if (whole$verdict != "none found") " in these rows"
    paste0("No difference was found", where, ".", format_missed(max(x$detectable)))
  }
  c(
    shorten(wrap("", head, width), width),
    wrap("Whole run: ", format_whole_run(whole, unit), width),
    if (nrow(shown) > 0) c("", comparison_lines(shown, attr(x, "scale"), unit, width, enough)),
    if (nrow(x) > n) paste0("... and ", format_count(nrow(x) - n), " more rows"),
    if (!is.null(few)) wrap("", few, width),
    if (!is.null(note)) wrap("", note, width)
  )
}

#' @export
as_tibble.profile_comparison <- function(x, ...) without_class(x)

# Such as `1.48s -> 1.62s, +9.5% (95% interval -4.1% to +25%): no difference found.`
format_whole_run <- function(whole, unit) {
  text <- paste0(
    format_amount(signif(whole$base, 3), unit), " -> ", format_amount(signif(whole$new, 3), unit), ", ",
    change(whole$ratio)
  )
  if (is.na(whole$verdict)) {
    return(text)
  }
  is_exact <- whole$detectable == 1
  found <- if (is.finite(whole$detectable) && !is_exact) {
    paste0("; ", change(whole$detectable), " would be found in 80% of such comparisons")
  }
  verdict <- if (whole$verdict == "none found") paste0("no difference found", found) else whole$verdict
  exact <- "exact: the runs of each version are equal"
  interval <- if (is_exact) exact else paste("95% interval", format_interval(whole))
  paste0(text, " (", interval, "): ", verdict)
}

# A sentence about the largest difference that may exist although no row has a verdict.
format_missed <- function(detectable) {
  if (detectable == 1) {
    # All runs are equal.
    ""
  } else if (is.finite(detectable)) {
    paste0(" Such comparisons can miss differences below ", sub("^[+]", "", change(detectable)), ".")
  } else {
    " The runs vary so much that differences of any size can be missed."
  }
}

# If the runs of each version do not vary, the ratio is exact.
format_interval <- function(rows) {
  lower <- change(rows$lower)
  upper <- change(rows$upper)
  for (more in 1:4) {
    narrow <- which(lower == upper & rows$lower != rows$upper)
    lower[narrow] <- change(rows$lower[narrow], more)
    upper[narrow] <- change(rows$upper[narrow], more)
  }
  ifelse(
    rows$detectable %in% 1 & rows$lower == rows$upper, "exact",
    ifelse(is.infinite(rows$upper), paste("at least", lower), paste(lower, "to", upper))
  )
}

# A ratio as a change: `+9.5%`, `3.2x`, `0.0042x`. It is `0%` or `-100%` only for an exact value. `more`: the number of
# additional digits.
change <- function(ratio, more = 0) {
  percent <- 100 * (ratio - 1)
  size <- abs(percent)
  digits <- ifelse(size %in% NA | size >= 9.95, 0, 1) + more
  text <- sprintf("%+.*f%%", digits, percent)
  small <- which(size < 0.1)
  text[small] <- paste0(ifelse(percent[small] > 0, "+", "-"), plain_number(size[small], 2 + more), "%")
  factor <- which(ratio >= 3 | ratio > 0 & ratio < 0.01)
  text[factor] <- paste0(plain_number(ratio[factor], 2 + more), "x")
  # Ratios are computed by logarithms.
  text[which(size < 1e-8)] <- "0%"
  text[is.infinite(ratio)] <- "new"
  text[is.na(ratio)] <- ""
  text
}

# Such as `0.0042`, `1e-09`, `12,000`.
plain_number <- function(x, digits) {
  x <- signif(x, digits)
  vapply(x, function(x) format(x, digits = digits, big.mark = ",", scientific = x < 1e-5 || x >= 1e6), "")
}

# A share, which is 0 only if it is exactly 0.
format_share <- function(share) {
  ifelse(share > 0 & share < 5e-4, "<0.1%", paste0(trimws(percent(share)), "%"))
}

format_compared <- function(values, scale, unit) {
  if (scale == "share") format_share(values) else format_amount(signif(values, 3), unit)
}

comparison_lines <- function(x, scale, unit, width, enough) {
  amounts <- function(values) format_compared(values, scale, unit)
  name <- shown_name(ifelse(is.na(x$name), "(unknown)", x$name), width)
  place <- ifelse(is.na(x$line), "", paste0(" ", shown_name(file_name(x$filename), width), ":", x$line))
  columns <- list(
    base = amounts(x$base),
    new = amounts(x$new),
    change = change(x$ratio),
    `95% interval` = ifelse(is.na(x$lower), "", format_interval(x)),
    verdict = if (enough) x$verdict
  )
  columns <- columns[lengths(columns) > 0]
  columns <- columns[vapply(columns, function(column) any(column != ""), TRUE)]
  texts <- Map(function(head, column) {
    justify <- if (head == "verdict") "left" else "right"
    format(c(head, column), justify = justify)
  }, names(columns), columns)
  figures <- do.call(paste, c(list(""), texts, sep = "  "))
  labels <- shorten(paste0(name, place), max(width - nchar(figures[[1]], "width"), 12))
  shorten(trimws(paste0(format(c("name", labels)), figures), "right"), width)
}
