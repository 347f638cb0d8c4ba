# tier: gate
# Sending to `https://`, by the helper of R/relay.R: what arrives, and that it is there when it is needed and only then.
# Agents are in processes of their own, so that no helper is shared with anybody else.

f <- "f <- function(s) { end <- Sys.time() + s; x <- 0; while (Sys.time() < end) for (i in 1:1e4) x <- x + i }"
start <- function(url, arguments = "every = 0.2") sprintf("start_agent('%s', %s)", url, arguments)
# What a script says of its agent.
tell <- function(path) sprintf("saveRDS(status, '%s.new'); invisible(file.rename('%s.new', '%s'))", path, path, path)

test_that("every sample arrives, and secrets are in private files only", {
  skip_without_agent()
  ours <- certificate()
  server <- https_server(ours, list(headers = protobuf(), delay = 0.3))
  base <- local_relay_base()
  withr::local_envvar(OTEL_EXPORTER_OTLP_CERTIFICATE = ours$certificate, OTEL_EXPORTER_OTLP_HEADERS = "x-one=1%2C2")
  path <- withr::local_tempfile()
  pid <- local_r_process(c(
    "library(profile)", f, start(server$url, "every = 0.2, headers = c(Authorization = 'Bearer secret', 'X-Odd' = '\\xff')"), "ready()",
    "f(1)",
    # Forked processes leave the helper alone.
    "state <- parallel::mclapply(1:2, function(i) { gc(); agent_status()$state })",
    "stopifnot(identical(state, list('none', 'none')))",
    "f(0.5)",
    "status <- stop_agent(20)", tell(path), "Sys.sleep(100)"
  ))
  expect_true(wait_for(function() length(dir(relay_folders(base), "[.]sending$")) > 0))
  folder <- relay_folders(base)
  expect_identical(format(file.mode(folder)), "700")
  expect_identical(unique(format(file.mode(dir(folder, "lock|log|request|sending", full.names = TRUE)))), "600")
  expect_true(wait_for(function() file.exists(path)))
  status <- readRDS(path)
  expect_complete(status)
  expect_identical(status$sent, status$taken)
  expect_gt(status$sent, 20)
  expect_identical(status$to, paste0(server$url, "/v1development/profiles"))
  requests <- server$requests()
  expect_identical(samples_of(lapply(requests, profile_of_request)), status$sent)
  expect_identical(as.numeric(length(requests)), status$chunks_sent)
  headers <- requests[[1]]$headers
  expect_identical(
    headers[c("authorization", "x-one", "content-type", "content-encoding", "host")],
    list(
      authorization = "Bearer secret", "x-one" = "1,2", "content-type" = "application/x-protobuf",
      "content-encoding" = "gzip", host = sub("https://", "", server$url)
    )
  )
  expect_identical(charToRaw(headers[["x-odd"]]), as.raw(0xff))
  expect_length(relay_helpers(base), 1)
  shown <- unlist(lapply(relay_helpers(base), function(helper) {
    bytes <- readBin(file.path("/proc", helper, "cmdline"), "raw", 1e4)
    rawToChar(bytes[bytes != 0])
  }))
  expect_no_match(shown, "secret")
  expect_length(dir(folder, "secret|request|sending|answer|new"), 0)
  # The process goes on, and has no children: neither the helper nor what has started it.
  stats <- suppressWarnings(lapply(Sys.glob("/proc/[0-9]*/stat"), function(path) {
    tryCatch(strsplit(sub(".*[)] ", "", readLines(path)), " ")[[1]][[2]], error = function(error) "")
  }))
  expect_false(as.character(pid) %in% unlist(stats))
})

