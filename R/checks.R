# Checks of arguments, so that the core gets the types that it expects.

# The frame of an exported function, whose call is shown in errors. Its `...` must be empty.
call_without_dots <- function(env = rlang::caller_env()) {
  rlang::check_dots_empty(env, call = env)
  env
}

# Whether strings are valid in their encoding. Strings marked as bytes have none.
is_valid_text <- function(x) {
  valid <- !is.na(x) & Encoding(x) != "bytes"
  # enc2utf8() substitutes bytes that are invalid in the encoding of the session.
  valid[valid] <- validEnc(x[valid]) & validUTF8(enc2utf8(x[valid]))
  valid
}

# Whether this is a single string of valid text. (A path may consist of any bytes.)
is_text <- function(x) {
  rlang::is_string(x) && is_valid_text(x)
}

is_path <- function(x) {
  rlang::is_string(x) && Encoding(x) != "bytes"
}

check_path <- function(path, call, writing = FALSE) {
  if (missing(path)) {
    abort_missing("path", call)
  }
  if (!is_path(path)) {
    abort_argument(c(
      paste0("`path` must be a single string, not ", describe_object(path), "."),
      i = if (is.character(path) && length(path) > 1) {
        "For several files, use `lapply(path, ...)`."
      } else if (!writing && inherits(path, "DBIConnection")) {
        profile_hint(path)
      } else if (writing && is_profile(path)) {
        "The profile comes first, then the path."
      }
    ), call)
  }
  if (path == "") {
    abort_argument("`path` must be a single string that is not empty.", call)
  }
}

check_uri <- function(source_uri, call) {
  if (inherits(source_uri, "connection")) {
    return(connection_name(source_uri, call))
  }
  if (!is_path(source_uri) && !(is.atomic(source_uri) && length(source_uri) == 1 && is.na(source_uri))) {
    abort_argument("`source_uri` must be a single string, or `NA`.", call)
  }
  shown_text(as.character(source_uri))
}

# The tables of a profile or dm.
as_profile <- function(x, call) {
  if (missing(x)) {
    abort_missing("x", call, i = "It is a profile, as returned by `record_profile()` or `read_profile()`.")
  }
  if (is_dm(x)) {
    return(normalize_tables(tables_of_dm(x, call), call))
  }
  if (!has_tables(x)) {
    abort_profile(
      c(paste0("`x` must be a profile, or a dm of its tables, not ", describe_object(x), "."), i = profile_hint(x)),
      "profile_error_invalid", call = call
    )
  }
  normalize_tables(x, call)
}

# Whether this may be a profile, perhaps an invalid one: a list with a table of a profile.
has_tables <- function(x) {
  known <- data_model()
  inherits(x, "profile_data") || is.list(x) && !is.data.frame(x) && !inherits(x, "tbl_profile") &&
    any(names(x) %in% c(names(known$required), names(known$version1)))
}

# The tables of a profile or dm, checked and converted to version 2.0.
as_v2 <- function(x, call) {
  as_version(x, "2.0", call)
}

# Whether this is a profile and not a list of profiles.
is_profile <- function(x) {
  # Without the class, since `[[` of a POSIXlt selects a time.
  is_dm(x) || inherits(x, "profile_data") ||
    is.list(x) && !is.data.frame(x) && is.data.frame(unclass(x)[["meta"]])
}

need_package <- function(package, call) {
  if (!rlang::is_installed(package)) {
    abort_unsupported(
      paste0("The package ", package, " is not installed; install it with `install.packages(\"", package, "\")`."), call
    )
  }
}

check_flag <- function(x, name, call) {
  if (!rlang::is_bool(x)) {
    abort_argument(paste0("`", name, "` must be `TRUE` or `FALSE`."), call)
  }
}

check_count <- function(x, name, call, least = 1) {
  if (!is.numeric(x) || length(x) != 1 || !isTRUE(x >= least && x <= .Machine$integer.max)) {
    abort_argument(paste0("`", name, "` must be a number from ", least, " to ", .Machine$integer.max, "."), call)
  }
}

# The maximum number of rows of a result or a picture, as a number that all functions accept.
check_most_rows <- function(n, call) {
  if (!is.numeric(n) || length(n) != 1 || !isTRUE(n >= 1)) {
    abort_argument(paste0("`n` must be a number of rows, 1 or greater, or `Inf`, not ", describe_object(n), "."), call)
  }
  min(n, .Machine$integer.max)
}

# `bytes`: whether values may be bytes that are not valid text, as in HTTP headers.
check_texts <- function(x, name, call, bytes = FALSE) {
  named <- length(x) == 0 || rlang::is_named(x) && all(is_valid_text(names(x))) && !anyDuplicated(names(x))
  values <- is.character(x) && all(if (bytes) !is.na(x) else is_valid_text(x))
  if (!values || !named) {
    abort_argument(paste0("`", name, "` must be a character vector with a name for each value."), call)
  }
}

# One of some strings, by default the first one.
check_choice <- function(x, choices, name, call) {
  if (identical(x, choices)) {
    return(choices[[1]])
  }
  if (!is_text(x) || !x %in% choices) {
    quoted <- paste0("\"", choices, "\"")
    last <- length(quoted)
    several <- if (last > 1) paste0(paste(quoted[-last], collapse = ", "), " or ")
    abort_argument(c(
      paste0("`", name, "` must be ", several, quoted[[last]], "."),
      i = did_you_mean(x, choices)
    ), call)
  }
  x
}

check_share <- function(x, name, call) {
  if (!is.numeric(x) || length(x) != 1 || !isTRUE(x >= 0 && x <= 1)) {
    abort_argument(paste0("`", name, "` must be a share: a number from 0 to 1."), call)
  }
}

check_text <- function(x, name, call) {
  if (!is.null(x) && !is_text(x)) {
    abort_argument(paste0("`", name, "` must be one string, or `NULL`."), call)
  }
}

check_type <- function(type, call) {
  if (!is.null(type) && !is_text(type)) {
    abort_argument("`type` must be one string, the name of a sample type.", call)
  }
}

# R 4.2 cannot set a timer of a second or more, and would quit.
interval_rule <- "a number of seconds, at least 1e-6 and less than 1"

is_interval <- function(x) {
  is.numeric(x) && length(x) == 1 && isTRUE(x >= 1e-6 && x < 1)
}

check_interval <- function(interval, call) {
  if (!is_interval(interval)) {
    milliseconds <- rlang::is_scalar_double(interval) && isTRUE(interval >= 1 && interval < 1000)
    abort_argument(c(
      paste0("`interval` must be ", interval_rule, "."),
      i = if (milliseconds) {
        paste0("If these are milliseconds, use `interval = ", format(interval / 1000), "`.")
      }
    ), call)
  }
}
