# tier: gate
# The names of functions that calls do not tell apart: methods, active bindings, and functions that are arguments. Their
# definition is read in the memory of a process (src/rust/reader/tests/reader/identity.rs tests damaged ones), or in
# the source files of a recording.

test_that("functions of a process have the names of their definition", {
  skip_without_processes()
  skip_if_not_installed("R6")
  pid <- local_r_process(process_code("names.R"))
  x <- wait_for_stack(pid, "Sys.sleep")
  expect_snapshot(writeLines(x$name))
})
