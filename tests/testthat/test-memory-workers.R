# tier: gate
# Snapshots of several processes: a process, what it started, and its workers. Each is a source with a role.

# The bytes below a path, such as "globalenv > $x", in each process; the names are the roles.
bytes_below <- function(x, path) {
  paths <- paths_in(x)
  bytes <- ifelse(startsWith(paste0(paths$path, " "), paste0(path, " ")), paths$bytes, 0)
  sums <- tapply(bytes, factor(x$samples$source_id, x$sources$source_id), sum)
  rlang::set_names(as.vector(sums), roles_of(x))
}

# The size of a vector of numbers.
bytes_of <- function(length) 48 + 8 * length

test_that("forks of another process are read, each as a source", {
  skip_without_snapshots()
  skip_if_not_installed("parallel")
  pid <- local_r_process(c(
    "kept <- runif(1e6)",
    "work <- function(i) {",
    "  assign('known', runif(i * 1e5), globalenv())",
    "  Sys.sleep(1e6)",
    "}",
    "ready()",
    "parallel::mclapply(1:2, work, mc.cores = 2)"
  ))
  children <- integer()
  withr::defer(for (child in children) tools::pskill(child, tools::SIGKILL))
  expect_true(wait_for(function() {
    children <<- attr(dump_stack(pid), "children")
    length(children) == 2
  }))
  for (child in children) wait_for_stack(child, c("Sys.sleep", "work"))
  x <- snapshot_memory(pid, children = TRUE)
  expect_s3_class(validate_profile(x), "profile_data")
  expect_identical(x$sources$source_uri, paste0("pid:", c(pid, children)))
  fork <- paste("fork of", pid)
  expect_identical(roles_of(x), c("master", fork, fork))
  expect_setequal(bytes_below(x, "globalenv > $known"), c(0, bytes_of(c(1e5, 2e5))))
  expect_identical(unname(bytes_below(x, "globalenv > $kept")), rep(bytes_of(1e6), 3))
  figures <- summary(x, by = "process")
  expect_setequal(figures$process, paste0(roles_of(x), ", pid ", c(pid, children)))
  expect_identical(sum(figures$total), attr(holders(x), "sum"))
  expect_match(format(x, width = 200), paste0("heap pid:", children[[1]], " (", fork, ")"), fixed = TRUE, all = FALSE)
  expect_true(all(figures$process %in% holders(x, n = 100, by = "process")$held_by))
  one <- filter_profile(x, labels = c(process = figures$process[[1]]))
  expect_identical(attr(holders(one), "sum"), figures$total[[1]])
  expect_identical(snapshot_memory(pid)$sources$source_uri, paste0("pid:", pid))
})

test_that("a process that cannot be read is named, and the others are returned", {
  skip_without_snapshots()
  pid <- local_r_process(sleeping_code)
  # Not R.
  other <- as.integer(system2("sh", c("-c", shQuote("sleep 1000 > /dev/null 2>&1 & echo $!")), stdout = TRUE))
  withr::defer(tools::pskill(other))
  expect_warning(x <- snapshot_memory(pid, children = other), class = "profile_warning_incomplete")
  expect_identical(roles_of(x), "master")
  warning <- rlang::catch_cnd(snapshot_memory(pid, children = other), "warning")
  expect_match(conditionMessage(warning), sprintf("worker 1 of 1, pid %d: .*does not run R", other))
  expect_identical(warning$unread, other)
  expect_error(snapshot_memory(other, children = TRUE), "does not run R", class = "profile_error_process")
  expect_error(snapshot_memory(pid, children = 2^30), class = "profile_error_process")
})

