# tier: gate
# The stack of R processes in all states in which they may be found, and whether they notice that it is read.

# The functions of the code of a process, innermost first, without those that read the code from a file.
functions_of <- function(pid) {
  x <- dump_stack(pid)
  x$name[seq_len(match("eval", c(x$name, "eval")) - 1)]
}

wait_until <- function(condition) {
  for (i in 1:600) {
    if (condition()) {
      return(TRUE)
    }
    Sys.sleep(0.05)
  }
  stop("This did not become true: ", paste(deparse(body(condition)), collapse = " "))
}

# Waits until the innermost functions are these, and returns the stack.
wait_for_functions <- function(pid, names) {
  for (i in 1:600) {
    x <- dump_stack(pid)
    if (identical(utils::head(x$name, length(names)), names)) {
      return(x)
    }
    Sys.sleep(0.05)
  }
  stop("The functions are ", paste(x$name, collapse = ", "))
}

# A port with a server that accepts connections and never sends anything.
local_silent_server <- function(envir = parent.frame()) {
  for (port in sample(20000:60000, 50)) {
    server <- tryCatch(serverSocket(port), error = function(e) NULL)
    if (!is.null(server)) {
      withr::defer(close(server), envir)
      return(port)
    }
  }
  skip("no free port")
}

test_that("a process that reads a socket says so", {
  skip_without_processes()
  skip_if_not(exists("serverSocket", baseenv()), "this R cannot listen")
  port <- local_silent_server()
  connect <- sprintf("con <- socketConnection(port = %d, open = 'r', blocking = TRUE, timeout = 10000)", port)
  cases <- list(
    readLines = "readLines(con, 1)",
    socketSelect = "socketSelect(list(con))"
  )
  for (name in names(cases)) {
    pid <- local_r_process(c(connect, "ask <- function() {", paste0("  ", cases[[name]]), "}", "ready()", "ask()"))
    x <- wait_for_functions(pid, c(name, "ask"))
    expect_identical(x$line[[2]], 3L, info = name)
    expect_true(wait_for_state(pid, "sleeping"), info = name)
    expect_match(attr(dump_stack(pid), "system_call"), "select|poll", info = name)
  }
})

test_that("a process in C code has the stack of the function that called it", {
  skip_without_processes()
  # For hours, without asking R whether to stop.
  pid <- local_r_process(c(
    "x <- sin(1:1e6)",
    "compute <- function() {",
    "  stats::cor(x, rev(x), method = 'kendall')",
    "}",
    "ready()",
    "compute()"
  ))
  # It has ranked the values, which takes a moment, when it is seen in the loop for some time.
  in_loop <- 0
  for (i in 1:600) {
    functions <- setdiff(functions_of(pid), ".Call")
    in_loop <- if (identical(functions, c("stats::cor", "compute"))) in_loop + 1 else 0
    if (in_loop == 10) break
    Sys.sleep(0.05)
  }
  for (i in 1:20) {
    x <- dump_stack(pid)
    in_r <- setdiff(x$name, ".Call")
    expect_identical(in_r[1:2], c("stats::cor", "compute"))
    expect_identical(x$line[x$name == "compute"], 3L)
    expect_identical(attr(x, "system_call"), NA_character_)
  }
  expect_identical(attr(x, "state"), "running")
})

test_that("a compiled loop that R calls is seen with its caller", {
  skip_without_processes()
  if (!has_compiler("CC")) skip("there is no compiler")
  dir <- withr::local_tempdir()
  writeLines(c(
    "#include <Rinternals.h>",
    "SEXP forever(SEXP x) { for (volatile long i = 0; ; i++) ; return x; }"
  ), file.path(dir, "forever.c"))
  withr::with_dir(dir, run_tool(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "forever.c")))
  for (jit in c(0, 3)) {
    pid <- local_r_process(c(
      sprintf("compiler::enableJIT(%d)", jit),
      sprintf("dll <- dyn.load('%s')", file.path(dir, "forever.so")),
      "spin <- function(x) {",
      "  .Call(dll$forever, x)",
      "}",
      if (jit > 0) "spin <- compiler::cmpfun(spin)",
      "ready()",
      "spin(1)"
    ))
    for (i in 1:600) {
      if ("spin" %in% functions_of(pid)) break
      Sys.sleep(0.05)
    }
    for (i in 1:10) {
      x <- dump_stack(pid)
      expect_identical(setdiff(x$name, c(".Call", "$"))[[1]], "spin", info = jit)
      expect_identical(x$line[x$name == "spin"], 4L, info = jit)
    }
    expect_identical(attr(x, "state"), "running")
  }
})

test_that("a process that collects garbage at each allocation has possible stacks", {
  skip_without_processes()
  pid <- local_r_process(c(
    "inner <- function(x) {",
    "  paste(x, 1)",
    "}",
    "middle <- function(x) inner(x)",
    "outer <- function(x) middle(x)",
    "run <- function() repeat outer(1)",
    "for (name in c('inner', 'middle', 'outer', 'run')) assign(name, compiler::cmpfun(get(name)))",
    "ready()",
    "gctorture(TRUE)",
    "run()"
  ))
  wait_until(function() "run" %in% functions_of(pid))
  chain <- c("paste", "inner", "middle", "outer", "run")
  seen <- list()
  wait_until(function() {
    # Without the builtins of `paste()`.
    seen <<- c(seen, list(intersect(functions_of(pid), chain)))
    length(seen) >= 60 && "paste" %in% unlist(seen)
  })
  possible <- lapply(1:5, function(i) chain[i:5])
  expect_identical(setdiff(seen, possible), list())
})

