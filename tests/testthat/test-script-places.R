# tier: gate
# Lines of code outside of functions: of scripts and documents that `profile record` runs. Tests generate ticks, so that
# each sample is known, or write the files of a recording.

# The ticks of each line of a file in a profile.
ticks_by_line <- function(x, file, type = "samples") {
  lines <- annotate_lines(x, file, type = type)
  lines <- lines[lines$total > 0, ]
  rlang::set_names(lines$total, lines$line)
}

# ---- Logs ----------------------------------------------------------------------------

# A profile of files that a recorded process has left.
profile_of <- function(samples, log, was_killed = FALSE, ends = "\n") {
  folder <- withr::local_tempdir()
  file <- file.path(folder, "Rprof.out")
  header <- "memory profiling: GC profiling: line profiling: sample.interval=10000"
  lines <- c(header, samples)
  cat(paste(lines, collapse = "\n"), ends, sep = "", file = file)
  # `{n}` in the log is the size of the file before sample n.
  sizes <- cumsum(nchar(lines, "bytes") + 1)
  for (n in seq_along(sizes)) log <- gsub(paste0("{", n, "}"), sprintf("%.0f", sizes[[n]]), log, fixed = TRUE)
  writeLines(log, file.path(folder, "places"))
  x <- withCallingHandlers(
    read_format(file, "rprof", "2.0", NA_character_, NULL), warning = function(w) rlang::cnd_muffle(w)
  )
  x <- with_logged_places(x, logged_places(folder), file, was_killed, NULL)
  validate_profile(x)
}

# The frames of each sample, innermost first.
frames_of <- function(x) {
  rows <- x$sample_locations
  location <- match(rows$location_id, x$locations$location_id)
  functions <- match(x$locations$function_id[location], x$functions$function_id)
  file <- x$functions$filename[functions]
  line <- x$locations$line[location]
  place <- ifelse(nzchar(file), paste0(" ", file, ":", line), ifelse(line > 0, paste0(" :", line), ""))
  frames <- split(paste0(x$functions$name[functions], place), factor(rows$sample_id, x$samples$sample_id))
  unname(vapply(frames, paste, "", collapse = " < "))
}

test_that("samples have the line of the expression that was running", {
  x <- profile_of(
    c(
      "#File 1: ", ":1:1:1:1:", ":1:1:1:1:\"f\" ", ":1:1:1:1:\"f\" 1#2 ", ":1:1:1:1:1#3 \"FUN\" \"lapply\" 1#2 ",
      ":1:1:1:1:\"g\" ", ":1:1:1:1:"
    ),
    c("script {2} 1 1 a.R", "script {3} 3 3 a.R", "script {4} 5 9 a.R", "script {6} 10 10 a.R", "script {7} NA NA ")
  )
  expect_equal(frames_of(x), c(
    "<script> a.R:1", "f < <script> a.R:3", "f < <script> a.R:6", "FUN a.R:7 < lapply < <script> a.R:6",
    "g < <script> a.R:10", ""
  ))
  expect_null(x$samples$.toplevel_line)
})

test_that("a later row replaces earlier ones of the same size and kind", {
  samples <- c(":1:1:1:1:", ":1:1:1:1:\"f\" ", ":1:1:1:1:\"f\" ")
  x <- profile_of(samples, c("script {1} 1 1 a.R", "script {2} 3 3 a.R", "script {3} 4 4 a.R", "script {2} 0 0 a.R"))
  expect_equal(frames_of(x), c("<script> a.R:1", "f < <script> a.R:0", "f < <script> a.R:4"))
  x <- profile_of(samples, c("script {1} 1 1 a.R", "script {1} 2 2 a.R", "document {2} 7 7 b.Rmd", "document {3} NA NA "))
  expect_equal(frames_of(x), c("<script> a.R:2", "f < <document> b.Rmd:7 < <script> a.R:2", "f < <script> a.R:2"))
})

test_that("chunks without lines are reported", {
  message <- utils::capture.output(
    x <- profile_of(":1:1:1:1:\"f\" ", c("script {1} 1 1 a.R", "document {1} 0 0 a.Rmd")), type = "message"
  )
  expect_match(message, "^profile: Some chunks have no lines: ")
  expect_equal(frames_of(x), "f < <document> a.Rmd:0 < <script> a.R:1")
})

test_that("lines that cannot be of the expression are left as they are", {
  x <- profile_of(
    c("#File 1: ", ":1:1:1:1:\"f\" 1#4 ", ":1:1:1:1:1#9 \"FUN\" "),
    c("script {2} 5 6 a.R")
  )
  expect_equal(frames_of(x), c("f < <script> a.R:5", "FUN :9 < <script> a.R:5"))
})

