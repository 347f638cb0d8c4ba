# tier: fast
# Conversion between the versions of the tables.

test_that("version 1.0 becomes 2.0 with a row for each count", {
  x <- small_profile(version = "1.0")
  x$samples$value <- c(2L, 1L, 3L)
  y <- profile_v2_from_v1(x)
  expect_s3_class(y, c("profile_v2", "profile_data"), exact = TRUE)
  validate_profile(y)
  expect_equal(stacks(y), rep(c("f < g", "h < g", "f < g"), c(2, 1, 3)))
  expect_equal(y$sample_values, tibble::tibble(
    sample_id = 1:6, type = "samples", unit = "count", value = 1
  ))
  expect_equal(y$sample_locations$depth, rep(1:2, 6))
  expect_equal(y$sources$source_type, "rprof")
  expect_equal(y$sources$source_uri, NA_character_)
  expect_equal(y$sources$.period, 10000)
  expect_equal(y$meta$value, "2.0")
})

test_that("the hidden component determines the type of the source", {
  x <- small_profile(version = "1.0")
  x$.rprof <- NULL
  expect_equal(profile_v2_from_v1(x)$sources$source_type, "manual")
  x$.msg <- list()
  expect_equal(profile_v2_from_v1(x)$sources$source_type, "pprof")
})

test_that("converting to version 1.0 and back changes nothing, for every file", {
  for (file in rprof_files()) {
    one <- read_quietly(rprof_path(file), version = "1.0")
    two <- profile_v2_from_v1(one)
    validate_profile(two)
    expect_equal(stacks(two), stacks(read_quietly(rprof_path(file))), info = file)
    expect_identical(profile_v1_from_v2(two), one, info = file)
  }
})

test_that("converting hand-made profiles and back changes nothing, including their origin", {
  x <- small_profile(version = "1.0")
  back <- function(x) profile_v1_from_v2(profile_v2_from_v1(x))
  origins <- list(
    none = list(),
    rprof = list(.rprof = list(
      header = "memory profiling: GC profiling: sample.interval=1000",
      files = c("#File 7: a.R", "#File 2: ", "#File 7: caf\u00e9: b.R")
    )),
    runs = list(.rprof = list(
      header = c("sample.interval=20000", "line profiling: sample.interval=500"),
      files = character()
    )),
    silent = list(.rprof = list(header = character(), files = character())),
    pprof = list(.msg = list(comment = c("one", "", "one"))),
    pprof_silent = list(.msg = list(comment = character()))
  )
  for (kind in names(origins)) {
    x$.rprof <- NULL
    x <- new_profile_data(c(unclass(x)[1:5], origins[[kind]]), "1.0")
    expect_identical(back(x), x, info = kind)
  }
  # Version 1.x had another object in this component.
  x$.msg <- quote(message)
  expect_identical(back(x)$.msg, list(comment = character()))
  x$.msg <- NULL
  x$.rprof <- list(header = "no header", files = c("no file", NA, "#File 1: a.R"))
  expect_identical(back(x)$.rprof, list(header = character(), files = "#File 1: a.R"))
})

test_that("file information of version 1.0 is kept in version 2.0 and written", {
  one <- read_rprof(rprof_path("append_line2.out"), version = "1.0")
  two <- profile_v2_from_v1(one)
  runs <- read_rprof(rprof_path("append_line2.out"))
  expect_equal(two$sources$.period, runs$sources$.period)
  expect_equal(two$sources$.line_profiling, runs$sources$.line_profiling)
  expect_equal(two$.files[c("number", "filename")], runs$.files[c("number", "filename")])
  plain <- rprof_path("basic_line.out")
  expect_equal(profile_v2_from_v1(read_rprof(plain, version = "1.0"))$.files, read_rprof(plain)$.files)
  expect_true(all(two$samples$source_id == 1L))
  # Version 1.0 itself is written as one run, with the numbers of its files.
  one <- small_profile(version = "1.0")
  one$.rprof$files <- "#File 9: a.R"
  path <- withr::local_tempfile()
  write_rprof(one, path)
  expect_equal(readLines(path), c(
    "line profiling: sample.interval=10000", "#File 9: a.R",
    "9#3 \"f\" 9#7 \"g\" ", "\"h\" 9#8 \"g\" ", "9#3 \"f\" 9#7 \"g\" "
  ))
})

