# tier: fast
# Reading Rprof files: content, irregularities, and messages.

test_that("what the reader of profile 1.0.4 got wrong is right: memory", {
  for (version in c("1.0", "2.0")) {
    path <- write_file(
      "memory profiling: sample.interval=20000",
      ":10:100:1000:7:\"f\" \"g\" ",
      ":12:90:1056:0:\"h\" ",
      ":12:90:1056:0:"
    )
    x <- read_rprof(path, version = version)
    expect_equal(stacks(x), c("f < g", "h", ""))
  }
  values <- read_rprof(path)$sample_values
  of <- function(type) values$value[values$type == type]
  expect_equal(of("samples"), c(1, 1, 1))
  expect_equal(of("vsize_small"), 8 * c(10, 12, 12))
  expect_equal(of("vsize_large"), 8 * c(100, 90, 90))
  expect_equal(of("nodes"), c(1000, 1056, 1056))
  expect_equal(of("duplications"), c(7, 0, 0))
  expect_equal(of("alloc_size"), c(0, 2 * 8 + 56, 0))
  expect_equal(of("dealloc_size"), c(0, 10 * 8, 0))
  expect_equal(
    unique(values[c("type", "unit")])$unit,
    c("count", "bytes", "bytes", "bytes", "count", "bytes", "bytes")
  )
})

test_that("what the reader of profile 1.0.4 got wrong is right: names", {
  path <- write_file(
    "sample.interval=20000",
    "\"l[[\"a b\"]]\" \"f\"quote\" \" leading\" \"g\" ",
    "\"data.frame\" \"<GC>\" \"%<>%\" \"<Anonymous>\" \"a::b\" "
  )
  x <- read_rprof(path)
  expect_equal(stacks(x), c(
    "l[[\"a b\"]] < f\"quote <  leading < g",
    "data.frame < <GC> < %<>% < <Anonymous> < a::b"
  ))
  expect_equal(x$functions$name, x$functions$system_name)
})

test_that("what the reader of profile 1.0.4 got wrong is right: append = TRUE", {
  path <- write_file(
    "line profiling: sample.interval=20000", "#File 1: a.R", "1#1 \"f\" ",
    "line profiling: sample.interval=10000", "#File 1: b.R", "1#1 \"f\" ",
    "memory profiling: sample.interval=5000", ":1:2:3:4:\"f\" "
  )
  expect_no_warning(x <- read_rprof(path))
  expect_equal(as_tibble(x)$filename, c("a.R", "b.R", ""))
  expect_equal(x$samples$source_id, 1:3)
  expect_equal(x$sources$.period, c(20000, 10000, 5000))
  expect_equal(x$sources$.memory_profiling, c(FALSE, FALSE, TRUE))
  expect_equal(x$sources$.line_profiling, c(TRUE, TRUE, FALSE))
  # the first sample of a block has no previous sample
  values <- x$sample_values
  expect_equal(values$sample_id[values$type == "alloc_size"], 3L)
})

test_that("a file number without a #File line is reported", {
  x <- expect_profile_warning(
    read_rprof(rprof_path("edit_file_99.out")),
    "profile_warning_incomplete"
  )
  ghost <- as_tibble(x)[as_tibble(x)$name == "ghost", ]
  expect_equal(ghost$filename, "")
  expect_equal(ghost$line, 7L)
  expect_equal(profile_problems(x)$problem, "unknown_file")
})

test_that("a name that ends in a line feed, or holds several, is one name", {
  path <- write_file(
    "sample.interval=20000",
    "\"f\" \"ends",
    "\" \"g\" ",
    "\"f\" \"a",
    "",
    "b\" \"g\" ",
    "\"f\" \"g\" "
  )
  x <- read_quietly(path)
  expect_equal(stacks(x), c("f < ends\n < g", "f < a\n\nb < g", "f < g"))
})

