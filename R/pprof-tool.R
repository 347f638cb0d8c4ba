# The pprof tool: finding it, and starting its web server in the background.

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
#' @seealso [serve_pprof()]
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

#' Show a profile in the browser
#'
#' @description
#' `serve_pprof()` starts the web server of the [pprof tool][find_pprof()] for a profile and opens it in the
#' browser: a flame graph, a call graph, tables, and source code.
#'
#' `stop_pprof()` stops one server, or all of them. Servers also stop when the session ends normally or this package is
#' unloaded. Without pprof, [profile_page()] shows a profile in the browser.
#'
#' @details
#' With the default `host`, only users of this machine can connect. The server has no password: with the address of a
#' network interface, everyone in that network can see the profile and its source files.
#'
#' Ctrl-C in the R session does not stop the server.
#'
#' pprof stores views that you save in its menu *Config* in `pprof/settings.json` in the user's configuration
#' directory, which on Linux is `~/.config` or the value of `XDG_CONFIG_HOME`. All other files of a server are
#' in the session's temporary directory.
#'
#' The call graph requires [Graphviz](https://graphviz.org); the other views do not.
#'
#' pprof opens files that the profile refers to, in any directory: when it starts, the programs and libraries of
#' addresses without a symbol; for the view *Source*, the source files. Everyone who can connect can see their text.
#'
#' Windows is not supported. Write a file with [write_pprof()] and run `pprof -http=localhost: file` in a
#' terminal instead.
#'
#' @param x A profile, see [profile_data], or a dm of its tables, or the path of a file. A file in the
#'   format of [Rprof()] or OpenTelemetry is read by [read_profile()]; any other file is passed to pprof
#'   unchanged.
#' @param ... Must be empty.
#' @param host Name or IPv4 address on which the server listens.
#' @param port The port on which it listens. By default a free one is chosen.
#' @param browse Whether to open the browser, by [browseURL()].
#' @param timeout The number of seconds to wait for the server to answer.
#' @param server A value of `serve_pprof()`, or `NULL` for all running servers.
#'
#' @return `serve_pprof()`: a handle of class `pprof_server`. `server$url` is the address of the server,
#'   `server$pid` its process id.
#'
#'   `stop_pprof()`: `server`, or a list of the servers that were running, invisibly. Nothing happens if
#'   the server has ended.
#'
#' @section Errors:
#' - `profile_error_unsupported` if pprof was not found, or on Windows;
#' - `profile_error_pprof` if pprof does not start, with its output in the message and in the field
#'   `output`, or if the port is not available;
#' - `profile_error_open` if the file `x` does not exist;
#' - `profile_error_argument` for other arguments;
#' - the errors of [read_profile()] and [write_pprof()] if the file cannot be read or the profile cannot be written.
#'
#' @seealso [find_pprof()]
#' @export
#' @examples
#' if (interactive()) {
#'   x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#'   server <- serve_pprof(x)
#'   server
#'   stop_pprof(server)
#' }
serve_pprof <- function(x, ..., host = "127.0.0.1", port = NULL, browse = interactive(), timeout = 30) {
  call <- call_without_dots()
  if (.Platform$OS.type == "windows") {
    abort_unsupported(c(
      "`serve_pprof()` is not supported on Windows.",
      i = "Write a file with `write_pprof()` and run `pprof -http=localhost: file` in a terminal."
    ), call)
  }
  if (!is_text(host) || !grepl("^[[:alnum:].-]+$", host)) {
    abort_argument("`host` must be a single string, a name or an IPv4 address.", call)
  }
  if (!is.null(port) && !(rlang::is_integerish(port, 1) && port %in% 1:65535)) {
    abort_argument("`port` must be a number from 1 to 65535, or `NULL`.", call)
  }
  check_flag(browse, "browse", call)
  check_seconds(timeout, "timeout", call)
  x <- if (!missing(x) && rlang::is_string(x)) file_to_serve(x, call) else profile_to_serve(x, call)
  tool <- locate_pprof(call)
  if (is.null(port)) {
    port <- free_port(call)
  } else if (!is_free(port)) {
    abort_profile(paste0("Port ", port, " is in use or not permitted."), "profile_error_pprof", call = call)
  }

  server <- new_pprof_server(host, port)
  ready <- FALSE
  on.exit(if (!ready) end_server(server))
  if (!rlang::is_string(x)) {
    path <- in_folder(server$dir, "profile.pb.gz")
    write_format(x, path, "pprof", list(aggregate = TRUE, source_labels = FALSE), call)
    x <- path
  }
  start_server(server, tool, x)
  await_server(server, timeout, call)
  if (browse) {
    # The start page of older versions is the call graph, which needs Graphviz.
    utils::browseURL(paste0(server$url, "flamegraph"))
  }
  ready <- TRUE
  assign(server$dir, server, envir = servers)
  server
}

#' @rdname serve_pprof
#' @export
stop_pprof <- function(server = NULL) {
  call <- rlang::current_env()
  if (is.null(server)) {
    running <- Filter(is_running, unname(as.list(servers)))
    lapply(as.list(servers), end_server)
    return(invisible(running))
  }
  if (!inherits(server, "pprof_server")) {
    abort_argument("`server` must be a value of `serve_pprof()`, or `NULL`.", call)
  }
  end_server(server)
  invisible(server)
}

