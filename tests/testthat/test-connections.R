# tier: fast
# Connections that cannot be read: one error with R's reason, and no additional warning.

expect_unreadable <- function(con, reason, ...) {
  expect_no_warning({
    error <- expect_error(read_profile(con, ...), class = "profile_error_open")
  })
  expect_match(conditionMessage(error), reason)
  expect_identical(rlang::call_name(error$call), "read_profile")
}

regular_bytes <- function() {
  file_bytes(system.file("samples/rprof/1.out", package = "profile"))
}

test_that("a connection that was closed is no longer one", {
  con <- file(withr::local_tempfile())
  close(con)
  expect_unreadable(con, "invalid connection")
  expect_unreadable(con, "invalid connection", source_uri = "x")
  error <- expect_error(read_rprof(tempfile(), source_uri = con), class = "profile_error_open")
})

test_that("a connection that cannot be opened is an error with R's reason", {
  skip_on_os("windows")
  missing <- paste0(withr::local_tempdir(), "/missing")
  for (make in list(file, gzfile, bzfile, xzfile)) {
    con <- make(missing)
    expect_unreadable(con, "No such file or directory")
    close(con)
  }
  # No server listens at the first port.
  con <- url("http://127.0.0.1:1/")
  expect_unreadable(con, "^Cannot read `http://127.0.0.1:")
  close(con)
})

test_that("damaged data are an error, also where R only warns", {
  path <- withr::local_tempfile()
  con <- xzfile(path, "wb")
  writeBin(rep(regular_bytes(), 50), con)
  close(con)
  bytes <- file_bytes(path)
  middle <- length(bytes) %/% 2
  bytes[middle + 0:20] <- as.raw(0)
  writeBin(bytes, path)
  con <- xzfile(path)
  expect_unreadable(con, "^Cannot read")
  close(con)
})

test_that("a connection for writing cannot be read", {
  con <- file(withr::local_tempfile(), "wb")
  withr::defer(close(con))
  expect_unreadable(con, "cannot read")
})

test_that("the output of a command that fails is not used", {
  skip_on_os("windows")
  path <- system.file("samples/rprof/1.out", package = "profile")
  con <- pipe(paste("cat", shQuote(path), "; exit 3"))
  expect_unreadable(con, "the command failed")
  close(con)
  con <- pipe(paste("cat", shQuote(path)))
  withr::defer(close(con))
  expect_identical(read_rprof(con)$samples, read_rprof(path)$samples)
})

test_that("connections of bytes and texts are read", {
  expected <- read_profile(system.file("samples/rprof/1.out", package = "profile"))
  con <- rawConnection(regular_bytes())
  expect_identical(read_profile(con)$samples, expected$samples)
  close(con)
  con <- textConnection(strsplit(rawToChar(regular_bytes()), "\n")[[1]])
  expect_identical(read_profile(con)$samples, expected$samples)
  close(con)
})
