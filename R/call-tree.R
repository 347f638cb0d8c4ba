# The call tree of a profile, and its part around one function. The core sums the samples. This file formats the tree as
# text, in which a chain of calls is one line and small branches are omitted.

#' The call tree of a profile
#'
#' @description
#' `call_tree()` returns a row for each distinct path of calls, with the value of the samples that end there
#' (self) and of all samples that pass through it (total).
#'
#' `callees()` returns the part of the tree below one function: the functions that it called. `callers()` starts at the
#' same function and returns its callers, their callers, and so on.
#'
#' Printing shows the tree as text.
#'
#' @details
#' Frames with the same function name are one node. R records a promise with the file in which it was written, so that
#' one function may appear with several files. `by = "line"` distinguishes files and lines. `by = "file"` and
#' `by = "package"` show files or packages only; calls within one of them are one node.
#'
#' With another value of `by`, such as `by = "process"`, the samples with each value have a tree of their own, of
#' functions, below a first row for the value. The first row of samples without the label has the name `NA`, and a
#' sample with several values counts for each of them.
#'
#' A recursive function occurs several times on a path. `callees()` and `callers()` start at its outermost call, so
#' their first row has the same total as in [summary()][summary.profile_data()].
#'
#' # Text
#'
#' Each line of the text has the total and self of a node as a percentage of the whole, its total in the unit of the
#' sample type, and its name. A chain of calls, in which each function has only one relevant callee, is one line:
#' `main > run > fit`; a long chain shows its first three and last two names. The figures belong to the last function of
#' the chain. A callee continues the chain if it has 90% of the total of the first function, and if the functions before
#' it have a self below `min_share`. Branches whose total is below `min_share` are left out; if there are more than `n`
#' lines, this limit is raised until at most `n` lines remain. For `callers()` and `callees()`, `min_share` is a share
#' of the total of the function.
#'
#' @param x A profile, see [profile_data], or the path of a file. For `format()` and `print()`, a call tree.
#' @param by `"function"`, `"file"`, `"line"`, or `"package"`; for `call_tree()` also the key of a label, `"process"`,
#'   `"source"`, `"run"`, `"trace_id"` or `"span_id"`. See *Words for `by`* in the help of
#'   [summary()][summary.profile_data()].
#' @param name The name of a function, as [summary()][summary.profile_data()] shows it. `NA` or `"<unknown>"` for all
#'   code without symbols.
#' @param ... Must be empty. For `print()`, arguments of `format()`.
#' @param type The sample type to sum, as in [summary()][summary.profile_data()].
#' @param source_id Values of `source_id`: the recorded runs whose samples are used. `NULL` for all.
#' @param focus A regular expression: only samples with a matching frame are used, see [filter_profile()].
#' @param n The maximal number of lines, by default 40; `Inf` for all.
#' @param min_share The smallest total to show, as a share of the whole tree.
#' @param width The width of the lines, by default the width of the console.
#'
#' @return A tibble of class `profile_call_tree`, in preorder: each node is followed by its callees, in
#'   descending order of total, regardless of its sign.
#'   \describe{
#'   \item{node_id}{integer: 1, 2, 3, ...}
#'   \item{parent_id}{integer: the node of the caller, `NA` for outermost frames. In the result of
#'     `callers()` a parent is called by its children.}
#'   \item{depth}{integer: 1 for outermost frames}
#'   \item{name}{character: the function, file or package, `NA` if unknown. Code without symbols has the name of the
#'     program or library that contains it, such as `[libfoo.so.1]`, and with `by = "line"` the address:
#'     `[libfoo.so.1] 0x1000`.}
#'   \item{filename}{character: its file, for code without symbols the program or library. `NA` if unknown, or
#'     if there are several.}
#'   \item{line}{integer: its line with `by = "line"`, else `NA`}
#'   \item{package}{character: its R package, Go package, program or library, such as `stats`, `net/http` or
#'     `libblas.so.3`. `NA` if it is unknown or if there are several.}
#'   \item{self, total}{double: in the unit of the sample type. For `callers()`, self is the value of the samples in
#'     which the node is the outermost frame.}
#'   \item{x, width}{double: the left edge and the width of the node in a flame graph. The width is `total`; in
#'     differences, which have negative values, it is the sum of the absolute values of self of the node and all
#'     nodes below it.}
#'   }
#'   The attributes `type`, `unit`, `sum`, `whole` and `counted` are the same as in a [summary][summary.profile_data()].
#'
#'   `format()` returns a character vector, `print()` returns `x`, invisibly.
#'
#' @section Errors:
#' - `profile_error_unsupported` if the profile has no values of `type`, or they cannot be summed;
#' - `profile_error_invalid` if `x` is not valid;
#' - `profile_error_argument` for other invalid arguments, such as a `source_id` that does not exist.
#' @seealso [summary()][summary.profile_data()], [describe_profile()], [annotate_lines()]
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#' call_tree(x)
#' callees(x, "deparse")
#' callers(x, "deparse")
#'
#' # Each run, or each process:
#' both <- combine_profiles(x, x)
#' print(call_tree(both, by = "run"), n = 10)
#'
#' # The paths with the most samples:
#' tree <- call_tree(x)
#' head(tree[order(-tree$self), c("name", "depth", "self")])
call_tree <- function(
    x, by = c("function", "file", "line", "package"), ..., type = NULL, source_id = NULL, focus = NULL) {
  rlang::check_dots_empty()
  tree_of(x, rlang::current_env(), by = by, type = type, source_id = source_id, focus = focus)
}

