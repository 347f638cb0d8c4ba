# tier: fast
# Writing Rprof files: byte for byte, edited tables, and losses.

test_that("a regular file comes back byte for byte", {
  path <- withr::local_tempfile()
  for (file in regular_files()) {
    expect_identical(withVisible(write_rprof(read_quietly(rprof_path(file)), path))$visible, FALSE)
    expect_identical(file_bytes(path), file_bytes(rprof_path(file)), info = file)
  }
  write_rprof(read_rprof(rprof_path("edit_gz.out.gz")), path)
  expect_identical(readLines(path), readLines(rprof_path("edit_gz.out.gz")))
})

test_that("version 1.0 is reproduced byte for byte, apart from memory and runs", {
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

test_that("information that Rprof cannot store is reported", {
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
  expect_error(write_rprof(small_profile(), "/dev/full"), "the disk is full", class = "profile_error_write")
  expect_error(write_pprof(small_profile(), "/dev/full"), "the disk is full", class = "profile_error_write")
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
  # The limit ended the process.
  expect_equal(run(""), 0)
  expect_identical(file_bytes(path), file_bytes(rprof_path("deep_plain.out")))
})

test_that("an empty profile survives writing and reading", {
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

test_that("an existing file can be overwritten in place, as documented", {
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
  # OpenTelemetry can store them, like addresses without a symbol.
  expect_no_warning(write_otlp(x, path))
  back <- read_otlp(path)$locations
  expect_equal(sort(back$line[is.na(back$function_id)]), sort(x$locations$line[1:2]))
  # Without lines, nothing is lost.
  x$locations$line[1:2] <- c(0L, NA)
  for (aggregate in c(TRUE, FALSE)) expect_no_warning(write_pprof(x, path, aggregate = aggregate))
  expect_no_warning(write_rprof(x, path))
  # Inlined into another frame, even such a line is a frame.
  x$locations$.inlined <- c(TRUE, FALSE, FALSE)[seq_len(nrow(x$locations))]
  expect_warning(write_pprof(x, path, aggregate = FALSE), "them: 2", class = "profile_warning_lossy")
})

# The losses that a writer reports, as `kind = count`.
losses <- function(expr) {
  caught <- NULL
  withCallingHandlers(expr, profile_warning_lossy = function(warning) {
    caught <<- warning$losses
    rlang::cnd_muffle(warning)
  })
  caught
}

test_that("intervals that are not whole microseconds are reported, and wrong ones refused", {
  x <- small_profile()
  path <- withr::local_tempfile()
  x$sources$.period <- 1234.5
  expect_equal(losses(write_rprof(x, path)), c(rounded_intervals = 1))
  x$sources$.period <- 0.000123
  x$sources$.period_unit <- "seconds"
  expect_null(losses(write_rprof(x, path)))
  expect_match(readLines(path, 1), "=123$")
  for (period in c(-1, 1e-7, Inf)) {
    x$sources$.period <- period
    expect_error(write_rprof(x, path), "Source 1 has a period", class = "profile_error_lossy")
  }
})

test_that("times that are not whole intervals are reported", {
  x <- small_profile()
  x$sample_values$type <- "cpu"
  x$sample_values$unit <- "nanoseconds"
  x$sample_values$value <- c(2e7, 1.5e7, 4e6)
  path <- withr::local_tempfile()
  expect_equal(losses(write_rprof(x, path)), c(rounded_counts = 2))
  expect_equal(nrow(read_rprof(path)$samples), 4)
})

test_that("memory figures that Rprof cannot hold are reported or refused", {
  x <- read_rprof(rprof_path("basic_mem.out"))
  path <- withr::local_tempfile()
  small <- which(x$sample_values$type == "vsize_small")
  edit <- function(row, value) {
    x$sample_values$value[row] <- value
    x
  }
  expect_null(losses(write_rprof(edit(small[1], 80), path)))
  expect_equal(losses(write_rprof(edit(small[1:2], c(81, 80.5)), path)), c(rounded_figures = 2))
  for (value in c(-8, 1e30)) {
    expect_error(write_rprof(edit(small[2], value), path), "Sample 2.*`vsize_small`", class = "profile_error_lossy")
  }
  y <- x
  y$sample_values <- y$sample_values[-small[3], ]
  expect_equal(losses(write_rprof(y, path)), c(partial_figures = 1))
  y$sample_values <- y$sample_values[y$sample_values$type != "vsize_small", ]
  expect_equal(losses(write_rprof(y, path)), c(partial_figures = nrow(x$samples)))
})

test_that("files, lines and memory figures are written regardless of the options", {
  path <- withr::local_tempfile()
  for (file in c("basic_all.out", "basic_mem.out", "multi_line.out")) {
    x <- read_rprof(rprof_path(file))
    x$sources$.line_profiling <- FALSE
    x$sources$.memory_profiling <- FALSE
    expect_null(losses(write_rprof(x, path)))
    expect_identical(file_bytes(path), file_bytes(rprof_path(file)), info = file)
  }
  # After conversion to pprof the options are unknown.
  x <- read_rprof(rprof_path("basic_mem.out"))
  pprof <- withr::local_tempfile()
  write_pprof(x, pprof, aggregate = FALSE)
  write_rprof(read_pprof(pprof), path)
  expect_identical(file_bytes(path), file_bytes(rprof_path("basic_mem.out")))
})

test_that("lines beyond R's integers are reported", {
  x <- small_profile()
  pprof <- withr::local_tempfile()
  write_pprof(x, pprof)
  y <- read_pprof(pprof)
  y$locations$line[1:2] <- 0L
  y$locations$.line_exact <- c("4294967296", "-5", rep(NA, nrow(y$locations) - 2))
  path <- withr::local_tempfile()
  expect_equal(losses(write_rprof(y, path)), c(lost_lines = 2))
})

test_that("names that would be read as something else are changed and reported", {
  path <- withr::local_tempfile()
  read_back <- function(name, file = "a.R") {
    x <- small_profile()
    x$functions$name[1] <- name
    x$functions$filename[x$functions$filename == "a.R"] <- file
    x$.files <- NULL
    lost <- losses(write_rprof(x, path))
    expect_no_warning(y <- read_quietly(path))
    expect_equal(lengths(strsplit(stacks(y), " < ", fixed = TRUE)), lengths(strsplit(stacks(small_profile()), " < ", fixed = TRUE)))
    expect_equal(nrow(y$samples), 3)
    list(lost, y$functions$name[1], setdiff(y$functions$filename, ""))
  }
  for (name in c("l[[\"a b\"]]", "a\nb", "a\n", "\n", "a\n#File 1: b", " f ", "f\"")) {
    result <- read_back(name)
    if (is.null(result[[1]])) expect_identical(result[[2]], name)
  }
  expect_null(read_back("a\nb")[[1]])
  changed <- function(n) c(changed_names = n)
  expect_identical(read_back("f\" \"g"), list(changed(1), "f' 'g", "a.R"))
  expect_identical(read_back("f\" "), list(changed(1), "f' ", "a.R"))
  expect_identical(read_back("f\" 1#2 g"), list(changed(1), "f' 1#2 g", "a.R"))
  expect_identical(read_back("f\n\"g"), list(changed(1), "f 'g", "a.R"))
  expect_identical(read_back("f\nsample.interval=1\n"), list(changed(1), "f sample.interval=1 ", "a.R"))
  expect_identical(read_back("f", "a\nb.R"), list(changed(1), "f", "a b.R"))
  expect_identical(read_back("f", "a.R\r"), list(changed(1), "f", "a.R "))
  expect_identical(read_back("f\" ", "\"f\" \n\"g\" "), list(changed(2), "f' ", "'f'  'g' "))
})

test_that("periods, times and durations that are not whole numbers of 64 bits are reported", {
  x <- small_profile()
  path <- withr::local_tempfile()
  x$sources$.period <- 10000.0005
  expect_equal(losses(write_pprof(x, path)), c(periods = 1))
  expect_equal(losses(write_otlp(x, path)), c(periods = 1))
  # Labels can store such a period.
  expect_null(losses(write_pprof(x, path, source_labels = TRUE)))
  expect_equal(read_pprof(path)$sources$.period, 10000.0005)
  y <- x
  y$sources$source_type <- "manual"
  for (period in c(0.5, Inf)) {
    y$sources$.period <- period
    for (aggregate in c(TRUE, FALSE)) {
      expect_equal(losses(write_pprof(y, path, aggregate = aggregate)), c(periods = 1))
    }
  }
  # Half a microsecond is 500 nanoseconds.
  x$sources$.period <- 0.5
  expect_null(losses(write_pprof(x, path)))
  expect_null(losses(write_otlp(x, path)))

  x$sources$source_timestamp <- 1e10
  expect_equal(losses(write_pprof(x, path)), c(times = 1))
  expect_equal(losses(write_otlp(x, path)), c(times = 1))
  expect_error(write_pprof(x, path, source_labels = TRUE), class = "profile_error_lossy")

  x <- small_profile()
  x$sources$.duration_nanos <- 9e18
  expect_null(losses(write_pprof(x, path)))
  y <- combine_profiles(x, x)
  expect_equal(losses(write_pprof(y, path)), c(durations = 2))
  expect_false(".duration_nanos" %in% names(read_pprof(path)$sources))
  expect_null(losses(write_otlp(y, path)))
  x$sources$.duration_nanos <- 1e19
  expect_error(validate_profile(x), "duration_nanos", class = "profile_error_invalid")
})

test_that("values that OpenTelemetry cannot store are reported", {
  path <- withr::local_tempfile()
  x <- small_profile()
  x$samples$.timestamp <- 1e9 + 1:3
  x$sources$source_timestamp <- 1e9 + 2
  expect_equal(losses(write_otlp(x, path)), c(widened_times = 1))
  expect_equal(read_otlp(path)$sources$source_timestamp, 1e9 + 1)
  # Values that were not recorded cannot be changed.
  x$sources$source_timestamp <- NA_real_
  expect_null(losses(write_otlp(x, path)))

  x <- small_profile()
  x$sources$source_type <- "manual"
  other <- tibble::tibble(sample_id = 1L, type = "bytes", unit = "count", value = 5)
  x$sample_values <- rbind(x$sample_values, other)
  expect_equal(losses(write_otlp(x, path, aggregate = FALSE)), c(missing_values = 2))
  # Sums are the same without these samples.
  expect_null(losses(write_otlp(x, path)))

  x <- small_profile()
  x$.source_attributes <- tibble::tibble(
    source_id = 1L, key = c("a", "b", "a"), type = "string", value = c("1", "2", "3"), unit = NA_character_
  )
  expect_equal(losses(write_otlp(x, path)), c(repeated_attributes = 1))
  kept <- read_otlp(path)$.source_attributes
  expect_equal(kept$value[kept$key %in% c("a", "b")], c("1", "2"))

  x <- small_profile()
  x$locations$.inlined <- c(TRUE, FALSE, FALSE, FALSE)
  x$locations$.frame_type <- c("native", "kernel", NA, NA)
  expect_equal(losses(write_otlp(x, path)), c(frame_types = 1))
})

test_that("files are compressed if their names end in .gz, pprof files always", {
  x <- small_profile()
  is_gzip <- function(path) identical(readBin(path, "raw", 2), as.raw(c(0x1f, 0x8b)))
  plain <- withr::local_tempfile(fileext = ".out")
  gz <- withr::local_tempfile(fileext = ".gz")
  for (write in list(write_rprof, write_otlp)) {
    write(x, plain)
    write(x, gz)
    expect_identical(c(is_gzip(plain), is_gzip(gz)), c(FALSE, TRUE))
    expect_equal(read_profile(gz)$samples, read_profile(plain)$samples)
  }
  write_pprof(x, plain)
  expect_true(is_gzip(plain))
})
