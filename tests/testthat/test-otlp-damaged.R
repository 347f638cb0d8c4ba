# tier: gate
# Damaged and irregular OpenTelemetry files and files of other kinds, and the messages about them.

# A profile of one sample in JSON, with some parts replaced.
json_profile <- function(sample = "\"stackIndex\": 1, \"values\": [\"3\"]",
                         profile = "",
                         mapping = "{}",
                         location = "\"lines\": [{\"functionIndex\": 1, \"line\": 4}]",
                         stack = "1",
                         attribute = "{}",
                         path = NULL) {
  lines <- c(
    "{\"resourceProfiles\": [{\"scopeProfiles\": [{\"profiles\": [",
    paste0(" {\"sampleType\": {\"typeStrindex\": 1, \"unitStrindex\": 2}, ", profile),
    paste0("  \"samples\": [{", sample, "}]}"),
    "]}]}],",
    "\"dictionary\": {",
    paste0(" \"mappingTable\": [", mapping, "],"),
    paste0(" \"locationTable\": [{}, {", location, "}],"),
    " \"functionTable\": [{}, {\"nameStrindex\": 3}], \"linkTable\": [{}],",
    paste0(" \"stackTable\": [{}, {\"locationIndices\": [", stack, "]}],"),
    paste0(" \"attributeTable\": [", attribute, "],"),
    " \"stringTable\": [\"\", \"samples\", \"count\", \"f\", \"g\"]",
    "}}"
  )
  if (is.null(path)) paste(lines, collapse = "\n") else write_file(lines, path = path)
}

replace_bytes <- function(bytes, from, to) {
  at <- grepRaw(from, bytes, fixed = TRUE)
  stopifnot(length(at) == 1)
  c(bytes[seq_len(at - 1)], to, bytes[-seq_len(at + length(from) - 1)])
}

test_that("the JSON that is damaged below is right", {
  x <- read_otlp(write_bytes(json_profile()))
  expect_equal(stack_words(x), "f@:4")
  expect_equal(x$sample_values$value, 3)
})

test_that("errors in JSON name the line or field", {
  withr::local_dir(withr::local_tempdir())
  json_profile(path = "stack.json", sample = "\"stackIndex\": 7, \"values\": [1]")
  json_profile(path = "location.json", stack = "1, 9")
  json_profile(path = "function.json", location = "\"lines\": [{}, {\"functionIndex\": 5}]")
  json_profile(path = "mapping.json", location = "\"mappingIndex\": 2")
  json_profile(path = "attribute.json", sample = "\"values\": [1], \"attributeIndices\": [0, 3]")
  json_profile(path = "link.json", sample = "\"values\": [1], \"linkIndex\": 2")
  json_profile(path = "text.json", attribute = "{}, {\"keyStrindex\": 30}")
  json_profile(path = "negative.json", stack = "-1")
  json_profile(path = "unequal.json", sample = "\"values\": [1, 2], \"timestampsUnixNano\": [1, 2, 3]")
  json_profile(path = "type.json", stack = "\"one\"")
  json_profile(path = "list.json", sample = "\"values\": 3")
  json_profile(path = "large.json", sample = "\"values\": [\"9223372036854775808\"]")
  json_profile(path = "fraction.json", sample = "\"values\": [0.5]")
  json_profile(path = "id.json", profile = "\"profileId\": \"not base64!\",")
  json_profile(path = "comma.json", profile = "\"period\": ,")
  write_bytes(substr(json_profile(), 1, 300), "cut.json")
  write_file(gsub("\n", " ", json_profile()), "", gsub("\n", " ", json_profile(stack = "true")), path = "lines.json")
  write_file("{\"resourceProfiles\": []}", "[]", path = "array.json")
  write_bytes(json_profile(attribute = paste0(strrep("[", 200), strrep("]", 200))), "deep.json")
  files <- c(
    "stack", "location", "function", "mapping", "attribute", "link", "text", "negative", "unequal", "type", "list",
    "large", "fraction", "id", "comma", "cut", "lines", "array", "deep"
  )
  told <- vapply(files, FUN.VALUE = "", function(file) {
    path <- paste0(file, ".json")
    error <- expect_error(read_otlp(path), class = "profile_error_parse")
    # The same message if bytes are passed in another way, and if the format is detected.
    expect_equal(conditionMessage(expect_error(read_profile(path))), conditionMessage(error))
    conditionMessage(error)
  })
  expect_snapshot(cat(told, sep = "\n"))
  # The field is reported, even if it is the first one.
  expect_match(told[["negative"]], "dictionary.stackTable[1].locationIndices", fixed = TRUE)
})

