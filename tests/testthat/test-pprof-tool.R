# tier: gate
# Finding the pprof tool, and its web server for a profile.

# A program of a few lines of shell.
fake_program <- function(..., path) {
  dir.create(dirname(path), recursive = TRUE, showWarnings = FALSE)
  write_file("#!/bin/sh", ..., path = path)
  Sys.chmod(path, "755")
  path
}

# No information on where pprof is: an empty PATH, no option, no variable, no file.
local_nothing <- function(.local_envir = parent.frame()) {
  dir <- normalizePath(withr::local_tempdir(.local_envir = .local_envir))
  withr::local_options(profile.pprof = NULL, .local_envir = .local_envir)
  withr::local_envvar(
    PATH = file.path(dir, "bin"), R_USER_DATA_DIR = file.path(dir, "data"),
    PROFILE_PPROF = NA, PROFFER_PPROF_PATH = NA,
    .local_envir = .local_envir
  )
  dir
}

skip_without_shell <- function() {
  skip_on_os("windows")
}

is_gone <- function(pid) {
  wait_for(function() !tools::pskill(pid, 0))
}

test_that("pprof is searched for in the documented order", {
  skip_without_shell()
  dir <- local_nothing()
  at <- function(...) file.path(dir, ...)
  expect_found <- function(command, found, args = character()) {
    tool <- find_pprof()
    expect_s3_class(tool, "pprof_tool")
    expect_identical(unclass(tool), structure(command, found = found, args = args))
  }

  expect_error(find_pprof(), class = "profile_error_unsupported")

  fake_program("exit 1", path = at("data", "R", "profile", "pprof"))
  expect_found(at("data", "R", "profile", "pprof"), "the data directory of this package")

  fake_program("exit 2", path = at("bin", "go"))
  expect_found(at("data", "R", "profile", "pprof"), "the data directory of this package")

  fake_program("[ \"$*\" = 'tool -n pprof' ] && echo /no/such/file", path = at("bin", "go"))
  expect_found(at("bin", "go"), "`go tool pprof`", c("tool", "pprof"))

  fake_program("", path = at("go tools", "pprof"))
  fake_program(paste0("echo '", at("go tools", "pprof"), "'"), path = at("bin", "go"))
  expect_found(at("go tools", "pprof"), "`go tool pprof`")

  fake_program("", path = at("bin", "pprof"))
  expect_found(at("bin", "pprof"), "`pprof` on the `PATH`")

  fake_program("", path = at("proffer"))
  withr::local_envvar(PROFFER_PPROF_PATH = at("proffer"))
  expect_found(at("proffer"), "the environment variable `PROFFER_PPROF_PATH`")

  fake_program("", path = at("bin", "by-name"))
  withr::local_envvar(PROFILE_PPROF = "by-name")
  expect_found(at("bin", "by-name"), "the environment variable `PROFILE_PPROF`")

  fake_program("", path = at("my tools", "it's pprof"))
  withr::local_options(profile.pprof = at("my tools", "it's pprof"))
  expect_found(at("my tools", "it's pprof"), "the option `profile.pprof`")
})

test_that("a Perl script on the PATH is passed over", {
  skip_without_shell()
  dir <- local_nothing()
  perl <- fake_program(path = file.path(dir, "bin", "pprof"))
  write_file("#! /usr/bin/env perl", "exit", path = perl)
  fake_program("exit 2", path = file.path(dir, "bin", "go"))
  own <- file.path(dir, "data", "R", "profile", "pprof")

  expect_snapshot(error = TRUE, find_pprof(), transform = function(x) gsub(dir, "<dir>", x, fixed = TRUE))

  dir.create(dirname(own), recursive = TRUE)
  # A binary program.
  write_bytes(as.raw(c(0x7f, 0x45, 0x4c, 0x46, 0, 0, 0xff)), own)
  Sys.chmod(own, "755")
  expect_identical(as.character(find_pprof()), own)
  # The way in which code written for jointprof calls it.
  expect_true(is.character(find_pprof()))
})

test_that("a setting that does not lead to pprof is an error", {
  skip_without_shell()
  dir <- local_nothing()
  fake_program("", path = file.path(dir, "bin", "pprof"))
  fake_program("", path = file.path(dir, "perl"))
  write_file("#!/usr/bin/perl -w", path = file.path(dir, "perl"))
  write_file("no program", path = file.path(dir, "text"))
  hide <- function(x) gsub(dir, "<dir>", x, fixed = TRUE)

  expect_snapshot(error = TRUE, transform = hide, {
    withr::with_envvar(c(PROFILE_PPROF = file.path(dir, "none")), find_pprof())
    withr::with_envvar(c(PROFFER_PPROF_PATH = "none"), find_pprof())
    withr::with_options(list(profile.pprof = file.path(dir, "perl")), find_pprof())
    withr::with_options(list(profile.pprof = dir), find_pprof())
    withr::with_options(list(profile.pprof = TRUE), find_pprof())
  })
  withr::local_options(profile.pprof = file.path(dir, "text"))
  expect_error(find_pprof(), class = "profile_error_unsupported")
  expect_error(serve_pprof(small_profile()), class = "profile_error_unsupported")
})

