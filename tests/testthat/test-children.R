# tier: gate
# `record_profile(children = TRUE)`: one recording of R and what works for it. Live recordings say which processes there
# are, and which functions each has.

skip_without_children <- function() {
  skip_without_processes()
  skip_if_not_installed("parallel")
}

# Computes until `count` samples are likely, in all processes with the same code.
compute <- compiler::cmpfun(function(n) {
  x <- 0
  for (i in seq_len(n)) x <- x + sqrt(i)
  x
})
work_one <- function(n) compute(n)
work_two <- function(n) compute(n)

# Records again with more work until each process has samples.
children_recorded <- function(code, processes, ..., is_enough = function(x) TRUE) {
  n <- 2e6
  repeat {
    x <- record_profile(code(n), children = TRUE, ...)
    found <- unique(x$samples$source_id)
    have_samples <- nrow(x$sources) >= processes && length(setdiff(x$sources$source_id[-1], found)) == 0
    if (have_samples && is_enough(x) || n > 1e9) {
      expect_s3_class(validate_profile(x), "profile_data")
      return(x)
    }
    n <- 2 * n
  }
}

roles <- function(x) source_attribute(x, "profile.process.role")

# The functions of each source.
functions_by_source <- function(x) {
  frames <- as_tibble(x)
  lapply(x$sources$source_id, function(id) unique(frames$name[frames$source_id == id]))
}

test_that("forks are recorded, without the callers of the master, and keep their names in pprof files", {
  skip_without_children()
  x <- children_recorded(function(n) {
    parallel::mclapply(1:2, function(i) if (i == 1) work_one(n) else work_two(n), mc.cores = 2)
  }, 3, is_enough = function(x) {
    # The first samples of a fork may be of its start.
    all(vapply(functions_by_source(x)[-1], function(names) any(c("work_one", "work_two") %in% names), NA))
  })
  own <- Sys.getpid()
  expect_identical(roles(x), c("master", rep(paste("fork of", own), 2)))
  expect_identical(x$sources$source_type, c("rprof", "process", "process"))
  expect_identical(x$sources$source_uri[[1]], paste0("pid:", own))
  functions <- functions_by_source(x)
  expect_true("work_one" %in% functions[[2]])
  expect_false("work_two" %in% functions[[2]])
  expect_true("work_two" %in% functions[[3]])
  expect_false("work_one" %in% functions[[3]])
  # As in a recording without children.
  outermost <- unique(vapply(functions_of_samples(x), function(names) names[[length(names)]], ""))
  expect_identical(outermost, "code")
  # One unit for all.
  types <- unique(x$sample_values[x$sample_values$type %in% c("cpu", "wall", "samples"), c("type", "unit")])
  expect_setequal(types$type, c("cpu", "wall"))
  expect_identical(unique(types$unit), "nanoseconds")
  expect_identical(unique(x$sources$.default_type), "cpu")
  expect_gte(as.numeric(source_attribute(x, "profile.process.forks")[[1]]), 2)
  before <- summary(x, by = "process")
  expect_setequal(before$process, names_of_processes(x))
  # Those that were seen: this session only waits, and may not be one of them.
  before <- before[before$process %in% names_of_processes(x)[x$sources$source_id %in% x$samples$source_id], ]
  path <- withr::local_tempfile(fileext = ".pb.gz")
  write_pprof(x, path)
  expect_identical(summary(read_pprof(path), by = "process")[c("process", "total")], before[c("process", "total")])
})

test_that("workers of a cluster are recorded that start before and during the recording", {
  skip_without_children()
  x <- children_recorded(function(n) {
    cluster <- parallel::makeCluster(2)
    on.exit(parallel::stopCluster(cluster))
    parallel::clusterApply(cluster, c(n, n), compute)
  }, 3)
  expect_identical(roles(x), c("master", "worker 1 of 2", "worker 2 of 2"))
  cluster <- parallel::makeCluster(2)
  withr::defer(parallel::stopCluster(cluster))
  x <- children_recorded(function(n) parallel::clusterApply(cluster, c(n, n), compute), 3)
  expect_identical(roles(x), c("master", "worker 1 of 2", "worker 2 of 2"))
  pids <- as.character(unlist(parallel::clusterCall(cluster, Sys.getpid)))
  expect_setequal(source_attribute(x, "process.pid")[-1], pids)
  # Named by the user, and in this order.
  x <- record_profile(parallel::clusterApply(cluster, 1:2, identity), children = cluster)
  expect_identical(source_attribute(x, "process.pid")[-1], pids)
})

