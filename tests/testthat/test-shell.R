# tier: gate
# The shell command exec/profile: as a program, and its parts.

# Samples are certain after a while: the script works until R's profiler has written one.
work <- c(
  "work <- function() {",
  "  end <- proc.time()[[1]] + 0.3",
  "  while (proc.time()[[1]] < end)",
  "    sort(runif(1e5))",
  "}",
  "",
  "work()"
)

test_that("the program describes itself, in a screen", {
  help <- run_program("--help")
  expect_identical(help$status, 0L)
  expect_identical(help$err, character())
  expect_lte(length(help$out), 24)
  expect_lte(max(nchar(help$out)), 90)
  for (command in names(shell_commands())) {
    expect_match(help$out, paste0("^  ", command, " "), all = FALSE)
    described <- utils::capture.output(expect_identical(shell_command(c(command, "--help")), 0L))
    expect_match(described[[1]], paste0("usage: profile ", command), fixed = TRUE)
    expect_lte(length(described), 24)
  }
  expect_identical(run_program("--version")$out, paste("profile", getNamespaceVersion("profile")))
})

test_that("wrong arguments have status 2 and advice", {
  wrong <- function(...) {
    message <- utils::capture.output(status <- shell_command(c(...)), type = "message")
    expect_identical(status, 2L)
    message
  }
  expect_snapshot({
    wrong("recrd")
    wrong("record")
    wrong("record", "there-is-no-such-file.R")
    wrong("record", "--intervall", "1", "a.R")
    wrong("record", "--interval", "x", "a.R")
    wrong("record", "--interval", "10", "a.R")
    wrong("record", "--interval", "1e-9", "a.R")
    wrong("record", "--interval")
    wrong("record", "--pid", "1", "a.R")
    wrong("top", "--clock", "sun", "1")
    wrong("dump")
    wrong("convert", "a")
    wrong("list", "a")
  })
})

test_that("a document has no arguments, and is not replaced", {
  folder <- withr::local_tempdir()
  path <- file.path(folder, "report.Rmd")
  writeLines("Text", path)
  refused <- function(...) {
    message <- utils::capture.output(status <- shell_command(c("record", ...)), type = "message")
    expect_identical(list.files(folder), "report.Rmd")
    list(status, message)
  }
  expect_identical(refused(path, "a=1"), list(2L, "profile: A document takes no arguments, but there is `a=1`."))
  page <- file.path(folder, "report.html")
  expect_identical(
    refused("-o", page, path),
    list(2L, paste0("profile: `", page, "` is the document itself as a page. Choose another name with `-o`."))
  )
})

test_that("a document is rendered, and its slowest chunks are shown", {
  program()
  skip_if_not_installed("rmarkdown")
  skip_if_not(rmarkdown::pandoc_available("1.12.3"), "there is no pandoc")
  folder <- withr::local_tempdir()
  path <- file.path(folder, "report.Rmd")
  writeLines(c(
    "---", "title: A", "output: html_document", "---", "",
    "```{r define}", work[1:5], "```", "", "```{r slow chunk}", "work()", "```"
  ), path)
  withr::local_dir(withr::local_tempdir())
  recorded <- run_program("record", path)
  expect_identical(recorded$status, 0L, info = paste(recorded$err, collapse = "\n"))
  expect_setequal(list.files(folder), c("report.Rmd", "report.html"))
  expect_identical(list.files(), "report-profile.html")
  expect_match(recorded$err, " knitr[.]chunk$", all = FALSE)
  expect_match(recorded$err, " slow chunk$", all = FALSE)
  lines <- summary(read_profile("report-profile.html"))$by_line
  lines <- lines$line[basename(lines$filename) == "report.Rmd"]
  expect_true(15 %in% lines)
  # evaluate 1.0 removes source references.
  if (utils::packageVersion("evaluate") < "1.0.0") expect_true(any(8:10 %in% lines))
  hooked <- file.path(folder, "hooked.Rmd")
  writeLines(c(
    "```{r}", "knitr::opts_hooks$set(engine = function(options) options)", "```", "```{r}", work, "```"
  ), hooked)
  recorded <- run_program("record", "--quiet", "-o", "hooked.pb.gz", hooked)
  expect_identical(grep("^profile: ", recorded$err, value = TRUE), character())
  no_chunks <- file.path(folder, "text.Rmd")
  writeLines("Text", no_chunks)
  recorded <- run_program("record", "--quiet", "-o", "text.pb.gz", no_chunks)
  expect_match(recorded$err, "^profile: The document has no lines: none of its chunks has run ", all = FALSE)
  failing <- file.path(folder, "failing.Rmd")
  writeLines(c("```{r}", work, "stop('oops')", "```"), failing)
  recorded <- run_program("record", "-o", "failing.pb.gz", failing)
  expect_identical(recorded$status, 1L)
  expect_match(recorded$err, "oops", all = FALSE)
  expect_true("unnamed-chunk-1" %in% summary(read_profile("failing.pb.gz"), by = "knitr.chunk")$knitr.chunk)
})

