# tier: gate
# Finding the pprof tool.

# No information on where pprof is: an empty PATH, no option, no variable, no file.
local_nothing <- function(.local_envir = parent.frame()) {
  dir <- normalizePath(withr::local_tempdir(.local_envir = .local_envir))
  withr::local_options(profile.pprof = NULL, .local_envir = .local_envir)
  withr::local_envvar(
    PATH = file.path(dir, "bin"), R_USER_DATA_DIR = file.path(dir, "data"),
    PROFILE_PPROF = NA, PROFFER_PPROF_PATH = NA,
    .local_envir = .local_envir
  )
  dir
}

skip_without_shell <- function() {
  skip_on_os("windows")
}

test_that("pprof is searched for in the documented order", {
  skip_without_shell()
  dir <- local_nothing()
  at <- function(...) file.path(dir, ...)
  expect_found <- function(command, found, args = character()) {
    tool <- find_pprof()
    expect_s3_class(tool, "pprof_tool")
    expect_identical(unclass(tool), structure(command, found = found, args = args))
  }

  expect_error(find_pprof(), class = "profile_error_unsupported")

  fake_program("exit 1", path = at("data", "R", "profile", "pprof"))
  expect_found(at("data", "R", "profile", "pprof"), "the data directory of this package")

  fake_program("exit 2", path = at("bin", "go"))
  expect_found(at("data", "R", "profile", "pprof"), "the data directory of this package")

  fake_program("[ \"$*\" = 'tool -n pprof' ] && echo /no/such/file", path = at("bin", "go"))
  expect_found(at("bin", "go"), "`go tool pprof`", c("tool", "pprof"))

  fake_program("", path = at("go tools", "pprof"))
  fake_program(paste0("echo '", at("go tools", "pprof"), "'"), path = at("bin", "go"))
  expect_found(at("go tools", "pprof"), "`go tool pprof`")

  fake_program("", path = at("bin", "pprof"))
  expect_found(at("bin", "pprof"), "`pprof` on the `PATH`")

  fake_program("", path = at("proffer"))
  withr::local_envvar(PROFFER_PPROF_PATH = at("proffer"))
  expect_found(at("proffer"), "the environment variable `PROFFER_PPROF_PATH`")

  fake_program("", path = at("bin", "by-name"))
  withr::local_envvar(PROFILE_PPROF = "by-name")
  expect_found(at("bin", "by-name"), "the environment variable `PROFILE_PPROF`")

  fake_program("", path = at("my tools", "it's pprof"))
  withr::local_options(profile.pprof = at("my tools", "it's pprof"))
  expect_found(at("my tools", "it's pprof"), "the option `profile.pprof`")
})

test_that("a Perl script on the PATH is passed over", {
  skip_without_shell()
  dir <- local_nothing()
  perl <- fake_program(path = file.path(dir, "bin", "pprof"))
  write_file("#! /usr/bin/env perl", "exit", path = perl)
  fake_program("exit 2", path = file.path(dir, "bin", "go"))
  own <- file.path(dir, "data", "R", "profile", "pprof")

  expect_snapshot(error = TRUE, find_pprof(), transform = function(x) gsub(dir, "<dir>", x, fixed = TRUE))

  dir.create(dirname(own), recursive = TRUE)
  # A binary program.
  write_bytes(as.raw(c(0x7f, 0x45, 0x4c, 0x46, 0, 0, 0xff)), own)
  Sys.chmod(own, "755")
  expect_identical(as.character(find_pprof()), own)
  # The way in which code written for jointprof calls it.
  expect_true(is.character(find_pprof()))
})

test_that("a setting that does not lead to pprof is an error", {
  skip_without_shell()
  dir <- local_nothing()
  fake_program("", path = file.path(dir, "bin", "pprof"))
  fake_program("", path = file.path(dir, "perl"))
  write_file("#!/usr/bin/perl -w", path = file.path(dir, "perl"))
  write_file("no program", path = file.path(dir, "text"))
  hide <- function(x) gsub(dir, "<dir>", x, fixed = TRUE)

  expect_snapshot(error = TRUE, transform = hide, {
    withr::with_envvar(c(PROFILE_PPROF = file.path(dir, "none")), find_pprof())
    withr::with_envvar(c(PROFFER_PPROF_PATH = "none"), find_pprof())
    withr::with_options(list(profile.pprof = file.path(dir, "perl")), find_pprof())
    withr::with_options(list(profile.pprof = dir), find_pprof())
    withr::with_options(list(profile.pprof = TRUE), find_pprof())
  })
  withr::local_options(profile.pprof = file.path(dir, "text"))
  expect_error(find_pprof(), class = "profile_error_unsupported")
})

test_that("without pprof the error explains how to install it", {
  skip_without_shell()
  local_nothing()
  expect_snapshot(error = TRUE, {
    find_pprof()
  })
})

test_that("a tool prints its description", {
  expect_snapshot({
    new_pprof_tool("/usr/bin/pprof", "`pprof` on the `PATH`")
    new_pprof_tool("/usr/bin/go", "`go tool pprof`", c("tool", "pprof"))
  })
})
