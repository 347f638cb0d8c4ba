# tier: gate
# Where R and Rust meet: nothing that R does meanwhile may harm either.

rprof <- function() normalizePath(rprof_path("basic_all.out"))

test_that("each entry point has its wrapper, and nothing else can be called", {
  routines <- getDLLRegisteredRoutines("profile")
  wrappers <- ls(asNamespace("profile"), pattern = "^rust_")
  generated <- c("get_profile_metadata", "make_profile_wrappers")
  expect_setequal(names(routines$.Call), paste0("wrap__", c(wrappers, generated)))
  expect_setequal(names(routines$.External), c("profile_load", "profile_resume", "profile_unload", "R_unload_profile"))
})

test_that("garbage collections at any time change no result", {
  skip_on_cran()
  # Profiles that fill all tables, small enough for a collection at each allocation.
  result <- run_r(c(
    "library(profile)",
    "folder <- tempfile(); dir.create(folder)",
    "at <- function(file) file.path(folder, file)",
    "writeLines(c('memory profiling: sample.interval=20000',",
    "  '#File 1: a.R', ':1:2:3:4:\"f\" 1#1 \"g\" ', ':5:6:7:8:\"f\" ', ':1:2:3:4:\"f\" 1#1 \"g\" ', 'x'), at('in.out'))",
    "x <- suppressWarnings(read_rprof(at('in.out')))",
    "y <- suppressWarnings(read_rprof(at('in.out'), version = '1.0'))",
    "write_pprof(x, at('in.pb'), aggregate = FALSE)",
    "suppressWarnings(write_otlp(x, at('in.otlp'), original_payload = TRUE))",
    "suppressWarnings(write_speedscope(x, at('in.speedscope')))",
    "suppressWarnings(write_firefox(x, at('in.firefox')))",
    "suppressWarnings(write_cpuprofile(x, at('in.cpuprofile')))",
    "writeLines(c('f;g 1', 'f 2'), at('in.txt'))",
    "writeLines(c('R 1 2.5: 3 cycles: ', '\\t7f0 f (m)'), at('in.perf'))",
    "writeLines(c('80 :\"f\" ', 'new page:\"g\" '), at('in.mem'))",
    "internal <- asNamespace('profile')",
    "bad <- x; bad$locations$line[[1]] <- -1L",
    "calls <- list(",
    "  function() suppressWarnings(read_rprof(at('in.out'))),",
    "  function() suppressWarnings(read_rprof(at('in.out'), version = '1.0')),",
    "  function() read_pprof(at('in.pb')),",
    "  function() read_otlp(at('in.otlp')),",
    "  function() read_otlp(at('in.otlp'), original_payload = TRUE),",
    "  function() read_speedscope(at('in.speedscope')),",
    "  function() read_cpuprofile(at('in.cpuprofile')),",
    "  function() read_firefox(at('in.firefox')),",
    "  function() read_profile(at('in.pb')),",
    "  function() { suppressWarnings(write_rprof(x, at('out'))); readLines(at('out')) },",
    "  function() { write_pprof(x, at('out')); readBin(at('out'), 'raw', 1e5) },",
    "  function() { suppressWarnings(write_otlp(x, at('out.otlp'))); readBin(at('out.otlp'), 'raw', 1e5) },",
    "  function() { suppressWarnings(write_speedscope(x, at('out'))); readBin(at('out'), 'raw', 1e5) },",
    "  function() { suppressWarnings(write_cpuprofile(x, at('out'))); readBin(at('out'), 'raw', 1e5) },",
    "  function() { write_collapsed(x, at('out.txt')); readLines(at('out.txt')) },",
    "  function() { write_callgrind(x, at('out')); readLines(at('out')) },",
    "  function() read_collapsed(at('in.txt')),",
    "  function() read_perf_script(at('in.perf')),",
    "  function() read_rprofmem(at('in.mem')),",
    "  function() { suppressWarnings(write_firefox(x, at('out'))); readBin(at('out'), 'raw', 1e5) },",
    "  function() { write_profile_page(x, at('out.html')); readBin(at('out.html'), 'raw', 1e6) },",
    "  function() profile_page(x, base = x)$html,",
    "  function() as_profvis(x)$x$message$prof,",
    "  function() call_tree(x, 'line'),",
    "  function() callers(x, 'f'),",
    "  function() add_packages(x),",
    "  function() profile_v1_from_v2(x),",
    "  function() profile_v2_from_v1(y),",
    "  function() validate_profile(x),",
    "  function() tryCatch(validate_profile(bad), error = function(e) unclass(e)[c('message', 'table', 'row')]),",
    "  function() tryCatch(read_rprof(at('none')), error = conditionMessage),",
    "  function() summary(x),",
    "  function() tibble::as_tibble(x),",
    "  function() filter_profile(x, focus = 'f'),",
    "  function() combine_profiles(x, x),",
    "  function() internal$rust(internal$rust_otlp_answer(charToRaw('{}'), 'json', TRUE), NULL),",
    "  function() internal$rust(internal$rust_schema(), NULL),",
    "  function() internal$rust(internal$rust_file_format(c(at('in.pb'), 'in.pb')), NULL),",
    "  function() internal$rust(internal$rust_joint_state(), NULL)",
    ")",
    "same <- vapply(calls, function(call) {",
    "  plain <- call()",
    "  gctorture2(7)",
    "  on.exit(gctorture2(0))",
    "  identical(call(), plain)",
    "}, NA)",
    "cat(paste(c(length(same), 'calls; these differ:', which(!same)), collapse = ' '))"
  ))
  expect_equal(result$output, "39 calls; these differ:")
})