test_that("torn lines are kept up to where they break, and do not swallow the next", {
  path <- write_file(
    "sample.interval=20000",
    "\"f\" \"g",
    "\"h\" \"g\" ",
    "tail\" \"g\" ",
    "\"h\" \"g\" "
  )
  x <- expect_profile_warning(read_rprof(path), "profile_warning_incomplete")
  expect_equal(stacks(x), c("f", "h < g", "h < g"))
  expect_equal(profile_problems(x)$problem, c("torn_sample", "stray_text"))
  expect_equal(profile_problems(x)$line, c(2, 4))
  expect_true(all(profile_problems(x)$lost))

  path <- write_file(
    "memory profiling: sample.interval=20000",
    ":1:2:3:4:\"f\" \"g",
    ":1:2:3:4:\"f\" \"g\" "
  )
  expect_equal(stacks(read_quietly(path)), c("f", "f < g"))
})

test_that("lines that an editor trimmed are whole", {
  path <- write_file(
    "line profiling: sample.interval=20000", "#File 1: a.R",
    "1#2 \"f\" 1#3 \"g\"", "1#2 \"f\" 1#3 \"g\"", "\"f\" 1#3"
  )
  x <- expect_profile_warning(read_rprof(path), "profile_warning_repaired")
  expect_equal(stacks(x), c("f < g", "f < g", "f"))
  expect_equal(x$samples$.toplevel_line, c(NA, NA, 3L))
})

test_that("the place of a top-level call is kept", {
  lines <- c("line profiling: sample.interval=20000", "#File 1: a.R", "1#2 \"f\" 1#9 ", "\"f\" ")
  x <- read_rprof(write_file(lines))
  expect_equal(x$samples$.toplevel_filename, c("a.R", NA))
  expect_equal(x$samples$.toplevel_line, c(9L, NA))
  path <- withr::local_tempfile()
  write_rprof(x, path)
  expect_equal(readLines(path), lines)
})

test_that("irregular files are read, with one warning that states the cause", {
  odd <- c(
    "edit_blank_lines.out", "edit_bom.out", "edit_crlf_all.out",
    "edit_header_only_no_newline.out", "edit_no_final_newline.out",
    "edit_no_header.out", "edit_nul_byte.out", "edit_file_99.out",
    "killed_line.out", "killed_plain.out", "latin1_names.out", "newline_plain.out",
    "longname_line.out", "deep_plain.out"
  )
  told <- character()
  for (file in odd) {
    warnings <- list()
    withCallingHandlers(
      x <- read_rprof(rprof_path(file)),
      warning = function(w) {
        warnings[[length(warnings) + 1]] <<- w
        invokeRestart("muffleWarning")
      }
    )
    expect_length(warnings, 1)
    expect_s3_class(warnings[[1]], "profile_warning")
    told <- c(told, file, paste(" ", unique(profile_problems(x)$problem)))
  }
  expect_snapshot(cat(told, sep = "\n"))
})

test_that("regular files give no warning and no problem", {
  for (file in c(regular_files(), "edit_gz.out.gz")) {
    # R itself has cut the last two
    if (grepl("^(newline|longname|deep)", file)) next
    expect_no_warning(x <- read_rprof(rprof_path(file)))
    expect_equal(nrow(profile_problems(x)), 0, info = file)
    expect_null(x$.problems)
  }
})

test_that("silent truncation by R is reported", {
  x <- read_quietly(rprof_path("deep_plain.out"))
  expect_equal(unique(profile_problems(x)$problem), "long_sample")
  expect_equal(nrow(profile_problems(x)), sum(nchar(readLines(rprof_path("deep_plain.out"))) >= 10000))
  x <- read_quietly(rprof_path("longname_plain.out"), version = "1.0")
  expect_equal(profile_problems(x)$problem, "long_name")
  expect_equal(max(nchar(x$functions$name)), 498)
})

test_that("the first line of many is torn in the middle of a file", {
  path <- write_file("ply\" \"work\" ", "\"f\" \"work\" ")
  x <- read_quietly(path)
  expect_equal(stacks(x), "f < work")
  expect_equal(profile_problems(x)$problem, c("no_header", "stray_text"))
  expect_false(".period" %in% names(x$sources))
})

test_that("a truncated header is reported", {
  x <- read_quietly(write_bytes("memory profiling: sample.int"))
  expect_equal(profile_problems(x)$problem, "cut_header")
  expect_equal(nrow(x$samples), 0)
})

