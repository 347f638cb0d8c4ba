# tier: gate
# What disturbs a run of the joint profiler: jumps, threads, forks, other users of
# Rprof() and of its signal, Ctrl-C, errors; and storms of all that.

test_that("long jumps out of native code leave the next samples right", {
  skip_without_joint()
  workload <- native_workload(native_library(), n = 300000L)
  x <- quietly(joint_profile(interval = 0.01, {
    native_work(workload, 2, c("caught", "protected"))
    native_work(workload, 1, "nested")
  }))
  stacks <- profile_stacks(x)
  expect_entries(stacks)
  for (frame in c("c_fail", "c_body", "c_handler", "c_cleanup", "c_outer")) {
    expect_true(frame %in% unlist(stacks), info = frame)
  }
})

test_that("C++ exceptions, in whose unwinder samples are taken, do no harm", {
  skip_without_joint()
  lib <- native_library()
  workload <- native_workload(lib)
  start_profiler(withr::local_tempfile(), interval = 0.01)
  .Call(lib$storm_start, 200L, "")
  end <- process_cpu() + 1.5
  while (process_cpu() < end) throw_often(workload)
  counts <- .Call(lib$storm_stop)
  x <- quietly(stop_profiler())
  expect_gt(nrow(x$samples), counts[[1]] / 4)
  # What could be merged is right.
  found <- native_entries(x)
  expect_equal(found$wrong, 0, info = paste(found$stacks, collapse = "\n"))
  expect_gt(found$right, 20)
})

test_that("other threads are not in R's stacks", {
  skip_without_joint()
  lib <- native_library()
  workload <- native_workload(lib)
  expect_equal(.Call(lib$busy_start, 2L), 2L)
  withr::defer(.Call(lib$busy_stop))
  x <- quietly(joint_profile(native_work(workload, 6, c("plain", "nested", "forced")), interval = 0.01))
  stacks <- profile_stacks(x)
  expect_entries(stacks)
  expect_false("busy_thread" %in% unlist(stacks))
})

test_that("forked children do not record, and do not harm", {
  skip_without_joint()
  lib <- native_library()
  workload <- native_workload(lib)
  path <- withr::local_tempfile()
  before <- proc.time()
  start_profiler(path, interval = 0.01)
  native_work(workload, 1, c("plain", "nested"))
  answers <- parallel::mclapply(1:3, mc.cores = 2, function(i) {
    for (j in 1:200) workload$forked(1000000L)
    stopped <- tryCatch(class(stop_profiler()), error = class)
    started <- tryCatch(class(start_profiler(tempfile())), error = class)
    for (j in 1:50) workload$leaf(1000000L)
    list(stopped = stopped, started = started)
  })
  native_work(workload, 1, c("plain", "nested"))
  used <- sum((proc.time() - before)[c("user.self", "sys.self")])
  x <- quietly(stop_profiler())
  for (answer in answers) {
    expect_true("profile_error" %in% answer$stopped)
    expect_true("profile_error" %in% answer$started)
  }
  stacks <- profile_stacks(x)
  expect_entries(stacks)
  expect_false("c_forked" %in% unlist(stacks))
  expect_false("forked()" %in% unlist(stacks))
  # The parent's time, and no more: on a busy machine the kernel's timer is late, so that there
  # are fewer samples.
  expect_lt(nrow(x$samples) * 0.01, used * 1.05 + 0.05)
  expect_gt(nrow(x$samples) * 0.01, used * 0.6)
  expect_equal(nrow(read_rprof(path)$samples), nrow(x$samples))
})

test_that("using Rprof() in between is a warning, and the recorded data are returned", {
  skip_without_joint()
  workload <- native_workload(native_library())
  for (code in expression(
    utils::Rprof(NULL),
    {
      utils::Rprof(withr::local_tempfile())
      native_work(workload, 0.3, "plain")
      utils::Rprof(NULL)
    }
  )) {
    path <- withr::local_tempfile()
    start_profiler(path, interval = 0.01)
    native_work(workload, 1, "nested")
    eval(code)
    native_work(workload, 0.3, "evals")
    x <- expect_profile_warning(stop_profiler(), "profile_warning")
    expect_entries(x, least = 35)
    expect_lt(nrow(x$samples), 125)
    expect_equal(nrow(read_rprof(path)$samples), nrow(x$samples))
    # As if nothing had been.
    expect_entries(quietly(joint_profile(native_work(workload, 0.5, "nested"), interval = 0.01)), least = 35)
  }
})

