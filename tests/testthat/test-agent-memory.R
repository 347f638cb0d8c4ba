# tier: gate
# What the agent reports about memory: the figures in each part, and snapshots of R's heap. When they are taken, and
# what happens if one fails, is tested in Rust, in src/rust/agent/src/snapshots.

figures_of <- function(x) {
  rows <- startsWith(x$.source_attributes$key, "profile.heap.")
  figures <- rlang::set_names(as.numeric(x$.source_attributes$value[rows]), x$.source_attributes$key[rows])
  rlang::set_names(figures, sub("profile.heap.", "", names(figures), fixed = TRUE))
}

# The children of a process that have this name.
children_of <- function(pid, name) {
  lists <- Sys.glob(sprintf("/proc/%d/task/*/children", pid))
  children <- unlist(lapply(lists, function(list) scan(list, 0L, quiet = TRUE)))
  names <- vapply(sprintf("/proc/%d/comm", children), function(file) {
    tryCatch(readLines(file), error = function(error) "", warning = function(warning) "")
  }, "")
  children[names == name]
}

# Passes profiles to a list.
collect <- function(envir = parent.frame()) {
  profiles <- list()
  list(
    add = function(x) profiles[[length(profiles) + 1]] <<- x,
    of_type = function(type) Filter(function(x) x$sources$source_type == type, profiles)
  )
}

test_that("parts have the figures of gc()", {
  seen <- collect()
  local_agent(seen$add, every = 3600)
  work_until_taken(1)
  # Other objects of R than those of this test are few.
  kept <- list(numeric(5e6), as.list(1:2e5))
  used <- gc(full = TRUE)
  status <- stop_agent(300)
  expect_complete(status)
  expect_identical(status$snapshots, 0)
  part <- seen$of_type("process")
  expect_length(part, 1)
  figures <- figures_of(part[[1]])
  expect_named(figures, c("used", "used.min", "free", "objects", "data", "resident"))
  # What stop_agent() allocates before the thread ends.
  expect_gte(figures[["objects"]], used["Ncells", "used"])
  expect_lt(figures[["objects"]], 1.005 * used["Ncells", "used"])
  expect_gte(figures[["data"]], 8 * used["Vcells", "used"])
  expect_lt(figures[["data"]], 1.005 * 8 * used["Vcells", "used"])
  expect_identical(figures[["used"]], 56 * figures[["objects"]] + figures[["data"]])
  expect_lte(figures[["used.min"]], figures[["used"]])
  expect_gt(figures[["free"]], 0)
  expect_gt(figures[["resident"]], 8 * 5e6)
  expect_length(kept, 2)
})

test_that("the least use is what garbage collections have left", {
  seen <- collect()
  local_agent(seen$add, every = 3600)
  work_until_taken(1)
  large <- numeric(5e6)
  invisible(gc())
  taken <- agent_status()$taken
  rm(large)
  invisible(gc())
  # The thread looks at each tick.
  work_until_taken(taken + 20)
  large <- numeric(5e6)
  stop_agent(300)
  figures <- figures_of(seen$of_type("process")[[1]])
  expect_gt(figures[["used"]], figures[["used.min"]] + 8 * 4.9e6)
  expect_length(large, 5e6)
})

test_that("files in a folder have the figures and the attributes of the service as comments", {
  folder <- withr::local_tempdir()
  local_agent(folder, every = 3600, resource = c(service.name = "my api", service.version = "2.3", host.name = "a"))
  work_until_taken(1)
  stop_agent()
  x <- read_pprof(dir(folder, full.names = TRUE))
  # Packages of this session may have threads, and not all systems count waits for a processor.
  keys <- sub(": .*$", "", x$.comments$comment)
  expect_identical(
    grep("^profile[.](threads[.]|cpu[.](delay|throttled)$)", keys, value = TRUE, invert = TRUE),
    c(
      paste0("profile.cpu.", c("ticks", "clock", "factor")),
      paste0("profile.heap.", c("used", "used.min", "free", "objects", "data", "resident")),
      paste0("resource.", c(
        "service.name", paste0("process.runtime.", c("name", "version")), "host.name", "service.instance.id",
        "process.creation.time", "service.version"
      ))
    )
  )
  rows <- flat_tables(x, character(), NULL)$samples
  expect_identical(unique(paste(rows$service, rows$version, rows$host)), "my api 2.3 a")
  # The parts of a process are one run, which began with the process.
  id <- sub(".*: ", "", grep("instance[.]id", x$.comments$comment, value = TRUE))
  expect_match(id, "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$")
  x$sources$source_timestamp <- x$sources$source_timestamp + 60
  later <- flat_tables(x, character(), NULL)$samples
  expect_identical(unique(later[c("run", "run_start")]), unique(rows[c("run", "run_start")]))
  expect_lt(rows$run_start[[1]], Sys.time())
})

