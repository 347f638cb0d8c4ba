# tier: gate
# Labels of knitr's chunks, testthat's tests, targets, routes and tasks. Tests generate
# ticks, so that each sample is known.

busy <- compiler::cmpfun(function(n = 1L) tick(n))

given_profile <- function(expr) {
  skip_without_ticks()
  record_profile({ only_given_ticks(); expr }, interval = 0.9)
}

# The samples of each value of a label.
samples_of <- function(x, key) {
  figures <- summary(x, by = key)
  rlang::set_names(figures$samples, figures[[key]])[order(figures[[key]])]
}

# ---- Chunks --------------------------------------------------------------------------

local_label_knitr <- function(envir = parent.frame()) {
  skip_if_not_installed("knitr")
  # Before the working directory is another one.
  skip_without_ticks()
  end <- label_work("knitr")
  withr::defer(end(), envir)
}

# A profile of knitting a document, whose code may call `busy()`.
knitted_profile <- function(...) {
  skip_without_ticks()
  withr::local_dir(withr::local_tempdir())
  code <- c(...)
  given_profile(knitr::knit(text = code, quiet = TRUE, envir = rlang::env(busy = busy)))
}

chunk <- function(header, ...) c("", paste0("```{", header, "}"), ..., "```", "")

test_that("samples get the name of the chunk that runs", {
  local_label_knitr()
  x <- knitted_profile(
    chunk("r first", "busy(3)", "work <- function() busy(2)"),
    chunk("r", "work()"),
    "Inline code has no chunk: `r busy(4)`.",
    chunk("r none, eval = FALSE", "busy(5)"),
    chunk("r part, eval = 1", "busy(1)", "busy(6)"),
    chunk("r failing, error = TRUE", "busy(2)", "stop('no')", "busy(7)"),
    chunk("cat other", "busy(8)"),
    chunk("r last", "work()", "work()")
  )
  expect_equal(
    samples_of(x, "knitr.chunk"),
    # An error does not end a chunk with `error = TRUE`.
    rlang::set_names(c(9L, 3L, 4L, 1L, 2L, 4L), c("failing", "first", "last", "part", "unnamed-chunk-1", NA))
  )
  expect_false(any(grepl("profile_", x$functions$name)))
})

test_that("labels end with a chunk that ends the document", {
  local_label_knitr()
  x <- given_profile({
    envir <- rlang::env(busy = busy)
    code <- chunk("r stops, error = FALSE", "busy(2)", "stop('no')")
    try(suppressMessages(knitr::knit(text = code, quiet = TRUE, envir = envir)), silent = TRUE)
    busy(3)
  })
  expect_equal(samples_of(x, "knitr.chunk"), rlang::set_names(2:3, c("stops", NA)))
})

test_that("child documents and documents in chunks have their own chunks", {
  local_label_knitr()
  withr::local_dir(withr::local_tempdir())
  writeLines(chunk("r of-child", "busy(2)"), "child.Rmd")
  code <- c(
    chunk("r parent, child = 'child.Rmd'"),
    chunk("r nesting", "busy(1)", "out <- knitr::knit(text = nested, quiet = TRUE, envir = environment())", "busy(3)")
  )
  envir <- rlang::env(busy = busy, nested = c(chunk("r nested", "busy(4)"), "`r busy(5)`"))
  x <- given_profile(knitr::knit(text = code, quiet = TRUE, envir = envir))
  # Inline code of the nested document runs in the outer chunk.
  expect_equal(samples_of(x, "knitr.chunk"), c(nested = 4L, nesting = 9L, `of-child` = 2L))
})

test_that("a chunk from the cache takes no time", {
  local_label_knitr()
  withr::local_dir(withr::local_tempdir())
  code <- c(chunk("r cached, cache = TRUE", "busy(2)"), chunk("r after", "busy(1)"))
  knit <- function() knitr::knit(text = code, quiet = TRUE, envir = rlang::env(busy = busy))
  expect_equal(samples_of(given_profile(knit()), "knitr.chunk"), c(after = 1L, cached = 2L))
  expect_equal(samples_of(given_profile(knit()), "knitr.chunk"), c(after = 1L))
})

