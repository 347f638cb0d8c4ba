# tier: gate
# The roots of R's garbage collector, as the table in src/rust/reader/src/heap/roots.rs lists them: each holds a large
# object that nothing else holds, and a snapshot knows by what it is held.

# Functions of C that keep an object of 40 MB in a way that R code cannot.
keeping_code <- c(
  "#define R_NO_REMAP", "#include <Rinternals.h>",
  "SEXP kept;",
  "static SEXP large(void) { SEXP x = Rf_allocVector(REALSXP, 5000000); REAL(x)[0] = 1; return x; }",
  "SEXP preserve(void) { R_PreserveObject(large()); return R_NilValue; }",
  "SEXP keep(void) { kept = large(); R_PreserveObject(kept); return R_NilValue; }",
  "SEXP weakly(SEXP key) { SEXP x = PROTECT(large());",
  "  SEXP ref = R_MakeWeakRef(key, x, R_NilValue, FALSE); UNPROTECT(1); return ref; }",
  "SEXP guard(SEXP call, SEXP env) { PROTECT(large()); Rf_eval(call, env); UNPROTECT(1); return R_NilValue; }",
  "SEXP allocate(SEXP call, SEXP env) { R_alloc(5000000, 8); Rf_eval(call, env); return R_NilValue; }",
  "SEXP set(void) { SEXP set = PROTECT(R_NewPreciousMSet(8)); R_PreserveInMSet(large(), set); R_PreserveObject(set);",
  "  UNPROTECT(1); return R_NilValue; }"
)

# Runs blocks of code, each of which calls `look()` while it keeps 40 MB. Returns the holders of so much, for each block.
holders_in <- function(..., library = NULL) {
  blocks <- as.list(substitute(list(...)))[-1]
  looks <- function(name) c(sprintf("look <- look_at('%s')", name), unlist(lapply(as.list(blocks[[name]])[-1], deparse)))
  result <- run_r(c(
    "library(profile)", "compiler::enableJIT(0)",
    if (!is.null(library)) sprintf("c_code <- dyn.load('%s')", library),
    "look_at <- function(name) function() {",
    "  found <- holders(snapshot_memory(), n = 1000)",
    "  found <- found[found$retained > 3.9e7 & !grepl(\"^(not R's heap|free cells of R)\", found$held_by), ]",
    "  cat(sprintf('%s: %s', name, found$held_by), sep = '\\n')",
    "}",
    unlist(lapply(names(blocks), looks))
  ))
  expect_ran(result)
  lines <- grep("^[a-z_]+: ", trimws(result$output), value = TRUE)
  split(sub("^[a-z_]+: ", "", lines), sub(": .*", "", lines))
}

# Expects that something was held by this, and that nothing had no holder.
expect_held <- function(held, by) {
  for (name in names(by)) {
    expect(any(startsWith(held[[name]], by[[name]])), paste0(name, " is held by ", paste(held[[name]], collapse = ", ")))
  }
  expect_no_match(unlist(held), "^no holder found")
}

test_that("the roots that R code can reach are known", {
  skip_without_snapshots()
  held <- holders_in(
    base = {
      options(kept = numeric(5e6))
      look()
      options(kept = NULL)
    },
    warnings = local({
      do.call(function(x) warning("expected"), list(numeric(5e6)))
      look()
    }),
    # Nothing is kept by what was before.
    nothing = {
      assign("last.warning", NULL, baseenv())
      TRUE
    },
    value = {
      invisible(numeric(5e6))
      look()
    },
    returned = local({
      f <- function() {
        on.exit(look())
        return(numeric(5e6))
      }
      f()
      NULL
    }),
    returned_by_code = local({
      f <- compiler::cmpfun(function() {
        on.exit(look())
        numeric(5e6)
      })
      f()
      NULL
    }),
    at_exit = local({
      f <- function() {
        do.call(on.exit, list(as.call(list(function(x) NULL, numeric(5e6)))), envir = environment())
        look()
      }
      f()
      NULL
    }),
    handler = local({
      make <- function() {
        kept <- numeric(5e6)
        function(...) kept
      }
      withCallingHandlers(look(), warning = make())
      NULL
    }),
    restart = local({
      make <- function() {
        kept <- numeric(5e6)
        function(...) kept
      }
      withRestarts(look(), mine = make())
      NULL
    }),
    call = local({
      f <- function(x) look()
      do.call("f", list(numeric(5e6)))
      NULL
    }),
    argument = local({
      f <- function(x) {
        length(x)
        rm(x)
        look()
      }
      f(numeric(5e6))
      NULL
    }),
    callee = local({
      make <- function() {
        kept <- numeric(5e6)
        function() look()
      }
      make()()
      NULL
    }),
    srcref = local({
      make <- function() {
        srcfile <- srcfilecopy("a.R", "x")
        srcfile$kept <- numeric(5e6)
        eval(parse(text = "function() {\n look()\n}", keep.source = TRUE, srcfile = srcfile))
      }
      make()()
      NULL
    }),
    protected = local({
      vapply(1:3, function(i) {
        if (i == 3) look()
        numeric(2e6)
      }, numeric(2e6))
      NULL
    }),
    operand = local({
      f <- compiler::cmpfun(function() numeric(5e6) + length(look()))
      f()
      NULL
    }),
    finalizer = local({
      watch <- function() {
        kept <- numeric(5e6)
        handle <- new.env(parent = emptyenv())
        reg.finalizer(handle, function(e) length(kept))
        handle
      }
      handle <- watch()
      look()
    }),
    device = local({
      pdf(NULL)
      dev.control("enable")
      plot(numeric(5e6), type = "n", axes = FALSE)
      look()
      dev.off()
      NULL
    })
  )
  expect_held(held, c(
    base = "base > $.Options", warnings = "C variables of R > $expected", value = ".Last.value", returned = "call of f()",
    returned_by_code = "call of f()", at_exit = "call of f()", handler = "call of withCallingHandlers()",
    restart = "call of withRestarts()", call = "call of", callee = "call of", srcref = "call of", protected = "protect stack",
    operand = "byte code stack", finalizer = "finalizers and weak references", device = "graphics device 2"
  ))
})

test_that("the roots that only C code can reach are known", {
  skip_without_snapshots()
  if (!has_compiler("CC")) skip("there is no compiler")
  dir <- withr::local_tempdir()
  writeLines(keeping_code, file.path(dir, "keeping.c"))
  withr::with_dir(dir, run_tool(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "keeping.c")))
  held <- holders_in(
    library = file.path(dir, "keeping.so"),
    protected = invisible(.Call(c_code$guard, quote(look()), globalenv())),
    allocated = invisible(.Call(c_code$allocate, quote(look()), globalenv())),
    weakly = {
      key <- new.env()
      ref <- .Call(c_code$weakly, key)
      rm(ref)
      look()
      rm(key)
    },
    variable = {
      invisible(.Call(c_code$keep))
      look()
    },
    preserved = {
      invisible(.Call(c_code$preserve))
      look()
    },
    set = {
      invisible(.Call(c_code$set))
      look()
    }
  )
  expect_held(held, c(
    protected = "protect stack", allocated = "call of look()", weakly = "finalizers and weak references", variable = "C variables of keeping.so",
    preserved = "C variables of R", set = "C variables of R"
  ))
})
