# tier: gate
# Native code of other processes, which stand still for moments: is everything where it ran, and do the processes
# remain undisturbed?

# A process that runs the workload of the joint profiler's tests.
local_native_process <- function(lib, compile, scenarios = NULL, envir = parent.frame()) {
  folder <- normalizePath(testthat::test_path())
  local_r_process(c(
    sprintf("source('%s')", file.path(folder, c("helper-native.R", "helper-stacks.R", "helper-workload.R"))),
    sprintf("lib <- native_load('%s')", lib$path),
    "invisible(compiler::enableJIT(0))",
    sprintf("workload <- native_workload(lib, compile = %s)", compile),
    "native_work(workload, 0.1)",
    sprintf("scenarios <- %s", if (is.null(scenarios)) "all_scenarios(workload)" else deparse1(scenarios)),
    "work_forever <- function() {",
    "  native_work(workload, 1000, scenarios)",
    "}",
    "ready()",
    "work_forever()"
  ), envir = envir)
}

# Until there are this many samples; on a busy machine a process gets little time.
paused_profile <- function(pid, samples, ...) {
  x <- quietly(profile_process(pid, seconds = 3, interval = 0.004, pause = TRUE, ...))
  for (i in 1:10) {
    if (nrow(x$samples) >= samples) break
    x <- combine_profiles(x, quietly(profile_process(pid, seconds = 3, interval = 0.004, pause = TRUE, ...)))
  }
  x
}

test_that("native functions of another process are below the R functions that called them", {
  skip_without_processes()
  skip_without_joint()
  sums <- 0
  seen <- character()
  for (flags in c("-O2 -g", "-O2")) {
    lib <- native_library(flags)
    for (compile in c(FALSE, TRUE)) {
      info <- paste(flags, if (compile) "compiled" else "interpreted")
      pid <- local_native_process(lib, compile)
      x <- paused_profile(pid, 400)
      tools::pskill(pid, tools::SIGKILL)
      expect_s3_class(validate_profile(x), "profile_data")
      stacks <- profile_stacks(x)
      sums <- sums + expect_entries(stacks, least = 200, info = info)
      seen <- union(seen, unlist(stacks))
    }
  }
  expect_gte(sums[["right"]] / (sums[["right"]] + sums[["missing"]]), 0.99)
  often <- c("c_inner", "c_outer", "c_allocate", "c_sort", "c_compare", "c_spin", "c_kernel", "cpp_inner", "c_eval")
  expect_identical(setdiff(often, seen), character())
})

test_that("where C code has R run byte code, nothing is in a wrong place", {
  skip_without_processes()
  skip_without_joint()
  pid <- local_native_process(native_library(), TRUE, c("bytecode", "evaluated", "forced"))
  found <- native_entries(paused_profile(pid, 100))
  expect_equal(found$wrong, 0, info = paste(found$stacks, collapse = "\n"))
  expect_gte(found$right, 20)
})

test_that("an inlined function is a frame with its file and line, and R's have theirs", {
  skip_without_processes()
  skip_without_joint()
  pid <- local_native_process(native_library(), FALSE, c("plain", "nested"))
  x <- paused_profile(pid, 100)
  functions <- x$functions[match(x$locations$function_id, x$functions$function_id), ]
  kernel <- functions$name %in% "c_kernel"
  expect_true(any(kernel))
  expect_true(all(x$locations$.inlined[kernel]))
  expect_equal(unique(basename(functions$filename[kernel])), "calls.c")
  source <- readLines(test_path("native", "calls.c"))
  # Not where they run themselves, before or after a call.
  calls <- !x$locations$location_id %in% x$sample_locations$location_id[x$sample_locations$depth == 1]
  at <- x$locations$line[calls & functions$name %in% c("c_inner", "e_inner", "c_void", "c_outer")]
  expect_gt(length(at), 0)
  # All functions that they call. R's own take so little time that few runs meet them.
  expect_match(source[unique(at)], "\\b(c_spin|Rf_eval|Rf_lang1|UNPROTECT)\\(")
  expect_setequal(x$locations$.frame_type, c("r", "native"))
  # Of R's functions, this one has source references.
  work <- x$locations[functions$name %in% "work_forever", ]
  expect_identical(unique(work$.frame_type), "r")
  expect_true(all(work$line > 0))
  native <- x$locations$.frame_type == "native"
  expect_true(all(!is.na(x$locations$.address[native])))
  expect_true("native.so" %in% basename(x$.mappings$filename))
})

