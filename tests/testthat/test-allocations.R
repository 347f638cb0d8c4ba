# tier: gate
# Each vector that R allocates, with its stack, compared with `Rprofmem()` in the same run.

skip_without_hook <- function() {
  skip_on_cran()
  skip_if_not(is_live_platform(), "this system is not supported")
}

program <- '
work <- function(code) code()
n <- 20000
shared <- function() {
  x <- numeric(n)
  for (i in 1:10) {
    y <- x
    x[i] <- 1
  }
}
column <- function() {
  df <- data.frame(id = numeric(n), col = numeric(n))
  old <- df
  for (i in 1:10) {
    df$col[i] <- 1
  }
}
attribute <- function() {
  x <- numeric(n)
  for (i in 1:10) {
    y <- x
    attr(x, "a") <- i
  }
}
touch <- function(v) {
  v[1] <- 0
  sum(v)
}
argument <- function() {
  x <- numeric(n)
  for (i in 1:10) touch(x)
}
element <- function() {
  l <- list(a = numeric(n), b = numeric(n))
  for (i in 1:10) {
    l2 <- l
    l$a[1] <- i
  }
}
environment_only <- function() {
  e <- new.env()
  e$x <- numeric(n)
  for (i in 1:10) e$x[i] <- 1
  keep <- e$x
  e$x[1] <- 2
}
matrix_row <- function() {
  m <- matrix(0, 200, 100)
  for (i in 1:10) {
    k <- m
    m[i, ] <- 1
  }
}
growing <- function() {
  x <- NULL
  for (i in 1:200) x <- c(x, i)
}
appending <- function() {
  x <- NULL
  for (i in 1:2000) x[[length(x) + 1]] <- i
}
converting <- function() {
  i <- c(1L, integer(n))
  storage.mode(i) <- "double"
}
models <- function() {
  lapply(split(mtcars, mtcars$cyl), function(d) lm(mpg ~ wt, d))
}
'
programs <- c(
  "shared", "column", "attribute", "argument", "element", "environment_only", "matrix_row", "growing", "appending",
  "converting", "models"
)
path <- tempfile("program", fileext = ".R")
writeLines(program, path)
code <- new.env(parent = globalenv())
sys.source(path, code, keep.source = TRUE)

# Records a program, and what `Rprofmem()` reports of it at the same time.
record_both <- function(name) {
  file <- tempfile()
  on.exit(unlink(file))
  run <- code[[name]]
  work <- code$work
  x <- record_profile(
    {
      utils::Rprofmem(file)
      work(run)
      utils::Rprofmem("")
    },
    memory = "exact"
  )
  lines <- grep("\"work\"", readLines(file), value = TRUE, fixed = TRUE)
  list(x = x, bytes = as.numeric(sub(" :.*", "", lines[!startsWith(lines, "new page")])))
}

# The rows of stacks with a function, and their values.
values_within <- function(x, name) {
  frames <- as_tibble(x)
  within <- x$samples$sample_id[unique(frames$sample_id[frames$name == name])]
  values <- x$sample_values[x$sample_values$sample_id %in% within, ]
  vapply(split(values$value, factor(values$type, exact_types)), sum, 0)
}
exact_types <- c("alloc_space", "alloc_objects", "copy_space", "copy_objects", "inuse_space", "inuse_objects")

sizes <- 48 + 8 * 20000

for (jit in c(3L, 0L)) {
  test_that(paste("vectors and copies are those of `Rprofmem()`, with the JIT at level", jit), {
    skip_without_hook()
    before <- compiler::enableJIT(jit)
    on.exit(compiler::enableJIT(before))
    sys.source(path, code, keep.source = TRUE)
    if (jit > 0) {
      # Compiling allocates, too.
      for (name in programs) code[[name]] <- compiler::cmpfun(code[[name]])
      code$touch <- compiler::cmpfun(code$touch)
    }
    copies <- c(shared = 10, column = 5, argument = 10, element = 10, environment_only = 1)
    for (name in programs) {
      both <- record_both(name)
      found <- values_within(both$x, "work")
      expect_gt(length(both$bytes), 0)
      expect_equal(found[["alloc_objects"]], length(both$bytes), info = name)
      expect_equal(found[["alloc_space"]], sum(both$bytes), info = name)
      expect_lte(found[["copy_space"]], found[["alloc_space"]])
      expect_identical(validate_profile(both$x), both$x)
      if (name %in% names(copies)) {
        found <- found[["copy_space"]] - found[["copy_space"]] %% sizes
        expect_equal(found, copies[[name]] * sizes, info = name)
      }
    }
  })
}

