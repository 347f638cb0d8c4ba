# Files and expected values that several tests share.

# PROFILE_TEST_LAZY=false runs all tests with ordinary columns.
if (identical(Sys.getenv("PROFILE_TEST_LAZY"), "false")) {
  options(profile.lazy = FALSE)
}

data_path <- function(...) {
  testthat::test_path("data", ...)
}

rprof_path <- function(file) {
  data_path("rprof", file)
}

# The files that Rprof() wrote, and edited versions of such files.
rprof_files <- function() {
  files <- dir(data_path("rprof"))
  setdiff(files, c("edit_zero_bytes.out", grep("^rprofmem", files, value = TRUE)))
}

# Complete, unedited files of R. Reading and writing returns them unchanged.
regular_files <- function() {
  grep("^(edit|killed|latin1)", rprof_files(), invert = TRUE, value = TRUE)
}

read_quietly <- function(path, ...) {
  suppressWarnings(read_rprof(path, ...), classes = "profile_warning")
}

read_gzipped <- function(path) {
  con <- gzfile(path)
  on.exit(close(con))
  readLines(con)
}

write_file <- function(..., path = withr::local_tempfile(.local_envir = parent.frame())) {
  lines <- c(...)
  con <- file(path, "wb")
  on.exit(close(con))
  writeLines(lines, con, useBytes = TRUE)
  path
}

write_bytes <- function(bytes, path = withr::local_tempfile(.local_envir = parent.frame())) {
  writeBin(if (is.character(bytes)) charToRaw(bytes) else bytes, path)
  path
}

file_bytes <- function(path) {
  readBin(path, "raw", file.size(path))
}

# Stacks as text, innermost first, one string for each sample.
stacks <- function(x) {
  flat <- as_tibble(x)
  unname(vapply(
    split(flat$name, factor(flat$sample_id, seq_len(nrow(x$samples)))),
    paste, character(1), collapse = " < "
  ))
}

# A small profile for tests that edit or write it.
small_profile <- function(..., .local_envir = parent.frame()) {
  path <- withr::local_tempfile(.local_envir = .local_envir)
  write_file(
    "line profiling: sample.interval=10000",
    "#File 1: a.R",
    "1#3 \"f\" 1#7 \"g\" ",
    "\"h\" 1#8 \"g\" ",
    "1#3 \"f\" 1#7 \"g\" ",
    path = path
  )
  read_rprof(path, ..., source_uri = "small.out")
}

# Expects one warning of a class and returns the value.
expect_profile_warning <- function(expr, class) {
  value <- NULL
  testthat::expect_warning(value <- expr, class = class)
  value
}

# ---- Tables of cases, for snapshots ------------------------------------------

# The lines of a table: one column for each argument, under its name.
text_table <- function(...) {
  columns <- list(...)
  cells <- Map(function(name, values) {
    cells <- c(name, values)
    formatC(cells, width = -max(nchar(cells)), flag = "-")
  }, names(columns), columns)
  sub(" +$", "", do.call(paste, c(unname(cells), sep = " | ")))
}

# The code of an expression on one line; for a block, the expressions in it.
one_line <- function(expression) {
  if (rlang::is_call(expression, "{")) {
    return(paste(vapply(as.list(expression)[-1], one_line, ""), collapse = "; "))
  }
  paste(trimws(deparse(expression, 500)), collapse = " ")
}

# Evaluates each expression of a block, which must raise an error. Returns the lines of a table with its code, the
# function that reports the error, and all lines of the message.
errors_of <- function(cases, transform = identity) {
  cases <- as.list(substitute(cases))[-1]
  caller <- parent.frame()
  errors <- lapply(cases, function(case) {
    error <- tryCatch(
      {
        eval(case, new.env(parent = caller))
        NULL
      },
      error = identity
    )
    if (is.null(error)) stop("This is no error: ", one_line(case))
    error
  })
  text_table(
    code = vapply(cases, one_line, ""),
    "error in" = vapply(errors, function(error) as.character(conditionCall(error)[[1]]), ""),
    message = transform(vapply(errors, function(error) gsub("\n", " / ", conditionMessage(error)), ""))
  )
}

# testthat 3.1.0 does not have expect_no_warning(), which 3.1.6 has.
expect_no_warning <- function(expr) {
  testthat::expect_warning(expr, NA)
}

# Replaces a function of the package until the end of the test.
replace_function <- function(name, value, .local_envir = parent.frame()) {
  replace <- function(f) utils::assignInNamespace(name, f, "profile")
  original <- utils::getFromNamespace(name, "profile")
  withr::defer(replace(original), envir = .local_envir)
  replace(value)
}

# ---- Other processes -----------------------------------------------------------

# Shell code that ends the process that evaluates it (also after `exec`) when this process has ended, also if this
# process was killed. The watching process is a child of neither.
end_with_us <- function() {
  watch <- sprintf("while kill -0 %d && kill -0 $$; do sleep 1; done; kill $$; sleep 1; kill -KILL $$", Sys.getpid())
  paste0("( ( ", watch, " ) > /dev/null 2>&1 & );")
}

