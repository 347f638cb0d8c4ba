# Writes a profile in the format that the file name implies.

#' Write a profile in the format that the file name implies
#'
#' `write_profile()` writes a profile in the format that the end of `path` determines. ([read_profile()] detects the
#' format by the content of a file.)
#'
#' @details
#' Upper and lower case letters are equivalent. Each name may be followed by `.gz`, which compresses the file.
#'
#' @eval source("tools/help.R")$value$file_names
#' @details
#' Files of [write_pprof()] are always compressed, pages never. `*.otlp.json` is OpenTelemetry as JSON.
#'
#' Other names are errors, including `*.json` alone, which several formats use.
#'
#' @param x A profile, see [profile_data].
#' @param path Path of the file to write.
#' @param ... Further arguments of the function that writes the file, such as `aggregate` of [write_pprof()], or of
#'   [profile_page()] for a page, such as `base`.
#'
#' @return `x`, invisibly.
#'
#' @section Errors:
#' The errors of the function that writes the file, and `profile_error_argument` for other names.
#'
#' @seealso [read_profile()]
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#' path <- tempfile(fileext = ".collapsed")
#' write_profile(x, path)
#' head(readLines(path), 3)
#'
#' write_profile(x, tempfile(fileext = ".pb.gz"), aggregate = FALSE)
#' write_profile(x, tempfile(fileext = ".html"), source_text = FALSE)
write_profile <- function(x, path, ...) {
  call <- rlang::current_env()
  check_path(path, call, writing = TRUE)
  # The call contains the name of the function, which its warnings show.
  with_call(eval(rlang::call2(writer_of(path, call), quote(x), quote(path), quote(...))), sys.call())
}

# The name of the function that writes a file with this name: of the longest pattern that matches.
writer_of <- function(path, call) {
  known <- data_model()$file_names
  name <- tolower(basename(path))
  plain <- sub("\\.gz$", "", name)
  matches <- endsWith(plain, known$suffix)
  others <- which(is.na(matches))
  matches[others] <- vapply(known$pattern[others], grepl, NA, plain, perl = TRUE)
  found <- which(matches & (known$compressed | plain == name))
  if (length(found) > 0) {
    return(known$writer[[found[[which.max(nchar(known$name[found]))]]]])
  }
  never <- known$name[!known$compressed]
  abort_argument(
    c(
      paste0("Cannot determine a format from the file name `", shown_text(basename(path)), "`."),
      i = paste0(
        "Supported names: ", in_backticks(known$name), "; all except ", in_backticks(never), " also followed by `.gz`."
      ),
      i = "Or call the function of a format, such as `write_pprof()`."
    ),
    call
  )
}

in_backticks <- function(names) paste0("`", names, "`", collapse = ", ")
