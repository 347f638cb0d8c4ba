# tier: gate
# Sending by the forwarder of R/forwarder.R: which profiles arrive, also if R or the forwarder is killed, the server is
# unavailable, the disk is full or a folder is removed; and that the forwarder runs only while it is needed. Each agent
# has its own spool. Names of files, counts and restarts of the forwarder are tested in Rust, in src/rust/agent.

# The forwarders of these agents end soon after the last agent.
ends_soon <- "options(profile.forward_patience = 0.2)"
start <- function(url, arguments = "every = 0.05, timeout = 200") sprintf("start_agent('%s', %s)", url, arguments)

# The ids of the profiles in requests.
profile_ids <- function(requests) {
  vapply(requests, function(request) profile_of_request(request)$sources$.profile_id, "")
}
# The number of samples in requests, where a profile that was sent twice counts once.
samples_once <- function(requests) {
  samples_of(lapply(requests[!duplicated(profile_ids(requests))], profile_of_request))
}
local_spool_of_processes <- function(envir = parent.frame()) {
  base <- local_spool(envir)
  withr::local_envvar(R_PROFILE_AGENT_SPOOL = base, .local_envir = envir)
  base
}

test_that("every sample arrives, and secrets are in private files only", {
  skip_without_agent()
  ours <- certificate()
  base <- local_spool_of_processes()
  go <- file.path(base, "go")
  server <- https_server(
    ours, list(headers = protobuf(), until = go), list(status = 503), list(close = "read"),
    list(headers = protobuf(), body = partial_response), list(status = 400, headers = protobuf(), body = status_response),
    list(headers = protobuf())
  )
  withr::local_envvar(OTEL_EXPORTER_OTLP_CERTIFICATE = ours$certificate, OTEL_EXPORTER_OTLP_HEADERS = "x-one=1%2C2")
  path <- file.path(base, "status")
  pid <- local_r_process(c(
    "library(profile)", script_work, ends_soon, "options(profile.otlp_backoff = 0.02)",
    start(server$url, "every = 0.05, timeout = 200, headers = c(Authorization = 'Bearer secret', 'X-Odd' = '\\xff')"), "ready()",
    # Forked processes do not affect the forwarder.
    "state <- parallel::mclapply(1:2, function(i) { gc(); agent_status()$state })",
    "stopifnot(identical(state, list('none', 'none')))",
    "work_until(function() agent_status()$chunks_sent > 2 && agent_status()$dropped_refused > 0)",
    "status <- stop_agent(250)", save_status(path), "Sys.sleep(250)"
  ))
  # The server answers after the files were checked.
  expect_true(wait_for(function() length(dir(spools(base), "[.]sending$")) > 0))
  folder <- spools(base)
  expect_identical(format(file.mode(folder)), "700")
  files <- dir(folder, "^lock$|^log$|[.]sending$", full.names = TRUE)
  expect_length(files, 3)
  expect_identical(unique(format(file.mode(files))), "600")
  forwarder <- the_only_forwarder(base)
  in_process <- function(name) {
    bytes <- readBin(file.path("/proc", forwarder, name), "raw", 1e5)
    strsplit(rawToChar(replace(bytes, bytes == 0, charToRaw("\n"))), "\n")[[1]]
  }
  expect_no_match(in_process("cmdline"), "secret")
  expect_no_match(in_process("environ"), "^(OTEL_|R_PROFILE_AGENT)")
  # The forwarder has read and removed the target.
  expect_length(dir(folder, "^target"), 0)
  file.create(go)
  expect_true(wait_for(function() file.exists(path)))
  status <- readRDS(path)
  expect_complete(status)
  expect_identical(status$sent + status$dropped_refused, status$taken)
  expect_identical(status$rejected, 300)
  expect_identical(status$to, paste0(server$url, "/v1development/profiles"))
  requests <- server$requests()
  # The second request is retried until the fourth, and the fifth is refused.
  expect_length(unique(lapply(requests[2:4], `[[`, "body")), 1)
  expect_identical(samples_of(lapply(requests[5], profile_of_request)), status$dropped_refused)
  profiles <- lapply(requests[-c(2, 3, 5)], profile_of_request)
  expect_identical(samples_of(profiles), status$sent)
  expect_identical(as.numeric(length(profiles)), status$chunks_sent)
  expect_length(unique(profile_ids(requests)), length(requests) - 2)
  headers <- requests[[1]]$headers
  expect_identical(
    headers[c("authorization", "x-one", "content-type", "content-encoding", "host")],
    list(
      authorization = "Bearer secret", "x-one" = "1,2", "content-type" = "application/x-protobuf",
      "content-encoding" = "gzip", host = sub("https://", "", server$url)
    )
  )
  expect_identical(charToRaw(headers[["x-odd"]]), as.raw(0xff))
  # The process continues, and has no children: neither the forwarder nor the shell that started it.
  stats <- suppressWarnings(lapply(Sys.glob("/proc/[0-9]*/stat"), function(path) {
    tryCatch(strsplit(sub(".*[)] ", "", readLines(path)), " ")[[1]][[2]], error = function(error) "")
  }))
  expect_false(as.character(pid) %in% unlist(stats))
  expect_no_spool(base)
})