test_that("one run at a time, and no stop without a start", {
  skip_without_joint()
  expect_error(stop_profiler(), class = "profile_error")
  workload <- native_workload(native_library())
  path <- withr::local_tempfile()
  start_profiler(path, interval = 0.01)
  native_work(workload, 0.3, "nested")
  expect_error(start_profiler(withr::local_tempfile()), class = "profile_error")
  expect_error(joint_profile(1), class = "profile_error")
  native_work(workload, 0.3, "nested")
  x <- quietly(stop_profiler())
  # The first run knew nothing of that.
  expect_entries(x, least = 45)
  expect_error(stop_profiler(), class = "profile_error")
  expect_no_warning(
    expect_error(start_profiler(file.path(path, "no", "folder")), class = "profile_error_write")
  )
  expect_error(stop_profiler(), class = "profile_error")
})

test_that("an error in the expression reaches the user, and profiling is over", {
  skip_without_joint()
  workload <- native_workload(native_library())
  expect_no_warning(expect_error(joint_profile(stop("my own")), "my own"))
  expect_error(joint_profile(workload$failing(1000000L)), "long jump")
  expect_error(stop_profiler(), class = "profile_error")
  # Other ways out.
  expect_equal(quietly((function() joint_profile(return("out")))()), "out")
  for (i in 1:3) quietly(joint_profile(break))
  expect_error(stop_profiler(), class = "profile_error")
  owner <- .Call(native_library()$sigprof_owner)
  expect_match(basename(owner), "^(libR.so|R)$")
  expect_entries(quietly(joint_profile(native_work(workload, 0.5, "nested"), interval = 0.01)), least = 35)
})

test_that("after Ctrl-C stop_profiler() returns what was recorded", {
  skip_without_joint()
  result <- run_native(native_library(), env = listen_to_interrupts(), c(
    "workload <- native_workload(lib)",
    "path <- tempfile()",
    "start_profiler(path, interval = 0.01)",
    "run <- function(code) tryCatch({",
    "  .Call(lib$interrupt_soon, 1000L)",
    "  force(code)",
    "  'finished'",
    "}, interrupt = function(e) 'interrupted')",
        "cat('first', run(native_work(workload, 20, c('nested', 'forced', 'protected'))), '\\n')",
    "found <- native_entries(quietly(stop_profiler()))",
    "cat('found', found$right > 50, found$wrong, found$missing < 5, '\\n')",
    "cat('second', run(quietly(joint_profile(native_work(workload, 20)))), '\\n')",
    "cat('stop', class(tryCatch(stop_profiler(), error = identity)), '\\n')",
    "cat('owner', basename(.Call(lib$sigprof_owner)), '\\n')"
  ))
  expect_equal(result$status, 0, info = paste(result$output, collapse = "\n"))
  expect_equal(answer(result, "first"), "interrupted")
  expect_equal(answer(result, "found"), c("TRUE", "0", "TRUE"))
  expect_equal(answer(result, "second"), "interrupted")
  expect_true("profile_error" %in% answer(result, "stop"))
  expect_match(answer(result, "owner"), "^(libR.so|R)$")
})

test_that("R can be quit, and the package unloaded, while the profiler runs", {
  skip_without_joint()
  lib <- native_library()
  for (end in c("quit('no')", "unloadNamespace('profile')")) {
    path <- withr::local_tempfile()
    result <- run_native(lib, c(
      "workload <- native_workload(lib)",
      sprintf("start_profiler(%s, interval = 0.01)", encodeString(path, quote = "\"")),
      "native_work(workload, 0.5, 'nested')",
      end,
      "native_work(workload, 0.5, 'nested')",
        "cat('owner', basename(.Call(lib$sigprof_owner)), '\\n')"
    ))
    expect_equal(result$status, 0, info = paste(c(end, result$output), collapse = "\n"))
    if (end != "quit('no')") {
      expect_match(answer(result, "owner"), "^(libR.so|R)$")
    }
    x <- read_quietly(path)
    expect_gt(nrow(x$samples), 30)
    expect_true("callback()" %in% unlist(rprof_stacks(path)))
  }
})

