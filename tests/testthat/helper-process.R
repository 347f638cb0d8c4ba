# R processes that tests inspect. They stop at known places, and tests wait for events: a process has a certain stack,
# is recorded by another process, or has ended.

skip_without_processes <- function() {
  testthat::skip_on_cran()
  if (!is_live_platform()) {
    testthat::skip(paste("other processes can be looked into only on", live_platforms()))
  }
}

skip_without_snapshots <- function() {
  skip_without_processes()
  if (getRversion() < "4.2") skip("snapshots need R 4.2")
}

# The code in a file of processes/.
process_code <- function(name) readLines(testthat::test_path("processes", name))

# Code of a process that uses this version of the package.
with_package <- function(...) {
  c(sprintf(".libPaths(%s)", paste(deparse(.libPaths()), collapse = "")), "library(profile)", ...)
}

# Starts a process that runs code, and returns its id when the code has called `ready()`. It ends with the test.
# `host`: a program that runs R in place of Rscript.
local_r_process <- function(code, limits = "true", options = "", host = NULL, envir = parent.frame()) {
  dir <- withr::local_tempdir(.local_envir = envir)
  at <- function(name) file.path(dir, name)
  writeLines(c(
    "ready <- function() {",
    sprintf("  writeLines(as.character(Sys.getpid()), '%s')", at("new")),
    sprintf("  invisible(file.rename('%s', '%s'))", at("new"), at("pid")),
    "}"
  ), at("ready.R"))
  writeLines(code, at("code.R"))
  expression <- sprintf("source('%s'); source('%s', keep.source = TRUE)", at("ready.R"), at("code.R"))
  writeLines(expression, at("main.R"))
  program <- if (is.null(host)) {
    paste(shQuote(file.path(R.home("bin"), "Rscript")), options, "-e", shQuote(expression))
  } else {
    paste(shQuote(c(host, R.home(), at("main.R"))), collapse = " ")
  }
  command <- sprintf(
    "%s echo $$ > %s; %s; exec %s %s > %s 2>&1", end_with_us(), at("started"), limits, with_ctrl_c(), program,
    shQuote(at("output"))
  )
  system2("sh", c("-c", shQuote(command)), wait = FALSE)
  started <- pid_in(at("started"))
  wait_for(function() file.exists(at("pid")) || has_ended(started))
  if (!file.exists(at("pid"))) {
    stop("The process did not start: ", last_lines(readLines(at("output"))))
  }
  pid <- as.integer(readLines(at("pid")))
  withr::defer(tools::pskill(pid, tools::SIGKILL), envir)
  pid
}

# A program that runs R in a thread other than its first one (native/host.c).
threaded_host <- function() {
  if (!has_compiler("CC")) testthat::skip("there is no compiler")
  if (!file.exists(file.path(R.home("lib"), "libR.so"))) testthat::skip("this R cannot be embedded: it has no libR.so")
  dir <- built_once("host", function(dir) {
    r <- file.path(R.home("bin"), "R")
    compiler <- system2(r, c("CMD", "config", "CC"), stdout = TRUE)
    source <- normalizePath(testthat::test_path("native", "host.c"))
    command <- paste(compiler[[1]], "-o", shQuote(file.path(dir, "host")), shQuote(source), "-lpthread -ldl")
    run_tool("sh", c("-c", shQuote(command)))
  })
  file.path(dir, "host")
}

# Code of a process that stays forever in Sys.sleep(), which `nap()` calls in line 3, and `f()` by its argument in line
# 6.
sleeping_code <- c(
  "nap <- function() {",
  "  ready()",
  "  Sys.sleep(1e6)",
  "}",
  "f <- function(x) {",
  "  force(x)",
  "}",
  "",
  "f(nap())"
)
sleeping_stack <- c("Sys.sleep", "nap", "force", "f")

# Shells start background programs with SIGINT ignored, and R 4.6 and later keeps it ignored.
with_ctrl_c <- function() {
  has_option <- suppressWarnings(system2("env", c("--default-signal=INT", "true"), stdout = FALSE, stderr = FALSE)) == 0
  if (has_option) "env --default-signal=INT" else ""
}

# Waits for the process id that a shell writes to a file.
pid_in <- function(path) {
  expect_true(wait_for(function() file.exists(path) && length(readLines(path)) == 1))
  as.integer(readLines(path))
}

# Waits until a process has this state.
wait_for_state <- function(pid, state) {
  wait_for(function() identical(attr(dump_stack(pid), "state"), state))
}

