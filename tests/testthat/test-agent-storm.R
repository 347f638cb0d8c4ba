# tier: thorough
# Storms around an agent: hundreds of starts, forks and kills, full disks, servers that come and go, and real timers.

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
    script_work,
    "start_agent('/mnt', every = 0.2)",
    "work_until(function() agent_status()$chunks_sent > 0)",
    "a <- agent_status()",
    "system('cat /dev/zero > /mnt/full 2> /dev/null')",
    "work_until(function() agent_status()$dropped_lost > 0)",
    "b <- agent_status()",
    "file.remove('/mnt/full')",
    "work_until(function() agent_status()$chunks_sent > b$chunks_sent)",
    "c <- agent_status()",
    "system('mount -o remount,ro /mnt')",
    "work_until(function() agent_status()$dropped_lost > c$dropped_lost)",
    "d <- agent_status()",
    "system('mount -o remount,rw /mnt')",
    "work_until(function() agent_status()$chunks_sent > d$chunks_sent)",
    "e <- stop_agent(200)",
    "for (s in list(a, b, c, d, e)) stopifnot(s$sent + s$queued + s$open + s$dropped == s$taken)",
    "files <- dir('/mnt', all.files = TRUE, no.. = TRUE)",
    "stopifnot(length(files) == e$chunks_sent, grepl('[.]pb[.]gz$', files))",
    "cat(b$last_error, '\\n', d$last_error, '\\n', sep = '')"
  ))
  command <- sprintf(
    "mount -t tmpfs -o size=1m tmpfs /mnt && exec %s %s", shQuote(file.path(R.home("bin"), "Rscript")), shQuote(script)
  )
  out <- suppressWarnings(system2("unshare", c("-rm", "sh", "-c", shQuote(command)), stdout = TRUE, stderr = TRUE))
  expect_match(out, "the disk is full", all = FALSE)
  expect_match(out, "the file system is read-only", all = FALSE)
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

# A process that computes with an agent. It writes its counts to a file all the time, and ends when a file exists.
worker <- function(url, base, log, stop, envir) {
  local_r_process(envir = envir, c(
    "library(profile)", script_work, "options(profile.otlp_backoff = 0.05)",
    sprintf("start_agent('%s', every = 0.1, timeout = 1, spool = '%s')", url, base), "ready()",
    "note <- function(s) cat(s$taken, s$found, s$sent, s$queued, s$open, s$dropped, 'end\\n')",
    sprintf("sink('%s')", log),
    sprintf("while (!file.exists('%s')) { f(); note(agent_status()) }", stop),
    "note(stop_agent(250))"
  ))
}

# The last complete line of a log.
last_counts <- function(log) {
  lines <- grep(" end$", readLines(log, warn = FALSE), value = TRUE)
  counts <- as.numeric(strsplit(utils::tail(c("0 0 0 0 0 0 end", lines), 1), " ")[[1]][1:6])
  as.list(rlang::set_names(counts, c("taken", "found", "sent", "queued", "open", "dropped")))
}

# One minute, or as many seconds as PROFILE_STORM_SECONDS says.
test_that("every sample of a complete part arrives or is counted, whatever happens", {
  skip_without_agent()
  seconds <- as.numeric(Sys.getenv("PROFILE_STORM_SECONDS", "60"))
  here <- environment()
  base <- local_spool()
  # A small disk, if this user may mount one.
  has_disk <- system2("mount", c("-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", base), stdout = FALSE, stderr = FALSE) == 0
  if (has_disk) withr::defer(system2("umount", c("-l", base)))
  notes <- withr::local_tempdir()
  accepted <- list()
  accepts <- function() {
    server <- http_server(list(headers = protobuf()), .local_envir = here)
    accepted[[length(accepted) + 1]] <<- server$requests
    server$url
  }
  url <- accepts()
  pid_of_server <- as.integer(readLines(file.path(http_running$dir, "address"))[[2]])
  stop <- file.path(notes, "stop")
  logs <- character()
  start_worker <- function() {
    logs <<- c(logs, file.path(notes, length(logs) + 1))
    file.create(utils::tail(logs, 1))
    worker(url, base, utils::tail(logs, 1), stop, here)
  }
  # Losses are counted by the process that has them, so it must not be killed before it has told them.
  told <- function() {
    size <- file.size(utils::tail(logs, 1))
    Sys.sleep(3)
    testthat::expect_true(wait_for(function() file.size(utils::tail(logs, 1)) > size))
  }
  events <- list(
    away = function() http_server(list(close = "unread"), .local_envir = here),
    closing = function() http_server(list(close = "read"), .local_envir = here),
    busy = function() http_server(list(status = 503), .local_envir = here),
    back = accepts,
    silent = function() {
      tools::pskill(pid_of_server, tools::SIGSTOP)
      Sys.sleep(2)
      tools::pskill(pid_of_server, tools::SIGCONT)
    },
    kill_forwarder = function() tools::pskill(forwarders(base), tools::SIGKILL),
    kill_r = function() {
      tools::pskill(pid, tools::SIGKILL)
      if (stats::runif(1) < 0.5) tools::pskill(forwarders(base), tools::SIGKILL)
      pid <<- start_worker()
    },
    full_disk = function() {
      if (has_disk) {
        system(paste("cat /dev/zero >", file.path(base, "full"), "2> /dev/null"))
        told()
        unlink(file.path(base, "full"))
      }
    },
    removal = function() {
      unlink(spools(base), recursive = TRUE)
      told()
    }
  )
  happened <- character()
  pid <- start_worker()
  end <- Sys.time() + seconds
  withr::local_seed(1)
  while (Sys.time() < end) {
    # The server is there most of the time.
    event <- sample(names(events), 1, prob = ifelse(names(events) == "back", 5, 1))
    happened <- c(happened, event)
    events[[event]]()
    Sys.sleep(stats::runif(1, 0, 1.5))
  }
  accepts()
  file.create(stop)
  expect_true(wait_for(function() last_counts(utils::tail(logs, 1))$open == 0 && has_ended(pid)))
  expect_no_spool(base)

  counts <- lapply(logs, last_counts)
  of <- function(name) sum(vapply(counts, `[[`, 0, name))
  for (one in counts) expect_identical(one$sent + one$queued + one$open + one$dropped, one$taken + one$found)
  requests <- unlist(lapply(accepted, function(requests) requests()), recursive = FALSE)
  bodies <- lapply(requests, `[[`, "body")
  ids <- vapply(requests, function(request) profile_of_request(request)$sources$.profile_id, "")
  # The same id means the same profile.
  expect_identical(duplicated(ids), duplicated(bodies))
  arrived <- samples_of(lapply(requests[!duplicated(ids)], profile_of_request))
  complete <- of("taken") - of("open")
  expect_gte(arrived + of("dropped"), complete)
  cat(sprintf(
    "\n%d processes, %d events (%s): of %d samples in complete parts, %d arrived and %d were dropped; %d of %d parts arrived twice\n",
    length(logs), length(happened), paste(names(table(happened)), table(happened), collapse = ", "), complete, arrived,
    of("dropped"), sum(duplicated(ids)), length(unique(ids))
  ))
})
