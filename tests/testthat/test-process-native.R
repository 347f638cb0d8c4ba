# tier: gate
# Native code of other processes, which are stopped briefly: each frame is in its place, and the processes are not
# disturbed. Pauses and signals are also tested in Rust (src/rust/reader/src/linux/pause.rs).

# A process that waits in a native function. R code has called it, and another native function has R evaluate this R
# code. `flags` are flags of the compiler; without -g, only the names of exported functions remain.
local_waiting_process <- function(flags, compile, envir = parent.frame()) {
  path <- built_once(paste0("wait", gsub("[^a-z0-9]", "", flags)), function(dir) {
    file.copy(testthat::test_path("native", "wait.c"), dir)
    writeLines(paste("CFLAGS =", flags), file.path(dir, "Makevars.user"))
    withr::local_dir(dir)
    withr::local_envvar(R_MAKEVARS_USER = file.path(dir, "Makevars.user"))
    run_tool(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "-o", "wait.so", "wait.c"))
    if (!grepl("-g", flags)) run_tool("strip", c("--strip-all", "wait.so"))
  })
  copy <- withr::local_tempfile(fileext = ".so", .local_envir = envir)
  file.copy(file.path(path, "wait.so"), copy)
  pid <- local_r_process(c(
    sprintf("dll <- dyn.load('%s')", copy),
    "wait_here <- dll$wait_here",
    "wait_in_r <- dll$wait_in_r",
    "inner <- function() {",
    "  .Call(wait_here)",
    "}",
    "outer <- function() {",
    "  .Call(wait_in_r, quote(inner()), environment())",
    "}",
    if (compile) "for (name in c('inner', 'outer')) assign(name, compiler::cmpfun(get(name)))",
    "ready()",
    "outer()"
  ), envir = envir)
  wait_for_stack(pid, c(".Call", "inner", ".Call", "outer"))
  # Files of libraries may be replaced while they are in use.
  unlink(copy)
  pid
}

test_that("native functions of another process are between the R functions that call them", {
  skip_without_processes()
  skip_without_native()
  for (flags in c("-O2 -g", "-O2")) {
    for (compile in c(FALSE, TRUE)) {
      info <- paste(flags, if (compile) "compiled" else "interpreted")
      pid <- local_waiting_process(flags, compile)
      x <- profile_until(pid, clock = "wall", native = TRUE)
      stacks <- unique(profile_stacks(x))
      expect_length(stacks, 1)
      of_system <- grepl("pause|^libR:|^__", stacks[[1]])
      ours <- stacks[[1]][!of_system]
      from <- match("outer()", ours)
      inlined <- if (flags == "-O2 -g") "wait_inlined"
      expect_identical(
        ours[from:length(ours)], c("outer()", "wait_in_r", "inner()", "wait_here", inlined), info = info
      )
      expect_true(any(grepl("pause", stacks[[1]])), info = info)

      functions <- x$functions[match(x$locations$function_id, x$functions$function_id), ]
      line <- function(name) x$locations$line[functions$name %in% name]
      expect_identical(line("inner"), 5L, info = info)
      expect_identical(line("outer"), 8L, info = info)
      if (flags == "-O2 -g") {
        code <- readLines(test_path("native", "wait.c"))
        expect_match(code[line("wait_inlined")], "pause()", fixed = TRUE)
        expect_match(code[line("wait_here")], "wait_inlined()", fixed = TRUE)
        expect_match(code[line("wait_in_r")], "Rf_eval(call, env)", fixed = TRUE)
        is_inlined <- functions$name %in% "wait_inlined"
        expect_identical(unique(basename(functions$filename[is_inlined])), "wait.c")
        expect_identical(unique(x$locations$.inlined[is_inlined]), TRUE)
      }
      native <- x$locations$.frame_type == "native"
      expect_setequal(x$locations$.frame_type, c("r", "native"))
      expect_true(all(!is.na(x$locations$.address[native])))
    }
  }
})

test_that("copies of another process are frames of their own", {
  skip_without_processes()
  skip_without_native()
  pid <- local_r_process(c(
    "data <- as.numeric(seq_len(1e7))",
    "copies <- function(x) {",
    "  y <- x",
    "  y[1] <- 1",
    "}",
    "ready()",
    "repeat copies(data)"
  ))
  with_copies <- function(x) Filter(function(stack) "<copy>" %in% stack, profile_stacks(x))
  x <- profile_until(pid, function(x) length(with_copies(x)) > 0, interval = 0.005, native = TRUE)
  expect_none_wrong(x)
  for (stack in with_copies(x)) expect_equal(utils::tail(stack, 2), c("copies()", "<copy>"))
})

test_that("a process that runs native code is recorded", {
  skip_without_processes()
  skip_without_native()
  pid <- local_native_process(native_library(), FALSE, c("plain", "nested", "forced"))
  found <- NULL
  before <- kernel_cpu_time(pid)
  x <- profile_until(pid, function(x) (found <<- native_entries(x))$right > 0, interval = 0.004, native = TRUE)
  used <- kernel_cpu_time(pid) - before
  expect_equal(found$wrong, 0, info = paste(found$stacks, collapse = "\n"))
  values <- x$sample_values
  expect_identical(unname(c(table(values$type))), rep(nrow(x$samples), 2))
  expect_lte(sum(values$value[values$type == "cpu"]), used)
  expect_true("native.so" %in% basename(x$.mappings$filename))
})

