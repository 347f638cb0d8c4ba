# The lines of chunks and of their expressions in a document of knitr, for recordings that log them
# (inst/record/places.R): knitr does not pass them on, and evaluate 1.0 removes the source references of code.

# Labels chunks, and calls `mark` each time when other code of a document begins to run: with the kind "document", its
# first and last line, and the file. Without lines, code of knitr runs. `mark` returns what it was called with before.
# `name_file` names the file in the source references of code, if it has a given name.
label_chunks <- function(mark, name_file) {
  the$chunk_recorder <- list(mark = mark, name_file = name_file)
  label_work("knitr")
}

# Marks a chunk: list(handler, end), the handler with which it is to be evaluated, and a function that ends it.
.mark_chunk <- function(recorder, code, handler) {
  mark <- recorder$mark
  place <- tryCatch(place_of_chunk(code), error = function(error) NULL)
  if (is.null(place)) {
    return(list(handler = handler, end = function() NULL))
  }
  before <- mark("document", place$line, place$line, place$file)
  own <- handler$source
  line <- place$code
  # Called before each expression. With two arguments, evaluate uses what it returns.
  handler$source <- function(src, expr) {
    if (!is.na(line)) {
      # Older versions of evaluate do not pass on the code, and it may have source references, with the line in the chunk.
      parsed <- if (missing(expr)) get0("call", parent.frame(), inherits = FALSE) else expr
      recorder$name_file(parsed, "<text>", paste0(place$file, "?line=", place$code))
      size <- length(split_lines(src$src))
      mark("document", line, line + size - 1L, place$file)
      line <<- line + size
    }
    if (length(formals(args(own))) > 1) {
      own(src, expr)
    } else {
      own(src)
      src
    }
  }
  # The chunk may be in a document that another chunk renders.
  end <- function() {
    if (is.null(before)) mark("document", NA_integer_) else mark("document", before$first, before$last, before$name)
  }
  list(handler = handler, end = end)
}

# list(file, line, code), for the chunk that is evaluated: the line of its header, 0 if it is not found, and of its code, NA
# if the document has other code. NULL if the document has no file.
place_of_chunk <- function(code) {
  file <- knitr::current_input(dir = TRUE)
  if (is.null(file) || !file.exists(file)) {
    return(NULL)
  }
  # Those of child documents contain `./`.
  file <- normalizePath(file)
  text <- readLines(file, warn = FALSE, encoding = "UTF-8")
  begin <- knitr::knit_patterns$get("chunk.begin")
  options <- trimws(knitr::opts_current$get("params.src") %||% "")
  headers <- grep(begin, text, perl = TRUE)
  written <- trimws(sub(begin, "\\1", text[headers], perl = TRUE))
  # Markdown begins with the engine.
  headers <- headers[written == options | sub("^[a-zA-Z0-9_]+[ ,]*", "", written) == options]
  code <- split_lines(code)
  starts <- vapply(headers, function(header) line_of_code(text, header, code), 0L)
  # Several chunks may be equal. They run in their order.
  known <- the$chunks_run[[file]] %||% 0L
  found <- which(!is.na(starts))
  at <- c(found[headers[found] > known], found)[1]
  if (is.na(at)) {
    # Code that knitr has changed, for example because of the option `tidy`.
    return(list(file = file, line = if (length(headers) == 1) headers else 0L, code = NA_integer_))
  }
  the$chunks_run[[file]] <- headers[[at]]
  list(file = file, line = headers[[at]], code = starts[[at]])
}

# The line at which the code of a chunk begins, NA if it is not there. Options may be before it, chunks in a list are
# indented, and knitr adds comment signs to expressions that are not evaluated.
line_of_code <- function(text, header, code) {
  bare <- function(lines) sub("^[[:space:]>]+", "", trimws(lines, "right"))
  first <- header + 1L
  while (grepl("^[[:space:]>]*#[|]", text[first])) first <- first + 1L
  # A blank line after options is no code.
  for (start in unique(c(header + 1L, first, first + 1L))) {
    lines <- bare(text[start - 1L + seq_along(code)])
    if (!anyNA(lines) && all(lines == bare(code) | lines == bare(sub("^## ", "", code)))) {
      return(start)
    }
  }
  NA_integer_
}

split_lines <- function(text) {
  lines <- strsplit(sub("\n$", "", paste(text, collapse = "\n")), "\n", fixed = TRUE)[[1]]
  if (length(lines) == 0) "" else lines
}
