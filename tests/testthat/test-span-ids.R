# tier: gate
# The active span: the record that profilers read, samples that get its ids, and the tracer provider for otel.

trace <- "5b8efff798038103d269b633813fc60c"
other_trace <- "0123456789abcdef0123456789ABCDEF"
span <- "eee19b7ec3c1b174"
other_span <- "00000000000000a1"

# The record as OTEP 4947 lays it out; NULL if it is not valid.
published_record <- function() {
  bytes <- .External(asNamespace("profile")$profile_active_span)
  # The size of the attributes that follow.
  expect_length(bytes, 28 + sum(as.integer(bytes[27:28]) * c(1, 256)))
  if (bytes[[25]] != 0) bytes
}

# The ids and the flags in it.
published <- function() {
  bytes <- published_record()
  if (is.null(bytes)) {
    return(NULL)
  }
  expect_identical(bytes[[25]], as.raw(1))
  c(paste(bytes[1:16], collapse = ""), paste(bytes[17:24], collapse = ""), as.character(bytes[[26]]))
}

test_that("the ids of a span are published while its expression is evaluated", {
  expect_null(published())
  expect_identical(with_span_ids(trace, span, published()), c(trace, span, "00"))
  expect_null(published())
  # Digits may be upper-case.
  expect_identical(with_span_ids(other_trace, span, published())[[1]], tolower(other_trace))
})

test_that("spans are nested, and end with errors and jumps", {
  ids <- with_span_ids(trace, span, {
    inner <- with_span_ids(trace, other_span, published()[[2]])
    failed <- tryCatch(with_span_ids(other_trace, other_span, stop(published()[[2]])), error = conditionMessage)
    left <- (function() {
      with_span_ids(other_trace, other_span, return(published()[[2]]))
      stop("not reached")
    })()
    for (i in 1:3) with_span_ids(trace, other_span, if (i == 2) break else next)
    refused <- tryCatch(with_span_ids(trace, "no span", 1), profile_error_argument = function(error) "refused")
    c(inner, failed, left, refused, published()[[2]])
  })
  expect_identical(ids, c(other_span, other_span, other_span, "refused", span))
  expect_null(published())
})

test_that("promises are evaluated with the span that is active then", {
  lazy <- function(x) with_span_ids(trace, other_span, x)
  expect_identical(with_span_ids(trace, span, lazy(published()[[2]])), other_span)
  delayedAssign("later", published())
  with_span_ids(trace, span, NULL)
  expect_null(later)
  # Generations of the same call do not share a span.
  deep <- function(n) if (n == 0) published()[[2]] else with_span_ids(trace, sprintf("%016x", n), deep(n - 1))
  expect_identical(deep(100), "0000000000000001")
  expect_null(published())
})

test_that("the value of the expression is returned as it is", {
  expect_identical(withVisible(with_span_ids(trace, span, 1 + 1)), list(value = 2, visible = TRUE))
  expect_false(withVisible(with_span_ids(trace, span, invisible(3)))$visible)
  n <- 0
  with_span_ids(trace, span, n <- n + 1)
  expect_identical(n, 1)
})

test_that("ids are checked", {
  expect_snapshot(error = TRUE, {
    with_span_ids("abc", span, 1)
    with_span_ids(trace, trace, 1)
    with_span_ids(NA_character_, span, 1)
    with_span_ids(c(trace, trace), span, 1)
    with_span_ids(trace, 1, 1)
    with_span_ids(trace, strrep("0", 16), 1)
    with_span_ids(strrep("0", 32), span, 1)
    with_span_ids(trace, paste0("0x", strrep("1", 14)), 1)
    with_span_ids(trace)
    with_span_ids(trace, span)
  })
  expect_null(published())
})

# The name of the active span: the key of the attribute in the record, and the text; NULL if there is none.
published_name <- function() {
  bytes <- published_record()
  if (length(bytes) <= 28) {
    return(NULL)
  }
  expect_identical(as.integer(bytes[[30]]), length(bytes) - 30L)
  text <- rawToChar(bytes[-(1:30)])
  Encoding(text) <- "UTF-8"
  c(c("span.name", "profile.overflow")[[as.integer(bytes[[29]]) + 1]], text)
}

