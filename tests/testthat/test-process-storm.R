# tier: thorough
# Many samples of running processes, and the whole workload of the tests of native code: no stack may be impossible.
# bench/attach compares shares with Rprof().

# Records a process until this many stacks have native frames in their places, and expects that none are in wrong ones.
expect_native_stacks <- function(pid, least, info = NULL) {
  x <- NULL
  right <- 0
  expect_true(wait_for(function() {
    x <<- quietly(profile_process(pid, seconds = 3, interval = 0.004, native = TRUE))
    found <- native_entries(x)
    expect_equal(found$wrong, 0, info = paste(c(info, found$stacks), collapse = "\n"))
    right <<- right + found$right
    right >= least
  }))
  expect_s3_class(validate_profile(x), "profile_data")
}

test_that("native functions of another process are below the R functions that called them", {
  skip_without_processes()
  skip_without_native()
  for (flags in c("-O2 -g", "-O2")) {
    for (compile in c(FALSE, TRUE)) {
      pid <- local_native_process(native_library(flags), compile)
      expect_native_stacks(pid, 400, paste(flags, if (compile) "compiled" else "interpreted"))
      tools::pskill(pid, tools::SIGKILL)
    }
  }
})

test_that("where C code has R run byte code, nothing is in a wrong place", {
  skip_without_processes()
  skip_without_native()
  pid <- local_native_process(native_library(), TRUE, c("bytecode", "evaluated", "forced"))
  expect_native_stacks(pid, 100)
})

test_that("libraries that come and go are in no wrong place", {
  skip_without_processes()
  skip_without_native()
  pid <- local_native_process(native_library(), FALSE, c("plain", "loaded"))
  expect_native_stacks(pid, 100)
})

# Whether processes are direct or indirect children of another one.
started_by <- function(pids, ancestor) {
  vapply(pids, function(pid) {
    while (pid > 1 && pid != ancestor) {
      status <- suppressWarnings(tryCatch(readLines(sprintf("/proc/%d/stat", pid)), error = function(e) ") S 0"))
      pid <- as.integer(strsplit(sub(".*\\) ", "", status), " ")[[1]][[2]])
    }
    pid == ancestor
  }, NA)
}

test_that("tests that hang in R CMD check are found", {
  skip_without_processes()
  dir <- withr::local_tempdir()
  package <- file.path(dir, "hangs")
  dir.create(file.path(package, "tests"), recursive = TRUE)
  writeLines(c(
    "Package: hangs", "Version: 1.0", "Title: Sleeps In Its Tests", "Description: A test.", "License: GPL-3",
    "Author: A", "Maintainer: A <a@example.org>"
  ), file.path(package, "DESCRIPTION"))
  writeLines("", file.path(package, "NAMESPACE"))
  writeLines(c(
    "nap <- function() {",
    "  Sys.sleep(1e6)",
    "}",
    "nap()"
  ), file.path(package, "tests", "hanging-test.R"))
  command <- sprintf(
    "%s cd %s; echo $$ > pid; exec %s CMD check --no-manual hangs > log 2>&1",
    end_with_us(), shQuote(dir), shQuote(file.path(R.home("bin"), "R"))
  )
  system2("sh", c("-c", shQuote(command)), wait = FALSE)
  check <- pid_in(file.path(dir, "pid"))
  started <- function() {
    all <- list_r_processes()
    all[started_by(all$pid, check), ]
  }
  withr::defer(for (pid in c(check, started()$pid)) tools::pskill(pid, tools::SIGKILL))
  test <- integer()
  wait_for(function() {
    all <- started()
    test <<- all$pid[grepl("-f hanging-test.R", all$command, fixed = TRUE)]
    length(test) > 0 || has_ended(check)
  })
  expect_length(test, 1)
  x <- wait_for_stack(test, c("Sys.sleep", "nap"))
  expect_identical(nrow(x), 2L)
  expect_identical(attr(x, "children"), integer())
  # The R processes that have started it wait for a shell.
  waiting <- setdiff(started()$pid, test)
  expect_gt(length(waiting), 0)
  for (pid in waiting) {
    x <- dump_stack(pid)
    expect_true(any(c("system", "system2") %in% x$name))
    expect_match(attr(x, "system_call"), "wait4|waitid|read|select|poll")
    expect_length(attr(x, "children"), 1)
  }
})

