# tier: gate
# The border between R and Rust: jumps, garbage collections and callbacks of R during a call harm neither.

rprof <- function() normalizePath(rprof_path("basic_all.out"))

test_that("each entry point has its wrapper, and nothing else can be called", {
  routines <- getDLLRegisteredRoutines("profile")
  wrappers <- ls(asNamespace("profile"), pattern = "^rust_")
  # extendr generates two functions for the crate and for each module of entry points.
  modules <- c("profile", "analysis", "lines", "native", "parallel", "peaks", "processes", "reading_and_writing", "services", "tables")
  generated <- c(paste0("get_", modules, "_metadata"), paste0("make_", modules, "_wrappers"))
  expect_setequal(names(routines$.Call), paste0("wrap__", c(wrappers, generated)))
  expect_setequal(names(routines$.External), c(
    "profile_load", "profile_resume", "profile_unload", "R_unload_profile",
    "profile_push_span", "profile_pop_span", "profile_span_name", "profile_active_span", "profile_log_spans",
    "profile_logged_spans", "profile_counter", "profile_count"
  ))
})

# test-border-torture.R has smaller steps.
test_that("garbage collections inside of compiled code change no result", {
  skip_on_cran()
  expect_equal(run_script(test_path("border", "torture.R"), 2, "inside"), "38 calls; these differ: ")
})