#' @rdname call_tree
#' @export
callers <- function(
    x, name, by = c("function", "file", "line", "package"), ..., type = NULL, source_id = NULL, focus = NULL) {
  call <- call_without_dots()
  name <- check_name(name, call)
  tree_of(x, call, part = "callers", name = name, by = by, type = type, source_id = source_id, focus = focus)
}

#' @rdname call_tree
#' @export
callees <- function(
    x, name, by = c("function", "file", "line", "package"), ..., type = NULL, source_id = NULL, focus = NULL) {
  call <- call_without_dots()
  name <- check_name(name, call)
  tree_of(x, call, part = "callees", name = name, by = by, type = type, source_id = source_id, focus = focus)
}

# The tree of a profile that need not have been checked, or with `part` the callers or callees of the function `name`.
tree_of <- function(
    x, call, by = parts_of_stacks, part = "whole", name = NULL, type = NULL, source_id = NULL, focus = NULL) {
  check_type(type, call)
  x <- as_unchecked_v2(x, call)
  by <- check_by(by, if (part == "whole") "call_tree" else part, call, x)
  if (!is.null(check_expression(focus, "focus", call))) {
    x <- filter_by(x, list(focus = focus), call)
  }
  wanted <- sources_wanted(x, source_id, call)
  if (by$is_label) {
    return(new_call_tree(tree_by_label(x, by$word, type, wanted, call), by))
  }
  x <- with_packages_for(x, by$word, call)
  result <- rust(rust_call_tree(x, type, by$word, wanted, part, name), call)
  if (!is.null(result$known)) {
    abort_unknown_function(name, result$known, call)
  }
  new_call_tree(result, by, part)
}

# The tree in which the outermost frame of each sample is its value of a label.
tree_by_label <- function(x, key, type, wanted, call) {
  tree_of_functions <- function(x) rust(rust_call_tree(x, type, "function", wanted, "whole", NULL), call)
  labelled <- with_validation(list(x), call, with_label_frames(x, key, call))
  tree <- tree_of_functions(labelled$x)
  is_label <- tree$nodes$depth == 1
  tree$nodes$name[is_label] <- labelled$values[as.integer(tree$nodes$name[is_label])]
  if (!labelled$has_copies) {
    return(tree)
  }
  # A sample with several values is counted once.
  whole <- tree_of_functions(x)
  whole$nodes <- tree$nodes
  whole
}

# The profile with these frames, whose names are the numbers of values: a value may be missing or empty.
with_label_frames <- function(x, key, call) {
  stacks <- x$sample_locations
  samples <- x$samples$sample_id
  pairs <- samples_by_label(x, which(samples %in% stacks$sample_id), key, call)
  # A sample with several values is copied.
  sample_id <- samples[pairs$sample]
  is_copy <- duplicated(sample_id)
  copies <- data.frame(sample_id = sample_id[is_copy], copy = max(samples, 0L) + seq_len(sum(is_copy)))
  sample_id[is_copy] <- copies$copy
  for (table in c("samples", "sample_values", "sample_locations")) {
    rows <- merge(copies, data.frame(sample_id = x[[table]]$sample_id, row = seq_len(nrow(x[[table]]))))
    copied <- slice_rows(x[[table]], rows$row)
    copied$sample_id <- rows$copy
    x[[table]] <- vctrs::vec_rbind(x[[table]], copied)
  }
  values <- sort(unique(pairs$text), na.last = TRUE, method = "radix")
  names <- formatC(seq_along(values), width = nchar(length(values)), flag = "0")
  of_sample <- rep(NA_character_, nrow(x$samples))
  of_sample[match(sample_id, x$samples$sample_id)] <- names[match(pairs$text, values)]
  x <- with_outer_frames(x, of_sample)
  list(x = x, values = values, has_copies = any(is_copy))
}