# The mapping by which other profilers find the record, as OTEP 4719 describes it: `signature`, `version`, and the text
# in its message.
test_that("other profilers find what they need", {
  skip_on_os(c("windows", "mac", "solaris"))
  with_span_ids(trace, span, NULL)
  lines <- grep("OTEL_CTX", readLines("/proc/self/maps"), value = TRUE)
  expect_length(lines, 1)
  range <- strsplit(sub(" .*", "", lines), "-", fixed = TRUE)[[1]]
  # An address has more digits than an integer.
  start <- sum(strtoi(strsplit(range[[1]], "")[[1]], 16L) * 16^(rev(seq_len(nchar(range[[1]]))) - 1))
  memory <- file("/proc/self/mem", "rb", raw = TRUE)
  withr::defer(close(memory))
  seek(memory, start)
  page <- readBin(memory, "raw", 4096)
  expect_identical(rawToChar(page[1:8]), "OTEL_CTX")
  expect_identical(page[9:12], as.raw(c(2, 0, 0, 0)))
  size <- as.integer(page[[13]])
  expect_identical(page[14:16], as.raw(c(0, 0, 0)))
  expect_false(all(page[17:24] == as.raw(0)))
  # The message follows the header.
  expect_equal(sum(as.integer(page[25:32]) * 256^(0:7)), start + 32)
  message <- page[32 + seq_len(size)]
  attribute <- function(key, value) c(
    as.raw(c(0x12, 4 + nchar(key) + length(value), 0x0a, nchar(key))), charToRaw(key), as.raw(c(0x12, length(value))), value
  )
  field <- function(number, content) c(as.raw(c(8 * number + 2, length(content))), content)
  key <- function(text) field(1, field(1, charToRaw(text)))
  expect_identical(message, c(
    attribute("threadlocal.schema_version", field(1, charToRaw("tlsdesc_v1_dev"))),
    attribute("threadlocal.attribute_key_map", field(5, c(key("span.name"), key("profile.overflow"))))
  ))
})

test_that("the thread-local variable points to the record", {
  skip_on_cran()
  skip_on_os(c("windows", "mac", "solaris"))
  skip_if_not(has_compiler("CC"), "there is no compiler (CC)")
  dir <- withr::local_tempdir()
  file.copy(test_path("native", "context.c"), dir)
  withr::with_dir(dir, run_tool(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "context.c")))
  library <- dyn.load(file.path(dir, "context.so"))
  withr::defer(dyn.unload(library[["path"]]))
  seen <- function() .Call(library$thread_context, getLoadedDLLs()[["profile"]][["path"]])
  with_span_ids(trace, span, {
    record <- seen()
    expect_identical(record, .External(asNamespace("profile")$profile_active_span))
  })
  hex <- function(bytes) paste(format(bytes), collapse = "")
  expect_identical(hex(record[1:24]), paste0(trace, span))
  expect_identical(record[[25]], as.raw(1))
  expect_identical(seen()[[25]], as.raw(0))
  # Other processes find the variable by a relocation of this type.
  skip_if(Sys.which("readelf") == "", "readelf is not installed")
  relocations <- system2("readelf", c("-rW", shQuote(getLoadedDLLs()[["profile"]][["path"]])), stdout = TRUE)
  expect_match(grep("otel_thread_ctx_v1", relocations, value = TRUE), "TLSDESC")
})

# ---- Samples --------------------------------------------------------------------------

# Each sample is generated by the test.
busy <- compiler::cmpfun(function(n = 1L) tick(n))
given_profile <- function(expr, ...) {
  skip_without_ticks()
  record_profile({ only_given_ticks(); expr }, interval = 0.9, ...)
}

test_that("samples of R's profiler have the ids of their spans", {
  for (memory in c(TRUE, FALSE)) {
    x <- given_profile({
      busy(2)
      with_span_ids(trace, span, {
        busy(3)
        with_span_ids(other_trace, other_span, busy(1))
        try(with_span_ids(trace, other_span, stop("no tick")), silent = TRUE)
        busy(2)
      })
      busy(1)
    }, memory = memory)
    expect_identical(x$samples$.span_id, c(NA, NA, rep(span, 3), other_span, rep(span, 2), NA))
    expect_identical(x$samples$.trace_id, c(NA, NA, rep(trace, 3), tolower(other_trace), rep(trace, 2), NA))
  }
  validate_profile(x)
  expect_null(given_profile(busy(2))$samples[[".span_id"]])
})