test_that("workers of the package future are recorded", {
  skip_without_children()
  skip_if_not_installed("future")
  future::plan("multisession", workers = 2)
  withr::defer(future::plan("sequential"))
  x <- children_recorded(function(n) {
    running <- lapply(1:2, function(i) future::future(compute(n), globals = list(compute = compute, n = n)))
    future::value(running)
  }, 3)
  expect_identical(roles(x), c("master", "worker 1 of 2", "worker 2 of 2"))
})

# Whether what workers did adds up, and what they are.
expect_bill <- function(x, workers) {
  bill <- as.list(describe_profile(x))$parallel
  expect_identical(bill$workers, workers)
  expect_gt(bill$ticks, 0)
  expect_equal(sum(bill$classes$share), 1)
  expect_equal(sum(bill$classes$seconds), workers * bill$seconds)
  expect_equal(colSums(bill$processes[bill_classes]), rlang::set_names(bill$classes$seconds, bill_classes))
  expect_true(all(bill$processes$process %in% names_of_processes(x)))
  expect_gte(bill$most, min(workers, bill$most))
  in_tasks <- sum(bill$classes$seconds[1:3])
  expect_gt(in_tasks, 0)
  expect_match(format(describe_profile(x)), "^Parallel:  [0-9]+ workers? w", all = FALSE)
}

test_that("what workers did adds up", {
  skip_without_children()
  is_billed <- function(x) isTRUE(sum(as.list(describe_profile(x))$parallel$classes$seconds[1:3]) > 0)
  x <- children_recorded(function(n) parallel::mclapply(c(n, n), compute, mc.cores = 2), 3, is_enough = is_billed)
  expect_bill(x, 2L)
  cluster <- parallel::makeCluster(2)
  withr::defer(parallel::stopCluster(cluster))
  of_cluster <- function(n) parallel::clusterApply(cluster, c(n, n), compute)
  expect_bill(children_recorded(of_cluster, 3, is_enough = is_billed), 2L)
  # By the clock of the session itself only R 4.4 can record.
  expect_setequal(names(summary(x, by = "process"))[-(1:6)], bill_classes)
})

test_that("memory and native code are recorded with children", {
  skip_without_children()
  # Samples of this session, too.
  draw <- function(n) for (i in seq_len(n / 1e4)) stats::runif(1e5)
  x <- children_recorded(function(n) {
    draw(n)
    parallel::mclapply(c(n, n), draw, mc.cores = 2)
  }, 3, native = TRUE)
  expect_true("alloc_size" %in% x$sample_values$type)
  for (id in x$sources$source_id) {
    of_source <- x$sample_locations$sample_id %in% x$samples$sample_id[x$samples$source_id == id]
    locations <- match(x$sample_locations$location_id[of_source], x$locations$location_id)
    expect_true("native" %in% x$locations$.frame_type[locations])
  }
})

test_that("nothing is left if the profiler cannot start", {
  skip_without_children()
  withr::local_options(profile.recording_mb = -1)
  for (children in c(TRUE, FALSE)) {
    expect_error(record_profile(1, native = TRUE, children = children), class = "profile_error_argument")
  }
  expect_identical(Sys.getenv(variable_of_recording, NA), NA_character_)
  expect_length(list.files(tempdir(), "^children-"), 0)
})

test_that("an error of the expression ends the recording of children", {
  skip_without_children()
  skip_if_not_installed("parallel")
  expect_message(
    expect_error(record_profile(stop("Oh no"), children = TRUE), "Oh no"), "last_profile()",
    class = "profile_message_recorded"
  )
  expect_identical(roles(last_profile()), "master")
  expect_identical(Sys.getenv(variable_of_recording, NA), NA_character_)
})