test_that("the slowest tests of a script are shown", {
  program()
  folder <- withr::local_tempdir()
  writeLines(
    c(work[1:5], "test_that('it works', {", "  work()", "  expect_true(TRUE)", "})"), file.path(folder, "test-a.R")
  )
  path <- script("library(testthat)", paste0("test_dir(", deparse(folder), ", reporter = 'silent')"))
  # The user's profile may have loaded testthat.
  user_profiles <- c(script(""), script("loadNamespace('testthat')"))
  for (user_profile in user_profiles) {
    recorded <- run_program(
      "record", "-o", file.path(folder, "out.pb.gz"), path, env = paste0("R_PROFILE_USER=", shQuote(user_profile))
    )
    expect_identical(recorded$status, 0L, info = paste(recorded$err, collapse = "\n"))
    expect_match(recorded$err, " testthat[.]file$", all = FALSE)
    expect_match(recorded$err, " test-a[.]R$", all = FALSE)
    expect_match(recorded$err, " testthat[.]test$", all = FALSE)
    expect_match(recorded$err, " it works$", all = FALSE)
  }
  x <- read_profile(file.path(folder, "out.pb.gz"))
  expect_false(any(x$functions$name %in% c(".label_units", "label_chunks")))
})

test_that("arguments are options, values, and what belongs to the script", {
  command <- shell_commands()$record
  parsed <- shell_arguments(c("-o", "a.html", "--interval=0.1", "--native", "s.R", "-o", "--x", "1"), command, "record")
  expect_identical(parsed$options, list(output = "a.html", interval = "0.1", native = TRUE))
  expect_identical(parsed$values, c("s.R", "-o", "--x", "1"))
  expect_identical(shell_arguments(c("--", "-x"), command, "record")$values, "-x")
})

