# tier: gate
# Paths in any encoding: the package opens the file that R itself would open, or reports that it cannot. Each locale is
# tested in its own process.

# Other systems, and some disks, have only names in UTF-8.
skip_on_cran()
skip_on_os(c("windows", "mac"))

locale_of <- function(pattern) {
  known <- if (Sys.which("locale") != "") system2("locale", "-a", stdout = TRUE, stderr = FALSE)
  found <- grep(pattern, known, value = TRUE, ignore.case = TRUE)
  if (length(found) == 0) {
    skip(paste("no locale matches", pattern))
  }
  found[[1]]
}

# Runs paths/<script>, which prints "done" at the end if all checks pass.
run_in_locale <- function(script, locale, ...) {
  done <- run_r(readLines(test_path("paths", script)), env = paste0("env LC_ALL=", locale), ...)
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
