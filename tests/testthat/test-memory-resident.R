# tier: gate
# Where the resident memory of a process is: the rows of a snapshot are the sum of smaps.

# The code that loads resident.c.
resident_library <- function() {
  if (!has_compiler("CC")) skip("there is no compiler")
  dir <- built_once("resident", function(dir) {
    file.copy(test_path("processes", "resident.c"), dir)
    withr::local_dir(dir)
    run_tool(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "resident.c"))
  })
  sprintf("dyn.load('%s')", file.path(dir, "resident.so"))
}

# The sum of `Rss` of all parts of the address space, in bytes.
sum_of_smaps <- function(pid) {
  lines <- grep("^Rss:", readLines(sprintf("/proc/%d/smaps", pid)), value = TRUE)
  1024 * sum(as.numeric(gsub("[^0-9]", "", lines)))
}

# A snapshot of a process that waits. Its rows are checked to be the sum of smaps, which the system may change by itself:
# it can drop pages of files.
snapshot_of_waiting <- function(pid) {
  x <- NULL
  is_same <- wait_for(function() {
    before <- sum_of_smaps(pid)
    x <<- snapshot_memory(pid)
    after <- sum_of_smaps(pid)
    before == after && heap_attribute(x, "resident") == before
  }, 60)
  expect_true(is_same)
  expect_resident(x)
  x
}

# The bytes of a row below `not R's heap`, 0 if there is none.
row_of <- function(x, ...) {
  paths <- paths_in(x)
  start <- paste(c("not R's heap", ...), collapse = " > ")
  sum(paths$bytes[startsWith(paste0(paths$path, " > "), paste0(start, " > "))])
}

waits <- c("ready()", "Sys.sleep(1e6)")

# Evaluates code in a fresh process that has the package, and returns the value of the last expression.
in_fresh_r <- function(..., env = "") {
  file <- withr::local_tempfile()
  code <- c(...)
  last <- length(code)
  expect_ran(run_r(c("library(profile)", code[-last], sprintf("saveRDS({%s}, '%s')", code[[last]], file)), env = env))
  readRDS(file)
}

test_that("rows are the resident memory, by what it is", {
  skip_without_snapshots()
  x <- snapshot_of_waiting(local_r_process(c("x <- runif(1e6)", waits)))
  expect_identical(validate_profile(x), x)
  # The code of R and of the C library is mapped, and R runs on a stack.
  paths <- paths_in(x)$path
  expect_true(any(grepl("^not R's heap > libraries > libc[.-].* > code$", paths)))
  expect_gt(row_of(x, "R's stacks"), 0)
  # What is free in another process is unknown.
  expect_gt(row_of(x, "native memory, used or free"), 0)
  expect_identical(row_of(x, "free in malloc"), 0)
  expect_identical(as.list(describe_profile(x))$notes, described_resident(x))
  lines <- format(x, n = Inf)
  expect_match(lines, "^Resident: +[0-9.]+MB: ", all = FALSE)
  expect_length(grep("held by$|globalenv > \\$x", lines), 2)
  expect_no_match(lines, "not R's heap")
  # As a file, and with rows of earlier versions of the package.
  path <- withr::local_tempfile(fileext = ".pb.gz")
  write_profile(x, path)
  expect_identical(holders(read_profile(path)), holders(x))
  old <- models_snapshot()
  expect_identical(resident_facts(old), character())
})

test_that("this session knows what is free", {
  skip_without_snapshots()
  x <- snapshot_memory()
  expect_resident(x)
  expect_identical(row_of(x, "native memory, used or free"), 0)
  expect_gt(row_of(x, "native memory"), 0)
  allocator <- source_attribute(x, "profile.process.allocator")
  if (allocator != "glibc") skip(paste("the allocator is", allocator))
  expect_gte(row_of(x, "free in malloc"), 0)
})

test_that("objects that were never written are no rows", {
  skip_without_snapshots()
  # The result of vapply(), 800 MB, is allocated before the first call.
  code <- "look <- function(i) { %s; stop() }; try(vapply(1:1e8, look, 0), silent = TRUE)"
  pid <- local_r_process(sprintf(code, paste(waits, collapse = ";")))
  outside <- snapshot_of_waiting(pid)
  inside <- in_fresh_r(sprintf(code, "x <<- snapshot_memory()"), "x")
  expect_resident(inside)
  for (x in list(outside, inside)) {
    absent <- heap_attribute(x, "not_resident")
    expect_gt(absent, 7.99e8)
    expect_lt(absent, 8.1e8)
    expect_lt(heap_attribute(x, "resident"), 4e8)
    expect_match(format(x), "^Absent: +76[0-9.]+MB of R's heap: .*never written", all = FALSE)
  }
})