test_that("a script runs as under Rscript, and is recorded with its lines", {
  program()
  folder <- withr::local_tempdir()
  path <- script(
    work,
    "cat(commandArgs(TRUE), sep = '|')",
    "cat('', sub('.*/', '', grep('^--file=', commandArgs(), value = TRUE)), sys.nframe(), ls(), sep = '\\n')",
    "cat(readLines(file('stdin'), 1), Sys.getenv('R_PROFILE_USER'), '\\n')",
    "message('to the standard error')",
    "1 + 1",
    "quit(status = 3)"
  )
  arguments <- c("a b", "--help", "-o", "$HOME", "it's")
  output <- file.path(folder, "out.pb.gz")
  recorded <- run_program("record", "-o", output, path, arguments, input = "hello")
  plain <- run_program(path, arguments, input = "hello", via = file.path(R.home("bin"), "Rscript"))
  expect_identical(plain$status, 3L)
  expect_identical(recorded$status, 3L)
  expect_identical(recorded$out, plain$out)
  expect_identical(recorded$err[[1]], "to the standard error")
  expect_match(recorded$err, "^Written to ", all = FALSE)
  # The first of the next steps gives the others their `x`.
  first <- recorded$err[[match("Next:", recorded$err) + 1]]
  expect_match(first, "x <- read_profile(\"", fixed = TRUE)
  opened <- eval(parse(text = first)[[1]][[3]])
  expect_identical(opened$sources$source_type, "pprof")
  x <- read_profile(output)
  lines <- summary(x)$by_line
  lines <- lines[lines$filename == path, ]
  expect_true(all(lines$line %in% 1:14))
  expect_true(7 %in% lines$line)
  expect_gt(nrow(lines), 0)
  skip_if_not(file.exists("/proc/self/schedstat"))
  # A pprof file has no attributes.
  ticks <- sub("profile.cpu.ticks: ", "", grep("^profile[.]cpu[.]ticks: ", x$.comments$comment, value = TRUE), fixed = TRUE)
  expect_identical(as.numeric(ticks), sum(x$sample_values$value[x$sample_values$type == "samples"]))
  expect_match(x$.comments$comment, "^profile[.]cpu[.]clock: [0-9]+$", all = FALSE)
})

# Code of the path of the file to which R's profiler writes.
file_of_recording <- "grep('/Rprof[.]out$', Sys.readlink(Sys.glob('/proc/self/fd/*')), value = TRUE)[[1]]"

# Works until R's profiler has written a sample to its file, which before R 4.3 happens only after some kilobytes.
work_until_written <- c(
  work,
  paste("file <-", file_of_recording),
  "end <- Sys.time() + 250",
  "while (!any(grepl('\"', readLines(file, warn = FALSE), fixed = TRUE)) && Sys.time() < end) work()"
)

test_that("a script that fails or is killed is recorded until then", {
  program()
  skip_if_not(dir.exists("/proc/self/fd"), "the files of a process are not known")
  folder <- withr::local_tempdir()
  ends <- list(list("stop('oops')", 1L), list("tools::pskill(Sys.getpid(), 9)", 137L))
  for (end in ends) {
    output <- file.path(folder, "out.html")
    recorded <- run_program("record", "-o", output, "--quiet", script(work_until_written, end[[1]]))
    expect_identical(recorded$status, end[[2]])
    expect_identical(any(recorded$err == "Execution halted"), end[[2]] == 1L)
    expect_true(file.exists(output))
    unlink(output)
  }
})

test_that("what cannot be written is reported before the script runs", {
  path <- script("cat('it runs')")
  folder <- withr::local_tempdir()
  refused <- function(output) {
    out <- utils::capture.output(
      message <- utils::capture.output(status <- shell_command(c("record", "-o", output, path)), type = "message")
    )
    expect_identical(status, 1L)
    expect_identical(out, character())
    expect_identical(dir(folder), character())
    message[[1]]
  }
  expect_match(refused("out.foo"), "Cannot determine a format from the file name `out.foo`")
  expect_match(refused(file.path(folder, "no", "out.html")), "Cannot write .* there is no such file or directory")
})

test_that("a recording that cannot be written is kept, and the exit status is the script's", {
  program()
  folder <- withr::local_tempdir()
  kept_by <- function(recorded) {
    expect_identical(recorded$status, 3L)
    sub("^(Written to|profile: What R has recorded is kept in the folder) ", "", utils::tail(recorded$err, 1))
  }
  dir.create(file.path(folder, "results"))
  output <- file.path(folder, "results", "out.html")
  away <- script(work, paste0("unlink(", deparse(dirname(output)), ", recursive = TRUE)"), "quit(status = 3)")
  kept <- kept_by(run_program("record", "-o", output, away))
  withr::defer(unlink(kept))
  expect_match(basename(kept), "^profile-record-.*[.]pb[.]gz$")
  expect_true("work" %in% read_pprof(kept)$functions$name)

  # R's file is replaced by another one. (If it were overwritten, R might write its samples over that, depending on when
  # its buffer is full.)
  replaces <- c(paste("file <-", file_of_recording), "unlink(file)", "cat('no', file = file)")
  damaged <- script(work, replaces, "quit(status = 3)")
  kept <- kept_by(run_program("record", "-o", file.path(folder, "out.html"), damaged))
  withr::defer(unlink(kept, recursive = TRUE))
  expect_true("Rprof.out" %in% dir(kept))
})

