# tier: gate
# Pages of this package and of profvis, read as profiles.

# The samples in their order: source, stack with files and lines, and labels.
shown_samples <- function(x) {
  frames <- as_tibble(x)
  frames <- frames[order(frames$sample_id, -frames$depth), ]
  file <- ifelse(is.na(frames$filename), "", frames$filename)
  line <- ifelse(is.na(frames$line), 0L, frames$line)
  text <- paste0(frames$name, "@", file, ":", line)
  stacks <- split(text, factor(frames$sample_id, x$samples$sample_id))
  unname(vapply(stacks, paste, "", collapse = " < "))
}

sums <- function(x, ...) {
  rows <- as.data.frame(summary(x, ...)$by_function)
  rows <- rows[rows$self != 0 | rows$total != 0, ]
  rows[order(rows$name, rows$self, rows$total), c("name", "self", "total")]
}

page_file_of <- function(x, ..., .local_envir = parent.frame()) {
  path <- withr::local_tempfile(fileext = ".html", .local_envir = .local_envir)
  suppressMessages(write_profile(x, path, ...))
  path
}

test_that("a page is read as the profile that it shows, in the order of its samples", {
  for (file in c("basic_line.out", rprof_files()[[1]])) {
    x <- read_quietly(rprof_path(basename(file)))
    y <- expect_no_warning(read_profile(page_file_of(x)))
    validate_profile(y)
    expect_identical(shown_samples(y), shown_samples(x))
    expect_identical(unique(y$sources$source_type), "page")
    expect_equal(summary(y)$total, summary(x)$total)
    expect_equal(sums(y), sums(x), ignore_attr = TRUE)
    expect_equal(sampling_period(y$sources) / 1e3, sampling_period(x$sources), ignore_attr = TRUE)
    # Without the order of samples, and as a page again.
    expect_equal(sums(read_profile(page_file_of(x, timeline = FALSE))), sums(x), ignore_attr = TRUE)
    expect_identical(shown_samples(read_profile(page_file_of(y))), shown_samples(x))
  }
})

test_that("pages of other formats have all sums of their types", {
  for (file in c("pprof", "speedscope", "cpuprofile")) {
    path <- list.files(data_path(file), full.names = TRUE)[[1]]
    x <- suppressWarnings(read_profile(path), classes = "profile_warning")
    y <- read_profile(page_file_of(x))
    expect_equal(summary(y)$total, summary(x)$total)
    expect_equal(sums(y), sums(x), ignore_attr = TRUE)
  }
})

test_that("labels are kept", {
  x <- small_profile()
  x$.labels <- tibble::tibble(
    sample_id = x$samples$sample_id[2:3], key = "route", str = c("/a", "/b"), num = NA_real_, unit = NA_character_
  )
  for (timeline in c(TRUE, FALSE)) {
    y <- read_profile(page_file_of(x, timeline = timeline))
    validate_profile(y)
    expect_equal(summary(y, by = "route")[c("route", "total")], summary(x, by = "route")[c("route", "total")])
  }
  expect_null(read_profile(page_file_of(x, labels = FALSE))[[".labels"]])
})

test_that("processes that worked together have their roles, ids and times", {
  x <- profile_of_processes(list(master = c(0, 1, 7), "worker 1 of 2" = c(3, 4), "worker 2 of 2" = c(2, 5.4)))
  y <- read_profile(page_file_of(x))
  validate_profile(y)
  expect_equal(summary(y, by = "process"), summary(x, by = "process"), ignore_attr = TRUE)
  expect_equal(y$sources$source_timestamp, x$sources$source_timestamp)
  expect_equal(y$samples$.timestamp, x$samples$.timestamp)
})

test_that("a page of two profiles is refused by their names", {
  a <- read_rprof(rprof_path("basic_line.out"), source_uri = "a.out")
  b <- read_rprof(rprof_path("basic_line.out"), source_uri = "b.out")
  expect_error(read_profile(page_file_of(b, base = a)), "`b.out` with `a.out`", class = "profile_error_unsupported")
})

