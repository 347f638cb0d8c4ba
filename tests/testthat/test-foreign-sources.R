# tier: fast
# Which files the page, the description and other functions read for a profile of another person, and how a profile of
# this session is recognised.

# A profile whose only frames are lines 1 of these files.
profile_of_files <- function(files) {
  x <- small_profile()
  n <- length(files)
  x$functions <- tibble::tibble(
    function_id = seq_len(n), name = paste0("f", seq_len(n)), system_name = name, filename = files, start_line = 0L
  )
  x$locations <- tibble::tibble(location_id = seq_len(n), function_id = seq_len(n), line = 1L)
  x$samples <- tibble::tibble(sample_id = seq_len(n), source_id = 1L)
  x$sample_values <- tibble::tibble(sample_id = seq_len(n), type = "samples", unit = "count", value = 1)
  x$sample_locations <- tibble::tibble(sample_id = seq_len(n), depth = 1L, location_id = seq_len(n))
  x[[".files"]] <- NULL
  x
}

# A folder with a working directory `work`, in which the test runs, and a folder `other` beside it. The code of each
# file is its name.
local_folders <- function(.local_envir = parent.frame()) {
  folder <- withr::local_tempdir(.local_envir = .local_envir)
  add <- function(...) {
    for (path in file.path(folder, c(...))) {
      dir.create(dirname(path), FALSE, TRUE)
      writeLines(basename(path), path)
    }
  }
  add("work/own.R", "work/R/deep.CPP", "work/R/R", "work/key", "work/.Rprofile", "work/.git/hook.R", "work/a.Rprofile")
  add("other/other.R", "other/secret", "rel.R", ".Rprofile", "home/.Rprofile", "home/home.R")
  withr::local_dir(file.path(folder, "work"), .local_envir = .local_envir)
  withr::local_envvar(HOME = file.path(folder, "home"), .local_envir = .local_envir)
  normalizePath(folder)
}

read_files <- function(x, ...) {
  suppressMessages(add_source_text(x, ...), classes = "profile_message_source_files")$.source_text$filename
}

# testthat 3.1.0 has no expect_no_message().
expect_quiet <- function(code) {
  expect_message(code, NA)
}

test_that("only source files in the working directory are read for a profile of somebody else", {
  folder <- local_folders()
  outside <- file.path(folder, c("other/other.R", "rel.R", "home/home.R"))
  refused <- c(
    "~/.Rprofile", "~/home.R", "R/R", "key", ".Rprofile", "./.Rprofile", ".git/hook.R", "a.Rprofile", "../other/secret",
    "/etc/passwd", "/proc/self/environ", "/proc/self/environ.R", "/dev/zero", "/dev/zero.R", "http://127.0.0.1:1/own.R",
    "file://own.R", "file:own.R", "file:///etc/passwd", "clipboard", "clipboard.R", "stdin", "", "//127.0.0.1/share/own.R",
    "\\\\127.0.0.1\\share\\own.R", "/\\127.0.0.1\\own.R", "own.R\n", "\nown.R", "own.R:$DATA", "<text>", ".", "..", "/",
    "missing.R", "R", strrep("a/", 1e5), paste0(strrep("../", 2000), "own.R")
  )
  inside <- c("own.R", "./own.R", "R/../own.R", "R/deep.CPP", file.path(folder, "work/own.R"), "../work/own.R")
  x <- profile_of_files(c(inside, "../rel.R", "../other/other.R", outside, refused))
  expect_setequal(read_files(x), inside)
  expect_setequal(read_files(x, outside = TRUE), c(inside, "../rel.R", "../other/other.R", outside))
  expect_setequal(read_files(mark_session(x)), c(inside, "../rel.R", "../other/other.R", outside))
  # A folder that the user names is also searched for the ends of paths, but not for URLs.
  named <- read_files(x, directory = "../other")
  expect_setequal(named, c(inside, "../other/other.R", outside[[1]]))
  gone <- profile_of_files(c("/gone/own.R", "C:\\gone\\other.R", "/gone/secret", "http://gone/other.R", "~/other.R"))
  expect_setequal(read_files(gone, directory = "../other"), c("C:\\gone\\other.R", "~/other.R"))
})

