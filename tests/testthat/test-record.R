# tier: fast
# Recording expressions with R's profiler.

busy <- function(seconds = 0.3) {
  end <- proc.time()[[1]] + seconds
  while (proc.time()[[1]] < end) sort(runif(1e4))
}

test_that("an expression is recorded, without its callers", {
  x <- record_profile(busy())
  expect_s3_class(x, c("profile_recording", "profile_v2", "profile_data"), exact = TRUE)
  expect_no_error(validate_profile(x))
  tree <- call_tree(x)
  # Nothing but `busy()`, and what the compiler and the collector do.
  expect_equal(tree$name[[1]], "busy")
  expect_gt(tree$total[[1]], 0.9 * attr(tree, "sum"))
  expect_false(any(c("record_profile", "test_that", "eval") %in% tree$name[tree$depth == 1]))
  expect_gt(attr(tree, "sum"), 10)
  expect_true("alloc_size" %in% x$sample_values$type)
  expect_lt(abs(x$sources$source_timestamp - as.numeric(Sys.time())), 60)
  expect_true(".package" %in% names(x$functions))
})

test_that("the expression is evaluated where it was written, once", {
  y <- 0
  x <- record_profile(y <- y + 1)
  expect_equal(y, 1)
  expect_s3_class(x, "profile_data")
  expect_identical(last_profile(), x)
})

test_that("code that the expression reads has lines", {
  withr::local_options(keep.source = FALSE)
  path <- withr::local_tempfile(fileext = ".R", lines = c(
    "slow <- function() {",
    "  end <- proc.time()[[1]] + 0.3",
    "  while (proc.time()[[1]] < end) sort(runif(1e4))",
    "}",
    "slow()"
  ))
  x <- record_profile(source(path, local = TRUE))
  lines <- annotate_lines(x, path)
  expect_equal(lines$text[[3]], readLines(path)[[3]])
  expect_gt(lines$total[[3]], 0)
  expect_false(getOption("keep.source"))
  expect_false(isTRUE(record_profile(busy(0.1), lines = FALSE)$sources$.line_profiling))
})

test_that("a profile is left by an expression that fails", {
  fails <- function() {
    busy()
    stop("Oh no")
  }
  expect_message(expect_error(record_profile(fails()), "^Oh no$"), class = "profile_message_recorded")
  x <- last_profile()
  expect_true("fails" %in% x$functions$name)
  # It was finished properly: another one can start.
  expect_s3_class(record_profile(1), "profile_data")
})

test_that("a recording ends when it is interrupted", {
  expect_message(
    tryCatch(
      record_profile({
        busy()
        rlang::interrupt()
      }),
      interrupt = function(e) NULL
    ),
    class = "profile_message_recorded"
  )
  expect_true("busy" %in% last_profile()$functions$name)
})

test_that("recordings are not nested", {
  expect_error(
    suppressMessages(record_profile(record_profile(1))),
    class = "profile_error_argument"
  )
  expect_s3_class(record_profile(1), "profile_data")
})

test_that("a recording prints as its digest", {
  x <- record_profile(busy())
  lines <- capture.output(shown <- withVisible(print(x)))
  expect_false(shown$visible)
  expect_equal(lines, format(describe_profile(x)))
})

test_that("native code is recorded", {
  skip_if_not(Sys.info()[["sysname"]] == "Linux" && R.version$arch == "x86_64", "the joint profiler does not run here")
  # The C code of R itself has no frames here. That of `runif()` has: it is in a package, and takes nearly all the time.
  x <- tryCatch(record_profile(for (i in 1:30) runif(1e6), joint = TRUE), profile_error_unsupported = identity)
  skip_if(inherits(x, "profile_error_unsupported"), "the joint profiler does not run here")
  expect_true("native" %in% x$locations$.frame_type)
  expect_equal(setdiff(call_tree(x)$name[call_tree(x)$depth == 1], c("runif", "<GC>")), character())
})

test_that("arguments are checked", {
  expect_snapshot(error = TRUE, {
    record_profile(1, interval = 0)
    record_profile(1, memory = NA)
    record_profile(1, joint = "yes")
  })
})
