# tier: gate
# Files that the installed R writes, with all combinations of options: a new version of R may write content that no file
# in data/ contains.

test_that("what this R's Rprof() writes is read and comes back byte for byte", {
  skip_without_ticks()
  withr::local_options(keep.source = TRUE)
  code <- withr::local_tempfile(fileext = ".R")
  writeLines(c(
    "fib <- function(n) if (n < 2) { tick(); n } else fib(n - 1) + fib(n - 2)",
    "`an odd \"name\"` <- function() { tick(); sort(runif(5e3)) }",
    "`line",
    "feed` <- function() `an odd \"name\"`()",
    "held <- list(`a b` = function() fib(3), inner = list(f = function() `line",
    "feed`()))",
    "work <- function() {",
    "  held[[\"a b\"]]()",
    "  held$inner$f()",
    "  do.call(function(...) fib(4), list(1))",
    "  local(fib(3))",
    "  tryCatch(stop(\"no\"), error = function(e) base::Reduce(function(x, y) tick(), 1:3))",
    "  data.frame(x = lapply(1:3, tick), g = tick())",
    "}"
  ), code)
  env <- new.env()
  source(code, local = env, keep.source = TRUE)
  options <- expand.grid(memory = c(FALSE, TRUE), gc = c(FALSE, TRUE), line = c(FALSE, TRUE), filter = c(FALSE, TRUE))
  for (i in seq_len(nrow(options))) {
    o <- options[i, ]
    info <- paste(names(o), o, collapse = ", ")
    path <- withr::local_tempfile()
    utils::Rprof(
      path, interval = 0.9, memory.profiling = o$memory, gc.profiling = o$gc,
      line.profiling = o$line, filter.callframes = o$filter
    )
    only_given_ticks()
    env$work()
    utils::Rprof(NULL)

    x <- read_quietly(path)
    # Each leaf of `fib()`, each call of the function with the irregular name, and the code at the end of `work()`.
    expect_equal(nrow(x$samples), (3 + 5 + 3) + 1 + 2 + 7, info = info)
    expect_false(any(profile_problems(x)$lost), info = info)
    expect_equal(x$sources$.period, 900000, info = info)
    expect_equal(x$sources$.memory_profiling, o$memory, info = info)
    expect_equal(x$sources$.line_profiling, o$line, info = info)
    copy <- withr::local_tempfile()
    write_rprof(x, copy)
    expect_identical(file_bytes(copy), file_bytes(path), info = info)

    # summaryRprof() splits names with blanks, so only names without blanks are compared.
    theirs <- utils::summaryRprof(path)$by.total
    name <- gsub("\"", "", rownames(theirs))
    plain <- name %in% c("fib", "sort.default", "data.frame", "tryCatch", "rnorm")
    ours <- summary(x)$by_function
    expect_equal(
      round(ours$total_time[match(name[plain], ours$name)], 2), theirs$total.time[plain],
      info = info
    )
  }
})
