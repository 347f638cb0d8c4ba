# tier: gate
# Snapshots of the heap in files and databases: the sums of all types that a format can hold are those of the snapshot,
# and each writer reports types that it leaves out.

# A session with objects of the sizes of real ones, and memory without objects. And a real session, which also has names
# with all kinds of characters.
snapshots <- function() {
  all <- list(constructed = models_snapshot(), one = snapshot("globalenv;$x;numeric", 2^40 + 1, 2^33 + 1))
  # snapshot_memory() has the same conditions as other processes.
  if (is_live_platform()) {
    all$real <- snapshot_memory()
  }
  all
}

sums_of <- function(x) {
  values <- x$sample_values
  sums <- tapply(values$value, paste(values$type, values$unit), sum)
  stats::setNames(as.vector(sums), names(sums))
}

# Runs code for each snapshot, with its sums of bytes and objects.
for_each_snapshot <- function(code) {
  all <- snapshots()
  for (name in names(all)) {
    sums <- sums_of(all[[name]])
    testthat::expect_named(sums, c("inuse_objects count", "inuse_space bytes"))
    code(all[[name]], sums[[2]], sums[[1]], name)
  }
}

# Writes a snapshot. Returns the path and the keys of the losses that the warning reports, if there is one.
write_snapshot <- function(x, write, ..., .local_envir = parent.frame()) {
  path <- withr::local_tempfile(.local_envir = .local_envir)
  losses <- character()
  withCallingHandlers(
    write(x, path, ...),
    profile_warning_lossy = function(warning) {
      losses <<- c(losses, conditionMessage(warning))
      rlang::cnd_muffle(warning)
    }
  )
  list(path = path, losses = losses)
}

test_that("formats with several types have all sums of a snapshot, under their names", {
  formats <- list(
    pprof = write_pprof,
    pprof_samples = function(...) write_pprof(..., aggregate = FALSE),
    otlp = function(...) write_otlp(..., format = "protobuf"),
    otlp_json = function(...) write_otlp(..., format = "json"),
    speedscope = write_speedscope,
    speedscope_sums = function(...) write_speedscope(..., aggregate = TRUE)
  )
  for_each_snapshot(function(x, bytes, objects, name) {
    for (format in names(formats)) {
      written <- write_snapshot(x, formats[[format]])
      expect_identical(written$losses, character(), info = c(name, format))
      y <- read_profile(written$path)
      expect_identical(sums_of(y), sums_of(x), info = c(name, format))
      # All of it is memory in use of the same objects, by the same names.
      expect_identical(attr(holders(y), "sum"), bytes, info = c(name, format))
    }
  })
})

test_that("files without types of frames have the same holders", {
  for_each_snapshot(function(x, bytes, objects, name) {
    y <- read_profile(write_snapshot(x, write_pprof)$path)
    expect_null(y$locations[[".frame_type"]])
    expect_identical(holders(y, 100), holders(x, 100), info = name)
  })
})

test_that("callgrind's files have both events", {
  for_each_snapshot(function(x, bytes, objects, name) {
    written <- write_snapshot(x, write_callgrind)
    expect_identical(written$losses, character())
    lines <- readLines(written$path, encoding = "UTF-8")
    expect_identical(grep("^events:", lines, value = TRUE), "events: inuse_space_bytes inuse_objects")
    # The line after a call has its inclusive values.
    is_self <- grepl("^[0-9]", lines) & !startsWith(c("", lines[-length(lines)]), "calls=")
    self <- vapply(strsplit(lines[is_self], " "), as.numeric, numeric(3))
    expect_identical(rowSums(self)[2:3], c(bytes, objects), info = name)
  })
})

test_that("formats with one type have its sum, and report the other one", {
  left_out <- "Sample types of memory are not in the file, as it has one type: 1."
  for_each_snapshot(function(x, bytes, objects, name) {
    written <- write_snapshot(x, write_firefox)
    expect_match(written$losses, left_out, fixed = TRUE)
    expect_match(written$losses, "type the format does not distinguish from another one: .*: 1[.]")
    expect_identical(sums_of(read_firefox(written$path)), c("memory bytes" = bytes), info = name)

    written <- write_snapshot(x, write_collapsed)
    expect_match(written$losses, left_out, fixed = TRUE)
    expect_identical(sums_of(read_collapsed(written$path)), c("samples count" = bytes), info = name)
    # Whoever names a type knows that it is one of several.
    written <- write_snapshot(x, write_collapsed, type = "inuse_objects")
    expect_false(any(grepl(left_out, written$losses, fixed = TRUE)))
    expect_identical(sums_of(read_collapsed(written$path)), c("samples count" = objects), info = name)

    # A type alone is not left out, and no types are left out if their values are 0.
    x$sample_values$value[x$sample_values$unit == "count"] <- 0
    expect_false(any(grepl(left_out, write_snapshot(x, write_collapsed)$losses, fixed = TRUE)))
  })
})

test_that("formats of samples over time refuse snapshots", {
  x <- models_snapshot()
  path <- withr::local_tempfile()
  expect_error(write_rprof(x, path), class = "profile_error_lossy")
  expect_error(write_cpuprofile(x, path), class = "profile_error_lossy")
  expect_error(as_profvis(x), "memory in use", class = "profile_error_unsupported")
  expect_false(file.exists(path))
})

test_that("version 1.0 has the number of objects", {
  x <- models_snapshot()
  old <- profile_v1_from_v2(x)
  expect_identical(sum(old$samples$value), as.integer(sums_of(x)[["inuse_objects count"]]))
})

test_that("pages have both sums", {
  for_each_snapshot(function(x, bytes, objects, name) {
    data <- page_of(x)
    expect_identical(vapply(data$types, `[[`, "", "name"), c("inuse_space", "inuse_objects"))
    found <- vapply(1:2, function(type) sum(page_self(data, type)), 0)
    expect_identical(found, c(bytes, objects), info = name)
  })
})

test_that("databases, tables and dms have both sums", {
  skip_if_not_installed("DBI")
  for_each_database(function(con, schema, connect) {
    all <- snapshots()
    store_profiles(all, con, schema = schema)
    y <- read_profile(tbl_profile(con, schema = schema))
    expect_identical(sums_of(y), Reduce(`+`, lapply(all, sums_of)))
    expect_identical(attr(holders(y), "sum"), sums_of(y)[["inuse_space bytes"]])
  })
})

test_that("dms have both sums", {
  skip_if_not_installed("dm")
  for_each_snapshot(function(x, bytes, objects, name) {
    expect_identical(sums_of(combine_profiles(dm_from_profile(x))), sums_of(x), info = name)
  })
})

test_that("combining, compacting and filtering keep the sums", {
  for_each_snapshot(function(x, bytes, objects, name) {
    expect_identical(sums_of(combine_profiles(x, x)), 2 * sums_of(x), info = name)
    expect_identical(sums_of(compact_profile(x)), sums_of(x), info = name)
    expect_identical(sums_of(filter_profile(x, hide = "^globalenv$")), sums_of(x), info = name)
  })
})
