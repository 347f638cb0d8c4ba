# The text of the source files that a profile refers to, and the figures of their lines.

#' Add the text of source files
#'
#' @description
#' `add_source_text()` stores the text of source files in a profile. A profile refers to lines of files, which may
#' change or disappear; with their text, [profile_page()], [annotate_lines()] and [describe_profile()] can show source
#' code later and on other machines.
#'
#' @details
#' Text is taken from:
#'
#' - files that exist, relative to the working directory if the path is relative;
#' - the source references of packages that are loaded and were installed with `--with-keep.source`, and of
#'   functions in the global environment, for code that was entered in the console or parsed from text.
#'
#' - functions of this session that have the same byte code as functions without source references in profiles of the agent,
#'   see *Lines of packages* in [profile_process()]. Until then, such profiles have files such as
#'   `<bytecode: 994122ed43c5ff49>`, in place of which they get lines of `<stats::lm>` and its deparsed text.
#'
#' Files without a line in the profile are not collected. Text that is neither UTF-8 nor in the encoding of
#' the locale is read as Latin-1.
#'
#' # Which files are read
#'
#' A profile may come from somebody else, and you may publish the text that is read. So paths are resolved first, with
#' all links and `..`, and a file is read only if it
#'
#' - is a regular file of at most 5 MB, without NUL;
#' - has an extension of source code, such as `.R`, `.Rmd`, `.cpp`, in upper or lower case;
#' - is not hidden: neither its name nor the name of a folder in its path begins with a dot. Folders that contain the
#'   working directory or a directory in `directory` may be hidden.
#'
#' `~` in a path is not expanded. URLs, paths of servers such as `//server/share/a.R`, and paths with characters that
#' some systems do not allow in names are ignored, without any access to files or networks.
#'
#' If the profile was not recorded in this session, only files in the working directory and in `directory` are read, and
#' no source references; with `outside = TRUE` there is no such limit. A message of class `profile_message_source_files`
#' lists the files that were left out. It also lists the files that were read, except files in `directory`.
#'
#' These profiles count as recorded in this session: results of [record_profile()], [benchmark_profile()],
#' [stop_profiler()] and [start_agent()] in this session, and results of [filter_profile()], [combine_profiles()] and
#' other functions of this package, if all of their inputs do. Profiles that were read from a file or a database do not
#' count, even if this session wrote them, nor do results of [profile_process()] and dm objects.
#'
#' [profile_page()], [as_profvis()], [describe_profile()], [annotate_lines()] and `plot(view = "lines")` read files by
#' the same rules, with `outside = FALSE`. To show other files, call `add_source_text()` first.
#'
#' @param x A profile, see [profile_data], or the path of a file.
#' @param ... Must be empty.
#' @param directory Directories in which to search for files that do not exist at their path, for example because the
#'   profile was recorded on another machine. For the path `home/me/code/run.R`, the files `home/me/code/run.R`,
#'   `me/code/run.R`, `code/run.R` and `run.R` are tried in each directory; the first one that may be read is used.
#' @param outside Whether to read files outside of the working directory and `directory`, and source references,
#'   if the profile was not recorded in this session.
#'
#' @return The profile, of version 2.0, with the table `.source_text`, which contains a row for each file
#'   whose text was found. Existing rows are kept.
#'   \describe{
#'   \item{filename}{character: as in `functions`}
#'   \item{text}{character: the text, with a line feed at the end of each line}
#'   \item{from}{character: `"file"`, `"srcref"`, or `"deparsed"` for the text that R makes of a function without source
#'     references, see [record_profile()]}
#'   \item{changed}{logical: whether the file was changed after the profile was recorded, so that its lines
#'     may differ. `NA` if unknown.}
#'   }
#' @section Errors:
#' - `profile_error_argument` if an argument is not as described here;
#' - `profile_error_invalid` if `x` is not valid. Files that cannot be read are left out.
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#'
#' # The files have moved since this profile was recorded:
#' x <- add_source_text(x, directory = system.file("samples/report", package = "profile"))
#' x$.source_text
#' annotate_lines(x, "sales.R")
add_source_text <- function(x, ..., directory = NULL, outside = FALSE) {
  call <- call_without_dots()
  if (!is.null(directory) && (!is.character(directory) || anyNA(directory) || !all(dir.exists(directory)))) {
    abort_argument("`directory` must contain paths of directories that exist, or be `NULL`.", call)
  }
  check_flag(outside, "outside", call)
  x <- as_unchecked_v2(x, call)
  # This also checks the profile, so it is not left to the evaluation of an argument.
  sampled <- rust(rust_summarise(x, NULL, "function"), call)$time
  ended <- end_of_recording(x, sampled)
  # Files in `directory` need no message, since the user has named this folder.
  x <- with_source_text(x, ended, call, directory, outside, embeds = is.null(directory) || outside)
  with_lines_of_code(x, call, keep = TRUE)
}

