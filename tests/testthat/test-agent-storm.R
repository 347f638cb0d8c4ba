# tier: thorough
# Storms around an agent: hundreds of starts, forks and kills, full disks, name servers that never answer, and real timers.

test_that("it can be started and stopped 200 times", {
  skip_without_agent()
  folder <- withr::local_tempdir()
  threads <- function() length(dir("/proc/self/task"))
  files <- function() length(dir("/proc/self/fd"))
  before <- NULL
  for (i in 1:200) {
    start_agent(folder, interval = 0.001)
    work_until_taken(i %% 5)
    stop_when_sent()
    if (i == 10) before <- c(threads(), files())
  }
  expect_identical(c(threads(), files()), before)
})

test_that("it can be started and stopped 50 times with Rprof()", {
  skip_without_rprof_agent()
  folder <- withr::local_tempdir()
  files <- function() length(dir("/proc/self/fd"))
  before <- NULL
  for (i in 1:50) {
    start_agent(folder, method = "rprof", every = 0.05)
    work_until_taken(i %% 3)
    stop_when_sent()
    if (i == 10) before <- files()
  }
  expect_identical(files(), before)
})

test_that("100 forks at any moment are harmless", {
  skip_on_os("windows")
  folder <- withr::local_tempdir()
  local_agent(folder, interval = 0.001, every = 0.01)
  for (i in 1:100) {
    child <- parallel::mcparallel(agent_status()$state)
    expect_identical(parallel::mccollect(child)[[1]], "none")
  }
  stop_when_sent()
})

test_that("garbage collections while the agent is stopped change nothing", {
  got <- list()
  local_agent(function(x) got[[length(got) + 1]] <<- x, interval = 0.001)
  gctorture(TRUE)
  for (i in 1:20) busy_loop(10)
  gctorture(FALSE)
  status <- agent_status()
  gctorture2(50)
  status <- stop_agent(300)
  gctorture(FALSE)
  expect_complete(status)
  expect_identical(samples_of(got), status$sent)
})

