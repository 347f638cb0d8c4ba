# tier: gate
# Profiles in a database: what is stored, summed up and removed. test-dataset.R tests data sets, which have the same
# tables, test-store-transactions.R other users of a database.

service <- function(...) c(service.name = "shop", ...)

# The sums of a profile, as those of a store.
expect_same_sums <- function(from, profiles, ..., schema = NULL) {
  found <- sums_of_store(from, ..., schema = schema)
  for (type in names(found)) {
    wanted <- as.data.frame(summary(bind_profiles(profiles, NULL), type = type)$by_function)[c("name", "self", "total")]
    wanted <- wanted[order(wanted$name, method = "radix"), ]
    row.names(wanted) <- NULL
    expect_equal(found[[type]], wanted)
  }
  expect_gt(length(found), 0)
}

nights <- function(days = c("2026-01-01", "2026-01-02", "2026-01-03")) {
  lapply(days, function(day) {
    x <- read_pprof(system.file("samples/proto/1.out.prof.pb.gz", package = "profile"))
    x$sources$source_timestamp <- as.numeric(as.POSIXct(day, tz = "UTC"))
    x
  })
}

test_that("a store has the sums of its profiles, and each stack once", {
  skip_if_not_installed("dbplyr")
  for_each_database(function(con, schema, connect) {
    all <- nights()
    expect_identical(store_profiles(all[[1]], con, schema = schema), all[[1]])
    expect_invisible(store_profiles(all[2:3], con, schema = schema))
    expect_same_sums(con, all, schema = schema)
    one <- flat_tables(all[[1]], character(), NULL)
    counts <- stored_tables_of(con, schema)
    expect_equal(counts[["profile_stacks"]], nrow(one$frames))
    expect_equal(counts[["profile_frames"]], nlevels(droplevels(one$frames$frame_key)))
    expect_equal(counts[["profile_uses"]], length(unique(one$samples$stack_key)))
    expect_equal(counts[["profile_sums"]], 3 * nrow(one$samples))
    # The text of code, files, lines and packages come back.
    x <- read_profile(tbl_profile(con, schema = schema))
    lines <- function(x) {
      rows <- as.data.frame(summary(x, type = "samples")$by_line)[c("filename", "line", "total")]
      rows[order(rows$filename, rows$line, method = "radix"), ]
    }
    expect_equal(lines(x), lines(bind_profiles(all, NULL)), ignore_attr = TRUE)
  })
})

test_that("each night is a run, also if all are stored together", {
  skip_if_not_installed("dbplyr")
  for_each_database(function(con, schema, connect) {
    all <- nights()
    for (x in all) store_profiles(x, con, schema = schema, resource = service())
    store_profiles(all, con, schema = schema, resource = service(service.version = "2"))
    x <- read_profile(tbl_profile(con, schema = schema))
    times <- vapply(all, function(x) x$sources$source_timestamp, 0)
    expect_equal(x$sources$source_timestamp, rep(times, 2))
    compared <- compare_profiles(
      read_profile(tbl_profile(con, is.na(version), schema = schema)),
      read_profile(tbl_profile(con, version == "2", schema = schema)), type = "cpu"
    )
    expect_equal(as.numeric(attr(compared, "runs")), c(3, 3))
    expect_equal(attr(compared, "whole")$new, attr(compared, "whole")$base)
    # The runs keep their keys if they are stored again.
    keys <- unique(DBI::dbReadTable(con, table_id(schema, "samples"))$run)
    store_profiles(x, con, schema = schema)
    expect_setequal(unique(DBI::dbReadTable(con, table_id(schema, "samples"))$run), keys)
  })
})

