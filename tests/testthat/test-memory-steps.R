# tier: gate
# The names of steps from an object to what it holds: each step is what R's own function for this part returns.

# Makes an external pointer, and returns its parts.
pointer_code <- c(
  "#define R_NO_REMAP", "#include <Rinternals.h>",
  "SEXP make(SEXP tag, SEXP kept) { return R_MakeExternalPtr(0, tag, kept); }",
  "SEXP tag(SEXP x) { return R_ExternalPtrTag(x); }",
  "SEXP kept(SEXP x) { return R_ExternalPtrProtected(x); }"
)

# Runs `code`, which assigns objects to variables, and takes a snapshot. Each of `parts` is a call that returns a vector
# of numbers, whose length no other one has. Expects that its path is the name of the part.
expect_paths <- function(code, parts, library = NULL) {
  file <- withr::local_tempfile()
  deparsed <- vapply(parts, function(part) paste(deparse(part), collapse = "\n"), "")
  result <- run_r(c(
    "library(profile)", "compiler::enableJIT(0)",
    if (!is.null(library)) sprintf("c_code <- dyn.load('%s')", library),
    "next_size <- 10000", "large <- function() numeric(next_size <<- next_size + 100)",
    unlist(lapply(as.list(code)[-1], deparse)),
    "x <- snapshot_memory()",
    sprintf("lengths <- c(%s)", paste0("length(", deparsed, ")", collapse = ", ")),
    sprintf("saveRDS(list(x = x, lengths = lengths), '%s')", file)
  ))
  expect_ran(result)
  found <- readRDS(file)
  expect_false(anyDuplicated(found$lengths) > 0)
  paths <- paths_in(found$x)
  paths <- paths[endsWith(paths$path, " > numeric"), ]
  at <- match(48 + 8 * found$lengths, paths$bytes)
  expect_identical(unname(sub(" > numeric$", "", paths$path[at])), names(parts))
}

test_that("elements, variables and attributes have their names", {
  skip_without_snapshots()
  code <- quote({
    elements <- list(large(), a = large())
    code <- as.expression(list(a = large(), large()))
    pairs <- pairlist(a = large(), large())
    column <- data.frame(id = 1:2)
    column$of <- list(large(), 1)
    number <- structure(1:3, note = large())
    table <- new.env()
    table$a <- large()
    attr(table, "note") <- large()
    plain <- new.env(hash = FALSE)
    plain$a <- large()
    active <- new.env()
    makeActiveBinding("a", local({
      kept <- large()
      function() kept
    }), active)
    Model <- methods::setClass("Model", representation(weights = "numeric"))
    model <- Model(weights = large())
    Numbers <- methods::setClass("Numbers", contains = "numeric", representation(more = "numeric"))
    numbers <- Numbers(c(1, 2), more = large())
  })
  expect_paths(code, c(
    "globalenv > $elements > [[*]]" = quote(elements[[1]]), "globalenv > $elements > $a" = quote(elements$a),
    "globalenv > $code > $a" = quote(code$a), "globalenv > $code > [[*]]" = quote(code[[2]]),
    "globalenv > $pairs > $a" = quote(pairs$a), "globalenv > $pairs > [[*]]" = quote(pairs[[2]]),
    "globalenv > $column <data.frame> > $of > [[*]]" = quote(column$of[[1]]),
    "globalenv > $number > attr \"note\"" = quote(attr(number, "note")),
    "globalenv > $table > $a" = quote(table$a), "globalenv > $table > attr \"note\"" = quote(attr(table, "note")),
    "globalenv > $plain > $a" = quote(plain$a), "globalenv > $active > $a() > closure env > $kept" = quote(active$a),
    "globalenv > $model <Model> > attr \"weights\"" = quote(model@weights),
    "globalenv > $numbers <Numbers> > attr \"more\"" = quote(attr(numbers, "more"))
  ))
})

