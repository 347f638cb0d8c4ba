# tier: fast
# Recording runs to compare.

spin <- compiler::cmpfun(function(n) {
  only_given_ticks()
  tick(n)
})

test_that("each run is a source, and contains only the calls of the expression", {
  skip_without_ticks()
  x <- benchmark_profile(spin(20), runs = 3, warmup = 0, measure = "time", interval = 0.9)
  expect_equal(nrow(x$sources), 3)
  expect_silent(validate_profile(x))
  expect_equal(stacks(x), rep("tick < spin", 60))
  expect_equal(x$samples$source_id, rep(1:3, each = 20))
})

test_that("several expressions run in turns", {
  skip_without_ticks()
  order <- character()
  note <- function(name) {
    order <<- c(order, name)
    spin(2)
  }
  x <- suppressMessages(
    benchmark_profile(a = note("a"), b = note("b"), runs = 2, times = 2, warmup = 1, measure = "time", interval = 0.9),
    "profile_message_short"
  )
  expect_equal(order, c("a", "a", "b", "b", "b", "b", "a", "a", "a", "a", "b", "b"))
  expect_equal(names(x), c("a", "b"))
  expect_equal(c(nrow(x$a$sources), nrow(x$b$sources)), c(2, 2))
  # Two runs, each of which evaluates the expression twice.
  expect_equal(c(nrow(x$a$samples), nrow(x$b$samples)), c(8, 8))
})

test_that("assignments are local, and variables of the caller are found", {
  skip_without_ticks()
  value <- 1
  suppressMessages(benchmark_profile(value <- value + 1, runs = 1, warmup = 0, measure = "time"))
  expect_equal(value, 1)
  f <- function(n) benchmark_profile(spin(n), runs = 1, warmup = 0, measure = "time", interval = 0.9)
  expect_equal(nrow(f(25)$samples), 25)
})

test_that("allocated bytes are exact", {
  skip_if_not(isTRUE(unname(capabilities("profmem"))), "R records allocations")
  fill <- function(n) for (i in 1:10) numeric(n)
  x <- benchmark_profile(base = fill(1000), new = fill(2000), runs = 3, warmup = 2, measure = "bytes")
  compared <- compare_profiles(x$base, x$new, only = "fill")
  # Data and a header of 48 bytes each.
  expect_equal(compared$base, 10 * 8048)
  expect_equal(compared$new, 10 * 16048)
  expect_equal(c(compared$lower, compared$upper), rep(16048 / 8048, 2))
  expect_equal(compared$verdict, "more")
  expect_equal(attr(compared, "type"), "alloc_space")
  # Functions that exist in only one version have a verdict as well.
  x$other <- benchmark_profile(numeric(10000), runs = 3, measure = "bytes")
  other <- compare_profiles(x$base, x$other)
  expect_equal(other$verdict[match(c("numeric", "fill"), other$name)], c("less", "less"))
  expect_failure(expect_no_regression(x$base, x$new))
  expect_success(expect_no_regression(x$base, x$base))
})

test_that("an error ends the recording", {
  expect_error(benchmark_profile(stop("Oh no"), measure = "time"), "Oh no")
  path <- tempfile()
  Rprof(path)
  Rprof(NULL)
  expect_error(benchmark_profile(stop("Oh no"), runs = 1, measure = "time"), "Oh no")
})

test_that("what is measured depends on the machine", {
  old <- Sys.getenv("CI", NA)
  on.exit(if (is.na(old)) Sys.unsetenv("CI") else Sys.setenv(CI = old))
  Sys.setenv(CI = "")
  expect_equal(measure_by(NULL, NULL), "time")
  Sys.setenv(CI = "false")
  expect_equal(measure_by(NULL, NULL), "time")
  Sys.setenv(CI = "true")
  expected <- if (isTRUE(unname(capabilities("profmem")))) "bytes" else "time"
  expect_equal(measure_by(NULL, NULL), expected)
})

test_that("wrong arguments, and short runs, are reported", {
  expect_snapshot(error = TRUE, {
    benchmark_profile()
    benchmark_profile(1, 2)
    benchmark_profile(a = 1, a = 2)
    benchmark_profile(1, runs = 0)
    benchmark_profile(1, times = "a")
    benchmark_profile(1, warmup = -1)
    benchmark_profile(1, measure = "space")
    benchmark_profile(1, interval = 2)
  })
  skip_without_ticks()
  run <- function(n) benchmark_profile(spin(n), runs = 2, warmup = 0, measure = "time", interval = 0.9)
  expect_message(run(19), "only 19 samples", class = "profile_message_short")
  expect_silent(run(20))
})
