# tier: fast
# Files of unknown format: the bytes tell it, not the name.

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
    otlp_old = list(otlp_path("rust-0.31.0.pb"), read_otlp),
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

test_that("warnings are those of the reader, and name the file", {
  odd <- rprof_path("killed_line.out")
  expect_warning(read_profile(odd), "killed_line.out", class = "profile_warning_incomplete")
  expect_warning(read_profile(otlp_path("python-1.45.2.pb")), "python-1.45.2.pb", class = "profile_warning_repaired")
  expect_no_warning(read_profile(otlp_path("fleet.pb")))
})

test_that("a truncated compressed file is reported by its reader", {
  # Rprof's lines are read up to there, a message is not.
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
