# Limits of the memory that an expression takes, in tests. They are exact, so that a test needs neither several runs nor a
# base.

#' Expect limits of memory
#'
#' @description
#' `expect_memory()` evaluates an expression and fails if it takes more memory than a limit. `expect_no_copies()` fails if
#' R copies a large vector, because code modifies one of several references to it. Use them in tests with testthat, or in
#' scripts. The messages show the lines of code.
#'
#' @details
#' Each vector is recorded as with `record_profile(memory = "exact")`, whose help says what is counted; memory that R's compiler
#' allocates to compile functions is not. R compiles a function when it is called for the second time.
#' The figures do not depend on the machine's speed or load. They may differ a little between
#' versions of R, and if the code first loads packages or fills caches. So set a limit that is clearly higher than what the
#' code needs, but clearly lower than a mistake would need.
#'
#' No profiler runs meanwhile, so a test with these expectations can be recorded.
#'
#' @param expr An expression, evaluated once, where the function is called.
#' @param ... Must be empty.
#' @param at_most The largest amount that the expression may take: bytes as a number, or text such as `"200MB"`. As in all
#'   output of this package, 1 kB is 1024 bytes. For types that count objects, their number.
#' @param type What is limited: by default `"alloc_space"`, all vectors that are allocated, freed or not; `"peak_space"` for
#'   the most that was allocated and not freed yet at one moment, which includes garbage that R had not collected yet,
#'   `"inuse_space"` for what remains in use afterwards, or `"copy_space"` for copies. Each of them exists for the number of
#'   vectors, as in `"alloc_objects"`.
#' @param above Copies of vectors of at most this size are ignored: bytes as a number, or text such as `"64kB"`.
#'
#' @return The profile of the vectors that were allocated, see [profile_data], invisibly. `summary(x, type = "copy_space")`
#'   and [profile_page()] show the rest.
#'
#' @section Errors:
#' In a test with testthat, a failure is an expectation that failed. Elsewhere, it is an error of class
#' `profile_error_regression`, and the script ends.
#'
#' Vectors can be recorded on `r live_platforms()` only, if R was built with `capabilities("profmem")`. Elsewhere, and while
#' another recording of exact memory is running, a test is skipped, and the message has the reason. Outside of tests, this is
#' an error of class `profile_error_unsupported`.
#'
#' Other errors are those of the expression, and `profile_error_argument` for invalid arguments.
#' @seealso [expect_no_regression()] to compare two versions
#' @export
#' @examples
#' if (profile:::is_live_platform() && capabilities("profmem")) {
#'   expect_memory(sort(runif(1e5)), at_most = "10MB")
#'   x <- runif(1e5)
#'   try(expect_no_copies({
#'     y <- x
#'     y[1] <- 0
#'   }))
#' }
expect_memory <- function(expr, ..., at_most, type = NULL) {
  call <- call_without_dots()
  env <- rlang::caller_env()
  code <- code_to_limit(missing(expr), substitute(expr), env, "expect_memory", call)
  if (missing(at_most)) {
    abort_missing("at_most", call, i = "It is the limit, such as \"200MB\".")
  }
  known <- limited_types()
  type <- check_choice(type %||% exact_type("allocated"), known$type, "type", call)
  unit <- known$unit[match(type, known$type)]
  at_most <- check_amount(at_most, unit, "at_most", "200MB", call)
  x <- allocations_of(code, env, 0, call)
  amount <- sum(x$sample_values$value[x$sample_values$type == type])
  role <- known$role[match(type, known$type)]
  verb <- c(allocated = " allocates ", copies = " copies ", peak = " has up to ", `in use` = " leaves ")[[role]]
  where <- c(allocated = "", copies = "", peak = " allocated and not freed yet", `in use` = " in use")[[role]]
  what <- if (unit == "bytes") "" else " vectors"
  message <- c(
    paste0(
      in_backticks(code_in_one_line(code)), verb, format_amount(amount, unit), what, where, ", more than ",
      format_amount(at_most, unit), "."
    ),
    lines_in_message(x, type, unit, amount)
  )
  meet_expectation(amount <= at_most, message, "profile_error_regression", list(profile = x), call)
  invisible(x)
}

