# The text of the source files that a profile refers to, and the figures of their lines.

#' Collect the text of source files
#'
#' @description
#' A profile refers to lines of files, which may change or disappear. `collect_sources()` stores their text
#' in the profile, so that it can be shown later, and on other machines: in [profile_page()],
#' [annotate_lines()] and [describe_profile()].
#'
#' @details
#' Text is taken from:
#'
#' - files that exist, relative to the working directory if the path is relative. Only regular files of at
#'   most 5 MB with an extension of source code are read (such as `.R`, `.Rmd`, `.cpp`), so that a profile
#'   from somebody else cannot make you publish other files;
#' - the source references of packages that are loaded and were installed with `--with-keep.source`, and of
#'   functions in the global environment, for code that was entered in the console or parsed from text.
#'
#' Files without a line in the profile are not collected. Text that is neither UTF-8 nor in the encoding of
#' the locale is read as Latin-1.
#'
#' @param x A profile, see [profile_data].
#' @param ... Must be empty.
#' @param directory Directories to search for files that do not exist, such as those of a profile from
#'   another machine. `home/me/code/run.R` is searched in a directory as `home/me/code/run.R`,
#'   `me/code/run.R`, `code/run.R`, and `run.R`; the first one that exists is used.
#'
#' @return The profile, of version 2.0, with the table `.source_text`, which contains a row for each file
#'   whose text was found. Existing rows are kept.
#'   \describe{
#'   \item{filename}{character: as in `functions`}
#'   \item{text}{character: the text, with a line feed at the end of each line}
#'   \item{from}{character: `"file"` or `"srcref"`}
#'   \item{changed}{logical: whether the file was changed after the profile was recorded, so that its lines
#'     may differ. `NA` if unknown.}
#'   }
#' @section Errors:
#' `profile_error_invalid` if `x` is not valid. Files that cannot be read are left out.
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#'
#' # The files have moved since this profile was recorded:
#' x <- collect_sources(x, directory = system.file("samples/report", package = "profile"))
#' x$.source_text
#' annotate_lines(x, "sales.R")
collect_sources <- function(x, ..., directory = NULL) {
  rlang::check_dots_empty()
  call <- rlang::current_env()
  if (!is.null(directory) && (!is.character(directory) || anyNA(directory) || !all(dir.exists(directory)))) {
    abort_argument("`directory` must contain paths of directories that exist, or be `NULL`.", call)
  }
  sources_added(as_unchecked_v2(x, call), call, directory)
}

sources_added <- function(x, call, directory = NULL) {
  rust(rust_validate(x), call)
  known <- x$.source_text %||% no_text
  wanted <- setdiff(files_with_lines(x), c(known$filename, ""))
  found <- text_of_files(wanted, directory, end_of_recording(x, call))
  wanted <- setdiff(wanted, found$filename)
  found <- vctrs::vec_rbind(found, text_of_srcrefs(wanted, x))
  x$.source_text <- vctrs::vec_rbind(known, found)
  x
}

no_text <- tibble::tibble(filename = character(), text = character(), from = character(), changed = logical())

files_with_lines <- function(x) {
  has_line <- x$locations$line > 0
  ids <- x$locations$function_id[which(has_line)]
  files <- x$functions$filename[x$functions$function_id %in% ids]
  unique(files[!is.na(files)])
}

# The latest time at which the last run can have ended; NA if it is not known.
end_of_recording <- function(x, call) {
  start <- x$sources$source_timestamp
  if (length(start) == 0) {
    return(NA)
  }
  sampled <- attr(summary_of(x, NULL, call), "time") %||% 0
  recorded <- x$sources[[".duration_nanos"]] / 1e9
  max(start) + max(sampled, recorded, na.rm = TRUE)
}

# ---- Files -------------------------------------------------------------------------

source_extensions <- c(
  "R", "r", "S", "s", "q", "Rmd", "rmd", "qmd", "Rnw", "rnw", "Rprofile", "c", "cc", "cpp", "cxx", "h", "hh", "hpp",
  "f", "f77", "f90", "f95", "rs", "go", "py", "js", "ts", "java", "stan", "jl"
)

