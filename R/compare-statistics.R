# The statistics of comparisons: estimates the ratio of two versions, with its uncertainty, from the amounts of several
# runs. The unit is the run, not the sample. Samples within a run are not independent (code has phases), and runs of the
# same code differ more or less than sampling explains, since the speed of a machine varies. Tests with samples as the
# unit are therefore wrong by an unknown factor. `bench/compare` measures the error rates of these methods.

# The significance level of all verdicts together, and of a single test.
significance_level <- 0.05
# The power for which detectable differences are computed, assuming normal errors. Errors of real runs have longer
# tails, in particular when other programs disturb some runs: with errors from an exponential distribution or a t
# distribution with 4 degrees of freedom (5 or 10 runs), 85% became 79% to 82%. So messages and documentation say 80%.
target_power <- 0.85
# A verdict requires at least this number of runs on each side.
minimum_runs <- 3

# Welch's test of the logarithms of amounts: `base` and `new` are matrices with a row for each function and a column for
# each run. `offset` (for each row) is added to each amount, so that 0 has a logarithm. `quantum` is the amount of one
# sample, such as the sampling period, and 0 for exact amounts: the variance of an amount is at least the variance of
# rounding to a quantum (1/12 of its square), because equal counts of few samples would otherwise be taken as exact.
# Returns a list of vectors: `log_ratio`, `se` and `df`.
welch_log <- function(base, new, offset = 0, quantum = 0) {
  side <- function(amounts) {
    logs <- log(amounts + offset)
    n <- ncol(amounts)
    mean <- rowMeans(logs)
    variance <- rowSums((logs - mean)^2) / (n - 1)
    rounding <- (quantum / (rowMeans(amounts) + offset))^2 / 12
    # Equal logarithms of exact amounts may differ in the last digits.
    variance[variance < 1e-24] <- 0
    list(mean = mean, of_mean = pmax(variance, rounding) / n, df = n - 1)
  }
  a <- side(base)
  b <- side(new)
  variance <- a$of_mean + b$of_mean
  df <- variance^2 / (a$of_mean^2 / a$df + b$of_mean^2 / b$df)
  # Without variance there is nothing to estimate.
  df[variance == 0] <- Inf
  difference <- b$mean - a$mean
  difference[abs(difference) < 1e-12] <- 0
  list(log_ratio = difference, se = sqrt(variance), df = df)
}

# The two-sided p value of a test that the ratio is 1. Without variance it is 0 or 1: amounts differ or do not.
p_value <- function(test) {
  t <- ifelse(test$log_ratio == 0, 0, abs(test$log_ratio) / test$se)
  2 * stats::pt(-t, test$df)
}

# The ends of the 95% interval of the ratio.
ratio_interval <- function(test) {
  half <- stats::qt(1 - significance_level / 2, test$df) * test$se
  list(lower = exp(test$log_ratio - half), upper = exp(test$log_ratio + half))
}

# Holm's adjustment of p values for several tests, with weights as in his paper of 1979: each test gets a part of the
# significance level in proportion to its weight. With equal weights it is `p.adjust(p, "holm")`.
holm_weighted <- function(p, weight) {
  order <- order(p / weight)
  left <- rev(cumsum(rev(weight[order])))
  adjusted <- pmin(1, cummax(p[order] / weight[order] * left))
  adjusted[order(order)]
}

# The smallest ratio that a comparison with these standard errors would find with the probability `target_power`, in a
# test at the significance level `alpha` (for each row).
#
# The standard error is an estimate, and often too small. So the factor for a known standard error is not used, but a
# factor for which the probability is right on average over all possible estimates.
detectable_ratio <- function(se, df, alpha) {
  factor <- mapply(detectable_factor, df, alpha)
  exp(ifelse(se == 0, 0, factor * se))
}

