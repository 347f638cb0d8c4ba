# tier: gate
# Snapshots of the heap of R. The truth is what R's garbage collector counts and frees.

test_that("a snapshot has all objects and all memory of the process", {
  skip_without_processes()
  # In a fresh process, so that the objects of R itself are the only ones.
  file <- withr::local_tempfile()
  expect_ran(run_r(c(
    "library(profile)",
    "for (i in 1:2) { gc(); counts <- gc(); x <- snapshot_memory(gc = FALSE) }",
    sprintf("saveRDS(list(x = x, counts = counts), '%s')", file)
  )))
  result <- readRDS(file)
  x <- result$x
  expect_identical(validate_profile(x), x)
  paths <- paths_in(x)
  cells <- result$counts["Ncells", 1]
  expect_lt(abs(sum(paths$objects) / cells - 1), 0.001)
  expect_equal(sum(paths$objects), heap_attribute(x, "objects"))
  expect_lt(abs(heap_attribute(x, "data") / 8 / result$counts["Vcells", 1] - 1), 0.005)
  expect_resident(x)
  unheld <- sum(paths$bytes[grepl("^garbage", paths$path)])
  expect_equal(unheld, heap_attribute(x, "unheld"))
  expect_lt(unheld, 0.005 * heap_attribute(x, "used"))
  expect_lte(max(x$sample_locations$depth), 60)
  expect_lt(nrow(x$locations), 5000)
  expect_setequal(x$locations$.frame_type, data_model()$heap_frames$frame_type)
})

test_that("sizes are the least if the allocator is unknown", {
  skip_without_snapshots()
  x <- snapshot_memory()
  expect_no_match(format(x), "Size: +at least")
  x$.source_attributes$key[x$.source_attributes$key == "profile.heap.free"] <- "profile.heap.unchecked"
  expect_match(format(x), "Size: +at least [0-9.]+MB", all = FALSE)
})

test_that("planted leaks are named, and retain exactly what the garbage collector frees without them", {
  skip_without_processes()
  result <- run_r(process_code("retained.R"))
  expect_ran(result)
  found <- strsplit(sub("^kind ", "", grep("^kind ", result$output, value = TRUE)), " ")
  numbers <- vapply(found, function(fields) as.numeric(fields[2:6]), numeric(5))
  dimnames(numbers) <- list(
    c("objects", "freed", "bytes", "freed_bytes", "finalizers"), vapply(found, `[[`, "", 1)
  )
  # The first lines are `nothing`.
  found <- found[-(1:3)]
  numbers <- numbers[, -(1:3)]
  # Without the packages.
  expect_gte(ncol(numbers), 34)
  x <- as.data.frame(t(numbers))
  # A finalizer goes with its object. It is a weak reference and a function, or the address of one, in a list of R,
  # which is a root of its own.
  x$freed <- x$freed - 2 * x$finalizers
  x$freed_bytes <- x$freed_bytes - 136 * x$finalizers
  # What R lists goes with the cell of the list, which refers to it.
  listed <- c("option", "callback", "connection", "device")
  x[listed, "freed"] <- x[listed, "freed"] - 1
  x[listed, "freed_bytes"] <- x[listed, "freed_bytes"] - 56
  expect_identical(x$objects, x$freed, info = paste(result$output, collapse = "\n"))
  # Objects with their own implementation (ALTREP), such as `1:n`, are vectors for R's counts, but have no header of
  # one.
  difference <- x$bytes - x$freed_bytes
  expect_true(all(difference >= 0 & difference %% 8 == 0 & difference < 0.001 * x$bytes))
  plain <- c("vector", "closure", "linked", "strings", "table", "compiled", "finalized", "reference", "option")
  expect_identical(difference[match(plain, rownames(x))], rep(0, length(plain)))
  # The comparison of two snapshots names all of them, and nothing else.
  names <- vapply(found, function(fields) paste(fields[-(1:6)], collapse = " "), "")
  expect_false(any(names %in% c("", "NA")))
  expect_identical(grep("^not planted", result$output, value = TRUE), character())
  missing <- trimws(sub("^missing:", "", grep("^missing:", result$output, value = TRUE)))
  if (missing != "") skip(paste("objects of packages that are not installed:", missing))
})

test_that("what several hold is marked", {
  skip_without_processes()
  result <- run_r(c(
    "library(profile)", "one <- list(shared = runif(1e6))", "two <- one", "two$more <- 1",
    "x <- snapshot_memory()", "print(holders(x, 20))"
  ))
  expect_ran(result)
  expect_match(result$output, "globalenv > \\$(one|two) \\$shared \\[shared\\]", all = FALSE)
})

