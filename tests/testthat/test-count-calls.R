# tier: gate
# `record_profile(count = )`: exact numbers of calls, and that nothing else changes.

# Code of the global environment, in a fresh process: `counts(expr, ...)` has what was counted.
in_global <- function(...) {
  ended <- run_r(c(
    "library(profile)",
    "counts <- function(x) { s <- summary(x, type = 'calls')$by_function; s <- s[s$self > 0, ]; ",
    "  s <- s[order(s$name), ]; cat(paste0(s$name, '=', s$self), '\\n') }",
    ...
  ))
  expect_ran(ended)
  ended$output
}

# Evaluates code as that of a user: tests are code of the package.
as_user <- function(code, ...) eval(substitute(code), rlang::env(globalenv(), record_profile = record_profile, ...))

count_of_calls <- function(x) {
  figures <- summary(x, type = "calls")$by_function
  figures <- figures[figures$self > 0, ]
  rlang::set_names(figures$self, figures$name)[order(figures$name)]
}

test_that("calls are counted exactly, and functions are as before", {
  x <- as_user({
  f <- function(x) x + 1
  g <- function(n) for (i in seq_len(n)) f(i)
  fib <- function(n) if (n < 2) n else fib(n - 1) + fib(n - 2)
  fails <- function() stop("no")
  never <- function() NULL
  empty <- function() {}
  before <- list(f, g, fib, fails, never, empty)
  x <- record_profile(
    {
      g(1000)
      fib(10)
      for (i in 1:3) try(fails(), silent = TRUE)
      vapply(1:7, f, 0)
      do.call(f, list(1))
      do.call("f", list(1))
      for (i in 1:5) empty()
    },
    count = c("f", "g", "fib", "fails", "never", "empty")
  )
  stopifnot(mapply(identical, before, list(f, g, fib, fails, never, empty)))
  x
  })
  expect_identical(count_of_calls(x), c(empty = 5, f = 1009, fails = 3, fib = 177, g = 1))
  expect_no_error(validate_profile(x))
})

# Takes ticks in a function of its own.
busy <- function(ticks) tick(ticks)
environment(busy) <- rlang::env(globalenv(), tick = tick)

test_that("the summary has the time of each call", {
  skip_without_ticks()
  x <- as_user(
    {
      f <- function() busy(2)
      g <- function() for (i in 1:5) f()
      record_profile({ only_given_ticks(); g() }, interval = 0.9, count = TRUE)
    },
    only_given_ticks = only_given_ticks, busy = busy
  )
  figures <- summary(x)$by_function
  f <- figures[figures$name == "f", ]
  expect_equal(c(f$total, f$calls, f$time_per_call), c(10, 5, 10 * 0.9 / 5))
  expect_identical(figures$calls[figures$name == "busy"], 5)
  expect_identical(summary(x, by = "function"), figures)
  expect_true(is.na(figures$calls[figures$name == "tick"]))
  digest <- format(describe_profile(x))
  expect_match(digest, "^ +calls +each  function whose calls were counted$", all = FALSE)
  expect_match(digest, "^ +5 +1.80s  f$", all = FALSE)
  expect_identical(as.list(describe_profile(x))$calls$name, c("busy", "f", "g"))
  without <- summary(read_rprof(rprof_path("basic_all.out")))$by_function
  expect_false(any(c("calls", "time_per_call") %in% names(without)))
})

test_that("a counted function does the same", {
  same <- function(f, use) {
    wrapped <- counting_function(f)
    expect_identical(use(wrapped$counting), use(f))
    expect_identical(attributes(wrapped$counting), attributes(f))
    expect_identical(formals(wrapped$counting), formals(f))
    .External(profile_count, wrapped$counter)
  }
  expect_equal(same(function(x, y) c(missing(x), missing(y)), function(f) f(1)), 1)
  expect_equal(same(function(x, ...) as.list(match.call())[-1], function(f) f(1, b = 2)), 1)
  expect_equal(same(function(x) substitute(x), function(f) f(a + b)), 1)
  expect_equal(same(function(n) if (n <= 0) 0 else Recall(n - 1), function(f) f(3)), 4)
  expect_equal(same(function() invisible(5), function(f) withVisible(f())), 1)
  expect_equal(same(function(x) nargs(), function(f) f(1)), 1)
  expect_equal(same(function(x) NULL, function(f) f()), 1)
  expect_equal(same(function() {}, function(f) f()), 1)
  expect_equal(same(function(x) parent.frame(), function(f) local(identical(f(1), environment()))), 1)
  ends <- function() {
    seen <<- "0"
    on.exit(seen <<- c(seen, "a"))
    on.exit(seen <<- c(seen, "b"), add = TRUE)
    seen
  }
  seen <- NULL
  expect_equal(same(ends, function(f) c(f(), seen)), 1)
  generic <- function(x) UseMethod("generic")
  generic.default <- function(x, ...) list(x, nargs())
  expect_equal(same(generic, function(f) f(2)), 1)
  expect_equal(same(structure(function(x) x, class = "callable", note = "n"), function(f) unclass(f)(2)), 1)
  expect_equal(same(function() conditionCall(tryCatch(stop("e"), error = identity)), function(f) class(f())), 1)
  # A function that it makes is not counted.
  made <- counting_function(function() function() 1)
  for (i in 1:3) made$counting()()
  expect_equal(.External(profile_count, made$counter), 3)
})

