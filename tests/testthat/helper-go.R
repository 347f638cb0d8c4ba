# Go: `go tool pprof`, and its own library as the judge of our pprof files: the program in
# go/, built once. Go writes to the home directory wherever it runs: what it compiled, settings,
# telemetry. Here it has a home of its own, and on CRAN it does not run at all.

# Which Go: that of PROFILE_TEST_GO, or the one in the path. "" if there is none.
find_go <- function() {
  go <- Sys.getenv("PROFILE_TEST_GO")
  unname(if (go == "") Sys.which("go") else go)
}

go_built <- new.env()

# Has Go, and tools that may be Go's, write to a directory that goes with the tests.
local_go_home <- function(.local_envir = parent.frame()) {
  testthat::skip_on_cran()
  if (is.null(go_built$home)) {
    go_built$home <- tempfile("go-home-")
    dir.create(go_built$home)
    withr::defer(
      {
        unlink(go_built$home, recursive = TRUE)
        go_built$home <- NULL
      },
      testthat::teardown_env()
    )
  }
  at <- function(...) file.path(go_built$home, ...)
  withr::local_envvar(
    # Not HOME itself, which other tools need, such as rustc.
    XDG_CACHE_HOME = at("cache"), XDG_CONFIG_HOME = at("config"),
    GOCACHE = at("go-build"), GOPATH = at("go"), GOMODCACHE = at("go", "pkg", "mod"), GOENV = "off",
    # Nothing is fetched.
    GOPROXY = "off", GOTOOLCHAIN = "local", GOWORK = "off",
    PPROF_TMPDIR = at("pprof"),
    .local_envir = .local_envir
  )
}

go_pprof <- function() {
  testthat::skip_on_cran()
  go <- find_go()
  if (go == "") {
    testthat::skip("go is not installed: pprof's own view is not tested")
  }
  function(...) {
    local_go_home()
    out <- suppressWarnings(system2(go, c("tool", "pprof", ...), stdout = TRUE, stderr = TRUE))
    testthat::expect_null(attr(out, "status"), label = paste(c("go tool pprof:", out), collapse = "\n"))
    # Go writes UTF-8 in every locale.
    Encoding(out) <- "UTF-8"
    out
  }
}

# A pprof of any kind, with a home of its own for the rest of the test.
skip_without_pprof <- function(.local_envir = parent.frame()) {
  testthat::skip_on_os("windows")
  local_go_home(.local_envir)
  tryCatch(
    find_pprof(),
    profile_error_unsupported = function(cnd) testthat::skip("pprof is not installed: it is not tested")
  )
}

# ---- The judge ---------------------------------------------------------------

# The directory of the library that every Go brings along, for its own `go tool pprof`.
go_library <- function(go) {
  root <- system2(go, c("env", "GOROOT"), stdout = TRUE)
  file.path(root, "src/cmd/vendor/github.com/google/pprof/profile")
}

# Builds the program in `source` with the library in `library`, and gives its path.
# Nothing is fetched: the library is a module beside the program.
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
  program <- if (.Platform$OS.type == "windows") "judge.exe" else "judge"
  out <- suppressWarnings(system2(go, c("build", "-o", program, "."), stdout = TRUE, stderr = TRUE))
  if (!is.null(attr(out, "status"))) {
    stop("The judge cannot be built:\n", paste(out, collapse = "\n"), call. = FALSE)
  }
  file.path(dir, program)
}

# Runs the judge: a function of its arguments, which gives what it says, with the
# attribute "status" where it is not content.
go_judge <- function() {
  local_go_home()
  go <- find_go()
  if (go == "") {
    testthat::skip("go is not installed: Go's own library does not judge our pprof files")
  }
  library <- go_library(go)
  if (!dir.exists(library)) {
    testthat::skip("go has no copy of pprof's library: it does not judge our pprof files")
  }
  if (is.null(go_built$judge)) {
    go_built$judge <- build_go_judge(go, library, testthat::test_path("go"))
  }
  function(...) {
    out <- suppressWarnings(system2(go_built$judge, shQuote(c(...)), stdout = TRUE, stderr = TRUE))
    Encoding(out) <- "UTF-8"
    out
  }
}
