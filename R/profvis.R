# Converts profiles to widgets of the package profvis.

#' Show a profile with profvis
#'
#' `as_profvis()` converts a profile to the object that [profvis](https://profvis.r-lib.org) returns. Print it to show
#' the profile in profvis, or pass it to packages that use such objects, such as debrief. This works for profiles of all
#' formats, and takes a fraction of the time that profvis needs to parse a file.
#'
#' @details
#' profvis has one step for each sample. All steps have the same length: the sampling period of the first source, or
#' 10 milliseconds if that is unknown. A sample with a count of n becomes n steps. Sources follow one another.
#'
#' If `source_text` is `TRUE`, the text of source files is added by [add_source_text()], with its default arguments.
#' Frames in files without text have no file and line, as in profvis itself.
#'
#' profvis shows a function with the line that called it. The line that was running in the innermost function is
#' a row of its own, with its code as label.
#'
#' In memory profiles, the memory is the size of small and large vectors in use, as in profvis. Its differences are the
#' allocated memory minus the freed memory; [profile_page()] shows allocations.
#'
#' profvis is needed to print the object, but not to create it. profvis becomes slow with some ten thousand samples;
#' [profile_page()] can show millions.
#'
#' @inheritParams write_pprof
#' @param source_text Whether to add the text of source files.
#' @param split Whether code and flame graph are side by side (`"h"`) or one above the other (`"v"`).
#'
#' @return An object of class `profvis`, an htmlwidget. `x$message` contains `prof`, a data frame with a row for each
#'   frame of each step, innermost frame first:
#'   \describe{
#'   \item{time}{(integer) the step, counted from 1}
#'   \item{depth}{(integer) the position in the stack: 1 for the outermost frame}
#'   \item{label}{(character) the name of the function, or a line of code}
#'   \item{filenum, linenum}{(integer) the file as a position in `files`, and the line of the call}
#'   \item{memalloc}{(double) the memory in use in MiB; 0 if it was not recorded}
#'   \item{meminc}{(double) its difference to the previous row}
#'   \item{filename}{(character) the file}
#'   }
#'   `interval`, the length of a step in milliseconds; `files`, a list with the name and the content of each file; and
#'   settings of profvis.
#'
#' @section Errors:
#' `profile_error_invalid` if `x` is not valid, and `profile_error_unsupported` if it has more than 2^31 - 1 frames,
#' negative counts of samples, or no samples over time but memory in use, as in heap profiles and [snapshot_memory()].
#'
#' @seealso [profile_page()]
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#' p <- as_profvis(x)
#' head(p$x$message$prof)
as_profvis <- function(x, ..., source_text = TRUE, split = c("h", "v")) {
  call <- call_without_dots()
  check_flag(source_text, "source_text", call)
  split <- check_choice(split, c("h", "v"), "split", call)
  x <- as_unchecked_v2(x, call)
  text <- no_text
  if (source_text) {
    check_source_text(x, call)
    # Whether files have changed is not shown.
    text <- with_validation(list(x), call, with_source_text(x, NA, call, embeds = TRUE)$.source_text)
  }
  prof <- rust(rust_profvis(x, valid_text(text$filename), valid_text(text$text)), call)
  files <- unname(Map(
    function(filename, content) list(filename = filename, content = content, normpath = filename),
    text$filename, text$text
  ))
  profvis_widget(list(
    prof = as.data.frame(prof),
    interval = profvis_interval(x$sources),
    files = files,
    prof_output = x$sources$source_uri[1],
    highlight = list(
      output = list("^output\\$"), gc = list("^<GC>$"), stacktrace = list("^\\.\\.stacktraceo(n|ff)\\.\\.$")
    ),
    split = split
  ))
}

profvis_interval <- function(sources) {
  milliseconds <- c(nanoseconds = 1e-6, microseconds = 1e-3, milliseconds = 1, seconds = 1e3)
  period <- unname(sampling_period(sources)[1] * milliseconds[sources[[".period_unit"]][1]])
  if (length(period) == 1 && !is.na(period)) period else 10
}

# The widget that `htmlwidgets::createWidget()` creates for profvis.
profvis_widget <- function(message) {
  # Loads profvis, so that print() finds its method.
  rlang::is_installed("profvis") && requireNamespace("profvis", quietly = TRUE)
  size <- list(defaultWidth = NULL, defaultHeight = NULL)
  policy <- c(size, list(
    padding = 0,
    fill = NULL,
    viewer = c(size, list(padding = NULL, fill = TRUE, suppress = TRUE, paneHeight = NULL)),
    browser = c(size, list(padding = NULL, fill = TRUE, external = FALSE)),
    knitr = list(defaultWidth = "100%", defaultHeight = "600px", figure = FALSE)
  ))
  structure(
    list(
      x = list(message = message), width = NULL, height = NULL, sizingPolicy = policy, dependencies = NULL,
      elementId = NULL, preRenderHook = NULL, jsHooks = list()
    ),
    class = c("profvis", "suppress_viewer", "htmlwidget"),
    package = "profvis"
  )
}