# The hooks that `label_work("knitr")` changes are as before when a test ends.
local_knitr_hooks <- function(envir = parent.frame()) {
  skip_if_not_installed("knitr")
  options <- knitr::opts_hooks$get()
  hooks <- knitr::knit_hooks$get()
  withr::defer({
    knitr::opts_hooks$restore(options)
    knitr::knit_hooks$restore(hooks)
  }, envir)
}

test_that("a document can label its own chunks, after the first one", {
  local_knitr_hooks()
  x <- knitted_profile(chunk("r setup", "profile::label_work('knitr')", "busy(2)"), chunk("r work", "busy(3)"))
  expect_equal(samples_of(x, "knitr.chunk"), rlang::set_names(3:2, c("work", NA)))
})

test_that("a document is rendered as without labels", {
  local_knitr_hooks()
  withr::local_dir(withr::local_tempdir())
  writeLines(c(chunk("r of-child", "1:3"), "`r 1 + 1`"), "child.Rmd")
  document <- c(
    "Text", chunk("r first", "x <- 1", "# A comment", "x + 1", "message('m')", "warning('w')"),
    chunk("r", "f <- function() {", "  2", "}", "f(); f()"), chunk("r hidden, echo = FALSE", "x"),
    chunk("r none, eval = FALSE", "x"), chunk("r empty"), chunk("r part, eval = 1", "x", "y"),
    chunk("r cached, cache = TRUE", "x"), chunk("cat other", "text"), chunk("r parent, child = 'child.Rmd'"),
    chunk("r failing, error = TRUE", "stop('no')", "x"), "`r x`", chunk("r last, eval = FALSE", "x")
  )
  knit <- function() knitr::knit(text = document, quiet = TRUE, envir = new.env())
  plain <- knit()
  unlink("cache", recursive = TRUE)
  label_work("knitr")
  expect_identical(knit(), plain)
  # With the chunk from the cache.
  expect_identical(knit(), plain)
  expect_match(plain, "``` r\n*x <- 1|```r\nx <- 1")
  # Also with hooks of the user, which knitr leaves as they are.
  before <- knitr::knit_hooks$get("evaluate")
  knitr::render_markdown()
  knitr::knit_hooks$set(source = function(x, options) "SOURCE")
  own <- knit()
  expect_match(own, "SOURCE")
  label_work("knitr")()
  expect_identical(knit(), own)
  expect_identical(knitr::knit_hooks$get("evaluate"), before)
})

test_that("a page of rmarkdown is the same as without labels", {
  skip_if_not_installed("rmarkdown")
  skip_if_not(rmarkdown::pandoc_available("1.12.3"), "there is no pandoc")
  local_knitr_hooks()
  withr::local_dir(withr::local_tempdir())
  writeLines(c(
    "---", "title: A", "output: html_document", "---", chunk("r first", "x <- 1", "x + 1"), "`r x`", chunk("r", "x")
  ), "a.Rmd")
  render <- function() readLines(rmarkdown::render("a.Rmd", quiet = TRUE, envir = new.env()))
  plain <- render()
  label_work("knitr")
  expect_identical(render(), plain)
})

test_that("hooks that were set before are called, and restored", {
  local_knitr_hooks()
  calls <- character()
  former <- knitr::knit_hooks$get("evaluate")
  knitr::knit_hooks$set(evaluate = evaluate <- function(...) {
    calls <<- c(calls, "evaluate")
    former(...)
  })
  knitr::opts_hooks$set(engine = engine <- function(options) {
    calls <<- c(calls, options$label)
    options$code <- "2 + 2"
    options
  }, label = function(options) options)
  others <- names(knitr::opts_hooks$get())
  end <- expect_invisible(label_work("knitr"))
  labelled <- knitr::opts_hooks$get("engine")
  again <- label_work("knitr")
  expect_identical(knitr::opts_hooks$get("engine"), labelled)
  text <- knitr::knit(text = c(chunk("r a", "1 + 1"), chunk("r b, eval = FALSE", "1")), quiet = TRUE)
  expect_match(text, "## [1] 4", fixed = TRUE)
  expect_equal(calls, c("a", "evaluate", "b"))
  again()
  expect_identical(knitr::opts_hooks$get("engine"), engine)
  expect_identical(knitr::knit_hooks$get("evaluate"), evaluate)
  expect_setequal(names(knitr::opts_hooks$get()), others)
  # Another hook is left alone.
  end()
  expect_identical(knitr::opts_hooks$get("engine"), engine)
  # Without a former hook, there is none again.
  knitr::opts_hooks$restore()
  label_work("knitr")()
  expect_length(knitr::opts_hooks$get(), 0)
})