# Whether R's table has the hook.
is_hooked <- function() rust(rust_allocations_on(), NULL)

sum_of <- function(x, type) sum(x$sample_values$value[x$sample_values$type == type])

test_that("copies stand at their lines", {
  skip_without_hook()
  x <- record_profile(code$shared(), memory = "exact")
  expect_identical(strsplit(program, "\n")[[1]][8], "    x[i] <- 1")
  copied <- summary(x, type = "copy_space")$by_line
  copied <- copied[copied$self >= sizes, ]
  expect_identical(basename(copied$filename), basename(path))
  expect_identical(copied$line, 8L)
  expect_equal(as.numeric(copied$self), 10 * sizes)
})

test_that("in use is what can be reached at the end", {
  skip_without_hook()
  kept <- list()
  keep <- function() {
    for (i in 1:5) kept[[i]] <<- numeric(1000)
    for (i in 1:7) numeric(2000)
  }
  x <- record_profile(keep(), memory = "exact")
  found <- values_within(x, "keep")
  vectors <- 5 * 8048
  lists <- found[["inuse_space"]] - vectors
  # The list itself, if it is large enough.
  expect_true(lists %in% c(0, as.numeric(object.size(kept)) - 5 * as.numeric(object.size(kept[[1]]))), info = lists)
  kept <- NULL
  x <- record_profile(keep(), memory = "exact", threshold = 10000)
  found <- values_within(x, "keep")
  expect_equal(found[["alloc_objects"]], 7)
  expect_equal(found[["alloc_space"]], 7 * 16048)
  expect_equal(found[["inuse_space"]], 0)
})

test_that("the peak is by line what was allocated and not freed yet", {
  skip_without_hook()
  # Fresh processes: what is garbage depends on when R collects.
  ended <- run_r(c(
    "library(profile)", "options(keep.source = TRUE)", "cache <- NULL",
    "f <- eval(parse(text = c('function(n) {', 'x <- numeric(n)', 'y <- x', 'y[1] <- 1', 'cache <<- numeric(n / 4)',",
    "  'length(y)', '}')))",
    "small <- function() for (i in 1:10) numeric(1000)",
    "main <- function() {", "  small()", "  f(2e7)", "  gc()", "  for (i in 1:5) numeric(1e6)", "  f(2e6)", "}",
    "x <- record_profile(main(), memory = 'exact')",
    "found <- summary(x, type = 'peak_space', by = 'line')",
    "found <- found[found$self > 1e6, ]",
    "cat(sprintf('%d: %.0f\n', found$line, found$self), sep = '')",
    "about <- x$.source_attributes",
    "cat(about$value[about$key == 'profile.peak.collected'] >= 320000096)"
  ))
  expect_ran(ended)
  expect_identical(utils::tail(ended$output, 4), c("2: 160000048", "4: 160000048", "5: 40000048", "TRUE"))
})

test_that("a conversion has a label", {
  skip_without_hook()
  x <- record_profile(code$converting(), memory = "exact")
  label <- x$.labels[x$.labels$key == "allocation", ]
  expect_identical(unique(label$str), "conversion")
  values <- x$sample_values
  values <- values[values$sample_id %in% label$sample_id & values$type == "alloc_space", ]
  expect_equal(max(values$value), 48 + 8 * 20001, tolerance = 0)
})