# Adds source text to a profile that was checked. `ended`: see end_of_recording(). `embeds`: whether the user will
# publish the text as a whole. `only`: the one file to look for, if not NULL.
with_source_text <- function(x, ended, call, directory = NULL, outside = FALSE, embeds = FALSE, only = NULL) {
  found <- source_text_of(x, ended, call, directory, outside, only)
  inform_source_files(list(found), embeds)
  x$.source_text <- found$text
  x
}

# list(text, read, left_out): the table `.source_text`, and for a profile of another session the files that were read,
# and the files that were left out because they are outside.
source_text_of <- function(x, ended, call, directory = NULL, outside = FALSE, only = NULL) {
  known <- x$.source_text %||% no_text
  wanted <- setdiff(only %||% files_with_lines(x), c(known$filename, ""))
  wanted <- wanted[!is_byte_code(wanted)]
  is_own <- is_of_session(x)
  anywhere <- is_own || outside
  files <- text_of_files(wanted, directory, anywhere, ended, call)
  srcrefs <- text_of_srcrefs(setdiff(wanted, files$text$filename), anywhere, call)
  left_out <- setdiff(c(files$elsewhere, if (!anywhere) srcrefs$filename), files$text$filename)
  found <- rbind_text(files$text, if (anywhere) srcrefs)
  list(
    text = rbind_text(known, found),
    read = if (!is_own) found$filename,
    left_out = intersect(wanted, left_out)
  )
}

# Informs about the files that were read or left out for profiles of other sessions. `found`: results of
# source_text_of().
inform_source_files <- function(found, embeds) {
  read <- unique(unlist(lapply(found, `[[`, "read")))
  left_out <- unique(unlist(lapply(found, `[[`, "left_out")))
  if (length(left_out) == 0 && !(embeds && length(read) > 0)) {
    return()
  }
  inform_profile(c(
    "The profile was not recorded in this session.",
    i = if (length(read) > 0) paste0("Source code was read from ", format_files(read)),
    x = if (length(left_out) > 0) paste0("Left out, as outside of the working directory: ", format_files(left_out)),
    i = if (length(left_out) > 0) {
      "Use `add_source_text(x, outside = TRUE)` to include them, or `directory` to include those in a folder."
    }
  ), "profile_message_source_files", read = read, left_out = left_out)
}

# `a.R, b.R and 3 more.`
format_files <- function(files) {
  shown <- shown_name(utils::head(files, 5), 60, "start")
  more <- length(files) - length(shown)
  paste0(paste(shown, collapse = ", "), if (more > 0) paste0(" and ", format_count(more), " more"), ".")
}

# The rows of two tables of texts, of which the second may be NULL.
rbind_text <- function(text, more) {
  if (NROW(more) == 0) text else if (identical(text, no_text)) more else vctrs::vec_rbind(text, more)
}

no_text <- tibble::tibble(filename = character(), text = character(), from = character(), changed = logical())

