# tier: gate
# The description of a profile: its text for profiles of all kinds, and its figures compared with summary().

sample_profile <- function(file) read_rprof(system.file("samples/rprof", file, package = "profile"))
real_profile <- function(file) suppressWarnings(read_profile(test_path("data", file)))

# Packages and files that are the same on every machine.
with_known_packages <- function(x) {
  x$functions$.package <- c("mine", "base")[1 + (x$functions$filename == "")]
  x$functions$filename <- sub("^/usr", "/missing", x$functions$filename)
  x
}

steady <- function(lines) {
  lines <- sub("^Recorded: .*?( or before)?$", "Recorded:  <time>\\1", lines)
  sub("^(Sources:   \\w+).*/", "\\1 ", lines)
}

described <- function() {
  list(
    sources = add_source_text(sample_profile("1.out"), directory = system.file("samples/report", package = "profile")),
    memory = sample_profile("memory.out"),
    dplyr = real_profile("rprof/dplyr_memgc.out"),
    deep = real_profile("rprof/deep_plain.out"),
    empty = real_profile("rprof/empty_mem.out"),
    names = real_profile("rprof/names_line.out"),
    several = real_profile("rprof/append_plain3.out"),
    heap = read_pprof(system.file("samples/proto/go_heap.pb.gz", package = "profile"))
  )
}

test_that("profiles of all kinds are described", {
  profiles <- lapply(described(), with_known_packages)
  profiles$sources$.source_text$changed <- c(FALSE, TRUE)
  for (name in names(profiles)) {
    description <- describe_profile(profiles[[name]])
    expect_snapshot(
      {
        cat("----", name, "\n")
        description
      },
      transform = steady
    )
  }
})

test_that("a digest has at most 60 lines of the given width, in ASCII", {
  files <- c(list.files(test_path("data/rprof"), full.names = TRUE), list.files(test_path("data/pprof"), full.names = TRUE))
  for (file in files) {
    x <- tryCatch(suppressWarnings(read_profile(file)), profile_error = function(e) NULL)
    if (is.null(x)) next
    lines <- format(describe_profile(x), width = 70)
    expect_lte(length(lines), 60)
    expect_true(all(nchar(lines, "width") <= 70), info = file)
    names <- c(x$functions$name, x$functions$filename, x$sources$source_uri)
    if (all(validUTF8(names)) && !any(grepl("[^ -~]", names))) {
      expect_false(any(grepl("[^ -~]", lines)), info = file)
    }
  }
})

test_that("all figures agree with the summary", {
  for (x in described()) {
    summary <- summary(x)
    parts <- as.list(describe_profile(x))
    expect_named(parts, c(
      "run", "tree", "functions", "lines", "packages", "labels", "gc", "copying", "loading", "allocated", "copies",
      "calls", "parallel", "spread", "peak", "threads", "at_peak", "notes", "next_calls"
    ))
    figures <- c("self", "total", "self_share", "total_share")
    expect_equal(parts$functions[c("name", figures)], summary$by_function[c("name", figures)])
    expect_equal(parts$lines[c("filename", "line", figures)], summary$by_line[c("filename", "line", figures)])
    expect_equal(parts$run$sum, attr(summary, "sum"))
    expect_equal(parts$run$samples, attr(summary, "counted")$samples)
    expect_equal(sum(parts$packages$self), attr(summary, "sum"))
    if (!is.null(parts$allocated)) {
      by_function <- summary$by_function
      expect_equal(parts$allocated$bytes, sum(by_function$self_alloc))
      expect_equal(
        parts$allocated$functions$self_alloc,
        by_function$self_alloc[match(parts$allocated$functions$name, by_function$name)]
      )
    }
    expect_equal(parts$gc$self %||% 0, sum(summary$by_function$self[summary$by_function$name %in% "<GC>"]))
  }
})

test_that("the figures of the text agree with the list", {
  x <- sample_profile("1.out")
  description <- describe_profile(x, n = 5)
  functions <- as.list(description)$functions[1:5, ]
  lines <- format(description)
  at <- grep("self%  total%  self  function", lines)
  expect_equal(
    substr(lines[at + 1:5], 1, 22),
    sprintf("  %6.1f  %6.1f  %4s", 100 * functions$self_share, 100 * functions$total_share, functions$self),
    ignore_attr = TRUE
  )
  expect_match(lines[[1]], "<profile> 252 samples, 2.52 s, a sample every 10ms, 101 functions", fixed = TRUE)
})

test_that("the main caller agrees with the tree of callers", {
  x <- sample_profile("1.out")
  functions <- as.list(describe_profile(x))$functions
  for (name in c("paste", "c", "lm", "FUN", "deparse", "report")) {
    tree <- callers(x, name)
    direct <- tree[tree$depth %in% 2, ]
    row <- functions[functions$name == name, ]
    if (nrow(direct) == 0) {
      expect_identical(row$caller, NA_character_)
    } else {
      expect_equal(row$caller_share, max(direct$total) / row$total)
      expect_true(row$caller %in% direct$name[direct$total == max(direct$total)])
    }
  }
})

