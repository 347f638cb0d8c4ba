# Functions that evaluate an expression with a set of labels, see labels.R.

# The functions that evaluate an expression with labels, in the hash table `table`. It needs functions of utils that R
# 4.1 lacks; there, each call takes longer.
label_sets <- new.env(parent = emptyenv())
label_sets$utils <- asNamespace("utils")
# Named by their marks.
label_sets$callers <- list()
label_sets$overflow_callers <- list()

most_label_sets <- 1000
# The maximum number of functions for labels beyond this limit, one for each set of keys; another one is for any keys.
most_overflow_sets <- 50
# The hash table contains labels as they were given, for example as a list. This limits its size.
most_found_labels <- 5000
# R's profiler cuts names at 498 bytes.
most_label_characters <- 450

caller_with <- function(labels, call = rlang::caller_env()) {
  caller <- if (!is.null(label_sets$table)) label_sets$find(label_sets$table, labels)
  if (is.null(caller)) new_caller_with(labels, call) else caller
}

new_caller_with <- function(labels, call) {
  given <- labels
  labels <- check_labels(labels, call)
  labels <- labels[order(names(labels), method = "radix")]
  if (length(label_sets$callers) >= most_label_sets && !is.null(label_sets$table)) {
    caller <- label_sets$find(label_sets$table, labels)
    return(if (is.null(caller)) overflow_caller(names(labels)) else caller)
  }
  mark <- labels_mark(labels, call)
  caller <- label_sets$callers[[mark]]
  if (is.null(caller)) {
    if (length(label_sets$callers) >= most_label_sets) {
      return(overflow_caller(names(labels)))
    }
    caller <- new_caller(mark)
    label_sets$callers[[mark]] <- caller
    remember_labels(labels, caller)
  }
  remember_labels(given, caller)
  caller
}

remember_labels <- function(labels, caller) {
  if (is.null(label_sets$table)) {
    utils <- label_sets$utils
    if (!exists("hashtab", utils, inherits = FALSE)) {
      return()
    }
    label_sets$find <- get("gethash", utils)
    label_sets$put <- get("sethash", utils)
    label_sets$size <- get("numhash", utils)
    label_sets$table <- get("hashtab", utils)("identical")
  }
  if (label_sets$size(label_sets$table) < most_found_labels) {
    label_sets$put(label_sets$table, labels, caller)
  }
}

# For labels beyond the limit.
overflow_caller <- function(keys) {
  body <- paste(percent_encoded(keys), collapse = "&")
  mark <- paste0(".profile_overflow:", body, ";")
  known <- label_sets$overflow_callers
  if (nchar(body) > most_label_characters || is.null(known[[mark]]) && length(known) >= most_overflow_sets) {
    mark <- ".profile_overflow:*;"
  }
  if (is.null(known[[mark]])) {
    label_sets$overflow_callers[[mark]] <- new_caller(mark)
  }
  label_sets$overflow_callers[[mark]]
}

# A function that evaluates its argument inside a call of the mark.
new_caller <- function(mark) {
  # This is a valid name in any locale, since a mark is ASCII.
  caller <- function(x) NULL
  body(caller) <- call(mark, quote(x))
  environment(caller) <- list2env(rlang::set_names(list(evaluate), mark), parent = baseenv())
  caller
}

evaluate <- function(x) x

labels_mark <- function(labels, call) {
  pairs <- paste0(percent_encoded(names(labels)), "=", percent_encoded(labels))
  body <- paste(if (length(labels) > 0) pairs, collapse = "&")
  if (nchar(body) > most_label_characters) {
    longest <- names(labels)[[which.max(nchar(pairs))]]
    abort_argument(
      c(
        paste0(
          "Labels must not take more than ", most_label_characters, " characters, but they take ",
          format_count(nchar(body)), "."
        ),
        i = paste0("The longest is `", longest, "`. Characters other than ASCII letters, digits and `-._~/:` count three for each byte.")
      ),
      call
    )
  }
  paste0(".profile_labels:", body, ";")
}

unreserved <- charToRaw(paste0(c(letters, LETTERS, 0:9, "-._~/:"), collapse = ""))

percent_encoded <- function(x) {
  encode <- function(text) {
    bytes <- charToRaw(text)
    characters <- ifelse(
      bytes %in% unreserved, rawToChar(bytes, multiple = TRUE), sprintf("%%%02X", as.integer(bytes))
    )
    paste(characters, collapse = "")
  }
  vapply(enc2utf8(as.character(x)), encode, "", USE.NAMES = FALSE)
}

# Checks labels, and returns them as a named character vector.
check_labels <- function(labels, call) {
  if (is.list(labels) && !is.object(labels)) {
    is_value <- vapply(labels, function(value) is.atomic(value) && length(value) == 1, logical(1))
    if (!all(is_value)) {
      abort_argument("`labels` must contain single values.", call)
    }
    labels <- vapply(labels, as.character, "")
  } else if (!is.null(labels) && !is.atomic(labels)) {
    abort_argument("`labels` must be a named vector of text, or a named list of single values.", call)
  }
  keys <- names(labels)
  labels <- rlang::set_names(as.character(labels), keys)
  if (length(labels) == 0) {
    return(rlang::set_names(character(), character()))
  }
  if (is.null(keys) || !all(is_valid_text(keys)) || any(keys == "")) {
    abort_argument("Each label must have a name, its key.", call)
  }
  if (anyDuplicated(keys) > 0) {
    abort_argument(paste0("Two labels have the key `", keys[[anyDuplicated(keys)]], "`."), call)
  }
  if ("profile.overflow" %in% keys) {
    abort_argument("The key `profile.overflow` is reserved, see the help of `with_labels()`.", call)
  }
  invalid <- !is_valid_text(labels)
  if (any(invalid)) {
    abort_argument(paste0("The label `", keys[invalid][[1]], "` must be text that is not missing."), call)
  }
  labels
}

# The number of frames among these calls that implement labels: three for each mark.
count_label_frames <- function(calls) {
  is_mark <- function(call) {
    is.symbol(call[[1]]) && grepl("^[.]profile_(labels|overflow):", as.character(call[[1]]))
  }
  3L * sum(vapply(calls, is_mark, logical(1)))
}
