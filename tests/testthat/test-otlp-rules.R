# tier: thorough
# Messages follow the rules of OpenTelemetry, as a program checks that uses OpenTelemetry's own libraries
# (collector/judge). The tests of the core have a checker that knows more rules, for generated messages.

# ---- The judge itself --------------------------------------------------------

# A message in the encoding of protocol buffers. The names of arguments are `f` and the numbers of fields; values are
# numbers, texts, messages, or lists of these.
message_of <- function(...) {
  fields <- list(...)
  varint <- function(x) {
    digits <- as.integer(x %% 128)
    while (x >= 128) {
      x <- x %/% 128
      digits <- c(digits, as.integer(x %% 128))
    }
    as.raw(digits + 128L * (seq_along(digits) < length(digits)))
  }
  one <- function(number, value) {
    if (is.numeric(value)) {
      return(c(varint(number * 8), varint(value)))
    }
    bytes <- if (is.character(value)) charToRaw(value) else value
    c(varint(number * 8 + 2), varint(length(bytes)), bytes)
  }
  numbers <- as.numeric(sub("f", "", names(fields)))
  all <- Map(function(number, value) {
    values <- if (is.list(value)) value else list(value)
    unlist(lapply(values, one, number = number))
  }, numbers, fields)
  as.raw(unlist(all))
}

# A message that breaks no rule, with these changes: parts of the message by name. Lists of indices are packed, so they
# are given as bytes.
example_message <- function(...) {
  parts <- list(
    mappings = list(raw(), message_of(f1 = 16, f2 = 32, f4 = 2, f5 = as.raw(1))),
    locations = list(raw(), message_of(f1 = 1, f2 = 17, f3 = message_of(f1 = 1, f2 = 3))),
    functions = list(raw(), message_of(f1 = 3)),
    links = list(message_of(f1 = raw(16), f2 = raw(8)), message_of(f1 = as.raw(1:16), f2 = as.raw(1:8))),
    texts = list("", "process.executable.build_id.gnu", "lib.so", "f", "samples", "count"),
    attributes = list(raw(), message_of(f1 = 1, f2 = message_of(f1 = "0a1b"))),
    stacks = list(raw(), message_of(f1 = as.raw(1))),
    samples = list(message_of(f1 = 1, f3 = 1, f4 = as.raw(5))),
    profile = raw(), resource = raw()
  )
  changes <- list(...)
  parts[names(changes)] <- changes
  profile <- c(message_of(f1 = message_of(f1 = 4, f2 = 5), f2 = parts$samples), parts$profile)
  resource <- message_of(f1 = parts$resource, f2 = message_of(f2 = profile))
  dictionary <- message_of(
    f1 = parts$mappings, f2 = parts$locations, f3 = parts$functions, f4 = parts$links, f5 = parts$texts,
    f6 = parts$attributes, f7 = parts$stacks
  )
  message_of(f1 = resource, f2 = dictionary)
}

test_that("the judge finds a message that breaks a rule", {
  rules <- function(message = example_message(...), ...) {
    path <- withr::local_tempfile(fileext = ".pb")
    write_bytes(message, path)
    unique(sub(":.*", "", judge_messages("combined", path)))
  }
  expect_identical(rules(), character())
  expect_identical(rules(raw()), c("empty", "zero"))
  sample <- function(...) list(message_of(f1 = 1, f3 = 1, ...))
  value <- as.raw(5)
  time <- as.raw(c(7, 0, 0, 0, 0, 0, 0, 0))
  # From 0 to 100.
  lasts <- message_of(f4 = 100)
  expect_identical(rules(samples = sample()), "shape")
  expect_identical(rules(samples = sample(f4 = as.raw(5:6))), "shape")
  expect_identical(rules(samples = sample(f4 = as.raw(5:6), f5 = time), profile = lasts), "shape")
  expect_identical(rules(samples = sample(f4 = value, f5 = time), profile = lasts), character())
  expect_identical(rules(samples = sample(f5 = time)), "time")
  both <- c(sample(f4 = value), list(message_of(f1 = 1, f4 = value, f5 = time)))
  expect_identical(rules(samples = both, profile = lasts), "shape")
  expect_identical(rules(samples = rep(sample(f4 = value), 2)), "combined")
  expect_identical(rules(samples = sample(f4 = value, f2 = as.raw(9))), "range")
  expect_identical(rules(samples = sample(f4 = value, f2 = as.raw(c(1, 1)))), "key")
  expect_identical(rules(samples = sample(f4 = value, f2 = as.raw(0))), "attribute")
  expect_identical(rules(samples = list(message_of(f1 = 1, f4 = value))), "orphan")
  expect_identical(rules(stacks = list(raw(), message_of(f1 = as.raw(7)))), c("range", "orphan"))
  expect_identical(rules(stacks = list(message_of(f1 = as.raw(1)), message_of(f1 = as.raw(c(1, 1))))), "zero")
  function_3 <- message_of(f1 = 3)
  expect_identical(rules(functions = list(raw(), function_3, function_3)), c("orphan", "duplicate"))
  expect_identical(rules(functions = list(raw(), message_of(f4 = 3))), c("name", "orphan"))
  texts <- list("", "process.executable.build_id.gnu", "lib.so", "f", "samples", "count", "count")
  expect_identical(rules(texts = texts), c("orphan", "duplicate"))
  expect_identical(rules(links = list(raw(), message_of(f1 = as.raw(1:8), f2 = as.raw(1:8)))), "id")
  mapping <- function(...) list(raw(), message_of(f4 = 2, ...))
  expect_identical(rules(mappings = mapping(f5 = as.raw(1))), character())
  expect_identical(rules(mappings = mapping(f1 = 32, f2 = 32, f5 = as.raw(1))), "addresses")
  expect_identical(rules(mappings = mapping()), c("no build id", "orphan"))
  expect_identical(rules(attributes = list(raw(), message_of(f1 = 1, f2 = message_of(f1 = "")))), "empty build id")
  expect_identical(rules(profile = message_of(f9 = "pprof")), "payload")
  expect_identical(rules(profile = message_of(f7 = raw(16))), "id")
  # Keys of resources refer to strings.
  pair <- message_of(f1 = message_of(f2 = message_of(f1 = "x"), f3 = 2))
  expect_identical(rules(resource = pair), character())
  expect_identical(rules(resource = c(pair, pair)), "key")
})

