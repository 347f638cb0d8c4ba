# tier: gate
# Columns that are computed when they are needed: everything that R does with them has the result of ordinary columns.

skip_on_cran()
lazy <- options(profile.lazy = TRUE)

test_that("columns of readers are computed, with the option only", {
  each_column(function(x, y, column) {
    expect_true(is_computed(x), info = column)
    expect_false(is_computed(y), info = column)
    expect_identical(x, y, info = column)
  })
  expect_snapshot(error = TRUE, {
    withr::with_options(list(profile.lazy = "no"), fresh())
  })
})

test_that("columns behave like ordinary columns in all functions of R", {
  n <- nrow(ordinary()$sample_locations)
  set.seed(1)
  some <- sample.int(n, 500, replace = TRUE)
  uses <- list(
    elements = function(x) c(x[[1]], x[[7]], x[[length(x)]]),
    length = length,
    by_number = function(x) x[c(some, 3, 3, 1)],
    by_double = function(x) x[c(1, 2.9, 5e9, NaN, NA)],
    by_na = function(x) x[c(1L, NA, 2L, .Machine$integer.max)],
    by_logical = function(x) x[c(TRUE, NA, FALSE)],
    by_negative = function(x) x[-c(1, 5)],
    by_none = function(x) x[0],
    by_range = function(x) x[5:40],
    head = function(x) list(utils::head(x, 3), utils::head(x, -3), utils::tail(x, 9)),
    rev = rev,
    sum = function(x) suppressWarnings(sum(x)),
    mean = mean,
    range = range,
    which_max = which.max,
    cumsum = function(x) suppressWarnings(cumsum(x)),
    sort = sort,
    order = order,
    order_down = function(x) order(x, decreasing = TRUE),
    is_unsorted = is.unsorted,
    any_na = anyNA,
    is_na = is.na,
    unique = unique,
    duplicated = duplicated,
    match = function(x) match(c(1:50, NA), x),
    in_it = function(x) x %in% c(2L, 5L),
    table = function(x) table(values = x),
    tabulate = function(x) tabulate(x, 300),
    factor = factor,
    split = function(x) split(x, x %% 3L),
    sums = function(x) tapply(x, x %% 3, sum),
    arithmetic = function(x) list(x + 1L, -x, x / 2, x == 2L, x %% 2L),
    cast = function(x) list(as.double(x), as.character(x), as.logical(x)),
    paste = paste,
    bind = function(x) list(c(x, x), cbind(x, x), rbind(x, x), append(x, 1, 2)),
    rep = function(x) rep(x, 2),
    apply = function(x) vapply(x, identity, x[[1]]),
    loop = function(x) { sum <- 0; for (value in x) sum <- sum + value; sum },
    attributes = function(x) structure(x, class = "a", names = seq_along(x)),
    matrix = function(x) matrix(x[1:100], 10),
    bytes = function(x) serialize(x, NULL, ascii = TRUE, version = 2),
    unserialized = function(x) unserialize(serialize(x, NULL)),
    size = function(x) as.numeric(utils::object.size(x)),
    digits = function(x) utils::capture.output(utils::str(x), print(utils::head(x))),
    quantile = stats::quantile,
    frame = function(x) data.frame(x = x, y = rev(x)),
    merged = function(x) merge(data.frame(x = unique(x)), data.frame(x = x[1:50], i = 1:50)),
    sliced = function(x) vctrs::vec_slice(x, some[some <= length(x)]),
    sliced_by_logical = function(x) vctrs::vec_slice(x, x %% 2L == 0L),
    grouped = function(x) vctrs::vec_group_id(x),
    sorted = function(x) vctrs::vec_order(x),
    matched = function(x) vctrs::vec_match(1:9 + 0L, as.integer(x)),
    bound = function(x) vctrs::vec_c(x, x)
  )
  each_column(function(x, y, column) {
    for (use in names(uses)) {
      expect_identical(uses[[use]](x), uses[[use]](y), info = paste(use, "of", column))
    }
  })
  # Each operation is the first one for a column, so that the others do not affect it.
  for (use in names(uses)) {
    each_column(function(x, y, column) {
      found <- uses[[use]](x)
      if (!identical(found, uses[[use]](y)) || !identical(x, y)) {
        fail(paste(use, "of", column))
      }
    })
  }
})

test_that("texts of labels are computed if all samples have the same", {
  head <- sprintf("R 7/%d %d.5: 10 cpu-clock: ", 1:5000, 1:5000)
  sample <- c("\t             7f0 f (m)", "")
  file <- withr::local_tempfile(lines = as.vector(rbind(head, sample[[1]], sample[[2]])))
  computed <- read_perf_script(file)
  labels <- computed$.labels
  expect_true(all(vapply(labels[c("key", "str", "unit")], is_computed, TRUE)))
  plain <- withr::with_options(list(profile.lazy = FALSE), read_perf_script(file))
  expect_false(any(vapply(plain$.labels, is_computed, TRUE)))
  for (column in names(labels)) {
    expect_identical(labels[[column]][seq_len(20000)], plain$.labels[[column]], label = column)
  }
  expect_identical(labels$str[1:5], c("R", NA, NA, NA, "R"))
  expect_identical(labels$unit[c(4, 20000)], c("nanoseconds", "nanoseconds"))
  again <- withr::local_tempfile(fileext = ".pb.gz")
  write_pprof(computed, again, aggregate = FALSE)
  expect_equal(read_pprof(again)$.labels, plain$.labels)

  # One sample is different.
  writeLines(c(sub("^R", "S", head[[1]]), sample, readLines(file)), file)
  labels <- read_perf_script(file)$.labels
  expect_false(is_computed(labels$str))
  expect_true(is_computed(labels$key))
})