test_that("conditions are filtered by the database, on times, days and texts", {
  skip_if_not_installed("dbplyr")
  for_each_database(function(con, schema, connect) {
    for (x in nights()) store_profiles(x, con, schema = schema, resource = service())
    store_profiles(nights()[1], con, schema = schema, resource = c(service.name = "other"))
    from <- function(...) read_profile(tbl_profile(con, ..., schema = schema))
    time <- as.POSIXct("2026-01-02", tz = "UTC")
    expect_same_sums(con, nights()[1], service == "other", schema = schema)
    expect_same_sums(con, nights()[2:3], service == "shop", run_start >= !!time, schema = schema)
    expect_same_sums(con, nights()[1], service == "shop", minute < !!time, schema = schema)
    today <- today_in_utc()
    expect_identical(nrow(from(day == !!today)$sources), 4L)
    expect_identical(nrow(from(day < !!today)$samples), 0L)
    shop <- tbl_profile(con, service == "shop", schema = schema)
    expect_identical(read_profile(dplyr::filter(shop, run_start == !!time)), from(service == "shop", run_start == !!time))
    expect_identical(dplyr::collect(shop), read_profile(shop))
    expect_identical(names(summary(shop)), names(summary(read_profile(shop))))
    expect_equal(
      summary(shop, type = "cpu")$by_function[c("name", "self", "total")],
      summary(read_profile(shop), type = "cpu")$by_function[c("name", "self", "total")]
    )
  })
  con <- DBI::dbConnect(RSQLite::SQLite())
  withr::defer(DBI::dbDisconnect(con))
  store_profiles(nights(), con, resource = service())
  expect_snapshot(error = TRUE, {
    print(tbl_profile(con))
    tbl_profile(con, servce == "shop")
    summary(tbl_profile(con), type = 1)
  }, transform = function(lines) sub(" +$", "", lines))
})

test_that("an agent's parts are one run", {
  skip_if_not_installed("dbplyr")
  for_each_database(function(con, schema, connect) {
    process <- c(service.instance.id = "1", process.creation.time = "2026-01-01T00:00:00Z")
    for (x in nights()) store_profiles(x, con, schema = schema, resource = process)
    x <- read_profile(tbl_profile(con, schema = schema))
    expect_equal(x$sources$source_timestamp, as.numeric(as.POSIXct("2026-01-01", tz = "UTC")))
  })
})

test_that("days that have passed are summed up, and no sum changes", {
  skip_if_not_installed("dbplyr")
  for_each_database(function(con, schema, connect) {
    hosts <- c("a", "b")
    for (host in hosts) for (x in nights()) store_profiles(x, con, schema = schema, resource = service(host.name = host))
    sums <- sums_of_store(con, schema = schema)
    # Today is not over.
    expect_identical(roll_up_profiles(con, Sys.time() + 1e6, schema = schema), 0)
    move_to(con, "2026-01-05", schema)
    before <- as.POSIXct("2026-01-06", tz = "UTC")
    expect_identical(roll_up_profiles(con, before - 1, schema = schema), 0)
    sources <- function() nrow(read_profile(tbl_profile(con, schema = schema))$sources)
    rows <- function() count_rows(con, schema, "profile_sums")
    sizes <- rows()
    for (step in list(c("minute", "run", 6), c("day", "run", 6), c("hour", "host", 2), c("day", "none", 1))) {
      expect_identical(roll_up_profiles(con, before, period = step[[1]], apart = step[[2]], schema = schema), 1)
      expect_identical(roll_up_profiles(con, before, period = step[[1]], apart = step[[2]], schema = schema), 0)
      expect_equal(sums_of_store(con, schema = schema), sums)
      expect_identical(sources(), as.integer(step[[3]]))
      sizes <- c(sizes, rows())
    }
    expect_false(is.unsorted(-sizes))
    # What comes later on another day is a run of its own.
    store_profiles(nights()[1], con, schema = schema, resource = service(host.name = "a"))
    expect_identical(sources(), 2L)
  })
})

test_that("sums beyond the range of a double are an error, and change nothing", {
  skip_if_not_installed("RSQLite")
  con <- DBI::dbConnect(RSQLite::SQLite())
  withr::defer(DBI::dbDisconnect(con))
  x <- small_profile()
  x$sample_values$type <- "size"
  x$sample_values$value <- 0
  x$sample_values$value[[1]] <- 1e308
  for (i in 1:3) store_profiles(x, con)
  expect_error(read_profile(tbl_profile(con)), "beyond the range", class = "profile_error_unsupported")
  expect_error(summary(tbl_profile(con)), "beyond the range", class = "profile_error_unsupported")
  move_to(con, "2026-01-01")
  counts <- stored_tables_of(con)
  expect_error(roll_up_profiles(con, Sys.time()), "beyond the range", class = "profile_error_unsupported")
  expect_identical(stored_tables_of(con), counts)
})

