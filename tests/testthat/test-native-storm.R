# tier: thorough
# Recording native code during random signals, forks, and loading and unloading of libraries, for seconds: no process
# may crash or hang, and no frame may be in a wrong place.

# Repeatedly starts and ends runs while another thread sends signals and a third one loads and unloads a library;
# sometimes the process forks. `turn` is R code to evaluate in each turn, which may use `workload`.
storm <- function(lib, turn, seconds) {
  result <- run_native(lib, c(
    "workload <- native_workload(lib)",
    "work_for_a_timer(workload)",
    "splines <- system.file('libs', 'splines.so', package = 'splines')",
    "sums <- c(right = 0, wrong = 0, missing = 0, other = 0)",
    "wrong <- character()",
    "start_profiler(tempfile(), interval = 0.01)",
    "invisible(.Call(lib$storm_start, 200L, splines))",
    sprintf("end <- Sys.time() + %f", seconds),
    "turns <- 0",
    "while (Sys.time() < end || turns < 3 || sums[['right']] < 100) {",
    turn,
    "  x <- quietly(stop_profiler())",
    "  found <- native_entries(complete_stacks(x))",
    "  sums <- sums + unlist(found[names(sums)])",
    "  wrong <- c(wrong, found$stacks)",
    "  turns <- turns + 1",
    "  start_profiler(tempfile(), interval = 0.01)",
    "}",
    "counts <- .Call(lib$storm_stop)",
    "invisible(quietly(stop_profiler()))",
    "cat(utils::head(unique(wrong)), sep = '\\n')",
    "cat('sums', sums, '\\n')",
    "cat('counts', turns, counts, '\\n')",
    "cat('owner', basename(.Call(lib$sigprof_owner)), '\\n')"
  ))
  info <- paste(c(turn, utils::tail(result$output, 20)), collapse = "\n")
  # 124: it hung; 134, 139: it crashed
  expect_equal(result$status, 0, info = info)
  if (result$status != 0) {
    return()
  }
  sums <- as.numeric(answer(result, "sums"))
  expect_equal(sums[[2]], 0, info = info)
  # Turns, signals, libraries.
  expect_true(all(as.numeric(answer(result, "counts")) > 1), info = info)
  expect_match(answer(result, "owner"), "^(libR.so|R)$")
}

storm_seconds <- function() {
  as.numeric(Sys.getenv("PROFILE_TEST_STORM", "4"))
}

test_that("runs survive a storm of signals, with libraries that come and go", {
  skip_without_native()
  turn <- "native_work(workload, 0.25, sample(timer_scenarios(workload)))"
  storm(native_library(), turn, storm_seconds())
  storm(native_library("-O2"), turn, storm_seconds())
})

test_that("runs survive being short, and forks in between", {
  skip_without_native()
  storm(native_library(), seconds = storm_seconds(), c(
    "native_work(workload, 0.05, c('nested', 'forced', 'plain'))",
    "if (turns %% 4 == 0) {",
    "  answers <- parallel::mclapply(1:2, function(i) workload$nested(1L, 3) > 0)",
    "  stopifnot(identical(unlist(answers), c(TRUE, TRUE)))",
    "}"
  ))
})

test_that("samples in the unwinder of C++ do no harm", {
  skip_without_native()
  storm(native_library(), seconds = storm_seconds(), "with(workload, for (i in 1:100) cpp_exceptions(500L, 0L)); native_work(workload, 0.05)")
})

test_that("other threads that work are not in R's stacks", {
  skip_without_native()
  lib <- native_library()
  workload <- native_workload(lib)
  work_for_a_timer(workload)
  withr::defer(.Call(lib$set_unit, 0L))
  expect_equal(.Call(lib$busy_start, 2L), 2L)
  withr::defer(.Call(lib$busy_stop), priority = "first")
  x <- quietly(record_profile(native_work(workload, 6, c("plain", "nested", "forced")), native = TRUE, interval = 0.01))
  stacks <- profile_stacks(x)
  expect_gt(expect_none_wrong(stacks)$right, 0)
  expect_false("busy_thread" %in% unlist(stacks))
})
