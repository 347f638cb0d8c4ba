# tier: gate
# The sample types and periods of messages, by which other tools name what they show. What Grafana Pyroscope makes of them
# was read in its source (pkg/ingester/otlp/convert.go, August 2026).

# For each profile of a message, how Pyroscope names it, and the sum of what it shows.
named_by_pyroscope <- function(x, ...) {
  skip_if_not_installed("jsonlite")
  path <- withr::local_tempfile(fileext = ".json")
  write_otlp(x, path, ...)
  message <- jsonlite::read_json(path)
  texts <- unlist(message$dictionary$stringTable)
  text <- function(type) texts[c(type$typeStrindex %||% 0, type$unitStrindex %||% 0) + 1]
  profiles <- message$resourceProfiles[[1]]$scopeProfiles[[1]]$profiles
  rows <- lapply(profiles, function(profile) {
    type <- text(profile$sampleType)
    period <- text(profile$periodType)
    sum <- sum(as.numeric(unlist(lapply(profile$samples, `[[`, "values"))))
    name <- period[[1]]
    if (identical(c(type, period), c("samples", "count", "cpu", "nanoseconds"))) {
      sum <- sum * as.numeric(profile$period)
      type <- c("cpu", "nanoseconds")
      name <- "process_cpu"
    }
    data.frame(name = paste(c(name, type, period), collapse = ":"), sum = sum)
  })
  do.call(rbind, rows)
}

comes_back <- function(x) {
  path <- withr::local_tempfile(fileext = ".pb")
  write_otlp(x, path, aggregate = FALSE)
  back <- read_otlp(path)
  expect_identical(back$sample_values, x$sample_values)
  facts <- c(".period", ".period_type", ".period_unit", ".default_type")
  expect_identical(as.list(back$sources)[facts], as.list(x$sources)[facts])
  expect_null(back$.source_attributes)
}

# A profile with one stack for each sample.
profile_of <- function(values, period = NULL) {
  n <- length(values[[1]])
  types <- strsplit(names(values), "/", fixed = TRUE)
  x <- list(
    meta = tibble::tibble(key = "version", value = "2.0"),
    sources = tibble::tibble(
      source_id = 1L, source_type = "manual", source_uri = NA_character_, source_timestamp = NA_real_
    ),
    samples = tibble::tibble(sample_id = seq_len(n), source_id = 1L),
    sample_values = tibble::tibble(
      sample_id = rep(seq_len(n), each = length(values)), type = rep(vapply(types, `[[`, "", 1), n),
      unit = rep(vapply(types, `[[`, "", 2), n), value = as.vector(do.call(rbind, values))
    ),
    sample_locations = tibble::tibble(sample_id = seq_len(n), depth = 1L, location_id = seq_len(n)),
    locations = tibble::tibble(location_id = seq_len(n), function_id = seq_len(n), line = 0L),
    functions = tibble::tibble(
      function_id = seq_len(n), name = letters[seq_len(n)], system_name = letters[seq_len(n)], filename = "",
      start_line = 0L
    )
  )
  if (!is.null(period)) {
    x$sources[c(".period", ".period_type", ".period_unit")] <- period
  }
  validate_profile(new_profile_data(x, "2.0"))
}

test_that("CPU time of the agent is process_cpu, and elapsed time is wall", {
  x <- profile_of(
    list("cpu/nanoseconds" = c(10000001, 9999999, 3), "wall/nanoseconds" = c(2e7, 1e7, 5)),
    list(1e7, "cpu", "nanoseconds")
  )
  found <- named_by_pyroscope(x)
  expect_identical(found, data.frame(
    name = c("process_cpu:cpu:nanoseconds:cpu:nanoseconds", "wall:wall:nanoseconds:wall:nanoseconds"),
    sum = c(20000003, 30000005)
  ))
  comes_back(x)
  # The same if the clock measures elapsed time.
  x$sources$.period_type <- "wall"
  expect_identical(named_by_pyroscope(x), found)
  comes_back(x)
})

