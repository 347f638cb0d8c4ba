# tier: gate
# The highest memory of processes, snapshots at that time, and processes that were killed. What the kernel reports is
# scripted in Rust tests (reader/src/record/memory, reader/src/heap/peak, reader/src/process/linux/cgroup.rs); a real limit
# of a cgroup is in test-peak-memory-limit.R.

# Code of a process that takes 80 MB more whenever there is a file `1`, `2`, ... in the folder, and then waits.
growing_code <- function(folder) {
  c(
    "keep <- list()",
    "ready()",
    "for (i in 1:3) {",
    sprintf("  while (!file.exists(file.path(%s, i))) Sys.sleep(0.01)", deparse(folder)),
    "  keep[[i]] <- rep(1, 1e7)",
    "}",
    "Sys.sleep(1e6)"
  )
}

# Starts a process that runs code, of which nobody asks how it has ended, and returns its id.
local_unreaped_process <- function(code, envir = parent.frame()) {
  folder <- withr::local_tempdir(.local_envir = envir)
  at <- function(name) file.path(folder, name)
  # R can be looked into when it runs code.
  writeLines(c(sprintf("invisible(file.create(%s))", deparse(at("ready"))), code), at("code.R"))
  program <- shQuote(file.path(R.home("bin"), "Rscript"))
  command <- sprintf(
    "echo $$ > %s; %s %s > /dev/null 2>&1 & echo $! > %s; exec sleep 1000000", at("parent"), program, at("code.R"), at("pid")
  )
  system2("sh", c("-c", shQuote(command)), wait = FALSE)
  pid <- pid_in(at("pid"))
  parent <- pid_in(at("parent"))
  withr::defer(tools::pskill(c(pid, parent), tools::SIGKILL), envir)
  expect_true(wait_for(function() file.exists(at("ready"))))
  pid
}

attributes_of <- function(x, key) as.character(stats::na.omit(source_attribute(x, key)))

test_that("a process that grows has a snapshot of its peak", {
  skip_without_snapshots()
  folder <- withr::local_tempdir()
  pid <- local_r_process(growing_code(folder))
  rust(rust_peaks_start(pid), NULL)
  withr::defer(rust(rust_peaks_end(FALSE), NULL))
  before <- peaks_so_far()
  expect_identical(before$pid, pid)
  expect_true(before$snapshots >= 1 && before$taken > 1e7)
  for (step in 1:3) {
    before <- peaks_so_far()$resident
    file.create(file.path(folder, step))
    # It may be looked at while it grows, and then not again if less than a tenth is missing.
    expect_true(wait_for(function() {
      now <- peaks_so_far()
      now$resident > before + 7e7 && now$resident < 1.1 * now$taken
    }))
  }
  ended <- end_peaks(NULL)
  expect_gte(ended$peaks$snapshots, 4)
  expect_gte(ended$peaks$highest, ended$peaks$taken)
  expect_identical(nrow(ended$endings), 0L)
  x <- ended$snapshot
  expect_s3_class(validate_profile(x), "profile_data")
  first <- holders(x)[1, ]
  expect_identical(first$held_by, "globalenv > $keep > [[*]]")
  expect_gte(first$retained, 2 * 8e7)
  expect_identical(attributes_of(x, "profile.memory.peak"), sprintf("%.0f", ended$peaks$highest))
  expect_identical(attributes_of(x, "profile.memory.snapshots"), sprintf("%.0f", ended$peaks$snapshots))
  lines <- format_peaks(ended, 3, 80)
  expect_match(lines[[1]], "^The snapshot was taken at .*MB of memory; the most was .*MB[.]")
  expect_match(lines, "globalenv > $keep", fixed = TRUE, all = FALSE)
})