test_that("a process that sleeps is not woken, and one that is stopped stays so", {
  skip_without_processes()
  log <- withr::local_tempfile()
  pid <- local_r_process(c(
    "nap <- function() Sys.sleep(0.05)",
    "ready()",
    "repeat {",
    "  time <- system.time(nap())[['elapsed']]",
    sprintf("  cat(time, '\\n', file = '%s', append = TRUE)", log),
    "}"
  ))
  naps <- function() if (is_written(log)) scan(log, quiet = TRUE) else numeric()
  profile_until(pid, function(x) "Sys.sleep" %in% x$functions$name, interval = 0.001, clock = "wall", native = TRUE)
  expect_true(wait_for(function() length(naps()) > 3))
  # The last line may be incomplete, and the clock has a resolution of milliseconds.
  expect_gte(min(utils::head(naps(), -1)), 0.049)

  # The process runs no code between the pauses. Other programs may let it continue, but not each time.
  expect_true(wait_for(function() {
    stop_process(pid)
    count <- length(naps())
    profile_until(pid, clock = "wall", native = TRUE)
    # After the last pause, it takes a moment until it is scheduled, and stops again.
    wait_for(function() attr(dump_stack(pid), "state") == "stopped", 10) && length(naps()) == count
  }))
  count <- length(naps())
  tools::pskill(pid, tools::SIGCONT)
  expect_true(wait_for(function() length(naps()) > count + 1))
})

test_that("signals reach a process that is stopped again and again", {
  skip_without_processes()
  skip_if_not_installed("parallel")
  dir <- withr::local_tempdir()
  at <- function(name) file.path(dir, name)
  # The process detects children that end, while R's own profiler gets its signals. It ends when its work is done.
  pid <- local_r_process(c(
    sprintf("Rprof('%s', interval = 0.01)", at("Rprof.out")),
    "ready()",
    "for (i in 1:20) stopifnot(identical(parallel::mclapply(1:2, identity, mc.cores = 2), list(1L, 2L)))",
    "Rprof(NULL)",
    sprintf("cat('done', file = '%s')", at("result"))
  ))
  # It may have ended before the recording begins, if this process was kept waiting.
  tryCatch(
    quietly(profile_process(pid, seconds = Inf, interval = 0.001, clock = "wall", native = TRUE)),
    profile_error_process = function(error) expect_true(has_ended(pid))
  )
  expect_true(wait_for(function() is_written(at("result")) || has_ended(pid)))
  expect_identical(readLines(at("result"), warn = FALSE), "done")

  # Ctrl-C arrives during a recording.
  pid <- local_r_process(c(
    "tryCatch(",
    "  { ready(); Sys.sleep(1e6) },",
    sprintf("  interrupt = function(e) cat('interrupted', file = '%s')", at("how")),
    ")"
  ))
  wait_for_stack(pid, "Sys.sleep")
  when_recorded(pid, paste("kill -INT", pid))
  x <- quietly(profile_process(pid, seconds = Inf, interval = 0.001, clock = "wall", native = TRUE))
  expect_s3_class(validate_profile(x), "profile_data")
  expect_identical(readLines(at("how"), warn = FALSE), "interrupted")
  # Its parent has detected its end.
  expect_true(wait_for(function() has_ended(pid)))
})

test_that("a process continues if the one that stops it is killed", {
  skip_without_processes()
  pid <- local_r_process(process_code("lines.R"))
  recorder <- local_r_process(with_package(
    "ready()",
    sprintf("repeat try(profile_process(%d, seconds = 1e6, interval = 0.001, native = TRUE))", pid)
  ))
  expect_true(wait_for(function() any(vapply(1:200, function(i) is_traced(pid), NA))))
  tools::pskill(recorder, tools::SIGKILL)
  expect_true(wait_for(function() has_ended(recorder) && !is_traced(pid)))
  before <- kernel_cpu_time(pid)
  expect_true(wait_for(function() kernel_cpu_time(pid) > before))
})

test_that("children of this process are left to whom waits for them", {
  skip_without_processes()
  skip_if_not_installed("parallel")
  go <- withr::local_tempfile()
  job <- parallel::mcparallel({
    while (!file.exists(go)) Sys.sleep(0.01)
    "done"
  })
  x <- profile_until(job$pid, clock = "wall", native = TRUE)
  file.create(go)
  expect_identical(parallel::mccollect(job)[[1]], "done")
})

test_that("the error says why a process cannot be stopped", {
  skip_without_processes()
  error <- expect_error(profile_process(Sys.getpid(), native = TRUE), class = "profile_error_process")
  expect_match(conditionMessage(error), "cannot stop itself")
  expect_snapshot(profile_process(1, native = NA), error = TRUE)
})
