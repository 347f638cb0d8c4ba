# The page: one HTML file that shows a profile. The core writes the data and joins them with the files of
# inst/page.

#' Show a profile in the browser
#'
#' @description
#' `profile_page()` creates a page of a profile. Printing the page opens it in the viewer of RStudio, Positron and VS
#' Code, otherwise in the browser. [`write_profile(x, "page.html", ...)`][write_profile()] writes a page, with the same
#' arguments, to an HTML file, which any browser can open.
#'
#' The page begins with the lines of code with the largest values and their source code, beside a flame graph. It also
#' has a timeline, a table of functions, lines, files or packages, and callers and callees of each function. The layout
#' *time* shows all samples in their order, with a lane for each run. Labels, see [with_labels()], select and colour
#' samples; a page begins with the colours of tests, chunks, targets, routes, reactives or tasks. If periods are known,
#' values are shown as time.
#'
#' Below the strip of time is a curve of the memory that R's objects took at the samples, garbage included, with its
#' peak, if R's profiler recorded memory. The page of a recording with `snapshot = "peak"`, see [record_profile()], also
#' contains the snapshot of the heap, which a button shows.
#'
#' With `base`, the page compares two profiles. It begins with the result of [compare_profiles()]: the whole run with
#' its interval and verdict, and the functions for which a difference was found. Values are shown per run.
#'
#' The page of several processes, see `record_profile(children = TRUE)`, shows what the workers did, see *Parallel work* in
#' [describe_profile()], and begins with the layout *time*: a lane for each
#' process, such as `worker 1 of 2, pid 1234`, all on one clock. Where a process has no samples, since it was idle, its
#' lane has a gap. The strip at the top shows the same lanes; in it, a part of the time can be selected. Samples without
#' a time are shown from the start of their source on.
#'
#' The page of a heap snapshot, whose sources have the type `"heap"`, shows what holds the memory: boxes are coloured by
#' their kind, such as a variable (`binding`) or a type of objects. With another snapshot as `base` it begins with what
#' has grown most; runs are not compared. More than four names below one holder that differ only in numbers or hashes
#' are one box, such as the entries of a cache, `$key* (20)`; *Names* shows each. pprof files and text have no place for
#' kinds: read from them, a snapshot is shown as any other profile.
#'
#' In the page, a click on a box, a row or a line chooses it, a double click on a box zooms in, and Esc goes back. Press
#' `?` for help.
#'
#' The address of a page can name a label whose samples it shows, after `#label=`: a trace viewer can link to
#' `page.html#label=trace_id=4bf92f3577b34da6a3ce929d0e0e4736`. If no sample has the label, the page shows none.
#'
#' In R Markdown and Quarto documents with HTML output the page is embedded where it is printed. The chunk options
#' `out.width` and `out.height` set its size, `"100%"` and `"600px"` by default; if it is narrower than 1000 pixels, its
#' parts are one above the other.
#'
#' @details
#' With `base`, `x` and `base` are combined into one tree, which also contains functions that occur in only one of them.
#' The profiles may differ in sample types and intervals: counts are compared as time if all intervals are known. If
#' both contain the text of a file, the text in `x` is shown.
#'
#' ## What is in the page
#'
#' The page is one HTML file, without links to other files. It contains
#' - the tree of all stacks, with names, files, lines and packages of functions, and kinds of frames;
#' - the sums of all sample types that can be summed, for each source;
#' - for each source the last part of its URI, the script or program of its process without arguments, or its role and
#'   pid if it worked with others, its type, its interval, its time stamp and its duration;
#' - with `timeline = TRUE`, all samples in the order in which they were recorded. The order is unknown for samples of
#'   pprof and OpenTelemetry without a time, and for samples with a count other than 1. If the order would take more
#'   than 3 MB, as with more than a million samples in random order, time is divided into 20,000 parts, or fewer if
#'   these would also take more. Within a part, samples are sorted by stack, and the page selects whole parts, whose
#'   figures are exact. The page states their size;
#' - the memory in use at the samples, of at most 1000 parts of them, and the snapshot of a recording with
#'   `snapshot = "peak"`, unless it is compared with a base: names of variables and types of objects, but no values;
#' - with `source_text = TRUE`, the text of source files, see [add_source_text()];
#' - with `labels = TRUE`, the labels of samples whose values are text, such as routes, by which the page selects and
#'   colours samples, and the ids of traces and spans, as labels `trace_id` and `span_id`. Of a key with more than 200
#'   values, the 200 with the most samples are kept, and all others are combined as one value, such as `34 others`. A
#'   key is left out if it has more than 200 values, each with a single sample, or if it would result in more than 1000
#'   combinations. At most 20 keys are kept. Differences of profiles have no labels.
#'
#' Attributes, comments, mappings and addresses are not in the page, nor are columns and tables of your own. With this
#' data [read_profile()] reads a page as a profile.
#'
#' ## Size
#'
#' The size depends on the number of distinct stacks, and with `timeline = TRUE` on the number of samples. The 252
#' samples of the example take 3 KB. A million samples of 118,000 different paths take 2.2 MB, or 0.3 MB without the
#' timeline. The order of samples takes at most about 4 MB, however many there are: ten million samples of 10,000 paths
#' take 4.2 MB. The page without data takes at most 130 KB.
#'
#' ## Privacy
#'
#' Check the content of a page before you publish it. With `source_text = TRUE` it contains source code, and the paths
#' of files, which may contain names of users and projects. With `source_text = FALSE` it contains neither: only the
#' last part of each path is kept, such as `sales.R`. If files in different directories have the same name, a number is
#' added: `sales.R #1`. Names of functions, packages and sample types are kept, whatever they contain. Labels may
#' contain the addresses of requests or names of users: `labels = FALSE` leaves them out.
#'
#' Profiles from somebody else may refer to any file on your computer. So if the profile was not recorded in this
#' session, only source files in the working directory are read. A message lists these files, and files elsewhere that
#' were left out. To include other files, call [add_source_text()] first; its help describes the rules.
#'
#' The last part of the URI of each source is always in the page, as is the title, which can be recorded code.
#'
#' ## Security
#'
#' The page uses no network. Its content security policy forbids network requests, and scripts and styles from
#' elsewhere. Names and source code are always shown as text, so it is safe to show a profile of somebody else. The
#' state of the view is kept in the part of the address after `#`, which browsers do not send to servers.
#'
#' The page needs a recent browser: Chrome 93, Firefox 113, Safari 16.4, or later.
#'
#' @param x A profile, see [profile_data], of either version, a dm of its tables, or the path of a file for
#'   [read_profile()].
#' @param ... For `profile_page()`: must be empty.
#' @param base Another profile to compare `x` with, or the path of a file. If both have three runs or more, functions
#'   are grey unless [compare_profiles()] finds a difference.
#' @param source_text Whether the page contains the text and the paths of source files, as added by [add_source_text()]
#'   with its default arguments.
#' @param timeline Whether the page contains the samples in their recorded order.
#' @param labels Whether the page contains the labels of samples, see [with_labels()].
#' @param title The title of the page, by default the last part of the URI of the first source, or the code that
#'   [record_profile()] has recorded, if there is no URI, or if several processes worked together; of a snapshot, such
#'   as `Memory of report.R, pid 1234`. With `base`, it names both.
#'
#' @return An object of class `profile_page`. Its `print()` method opens the page and returns it invisibly. Without a
#'   display, under Rscript and usually over ssh, it prints what `format()` returns, a description of the page, and how
#'   to write it to a file.
#'
#' @section Errors:
#' - `profile_error_invalid` if a profile is not valid;
#' - `profile_error_argument` if an argument is not as described here.
#'
#' @seealso `vignette("viewing")` shows a page. [summary()][summary.profile_data()] returns the same figures as tables.
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#' page <- profile_page(x)
#' if (interactive()) page
#'
#' path <- tempfile(fileext = ".html")
#' write_profile(x, path, source_text = FALSE)
#' file.size(path)
profile_page <- function(x, ..., base = NULL, source_text = TRUE, timeline = TRUE, labels = TRUE, title = NULL) {
  rlang::check_dots_empty()
  new_page(x, NULL, as.list(environment()), rlang::current_env())
}