test_that("whole multiples of the period are counted", {
  x <- profile_of(list("cpu/nanoseconds" = c(2e7, 1e7)), list(1e7, "cpu", "nanoseconds"))
  path <- withr::local_tempfile(fileext = ".json")
  write_otlp(x, path)
  expect_match(readLines(path), '"values":["2"]', fixed = TRUE, all = FALSE)
  expect_identical(named_by_pyroscope(x)$sum, 3e7)
  comes_back(x)
})

test_that("CPU time that follows from counts is written once", {
  x <- profile_of(
    list("samples/count" = c(1, 2), "cpu/nanoseconds" = c(1e7, 2e7)), list(1e7, "cpu", "nanoseconds")
  )
  found <- named_by_pyroscope(x)
  expect_identical(found, data.frame(name = "process_cpu:cpu:nanoseconds:cpu:nanoseconds", sum = 3e7))
  comes_back(x)
  # Rprof's, whose CPU time is computed when it is written.
  rprof <- read_rprof(rprof_path("basic_line.out"))
  expect_identical(named_by_pyroscope(rprof)$name, found$name)
  # Otherwise both are written.
  x$sample_values$value[[4]] <- 1e7
  expect_identical(nrow(named_by_pyroscope(x)), 2L)
  comes_back(x)
})

test_that("memory has the period of Go's heap profiles", {
  x <- profile_of(list("inuse_space/bytes" = c(100, 50), "inuse_objects/count" = c(2, 1)))
  expect_identical(
    named_by_pyroscope(x)$name, c("space:inuse_space:bytes:space:bytes", "space:inuse_objects:count:space:bytes")
  )
  comes_back(x)
  # The period of a sampled heap is kept.
  x <- profile_of(list("alloc_space/bytes" = c(100, 50)), list(524288, "space", "bytes"))
  expect_identical(named_by_pyroscope(x)$name, "space:alloc_space:bytes:space:bytes")
  comes_back(x)
})

test_that("attributes with these keys have a meaning only where they fit", {
  x <- profile_of(list("cpu/nanoseconds" = 7), list(1e7, "cpu", "nanoseconds"))
  path <- withr::local_tempfile(fileext = ".json")
  write_otlp(x, path)
  text <- paste(readLines(path), collapse = "")
  change <- function(from, to) {
    changed <- sub(from, to, text, fixed = TRUE)
    expect_false(identical(changed, text))
    writeLines(changed, path)
    read_otlp(path)
  }
  expect_identical(read_otlp(path)$sample_values[-1], x$sample_values[-1])
  # Another word, and another type.
  unknown <- change('"stringValue":"cpu"}', '"stringValue":"gpu"}')
  expect_identical(unknown$sample_values$type, "samples")
  expect_true("profile.sample_types" %in% unknown$.source_attributes$key)
  others <- change('"samples",', '"loops",')
  expect_identical(unlist(others$sample_values[c("type", "value")], use.names = FALSE), c("loops", "7"))
  # A value that would be too large.
  expect_error(change('"period":"1"', '"period":"9223372036854775807"'), class = "profile_error_parse")
})

test_that("`type` accepts the names of other tools", {
  x <- read_pprof(data_path("pprof", "go_cpu.pb.gz"))
  own <- function(act) expect_identical(act("process_cpu"), act("cpu"))
  own(function(type) summary(x, type = type))
  own(function(type) call_tree(x, type = type))
  own(function(type) as.data.frame(compare_profiles(x, x, type = type)))
  own(function(type) {
    path <- withr::local_tempfile()
    write_collapsed(x, path, type = type)
    readLines(path)
  })
  own(function(type) annotate_lines(x, type = type))
  own(function(type) format(describe_profile(x, type = type)))
  # A type of the profile with this name comes first.
  rprof <- read_rprof(rprof_path("basic_all.out"))
  expect_identical(summary(rprof, type = "alloc_space"), summary(rprof, type = "alloc_size"))
  expect_error(summary(x, type = "process_gpu"), "no sample type `process_gpu`", fixed = TRUE)
})