test_that("messages may hold what looks like a format, and texts with a NUL", {
  for (path in c("50% of %s and %n", "a\\0b", "{x}")) {
    error <- expect_error(read_rprof(path), class = "profile_error_open")
    expect_match(conditionMessage(error), path, fixed = TRUE)
    error <- expect_error(write_rprof(read_rprof(rprof()), file.path("no folder", path)), class = "profile_error_write")
    expect_match(conditionMessage(error), path, fixed = TRUE)
  }
  # A NUL inside a text of the core.
  answer <- rust(rust_otlp_answer(as.raw(c(0x61, 0, 0x62)), "text", FALSE), NULL)
  expect_match(answer$message, "a.*b")
})

test_that("the package can be unloaded and loaded again", {
  skip_on_cran()
  result <- run_r(c(
    sprintf("path <- '%s'", rprof()),
    "x <- profile::read_rprof(path)",
    "for (i in 1:5) {",
    "  unloadNamespace('profile')",
    "  stopifnot(!'profile' %in% names(getLoadedDLLs()))",
    "  stopifnot(identical(profile::read_rprof(path), x))",
    "}",
    "cat('done')"
  ))
  expect_equal(result$output, "done")
})

# A process that can make vectors whose data an R function is called for.
run_with_altrep <- function(code) {
  skip_on_cran()
  skip_on_os("windows")
  if (!has_compiler("CC")) {
    skip("there is no compiler")
  }
  folder <- withr::local_tempdir()
  file.copy(test_path("border", "altrep.c"), folder)
  withr::with_dir(folder, run_tool(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "altrep.c")))
  run_r(c(
    "library(profile)",
    sprintf("dll <- dyn.load('%s/altrep%s')", folder, .Platform$dynlib.ext),
    "on_demand <- function(f, values) .Call(getNativeSymbolInfo('on_demand', dll), f, values)",
    sprintf("x <- y <- read_rprof('%s')", rprof()),
    "ids <- x$samples$sample_id",
    code
  ))
}

test_that("errors of a user's vectors stay those errors, and leave nothing behind", {
  result <- run_with_altrep(c(
    "y$samples$sample_id <- on_demand(function() stop('no data today'), ids)",
    "for (call in list(validate_profile, summary, function(x) write_pprof(x, tempfile()))) {",
    "  cat(tryCatch(call(y), error = function(e) conditionMessage(e)), '\\n')",
    "}",
    "y$samples$sample_id <- on_demand(function() warning('slow'), ids)",
    "cat(tryCatch(validate_profile(y), warning = function(w) conditionMessage(w)), '\\n')",
    "cat(list.files(tempdir()))"
  ))
  expect_equal(result$output, c(rep("no data today ", 3), "slow "))
})

test_that("what Rust holds when R jumps is freed", {
  skip_on_os("mac")
  result <- run_with_altrep(c(
    "n <- 1e6L",
    "y$samples <- tibble::tibble(sample_id = seq_len(n), source_id = 1L)",
    "y$sample_values <- y$sample_values[rep(1, n), ]",
    "y$sample_values$sample_id <- seq_len(n)",
    "y$sample_values$type <- rep(c('a', 'b'), length.out = n)",
    "y$sample_locations$location_id <- on_demand(function() stop('no'), y$sample_locations$location_id)",
    "kilobytes <- function() {",
    "  invisible(gc())",
    "  status <- readLines('/proc/self/status')",
    "  as.numeric(gsub('[^0-9]', '', grep('^VmRSS', status, value = TRUE)))",
    "}",
    "ends <- replicate(5, tryCatch(validate_profile(y), error = conditionMessage))",
    "before <- kilobytes()",
    "ends <- c(ends, replicate(40, tryCatch(validate_profile(y), error = conditionMessage)))",
    "cat(all(ends == 'no'), kilobytes() - before < 20000)"
  ))
  expect_equal(result$output, "TRUE TRUE")
})

