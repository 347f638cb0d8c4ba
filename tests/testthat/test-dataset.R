# tier: gate
# Flat tables of profiles, and profiles of flat tables, in data frames and a database. test-dataset-files.R tests the
# files of a data set, which need the package arrow.

sample_file <- function(...) system.file("samples", ..., package = "profile")

service <- c(service.name = "report", service.version = "2.3", host.name = "a")

# Databases and tests of equality need texts instead of factors.
flat <- function(x, resource = service) {
  lapply(flat_tables(x, resource, NULL), function(rows) {
    rows[] <- lapply(rows, function(column) if (is.factor(column)) as.character(column) else column)
    rows
  })
}

# The tables of a data set on each engine that is there.
for_each_engine <- function(tables, code) {
  skip_if_not_installed("dplyr")
  code(tables)
  if (rlang::is_installed(c("dbplyr", "RSQLite"))) {
    con <- DBI::dbConnect(RSQLite::SQLite())
    on.exit(DBI::dbDisconnect(con))
    for (table in names(tables)) {
      rows <- as.data.frame(tables[[table]])
      times <- intersect(c("minute", "run_start"), names(rows))
      rows[times] <- lapply(rows[times], as.numeric)
      DBI::dbWriteTable(con, table, rows)
    }
    code(lapply(rlang::set_names(names(tables)), function(table) dplyr::tbl(con, table)))
  }
}

by_name <- function(rows) {
  rows <- as.data.frame(rows)[c("name", "self", "total")]
  rows <- rows[order(rows$name, method = "radix"), ]
  row.names(rows) <- NULL
  rows
}

test_that("sums of a data set are the sums of the profile", {
  profiles <- list(
    read_rprof(sample_file("rprof/1.out")), read_rprof(sample_file("rprof/memory.out")),
    read_pprof(sample_file("proto/1.out.prof.pb.gz"))
  )
  for (x in profiles) {
    tables <- flat(x)
    for_each_engine(tables, function(tables) {
      y <- read_profile(tbl_profile(tables))
      expect_no_error(validate_profile(y))
      for (type in intersect(unique(x$sample_values$type), unique(y$sample_values$type))) {
        expected <- by_name(summary(x, type = type)$by_function)
        expect_identical(by_name(summary(y, type = type)$by_function), expected)
        # Functions without any amount are not asked for.
        expected <- by_name(expected[as.numeric(expected$total) > 0, ])
        expect_identical(by_name(summary(tbl_profile(tables), type = type)$by_function), expected)
      }
      name <- summary(x)$by_function$name[[1]]
      tree <- function(x) as.data.frame(callers(x, name, type = "samples"))[c("name", "total")]
      expect_setequal(do.call(paste, tree(x)), do.call(paste, tree(y)))
    })
  }
})

test_that("lines, files, packages and kinds of frames come back", {
  skip_if_not_installed("dplyr")
  x <- read_pprof(test_path("data", "frameworks", "shiny-1.13.0.pb.gz"))
  y <- read_profile(tbl_profile(flat(x)))
  lines <- function(x) {
    rows <- as.data.frame(summary(x, type = "samples")$by_line)[c("filename", "line", "self", "total")]
    rows[order(rows$filename, rows$line, method = "radix"), ]
  }
  expect_equal(lines(y), lines(x), ignore_attr = TRUE)
  packages <- function(x) {
    rows <- summary(x, type = "samples", by = "package")
    rows[order(rows$package, method = "radix"), c("package", "self", "total")]
  }
  expect_equal(packages(y), packages(x), ignore_attr = TRUE)
})

test_that("labels come back, as texts and as numbers", {
  skip_if_not_installed("dplyr")
  x <- small_profile()
  ids <- x$samples$sample_id
  x$.labels <- tibble::tibble(
    sample_id = ids[c(1, 1, 2)], key = c("route", "bytes", "route"), str = c("/a", NA, "/b"), num = c(NA, 5, NA),
    unit = c(NA, "bytes", NA)
  )
  tables <- flat(x)
  # The third sample has the stack of the first, but no labels, in two types.
  expect_identical(sum(is.na(tables$samples$label_key)), 2L)
  y <- read_profile(tbl_profile(tables))
  for (key in c("route", "bytes")) {
    expect_identical(
      as.data.frame(summary(y, by = key, type = "samples"))[c(key, "total")],
      as.data.frame(summary(x, by = key, type = "samples"))[c(key, "total")]
    )
  }
  expect_setequal(y$.labels$unit, c(NA, "bytes"))
})

