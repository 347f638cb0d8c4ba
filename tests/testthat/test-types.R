# tier: gate
# Columns of all types of R: each is converted correctly by every function, or rejected by every function with the same
# class.

figures <- function(x) {
  path <- withr::local_tempfile()
  list(
    summary = unclass(summary(x)),
    tibble = as_tibble(x),
    rprof = {
      suppressWarnings(write_rprof(x, path), classes = "profile_warning")
      file_bytes(path)
    },
    pprof = {
      write_pprof(x, path)
      read_pprof(path, source_uri = NA)
    },
    otlp = {
      write_otlp(x, path)
      file_bytes(path)
    },
    collapsed = {
      write_collapsed(x, path)
      file_bytes(path)
    },
    callgrind = {
      write_callgrind(x, path)
      file_bytes(path)
    },
    profvis = as_profvis(x),
    page = profile_page(x)$html,
    combined = combine_profiles(x),
    compact = compact_profile(x),
    filtered = filter_profile(x, focus = "f"),
    first = profile_v1_from_v2(x),
    tree = call_tree(x),
    description = as.list(describe_profile(x)),
    compared = compare_profiles(x, x),
    packages = add_packages(x),
    format = format(x)
  )
}

# The class of each function's result.
answers <- function(x) {
  functions <- functions_of_profiles(withr::local_tempfile())
  vapply(functions, function(f) {
    tryCatch(
      {
        f(x)
        "taken"
      },
      error = function(e) class(e)[[1]]
    )
  }, "")
}

typed_profile <- function() {
  x <- small_profile()
  x$sources$source_timestamp <- 1700000000
  x$samples$.timestamp <- 1700000000 + x$samples$sample_id
  x$locations$.inlined <- rep_len(c(FALSE, TRUE, NA), nrow(x$locations))
  x$functions$.has_system_name <- rep_len(c(TRUE, FALSE), nrow(x$functions))
  x$.labels <- tibble::tibble(
    sample_id = 1L, key = "size", str = NA_character_, num = 4096, unit = "bytes"
  )
  x
}

as_integer64 <- function(x) {
  # The bits of 64-bit integers, in the form of bit64.
  x <- as.double(x)
  high <- floor(x / 2^32)
  low <- x - high * 2^32
  low <- ifelse(low >= 2^31, low - 2^32, low)
  low[is.na(x)] <- 0
  bits <- rbind(as.integer(ifelse(low == -2^31, NA, low)), as.integer(ifelse(is.na(x), NA, high)))
  if (.Platform$endian == "big") {
    bits <- bits[2:1, ]
  }
  structure(readBin(writeBin(as.vector(bits), raw()), "double", length(x)), class = "integer64")
}

test_that("integer64 here equals bit64's", {
  skip_if_not_installed("bit64")
  numbers <- c(0, 1, -1, 2^31, 2^32 - 1, -2^40 - 5, 2^53, NA)
  expect_identical(as_integer64(numbers), bit64::as.integer64(numbers))
})

