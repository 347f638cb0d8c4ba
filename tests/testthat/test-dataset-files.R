# tier: gate
# The files of a data set: writing, compaction and removal, and what others see meanwhile. All of this needs the package
# arrow, which recent releases of Debian have.

versioned <- function(version) c(service.name = "report", service.version = version)

test_that("what was written is read, from one call and from several", {
  path <- local_dataset()
  x <- small_profile()
  expect_identical(store_profiles(x, path, resource = versioned("1")), x)
  expect_invisible(store_profiles(list(x, x), path, resource = versioned("2")))
  sums <- sums_of_dataset(path)
  one <- sums[sums$version == "1", ]
  two <- sums[sums$version == "2", ]
  expect_identical(two$value, 2 * one$value)
  expect_identical(sum(one$value[one$sample_type == "samples"]), sum(summary(x, type = "samples")$by_function$self))
  expect_identical(readLines(file.path(path, "_profile_dataset")), "2")
  expect_identical(grep("[.]new$", files_of(path), value = TRUE), character())
  expect_identical(
    sum(read_profile(tbl_profile(path, day >= "2026-01-01"))$sample_values$value), sum(read_profile(tbl_profile(path))$sample_values$value)
  )
  expect_identical(nrow(read_profile(tbl_profile(path, day < "2026-01-01"))$samples), 0L)
})

test_that("files and folders with files of agents are written", {
  path <- local_dataset()
  folder <- withr::local_tempdir()
  write_pprof(small_profile(), file.path(folder, "a.pb.gz"))
  writeLines("", file.path(folder, "note.txt"))
  file <- withr::local_tempfile(fileext = ".pb.gz")
  write_pprof(small_profile(), file)
  store_profiles(c(folder, file), path, resource = versioned("1"))
  store_profiles(list(small_profile(), small_profile()), path, resource = versioned("2"))
  values <- dplyr::collect(dplyr::count(tbl_profile(path)$samples, version, sample_type, wt = value))
  values <- values[values$sample_type == "samples", ]
  expect_identical(length(unique(values$n)), 1L)
})

test_that("a summary of the engine is the summary of the profile", {
  path <- local_dataset()
  x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
  store_profiles(x, path, resource = versioned("1"))
  expected <- as.data.frame(summary(x, type = "samples")$by_function)[c("name", "self", "total")]
  found <- as.data.frame(summary(tbl_profile(path, version == "1"), type = "samples")$by_function)[names(expected)]
  order <- function(rows) rows[base::order(rows$name, method = "radix"), ]
  expect_equal(order(found), order(expected), ignore_attr = TRUE)
  expect_snapshot(print(tbl_profile(path)))
})

test_that("services with equally many samples are printed in the order of their names", {
  path <- local_dataset()
  # arrow returns them in the order of files, whose names are random.
  for (name in c("d", "b", "e", "a", "c")) store_profiles(small_profile(), path, resource = c(service.name = name))
  expect_identical(utils::tail(format(tbl_profile(path), n = 5), 5), paste0("  ", c("a", "b", "c", "d", "e")))
})