test_that("labels may all be numbers", {
  skip_if_not_installed("dplyr")
  x <- small_profile()
  x$.labels <- tibble::tibble(
    sample_id = x$samples$sample_id[1], key = "bytes", str = NA_character_, num = 5, unit = "bytes"
  )
  y <- read_profile(tbl_profile(flat(x)))
  expect_identical(as.list(y$.labels[c("key", "str", "num", "unit")]), as.list(x$.labels[c("key", "str", "num", "unit")]))
})

test_that("conditions select samples, and the frames of a service", {
  skip_if_not_installed("dplyr")
  x <- small_profile()
  parts <- list(flat(x), flat(x, c(service.name = "report", service.version = "2.4")), flat(x, c(service.name = "other")))
  tables <- lapply(rlang::set_names(names(dataset_columns)), function(table) {
    vctrs::vec_rbind(!!!lapply(parts, `[[`, table))
  })
  for_each_engine(tables, function(tables) {
    wanted <- "2.4"
    y <- read_profile(tbl_profile(tables, service == "report", version == wanted))
    expect_identical(y$.resource_attributes$value, c("report", "2.4"))
    expect_identical(by_name(summary(y, type = "samples")$by_function), by_name(summary(x, type = "samples")$by_function))
    runs <- tbl_profile(tables, service == "report")
    expect_identical(read_profile(tbl_profile(runs, version == "2.4")), y)
    expect_identical(as.numeric(dplyr::collect(dplyr::count(runs$samples))$n), 2 * nrow(parts[[1]]$samples))
    both <- compare_profiles(
      read_profile(tbl_profile(runs, version == "2.3")), read_profile(tbl_profile(runs, version == "2.4")), type = "samples"
    )
    expect_true(all(both$by_function$difference == 0))
    expect_snapshot(print(runs), transform = function(lines) sub("  +$", "", lines))
  })
  # A service without a name is one, and a join would lose a missing name.
  expect_identical(unique(flat(x, character())$samples$service), "unknown_service")
})

test_that("samples have the minute in which they were taken", {
  x <- small_profile()
  x$samples$.timestamp <- NA_real_
  x$sources$source_timestamp <- as.numeric(as.POSIXct("2026-01-01 10:00:59", tz = "UTC"))
  x$samples$.timestamp[1] <- as.numeric(as.POSIXct("2026-01-01 10:02:00", tz = "UTC"))
  minutes <- format(sort(unique(flat(x)$samples$minute)), "%H:%M:%S", tz = "UTC")
  expect_identical(minutes, c("10:00:00", "10:02:00"))
  x$sources$source_timestamp <- NA_real_
  x$samples$.timestamp <- NULL
  expect_true(all(is.na(flat(x)$samples$minute)))
})

test_that("names of columns are not words of SQL", {
  skip_if_not_installed("DBI")
  columns <- unlist(lapply(dataset_columns, names))
  expect_identical(intersect(toupper(columns), setdiff(DBI::.SQL92Keywords, c("VALUE", "MINUTE"))), character())
})

test_that("a stack in two units of a type is two samples", {
  skip_if_not_installed("dplyr")
  tables <- flat(small_profile())
  other <- tables$samples[tables$samples$sample_type == "samples", ]
  other$unit <- "dozen"
  tables$samples <- vctrs::vec_rbind(tables$samples, other)
  y <- read_profile(tbl_profile(tables))
  sums <- tapply(y$sample_values$value, y$sample_values$unit, sum)
  expect_identical(as.vector(sums[c("count", "dozen")]), c(3, 3))
})

