# Runs `R CMD check` and shows where its time goes. What happens in its processes is recorded as with
# `record_profile(children = TRUE)`; what they are is seen from outside (R/check-watch.R).

#' See where R CMD check spends its time
#'
#' @description
#' `profile_check()` runs `R CMD check` of a package and records all R processes that it starts. It returns how long
#' each part of the check took, the slowest examples, tests and vignettes with the line of the package that takes their
#' time, and the profile. The shell command `profile check` does the same.
#'
#' The check is that of R, and does the same as without recording. Its output is shown as usual.
#'
#' @details
#' A folder is built first by `R CMD build`, with the option `--no-manual` if the check has it. This is the part
#' `build`. The other parts are processes that the check starts one after the other, so their times do not overlap:
#'
#' - `install`: installs the package;
#' - `load`: loads and attaches it in several ways;
#' - `code`: checks of the code, such as [tools::checkS3methods()] and those of codetools;
#' - `help`: checks of the help pages, such as [tools::codoc()], and the manual;
#' - `examples`, `tests`, `vignettes`: runs them, and checks which packages they use;
#' - `other`: other processes and programs;
#' - `between`: the time in which no such process ran. The check itself works then.
#'
#' The sum of all parts is the time of the whole. When a process ends is known to about 0.02 seconds.
#'
#' An example begins when its title appears in the output, which is known to about 0.05 seconds. The times of tests of
#' testthat are those of samples: the sum of the real time of samples within each call of `test_that()`. Scripts in
#' `tests` in which no such call was seen, and vignettes, are processes.
#'
#' So that lines are known, the package is installed with `R_KEEP_PKG_SOURCE=yes`, if this variable is not set. It then
#' takes more space, which the check may report. With `lines = FALSE`, only functions are known.
#'
#' If the check is interrupted by Ctrl-C, what was recorded until then is returned.
#'
#' This requires `r live_platforms()`. At most 256 processes are recorded; the times of parts do not depend on that.
#'
#' @param path A folder with the source of a package, or the tarball that `R CMD build` has made of it.
#' @param ... Must be empty.
#' @param args Options of `R CMD check`, such as `c("--as-cran", "--no-manual")`.
#' @param base What to compare with: the result of another check, or the path of its file, see *Files*. `NULL` for
#'   nothing.
#' @param interval Seconds of real time between two samples.
#' @param lines Whether to install the package with source references.
#' @param quiet Whether to hide the output of the check.
#'
#' @section Files:
#' The result is an ordinary R object: `saveRDS(x, "check.rds")` stores it for the `base` of a later check. The shell
#' command writes such a file beside the page. `write_page(x$profile, "check.html")` writes a page. The samples have
#' the labels `check.part`, `check.step`, `check.example`, and those of tests:
#' `filter_profile(x$profile, labels = c(check.part = "tests"))` is the profile of the tests.
#'
#' @return A list of class `profile_check`. Printing it shows its tables.
#' - `parts`: a tibble with a row for each part that has run: `part`, `processes` (the number of R processes), `time`
#'   (in seconds), `share` (of the whole), and `memory` (in bytes, the highest of one process, `NA` if unknown).
#' - `steps`: a tibble with a row for each process that the check has started itself: `part`, `name`, `began` (in
#'   seconds since the start), `time` and `memory`.
#' - `items`: a tibble of examples, tests and vignettes, the slowest one first: `kind` (`"example"`, `"test"`,
#'   `"test script"` or `"vignette"`), `name`, `time`, and the place of the package that takes most of it: `function`,
#'   `file` and `line` of the innermost call of its code, and `line_time`, the time there. `NA` if there are no samples
#'   of the package, or no lines.
#' - `exceeded`: a tibble of what takes longer than CRAN accepts: examples of more than 5 seconds, and a check of more
#'   than ten minutes. Columns: `what`, `name`, `time` and `limit`.
#' - `loading`: a tibble of packages that were loaded: `package`, `time` without and `total` with the packages that it
#'   loads, in all processes together.
#' - With `base`, `parts` and `items` have a column `base`, the time of the other check. One run each: small differences
#'   are noise.
#' - `time`: the whole, in seconds. `package`: the name and version. `status`: the exit status of the check, or of
#'   `R CMD build` if that fails. `folder`: where the check has written its files.
#' - `profile`: a profile, see [profile_data]; `NULL` if nothing could be recorded.
#' @section Errors:
#' - `profile_error_argument` for invalid arguments, such as a folder without a package;
#' - `profile_error_unsupported` on other systems, `profile_error_process` if the recording cannot begin. A check that
#'   fails is no error.
#' @seealso [record_profile()] with `children`; `vignette("processes")`
#' @export
#' @examples
#' \dontrun{
#' x <- profile_check("mypackage", args = "--no-manual")
#' x$items
#' write_page(x$profile, "check.html")
#' }
profile_check <- function(
    path = ".", ..., args = character(), base = NULL, interval = 0.01, lines = TRUE, quiet = FALSE) {
  call <- call_without_dots()
  check_package_path(path, call)
  if (!is.character(args) || !all(is_valid_text(args))) {
    abort_argument("`args` must be a character vector of options of `R CMD check`.", call)
  }
  check_interval(interval, call)
  check_flag(lines, "lines", call)
  check_flag(quiet, "quiet", call)
  base <- base_of_check(base, call)
  ran <- record_check(normalizePath(path), args, interval, lines, quiet, call)
  with_base(check_result(ran, call), base)
}

