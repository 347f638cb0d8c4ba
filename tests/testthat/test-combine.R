mixed <- function() {
  list(
    read_quietly(rprof_path("basic_all.out")),
    read_quietly(rprof_path("multi_line.out")),
    read_pprof(system.file("samples/proto/1.out.prof.pb.gz", package = "profile")),
    small_profile(version = "1.0")
  )
}

test_that("samples, stacks, values and sources of all profiles are there, in order", {
  all <- mixed()
  x <- combine_profiles(all)
  validate_profile(x)
  v2 <- lapply(all, profile_v2_from_v1)
  expect_equal(stacks(x), unlist(lapply(v2, stacks)))
  for (column in c("source_type", "source_uri", "source_timestamp", ".period")) {
    expect_equal(x$sources[[column]], unlist(lapply(v2, function(y) y$sources[[column]])))
  }
  values <- function(y) y$sample_values[c("type", "unit", "value")]
  expect_equal(values(x), do.call(rbind, lapply(v2, values)))
  expect_false(anyDuplicated(x$functions[-1]) > 0)
  expect_false(anyDuplicated(x$locations[-1]) > 0)
  expect_setequal(x$functions$name, unlist(lapply(v2, function(y) y$functions$name)))
})

test_that("the grouping of the arguments makes no difference", {
  all <- mixed()
  flat <- combine_profiles(!!!all)
  expect_identical(combine_profiles(all), flat)
  expect_identical(
    combine_profiles(combine_profiles(all[1:2]), combine_profiles(all[3:4])), flat
  )
  expect_identical(
    combine_profiles(all[[1]], combine_profiles(all[[2]], combine_profiles(all[3:4]))), flat
  )
})

test_that("one profile combines to itself, none to an empty one", {
  for (file in regular_files()) {
    x <- read_quietly(rprof_path(file))
    expect_identical(combine_profiles(x), x, info = file)
  }
  none <- combine_profiles()
  validate_profile(none)
  expect_equal(nrow(none$samples), 0)
  expect_identical(combine_profiles(list()), none)
  x <- small_profile()
  expect_identical(combine_profiles(none, x), combine_profiles(x))
})

test_that("combined runs are written as if they had been appended", {
  files <- rprof_path(c("basic_plain.out", "files120_line_numfiles200.out", "basic_all.out"))
  x <- combine_profiles(lapply(files, read_quietly))
  path <- withr::local_tempfile()
  write_rprof(x, path)
  expect_identical(file_bytes(path), unlist(lapply(files, file_bytes)))
})

test_that("columns and tables with a leading dot come along, a user's own too", {
  a <- small_profile()
  b <- small_profile()
  a$functions$.package <- c("base", "stats", NA)[seq_len(nrow(a$functions))]
  a$locations$.frame_type <- rep_len(c("r", NA, "cpython"), nrow(a$locations))
  a$samples$.day <- as.Date("2026-01-01") + seq_len(nrow(a$samples))
  a$.notes <- tibble::tibble(sample_id = c(3L, NA), note = c("odd", "none"))
  b$.notes <- tibble::tibble(sample_id = 2L, note = "even", who = "me")
  b$.team <- tibble::tibble(name = "ours")
  x <- combine_profiles(a, b)
  validate_profile(x)
  n <- nrow(a$samples)
  expect_equal(x$samples$.day, c(a$samples$.day, rep(as.Date(NA), n)))
  expect_equal(x$.notes$sample_id, c(3L, NA, n + 2L))
  expect_equal(x$.notes$who, c(NA, NA, "me"))
  expect_equal(x$.team, b$.team)
  expect_equal(
    x$locations$.frame_type, c(a$locations$.frame_type, rep(NA, nrow(b$locations)))
  )
  # A function that is known better is another one.
  expect_equal(sum(x$functions$name == a$functions$name[1]), 2)
})

test_that("ids need not be 1, 2, 3, ...", {
  a <- small_profile()
  b <- a
  other <- function(id) -7L + 1000000L * id
  b$samples$sample_id <- other(b$samples$sample_id)
  b$sample_values$sample_id <- other(b$sample_values$sample_id)
  b$sample_locations$sample_id <- other(b$sample_locations$sample_id)
  b$locations$location_id <- rev(b$locations$location_id)
  b$locations$function_id <- b$locations$function_id
  b$sample_locations$location_id <- nrow(b$locations) + 1L - b$sample_locations$location_id
  validate_profile(b)
  expect_identical(combine_profiles(b), a)
})

test_that("problems tell which source they are about", {
  path <- write_file("sample.interval=20000", "\"f\" \"g\" ", "\"f\" \"g")
  odd <- read_quietly(path)
  x <- combine_profiles(small_profile(), odd, odd)
  expect_equal(profile_problems(x)$source_id, 2:3)
  expect_equal(x$sources$source_uri[2:3], rep(path, 2))
})

test_that("what cannot be combined is named", {
  x <- small_profile()
  y <- x
  x$samples$.mark <- 1
  y$samples$.mark <- "a"
  no_ids <- small_profile()
  no_ids$.notes <- tibble::tibble(sample_id = "tube 7")
  dangling <- x
  dangling$.notes <- tibble::tibble(sample_id = 99L)
  expect_snapshot(error = TRUE, {
    combine_profiles(x, y)
    combine_profiles(x, 1)
    combine_profiles(x, NULL)
    combine_profiles("a.out")
    combine_profiles(dangling)
    combine_profiles(no_ids)
    compact_profile(no_ids)
  })
  y$sample_locations$depth[2] <- 0L
  expect_error(combine_profiles(small_profile(), y), class = "profile_error_invalid")
})
