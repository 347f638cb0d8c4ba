# Packages in git repositories, whose versions are compared, and profiles of runs that recorded bytes.

# A git repository with a small package: `old` and `new` are the bodies of its function `work()` in two commits. Returns its
# folder, the working directory of `git()`.
package_repository <- function(old, new, tests = NULL, .local_envir = parent.frame()) {
  if (Sys.which("git") == "") skip("git is not installed: versions of packages are not compared")
  folder <- file.path(withr::local_tempdir(.local_envir = .local_envir), "smallpkg")
  dir.create(file.path(folder, "R"), recursive = TRUE)
  write <- function(body) writeLines(c("work <- function(n) {", body, "}"), file.path(folder, "R", "work.R"))
  writeLines(c(
    "Package: smallpkg", "Title: Small", "Version: 1.0", "License: MIT", "Author: A", "Maintainer: A <a@example.org>",
    "Description: Small."
  ), file.path(folder, "DESCRIPTION"))
  writeLines("export(work)", file.path(folder, "NAMESPACE"))
  writeLines(c("library(smallpkg)", "x <- work(1000)"), file.path(folder, "run.R"))
  writeLines("ignored", file.path(folder, ".gitignore"))
  # As in many packages: `git archive` would leave out the tests.
  writeLines("tests export-ignore", file.path(folder, ".gitattributes"))
  if (!is.null(tests)) {
    dir.create(file.path(folder, "tests", "testthat"), recursive = TRUE)
    writeLines(tests, file.path(folder, "tests", "testthat", "test-work.R"))
  }
  write(old)
  git(folder, "init", "--quiet", "--initial-branch=main")
  commit(folder, "old")
  write(new)
  commit(folder, "new")
  folder
}

git <- function(folder, ...) {
  of <- c("-c", "user.email=a@example.org", "-c", "user.name=A", "-c", "protocol.file.allow=always", "-C", folder)
  output <- suppressWarnings(system2("git", shQuote(c(of, ...)), stdout = TRUE, stderr = TRUE))
  status <- attr(output, "status")
  if (!is.null(status)) stop(paste(output, collapse = "\n"))
  output
}

commit <- function(folder, message) {
  git(folder, "add", "--all")
  git(folder, "commit", "--allow-empty", "--quiet", "--message", message)
}

# A profile with a run for each element of `runs`, a vector of bytes by stack, as Rprofmem() records them.
profile_of_bytes <- function(runs) {
  profiles <- lapply(runs, function(bytes) {
    stacks <- strsplit(names(bytes), ">", fixed = TRUE)
    stacks <- vapply(stacks, function(stack) paste0("\"", rev(stack), "\" ", collapse = ""), "")
    read_rprofmem(write_file(paste0(sprintf("%.0f", bytes), " :", stacks)))
  })
  combine_profiles(profiles)
}
