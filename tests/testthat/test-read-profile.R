# tier: fast
# Files of unknown format: it is detected by the content, not by the name.

# A file of each kind, with the function that reads it.
known_files <- function(.local_envir = parent.frame()) {
  dir <- withr::local_tempdir(.local_envir = .local_envir)
  path <- function(name) file.path(dir, name)
  shop <- file_bytes(otlp_path("python-1.45.2.pb"))
  json <- readLines(otlp_path("python-1.45.2.json"), warn = FALSE)
  pprof <- path("go.out")
  file.copy(data_path("pprof", "go_mutex.pb.gz"), pprof)
  frame <- c(writeBin(length(shop), raw(), endian = "big"), shop)
  plain <- list(
    rprof = list(rprof_path("basic_all.out"), read_rprof),
    rprof_without_header = list(write_bytes("\"f\" \"g\" \n", path("a.json")), read_rprof),
    rprof_bom = list(rprof_path("edit_bom.out"), read_rprof),
    pprof = list(write_bytes(memDecompress(file_bytes(pprof), "gzip"), path("go.json")), read_pprof),
    otlp = list(write_bytes(shop, path("Rprof.out")), read_otlp),
    otlp_old = list(otlp_path("python-1.40.0.pb"), read_otlp),
    otlp_like_json = list(otlp_path("starts-like-json.pb"), read_otlp),
    otlp_tables = list(otlp_path("dictionary-only.pb"), read_otlp),
    otlp_json = list(write_file(json, path = path("b.pb.gz")), read_otlp),
    otlp_indented = list(write_file("\ufeff", "  {", " ", substring(json, 2), path = path("c.out")), read_otlp),
    otlp_lines = list(write_file(json, json, path = path("d.pb")), read_otlp),
    collapsed = list(write_file("f;g 2", "f;h 1", path = path("f.out")), read_collapsed),
    rprofmem = list(write_file("8048 :\"f\" \"g\" ", "new page:", path = path("g.out")), read_rprofmem),
    perf = list(write_file("R 1 2.5: 3 cycles: ", "\t7f0 f (m)", path = path("h.out")), read_perf_script),
    otlp_framed = list(write_bytes(c(frame, frame), path("e.out")), read_otlp),
    speedscope = list(data_path("speedscope", "py-spy.json"), read_speedscope),
    cpuprofile = list(data_path("cpuprofile", "chromium.cpuprofile"), read_cpuprofile),
    cpuprofile_trace = list(
      write_bytes(memDecompress(file_bytes(data_path("cpuprofile", "trace.json.gz")), "gzip"), path("trace.out")),
      read_cpuprofile
    ),
    firefox = list({
      write_firefox(small_profile(), path("firefox.json"))
      path("firefox.json")
    }, read_firefox)
  )
  packed <- lapply(names(plain), function(kind) {
    packed <- path(paste0(kind, ".txt"))
    con <- gzfile(packed, "wb")
    writeBin(file_bytes(plain[[kind]][[1]]), con)
    close(con)
    list(packed, plain[[kind]][[2]])
  })
  c(plain, rlang::set_names(packed, paste(names(plain), "gzip")), list(go = list(pprof, read_pprof)))
}

test_that("every kind of file is read as by its own reader", {
  quietly <- function(code) suppressWarnings(code, classes = "profile_warning")
  files <- known_files()
  for (kind in names(files)) {
    path <- files[[kind]][[1]]
    read <- files[[kind]][[2]]
    expected <- quietly(read(path, source_uri = "a"))
    expect_identical(quietly(read_profile(path, source_uri = "a")), expected, info = kind)
    type <- sub("_.*| gzip", "", if (kind == "go") "pprof" else kind)
    expect_true(all(expected$sources$source_type == type), info = kind)
    # Version 1.0 needs counts of samples.
    if (!kind %in% c("otlp_old", "otlp_old gzip") && any(expected$sample_values$unit == "count")) {
      expect_identical(
        quietly(read_profile(path, version = "1.0")), quietly(read(path, version = "1.0")), info = kind
      )
    }
    con <- file(path, "rb", raw = TRUE)
    from_connection <- quietly(read_profile(con, source_uri = "a"))
    close(con)
    from_connection$sources$source_timestamp <- expected$sources$source_timestamp
    expect_identical(from_connection, expected, info = kind)
  }
})

test_that("warnings are the reader's, and name the file", {
  odd <- rprof_path("killed_line.out")
  expect_warning(read_profile(odd), "killed_line.out", class = "profile_warning_incomplete")
  expect_warning(read_profile(otlp_path("python-1.45.2.pb")), "python-1.45.2.pb", class = "profile_warning_repaired")
  expect_no_warning(read_profile(otlp_path("fleet.pb")))
})

