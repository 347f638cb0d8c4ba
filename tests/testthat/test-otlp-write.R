# tier: gate
# Writing OpenTelemetry profiles and reading them again. The tests of the core read them with other implementations.

test_that("files of other writers survive reading and writing", {
  for (file in c(
    "python-1.40.0.pb", "rust-0.33.1.pb", "fleet.pb", "fields-1.9.pb", "ambiguous-1.11.pb", "dictionary-only.pb"
  )) {
    x <- read_otlp_quietly(otlp_path(file), source_uri = NA)
    for (fileext in c(".pb", ".json.gz")) {
      y <- through_otlp(x, aggregate = FALSE, fileext = fileext)
      expect_equal(otlp_content(y), otlp_content(x), info = file)
    }
  }
})

test_that("samples are combined unless aggregate = FALSE", {
  x <- small_profile()
  y <- through_otlp(x)
  expect_equal(stacks(y), c("f < g", "h < g"))
  expect_equal(y$sample_values$type, rep(c("samples", "cpu"), 2))
  expect_equal(y$sample_values$unit, rep(c("count", "nanoseconds"), 2))
  expect_equal(y$sample_values$value, c(2, 2e7, 1, 1e7))
  expect_equal(y$sources$.duration_nanos, 3e7)
  y <- through_otlp(x, aggregate = FALSE)
  expect_equal(stacks(y), c("f < g", "h < g", "f < g"))
  expect_equal(y$sample_values$value, rep(c(1, 1e7), 3))
  # With times no sample is lost, although samples with equal stacks are combined.
  x$samples$.timestamp <- c(20, 30, 10)
  expect_warning(y <- through_otlp(x), "must lie within", class = "profile_warning_lossy")
  expect_equal(stacks(y), c("f < g", "f < g", "h < g"))
  expect_equal(y$samples$.timestamp, c(20, 10, 30))
  # Samples with different labels or links are not combined.
  x <- small_profile()
  x$samples$.trace_id <- c(strrep("ab", 16), NA, NA)
  x$samples$.span_id <- c(strrep("cd", 8), NA, NA)
  expect_equal(stacks(through_otlp(x)), stacks(x))
})

test_that("samples with and without times are separate profiles of one source", {
  x <- small_profile()
  x$samples$.timestamp <- c(20, NA, 10)
  for (aggregate in c(TRUE, FALSE)) {
    expect_warning(y <- through_otlp(x, aggregate = aggregate), "must lie within", class = "profile_warning_lossy")
    expect_equal(stacks(y), c("f < g", "f < g", "h < g"))
    expect_equal(y$samples$.timestamp, c(20, 10, NA))
    expect_equal(y$sample_values$value, rep(c(1, 1e7), 3))
    expect_equal(nrow(y$sources), 1)
    # Nothing more is lost.
    expect_identical(through_otlp(y, aggregate = aggregate), y)
  }
  # The shape of the first sample comes first.
  x$samples$.timestamp <- c(NA, 10, NA)
  expect_warning(y <- through_otlp(x), "must lie within", class = "profile_warning_lossy")
  expect_equal(stacks(y), c("f < g", "h < g"))
  expect_equal(y$samples$.timestamp, c(NA, 10))
  expect_equal(y$sample_values$value, c(2, 2e7, 1, 1e7))
})

test_that("a mapping without a known build id has none", {
  bytes <- function(id) {
    x <- read_pprof(data_path("pprof", "go_cpu.pb.gz"))
    x$.mappings$build_id[] <- id
    path <- withr::local_tempfile()
    write_otlp(x, path)
    expect_setequal(read_otlp(path)$.mappings$build_id, id)
    rawToChar(file_bytes(path)[file_bytes(path) != 0])
  }
  expect_false(grepl("build_id", bytes(""), useBytes = TRUE))
  expect_true(grepl("process.executable.build_id.gnu", bytes("0a1b"), useBytes = TRUE))
})