test_that("a day is compacted, summed up and removed, with the same sums", {
  path <- local_dataset()
  x <- small_profile()
  for (version in c("1", "2")) store_profiles(x, path, resource = versioned(version))
  sums <- sums_of_dataset(path)
  written <- files_of(path)
  expect_identical(compact_dataset(path, days = 0), 0)
  expect_identical(files_of(path), written)

  # The files of writers stay, as others may be reading them.
  expect_identical(compact_dataset(path), 1)
  expect_identical(sums_of_dataset(path), sums)
  expect_true(all(written %in% files_of(path)))
  expect_length(grep("^compact/samples/day=20.*/minute-run-1[.]parquet$", files_of(path)), 1)

  # Later they are removed.
  expect_identical(compact_dataset(path, days = 2.1), 0)
  expect_identical(sums_of_dataset(path), sums)
  expect_identical(grep("^(samples|frames|labels)/day=20", files_of(path), value = TRUE), character())
  expect_identical(read_profile(tbl_profile(path))$functions$name, read_profile(tbl_profile(path, service == "report"))$functions$name)

  for (period in c("hour", "day")) {
    expect_identical(compact_dataset(path, period, days = 2.2), 1)
    expect_identical(sums_of_dataset(path), sums)
  }
  # Runs are summed up, here of one host.
  runs <- function() nrow(read_profile(tbl_profile(path))$sources)
  before <- runs()
  for (apart in c("host", "none")) {
    expect_identical(compact_dataset(path, "day", days = 2.25, apart = apart), 1)
    expect_identical(sums_of_dataset(path), sums)
  }
  expect_identical(read_profile(tbl_profile(path))$sources$source_timestamp, rep(NA_real_, 2))
  expect_gte(before, runs())
  # Sums of a longer period stay.
  compact_dataset(path, "minute", days = 2.3)
  expect_length(grep("^compact/samples/day=20.*[.]parquet$", files_of(path)), 1)
  expect_identical(sums_of_dataset(path), sums)

  pretend_days(2)
  prune_dataset(path, as.numeric(days_later(1)), NULL)
  expect_identical(nrow(sums_of_dataset(path)), 0L)
  expect_identical(grep("day=20", files_of(path), value = TRUE), character())
})

test_that("a file that comes after its day was compacted is read at once, and summed up with the others", {
  path <- local_dataset()
  write <- function(version) store_profiles(small_profile(), path, resource = versioned(version))
  write("1")
  expect_identical(compact_dataset(path, "hour"), 1)
  write("2")
  sums <- sums_of_dataset(path)
  expect_identical(unique(sums$version), c("1", "2"))
  expect_gt(nrow(read_profile(tbl_profile(path, version == "2"))$sample_locations), 0)
  expect_identical(nrow(read_profile(tbl_profile(path, version == "2", day < "2020-01-01"))$samples), 0L)

  # It does not change the period.
  expect_identical(compact_dataset(path, "minute", days = 2.01), 1)
  expect_identical(sums_of_dataset(path), sums)
  expect_identical(compact_dataset(path, "minute", days = 2.2), 0)
  expect_identical(grep("^(samples|frames)/day=20", files_of(path), value = TRUE), character())
  expect_length(grep("^compact/samples/day=20.*/hour-run-1[.]parquet$", files_of(path)), 1)
  expect_identical(sums_of_dataset(path), sums)
})

test_that("two processes that compact at once lose nothing", {
  path <- local_dataset()
  write <- function(version) store_profiles(small_profile(), path, resource = versioned(version))
  write("1")
  # Another process, whose clock is an hour ahead, compacts the day meanwhile, with a file that this one has not seen.
  sort_rows <- write_sorted
  is_first <- TRUE
  replace_function("write_sorted", function(store, rows, table, ...) {
    sort_rows(store, rows, table, ...)
    if (is_first && table == "samples") {
      is_first <<- FALSE
      write("2")
      expect_identical(compact_dataset(path, days = 2 + 1 / 24), 1)
    }
  })
  expect_identical(compact_dataset(path, days = 2), 0)
  sums <- sums_of_dataset(path)
  expect_identical(unique(sums$version), c("1", "2"))
  expect_length(grep("_files$", files_of(path)), 1)
  # A longer period gets a later folder, although this clock is behind.
  expect_identical(compact_dataset(path, "hour", days = 2), 1)
  expect_length(grep("/hour-run-1[.]parquet$", files_of(path)), 1)
  expect_identical(sums_of_dataset(path), sums)
  expect_identical(compact_dataset(path, "hour", days = 2), 0)
  compact_dataset(path, "hour", days = 2.5)
  expect_length(grep("_files$", files_of(path)), 1)
  expect_identical(sums_of_dataset(path), sums)
})

test_that("large services are divided, and services share a file", {
  path <- local_dataset()
  x <- small_profile()
  for (name in c("a", "b", "c")) store_profiles(x, path, resource = c(service.name = name))
  sums <- sums_of_dataset(path)
  replace_function("most_rows", 3)
  replace_function("many_files", 1)
  compact_dataset(path)
  expect_identical(sums_of_dataset(path), sums)
  expect_gt(length(grep("^compact/samples/day=20.*[.]parquet$", files_of(path))), 3)
  # The files were merged first, in a folder that is removed.
  expect_identical(grep("^[.]", files_of(path), value = TRUE), character())
})