test_that("without pprof the error explains how to install it", {
  skip_without_shell()
  local_nothing()
  expect_snapshot(error = TRUE, {
    find_pprof()
    serve_pprof(small_profile())
  })
})

test_that("a tool prints its description", {
  expect_snapshot({
    new_pprof_tool("/usr/bin/pprof", "`pprof` on the `PATH`")
    new_pprof_tool("/usr/bin/go", "`go tool pprof`", c("tool", "pprof"))
  })
})

test_that("arguments are checked before anything starts", {
  skip_without_shell()
  local_nothing()
  x <- small_profile()
  bad <- x
  bad$samples <- NULL
  expect_snapshot(error = TRUE, {
    serve_pprof(1)
    serve_pprof("no-such-file.pb.gz")
    serve_pprof(x, host = "::1")
    serve_pprof(x, port = 0)
    serve_pprof(x, browse = NA)
    serve_pprof(x, timeout = 0)
    stop_pprof(1)
  })
  expect_error(serve_pprof(x, "127.0.0.1"), class = "rlib_error_dots_nonempty")
  dir <- local_nothing()
  fake_program("exec sleep 60", path = file.path(dir, "bin", "pprof"))
  expect_error(serve_pprof(bad), class = "profile_error_invalid")
})

test_that("pprof serves a profile until it is stopped", {
  skip_without_pprof()
  seed <- .GlobalEnv$.Random.seed
  server <- expect_no_warning(local_pprof_server(small_profile()))
  expect_identical(.GlobalEnv$.Random.seed, seed)

  expect_match(server$url, "^http://127\\.0\\.0\\.1:[0-9]+/ui/$")
  expect_identical(format(server), paste0("<pprof server> ", server$url, " (pid ", server$pid, ")"))
  # Without Graphviz older versions have no graph to show at /ui/.
  expect_match(pprof_page(server), "^HTTP/1.[01] (200|501) ")
  for (path in c("/ui/top", "/ui/flamegraph")) {
    text <- pprof_page(server, path)
    expect_match(text, "^HTTP/1.[01] 200 ", info = path)
    expect_match(text, "\"g\"", info = path)
    expect_match(text, "\"h\"", info = path)
  }

  pid <- server$pid
  dir <- server$dir
  expect_true(file.exists(file.path(dir, "profile.pb.gz")))
  expect_identical(withVisible(stop_pprof(server)), list(value = server, visible = FALSE))
  expect_true(is_gone(pid))
  expect_false(dir.exists(dir))
  expect_identical(format(server), paste0("<pprof server> ", server$url, " (ended)"))
  expect_identical(stop_pprof(server), server)
})

test_that("a file is served as it is, and the browser is opened", {
  skip_without_pprof()
  opened <- NULL
  withr::local_options(browser = function(url) opened <<- url)
  dir <- withr::local_tempdir("my profiles")
  path <- file.path(dir, "it's.pb.gz")
  file.copy(data_path("pprof", "go_cpu.pb.gz"), path)
  withr::local_dir(dir)
  server <- local_pprof_server("it's.pb.gz", browse = TRUE)
  expect_identical(opened, paste0(server$url, "flamegraph"))
  name <- read_pprof(path)$functions$name[[1]]
  expect_match(pprof_page(server, "/ui/flamegraph"), name, fixed = TRUE)
  stop_pprof(server)
  expect_true(file.exists(path))
})

test_that("two servers live side by side, and a port is not shared", {
  skip_without_pprof()
  one <- local_pprof_server(small_profile())
  two <- local_pprof_server(small_profile(version = "1.0"))
  expect_false(one$port == two$port)
  expect_error(serve_pprof(small_profile(), port = two$port), class = "profile_error_pprof")

  port <- two$port
  stop_pprof(two)
  expect_match(pprof_page(one, "/ui/top"), "^HTTP/1.[01] 200 ")
  again <- local_pprof_server(small_profile(), port = port)
  expect_identical(again$port, port)
})

