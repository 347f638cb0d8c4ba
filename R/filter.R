# Filters samples and frames by the rules of pprof.
#
# Regular expressions are matched here, by R, against each distinct name. The core then checks the tables and
# applies the results to the stacks.

#' Filter samples and frames
#'
#' @description
#' `filter_profile()` selects samples by the frames of their stacks, and frames by their function or file. The filters
#' have the same names and meaning as in [pprof](https://github.com/google/pprof).
#'
#' @details
#' A regular expression matches a frame if it matches part of the name of its function, its file, or the mapped file
#' (`.mappings`) of its address. Data recorded by R have no mapped file, even though [write_pprof()] writes one. The
#' expressions are applied in this order:
#'
#' 1. `drop` removes uninteresting functions and everything that they called, see below.
#' 1. `focus` keeps samples with a matching frame, `ignore` removes them.
#' 1. `hide` removes matching frames, `show` removes all others. Samples without remaining frames are removed.
#' 1. `show_from` removes all callers of the outermost matching frame, and samples without a match.
#' 1. `prune_from` removes everything that the innermost matching frame called. Like `drop`, it considers
#'    names of functions only.
#'
#' As in pprof, the steps from `focus` to `show_from` also remove samples that never had a frame. An address without a
#' symbol is removed by `show`, and by `hide` if its mapped file matches. An empty expression is ignored.
#'
#' As in pprof, a frame and the frames that were inlined into it, at the same address, are one location: if `show_from`,
#' `prune_from`, `hide` or `show` removes some frames of a location, they are removed from all stacks.
#'
#' # Frameworks, and your code
#'
#' `hide_plumbing = TRUE` hides what frameworks add to the stack: functions that only call others, such as `lapply()`,
#' `tryCatch()`, `eval()`, or `%>%`, and the frames between the start of Shiny, plumber, knitr, testthat, future or a
#' worker of parallel and the code that these run for you. Reactives and outputs of Shiny remain. In real R code, up to
#' half of all frames are plumbing, and nine of ten in an app. A table, the file
#' `system.file("frameworks.txt", package = "profile")`, lists what is plumbing, and describes its rules. In a part of a
#' stack that belongs to a framework, frames with a source file and frames of other packages are shown, so packages
#' should be known, see [add_packages()].
#'
#' `show_mine = TRUE` shows only the frames of your source files, and the functions that they call directly. Your files
#' are those that are not in a library of R packages, including code that is typed or read from text.
#'
#' Neither of them removes a sample: if none of its frames is left, the outermost one is kept. Both apply with `hide`
#' and `show`.
#'
#' # Uninteresting functions
#'
#' A pprof file may specify functions that are of no interest to users, such as the internals of an allocator
#' (`.drop_frames` and `.keep_frames` in `sources`). Viewers remove these functions and everything that they called, so
#' that the values are attributed to the caller. `drop = TRUE` does the same; `drop` and `keep` may also be your own
#' expressions.
#'
#' Each stack is searched from its outermost frame. The first function whose name matches `drop` and does not match
#' `keep` is removed, with all frames that it called. If the outermost frames themselves match, they are kept, and the
#' search starts at the first frame that does not match, so a stack never becomes empty.
#'
#' Both expressions must match the whole name of the function, as if written `^(...)$`. The name is
#' simplified first: a leading dot and everything from the first parenthesis on are removed, except for
#' `(anonymous namespace)` and `operator()`. A function without a name is never removed.
#'
#' For frames that were inlined at one address: if the outermost one matches, all of them are removed from the stack. If
#' another one matches, it and the frames inlined into it are removed from all stacks.
#'
#' # Expressions
#'
#' The syntax is Perl's, as in [grepl()] with `perl = TRUE`. Matching is case-sensitive unless the expression starts
#' with `(?i)`. Expressions that are valid in Go's syntax, RE2, have the same meaning here, with few exceptions: `$`
#' also matches before a line feed at the very end, `\s` and `\v` match more kinds of white space, and a `+` after a
#' repetition (`a*+`) is an error in Go. Go does not support Perl's look-around and back references.
#'
#' # Other tables
#'
#' The values and labels of removed samples are removed as well, and so are rows of your own tables with their
#' `sample_id`. `depth` is renumbered: 1 is still the innermost frame. The place that called the outermost frame
#' (`.toplevel_line`) becomes `NA` if that frame is removed. Everything else is kept, including sources without samples
#' and functions without frames: [compact_profile()] removes unused rows. If another function was inlined into a removed
#' function, a row that is not `.inlined` may be added to `locations`, since the remaining function would otherwise
#' appear to be inlined into the next frame.
#'
#' @param x A profile, see [profile_data], of either version, a dm of its tables, or the path of a file.
#' @param ... Must be empty.
#' @param focus,ignore,hide,show,show_from,prune_from A regular expression, or `NULL`.
#' @param hide_plumbing Whether to hide what frameworks add to the stack.
#' @param show_mine Whether to show only your own code, and the functions that it calls directly.
#' @param drop A regular expression; `TRUE` for the expressions in `sources`, each for the samples of its source; or
#'   `NULL`.
#' @param keep A regular expression of functions that `drop` does not remove. `NULL` for none, or with `drop = TRUE` for
#'   the expressions in `sources`.
#'
#' @param labels Labels of the samples to keep, such as `c(route = "/api")`, see [with_labels()]; or a list with several
#'   values of a label, such as `list(route = c("/api", "/health"))`. A sample needs one of the values of each label.
#'   `NA` stands for samples without the label. The other keys of [`summary(by = )`][summary.profile_data] may be used
#'   as well, such as `process`.
#'
#' @return A profile of version 2.0.
#'
#' @section Errors:
#' `profile_error_invalid` if `x` is not valid; `profile_error_argument` if an argument is not a single
#' string, is not a regular expression, or takes too long to match, or if no sample has a label or its value.
#'
#' @seealso [compact_profile()] for tables that you have filtered yourself;
#'   [joint_pprof()], whose viewer offers the same filters.
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#'
#' # What `deparse()` called, without its callers:
#' filter_profile(x, show_from = "^deparse$")
#'
#' # The samples inside `lm()`, with only the frames of modelling functions:
#' filter_profile(x, focus = "^lm$", show = "^lm|model")
#'
#' # Without functions that only call others:
#' call_tree(filter_profile(x, hide_plumbing = TRUE))
#'
#' # Only your own functions, and what they call:
#' call_tree(filter_profile(x, show_mine = TRUE))
#'
#' # Only the requests of one route:
#' work <- function() for (i in 1:50) lm(dist ~ speed, data = cars)
#' x <- record_profile(with_labels(c(route = "/report"), work()))
#' try(filter_profile(x, labels = c(route = "/report")))
#'
#' # Attribute the time of these functions to their callers:
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#' filter_profile(x, drop = "paste|sub|c")
filter_profile <- function(
    x, ..., hide_plumbing = FALSE, show_mine = FALSE, labels = NULL, focus = NULL, ignore = NULL, hide = NULL, show = NULL,
    show_from = NULL, prune_from = NULL, drop = NULL, keep = NULL) {
  call <- call_without_dots()
  check_flag(hide_plumbing, "hide_plumbing", call)
  check_flag(show_mine, "show_mine", call)
  given <- list(
    focus = focus, ignore = ignore, hide = hide, show = show,
    show_from = show_from, prune_from = prune_from
  )
  for (argument in names(given)) {
    given[[argument]] <- check_expression(given[[argument]], argument, call)
  }
  if (!isTRUE(drop)) {
    check_expression(drop, "drop", call, or = "`TRUE`, ")
  }
  check_expression(keep, "keep", call)
  if (is.null(drop) && !is.null(keep)) {
    abort_argument(c(
      "`keep` has no effect without `drop`.", i = "`drop = TRUE` uses the expressions that the profile contains."
    ), call)
  }
  labels <- check_labels_to_keep(labels, call)
  x <- as_unchecked_v2(x, call)
  filter_by(x, given, call, drop, keep, labels = labels, hide_plumbing = hide_plumbing, show_mine = show_mine)
}