test_that("a truncated compressed file is reported by its reader", {
  # Rprof's lines are read up to the end, a message is not.
  con <- gzfile(path <- withr::local_tempfile(), "wb")
  writeBin(file_bytes(rprof_path("basic_all.out")), con)
  close(con)
  write_bytes(file_bytes(path)[seq_len(file.size(path) - 20)], path)
  expect_warning(x <- read_profile(path), class = "profile_warning_incomplete")
  expect_gt(nrow(x$samples), 0)
  pprof <- file_bytes(data_path("pprof", "go_cpu.pb.gz"))
  error <- expect_error(read_profile(write_bytes(pprof[1:2000])), class = "profile_error_parse")
  expect_match(conditionMessage(error), "The gzip data end early")
})

found_path <- function(file) data_path("found", file)

# The self values of functions.
self_of <- function(x) {
  functions <- summary(x)$by_function
  rlang::set_names(functions$self, functions$name)[functions$self > 0]
}

test_that("stacks that look like something else are recognised", {
  x <- expect_no_warning(read_profile(found_path("py-spy-raw.txt")))
  expect_equal(nrow(x$samples), 2)
  expect_equal(self_of(x), c("work (app.py:9)" = 12, "load (app.py:14)" = 5))
  functions <- summary(x)$by_function
  expect_equal(functions$total[functions$name == "<module> (app.py:3)"], 17)
  x <- expect_no_warning(read_profile(found_path("collapsed-tab-in-name.txt")))
  expect_equal(self_of(x), c("b\tc" = 3, d = 2))
  expect_warning(x <- read_profile(found_path("collapsed-bad-line.txt")), class = "profile_warning_incomplete")
  expect_equal(self_of(x), c(b = 3, c = 2))
  expect_equal(profile_problems(x)[c("line", "problem")], tibble::tibble(line = 2, problem = "stray_text"))
})

test_that("output of `perf script` with few fields is recognised", {
  x <- expect_no_warning(read_profile(found_path("perf-no-time.txt")))
  expect_equal(self_of(x), c(f = 1, g = 1))
  expect_equal(summary(x)$by_function$total, c(2, 1, 1)[match(summary(x)$by_function$name, c("main", "f", "g"))])
  x <- expect_no_warning(read_profile(found_path("perf-comment-first.txt")))
  expect_equal(self_of(x), c(bcEval = 250000))
  expect_equal(x$.comments$comment, "made on host x")
})

test_that("prose, tables and code are not recognised as profiles", {
  for (file in list.files(system.file("samples", "report", package = "profile"), full.names = TRUE)) {
    expect_error(read_profile(file), "no known format", class = "profile_error_parse")
  }
  texts <- list(
    c("name,count", "f,1", "g,2"), c("\"name\",\"count\"", "\"f\",1"), c("a;b;c", "1;2;3"), c("1 2", "3 4"),
    c("On line 5", "there is more; see page 12", "and nothing else.", ""), c("x <- 1; y <- 2;", "print(x)"),
    c("Chapter 1 Words:", "\tadd (more)"), c("all:", "\tcc main.c"), "hello", c("Chapter 1", "Chapter 1"),
    c("width: 3", "height: 5")
  )
  for (text in texts) {
    expect_error(read_profile(write_file(text)), "no known format", class = "profile_error_parse")
  }
})

test_that("other kinds of files are named, with what to do instead", {
  kinds <- c(
    gperftools.cpu = "pprof -proto", "legacy-heap.txt" = "pprof -proto", "legacy-goroutine.txt" = "pprof -proto",
    zipped.zip = "Unpack it", tarred.tar.gz = "Unpack it", "gecko-sub.json" = "profiler.firefox.com",
    saved.rds = "readRDS()", saved.rda = "load()"
  )
  for (file in names(kinds)) {
    for (read in list(read_profile, read_pprof, read_otlp, read_rprof, read_firefox, read_collapsed)) {
      error <- expect_error(read(found_path(file)), kinds[[file]], fixed = TRUE, class = "profile_error_parse")
      expect_null(c(error$byte, error$line))
    }
  }
  for (read in list(read_profile, read_cpuprofile)) {
    expect_error(read(found_path("hermes-trace.json")), "no V8 profile", class = "profile_error_parse")
  }
  expect_snapshot({
    for (file in names(kinds)) {
      error <- tryCatch(read_profile(found_path(file)), profile_error_parse = identity)
      cat(sub(".*`: ?|.*format: ", "", conditionMessage(error)), "\n\n")
    }
  })
})

test_that("files of other profilers and tracers are named, with a tool that converts them", {
  kinds <- c(
    "cprofile-python3.prof" = "such as py-spy", tachyon.bin = "replay --gecko", perfetto.pftrace = "traceconv profile",
    ghc.eventlog = "hs-speedscope", memray.bin = "memray flamegraph", firefox70.jslb = "as JSON",
    "go-trace.out" = "go tool trace -pprof=TYPE", rustc.mm_profdata = "stack_collapse",
    pyinstrument.json = "pyinstrument -r speedscope"
  )
  for (file in names(kinds)) {
    for (read in list(read_profile, read_pprof, read_otlp, read_rprof, read_speedscope)) {
      error <- expect_error(read(found_path(file)), kinds[[file]], fixed = TRUE, class = "profile_error_parse")
      expect_null(c(error$byte, error$line))
    }
  }
  for (read in list(read_profile, read_cpuprofile)) {
    expect_error(
      read(found_path("trace-events-begin-end.json")), "speedscope.app", fixed = TRUE, class = "profile_error_parse"
    )
  }
})

