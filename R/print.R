# Prints profiles, in lines that fit the console.

print_lines <- function(x, ...) {
  cat(format(x, ...), sep = "\n")
  invisible(x)
}

#' Print a profile
#'
#' `print()` shows the number of samples, the types of their values, the sources, and the functions with the greatest
#' self. For processes that worked together, it shows their number, the sum of their CPU time, and the time from
#' the first start to the last end of a source; `summary(x, by = "process")` lists them. The figures agree with
#' [summary()][summary.profile_data()], whose help describes which samples are counted; the number of other samples is
#' shown as *left out*.
#'
#' For a snapshot of the heap, `print()` shows the size, the process, where its memory is, and what holds most of it, see
#' [holders()].
#'
#' Control characters in names and paths, and characters that change the direction of text, are shown as
#' escape sequences such as `\033`, so that they have no effect on the terminal. Long names are shortened.
#'
#' @param x A profile, see [profile_data], or a summary of one.
#' @param ... Passed on to `format()`, for which it must be empty.
#' @param n The number of rows to show, `Inf` for all: functions of a profile, or paths of a snapshot, 5 by default;
#'   rows of each table of a summary, by default as many as tibbles show.
#' @param width The width of the lines, by default the width of the console, `getOption("width")`.
#'
#' @return `print()`: `x`, invisibly. `format()`: a character vector, a string for each line.
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#' print(x, n = 3)
#' print(summary(x), n = 3, width = 60)
print.profile_data <- print_lines

#' @export
print.profile_agent_status <- print_lines

#' @export
print.profile_check <- print_lines

#' @rdname annotate_lines
#' @export
print.profile_lines <- print_lines

#' @rdname call_tree
#' @export
print.profile_call_tree <- print_lines

#' @rdname compare_profiles
#' @export
print.profile_growth <- print_lines

#' @rdname compare_profiles
#' @export
print.profile_comparison <- print_lines

#' @rdname tbl_profile
#' @export
print.tbl_profile <- print_lines

#' @rdname describe_profile
#' @export
print.profile_description <- print_lines

#' @rdname dump_stack
#' @export
print.profile_stack <- print_lines

#' @rdname holders
#' @export
print.profile_holders <- print_lines

#' @rdname list_r_processes
#' @export
print.profile_processes <- print_lines

#' @export
print.pprof_tool <- print_lines

#' @export
print.pprof_process <- print_lines

#' @rdname print.profile_data
#' @export
print.profile_summary <- print_lines

#' @rdname print.profile_data
#' @export
format.profile_data <- function(x, ..., n = NULL, width = NULL) {
  call <- text_call()
  n <- check_shown(n, call) %||% 5
  width <- line_width(width, call)
  snapshot <- if (is_snapshot(x)) snapshot_lines(x, n, width)
  if (!is.null(snapshot)) {
    return(shorten(snapshot, width))
  }
  version <- profile_version(x)
  head <- paste0("<profile ", shown_name(version, 20), ">")
  summary <- tryCatch(summary(x), profile_error = identity)
  if (inherits(summary, "profile_error")) {
    # A profile may be printed while its tables are being edited.
    lines <- c(head, format_tables(x), wrap("Not valid: ", conditionMessage(summary), width))
    return(shorten(lines, width))
  }
  hint <- hint_for(x, summary)
  lines <- c(
    head,
    paste0("Samples:   ", format_samples(summary)),
    format_left_out(summary, width),
    if (version == "2.0") format_types(attr(summary, "types"), width),
    if (version == "2.0") format_origin(x$sources, processes_of(x), width, program = programs_of(x)),
    format_hottest(summary, n, width),
    if (!is.null(hint)) wrap("Hint:      ", hint, width),
    format_problems(x)
  )
  shorten(lines, width)
}

# The frame whose call is shown in errors of a `format()` method, whose `...` must be empty: the frame of the calling
# `print()` method, if there is one.
text_call <- function(env = rlang::caller_env(), caller = rlang::caller_env(2)) {
  call <- if (identical(get0(".Generic", caller, inherits = FALSE), "print")) caller else env
  rlang::check_dots_empty(env, call = call)
  call
}

# Checks and returns a number of rows to show, which may be 0 or infinite, or `NULL` for the default, as for tibbles.
check_shown <- function(n, call) {
  if (!is.null(n) && (!is.numeric(n) || length(n) != 1 || !isTRUE(n >= 0))) {
    abort_argument(paste0("`n` must be a number of rows, 0 or greater, or `Inf`, not ", describe_object(n), "."), call)
  }
  n
}

