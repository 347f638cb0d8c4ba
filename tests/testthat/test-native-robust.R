# tier: gate
# Disturbances of a recording of native code: jumps, threads, forks, other users of Rprof() and of its signal, Ctrl-C,
# errors, little memory and full disks. Tests generate ticks; test-native-storm.R has random signals.

# Expects the ticks of these scenarios and no others.
expect_ticks <- function(x, workload, scenarios, info = NULL) {
  expected <- expected_ticks(workload, scenarios)
  stacks <- profile_stacks(x)
  expect_equal(own_frames(stacks, workload), unname(expected), info = info)
  expect_all_right(stacks, length(expected), info)
}

test_that("ticks in other threads have the stack of R's thread", {
  skip_without_native()
  workload <- native_workload(native_library())
  x <- record_ticks(workload, c("threads", "plain"))
  expect_ticks(x, workload, c("threads", "plain"))
  expect_false(any(c("other_thread", "c_tick") %in% unlist(profile_stacks(x))))
})

test_that("long jumps out of native code leave the next samples right", {
  skip_without_native()
  workload <- native_workload(native_library())
  scenarios <- c("caught", "nested", "jumped", "nested", "protected", "nested")
  expect_ticks(record_ticks(workload, scenarios), workload, scenarios)
})

test_that("forked children do not record, and do not harm", {
  skip_without_native()
  workload <- native_workload(native_library())
  path <- withr::local_tempfile()
  start_profiler(path, interval = 0.9)
  only_given_ticks()
  run_scenarios(workload, c("plain", "nested"))
  answers <- parallel::mclapply(1:2, mc.cores = 2, function(i) {
    workload$forked(5L)
    stopped <- tryCatch(class(stop_profiler()), error = class)
    started <- tryCatch(class(start_profiler(tempfile())), error = class)
    workload$forked(5L)
    list(stopped = stopped, started = started)
  })
  run_scenarios(workload, c("plain", "nested"))
  x <- stop_profiler()
  for (answer in answers) {
    expect_true("profile_error" %in% answer$stopped)
    expect_true("profile_error" %in% answer$started)
  }
  # Only the parent's ticks.
  expect_ticks(x, workload, c("plain", "nested", "plain", "nested"))
  expect_equal(nrow(read_rprof(path)$samples), nrow(x$samples))
})

test_that("using Rprof() in between is a warning, and the recorded data are returned", {
  skip_without_native()
  workload <- native_workload(native_library())
  for (code in expression(
    utils::Rprof(NULL),
    {
      utils::Rprof(withr::local_tempfile(), interval = 0.9)
      only_given_ticks()
      run_scenarios(workload, "plain")
      utils::Rprof(NULL)
    }
  )) {
    path <- withr::local_tempfile()
    start_profiler(path, interval = 0.9)
    only_given_ticks()
    run_scenarios(workload, "nested")
    eval(code)
    run_scenarios(workload, "evals")
    x <- expect_profile_warning(stop_profiler(), "profile_warning")
    expect_ticks(x, workload, "nested")
    expect_equal(nrow(read_rprof(path)$samples), nrow(x$samples))
    # As after a normal stop.
    expect_ticks(record_ticks(workload, "nested"), workload, "nested")
  }
})

test_that("one run at a time, and no stop without a start", {
  skip_without_native()
  expect_error(stop_profiler(), class = "profile_error")
  workload <- native_workload(native_library())
  path <- withr::local_tempfile()
  start_profiler(path, interval = 0.9)
  only_given_ticks()
  run_scenarios(workload, "nested")
  expect_error(start_profiler(withr::local_tempfile()), class = "profile_error")
  expect_error(record_profile(1, native = TRUE), class = "profile_error")
  run_scenarios(workload, "nested")
  # The first run is not affected.
  expect_ticks(stop_profiler(), workload, c("nested", "nested"))
  expect_error(stop_profiler(), class = "profile_error")
  expect_no_warning(
    expect_error(start_profiler(file.path(path, "no", "folder")), class = "profile_error_write")
  )
  expect_error(stop_profiler(), class = "profile_error")
})

test_that("an error in the expression reaches the user, and profiling is over", {
  skip_without_native()
  workload <- native_workload(native_library())
  expect_no_warning(expect_error(record_profile(stop("my own"), native = TRUE), "my own"))
  expect_error(record_profile(workload$failing(1L), native = TRUE), "long jump")
  expect_error(stop_profiler(), class = "profile_error")
  # Other ways out.
  expect_equal(quietly((function() record_profile(return("out"), native = TRUE))()), "out")
  for (i in 1:3) quietly(record_profile(break, native = TRUE))
  expect_error(stop_profiler(), class = "profile_error")
  owner <- .Call(native_library()$sigprof_owner)
  expect_match(basename(owner), "^(libR.so|R)$")
  expect_ticks(record_ticks(workload, "nested"), workload, "nested")
})