test_that("attached objects are roots of their own", {
  skip_without_processes()
  result <- run_r(c(
    "library(profile)", "attach(list(data = runif(1e6)), name = 'mine')", "print(holders(snapshot_memory(), 10))"
  ))
  expect_ran(result)
  expect_match(result$output, "attached mine > $data", fixed = TRUE, all = FALSE)
})

test_that("what is registered with R has the name of what it is registered as", {
  skip_without_processes()
  code <- c(
    "invisible(addTaskCallback(local({ big <- runif(1e6); function(...) { force(big); TRUE } })))",
    "invisible(addTaskCallback(function(...) TRUE, data = runif(1e6), name = 'my callback'))",
    # Connections whose content only R knows, and one whose content is a variable.
    "bytes <- rawConnection(raw(), 'w'); writeBin(raw(5e6), bytes)",
    "lines <- textConnection(NULL, 'w'); writeLines(rep('a', 5000), lines)",
    "named <- textConnection('variable', 'w'); writeLines(rep('a', 1000), named)"
  )
  expected <- c(
    "task callback 1 > [[*]]() > closure env > $big > numeric", "task callback my callback > [[*]] > numeric",
    "connection N <rawConnection> > raw", "connection N <textConnection> > character",
    "globalenv > $variable > character"
  )
  bytes_of <- function(x) {
    paths <- paths_in(x)
    paths$bytes[match(expected, sub("^connection [0-9]+", "connection N", paths$path))]
  }
  pid <- local_r_process(c(code, sleeping_code))
  expect_right_bytes <- function(x) {
    bytes <- bytes_of(x)
    expect_equal(bytes[c(1, 2, 4, 5)], 48 + 8 * c(1e6, 1e6, 5000, 1000))
    # R doubles the buffer of a raw connection when it is full.
    expect_gte(bytes[[3]], 5e6)
    expect_lt(bytes[[3]], 1.1e7)
  }
  expect_right_bytes(snapshot_memory(pid))
  file <- withr::local_tempfile()
  expect_ran(run_r(c("library(profile)", code, sprintf("saveRDS(snapshot_memory(), '%s')", file))))
  expect_right_bytes(readRDS(file))
})

test_that("another process is stopped and read, and goes on", {
  skip_without_processes()
  pid <- local_r_process(c("fits <- list(a = runif(1e6), b = as.list(1:1000 + 0.5))", sleeping_code))
  x <- snapshot_memory(pid)
  expect_identical(validate_profile(x), x)
  paths <- paths_in(x)
  expect_equal(paths$bytes[paths$path == "globalenv > $fits > $a > numeric"], 8000048)
  expect_true(any(startsWith(paths$path, "call of ")))
  expect_equal(heap_attribute(x, "wrong_references"), 0)
  expect_resident(x)
  expect_identical(x$sources$source_uri, paste0("pid:", pid))
  # It still sleeps in the same call.
  expect_identical(dump_stack(pid)$name[1:4], sleeping_stack)
  # Twice the same.
  again <- paths_in(snapshot_memory(pid))
  expect_identical(again[!grepl("^not R", again$path), ], paths[!grepl("^not R", paths$path), ])
})

test_that("snapshots of a process that allocates and collects have no wrong references", {
  skip_without_processes()
  for (code in c("repeat gc()", "repeat lapply(1:1000, function(i) list(i + 0.5, paste(i)))")) {
    pid <- local_r_process(c("kept <- as.list(1:1e5 + 0.5)", "ready()", code))
    for (i in 1:5) {
      expect_sane_snapshot(snapshot_memory(pid), "globalenv > $kept", 100001)
    }
  }
})

test_that("the sums of a snapshot survive pprof and OpenTelemetry", {
  skip_without_processes()
  x <- snapshot_memory()
  sums <- function(x) {
    tapply(x$sample_values$value, x$sample_values$type, sum)
  }
  for (extension in c("pb.gz", "otlp", "json")) {
    file <- withr::local_tempfile(fileext = paste0(".", extension))
    switch(extension, pb.gz = write_pprof(x, file), write_otlp(x, file))
    expect_equal(sums(read_profile(file)), sums(x))
  }
})

test_that("arguments are checked", {
  expect_snapshot(error = TRUE, {
    snapshot_memory("1")
    snapshot_memory(c(1, 2))
    snapshot_memory(gc = NA)
    snapshot_memory(children = "1")
    snapshot_memory(1, 2)
  })
})

test_that("processes that cannot be read are errors", {
  skip_without_processes()
  expect_error(snapshot_memory(2^30), class = "profile_error_process")
  # Not R.
  pid <- as.integer(system2("sh", c("-c", shQuote("sleep 1000 > /dev/null 2>&1 & echo $!")), stdout = TRUE))
  withr::defer(tools::pskill(pid))
  expect_error(snapshot_memory(pid), "does not run R", class = "profile_error_process")
})
