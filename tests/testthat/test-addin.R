# tier: fast
# The addin "Profile selection", with the context of an editor that the test makes up.

context_of <- function(contents, rows = integer(), path = "") {
  selected <- paste(contents[rows], collapse = "\n")
  range <- list(start = c(row = if (length(rows) > 0) rows[[1]] else 1, column = 1))
  list(path = path, contents = contents, selection = list(list(range = range, text = selected)))
}

contents <- c(
  "# A script",
  "selected_work <- function() {",
  "  only_given_ticks()",
  "  tick(3)",
  "}",
  "selected_work()",
  "stop(\"not selected\")"
)

test_that("the selected code is recorded with the lines of the document, and its page is shown", {
  skip_without_ticks()
  shown <- NULL
  withr::local_options(rlang_interactive = TRUE, viewer = function(url, ...) shown <<- url)
  withr::defer(suppressWarnings(rm("selected_work", "tick", "only_given_ticks", envir = globalenv())))
  assign("tick", tick, globalenv())
  assign("only_given_ticks", only_given_ticks, globalenv())
  x <- profile_selection(context_of(contents, 2:6))
  expect_match(shown, "[.]html$")
  lines <- summary(x)$by_line
  # In the function, and its call in the selected code.
  expect_setequal(lines$line[lines$filename == "Untitled" & lines$total == 3], c(4, 6))
  expect_identical(x$.source_text$text[x$.source_text$filename == "Untitled"], paste0(contents, "\n", collapse = ""))
  expect_identical(x$.comments$comment, "Untitled, line 2")
})

test_that("without a selection the whole document is recorded", {
  shown <- NULL
  withr::local_options(rlang_interactive = TRUE, viewer = function(url, ...) shown <<- url)
  withr::defer(suppressWarnings(rm("selected_value", envir = globalenv())))
  x <- profile_selection(context_of(c("selected_value <- 1", "selected_value <- selected_value + 1")))
  expect_identical(get("selected_value", globalenv()), 2)
  expect_s3_class(x, "profile_recording")
})

test_that("lines are those of the document, and errors are the user's", {

  expect_error(parse_selection("f(", 1, "work.R"), "work.R")
  code <- parse_selection(c("f()", "g()"), 5, "work.R")
  expect_identical(vapply(attr(code, "srcref")[-1], function(srcref) srcref[[1]], 0L), 5:6)
})

test_that("the menu of addins names the function", {
  dcf <- read.dcf(system.file("rstudio", "addins.dcf", package = "profile"))
  expect_true(is.function(get(dcf[[1, "Binding"]], asNamespace("profile"))))
})
