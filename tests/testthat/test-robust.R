# tier: gate
# Events that must not end R: Ctrl-C, little memory, hostile files.

test_that("Ctrl-C stops a read that would not end, and R still works", {
  skip_on_cran()
  skip_on_os("windows")
  listen <- listen_to_interrupts()
  endless <- withr::local_tempfile()
  under_way <- withr::local_tempfile()
  system2("mkfifo", shQuote(endless))
  # After 20 MB the reader is still reading, since a pipe buffers little. Each end of the pipe ends with the other one.
  sample <- "yes '\"f\" \"g\" '"
  write <- paste("echo sample.interval=20000;", sample, "| head -c 20000000; touch", under_way, "; exec", sample)
  system2("sh", c("-c", shQuote(paste("{", write, "; } >", endless))), stderr = FALSE, wait = FALSE)
  small <- normalizePath(rprof_path("basic_all.out"))
  process <- run_r(wait = FALSE, env = listen, c(
    "library(profile)",
    sprintf("end <- tryCatch({ read_rprof('%s'); 'finished' }, interrupt = function(e) 'interrupted')", endless),
    sprintf("cat(end, nrow(read_rprof('%s')$samples), '\\n')", small)
  ))
  expect_event(function() file.exists(under_way) || length(process$lines()) > 0, process)
  tools::pskill(process$pid(), tools::SIGINT)
  expect_equal(trimws(expect_printed(process, ".")), "interrupted 203")
})

# The results of calls if a process that has loaded the package and read `x` may use this number of further MB of
# memory: a list by call of "works", "memory" for our error, or the message of another error. Each call is made in a
# fork of this process, which lowers its own limit, and must still work afterwards.
ends_with_memory <- function(megabytes, calls, setup = character()) {
  skip_on_cran()
  skip_on_os(c("windows", "mac"))
  if (Sys.which("prlimit") == "") {
    skip("prlimit is not installed: memory cannot be limited")
  }
  file <- withr::local_tempfile()
  lines <- vapply(1:10000, function(i) paste0("\"f", (i + 1:30 * (i %/% 10)) %% 3000, "\" ", collapse = ""), "")
  writeLines(c("sample.interval=20000", lines), file)
  ends <- withr::local_tempfile()
  # malloc returns freed memory at once, so that only the limit determines the available memory.
  malloc <- "env MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=65536 MALLOC_TRIM_THRESHOLD_=65536"
  result <- run_r(prefix = "ulimit -c 0;", env = malloc, c(
    "library(profile)",
    sprintf("file <- '%s'; small <- '%s'", file, normalizePath(rprof_path("basic_all.out"))),
    "x <- read_rprof(file)",
    "out <- tempfile(fileext = '.otlp'); page <- tempfile(fileext = '.html')",
    setup,
    "used <- function() as.numeric(gsub('[^0-9]', '', grep('^VmSize', readLines('/proc/self/status'), value = TRUE)))",
    "set_limit <- function(bytes) system2('prlimit', c('--pid', Sys.getpid(), sprintf('--as=%s:', bytes)))",
    "end_of <- function(call, megabytes) {",
    # R itself needs memory to remove the limit, and is killed by a signal if it has none: it gets this vector's.
    "  reserve <- raw(16e6)",
    "  set_limit(format((used() + megabytes * 1024) * 1024, scientific = FALSE))",
    "  end <- tryCatch({ call(); 'works' }, error = function(e) {",
    "    if (inherits(e, 'profile_error_memory')) 'memory' else conditionMessage(e)",
    "  })",
    "  rm(reserve)",
    "  invisible(gc())",
    "  set_limit('unlimited')",
    "  stopifnot(nrow(read_rprof(small)$samples) == 203, identical(validate_profile(x), x))",
    "  end",
    "}",
    "in_fork <- function(...) {",
    "  end <- parallel::mccollect(parallel::mcparallel(end_of(...)))[[1]]",
    "  if (is.character(end) && length(end) == 1) end else 'the process ended'",
    "}",
    sprintf("megabytes <- c(%s)", paste(megabytes, collapse = ", ")),
    "calls <- list(", paste0("  ", names(calls), " = function() ", calls, c(rep(",", length(calls) - 1), "")), ")",
    # Once with enough memory, and with a small profile, which leaves little memory for later use: R loads functions when
    # they are first called, and fails in its own ways if it cannot.
    "large <- list(x, file)",
    "x <- read_rprof(small); file <- small",
    "for (call in c(calls, function() read_rprof('/no/such/file'))) end_of(call, 1e6)",
    "x <- large[[1]]; file <- large[[2]]; rm(large)",
    "invisible(gc())",
    sprintf("saveRDS(lapply(calls, function(call) vapply(megabytes, function(n) in_fork(call, n), '')), '%s')", ends)
  ))
  expect_ran(result)
  readRDS(ends)
}