# What methods of `format()` for tables return: the text by `lines(x, n, width)`, or the text of a tibble if x is not
# `whole`, since columns or rows were removed.
text_of_table <- function(x, n, width, whole, lines, default = 50) {
  call <- text_call(rlang::caller_env(), rlang::caller_env(2))
  check_shown(n, call)
  width <- line_width(width, call)
  if (whole) lines(x, n %||% default, width) else format(as_tibble(x), n = n, width = width)
}

# A tibble with the columns of a table that prints in its own way.
without_class <- function(x) {
  attributes(x) <- attributes(x)[c("names", "row.names")]
  tibble::new_tibble(as.list(x), nrow = length(x[[1]]))
}

format_tables <- function(x) {
  tables <- Filter(is.data.frame, unclass(x))
  rows <- format(vapply(tables, nrow, 0L), big.mark = ",")
  paste0("  ", format(shown_name(names(tables), 40)), "  ", rows, " rows")
}

# ---- What was recorded, and where --------------------------------------------------

format_types <- function(types, width) {
  if (nrow(types) == 0) {
    return()
  }
  words <- paste0(shown_label(types$type), "\u00a0(", shown_label(types$unit), ")", collapse = ", ")
  wrap("Values:    ", words, width)
}

# `processes`: several that worked together, which are counted; otherwise the sources are listed.
format_origin <- function(sources, processes, width, ...) {
  if (is.null(processes)) {
    return(format_sources(sources, width, ...))
  }
  wrap("Processes: ", format_processes(processes), width)
}

# `program`, `role`: of the process of each source, NA if unknown. `n`: the number of sources to show.
format_sources <- function(sources, width, ellipsis = NULL, program = NA_character_, role = NA_character_, n = 3) {
  # Columns are used instead of rows of the table, see slice_rows().
  shown <- lapply(unclass(sources)[c("source_type", "source_uri")], utils::head, n)
  type <- shown_label(shown$source_type)
  # The end of a path is more informative than its start.
  uri <- shown_name(shown$source_uri, width - 12 - nchar(type, "width"), "start", ellipsis)
  more <- nrow(sources) - length(type)
  first <- function(x) utils::head(rep_len(x, nrow(sources)), n)
  role <- first(role)
  lines <- paste0(
    type, ifelse(is.na(shown$source_uri), "", paste0(" ", uri)), ifelse(is.na(role), "", paste0(" (", shown_label(role), ")"))
  )
  program <- first(program)
  space <- pmax(width - 14 - nchar(lines, "width"), 10)
  program <- vapply(seq_along(lines), function(i) shown_name(program[[i]], space[[i]], "end", ellipsis), "")
  lines <- c(
    paste0(lines, ifelse(is.na(program), "", paste0(", ", program))),
    if (more > 0) paste0("and ", more, " more")
  )
  paste0(c("Sources:   ", rep("           ", length(lines)))[seq_along(lines)], lines)
}

# The program of the process of each source, with its script. Of a command line, which other tools may have recorded, only
# the program is shown, since arguments may contain secrets.
programs_of <- function(x) {
  program <- source_attribute(x, "process.executable.name")
  script <- source_attribute(x, "profile.process.script")
  command <- source_attribute(x, "process.command_line")
  program[is.na(program)] <- sub(".*/", "", sub(" .*", "", command[is.na(program)]))
  ifelse(is.na(script), program, paste(program, script))
}

# The names of a program and of its script, as attributes of its source, from the arguments of R.
names_of_process <- function(arguments) {
  of_r <- arguments[cumsum(arguments == "--args") == 0]
  script <- c(sub("^--file=", "", grep("^--file=", of_r, value = TRUE)), of_r[which(of_r == "-f") + 1])
  script <- utils::head(script[!is.na(script) & script != "-"], 1)
  c(process.executable.name = basename(of_r[[1]]), profile.process.script = if (length(script) > 0) basename(script))
}

format_hottest <- function(summary, n, width) {
  if (attr(summary, "counted")$samples == 0) {
    return("No samples with a stack.")
  }
  zero <- all_zero(summary)
  if (!is.null(zero)) {
    return(wrap("", zero, width))
  }
  by_function <- summary$by_function
  type <- attr(summary, "type")
  shown <- utils::head(by_function, n)
  name <- shown_name(shown$name, width - 17)
  more <- nrow(by_function) - nrow(shown)
  c(
    paste0("  self%  total%  function", if (type != "samples") paste0(", by ", shown_label(type))),
    paste0(" ", percents(shown$self_share), "  ", percents(shown$total_share), "  ", name),
    if (more > 0) paste0("                 and ", format_count(more), " more, see `summary()`")
  )
}