test_that("a server whose handle is discarded runs until it is stopped", {
  skip_without_pprof()
  running <- function(url) any(vapply(as.list(servers), function(server) server$url == url && is_running(server), TRUE))
  url <- local_pprof_server(small_profile())$url
  other <- local_pprof_server(small_profile())
  gc()
  gc()
  expect_true(running(url))
  # A fork has copies of the handles, but not the servers.
  parallel::mccollect(parallel::mcparallel({
    stop_pprof()
    rm(other)
    gc()
  }))
  expect_true(running(url))
  expect_true(running(other$url))

  stopped <- withVisible(stop_pprof())
  expect_false(stopped$visible)
  expect_setequal(vapply(stopped$value, `[[`, "", "url"), c(url, other$url))
  expect_false(any(vapply(stopped$value, is_running, TRUE)))
  expect_false(dir.exists(other$dir))
  expect_identical(stop_pprof(), list())
})

test_that("files of other formats are read to be served", {
  skip_without_pprof()
  files <- c(rprof_path("basic_plain.out"), rprof_path("edit_gz.out.gz"), data_path("otlp", "fleet.pb"))
  for (file in files) {
    x <- quietly(read_profile(file))
    server <- quietly(local_pprof_server(file))
    expect_match(pprof_page(server, "/ui/flamegraph"), summary(x)$by_function$name[[1]], fixed = TRUE, info = file)
    stop_pprof(server)
  }
  expect_error(serve_pprof(data_path("otlp", "starts-like-json.pb"), timeout = 0), class = "profile_error_argument")
})

test_that("a server ends with the session", {
  skip_without_pprof()
  path <- normalizePath(data_path("pprof", "go_cpu.pb.gz"))
  result <- run_r(paste0("cat('pid', profile::serve_pprof('", path, "')$pid, fill = TRUE)"))
  expect_ran(result)
  expect_true(is_gone(as.integer(sub("^pid ", "", grep("^pid", result$output, value = TRUE)))))
})

test_that("the output of pprof is in the error if it exits", {
  skip_on_cran()
  skip_without_shell()
  dir <- withr::local_tempdir()
  hide <- function(x) gsub("[0-9]{5}", "<port>", x)
  tool <- fake_program("echo \"cannot do ${1}: {x}\" >&2", "exit 1", path = file.path(dir, "pprof"))
  withr::local_options(profile.pprof = tool)
  expect_snapshot(error = TRUE, serve_pprof(small_profile()), transform = hide)
  cnd <- tryCatch(serve_pprof(small_profile()), error = identity)
  expect_s3_class(cnd, c("profile_error_pprof", "profile_error"), exact = FALSE)
  expect_match(cnd$output, "^cannot do -http=")

  # A file that the system cannot execute.
  write_bytes(as.raw(c(0x7f, 0x45, 0x4c, 0x46, 0, 0, 0xff)), tool)
  expect_error(serve_pprof(small_profile()), class = "profile_error_pprof")
})

test_that("a session may use parallel before and after a server has run", {
  skip_on_cran()
  skip_without_shell()
  dir <- withr::local_tempdir()
  tool <- fake_program("exit 1", path = file.path(dir, "pprof"))
  path <- normalizePath(data_path("pprof", "go_cpu.pb.gz"))
  result <- run_r(c(
    sprintf("options(profile.pprof = '%s')", tool),
    "fork <- function() stopifnot(identical(parallel::mclapply(1:2, identity, mc.cores = 2), list(1L, 2L)))",
    "fork()", sprintf("try(profile::serve_pprof('%s'), silent = TRUE)", path), "fork()", "cat('done')"
  ))
  expect_identical(result, list(status = 0L, output = "done"))
})

test_that("pprof's message about a file of another kind is in the error", {
  skip_without_pprof()
  path <- write_file("hello", path = file.path(withr::local_tempdir(), "hello.txt"))
  cnd <- tryCatch(serve_pprof(path), profile_error_pprof = identity)
  expect_s3_class(cnd, "profile_error_pprof")
  expect_match(conditionMessage(cnd), "hello.txt")
})

test_that("a tool that never answers is ended", {
  skip_on_cran()
  skip_without_shell()
  dir <- withr::local_tempdir()
  tool <- fake_program("echo waiting", "echo $$ > \"$0-pid\"", "exec sleep 3600", path = file.path(dir, "pprof"))
  withr::local_options(profile.pprof = tool)
  # The timeout begins when the tool has started.
  await <- await_server
  replace_function("await_server", function(...) {
    wait_for(function() file.exists(paste0(tool, "-pid")))
    await(...)
  })
  expect_snapshot(error = TRUE, serve_pprof(small_profile(), timeout = 0.5))
  expect_true(is_gone(as.integer(readLines(paste0(tool, "-pid")))))
})
