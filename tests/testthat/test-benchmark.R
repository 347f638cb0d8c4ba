# tier: fast
# Recording runs to compare.

is_hooked <- function() rust(rust_allocations_on(), NULL)

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
  skip_if_not(isTRUE(unname(capabilities("profmem"))) || is_live_platform(), "R cannot record allocations")
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

test_that("copies and lines are recorded where this is possible", {
  skip_if_not(is_live_platform(), "this system is not supported")
  file <- withr::local_tempfile(fileext = ".R", lines = c(
    "base <- function(n) { x <- numeric(n)", "  for (i in 1:10) { y <- x", "    x[i] <- 1 } }",
    "new <- function(n) { x <- numeric(n)", "  for (i in 1:10) x[i] <- 1 }", "nothing <- function() NULL"
  ))
  code <- new.env(parent = globalenv())
  sys.source(file, code, keep.source = TRUE)
  x <- with(code, profile::benchmark_profile(base = base(1000), new = new(1000), runs = 3, measure = "bytes"))
  expect_setequal(unique(x$base$sample_values$type), c(
    "alloc_space", "alloc_objects", "copy_space", "copy_objects", "inuse_space", "inuse_objects", "peak_space",
    "peak_objects"
  ))
  expect_identical(validate_profile(x$base), x$base)
  expect_true(attr(summary(x$base), "exact_memory"))
  copied <- compare_profiles(x, type = "copy_space")
  expect_equal(c(attr(copied, "whole")$base, attr(copied, "whole")$new), c(10 * 8048, 0))
  expect_error(expect_no_regression(x$new, x$base, type = "copy_space"), class = "expectation_failure")
  # Code without copies stays without copies.
  none <- expect_no_regression(x$new, x$new, type = "copy_space")
  expect_identical(attr(none, "whole")$verdict, "none found")
  expect_equal(unlist(attr(none, "whole")[c("base", "new", "ratio", "detectable")], use.names = FALSE), c(0, 0, 1, 1))
  expect_match(format(none), "0 -> 0, 0% (exact", fixed = TRUE, all = FALSE)
  expect_error(compare_profiles(x$new, x$new, type = "copy_space", scale = "share"), class = "profile_error_unsupported")
  lines <- summary(x$base, type = "copy_space")$by_line
  expect_identical(lines$line[as.numeric(lines$self) == 3 * 10 * 8048], 3L)
  # All runs are equal, and have the vectors of `Rprofmem()`.
  of_run <- function(x, run) {
    within <- x$samples$sample_id[x$samples$source_id == run]
    values <- x$sample_values[x$sample_values$sample_id %in% within, ]
    tapply(values$value, values$type, sum)
  }
  expect_identical(of_run(x$base, 1), of_run(x$base, 2))
  expect_identical(of_run(x$base, 1), of_run(x$base, 3))
  expect_identical(is_hooked(), FALSE)
  if (isTRUE(unname(capabilities("profmem")))) {
    withr::local_options(profile.replace_entries = FALSE)
    expect_silent(y <- benchmark_profile(base = code$base(1000), new = code$new(1000), runs = 3, measure = "bytes"))
    expect_equal(of_run(y$base, 1), of_run(x$base, 1)[c("alloc_objects", "alloc_space")])
    whole <- attr(compare_profiles(y$base, x$base), "whole")
    expect_equal(c(whole$ratio, whole$detectable), c(1, 1))
  }
  # The hook is removed after an error as well, and an expression may allocate nothing.
  expect_error(benchmark_profile(stop("Oh no"), measure = "bytes"), "Oh no")
  expect_identical(is_hooked(), FALSE)
  withr::local_options(profile.replace_entries = NULL)
  expect_identical(nrow(benchmark_profile(code$nothing(), runs = 2, measure = "bytes")$samples), 0L)
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