test_that("lines are those of the function, in blocks and without", {
  skip_without_ticks()
  code <- c(
    "blocks <- function() {", "  busy(1)", "  if (TRUE) {", "    busy(2)", "  }", "}",
    "plain <- function() busy(3)",
    "call <- function() {", "  blocks()", "  plain()", "}"
  )
  env <- rlang::env(globalenv(), busy = busy, only_given_ticks = only_given_ticks, record_profile = record_profile)
  file <- withr::local_tempfile(lines = code, fileext = ".R")
  sys.source(file, env, keep.source = TRUE)
  recorded <- function(count) {
    env$count <- count
    x <- evalq(record_profile({ only_given_ticks(); call() }, interval = 0.9, count = count), env)
    lines <- summary(x)$by_line
    lines <- lines[lines$filename == file, ]
    lines[order(lines$line), c("line", "total")]
  }
  without <- recorded(FALSE)
  expect_equal(without$total[match(c(2, 4, 7), without$line)], c(1, 2, 3))
  expect_identical(recorded(c("blocks", "plain", "call")), without)
})

test_that("all functions of the user are counted, and none of others", {
  output <- in_global(
    "f <- function(x) x", "g <- function(x) { h <- function() f(x); h(); h() }", "number <- 1",
    "makeActiveBinding('active', function() f(1), globalenv())",
    "sd2 <- stats::sd", "delayedAssign('lazy', stop('forced'))",
    "e <- new.env(); local({ inner <- function() { f(1); g(2) }; counts(record_profile({ inner(); median(1:3) }, count = TRUE)) }, e)",
    "outer <- function(callback = function() f(3), value = stop('forced')) {",
    "  mine <- function() callback()",
    "  counts(record_profile(mine(), count = TRUE))",
    "}",
    "outer()",
    "cat(identical(body(f), quote(x)), identical(body(stats::sd), body(sd2)))"
  )
  expect_identical(output, c("f=3 g=1 inner=1 ", "f=1 mine=1 ", "TRUE TRUE"))
})

test_that("functions are restored after errors and interrupts, and what the expression has defined is kept", {
  env <- rlang::env(globalenv(), record_profile = record_profile)
  evalq({
    f <- function() 1
    before <- f
  }, env)
  expect_error(evalq(record_profile({ f(); stop("failed") }, count = "f"), env), "failed")
  expect_identical(env$f, env$before)
  expect_identical(count_of_calls(last_profile()), c(f = 1))
  tryCatch(
    evalq(record_profile({ f(); f(); rlang::interrupt() }, count = "f"), env),
    interrupt = function(condition) NULL
  )
  expect_identical(env$f, env$before)
  expect_identical(count_of_calls(last_profile()), c(f = 2))
  x <- evalq(record_profile({ f(); f <- function() 2; f() }, count = "f"), env)
  expect_identical(env$f(), 2)
  expect_identical(count_of_calls(x), c(f = 1))
  # Code that was kept counts no calls of the next recording, and remains usable.
  evalq({ f <- before; x <- record_profile({ kept <- f; f() }, count = "f"); y <- record_profile({ kept(); f() }, count = "f") }, env)
  expect_identical(count_of_calls(env$y), c(f = 1))
  expect_identical(env$kept(), 1)
})

