# Reads and writes files with names of all kinds, and compares the results with base R.
library(profile)
folder <- tempfile()
dir.create(folder)
setwd(folder)
sample <- system.file("samples/rprof/1.out", package = "profile")
x <- read_rprof(sample)

bytes <- function(...) rawToChar(as.raw(c(...)))
marked <- function(x, encoding) {
  Encoding(x) <- encoding
  x
}
names <- list(
  utf8 = bytes(0x77, 0xc3, 0xa9), latin1 = bytes(0x77, 0xe9), invalid = bytes(0x77, 0xff, 0xfe),
  marked_utf8 = marked(bytes(0x77, 0xc3, 0xa9), "UTF-8"), marked_latin1 = marked(bytes(0x77, 0xe9), "latin1"),
  beyond_latin1 = marked(bytes(0x77, 0xe2, 0x82, 0xac), "UTF-8")
)
# The bytes of the name that base R opens; none if the locale does not have these characters.
opened <- function(name) {
  native <- if (Encoding(name) == "unknown") name else iconv(name, Encoding(name), "")
  if (is.na(native)) character() else paste(charToRaw(native), collapse = " ")
}
there <- function() {
  vapply(dir(all.files = TRUE, no.. = TRUE), function(x) paste(charToRaw(x), collapse = " "), "", USE.NAMES = FALSE)
}
expect <- function(...) {
  if (!all(...)) stop("not so in ", case, ": ", deparse1(substitute(list(...))), call. = FALSE)
}
class_of <- function(code) tryCatch({code; "none"}, error = function(e) class(e)[[1]])
message_of <- function(code) tryCatch({code; "none"}, error = function(e) conditionMessage(e))

writers <- list(
  rprof = write_rprof, pprof = write_pprof, otlp = write_otlp,
  otlp_unsummed = function(x, path) write_otlp(x, path, aggregate = FALSE, format = "json")
)
readers <- list(pprof = read_pprof, rprof = read_rprof, otlp = read_otlp, otlp_unsummed = read_otlp)

for (name in names(names)) {
  path <- names[[name]]
  file <- opened(path)
  for (format in names(writers)) {
    case <- paste(name, format)
    read <- readers[[format]]
    if (length(file) == 0) {
      expect(class_of(writers[[format]](x, path)) == "profile_error_write", length(there()) == 0)
      expect(class_of(read(path)) == "profile_error_open")
      expect(grepl("cannot be represented in this locale", message_of(read(path))))
      next
    }
    writers[[format]](x, path)
    expect(identical(there(), file))
    for (y in list(read(path), read_profile(path))) {
      expect(nrow(y$samples) > 0)
      uri <- y$sources$source_uri
      expect(length(uri) == 1, validUTF8(uri), !grepl("\ufffd", uri))
      validate_profile(y)
      invisible(capture.output(print(y)))
    }
    if (format == "rprof") shown <- uri
    con <- file(path)
    y <- read(con, source_uri = con)
    close(con)
    expect(identical(y$sources$source_uri, uri))
    unlink(path)
    expect(length(there()) == 0)
    said <- message_of(read(path))
    expect(class_of(read(path)) == "profile_error_open", validUTF8(said), grepl(shown, said, fixed = TRUE))
    said <- message_of(writers[[format]](x, paste0(path, "/below")))
    expect(validUTF8(said), grepl(shown, said, fixed = TRUE), length(there()) == 0)
    # As the folder of a file.
    dir.create(path)
    inside <- paste0(path, "/x")
    writers[[format]](x, inside)
    expect(identical(dir(path), "x"))
    unlink(inside)
    unlink(path, recursive = TRUE)
    expect(length(there()) == 0)
  }
}

case <- "source_uri"
expect(identical(read_rprof(sample, source_uri = names$invalid)$sources$source_uri, "w<ff><fe>") ||
  l10n_info()$`Latin-1`)
cat("done\n")
