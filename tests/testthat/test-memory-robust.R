# tier: gate
# Processes whose snapshot is being taken when something happens to them, or to the one that takes it.

test_that("a process continues if the one that takes a snapshot of it is killed meanwhile", {
  skip_without_processes()
  pid <- local_r_process(c("kept <- as.list(1:1e6 + 0.5)", "ready()", "repeat kept[[1]] <- kept[[1]] + 1"))
  reader <- local_r_process(with_package("ready()", sprintf("repeat snapshot_memory(%d)", pid)))
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
  expect_sane_snapshot(snapshot_memory(pid), "globalenv > $kept", 1000001)
})

test_that("a process that is killed while its snapshot is taken is an error", {
  skip_without_processes()
  pid <- local_r_process(c("kept <- as.list(1:1e6 + 0.5)", "ready()", "repeat kept[[1]] <- kept[[1]] + 1"))
  when_held <- sprintf("while ! grep -q ') t' /proc/%d/stat; do :; done; kill -9 %d", pid, pid)
  system2("sh", c("-c", shQuote(paste(when_held, "2> /dev/null"))), wait = FALSE)
  expect_error(repeat snapshot_memory(pid), class = "profile_error_process")
  expect_true(wait_for(function() has_ended(pid)))
})

test_that("references that are damaged are counted, and the rest is there", {
  skip_without_processes()
  for (count in c(1, 30, 300)) {
    pid <- local_r_process(c(
      "elements <- lapply(1:1000, function(i) i + 0.5)",
      "address <- sub('^@([0-9a-f]+) .*', '\\\\1', capture.output(.Internal(inspect(elements)))[[1]])",
      "digits <- strtoi(strsplit(address, '')[[1]], 16)",
      "elements_at <- sum(digits * 16^rev(seq_along(digits) - 1)) + 48",
      "memory <- file('/proc/self/mem', 'r+b', raw = TRUE)",
      # The next collection would end the process.
      "invisible(gc())",
      "invisible(seek(memory, elements_at, rw = 'write'))",
      sprintf("writeBin(rep(c(0x12345678L, 0L), %d), memory)", count),
      "close(memory)", sleeping_code
    ))
    x <- snapshot_memory(pid)
    expect_identical(validate_profile(x), x)
    expect_equal(heap_attribute(x, "wrong_references"), count)
    expect_equal(source_attribute(x, "profile.pauses"), "2")
    paths <- paths_in(x)
    expect_equal(paths$objects[paths$path == "globalenv > $elements > numeric"], 1000 - count)
    expect_false(has_ended(pid))
  }
})