test_that("tables can be used with dplyr and data.table", {
  verbs <- list()
  if (rlang::is_installed("dplyr")) {
    verbs <- list(
      count = function(x) dplyr::count(x$sample_locations, location_id, sort = TRUE),
      filter = function(x) dplyr::filter(x$sample_locations, depth == 1L, location_id > 3L),
      slice = function(x) dplyr::slice(x$sample_locations, c(9, 3, 100)),
      arrange = function(x) dplyr::arrange(x$sample_locations, location_id, -depth),
      mutate = function(x) dplyr::mutate(x$sample_locations, twice = 2L * depth, depth = NULL),
      group = function(x) {
        dplyr::summarise(dplyr::group_by(x$sample_locations, sample_id), n = dplyr::n(), m = max(depth))
      },
      join = function(x) dplyr::inner_join(x$sample_locations, x$locations, by = "location_id"),
      join_values = function(x) dplyr::left_join(x$samples, x$sample_values, by = "sample_id", multiple = "all"),
      distinct = function(x) dplyr::distinct(x$sample_locations, depth, location_id),
      bind = function(x) dplyr::bind_rows(x$sample_locations, x$sample_locations),
      pull = function(x) dplyr::pull(x$samples, source_id)
    )
    if (utils::packageVersion("dplyr") < "1.1.0") {
      verbs$join_values <- function(x) dplyr::left_join(x$samples, x$sample_values, by = "sample_id")
    }
  }
  if (rlang::is_installed("data.table")) {
    verbs$as_table <- function(x) data.table::as.data.table(x$sample_locations)
    verbs$in_place <- function(x) {
      frames <- data.table::as.data.table(x$sample_locations)
      data.table::set(frames, 5L, "depth", 77L)
      as.data.frame(frames)
    }
    verbs$ordered <- function(x) {
      frames <- data.table::as.data.table(x$sample_locations)
      data.table::setorderv(frames, c("location_id", "sample_id"), c(-1L, 1L))
      as.data.frame(frames)
    }
  }
  for (verb in names(verbs)) {
    x <- fresh()
    y <- ordinary()
    expect_equal(verbs[[verb]](x), verbs[[verb]](y), info = verb)
    expect_identical(x, y, info = verb)
  }
})

test_that("changing a copy leaves the original as it is", {
  x <- fresh()
  y <- ordinary()
  copy <- x
  copy$sample_locations$depth[[3]] <- 99L
  copy$samples$source_id[[1]] <- 7L
  copy$samples$sample_id[2:3] <- 0L
  expect_true(is_computed(x$sample_locations$depth))
  expect_identical(x, y)
  expect_identical(copy$sample_locations$depth[1:4], replace(y$sample_locations$depth[1:4], 3, 99L))
  depth <- x$sample_locations$depth
  depth[] <- 0L
  names(depth) <- seq_along(depth)
  expect_identical(x, y)
})

test_that("files and other processes get ordinary vectors", {
  x <- fresh()
  y <- ordinary()
  path <- withr::local_tempfile()
  for (compress in c(TRUE, FALSE)) {
    saveRDS(x, path, compress = compress)
    expect_identical(readRDS(path), y)
  }
  expect_identical(unserialize(serialize(x, NULL)), y)
  expect_identical(unserialize(serialize(x, NULL, xdr = FALSE)), y)
  expect_false(is_computed(readRDS(path)$sample_locations$depth))
  # In a process without the package.
  script <- write_file(
    sprintf("x <- readRDS('%s')", path),
    "frames <- unclass(x)$sample_locations",
    "cat(isNamespaceLoaded('profile'), sum(frames$depth), length(frames$location_id), range(frames$sample_id))"
  )
  output <- system2(file.path(R.home("bin"), "Rscript"), c("--vanilla", script), stdout = TRUE)
  frames <- y$sample_locations
  expected <- paste("FALSE", sum(frames$depth), nrow(frames), 1, max(frames$sample_id))
  expect_equal(output, expected)
})

test_that("a process that was forked has the columns", {
  skip_on_os("windows")
  x <- fresh()
  half <- x$sample_locations$location_id
  jobs <- list(
    parallel::mcparallel(list(sum(half), rev(x$sample_locations$depth))),
    parallel::mcparallel({ gc(); validate_profile(x)$samples })
  )
  found <- unname(parallel::mccollect(jobs))
  y <- ordinary()
  expect_equal(found[[1]], list(sum(y$sample_locations$location_id), rev(y$sample_locations$depth)))
  expect_identical(found[[2]], y$samples)
  expect_identical(x, y)
})

