# tier: gate
# Vectors of other processes than the recorded one: forks, workers, and those that are killed.

skip_without_hook_of_children <- function() {
  skip_on_cran()
  skip_without_processes()
  skip_if_not_installed("parallel")
}

# Ten copies of one vector.
copy_often <- compiler::cmpfun(function(n) {
  x <- numeric(n)
  for (i in 1:10) {
    y <- x
    y[1] <- i
  }
  length(y)
})
bytes_of <- function(n) 48 + 8 * n

# The number of copies of such vectors by the roles of their processes.
copies_by_process <- function(x, n) {
  copied <- x$sample_values[x$sample_values$type == "copy_space" & x$sample_values$value >= bytes_of(n), ]
  source <- x$samples$source_id[match(copied$sample_id, x$samples$sample_id)]
  sums <- tapply(copied$value, factor(source, x$sources$source_id), sum, default = 0)
  rlang::set_names(as.vector(sums) %/% bytes_of(n), source_attribute(x, "profile.process.role"))
}

test_that("forks count for themselves, however they end", {
  skip_without_hook_of_children()
  n <- 5000
  work <- function(i) {
    switch(
      i,
      copy_often(n),
      copy_often(n),
      {
        copy_often(n)
        stop("failed")
      },
      {
        copy_often(n)
        tools::pskill(Sys.getpid(), tools::SIGKILL)
        Sys.sleep(60)
      },
      {
        # A fork of a fork.
        copy_often(n)
        parallel::mccollect(parallel::mcparallel(copy_often(n)))
      }
    )
  }
  run <- function() {
    copy_often(n)
    jobs <- lapply(1:5, function(i) parallel::mcparallel(work(i)))
    try(parallel::mccollect(jobs), silent = TRUE)
    copy_often(n)
  }
  x <- suppressWarnings(suppressMessages(record_profile(run(), memory = "exact", children = TRUE)))
  copies <- copies_by_process(x, n)
  expect_identical(copies[["master"]], 20)
  of_session <- paste("fork of", Sys.getpid())
  expect_identical(unname(copies[names(copies) == of_session & copies > 0]), rep(10, 5))
  inner <- copies[!names(copies) %in% c("master", of_session) & copies > 0]
  expect_identical(unname(inner), 10)
  expect_match(names(inner), "^fork of ")
  expect_identical(validate_profile(x), x)
  # The callers of the recorded code are left out, in forks as well.
  functions <- unique(as_tibble(x)$name)
  expect_false(any(c("record_profile", "test_that") %in% functions))
  expect_true("copy_often" %in% functions)
  # What is in use is known only of a process that has ended the recording.
  in_use <- x$sample_values$sample_id[x$sample_values$type == "inuse_space"]
  expect_identical(unique(x$samples$source_id[x$samples$sample_id %in% in_use]), 1L)
  expect_identical(unique(source_attribute(x, "profile.memory")[copies > 0]), "exact")
  expect_false(rust(rust_allocations_on(), NULL))
  # Each process has its own peak, of which a vector and its copy are part.
  at_peak <- x$sample_values[x$sample_values$type == "peak_space", ]
  at_peak$source <- x$samples$source_id[match(at_peak$sample_id, x$samples$sample_id)]
  expect_true(all(tapply(at_peak$value, at_peak$source, sum) >= 2 * bytes_of(n)))
})

test_that("workers count for themselves, and end to", {
  skip_without_hook_of_children()
  n <- 5000
  existing <- parallel::makePSOCKcluster(1)
  withr::defer(parallel::stopCluster(existing))
  run <- function() {
    new <- parallel::makePSOCKcluster(1)
    parallel::clusterCall(new, copy_often, n)
    parallel::clusterCall(existing, copy_often, n)
    parallel::clusterCall(new, function(copy, n) parallel::mccollect(parallel::mcparallel(copy(n))), copy_often, n)
    parallel::stopCluster(new)
  }
  x <- suppressWarnings(suppressMessages(record_profile(run(), memory = "exact", children = existing)))
  copies <- copies_by_process(x, n)
  expect_identical(unname(copies[copies > 0]), c(10, 10, 10))
  # The role of a worker that ends may be unknown, since it may have ended before it was looked at, and a fork has the socket
  # of its worker, so it may be taken for one at first. That of the worker that stays is certain.
  pid <- parallel::clusterCall(existing, Sys.getpid)[[1]]
  stays <- source_attribute(x, "process.pid") %in% as.character(pid)
  expect_identical(unname(copies[stays]), 10)
  expect_match(names(copies)[stays], "^worker")
  # It goes on without the hook, and can be recorded again.
  hooked <- function() {
    numeric(1000)
    profile:::rust(profile:::rust_allocations_on(), NULL)
  }
  environment(hooked) <- baseenv()
  expect_identical(parallel::clusterCall(existing, hooked), list(FALSE))
  x <- suppressMessages(record_profile(parallel::clusterCall(existing, copy_often, n), memory = "exact", children = existing))
  copies <- copies_by_process(x, n)
  expect_identical(unname(copies[copies > 0]), 10)
})

test_that("processes whose vectors are not recorded are named", {
  skip_without_hook_of_children()
  existing <- parallel::makePSOCKcluster(1)
  withr::defer(parallel::stopCluster(existing))
  pid <- parallel::clusterCall(existing, Sys.getpid)[[1]]
  said <- NULL
  withCallingHandlers(
    record_profile(parallel::clusterCall(existing, sum, 1), memory = "exact", children = pid),
    profile_message_memory = function(message) {
      said <<- c(said, conditionMessage(message))
      tryInvokeRestart("muffleMessage")
    }
  )
  expect_snapshot(cat(said), transform = function(text) gsub(pid, "<pid>", text))
})

test_that("a script that is killed keeps its vectors, and those of its forks", {
  skip_without_hook_of_children()
  script <- withr::local_tempfile(fileext = ".R", lines = c(
    "copy_often <- function(n) {", "  x <- numeric(n)", "  for (i in 1:10) {", "    y <- x", "    y[1] <- i", "  }", "}",
    "copy_often(5000)", "parallel::mccollect(parallel::mcparallel({", "  copy_often(5000)", "  quit('no')", "}))",
    "tools::pskill(Sys.getpid(), tools::SIGKILL)", "Sys.sleep(60)"
  ))
  output <- withr::local_tempfile(fileext = ".pb.gz")
  ended <- run_program("record", "--memory", "exact", "--children", "--quiet", "-o", output, script)
  expect_equal(ended$status, 137)
  x <- read_profile(output)
  copied <- summary(x, type = "copy_space", by = "line")
  row <- copied[copied$line %in% 5, ]
  expect_equal(row$self %/% bytes_of(5000), 20)
  expect_false("inuse_space" %in% x$sample_values$type)
})
