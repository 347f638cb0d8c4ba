# Prints comparisons of profiles.

#' @rdname compare_profiles
#' @export
format.profile_comparison <- function(x, ..., n = NULL, width = NULL) {
  columns <- c("name", "filename", "line", "base", "new", "ratio", "lower", "upper", "detectable", "verdict")
  is_whole <- is.data.frame(attr(x, "whole")) && all(columns %in% names(x))
  text_of_table(x, n, width, is_whole, text_of_comparison, 20)
}

text_of_comparison <- function(x, n, width) {
  enough <- has_verdicts(x)
  shown <- utils::head(x, n)
  head <- paste0("<comparison by ", attr(x, "by"), "> ", comparison_head(x))
  notes <- comparison_notes(x, shown)
  c(
    shorten(wrap("", head, width), width),
    wrap("Whole run: ", format_whole_run(attr(x, "whole"), attr(x, "unit")), width),
    if (nrow(shown) > 0) c("", comparison_lines(shown, attr(x, "scale"), attr(x, "unit"), width, enough)),
    if (nrow(x) > n) paste0("... and ", format_count(nrow(x) - n), " more rows"),
    unlist(lapply(notes, function(note) wrap("", note, width)))
  )
}

has_verdicts <- function(x) min(attr(x, "runs")) >= minimum_runs

# Such as `time per run, 8 runs of base and 8 of new`.
comparison_head <- function(x) {
  runs <- attr(x, "runs")
  paste0(
    shown_label(attr(x, "type")), " per run, ", count_of(runs[["base"]], "run"), " of base and ", runs[["new"]], " of new"
  )
}

# Sentences below the table, for the rows that are shown.
comparison_notes <- function(x, shown) {
  whole <- attr(x, "whole")
  note <- if (!has_verdicts(x)) {
    paste0(
      "There is no verdict: that needs at least ", minimum_runs, " runs of each version, since runs of ",
      "the same code differ. See `benchmark_profile()`.",
      if (attr(x, "scale") == "amount") " Shares of single runs can be compared with `scale = \"share\"`."
    )
  } else if (nrow(x) > 0 && all(x$verdict == "none found")) {
    # The whole run may differ because of functions that are not shown.
    where <- if (whole$verdict != "none found") " in these rows"
    paste0("No difference was found", where, ".", format_missed(x, whole))
  }
  # The test of a row has the level of the whole table, its interval has its own.
  excludes <- shown$verdict %in% "none found" & (shown$lower > 1 | shown$upper < 1) %in% TRUE
  adjusted <- if (any(excludes)) {
    paste0(
      "Intervals are those of single rows. Verdicts are adjusted for the number of rows, so a row whose interval ",
      "excludes 0% can have none."
    )
  }
  c(attr(x, "few_samples"), note, adjusted)
}

#' @export
as_tibble.profile_comparison <- function(x, ...) without_class(x)

# Such as `1.48s -> 1.62s, +9.5% (95% interval -4.1% to +25%): no difference found.`
format_whole_run <- function(whole, unit) {
  # Exact amounts may differ in later digits only. The last ones are of the logarithms.
  is_exact <- whole$detectable %in% 1
  digits <- function(x) signif(x, if (is_exact) 12 else 3)
  text <- paste0(
    format_amount(digits(whole$base), unit), " -> ", format_amount(digits(whole$new), unit), ", ", change(whole$ratio)
  )
  if (is.na(whole$verdict)) {
    return(text)
  }
  found <- if (is.finite(whole$detectable) && !is_exact) {
    paste0("; ", change(whole$detectable), " would be found in 80% of such comparisons")
  }
  verdict <- if (whole$verdict == "none found") paste0("no difference found", found) else whole$verdict
  exact <- "exact: the runs of each version are equal"
  interval <- if (is_exact) exact else paste("95% interval", format_interval(whole))
  paste0(text, " (", interval, "): ", verdict)
}

