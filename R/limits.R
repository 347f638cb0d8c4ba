# Limits of a comparison, such as `time > 10%` or `alloc > 0`, and whether they are exceeded. A limit is about the whole run:
# with a limit for each of ten functions, every third comparison of equal versions would exceed one.

# Reads a limit: list(text, type, share, amount). `type` is NULL for time. One of `share`, of the amount of the old version, and
# `amount`, in the unit of the type, is NULL. Returns NULL if the text is no limit.
limit_of_text <- function(text) {
  pattern <- "^ *([A-Za-z_-]+) *> *([^ ].*?) *$"
  if (!is_valid_text(text) || !grepl(pattern, text, perl = TRUE)) {
    return(NULL)
  }
  metric <- sub(pattern, "\\1", text, perl = TRUE)
  value <- sub(pattern, "\\2", text, perl = TRUE)
  is_share <- endsWith(value, "%")
  amount <- if (is_share) {
    suppressWarnings(as.numeric(sub(" *%$", "", value))) / 100
  } else {
    amount_of_text(value)
  }
  if (is.null(amount) || !isTRUE(amount >= 0 && is.finite(amount))) {
    return(NULL)
  }
  # The difference of equal versions is rarely exactly 0, so this is a limit of exact amounts.
  is_share <- is_share && amount > 0
  type <- switch(metric, time = NULL, alloc = exact_type("allocated"), metric)
  # A change of time has no exact amount.
  if (is.null(type) && !is_share) {
    return(NULL)
  }
  list(text = trimws(text), type = type, share = if (is_share) amount, amount = if (!is_share) amount)
}

# Whether a limit is exceeded: list(text, result, reason), where `result` is "exceeded", "inconclusive" or "within". `data`: the
# figures of the runs, of the limit's type.
judge_limit <- function(limit, data) {
  whole <- compared_rows(matrix(data$sums, 1), data, "amount")
  runs <- c(base = sum(!data$is_new), new = sum(data$is_new))
  unit <- data$unit
  exact <- is_exact(data)
  if (exact) {
    # Means are rounded.
    whole$base <- data$sums[!data$is_new][[1]]
    whole$new <- data$sums[data$is_new][[1]]
  }
  growth <- whole$new - whole$base
  digits <- if (exact) identity else function(x) signif(x, 3)
  answer <- function(result, reason) {
    list(
      text = limit$text, result = result, reason = reason,
      figures = paste(format_amount(digits(c(whole$base, whole$new)), unit), collapse = " -> ")
    )
  }
  if (min(runs) < minimum_runs) {
    return(answer("inconclusive", paste("at least", minimum_runs, "runs of each version are needed")))
  }
  if (!is.null(limit$amount)) {
    if (!exact) {
      return(answer("inconclusive", "not exact: runs of the same version differ"))
    }
    is_more <- growth > limit$amount
    return(answer(if (is_more) "exceeded" else "within", paste("exact,", with_sign(growth, function(x) format_amount(x, unit)))))
  }
  if (exact) {
    is_more <- whole$new > (1 + limit$share) * whole$base
    return(answer(if (is_more) "exceeded" else "within", paste("exact,", change(whole$ratio))))
  }
  result <- switch(regression_result(whole, limit$share), more = "exceeded", `no more` = "within", "inconclusive")
  answer(result, paste("95% interval", format_interval(whole)))
}

# Whether amounts are exact, and all runs of each version have the same one.
is_exact <- function(data) {
  same <- function(sums) length(unique(sums)) == 1
  all(data$quantum == 0) && data$type != "time" && same(data$sums[data$is_new]) && same(data$sums[!data$is_new])
}

# Exit statuses of the shell command.
status_of_limits <- function(limits) {
  results <- vapply(limits, `[[`, "", "result")
  if ("exceeded" %in% results) 3L else if ("inconclusive" %in% results) 4L else 0L
}
