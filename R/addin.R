# The addin "Profile selection" of RStudio and Positron, see inst/rstudio/addins.dcf. It appears in their menu of
# addins.

# Records the selected code, or the whole document if nothing is selected, and shows the page.
profile_selection <- function(context = editor_context()) {
  selection <- context$selection[[1]]
  lines <- strsplit(selection$text, "\n", fixed = TRUE)[[1]]
  first <- selection$range$start[[1]]
  if (!any(grepl("[^[:space:]]", lines))) {
    lines <- context$contents
    first <- 1
  }
  file <- if (nzchar(context$path)) path.expand(context$path) else "Untitled"
  code <- parse_selection(lines, first, file)
  x <- eval(rlang::call2("record_profile", code, .ns = "profile"), globalenv())
  # The document may not be saved.
  text <- lines_of_text(paste(context$contents, collapse = "\n"))
  text <- tibble::tibble(filename = file, text = text, from = "srcref", changed = FALSE)
  others <- slice_rows(x$.source_text, which(x$.source_text$filename != file))
  x$.source_text <- vctrs::vec_rbind(text, others)
  x$.comments$comment <- paste0(basename(file), ", line ", first)
  print(profile_page(x))
  invisible(x)
}

editor_context <- function() {
  rlang::check_installed("rstudioapi", "to profile the selected code.")
  rstudioapi::getSourceEditorContext()
}

# The code as one expression, whose source references have the lines of the document.
parse_selection <- function(lines, first, file) {
  lines <- c(rep("", first - 1), paste0("{", lines[1]), lines[-1], "}")
  exprs <- parse(text = lines, srcfile = srcfilecopy(file, lines), keep.source = TRUE)
  exprs[[1]]
}