test_that("names with line feeds and no memory figures are reported, since samples have no ids then", {
  odd <- compiler::cmpfun(function() busy(1))
  assign("odd\nname", odd)
  record <- function(memory) given_profile(with_span_ids(trace, span, `odd\nname`()), memory = memory)
  expect_identical(quietly(record(TRUE))$samples$.span_id, span)
  # Beside the sampler, there are always memory figures. It cannot start with more memory than there are addresses.
  withr::local_options(profile.recording_mb = .Machine$integer.max)
  expect_warning(
    expect_warning(x <- record(FALSE), "irregularities"),
    "lines of the profiler",
    class = "profile_warning_incomplete"
  )
  expect_null(x$samples[[".span_id"]])
})

test_that("a span that was active before the recording counts", {
  x <- with_span_ids(trace, span, given_profile(busy(2)))
  expect_identical(x$samples$.span_id, rep(span, 2))
})

test_that("files store the ids of spans", {
  x <- given_profile({
    with_span_ids(trace, span, busy(2))
    busy(2)
    with_span_ids(trace, other_span, busy(3))
  })
  ids <- function(x) table(paste(x$samples$.trace_id, x$samples$.span_id))
  path <- withr::local_tempfile()
  for (aggregate in c(TRUE, FALSE)) {
    write_pprof(x, path, aggregate = aggregate)
    y <- read_pprof(path)
    expect_identical(names(ids(y)), names(ids(x)))
    if (!aggregate) expect_identical(ids(y), ids(x))
    expect_false(any(c("trace_id", "span_id") %in% y$.labels$key))
  }
  write_otlp(x, path, aggregate = FALSE)
  expect_identical(ids(read_otlp(path)), ids(x))
})

test_that("samples are selected and summed by their spans", {
  x <- given_profile({
    busy(1)
    with_span_ids(trace, span, busy(2))
    with_span_ids(trace, other_span, busy(3))
    with_labels(c(route = "/a"), with_span_ids(other_trace, other_span, busy(4)))
  })
  rows <- function(...) nrow(filter_profile(x, labels = list(...))$samples)
  expect_identical(rows(trace_id = trace), 5L)
  expect_identical(rows(span_id = other_span), 7L)
  expect_identical(rows(trace_id = trace, span_id = other_span), 3L)
  expect_identical(rows(trace_id = c(trace, NA)), 6L)
  expect_identical(rows(route = "/a", span_id = other_span), 4L)
  by <- summary(x, by = "span_id")
  expect_identical(by$span_id[order(by$span_id)], c(other_span, span, NA))
  expect_error(rows(trace_id = span), "no sample has the label `trace_id` with the value", class = "profile_error_argument")
  expect_error(rows(trace = trace), "Labels: `route`.+Also: .*`trace_id`, `span_id`", class = "profile_error_argument")
  # A label with this key counts.
  x$.labels$key <- "trace_id"
  expect_identical(rows(trace_id = "/a"), 4L)
  # A profile without spans.
  x$samples$.trace_id <- x$samples$.span_id <- NULL
  expect_error(rows(span_id = span), "no sample has the label `span_id`", class = "profile_error_argument")
})

test_that("native recordings have the ids of spans", {
  skip_without_native()
  x <- given_profile({ busy(1); with_span_ids(trace, span, busy(2)); busy(1) }, native = TRUE)
  expect_identical(x$samples$.span_id, c(NA, span, span, NA))
})

# The names of the functions of each sample.
names_of_samples <- function(x) {
  rows <- x$sample_locations
  at <- match(rows$location_id, x$locations$location_id)
  name <- x$functions$name[match(x$locations$function_id[at], x$functions$function_id)]
  unname(split(name, factor(rows$sample_id, x$samples$sample_id)))
}

# Expects that the samples inside `in_span()` have the ids, and those outside of `with_span_ids()` have none. Returns
# the number of the former.
expect_ids_of_spans <- function(x) {
  names <- names_of_samples(x)
  is_inside <- vapply(names, function(names) "in_span" %in% names, TRUE)
  is_outside <- !vapply(names, function(names) "with_span_ids" %in% names, TRUE)
  ids <- x$samples[[".span_id"]] %||% rep(NA, nrow(x$samples))
  expect_true(all(ids[is_inside] %in% span))
  expect_true(all(is.na(ids[is_outside])))
  sum(is_inside)
}

test_that("samples of the agent have the ids of their spans", {
  got <- list()
  local_agent(function(x) got[[length(got) + 1]] <<- x)
  in_span <- compiler::cmpfun(function() for (i in 1:10) busy_loop(1e4))
  # A sample may also be taken while the ids are set or removed.
  has_sample <- function() any(vapply(got, function(x) "in_span" %in% x$functions$name, TRUE))
  work_until(function() {
    with_span_ids(trace, span, in_span())
    agent_status()
    has_sample()
  })
  stop_agent(300)
  expect_gt(sum(vapply(got, expect_ids_of_spans, 0L)), 0)
})