test_that("answers are judged as those of HTTP", {
  skip_without_agent()
  ours <- certificate()
  server <- https_server(
    ours, list(status = 503), list(status = 429, headers = c("Retry-After" = "1")), list(close = "read"),
    list(headers = protobuf(), body = partial_response),
    # Later, so that what is said of the one before is seen.
    list(status = 400, headers = protobuf(), body = status_response, delay = 0.7),
    list(status = 503, headers = c("Retry-After" = "100000")), list(delay = 10), list(headers = protobuf())
  )
  base <- local_relay_base()
  withr::local_envvar(OTEL_EXPORTER_OTLP_CERTIFICATE = ours$certificate)
  path <- withr::local_tempfile()
  pid <- local_r_process(c(
    "library(profile)", f, "options(profile.otlp_backoff = 0.02)", start(server$url, "every = 0.2, timeout = 3"),
    "said <- character()", "end <- Sys.time() + 60", "ready()",
    "while (agent_status()$chunks_sent < 3 && Sys.time() < end) { f(0.05); said <- union(said, agent_status()$last_error) }",
    "status <- c(stop_agent(20), list(said = said))", tell(path)
  ))
  expect_true(wait_for(function() file.exists(path), 80))
  status <- readRDS(path)
  expect_identical(status$sent + status$dropped_refused, status$taken)
  expect_identical(status$rejected, 300)
  expect_match(status$said, "rejected 300 profiles: 100% {full}", fixed = TRUE, all = FALSE)
  expect_match(status$said, "did not answer in time", fixed = TRUE, all = FALSE)
  requests <- server$requests()
  # Retried until the fourth, refused, refused, late.
  expect_length(unique(lapply(requests[1:4], `[[`, "body")), 1)
  expect_gte(requests[[3]]$time - requests[[2]]$time, 1)
  expect_length(unique(lapply(requests[5:7], `[[`, "body")), 3)
  expect_identical(samples_of(lapply(requests[5:7], profile_of_request)), status$dropped_refused)
  expect_identical(samples_of(lapply(requests[-c(1:3, 5:7)], profile_of_request)), status$sent)
})

test_that("a server whose certificate is not accepted gets nothing, and one that is away is tried again", {
  skip_without_agent()
  server <- https_server(certificate(), list(headers = protobuf()))
  base <- local_relay_base()
  path <- withr::local_tempfile()
  wait <- function(element) {
    sprintf("end <- Sys.time() + 30; while (agent_status()$%s == 0 && Sys.time() < end) f(0.1)", element)
  }
  pid <- local_r_process(c(
    "library(profile)", f, start(server$url), "ready()", wait("dropped_refused"), "one <- stop_agent()",
    start("https://127.0.0.1:1"), "end <- Sys.time() + 30",
    "while (is.na(agent_status()$last_error) && Sys.time() < end) f(0.1)",
    "status <- list(one, agent_status(), stop_agent(1))", tell(path)
  ))
  expect_true(wait_for(function() file.exists(path), 80))
  status <- readRDS(path)
  for (one in status) expect_complete(one)
  expect_match(status[[1]]$last_error, "TLS connection to https://127.0.0.1:[0-9]+/v1development/profiles failed: ")
  expect_gt(status[[1]]$dropped_refused, 0)
  expect_identical(status[[1]]$sent, 0)
  expect_length(server$requests(), 0)
  expect_match(status[[2]]$last_error, "No connection to https://127.0.0.1:1/v1development/profiles: ")
  expect_identical(status[[2]]$dropped, 0)
  expect_identical(status[[3]]$dropped_lost, status[[3]]$taken)
})

test_that("two processes share a helper, which is started again when it is killed", {
  skip_without_agent()
  ours <- certificate()
  server <- https_server(ours, list(headers = protobuf(), delay = 0.2))
  base <- local_relay_base()
  withr::local_envvar(OTEL_EXPORTER_OTLP_CERTIFICATE = ours$certificate)
  stop <- file.path(base, "stop")
  paths <- file.path(base, c("one", "two"))
  pids <- vapply(paths, FUN.VALUE = 0L, function(path) {
    local_r_process(envir = parent.frame(2), c(
      "library(profile)", f, "options(profile.otlp_backoff = 0.02)", start(server$url, "every = 0.5, timeout = 20"), "ready()",
      sprintf("while (!file.exists('%s')) f(0.1)", stop), "status <- stop_agent(20)", tell(path)
    ))
  })
  sending <- function() length(dir(relay_folders(base), "[.]sending$")) > 0
  expect_true(wait_for(function() length(server$requests()) > 2 && sending()))
  helpers <- relay_helpers(base)
  expect_length(helpers, 1)
  tools::pskill(helpers, tools::SIGKILL)
  sent <- length(server$requests())
  expect_true(wait_for(function() length(setdiff(relay_helpers(base), helpers)) == 1))
  expect_true(wait_for(function() length(server$requests()) > sent + 3))
  expect_length(relay_helpers(base), 1)
  expect_length(relay_folders(base), 1)
  file.create(stop)
  expect_true(wait_for(function() all(file.exists(paths)), 40))
  status <- lapply(paths, readRDS)
  for (one in status) {
    expect_complete(one)
    expect_identical(one$sent, one$taken)
  }
  # What the helper was sending when it was killed may arrive twice.
  requests <- server$requests()
  requests <- requests[!duplicated(lapply(requests, `[[`, "body"))]
  expect_identical(samples_of(lapply(requests, profile_of_request)), status[[1]]$sent + status[[2]]$sent)
})

