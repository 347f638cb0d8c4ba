# tier: gate
# Growth by path: the differences of two snapshots.

test_that("the growth of snapshots is exact", {
  x <- models_snapshot(4)
  y <- models_snapshot(12, time = 1.8e9 + 60)
  growth <- compare_profiles(x, y)
  expect_s3_class(growth, "profile_growth")
  expect_identical(growth, compare_profiles(x, y, by = "path"))
  expect_identical(growth$growth, c(92008000, 64e6, 24e6, 4e6))
  expect_identical(growth$base + growth$growth, growth$new)
  expect_identical(growth$objects, c(48, 8, 24, 8))
  expect_identical(growth$held_by[[1]], "globalenv > $fits <list> > [[*]] <lm>")
  expect_identical(attr(growth, "whole")$growth, 92008000)
  expect_snapshot(print(growth, width = 140))
  # The largest changes come first, also if memory was freed.
  expect_identical(compare_profiles(y, x)$growth, -growth$growth)
  same <- compare_profiles(x, x)
  expect_identical(nrow(same), 0L)
  expect_identical(format(same)[[2]], "No difference was found.")
  expect_match(format(growth, n = 1), "and 3 more rows", all = FALSE)
})

test_that("a snapshot equals what was read from its file", {
  x <- models_snapshot()
  for (extension in c("pb.gz", "otlp")) {
    path <- withr::local_tempfile(fileext = paste0(".", extension))
    write_profile(x, path)
    y <- read_profile(path)
    expect_identical(compare_profiles(x, y, by = "path")$growth, double(), label = extension)
    expect_identical(compare_profiles(y, models_snapshot(12), by = "path")$growth[[1]], 92008000, label = extension)
  }
})

test_that("growth is printed in lines", {
  x <- snapshot("globalenv;$\033[31mred\n;numeric", 100)
  growth <- compare_profiles(snapshot("base;list", 1), x)
  expect_false(any(grepl("[[:cntrl:]]", format(growth))))
  for (width in c(20, 60, 200)) {
    lines <- format(compare_profiles(models_snapshot(), models_snapshot(12)), width = width)
    expect_true(all(nchar(lines, "width") <= width))
  }
  expect_false(any(grepl("<growth", format(growth["held_by"]))))
  expect_s3_class(as_tibble(growth), c("tbl_df", "tbl", "data.frame"), exact = TRUE)
})

test_that("paths below different owners are not one row, and growth is found below equal sums", {
  x <- snapshot(c("globalenv;$cache;list", "namespace:a;$cache;list", "base;$new;list"), c(100, 300, 10))
  y <- snapshot(c("globalenv;$cache;list", "namespace:a;$cache;list", "base;$other;list"), c(200, 200, 10))
  growth <- compare_profiles(x, y)
  expect_identical(growth$held_by, c("globalenv > $cache", "namespace:a > $cache", "base > $other", "base > $new"))
  expect_identical(growth$growth, c(100, -100, 10, -10))
  expect_identical(compare_profiles(x, y, min_share = 0.1)$growth, c(100, -100))
})

test_that("snapshots are compared in other ways if that is requested", {
  x <- models_snapshot(4)
  y <- models_snapshot(12)
  expect_s3_class(compare_profiles(x, y, by = "function"), "profile_comparison")
  heap <- read_pprof(system.file("samples/proto/go_heap.pb.gz", package = "profile"))
  expect_identical(nrow(compare_profiles(heap, heap, by = "path")), 0L)
  expect_s3_class(compare_profiles(x, heap), "profile_comparison")
  expect_snapshot(error = TRUE, {
    compare_profiles(x, y, scale = "share")
    compare_profiles(x, y, by = "path", only = "lm")
    compare_profiles(combine_profiles(x, y), y)
    compare_profiles(small_profile(), small_profile(), by = "path")
    compare_profiles(x, small_profile(), by = "path")
  })
})

test_that("a page compares snapshots", {
  x <- models_snapshot(4)
  y <- models_snapshot(12)
  data <- page_data(profile_page(y, base = x))
  expect_identical(data$types[[data$type + 1]]$name, attr(summary(x), "type"))
  expect_identical(vapply(data$sources, `[[`, NA, "base"), c(FALSE, TRUE))
  for (side in 1:2) {
    theirs <- summary(list(y, x)[[side]])$by_function
    expect_figures(page_figures(data, data$type + 1, side)$by_function, theirs$name, theirs, side)
  }
})