test_that("samples of other processes have the ids of their spans", {
  skip_without_processes()
  # The process waits where the test wants it: for a line in a pipe.
  dir <- withr::local_tempdir()
  gate <- file.path(dir, "gate")
  system2("mkfifo", gate)
  pid <- local_r_process(c("ready()", with_package(
    sprintf("gate <- fifo('%s', 'r', blocking = TRUE)", gate),
    "before <- in_span <- after <- function() readLines(gate, 1)",
    "before()",
    sprintf("with_span_ids('%s', '%s', in_span())", trace, span),
    "after()"
  )))
  pipe <- fifo(gate, "w", blocking = TRUE)
  withr::defer(close(pipe))
  for (name in c("before", "in_span", "after")) {
    wait_for_stack(pid, c("readLines", name))
    x <- profile_until(pid, clock = "wall")
    expect_identical(expect_ids_of_spans(x), if (name == "in_span") nrow(x$samples) else 0L)
    writeLines("", pipe)
    flush(pipe)
  }
})

test_that("spans are found in a process that loads the package while it is recorded", {
  skip_without_processes()
  record <- function(seconds) {
    dir <- withr::local_tempdir()
    gate <- file.path(dir, "gate")
    result <- file.path(dir, "result.rds")
    system2("mkfifo", gate)
    pid <- local_r_process(c(
      "ready()",
      sprintf("gate <- fifo('%s', 'r', blocking = TRUE)", gate),
      "before <- in_span <- function() readLines(gate, 1)",
      "before()",
      with_package(sprintf("with_span_ids('%s', '%s', in_span())", trace, span))
    ))
    pipe <- fifo(gate, "w", blocking = TRUE)
    withr::defer(close(pipe))
    wait_for_stack(pid, c("readLines", "before"))
    recorder <- local_r_process(with_package(
      "ready()",
      sprintf("x <- suppressWarnings(profile_process(%d, seconds = %d, clock = 'wall'))", pid, seconds),
      sprintf("saveRDS(x, '%s.new'); file.rename('%s.new', '%s')", result, result, result)
    ))
    expect_true(wait_for(function() is_recorded(pid, by = recorder)))
    writeLines("", pipe)
    flush(pipe)
    expect_true(wait_for(function() file.exists(result)))
    readRDS(result)
  }
  # How long it takes to load the package is unknown.
  for (seconds in c(3, 10, 30, 100)) {
    x <- record(seconds)
    ids <- x$samples[[".span_id"]]
    if (span %in% ids) break
  }
  expect_true(span %in% ids)
  # Once it is found, it is not missed.
  expect_false(anyNA(ids[seq(match(span, ids), length(ids))]))
  expect_true(all(ids[vapply(names_of_samples(x), function(names) "before" %in% names, TRUE)] %in% NA))
})

# ---- The tracer provider -----------------------------------------------------------------

# A provider with the interface of otel's, whose objects are environments, as in otelsdk, or lists, as in otel.
fake_provider <- function(as = list2env) {
  log <- character()
  active <- list()
  new_span <- function(name, id) {
    self <- as(list(
      name = name,
      get_context = function() {
        log <<- c(log, paste("context", name))
        list(get_trace_id = function() trace, get_span_id = function() id, is_sampled = function() TRUE)
      },
      activate = function(activation_scope = parent.frame(), end_on_exit = FALSE) {
        log <<- c(log, paste("activate", name))
        if (is.null(activation_scope)) {
          return(paste("scope of", name))
        }
        do.call(base::on.exit, list(as.call(list(function() {
          log <<- c(log, paste("deactivate", name), if (end_on_exit) paste("end", name))
        })), TRUE, FALSE), envir = activation_scope)
      },
      deactivate = function(cscope) log <<- c(log, paste("deactivate", cscope))
    ))
    self
  }
  count <- 0
  start <- function(name, id = sprintf("%016x", count)) {
    count <<- count + 1
    new_span(name, if (name == "invalid") strrep("0", 16) else sprintf("%016x", count))
  }
  tracer <- function() as(list(
    start_span = function(name, ...) start(name),
    get_active_span = function() new_span("current", span),
    start_local_active_span = function(name, ..., scope = parent.frame(), activation_scope = parent.frame()) {
      self <- start(name)
      self$activate(activation_scope, end_on_exit = TRUE)
      self
    },
    is_enabled = function(...) TRUE
  ))
  list(
    provider = as(list(get_tracer = function(name, ...) tracer(), flush = function() "flushed")),
    log = function() log
  )
}