test_that("watch_process() returns the snapshot, and shows it", {
  skip_without_snapshots()
  pid <- local_r_process(c("keep <- rep(1, 2e7)", "ready()", "Sys.sleep(1e6)"))
  watched <- NULL
  output <- capture.output(
    watched <- withVisible(watch_process(pid, seconds = 0.2, every = 0.1, clock = "wall", snapshot = "peak"))
  )
  expect_false(watched$visible)
  expect_match(output, "MB of memory, at most .*MB, snapshot at .*MB$", all = FALSE)
  expect_match(output, "^The snapshot was taken at ", all = FALSE)
  expect_identical(holders(watched$value)$held_by[[1]], "globalenv > $keep")
  expect_identical(nrow(peaks_so_far()), 0L)

  output <- capture.output(watch_process(pid, seconds = 0.2, clock = "wall"))
  expect_match(output, "^Memory:    up to .*MB", all = FALSE)

  # From a shell.
  folder <- withr::local_tempdir()
  file <- file.path(folder, "peak.pb.gz")
  arguments <- c("top", "--snapshot", "peak", "--seconds", "0.2", "-o", file, pid)
  output <- capture.output(suppressMessages(expect_identical(shell_command(arguments), 0L)))
  expect_match(output, "^The snapshot was taken at ", all = FALSE)
  expect_identical(holders(file)$held_by[[1]], "globalenv > $keep")

  both <- c(pid, local_r_process(sleeping_code))
  output <- capture.output(x <- watch_process(both, seconds = 0.1, snapshot = "peak"))
  expect_length(unique(x$sources$source_uri), 2)
  expect_length(grep("^Process [0-9]+: The snapshot was taken", output), 2)

  expect_error(watch_process(pid, snapshot = "last"), class = "profile_error_argument")
  expect_error(watch_process(2^31 - 1, snapshot = "peak"), class = "profile_error_process")
  expect_identical(nrow(peaks_so_far()), 0L)
})

test_that("the last snapshot of a process that is killed remains", {
  skip_without_snapshots()
  pid <- local_unreaped_process("keep <- rep(1, 2e7); repeat Sys.sleep(1)")
  # R is starting.
  expect_true(wait_for(function() "Sys.sleep" %in% dump_stack(pid)$name))
  rust(rust_peaks_start(pid), NULL)
  withr::defer(rust(rust_peaks_end(FALSE), NULL))
  tools::pskill(pid, tools::SIGKILL)
  expect_true(wait_for(function() has_ended(pid)))
  ended <- end_peaks(NULL)
  expect_identical(holders(ended$snapshot)$held_by[[1]], "globalenv > $keep")
  expect_match(attributes_of(ended$snapshot, "profile.process.end"), "^signal 9")
  expect_match(format_endings(ended$endings), sprintf("^Process %d ended by signal 9", pid))
})

test_that("how a process ended is in its profile", {
  skip_without_processes()
  pid <- local_unreaped_process("repeat Sys.sleep(0.01)")
  described <- describe_profile(profile_process(pid, seconds = 0.1, clock = "wall"))
  peak <- as.list(described)$peak
  expect_identical(peak$processes$end, NA_character_)
  expect_identical(peak$processes$process, paste0("pid ", pid))
  expect_gt(peak$processes$peak, 1e7)
  expect_match(format(described), "^Memory:    up to .*MB", all = FALSE)

  when_recorded(pid, paste("kill -KILL", pid))
  x <- suppressWarnings(profile_process(pid, seconds = Inf, clock = "wall"))
  # Without a count of the kernel, it is a signal, and no more.
  expect_match(attributes_of(x, "profile.process.end"), "^signal 9")
  notes <- as.list(describe_profile(x))$notes
  expect_match(notes, sprintf("^pid %d ended: signal 9", pid), all = FALSE)
})

test_that("a script that is killed is named, with the memory that it took", {
  program()
  skip_without_snapshots()
  folder <- withr::local_tempdir()
  output <- file.path(folder, "out.html")
  path <- script("keep <- rep(1, 2e7)", "tools::pskill(Sys.getpid(), tools::SIGKILL)")
  recorded <- run_program("record", "-o", output, "--snapshot", "peak", path)
  expect_identical(recorded$status, 137L)
  expect_match(recorded$err, "^profile: The script ended by signal 9", all = FALSE)
  expect_match(recorded$err, "^The snapshot was taken at ", all = FALSE)
  expect_setequal(dir(folder), c("out.html", "out-peak.html"))

  # One that ends by itself.
  output <- file.path(folder, "out.pb.gz")
  path <- script("keep <- rep(1, 2e7)", "quit(status = 3)")
  recorded <- run_program("record", "-o", output, "--snapshot=peak", "--children", path)
  expect_identical(recorded$status, 3L)
  expect_false(any(grepl("ended by signal", recorded$err)))
  expect_s3_class(read_profile(file.path(folder, "out-peak.pb.gz")), "profile_data")
})