test_that("a script that cannot be recorded runs without a recording", {
  folder <- withr::local_tempdir()
  settings <- list(interval = 0.01, clock = "cpu", event = "no such event", native = FALSE, children = FALSE)
  out <- withr::local_tempfile()
  ran <- run_recorded(script(paste0("writeLines('it runs', ", deparse(out), ")")), character(), folder, settings)
  expect_identical(ran$status, 0)
  expect_identical(readLines(out), "it runs")
  expect_match(hook_lines(folder, "notes"), "^The script is not recorded: ")
})

test_that("a script that removes callbacks is recorded to its end", {
  program()
  skip_if_not(dir.exists("/proc/self/fd"), "the files of a process are not known")
  output <- withr::local_tempfile(fileext = ".pb.gz")
  # The script ends only if R's profiler still writes to the file.
  ended <- run_program("record", "-o", output, "--quiet", script(
    "removeTaskCallback('profile')", "gc()", work_until_written, "quit(status = 3)"
  ))
  expect_identical(ended$status, 3L)
  expect_match(ended$err, "removed the task callback `profile`", all = FALSE)
  expect_no_match(ended$err, "R's profiler itself")
  expect_true("work" %in% read_pprof(output)$functions$name)
})

# Records a script that does some work, evaluates lines, and does other work: list(functions, source, messages).
record_with_profiler <- function(lines, ..., .local_envir = parent.frame()) {
  program()
  skip_if_not(dir.exists("/proc/self/fd"), "the files of a process are not known")
  output <- withr::local_tempfile(fileext = ".pb.gz", .local_envir = .local_envir)
  path <- script(work, "other <- function() work()", lines, "other()", "quit(status = 3)", .local_envir = .local_envir)
  ended <- run_program("record", "-o", output, "--quiet", ..., path)
  expect_identical(ended$status, 3L)
  # Without the line that names the file.
  x <- read_pprof(output)
  list(functions = x$functions$name, source = x$sources[1, ], messages = utils::head(ended$err, -1), out = ended$out)
}

says_where_it_ends <- function(recorded) {
  expect_length(recorded$messages, 1)
  pattern <- "^profile: The script has used R's profiler itself, so the recording ends after ([0-9.]+) s[.]$"
  expect_match(recorded$messages, pattern)
  as.numeric(sub(pattern, "\\1", recorded$messages))
}

test_that("a script may use R's profiler, and gets the same file as without a recording", {
  own <- withr::local_tempfile()
  lines <- c(
    "part <- function() work()",
    # As profvis does.
    paste0(
      "Rprof(", deparse(own), ", interval = 0.05, line.profiling = TRUE, gc.profiling = TRUE, memory.profiling = TRUE)"
    ),
    "part()", "Rprof(NULL)"
  )
  for (option in list(character(), "--children", if (is_live_platform()) "--native")) {
    unlink(own)
    recorded <- record_with_profiler(lines, option)
    # `work()` takes longer, and the profile of the part that follows is not there.
    expect_gte(says_where_it_ends(recorded), 0.25)
    expect_true("work" %in% recorded$functions)
    expect_false(any(c("part", "other") %in% recorded$functions))
    expect_identical(readLines(own, 1), "memory profiling: GC profiling: line profiling: sample.interval=50000")
    x <- read_rprof(own)
    expect_true("part" %in% x$functions$name)
    expect_false("other" %in% x$functions$name)
    unlink(own)
  }
})

