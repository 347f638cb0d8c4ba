# tier: fast
# The figures of the lines of a file, and how they print.

test_that("lines have the figures of the summary", {
  x <- add_source_text(report(), directory = report_files())
  lines <- annotate_lines(x, "sales.R")
  by_line <- summary(x)$by_line
  by_line <- by_line[basename(by_line$filename) == "sales.R", ]
  expect_equal(lines$line, seq_along(readLines(file.path(report_files(), "sales.R"))))
  expect_equal(lines$text, readLines(file.path(report_files(), "sales.R")))
  for (column in c("self", "total", "self_share", "total_share", "self_time", "total_time")) {
    expect_equal(lines[[column]][by_line$line], by_line[[column]])
    expect_equal(sum(lines[[column]]), sum(by_line[[column]]))
  }
  # Without text: the lines with samples.
  without <- annotate_lines(report(), "sales.R")
  expect_equal(without$line, sort(by_line$line))
  expect_true(all(is.na(without$text)))
  expect_equal(annotate_lines(x), annotate_lines(x, "sales.R"))
})

test_that("all figures are kept if the file is shorter than in the profile", {
  path <- withr::local_tempfile(fileext = ".R", lines = "only")
  x <- profile_of(path, line = 5L)
  lines <- annotate_lines(x, path)
  expect_equal(lines$line, c(1, 5))
  expect_equal(lines$text, c("only", NA))
  expect_equal(lines$self, c(0, 252))
  # Even for very large line numbers.
  x <- profile_of(path, line = .Machine$integer.max)
  expect_equal(annotate_lines(x, path)$line, c(1L, .Machine$integer.max))
  expect_length(format(describe_profile(x)), length(format(describe_profile(profile_of(path, line = 5L)))))
})

test_that("lines print as code with figures", {
  x <- add_source_text(report(), directory = report_files())
  lines <- annotate_lines(x, "sales.R")
  expect_snapshot({
    lines
    print(lines, n = 8, width = 50)
    print(annotate_lines(report(), "sales.R"))
    print(annotate_lines(read_pprof(data_path("pprof", "go_heap.pb.gz"))))
  })
  expect_identical(withVisible(print(lines))$visible, FALSE)
  expect_equal(as_tibble(lines)$text, lines$text)
  expect_s3_class(as_tibble(lines), c("tbl_df", "tbl", "data.frame"), exact = TRUE)
  # Only selected columns or reordered rows are a table.
  expect_match(format(lines[c("line", "total")]), "tibble", all = FALSE)
  expect_match(format(lines[rev(seq_len(nrow(lines))), ]), "tibble", all = FALSE)
  expect_error(format(lines, n = -1), class = "profile_error_argument")
})

test_that("memory is beside the code", {
  path <- withr::local_tempfile(fileext = ".R", lines = c("one", "\ttwo \x1b[31m", "three"))
  x <- read_rprof(rprof_path("basic_mem.out"))
  x$functions$filename <- path
  x$locations$line <- 2L
  text <- format(annotate_lines(mark_session(x), path))
  expect_match(text[[2]], "^ line total% self% +total +alloc at least   code$")
  expect_match(text[[4]], "MB|GB")
  # Control characters are escaped, and a tab is two blanks.
  expect_match(text[[4]], "     two \\033[31m", fixed = TRUE)
  expect_match(text, "was changed after the profile", all = FALSE)
})

test_that("of long files, the lines with the largest totals are shown, and those around them", {
  path <- withr::local_tempfile(fileext = ".R", lines = paste("line", 1:1000))
  x <- combine_profiles(profile_of(path, line = 500L), profile_of(path, line = 3L), profile_of(path, line = 1000L))
  lines <- annotate_lines(x, path)
  attr(lines, "changed") <- FALSE
  text <- format(lines)
  shown <- c(1:5, 498:502, 998:1000)
  expect_equal(sub(".*(line [0-9]+)$", "\\1", grep("line [0-9]+$", text, value = TRUE)), paste("line", shown))
  expect_equal(grep("...", text, fixed = TRUE, value = TRUE), c(" ... 492 lines", " ... 495 lines"))
  expect_length(format(lines, n = Inf), 1002)
  # Without space for their surroundings, only the lines themselves.
  expect_equal(sum(grepl("line [0-9]+$", format(lines, n = 3))), 3)
  expect_length(format(lines, n = 0), 1)
})
