# The filters of pprof: which samples and frames of a profile are left.
#
# Expressions are matched here, by R's own engine, against each name once; the core
# then goes along the stacks (src/rust/core/src/tables/v2/filter.rs).

#' Filter samples and frames
#'
#' @description
#' `filter_profile()` leaves what the options of the same names leave in the views of
#' [pprof](https://github.com/google/pprof): samples by what is in their stacks, and
#' frames by what they are.
#'
#' @details
#' An expression matches a frame when it is found in the name of the function, in the
#' name of its file, or in that of the mapped file (`.mappings`) that its address is
#' in. What R recorded has no such file, though one is added when it is written for
#' pprof. They are applied in this order:
#'
#' 1. `focus` keeps the samples with a frame that matches, `ignore` drops those with
#'    one.
#' 2. `hide` drops the frames that match, `show` those that do not. Samples of which
#'    no frame is left go.
#' 3. `show_from` drops the frames that called the outermost match, and samples
#'    without a match.
#' 4. `prune_from` drops the frames that the innermost match called. It looks at
#'    names of functions only, as [drop_frames()] does.
#'
#' As in pprof, samples that never had a frame go with the first three. An address
#' without a symbol is hidden by `show`, and by `hide` when its mapped file matches. An
#' expression that is empty is none.
#'
#' A frame and those that were inlined into it, at one address, are one place of
#' the code to pprof: where `show_from` or `prune_from` cut some of them, they are cut
#' in all stacks, as they are by `hide` and `show`.
#'
#' # Expressions
#'
#' They are those of Perl, as in [grepl()] with `perl = TRUE`, and case matters unless
#' an expression starts with `(?i)`. What Go's syntax, RE2, accepts means the same
#' here, with few exceptions: `$` also matches before a line feed at the very end, `\s`
#' and `\v` match more kinds of white space, and a `+` after a repetition (`a*+`) is an
#' error in Go. Perl's look-around and back references are not in Go.
#'
#' # What is left
#'
#' Values and labels of samples go with them, as do rows of your own tables by their
#' `sample_id`. `depth` counts the frames that are left: 1 is still the innermost. The
#' place from which the outermost frame was called (`.toplevel_line`) is `NA` where
#' that frame went. Everything else stays, also sources without a sample, and functions
#' without a frame: [compact_profile()] drops what is not in use. Where a function is
#' hidden into which another one was inlined, and the next frame seems to be at the
#' same address, a row of `locations` is added that is not `.inlined`.
#'
#' @param x A profile, see [profile_data], of either version, or a dm of its tables.
#' @param ... Must be empty.
#' @param focus,ignore,hide,show,show_from,prune_from A regular expression, or `NULL`.
#'
#' @return A profile of version 2.0.
#'
#' @section Errors:
#' `profile_error_invalid` when `x` breaks a rule; `profile_error_argument` when an
#' argument is not one string, is no regular expression, or is one that takes too
#' long to match.
#'
#' @seealso [drop_frames()]; [compact_profile()] for tables that you filtered yourself;
#'   [serve_pprof()], where the same can be asked for.
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#'
#' # What `deparse()` called, with nothing around it:
#' filter_profile(x, show_from = "^deparse$")
#'
#' # The samples in `lm()` and what it calls, without the frames of other functions:
#' filter_profile(x, focus = "^lm$", show = "^lm|model")
filter_profile <- function(
  x, ..., focus = NULL, ignore = NULL, hide = NULL, show = NULL, show_from = NULL, prune_from = NULL
) {
  call <- rlang::current_env()
  rlang::check_dots_empty()
  given <- list(
    focus = focus, ignore = ignore, hide = hide, show = show,
    show_from = show_from, prune_from = prune_from
  )
  for (argument in names(given)) {
    given[[argument]] <- check_expression(given[[argument]], argument, call)
  }
  x <- as_v2(x, call)
  names <- names_of(x)
  matches <- Map(function(expression, argument) {
    find <- function(texts) found_in(texts, expression, argument, call)
    if (argument == "prune_from") {
      return(of_locations(x, "function_id", find(simple_name(names)) & names != "", call))
    }
    of_locations(x, "function_id", find(names) | find(x$functions$filename), call) |
      of_locations(x, ".mapping_id", find(x$.mappings$filename), call)
  }, given, names(given))
  filtered(x, matches, list(), integer(), call)
}