# pprof fails for a profile without samples.
profile_to_serve <- function(x, call) {
  x <- as_profile(x, call)
  rust(rust_validate(x), call)
  if (nrow(x$samples) == 0) {
    abort_unsupported(c("The profile has no samples to show.", i = hint_without_samples(x)), call)
  }
  x
}

# The path of a file in pprof's format; for a file of another format, the profile.
file_to_serve <- function(path, call) {
  file <- file_path(path, "profile_error_open", call)
  if (!file.exists(file[[1]]) || dir.exists(file[[1]])) {
    abort_profile(paste0("File `", file[[2]], "` does not exist."), "profile_error_open", call = call)
  }
  format <- rust(rust_file_format(file), call)
  if (format %in% c("pprof", "")) normalizePath(file[[1]]) else read_profile(path)
}

is_free <- function(port) {
  succeeds(close(serverSocket(port)))
}

succeeds <- function(code) {
  tryCatch({
    suppressWarnings(code)
    TRUE
  }, error = function(error) FALSE)
}

# Searches from a port that depends on the clock, since sample() would change the random numbers of the session.
free_port <- function(call) {
  first <- as.integer((proc.time()[["elapsed"]] * 1000 + Sys.getpid()) %% 16384)
  for (port in 49152L + (first + 0:99) %% 16384L) {
    if (is_free(port)) {
      return(port)
    }
  }
  abort_profile("No free port was found; specify one with `port`.", "profile_error_pprof", call = call)
}

# All servers of this session, named by their directories. A server continues to run without its handle.
servers <- new.env(parent = emptyenv())

# The handle is an environment, so that all copies know when the server has stopped.
new_pprof_server <- function(host, port) {
  server <- structure(new.env(parent = emptyenv()), class = "pprof_server")
  server$url <- paste0("http://", host, ":", port, "/ui/")
  server$host <- host
  server$port <- as.integer(port)
  server$pid <- NA_integer_
  server$session <- Sys.getpid()
  server$dir <- tempfile("pprof-server-")
  dir.create(server$dir)
  reg.finalizer(server, end_server, onexit = TRUE)
  server
}

# Starts the server by a script in its folder. The script writes the process id to a file, and the exit status when
# pprof has ended. Newer versions of R reject commands that are not valid text in the locale, as paths may be; the name
# of the script is ASCII. The package processx is not used, since it takes the signal for ended children away from
# parallel, and changes the random numbers of the session.
start_server <- function(server, tool, path) {
  here <- getwd()
  address <- paste0("-http=", server$host, ":", server$port)
  command <- c(as.character(tool), attr(tool, "args"), address, "-no_browser", path)
  script <- c(
    "dir=$PWD", "exec > output 2>&1 < /dev/null",
    if (!is.null(here)) paste("cd", shell_quote(here)),
    paste(c(shell_quote(command), "&"), collapse = " "),
    "echo $! > \"$dir/pid\"", "wait $!", "echo $? > \"$dir/status\""
  )
  writeLines(script, in_folder(server$dir, "start"), useBytes = TRUE)
  on.exit(if (!is.null(here)) setwd(here))
  setwd(server$dir)
  system2("sh", "./start", wait = FALSE)
}

await_server <- function(server, timeout, call) {
  answered <- FALSE
  has_ended <- function() file.exists(in_folder(server$dir, "status"))
  wait_until(function() {
    server$pid <- read_pid(server)
    answered <<- !is.na(server$pid) && answers(server)
    answered || has_ended()
  }, timeout)
  if (answered) {
    return()
  }
  path <- in_folder(server$dir, "output")
  output <- if (file.exists(path)) readLines(path, warn = FALSE)
  Encoding(output) <- "UTF-8"
  abort_profile(c(
    if (has_ended()) "pprof exited before it answered." else paste0("pprof did not answer within ", timeout, " seconds."),
    rlang::set_names(utils::tail(output, 10), rep("x", min(length(output), 10)))
  ), "profile_error_pprof", output = output, call = call)
}

read_pid <- function(server) {
  path <- in_folder(server$dir, "pid")
  if (file.exists(path)) as.integer(readLines(path, 1, warn = FALSE))[1] else NA_integer_
}

# Whether the server accepts connections. url() is not used, since it would use a proxy.
answers <- function(server) {
  succeeds(close(socketConnection(server$host, server$port, blocking = TRUE, timeout = 1)))
}

is_running <- function(server) {
  !is.na(server$pid) && !file.exists(in_folder(server$dir, "status")) && tools::pskill(server$pid, 0)
}

end_server <- function(server) {
  # A forked process has a copy of the handle, but must not stop the server of its parent.
  if (server$session != Sys.getpid()) {
    return()
  }
  # The process id may be unknown, if Ctrl-C interrupted await_server().
  server$pid <- read_pid(server)
  if (is_running(server)) {
    tools::pskill(server$pid)
    wait_until(function() !is_running(server), 5)
  }
  unlink(server$dir, recursive = TRUE)
  server$pid <- NA_integer_
  suppressWarnings(rm(list = server$dir, envir = servers))
}

wait_until <- function(condition, seconds) {
  end <- proc.time()[["elapsed"]] + seconds
  while (!condition() && proc.time()[["elapsed"]] < end) {
    Sys.sleep(0.02)
  }
}

#' @export
format.pprof_server <- function(x, ...) {
  text_call()
  paste0("<pprof server> ", x$url, if (is_running(x)) paste0(" (pid ", x$pid, ")") else " (ended)")
}