# ---- Tests ---------------------------------------------------------------------------

# Runs files of tests, whose code may call `busy()`: list(profile, results).
tested_profile <- function(files, envir = parent.frame()) {
  folder <- withr::local_tempdir(.local_envir = envir)
  for (name in names(files)) writeLines(files[[name]], file.path(folder, name))
  env <- rlang::env(globalenv(), busy = busy)
  results <- NULL
  skip_without_ticks()
  x <- record_profile(
    {
      only_given_ticks()
      results <- testthat::test_dir(folder, reporter = "silent", env = env, stop_on_failure = FALSE)
    },
    interval = 0.9
  )
  list(profile = x, results = as.data.frame(results))
}

test_that("samples get the file and the description of the test", {
  found <- tested_profile(list(
    "helper-a.R" = "busy(9)",
    "test-a.R" = c(
      "busy(1)",
      "test_that('a passes', {",
      "  busy(2)",
      "  expect_true(TRUE)",
      "})",
      "test_that('a fails', {",
      "  busy(3)",
      "  stop('no')",
      "})",
      "busy(1)"
    ),
    "test-b.R" = c(
      "work <- function() busy(4)",
      "test_that('a passes', {",
      "  work()",
      "  expect_true(TRUE)",
      "})",
      "test_that('b skips', {",
      "  busy(5)",
      "  skip('now')",
      "  busy(6)",
      "})"
    )
  ))
  x <- found$profile
  expect_equal(samples_of(x, "testthat.file"), rlang::set_names(c(7L, 9L, 9L), c("test-a.R", "test-b.R", NA)))
  expect_equal(samples_of(x, "testthat.test"), rlang::set_names(
    c(3L, 6L, 5L, 11L), c("a fails", "a passes", "b skips", NA)
  ))
  one <- filter_profile(x, labels = c(testthat.file = "test-b.R", testthat.test = "a passes"))
  expect_equal(nrow(one$samples), 4)
  expect_false(any(grepl("profile_", x$functions$name)))
  expect_no_error(validate_profile(x))
})

test_that("descriptions are those that testthat reports, of any length", {
  long <- strrep("a long description ", 40)
  found <- tested_profile(list("test-a.R" = c(
    "describe('sorting', {",
    "  it('is fast', {",
    "    busy(2)",
    "    expect_true(TRUE)",
    "  })",
    "  it(",
    "    '\"is\" 100% \u00fcber=&; right',",
    "    {",
    "    busy(3)",
    "    expect_true(TRUE)",
    "  })",
    "})",
    paste0("x <- test_that(code = {"),
    "  busy(4)",
    "  expect_true(TRUE)",
    paste0("}, desc = '", long, "')")
  )))
  samples <- samples_of(found$profile, "testthat.test")
  reported <- found$results$test
  # A call of describe() may be reported as well.
  expect_setequal(names(samples), grep("^sorting$", reported, value = TRUE, invert = TRUE))
  expect_setequal(samples, 2:4)
  expect_equal(samples[[grep("is fast", reported, value = TRUE)]], 2)
  expect_equal(samples[[grep("100%", reported, value = TRUE)]], 3)
  expect_equal(samples[[long]], 4)
})

