# What verbs group by: the words of `by = `, described in the help of `summary()`.

# What the core groups frames by.
parts_of_stacks <- c("function", "file", "line", "package")

# Checks `by`; only this function knows what each verb can do with which words. Returns list(word, is_label): whether
# samples are grouped by their labels, or by what is found like labels. A label with the name of a word comes first.
# `x`: a profile that need not have been checked, for verbs that accept labels.
check_by <- function(by, verb, call, x = NULL) {
  parts <- c(
    if (verb != "holders") parts_of_stacks, if (verb == "compare_profiles") "path", if (verb == "summary") "loaded"
  )
  if (!verb %in% c("summary", "call_tree", "holders")) {
    return(list(word = check_choice(by, parts, "by", call), is_label = FALSE))
  }
  if (length(parts) > 0 && identical(by, parts)) {
    return(list(word = parts[[1]], is_label = FALSE))
  }
  if (!is_text(by)) {
    abort_argument("`by` must be one string, such as `\"process\"` or the key of a label.", call)
  }
  is_label <- with_validation(list(x), call, {
    is_like_label <- has_label(x, by) || !by %in% parts && !is.null(text_like_label(x, by))
    if (!is_like_label && !by %in% parts) {
      abort_unknown_label(x, by, "by", call, parts)
    }
    is_like_label
  })
  list(word = by, is_label = is_label)
}

keys_of_labels <- function(x) unique(as.character(as.list(x$.labels)$key))

has_label <- function(x, key) key %in% as.list(x$.labels)$key

# `others`: words that the argument may also be, beside keys and what is found like them.
abort_unknown_label <- function(x, key, argument, call, others = NULL) {
  keys <- keys_of_labels(x)
  like_labels <- setdiff(c("process", "source", "run", "trace_id", "span_id"), keys)
  others <- c(others, like_labels[!vapply(lapply(like_labels, text_like_label, x = x), is.null, NA)])
  abort_argument(c(
    paste0("`", argument, "`: no sample has the label `", shown_label(key), "`."),
    i = did_you_mean(key, c(keys, others), "`"),
    i = if (length(keys) > 0) {
      paste0("Labels: ", in_backticks(shown_label(utils::head(keys, 10))), if (length(keys) > 10) ", ...", ".")
    } else {
      "The profile has no labels, see `with_labels()`."
    },
    i = if (length(others) > 0) paste0("Also: ", in_backticks(others), ".")
  ), call)
}

# The profile with the packages of its functions, if it is grouped by them and they have not been determined.
with_packages_for <- function(x, word, call) {
  if (word == "package" && !has_packages(x)) packages_added(x, call) else x
}