# ---- Our messages ------------------------------------------------------------

# What is wrong in a file is not mended: the crate's file has a function that starts at line -1.
of_file <- function(name) if (grepl("otlp/rust", name)) "line" else character()

test_that("the profile of every file becomes a message that follows the rules", {
  profiles <- all_profiles()
  for (i in seq_along(profiles)) {
    name <- names(profiles)[[i]]
    x <- profiles[[i]]
    # None is invented, see ?write_otlp.
    used <- x$.mappings$mapping_id %in% said(x$locations, ".mapping_id")
    unknown <- if (any(x$.mappings$build_id[used] == "")) "no build id"
    expect_identical(broken_rules(x, c(of_file(name), unknown)), character(), info = name)
  }
})

test_that("mappings have the build ids that are known, and no others", {
  x <- read_pprof(data_path("pprof", "go_cpu.pb.gz"))
  expect_match(broken_rules(x), "^no build id: mapping [0-9]+$")
  x$.mappings$build_id[] <- "c89b11207f6479603b0d49bf291c092c2b719293"
  expect_identical(broken_rules(x), character())
})

test_that("combined and edited profiles follow the rules", {
  x <- small_profile()
  x$samples$.timestamp <- c(NA, 1.8e9, NA)
  x$samples$.trace_id <- c(strrep("ab", 16), NA, NA)
  x$samples$.span_id <- c(strrep("cd", 8), NA, NA)
  x$.labels <- tibble::tibble(
    sample_id = c(1L, 1L, 2L, 3L), key = c("k", "k", "size", "k"), str = c("a", "b", NA, "a"), num = c(NA, NA, 3, NA),
    unit = c(NA, NA, "By", NA)
  )
  expect_identical(broken_rules(x), character())
  expect_identical(broken_rules(x, original_payload = TRUE), character())
  fleet <- read_otlp(otlp_path("fleet.pb"))
  python <- read_otlp_quietly(otlp_path("python-1.45.2.pb"))
  all <- combine_profiles(x, fleet, python, small_profile(), x)
  expect_identical(broken_rules(all, resource = c(service.name = "etl", cpus = "8")), character())
  expect_identical(broken_rules(filter_profile(all, focus = "f")), character())
})

test_that("recordings follow the rules", {
  skip_without_ticks()
  x <- record_profile({ only_given_ticks(); tick(2) }, interval = 0.9)
  expect_identical(broken_rules(x), character())
  skip_without_native()
  x <- record_profile({ only_given_ticks(); tick(2) }, native = TRUE, interval = 0.9)
  expect_true(nrow(x$.mappings) > 0)
  expect_identical(broken_rules(x), character())
  # OpenTelemetry's own build id, of all files that can be read.
  hashes <- x$.mapping_attributes
  expect_identical(unique(hashes$key), "process.executable.build_id.htlhash")
  expect_match(hashes$value, "^[0-9a-f]{32}$")
  expect_identical(hashes$mapping_id, x$.mappings$mapping_id[file.exists(x$.mappings$filename)])
})

test_that("what the agent sends follows the rules", {
  # Before the agent starts, since building the judge takes a while.
  collector_program("judge")
  server <- http_server(list(headers = protobuf()))
  local_agent(server$url, resource = c(service.name = "api"))
  with_labels(c(route = "/api"), work_until_taken())
  stop_when_sent()
  path <- withr::local_tempfile(fileext = ".pb")
  for (request in server$requests()) {
    write_bytes(inflated(request$body), path)
    expect_identical(judge_messages("combined", path), character())
  }
})

test_that("the collector's library finds the same numbers in both encodings", {
  for (name in c("basic_all.out", "basic_line.out", "append_plain3.out")) {
    x <- read_rprof(rprof_path(name), source_uri = NA)
    expect_same_numbers(x, info = name)
  }
  expect_same_numbers(read_pprof(data_path("pprof", "go_heap.pb.gz")), info = "go")
  expect_same_numbers(read_otlp(otlp_path("fleet.pb")), info = "fleet")
  expect_same_numbers(models_snapshot(), info = "memory")
})
