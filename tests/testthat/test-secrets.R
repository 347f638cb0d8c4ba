# tier: gate
# Command lines and environment variables may contain secrets. No profile has them, whatever records the process, and
# no file, database or page to which a profile is written.

# In the code of this file only in two parts, since profiles have the code that was recorded.
token <- paste0("planted", "-", "secret")

has_token <- function(bytes) length(grepRaw(token, bytes, fixed = TRUE)) > 0

# The bytes of a file, without compression.
plain_bytes <- function(path) {
  bytes <- file_bytes(path)
  if (identical(utils::head(bytes, 2), as.raw(c(0x1f, 0x8b)))) memDecompress(bytes, "gzip") else bytes
}

# A file name of each kind that `write_profile()` knows.
file_names <- function() {
  known <- data_model()$file_names
  names <- sub("*", "x", known$name, fixed = TRUE)
  c(names, paste0(names[known$compressed], ".gz"))
}

# Everything to which a profile can be written: for each, whether the token is in it. NA if the format cannot hold `x`.
places_with_token <- function(x) {
  folder <- withr::local_tempdir()
  files <- file_names()
  found <- vapply(rlang::set_names(files), function(name) {
    path <- file.path(folder, name)
    written <- tryCatch(
      {
        suppressMessages(quietly(write_profile(x, path)))
        TRUE
      },
      profile_error_unsupported = function(error) FALSE, profile_error_lossy = function(error) FALSE
    )
    if (!written) {
      return(NA)
    }
    has_token(plain_bytes(path)) || grepl("[.]html?$", name) && grepl(token, page_data(path)$json, fixed = TRUE)
  }, NA)
  c(
    found,
    object = has_token(serialize(lapply(unclass(x), as.list), NULL)),
    printed = any(grepl(token, c(format(x), format(describe_profile(x)), format(summary(x))), fixed = TRUE)),
    if (rlang::is_installed("RSQLite")) c(sqlite = has_token(database_of(x))),
    if (rlang::is_installed("dm")) c(dm = has_token(serialize(lapply(dm::dm_get_tables(dm_from_profile(x)), as.list), NULL))),
    if (rlang::is_installed("arrow")) c(dataset = has_token(dataset_of(x)))
  )
}

database_of <- function(x) {
  path <- withr::local_tempfile()
  con <- DBI::dbConnect(RSQLite::SQLite(), path)
  store_profiles(x, con)
  DBI::dbDisconnect(con)
  file_bytes(path)
}

# The columns of Parquet files are compressed.
dataset_of <- function(x) {
  root <- withr::local_tempdir()
  store_profiles(x, root)
  files <- list.files(root, recursive = TRUE)
  tables <- lapply(file.path(root, grep("[.]parquet$", files, value = TRUE)), function(file) as.list(arrow::read_parquet(file)))
  serialize(list(files, tables), NULL)
}

expect_clean <- function(x) {
  places <- places_with_token(x)
  expect_identical(names(places)[places %in% TRUE], character())
}

# A script that computes, in a folder, and whose argument is the length of the work.
computing_script <- function(.local_envir = parent.frame()) {
  folder <- withr::local_tempdir(.local_envir = .local_envir)
  path <- file.path(folder, "app.R")
  writeLines(c(
    "compute <- function(n) {", "  x <- 0", "  for (i in seq_len(n)) x <- x + sqrt(i)", "  x", "}",
    "y <- compute(as.numeric(commandArgs(TRUE)[[1]]))"
  ), path)
  path
}

test_that("a token is found wherever a profile can be written", {
  x <- small_profile()
  x$functions$name[[1]] <- token
  places <- places_with_token(x)
  expect_true(all(places[names(places) != "printed"]))
  expect_setequal(
    unique(data_model()$file_names$writer),
    unique(vapply(file_names(), writer_of, "", call = NULL))
  )
})

