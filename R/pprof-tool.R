# Finds the pprof tool.

#' Find the pprof tool
#'
#' @description [pprof](https://github.com/google/pprof) shows profiles written by [write_pprof()].
#' `find_pprof()` returns its location on this machine. It looks, in this order, at
#'
#' 1. the option `profile.pprof`,
#' 2. the environment variables `PROFILE_PPROF` and `PROFFER_PPROF_PATH` (the package proffer also uses the latter),
#' 3. `pprof` on the `PATH`,
#' 4. `go tool pprof`, if `go` is on the `PATH`,
#' 5. the file `pprof` (`pprof.exe`) in `tools::R_user_dir("profile", "data")`.
#'
#' The option and the variables contain a path, or the name of a program on the `PATH`. If one of them is set but does
#' not refer to pprof, there is an error, and the search does not continue.
#'
#' @details The tool is part of [Go](https://go.dev/dl/). `go install github.com/google/pprof@latest`
#' installs the newest version in `~/go/bin`. From Go 1.25 on, Go builds its copy when it is first used,
#' which can take half a minute.
#'
#' Go writes its build cache and telemetry to the directories that `go env GOCACHE` and `go env
#' GOTELEMETRYDIR` name, usually below the home directory; this package does not write there.
#'
#' A Perl script named `pprof`, which older versions of gperftools contain, does not support the format. It is
#' ignored on the `PATH`.
#'
#' @return The path of a program, a string of class `pprof_tool` that can be passed to [system2()]. Its
#'   attribute `found` describes where it was found. If `go` itself must be called, the attribute `args` contains
#'   the arguments that come first.
#'
#' @section Errors:
#' `profile_error_unsupported` if pprof was not found, or the option or a variable does not refer to it.
#'
#' @seealso [joint_pprof()]
#' @export
#' @examples
#' if (interactive()) {
#'   pprof <- find_pprof()
#'   pprof
#'
#'   x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#'   path <- tempfile(fileext = ".pb.gz")
#'   write_pprof(x, path)
#'   system2(pprof, c("-top", path))
#'   # Its web interface, which opens the browser:
#'   system2(pprof, c("-http=localhost:", path), wait = FALSE)
#' }
find_pprof <- function() {
  locate_pprof(rlang::current_env())
}

locate_pprof <- function(call) {
  settings <- list(
    "option `profile.pprof`" = getOption("profile.pprof", ""),
    "environment variable `PROFILE_PPROF`" = environment_values("PROFILE_PPROF"),
    "environment variable `PROFFER_PPROF_PATH`" = environment_values("PROFFER_PPROF_PATH")
  )
  for (found in names(settings)) {
    if (!identical(settings[[found]], "")) {
      return(pprof_of_setting(settings[[found]], found, call))
    }
  }

  on_path <- program("pprof")
  perl <- !is.na(on_path) && is_perl(on_path)
  if (!is.na(on_path) && !perl) {
    return(new_pprof_tool(on_path, "`pprof` on the `PATH`"))
  }
  go <- program("go")
  if (!is.na(go) && !is.null(tool <- pprof_of_go(go))) {
    return(tool)
  }
  name <- if (.Platform$OS.type == "windows") "pprof.exe" else "pprof"
  own <- program(in_folder(tools::R_user_dir("profile", "data"), name))
  if (!is.na(own)) {
    return(new_pprof_tool(own, "the data directory of this package"))
  }
  abort_unsupported(c(
    "The pprof tool was not found.",
    x = if (perl) paste0("`", on_path, "` is the Perl script of gperftools, which is another tool."),
    x = if (!is.na(go)) paste0("`", go, "` does not have the tool pprof."),
    i = "pprof is part of Go, see <https://go.dev/dl/>.",
    i = "`go install github.com/google/pprof@latest` installs it in `~/go/bin`.",
    i = "To use another location, set the option `profile.pprof` or the environment variable `PROFILE_PPROF`."
  ), call)
}

new_pprof_tool <- function(command, found, args = character()) {
  structure(command, found = found, args = args, class = "pprof_tool")
}

pprof_of_setting <- function(value, found, call) {
  command <- if (is_path(value)) program(value) else NA
  problem <- if (!is_path(value)) {
    "It must be one string."
  } else if (is.na(command)) {
    paste0("Program `", shown_text(value), "` was not found.")
  } else if (is_perl(command)) {
    paste0("`", command, "` is the Perl script of gperftools, which is another tool.")
  }
  if (!is.null(problem)) {
    abort_unsupported(c(paste0("The ", found, " does not point to pprof."), x = problem), call)
  }
  new_pprof_tool(command, paste("the", found))
}

# Go starts its tools as child processes: the tool itself is easier to stop.
pprof_of_go <- function(go) {
  path <- suppressWarnings(system2(go, c("tool", "-n", "pprof"), stdout = TRUE, stderr = FALSE))
  if (!is.null(attr(path, "status"))) {
    return(NULL)
  }
  tool <- if (length(path) == 1) program(path) else NA
  found <- "`go tool pprof`"
  if (is.na(tool)) new_pprof_tool(go, found, c("tool", "pprof")) else new_pprof_tool(tool, found)
}

# The full path of a program, given as a path or as a name on the PATH, or NA.
program <- function(name) {
  name <- native_text(name)
  path <- if (is.na(name) || basename(name) != name) path.expand(name) else Sys.which(name)[[1]]
  if (is.na(path) || dir.exists(path) || file.access(path, 1) != 0) {
    return(NA_character_)
  }
  in_folder(normalizePath(dirname(path)), basename(path))
}

is_perl <- function(path) {
  start <- readBin(path, "raw", 128)
  grepl("^#![^\n]*perl", rawToChar(start[start != 0]), useBytes = TRUE)
}

#' @export
format.pprof_tool <- function(x, ...) {
  text_call()
  c(
    paste("<pprof>", paste(c(unclass(x), attr(x, "args")), collapse = " ")),
    paste("Found by:", attr(x, "found"))
  )
}
