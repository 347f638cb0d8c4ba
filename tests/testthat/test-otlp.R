# tier: fast
# Reads files of other implementations. The programs that wrote the files reported the expected content, see
# data/otlp/README.md.

shop_files <- function() {
  otlp_path(c(
    "python-1.40.0.pb", "python-1.45.2.pb", "python-1.45.2.json", "collector-0.159.pb", "collector-0.159.json"
  ))
}

test_that("the same content is read in every version and encoding", {
  link <- " of 0102030405060708090a0b0c0d0e0f10/c8c9cacbcccdcecf"
  inner <- "leaf@app.py:22:4{cpython}~ < work@app.py:12{cpython} < main@app.py:5{cpython}"
  for (file in shop_files()) {
    x <- read_otlp_quietly(file, source_uri = "shop")
    validate_profile(x)
    expect_equal(sample_words(x), c(
      paste0("1 at 1761887347000000005", link, ": 1 count samples; thread.name=\"worker-1\", gc=-3 count"),
      paste0("1 at 1761887347010000000", link, ": 1 count samples; thread.name=\"worker-1\", gc=-3 count"),
      paste0("1 at 1761887347000000003", link, ": 1 count samples; thread.name=\"worker-1\", gc=-3 count"),
      "1 at 1761887347000000009: 1 count samples; thread.name=\"worker-1\"",
      "2 at 1761887347000000000: 10000000 nanoseconds cpu; thread.name=\"worker-1\"",
      "2 at 1761887347000000001: 0 nanoseconds cpu; thread.name=\"worker-1\"",
      "2 at 1761887347000000002: -1 nanoseconds cpu; thread.name=\"worker-1\"",
      "2 at -: 7 nanoseconds cpu; ",
      "3 at -: 4611686018427387904 By alloc; weights=array [{\"doubleValue\":0.5},{\"stringValue\":\"mixed\"}]",
      "3 at -: 9007199254740993 By alloc; "
    ), info = file)
    expect_equal(stack_words(x), c(
      inner, inner, inner, paste("? <", inner), inner, inner, inner, "",
      "main@app.py:5{cpython}", paste("? <", inner)
    ), info = file)
    sources <- x$sources
    expect_equal(sources$source_type, rep("otlp", 3), info = file)
    expect_equal(sources$source_uri, rep("shop", 3), info = file)
    expect_equal(sources$source_timestamp, rep(1761887347, 3), info = file)
    expect_equal(sources$.duration_nanos, rep(1e9, 3), info = file)
    expect_equal(sources$.period, c(1e7, NA, NA), info = file)
    expect_equal(sources$.period_type, c("cpu", NA, NA), info = file)
    expect_equal(sources$.period_unit, c("nanoseconds", NA, NA), info = file)
    ids <- c("000102030405060708090a0b0c0d0e0f", "0102030405060708090a0b0c0d0e0f10", NA)
    expect_equal(sources$.profile_id, ids, info = file)
    expect_equal(sources$.dropped_attributes_count, c(0, 2, 0), info = file)
    expect_equal(sources$.original_payload_format, c(NA, NA, "jfr"), info = file)
    expect_equal(sources$.original_payload, c(NA, NA, "AAH/"), info = file)
    expect_equal(sources$.scope_id, c(1L, 1L, 1L), info = file)
    expect_equal(x$.sample_types$recorded, c("samples", "cpu", "alloc"), info = file)
    expect_equal(x$.sample_types$unit, c("count", "nanoseconds", "By"), info = file)
    schema <- "https://opentelemetry.io/schemas/1.37.0"
    expect_equal(unlist(x$.scopes[c("name", "version", "schema_url")], use.names = FALSE), c("py.producer", "0.1", schema))
    expect_equal(x$.resources$schema_url, schema, info = file)
    expect_equal(attribute_words(x$.resource_attributes, "resource_id", 1), "service.name=string pyshop", info = file)
    expect_equal(attribute_words(x$.source_attributes, "source_id", 1:3), c("", "trace.flag=bool true", ""), info = file)
    mapping <- x$.mappings
    expect_equal(
      unlist(mapping[c("memory_start", "memory_limit", "file_offset", "filename", "build_id")], use.names = FALSE),
      c("0x8000000000000000", "0x8000000000001000", "0x10", "lib.so", ""), info = file
    )
    expect_equal(
      attribute_words(x$.mapping_attributes, "mapping_id", mapping$mapping_id),
      "process.executable.build_id.htlhash=string 600DCAFE4A110000F2BF38C493F5FB92", info = file
    )
    unknown <- x$locations[is.na(x$locations$function_id), ]
    expect_equal(unknown$.address, "0x800000000000004d", info = file)
    expect_equal(unknown$.mapping_id, mapping$mapping_id, info = file)
    lines <- x$functions$start_line[match(c("main", "work", "leaf"), x$functions$name)]
    expect_equal(lines, c(1L, 10L, 0L), info = file)
    # The only problem is numbers that R cannot represent exactly.
    expect_equal(unique(profile_problems(x)$problem), "imprecise_value", info = file)
    expect_match(profile_problems(x)$text, "9007199254740993$", info = file)
  }
})

