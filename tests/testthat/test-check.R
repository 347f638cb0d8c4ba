# tier: gate
# `profile_check()` and `profile check`: a recorded check, and live ones. Processes of the live ones wait
# until they were seen, so that nothing depends on how long they take.

# A check of a package with the function `slow()`, which computes for a given time: 2 examples, 2 tests of testthat, and
# a vignette. What `record_check()` has returned, with samples every 0.1 seconds.
recorded_check <- function() {
  ran <- readRDS(test_path("data", "check", "ran.rds"))
  folder <- withr::local_tempdir(.local_envir = parent.frame())
  tests <- file.path(folder, "tests", "testthat")
  dir.create(tests, recursive = TRUE)
  writeLines(c(
    "test_that(\"slow works\", {", "  slow(1)", "  expect_true(TRUE)", "})",
    "test_that(\"slow works again\", {", "  slow(0.5)", "  expect_true(TRUE)", "})"
  ), file.path(tests, "test-slow.R"))
  ran$folder <- folder
  ran
}

test_that("a recorded check has parts, items, lines and labels", {
  x <- check_result(recorded_check(), NULL)
  expect_equal(sum(x$parts$time), x$time, tolerance = 1e-12)
  expect_true(all(x$parts$time >= 0))
  expect_identical(
    x$parts$part, c("install", "load", "code", "help", "examples", "tests", "vignettes", "other", "between")
  )
  # Steps follow one another.
  expect_true(all(utils::tail(x$steps$began, -1) >= utils::head(x$steps$began + x$steps$time, -1) - 1e-6))
  expect_snapshot({
    print(x, width = 90)
    print(x, width = 40, n = 3)
    as.data.frame(x$items)
  })
  expect_s3_class(validate_profile(x$profile), "profile_data")
  labels <- x$profile$.labels
  # Every sample belongs to a part.
  expect_setequal(labels$sample_id[labels$key == "check.part"], x$profile$samples$sample_id)
  tests <- filter_profile(x$profile, labels = c(check.part = "tests"))
  expect_true("slow" %in% tests$functions$name)
  expect_setequal(stats::na.omit(labels$str[labels$key == "check.example"]), c("slow", "slow2"))
  # Processes have the names of steps.
  roles <- source_attribute(x$profile, "profile.process.role")
  expect_true(all(c("toy-Ex.R", "testthat.R", "tools::undoc()") %in% roles))
  page <- withr::local_tempfile(fileext = ".html")
  write_page(x$profile, page)
  expect_true(is_page_file(page))
})

test_that("a check is compared with another one, also from a file", {
  base <- check_result(recorded_check(), NULL)
  new <- base
  new$parts$time[new$parts$part == "install"] <- 100
  new$items <- new$items[-1, ]
  new$items$name[[1]] <- "a new test"
  file <- withr::local_tempfile(fileext = ".rds")
  saveRDS(base, file)
  x <- with_base(new, base_of_check(file, NULL))
  expect_identical(x$parts$base, base$parts$time)
  expect_identical(x$items$base, c(NA, base$items$time[-(1:2)]))
  expect_snapshot(print(x, width = 90))
})

test_that("a check without a recording still has parts", {
  ran <- recorded_check()
  expected <- check_result(ran, NULL)$parts
  ran$recorded <- rlang::error_cnd("profile_error_process", message = "The helper was killed.")
  expect_warning(x <- check_result(ran, NULL), "The helper was killed", class = "profile_warning_incomplete")
  expect_null(x$profile)
  columns <- c("part", "processes", "time", "share")
  expect_identical(x$parts[columns], expected[columns])
  expect_true(all(c("slow", "slow2", "one.Rmd") %in% x$items$name))
  expect_output(print(x), "There is no profile.")
})

test_that("a failure to look at processes is reported, and does not end the check", {
  watch <- start_watch()
  local({
    environment(watch$look)$look <- function() stop("No file.")
  })
  expect_true(watch$look(NA))
  ran <- recorded_check()
  ran$failure <- watch$failure()
  expect_warning(check_result(ran, NULL), "No file.", class = "profile_warning_incomplete")
})