test_that("the parts of functions, promises and environments have their names", {
  skip_without_snapshots()
  code <- quote({
    make <- function() {
      a <- large()
      function(x) NULL
    }
    f <- make()
    attr(f, "note") <- large()
    default <- constant <- compiled <- function(x = 1) NULL
    formals(default)$x <- large()
    body(constant) <- call("length", large())
    body(compiled) <- call("length", large())
    compiled <- compiler::cmpfun(compiled)
    outer <- new.env()
    outer$a <- large()
    inner <- new.env(parent = outer)
    waits <- new.env()
    from <- new.env()
    from$a <- large()
    delayedAssign("x", a, eval.env = from, assign.env = waits)
    rm(outer, from)
    coded <- new.env()
    do.call(delayedAssign, list("x", call("length", large()), assign.env = coded))
    done <- new.env()
    delayedAssign("x", large(), assign.env = done)
    force(done$x)
    dots <- (function(...) environment())(a = large())
    with(dots, ..1)
    code <- call("f", large())
  })
  expect_paths(code, c(
    "globalenv > $f() > closure env > $a" = quote(environment(f)$a),
    "globalenv > $f() > attr \"note\"" = quote(attr(f, "note")),
    "globalenv > $default() > in code" = quote(formals(default)$x),
    "globalenv > $constant() > in code" = quote(body(constant)[[2]]),
    "globalenv > $compiled() > in code" = quote(body(compiled)[[2]]),
    "globalenv > $inner > parent env > $a" = quote(parent.env(inner)$a),
    "globalenv > $waits > $x > promise env > $a" = quote(waits$x),
    "globalenv > $coded > $x > in code" = quote(substitute(x, coded)[[2]]),
    "globalenv > $done > $x" = quote(done$x), "globalenv > $dots > $..." = quote(with(dots, ..1)),
    "globalenv > $code > in code" = quote(code[[2]])
  ))
})

test_that("a weak reference has a value and a finalizer", {
  skip_without_snapshots()
  code <- quote({
    key <- new.env()
    key$a <- large()
    both <- rlang::new_weakref(key, value = large(), finalizer = local({
      kept <- large()
      function(x) kept
    }))
    of_both <- next_size
    of_list <- rlang::new_weakref(key, value = list(a = large()))
    # Only R's list of weak references has these.
    (function() {
      kept <- large()
      reg.finalizer(key, function(x) kept)
    })()
    of_finalizer <- next_size
    invisible(rlang::new_weakref(key, value = list(a = large())))
    of_value <- next_size
    .Last.value <- NULL
  })
  expect_paths(code, c(
    "globalenv > $key > $a" = quote(rlang::wref_key(both)$a),
    "globalenv > $both > value" = quote(rlang::wref_value(both)),
    "globalenv > $both > finalizer > closure env > $kept" = quote(numeric(of_both)),
    "globalenv > $of_list > value > $a" = quote(rlang::wref_value(of_list)$a),
    "finalizers and weak references > finalizer > closure env > $kept" = quote(numeric(of_finalizer)),
    "finalizers and weak references > value > $a" = quote(numeric(of_value))
  ))
})

test_that("an external pointer has a tag and what it protects", {
  skip_without_snapshots()
  if (!has_compiler("CC")) skip("there is no compiler")
  dir <- withr::local_tempdir()
  writeLines(pointer_code, file.path(dir, "pointer.c"))
  withr::with_dir(dir, run_tool(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "pointer.c")))
  code <- quote({
    pointer <- .Call(c_code$make, large(), list(a = large()))
    attr(pointer, "note") <- large()
  })
  expect_paths(code, library = file.path(dir, "pointer.so"), c(
    "globalenv > $pointer > pointer tag" = quote(.Call(c_code$tag, pointer)),
    "globalenv > $pointer > kept by pointer > $a" = quote(.Call(c_code$kept, pointer)$a),
    "globalenv > $pointer > attr \"note\"" = quote(attr(pointer, "note"))
  ))
})