# A message if all values of a summary or a call tree are 0, which names types with other values. `NULL` if there are
# other values, or no samples. `argument` is the name of the argument for the sample type.
all_zero <- function(summary, argument = "type") {
  if (attr(summary, "counted")$samples == 0) {
    return(NULL)
  }
  type <- shown_label(attr(summary, "type"))
  if (inherits(summary, "profile_summary") && nrow(summary$by_function) == 0 && attr(summary, "whole") > 0) {
    paste0("The values of `", type, "` of each stack add up to 0.")
  } else if (attr(summary, "whole") == 0) {
    others <- utils::head(attr(summary, "other_types"), 5)
    # A shortened name could not be used as an argument.
    others <- printable(others[nchar(others) <= 500])
    choices <- paste0("`", argument, "\u00a0=\u00a0\"", others, "\"`", recycle0 = TRUE)
    paste0(
      "All values of `", type, "` are 0.",
      if (length(others) > 0) paste0(" Try ", paste(choices, collapse = " or "), ".")
    )
  }
}

format_problems <- function(x) {
  n <- NROW(x[[".problems"]])
  if (n > 0) {
    paste0("Problems:  ", format_count(n), ", see `profile_problems()`")
  }
}

# Hints for the most common surprises of new users: a profile of Rprof() has no samples, or no lines.
hint_for <- function(x, summary) {
  counted <- attr(summary, "counted")
  recorded <- counted$samples + counted$without_stack + counted$without_value
  if (recorded == 0) {
    hint_without_samples(x)
  } else if (counted$samples > 0 && has_line_profiling(x) && lacks_lines(x, summary$by_function$name)) {
    hint_without_lines(x, summary$by_function$name)
  } else if (attr(summary, "without_symbol") > 0.1 * attr(summary, "whole")) {
    paste(
      "The profile is not symbolized: the functions of much of the code are unknown.",
      hint_without_symbols(unique(as.character(x[["sources"]]$source_type)))
    )
  }
}

# How to get the names of functions, which depends on what recorded the profile. `types`: of its sources.
hint_without_symbols <- function(types) {
  switch(if (length(types) == 1) types else "",
    perf = "Install debug symbols before you run `perf script`.",
    pprof = "Add names with `pprof -proto -output=named.pb.gz program file`.",
    firefox = paste(
      "The server of samply adds names while its viewer is open: open the file with `samply load`, and download the",
      "profile in the viewer."
    ),
    otlp = "Profilers of OpenTelemetry leave names of native functions to the backend that receives their profiles.",
    "Install debug symbols of its programs and libraries before you record."
  )
}

# Why a profile has no samples, if that is known.
hint_without_samples <- function(x) {
  if (is.data.frame(x[["sources"]]) && nrow(x[["sources"]]) == 0) {
    "There are no runs (`sources`): the file contains none, or a condition has selected none."
  } else if (NROW(x[["sources"]]) > 0 && sum(x[[".problems"]]$problem %in% "zero_time") == nrow(x[["sources"]])) {
    "Every frame lasts 0, so there are no samples. Was the clock too coarse for this code?"
  } else if (NROW(x[["functions"]]) > 0 && NROW(x[["samples"]]) == 0) {
    # The functions remain when samples are removed, and files can contain functions that no sample has.
    paste(
      "There are functions, but no samples: the file contains none, or a filter or a condition has removed them. See",
      "`?filter_profile`."
    )
  } else if (!is.null(x[[".rprof"]]) || NROW(x[["sources"]]) > 0 &&
    all(x[["sources"]]$source_type %in% c("rprof", "rprofmem")) && any(x[["sources"]]$source_type == "rprof")) {
    paste(
      "`Rprof()` takes a sample once in an interval of CPU time, which does not pass while R waits.",
      "Profile code that runs longer, or repeat it. See `?read_rprof`."
    )
  } else if (NROW(x[["sources"]]) > 0 && all(x[["sources"]]$source_type == "process") &&
    all(x[["sources"]][[".default_type"]] %in% "cpu")) {
    "The process was not computing at any sample. Record with `clock = \"wall\"` to see where it waits."
  }
}

# Native code may have lines nevertheless. `deparsed`: whether lines of the text that R makes of functions of packages count.
has_lines_of_r <- function(x, deparsed = TRUE) {
  types <- x[["locations"]][[".frame_type"]]
  counts <- if (is.null(types)) TRUE else types %in% c("r", NA)
  if (!deparsed) {
    row <- match(x[["locations"]]$function_id, x[["functions"]]$function_id)
    counts <- counts & !is_deparsed_package(x[["functions"]]$filename[row])
  }
  any(x[["locations"]]$line[counts] > 0, na.rm = TRUE)
}

# Whether lines of R code would have been recorded.
has_line_profiling <- function(x) {
  any(x[["sources"]]$source_type == "process") ||
    any(x[["sources"]][[".line_profiling"]], na.rm = TRUE) ||
    any(grepl("line profiling", x[[".rprof"]]$header, fixed = TRUE))
}