# Writes a page, for `write_profile()`.
write_page <- function(x, path, ...) {
  call <- call_without_dots()
  # Checked first, because users swap the arguments.
  file <- file_path(path, "profile_error_write", call)
  new_page(x, file, as.list(environment()), call)
  invisible(x)
}
# Its options are the arguments of `profile_page()`, which are declared there only.
formals(write_page) <- c(formals(write_page)[1:2], formals(profile_page)[-1])

# ---- Input of the core -------------------------------------------------------------

# Writes a page to a file, or returns it if `file` is NULL. `options`: the arguments of `profile_page()`. The core gets
# those that are flags, and reads them in src/rust/core/src/page/content.rs.
new_page <- function(x, file, options, call) {
  flags <- options[names(Filter(is.logical, formals(profile_page)))]
  for (name in names(flags)) check_flag(flags[[name]], name, call)
  check_text(options$title, "title", call)
  profile <- as_unchecked_v2(x, call)
  snapshot <- if (is.null(options$base)) attr(x, "snapshot")
  x <- profile
  profiles <- c(list(x), if (!is.null(options$base)) list(as_base(options$base, call)))
  # Called when the core has checked the profiles.
  title <- function() {
    options$title %||% if (length(profiles) == 2) compared_title(x, profiles[[2]]) else page_title(x)
  }
  # Packages are determined by the paths of files, so this is done before the paths are removed.
  profiles <- all_packages_added(profiles, call)
  if (flags$source_text) {
    lapply(profiles, check_source_text, call)
  } else {
    profiles <- with_distinct_files(profiles)
  }
  is_snapshot <- data_model()$snapshot %in% as.list(x$sources)$source_type
  sources <- vapply(profiles, function(x) NROW(x$sources), 0L)
  # Sources are pooled in this order.
  profile <- factor(rep(seq_along(profiles), sources), seq_along(profiles))
  # The core calls this function when it has checked the profiles: their tables cross the border once.
  content <- function(known) {
    text <- if (flags$source_text) text_of_page(profiles, split(known$seconds, profile), call) else no_text
    compared <- if (!is.null(known$runs)) page_comparison(new_figures(known$runs, profile == 1), profiles, call)
    c(page_files(), list(
      title = title(),
      generator = paste("profile", getNamespaceVersion("profile")),
      files = valid_text(text$filename),
      texts = valid_text(text$text),
      changed = text$changed,
      found = compared$found,
      comparison = compared$text,
      parallel = if (length(profiles) == 1) parallel_of_page(described_parallel(x)),
      snapshot = if (!is.null(snapshot)) profile_page(snapshot)$html,
      sources = sources[[1]],
      mine = unique(unlist(lapply(profiles, function(x) unique(x$functions$filename[own_functions(x)])))),
      options = flags
    ))
  }
  # The memory of two moments is what it is: there are no runs to compare.
  compares <- length(profiles) == 2 && !is_snapshot
  report <- progress_report("Writing the page", "download")
  html <- rust(rust_page(profiles, compares, file, content, report), call)
  structure(list(html = html, title = title()), class = "profile_page")
}