test_that("tests without a description that stands in the file have its code or their line", {
  files <- list("test-a.R" = c(
    "cases <- function(i) test_that(paste('case', i), {",
    "  busy(1)",
    "  expect_true(TRUE)",
    "})",
    "for (i in 1:2) {",
    "  cases(i)",
    "}",
    "test_that('one', busy(3)); test_that('two', busy(4))",
    "f <- function(desc) test_that(desc, { busy(5); expect_true(TRUE) })",
    "f('three')"
  ))
  expect_equal(samples_of(tested_profile(files)$profile, "testthat.test"), rlang::set_names(
    c(5L, 2L, 7L), c("desc", "paste(\"case\", i)", "test-a.R:8")
  ))
  # A folder that the code does not name.
  folder <- withr::local_tempdir()
  writeLines(files[[1]], file.path(folder, "test-a.R"))
  env <- rlang::env(globalenv(), busy = busy)
  run <- function() testthat::test_dir(folder, reporter = "silent", env = env, stop_on_failure = FALSE)
  expect_equal(samples_of(given_profile(run()), "testthat.test"), rlang::set_names(
    c(2L, 7L, 5L), paste0("test-a.R:", c(1, 8, 9))
  ))
  # It is found in the working directory, and in the folders of a package.
  withr::local_dir(folder)
  expect_true("desc" %in% names(samples_of(given_profile(run()), "testthat.test")))
  dir.create("tests/testthat", recursive = TRUE)
  file.rename("test-a.R", "tests/testthat/test-a.R")
  folder <- "tests/testthat"
  expect_true("desc" %in% names(samples_of(given_profile(run()), "testthat.test")))
})

test_that("any reporter is used, testthat remains as it is, and a label of the user wins", {
  skip_without_ticks()
  former <- as.list(asNamespace("testthat"), all.names = TRUE)
  folder <- withr::local_tempdir()
  writeLines(c(
    "test_that('a', {", "  busy(1)", "  expect_true(TRUE)", "})",
    "test_that('b', profile::with_labels(c(testthat.test = 'mine'), busy(2)))"
  ), file.path(folder, "test-a.R"))
  env <- rlang::env(globalenv(), busy = busy)
  for (reporter in c("summary", "check")) {
    utils::capture.output(x <- record_profile(
      {
        only_given_ticks()
        testthat::test_dir(folder, reporter = reporter, env = env, stop_on_failure = FALSE)
      },
      interval = 0.9
    ))
    expect_equal(samples_of(x, "testthat.test"), c(a = 1L, mine = 2L))
  }
  now <- as.list(asNamespace("testthat"), all.names = TRUE)
  functions <- Filter(function(name) is.function(former[[name]]), names(former))
  expect_identical(now[functions], former[functions])
  expect_error(label_work("testthat"), "must be \"knitr\"", class = "profile_error_argument")
})

test_that("descriptions are found in any code", {
  expect_identical(nrow(calls_with_descriptions(NA)), 0L)
  expect_identical(nrow(calls_with_descriptions("f(")), 0L)
  text <- c(
    "x <- 1", "if (TRUE) {", "  testthat::test_that('a b', {", "    it('c')", "  })", "}", "test_that()", "test_that",
    "lapply(1:2, function(i) {", "  describe(description = \"d\", code = x[1, ])", "})", "'test_that'(\"quoted\", {})"
  )
  found <- calls_with_descriptions(paste(text, collapse = "\n"))
  expect_identical(found$name, c("test_that", "it", "describe", "test_that"))
  expect_identical(found$line, c(3L, 4L, 10L, 12L))
  expect_identical(found$description, c("a b", "c", "d", "quoted"))
})

test_that("a package that cannot be loaded is an error", {
  expect_error(
    check_package("no.such.package", "Labels of chunks need", rlang::current_env()),
    "Labels of chunks need the package no.such.package, which cannot be loaded.", class = "profile_error_unsupported"
  )
})

# ---- Targets -------------------------------------------------------------------------