test_that("a process that was killed leaves what was", {
  path <- local_dataset()
  store_profiles(small_profile(), path, resource = versioned("1"))
  sums <- sums_of_dataset(path)
  # It stops before each file gets its name.
  rename <- rename_into_place
  stop_at <- count <- 0
  replace_function("rename_into_place", function(...) {
    count <<- count + 1
    if (count == stop_at) rlang::abort("killed", "killed")
    rename(...)
  })
  until <- function(n, code) {
    stop_at <<- n
    count <<- 0
    tryCatch(code, killed = function(e) "killed")
  }
  # A small profile has frames, and no labels.
  for (n in 1:2) {
    expect_identical(until(n, store_profiles(small_profile(), path, resource = versioned("2"))), "killed")
    expect_identical(sums_of_dataset(path), sums)
  }
  for (n in 1:3) {
    expect_identical(until(n, compact_dataset(path)), "killed")
    expect_identical(sums_of_dataset(path), sums)
  }
  expect_identical(until(0, compact_dataset(path)), 1)
  expect_identical(sums_of_dataset(path), sums)
  dir.create(file.path(path, ".compact-x"))
  compact_dataset(path, days = 5)
  expect_false(dir.exists(file.path(path, ".compact-x")))
})

test_that("Ctrl-C leaves no file incomplete, and what was", {
  path <- local_dataset()
  x <- small_profile()
  store_profiles(x, path, resource = versioned("1"))
  sums <- sums_of_dataset(path)
  interrupted <- function(at, code) {
    original <- utils::getFromNamespace(at, "profile")
    # After the file has some rows.
    replace_function(at, function(...) {
      original(...)
      rlang::interrupt()
    })
    expect_identical(tryCatch(code, interrupt = function(e) "by Ctrl-C"), "by Ctrl-C")
  }
  for (at in c("write_parquet", "rename_into_place")) {
    interrupted(at, store_profiles(x, path, resource = versioned("2")))
    interrupted(at, compact_dataset(path))
    expect_identical(sums_of_dataset(path), sums)
    hidden <- list.files(path, "^[.]", all.files = TRUE, no.. = TRUE)
    expect_identical(hidden, character())
  }
  expect_identical(compact_dataset(path), 1)
  expect_identical(sums_of_dataset(path), sums)
})

test_that("files that are cut are errors, and change nothing", {
  path <- local_dataset()
  for (version in c("1", "2")) store_profiles(small_profile(), path, resource = versioned(version))
  file <- list.files(file.path(path, "samples"), recursive = TRUE, full.names = TRUE)[2:3]
  bytes <- file_bytes(file[[2]])
  writeBin(bytes[1:20], file[[2]])
  written <- files_of(path)
  expect_error(read_profile(tbl_profile(path)), "Cannot read the profiles of the store", class = "profile_error_open")
  expect_error(compact_dataset(path), "Cannot read the data set", class = "profile_error_open")
  samples <- function(files) grep("^frames|^compact/frames", files, value = TRUE, invert = TRUE)
  expect_identical(samples(files_of(path)), samples(written))
  writeBin(bytes, file[[2]])
  expect_identical(compact_dataset(path), 1)
  expect_identical(unique(sums_of_dataset(path)$version), c("1", "2"))
})