test_that("mappings of a pprof file keep their order, also those to which no location refers", {
  facts <- c("memory_start", "memory_limit", "file_offset", "filename", "build_id", "has_functions", "has_filenames")
  # Profiles without samples have no such column.
  used <- function(x) as.integer(x$locations[[".mapping_id"]])
  of_locations <- function(x) x$.mappings$filename[match(used(x), x$.mappings$mapping_id)]
  for (file in list.files(data_path("pprof"), "^go_.*gz$", full.names = TRUE)) {
    x <- read_pprof(file)
    expect_false(all(x$.mappings$mapping_id %in% used(x)), info = file)
    # Also if the program is not the first, or if two files have the same name.
    for (order in list(c(1, 2, 3), c(2, 3, 1), c(3, 1, 2))) {
      y <- x
      y$.mappings <- x$.mappings[order, ]
      y$.mappings$mapping_id <- 1:3
      if (length(used(x)) > 0) y$locations$.mapping_id <- match(used(x), order)
      for (fileext in c(".pb", ".json")) {
        z <- through_otlp(y, fileext = fileext)
        expect_identical(as.list(z$.mappings[facts]), as.list(y$.mappings[facts]), info = file)
        expect_setequal(of_locations(z), of_locations(y))
        # The attribute is not left over.
        expect_null(z$.scope_attributes, info = file)
      }
    }
  }
})

test_that("what is no list of mappings remains an attribute", {
  x <- read_pprof(data_path("pprof", "go_cpu.pb.gz"))
  path <- withr::local_tempfile(fileext = ".json")
  write_otlp(x, path)
  json <- readLines(path, warn = FALSE)
  no_text <- c('{"stringValue":"[vdso]"}', '{"intValue":"5"}')
  # There are three texts, counted from 0.
  no_such_text <- c('{"intValue":"1"},{"intValue":"0"}]', '{"intValue":"3"},{"intValue":"0"}]')
  for (change in list(no_text, no_such_text)) {
    changed <- sub(change[[1]], change[[2]], json, fixed = TRUE)
    expect_false(identical(changed, json))
    writeLines(changed, path)
    y <- read_otlp(path)
    expect_identical(y$.scope_attributes$key, "profile.unused_mappings")
    expect_identical(nrow(y$.mappings), 1L)
  }
})

test_that("the file name determines the format unless an argument does", {
  x <- small_profile()
  dir <- withr::local_tempdir()
  written <- function(name, ...) {
    path <- file.path(dir, name)
    expect_identical(expect_invisible(write_otlp(x, path, ...)), x)
    expect_equal(stacks(read_otlp(path)), c("f < g", "h < g"))
    con <- gzfile(path, "rb")
    first <- readBin(con, "raw", 1)
    close(con)
    packed <- identical(file_bytes(path)[1:2], as.raw(c(0x1f, 0x8b)))
    c(if (packed) "gzip", if (first == charToRaw("{")) "json" else "protobuf")
  }
  expect_equal(written("a.pb"), "protobuf")
  expect_equal(written("a"), "protobuf")
  expect_equal(written("json"), "protobuf")
  expect_equal(written("a.pb.gz"), c("gzip", "protobuf"))
  expect_equal(written("a.gz"), c("gzip", "protobuf"))
  expect_equal(written("a.json"), "json")
  expect_equal(written("a.json.gz"), c("gzip", "json"))
  expect_equal(written("b.json", format = "protobuf"), "protobuf")
  expect_equal(written("b.pb", format = "json"), "json")
  expect_equal(written("b.gz", format = "json"), c("gzip", "json"))
  expect_equal(written("b.json.gz", format = "protobuf"), c("gzip", "protobuf"))
})

test_that("arguments are checked", {
  x <- small_profile()
  path <- withr::local_tempfile()
  errors <- errors_of({
    write_otlp(x, "")
    write_otlp(x, path, format = "text")
    write_otlp(x, path, resource = "etl")
    write_otlp(x, path, resource = c(a = "1", a = "2"))
    write_otlp(x, path, resource = c(a = NA))
    write_otlp(x, path, resource = list(a = "1"))
    write_otlp(x, path, aggregate = NA)
    write_otlp(x, path, original_payload = "yes")
    write_otlp(x, path, TRUE)
    write_otlp(1, path)
    read_otlp(1)
    read_otlp(path, original_payload = NA)
    read_otlp(path, version = 2)
    read_profile(path, "2.0")
  })
  expect_snapshot(writeLines(errors))
  expect_false(file.exists(path))
})