for (kind in c("environments", "lists")) test_that(paste("the ids of an active span are published, with", kind), {
  fake <- fake_provider(if (kind == "lists") identity else function(x) list2env(x, parent = emptyenv()))
  provider <- tracer_provider$new(fake$provider)
  expect_identical(provider$flush(), "flushed")
  tracer <- provider$get_tracer("test")
  expect_true(tracer$is_enabled())
  local_span <- function(name, frame = parent.frame()) {
    span <- tracer$start_span(name)
    span$activate(frame, end_on_exit = TRUE)
    span
  }
  inner <- function() {
    local_span("inner")
    published()
  }
  outer <- function() {
    local_span("outer")
    first <- published()
    inside <- inner()
    list(first, inside, published(), tryCatch({ local_span("twice"); published() }))
  }
  ids <- outer()
  expect_identical(ids[[1]], c(trace, "0000000000000001", "01"))
  expect_identical(ids[[2]][[2]], "0000000000000002")
  expect_identical(ids[[3]], ids[[1]])
  expect_null(published())
  # The provider was asked for ids once for each span, and its own methods were called.
  expect_identical(fake$log(), c(
    "activate outer", "context outer", "activate inner", "context inner", "deactivate inner", "end inner",
    "activate twice", "context twice", "deactivate twice", "end twice", "deactivate outer", "end outer"
  ))
})

test_that("spans end with errors, and may be deactivated in any order", {
  fake <- fake_provider()
  tracer <- tracer_provider$new(fake$provider)$get_tracer("test")
  failing <- function() {
    tracer$start_local_active_span("failing")
    stop(published()[[2]])
  }
  expect_error(failing(), "^0000000000000001$")
  expect_null(published())

  a <- tracer$start_span("a")
  b <- tracer$start_span("b")
  scope_a <- a$activate(NULL)
  scope_b <- b$activate(NULL)
  expect_identical(scope_b, "scope of b")
  expect_identical(published()[[2]], "0000000000000003")
  # As in OpenTelemetry, this ends the inner one as well.
  a$deactivate(scope_a)
  expect_null(published())
  b$deactivate(scope_b)
  expect_null(published())
  # A span can be active several times, as one that is resumed in several callbacks.
  for (i in 1:3) {
    scope <- b$activate(NULL)
    again <- b$activate(NULL)
    b$deactivate(again)
    expect_identical(published()[[2]], "0000000000000003")
    b$deactivate(scope)
    expect_null(published())
  }
})

test_that("the active span that a tracer returns can be activated", {
  tracer <- tracer_provider$new(fake_provider()$provider)$get_tracer("test")
  callback <- function() {
    tracer$get_active_span()$activate()
    published()[[2]]
  }
  expect_identical(callback(), span)
  expect_null(published())
})

test_that("objects that are returned again are not wrapped again", {
  fake <- fake_provider()
  once <- fake$provider$get_tracer("test")
  fake$provider$get_tracer <- function(name) once
  provider <- tracer_provider$new(fake$provider)
  for (i in 1:3) tracer <- provider$get_tracer("test")
  scope <- function() { tracer$start_span("a")$activate(); 1 }
  scope()
  expect_null(attr(environment(tracer$start_span)$start_span, "replaced"))
  expect_identical(sum(fake$log() == "context a"), 1L)
})

test_that("the package can be unloaded while spans are active", {
  result <- run_r(c(
    sprintf("trace <- '%s'; span <- '%s'", trace, span),
    paste(c("fake_provider <-", deparse(fake_provider)), collapse = "\n"),
    # A column that is in use keeps the library in memory.
    "options(profile.lazy = TRUE)",
    sprintf("kept <- suppressWarnings(profile::read_rprof('%s'))", normalizePath(rprof_path("basic_all.out"))),
    "tracer <- profile::tracer_provider$new(fake_provider()$provider)$get_tracer('test')",
    "serve <- function() { tracer$start_span('a')$activate(); unloadNamespace('profile'); 'served' }",
    # The provider is still in use.
    "again <- function() {",
    "  tracer$start_local_active_span('b')",
    "  c <- tracer$start_span('c')",
    "  c$deactivate(c$activate(NULL))",
    "  'again'",
    "}",
    "served <- c(serve(), again())",
    "stopifnot(!'profile' %in% loadedNamespaces())",
    # No span is active when the package is loaded again.
    "is_valid <- function() .External(asNamespace('profile')$profile_active_span)[[25]]",
    "inside <- profile::with_span_ids(trace, span, {",
    "  before <- is_valid()",
    "  unloadNamespace('profile')",
    "  c(before, is_valid())",
    "})",
    "cat(served, inside, is_valid(), sum(kept$sample_locations$sample_id[1:9]) > 0)"
  ))
  expect_equal(result$output, "served again 01 00 00 TRUE")
})

