# tier: fast
# Limits of comparisons: how they are read, and what exceeds them.

test_that("limits are read", {
  expect_equal(limit_of_text("time > 10%"), list(text = "time > 10%", type = NULL, share = 0.1, amount = NULL))
  expect_equal(limit_of_text("time>2.5 %")$share, 0.025)
  expect_equal(limit_of_text("alloc > 0")[c("type", "amount")], list(type = "alloc_space", amount = 0))
  expect_equal(limit_of_text("alloc > 0%")$amount, 0)
  expect_equal(limit_of_text(" alloc > 1MB ")$amount, 2^20)
  expect_equal(limit_of_text("alloc > 5%")$share, 0.05)
  expect_equal(limit_of_text("copy_space > 64 kB")[c("type", "amount")], list(type = "copy_space", amount = 65536))
  no_limits <- c(
    "", "time", "time > ", "time < 10%", "time > 10", "time > 1s", "time > 0", "time > 0%", "alloc > -1", "alloc > x%",
    "alloc > 1 hour", "> 10%", "time > 10% or so", "alloc > Inf%"
  )
  for (text in no_limits) expect_null(limit_of_text(text), label = text)
})

# Exact amounts, in bytes, of three runs unless there are more.
bytes <- function(...) profile_of_bytes(lapply(c(...), function(n) c("main>work" = n)))
seconds <- function(...) profile_of_runs(lapply(c(...), function(time) c("main>work" = round(100 * time))))
judge <- function(text, base, new) {
  limit <- limit_of_text(text)
  judge_limit(limit, figures_of_runs(list(base = list(base), new = list(new)), limit$type, "function", NULL))
}

test_that("exact amounts exceed a limit or do not", {
  base <- bytes(1e6, 1e6, 1e6)
  more <- bytes(1e6 + 1, 1e6 + 1, 1e6 + 1)
  expect_identical(judge("alloc > 0", base, base)$result, "within")
  expect_identical(judge("alloc > 0", base, more)$result, "exceeded")
  expect_identical(judge("alloc > 0", more, base)$result, "within")
  expect_identical(judge("alloc > 1", base, more)$result, "within")
  expect_identical(judge("alloc > 5%", base, bytes(1.05e6, 1.05e6, 1.05e6))$result, "within")
  expect_identical(judge("alloc > 5%", base, bytes(1.06e6, 1.06e6, 1.06e6))$result, "exceeded")
  expect_identical(judge("alloc_objects > 0", base, more)$result, "within")
})

test_that("amounts that differ between runs of a version are not exact", {
  base <- bytes(1e6, 1e6, 1e6)
  varying <- bytes(1.2e6, 1.2e6, 1.21e6)
  for (pair in list(list(base, varying), list(varying, base), list(varying, varying))) {
    judged <- judge("alloc > 0", pair[[1]], pair[[2]])
    expect_identical(judged$result, "inconclusive")
    expect_match(judged$reason, "^not exact")
  }
  # A percentage is judged by the interval.
  expect_identical(judge("alloc > 10%", base, varying)$result, "exceeded")
  expect_identical(judge("alloc > 20.3%", base, varying)$result, "inconclusive")
  expect_identical(judge("alloc > 30%", base, varying)$result, "within")
  # Single runs show nothing about that.
  expect_identical(judge("alloc > 0", bytes(1e6, 1e6), bytes(2e6, 2e6))$result, "inconclusive")
})

test_that("time exceeds a limit only if the whole interval is above it", {
  base <- seconds(1, 1.02, 0.98, 1.01, 0.99)
  slower <- seconds(1.2, 1.22, 1.18, 1.21, 1.19)
  expect_identical(judge("time > 10%", base, slower)$result, "exceeded")
  expect_identical(judge("time > 19%", base, slower)$result, "inconclusive")
  expect_identical(judge("time > 30%", base, slower)$result, "within")
  expect_identical(judge("time > 10%", slower, base)$result, "within")
  # Equal runs of samples are not exact.
  expect_identical(judge("time > 1%", seconds(1, 1, 1), seconds(1.01, 1.01, 1.01))$result, "inconclusive")
  expect_identical(judge("time > 10%", seconds(1, 1), seconds(2, 2))$result, "inconclusive")
})

test_that("the exit status is the worst of all limits", {
  of <- function(...) status_of_limits(lapply(c(...), function(result) list(result = result)))
  expect_identical(of(), 0L)
  expect_identical(of("within"), 0L)
  expect_identical(of("within", "inconclusive"), 4L)
  expect_identical(of("inconclusive", "exceeded", "within"), 3L)
})

test_that("the number of runs follows from the pilot's variation, not from its difference", {
  whole <- function(ratio, sd) {
    half <- qt(0.975, 8) * sd * sqrt(2 / 5)
    list(lower = ratio * exp(-half), upper = ratio * exp(half))
  }
  plan <- planned_runs(whole(1, 0.05), 0.1, used = 10, seconds = 1000)
  expect_false(plan$is_bounded)
  expect_identical(plan$runs, plan$wanted)
  truth <- ceiling(power.t.test(delta = log(1.1), sd = 0.05, power = 0.85)$n)
  expect_lte(abs(plan$runs - truth), 1)
  # The same for versions that differ.
  expect_equal(planned_runs(whole(1.5, 0.05), 0.1, 10, 1000), plan)
  # Five runs of the pilot took 10 seconds: 15 more take 30.
  bounded <- planned_runs(whole(1, 0.2), 0.1, used = 10, seconds = 40)
  expect_true(bounded$is_bounded)
  expect_identical(bounded$runs, 15)
  # Never fewer than three, never more than a hundred.
  expect_identical(planned_runs(whole(1, 0.2), 0.1, used = 10, seconds = 1)$runs, 3)
  expect_identical(planned_runs(whole(1, 0.0001), 0.1, used = 10, seconds = 1000)$runs, 3)
  expect_identical(planned_runs(whole(1, 1), 0.01, used = 1, seconds = 1e6)$runs, 100)
})
