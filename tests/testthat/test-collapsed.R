# tier: fast
# Collapsed stacks, read and written.

# The lines of a profile, from its tables.
collapsed_lines <- function(x, type = "samples") {
  frames <- as_tibble(x)
  name <- frames$name
  stacks <- vapply(split(name, factor(frames$sample_id, x$samples$sample_id)), function(names) {
    paste(gsub("[\r\n]", " ", gsub(";", ":", rev(names), fixed = TRUE)), collapse = ";")
  }, "")
  values <- x$sample_values[x$sample_values$type == type, ]
  value <- values$value[match(x$samples$sample_id, values$sample_id)]
  sums <- tapply(value[stacks != ""], factor(stacks[stacks != ""], unique(stacks[stacks != ""])), sum)
  paste(names(sums), format(as.vector(sums), scientific = FALSE, trim = TRUE, digits = 15))
}

written_lines <- function(x, ...) {
  path <- withr::local_tempfile()
  suppressWarnings(write_collapsed(x, path, ...), classes = "profile_warning_lossy")
  lines <- readLines(path, encoding = "UTF-8")
  lines
}

test_that("written stacks agree with the tables", {
  for (file in rprof_files()) {
    x <- read_quietly(rprof_path(file))
    if (nrow(x$samples) > 0 && all(lengths(lapply(x$functions$name, charToRaw)) > 0)) {
      expect_equal(written_lines(x), collapsed_lines(x), info = file)
    }
  }
})

test_that("reading returns what was written", {
  for (file in c("basic_all.out", "dplyr_line.out", "names_line.out", "deep_plain.out")) {
    skip_if_not(file.exists(rprof_path(file)), file)
    x <- read_quietly(rprof_path(file))
    path <- withr::local_tempfile()
    suppressWarnings(write_collapsed(x, path), classes = "profile_warning_lossy")
    y <- read_collapsed(path)
    expect_identical(validate_profile(y), y)
    expect_equal(y$sources$source_type, "collapsed")
    again <- withr::local_tempfile()
    expect_no_warning(write_collapsed(y, again))
    expect_identical(file_bytes(again), file_bytes(path), info = file)
    expect_identical(sum(y$sample_values$value), as.double(sum(tabulate(as_tibble(x)$sample_id) > 0)))
  }
})

test_that("a type can be chosen", {
  x <- read_quietly(rprof_path("basic_all.out"))
  cpu <- written_lines(x, type = "cpu")
  expect_equal(sub(" [0-9]+$", "", cpu), sub(" [0-9]+$", "", written_lines(x)))
  period <- x$sources$.period * 1000
  expect_equal(as.numeric(sub(".* ", "", cpu)), period * as.numeric(sub(".* ", "", written_lines(x))))
  error <- expect_error(write_collapsed(x, tempfile(), type = "cycles"), class = "profile_error_unsupported")
  expect_match(conditionMessage(error), "`samples`, `cpu`")
  expect_error(write_collapsed(x, tempfile(), type = 1), class = "profile_error_argument")
  expect_error(write_collapsed(x, tempfile(), frame_types = NA), class = "profile_error_argument")
})

test_that("types of frames are suffixes", {
  path <- write_file("main;in_[i];sys_[k];jit_[j];w_[w] 5", "main;f 1.5")
  x <- read_collapsed(path, source_uri = NA)
  expect_equal(rev(as_tibble(x)$name[1:5]), c("main", "in", "sys", "jit", "w"))
  expect_setequal(x$locations$.frame_type, c(NA, "kernel", "jit", "waker"))
  expect_equal(written_lines(x), c("main;in;sys;jit;w 5", "main;f 1.5"))
  expect_equal(written_lines(x, frame_types = TRUE), readLines(path))
})

test_that("losses are reported", {
  x <- small_profile()
  x$functions$name[[1]] <- "a;b\nc"
  path <- withr::local_tempfile()
  warning <- expect_warning(write_collapsed(x, path), class = "profile_warning_lossy")
  expect_equal(warning$losses[["changed_names"]], 1)
  expect_match(readLines(path), "a:b c", all = FALSE)
})

test_that("files of other tools are read", {
  x <- expect_no_warning(read_profile(data_path("collapsed", "py-spy.txt.gz")))
  lines <- read_gzipped(data_path("collapsed", "py-spy.txt.gz"))
  expect_equal(nrow(x$samples), length(lines))
  expect_equal(sum(x$sample_values$value), sum(as.numeric(sub(".* ", "", lines))))
  expect_equal(lengths(strsplit(lines, ";")), tabulate(as_tibble(x)$sample_id))
})