test_that("errors in protocol buffers name the byte", {
  shop <- file_bytes(otlp_path("python-1.45.2.pb"))
  hex <- function(...) as.raw(strtoi(c(...), 16))
  frame <- function(message) c(writeBin(length(message), raw(), endian = "big"), message)
  packed <- file_bytes(otlp_path("fleet.json.gz"))
  withr::local_dir(withr::local_tempdir())
  # A location of a stack, and the stack of a sample.
  stack <- hex("3a", "05", "0a", "03", "03", "02", "01")
  write_bytes(replace_bytes(shop, stack, c(stack[-7], hex("63"))), "location.pb")
  sample <- hex("08", "03", "12", "01", "01", "2a")
  write_bytes(replace_bytes(shop, sample, c(hex("08", "63"), sample[-(1:2)])), "stack.pb")
  write_bytes(shop[1:700], "cut.pb")
  write_bytes(c(shop, hex("0a", "7f")), "longer.pb")
  write_bytes(c(shop, shop), "twice.pb")
  write_bytes(c(frame(shop), frame(shop)[1:600]), "cut-frame.pb")
  write_bytes(c(frame(shop), as.raw(0)), "odd-frame.pb")
  write_bytes(packed[1:600], "cut.json.gz")
  files <- c("location.pb", "stack.pb", "cut.pb", "longer.pb", "twice.pb", "cut-frame.pb", "odd-frame.pb", "cut.json.gz")
  told <- vapply(files, FUN.VALUE = "", function(path) {
    error <- expect_error(read_otlp(path), class = "profile_error_parse", info = path)
    expect_equal(conditionMessage(expect_error(read_profile(path))), conditionMessage(error))
    conditionMessage(error)
  })
  expect_snapshot(cat(told, sep = "\n"))
  expect_match(told[["cut-frame.pb"]], "truncated")
})

test_that("old versions are refused, whatever their encoding", {
  for (file in otlp_path(c("classes-1.6.pb", "python-1.36.0.pb", "python-1.36.0.json", "rust-0.31.0.pb"))) {
    for (read in c(read_otlp, read_profile)) {
      error <- expect_error(read(file), class = "profile_error_unsupported")
      expect_match(conditionMessage(error), "version 1.8 or older", fixed = TRUE)
    }
  }
  withr::local_dir(test_path("data", "otlp"))
  expect_snapshot(error = TRUE, {
    read_otlp("rust-0.31.0.pb")
  })
})

# The messages about files that must be refused.
refused <- function(read, files) {
  vapply(files, FUN.VALUE = "", function(path) {
    error <- tryCatch(read(path), error = identity)
    expect_s3_class(error, "profile_error_parse")
    paste(conditionMessage(error), collapse = "\n")
  })
}

test_that("a file of another format is refused with a hint, and vice versa", {
  rprof <- normalizePath(rprof_path("basic_all.out"))
  pprof <- normalizePath(data_path("pprof", "go_mutex.pb.gz"))
  shop <- normalizePath(otlp_path(c("python-1.45.2.pb", "python-1.45.2.json")))
  withr::local_dir(withr::local_tempdir())
  file.copy(c(rprof, pprof, shop), c("basic.out", "go.pb.gz", "shop.pb", "shop.json"))
  write_bytes(memDecompress(file_bytes("go.pb.gz"), "gzip"), "go.pb")
  write_bytes(raw(), "empty")
  write_bytes("hello world\n", "text")
  write_bytes("[1, 2]", "array.json")
  write_bytes("\n{ \"title\": 7", "half.json")
  message <- file_bytes("shop.pb")
  write_bytes(c(writeBin(length(message), raw(), endian = "big"), message), "framed")
  write_file(readLines("shop.json", warn = FALSE), readLines("shop.json", warn = FALSE), path = "lines.json")
  none <- c("empty", "text", "array.json", "half.json")
  others <- c("shop.pb", "shop.json", "framed", "lines.json")
  expect_snapshot({
    cat(refused(read_otlp, c("basic.out", "go.pb", "go.pb.gz", none)), sep = "\n")
    cat(refused(read_pprof, others), sep = "\n")
    cat(refused(read_rprof, setdiff(others, "framed")), sep = "\n")
    cat(refused(read_profile, none), sep = "\n")
  })
  expect_match(refused(read_rprof, "framed"), "`read_otlp()`", fixed = TRUE)
  expect_error(read_otlp("nowhere"), class = "profile_error_open")
  expect_error(read_profile("nowhere"), class = "profile_error_open")
  expect_error(read_otlp("."), class = "profile_error_open")
})