test_that("what was recorded before a process was killed has its lines", {
  x <- profile_of(
    c(":1:1:1:1:\"f\" ", ":1:1:1:1:\"g\" \"h"), c("script {1} 1 1 a.R", "script {2} 2 2 a.R", "script {2} 3"),
    was_killed = TRUE, ends = ""
  )
  expect_equal(frames_of(x)[[1]], "f < <script> a.R:1")
  expect_true(all(endsWith(frames_of(x)[-1], "< <script> a.R:2")))
  message <- utils::capture.output(
    y <- profile_of(c(":1:1:1:1:\"f\" ", "\"g\" "), "script {1} 1 1 a.R"), type = "message"
  )
  expect_match(message, "it is unknown when the samples were taken")
  expect_equal(frames_of(y), c("f", "g"))
})

test_that("sizes are those of the file without copies of forks", {
  file <- write_bytes("abcdefgh")
  without <- remove_copies(file, c("2 3 ", "7 7 "))
  expect_equal(without(c(0, 1, 2, 3, 6, 7, 8, 99)), c(0, 1, 1, 1, 4, 4, 5, 5))
  expect_equal(remove_copies(file, character())(7), 7)
})

# ---- Scripts -------------------------------------------------------------------------

# The beginning of a script that gives ticks, in one line.
ticks_in_script <- function() {
  skip_without_ticks()
  library <- getLoadedDLLs()[["ticks"]][["path"]]
  paste0(
    "ticks <- dyn.load(", deparse(library), "); ", "invisible(.Call(ticks$ticks_only_given$address)); ",
    # A function without lines.
    "code <- 'compiler::cmpfun(function(n = 1L) .Call(ticks$ticks_give$address, n))'; ",
    "tick <- eval(parse(text = code, keep.source = FALSE))"
  )
}

# A recording of a script that gives ticks: list(profile, status, err, file).
recorded_ticks <- function(..., options = character(), .local_envir = parent.frame()) {
  program()
  path <- script(ticks_in_script(), ..., .local_envir = .local_envir)
  output <- withr::local_tempfile(fileext = ".pb.gz", .local_envir = .local_envir)
  ran <- run_program("record", "--quiet", "--interval", "0.9", "-o", output, options, path)
  list(profile = read_profile(output), status = ran$status, err = utils::head(ran$err, -1), file = path)
}

steps <- c(
  "for (i in 1:2) tick()",
  "x <- c(tick(3L),",
  "  tick(1L))",
  "{",
  "  tick(2L)",
  "  y <- vapply(1:2, function(i) {",
  "    tick()",
  "    1",
  "  }, 0)",
  "}",
  "f <- function() {",
  "  tick(5L)",
  "}; invisible(f())",
  "",
  "# The end",
  "f()"
)
ticks_of_steps <- c(`2` = 2, `3` = 4, `6` = 2, `7` = 2, `8` = 2, `13` = 10, `14` = 5, `17` = 5)

test_that("each line of a script has its ticks", {
  ran <- recorded_ticks(steps)
  expect_equal(ran$err, character())
  expect_equal(ticks_by_line(ran$profile, ran$file), ticks_of_steps)
  tree <- call_tree(ran$profile)
  expect_equal(tree$name[is.na(tree$parent_id)], "<script>")
})

test_that("native code and children are recorded with the lines of the script", {
  skip_if_not(is_live_platform())
  ran <- recorded_ticks(steps, options = "--native")
  expect_equal(ticks_by_line(ran$profile, ran$file), ticks_of_steps)
  # Times are nanoseconds then.
  ran <- recorded_ticks(steps, options = "--children")
  expect_equal(names(ticks_by_line(ran$profile, ran$file, "cpu")), names(ticks_of_steps))
})

test_that("forks add nothing to the lines of a script", {
  ran <- recorded_ticks(
    "tick(2L)",
    "child <- parallel:::mcfork(); if (inherits(child, 'masterProcess')) parallel:::mcexit()",
    "parallel:::selectChildren(child, 100)",
    "child <- parallel:::mcfork()",
    "if (inherits(child, 'masterProcess')) quit('no')",
    "invisible(parallel:::selectChildren(child, 100))",
    "tick(3L)"
  )
  expect_equal(ticks_by_line(ran$profile, ran$file), c(`2` = 2, `8` = 3))
})

test_that("a script that ends early has lines until then", {
  ends <- list(
    list("quit(status = 4)", 4L), list("stop('no')", 1L), list("g(1, 2, ]", 1L),
    list("tools::pskill(Sys.getpid(), 9)", 137L)
  )
  for (end in ends) {
    ran <- recorded_ticks("tick(2L); tick()", "{", "  tick(3L)", "}", end[[1]], "tick(4L)")
    expect_identical(ran$status, end[[2]])
    expect_equal(ticks_by_line(ran$profile, ran$file), c(`2` = 3, `4` = 3), info = end[[1]])
  }
})

