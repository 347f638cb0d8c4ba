# tier: gate
# Comparing two versions of a package from git: the whole way by bytes, which are exact.

skip_without_bytes <- function() {
  skip_on_cran()
  skip_on_os("windows")
  skip_if_not(capabilities("profmem"), "this R cannot record allocations")
}

test_that("a commit that allocates more is found by the shell command", {
  skip_without_bytes()
  folder <- package_repository("  numeric(n)", "  c(numeric(n), numeric(n))")
  compare <- function(...) {
    run_program("compare", "--package", "--script", "run.R", "--measure", "bytes", ..., via = in_folder_of(folder))
  }
  in_folder_of <- function(folder) {
    path <- withr::local_tempfile(.local_envir = parent.frame(2))
    writeLines(c("#!/bin/sh", paste("cd", shQuote(folder)), paste("exec", shQuote(program()), "\"$@\"")), path)
    Sys.chmod(path, "755")
    path
  }
  before <- git(folder, "status", "--porcelain")
  found <- compare("--fail-if", "alloc > 0", "-o", "ignored", "HEAD~1", "HEAD")
  expect_identical(found$status, 3L)
  expect_match(found$out, "^alloc > 0: exceeded", all = FALSE)
  expect_match(found$out, "^ *work .* more", all = FALSE)
  expect_identical(git(folder, "status", "--porcelain"), before)
  # The working tree: equal to the last commit, also with a file that git ignores and one that it does not know yet.
  writeLines("stop('never evaluated')", file.path(folder, "notes.txt"))
  same <- compare("--fail-if", "alloc > 0", "HEAD")
  expect_identical(same$status, 0L)
  expect_match(same$out, "alloc > 0: within", fixed = TRUE, all = FALSE)
})

test_that("tests of the base run with both versions", {
  skip_without_bytes()
  folder <- package_repository("  numeric(n)", "  stop('broken')", tests = c(
    "test_that('work', expect_length(work(1000), 1000))", "test_that('internal', expect_true(is.function(work)))",
    "writeLines('a', 'written')"
  ))
  said <- character()
  withCallingHandlers(
    runs <- benchmark_package("HEAD~1", "HEAD", tests = TRUE, path = folder, measure = "bytes"),
    profile_message_runs = function(message) {
      said <<- c(said, conditionMessage(message))
      rlang::cnd_muffle(message)
    }
  )
  expect_named(runs, c("base", "new"))
  expect_identical(vapply(runs, function(x) nrow(x$sources), 0L), c(base = 3L, new = 3L))
  expect_match(said, "Failing tests: 0 of base, 1 of new.", fixed = TRUE, all = FALSE)
  expect_true("work" %in% summary(runs$base)$by_function$name)
  expect_match(runs$new$.comments$comment[[1]], "^smallpkg, HEAD [(][0-9a-f]{7}[)]$")
  # The tests of the repository are where they were.
  expect_identical(list.files(file.path(folder, "tests", "testthat")), "test-work.R")
})

test_that("time is recorded with a number of runs that the pilot fixes", {
  skip_without_bytes()
  folder <- package_repository("  numeric(n)", "  numeric(n)")
  # Until R's profiler has written samples.
  writeLines(c(
    "library(smallpkg)", "end <- proc.time()[[1]] + 0.3", "while (proc.time()[[1]] < end) work(1e5)"
  ), file.path(folder, "run.R"))
  runs <- suppressMessages(benchmark_package(
    "HEAD~1", path = folder, script = file.path(folder, "run.R"), seconds = 0.1
  ), classes = "profile_message_runs")
  # There is no time for more than three.
  expect_identical(vapply(runs, function(x) nrow(x$sources), 0L), c(base = 3L, new = 3L))
  expect_true("work" %in% summary(runs$new)$by_function$name)
})

test_that("paths of both versions have the same length", {
  skip_without_bytes()
  folder <- package_repository("  numeric(n)", "  numeric(n)")
  versions <- suppressMessages(install_versions("HEAD~1", NULL, folder, FALSE, NULL), classes = "profile_message_runs")
  withr::defer(unlink(versions$folder, recursive = TRUE))
  expect_length(unique(nchar(versions$libraries)), 1)
  expect_true(all(file.exists(file.path(versions$libraries, "smallpkg"))))
  seen <- function(side) {
    code <- quote({
      file <- Sys.getenv("SEEN")
      cat(.libPaths()[[1]], Sys.getenv("TMPDIR"), Sys.getenv("R_LIBS"), dirname(tempdir()), file = file, sep = "\n")
      numeric(100)
    })
    file <- withr::local_tempfile()
    withr::local_envvar(SEEN = file)
    x <- run_of_version(versions, side, code, "Rprofmem", 0.01, 1, NULL)
    expect_gt(nrow(x$samples), 0)
    readLines(file)
  }
  of <- list(seen("base"), seen("new"))
  expect_identical(nchar(of[[1]]), nchar(of[[2]]))
  expect_identical(of[[1]][[1]], versions$libraries[["base"]])
  expect_identical(of[[2]][[1]], versions$libraries[["new"]])
})

test_that("what cannot be compared is an error with the reason", {
  skip_without_bytes()
  folder <- package_repository("  numeric(n)", "  numeric(")
  script <- file.path(folder, "run.R")
  here <- withr::local_tempdir()
  writeLines("1 +", file.path(here, "broken.R"))
  quietly <- function(code) suppressMessages(code, classes = "profile_message_runs")
  expect_error(
    quietly(benchmark_package("HEAD~1", "HEAD", script = script, path = folder)), "HEAD (", fixed = TRUE,
    class = "profile_error_process"
  )
  expect_error(benchmark_package("none", script = script, path = folder), "not a commit", class = "profile_error_argument")
  expect_error(benchmark_package("--all", script = script, path = folder), "not a commit", class = "profile_error_argument")
  expect_error(benchmark_package("main", script = script, path = here), "DESCRIPTION", class = "profile_error_argument")
  expect_error(benchmark_package("main", path = folder), "script", class = "profile_error_argument")
  expect_error(
    benchmark_package("main", path = folder, script = file.path(here, "broken.R")), "is not R code",
    class = "profile_error_argument"
  )
  expect_error(
    quietly(benchmark_package("HEAD~1", "HEAD~1", tests = TRUE, path = folder)), "has no tests",
    class = "profile_error_argument"
  )
  # A package that is not in a repository.
  file.copy(file.path(folder, "DESCRIPTION"), here)
  expect_error(benchmark_package("main", script = script, path = here), class = "profile_error")
  # An error of the script.
  writeLines("stop('the script is wrong')", file.path(here, "wrong.R"))
  expect_error(
    quietly(benchmark_package("HEAD~1", "HEAD~1", script = file.path(here, "wrong.R"), path = folder, measure = "bytes")),
    "the script is wrong"
  )
})
