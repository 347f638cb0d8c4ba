# tier: gate
# Our pprof files in Go's pprof and RProtoBuf.

top <- function(pprof, path, index) {
  lines <- pprof("-top", "-nodecount=100000", "-nodefraction=0", "-edgefraction=0", paste0("-sample_index=", index), path)
  lines <- lines[-seq_len(grep("flat%", lines))]
  parts <- regmatches(lines, regexec("^ *(\\S+) +\\S+ +\\S+ +(\\S+) +\\S+  (.*?)( \\(inline\\))?$", lines, perl = TRUE))
  data.frame(
    name = vapply(parts, `[`, "", 4),
    self = as.numeric(vapply(parts, `[`, "", 2)),
    total = as.numeric(vapply(parts, `[`, "", 3))
  )
}

test_that("pprof -top shows the truth under the original names", {
  pprof <- go_pprof()
  skip_if_not_installed("jsonlite")
  truth <- jsonlite::fromJSON(data_path("rprof-truth.json"), simplifyVector = TRUE)
  path <- withr::local_tempfile(fileext = ".pb.gz")
  for (file in rprof_files()) {
    x <- read_quietly(rprof_path(file))
    if (nrow(x$sample_locations) == 0 || grepl("^(newline|latin1|edit_nul)", file)) next
    write_pprof(x, path)
    true <- truth[[file]]
    shown <- top(pprof, path, "samples")
    expect_equal(sort(shown$name), sort(names(true$total)), info = file)
    total <- unlist(true$total)[shown$name]
    expect_equal(shown$total, unname(total), info = file)
    self <- unlist(true$self)[shown$name]
    expect_equal(shown$self, unname(ifelse(is.na(self), 0, self)), info = file)
  }
})

test_that("pprof -traces, -tags, -list, -raw and -http work on our files", {
  pprof <- go_pprof()
  dir <- withr::local_tempdir()
  source <- file.path(dir, "work.R")
  writeLines(c("work <- function() {", "  sort(runif(10))", "}"), source)
  rprof <- write_file(
    "GC profiling: line profiling: sample.interval=20000", paste("#File 1:", source),
    "\"sort\" 1#2 \"work\" ", "\"<GC>\" \"sort\" 1#2 \"work\" ",
    "line profiling: sample.interval=20000", paste("#File 1:", source), "\"runif\" 1#2 \"work\" "
  )
  path <- withr::local_tempfile(fileext = ".pb.gz")
  write_pprof(read_rprof(rprof), path)
  expect_match(paste(pprof("-traces", path), collapse = "\n"), "runif\n *work")
  tags <- paste(pprof("-tags", path), collapse = "\n")
  expect_match(tags, "run-2")
  expect_match(tags, "gc:")
  expect_match(paste(pprof("-list=work", path), collapse = "\n"), "60ms.*sort\\(runif")
  expect_match(paste(pprof("-top", path), collapse = "\n"), "Type: cpu")
  expect_match(paste(pprof("-raw", path), collapse = "\n"), "PeriodType: cpu nanoseconds\nPeriod: 20000000")
  expect_match(paste(pprof("-comments", path), collapse = "\n"), "Rprof")
})

test_that("pprof's memory profile has the bytes that summaryRprof() has", {
  pprof <- go_pprof()
  path <- withr::local_tempfile(fileext = ".pb.gz")
  x <- read_rprof(rprof_path("basic_all.out"))
  write_pprof(x, path)
  alloc <- x$sample_values$value[x$sample_values$type == "alloc_size"]
  shown <- paste(pprof("-top", "-sample_index=alloc_space", "-unit=B", path), collapse = "\n")
  total <- sub(".*Showing nodes accounting for [0-9.]+B, [0-9.%]+ of ([0-9.]+)B total.*", "\\1", shown)
  expect_equal(as.numeric(total), sum(alloc))
})

