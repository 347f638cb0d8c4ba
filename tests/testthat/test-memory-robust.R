# tier: gate
# Processes whose snapshot is being taken when something happens to them, or to the one that takes it.

test_that("a process continues if the one that takes a snapshot of it is killed meanwhile", {
  skip_without_processes()
  pid <- local_r_process(c("kept <- as.list(1:1e6 + 0.5)", "ready()", "repeat kept[[1]] <- kept[[1]] + 1"))
  reader <- local_r_process(with_package("ready()", sprintf("repeat memory_profile(%d)", pid)))
  is_held <- function() startsWith(sub(".*[)] ", "", readLines(sprintf("/proc/%d/stat", pid))), "t")
  # Both are stopped: the process by the reader, and the reader by this test.
  expect_true(wait_for(function() {
    if (any(vapply(1:200, function(i) is_held(), NA))) {
      stop_process(reader)
      if (is_held()) {
        return(TRUE)
      }
      tools::pskill(reader, tools::SIGCONT)
    }
    FALSE
  }))
  held_at <- kernel_cpu_time(pid)
  tools::pskill(reader, tools::SIGKILL)
  expect_true(wait_for(function() has_ended(reader) && !is_traced(pid)))
  expect_true(wait_for(function() kernel_cpu_time(pid) > held_at))
  expect_false(has_ended(pid))
  # Nothing is left of the first reader: another one can stop it and finds everything.
  expect_sane_snapshot(memory_profile(pid), "globalenv > $kept", 1000001)
})

test_that("a process that is killed while its snapshot is taken is an error", {
  skip_without_processes()
  pid <- local_r_process(c("kept <- as.list(1:1e6 + 0.5)", "ready()", "repeat kept[[1]] <- kept[[1]] + 1"))
  when_held <- sprintf("while ! grep -q ') t' /proc/%d/stat; do :; done; kill -9 %d", pid, pid)
  system2("sh", c("-c", shQuote(paste(when_held, "2> /dev/null"))), wait = FALSE)
  expect_error(repeat memory_profile(pid), class = "profile_error_process")
  expect_true(wait_for(function() has_ended(pid)))
})