test_that("rows of others may lack a service", {
  skip_if_not_installed("dplyr")
  tables <- lapply(flat(small_profile(), character()), function(rows) {
    rows$service <- rep(NA_character_, nrow(rows))
    rows
  })
  for_each_engine(tables, function(tables) {
    y <- read_profile(tbl_profile(tables))
    functions <- by_name(summary(y, type = "samples")$by_function)
    expect_identical(functions, by_name(summary(small_profile(), type = "samples")$by_function))
  })
})

test_that("arguments are checked", {
  skip_if_not_installed("dplyr")
  tables <- flat(small_profile())
  expect_error(
    read_profile(tbl_profile(tables, nonsense == 1)), "Cannot filter by `nonsense == 1`", class = "profile_error_argument"
  )
  expect_snapshot(error = TRUE, {
    tbl_profile(list(samples = tables$samples["value"], frames = tables$frames))
    tbl_profile("/no/such/folder")
    store_profiles(small_profile(), tempdir(), 1)
    store_profiles(small_profile(), tempdir(), resource = "a")
  })
})

test_that("without arrow, the error says so", {
  replace_function("need_package", function(package, call) {
    abort_unsupported(paste0("The package ", package, " is not installed"), call)
  })
  expect_error(store_profiles(small_profile(), tempdir()), "The package arrow is not installed", class = "profile_error_unsupported")
})

# ---- Plans -----------------------------------------------------------------------------

seconds_at <- function(text) as.numeric(as.POSIXct(text, tz = "UTC"))
now <- seconds_at("2026-11-29 03:00:00")

test_that("a day is closed an hour after it has passed", {
  days <- c("2026-11-28", "2026-11-29", "1970-01-01", "2026-11-27", "2026-11-27", "2026-02-30")
  expect_identical(closed_days(days, now, now), c("2026-11-27", "2026-11-28"))
  expect_identical(closed_days(days, now - 86400, now), "2026-11-27")
  midnight <- seconds_at("2026-11-29 00:00:00")
  expect_identical(closed_days("2026-11-28", midnight, midnight + 3599), character())
  expect_identical(closed_days("2026-11-28", midnight, midnight + 3600), "2026-11-28")
  expect_identical(closed_days(character(), now, now), character())
})

test_that("a plan sums up, and removes only what no query reads", {
  folder <- function(age, period, files = "a", apart = "run") {
    list(valid_from = now - age, period = period, apart = apart, files = files)
  }
  plan <- function(listed, period, apart = "run") plan_day(listed, period, apart, now)
  expect_null(plan(list(), "hour")$period)
  expect_identical(
    plan(list(files = "a"), "hour"), list(period = "hour", apart = "run", last = character(), files = "a")
  )
  # Files of writers stay for an hour; a file that came later is summed up at once, to the same period.
  listed <- list(files = c("a", "b"), folders = list(one = folder(3599, "hour")))
  expected <- list(period = "hour", apart = "run", last = "one", files = "b", obsolete = NULL, done = NULL)
  expect_mapequal(plan(listed, "minute"), expected)
  expect_identical(plan(listed, "day")$period, "day")
  listed$folders$one <- folder(3600, "minute", c("a", "b"))
  expected <- list(
    period = NULL, apart = NULL, last = "one", files = character(), obsolete = character(), done = c("a", "b")
  )
  expect_mapequal(plan(listed, "minute"), expected)
  # Runs can be summed up later, but do not come apart again.
  expect_identical(plan(listed, "minute", "host")[c("period", "apart")], list(period = "minute", apart = "host"))
  listed$folders$one$apart <- "none"
  expect_null(plan(listed, "minute", "host")$period)
  # The last folder counts, and what only an earlier one contains is not done.
  listed <- list(files = c("a", "b"), folders = list(one = folder(9000, "minute", c("a", "b")), two = folder(5000, "day")))
  expected <- list(period = "day", apart = "run", last = "two", files = "b", obsolete = "one", done = "a")
  expect_mapequal(plan(listed, "hour"), expected)
  listed$folders$two$valid_from <- now + 60
  expect_null(plan(listed, "hour")$obsolete)
})

