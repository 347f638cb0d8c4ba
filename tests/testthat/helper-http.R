# A server that receives profiles: http/server.R in its own process. It is started once for all tests of this process,
# and ends with it.

skip_without_curl <- function() {
  testthat::skip_on_cran()
  testthat::skip_if_not_installed("curl")
}

http_running <- new.env()

# Returns a server that responds by these steps (see http/server.R): a list with its `url`, and the function
# `requests()`, which returns the received requests.
http_server <- function(..., .local_envir = parent.frame()) {
  skip_without_curl()
  if (is.null(http_running$dir)) {
    start_http_server()
  }
  local_settings(.local_envir)
  http_running$id <- id <- http_running$id + 1
  dir <- http_running$dir
  plan <- file.path(dir, "plan.rds")
  saveRDS(list(id = id, steps = list(...)), paste0(plan, ".new"))
  file.rename(paste0(plan, ".new"), plan)
  list(
    url = http_running$url,
    requests = function() {
      files <- list.files(dir, paste0("^", id, "-"), full.names = TRUE)
      lapply(files[order(nchar(files), files)], readRDS)
    }
  )
}

# The URL of a server that accepts connections and never answers. The search for a port begins at one that other
# processes do not try first.
silent_server <- function(.local_envir = parent.frame()) {
  skip_without_curl()
  local_settings(.local_envir)
  for (port in 49152L + (Sys.getpid() * 7L + 0:99) %% 16384L) {
    socket <- tryCatch(suppressWarnings(serverSocket(port)), error = function(e) NULL)
    if (!is.null(socket)) {
      withr::defer(close(socket), envir = .local_envir)
      return(paste0("http://127.0.0.1:", port))
    }
  }
  stop("There is no free port.")
}

# Removes the user's proxy and collector from the environment, and makes waits short.
local_settings <- function(.local_envir) {
  own <- grep("^OTEL_", names(Sys.getenv()), value = TRUE)
  settings <- c(no_proxy = "*", rlang::set_names(rep(NA, length(own)), own))
  withr::local_envvar(settings, .local_envir = .local_envir)
  withr::local_options(profile.otlp_backoff = 0.02, .local_envir = .local_envir)
}

start_http_server <- function() {
  dir <- tempfile("http-server-")
  dir.create(dir)
  rscript <- file.path(R.home("bin"), "Rscript")
  script <- normalizePath(testthat::test_path("http", "server.R"))
  output <- file.path(dir, "output")
  # The process is killed at the end, and its temporary directory is removed with ours.
  withr::with_envvar(
    c(TMPDIR = tempdir()),
    system2(rscript, c("--vanilla", shQuote(c(script, dir, Sys.getpid()))), stdout = output, stderr = output, wait = FALSE)
  )
  address <- file.path(dir, "address")
  if (!wait_for(function() file.exists(address), 120)) {
    stop("The server did not start:", last_lines(readLines(output)))
  }
  address <- readLines(address)
  http_running$url <- paste0("http://127.0.0.1:", address[[1]])
  http_running$id <- 0
  http_running$dir <- dir
  withr::defer(
    {
      unlink(dir, recursive = TRUE)
      tools::pskill(as.integer(address[[2]]))
      http_running$dir <- NULL
    },
    testthat::teardown_env()
  )
}

# ---- TLS ---------------------------------------------------------------------

# A self-signed certificate for 127.0.0.1 and its key, which are removed at the end of the test.
certificate <- function(.local_envir = parent.frame()) {
  skip_without_curl()
  testthat::skip_if(Sys.which("openssl") == "", "openssl is not installed")
  key <- withr::local_tempfile(.local_envir = .local_envir)
  certificate <- withr::local_tempfile(.local_envir = .local_envir)
  arguments <- c(
    "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-days", "2",
    "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
    "-keyout", shQuote(key), "-out", shQuote(certificate)
  )
  if (system2("openssl", arguments, stdout = FALSE, stderr = FALSE) != 0) {
    testthat::skip("This openssl cannot make certificates.")
  }
  list(certificate = certificate, key = key)
}

# The URL of a TLS server that does not answer, and ends with the test.
tls_server <- function(own, ..., .local_envir = parent.frame()) {
  testthat::skip_on_os("windows")
  output <- withr::local_tempfile(.local_envir = .local_envir)
  # With "-www" the server does not end at the end of its input.
  arguments <- c("-www", "-accept", "127.0.0.1:0", "-cert", shQuote(own$certificate), "-key", shQuote(own$key), ...)
  script <- paste("echo $$;", end_with_us(), "exec openssl s_server", paste(arguments, collapse = " "))
  system2("sh", c("-c", shQuote(script)), stdout = output, stderr = output, wait = FALSE)
  lines <- function() if (file.exists(output)) readLines(output, warn = FALSE)
  # "ACCEPT 127.0.0.1:40000"
  accepts <- "^ACCEPT .*:([0-9]+)$"
  if (!wait_for(function() any(grepl(accepts, lines())), 120)) {
    testthat::skip("This openssl cannot serve.")
  }
  process <- as.integer(lines()[[1]])
  withr::defer(tools::pskill(process), .local_envir)
  local_settings(.local_envir)
  paste0("https://127.0.0.1:", sub(accepts, "\\1", grep(accepts, lines(), value = TRUE)))
}

# The same as `http_server()`, with TLS.
https_server <- function(own, ..., .local_envir = parent.frame()) {
  testthat::skip_if(Sys.which("python3") == "", "python3 is not installed")
  server <- http_server(..., .local_envir = .local_envir)
  address <- withr::local_tempfile(.local_envir = .local_envir)
  script <- normalizePath(testthat::test_path("http", "tls.py"))
  arguments <- c(script, own$certificate, own$key, sub(".*:", "", server$url), address, Sys.getpid())
  output <- withr::local_tempfile()
  # R's libraries may differ from the libraries that Python needs.
  withr::with_envvar(
    c(LD_LIBRARY_PATH = NA),
    system2("python3", shQuote(arguments), stdout = output, stderr = output, wait = FALSE)
  )
  if (!wait_for(function() file.exists(address), 120)) {
    stop("The server did not start:", last_lines(readLines(output)))
  }
  server$url <- paste0("https://127.0.0.1:", readLines(address))
  server
}
