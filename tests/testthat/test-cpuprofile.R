# tier: fast
# CPU profiles of Chrome and Node: checked by speedscope, read back, and files of other tools.

# The times of functions by the rules of the format, computed from its JSON: a sample lasts until the next one.
times_of_functions <- function(path) {
  skip_if_not_installed("jsonlite")
  json <- jsonlite::fromJSON(paste(readLines(path, warn = FALSE), collapse = ""), simplifyVector = FALSE)
  names <- vapply(json$nodes, function(node) node$callFrame$functionName, "")
  names[names == ""] <- "(anonymous)"
  ids <- vapply(json$nodes, function(node) node$id, 1)
  time <- json$startTime + cumsum(unlist(json$timeDeltas))
  row <- match(unlist(json$samples), ids)[order(time)]
  lasted <- diff(c(sort(time), json$endTime))
  sums <- tapply(lasted, names[row], sum)
  in_order(stats::setNames(as.numeric(sums), names(sums)))
}

test_that("speedscope shows what was written", {
  skip_without_speedscope()
  dir <- withr::local_tempdir()
  report <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
  go <- read_pprof(data_path("pprof", "go_cpu.pb.gz"))
  write_cpuprofile(report, file.path(dir, "1.cpuprofile"))
  write_cpuprofile(go, file.path(dir, "go.cpuprofile"))
  files <- in_speedscope(file.path(dir, c("1.cpuprofile", "go.cpuprofile")))
  profile <- files[[1]]$profiles[[1]]
  expect_equal(profile$unit, "microseconds")
  expect_equal(profile$stacks[names(profile$stacks) != ""], sums_by_stack(report, "samples", factor = 1e4))
  profile <- files[[2]]$profiles[[1]]
  expect_equal(sum(profile$stacks), sum(go$sample_values$value[go$sample_values$type == "cpu"]) / 1e3)
})

test_that("samples, times and innermost lines come back", {
  x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
  y <- expect_no_warning(read_written(x, "cpuprofile"))
  expect_identical(validate_profile(y), y)
  expect_equal(stacks(y), stacks(x))
  expect_equal(sums_by_stack(y, "time"), sums_by_stack(x, "samples", factor = 1e4))
  expect_equal(sum(y$sample_values$value[y$sample_values$type == "samples"]), 252)
  # The format does not record which line was running in which sample.
  innermost <- function(x) {
    flat <- as_tibble(x)
    flat <- flat[flat$depth == 1, ]
    sort(paste(flat$name, flat$filename, flat$line))
  }
  expect_equal(innermost(y), innermost(x))
  expect_gt(length(unique(innermost(x))), 20)
  # Links lead to the first known line of a function.
  first <- y$functions$start_line[match("clean_sales", y$functions$name)]
  expect_equal(first, min(x$locations$line[x$locations$function_id %in% which(x$functions$name == "clean_sales")]))
  # The start of the run is known.
  expect_equal(y$sources$source_timestamp, x$sources$source_timestamp)
  expect_equal(y$sources$.duration_nanos, 252e7)
  # A second round trip changes nothing.
  z <- read_written(y, "cpuprofile")
  expect_equal(z, y)
})

test_that("sources follow one another, and other types are left out", {
  x <- combine_profiles(small_profile(), small_profile())
  y <- expect_profile_warning(read_written(x, "cpuprofile"), "profile_warning_lossy")
  expect_equal(stacks(y), stacks(x))
  expect_equal(sum(y$sample_values$value[y$sample_values$type == "time"]), 6e4)
  heap <- read_pprof(data_path("pprof", "go_heap.pb.gz"))
  expect_snapshot(write_cpuprofile(heap, withr::local_tempfile()), error = TRUE)
})

test_that("files of Node and Chrome are read", {
  for (file in c("node.cpuprofile.gz", "chromium.cpuprofile")) {
    path <- data_path("cpuprofile", file)
    x <- suppressWarnings(read_cpuprofile(path, source_uri = "v8"), classes = "profile_warning_repaired")
    self <- summary(x, type = "time")$by_function
    sums <- in_order(stats::setNames(as.numeric(self$self), self$name))
    # The outermost node is not a function.
    expected <- times_of_functions(path)
    expect_equal(sums, expected[names(expected) != "(root)"], info = file)
    expect_true(all(x$sample_values$value[x$sample_values$type == "samples"] == 1))
    expect_equal(x$sources$source_timestamp, NA_real_)
    expect_true("(program)" %in% x$functions$name)
  }
  script <- x$functions[x$functions$name == "sort", ]
  expect_equal(script$start_line, 2)
})

