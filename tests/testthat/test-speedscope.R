# tier: gate
# Files of speedscope: checked by speedscope, read back, and files of other tools.

test_that("speedscope shows what was written", {
  skip_without_speedscope()
  dir <- withr::local_tempdir()
  path <- function(name) file.path(dir, name)
  report <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
  memory <- read_rprof(rprof_path("basic_all.out"))
  write_speedscope(report, path("order.json"), aggregate = FALSE)
  write_speedscope(report, path("sums.json"), aggregate = TRUE)
  write_speedscope(memory, path("memory.json"))
  files <- in_speedscope(path("order.json"), path("sums.json"), path("memory.json"))
  for (file in files) {
    expect_true(file$valid)
  }
  for (file in files[1:2]) {
    expect_equal(vapply(file$profiles, `[[`, "", "name"), c("1.out: samples", "1.out: cpu"))
    expect_equal(vapply(file$profiles, `[[`, "", "unit"), c("none", "nanoseconds"))
    expect_equal(file$profiles[[1]]$stacks, sums_by_stack(report, "samples"))
    expect_equal(file$profiles[[2]]$stacks, sums_by_stack(report, "samples", factor = 1e7))
  }
  profiles <- files[[3]]$profiles
  expect_equal(vapply(profiles, `[[`, "", "unit"), c("none", "nanoseconds", "bytes"))
  expect_equal(profiles[[1]]$stacks, sums_by_stack(memory, "samples"))
  expect_equal(profiles[[3]]$stacks, sums_by_stack(memory, "alloc_size"))
})

test_that("values, frames and lines come back", {
  x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
  for (aggregate in list(TRUE, FALSE, NULL)) {
    y <- read_written(x, "speedscope", aggregate = aggregate)
    expect_identical(validate_profile(y), y)
    expect_equal(sums_by_stack(y, "samples"), sums_by_stack(x, "samples"))
    expect_equal(sums_by_stack(y, "time"), sums_by_stack(x, "samples", factor = 1e7))
    # One run, with its interval.
    expect_equal(y$sources$source_type, "speedscope")
    expect_equal(y$sources[c(".period", ".period_type", ".period_unit")], x$sources[c(".period", ".period_type", ".period_unit")])
    figures <- function(x) {
      lines <- summary(x, type = "samples")$by_line
      lines[order(lines$filename, lines$line), c("filename", "line", "self", "total")]
    }
    expect_equal(figures(y), figures(x), ignore_attr = TRUE)
  }
  # In their order, without the boundaries between neighbours with equal stacks.
  expect_equal(rle(stacks(y))$values, rle(stacks(x))$values)
})

test_that("large profiles are summed by default", {
  path <- withr::local_tempfile()
  writeLines(c("sample.interval=20000", rep(c("\"f\" ", "\"g\" \"f\" "), 25001)), path)
  x <- read_rprof(path)
  # Two types of 50,002 samples each.
  expect_equal(nrow(read_written(x, "speedscope")$samples), 2)
  expect_equal(nrow(read_written(x, "speedscope", aggregate = FALSE)$samples), 50002)
  writeLines(c("sample.interval=20000", rep(c("\"f\" ", "\"g\" \"f\" "), 25000)), path)
  expect_equal(nrow(read_written(read_rprof(path), "speedscope")$samples), 50000)
})

test_that("each source and type is a profile, and each source comes back", {
  x <- combine_profiles(small_profile(), read_pprof(data_path("pprof", "go_cpu.pb.gz")))
  y <- expect_no_warning(read_written(x, "speedscope"))
  expect_equal(nrow(y$sources), 2)
  names <- y$.comments$comment[y$.comments$source_id == 1]
  expect_equal(names[1:2], c("small.out: samples", "small.out: cpu"))
  expect_match(names[[3]], "^R package profile ")
  expect_equal(sums_by_stack(y, "samples"), sums_by_stack(x, "samples"))
  time <- sums_by_stack(x, "cpu", source = 2L)
  expect_equal(sums_by_stack(y, "time", source = 2L), time)
})

test_that("losses are counted", {
  x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
  x$sample_values$value[3:5] <- -1
  expect_warning(y <- read_written(x, "speedscope"), "6 .*negative|negative", class = "profile_warning_lossy")
  expect_equal(sum(y$sample_values$value[y$sample_values$type == "samples"]), 249)
})

