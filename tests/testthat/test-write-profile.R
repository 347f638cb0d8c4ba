# tier: fast
# The name of a file determines its format.

test_that("each name stands for its format", {
  dir <- withr::local_tempdir()
  x <- small_profile()
  written <- list(
    pprof = c("a.pb", "a.pb.gz", "a.pprof", "A.PROF", "callgrind.pb"),
    rprof = c("a.out", "Rprof.out", "a.Rprof", "a.out.gz"),
    otlp = c("a.otlp", "a.otlp.gz", "a.otlp.json", "b.otlp.json.gz"),
    cpuprofile = c("a.cpuprofile", "a.cpuprofile.gz"),
    firefox = c("a.firefox.json", "a.firefox.json.gz"),
    speedscope = c("a.speedscope.json", "a.speedscope.json.gz"),
    collapsed = c("a.collapsed", "a.folded", "a.out.folded.gz")
  )
  for (format in names(written)) {
    for (name in written[[format]]) {
      path <- file.path(dir, name)
      expect_identical(expect_invisible(write_profile(x, path)), x)
      y <- suppressWarnings(read_profile(path), classes = "profile_warning")
      expect_true(all(y$sources$source_type %in% c(format, if (format == "otlp") "rprof")), info = name)
      gzip <- identical(readBin(path, "raw", 2), as.raw(c(0x1f, 0x8b)))
      expect_equal(gzip, format == "pprof" || grepl("[.]gz$", name), info = name)
    }
  }
  expect_match(readLines(file.path(dir, "a.otlp.json"), warn = FALSE)[[1]], "^\\{")
  for (name in c("callgrind.out", "callgrind.out.123", "a.callgrind")) {
    write_profile(x, file.path(dir, name))
    expect_match(readLines(file.path(dir, name)), "^# callgrind format", all = FALSE)
  }
  write_profile(x, file.path(dir, "a.html"), title = "My title")
  expect_match(readLines(file.path(dir, "a.html"), warn = FALSE), "My title", all = FALSE)
})

test_that("the core names functions of R that exist, and each name of a file fits its own pattern best", {
  formats <- data_model()$formats
  functions <- grep("^(read|write)_", getNamespaceExports("profile"), value = TRUE)
  # `write_profile()` writes pages by an internal function.
  expect_setequal(na.omit(c(formats$reader, formats$writer)), c(setdiff(functions, "write_profile"), "write_page"))
  names <- data_model()$file_names
  for (i in seq_len(nrow(names))) {
    expect_identical(writer_of(gsub("*", "a", names$name[[i]], fixed = TRUE), NULL), names$writer[[i]])
  }
})

test_that("arguments are passed on", {
  path <- withr::local_tempfile(fileext = ".pprof")
  x <- small_profile()
  write_profile(x, path, aggregate = FALSE)
  expect_equal(nrow(read_pprof(path)$samples), 3)
  write_profile(x, path)
  expect_equal(nrow(read_pprof(path)$samples), 2)
  expect_error(write_profile(x, path, aggregate = NA), class = "profile_error_argument")
})

test_that("unknown names are errors that list the known ones", {
  x <- small_profile()
  expect_snapshot(cat(errors_of({
    write_profile(x, "a.json")
    write_profile(x, "a")
    write_profile(x, "dir.out/a.html.gz")
    write_profile(x, 1)
    write_profile(1, "a.pb")
    write_profile(x, "nowhere/a.pb")
  }), sep = "\n"))
})

test_that("README lists all functions that read and write formats", {
  readme <- test_path("..", "..", "README.md")
  skip_if_not(file.exists(readme), "README.md is not beside the tests")
  table <- paste(grep("^\\|", readLines(readme), value = TRUE), collapse = "\n")
  functions <- grep("^(read|write)_", getNamespaceExports("profile"), value = TRUE)
  for (name in setdiff(functions, c("read_profile", "write_profile"))) {
    expect_match(table, paste0("`", name, "()`"), fixed = TRUE)
  }
})