test_that("garbage collections change nothing", {
  skip_on_cran()
  internal <- asNamespace("profile")
  path <- withr::local_tempfile()
  writeLines("one", path)
  # Only calls of compiled code, since each allocation takes milliseconds.
  f <- compiler::cmpfun(function(start, name, push, active, trace, span, end) {
    .External(start, path, FALSE)
    .External(push, trace, span, 1L, .External(name, "GET"), environment(), end)
    .External(active)
  })
  end <- internal$end_of_span()
  gctorture(TRUE)
  record <- f(
    internal$profile_log_spans, internal$profile_span_name, internal$profile_push_span, internal$profile_active_span,
    trace, other_span, end
  )
  changes <- .External(internal$profile_logged_spans)
  gctorture(FALSE)
  expect_identical(paste(record[17:26], collapse = ""), paste0(other_span, "0101"))
  expect_identical(rawToChar(record[-(1:30)]), "GET")
  expect_null(published())
  # Only the last change at each size of the file counts.
  expect_identical(changes, list(
    offset = 4, trace_id = NA_character_, span_id = NA_character_, key = NA_character_, value = NA_character_
  ))
})

test_that("names of spans are published as text of limited length", {
  tracer <- tracer_provider$new(fake_provider()$provider)$get_tracer("test")
  name_in_record <- function(name) {
    tracer$start_local_active_span(name)
    published_name()
  }
  text <- function(...) c("span.name", paste0(...))
  expect_identical(name_in_record("GET /a"), text("GET /a"))
  expect_identical(name_in_record(strrep("x", 100)), text(strrep("x", 100)))
  expect_identical(name_in_record(strrep("x", 101)), text(strrep("x", 97), "..."))
  # At most 255 bytes.
  expect_identical(name_in_record(strrep("\u20ac", 85)), text(strrep("\u20ac", 85)))
  expect_identical(name_in_record(strrep("\u20ac", 86)), text(strrep("\u20ac", 84), "..."))
  expect_identical(name_in_record(strrep("\U1F600", 100)), text(strrep("\U1F600", 63), "..."))
  expect_identical(name_in_record(iconv("caf\u00e9", "UTF-8", "latin1")), text("caf\u00e9"))
  # Overlong sequences, surrogates, numbers that are too large, and what ends too early.
  for (bytes in list(0xff, c(0xc0, 0x80), c(0xed, 0xa0, 0x80), c(0xf4, 0x90, 0x80, 0x80), c(0xe2, 0x82))) {
    invalid <- rawToChar(as.raw(c(0x61, bytes)))
    Encoding(invalid) <- "UTF-8"
    expect_identical(name_in_record(invalid), text("a", strrep("?", length(bytes))))
  }
  Encoding(invalid) <- "bytes"
  # The fake provider compares names, which is an error for such text.
  number_of_name <- asNamespace("profile")$number_of_name
  expect_identical(number_of_name(invalid), 0L)
  for (name in list("", NA_character_, c("a", "b"), 1)) expect_identical(number_of_name(name), 0L)
  expect_gt(number_of_name("GET /a"), 0)
  expect_identical(number_of_name("GET /a"), number_of_name("GET /a"))
  expect_null(published_name())
})

