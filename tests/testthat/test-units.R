# tier: fast
# Units, compared with the results of Scale() and ScaledLabel() of pprof's package measurement, printed by a Go program
# with Go 1.27 (Go 1.19 has the same rules).
pprof_shows <- function() {
  cases <- list(
    list(0, "bytes", "auto", 0, "B", "0"),
    list(0, "us", "minimum", 0, "s", "0"),
    list(0, "GCU", "auto", 0, "GCU", "0"),
    list(0, "count", "auto", 0, "", "0"),
    list(0, "bytes", "MB", 0, "MB", "0"),
    list(1, "b", "auto", 1, "B", "1B"),
    list(1, "B", "auto", 1, "B", "1B"),
    list(1023, "bytes", "auto", 1023, "B", "1023B"),
    list(1024, "bytes", "auto", 1, "kB", "1kB"),
    list(1025, "bytes", "auto", 1.0009765625, "kB", "1kB"),
    list(1048575, "bytes", "auto", 1023.9990234375, "kB", "1024kB"),
    list(1048576, "bytes", "auto", 1, "MB", "1MB"),
    list(1048576, "bytes", "MB", 1, "MB", "1MB"),
    list(1048575, "B", "MB", 0.9999990463256836, "MB", "1MB"),
    list(1048576, "kbytes", "auto", 1, "GB", "1GB"),
    list(5, "KB", "auto", 5, "kB", "5kB"),
    list(5, "KILOBYTES", "b", 5120, "B", "5120B"),
    list(5, "kilobytes", "MB", 0.0048828125, "MB", "0"),
    list(5, "kbs", "auto", 5, "kB", "5kB"),
    list(5, "bs", "auto", 5, "", "5"),
    list(5, "mib", "auto", 5, "", "5"),
    list(5, "GigaByte", "minimum", 5, "GB", "5GB"),
    list(5, "tb", "pb", 0.0048828125, "PB", "0"),
    list(2^62, "bytes", "auto", 4096, "PB", "4096PB"),
    list(-2^63, "bytes", "auto", -9.223372036854776e18, "B", "-9223372036854775808B"),
    list(-2^63, "bytes", "MB", -8796093022208, "MB", "-8796093022208MB"),
    list(-2^63, "ns", "auto", -9223372036.854776, "s", "-9223372036.85s"),
    list(2^63, "pb", "auto", 9.223372036854776e18, "PB", "9223372036854775808PB"),
    list(-1, "bytes", "auto", -1, "B", "-1B"),
    list(-1500, "bytes", "auto", -1.46484375, "kB", "-1.46kB"),
    list(-1500, "bytes", "MB", -0.001430511474609375, "MB", "0"),
    list(-1500, "us", "auto", -1.5, "ms", "-1.50ms"),
    list(-1500, "count", "auto", -1500, "", "-1500"),
    list(-1500, "widgets", "ms", -1500, "ms", "-1500ms"),
    list(1, "ns", "auto", 1, "ns", "1ns"),
    list(1, "ns", "seconds", 1e-09, "s", "0"),
    list(999, "ns", "auto", 999, "ns", "999ns"),
    list(1000, "NS", "auto", 1, "us", "1us"),
    list(1500000000, "nanoseconds", "auto", 1.5, "s", "1.50s"),
    list(1500000000, "nanoseconds", "minimum", 1.5, "s", "1.50s"),
    list(1500000000, "nanoseconds", "hours", 0.0004166666666666667, "hrs", "0"),
    list(1500000000, "ns", "MB", 1.5, "s", "1.50s"),
    list(1500000000, "ns", "widgets", 1.5, "s", "1.50s"),
    list(1500000000, "ns", "", 1.5, "s", "1.50s"),
    list(1500000000, "ns", "AUTO", 1.5, "s", "1.50s"),
    list(3599999999999, "ns", "auto", 3599.999999999, "s", "3600s"),
    list(3600000000000, "ns", "auto", 1, "hrs", "1hrs"),
    list(5, "\u03bcs", "auto", 5, "", "5"),
    list(5, "\u03bcs", "ms", 5, "ms", "5ms"),
    list(5, "\u00b5s", "auto", 5, "", "5"),
    list(5, "\u03bcss", "auto", 5, "us", "5us"),
    list(5, "us", "\u03bcs", 5e-06, "s", "0"),
    list(5, "usec", "auto", 5, "", "5"),
    list(5, "usec", "us", 5, "us", "5us"),
    list(5, "Seconds", "ms", 5000, "ms", "5000ms"),
    list(5, "SEC", "auto", 5, "s", "5s"),
    list(5, "secs", "auto", 5, "s", "5s"),
    list(5, "ss", "auto", 5, "", "5"),
    list(5, "sss", "auto", 5, "", "5"),
    list(5, "s", "hours", 0.001388888888888889, "hrs", "0"),
    list(5, "hour", "auto", 5, "hrs", "5hrs"),
    list(5, "hours", "seconds", 18000, "s", "18000s"),
    list(5, "hrs", "auto", 5, "hrs", "5hrs"),
    list(5, "hr", "ms", 18000000, "ms", "18000000ms"),
    list(5, "HR", "auto", 5, "hrs", "5hrs"),
    list(5, "minute", "auto", 5, "", "5"),
    list(5, "m", "auto", 5, "", "5"),
    list(5, "nanogcu", "auto", 5, "n*GCU", "5n*GCU"),
    list(999, "nanogcu", "auto", 999, "n*GCU", "999n*GCU"),
    list(1000, "nanogcu", "auto", 1.0000000000000002, "u*GCU", "1u*GCU"),
    list(1024, "GCU", "auto", 1.024, "k*GCU", "1.02k*GCU"),
    list(5, "GCU", "kilogcu", 0.005, "k*GCU", "0.01k*GCU"),
    list(5, "gcus", "MB", 5, "GCU", "5GCU"),
    list(5, "milliGCU", "gcu", 0.005, "GCU", "0.01GCU"),
    list(5, "n*GCU", "n*GCU", 5, "n*GCU", "5n*GCU"),
    list(5, "count", "auto", 5, "", "5"),
    list(5, "count", "ms", 5, "ms", "5ms"),
    list(5, "count", "count", 5, "", "5"),
    list(5, "samples", "auto", 5, "", "5"),
    list(5, "sample", "minimum", 5, "", "5"),
    list(5, "unit", "unit", 5, "", "5"),
    list(5, "unit", "widgets", 5, "widgets", "5widgets"),
    list(5, "", "auto", 5, "", "5"),
    list(5, "", "MB", 5, "MB", "5MB"),
    list(5, "widgets", "auto", 5, "", "5"),
    list(5, "widgets", "sample", 5, "", "5"),
    list(5, "widgets", "widgets", 5, "widgets", "5widgets"),
    list(5, "widgets", "", 5, "", "5")
  )
  column <- function(i, type) vapply(cases, `[[`, type, i)
  data.frame(
    value = column(1, 0), unit = column(2, ""), to = column(3, ""),
    scaled = column(4, 0), shown = column(5, ""), text = column(6, "")
  )
}