test_that("paths may be relative, and contain blanks, other letters, and what looks like a day", {
  folder <- local_dataset()
  withr::local_dir(folder)
  for (path in c("a b/day=2020-01-01", enc2native("\u00e4%20+#"), "[x]*", ".hidden", "link")) {
    if (path == "link") {
      dir.create("empty")
      file.symlink("empty", "link")
    }
    store_profiles(small_profile(), path)
    store_profiles(small_profile(), file.path(folder, path), resource = versioned("2"))
    expect_identical(unique(sums_of_dataset(path)$version), c("2", NA))
    sums <- sums_of_dataset(path)
    expect_identical(compact_dataset(path), 1)
    expect_identical(sums_of_dataset(path), sums)
    days <- unique(dplyr::collect(tbl_profile(path)$samples)$day)
    expect_identical(days, format(Sys.time(), "%Y-%m-%d", tz = "UTC"))
    # What was replaced is removed later, and the last day at the end.
    compact_dataset(path, days = 2.1)
    expect_identical(grep("^samples/day=20", files_of(path), value = TRUE), character())
    local({
      pretend_days(3, environment())
      prune_dataset(path, as.numeric(days_later(2)), NULL)
    })
    expect_identical(grep("^[.]|day=20", files_of(path), value = TRUE), character())
  }
})

test_that("a folder of others does not become a data set, and one that was interrupted does", {
  folder <- local_dataset()
  foreign <- c("notes.txt", "samples/day=2024-01-01/mine.parquet", "compact/x", ".git/config", "frames/empty.parquet")
  for (file in foreign) {
    path <- file.path(folder, gsub("/", "-", file))
    dir.create(dirname(file.path(path, file)), recursive = TRUE)
    writeLines("mine", file.path(path, file))
    expect_error(store_profiles(small_profile(), path), "is not empty", class = "profile_error_write")
    expect_identical(files_of(path), file)
  }
  path <- file.path(folder, "interrupted")
  store_profiles(small_profile(), path)
  unlink(file.path(path, "_profile_dataset"))
  unlink(list.files(path, "^day=20", recursive = TRUE, include.dirs = TRUE, full.names = TRUE), recursive = TRUE)
  writeLines("", file.path(path, ".4a0b.new"))
  store_profiles(small_profile(), path)
  expect_gt(nrow(sums_of_dataset(path)), 0)
})

test_that("a day that is removed while it is compacted stays removed", {
  path <- local_dataset()
  rename <- rename_into_place
  sort_rows <- write_sorted
  # With the clock of this test, all hidden folders are old.
  replace_function("remove_leftovers", function(store) NULL)
  prune <- function() prune_dataset(path, as.numeric(days_later(1)), NULL)
  # Either while rows are sorted, or at the last moment before the sums appear.
  while_sorting <- function(store, rows, table, ...) {
    sort_rows(store, rows, table, ...)
    if (table == "samples") prune()
  }
  at_last <- function(store, new, to, call) {
    if (grepl("valid_from", to)) prune()
    rename(store, new, to, call)
  }
  for (has_sums in c(FALSE, TRUE)) {
    for (moment in c("write_sorted", "rename_into_place")) {
      store_profiles(small_profile(), path)
      if (has_sums) expect_identical(compact_dataset(path), 1)
      local({
        replace_function(moment, if (moment == "write_sorted") while_sorting else at_last)
        expect_identical(compact_dataset(path, "hour"), 0)
      })
      expect_identical(nrow(sums_of_dataset(path)), 0L)
      expect_identical(grep("samples/day=20", files_of(path), value = TRUE), character())
    }
  }
})

test_that("sums beyond the range of a double are an error, and change nothing", {
  path <- local_dataset()
  x <- small_profile()
  x$sample_values$type <- "size"
  x$sample_values$value <- 0
  x$sample_values$value[[1]] <- 1e308
  x$sources$source_timestamp <- 1e9
  for (i in 1:3) store_profiles(x, path)
  written <- files_of(path)
  expect_error(read_profile(tbl_profile(path)), "beyond the range", class = "profile_error_unsupported")
  expect_error(compact_dataset(path), "beyond the range", class = "profile_error_unsupported")
  left <- grep("^compact/samples|^samples|^[.]", files_of(path), value = TRUE)
  expect_identical(left, grep("samples", written, value = TRUE))
})

test_that("the sampling period and the default type come back from files", {
  path <- local_dataset()
  x <- read_rprof(rprof_path("basic_all.out"))
  store_profiles(x, path)
  expected <- summary(x)$by_function
  expect_equal(sum(summary(tbl_profile(path))$by_function$self_time), sum(expected$self_time))
  expect_identical(compact_dataset(path, "day", apart = "none"), 1)
  y <- read_profile(tbl_profile(path))
  expect_equal(sum(summary(y)$by_function$self_time), sum(expected$self_time))
  expect_identical(y$sources$.default_type, "samples")
})

