# tier: fast
# The parts of a check: names of its processes by their files and code, its items, and sums of their times.

# The step of one process of R with this code.
named <- function(code, ...) {
  processes <- seen_processes(
    a = seen(NA, 0, 9, program = "sh", script = "/usr/lib/R/bin/check"), b = seen_r("a", 0, 9),
    c = seen_r("b", 1, 2, code, ...)
  )
  step <- steps_of_check(processes, FALSE)
  paste0(step$part, ": ", step$name)
}

test_that("steps have the names of files and code", {
  # Codes of R 4.2.
  code <- c(
    "options(warn = 1)\ntools:::.check_vignette_index(\"inst/doc\")\n",
    "tools:::.check_package_ASCII_code('.')",
    "options(warn = 1);tools:::.check_package_code_syntax(\"R\")",
    "library(toy)",
    "suppressMessages(library(toy)); cat('\n---- unloading\n'); detach(\"package:toy\")",
    "options(warn = 1)\ntools:::.load_namespace_rather_quietly(\"toy\")",
    "invisible(suppressMessages(loadNamespace(\"toy\"))); cat('\n---- unloading\n'); unloadNamespace(\"toy\")",
    "options(warn = 1) \n options(expressions=1000)\n tools::checkS3methods(package = \"toy\")\n",
    "options(warn = 1) \n tools:::.check_Rd_xrefs(package = \"toy\")\n",
    "options(warn = 1) \n tools::undoc(package = \"toy\")\n",
    "options(warn = 1) \n suppressPackageStartupMessages(tools:::.check_packages_used_in_examples(\"toy\"))",
    "tools:::.createExdotR(\"toy\", \"/tmp/toy\", silent = TRUE)",
    "tools:::.check_packages_used_in_tests(\"/tmp/toy\", \"tests\")",
    "options(warn = 1)\ntools:::.run_one_vignette('one.Rmd', '/tmp/toy/vignettes', pkgdir='/tmp/toy')",
    "options(warn = 1)\ntools:::buildVignettes(dir = '/tmp/vign_test/toy')",
    "tools:::.buildOneVignette(\"one.Rmd\", \"/tmp/toy\", TRUE, \"one\", \"UTF-8\", \"vign.rds\")",
    "cat(1, 2)",
    "no code {"
  )
  expect_snapshot(writeLines(vapply(code, named, "", USE.NAMES = FALSE)))
  expect_identical(named(NA, input = "/tmp/toy.Rcheck/toy-Ex.R"), "examples: toy-Ex.R")
  expect_identical(named(NA, script = "/tmp/a script.R"), "other: a script.R")
})

test_that("steps have the names of what shells run, and of scripts in tests", {
  processes <- seen_processes(
    a = seen(NA, 0, 9, program = "sh", script = "/usr/lib/R/bin/check"), main = seen_r("a", 0, 9),
    i1 = seen("main", 1, 3, program = "sh"), i2 = seen("i1", 1, 3, program = "sh", script = "/usr/lib/R/bin/INSTALL"),
    i3 = seen_r("i2", 1, 3), i4 = seen_r("i3", 2, 3, "tools:::.test_load_package('toy', '/tmp')"),
    t1 = seen("main", 3, 5, program = "sh"), t2 = seen_r("t1", 3, 5, "tools:::.runPackageTestsR(Log=\"/tmp/log\")"),
    t3 = seen("t2", 3, 4, program = "sh", script = "/usr/lib/R/bin/BATCH"),
    t4 = seen_r("t3", 3, 4, script = "testthat.R"),
    t5 = seen_r("t2", 4, 5, script = "other.R"),
    m1 = seen("main", 5, 6, program = "sh", script = "/usr/lib/R/bin/Rd2pdf"),
    m2 = seen_r("m1", 5, 6), f1 = seen("main", 6, 7, program = "sh"), f2 = seen("f1", 6, 7, program = "tidy")
  )
  steps <- steps_of_check(processes, FALSE)
  expect_identical(steps$key, c("i1", "t1", "m1", "f1"))
  expect_identical(steps$part, c("install", "tests", "help", "other"))
  expect_identical(steps$name, c("R CMD INSTALL", "testthat.R, other.R", "R CMD Rd2pdf", "tidy"))
  expect_identical(
    step_of_processes(steps, processes),
    c(NA, NA, rep("i1", 4), rep("t1", 5), rep("m1", 2), rep("f1", 2))
  )
})

test_that("the times of all parts add up to the whole, although the ends of processes are estimated", {
  processes <- seen_processes(
    build = seen(NA, 0, 2, program = "sh", script = "/usr/lib/R/bin/build"), b1 = seen_r("build", 0, 2),
    b2 = seen_r("b1", 1, 2, "library(toy)"),
    check = seen(NA, 2.1, 9, program = "sh", script = "/usr/lib/R/bin/check"), main = seen_r("check", 2.1, 9),
    # The second one has begun before the first one was known to have ended, the third one lies within the second one.
    x1 = seen_r("main", 3, 4.02, "library(toy)"), x2 = seen_r("main", 4, 6, "tools::undoc()"),
    x3 = seen_r("main", 5, 5.5, "tools::codoc()"), x4 = seen_r("main", 8, 8.5, NA, input = "toy-Ex.R")
  )
  steps <- steps_of_check(processes, TRUE)
  memory <- c(build = NA, b1 = 10, b2 = 20, check = NA, main = 5, x1 = 7, x2 = NA, x3 = NA, x4 = 9)
  parts <- parts_of_steps(steps, processes, memory, 10)
  expect_identical(parts$part, c("build", "load", "help", "examples", "between"))
  expect_equal(parts$time, c(2, 1.02, 1.98, 0.5, 4.5))
  expect_equal(sum(parts$time), 10)
  expect_equal(parts$share, parts$time / 10)
  expect_identical(parts$processes, c(2L, 1L, 2L, 1L, 1L))
  expect_identical(parts$memory, c(20, 7, NA, 9, 5))
})

