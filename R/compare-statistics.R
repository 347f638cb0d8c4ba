# The statistics of comparisons: what the amounts of some runs say about the ratio of two versions.
#
# The unit is the run. Samples within a run are not independent (code has phases), and runs of the same code
# differ by more or less than sampling explains, since the speed of a machine varies. Tests that take samples
# as the unit are therefore wrong, by an unknown factor. `bench/compare` measures the error rates of the methods
# used here.

# The level of the verdict of a single test.
level <- 0.05
# The power for which detectable differences are computed, assuming normal errors. Those of real runs have longer
# tails, above all when other programs disturb some runs: 85% became 79% to 82% with exponential errors and with those
# of a t distribution with 4 degrees of freedom (5 or 10 runs). So messages and documentation say 80%.
power <- 0.85
# A verdict requires at least this number of runs on each side.
enough_runs <- 3

# Welch's test of the logarithms of amounts: `base` and `new` are matrices with a row for each function and a
# column for each run. `offset` (for each row) is added to each amount, so that 0 has a logarithm.
# `quantum` is what is counted, such as the sampling period, 0 for amounts that are measured exactly: the
# variance of an amount is at least that of rounding to a quantum (1/12 of its square), because equal counts
# of few samples would otherwise be taken as exact. Returns a list of vectors: `log_ratio`, `se` and `df`.
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
  half <- stats::qt(1 - level / 2, test$df) * test$se
  list(lower = exp(test$log_ratio - half), upper = exp(test$log_ratio + half))
}

# Holm's adjustment of p values for several tests, with weights as in his paper of 1979: the part of the level that
# a test gets is proportional to its weight. With equal weights it is `p.adjust(p, "holm")`.
holm_weighted <- function(p, weight) {
  order <- order(p / weight)
  left <- rev(cumsum(rev(weight[order])))
  adjusted <- pmin(1, cummax(p[order] / weight[order] * left))
  adjusted[order(order)]
}

# The smallest ratio that a comparison with these standard errors would find with the probability `power`, in a
# test at the level `alpha` (for each row).
#
# The standard error is an estimate, and often too small. So it is not multiplied by the factor for a known standard
# error, but by the one for which the probability is right on average over the errors that such an estimate can have.
detectable_ratio <- function(se, df, alpha) {
  factor <- mapply(detectable_factor, df, alpha)
  exp(ifelse(se == 0, 0, factor * se))
}

# The factor starts from a formula that is exact both for known standard errors and for large quantiles, and within 3%
# between these: the ratio of two estimates has an F distribution. As a quantile of the normal distribution, the
# probability is nearly a linear function of the factor, so three steps of Newton's method are exact to 0.2%.
detectable_factor <- function(df, alpha) {
  wanted <- stats::qnorm(power)
  if (df > 1000) {
    return(stats::qnorm(1 - alpha / 2) + wanted)
  }
  quantile <- stats::qt(1 - alpha / 2, df)
  by_normal <- sqrt((quantile * (sqrt(stats::qf(power, df, df)) - 1))^2 + wanted^2)
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

# The probability that a test at the level `alpha` finds a difference of this number of standard errors. (The result
# of `pt(ncp = )` is wrong for large differences.)
found <- function(difference, df, alpha) {
  mean(stats::pnorm(difference - stats::qt(1 - alpha / 2, df) * error_estimates(df)))
}

# Equally likely estimates of a standard error of 1.
error_estimates <- function(df) {
  sqrt(stats::qchisq((1:24 - 0.5) / 24, df) / df)
}

# How many runs on each side would find a ratio with the probability `power`, if they vary as much as those of a
# comparison: `whole` has its interval, `runs` the number of runs on each side.
runs_needed <- function(whole, runs, ratio) {
  # As if both sides varied alike.
  half <- (log(whole$upper) - log(whole$lower)) / 2
  se <- half / stats::qt(1 - level / 2, sum(runs) - 2)
  of_one_run <- se / sqrt(sum(1 / runs))
  for (n in enough_runs:1000) {
    if (found(abs(log(ratio)) / (of_one_run * sqrt(2 / n)), 2 * (n - 1), level) >= power) {
      return(n)
    }
  }
  Inf
}

# The interval of a ratio of shares of single runs, from the numbers of samples: `count` of `size`. It assumes
# independent samples. How much runs differ is not known, so there is no verdict.
share_ratio_interval <- function(base, new) {
  part <- function(x) 1 / (x$count + 0.5) - 1 / (x$size + 0.5)
  logs <- log((new$count + 0.5) / (new$size + 0.5)) - log((base$count + 0.5) / (base$size + 0.5))
  half <- stats::qnorm(1 - level / 2) * sqrt(pmax(part(base) + part(new), 0))
  list(lower = exp(logs - half), upper = exp(logs + half))
}
