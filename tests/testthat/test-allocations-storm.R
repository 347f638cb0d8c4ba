# tier: thorough
# Exact memory in programs that make it hard: signals, memory limits, torture, full stacks, allocators of others. Each is a
# process of its own, so that a crash or a hang of R is a failure.

# Runs code in a process that records with exact memory, and ends with "done" if R works as before.
run_exact <- function(code, prefix = "", env = "") {
  end <- c(
    "stopifnot(!profile:::rust(profile:::rust_allocations_on(), NULL))",
    "gc()",
    "x <- profile::record_profile(for (i in 1:10) numeric(20000), memory = 'exact', threshold = 160048)",
    "stopifnot(sum(x$sample_values$value[x$sample_values$type == 'alloc_objects']) == 10)",
    "cat('done\\n')"
  )
  start <- c(
    "library(profile)",
    "sum_of <- function(x, type) sum(x$sample_values$value[x$sample_values$type == type])",
    "copies <- function(n) { x <- numeric(20000); for (i in seq_len(n)) { y <- x; x[1] <- i } }"
  )
  run_r(c(start, code, end), prefix = prefix, env = env)
}

expect_done <- function(result) {
  expect_equal(result$status, 0, info = last_lines(result$output))
  expect_equal(utils::tail(result$output, 1), "done", info = last_lines(result$output))
}

test_that("interrupts at any time, while R's profiler takes samples each millisecond", {
  skip_if_not(is_live_platform())
  for (round in 1:20) {
    expect_done(run_exact(c(
      # R's own promises of functions stay unusable if it is interrupted while it loads one, and again when it warns of that.
      "own <- asNamespace('profile')",
      "for (name in ls(own, all.names = TRUE)) get(name, own)",
      "interrupted <- 0",
      "ended <- tempfile()",
      # Interrupts are allowed while the recording starts, runs and ends, and nowhere else.
      "tryCatch(suspendInterrupts({",
      paste0(
        "  storm <- sprintf('i=0; while [ $i -lt 200 ] && kill -INT %d; do i=$((i + 1)); sleep 0.00", round %% 5 + 1,
        "; done; touch %s', Sys.getpid(), shQuote(ended))"
      ),
      "  system(paste('(', storm, ') 2> /dev/null &'))",
      "  while (!file.exists(ended)) tryCatch(",
      "    allowInterrupts(suppressMessages(record_profile(copies(1e5), interval = 0.001, memory = 'exact'))),",
      "    interrupt = function(e) interrupted <<- interrupted + 1, error = function(e) NULL",
      "  )",
      "}), interrupt = function(e) NULL)",
      "tryCatch(Sys.sleep(0.1), interrupt = function(e) NULL)",
      "cat(interrupted, 'interrupts\\n')"
    ), env = listen_to_interrupts()))
  }
})

test_that("time limits, and errors of memory", {
  skip_if_not(is_live_platform())
  expect_done(run_exact(c(
    "for (i in 1:200) {",
    "  try({ setTimeLimit(elapsed = 0.01 + i / 1e4, transient = TRUE); record_profile(copies(1e6), memory = 'exact') }, TRUE)",
    "  setTimeLimit()",
    "}"
  )))
  # Vectors that R cannot allocate.
  expect_done(run_exact(c(
    "for (i in 1:30) {",
    "  kept <- list()",
    "  result <- try(record_profile(repeat kept[[length(kept) + 1]] <- numeric(1e7), memory = 'exact'), TRUE)",
    "  stopifnot(grepl('cannot allocate', result), length(kept) > 0)",
    "  rm(kept)",
    "  gc()",
    "}"
  ), prefix = "ulimit -v 1500000;"))
})

test_that("R's stacks overflow", {
  skip_if_not(is_live_platform())
  # Of protected objects.
  nested <- "deep <- quote(x); for (i in 1:20000) deep <- call('(', deep); x <- numeric(1000)"
  expect_done(run_exact(c(
    nested,
    "for (i in 1:10) {",
    "  result <- try(record_profile(eval(deep), memory = 'exact'), TRUE)",
    "  stopifnot(inherits(result, 'try-error'))",
    "}"
  )))
  # Of C.
  for (round in 1:12) {
    expect_done(run_exact(c(
      "options(expressions = 500000)",
      "endless <- function(n) { x <- numeric(100); y <- x; x[1] <- n; endless(n + 1) }",
      "result <- try(record_profile(endless(1), memory = 'exact', lines = FALSE), TRUE)",
      "stopifnot(inherits(result, 'try-error'), sum_of(last_profile(), 'copy_objects') > 100)",
      "options(expressions = 5000)"
    )))
  }
})

