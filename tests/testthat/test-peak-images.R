# tier: gate
# `record_profile(snapshot = "peak")`: who held the memory when it was highest, in fresh processes.

skip_without_images <- function() {
  skip_on_cran()
  skip_without_processes()
}

# A vector, its copy and a cache, of which the copy is just being allocated at the peak; a list that is released afterwards;
# and a smaller peak.
program <- c(
  "library(profile)",
  "images <- function() {",
  "  pids <- suppressWarnings(as.integer(list.files('/proc', '^[0-9]+$')))",
  "  stat <- vapply(pids, function(pid) tryCatch(readLines(sprintf('/proc/%d/stat', pid), 1), error = function(e) '',",
  "    warning = function(w) ''), '')",
  "  sum(grepl(sprintf('^[0-9]+ [(]profile-image[)] . %d ', Sys.getpid()), stat))",
  "}",
  "fit <- eval(parse(text = c('function(n) {', 'cache <<- numeric(n / 4)', 'x <- numeric(n)', 'y <- x', 'y[1] <- 1',",
  "  'length(y)', '}'), keep.source = TRUE))",
  "main <- function() {", "  kept <- lapply(1:20, function(i) numeric(1e6))", "  fit(2e7)", "}",
  "after <- function() {", "  gc()", "  for (i in 1:5) numeric(1e6)", "  fit(2e6)", "}",
  "shown <- function(x) {",
  "  rows <- holders(x)",
  "  rows <- rows[rows$retained > 1e7, ]",
  "  cat(sprintf('%s: %.0f\\n', rows$held_by, rows$retained), sep = '')",
  "}"
)

test_that("the snapshot has what was held at the peak, and the vector that was being allocated", {
  skip_without_images()
  ended <- run_r(c(
    program,
    "x <- record_profile({ main(); after() }, snapshot = 'peak')",
    "cat('--\\n')",
    "shown(x)",
    "cat(images(), nrow(validate_profile(x)$sources), class(attr(x, 'snapshot'))[[1]])"
  ))
  expect_ran(ended)
  shown <- utils::tail(ended$output, -match("--", ended$output))
  expect_identical(setdiff(c(
    "call of main() > $kept > [[*]]: 160000960", "allocated by fit (<text>:5): 160000048", "globalenv > $cache: 40000048"
  ), shown), character())
  expect_match(shown, "^call of fit[(][)] > [$][xy]( .shared.)?: 160000048$", all = FALSE)
  expect_identical(utils::tail(shown, 1), "0 1 profile_v2")
})

test_that("the snapshot has the memory that malloc() has kept", {
  skip_without_images()
  ended <- run_r(c(
    program,
    # What is kept lies between what is freed, in gaps of 240 kB, so that the vectors of the peak do not fit into them.
    "x <- lapply(1:1e5, function(i) numeric(600))", "kept <- x[seq(1, 1e5, 50)]", "rm(x)", "invisible(gc())",
    "x <- attr(record_profile(main(), snapshot = 'peak'), 'snapshot')",
    "rows <- holders(x, n = 1000)",
    "about <- x$.source_attributes",
    "cat('--\n')",
    "cat(about$value[about$key == 'profile.process.allocator'], '\n')",
    "cat(sum(rows$retained[grepl('> free in malloc$', rows$held_by)]) > 4e8)"
  ))
  expect_ran(ended)
  shown <- utils::tail(ended$output, -match("--", ended$output))
  if (shown[[1]] != "glibc ") skip(paste("the allocator is", shown[[1]]))
  expect_identical(shown, c("glibc ", "TRUE"))
})

test_that("no image is left after errors, interrupts, and in forks", {
  skip_without_images()
  skip_if_not_installed("parallel")
  ended <- run_r(c(
    program,
    "try(record_profile({ main(); stop('failed') }, snapshot = 'peak'), TRUE)",
    "shown(last_profile())",
    "cat(images(), 'images\\n')",
    "cached <- NULL",
    "work <- function() {",
    "  main()",
    "  # A fork has a peak of its own, and ends while there may be an image of this process.",
    "  parallel::mccollect(lapply(1:2, function(i) parallel::mcparallel({ fit(4e7); i })))",
    "  tools::pskill(Sys.getpid(), tools::SIGINT)",
    "  Sys.sleep(60)",
    "}",
    "tryCatch(record_profile(work(), snapshot = 'peak', children = TRUE), interrupt = function(e) cat('interrupted\\n'))",
    "shown(last_profile())",
    "cat(images(), 'images\\n')"
  ), env = listen_to_interrupts())
  expect_ran(ended)
  expect_identical(sum(ended$output == "0 images"), 2L)
  expect_true("interrupted" %in% ended$output)
  expect_identical(sum(ended$output == "call of main() > $kept > [[*]]: 160000960"), 2L)
})

test_that("arguments are checked, and a recording without a peak says so", {
  expect_snapshot(error = TRUE, record_profile(1, snapshot = TRUE))
  skip_without_images()
  withr::local_options(profile.replace_entries = FALSE)
  skip_if_not(capabilities("profmem"))
  said <- testthat::capture_messages(x <- record_profile(sqrt(1:10), snapshot = "peak"))
  expect_match(said, "There is no snapshot of the peak", all = FALSE)
  expect_null(attr(x, "snapshot"))
})
