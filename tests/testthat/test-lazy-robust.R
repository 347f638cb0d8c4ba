# tier: gate
# Lazy columns where their memory could be freed, moved or changed: garbage collections, finalizers, other processes,
# the package unloaded or installed again, changes in place.

skip_on_cran()
lazy <- options(profile.lazy = TRUE)

# ---- Garbage collections -----------------------------------------------------------------

# test-border-torture.R has smaller steps.
test_that("each method works with garbage collections", {
  result <- run_script(test_path("lazy", "methods.R"), 37)
  expect_match(result, "^[0-9]+ results are the same$")
})

test_that("finalizers may use columns that are collected with them", {
  path <- normalizePath(rprof_path("basic_all.out"))
  result <- run_r(c(
    "library(profile)",
    "options(profile.lazy = TRUE)",
    sprintf("path <- '%s'", path),
    "n <- nrow(suppressWarnings(read_rprof(path))$sample_locations)",
    "kept <- list()",
    # Finalizers may also keep columns.
    "finalizer <- function(e) {",
    "  stopifnot(length(e$depth) == n, sum(e$depth) > 0, rev(e$id)[[1]] > 0, nzchar(e$name[[n]]))",
    "  kept[[length(kept) + 1]] <<- e",
    "}",
    # Registered before the finalizer of the column, and after it.
    "make <- function(early) {",
    "  e <- new.env()",
    "  if (early) reg.finalizer(e, finalizer)",
    "  x <- suppressWarnings(read_rprof(path))",
    "  e$depth <- x$sample_locations$depth",
    "  e$id <- x$sample_values$sample_id",
    "  e$name <- as_tibble(x)$name",
    "  if (!early) reg.finalizer(e, finalizer)",
    "  NULL",
    "}",
    "for (i in 1:10) make(TRUE)",
    "for (i in 1:10) make(FALSE)",
    "for (i in 1:5) invisible(gc())",
    "cat(length(kept), length(unique(lapply(kept, function(e) e$depth[1:n]))))"
  ))
  expect_equal(result$output, "20 1")
})

# ---- Other processes ---------------------------------------------------------------------

test_that("children of a fork use, expand and collect columns", {
  skip_on_os("windows")
  x <- fresh()
  y <- ordinary()
  # Columns that the children compute, columns that were expanded before, and both.
  for (expanded in 0:2) {
    if (expanded == 1) x$sample_locations$depth + 1L
    if (expanded == 2) {
      x <- fresh()
      for (i in 1:20) unique(x$sample_locations$location_id)
    }
    found <- parallel::mclapply(1:4, function(i) {
      frames <- x$sample_locations
      before <- list(frames$depth[i], sum(frames$sample_id))
      frames$location_id[[i]] <- 0L
      after <- list(frames$location_id + 0L, rev(x$sample_locations$location_id))
      rm(frames)
      if (i %% 2 == 0) x <- NULL
      gc()
      new <- fresh()
      list(before, after, new$sample_locations, x$sample_values)
    }, mc.cores = 2)
    for (i in 1:4) {
      location_id <- y$sample_locations$location_id
      expect_identical(found[[i]], list(
        list(y$sample_locations$depth[i], sum(y$sample_locations$sample_id)),
        list(replace(location_id, i, 0L), rev(location_id)),
        y$sample_locations,
        if (i %% 2 == 1) y$sample_values
      ))
    }
    expect_identical(x, y)
  }
})

test_that("the other processes of a cluster do not need the package", {
  cluster <- parallel::makePSOCKcluster(1, rscript_args = "--vanilla")
  on.exit(parallel::stopCluster(cluster))
  x <- fresh()
  y <- ordinary()
  use <- function(x) {
    list(isNamespaceLoaded("profile"), x, sum(x$depth), x[3, ], rev(x$location_id), unique(x$sample_id))
  }
  environment(use) <- globalenv()
  frames <- as.data.frame(y$sample_locations)
  expected <- use(frames)
  expected[[1]] <- FALSE
  expect_identical(parallel::clusterCall(cluster, use, as.data.frame(x$sample_locations))[[1]], expected)
  # All tables, and variables.
  parallel::clusterExport(cluster, "x", environment())
  expect_equal(parallel::clusterEvalQ(cluster, sum(unclass(x)$sample_locations$depth))[[1]], sum(frames$depth))
  expect_identical(parallel::clusterEvalQ(cluster, x)[[1]], y)
  expect_false(parallel::clusterEvalQ(cluster, isNamespaceLoaded("profile"))[[1]])
})

