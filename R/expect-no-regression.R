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
#' In all cases the message lists the functions that changed most. With fewer than three runs of a version, the
#' result is inconclusive.
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
#' @seealso `vignette("comparing")`, which has a recipe for GitHub Actions
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
  comparison <- comparison_of(figures_of_runs(versions, type, "function", call), call)
  result <- regression_result(attr(comparison, "whole"), tolerance)
  fails <- result == "more" || result == "unclear" && inconclusive == "fail"
  message <- regression_message(comparison, result, tolerance)
  # testthat sets this variable; to look for the package takes longer than the comparison.
  if (environment_values("TESTTHAT") == "true" && rlang::is_installed("testthat")) {
    testthat::expect(!fails, paste(printable(message), collapse = "\n"))
  } else if (fails) {
    abort_profile(message, "profile_error_regression", comparison = comparison, call = call)
  }
  if (result == "unclear" && inconclusive == "warn") {
    warn_profile(message, "profile_warning_inconclusive", comparison = comparison, call = call)
  }
  invisible(comparison)
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