test_that("what this process is recorded with is kept if the helper is killed", {
  skip_without_children()
  x <- NULL
  expect_warning(
    x <- record_profile({
      folder <- in_folder(dirname(tempdir()), Sys.getenv(variable_of_recording))
      tools::pskill(readRDS(file.path(folder, "children", "pid.rds")), tools::SIGKILL)
      compute(1e7)
    }, children = TRUE),
    "has ended", class = "profile_warning_incomplete"
  )
  expect_s3_class(validate_profile(x), "profile_data")
  expect_identical(x$sources$source_type, "rprof")
})

test_that("processes that end at any time do no harm", {
  skip_without_children()
  x <- suppressWarnings(record_profile({
    # Many short ones, one that is killed, and one that executes another program.
    for (i in 1:30) parallel::mccollect(parallel::mcparallel(compute(1e4)))
    killed <- parallel::mcparallel(compute(1e12))
    Sys.sleep(0.1)
    tools::pskill(killed$pid, tools::SIGKILL)
    suppressWarnings(parallel::mccollect(killed))
    system2("sh", c("-c", shQuote(paste(file.path(R.home("bin"), "Rscript"), "--version > /dev/null; exec true"))))
  }, children = TRUE), "profile_warning_incomplete")
  expect_s3_class(validate_profile(x), "profile_data")
  forks <- as.numeric(source_attribute(x, "profile.process.forks")[[1]])
  missed <- as.numeric(source_attribute(x, "profile.process.forks.missed")[[1]])
  expect_gte(forks, 31)
  expect_lte(missed, forks)
  expect_gte(missed + sum(roles(x) != "master"), 31)
})

test_that("a script is recorded with its children, also if it is killed", {
  skip_without_children()
  folder <- withr::local_tempdir()
  output <- file.path(folder, "out.pb.gz")
  program <- file.path(dirname(getNamespaceInfo("profile", "path")), "profile", "exec", "profile")
  skip_if_not(file.exists(program))
  withr::local_envvar(R_LIBS = paste(.libPaths(), collapse = ":"))
  script <- file.path(folder, "script.R")
  # Records again with more work until each process has samples.
  run <- function(status, ...) {
    n <- 2e6
    repeat {
      writeLines(c(
        "work <- function(n) {", "  x <- 0", "  for (i in seq_len(n)) x <- x + sqrt(i)", "  x", "}",
        sprintf("y <- parallel::mclapply(c(%.0f, %.0f), work, mc.cores = 2)", n, n), ...
      ), script)
      command <- paste("exec", shQuote(program), "record --children -o", shQuote(output), shQuote(script))
      expect_identical(
        system2("sh", c("-c", shQuote(command)), stdout = FALSE, stderr = file.path(folder, "err")), status
      )
      x <- read_pprof(output)
      unlink(output)
      if (length(grep("^fork of [0-9]+, pid", summary(x, by = "process")$process)) == 2 || n > 1e9) {
        return(x)
      }
      n <- 2 * n
    }
  }
  x <- run(3L, "quit(status = 3)")
  processes <- summary(x, by = "process")$process
  expect_length(grep("^fork of [0-9]+, pid", processes), 2)
  lines <- as_tibble(x)
  expect_true(any(lines$line %in% 3 & grepl("script.R$", lines$filename)))
  x <- run(137L, "tools::pskill(Sys.getpid(), tools::SIGKILL)")
  expect_length(grep("^fork of [0-9]+, pid", summary(x, by = "process")$process), 2)
})

