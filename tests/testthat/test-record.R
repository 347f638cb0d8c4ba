# tier: fast
# Recording expressions with R's profiler. Tests generate ticks, so that each sample is known.

# Generates ticks, and the same number below `lapply()`.
busy <- compiler::cmpfun(function(n = 1L) {
  tick(n)
  lapply(n, tick)
})

# Stacks without the frame of the recorded code, which is there if the code has lines.
inner_stacks <- function(x) sub("( < )?<expression>$", "", stacks(x))

test_that("an expression is recorded, without its callers", {
  skip_without_ticks()
  before <- as.numeric(Sys.time())
  x <- record_profile({ only_given_ticks(); busy(3) }, interval = 0.9)
  expect_s3_class(x, c("profile_recording", "profile_v2", "profile_data"), exact = TRUE)
  expect_no_error(validate_profile(x))
  expect_equal(inner_stacks(x), rep(c("tick < busy", "tick < lapply < busy"), c(3, 3)))
  tree <- call_tree(filter_profile(x, show_from = "^busy$"))
  expect_equal(tree$name, c("busy", "lapply", "tick", "tick"))
  expect_equal(tree$total, c(6, 3, 3, 3))
  expect_true("alloc_size" %in% x$sample_values$type)
  expect_gte(x$sources$source_timestamp, before)
  expect_lte(x$sources$source_timestamp, as.numeric(Sys.time()))
  expect_true(".package" %in% names(x$functions))
  expect_identical(x$.comments, tibble::tibble(source_id = 1L, comment = "{ only_given_ticks() busy(3) }"))
  expect_match(format(profile_page(x))[[1]], "<profile page> { only_given_ticks() busy(3) }, ", fixed = TRUE)
})

test_that("the recorded code is one line of at most 100 characters", {
  expect_identical(code_in_one_line(quote(f(x, y))), "f(x, y)")
  expect_identical(code_in_one_line(quote(for (i in 1:3) f(i))), "for (i in 1:3) f(i)")
  long <- code_in_one_line(as.call(c(as.name("f"), as.list(rep(1, 1e5)))))
  expect_lte(nchar(long), 101)
})

test_that("R's timer gives samples of the expression", {
  work <- function(seconds) {
    end <- proc.time()[[1]] + seconds
    while (proc.time()[[1]] < end) sort(runif(1e4))
  }
  seconds <- 0.05
  x <- NULL
  # The number of samples grows with the work; at least one is certain.
  expect_true(wait_for(function() {
    x <<- record_profile(work(seconds))
    seconds <<- min(2 * seconds, 10)
    "work" %in% x$functions$name
  }))
  expect_no_error(validate_profile(x))
  # All other samples are in R's compiler or the garbage collector.
  tree <- call_tree(x)
  expect_true(all(tree$name[tree$depth == 1] %in% c("work", "cmpfun", "compiler:::tryCmpfun", "<GC>")))
  expect_equal(sum(tree$self), attr(tree, "sum"))
})

test_that("the expression is evaluated where it was written, once", {
  y <- 0
  x <- record_profile(y <- y + 1)
  expect_equal(y, 1)
  expect_s3_class(x, "profile_data")
  expect_identical(last_profile(), x)
})

test_that("code that the expression reads has lines", {
  skip_without_ticks()
  withr::local_options(keep.source = FALSE)
  path <- withr::local_tempfile(fileext = ".R", lines = c(
    "slow <- function() {",
    "  tick(2)",
    "  tick(1)",
    "}",
    "slow()"
  ))
  x <- record_profile({ only_given_ticks(); source(path, local = TRUE) }, interval = 0.9)
  lines <- annotate_lines(x, path)
  expect_equal(lines$text[1:5], readLines(path))
  expect_equal(lines$total[1:5], c(0, 2, 1, 0, 3))
  expect_false(getOption("keep.source"))
  x <- record_profile({ only_given_ticks(); busy() }, interval = 0.9, lines = FALSE)
  expect_equal(nrow(x$samples), 2)
  expect_false(isTRUE(x$sources$.line_profiling))
})

test_that("a profile is left by an expression that fails", {
  skip_without_ticks()
  fails <- function() {
    only_given_ticks()
    tick(3)
    stop("Oh no")
  }
  expect_message(
    expect_error(record_profile(fails(), interval = 0.9), "^Oh no$"), class = "profile_message_recorded"
  )
  expect_equal(stacks(last_profile()), rep("tick < fails", 3))
  # The recording was finished properly, so another one can start.
  expect_s3_class(record_profile(1), "profile_data")
})

