# tier: gate
# Lines of functions without source references.

skip_without_positions <- function() {
  skip_without_ticks()
  skip_without_native()
}

# ---- All positions of functions ----------------------------------------------------

functions <- list(
  base = c(
    "lapply", "sapply", "merge.data.frame", "data.frame", "[.data.frame", "tapply", "mapply", "match.arg",
    "format.Date", "Reduce", "by.data.frame", "outer"
  ),
  stats = c("lm", "glm", "model.frame.default", "aggregate.data.frame", "nls", "optim", "reshape", "predict.lm"),
  dplyr = c("mutate.data.frame", "group_by.data.frame", "across"),
  data.table = c("[.data.table", "melt.data.table", "fread")
)

# The lines of the copy at each position of the original, by R's own disassembler and the names of instructions. Code is
# identified by the numbers of the constants that lead to it.
lines_by_disassembly <- function(original, copy) {
  found <- list()
  paths <- character()
  add <- function(one, other, path) {
    paths <<- union(paths, path)
    index <- Filter(function(constant) inherits(constant, "srcrefsIndex"), other$constants)[[1]]
    for (position in seq_along(one$code)) {
      srcref <- unclass(index)[[position]]
      line <- if (is.na(srcref)) NA_integer_ else as.integer(other$constants[[srcref + 1]][[1]])
      key <- paste(match(path, paths) - 1, position - 1)
      found[[key]] <<- c(found[[key]], line)
    }
    creates <- which(vapply(one$code, function(word) as.character(word) %in% c("MAKEPROM.OP", "MAKECLOSURE.OP"), NA))
    for (position in creates + 1) {
      number <- one$code[[position]]
      inner <- list(one$constants[[number + 1]], other$constants[[other$code[[position]] + 1]])
      inner <- lapply(inner, code_in_constant)
      if (!is.null(inner[[1]])) add(inner[[1]], inner[[2]], paste(path, number))
    }
  }
  add(disassembled(original), disassembled(copy), "")
  found
}

disassembled <- function(f) parts_of_code(.Internal(disassemble(.Internal(bodyCode(f)))))

# Promises were disassembled with the function. Functions are a list of the formals and the code.
code_in_constant <- function(constant) {
  if (!is.list(constant)) {
    NULL
  } else if (identical(constant[[1]], as.name(".Code"))) {
    parts_of_code(constant)
  } else if (typeof(constant[[2]]) == "bytecode") {
    parts_of_code(.Internal(disassemble(constant[[2]])))
  }
}

parts_of_code <- function(parts) list(code = compiler:::bcDecode(parts[[2]]), constants = parts[[3]])

test_that("each position has the line of a copy with references, or is ambiguous", {
  skip_without_native()
  for (package in Filter(function(name) requireNamespace(name, quietly = TRUE), names(functions))) {
    for (name in functions[[package]]) {
      original <- get0(name, asNamespace(package))
      if (!is.function(original)) next
      found <- recompiled(original, "<a test>", Inf)
      lines <- rust(rust_lines_compared(original, found$copy, creators()), NULL)
      expect_false(is.null(lines), label = name)
      known <- lines_by_disassembly(original, found$copy)
      key <- paste(lines$code, lines$position)
      expect_setequal(key, names(known))
      expected <- vapply(known[key], function(all) if (length(unique(all)) == 1) all[[1]] else NA_integer_, 1L)
      expect_identical(lines$line, unname(expected), label = name)
      # Positions that are ambiguous belong to promises, and are few.
      expect_gt(mean(!is.na(lines$line)), 0.8, label = name)
    }
  }
})

# ---- Given ticks -------------------------------------------------------------------

