# tier: gate
# Sending to `https://` by the helper of R/relay.R: which profiles arrive, and that the helper runs only while it is
# needed. Each agent is in its own process, so that no helper is shared with other tests. Restarts of the helper and the
# interpretation of answers are tested in Rust, in src/rust/agent/src/relay.

start <- function(url, arguments = "every = 0.05, timeout = 200") sprintf("start_agent('%s', %s)", url, arguments)

test_that("every sample arrives, and secrets are in private files only", {
  skip_without_agent()
  ours <- certificate()
  base <- local_relay_base()
  go <- file.path(base, "go")
  server <- https_server(
    ours, list(headers = protobuf(), until = go), list(status = 503), list(close = "read"),
    list(headers = protobuf(), body = partial_response), list(status = 400, headers = protobuf(), body = status_response),
    list(headers = protobuf())
  )
  withr::local_envvar(OTEL_EXPORTER_OTLP_CERTIFICATE = ours$certificate, OTEL_EXPORTER_OTLP_HEADERS = "x-one=1%2C2")
  path <- file.path(base, "status")
  pid <- local_r_process(c(
    "library(profile)", script_work, "options(profile.otlp_backoff = 0.02)",
    start(server$url, "every = 0.05, timeout = 200, headers = c(Authorization = 'Bearer secret', 'X-Odd' = '\\xff')"), "ready()",
    # Forked processes do not affect the helper.
    "state <- parallel::mclapply(1:2, function(i) { gc(); agent_status()$state })",
    "stopifnot(identical(state, list('none', 'none')))",
    "work_until(function() agent_status()$chunks_sent > 2 && agent_status()$dropped_refused > 0)",
    "status <- stop_agent(250)", save_status(path), "Sys.sleep(250)"
  ))
  # The server answers after the files were checked.
  expect_true(wait_for(function() length(dir(relay_folders(base), "[.]sending$")) > 0))
  folder <- relay_folders(base)
  expect_identical(format(file.mode(folder)), "700")
  files <- dir(folder, "^lock$|^log$|[.]sending$", full.names = TRUE)
  expect_length(files, 3)
  expect_identical(unique(format(file.mode(files))), "600")
  helper <- the_only_helper(base)
  in_process <- function(name) {
    bytes <- readBin(file.path("/proc", helper, name), "raw", 1e5)
    strsplit(rawToChar(replace(bytes, bytes == 0, charToRaw("\n"))), "\n")[[1]]
  }
  expect_no_match(in_process("cmdline"), "secret")
  expect_no_match(in_process("environ"), "^(OTEL_|R_PROFILE_AGENT=)")
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
  headers <- requests[[1]]$headers
  expect_identical(
    headers[c("authorization", "x-one", "content-type", "content-encoding", "host")],
    list(
      authorization = "Bearer secret", "x-one" = "1,2", "content-type" = "application/x-protobuf",
      "content-encoding" = "gzip", host = sub("https://", "", server$url)
    )
  )
  expect_identical(charToRaw(headers[["x-odd"]]), as.raw(0xff))
  expect_length(dir(folder, "secret|request|sending|answer|new"), 0)
  # The process continues, and has no children: neither the helper nor the shell that started it.
  stats <- suppressWarnings(lapply(Sys.glob("/proc/[0-9]*/stat"), function(path) {
    tryCatch(strsplit(sub(".*[)] ", "", readLines(path)), " ")[[1]][[2]], error = function(error) "")
  }))
  expect_false(as.character(pid) %in% unlist(stats))
})

test_that("nothing is sent to a server with an untrusted certificate, and an unavailable server is retried", {
  skip_without_agent()
  server <- https_server(certificate(), list(headers = protobuf()))
  base <- local_relay_base()
  path <- file.path(base, "status")
  out <- agent_script(c(
    "library(profile)", script_work, start(server$url), "work_until(function() agent_status()$dropped_refused > 0)",
    "one <- stop_agent(0)",
    start("https://127.0.0.1:1"), "work_until(function() !is.na(agent_status()$last_error))",
    "status <- list(one, agent_status(), stop_agent(0))", save_status(path)
  ))
  status <- readRDS(path)
  for (one in status) expect_complete(one)
  expect_match(status[[1]]$last_error, "TLS connection to https://127.0.0.1:[0-9]+/v1development/profiles failed: ")
  expect_identical(status[[1]]$sent, 0)
  expect_length(server$requests(), 0)
  expect_match(status[[2]]$last_error, "No connection to https://127.0.0.1:1/v1development/profiles: ")
  expect_identical(status[[2]]$dropped, 0)
  expect_identical(status[[3]]$dropped_lost, status[[3]]$taken)
})

