# tier: fast
# Text of source files and the figures of their lines, packages of functions.

test_that("text of files is collected", {
  x <- add_source_text(report(), directory = report_files())
  text <- x$.source_text
  expect_setequal(basename(text$filename), c("report.R", "sales.R"))
  for (i in seq_len(nrow(text))) {
    lines <- readLines(file.path(report_files(), basename(text$filename[[i]])))
    expect_equal(text$text[[i]], paste0(lines, "\n", collapse = ""))
  }
  expect_equal(text$from, c("file", "file"))
  expect_no_error(validate_profile(x))
  # Existing text is kept.
  x$.source_text$text[[1]] <- "mine\n"
  expect_identical(add_source_text(x, directory = report_files())$.source_text, x$.source_text)
})

test_that("text stays with a profile", {
  x <- add_source_text(report(), directory = report_files())
  both <- combine_profiles(x, report())
  expect_equal(annotate_lines(both, "sales.R")$text, annotate_lines(x, "sales.R")$text)
  left <- filter_profile(x, focus = "lm")
  expect_equal(left$.source_text, x$.source_text)
})

test_that("only source files are read", {
  folder <- withr::local_tempdir()
  path <- function(name) file.path(folder, name)
  writeLines(c("one", "two"), path("secret"))
  writeLines(c("one", "two"), path("key.pem"))
  writeBin(as.raw(c(65, 0, 66)), path("binary.R"))
  writeLines("x", path("gone.R"))
  writeLines("x <- 1", path("code.R"))
  dir.create(path("folder.R"))
  files <- path(c("secret", "key.pem", "binary.R", "missing.R", "folder.R", "code.R", ""))
  x <- report()
  x$functions$filename <- rep_len(files, nrow(x$functions))
  x$locations$line <- 1L
  x <- mark_session(x)
  expect_equal(add_source_text(x)$.source_text$filename, path("code.R"))
  if (.Platform$OS.type == "unix" && nzchar(Sys.which("mkfifo"))) {
    # Opening it would wait forever.
    system2("mkfifo", shQuote(path("pipe.R")))
    expect_equal(nrow(add_source_text(profile_of(path("pipe.R")))$.source_text), 0)
  }
})

test_that("text is UTF-8 with line feeds", {
  folder <- withr::local_tempdir()
  path <- file.path(folder, "code.R")
  text_of <- function(bytes) {
    writeBin(as.raw(bytes), path)
    add_source_text(profile_of(path))$.source_text$text
  }
  expect_equal(text_of(c(0x61, 0x0d, 0x0a, 0x62)), "a\nb\n")
  expect_equal(text_of(c(0xef, 0xbb, 0xbf, 0x61)), "a\n")
  expect_equal(text_of(c(0xc3, 0xa4)), "\u00e4\n")
  skip_if_not(l10n_info()[["UTF-8"]])
  expect_equal(text_of(0xe4), "\u00e4\n")
})

test_that("files that were changed later are marked", {
  path <- withr::local_tempfile(fileext = ".R", lines = c("a", "b"))
  x <- profile_of(path)
  x$sources$source_timestamp <- as.numeric(file.mtime(path)) + 10
  expect_false(add_source_text(x)$.source_text$changed)
  x$sources$source_timestamp <- as.numeric(file.mtime(path)) - 10
  expect_true(add_source_text(x)$.source_text$changed)
  expect_true(attr(annotate_lines(x, path), "changed"))
  x$sources$source_timestamp <- NA_real_
  expect_identical(add_source_text(x)$.source_text$changed, NA)
})

test_that("text is found in source references", {
  code <- "f <- function() {\n  1\n}\n"
  withr::defer(rm(list = "profile_test_f", envir = globalenv()))
  srcfile <- srcfilecopy("typed.R", strsplit(code, "\n")[[1]])
  expression <- parse(text = code, srcfile = srcfile, keep.source = TRUE)
  assign("profile_test_f", eval(expression[[1]][[3]], globalenv()), globalenv())
  text <- add_source_text(profile_of("typed.R"))$.source_text
  expect_equal(text$text, code)
  expect_equal(text$from, "srcref")
  # Invalid source references are ignored.
  odd <- list(1, "a", list(), structure(1:8, srcfile = 1), structure(1:8, srcfile = new.env()))
  for (srcref in odd) {
    f <- get("profile_test_f", globalenv())
    attr(f, "srcref") <- srcref
    assign("profile_test_f", f, globalenv())
    expect_equal(nrow(add_source_text(profile_of("typed.R"))$.source_text), 0)
  }
})

test_that("looking for source references runs no code", {
  names <- c("profile_test_active", "profile_test_lazy")
  withr::defer(rm(list = names, envir = globalenv()))
  ran <- character()
  makeActiveBinding(names[[1]], function() ran <<- c(ran, "active"), globalenv())
  delayedAssign(names[[2]], ran <- c(ran, "lazy"), assign.env = globalenv())
  add_source_text(profile_of("typed.R"))
  expect_equal(ran, character())
})

test_that("the text of a package is divided into its files", {
  lines <- c("#line 1 \"R/a.R\"", "a <- 1", "b <- 2", "#line 1 \"R/b.R\"", "c <- 3")
  expect_equal(split_text(lines, "all.R"), list(`R/a.R` = "a <- 1\nb <- 2", `R/b.R` = "c <- 3"))
  expect_equal(split_text(c("#line 3 \"R/a.R\"", "x"), ""), list(`R/a.R` = "\n\nx"))
  expect_equal(split_text("x", "own.R"), list(own.R = "x"))
  expect_null(split_text("x", ""))
  expect_null(split_text(character(), "a.R"))
})