test_that("nothing is sent to a server with an untrusted certificate, and an unavailable server is retried", {
  skip_without_agent()
  server <- https_server(certificate(), list(headers = protobuf()))
  base <- local_spool()
  path <- file.path(base, "status")
  out <- agent_script(c(
    "library(profile)", script_work, start(server$url), "work_until(function() agent_status()$dropped_refused > 0)",
    "one <- stop_agent(0)",
    start("https://127.0.0.1:1"), "work_until(function() !is.na(agent_status()$last_error))",
    "status <- list(one, agent_status(), stop_agent(0))", save_status(path)
  ), spool = base)
  status <- readRDS(path)
  for (one in status) expect_complete(one)
  expect_match(status[[1]]$last_error, "https://127.0.0.1:[0-9]+/v1development/profiles: TLS connection failed: ")
  expect_identical(status[[1]]$sent, 0)
  expect_length(server$requests(), 0)
  expect_match(status[[2]]$last_error, "https://127.0.0.1:1/v1development/profiles: Connection failed: ")
  expect_identical(status[[2]]$dropped, 0)
  expect_identical(status[[3]]$queued, status[[3]]$taken)
})

test_that("processes share a forwarder, which is restarted when it is killed, and ends after them", {
  skip_without_agent()
  server <- http_server(list(headers = protobuf()))
  base <- local_spool_of_processes()
  stop <- file.path(base, "stop")
  path <- file.path(base, "status")
  process <- function(end) {
    local_r_process(envir = parent.frame(2), c(
      "library(profile)", script_work, ends_soon, start(server$url), "ready()", sprintf("while (!file.exists('%s')) f()", stop), end
    ))
  }
  process(c("status <- stop_agent(250)", save_status(path), "Sys.sleep(250)"))
  killed <- process("Sys.sleep(250)")
  expect_true(wait_for(function() length(server$requests()) > 2))
  forwarder <- the_only_forwarder(base)
  expect_length(spools(base), 1)
  tools::pskill(forwarder, tools::SIGKILL)
  expect_true(wait_for(function() length(setdiff(forwarders(base), forwarder)) > 0))
  sent <- length(server$requests())
  expect_true(wait_for(function() length(server$requests()) > sent + 2))
  the_only_forwarder(base)
  expect_length(spools(base), 1)
  # One agent stops and the other one is killed, so the forwarder is no longer needed when it has sent everything.
  file.create(stop)
  expect_true(wait_for(function() file.exists(path)))
  tools::pskill(killed, tools::SIGKILL)
  status <- readRDS(path)
  expect_complete(status)
  expect_identical(status$sent + status$queued, status$taken + status$found)
  expect_no_spool(base)
})