test_that("a check without processes is all between", {
  processes <- seen_processes()
  steps <- steps_of_check(processes, FALSE)
  parts <- parts_of_steps(steps, processes, numeric(), 3)
  expect_identical(parts$part, "between")
  expect_identical(parts$time, 3)
})

test_that("command lines say what R and shells run", {
  expect_identical(script_of_r(c("/usr/lib/R/bin/exec/R", "--no-echo", "-f", "a b.R", "--args", "-f", "c.R")), "a b.R")
  expect_identical(script_of_r(c("/usr/lib/R/bin/exec/R", "--file=a.R")), "a.R")
  expect_identical(script_of_r(c("/usr/lib/R/bin/exec/R", "-f", "-", "--args", "--file=a.R")), NA_character_)
  expect_identical(script_of_r(c("/usr/lib/R/bin/exec/R", "-f")), NA_character_)
  expect_identical(script_of_shell(c("/bin/sh", "/usr/lib/R/bin/INSTALL", "toy")), "/usr/lib/R/bin/INSTALL")
  expect_identical(script_of_shell(c("/bin/sh", "/usr/lib/R/bin/R", "CMD", "INSTALL")), NA_character_)
  expect_identical(script_of_shell(c("sh", "-c", "R CMD INSTALL")), NA_character_)
  expect_identical(script_of_shell(c("/usr/bin/tidy", "a.html")), NA_character_)
})

test_that("examples begin with their titles, also if the output is read in pieces", {
  file <- withr::local_tempfile()
  state <- NULL
  write <- function(text, now) {
    cat(text, file = file, append = TRUE)
    state <<- with_new_titles(state, file, now)
  }
  write("> ### * </HEADER>\n> f()\n> ### * one\n> f()\n> ### ** Examples\nx ### * no\n> ### * tw", 1)
  expect_identical(state$names, c("</HEADER>", "one"))
  write("", 2)
  write("o\n", 3)
  write("> ### * caf\xe9\n> ### * <FOOTER>\n", 4)
  expect_identical(state$names, c("</HEADER>", "one", "two", "caf<e9>", "<FOOTER>"))
  expect_identical(state$times, c(1, 1, 3, 4, 4))
  titles <- titles_with_times(list(a = state))
  expect_identical(titles$key, rep("a", 5))
  # A file that is gone, or shorter, has nothing new.
  unlink(file)
  expect_identical(with_new_titles(state, file, 5), state)
  expect_identical(nrow(titles_with_times(list())), 0L)

  of_sample <- c("a", "a", "b", "a", "a", "a")
  found <- example_of_samples(titles, of_sample, c(0.5, 1, 2, 2, 3.5, 5))
  expect_identical(found, c(NA, "one", NA, "one", "two", NA))

  processes <- seen_processes(a = seen_r(NA, 0, 6, NA, input = "toy-Ex.R"))
  items <- examples_of_check(titles, processes, no_recording(), character())
  expect_identical(items$name, c("one", "two", "caf<e9>"))
  expect_equal(items$time, c(2, 1, 0))
})

test_that("processes that wait for others of the check are left out", {
  processes <- seen_processes(
    a = seen(NA, 0, 9, program = "sh"), main = seen_r("a", 0, 9), x = seen_r("main", 2, 4, "tools::undoc()"),
    y = seen_r("main", 6, 8, NA, script = "a.R"), z = seen_r("y", 6, 8, NA, script = "b.R")
  )
  steps <- steps_of_check(processes, FALSE)
  # The code of a user may compute while its children do.
  of_sample <- c("main", "main", "main", "main", "x", "y", NA)
  times <- c(1, 3, 5, 7, 3, 7, 7)
  expect_identical(waits_for_step(of_sample, times, steps, processes), c(FALSE, TRUE, FALSE, TRUE, FALSE, FALSE, FALSE))
})

test_that("limits of CRAN are exceeded by more than 5 seconds, and ten minutes", {
  items <- tibble::tibble(kind = c("example", "example", "test"), name = c("a", "b", "c"), time = c(5, 5.1, 9))
  expect_identical(exceeded_limits(items, 600), tibble::tibble(what = "example", name = "b", time = 5.1, limit = 5))
  expect_identical(exceeded_limits(items, 601)$what, c("check", "example"))
  expect_identical(exceeded_limits(items, 601)$limit, c(600, 5))
})

test_that("the hottest line of the package is that of most time", {
  items <- tibble::tibble(kind = "test", name = c("a", "b", "c"), time = c(1, 2, 3), samples = list(1:4, 5L, integer()))
  places <- list(name = c("f", "f", "g", NA, NA), file = c("f.R", "f.R", "g.R", NA, NA), line = c(1L, 1L, 2L, NA, NA))
  found <- with_hottest_lines(items, places, c(1, 1, 1.5, 9, 9))
  expect_identical(found$name, c("c", "b", "a"))
  expect_identical(found$`function`, c(NA, NA, "f"))
  expect_identical(found$line, c(NA, NA, 1L))
  expect_identical(found$line_time, c(NA, NA, 2))
})