test_that("damaged and hostile pages are errors with a reason", {
  skip_if_not_installed("jsonlite")
  html <- page_html(page_file_of(read_rprof(rprof_path("basic_line.out"))))
  start <- "application/octet-stream\">"
  before <- sub(paste0("(", start, ").*"), "\\1", html)
  after <- sub(".*</script>(\n*<script>)", "</script>\\1", html)
  json <- page_data(page_file_of(read_rprof(rprof_path("basic_line.out"))))$json
  folder <- withr::local_tempdir()
  page_with <- function(json) {
    # memCompress() writes no header of gzip.
    path <- tempfile(tmpdir = folder)
    file <- gzfile(path, "wb")
    writeBin(charToRaw(json), file)
    close(file)
    base64 <- gsub("\n", "", jsonlite::base64_enc(file_bytes(path)), fixed = TRUE)
    write_file(paste0(before, base64, "</script>\n</body>\n</html>"), path = tempfile(tmpdir = folder))
  }
  expect_no_error(read_profile(page_with(json)))
  refused <- function(path, pattern, class = "profile_error_parse") {
    for (read in list(read_profile, read_profile_as_text)) expect_error(read(path), pattern, class = class)
  }
  read_profile_as_text <- function(path) {
    connection <- file(path, "rb")
    on.exit(close(connection))
    read_profile(connection)
  }
  refused(write_file(substr(html, 1, nchar(before) + 100)), "may be truncated")
  refused(write_file(before), "may be truncated")
  refused(write_file(sub(paste0("(", start, ")."), "\\1?", html)), "not valid base64")
  refused(write_file(paste0(before, "</script></body>")), "empty")
  refused(write_file(paste0(before, jsonlite::base64_enc(charToRaw("hello")), "</script>")), "not JSON")
  change <- function(pattern, by) {
    changed <- sub(pattern, by, json)
    expect_false(identical(changed, json))
    page_with(changed)
  }
  refused(page_with(substr(json, 1, nchar(json) / 2)), "end|truncated")
  refused(change("\"format\":1", "\"format\":2"), "another layout", "profile_error_unsupported")
  refused(change("\"frame\":\\[-1,0", "\"frame\":[-1,99999"), "row 99999")
  refused(change("\"depth\":\\[0,1", "\"depth\":[0,2"), "row 2")
  refused(change("\"depth\":\\[0,", "\"depth\":[1,"), "row 1")
  refused(change("\"depth\":\\[0,", "\"depth\":[0,0,"), "differ in length|no root")
  refused(change("(\"order\":\\[[{]\"source\":0,\"node\":\\[)[0-9]+", "\\11e9"), "row 1000000000")
  refused(change("\"type\":0,", "\"type\":77,"), "row 77")
  withr::local_options(profile.max_memory = 1e7)
  refused(change("\"run\":\\[[0-9]+", "\"run\":[1e15"), "memory", "profile_error_budget")
})

test_that("pages of profvis are read as what profvis had read", {
  x <- expect_no_warning(read_profile(data_path("found", "profvis.html")))
  validate_profile(x)
  expect_identical(nrow(x$samples), 3L)
  expect_equal(sums(x)$total, c(2, 3))
  expect_identical(sums(x)$name, c("f", "main"))
  lines <- summary(x)$by_line
  expect_identical(paste0(lines$filename, ":", lines$line, " ", lines$self), "a.R:1 2")
  expect_equal(sampling_period(x$sources), 10000, ignore_attr = TRUE)
  for (read in list(read_rprof, read_pprof)) {
    expect_error(
      read(data_path("found", "profvis.html")), "page of profvis.*read_profile", class = "profile_error_parse"
    )
  }
})

test_that("what as_profvis() made is read again, also behind long scripts", {
  skip_if_not_installed("jsonlite")
  x <- read_rprof(rprof_path("basic_line.out"))
  widget <- as_profvis(x, source_text = FALSE)
  json <- jsonlite::toJSON(
    list(x = widget$x), dataframe = "columns", null = "null", na = "null", auto_unbox = TRUE, digits = NA
  )
  folder <- withr::local_tempdir()
  html <- function(json, scripts) {
    write_file(path = tempfile(tmpdir = folder), paste0(
      "<!DOCTYPE html>\n<html><head><title>profvis</title><script>", strrep("/* x */\n", scripts),
      "</script></head><body>\n<div id=\"w\" class=\"profvis html-widget\"></div>\n",
      "<script type=\"application/json\" data-for=\"other\">{\"x\":{\"message\":1}}</script>\n",
      "<script type=\"application/json\" data-for=\"w\">", json, "</script></body></html>"
    ))
  }
  for (scripts in c(1, 1e5)) {
    y <- read_profile(html(json, scripts))
    expect_equal(sums(y)[c("name", "self", "total")], sums(x), ignore_attr = TRUE)
  }
  expect_error(read_profile(html(substr(json, 1, nchar(json) / 2), 1)), "Expected|end", class = "profile_error_parse")
  expect_error(
    read_profile(html(sub("\"depth\":\\[", "\"depth\":[1,", json), 1)), "differ in length", class = "profile_error_parse"
  )
  cut <- html(json, 1)
  writeLines(substr(readChar(cut, 1e7), 1, 600), cut)
  expect_error(read_profile(cut), "may be truncated", class = "profile_error_parse")
})

test_that("other pages are no profiles", {
  path <- write_file("<!DOCTYPE html>", strrep("<p>text</p>", 1e4))
  expect_error(read_profile(path), "looks like HTML", class = "profile_error_parse")
})