test_that("what a killed process has recorded is sent by the next one", {
  skip_without_agent()
  server <- http_server(list(status = 503), .local_envir = environment())
  base <- local_spool_of_processes()
  pid <- local_r_process(c(
    "library(profile)", script_work, start(server$url, "every = 0.1, timeout = 200"), "ready()", "repeat f()"
  ))
  expect_true(wait_for(function() length(chunks_in(base)) >= 3 && length(server$requests()) > 0))
  # Both are killed: R, and the forwarder.
  tools::pskill(pid, tools::SIGKILL)
  expect_true(wait_for(function() has_ended(pid)))
  the_only_forwarder(base)
  kill_forwarders(base)
  left <- chunks_in(base)
  refused <- server$requests()
  server <- http_server(list(headers = protobuf()), .local_envir = environment())
  path <- file.path(base, "status")
  agent_script(c(
    "library(profile)", script_work, ends_soon, start(server$url, "every = 0.1, timeout = 200"),
    "work_until(function() agent_status()$found > 0 && agent_status()$chunks_sent > 4)",
    "status <- stop_agent(250)", save_status(path)
  ), spool = base)
  status <- readRDS(path)
  expect_complete(status)
  expect_identical(status$found, samples_in(left))
  expect_identical(status$sent, status$taken + status$found)
  requests <- server$requests()
  expect_identical(samples_of(lapply(requests, profile_of_request)), status$sent)
  # The oldest one comes first, and is the one that was refused.
  expect_identical(profile_ids(requests[1]), profile_ids(refused[1]))
  expect_no_spool(base)
})

test_that("a chunk that is sent twice has the same id", {
  skip_without_agent()
  base <- local_spool_of_processes()
  go <- file.path(base, "go")
  # The server gets the first request, and the forwarder is killed before it gets the answer.
  server <- http_server(list(headers = protobuf(), until = go), list(headers = protobuf()))
  path <- file.path(base, "status")
  stop <- file.path(base, "stop")
  local_r_process(c(
    "library(profile)", script_work, start(server$url, "every = 0.1, timeout = 200"), "ready()",
    sprintf("while (!file.exists('%s')) f()", stop), "status <- stop_agent(250)", save_status(path)
  ))
  expect_true(wait_for(function() length(server$requests()) == 1))
  tools::pskill(the_only_forwarder(base), tools::SIGKILL)
  file.create(go)
  expect_true(wait_for(function() length(server$requests()) > 4))
  file.create(stop)
  expect_true(wait_for(function() file.exists(path)))
  status <- readRDS(path)
  expect_complete(status)
  expect_identical(status$sent, status$taken)
  requests <- server$requests()
  ids <- profile_ids(requests)
  expect_identical(which(duplicated(ids)), 2L)
  expect_identical(requests[[2]]$body, requests[[1]]$body)
  expect_identical(samples_once(requests), status$sent)
})

test_that("a folder that is removed is created again, and its samples are counted", {
  skip_without_agent()
  server <- http_server(list(status = 503))
  base <- local_spool()
  local_agent(server$url, spool = base, every = 0.1)
  work_until(function() agent_status()$chunks_queued > 2)
  unlink(spools(base), recursive = TRUE)
  work_until(function() agent_status()$dropped_lost > 0)
  expect_complete(agent_status())
  work_until(function() agent_status()$chunks_queued > 2)
  status <- stop_agent(0)
  expect_complete(status)
  expect_identical(samples_in(chunks_in(base)), status$queued)
})

test_that("a full disk is an error, and samples that cannot be stored are counted", {
  skip_without_agent()
  skip_without_curl()
  mounts <- system2("unshare", c("-rm", "sh", "-c", shQuote("mount -t tmpfs tmpfs /mnt")), stdout = FALSE, stderr = FALSE) == 0
  skip_if(!isTRUE(mounts), "namespaces are not permitted here")
  script <- withr::local_tempfile(lines = c(
    script_work, "library(profile)",
    "start_agent('http://127.0.0.1:1', every = 0.1, spool = '/mnt/spool')",
    "work_until(function() agent_status()$chunks_queued > 0)",
    "system('cat /dev/zero > /mnt/full 2> /dev/null')",
    "work_until(function() agent_status()$dropped_lost > 0)",
    "a <- agent_status()",
    "file.remove('/mnt/full')",
    "work_until(function() agent_status()$chunks_queued > a$chunks_queued)",
    "b <- stop_agent(0)",
    "for (s in list(a, b)) stopifnot(s$sent + s$queued + s$open + s$dropped == s$taken)",
    "stopifnot(b$queued > a$queued, length(dir(b$spool, 'new$')) == 0)",
    "cat(a$last_error, '\\n')"
  ))
  withr::defer(tools::pskill(forwarders("/mnt/spool"), tools::SIGKILL))
  command <- sprintf(
    "mount -t tmpfs -o size=1m tmpfs /mnt && exec %s %s", shQuote(file.path(R.home("bin"), "Rscript")), shQuote(script)
  )
  out <- suppressWarnings(system2("unshare", c("-rm", "sh", "-c", shQuote(command)), stdout = TRUE, stderr = TRUE))
  # The forwarder may have reported another error meanwhile.
  expect_match(out, "the disk is full|Connection failed", all = FALSE)
  expect_null(attr(out, "status"))
})

