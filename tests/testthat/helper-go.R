# Go's own library as the judge of our pprof files: the program in go/, built once.

# Which Go: that of PROFILE_TEST_GO, or the one in the path. "" if there is none.
find_go <- function() {
  go <- Sys.getenv("PROFILE_TEST_GO")
  unname(if (go == "") Sys.which("go") else go)
}

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
  withr::local_envvar(GOFLAGS = "-mod=mod", GOPROXY = "off", GOTOOLCHAIN = "local", GOWORK = "off")
  if (Sys.getenv("HOME") == "") {
    # Go has no place for what it compiled then.
    withr::local_envvar(GOCACHE = file.path(dir, "cache"))
  }
  program <- if (.Platform$OS.type == "windows") "judge.exe" else "judge"
  out <- suppressWarnings(system2(go, c("build", "-o", program, "."), stdout = TRUE, stderr = TRUE))
  if (!is.null(attr(out, "status"))) {
    stop("The judge cannot be built:\n", paste(out, collapse = "\n"), call. = FALSE)
  }
  file.path(dir, program)
}

go_built <- new.env()

# Runs the judge: a function of its arguments, which gives what it says, with the
# attribute "status" where it is not content.
go_judge <- function() {
  # To build writes to the user's cache.
  testthat::skip_on_cran()
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
