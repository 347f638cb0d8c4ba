# tier: thorough
# A real OpenTelemetry Collector receives our profiles, and its files contain what was sent. test-otlp-rules.R has the
# rules that messages must follow.

# The tables are the same, in the same order. Only problems differ in their positions in the file.
expect_received <- function(received, sent, info) {
  read <- function(file) {
    x <- read_otlp_quietly(file, source_uri = NA)
    x$.problems <- NULL
    x
  }
  for (file in unlist(received)) expect_identical(read(file), read(sent), info = info)
}

test_that("the collector receives every profile as it was sent", {
  collector <- collector()
  profiles <- all_profiles()
  expect_gt(length(profiles), 100)
  for (i in seq_along(profiles)) {
    name <- names(profiles)[[i]]
    x <- profiles[[i]]
    # Half of the profiles in each encoding, and half of these compressed.
    format <- c("protobuf", "json")[[i %% 2 + 1]]
    aggregate <- i %% 3 > 0
    sent <- withr::local_tempfile(fileext = if (format == "json") ".json" else ".pb")
    suppressWarnings(write_otlp(x, sent, aggregate = aggregate), classes = "profile_warning")
    suppressWarnings(
      send(collector$url, x = x, format = format, compress = i %% 4 < 2, aggregate = aggregate),
      classes = "profile_warning_lossy"
    )
    expect_received(collector$received(), sent, info = name)
  }
})

test_that("the collector accepts files as they were written", {
  collector <- collector()
  x <- read_otlp(otlp_path("fleet.pb"), source_uri = NA)
  for (fileext in c(".pb", ".json")) {
    path <- withr::local_tempfile(fileext = fileext)
    write_otlp(x, path, aggregate = FALSE)
    type <- if (fileext == ".json") "application/json" else "application/x-protobuf"
    answer <- post_bytes(collector$url, file_bytes(path), type)
    expect_identical(answer$status, 200L)
    expect_received(collector$received(), path, info = fileext)
  }
})

test_that("the collector accepts several sources, links and resources", {
  collector <- collector()
  x <- small_profile()
  x$samples$.trace_id <- c(strrep("ab", 16), NA, NA)
  x$samples$.span_id <- c(strrep("cd", 8), NA, NA)
  x$samples$.timestamp <- c(NA, 1.8e9, NA)
  x <- combine_profiles(x, read_pprof(data_path("pprof", "go_cpu.pb.gz")), read_otlp(otlp_path("fleet.pb")))
  sent <- withr::local_tempfile()
  resource <- c(service.name = "etl")
  suppressWarnings(write_otlp(x, sent, resource = resource), classes = "profile_warning_lossy")
  suppressWarnings(send(collector$url, x = x, resource = resource), classes = "profile_warning_lossy")
  received <- collector$received()
  expect_received(received, sent, info = "combined")
  y <- read_otlp(received$pb)
  expect_true(all(y$.resource_attributes$value[y$.resource_attributes$key == "service.name"] == "etl"))
  expect_setequal(y$samples$.trace_id, x$samples$.trace_id)
})

test_that("what the agent sends arrives", {
  collector <- collector()
  version <- c("OTLP-Profiles-Development-Version" = "1")
  local_agent(collector$url, resource = c(service.name = "api"), headers = version)
  with_labels(c(route = "/api"), work_until_taken())
  status <- stop_when_sent()
  received <- collector$received(status$chunks_sent)
  for (files in received) {
    profiles <- lapply(files, read_otlp)
    expect_identical(samples_of(profiles), status$sent)
    expect_legal(profiles)
    expect_true(has_seen(profiles, "busy_loop"))
    expect_true(all(vapply(profiles, function(x) "api" %in% x$.resource_attributes$value, NA)))
    expect_identical(unique(unlist(lapply(profiles, function(x) x$.labels$str[x$.labels$key == "route"]))), "/api")
  }
})

test_that("a message that the collector refuses is an error with its reason", {
  collector <- collector()
  message <- as.raw(c(0x0a, 0x05, 0x08))
  replace_function("otlp_message", function(...) message)
  cnd <- failed(collector$url)
  expect_identical(cnd[c("status", "attempts")], list(status = 400L, attempts = 1L))
  # The texts are the collector's own.
  expect_match(cnd$answer, "EOF", fixed = TRUE)
  expect_match(conditionMessage(cnd), cnd$answer, fixed = TRUE)
  message <- charToRaw("{\"resourceProfiles\": 1}")
  expect_identical(failed(collector$url, format = "json")$status, 400L)
  # An index of a string that is not in the table: resource_profiles { resource { attributes { key_strindex: 9 } } }.
  message <- as.raw(c(0x0a, 0x06, 0x0a, 0x04, 0x0a, 0x02, 0x18, 0x09))
  cnd <- failed(collector$url)
  expect_identical(cnd$status, 400L)
  expect_match(cnd$answer, "9", fixed = TRUE)
  # The collector's own limit for a message is smaller than ours, and applies before and after decompression.
  message <- raw(21 * 2^20)
  for (compress in c(TRUE, FALSE)) {
    cnd <- failed(collector$url, compress = compress)
    expect_identical(cnd[c("attempts", "status")], list(attempts = 1L, status = 400L))
  }
  # Another path, and another type of content.
  expect_identical(failed(paste0(collector$url, "/v1/profiles"))$status, 404L)
  expect_identical(post_bytes(collector$url, raw(1), "text/plain")$status, 415L)
})