# The factor starts from a formula that is exact both for known standard errors and for large quantiles, and within 3%
# between these: the ratio of two estimates has an F distribution. As a quantile of the normal distribution, the
# probability is nearly a linear function of the factor, so three steps of Newton's method are exact to 0.2%.
detectable_factor <- function(df, alpha) {
  wanted <- stats::qnorm(target_power)
  if (df > 1000) {
    return(stats::qnorm(1 - alpha / 2) + wanted)
  }
  quantile <- stats::qt(1 - alpha / 2, df)
  by_normal <- sqrt((quantile * (sqrt(stats::qf(target_power, df, df)) - 1))^2 + wanted^2)
  factor <- quantile + by_normal
  estimates <- error_estimates(df)
  critical <- quantile * estimates
  for (step in 1:3) {
    # .colMeans() is mean() without the search for a method.
    found <- .colMeans(stats::pnorm(outer(factor * estimates, critical, `-`)), length(critical)^2, 1)
    factor <- factor - (stats::qnorm(found) / wanted - 1) * by_normal
  }
  factor
}

# The probability that a test at the significance level `alpha` finds a difference of this number of standard errors.
# (The result of `pt(ncp = )` is wrong for large differences.)
detection_probability <- function(difference, df, alpha) {
  mean(stats::pnorm(difference - stats::qt(1 - alpha / 2, df) * error_estimates(df)))
}

# Equally likely estimates of a standard error of 1.
error_estimates <- function(df) {
  sqrt(stats::qchisq((1:24 - 0.5) / 24, df) / df)
}

# The number of runs on each side that would find a ratio with the probability `target_power`, if they vary as much as
# the runs of a comparison: `whole` has its interval, `runs` the number of runs on each side.
runs_needed <- function(whole, runs, ratio) {
  # Assumes that both sides vary equally.
  half <- (log(whole$upper) - log(whole$lower)) / 2
  se <- half / stats::qt(1 - significance_level / 2, sum(runs) - 2)
  of_one_run <- se / sqrt(sum(1 / runs))
  for (n in minimum_runs:1000) {
    difference <- abs(log(ratio)) / (of_one_run * sqrt(2 / n))
    if (detection_probability(difference, 2 * (n - 1), significance_level) >= target_power) {
      return(n)
    }
  }
  Inf
}

# The interval of a ratio of shares of single runs, from the numbers of samples: `count` of `size`. It assumes
# independent samples. The variation between runs is unknown, so there is no verdict.
share_ratio_interval <- function(base, new) {
  part <- function(x) 1 / (x$count + 0.5) - 1 / (x$size + 0.5)
  logs <- log((new$count + 0.5) / (new$size + 0.5)) - log((base$count + 0.5) / (base$size + 0.5))
  half <- stats::qnorm(1 - significance_level / 2) * sqrt(pmax(part(base) + part(new), 0))
  list(lower = exp(logs - half), upper = exp(logs + half))
}

# ---- Rows --------------------------------------------------------------------------

