# tier: gate
# Files of different formats have one quantity under different names and in different units: they are compared and summed
# as one.

# The paths of the same profile in each format that stores time.
in_all_formats <- function(x, envir = parent.frame()) {
  dir <- withr::local_tempdir(.local_envir = envir)
  names <- c("a.out", "a.pb.gz", "a.otlp", "a.otlp.json", "a.speedscope.json", "a.firefox.json", "a.cpuprofile")
  paths <- file.path(dir, names)
  for (path in paths) write_profile(x, path)
  rlang::set_names(paths, names)
}

# Each sample twice: the same functions take twice as long.
doubled <- function(x) {
  y <- combine_profiles(x, x)
  y$samples$source_id <- 1L
  y$sources <- y$sources[1, ]
  y[startsWith(names(y), ".")] <- NULL
  y
}

test_that("equal profiles are equal in each pair of formats, and a slowdown is found", {
  x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
  base <- in_all_formats(x)
  new <- in_all_formats(doubled(x))
  expect_silent(runs <- lapply(base, read_profile))
  slow <- lapply(new, read_profile)
  found <- list()
  for (from in names(runs)) {
    for (to in names(runs)) {
      same <- compare_profiles(rep(runs[from], 3), rep(runs[to], 3))
      twice <- compare_profiles(rep(runs[from], 3), rep(slow[to], 3))
      expect_identical(unique(same$verdict), "none found", label = paste(from, to))
      figures <- c(attr(same, "whole")$ratio, attr(twice, "whole")$ratio)
      expect_equal(figures, c(1, 2), tolerance = 0.01, label = paste(from, to))
      expect_identical(unique(attr(twice, "whole")$verdict), "more")
      expect_identical(attr(same, "type"), "time")
      expect_equal(attr(same, "whole")$base, 2.52)
      error <- expect_error(expect_no_regression(rep(runs[from], 3), rep(slow[to], 3)))
      expect_match(conditionMessage(error), "`new` takes more than `base`")
      expect_no_error(expect_no_regression(rep(runs[from], 3), rep(runs[to], 3)))
    }
  }
})

# A profile of two runs with these units.
in_units <- function(type, units, values) {
  runs <- Map(function(unit, value) {
    x <- small_profile()
    x$sample_values$type <- type
    x$sample_values$unit <- unit
    x$sample_values$value <- value
    x$sources <- x$sources[c("source_id", "source_type", "source_uri", "source_timestamp")]
    x
  }, units, values)
  unname(runs)
}

test_that("units of one quantity are converted into the first one", {
  for (units in list(
    c("nanoseconds", "ms"), c("bytes", "kilobytes"), c("kB", "MiB"), c("seconds", "\u00b5s"), c("By", "kBy"), c("microseconds", "seconds")
  )) {
    size <- c(
      nanoseconds = 1, ms = 1e6, bytes = 1, kilobytes = 1024, kB = 1024, MiB = 1024^2, seconds = 1e9, "\u00b5s" = 1e3, By = 1,
      kBy = 1000, microseconds = 1e3
    )[units]
    amount <- max(size) * 8
    runs <- in_units("amount", units, amount / size)
    n <- nrow(runs[[1]]$samples)
    both <- combine_profiles(runs)
    expect_identical(unique(both$sample_values$unit), units[[1]])
    expect_equal(unique(both$sample_values$value), amount / size[[1]])
    expect_identical(validate_profile(both), both)
    # Also if one profile has both, for example because it was read from such a file.
    mixed <- both
    second <- mixed$sample_values$sample_id > n
    mixed$sample_values$unit[second] <- units[[2]]
    mixed$sample_values$value[second] <- amount / size[[2]]
    for (x in list(both, mixed)) {
      summary <- summary(x, type = "amount")
      expect_identical(attr(summary, "unit"), units[[1]])
      expect_equal(attr(summary, "sum"), 2 * n * amount / size[[1]])
      tree <- call_tree(x, type = "amount")
      expect_equal(attr(tree, "sum"), 2 * n * amount / size[[1]])
    }
    compared <- compare_profiles(rep(runs[1], 3), rep(runs[2], 3), type = "amount")
    expect_equal(attr(compared, "whole")$ratio, 1)
  }
})

test_that("values are never rounded by combining", {
  runs <- in_units("cpu", c("milliseconds", "nanoseconds"), c(3, 1234567))
  # A whole number in the smaller unit only.
  both <- combine_profiles(runs)
  expect_identical(unique(both$sample_values$unit), "nanoseconds")
  expect_setequal(both$sample_values$value, c(3e6, 1234567))
  path <- withr::local_tempfile(fileext = ".pb.gz")
  expect_no_error(write_profile(both, path))
  # In neither of both.
  runs <- in_units("cpu", c("nanoseconds", "milliseconds"), c(1, 2^53 - 1))
  both <- combine_profiles(runs)
  expect_setequal(both$sample_values$unit, c("nanoseconds", "milliseconds"))
  expect_equal(attr(summary(both, type = "cpu"), "unit"), "nanoseconds")
})

test_that("runs without a common type are an error that lists the types", {
  memory <- in_units("alloc_space", "bytes", 5)
  time <- small_profile()
  elapsed <- in_units("wall", "nanoseconds", 5)
  cpu <- in_units("cpu", "seconds", 5)
  expect_snapshot(error = TRUE, {
    compare_profiles(time, memory)
    compare_profiles(memory, time, type = "alloc_space")
    compare_profiles(c(cpu, cpu), c(cpu, elapsed))
    expect_no_regression(list(time, time, time), c(memory, memory, memory))
  })
  expect_error(compare_profiles(time, memory), class = "profile_error_unsupported")
})

test_that("figures by label have one unit, and count samples", {
  x <- read_pprof(data_path("pprof", "go_cpu.pb.gz"))
  x$sample_values$value <- as.numeric(seq_len(nrow(x$sample_values)))
  half <- rep(c("a", "b"), length.out = nrow(x$samples))
  x$.labels <- tibble::tibble(
    sample_id = x$samples$sample_id, key = "half", str = half, num = NA_real_, unit = NA_character_
  )
  figures <- summary(x, by = "half", type = "cpu")
  values <- x$sample_values[x$sample_values$type == "samples", ]
  expected <- tapply(values$value, x$.labels$str[match(values$sample_id, x$.labels$sample_id)], sum)
  expect_equal(figures$samples[order(figures$half)], as.vector(expected))
  # Half of the values are in milliseconds.
  mixed <- x
  half <- mixed$sample_values$type == "cpu" & mixed$sample_values$sample_id %% 2 == 0
  mixed$sample_values$unit[half] <- "ms"
  mixed$sample_values$value[half] <- mixed$sample_values$value[half] / 1e6
  expect_equal(summary(mixed, by = "half", type = "cpu"), figures, ignore_attr = TRUE)
})