#' Drop the frames that no user wants to see
#'
#' @description
#' A pprof file may say which functions are of no interest, such as the inner parts of
#' an allocator, and views leave them out with all that they called: what is spent
#' there is spent by the caller. `drop_frames()` does so, by the expressions that the
#' sources of the profile say (`.drop_frames` and `.keep_frames` in `sources`) or by
#' your own.
#'
#' @details
#' Each stack is searched from its outermost frame. The first function whose name `drop`
#' matches, and `keep` does not, goes with all frames that it called. The search starts
#' at the first frame that is not dropped, so that a stack is never left empty; that
#' frame stays, and those that called it.
#'
#' Both expressions match the whole name, as if written `^(...)$`, of the function
#' alone, not of its file. The name is simplified before: without a dot at its start and
#' without what follows the first parenthesis, `(anonymous namespace)` and `operator()`
#' apart. A function without a name is never dropped.
#'
#' A frame and those that were inlined into it, at one address, are one place of the
#' code. If the outermost of them is to be dropped, the place is; if another one is, its
#' lines down from there are cut, and that in all stacks.
#'
#' These are the rules of pprof, which has the expressions in the syntax of RE2; for what
#' differs, and for what is left of the tables, see [filter_profile()].
#'
#' @inheritParams filter_profile
#' @param drop,keep A regular expression for all samples. By default each sample has
#'   what its source says: nothing is dropped if that is `NA` or empty. With `drop` and
#'   without `keep` nothing is kept from it; with `drop = ""` nothing is dropped.
#'
#' @return A profile of version 2.0, with all samples of `x`.
#'
#' @inheritSection filter_profile Errors
#' @seealso [filter_profile()]
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#'
#' # What these functions take is taken by those that call them:
#' drop_frames(x, drop = "paste|sub|c")
#'
#' # As a file says it:
#' x$sources$.drop_frames <- "paste|sub|c"
#' drop_frames(x)
drop_frames <- function(x, ..., drop = NULL, keep = NULL) {
  call <- rlang::current_env()
  rlang::check_dots_empty()
  check_expression(drop, "drop", call)
  check_expression(keep, "keep", call)
  x <- as_v2(x, call)
  rules <- list(
    drop = of_sources(x, drop, ".drop_frames"),
    keep = of_sources(x, keep %||% if (!is.null(drop)) "", ".keep_frames")
  )
  rules$keep[rules$drop == ""] <- ""
  rules <- tibble::new_tibble(rules, nrow = nrow(x$sources))
  distinct <- vctrs::vec_unique(rules)
  whose <- ifelse(c(is.null(drop), is.null(keep)), "sources$.%s_frames", "%s")
  whose <- sprintf(whose, names(rules))
  names <- names_of(x)
  simple <- simple_name(names)
  drops <- Map(function(drop, keep) {
    drop <- found_in(simple, drop, whose[[1]], call, whole = TRUE)
    keep <- found_in(simple, keep, whose[[2]], call, whole = TRUE)
    of_locations(x, "function_id", drop & !keep & names != "", call)
  }, distinct$drop, distinct$keep)
  filtered(x, list(), drops, vctrs::vec_match(rules, distinct), call)
}

# `NULL` where there is none.
check_expression <- function(x, argument, call) {
  if (!is.null(x) && !is_text(x)) {
    abort_argument(paste0("`", argument, "` must be a regular expression: one string, or `NULL`."), call)
  }
  if (!identical(x, "")) x
}

# An expression for each source, empty where there is none.
of_sources <- function(x, given, column) {
  expressions <- given %||% x$sources[[column]] %||% ""
  expressions[is.na(expressions)] <- ""
  rep_len(expressions, nrow(x$sources))
}