test_that("children are recorded without their arguments, code and variables", {
  skip_without_processes()
  skip_if_not_installed("parallel")
  withr::local_envvar(PLANTED = token)
  script <- computing_script()
  argument <- paste0("--token=", token)
  has_callr <- rlang::is_installed("callr")
  compute <- function(n) {
    x <- 0
    for (i in seq_len(n)) x <- x + sqrt(i)
    x
  }
  environment(compute) <- globalenv()
  run <- function(n) {
    rscript <- function(...) system2(file.path(R.home("bin"), "Rscript"), c(...), stdout = FALSE, stderr = FALSE)
    rscript(shQuote(script), format(n, scientific = FALSE), argument)
    rscript("-e", shQuote(sprintf("token <- '%s'; x <- 0; for (i in seq_len(%.0f)) x <- x + sqrt(i)", token, n)))
    if (has_callr) callr::r(compute, list(n), cmdargs = c("--no-echo", argument))
    cluster <- parallel::makePSOCKcluster(1, rscript_args = argument, outfile = "/dev/null")
    on.exit(parallel::stopCluster(cluster))
    parallel::clusterCall(cluster, compute, n)
  }
  n <- 4e6
  repeat {
    x <- quietly(record_profile(run(n), children = TRUE))
    scripts <- source_attribute(x, "profile.process.script")
    if (nrow(x$sources) >= 4 + has_callr && "app.R" %in% scripts || n > 1e9) break
    n <- 2 * n
  }
  expect_identical(source_attribute(x, "process.executable.name")[scripts %in% "app.R"], "R")
  # The roles follow from the command lines, unless a process was found before it executed R.
  expect_match(roles_of(x), "^(master|callr|worker [0-9] of [0-9]|(child|fork) of [0-9]+)$")
  expect_clean(x)
})

test_that("a process is recorded without its arguments, code and variables, which are shown of running processes", {
  skip_without_snapshots()
  withr::local_envvar(PLANTED = token)
  code <- c("kept <- as.numeric(1:1e6)", "ready()", "Sys.sleep(1e6)")
  pid <- local_r_process(code, options = sprintf("-e \"invisible('%s')\"", token))
  x <- profile_until(pid, clock = "wall")
  expect_identical(source_attribute(x, "process.executable.name"), "R")
  expect_clean(x)
  expect_clean(suppressMessages(snapshot_memory(pid)))
  watched <- capture.output(watch_process(pid, seconds = 0.2, clock = "wall"))
  expect_no_match(watched, token, fixed = TRUE)
  listed <- list_r_processes()
  expect_match(listed$command[listed$pid == pid], token, fixed = TRUE)
  expect_match(attr(dump_stack(pid), "command"), token, fixed = TRUE)
})

test_that("an agent records its process without arguments, code and variables", {
  skip_without_agent()
  withr::local_envvar(PLANTED = token)
  folder <- withr::local_tempdir()
  pid <- local_r_process(options = sprintf("-e \"invisible('%s')\"", token), with_package(
    sprintf("invisible(start_agent('%s', every = 0.1, clock = 'wall'))", folder), "ready()", "repeat Sys.sleep(0.1)"
  ))
  files <- function() list.files(folder, "[.]pb[.]gz$", full.names = TRUE)
  expect_true(wait_for(function() length(files()) > 0))
  tools::pskill(pid, tools::SIGKILL)
  for (file in files()) {
    expect_false(has_token(plain_bytes(file)))
  }
  expect_clean(read_pprof(files()[[1]]))
})

test_that("a script is recorded by the shell command without its arguments", {
  skip_on_cran()
  skip_on_os("windows")
  withr::local_envvar(PLANTED = token, R_LIBS = paste(.libPaths(), collapse = ":"))
  script <- computing_script()
  output <- withr::local_tempfile(fileext = c(".pb.gz", ".html", ".otlp"))
  program <- system.file("exec", "profile", package = "profile")
  for (options in list(character(), if (is_live_platform()) "--children")) {
    for (path in output) {
      said <- system2(
        program, c("record", options, "-o", shQuote(path), shQuote(script), "2e7", paste0("--token=", token)),
        stdout = TRUE, stderr = TRUE
      )
      expect_no_match(said, token, fixed = TRUE)
      expect_true(file.exists(path))
    }
    x <- read_pprof(output[[1]])
    expect_true("app.R" %in% x$.comments$comment)
    expect_clean(x)
    expect_clean(read_otlp(output[[3]]))
    expect_false(grepl(token, page_data(output[[2]])$json, fixed = TRUE))
  }
})