# A sentence about the differences that may exist although no row has a verdict. Small rows can hide a difference of any
# size, so it is about those that matter: a tenth of the run or more, or else the largest row.
format_missed <- function(x, whole) {
  share <- (x$base + x$new) / (if (attr(x, "scale") == "share") 2 else whole$base + whole$new)
  least <- min(0.1, max(share))
  detectable <- max(x$detectable[share >= least])
  if (detectable == 1) {
    # All runs are equal.
    ""
  } else if (detectable < 10) {
    rows <- if (least == 0.1) "rows with 10% of the run or more" else "the largest row"
    paste0(" Differences below ", sub("^[+]", "", change(detectable)), " can be missed in ", rows, ".")
  } else {
    " The runs vary so much that even differences of 10x can be missed."
  }
}

# If the runs of each version do not vary, the ratio is exact.
format_interval <- function(rows) {
  lower <- change(rows$lower)
  upper <- change(rows$upper)
  for (more in 1:4) {
    narrow <- which(lower == upper & rows$lower != rows$upper)
    lower[narrow] <- change(rows$lower[narrow], more)
    upper[narrow] <- change(rows$upper[narrow], more)
  }
  ifelse(
    rows$detectable %in% 1 & rows$lower == rows$upper, "exact",
    ifelse(is.infinite(rows$upper), paste("at least", lower), paste(lower, "to", upper))
  )
}

# A ratio as a change: `+9.5%`, `3.2x`, `0.0042x`. It is `0%` or `-100%` only for an exact value. `more`: the number of
# additional digits.
change <- function(ratio, more = 0) {
  percent <- 100 * (ratio - 1)
  size <- abs(percent)
  digits <- ifelse(size %in% NA | size >= 9.95, 0, 1) + more
  text <- sprintf("%+.*f%%", digits, percent)
  small <- which(size < 0.1)
  text[small] <- paste0(ifelse(percent[small] > 0, "+", "-"), plain_number(size[small], 2 + more), "%")
  factor <- which(ratio >= 3 | ratio > 0 & ratio < 0.01)
  text[factor] <- paste0(plain_number(ratio[factor], 2 + more), "x")
  # Ratios are computed by logarithms.
  text[which(size < 1e-8)] <- "0%"
  text[is.infinite(ratio)] <- "new"
  text[is.na(ratio)] <- ""
  text
}

# Such as `0.0042`, `1e-09`, `12,000`.
plain_number <- function(x, digits) {
  x <- signif(x, digits)
  vapply(x, function(x) format(x, digits = digits, big.mark = ",", scientific = x < 1e-5 || x >= 1e6), "")
}

# A share, which is 0 only if it is exactly 0.
format_share <- function(share) {
  ifelse(share > 0 & share < 5e-4, "<0.1%", paste0(trimws(percent(share)), "%"))
}

format_compared <- function(values, scale, unit) {
  if (scale == "share") format_share(values) else format_amount(signif(values, 3), unit)
}

comparison_lines <- function(x, scale, unit, width, enough) {
  name <- shown_name(ifelse(is.na(x$name), "(unknown)", x$name), width)
  place <- ifelse(is.na(x$line), "", paste0(" ", shown_name(file_name(x$filename), width), ":", x$line))
  columns <- comparison_columns(x, scale, unit, enough)
  texts <- Map(function(head, column) {
    justify <- if (head == "verdict") "left" else "right"
    format(c(head, column), justify = justify)
  }, names(columns), columns)
  figures <- do.call(paste, c(list(""), texts, sep = "  "))
  labels <- shorten(paste0(name, place), max(width - nchar(figures[[1]], "width"), 12))
  # Names in lines of any width are long, and trimws() takes quadratic time for the blanks that fill them up.
  shorten(paste0(format(c("name", labels)), trimws(figures, "right")), width)
}

# The texts of the columns, without those that are empty.
comparison_columns <- function(x, scale, unit, enough) {
  amounts <- function(values) format_compared(values, scale, unit)
  columns <- list(
    base = amounts(x$base),
    new = amounts(x$new),
    change = change(x$ratio),
    `95% interval` = ifelse(is.na(x$lower), "", format_interval(x)),
    verdict = if (enough) x$verdict
  )
  columns <- columns[lengths(columns) > 0]
  columns[vapply(columns, function(column) any(column != ""), TRUE)]
}