test_that("a tick changes neither `errno` nor the signals that are blocked", {
  skip_without_native()
  lib <- native_library()
  x <- record_profile(native = TRUE, interval = 0.9, {
    only_given_ticks()
    changed <- .Call(lib$c_changed, 2L)
  })
  expect_equal(changed, c(0, 0))
  expect_equal(nrow(x$samples), 2)
})

test_that("another library at the same address is not taken for the one that was there", {
  skip_without_native()
  # Two libraries of the same size, with another function in the same place.
  dir <- built_once("twins", function(dir) {
    file.copy(test_path("native", "native.h"), dir)
    withr::local_dir(dir)
    for (name in c("twin_a", "twin_b")) {
      writeLines(c(
        "#include \"native.h\"", "#include <Rinternals.h>",
        sprintf("SEXP %s(void) { GIVE_TICK(); return R_NilValue; }", name)
      ), paste0(name, ".c"))
      run_tool(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "-o", paste0(name, ".so"), paste0(name, ".c")))
    }
  })
  begins <- character()
  visit <- function(name) {
    path <- file.path(dir, paste0(name, ".so"))
    dll <- dyn.load(path)
    begins <<- c(begins, sub("-.*", "", grep(path, readLines("/proc/self/maps"), fixed = TRUE, value = TRUE)[[1]]))
    .Call(getNativeSymbolInfo(name, dll)$address)
    dyn.unload(path)
  }
  names <- c("twin_a", "twin_b", "twin_a", "twin_b")
  x <- record_profile(native = TRUE, interval = 0.9, {
    only_given_ticks()
    for (name in names) visit(name)
  })
  expect_equal(vapply(profile_stacks(x), function(stack) utils::tail(stack, 1), ""), names)
  # Otherwise the test would not be meaningful.
  expect_lt(length(unique(begins)), 4)
})

test_that("when the memory for native stacks is used up, further samples have R's stack alone and are counted", {
  skip_without_native()
  withr::local_options(profile.recording_mb = 0)
  expect_error(record_profile(1, native = TRUE), "recording_mb", class = "profile_error_argument")
  withr::local_options(profile.recording_mb = 1)
  workload <- native_workload(native_library())
  # Deep stacks take more: 300 calls some 30 KB.
  deep <- function(depth) if (depth > 0) deep(depth - 1) else workload$leaf(100L)
  expect_warning(
    x <- with_jit(0, record_profile(native = TRUE, interval = 0.9, {
      only_given_ticks()
      deep(300)
      # This would fit into the remaining memory.
      workload$leaf(1L)
    })),
    "memory for native stacks was used up",
    class = "profile_warning_incomplete"
  )
  expect_equal(nrow(x$samples), 101)
  problems <- profile_problems(x)
  full <- as.integer(sub("sample ", "", problems$text[problems$problem == "native_full"]))
  # These are the last samples, without a gap.
  expect_gt(full[[1]], 6)
  expect_equal(full, full[[1]]:101)
  native <- vapply(profile_stacks(x), function(stack) "c_spin" %in% stack, NA)
  expect_equal(which(native), seq_len(full[[1]] - 1))
})

test_that("an expression is profiled and shown", {
  skip_without_native()
  skip_without_pprof()
  workload <- native_workload(native_library())
  opened <- NULL
  withr::local_options(browser = function(url) opened <<- url)
  process <- joint_pprof(
    {
      only_given_ticks()
      run_scenarios(workload, "plain")
    },
    browse = TRUE
  )
  withr::defer(tools::pskill(process$pid))
  expect_identical(opened, paste0(process$url, "/ui/flamegraph"))
  expect_match(pprof_page(process, "/ui/top"), "c_spin")
  # The port is not shared.
  port <- as.integer(sub(".*:", "", process$url))
  expect_error(
    joint_pprof({
      only_given_ticks()
      run_scenarios(workload, "plain")
    }, port = port),
    "in use", class = "profile_error_pprof"
  )
})