test_that("garbage collections are not counted as an unknown package", {
  x <- sample_profile("memory.out")
  x$functions$.package <- ifelse(x$functions$name == "<GC>", NA, "base")
  packages <- as.list(describe_profile(x))$packages
  by_function <- summary(x)$by_function
  expect_equal(packages$package, c("base", "<GC>"))
  expect_equal(packages$self[[2]], by_function$self[by_function$name == "<GC>"])
})

test_that("the digest shows how long R copied objects, and where most of that was", {
  code <- c("f <- function(x) {", "  y <- x", "  y[1] <- 0", "  g(y)", "}")
  copies <- function(lines, others = 10) {
    path <- write_file(c(
      "line profiling: sample.interval=10000", "#File 1: /home/me/a.R", lines, rep("1#4 \"g\" 1#9 \"f\" ", others)
    ))
    x <- read_rprof(path)
    x$.source_text <- tibble::tibble(filename = "/home/me/a.R", text = paste(code, collapse = "\n"), changed = NA)
    describe_profile(x)
  }
  at <- function(line, times) rep(sprintf("\"<copy>\" 1#%d \"f\" ", line), times)
  found <- copies(c(at(2, 2), at(3, 6), rep("\"<copy>\" \"h\" ", 2)))
  expect_equal(as.list(found)$copying, list(
    self = 10, self_share = 0.5, name = "f", filename = "/home/me/a.R", line = 3L, place_share = 0.6, text = "  y[1] <- 0"
  ))
  shown <- function(description) grep("^Copying", format(description, width = 80), value = TRUE)
  expect_equal(shown(found), "Copying: 50.0% (10 samples), most in a.R:3 `y[1] <- 0`")
  # The innermost function has no line, nor has any other.
  expect_equal(shown(copies(rep("\"<copy>\" \"h\" ", 2), 0)), "Copying: 100.0% (2 samples), most in `h`")
  # Up to 5% are not shown.
  expect_length(shown(copies(at(3, 1), 18)), 1)
  expect_length(shown(copies(at(3, 1), 19)), 0)
  # No copies, and a function of this name that is not the innermost one.
  expect_null(as.list(copies(NULL))$copying)
  expect_null(as.list(copies("1#2 \"f\" \"<copy>\" "))$copying)
  # Copies are no unknown package.
  expect_equal(as.list(found)$packages$package[[1]], "<copy>")
})

test_that("`n` and `min_share` limit the text only", {
  x <- sample_profile("1.out")
  few <- describe_profile(x, n = 2, min_share = 0.2)
  expect_lt(length(format(few)), 35)
  expect_identical(as.list(few), as.list(describe_profile(x)))
})

test_that("the next calls are R code that runs", {
  for (x in described()[c("sources", "dplyr", "names")]) {
    calls <- as.list(describe_profile(x))$next_calls
    for (code in setdiff(calls, "profile_page(x)")) {
      expect_no_error(eval(parse(text = code)))
    }
  }
})

test_that("hostile names do not reach the terminal", {
  x <- sample_profile("1.out")
  x$functions$name[x$functions$name == "paste"] <- "a\u001b[31m\n\u202e"
  lines <- format(describe_profile(x))
  expect_identical(printable(lines), lines)
  calls <- as.list(describe_profile(x))$next_calls
  expect_equal(eval(parse(text = calls[[1]])[[1]][[3]]), "a\u001b[31m\n\u202e")
})

test_that("arguments are checked", {
  x <- sample_profile("1.out")
  expect_snapshot(error = TRUE, {
    describe_profile(x, n = -1)
    describe_profile(x, min_share = -1)
    describe_profile(x, type = "bytes")
    describe_profile(1)
    format(describe_profile(x), width = 0)
  })
})

test_that("packages are advised about for functions of R packages only", {
  advised <- function(x) any(grepl("package of most functions", as.list(describe_profile(x))$notes))
  from <- function(name, filename) {
    path <- withr::local_tempfile(lines = c(
      "line profiling: sample.interval=10000", "#File 1: script.R", rep(paste0(filename, "\"", name, "\" "), 5)
    ))
    read_rprof(path)
  }
  # A function of a package that is not loaded, a function of a script, and Go.
  expect_true(advised(from("function_of_no_package", "")))
  expect_false(advised(from("function_of_the_script", "1#3 ")))
  expect_false(advised(read_pprof(data_path("pprof", "go_cpu.pb.gz"))))
})

