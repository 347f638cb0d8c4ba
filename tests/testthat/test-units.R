# tier: fast
# Units, compared with the results of Scale() and ScaledLabel() of pprof's package measurement, printed by a Go program
# with Go 1.27 (Go 1.19 has the same rules).
format_value <- profile:::format_value
scale_value <- profile:::scale_value

pprof_shows <- function() {
  cases <- list(
    list(0, "bytes", 0, "B", "0"),
    list(0, "GCU", 0, "GCU", "0"),
    list(0, "count", 0, "", "0"),
    list(1, "b", 1, "B", "1B"),
    list(1, "B", 1, "B", "1B"),
    list(1023, "bytes", 1023, "B", "1023B"),
    list(1024, "bytes", 1, "kB", "1kB"),
    list(1025, "bytes", 1.0009765625, "kB", "1kB"),
    list(1048575, "bytes", 1023.9990234375, "kB", "1024kB"),
    list(1048576, "bytes", 1, "MB", "1MB"),
    list(1048576, "kbytes", 1, "GB", "1GB"),
    list(5, "KB", 5, "kB", "5kB"),
    list(5, "kbs", 5, "kB", "5kB"),
    list(5, "bs", 5, "", "5"),
    list(5, "mib", 5, "", "5"),
    list(2^62, "bytes", 4096, "PB", "4096PB"),
    list(-2^63, "bytes", -9.223372036854776e18, "B", "-9223372036854775808B"),
    list(-2^63, "ns", -9223372036.854776, "s", "-9223372036.85s"),
    list(2^63, "pb", 9.223372036854776e18, "PB", "9223372036854775808PB"),
    list(-1, "bytes", -1, "B", "-1B"),
    list(-1500, "bytes", -1.46484375, "kB", "-1.46kB"),
    list(-1500, "us", -1.5, "ms", "-1.50ms"),
    list(-1500, "count", -1500, "", "-1500"),
    list(1, "ns", 1, "ns", "1ns"),
    list(999, "ns", 999, "ns", "999ns"),
    list(1000, "NS", 1, "us", "1us"),
    list(1500000000, "nanoseconds", 1.5, "s", "1.50s"),
    list(3599999999999, "ns", 3599.999999999, "s", "3600s"),
    list(3600000000000, "ns", 1, "hrs", "1hrs"),
    list(5, "\u03bcs", 5, "", "5"),
    list(5, "\u00b5s", 5, "", "5"),
    list(5, "\u03bcss", 5, "us", "5us"),
    list(5, "usec", 5, "", "5"),
    list(5, "SEC", 5, "s", "5s"),
    list(5, "secs", 5, "s", "5s"),
    list(5, "ss", 5, "", "5"),
    list(5, "sss", 5, "", "5"),
    list(5, "hour", 5, "hrs", "5hrs"),
    list(5, "hrs", 5, "hrs", "5hrs"),
    list(5, "HR", 5, "hrs", "5hrs"),
    list(5, "minute", 5, "", "5"),
    list(5, "m", 5, "", "5"),
    list(5, "nanogcu", 5, "n*GCU", "5n*GCU"),
    list(999, "nanogcu", 999, "n*GCU", "999n*GCU"),
    list(1000, "nanogcu", 1.0000000000000002, "u*GCU", "1u*GCU"),
    list(1024, "GCU", 1.024, "k*GCU", "1.02k*GCU"),
    list(5, "count", 5, "", "5"),
    list(5, "samples", 5, "", "5"),
    list(5, "", 5, "", "5"),
    list(5, "widgets", 5, "", "5")
  )
  column <- function(i, type) vapply(cases, `[[`, type, i)
  data.frame(
    value = column(1, 0), unit = column(2, ""), scaled = column(3, 0), shown = column(4, ""), text = column(5, "")
  )
}

test_that("values are shown as pprof shows them", {
  cases <- pprof_shows()
  scaled <- scale_value(cases$value, cases$unit)
  expect_equal(scaled$value, cases$scaled, tolerance = 1e-14)
  expect_identical(scaled$unit, cases$shown)
  expect_identical(format_value(cases$value, cases$unit), cases$text)
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