test_that("a trace of Chrome is read", {
  x <- expect_no_warning(read_cpuprofile(data_path("cpuprofile", "trace.json.gz"), source_uri = "trace"))
  expect_equal(nrow(x$sources), 1)
  expect_equal(x$.comments$comment, "CrRendererMain")
  by_line <- call_tree(x, by = "line", type = "samples")
  # The functions `parse` and `sort` are in the first two lines.
  expect_true(all(c(1, 2) %in% by_line$line))
  expect_gt(max(x$locations$.column), 50)
})

# For each source, the number of samples of each function and the sum of a sample type.
self_of <- function(x, type) {
  rows <- summary(x, type = type)$by_function
  rows <- rows[rows$self != 0, ]
  in_order(stats::setNames(as.numeric(rows$self), ifelse(is.na(rows$name), "<unknown>", rows$name)))
}

test_that("times of a trace are those between samples", {
  # A start of 0 in `Profile`, and the real one in `cpuProfile`.
  x <- expect_no_warning(read_cpuprofile(data_path("found", "chrome-profile-start0.json")))
  expect_equal(self_of(x, "time"), c(emit = 1000, parse = 2000))
  expect_equal(x$sources$.duration_nanos, 4e6)
  # Old versions of V8 write the end as one more time.
  x <- expect_no_warning(read_cpuprofile(data_path("found", "old-extra-timestamp.cpuprofile")))
  expect_equal(self_of(x, "samples"), c(f = 2))
  expect_equal(self_of(x, "time"), c(f = 200))
})

test_that("each `CpuProfile` event of a trace is a source", {
  x <- expect_no_warning(read_cpuprofile(data_path("found", "chrome-two-cpuprofile.json")))
  expect_equal(nrow(x$sources), 2)
  expect_equal(x$samples$source_id, c(1, 1, 1, 2, 2))
  expect_equal(self_of(x, "samples"), c(mainWork = 3, workerWork = 2))
  expect_equal(self_of(x, "time"), c(mainWork = 3000, workerWork = 2000))
})

test_that("a lost chunk of a trace costs its nodes only", {
  x <- expect_profile_warning(
    read_cpuprofile(data_path("found", "chrome-lost-chunk.json")), "profile_warning_incomplete"
  )
  expect_equal(unique(profile_problems(x)$problem), "missing_node")
  expect_equal(profile_problems(x)$text, c("7", "7"))
  expect_equal(self_of(x, "samples"), in_order(c(known = 3, orphan = 1, `<unknown>` = 1)))
})

test_that("samples without a time are reported when they are written", {
  x <- read_cpuprofile(data_path("cpuprofile", "trace.json.gz"))
  y <- expect_profile_warning(read_written(x, "cpuprofile"), "profile_warning_lossy")
  expect_equal(nrow(y$samples), nrow(x$samples) - 1)
  expect_equal(sum(y$sample_values$value), sum(x$sample_values$value) - 1)
  expect_no_warning(read_written(y, "cpuprofile"))
})

test_that("errors say what is wrong", {
  node <- "{\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"f\"}%s}],\"samples\":[%s]}"
  expect_snapshot(print_refusals(
    read_cpuprofile,
    sprintf(node, "", "-2"), sprintf(node, "", "1,,"), sprintf(node, ",\"parent\":1", "1"),
    sprintf(node, ",\"selfSize\":1", "1"), "{}", "[]", "",
    "{\"traceEvents\":[{\"name\":\"a\",\"ph\":\"X\"}]}"
  ))
})

test_that("a truncated file is read as far as it goes", {
  path <- withr::local_tempfile()
  x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
  write_cpuprofile(x, path)
  bytes <- file_bytes(path)
  y <- expect_profile_warning(
    read_cpuprofile(write_bytes(bytes[seq_len(length(bytes) - 100)])), "profile_warning_incomplete"
  )
  expect_true("cut_json" %in% profile_problems(y)$problem)
  expect_equal(stacks(y), stacks(x)[seq_along(stacks(y))])
})

test_that("a trace that is an array of events need not be closed", {
  path <- data_path("found", "chrome-open-array.json")
  x <- expect_no_warning(read_profile(path))
  expect_null(x$.problems)
  times <- summary(x, type = "time")$by_function
  expect_equal(times$self[match(c("a", "b"), times$name)], c(2000, 1000))
})
