# tier: gate
# Processes that work for another one: what it started, and the workers of clusters. Each is a source with a role.

test_that("children are recorded", {
  skip_without_processes()
  skip_if_not_installed("parallel")
  pid <- local_r_process(c(
    "work <- function(i) Sys.sleep(1e6)",
    "ready()",
    "parallel::mclapply(1:2, work, mc.cores = 2)"
  ))
  children <- integer()
  withr::defer(for (child in children) tools::pskill(child, tools::SIGKILL))
  expect_true(wait_for(function() {
    children <<- attr(dump_stack(pid), "children")
    length(children) == 2
  }))
  work <- "work"
  for (child in children) wait_for_stack(child, c("Sys.sleep", work, "lapply"))
  x <- profile_until(
    pid, function(x) length(unique(x$samples$source_id)) == 3, clock = "wall", children = TRUE, seconds = 0.5
  )
  expect_setequal(x$sources$source_uri, paste0("pid:", c(pid, children)))
  roles <- x$.source_attributes$value[x$.source_attributes$key == "profile.process.role"]
  expect_identical(roles, c("master", rep(paste("fork of", pid), 2)))
  frames <- as_tibble(x)
  is_child <- x$sources$source_uri != paste0("pid:", pid)
  for (source in x$sources$source_id[is_child]) {
    expect_true(work %in% frames$name[frames$source_id == source])
  }
  expect_false(work %in% frames$name[frames$source_id %in% x$sources$source_id[!is_child]])
  expect_match(format(dump_stack(pid), width = 1000), "started the processes", all = FALSE)
})

# Their parent is the first process of the system.
test_that("workers of a cluster are recorded with the process that they work for", {
  skip_without_processes()
  workers <- withr::local_tempfile()
  pid <- local_r_process(c(
    "cluster <- parallel::makeCluster(2)",
    sprintf("writeLines(as.character(unlist(parallel::clusterCall(cluster, Sys.getpid))), '%s')", workers),
    "ready()",
    "parallel::clusterApply(cluster, 1:2, function(i) Sys.sleep(1e6))"
  ))
  withr::defer(tools::pskill(as.integer(readLines(workers)), tools::SIGKILL))
  # An R process that works for nobody.
  other <- local_r_process(c("ready()", "Sys.sleep(1e6)"))
  x <- profile_until(
    pid, function(x) length(unique(x$samples$source_id)) == 3, clock = "wall", children = TRUE, seconds = 1
  )
  expect_identical(unique(source_attribute(x, "process.executable.name")), "R")
  roles <- x$.source_attributes$value[x$.source_attributes$key == "profile.process.role"]
  expect_identical(roles, c("master", "worker 1 of 2", "worker 2 of 2"))
  figures <- summary(x, by = "process")$process
  expect_setequal(figures, paste0(roles, ", pid ", sub("pid:", "", x$sources$source_uri)))
  expect_setequal(summary(x, by = "source")$source, x$sources$source_uri)
  expect_setequal(summary(x, by = "run")$run, paste0("run-", 1:3))
  expect_output(print(x), "1 master, 2 workers, ")
  one <- filter_profile(x, labels = c(process = figures[[1]]))
  expect_length(unique(one$samples$source_id), 1)
  expect_false(paste0("pid:", other) %in% x$sources$source_uri)
  expect_length(unique(profile_process(pid, seconds = 0.1, clock = "wall")$samples$source_id), 1)
})

test_that("runs have the same names before and after pprof", {
  one <- read_rprof(textConnection(c("sample.interval=20000", "\"f\" ", "\"g\" \"f\" ")), source_uri = "a.out")
  x <- combine_profiles(one, one)
  path <- withr::local_tempfile(fileext = ".pb.gz")
  write_pprof(x, path)
  expect_identical(summary(x, by = "run")$run, c("run-1", "run-2"))
  expect_identical(summary(read_pprof(path), by = "run")$run, c("run-1", "run-2"))
})
