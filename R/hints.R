# Parts of messages about wrong arguments: what the argument is, and what the user may have meant.

abort_missing <- function(name, call, ...) {
  abort_argument(c(paste0("The argument `", name, "` is missing."), ...), call)
}

# Describes an object for messages, to follow "not": `not a data frame`.
describe_object <- function(x) {
  if (is.null(x)) {
    "`NULL`"
  } else if (inherits(x, "profile_data")) {
    "a profile"
  } else if (is_list_of_profiles(x)) {
    "a list of profiles"
  } else if (inherits(x, "profvis")) {
    "an object of profvis"
  } else if (is.data.frame(x)) {
    describe_class(x, "a data frame")
  } else if (inherits(x, "connection")) {
    "a connection"
  } else if (inherits(x, "formula")) {
    "a formula"
  } else if (is.primitive(x)) {
    "a built-in function"
  } else if (is.function(x)) {
    "a function"
  } else if (is.object(x)) {
    describe_class(x, NULL)
  } else if (is.language(x)) {
    "code"
  } else if (is.environment(x)) {
    "an environment"
  } else if (is.list(x)) {
    if (length(x) == 0) "an empty list" else "a list"
  } else if (!is.atomic(x)) {
    paste("an object of type", typeof(x))
  } else if (length(x) == 1) {
    describe_value(x)
  } else {
    type <- c(character = "strings", double = "numbers", integer = "numbers", logical = "logical values")
    type <- if (typeof(x) %in% names(type)) type[[typeof(x)]] else paste(typeof(x), "values")
    if (length(x) == 0) paste("a vector without", type) else paste(format_count(length(x)), type)
  }
}

describe_value <- function(x) {
  if (is.na(x)) {
    return("`NA`")
  }
  switch(typeof(x),
    character = paste("the string", in_quotes(short_text(x))),
    double = ,
    integer = paste("the number", format(x, digits = 7)),
    logical = paste0("`", x, "`"),
    paste("a value of type", typeof(x))
  )
}

describe_class <- function(x, plain) {
  own <- c(
    profile_summary = "a summary of a profile", profile_description = "a description of a profile",
    profile_comparison = "a comparison of profiles", profile_call_tree = "a call tree", profile_stack = "a stack",
    profile_lines = "the lines of a file", profile_processes = "a list of processes",
    profile_page = "a page", tbl_profile = "a profile in a database"
  )
  found <- intersect(class(x), names(own))
  if (length(found) > 0) own[[found[[1]]]] else plain %||% paste0("an object of class `", class(x)[[1]], "`")
}

is_list_of_profiles <- function(x) {
  rlang::is_bare_list(x) && length(x) > 0 && all(vapply(x, is_profile, TRUE))
}

# A string is cut before it is escaped.
short_text <- function(x) {
  x <- shown_text(x)
  if (nchar(x) > 60) paste0(substr(x, 1, 57), "...") else x
}

# How to get a profile from another object.
profile_hint <- function(x) {
  if (is_list_of_profiles(x)) {
    "Use one of them, as in `x[[1]]`, or combine them with `combine_profiles()`."
  } else if (inherits(x, "profvis")) {
    paste(
      "Record with `record_profile()` instead, or read the file of `profvis(..., prof_output = \"Rprof.out\")` with",
      "`read_rprof()`. `as_profvis()` converts a profile for profvis."
    )
  } else if (is.list(x) && all(c("by.self", "by.total") %in% names(x))) {
    "This is a result of `summaryRprof()`. Read the file of `Rprof()` with `read_rprof()`."
  } else if (inherits(x, "tbl_profile")) {
    "`read_profile()` loads what it selects."
  } else if (inherits(x, "profile_check")) {
    "The profile of a check is its element `profile`."
  } else if (inherits(x, "DBIConnection")) {
    "Select profiles with `tbl_profile()`, and load them with `read_profile()`."
  } else if (inherits(x, "connection")) {
    "Read the profile first, with `read_profile()`."
  } else if (is_text(x) && file.exists(x) && !dir.exists(x)) {
    paste0("This is the path of a file. Read it first: `read_profile(", in_quotes(short_text(x)), ")`.")
  } else if (rlang::is_string(x)) {
    paste0(
      "If this is the path of a file, read it with `read_profile()`.",
      if (is_text(x) && nzchar(x) && !dir.exists(x)) {
        paste(c(" There is no such file now.", file_hint(x)), collapse = " ")
      }
    )
  } else if (is.function(x)) {
    "Record a call of a function with `record_profile(f())`."
  } else if (is.data.frame(x)) {
    "A profile is a list of several tables, see `?profile_data`."
  }
}

