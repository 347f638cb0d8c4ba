# Paths and strings in any encoding.
#
# On Unix a path is a sequence of bytes. The core gets the bytes with which R itself would open the
# file, in the encoding of the locale, and the path in UTF-8 for messages.

# c(native, shown): the path to open, and its form in messages. A path that the locale cannot represent is an error,
# since R would replace some of its characters and open another file.
file_path <- function(path, class, call) {
  writing <- class == "profile_error_write"
  check_path(path, call, writing)
  shown <- shown_text(path)
  verb <- if (writing) "write" else "read"
  hint <- url_hint(path, writing)
  if (!is.null(hint)) {
    shown <- shown_url(shown)
    abort_profile(
      c(paste0("Cannot ", verb, " `", shown, "`: it is a URL, not the path of a file."), i = hint), class,
      path = shown, call = call
    )
  }
  native <- native_text(path)
  if (is.na(native)) {
    abort_profile(c(
      paste0("Cannot ", verb, " `", shown, "`: the path cannot be represented in this locale."),
      i = paste0("The locale is \"", Sys.getlocale("LC_CTYPE"), "\"; in one with UTF-8 every path can.")
    ), class, path = shown, call = call)
  }
  c(path.expand(native), shown)
}

# Text in the encoding of the locale, NA if that is impossible. A string of unknown encoding is not changed.
native_text <- function(x) {
  encoding <- Encoding(x)
  if (encoding == "unknown") {
    return(x)
  }
  if (.Platform$OS.type == "windows") {
    return(enc2utf8(x))
  }
  native <- iconv(x, encoding, "")
  # Some implementations of iconv() replace characters silently.
  if (identical(iconv(native, "", "UTF-8"), enc2utf8(x))) native else NA_character_
}

# Text for messages, which is always valid UTF-8; bytes that are not valid text become `<e9>`.
shown_text <- function(x) {
  text <- utf8_text(x)
  if (is.na(text)) iconv(x, "UTF-8", "UTF-8", sub = "byte") else text
}

# Text in UTF-8, NA if it is not valid. The C locale has no characters outside ASCII, so there the bytes are treated as
# UTF-8.
utf8_text <- function(x) {
  text <- if (Encoding(x) == "unknown") iconv(x, "", "UTF-8") else enc2utf8(x)
  if (is.na(text)) {
    text <- x
    Encoding(text) <- "UTF-8"
  }
  if (validUTF8(text)) text else NA_character_
}

# Like file.path() and shQuote(), which fail if a path is not valid text.
in_folder <- function(folder, name) {
  paste0(folder, "/", name, recycle0 = TRUE)
}

shell_quote <- function(x) {
  quoted <- gsub("'", "'\\''", x, fixed = TRUE, useBytes = TRUE)
  Encoding(quoted) <- "unknown"
  paste0("'", quoted, "'")
}