# Runs R code in a separate process, with this version of the package. A process that is killed leaves its temporary
# directory, which is inside ours and removed with it.
run_r <- function(code, prefix = "", wait = TRUE, env = "") {
  lazy <- sprintf("options(profile.lazy = %s)", getOption("profile.lazy", TRUE))
  script <- write_file(c(lazy, code), path = tempfile(fileext = ".R"))
  output <- tempfile()
  libs <- paste(normalizePath(.libPaths()), collapse = ":")
  command <- paste0(
    end_with_us(), prefix, " R_LIBS=", shQuote(libs), " TMPDIR=", shQuote(tempdir()), " exec ", env, " ",
    shQuote(file.path(R.home("bin"), "Rscript")), " ", shQuote(script), " > ", shQuote(output), " 2>&1"
  )
  if (wait) {
    status <- suppressWarnings(system2("bash", c("-c", shQuote(command))))
    return(list(status = status, output = readLines(output, warn = FALSE)))
  }
  pid_file <- tempfile()
  system2("bash", c("-c", shQuote(paste0("echo $$ > ", pid_file, "; ", command))), wait = FALSE)
  list(
    pid = function() {
      wait_for(function() is_written(pid_file))
      as.integer(readLines(pid_file))
    },
    output = output,
    lines = function() if (file.exists(output)) readLines(output, warn = FALSE) else character()
  )
}

last_lines <- function(lines) paste(c("", utils::tail(lines, 30)), collapse = "\n")

# Expects that a process of `run_r()` ran to its end without an error; a failure shows what it printed.
expect_ran <- function(result) {
  testthat::expect_equal(result$status, 0, info = last_lines(result$output))
}

# Runs a script with these arguments in a separate process, expects that it succeeds, and returns its last line.
run_script <- function(path, ...) {
  arguments <- deparse(as.character(c(...)))
  result <- run_r(c(
    sprintf("commandArgs <- function(...) %s", arguments),
    sprintf("source(%s)", deparse(normalizePath(path)))
  ))
  expect_ran(result)
  utils::tail(result$output, 1)
}

# Waits until a process of `run_r(wait = FALSE)` has printed a line, and expects that it did before it ended. Returns the line.
expect_printed <- function(process, pattern) {
  found <- function() grep(pattern, process$lines(), value = TRUE)
  # The process may print its last lines between the two checks.
  wait_for(function() length(found()) > 0 || !tools::pskill(process$pid(), 0))
  line <- found()
  testthat::expect(length(line) > 0, paste0("No line `", pattern, "` in the output of the process:", last_lines(process$lines())))
  invisible(line[1])
}

# Expects an event, see wait_for(); a failure shows what the process printed.
expect_event <- function(condition, process) {
  came <- wait_for(condition)
  testthat::expect(came, paste0("It did not happen. Output of the process:", last_lines(process$lines())))
}

# Waits for an event. Tests wait only with this function. The limit applies to events that never happen; no test expects
# an event within a time.
wait_for <- function(condition, seconds = 300) {
  end <- Sys.time() + seconds
  while (Sys.time() < end) {
    if (condition()) {
      return(TRUE)
    }
    Sys.sleep(0.02)
  }
  FALSE
}

# Whether another process has written to a file: some functions create their file before they have content.
is_written <- function(path) {
  isTRUE(file.size(path) > 0)
}

# The directory that `build(dir)` has filled, once for all processes of a test run, in the shared directory that
# `tools/test` provides. If another process is building, this one waits for it.
built_once <- function(name, build) {
  base <- Sys.getenv("PROFILE_TEST_BUILT", tempdir())
  dir <- file.path(base, name)
  done <- file.path(dir, ".done")
  if (file.exists(done)) {
    return(dir)
  }
  if (dir.create(dir, showWarnings = FALSE)) {
    # If building fails, all waiting processes fail.
    tryCatch(build(dir), error = function(error) {
      writeLines(conditionMessage(error), file.path(dir, ".failed"))
      stop(error)
    })
    file.create(done)
  } else {
    failed <- file.path(dir, ".failed")
    wait_for(function() file.exists(done) || is_written(failed), 600)
    if (!file.exists(done)) {
      stop("`", name, "` cannot be built:\n", paste(suppressWarnings(readLines(failed)), collapse = "\n"), call. = FALSE)
    }
  }
  dir
}

# A prefix for commands that should react to Ctrl-C: background processes of a shell ignore it, and R >= 4.5 does not
# change this.
listen_to_interrupts <- function() {
  listen <- "env --default-signal=INT"
  if (suppressWarnings(system(paste(listen, "true"), ignore.stderr = TRUE)) != 0) {
    skip("env has no --default-signal: Ctrl-C is not tested")
  }
  listen
}

# Draws on a device that does not write a file.
plot_quietly <- function(x, ...) {
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  plot(x, ...)
}