# The table of texts that are a list named by file.
source_texts <- function(texts, from) {
  tibble::new_tibble(list(
    filename = as.character(names(texts)), text = as.character(unlist(texts, use.names = FALSE)),
    from = rep(from, length(texts)), changed = rep(FALSE, length(texts))
  ), nrow = length(texts))
}

files_with_lines <- function(x) {
  has_line <- x$locations$line > 0
  ids <- x$locations$function_id[which(has_line)]
  files <- x$functions$filename[x$functions$function_id %in% ids]
  unique(files[!is.na(files)])
}

# The latest time at which the last run can have ended; NA if it is not known. `sampled`: the sampled time in seconds,
# NULL if it is not known.
end_of_recording <- function(x, sampled) {
  start <- x$sources$source_timestamp
  if (length(start) == 0) {
    return(NA)
  }
  recorded <- x$sources[[".duration_nanos"]] / 1e9
  max(start) + max(sampled %||% 0, recorded, na.rm = TRUE)
}

# ---- Whether this session recorded a profile ---------------------------------------

# Profiles that this session recorded have this environment as an attribute. No file can contain it, since an
# environment that is read from a file is always a new one.
the$session <- new.env(parent = emptyenv())

mark_session <- function(x) {
  attr(x, "session") <- the$session
  x
}

is_of_session <- function(x) {
  identical(attr(x, "session", exact = TRUE), the$session)
}

# Marks a profile that was made from other profiles, if this session recorded all of them.
mark_session_of <- function(x, others) {
  if (length(others) > 0 && all(vapply(others, is_of_session, NA))) mark_session(x) else x
}

# ---- Files -------------------------------------------------------------------------

# list(text, elsewhere): the table `.source_text` of the files that may be read, and the files that are outside.
text_of_files <- function(files, directories, anywhere, time, call) {
  found <- lapply(files, source_file, directories, anywhere, "source", call)
  has_text <- !vapply(found, function(file) is.null(file$bytes), NA)
  is_elsewhere <- vapply(found, function(file) file$elsewhere, NA)
  text <- tibble::new_tibble(list(
    filename = files[has_text],
    text = vapply(found[has_text], function(file) lines_of_text(rawToChar(file$bytes)), ""),
    from = rep("file", sum(has_text)),
    changed = vapply(found[has_text], function(file) file$modified, 0) > time
  ), nrow = sum(has_text))
  list(text = text, elsewhere = files[is_elsewhere])
}

# list(bytes, modified, elsewhere), see the core.
source_file <- function(file, directories, anywhere, wanted, call) {
  native <- if (Encoding(file) == "bytes") NA else native_text(file)
  if (is.na(native)) {
    return(list(elsewhere = FALSE))
  }
  rust(rust_source_file(native, path.expand(enc2native(as.character(directories))), anywhere, wanted), call)
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

text_of_srcrefs <- function(files, anywhere, call) {
  if (length(files) == 0) {
    return(no_text)
  }
  packages <- setdiff(package_of_file(files, anywhere, call), NA)
  environments <- c(list(globalenv()), lapply(intersect(packages, loadedNamespaces()), asNamespace))
  texts <- unlist(lapply(environments, function(env) texts_of_functions(env)), recursive = FALSE)
  texts <- texts[!duplicated(data.frame(names(texts), unlist(texts)))]
  # Different code can have one name: R names code that was parsed from text `<text>`, each time.
  texts <- texts[!names(texts) %in% names(texts)[duplicated(names(texts))]]
  found <- as.character(intersect(files, names(texts)))
  source_texts(lapply(texts[found], lines_of_text), "srcref")
}

# The texts of the files of all functions in an environment, a list named by file. A package may contain objects that
# raise errors when they are used, and invalid source references.
texts_of_functions <- function(env) {
  texts <- list()
  seen <- list()
  for (name in ls(env, all.names = TRUE)) {
    found <- tryCatch({
      value <- if (is_safe_to_read(name, env)) get0(name, env, inherits = FALSE)
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
is_safe_to_read <- function(name, env) {
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