# A function of package stats or base calls `tick()` by a function that is an argument.
calls <- list(
  lapply = function(f) f(1:2, function(x) tick()),
  sapply = function(f) f(1:2, function(x) tick()),
  vapply = function(f) f(1:2, function(x) { tick(); 1 }, 1),
  mapply = function(f) f(function(x, y) tick(), 1:2, 3:4),
  Map = function(f) f(function(x) tick(), 1:2),
  Reduce = function(f) f(function(x, y) { tick(); x + y }, 1:3),
  Filter = function(f) f(function(x) { tick(); TRUE }, 1:2),
  outer = function(f) f(1:2, 1:2, function(x, y) { tick(); x + y }),
  tapply = function(f) f(1:4, c(1, 1, 2, 2), function(x) tick()),
  apply = function(f) f(matrix(1:4, 2), 1, function(x) tick()),
  tryCatch = function(f) f({ tick(); stop("no") }, error = function(e) tick()),
  withCallingHandlers = function(f) {
    f({ warning("no"); tick() }, warning = function(w) { tick(); tryInvokeRestart("muffleWarning") })
  },
  do.call = function(f) f(function(x) tick(), list(1)),
  by.data.frame = function(f) f(data.frame(x = 1:4), c(1, 1, 2, 2), function(x) tick()),
  aggregate.data.frame = function(f) f(data.frame(x = 1:4), list(g = c(1, 1, 2, 2)), function(x) { tick(); 1 }),
  lm = function(f) f(y ~ ticking(x), data = data.frame(x = 1:4, y = c(1, 3, 2, 4))),
  model.frame.default = function(f) f(y ~ ticking(x), data = data.frame(x = 1:4, y = 1:4)),
  optimize = function(f) f(function(x) { tick(); x^2 }, c(-1, 1), tol = 0.5),
  uniroot = function(f) f(function(x) { tick(); x }, c(-1, 2), tol = 0.5),
  optim = function(f) f(1, function(x) { tick(); x^2 }, method = "BFGS", control = list(maxit = 1)),
  integrate = function(f) f(function(x) { tick(); x }, 0, 1),
  nls = function(f) f(y ~ a * ticking(x), data = data.frame(x = 1:4, y = c(1, 2.1, 2.9, 4)), start = list(a = 2)),
  ave = function(f) f(1:4, c(1, 1, 2, 2), FUN = function(x) { tick(); x })
)

ticking <- function(x) {
  tick()
  x
}

# The places of the frames of each sample that are in a file.
places_in <- function(x, file) {
  rows <- match(x$sample_locations$location_id, x$locations$location_id)
  functions <- match(x$locations$function_id[rows], x$functions$function_id)
  is_there <- x$functions$filename[functions] == file
  # What calls say: of code in a file, other names are known.
  paste(x$sample_locations$sample_id, x$functions$system_name[functions], x$locations$line[rows])[is_there]
}

text_of <- function(x, file) {
  text <- x$.source_text$text[x$.source_text$filename == file]
  if (length(text) == 1) text else NA_character_
}

record_ticks <- function(code, f) {
  record_profile({ only_given_ticks(); code(f) }, interval = 0.9)
}

test_that("frames have the lines that R's profiler writes for a copy with references", {
  skip_without_positions()
  with_lines <- 0
  for (name in names(calls)) {
    original <- get0(name, asNamespace("stats"))
    package <- environmentName(environment(original))
    file <- paste0("<", package, "::", name, ">")
    # The name of the variable is the name of the frame.
    code <- function(f) calls[[name]](f)
    x <- record_ticks(code, original)
    path <- withr::local_tempfile(fileext = ".R")
    writeLines(deparse(original), path)
    expect_true(text_of(x, file) %in% c(NA, paste0(deparse(original), "\n", collapse = "")), label = name)
    copy <- compiler::cmpfun(eval(parse(path, keep.source = TRUE)[[1]], environment(original)))
    y <- record_ticks(code, copy)
    expect_identical(nrow(x$samples), nrow(y$samples))
    found <- places_in(x, file)
    expect_equal(found, places_in(y, path), label = name)
    with_lines <- with_lines + (length(found) > 0)
  }
  expect_gte(with_lines, 20)
})

# ---- What has no line, and what lines are used for ---------------------------------

# Functions in the global environment, without references, until the test ends.
local_functions <- function(..., optimize = 2, env = parent.frame()) {
  texts <- list(tick = NULL, ...)
  for (name in names(texts)) {
    value <- if (is.null(texts[[name]])) tick else eval(parse(text = texts[[name]], keep.source = FALSE), globalenv())
    if (name != "tick") value <- compiler::cmpfun(value, list(optimize = optimize, suppressAll = TRUE))
    assign(name, value, globalenv())
  }
  withr::defer(rm(list = names(texts), envir = globalenv()), env)
}