test_that("a resource is added to, and replaced", {
  resource <- function(y) attribute_words(y$.resource_attributes, "resource_id", y$.resources$resource_id)
  x <- small_profile()
  expect_null(through_otlp(x)[[".resources"]])
  y <- through_otlp(x, resource = c(service.name = "etl", "host name" = "\u00fc"))
  expect_equal(resource(y), "service.name=string etl, host name=string \u00fc")
  expect_equal(y$sources$.scope_id, 1L)
  # For each resource of the profile.
  fleet <- read_otlp(otlp_path("fleet.pb"))
  before <- resource(fleet)
  y <- through_otlp(fleet, resource = c(service.name = "etl", cpus = "many"))
  rest <- sub("service.name=string shop, cpus=int 8, ", "", before[[1]])
  expect_equal(resource(y), c(
    paste0("service.name=string etl, cpus=string many, ", rest), "service.name=string etl, cpus=string many"
  ))
  expect_equal(y$.resource_entities, fleet$.resource_entities)
})

test_that("after an error the old file is unchanged and no other file is left", {
  dir <- withr::local_tempdir()
  x <- small_profile()
  for (name in c("a.pb", "a.json", "a.pb.gz")) {
    path <- file.path(dir, name)
    write_otlp(x, path)
    before <- file_bytes(path)
    y <- x
    y$sample_values$value[2] <- 0.5
    expect_error(write_otlp(y, path), class = "profile_error_lossy")
    y$sample_values$value[2] <- NA
    expect_error(write_otlp(y, path), class = "profile_error_invalid")
    expect_identical(file_bytes(path), before)
  }
  expect_setequal(dir(dir, all.files = TRUE, no.. = TRUE), c("a.pb", "a.json", "a.pb.gz"))
  expect_error(write_otlp(x, file.path(dir, "no", "a.pb")), class = "profile_error_write")
})

test_that("equal profiles are equal bytes", {
  bytes <- function(x, ...) {
    path <- withr::local_tempfile()
    write_otlp(x, path, ...)
    file_bytes(path)
  }
  fleet <- read_otlp(otlp_path("fleet.pb"))
  # With other ids and unused rows.
  other <- fleet
  ids <- rev(fleet$locations$location_id) + 100L
  other$locations$location_id <- ids
  other$sample_locations$location_id <- ids[fleet$sample_locations$location_id]
  other$.location_attributes$location_id <- ids[fleet$.location_attributes$location_id]
  other$locations <- other$locations[c(1, 1:6), ]
  other$locations$location_id[1] <- 1L
  other$functions <- rbind(fleet$functions[3, ], fleet$functions)
  other$functions$function_id[1] <- 99L
  other$functions$name[1] <- "unused"
  for (format in c("protobuf", "json")) {
    for (x in list(fleet, read_rprof(rprof_path("basic_all.out")))) {
      expect_identical(bytes(x, format = format), bytes(x, format = format))
    }
    expect_identical(bytes(other, format = format), bytes(fleet, format = format))
  }
})

# summaryRprof()'s two tables, by name.
rprof_summary <- function(path) {
  tables <- utils::summaryRprof(path)[c("by.self", "by.total", "sample.interval", "sampling.time")]
  sorted <- function(table) if (is.data.frame(table)) table[order(rownames(table)), ] else table
  lapply(tables, sorted)
}

rprof_originals <- function() {
  c(
    rprof_path(rprof_files()),
    system.file("samples", "rprof", c("1.out", "memory.out", "incomplete.out"), package = "profile")
  )
}

test_that("data of Rprof are restored", {
  options <- c(
    "source_type", "source_uri", "source_timestamp", ".period", ".period_type", ".period_unit",
    ".memory_profiling", ".gc_profiling", ".line_profiling"
  )
  files <- rprof_originals()
  for (i in seq_along(files)) {
    file <- files[[i]]
    x <- read_quietly(file)
    y <- through_otlp(x, aggregate = FALSE, fileext = if (i %% 2 == 0) ".json" else ".pb")
    said <- intersect(options, names(x$sources))
    expect_equal(as.list(y$sources)[said], as.list(x$sources)[said], info = file)
    expect_equal(stacks(y), stacks(x), info = file)
    expect_equal(as_tibble(y)[c("filename", "line")], as_tibble(x)[c("filename", "line")], info = file)
    expect_true(all(y$locations[[".frame_type"]] == "r"), info = file)
    # A second round trip loses nothing more.
    expect_through_otlp(y, info = file)
  }
})

