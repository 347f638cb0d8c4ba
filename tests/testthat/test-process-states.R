# tier: gate
# The stack of R processes in various states, and that reading it does not affect them.

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
  connect <- sprintf("con <- socketConnection(port = %d, open = 'r', blocking = TRUE, timeout = 1e6)", port)
  cases <- list(
    readLines = "readLines(con, 1)",
    socketSelect = "socketSelect(list(con))"
  )
  for (name in names(cases)) {
    pid <- local_r_process(c(connect, "ask <- function() {", paste0("  ", cases[[name]]), "}", "ready()", "ask()"))
    x <- wait_for_stack(pid, c(name, "ask"))
    expect_identical(x$line[[2]], 3L, info = name)
    expect_match(attr(x, "system_call"), "select|poll", info = name)
    expect_identical(attr(x, "waits_for"), "network", info = name)
    # The name of the host may be that of both versions of the protocol.
    expect_match(attr(x, "waits_for_name"), paste0(":", port, "$"), info = name)
    expect_match(paste(format(x, width = 1000), collapse = " "), paste0("and waits for the network: .*:", port))
  }
})

# What a process waits for in this code, as soon as it is in the function of R that waits.
# `program`: of the child that it starts, which is another one at first.
wait_in <- function(code, name, program = NULL) {
  pid <- local_r_process(c("ask <- function() {", code, "}", "ready()", "ask()"), envir = parent.frame())
  x <- NULL
  wait_for(function() {
    x <<- wait_for_stack(pid, c(name, "ask"))
    !is.na(attr(x, "waits_for")) && (is.null(program) || identical(attr(x, "waits_for_name"), program))
  })
  c(attr(x, "waits_for"), attr(x, "waits_for_name"))
}

test_that("a process that waits says what for", {
  skip_without_processes()
  expect_identical(wait_in("Sys.sleep(1e6)", "Sys.sleep"), c("sleep", NA))
  expect_identical(wait_in("system('exec sleep 1000')", "system", "sleep"), c("child", "sleep"))
  expect_identical(wait_in("readLines(pipe('exec sleep 1000'))", "readLines", "sleep"), c("pipe", "sleep"))
  fifo <- withr::local_tempfile()
  expect_identical(system2("mkfifo", shQuote(fifo)), 0L)
  # Opening it waits for the other end: no call with a descriptor.
  expect_identical(wait_in(sprintf("readLines(pipe('cat %s'))", fifo), "readLines", "cat"), c("pipe", "cat"))
})

test_that("a worker of a cluster that has no task is idle", {
  skip_without_processes()
  cluster <- parallel::makePSOCKcluster(1)
  withr::defer(parallel::stopCluster(cluster))
  pid <- parallel::clusterCall(cluster, Sys.getpid)[[1]]
  x <- NULL
  wait_for(function() {
    x <<- dump_stack(pid)
    !is.na(attr(x, "waits_for")) && "workCommand" %in% x$name
  })
  expect_identical(attr(x, "waits_for"), "idle")
  expect_match(format(x, width = 1000), "and waits for work", all = FALSE)
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
      sprintf("invisible(compiler::enableJIT(%d))", jit),
      sprintf("forever <- dyn.load('%s')$forever", file.path(dir, "forever.so")),
      "spin <- function(x) {",
      "  .Call(forever, x)",
      "}",
      if (jit > 0) "spin <- compiler::cmpfun(spin)",
      "ready()",
      "spin(1)"
    ))
    # All memory that it reads changes, except R's calls.
    for (i in 1:5) {
      x <- wait_for_stack(pid, c(".Call", "spin"), "running")
      expect_identical(x$line[x$name == "spin"], 4L, info = jit)
      expect_identical(attr(x, "system_call"), NA_character_)
    }
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
  chain <- c("paste", "inner", "middle", "outer", "run")
  possible <- lapply(1:5, function(i) chain[i:5])
  seen <- 0
  expect_true(wait_for(function() {
    # Without the builtins of `paste()`.
    functions <- intersect(dump_stack(pid)$name, chain)
    if (length(functions) > 0) {
      expect_true(list(functions) %in% possible)
      seen <<- seen + 1
    }
    seen == 10
  }))
})