test_that("Ctrl-C, other users of the signal and unloading leave what was recorded, and R as it was", {
  skip_without_native()
  paths <- withr::local_tempfile(pattern = c("unloaded", "quit"))
  result <- run_native(native_library(), env = listen_to_interrupts(), c(
    "workload <- native_workload(lib)",
    "attach(workload)",
    sprintf("paths <- c(%s)", paste(encodeString(paths, quote = "\""), collapse = ", ")),
    "say <- function(...) cat(..., '\\n')",
    "owner <- function() basename(.Call(lib$sigprof_owner))",
    "run <- function(code) tryCatch({ code; 'finished' }, interrupt = function(e) 'interrupted')",
    "start <- function(path = tempfile()) { profile::start_profiler(path, interval = 0.9); only_given_ticks() }",
    "rows <- function(x) own_frames(profile_stacks(x), workload)",

    "start()",
    "say('interrupted', run(interrupting(2L)))",
    "x <- stop_profiler()",
    "say('until', rows(x))",
    "say('again', run(record_profile({ only_given_ticks(); interrupting(1L) }, native = TRUE, interval = 0.9)))",
    "say('over', class(tryCatch(stop_profiler(), error = identity)))",
    "say('after', owner())",

    # Another library takes the signal.
    "start()",
    "leaf(2L)",
    ".Call(lib$sigprof_take)",
    "leaf(2L)",
    "x <- withCallingHandlers(stop_profiler(), profile_warning_incomplete = function(w) {",
    "  say('warned TRUE')",
    "  invokeRestart('muffleWarning')",
    "})",
    "say('taken', rows(x))",
    "say('restored', rows(record_ticks(workload, 'recursive')))",

    # The package is unloaded during a run.
    "start(paths[[1]])",
    "leaf(2L)",
    "unloadNamespace('profile')",
    "say('unloaded', owner())",
    "leaf(2L)",
    # The other library gives the signal back to the handler of a package that was unloaded.
    "Rprof(tempfile(), interval = 0.9)",
    "only_given_ticks()",
    ".Call(lib$sigprof_return)",
    "leaf(2L)",
    "Rprof(NULL)",

    "library(profile)",
    "start(paths[[2]])",
    "leaf(3L)",
    "say('alive TRUE')",
    "quit('no')"
  ))
  expect_equal(result$status, 0, info = paste(result$output, collapse = "\n"))
  leaf <- c("leaf()", "c_inner", "c_spin", "c_kernel")
  expect_equal(answer(result, "interrupted"), "interrupted")
  expect_equal(answer(result, "until"), rep(c("interrupting()", "c_interrupt", "c_spin", "c_kernel"), 2))
  expect_equal(answer(result, "again"), "interrupted")
  expect_true("profile_error" %in% answer(result, "over"))
  expect_match(answer(result, "after"), "^(libR.so|R)$")
  expect_equal(answer(result, "warned"), "TRUE")
  expect_equal(answer(result, "taken"), rep(leaf, 2))
  expect_equal(answer(result, "restored"), c("recursive()*31", leaf, "recalled()*11", leaf))
  expect_match(answer(result, "unloaded"), "^(libR.so|R)$")
  expect_equal(answer(result, "alive"), "TRUE")
  # The files were written at the end.
  for (i in 1:2) {
    innermost <- vapply(rprof_stacks(paths[[i]]), function(stack) utils::tail(stack[stack != "c_kernel()"], 1), "")
    expect_equal(innermost, rep("c_spin()", i + 1))
  }
})

test_that("arguments are checked before recording starts", {
  skip_without_native()
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
  # This amount of memory does not exist.
  withr::local_options(profile.recording_mb = 2^30)
  expect_error(start_profiler(path), class = "profile_error_memory")
  expect_equal(readLines(path), "something of mine")
  expect_error(stop_profiler(), class = "profile_error_argument")
})

test_that("a path that is not a regular file is refused before recording starts", {
  skip_without_native()
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
  skip_without_native()
  dir <- withr::local_tempdir()
  lib <- native_library()
  path <- file.path(dir, "full.out")
  code <- c(
    "library(profile)",
    sprintf("dll <- dyn.load('%s')", lib$path),
    "give <- getNativeSymbolInfo('c_changed', dll)$address",
    sprintf("path <- '%s'", path),
    "start_profiler(path, interval = 0.9)",
    # 300 lines of 0.7 KB.
    "deep <- function(n) if (n > 0) deep(n - 1) else .Call(give, 300L)",
    "cat('changed', deep(90), '\\n')",
    "x <- withCallingHandlers(",
    "  tryCatch(stop_profiler(), profile_error_write = function(e) { cat('refused:', conditionMessage(e), '\\n'); e$profile }),",
    "  profile_warning_incomplete = function(w) { cat('incomplete:', conditionMessage(w), '\\n'); invokeRestart('muffleWarning') }",
    ")",
    "cat(NROW(x$samples), 'samples\\n')",
    "cat(class(try(stop_profiler(), silent = TRUE)), '\\n')"
  )
  # A limit on the size of files is equivalent to a full disk if its signal is ignored.
  half <- run_r(code, prefix = "trap '' XFSZ; ulimit -f 40;")
  expect_equal(half$status, 0, info = half$output)
  # R cannot write, but does not detect it.
  expect_equal(answer(half, "changed"), c("0", "0"))
  expect_true(any(startsWith(half$output, "incomplete:")), info = half$output)
  expect_true(any(grepl("or the disk was full", half$output)), info = half$output)
  count <- as.numeric(sub(" samples.*", "", grep("^[0-9]+ samples", half$output, value = TRUE)))
  expect_gt(count, 20)
  expect_lt(count, 300)
  # The content of the file can be read.
  expect_gt(nrow(read_quietly(path)$samples), 20)
})