test_that("the name is that of the innermost span", {
  tracer <- tracer_provider$new(fake_provider()$provider)$get_tracer("test")
  name <- function() published_name()[[2]]
  inner <- function() {
    tracer$start_local_active_span("inner")
    c(name(), with_span_ids(trace, span, is.null(published_name())), name())
  }
  resumed <- function(span) {
    span$activate()
    name()
  }
  outer <- function() {
    tracer$start_local_active_span("outer")
    current <- tracer$get_active_span()
    # It has the name of the span that was active when it was asked for.
    in_other <- function() {
      tracer$start_local_active_span("other")
      resumed(current)
    }
    c(name(), inner(), name(), in_other(), name())
  }
  expect_identical(outer(), c("outer", "inner", "TRUE", "inner", "outer", "outer", "outer"))
  expect_null(published_name())
  later <- tracer$start_span("later")
  expect_null(published_name())
  expect_identical(replicate(2, resumed(later)), c("later", "later"))
  expect_null((function() { tracer$start_span("invalid")$activate(); published_name() })())
  expect_null((function() { tracer$get_active_span()$activate(); published_name() })())
})

test_that("samples of R's profiler are labelled with the names of spans", {
  tracer <- tracer_provider$new(fake_provider()$provider)$get_tracer("test")
  in_span <- function(name, n) {
    tracer$start_local_active_span(name)
    busy(n)
  }
  for (memory in c(TRUE, FALSE)) {
    x <- given_profile({
      busy(1)
      in_span("GET /a", 2)
      with_labels(c(route = "/b"), in_span("caf\u00e9", 1))
      with_labels(c(span.name = "mine"), in_span("GET /c", 1))
      with_span_ids(trace, span, busy(1))
    }, memory = memory)
    labels <- x$.labels[order(x$.labels$sample_id, x$.labels$key, method = "radix"), ]
    expect_identical(labels$sample_id, c(2L, 3L, 4L, 4L, 5L))
    expect_identical(labels$key, c("span.name", "span.name", "route", "span.name", "span.name"))
    expect_identical(labels$str, c("GET /a", "GET /a", "/b", "caf\u00e9", "mine"))
    validate_profile(x)
  }
  by <- summary(x, by = "span.name")
  expect_identical(by$samples[match(c("GET /a", "caf\u00e9", "mine", NA), by$span.name)], c(2L, 1L, 1L, 2L))
  # The label remains if a file is written and read.
  path <- withr::local_tempfile()
  write_otlp(x, path, aggregate = FALSE)
  expect_identical(sort(table(read_otlp(path)$.labels$str)), sort(table(x$.labels$str)))
  # Without labels of the user there is no table yet.
  x <- given_profile(in_span("GET /a", 1))
  expect_identical(x$.labels$str, "GET /a")
  validate_profile(x)
  skip_without_native()
  x <- given_profile({ in_span("GET /a", 1); busy(1) }, native = TRUE)
  expect_identical(as.list(x$.labels[c("sample_id", "key", "str")]), list(sample_id = 1L, key = "span.name", str = "GET /a"))
})

test_that("samples under too many names say so", {
  skip_without_ticks()
  # Names remain known as long as the package is loaded.
  result <- run_r(c(
    paste(c("trace <- '5b8efff798038103d269b633813fc60c'; fake_provider <-", deparse(fake_provider)), collapse = "\n"),
    "library(profile)",
    "tracer <- tracer_provider$new(fake_provider()$provider)$get_tracer('test')",
    "in_span <- function(name) { tracer$start_local_active_span(name); NULL }",
    # Spans that are never active do not count.
    "for (i in 1:2000) tracer$start_span(paste('inactive', i))",
    "for (i in 1:1100) in_span(paste('span', i))",
    "n <- vapply(paste('span', c(1:1100)), profile:::number_of_name, 0L, USE.NAMES = FALSE)",
    "cat(identical(n, c(1:1000, rep(1001L, 100))), '')",
    "in_span <- function(name) {",
    "  tracer$start_local_active_span(name)",
    "  bytes <- .External(profile:::profile_active_span)",
    "  c(as.integer(bytes[[29]]), rawToChar(bytes[-(1:30)]))",
    "}",
    "cat(in_span('span 1000'), in_span('span 1001'), '')",
    # The log of R's profiler has the key and the text.
    "path <- tempfile(); writeLines('one', path)",
    "invisible(profile:::log_spans(path))",
    "logged <- function() {",
    "  tracer$start_local_active_span('span 1001')",
    "  .External(profile:::profile_logged_spans)[c('key', 'value')]",
    "}",
    "cat(unlist(logged()))"
  ))
  expect_equal(result$output, "TRUE 0 span 1000 1 span.name profile.overflow span.name")
})

