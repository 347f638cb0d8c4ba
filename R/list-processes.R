# Lists running R processes, and how the list prints.

#' List running R processes
#'
#' `list_r_processes()` lists the processes on this machine that run R and that you may inspect, including this one.
#'
#' @param x The list of processes.
#' @param ... Must be empty. For `print()`, arguments of `format()`.
#' @param n The number of processes to print, by default 50; `Inf` for all.
#' @param width The width of the lines, by default the width of the console.
#'
#' @return A tibble of class `profile_processes` with a row for each process, that prints with whole commands:
#'   \describe{
#'   \item{pid}{integer: its process id}
#'   \item{state}{character: as in [profile_process()]}
#'   \item{cpu_time}{double: the CPU time of the thread that runs R, in seconds}
#'   \item{start}{`POSIXct`: when it started}
#'   \item{script}{character: the script that it runs, `NA` if it runs code from the command line or from its input}
#'   \item{command}{character: its command line, as `ps` shows it. Profiles do not contain it, since it may contain secrets}
#'   }
#'   `format()` returns a string for each line of text, `print()` returns `x`, invisibly.
#' @section Errors:
#' `profile_error_unsupported` on systems other than `r live_platforms()`.
#' @seealso [dump_stack()], [profile_process()]
#' @export
#' @examplesIf profile:::is_live_platform()
#' list_r_processes()
list_r_processes <- function() {
  processes <- rust(rust_processes(), rlang::current_env())
  processes$start <- as.POSIXct(processes$start, origin = "1970-01-01")
  processes$command <- readable_command(processes$command)
  tibble::new_tibble(processes, nrow = nrow(processes), class = "profile_processes")
}

# Rscript replaces blanks and line ends in expressions.
readable_command <- function(command) {
  gsub("~(\\+|n)~", " ", command)
}

# ---- Printing ----------------------------------------------------------------------

#' @rdname list_r_processes
#' @export
format.profile_processes <- function(x, ..., n = NULL, width = NULL) {
  is_whole <- all(c("pid", "state", "cpu_time", "start", "script", "command") %in% names(x))
  text_of_table(x, n, width, is_whole, text_of_processes)
}

text_of_processes <- function(x, n, width) {
  head <- paste0("<R processes> ", nrow(x))
  if (nrow(x) == 0) {
    return(head)
  }
  more <- nrow(x) - n
  x <- utils::head(x, n)
  age <- as.numeric(Sys.time()) - as.numeric(x$start)
  column <- function(name, text, justify = "left") format(c(name, ifelse(is.na(text), "", text)), justify = justify)
  figures <- paste(
    column("pid", x$pid, "right"),
    column("state", x$state),
    column("CPU time", ifelse(is.na(x$cpu_time), NA, vapply(x$cpu_time, format_seconds, "")), "right"),
    column("started", vapply(age, function(age) if (is.na(age)) NA_character_ else ago(age), "")),
    "",
    sep = "  "
  )
  space <- max(width - nchar(figures[[1]]), 10)
  script <- ifelse(x$pid == Sys.getpid(), "(this process)", ifelse(is.na(x$script), "", x$script))
  lines <- trimws(paste0(figures, c("script", shown_name(script, space, "start"))), "right")
  commands <- lapply(x$command, command_lines, width, indent = 8)
  c(
    shorten(c(head, lines[[1]]), width), unlist(Map(c, shorten(lines[-1], width), commands), use.names = FALSE),
    if (more > 0) paste0("... and ", format_count(more), " more processes")
  )
}

# A command on as many lines as it needs.
command_lines <- function(command, width, indent = 0) {
  strwrap(printable(command), width = max(width, 30), indent = indent, exdent = indent + 2)
}

#' @export
as_tibble.profile_processes <- function(x, ...) without_class(x)