# `given`: expressions, named by the argument of `filter_profile()`. `outermost` is the number of R frames to remove at
# the outer end of each stack, before the expressions are applied.
filter_by <- function(
    x, given, call, drop = NULL, keep = NULL, outermost = 0L, labels = list(),
    hide_plumbing = FALSE, show_mine = FALSE) {
  rules <- with_validation(list(x), call, {
    names <- names_of(x)
    matches <- Map(function(expression, argument) {
      find <- function(texts) found_in(texts, expression, argument, call)
      if (argument == "prune_from") {
        return(list(functions = find(simple_name(names)) & names != ""))
      }
      list(functions = find(names) | find(x$functions$filename), mappings = find(x$.mappings$filename))
    }, given, names(given))
    drops <- if (is.null(drop)) list(distinct = list(), of_source = integer()) else drops_of_sources(x, drop, keep, call)
    samples <- if (length(labels) > 0) has_labels(x, labels, call)
    if (show_mine) {
      mine <- own_functions(x)
      if (nrow(x$samples) > 0 && !any(mine)) {
        abort_argument(c(
          "`show_mine`: the profile has no source files of yours.",
          i = "Files are known if lines are recorded, see `?read_rprof`."
        ), call)
      }
      matches$mine <- list(functions = mine, mappings = FALSE)
    }
    filter_rules(
      matches = matches, drops = drops$distinct, drop_of_source = drops$of_source, outermost = outermost,
      samples = as.integer(samples), plumbing = hide_plumbing
    )
  })
  filtered(x, rules, call)
}

