# tier: gate
# What must not take R down: Ctrl-C, little memory, hostile files.

# A gzip file of about 400 MB of samples, small on disk.
big_profile <- function(path) {
  con <- gzfile(path, "wb", compression = 1)
  on.exit(close(con))
  writeLines("sample.interval=20000", con)
  line <- paste0(sprintf("\"some_function_%02d\" ", 1:20), collapse = "")
  lines <- rep(line, 10000)
  for (i in 1:100) writeLines(lines, con)
}

test_that("Ctrl-C stops a long read within a second and leaves R sound", {
  skip_on_cran()
  skip_on_os("windows")
  listen <- listen_to_interrupts()
  big <- withr::local_tempfile(fileext = ".gz")
  big_profile(big)
  started <- withr::local_tempfile()
  small <- normalizePath(rprof_path("basic_all.out"))
  process <- run_r(wait = FALSE, env = listen, c(
    "library(profile)",
    sprintf("big <- '%s'; small <- '%s'; invisible(file.create('%s'))", big, small, started),
    "end <- tryCatch({ repeat read_rprof(big); 'finished' }, interrupt = function(e) 'interrupted')",
    "stopped <- Sys.time()",
    "x <- read_rprof(small)",
    "cat(end, nrow(x$samples), as.numeric(stopped))"
  ))
  expect_true(wait_for(function() file.exists(started)))
  Sys.sleep(0.3)
  sent <- Sys.time()
  tools::pskill(process$pid(), tools::SIGINT)
  expect_true(wait_for(function() length(readLines(process$output, warn = FALSE)) > 0))
  words <- strsplit(readLines(process$output, warn = FALSE), " ")[[1]]
  expect_equal(words[1:2], c("interrupted", "203"))
  expect_lt(as.numeric(words[[3]]) - as.numeric(sent), 1)
})

test_that("with too little memory there is an error, not an abort", {
  skip_on_cran()
  skip_on_os(c("windows", "mac"))
  big <- withr::local_tempfile(fileext = ".gz")
  big_profile(big)
  # The tables themselves, and columns that are computed when their values are needed.
  for (code in c("options(profile.lazy = FALSE); read_rprof(big)", "lapply(read_rprof(big)$sample_locations, rev)")) {
    result <- run_r(prefix = "ulimit -v 350000;", c(
      "library(profile)",
      sprintf("big <- '%s'", big),
      sprintf("e <- tryCatch({ %s }, error = identity)", code),
      "cat(conditionMessage(e), '\\n')",
      "invisible(gc())",
      "cat('R goes on')"
    ))
    expect_equal(result$status, 0)
    expect_match(result$output[[1]], "cannot allocate|Not enough memory")
    expect_equal(result$output[[length(result$output)]], "R goes on")
  }
})

# A pprof file of so many samples of 100 frames, and a field of so many megabytes
# that means nothing.
big_pprof <- function(path, samples, megabytes) {
  strings <- c("", "samples", "count", "f")
  bytes <- as.raw(c(
    0x0a, 4, 8, 1, 16, 2, 0x2a, 4, 8, 1, 16, 3, 0x22, 6, 8, 1, 0x22, 2, 8, 1
  ))
  for (string in strings) bytes <- c(bytes, as.raw(c(0x32, nchar(string))), charToRaw(string))
  sample <- as.raw(c(0x12, 104, 0x0a, 100, rep(1, 100), 16, 1))
  # Field 100, of 2^20 bytes.
  megabyte <- c(as.raw(c(0xa2, 6, 0x80, 0x80, 0x40)), raw(2^20))
  con <- gzfile(path, "wb", compression = 1)
  on.exit(close(con))
  writeBin(c(bytes, rep(sample, samples)), con)
  for (i in seq_len(megabytes)) writeBin(megabyte, con)
}

test_that("so it is with pprof files, on reading and on writing", {
  skip_on_cran()
  skip_on_os(c("windows", "mac"))
  # The message, the tables, and what it takes to write them.
  for (case in list(c(1, 900, 0), c(3e5, 0, 0), c(1e5, 0, 1))) {
    big <- withr::local_tempfile(fileext = ".gz")
    big_pprof(big, case[[1]], case[[2]])
    x <- read_pprof(big)
    expect_equal(nrow(x$samples), case[[1]])
    expect_equal(nrow(x$sample_locations), 100 * case[[1]])
    rm(x)
    result <- run_r(prefix = "ulimit -v 400000;", c(
      "library(profile)",
      sprintf("big <- '%s'; out <- tempfile()", big),
      "repeated <- function() {",
      "  x <- read_pprof(big)",
      "  x$sample_locations$location_id[seq(1, 1e7, 100)] <- rep(1L, 1e5)",
      "  for (i in 1:100) write_pprof(combine_profiles(rep(list(x), i)), out)",
      "}",
      "expanded <- function() lapply(read_pprof(big)$sample_locations, rev)",
      sprintf("e <- tryCatch(if (%s) repeated() else expanded(), error = identity)", case[[3]] == 1),
      "cat(conditionMessage(e), '\\n')",
      "invisible(gc())",
      "cat('R goes on')"
    ))
    expect_equal(result$status, 0)
    expect_match(result$output[[1]], "cannot allocate|Not enough memory")
    expect_equal(result$output[[length(result$output)]], "R goes on")
  }
})