test_that("a file of another format is refused with a hint", {
  local_wording <- function(path) {
    error <- tryCatch(read_rprof(path), error = identity)
    expect_s3_class(error, c("profile_error_parse", "profile_error"), exact = FALSE)
    gsub(path, "<path>", conditionMessage(error), fixed = TRUE)
  }
  pprof <- withr::local_tempfile()
  write_pprof(small_profile(), pprof)
  plain_pprof <- write_bytes(memDecompress(file_bytes(pprof), "gzip"))
  expect_snapshot({
    cat(local_wording(pprof))
    cat(local_wording(plain_pprof))
    cat(local_wording(rprof_path("rprofmem_basic.out")))
    cat(local_wording(rprof_path("edit_zero_bytes.out")))
    cat(local_wording(write_bytes("\n\n")))
    cat(local_wording(write_bytes("hello world\n")))
    cat(local_wording(write_bytes("{\"a\": 1}")))
    cat(local_wording(write_bytes(memCompress(charToRaw("sample.interval=1\n"), "bzip2"))))
  })
})

test_that("a file that cannot be opened is an error with its own class", {
  expect_error(read_rprof("no-such-file"), class = "profile_error_open")
  expect_error(read_rprof(tempdir()), class = "profile_error_open")
  error <- tryCatch(read_rprof("no-%s-%n-file"), error = identity)
  expect_equal(conditionMessage(error), "Cannot read `no-%s-%n-file`: there is no such file or directory.")
  expect_equal(error$path, "no-%s-%n-file")
  expect_equal(as.character(conditionCall(error)[[1]]), "read_rprof")
})

test_that("arguments are checked", {
  expect_error(read_rprof(1), class = "profile_error_argument")
  expect_error(read_rprof(c("a", "b")), class = "profile_error_argument")
  expect_error(read_rprof("a", version = "3.0"), class = "profile_error_argument")
  expect_error(read_rprof("a", source_uri = 1), class = "profile_error_argument")
  expect_error(read_rprof("a", "b"), class = "rlib_error_dots_nonempty")
  expect_error(write_pprof(small_profile(), "a", aggregate = NA), class = "profile_error_argument")
  expect_error(write_rprof(small_profile(), NULL), class = "profile_error_argument")
  expect_error(summary(small_profile(), type = 1), class = "profile_error_argument")
})

test_that("connections are read as readLines() takes them", {
  path <- rprof_path("basic_all.out")
  expected <- unclass(read_rprof(path))
  same <- function(x) {
    expect_equal(x$sample_locations, expected$sample_locations)
    expect_equal(x$functions, expected$functions)
    expect_equal(x$sample_values, expected$sample_values)
    expect_true(is.na(x$sources$source_timestamp))
  }
  con <- file(path)
  same(read_rprof(con))
  close(con)
  con <- file(path, "rt")
  same(read_rprof(con))
  close(con)
  con <- gzfile(rprof_path("edit_gz.out.gz"))
  same(read_rprof(con))
  close(con)
  con <- rawConnection(file_bytes(path))
  same(read_rprof(con))
  close(con)
  con <- textConnection(character())
  expect_error(read_rprof(con), "is empty", class = "profile_error_parse")
  close(con)
  con <- textConnection(readLines(path))
  same(read_rprof(con, source_uri = "here"))
  close(con)
})

test_that("provenance is kept", {
  path <- rprof_path("append_plain3.out")
  x <- read_rprof(path)
  expect_equal(x$sources$source_type, rep("rprof", 3))
  expect_equal(x$sources$source_uri, rep(path, 3))
  expect_equal(read_rprof(path, source_uri = "elsewhere")$sources$source_uri, rep("elsewhere", 3))
  expect_equal(read_rprof(path, source_uri = NA)$sources$source_uri, rep(NA_character_, 3))
})