# ---- The package unloaded, and installed again -------------------------------------------

# Copies the installed package into a library, as installing it there would.
reinstall <- c(
  "installed <- system.file(package = 'profile')",
  "library <- tempfile()",
  "reinstall <- function(time = Sys.time()) {",
  "  package <- file.path(library, 'profile')",
  "  unlink(package, recursive = TRUE)",
  "  dir.create(library, FALSE)",
  "  file.copy(installed, library, recursive = TRUE)",
  "  for (file in list.files(file.path(package, 'libs'), full.names = TRUE)) Sys.setFileTime(file, time)",
  "}"
)
read_and_keep <- c(
  sprintf("path <- '%s'", normalizePath(rprof_path("basic_all.out"))),
  "options(profile.lazy = TRUE)",
  "read <- function() suppressWarnings(profile::read_rprof(path))",
  "frames <- function(x) unclass(x)$sample_locations"
)

test_that("columns survive unloading and loading the package", {
  skip_on_os("windows")
  result <- run_r(c(
    read_and_keep,
    reinstall,
    "kept <- list()",
    "reinstall()",
    "for (i in 1:4) {",
    "  loadNamespace('profile', lib.loc = library)",
    "  kept[[2 * i - 1]] <- read()",
    "  kept[[2 * i]] <- read()",
    # Some columns are expanded, in different ways.
    "  if (i == 2) frames(kept[[3]])$depth + 1L",
    "  if (i == 3) for (again in 1:20) unique(frames(kept[[5]])$location_id)",
    # Profiles that were read before are used and written.
    "  for (x in kept) stopifnot(identical(profile::validate_profile(x), x))",
    "  for (x in kept) stopifnot(nrow(unclass(profile::combine_profiles(x, kept[[1]]))$samples) > 0)",
    "  unloadNamespace('profile')",
    "  gc()",
    "  for (x in kept) stopifnot(identical(frames(x)[1:9, ], frames(kept[[1]])[1:9, ]))",
    "}",
    "all <- lapply(kept, function(x) lapply(frames(x), function(column) column + 0L))",
    "kept <- NULL",
    "gc()",
    "cat(length(unique(all)), 'value of', length(all))"
  ))
  expect_equal(result$output[[length(result$output)]], "1 value of 8")
})

test_that("a new version is not loaded while the old one is in use", {
  skip_on_os("windows")
  result <- run_r(c(
    read_and_keep,
    reinstall,
    "load <- function() loadNamespace('profile', lib.loc = library)",
    "reinstall()",
    "invisible(load())",
    "x <- read()",
    "x <- NULL",
    "unloadNamespace('profile')",
    # The old version is not in use.
    "reinstall(Sys.time() + 10)",
    "invisible(load())",
    "x <- read()",
    "unloadNamespace('profile')",
    "reinstall(Sys.time() + 20)",
    "error <- tryCatch(load(), error = identity)",
    "cat(class(error), '\n')",
    "cat(conditionMessage(error), '\n')",
    "stopifnot(nrow(frames(x)) == length(rev(frames(x)$depth)))"
  ))
  expect_ran(result)
  expect_snapshot(cat(result$output, sep = "\n"))
})

# ---- Equality ------------------------------------------------------------------------------

test_that("columns are equal to ordinary ones, in both directions, expanded or not", {
  expand <- list(
    not = function(x) x,
    all = function(x) { x + 0L; x },
    borrowed = function(x) { for (i in 1:20) unique(x); x }
  )
  for (way in names(expand)) {
    each_column(function(x, y, column) {
      x <- expand[[way]](x)
      info <- paste(column, way)
      expect_true(identical(x, y), info = info)
      expect_true(identical(y, x), info = info)
      expect_true(identical(x, x), info = info)
      expect_true(isTRUE(all.equal(x, y)), info = info)
      expect_true(isTRUE(all.equal(y, x)), info = info)
      expect_true(all(x == y), info = info)
      expect_true(all(y == x), info = info)
      z <- y
      z[[length(z)]] <- z[[length(z)]] + 1L
      expect_false(identical(x, z), info = info)
      expect_false(identical(z, x), info = info)
      expect_false(isTRUE(all.equal(x, z)) && !is.double(z), info = info)
      expect_equal(which(x != z), length(z), info = info)
    })
    x <- fresh()
    lapply(x$sample_locations, expand[[way]])
    expect_true(identical(x, ordinary()))
    expect_true(identical(ordinary(), x))
    expect_true(all.equal(x, ordinary()))
  }
})

