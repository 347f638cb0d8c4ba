# tier: gate
# The lines of chunks and their expressions that a recording of a document logs, see R/chunk-places.R.

# Knits a document, possibly several times, and returns what was marked the last time, as text: `2-3 of main`, or `end`.
marks_of <- function(document, child = NULL, times = 1, .local_envir = parent.frame()) {
  skip_if_not_installed("knitr")
  options <- knitr::opts_hooks$get()
  folder <- normalizePath(withr::local_tempdir(.local_envir = .local_envir))
  withr::local_dir(folder)
  writeLines(document, "main.Rmd")
  if (!is.null(child)) writeLines(child, "child.Rmd")
  marks <- character()
  now <- NULL
  mark <- function(kind, first, last = first, name = "") {
    expect_identical(kind, "document")
    before <- now
    now <<- list(first = first, last = last, name = name)
    if (is.na(first)) {
      marks <<- c(marks, "end")
    } else {
      expect_identical(dirname(name), folder)
      lines <- paste(unique(c(first, last)), collapse = "-")
      marks <<- c(marks, paste(lines, "of", sub("[.]Rmd$", "", basename(name))))
    }
    before
  }
  the$chunks_run <- NULL
  end <- label_chunks(mark, function(...) NULL)
  withr::defer({
    end()
    knitr::opts_hooks$restore(options)
  })
  for (time in seq_len(times)) {
    marks <- character()
    try(suppressMessages(knitr::knit("main.Rmd", quiet = TRUE, envir = new.env())), silent = TRUE)
  }
  marks
}

test_that("chunks and their expressions have their lines", {
  expect_equal(marks_of(c(
    "Text", "", "```{r first}", "# A comment", "x <- 1", "", "y <- sum(", "  x, 2", "); x", "```", "`r x`",
    "```{r none, eval=FALSE}", "x", "```", "```{r}", "#| fig.width: 4", "", "x", "```",
    "- A list", "", "  ```{r}", "  x", "  ```", "```{cat other}", "x", "```",
    "```{r part, eval=2}", "x", "y", "```", "```{r empty}", "```"
  )), c(
    # In the last lines of the first chunk is the end of one expression and another one.
    "3 of main", "4 of main", "5 of main", "6 of main", "7-9 of main", "end",
    "15 of main", "18 of main", "end", "22 of main", "23 of main", "end", "28 of main", "29 of main", "30 of main", "end"
  ))
})

test_that("equal chunks have their own lines, also when a document is rendered again", {
  document <- c("```{r}", "1", "```", "", "```{r}", "1", "```", "```{r}", "2", "```")
  marks <- c("1 of main", "2 of main", "end", "5 of main", "6 of main", "end", "8 of main", "9 of main", "end")
  expect_equal(marks_of(document), marks)
  expect_equal(marks_of(document, times = 2), marks)
})

test_that("a chunk that fails ends", {
  expect_equal(
    marks_of(c("```{r, error=FALSE}", "1", "stop('no')", "2", "```")), c("1 of main", "2 of main", "3 of main", "end")
  )
  expect_equal(
    marks_of(c("```{r, error=TRUE}", "stop('no')", "2", "```")), c("1 of main", "2 of main", "3 of main", "end")
  )
})

test_that("child documents have lines of their own", {
  expect_equal(
    marks_of(
      c(
        "```{r a, child='child.Rmd'}", "```", "", "```{r b}", "x <- knitr::knit_child('child.Rmd', quiet = TRUE)", "2",
        "```"
      ),
      c("", "```{r}", "1", "```")
    ),
    c(
      "2 of child", "3 of child", "end", "4 of main", "5 of main", "2 of child", "3 of child", "5 of main", "6 of main",
      "end"
    )
  )
})

test_that("code that the document does not have has the line of its chunk, or none", {
  # The second chunk has the code of the first one.
  expect_equal(
    marks_of(c("```{r a}", "1", "2", "```", "```{r b, ref.label='a'}", "```")),
    c("1 of main", "2 of main", "3 of main", "end", "5 of main", "end")
  )
  expect_equal(
    marks_of(c("```{r, code='1'}", "```", "```{r, code='1'}", "```")), c("0 of main", "end", "0 of main", "end")
  )
})

test_that("a chunk from the cache does not run", {
  document <- c("```{r a, cache=TRUE}", "1", "```", "```{r b}", "2", "```")
  expect_equal(marks_of(document), c("1 of main", "2 of main", "end", "4 of main", "5 of main", "end"))
  expect_equal(marks_of(document, times = 2), c("4 of main", "5 of main", "end"))
})

test_that("source references of a chunk get the name of its file", {
  skip_if_not_installed("knitr")
  options <- knitr::opts_hooks$get()
  withr::defer(knitr::opts_hooks$restore(options))
  withr::local_dir(withr::local_tempdir())
  writeLines(c("```{r}", "1", "f <- function() {", "  2", "}", "```"), "a.Rmd")
  named <- list()
  end <- label_chunks(function(...) NULL, function(code, ...) named[[length(named) + 1]] <<- list(code, ...))
  withr::defer(end())
  knitr::knit("a.Rmd", quiet = TRUE)
  expect_length(named, 2)
  expect_identical(named[[2]][-1], list("<text>", paste0(normalizePath("a.Rmd"), "?line=2")))
  expect_identical(named[[2]][[1]][[1]][[2]], quote(f))
})

test_that("labels without marks change no handler", {
  skip_if_not_installed("knitr")
  options <- knitr::opts_hooks$get()
  withr::defer(knitr::opts_hooks$restore(options))
  end <- label_chunks(function(...) NULL, function(...) NULL)
  end()
  expect_null(the$chunk_recorder)
})

test_that("the lines of code are found below the header", {
  text <- c("```{r}", "#| a: 1", "", "x", "", "y", "```", "> ```{r}", "> x", "> ```")
  expect_equal(line_of_code(text, 1L, c("x", "", "y")), 4L)
  expect_equal(line_of_code(text, 1L, c("## x", "", "y")), 4L)
  expect_equal(line_of_code(text, 1L, "y"), NA_integer_)
  expect_equal(line_of_code(text, 8L, "x"), 9L)
  expect_equal(line_of_code(text, 8L, c("x", "y", "z", "z")), NA_integer_)
  expect_equal(line_of_code("```{r}", 1L, "x"), NA_integer_)
})
