# tier: gate
# The CPU time of threads other than R's. What readings add up to, how threads are found in the memory of a process, and
# which library they belong to, is tested in Rust (src/rust/reader/src/record/threads, src/rust/reader/tests/reader/threads.rs).

# Threads of native/pool.c, whose library is where R installs that of a package `pool`. It does not remain loaded.
local_pool <- function(envir = parent.frame()) {
  dll <- dyn.load(pool_path())
  withr::defer(dyn.unload(dll[["path"]]), envir)
  of <- function(name) getNativeSymbolInfo(name, dll)$address
  list(start = of("pool_start"), wait = of("pool_wait"), end = of("pool_end"))
}

pool_path <- function() {
  skip_without_processes()
  if (!has_compiler("CC")) skip("there is no C compiler")
  dir <- built_once("threads", function(dir) {
    libs <- file.path(dir, "pool", "libs")
    dir.create(libs, recursive = TRUE)
    file.copy(test_path("native", "pool.c"), libs)
    withr::local_dir(libs)
    withr::local_envvar(PKG_LIBS = "-lpthread")
    run_tool(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "-o", "pool.so", "pool.c"))
  })
  file.path(dir, "pool", "libs", "pool.so")
}

task_file <- function(pid, id, name) readLines(sprintf("/proc/%d/task/%d/%s", pid, id, name))

# The CPU time of threads that the system knows, in clock ticks, each rounded down, as seconds.
ticks_of <- function(pid, ids) {
  fields <- lapply(ids, function(id) strsplit(sub("^.*[)] ", "", task_file(pid, id, "stat")), " ", fixed = TRUE)[[1]])
  sum(vapply(fields, function(fields) sum(as.numeric(fields[12:13])), 0)) * clock_tick()
}
clock_tick <- function() 1 / as.numeric(system2("getconf", "CLK_TCK", stdout = TRUE))

# Waits until threads sleep.
wait_for_sleep <- function(pid, ids) {
  is_asleep <- function(id) grepl("[)] S ", task_file(pid, id, "stat"))
  wait_for(function() all(vapply(ids, is_asleep, NA)))
}

cpu_of <- function(x, library) {
  threads <- attr(summary(x), "threads")
  sum(threads$cpu[threads$library %in% library])
}

test_that("threads have the times of the system, and the name of their package", {
  pool <- local_pool()
  withr::defer(.Call(pool$end))
  ids <- NULL
  x <- record_profile({
    .Call(pool$start, 3L, 0.2)
    ids <- .Call(pool$wait)
    wait_for_sleep(Sys.getpid(), ids)
  })
  threads <- attr(summary(x), "threads")
  row <- which(threads$library == "pool")
  expect_identical(threads$threads[row], 3L)
  # Utime and stime of each thread are rounded down.
  expect_lte(abs(threads$cpu[row] - ticks_of(Sys.getpid(), ids)), 2 * 3 * clock_tick())
  expect_gte(threads$cpu[row], 0.6)
  expect_gte(attr(summary(x), "processors"), 1 / 100)
  text <- paste("Threads:   3 threads of pool used", format_seconds(threads$cpu[row]))
  expect_match(format(describe_profile(x), width = 200), text, fixed = TRUE, all = FALSE)
  expect_match(format(summary(x), width = 200), text, fixed = TRUE, all = FALSE)
  # Files keep this.
  for (extension in c(".pb.gz", ".otlp")) {
    path <- withr::local_tempfile(fileext = extension)
    write_profile(x, path)
    y <- summary(read_profile(path))
    expect_equal(attr(y, "threads"), threads)
    expect_identical(attr(y, "processors"), attr(summary(x), "processors"))
  }
})

