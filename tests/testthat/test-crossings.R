# tier: gate
# How often each verb crosses the border between R and the core: once with the tables of its profiles.

# Counts the calls of entry points while code runs, and those with tables in their arguments.
local_counter <- function(envir = parent.frame()) {
  namespace <- asNamespace("profile")
  entries <- ls(namespace, pattern = "^rust_")
  own <- mget(entries, namespace)
  counter <- new.env()
  counter$all <- counter$with_tables <- character()
  has_table <- function(x) is.data.frame(x) || is.list(x) && any(vapply(unclass(x), has_table, NA))
  replace <- function(entry, f) utils::assignInNamespace(entry, f, "profile")
  withr::defer(for (entry in entries) replace(entry, own[[entry]]), envir = envir)
  for (entry in entries) {
    counting <- own[[entry]]
    note <- local({
      name <- entry
      function(arguments) {
        # An argument may itself be the result of a crossing.
        force(arguments)
        counter$all <- c(counter$all, name)
        if (any(vapply(arguments, has_table, NA))) counter$with_tables <- c(counter$with_tables, name)
      }
    })
    body(counting) <- bquote({
      .(note)(base::as.list(base::environment()))
      .(body(counting))
    })
    replace(entry, counting)
  }
  counter
}

# The entry points that a call crosses, those with tables first. `quiet` are those that carry no tables and whose number
# depends on the files of the profile.
crossings <- function(code, quiet = "rust_source_file") {
  # What is read once in a session does not count.
  code()
  counter <- local_counter()
  suppressMessages(suppressWarnings(code(), classes = "profile_warning"), classes = "profile_message")
  list(with_tables = counter$with_tables, others = setdiff(counter$all, c(counter$with_tables, quiet)))
}

expect_crosses <- function(code, with_tables, others = character()) {
  found <- crossings(code)
  label <- paste(deparse(body(code)), collapse = " ")
  expect_identical(found$with_tables, with_tables, label = paste("with tables,", label))
  expect_identical(found$others, others, label = paste("without tables,", label))
}

sample_file <- function() system.file("samples/rprof/1.out", package = "profile", mustWork = TRUE)

test_that("verbs that look at a profile cross once", {
  x <- read_rprof(sample_file())
  expect_crosses(function() validate_profile(x), "rust_validate")
  expect_crosses(function() format(x), "rust_summarise")
  expect_crosses(function() summary(x), "rust_summarise")
  for (by in c("file", "package", "line")) expect_crosses(function() summary(x, by = by), "rust_summarise")
  expect_crosses(function() summary(x, by = "run"), "rust_summarise", "rust_unit_factors")
  expect_crosses(function() as_tibble(x), "rust_frames")
  expect_crosses(function() describe_profile(x), "rust_describe")
  expect_crosses(function() call_tree(x), "rust_call_tree")
  expect_crosses(function() call_tree(x, by = "package"), "rust_call_tree")
  expect_crosses(function() call_tree(x, by = "run"), "rust_call_tree")
  expect_crosses(function() callers(x, "lm"), "rust_call_tree")
  expect_crosses(function() annotate_lines(x), "rust_summarise")
  expect_crosses(function() as_profvis(x), "rust_profvis")
  snapshot <- models_snapshot()
  expect_crosses(function() holders(snapshot), "rust_holders")
  expect_crosses(function() format(snapshot), "rust_holders")
})

test_that("a page crosses once, with or without a base and a comparison of runs", {
  x <- read_rprof(sample_file())
  runs <- combine_profiles(x, x, x)
  path <- withr::local_tempfile(fileext = ".html")
  expect_crosses(function() profile_page(x), "rust_page")
  expect_crosses(function() profile_page(x, source_text = FALSE), "rust_page")
  expect_crosses(function() profile_page(x, base = x), "rust_page")
  expect_crosses(function() profile_page(runs, base = runs), "rust_page")
  expect_crosses(function() write_profile(x, path), "rust_page")
})

test_that("comparisons cross once, whatever the number of profiles", {
  x <- read_rprof(sample_file())
  runs <- list(x, x, x)
  expect_crosses(function() compare_profiles(x, x), "rust_runs")
  expect_crosses(function() compare_profiles(runs, runs), "rust_runs")
  expect_crosses(function() compare_profiles(runs, x, by = "package"), "rust_runs")
  snapshot <- models_snapshot()
  expect_crosses(function() compare_profiles(snapshot, snapshot), "rust_holders")
  expect_crosses(function() expect_no_regression(runs, runs, tolerance = 1), "rust_runs")
})

test_that("verbs that return a profile cross once", {
  x <- read_rprof(sample_file())
  old <- profile_v1_from_v2(x)
  expect_crosses(function() combine_profiles(x, x), "rust_combine")
  expect_crosses(function() compact_profile(x), "rust_compact")
  expect_crosses(function() filter_profile(x, focus = "lm", hide_plumbing = TRUE, drop = "c"), "rust_filter")
  expect_crosses(function() add_packages(x), "rust_packages")
  expect_crosses(function() add_source_text(x), "rust_summarise")
  expect_crosses(function() profile_v1_from_v2(x), "rust_convert")
  expect_crosses(function() profile_v2_from_v1(old), "rust_convert")
})

test_that("a file is read without tables, and written with one crossing", {
  x <- read_rprof(sample_file())
  path <- function(extension) withr::local_tempfile(fileext = extension)
  expect_crosses(function() read_rprof(sample_file()), character(), "rust_read")
  for (extension in c(".out", ".pb", ".otlp", ".speedscope.json", ".cpuprofile", ".firefox.json", ".collapsed")) {
    file <- path(extension)
    expect_crosses(function() write_profile(x, file), "rust_write")
  }
})

test_that("a recording is read, and filtered once", {
  # While it runs, a thread looks for other processes that work for this one. Where the sampler does not start, R's
  # profiler records alone.
  withr::with_options(list(profile.recording_mb = .Machine$integer.max), {
    found <- setdiff(crossings(function() record_profile(NULL))$others, c("rust_live_platforms", "rust_native_block", "rust_native_start"))
    expect_identical(found, c("rust_lookout_start", "rust_thread_time", "rust_lookout_end", "rust_read"))
  })
  skip_without_native()
  others <- c(
    "rust_lookout_start", "rust_live_platforms", "rust_native_block", "rust_native_start", "rust_thread_time",
    "rust_lookout_end", "rust_lines_end", "rust_lines_read"
  )
  expect_crosses(function() record_profile(NULL), "rust_filter", others)
})

test_that("columns and tables of a user take at most one more crossing", {
  x <- read_rprof(sample_file())
  x$functions$.own <- seq_len(nrow(x$functions))
  x$.mine <- tibble::tibble(sample_id = c(1L, 3L), note = c("a", "b"))
  expect_crosses(function() describe_profile(x), "rust_describe")
  expect_crosses(function() filter_profile(x, focus = "lm"), "rust_filter")
  # Ids of own tables are renamed, without tables.
  expect_identical(crossings(function() combine_profiles(x, x))$with_tables, "rust_combine")
  expect_identical(crossings(function() compact_profile(x))$with_tables, c("rust_compact", "rust_combine"))
})

test_that("the agent starts with one crossing", {
  skip_without_agent()
  folder <- withr::local_tempdir()
  start <- function() start_agent(folder, every = 3600)
  counter <- local_counter()
  start()
  found <- counter$all
  stop_agent(0)
  expect_identical(found, "rust_agent_start")
})