lines_of <- function(x, file) {
  rows <- match(x$sample_locations$location_id, x$locations$location_id)
  functions <- match(x$locations$function_id[rows], x$functions$function_id)
  x$locations$line[rows][x$functions$filename[functions] == file]
}

test_that("functions of the user have lines, also in promises and inner functions", {
  skip_without_positions()
  local_functions(no_references = "function(x) {
    tick()
    y <- identity({
      tick()
      x
    })
    inner <- function() {
      tick()
    }
    inner()
  }")
  x <- record_profile({ only_given_ticks(); no_references(1) }, interval = 0.9)
  text <- strsplit(text_of(x, "<no_references>"), "\n")[[1]]
  # Innermost first: the promise runs in a frame of `identity()`, as for code with references.
  lines <- lines_of(x, "<no_references>")
  expect_equal(trimws(text[lines]), c("tick()", "tick()", "y <- identity({", "tick()", "inner()"))
  expect_equal(x$.source_text$from[x$.source_text$filename == "<no_references>"], "deparsed")
})

test_that("code that differs from its text, or is gone, has no line", {
  skip_without_positions()
  body <- "function() {
    x <- 1
    if (x > 0) tick()
    x
  }"
  local_functions(other_level = body, same_level = body)
  assign("other_level", compiler::cmpfun(other_level, list(optimize = 0, suppressAll = TRUE)), globalenv())
  local_functions(replaced = body)
  x <- record_profile(interval = 0.9, {
    only_given_ticks()
    other_level()
    same_level()
    replaced()
    assign("replaced", function() NULL, globalenv())
  })
  expect_length(lines_of(x, "<other_level>"), 0)
  expect_length(lines_of(x, "<replaced>"), 0)
  expect_equal(unique(lines_of(x, "<same_level>")), 4)
  expect_true(all(c("other_level", "replaced") %in% x$functions$name))
})

test_that("lines can be left out, and a bound on their number is named", {
  skip_without_positions()
  code <- function(f) f(1:2, function(x) tick())
  recordings <- list(
    record_profile({ only_given_ticks(); code(lapply) }, interval = 0.9, lines = FALSE),
    withr::with_options(
      list(profile.deparsed_lines = 0), record_profile({ only_given_ticks(); code(lapply) }, interval = 0.9)
    )
  )
  for (x in recordings) {
    expect_equal(nrow(x$samples), 2)
    expect_false(any(is_deparsed_package(x$functions$filename)))
    expect_equal(functions_without_lines(x), 0)
  }
  withr::local_options(profile.deparsed_lines = -1)
  expect_error(record_profile(stop("It runs.")), "`profile.deparsed_lines` must be", class = "profile_error_argument")
  options(profile.deparsed_lines = 1)
  suppressWarnings(rm("<base::sapply>", envir = the$recompiled))
  y <- record_profile({ only_given_ticks(); sapply(1:2, function(x) tick()) }, interval = 0.9)
  expect_false("<base::sapply>" %in% y$functions$filename)
  expect_gte(functions_without_lines(y), 1)
  note <- "Without lines, since they have few samples: [0-9]+ functions?[.]"
  expect_match(format(describe_profile(y)), note, all = FALSE)
})

test_that("lines of packages are shown by the name of the function, and survive in files", {
  skip_without_positions()
  x <- record_profile({ only_given_ticks(); calls$aggregate.data.frame(aggregate) }, interval = 0.9)
  lines <- annotate_lines(x, "stats::aggregate.data.frame")
  expect_equal(unique(lines$filename), "<stats::aggregate.data.frame>")
  expect_match(lines$text[lines$total > 0], "lapply|FUN", all = FALSE)
  # The text of R's own function.
  expect_equal(lines$text, deparse(stats:::aggregate.data.frame))
  # Packages are those of the frames, not those of the code in a promise.
  packages <- x$functions$.package[match(c("lapply", "aggregate.data.frame"), x$functions$name)]
  expect_equal(packages, c("base", "stats"))
  for (extension in c(".pb.gz", ".out", ".otlp")) {
    path <- withr::local_tempfile(fileext = extension)
    quietly(write_profile(x, path))
    y <- read_profile(path)
    found <- annotate_lines(y, "stats::aggregate.data.frame")$total_share
    expect_equal(found[found > 0], lines$total_share[lines$total > 0], label = extension)
  }
})