test_that("no other format is called an old version", {
  shop <- file_bytes(otlp_path("python-1.45.2.pb"))
  error <- tryCatch(read_otlp(write_bytes(memCompress(shop, "bzip2"))), error = identity)
  expect_s3_class(error, "profile_error_parse")
  # A pprof message whose texts stand first: "", "a", "b"; a type and a sample.
  pprof <- as.raw(c(0x32, 0, 0x32, 1, 0x61, 0x32, 1, 0x62, 0x0a, 4, 8, 1, 16, 2, 0x12, 2, 16, 3))
  path <- write_bytes(pprof)
  expect_equal(read_pprof(path)$sample_values$value, 3)
  expect_equal(read_profile(path)$sources$source_type, "pprof")
  expect_match(refused(read_otlp, path), "`read_pprof()`", fixed = TRUE)
})

test_that("irregular messages are read, with one warning that states the cause", {
  bytes <- file_bytes(otlp_path("fleet.pb"))
  accent <- as.raw(c(0x6d, 0xe4, 0x69, 0x6e))
  odd <- list(
    late = json_profile(profile = "\"timeUnixNano\": \"9223372036854775808\",", path = tempfile()),
    late_sample = json_profile(sample = "\"timestampsUnixNano\": [\"18446744073709551615\"]", path = tempfile()),
    zero = json_profile(mapping = "{\"filenameStrindex\": 4}", path = tempfile()),
    silent = json_profile(sample = "\"stackIndex\": 1", path = tempfile()),
    line = json_profile(
      location = "\"lines\": [{\"functionIndex\": 1, \"line\": -3, \"column\": \"5000000000\"}]",
      path = tempfile()
    ),
    large = json_profile(sample = "\"stackIndex\": 1, \"values\": [\"9007199254740993\"]", path = tempfile()),
    nul = write_bytes(sub("\"f\", \"g\"", "\"f\\\\u0000\", \"g\"", json_profile()), tempfile()),
    latin1 = write_bytes(replace_bytes(bytes, charToRaw("main"), accent), tempfile()),
    ambiguous = otlp_path("ambiguous-1.11.pb")
  )
  told <- character()
  x <- list()
  for (name in names(odd)) {
    warnings <- list()
    withCallingHandlers(
      x[[name]] <- read_otlp(odd[[name]], source_uri = "odd"),
      warning = function(w) {
        warnings[[length(warnings) + 1]] <<- w
        invokeRestart("muffleWarning")
      }
    )
    expect_true(length(warnings) <= 1, info = name)
    validate_profile(x[[name]])
    said <- if (length(warnings) == 1) gsub(odd[[name]], "<path>", conditionMessage(warnings[[1]]), fixed = TRUE)
    where <- as.data.frame(profile_problems(x[[name]]))[c("problem", "line", "byte", "text")]
    told <- c(told, name, said, iconv(do.call(paste, where), "UTF-8", "ASCII", sub = "?"))
  }
  expect_snapshot(cat(told, sep = "\n"))
  # "See `profile_problems()` for details."
  of_json <- profile_problems(x$late)
  expect_true(any(!is.na(of_json[c("line", "byte")])) || any(grepl("profiles[0]", unlist(of_json), fixed = TRUE)))
  expect_equal(x$late$sources$source_timestamp, NA_real_)
  expect_equal(x$late_sample$samples[[".timestamp"]] %||% NA_real_, NA_real_)
  expect_equal(x$late_sample$sample_values$value, 1)
  expect_equal(x$zero$.mappings$filename, "g")
  expect_equal(nrow(x$silent$samples), 0)
  expect_equal(x$line$locations$line, 0L)
  expect_equal(x$line$locations$.line_exact, "-3")
  expect_equal(x$line$locations$.column_exact, "5000000000")
  expect_equal(x$large$sample_values$.value_exact, "9007199254740993")
  expect_equal(x$nul$functions$name, "f<00>")
  expect_true("m\u00e4in" %in% x$latin1$functions$name)
})

