# Go: `go tool pprof`, and a program with pprof's own library that checks our pprof files (go/), built once for all
# processes of a test run. Go writes compiled files, settings and telemetry to the home directory. In tests it has its
# own home directory, and it does not run on CRAN.

# The program in PROFILE_TEST_GO, or `go` in the path; "" if none is found.
find_go <- function() {
  go <- Sys.getenv("PROFILE_TEST_GO")
  unname(if (go == "") Sys.which("go") else go)
}

# PROFILE_TEST_GO is `none` where nothing in Go is to be compiled, which takes minutes.
skip_until_thorough <- function(untested) {
  testthat::skip_on_cran()
  testthat::skip_if(find_go() == "none", paste0("programs in Go are for `tools/test thorough`: ", untested))
}

needed_go <- function(untested) {
  skip_until_thorough(untested)
  go <- find_go()
  testthat::skip_if(go == "", paste0("go is not installed: ", untested))
  go
}

# Makes Go, and tools that may be written in Go, write to a directory that is removed after the tests.
local_go_home <- function(.local_envir = parent.frame()) {
  testthat::skip_on_cran()
  home <- built_once("go-home", function(dir) NULL)
  at <- function(...) file.path(home, ...)
  withr::local_envvar(
    # HOME itself is not changed, since other tools such as rustc need it.
    XDG_CACHE_HOME = at("cache"), XDG_CONFIG_HOME = at("config"),
    # Compiling the library and the tool takes half a minute, so PROFILE_TEST_GOCACHE keeps them for later runs.
    GOCACHE = Sys.getenv("PROFILE_TEST_GOCACHE", at("go-build")), GOPATH = at("go"), GOMODCACHE = at("go", "pkg", "mod"), GOENV = "off",
    # Nothing is downloaded.
    GOPROXY = "off", GOTOOLCHAIN = "local", GOWORK = "off",
    PPROF_TMPDIR = at("pprof"),
    .local_envir = .local_envir
  )
}

go_pprof <- function() {
  go <- needed_go("pprof's own view is not tested")
  local_go_home()
  # `go tool` itself takes longer than the tool.
  tool <- pprof_of_go(go)
  program <- c(tool, attr(tool, "args"))
  function(...) {
    local_go_home()
    out <- suppressWarnings(system2(program[[1]], c(program[-1], ...), stdout = TRUE, stderr = TRUE))
    testthat::expect_null(attr(out, "status"), label = paste(c("go tool pprof:", out), collapse = "\n"))
    # Go writes UTF-8 in every locale.
    Encoding(out) <- "UTF-8"
    out
  }
}

# Some pprof program, with its own home directory for the rest of the test.
skip_without_pprof <- function(.local_envir = parent.frame()) {
  testthat::skip_on_os("windows")
  skip_until_thorough("pprof is not tested")
  local_go_home(.local_envir)
  tryCatch(
    find_pprof(),
    profile_error_unsupported = function(cnd) testthat::skip("pprof is not installed: it is not tested")
  )
}

# A program of a few lines of shell.
fake_program <- function(..., path) {
  dir.create(dirname(path), recursive = TRUE, showWarnings = FALSE)
  write_file("#!/bin/sh", ..., path = path)
  Sys.chmod(path, "755")
  path
}

# The web interface for a profile, for the rest of the test.
local_pprof_process <- function(x, .local_envir = parent.frame()) {
  process <- start_pprof(x, find_pprof(), "127.0.0.1:", NULL)
  withr::defer(tools::pskill(process$pid), envir = .local_envir)
  process
}

# The body of a page, after any redirection.
pprof_page <- function(process, path = "/ui/") {
  port <- as.integer(sub(".*:", "", process$url))
  con <- socketConnection("127.0.0.1", port, open = "r+b", blocking = TRUE, timeout = 300)
  on.exit(close(con))
  writeLines(paste0("GET ", path, " HTTP/1.0\r\n\r"), con)
  lines <- readLines(con, warn = FALSE)
  to <- sub("^Location: ", "", grep("^Location: ", lines, value = TRUE))
  if (length(to) == 1) {
    return(pprof_page(process, if (startsWith(to, "/")) to else paste0("/ui/", to)))
  }
  paste(lines, collapse = "\n")
}

# ---- The judge ---------------------------------------------------------------

# The directory of the library that is part of every Go installation, for `go tool pprof`.
go_library <- function(go) {
  root <- system2(go, c("env", "GOROOT"), stdout = TRUE)
  file.path(root, "src/cmd/vendor/github.com/google/pprof/profile")
}

judge_program <- if (.Platform$OS.type == "windows") "judge.exe" else "judge"

# Builds the program in `source` with the library in `library`, and returns its path. Nothing is downloaded: the library
# is a module in the same directory as the program.
build_go_judge <- function(go, library, source, dir = tempfile("judge")) {
  dir.create(file.path(dir, "pprof"), recursive = TRUE)
  file.copy(base::dir(source, "[.]go$", full.names = TRUE), dir)
  file.copy(library, file.path(dir, "pprof"), recursive = TRUE)
  writeLines(c("module github.com/google/pprof", "go 1.18"), file.path(dir, "pprof", "go.mod"))
  writeLines(
    c(
      "module judge", "go 1.18", "require github.com/google/pprof v0.0.0",
      "replace github.com/google/pprof => ./pprof"
    ),
    file.path(dir, "go.mod")
  )
  withr::local_dir(dir)
  withr::local_envvar(GOFLAGS = "-mod=mod")
  out <- suppressWarnings(system2(go, c("build", "-o", judge_program, "."), stdout = TRUE, stderr = TRUE))
  if (!is.null(attr(out, "status"))) {
    stop("The judge cannot be built:\n", paste(out, collapse = "\n"), call. = FALSE)
  }
  file.path(dir, judge_program)
}

# Returns a function that runs the judge (the Go program that checks files) with its arguments, and returns its output,
# with the attribute "status" if it reports an error.
go_judge <- function() {
  local_go_home()
  go <- needed_go("Go's own library does not judge our pprof files")
  library <- go_library(go)
  if (!dir.exists(library)) {
    testthat::skip("go has no copy of pprof's library: it does not judge our pprof files")
  }
  source <- normalizePath(testthat::test_path("go"))
  judge <- file.path(built_once("go-judge", function(dir) build_go_judge(go, library, source, dir)), judge_program)
  function(...) {
    out <- suppressWarnings(system2(judge, shQuote(c(...)), stdout = TRUE, stderr = TRUE))
    Encoding(out) <- "UTF-8"
    out
  }
}