# Expects an error with little memory, and success with enough. R's own errors have no class. The radix sort of `order()`
# reports a failed allocation in words of its own.
expect_memory_errors <- function(ends) {
  for (call in names(ends)) {
    ends_of_call <- ends[[call]]
    info <- paste(c(call, ends_of_call), collapse = "; ")
    refused <- grepl(
      "^memory$|(cannot|could not) allocate|Not enough memory|(Failed|Unable) to (re)?alloc|memory exhausted", ends_of_call
    )
    expect_true(all(refused | ends_of_call == "works"), info = info)
    expect_true(refused[[1]], info = info)
    expect_equal(utils::tail(ends_of_call, 1), "works", info = info)
  }
}

# `tools/memory-limits` takes smaller steps, and tries all functions.
steps <- c(0.5, 1, 2, 4, 8, 16, 1024)

test_that("with too little memory there is an error, not an abort", {
  # Includes computed columns, and tables that are not data frames.
  expect_memory_errors(ends_with_memory(steps, c(
    read = "{ options(profile.lazy = FALSE); read_rprof(file) }", expand = "lapply(read_rprof(file)$sample_locations, rev)",
    flatten = "lapply(tibble::as_tibble(x), rev)", otlp = "write_otlp(x, out, aggregate = FALSE)", pprof = "write_pprof(x, out)",
    page = "write_profile(x, page)", firefox = "write_firefox(x, out)", callgrind = "write_callgrind(x, out)",
    compare = "compare_profiles(x, x)"
  )))
})

test_that("an error about memory is raised without reading a file", {
  # A file cannot be read without memory, so the error would be one about a connection.
  result <- run_r(c(
    "library(profile)",
    "invisible(suppressMessages(trace('readRDS', quote(stop('a file is read')), print = FALSE, where = baseenv())))",
    "f <- function() profile:::rust(list(NULL, list(class = 'profile_error_memory', message = 'Not %s.')), sys.call())",
    "error <- tryCatch(f(), error = identity)",
    "cat(class(error)[1:2], conditionMessage(error), deparse(conditionCall(error)))"
  ))
  expect_ran(result)
  expect_equal(result$output, "profile_error_memory profile_error Not %s. f()")
})

# A pprof file with this number of samples of 100 frames, and an unknown field of this number of megabytes.
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

test_that("pprof files with too little memory are errors, on reading and on writing", {
  message <- withr::local_tempfile(fileext = ".gz")
  big_pprof(message, 1, 40)
  tables <- withr::local_tempfile(fileext = ".gz")
  big_pprof(tables, 1e4, 0)
  for (path in c(message, tables)) {
    y <- read_pprof(path)
    expect_equal(nrow(y$sample_locations), 100 * nrow(y$samples))
  }
  # Memory for the message, the tables, and for writing them.
  expect_memory_errors(ends_with_memory(steps, c(
    message = "read_pprof(message)", tables = "lapply(read_pprof(tables)$sample_locations, rev)",
    edited = "{ x$sample_locations$location_id[1:1000] <- 1L; write_pprof(combine_profiles(x, x), out) }"
  ), setup = sprintf("message <- '%s'; tables <- '%s'", message, tables)))
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

test_that("random changes of real files never crash R", {
  set.seed(1)
  files <- c("multi_memory_gc_line.out", "newline_plain.out", "append_line2.out", "latin1_names.out")
  path <- withr::local_tempfile()
  for (i in 1:100) {
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

test_that("names that look like format specifiers are not interpreted", {
  path <- write_file("sample.interval=20000", "\"%s%n%%\" \"{x}\" \"<cli>\" ")
  x <- read_rprof(path, source_uri = "%s{x}")
  expect_equal(stacks(x), "%s%n%% < {x} < <cli>")
  expect_output(print(x), "%s%n%%", fixed = TRUE)
  error <- tryCatch(read_rprof("{oops}%s"), error = identity)
  expect_match(conditionMessage(error), "{oops}%s", fixed = TRUE)
})
