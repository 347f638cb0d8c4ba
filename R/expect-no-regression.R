# Compares two versions of a program in a test, and fails if the new one takes more.

#' Expect no performance regression
#'
#' @description
#' `expect_no_regression()` compares recorded runs of two versions with [compare_profiles()], and fails if the new
#' version certainly takes more than the old one, by more than a tolerance. Use it in tests with testthat, and in
#' scripts that check changes to a program.
#'
#' @details
#' The amounts of whole runs are compared. There are three results:
#'
#' - If the whole 95% interval of the ratio is above the tolerance, the expectation fails. With a tolerance
#'   of 0.1, a program that did not change fails in fewer than 1 of 40 tests.
#' - If the whole interval is below it, the expectation succeeds.
#' - Otherwise there are too few runs, or they vary too much: the result is inconclusive. By default there is a warning
#'   that states how many runs would be needed.
#'
#' In all cases the message lists the functions that changed most, and the lines of code if they are known. With fewer than
#' three runs of a version, the result is inconclusive.
#'
#' With `type`, any memory that was recorded can be compared, such as `"copy_space"` or `"peak_space"`, see *Exact memory* in
#' [record_profile()]. Snapshots of the heap, by [snapshot_memory()], are exact: one of each version is enough.
#'
#' Times vary from run to run, in particular on shared machines, as in CI services. Allocated memory does not vary: use
#' `benchmark_profile(measure = "bytes")`, which is the default if the environment variable `CI` is set. Compare only
#' profiles that were recorded on the same machine, at about the same time, and with alternating versions, as
#' [benchmark_profile()] does.
#'
#' @param base,new Profiles of the old and the new version, as for [compare_profiles()].
#' @param ... Must be empty.
#' @param tolerance How much more the new version may take, as a share of the amount of the old version.
#' @param type The sample type, as for [compare_profiles()].
#' @param inconclusive What happens if the result is inconclusive: a warning of class `profile_warning_inconclusive`,
#'   nothing, or a failure.
#'
#' @return The comparison, see [compare_profiles()], invisibly.
#'
#' @section Errors:
#' In a test with testthat, a failure is an expectation that failed. Elsewhere, it is an error of class
#' `profile_error_regression`, and the script ends. For other errors, see [compare_profiles()].
#' @seealso [expect_memory()] for limits without a base; `vignette("comparing")` for checks of pull requests
#' @export
#' @examples
#' work <- function(n) for (i in seq_len(n)) sort(paste("key", 1:5000), method = "radix")
#' runs <- benchmark_profile(base = work(200), new = work(200), runs = 3, warmup = 0, measure = "time")
#' expect_no_regression(runs, tolerance = 0.5, inconclusive = "pass")
expect_no_regression <- function(
    base, new = NULL, ..., tolerance = 0.1, type = NULL, inconclusive = c("warn", "pass", "fail")) {
  call <- call_without_dots()
  if (!is.numeric(tolerance) || length(tolerance) != 1 || !isTRUE(tolerance >= 0 && is.finite(tolerance))) {
    abort_argument("`tolerance` must be a number that is not negative, such as 0.1.", call)
  }
  inconclusive <- check_choice(inconclusive, c("warn", "pass", "fail"), "inconclusive", call)
  check_type(type, call)
  versions <- two_versions(base, new, call)
  is_single <- function(of) length(of) == 1 && is_snapshot(of[[1]]) && nrow(of[[1]]$sources) == 1
  if (is.null(type) && all(vapply(versions, is_single, NA))) {
    return(expect_no_growth(versions, tolerance, call))
  }
  comparison <- comparison_of(figures_of_runs(versions, type, "function", call), call)
  result <- regression_result(attr(comparison, "whole"), tolerance)
  fails <- result == "more" || result == "unclear" && inconclusive == "fail"
  message <- regression_message(comparison, result, tolerance)
  if (result != "no more") message <- c(message, changed_lines(versions, comparison, type, call))
  meet_expectation(!fails, message, "profile_error_regression", list(comparison = comparison), call)
  if (result == "unclear" && inconclusive == "warn") {
    warn_profile(message, "profile_warning_inconclusive", comparison = comparison, call = call)
  }
  invisible(comparison)
}