test_that("failures of full disks and read-only file systems are counted, and writing continues afterwards", {
  skip_without_agent()
  mounts <- system2("unshare", c("-rm", "sh", "-c", shQuote("mount -t tmpfs tmpfs /mnt")), stdout = FALSE, stderr = FALSE) == 0
  skip_if(!isTRUE(mounts), "namespaces are not permitted here")
  script <- withr::local_tempfile(lines = c(
    "library(profile)",
    "options(profile.otlp_backoff = 0.05)",
    script_work,
    "failed <- function() agent_status()$queued > 0 && !identical(agent_status()$last_error, before)",
    "start_agent('/mnt', every = 0.2)",
    "work_until(function() agent_status()$chunks_sent > 0)",
    "a <- agent_status()",
    "before <- a$last_error",
    "system('cat /dev/zero > /mnt/full 2> /dev/null')",
    "work_until(failed)",
    "b <- agent_status()",
    "before <- b$last_error",
    "file.remove('/mnt/full')",
    "work_until(function() agent_status()$chunks_sent > b$chunks_sent)",
    "c <- agent_status()",
    "system('mount -o remount,ro /mnt')",
    "work_until(failed)",
    "d <- agent_status()",
    "system('mount -o remount,rw /mnt')",
    "work_until(function() agent_status()$chunks_sent > d$chunks_sent)",
    "e <- stop_agent(200)",
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

test_that("unloading does not wait for a name server, or for a server", {
  skip_without_agent()
  skip_if(Sys.which("perl") == "", "perl is not here")
  mounts <- system2("unshare", c("-rmn", "true"), stdout = FALSE, stderr = FALSE) == 0
  skip_if(!isTRUE(mounts), "namespaces are not permitted here")
  # A separate network in which the name server never answers.
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
    script_work,
    "profile::start_agent('http://collector.example.org:4318', every = 0.2, timeout = 0.5)",
    "work_until(function() !is.na(profile::agent_status()$last_error))",
    "status <- profile::stop_agent(0.5)",
    "cat(status$sent + status$dropped == status$taken, status$sent == 0, status$last_error, '\\n')",
    "unloadNamespace('profile')",
    "invisible(gc())",
    # The code of the thread that waits for the name server is still loaded when it ends.
    "Sys.sleep(16)",
    "cat('alive\\n')"
  ))
  command <- sprintf(
    "mount --bind %s /etc/resolv.conf && exec perl %s %s %s", shQuote(resolver), shQuote(silent),
    shQuote(file.path(R.home("bin"), "Rscript")), shQuote(script)
  )
  out <- suppressWarnings(system2("unshare", c("-rmn", "sh", "-c", shQuote(command)), stdout = TRUE, stderr = TRUE))
  expect_match(out[[1]], "^TRUE TRUE No connection to http://collector.example.org:4318")
  expect_identical(utils::tail(out, 1), "alive")
})

test_that("a process that was stopped for some seconds has a gap", {
  skip_without_agent()
  folder <- withr::local_tempdir()
  pid <- local_r_process(c(
    "library(profile)",
    script_work,
    sprintf("start_agent('%s', every = 1000)", folder),
    "work_until_taken()",
    "ready()",
    sprintf("while (!file.exists('%s/stop')) f()", folder),
    "stop_agent(200)",
    sprintf("file.create('%s/done')", folder)
  ))
  tools::pskill(pid, tools::SIGSTOP)
  Sys.sleep(4)
  tools::pskill(pid, tools::SIGCONT)
  # The first chunk ends at the gap.
  expect_true(wait_for(function() length(dir(folder, "pb[.]gz$")) == 1))
  file.create(file.path(folder, "stop"))
  expect_true(wait_for(function() file.exists(file.path(folder, "done"))))
  files <- dir(folder, "pb[.]gz$", full.names = TRUE)
  expect_length(files, 2)
  # None contains the four seconds of the stop.
  files <- files[order(file.mtime(files))]
  x <- lapply(files, read_pprof)
  ends <- vapply(x, function(x) x$sources$source_timestamp + x$sources$.duration_nanos / 1e9, 0)
  expect_gt(x[[2]]$sources$source_timestamp - ends[[1]], 3.9)
})

test_that("a helper that is killed again and again loses nothing", {
  skip_without_agent()
  ours <- certificate()
  server <- https_server(ours, list(headers = protobuf()))
  base <- local_relay_base()
  withr::local_envvar(OTEL_EXPORTER_OTLP_CERTIFICATE = ours$certificate)
  paths <- file.path(base, c("one", "two"))
  stop <- file.path(base, "stop")
  for (path in paths) {
    local_r_process(c(
      "library(profile)", script_work, "options(profile.otlp_backoff = 0.02)",
      sprintf("start_agent('%s', every = 0.5, timeout = 200)", server$url), "ready()",
      sprintf("while (!file.exists('%s')) f()", stop), "status <- stop_agent(250)", save_status(path)
    ))
  }
  for (i in 1:6) {
    sent <- length(server$requests())
    expect_true(wait_for(function() length(server$requests()) > sent + 3))
    helper <- the_only_helper(base)
    # The last helper is not killed, since a stopping agent does not wait for a new one.
    if (i < 6) tools::pskill(helper, tools::SIGKILL)
  }
  file.create(stop)
  expect_true(wait_for(function() all(file.exists(paths))))
  status <- lapply(paths, readRDS)
  for (one in status) {
    expect_complete(one)
    expect_identical(one$sent, one$taken)
  }
  # Requests that the helper was sending when it was killed may arrive twice.
  requests <- server$requests()
  requests <- requests[!duplicated(lapply(requests, `[[`, "body"))]
  expect_identical(samples_of(lapply(requests, profile_of_request)), status[[1]]$sent + status[[2]]$sent)
})
