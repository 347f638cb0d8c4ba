# The picture of a comparison: a line for each row, with the interval of its ratio.

#' Plot a comparison
#'
#' `plot()` draws the ratios of [compare_profiles()] with their 95% intervals, on a logarithmic scale. Rows with a
#' verdict are red (more) or blue (less), all others grey; single runs have no verdict. The first row is the whole run.
#' Amounts are shown on the right.
#'
#' @param x A comparison, see [compare_profiles()].
#' @param ... Must be empty.
#' @param n The number of rows to draw: those with the greatest change; `Inf` for all.
#' @param main The title.
#'
#' @return `x`, invisibly.
#' @export
#' @examples
#' work <- function(n) for (i in seq_len(n)) sort(paste("key", 1:5000), method = "radix")
#' runs <- benchmark_profile(base = work(200), new = work(300), runs = 3, warmup = 0, measure = "time")
#' plot(compare_profiles(runs))
plot.profile_comparison <- function(x, ..., n = 15, main = NULL) {
  call <- call_without_dots()
  n <- check_most_rows(n, call)
  check_text(main, "main", call)
  columns <- c("name", "base", "new", "ratio", "lower", "upper", "verdict")
  if (!is.data.frame(attr(x, "whole")) || !all(columns %in% names(x))) {
    abort_argument("`x` must be the result of `compare_profiles()`, with all of its columns.", call)
  }
  rows <- utils::head(as.data.frame(as_tibble(x))[columns], n)
  # The whole run is always compared as an amount, so it is not drawn among shares.
  if (attr(x, "scale") == "amount") {
    whole <- cbind(name = "whole run", attr(x, "whole"))[columns]
    rows <- rbind(whole, rows)
  }
  if (nrow(rows) == 0) {
    abort_argument("`x` has no rows to draw.", call)
  }
  labels <- drawable(shown_name(ifelse(is.na(rows$name), "(unknown)", rows$name), 30))
  amount <- function(values) format_compared(values, attr(x, "scale"), attr(x, "unit"))
  amounts <- paste(amount(rows$base), "to", amount(rows$new))
  runs <- attr(x, "runs")
  main <- main %||% paste0(attr(x, "type"), ": ", runs[["base"]], " and ", count_of(runs[["new"]], "run"))
  at <- rev(seq_len(nrow(rows)))
  line <- function(texts) max(graphics::strwidth(texts, "inches", cex = 0.85)) + 0.2
  graphics::plot.new()
  old <- graphics::par(mai = c(0.8, line(labels), 0.6, line(amounts)))
  on.exit(graphics::par(old))
  limits <- ratio_limits(rows)
  graphics::plot.window(log(limits), c(0.5, nrow(rows) + 0.5), yaxs = "i")
  graphics::abline(v = 0, col = "grey60")
  colour <- c(more = "#b5402a", less = "#2f5fa8")[rows$verdict]
  colour[is.na(colour)] <- "grey55"
  inside <- function(ratio) log(pmin(pmax(ratio, limits[[1]]), limits[[2]]))
  known <- !is.na(rows$lower)
  graphics::segments(inside(rows$lower)[known], at[known], inside(rows$upper)[known], col = colour[known], lwd = 3)
  graphics::points(inside(rows$ratio), at, pch = 19, col = colour)
  graphics::mtext(labels, side = 2, at = at, las = 1, line = 0.4, cex = 0.85 * graphics::par("cex"))
  graphics::mtext(amounts, side = 4, at = at, las = 1, line = 0.4, cex = 0.85 * graphics::par("cex"))
  ticks <- c(0.01, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 1, 1.25, 1.5, 2, 3, 5, 10, 100)
  ticks <- ticks[ticks >= limits[[1]] & ticks <= limits[[2]]]
  graphics::axis(1, at = log(ticks), labels = ifelse(ticks == 1, "same", change(ticks)))
  graphics::title(main = drawable(main), xlab = "new, compared with base")
  invisible(x)
}

# The ends of the axis: all ratios and intervals, as far as they are finite, at least 20% on each side, and
# at most a factor of 100.
ratio_limits <- function(rows) {
  values <- c(rows$ratio, rows$lower, rows$upper)
  values <- values[is.finite(values) & values > 0]
  range <- range(c(1 / 1.2, 1.2, values))
  c(max(range[[1]], 0.01), min(range[[2]], 100))
}