# Whether processes were started by another one, directly or not.
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
    "  Sys.sleep(1000)",
    "}",
    "nap()"
  ), file.path(package, "tests", "hanging-test.R"))
  command <- sprintf(
    "cd %s; echo $$ > pid; exec %s CMD check --no-manual hangs > log 2>&1",
    shQuote(dir), shQuote(file.path(R.home("bin"), "R"))
  )
  system2("sh", c("-c", shQuote(command)), wait = FALSE)
  check <- pid_in(file.path(dir, "pid"))
  started <- function() {
    all <- list_r_processes()
    all[started_by(all$pid, check), ]
  }
  withr::defer(for (pid in c(check, started()$pid)) tools::pskill(pid, tools::SIGKILL))
  test <- integer()
  for (i in 1:2400) {
    all <- started()
    test <- all$pid[grepl("-f hanging-test.R", all$command, fixed = TRUE)]
    if (length(test) > 0 || !dir.exists(sprintf("/proc/%d", check))) break
    Sys.sleep(0.05)
  }
  expect_length(test, 1)
  x <- wait_for_functions(test, c("Sys.sleep", "nap"))
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
  # Unlike others, this system call is interrupted by whatever stops a process or sends it a signal.
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
  log <- read_log()
  expect_identical(log$round, seq_len(nrow(log)))
  expect_gt(nrow(log), 2)
  x <- 1
  for (i in seq_len(20000)) x <- (x * 16807) %% 2147483647
  expect_identical(unique(log$result), as.integer(x))
  expect_identical(sum(log$interrupted), 0L)
  # Two waits, of which none was shorter than asked for, apart from the resolution of the clocks.
  expect_gt(min(log$nap), 1.9)
  states <- vapply(seen, attr, "", "state")
  expect_true(all(states %in% c("running", "sleeping", "waiting")), info = paste(unique(states), collapse = " "))
  functions <- unlist(lapply(seen, function(x) x$name))
  expect_true(all(c("work", "nap") %in% functions))
  # It would have noticed if it had been stopped.
  for (i in 1:600) {
    tools::pskill(pid, tools::SIGSTOP)
    tools::pskill(pid, tools::SIGCONT)
    Sys.sleep(0.02)
    if (sum(read_log()$interrupted) > 0) break
  }
  expect_gt(sum(read_log()$interrupted), 0)
})

test_that("a process that is protected is an error with the reason", {
  skip_without_processes()
  is_root <- Sys.info()[["effective_user"]] == "root"
  if (is_root && Sys.which("setpriv") == "") skip("no setpriv: root may read everything")
  as_user <- if (is_root) "setpriv --reuid=65534 --clear-groups" else ""
  if (!has_compiler("CC")) skip("there is no compiler")
  dir <- tempfile("protected", if (is_root) "/tmp" else tempdir())
  dir.create(dir)
  withr::defer(unlink(dir, recursive = TRUE))
  at <- function(name) file.path(dir, name)
  writeLines(c(
    "#include <sys/prctl.h>",
    "void protect(int *failed) { *failed = prctl(PR_SET_DUMPABLE, 0) != 0; }"
  ), at("protect.c"))
  withr::with_dir(dir, run_tool(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "protect.c")))
  writeLines(c(
    sprintf("dll <- dyn.load('%s')", at("protect.so")),
    "stopifnot(.C(dll$protect, 1L)[[1]] == 0)",
    sprintf("file.create('%s')", at("ready")),
    "Sys.sleep(1000)"
  ), at("code.R"))
  Sys.chmod(dir, "0777", use_umask = FALSE)
  Sys.chmod(dir(dir, full.names = TRUE), "0755", use_umask = FALSE)
  command <- sprintf(
    "cd %s; echo $$ > pid; TMPDIR=%s exec %s %s --vanilla code.R > log 2>&1",
    shQuote(dir), shQuote(dir), as_user, shQuote(file.path(R.home("bin"), "Rscript"))
  )
  system2("sh", c("-c", shQuote(command)), wait = FALSE)
  pid <- pid_in(at("pid"))
  withr::defer(tools::pskill(pid, tools::SIGKILL))
  for (i in 1:600) {
    Sys.sleep(0.05)
    if (file.exists(at("ready"))) break
  }
  expect_true(file.exists(at("ready")))
  look <- function(pid) {
    expression <- sprintf("cat(tryCatch(profile::dump_stack(%d)$name, profile_error_process = conditionMessage))", pid)
    suppressWarnings(system2(
      "env",
      c(
        paste0("TMPDIR=", shQuote(dir)), paste0("R_LIBS=", shQuote(paste(.libPaths(), collapse = ":"))), as_user,
        shQuote(file.path(R.home("bin"), "Rscript")), "-e", shQuote(expression)
      ),
      stdout = TRUE, stderr = TRUE
    ))
  }
  output <- look(pid)
  is_unreadable <- any(grepl("no package called|cannot open|Permission denied", output))
  skip_if(is_unreadable, "another user cannot read this library")
  expect_match(output, paste("not permit to read the memory of process", pid), all = FALSE)
  expect_match(output, "kernel.yama|It is protected", all = FALSE)
})