# The columns of the result from `base` on. `amounts` has a row for each row of it, a column for each run.
compared_rows <- function(amounts, data, scale, detectable = TRUE) {
  is_new <- data$is_new
  if (all(data$sums == 0)) {
    return(rows_of_nothing(nrow(amounts), min(sum(is_new), sum(!is_new)) >= minimum_runs))
  }
  quantum <- mean(data$quantum)
  # The logarithm of 0 samples is not finite. So half a sample is added to each amount, for the estimate of the ratio,
  # its interval and its test alike.
  offset <- if (quantum > 0) rep(quantum / 2, nrow(amounts)) else half_of_smallest(amounts)
  counted <- amounts
  if (scale == "share") {
    amounts <- sweep(amounts, 2, data$sums, `/`)
    quantum <- quantum / mean(data$sums)
    offset <- offset / mean(data$sums)
  }
  base <- amounts[, !is_new, drop = FALSE]
  new <- amounts[, is_new, drop = FALSE]
  columns <- list(
    base = geometric_mean(base, offset),
    new = geometric_mean(new, offset)
  )
  test <- welch_log(base, new, offset, quantum)
  columns$ratio <- ifelse(columns$base == 0, columns$new / columns$base, exp(test$log_ratio))
  columns$ratio[columns$new == 0 & columns$base > 0] <- 0
  rows <- nrow(amounts)
  unknown <- rep(NA_real_, rows)
  columns[c("lower", "upper", "p_value", "p_adjusted", "detectable")] <- list(unknown)
  columns$verdict <- rep(NA_character_, rows)
  if (min(sum(is_new), sum(!is_new)) >= minimum_runs) {
    columns[c("lower", "upper")] <- ratio_interval(test)
    columns$p_value <- p_value(test)
    # Rows with equal amounts in all runs count as one test.
    tests <- vctrs::vec_group_id(as.data.frame(counted))
    first <- !duplicated(tests)
    weight <- as.vector(counted %*% share_weights(data))
    adjusted <- holm_weighted(columns$p_value[first], weight[first])
    columns$p_adjusted <- adjusted[match(tests, tests[first])]
    if (detectable) {
      columns$detectable <- detectable_ratio(test$se, test$df, significance_level * weight / sum(weight[first]))
    }
    columns$verdict <- ifelse(
      columns$p_adjusted >= significance_level, "none found", ifelse(test$log_ratio > 0, "more", "less")
    )
  } else if (scale == "share" && all(data$quantum > 0)) {
    counts <- sweep(counted, 2, data$quantum, `/`)
    sizes <- data$sums / data$quantum
    side <- function(of) {
      list(count = rowSums(counts[, of, drop = FALSE]), size = sum(sizes[of]))
    }
    columns[c("lower", "upper")] <- share_ratio_interval(side(!is_new), side(is_new))
  }
  # Rows that occur in only one version.
  columns$upper[rowSums(base) == 0 & !is.na(columns$upper)] <- Inf
  columns$lower[rowSums(new) == 0 & !is.na(columns$lower)] <- 0
  tibble::new_tibble(
    columns[c("base", "new", "ratio", "lower", "upper", "p_value", "p_adjusted", "detectable", "verdict")],
    nrow = rows
  )
}

# The same if each vector was recorded, and no run has any: the runs are equal.
rows_of_nothing <- function(rows, has_verdict) {
  one <- rep(1, rows)
  known <- if (has_verdict) one else rep(NA_real_, rows)
  tibble::tibble(
    base = 0 * one, new = 0 * one, ratio = one, lower = known, upper = known, p_value = known, p_adjusted = known,
    detectable = known, verdict = rep(if (has_verdict) "none found" else NA_character_, rows)
  )
}

# The offset of exact (not sampled) amounts. A row that is missing in some runs needs a logarithm of 0 as well: half its
# smallest amount is used.
half_of_smallest <- function(amounts) {
  vapply(seq_len(nrow(amounts)), function(row) {
    found <- amounts[row, amounts[row, ] > 0]
    if (length(found) %in% c(0, ncol(amounts))) 0 else min(found) / 2
  }, 0)
}

geometric_mean <- function(amounts, offset) {
  mean <- exp(rowMeans(log(amounts + offset))) - offset
  # Exactly 0, without rounding errors.
  ifelse(rowSums(amounts) == 0, 0, mean)
}

# Advice if a version has hardly any samples; otherwise NULL.
few_samples <- function(data) {
  mean <- c(base = mean(data$samples[!data$is_new]), new = mean(data$samples[data$is_new]))
  if (all(data$quantum == 0) || min(mean) >= 5) {
    return(NULL)
  }
  paste0(
    "The runs of `", names(which.min(mean)), "` have ", if (min(mean) == 0) "no samples" else "few samples",
    ", so little is known about them. Use `times` of `benchmark_profile()` to repeat the code in each run."
  )
}