test_that("old days are removed, with all that no later day refers to", {
  skip_if_not_installed("dbplyr")
  for_each_database(function(con, schema, connect) {
    store_profiles(nights()[1], con, schema = schema)
    one <- stored_tables_of(con, schema)
    store_profiles(small_profile(), con, schema = schema)
    move_to(con, "2026-01-01", schema)
    store_profiles(nights()[2], con, schema = schema)
    expect_identical(prune_profiles(con, as.POSIXct("2026-01-01 23:00:00", tz = "UTC"), schema = schema), 0L)
    expect_identical(prune_profiles(con, as.POSIXct("2026-01-02", tz = "UTC"), schema = schema), 1L)
    expect_identical(stored_tables_of(con, schema), one)
    expect_same_sums(con, nights()[2], schema = schema)
  })
})

test_that("labels are stored once, and come back as texts and numbers", {
  skip_if_not_installed("dbplyr")
  for_each_database(function(con, schema, connect) {
    x <- small_profile()
    ids <- x$samples$sample_id
    x$.labels <- tibble::tibble(
      sample_id = ids[c(1, 1, 2)], key = c("route", "bytes", "route"), str = c("/a", NA, "/b"), num = c(NA, 5, NA),
      unit = c(NA, "bytes", NA)
    )
    for (i in 1:2) store_profiles(x, con, schema = schema)
    expect_equal(count_rows(con, schema, "profile_labels"), 3)
    y <- read_profile(tbl_profile(con, schema = schema))
    for (key in c("route", "bytes")) {
      found <- summary(y, by = key, type = "samples")
      expected <- summary(x, by = key, type = "samples")
      expect_identical(found[[key]], expected[[key]])
      expect_equal(found$total, 2 * expected$total)
    }
  })
})

test_that("keys are numbers that all drivers can represent", {
  keys <- c("AAAAAAAAAAAAAAAAAAAAAA", "________AAAAAAAAAAAAAA", "_________AAAAAAAAAAAAA", "AAAAAAAAC", "AAAAAAAB_")
  expect_identical(number_of_key(keys), c(0, 2^53 - 32, 2^53 - 1, 1, 32 + 31))
  expect_identical(number_of_key(factor(c("AAAAAAAAC", NA))), c(1, NA))
})

test_that("keys of stacks do not depend on the session that stores them", {
  skip_if_not_installed("RSQLite")
  # Guessing would find the package of base functions, and none for a function of nobody.
  x <- small_profile()
  x$functions$name[[1]] <- x$functions$system_name[[1]] <- "paste"
  x$functions$filename <- ""
  expect_true("base" %in% add_packages(x)$functions$.package)
  frames <- flat_tables(x, character(), NULL)$frames
  expect_true(all(is.na(frames$package)))
  # What was recorded is kept, and the others are looked up by who reads it.
  x$functions$.package <- rep(c("own", NA), length.out = nrow(x$functions))
  con <- local_sqlite()
  store_profiles(x, con)
  y <- read_profile(tbl_profile(con))
  expect_identical(sort(unique(y$functions$.package)), "own")
  expect_identical(unique(y$functions$.package_from[!is.na(y$functions$.package)]), "store")
  expect_false(has_packages(y))
})

test_that("runs without a time stay apart, whenever they are stored", {
  skip_if_not_installed(c("RSQLite", "dbplyr"))
  path <- withr::local_tempfile(fileext = ".folded", lines = "main;f 5")
  con <- local_sqlite()
  for (night in 1:3) store_profiles(path, con)
  expect_identical(nrow(read_profile(tbl_profile(con))$sources), 3L)
  x <- read_profile(path)
  store_profiles(list(x, x), con)
  y <- read_profile(tbl_profile(con))
  expect_identical(nrow(y$sources), 5L)
  # What a store has returned keeps its runs, and a time identifies a run.
  store_profiles(y, con)
  expect_identical(nrow(read_profile(tbl_profile(con))$sources), 5L)
  x$sources$source_timestamp <- 1e9
  for (i in 1:2) store_profiles(x, con)
  expect_identical(nrow(read_profile(tbl_profile(con))$sources), 6L)
})