# Runs are started and ended again and again while another thread sends signals and a
# third loads and unloads a library; now and then the process forks. What is done in
# a turn is `turn`, R code that may use `workload`.
storm <- function(lib, turn, seconds) {
  result <- run_native(lib, seconds = 60 + 3 * seconds, c(
    "workload <- native_workload(lib, n = 300000L)",
    "splines <- system.file('libs', 'splines.so', package = 'splines')",
    "sums <- c(right = 0, wrong = 0, missing = 0, other = 0)",
    "wrong <- character()",
    "start_profiler(tempfile(), interval = 0.01)",
    "invisible(.Call(lib$storm_start, 200L, splines))",
    sprintf("end <- Sys.time() + %f", seconds),
    "turns <- 0",
    "while (Sys.time() < end) {",
    turn,
    "  x <- quietly(stop_profiler())",
    "  found <- native_entries(x)",
    "  sums <- sums + unlist(found[names(sums)])",
    "  wrong <- c(wrong, found$stacks)",
    "  turns <- turns + 1",
    "  start_profiler(tempfile(), interval = 0.01)",
    "}",
    "counts <- .Call(lib$storm_stop)",
    "invisible(quietly(stop_profiler()))",
    "cat(utils::head(unique(wrong)), sep = '\\n')",
    "cat('sums', sums, '\\n')",
    "cat('counts', turns, counts, '\\n')",
    "cat('owner', basename(.Call(lib$sigprof_owner)), '\\n')"
  ))
  info <- paste(c(turn, utils::tail(result$output, 20)), collapse = "\n")
  # 124: it hung; 134, 139: it crashed
  expect_equal(result$status, 0, info = info)
  if (result$status != 0) {
    return()
  }
  sums <- as.numeric(answer(result, "sums"))
  expect_equal(sums[[2]], 0, info = info)
  expect_gt(sums[[1]], 100 * seconds)
  expect_gte(sums[[1]] / (sums[[1]] + sums[[3]]), 0.95)
  # Turns, signals, libraries.
  expect_true(all(as.numeric(answer(result, "counts")) > 1), info = info)
  expect_match(answer(result, "owner"), "^(libR.so|R)$")
}

storm_seconds <- function() {
  as.numeric(Sys.getenv("PROFILE_TEST_STORM", "4"))
}

test_that("runs survive a storm of signals, with libraries that come and go", {
  skip_without_joint()
  turn <- "native_work(workload, 0.25, sample(names(workload$scenarios)))"
  storm(native_library(), turn, storm_seconds())
  storm(native_library("-O2"), turn, storm_seconds())
})

test_that("runs survive being short, and forks in between", {
  skip_without_joint()
  storm(native_library(), seconds = storm_seconds(), c(
    "native_work(workload, 0.05, c('nested', 'forced', 'plain'))",
    "if (turns %% 4 == 0) {",
    "  answers <- parallel::mclapply(1:2, function(i) workload$nested(300000L, 3) > 0)",
    "  stopifnot(identical(unlist(answers), c(TRUE, TRUE)))",
    "}"
  ))
})

test_that("when the memory for native stacks is used up, the rest is R's alone, and counted", {
  skip_without_joint()
  withr::local_options(profile.recording_mb = 0)
  expect_error(joint_profile(1), "recording_mb", class = "profile_error_argument")
  withr::local_options(profile.recording_mb = 1)
  workload <- native_workload(native_library())
  # Deep stacks take more: 300 calls some 30 KB.
  deep <- function(depth) if (depth > 0) deep(depth - 1) else native_work(workload, 1, "plain")
  expect_warning(
    x <- joint_profile(deep(300), interval = 0.01),
    "memory for native stacks was used up",
    class = "profile_warning_incomplete"
  )
  problems <- profile_problems(x)
  full <- as.integer(sub("sample ", "", problems$text[problems$problem == "native_full"]))
  # These are the last ones, without a gap.
  expect_equal(full, seq(nrow(x$samples) - length(full) + 1, nrow(x$samples)))
  native <- vapply(profile_stacks(x), function(stack) "c_spin" %in% stack, NA)
  expect_false(any(native[full]))
  expect_gt(sum(native), 5)
})

test_that("an expression is profiled and shown", {
  skip_without_joint()
  skip_without_pprof()
  workload <- native_workload(native_library())
  server <- joint_pprof(native_work(workload, 0.3, "plain"), browse = FALSE)
  withr::defer(stop_pprof(server))
  page <- paste(readLines(paste0(server$url, "top"), warn = FALSE), collapse = "\n")
  expect_match(page, "c_spin")
})

