test_that("a profile prints what it is", {
  expect_snapshot({
    print(small_profile())
    print(small_profile(version = "1.0"))
    x <- read_rprof(rprof_path("append_line2.out"), source_uri = "append_line2.out")
    x
    format(x, n = 1)
    x <- suppressWarnings(read_rprof(rprof_path("killed_plain.out"), source_uri = "killed_plain.out"))
    x
  })
})

test_that("a profile that is not valid can still be printed", {
  x <- small_profile()
  x$functions <- x$functions[-1, ]
  expect_snapshot(x)
  x$meta <- 1
  expect_output(print(x), "Not valid")
  x$meta <- NULL
  expect_output(print(x), "Not valid")
  x[1:6] <- NULL
  expect_output(print(x), "Not valid")
})

test_that("version 2.0 has the documented tables", {
  x <- small_profile()
  expect_s3_class(x, c("profile_v2", "profile_data"), exact = TRUE)
  types <- lapply(x, function(table) vapply(table, typeof, ""))
  for (table in x) expect_s3_class(table, "tbl_df")
  expect_equal(types[1:7], list(
    meta = c(key = "character", value = "character"),
    sources = c(
      source_id = "integer", source_type = "character", source_uri = "character",
      source_timestamp = "double", .period = "double", .period_type = "character",
      .period_unit = "character", .memory_profiling = "logical", .gc_profiling = "logical",
      .line_profiling = "logical"
    ),
    samples = c(sample_id = "integer", source_id = "integer"),
    sample_values = c(sample_id = "integer", type = "character", unit = "character", value = "double"),
    sample_locations = c(sample_id = "integer", depth = "integer", location_id = "integer"),
    locations = c(location_id = "integer", function_id = "integer", line = "integer"),
    functions = c(
      function_id = "integer", name = "character", system_name = "character",
      filename = "character", start_line = "integer"
    )
  ))
})

test_that("version 1.0 has the documented tables", {
  x <- small_profile(version = "1.0")
  expect_equal(class(x), "profile_data")
  expect_equal(names(x), c("meta", "sample_types", "samples", "locations", "functions", ".rprof"))
  expect_equal(x$meta, tibble::tibble(key = "version", value = "1.0"))
  expect_equal(x$sample_types, tibble::tibble(type = "samples", unit = "count"))
  expect_equal(x$samples$value, c(1L, 1L, 1L))
  expect_equal(x$samples$locations[[1]], tibble::tibble(location_id = 1:2))
  expect_equal(x$functions, tibble::tibble(
    function_id = 1:3, name = c("f", "g", "h"), system_name = c("f", "g", "h"),
    filename = c("a.R", "a.R", ""), start_line = c(0L, 0L, 0L)
  ))
  expect_equal(x$locations, tibble::tibble(
    location_id = 1:4, function_id = c(1L, 2L, 3L, 2L), line = c(3L, 7L, 0L, 8L)
  ))
  expect_equal(x$.rprof, list(header = "line profiling: sample.interval=10000", files = "#File 1: a.R"))
})

test_that("summary() agrees with summaryRprof() where that is right", {
  for (file in c("basic_plain.out", "basic_line.out", "basic_memgc.out", "dplyr_all.out", "multi_line.out")) {
    x <- read_rprof(rprof_path(file))
    theirs <- utils::summaryRprof(rprof_path(file))
    ours <- summary(x)$by_function
    row <- match(gsub("\"", "", rownames(theirs$by.total)), ours$name)
    expect_false(anyNA(row), info = file)
    expect_equal(ours$total_time[row], theirs$by.total$total.time, info = file)
    expect_equal(ours$self_time[row], theirs$by.total$self.time, info = file)
    expect_equal(round(100 * ours$total_share[row], 2), theirs$by.total$total.pct, info = file)
    expect_equal(attr(summary(x), "time"), theirs$sampling.time, info = file)
  }
})

test_that("summaryRprof() takes the header of a second run for a sample, summary() does not", {
  path <- rprof_path("append_plain3.out")
  expect_true("sample.interval=20000" %in% rownames(utils::summaryRprof(path)$by.total))
  expect_false("sample.interval=20000" %in% summary(read_rprof(path))$by_function$name)
})