# In a fresh process, which has no other children.
test_that("a session reads itself, and its workers by a helper", {
  skip_without_snapshots()
  skip_if_not_installed("parallel")
  file <- withr::local_tempfile()
  expect_ran(run_r(c(
    "library(profile)",
    "kept <- runif(1e6)",
    "alone <- snapshot_memory(children = TRUE)",
    "cluster <- parallel::makeCluster(2)",
    "grow <- function(i) { assign('known', runif(1e5 * i), globalenv()); Sys.getpid() }",
    "pids <- unlist(parallel::clusterApply(cluster, 1:2, grow))",
    "job <- parallel::mcparallel({ mine <- runif(3e5); Sys.sleep(1e6) })",
    "before <- snapshot_memory(children = TRUE)",
    # What waits for a child is not disturbed.
    "tools::pskill(job$pid, tools::SIGKILL)",
    "collected <- suppressWarnings(parallel::mccollect(job))",
    "status <- system('exit 3')",
    "sizes <- unlist(parallel::clusterCall(cluster, function() length(known)))",
    "invisible(parallel::clusterApply(cluster, 1:2, function(i) assign('more', runif(2e5 * i), globalenv())))",
    "after <- snapshot_memory(children = cluster)",
    "left <- list.files(tempdir(), '^children-')",
    "parallel::stopCluster(cluster)",
    sprintf("saveRDS(mget(c('alone', 'pids', 'before', 'after', 'status', 'sizes', 'left')), '%s')", file)
  )))
  found <- readRDS(file)
  expect_identical(c(nrow(found$alone$sources), roles_of(found$alone)), c("1", NA))
  expect_s3_class(validate_profile(found$before), "profile_data")
  workers <- paste("worker", 1:2, "of 2")
  expect_setequal(sub(" of [0-9]{2,}$", "", roles_of(found$before)), c("master", "fork", workers))
  expect_identical(found$status, 3L)
  expect_identical(found$sizes, c(100000L, 200000L))
  expect_identical(found$left, character())
  expect_identical(bytes_below(found$before, "globalenv > $kept")[c("master", workers)], rlang::set_names(
    c(bytes_of(1e6), 0, 0), c("master", workers)
  ))
  known <- bytes_below(found$before, "globalenv > $known")
  uri <- found$before$sources$source_uri
  expect_identical(unname(known[match(paste0("pid:", found$pids), uri)]), bytes_of(c(1e5, 2e5)))
  expect_setequal(roles_of(found$after), c("master", workers))
  growth <- compare_profiles(found$before, found$after, min_share = 0)
  of_path <- function(path) growth$growth[match(path, growth$held_by)]
  expect_setequal(of_path(paste(c("worker 1", "worker 2"), "> globalenv > $more")), bytes_of(c(2e5, 4e5)))
  processes <- attr(growth, "processes")
  expect_match(processes$process, "^fork of [0-9]+, pid [0-9]+ [(]only in base[)]$", all = FALSE)
  expect_identical(sum(processes$growth), attr(growth, "whole")$growth)
})

# ---- Comparing ---------------------------------------------------------------------

# A snapshot of processes; the names of `bytes` are their roles, or none. Each holds some of them in `$x`.
snapshot_of_processes <- function(pid, bytes, start = "2026-01-01T00:00:00Z") {
  parts <- Map(function(pid, role, bytes, start) {
    x <- snapshot(c("globalenv;$x;numeric", "base;$f();in code;bytecode"), c(bytes, 1000), pid = pid)
    known <- c(process.pid = pid, process.creation.time = start, if (!is.na(role)) c(profile.process.role = role))
    x$.source_attributes <- tibble::tibble(
      source_id = 1L, key = names(known), type = "string", value = unname(known), unit = NA_character_
    )
    x
  }, pid, names(bytes) %||% NA, unname(bytes), start)
  combine_profiles(unname(parts))
}

test_that("a process is compared with itself, or with the one of its role", {
  base <- snapshot_of_processes(1:4, c(master = 10, `worker 1 of 2` = 20, `worker 2 of 2` = 30, `fork of 1` = 40))
  # Worker 1 has ended, so that worker 2 has become the first one, and there is another second one.
  new <- snapshot_of_processes(c(1, 3, 5, 6), c(
    master = 11, `worker 1 of 2` = 33, `worker 2 of 2` = 100, `fork of 1` = 45
  ))
  growth <- compare_profiles(base, new)
  processes <- attr(growth, "processes")
  expect_identical(processes$process, c(
    "worker 2 of 2, pid 5 (only in new)", "worker 1 of 2, pid 2 (only in base)",
    "fork of 1, pid 6, before pid 4", "worker 1 of 2, pid 3", "master, pid 1"
  ))
  expect_identical(processes$growth, c(1100, -1020, 5, 3, 1))
  expect_identical(processes$growth, processes$new - processes$base)
  all <- compare_profiles(base, new, min_share = 0)
  expect_identical(all$held_by, c(processes$process[1:2], paste(c("fork", "worker 1", "master"), "> globalenv > $x")))
  expect_identical(all$growth, processes$growth)
  expect_snapshot(print(all))
  # A process that has the id of one that has ended.
  starts <- c("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")
  later <- snapshot_of_processes(1:2, c(master = 10, `worker 2 of 2` = 70), starts)
  expect_identical(
    attr(compare_profiles(base, later), "processes")$process[[3]], "worker 2 of 2, pid 2, before pid 3"
  )
})

