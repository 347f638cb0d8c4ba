# tier: fast
# Plots show the figures of the profile.

sample_profile <- function(file) read_rprof(system.file("samples/rprof", file, package = "profile"))

local_device <- function(env = parent.frame()) {
  path <- withr::local_tempfile(fileext = ".pdf", .local_envir = env)
  grDevices::pdf(path, 7, 5)
  withr::defer(grDevices::dev.off(), env)
}

test_that("a flame graph shows the call tree", {
  local_device()
  x <- sample_profile("1.out")
  expect_invisible(plot(x))
  drawn <- plot(x, main = "Title")
  tree <- call_tree(add_packages(x))
  expect_equal(as_tibble(drawn), as_tibble(tree[tree$node_id %in% drawn$node_id, ]))
  # All of these can be seen at this size.
  expect_equal(drawn$node_id, tree$node_id)
})

test_that("nodes that are too narrow are not drawn", {
  local_device()
  x <- suppressWarnings(read_rprof(test_path("data/rprof/dplyr_1ms.out")))
  drawn <- plot(x)
  tree <- call_tree(x)
  expect_lt(nrow(drawn), nrow(tree))
  hidden <- tree$total[!tree$node_id %in% drawn$node_id]
  expect_lt(max(hidden), min(drawn$total) + 1e-9)
})

test_that("time shows each sample", {
  local_device()
  x <- sample_profile("1.out")
  drawn <- plot(x, view = "time")
  # At the middle of each sample, the boxes are its stack.
  frames <- as_tibble(x)
  for (sample in c(1, 17, 100, 252)) {
    time <- (sample - 0.5) * 0.01
    boxes <- drawn[drawn$start < time & drawn$end > time, ]
    stack <- frames[frames$sample_id == sample, ]
    expect_equal(boxes$name[order(boxes$depth)], stack$name[order(-stack$depth)])
  }
  expect_equal(sum((drawn$end - drawn$start)[drawn$depth == 1]), 2.52)
})

test_that("time shows a sample without a stack as a gap, and memory", {
  local_device()
  x <- sample_profile("memory.out")
  x$sample_locations <- x$sample_locations[x$sample_locations$sample_id != 20, ]
  drawn <- plot(x, view = "time")
  time <- 19.5 * 0.01
  expect_equal(nrow(drawn[drawn$start < time & drawn$end > time, ]), 0)
})

test_that("many samples are thinned out", {
  local_device()
  x <- suppressWarnings(read_rprof(test_path("data/rprof/dplyr_1ms.out")))
  drawn <- plot(x, view = "time")
  expect_lte(max(drawn$end), 1.013)
  expect_gt(max(drawn$end), 1)
})

test_that("the lines with the greatest total are drawn", {
  local_device()
  x <- add_source_text(sample_profile("1.out"), directory = system.file("samples/report", package = "profile"))
  drawn <- plot(x, view = "lines", n = 4)
  by_line <- summary(x)$by_line
  expect_equal(drawn$total, head(sort(by_line$total, decreasing = TRUE), 4))
  expect_match(drawn$text[[1]], "make_sales", fixed = TRUE)
  expect_equal(plot(x, view = "lines", n = Inf)$total, sort(by_line$total, decreasing = TRUE))
})

test_that("graphical parameters are restored", {
  local_device()
  x <- sample_profile("memory.out")
  before <- graphics::par(c("mar", "mfrow", "mgp", "tcl"))
  for (type in c("flame", "time", "lines")) {
    plot(x, view = type)
    expect_equal(graphics::par(c("mar", "mfrow", "mgp", "tcl")), before)
  }
})

test_that("all kinds of profiles can be drawn", {
  local_device()
  files <- file.path("data/rprof", c("deep_plain.out", "names_line.out", "append_line2.out", "latin1_names.out"))
  for (file in test_path(files)) {
    x <- suppressWarnings(read_rprof(file))
    expect_no_error(plot(x))
    expect_no_error(plot(x, view = "time", source_id = 1))
  }
  heap <- read_pprof(system.file("samples/proto/go_heap.pb.gz", package = "profile"))
  expect_no_error(plot(heap, type = "alloc_space"))
  expect_no_error(plot(heap, view = "lines"))
})

test_that("characters that the device lacks are replaced", {
  local_device()
  x <- sample_profile("1.out")
  x$functions$name[] <- strrep("a long name \u4e2d\u6587 ", 1000)
  x$functions$filename[x$functions$filename != ""] <- "/home/\u4e2d.R"
  for (type in c("flame", "time", "lines")) {
    expect_no_condition(plot(x, view = type, main = "\u4e2d"))
  }
  expect_equal(drawable(c("plain", "\u4e2d")), c("plain", "???"))
})

test_that("a profile that cannot be drawn is an error", {
  empty <- suppressWarnings(read_rprof(test_path("data/rprof/empty_line.out")))
  x <- sample_profile("1.out")
  expect_snapshot(error = TRUE, {
    plot(empty)
    plot(empty, view = "time")
    plot(empty, view = "lines")
    plot(x, view = "pie")
    plot(x, type = "flame")
    plot(x, type = "bytes")
    plot(x, view = "lines", source_id = 1)
    plot(combine_profiles(x, x), view = "time", source_id = 1:2)
    plot(x, main = 1)
  })
})
