# Small files that stand for much: refused by what they would take, unless that is allowed.

# One location of many lines, in the stack of many samples.
inlined_pprof <- function(path, lines, samples, open = file) {
  string <- function(text) as.raw(c(0x32, nchar(text), utf8ToInt(text)))
  varint <- function(n) as.raw(c(n %% 128 + 128, (n %/% 128) %% 128 + 128, n %/% 16384))
  field <- function(tag, content) c(as.raw(tag), varint(length(content)), content)
  location <- c(as.raw(c(8, 1)), rep(as.raw(c(0x22, 2, 8, 1)), lines))
  con <- open(path, "wb")
  on.exit(close(con))
  writeBin(c(
    as.raw(c(0x0a, 4, 8, 1, 16, 2)), field(0x22, location), as.raw(c(0x2a, 4, 8, 1, 16, 3)),
    as.raw(c(0x32, 0)), string("samples"), string("count"), string("f"),
    rep(as.raw(c(0x12, 4, 8, 1, 16, 1)), samples)
  ), con)
  path
}

repeated_rprof <- function(path, samples, open = file) {
  con <- open(path, "wb")
  on.exit(close(con))
  line <- paste0("\"f", 1:100, "\" ", collapse = "")
  writeLines(c("sample.interval=20000", rep(line, samples)), con)
  path
}

test_that("a file that would take more than is allowed is refused, and read if it may", {
  for (open in list(file, gzfile)) {
    rprof <- repeated_rprof(withr::local_tempfile(), 1000, open)
    pprof <- inlined_pprof(withr::local_tempfile(), 1000, 100, open)
    otlp <- withr::local_tempfile(fileext = ".otlp")
    write_otlp(read_rprof(rprof), otlp, aggregate = FALSE)
    for (read in list(
      function() read_rprof(rprof), function() read_profile(rprof), function() read_pprof(pprof),
      function() read_otlp(otlp)
    )) {
      withr::local_options(profile.max_memory = 5e5)
      error <- expect_error(read(), class = "profile_error_budget")
      expect_match(conditionMessage(error), "options(profile.max_memory = ", fixed = TRUE)
      withr::local_options(profile.max_memory = 5e6)
      expect_equal(nrow(read()$sample_locations), 1e5)
      withr::local_options(profile.max_memory = NULL)
      expect_equal(nrow(read()$sample_locations), 1e5)
    }
  }
})

test_that("by default a location of 100,000 lines in 20,000 samples is refused soon", {
  pprof <- inlined_pprof(withr::local_tempfile(), 1e5, 2e4, gzfile)
  expect_error(read_pprof(pprof), class = "profile_error_budget")
})

test_that("the option must be a number", {
  withr::local_options(profile.max_memory = "much")
  expect_error(read_rprof(rprof_path("basic_all.out")), class = "profile_error_argument")
})
