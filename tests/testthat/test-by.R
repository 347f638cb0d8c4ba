# tier: gate
# `by = `: tables and trees by file and package, which are computed here from all frames, and the words that verbs know.

# The frames of a profile, innermost first, with their group; `value`: of their sample.
grouped_frames <- function(x, group, value) {
  frames <- as_tibble(x)
  frames$group <- group(frames)
  frames$value <- value[frames$sample_id]
  frames[order(frames$sample_id, frames$depth), ]
}

# The sums of values, by group.
sums_of <- function(frames, groups) {
  vapply(groups, function(group) sum(frames$value[frames$group %in% group], na.rm = TRUE), 0, USE.NAMES = FALSE)
}

expect_figures <- function(found, frames, suffix = "") {
  self <- frames[!duplicated(frames$sample_id), ]
  total <- frames[!duplicated(frames[c("sample_id", "group")]), ]
  expect_equal(found[[paste0("self", suffix)]], sums_of(self, found[[1]]))
  expect_equal(found[[paste0("total", suffix)]], sums_of(total, found[[1]]))
}

values_of <- function(x, type) {
  rows <- x$sample_values[x$sample_values$type == type, ]
  rows$value[match(x$samples$sample_id, rows$sample_id)]
}

file_of_frames <- function(frames) ifelse(frames$filename %in% "", NA, frames$filename)

# Functions of several packages may have the same name.
package_of_frames <- function(x) {
  x <- add_packages(x)
  function_id <- x$locations$function_id[match(x$sample_locations$location_id, x$locations$location_id)]
  packages <- x$functions$.package[match(function_id, x$functions$function_id)]
  all <- as_tibble(x)
  function(frames) packages[match(paste(frames$sample_id, frames$depth), paste(all$sample_id, all$depth))]
}

# Five samples in two files, with code without a file between them and around them.
profile_of_files <- function() {
  path <- withr::local_tempfile(lines = c("sample.interval=10000", paste0("\"", c(
    "f\" \"g\" \"main", "g\" \"eval\" \"f\" \"f\" \"main", "eval\" \"g", "f\" \"f", "main"
  ), "\" ")))
  x <- read_rprof(path)
  x$functions$filename <- c(f = "a.R", g = "b.R", main = "a.R", eval = "")[x$functions$name]
  x
}

with_label_of_name <- function(x, key) {
  x$.labels <- tibble::tibble(
    sample_id = x$samples$sample_id, key = key, str = rep_len(c("one", "two"), nrow(x$samples)), num = NA_real_,
    unit = NA_character_
  )
  x
}

# ---- Tables --------------------------------------------------------------------------

test_that("summary(by = \"file\") counts the innermost file of each sample, and each of its files", {
  expect_identical(as.list(summary(profile_of_files(), by = "file")), list(
    file = c("a.R", "b.R", NA), self = c(3, 1, 1), total = c(4, 3, 2), self_share = c(3, 1, 1) / 5,
    total_share = c(4, 3, 2) / 5, self_time = c(3, 1, 1) / 100, total_time = c(4, 3, 2) / 100
  ))
})

test_that("summary(by = ) has the figures of files and packages", {
  paths <- rprof_path(c("basic_line.out", "append_line2.out", "dplyr_1ms.out"))
  several <- 0
  for (path in paths) {
    x <- suppressWarnings(read_rprof(path))
    value <- values_of(x, "samples")
    whole <- summary(x)
    groups <- list(file = file_of_frames, package = package_of_frames(x))
    for (by in names(groups)) {
      found <- summary(x, by = by)
      frames <- grouped_frames(x, groups[[by]], value)
      expect_identical(names(found), c(by, names(whole$by_function)[-1]))
      expect_setequal(found[[by]], frames$group)
      expect_figures(found, frames)
      expect_false(is.unsorted(-found$self))
      expect_equal(sum(found$self), attr(whole, "sum"))
      expect_equal(sum(found$self_time), attr(whole, "time"))
      expect_equal(found$total_share, found$total / attr(whole, "whole"))
      several <- several + (nrow(found) > 2)
    }
  }
  expect_gt(several, 2)
})

test_that("allocations in a garbage collection belong to the file and the package of its caller", {
  x <- read_rprof(system.file("samples/rprof/memory.out", package = "profile"))
  frames <- as_tibble(x)
  for (id in unique(frames$sample_id)) {
    own <- which(frames$sample_id == id)
    collection <- max(0, frames$depth[own][frames$name[own] == "<GC>"])
    if (collection < length(own)) frames <- frames[!(frames$sample_id == id & frames$depth <= collection), ]
  }
  expect_lt(nrow(frames), nrow(as_tibble(x)))
  frames <- frames[order(frames$sample_id, frames$depth), ]
  frames$value <- values_of(x, "alloc_size")[frames$sample_id]
  groups <- list(file = file_of_frames, package = package_of_frames(x))
  for (by in names(groups)) {
    frames$group <- groups[[by]](frames)
    expect_figures(summary(x, by = by, type = "alloc_size"), frames)
    expect_figures(summary(x, by = by), frames, "_alloc")
  }
})

