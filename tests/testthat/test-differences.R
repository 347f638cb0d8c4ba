# tier: gate
# Differences of two profiles, which have negative values: their figures agree with Go's pprof, no function with a value
# is left out, and a sum of 0 or less is shown correctly.

found_file <- function(name) read_pprof(data_path("found", name))

figures <- function(x, ...) {
  rows <- summary(x, ...)$by_function
  rlang::set_names(paste(rows$self, rows$total, round(100 * rows$self_share, 1)), rows$name)
}

# A profile with a sample for each stack, written `a;b` (outermost first).
profile_of_stacks <- function(stacks, values) {
  x <- read_collapsed(write_file(paste(stacks, 1)))
  x$sample_values$value <- values
  x
}

test_that("functions with a self and no total are shown", {
  x <- found_file("diff-self-not-total.pb.gz")
  expect_identical(figures(x), c(h = "10 10 50", f = "5 5 25", g = "-5 0 -25"))
  expect_identical(sum(summary(x)$by_function$self), attr(summary(x), "sum"))
  expect_identical(sum(summary(x)$by_line$self), 10)
  expect_snapshot({
    print(x)
    describe_profile(x)
    summary(x)
    callers(x, "g")
    callees(x, "g")
  })
})

test_that("the sum may be 0 or negative", {
  x <- found_file("diff-zero-total.pb.gz")
  expect_identical(figures(x), c(f = "5 5 50", g = "-5 0 -50"))
  expect_identical(attr(summary(x), "whole"), 10)
  x <- found_file("diff-negative-total.pb.gz")
  expect_identical(figures(x), c(g = "-7 -2 -58.3", f = "5 5 41.7"))
  expect_snapshot({
    print(found_file("diff-zero-total.pb.gz"))
    describe_profile(found_file("diff-zero-total.pb.gz"))
    print(x)
    describe_profile(x)
  })
})

test_that("shares are never NaN or infinite", {
  for (name in c("diff-self-not-total.pb.gz", "diff-zero-total.pb.gz", "diff-negative-total.pb.gz", "heap-all-freed.pb.gz")) {
    x <- found_file(name)
    parts <- as.list(describe_profile(x))
    tables <- c(unclass(summary(x))[c("by_function", "by_line")], parts[c("functions", "lines", "packages")])
    for (table in tables) {
      shares <- unlist(table[intersect(names(table), c("self_share", "total_share"))])
      expect_true(all(is.finite(shares)), info = name)
    }
    expect_no_match(format(describe_profile(x)), "NaN|Inf|NA%")
    expect_no_match(format(x), "NaN|Inf|NA")
  }
})

test_that("a default type without values names the types that have some", {
  x <- found_file("heap-all-freed.pb.gz")
  expect_identical(attr(summary(x), "counted")$samples, 1)
  expect_identical(figures(x, type = "alloc_space"), c(f = "4096 4096 100", g = "0 4096 0"))
  expect_snapshot({
    print(x)
    describe_profile(x)
    summary(x)
    call_tree(x)
  })
  expect_snapshot(error = TRUE, {
    plot(x)
    plot(x, view = "lines")
    annotate_lines(x)
  })
  # A type is not suggested if it cannot be summed, or has values only in samples without a stack.
  none <- profile_of_stacks(c("f", "g"), c(0, 3))
  none$sample_locations <- none$sample_locations[1, ]
  expect_identical(attr(summary(none), "other_types"), character())
  expect_match(format(none), "All values of `samples` are 0.", fixed = TRUE, all = FALSE)
  cancelled <- profile_of_stacks(c("f", "f"), c(3, -3))
  expect_match(format(cancelled), "The values of `samples` of each stack add up to 0.", fixed = TRUE, all = FALSE)
  expect_no_match(format(describe_profile(cancelled)), "NaN|Inf|no samples")
  # The message about missing samples appears only without samples.
  none$sample_locations <- none$sample_locations[0, ]
  expect_match(format(none), "No samples with a stack.", fixed = TRUE, all = FALSE)
})

test_that("boxes of differences are as wide as the absolute values in them", {
  x <- found_file("diff-self-not-total.pb.gz")
  tree <- call_tree(x)
  expect_identical(tree$name, c("h", "g", "f"))
  expect_identical(tree$total, c(10, 0, 5))
  expect_identical(tree$x, c(0, 10, 10))
  expect_identical(tree$width, c(10, 10, 5))
  pdf <- withr::local_tempfile(fileext = ".pdf")
  withr::local_pdf(pdf)
  drawn <- plot(x)
  expect_identical(drawn$name, c("h", "g", "f"))
  expect_identical(plot(found_file("diff-negative-total.pb.gz"), view = "lines")$self, c(5, -7))
  # Without negative values, the width is the total.
  tree <- call_tree(read_pprof(data_path("pprof/go_cpu.pb.gz")))
  expect_identical(tree$width, tree$total)
})

test_that("formats without negative values report them", {
  x <- found_file("diff-self-not-total.pb.gz")
  path <- withr::local_tempfile()
  expect_snapshot(error = TRUE, transform = function(lines) gsub("`[^`]*[/\\\\][^`]*`", "<path>", lines), {
    write_collapsed(x, path)
    readLines(path)
    write_callgrind(x, path)
    write_speedscope(x, path)
    write_rprof(x, path)
    as_profvis(x)
    profile_v1_from_v2(x)
    compare_profiles(x, x)
  })
  # These formats can store negative values.
  for (write in list(write_pprof, write_otlp)) {
    write(x, path)
    expect_identical(figures(read_profile(path)), figures(x))
  }
})

