# tier: fast
# Progress bars: cli draws them; these tests read what it logs.

# The log of cli while code runs as in an interactive session, without times and ids.
logged <- function(code) {
  withr::local_options(
    rlang_interactive = TRUE, cli.progress_show_after = 0, cli.progress_handlers_only = "logger",
    cli.progress_handlers_force = "logger"
  )
  lines <- capture.output(suppressMessages(force(code)))
  sub("^[^ ]+ cli-[0-9]+-[0-9]+ ", "", grep(" cli-[0-9]+-[0-9]+ ", lines, value = TRUE))
}

test_that("there are no bars where nobody sees them", {
  withr::local_options(rlang_interactive = FALSE)
  expect_null(progress_report("Reading", "download"))
  expect_null(show_progress(NULL, 1, 2))
})

test_that("a bar counts runs, and ends with the function", {
  log <- logged(benchmark_profile(1, runs = 2, warmup = 1, measure = "time"))
  expect_match(log[[1]], "^0/3 created$")
  expect_match(log[[length(log)]], "^2/3 terminated")
  # An error ends it as well.
  log <- logged(try(benchmark_profile(stop("no"), runs = 2, warmup = 0, measure = "time"), silent = TRUE))
  expect_match(log[[length(log)]], "^0/2 terminated")
})

test_that("totals may be unknown, become known and grow", {
  shown <- function(...) {
    report <- progress_report("Reading {file} %s", "download")
    for (progress in list(...)) report(progress)
  }
  log <- logged(shown(c(NA, NA), c(5, NA), c(10, 20), c(30, 20), c(1, Inf)))
  expect_match(log[[1]], "^0/NA created")
  expect_match(log[[length(log)]], "^1/NA terminated")
})

test_that("the core reports while it reads", {
  skip_on_os("windows")
  path <- withr::local_tempfile()
  if (system2("mkfifo", shQuote(path)) != 0) skip("there are no named pipes")
  file <- rprof_path("basic_plain.out")
  # Half of the file comes a second later, so the time of a report has come.
  size <- file.size(file) %/% 2
  system(sprintf(
    "(head -c %d %s; sleep 1; tail -c +%d %s) > %s", size, shQuote(file), size + 1, shQuote(file), shQuote(path)
  ), wait = FALSE)
  reports <- list()
  input <- profile_input(path, NA_character_, NULL)
  report <- function(progress) reports <<- c(reports, list(progress))
  result <- rust(rust_read(input, "rprof", "2.0", FALSE, FALSE, report), NULL)
  expect_gt(length(reports), 0)
  # A pipe has no position.
  expect_true(all(vapply(reports, identical, NA, c(NA_real_, NA_real_))))
  x <- new_profile_data(result$tables, "2.0")
  expect_equal(nrow(x$samples), nrow(read_rprof(file)$samples))
})

test_that("an error in a report ends the work", {
  skip_on_os("windows")
  path <- withr::local_tempfile()
  if (system2("mkfifo", shQuote(path)) != 0) skip("there are no named pipes")
  file <- rprof_path("basic_plain.out")
  system(sprintf("(sleep 1; cat %s) > %s", shQuote(file), shQuote(path)), wait = FALSE)
  input <- profile_input(path, NA_character_, NULL)
  expect_error(rust(rust_read(input, "rprof", "2.0", FALSE, FALSE, function(progress) stop("full")), NULL), "full")
})

test_that("an interrupt during a report stops a recording, and keeps what was recorded", {
  skip_without_processes()
  reports <- list()
  recorded <- processes_recorded(
    Sys.getpid(), 600, 0.01, "wall", check_children(FALSE, NULL), NULL, report = function(progress) {
      reports <<- c(reports, list(progress))
      rlang::interrupt()
    }
  )
  expect_true(recorded$was_stopped)
  expect_length(reports, 1)
  expect_equal(reports[[1]][[2]], 600)
  expect_no_error(validate_profile(recorded$profile))
})
