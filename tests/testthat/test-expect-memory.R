# tier: fast
# Limits of memory in tests: amounts, messages with lines, and where they cannot be checked.

skip_without_exact <- function() {
  skip_if_not(is_live_platform() && capabilities("profmem"), "vectors cannot be recorded one by one here")
}

test_that("text is an amount of memory", {
  expect_equal(amount_of_text("200MB"), 200 * 2^20)
  expect_equal(amount_of_text("64KB"), 65536)
  expect_equal(amount_of_text("64 kB"), 65536)
  expect_equal(amount_of_text(" 1.5 gb "), 1.5 * 2^30)
  expect_equal(amount_of_text("1e3"), 1000)
  expect_equal(amount_of_text("7 bytes"), 7)
  for (text in c("", "MB", "1 second", "1 MBx", "1..2MB", "-1MB", "0x10", strrep("1", 200))) expect_null(amount_of_text(text))
})

test_that("places are the innermost lines of source files", {
  x <- exact_profile()
  places <- places_of(x, "alloc_space")
  expect_equal(places$line, c(2L, 3L, 4L, 1L, NA))
  expect_equal(places$value, c(3.2e9, 1.6e9, 8e8, 4e8, 1e6))
  expect_equal(places$name[[5]], "load")
  copies <- places_of(x, "copy_space")
  expect_equal(copies$reason, c(NA, "`y` is also `z` in `main()`", NA))
  expect_snapshot({
    writeLines(lines_in_message(x, "alloc_space", "bytes", 6.001e9))
    writeLines(lines_in_message(x, "copy_space", "bytes", 4.001e9))
    lines_in_message(x, "peak_space", "bytes", 0)
  })
})

test_that("memory is limited, and the message has the lines", {
  skip_without_exact()
  work <- function(n) {
    x <- numeric(n)
    rev(x)
  }
  expect_success(expect_memory(work(1e5), at_most = "2MB"))
  expect_failure(expect_memory(work(1e5), at_most = "1.5MB"), "`work(1e+05)` allocates 1.91MB, more than 1.50MB.", fixed = TRUE)
  expect_failure(expect_memory(work(1e5), at_most = 1e6), "x <- numeric(n)", fixed = TRUE)
  expect_success(expect_memory(work(1e5), at_most = 10, type = "alloc_objects"))
  expect_failure(expect_memory(work(1e5), at_most = 1, type = "alloc_objects"), "vectors, more than 1.", fixed = TRUE)
  # Nothing remains in use, except what is kept.
  expect_success(expect_memory(work(1e5), at_most = "1kB", type = "inuse_space"))
  kept <- NULL
  expect_failure(expect_memory(kept <<- work(1e5), at_most = "1kB", type = "inuse_space"), "leaves 781.30kB in use", fixed = TRUE)
  expect_failure(expect_memory(work(1e5), at_most = "1kB", type = "peak_space"), "not freed yet, more than 1kB", fixed = TRUE)
  # An expression is evaluated once, and its value is of no interest.
  count <- 0
  x <- expect_memory(count <- count + 1, at_most = 1e6)
  expect_equal(count, 1)
  expect_s3_class(x, "profile_data")
})

test_that("what R's compiler allocates does not count", {
  skip_without_exact()
  amount <- function(f) {
    x <- expect_memory(f(10), at_most = 1e12)
    sum(x$sample_values$value[x$sample_values$type == "alloc_space"])
  }
  f <- function(n) {
    for (i in 1:3) x <- numeric(1000 * n)
    if (n > 100) paste("never", n) else length(x)
  }
  amounts <- vapply(1:4, function(i) amount(f), 0)
  expect_equal(amounts, rep(3 * 80048, 4))
})

test_that("copies of large vectors are found", {
  skip_without_exact()
  copy <- function(n) {
    x <- numeric(n)
    y <- x
    y[1] <- 1
    sum(x, y)
  }
  expect_success(expect_no_copies(copy(1000)))
  expect_failure(expect_no_copies(copy(1e5)), "copies 1 vector of more than 64kB: 781.30kB.", fixed = TRUE)
  expect_failure(expect_no_copies(copy(1e5)), "`y[1] <- 1`", fixed = TRUE)
  expect_failure(expect_no_copies(copy(1000), above = "1kB"), "copies 1 vector", fixed = TRUE)
  # The size is that of the vector with its header.
  expect_success(expect_no_copies(copy(1000), above = 8048))
  expect_failure(expect_no_copies(copy(1000), above = 8047))
  x <- numeric(1e5)
  expect_failure(expect_no_copies({
    y <- x
    y[2] <- 2
  }), "is also", fixed = TRUE)
})

test_that("messages are as documented", {
  skip_without_exact()
  script <- write_file(
    "grow <- function(n) {", "  x <- numeric(n)", "  y <- x", "  y[1] <- 1", "  z <- rep(y, 2)", "  sum(x, y, z)", "}",
    path = file.path(withr::local_tempdir(), "grow.R")
  )
  env <- new.env()
  source(script, env, keep.source = TRUE)
  grow <- env$grow
  withr::local_envvar(TESTTHAT = "false")
  expect_snapshot(error = TRUE, {
    expect_memory(grow(2^17), at_most = "3MB")
    expect_memory(grow(2^17), at_most = 2, type = "alloc_objects")
    expect_memory(grow(2^17), at_most = "512kB", type = "copy_space")
    expect_no_copies(grow(2^17))
    expect_memory(grow(2^17))
    expect_memory(at_most = "1MB")
    expect_memory(grow(10), "1MB")
    expect_memory(grow(10), at_most = "1 hour")
    expect_memory(grow(10), at_most = "1MB", type = "alloc_objects")
    expect_memory(grow(10), at_most = "1MB", type = "samples")
    expect_memory(grow, at_most = "1MB")
    expect_no_copies(grow(10), above = -1)
    expect_no_copies(stop("no"))
  })
})

test_that("where vectors cannot be recorded, tests are skipped and scripts fail, with the reason", {
  withr::local_options(profile.replace_entries = FALSE)
  skipped <- tryCatch(expect_memory(1, at_most = 1), skip = function(skip) conditionMessage(skip))
  expect_match(skipped, "Vectors cannot be recorded one by one.", fixed = TRUE)
  skipped <- tryCatch(expect_no_copies(1), skip = function(skip) conditionMessage(skip))
  expect_match(skipped, "Vectors cannot be recorded one by one.", fixed = TRUE)
  withr::local_envvar(TESTTHAT = "false")
  expect_error(expect_memory(1, at_most = 1), "Vectors cannot be recorded one by one.", class = "profile_error_unsupported")
  # An error of the code is not a reason to skip.
  withr::local_options(profile.replace_entries = NULL)
  withr::local_envvar(TESTTHAT = "true")
  skip_without_exact()
  expect_error(expect_memory(abort_unsupported("mine", NULL), at_most = 1), "mine", class = "profile_error_unsupported")
})
