# Shows the result of `profile_check()`.

#' @export
format.profile_check <- function(x, ..., n = NULL, width = NULL) {
  call <- text_call()
  check_shown(n, call)
  width <- line_width(width, call)
  n <- n %||% 10
  processes <- sum(x$parts$processes)
  status <- if (x$status == 0) "" else paste0(", exit status ", x$status)
  c(
    paste0(
      "<check of ", shown_name(x$package %||% "a package", 60), "> ", format_seconds(x$time), " in ",
      count_of(processes, "process", "processes"), status,
      if (!is.null(x$base)) paste0(", before: ", format_seconds(x$base$time), " (", shown_name(x$base$package, 60), ")")
    ),
    paste0("  ", format_parts(x)),
    if (nrow(x$items) > 0) c("Slowest:", paste0("  ", format_items(utils::head(x$items, n), width - 2))),
    format_exceeded(x$exceeded, width),
    format_loaded(x, width),
    if (is.null(x$profile)) "There is no profile."
  )
}

format_parts <- function(x) {
  parts <- x$parts
  all <- vctrs::vec_rbind(parts, tibble::tibble(
    part = "whole", processes = sum(parts$processes), time = x$time, share = 1, memory = highest(parts$memory),
    base = x$base$time
  ))
  columns <- list(
    part = c("part", all$part),
    time = c("time", seconds_text(all$time)),
    base = if (!is.null(x$base)) c("before", seconds_text(all$base)),
    share = c("share", paste0(trimws(percent(all$share)), "%")),
    processes = c("processes", format_count(all$processes)),
    memory = c("memory", ifelse(is.na(all$memory), "", vapply(all$memory, bytes_text, "")))
  )
  align_columns(columns[lengths(columns) > 0], "part")
}

format_items <- function(items, width) {
  line <- ifelse(is.na(items$line), "", paste0(":", items$line))
  place <- ifelse(is.na(items$file), paste0(items[["function"]], "()"), paste0(items$file, line))
  # An item may spend its time elsewhere.
  place[!(items$line_time >= least_line_share * items$time) %in% TRUE] <- ""
  columns <- list(
    time = seconds_text(items$time), before = if ("base" %in% names(items)) seconds_text(items$base), kind = items$kind,
    place = shown_name(place, 30, "start"), name = shown_name(items$name, max(20, width))
  )
  shorten(align_columns(columns[lengths(columns) > 0], c("kind", "name", "place")), width)
}

# The line with most time of an item is shown if it is at least this share of its time.
least_line_share <- 0.1

# Lines of a table. Columns are aligned on the right, except for the named ones.
align_columns <- function(columns, left) {
  texts <- Map(function(name, column) {
    format(column, justify = if (name %in% left) "left" else "right")
  }, names(columns), columns)
  trimws(do.call(paste, c(unname(texts), sep = "  ")), "right")
}

seconds_text <- function(seconds) {
  ifelse(is.na(seconds), "", paste(formatC(seconds, format = "f", digits = 2, big.mark = ","), "s"))
}

format_exceeded <- function(exceeded, width) {
  if (nrow(exceeded) == 0) {
    return(NULL)
  }
  examples <- exceeded[exceeded$what == "example", ]
  c(
    if (any(exceeded$what == "check")) {
      wrap("", "CRAN accepts checks of up to ten minutes; this one took longer.", width)
    },
    if (nrow(examples) > 0) {
      names <- paste(shown_name(utils::head(examples$name, 5), 60), collapse = ", ")
      more <- if (nrow(examples) > 5) ", ..." else ""
      longer <- paste0(count_of(nrow(examples), "example"), " took longer: ", names, more, ".")
      wrap("", paste("CRAN accepts examples of up to 5 s;", longer), width)
    }
  )
}

format_loaded <- function(x, width) {
  loading <- x$loading
  if (nrow(loading) > 0 && sum(loading$time) > least_loading * x$time) {
    most <- loading[which.max(loading$time), ]
    package <- if (is.na(most$package)) "packages unknown" else shown_label(most$package)
    text <- paste0(format_seconds(sum(loading$time)), ", most in ", package, " (", format_seconds(most$time), ")")
    wrap("Loading packages: ", text, width)
  }
}