test_that("the sampling period and the default type come back", {
  skip_if_not_installed("dbplyr")
  x <- read_rprof(rprof_path("basic_all.out"))
  go <- nights()[[1]]
  for_each_database(function(con, schema, connect) {
    for (i in 1:2) store_profiles(x, con, schema = schema)
    y <- read_profile(tbl_profile(con, schema = schema))
    expect_identical(describe_profile(y)$parts$run$interval, describe_profile(x)$parts$run$interval)
    expect_identical(names(summary(y)$by_function), names(summary(x)$by_function))
    expect_equal(sum(summary(y)$by_function$self_time), 2 * sum(summary(x)$by_function$self_time))
    sums <- summary(tbl_profile(con, schema = schema))
    expect_equal(sums$by_function$self_time, summary(y)$by_function$self_time)
    # Sums of several runs keep it, too.
    move_to(con, "2026-01-05", schema)
    roll_up_profiles(con, as.POSIXct("2026-01-06", tz = "UTC"), apart = "none", schema = schema)
    expect_equal(summary(tbl_profile(con, schema = schema))$by_function$self_time, sums$by_function$self_time)
    # Another period is another source.
    other <- x
    other$sources$.period <- 2 * x$sources$.period
    store_profiles(other, con, schema = schema)
    y <- read_profile(tbl_profile(con, schema = schema))
    expect_setequal(y$sources$.period, 1000 * c(x$sources$.period, other$sources$.period))
    store_profiles(go, con, schema = schema, resource = c(service.name = "go"))
    y <- read_profile(tbl_profile(con, service == "go", schema = schema))
    expect_identical(attr(summary(y), "type"), attr(summary(go), "type"))
    expect_identical(y$sources$.default_type, attr(summary(go), "type"))
  })
})

test_that("views of others are not dropped, whatever the case of their names", {
  skip_if_not_installed("RSQLite")
  con <- local_sqlite()
  DBI::dbExecute(con, "CREATE TABLE t (a INTEGER)")
  DBI::dbExecute(con, "CREATE VIEW Samples AS SELECT a FROM t")
  error <- expect_error(store_profiles(small_profile(), con), class = "profile_error_invalid")
  expect_identical(error$table, "Samples")
  expect_setequal(DBI::dbListTables(con), c("t", "Samples"))
})

test_that("rows that come after their day was summed up are summed up like the others", {
  skip_if_not_installed("dbplyr")
  for_each_database(function(con, schema, connect) {
    before <- as.POSIXct("2026-01-06", tz = "UTC")
    store_profiles(nights()[[1]], con, schema = schema, resource = service(host.name = "a"))
    move_to(con, "2026-01-05", schema)
    roll_up_profiles(con, before, apart = "none", schema = schema)
    store_profiles(nights()[[2]], con, schema = schema, resource = service(host.name = "b"))
    late <- paste(DBI::dbQuoteIdentifier(con, "day"), "=", quoted_text(con, "2026-01-05"))
    DBI::dbExecute(con, paste("UPDATE", quoted(con, schema, "profile_origins"), "SET", late))
    expect_identical(roll_up_profiles(con, before, period = "minute", apart = "run", schema = schema), 1)
    x <- read_profile(tbl_profile(con, schema = schema))
    expect_identical(nrow(x$sources), 1L)
    expect_same_sums(con, nights()[1:2], schema = schema)
  })
})

test_that("periods begin before their minutes, also before 1970", {
  skip_if_not_installed("RSQLite")
  con <- local_sqlite()
  x <- nights()[[1]]
  for (seconds in c(-60, -3600 - 60, 60)) {
    x$sources$source_timestamp <- seconds
    store_profiles(x, con)
  }
  move_to(con, "2026-01-05")
  roll_up_profiles(con, as.POSIXct("2026-01-06", tz = "UTC"), period = "hour")
  expect_setequal(DBI::dbReadTable(con, "profile_sums")$minute, c(-60, -120, 0))
})

test_that("a name of a service is stored once, whatever its length", {
  skip_if_not_installed("dbplyr")
  for_each_database(function(con, schema, connect) {
    long <- strrep("s", 1e5)
    for (x in nights()[1:2]) store_profiles(x, con, schema = schema, resource = c(service.name = long))
    expect_equal(count_rows(con, schema, "profile_services"), 1)
    expect_identical(unique(as.data.frame(tbl_profile(con, schema = schema)$frames)$service), long)
  })
})