test_that("a recording survives that a fork removes the session's folder, and leaves no files", {
  skip_without_children()
  # In a session of its own, whose folder R removes, and beside which no other recording has files.
  withr::local_envvar(TMPDIR = withr::local_tempdir())
  script <- withr::local_tempfile(fileext = ".R")
  writeLines(c(
    "library(profile)",
    "files <- function() list.files(dirname(tempdir()), '^profile-recording-|^hook-')",
    "before <- files()",
    "leave <- function() suppressWarnings(parallel::mccollect(parallel::mcparallel(quit('no'))))",
    "compute <- function(n) for (i in seq_len(n)) sqrt(i)",
    "for (children in c(FALSE, TRUE)) for (memory in list(TRUE, 'exact')) {",
    "  x <- suppressWarnings(record_profile({ leave(); compute(1e6) }, children = children, memory = memory))",
    "  stopifnot(!dir.exists(tempdir()), nrow(x$sources) >= 1)",
    "  tempdir(check = TRUE)",
    "}",
    "cat(setdiff(files(), before), 'done')"
  ), script)
  # A fork that ends moves its parent's position in the file of a script, which source() has read already.
  code <- paste0("source(", deparse(script), ")")
  said <- system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(code)), stdout = TRUE, stderr = FALSE)
  expect_identical(said, " done")
})

# ---- Where the system does not permit to look into others -----------------------------

# Programs that are started by `env`, such as the helper, may not look into other processes.
local_refusal <- function(envir = parent.frame()) {
  skip_without_native()
  folder <- built_once("refuse", function(folder) {
    refuse <- file.path(folder, "refuse")
    compiler <- strsplit(system2(file.path(R.home("bin"), "R"), c("CMD", "config", "CC"), stdout = TRUE), " ")[[1]]
    system2(compiler[[1]], c(compiler[-1], "-o", shQuote(refuse), shQuote(test_path("processes", "refuse.c"))))
    writeLines(c("#!/bin/sh", sprintf('exec "$(dirname "$0")/refuse" %s "$@"', Sys.which("env"))), file.path(folder, "env"))
    Sys.chmod(file.path(folder, "env"), "755")
  })
  withr::local_path(folder, .local_envir = envir)
  file.path(folder, "refuse")
}

test_that("workers that cannot even record themselves are named with the reason", {
  skip_without_children()
  skip_if(getRversion() >= "4.3", "R's profiler is what they use then")
  refuse <- local_refusal()
  script <- withr::local_tempfile(fileext = ".R")
  writeLines(c(
    "library(profile)",
    "options(cli.unicode = FALSE)",
    "cluster <- parallel::makeCluster(2)",
    "pids <- unlist(parallel::clusterCall(cluster, Sys.getpid))",
    "said <- tryCatch(",
    "  record_profile(parallel::clusterCall(cluster, sqrt, 1), children = cluster), warning = conditionMessage",
    ")",
    "for (pid in pids) said <- gsub(pid, 'PID', said)",
    "parallel::stopCluster(cluster)",
    "writeLines(said)"
  ), script)
  expect_snapshot(writeLines(system2(refuse, c(file.path(R.home("bin"), "Rscript"), shQuote(script)), stdout = TRUE)))
})

test_that("workers record themselves if the helper may not look into them", {
  skip_without_children()
  local_refusal()
  x <- children_recorded(function(n) {
    cluster <- parallel::makeCluster(2)
    on.exit(parallel::stopCluster(cluster))
    parallel::clusterApply(cluster, c(n, n), compute)
  }, 3)
  expect_identical(sort(roles(x)), c("master", "worker 1 of 2", "worker 2 of 2"))
  expect_identical(unique(x$sources$source_type[-1]), "process")
  expect_identical(unique(source_attribute(x, "process.executable.name")), "R")
  expect_true(all(c("cpu", "wall") %in% x$sample_values$type))
})

test_that("existing workers record themselves if their cluster is named", {
  skip_without_children()
  cluster <- parallel::makeCluster(2)
  withr::defer(parallel::stopCluster(cluster))
  local_refusal()
  expect_warning(
    record_profile(parallel::clusterApply(cluster, 1:2, identity), children = TRUE),
    "Without 2 processes .*: The system does not permit.*children = cluster", class = "profile_warning_incomplete"
  )
  n <- 4e6
  repeat {
    x <- record_profile(parallel::clusterApply(cluster, c(n, n), compute), children = cluster)
    if (length(unique(x$samples$source_id[x$samples$source_id > 1])) == 2 || n > 1e9) break
    n <- 2 * n
  }
  expect_setequal(roles(x), c("master", "worker 1 of 2", "worker 2 of 2"))
  # The agents have ended with the recording.
  states <- unlist(parallel::clusterCall(cluster, function() asNamespace("profile")$agent_state()))
  expect_false("running" %in% states)
})