test_that("differences have two types", {
  path <- write_file("a;b 1 2", "a 0 4")
  expect_warning(x <- read_collapsed(path), class = "profile_warning_repaired")
  values <- split(x$sample_values$value, x$sample_values$type)
  expect_equal(values, list(samples = c(2, 4), samples_before = c(1, 0)))
})

test_that("speedscope reads the same from collapsed stacks, and from `perf script`", {
  skip_without_speedscope()
  x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
  dir <- withr::local_tempdir()
  path <- file.path(dir, "a.collapsed.txt")
  write_collapsed(x, path)
  perf <- file.path(dir, "perf.txt")
  writeLines(read_gzipped(data_path("perf", "r.txt.gz")), perf)
  files <- in_speedscope(path, perf)
  expect_equal(files[[1]]$profiles[[1]]$stacks, sums_by_stack(x, "samples"))
  # Their reader returns a profile for each thread, and uses other names for unknown functions.
  theirs <- unlist(lapply(files[[2]]$profiles, `[[`, "stacks"))
  y <- read_perf_script(perf)
  sizes <- function(stacks) sort(lengths(strsplit(stacks, ";", fixed = TRUE)))
  ours <- tabulate(as_tibble(y)$sample_id)
  expect_equal(max(sizes(names(theirs))), max(ours))
})

test_that("comments of Austin are kept", {
  x <- expect_no_warning(read_collapsed(data_path("found", "austin.txt"), source_uri = NA))
  expect_identical(read_profile(data_path("found", "austin.txt"), source_uri = NA), x)
  expect_equal(nrow(x$samples), 2)
  functions <- summary(x)$by_function
  expect_equal(functions$self[match(c("app.py:work:9", "app.py:load:14"), functions$name)], c(105, 95))
  expect_equal(sum(x$sample_values$value), 200)
  expect_equal(x$.comments$comment, c("austin: 3.7.0", "interval: 100", "mode: wall", "duration: 200"))
})

test_that("comments and names that start like them are distinct", {
  path <- write_file("//", "# a;b 5", "// x 3", "a;#b 1", "#a;b 2", "//a;b 3", "#end", "# done 4")
  x <- expect_no_warning(read_profile(path))
  expect_equal(x$sample_values$value, c(1, 2, 3))
  expect_setequal(x$functions$name, c("a", "#b", "#a", "b", "//a"))
  expect_equal(x$.comments$comment, c("", "a;b 5", "x 3", "end", "done 4"))
  # A line that would be a comment gets a blank.
  x$functions$name[x$functions$name == "#a"] <- "# a"
  path <- withr::local_tempfile()
  warning <- expect_warning(write_collapsed(x, path), class = "profile_warning_lossy")
  expect_equal(warning$losses[["changed_names"]], 1)
  expect_equal(readLines(path), c("a;#b 1", " # a;b 2", "//a;b 3"))
})

test_that("lines that are no stacks are skipped wherever they are", {
  for (lines in list(c("WARNING: x", "a;b 1", "a;c 2"), c("a;b 1", "x", "a;c 2"), c("a;b 1", "a;c 2", "x"))) {
    expect_warning(x <- read_collapsed(write_file(lines)), class = "profile_warning_incomplete")
    expect_equal(x$sample_values$value, c(1, 2))
    expect_equal(profile_problems(x)$line, which(!grepl(";", lines)))
    expect_warning(y <- read_profile(write_file(lines)), class = "profile_warning_incomplete")
    expect_identical(y$sample_values, x$sample_values)
  }
  # Comments do not hide a difference with two counts.
  expect_warning(x <- read_profile(write_file("# x", "a;b 1 2", "", "a 0 4")), class = "profile_warning_repaired")
  expect_setequal(x$sample_values$type, c("samples", "samples_before"))
  expect_error(read_collapsed(write_file("# a", "# b")), "only comments", class = "profile_error_parse")
})

test_that("a line may be longer than the part of a file that is examined", {
  path <- write_bytes(paste0(strrep("f;", 50000), "g 3\n"))
  x <- expect_no_warning(read_profile(path))
  expect_equal(nrow(x$sample_locations), 50001)
  # Neither reader takes the rest of a line for a stack.
  cut <- write_bytes(strrep("f;", 50000))
  expect_error(read_profile(cut), class = "profile_error_parse")
  expect_error(read_collapsed(cut), class = "profile_error_parse")
})

test_that("a tab may separate the count, as in FlameGraph", {
  x <- expect_no_warning(read_profile(write_file("a;b\t3", "a;c d\t2", "a;e\tf 1")))
  expect_equal(x$sample_values$value, c(3, 2, 1))
  expect_setequal(x$functions$name, c("a", "b", "c d", "e\tf"))
})