text_of_files <- function(files, directories, time) {
  files <- files[sub("^.*[.]", "", files) %in% source_extensions]
  path <- vapply(files, existing_path, "", directories, USE.NAMES = FALSE)
  text <- vapply(path, function(path) {
    tryCatch(text_of_file(path), error = function(e) NA_character_, warning = function(w) NA_character_)
  }, "", USE.NAMES = FALSE)
  found <- !is.na(text)
  tibble::tibble(
    filename = files[found],
    text = text[found],
    from = rep("file", sum(found)),
    changed = as.numeric(file.mtime(path[found])) > time
  )
}

existing_path <- function(file, directories) {
  is_file <- function(path) utils::file_test("-f", path)
  if (length(directories) == 0 || is_file(file)) {
    return(file)
  }
  parts <- strsplit(file, "[/\\\\]+")[[1]]
  parts <- parts[!parts %in% c("", ".", "..")]
  ends <- vapply(seq_along(parts), function(i) paste(parts[i:length(parts)], collapse = "/"), "")
  paths <- as.vector(t(outer(directories, ends, file.path)))
  c(paths[is_file(paths)], file)[[1]]
}

text_of_file <- function(file) {
  if (!utils::file_test("-f", file) || file.size(file) > 5e6) {
    return(NA_character_)
  }
  bytes <- readBin(file, "raw", file.size(file))
  if (any(bytes == 0)) NA_character_ else lines_of_text(rawToChar(bytes))
}

# Converts text to UTF-8 with line feeds.
lines_of_text <- function(text) {
  if (!validUTF8(text)) {
    text <- iconv(text, if (l10n_info()[["UTF-8"]]) "latin1" else "", "UTF-8", sub = "byte")
  }
  text <- sub("^\ufeff", "", enc2utf8(`Encoding<-`(text, "UTF-8")))
  text <- gsub("\r\n?", "\n", text)
  if (nzchar(text) && !endsWith(text, "\n")) paste0(text, "\n") else text
}

# ---- Source references -------------------------------------------------------------

text_of_srcrefs <- function(files, x) {
  if (length(files) == 0) {
    return(no_text)
  }
  packages <- setdiff(package_of_file(files), NA)
  environments <- c(list(globalenv()), lapply(intersect(packages, loadedNamespaces()), asNamespace))
  texts <- unlist(lapply(environments, function(env) texts_of_functions(env)), recursive = FALSE)
  texts <- texts[!duplicated(names(texts))]
  found <- intersect(files, names(texts))
  tibble::tibble(
    filename = found,
    text = vapply(texts[found], lines_of_text, "", USE.NAMES = FALSE),
    from = rep("srcref", length(found)),
    changed = rep(FALSE, length(found))
  )
}

# A list of texts, named by file. A package may contain objects that raise errors when they are used, and source
# references of any form.
texts_of_functions <- function(env) {
  texts <- list()
  seen <- list()
  for (name in ls(env, all.names = TRUE)) {
    found <- tryCatch({
      value <- if (is_at_hand(name, env)) get0(name, env, inherits = FALSE)
      srcref <- if (is.function(value)) attr(value, "srcref")
      srcfile <- if (!is.null(srcref)) attr(srcref, "srcfile")
      # All functions of a package share one text.
      srcfile <- srcfile$original %||% srcfile
      if (is.environment(srcfile) && !any(vapply(seen, identical, NA, srcfile))) {
        seen <- c(seen, list(srcfile))
        split_text(as.character(srcfile$lines), srcfile$filename)
      }
    }, error = function(e) NULL)
    texts <- c(texts, found)
  }
  texts
}

# Whether a value can be read without running code. Active bindings and promises run code, apart from the promises of
# a namespace, which load functions.
is_at_hand <- function(name, env) {
  !bindingIsActive(name, env) && (isNamespace(env) || !rlang::env_binding_are_lazy(env, name))
}

