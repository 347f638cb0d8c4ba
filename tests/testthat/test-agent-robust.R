# tier: gate
# What may happen to a process that has an agent: nothing may hang, crash or remain.

test_that("other profilers work beside the agent, and it beside them", {
  folder <- withr::local_tempdir()
  got <- list()
  local_agent(function(x) got[[length(got) + 1]] <<- x)
  path <- withr::local_tempfile()
  Rprof(path, interval = 0.01)
  busy(1)
  Rprof(NULL)
  theirs <- suppressWarnings(read_rprof(path))
  status <- agent_status()
  expect_gt(nrow(theirs$samples), 20)
  of_work <- function(x) {
    frames <- as_tibble(x)
    vapply(split(frames$name, frames$sample_id), function(names) "busy_loop" %in% names, NA)
  }
  expect_gt(mean(of_work(theirs)), 0.8)
  expect_gt(status$taken, 20)
  x <- record_profile(busy(0.5))
  expect_gt(nrow(x$samples), 10)
  skip_if(inherits(try(joint_profile(1), silent = TRUE), "try-error"), "the joint profiler does not run here")
  joint <- suppressWarnings(joint_profile(busy(0.5)))
  expect_gt(nrow(joint$samples), 5)
  # More than the other profilers take for their own results, also on a busy machine.
  busy(4)
  status <- stop_agent()
  expect_complete(status)
  expect_identical(samples_of(got), status$sent)
  all <- of_work(do.call(combine_profiles, got))
  expect_gt(sum(all), 50)
  expect_gt(mean(all), 0.5)
})

test_that("a forked process has no agent, and may start one", {
  skip_on_os("windows")
  folder <- withr::local_tempdir()
  local_agent(folder)
  in_child <- withr::local_tempdir()
  result <- parallel::mclapply(1:2, function(i) {
    before <- agent_status()$state
    stopped <- tryCatch(stop_agent(), profile_error_argument = function(e) "no agent")
    start_agent(in_child, every = 0.2)
    busy(0.7)
    status <- stop_agent()
    list(before = before, stopped = stopped, status = status)
  }, mc.cores = 2)
  for (child in result) {
    expect_identical(child$before, "none")
    expect_identical(child$stopped, "no agent")
    expect_complete(child$status)
    expect_identical(child$status$sent, child$status$taken)
    expect_gt(child$status$sent, 5)
  }
  busy(0.5)
  expect_identical(agent_status()$state, "running")
  status <- stop_agent()
  expect_complete(status)
  expect_identical(status$sent, status$taken)
  expect_length(dir(folder), status$chunks_sent)
})

test_that("a forked process that quits leaves the agent of its parent alone", {
  skip_without_agent()
  folder <- withr::local_tempdir()
  out <- agent_script(c(
    "library(profile)",
    sprintf("start_agent('%s', every = 0.1)", folder),
    "f <- function() { x <- 0; for (i in 1:1e5) x <- x + i; x }",
    "child <- parallel::mcparallel({ gc(); quit('no') })",
    "invisible(suppressWarnings(parallel::mccollect(child)))",
    "end <- Sys.time() + 0.5; while (Sys.time() < end) f()",
    "status <- stop_agent()",
    "cat(status$state, status$sent == status$taken, status$sent > 10, '\n')"
  ))
  # The forked process may have a warning of cli, whose thread it does not have.
  expect_identical(trimws(utils::tail(out, 1)), "stopped TRUE TRUE")
})

test_that("forks at any moment are harmless", {
  skip_on_os("windows")
  folder <- withr::local_tempdir()
  local_agent(folder, interval = 0.001, every = 0.01)
  for (i in 1:50) {
    child <- parallel::mcparallel(agent_status()$state)
    expect_identical(parallel::mccollect(child)[[1]], "none")
  }
  status <- stop_agent()
  expect_complete(status)
  expect_identical(status$sent, status$taken)
})

test_that("it can be started and stopped 200 times", {
  folder <- withr::local_tempdir()
  skip_without_agent()
  threads <- function() length(dir("/proc/self/task"))
  files <- function() length(dir("/proc/self/fd"))
  before <- NULL
  taken <- 0
  for (i in 1:200) {
    start_agent(folder, interval = 0.001)
    busy(0.03)
    status <- stop_agent()
    expect_complete(status)
    taken <- taken + status$sent
    if (i == 10) before <- c(threads(), files())
  }
  expect_identical(c(threads(), files()), before)
  x <- lapply(dir(folder, full.names = TRUE), read_pprof)
  expect_gt(taken, 200)
  expect_gt(length(x), 100)
})