test_that("a label of the user with the key of the name wins", {
  label_samples <- asNamespace("profile")$label_samples
  x <- given_profile(with_labels(c(span.name = "mine"), busy(2)))
  y <- label_samples(x, c("span.name", "profile.overflow"), c("GET", "span.name"))
  expect_identical(y$.labels$key, c("span.name", "span.name", "profile.overflow"))
  expect_identical(y$.labels$str, c("mine", "mine", "span.name"))
  expect_identical(label_samples(x, c("span.name", NA), c("GET", NA)), x)
})

test_that("samples of the agent and of other processes have the names of their spans", {
  tracer <- tracer_provider$new(fake_provider()$provider)$get_tracer("test")
  long <- strrep("\u20ac", 85)
  in_span <- compiler::cmpfun(function() for (i in 1:10) busy_loop(1e4))
  spans <- function() {
    named <- function() { tracer$start_local_active_span(long); in_span() }
    named()
    mine <- function() {
      tracer$start_local_active_span("GET")
      with_labels(c(span.name = "mine"), in_span())
    }
    mine()
  }
  got <- list()
  local_agent(function(x) got[[length(got) + 1]] <<- x)
  values <- function() unlist(lapply(got, function(x) x$.labels$str[x$.labels$key == "span.name"]))
  work_until(function() {
    spans()
    agent_status()
    all(c(long, "mine") %in% values())
  })
  stop_agent(300)
  # Samples may be taken while the labels of `mine()` are set.
  expect_setequal(setdiff(values(), "GET"), c(long, "mine"))
  for (x in got) {
    of_name <- x$.labels[x$.labels$key == "span.name", ]
    expect_identical(anyDuplicated(of_name$sample_id), 0L)
    is_inside <- vapply(names_of_samples(x), function(names) all(c("in_span", "named") %in% names), TRUE)
    at <- match(x$samples$sample_id[is_inside], of_name$sample_id)
    expect_true(all(of_name$str[at] == long))
  }
})

test_that("samples of other processes have the names of their spans", {
  skip_without_processes()
  gate <- file.path(withr::local_tempdir(), "gate")
  system2("mkfifo", gate)
  # The process waits for a line that never comes.
  pid <- local_r_process(c("ready()", with_package(
    sprintf("trace <- '%s'", trace),
    paste(c("fake_provider <-", deparse(fake_provider)), collapse = "\n"),
    "tracer <- tracer_provider$new(fake_provider()$provider)$get_tracer('test')",
    sprintf("gate <- fifo('%s', 'r', blocking = TRUE)", gate),
    "in_span <- function() { tracer$start_local_active_span('GET /a'); readLines(gate, 1) }",
    "in_span()"
  )))
  pipe <- fifo(gate, "w", blocking = TRUE)
  withr::defer(close(pipe))
  wait_for_stack(pid, c("readLines", "in_span"))
  x <- profile_until(pid, clock = "wall")
  expect_identical(x$.labels$str[x$.labels$key == "span.name"], rep("GET /a", nrow(x$samples)))
})

test_that("under an invalid span, no span is active", {
  tracer <- tracer_provider$new(fake_provider()$provider)$get_tracer("test")
  invalid <- function() {
    tracer$start_local_active_span("invalid")
    published()
  }
  expect_null(with_span_ids(trace, span, invalid()))
  expect_identical(with_span_ids(trace, span, { invalid(); published()[[2]] }), span)
})

test_that("the provider of otel is wrapped", {
  skip_if_not_installed("otel")
  withr::local_envvar(OTEL_R_TRACES_EXPORTER = "profile::tracer_provider", OTEL_TRACES_EXPORTER = "none")
  code <- c(
    "provider <- otel::get_default_tracer_provider()",
    "f <- function() { otel::start_local_active_span('a'); otel::is_tracing_enabled() }",
    "cat(class(provider)[[1]], f(), Sys.getenv('OTEL_R_TRACES_EXPORTER'))"
  )
  output <- system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(paste(with_package(code), collapse = "; "))), stdout = TRUE)
  expect_identical(output, "otel_tracer_provider_noop FALSE profile::tracer_provider")

  # It cannot wrap itself.
  withr::local_envvar(OTEL_TRACES_EXPORTER = "profile::tracer_provider")
  output <- suppressWarnings(system2(
    file.path(R.home("bin"), "Rscript"), c("-e", shQuote(paste(with_package(code), collapse = "; "))),
    stdout = TRUE, stderr = TRUE
  ))
  expect_match(output, "must name another exporter", all = FALSE)
  expect_match(output, "otel_tracer_provider_noop FALSE profile::tracer_provider$", all = FALSE)
})
