# Prints summaries of profiles.

#' @rdname print.profile_data
#' @export
format.profile_summary <- function(x, ..., n = NULL, width = NULL) {
  call <- text_call()
  check_shown(n, call)
  width <- line_width(width, call)
  unit <- attr(x, "unit")
  table <- function(figures, keys) {
    if (has_scale(unit)) {
      figures[c("self", "total")] <- lapply(figures[c("self", "total")], new_amounts, unit)
    }
    bytes <- intersect(c("self_alloc", "total_alloc"), names(figures))
    figures[bytes] <- lapply(figures[bytes], new_amounts, "bytes")
    figures <- figures[setdiff(names(figures), c("name", "filename", "line"))]
    # A long name would leave no space for the figures.
    keys <- lapply(keys, function(key) shown_name(key, max(width %/% 2, 20)))
    lines <- format(tibble::as_tibble(c(keys, figures)), n = n, width = width)
    # Tibbles underestimate the width of some characters. Lines with escape sequences for colours, which have
    # no width and must not be truncated, are left as they are.
    plain <- !grepl("\033", lines, fixed = TRUE)
    lines[plain] <- shorten(lines[plain], width)
    lines
  }
  place <- paste0(file_name(x$by_line$filename), ":", x$by_line$line)
  head <- c(
    shorten(format_sum(x), width), format_threads(attr(x, "threads"), attr(x, "processors"), width), format_left_out(x, width)
  )
  zero <- all_zero(x)
  if (!is.null(zero)) {
    return(c(head, wrap("", zero, width)))
  }
  c(
    head,
    "By function:",
    table(x$by_function, list(name = x$by_function$name)),
    if (nrow(x$by_line) > 0) c("By line:", table(x$by_line, list(place = place))),
    if (isTRUE(attr(x, "at_least")) && any(x$by_function$total_alloc != 0)) {
      bound <- "`self_alloc` and `total_alloc` are at least what is shown."
      wrap("", paste(c(bound, if (!isTRUE(attr(x, "since_previous"))) exact_memory), collapse = " "), width)
    },
    format_since_previous(x, width)
  )
}

format_sum <- function(summary) {
  unit <- attr(summary, "unit")
  paste0(
    "<profile summary> ", at_least(summary), format_amount(attr(summary, "sum"), unit), " ", shown_label(attr(summary, "type")),
    if (!has_scale(unit)) paste0(" (", shown_label(unit), ")"),
    if (!is.null(attr(summary, "used"))) paste0(", ", time_beside(attr(summary, "time"), attr(summary, "used"), unit))
  )
}

# `3.2 s ago`, `2 min ago`, `5.1 h ago`, `12 days ago`.
ago <- function(seconds) {
  units <- c(s = 1, min = 60, h = 3600, days = 86400)
  unit <- sum(units[-1] * 2 <= seconds) + 1
  paste(format(signif(seconds / units[[unit]], 2), trim = TRUE, scientific = FALSE), names(units)[[unit]], "ago")
}