test_that("a profiler of a script that is on at its end is left alone", {
  own <- withr::local_tempfile()
  lines <- paste0("Rprof(", deparse(own), ", interval = 0.05)")
  says_where_it_ends(record_with_profiler(lines))
  size <- file.size(own)
  path <- script(work, lines, "work()")
  system2(file.path(R.home("bin"), "Rscript"), shQuote(path), stdout = FALSE, stderr = FALSE)
  # Not all versions of R write the samples when they quit.
  expect_identical(size > 0, file.size(own) > 0)
})

test_that("a script that does not use R's profiler finds it as R has made it", {
  # A function that was called is serialized in another way, since R may have compiled it.
  fingerprint <- "cat(rlang::hash(deparse(utils::Rprof)), bindingIsLocked('Rprof', asNamespace('utils')))"
  recorded <- record_with_profiler(fingerprint)
  expect_identical(recorded$messages, character())
  expect_identical(recorded$out, system2(
    file.path(R.home("bin"), "Rscript"), c("-e", shQuote(fingerprint)), stdout = TRUE
  ))
  expect_true("other" %in% recorded$functions)
})

test_that("children that quit add nothing to the recording", {
  skip_on_cran()
  skip_on_os("windows")
  folder <- withr::local_tempdir()
  path <- script(
    work,
    "for (i in 1:3) {",
    "  child <- parallel:::mcfork()",
    "  if (inherits(child, 'masterProcess')) quit('no')",
    "  parallel:::selectChildren(child, 100)",
    "  work()",
    "}",
    "quit(status = 3)"
  )
  settings <- list(interval = 0.01, clock = "cpu", event = NULL, native = FALSE, children = FALSE)
  ran <- run_recorded(path, character(), folder, settings)
  expect_identical(ran$status, 3)
  file <- file.path(folder, "Rprof.out")
  copies <- hook_lines(folder, "copies")
  expect_length(copies, if (getRversion() < "4.3") 3 else 0)
  bytes <- file_bytes(file)
  remove_copies(file, copies)
  rest <- file_bytes(file)
  # R has written the same bytes itself.
  for (range in lapply(strsplit(copies, " "), as.numeric)) {
    copy <- bytes[seq(range[[1]], length.out = range[[2]] - range[[1]] + 1)]
    expect_length(grepRaw(copy, rest, fixed = TRUE), as.integer(length(copy) > 0))
  }
  expect_identical(nrow(profile_problems(read_rprof(file))), 0L)
})

test_that("copies are removed", {
  file <- write_bytes("abcdefgh")
  remove_copies(file, character())
  expect_identical(file_bytes(file), charToRaw("abcdefgh"))
  remove_copies(file, c("2 3 ", "5 4 ", "7 7 "))
  expect_identical(file_bytes(file), charToRaw("adefh"))
})

# Starts the program in the background, and sends it a signal when the script has created the file `ready`:
# list(status, out).
program_with_signal <- function(signal, output, lines) {
  folder <- withr::local_tempdir()
  at <- function(name) file.path(folder, name)
  file <- script(paste0("ready <- function() file.create(", deparse(at("ready")), ")"), lines)
  command <- paste(vapply(c(program(), "record", "--quiet", "-o", output, file), shQuote, ""), collapse = " ")
  writeLines(c(
    paste(command, ">", shQuote(at("out")), "2>&1 &"), paste("echo $! >", shQuote(at("pid"))), "wait $!",
    paste("echo $? >", shQuote(at("status.tmp"))), paste("mv", shQuote(at("status.tmp")), shQuote(at("status")))
  ), at("start"))
  withr::local_envvar(R_LIBS = paste(.libPaths(), collapse = ":"))
  system2("sh", at("start"), wait = FALSE)
  expect_true(wait_for(function() file.exists(at("ready"))))
  tools::pskill(as.integer(readLines(at("pid"))), signal)
  expect_true(wait_for(function() file.exists(at("status"))))
  list(status = as.integer(readLines(at("status"))), out = readLines(at("out")))
}

