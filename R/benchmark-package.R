# Records runs of two versions of a package, to compare them.

#' Record runs of two versions of a package
#'
#' @description
#' `benchmark_package()` installs two versions of a package from git into temporary libraries, and runs a script, or the
#' package's tests, several times with each, in turns and in new processes. Pass the result to [compare_profiles()] or
#' [expect_no_regression()]. In a shell or a CI service, `profile compare --package` does all of this, and judges limits; see
#' `vignette("comparing")`.
#'
#' @details
#' The package has to be in a git repository. `new` is the working tree by default: all files that git does not ignore, whether
#' they are committed or not. Nothing in the repository is changed. Other packages come from `.libPaths()`.
#'
#' The script is the same for both versions, so it is read once, and evaluated as the body of a function. It has to load the
#' package, as in `library(mypackage)`, which is part of the run. Tests are those of `base`, because those of new features
#' would only add time; a message says how many of them fail.
#'
#' # The number of runs
#'
#' Bytes are exact, and three runs of each version suffice to see whether they are. For time, a pilot of five
#' runs of each version shows how much runs vary, and how long they take. From this follows the number of runs that would show a
#' change of the size `limit` in 80% of cases, bounded by `seconds`. The pilot is not used for anything else, and recording does
#' not stop earlier if a difference is found: both would find differences that do not exist.
#'
#' # Bytes
#'
#' With `measure = "bytes"`, [Rprofmem()] records R's vectors of more than 128 bytes, of new processes that have compiled no
#' function yet. Code whose bytes differ between its runs is not exact, for example if it uses random numbers, times, or names of
#' temporary files. Paths have the same length in all runs, because R allocates memory for them.
#'
#' @param base,new Git references of the old and the new version, such as `"main"` or `"HEAD~1"`. `NULL` for the working tree.
#' @param ... Must be empty.
#' @param script A file with R code to run.
#' @param tests Whether to run the tests of `base` in `tests/testthat` instead.
#' @param path The folder of the package.
#' @param measure `"time"` or `"bytes"`.
#' @param limit The size of a change in time that the runs are to show, as a share.
#' @param seconds About how long recording may take; installing the versions is not part of it. There are at least three runs of each
#'   version.
#' @param interval Seconds of CPU time between two samples.
#'
#' @return A list of the profiles `base` and `new`, with a source for each run, in the order of the runs.
#'
#' @section Errors:
#' - errors of the script;
#' - `profile_error_argument` for invalid arguments, such as references that do not exist;
#' - `profile_error_process` if a version cannot be installed, or a process ends before its run does;
#' - `profile_error_unsupported` without git, without testthat, or if R cannot record time or bytes.
#' @seealso [benchmark_profile()] for expressions
#' @export
#' @examplesIf FALSE
#' runs <- benchmark_package("main", script = "bench/report.R")
#' compare_profiles(runs)
benchmark_package <- function(
    base, new = NULL, ..., script = NULL, tests = FALSE, path = ".", measure = c("time", "bytes"), limit = 0.1,
    seconds = 300, interval = 0.01) {
  call <- call_without_dots()
  if (missing(base)) {
    abort_missing("base", call, i = "It is a git reference, such as \"main\".")
  }
  check_flag(tests, "tests", call)
  measure <- check_choice(measure, c("time", "bytes"), "measure", call)
  if (!is.numeric(limit) || length(limit) != 1 || !isTRUE(limit >= 0 && is.finite(limit))) {
    abort_argument("`limit` must be a number that is not negative, such as 0.1.", call)
  }
  check_seconds(seconds, "seconds", call)
  check_interval(interval, call)
  check_text(path, "path", call)
  code <- code_of_package_run(script, tests, call)
  versions <- install_versions(base, new, path, tests, call)
  on.exit(unlink(versions$folder, recursive = TRUE))
  runs <- runs_of_versions(versions, code, measure, limit, seconds, interval, call)
  runs[c("base", "new")]
}

# What a run evaluates: the script as one expression, or NULL for the tests.
code_of_package_run <- function(script, tests, call) {
  if (is.null(script) != tests) {
    abort_argument("Give either `script`, a file with R code, or `tests = TRUE`.", call)
  }
  if (tests) {
    check_package("testthat", "Running tests needs", call)
    return(NULL)
  }
  check_path(script, call)
  if (!file.exists(script)) {
    abort_argument(paste0("There is no file `", script, "`."), call)
  }
  code <- tryCatch(
    parse(script, keep.source = FALSE, encoding = "UTF-8"),
    error = function(error) abort_argument(c(paste0("`", script, "` is not R code."), x = conditionMessage(error)), call)
  )
  as.call(c(as.name("{"), as.list(code)))
}