test_that("values are shown as pprof shows them", {
  cases <- pprof_shows()
  for (to in unique(cases$to)) {
    these <- cases[cases$to == to, ]
    scaled <- scale_value(these$value, these$unit, to)
    expect_equal(scaled$value, these$scaled, tolerance = 1e-14, info = to)
    expect_identical(scaled$unit, these$shown, info = to)
    expect_identical(format_value(these$value, these$unit, to), these$text, info = to)
  }
})

test_that("the letters of units do not depend on the language", {
  old <- Sys.getlocale("LC_CTYPE")
  withr::defer(Sys.setlocale("LC_CTYPE", old))
  for (locale in c("C", "tr_TR.UTF-8")) {
    if (suppressWarnings(Sys.setlocale("LC_CTYPE", locale)) == "") {
      next
    }
    expect_identical(format_value(2048, "KILOBYTES"), "2MB", info = locale)
    expect_identical(format_value(5, "\u03bcss"), "5us", info = locale)
  }
})

test_that("values can be missing, infinite, fractions, integers, or none", {
  expect_identical(format_value(c(NA, NaN, 1), "bytes"), c(NA, NA, "1B"))
  expect_identical(scale_value(NA_real_, "bytes"), tibble::tibble(value = NA_real_, unit = "B"))
  expect_identical(scale_value(-Inf, "ns"), tibble::tibble(value = -Inf, unit = "hrs"))
  expect_identical(format_value(c(1.5, 0.25), c("kB", NA)), c("1.50kB", "0.25"))
  expect_identical(scale_value(c(a = 1024L), "B"), tibble::tibble(value = 1, unit = "kB"))
  expect_identical(format_value(numeric(), character()), character())
  expect_identical(format_value(numeric(), "bytes"), character())
  expect_identical(scale_value(numeric(), "bytes"), tibble::tibble(value = numeric(), unit = character()))
})

test_that("arguments are checked", {
  expect_snapshot(error = TRUE, {
    scale_value("1", "bytes")
    scale_value(1:3, c("bytes", "ns"))
    format_value(1, 1)
    format_value(1, "bytes", to = NA)
  })
  expect_error(scale_value(NULL, "bytes"), class = "profile_error_argument")
})

test_that("the first unit of a key is the unit of its labels", {
  expect_identical(
    label_units(labelled_profile()),
    tibble::tibble(
      key = c("size", "request", "latency", "alignment"),
      unit = c("bytes", "bytes", "latency", "ns"),
      ignored = list(c("Zoll", "ms", "\u00e4"), character(), character(), character())
    )
  )
})

test_that("label_units() takes any profile, also without labels", {
  none <- tibble::tibble(key = character(), unit = character(), ignored = list())
  expect_identical(label_units(small_profile()), none)
  expect_identical(label_units(small_profile(version = "1.0")), none)
  x <- small_profile()
  x$.labels <- labelled_profile()$.labels[0, ]
  expect_identical(label_units(x), none)
  x$.labels <- labelled_profile()$.labels[3, ]
  expect_identical(label_units(x), none)
})

test_that("label_units() reports objects that are not profiles", {
  x <- small_profile()
  x$samples <- NULL
  expect_snapshot(error = TRUE, {
    label_units(1)
    label_units(x)
  })
})