# A message as text, with the strings themselves for their numbers.
message_text <- function(path) {
  con <- gzfile(path, "rb")
  on.exit(close(con))
  bytes <- readBin(con, "raw", 1e8)
  message <- RProtoBuf::read(RProtoBuf::P("perftools.profiles.Profile"), bytes)
  lines <- strsplit(as.character(message), "\n", fixed = TRUE)[[1]]
  lines <- grep("^string_table:", lines, value = TRUE, invert = TRUE)
  fields <- paste0(
    "^( *(type|unit|key|str|num_unit|name|system_name|filename|build_id|comment|doc_url|",
    "drop_frames|keep_frames|default_sample_type)): ([0-9]+)$"
  )
  is_text <- grepl(fields, lines)
  number <- as.numeric(sub(fields, "\\3", lines[is_text]))
  lines[is_text] <- paste0(sub(fields, "\\1", lines[is_text]), ": ", message$string_table[number + 1])
  lines
}

test_that("RProtoBuf decodes files that were read and written as the original", {
  skip_if_not_installed("RProtoBuf")
  RProtoBuf::readProtoFiles(data_path("profile.proto"))
  path <- withr::local_tempfile(fileext = ".pb.gz")
  for (file in dir(data_path("pprof"), full.names = TRUE)) {
    write_pprof(read_pprof(file), path, aggregate = FALSE)
    expect_identical(message_text(path), message_text(file), info = file)
  }
  # Everything that no real file here contains.
  x <- read_pprof(data_path("pprof", "go_cpu.pb.gz"))
  x$locations$.column <- seq_len(nrow(x$locations))
  x$locations$.is_folded <- TRUE
  x$sources$.drop_frames <- "runtime[.].*"
  x$sources$.doc_url <- "https://example.org"
  x$.mappings$memory_start[1] <- "0xffffffffffffffff"
  x$functions$.start_line_exact <- c("-9223372036854775808", rep(NA, nrow(x$functions) - 1))
  write_pprof(x, path, aggregate = FALSE)
  text <- message_text(path)
  for (line in c(
    "column: 7", "is_folded: true", "drop_frames: runtime[.].*", "doc_url: https://example.org",
    "memory_start: 18446744073709551615", "start_line: -9223372036854775808"
  )) {
    expect_true(any(trimws(text) == line), info = line)
  }
})

test_that("RProtoBuf decodes our file to the same content", {
  skip_if_not_installed("RProtoBuf")
  proto <- data_path("profile.proto")
  RProtoBuf::readProtoFiles(proto)
  for (file in c("basic_all.out", "append_line2.out", "names_line.out", "names_memory.out", "multi_line.out")) {
    x <- read_rprof(rprof_path(file))
    path <- withr::local_tempfile(fileext = ".pb.gz")
    write_pprof(x, path, aggregate = FALSE)
    con <- gzfile(path, "rb")
    bytes <- readBin(con, "raw", 1e8)
    close(con)
    message <- RProtoBuf::read(RProtoBuf::P("perftools.profiles.Profile"), bytes)
    strings <- message$string_table
    Encoding(strings) <- "UTF-8"
    functions <- lapply(message$`function`, as.list)
    name <- strings[vapply(functions, function(f) as.numeric(f$name), 0) + 1]
    filename <- strings[vapply(functions, function(f) as.numeric(f$filename), 0) + 1]
    function_id <- vapply(functions, function(f) as.numeric(f$id), 0)
    expect_true(all(vapply(functions, function(f) as.numeric(f$system_name), 0) == 0))
    locations <- message$location
    location_id <- vapply(locations, function(l) as.numeric(l$id), 0)
    line <- lapply(locations, function(l) l$line[[1]])
    row <- match(vapply(line, function(l) as.numeric(l$function_id), 0), function_id)
    place <- paste0(name[row], "@", filename[row], ":", vapply(line, function(l) as.numeric(l$line), 0))
    samples <- message$sample
    seen <- vapply(samples, function(s) paste(place[match(s$location_id, location_id)], collapse = " < "), "")
    flat <- as_tibble(x)
    expected <- vapply(
      split(paste0(flat$name, "@", flat$filename, ":", flat$line), flat$sample_id),
      paste, "", collapse = " < "
    )
    expect_equal(seen, unname(expected), info = file)
    types <- vapply(message$sample_type, function(t) strings[as.numeric(t$type) + 1], "")
    expect_equal(types[1:2], c("samples", "cpu"), info = file)
    values <- vapply(samples, function(s) as.numeric(s$value[[2]]), 0)
    period <- x$sources$.period[x$samples$source_id] * 1000
    expect_equal(values, period, info = file)
    expect_equal(as.numeric(message$period), period[[1]], info = file)
  }
})