test_that("processes of two runs are compared by their roles", {
  roles <- c("master", "worker 1 of 2", "worker 2 of 2", "callr", "child of 1", "child of 1")
  base <- snapshot_of_processes(1:6, rlang::set_names(1:6 * 100, roles))
  roles[5:6] <- "child of 11"
  new <- snapshot_of_processes(11:16, rlang::set_names(1:6 * 110, roles))
  processes <- attr(compare_profiles(base, new), "processes")
  expect_identical(processes$growth, 6:1 * 10)
  expect_identical(processes$process, paste0(rev(roles), ", pid ", 16:11, ", before pid ", 6:1))
  # Equal roles have their ids in paths.
  expect_identical(compare_profiles(base, new)$held_by[[1]], "child of 11, pid 16, before pid 6 > globalenv > $x")
  # A snapshot of the process alone has no role.
  alone <- snapshot_of_processes(1, 50)
  processes <- attr(compare_profiles(alone, base), "processes")
  expect_identical(processes$growth[processes$process == "master, pid 1"], 50)
  expect_identical(sum(grepl("(only in new)", processes$process, fixed = TRUE)), 5L)
  expect_null(attr(compare_profiles(alone, snapshot_of_processes(1, 60)), "processes"))
  # One process of each.
  one <- function(x, role) {
    filter_profile(x, labels = c(process = grep(role, summary(x, by = "process")$process, value = TRUE)))
  }
  expect_identical(compare_profiles(one(base, "worker 2"), one(new, "worker 2"))$held_by, "globalenv > $x")
})

test_that("OpenTelemetry keeps processes", {
  x <- snapshot_of_processes(1:2, c(master = 10, `fork of 1` = 20))
  y <- snapshot_of_processes(1:2, c(master = 15, `fork of 1` = 20))
  file <- withr::local_tempfile(fileext = ".otlp")
  write_otlp(y, file)
  growth <- compare_profiles(x, read_profile(file), by = "path")
  expect_identical(attr(growth, "processes"), attr(compare_profiles(x, y), "processes"))
  expect_identical(growth$held_by, "master > globalenv > $x")
})

test_that("snapshots that are not of different processes are not compared", {
  x <- snapshot_of_processes(1:2, c(master = 1, `fork of 1` = 2))
  expect_snapshot(error = TRUE, {
    compare_profiles(combine_profiles(x, x), x)
    compare_profiles(x, snapshot("base;list", 1))
  })
})

test_that("what processes hold is kept apart by any key of samples", {
  x <- snapshot_of_processes(1:2, c(master = 1000, `fork of 1` = 2000))
  expect_identical(holders(x)$held_by, c("globalenv > $x", "base > $f() > in code"))
  found <- holders(x, by = "process")
  expect_identical(attr(found, "sum"), 5000)
  expect_identical(found$retained[found$held_by %in% summary(x, by = "process")$process], c(3000, 2000))
  expect_identical(found$retained[found$held_by == "fork of 1, pid 2 > globalenv > $x"], 2000)
  expect_setequal(sub(" > .*", "", holders(x, by = "source")$held_by), c("pid:1", "pid:2"))
  x$.labels <- tibble::tibble(
    sample_id = 1L, key = "cache", str = "a", num = NA_real_, unit = NA_character_
  )
  expect_setequal(sub(" > .*", "", holders(x, by = "cache")$held_by), c("a", "globalenv", "base"))
  expect_error(holders(x, by = "route"), "has the label `route`", class = "profile_error_argument")
  expect_error(holders(x, by = 1), "one string", class = "profile_error_argument")
  x$samples$source_id[[1]] <- 99L
  expect_error(holders(x, by = "process"), class = "profile_error_invalid")
})