# ---- Runs --------------------------------------------------------------------------

runs_of_pilot <- 5
# More runs would show changes that do not matter.
most_runs <- 100

# A list of the profiles `base` and `new`, and `plan`, see `planned_runs()`, which is NULL for bytes.
runs_of_versions <- function(versions, code, measure, limit, seconds, interval, call) {
  number <- 0
  failed <- c(base = 0, new = 0)
  way <- if (measure == "time") "time" else "Rprofmem"
  if (way == "Rprofmem") check_profmem(call)
  # All runs of one version, in turns with the other one, and the order is reversed each time.
  record <- function(runs, title) {
    recorded <- list(base = list(), new = list())
    sides <- c("base", "new")
    report <- progress_report(title, "tasks")
    for (run in seq_len(runs)) {
      for (side in sides) {
        number <<- number + 1
        x <- run_of_version(versions, side, code, way, interval, number, call)
        failed[[side]] <<- max(failed[[side]], attr(x, "failed") %||% 0)
        attr(x, "failed") <- NULL
        recorded[[side]] <- c(recorded[[side]], list(x))
        show_progress(report, sum(lengths(recorded)), 2 * runs)
      }
      sides <- rev(sides)
    }
    recorded
  }
  plan <- NULL
  runs <- minimum_runs
  if (way == "time") {
    inform_profile(paste("Recording", runs_of_pilot, "pilot runs of each version"), "profile_message_runs")
    started <- proc.time()[["elapsed"]]
    pilot <- record(runs_of_pilot, "Pilot runs")
    used <- proc.time()[["elapsed"]] - started
    plan <- planned_runs(comparison_of_whole(pilot, NULL, call), limit, used, seconds)
    runs <- plan$runs
  }
  about <- if (way == "time") paste(", about", format_seconds(signif(runs * used / runs_of_pilot, 2)))
  inform_profile(paste0("Recording ", runs, " runs of each version, ", if (way == "time") "time" else "bytes", about),
    "profile_message_runs"
  )
  recorded <- record(runs, "Recording runs")
  profiles <- Map(function(runs, title) {
    x <- bind_profiles(runs, call)
    x$.comments <- tibble::tibble(source_id = x$sources$source_id, comment = paste(versions$package, title, sep = ", "))
    x
  }, recorded, versions$titles[names(recorded)])
  if (any(failed > 0)) {
    inform_profile(
      paste0("Failing tests: ", failed[["base"]], " of base, ", failed[["new"]], " of new."), "profile_message_runs"
    )
  }
  c(profiles, list(plan = plan, failed = failed))
}

# The number of runs, fixed before the first comparison: as many as would show a change of the size `limit` if they vary as
# much as the pilot. Only this variation is used, not the difference of the versions. `whole`: of the pilot, which took
# `used` of the `seconds` that there are.
planned_runs <- function(whole, limit, used, seconds) {
  wanted <- min(runs_needed(whole, c(1, 1) * runs_of_pilot, 1 + limit), most_runs)
  possible <- max(floor((seconds - used) / used * runs_of_pilot), 0)
  list(runs = max(min(wanted, possible), minimum_runs), wanted = wanted, is_bounded = possible < wanted)
}

comparison_of_whole <- function(versions, type, call) {
  data <- figures_of_runs(lapply(versions, function(of) if (is_profile(of)) list(of) else of), type, "function", call)
  check_comparable(data, "amount", call)
  compared_rows(matrix(data$sums, 1), data, "amount")
}

# One run in a new process. The attribute `failed` is the number of failing tests.
run_of_version <- function(versions, side, code, way, interval, number, call) {
  folder <- in_folder(versions$folder, sprintf("run-%06d", number))
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  libraries <- c(versions$libraries[[side]], .libPaths())
  if (is.null(code)) {
    # Tests write to their folder.
    file.copy(dirname(versions$tests), folder, recursive = TRUE)
    code <- code_of_tests(versions$package, in_folder(folder, file.path("tests", "testthat")))
  }
  restore <- set_variables(c(TMPDIR = versions$temporary, R_LIBS = paste(libraries, collapse = .Platform$path.sep)))
  on.exit(restore(), add = TRUE)
  work <- list(code = code, globals = list())
  fresh_run(work, 1, way, interval, call, libraries, folder, has_sampler = versions$package != "profile")
}

code_of_tests <- function(package, folder) {
  rlang::expr({
    results <- testthat::test_dir(
      !!folder, package = !!package, load_package = "installed", reporter = "silent", stop_on_failure = FALSE,
      stop_on_warning = FALSE
    )
    results <- as.data.frame(results)
    options(profile.failed_tests = sum(results$failed, results$error))
  })
}
