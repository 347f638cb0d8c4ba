# tier: thorough
# Writers and the compactor of a data set are killed at random moments, while another process writes and this one reads.
#
# The clock of the compactor and of the writers is a file with a time, which this process sets forward by less than an
# hour between two queries. So each query takes less than an hour of this clock, whatever the machine does, and days
# pass within seconds.

test_that("nothing is lost or counted twice if writers and compactors are killed", {
  skip_on_cran()
  skip_on_os("windows")
  path <- local_dataset()
  dir <- withr::local_tempdir()
  at <- function(name) file.path(dir, name)
  file <- at("profile.pb.gz")
  x <- read_pprof(system.file("samples/proto/1.out.prof.pb.gz", package = "profile"))
  write_pprof(x, file)
  clock <- seconds <- as.numeric(as.POSIXct("2026-03-01 12:00:00", tz = "UTC"))
  set_clock <- function() {
    writeLines(format(seconds, scientific = FALSE), at("clock.new"))
    file.rename(at("clock.new"), at("clock"))
  }
  set_clock()
  start <- function(...) {
    local_r_process(with_package(
      sprintf("clock <- function() as.numeric(readLines('%s'))", at("clock")),
      "assignInNamespace('current_time', clock, 'profile')",
      sprintf("path <- '%s'", path),
      ...
    ), envir = parent.frame(2))
  }
  # Each profile has a version of its own, which is noted when its write has returned.
  writer <- function(name, most = Inf) {
    start(
      sprintf("x <- read_pprof('%s')", file),
      "i <- 0",
      "ready()",
      sprintf("while (i < %s) {", format(most)),
      "  i <- i + 1",
      sprintf("  version <- paste0('%s-', i)", name),
      "  resource <- c(service.name = paste0('service-', i %% 3), service.version = version)",
      "  write_profile_dataset(x, path, resource = resource)",
      sprintf("  cat(version, '\\n', sep = '', file = '%s', append = TRUE)", at("written")),
      "}"
    )
  }
  compactor <- function() {
    start(
      "periods <- c('minute', 'hour', 'day')",
      "ready()",
      "while (TRUE) {",
      "  for (days in 2:0) {",
      "    roll_up_profiles(path, as.POSIXct(clock() - days * 86400), period = periods[[days + 1]])",
      "  }",
      "}"
    )
  }
  per_version <- function() {
    rows <- tbl_profile(path)$samples
    rows <- dplyr::summarise(dplyr::group_by(rows, service, version), total = sum(value), count = sum(sample_count))
    dplyr::collect(dplyr::ungroup(rows))
  }
  write_profile_dataset(x, path, resource = c(service.name = "first", service.version = "first-1"))
  expected <- per_version()
  expect_identical(nrow(expected), 1L)
  writeLines("first-1", at("written"))

  query <- function() {
    before <- readLines(at("written"))
    rows <- per_version()
    expect_identical(anyDuplicated(rows$version), 0L)
    expect_identical(setdiff(before, rows$version), character())
    # Values are whole numbers.
    expect_identical(unique(rows$total), expected$total)
    expect_identical(unique(rows$count), expected$count)
    seconds <<- seconds + 50 * 60
    set_clock()
  }

  withr::local_seed(42)
  kills <- 0
  writer("quiet")
  processes <- list(writer = writer("w0"), compactor = compactor())
  while (kills < 100) {
    Sys.sleep(stats::runif(1, 0, 0.6))
    query()
    victim <- sample(names(processes), 1)
    tools::pskill(processes[[victim]], tools::SIGKILL)
    kills <- kills + 1
    processes[[victim]] <- if (victim == "writer") writer(paste0("w", kills)) else compactor()
  }
  for (pid in processes) tools::pskill(pid, tools::SIGKILL)
  expect_gt(length(list.files(file.path(path, "compact/samples"))), 3)

  # Ten writers that start at once, and two compactors.
  compactors <- list(compactor(), compactor())
  ten <- lapply(1:10, function(i) writer(paste0("ten", i), most = 5))
  while (!all(vapply(ten, has_ended, TRUE))) query()
  expect_identical(length(grep("^ten", readLines(at("written")))), 50L)
  for (i in 1:5) query()
  expect_false(any(vapply(compactors, has_ended, TRUE)))
})