test_that("expressions that do not run to their end, or are input, do not move the others", {
  ran <- recorded_ticks("options(error = expression(NULL))", "{ tick(2L); stop('no') }", "tick(3L)", "tick(4L)")
  # It is unknown which of the first two has run.
  expect_equal(ticks_by_line(ran$profile, ran$file), c(`5` = 4))
  ran <- recorded_ticks("read <- readLines(stdin(), n = 2)", "tick(2L)", "tick(3L)", "tick(4L)", "tick(5L)")
  expect_equal(ticks_by_line(ran$profile, ran$file), c(`6` = 5))
})

test_that("lines of a script need no source references, but the callback", {
  ran <- recorded_ticks("options(keep.source = FALSE)", "{", "  tick(3L)", "}")
  expect_equal(ticks_by_line(ran$profile, ran$file), c(`3` = 3))
  ran <- recorded_ticks(
    "tick(2L)", "for (name in getTaskCallbackNames()) removeTaskCallback(name)", "tick(3L)", "f <- function() {",
    "tick()", "}; f()"
  )
  expect_equal(ticks_by_line(ran$profile, ran$file), c(`2` = 2))
  expect_length(ran$err, 1)
  expect_match(ran$err, "removed the task callback `profile`: what it has run and defined afterwards has no lines[.]$")
  # Its ticks are there.
  expect_equal(sum(ran$profile$sample_values$value[ran$profile$sample_values$type == "samples"]), 6)
})

test_that("chunks of a document that a script renders have lines in both", {
  skip_if_not_installed("knitr")
  folder <- withr::local_tempdir()
  document <- file.path(folder, "a.Rmd")
  writeLines(c(
    "```{r first}", "tick(2L)", "", "x <- c(tick(),", "  tick(2L))", "```", "`r tick(7L)`", "```{r}",
    "for (i in 1:4) tick()", "```"
  ), document)
  ran <- recorded_ticks(
    "tick()", paste0("text <- knitr::knit(", deparse(document), ", output = tempfile(), quiet = TRUE)"), "tick(2L)"
  )
  expect_equal(ticks_by_line(ran$profile, document), c(`2` = 2, `4` = 3, `9` = 4))
  expect_equal(ticks_by_line(ran$profile, ran$file), c(`2` = 1, `3` = 16, `4` = 2))
  chunks <- summary(ran$profile, by = "knitr.chunk")
  expect_equal(chunks$samples[match(c("first", "unnamed-chunk-1"), chunks$knitr.chunk)], c(5, 4))
})

test_that("a script that cannot be parsed has one note", {
  output <- withr::local_tempfile(fileext = ".pb.gz")
  ran <- run_program("record", "--quiet", "-o", output, script("f(]"))
  expect_identical(ran$status, 1L)
  expect_length(grep("has no lines", ran$err), 1)
  expect_match(ran$err, "^profile: The script's own code has no lines: ", all = FALSE)
})

test_that("a script behaves as without a recording", {
  plain_and_recorded <- function(...) {
    path <- script(...)
    plain <- run_program(path, "a", "b c", via = file.path(R.home("bin"), "Rscript"))
    output <- withr::local_tempfile(fileext = ".pb.gz")
    recorded <- run_program("record", "--quiet", "-o", output, path, "a", "b c")
    expect_identical(recorded$status, plain$status)
    expect_identical(recorded$out, plain$out)
    expect_identical(grep("^Written to ", recorded$err, value = TRUE, invert = TRUE), plain$err)
    plain
  }
  plain <- plain_and_recorded(
    "cat('nframe', sys.nframe(), '\\n'); print(sys.call()); print(interactive()); print(commandArgs(TRUE))",
    "f <- function() warning('early'); f(); cat('after the warning\\n')",
    "on.exit(cat('exit\\n')); cat('after on.exit\\n')",
    "invisible(7)", "quote(a)", ".Last.value",
    "x <- readline('? '); print(x); print(environment()); print(parent.frame())",
    "print(ls(all.names = TRUE)); print(search()); print(nrow(showConnections()))",
    "print(setdiff(getTaskCallbackNames(), 'profile')); set.seed(1); print(runif(1))",
    "options(error = quote({ cat('handler\\n'); q(status = 5) }))",
    "warning('top')", "g <- function() stop('boom')", "g()", "cat('not here\\n')"
  )
  expect_identical(plain$status, 5L)
  expect_true("handler" %in% plain$out)
  plain_and_recorded("cat('a\\n')", "f(]", "cat('b\\n')")
  plain_and_recorded("x <- readLines(stdin(), 1)", "cat('read\\n')", "print(x)", "quit('no', 7, FALSE)")
  plain_and_recorded("invisible(addTaskCallback(function(...) { cat('called\\n'); TRUE }))", "1", "stop('no')")
  plain_and_recorded(character())
})