test_that("a file that is truncated anywhere is read or refused, and never has more samples", {
  whole <- file_bytes(rprof_path("multi_memory_gc_line.out"))[1:1500]
  full <- read_quietly(write_bytes(whole))
  for (n in seq(0, length(whole), by = 7)) {
    x <- tryCatch(read_quietly(write_bytes(whole[seq_len(n)])), profile_error = identity)
    if (inherits(x, "profile_data")) {
      validate_profile(x)
      expect_lte(nrow(x$samples), nrow(full$samples))
    }
  }
})

test_that("ambiguous content at a truncated end is not guessed", {
  header <- "line profiling: sample.interval=20000\n#File 1: a.R\n\"f\" \"g\" \n"
  cut <- function(rest) read_quietly(write_bytes(paste0(header, rest)))
  # the quote may be part of the name, the line 12 may have been 123
  expect_equal(stacks(cut("\"f\" \"g\"")), c("f < g", "f"))
  expect_equal(stacks(cut("\"f\" 1#12 \"g\" 1#12")), c("f < g", "f"))
  expect_equal(profile_problems(cut("\"f\" \"g\""))$problem, "cut_sample")
  # neither a run nor a file
  x <- cut("memory profiling: samp")
  expect_equal(nrow(x$sources), 1)
  expect_equal(profile_problems(x)$problem, "cut_header")
  expect_equal(profile_problems(cut("#File 2: b"))$problem, "cut_file_line")
  # inside a name that continues in the next line
  expect_equal(stacks(cut("\"f\" \"two\nlin")), c("f < g", "f"))
})

test_that("truncated gzip data are read up to that point", {
  bytes <- file_bytes(rprof_path("edit_gz.out.gz"))
  x <- read_quietly(write_bytes(bytes[1:2000]))
  expect_true("cut_gzip" %in% profile_problems(x)$problem)
  expect_gt(nrow(x$samples), 0)
})

test_that("zero bytes after gzip data are skipped, with a problem; other bytes are an error", {
  files <- list(
    list(rprof_path("edit_gz.out.gz"), read_rprof),
    list(data_path("pprof", "go_mutex.pb.gz"), read_pprof)
  )
  for (file in files) {
    read <- file[[2]]
    whole <- file_bytes(file[[1]])
    expected <- read(file[[1]], source_uri = "a")
    padded <- write_bytes(c(whole, raw(10240)))
    for (reader in list(read, read_profile)) {
      x <- expect_profile_warning(reader(padded, source_uri = "a"), "profile_warning_repaired")
      expect_equal(x$.problems[c("problem", "text", "lost")], tibble::tibble(
        problem = "padded_gzip", text = "10240 zero bytes", lost = FALSE
      ))
      x$.problems <- NULL
      x$sources$source_timestamp <- expected$sources$source_timestamp
      expect_identical(x, expected)
      garbage <- write_bytes(c(whole, raw(512), as.raw(1)))
      expect_error(reader(garbage), class = "profile_error_parse")
    }
  }
})

test_that("runs of NUL bytes are skipped, and the content around them is read", {
  whole <- rprof_path("basic_line.out")
  expected <- read_rprof(whole, source_uri = "a")
  bytes <- file_bytes(whole)
  lines <- which(bytes == as.raw(10))
  at <- lines[length(lines) %/% 2]
  holed <- write_bytes(c(bytes[seq_len(at)], raw(5000), bytes[-seq_len(at)], raw(3)))
  for (reader in list(read_rprof, read_profile)) {
    x <- expect_profile_warning(reader(holed, source_uri = "a"), "profile_warning_incomplete")
    expect_equal(x$.problems$problem, c("nul_run", "nul_run"))
    expect_equal(x$.problems$line, c(length(lines) %/% 2, length(lines)) + 1)
    expect_equal(x$.problems$text, c("5000 NUL bytes", "3 NUL bytes"))
    expect_identical(stacks(x), stacks(expected))
  }
  # A file that is truncated while Rprof() writes to it: NUL bytes up to the position of Rprof().
  emptied <- write_bytes(c(raw(at), bytes[-seq_len(at)]))
  x <- expect_profile_warning(read_profile(emptied), "profile_warning_incomplete")
  expect_true(all(c("nul_run", "no_header") %in% x$.problems$problem))
  expect_identical(stacks(x), utils::tail(stacks(expected), nrow(x$samples)))
  expect_error(read_rprof(write_bytes(raw(1000))), "only NUL bytes", class = "profile_error_parse")
})