test_that("an agent that is started by environment variables has a helper without one", {
  skip_without_agent()
  ours <- certificate()
  server <- https_server(ours, list(headers = protobuf()))
  base <- local_relay_base()
  withr::local_envvar(
    R_PROFILE_AGENT = "true", R_DEFAULT_PACKAGES = "datasets,utils,grDevices,graphics,stats,methods,profile",
    OTEL_EXPORTER_OTLP_ENDPOINT = server$url, OTEL_EXPORTER_OTLP_CERTIFICATE = ours$certificate, OTEL_SERVICE_NAME = "my-api",
    R_LIBS = paste(.libPaths(), collapse = .Platform$path.sep)
  )
  out <- agent_script(c(f, "f(2)", "status <- stop_agent(20)", "cat(status$sent > 20, status$sent == status$taken, '\\n')"))
  expect_identical(trimws(out), "TRUE TRUE")
  profiles <- lapply(server$requests(), profile_of_request)
  services <- vapply(profiles, function(x) x$.resource_attributes$value[x$.resource_attributes$key == "service.name"], "")
  expect_identical(unique(services), "my-api")
  expect_length(relay_helpers(base), 1)
  variables <- readBin(file.path("/proc", relay_helpers(base), "environ"), "raw", 1e5)
  variables <- strsplit(rawToChar(replace(variables, variables == 0, charToRaw("\n"))), "\n")[[1]]
  expect_length(grep("^(OTEL_|R_PROFILE_AGENT=)", variables), 0)
})

test_that("nothing remains when agents end, in whatever way", {
  skip_without_agent()
  ours <- certificate()
  server <- https_server(ours, list(headers = protobuf()))
  withr::local_envvar(OTEL_EXPORTER_OTLP_CERTIFICATE = ours$certificate)
  bases <- character()
  for (end in c(
    "stop_agent(20); Sys.sleep(100)", "quit('no')", "tools::pskill(Sys.getpid(), tools::SIGKILL)",
    "unloadNamespace('profile'); Sys.sleep(100)"
  )) {
    base <- local_relay_base()
    bases <- c(bases, base)
    local_r_process(c(
      "library(profile)", f, start(server$url), "ready()",
      "end <- Sys.time() + 30; while (agent_status()$sent == 0 && Sys.time() < end) f(0.1)",
      sprintf("invisible(file.create('%s/sent'))", base), "f(0.5)", end
    ))
  }
  for (base in bases) expect_true(wait_for(function() file.exists(file.path(base, "sent")), 40))
  expect_no_relay(bases)
})

test_that("a helper that cannot run is reported, and a folder of others is refused", {
  skip_without_agent()
  skip_without_curl()
  base <- local_relay_base()
  folder <- file.path(base, "relay")
  out <- agent_script(c(
    "library(profile)", f,
    "replace <- function(name, value, package = 'profile') utils::assignInNamespace(name, value, package)",
    sprintf("folder <- '%s'", folder),
    "replace('relay_folder', function(...) folder)",
    "replace('relay_command', function(...) c('/bin/sh', '-c', 'echo 100% broken; exit 1'))",
    start("https://127.0.0.1:1"),
    "end <- Sys.time() + 30; while (is.na(agent_status()$last_error) && Sys.time() < end) f(0.1)",
    "status <- stop_agent(0)",
    "cat(status$last_error, dir(folder), status$queued + status$open + status$dropped == status$taken, '\\n')",
    sprintf("refused <- function() tryCatch(%s, error = function(e) cat(class(e)[[1]], conditionMessage(e), '\\n'))", start("https://a")),
    "Sys.chmod(folder, '755')",
    "refused()",
    "folder <- file.path(folder, 'no', 'such')",
    "refused()",
    "replace('is_installed', function(...) FALSE, 'rlang')",
    "refused()"
  ))
  expect_identical(out[[1]], "The helper process did not start: 100% broken. lock log TRUE ")
  expect_match(out[[2]], "^profile_error_unsupported The folder `.*/relay` must belong to this user, and be closed to others")
  expect_match(out[[3]], "^profile_error_write Cannot write `.*/no/such`")
  expect_match(out[[4]], "^profile_error_unsupported .*install.packages\\(\"curl\"\\)")
})