test_that("a process does not notice 1,000 looks", {
  skip_without_processes()
  if (!has_compiler("CC")) skip("there is no compiler")
  dir <- withr::local_tempdir()
  # Unlike other system calls, this one is interrupted by any stop or signal.
  writeLines(c(
    "#include <errno.h>",
    "#include <sys/epoll.h>",
    "#include <unistd.h>",
    "void wait_ms(int *ms, int *interrupted) {",
    "  struct epoll_event event;",
    "  int file = epoll_create1(0);",
    "  *interrupted = epoll_wait(file, &event, 1, *ms) < 0 && errno == EINTR;",
    "  close(file);",
    "}"
  ), file.path(dir, "wait.c"))
  withr::with_dir(dir, run_tool(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "wait.c")))
  at <- function(name) file.path(dir, name)
  pid <- local_r_process(c(
    sprintf("dll <- dyn.load('%s')", at("wait.so")),
    "work <- function(n) {",
    "  x <- 1",
    "  for (i in seq_len(n)) x <- (x * 16807) %% 2147483647",
    "  x",
    "}",
    "nap <- function(ms) {",
    "  begin <- Sys.time()",
    "  interrupted <- .C(dll$wait_ms, as.integer(ms), 0L)[[2]]",
    "  Sys.sleep(ms / 1000)",
    "  c(interrupted, as.numeric(difftime(Sys.time(), begin, units = 'secs')) * 1000 / ms)",
    "}",
    "rounds <- 0",
    "ready()",
    "repeat {",
    "  rounds <- rounds + 1",
    "  result <- work(20000)",
    "  naps <- nap(20)",
    sprintf("  cat(rounds, result, naps, '\\n', file = '%s', append = TRUE)", at("log")),
    "}"
  ))
  seen <- list()
  for (i in 1:1000) {
    seen[[i]] <- dump_stack(pid)
  }
  read_log <- function() {
    lines <- readLines(at("log"), warn = FALSE)
    complete <- lines[grepl(" $", lines)]
    utils::read.table(text = complete, col.names = c("round", "result", "interrupted", "nap"))
  }
  log <- NULL
  expect_true(wait_for(function() is_written(at("log")) && nrow(log <<- read_log()) > 2))
  expect_identical(log$round, seq_len(nrow(log)))
  x <- 1
  for (i in seq_len(20000)) x <- (x * 16807) %% 2147483647
  expect_identical(unique(log$result), as.integer(x))
  expect_identical(sum(log$interrupted), 0L)
  # Two waits, neither of which was shorter than requested, apart from the resolution of the clocks.
  expect_gt(min(log$nap), 1.9)
  states <- vapply(seen, attr, "", "state")
  expect_true(all(states %in% c("running", "sleeping", "waiting")), info = paste(unique(states), collapse = " "))
  functions <- unlist(lapply(seen, function(x) x$name))
  expect_true(all(c("work", "nap") %in% functions))
  # The process would have detected a stop.
  expect_true(wait_for(function() {
    tools::pskill(pid, tools::SIGSTOP)
    tools::pskill(pid, tools::SIGCONT)
    sum(read_log()$interrupted) > 0
  }))
})

test_that("thousands of stacks of calls that alternate are never mixed", {
  skip_without_processes()
  pid <- local_r_process(process_code("chains.R"))
  x <- quietly(profile_process(pid, seconds = 10, interval = 1e-5, clock = "wall"))
  expect_gt(nrow(x$samples), 0)
  for (names in unique(functions_of_samples(x))) {
    names <- grep("^[ab][0-9]+$", names, value = TRUE)
    letter <- substr(names, 1, 1)[seq_len(min(1, length(names)))]
    expect_identical(rev(names), paste0(rep(letter, length(names)), seq_along(names)))
  }
})

test_that("a process that a debugger traces cannot be stopped", {
  skip_without_processes()
  skip_if(Sys.which("strace") == "" && Sys.which("gdb") == "", "no other tracer")
  pid <- local_r_process(process_code("lines.R"))
  tracer <- withr::local_tempfile()
  command <- if (Sys.which("strace") != "") {
    sprintf("exec strace -e trace=none -p %d -o /dev/null 2> /dev/null", pid)
  } else {
    sprintf("exec gdb -q -p %d -ex continue > /dev/null 2>&1 < /dev/zero", pid)
  }
  system2("sh", c("-c", shQuote(paste0("echo $$ > ", tracer, "; ", command))), wait = FALSE)
  withr::defer(tools::pskill(pid_in(tracer), tools::SIGKILL))
  expect_true(wait_for(function() is_traced(pid)))
  error <- expect_error(profile_process(pid, native = TRUE), class = "profile_error_process")
  expect_match(conditionMessage(error), "because process [0-9]+ \\((strace|gdb)\\) traces it")
})
