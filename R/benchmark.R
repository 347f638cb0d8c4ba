# Recording several runs of one or more expressions, to compare them.

#' Record runs to compare
#'
#' @description
#' `benchmark_profile()` evaluates expressions several times, in turns, and records each run: its time with [Rprof()],
#' or the memory that it allocates and copies. Pass the result to [compare_profiles()] or [expect_no_regression()].
#'
#' @details The expressions are evaluated in turns, and the order is reversed each time, so that changes in
#' the speed of the machine affect all of them equally. The garbage collector runs before each run.
#'
#' Record time if the runs take about a second or more: with the default `interval` there are 100 samples
#' per second. Use `times` for shorter expressions; then each run evaluates its expression that many times.
#'
#' Allocated memory is exact: a few runs show small changes, on any machine. R's vectors of more than 128 bytes are
#' recorded; memory that native code allocates in another way is not. R compiles functions when they are called for the
#' second time, which allocates memory; therefore `warmup` runs are not recorded.
#'
#' Where `record_profile(memory = "exact")` is possible, vectors are recorded in the same way. The profile then has lines, and
#' the types of copies, of the peak and of memory in use: compare them with, for example, `type = "copy_space"`. Otherwise, [Rprofmem()] records the same
#' vectors without lines and copies. Its stacks have no builtin functions, such as `c()`, so compare rows of functions only if
#' both sides were recorded in the same way.
#'
#' The expressions must be able to run several times; assignments in them are local. Random numbers make
#' runs differ: call [set.seed()] in each expression.
#'
#' @section New processes:
#' A package is loaded only once in an R process. With `fresh = TRUE`, each run starts a new one, so that start-up can be
#' measured, as in `benchmark_profile(library(dplyr), fresh = TRUE)`. [summary(x, by = "loaded")][summary.profile_data()] shows
#' the packages, and [compare_profiles()] compares, for example, two versions of an expression that starts an app.
#'
#' The process has the same libraries (`.libPaths()`), but does not read profiles such as `.Rprofile`; it has the default
#' packages and options, and neither this package nor any that it needs is loaded. Its output is discarded. Variables of the
#' global environment that the expression names, also by functions in it, are copied to the process. If such a function
#' belongs to a package, this package is loaded before the run. Local variables are refused.
#'
#' The warm-up fills the file cache of the system. A run of a new process reads files of packages as fast as a start
#' shortly after another one, not as the first one after the machine has started. Bytes are recorded by [Rprofmem()].
#'
#' @param ... One expression, or several with names, such as `base = f_old(x), new = f_new(x)`. They are
#'   evaluated where `benchmark_profile()` is called.
#' @param runs The number of runs of each expression.
#' @param times How often each run evaluates its expression.
#' @param warmup The number of runs of each expression before the first recorded one.
#' @param measure `"time"` or `"bytes"`. The default is `"bytes"` if R can record allocations and the environment
#'   variable `CI` is set, as in services for continuous integration; otherwise `"time"`.
#' @param interval Seconds of CPU time between two samples, if time is recorded.
#' @param fresh Whether each run is in a new R process, see *New processes*.
#'
#' @return A profile, see [profile_data], with a source for each run, in the order of the runs. For several expressions,
#'   a list of profiles, named like the expressions. The table `.comments` contains the name or the code of the
#'   expression.
#'
#' @section Errors:
#' - errors of the expressions;
#' - `profile_error_argument` for invalid arguments, and with `fresh` for expressions with local variables;
#' - with `fresh`, `profile_error_process` if a process ends before its run does;
#' - `profile_error_unsupported` if R was built without the profiler: see `capabilities("Rprof")` and
#'   `capabilities("profmem")`.
#' @seealso [record_profile()] for one run
#' @export
#' @examples
#' runs <- benchmark_profile(
#'   base = for (i in 1:20) paste("key", 1:2000),
#'   new = for (i in 1:20) paste0("key ", 1:2000),
#'   runs = 3, times = 20, warmup = 1
#' )
#' compare_profiles(runs)
#'
#' # Start-up:
#' \donttest{
#' runs <- benchmark_profile(library(splines), runs = 2, warmup = 0, interval = 0.001, fresh = TRUE)
#' summary(runs, by = "loaded")
#' }
benchmark_profile <- function(
    ..., runs = 5, times = 1, warmup = 2, measure = NULL, interval = 0.01, fresh = FALSE) {
  call <- rlang::current_env()
  exprs <- rlang::enquos(..., .ignore_empty = "all")
  named <- length(exprs) == 1 || rlang::is_named(exprs) && !anyDuplicated(names(exprs))
  if (length(exprs) == 0 || !named) {
    # R takes a misspelled argument for an expression.
    hints <- lapply(setdiff(names(exprs), ""), function(name) {
      hint <- did_you_mean(name, c("runs", "times", "warmup", "measure", "interval", "fresh"), "`")
      if (!is.null(hint)) paste0("There is no argument `", name, "`. ", hint)
    })
    abort_argument(c(
      "`...` must be one expression, or several with different names.", i = utils::head(unlist(hints), 1)
    ), call)
  }
  for (expr in exprs) {
    check_code(rlang::quo_get_expr(expr), rlang::quo_get_env(expr), "benchmark_profile", call)
  }
  check_count(runs, "runs", call)
  check_count(times, "times", call)
  if (!is.numeric(warmup) || length(warmup) != 1 || !isTRUE(warmup >= 0 && warmup <= .Machine$integer.max)) {
    abort_argument("`warmup` must be a number of runs, 0 or greater.", call)
  }
  measure <- measure_by(measure, call)
  check_interval(interval, call)
  check_flag(fresh, "fresh", call)
  # Closures are compiled during the warm-up.
  work <- lapply(exprs, function(expr) {
    code <- rlang::quo_get_expr(expr)
    env <- rlang::quo_get_env(expr)
    if (fresh) portable_code(code, env, call) else rlang::new_function(NULL, code, env)
  })
  recorded <- rep(list(list()), length(work))
  order <- seq_along(work)
  report <- progress_report("Recording runs", "tasks")
  done <- 0
  way <- if (measure == "time") "time" else if (fresh) "Rprofmem" else way_to_record_bytes(call)
  record_run <- if (fresh) fresh_run else recorded_run
  for (run in seq_len(warmup + runs)) {
    for (i in order) {
      show_progress(report, done, (warmup + runs) * length(work))
      done <- done + 1
      profile <- record_run(work[[i]], times, way, interval, call)
      if (run > warmup) {
        recorded[[i]] <- c(recorded[[i]], list(profile))
      }
    }
    order <- rev(order)
  }
  titles <- names(exprs)
  titles[titles == ""] <- code_in_one_line(rlang::quo_get_expr(exprs[[1]]))
  profiles <- Map(function(runs, title, expr) {
    x <- with_packages_in_tables(bind_profiles(runs, call), call)
    x$.comments <- tibble::tibble(source_id = x$sources$source_id, comment = title)
    if (way != "exact") {
      return(x)
    }
    x <- with_typed_code(x, rlang::quo_get_expr(expr), rlang::quo_get_env(expr))
    with_source_text(x, as.numeric(Sys.time()), call)
  }, recorded, titles, exprs)
  inform_short_runs(profiles, measure, runs, times)
  if (length(exprs) == 1) profiles[[1]] else rlang::set_names(profiles, names(exprs))
}

