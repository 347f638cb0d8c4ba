# tier: fast
# How processes shared the work: in print(), describe_profile() and call_tree(), with known times.

test_that("processes that worked together are counted, with their CPU time in real time", {
  x <- profile_of_processes(list(
    master = 0, "worker 1 of 2" = 1:2, "worker 2 of 2" = 1:4, "fork of 100" = 5, callr = 6, "child of 100" = 7,
    "child of 104" = 12
  ))
  # The last sample is later than the end of its source.
  expect_output(
    print(x), "Processes: 1 master, 2 workers, 1 fork, 1 callr process, 2 children, 11 s of CPU\n +in 12 s\n"
  )
  expect_output(print(describe_profile(x)), "Processes: 1 master, 2 workers, 1 fork, 1 callr process")
  run <- as.list(describe_profile(x))$run
  expect_identical(run$processes$table$cpu, c(1, 2, 4, 1, 1, 1, 1))
  expect_identical(run$processes$table$process[1:2], c("master, pid 100", "worker 1 of 2, pid 101"))
  expect_identical(run$processes$elapsed, 12)
  # Without durations and times of samples, the real time is unknown.
  x$sources$.duration_nanos <- NULL
  x$samples$.timestamp <- NULL
  expect_output(print(x, width = 100), "2 children, 11 s of CPU\n")
  # Values of another clock are no CPU time.
  x$sample_values$type <- "wall"
  expect_output(print(x), "1 callr process, 2 children\n")
  x$.source_attributes <- x$.source_attributes[x$.source_attributes$key == "process.pid", ]
  expect_output(print(x), "Sources:   process pid:100\n")
  expect_null(as.list(describe_profile(x))$run$processes)
})

test_that("one process is not several", {
  x <- profile_of_processes(list(master = 0:3))
  expect_output(print(x), "Sources:   process pid:100\n")
  expect_null(as.list(describe_profile(x))$spread)
})

test_that("a description says how well the work was spread", {
  # From 2 to 12 s.
  x <- profile_of_processes(list(master = c(0, 19), "worker 1 of 2" = 2:3, "worker 2 of 2" = 4:11), c(NA, 30, 30))
  spread <- as.list(describe_profile(x))$spread
  expect_identical(spread$processes, tibble::tibble(
    process = c("worker 2 of 2, pid 102", "worker 1 of 2, pid 101"), cpu = c(8, 2), busy_share = c(0.8, 0.2)
  ))
  expect_equal(spread[-1], list(seconds = 10, even = 5, slowest = 8, waiting_share = 3 / 8))
  text <- format(describe_profile(x))
  at <- grep("how well was the work spread", text)
  expect_identical(text[at + 0:5], c(
    "   busy%  cpu  how well was the work spread",
    "    80.0   8s  worker 2 of 2, pid 102",
    "    20.0   2s  worker 1 of 2, pid 101",
    "busy%: CPU time as a share of the time in which any of them worked.",
    "Spread evenly, each would take 5 s; the slowest took 8 s: 37.5% of the time was",
    "spent waiting for it."
  ))
  expect_length(grep("pid 10", format(describe_profile(x), n = 1)), 1)
  expect_length(grep("pid 10|evenly", format(describe_profile(x), n = 0)), 0)
  even <- profile_of_processes(list(master = 0, "fork of 100" = 1:4, "fork of 100" = 1:4))
  expect_identical(as.list(describe_profile(even))$spread$waiting_share, 0)
  # One after the other.
  tasks <- profile_of_processes(list(master = 0, "fork of 100" = 1:4, "fork of 100" = 5))
  expect_identical(as.list(describe_profile(tasks))$spread$waiting_share, NA_real_)
  expect_length(grep("evenly", format(describe_profile(tasks))), 0)
  even$samples$.timestamp[[2]] <- NA
  expect_identical(as.list(describe_profile(even))$spread$seconds, NA_real_)
  expect_output(print(describe_profile(even)), "\n  cpu  how well was the work spread\n   4s  fork of 100, pid 101\n")
})

test_that("a single worker, and workers without CPU time, have no spread", {
  expect_null(as.list(describe_profile(profile_of_processes(list(master = 0, "worker 1 of 1" = 1:2))))$spread)
  x <- profile_of_processes(list(master = 0, "worker 1 of 2" = 1, "worker 2 of 2" = 1))
  x$sample_values$type <- "wall"
  expect_null(as.list(describe_profile(x))$spread)
})

test_that("garbage collections are ascribed to the process of which they were recorded", {
  seconds <- list(master = 0, "worker 1 of 2" = 1, "worker 2 of 2" = 1)
  x <- profile_of_processes(seconds, gc = TRUE)
  expect_identical(as.list(describe_profile(x))$gc$process, "master, pid 100")
  expect_output(print(describe_profile(x)), "Garbage collection of master, pid 100: 0.0% (0 cpu)", fixed = TRUE)
  expect_null(as.list(describe_profile(profile_of_processes(seconds)))$gc)
  x$sources$.gc_profiling <- TRUE
  expect_output(print(describe_profile(x)), "Garbage collection: 0.0% (0 cpu)", fixed = TRUE)
})

test_that("a call tree begins with the values of a label", {
  x <- profile_of_processes(list(master = 0, "worker 1 of 2" = 1:4, "worker 2 of 2" = 2))
  tree <- call_tree(x, by = "process")
  expect_identical(tree$name, c(
    "worker 1 of 2, pid 101", "main", "worker", "master, pid 100", "main", "master", "worker 2 of 2, pid 102", "main",
    "worker"
  ))
  expect_identical(tree$depth, rep(1:3, 3))
  expect_identical(tree$total, rep(c(4, 1, 1), each = 3) * 1e9)
  expect_identical(tree$x[tree$depth == 1], c(0, 4, 5) * 1e9)
  figures <- summary(x, by = "process")
  expect_identical(tree$total[tree$depth == 1], figures$total)
  expect_identical(tree$name[tree$depth == 1], figures$process)
  # A value has a line of its own.
  expect_match(format(tree)[[3]], " 66.7    0.0     4s  worker 1 of 2, pid 101$")
  expect_match(format(tree)[[4]], "   main > worker$")
  expect_identical(call_tree(x, by = "process", source_id = 1)$name, c("master, pid 100", "main", "master"))
  expect_identical(call_tree(x, by = "run", focus = "master")$name, c("run-1", "main", "master"))
  expect_identical(call_tree(x, by = "source")$name[[1]], "pid:101")
  expect_error(call_tree(x, by = "proces"), "Did you mean `process`", class = "profile_error_argument")
  expect_error(callers(x, "main", by = "process"), class = "profile_error_argument")
})

test_that("samples with several values of a label, and without it, are in a call tree by label", {
  x <- profile_of_processes(list(master = 0:3))
  x$.labels <- tibble::tibble(
    sample_id = c(1L, 1L, 2L, 3L), key = "route", str = c("a", "b", "b", ""), num = NA_real_, unit = NA_character_
  )
  tree <- call_tree(x, by = "route")
  first <- tree$depth == 1
  figures <- summary(x, by = "route")
  expect_identical(tree$total[first], c(2, 1, 1, 1) * 1e9)
  expect_identical(tree$name[first], figures$route)
  expect_identical(tree$total[first] / attr(tree, "whole"), figures$total_share)
  expect_identical(attr(tree, "sum"), 4e9)
})