# The functions that each distinct pair of expressions drops, and the number of the pair of each source.
drops_of_sources <- function(x, drop, keep, call) {
  by_source <- isTRUE(drop)
  rules <- list(
    drop = of_sources(x, if (!by_source) drop, ".drop_frames"),
    keep = of_sources(x, keep %||% if (!by_source) "", ".keep_frames")
  )
  rules$keep[rules$drop == ""] <- ""
  rules <- tibble::new_tibble(rules, nrow = nrow(x$sources))
  distinct <- vctrs::vec_unique(rules)
  whose <- ifelse(c(by_source, is.null(keep)), "sources$.%s_frames", "%s")
  whose <- sprintf(whose, names(rules))
  names <- names_of(x)
  simple <- simple_name(names)
  drops <- Map(function(drop, keep) {
    drop <- found_in(simple, drop, whose[[1]], call, whole = TRUE)
    keep <- found_in(simple, keep, whose[[2]], call, whole = TRUE)
    list(functions = drop & !keep & names != "")
  }, distinct$drop, distinct$keep)
  list(distinct = drops, of_source = vctrs::vec_match(rules, distinct))
}

# The tables of version 2.0, which the core checks when it uses them. `x` may be the path of a file.
as_unchecked_v2 <- function(x, call) {
  if (!missing(x) && is_path_of_profile(x)) {
    return(read_format(x, "", "2.0", x, call))
  }
  x <- as_profile(x, call)
  if (identical(profile_version(x), "1.0")) as_v2(x, call) else x
}

# A string cannot be anything else. If there is no such file, the reader says so.
is_path_of_profile <- function(x) {
  is_text(x) && nzchar(x)
}

# Evaluates code that uses tables before the core has checked them. If the code fails because the tables are invalid,
# the error of the check is raised.
with_validation <- function(profiles, call, code) {
  # An error of a profile itself is already the right one; in the handler, R would warn that it evaluates it again.
  force(profiles)
  tryCatch(code, error = function(error) {
    for (x in profiles) {
      rust(rust_validate(x), call)
    }
    rlang::cnd_signal(error)
  })
}

# Checks an expression; `NULL` if it is empty.
check_expression <- function(x, argument, call, or = "") {
  if (!is.null(x) && !is_text(x)) {
    abort_argument(c(
      paste0("`", argument, "` must be a regular expression: one string, ", or, "or `NULL`."),
      i = if (is.character(x) && length(x) > 1) "Separate alternatives by `|`, as in `\"^(f|g)$\"`."
    ), call)
  }
  if (!identical(x, "")) x
}

# The expression of each source, an empty string if it has none.
of_sources <- function(x, given, column) {
  expressions <- given %||% x$sources[[column]] %||% ""
  expressions[is.na(expressions)] <- ""
  rep_len(expressions, nrow(x$sources))
}