test_that("existing workers of a named cluster permit the helper to look into them, where the system requires that", {
  skip_without_children()
  cluster <- parallel::makeCluster(1)
  withr::defer(parallel::stopCluster(cluster))
  has_loaded <- function() parallel::clusterCall(cluster, isNamespaceLoaded, "profile")[[1]]
  expect_false(has_loaded())
  replace_function("permit_helper", function(pid) TRUE)
  x <- record_profile(1, children = cluster)
  expect_identical(roles(x), c("master", "worker 1 of 1"))
  expect_true(has_loaded())
})

test_that("forks are missed if nobody may look into them", {
  skip_without_children()
  local_refusal()
  expect_warning(
    record_profile(parallel::mclapply(c(1e7, 1e7), compute, mc.cores = 2), children = TRUE),
    "Without [12] process|ended before they could be recorded", class = "profile_warning_incomplete"
  )
})

test_that("a process that starts after the recording has the user's profile", {
  folder <- withr::local_tempdir()
  own <- file.path(folder, "own.R")
  writeLines("cat('own profile\\n')", own)
  run <- function(user_profile) {
    withr::local_envvar(R_PROFILE_USER = user_profile)
    withr::local_envvar(variables_of_hook(file.path(folder, "gone")))
    code <- "cat(Sys.getenv('R_PROFILE_USER', 'none'), isNamespaceLoaded('profile'), ls(), '\\n')
      cat(grep('^R_PROFILE', names(Sys.getenv()), value = TRUE))"
    system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(code)), stdout = TRUE)
  }
  expect_identical(run(own), c("own profile", paste(own, "FALSE  "), "R_PROFILE_USER"))
  withr::local_dir(folder)
  writeLines("cat('default profile\\n')", ".Rprofile")
  expect_identical(run(NA), c("default profile", "none FALSE  "))
})

test_that("a process that cannot record itself says why", {
  folder <- withr::local_tempdir()
  save_complete(list(folder = folder, is_refused = TRUE, library = file.path(folder, "none")), folder, "recording.rds")
  variables <- variables_of_hook(file.path(folder, "recording.rds"))
  code <- "cat('done', Sys.getpid())"
  said <- withr::with_envvar(c(variables, R_LIBS = "", R_LIBS_SITE = "", R_LIBS_USER = ""), {
    system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(code)), stdout = TRUE)
  })
  pid <- sub("done ", "", said)
  dir.create(file.path(folder, "own-1"))
  own <- recorded_by_themselves(folder)
  expect_setequal(names(own), c("1", pid))
  expect_match(own[[pid]]$why, "profile")
  expect_match(own[["1"]]$why, "about to begin")
})

# ---- callr ------------------------------------------------------------------------------

# These tests come last, and start programs after forks have ended: processx, by which callr starts programs, takes the
# signal by which parallel notices the end of a fork, and R waits at its end for forks of which parallel does not know
# that they have ended, ten seconds.

test_that("programs are no forks", {
  skip_without_children()
  # It brings processx.
  skip_if_not_installed("callr")
  run <- getExportedValue("processx", "run")
  x <- record_profile({
    fork <- parallel::mcparallel(compute(1e6))
    parallel::mccollect(fork)
    wait_for(function() !dir.exists(file.path("/proc", fork$pid)), 10)
    for (i in 1:20) {
      run("true")
      system2("sh", c("-c", "true"))
    }
    compute(1e6)
  }, children = TRUE)
  expect_identical(source_attribute(x, "profile.process.forks")[[1]], "1")
  expect_identical(setdiff(roles(x), c("master", paste("fork of", Sys.getpid()))), character())
  expect_lte(nrow(x$sources), 2)
})