test_that("version 2.0 becomes 1.0 sample by sample", {
  x <- small_profile()
  x$locations$.frame_type <- "r"
  y <- profile_v1_from_v2(x)
  validate_profile(y)
  expect_equal(y$samples$value, c(1L, 1L, 1L))
  expect_equal(y$samples, small_profile(version = "1.0")$samples)
  # Version 1.0 has no columns with a leading dot.
  expect_equal(y$locations, small_profile(version = "1.0")$locations)
  x$sample_values$value <- c(2, 0, 5)
  expect_equal(profile_v1_from_v2(x)$samples$value, c(2L, 5L))
})

test_that("content that version 1.0 cannot store is an error", {
  x <- small_profile()
  x$sample_values$type <- "cpu"
  x$sample_values$unit <- "nanoseconds"
  expect_error(profile_v1_from_v2(x), class = "profile_error_lossy")
  x <- small_profile()
  x$sample_values$value[2] <- 3e9
  expect_error(profile_v1_from_v2(x), "Sample 2", class = "profile_error_lossy")
  x <- small_profile(version = "1.0")
  x$samples$value <- rep(.Machine$integer.max, 3)
  expect_error(profile_v2_from_v1(x), class = "profile_error_unsupported")
})

test_that("only errors of readers suggest version 2.0", {
  small <- small_profile()
  time <- small
  time$sample_values$type <- "cpu"
  time$sample_values$unit <- "nanoseconds"
  many <- small
  many$sample_values$value[2] <- 3e9
  half <- small
  half$sample_values$value[3] <- 0.5
  of_time <- withr::local_tempfile()
  write_pprof(time, of_time)
  of_many <- withr::local_tempfile()
  write_pprof(many, of_many, aggregate = FALSE)
  expect_snapshot({
    writeLines(errors_of({
      profile_v1_from_v2(time)
      profile_v1_from_v2(many)
      profile_v1_from_v2(half)
      read_pprof(of_time, version = "1.0")
      read_pprof(of_many, version = "1.0")
      read_profile(of_time, version = "1.0")
    }))
  })
  error <- expect_error(read_pprof(of_time, version = "1.0"), class = "profile_error_lossy")
  expect_equal(error$version, "1.0")
})

test_that("problems found while reading are kept", {
  path <- write_file("sample.interval=20000", "\"f\" \"g\" ", "\"f\" \"g")
  one <- read_quietly(path, version = "1.0")
  two <- read_quietly(path)
  expect_equal(profile_problems(two)$source_id, 1L)
  expect_identical(profile_v2_from_v1(one)$.problems, two$.problems)
  expect_identical(profile_v1_from_v2(two)$.problems, one$.problems)
  one$.problems <- one$.problems[0, ]
  expect_identical(profile_v2_from_v1(one)$.problems, two$.problems[0, ])
})

test_that("a profile of the requested version is returned unchanged", {
  x <- small_profile()
  expect_identical(profile_v2_from_v1(x), x)
  x <- small_profile(version = "1.0")
  expect_identical(profile_v1_from_v2(x), x)
  x$samples$value[1] <- 0L
  expect_error(profile_v1_from_v2(x), class = "profile_error_invalid")
})

test_that("frame types are unchanged by the core", {
  # No reader sets frame types here.
  same <- function(x) rust(rust_convert(x, "2.0", FALSE), rlang::current_env())$locations
  x <- small_profile()
  plain <- x$locations
  x$locations$.inlined <- rep_len(c(TRUE, FALSE), nrow(plain))
  x$locations$.frame_type <- rep_len(c("r", NA, "native", "caf\u00e9"), nrow(plain))
  x$locations$.column <- 1L
  in_order <- c(names(plain), ".column", ".inlined", ".frame_type")
  expect_identical(same(x), x$locations[in_order])
  x$locations <- plain
  x$locations$.frame_type <- NA_character_
  expect_identical(same(x), plain)
})