test_that("signals reach the script", {
  output <- withr::local_tempfile(fileext = ".html")
  interrupted <- program_with_signal(tools::SIGINT, output, c(
    work, "work()", "tryCatch({", "  ready()", "  Sys.sleep(1000)", "}, interrupt = function(e) cat('interrupted\n'))",
    "work()", "quit(status = 3)"
  ))
  expect_identical(interrupted$status, 3L)
  expect_identical(interrupted$out[[1]], "interrupted")
  expect_true(file.exists(output))
  ended <- program_with_signal(tools::SIGTERM, output, c("ready()", "Sys.sleep(1000)"))
  expect_identical(ended$status, 143L)
})

test_that("the exit status is the script's if nobody reads the output", {
  program()
  folder <- withr::local_tempdir()
  withr::local_envvar(R_LIBS = paste(.libPaths(), collapse = ":"))
  output <- file.path(folder, "out.html")
  status <- file.path(folder, "status")
  command <- paste(
    "{", paste(vapply(c(program(), "record", "-o", output, script("cat('one\n')", work, "quit(status = 3)")), shQuote, ""), collapse = " "),
    "; echo $? >", shQuote(status), "; } 2>&1 | head -n 1"
  )
  expect_identical(system(command, intern = TRUE), "one")
  expect_identical(readLines(status), "3")
  expect_true(file.exists(output))
})

test_that("only pages are replaced, unless the user has chosen the name", {
  folder <- withr::local_tempdir()
  file.copy(rprof_path("basic_line.out"), file.path(folder, "report.out"))
  withr::local_dir(folder)
  file.create("report.html", "work-profile.html")
  writeLines("cat('it runs')", "work.R")
  quietly <- function(...) utils::capture.output(print(shell_command(c(...))), type = "message")
  expect_output(message <- quietly("page", "report.out"), "2")
  expect_match(message, "`report.html` exists and is not a page of a profile", all = FALSE)
  expect_output(message <- quietly("record", "work.R"), "^.1. 2$")
  expect_match(message, "`work-profile.html` exists and is not a page of a profile", all = FALSE)
  expect_identical(file.size(c("report.html", "work-profile.html")), c(0, 0))
  expect_output(quietly("page", "-o", "report.html", "report.out"), "0")
  expect_true(is_page_file("report.html"))
  expect_output(quietly("page", "report.out"), "0")
})

test_that("the user's own profile is read, and child processes are not recorded", {
  program()
  own <- withr::local_tempfile(lines = "own_variable <- 1")
  path <- script(
    work, "cat(exists('own_variable'), Sys.getenv('R_PROFILE_USER') == commandArgs(TRUE), '\\n')",
    "cat(system2(file.path(R.home('bin'), 'Rscript'), c('-e', shQuote('cat(getTaskCallbackNames())')), stdout = TRUE))"
  )
  output <- withr::local_tempfile(fileext = ".html")
  recorded <- run_program("record", "-o", output, path, own, env = paste0("R_PROFILE_USER=", own))
  expect_identical(recorded$out, "TRUE TRUE ")
})

test_that("lines of expressions are moved to their place in the script", {
  path <- withr::local_tempfile(lines = c(
    "line profiling: sample.interval=10000", "#File 1: s.R?line=10", "#File 2: s.R?line=20", "#File 3: other.R",
    "1#2 \"f\" 2#1 \"g\" ", "3#4 \"h\" "
  ))
  x <- with_lines_of_files(read_rprof(path), "s.R")
  lines <- summary(x)$by_line
  expect_identical(paste0(lines$filename, ":", lines$line), c("other.R:4", "s.R:11", "s.R:20"))
  expect_no_error(validate_profile(x))
})