test_that("libraries that were deleted have names, and those that come and go are in no wrong place", {
  skip_without_processes()
  skip_without_joint()
  dir <- withr::local_tempdir()
  copy <- file.path(dir, "native.so")
  file.copy(native_library()$path, copy)
  pid <- local_native_process(list(path = copy), FALSE, c("plain", "loaded"))
  unlink(copy)
  stacks <- profile_stacks(paused_profile(pid, 200))
  expect_entries(stacks, least = 50)
  expect_true("bs()" %in% unlist(stacks) || "loadNamespace()" %in% unlist(stacks))
})

test_that("a process that sleeps is not woken, and one that is stopped stays so", {
  skip_without_processes()
  result <- withr::local_tempfile()
  pid <- local_r_process(c(
    "ready()",
    "time <- system.time(Sys.sleep(4))[['elapsed']]",
    sprintf("cat(time, '\\n', file = '%s')", result),
    "Sys.sleep(1000)"
  ))
  expect_true(wait_for_state(pid, "sleeping"))
  x <- quietly(profile_process(pid, seconds = 1.5, event = "wall", pause = TRUE))
  expect_gt(nrow(x$samples), 20)
  frames <- as_tibble(x)
  expect_true("Sys.sleep" %in% frames$name)
  tools::pskill(pid, tools::SIGSTOP)
  expect_true(wait_for_state(pid, "stopped"))
  x <- quietly(profile_process(pid, seconds = 0.5, event = "wall", pause = TRUE))
  expect_gt(nrow(x$samples), 5)
  expect_identical(attr(dump_stack(pid), "state"), "stopped")
  tools::pskill(pid, tools::SIGCONT)
  expect_true(wait_for(function() is_written(result)))
  expect_gte(scan(result, quiet = TRUE), 4)
  expect_true(wait_for_state(pid, "sleeping"))
})

test_that("signals reach a process that is stopped again and again", {
  skip_without_processes()
  skip_without_joint()
  dir <- withr::local_tempdir()
  # R's own profiler gets its signals. How many depends on how often the timer meets the process running.
  pid <- local_r_process(c(
    sprintf("path <- '%s'", file.path(dir, "Rprof.out")),
    "Rprof(path, interval = 0.01)",
    "ready()",
    "start <- proc.time()[[1]]",
    "while (sum(proc.time()[1:2]) < start + 2) sort(runif(1e4))",
    "used <- sum(proc.time()[1:2]) - start",
    "Rprof(NULL)",
    sprintf("cat(used, length(readLines(path)) - 1, file = '%s')", file.path(dir, "new")),
    sprintf("file.rename('%s', '%s')", file.path(dir, "new"), file.path(dir, "result"))
  ))
  quietly(profile_process(pid, seconds = 60, interval = 0.001, pause = TRUE))
  expect_true(wait_for(function() file.exists(file.path(dir, "result"))))
  result <- scan(file.path(dir, "result"), quiet = TRUE)
  expect_gt(result[[2]], 20)

  # Children that end are noticed, and Ctrl-C arrives.
  pid <- local_r_process(c(
    "ready()",
    sprintf("tryCatch(repeat { x <- parallel::mclapply(1:2, function(i) i, mc.cores = 2); stopifnot(identical(x, list(1L, 2L))); cat('x', file = '%s', append = TRUE) },", file.path(dir, "count")),
    sprintf("  interrupt = function(e) cat('interrupted', file = '%s'))", file.path(dir, "how"))
  ))
  quietly(profile_process(pid, seconds = 2, interval = 0.001, event = "wall", pause = TRUE))
  expect_gt(file.size(file.path(dir, "count")), 2)
  recorder <- local_r_process(c(
    sprintf(".libPaths(%s)", paste(deparse(.libPaths()), collapse = "")),
    "ready()",
    sprintf("x <- suppressWarnings(profile::profile_process(%d, seconds = 600, interval = 0.001, event = 'wall', pause = TRUE))", pid)
  ))
  Sys.sleep(2)
  tools::pskill(pid, tools::SIGINT)
  expect_true(wait_for(function() is_written(file.path(dir, "how"))))
  expect_identical(readLines(file.path(dir, "how"), warn = FALSE), "interrupted")
})