test_that("files of others in the folders do no harm", {
  path <- local_dataset()
  store_profiles(small_profile(), path, resource = versioned("1"))
  sums <- sums_of_dataset(path)
  today <- list.files(file.path(path, "samples"), "^day=20", full.names = TRUE)
  for (name in c("_SUCCESS", ".part.parquet.crc", ".x.parquet")) writeLines("x", file.path(today, name))
  dir.create(file.path(path, "samples", "day=2026-02-30"))
  dir.create(file.path(path, "compact", "samples", basename(today), "valid_from=99999999999"), recursive = TRUE)
  expect_identical(sums_of_dataset(path), sums)
  expect_identical(compact_dataset(path), 1)
  expect_identical(sums_of_dataset(path), sums)
  expect_identical(compact_dataset(path, days = 2.1), 0)
  expect_identical(sums_of_dataset(path), sums)
})

test_that("unknown layouts and places are errors", {
  path <- local_dataset()
  store_profiles(small_profile(), path)
  writeLines("3", file.path(path, "_profile_dataset"))
  empty <- withr::local_tempdir()
  file <- withr::local_tempfile()
  writeLines("", file)
  hide <- function(lines) gsub("([`\"'])/[^`\"']*[`\"']", "\\1PATH\\1", gsub("[.] Detail: .*", "", lines))
  expect_snapshot(error = TRUE, transform = hide, {
    tbl_profile(path)
    store_profiles(small_profile(), path)
    tbl_profile(empty)
    store_profiles(small_profile(), file.path(file, "x"))
    roll_up_profiles(path, Sys.Date(), 1)
  })
})

test_that("a file that cannot be written or renamed is an error, and leaves what was", {
  skip_on_os("windows")
  path <- local_dataset()
  store_profiles(small_profile(), path, resource = versioned("1"))
  written <- files_of(path)
  # The system refuses more than some bytes in a file, as if the disk was full.
  script <- withr::local_tempfile(lines = c(
    "x <- profile::read_rprof(system.file('samples/rprof/1.out', package = 'profile'))",
    "tryCatch(profile::store_profiles(x, commandArgs(TRUE)), profile_error_write = function(e) {",
    "  cat(conditionMessage(e))",
    "})"
  ))
  rscript <- file.path(R.home("bin"), "Rscript")
  command <- paste("trap '' XFSZ; ulimit -f 2; exec", paste(shQuote(c(rscript, script, path)), collapse = " "))
  out <- suppressWarnings(system2("sh", c("-c", shQuote(command)), stdout = TRUE, stderr = TRUE))
  expect_match(out, "Cannot write to the data set", all = FALSE)
  expect_match(out, "File too large", all = FALSE)
  expect_identical(files_of(path), written)

  day <- file.path(path, "frames", "day=2100-01-01")
  writeLines("", day)
  replace_function("current_time", function() as.numeric(as.POSIXct("2100-01-01 12:00", tz = "UTC")))
  expect_error(
    store_profiles(small_profile(), path), "Cannot write to the data set",
    class = "profile_error_write"
  )
  expect_setequal(files_of(path), c(written, "frames/day=2100-01-01"))
  unlink(day)
  store_profiles(small_profile(), path, resource = versioned("2"))
  expect_identical(unique(sums_of_dataset(path)$version), c("1", "2"))
})