check_package_path <- function(path, call) {
  check_path(path, call)
  is_folder <- dir.exists(path)
  if (!file.exists(path)) {
    abort_argument(paste0("`path` must be a folder or a tarball. There is no `", path, "`."), call)
  }
  if (is_folder && !file.exists(file.path(path, "DESCRIPTION"))) {
    why <- paste0("There is no file DESCRIPTION in `", path, "`.")
    abort_argument(paste("`path` must be the folder of a package.", why), call)
  }
  if (!is_folder && is.na(package_of_tarball(path))) {
    such_as <- "such as `pkg_1.0.tar.gz`"
    abort_argument(paste0("`path` must be a tarball of `R CMD build`, ", such_as, ", not `", basename(path), "`."), call)
  }
}

# The name and version of a package.
package_of <- function(path) {
  if (!dir.exists(path)) {
    return(package_of_tarball(path))
  }
  about <- read.dcf(file.path(path, "DESCRIPTION"), c("Package", "Version"))
  valid_text(paste(about[1, ], collapse = " "))
}

package_of_tarball <- function(path) {
  pattern <- "^([[:alnum:].]+)_([0-9.-]+)[.]tar[.](gz|bz2|xz)$"
  if (grepl(pattern, basename(path))) sub(pattern, "\\1 \\2", basename(path)) else NA_character_
}

# The result of another check, from an object or a file.
base_of_check <- function(base, call) {
  why <- NULL
  if (is_text(base)) {
    why <- if (file.exists(base)) "The file has something else." else paste0("There is no file `", base, "`.")
    base <- tryCatch(suppressWarnings(readRDS(base)), error = identity)
  }
  if (!is.null(base) && !inherits(base, "profile_check")) {
    abort_argument(c("`base` must be the result of `profile_check()`, or a file of it.", x = why), call)
  }
  base
}

# ---- Running it ----------------------------------------------------------------------

# Builds and checks the package, and returns what was seen of it: see check_result(). `start`: see start_watch().
record_check <- function(path, args, interval, lines, quiet, call, start = start_watch) {
  folder <- new_recording_folder()
  remove_folder <- remover_of(folder)
  on.exit(remove_folder())
  end_helper <- start_helper(
    list(any = TRUE, pids = integer()), helper_settings(interval, "wall", FALSE), call, folder
  )
  counts <- NULL
  on.exit({
    if (is.null(counts)) end_helper()
    remove_folder()
  })
  is_set <- !is.na(environment_values("R_KEEP_PKG_SOURCE", NA))
  restore <- if (lines && !is_set) set_variables(c(R_KEEP_PKG_SOURCE = "yes"))
  if (!is.null(restore)) on.exit(restore(), add = TRUE)
  watch <- start()
  run <- function(...) rust(rust_run_program(command_of_r(c(...), quiet), watch$look), call)$status
  started <- as.numeric(Sys.time())
  is_built <- dir.exists(path)
  status <- 0L
  package <- package_of(path)
  if (is_built) {
    built <- new_private_folder(in_folder(folder, "built"))
    status <- in_working_directory(built, run("build", intersect(args, "--no-manual"), path))
    path <- c(list.files(built, "[.]tar[.]gz$", full.names = TRUE), path)[[1]]
  }
  check_started <- as.numeric(Sys.time())
  if (status == 0) status <- run("check", args, path)
  ended <- as.numeric(Sys.time())
  processes <- watch$processes()
  counts <- end_helper()
  list(
    status = as.integer(status), package = package, is_built = is_built, started = started,
    check_started = check_started, ended = ended, processes = processes, titles = watch$titles(),
    recorded = result_of_helper(folder, counts), failure = watch$failure(), folder = folder_of_check(package, args)
  )
}

command_of_r <- function(args, quiet) {
  command <- c(file.path(R.home("bin"), "R"), "CMD", args)
  if (quiet) c("/bin/sh", "-c", "exec \"$0\" \"$@\" >/dev/null 2>&1", command) else command
}

in_working_directory <- function(folder, code) {
  before <- setwd(folder)
  on.exit(setwd(before))
  force(code)
}