measure_by <- function(measure, call) {
  can_count <- isTRUE(unname(capabilities("profmem")))
  if (is.null(measure)) {
    on_ci <- !tolower(shown_text(environment_values("CI"))) %in% c("", "false", "0")
    return(if (on_ci && can_count) "bytes" else "time")
  }
  check_choice(measure, c("time", "bytes"), "measure", call)
}

# "exact", or "Rprofmem" where that is not possible, for all runs.
way_to_record_bytes <- function(call) {
  folder <- new_recording_folder()
  remove_folder <- remover_of(folder)
  on.exit(remove_folder())
  withCallingHandlers(
    {
      is_exact <- start_allocations(0, folder, call)
      if (is_exact) stop_allocations(call)
    },
    profile_message_memory = function(message) rlang::cnd_muffle(message)
  )
  if (is_exact) "exact" else "Rprofmem"
}

check_profmem <- function(call) {
  if (!isTRUE(unname(capabilities("profmem")))) {
    abort_unsupported("R was built without `Rprofmem()`, so that allocations cannot be recorded.", call)
  }
}

# Informs about runs that are too short for a comparison.
inform_short_runs <- function(profiles, measure, runs, times) {
  if (measure == "bytes") {
    return()
  }
  samples <- min(vapply(profiles, function(x) nrow(x$samples), 0)) / runs
  if (samples < 20) {
    inform_profile(c(
      paste0("The runs have only ", signif(samples, 2), " samples on average."),
      i = paste0(
        "Use `times` to repeat the expressions in each run, such as `times = ",
        ceiling(50 / max(samples, 1)) * times, "`."
      )
    ), "profile_message_short")
  }
}

# ---- One run -----------------------------------------------------------------------

recorded_run <- function(work, times, way, interval, call) {
  folder <- new_recording_folder()
  remove_folder <- remover_of(folder)
  on.exit(remove_folder())
  if (way == "exact") {
    return(exact_run(work, times, folder, call))
  }
  path <- in_folder(folder, "Rprof.out")
  if (way == "time") {
    format <- "rprof"
    start <- function() utils::Rprof(path, interval = interval, gc.profiling = TRUE)
    end <- function() utils::Rprof(NULL)
  } else {
    format <- "rprofmem"
    start <- function() utils::Rprofmem(path)
    end <- function() utils::Rprofmem("")
  }
  frames <- run_once(work, times, start, end)
  x <- mark_session(read_format(path, format, "2.0", NA_character_, call))
  without_code_of_callers(without_own_frames(x, frames, call))
}

without_own_frames <- function(x, frames, call) {
  # These functions are called where the expression is, so they are among the outermost frames.
  x <- filter_by(x, list(ignore = "^[.](start|end)_of_run$"), call)
  filter_by(x, list(), call, outermost = frames)
}

# Without the time of garbage collections, which differs between equal runs.
exact_run <- function(work, times, folder, call) {
  frames <- run_once(
    work, times,
    function() {
      if (!start_allocations(0, folder, call)) abort_unsupported("Allocations cannot be recorded any more.", call)
    },
    function() stop_allocations(call)
  )
  found <- read_allocations(folder, call)
  if (is.null(found)) abort_unsupported("The expression has ended the recording of allocations.", call)
  kept <- types_with_role(unique(found$sample_values$type), limited_roles, c("bytes", "count"))
  for (table in c("sample_values", ".sample_types")) {
    found[[table]] <- slice_rows(found[[table]], which(found[[table]]$type %in% kept))
  }
  found <- mark_session(mark_exact_memory(found, found$sources$source_id))
  without_code_of_callers(without_own_frames(found, frames, call))
}

# Returns the number of frames outside of the expression.
run_once <- function(work, times, .start_of_run, .end_of_run) {
  gc(FALSE)
  started <- FALSE
  on.exit(if (started) .end_of_run())
  .start_of_run()
  started <- TRUE
  for (i in seq_len(times)) {
    work()
  }
  .end_of_run()
  started <- FALSE
  # The frames up to this function, and the frame of `work()`.
  sys.nframe() + 1L
}