test_that("our file reads back as what was written", {
  for (file in c("basic_all.out", "append_line2.out", "names_line.out", "killed_line.out")) {
    x <- read_quietly(rprof_path(file))
    path <- withr::local_tempfile(fileext = ".pb.gz")
    write_pprof(x, path, aggregate = FALSE)
    y <- read_pprof(path)
    validate_profile(y)
    expect_equal(stacks(y), stacks(x), info = file)
    expect_equal(as_tibble(y)$line, as_tibble(x)$line, info = file)
    expect_equal(as_tibble(y)$filename, as_tibble(x)$filename, info = file)
    write_pprof(x, path)
    z <- read_pprof(path)
    columns <- c("name", "self", "total", "self_time", "total_time")
    expect_equal(
      summary(z, type = "samples")$by_function[columns], summary(x)$by_function[columns], info = file
    )
    expect_identical(attr(summary(z), "type"), "cpu", info = file)
  }
})

test_that("aggregating sums equal stacks and keeps the order of first sight", {
  x <- small_profile()
  path <- withr::local_tempfile(fileext = ".pb.gz")
  write_pprof(x, path)
  y <- read_pprof(path)
  expect_equal(stacks(y), c("f < g", "h < g"))
  values <- y$sample_values
  expect_equal(values$type, rep(c("samples", "cpu"), 2))
  expect_equal(values$unit, rep(c("count", "nanoseconds"), 2))
  expect_equal(values$value, c(2, 2e7, 1, 1e7))
  expect_equal(y$sources$.default_type, "cpu")
  expect_equal(y$sources$.period, 1e7)
  expect_equal(y$sources$.duration_nanos, 3e7)
})

test_that("the same profile gives the same bytes", {
  x <- read_rprof(rprof_path("dplyr_all.out"))
  one <- withr::local_tempfile()
  two <- withr::local_tempfile()
  write_pprof(x, one)
  write_pprof(x, two)
  expect_identical(file_bytes(one), file_bytes(two))
})

test_that("profiles of other producers are read", {
  files <- dir(data_path("pprof"), full.names = TRUE)
  expect_gt(length(files), 5)
  for (file in files) {
    x <- read_pprof(file)
    validate_profile(x)
    expect_equal(x$sources$source_type, "pprof", info = file)
    path <- withr::local_tempfile()
    write_pprof(x, path, aggregate = FALSE)
    y <- read_pprof(path)
    expect_equal(y$sample_values, x$sample_values, info = file)
    expect_equal(stacks(y), stacks(x), info = file)
    expect_equal(y$.labels, x$.labels, info = file)
  }
})

test_that("a profile of another producer becomes an Rprof file", {
  x <- read_pprof(data_path("pprof", "go_cpu.pb.gz"))
  path <- withr::local_tempfile()
  write_rprof(x, path)
  y <- read_rprof(path)
  expect_equal(nrow(y$samples), sum(x$sample_values$value[x$sample_values$type == "samples"]))
  heap <- read_pprof(data_path("pprof", "go_heap.pb.gz"))
  expect_output(print(heap), "function, by inuse_space")
  expect_error(write_rprof(heap, path), class = "profile_error_lossy")
})