test_that("the user's own code is no unknown package, and garbage collections are no package", {
  lines <- function(packages, own) {
    packages <- tibble::tibble(package = names(packages), self = unname(packages), self_share = unname(packages) / 100)
    packages$package[packages$package == "?"] <- NA
    text <- description_packages(packages, own, 0.02, "count", 10, identity)
    sub("^ *([0-9.]+) .*  ", "\\1 ", text[-(1:2)])
  }
  expect_equal(lines(c(base = 50, "?" = 30, "<GC>" = 20), 0.3), c("50.0 base", "30.0 (your code)"))
  expect_equal(lines(c(base = 50, "?" = 30, "<GC>" = 20), 0), c("50.0 base", "30.0 (unknown)"))
  expect_equal(lines(c(base = 50, "?" = 30, stats = 20), 0.1), c("50.0 base", "20.0 stats", "20.0 (unknown)", "10.0 (your code)"))
  # A share below the smallest one that is shown, and a single row.
  expect_equal(lines(c(base = 50, "?" = 30, stats = 20), 0.29), c("50.0 base", "29.0 (your code)", "20.0 stats"))
  expect_null(description_packages(tibble::tibble(package = c("base", "<GC>"), self = 1, self_share = 0.5), 0, 0, "count", 10, identity))
  # In a profile of a script.
  path <- write_file(c(
    "line profiling: sample.interval=10000", "#File 1: /home/me/report.R", rep("1#2 \"paste\" 1#1 \"work\" ", 3), rep("1#1 \"work\" ", 2)
  ))
  x <- read_rprof(path)
  x$functions$.package <- ifelse(x$functions$name == "work", NA, "base")
  x$functions$.package_from <- ifelse(x$functions$name == "work", NA, "process")
  description <- describe_profile(x)
  expect_equal(as.list(description)$run$own_share, 0.4)
  expect_match(format(description), "40.0 .*[(]your code[)]$", all = FALSE)
})

test_that("functions in the workspace of the session that recorded them are the user's own code", {
  x <- read_rprof(write_file(c("sample.interval=10000", rep("\"work_of_mine\" ", 2), rep("\"work_of_others\" ", 3))))
  x$functions$.package <- NA_character_
  own_share <- function(x) as.list(describe_profile(x))$run$own_share
  expect_equal(own_share(mark_session(x)), 0)
  assign("work_of_mine", function() NULL, globalenv())
  withr::defer(rm("work_of_mine", envir = globalenv()))
  expect_equal(own_share(mark_session(x)), 0.4)
  expect_equal(own_share(x), 0)
})

test_that("the text of the shell shows the hottest branches", {
  stacks <- c("\"x1\" \"x\" \"a\" \"main\" ", "\"y1\" \"y\" \"b\" \"main\" ", "\"c\" \"main\" ")
  x <- read_rprof(write_file(c("sample.interval=10000", rep(stacks, c(45, 35, 20)))))
  shown <- function(clock = NULL) {
    path <- withr::local_tempfile(fileext = ".pb.gz")
    utils::capture.output(shell_finish(x, path, list(clock = clock)), type = "message")
  }
  text <- shown()
  expect_match(text, "45.0 .* a > x > x1$", all = FALSE)
  expect_match(text, "35.0 .* b > y > y1$", all = FALSE)
  expect_match(text, "20.0 .* c$", all = FALSE)
  expect_no_match(text, "real time")
  expect_no_match(shown("cpu"), "real time")
  expect_match(shown("wall"), "Note: Time is real time", all = FALSE)
})

test_that("a note of an update is not repeated", {
  x <- read_rprof(write_file(c("sample.interval=10000", "\"f\" ")))
  x$sources$source_uri <- "pid:1"
  recorded <- list(profile = x, unread = 0, ended = integer(), left = NULL)
  note <- watched_note(recorded)
  expect_identical(note, hint_without_lines())
  lines <- function(...) gsub("\\s+", " ", paste(watched_lines(recorded, 1, 5, ...), collapse = " "))
  expect_match(lines(), "There are no lines of R code")
  expect_no_match(lines(note), "There are no lines of R code")
  recorded$profile$samples <- x$samples[0, ]
  expect_match(watched_note(recorded), "not computing")
})

test_that("the time of R's compiler is named", {
  compiled <- function(n, between = 0, extension = "") {
    path <- withr::local_tempfile(fileext = extension)
    inner <- "\"cmp\" \"cmpfun\" \"compiler:::tryCmpfun\" \"made\" \"f\" "
    lines <- rep(c(inner, rep("\"f\" ", between)), n)
    writeLines(c("sample.interval=20000", lines, rep("\"f\" ", 100 - length(lines))), path)
    x <- read_rprof(path)
    if (extension != "") {
      quietly(write_profile(x, path))
      x <- read_profile(path)
    }
    paste(trimws(format(describe_profile(x), width = 1000)), collapse = "\n")
  }
  expect_match(compiled(12), "R's compiler took 12.0% of the time.", fixed = TRUE)
  expect_match(compiled(5), "R's compiler took 5.0% of the time.", fixed = TRUE)
  # How often is known if there are other samples between two compilations, in the order in which they were taken.
  expect_match(compiled(12, between = 1), "R's compiler took 12.0% of the time, in at least 12 compilations.", fixed = TRUE)
  expect_match(compiled(12, between = 1, extension = ".pb.gz"), "R's compiler took 12.0% of the time.", fixed = TRUE)
  expect_no_match(compiled(4), "compiler took")
})
