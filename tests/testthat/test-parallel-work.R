# tier: fast
# The bill of parallel work, of scripted processes.

# What processes did at each tick, as the recorder returns it. `scripts`: for each process, of which the first one is
# the master, `T`, `t` and `z` if it computes, waits for a processor and waits in a task, `X` and `x` if it computes and
# waits in a transfer, `S` while it starts, and `C` and `.` if it computes and waits elsewhere. Leading spaces are ticks
# before its first one.
scripted_tracks <- function(scripts, parents, processors = 2) {
  code <- c(T = 0L, t = 1L, z = 2L, X = 3L, x = 5L, S = 6L, C = 9L, . = 11L)
  runs <- lapply(strsplit(trimws(scripts), ""), function(letters) rle(unname(code[letters])))
  list(
    source = seq_along(scripts), master = as.integer(parents), first = nchar(sub("[^ ].*", "", scripts)),
    runs = lengths(lapply(runs, `[[`, "lengths")), state = unlist(lapply(runs, `[[`, "values")),
    times = unlist(lapply(runs, `[[`, "lengths")), began = 1e9, interval = 0.5, processors = processors
  )
}

nobody <- data.frame(pid = character())
with_scripts <- function(
    x, scripts, parents = rep(c(0, 100), c(1, length(scripts) - 1)), ..., refused = nobody, left_out = nobody,
    processors = 2) {
  tracks <- scripted_tracks(scripts, parents, processors)
  with_bill(x, list(tracks = tracks, refused = refused, left_out = left_out), ...)
}

two_workers <- function() {
  profile_of_processes(list(master = 0, "worker 1 of 2" = 1, "worker 2 of 2" = 1))
}
bill_of <- function(x) as.list(describe_profile(x))$parallel
counts_of <- function(x) {
  about <- x$.source_attributes
  about <- about[startsWith(about$key, "profile.parallel."), ]
  rlang::set_names(about$value, paste(about$source_id, sub(".*[.]", "", about$key)))
}

scripts <- c(
  "SSSS.....X...CCC....",
  "  SSxXTTtTzXTTT.....",
  "  SSxXTTX..........."
)

test_that("each slot has one class at each tick", {
  x <- with_scripts(two_workers(), scripts)
  expect_identical(counts_of(x), c(
    "2 work" = "6", "2 processor" = "1", "2 task_waits" = "1", "2 transfer" = "2", "2 starting" = "2", "2 serial" = "1",
    "2 master_waits" = "5",
    "3 work" = "2", "3 transfer" = "3", "3 starting" = "2", "3 serial" = "3", "3 others" = "2", "3 master_waits" = "6",
    "1 starting" = "4", "1 slots" = "2", "1 ticks" = "20", "1 time" = "10000000000", "1 nested" = "0", "1 processors" = "2"
  ))
  bill <- bill_of(x)
  expect_equal(rlang::set_names(bill$classes$share, bill$classes$class), c(
    work = 8, processor = 1, task_waits = 1, transfer = 5, starting = 8, serial = 4, others = 2, master_waits = 11
  ) / 40)
  expect_equal(sum(bill$classes$share), 1)
  # Two slots for ten seconds.
  expect_equal(sum(bill$classes$seconds), 20)
  expect_equal(bill[-(1:2)], list(workers = 2, seconds = 10, busy = 0.4, most = 2, nested = 0, ticks = 20))
})

test_that("the digest begins with a sentence and a table", {
  lines <- format(describe_profile(with_scripts(two_workers(), scripts)))
  at <- grep("^Parallel:", lines)
  expect_snapshot(writeLines(lines[at + 0:12]))
  expect_lt(at, grep("^Call tree", lines))
  # It says more than the spread of CPU time.
  expect_length(grep("Spread evenly", lines), 0)
  expect_length(grep("^Parallel:", format(describe_profile(with_scripts(two_workers(), scripts)), n = 0)), 0)
})