test_that("a file of another format is refused with a hint", {
  expect_error(read_pprof(rprof_path("basic_all.out")), "read_rprof", class = "profile_error_parse")
  expect_error(read_pprof(rprof_path("edit_zero_bytes.out")), "empty", class = "profile_error_parse")
  expect_error(read_pprof("no-such-file"), class = "profile_error_open")
})

test_that("pprof -http shows our file", {
  skip_without_pprof()
  process <- local_pprof_process(read_rprof(rprof_path("names_line.out")))
  expect_match(pprof_page(process, "/ui/flamegraph"), "a name with spaces", fixed = TRUE)
})

test_that("pprof shows labels that are numbers with their units", {
  pprof <- go_pprof()
  path <- withr::local_tempfile(fileext = ".pb.gz")
  x <- labelled_profile()
  write_pprof(x, path)
  tags <- pprof("-tags", path)
  # pprof shows all labels with a key in the first unit, `request` without a unit as bytes, and others without one.
  units <- c(size = "bytes", request = "bytes", latency = "latency")
  for (key in names(units)) {
    labels <- x$.labels[x$.labels$key == key, ]
    shown <- profile:::format_value(max(labels$num), units[[key]])
    block <- grep(paste0("^ *", key, ": "), tags)
    expect_length(block, 1)
    expect_match(tags[block + seq_len(nrow(labels))], paste0(": ", shown, "$"), all = FALSE, info = key)
  }
})

# Files of Rprof whose intervals and options differ, as one profile.
several_runs <- function() {
  path <- withr::local_tempfile()
  lines <- c(
    readLines(rprof_path("basic_all.out")),
    "GC profiling: sample.interval=10000", "\"f\" \"g\" ", "\"<GC>\" \"f\" \"g\" ", "\"f\" \"g\" ",
    "sample.interval=1000", "\"f\" \"g\" "
  )
  x <- read_rprof(write_file(lines), source_uri = "several.out")
  x$sources$source_uri[2] <- NA
  x$sources$source_timestamp[2:3] <- c(NA, 1732169999.123456)
  x
}

test_that("sources survive writing and reading", {
  x <- several_runs()
  one <- withr::local_tempfile()
  two <- withr::local_tempfile()
  for (aggregate in c(TRUE, FALSE)) {
    expect_no_warning(write_pprof(x, one, aggregate = aggregate, source_labels = TRUE))
    y <- read_pprof(one)
    validate_profile(y)
    expect_identical(y$sources, x$sources)
    expect_setequal(y$.labels$key, "gc")
    expect_equal(summary(y)$by_function$self_time, summary(x)$by_function$self_time)
    expect_equal(summary(y)$by_function$name, summary(x)$by_function$name)
    write_pprof(y, two, aggregate = aggregate, source_labels = TRUE)
    expect_identical(file_bytes(two), file_bytes(one))
    expect_identical(read_pprof(two)$sources, x$sources)
  }
  expect_equal(y$samples$source_id, x$samples$source_id)
  expect_equal(stacks(y), stacks(x))
})

test_that("a run that went through pprof becomes an Rprof file", {
  pb <- withr::local_tempfile()
  path <- withr::local_tempfile()
  for (file in c("basic_plain.out", "basic_memgc.out", "append_line2.out")) {
    x <- read_rprof(rprof_path(file))
    write_pprof(x, pb, aggregate = FALSE, source_labels = TRUE)
    write_rprof(read_pprof(pb), path)
    if (!any(x$sources$.line_profiling)) {
      expect_identical(file_bytes(path), file_bytes(rprof_path(file)), info = file)
    }
    z <- read_rprof(path)
    expect_equal(stacks(z), stacks(x), info = file)
    expect_equal(z$sources[-(2:4)], x$sources[-(2:4)], info = file)
    expect_equal(as_tibble(z)$filename, as_tibble(x)$filename, info = file)
  }
})