test_that("samples get the name of the target", {
  skip_if_not_installed("targets")
  skip_without_ticks()
  skip_without_native()
  namespace <- asNamespace("targets")
  withr::local_dir(withr::local_tempdir())
  code <- c(
    "list(",
    "  targets::tar_target(one, { busy(3); 1 }),",
    "  targets::tar_target(two, { busy(2 + one); stop('no') }, error = 'continue'),",
    "  targets::tar_target(three, { busy(4); 1:2 }),",
    "  targets::tar_target(four, busy(three), pattern = map(three))",
    ")"
  )
  writeLines(code, "_targets.R")
  envir <- rlang::env(globalenv(), busy = busy)
  x <- given_profile({
    suppressWarnings(suppressMessages(
      namespace$tar_make(callr_function = NULL, envir = envir, reporter = "silent")
    ))
    busy(1)
  })
  found <- samples_of(x, "targets.target")
  expect_equal(found[c("one", "two", "three")], c(one = 3L, two = 3L, three = 4L))
  # Branches.
  expect_setequal(found[startsWith(names(found), "four_") %in% TRUE], 1:2)
  expect_equal(sum(found[is.na(names(found))]), 1)
})

# ---- Routes and tasks ----------------------------------------------------------------

test_that("samples get the route of the request", {
  skip_if_not_installed("plumber")
  api <- plumber::pr_filter(plumber::pr(), "log", function(req) {
    busy(1)
    plumber::forward()
  })
  api <- plumber::pr_get(api, "/users/<id:int>", function(id) busy(id))
  api <- plumber::pr_mount(api, "/v1", plumber::pr_post(plumber::pr(), "/users", function() busy(6)))
  label_plumber(api)
  ask <- function(method, path) {
    api$call(rlang::env(
      REQUEST_METHOD = method, PATH_INFO = path, QUERY_STRING = "",
      rook.input = list(read_lines = function() "", read = function() raw())
    ))
  }
  x <- given_profile({
    ask("GET", "/users/2")
    ask("POST", "/v1/users")
    ask("GET", "/users/3")
    busy(4)
  })
  expect_equal(
    samples_of(x, "http.route"), rlang::set_names(c(5L, 6L, 7L), c("/users/<id:int>", "/v1/users", NA))
  )
  expect_equal(samples_of(x, "http.request.method"), rlang::set_names(c(5L, 6L, 7L), c("GET", "POST", NA)))
})

test_that("samples get the label of the task", {
  skip_if_not_installed("future")
  withr::defer(future::plan(former))
  former <- future::plan("sequential")
  x <- given_profile({
    tasks <- lapply(2:3, function(n) {
      future::future(with_labels(c(task = paste0("fit", n)), busy(n)), globals = list(busy = busy, n = n))
    })
    lapply(tasks, future::value)
    busy(1)
  })
  expect_equal(samples_of(x, "task"), rlang::set_names(c(2L, 3L, 1L), c("fit2", "fit3", NA)))
  expect_identical(as.list(describe_profile(x))$labels$task, summary(x, by = "task"))
})

# ---- Digest --------------------------------------------------------------------------

test_that("the digest has the slowest chunks, tests and spans", {
  skip_without_ticks()
  x <- given_profile({
    with_labels(c(knitr.chunk = "small"), busy(1))
    with_labels(c(knitr.chunk = "large"), busy(60))
    with_labels(c(testthat.file = "test-a.R", testthat.test = "it works"), busy(30))
    # The name of the active span, which recorders add.
    with_labels(c(span.name = "GET /a"), busy(9))
  })
  description <- describe_profile(x, n = 2)
  tables <- as.list(description)$labels
  expect_named(tables, c("testthat.file", "testthat.test", "knitr.chunk", "span.name"))
  expect_identical(tables$span.name, summary(x, by = "span.name"))
  expect_identical(tables$knitr.chunk, summary(x, by = "knitr.chunk"))
  lines <- format(description)
  from <- grep("testthat.file$", lines)
  expect_equal(lines[seq(from, from + 10)], c(
    "  total%  total  testthat.file",
    "    70.0     70  (none)",
    "    30.0     30  test-a.R",
    "",
    "  total%  total  testthat.test",
    "    70.0     70  (none)",
    "    30.0     30  it works",
    "",
    "  total%  total  knitr.chunk",
    "    60.0     60  large",
    "    39.0     39  (none)"
  ))
  expect_true("  summary(x, by = \"testthat.test\")" %in% lines)
})