# Directives such as `#line 1 "R/file.R"` divide the concatenated files of a package.
split_text <- function(lines, filename) {
  pattern <- "^#line ([0-9]+) \"(.*)\"$"
  starts <- grep(pattern, lines)
  if (length(starts) == 0) {
    named <- rlang::is_string(filename) && nzchar(filename) && length(lines) > 0
    return(if (named) rlang::set_names(list(paste0(lines, collapse = "\n")), filename))
  }
  ends <- c(starts[-1] - 1L, length(lines))
  texts <- Map(function(start, end) {
    # Empty lines replace those before the first line, so that line numbers are kept.
    first <- as.numeric(sub(pattern, "\\1", lines[[start]]))
    c(rep("", min(max(first - 1, 0), 1e6)), lines[seq_len(end - start) + start])
  }, starts, ends)
  rlang::set_names(lapply(texts, paste0, collapse = "\n"), sub(pattern, "\\2", lines[starts]))
}

# ---- Lines -------------------------------------------------------------------------

#' The figures of the lines of a file
#'
#' @description
#' Returns the lines of one file with their self and total, and their text if it is available: in the profile
#' (see [collect_sources()]), or in a file that exists.
#'
#' @param x A profile, see [profile_data].
#' @param file A file of the profile, or the end of its path, if that is unique. By default the one with the
#'   greatest self of its lines.
#' @param ... Must be empty.
#' @param type The sample type to sum, as in [summary()][summary.profile_data()].
#'
#' @return A tibble with the columns `line`, `text` (`NA` if unknown), those of `summary(x)$by_line`
#'   (`self`, `total`, `self_share`, `total_share`, ...), and `filename`. If the text is known, it has a row
#'   for each line of the text, with 0 if nothing was recorded, and for each line with samples that the text
#'   lacks; otherwise it has a row for each line with samples.
#'
#'   The attribute `changed` is that of [collect_sources()].
#' @section Errors:
#' - `profile_error_argument` if the profile has no lines of `file`, or if the paths of several files end with it;
#' - those of [summary()][summary.profile_data()].
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#' annotate_lines(x, "sales.R")
annotate_lines <- function(x, file = NULL, ..., type = NULL) {
  rlang::check_dots_empty()
  call <- rlang::current_env()
  check_type(type, call)
  x <- as_unchecked_v2(x, call)
  figures <- rust(rust_summarise(x, type), call)$by_line
  file <- find_file(file, figures, call)
  figures <- figures[figures$filename == file, ]
  figures <- figures[order(figures$line), ]
  source <- sources_added(x, call)$.source_text
  source <- source[match(file, source$filename), ]
  text <- strsplit(source$text, "\n", fixed = TRUE)[[1]]
  known <- !is.na(source$text)
  # A profile can have lines that the text lacks.
  line <- if (known) sort(union(seq_along(text), figures$line)) else figures$line
  row <- match(line, figures$line)
  columns <- as.list(figures[setdiff(names(figures), c("filename", "line"))])
  columns <- lapply(columns, function(column) {
    column <- column[row]
    column[is.na(row)] <- 0
    column
  })
  lines <- c(list(line = line, text = text[line]), columns, list(filename = rep(file, length(line))))
  tibble::new_tibble(lines, nrow = length(line), changed = source$changed)
}

find_file <- function(file, figures, call) {
  if (!is.null(file) && !is_text(file)) {
    abort_argument("`file` must be one string, or `NULL`.", call)
  }
  files <- unique(figures$filename)
  if (length(files) == 0) {
    abort_argument("The profile has no lines of files.", call)
  }
  if (is.null(file)) {
    return(names(which.max(rowsum(figures$self, figures$filename)[files, ])) %||% files[[1]])
  }
  path <- gsub("\\", "/", c(file, files), fixed = TRUE)
  at_end <- files[endsWith(paste0("/", path[-1]), paste0("/", path[[1]]))]
  found <- if (file %in% files) file else at_end
  if (length(found) != 1) {
    problem <- if (length(found) == 0) "no lines of" else "several files that end with"
    shown <- utils::head(if (length(found) == 0) files else found, 5)
    abort_argument(c(
      paste0("The profile has ", problem, " `", file, "`."),
      i = paste0("Files: ", paste0("`", shown, "`", collapse = ", "), if (length(shown) < length(files)) ", ...", ".")
    ), call)
  }
  found
}
