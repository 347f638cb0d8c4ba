# tier: gate
# The labels of samples that wait: how they are shown and kept, and what processes wait for. The classes are tested in
# src/rust/reader, with threads that are blocked.

classes <- c(
  "network", "file", "child", "pipe", "lock", "threads", "processor", "page fault", "sleep", "idle", "unknown"
)

# A process that computed at one of eight samples. `attributes` of its source.
waiting_profile <- function(attributes = character()) {
  x <- small_profile(.local_envir = parent.frame())
  n <- 8L
  x$samples <- tibble::tibble(sample_id = seq_len(n), source_id = 1L)
  x$sample_values <- tibble::tibble(
    sample_id = rep(seq_len(n), 2), type = rep(c("cpu", "wall"), each = n), unit = "nanoseconds",
    value = c(1e7, rep(0, n - 1), rep(1e7, n))
  )
  stack <- x$sample_locations[x$sample_locations$sample_id == 1L, c("depth", "location_id")]
  x$sample_locations <- tibble::tibble(
    sample_id = rep(seq_len(n), each = nrow(stack)), depth = rep(stack$depth, n), location_id = rep(stack$location_id, n)
  )
  x$sources <- tibble::tibble(
    source_id = 1L, source_type = "process", source_uri = "pid:7", source_timestamp = NA_real_, .period = 1e7,
    .period_type = "wall", .period_unit = "nanoseconds", .default_type = "wall"
  )
  waits <- c("network", "network", "network", "sleep", "processor", "file", "network")
  x$.labels <- tibble::tibble(
    sample_id = c(2:8, 2L, 7L), key = rep(c("waits_for", "waits_for.name"), c(7, 2)),
    str = c(waits, "127.0.0.1:5432", "shop.sqlite"), num = NA_real_, unit = NA_character_
  )
  x <- x[setdiff(names(x), c(".problems", ".source_types", ".toplevel"))]
  class(x) <- class(small_profile(.local_envir = parent.frame()))
  if (length(attributes) > 0) with_attributes(x, 1L, attributes) else x
}

waits_of_samples <- function(x, key = "waits_for") {
  labels <- x$.labels[x$.labels$key == key, ]
  str <- rep(NA_character_, nrow(x$samples))
  str[match(labels$sample_id, x$samples$sample_id)] <- as.character(labels$str)
  table(str, useNA = "always")
}

test_that("samples are summed and selected by what they wait for", {
  x <- waiting_profile()
  validate_profile(x)
  by <- summary(x, by = "waits_for", type = "wall")
  expect_identical(by$waits_for, c("network", "file", "processor", "sleep", NA))
  expect_equal(by$total, c(4, 1, 1, 1, 1) * 1e7)
  expect_equal(sum(by$total_share), 1)
  network <- filter_profile(x, labels = c(waits_for = "network"))
  expect_identical(nrow(network$samples), 4L)
  expect_identical(nrow(filter_profile(x, labels = c(waits_for.name = "shop.sqlite"))$samples), 1L)
})

test_that("the digest shows what real time waits for", {
  x <- waiting_profile(c(profile.cpu.delay = 1e8, profile.cpu.throttled = 8e7))
  digest <- describe_profile(x, type = "wall")
  expect_equal(as.list(digest)$labels$waits_for$total, c(4, 1, 1, 1, 1) * 1e7)
  text <- format(digest, width = 100)
  table <- text[seq(grep("waits_for$", text), length.out = 6)]
  expect_match(table[-1], "network$|file$|processor$|sleep$|[(]computes[)]$")
  notes <- gsub(" +", " ", paste(text, collapse = " "))
  expect_match(notes, "Waited 0.1 s for a processor; its cgroup was throttled for", fixed = TRUE)
  expect_true("summary(x, by = \"waits_for\")" %in% as.list(digest)$next_calls)
  refused <- describe_profile(waiting_profile(c(profile.waits.refused = 1)))
  expect_match(as.list(refused)$notes, "^What some samples wait for is unknown", all = FALSE)
  expect_false(any(grepl("is unknown, because", as.list(digest)$notes)))
  # CPU time does not pass meanwhile.
  expect_null(as.list(describe_profile(x, type = "cpu"))$labels$waits_for)
})

test_that("waits for processors are reported if they are a part of the time, of all processes", {
  note <- function(attributes, seconds) note_of_delay(waiting_profile(attributes), seconds)
  expect_identical(note(c(profile.cpu.delay = 11.3e9, profile.cpu.throttled = 8e9), 20), paste(
    "Waited 11.3 s for a processor; its cgroup was throttled for 8 s."
  ))
  expect_identical(note(c(profile.cpu.delay = 11.3e9), 20), "Waited 11.3 s for a processor.")
  expect_null(note(c(profile.cpu.delay = 11.3e9), 1000))
  expect_null(note(c(profile.cpu.delay = 0.05e9), 0.1))
  expect_null(note(character(), 1))
  expect_null(note(c(profile.cpu.delay = 1e12), NULL))
  x <- waiting_profile(c(profile.cpu.delay = 2e9, profile.cpu.throttled = 1e9))
  both <- combine_profiles(x, waiting_profile(c(profile.cpu.delay = 1e9, profile.cpu.throttled = 3e9)))
  # A group is throttled as a whole.
  expect_identical(
    note_of_delay(both, 10), "The 2 processes waited 3 s for a processor; their cgroup was throttled for 3 s."
  )
})