test_that("messages may contain format specifiers, and texts with a NUL", {
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

# The library of border/altrep.c, which is built once.
altrep_library <- function() {
  skip_on_cran()
  skip_on_os("windows")
  if (!has_compiler("CC")) {
    skip("there is no compiler")
  }
  source <- normalizePath(test_path("border", "altrep.c"))
  folder <- built_once("altrep", function(dir) {
    file.copy(source, dir)
    withr::with_dir(dir, run_tool(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "altrep.c")))
  })
  file.path(folder, paste0("altrep", .Platform$dynlib.ext))
}

# Code for a process that can create vectors whose data an R function returns, and count the bytes in use, after unused
# R objects were freed.
with_altrep <- function(code) {
  c(
    "library(profile)",
    sprintf("dll <- dyn.load('%s')", altrep_library()),
    "on_demand <- function(f, values) .Call(getNativeSymbolInfo('on_demand', dll), f, values)",
    # R keeps memory for small objects after they are freed, up to half as much as is in use. With more of them than the
    # code below can need, this memory is at its maximum, and does not grow while it is measured.
    "invisible(as.pairlist(as.list(as.double(1:1e6))))",
    "bytes_in_use <- function() {",
    "  for (i in 1:3) gc()",
    "  .Call(getNativeSymbolInfo('bytes_in_use', dll))",
    "}",
    sprintf("x <- y <- read_rprof('%s')", rprof()),
    "ids <- x$samples$sample_id",
    code
  )
}

run_with_altrep <- function(code) run_r(with_altrep(code))

# Expects that at most this many more bytes are in use at the end: some belong to R itself and to the code that was run.
expect_nothing_left <- function(bytes) {
  if (is.na(bytes)) {
    skip("the C library does not tell how much memory is in use")
  }
  expect_lt(bytes, 1e6)
}

test_that("errors of a user's vectors are passed on, and no memory is lost", {
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

test_that("memory of Rust is freed when R jumps", {
  skip_on_os("mac")
  result <- run_with_altrep(c(
    "n <- 1e5L",
    "y$samples <- tibble::tibble(sample_id = seq_len(n), source_id = 1L)",
    "y$sample_values <- y$sample_values[rep(1, n), ]",
    "y$sample_values$sample_id <- seq_len(n)",
    "y$sample_values$type <- rep(c('a', 'b'), length.out = n)",
    "y$sample_locations$location_id <- on_demand(function() stop('no'), y$sample_locations$location_id)",
    "refused <- function(n) all(replicate(n, tryCatch(validate_profile(y), error = conditionMessage)) == 'no')",
    "end <- refused(3)",
    "before <- bytes_in_use()",
    # Each column of integers that is not freed takes 4 MB.
    "end <- c(end, refused(10))",
    "cat(all(end), bytes_in_use() - before)"
  ))
  expect_match(result$output, "^TRUE ")
  expect_nothing_left(as.numeric(sub("TRUE ", "", result$output)))
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
    # An error in the inner call.
    "inner <- y; inner$samples$sample_id <- on_demand(function() stop('inside'), ids)",
    "f <- function() cat('', tryCatch(validate_profile(inner), error = conditionMessage))",
    "y$samples$sample_id <- on_demand(f, ids)",
    "invisible(validate_profile(y))"
  ))
  expect_match(result$output, "^TRUE TRUE( inside)+$")
})

test_that("Ctrl-C while a file is written leaves no part of it, and no memory", {
  skip_on_os("mac")
  listen <- listen_to_interrupts()
  folder <- withr::local_tempdir()
  process <- run_r(wait = FALSE, env = listen, with_altrep(c(
    sprintf("folder <- '%s'", folder),
    # Enough samples that the incomplete file can be observed.
    "n <- 3e5L",
    "x$samples <- tibble::tibble(sample_id = seq_len(n), source_id = 1L)",
    "x$sample_values <- tibble::tibble(sample_id = seq_len(n), type = 'samples', unit = 'count', value = as.double(seq_len(n)))",
    "x$sample_locations <- tibble::tibble(sample_id = seq_len(n), depth = 1L, location_id = rep_len(x$locations$location_id, n))",
    "x$.files <- NULL; x$samples$.toplevel_filename <- NULL",
    "calls <- list(",
    "  function() write_pprof(x, file.path(folder, 'out'), aggregate = FALSE),",
    "  function() write_otlp(x, file.path(folder, 'out.otlp'), aggregate = FALSE),",
    "  function() write_profile(x, file.path(folder, 'out.html'))",
    ")",
    # Memory that is allocated only once is allocated now.
    "for (call in calls) suppressWarnings(call())",
    "for (i in 1:6) {",
    "  end <- tryCatch({",
    "    file.create(file.path(folder, paste0('ready', i)))",
    "    suppressWarnings(repeat calls[[i %% 3 + 1]]())",
    "  }, interrupt = function(e) 'interrupted')",
    "  cat(end, bytes_in_use(), basename(list.files(folder, all.files = TRUE, no.. = TRUE)), '\\n')",
    "}"
  )))
  # Complete files, and files of this test; any other file is incomplete.
  parts <- function(files) grep("^(out|out[.](otlp|html)|ready[0-9])$", files, invert = TRUE, value = TRUE)
  ends <- function() grep("^interrupted .* $", process$lines(), value = TRUE)
  for (i in 1:6) {
    expect_event(function() file.exists(file.path(folder, paste0("ready", i))), process)
    # Ctrl-C is pressed while there is an incomplete file, or just after.
    expect_event(function() length(parts(list.files(folder, all.files = TRUE, no.. = TRUE))) > 0, process)
    tools::pskill(process$pid(), tools::SIGINT)
    expect_event(function() length(ends()) == i, process)
  }
  words <- strsplit(ends(), " ")
  expect_equal(unlist(lapply(words, function(word) parts(word[-(1:2)]))), character())
  memory <- as.numeric(vapply(words, `[[`, "", 2))
  expect_nothing_left(memory[[6]] - memory[[3]])
})

test_that("R code that the core calls may fail, jump, or call the core", {
  x <- small_profile()
  page <- profile_page(x)
  # The title is determined while the core has the profile.
  local_title <- function(code, envir = parent.frame()) {
    own <- profile:::page_title
    withr::defer(utils::assignInNamespace("page_title", own, "profile"), envir = envir)
    utils::assignInNamespace("page_title", function(x) code(), "profile")
  }
  local({
    local_title(function() rlang::abort("100% mine", class = "mine"))
    error <- expect_error(profile_page(x), class = "mine")
    expect_identical(conditionMessage(error), "100% mine")
  })
  local({
    local_title(function() rlang::cnd_signal(structure(class = c("here", "condition"), list(message = "", call = NULL))))
    expect_identical(tryCatch(profile_page(x), here = function(condition) "jumped"), "jumped")
  })
  local({
    inner <- NULL
    local_title(function() {
      if (is.null(inner)) {
        inner <<- "first"
        inner <<- profile_page(x, title = "inner")
        gc()
      }
      "outer"
    })
    outer <- profile_page(x)
    expect_identical(inner$html, profile_page(x, title = "inner")$html)
    expect_identical(outer$html, profile_page(x, title = "outer")$html)
  })
  expect_identical(profile_page(x), page)
})
