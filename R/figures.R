# Figures in messages and printed objects: counts, amounts with their units, and shares.

format_count <- function(n) {
  format(n, big.mark = ",", trim = TRUE, scientific = FALSE)
}

# Values of a sample type, in a readable unit.
format_amount <- function(values, unit) {
  if (has_scale(unit)) format_value(values, unit) else vapply(values, format_count, "")
}

percent <- function(share) {
  formatC(100 * share, format = "f", digits = 1, width = 5)
}

# Percentages in a column that leaves space for a sign.
percents <- function(shares) {
  formatC(100 * shares, format = "f", digits = 1, width = 6)
}

# The last part of a path, like basename(), which fails if the locale cannot represent all characters.
file_name <- function(path) {
  sub("^.*[/\\\\](?=.)", "", path, perl = TRUE)
}

is_time_unit <- function(unit) {
  !is.na(find_unit(unit_kinds[[2]], enc2utf8(unit)))
}

has_scale <- function(unit) {
  any(!is.na(vapply(unit_kinds, find_unit, 0L, enc2utf8(unit))))
}

# Amounts as a column of a tibble that is printed. They have their own class because tibbles truncate strings,
# which would remove the unit.
new_amounts <- function(values, unit) {
  vctrs::new_vctr(values, unit = unit, class = "profile_amounts")
}

#' @export
format.profile_amounts <- function(x, ...) {
  format_value(vctrs::vec_data(x), attr(x, "unit"))
}

#' @exportS3Method vctrs::vec_ptype_abbr
vec_ptype_abbr.profile_amounts <- function(x, ...) {
  "amount"
}

format_samples <- function(summary) {
  counted <- attr(summary, "counted")
  time <- attr(summary, "time")
  amount <- if (attr(summary, "type") != "samples") {
    type <- shown_label(attr(summary, "type"))
    amount <- paste0(at_least(summary), format_amount(counted$sum, attr(summary, "unit")))
    # Rows of exact allocations are no samples.
    is_allocated <- attr(summary, "exact_memory") && !is_time_or_count(summary)
    c(if (!is_allocated) format_count(counted$samples), paste(amount, "of", type))
  } else if (counted$sum != counted$samples) {
    # A row of an aggregated profile represents several samples.
    paste0(format_count(counted$sum), " in ", count_of(counted$samples, "row"))
  } else {
    format_count(counted$sum)
  }
  functions <- count_of(nrow(summary$by_function), "function")
  # Values that are times need no other time.
  time <- time_beside(time, attr(summary, "used"), attr(summary, "unit"))
  paste(c(amount, time, functions), collapse = ", ")
}

# The sampled time in seconds, beside a sum of this unit, and the CPU time that was used if it is another one.
time_beside <- function(seconds, used, unit) {
  if (is_time_unit(unit)) format_used(used) else if (!is.null(seconds)) format_sampled(seconds, used)
}

# What precedes an amount of a summary, a call tree or lines, if it is a lower bound.
at_least <- function(x) {
  if (isTRUE(attr(x, "sum_at_least"))) "at least "
}

# What is to be known about amounts that were measured at samples.
format_since_previous <- function(x, width) {
  if (isTRUE(attr(x, "since_previous"))) {
    wrap("", since_previous(shown_label(attr(x, "type"))), width)
  }
}

since_previous <- function(type) {
  paste0(
    "`", type, "` is measured since the previous sample: part of it belongs to code that ran before. ", exact_memory
  )
}

# How to get exact amounts instead of lower bounds.
exact_memory <- "`record_profile(memory\u00a0=\u00a0\"exact\")` records each vector."

count_of <- function(n, what, plural = paste0(what, "s")) {
  paste0(format_count(n), " ", if (n != 1) plural else what)
}

format_seconds <- function(seconds) {
  paste(format(signif(seconds, 3), big.mark = ",", trim = TRUE, scientific = FALSE), "s")
}

# The samples that summary() does not count.
format_left_out <- function(summary, width) {
  counted <- attr(summary, "counted")
  unit <- attr(summary, "unit")
  type <- shown_label(attr(summary, "type"))
  weighs <- counted$sum_without_stack
  left_out <- c(
    if (counted$without_stack > 0) {
      paste0(
        count_of(counted$without_stack, "sample"), " without a stack (no function was recorded",
        if (weighs != counted$without_stack) paste0("; ", format_amount(weighs, unit), " of ", type), ")"
      )
    },
    if (counted$without_value > 0) {
      paste0(count_of(counted$without_value, "sample"), " without a value of `", type, "`")
    }
  )
  if (length(left_out) > 0) {
    wrap("Left out:  ", paste(left_out, collapse = ", "), width)
  }
}