test_that("the table is restored after an error, an interrupt and a jump", {
  skip_without_hook()
  fails <- function() {
    x <- numeric(1000)
    for (i in 1:10) {
      y <- x
      x[i] <- 1
      if (i == 5) stop("failed")
    }
  }
  expect_error(suppressMessages(record_profile(fails(), memory = "exact")), "failed")
  expect_false(is_hooked())
  expect_equal(values_within(last_profile(), "fails")[["copy_space"]] %/% 8048, 5)
  ended <- run_r(c(
    "interrupted <- function() {",
    "  x <- numeric(1000)",
    "  tools::pskill(Sys.getpid(), tools::SIGINT)",
    "  repeat {",
    "    y <- x",
    "    x[1] <- 1",
    "  }",
    "}",
    "library(profile)",
    "tryCatch(record_profile(interrupted(), memory = 'exact'), interrupt = function(e) cat('interrupted\n'))",
    "stopifnot(!profile:::rust(profile:::rust_allocations_on(), NULL), 'copy_space' %in% last_profile()$sample_values$type)",
    "cat('done\n')"
  ), env = listen_to_interrupts())
  expect_identical(utils::tail(ended$output, 2), c("interrupted", "done"), info = last_lines(ended$output))
  result <- callCC(function(leave) suppressMessages(record_profile({
    fails <- numeric(1000)
    leave("left")
  }, memory = "exact")))
  expect_identical(result, "left")
  expect_false(is_hooked())
  # R works, and so does the next recording.
  x <- record_profile(code$shared(), memory = "exact")
  expect_equal(sum_of(x, "copy_space") %/% sizes, 10)
})

test_that("deep calls, and stacks that overflow, leave nothing behind", {
  skip_without_hook()
  deep <- function(depth) {
    vector <- numeric(100)
    if (depth > 0) deep(depth - 1)
  }
  x <- record_profile(deep(200), memory = "exact")
  expect_equal(values_within(x, "deep")[["alloc_objects"]], 201)
  endless <- function(n) {
    vector <- numeric(100)
    endless(n + 1)
  }
  for (most in c(1000, 500000)) {
    before <- options(expressions = most)
    error <- tryCatch(suppressWarnings(suppressMessages(record_profile(endless(1), memory = "exact", lines = FALSE))), error = identity)
    options(before)
    expect_s3_class(error, "error")
    expect_false(is_hooked())
    expect_gt(values_within(last_profile(), "endless")[["alloc_objects"]], 100)
  }
})

test_that("forks are not recorded, and work", {
  skip_without_hook()
  work <- function(i) {
    for (k in 1:50) vector <- numeric(1000 * i)
    length(vector)
  }
  x <- record_profile(found <- parallel::mclapply(1:4, work, mc.cores = 2), memory = "exact")
  expect_identical(unlist(found), 1:4 * 1000L)
  expect_equal(values_within(x, "work")[["alloc_objects"]], 0)
  expect_false(is_hooked())
})

test_that("the entries of R's table are what they were", {
  skip_without_hook()
  skip_if(Sys.which("readelf") == "", "readelf is not installed")
  library <- grep("/libR[.]so$", readLines("/proc/self/maps"), value = TRUE)
  skip_if(length(library) == 0, "R has no library")
  start <- as.numeric(paste0("0x", sub("-.*", "", library[[1]])))
  relocations <- system2("readelf", c("-rW", sub(".* ", "", library[[1]])), stdout = TRUE)
  relocations <- grep(" (malloc|free)@", relocations, value = TRUE)
  offsets <- as.numeric(paste0("0x", sub(" .*", "", relocations)))
  expect_gte(length(offsets), 2)
  entries <- function() {
    memory <- file("/proc/self/mem", "rb", raw = TRUE)
    on.exit(close(memory))
    lapply(offsets, function(offset) {
      seek(memory, start + offset)
      readBin(memory, "raw", 8)
    })
  }
  before <- entries()
  x <- record_profile(during <- entries(), memory = "exact")
  expect_identical(entries(), before)
  expect_true(all(mapply(identical, before, during) == FALSE))
})

test_that("a second recording is refused, and unknown values of `memory`", {
  expect_snapshot(error = TRUE, {
    record_profile(1, memory = "all")
    record_profile(1, memory = "exact", threshold = -1)
  })
})