test_that("processes share a helper, which is restarted when it is killed, and ends after them", {
  skip_without_agent()
  ours <- certificate()
  server <- https_server(ours, list(headers = protobuf()))
  base <- local_relay_base()
  withr::local_envvar(OTEL_EXPORTER_OTLP_CERTIFICATE = ours$certificate)
  stop <- file.path(base, "stop")
  path <- file.path(base, "status")
  process <- function(end) {
    local_r_process(envir = parent.frame(2), c(
      "library(profile)", script_work, start(server$url), "ready()", sprintf("while (!file.exists('%s')) f()", stop), end
    ))
  }
  process(c("status <- stop_agent(250)", save_status(path), "Sys.sleep(250)"))
  killed <- process("Sys.sleep(250)")
  expect_true(wait_for(function() length(server$requests()) > 2))
  helper <- the_only_helper(base)
  expect_length(relay_folders(base), 1)
  tools::pskill(helper, tools::SIGKILL)
  expect_true(wait_for(function() length(setdiff(relay_helpers(base), helper)) > 0))
  sent <- length(server$requests())
  expect_true(wait_for(function() length(server$requests()) > sent + 2))
  the_only_helper(base)
  expect_length(relay_folders(base), 1)
  # One agent stops and the other one is killed, so the helper is no longer needed.
  file.create(stop)
  expect_true(wait_for(function() file.exists(path)))
  tools::pskill(killed, tools::SIGKILL)
  status <- readRDS(path)
  expect_complete(status)
  expect_identical(status$sent, status$taken)
  expect_no_relay(base)
})

test_that("the helper has only variables that it needs", {
  skip_without_agent()
  withr::local_envvar(OTEL_SERVICE_NAME = "a", R_PROFILE_AGENT = "true", R_LIBS = "/no", MY_VARIABLE = "b c")
  variables <- relay_environment()
  expect_no_match(names(variables), "^OTEL_|^R_PROFILE")
  expect_identical(variables[["MY_VARIABLE"]], "b c")
  expect_identical(variables[["R_LIBS"]], paste(.libPaths(), collapse = .Platform$path.sep))
  expect_identical(sum(names(variables) == "R_LIBS"), 1L)
})

test_that("a folder of another user is refused", {
  skip_without_agent()
  skip_without_curl()
  base <- local_relay_base()
  folder <- file.path(base, "relay")
  out <- agent_script(c(
    "library(profile)",
    "replace <- function(name, value, package = 'profile') utils::assignInNamespace(name, value, package)",
    sprintf("folder <- '%s'", folder),
    "replace('relay_folder', function(...) folder)",
    "replace('relay_command', function(...) c('/bin/sh', '-c', 'exit 1'))",
    start("https://127.0.0.1:1"), "status <- stop_agent(0)",
    "cat('lock' %in% dir(folder), status$queued + status$open + status$dropped == status$taken, '\n')",
    sprintf("refused <- function() tryCatch(%s, error = function(e) cat(class(e)[[1]], conditionMessage(e), '\n'))", start("https://a")),
    "Sys.chmod(folder, '755')",
    "refused()",
    "folder <- file.path(folder, 'no', 'such')",
    "refused()",
    "replace('is_installed', function(...) FALSE, 'rlang')",
    "refused()"
  ))
  expect_identical(out[[1]], "TRUE TRUE ")
  out <- grep("^profile_error", out, value = TRUE)
  expect_length(out, 3)
  expect_match(out[[1]], "^profile_error_unsupported The folder `.*/relay` must belong to this user, and be closed to others")
  expect_match(out[[2]], "^profile_error_write Cannot write `.*/no/such`")
  expect_match(out[[3]], "^profile_error_unsupported .*install.packages\\(\"curl\"\\)")
})