test_that("summaryRprof() sees the same before and after", {
  path <- withr::local_tempfile()
  compared <- 0
  for (file in rprof_originals()) {
    before <- suppressWarnings(tryCatch(rprof_summary(file), error = function(e) NULL))
    x <- read_quietly(file)
    # summaryRprof() cannot read names with blanks, or edited lines.
    known <- is.null(x[[".problems"]]) && !any(grepl("[ \"\n]", x$functions$name))
    if (is.null(before) || !known) next
    for (aggregate in c(TRUE, FALSE)) {
      suppressWarnings(write_rprof(through_otlp(x, aggregate = aggregate), path), classes = "profile_warning")
      expect_equal(rprof_summary(path), before, info = paste(file, aggregate))
    }
    compared <- compared + 1
  }
  expect_gt(compared, 40)
})

test_that("memory profiles have the same values as in write_pprof()", {
  x <- read_rprof(rprof_path("basic_all.out"))
  of <- function(x, type) x$sample_values$value[x$sample_values$type == type]
  y <- through_otlp(x)
  expect_equal(y$.sample_types$type, c("samples", "cpu", "alloc_space"))
  expect_equal(y$.sample_types$unit, c("count", "nanoseconds", "bytes"))
  expect_equal(sum(of(y, "samples")), nrow(x$samples))
  expect_equal(sum(of(y, "cpu")), nrow(x$samples) * 2e7)
  by_stack <- function(values, x) {
    sums <- tapply(values, stack_words(x), sum)
    sums[order(names(sums))]
  }
  expect_equal(
    as.vector(by_stack(of(y, "alloc_space"), y)),
    as.vector(by_stack(of(x, "alloc_size"), x))
  )
  # Levels are not summed; without aggregation they are written.
  y <- through_otlp(x, aggregate = FALSE)
  levels <- c("vsize_small", "vsize_large", "nodes", "duplications", "alloc_size", "dealloc_size")
  for (type in c("samples", levels)) expect_equal(of(y, type), of(x, type), info = type)
  expect_equal(of(y, "alloc_space"), of(x, "alloc_size"))
  path <- withr::local_tempfile()
  write_rprof(y, path)
  expect_identical(file_bytes(path), file_bytes(rprof_path("basic_all.out")))
})

test_that("frames of Rprof are R frames unless recorded otherwise", {
  x <- small_profile()
  x$locations$.frame_type <- c("native", NA, NA)[seq_len(nrow(x$locations))]
  y <- through_otlp(x)
  types <- rlang::set_names(y$locations$.frame_type, y$functions$name[y$locations$function_id])
  expect_equal(types[["f"]], "native")
  expect_setequal(types[names(types) != "f"], "r")
  # A frame with an address is machine code; frames of other recorders are not R code.
  x <- small_profile()
  x$locations$.address <- c("0x10", NA, NA, NA)[seq_len(nrow(x$locations))]
  expect_equal(through_otlp(x)$locations$.frame_type[[1]], NA_character_)
  go <- read_pprof(data_path("pprof", "go_mutex.pb.gz"))
  expect_null(through_otlp(go)$locations[[".frame_type"]])
})

test_that("information of a pprof file is kept, and is also in the payload", {
  for (file in dir(data_path("pprof"), full.names = TRUE)) {
    x <- read_pprof(file, source_uri = NA)
    path <- withr::local_tempfile(fileext = if (grepl("heap|cpu", file)) ".json" else ".pb")
    write_otlp(x, path, aggregate = FALSE, original_payload = TRUE)
    expect_identical(read_otlp(path, source_uri = NA, original_payload = TRUE), x, info = file)
    y <- read_otlp_quietly(path, source_uri = NA)
    expect_equal(y$sources$.original_payload_format, "pprof")
    y$sources$.original_payload <- y$sources$.original_payload_format <- NULL
    y$sources$source_type <- "pprof"
    expect_equal(stack_words(y), stack_words(x), info = file)
    expect_equal(source_words(y), source_words(x), info = file)
    types <- summary(x)$by_function
    expect_equal(summary(y)$by_function, types, info = file)
  }
})