test_that("lines of packages take nothing away from those of the user's files", {
  skip_without_positions()
  path <- withr::local_tempfile(fileext = ".R")
  writeLines(c("work <- function() {", "  sapply(1:2, function(x) tick())", "}"), path)
  source(path, local = TRUE, keep.source = TRUE)
  work <- compiler::cmpfun(work)
  x <- record_profile({ only_given_ticks(); work() }, interval = 0.9)
  expect_equal(annotate_lines(x, path)$total[2], 2)
  lines <- summary(x, by = "line")
  is_package <- is_deparsed_package(lines$filename)
  expect_equal(sum(lines$self[!is_package]), 2)
  # Another line of a package is further out than the function of the user, which runs inside of `lapply()`.
  expect_equal(sum(lines$self[lines$filename == "<base::lapply>"]), 0)
  expect_equal(sum(lines$total[lines$filename == "<base::lapply>"]), 2)
  expect_false(any(own_functions(x)[is_deparsed_package(x$functions$filename)]))
  # The digest has the user's lines only: those of `lapply()` take no time themselves.
  expect_true("<base::lapply>" %in% summary(x)$by_line$filename)
  expect_false("<base::lapply>" %in% describe_profile(x)$lines$filename)
})

test_that("native recordings have lines of packages too", {
  skip_without_positions()
  x <- quietly(record_profile(native = TRUE, interval = 0.9, { only_given_ticks(); calls$lapply(lapply) }))
  y <- record_profile(interval = 0.9, { only_given_ticks(); calls$lapply(lapply) })
  expect_gt(length(lines_of(x, "<base::lapply>")), 0)
  expect_equal(lines_of(x, "<base::lapply>"), lines_of(y, "<base::lapply>"))
})

test_that("the profiler is as before while positions are recorded", {
  skip_without_positions()
  path <- withr::local_tempfile()
  expect_error(record_profile(start_profiler(path)), "A profiler is running", class = "profile_error_unsupported")
  expect_error(record_profile(stop_profiler()), class = "profile_error_argument")
  # A recording without lines does not find the last one.
  expect_error(rust(rust_lines_end(creators(), list(), list(), globalenv()), NULL), "Nothing is recorded")
})

test_that("a recording says why lines of packages are missing", {
  skip_without_positions()
  code <- function(f) f(1:2, function(x) tick())
  note <- function(x) grep("^Note: Without lines of packages", strwrap_notes(format(describe_profile(x))), value = TRUE)
  strwrap_notes <- function(lines) {
    lines <- gsub("\n {6}", " ", paste(lines, collapse = "\n"))
    strsplit(lines, "\n")[[1]]
  }
  # More than the address space.
  x <- withr::with_options(
    list(profile.recording_mb = .Machine$integer.max),
    record_profile({ only_given_ticks(); code(lapply) }, interval = 0.9)
  )
  expect_false("<base::lapply>" %in% x$functions$filename)
  expect_equal(source_attribute(x, "profile.missing.sampler"), "Not enough memory.")
  expect_match(note(x), "names of loaded packages, since only R's profiler could record: Not enough memory[.]$")
  has_positions <- the$has_positions
  withr::defer(the$has_positions <- has_positions)
  the$has_positions <- FALSE
  y <- record_profile({ only_given_ticks(); code(lapply) }, interval = 0.9)
  expect_match(note(y), "Without lines of packages: the variables in which this R keeps positions in byte code were not found[.]$")
  # Not asked for.
  z <- record_profile({ only_given_ticks(); code(lapply) }, interval = 0.9, lines = FALSE)
  expect_length(note(z), 0)
  native <- quietly(record_profile(native = TRUE, interval = 0.9, { only_given_ticks(); code(lapply) }))
  expect_equal(source_attribute(native, "profile.missing.positions"), source_attribute(y, "profile.missing.positions"))
  the$has_positions <- has_positions
  expect_length(note(record_profile({ only_given_ticks(); code(lapply) }, interval = 0.9)), 0)
})