test_that("services are divided into parts that fit into memory", {
  parts <- parts_of_services(c("d", "a", "b", "c"), c(3, 5, 5, 1), most = 10)
  expect_identical(parts, list(list(services = c("a", "b")), list(services = c("c", "d"))))
  parts <- parts_of_services(c("a", "b", "c"), c(5, 25, 5), most = 10)
  expect_identical(lapply(parts, `[[`, "services"), list("a", "b", "b", "b", "c"))
  expect_setequal(unlist(lapply(parts, `[[`, "letters")), letters_of_keys)
  expect_lte(length(parts_of_services("a", 1e9, most = 10)), 64)
  expect_identical(parts_of_services(character(), double()), list())
})

test_that("small files are merged in groups", {
  folder <- withr::local_tempdir()
  files <- file.path(folder, letters[1:5])
  for (file in files) writeBin(raw(40), file)
  expect_identical(groups_of_files(files, most = 100), list(files[1:2], files[3:4], files[5]))
  expect_identical(groups_of_files(files, most = 1000), list(files))
  expect_identical(groups_of_files(files[1:2], most = 1), as.list(files[1:2]))
  expect_identical(groups_of_files(character()), list())
})

test_that("the last folder of a day is read", {
  files <- c(
    "r/compact/samples/day=2026-01-01/valid_from=9/minute-run-1.parquet",
    "r/compact/samples/day=2026-01-01/valid_from=9/minute-run-2.parquet",
    "r/compact/samples/day=2026-01-01/valid_from=10/hour-host-1.parquet",
    "r/compact/samples/day=2026-01-02/valid_from=3/day-none-1.parquet",
    "r/compact/samples/day=2026-01-02/valid_from=4/note.txt"
  )
  expect_identical(valid_folders(files), tibble::tibble(day = c("2026-01-01", "2026-01-02"), valid_from = c("10", "3")))
})

test_that("each run is a source, with its time, and keeps its key", {
  skip_if_not_installed("dplyr")
  night <- function(day) {
    x <- small_profile()
    x$sources$source_timestamp <- as.numeric(as.POSIXct(day, tz = "UTC"))
    x
  }
  days <- c("2026-01-01", "2026-01-02")
  tables <- flat(combine_profiles(lapply(days, night)))
  for_each_engine(tables, function(tables) {
    y <- read_profile(tbl_profile(tables))
    expect_identical(y$sources$source_timestamp, as.numeric(as.POSIXct(days, tz = "UTC")))
    again <- flat(y)$samples
    expect_setequal(again$run, unique(unlist(dplyr::collect(dplyr::distinct(tables$samples, run)))))
    expect_identical(read_profile(tbl_profile(tables, run == !!again$run[[1]]))$sources$source_timestamp, y$sources$source_timestamp[[1]])
  })
  # The runs of a comparison.
  nights <- read_profile(tbl_profile(tables))
  compared <- compare_profiles(base = nights, new = nights, type = "samples")
  expect_identical(as.numeric(attr(compared, "runs")), c(2, 2))
})

test_that("each host of a service is a run", {
  skip_if_not_installed("dplyr")
  x <- small_profile()
  hosts <- lapply(c("a", "b"), function(host) flat(x, c(service.name = "shop", host.name = host)))
  tables <- lapply(rlang::set_names(c("samples", "frames", "labels")), function(table) {
    vctrs::vec_rbind(hosts[[1]][[table]], hosts[[2]][[table]])
  })
  y <- read_profile(tbl_profile(tables))
  attributes <- y$.resource_attributes
  expect_identical(attributes$value[attributes$key == "host.name"], c("a", "b"))
  expect_identical(y$sources$source_uri, c("shop", "shop"))
  compared <- compare_profiles(read_profile(tbl_profile(tables, host == "a")), y)
  expect_identical(compared$new, compared$base)
})

test_that("a data set needs a path", {
  expect_error(store_profiles(small_profile(), ""), "must be a connection of DBI or the path", class = "profile_error_argument")
})