#' @rdname expect_memory
#' @export
expect_no_copies <- function(expr, ..., above = "64kB") {
  call <- call_without_dots()
  env <- rlang::caller_env()
  code <- code_to_limit(missing(expr), substitute(expr), env, "expect_no_copies", call)
  above <- check_amount(above, "bytes", "above", "64kB", call)
  # The threshold is the size of the smallest vector.
  x <- allocations_of(code, env, min(above + 1, .Machine$integer.max), call)
  sum_of <- function(type) sum(x$sample_values$value[x$sample_values$type == type])
  copies <- sum_of(exact_type("copies", "count"))
  type <- exact_type("copies")
  bytes <- sum_of(type)
  message <- c(
    paste0(
      in_backticks(code_in_one_line(code)), " copies ", count_of(copies, "vector"), " of more than ",
      format_amount(above, "bytes"), ": ", format_amount(bytes, "bytes"), "."
    ),
    lines_in_message(x, type, "bytes", bytes)
  )
  meet_expectation(copies == 0, message, "profile_error_regression", list(profile = x), call)
  invisible(x)
}

# ---- Limits ------------------------------------------------------------------------

# The sample types of exact recordings that can be limited: those whose sum does not depend on time.
limited_types <- function() {
  known <- data_model()$sample_types
  known[known$type %in% types_with_role(known$type, limited_roles, c("bytes", "count")) & grepl("_", known$type), ]
}
# The one with this role.
exact_type <- function(role, unit = "bytes") {
  known <- limited_types()
  known$type[known$role == role & known$unit == unit]
}

limited_roles <- c("allocated", "peak", "in use", "copies")

# An amount of this unit: a number, or for bytes text such as "200MB".
check_amount <- function(x, unit, name, example, call) {
  amount <- if (rlang::is_string(x) && unit == "bytes") amount_of_text(x) else if (is.numeric(x) && length(x) == 1) x
  if (is.null(amount) || !isTRUE(amount >= 0 && is.finite(amount))) {
    rule <- if (unit == "bytes") paste0("a number of bytes, or text such as \"", example, "\"") else "a number of objects"
    abort_argument(paste0("`", name, "` must be ", rule, ", not ", describe_object(x), "."), call)
  }
  as.double(amount)
}

# Bytes of text such as "200MB", "64 kB" or "1e6"; NULL if it is something else.
amount_of_text <- function(text) {
  pattern <- "^ *([0-9.]+(?:[eE][+-]?[0-9]+)?) *([a-zA-Z]*) *$"
  if (nchar(text, "bytes") > 100 || !grepl(pattern, text, perl = TRUE)) {
    return(NULL)
  }
  number <- suppressWarnings(as.numeric(sub(pattern, "\\1", text, perl = TRUE)))
  unit <- sub(pattern, "\\2", text, perl = TRUE)
  kind <- unit_kinds[[1]]
  at <- if (unit == "") 1L else find_unit(kind, unit)
  if (is.na(number) || is.na(at)) NULL else number * kind$size[[at]]
}

code_to_limit <- function(is_missing, code, env, verb, call) {
  if (is_missing) {
    abort_missing("expr", call, i = paste0("It is the code to check, as in `", verb, "(work())`."))
  }
  check_code(code, env, verb, call)
  code
}

# Ends an expectation: in a test by testthat, elsewhere by an error of this class with these `fields`.
meet_expectation <- function(is_met, message, class, fields, call) {
  # testthat sets this variable; to look for the package takes longer than a comparison.
  if (environment_values("TESTTHAT") == "true" && rlang::is_installed("testthat")) {
    testthat::expect(is_met, paste(printable(message), collapse = "\n"))
  } else if (!is_met) {
    rlang::inject(abort_profile(message, class, !!!fields, call = call))
  }
}

# ---- Recording ---------------------------------------------------------------------

