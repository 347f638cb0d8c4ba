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
  # The R processes that have started it wait for a shell, if they have not just been started themselves.
  waiting <- NULL
  expect_true(wait_for(function() {
    waiting <<- setdiff(started()$pid, test)
    waits <- function(pid) {
      x <- tryCatch(dump_stack(pid), profile_error_process = function(e) NULL)
      any(c("system", "system2") %in% x$name)
    }
    length(waiting) > 0 && all(vapply(waiting, waits, NA))
  }))
  for (pid in waiting) {
    x <- dump_stack(pid)
    expect_match(attr(x, "system_call"), "wait4|waitid|read|select|poll")
    expect_length(attr(x, "children"), 1)
  }
})

# Each function returns TRUE if a system call has returned what it returns without a recorder. Then the next one is
# tried, in another round.
unharmed_code <- c(
  "nap <- function() {",
  "  begin <- Sys.time()",
  "  is.null(Sys.sleep(0.01)) && as.numeric(difftime(Sys.time(), begin, units = 'secs')) > 0.0099",
  "}",
  "server <- serverSocket(port <- as.integer(Sys.getenv('TEST_PORT')))",
  "out <- socketConnection(port = port, open = 'wb', blocking = TRUE)",
  "inn <- socketAccept(server, open = 'rb', blocking = TRUE)",
  "bytes <- as.raw(sample(0:255, 5e4, TRUE))",
  "sockets <- function() {",
  "  writeBin(bytes, out)",
  "  flush(out)",
  "  got <- raw()",
  "  while (length(got) < length(bytes)) got <- c(got, readBin(inn, raw(), length(bytes) - length(got)))",
  "  identical(got, bytes)",
  "}",
  "selects <- function() {",
  "  begin <- Sys.time()",
  "  !socketSelect(list(inn), timeout = 0.01) && as.numeric(difftime(Sys.time(), begin, units = 'secs')) > 0.0099",
  "}",
  "timers <- function() {",
  "  setTimeLimit(elapsed = 0.02, transient = TRUE)",
  "  on.exit(setTimeLimit())",
  "  tryCatch({ repeat for (i in 1:100) sqrt(i) }, error = function(e) grepl('elapsed time limit', conditionMessage(e)))",
  "}",
  "children <- function() {",
  "  identical(system('exit 3'), 3L) && identical(system('echo 5; sleep 0.01', intern = TRUE), '5')",
  "}",
  "rounds <- 0",
  "ready()",
  "repeat {",
  "  rounds <- rounds + 1",
  "  right <- c(nap(), sockets(), selects(), timers(), children())",
  "  cat(rounds, right, '\\n', file = Sys.getenv('TEST_LOG'), append = TRUE)",
  "}"
)

test_that("system calls of a process return what they return without a recorder, with 5,000 stops", {
  skip_without_processes()
  log <- withr::local_tempfile()
  withr::local_envvar(TEST_LOG = log, TEST_PORT = as.character(free_port()))
  pid <- local_r_process(unharmed_code)
  stops <- 0
  # `native = TRUE` also stops it while it waits.
  expect_true(wait_for(function() {
    for (native in c(FALSE, TRUE)) {
      stops <<- stops + length(processes_recorded(pid, 2, 0.001, "wall", check_children(FALSE, NULL), NULL, native = native)$pauses)
    }
    stops >= 5000
  }))
  lines <- readLines(log)
  lines <- lines[grepl(" $", lines)]
  found <- utils::read.table(text = lines, col.names = c("round", "nap", "sockets", "selects", "timers", "children"))
  expect_identical(found$round, seq_len(nrow(found)))
  expect_gt(nrow(found), 0)
  expect_true(all(found[-1] == "TRUE"), info = paste(utils::tail(lines[grepl("FALSE", lines)], 3), collapse = "\n"))
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

test_that("a process that a debugger traces is read while it goes on, and native code needs a stop", {
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
  recorded <- NULL
  expect_true(wait_for(function() {
    recorded <<- processes_recorded(pid, 0.5, 0.01, "cpu", check_children(FALSE, NULL), NULL)
    recorded$traced > 0
  }))
  expect_identical(length(recorded$pauses), 0L)
  expect_match(format_unread(recorded), "another process, such as a debugger, traces it", all = FALSE)
})