test_that("a recording ends when it is interrupted", {
  skip_without_ticks()
  expect_message(
    tryCatch(
      record_profile(interval = 0.9, {
        only_given_ticks()
        tick(2)
        rlang::interrupt()
        tick(4)
      }),
      interrupt = function(e) NULL
    ),
    class = "profile_message_recorded"
  )
  expect_equal(inner_stacks(last_profile()), rep("tick", 2))
})

test_that("recordings are not nested", {
  expect_error(
    suppressMessages(record_profile(record_profile(1))),
    class = "profile_error_argument"
  )
  expect_s3_class(record_profile(1), "profile_data")
})

test_that("printing a recording shows its description", {
  skip_without_ticks()
  x <- record_profile({ only_given_ticks(); busy() }, interval = 0.9)
  lines <- capture.output(shown <- withVisible(print(x)))
  expect_false(shown$visible)
  expect_equal(lines, format(describe_profile(x)))
})

test_that("native code is recorded", {
  skip_if_not(is_live_platform(), "native code is not recorded here")
  skip_without_ticks()
  x <- tryCatch(
    record_profile({ only_given_ticks(); tick(2) }, native = TRUE, interval = 0.9),
    profile_error_unsupported = identity
  )
  skip_if(inherits(x, "profile_error_unsupported"), "native code is not recorded here")
  expect_true("native" %in% x$locations$.frame_type)
  found <- profile_stacks(x)
  expect_length(found, 2)
  # Below it are the functions of the C library that send the signal.
  for (stack in found) expect_equal(setdiff(stack, "<expression>()")[1:2], c("tick()", "ticks_give"))
})

test_that("with the wall clock, waiting is recorded", {
  if (getRversion() < "4.4") {
    expect_error(record_profile(1, clock = "wall"), "`clock = \"wall\"` needs R 4.4", class = "profile_error_unsupported")
    skip("R's profiler has no wall clock before R 4.4")
  }
  # The timer is a thread, for which a busy machine may have no time.
  for (seconds in c(0.2, 2, 20)) {
    x <- record_profile(Sys.sleep(seconds), clock = "wall")
    if (nrow(x$samples) > 0) break
  }
  expect_gt(nrow(x$samples), 0)
  expect_equal(unique(stacks(x)), "Sys.sleep")
})

# Evaluates code as if it was typed at the prompt: it has lines, but no file.
typed <- function(..., env = parent.frame()) {
  for (lines in list(...)) {
    # The prompt keeps an expression as one text.
    source <- srcfilecopy("", paste(lines, collapse = "\n"))
    eval(parse(text = lines, keep.source = TRUE, srcfile = source), env)
  }
}

test_that("code that was typed at the prompt has its text", {
  skip_without_ticks()
  typed(
    c("one <- function() {", "  tick(2)", "}"),
    c("two <- function() {", "", "  one()", "  tick(1)", "}"),
    c("x <- record_profile({", "  only_given_ticks()", "  two()", "  lapply(1, function(i) {", "    tick(3)", "  })", "},",
      "interval = 0.9)")
  )
  expect_no_error(validate_profile(x))
  typed <- x$.source_text$filename[x$.source_text$from == "srcref"]
  expect_setequal(grep("^<", typed, value = TRUE), c("<one>", "<two>", "<expression>"))
  expect_equal(annotate_lines(x, "<one>")$text, c("one <- function() {", "  tick(2)", "}"))
  expect_equal(annotate_lines(x, "<one>")$total, c(0, 2, 0))
  expect_equal(annotate_lines(x, "<two>")$total, c(0, 0, 2, 1, 0))
  # The code itself is the outermost frame.
  expect_equal(annotate_lines(x, "<expression>")$total, c(0, 0, 3, 3, 3, 0, 0, 0))
  tree <- call_tree(x)
  expect_equal(tree$name[is.na(tree$parent_id)], "<expression>")
  expect_equal(tree$total[[1]], 6)
})

test_that("functions whose text is unknown keep their lines without a file", {
  x <- profile_of("", name = "typed_function", line = 3L)
  files <- function() unique(with_typed_code(x, NULL, environment())$functions$filename)
  expect_equal(files(), "")
  # The code has changed: it has too few lines.
  typed("typed_function <- function() 1")
  expect_equal(files(), "")
  typed(c("typed_function <- function() {", "  1", "  2", "}"))
  expect_equal(files(), "<typed_function>")
  # Functions of files are not touched.
  x <- profile_of("a.R", name = "typed_function", line = 3L)
  expect_equal(files(), "a.R")
})

