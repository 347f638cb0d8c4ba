test_that("a regular file comes back byte for byte", {
  path <- withr::local_tempfile()
  for (file in regular_files()) {
    expect_identical(withVisible(write_rprof(read_quietly(rprof_path(file)), path))$visible, FALSE)
    expect_identical(file_bytes(path), file_bytes(rprof_path(file)), info = file)
  }
  write_rprof(read_rprof(rprof_path("edit_gz.out.gz")), path)
  expect_identical(readLines(path), readLines(rprof_path("edit_gz.out.gz")))
})

test_that("version 1.0 comes back byte for byte, but for memory and runs", {
  path <- withr::local_tempfile()
  for (file in c("basic_plain.out", "basic_line.out", "basic_gcline.out", "names_line.out", "multi_line.out")) {
    write_rprof(read_rprof(rprof_path(file), version = "1.0"), path)
    expect_identical(file_bytes(path), file_bytes(rprof_path(file)), info = file)
  }
})

test_that("summaryRprof() agrees before and after", {
  path <- withr::local_tempfile()
  for (file in c("basic_all.out", "dplyr_memgc.out", "multi_line.out")) {
    write_rprof(read_rprof(rprof_path(file)), path)
    memory <- if (grepl("all|mem", file)) "both" else "none"
    expect_equal(
      utils::summaryRprof(path, memory = memory),
      utils::summaryRprof(rprof_path(file), memory = memory)
    )
  }
})

test_that("a profile that was filtered can be written", {
  x <- read_rprof(rprof_path("multi_line.out"))
  keep <- x$samples$sample_id %% 2L == 0L
  ids <- x$samples$sample_id[keep]
  x$samples <- x$samples[keep, ]
  x$sample_values <- x$sample_values[x$sample_values$sample_id %in% ids, ]
  x$sample_locations <- x$sample_locations[x$sample_locations$sample_id %in% ids, ]
  path <- withr::local_tempfile()
  write_rprof(x, path)
  expect_no_warning(y <- read_rprof(path))
  expect_equal(stacks(y), stacks(read_rprof(rprof_path("multi_line.out")))[keep])
  expect_equal(as_tibble(y)$filename, as_tibble(x)$filename)
})

test_that("counts become lines", {
  x <- small_profile()
  x$sample_values$value <- c(2, 0, 1)
  path <- withr::local_tempfile()
  write_rprof(x, path)
  expect_equal(stacks(read_rprof(path)), c("f < g", "f < g", "f < g"))
  x$sample_values$value <- c(1, 1.5, 1)
  expect_error(write_rprof(x, path), class = "profile_error_lossy")
})

test_that("what Rprof cannot hold is told", {
  x <- small_profile()
  x$sources$.period <- NULL
  path <- withr::local_tempfile()
  expect_warning(write_rprof(x, path), class = "profile_warning_lossy")
  expect_match(readLines(path, 1), "sample.interval=20000$")
  x <- small_profile()
  x$sample_locations <- x$sample_locations[x$sample_locations$sample_id != 2, ]
  expect_warning(write_rprof(x, path), "have no line", class = "profile_warning_lossy")
})

test_that("a failed write leaves the old file and no other", {
  dir <- withr::local_tempdir()
  path <- file.path(dir, "old")
  writeLines("old", path)
  x <- small_profile()
  x$sample_values$value <- 0.5
  expect_error(write_rprof(x, path), class = "profile_error_lossy")
  expect_error(write_pprof(x, path), class = "profile_error_lossy")
  expect_equal(readLines(path), "old")
  expect_equal(dir(dir, all.files = TRUE, no.. = TRUE), "old")
})

test_that("a full disk is an error and leaves nothing", {
  skip_on_os(c("windows", "mac"))
  skip_if_not(file.exists("/dev/full"), "/dev/full")
  expect_error(write_rprof(small_profile(), "/dev/full"), "No space left", class = "profile_error_write")
  expect_error(write_pprof(small_profile(), "/dev/full"), "No space left", class = "profile_error_write")
  expect_error(write_pprof(small_profile(), tempdir()), class = "profile_error_write")
  expect_error(write_pprof(small_profile(), "no/such/dir/x"), class = "profile_error_write")
})