test_that("a recording within another one leaves that one alone", {
  skip_without_native()
  start_profiler(withr::local_tempfile(), memory = "exact")
  expect_message(x <- record_profile(code$shared(), memory = "exact"), "already", class = "profile_message_memory")
  expect_true(is_hooked())
  y <- suppressWarnings(stop_profiler())
  expect_false(is_hooked())
  expect_false("copy_space" %in% x$sample_values$type)
  expect_equal(values_within(y, "code$shared")[["copy_space"]] %/% sizes, 10)
})

test_that("R and native code are recorded together with vectors", {
  skip_without_hook()
  for (native in c(FALSE, TRUE)) {
    x <- record_profile(code$shared(), memory = "exact", native = native)
    about <- x$.source_attributes
    expect_setequal(about$source_id, x$sources$source_id)
    time <- as.numeric(about$value[about$key == "profile.memory.time"])
    expect_length(time, 1)
    expect_true(is.finite(time) && time > 0)
    expect_equal(sum_of(x, "copy_space") %/% sizes, 10)
    expect_equal(nrow(x$sources), 1)
  }
  start_profiler(file <- tempfile(), memory = "exact")
  code$shared()
  x <- stop_profiler()
  expect_equal(sum_of(x, "copy_space") %/% sizes, 10)
  expect_identical(validate_profile(x), x)
  expect_false(any(grepl("hook|on_malloc|on_free", x$functions$name)))
})

test_that("vectors of finalizers in C have a row of their own", {
  skip_without_hook()
  skip_without_native()
  lib <- native_library()
  sizes_of <- function(length) 48 + 8 * length
  rows_of <- function(x, length) {
    values <- x$sample_values
    found <- values[values$type == "alloc_space" & values$value == 10 * sizes_of(length), ]
    expect_equal(nrow(found), 1)
    frames <- as_tibble(x)
    frames$name[frames$sample_id == match(found$sample_id, x$samples$sample_id)]
  }
  finalized <- function(n) {
    .Call(lib$c_finalizer, n)
    gc()
    NULL
  }
  toplevel <- function(n) {
    .Call(lib$c_allocate, n)
    NULL
  }
  in_r <- function(n) {
    reg.finalizer(new.env(), function(env) for (i in 1:10) numeric(n))
    gc()
    NULL
  }
  later <- function(n) {
    # The collection at the end of the recording.
    .Call(lib$c_finalizer, n)
    NULL
  }
  # Those of others.
  gc()
  for (native in c(FALSE, TRUE)) {
    x <- record_profile(
      {
        finalized(11111)
        finalized(22222)
        toplevel(33333)
        in_r(44444)
        later(55555)
      },
      memory = "exact", native = native
    )
    frames <- as_tibble(x)
    own <- frames$sample_id[frames$name == "<finalizer>"]
    expect_length(own, 1)
    expect_equal(frames$name[frames$sample_id == own], "<finalizer>")
    by_function <- summary(x, type = "alloc_space")$by_function
    expect_equal(by_function$self[by_function$name == "<finalizer>"], 10 * (sizes_of(11111) + sizes_of(22222)))
    expect_equal(by_function$total[by_function$name == "finalized"] < 10 * sizes_of(11111), TRUE)
    objects <- summary(x, type = "alloc_objects")$by_function
    expect_equal(objects$self[objects$name == "<finalizer>"], 20)
    expect_true("toplevel" %in% rows_of(x, 33333))
    expect_true("in_r" %in% rows_of(x, 44444))
    expect_equal(sum(x$sample_values$value == 10 * sizes_of(55555)), 0)
    expect_true("<finalizer>" %in% as.list(describe_profile(x, type = "alloc_space"))$packages$package)
  }
})

