# tier: thorough
# Data sets in the engines that users have: DuckDB, ClickHouse and Spark answer the questions of inst/dataset, with the
# same text and the same values as the functions of this package for the profiles that were recorded.

# The data set of all tests in this file, and the answers.
shared <- new.env()

local_fleet <- function() {
  skip_if_not_installed("arrow")
  skip_if_not_installed("dplyr")
  skip_if_not_installed("jsonlite")
  if (is.null(shared$path)) {
    shared$path <- withr::local_tempdir("fleet-", .local_envir = testthat::teardown_env())
    fleet_dataset(shared$path)
    shared$spoiled <- withr::local_tempdir("spoiled-", .local_envir = testthat::teardown_env())
    spoiled_dataset(shared$path, shared$spoiled)
    shared$expected <- answers_of_profiles()
  }
  shared$path
}

fleet_for_engines <- function() {
  local_fleet()
  shared$spoiled
}

test_that("our verbs answer like the recorded profiles", {
  path <- local_fleet()
  expected <- shared$expected
  functions <- function(rows) sorted(as.data.frame(rows)[c("name", "self", "total")])
  expect_identical(
    functions(summary(tbl_profile(path, service == "shop"), type = "cpu")$by_function),
    expected[["functions of a service"]]
  )
  all <- read_profile(tbl_profile(path))
  expect_identical(functions(summary(all, type = "cpu")$by_function), expected[["functions of the fleet"]])
  totals <- lapply(c("2.2", "2.3"), function(wanted) {
    as.data.frame(summary(read_profile(tbl_profile(path, version == wanted)), type = "cpu")$by_function)[c("name", "total")]
  })
  versions <- merge(totals[[1]], totals[[2]], by = "name")
  expect_identical(sorted(versions), expected[["what changed between two versions"]])
  tree <- callers(all, "paste", type = "cpu")
  expect_identical(
    sorted(as.data.frame(tree[which(tree$depth == 2), c("name", "total")])), expected[["callers of a function"]]
  )
  routes <- as.data.frame(summary(all, type = "cpu", by = "route"))
  expect_identical(sorted(routes[!is.na(routes$route), c("route", "total")]), expected[["sums by a label"]])
  of_trace <- read_profile(tbl_profile(path, trace_id == !!fleet_trace))
  expect_identical(paths_of_profile(of_trace), expected[["the flame graph of a trace"]])
})

test_that("DuckDB answers like the recorded profiles", {
  needed_engine("duckdb", "DuckDB does not query data sets")
  path <- fleet_for_engines()
  expect_answers(ask_engine("duckdb", path), shared$expected, "DuckDB")
})

test_that("ClickHouse answers like the recorded profiles", {
  needed_engine("chdb", "ClickHouse does not query data sets")
  path <- fleet_for_engines()
  expect_answers(ask_engine("clickhouse", path), shared$expected, "ClickHouse")
})

test_that("Spark answers like the recorded profiles, with all words of SQL reserved", {
  needed_engine("pyspark", "Spark does not query data sets")
  path <- fleet_for_engines()
  expect_answers(ask_engine("spark", path), shared$expected, "Spark")
})

test_that("Spark answers although a worker is killed in the middle of a query", {
  needed_engine("pyspark", "Spark does not lose a worker")
  path <- fleet_for_engines()
  question <- "functions of the fleet"
  found <- run_engines("cluster.py", path, sql_of_datasets(), question)
  expect_identical(c(found$before, found$after), c(2L, 1L))
  expect_answers(rows_of_answers(found$answers), shared$expected[question], "Spark with one worker less")
})

test_that("Trino answers like the recorded profiles", {
  testthat::skip_on_cran()
  server <- Sys.getenv("PROFILE_TEST_TRINO")
  skip_if(server == "", "PROFILE_TEST_TRINO is not set: Trino does not query data sets")
  path <- fleet_for_engines()
  expect_answers(ask_engine("trino", paste0("file://", path), server), shared$expected, "Trino")
})

test_that("a data set is the same in object storage", {
  for (package in c("moto", "pyarrow", "duckdb")) needed_engine(package, "data sets are not queried in object storage")
  path <- fleet_for_engines()
  answers <- rows_of_answers(run_engines("storage.py", path, sql_of_datasets()))
  expect_answers(answers, shared$expected, "Arrow and DuckDB, with object storage")
})