test_that("summary(by = ) returns the tables of functions and lines", {
  x <- read_rprof(rprof_path("basic_line.out"))
  expect_identical(summary(x, by = "function"), summary(x)$by_function)
  expect_identical(summary(x, by = "line"), summary(x)$by_line)
})

test_that("packages that were determined before are used", {
  x <- profile_of_files()
  x$functions$.package <- c(f = "one", g = "two", main = NA, eval = "base")[x$functions$name]
  found <- summary(x, by = "package")
  expect_identical(found$package, c("one", NA, "two", "base"))
  expect_identical(found$self, c(2, 1, 1, 1))
  expect_identical(found$total, c(3, 3, 3, 2))
})

# ---- Trees ---------------------------------------------------------------------------

# The total of each path of groups, of which a call within a group is no step.
totals_of_paths <- function(frames) {
  totals <- c()
  for (own in split(frames, frames$sample_id)) {
    steps <- rle(ifelse(is.na(rev(own$group)), "?", rev(own$group)))$values
    for (path in Reduce(function(a, b) paste(a, b, sep = " > "), steps, accumulate = TRUE)) {
      totals[[path]] <- (if (is.null(totals[[path]])) 0 else totals[[path]]) + own$value[[1]]
    }
  }
  totals
}

test_that("a call tree by file has a node for each path of files", {
  tree <- call_tree(profile_of_files(), by = "file")
  expect_identical(tree$name, c("a.R", NA, "b.R", "b.R", "a.R", "b.R", NA))
  expect_identical(tree$total, c(4, 1, 1, 1, 1, 1, 1))
  expect_identical(tree$filename, tree$name)
  for (path in rprof_path(c("basic_line.out", "dplyr_1ms.out"))) {
    x <- suppressWarnings(read_rprof(path))
    tree <- call_tree(x, by = "file")
    expected <- totals_of_paths(grouped_frames(x, file_of_frames, values_of(x, "samples")))
    name <- ifelse(is.na(tree$name), "?", tree$name)
    for (row in which(tree$depth > 1)) name[[row]] <- paste(name[[tree$parent_id[[row]]]], name[[row]], sep = " > ")
    expect_equal(rlang::set_names(tree$total, name)[names(expected)], unlist(expected))
    expect_length(name, length(expected))
    figures <- summary(x, by = "file")
    expect_equal(sums_of(data.frame(group = tree$name, value = tree$self), figures$file), figures$self)
  }
})

test_that("callers, callees and comparisons know files", {
  x <- profile_of_files()
  tree <- callers(x, "g", by = "file")
  expect_identical(tree$name[[1]], "b.R")
  expect_identical(tree$total[[1]], 3)
  expect_identical(callees(x, "g", by = "file")$name, c("b.R", NA, "a.R"))
  compared <- compare_profiles(x, x, by = "file", what = "self")
  expect_setequal(compared$name, c("a.R", "b.R", NA))
  expect_equal(compared$base[match(c("a.R", "b.R", NA), compared$name)], c(3, 1, 1) / 100, tolerance = 1e-6)
})

# ---- Words ---------------------------------------------------------------------------

test_that("a label with the name of a word comes first", {
  x <- profile_of_files()
  for (key in c("file", "package", "function", "line", "process", "run")) {
    own <- with_label_of_name(x, key)
    figures <- summary(own, by = key)
    expect_identical(figures[[1]], c("one", "two"))
    expect_identical(figures$total, c(3, 2))
    tree <- call_tree(own, by = key)
    expect_identical(tree$name[tree$depth == 1], c("one", "two"))
    # A value has a line of its own.
    expect_match(format(tree)[[3]], " one$")
    expect_identical(call_tree(own), call_tree(x))
  }
  # Verbs that do not group by labels.
  own <- with_label_of_name(x, "file")
  expect_identical(callers(own, "g", by = "file"), callers(x, "g", by = "file"))
})

test_that("other words are errors, which say what there is", {
  x <- profile_of_files()
  expect_snapshot(error = TRUE, {
    summary(x, by = "files")
    summary(with_label_of_name(x, "route"), by = "rout")
    summary(x, by = "process")
    summary(x, by = c("file", "line"))
    call_tree(x, by = "packages")
    callers(x, "g", by = "run")
    compare_profiles(x, x, by = "process")
    holders(x, by = "file")
  })
  x$samples$source_id <- "1"
  expect_error(summary(x, by = "process"), class = "profile_error_invalid")
  expect_error(call_tree(x, by = "process"), class = "profile_error_invalid")
})