# ---- Changes in place ----------------------------------------------------------------------

test_that("changing a cell leaves all other copies as they are", {
  y <- ordinary()
  changed <- function(table, column, row, value) {
    y[[table]][[column]][[row]] <- value
    y
  }
  for (table in names(large_tables)) {
    for (column in large_tables[[table]]) {
      # For columns that are computed, expanded, and read element by element.
      for (way in 1:3) {
        x <- fresh()
        if (way == 2) x[[table]][[column]] + 1L
        if (way == 3) for (i in 1:20) unique(x[[table]][[column]])
        other <- x
        alone <- x[[table]][[column]]
        in_list <- list(x[[table]], alone)
        x[[table]][[column]][1] <- 5L
        x[[table]][[column]][[2]] <- 6L
        info <- paste(table, column, way)
        expect_identical(x[[table]][[column]], replace(y[[table]][[column]], 1:2, 5:6), info = info)
        expect_identical(other, y, info = info)
        expect_identical(alone, y[[table]][[column]], info = info)
        expect_identical(in_list, list(y[[table]], y[[table]][[column]]), info = info)
        # Changing one does not affect the other.
        other[[table]][[column]][1] <- 9L
        expect_identical(x[[table]][[column]][1:3], c(5L, 6L, y[[table]][[column]][[3]]), info = info)
        expect_identical(alone, y[[table]][[column]], info = info)
      }
    }
  }
})

test_that("a column that nobody else has is changed as any vector is", {
  column <- fresh()$sample_locations$depth
  y <- ordinary()$sample_locations$depth
  for (i in 1:5) column[i] <- -i
  expect_identical(column, replace(y, 1:5, -(1:5)))
  expect_identical(column[4:7], c(-4L, -5L, y[6:7]))
  expect_equal(sum(column), sum(y) - sum(y[1:5]) - 15)
  expect_equal(min(column), -5)
  expect_identical(anyNA(replace(column, 3, NA)), TRUE)
  column[[7]] <- NA
  expect_true(anyNA(column))
  expect_equal(sum(column), NA_integer_)
  expect_equal(sum(is.na(sort(column, na.last = TRUE))), 1)
})

test_that("data.table changes its own tables", {
  skip_if_not_installed("data.table")
  y <- ordinary()
  n <- nrow(y$sample_locations)

  # `:=` by row, by group, and to a new column. The table that is copied stays.
  x <- fresh()
  frames <- data.table::as.data.table(x$sample_locations)
  expected <- as.data.frame(y$sample_locations)
  data.table::setkeyv(frames, "location_id")
  expect_identical(data.table::key(frames), "location_id")
  expected <- expected[order(expected$location_id), ]
  rownames(expected) <- NULL
  expect_equal(as.data.frame(frames), expected)
  expect_identical(x, y)

  # setDT() makes one of the table itself.
  x <- fresh()
  frames <- x$sample_locations
  copy <- fresh()$sample_locations
  data.table::setDT(frames)
  data.table::set(frames, 1:3, "depth", 7L)
  data.table::set(frames, NULL, "twice", 2L * frames$depth)
  data.table::setkeyv(frames, c("location_id", "depth"))
  expected <- as.data.frame(y$sample_locations)
  expected$depth[1:3] <- 7L
  expected$twice <- 2L * expected$depth
  expected <- expected[order(expected$location_id, expected$depth), ]
  rownames(expected) <- NULL
  expect_equal(as.data.frame(frames), expected)
  expect_identical(copy, y$sample_locations)

  # In the form that users write.
  script <- quote({
    frames <- as.data.table(x$sample_locations)
    frames[depth == 1L, depth := 9L]
    frames[, n := .N, by = sample_id]
    setindex(frames, location_id)
    joined <- frames[as.data.table(x$locations), on = "location_id"]
    setkey(frames, location_id)
    list(as.data.frame(frames), nrow(joined), sum(frames$depth), frames[.N], frames[list(1L), .N])
  })
  of <- function(x) eval(script, list2env(list(x = x), parent = asNamespace("data.table")))
  x <- fresh()
  expect_equal(of(x), of(y), ignore_attr = TRUE)
  expect_identical(x, y)
})

options(lazy)
