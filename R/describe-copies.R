# Where vectors were copied, for the description of a profile.

# With the text of lines, as far as it is known. `share`: of all bytes that were allocated.
described_copies <- function(copies, allocated, texts) {
  text <- described_lines(copies, texts)$text
  copies$reason <- mapply(begin_with_assigned, copies$reason, text, USE.NAMES = FALSE)
  tibble::new_tibble(
    c(as.list(copies), list(share = if (allocated > 0) copies$bytes / allocated else 0 * copies$bytes, text = text)),
    nrow = nrow(copies)
  )
}

# Of the variables of a reason that belong to the same function, as in "`y` is also `x`", the one that the line assigns to
# is named first.
begin_with_assigned <- function(reason, text) {
  pattern <- "^(.*) is also (`[^`]+`)($| and .*)"
  if (is.na(reason) || is.na(text) || !grepl(pattern, reason)) {
    return(reason)
  }
  holders <- c(sub(pattern, "\\1", reason), sub(pattern, "\\2", reason))
  # `x` of `x$a`, of `x[[2]]`, and of the attribute `a` of `x`.
  variables <- sub("[$[].*", "", gsub("^.*`([^`]+)`$", "\\1", holders))
  is_assigned <- variables %in% assigned_variables(text)
  if (identical(is_assigned, c(FALSE, TRUE))) sub(pattern, "\\2 is also \\1\\3", reason) else reason
}

# The variables that a line assigns to. If it is a part of a statement, braces at its ends are ignored.
assigned_variables <- function(text) {
  text <- sub("[{[:space:]]+$", "", sub("^[}[:space:]]*(else\\b)?", "", text))
  code <- tryCatch(parse(text = text, keep.source = FALSE), error = function(error) NULL)
  # A loop or condition whose body follows, or a block that ends here.
  if (is.null(code)) {
    code <- tryCatch(parse(text = sub("[}[:space:]]+$", "", text), keep.source = FALSE), error = function(error) NULL)
  }
  found <- character()
  visit <- function(code) {
    if (is.call(code)) {
      if (rlang::is_call(code, c("<-", "<<-", "="), n = 2)) {
        target <- code[[2]]
        while (is.call(target) && length(target) > 1) target <- target[[2]]
        found <<- c(found, as.character(target))
      }
    }
    if (is.call(code) || is.expression(code)) {
      for (part in as.list(code)) {
        if (!missing(part)) visit(part)
      }
    }
  }
  visit(code)
  found
}