# Snapshots of the heap are exact, so one of each version is enough.
expect_no_growth <- function(versions, tolerance, call) {
  growth <- growth_by_path(versions, c(type = FALSE), 0.01, call)
  whole <- attr(growth, "whole")
  is_met <- whole$new <= whole$base * (1 + tolerance)
  unit <- attr(growth, "unit")
  grown <- utils::head(growth[growth$growth > 0, ], 3)
  paths <- paste0(shown_name(grown$held_by, 120), ": +", format_amount(grown$growth, unit))
  message <- c(
    "`new` has more memory in use than `base`, by more than the tolerance.",
    i = paste0(
      "Memory in use: ", format_amount(whole$base, unit), " -> ", format_amount(whole$new, unit), ", ",
      change(whole$new / whole$base), ". The tolerance is ", change(1 + tolerance), "."
    ),
    if (nrow(grown) > 0) rlang::set_names(paths, rep("*", nrow(grown)))
  )
  meet_expectation(is_met, message, "profile_error_regression", list(comparison = growth), call)
  invisible(growth)
}

# "more", "no more" (than the tolerance), or "unclear".
regression_result <- function(whole, tolerance) {
  if (isTRUE(whole$lower > 1 + tolerance)) {
    return("more")
  }
  if (isTRUE(whole$upper <= 1 + tolerance)) "no more" else "unclear"
}

regression_message <- function(comparison, result, tolerance) {
  whole <- attr(comparison, "whole")
  runs <- attr(comparison, "runs")
  head <- switch(result,
    more = "`new` takes more than `base`, by more than the tolerance.",
    `no more` = "`new` takes no more than `base` and the tolerance.",
    unclear = "The runs do not show whether `new` takes more than `base` and the tolerance."
  )
  unit <- attr(comparison, "unit")
  figures <- paste0(
    "Whole run: ", format_whole_run(whole, unit), ". The tolerance is ", change(1 + tolerance), "."
  )
  compared <- paste0(
    "Compared: ", count_of(runs[["base"]], "run"), " of `base` and ", runs[["new"]], " of `new`."
  )
  c(
    head, i = figures, i = compared, i = most_changed(comparison),
    i = if (result == "unclear") format_runs_needed(whole, runs, tolerance)
  )
}

# The functions whose amounts changed most, in the direction of the whole run.
most_changed <- function(comparison) {
  up <- attr(comparison, "whole")$ratio > 1
  change <- comparison$new - comparison$base
  rows <- comparison[change != 0 & (change > 0) == up & !is.na(comparison$name), ]
  rows <- rows[order(-abs(rows$new - rows$base)), ]
  # A function and its only caller have the same amounts: only one is listed.
  rows <- utils::head(rows[!duplicated(rows[c("base", "new")]), ], 3)
  if (nrow(rows) == 0) {
    return(NULL)
  }
  found <- ifelse(rows$verdict %in% c("more", "less"), "", " (not certain)")
  texts <- paste0("`", rows$name, "` ", change(rows$ratio), found)
  paste0("Changed most: ", paste(texts, collapse = ", "), ".")
}

# The lines whose own amounts changed most, in the direction of the whole run. NULL if no lines are known.
changed_lines <- function(versions, comparison, type, call) {
  data <- figures_of_runs(versions, type, "line", call)
  rows <- comparison_of(data, call, by = "line", what = "self", min_share = 0, detectable = FALSE)
  up <- attr(comparison, "whole")$ratio > 1
  rows$growth <- rows$new - rows$base
  rows <- rows[(rows$line > 0) %in% TRUE & rows$growth != 0 & (rows$growth > 0) == up, ]
  rows <- utils::head(rows[order(-abs(rows$growth), rows$filename, rows$line, method = "radix"), ], 3)
  if (nrow(rows) == 0) {
    return(NULL)
  }
  # The text of the version that takes more.
  texts <- lapply(versions[[if (up) "new" else "base"]], function(x) x$.source_text %||% no_text)
  texts <- vctrs::vec_rbind(!!!lapply(texts, `[`, c("filename", "text")))
  texts <- texts[!duplicated(texts$filename), ]
  rows <- tibble::tibble(
    name = rows$name, filename = rows$filename, line = rows$line, growth = rows$growth,
    text = described_lines(rows, texts)$text
  )
  text <- paste0(
    gsub("\u00a0", " ", described_place(rows, function(text) shown_name(text, 80))), ": ",
    with_sign(signif(rows$growth, 3), function(values) format_amount(values, attr(comparison, "unit")))
  )
  rlang::set_names(text, rep("*", length(text)))
}

format_runs_needed <- function(whole, runs, tolerance) {
  if (is.na(whole$lower)) {
    return(paste0("At least ", minimum_runs, " runs of each are needed, see `benchmark_profile()`."))
  }
  if (tolerance == 0) {
    return("With a tolerance of 0, no number of runs can show that there is no difference.")
  }
  needed <- runs_needed(whole, runs, 1 + tolerance)
  if (is.finite(needed)) {
    paste0("If runs vary as much as these, about ", needed, " runs of each would show a change of this size.")
  } else {
    "Runs vary so much that not even 1000 of each would show a change of this size."
  }
}
