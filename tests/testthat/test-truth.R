# tier: fast
# Compares every file in data/rprof with the description of an independent reader.

truth <- function() {
  skip_if_not_installed("jsonlite")
  jsonlite::fromJSON(data_path("rprof-truth.json"), simplifyVector = TRUE)
}

# The truth file does not join names with line feeds, and shows bytes that are
# not UTF-8 as they are.
comparable <- function(files) {
  grep("^(newline|latin1|edit_nul)", files, invert = TRUE, value = TRUE)
}

sorted <- function(counts) {
  counts <- unlist(counts)
  if (is.null(counts)) {
    return(stats::setNames(integer(), character()))
  }
  counts[order(names(counts), method = "radix")]
}

table_counts <- function(x) {
  counts <- table(x)
  sorted(stats::setNames(as.list(as.integer(counts)), names(counts)))
}

test_that("samples, blocks and intervals agree with the truth", {
  truth <- truth()
  expect_gt(length(rprof_files()), 60)
  for (file in rprof_files()) {
    x <- read_quietly(rprof_path(file))
    true <- truth[[file]]
    info <- file
    expect_equal(length(unique(x$sample_locations$sample_id)), true$n, info = info)
    expect_equal(nrow(x$sources), true$nseg, info = info)
    if (file != "edit_no_header.out") {
      expect_equal(as.numeric(unique(x$sources$.period)), as.numeric(true$intervals), info = info)
    }
    expect_equal(sum(x$sample_values$type == "nodes"), true$mem, info = info)
  }
})

test_that("self, total, frames, depth and places agree with the truth", {
  truth <- truth()
  for (file in comparable(rprof_files())) {
    x <- read_quietly(rprof_path(file))
    true <- truth[[file]]
    flat <- as_tibble(x)
    expect_equal(nrow(flat), true$frames, info = file)
    expect_equal(max(0L, flat$depth), true$depth, info = file)
    if (nrow(flat) == 0) next
    expect_equal(table_counts(flat$name[flat$depth == 1]), sorted(true$self), info = file)
    once <- !duplicated(flat[c("sample_id", "name")])
    expect_equal(table_counts(flat$name[once]), sorted(true$total), info = file)
    place <- paste0(flat$name, "@", flat$filename, ":", flat$line)
    expect_equal(table_counts(place), sorted(true$locs), info = file)
  }
})

test_that("summary() agrees with the truth", {
  truth <- truth()
  for (file in comparable(rprof_files())) {
    by_function <- summary(read_quietly(rprof_path(file)))$by_function
    true <- truth[[file]]
    self <- stats::setNames(as.list(by_function$self), by_function$name)
    expect_equal(sorted(self[by_function$self > 0]), sorted(true$self), info = file)
    total <- stats::setNames(as.list(by_function$total), by_function$name)
    expect_equal(sorted(total), sorted(true$total), info = file)
  }
})

test_that("names with line feeds are joined", {
  x <- read_quietly(rprof_path("newline_plain.out"))
  expect_equal(nrow(x$samples), 100)
  expect_equal(sum(stacks(x) == "spin < with\nnewline < work"), 47)
  # Under memory profiling a prefix starts each sample, so the count is exact.
  x <- read_quietly(rprof_path("newline_memory_gc_line.out"))
  expect_equal(nrow(x$samples), 105)
  expect_equal(sum(stacks(x) == "spin < with\nnewline < work"), 43)
})

test_that("latin1 bytes and NUL bytes become text", {
  x <- read_quietly(rprof_path("latin1_names.out"))
  expect_equal(unique(stacks(x)), "gr\u00fc\u00dfe < eval < eval")
  expect_true("/home/user/out/lat/m\u00fcller.R" %in% x$functions$filename)
  x <- read_quietly(rprof_path("edit_nul_byte.out"))
  expect_equal(sum(stacks(x) == "a<00>b < c"), 1)
})