test_that("a script is recorded with the lines of code outside of functions", {
  skip_without_hook()
  script <- withr::local_tempfile(fileext = ".R", lines = c(
    "x <- numeric(500000)", "y <- x", "x[1] <- 2", "f <- function(v) {", "  v[2] <- 1", "  sum(v)", "}", "for (i in 1:3) {",
    "  f(y)", "}", "z <- as.integer(y)"
  ))
  output <- withr::local_tempfile(fileext = ".pb.gz")
  ended <- run_program("record", "--memory", "exact", "--quiet", "-o", output, script)
  expect_equal(ended$status, 0)
  x <- read_profile(output)
  by_line <- function(type) {
    lines <- summary(x, type = type)$by_line
    lines <- lines[lines$self >= 2000048, ]
    round(as.numeric(lines$self) / 2000048)[match(c(3, 5, 11), lines$line)]
  }
  expect_equal(by_line("copy_space"), c(2, 6, NA))
  expect_equal(by_line("alloc_space"), c(2, 6, 1))
  expect_false("profile.mark" %in% x$.labels$key)
  ended <- run_program("record", "--memory", "all", script)
  expect_equal(ended$status, 2)
  expect_match(ended$err, "`--memory` is \"exact\"", all = FALSE)
})

test_that("copies have a reason: what else refers to the object", {
  skip_without_hook()
  env <- new.env(parent = globalenv())
  assign("shared_by_test", c(0, numeric(5000)), globalenv())
  withr::defer(rm("shared_by_test", envir = globalenv()))
  reasons <- c(
    variable = "`x` is also `y`", argument = "`v` is also `x` in `argument()`", element = "`l$a` is also `l2$a`",
    column = "`df$col` is also `old$col`", global = "`z` is also `shared_by_test` of the global environment",
    closure = "`tmp` is also `state` of the function around it", attribute = "`x` is also attribute `o` of `a`",
    dots = "`a` is also `...` and `x` in `dots()`", inner = "`m` is also `m` in `inner()`",
    cell = "`df$x` is also `x$x` in `[<-.data.frame()`", columns = "the modified object is also `x` in `[[<-.data.frame()`",
    sorted = "`l$a` is also `x` in `sort.int()` and `x` in `sort.default()`",
    evaluated = "`x` is also `y` in `evaluated()`",
    counted = "variable `e$x` is the only one that was found, but R counts other references to it",
    field = "`private$arr` has no other reference, but the environment `private` has",
    direct = "`x` has no other reference, and is copied anyway"
  )
  writeLines(c(
    "variable <- function() { x <- numeric(n)", "  for (i in 1:10) { y <- x", "    x[i] <- 1 } }",
    "touch <- function(v) { v[1] <- 0", "  sum(v) }",
    "argument <- function() { x <- numeric(n)", "  touch(x) }",
    "element <- function() { l <- list(a = numeric(n), b = 1)", "  l2 <- l", "  l$a[1] <- 1 }",
    "column <- function() { df <- data.frame(id = numeric(n), col = numeric(n))", "  old <- df", "  df$col[1] <- 1 }",
    "global <- function() { z <- shared_by_test", "  z[2] <- 1 }",
    "make <- function() { state <- numeric(n)", "  function() { tmp <- state", "    tmp[3] <- 1 } }",
    "closure <- make()",
    "attribute <- function() { x <- numeric(n)", "  a <- 1", "  attr(a, \"o\") <- x", "  x[4] <- 2 }",
    "given <- function(...) { a <- ..1", "  a[1] <- 2 }",
    "dots <- function() { x <- numeric(n)", "  given(x) }",
    "inner <- function() { change <- function(m) { m[1] <- 1", "    m }", "  m <- numeric(n)", "  change(m) }",
    "cell <- function() { df <- data.frame(id = 1, x = numeric(n))", "  df[2, \"x\"] <- 1 }",
    "columns <- function() { x <- as.data.frame(as.list(numeric(n)))", "  for (i in 1:20) x[[i]] <- x[[i]] + 1 }",
    "sorted <- function() { l <- list(a = numeric(n))", "  sort(l$a, partial = 2) }",
    "again <- function(x) eval(quote(x[1] <- 2))", "evaluated <- function() { y <- numeric(n)", "  again(y) }",
    "counted <- function() { l <- list(a = numeric(n))", "  e <- new.env()", "  e$x <- l$a", "  l <- NULL", "  e$x[2] <- 3 }",
    "alone <- function() { x <- numeric(n)", "  e <- new.env()", "  e$x <- x", "  rm(x)", "  e$x[2] <- 3 }",
    "make_field <- function() { private <- new.env()", "  private$arr <- numeric(n)",
    "  kept <<- private", "  function() { private$arr[1] <- 1", "    NULL } }",
    "field <- make_field()",
    "direct <- function() { x <- numeric(n)", "  `oldClass<-`(x, \"a\") }"
  ), file <- withr::local_tempfile(fileext = ".R"))
  env$n <- 5001
  before <- compiler::enableJIT(-1L)
  withr::defer(compiler::enableJIT(before))
  for (jit in c(3L, 0L)) {
    compiler::enableJIT(jit)
    sys.source(file, env, keep.source = TRUE)
    for (name in c(names(reasons), "alone")) {
      work <- env[[name]]
      if (jit > 0) work <- compiler::cmpfun(work)
      # The name of the function in the reason.
      env$run <- eval(call("function", NULL, call(name)), env)
      assign(name, work, env)
      x <- record_profile(env$run(), memory = "exact", threshold = 10000)
      found <- unique(x$.labels$str[x$.labels$key == "copy.reason"])
      # Either of two variables of the same function may be found first.
      in_order <- function(text) sub("^(.*) is also ([^()]*`)$", "\\2 is also \\1", text)
      expected <- if (name == "alone") NULL else c(reasons[[name]], in_order(reasons[[name]]))
      # What R counts while it calls such a function depends on its version, and on whether the code is compiled.
      if (name == "columns") {
        expected <- c(
          expected, "`x` is also `x` in `[[<-.data.frame()`",
          "variable `x` is the only one that was found, but R counts other references to it"
        )
      }
      expect_true(if (name == "alone") length(found) == 0 else any(expected %in% found), info = paste(name, jit, found))
      if (name != "columns") expect_lte(length(found), 1)
    }
  }
})