test_that("filters and combinations of differences have the right figures", {
  x <- found_file("diff-self-not-total.pb.gz")
  expect_identical(figures(filter_profile(x, focus = "g")), c(f = "5 5 50", g = "-5 0 -50"))
  both <- combine_profiles(x, x)
  expect_identical(figures(both), c(h = "20 20 50", f = "10 10 25", g = "-10 0 -25"))
  expect_identical(attr(call_tree(both, source_id = 2), "whole"), 20)
})

test_that("shares are relative to the samples of the base, if they are labelled", {
  x <- profile_of_stacks(c("f", "f", "g"), c(30, -20, 5))
  x$.labels <- tibble::tibble(sample_id = 2L, key = "pprof::base", str = "true", num = NA_real_, unit = NA_character_)
  expect_identical(attr(summary(x), "whole"), 20)
  expect_identical(figures(x), c(f = "10 10 50", g = "5 5 25"))
  x$.labels$str <- "false"
  expect_identical(attr(summary(x), "whole"), 55)
})

test_that("a page has what shares of differences are relative to", {
  skip_if_not_installed("jsonlite")
  data <- page_data(profile_page(found_file("diff-self-not-total.pb.gz")))
  expect_identical(data$values[[1]]$whole, 20L)
  expect_null(page_data(profile_page(read_pprof(data_path("pprof/go_cpu.pb.gz"))))$values[[1]]$whole)
})

test_that("databases have the same figures of differences", {
  for (package in c("dplyr", "dbplyr")) skip_if_not_installed(package)
  for_each_database(function(con, schema, connect) {
    x <- found_file("diff-self-not-total.pb.gz")
    store_profiles(x, con, schema = schema)
    store_profiles(x, con, schema = schema)
    wanted <- summary(combine_profiles(x, x))$by_function
    sums <- as.data.frame(summary(tbl_profile(con, schema = schema))$by_function)
    expect_equal(sums[match(wanted$name, sums$name), ], as.data.frame(wanted), ignore_attr = TRUE)
    roll_up_profiles(con, Sys.time() + 1e6, schema = schema)
    again <- summary(read_profile(tbl_profile(con, schema = schema)))$by_function
    expect_equal(as.data.frame(again), as.data.frame(wanted))
  })
})

# ---- Go ----------------------------------------------------------------------------

# The rows of `pprof -top`: flat, its share, and cum, in the unit of the type.
go_top <- function(pprof, type, unit, ...) {
  lines <- pprof(
    "-top", "-nodecount=1000000", "-nodefraction=0", "-edgefraction=0", paste0("-sample_index=", type),
    paste0("-unit=", unit), ...
  )
  lines <- lines[-seq_len(grep("flat%", lines))]
  pattern <- "^ *(-?[0-9.]+)[a-z]* +([0-9.]+)% +\\S+ +(-?[0-9.]+)[a-z]* +\\S+  (.*?)( \\((?:partial-)?inline\\))?$"
  parts <- regmatches(lines, regexec(pattern, lines, perl = TRUE))
  expect_true(all(lengths(parts) == 6))
  column <- function(at) vapply(parts, `[`, "", at)
  data.frame(
    name = column(5), self = as.numeric(column(2)), total = as.numeric(column(4)), share = as.numeric(column(3))
  )
}

test_that("flat and cum of all functions and types agree with go tool pprof", {
  pprof <- go_pprof()
  folder <- withr::local_tempdir()
  at <- function(name) file.path(folder, name)
  # A second CPU profile: some stacks more often, some less, some not at all.
  x <- read_pprof(data_path("pprof/go_cpu.pb.gz"))
  rows <- x$sample_values$sample_id
  x$sample_values$value <- x$sample_values$value * c(0, 1, 2, 3, 1)[rows %% 5 + 1]
  write_pprof(x, at("cpu.pb.gz"))
  heap <- data_path("pprof/go_heap.pb.gz")
  allocs <- data_path("pprof/go_allocs.pb.gz")
  pairs <- list(
    c(heap, allocs), c(allocs, heap), c(data_path("pprof/go_cpu.pb.gz"), at("cpu.pb.gz")),
    c(at("cpu.pb.gz"), data_path("pprof/go_cpu.pb.gz")),
    c(data_path("pprof/go_cpu.pb.gz"), data_path("pprof/go_cpu.pb.gz"))
  )
  units <- c(count = "count", bytes = "B", nanoseconds = "ns")
  compared <- 0
  for (pair in pairs) {
    for (option in c("-diff_base=", "-base=")) {
      base <- paste0(option, pair[[2]])
      pprof("-proto", paste0("-output=", at("diff.pb.gz")), base, pair[[1]])
      diff <- read_pprof(at("diff.pb.gz"))
      types <- attr(summary(diff), "types")
      for (row in seq_len(nrow(types))) {
        type <- types$type[[row]]
        # pprof also removes uninteresting frames.
        ours <- summary(filter_profile(diff, drop = TRUE), type = type)$by_function
        theirs <- go_top(pprof, type, units[[types$unit[[row]]]], at("diff.pb.gz"))
        info <- paste(basename(pair[[1]]), base, type)
        same <- match(theirs$name, ours$name)
        expect_setequal(ours$name, theirs$name)
        expect_identical(ours$self[same], theirs$self, info = info)
        expect_identical(ours$total[same], theirs$total, info = info)
        expect_equal(round(abs(100 * ours$self_share[same]), 2), theirs$share, tolerance = 0.011, info = info)
        expect_identical(abs(ours$self), sort(abs(ours$self), decreasing = TRUE), info = info)
        # Without writing a file in between.
        direct <- go_top(pprof, type, units[[types$unit[[row]]]], base, pair[[1]])
        expect_identical(direct[c("name", "self", "total")], theirs[c("name", "self", "total")], info = info)
        compared <- compared + nrow(theirs)
      }
    }
  }
  expect_gt(compared, 900)
})