test_that("links are resolved before they are checked", {
  skip_on_os("windows")
  folder <- local_folders()
  links <- c(
    secret.R = "../other/secret", passwd.R = "/etc/passwd", hidden.R = ".Rprofile", zero.R = "/dev/zero", loop.R = "loop.R",
    out.R = "../other/other.R", folder = "../other", in.R = "own.R", alias = "own.R"
  )
  file.symlink(links, names(links))
  x <- profile_of_files(c(names(links), "folder/other.R", "folder/secret"))
  expect_setequal(read_files(x), c("in.R", "alias"))
  expect_setequal(read_files(x, outside = TRUE), c("in.R", "alias", "out.R", "folder/other.R"))
  expect_setequal(read_files(x, directory = "folder"), c("in.R", "alias", "out.R", "folder/other.R"))
})

test_that("files that would block are not opened", {
  skip_if_not(.Platform$OS.type == "unix" && nzchar(Sys.which("mkfifo")))
  local_folders()
  system2("mkfifo", "pipe.R")
  x <- profile_of_files(c("pipe.R", "own.R"))
  expect_equal(read_files(x), "own.R")
  expect_equal(read_files(mark_session(x)), "own.R")
})

test_that("all functions that show source code read the same files", {
  folder <- local_folders()
  x <- profile_of_files(c("own.R", file.path(folder, "other/other.R"), "~/.Rprofile", "key"))
  quietly <- function(code) suppressMessages(code, classes = "profile_message_source_files")
  path <- withr::local_tempfile(fileext = ".html")
  quietly(write_profile(x, path))
  texts <- function(page) vapply(page_data(page)$texts, function(text) text$text, "")
  expect_equal(texts(path), "own.R\n")
  expect_equal(texts(quietly(profile_page(x, base = x))), "own.R\n")
  expect_setequal(as.list(quietly(describe_profile(x)))$lines$text, c("own.R", NA))
  expect_equal(quietly(annotate_lines(x, "own.R"))$text, "own.R")
  expect_equal(quietly(annotate_lines(x, "other.R"))$text, NA_character_)
  files <- quietly(as_profvis(x))$x$message$files
  expect_equal(vapply(files, function(file) file$content, ""), "own.R\n")
  withr::local_pdf(withr::local_tempfile(fileext = ".pdf"))
  expect_setequal(quietly(plot(x, view = "lines"))$text, c("own.R", NA))
  # Text that the user has added is shown.
  all <- add_source_text(x, outside = TRUE)
  expect_setequal(texts(quietly(profile_page(all))), c("own.R\n", "other.R\n"))
})

test_that("the page of two profiles reads the files of each by its own origin", {
  folder <- local_folders()
  mine <- mark_session(profile_of_files(file.path(folder, "other/other.R")))
  foreign <- profile_of_files(c(file.path(folder, "rel.R"), "own.R"))
  page <- suppressMessages(profile_page(mine, base = foreign), classes = "profile_message_source_files")
  expect_setequal(vapply(page_data(page)$texts, function(text) text$text, ""), c("other.R\n", "own.R\n"))
})

test_that("descriptions of packages are read by the same rules", {
  folder <- local_folders()
  add <- function(path, package) {
    dir.create(path)
    writeLines(paste("Package:", package), file.path(path, "DESCRIPTION"))
  }
  add("pkg", "inner")
  add(file.path(folder, "pkg"), "outer")
  x <- profile_of_files(c("pkg/R/a.R", file.path(folder, "pkg/R/a.R"), "//127.0.0.1/pkg/R/a.R"))
  expect_equal(add_packages(x)$functions$.package, c("inner", NA, NA))
  expect_equal(add_packages(mark_session(x))$functions$.package, c("inner", "outer", NA))
  skip_on_os("windows")
  dir.create("link")
  file.symlink(file.path(folder, "other/secret"), "link/DESCRIPTION")
  expect_equal(add_packages(mark_session(profile_of_files("link/R/a.R")))$functions$.package, NA_character_)
})

test_that("source references of this session are not read for a profile of somebody else", {
  withr::defer(rm(list = "profile_test_f", envir = globalenv()))
  code <- "function() {\n  1\n}"
  srcfile <- srcfilecopy("typed.R", strsplit(code, "\n")[[1]])
  assign("profile_test_f", eval(parse(text = code, srcfile = srcfile, keep.source = TRUE), globalenv()), globalenv())
  x <- profile_of_files("typed.R")
  expect_equal(read_files(x), character())
  expect_equal(read_files(x, outside = TRUE), "typed.R")
  expect_equal(read_files(mark_session(x)), "typed.R")
})

# ---- Whether this session recorded a profile ---------------------------------------