test_that("time of threads that have ended is not lost", {
  pool <- local_pool()
  before <- sum(proc.time()[1:2])
  x <- record_profile({
    .Call(pool$start, 2L, 0.3)
    .Call(pool$wait)
    .Call(pool$end)
  })
  # They were read or not while they worked. The system's times of threads that run are up to a tick old. They use 0.3 s by
  # their own clocks, and the process has used no less than they have.
  expect_gte(cpu_of(x, c("pool", NA)), 0.6 - 10 * 0.01)
  expect_lte(cpu_of(x, c("pool", NA)), sum(proc.time()[1:2]) - before + 2 * clock_tick())
})

test_that("threads that have used nothing are not mentioned", {
  pool <- local_pool()
  withr::defer(.Call(pool$end))
  .Call(pool$start, 1L, 0.1)
  .Call(pool$wait)
  x <- record_profile(busy_loop(1e5))
  expect_false("pool" %in% attr(summary(x), "threads")$library)
})

test_that("threads of other processes are named", {
  code <- c(
    sprintf("dll <- dyn.load('%s')", pool_path()),
    ".Call(getNativeSymbolInfo('pool_start', dll)$address, 2L, 1e6)",
    "f <- function() repeat runif(1e4)",
    "ready()",
    "f()"
  )
  pid <- local_r_process(code)
  x <- profile_until(pid, function(x) cpu_of(x, "pool") > 0)
  threads <- attr(summary(x), "threads")
  expect_lte(threads$threads[threads$library %in% "pool"], 2L)
  ids <- as.integer(list.files(sprintf("/proc/%d/task", pid)))
  expect_lte(sum(threads$cpu), ticks_of(pid, ids) + 2 * clock_tick() * length(ids))
})

test_that("the agent has the times of their threads", {
  pool <- local_pool()
  withr::defer(.Call(pool$end))
  folder <- withr::local_tempdir()
  local_agent(folder, every = 3600)
  .Call(pool$start, 2L, 0.2)
  ids <- .Call(pool$wait)
  wait_for_sleep(Sys.getpid(), ids)
  work_until_taken(1)
  stop_agent()
  x <- read_pprof(dir(folder, full.names = TRUE))
  expect_lte(abs(cpu_of(x, "pool") - ticks_of(Sys.getpid(), ids)), 2 * 2 * clock_tick())
})

test_that("scripts and children have the times of their threads", {
  file <- script(
    sprintf("dll <- dyn.load('%s')", pool_path()),
    "of <- function(name) getNativeSymbolInfo(name, dll)$address",
    "invisible(.Call(of('pool_start'), 2L, 1))",
    "invisible(.Call(of('pool_wait')))"
  )
  output <- withr::local_tempfile(fileext = ".pb.gz")
  for (options in list(character(), "--children")) {
    before <- sum(proc.time()[4:5])
    ran <- run_program("record", options, "--quiet", "-o", output, file)
    expect_identical(ran$status, 0L)
    x <- read_profile(output)
    # Those that had not been read when the process ended have no name.
    expect_gt(cpu_of(x, c("pool", NA)), if (length(options) > 0) 0 else 1.9)
    expect_lte(cpu_of(x, c("pool", NA)), sum(proc.time()[4:5]) - before + 2 * clock_tick())
  }
})

test_that("the text says who used the processors, and how many there are", {
  threads <- tibble::tibble(
    library = c("R", "libopenblas", "libgomp (data.table)", NA), threads = c(NA, 31L, 1L, NA),
    cpu = c(12.04, 240.2, 3.1234, 0.5)
  )
  expect_identical(
    threads_text(threads, 4),
    paste(
      "31 threads of libopenblas used 240 s, 1 thread of libgomp (data.table) 3.12 s, threads that ended 0.5 s, R's own 12 s;",
      "4 processors are allowed."
    )
  )
  expect_identical(threads_text(threads[c(1, 4), ], 0.5), "threads that ended used 0.5 s, R's own 12 s; 0.5 processors are allowed.")
  expect_identical(threads_text(threads[c(1, 3), ], 1), "1 thread of libgomp (data.table) used 3.12 s, R's own 12 s; 1 processor is allowed.")
  expect_identical(threads_text(threads[1:2, ], NULL), "31 threads of libopenblas used 240 s, R's own 12 s.")
})