test_that("a file of the Rust crate is read", {
  labels <- "thread.id=-9223372036854775808, host=bytes AQL/ count"
  link <- " of abababababababababababababababab/cdcdcdcdcdcdcdcd"
  inner <- "inner@m.rs:9:1~ < outer@:4 < main@m.rs:1"
  file <- otlp_path("rust-0.33.1.pb")
  x <- read_otlp_quietly(file)
  validate_profile(x)
  expect_equal(sample_words(x), c(
    paste0("1 at 1761887347000000001", link, ": 9223372036854775807 nanoseconds wall; ", labels),
    paste0("1 at 1761887347000000002", link, ": -1 nanoseconds wall; ", labels),
    "1 at 1761887347000000003: 1 nanoseconds wall; ",
    "2 at -: 3 nanoseconds samples; "
  ))
  expect_equal(stack_words(x), c(inner, inner, paste("? <", inner), inner))
  expect_equal(x$sources$source_uri, rep(file, 2))
  expect_equal(x$sources$.profile_id, rep(strrep("07", 16), 2))
  expect_equal(x$sources$.period, c(1e7, 1e7))
  expect_null(x$sources[[".original_payload"]])
  expect_equal(attribute_words(x$.resource_attributes, "resource_id", 1), "service.name=string rusty")
  expect_equal(x$.mappings$memory_limit, "0xffffffffffffffff")
  expect_equal(x$.mappings$build_id, "abcdef")
  expect_null(x[[".mapping_attributes"]])
  inlined <- x$locations$.address[x$locations$.inlined]
  expect_equal(inlined, "0xfffffffffffffffa")
  functions <- x$functions[match(c("main", "inner", "outer"), x$functions$name), ]
  expect_equal(functions$.has_system_name, c(FALSE, TRUE, FALSE))
  expect_equal(functions$.start_line_exact, c(NA, "-1", NA))
})