test_that("processes of callr and of system() are recorded", {
  skip_without_children()
  skip_if_not_installed("callr")
  x <- children_recorded(function(n) callr::r(compute, list(n)), 2)
  expect_identical(roles(x), c("master", "callr"))
  code <- "x <- 0; for (i in 1:%.0f) x <- x + sqrt(i)"
  x <- children_recorded(function(n) {
    system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(sprintf(code, n))), stdout = FALSE)
  }, 2)
  expect_match(roles(x)[[2]], "^child of [0-9]+$")
})

test_that("a fork that executes R is recorded from there on", {
  skip_without_children()
  skip_if_not_installed("callr")
  x <- children_recorded(function(n) {
    session <- callr::r_session$new()
    on.exit(session$close())
    session$run(compute, list(n))
  }, 2)
  expect_identical(roles(x), c("master", "callr"))
})

# ---- Without a live recording ----------------------------------------------------------

test_that("children are named in several ways", {
  expect_snapshot(error = TRUE, {
    check_children("a", quote(f()))
    check_children(-1, quote(f()))
    check_children(NA, quote(f()))
    check_children(NULL, quote(f()))
  })
  expect_identical(check_children(TRUE, NULL), list(any = TRUE, pids = integer()))
  expect_identical(check_children(FALSE, NULL), list(any = FALSE, pids = integer()))
  expect_identical(check_children(c(5, 6), NULL), list(any = TRUE, pids = 5:6))
})

# A profile with processes that have these roles. The first one is the master, with the id 1.
family_of <- function(roles, clock = NA, started = 10) {
  x <- combine_profiles()
  ids <- seq_along(roles)
  x$sources <- tibble::tibble(
    source_id = ids, source_type = "process", source_uri = paste0("pid:", ids), source_timestamp = started
  )
  of <- function(key, value) {
    tibble::tibble(source_id = ids, key = key, value = as.character(value), type = "string", unit = NA_character_)
  }
  x$.source_attributes <- rbind(
    of("process.pid", ids), of("profile.process.role", roles), of("profile.cpu.clock", clock)
  )
  x
}

# Processes into which the helper may not look.
refused_of <- function(pids, role = "worker", why = "It is forbidden.") {
  tibble::tibble(pid = as.character(pids), role = role, why = why)
}

test_that("forks of the master and of its forks are told from others", {
  x <- family_of(c("master", "fork of 1", "worker 1 of 1", "fork of 2", "fork of 3", "callr"))
  expect_identical(forks_since(x, 10), c(2L, 4L))
  expect_identical(forks_since(x, 11), integer())
  expect_identical(forks_since(family_of("master"), 10), integer())
})

test_that("forks that ended early are counted", {
  family <- family_of(c("master", "fork of 1", "callr", "worker 1 of 1"), clock = c(NA, 1e9, 2e9, 4e9))
  # Processes 1 to 4 were recorded, 9 was refused, 8 was left out.
  recorded <- list(
    profile = family, refused = refused_of(9, "fork of 1"), left_out = tibble::tibble(pid = "8", role = "fork of 1"),
    master = list(forks = c(2L, 8:15), cpu = 7)
  )
  counts <- count_missed_forks(recorded)
  expect_identical(counts, list(forks = 9L, missed = 6L, cpu = 4))
  expect_snapshot(cat(format_missed_forks(counts, 20)))
  expect_null(format_missed_forks(counts, 1000))
  expect_null(format_missed_forks(list(forks = 3, missed = 0, cpu = 4), 1))
  expect_null(format_missed_forks(list(forks = 3, missed = 1, cpu = 0.04), 0))
  recorded$master <- NULL
  expect_null(count_missed_forks(recorded))
})

test_that("forks that are the start of a program are no sources", {
  # Process 3 has executed a program, and so has 5, a fork of the fork 2. The worker 4 has a fork of its own.
  roles <- c("master", "fork of 1", "fork of 1", "worker 1 of 1", "fork of 2", "fork of 4")
  recorded <- list(profile = family_of(roles), master = list(forks = 2L))
  expect_identical(roles_of(without_programs(recorded, 10, NULL)), roles[c(1, 2, 4, 6)])
  # One that has computed is no program, whoever has created it.
  recorded$profile <- family_of(roles, clock = c(NA, 1e9, 3e7, 1e9, 1e6, 1e9))
  expect_identical(roles_of(without_programs(recorded, 10, NULL)), roles[c(1:4, 6)])
  recorded$master$forks <- c(2L, 3L, 5L)
  expect_identical(roles_of(without_programs(recorded, 10, NULL)), roles)
  recorded$master <- list(forks = NULL)
  expect_identical(roles_of(without_programs(recorded, 10, NULL)), roles)
})