# As pprof sees them: readers give a name to functions that have none.
names_of <- function(x) {
  functions <- as.list(x$functions)
  has_name <- functions$.has_name %||% TRUE
  has_system_name <- functions$.has_system_name %||% FALSE
  nameless <- has_name %in% FALSE & !has_system_name %in% TRUE & functions$name == "<unknown>"
  functions$name[nameless] <- ""
  functions$name
}

# Without the dot that a platform adds and without arguments.
simple_name <- function(names) {
  name <- "^[.]?((?:[^(o]++|\\(anonymous namespace\\)|operator\\(\\)|o)*+)"
  sub(paste0("(?s)", name, "(?:\\(.*)?"), "\\1", names, perl = TRUE)
}

# Which of the texts an expression is found in, or with `whole`, matches from their
# first to their last character. No expression, an empty one, matches nothing.
found_in <- function(texts, expression, what, call, whole = FALSE) {
  if (expression == "") {
    return(logical(length(texts)))
  }
  pattern <- if (whole) paste0("\\A(?:", expression, ")\\z") else expression
  distinct <- enc2utf8(unique(c("", texts)))
  # What R would answer to a name that is too much for the engine is a warning and
  # FALSE. Its compiler, which has little memory, is for many long texts.
  options <- options(PCRE_use_JIT = FALSE)
  on.exit(options(options))
  # Lines end with a line feed only, and characters are those of Unicode, whatever
  # the platform and the locale have.
  found <- tryCatch(
    grepl(paste0("(*UTF)(*LF)", enc2utf8(pattern)), distinct, perl = TRUE),
    warning = identity, error = identity
  )
  if (inherits(found, "condition")) {
    reason <- sub("(?s)^.*?\n\t'(.*?)'\n.*$", "\\1", conditionMessage(found), perl = TRUE)
    message <- paste0("`", what, "` cannot be used as a regular expression: ", reason, ".")
    abort_argument(c(message, i = paste("It is", expression)), call)
  }
  found[match(texts, distinct)]
}

# For rows of another table what they say of rows of `locations`.
of_locations <- function(x, column, found, call) {
  ids <- x$locations[[column]] %||% rep(NA_integer_, nrow(x$locations))
  found[rows_of_ids(ids, x, keys_of(column), call)] %in% TRUE
}

# The profile without what goes, and without what goes with that.
filtered <- function(x, matches, drops, drop_of_source, call) {
  left <- rust(rust_filter(x, matches, drops, drop_of_source), call)
  x <- end_inlining(x, left$loose)
  x$sample_locations$depth <- left$depths
  x <- drop_rows(x, "sample_locations", left$depths == 0L)
  for (column in intersect(c(".toplevel_filename", ".toplevel_line"), names(x$samples))) {
    x$samples[[column]][!left$outermost] <- NA
  }
  x <- drop_rows(x, "samples", !left$samples)
  x <- settle_files(x)
  of_samples <- vapply(x, function(table) "sample_id" %in% names(table), TRUE)
  of_samples[c("samples", "sample_locations")] <- FALSE
  new_profile_data(drop_orphans(x, call, names(x)[of_samples]), "2.0")
}

# In these rows of `sample_locations` stand functions that were inlined into one that is
# gone: without a location of its own each would seem to be inlined into the next frame.
end_inlining <- function(x, rows) {
  if (length(rows) == 0) {
    return(x)
  }
  ids <- x$locations$location_id
  inlined <- x$sample_locations$location_id[rows]
  old <- unique(inlined)
  new <- setdiff(seq_len(length(ids) + length(old)), ids)[seq_along(old)]
  added <- vctrs::vec_slice(x$locations, match(old, ids))
  added$location_id <- new
  added$.inlined <- FALSE
  x$locations <- vctrs::vec_rbind(x$locations, added)
  x$sample_locations$location_id[rows] <- new[match(inlined, old)]
  x
}