test_that("files are shown, converted and compared", {
  folder <- withr::local_tempdir()
  at <- function(name) file.path(folder, name)
  file <- rprof_path("basic_line.out")
  quietly <- function(...) utils::capture.output(status <- shell_command(c(...)), type = "message")
  quietly("convert", file, at("a.pb.gz"))
  expect_identical(read_profile(at("a.pb.gz"))$sources$source_type, "pprof")
  withr::with_dir(folder, quietly("page", "a.pb.gz"))
  expect_true(is_page_file(at("a.html")))
  # The page that `profile record` leaves is a profile like any other.
  quietly("convert", at("a.html"), at("b.pb.gz"))
  expect_equal(summary(read_profile(at("b.pb.gz")))$total, summary(read_profile(file))$total)
  shown <- utils::capture.output(quietly("compare", at("a.html"), at("a.html")))
  expect_match(shown[[1]], "1 run of base and 1 of new")
  quietly("page", "-o", at("c.html"), at("a.html"))
  expect_true(is_page_file(at("c.html")))
  dir.create(at("runs"))
  for (i in 1:3) file.copy(file, at(paste0("runs/", i, ".out")))
  shown <- utils::capture.output(quietly("compare", "-o", at("difference.html"), at("runs"), at("runs")))
  expect_match(shown[[1]], "3 runs of base and 3 of new")
  expect_true(file.exists(at("difference.html")))
  message <- utils::capture.output(expect_identical(shell_command(c("convert", at("none"), at("b.pb.gz"))), 1L), type = "message")
  expect_match(message, "none", all = FALSE)
})

test_that("native code is recorded with the package from its own library", {
  skip_without_native()
  file <- script(work)
  output <- withr::local_tempfile(fileext = ".pb.gz")
  # The recorded process would not find the package by itself.
  ended <- run_program("record", "--native", "--quiet", "-o", output, file, env = c("R_LIBS=", "R_LIBS_USER=/nowhere"))
  expect_identical(ended$status, 0L)
  expect_no_match(ended$err, "rror")
  # Without the package there would be an error, and no file. Which frames are in it depends on the ticks.
  expect_s3_class(read_pprof(output), "profile_data")
})

test_that("functions of packages have lines in a script, which sees no other packages than under Rscript", {
  skip_without_native()
  folder <- withr::local_tempdir()
  path <- script(
    "work <- function(i) { x <- 0; while (x < 1e7) x <- x + 1; x }",
    "invisible(lapply(1:3, work))",
    "cat(sort(setdiff(loadedNamespaces(), 'compiler')))"
  )
  output <- file.path(folder, "out.pb.gz")
  recorded <- run_program("record", "-o", output, path)
  plain <- run_program(path, via = file.path(R.home("bin"), "Rscript"))
  expect_identical(recorded$out, plain$out)
  x <- read_profile(output)
  lines <- summary(x, by = "line")
  expect_true("<base::lapply>" %in% lines$filename)
  expect_match(deparse(base::lapply)[lines$line[lines$filename == "<base::lapply>"]], "lapply(X, FUN)", fixed = TRUE)

  # It says why there are none.
  settings <- list(
    interval = 0.01, clock = "cpu", event = NULL, native = FALSE, children = FALSE, positions = TRUE,
    megabytes = .Machine$integer.max, titled = list(package = list(), name = list())
  )
  again <- file.path(folder, "again")
  dir.create(again)
  expect_identical(run_recorded(path, character(), again, settings)$status, 0)
  expect_identical(hook_lines(again, "missing"), "Not enough memory.")
  expect_false(file.exists(file.path(again, "profile.rds")))
  x <- recorded_script(path, again, Sys.time(), Sys.time(), "a script", FALSE, settings)$profile
  expect_match(note_of_missing_lines(x), "since only R's profiler could record: Not enough memory.", fixed = TRUE)
})