as_base <- function(base, call) {
  if (!is_profile(base) && !is_path_of_profile(base)) {
    abort_argument(c(
      paste0("`base` must be a profile, or `NULL`, not ", describe_object(base), "."), i = profile_hint(base)
    ), call)
  }
  as_unchecked_v2(base, call)
}

# The source text of all profiles. If several profiles have the text of a file, the first one is used. `seconds`: the
# sampled time of the sources of each profile.
text_of_page <- function(profiles, seconds, call) {
  found <- Map(function(x, seconds) source_text_of(x, end_of_recording(x, sum(seconds)), call), profiles, seconds)
  inform_source_files(found, embeds = TRUE)
  texts <- lapply(found, function(found) {
    text <- as.list(found$text)
    changed <- rep_len(text[["changed"]] %in% TRUE, length(text$filename))
    data.frame(filename = as.character(text$filename), text = as.character(text$text), changed)
  })
  texts <- do.call(rbind, texts)
  texts[!duplicated(texts$filename), ]
}

# Checks the text columns, which the core does not check.
check_source_text <- function(x, call) {
  text <- x[[".source_text"]]
  if (is.data.frame(text) && !(is.character(text[["filename"]]) && is.character(text[["text"]]))) {
    abort_invalid("must have the character columns `filename` and `text`", ".source_text", call = call)
  }
}

# Replaces the paths of files by their last parts, with numbers that keep different paths distinct, the same numbers in
# all profiles. A column that is not text is left to the core, which reports it.
with_distinct_files <- function(profiles) {
  paths <- lapply(profiles, function(x) as.list(x[["functions"]])$filename)
  if (!all(vapply(paths, is.character, NA))) {
    return(profiles)
  }
  distinct <- unique(unlist(paths))
  names <- make.unique(file_name(distinct), " #")
  Map(function(x, paths) {
    x$functions <- set_column(x$functions, "filename", names[match(paths, distinct)])
    x
  }, profiles, paths)
}

