# Runs the shell command, exec/profile, and other programs.

program <- function() {
  skip_on_cran()
  skip_on_os("windows")
  system.file("exec", "profile", package = "profile")
}

# Runs the program, with a text as its input: list(status, out, err).
run_program <- function(..., input = character(), env = character(), via = program()) {
  folder <- withr::local_tempdir()
  at <- function(name) file.path(folder, name)
  writeLines(input, at("in"))
  args <- vapply(c(...), shQuote, "")
  status <- suppressWarnings(system2(
    via, args, stdout = at("out"), stderr = at("err"), stdin = at("in"),
    env = c(paste0("R_LIBS=", shQuote(paste(.libPaths(), collapse = ":"))), env)
  ))
  list(status = status, out = readLines(at("out"), warn = FALSE), err = readLines(at("err"), warn = FALSE))
}

script <- function(..., .local_envir = parent.frame()) {
  withr::local_tempfile(fileext = ".R", lines = c(...), .local_envir = .local_envir)
}