test_that("the types of frames that async-profiler appends are no part of names", {
  x <- expect_no_warning(read_profile(found_path("collapsed-frame-types.txt")))
  expect_equal(self_of(x), c(f = 10))
  expect_setequal(x$locations$.frame_type, c("interpreted", "jit", "c1", NA))
})

test_that("files that R saved are recognised in all their forms", {
  x <- small_profile()
  path <- withr::local_tempfile()
  for (ascii in c(FALSE, TRUE, NA)) {
    for (compress in c("gzip", "none")) {
      for (version in 2:3) {
        saved <- try(saveRDS(x, path, ascii = ascii, version = version, compress = compress == "gzip"), silent = TRUE)
        # R 4.6 does not accept `NA` any more.
        if (is.na(ascii) && inherits(saved, "try-error")) next
        expect_error(read_profile(path), "readRDS()", fixed = TRUE, class = "profile_error_parse")
        if (is.na(ascii)) next
        save(x, file = path, ascii = ascii, version = version, compress = if (compress == "gzip") "gzip" else FALSE)
        expect_error(read_pprof(path), "load()", fixed = TRUE, class = "profile_error_parse")
      }
    }
  }
  writeBin(serialize(x, NULL, xdr = FALSE), path)
  expect_error(read_profile(path), "readRDS()", fixed = TRUE, class = "profile_error_parse")
  for (compress in c("bzip2", "xz")) {
    saveRDS(x, path, compress = compress)
    through <- if (compress == "xz") xzfile else bzfile
    expect_error(read_profile(path), paste0(substr(compress, 1, 2), "file()"), fixed = TRUE)
    con <- through(path, "rb")
    expect_error(read_profile(con), "readRDS()", fixed = TRUE, class = "profile_error_parse")
    close(con)
  }
})

test_that("errors about folders name the way to read them", {
  file <- normalizePath(rprof_path("basic_all.out"))
  withr::local_dir(withr::local_tempdir())
  dir.create("runs")
  file.copy(file, c("runs/1.out", "runs/2.out"))
  dir.create("set")
  file.create("set/_profile_dataset")
  expect_snapshot(error = TRUE, {
    read_profile("runs")
    read_profile("set")
    describe_profile("runs")
    profile_page("runs")
  })
  both <- combine_profiles(lapply(list.files("runs", full.names = TRUE), read_profile))
  expect_identical(nrow(both$sources), 2L)
})

test_that("a URL is not a path", {
  url <- "https://example.org/a.pb.gz"
  error <- expect_error(read_profile(url), "it is a URL", class = "profile_error_open")
  expect_match(conditionMessage(error), "Download it first")
  expect_equal(error$path, url)
  expect_error(read_rprof("s3://bucket/Rprof.out"), "Download it first", class = "profile_error_open")
  path <- rprof_path("basic_all.out")
  expect_error(read_profile(paste0("file://", normalizePath(path))), "Leave out `file://`", class = "profile_error_open")
  # A file with such a name is read.
  dir <- withr::local_tempdir()
  withr::local_dir(dir)
  dir.create("ab:")
  write_file("f;g 2", path = "ab://stacks.txt")
  expect_equal(nrow(read_profile("ab://stacks.txt")$samples), 1)
})

test_that("functions that look at profiles, edit and compare them take paths", {
  path <- rprof_path("basic_line.out")
  other <- rprof_path("basic_plain.out")
  x <- read_profile(path)
  y <- read_profile(other)
  expect_identical(as.list(describe_profile(path)), as.list(describe_profile(x)))
  expect_identical(profile_page(path), profile_page(x))
  expect_identical(profile_page(path, base = other), profile_page(x, base = y))
  expect_identical(call_tree(path), call_tree(x))
  expect_identical(annotate_lines(path), annotate_lines(x))
  expect_identical(filter_profile(path, hide_plumbing = TRUE), filter_profile(x, hide_plumbing = TRUE))
  expect_identical(compare_profiles(path, other), compare_profiles(x, y))
  runs <- c(path, path, other)
  expect_identical(compare_profiles(runs, rev(runs)), compare_profiles(list(x, x, y), list(y, x, x)))
  expect_error(describe_profile("there-is-no-such-file.out"), "no such file", class = "profile_error_open")
  broken <- withr::local_tempfile(lines = "no profile at all")
  error <- expect_error(describe_profile(broken), class = "profile_error_parse")
  expect_identical(error$call[[1]], quote(describe_profile))
})