test_that("packages are known by name, file, library or namespace", {
  expect_equal(
    package_in_name(c("dplyr::filter", "a:::b", "std::sort", "::x", "x::", "f", NA), c(FALSE, FALSE, TRUE, FALSE, FALSE, FALSE, FALSE)),
    c("dplyr", NA, NA, NA, NA, NA, NA)
  )
  folder <- withr::local_tempdir()
  dir.create(file.path(folder, "source/R"), recursive = TRUE)
  writeLines("Package: mine", file.path(folder, "source/DESCRIPTION"))
  expect_equal(
    package_of_file(c(
      "/tmp/Rtmp1/R.INSTALL1a2b/dplyr/R/filter.R", "C:\\R\\library\\abc\\R\\x.r", "stats/R/lm.R",
      file.path(folder, "source/R/a.R"), "/home/me/project/R/a.R", "/home/me/a.R", "", NA
    ), TRUE, NULL),
    c("dplyr", "abc", "stats", "mine", NA, NA, NA, NA)
  )
  x <- add_packages(report())
  functions <- x$functions
  known <- rlang::set_names(functions$.package, functions$name)
  expect_equal(known[["lm.fit"]], "stats")
  expect_equal(known[["paste"]], "base")
  # Functions in files of the user.
  expect_true(all(is.na(functions$.package[functions$filename != ""])))
  expect_equal(is.na(functions$.package), is.na(functions$.package_from))
  expect_true(is.na(known[["FUN"]]))
  # Several packages have the function.
  by_namespace <- functions[functions$.package_from %in% "namespace", ]
  for (i in seq_len(nrow(by_namespace))) {
    expect_true(exists(by_namespace$name[[i]], asNamespace(by_namespace$.package[[i]]), inherits = FALSE))
  }
  expect_no_error(validate_profile(x))
})

test_that("a function of the user is not taken for one of a package", {
  withr::defer(rm(list = c("lm", "lm.fit"), envir = globalenv()))
  for (name in c("lm", "lm.fit")) assign(name, `environment<-`(function() 1, globalenv()), globalenv())
  functions <- add_packages(report())$functions
  expect_true(is.na(functions$.package[functions$name == "lm"]))
  # Functions of packages do not call it.
  rm(list = "lm", envir = globalenv())
  functions <- add_packages(report())$functions
  expect_identical(functions$.package[functions$name == "lm.fit"], "stats")
})

test_that("packages that the user set are kept", {
  x <- report()
  x$functions$.package <- ifelse(x$functions$name == "report", "mine", NA)
  functions <- add_packages(x)$functions
  expect_equal(functions$.package[functions$name == "report"], "mine")
  expect_equal(functions$.package[functions$name == "lm"], "stats")
  tree <- call_tree(x, "package")
  expect_equal(tree$name[[1]], "mine")
})

test_that("what a process knows about packages is kept, and completed for other functions", {
  x <- report()
  from <- c(lm = "process", paste = "process")
  x$functions$.package <- c(lm = NA, paste = "mine")[x$functions$name]
  x$functions$.package_from <- from[x$functions$name]
  known <- function(x, column) rlang::set_names(x$functions[[column]], x$functions$name)[c("lm", "paste", "lm.fit")]
  y <- add_packages(x)
  expect_equal(known(y, ".package"), c(lm = NA, paste = "mine", lm.fit = "stats"))
  expect_equal(known(y, ".package_from"), c(from, lm.fit = "namespace"))
  # Views by package look for the packages of the other functions, too.
  expect_true("stats" %in% summary(x, by = "package")$package)
  expect_true("stats" %in% compare_profiles(x, x, by = "package")$package)
})

test_that("packages are columns of the data model", {
  x <- add_packages(report())
  both <- combine_profiles(x, x)
  expect_equal(both$functions, x$functions)
  x$functions$.package <- 1
  expect_error(validate_profile(x), class = "profile_error_invalid")
})

test_that("functions that only call others can be hidden", {
  left <- as_tibble(filter_profile(report(), hide_plumbing = TRUE))
  expect_false(any(c("lapply", ".External2", "eval") %in% left$name))
  # Functions that are arguments of others may be the user's.
  expect_true(all(left$filename[left$name == "FUN"] != ""))
})

test_that("arguments are checked", {
  x <- report()
  expect_snapshot(error = TRUE, {
    annotate_lines(x, "other.R")
    annotate_lines(x, ".R")
    annotate_lines(x, 1)
    annotate_lines(read_rprof(test_path("data/rprof/basic_plain.out")))
    add_source_text(x, directory = "no/such/folder")
    add_packages(1)
  })
})

test_that("different code with the same name has no text", {
  withr::defer(rm("parsed_one", "parsed_two", envir = globalenv()))
  eval(parse(text = "parsed_one <- function() {\n  1\n}", keep.source = TRUE), globalenv())
  expect_match(text_of_srcrefs("<text>", TRUE, NULL)$text, "parsed_one", fixed = TRUE)
  eval(parse(text = "parsed_two <- function() {\n  2\n}", keep.source = TRUE), globalenv())
  expect_identical(nrow(text_of_srcrefs("<text>", TRUE, NULL)), 0L)
})
