# What we write, seen through the eyes of others: Go's pprof and RProtoBuf.

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
      summary(z)$by_function[columns], summary(x)$by_function[columns], info = file
    )
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

test_that("what is no pprof file is refused with a hint", {
  expect_error(read_pprof(rprof_path("basic_all.out")), "read_rprof", class = "profile_error_parse")
  expect_error(read_pprof(rprof_path("edit_zero_bytes.out")), "empty", class = "profile_error_parse")
  expect_error(read_pprof("no-such-file"), class = "profile_error_open")
})

test_that("pprof -http shows our file", {
  skip_on_cran()
  pprof <- go_pprof()
  path <- withr::local_tempfile(fileext = ".pb.gz")
  write_pprof(read_rprof(rprof_path("names_line.out")), path)
  pid_file <- withr::local_tempfile()
  address <- paste0("127.0.0.1:", sample(20000:50000, 1))
  command <- paste0(
    "echo $$ > ", pid_file, "; exec go tool pprof -no_browser -http=", address, " ", path
  )
  system2("bash", c("-c", shQuote(command)), wait = FALSE, stdout = FALSE, stderr = FALSE)
  withr::defer(tools::pskill(as.integer(readLines(pid_file))))
  page <- NULL
  for (i in 1:100) {
    page <- tryCatch(
      suppressWarnings(readLines(paste0("http://", address, "/ui/flamegraph"), warn = FALSE)),
      error = function(e) NULL
    )
    if (!is.null(page)) break
    Sys.sleep(0.1)
  }
  expect_true(any(grepl("a name with spaces", page, fixed = TRUE)))
})

test_that("sources are carried as labels, and come back", {
  files <- rprof_path(c("append_line2.out", "basic_memgc.out", "names_plain.out"))
  x <- combine_profiles(!!!lapply(files, read_quietly), small_profile(version = "1.0"))
  path <- withr::local_tempfile()
  for (aggregate in c(TRUE, FALSE)) {
    write_pprof(x, path, aggregate = aggregate, sources = TRUE)
    y <- read_pprof(path)
    expect_identical(y$sources, x$sources)
    expect_equal(sum(summary(y)$by_function$self_time), sum(summary(x)$by_function$self_time))
    again <- withr::local_tempfile()
    write_pprof(y, again, aggregate = aggregate, sources = TRUE)
    expect_identical(file_bytes(again), file_bytes(path))
    write_rprof(y, again)
    expect_equal(nrow(read_rprof(again)$samples), nrow(x$samples))
  }
  expect_equal(stacks(y), stacks(x))
  expect_equal(y$samples$source_id, x$samples$source_id)
  expect_no_warning(write_pprof(small_profile(version = "1.0"), path, sources = TRUE))
})

test_that("a source without samples is told to be lost", {
  x <- combine_profiles(small_profile(), read_rprof(rprof_path("empty_plain.out")))
  path <- withr::local_tempfile()
  expect_no_warning(write_pprof(x, path))
  expect_profile_warning(write_pprof(x, path, sources = TRUE), "profile_warning_lossy")
  expect_equal(nrow(read_pprof(path)$sources), 1)
  expect_error(write_pprof(x, path, sources = NA), class = "profile_error_argument")
})

test_that("Go's pprof finds the samples of a source", {
  pprof <- go_pprof()
  x <- combine_profiles(small_profile(), read_quietly(rprof_path("basic_plain.out")))
  path <- withr::local_tempfile()
  write_pprof(x, path, sources = TRUE)
  expect_match(pprof("-tags", path), "source_uri", all = FALSE)
  top <- pprof("-top", "-sample_index=samples", "-tagfocus=source_uri=small.out", path)
  expect_match(top, "^Showing nodes accounting for 3, ", all = FALSE)
})
