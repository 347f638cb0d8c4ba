# tier: gate
# Profiles of the Firefox Profiler: checked by its command line tool, read back, and files of other tools.

skip_without_profiler_cli <- function() {
  skip_without_viewer("@firefox-devtools/profiler-cli")
  version <- tryCatch(system2(find_node(), "--version", stdout = TRUE), error = function(e) "v0")
  if (numeric_version(sub("v", "", version, fixed = TRUE)) < "24") {
    testthat::skip("Node 24 is not installed: files are not judged by Firefox's profiler-cli")
  }
}

# A function that runs commands of the tool on a file and returns what it prints as JSON.
in_firefox <- function(path, .local_envir = parent.frame()) {
  # Sessions are kept in the home directory.
  home <- withr::local_tempdir(.local_envir = .local_envir)
  tool <- file.path(viewer_directory(), "node_modules", ".bin", "profiler-cli")
  bin <- paste(dirname(tool), Sys.getenv("PATH"), sep = .Platform$path.sep)
  run <- function(...) {
    withr::local_envvar(HOME = home, PATH = bin)
    system2("timeout", c("300", shQuote(c(tool, ...))), stdout = TRUE, stderr = FALSE)
  }
  withr::defer(run("stop", "--all"), envir = .local_envir)
  run("load", path)
  run("thread", "select", "t-0")
  function(...) jsonlite::fromJSON(paste(run(..., "--json"), collapse = "\n"), simplifyDataFrame = TRUE)
}

# Self and total by name of function.
functions_of <- function(tool, ...) {
  functions <- tool("thread", "functions", "--include-idle", ...)$functions
  list(
    self = in_order(tapply(functions$selfSamples, functions$name, sum)),
    rows = functions
  )
}

self_by_name <- function(x, type, factor) {
  figures <- summary(x, type = type)$by_function
  in_order(stats::setNames(as.numeric(figures$self) * factor, figures$name))
}

test_that("Firefox's tool shows what was written", {
  skip_without_profiler_cli()
  x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
  x <- add_source_text(x, directory = system.file("samples/report", package = "profile"))
  path <- withr::local_tempfile(fileext = ".json.gz")
  write_firefox(x, path)
  tool <- in_firefox(path)
  functions <- functions_of(tool)
  expect_equal(c(functions$self), c(self_by_name(x, "samples", 10)), ignore_attr = "dim")
  # Source code with the time of each line.
  handle <- functions$rows$functionHandle[functions$rows$name == "make_sales"]
  annotated <- tool("function", "annotate", handle, "--context", "file")$srcAnnotation
  expect_match(annotated$filename, "sales.R")
  mine <- annotate_lines(x, "sales.R")
  shown <- annotated$lines$totalSamples[match(mine$line, annotated$lines$lineNumber)]
  expect_equal(annotated$lines$sourceText[mine$line], mine$text)
  # Lines of this function only.
  expect_equal(shown[2:4], as.numeric(mine$total)[2:4] * 10)
})

test_that("Firefox's tool shows allocations and native code", {
  skip_without_profiler_cli()
  x <- read_rprof(rprof_path("basic_all.out"))
  path <- withr::local_tempfile(fileext = ".json")
  write_firefox(x, path)
  tool <- in_firefox(path)
  functions <- functions_of(tool, "--strategy", "native-allocations")
  # As in the file of Rprof(): what was allocated before a garbage collection is in its samples.
  innermost <- vapply(strsplit(stacks(x), " < ", fixed = TRUE), `[[`, "", 1)
  bytes <- x$sample_values$value[x$sample_values$type == "alloc_size"]
  expected <- tapply(bytes, innermost, sum)
  expect_equal(c(functions$self), c(expected[expected > 0]), ignore_attr = "dim")
  categories <- tool("thread", "samples", "--include-idle")$categoryBreakdown$categories
  collected <- categories$samples[categories$name == "Garbage collection"]
  expect_equal(collected, sum(innermost == "<GC>") * x$sources$.period / 1e3)
  go <- read_pprof(data_path("pprof", "go_cpu.pb.gz"))
  write_firefox(go, path)
  total <- sum(go$sample_values$value[go$sample_values$type == "cpu"]) / 1e6
  tool <- in_firefox(path)
  expect_equal(tool("thread", "samples", "--include-idle")$categoryBreakdown$totalSamples, total)
})

test_that("samples, times, lines and allocations come back", {
  x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
  y <- expect_no_warning(read_written(x, "firefox"))
  expect_identical(validate_profile(y), y)
  expect_equal(stacks(y), stacks(x))
  expect_equal(sums_by_stack(y, "time"), sums_by_stack(x, "samples", factor = 10))
  lines <- function(x) as.data.frame(as_tibble(x)[c("sample_id", "depth", "name", "filename", "line")])
  expect_equal(lines(y), lines(x))
  expect_equal(y$sources$source_timestamp, x$sources$source_timestamp, tolerance = 1e-9)
  expect_equal(diff(y$samples$.timestamp), rep(0.01, 251), tolerance = 1e-3)
  again <- read_written(y, "firefox")
  # The name of the file.
  again$.comments <- y$.comments
  expect_equal(again, y)

  x <- read_rprof(rprof_path("basic_all.out"))
  y <- read_written(x, "firefox")
  expect_equal(sums_by_stack(y, "alloc_space"), sums_by_stack(x, "alloc_size"))
})

test_that("mappings and native code come back", {
  go <- read_pprof(data_path("pprof", "go_cpu.pb.gz"))
  y <- read_written(go, "firefox")
  expect_equal(stacks(y), stacks(go))
  expect_equal(sums_by_stack(y, "time"), sums_by_stack(go, "cpu", factor = 1e-6))
  expect_true(all(y$.mappings$filename %in% go$.mappings$filename))
  expect_true(all(y$locations$.frame_type == "native"))
})

test_that("each source is a thread", {
  x <- combine_profiles(small_profile(), small_profile())
  y <- read_written(x, "firefox")
  expect_equal(nrow(y$sources), 2)
  expect_equal(y$samples$source_id, x$samples$source_id)
  expect_equal(stacks(y), stacks(x))
})

test_that("errors say what is wrong", {
  gecko <- "{\"meta\":{\"version\":24},\"threads\":[{\"samples\":{\"schema\":{\"stack\":0},\"data\":[]}}]}"
  expect_snapshot(print_refusals(
    read_firefox, gecko, "{}", "{\"meta\":{\"stackwalk\":1}}",
    "{\"threads\":[{\"samples\":{\"stack\":[3]}}]}", "{\"meta\":{\"stackwalk\":1},\"threads\":5}"
  ))
})

test_that("an index outside of a table is an error", {
  x <- expect_no_warning(read_firefox(data_path("found", "negative-prefix-original.firefox.json")))
  expect_equal(nrow(x$sample_locations), 1252)
  expect_snapshot(read_firefox(data_path("found", "negative-prefix.firefox.json")), error = TRUE)
})