test_that("summary() by line agrees with summaryRprof()", {
  for (file in c("basic_line.out", "multi_line.out", "files120_line_numfiles200.out")) {
    x <- read_rprof(rprof_path(file))
    theirs <- utils::summaryRprof(rprof_path(file), lines = "show")$by.line
    theirs <- theirs[rownames(theirs) != "<no location>", ]
    ours <- summary(x)$by_line
    row <- match(rownames(theirs), paste0(basename(ours$filename), "#", ours$line))
    expect_false(anyNA(row), info = file)
    expect_equal(round(ours$self_time[row], 3), theirs$self.time, info = file)
    expect_equal(round(ours$total_time[row], 3), theirs$total.time, info = file)
  }
})

test_that("summary() of memory agrees with summaryRprof()", {
  for (file in c("basic_all.out", "basic_mem.out", "dplyr_memgc.out")) {
    x <- read_rprof(rprof_path(file))
    theirs <- utils::summaryRprof(rprof_path(file), memory = "both")$by.total
    ours <- summary(x)$by_function
    row <- match(gsub("\"", "", rownames(theirs)), ours$name)
    expect_equal(round(ours$total_alloc[row] / 2^20, 1), as.numeric(theirs$mem.total), info = file)
  }
})

test_that("summary() sums the type that is asked for", {
  x <- read_rprof(rprof_path("basic_all.out"))
  by_alloc <- summary(x, type = "alloc_size")$by_function
  expect_equal(by_alloc$self, by_alloc$self_alloc)
  expect_error(summary(x, type = "space"), class = "profile_error_unsupported")
})

test_that("as_tibble() has a row for each frame", {
  expect_equal(as_tibble(small_profile()), tibble::tibble(
    sample_id = c(1L, 1L, 2L, 2L, 3L, 3L),
    source_id = 1L,
    depth = c(1L, 2L, 1L, 2L, 1L, 2L),
    name = c("f", "g", "h", "g", "f", "g"),
    filename = c("a.R", "a.R", "", "a.R", "a.R", "a.R"),
    line = c(3L, 7L, 0L, 8L, 3L, 7L)
  ))
})

test_that("the calls of packages built on profile 1.x run unchanged", {
  # jointprof adds columns with a leading dot, shifts ids and validates
  x <- read_rprof(rprof_path("basic_line.out"), version = "1.0")
  y <- read_rprof(rprof_path("multi_line.out"), version = "1.0")
  shift <- max(x$locations$location_id)
  y$samples$locations <- lapply(y$samples$locations, function(l) {
    l$location_id <- l$location_id + shift
    l
  })
  y$locations$location_id <- y$locations$location_id + shift
  shift <- max(x$functions$function_id)
  y$locations$function_id <- y$locations$function_id + shift
  y$functions$function_id <- y$functions$function_id + shift
  validate_profile(y)
  n <- nrow(y$samples)
  x$samples <- x$samples[seq_len(n), ]
  x$samples$.pprof_locations <- y$samples$locations
  x$locations <- tibble::as_tibble(rbind(x$locations, y$locations))
  x$functions <- tibble::as_tibble(rbind(x$functions, y$functions))
  x$samples$.rprof_locations <- x$samples$locations
  x$samples$locations <- Map(
    function(a, b) tibble::tibble(location_id = c(a$location_id, b$location_id)),
    x$samples$locations, x$samples$.pprof_locations
  )
  names(x$samples$locations) <- NULL
  validate_profile(x)
  path <- withr::local_tempfile()
  write_rprof(x, path)
  expect_equal(nrow(read_rprof(path)$samples), n)
  write_pprof(x, path)
  # proffer goes there and back with the default version
  samples <- read_rprof(path = rprof_path("basic_line.out"))
  write_pprof(x = samples, path = path)
  write_rprof(x = read_pprof(path = path), path = path)
  expect_equal(nrow(read_rprof(path)$samples), nrow(samples$samples))
})