test_that("a payload is reported, kept, and replaced", {
  x <- small_profile()
  path <- withr::local_tempfile()
  write_otlp(x, path, original_payload = TRUE)
  y <- read_otlp(path, source_uri = "a")
  payload <- read_otlp(path, source_uri = "b", original_payload = TRUE)
  pprof <- withr::local_tempfile()
  write_pprof(x, pprof, aggregate = FALSE)
  expect_identical(payload, read_pprof(pprof, source_uri = "b"))
  expect_equal(payload$sources$source_type, "pprof")
  # The same with version 1.0 and from a connection.
  con <- rawConnection(file_bytes(path))
  expect_identical(read_otlp(con, source_uri = "b", original_payload = TRUE), payload)
  close(con)
  old <- read_otlp(path, source_uri = "b", original_payload = TRUE, version = "1.0")
  expect_identical(old, read_pprof(pprof, source_uri = "b", version = "1.0"))
  # Kept when the profile is written again, and replaced on request.
  kept <- through_otlp(y)
  expect_identical(kept$sources$.original_payload, y$sources$.original_payload)
  y$sources$.original_payload_format <- "jfr"
  y$sources$.original_payload <- "AAH/"
  write_otlp(y, path)
  expect_equal(read_otlp(path)$sources$.original_payload, "AAH/")
  write_otlp(y, path, original_payload = TRUE)
  expect_equal(read_otlp(path)$sources$.original_payload_format, "pprof")
})

test_that("a payload contains what attributes and times cannot store", {
  x <- small_profile()
  x$.labels <- tibble::tibble(
    sample_id = 2L, key = c("both", "n", "n"), str = c("a", NA, NA), num = c(1, 2, 3), unit = c(NA, "s", "ms")
  )
  x$sources$source_timestamp <- -1
  path <- withr::local_tempfile()
  expect_error(write_otlp(x, path), class = "profile_error_lossy")
  write_otlp(x, path, original_payload = TRUE)
  y <- read_otlp(path, original_payload = TRUE)
  expect_equal(as.list(y$.labels[1:5])[-1], as.list(x$.labels)[-1])
  expect_equal(y$sources$source_timestamp, -1)
  expect_equal(stacks(read_otlp(path)), stacks(through_otlp(small_profile())))
})

test_that("a payload that cannot be read is refused", {
  withr::local_dir(withr::local_tempdir())
  x <- small_profile()
  write_otlp(x, "none.pb")
  write_otlp(combine_profiles(x, x), "two.pb")
  y <- x
  y$sources$.original_payload_format <- "jfr"
  y$sources$.original_payload <- "AAH/"
  write_otlp(y, "jfr.pb")
  y$sources$.original_payload_format <- "pprof"
  write_otlp(y, "odd.pb")
  write_pprof(x, "small.pb.gz")
  errors <- errors_of({
    read_otlp("none.pb", original_payload = TRUE)
    read_otlp("two.pb", original_payload = TRUE)
    read_otlp("jfr.pb", original_payload = TRUE)
    read_otlp("odd.pb", original_payload = TRUE)
    read_otlp("small.pb.gz", original_payload = TRUE)
    write_otlp(combine_profiles(x, x), "two.pb", original_payload = TRUE)
    write_otlp(combine_profiles(), "two.pb", original_payload = TRUE)
  })
  expect_snapshot(writeLines(errors))
})

