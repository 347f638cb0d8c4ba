# Writes a profile in the format that the file name implies.

#' Write a profile in the format that the file name implies
#'
#' `write_profile()` writes a profile in the format that the end of `path` determines. ([read_profile()] detects the
#' format by the content of a file.)
#'
#' @details
#' Upper and lower case letters are equivalent. Each name may be followed by `.gz`, which compresses the file.
#'
#' | name of the file | function |
#' |---|---|
#' | `*.pb`, `*.pprof`, `*.prof` | [write_pprof()], whose files are always compressed |
#' | `*.out`, `*.Rprof` | [write_rprof()] |
#' | `*.otlp`, `*.otlp.json` | [write_otlp()], as protocol buffers or JSON |
#' | `*.speedscope.json` | [write_speedscope()] |
#' | `*.cpuprofile` | [write_cpuprofile()] |
#' | `*.firefox.json` | [write_firefox()] |
#' | `*.collapsed`, `*.folded` | [write_collapsed()] |
#' | `*.callgrind`, `callgrind.out`, `callgrind.out.*` | [write_callgrind()] |
#' | `*.html`, `*.htm` | [write_profile_page()], which does not support `.gz` |
#'
#' Other names are errors, including `*.json` alone, which several formats use.
#'
#' @param x A profile, see [profile_data].
#' @param path Path of the file to write.
#' @param ... Further arguments of the function that writes the file, such as `aggregate` of [write_pprof()].
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
write_profile <- function(x, path, ...) {
  call <- rlang::current_env()
  check_path(path, call, writing = TRUE)
  # The call contains the name of the function, which its warnings show.
  with_call(eval(rlang::call2(writer_of(path, call), quote(x), quote(path), quote(...))), sys.call())
}

# The name of the function that writes a file with this name.
writer_of <- function(path, call) {
  name <- tolower(basename(path))
  plain <- sub("\\.gz$", "", name)
  for (format in names_of_formats()) {
    if (grepl(format$pattern, plain) && !(plain != name && identical(format$gzip, FALSE))) {
      return(format$write)
    }
  }
  shown <- vapply(names_of_formats(), `[[`, "", "shown")
  abort_argument(
    c(
      paste0("Cannot determine a format from the file name `", shown_text(basename(path)), "`."),
      i = paste0("Supported names: ", paste(shown, collapse = ", "), "; all except `*.html` also followed by `.gz`."),
      i = "Or call the function of a format, such as `write_pprof()`."
    ),
    call
  )
}

# The patterns of names, without `.gz`.
names_of_formats <- function() {
  list(
    list(pattern = "\\.otlp(\\.json)?$", shown = "`*.otlp`, `*.otlp.json`", write = "write_otlp"),
    list(pattern = "\\.speedscope\\.json$", shown = "`*.speedscope.json`", write = "write_speedscope"),
    list(pattern = "\\.firefox\\.json$", shown = "`*.firefox.json`", write = "write_firefox"),
    list(pattern = "\\.cpuprofile$", shown = "`*.cpuprofile`", write = "write_cpuprofile"),
    list(pattern = "\\.(pb|pprof|prof)$", shown = "`*.pb`, `*.pprof`, `*.prof`", write = "write_pprof"),
    list(pattern = "(^|\\.)callgrind(\\.out(\\..*)?)?$", shown = "`*.callgrind`, `callgrind.out.*`", write = "write_callgrind"),
    list(pattern = "\\.(out|rprof)$", shown = "`*.out`, `*.Rprof`", write = "write_rprof"),
    list(pattern = "\\.(collapsed|folded)$", shown = "`*.collapsed`, `*.folded`", write = "write_collapsed"),
    list(pattern = "\\.html?$", shown = "`*.html`", write = "write_profile_page", gzip = FALSE)
  )
}
