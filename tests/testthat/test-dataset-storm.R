# tier: thorough
# Writers and the compactor of a data set are killed at random moments, while another process writes and this one reads.
#
# The clock of all processes is a file with a time, which this process sets forward by less than an hour between two
# queries. So each query takes less than an hour of this clock, whatever the machine does, and days pass within seconds.
# The processes are forks, since a new process of R would take longer to load arrow than it lives.

test_that("nothing is lost or counted twice if writers and compactors are killed", {
  skip_on_cran()
  skip_on_os("windows")
  path <- local_dataset()
  dir <- withr::local_tempdir()
  at <- function(name) file.path(dir, name)
  x <- small_profile()
  seconds <- as.numeric(as.POSIXct("2026-03-01 20:00:00", tz = "UTC"))
  set_clock <- function() {
    writeLines(format(seconds, scientific = FALSE), at("clock.new"))
    file.rename(at("clock.new"), at("clock"))
  }
  set_clock()
  replace_function("current_time", function() as.numeric(readLines(at("clock"))))

  test <- Sys.getpid()
  children <- integer()
  withr::defer(tools::pskill(children, tools::SIGKILL))
  start <- function(code) {
    force(code)
    child <- parallel::mcparallel(code(), detached = TRUE, mc.set.seed = FALSE)$pid
    children <<- c(children, child)
    child
  }
  # The child ends with the test, also if the test was killed.
  goes_on <- function() tools::pskill(test, 0L)
  # Each profile has a version of its own, which is noted when its write has returned.
  writer <- function(name, most = Inf, pause = 0.1, behind = 0) {
    start(function() {
      utils::assignInNamespace("current_time", function() as.numeric(readLines(at("clock"))) - behind, "profile")
      i <- 0
      while (i < most && goes_on()) {
        i <- i + 1
        version <- paste0(name, "-", i)
        store_profiles(x, path, resource = c(service.name = paste0("service-", i %% 3), service.version = version))
        cat(version, "\n", sep = "", file = at("written"), append = TRUE)
        Sys.sleep(pause)
      }
    })
  }
  # Minutes at once, hours after six hours, and the sum of the day after another six.
  compactor <- function() {
    start(function() {
      tryCatch(
        while (goes_on()) {
          for (i in 3:1) {
            before <- as.POSIXct(current_time() - (i - 1) * 6 * 3600, tz = "UTC")
            roll_up_profiles(path, before, period = c("minute", "hour", "day")[[i]])
          }
        },
        error = function(e) cat(conditionMessage(e), "\n", file = at("problems"), append = TRUE)
      )
    })
  }
  per_version <- function() {
    rows <- dplyr::group_by(tbl_profile(path)$samples, service, version)
    dplyr::collect(dplyr::summarise(rows, total = sum(value), count = sum(sample_count), .groups = "drop"))
  }
  store_profiles(x, path, resource = c(service.name = "first", service.version = "first"))
  expected <- per_version()
  expect_identical(nrow(expected), 1L)
  writeLines("first", at("written"))

  query <- function() {
    before <- readLines(at("written"))
    rows <- per_version()
    expect_identical(rows$version[duplicated(rows$version)], character())
    expect_identical(setdiff(before, rows$version), character())
    # Values are whole numbers.
    expect_identical(unique(rows$total), expected$total)
    expect_identical(unique(rows$count), expected$count)
    seconds <<- seconds + 59 * 60
    set_clock()
  }

  withr::local_seed(42)
  writer("steady", pause = 0.5)
  # Its clock is wrong by a day, so that its files come after their day was compacted.
  writer("behind", pause = 1, behind = 86400)
  processes <- list(writer = writer("w0"), compactor = compactor())
  for (kill in 1:100) {
    Sys.sleep(stats::runif(1, 0, 0.5))
    victim <- sample(names(processes), 1)
    tools::pskill(processes[[victim]], tools::SIGKILL)
    if (kill %% 2 == 0) query()
    processes[[victim]] <- if (victim == "writer") writer(paste0("w", kill)) else compactor()
  }
  tools::pskill(unlist(processes), tools::SIGKILL)
  query()
  folders <- list.files(file.path(path, "compact/samples"), recursive = TRUE)
  expect_gt(length(unique(dirname(dirname(folders)))), 2)
  expect_true(any(grepl("/day-1[.]parquet$", folders)))

  # Ten writers that start at once, and two compactors.
  two <- list(compactor(), compactor())
  ten <- lapply(1:10, function(i) writer(paste0("ten", i), most = 5))
  while (!all(vapply(ten, has_ended, TRUE))) query()
  expect_identical(length(grep("^ten", readLines(at("written")))), 50L)
  for (i in 1:5) query()
  expect_identical(if (file.exists(at("problems"))) readLines(at("problems")), NULL)
})
