# tier: fast
# Call trees, compared with trees that are computed without the core.

sample_profile <- function(file) read_rprof(system.file("samples/rprof", file, package = "profile"))

# The tree by function name, computed from the table of frames: a row for each distinct path, with the sum of the
# samples that end there (self), and that end there or continue (total).
tree_of_frames <- function(x, key = function(frames) frames$name) {
  frames <- dplyr::arrange(as_tibble(x), sample_id, dplyr::desc(depth))
  frames$key <- key(frames)
  counts <- x$sample_values[x$sample_values$type == "samples", ]
  frames$value <- counts$value[match(frames$sample_id, counts$sample_id)]
  paths <- dplyr::group_by(frames, sample_id)
  paths <- dplyr::mutate(paths, path = Reduce(\(a, b) paste(a, b, sep = "\r"), key, accumulate = TRUE))
  paths <- dplyr::mutate(paths, last = dplyr::row_number() == dplyr::n(), level = dplyr::row_number())
  paths <- dplyr::group_by(paths, path)
  paths <- dplyr::summarise(paths, self = sum(value[last]), total = sum(value), depth = level[[1]])
  dplyr::arrange(paths, path)
}

paths_of <- function(tree, key = tree$name) {
  path <- key
  for (i in which(!is.na(tree$parent_id))) {
    path[[i]] <- paste(path[[tree$parent_id[[i]]]], path[[i]], sep = "\r")
  }
  path
}

expect_same_tree <- function(tree, expected, key = tree$name) {
  own <- tibble::tibble(path = paths_of(tree, key), self = tree$self, total = tree$total, depth = tree$depth)
  testthat::expect_equal(dplyr::arrange(own, path), expected)
}

test_that("a call tree agrees with the frames", {
  skip_if_not_installed("dplyr")
  files <- c("dplyr_1ms.out", "basic_memline.out", "append_line2.out", "names_line.out", "toplevel_line.out")
  profiles <- c(
    list(sample_profile("1.out"), sample_profile("memory.out")),
    lapply(test_path("data/rprof", files), \(file) suppressWarnings(read_rprof(file)))
  )
  for (x in profiles) {
    expect_same_tree(call_tree(x), tree_of_frames(x))
    by_line <- call_tree(x, "line")
    place <- function(name, file, line) paste(name, file, ifelse(line > 0, line, NA))
    key <- place(by_line$name, dplyr::coalesce(by_line$filename, ""), dplyr::coalesce(by_line$line, 0L))
    expect_same_tree(by_line, tree_of_frames(x, \(frames) place(frames$name, frames$filename, frames$line)), key)
  }
})

test_that("a call tree is in preorder, and nodes are side by side", {
  x <- sample_profile("1.out")
  for (by in c("function", "line", "package")) {
    tree <- call_tree(x, by)
    expect_equal(tree$node_id, seq_len(nrow(tree)))
    expect_true(all(is.na(tree$parent_id) | tree$parent_id < tree$node_id))
    parent_depth <- tree$depth[tree$parent_id]
    expect_equal(tree$depth, ifelse(is.na(parent_depth), 1L, parent_depth + 1L))
    # The parent is the last previous node that is one level higher.
    up <- vapply(seq_len(nrow(tree)), \(i) {
      before <- which(tree$depth[seq_len(i)] == tree$depth[[i]] - 1)
      if (length(before) > 0) max(before) else NA_integer_
    }, 0L)
    expect_equal(tree$parent_id, up)
    children <- tapply(tree$total, factor(tree$parent_id, tree$node_id), sum, default = 0)
    expect_equal(as.vector(children) + tree$self, tree$total)
    # Callees begin where their caller begins, one after the other.
    groups <- split(tree, ifelse(is.na(tree$parent_id), 0L, tree$parent_id))
    for (id in names(groups)) {
      start <- if (id == "0") 0 else tree$x[[as.integer(id)]]
      expect_equal(groups[[id]]$x, start + cumsum(c(0, groups[[id]]$total))[seq_len(nrow(groups[[id]]))])
      expect_false(is.unsorted(-groups[[id]]$total))
    }
  }
})