test_that("a selection without rows is printed as empty", {
  skip_if_not_installed(c("RSQLite", "dbplyr"))
  con <- local_sqlite()
  store_profiles(small_profile(), con)
  expect_match(format(tbl_profile(con, service == "none")), "^Values: +none$", all = FALSE)
})

test_that("texts that are invalid are errors", {
  skip_if_not(l10n_info()[["UTF-8"]])
  skip_if_not_installed("RSQLite")
  con <- local_sqlite()
  for (text in list("caf\xe9", `Encoding<-`("caf\xe9", "UTF-8"))) {
    expect_error(
      store_profiles(small_profile(), con, resource = c(service.name = text)), class = "profile_error_argument"
    )
  }
  store_profiles(small_profile(), con, resource = c(service.name = `Encoding<-`("caf\xe9", "latin1")))
  expect_identical(DBI::dbReadTable(con, "profile_services")$service, "caf\u00e9")
})

test_that("tables of others are not touched", {
  for_each_database(function(con, schema, connect) {
    DBI::dbExecute(con, paste("CREATE TABLE", quoted(con, schema, "frames"), "(a INTEGER)"))
    error <- expect_error(store_profiles(small_profile(), con, schema = schema), class = "profile_error_invalid")
    expect_identical(error$table, "frames")
    expect_identical(list_tables(con, schema), "frames")
  })
})

test_that("arguments are checked, and what is no store is an error", {
  skip_if_not_installed(c("RSQLite", "dbplyr"))
  con <- DBI::dbConnect(RSQLite::SQLite())
  withr::defer(DBI::dbDisconnect(con))
  x <- small_profile()
  expect_snapshot(error = TRUE, {
    store_profiles()
    store_profiles(x)
    store_profiles(con, x)
    store_profiles(x, 1)
    store_profiles(x, "http://localhost:4318")
    store_profiles(x, con, schema = "other")
    store_profiles(x, con, resource = "a")
    tbl_profile()
    tbl_profile(con)
    tbl_profile(x)
    prune_profiles(con)
    prune_profiles(con, "yesterday")
    prune_profiles(con, Sys.Date())
    roll_up_profiles(con, Sys.Date(), period = "week")
    roll_up_profiles(con, Sys.Date(), apart = "pid")
  })
  store_profiles(x, con)
  DBI::dbExecute(con, "UPDATE profile_layout SET version = 3")
  expect_snapshot(error = TRUE, {
    store_profiles(x, con)
    tbl_profile(con)
    prune_profiles(con, Sys.Date())
  })
})

# Times are POSIXct in PostgreSQL, and texts in SQLite.
with_numeric_times <- function(rows) {
  rows[] <- lapply(rows, function(column) {
    is_text <- is.character(column) && all(grepl("^[0-9-]{10}T[0-9:]{8}Z$", column))
    if (is_text) column <- as.POSIXct(column, "UTC", "%Y-%m-%dT%H:%M:%SZ")
    if (inherits(column, "POSIXct")) as.numeric(column) else column
  })
  rows
}

test_that("a database answers the questions about a data set", {
  skip_if_not_installed("dbplyr")
  skip_if_not_installed("dplyr")
  lines <- readLines(system.file("dataset", "questions.sql", package = "profile"))
  is_title <- startsWith(lines, "-- question: ")
  code <- split(lines, cumsum(is_title))[-1]
  code <- vapply(code, function(lines) paste(lines[!startsWith(lines, "--")], collapse = " "), "")
  questions <- rlang::set_names(sub("; *$", "", code), sub("^-- question: ", "", lines[is_title]))
  expected <- answers_of_profiles()
  for_each_database(function(con, schema, connect) {
    for (i in seq_len(nrow(fleet))) {
      of <- as.list(fleet[i, ])
      store_profiles(do.call(profile_of_host, of), con, schema = schema, resource = do.call(attributes_of_host, of))
    }
    if (is_postgres(con)) DBI::dbExecute(con, paste("SET search_path =", DBI::dbQuoteIdentifier(con, schema)))
    answers <- lapply(questions, function(sql) with_numeric_times(DBI::dbGetQuery(con, sql)))
    expect_answers(answers, expected, class(con))
  })
})
