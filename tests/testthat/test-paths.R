# Paths are bytes: whatever the locale and the bytes, the package opens the file that R
# itself would open, or says that it cannot. Each locale has a process of its own.

skip_on_os("windows")

locale_of <- function(pattern) {
  found <- grep(pattern, system2("locale", "-a", stdout = TRUE, stderr = FALSE), value = TRUE, ignore.case = TRUE)
  if (length(found) == 0) {
    skip(paste("no locale matches", pattern))
  }
  found[[1]]
}

# Runs paths/<script>, which ends with the line "done" if all is as it should be.
run_in_locale <- function(script, locale, ...) {
  done <- run_r(readLines(test_path("paths", script)), prefix = paste0("LC_ALL=", locale), ...)
  expect_identical(done$output, "done")
}

test_that("files with any name are read and written in the C locale", {
  run_in_locale("names.R", "C")
})

test_that("files with any name are read and written in a UTF-8 locale", {
  run_in_locale("names.R", locale_of("^(c|en_us)[.]utf-?8$"))
})

test_that("files with any name are read and written in a Latin-1 locale", {
  run_in_locale("names.R", locale_of("[.]iso-?8859-?1$"))
})

test_that("the temporary folder may have any name, and so may files of the profilers", {
  skip_on_cran()
  utf8 <- as.raw(c(0x77, 0xc3, 0xa9))
  latin1 <- as.raw(c(0x77, 0xe9))
  folders <- withr::local_tempdir()
  for (locale in c("C", locale_of("^(c|en_us)[.]utf-?8$"))) {
    for (name in list(utf8, latin1)) {
      folder <- paste0(folders, "/", rawToChar(name))
      dir.create(folder, showWarnings = FALSE)
      octal <- paste0("\\", format(as.octmode(as.integer(name)), width = 3), collapse = "")
      variables <- paste0("TMPDIR=\"$(printf '%s/", octal, "' ", shQuote(folders), ")\"")
      run_in_locale("programs.R", paste(locale, variables))
    }
  }
})