test_that("attributes of every kind are where they belong", {
  for (file in otlp_path(c("fleet.pb", "fleet.json.gz"))) {
    x <- read_otlp(file)
    validate_profile(x)
    expect_equal(attribute_words(x$.resource_attributes, "resource_id", x$.resources$resource_id), c(
      paste(
        sep = ", ",
        "service.name=string shop", "cpus=int 8", "load=double 0.75", "canary=bool true", "raw=bytes AP8=",
        paste0(
          "tags=array [{\"stringValue\":\"a\"},{\"intValue\":\"1\"},{\"boolValue\":true},",
          "{\"arrayValue\":{\"values\":[{\"bytesValue\":\"AQ==\"}]}}]"
        ),
        paste0(
          "limits=kvlist [{\"key\":\"cpu\",\"value\":{\"doubleValue\":2.5}},",
          "{\"key\":\"name\",\"value\":{\"stringValue\":\"x\"}}]"
        ),
        "nothing=empty "
      ),
      "service.name=string till"
    ), info = file)
    expect_equal(as.list(x$.resource_entities), list(
      resource_id = 1L, schema_url = "https://e.example", type = "service",
      id_keys = "[\"service.name\"]", description_keys = "[\"load\",\"cpus\"]"
    ), info = file)
    expect_equal(as.list(x$.resources), list(
      resource_id = 1:2, schema_url = c("https://a.example/1", NA), dropped_attributes_count = c(3, 0)
    ), info = file)
    expect_equal(as.list(x$.scopes), list(
      scope_id = 1:3, resource_id = c(1L, 1L, 2L), name = c("sampler", "allocs", NA), version = c("1.2", NA, NA),
      schema_url = c("https://s.example/1", NA, NA), dropped_attributes_count = c(1, 0, 0)
    ), info = file)
    expect_equal(attribute_words(x$.scope_attributes, "scope_id", 1:3), c("mode=string wall", "", ""), info = file)
    expect_equal(attribute_words(x$.source_attributes, "source_id", 1:3), c("build=int 7 count", "", ""), info = file)
    # Two profiles with the same samples are one source of two types.
    expect_equal(sample_words(x), c(
      paste(
        sep = ", ",
        "1 at -: 2 count samples", "20 nanoseconds cpu; state=\"on\"", "state=5 u", "who=\"me\"", "core=3 id",
        "flag=bool false", "ratio=double -0.5", "blob=bytes /v8=",
        paste0(
          "tree=kvlist [{\"key\":\"a\",\"value\":{\"arrayValue\":{\"values\":[{\"intValue\":\"1\"}]}}},",
          "{\"key\":\"b\",\"value\":{}}]"
        ),
        "none=empty ", "one=array [{\"stringValue\":\"x\"}]", "void=\"\""
      ),
      "1 at -: 1 count samples, 10 nanoseconds cpu; ",
      "1 at -: 1 count samples, 5 nanoseconds cpu; ",
      paste0("2 at 1761887347000000009 of ", strrep("01", 16), "/", strrep("02", 8), ": 64 By alloc; "),
      paste0("2 at 1761887347000000008 of ", strrep("01", 16), "/", strrep("02", 8), ": 32 By alloc; "),
      "3 at -: -3 ms wall; "
    ), info = file)
    deep <- "leaf@leaf.c:7{native}~ < work@app.c:13{native} < ? < main@app.c:5{native}"
    flat <- "work@app.c:12{native} < main@app.c:5{native}"
    expect_equal(stack_words(x), c(flat, flat, deep, deep, deep, flat), info = file)
    expect_equal(mapping_words(x), paste(
      "0x1000 0x2000 0x0 lib.so abc TRUE FALSE FALSE FALSE",
      c("", "arch=string x86", "arch=string arm, pages=int 2 4KiB")
    ), info = file)
    # For an address with inlined calls, the attributes of the outermost line.
    expect_equal(
      attribute_words(x$.location_attributes, "location_id", x$locations$location_id),
      c("", "clock=double 1.5 GHz", "clock=double 3.25 GHz", "", "hot=bool true", ""), info = file
    )
    expect_equal(x$locations$.is_folded, c(FALSE, FALSE, FALSE, TRUE, TRUE, FALSE), info = file)
    sources <- x$sources
    expect_equal(sources$.default_type, c("cpu", NA, NA), info = file)
    expect_equal(sources$.drop_frames, c("^drop$", NA, NA), info = file)
    expect_equal(sources$.keep_frames, c("^keep$", NA, NA), info = file)
    expect_equal(sources$.doc_url, c("https://doc.example", NA, NA), info = file)
    expect_equal(sources$.time_nanos, c(NA, "1761887347000000007", NA), info = file)
    expect_equal(sources$source_timestamp, c(1761887347, 1761887347, NA), info = file)
    expect_equal(as.list(x$.comments), list(
      source_id = c(1L, 1L, 3L, 3L), comment = c("first", "second", "sooner", "later")
    ), info = file)
  }
})

test_that("renumbered fields are distinguished", {
  x <- read_otlp(otlp_path("fields-1.9.pb"))
  expect_equal(x$sources$.profile_id, "0102030405060708090a0b0c0d0e0f10")
  expect_equal(x$sources$.original_payload_format, "pprof")
  # "xyz"
  expect_equal(x$sources$.original_payload, "eHl6")
  expect_equal(attribute_words(x$.source_attributes, "source_id", 1), "thread.name=string main")
  expect_equal(x$sample_values$value, 5)
  times <- paste0("1 at 17618873470000000", c("00", "07", "14", "21", "28", "35"), ": 1 count samples; ")
  x <- read_otlp_quietly(otlp_path("ambiguous-1.11.pb"))
  expect_equal(sample_words(x), paste0(times, "thread.name=\"main\""))
  x <- read_otlp_quietly(otlp_path("ambiguous-1.9.pb"))
  expect_equal(sample_words(x), times)
  expect_equal(stack_words(x)[2], "g@:3{jvm} < f@:3{jvm}")
  # The message describes how the file was read.
  expect_match(profile_problems(x)$description, "read as the most likely one$")
})

