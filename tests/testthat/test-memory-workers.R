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
  for (child in children) wait_for_stack(child, c("Sys.sleep", "FUN (code.R:2)"))
  x <- memory_profile(pid, children = TRUE)
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
  one <- filter_profile(x, labels = c(process = figures$process[[1]]))
  expect_identical(attr(holders(one), "sum"), figures$total[[1]])
  expect_identical(memory_profile(pid)$sources$source_uri, paste0("pid:", pid))
})

test_that("a process that cannot be read is named, and the others are returned", {
  skip_without_snapshots()
  pid <- local_r_process(sleeping_code)
  # Not R.
  other <- as.integer(system2("sh", c("-c", shQuote("sleep 1000 > /dev/null 2>&1 & echo $!")), stdout = TRUE))
  withr::defer(tools::pskill(other))
  expect_warning(x <- memory_profile(pid, children = other), class = "profile_warning_incomplete")
  expect_identical(roles_of(x), "master")
  warning <- rlang::catch_cnd(memory_profile(pid, children = other), "warning")
  expect_match(conditionMessage(warning), sprintf("worker 1 of 1, pid %d: .*does not run R", other))
  expect_identical(warning$unread, other)
  expect_error(memory_profile(other, children = TRUE), "does not run R", class = "profile_error_process")
  expect_error(memory_profile(pid, children = 2^30), class = "profile_error_process")
})

# In a fresh process, which has no other children.
test_that("a session reads itself, and its workers by a helper", {
  skip_without_snapshots()
  skip_if_not_installed("parallel")
  file <- withr::local_tempfile()
  expect_ran(run_r(c(
    "library(profile)",
    "kept <- runif(1e6)",
    "alone <- memory_profile(children = TRUE)",
    "cluster <- parallel::makeCluster(2)",
    "grow <- function(i) { assign('known', runif(1e5 * i), globalenv()); Sys.getpid() }",
    "pids <- unlist(parallel::clusterApply(cluster, 1:2, grow))",
    "job <- parallel::mcparallel({ mine <- runif(3e5); Sys.sleep(1e6) })",
    "before <- memory_profile(children = TRUE)",
    # What waits for a child is not disturbed.
    "tools::pskill(job$pid, tools::SIGKILL)",
    "collected <- suppressWarnings(parallel::mccollect(job))",
    "status <- system('exit 3')",
    "sizes <- unlist(parallel::clusterCall(cluster, function() length(known)))",
    "invisible(parallel::clusterApply(cluster, 1:2, function(i) assign('more', runif(2e5 * i), globalenv())))",
    "after <- memory_profile(children = cluster)",
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
})
