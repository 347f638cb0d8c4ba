# tier: fast
# The sample types whose meaning is known: summaries, pages, pictures, databases and files treat each row of the core's
# table alike.

types <- data_model()$sample_types

# Samples with these values, one for each, of `f` called by `g`, with values of one type.
profile_of_type <- function(type, unit, value = c(8, 16)) {
  x <- read_rprof(write_file("sample.interval=20000", rep("\"f\" \"g\" ", length(value))))
  x$sample_values <- tibble::tibble(sample_id = x$samples$sample_id, type = type, unit = unit, value = value)
  x
}

test_that("a type is in the table once, and has a role", {
  expect_identical(anyDuplicated(types[c("type", "unit")]), 0L)
  expect_false(anyNA(types))
  expect_setequal(
    types$role,
    c("count", "time", "allocated", "freed", "in use", "peak", "level", "copies", "share", "calls")
  )
  expect_identical(types$summable, types$role != "level")
  # Rows with other types are samples.
  of_rprof <- c("alloc_size", "dealloc_size", "duplications")
  of_samples <- types$role %in% c("count", "time", "level") | types$type %in% of_rprof
  expect_identical(types$recorded, !of_samples)
})

test_that("values are summed everywhere or nowhere", {
  for (i in seq_len(nrow(types))) {
    type <- types[i, ]
    x <- profile_of_type(type$type, type$unit)
    page <- page_data(profile_page(x))
    names <- vapply(page$types, `[[`, "", "name")
    if (type$summable) {
      expect_identical(attr(summary(x, type = type$type), "sum"), 24, label = type$type)
      expect_identical(attr(call_tree(x, type = type$type), "sum"), 24, label = type$type)
      expect_identical(names, type$type)
    } else {
      expect_error(summary(x, type = type$type), "cannot be summed", class = "profile_error_unsupported")
      expect_error(call_tree(x, type = type$type), "cannot be summed", class = "profile_error_unsupported")
      expect_identical(names, character())
    }
    # The same name with another unit is not known, so it is summed.
    other <- profile_of_type(type$type, "other")
    expect_identical(attr(summary(other, type = type$type), "sum"), 24, label = type$type)
  }
})

test_that("databases sum the same types", {
  for (package in c("DBI", "RSQLite", "dplyr", "dbplyr")) {
    skip_if_not_installed(package)
  }
  for (i in seq_len(nrow(types))) {
    type <- types[i, ]
    for (unit in c(type$unit, "other")) {
      con <- DBI::dbConnect(RSQLite::SQLite())
      store_profiles(profile_of_type(type$type, unit), con)
      # Memory in use at each sample is not stored, and other figures of Rprof() only as types of pprof.
      is_of_rprof <- type$type %in% c("duplications", "dealloc_size")
      is_stored <- type$type %in% DBI::dbReadTable(con, "samples")$sample_type
      expect_identical(is_stored, unit == "other" || type$summable && !is_of_rprof, label = type$type)
      if (is_stored) {
        shown <- summary(tbl_profile(con), type = type$type)$by_function
        expect_identical(shown$total, c(24, 24), label = type$type)
      } else {
        expect_error(
          summary(tbl_profile(con), type = type$type), "no sample type", class = "profile_error_unsupported"
        )
      }
      DBI::dbDisconnect(con)
    }
  }
})

test_that("summaries, descriptions and pages show the same type as allocated memory", {
  for (i in seq_len(nrow(types))) {
    type <- types[i, ]
    counted <- profile_of_type("samples", "count", c(1, 1))
    x <- counted
    x$sample_values <- rbind(x$sample_values, profile_of_type(type$type, type$unit)$sample_values)
    if (type$type == "samples") {
      x <- counted
    }
    figures <- summary(x)$by_function
    page <- page_data(profile_page(x))
    if (type$role == "allocated" && type$unit == "bytes") {
      expect_identical(figures$total_alloc, c(24, 24), label = type$type)
      expect_identical(page$types[[page$bytes + 1]]$name, type$type)
      expect_identical(as.list(describe_profile(x))$allocated$bytes, 24, label = type$type)
    } else {
      expect_null(figures[["total_alloc"]], label = type$type)
      expect_identical(page$bytes, -1L, label = type$type)
      expect_null(as.list(describe_profile(x))$allocated, label = type$type)
    }
  }
})

test_that("pictures show levels below the stacks", {
  for (i in seq_len(nrow(types))) {
    type <- types[i, ]
    memory <- memory_over_time(profile_of_type(type$type, type$unit), 1:2, 1)
    expect_identical(memory$bytes, if (type$role == "level") c(8, 16), label = type$type)
  }
})

test_that("aggregated files have the names of other tools, and nothing that has no meaning as a sum", {
  for (i in seq_len(nrow(types))) {
    type <- types[i, ]
    x <- profile_of_type("samples", "count", c(1, 1))
    own <- profile_of_type(type$type, type$unit)$sample_values
    x$sample_values <- rbind(x$sample_values, own[!own$type %in% x$sample_values$type, ])
    path <- withr::local_tempfile(fileext = ".pb.gz")
    written <- function(...) {
      write_pprof(x, path, ...)
      setdiff(unique(read_pprof(path)$sample_values$type), c("samples", "cpu"))
    }
    # The time is computed for all of these.
    own <- setdiff(type$type, c("samples", "cpu"))
    by_rprof <- type$role == "level" || type$type %in% c("duplications", "dealloc_size")
    own[own == "alloc_size"] <- "alloc_space"
    expect_identical(written(), if (by_rprof) character() else own, label = type$type)
    expect_true(all(own %in% written(aggregate = FALSE)), label = type$type)
  }
})