test_that("workers compete for processors, and may have workers", {
  x <- profile_of_processes(list(
    master = 0, "worker 1 of 2" = 1, "worker 2 of 2" = 1, "fork of 101" = 1, "fork of 101" = 1, "child of 7" = 1
  ))
  x <- with_scripts(
    x, c("....", "TTTT", "tttt", " TTT", " SS.", " TT"), c(0, 100, 100, 101, 101, 7), processors = 1.5
  )
  bill <- bill_of(x)
  # There is a shell between the master and its child.
  expect_identical(bill[c("workers", "most", "nested")], list(workers = 3L, most = 1.5, nested = 1L))
  expect_snapshot(writeLines(notes_of_bill(bill)))
  expect_identical(
    sentence_of_bill(bill), "3 workers were busy 50% of 2 s; 33% waited for a processor, 17% waited for others."
  )
})

test_that("only the time of the recording counts", {
  x <- with_scripts(two_workers(), scripts, from = 1e9 + 2.9, to = 1e9 + 7.1)
  bill <- bill_of(x)
  expect_identical(c(bill$ticks, bill$seconds), c(9, 4.5))
  expect_equal(bill$classes$share[bill$classes$class == "starting"], 0)
})

test_that("there is no bill if processes are missing", {
  x <- two_workers()
  expect_identical(with_scripts(x, scripts, refused = data.frame(pid = "7")), x)
  expect_identical(with_scripts(x, scripts, left_out = data.frame(pid = "7")), x)
  # The master cannot be read, or there are two.
  expect_identical(with_scripts(x, scripts, c(7, 100, 100)), x)
  expect_identical(with_scripts(x, scripts, c(0, 0, 100)), x)
  expect_identical(with_scripts(x, c("....", "SS", "SSSS")), x)
  expect_null(bill_of(x))
  # The number of processors is unknown.
  expect_identical(bill_of(with_scripts(x, scripts, processors = NaN))$most, 2)
})

test_that("a summary by process has the classes in seconds", {
  x <- with_scripts(two_workers(), scripts)
  rows <- summary(x, by = "process")
  expect_identical(rows$process, c("master, pid 100", "worker 1 of 2, pid 101", "worker 2 of 2, pid 102"))
  expect_equal(rows$work, c(0, 3, 1))
  expect_equal(rows$starting, c(2, 1, 1))
  expect_equal(sum(as.matrix(rows[bill_classes])), 20)
  expect_false(any(bill_classes %in% names(summary(two_workers(), by = "process"))))
  # A label with this name.
  x$.labels <- tibble::tibble(sample_id = 1L, key = "process", str = "mine", num = NA_real_, unit = NA_character_)
  expect_false(any(bill_classes %in% names(summary(x, by = "process"))))
})

test_that("a bill is kept in files, and lost with processes", {
  x <- with_scripts(two_workers(), scripts)
  for (extension in c(".otlp", ".otlp.json")) {
    path <- withr::local_tempfile(fileext = extension)
    write_profile(x, path)
    expect_equal(bill_of(read_profile(path)), bill_of(x), info = extension)
  }
  # pprof has no attributes of processes.
  path <- withr::local_tempfile(fileext = ".pb.gz")
  write_profile(x, path)
  expect_null(bill_of(read_profile(path)))
  expect_equal(bill_of(filter_profile(x, focus = "main")), bill_of(x))
  expect_null(bill_of(part_with(x, 1:2, NULL)))
  expect_null(bill_of(combine_profiles(x, x)))
  expect_equal(bill_of(combine_profiles(x, two_workers())), bill_of(x))
  # Other tools may have such keys.
  x$.source_attributes$value[x$.source_attributes$key == "profile.parallel.slots"] <- "7"
  expect_null(bill_of(x))
})

test_that("the page begins with the same", {
  x <- with_scripts(two_workers(), scripts)
  shown <- page_of(x)$parallel
  expect_identical(shown$sentence, sentence_of_bill(bill_of(x)))
  expect_identical(unlist(shown$cells)[1:3], c("busy: computed in tasks", "20.0%", "4s"))
  expect_null(page_of(two_workers())$parallel)
})
