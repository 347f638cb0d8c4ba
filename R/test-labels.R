# Labels of the tests of testthat. It has no hook around the code of a test, and nothing of it is changed: the line of the
# call of `test_that()` is known, and its description stands there in the file of tests.

# Adds the labels `testthat.file` and `testthat.test` to samples of tests. `folders`: where the files of tests may be.
with_test_labels <- function(x, folders, call) {
  if (!any(grepl("^(testthat::)?(test_that|it|source_file)$", x$functions$name))) {
    return(x)
  }
  found <- rust(rust_test_calls(x), call)
  if (length(found$files) > 0) {
    files <- basename(found$files)
    # Whether testthat evaluates helpers in the same way depends on its version. These are its names of files of tests.
    files[!grepl("^test.*[.][rR]$", files)] <- NA
    x <- label_samples(x, "testthat.file", files[found$samples$file])
  }
  if (length(found$calls$line) == 0) {
    return(x)
  }
  text <- text_of_tests(x, unique(found$calls$file), c(folders, "tests/testthat", "testthat"), call)
  names <- descriptions_of_calls(found$calls, text)
  tests <- vapply(split(names[found$tests$call], found$tests$test), paste, "", collapse = separator_of_descriptions())
  label_samples(x, "testthat.test", unname(tests)[found$samples$test])
}

# The text between the descriptions of `describe()` and `it()`, as the installed version of testthat reports them.
separator_of_descriptions <- function() {
  # Versions that nest descriptions have this function.
  nests <- rlang::is_installed("testthat") && exists("local_description_push", asNamespace("testthat"), inherits = FALSE)
  if (nests) " / " else ": "
}

# ---- Texts of files ------------------------------------------------------------------

# The text of each of these files, NULL if it is not found. testthat evaluates files in their folder, so that their names
# have none.
text_of_tests <- function(x, files, folders, call) {
  known <- x$.source_text
  wanted <- setdiff(files, known$filename)
  # Descriptions are taken from it, and no more.
  found <- text_of_files(wanted, unique(folders[dir.exists(folders)]), TRUE, NA, call)$text
  text <- rbind_text(known %||% no_text, found)
  stats::setNames(text$text[match(files, text$filename)], files)
}

# Folders that code names, such as `test_dir("tests")`.
folders_of_tests <- function(code, env = NULL) {
  named <- character()
  visit <- function(code) {
    if (!is.call(code)) {
      return()
    }
    if (grepl("^test_(dir|file|local|check|package)$", name_of_called(code)) && length(code) > 1) {
      named <<- c(named, value_of_path(code[[2]], env))
    }
    for (part in as.list(code)) if (!missing(part)) visit(part)
  }
  if (is.expression(code)) lapply(code, visit) else visit(code)
  c(named, dirname(named), file.path(named, "tests", "testthat"))
}

# The working directories of processes, as far as the system shows them.
folders_of_processes <- function(pids) {
  folders <- Sys.readlink(sprintf("/proc/%.0f/cwd", as.numeric(pids)))
  folders[!is.na(folders) & nzchar(folders)]
}

# The name of a called function without its package; empty for others.
name_of_called <- function(code) {
  f <- code[[1]]
  if (is.call(f) && is.symbol(f[[1]]) && as.character(f[[1]]) %in% c("::", ":::")) f <- f[[3]]
  if (is.symbol(f)) as.character(f) else ""
}

# A path that is a constant or the value of a variable.
value_of_path <- function(code, env) {
  if (is.symbol(code) && !identical(code, quote(expr = )) && is.environment(env)) {
    name <- as.character(code)
    code <- if (exists(name, env, inherits = FALSE) && bindingIsActive(name, env)) NULL else get0(name, env, mode = "character")
  }
  if (is_text(code)) code else character()
}

# ---- Descriptions ----------------------------------------------------------------------

# The description of each call: its text in the file, or, if that is no constant, its code; the file and the line if the
# text is not found, or has several calls there.
descriptions_of_calls <- function(calls, text) {
  names <- paste0(basename(calls$file), ":", calls$line)
  for (file in unique(calls$file)) {
    found <- calls_with_descriptions(text[[file]])
    of_file <- which(calls$file == file)
    at <- match(paste(calls$line[of_file], calls$name[of_file]), paste(found$line, found$name))
    names[of_file] <- ifelse(is.na(at), names[of_file], found$description[at])
  }
  names
}

# The calls of test_that(), describe() and it() in the text of a file: `name`, `line` of the statement that a call is part
# of, and `description`. A statement with several calls of a function has none.
calls_with_descriptions <- function(text) {
  none <- data.frame(name = character(), line = integer(), description = character())
  parsed <- if (!is.na(text)) tryCatch(parse(text = text, keep.source = TRUE), error = function(error) NULL)
  found <- list()
  add <- function(code, line) {
    name <- name_of_called(code)
    if (name %in% c("test_that", "describe", "it") && length(code) > 1) {
      description <- code[["description", exact = TRUE]] %||% code[["desc", exact = TRUE]] %||% code[[2]]
      if (!is_text(description)) description <- code_in_one_line(description)
      found[[length(found) + 1]] <<- data.frame(name = name, line = line, description = description)
    }
  }
  # Statements of a block have lines of their own.
  visit <- function(code, line) {
    if (!is.call(code)) {
      return()
    }
    lines <- lines_of_statements(code)
    add(code, line)
    for (i in seq_along(code)) {
      part <- code[[i]]
      if (!missing(part)) visit(part, if (is.null(lines)) line else lines[[i]])
    }
  }
  lines <- lines_of_statements(parsed)
  for (i in seq_along(parsed)) visit(parsed[[i]], lines[[i]])
  found <- rbind(none, do.call(rbind, found))
  found[!paste(found$name, found$line) %in% paste(found$name, found$line)[duplicated(found[c("name", "line")])], ]
}

# The first line of each statement of a block, or of an expression, NULL of other code.
lines_of_statements <- function(code) {
  srcrefs <- attr(code, "srcref")
  is_list <- is.list(srcrefs) && length(srcrefs) == length(code)
  if (is_list) vapply(srcrefs, function(srcref) as.integer(srcref)[[1]], 0L)
}

# The expressions of a script, NULL if there are none.
code_of_file <- function(file) {
  if (length(file) == 1 && file.exists(file)) tryCatch(parse(file, keep.source = FALSE), error = function(error) NULL)
}