test_that("a process does not notice that its stack is read", {
  skip_without_processes()
  pid <- local_r_process(sleeping_code)
  wait_for_stack(pid, sleeping_stack)
  # Other programs may wake the process, but not each time.
  is_unchanged <- function(look) {
    before <- c(waits_of(pid), kernel_cpu_time(pid))
    look()
    identical(c(waits_of(pid), kernel_cpu_time(pid)), before)
  }
  expect_true(wait_for(function() is_unchanged(function() for (i in 1:10) dump_stack(pid))))
  expect_true(wait_for(function() is_unchanged(function() profile_process(pid, seconds = 0.1, clock = "wall"))))
  # The process would detect a stop.
  paused <- function() profile_until(pid, clock = "wall", native = TRUE)
  expect_false(is_unchanged(paused))
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
    "Sys.sleep(1e6)"
  ), at("code.R"))
  Sys.chmod(dir, "0777", use_umask = FALSE)
  Sys.chmod(dir(dir, full.names = TRUE), "0755", use_umask = FALSE)
  command <- sprintf(
    "%s cd %s; echo $$ > pid; TMPDIR=%s exec %s %s --vanilla code.R > log 2>&1",
    end_with_us(), shQuote(dir), shQuote(dir), as_user, shQuote(file.path(R.home("bin"), "Rscript"))
  )
  system2("sh", c("-c", shQuote(command)), wait = FALSE)
  pid <- pid_in(at("pid"))
  withr::defer(tools::pskill(pid, tools::SIGKILL))
  expect_true(wait_for(function() file.exists(at("ready"))))
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

test_that("a second library of R in a process is not taken for the one that runs", {
  skip_without_processes()
  library <- file.path(R.home("lib"), "libR.so")
  skip_if_not(file.exists(library), "this R has no library")
  dir <- withr::local_tempdir()
  # Several copies: some are at lower addresses than R's own, some at higher ones.
  copies <- file.path(dir, sprintf("libR-%d.so", 1:3))
  file.copy(library, copies)
  pid <- local_r_process(c(
    sprintf("dyn.load('%s', local = TRUE)", copies),
    "kept <- numeric(1e6)",
    "f <- function() repeat sqrt(kept[[1]])",
    "ready()",
    "f()"
  ))
  wait_for_stack(pid, "f", "running")
  expect_gt(nrow(profile_process(pid, seconds = 0.5, interval = 0.05)$samples), 0)
  expect_gt(nrow(profile_process(pid, seconds = 0.5, interval = 0.05, native = TRUE)$samples), 0)
  expect_true(any(grepl("$kept", holders(snapshot_memory(pid))$held_by, fixed = TRUE)))
})

# A copy of R's library that does not export these variables. Symbols are looked up by a hash of their names (a sum, in
# which each character counts 33 times as much as the next one). A name in which one character is larger by 1 and the next
# one smaller by 33 has the same hash, so the loader still connects the library with itself.
library_without <- function(names, dir) {
  bytes <- readBin(file.path(R.home("lib"), "libR.so"), "raw", 1e8)
  for (name in names) {
    other <- utf8ToInt(name)
    at <- max(which(utils::head(other, -1) %in% utf8ToInt("aceghijklmnopqrstuvwxy") & other[-1] - 33 >= utf8ToInt("A")))
    other[at + 0:1] <- other[at + 0:1] + c(1L, -33L)
    found <- grepRaw(c(as.raw(0), charToRaw(name), as.raw(0)), bytes, fixed = TRUE, all = TRUE)
    for (start in found) bytes[start + seq_along(other)] <- as.raw(other)
  }
  writeBin(bytes, file.path(dir, "libR.so"))
}

test_that("R is found without the variables that it may hide", {
  skip_without_processes()
  skip_if_not(file.exists(file.path(R.home("lib"), "libR.so")), "this R has no library")
  dir <- withr::local_tempdir()
  # Packages of R itself use the others.
  library_without(c("R_GlobalContext", "R_Srcref", "R_InBCInterpreter", "R_BCNodeStackEnd"), dir)
  library <- sprintf("export R_LD_LIBRARY_PATH=%s:%s", shQuote(dir), shQuote(R.home("lib")))
  sleeping <- local_r_process(sleeping_code, library)
  maps <- readLines(file.path("/proc", sleeping, "maps"))
  expect_true(any(grepl(file.path(normalizePath(dir), "libR.so"), maps, fixed = TRUE)))
  wait_for_stack(sleeping, sleeping_stack)
  expect_identical(dump_stack(sleeping)$line[1:4], c(NA, 3L, NA, 6L))
  x <- dump_stack(sleeping)
  attr(x, "unknown") <- "R 4.7.0"
  expect_match(paste(format(x), collapse = " "), "layout of the contexts of R 4.7.0 is unknown")
  # A recording and a snapshot need more of R's variables.
  waiting <- local_r_process(c("kept <- numeric(1e6)", "ready()", "nap <- function() {", "  Sys.sleep(1e6)", "}", "nap()"), library)
  wait_for_stack(waiting, c("Sys.sleep", "nap"))
  expect_identical(dump_stack(waiting)$line[1:2], c(NA, 4L))
  expect_gt(nrow(profile_process(waiting, seconds = 0.5, interval = 0.05, clock = "wall")$samples), 0)
  expect_true(any(grepl("$kept", holders(snapshot_memory(waiting))$held_by, fixed = TRUE)))
})
