# tier: fast
# Memory that R's profiler has measured at samples: a lower bound, part of which belongs to code that ran before.

memory_file <- function() read_rprof(rprof_path("basic_memgc.out"), source_uri = NA)

own_bytes <- function(x, ...) {
  rows <- summary(x, ...)$by_function
  rlang::set_names(rows$self_alloc, rows$name)
}

test_that("lower bounds are \"at least\" wherever they are printed", {
  x <- memory_file()
  expect_snapshot({
    writeLines(utils::tail(format(summary(x), n = 1, width = 100), 2))
    writeLines(format(summary(x, type = "alloc_size"), n = 1, width = 100)[[1]])
    writeLines(utils::tail(format(summary(x, type = "alloc_size"), n = 1, width = 100), 3))
    writeLines(format(call_tree(x, type = "alloc_size"), n = 1, width = 100))
    writeLines(format(describe_profile(x, type = "alloc_size"), n = 1, width = 100)[[1]])
    writeLines(grep("Note:", format(describe_profile(x, type = "alloc_size"), n = 1, width = 100), value = TRUE))
    writeLines(format(summary(x, type = "dealloc_size"), n = 1, width = 100)[[1]])
    writeLines(format(summary(x, type = "duplications"), n = 1, width = 100)[[1]])
    writeLines(utils::tail(format(summary(x, type = "duplications"), n = 1, width = 100), 2))
  })
  expect_true(as.list(describe_profile(x, type = "alloc_size"))$run$at_least)
  expect_false(as.list(describe_profile(x))$run$at_least)
})

test_that("lines have bounds as well", {
  x <- read_rprof(rprof_path("basic_memline.out"), source_uri = NA)
  expect_snapshot({
    writeLines(format(annotate_lines(x), n = 3, width = 100))
    writeLines(format(annotate_lines(x, type = "alloc_size"), n = 3, width = 100))
    writeLines(utils::tail(format(annotate_lines(x, type = "duplications"), n = 1, width = 100), 3))
  })
})

test_that("amounts that are exact are not marked", {
  x <- read_rprofmem(rprof_path("rprofmem_basic.out"))
  for (text in list(format(x), format(summary(x)), format(describe_profile(x)), format(call_tree(x)))) {
    expect_no_match(paste(text, collapse = "\n"), "at least|previous sample")
  }
  go <- read_pprof(system.file("samples/proto/go_heap.pb.gz", package = "profile"))
  expect_no_match(paste(format(summary(go)), collapse = "\n"), "at least|previous sample")
  both <- combine_profiles(memory_file(), x)
  expect_no_match(format(summary(both, type = "alloc_space"))[[1]], "at least")
  allocated <- as.list(describe_profile(both))$allocated
  expect_true(allocated$at_least)
  expect_equal(allocated$recorded$bytes, attr(summary(x, type = "alloc_space"), "sum"))
  # The digest shows the exact bytes only.
  expect_true(allocated$recorded$complete)
  text <- format(describe_profile(both))
  expect_length(grep("allocated by itself, of", text), 1)
  expect_match(text, "each vector recorded", all = FALSE)
  expect_no_match(paste(text, collapse = " "), "at least|lower bound")
})

test_that("other formats, in which the memory has another name, keep the mark", {
  x <- memory_file()
  again <- function(x, write, read, extension, ...) {
    path <- withr::local_tempfile(fileext = extension)
    write(x, path, ...)
    read(path)
  }
  for (back in list(again(x, write_pprof, read_pprof, ".pb.gz"), again(x, write_otlp, read_otlp, ".pb"))) {
    summary <- summary(back, type = "alloc_space")
    expect_true(attr(summary, "sum_at_least"))
    expect_match(format(summary)[[1]], "<profile summary> at least [0-9.]+[MG]B alloc_space")
    expect_true(attr(summary(back), "at_least"))
    expect_null(as.list(describe_profile(back))$allocated$recorded)
  }
  without <- again(read_rprof(rprof_path("basic_gc.out")), write_pprof, read_pprof, ".pb.gz")
  expect_false(attr(summary(without), "at_least"))
  types <- page_of(x)$types
  flags <- function(flag) vapply(types[vapply(types, `[[`, NA, flag)], `[[`, "", "name")
  expect_identical(flags("bound"), c("alloc_size", "dealloc_size"))
  expect_setequal(flags("since"), c("alloc_size", "dealloc_size", "duplications"))
})

test_that("native code that runs when a sample is taken has allocated nothing", {
  x <- memory_file()
  native <- marked_as_native(x, c("gsub", "lm.fit"))
  before <- own_bytes(x)
  after <- own_bytes(native)
  expect_gt(before[["gsub"]], 0)
  expect_identical(after[["gsub"]], 0)
  expect_identical(sum(after), sum(before))
  # All calls of `gsub()` are in `clean()`.
  expect_identical(after[["clean"]], before[["clean"]] + before[["gsub"]])
  # Time and counts are as before.
  rows <- function(x) summary(x)$by_function[c("name", "self", "total", "self_time")]
  expect_identical(rows(native), rows(x))
  tree <- call_tree(native, type = "alloc_size")
  expect_false("gsub" %in% tree$name)
  expect_equal(sum(tree$self), sum(after))
})

test_that("stores and speedscope do not give a lower bound the name of exact memory", {
  x <- memory_file()
  path <- withr::local_tempfile(fileext = ".speedscope.json")
  write_speedscope(x, path)
  read <- list(read_speedscope(path))
  if (rlang::is_installed(c("DBI", "RSQLite", "dbplyr", "dplyr"))) {
    con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
    withr::defer(DBI::dbDisconnect(con))
    store_profiles(x, con)
    read <- c(read, list(read_profile(tbl_profile(con))))
  }
  for (y in read) {
    summary <- summary(y, type = "alloc_size")
    expect_true(attr(summary, "sum_at_least"))
    expect_equal(attr(summary, "sum"), attr(summary(x, type = "alloc_size"), "sum"))
    expect_false("alloc_space" %in% y$sample_values$type)
  }
})
