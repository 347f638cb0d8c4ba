# The text of code that was typed at the prompt.
#
# R numbers the lines of each expression at the prompt from 1, and their file is "". A profile therefore cannot tell them
# apart, but the functions that such an expression has created still have its text.

# Gives a file to functions that were typed at the prompt, such as `<f>` for `f`, and `<expression>` for functions
# within the recorded `code`, and adds the text of these files. `env` is where the code was evaluated.
with_typed_code <- function(x, code, env) {
  functions <- x$functions
  has_line <- functions$function_id %in% x$locations$function_id[x$locations$line > 0]
  rows <- which(functions$filename %in% "" & has_line)
  of_code <- typed_text(attr(code, "srcfile"))
  texts <- list()
  for (row in rows) {
    name <- functions$name[[row]]
    text <- typed_text(srcfile_of_name(name, env))
    file <- paste0("<", name, ">")
    if (is.null(text)) {
      text <- of_code
      file <- "<expression>"
    }
    lines <- x$locations$line[x$locations$function_id == functions$function_id[[row]]]
    # The code may come from another expression.
    if (!is.null(text) && max(lines) <= length(text)) {
      functions$filename[[row]] <- file
      texts[[file]] <- paste0(text, "\n", collapse = "")
    }
  }
  if (length(texts) == 0) {
    return(x)
  }
  x$functions <- functions
  x$.source_text <- rbind_text(x$.source_text %||% no_text, source_texts(texts, "srcref"))
  x
}

srcfile_of_name <- function(name, env) {
  found <- if (nzchar(name) && nchar(name, "bytes") <= 10000) get0(name, env, mode = "function")
  srcref <- attr(found, "srcref")
  if (inherits(srcref, "srcref")) attr(srcref, "srcfile")
}

# The lines of an expression at the prompt, `NULL` for the source of a file.
typed_text <- function(srcfile) {
  if (is.environment(srcfile) && identical(srcfile$filename, "") && is.character(srcfile$lines)) {
    strsplit(paste(srcfile$lines, collapse = "\n"), "\n", fixed = TRUE)[[1]]
  }
}
