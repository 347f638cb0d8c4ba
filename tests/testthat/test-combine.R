# tier: fast
# Combining profiles: rows that are shared, ids, columns of users, and what cannot be combined.

mixed <- function() {
  list(
    read_quietly(rprof_path("basic_all.out")),
    read_quietly(rprof_path("multi_line.out")),
    read_pprof(system.file("samples/proto/1.out.prof.pb.gz", package = "profile")),
    small_profile(version = "1.0")
  )
}

test_that("combined profiles contain samples, stacks, values and sources of all profiles in order", {
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

test_that("if all samples have the same types, columns of values are computed", {
  skip_on_cran()
  files <- rprof_path(c("basic_all.out", "basic_memgc.out"))
  other <- small_profile()
  combined <- function(lazy) {
    withr::local_options(profile.lazy = lazy)
    x <- lapply(files, read_quietly)
    list(combine_profiles(x), compact_profile(x[[1]]), combine_profiles(x[[1]], other))
  }
  results <- combined(TRUE)
  for (column in c("sample_id", "type", "unit")) {
    of_result <- vapply(results, function(x) is_computed(x$sample_values[[column]]), NA)
    expect_identical(of_result, c(TRUE, TRUE, FALSE), info = column)
  }
  expect_identical(results, combined(FALSE))
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

test_that("columns and tables with a leading dot are kept, including a user's own", {
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
  # A function with more information is a different function.
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

test_that("problems refer to their source", {
  path <- write_file("sample.interval=20000", "\"f\" \"g\" ", "\"f\" \"g")
  odd <- read_quietly(path)
  x <- combine_profiles(small_profile(), odd, odd)
  expect_equal(profile_problems(x)$source_id, 2:3)
  expect_equal(x$sources$source_uri[2:3], rep(path, 2))
})

test_that("errors name columns that cannot be combined", {
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

test_that("information of OpenTelemetry is kept and refers to the same rows", {
  all <- c(otlp_profiles(), list(small_profile()))
  x <- combine_profiles(all)
  validate_profile(x)
  # The first column is the number of the source.
  unnumbered <- function(y) lapply(otlp_content(y), function(words) sub("^[0-9]+ at", "at", words))
  # The type `wall` is first in nanoseconds.
  in_nanoseconds <- function(words) sub("-3 ms wall", "-3000000 nanoseconds wall", sub("types wall ms", "types wall nanoseconds", words))
  before <- lapply(all, function(y) lapply(unnumbered(y), in_nanoseconds))
  expect_equal(unnumbered(x)$samples, unlist(lapply(before, `[[`, "samples")))
  expect_equal(unnumbered(x)$sources, unlist(lapply(before, `[[`, "sources")))
  expect_identical(combine_profiles(combine_profiles(all[1:2]), combine_profiles(all[3:4])), x)
  expect_identical(combine_profiles(all[[1]]), all[[1]])
  expect_through_otlp(combine_profiles(all[1:3]))
  # Scopes and resources are kept as recorded, like sources; rows with equal attributes are stored once.
  twice <- combine_profiles(all[[1]], all[[1]])
  rows <- function(y, tables) vapply(tables, function(table) nrow(y[[table]]), 0)
  once <- c("functions", "locations", ".mappings", ".mapping_attributes", ".location_attributes")
  expect_equal(rows(twice, once), rows(all[[1]], once))
  others <- c(
    "sources", ".resources", ".scopes", ".resource_entities", ".resource_attributes", ".scope_attributes",
    ".source_attributes", ".labels", ".comments"
  )
  expect_equal(rows(twice, others), 2 * rows(all[[1]], others))
  expect_equal(twice$sources$.scope_id, 1:6)
  expect_equal(twice$.scopes$resource_id, c(1L, 1L, 2L, 3L, 3L, 4L))
  expect_through_otlp(twice)
})

test_that("mappings and locations that differ only in attributes are not merged", {
  x <- otlp_profiles()[[1]]
  changed <- function(table, row, ...) {
    x[[table]][row, names(list(...))] <- list(...)
    x
  }
  mappings <- function(y) nrow(combine_profiles(x, y)$.mappings)
  locations <- function(y) nrow(combine_profiles(x, y)$locations)
  expect_equal(mappings(x), 3)
  expect_equal(locations(x), 6)
  for (y in list(
    changed(".mapping_attributes", 1, key = "Arch"),
    changed(".mapping_attributes", 1, value = "X86"),
    changed(".mapping_attributes", 1, type = "bytes", value = "eHg2"),
    changed(".mapping_attributes", 1, unit = "bits"),
    changed(".mapping_attributes", 1, unit = "NA")
  )) {
    # Their locations differ as well.
    expect_equal(mappings(y), 4)
    expect_equal(locations(y), 8)
    expect_through_otlp(combine_profiles(x, y))
  }
  for (y in list(
    changed(".location_attributes", 1, key = "Clock"),
    changed(".location_attributes", 1, value = "1.25"),
    changed(".location_attributes", 1, unit = NA_character_)
  )) {
    expect_equal(mappings(y), 3)
    expect_equal(locations(y), 7)
    expect_through_otlp(combine_profiles(x, y))
  }
  # The attributes of two rows may look like one attribute of another row.
  y <- x
  x$.mapping_attributes <- tibble::tibble(
    mapping_id = 2L, key = c("a", "b"), type = "string", value = c("1", "2"), unit = NA_character_
  )
  y$.mapping_attributes <- tibble::tibble(
    mapping_id = 2L, key = "a", type = "string", value = "1\rNA\nb\rstring\r2", unit = NA_character_
  )
  expect_equal(nrow(combine_profiles(x, y)$.mappings), 3)
})

test_that("mappings and locations with the same attributes are merged, in any order of attributes", {
  x <- otlp_profiles()[[1]]
  y <- x
  y$.mapping_attributes <- x$.mapping_attributes[c(3, 1, 2), ]
  # With other ids as well.
  y$.mappings$mapping_id <- c(30L, 10L, 20L)
  y$locations$.mapping_id <- c(30L, 10L, 20L)[x$locations$.mapping_id]
  y$.mapping_attributes$mapping_id <- c(30L, 10L, 20L)[y$.mapping_attributes$mapping_id]
  both <- combine_profiles(x, y)
  expect_equal(nrow(both$.mappings), 3)
  expect_equal(both$.mapping_attributes, x$.mapping_attributes)
  expect_equal(both$.location_attributes, x$.location_attributes)
  expect_through_otlp(both)
})
