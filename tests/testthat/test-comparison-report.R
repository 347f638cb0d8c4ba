# tier: fast
# The report of `profile compare` on given runs, as text and as Markdown, and the shell command on files.

# Runs of a program, recorded beforehand: work() takes 20 % of the whole program more.
of_runs <- function(factor) {
  speed <- c(1, 1.03, 0.98, 1.01, 0.97, 1.02, 0.99, 1)
  x <- profile_of_runs(lapply(speed, function(speed) {
    round(100 * speed * c("main>read" = 1, "main>clean>work" = 0.8 * factor, "main>clean" = 0.2))
  }))
  # Files distinguish runs by it.
  x$sources$source_uri <- paste("run", seq_along(speed))
  x
}
base <- of_runs(1)
new <- of_runs(1.5)
of_bytes <- function(size) profile_of_bytes(rep(list(c("main>read" = 1e6, "main>clean>work" = size)), 3))

report_of <- function(time = list(base = base, new = new), bytes = list(base = of_bytes(2e6), new = of_bytes(2.5e6)),
                      limits = c("time > 10%", "alloc > 0"), ...) {
  plan <- list(runs = 8, wanted = 12, is_bounded = TRUE)
  runs <- list(
    bytes = c(bytes, list(failed = c(base = 0, new = 0))),
    time = c(time, list(plan = plan, failed = c(base = 0, new = 0)))
  )
  titles <- c(base = "main (1234567)", new = "the working tree")
  report_of_package("smallpkg", titles, "run.R", runs, lapply(limits, limit_of_text), NULL, ...)
}

test_that("a regression of 20 % is found, and the function is named first", {
  report <- report_of()
  expect_identical(status_of_limits(report$limits), 3L)
  for (kind in report$kinds) expect_identical(changed_rows(kind, 1)$name, "work")
  expect_snapshot({
    writeLines(format_report(report, 80))
    writeLines(markdown_of_report(report))
  })
})

test_that("the report is written as Markdown, and as a page for each kind of runs", {
  folder <- withr::local_tempdir()
  at <- function(name) file.path(folder, name)
  said <- utils::capture.output(write_comparison(report_of(), at(c("a.md", "a.b.html"))), type = "message")
  expect_match(readLines(at("a.md"))[[1]], "### Performance: a limit is exceeded", fixed = TRUE)
  expect_setequal(list.files(folder), c("a.md", "a.b.html", "a.b-bytes.html"))
  expect_length(said, 3)
  expect_true(is_page_file(at("a.b.html")))
  expect_true(is_page_file(at("a.b-bytes.html")))
  # If only one kind was recorded, there is one page.
  one <- report_of()
  one["profiles_of_bytes"] <- list(NULL)
  utils::capture.output(write_comparison(one, at("one.html")), type = "message")
  expect_false(file.exists(at("one-bytes.html")))
})

test_that("equal versions are within the limits, and noisy ones inconclusive", {
  same <- report_of(list(base = base, new = base), list(base = of_bytes(2e6), new = of_bytes(2e6)))
  expect_identical(status_of_limits(same$limits), 0L)
  varying <- profile_of_bytes(lapply(c(1e6, 2e6, 4e6), function(n) c("main>work" = n)))
  noisy <- report_of(
    list(base = base, new = of_runs(1.2)), list(base = varying, new = varying), limits = c("time > 7%", "alloc > 0")
  )
  expect_identical(status_of_limits(noisy$limits), 4L)
  expect_snapshot({
    writeLines(format_report(same, 80))
    writeLines(markdown_of_report(noisy))
  })
})

test_that("names cannot be markup, mentions or workflow commands", {
  names <- c("a|b`c", "@someone", "[x](https://example.org)", "<img src=x>", "::error::x", "a\nb", "#1")
  of <- function(n) {
    size <- rlang::set_names(n * seq_along(names), paste0("main>", names))
    suppressWarnings(profile_of_bytes(rep(list(size), 3)), classes = "profile_warning_repaired")
  }
  kinds <- compared_kinds(list(list(base = of(1000), new = of(2000))), list(NULL), NULL)
  report <- new_report(c("@owner", "<b>", "x|y`z"), kinds, list(), "A note by @someone with <b> and [a](b).")
  lines <- markdown_of_report(report, n = 20)
  expect_snapshot(writeLines(lines))
  # What is outside of code spans has neither mentions nor tags.
  outside <- gsub("`[^`]*`", "", lines)
  expect_no_match(outside, "@(?!<!-- -->)", perl = TRUE)
  expect_no_match(gsub("<!-- -->", "", outside, fixed = TRUE), "<", fixed = TRUE)
  # Each row of the table has the same number of cells.
  rows <- gsub("\\|", "", grep("^[|]", lines, value = TRUE), fixed = TRUE)
  expect_length(unique(lengths(gregexpr("|", rows, fixed = TRUE))), 1)
})

test_that("files are compared with limits, which have exit statuses of their own", {
  folder <- withr::local_tempdir()
  at <- function(name) file.path(folder, name)
  write_pprof(base, at("base.pb.gz"), source_labels = TRUE)
  write_pprof(new, at("new.pb.gz"), source_labels = TRUE)
  run <- function(...) {
    status <- NULL
    out <- utils::capture.output(
      err <- utils::capture.output(status <- shell_command(c("compare", ...)), type = "message")
    )
    list(status = status, out = out, err = err)
  }
  files <- c(at("base.pb.gz"), at("new.pb.gz"))
  expect_identical(run(files)$status, 0L)
  expect_identical(run("--fail-if", "time > 10%", files)$status, 3L)
  expect_identical(run("--fail-if=time > 30%", files)$status, 0L)
  expect_identical(run("--fail-if", "time > 20%", "--fail-if", "time > 50%", files)$status, 4L)
  expect_identical(run("--fail-if", "samples > 10%", files)$status, 3L)
  written <- run("-o", at("a.md"), "-o", at("a.html"), "--fail-if", "time > 10%", files)
  expect_identical(written$status, 3L)
  expect_match(readLines(at("a.md"))[[1]], "a limit is exceeded")
  expect_true(is_page_file(at("a.html")))
  # An error, and wrong arguments.
  expect_identical(run("--fail-if", "copy_space > 0", files)$status, 1L)
  expect_snapshot({
    wrong <- function(...) {
      found <- run(...)
      cat(found$err, found$status, sep = "\n")
    }
    wrong("--fail-if", "time", "a", "b")
    wrong("--fail-if", "time > 1s", "a", "b")
    wrong("--tests", "a", "b")
    wrong("--package")
    wrong("--package", "main")
    wrong("--package", "--tests", "--script", "a.R", "main")
    wrong("--package", "--script", "no-such-file.R", "main")
    wrong("--package", "--tests", "--measure", "all", "main")
    wrong("--package", "--tests", "--measure", "time", "--fail-if", "alloc > 0", "main")
    wrong("--package", "--tests", "--fail-if", "copy_space > 0", "main")
    wrong("--package", "--tests", "--time", "soon", "main")
    wrong("-o", "no/such/folder/a.md", "a", "b")
  })
})