test_that("garbage collections at any time change no column", {
  path <- write_file("sample.interval=10000", "\"f\" \"g\" ", "\"h\" \"g\" ", "\"f\" \"g\" ")
  small <- read_rprof(path)
  expected <- withr::with_options(list(profile.lazy = FALSE), read_rprof(path))
  gctorture2(3)
  frames <- small$sample_locations
  used <- list(
    rev(frames$depth), frames$location_id[c(1, NA)], unique(frames$sample_id), sum(frames$depth),
    max(frames$sample_id), serialize(frames$location_id, NULL, version = 2), small$samples$source_id + 1L
  )
  again <- read_rprof(path)
  gctorture2(0)
  y <- expected$sample_locations
  expect_identical(used, list(
    rev(y$depth), y$location_id[c(1, NA)], unique(y$sample_id), sum(y$depth),
    max(y$sample_id), serialize(y$location_id, NULL, version = 2), expected$samples$source_id + 1L
  ))
  expect_identical(again, expected)
})

test_that("functions of the package compute no column", {
  x <- fresh()
  validate_profile(x)
  summary(x)
  format(x)
  path <- withr::local_tempfile()
  write_rprof(x, path)
  write_pprof(x, path)
  write_otlp(x, path)
  profile_v1_from_v2(x)
  as_tibble(x)
  both <- combine_profiles(x, x)
  compact_profile(x)
  for (table in names(large_tables)) {
    for (column in large_tables[[table]]) {
      expect_true(is_computed(x[[table]][[column]]), info = column)
    }
  }
  for (column in large_tables$sample_locations) {
    expect_true(is_computed(both$sample_locations[[column]]))
  }
  filter_profile(x, focus = "f")
  expect_true(all(vapply(x$sample_locations, is_computed, NA)))
  expect_identical(both, combine_profiles(ordinary(), ordinary()))
})

test_that("columns stay readable when the package is unloaded, and need nothing of it to be freed", {
  path <- normalizePath(rprof_path("basic_all.out"))
  result <- run_r(c(
    "options(profile.lazy = TRUE)",
    sprintf("path <- '%s'", path),
    "kept <- suppressWarnings(profile::read_rprof(path))",
    "for (i in 1:4) {",
    "  dropped <- suppressWarnings(profile::read_rprof(path))",
    "  unloadNamespace('profile')",
    "  stopifnot(!'profile' %in% names(getLoadedDLLs()))",
    "  stopifnot(sum(kept$sample_locations$sample_id[1:9]) > 0)",
    "  rm(dropped); invisible(gc())",
    "}",
    "new <- suppressWarnings(profile::read_rprof(path))",
    "stopifnot(identical(unclass(kept)$sample_locations, unclass(new)$sample_locations))",
    # The wrong way: without the function that must be called before.
    "dll <- getLoadedDLLs()[['profile']][['path']]",
    "dyn.unload(dll)",
    "end <- tryCatch(length(new$samples$source_id), error = function(e) 'an error')",
    "rm(new, kept); invisible(gc())",
    "cat(end)"
  ))
  expect_equal(result$output, "an error")
})

test_that("memory that R does not see is collected", {
  skip_on_os(c("windows", "mac"))
  # 40 MB of stacks, each of them distinct, read many times.
  result <- run_r(c(
    "library(profile)",
    "options(profile.lazy = TRUE)",
    "x <- profile:::data_model()$required",
    "n <- 2e5L",
    "x$meta <- tibble::tibble(key = 'version', value = '2.0')",
    "x$sources <- tibble::tibble(source_id = 1L, source_uri = NA_character_, source_type = 'manual', source_timestamp = NA_real_)",
    "x$functions <- tibble::tibble(function_id = 1L, name = 'f', system_name = 'f', filename = '', start_line = 0L)",
    "x$locations <- tibble::tibble(location_id = 1:100, function_id = 1L, line = 0L)",
    "x$samples <- tibble::tibble(sample_id = 1:n, source_id = 1L)",
    "x$sample_values <- tibble::tibble(sample_id = 1:n, type = 'samples', unit = 'count', value = 1)",
    "set.seed(1)",
    "x$sample_locations <- tibble::tibble(sample_id = rep(1:n, each = 30L), depth = rep(1:30, n), location_id = sample.int(100L, 30L * n, TRUE))",
    "class(x) <- c('profile_v2', 'profile_data')",
    "path <- tempfile(); write_pprof(x, path, aggregate = FALSE); rm(x); invisible(gc())",
    "kilobytes <- function() as.numeric(gsub('[^0-9]', '', grep('^VmRSS', readLines('/proc/self/status'), value = TRUE)))",
    "before <- kilobytes()",
    "for (i in 1:40) y <- read_pprof(path)",
    "cat((kilobytes() - before) / 1024 < 700)"
  ))
  expect_equal(result$output, "TRUE")
})

options(lazy)
