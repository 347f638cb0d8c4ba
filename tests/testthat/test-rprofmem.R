# tier: fast
# Files of `Rprofmem()`, compared with other readers.

# Stacks of samples, innermost function first, by the frames of the tables.
names_of_stacks <- function(x) {
  frames <- as_tibble(x)
  unname(split(frames$name, factor(frames$sample_id, x$samples$sample_id)))
}

values_of <- function(x, type) {
  values <- x$sample_values[x$sample_values$type == type, ]
  values$value[match(x$samples$sample_id, values$sample_id)]
}

# An independent reader, for names without quotes.
simple_rprofmem <- function(path) {
  lines <- readLines(path)
  head <- sub("^([0-9]+ :|new page:).*", "\\1", lines)
  names <- regmatches(lines, gregexpr("\"[^\"]*\" ", lines))
  list(
    bytes = suppressWarnings(as.numeric(sub(" :", "", head))),
    names = lapply(names, function(name) gsub("^\"|\" $", "", name))
  )
}

rprofmem_files <- dir(data_path("rprof"), pattern = "^rprofmem", full.names = TRUE)

test_that("real files have the allocations that an independent reader finds", {
  for (path in rprofmem_files) {
    x <- expect_no_warning(read_rprofmem(path, source_uri = NA))
    expect_identical(validate_profile(x), x)
    expected <- simple_rprofmem(path)
    expect_equal(nrow(x$samples), length(expected$bytes), info = path)
    if (nrow(x$samples) > 0) {
      expect_equal(values_of(x, "alloc_space"), expected$bytes)
      expect_equal(values_of(x, "alloc_objects"), ifelse(is.na(expected$bytes), NA, 1))
      expect_equal(names_of_stacks(x), expected$names)
    }
    expect_equal(x$sources$source_type, "rprofmem")
  }
})

test_that("profmem reads the same", {
  skip_if_not_installed("profmem")
  for (path in rprofmem_files) {
    x <- read_rprofmem(path)
    theirs <- profmem::readRprofmem(path)
    expect_equal(nrow(theirs), nrow(x$samples))
    if (nrow(theirs) > 0) {
      expect_equal(values_of(x, "alloc_space"), as.numeric(theirs$bytes))
      expect_equal(names_of_stacks(x), lapply(theirs$trace, as.character))
    }
  }
})

test_that("what R records now can be read", {
  skip_if_not(capabilities("profmem"), "R without memory profiling")
  path <- withr::local_tempfile()
  allocate <- function(n) numeric(n)
  utils::Rprofmem(path, threshold = 1e4)
  for (i in 1:5) allocate(10000 * i)
  utils::Rprofmem(NULL)
  x <- expect_no_warning(read_rprofmem(path))
  own <- vapply(names_of_stacks(x), function(names) "allocate" %in% names, NA)
  bytes <- values_of(x, "alloc_space")[own]
  expect_equal(bytes[!is.na(bytes)], 48 + 8e4 * 1:5)
  # Nothing allocated: an empty file.
  utils::Rprofmem(path, threshold = 1e12)
  utils::Rprofmem(NULL)
  if (file.size(path) == 0) {
    expect_equal(nrow(expect_no_warning(read_rprofmem(path))$samples), 0)
  }
})

test_that("pages of small objects have no bytes, also in other formats", {
  path <- write_file("8048 :\"f\" \"main\" ", "new page:\"g\" \"main\" ", "new page:")
  x <- expect_no_warning(read_profile(path))
  expect_equal(values_of(x, "alloc_space"), c(8048, NA, NA))
  expect_equal(values_of(x, "new_pages"), c(0, 1, 1))
  expect_equal(x$sources$.default_type, "alloc_space")
  expect_equal(names_of_stacks(x), list(c("f", "main"), c("g", "main"), character()))
  pprof <- withr::local_tempfile()
  write_pprof(x, pprof, aggregate = FALSE)
  expect_equal(values_of(read_pprof(pprof), "alloc_space"), c(8048, 0, 0))
})

test_that("lines that old versions of R joined are separated", {
  path <- withr::local_tempfile()
  writeBin(charToRaw("200 :360 :new page:8040 :\"double\" \n48 :"), path)
  x <- expect_no_warning(read_rprofmem(path))
  expect_equal(values_of(x, "alloc_space"), c(200, 360, NA, 8040, 48))
})

test_that("irregular files are reported", {
  path <- write_file("48 :\"f\" \"ma", "48 :\"g\" ", "hello")
  expect_warning(x <- read_rprofmem(path), class = "profile_warning_incomplete")
  expect_equal(profile_problems(x)$problem, c("torn_sample", "stray_text"))
  expect_equal(profile_problems(x)$line, c(2, 3))
  expect_error(read_rprofmem(rprof_path("basic_all.out")), "read_rprof", class = "profile_error_parse")
  expect_error(read_rprof(rprofmem_files[[1]]), "read_rprofmem", class = "profile_error_parse")
  expect_error(read_rprofmem(write_file("hello")), "192 :", class = "profile_error_parse")
  expect_error(read_rprofmem("nowhere"), class = "profile_error_open")
  expect_error(read_rprofmem(path, 1), class = "rlib_error_dots_nonempty")
})
