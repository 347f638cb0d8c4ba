# tier: gate
# Why the code of a profile has no lines: each reason is only given where it is true.

# A profile without lines, of functions of these packages.
without_lines <- function(names, packages = NULL) {
  path <- withr::local_tempfile(lines = c(
    "line profiling: sample.interval=10000", paste0('"', names, '" ', collapse = "")
  ))
  x <- read_rprof(path)
  if (!is.null(packages)) x$functions$.package <- packages[match(x$functions$name, names)]
  x
}

hint_of <- function(x) gsub("\u00a0", " ", hint_for(x, summary(x)), fixed = TRUE)

test_that("the hint is about what the profile contains", {
  own <- without_lines(c("lm", "work", "<GC>"), c("stats", NA, NA))
  expect_snapshot(writeLines(c(
    unknown = hint_of(without_lines(c("f", "lm"))),
    own = hint_of(own),
    packages = hint_of(without_lines(c("lm", "FUN", "lapply", "<GC>"), c("stats", NA, "base", NA)))
  )))
  expect_match(format(own), "Hint: +There are no lines of R code: it was parsed", all = FALSE)
  expect_match(format(describe_profile(own)), "Note: There are no lines of R code", all = FALSE)
  expect_error(annotate_lines(own), "no lines of files.*keep[.]source = TRUE", class = "profile_error_argument")
  # Lines of a file are a reason for no hint.
  own$locations$line[[1]] <- 1L
  expect_null(hint_for(own, summary(own)))
})

test_that("a recording knows whether it was made in a script or by knitr", {
  own <- without_lines(c("lm", "work"), c("stats", NA))
  withr::local_options(rlang_interactive = FALSE, knitr.in.progress = NULL)
  skip_if(interactive())
  script <- with_reason_for_no_lines(own, FALSE)
  expect_match(hint_of(script), "in the first line of the script")
  expect_identical(with_reason_for_no_lines(own, TRUE), own)
  expect_match(hint_of(script), "in the first line of the script")
  path <- withr::local_tempfile(fileext = ".pb.gz")
  write_pprof(script, path)
  withr::local_options(knitr.in.progress = TRUE)
  knit <- with_reason_for_no_lines(own, FALSE)
  expect_snapshot(writeLines(hint_of(knit)))
  # It does not matter where code of packages was called.
  knit$functions$.package <- c("stats", "mine")
  expect_match(hint_of(knit), "installed without source references")
  with_line <- own
  with_line$locations$line[[1]] <- 1L
  expect_identical(with_reason_for_no_lines(with_line, FALSE), with_line)
})

test_that("a recording of code without source references in a document has the hint about knitr", {
  skip_without_ticks()
  withr::local_options(knitr.in.progress = TRUE)
  code <- "record_profile({ only_given_ticks(); lapply(1, utils::removeSource(tick)) }, interval = 0.9)"
  x <- eval(parse(text = code, keep.source = FALSE))
  expect_identical(x$.source_attributes$value[x$.source_attributes$key == "profile.without_lines"], "knitr")
  # The text that R makes of functions of packages has lines.
  has_text <- any(is_deparsed_package(x$functions$filename))
  expect_identical(has_text, has_lines_of_r(x))
  if (has_text) expect_length(hint_of(x), 0) else expect_match(hint_of(x), "belongs to packages")
  x$functions$.package[x$functions$name == "lapply"] <- NA
  of <- if (has_text) "your R code" else "R code"
  expect_match(hint_of(x), paste0("There are no lines of ", of, ": knitr keeps no source references"))
})

test_that("files with hardly any time are not suggested, and the one with most time is the first", {
  lines <- data.frame(
    filename = c("a.R", "b.R", "b.R", "rare.R", "outer.R"), line = 1:5, self = c(40, 30, 25, 0.5, 0),
    total_share = c(0.4, 0.5, 0.3, 0.005, 0.9)
  )
  expect_identical(files_by_time(lines), c("b.R", "a.R", "outer.R"))
  expect_identical(files_by_time(lines[0, ]), character())
  expect_identical(files_by_time(lines[4, ]), character())
  path <- withr::local_tempfile(lines = c(
    "line profiling: sample.interval=10000", "#File 1: often.R", "#File 2: rare.R", "#File 3: some.R",
    rep('1#1 "f" ', 300), '2#1 "g" ', rep('3#2 "h" ', 10)
  ))
  x <- read_rprof(path)
  expect_match(describe_profile(x)$parts$next_calls, 'annotate_lines(x, "often.R")', fixed = TRUE, all = FALSE)
  expect_identical(unique(annotate_lines(x)$filename), "often.R")
  error <- expect_error(annotate_lines(x, "other.R"), class = "profile_error_argument")
  expect_match(rlang::cnd_message(error), "Files: `often.R`, `some.R`, ...", fixed = TRUE)
})