test_that("free memory of malloc is what a trim returns", {
  skip_without_snapshots()
  found <- in_fresh_r(
    resident_library(),
    # Garbage around what is kept, so that the C library cannot return it by itself.
    "x <- lapply(1:1e5, function(i) numeric(600))", "kept <- x[seq(1, 1e5, 50)]", "rm(x)",
    "before <- snapshot_memory()", "invisible(.C('trim'))", "after <- snapshot_memory()", "list(before, after)"
  )
  before <- found[[1]]
  if (source_attribute(before, "profile.process.allocator") != "glibc") skip("the allocator is not glibc's")
  for (x in found) expect_resident(x)
  # All but the 50th part of 480 MB.
  expect_gt(heap_attribute(before, "released"), 4.6e8)
  free <- row_of(before, "free in malloc")
  expect_gt(free, 4e8)
  returned <- heap_attribute(before, "resident") - heap_attribute(found[[2]], "resident")
  # Not the rests of pages.
  expect_gt(returned, 0.8 * free)
  expect_lt(returned, 1.05 * free)
  text <- format(before, width = 1000)
  expect_match(text, "^Released: +4[0-9.]+MB by the collection that this snapshot made", all = FALSE)
  expect_match(text, "^Hint: +malloc_trim\\(\\)", all = FALSE)
  expect_no_match(format(found[[2]], width = 1000), "^Hint")
})

test_that("threads, native memory and shared memory have rows", {
  skip_without_snapshots()
  code <- c(
    resident_library(), "invisible(.C('start_threads', 16L))", "invisible(.C('allocate', 40000000L))",
    "invisible(.C('share', 20000000L))"
  )
  outside <- snapshot_of_waiting(local_r_process(c(code, waits)))
  inside <- in_fresh_r(code, "snapshot_memory()")
  expect_resident(inside)
  for (x in list(outside, inside)) {
    stacks <- row_of(x, "stacks of threads")
    expect_gte(stacks, 16 * 256 * 1024)
    expect_lt(stacks, 16 * 512 * 1024)
    shared <- row_of(x, "shared memory")
    expect_gte(shared, 2e7)
    expect_lt(shared, 2.1e7)
  }
  # The 40 MB, and 1 MB of each thread.
  expect_gt(row_of(inside, "native memory"), 5.6e7)
  expect_gt(row_of(outside, "native memory, used or free"), 5.6e7)
})

test_that("a fork shares its memory", {
  skip_without_snapshots()
  file <- withr::local_tempfile()
  local_r_process(c(
    "x <- runif(1e7)", sprintf("job <- parallel::mcparallel({ writeLines(as.character(Sys.getpid()), '%s.new')", file),
    sprintf("file.rename('%s.new', '%s'); Sys.sleep(1e6) })", file, file), sprintf("while (!file.exists('%s')) Sys.sleep(0.01)", file),
    waits
  ))
  child <- as.integer(readLines(file))
  withr::defer(tools::pskill(child, tools::SIGKILL))
  x <- snapshot_of_waiting(child)
  expect_gt(heap_attribute(x, "with_others"), 8e7)
  expect_match(paste(format(x, width = 1000), collapse = "\n"), "; [0-9.]+MB of it shared with other processes")
})

test_that("memory of another allocator is not split", {
  skip_without_snapshots()
  library <- Sys.glob(c("/usr/lib/*/libjemalloc.so.2", "/usr/lib64/libjemalloc.so.2"))
  if (length(library) == 0) skip("libjemalloc is not installed")
  x <- in_fresh_r("x <- runif(1e6)", "snapshot_memory()", env = paste0("env LD_PRELOAD=", library[[1]]))
  expect_resident(x)
  expect_identical(source_attribute(x, "profile.process.allocator"), "libjemalloc.so.2")
  expect_identical(row_of(x, "free in malloc"), 0)
  expect_gt(row_of(x, "native memory, used or free"), 0)
  expect_match(format(x, width = 1000), "; allocator: libjemalloc.so.2, not split$", all = FALSE)
})

test_that("pools of packages have rows by their own figures", {
  skip_without_snapshots()
  for (allocator in c("mimalloc", "system")) {
    pools <- list(package = "arrow", allocator = allocator, bytes = 1e5)
    x <- new_profile_data(rust(rust_own_heap(numeric(), numeric(), pools, FALSE), NULL), "2.0")
    expect_resident(x)
    expect_identical(row_of(x, "pool of arrow", allocator), 1e5)
  }
  skip_if_not_installed("arrow")
  bytes <- in_fresh_r(
    "x <- arrow::Array$create(runif(1e6))$cast(arrow::float32())", "s <- snapshot_memory()",
    "list(s, arrow::default_memory_pool()$bytes_allocated)"
  )
  expect_resident(bytes[[1]])
  expect_gt(row_of(bytes[[1]], "pool of arrow"), 0)
  expect_lte(row_of(bytes[[1]], "pool of arrow"), bytes[[2]])
})