test_that("all functions accept types that are equivalent to a column's own", {
  x <- typed_profile()
  expected <- figures(x)
  taken <- list(
    integer64 = list(
      change = as_integer64,
      columns = list(
        c("samples", "sample_id"), c("samples", "source_id"), c("sample_values", "value"),
        c("sample_values", "sample_id"), c("locations", "line"), c("locations", "function_id"),
        c("functions", "start_line"), c("sources", "source_timestamp"), c("sources", ".period"),
        c(".labels", "num"), c(".labels", "sample_id"), c("samples", ".timestamp"),
        c("sample_locations", "depth"), c(".files", "number"), c("locations", ".inlined")
      )
    ),
    POSIXct = list(
      change = function(x) as.POSIXct(x, origin = "1970-01-01", tz = "UTC"),
      columns = list(c("sources", "source_timestamp"), c("samples", ".timestamp"))
    ),
    POSIXlt = list(
      # A tibble converts it, but not with I().
      change = function(x) I(as.POSIXlt(x, origin = "1970-01-01", tz = "America/New_York")),
      columns = list(c("sources", "source_timestamp"), c("samples", ".timestamp"))
    ),
    text = list(
      change = function(x) structure(x, class = c("fs_path", "character")),
      columns = list(c("functions", "filename"), c("functions", "name"), c("meta", "value"))
    ),
    # Databases without a logical type return numbers.
    flag = list(
      change = as.integer, columns = list(c("locations", ".inlined"), c("functions", ".has_system_name"))
    ),
    flag_double = list(change = as.double, columns = list(c("locations", ".inlined"))),
    as_is = list(change = I, columns = list(c("samples", "sample_id"), c("functions", "name"))),
    named = list(
      change = function(x) rlang::set_names(x, seq_along(x)),
      columns = list(c("samples", "sample_id"), c("functions", "name"))
    )
  )
  for (type in names(taken)) {
    for (column in taken[[type]]$columns) {
      y <- x
      y[[column[[1]]]][[column[[2]]]] <- taken[[type]]$change(x[[column[[1]]]][[column[[2]]]])
      info <- paste(c(type, column), collapse = " ")
      # Whether all functions accept a type does not depend on the column.
      if (identical(column, taken[[type]]$columns[[1]])) {
        expect_identical(unique(answers(y)), "taken", info = info)
      }
      expect_equal(figures(y), expected, info = info)
    }
  }
})

test_that("a date is a time", {
  x <- typed_profile()
  x$sources$source_timestamp <- as.Date("2024-02-29")
  # The samples have different times.
  expect_warning(taken <- answers(x), "must lie within", class = "profile_warning_lossy")
  expect_identical(unique(taken), "taken")
  same <- combine_profiles(x)$sources$source_timestamp
  expect_identical(same, as.numeric(as.POSIXct("2024-02-29", tz = "UTC")))
})

test_that("all other types are refused by all functions", {
  x <- typed_profile()
  refused <- list(
    beyond_integer = list(function(x) as_integer64(x + 2^31), c("samples", "sample_id"), c("locations", "line")),
    beyond_double = list(function(x) as_integer64(x * 0 + 2^53 + 2), c("sample_values", "value"), c(".labels", "num")),
    text_integer64 = list(function(x) as_integer64(seq_along(x)), c("functions", "name")),
    beyond_flag = list(function(x) x + 2L, c("locations", ".inlined"), c("functions", ".has_system_name")),
    beyond_flag64 = list(function(x) as_integer64(x - 1L), c("locations", ".inlined")),
    part_of_flag = list(function(x) x / 2, c("locations", ".inlined")),
    text_flag = list(as.character, c("locations", ".inlined")),
    matrix = list(
      as.matrix, c("samples", "sample_id"), c("sample_values", "value"), c("functions", "name"),
      c("samples", ".timestamp"), c("sample_values", "type"), c("meta", "value")
    ),
    array = list(function(x) array(x, length(x)), c("samples", "sample_id"), c("functions", "name")),
    difftime = list(
      function(x) as.difftime(as.numeric(x), units = "secs"),
      c("sample_values", "value"), c("sources", "source_timestamp"), c("sources", ".period")
    ),
    POSIXct = list(
      function(x) as.POSIXct(as.numeric(x), origin = "1970-01-01"), c("sample_values", "value"), c(".labels", "num")
    ),
    POSIXlt = list(
      function(x) I(as.POSIXlt(as.numeric(x), origin = "1970-01-01")), c("sample_values", "value"), c(".labels", "num")
    ),
    Date = list(function(x) as.Date(seq_along(x), origin = "1970-01-01"), c("sample_values", "value")),
    complex = list(as.complex, c("sample_values", "value")),
    data_frame = list(function(x) data.frame(x = x), c("samples", "sample_id"), c("functions", "name")),
    unknown = list(
      function(x) structure(x, class = "of_somebody"),
      c("samples", "sample_id"), c("sample_values", "value"), c("functions", "name")
    ),
    bytes = list(
      function(x) {
        x[] <- rawToChar(as.raw(c(0x66, 0xe9)))
        Encoding(x) <- "bytes"
        x
      },
      c("functions", "name"), c("functions", "filename"), c("sample_values", "type"), c("sources", "source_uri")
    ),
    broken_utf8 = list(
      function(x) {
        x[] <- rawToChar(as.raw(c(0x66, 0xe9)))
        Encoding(x) <- "UTF-8"
        x
      },
      c("functions", "name"), c("functions", "system_name")
    )
  )
  for (type in names(refused)) {
    for (column in refused[[type]][-1]) {
      y <- x
      rows <- unclass(y[[column[[1]]]])
      rows[[column[[2]]]] <- refused[[type]][[1]](rows[[column[[2]]]])
      y[[column[[1]]]] <- structure(rows, class = class(x$samples))
      info <- paste(c(type, column), collapse = " ")
      if (identical(column, refused[[type]][[2]])) {
        expect_identical(unique(answers(y)), "profile_error_invalid", info = info)
      }
      expect_error(validate_profile(y), class = "profile_error_invalid", info = info)
      expect_match(format(y), "Not valid", all = FALSE, info = info)
    }
  }
})