# Stops a process, repeatedly if other programs let it continue.
stop_process <- function(pid) {
  wait_for(function() {
    tools::pskill(pid, tools::SIGSTOP)
    identical(attr(dump_stack(pid), "state"), "stopped")
  })
}

# Waits until a process has these functions, innermost first, and this state. Returns the stack.
wait_for_stack <- function(pid, names, state = "sleeping") {
  x <- NULL
  has_come <- wait_for(function() {
    x <<- dump_stack(pid)
    identical(utils::head(x$name, length(names)), names) && attr(x, "state") == state
  })
  testthat::expect(has_come, paste0("The process is ", attr(x, "state"), " in ", paste(x$name, collapse = ", ")))
  x
}

# Records a process repeatedly until the profile fulfils a condition; by default, until it has a sample.
profile_until <- function(pid, condition = function(x) nrow(x$samples) > 0, ..., seconds = 0.2) {
  x <- NULL
  has_come <- wait_for(function() {
    x <<- quietly(profile_process(pid, seconds = seconds, ...))
    condition(x)
  })
  testthat::expect(has_come, paste(c("The last profile:", utils::capture.output(print(summary(x)))), collapse = "\n"))
  testthat::expect_s3_class(validate_profile(x), "profile_data")
  x
}

# The functions of the samples, innermost first.
functions_of_samples <- function(x) {
  frames <- as_tibble(x)
  unname(split(frames$name, factor(frames$sample_id, x$samples$sample_id)))
}

# Whether a process records another one: if so, it keeps a file open that contains the state of the other process.
is_recorded <- function(pid, by) {
  files <- Sys.readlink(list.files(sprintf("/proc/%d/fd", by), full.names = TRUE))
  sprintf("/proc/%d/task/%d/stat", pid, pid) %in% files
}

# Evaluates shell code as soon as this process records another one. This process waits for the recording meanwhile.
when_recorded <- function(pid, code) {
  files <- sprintf("ls -l /proc/%d/fd 2> /dev/null", Sys.getpid())
  command <- sprintf(
    "while kill -0 %d; do if %s | grep -q /proc/%d/task/%d/stat; then %s; break; fi; sleep 0.01; done",
    Sys.getpid(), files, pid, pid, code
  )
  system2("sh", c("-c", shQuote(command)), wait = FALSE, stderr = FALSE)
}

# The number of times that the threads of a process have waited.
waits_of <- function(pid) {
  status <- lapply(list.files(sprintf("/proc/%d/task", pid), full.names = TRUE), function(task) {
    suppressWarnings(tryCatch(readLines(file.path(task, "status")), error = function(error) character()))
  })
  lines <- grep("^voluntary_ctxt_switches:", unlist(status), value = TRUE)
  sum(as.numeric(sub(".*:", "", lines)))
}

# The CPU time of a process in nanoseconds, by the kernel.
kernel_cpu_time <- function(pid) {
  as.numeric(strsplit(readLines(sprintf("/proc/%d/task/%d/schedstat", pid, pid)), " ")[[1]][[1]])
}

has_ended <- function(pid) {
  status <- suppressWarnings(tryCatch(readLines(sprintf("/proc/%d/stat", pid)), error = function(error) ") Z"))
  # The last thread that ends releases the locks of the process.
  grepl("\\) [ZX]", status[[1]]) && length(dir(sprintf("/proc/%d/task", pid))) <= 1
}

# Whether a debugger or a profiler currently traces a process.
is_traced <- function(pid) {
  any(grepl("^TracerPid:\t[1-9]", readLines(sprintf("/proc/%d/status", pid))))
}

# A process that runs the workload of the tests of native code.
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

# Checks that a recording has the CPU times that its attributes state: the same for each tick at which the process was
# running, and none for others. Samples may be sums.
expect_cpu_times <- function(x) {
  attributes <- x[[".source_attributes"]]
  number <- function(key) as.numeric(attributes$value[attributes$key == key])
  values <- x$sample_values[x$sample_values$type == "cpu", ]
  # Values are rounded to nanoseconds.
  ticks <- values$value / (x$sources$.period * number("profile.cpu.factor"))
  testthat::expect_equal(ticks, round(ticks), tolerance = 1e-6)
  testthat::expect_equal(sum(ticks), number("profile.cpu.ticks"), tolerance = 1e-6)
  states <- x[[".labels"]][x[[".labels"]]$key == "state", ]
  testthat::expect_setequal(states$sample_id[states$str == "running"], values$sample_id[ticks > 0])
}