test_that("a process continues if the one that stops it is killed", {
  skip_without_processes()
  pid <- local_r_process(process_code("lines.R"))
  recorder <- local_r_process(c(
    sprintf(".libPaths(%s)", paste(deparse(.libPaths()), collapse = "")),
    "ready()",
    sprintf("repeat try(profile::profile_process(%d, seconds = 600, interval = 0.001, pause = TRUE))", pid)
  ))
  is_traced <- function() any(grepl("^TracerPid:\t[1-9]", readLines(sprintf("/proc/%d/status", pid))))
  for (i in 1:5000) {
    if (is_traced()) break
  }
  tools::pskill(recorder, tools::SIGKILL)
  expect_true(wait_for(function() !is_traced()))
  before <- kernel_cpu_time(pid)
  expect_true(wait_for(function() kernel_cpu_time(pid) > before))
})

test_that("Ctrl-C ends a recording of native code and returns it", {
  skip_without_processes()
  pid <- local_r_process(process_code("lines.R"))
  result <- withr::local_tempfile()
  recorder <- local_r_process(c(
    sprintf(".libPaths(%s)", paste(deparse(.libPaths()), collapse = "")),
    "library(profile)",
    "ready()",
    sprintf("x <- suppressWarnings(profile_process(%d, seconds = 600, pause = TRUE))", pid),
    sprintf("cat(nrow(x$samples) > 5, nrow(validate_profile(x)$sources), file = '%s')", result)
  ))
  expect_true(wait_for(function() "rust_processes_record" %in% dump_stack(recorder)$name))
  Sys.sleep(3)
  tools::pskill(recorder, tools::SIGINT)
  expect_true(wait_for(function() is_written(result)))
  expect_identical(readLines(result, warn = FALSE), "TRUE 1")
})

test_that("a process that ends while it is stopped again and again has a profile until then", {
  skip_without_processes()
  pid <- local_r_process(c("ready()", "x <- 0", "while (proc.time()[[1]] < 2) x <- x + 1"))
  x <- quietly(profile_process(pid, seconds = 60, interval = 0.001, pause = TRUE))
  expect_gt(nrow(x$samples), 5)
  # Its parent has noticed that it ended.
  expect_true(wait_for(function() !file.exists(sprintf("/proc/%d", pid))))
})

test_that("children of this process that end are still there for whom waits for them", {
  skip_without_processes()
  skip_if_not_installed("parallel")
  job <- parallel::mcparallel({
    while (proc.time()[[1]] < 2) sort(runif(1e4))
    "done"
  })
  x <- quietly(profile_process(job$pid, seconds = 20, interval = 0.001, pause = TRUE))
  expect_identical(parallel::mccollect(job)[[1]], "done")
})

test_that("the error says why a process cannot be stopped", {
  skip_without_processes()
  error <- expect_error(profile_process(Sys.getpid(), pause = TRUE), class = "profile_error_process")
  expect_match(conditionMessage(error), "cannot stop itself")
  expect_snapshot(profile_process(1, pause = NA), error = TRUE)
  skip_if(Sys.which("strace") == "" && Sys.which("gdb") == "", "no other tracer")
  pid <- local_r_process(process_code("lines.R"))
  tracer <- withr::local_tempfile()
  command <- if (Sys.which("strace") != "") {
    sprintf("exec strace -e trace=none -p %d -o /dev/null 2> /dev/null", pid)
  } else {
    sprintf("exec gdb -q -p %d -ex continue > /dev/null 2>&1 < /dev/zero", pid)
  }
  system2("sh", c("-c", shQuote(paste0("echo $$ > ", tracer, "; ", command))), wait = FALSE)
  withr::defer(tools::pskill(pid_in(tracer), tools::SIGKILL))
  for (i in 1:200) {
    if (any(grepl("^TracerPid:\t[1-9]", readLines(sprintf("/proc/%d/status", pid))))) break
    Sys.sleep(0.05)
  }
  error <- expect_error(profile_process(pid, pause = TRUE), class = "profile_error_process")
  expect_match(conditionMessage(error), "because process [0-9]+ \\((strace|gdb)\\) traces it")
})