test_that("a user's vector may call the package while that waits for it", {
  result <- run_with_altrep(c(
    "calls <- 0",
    "f <- function() {",
    "  calls <<- calls + 1",
    "  stopifnot(identical(validate_profile(x), x))",
    "  try(read_rprof('none'), silent = TRUE)",
    "}",
    "y$samples$sample_id <- on_demand(f, ids)",
    "out <- tempfile(); write_rprof(y, out)",
    "same <- tempfile(); write_rprof(x, same)",
    "cat(calls > 0, identical(readLines(out), readLines(same)))",
    # An error inside of the call inside.
    "inner <- y; inner$samples$sample_id <- on_demand(function() stop('inside'), ids)",
    "f <- function() cat('', tryCatch(validate_profile(inner), error = conditionMessage))",
    "y$samples$sample_id <- on_demand(f, ids)",
    "invisible(validate_profile(y))"
  ))
  expect_match(result$output, "^TRUE TRUE( inside)+$")
})

test_that("Ctrl-C while a file is written leaves no part of it, and no memory", {
  skip_on_cran()
  skip_on_os(c("windows", "mac"))
  # malloc returns what is freed at once, instead of keeping some of it, now more and now less.
  malloc <- "MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=131072 MALLOC_TRIM_THRESHOLD_=131072"
  folder <- withr::local_tempdir()
  process <- run_r(wait = FALSE, env = paste(listen_to_interrupts(), malloc), c(
    "library(profile)",
    sprintf("x <- read_rprof('%s'); folder <- '%s'", rprof(), folder),
    # A million samples: each call takes long enough to be interrupted.
    "n <- 1e6L",
    "x$samples <- tibble::tibble(sample_id = seq_len(n), source_id = 1L)",
    "x$sample_values <- tibble::tibble(sample_id = seq_len(n), type = 'samples', unit = 'count', value = as.double(seq_len(n)))",
    "x$sample_locations <- tibble::tibble(sample_id = seq_len(n), depth = 1L, location_id = rep_len(x$locations$location_id, n))",
    "x$.files <- NULL; x$samples$.toplevel_filename <- NULL",
    "kilobytes <- function() {",
    "  gc()",
    "  as.numeric(gsub('[^0-9]', '', grep('^VmRSS', readLines('/proc/self/status'), value = TRUE)))",
    "}",
    "calls <- list(",
    "  function() write_pprof(x, file.path(folder, 'out'), aggregate = FALSE),",
    "  function() write_otlp(x, file.path(folder, 'out.otlp'), aggregate = FALSE),",
    "  function() write_profile_page(x, file.path(folder, 'out.html'))",
    ")",
    # What is allocated once is there from here on.
    "for (call in calls) suppressWarnings(call())",
    "for (i in 1:6) {",
    "  end <- tryCatch({",
    "    file.create(file.path(folder, paste0('ready', i)))",
    "    suppressWarnings(repeat calls[[i %% 3 + 1]]())",
    "  }, interrupt = function(e) 'interrupted')",
    "  cat(end, kilobytes(), basename(list.files(folder, all.files = TRUE, no.. = TRUE)), '\\n')",
    "}"
  ))
  lines <- function() readLines(process$output, warn = FALSE)
  for (i in 1:6) {
    expect_true(wait_for(function() file.exists(file.path(folder, paste0("ready", i))), 60))
    Sys.sleep(0.1 * i)
    tools::pskill(process$pid(), tools::SIGINT)
    expect_true(wait_for(function() length(lines()) >= i, 60))
  }
  words <- strsplit(lines(), " ")
  expect_equal(vapply(words, `[[`, "", 1), rep("interrupted", 6))
  # Files that were complete, and those of this test.
  left <- lapply(words, function(word) grep("^(out|out[.](otlp|html)|ready[0-9])$", word[-(1:2)], invert = TRUE, value = TRUE))
  expect_equal(unlist(left), character())
  memory <- as.numeric(vapply(words, `[[`, "", 2))
  expect_lt(memory[[6]] - memory[[3]], 10000)
})