test_that("a file cannot pretend that its profile was recorded in this session", {
  x <- mark_session(small_profile())
  expect_true(is_of_session(x))
  path <- withr::local_tempfile(fileext = ".html")
  saveRDS(x, path)
  expect_false(is_of_session(readRDS(path)))
  expect_false(is_of_session(unserialize(serialize(x, NULL))))
  write_pprof(x, path)
  expect_false(is_of_session(read_pprof(path)))
  write_rprof(x, path)
  expect_false(is_of_session(read_rprof(path)))
  for (forged in list(TRUE, new.env(), globalenv(), "session", emptyenv())) {
    y <- small_profile()
    attr(y, "session") <- forged
    expect_false(is_of_session(y))
  }
  y <- small_profile()
  y$meta <- tibble::add_row(y$meta, key = "session", value = "this")
  expect_false(is_of_session(y))
})

test_that("results of this package from a profile of this session count as recorded in this session", {
  x <- mark_session(small_profile())
  made <- list(
    v1 = profile_v1_from_v2(x), v2 = profile_v2_from_v1(profile_v1_from_v2(x)), filter = filter_profile(x, focus = "f"),
    drop = filter_profile(x, drop = "h"), compact = compact_profile(x), packages = add_packages(x), whole = x[],
    sources = add_source_text(x), combined = combine_profiles(x, x), list = combine_profiles(list(x))
  )
  expect_equal(names(Filter(Negate(is_of_session), made)), character())
  expect_false(is_of_session(combine_profiles(x, small_profile())))
  expect_false(is_of_session(combine_profiles()))
  # In the other direction, too.
  y <- small_profile()
  foreign <- list(profile_v1_from_v2(y), filter_profile(y, focus = "f"), compact_profile(y), add_source_text(y), y[])
  expect_false(any(vapply(foreign, is_of_session, NA)))
  # The mark has no other effect.
  attr(x, "session") <- NULL
  expect_identical(attributes(x), attributes(small_profile()))
})

test_that("profiles of recorders are of this session", {
  x <- record_profile(NULL)
  expect_true(is_of_session(x))
  expect_true(is_of_session(last_profile()))
  expect_true(is_of_session(suppressMessages(benchmark_profile(NULL, runs = 1, warmup = 0, measure = "time"))))
})

# ---- The message -------------------------------------------------------------------

test_that("a message lists what was read and what was left out", {
  local_folders()
  x <- profile_of_files(c("own.R", "../rel.R", "R/deep.CPP", "~/.Rprofile", "missing.R"))
  path <- withr::local_tempfile(fileext = ".html")
  expect_snapshot({
    y <- add_source_text(x)
    write_profile(x, path)
    y <- describe_profile(x)
    y <- annotate_lines(x, "rel.R")
    y <- add_source_text(x, outside = TRUE)
    write_profile(profile_of_files(c("own.R", "missing.R")), path)
  })
  message <- tryCatch(add_source_text(x), message = identity)
  expect_s3_class(message, c("profile_message_source_files", "profile_message"), exact = FALSE)
  expect_equal(message[c("read", "left_out")], list(read = c("own.R", "R/deep.CPP"), left_out = "../rel.R"))
  # Only the first of many files are listed.
  dir.create("d")
  many <- c(sprintf("d/%02d.R", 1:20), sprintf("../%02d.R", 1:7))
  file.copy(rep("own.R", length(many)), many)
  expect_snapshot(y <- add_source_text(profile_of_files(many)))
})

test_that("there is no message if there is nothing to say", {
  folder <- local_folders()
  x <- profile_of_files(c("own.R", "../rel.R"))
  path <- withr::local_tempfile(fileext = ".html")
  expect_quiet(write_profile(mark_session(x), path))
  expect_quiet(add_source_text(mark_session(x)))
  expect_quiet(write_profile(x, path, source_text = FALSE))
  # Nothing was left out, and these do not publish whole files.
  expect_quiet(describe_profile(profile_of_files("own.R")))
  expect_quiet(annotate_lines(x, "own.R"))
  # No message for a folder that the user has named.
  expect_quiet(add_source_text(x, directory = ".."))
  expect_quiet(write_profile(profile_of_files(c("missing.R", "~/.Rprofile", "/etc/passwd")), path))
  expect_quiet(add_source_text(small_profile()))
})

test_that("`outside` is checked", {
  expect_error(add_source_text(small_profile(), outside = NA), "`outside`", class = "profile_error_argument")
})