test_that("whatever is read is valid, and survives writing and reading", {
  a_key <- function(value) paste0("{}, {\"keyStrindex\": 4, \"value\": ", value, "}")
  labelled <- "\"values\": [1], \"attributeIndices\": [1]"
  resource <- function(about) {
    sub("\"scopeProfiles\"", paste0("\"resource\": {", about, "}, \"scopeProfiles\""), json_profile(), fixed = TRUE)
  }
  odd <- list(
    late = json_profile(profile = "\"timeUnixNano\": \"9223372036854775807\","),
    late_sample = json_profile(sample = "\"values\": [1], \"timestampsUnixNano\": [\"9223372036854775807\"]"),
    long = json_profile(profile = "\"durationNano\": \"9223372036854775807\","),
    period = json_profile(profile = "\"period\": \"-9223372036854775808\","),
    entity = resource("\"entityRefs\": [{}]"),
    pairs = resource("\"attributes\": [{\"value\": {\"kvlistValue\": {\"values\": [{\"key\": \"b\"}, {\"value\": {}}]}}}]"),
    no_type = sub("\"typeStrindex\": 1, ", "", json_profile(), fixed = TRUE),
    no_unit = sub(", \"unitStrindex\": 2", "", json_profile(), fixed = TRUE),
    zero_id = json_profile(profile = "\"profileId\": \"00000000000000000000000000000000\","),
    payload = json_profile(profile = "\"originalPayload\": \"AAEC\","),
    format = json_profile(profile = "\"originalPayloadFormat\": \"jfr\","),
    dropped = json_profile(profile = "\"droppedAttributesCount\": 4294967295,"),
    no_key = json_profile(sample = labelled, attribute = "{}, {\"value\": {\"stringValue\": \"a\"}}"),
    no_value = json_profile(sample = labelled, attribute = "{}, {\"keyStrindex\": 4}"),
    empty_array = json_profile(sample = labelled, attribute = a_key("{\"arrayValue\": {}}")),
    array_of_one = json_profile(sample = labelled, attribute = a_key("{\"arrayValue\": {\"values\": [{\"intValue\": 1}]}}")),
    not_a_number = json_profile(sample = labelled, attribute = a_key("{\"doubleValue\": \"NaN\"}")),
    no_line = json_profile(location = ""),
    empty_line = json_profile(location = "\"lines\": [{}]"),
    inlined = json_profile(location = "\"lines\": [{}, {\"line\": 3}]"),
    column = json_profile(location = "\"lines\": [{\"functionIndex\": 1, \"column\": -5}]"),
    first_mapping = json_profile(location = "\"address\": 5", mapping = "{\"filenameStrindex\": 4}"),
    no_frames = json_profile(stack = "0, 0, 1")
  )
  for (name in names(odd)) {
    x <- read_otlp_quietly(write_bytes(odd[[name]]), source_uri = NA)
    problem <- tryCatch(validate_profile(x), profile_error_invalid = conditionMessage)
    expect_true(is.list(problem), label = paste0(name, " is valid", if (is.character(problem)) paste(": it says", problem)))
    if (is.list(problem)) {
      y <- otlp_content(through_otlp(x, aggregate = FALSE))
      expect_equal(y$samples, otlp_content(x)$samples, info = name)
      if (name != "late_sample") {
        # The profile gets a time from it.
        expect_equal(y$sources, otlp_content(x)$sources, info = name)
      }
    }
  }
})