test_that("sources of version 1.0 and of other producers are restored", {
  path <- withr::local_tempfile()
  write_pprof(several_runs(), path, source_labels = TRUE)
  expect_match(read_pprof(path, version = "1.0")$.rprof$header, "sample.interval=", all = TRUE)
  for (file in dir(data_path("pprof"), full.names = TRUE)) {
    x <- read_pprof(file)
    if (nrow(x$samples) == 0) next
    write_pprof(x, path, aggregate = FALSE, source_labels = TRUE)
    y <- read_pprof(path)
    expect_identical(y$sources, x$sources, info = file)
    expect_identical(y$.labels, x$.labels, info = file)
    expect_identical(y$.comments, x$.comments, info = file)
    expect_identical(y$sample_values, x$sample_values, info = file)
  }
})

test_that("information about sources that labels cannot store is reported", {
  x <- several_runs()
  path <- withr::local_tempfile()
  x$samples$source_id[x$samples$source_id == 2L] <- 3L
  expect_warning(
    write_pprof(x, path, source_labels = TRUE), "not in the file: 1", class = "profile_warning_lossy"
  )
  expect_no_warning(write_pprof(x, path))
  expect_equal(read_pprof(path)$sources$source_type, "pprof")
  x$.labels <- tibble::tibble(
    sample_id = 1L, key = "source_id", str = "mine", num = NA_real_, unit = NA_character_
  )
  expect_error(write_pprof(x, path, source_labels = TRUE), "`source_id`", class = "profile_error_lossy")
  write_pprof(x, path, aggregate = FALSE)
  expect_equal(subset(read_pprof(path)$.labels, key == "source_id")$str, "mine")
  expect_error(write_pprof(x, path, source_labels = NA), class = "profile_error_argument")
})

test_that("pprof shows sources, and keeps them when it merges files", {
  pprof <- go_pprof()
  x <- several_runs()
  x$sources$.period_type[3] <- ""
  one <- withr::local_tempfile()
  write_pprof(x, one, source_labels = TRUE)
  tags <- paste(pprof("-tags", one), collapse = "\n")
  for (tag in c("source_uri", "several.out", "source_options", "memory gc line", "none", "source_id")) {
    expect_match(tags, tag, fixed = TRUE)
  }
  shown <- function(focus) {
    top <- pprof("-top", "-sample_index=samples", paste0("-tagfocus=", focus), one)
    as.numeric(sub(".*accounting for ([0-9]+),.*", "\\1", grep("accounting", top, value = TRUE)))
  }
  counts <- tabulate(x$samples$source_id)
  expect_equal(shown("source_options=none"), counts[3])
  expect_equal(shown("source_period=10ms"), counts[2])

  # Go merges only files with equal periods.
  y <- x
  y$sources$source_uri <- paste0(1:3, ".out")
  two <- withr::local_tempfile()
  merged <- withr::local_tempfile()
  write_pprof(y, two, source_labels = TRUE)
  pprof("-proto", paste0("-output=", merged), one, two)
  z <- read_pprof(merged)
  expect_identical(z$sources[-1], rbind(x$sources, y$sources)[-1])
  seconds <- function(x) sum(summary(x)$by_function$self_time)
  expect_equal(seconds(z), 2 * seconds(x))
  expect_null(z$.comments)
})

test_that("the sources of combined profiles are restored", {
  files <- rprof_path(c("append_line2.out", "basic_memgc.out", "names_plain.out"))
  x <- combine_profiles(!!!lapply(files, read_quietly), small_profile(version = "1.0"))
  path <- withr::local_tempfile()
  write_pprof(x, path, source_labels = TRUE)
  expect_identical(read_pprof(path)$sources, x$sources)
  expect_no_warning(write_pprof(small_profile(version = "1.0"), path, source_labels = TRUE))
})