# The choices that are similar to a text, most similar first.
similar_texts <- function(x, choices) {
  # The time of a comparison is the product of both lengths, and names may be long and many.
  choices <- choices[!is.na(choices) & nchar(choices, "bytes") <= 2 * nchar(x, "bytes") + 10]
  if (length(choices) == 0 || nchar(x, "bytes") > 200 || length(choices) * nchar(x, "bytes") > 1e5) {
    return(character())
  }
  distance <- as.vector(utils::adist(x, choices, ignore.case = TRUE))
  # Swapped letters count like one wrong letter.
  distance[letters_of(choices) == letters_of(x)] <- 1
  starts <- nchar(x) > 0 & startsWith(tolower(choices), tolower(x))
  near <- starts | distance <= max(1, nchar(x) %/% 3)
  choices[near][order(distance[near])]
}

letters_of <- function(texts) {
  vapply(strsplit(tolower(texts), ""), function(letters) paste(sort(letters, method = "radix"), collapse = ""), "")
}

# `Did you mean "cpu"?`, or NULL.
did_you_mean <- function(x, choices, quote = "\"") {
  near <- if (is_text(x)) utils::head(similar_texts(x, choices), 1)
  if (length(near) > 0) paste0("Did you mean ", quote, near, quote, "?")
}

# `NULL`, or what to do about a path that is a URL.
url_hint <- function(path, writing) {
  # The name of a file may be invalid text.
  if (!grepl("^[A-Za-z][A-Za-z0-9+.-]+://", path, useBytes = TRUE) || file.exists(path)) {
    return(NULL)
  }
  if (grepl("^file://", path, ignore.case = TRUE, useBytes = TRUE)) {
    paste0("Leave out `file://`: ", in_quotes(short_text(sub("^file://", "", path, ignore.case = TRUE, useBytes = TRUE))), ".")
  } else if (writing) {
    "Write a local file, or send the profile to a server with `send_otlp()`."
  } else if (grepl("^(https?|ftp)://", path, ignore.case = TRUE, useBytes = TRUE)) {
    "Download it first, with `download.file(url, path, mode = \"wb\")`, or pass a connection that `url()` creates."
  } else {
    "Download it first."
  }
}

# How to read the profiles in a folder; NULL if the path is none.
folder_hint <- function(path) {
  folder <- native_text(path)
  if (is.na(folder) || !dir.exists(path.expand(folder))) {
    return(NULL)
  }
  shown <- in_quotes(short_text(path))
  if (file.exists(in_folder(path.expand(folder), layout_file))) {
    paste0("It is a data set of profiles: use `read_profile(tbl_profile(", shown, "))`.")
  } else {
    paste0("To read all of its files: `combine_profiles(lapply(list.files(", shown, ", full.names = TRUE), read_profile))`.")
  }
}

# A hint for a file that cannot be opened: its folder is missing, or there is a file with a similar name.
file_hint <- function(path) {
  path <- native_text(path)
  if (is.na(path)) {
    return(NULL)
  }
  path <- path.expand(path)
  folder <- dirname(path)
  if (!dir.exists(folder)) {
    return(paste0("There is no folder `", shown_text(folder), "`."))
  }
  there <- if (file.exists(path)) character() else list.files(folder)
  # Not all locales can compare names outside ASCII.
  comparable <- if (l10n_info()[["UTF-8"]]) is_valid_text(there) else !grepl("[^ -~]", there, useBytes = TRUE)
  near <- similar_texts(basename(path), there[comparable])
  near <- near[!dir.exists(in_folder(folder, near))]
  if (length(near) > 0) {
    paste0("Did you mean `", if (folder == ".") near[[1]] else in_folder(folder, near[[1]]), "`?")
  }
}

# Fails if an expression to be recorded is only the name or the definition of a function, or a string, since evaluating
# it does nothing. The expression is not evaluated here. `verb` is the name of the recording function.
check_code <- function(expr, env, verb, call) {
  if (is.symbol(expr)) {
    promised <- eval(call("substitute", expr), env)
    if (!identical(promised, expr)) {
      expr <- promised
    } else if (is.function(get0(as.character(expr), env))) {
      name <- as.character(expr)
      abort_argument(c(
        paste0("`", name, "` is a function, and it would not be called."),
        i = paste0("Call it: `", verb, "(", name, "())`.")
      ), call)
    }
  }
  if (rlang::is_call(expr, "function")) {
    abort_argument(c(
      "The expression is the definition of a function, which would not be called.",
      i = paste0("Write the code itself: `", verb, "({ ... })`; or assign the function and call it: `", verb, "(f())`.")
    ), call)
  }
  if (rlang::is_string(expr)) {
    abort_argument(c(
      "The expression is a string, not code.",
      i = paste0("To record a script, use `", verb, "(source(", in_quotes(short_text(expr)), "))`.")
    ), call)
  }
}