test_that("a process that is killed while it writes leaves the old file", {
  skip_on_cran()
  skip_on_os("windows")
  dir <- withr::local_tempdir()
  path <- file.path(dir, "old")
  writeLines("old", path)
  # A limit on the size of files ends the process inside the write.
  code <- sprintf(
    "library(profile); x <- suppressWarnings(read_rprof('%s')); write_rprof(x, '%s')",
    normalizePath(rprof_path("deep_plain.out")), path
  )
  script <- write_file(code)
  libs <- paste(.libPaths(), collapse = ":")
  run <- function(limit) {
    system2(
      "bash",
      c("-c", shQuote(paste0(
        limit, " R_LIBS='", libs, "' ", shQuote(file.path(R.home("bin"), "Rscript")), " ", shQuote(script)
      ))),
      stdout = FALSE, stderr = FALSE
    )
  }
  expect_true(run("ulimit -f 100;") != 0)
  expect_equal(readLines(path), "old")
  # it was the limit that ended it
  expect_equal(run(""), 0)
  expect_identical(file_bytes(path), file_bytes(rprof_path("deep_plain.out")))
})

test_that("an empty profile makes the way there and back", {
  path <- withr::local_tempfile()
  for (file in c("empty_plain.out", "empty_mem.out", "empty_line.out", "toplevel_plain.out")) {
    x <- read_rprof(rprof_path(file))
    write_pprof(x, path)
    y <- read_pprof(path)
    expect_equal(nrow(y$samples), 0)
    validate_profile(y)
    write_rprof(x, path)
    expect_identical(file_bytes(path), file_bytes(rprof_path(file)))
    expect_output(print(x), "No samples with a stack")
  }
})

test_that("a file that exists can be written into, as the help says", {
  skip_on_os("windows")
  x <- small_profile()
  path <- withr::local_tempfile(lines = "old")
  other <- withr::local_tempfile()
  expect_true(file.link(path, other))
  Sys.chmod(path, "0604")
  write_rprof(x, path)
  expect_identical(format(file.mode(path)), "604")
  expect_identical(readLines(other), "old")

  unlink(path)
  file.link(other, path)
  temporary <- withr::local_tempfile()
  write_rprof(x, temporary)
  expect_true(file.copy(temporary, path, overwrite = TRUE, copy.mode = FALSE))
  expect_identical(readLines(other), readLines(temporary))
  expect_identical(format(file.mode(other)), "604")
})

test_that("lines without a function are reported by writers that cannot hold them", {
  x <- small_profile()
  x$locations$function_id[1:2] <- NA
  path <- withr::local_tempfile()
  for (aggregate in c(TRUE, FALSE)) {
    expect_warning(write_pprof(x, path, aggregate = aggregate), "pprof refuses them: 2", class = "profile_warning_lossy")
    expect_equal(sum(is.na(read_pprof(path)$locations$function_id)), if (aggregate) 1 else 2)
  }
  expect_warning(write_rprof(x, path), "without a function are not in the file: 2", class = "profile_warning_lossy")
  # OpenTelemetry has them, as it has addresses without a symbol.
  expect_no_warning(write_otlp(x, path))
  back <- read_otlp(path)$locations
  expect_equal(sort(back$line[is.na(back$function_id)]), sort(x$locations$line[1:2]))
  # Without a line nothing is lost.
  x$locations$line[1:2] <- c(0L, NA)
  for (aggregate in c(TRUE, FALSE)) expect_no_warning(write_pprof(x, path, aggregate = aggregate))
  expect_no_warning(write_rprof(x, path))
  # Inlined into another frame, even such a line is a frame.
  x$locations$.inlined <- c(TRUE, FALSE, FALSE)[seq_len(nrow(x$locations))]
  expect_warning(write_pprof(x, path, aggregate = FALSE), "them: 2", class = "profile_warning_lossy")
})