test_that("values that attributes, times or ids cannot store are an error", {
  path <- withr::local_tempfile()
  labels <- function(...) {
    rows <- tibble::tibble(sample_id = 2L, key = "k", ...)
    for (column in c("str", "unit")) rows[[column]] <- rows[[column]] %||% NA_character_
    rows$num <- rows$num %||% NA_real_
    rows
  }
  x <- small_profile()
  write <- function(x, ...) write_otlp(x, path, ...)
  errors <- errors_of({
    { x$.labels <- labels(str = "a", num = 1); write(x) }
    { x$.labels <- labels(num = c(1, 2), unit = c("s", "ms")); write(x) }
    { x$.labels <- labels(num = c(1, 2), unit = c("s", NA)); write(x) }
    { x$.labels <- labels(num = c(1, NA), type = c(NA, "bool"), value = c(NA, "true")); write(x) }
    { x$sources$source_timestamp <- -1; write(x) }
    { x$sources$.duration_nanos <- -5; write(x) }
    { x$samples$.timestamp <- c(NA, -0.5, NA); write(x) }
    { x$sources$.profile_id <- "abcd"; write(x) }
    { x$samples$.trace_id <- "abcd"; x$samples$.span_id <- strrep("ab", 8); write(x) }
    { x$samples$.trace_id <- strrep("ab", 16); x$samples$.span_id <- "ab"; write(x) }
    { x$samples$.trace_id <- strrep("ab", 16); write(x) }
    { x$sample_values$value <- 2^62; x$sources$.period <- NA_real_; write(x) }
    { x$sample_values$value[2] <- 1.5; write(x, aggregate = FALSE) }
    { x$sample_values$value[2] <- 2^64; write(x, aggregate = FALSE) }
    { x$sample_values <- x$sample_values[0, ]; write(x) }
  })
  expect_snapshot(writeLines(errors))
  expect_false(file.exists(path))
})

test_that("the largest values are stored", {
  x <- small_profile()
  x$sources$.period <- NA_real_
  x$sources$.profile_id <- strrep("AB", 16)
  x$samples$.trace_id <- c(strrep("AB", 16), NA, NA)
  x$samples$.span_id <- c(strrep("CD", 8), NA, NA)
  x$samples$.timestamp <- c(0, 1.5, NA)
  x$sample_values$value <- c(-2^63, 2^62, 1)
  expect_warning(y <- through_otlp(x), "must lie within", class = "profile_warning_lossy")
  expect_equal(y$sources$.profile_id, strrep("ab", 16))
  expect_equal(y$samples$.trace_id, c(strrep("ab", 16), NA, NA))
  expect_equal(y$sample_values$value[y$sample_values$type == "samples"], c(-2^63, 2^62, 1))
  expect_equal(y$samples$.timestamp, c(0, 1.5, NA))
})

test_that("the time range of a profile contains the times of its samples", {
  x <- small_profile()
  x$sources$source_timestamp <- 100
  x$sources$.duration_nanos <- 5e9
  x$samples$.timestamp <- c(99, 100, 104)
  expect_warning(y <- through_otlp(x), "must lie within", class = "profile_warning_lossy")
  expect_equal(y$sources$source_timestamp, 99)
  expect_equal(y$sources$.duration_nanos, 6e9)
  x$samples$.timestamp <- c(101, 105, 102)
  expect_warning(y <- through_otlp(x), "must lie within", class = "profile_warning_lossy")
  expect_equal(y$sources$source_timestamp, 100)
  expect_equal(y$sources$.duration_nanos, 5e9 + 1)
})

test_that("times are exact unless they are edited", {
  x <- read_otlp_quietly(otlp_path("python-1.45.2.pb"))
  x$samples$.timestamp[1] <- 1761887348.25
  expect_warning(y <- through_otlp(x, aggregate = FALSE), "must lie within", class = "profile_warning_lossy")
  expect_equal(substr(sample_words(y)[1:2], 6, 24), c("1761887348250000000", "1761887347010000000"))
})

test_that("pprof gets the labels that it can store", {
  x <- read_otlp(otlp_path("fleet.pb"), source_uri = NA)
  path <- withr::local_tempfile()
  for (aggregate in c(TRUE, FALSE)) {
    expect_warning(write_pprof(x, path, aggregate = aggregate), "integer", class = "profile_warning_lossy")
    y <- read_pprof(path)
    expect_equal(stacks(y)[1:2], stacks(x)[1:2])
    labels <- y$.labels[y$.labels$sample_id == 1 & y$.labels$key != "run", ]
    # A value that is neither text nor number has no place, and is not replaced by a number.
    expect_setequal(labels$key, c("state", "who", "core", "void"))
    expect_error(through_otlp(y), NA)
  }
})
