# Two versions of a package from git, installed so that the only difference between them is their code. The paths of both
# libraries have the same length, and so has the folder for temporary files, because R allocates memory for paths: a longer
# path would add some kilobytes to each run.

# Installs `base` and `new`, git references or `NULL` for the working tree, of the package in the folder `path`. Returns a
# list: `folder`, which the caller removes; `package`; `libraries` and `titles`, named `base` and `new`; `tests`, the folder
# with the tests of `base`, which exists if `needs_tests`; `temporary`, the folder for temporary files of runs.
install_versions <- function(base, new, path, needs_tests, call) {
  package <- name_of_package(path, call)
  about <- list(base = version_of_git(base, "base", path, call), new = version_of_git(new, "new", path, call))
  folder <- new_private_folder(tempfile("profile-package-", dirname(tempdir())))
  done <- FALSE
  on.exit(if (!done) unlink(folder, recursive = TRUE))
  sides <- c(base = "a", new = "b")
  sources <- rlang::set_names(in_folder(folder, paste0(sides, "-source")), names(sides))
  libraries <- rlang::set_names(in_folder(folder, paste0(sides, "-library")), names(sides))
  for (side in names(sides)) {
    dir.create(sources[[side]])
    dir.create(libraries[[side]])
    export_version(about[[side]], path, sources[[side]], call)
    if (!file.exists(in_folder(sources[[side]], "DESCRIPTION"))) {
      abort_argument(paste0("`", side, "`, ", about[[side]]$title, ", has no file `DESCRIPTION` in this folder."), call)
    }
    tests <- in_folder(sources[["base"]], file.path("tests", "testthat"))
    if (needs_tests && !dir.exists(tests)) {
      abort_argument("`base` has no tests in `tests/testthat`.", call)
    }
    inform_profile(paste0("Installing ", package, ", ", about[[side]]$title), "profile_message_runs")
    install_source(sources[[side]], libraries[[side]], about[[side]]$title, folder, call)
  }
  temporary <- in_folder(folder, "temporary")
  dir.create(temporary)
  done <- TRUE
  list(
    folder = folder, package = package, libraries = libraries,
    titles = vapply(about, `[[`, "", "title"), tests = tests, temporary = temporary
  )
}

name_of_package <- function(path, call) {
  file <- file.path(path, "DESCRIPTION")
  name <- if (file.exists(file)) read.dcf(file, "Package")[[1]]
  if (is.null(name) || is.na(name)) {
    abort_argument(paste0("The folder `", path, "` is not the source of a package: it has no `DESCRIPTION` with a name."), call)
  }
  name
}

# ---- git ---------------------------------------------------------------------------

# A version: `commit`, NULL for the working tree, and `title`.
version_of_git <- function(reference, side, path, call) {
  if (is.null(reference)) {
    run_git(path, c("rev-parse", "--show-prefix"), call)
    return(list(title = "the working tree"))
  }
  if (!is_valid_text(reference) || !nzchar(reference)) {
    abort_argument(paste0("`", side, "` must be a git reference, such as \"main\" or \"HEAD~1\"."), call)
  }
  # An option is not a reference.
  found <- if (!startsWith(reference, "-")) {
    run_git(path, c("rev-parse", "--verify", "--quiet", paste0(reference, "^{commit}")), NULL)
  }
  if (length(found) != 1) {
    is_shallow <- identical(run_git(path, c("rev-parse", "--is-shallow-repository"), call), "true")
    abort_argument(c(
      paste0("`", side, "` is not a commit of this git repository: `", reference, "`."),
      i = if (is_shallow) "The repository has only the latest commits: fetch more of them, such as `fetch-depth: 2`."
    ), call)
  }
  list(commit = found, title = paste0(reference, " (", substr(found, 1, 7), ")"))
}

# Writes the files of a version of the package to a folder: of a commit, all files; of the working tree, those that git
# would commit, so without what was compiled there.
export_version <- function(version, path, to, call) {
  if (is.null(version$commit)) {
    listed <- run_git(path, c("ls-files", "-z", "--cached", "--others", "--exclude-standard"), call, as_bytes = TRUE)
    files <- split_at_nul(listed)
    files <- unique(files[file.exists(file.path(path, files)) & !dir.exists(file.path(path, files))])
    for (folder in unique(dirname(files))) dir.create(file.path(to, folder), FALSE, TRUE)
    copied <- file.copy(file.path(path, files), file.path(to, files), copy.date = TRUE)
    if (!all(copied)) {
      abort_profile(paste0("Cannot copy `", files[!copied][[1]], "`."), "profile_error_write", call = call)
    }
    return()
  }
  # Not `git archive`, which leaves out files with the attribute `export-ignore`, as tests often have.
  prefix <- paste(run_git(path, c("rev-parse", "--show-prefix"), call), collapse = "")
  restore <- set_variables(c(GIT_INDEX_FILE = paste0(to, ".index")))
  on.exit({
    restore()
    unlink(paste0(to, ".index"))
  })
  run_git(path, c("read-tree", paste0(version$commit, ":", prefix)), call)
  top <- run_git(path, c("rev-parse", "--show-toplevel"), call)
  run_git(top, c("checkout-index", "--all", "--quiet", paste0("--prefix=", to, "/")), call)
}

# The lines of git's output. If it fails, an error, or NULL without a `call`.
run_git <- function(path, args, call, as_bytes = FALSE) {
  git <- Sys.which("git")
  if (git == "") {
    abort_unsupported("Versions of a package come from git, which is not installed.", call)
  }
  output <- tempfile("git-")
  errors <- tempfile("git-")
  on.exit(unlink(c(output, errors)))
  status <- system2(git, shell_quote(c("-C", path, args)), stdout = output, stderr = errors)
  if (status != 0) {
    if (is.null(call)) {
      return(NULL)
    }
    said <- utils::head(readLines(errors, warn = FALSE), 3)
    abort_profile(
      c(paste0("`git ", args[[1]], "` has failed."), with_crosses(said)),
      "profile_error_process", call = call
    )
  }
  if (as_bytes) readBin(output, "raw", file.size(output)) else readLines(output, warn = FALSE)
}

# Lines of another program, as parts of a message.
with_crosses <- function(lines) rlang::set_names(vapply(lines, shown_text, ""), rep("x", length(lines)))

split_at_nul <- function(bytes) {
  ends <- which(bytes == 0)
  starts <- c(1L, ends + 1L)[seq_along(ends)]
  names <- mapply(function(from, to) rawToChar(bytes[seq_len(to - from) + from - 1L]), starts, ends)
  as.character(unname(names))
}

# ---- Installation ------------------------------------------------------------------

install_source <- function(source, library, title, folder, call) {
  log <- in_folder(folder, "install.log")
  args <- c("CMD", "INSTALL", "--no-docs", "--no-multiarch", "--no-test-load", paste0("--library=", library), source)
  restore <- set_variables(c(R_LIBS = paste(.libPaths(), collapse = .Platform$path.sep)))
  on.exit(restore())
  status <- system2(file.path(R.home("bin"), "R"), shell_quote(args), stdout = log, stderr = log)
  if (status != 0) {
    last <- utils::tail(readLines(log, warn = FALSE), 5)
    abort_profile(
      c(paste0(title, " cannot be installed."), with_crosses(last)),
      "profile_error_process", call = call
    )
  }
}