test_that("200 MB of NUL bytes at the end of a file are one problem", {
  skip_on_cran()
  if (Sys.which("truncate") == "") {
    skip("truncate is not installed: no sparse file is read")
  }
  path <- withr::local_tempfile()
  file.copy(rprof_path("basic_line.out"), path)
  system2("truncate", c("-s", "200M", shQuote(path)))
  expected <- read_rprof(rprof_path("basic_line.out"))
  # With a problem for each byte, or quadratic time, reading would not end.
  x <- expect_profile_warning(read_rprof(path), "profile_warning_incomplete")
  expect_identical(stacks(x), stacks(expected))
  expect_equal(x$.problems$problem, "nul_run")
})

test_that("truncation inside figures, positions and characters is reported as such", {
  problems <- function(...) {
    suppressWarnings(profile_problems(read_rprof(write_bytes(paste0(...)))))$problem
  }
  memory <- "memory profiling: sample.interval=20000\n:1:2:3:4:\"f\" \n"
  for (cut in c(":", ":1", ":1:2:3", ":1:2:3:4")) {
    expect_equal(problems(memory, cut), "cut_sample", info = cut)
  }
  line <- "line profiling: sample.interval=20000\n#File 1: a.R\n1#2 \"f\" \n"
  for (cut in c("1#", "1#2", "\"f\" 1#2 \"g\" 1", "\"f\" 1#2 \"g\" 1#3")) {
    expect_equal(problems(line, cut), "cut_sample", info = cut)
  }
  expect_true("cut_sample" %in% problems(line, "\"caf\xc3"))
  expect_equal(problems(line, "1#2 \"f\" "), "no_final_line_feed")
})

test_that("the time of an Rprof file is converted to the start of each run", {
  path <- withr::local_tempfile()
  file.copy(rprof_path("append_plain3.out"), path)
  end <- 1790000000.25
  Sys.setFileTime(path, as.POSIXct(end, origin = "1970-01-01", tz = "UTC"))
  for (read in list(read_rprof, read_profile)) {
    x <- read(path)
    samples <- tabulate(x$samples$source_id, 3)
    duration <- samples * 0.02
    # The duration of this run and the following runs is between its start and the end.
    expect_equal(x$sources$source_timestamp, end - rev(cumsum(rev(duration))), tolerance = 1e-12)
    expect_equal(length(unique(x$sources$source_timestamp)), 3)
  }

  # Other formats have the start, and a duration that leads to the end.
  file <- withr::local_tempfile()
  write_pprof(x, file)
  sources <- read_pprof(file)$sources
  expect_equal(sources$source_timestamp + sources$.duration_nanos / 1e9, end, tolerance = 1e-12)
  expect_equal(sources$source_timestamp, x$sources$source_timestamp[[1]], tolerance = 1e-12)
  write_pprof(x, file, source_labels = TRUE)
  sources <- read_pprof(file)$sources
  expect_equal(sources$source_timestamp, x$sources$source_timestamp, tolerance = 1e-12)
  write_otlp(x, file)
  sources <- read_otlp(file)$sources
  expect_equal(sources$source_timestamp, x$sources$source_timestamp, tolerance = 1e-12)
  expect_equal(sources$source_timestamp + sources$.duration_nanos / 1e9, end - c(rev(cumsum(rev(duration)))[-1], 0), tolerance = 1e-12)
})

test_that("a file without a time has none", {
  path <- withr::local_tempfile()
  file.copy(rprof_path("basic_plain.out"), path)
  Sys.setFileTime(path, as.POSIXct(0, origin = "1970-01-01", tz = "UTC"))
  expect_identical(read_rprof(path)$sources$source_timestamp, NA_real_)
  # If the interval is unknown, the end of the file is used.
  path <- write_file("\"f\" ", "\"f\" ")
  Sys.setFileTime(path, as.POSIXct(1790000000, origin = "1970-01-01", tz = "UTC"))
  expect_identical(read_quietly(path)$sources$source_timestamp, 1790000000)
})
