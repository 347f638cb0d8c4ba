# tier: fast
# Small files that represent huge profiles are rejected because of the memory that they would take, unless the user
# allows it.

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

# Expects that a file with this number of frames is refused if the limit is too low, and otherwise read.
expect_budget <- function(read, path, frames = 1e5) {
  withr::local_options(profile.max_memory = 5e5)
  error <- expect_error(read(path), class = "profile_error_budget")
  expect_match(conditionMessage(error), "options(profile.max_memory = ", fixed = TRUE)
  withr::local_options(profile.max_memory = 50 * frames)
  expect_equal(nrow(read(path)$sample_locations), frames)
  withr::local_options(profile.max_memory = NULL)
  expect_equal(nrow(read(path)$sample_locations), frames)
}

test_that("a file above the limit is refused, and read if the limit is raised", {
  for (open in list(file, gzfile)) {
    rprof <- repeated_rprof(withr::local_tempfile(), 1000, open)
    pprof <- inlined_pprof(withr::local_tempfile(), 1000, 100, open)
    expect_budget(read_rprof, rprof)
    expect_budget(read_profile, rprof)
    expect_budget(read_pprof, pprof)
  }
})

test_that("files of all other formats above the limit are refused", {
  names <- sprintf("f%d", 1:100)
  # Consecutive samples differ, since speedscope files merge equal ones.
  lines <- vapply(list(names, rev(names)), function(names) paste0("\"", names, "\" ", collapse = ""), "")
  x <- read_rprof(write_file("sample.interval=20000", rep(lines, 500)))
  for (end in c("", ".gz")) {
    dir <- withr::local_tempdir()
    at <- function(name) file.path(dir, paste0(name, end))
    write_otlp(x, at("x.otlp"), aggregate = FALSE)
    expect_budget(read_otlp, at("x.otlp"))
    # The file has the samples once for each of two types.
    write_speedscope(x, at("x.speedscope"), aggregate = FALSE)
    expect_budget(read_speedscope, at("x.speedscope"))
    write_cpuprofile(x, at("x.cpuprofile"))
    expect_budget(read_cpuprofile, at("x.cpuprofile"))
    write_firefox(x, at("x.firefox"))
    expect_budget(read_firefox, at("x.firefox"))
    write_text <- function(lines, name) {
      con <- if (end == "") file(at(name), "wb") else gzfile(at(name), "wb")
      writeLines(lines, con)
      close(con)
      at(name)
    }
    expect_budget(read_collapsed, write_text(rep(paste(paste(names, collapse = ";"), 1), 1000), "x.folded"))
    expect_budget(read_rprofmem, write_text(rep(paste0("48 :", lines), 500), "x.mem"))
    block <- c("R 1 2.5: 3 cycles: ", sprintf("\t7f0 %s (libR.so)", names), "")
    expect_budget(read_perf_script, write_text(rep(block, 1000), "x.perf"))
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
