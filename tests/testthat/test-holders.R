# tier: gate
# What holds the memory in use: the paths of holders(), compared with the call tree; and their text.

# The text of lines, with the same ellipsis in all locales.
plain <- function(lines) gsub(default_ellipsis(), "~", lines, fixed = TRUE)

# The paths of a call tree.
paths_in_tree <- function(x) {
  tree <- call_tree(x)
  path <- tree$name
  for (i in which(!is.na(tree$parent_id))) {
    path[[i]] <- paste(path[[tree$parent_id[[i]]]], path[[i]], sep = " > ")
  }
  is_leaf <- !tree$node_id %in% tree$parent_id
  tibble::tibble(path = path, self = tree$self, total = tree$total, is_leaf = is_leaf, parent_id = tree$parent_id)
}

# Checks rows against the tree: figures, and that each large path is explained by a row at it or below it.
expect_holders <- function(x, types = TRUE) {
  found <- holders(x, n = Inf)
  tree <- paths_in_tree(x)
  at <- match(found$held_by, tree$path)
  testthat::expect_false(anyNA(at))
  testthat::expect_identical(anyDuplicated(found$held_by), 0L)
  testthat::expect_equal(found$retained, tree$total[at])
  testthat::expect_equal(found$share, found$retained / attr(found, "sum"))
  testthat::expect_false(is.unsorted(-found$retained))
  own <- vapply(at, function(node) {
    tree$self[[node]] + if (types) sum(tree$total[tree$parent_id %in% node & tree$is_leaf]) else 0
  }, 0)
  testthat::expect_equal(found$self, own)
  large <- tree[tree$total >= 0.005 * attr(found, "sum") & !(types & tree$is_leaf), ]
  explained <- vapply(seq_len(nrow(large)), function(i) {
    below <- startsWith(paste0(found$held_by, " > "), paste0(large$path[[i]], " > "))
    any(below & found$retained >= 0.8 * large$total[[i]])
  }, NA)
  testthat::expect_true(all(explained))
}

# Snapshots with all combinations of a few names, most of which are small.
random_snapshot <- function(paths) {
  steps <- paste0("$", letters[1:4])
  roots <- c("globalenv", "base", "namespace:stats")
  text <- vapply(seq_len(paths), function(i) {
    middle <- sample(steps, sample(1:5, 1), replace = TRUE)
    paste(c(sample(roots, 1), middle, "numeric"), collapse = ";")
  }, "")
  text <- unique(text)
  snapshot(text, floor(stats::rexp(length(text))^4 * 1e5), seq_along(text))
}

test_that("holders agree with the call tree", {
  expect_holders(models_snapshot())
  expect_holders(read_pprof(system.file("samples/proto/go_heap.pb.gz", package = "profile")), types = FALSE)
  withr::local_seed(1)
  for (paths in c(1, 5, 50, 500)) {
    expect_holders(random_snapshot(paths))
  }
})

test_that("a row goes down to the place of the memory", {
  found <- holders(models_snapshot(), n = 4)
  expect_identical(found$held_by, c(
    "globalenv > $fits <list> > [[*]] <lm>",
    "globalenv > $fits <list> > [[*]] <lm> > $terms <terms> > attr \".Environment\" > $raw <data.frame> > [[*]]",
    "globalenv > $fits <list> > [[*]] <lm> > $model <data.frame> > [[*]]",
    "not R's heap"
  ))
  expect_identical(found$retained, c(46004000, 32e6, 12e6, 9e6))
  expect_identical(found$self, c(0, 32e6, 12e6, 9e6))
  expect_identical(found$objects, c(24, 4, 12, 0))
  expect_identical(nrow(holders(models_snapshot(), n = 1)), 1L)
})

test_that("snapshots in files have the same holders", {
  x <- models_snapshot()
  for (extension in c("pb.gz", "otlp")) {
    path <- withr::local_tempfile(fileext = paste0(".", extension))
    write_profile(x, path)
    y <- read_profile(path)
    expect_identical(holders(y), holders(x), label = extension)
  }
})

test_that("holders are printed in lines", {
  x <- models_snapshot()
  expect_snapshot(print(holders(x, n = 5), width = 140))
  for (width in c(20, 40, 60, 80, 200)) {
    lines <- format(holders(x), width = width)
    expect_true(all(nchar(lines, "width") <= max(width, 46)))
    expect_length(lines, 12)
  }
  found <- holders(x)
  expect_identical(format(found[0, ])[[2]], "Nothing is in use.")
  expect_length(format(found[2:3, ]), 4)
  expect_false(any(grepl("<holders>", format(found["held_by"]))))
  expect_s3_class(as_tibble(found), c("tbl_df", "tbl", "data.frame"), exact = TRUE)
  expect_error(format(found, width = 0), class = "profile_error_argument")
})

