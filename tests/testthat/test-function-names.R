# tier: gate
# The names of functions that calls do not tell apart: methods, active bindings, and functions that are arguments. Their
# definition is read in the memory of a process (src/rust/reader/tests/reader/identity.rs tests damaged ones), or in
# the source files of a recording.

test_that("functions of a process have the names of their definition", {
  skip_without_processes()
  skip_if_not_installed("R6")
  pid <- local_r_process(process_code("names.R"))
  x <- wait_for_stack(pid, "Sys.sleep")
  expect_snapshot(writeLines(x$name))
})

# A recording of the functions of data/names.R.
recorded_names <- function(envir = parent.frame()) {
  code <- new.env(parent = envir)
  source(test_path("data", "names.R"), local = code, keep.source = TRUE)
  work <- code$work
  record_profile({ only_given_ticks(); work() }, interval = 0.9)
}

test_that("recorded functions have the names of their definition in the source file", {
  skip_without_ticks()
  skip_if_not_installed("R6")
  x <- recorded_names()
  expect_silent(validate_profile(x))
  expect_snapshot(writeLines(stacks(x)))
  renamed <- x$functions[x$functions$name != x$functions$system_name, ]
  expect_true(all(c("FUN", "<Anonymous>", "self$all", "counter$run") %in% renamed$system_name))
  expect_identical(anyDuplicated(x$functions[c("name", "system_name", "filename")]), 0L)
})

test_that("names say what they can: methods of S7, code that cannot be parsed, lines without a definition", {
  path <- withr::local_tempfile(fileext = ".out")
  folder <- withr::local_tempdir()
  broken <- file.path(folder, "broken.R")
  changed <- file.path(folder, "own.R")
  writeLines("f <- function( {", broken)
  writeLines(c("f <- function() {", "  g()", "}", "x <- g()", "list(a = function() g(), b = function() g(1))"), changed)
  writeLines(c(
    "line profiling: sample.interval=10000", paste("#File 1:", broken), paste("#File 2:", changed),
    '"print.ggplot2::ggplot" ',
    '"as.data.frame.shapes::Circle" ',
    '"stats::lm" ',
    '1#1 "FUN" "lapply" ',
    # Within `f`, at top level, and in a line that defines two functions.
    '2#2 "FUN" "lapply" ',
    '2#4 "FUN" "lapply" ',
    '2#5 "FUN" "lapply" ',
    '2#900 "FUN" "lapply" ',
    '2#2 "fun" 2#2 "f" '
  ), path)
  x <- read_rprof(path)
  x <- with_defined_names(add_source_text(add_packages(x), directory = folder))
  expect_silent(validate_profile(x))
  expect_setequal(x$functions$name, c(
    "print(ggplot2::ggplot)", "as.data.frame(shapes::Circle)", "stats::lm", "lapply", "FUN", "f", "FUN (own.R:5)",
    "fun"
  ))
  expect_identical(with_defined_names(x), x)
})

