# tier: fast
# Widgets for profvis, compared with the widgets that profvis creates from the same files.

test_that("the widget equals profvis' own for regular files", {
  skip_if_not_installed("profvis")
  for (file in c("basic_plain.out", "basic_memline.out", "basic_mem.out", "dplyr_all.out", "basic_gc.out")) {
    path <- rprof_path(file)
    if (!file.exists(path)) next
    theirs <- profvis::parse_rprof(path)
    x <- read_rprof(path)
    ours <- as_profvis(x, source_text = FALSE)$x$message
    expect_equal(ours$interval, theirs$interval)
    prof <- theirs$prof[!is.na(theirs$prof$label), ]
    columns <- c("time", "depth", "label", "memalloc")
    # The widget of profvis lacks files of rows that profvis removes.
    expect_equal(ours$prof$meminc, c(0, diff(ours$prof$memalloc)))
    expect_equal(ours$prof[columns], prof[columns], ignore_attr = TRUE, info = file)
    expect_identical(lapply(ours$prof, typeof)[columns], lapply(prof, typeof)[columns])
  }
})

test_that("the widget equals htmlwidgets' own, and can be saved", {
  skip_if_not_installed("profvis")
  p <- as_profvis(small_profile(), source_text = FALSE, split = "v")
  widget <- htmlwidgets::createWidget(
    "profvis", p$x, package = "profvis", sizingPolicy = htmlwidgets::sizingPolicy(
      padding = 0, browser.fill = TRUE, viewer.suppress = TRUE, knitr.defaultWidth = "100%",
      knitr.defaultHeight = "600px", knitr.figure = FALSE
    )
  )
  class(p) <- setdiff(class(p), "suppress_viewer")
  class(widget) <- setdiff(class(widget), "suppress_viewer")
  expect_identical(p, widget)
  path <- withr::local_tempfile(fileext = ".html")
  htmlwidgets::saveWidget(as_profvis(small_profile(), source_text = FALSE), path, selfcontained = FALSE)
  expect_match(paste(readLines(path, warn = FALSE), collapse = ""), "\"label\":[\"f\",\"g\"", fixed = TRUE)
})

test_that("source code is included where it is known, as by profvis", {
  dir <- withr::local_tempdir()
  withr::local_dir(dir)
  code <- write_file("f <- function() {", "  1", "}", "f()", path = file.path(dir, "a.R"))
  path <- write_file(
    "line profiling: sample.interval=10000", paste("#File 1:", code), "#File 2: none.R", "1#2 \"f\" 1#4 \"g\" 2#7 \"h\" ",
    "\"f\" 1#2 \"g\" 1#4 ", "2#3 \"f\" ", "1#99 \"f\" "
  )
  x <- suppressWarnings(read_rprof(path))
  p <- as_profvis(x)$x$message
  expect_equal(p$prof$label, c("1", "f", "g", "h", "f", "g", "f", "f"))
  expect_equal(p$prof$linenum, c(2L, 4L, NA, NA, 2L, 4L, NA, NA))
  expect_equal(p$prof$filename, ifelse(is.na(p$prof$linenum), NA, code))
  expect_equal(p$prof$filenum, ifelse(is.na(p$prof$linenum), NA, 1L))
  text <- "f <- function() {\n  1\n}\nf()\n"
  expect_equal(p$files, list(list(filename = code, content = text, normpath = code)))
  expect_equal(as_profvis(x, source_text = FALSE)$x$message$files, list())
  if (rlang::is_installed("profvis")) {
    theirs <- profvis::parse_rprof(path)$prof
    theirs <- theirs[!is.na(theirs$label), ]
    columns <- c("time", "depth", "label", "linenum")
    expect_equal(p$prof[columns], theirs[columns], ignore_attr = TRUE)
  }
  # Texts that were collected before are used.
  unlink(code)
  collected <- add_source_text(x)
  collected$.source_text <- tibble::tibble(filename = "none.R", text = "x\n", from = "file", changed = FALSE)
  expect_equal(unique(as_profvis(collected)$x$message$prof$filename), c(NA, "none.R"))
})

test_that("a sample with a count is as many steps", {
  x <- read_collapsed(write_file("a;b 2", "c 0", "a 1"))
  p <- as_profvis(x)$x$message
  expect_equal(p$prof$time, c(1, 1, 2, 2, 3))
  expect_equal(p$prof$depth, c(2, 1, 2, 1, 1))
  expect_equal(p$prof$label, c("b", "a", "b", "a", "a"))
  expect_equal(p$interval, 10)
  y <- as_profvis(read_perf_script(data_path("perf", "r.txt.gz")))$x$message
  expect_true("<unknown>" %in% y$prof$label)
})

test_that("arguments are checked", {
  x <- small_profile()
  expect_error(as_profvis(x, source_text = NA), class = "profile_error_argument")
  expect_error(as_profvis(x, split = "x"), class = "profile_error_argument")
  expect_error(as_profvis(1), class = "profile_error_invalid")
  x$locations$function_id[[1]] <- 99L
  expect_error(as_profvis(x), class = "profile_error_invalid")
})