test_that("a check that is interrupted has what ran until then", {
  ran <- recorded_check()
  at <- ran$titles$time[[2]] + 0.05
  processes <- ran$processes[ran$processes$began < at, ]
  processes$ended <- pmin(processes$ended, at)
  ran[c("status", "processes", "titles", "ended")] <- list(130L, processes, ran$titles[1:2, ], at)
  x <- check_result(ran, NULL)
  expect_identical(x$status, 130L)
  expect_equal(sum(x$parts$time), x$time, tolerance = 1e-12)
  expect_false("vignettes" %in% x$steps$part[x$steps$name == "one.Rmd"])
  expect_equal(x$items$time[x$items$name == "slow2"], 0.05, tolerance = 1e-3)
  expect_match(format(x)[[1]], "exit status 130")
})

test_that("arguments are checked", {
  folder <- withr::local_tempdir()
  withr::local_dir(folder)
  file.create("toy.zip")
  file.create("toy_0.1.tar.gz")
  saveRDS(1, "one.rds")
  expect_snapshot(writeLines(errors_of({
    profile_check("nowhere")
    profile_check(".")
    profile_check("toy.zip")
    profile_check("toy_0.1.tar.gz", args = 1)
    profile_check("toy_0.1.tar.gz", base = "one.rds")
    profile_check("toy_0.1.tar.gz", base = "none.rds")
    profile_check("toy_0.1.tar.gz", lines = NA)
    profile_check("toy_0.1.tar.gz", interval = 1)
    profile_check("toy_0.1.tar.gz", c("--as-cran"))
  })))
  expect_identical(package_of_tarball("a/my.pkg_1.0-2.tar.gz"), "my.pkg 1.0-2")
  expect_match(folder_of_check("toy 0.1", "--output=/tmp"), "/tmp/toy.Rcheck$")
  expect_match(folder_of_check("toy 0.1", c("-o", "/tmp")), "/tmp/toy.Rcheck$")
})

test_that("a folder that cannot be built has the exit status of R CMD build", {
  skip_without_children_of_check()
  folder <- withr::local_tempdir()
  toy <- write_toy(folder, vignette = FALSE)
  writeLines(c("Package: toy", "Version: one"), file.path(toy, "DESCRIPTION"))
  withr::local_envvar(R_TESTS = NA)
  withr::local_dir(folder)
  x <- profile_check(toy, quiet = TRUE)
  expect_false(x$status == 0)
  expect_identical(x$parts$part, c("build", "between"))
  expect_identical(x$package, "toy one")
})

test_that("only pages and results of a check are replaced", {
  skip_on_os("windows")
  withr::local_dir(withr::local_tempdir())
  refused <- function() {
    message <- utils::capture.output(status <- shell_command(c("check", "toy_0.1.tar.gz")), type = "message")
    expect_identical(status, 2L)
    message
  }
  saveRDS("mine", "toy-check.rds")
  expect_match(refused(), "toy-check.rds` exists and is not the result of a check")
  writeLines("mine", "toy-check.html")
  expect_match(refused(), "toy-check.html` exists and is not a page of a profile")
})

test_that("options of the check are passed on", {
  command <- shell_commands()$check
  arguments <- c("--as-cran", "--base=a.rds", "pkg", "--no-manual", "-o", "a.html", "--", "-l", "lib")
  given <- shell_arguments(arguments, command, "check")
  expect_identical(given$values, "pkg")
  expect_identical(given$options$passed, c("--as-cran", "--no-manual", "-l", "lib"))
  expect_identical(given$options[c("base", "output")], list(base = "a.rds", output = "a.html"))
})

# ---- Live ----------------------------------------------------------------------------