test_that("recordings of this session know how long it waited for a processor", {
  skip_if_not(file.exists("/proc/self/schedstat"), "the system does not say so")
  x <- quietly(record_profile(work_until(function() TRUE)))
  delay <- source_attribute(x, "profile.cpu.delay")
  expect_gte(as.numeric(delay), 0)
  y <- with_cpu_time(x, structure(5, delay = c(NaN, NaN)))
  expect_identical(source_attribute(y, "profile.cpu.clock"), "5")
  y <- with_cpu_time(x, structure(5, delay = c(0, 0)))
  expect_identical(source_attribute(y, "profile.cpu.delay"), "0")
  expect_identical(source_attribute(y, "profile.cpu.throttled"), NA_character_)
})

test_that("files, databases and pages keep labels of waits", {
  x <- waiting_profile()
  expected <- waits_of_samples(x)
  names <- waits_of_samples(x, "waits_for.name")
  for (file in c("x.pb.gz", "x.otlp", "x.otlp.json")) {
    path <- withr::local_tempfile(fileext = paste0("-", file))
    quietly(write_profile(x, path))
    y <- read_profile(path)
    by <- summary(y, by = "waits_for", type = "wall")
    expect_equal(sort(by$total[!is.na(by$waits_for)]), c(1, 1, 1, 4) * 1e7, info = file)
    expect_setequal(na.omit(as.character(y$.labels$str[y$.labels$key == "waits_for.name"])), names(names)[-3])
  }
  if (rlang::is_installed(c("DBI", "RSQLite"))) {
    con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
    withr::defer(DBI::dbDisconnect(con))
    store_profiles(x, con)
    y <- read_profile(tbl_profile(con))
    by <- summary(y, by = "waits_for", type = "wall")
    expect_equal(sort(by$total[!is.na(by$waits_for)]), c(1, 1, 1, 4) * 1e7)
  }
  expect_identical(as.integer(expected), c(1L, 4L, 1L, 1L, 1L))
})

test_that("a process that is recorded at all times says what it waits for", {
  skip_without_processes()
  pid <- local_r_process(c("ask <- function() system('exec sleep 1000')", "ready()", "ask()"))
  has_name <- function(x) "sleep" %in% x$.labels$str[x$.labels$key == "waits_for.name"]
  x <- profile_until(pid, has_name, clock = "wall")
  waits <- waits_of_samples(x)
  expect_identical(sum(waits), nrow(x$samples))
  expect_true("child" %in% names(waits))
  expect_true(all(names(waits) %in% c(classes, NA)))
  expect_false("waits_for" %in% profile_until(pid, function(x) TRUE, clock = "cpu")$.labels$key)
  recorded <- list(profile = x, unread = 0, ended = integer(), left = integer())
  expect_match(watched_lines(recorded, 0.2, 10), "^Waits for: .*child", all = FALSE)
})

test_that("a process that waits for a worker of the recording names it", {
  skip_without_processes()
  pid <- local_r_process(c(
    "cluster <- parallel::makePSOCKcluster(2)", "ask <- function() parallel::clusterCall(cluster[2], Sys.sleep, 1e6)",
    "ready()", "ask()"
  ))
  names <- function(x) as.character(x$.labels$str[x$.labels$key == "waits_for.name"])
  x <- profile_until(pid, function(x) any(grepl("^worker", names(x))), clock = "wall", children = TRUE, seconds = 1)
  role <- roles_of(x)[match(x$samples$source_id, x$sources$source_id)]
  of <- x$.labels[x$.labels$key == "waits_for.name" & grepl("^worker [12]$", x$.labels$str), ]
  expect_identical(unique(role[match(of$sample_id, x$samples$sample_id)]), "master")
  kinds <- x$.labels[x$.labels$key == "waits_for", ]
  expect_setequal(kinds$str[kinds$sample_id %in% of$sample_id], "network")
  # The other worker has no task.
  expect_true(all(c("idle", "sleep") %in% kinds$str[startsWith(role[match(kinds$sample_id, x$samples$sample_id)], "worker")]))
})

test_that("the agent sends classes, and names only if asked", {
  skip_without_agent()
  for (waits in c("classes", "names")) {
    labels <- NULL
    local_agent(function(x) labels <<- rbind(labels, as.data.frame(x$.labels[c("key", "str")])), clock = "wall", waits = waits)
    wait_for(function() {
      system("exec sleep 0.1")
      agent_status()
      "child" %in% labels$str[labels$key == "waits_for"]
    })
    stop_agent()
    expect_true("child" %in% labels$str, info = waits)
    expect_true(all(labels$str[labels$key == "waits_for"] %in% classes))
    expect_identical("waits_for.name" %in% labels$key, waits == "names")
    if (waits == "names") expect_true("sleep" %in% labels$str[labels$key == "waits_for.name"])
  }
})