test_that("workers that have recorded themselves are numbered, also those that the helper has not seen", {
  of <- function(pid) list(profile = family_of("master"), names = c(process.executable.name = "R"))
  recorded <- list(
    refused = refused_of(c(5, 7), role = c("worker 1 of 1", "child of 1")),
    own = list(`5` = of(5), `6` = of(6), `7` = of(7), `8` = list(why = "It is forbidden."))
  )
  x <- own_profiles(recorded)
  expect_identical(vapply(x, function(x) x$sources$source_uri, ""), c("pid:5", "pid:6", "pid:7"))
  expect_identical(
    vapply(x, function(x) utils::tail(x$.source_attributes$value, 1), ""),
    c("worker 1 of 2", "worker 2 of 2", "child of 1")
  )
})

test_that("what is missing is said", {
  family <- family_of("master")
  why <- paste0("Process ", 1:9, " must not be read.")
  why[[2]] <- "Process 2 is traced."
  recorded <- list(
    profile = family, refused = refused_of(1:9, why = why), left_out = refused_of(numeric()),
    own = list(
      `7` = list(profile = family), `8` = list(why = "Too many open files."), `10` = list(why = "Too many open files.")
    )
  )
  expect_snapshot(cat(format_missing_children(recorded), sep = "\n"))
  recorded$left_out <- refused_of(11:13)
  recorded$refused <- recorded$refused[7, ]
  recorded$own <- recorded$own[1]
  expect_snapshot(cat(format_missing_children(recorded), sep = "\n"))
})

test_that("samples of R's profiler get the times and amounts of its clock", {
  x <- read_rprof(textConnection(c("sample.interval=10000", rep("\"f\" ", 4))), source_uri = NA)
  x$sources$source_timestamp <- 1000
  # 10 ms of CPU time in the first 10 ms, then 20 ms of waiting, then 30 ms of CPU time.
  readings <- list(date = c(0, 10, 30, 60) * 1e6 + 1e12, cpu = c(0, 10, 10, 40) * 1e6)
  timed <- by_clock(x, "cpu", 0.06, readings, NULL)
  expect_equal(timed$samples$.timestamp - 1000, c(0.01, 0.04, 0.05, 0.06), tolerance = 1e-6)
  expect_s3_class(validate_profile(timed), "profile_data")
  expect_identical(unique(timed$sample_values[-1]), tibble::tibble(type = "cpu", unit = "nanoseconds", value = 1e7))
  by_wall <- by_clock(x, "wall", 0.06, readings, NULL)
  expect_identical(unique(by_wall$sample_values$type), "wall")
  # Others, such as allocations, keep their type.
  two <- by_clock(combine_profiles(x, x), "cpu", 0.04, readings, NULL)
  expect_setequal(two$sample_values$type, c("cpu", "samples"))
  expect_identical(two$sources$.duration_nanos, c(4e7, NA))
  attribute <- function(key) as.numeric(source_attribute(two, key)[[1]])
  expect_identical(attribute("profile.cpu.factor") * 4e7, attribute("profile.cpu.clock"))
})

test_that("there is a hint if others have worked meanwhile", {
  say <- function(cpu, elapsed) say_children(cpu, elapsed, "R", "`record_profile(..., children = TRUE)`")
  expect_snapshot(say(c(0.2, 3, 4.51), 4.1))
  # It did not wait, others did nothing, or there are none.
  expect_silent(say(c(4, 3), 4.1))
  expect_silent(say(c(0.2, 0.01), 4.1))
  expect_silent(say(0.2, 4.1))
  expect_silent(say(numeric(), 4.1))
  expect_silent(say(c(10, 3), 40))
})