test_that("the memory of all processes together is in the profile", {
  skip_without_processes()
  x <- suppressWarnings(record_profile({
    shared <- rep(1, 1e7)
    unlist(parallel::mclapply(1:2, function(i) {
      own <- rep(i, 5e6)
      end <- Sys.time() + 1
      while (Sys.time() < end) sum(shared) + sum(own)
      length(own)
    }, mc.cores = 2))
  }, children = TRUE), "profile_warning_incomplete")
  peak <- as.list(describe_profile(x))$peak
  expect_true("master" %in% sub(", pid.*", "", peak$processes$process))
  expect_true(all(peak$processes$peak > 8e7))
  # What forks share counts once.
  if (!is.na(peak$together)) expect_lt(peak$together, sum(peak$processes$peak))
  by_process <- summary(x, by = "process")
  expect_identical(by_process$peak_memory, peak$processes$peak[match(by_process$process, peak$processes$process)])
  # Processes without samples, as a session that waits for its forks, have a row as well.
  expect_setequal(by_process$process, peak$processes$process)
  none <- summary(filter_profile(x, labels = c(process = by_process$process[[1]])), by = "process")[-1, ]
  expect_setequal(none$process, by_process$process[-1])
  expect_true(all(none$samples == 0 & none$total == 0 & none$total_share == 0 & none$peak_memory > 8e7))
})

test_that("messages say what is known about an end, and no more", {
  endings <- tibble::tibble(
    pid = 1:8, role = c("", "worker 1 of 2", "", "", "", "fork of 7", "", ""),
    cause = c("killed", "killed", "machine", "cgroup", "cgroup", "signal", "signal", "signal"),
    signal = c(9L, 9L, 9L, NA, NA, 9L, 9L, 11L),
    for_memory = c(TRUE, TRUE, TRUE, TRUE, TRUE, TRUE, TRUE, FALSE),
    limit = c(512, 512, NA, NA, 512, 512, 512, 512) * 2^20, used = c(NA, 500, NA, NA, NA, 500, NA, NA) * 2^20,
    available = c(NA, NA, 20, NA, NA, NA, 20, NA) * 2^20
  )
  expect_snapshot(writeLines(format_endings(endings)))
  expect_identical(format_endings(endings[0, ]), character())
  expect_length(format_kills(endings), 7)
  expect_match(format_endings(endings[1, ], "The script"), "^The script was killed")
})

test_that("the line about the memory of processes says what is known", {
  peak <- function(n, ...) {
    parts <- list(
      processes = tibble::tibble(process = paste0("worker ", seq_len(n), ", pid ", seq_len(n)), peak = seq_len(n) * 1e9, end = NA),
      together = NA_real_, count = NA_real_, limit = NA_real_, kills = NA_real_
    )
    writeLines(format_peak(utils::modifyList(parts, list(...)), 80))
  }
  expect_snapshot({
    peak(1)
    peak(3)
    peak(3, together = 4e9, count = 3)
    peak(1, limit = 2^31)
    peak(3, together = 4e9, count = 3, limit = 2^33, kills = 1)
    peak(1, kills = 2)
  })
  expect_null(format_peak(NULL, 80))
})

test_that("wrong arguments of the shell command are refused", {
  refused <- function(...) {
    message <- utils::capture.output(status <- shell_command(c(...)), type = "message")
    expect_identical(status, 2L)
    writeLines(message)
  }
  expect_snapshot({
    refused("record", "--snapshot", "last", "a.R")
    refused("record", "--snapshot", "peak", "--pid", "1")
    refused("top", "--output", "a.html", "1")
  })
})

test_that("the snapshot of a script is written beside its profile", {
  files <- c("out.html", "/a.b/out.pb.gz", "C:\\x\\out", "report-profile.html")
  expect_identical(
    file_of_peak(files), c("out-peak.html", "/a.b/out-peak.pb.gz", "C:\\x\\out-peak", "report-profile-peak.html")
  )
})