# The names as pprof uses them, in which a function without a name has an empty one; our readers name it `<unknown>`.
names_of <- function(x) {
  functions <- as.list(x$functions)
  if (!is.character(functions$name)) {
    return(character())
  }
  has_name <- functions$.has_name %||% TRUE
  has_system_name <- functions$.has_system_name %||% FALSE
  nameless <- has_name %in% FALSE & !has_system_name %in% TRUE & functions$name == "<unknown>"
  functions$name[nameless] <- ""
  functions$name
}

# Names without arguments, and without the leading dot that some platforms add.
simple_name <- function(names) {
  name <- "^[.]?((?:[^(o]++|\\(anonymous namespace\\)|operator\\(\\)|o)*+)"
  sub(paste0("(?s)", name, "(?:\\(.*)?"), "\\1", names, perl = TRUE)
}

# Whether each text matches an expression; with `whole`, the whole text must match. An empty expression matches
# nothing.
found_in <- function(texts, expression, what, call, whole = FALSE) {
  if (expression == "") {
    return(logical(length(texts)))
  }
  pattern <- if (whole) paste0("\\A(?:", expression, ")\\z") else expression
  distinct <- enc2utf8(unique(c("", texts)))
  # The just-in-time compiler of PCRE, which R uses for long vectors, has little memory for long names. When it
  # fails, R returns FALSE with a warning.
  options <- options(PCRE_use_JIT = FALSE)
  on.exit(options(options))
  # Only a line feed ends a line, and characters are Unicode, on all platforms and in all locales.
  found <- tryCatch(
    grepl(paste0("(*UTF)(*LF)", enc2utf8(pattern)), distinct, perl = TRUE),
    warning = identity, error = identity
  )
  if (inherits(found, "condition")) {
    reason <- sub("(?s)^.*?\n\t'(.*?)'\n.*$", "\\1", conditionMessage(found), perl = TRUE)
    message <- paste0("`", what, "` cannot be used as a regular expression: ", reason, ".")
    abort_argument(c(
      message,
      i = paste0("The expression is ", in_quotes(short_text(expression)), "."),
      i = "To match text literally, put `\\\\Q` before it and `\\\\E` after it."
    ), call)
  }
  found[match(texts, distinct)]
}

# What the core applies to a profile.
filter_rules <- function(
    matches = list(), drops = list(), drop_of_source = integer(), outermost = 0L, samples = integer(), plumbing = FALSE) {
  as.list(environment())
}

# Applies filters to a profile.
filtered <- function(x, rules, call) {
  known <- if (rules$plumbing) with_packages_for(x, "package", call) else x
  with_ids <- with_validation(list(x), call, integer_ids(known, own_columns_of(list(x)), call))
  frames <- x$sample_locations
  as_stacks <- has_plain_rows(frames) && length(frames) == 3
  lazy <- lazy_columns(call)
  left <- rust(rust_filter(with_ids, rules, as_stacks, lazy), call)
  if (is.null(left$frames)) {
    x <- end_inlining(x, left$no_longer_inlined)
    x$sample_locations$depth <- left$depths
    x <- drop_rows(x, "sample_locations", left$depths == 0L)
  } else {
    x$sample_locations <- with_columns(frames, left$frames[names(frames)])
  }
  for (column in intersect(c(".toplevel_filename", ".toplevel_line"), names(x$samples))) {
    x$samples[[column]][!left$outermost] <- NA
  }
  x <- drop_rows(x, "samples", !left$samples)
  x <- move_files_to_next_sample(x)
  # Callers that were removed cannot be looked up.
  attr(x, "environments") <- NULL
  new_profile_data(keep_rows(x, left$rows), "2.0")
}

# `rows` of `sample_locations` have functions that were inlined into a removed function. They get locations that are not
# inlined, since they would otherwise appear to be inlined into the next frame.
end_inlining <- function(x, rows) {
  if (length(rows) == 0) {
    return(x)
  }
  ids <- x$locations$location_id
  inlined <- x$sample_locations$location_id[rows]
  old <- unique(inlined)
  new <- setdiff(seq_len(length(ids) + length(old)), ids)[seq_along(old)]
  locations <- slice_rows(x$locations, c(seq_along(ids), match(old, ids)))
  added <- length(ids) + seq_along(old)
  locations$location_id[added] <- new
  locations$.inlined[added] <- FALSE
  x$locations <- locations
  x$sample_locations$location_id[rows] <- new[match(inlined, old)]
  x
}