test_that("a snapshot of the agent retains the same as snapshot_memory()", {
  seen <- collect()
  at_top <- globalenv()
  at_top$kept_by_test <- list(
    shared = new.env(), numbers = as.list(runif(3e4)), text = paste("text", 1:2e4), closure = local({
      data <- runif(1e5)
      function() data
    })
  )
  withr::defer(rm("kept_by_test", envir = at_top))
  local_agent(seen$add, memory = 0.05)
  work_until(function() agent_status()$snapshots >= 3)
  status <- stop_agent(300)
  expect_complete(status)
  expect_identical(status$dropped, 0)
  snapshots <- seen$of_type("heap")
  expect_identical(as.numeric(length(snapshots)), status$snapshots)
  retained <- function(x) {
    held <- holders(x, n = 1000)
    row <- which(held$held_by == "globalenv > $kept_by_test")
    unlist(held[row, c("retained", "objects")])
  }
  expected <- retained(snapshot_memory())
  expect_gt(expected[["retained"]], 8e5)
  for (snapshot in snapshots) {
    expect_no_error(validate_profile(snapshot))
    expect_identical(retained(snapshot), expected)
    expect_identical(figures_of(snapshot)[["wrong_references"]], 0)
    expect_resident(snapshot)
    expect_true("not R's heap > libraries" %in% holders(snapshot, n = 1000)$held_by)
  }
})

test_that("snapshots do not disturb collections, other processes or files", {
  folder <- withr::local_tempdir()
  gone <- file.path(folder, "gone")
  local_agent(folder, every = 0.05, memory = 0.05)
  forked <- c()
  work_until(function() {
    gc()
    con <- file(gone, "w")
    writeLines("x", con)
    close(con)
    unlink(gone)
    stopifnot(system("exit 3") == 3)
    forked <<- c(forked, unlist(parallel::mccollect(parallel::mcparallel(7L))))
    agent_status()$snapshots >= 8
  })
  status <- stop_agent(300)
  expect_complete(status)
  # R may be busy with garbage during all attempts for a snapshot.
  expect_true(is.na(status$last_error) || grepl("R was (collecting|changing)", status$last_error))
  expect_setequal(forked, 7L)
  heaps <- dir(folder, "-heap[.]pb[.]gz$", full.names = TRUE)
  expect_identical(as.numeric(length(heaps)), status$snapshots)
  types <- unique(lapply(heaps, function(file) unique(read_pprof(file)$sample_values$type)))
  expect_identical(types, unique(list(unique(snapshot_memory()$sample_values$type))))
  # No child remains.
  expect_length(children_of(Sys.getpid(), "profile-image"), 0)
})

test_that("a snapshot is taken whenever the memory is higher than before", {
  skip_without_agent()
  folder <- withr::local_tempdir()
  go <- file.path(folder, "go")
  at <- function(name) file.path(folder, name)
  # Each takes a share of the CPU time, so the second one may have to wait.
  pid <- local_r_process(with_package(
    sprintf("start_agent('%s', every = 0.05, memory = 'peak')", at("agent")),
    "ready()",
    sprintf("while (!file.exists('%s')) Sys.sleep(0.01)", go),
    "kept <- rep(1, 2e7)",
    "repeat Sys.sleep(0.01)"
  ))
  heaps <- function() sort(dir(at("agent"), "-heap[.]pb[.]gz$", full.names = TRUE))
  expect_true(wait_for(function() length(heaps()) > 0))
  file.create(go)
  held <- function() holders(utils::tail(heaps(), 1))$held_by[[1]]
  expect_true(wait_for(function() held() == "globalenv > $kept"))
})

test_that("the status and its text say how often snapshots are taken", {
  local_agent(withr::local_tempdir(), memory = 3600)
  status <- agent_status()
  expect_identical(status$memory, 3600)
  expect_match(format(status), "Snapshots of R's heap: 0, one every 3600 s", fixed = TRUE, all = FALSE)
  stop_agent()
  expect_identical(agent_status()$snapshots, 0)
  local_agent(withr::local_tempdir(), memory = "peak")
  status <- agent_status()
  expect_identical(status$memory, "peak")
  expect_match(format(status), "^Snapshots of R's heap: [0-9]+(, [0-9]+ failed)?, at peaks of the memory$", all = FALSE)
  stop_agent()
})

test_that("it is checked when snapshots are to be taken", {
  expect_snapshot(error = TRUE, {
    start_agent(tempdir(), memory = 1)
    start_agent(tempdir(), memory = TRUE)
    start_agent(tempdir(), memory = c(60, 60))
    start_agent(tempdir(), memory = Inf)
    start_agent(tempdir(), memory = "peaks")
  })
})