# `result`: of the core. `by`: of check_by().
new_call_tree <- function(result, by = list(word = "function", is_label = FALSE), part = "whole") {
  attributes <- c(result[names(result) != "nodes"], sum = result$counted$sum)
  rlang::inject(tibble::new_tibble(
    result$nodes, !!!attributes, by = by$word, by_label = by$is_label, part = part, class = "profile_call_tree"
  ))
}

# Whether to use the samples of each source; `NULL` for all.
sources_wanted <- function(x, source_id, call) {
  if (is.null(source_id)) {
    return(NULL)
  }
  ids <- x$sources$source_id
  known <- is.numeric(source_id) && length(source_id) > 0 && all(source_id %in% ids)
  if (!known) {
    abort_argument(c(
      "`source_id` must contain ids of the table `sources`, or be `NULL`.",
      i = paste0("The profile has ", format_ids(ids), ".")
    ), call)
  }
  ids %in% source_id
}

format_ids <- function(ids) {
  shown <- utils::head(ids, 10)
  more <- if (length(ids) > length(shown)) ", ..."
  if (length(ids) == 0) "none" else paste0(paste(shown, collapse = ", "), more)
}

check_name <- function(name, call) {
  if (missing(name)) {
    abort_missing("name", call, i = "It is the name of a function, such as `\"lm\"`.")
  }
  if (identical(name, NA) || identical(name, NA_character_)) {
    name <- "<unknown>"
  }
  if (!rlang::is_string(name) || !is_valid_text(name)) {
    abort_argument("`name` must be the name of a function: one string.", call)
  }
  enc2utf8(name)
}

abort_unknown_function <- function(name, known, call) {
  # Suggests names that contain these letters, in any case.
  near <- union(similar_names(name, known), similar_texts(name, known))
  near <- utils::head(near, 3)
  abort_argument(c(
    paste0("The profile has no function `", name, "`."),
    i = if (length(near) > 0) paste0("Similar names: ", paste0("`", near, "`", collapse = ", "), ".")
  ), call)
}

# The shortest names that contain a name, ignoring case. Long names are not searched: the time is the product of both
# lengths, and they would not fit into a message.
similar_names <- function(name, names) {
  if (nchar(name) > 200) {
    return(character())
  }
  near <- names[nchar(names) <= 200]
  near <- near[grepl(tolower(name), tolower(near), fixed = TRUE)]
  near[order(nchar(near))]
}

# ---- Text --------------------------------------------------------------------------

#' @rdname call_tree
#' @export
format.profile_call_tree <- function(x, ..., n = NULL, min_share = 0.01, width = NULL) {
  call <- text_call()
  check_shown(n, call)
  check_share(min_share, "min_share", call)
  width <- line_width(width, call)
  if (!is_whole_tree(x)) {
    # Rows were removed or reordered.
    return(format(as_tibble(x), n = n, width = width))
  }
  n <- n %||% 40
  lines <- tree_lines(x, n, min_share, width)
  part <- attr(x, "part")
  amount <- paste0(at_least(x), format_amount(attr(x, "sum"), attr(x, "unit")))
  head <- paste0(
    "<", if (part == "whole") "call tree" else part, "> ", amount, " ", shown_label(attr(x, "type")), ", ",
    count_of(nrow(x), "node")
  )
  zero <- all_zero(x)
  c(
    shorten(head, width), if (nrow(x) > 0) c(lines$head, lines$text), lines$note, if (!is.null(zero)) wrap("", zero, width),
    format_since_previous(x, width)
  )
}

#' @export
as_tibble.profile_call_tree <- function(x, ...) without_class(x)

is_whole_tree <- function(x) {
  columns <- c("node_id", "parent_id", "depth", "name", "filename", "line", "self", "total")
  sums <- list(attr(x, "sum"), attr(x, "whole"))
  all(columns %in% names(x)) && all(vapply(sums, is.numeric, NA)) && identical(x$node_id, seq_len(nrow(x)))
}

