# Profiles with the lines of source files.

report <- function() read_rprof(system.file("samples/rprof/1.out", package = "profile"))
report_files <- function() system.file("samples/report", package = "profile")

# A profile of this session of `f()`, whose line 2 runs, in this file.
profile_of <- function(file, name = "f", line = 2L) {
  x <- report()
  x$functions$filename <- file
  x$functions$name[] <- name
  x$locations$line <- line
  mark_session(x)
}