test_that("the forwarder has only variables that it needs", {
  skip_without_agent()
  withr::local_envvar(OTEL_SERVICE_NAME = "a", R_PROFILE_AGENT = "true", R_LIBS = "/no", MY_VARIABLE = "b c")
  variables <- forward_environment()
  expect_no_match(names(variables), "^OTEL_|^R_PROFILE")
  expect_identical(variables[["MY_VARIABLE"]], "b c")
  expect_identical(variables[["R_LIBS"]], paste(.libPaths(), collapse = .Platform$path.sep))
  expect_identical(sum(names(variables) == "R_LIBS"), 1L)
})

test_that("files of processes that were killed are removed, but not those that an agent is writing", {
  folder <- withr::local_tempdir()
  at <- function(name) file.path(folder, name)
  old <- Sys.time() - 1000
  for (name in c("lock", "1-2-3-4.new", "5-6-7-8.new", "5-6-7-8.otlp.gz", "log")) file.create(at(name))
  Sys.setFileTime(at("5-6-7-8.new"), old)
  Sys.setFileTime(at("5-6-7-8.otlp.gz"), old)
  Sys.setFileTime(at("lock"), old)
  dir.create(at("Rtmpabc"))
  tidy_spool(folder)
  expect_setequal(dir(folder), c("lock", "1-2-3-4.new", "5-6-7-8.otlp.gz", "log"))
  expect_gt(as.numeric(difftime(file.mtime(at("lock")), old, units = "secs")), 900)
})

test_that("agents share a spool if they have the same target", {
  skip_without_agent()
  skip_without_curl()
  local_settings(environment())
  base <- withr::local_tempdir()
  folder <- function(to, headers = character(), spool = base) forward_target(to, headers, 1, spool, 1, NULL)$path[[1]]
  a <- folder("https://a", c(Authorization = "secret"))
  expect_match(a, paste0("^", normalizePath(base), "/[0-9a-f]{16}$"))
  expect_identical(folder("https://a/", c(Authorization = "secret")), a)
  expect_false(folder("https://a", c(Authorization = "other")) == a)
  expect_false(folder("http://a", c(Authorization = "secret")) == a)
  # By default it is next to the temporary folders of this user's sessions.
  withr::local_envvar(R_PROFILE_AGENT_SPOOL = NA)
  own <- paste0(normalizePath(dirname(tempdir())), "/profile-spool-", file.info(tempdir())$uid)
  expect_identical(dirname(folder("https://a", spool = NULL)), own)
  withr::local_envvar(R_PROFILE_AGENT_SPOOL = base)
  expect_identical(folder("https://a", c(Authorization = "secret"), spool = NULL), a)
})

test_that("a folder of another user is refused", {
  skip_without_agent()
  skip_without_curl()
  base <- local_spool()
  out <- agent_script(c(
    "library(profile)",
    sprintf("base <- '%s'", base),
    "refused <- function(url) tryCatch(start_agent(url), error = function(e) cat(class(e)[[1]], conditionMessage(e), '\n'))",
    "start_agent('https://127.0.0.1:1')", "status <- stop_agent(0)",
    "cat(status$queued + status$open + status$dropped == status$taken, '\n')",
    "Sys.chmod(base, '755')",
    "refused('https://127.0.0.1:1')",
    "utils::assignInNamespace('is_installed', function(...) FALSE, 'rlang')",
    "refused('http://127.0.0.1:1')"
  ), spool = base)
  expect_identical(out[[1]], "TRUE ")
  out <- grep("^profile_error", out, value = TRUE)
  expect_length(out, 2)
  expect_match(out[[1]], "^profile_error_unsupported The folder `.*` must belong to this user, and be closed to others")
  expect_match(out[[2]], "^profile_error_unsupported .*install.packages\\(\"curl\"\\)")
})
