# Lists running R processes.

#' List running R processes
#'
#' `list_r_processes()` lists the processes on this machine that run R and that you may inspect, including this one.
#'
#' @return A tibble with a row for each process:
#'   \describe{
#'   \item{pid}{integer: its process id}
#'   \item{state}{character: as in [profile_process()]}
#'   \item{cpu_time}{double: the CPU time of its main thread, in seconds}
#'   \item{start}{`POSIXct`: when it started}
#'   \item{command}{character: its command line}
#'   }
#' @section Errors:
#' `profile_error_unsupported` on systems other than Linux on x86-64 with the GNU C library.
#' @seealso [dump_stack()], [profile_process()]
#' @export
#' @examplesIf identical(Sys.info()[["sysname"]], "Linux") && identical(R.version$arch, "x86_64")
#' list_r_processes()
list_r_processes <- function() {
  processes <- rust(rust_processes(), rlang::current_env())
  processes$start <- as.POSIXct(processes$start, origin = "1970-01-01")
  processes$command <- readable_command(processes$command)
  processes
}

# Rscript replaces blanks and line ends in expressions.
readable_command <- function(command) {
  gsub("~(\\+|n)~", " ", command)
}