test_that("R quits with a last attempt to send, and without one if it is killed", {
  skip_without_agent()
  server <- http_server(list(headers = protobuf()))
  code <- c(
    "library(profile)",
    "f <- function() { x <- 0; for (i in 1:1e5) x <- x + i; x }",
    sprintf("start_agent('%s', every = 100)", server$url),
    "end <- Sys.time() + 1; while (Sys.time() < end) f()"
  )
  agent_script(c(code, "invisible(file.remove(character()))"))
  requests <- server$requests()
  expect_length(requests, 1)
  expect_gt(nrow(profile_of_request(requests[[1]])$samples), 10)
  agent_script(c(code, "quit('no', status = 3)"), status = 3L)
  expect_length(server$requests(), 2)

  # With a server that does not answer, it takes three seconds.
  away <- http_server(list(delay = 5))
  code[[3]] <- sprintf("start_agent('%s', every = 100)", away$url)
  time <- system.time(agent_script(code))
  expect_lt(time[["elapsed"]], 15)

  folder <- withr::local_tempdir()
  code[[3]] <- sprintf("start_agent('%s', every = 0.1)", folder)
  agent_script(c(code, "tools::pskill(Sys.getpid(), tools::SIGKILL)"), status = 137L)
  names <- dir(folder, all.files = TRUE, no.. = TRUE)
  expect_gt(length(names), 3)
  # A file that was just being written has another name.
  for (name in grep("[.]pb[.]gz$", names, value = TRUE)) {
    expect_gt(nrow(read_pprof(file.path(folder, name))$samples), 0)
  }
})

test_that("the package can be unloaded and loaded again", {
  skip_without_agent()
  folder <- withr::local_tempdir()
  out <- agent_script(c(
    "threads <- function() sum(grepl('^profile', vapply(dir('/proc/self/task', full.names = TRUE), function(t) readLines(file.path(t, 'comm')), '')))",
    "before <- threads()",
    "f <- function() { x <- 0; for (i in 1:1e5) x <- x + i; x }",
    "for (i in 1:3) {",
    sprintf("  profile::start_agent('%s', every = 100)", folder),
    "  end <- Sys.time() + 0.5; while (Sys.time() < end) f()",
    "  unloadNamespace('profile')",
    "  invisible(gc())",
    "}",
    "cat(threads() - before, is.null(getLoadedDLLs()[['profile']]), '\\n')",
    # The thread is gone, and nothing of it is called when R quits.
    "end <- Sys.time() + 0.2; while (Sys.time() < end) f()"
  ))
  expect_identical(trimws(utils::tail(out, 1)), "0 TRUE")
  expect_length(dir(folder), 3)
})

test_that("unloading does not wait for a name server, or for a server", {
  skip_without_agent()
  skip_if(Sys.which("perl") == "", "perl is not here")
  mounts <- system2("unshare", c("-rmn", "true"), stdout = FALSE, stderr = FALSE) == 0
  skip_if(!isTRUE(mounts), "namespaces are not permitted here")
  # A network of its own, in which the name server never answers.
  resolver <- withr::local_tempfile(lines = "nameserver 127.0.0.1")
  silent <- withr::local_tempfile(lines = c(
    "use IO::Socket::INET;",
    "socket(my $any, 2, 2, 0) or die $!;",
    "my $up = pack('a16 s x22', 'lo', 0x49);",
    "ioctl($any, 0x8914, $up) or die $!;",
    "my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 53, Proto => 'udp') or die $!;",
    "my $parent = $$;",
    "exec @ARGV if fork;",
    "close STDOUT;",
    "close STDERR;",
    "sleep 1 while getppid == $parent;"
  ))
  script <- withr::local_tempfile(lines = c(
    "f <- function() { x <- 0; for (i in 1:1e5) x <- x + i; x }",
    "profile::start_agent('http://collector.example.org:4318', every = 0.2, timeout = 0.5)",
    "end <- Sys.time() + 1.5; while (Sys.time() < end) f()",
    "time <- system.time(status <- profile::stop_agent(0.5))[[3]]",
    "cat(time < 2, status$sent + status$dropped == status$taken, status$sent == 0, status$last_error, '\\n')",
    "unloadNamespace('profile')",
    "invisible(gc())",
    # The thread that waits for the name server ends in code that is still there.
    "Sys.sleep(16)",
    "cat('alive\\n')"
  ))
  command <- sprintf(
    "mount --bind %s /etc/resolv.conf && exec perl %s %s %s", shQuote(resolver), shQuote(silent),
    shQuote(file.path(R.home("bin"), "Rscript")), shQuote(script)
  )
  out <- suppressWarnings(system2("unshare", c("-rmn", "sh", "-c", shQuote(command)), stdout = TRUE, stderr = TRUE))
  expect_match(out[[1]], "^TRUE TRUE TRUE No connection to http://collector.example.org:4318")
  expect_identical(utils::tail(out, 1), "alive")
})

