# tier: gate
# The stack of a process in its core file. Rust tests check stacks and lines with core files made of images of R's memory
# (src/rust/reader/tests/reader/core_file.rs), and damaged files.

# Compares the stack in a core file with that of the process when it was still running.
expect_same_stack <- function(x, live) {
  expect_s3_class(x, class(live), exact = TRUE)
  expect_identical(as_tibble(x), as_tibble(live))
  for (name in c("pid", "command", "toplevel", "labels", "is_cut")) {
    expect_identical(attr(x, name), attr(live, name), info = name)
  }
  expect_identical(attr(x, "start"), as.POSIXct(NA_real_, origin = "1970-01-01"))
  expect_identical(attr(x, "children"), integer())
}

# Code of a process that sleeps and has a label.
labelled_code <- with_package(sub("^f\\(nap\\(\\)\\)$", "with_labels(c(route = '/a'), f(nap()))", sleeping_code))

test_that("a core file by gcore has the same stack as the running process", {
  skip_without_processes()
  if (!nzchar(Sys.which("gcore"))) skip("gcore is missing; GDB contains it")
  pid <- local_r_process(labelled_code)
  live <- wait_for_stack(pid, sleeping_stack)
  dir <- withr::local_tempdir()
  output <- suppressWarnings(system2(
    "gcore", c("-o", shQuote(file.path(dir, "core")), pid), stdout = TRUE, stderr = TRUE
  ))
  path <- file.path(dir, paste0("core.", pid))
  if (!file.exists(path)) skip(paste("gcore wrote no core file:", utils::tail(output, 1)))
  x <- dump_stack(path)
  expect_same_stack(x, live)
  expect_identical(attr(x, "labels"), c(route = "/a"))
  expect_identical(attr(x, "state"), "sleeping")
  expect_identical(attr(x, "signal"), NA_character_)
  expect_match(attr(x, "system_call"), "select|poll|nanosleep")
  expect_identical(attr(x, "core"), path)
  expect_output(expect_identical(shell_command(c("dump", path)), 0L), "nap()", fixed = TRUE)
  # It is a file, whatever its name is.
  withr::local_dir(dir)
  file.rename(basename(path), "1234")
  expect_identical(dump_stack("1234")$name, live$name)
})

test_that("a core file by the kernel has the same stack as the process that was killed", {
  skip_without_processes()
  pattern <- readLines("/proc/sys/kernel/core_pattern")
  if (!pattern %in% c("core", "core.%p")) skip("the system does not write core files to the current folder")
  dir <- withr::local_tempdir()
  pid <- local_r_process(labelled_code, limits = paste("cd", shQuote(dir), "&& ulimit -c unlimited"))
  live <- wait_for_stack(pid, sleeping_stack)
  tools::pskill(pid, 6)
  expect_true(wait_for(function() has_ended(pid)))
  path <- list.files(dir, "^core", full.names = TRUE)
  if (length(path) == 0) skip("the system wrote no core file")
  x <- dump_stack(path)
  expect_same_stack(x, live)
  expect_identical(attr(x, "state"), "killed")
  expect_identical(attr(x, "signal"), "SIGABRT")
  scrub <- function(lines) {
    lines <- gsub(path, "core.1234", gsub(pid, "1234", lines, fixed = TRUE), fixed = TRUE)
    activity <- grep("^Killed", lines)
    lines <- c(lines[[1]], "COMMAND", lines[-seq_len(activity - 1)])
    sub("call [a-z0-9_]+", "call CALL", lines)
  }
  expect_snapshot(writeLines(format(x, width = 300)), transform = scrub)
})

test_that("a file that is no core file is an error that says what it is", {
  dir <- withr::local_tempdir()
  withr::local_dir(dir)
  writeBin(raw(), "empty")
  writeLines("f()", "script.R")
  writeBin(c(as.raw(c(0x28, 0xb5, 0x2f, 0xfd)), raw(100)), "core.zst")
  # An ELF file: a library, one for another machine, and one that is cut off.
  machine <- if (R.version$arch == "aarch64") 183 else 62
  header <- raw(64)
  header[1:7] <- as.raw(c(0x7f, 0x45, 0x4c, 0x46, 2, 1, 1))
  header[c(17, 19, 33, 55)] <- as.raw(c(3, machine, 64, 56))
  writeBin(header, "library.so")
  header[[17]] <- as.raw(4)
  header[[57]] <- as.raw(200)
  writeBin(header, "core.cut")
  header[[19]] <- as.raw(machine + 1)
  writeBin(header, "core.other")
  expect_error(dump_stack("none"), class = "profile_error_open")
  expect_error(dump_stack("empty"), class = "profile_error_parse")
  expect_error(dump_stack("core.other"), class = "profile_error_unsupported")
  expect_snapshot(error = TRUE, {
    dump_stack("none")
    dump_stack(".")
    dump_stack("empty")
    dump_stack("script.R")
    dump_stack("core.zst")
    dump_stack("library.so")
    dump_stack("core.cut")
    dump_stack("core.other")
  }, transform = function(lines) sub("of [a-z0-9-]+ can be read", "of MACHINE can be read", lines))
})