test_that("if another library takes the signal, the recorded data are returned and R is restored", {
  skip_without_joint()
  result <- run_native(native_library(), c(
    "workload <- native_workload(lib)",
    "path <- tempfile()",
    "start_profiler(path, interval = 0.01)",
    "native_work(workload, 0.5, 'nested')",
    ".Call(lib$sigprof_take)",
    "native_work(workload, 0.2, 'nested')",
    "warned <- FALSE",
    "x <- withCallingHandlers(stop_profiler(), profile_warning_incomplete = function(w) {",
    "  warned <<- TRUE",
    "  invokeRestart('muffleWarning')",
    "})",
    "cat('warned', warned, '\\n')",
    "cat('samples', nrow(x$samples) > 20, '\\n')",
    "again <- suppressWarnings(joint_profile(native_work(workload, 0.5, 'nested'), interval = 0.01))",
    "cat('again', nrow(again$samples) > 20, '\\n')",
    # It gives the signal back to a handler of a package that is gone.
    "profile <- asNamespace('profile')",
    "Rprof(tempfile(), interval = 0.01)",
    "unloadNamespace('profile')",
    ".Call(lib$sigprof_return)",
    "end <- proc.time()[[1]] + 0.3",
    "while (proc.time()[[1]] < end) sqrt(1)",
    "Rprof(NULL)",
    "cat('alive TRUE\\n')"
  ))
  expect_equal(result$status, 0, info = paste(result$output, collapse = "\n"))
  for (what in c("warned", "samples", "again", "alive")) {
    expect_equal(answer(result, what), "TRUE")
  }
})

test_that("arguments are checked before anything happens", {
  skip_without_joint()
  path <- withr::local_tempfile(lines = "something of mine")
  for (interval in list(1, 0, -1, NA, "0.01", c(0.01, 0.02))) {
    expect_error(start_profiler(path, interval = interval), "interval", class = "profile_error_argument")
  }
  for (count in list(0, NA, 1e10, "1")) {
    expect_error(start_profiler(path, numfiles = count), "numfiles", class = "profile_error_argument")
    expect_error(start_profiler(path, bufsize = count), "bufsize", class = "profile_error_argument")
  }
  expect_error(start_profiler(path, gc.profiling = NA), "gc.profiling", class = "profile_error_argument")
  expect_error(start_profiler(path, event = "wall"), "event", class = "profile_error_argument")
  # There is no such memory.
  withr::local_options(profile.recording_mb = 2^30)
  expect_error(start_profiler(path), class = "profile_error_memory")
  expect_equal(readLines(path), "something of mine")
  expect_error(stop_profiler(), class = "profile_error_argument")
})

test_that("what is no regular file is refused before anything starts", {
  skip_without_joint()
  link <- withr::local_tempfile()
  file.symlink("/dev/full", link)
  fifo <- withr::local_tempfile()
  system2("mkfifo", fifo)
  for (path in c("/dev/full", "/dev/null", link, fifo, tempdir())) {
    expect_error(start_profiler(path), class = "profile_error_write", info = path)
    expect_error(stop_profiler(), class = "profile_error_argument", info = path)
  }
})

test_that("a full disk is reported, and what was written is kept", {
  skip_without_joint()
  dir <- withr::local_tempdir()
  code <- c(
    "library(profile)",
    sprintf("path <- '%s'", file.path(dir, "full.out")),
    "start_profiler(path, interval = 0.001)",
    "deep <- function(n) if (n > 0) deep(n - 1) else for (i in 1:3e5) sqrt(i)",
    "end <- sum(proc.time()[1:2]) + 2",
    "while (sum(proc.time()[1:2]) < end) deep(90)",
    "x <- withCallingHandlers(",
    "  tryCatch(stop_profiler(), profile_error_write = function(e) { cat('refused:', conditionMessage(e), '\\n'); e$profile }),",
    "  profile_warning_incomplete = function(w) { cat('incomplete:', conditionMessage(w), '\\n'); invokeRestart('muffleWarning') }",
    ")",
    "cat(NROW(x$samples), 'samples\\n')",
    "cat(class(try(stop_profiler(), silent = TRUE)), '\\n')"
  )
  # A limit on sizes of files is a full disk where the signal for it is ignored.
  half <- run_r(code, prefix = "trap '' XFSZ; ulimit -f 40;")
  expect_equal(half$status, 0, info = half$output)
  expect_true(any(startsWith(half$output, "incomplete:")), info = half$output)
  expect_true(any(grepl("or the disk was full", half$output)), info = half$output)
  count <- as.numeric(sub(" samples.*", "", grep("^[0-9]+ samples", half$output, value = TRUE)))
  expect_gt(count, 20)
  # What is in the file can be read.
  expect_gt(nrow(read_quietly(file.path(dir, "full.out"))$samples), 20)
})
