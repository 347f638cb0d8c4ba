# Paths, and texts of whatever encoding.
#
# A path is bytes: on Unix the core gets those by which R itself would open the file, in
# the encoding of the locale, and beside them a text in UTF-8 for messages.

# What the core and R's own functions open, and what messages call it: c(native, shown).
# What the locale cannot represent is refused, since R would replace characters of it and
# so open another file.
file_path <- function(path, class, call) {
  check_path(path, call)
  shown <- shown_text(path)
  native <- native_text(path)
  if (is.na(native)) {
    verb <- if (class == "profile_error_write") "write" else "read"
    abort_profile(
      c(
        paste0("Cannot ", verb, " `", shown, "`: the path cannot be represented in this locale."),
        i = paste0("The locale is \"", Sys.getlocale("LC_CTYPE"), "\"; in one with UTF-8 every path can.")
      ),
      class,
      path = shown,
      call = call
    )
  }
  c(path.expand(native), shown)
}

# In the encoding of the locale, NA if it has no such characters. A string of unknown
# encoding is its bytes.
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

# Valid UTF-8 in any case, with bytes that are no text as `<e9>`. Outside of ASCII the
# C locale knows no text at all: there UTF-8 is taken as such.
shown_text <- function(x) {
  text <- if (Encoding(x) == "unknown") iconv(x, "", "UTF-8") else enc2utf8(x)
  if (is.na(text)) {
    text <- x
    Encoding(text) <- "UTF-8"
  }
  if (validUTF8(text)) text else iconv(text, "UTF-8", "UTF-8", sub = "byte")
}

# As file.path() and shQuote(), which fail where a path is no valid text.
in_folder <- function(folder, name) {
  paste0(folder, "/", name)
}

shell_quote <- function(x) {
  quoted <- gsub("'", "'\\''", x, fixed = TRUE, useBytes = TRUE)
  Encoding(quoted) <- "unknown"
  paste0("'", quoted, "'")
}
