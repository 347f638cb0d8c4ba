# tier: fast
# The expectation that a program got no slower: its three results, in testthat and in scripts.

runs_of <- function(seconds) {
  profile_of_runs(lapply(seconds, function(time) c("main>work" = round(99 * time), "main" = round(time))))
}
same <- runs_of(c(1, 1.01, 0.99, 1.02, 0.98))
slower <- runs_of(c(1.3, 1.31, 1.29, 1.32, 1.28))
noisy <- runs_of(c(0.8, 1.3, 1, 1.5, 0.9))

# As in a script, where no test is running.
in_script <- function(code) {
  old <- Sys.getenv("TESTTHAT")
  Sys.setenv(TESTTHAT = "false")
  on.exit(Sys.setenv(TESTTHAT = old))
  force(code)
}

test_that("a slowdown beyond the tolerance fails", {
  expect_failure(expect_no_regression(same, slower), "takes more than `base`")
  error <- expect_error(in_script(expect_no_regression(same, slower)), class = "profile_error_regression")
  expect_s3_class(error$comparison, "profile_comparison")
  expect_match(conditionMessage(error), "work", fixed = TRUE)
})

test_that("a slowdown within the tolerance, and none, succeed", {
  expect_success(expect_no_regression(same, same))
  expect_success(expect_no_regression(slower, same))
  expect_success(expect_no_regression(same, slower, tolerance = 0.5))
  expect_s3_class(in_script(expect_no_regression(same, same)), "profile_comparison")
  expect_invisible(in_script(expect_no_regression(same, same)))
})

test_that("an inconclusive result is a warning, nothing, or a failure", {
  expect_warning(expect_no_regression(same, noisy), class = "profile_warning_inconclusive")
  expect_no_warning(expect_success(expect_no_regression(same, noisy, inconclusive = "pass")))
  expect_failure(expect_no_regression(same, noisy, inconclusive = "fail"))
  # Single runs are inconclusive, whatever they show.
  one <- runs_of(1)
  expect_warning(expect_no_regression(one, runs_of(9)), class = "profile_warning_inconclusive")
})

test_that("the message says what changed, and what would be needed", {
  expect_snapshot(error = TRUE, {
    in_script(expect_no_regression(same, slower))
    in_script(expect_no_regression(same, noisy))
    in_script(expect_no_regression(same, noisy, tolerance = 0, inconclusive = "fail"))
    in_script(expect_no_regression(runs_of(1), runs_of(1)))
    in_script(expect_no_regression(same, same, tolerance = -1))
    in_script(expect_no_regression(same, same, 0.2))
    in_script(expect_no_regression(same, same, inconclusive = "stop"))
    in_script(expect_no_regression(same, 1))
  })
})

test_that("each type of exact memory can be compared, and the message has the lines", {
  exact <- function(factor) {
    allocations <- lapply(fit_allocations, function(row) {
      # Only the second line changes; the peak is not part of these profiles.
      if (identical(row$stack[[1]], "fit:2")) row$values <- factor * row$values
      row
    })
    rep(list(exact_profile(allocations = allocations)), 3)
  }
  base <- exact(1)
  new <- exact(3)
  for (type in setdiff(exact_types$type, "gc_share")) {
    expect_success(expect_no_regression(base, base, type = type))
    expect_failure(expect_no_regression(base, new, type = type), "fit.R:2 `for (i in 1:400) x[i] <- v`: +", fixed = TRUE)
    expect_success(expect_no_regression(new, base, type = type))
  }
  expect_snapshot(error = TRUE, {
    in_script(expect_no_regression(base, new, type = "alloc_space"))
    in_script(expect_no_regression(base, new, type = "copy_objects"))
    in_script(expect_no_regression(new[1], base[1], type = "copy_space"))
  })
})

test_that("two snapshots of the heap are enough", {
  expect_success(expect_no_regression(models_snapshot(4), models_snapshot(4), tolerance = 0))
  expect_failure(expect_no_regression(models_snapshot(4), models_snapshot(12)), "more memory in use", fixed = TRUE)
  expect_success(expect_no_regression(models_snapshot(12), models_snapshot(4), tolerance = 0))
  expect_snapshot(error = TRUE, in_script(expect_no_regression(models_snapshot(4), models_snapshot(12))))
})

test_that("the number of runs that is stated is enough", {
  # As many runs as stated find the change.
  set.seed(3)
  sd <- 0.12
  run <- function(n, ratio = 1) matrix(ratio * exp(rnorm(n, 0, sd)), 1)
  whole <- list(lower = exp(-qt(0.975, 8) * sd * sqrt(2 / 5)), upper = exp(qt(0.975, 8) * sd * sqrt(2 / 5)))
  n <- runs_needed(whole, c(5, 5), 1.15)
  truth <- ceiling(power.t.test(delta = log(1.15), sd = sd, power = 0.85)$n)
  expect_true(abs(n - truth) <= 1)
  found <- replicate(300, p_value(welch_log(run(n), run(n, 1.15))) < 0.05)
  expect_gt(mean(found), 0.77)
})
