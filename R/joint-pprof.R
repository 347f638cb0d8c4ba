# Records an expression and shows it in the web interface of the pprof tool, as the function of the package jointprof
# does.

#' Profile R and native code, and show the result in pprof
#'
#' @description `joint_pprof()` records an expression with `record_profile(native = TRUE)`, starts the web interface of
#' the [pprof tool][find_pprof()] and opens it in the browser: a flame graph, a call graph, tables, and source code. It
#' has the name and arguments of the function of the package jointprof.
#'
#' Without pprof, `record_profile(expr, native = TRUE) |> profile_page()` shows the same. The web interface for any
#' other profile: write it with [write_pprof()], and run `pprof -http=localhost: FILE`, see the example of
#' [find_pprof()].
#'
#' @details
#' With the default `host`, only users of this machine can connect. The server has no password: with the address of a
#' network interface, everyone in that network can see the profile, and files that pprof opens for it: source files, and
#' libraries of addresses without a symbol.
#'
#' pprof stores views that you save in its menu *Config* in `pprof/settings.json` in the user's configuration directory,
#' which on Linux is `~/.config` or the value of `XDG_CONFIG_HOME`. Its call graph requires
#' [Graphviz](https://graphviz.org).
#'
#' @param expr An expression.
#' @param ... Must be empty.
#' @param host Name or IPv4 address on which the server listens.
#' @param port The port on which it listens. By default pprof chooses a free one.
#' @param browse Whether to open the browser, by [browseURL()].
#'
#' @return The process of pprof: an object of class `pprof_process` with the elements `url` and `pid`. It ends with the
#'   session, or by `tools::pskill(process$pid)`.
#'
#' @section Errors:
#' - `profile_error_unsupported` if pprof was not found, or native code cannot be recorded here;
#' - `profile_error_pprof` if pprof ends, for example since the port is in use, with its output in the message and in
#'   the field `output`;
#' - `profile_error_argument` for invalid arguments; and the errors of [record_profile()].
#'
#' @seealso [record_profile()], [profile_page()], [find_pprof()]
#' @export
#' @examples
#' if (interactive()) {
#'   process <- joint_pprof(for (i in 1:20) solve(matrix(runif(250000), 500)))
#'   process
#'   tools::pskill(process$pid)
#' }
joint_pprof <- function(expr, ..., host = "localhost", port = NULL, browse = interactive()) {
  call <- call_without_dots()
  if (missing(expr)) {
    abort_missing("expr", call, i = "It is the code to record, as in `joint_pprof(work())`.")
  }
  check_code(substitute(expr), rlang::caller_env(), "joint_pprof", call)
  if (!is_text(host) || !grepl("^[[:alnum:].-]+$", host)) {
    abort_argument("`host` must be a single string, a name or an IPv4 address.", call)
  }
  if (!is.null(port) && !(rlang::is_integerish(port, 1) && port %in% 1:65535)) {
    abort_argument("`port` must be a number from 1 to 65535, or `NULL`.", call)
  }
  check_flag(browse, "browse", call)
  # Fails before the expression is evaluated, which may take long.
  tool <- locate_pprof(call)
  x <- with_call(record_profile(expr, native = TRUE), call)
  # pprof fails for a profile without samples.
  if (nrow(x$samples) == 0) {
    abort_unsupported(c("The profile has no samples to show.", i = hint_without_samples(x)), call)
  }
  process <- start_pprof(x, tool, paste0(host, ":", port), call)
  if (browse) {
    # The start page of older versions is the call graph, which needs Graphviz.
    utils::browseURL(paste0(process$url, "/ui/flamegraph"))
  }
  process
}

# Starts pprof by a script in a folder of its own, and returns when it has written the address on which it listens. The
# script writes the process id to a file, and another one when pprof has ended. Newer versions of R reject commands that
# are not valid text in the locale, as paths may be; the name of the script is ASCII. The package processx is not used,
# since it takes the signal for ended children away from parallel, and changes the random numbers of the session.
start_pprof <- function(x, tool, address, call) {
  dir <- tempfile("pprof-")
  dir.create(dir)
  at <- function(name) in_folder(dir, name)
  write_format(x, at("profile.pb.gz"), "pprof", list(aggregate = TRUE, source_labels = FALSE), call)
  command <- c(as.character(tool), attr(tool, "args"), paste0("-http=", address), "-no_browser", at("profile.pb.gz"))
  here <- getwd()
  script <- c(
    "dir=$PWD", "exec > output 2>&1 < /dev/null",
    # pprof looks for source files in its working directory.
    if (!is.null(here)) paste("cd", shell_quote(here)),
    paste(c(shell_quote(command), "&"), collapse = " "),
    "echo $! > \"$dir/pid\"", "wait $!", ": > \"$dir/ended\""
  )
  writeLines(script, at("start"), useBytes = TRUE)
  with_folder(dir, system2("sh", "./start", wait = FALSE))

  # The process ends with the session, and if Ctrl-C interrupts the wait.
  started <- new.env(parent = emptyenv())
  started$end <- end_pprof(dir, Sys.getpid())
  reg.finalizer(started, function(started) started$end(), onexit = TRUE)
  url <- NULL
  on.exit(if (is.null(url)) started$end())
  has_ended <- FALSE
  while (is.null(url) && !has_ended) {
    Sys.sleep(0.02)
    # Before the output is read, which is complete then.
    has_ended <- file.exists(at("ended"))
    output <- if (file.exists(at("output"))) readLines(at("output"), warn = FALSE) else character()
    serving <- regmatches(output, regexpr("(?<=^Serving web UI on )http://\\S+", output, perl = TRUE))
    if (length(serving) > 0) url <- serving[[1]]
  }
  if (is.null(url)) {
    Encoding(output) <- "UTF-8"
    abort_profile(c(
      "pprof ended before it answered.",
      rlang::set_names(utils::tail(output, 10), rep("x", min(length(output), 10)))
    ), "profile_error_pprof", output = output, call = call)
  }
  # A process continues to run without its handle.
  the$pprof <- c(the$pprof, started)
  structure(list(url = url, pid = as.integer(readLines(at("pid"), 1))), class = "pprof_process")
}

with_folder <- function(dir, code) {
  here <- getwd()
  on.exit(if (!is.null(here)) setwd(here))
  setwd(dir)
  code
}

# A function that ends the process of this folder and removes the folder. `session`: the process of R that may: a fork
# has a copy of the handle.
end_pprof <- function(dir, session) {
  force(dir)
  force(session)
  function() {
    if (session != Sys.getpid()) {
      return()
    }
    pid <- in_folder(dir, "pid")
    if (file.exists(pid) && !file.exists(in_folder(dir, "ended"))) {
      tools::pskill(as.integer(readLines(pid, 1, warn = FALSE)))
    }
    unlink(dir, recursive = TRUE)
  }
}

#' @export
format.pprof_process <- function(x, ...) {
  text_call()
  paste0("<pprof> ", x$url, " (pid ", x$pid, ")")
}