test_that("long paths lose their middle", {
  path <- "globalenv > $a > $b > $c > $d > $last <data.frame>"
  expect_identical(shorten_path(path, 50), path)
  expect_identical(plain(shorten_path(path, 49)), "globalenv > $a > $b > ~ > $d > $last <data.frame>")
  expect_identical(plain(shorten_path(path, 40)), "globalenv > $a > ~ > $last <data.frame>")
  expect_identical(plain(shorten_path(path, 34)), "globalenv > ~ > $last <data.frame>")
  expect_identical(plain(shorten_path("globalenv > $name_of_a_variable", 20)), "global~ > $name_of_~")
  expect_identical(plain(shorten_path(strrep("a", 30), 10)), "aaaaaaaaa~")
  # The last name remains, since what follows it says little.
  path <- "namespace:plumber $.globals $current_session [shared] > $routes > closure env > $cache > [[*]] > attr \"x\""
  expect_identical(plain(shorten_path(path, 60)), "namespace:plumber $.globals~ > ~ > $cache > [[*]] > attr \"x\"")
  expect_identical(plain(shorten_path(path, 40)), "namespace:~ > ~ > $cache > [[*]] > attr~")
  path <- "globalenv $plot & namespace:ggplot2 $.last_plot [shared] > $layers > [[*]] > $matrix"
  expect_identical(
    plain(shorten_path(path, 68)), "globalenv $plot & namespace:ggplot2 $.last_plot > ~ > $matrix"
  )
  path <- paste0("base > $env > ", strrep("parent env > ", 8), "[[*]]")
  expect_identical(plain(shorten_path(path, 40)), "base > $env > ~ > [[*]]")
  for (width in 12:60) {
    expect_lte(nchar(shorten_path(path, width), "width"), width)
  }
  deep <- paste(rep("$x", 1e5), collapse = " > ")
  expect_lte(nchar(shorten_path(deep, 40), "width"), 40)
})

test_that("control characters in names are harmless", {
  x <- snapshot("globalenv;$\033[31mred\n;numeric", 100)
  expect_match(holders(x)$held_by, "\033[31m", fixed = TRUE)
  lines <- c(format(holders(x)), format(x))
  expect_false(any(grepl("[[:cntrl:]]", lines)))
  expect_match(lines[[3]], "globalenv > $\\033[31mred\\n", fixed = TRUE)
})

test_that("a profile without memory in use has no holders", {
  expect_snapshot(error = TRUE, holders(small_profile()))
  expect_snapshot(error = TRUE, holders(models_snapshot(), n = 0))
  x <- models_snapshot()
  x$sample_values <- x$sample_values[x$sample_values$unit == "bytes", ]
  expect_identical(holders(x)$objects, rep(NA_real_, 10))
  expect_false(any(grepl("objects", format(holders(x)))))
  empty <- snapshot("base;list", 0, 0)
  expect_identical(nrow(holders(empty)), 0L)
  expect_identical(format(holders(empty)), c("<holders> 0 in 0 objects (inuse_space)", "Nothing is in use."))
})

test_that("a snapshot shows its size, its process and its holders", {
  x <- models_snapshot()
  expect_snapshot(print(x, width = 140))
  expect_length(format(x, n = 0), 4)
  expect_length(format(x, n = Inf), 4 + 1 + nrow(holders(x, n = Inf)))
  # Its tables are being edited.
  x$functions <- x$functions[-1, ]
  expect_match(format(x), "Not valid", all = FALSE)
  # Other profiles are shown as before.
  x <- models_snapshot()
  x$sources$source_type <- "pprof"
  expect_match(format(x), "self%", all = FALSE)
})

test_that("frames of snapshots have no package", {
  x <- models_snapshot()
  expect_identical(unique(add_packages(x)$functions$.package), NA_character_)
  expect_identical(unique(call_tree(x)$package), NA_character_)
  expect_identical(call_tree(x, "package")$name, NA_character_)
  expect_identical(as.list(describe_profile(x))$packages$package, NA_character_)
  expect_identical(as.list(describe_profile(x))$next_calls[[1]], "holders(x)")
  expect_false(any(grepl("package", as.list(describe_profile(x))$notes)))
  expect_setequal(summary(x)$by_function$name, x$functions$name)
  # Functions of code in the same profile have one.
  x$locations$.frame_type[x$functions$name == "function"] <- "r"
  x$functions$name[x$functions$name == "function"] <- "stats::lm"
  x$functions$.package <- ifelse(x$functions$name == "stats::lm", "stats", NA)
  expect_setequal(call_tree(x)$package, c("stats", NA))
})

test_that("holders are printed up to a number", {
  x <- holders(models_snapshot())
  expect_gt(nrow(x), 2)
  lines <- format(x, n = 1)
  expect_length(lines, 4)
  expect_identical(lines[[4]], paste("... and", nrow(x) - 1, "more rows"))
  expect_identical(format(x, n = 1000), format(x))
  expect_error(format(x, n = "a"), class = "profile_error_argument")
})