# list(head, text, note): a heading, a string for each line, and a sentence about omitted branches.
tree_lines <- function(tree, n, min_share, width, ellipsis = NULL) {
  share <- function(values) values / attr(tree, "whole")
  # Differences of profiles have negative values, and a total may be 0 although self is not.
  size <- pmax(abs(tree$total), abs(tree$self))
  whole <- max(sum(size[tree$depth == 1]), size, 0)
  limit <- min_share * whole
  repeat {
    # The tolerance ensures that nodes exactly at the limit are shown despite rounding errors.
    shown <- with_callers(which(size >= limit * (1 - 1e-9) & (size > 0 | whole == 0)), tree$parent_id)
    rows <- chain_lines(tree, shown, limit)
    if (length(rows$row) <= n || limit > whole) {
      break
    }
    limit <- max(limit * 1.25, whole * 1e-6)
  }
  note <- if (length(shown) < nrow(tree)) {
    paste0("Branches below ", signif(100 * share(limit), 2), "% are not shown.")
  }
  if (length(rows$row) == 0) {
    return(list(note = note))
  }
  at <- rows$row
  amount <- format(format_amount(tree$total[at], attr(tree, "unit")), width = 5, justify = "right")
  figures <- paste0(percents(share(tree$total[at])), " ", percents(share(tree$self[at])), "  ", amount, "  ")
  indent <- strrep("  ", pmin(rows$level, 25L))
  space <- width - nchar(figures, "width") - nchar(indent)
  label <- vapply(seq_along(at), function(i) {
    chain_label(node_labels(tree[rows$chains[[i]], ], ellipsis), space[[i]])
  }, "")
  list(
    head = paste0(" total%  self%  ", formatC("total", width = max(nchar(amount), 5)), "  name"),
    text = shorten(paste0(figures, indent, label), width, ellipsis = ellipsis),
    note = note
  )
}

# These nodes and all their callers, in preorder. (A caller can be below the limit only if there are negative values.)
with_callers <- function(nodes, parent_id) {
  kept <- logical(length(parent_id))
  while (length(nodes) > 0) {
    kept[nodes] <- TRUE
    callers <- unique(parent_id[nodes])
    nodes <- callers[!is.na(callers) & !kept[callers]]
  }
  which(kept)
}

# The lines of the text: `row`, the last node of each line; `level`, its indentation; and `chains`, its nodes.
# `shown` are nodes in preorder.
chain_lines <- function(tree, shown, limit) {
  parent <- match(tree$parent_id[shown], shown)
  # A label has a line of its own.
  is_label <- tree$depth[shown] == 1 & isTRUE(attr(tree, "by_label"))
  callees <- tabulate(parent, length(shown))
  total <- abs(tree$total[shown])
  self <- abs(tree$self[shown])
  # `line`: the line of each node; `first`, `last`, `level`: of each line, its first and last node and its indentation.
  line <- first <- last <- level <- integer(length(shown))
  lines <- 0L
  for (i in seq_along(shown)) {
    up <- parent[[i]]
    own <- if (is.na(up)) 0L else line[[up]]
    continues <- own > 0 && !is_label[[up]] && last[[own]] == up && callees[[up]] == 1 && self[[up]] < limit &&
      total[[i]] >= 0.9 * total[[first[[own]]]]
    if (!continues) {
      lines <- lines + 1L
      first[[lines]] <- i
      level[[lines]] <- if (own > 0) level[[own]] + 1L else 0L
      own <- lines
    }
    line[[i]] <- own
    last[[own]] <- i
  }
  kept <- seq_len(lines)
  list(row = shown[last[kept]], level = level[kept], chains = unname(split(shown, factor(line, kept))))
}

# The names of a chain of calls; if it is long, only the first and last ones.
chain_label <- function(names, width) {
  k <- length(names)
  kept <- rbind(c(k, 0), c(3, 2), c(2, 2), c(1, 2), c(1, 1))
  kept <- kept[c(k <= 6, rowSums(kept[-1, ]) < k - 1), , drop = FALSE]
  for (i in seq_len(nrow(kept))) {
    left_out <- k - sum(kept[i, ])
    middle <- if (left_out > 0) paste0("(", left_out, " more)")
    label <- paste(c(utils::head(names, kept[i, 1]), middle, utils::tail(names, kept[i, 2])), collapse = " > ")
    if (nchar(enc2native(label), "width", allowNA = TRUE) <= width) {
      break
    }
  }
  label
}

node_labels <- function(nodes, ellipsis) {
  label <- shown_name(ifelse(is.na(nodes$name), "<unknown>", nodes$name), 60, ellipsis = ellipsis)
  has_line <- !is.na(nodes$line)
  label[has_line] <- paste0(label[has_line], " (", shown_name(file_name(nodes$filename), 60, ellipsis = ellipsis), ":", nodes$line, ")")[has_line]
  label
}