# The profile of the vectors of at least `threshold` bytes that the code allocates.
allocations_of <- function(code, env, threshold, call) {
  folder <- new_recording_folder()
  remove_folder <- remover_of(folder)
  on.exit(remove_folder())
  begin <- function() {
    reason <- NULL
    is_on <- tryCatch(
      withCallingHandlers(
        start_allocations(threshold, folder, call),
        profile_message_memory = function(message) {
          reason <<- utils::tail(strsplit(conditionMessage(message), "\n", fixed = TRUE)[[1]], 1)
          rlang::cnd_muffle(message)
        }
      ),
      profile_error_unsupported = function(error) {
        reason <<- conditionMessage(error)
        FALSE
      }
    )
    if (!is_on) not_recorded(paste("Vectors cannot be recorded one by one.", reason), call)
  }
  work <- evaluator_of(code, env)
  started <- Sys.time()
  frames <- run_once(work, 1, begin, function() stop_allocations(call))
  found <- read_allocations(folder, call)
  if (is.null(found)) abort_unsupported("The expression has ended the recording of allocations.", call)
  found$sources$source_timestamp <- as.numeric(started)
  found$.comments <- tibble::tibble(source_id = found$sources$source_id, comment = code_in_one_line(code))
  found <- mark_session(mark_exact_memory(found, found$sources$source_id))
  # R compiles functions that are called for the second time, and loops, with these functions of compiler.
  ignore <- "^([.](start|end)_of_run|(compiler:::)?try(Cmpfun|Compile))$"
  x <- without_callers(filter_by(found, list(ignore = ignore), call), frames, call)
  x <- with_typed_code(without_code_of_callers(x), code, env)
  with_source_text(with_packages_in_tables(x, call), as.numeric(Sys.time()), call)
}

# A function that evaluates the code in this environment once, and keeps no reference to its value.
evaluator_of <- function(code, env) {
  value <- NULL
  # A promise adds no frames, unlike `eval()`.
  rlang::inject(delayedAssign("value", !!code, env, rlang::current_env()))
  function() {
    value
    value <<- NULL
  }
}

not_recorded <- function(reason, call) {
  if (environment_values("TESTTHAT") == "true" && rlang::is_installed("testthat")) {
    testthat::skip(printable(reason))
  }
  abort_unsupported(reason, call)
}

# ---- Messages ----------------------------------------------------------------------

# The lines with most of a type, for the message of an error. A vector belongs to the innermost line of a source file, since
# that is what can be changed; else to the innermost line of a package; else to the innermost function.
lines_in_message <- function(x, type, unit, whole, n = 3) {
  places <- places_of(x, type)
  shown <- utils::head(places[places$value > 0, ], n)
  if (nrow(shown) == 0) {
    return(NULL)
  }
  names <- function(text) shown_name(text, 80)
  share <- paste0(" (", trimws(percent(shown$value / whole)), "%)")
  text <- paste0(
    gsub("\u00a0", " ", described_place(shown, names)), ": ", format_amount(shown$value, unit), ifelse(share == " (100.0%)", "", share),
    ifelse(is.na(shown$reason), "", paste0(", ", shown_name(shown$reason, 200)))
  )
  rlang::set_names(text, rep("*", length(text)))
}

# The places with most of a type: name, filename, line, text of the line, value, and the reason of copies.
places_of <- function(x, type) {
  values <- x$sample_values[x$sample_values$type == type & x$sample_values$value > 0, ]
  frames <- x$sample_locations[x$sample_locations$sample_id %in% values$sample_id, ]
  location <- match(frames$location_id, x$locations$location_id)
  called <- match(x$locations$function_id[location], x$functions$function_id)
  filename <- x$functions$filename[called]
  line <- x$locations$line[location]
  has_line <- (line > 0) %in% TRUE & !filename %in% ""
  class <- ifelse(!has_line, 3L, ifelse(is_deparsed_package(filename), 2L, 1L))
  order <- order(frames$sample_id, class, frames$depth, method = "radix")
  first <- order[!duplicated(frames$sample_id[order])]
  at <- first[match(values$sample_id, frames$sample_id[first])]
  reasons <- x$.labels[x$.labels$key %in% "copy.reason", ]
  place <- tibble::tibble(
    name = x$functions$name[called][at],
    filename = ifelse(has_line[at], filename[at], NA_character_),
    line = ifelse(has_line[at], line[at], NA_integer_)
  )
  place$name[is.na(place$name)] <- "(unknown)"
  reason <- as.character(reasons$str[match(values$sample_id, reasons$sample_id)])
  groups <- vctrs::vec_group_loc(place[c("filename", "line", "name")[if (all(has_line[at])) 1:2 else 1:3]])
  first_of <- vapply(groups$loc, `[[`, 0L, 1L)
  found <- place[first_of, ]
  found$value <- vapply(groups$loc, function(rows) sum(values$value[rows]), 0)
  # The reason of the most bytes.
  found$reason <- if (startsWith(type, "copy")) {
    vapply(groups$loc, function(rows) reason[rows[which.max(values$value[rows])]], "")
  } else {
    rep(NA_character_, nrow(found))
  }
  found$text <- described_lines(found, x$.source_text %||% no_text)$text
  found[order(-found$value, found$filename, found$line, method = "radix"), ]
}