# Where the check writes its files: in the current folder, or that of the option `--output` or `-o`.
folder_of_check <- function(package, args) {
  given <- c(sub("^--output=", "", grep("^--output=", args, value = TRUE)), args[which(args == "-o") + 1L])
  folder <- c(given[!is.na(given)], ".")[[1]]
  file.path(normalizePath(folder, mustWork = FALSE), paste0(sub(" .*", "", package), ".Rcheck"))
}

# ---- The result ------------------------------------------------------------------------

# Makes the tables of a check that has run. `ran`: list of `status`, `package`, `is_built`, `started`, `check_started`
# and `ended` in seconds since the epoch, `processes`, `titles` and `failure`, see start_watch(), `recorded`, see
# `result_of_helper()`, and `folder`.
check_result <- function(ran, call) {
  processes <- ran$processes
  if (!is.null(ran$failure)) {
    warn_profile(
      c("Processes of the check were missed, so parts are too short.", x = conditionMessage(ran$failure)),
      "profile_warning_incomplete", call = call
    )
  }
  steps <- steps_of_check(processes, ran$is_built)
  whole <- ran$ended - ran$started
  family <- recorded_of_check(ran$recorded, call)
  found <- if (!is.null(family)) profile_of_check(family, processes, steps, ran$titles, ran$folder, call)
  memory <- memory_of_processes(family, processes)
  parts <- parts_of_steps(steps, processes, memory, whole)
  items <- items_of_check(found, ran, steps)
  structure(
    list(
      package = ran$package, status = ran$status, time = whole, parts = parts,
      steps = tibble::tibble(
        part = steps$part, name = steps$name, began = steps$began - ran$started, time = steps$ended - steps$began,
        memory = vapply(steps$key, function(key) highest(memory[keys_below(processes, key)]), 0, USE.NAMES = FALSE)
      ),
      items = items, exceeded = exceeded_limits(items, ran$ended - ran$check_started),
      loading = loading_in_check(found$profile, call), folder = ran$folder, profile = found$profile
    ),
    class = "profile_check"
  )
}

# The profile of all processes; NULL if the helper failed. Says what is missing.
recorded_of_check <- function(recorded, call) {
  failed <- inherits(recorded, "error")
  words <- if (failed) {
    conditionMessage(recorded)
  } else {
    c(format_missing_children(recorded), format_kills(recorded$endings[nzchar(recorded$endings$role), ]))
  }
  if (length(words) > 0) {
    warn_profile(
      c("The profile is incomplete.", rlang::set_names(words, "x")), "profile_warning_incomplete", call = call
    )
  }
  if (!failed) recorded$profile
}

items_of_check <- function(found, ran, steps) {
  processes <- ran$processes
  profile <- found$profile %||% no_recording()
  of_sample <- found$of_sample %||% character()
  items <- bind_items(list(
    examples_of_check(ran$titles, processes, profile, of_sample),
    tests_of_check(processes, steps, profile, of_sample),
    vignettes_of_check(steps, found$step %||% character())
  ))
  package <- sub(" .*", "", ran$package %||% "")
  with_hottest_lines(items, places_in_package(profile, package), wall_of_samples(profile))
}

# What the tables of items need of a profile, if there is none.
no_recording <- function() {
  list(
    samples = tibble::tibble(sample_id = integer(), .timestamp = numeric()),
    sample_values = tibble::tibble(sample_id = integer(), type = character(), value = numeric()),
    sample_locations = tibble::tibble(sample_id = integer(), depth = integer(), location_id = integer()),
    locations = tibble::tibble(location_id = integer(), function_id = integer(), line = integer()),
    functions = tibble::tibble(
      function_id = integer(), name = character(), filename = character(), .package = character()
    ),
    .labels = tibble::tibble(sample_id = integer(), key = character(), str = character())
  )
}

# The highest memory of each process in bytes, by its key.
memory_of_processes <- function(family, processes) {
  if (is.null(family)) {
    return(rlang::set_names(rep(NA_real_, nrow(processes)), processes$key))
  }
  peak <- suppressWarnings(as.numeric(source_attribute(family, "profile.memory.peak")))
  key <- key_of_sources(family, processes)
  vapply(rlang::set_names(processes$key), function(one) highest(peak[key %in% one]), 0)
}

loading_in_check <- function(profile, call) {
  none <- tibble::tibble(package = character(), time = numeric(), total = numeric())
  if (is.null(profile) || nrow(profile$samples) == 0) {
    return(none)
  }
  found <- suppressMessages(loading_figures(profile, "wall", call), "profile_message_loaded")
  tibble::tibble(package = found$package, time = found$self / 1e9, total = found$total / 1e9)
}

# Adds the times of another check.
with_base <- function(x, base) {
  if (!is.null(base)) {
    key <- function(items) paste(items$kind, items$name, sep = "\r")
    x$parts$base <- base$parts$time[match(x$parts$part, base$parts$part)]
    x$items$base <- base$items$time[match(key(x$items), key(base$items))]
    x$base <- list(package = base$package, time = base$time)
  }
  x
}