test_that("definitions are found by their lines, whatever surrounds them", {
  text <- function(...) paste0(c(...), "\n", collapse = "")
  found <- function(...) {
    rows <- definitions_in(text(...), seq_along(c(...)))
    name <- ifelse(is.na(rows$class), rows$name, paste0(rows$class, "$", rows$name))
    if (nrow(rows) > 0) paste0(name, " ", rows$first, "-", rows$last) else character()
  }
  expect_identical(found("f = function(x,", "  y) {", "}", "g <<- function() 1"), c("f 1-3", "g 4-4"))
  expect_identical(
    found("(function() 1) -> f", "'h' <- function(a = function() 2, b) NULL"), c("f 1-1", "h 2-2", "NA 2-2")
  )
  expect_identical(found("f <- compiler::cmpfun(function() 1)", "g <- memoise(function() 1)"), c("f 1-1", "NA 2-2"))
  expect_identical(found("x$f <- function() 1", "x[['f']] <- function() 1"), c("x$f 1-1", "NA 2-2"))
  expect_identical(
    found("method(area, shapes::Circle) <- function(x) 1", "S7::method(f, list(A, B)) <- function(x, y) 1"),
    c("area(shapes::Circle) 1-1", "f(A, B) 2-2")
  )
  expect_identical(
    found("A <- R6Class(public = list(f = function() 1, 2, g = 3), active = list(h = function() 1))"),
    c("A$f 1-1", "A$h 1-1")
  )
  expect_identical(
    found("G <- ggproto(NULL, Geom, draw = function(self) lapply(1, function(i) i))"), c("G$draw 1-1", "NA 1-1")
  )
  expect_identical(found("A$methods(list(f = function() 1))", "A$methods(g = function() 1)"), c("A$f 1-1", "A$g 2-2"))
  expect_identical(found("assign('f', function() 1)", "f(list(a = function() 1))", "x[, 1]"), c("f 1-1", "NA 2-2"))
  expect_identical(found("f <- function(", ")"), character())
  deep <- paste0(strrep("(", 2000), "1", strrep(")", 2000))
  expect_identical(found(deep, "f <- function() 1"), character())
})

test_that("methods of ggproto have their class if only one has a method of this name", {
  object <- function(class, ...) structure(list2env(list(...), parent = emptyenv()), class = c(class, "ggproto", "gg"))
  package <- new.env()
  f <- function() NULL
  package$GeomA <- object("GeomA", draw = f, set_up = f, super = f, x = 1)
  package$GeomB <- object("GeomB", set_up = f)
  package$Other <- list(draw = f)
  package$geom <- object("GeomC", draw = f)
  makeActiveBinding("Active", function() stop("not to be read"), package)
  own <- new.env()
  own$StatMine <- object("StatMine", compute = f, set_up = f)
  methods <- rbind(methods_in(package, "plots"), methods_in(own, ""))
  expect_setequal(
    paste0(methods$package, "::", methods$class, "$", methods$name),
    c("plots::GeomA$draw", "plots::GeomA$set_up", "plots::GeomB$set_up", "::StatMine$compute", "::StatMine$set_up")
  )
  path <- withr::local_tempfile(lines = c(
    "sample.interval=10000", '"draw" "geom$draw" "work" ', '"f" "geom$draw" "work" ', '"draw" "work" ',
    '"g" "set_up" "self$set_up" "work" ', '"compute" "stat$compute" ', '"set_up" "other" "self$set_up" ', '"draw" ',
    '"geom$draw" '
  ))
  x <- with_names_of_ggproto(add_packages(read_rprof(path)), methods)
  expect_silent(validate_profile(x))
  expect_identical(stacks(x), c(
    "GeomA$draw < geom$draw < work", "GeomA$draw < geom$draw < work", "draw < work", "g < set_up < self$set_up < work",
    "StatMine$compute < stat$compute", "set_up < other < self$set_up", "draw", "geom$draw"
  ))
  package_of <- function(name) unique(x$functions$.package[x$functions$name == name])
  expect_identical(package_of("GeomA$draw"), "plots")
  expect_identical(package_of("StatMine$compute"), NA_character_)
  expect_setequal(package_of("geom$draw"), c("ggplot2", NA))
  # Methods of this name of two packages.
  expect_identical(package_of("set_up"), NA_character_)
  expect_setequal(x$functions$system_name[x$functions$name == "GeomA$draw"], c("draw", "f"))
})

test_that("operators and methods with special names have their packages", {
  path <- withr::local_tempfile(lines = c(
    "sample.interval=10000", '"%in%" ', '"[.data.frame" "[" ', '"[[<-.data.frame" "[[<-" ', '"$<-.data.frame" "$<-" ',
    '"+.Date" ', '"[.factor" "[" ', '"is.na<-" ', '"(" '
  ))
  x <- add_packages(read_rprof(path))
  expect_identical(unique(x$functions$.package), "base")
})
