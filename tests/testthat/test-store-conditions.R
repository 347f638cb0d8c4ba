# tier: gate
# Conditions on a store: what the engine gets, and what they mean for the frames of the selected samples.

local_store <- function(env = parent.frame()) {
  skip_if_not_installed("dbplyr")
  skip_if_not_installed("RSQLite")
  con <- DBI::dbConnect(RSQLite::SQLite())
  withr::defer(DBI::dbDisconnect(con), env)
  x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
  x$sources$source_timestamp <- as.numeric(as.POSIXct("2026-01-01 10:00:00", tz = "UTC"))
  for (service in c("a", "b")) store_profiles(x, con, resource = c(service.name = service))
  con
}

test_that("calls that use no column are evaluated in R", {
  names <- c("service", "day", "minute")
  start <- as.POSIXct("2026-01-01", tz = "UTC")
  value_of <- function(code) with_values(code, names, environment())
  expect_equal(value_of(quote(minute >= start - 3600)), call(">=", quote(minute), start - 3600))
  expect_equal(value_of(quote(minute >= as.POSIXct("2026-01-01", tz = "UTC"))), call(">=", quote(minute), start))
  expect_equal(value_of(quote(day >= as.Date("2026-01-01") - 1)), quote(day >= "2025-12-31"))
  expect_equal(value_of(quote(service %in% c("a", "b"))), call("%in%", quote(service), c("a", "b")))
  # These are for the engine.
  for (code in list(
    quote(service == start), quote(row_number() <= 10), quote(.data[["day"]] == 1), quote(sql("value > 3")),
    quote(if_any(c(service, day), ~ . == paste("a"))), quote(service[1, ] == 1), quote(TRUE)
  )) {
    expect_equal(value_of(code), code)
  }
})

test_that("frames are only filtered by comparisons of their own columns", {
  shared <- function(code) compares_columns(code, c("service", "day", "minute"), c("service", "day"))
  for (code in list(quote(service == "a"), quote(service %in% v & !(day < "2026-01-01")), quote(is.na(service)))) {
    expect_true(shared(code), info = deparse(code))
  }
  for (code in list(
    quote(minute > 1), quote(row_number() <= 10), quote(row_number(service) <= 10), quote(n() < 200), quote(TRUE), quote(v),
    quote(service == max(service)), quote(.data[["run"]] != "a"), quote(sql("value > 3"))
  )) {
    expect_false(shared(code), info = deparse(code))
  }
})

test_that("the selected samples have all their frames", {
  con <- local_store()
  all <- read_profile(tbl_profile(con))
  whole <- unique(profile_stacks(all))
  expect_equal(sum(lengths(whole) == 0), 0)
  selections <- list(
    tbl_profile(con, dplyr::row_number() <= 10), tbl_profile(con, dplyr::n() < 1e6), tbl_profile(con, .data[["service"]] == "a"),
    tbl_profile(con, dplyr::sql("value > 3")), tbl_profile(con, minute >= as.POSIXct("2026-01-01", tz = "UTC") - 60),
    tbl_profile(con, day >= as.Date("2026-01-01")), tbl_profile(con, service == "a", day >= "2026-01-01")
  )
  for (selection in selections) {
    found <- profile_stacks(read_profile(selection))
    expect_gt(length(found), 0)
    expect_true(all(found %in% whole))
  }
})

test_that("frames that are missing are an error", {
  con <- local_store()
  selected <- tbl_profile(con)
  DBI::dbExecute(con, "DELETE FROM profile_stacks WHERE stack_key = (SELECT min(stack_key) FROM profile_stacks)")
  expect_error(read_profile(selected), "no frames for 1 of its stacks", class = "profile_error_open")
  expect_error(summary(selected), class = "profile_error_open")
  # A stack without frames has a key as well.
  DBI::dbExecute(con, "DELETE FROM profile_sums")
  x <- small_profile()
  x$sample_locations <- x$sample_locations[x$sample_locations$sample_id != x$samples$sample_id[[1]], ]
  store_profiles(x, con)
  expect_equal(sum(lengths(profile_stacks(read_profile(tbl_profile(con)))) == 0), 1)
})

test_that("what is no condition, no store or no profile is an error that says so", {
  con <- local_store()
  closed <- DBI::dbConnect(RSQLite::SQLite())
  DBI::dbDisconnect(closed)
  x <- small_profile()
  errors <- errors_of({
    tbl_profile(con, "main")
    tbl_profile(con, service = "a")
    tbl_profile(closed)
    prune_profiles(x, Sys.Date())
    prune_profiles(closed, Sys.Date())
    prune_profiles(con, "2026-01-01")
    prune_profiles(con, 30)
    store_profiles(x, con, resource = c(service = "shop"))
    store_profiles(list(), con)
    store_profiles(character(), con)
    store_profiles(tbl_profile(con), con)
    store_profiles(x, closed)
    read_profile(con)
  })
  expect_error(dplyr::collect(tbl_profile(con), n = 5), class = "rlib_error_dots_nonempty")
  expect_snapshot(writeLines(errors))
  expect_error(tbl_profile(con, no_column == "paste"), "The columns are `service`", class = "profile_error_argument")
  expect_error(read_profile(tbl_profile(con, grepl("^a", service))), "few functions of R", class = "profile_error_open")
  expect_warning(store_profiles(withr::local_tempdir(), con), "pass other files", class = "profile_warning_unsent")
})