# Files are written as to object storage, which has no folders and renames nothing. (The test creates the folders.)
test_that("object storage gets each file once, with its name", {
  path <- local_dataset()
  open <- open_store
  replace_function("open_store", function(path, call) utils::modifyList(open(path, call), list(is_local = FALSE)))
  pretend_days(0)
  days <- paste0("day=", c(empty_day, today_in_utc()))
  for (table in names(dataset_columns)) {
    for (day in days) dir.create(file.path(path, table, day), recursive = TRUE)
    last <- if (table == "samples") "valid_from=0" else ""
    dir.create(file.path(path, "compact", table, days[[1]], last), recursive = TRUE)
  }
  replace_function("rename_into_place", function(...) stop("Nothing is renamed."))
  store_profiles(small_profile(), path, resource = versioned("1"))
  found <- files_of(path)
  expect_identical(sum(grepl("^(samples|frames)/day=20.*[.]parquet$", found)), 2L)
  expect_identical(found[startsWith(basename(found), ".")], character())
  expect_identical(unique(sums_of_dataset(path)$version), "1")
  expect_error(roll_up_profiles(path, Sys.Date(), period = "minute"), "object storage", class = "profile_error_unsupported")
  expect_error(prune_profiles(path, Sys.Date()), "object storage", class = "profile_error_unsupported")
})

test_that("profiles of agents are forwarded, each once", {
  path <- local_dataset()
  folder <- withr::local_tempdir()
  for (i in 1:3) write_pprof(small_profile(), file.path(folder, paste0(i, ".pb.gz")))
  writeLines("no profile", file.path(folder, "x.pb.gz"))
  counts <- suppressMessages(forward_profiles(folder, path, resource = versioned("1"), once = TRUE), "profile_message_forward")
  expect_identical(counts, c(sent = 3L, refused = 1L))
  expect_identical(list.files(folder), "x.pb.gz.refused")
  sums <- sums_of_dataset(path)

  # The forwarder is killed after it has written, or before.
  unlink(file.path(folder, "x.pb.gz.refused"))
  write_pprof(small_profile(), file.path(folder, "4.pb.gz"))
  forward_killed <- function(at, version) {
    replace_function(at, function(...) rlang::abort("killed", "killed"))
    expect_error(forward_profiles(folder, path, resource = versioned(version), once = TRUE), class = "killed")
  }
  forward_killed("finish_file", "2")
  more <- sums_of_dataset(path)
  expect_identical(forward_profiles(folder, path, resource = versioned("2"), once = TRUE), c(sent = 0L, refused = 0L))
  expect_identical(sums_of_dataset(path), more)
  expect_identical(list.files(folder), character())

  # The day is compacted, and the file of the writer removed, until the next forwarder starts.
  write_pprof(small_profile(), file.path(folder, "6.pb.gz"))
  forward_killed("finish_file", "2b")
  more <- sums_of_dataset(path)
  compact_dataset(path)
  compact_dataset(path, days = 2.1)
  expect_identical(forward_profiles(folder, path, resource = versioned("2b"), once = TRUE), c(sent = 0L, refused = 0L))
  expect_identical(sums_of_dataset(path), more)

  write_pprof(small_profile(), file.path(folder, "5.pb.gz"))
  forward_killed("append_tables", "3")
  forward_profiles(folder, path, resource = versioned("3"), once = TRUE)
  expect_identical(unique(sums_of_dataset(path)$version), c("1", "2", "2b", "3"))
  expect_identical(list.files(folder), character())
})

test_that("a file of an agent belongs to its service", {
  path <- local_dataset()
  folder <- withr::local_tempdir()
  add <- function(comments) {
    x <- small_profile()
    x$.comments <- tibble::tibble(source_id = rep(1L, length(comments)), comment = comments)
    write_pprof(x, tempfile(tmpdir = folder, fileext = ".pb.gz"))
  }
  add(c("profile.heap.used: 5", paste0("resource.", c("service.name: my api", "service.version: 1", "host.name: a"))))
  add(c("resource.service.namespace: shop", "service.name: shop"))
  rows <- function() {
    rows <- dplyr::collect(dplyr::distinct(tbl_profile(path)$samples, service, version, host))
    sort(paste(rows$service, rows$version, rows$host))
  }
  expect_identical(forward_profiles(folder, path, once = TRUE), c(sent = 2L, refused = 0L))
  expect_identical(rows(), c("my api 1 a", "unknown_service NA NA"))
  add("resource.service.name: my api")
  forward_profiles(folder, path, resource = c(service.name = "other"), once = TRUE)
  expect_identical(rows(), c("my api 1 a", "other NA NA", "unknown_service NA NA"))
})
