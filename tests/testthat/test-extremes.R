# tier: gate
# Values near the limits of doubles: no reader returns an infinite value, no writer and no table shows an infinite sum.

# A profile with a sample for each value, whose stack is `g;f`.
with_values <- function(values, type = "time", unit = "seconds") {
  x <- small_profile()
  ids <- seq_along(values)
  x$samples <- tibble::tibble(sample_id = ids, source_id = 1L)
  x$sample_locations <- tibble::tibble(sample_id = rep(ids, each = 2), depth = rep(1:2, length(ids)), location_id = rep(1:2, length(ids)))
  x$sample_values <- tibble::tibble(sample_id = ids, type = type, unit = unit, value = values)
  x$.sample_types <- NULL
  validate_profile(x)
}

# The first class of the error of an expression, or "no error".
error_of <- function(expr) {
  tryCatch({ force(expr); "no error" }, error = function(e) class(e)[[1]])
}

writers <- list(
  pprof = write_pprof, otlp = write_otlp, collapsed = write_collapsed, callgrind = write_callgrind,
  speedscope = write_speedscope, cpuprofile = write_cpuprofile, firefox = write_firefox, rprof = write_rprof,
  page = write_page
)

test_that("infinite times of a file are an error", {
  expect_snapshot(read_cpuprofile(data_path("found", "inf-time.cpuprofile")), error = TRUE)
})

test_that("no reader accepts a number beyond the range of a double", {
  speedscope <- paste0(
    "{\"shared\":{\"frames\":[{\"name\":\"a\"}]},\"profiles\":[{\"type\":\"%s\",\"unit\":\"seconds\",",
    "\"startValue\":0,\"endValue\":1,%s}]}"
  )
  weights <- sprintf(speedscope, "sampled", "\"samples\":[[0]],\"weights\":[%s]")
  events <- sprintf(speedscope, "evented", paste0(
    "\"events\":[{\"type\":\"O\",\"frame\":0,\"at\":-1e308},{\"type\":\"C\",\"frame\":0,\"at\":%s}]"
  ))
  nodes <- paste0(
    "{\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"f\"}}],\"startTime\":0,\"samples\":[1,1],",
    "\"timeDeltas\":[-1e308,%s]}"
  )
  firefox <- paste0(
    "{\"meta\":{\"preprocessedProfileVersion\":66},\"shared\":{\"stackTable\":{\"frame\":[0],\"prefixOffset\":[0]},",
    "\"frameTable\":{\"func\":[0]},\"funcTable\":{\"name\":[0]},\"stringArray\":[\"f\"]},",
    "\"threads\":[{\"samples\":{\"stack\":[0],\"weight\":[%s]}}]}"
  )
  cases <- list(
    list(read_speedscope, weights, "1e308", TRUE), list(read_speedscope, weights, "1e999", FALSE),
    list(read_speedscope, weights, "-1e309", FALSE), list(read_speedscope, events, "1e307", TRUE),
    list(read_speedscope, events, "1e308", FALSE), list(read_cpuprofile, nodes, "1e308", TRUE),
    list(read_cpuprofile, nodes, "1.7e308", TRUE), list(read_cpuprofile, nodes, "1e999", FALSE),
    list(read_firefox, firefox, "1e308", TRUE), list(read_firefox, firefox, "1e999", FALSE),
    list(read_collapsed, "a;b %s\nc 1\n", "1e308", TRUE), list(read_perf_script, "f 1 1.0: %s cycles: \n\t1 g (m)\n\n", "1e999", NA)
  )
  for (case in cases) {
    path <- withr::local_tempfile()
    cat(sprintf(case[[2]], case[[3]]), file = path)
    x <- tryCatch(case[[1]](path), profile_error_parse = function(e) NULL, profile_warning = function(w) NA)
    info <- paste(case[[2]], case[[3]])
    if (!is.na(case[[4]])) {
      expect_equal(is.list(x), case[[4]], info = info)
    }
    if (is.list(x)) {
      expect_identical(validate_profile(x), x, info = info)
    }
  }
  # A line whose count is too large is not a stack, and a problem is reported.
  cat("c;d 1\na;b 1e999\n", file = path)
  x <- expect_profile_warning(read_collapsed(path), "profile_warning_incomplete")
  expect_equal(x$sample_values$value, 1)
})