test_that("the tree has the sums of the summary", {
  for (file in c("1.out", "memory.out")) {
    x <- sample_profile(file)
    for (type in c("samples", if (file == "memory.out") "alloc_size")) {
      summary <- summary(x, type = type)
      tree <- call_tree(x, type = type)
      expect_equal(attributes(tree)[c("type", "unit", "sum", "counted")], attributes(summary)[c("type", "unit", "sum", "counted")])
      self <- tapply(tree$self, tree$name, sum)
      # The tree has no nodes for stacks whose sum is 0.
      known <- summary$by_function$name %in% names(self)
      expect_equal(as.vector(self[summary$by_function$name[known]]), summary$by_function$self[known])
      expect_equal(sum(tree$total[tree$depth == 1]), attr(summary, "sum"))
    }
  }
})

test_that("callers and callees begin with the total of the function", {
  x <- suppressWarnings(read_rprof(test_path("data/rprof/dplyr_1ms.out")))
  by_function <- summary(x)$by_function
  for (name in c("FUN", "lapply", "mutate", "sort.default", "work")) {
    total <- by_function$total[by_function$name == name]
    for (tree in list(callers(x, name), callees(x, name))) {
      expect_equal(tree$name[[1]], name)
      expect_equal(tree$total[[1]], total)
      expect_equal(sum(tree$self), total)
      expect_equal(sum(tree$depth == 1), 1)
    }
  }
  # The callers of the outermost `lapply()`.
  frames <- as_tibble(x)
  outermost <- tapply(frames$depth[frames$name == "lapply"], frames$sample_id[frames$name == "lapply"], max)
  caller <- frames$name[match(
    paste(names(outermost), outermost + 1), paste(frames$sample_id, frames$depth)
  )]
  tree <- callers(x, "lapply")
  direct <- tree[tree$depth %in% 2, ]
  expect_equal(sort(rlang::set_names(direct$total, direct$name)), sort(c(table(caller)))[names(sort(c(table(caller))))], ignore_attr = TRUE)
})

test_that("sources and types are selected", {
  x <- read_rprof(test_path("data/rprof/append_line2.out"))
  ids <- x$sources$source_id
  one <- call_tree(x, source_id = ids[[1]])
  other <- call_tree(x, source_id = ids[[2]])
  both <- call_tree(x)
  expect_equal(attr(one, "sum") + attr(other, "sum"), attr(both, "sum"))
  expect_identical(call_tree(x, source_id = ids), both)
  x <- sample_profile("memory.out")
  expect_equal(attr(call_tree(x, type = "alloc_size"), "unit"), "bytes")
  go <- read_pprof(system.file("samples/proto/go_heap.pb.gz", package = "profile"))
  for (type in attr(summary(go), "types")$type) {
    expect_equal(sum(call_tree(go, type = type)$self), attr(summary(go, type = type), "sum"))
  }
})

test_that("all versions and dm objects have trees", {
  x <- sample_profile("1.out")
  expect_equal(call_tree(profile_v1_from_v2(x)), call_tree(x))
  skip_if_not_installed("dm")
  expect_equal(call_tree(dm_from_profile(x)), call_tree(x))
})

test_that("samples without a stack and functions without a name are no obstacle", {
  empty <- suppressWarnings(read_rprof(test_path("data/rprof/empty_line.out")))
  expect_equal(nrow(call_tree(empty)), 0)
  expect_snapshot(call_tree(empty))
  x <- sample_profile("1.out")
  x$locations$function_id[[1]] <- NA
  x$sample_locations <- x$sample_locations[x$sample_locations$sample_id > 10, ]
  tree <- call_tree(x)
  summary <- summary(x)
  expect_true("<unknown>" %in% tree$name)
  expect_equal(sum(tree$self[tree$name == "<unknown>"]), summary$by_function$self[summary$by_function$name == "<unknown>"])
  expect_equal(attr(tree, "counted"), attr(summary, "counted"))
})

test_that("native and inlined frames are nodes", {
  x <- sample_profile("1.out")
  x$locations$.frame_type <- ifelse(x$locations$location_id %% 2 == 0, "native", "r")
  x$locations$.inlined <- x$locations$location_id %% 4 == 0
  expect_equal(call_tree(x), call_tree(sample_profile("1.out")))
})

test_that("trees are printed as text", {
  x <- sample_profile("1.out")
  expect_snapshot({
    call_tree(x)
    print(call_tree(x), n = 5)
    print(call_tree(x, "line", focus = "^lm$"), min_share = 0.1)
    callees(x, "deparse")
    callers(x, "deparse")
    callers(x, "paste0")
    print(call_tree(read_rprof(test_path("data/rprof/deep_plain.out"))), width = 60)
  }, transform = function(lines) sub("^.*data/rprof", "data/rprof", lines))
})