test_that("full disks and read-only file systems are counted, and writing goes on when it can", {
  skip_without_agent()
  mounts <- system2("unshare", c("-rm", "sh", "-c", shQuote("mount -t tmpfs tmpfs /mnt")), stdout = FALSE, stderr = FALSE) == 0
  skip_if(!isTRUE(mounts), "namespaces are not permitted here")
  script <- withr::local_tempfile(lines = c(
    "library(profile)",
    "options(profile.otlp_backoff = 0.05)",
    "f <- function() { x <- 0; for (i in 1:1e5) x <- x + i; x }",
    "busy <- function(s) { end <- Sys.time() + s; while (Sys.time() < end) f() }",
    "start_agent('/mnt', every = 0.2)",
    "busy(0.5)",
    "a <- agent_status()",
    "system('cat /dev/zero > /mnt/full 2> /dev/null')",
    "busy(1)",
    "b <- agent_status()",
    "file.remove('/mnt/full')",
    "busy(3)",
    "c <- agent_status()",
    "system('mount -o remount,ro /mnt')",
    "busy(1)",
    "d <- agent_status()",
    "system('mount -o remount,rw /mnt')",
    "Sys.sleep(5)",
    "e <- stop_agent()",
    "for (s in list(a, b, c, d, e)) stopifnot(s$sent + s$queued + s$open + s$dropped == s$taken)",
    "files <- dir('/mnt', all.files = TRUE, no.. = TRUE)",
    "stopifnot(length(files) == e$chunks_sent, grepl('[.]pb[.]gz$', files))",
    "stopifnot(a$chunks_sent > 0, b$queued > 0, c$chunks_sent > b$chunks_sent, d$queued > 0, e$sent == e$taken)",
    "cat(b$last_error, '\\n', d$last_error, '\\n', sep = '')"
  ))
  command <- sprintf(
    "mount -t tmpfs -o size=1m tmpfs /mnt && exec %s %s", shQuote(file.path(R.home("bin"), "Rscript")), shQuote(script)
  )
  out <- suppressWarnings(system2("unshare", c("-rm", "sh", "-c", shQuote(command)), stdout = TRUE, stderr = TRUE))
  expect_match(out, "No space left on device", all = FALSE)
  expect_match(out, "Read-only file system", all = FALSE)
})

test_that("garbage collections at every allocation change nothing", {
  got <- list()
  local_agent(function(x) got[[length(got) + 1]] <<- x, interval = 0.001, every = 0.1)
  gctorture(TRUE)
  for (i in 1:20) busy_loop(10)
  gctorture(FALSE)
  status <- agent_status()
  gctorture2(50)
  status <- stop_agent()
  gctorture(FALSE)
  expect_complete(status)
  expect_identical(samples_of(got), status$sent)
})

test_that("a process that was stopped for some seconds has a gap", {
  skip_without_agent()
  folder <- withr::local_tempdir()
  pid <- local_r_process(c(
    "library(profile)",
    "f <- function() { x <- 0; for (i in 1:1e5) x <- x + i; x }",
    sprintf("start_agent('%s', every = 1000)", folder),
    "ready()",
    sprintf("while (!file.exists('%s/stop')) f()", folder),
    "stop_agent()",
    sprintf("file.create('%s/done')", folder)
  ))
  Sys.sleep(1)
  tools::pskill(pid, tools::SIGSTOP)
  Sys.sleep(4)
  tools::pskill(pid, tools::SIGCONT)
  Sys.sleep(1)
  file.create(file.path(folder, "stop"))
  expect_true(wait_for(function() file.exists(file.path(folder, "done"))))
  files <- dir(folder, "pb[.]gz$", full.names = TRUE)
  expect_length(files, 2)
  x <- lapply(files, read_pprof)
  durations <- vapply(x, function(x) x$sources$.duration_nanos / 1e9, 0)
  expect_true(all(durations < 3.5), info = format(durations))
  expect_lt(agent_values(x, "wall"), 5)
})