test_that("counted functions work in other processes, in files and in forks", {
  f <- eval(quote(function(x) x + 1), globalenv())
  counted <- counting_function(f)
  path <- withr::local_tempfile()
  saveRDS(counted$counting, path)
  expect_identical(readRDS(path)(1), 2)
  expect_identical(unserialize(serialize(counted$counting, NULL))(2), 3)
  expect_match(deparse(counted$counting), "0L[[1L]]", fixed = TRUE, all = FALSE)
  expect_true(identical(counted$counting, counted$counting))
  utils::capture.output(utils::str(counted$counting), print(counted$counting))
  expect_equal(.External(profile_count, counted$counter), 0)
  ended <- run_r(c(paste0("f <- readRDS(", deparse(path), ")"), "cat(f(1), 'profile' %in% loadedNamespaces())"))
  expect_ran(ended)
  expect_identical(ended$output, "2 FALSE")
  skip_on_os("windows")
  x <- as_user({
    f <- function(x) x + 1
    record_profile(stopifnot(identical(parallel::mclapply(1:4, f, mc.cores = 2), as.list(c(2, 3, 4, 5)))), count = "f")
  })
  expect_false("calls" %in% x$sample_values$type)
})

test_that("what cannot be counted is an error with a reason", {
  memoised <- structure(as_user(function() 1), class = c("memoised", "function"))
  expect_snapshot(error = TRUE, {
    record_profile(1, count = "sum")
    record_profile(1, count = "no_such_function")
    record_profile(1, count = "memoised")
    record_profile(1, count = 1)
    record_profile(1, count = character())
  })
  expect_error(record_profile(1, count = "sd"), "belongs to the package stats", class = "profile_error_argument")
  output <- in_global(
    "setGeneric('area', function(o) standardGeneric('area')); setClass('sq', representation(s = 'numeric'))",
    "side <- function(o) o@s", "invisible(setMethod('area', 'sq', function(o) side(o)^2))",
    "e <- tryCatch(record_profile(1, count = 'area'), error = identity); cat(class(e)[[1]], '\\n')",
    "counts(record_profile(area(new('sq', s = 2)), count = TRUE))"
  )
  expect_identical(utils::tail(output, 2), c("profile_error_argument ", "side=1 "))
})

test_that("functions are not changed where they are hashed", {
  skip_if_not_installed("knitr")
  folder <- withr::local_tempdir()
  withr::local_dir(folder)
  text <- c(
    "```{r, cache = TRUE, error = TRUE}", "f <- function() 1", "profile::record_profile(f(), count = 'f')", "```",
    "```{r, error = TRUE}", "x <- profile::record_profile(f(), count = 'f')", "'calls' %in% x$sample_values$type", "```"
  )
  output <- knitr::knit(text = text, quiet = TRUE, envir = rlang::env(globalenv()))
  expect_match(output, "Calls cannot be counted here: the cache of knitr", fixed = TRUE)
  expect_match(output, "## [1] TRUE", fixed = TRUE)
})

test_that("functions of a package that is being developed are counted", {
  skip_if_not_installed("pkgload")
  folder <- withr::local_tempdir()
  dir.create(file.path(folder, "R"))
  writeLines(c("Package: dev", "Version: 1.0", "Title: T", "Description: D.", "License: MIT"), file.path(folder, "DESCRIPTION"))
  writeLines(c("export(f)", "S3method(print, dev)"), file.path(folder, "NAMESPACE"))
  writeLines(c(
    "f <- function() { g(); g() }", "g <- function() 1", "print.dev <- function(x, ...) invisible(x)",
    ".onLoad <- function(libname, pkgname) NULL"
  ), file.path(folder, "R", "code.R"))
  output <- in_global(
    paste0("pkgload::load_all(", deparse(folder), ", quiet = TRUE)"),
    "mine <- function() { f(); print(structure(1, class = 'dev')) }",
    "counts(record_profile(mine(), count = TRUE))",
    "counts(record_profile(mine(), count = c('f', 'mine')))",
    "ns <- asNamespace('dev'); cat(length(body(ns$f)), length(body(ns$g)), bindingIsLocked('f', ns), bindingIsLocked('g', ns))"
  )
  expect_identical(output, c("f=1 g=2 mine=1 print.dev=1 ", "f=1 mine=1 ", "3 1 TRUE TRUE"))
})

test_that("numbers of calls are kept in files, and added up", {
  x <- as_user({
    f <- function() 1
    record_profile(for (i in 1:10) f(), count = "f")
  })
  both <- combine_profiles(x, x)
  expect_identical(count_of_calls(both), c(f = 20))
  path <- withr::local_tempfile(fileext = ".pb.gz")
  write_pprof(x, path)
  expect_identical(count_of_calls(read_pprof(path)), c(f = 10))
  expect_identical(count_of_calls(filter_profile(x, focus = "^f$")), c(f = 10))
})