test_that("bytes that are not text are refused in a user's own columns as well", {
  bytes <- "\xe9"
  Encoding(bytes) <- "bytes"
  x <- small_profile()
  y <- x
  y$functions$.note <- c("a", bytes, "b")
  expect_identical(unique(answers(y)), "profile_error_invalid")
  y <- x
  y$.mine <- tibble::tibble(a = bytes)
  expect_identical(unique(answers(y)), "profile_error_invalid")
  y <- small_profile(version = "1.0")
  y$.rprof$header <- bytes
  expect_error(validate_profile(y), "Table `.rprof`", class = "profile_error_invalid")
})

test_that("bytes that are not text are refused as arguments", {
  bytes <- "\xe9"
  Encoding(bytes) <- "bytes"
  x <- small_profile()
  path <- withr::local_tempfile()
  calls <- expression(
    read_rprof(bytes), read_profile(path, source_uri = bytes), read_pprof(path, version = bytes),
    write_rprof(x, bytes), write_pprof(x, bytes), write_speedscope(x, bytes), write_cpuprofile(x, bytes), write_firefox(x, bytes),
    write_otlp(x, bytes), write_otlp(x, path, format = bytes),
    write_otlp(x, path, resource = c(a = bytes)), write_otlp(x, path, resource = rlang::set_names("a", bytes)),
    read_collapsed(bytes), read_perf_script(bytes), read_rprofmem(bytes), write_collapsed(x, bytes),
    write_collapsed(x, path, type = bytes), write_callgrind(x, bytes), write_profile(x, bytes),
    summary(x, type = bytes), filter_profile(x, focus = bytes), filter_profile(x, drop = bytes),
    start_profiler(bytes), start_agent(bytes), start_agent(resource = c(a = bytes))
  )
  for (call in calls) {
    expect_error(eval(call), class = "profile_error_argument")
  }
})

test_that("errors of types name the table, the column and the row", {
  x <- typed_profile()
  bytes <- "\xe9"
  Encoding(bytes) <- "bytes"
  expect_snapshot(error = TRUE, {
    y <- x
    y$sample_values$value <- as_integer64(c(1, 2^60, 1))
    validate_profile(y)
    y <- x
    y$samples$sample_id <- matrix(1:3)
    validate_profile(y)
    y <- x
    y$sources$source_timestamp <- as.difftime(1, units = "days")
    validate_profile(y)
    y <- x
    y$functions$name[[2]] <- bytes
    validate_profile(y)
  })
})