test_that("without replaced entries, `Rprofmem()` records each vector beside the samples", {
  skip_without_ticks()
  skip_if_not(capabilities("profmem"))
  withr::local_options(profile.replace_entries = FALSE)
  allocate <- function() numeric(1e5)
  expect_message(x <- record_profile({ only_given_ticks(); busy(); for (i in 1:5) allocate() }, interval = 0.9, memory = "exact"),
    "without lines and copies", class = "profile_message_memory")
  expect_no_error(validate_profile(x))
  expect_equal(x$sources$source_type, c("rprof", "rprofmem"))
  expect_equal(unique(x$.comments$comment), "{ only_given_ticks() busy() for (i in 1:5) allocate() }")
  expect_match(format(profile_page(x))[[1]], "allocate() }, ", fixed = TRUE)
  memory <- as.list(describe_profile(x))$allocated$recorded
  own <- memory$functions[memory$functions$name == "allocate", ]
  # A vector has a header of 48 bytes.
  expect_equal(own$total_alloc, 5 * 800048)
  outermost <- call_tree(x, type = "alloc_space")
  expect_false("record_profile" %in% outermost$name)
  text <- format(describe_profile(x))
  expect_match(text, "allocated by itself, of .*, each vector recorded", all = FALSE)
  expect_no_match(text, "without a value")
  # The next recording does not record them.
  expect_equal(record_profile(allocate())$sources$source_type, "rprof")
})

test_that("exact and sampled memory are not added in files", {
  skip_if_not(capabilities("profmem"))
  path <- withr::local_tempfile()
  Rprofmem(path)
  vector <- numeric(1e5)
  Rprofmem("")
  x <- combine_profiles(read_rprof(rprof_path("basic_mem.out")), read_rprofmem(path))
  file <- withr::local_tempfile()
  write_pprof(x, file)
  y <- read_pprof(file)
  expect_equal(attr(summary(y, type = "alloc_space"), "sum"), attr(summary(x, type = "alloc_space"), "sum"))
  expect_equal(attr(summary(y, type = "alloc_size"), "sum"), attr(summary(x, type = "alloc_size"), "sum"))
  expect_equal(attr(summary(y), "at_least"), TRUE)
  # The interval is that of the samples.
  run <- as.list(describe_profile(x))$run
  expect_equal(run$interval, 0.02)
  expect_equal(run$seconds, 0.02 * run$samples)
})

test_that("arguments are checked", {
  expect_snapshot(error = TRUE, {
    record_profile(1, interval = 0)
    record_profile(1, memory = NA)
    record_profile(1, native = "yes")
    record_profile(1, clock = "real")
  })
})

test_that("no other call is named like the frame of the expression, if that has no name, either", {
  skip_without_ticks()
  skip_if_not(capabilities("profmem"))
  # `Rprofmem()` names calls such as `profile::record_profile()` and `x$give()` `<Anonymous>`.
  withr::local_options(profile.replace_entries = FALSE)
  path <- withr::local_tempfile(fileext = ".R", lines = c(
    "test_that('a block', {",
    "  x <- list(give = function() { tick(2); length(numeric(1e6)) })",
    "  expect_identical(x$give(), 1000000L)",
    "})"
  ))
  env <- rlang::env(tick = tick)
  code <- parse(text = c(
    "profile::record_profile({", "  only_given_ticks()", "  testthat::test_file(path, reporter = 'silent', env = env)",
    "}, interval = 0.9, memory = 'exact')"
  ), keep.source = TRUE)
  x <- suppressMessages(eval(code), "profile_message_memory")
  expect_no_error(validate_profile(x))
  all <- stacks(x)
  sampled <- all[x$samples$source_id == x$sources$source_id[x$sources$source_type == "rprof"]]
  large <- x$sample_values$sample_id[x$sample_values$value %in% 8000048]
  expect_match(sampled, "^tick < x[$]give < ")
  expect_match(all[match(large, x$samples$sample_id)], "^numeric < <Anonymous> < ")
  expect_length(c(sampled, large), 3)
  # It is the outermost frame, and no other.
  expect_true(all(endsWith(all, " < <expression>")))
  expect_false(any(grepl("<expression> <", all, fixed = TRUE)))

  # With `do.call()`, the same is true for `Rprof()`.
  block <- parse(text = c("{", "  only_given_ticks()", "  (function() tick(2))()", "}"), keep.source = TRUE)[[1]]
  y <- do.call(record_profile, list(block, interval = 0.9))
  expect_equal(stacks(y), rep("tick < <Anonymous> < <expression>", 2))
})