test_that("a message that starts like JSON is not JSON, and one without profiles has none", {
  x <- read_otlp(otlp_path("starts-like-json.pb"))
  expect_equal(nrow(x$samples), 3)
  expect_equal(x$.scopes$version, "vvvvvv")
  x <- read_otlp(otlp_path("dictionary-only.pb"))
  validate_profile(x)
  expect_equal(nrow(x$sources), 0)
})

test_that("compressed files and connections give the same profile", {
  for (file in otlp_path(c("python-1.45.2.pb", "python-1.45.2.json"))) {
    x <- read_otlp_quietly(file, source_uri = "a")
    packed <- withr::local_tempfile()
    con <- gzfile(packed, "wb")
    writeBin(file_bytes(file), con)
    close(con)
    expect_identical(read_otlp_quietly(packed, source_uri = "a"), x)
    closed <- file(file)
    expect_identical(read_otlp_quietly(closed, source_uri = "a"), x)
    expect_equal(read_otlp_quietly(closed)$sources$source_uri, rep(file, 3))
    close(closed)
    open <- file(packed, "rb")
    expect_identical(read_otlp_quietly(open, source_uri = "a"), x)
    close(open)
    open <- rawConnection(file_bytes(file))
    expect_identical(read_otlp_quietly(open, source_uri = "a"), x)
    close(open)
    none <- read_otlp_quietly(file, source_uri = NA)
    expect_equal(none$sources$source_uri, rep(NA_character_, 3))
  }
})

# Each message, preceded by its length in four bytes, the highest first.
framed <- function(...) {
  unlist(lapply(list(...), function(message) c(writeBin(length(message), raw(), endian = "big"), message)))
}

test_that("several messages in one file are one profile", {
  shop <- read_otlp_quietly(otlp_path("python-1.45.2.pb"), source_uri = NA)
  rusty <- read_otlp_quietly(otlp_path("rust-0.33.1.pb"), source_uri = NA)
  fleet <- read_otlp(otlp_path("fleet.pb"), source_uri = NA)
  both <- function(...) otlp_content(combine_profiles(...))
  bytes <- function(file) file_bytes(otlp_path(file))
  # Combining gives each type one unit.
  read <- function(path) both(read_otlp_quietly(path, source_uri = NA))
  path <- write_bytes(framed(bytes("python-1.45.2.pb"), bytes("fleet.pb"), bytes("rust-0.33.1.pb")))
  expect_equal(read(path), both(shop, fleet, rusty))
  # The version of each message is detected.
  path <- write_bytes(framed(bytes("python-1.40.0.pb"), bytes("rust-0.33.1.pb")))
  expect_equal(read(path), both(shop, rusty))
  expect_equal(read(write_bytes(framed(bytes("fleet.pb")))), both(fleet))
  # One message per line, with blank lines and other line ends.
  line <- function(file) readLines(otlp_path(file), warn = FALSE)
  path <- write_file(line("python-1.45.2.json"), "", line("fleet.json.gz"), line("collector-0.159.json"))
  expect_equal(read(path), both(shop, fleet, shop))
  path <- write_bytes(paste0(line("fleet.json.gz"), "\r\n", line("python-1.45.2.json")))
  expect_equal(read(path), both(fleet, shop))
})

test_that("version 1.0 contains the samples with a count", {
  x <- read_otlp_quietly(otlp_path("python-1.45.2.pb"), version = "1.0")
  validate_profile(x)
  expect_equal(x$samples$value, c(1L, 1L, 1L, 1L))
  expect_equal(stacks(profile_v2_from_v1(x)), rep(c("leaf < work < main", "NA < leaf < work < main"), c(3, 1)))
  x <- read_otlp(otlp_path("fleet.pb"), version = "1.0")
  expect_equal(x$samples$value, c(2L, 1L, 1L))
  error <- expect_error(
    read_otlp_quietly(otlp_path("rust-0.33.1.pb"), version = "1.0"),
    class = "profile_error_lossy"
  )
  expect_match(conditionMessage(error), "2.0")
})

test_that("print() shows where it is from", {
  expect_snapshot(print(read_otlp(otlp_path("fleet.pb"), source_uri = "fleet.pb")))
  expect_snapshot(print(read_otlp_quietly(otlp_path("rust-0.33.1.pb"), source_uri = "rust.pb")))
})