test_that("the lines of a tree have the figures of its nodes", {
  x <- suppressWarnings(read_rprof(test_path("data/rprof/dplyr_1ms.out")))
  tree <- call_tree(x)
  lines <- format(tree, width = 10000)
  expect_lte(length(lines), 43)
  rows <- lines[grepl("^ [ 0-9]{3}[.]", lines)]
  figure <- function(from, to) as.numeric(gsub(",", "", substr(rows, from, to), fixed = TRUE))
  total <- figure(14, 20)
  expect_equal(figure(1, 6), round(100 * total / attr(tree, "sum"), 1), tolerance = 1e-9)
  # The last name of each line is a node with these figures.
  name <- trimws(sub("^.* > ", "", substring(rows, 22)))
  self <- figure(8, 13)
  for (i in seq_along(rows)) {
    nodes <- tree[tree$name == name[[i]] & tree$total == total[[i]], ]
    expect_true(self[[i]] %in% round(100 * nodes$self / attr(tree, "sum"), 1), info = rows[[i]])
  }
})

test_that("trees of negative values are printed", {
  x <- sample_profile("1.out")
  for (values in list(-1, c(1, -1), c(-5, 1, 3), 0)) {
    x$sample_values$value <- rep_len(values, nrow(x$sample_values))
    for (n in c(1, 5, 1000)) {
      lines <- format(call_tree(x), n = n)
      expect_lte(length(lines), n + 3)
    }
    expect_no_condition(format(describe_profile(x)))
    expect_no_error(format(callers(x, "paste")))
  }
})

test_that("a profile of single frames has no callers", {
  x <- sample_profile("1.out")
  x$sample_locations <- x$sample_locations[x$sample_locations$depth == 1, ]
  x <- compact_profile(x)
  expect_true(all(is.na(call_tree(x)$parent_id)))
  expect_true(all(is.na(as.list(describe_profile(x))$functions$caller)))
  expect_no_error(format(describe_profile(x), width = 5))
})

test_that("code without an R package belongs to its Go package, program or library", {
  go <- read_pprof(data_path("pprof", "go_cpu.pb.gz"))
  functions <- summary(go)$by_function
  functions$file <- go$functions$filename[match(functions$name, go$functions$name)]
  of_name <- sub("^((.*/)?[^./]+)[.].*", "\\1", sub("[[(].*", "", functions$name))
  # Assembly functions of internal packages have no package in their names.
  functions$package <- ifelse(grepl(".", functions$name, fixed = TRUE), of_name, basename(go$.mappings$filename[[1]]))
  expected <- tapply(functions$self, functions$package, sum)
  tree <- call_tree(go, by = "package")
  found <- tapply(tree$self, tree$package, sum)
  expect_equal(found[found != 0], expected[expected != 0])
  expect_setequal(as.list(describe_profile(go, n = 100))$packages$package, names(expected[expected != 0]))
  expect_true(all(c("main", "runtime/pprof", "fmt") %in% tree$package))

  # The module of the innermost frame is in parentheses, in the line after the one of the event.
  lines <- readLines(data_path("perf", "r.txt.gz"))
  modules <- sub(".*[(](.*)[)]$", "\\1", lines[grep("^\\S", lines) + 1])
  modules <- sub("/usr/lib/R/library/stats/libs/stats.so", "stats", modules, fixed = TRUE)
  modules <- basename(modules)
  tree <- call_tree(read_profile(data_path("perf", "r.txt.gz")), by = "package", type = "samples")
  found <- tapply(tree$self, ifelse(is.na(tree$package), "[unknown]", tree$package), sum)
  found <- found[found > 0]
  expect_equal(as.list(found), as.list(table(modules)[names(found)]), ignore_attr = TRUE)
  expect_setequal(names(found), modules)
})

test_that("a tree is a tibble once rows are selected", {
  tree <- call_tree(sample_profile("1.out"))
  expect_s3_class(as_tibble(tree), c("tbl_df", "tbl", "data.frame"), exact = TRUE)
  expect_output(print(tree[tree$self > 0, ]), "A tibble")
})

test_that("arguments are checked", {
  x <- sample_profile("1.out")
  expect_snapshot(error = TRUE, {
    call_tree(x, "files")
    call_tree(x, source_id = 2)
    call_tree(x, type = "bytes")
    call_tree(x, focus = "(")
    call_tree(x, focus = 1)
    call_tree(1)
    callers(x, "PASTE")
    callees(x, 1)
    print(call_tree(x), n = -1)
    print(call_tree(x), min_share = 2)
  })
})