# The files of inst/page: the HTML, and styles and scripts as one text each. They are read once: an interrupt
# inside of `readLines()` may leave a connection open.
page_files <- function() {
  if (is.null(the$page_files)) {
    the$page_files <- read_page_files()
  }
  the$page_files
}

# Styles and scripts are joined in the order in which the HTML refers to them, without indentation, empty lines, lines
# that are comments, and all but the first directive, a fifth of the files.
read_page_files <- function() {
  folder <- system.file("page", package = "profile")
  text <- function(name) {
    lines <- sub("^\t+", "", readLines(in_folder(folder, name), encoding = "UTF-8"), perl = TRUE)
    lines[!grepl("^(//|/\\*| \\*|$)", lines, perl = TRUE)]
  }
  as_text <- function(lines) paste0(lines, "\n", collapse = "")
  template <- text("page.html")
  joined <- function(reference) {
    lines <- unlist(lapply(sub(reference, "\\1", grep(reference, template, value = TRUE)), text))
    as_text(lines[lines != "'use strict';" | !duplicated(lines)])
  }
  style <- "^<link rel=\"stylesheet\" href=\"([^\"]+)\">$"
  script <- "^<script src=\"([^\"]+)\"></script>$"
  list(
    template = as_text(template[!grepl(style, template) & !grepl(script, template)]),
    style = joined(style),
    script = joined(script)
  )
}

# ---- Printing ----------------------------------------------------------------------

#' @rdname profile_page
#' @export
print.profile_page <- function(x, ...) {
  viewer <- getOption("viewer")
  if (!can_show_pages()) {
    cat(
      format(x, ...), "There is no viewer or display to show it; `write_profile(x, \"page.html\")` writes a file.",
      sep = "\n"
    )
    return(invisible(x))
  }
  # Viewers only show files in the directory of the session.
  file <- tempfile("profile-", fileext = ".html")
  writeBin(x$html, file)
  if (is.function(viewer)) viewer(file, height = "maximize") else utils::browseURL(file)
  invisible(x)
}

# Whether there is a viewer, or a display for a browser. There is none under Rscript and usually none over ssh.
can_show_pages <- function() {
  if (!rlang::is_interactive()) {
    return(FALSE)
  }
  browser <- getOption("browser")
  needs_display <- .Platform$OS.type == "unix" && Sys.info()[["sysname"]] != "Darwin" && !is.function(browser)
  has_display <- any(nzchar(environment_values(c("DISPLAY", "WAYLAND_DISPLAY"))))
  is.function(getOption("viewer")) || !needs_display || has_display
}

#' @rdname profile_page
#' @export
format.profile_page <- function(x, ...) {
  text_call()
  paste0("<profile page> ", shown_name(x$title, 200), ", ", format_value(length(x$html), "bytes"))
}

# Embeds the page in documents of knitr.
#' @exportS3Method knitr::knit_print
knit_print.profile_page <- function(x, options = list(), ...) {
  if (!knitr::is_html_output(excludes = c("markdown", "gfm", "epub", "epub2"))) {
    return(knitr::asis_output("The page of this profile is shown in HTML documents only."))
  }
  size <- function(given, default) {
    if (is.numeric(given)) paste0(given, "px") else given %||% default
  }
  attribute <- function(text) {
    text <- gsub("&", "&amp;", text, fixed = TRUE)
    text <- gsub("\"", "&quot;", text, fixed = TRUE)
    # Pandoc replaces tabs, which would change the hash of the script, and an empty line ends HTML in Markdown.
    text <- gsub("\t", "&#9;", text, fixed = TRUE)
    gsub("\n", "&#10;", text, fixed = TRUE)
  }
  html <- rawToChar(x$html)
  Encoding(html) <- "UTF-8"
  frame <- paste0(
    "<iframe title=\"", attribute(paste("Profile:", x$title)), "\" ",
    "style=\"width: ", attribute(size(options$out.width, "100%")), "; ",
    "height: ", attribute(size(options$out.height, "600px")), "; border: 1px solid #8888\" ",
    "srcdoc=\"", attribute(html), "\"></iframe>"
  )
  knitr::raw_html(frame)
}