test_that("a file of py-spy is read", {
  x <- expect_no_warning(read_speedscope(data_path("speedscope", "py-spy.json"), source_uri = "py-spy"))
  expect_equal(nrow(x$sources), 2)
  expect_equal(x$sources$.duration_nanos, c(0.61e9, 0.04e9))
  expect_equal(unique(x$sample_values[c("type", "unit")]), tibble::tibble(type = "time", unit = "seconds"))
  expect_equal(sum(x$sample_values$value), 0.65)
  expect_equal(x$.comments$source_id, c(1, 1, 1, 2))
  expect_match(x$.comments$comment, "^Thread |^py-spy")
  by_function <- summary(x)$by_function
  expect_equal(as.numeric(by_function$total[by_function$name == "main"]), 0.59)
})

test_that("a frame that is not closed ends with its profile", {
  x <- expect_profile_warning(read_speedscope(data_path("found", "speedscope-open-frame.json")), "profile_warning_repaired")
  by_function <- summary(x)$by_function
  expect_equal(by_function$name, c("main", "work"))
  expect_equal(as.numeric(by_function$self), c(80, 20))
  expect_equal(as.numeric(by_function$total), c(100, 20))
})

test_that("units that speedscope does not have are kept", {
  x <- read_speedscope(data_path("found", "unknown-unit.speedscope.json"))
  y <- expect_no_warning(read_written(x, "speedscope"))
  expect_equal(y$sample_values, x$sample_values)
  expect_equal(y$sample_values$unit, c("count", "furlongs"))
  expect_equal(sum(summary(y, type = "samples")$by_function$self), 3)
  # The Firefox Profiler does not have this unit, and cannot store it.
  expect_profile_warning(read_written(x, "firefox"), "profile_warning_lossy")
  # Objects and bytes, allocated and in use.
  heap <- read_pprof(data_path("pprof", "go_heap.pb.gz"))
  sums <- function(x) {
    sums <- tapply(x$sample_values$value, paste(x$sample_values$type, x$sample_values$unit), sum)
    in_order(stats::setNames(as.numeric(sums), names(sums)))
  }
  expect_length(sums(heap), 4)
  expect_equal(sums(read_written(heap, "speedscope")), sums(heap))
})

test_that("a field that occurs twice is an error", {
  expect_snapshot(read_speedscope(data_path("found", "dupkey.speedscope.json")), error = TRUE)
})

test_that("errors say where a file is damaged", {
  text <- paste(readLines(data_path("speedscope", "py-spy.json"), warn = FALSE), collapse = "\n")
  frames <- sub("\"frames\":[[].*$", "\"frames\":[]}}", text)
  expect_snapshot(print_refusals(
    read_speedscope,
    sub("[13,", "[13,x", text, fixed = TRUE), sub("[13,", "[13000,", text, fixed = TRUE), frames,
    "{}", "[1, 2]", "", "\"f\" ", "{\"shared\": 1}"
  ))
})

test_that("a truncated file is read as far as it goes", {
  path <- withr::local_tempfile()
  write_speedscope(read_rprof(system.file("samples/rprof/1.out", package = "profile")), path)
  bytes <- file_bytes(path)
  y <- expect_profile_warning(read_speedscope(write_bytes(bytes[seq_len(length(bytes) - 10)])), "profile_warning_incomplete")
  expect_equal(profile_problems(y)$problem, "cut_json")
  expect_gt(nrow(y$samples), 400)
})

test_that("a profile whose frames last no time says so", {
  path <- data_path("found", "zero-time.speedscope.json")
  expect_snapshot({
    x <- read_profile(path, source_uri = "zero-time.speedscope.json")
    x
  }, transform = function(lines) gsub("`[^`]*(zero-time[^`]*)`", "`\\1`", lines))
  # The cause of others is not that.
  x <- profile_v1_from_v2(small_profile())
  x$samples <- x$samples[0, ]
  expect_match(hint_for(x, summary(x)), "a filter or a condition has removed them")
})

test_that("fractions of a unit of time become nanoseconds where numbers are whole", {
  x <- read_profile(data_path("found", "fractional-times.speedscope.json"))
  path <- withr::local_tempfile(fileext = ".pb.gz")
  for (format in c("pprof", "otlp")) {
    y <- expect_no_warning(read_written(x, format))
    expect_identical(unique(y$sample_values$unit), "nanoseconds", info = format)
    expect_equal(sums_by_stack(y, "time"), sums_by_stack(x, "time", factor = 1e6), info = format)
  }
  expect_no_warning(write_callgrind(x, path))
  expect_true("events: time_nanoseconds" %in% readLines(path))
  # Files of Bun end at a fraction of a microsecond.
  x <- read_profile(data_path("found", "fractional-end.cpuprofile"))
  y <- expect_no_warning(read_written(x, "pprof"))
  expect_equal(sum(y$sample_values$value[y$sample_values$type == "time"]), 3249750)
})
