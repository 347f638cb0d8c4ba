# Makes names, paths and lines of code safe to print, since files can contain any characters.
#
# A text is cut before it is escaped or measured, so that the time does not depend on its length.

# Control characters, which could control the terminal, and characters that change the direction of text or
# end a line.
unprintable <- paste0(
  "[\u0001-\u001f\u007f-\u009f",
  "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)

# The maximum number of characters that are shown of a text, in lines of any width. R's functions for single characters
# are slow for longer texts, some of them by the square of the length, and cannot be interrupted.
most_characters <- 10000L

# Cuts a text, and replaces unprintable characters by escape sequences, as in R strings.
printable <- function(x, n = most_characters, from = "end", ellipsis = NULL) {
  x <- cut_text(valid_text(x), n, from, ellipsis)
  rows <- grep(unprintable, x, perl = TRUE)
  x[rows] <- vapply(x[rows], replace_unprintable, "", escape_sequence)
  x
}

# Text for a place of this width.
shown_name <- function(x, width, from = "end", ellipsis = NULL) {
  shorten(printable(x, characters_for(width), from, ellipsis), width, from, ellipsis)
}

# The name of a sample type, a unit or a kind of source. It is usually short, but in a file it can be any text.
shown_label <- function(x) {
  shown_name(x, 60)
}

# Cuts texts to `n` characters: the first, the last, or both ends. An ellipsis marks the cut.
cut_text <- function(x, n, from, ellipsis = NULL) {
  long <- which(nchar(x, "bytes") > n)
  long <- long[nchar(x[long]) > n]
  if (length(long) > 0) {
    ellipsis <- ellipsis %||% default_ellipsis()
    text <- x[long]
    size <- nchar(text)
    at_end <- switch(from, end = 0, start = n, middle = n %/% 3)
    x[long] <- paste0(substr(text, 1, n - at_end), ellipsis, substr(text, size - at_end + 1, size))
  }
  x
}

# Lines of code without surrounding blanks. (Generated files can have lines of megabytes.)
trimmed <- function(lines) {
  trimws(cut_text(valid_text(lines), most_characters, "end"))
}

# A number of characters that fills this width, even if many of them have no width, such as combining characters.
characters_for <- function(width) {
  pmin(4 * max(width, 1) + 16, most_characters)
}

default_ellipsis <- function() {
  if (l10n_info()[["UTF-8"]]) "\u2026" else "~"
}

# Replaces each unprintable character by the result of a function. The time is linear in the length; gregexpr() and
# regmatches() would take quadratic time.
replace_unprintable <- function(text, escape) {
  chars <- intToUtf8(utf8ToInt(text), multiple = TRUE)
  at <- grep(unprintable, chars, perl = TRUE)
  distinct <- unique(chars[at])
  chars[at] <- vapply(distinct, escape, "")[match(chars[at], distinct)]
  paste(chars, collapse = "")
}

valid_text <- function(x) {
  x <- as.character(x)
  # iconv() loads tables of the C library even for nothing, and without memory for them calls the encodings unsupported.
  convert <- function(at, from) if (any(at)) replace(x, at, iconv(x[at], from, "UTF-8", sub = "byte")) else x
  x <- enc2utf8(convert(Encoding(x) == "bytes", "ASCII"))
  convert(!is.na(x) & !validUTF8(x), "UTF-8")
}

escape_sequence <- function(char) {
  code <- utf8ToInt(char)
  short <- c("7" = "\\a", "8" = "\\b", "9" = "\\t", "10" = "\\n", "11" = "\\v", "12" = "\\f", "13" = "\\r")
  if (!is.na(short[as.character(code)])) {
    short[[as.character(code)]]
  } else if (code < 0x80) {
    sprintf("\\%03o", code)
  } else {
    sprintf("\\u%04x", code)
  }
}

# Truncates strings to a width, with an ellipsis.
shorten <- function(x, width, from = "end", ellipsis = NULL) {
  ellipsis <- ellipsis %||% default_ellipsis()
  x <- cut_text(x, characters_for(width), from, ellipsis)
  # Text as it will be printed: characters that the locale lacks appear as `<U+00E9>`.
  native <- enc2native(x)
  width <- rep_len(width, length(x))
  for (i in which(!is.na(x) & nchar(native, "width", allowNA = TRUE) > width)) {
    chars <- strsplit(native[[i]], "")[[1]]
    if (from == "start") {
      chars <- rev(chars)
    }
    kept <- chars[cumsum(nchar(chars, "width")) < width[[i]]]
    x[[i]] <- paste(if (from == "start") c(ellipsis, rev(kept)) else c(kept, ellipsis), collapse = "")
  }
  x
}

# Wraps text after a label. No-break spaces are printed as spaces.
wrap <- function(label, text, width) {
  width <- min(max(width, nchar(label) + 20), 10000)
  # Lines of strwrap() are shorter than `width`.
  lines <- strwrap(text, width = width + 1, initial = label, prefix = strrep(" ", nchar(label)))
  gsub("\u00a0", " ", lines, fixed = TRUE)
}

line_width <- function(width, call) {
  width <- width %||% getOption("width")
  if (!is.numeric(width) || length(width) != 1 || !isTRUE(width >= 1)) {
    abort_argument(paste0("`width` must be a number of columns, at least 1, or `NULL`, not ", describe_object(width), "."), call)
  }
  width
}