test_that("writing and flattening end in an error, too, whatever the memory", {
  skip_on_cran()
  skip_on_os(c("windows", "mac"))
  file <- withr::local_tempfile()
  lines <- vapply(1:1000, function(i) {
    paste0("\"f", (i + 1:30 * i) %% 3000, "\" ", collapse = "")
  }, "")
  writeLines(c("sample.interval=20000", rep(lines, 50)), file)
  for (call in c(
    "tibble::as_tibble(x)", "write_otlp(x, out, aggregate = FALSE)", "write_pprof(x, out)", "write_profile_page(x, out)",
    "write_firefox(x, out)", "write_callgrind(x, out)", "compare_profiles(x, x)"
  )) {
    ends <- character()
    # `tools/memory-limits` takes smaller steps, and tries all functions.
    for (limit in seq(150000, 450000, by = 30000)) {
      result <- run_r(prefix = sprintf("ulimit -c 0; ulimit -v %d;", as.integer(limit)), c(
        "end <- tryCatch({",
        "  library(profile); out <- tempfile(fileext = '.otlp')",
        sprintf("  x <- read_rprof('%s')", file),
        sprintf("  y <- %s", call),
        "  'works'",
        "}, error = function(e) if (inherits(e, 'profile_error_memory')) 'memory' else conditionMessage(e))",
        "cat('\\nend: ', end, '\\n', sep = '')"
      ))
      expect_equal(result$status, 0)
      ends <- c(ends, sub("end: ", "", grep("^end: ", result$output, value = TRUE)))
    }
    known <- grepl("^(works|memory)$|(cannot|could not) allocate|package or namespace load failed|unable to load", ends)
    expect_true(all(known), info = paste(ends[!known], collapse = "; "))
    expect_equal(utils::tail(ends, 1), "works")
  }
})

test_that("a bomb of zeros and one of line feeds end soon", {
  path <- withr::local_tempfile()
  con <- gzfile(path, "wb")
  for (i in 1:50) writeBin(raw(1e6), con)
  close(con)
  expect_error(read_rprof(path), class = "profile_error_parse")
  expect_error(read_pprof(path), class = "profile_error_parse")
  con <- gzfile(path, "wb")
  writeLines("sample.interval=20000", con)
  for (i in 1:20) writeBin(rep(charToRaw("\n"), 1e6), con)
  close(con)
  x <- read_quietly(path)
  expect_equal(nrow(x$samples), 0)
  expect_equal(nrow(profile_problems(x)), 1000)
})

test_that("random changes of real files never do harm", {
  set.seed(1)
  files <- c("multi_memory_gc_line.out", "newline_plain.out", "append_line2.out", "latin1_names.out")
  path <- withr::local_tempfile()
  for (i in 1:300) {
    bytes <- utils::head(file_bytes(rprof_path(sample(files, 1))), 3000)
    at <- sample(length(bytes), 10)
    bytes[at] <- as.raw(sample(c(0:255, 34, 34, 10, 10, 32, 35, 58), 10, replace = TRUE))
    x <- tryCatch(read_quietly(write_bytes(bytes)), profile_error = identity)
    if (inherits(x, "profile_data")) {
      validate_profile(x)
      suppressWarnings(write_rprof(x, path), classes = "profile_warning")
      write_pprof(x, path)
      validate_profile(read_pprof(path))
    } else {
      expect_s3_class(x, "profile_error")
    }
  }
})

test_that("names that look like formats are names", {
  path <- write_file("sample.interval=20000", "\"%s%n%%\" \"{x}\" \"<cli>\" ")
  x <- read_rprof(path, source_uri = "%s{x}")
  expect_equal(stacks(x), "%s%n%% < {x} < <cli>")
  expect_output(print(x), "%s%n%%", fixed = TRUE)
  error <- tryCatch(read_rprof("{oops}%s"), error = identity)
  expect_match(conditionMessage(error), "{oops}%s", fixed = TRUE)
})