test_that("a sum beyond the range of a double is an error of each writer and table", {
  path <- withr::local_tempfile(fileext = ".x")
  x <- read_collapsed(data_path("found", "inf-sum.folded"))
  expect_snapshot(error = TRUE, {
    write_collapsed(x, path)
    summary(x)
  })
  profiles <- list(
    x, with_values(c(1e308, 1e308)), with_values(c(1e308, -1e308)), with_values(c(1e305, 1)),
    with_values(c(1e308, 1e308), "samples", "count"), with_values(c(1e308, 1e308), "memory", "bytes"),
    with_values(1e305, "samples", "count")
  )
  for (x in profiles) {
    for (name in names(writers)) {
      error <- error_of(suppressWarnings(writers[[name]](x, path)))
      expect_true(error %in% c("profile_error_unsupported", "profile_error_lossy"), info = paste(name, error))
    }
    for (show in list(summary, describe_profile, call_tree, function(x) compare_profiles(x, x))) {
      expect_equal(error_of(show(x)), "profile_error_unsupported")
    }
  }
  expect_false(file.exists(path))
})

test_that("large values whose sums are finite are kept", {
  x <- with_values(c(1e300, 1e299), "value", "furlongs")
  for (format in c("collapsed", "speedscope", "firefox")) {
    y <- suppressWarnings(read_written(x, format), classes = "profile_warning_lossy")
    expect_equal(sum(y$sample_values$value), 1.1e300)
  }
  expect_equal(as.numeric(summary(x)$by_function$self[[1]]), 1.1e300)
})

test_that("amounts whose ratios would be infinite are not compared", {
  runs <- function(value) combine_profiles(lapply(1:3, function(i) with_values(value, "value", "furlongs")))
  usual <- runs(1)
  for (value in c(1e307, 1e151, 1e-151, 1e-320)) {
    expect_equal(error_of(compare_profiles(usual, runs(value))), "profile_error_unsupported")
    expect_equal(error_of(compare_profiles(runs(value), usual)), "profile_error_unsupported")
  }
  for (value in c(1e149, 1e-149)) {
    x <- compare_profiles(usual, runs(value))
    numbers <- unlist(x[vapply(x, is.numeric, TRUE) & names(x) != "line"])
    expect_true(all(is.finite(numbers)))
    expect_false(any(grepl("Inf|NaN", format(x))))
  }
  expect_snapshot(error = TRUE, {
    compare_profiles(usual, runs(1e307))
    compare_profiles(usual, runs(1e-320))
  })
})

test_that("large values are shown with few digits", {
  expect_equal(profile:::format_value(c(2^63, 1e20, 1e300, 1e308, -1e308), "count"), c("9223372036854775808", "1e+20", "1e+300", "1e+308", "-1e+308"))
  expect_equal(profile:::format_value(c(1e308, 1e30), "seconds"), c("2.778e+304hrs", "2.778e+26hrs"))
  expect_equal(profile:::format_value(1e308, "petabytes"), "1e+308PB")
})

test_that("values of one type in several units are never added as they are", {
  x <- combine_profiles(with_values(3, "time", "seconds"), with_values(1, "time", "seconds"))
  second <- x$sample_values$sample_id == max(x$sample_values$sample_id)
  x$sample_values$unit[second] <- "milliseconds"
  x$sample_values$value[second] <- 1000
  sums <- function(x) tapply(x$sample_values$value, paste(x$sample_values$type, x$sample_values$unit), sum)
  for (format in c("speedscope", "otlp")) {
    expect_equal(sums(expect_no_warning(read_written(x, format))), sums(x))
  }
  # These have one unit, to which times are converted, or one column.
  expect_equal(sums(expect_no_warning(read_written(x, "firefox")))[["time milliseconds"]], 4000)
  for (format in c("cpuprofile", "collapsed")) {
    y <- expect_profile_warning(read_written(x, format), "profile_warning_lossy")
    expect_equal(nrow(y$samples), 1)
  }
})