test_that("deep calls that do not overflow", {
  skip_if_not(is_live_platform())
  expect_done(run_exact(c(
    "options(expressions = 500000)",
    "down <- function(n) if (n > 0) Recall(n - 1) else for (i in 1:100) numeric(20000)",
    "x <- record_profile(down(3000), memory = 'exact', threshold = 160048, lines = FALSE)",
    "stopifnot(sum_of(x, 'alloc_objects') == 100)"
  ), prefix = "ulimit -s 100000;"))
})

test_that("garbage is collected all the time", {
  skip_if_not(is_live_platform())
  expect_done(run_exact(c(
    "gctorture2(3)",
    "x <- record_profile(copies(50), memory = 'exact', threshold = 160048)",
    "gctorture(FALSE)",
    "stopifnot(sum_of(x, 'copy_objects') == 50, sum_of(x, 'inuse_objects') == 0)"
  )))
})

test_that("more than two million vectors in use", {
  skip_if_not(is_live_platform())
  expect_done(run_exact(c(
    "x <- record_profile(kept <- lapply(1:2200000, function(i) numeric(20)), memory = 'exact', threshold = 208)",
    "vectors <- sum_of(x, 'inuse_objects')",
    "stopifnot(vectors >= 2200000, vectors < 2200100)"
  )))
})

test_that("an allocator of a package is not seen, and nothing else is missing", {
  skip_if_not(is_live_platform())
  skip_if_not(capabilities("profmem"))
  skip_if_not(has_compiler("CC"))
  folder <- withr::local_tempdir()
  writeLines(c(
    "#include <stdlib.h>", "#include <Rinternals.h>", "#include <R_ext/Rallocators.h>",
    "static void *give(R_allocator_t *a, size_t n) { return malloc(n); }",
    "static void take(R_allocator_t *a, void *p) { free(p); }",
    "SEXP own(SEXP n) {",
    "  R_allocator_t a = {give, take, NULL, NULL};",
    "  return Rf_allocVector3(REALSXP, Rf_asInteger(n), &a);",
    "}"
  ), file.path(folder, "own.c"))
  library <- file.path(folder, paste0("own", .Platform$dynlib.ext))
  built <- run_tool(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "-o", library, file.path(folder, "own.c")))
  expect_done(run_exact(c(
    paste0("dyn.load('", library, "')"),
    "path <- tempfile()",
    "x <- record_profile({",
    "  Rprofmem(path, threshold = 160048)",
    "  for (i in 1:10) { a <- .Call('own', 20001L); b <- numeric(20001) }",
    "  Rprofmem('')",
    "}, memory = 'exact', threshold = 160048)",
    "rm(a); gc()",
    "stopifnot(sum_of(x, 'alloc_objects') == 10, length(readLines(path)) == 20)"
  )))
})

test_that("another allocator in the place of the C library's", {
  skip_if_not(is_live_platform())
  library <- Sys.glob("/usr/lib/*/libjemalloc.so.2")
  skip_if(length(library) == 0, "libjemalloc2 is not installed")
  expect_done(run_exact(c(
    "x <- record_profile(copies(50), memory = 'exact', threshold = 160048)",
    "stopifnot(sum_of(x, 'copy_objects') == 50, sum_of(x, 'inuse_objects') == 0)"
  ), env = paste0("env LD_PRELOAD=", library)))
})

test_that("a table that is read-only", {
  skip_if_not(is_live_platform())
  expect_done(run_exact(c(
    "x <- record_profile(copies(50), memory = 'exact', threshold = 160048)",
    "stopifnot(sum_of(x, 'copy_objects') == 50, sum_of(x, 'inuse_objects') == 0)"
  ), env = "env LD_BIND_NOW=1"))
})

test_that("forks that record themselves", {
  skip_if_not(is_live_platform())
  expect_done(run_exact(c(
    "work <- function(i) {",
    "  x <- record_profile(copies(10 * i), memory = 'exact', threshold = 160048)",
    "  sum_of(x, 'copy_objects')",
    "}",
    "x <- record_profile(copies(5), memory = 'exact')",
    "found <- parallel::mclapply(1:40, work, mc.cores = 4)",
    "stopifnot(identical(unlist(found), 10 * as.numeric(1:40)))"
  )))
})

test_that("valgrind has nothing to report", {
  skip_if_not(is_live_platform())
  skip_if(Sys.which("valgrind") == "", "valgrind is not installed")
  code <- function(memory) {
    run_r(c(
      "library(profile)",
      "f <- function() { x <- numeric(20000); for (i in 1:20) { y <- x; x[i] <- 1 }; lm(mpg ~ wt, mtcars) }",
      sprintf("x <- record_profile(f(), memory = %s)", memory)
    ), env = "valgrind --tool=memcheck --error-limit=no --trace-children=yes")
  }
  summaries <- function(result) sub("==[0-9]+== ", "", grep("ERROR SUMMARY", result$output, value = TRUE))
  expect_identical(summaries(code("'exact'")), summaries(code("FALSE")))
})
