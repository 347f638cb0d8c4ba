# tier: thorough
# Processes that reach the limit of a real cgroup, which root may create if the system permits it.

# Creates a cgroup with a limit in MB, and returns shell code that moves the shell into it.
local_cgroup <- function(limit, envir = parent.frame()) {
  skip_without_snapshots()
  name <- paste0("profile-test-", Sys.getpid())
  version_1 <- file.path("/sys/fs/cgroup/memory", name)
  is_version_1 <- dir.exists("/sys/fs/cgroup/memory")
  folder <- if (is_version_1) version_1 else file.path("/sys/fs/cgroup", name)
  file <- file.path(folder, if (is_version_1) "memory.limit_in_bytes" else "memory.max")
  made <- suppressWarnings(dir.create(folder, showWarnings = FALSE))
  withr::defer(wait_for(function() suppressWarnings(system2("rmdir", folder, stderr = FALSE)) == 0), envir)
  if (!made || !file.exists(file)) skip("no cgroup with a limit can be created")
  limited <- tryCatch(
    {
      writeLines(sprintf("%.0f", limit * 2^20), file)
      TRUE
    },
    error = function(error) FALSE, warning = function(warning) FALSE
  )
  if (!limited) skip("the limit of a cgroup cannot be set")
  sprintf("echo $$ > %s", file.path(folder, "cgroup.procs"))
}

growing <- "keep <- list(); for (i in 1:100) { keep[[i]] <- rep(1, 3e6); Sys.sleep(0.05) }"

test_that("a script that reaches the limit of its cgroup is named, with a snapshot", {
  enter <- local_cgroup(400)
  folder <- withr::local_tempdir()
  at <- function(name) file.path(folder, name)
  path <- script(paste0("f <- function() { ", growing, " }"), "f()")
  command <- paste(
    enter, ";", "exec", shQuote(program()), "record --snapshot peak -o", at("out.pb.gz"), path, ">", at("log"), "2>&1"
  )
  withr::local_envvar(R_LIBS = paste(.libPaths(), collapse = ":"))
  expect_identical(system2("sh", c("-c", shQuote(command))), 137L)
  said <- readLines(at("log"))
  expect_match(said[[1]], "^profile: The script was killed by the kernel to free memory. Its cgroup has a limit of 400MB")
  x <- read_profile(at("out-peak.pb.gz"))
  expect_match(holders(x)$held_by[[1]], "^call of f[(][)] > [$]keep")
})

test_that("a fork that reaches the limit is named, whoever asks first how it ended", {
  enter <- local_cgroup(400)
  folder <- withr::local_tempdir()
  at <- function(name) file.path(folder, name)
  writeLines(with_package(
    "warned <- NULL",
    "x <- withCallingHandlers(record_profile(parallel::mclapply(1:2, function(i) {",
    paste0("  if (i == 2) { ", growing, " }"),
    "  Sys.sleep(0.5)",
    "}, mc.cores = 2), children = TRUE), profile_warning_incomplete = function(warning) {",
    "  warned <<- c(warned, conditionMessage(warning))",
    "  invokeRestart('muffleWarning')",
    "})",
    sprintf("saveRDS(list(x = x, warned = warned), '%s')", at("result.rds"))
  ), at("script.R"))
  run <- paste(enter, "; exec", shQuote(file.path(R.home("bin"), "Rscript")), at("script.R"), ">", at("log"), "2>&1")
  expect_identical(system2("sh", c("-c", shQuote(run))), 0L)
  result <- readRDS(at("result.rds"))
  expect_match(result$warned, "fork of [0-9]+, (was killed by the kernel|ended when the kernel killed a process of its cgroup) to free")
  expect_match(result$warned, "Its cgroup has a limit of 400MB")
  peak <- as.list(describe_profile(result$x))$peak
  expect_identical(peak$limit, 400 * 2^20)
  expect_identical(peak$kills, 1)
  expect_gt(max(peak$processes$peak), 150 * 2^20)
})