# Checks a package, and creates the mark of each process of `slow()` that was seen. `then` is called with all processes
# and the folder of marks.
check_with_marks <- function(path, folder, then = function(processes, marks) NULL) {
  marks <- file.path(folder, "marks")
  dir.create(marks)
  withr::local_envvar(TOY_MARKS = marks, R_TESTS = NA)
  start <- function() {
    watch <- start_watch()
    look <- watch$look
    watch$look <- function(about) {
      goes_on <- look(about)
      processes <- watch$processes()
      is_seen <- c(
        example = "slow" %in% watch$titles()$name, test = "wait.R" %in% processes$script,
        # The first program builds the package, with its vignettes.
        vignette = any(grepl("/build$", processes$script))
      )
      new <- setdiff(names(is_seen)[is_seen], list.files(marks))
      file.create(file.path(marks, new))
      if (length(new) > 0) then(processes, marks)
      goes_on
    }
    watch
  }
  check_result(record_check(path, "--no-manual", 0.01, TRUE, TRUE, NULL, start), NULL)
}

test_that("a folder is built and checked", {
  skip_without_children_of_check()
  skip_if_not_installed("knitr")
  folder <- withr::local_tempdir()
  toy <- write_toy(folder)
  withr::local_dir(folder)
  x <- check_with_marks(toy, folder)
  expect_identical(x$status, 0L)
  expect_identical(x$package, "toy 0.1")
  expect_equal(sum(x$parts$time), x$time, tolerance = 1e-12)
  parts <- c("build", "install", "load", "code", "help", "examples", "tests", "vignettes", "between")
  expect_true(all(parts %in% x$parts$part))
  expect_true(all(c("slow", "wait.R") %in% x$items$name))
  expect_true("vignette" %in% x$items$kind)
  expect_true(all(c("R CMD build", "R CMD INSTALL", "toy-Ex.R", "wait.R", "tools::undoc()") %in% x$steps$name))
  expect_s3_class(validate_profile(x$profile), "profile_data")
  expect_true(file.exists(file.path(x$folder, "00check.log")))
  # Nothing is left.
  expect_true(all(is.na(environment_values(c("R_KEEP_PKG_SOURCE", "R_PROFILE_RECORDING"), NA))))
})

test_that("a check that is interrupted returns what was recorded", {
  skip_without_children_of_check()
  folder <- withr::local_tempdir()
  toy <- write_toy(folder, vignette = FALSE)
  withr::local_dir(folder)
  # All of its processes are killed when the example was seen.
  stop_all <- function(processes, marks) {
    if ("example" %in% list.files(marks)) {
      tools::pskill(processes$pid[processes$is_r | is.na(processes$parent)], tools::SIGKILL)
    }
  }
  x <- check_with_marks(toy, folder, stop_all)
  expect_false(x$status == 0)
  expect_true(all(c("install", "examples") %in% x$parts$part))
  expect_false("tests" %in% x$steps$part)
  expect_equal(sum(x$parts$time), x$time, tolerance = 1e-12)
})

test_that("a program is ended if the function that looks at it says so, or fails", {
  skip_on_os("windows")
  run <- function(look) rust(rust_run_program(c("/bin/sh", "-c", "exec sleep 1000"), look), NULL)
  looks <- 0
  ran <- run(function(about) {
    looks <<- looks + 1
    looks < 3
  })
  expect_identical(ran$status, 137)
  expect_identical(looks, 3)
  expect_error(run(function(about) stop("Oh no")), "Oh no")
  expect_identical(rust(rust_run_program(c("/bin/sh", "-c", "exit 3"), function(about) TRUE), NULL)$status, 3)
})

test_that("the program has the exit status of the check, and writes a page and the result", {
  skip_without_children_of_check()
  folder <- withr::local_tempdir()
  toy <- write_toy(folder, vignette = FALSE)
  # It is no package.
  writeLines("f <- function(", file.path(toy, "R", "slow.R"))
  withr::local_dir(folder)
  withr::local_envvar(R_TESTS = NA)
  checked <- run_program("check", "--no-manual", toy)
  expect_gt(checked$status, 0)
  expect_match(checked$out, "checking whether package", all = FALSE)
  expect_match(checked$err, "<check of toy 0.1>", all = FALSE)
  expect_true(is_page_file("toy-check.html"))
  x <- readRDS("toy-check.rds")
  expect_identical(x$status, checked$status)
  expect_true("install" %in% x$parts$part)
})