test_that("numbers that R cannot represent are kept, unless they were edited", {
  x <- read_pprof(data_path("pprof", "go_cpu.pb.gz"))
  first <- function(x, n) c(x, rep(NA_character_, n - 1))
  huge <- "9007199254740993"
  x$sample_values$value[1] <- as.numeric(huge)
  x$sample_values$.value_exact <- first(huge, nrow(x$sample_values))
  x$locations$line[1] <- 0L
  x$locations$.line_exact <- first("-7", nrow(x$locations))
  x$functions$start_line[1] <- 0L
  x$functions$.start_line_exact <- first("4294967296", nrow(x$functions))
  x$.labels <- tibble::tibble(
    sample_id = 1L, key = "bytes", str = NA_character_, num = as.numeric(huge),
    unit = NA_character_, num_exact = huge
  )
  path <- withr::local_tempfile()
  again <- function(x) {
    write_pprof(x, path, aggregate = FALSE)
    suppressWarnings(read_pprof(path), classes = "profile_warning_repaired")
  }
  y <- again(x)
  expect_identical(y$sample_values, x$sample_values)
  expect_identical(y$locations[names(x$locations)], x$locations)
  expect_identical(y$functions[names(x$functions)], x$functions)
  expect_identical(y$.labels, x$.labels)
  expect_warning(read_pprof(path), "only approximates", class = "profile_warning_repaired")
  expect_setequal(profile_problems(y)$problem, c("imprecise_value", "odd_line_number"))

  y$sample_values$value[1] <- 8
  y$locations$line[1] <- 9L
  y$functions$start_line[1] <- 10L
  y$.labels$num <- 11
  z <- again(y)
  expect_equal(z$sample_values$value[1], 8)
  expect_equal(z$locations$line[1], 9L)
  expect_equal(z$functions$start_line[1], 10L)
  expect_equal(z$.labels$num, 11)
  expect_false(".value_exact" %in% names(z$sample_values))
})

test_that("equal stacks share a tibble in version 1.0, however they were read", {
  x <- read_pprof(data_path("pprof", "go_heap.pb.gz"), version = "1.0")
  stacks <- vapply(x$samples$locations, function(stack) paste(stack$location_id, collapse = " "), "")
  twice <- which(duplicated(stacks))[[1]]
  first <- match(stacks[[twice]], stacks)
  expect_identical(
    rlang::obj_address(x$samples$locations[[first]]),
    rlang::obj_address(x$samples$locations[[twice]])
  )
})

test_that("the default type of a file is shown, else its last type, as in Go's pprof", {
  path <- data_path("found", "default-type.pb")
  x <- read_profile(path)
  expect_identical(x$sources$.default_type, "cycles")
  functions <- summary(x)$by_function
  expect_identical(attr(summary(x), "type"), "cycles")
  expect_equal(functions$self[match(c("g", "f"), functions$name)], c(4e6, 17))
  expect_identical(attr(summary(x, type = "samples"), "type"), "samples")
  expect_identical(attr(call_tree(x), "type"), "cycles")
  expect_snapshot({
    print(x, n = 2)
    describe_profile(x, n = 2)
    cat(format(summary(x))[[1]])
  })
  x$sources$.default_type <- NA_character_
  types <- x$.sample_types$type
  expect_identical(attr(summary(x), "type"), types[[length(types)]])
  # A type that does not exist is no default.
  x$sources$.default_type <- "missing"
  expect_identical(attr(summary(x), "type"), types[[length(types)]])
  # Sources with different defaults are compared by the number of their samples.
  y <- combine_profiles(read_profile(path), read_rprof(rprof_path("basic_all.out")))
  expect_identical(attr(summary(y), "type"), "samples")
})

test_that("a period of 0 is not known, as in files of pprof-rs", {
  x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
  x$sources$.period <- 0
  write_pprof(x, path <- withr::local_tempfile(fileext = ".pb.gz"))
  x <- read_profile(path)
  expect_identical(x$sources$.period, 0)
  expect_match(format(x), "252 in 54 rows, 101 functions", all = FALSE)
  expect_match(capture.output(describe_profile(x)), "252 samples, 101 functions", all = FALSE)
})
