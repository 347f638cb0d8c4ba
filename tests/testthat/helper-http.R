# A server to send to: http/server.R, as a process of its own, once for all tests.

skip_without_curl <- function() {
  testthat::skip_on_cran()
  testthat::skip_if_not_installed("curl")
}

http_running <- new.env()

# Gives a server that plays these steps from now on (see http/server.R): its `url`, and
# `requests()`, which it got.
http_server <- function(..., .local_envir = parent.frame()) {
  skip_without_curl()
  if (is.null(http_running$dir)) {
    start_http_server()
  }
  # Neither a proxy nor a collector of the user's is part of the test, and waits are short.
  own <- grep("^OTEL_", names(Sys.getenv()), value = TRUE)
  settings <- c(no_proxy = "*", rlang::set_names(rep(NA, length(own)), own))
  withr::local_envvar(settings, .local_envir = .local_envir)
  withr::local_options(profile.otlp_backoff = 0.02, .local_envir = .local_envir)
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

start_http_server <- function() {
  dir <- tempfile("http-server-")
  dir.create(dir)
  rscript <- file.path(R.home("bin"), "Rscript")
  script <- normalizePath(testthat::test_path("http", "server.R"))
  output <- file.path(dir, "output")
  system2(rscript, c("--vanilla", shQuote(c(script, dir))), stdout = output, stderr = output, wait = FALSE)
  address <- file.path(dir, "address")
  if (!wait_for(function() file.exists(address))) {
    stop("The server did not start:\n", paste(readLines(output), collapse = "\n"))
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