test_that("collections are shared by what was allocated since the last one", {
  skip_without_hook()
  collect <- function() {
    first <- numeric(30000)
    second <- numeric(10000)
    gc()
  }
  x <- record_profile(collect(), memory = "exact", threshold = 10000)
  y <- record_profile(gc(), memory = "exact", threshold = 10000)
  shares <- function(x) x$sample_values$value[x$sample_values$type == "gc_share"]
  bytes <- x$sample_values$value[x$sample_values$type == "alloc_space"]
  # Other vectors of this size may have been allocated.
  expect_equal(shares(x) / sum(shares(x)), bytes / sum(bytes), tolerance = 1e-4)
  expect_gt(sum(shares(x)), 0)
  # R measures collections as before: not at all.
  is_measured <- function() {
    before <- gc.time(FALSE)
    gc.time(the$was_measured)
    gc()
    !identical(gc.time(the$was_measured), before)
  }
  gc.time(FALSE)
  the$measured <- gc.time(FALSE)
  record_profile(collect(), memory = "exact")
  expect_false(is_measured())
  record_profile(collect(), memory = "exact")
  expect_false(is_measured())
  gc.time(TRUE)
  gc()
  record_profile(collect(), memory = "exact")
  expect_true(is_measured())
  gc.time(FALSE)
})

test_that("an object that grows step by step has a label", {
  skip_without_hook()
  growth <- function(name) {
    x <- record_profile(code[[name]](), memory = "exact")
    label <- x$.labels[x$.labels$key == "allocation" & x$.labels$str == "growth", ]
    values <- x$sample_values
    sum(values$value[values$sample_id %in% label$sample_id & values$type == "alloc_objects"])
  }
  expect_gt(growth("growing"), 150)
  expect_gt(growth("appending"), 20)
  expect_equal(growth("shared"), 0)
  expect_equal(growth("matrix_row"), 0)
  long <- function() {
    x <- NULL
    for (i in 1:2000) x <- c(x, i)
  }
  x <- record_profile(long(), memory = "exact")
  text <- gsub("[\u00a0 ]+", " ", paste(format(describe_profile(x)), collapse = " "))
  expect_match(text, "grows an object: [0-9.]+MB in 1,9[0-9]+ vectors of rising size")
})
