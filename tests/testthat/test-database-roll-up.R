# tier: gate
# Rolling up old runs: sums do not change, and values that cannot be summed are kept.

day <- 24 * 60 * 60
new_year <- 1767225600

# A profile of a minute of a service: samples with few stacks and labels.
minute_of <- function(service, version, time, seed = time) {
  set.seed(seed)
  x <- small_profile()
  count <- 40L
  stacks <- unname(split(x$sample_locations$location_id, x$sample_locations$sample_id))
  drawn <- sample(length(stacks), count, replace = TRUE)
  ids <- seq_len(count)
  x$samples <- tibble::tibble(sample_id = ids, source_id = 1L, .timestamp = time + ids)
  x$sample_locations <- tibble::tibble(
    sample_id = rep(ids, lengths(stacks[drawn])), depth = sequence(lengths(stacks[drawn])), location_id = unlist(stacks[drawn])
  )
  x$sample_values <- tibble::tibble(
    sample_id = rep(ids, each = 2), type = rep(c("samples", "cpu"), count), unit = rep(c("count", "nanoseconds"), count),
    value = as.numeric(rbind(1, sample(1e7, count)))
  )
  labelled <- sample(ids, 30)
  x$.labels <- tibble::tibble(
    sample_id = labelled, key = "route", str = sample(c("/a", "/b"), 30, replace = TRUE), num = NA_real_, unit = NA_character_
  )
  x$sources <- tibble::tibble(
    source_id = 1L, source_type = "process", source_uri = NA_character_, source_timestamp = time,
    .period = 1e7, .period_type = "cpu", .period_unit = "nanoseconds", .duration_nanos = 6e10, .scope_id = 1L
  )
  empty <- data_model()$optional
  row_of <- function(table, ...) {
    rows <- tibble::tibble(...)
    for (column in setdiff(names(empty[[table]]), names(rows))) rows[[column]] <- rep(empty[[table]][[column]][NA_integer_], nrow(rows))
    rows[names(empty[[table]])]
  }
  x$.scopes <- row_of(".scopes", scope_id = 1L, resource_id = 1L, name = "profile", version = "2")
  x$.resources <- row_of(".resources", resource_id = 1L)
  x$.resource_attributes <- row_of(
    ".resource_attributes", resource_id = 1L, key = c("service.name", "service.version"), type = "string", value = c(service, version)
  )
  x$.source_attributes <- row_of(
    ".source_attributes", source_id = 1L, key = c("process.pid", "process.owner"), type = c("int", "string"),
    value = c(as.character(time %% 1000), "shiny")
  )
  x
}

# Two services for two days, made once.
fleet <- local({
  profiles <- NULL
  function() {
    times <- new_year + c(0, 600, 4000, 80000, day + 5, day + 1000)
    if (is.null(profiles)) {
      profiles <<- c(
        lapply(times, function(time) minute_of("shop", "1.0", time)),
        lapply(times + 1, function(time) minute_of("search", "1.0", time))
      )
    }
    profiles
  }
})

# Everything that must not change: sums by day, service, stack, label and type.
sums_of <- function(con, schema) {
  x <- profile_from_con(con, schema = schema)
  stacks <- vapply(stacks(x), paste, "", collapse = ";")
  labels <- x$.labels$str[match(x$samples$sample_id, x$.labels$sample_id)]
  source <- match(x$samples$source_id, x$sources$source_id)
  scope <- match(x$sources$.scope_id, x$.scopes$scope_id)
  services <- x$.resource_attributes[x$.resource_attributes$key == "service.name", ]
  service <- services$value[match(x$.scopes$resource_id[scope], services$resource_id)]
  row <- match(x$sample_values$sample_id, x$samples$sample_id)
  keys <- paste(
    x$sources$source_timestamp[source] %/% day, service[source], stacks, labels,
    sep = " | "
  )[row]
  sums <- tapply(x$sample_values$value, paste(keys, x$sample_values$type), sum)
  sums[order(names(sums))]
}

test_that("runs of a day are summed up by service, and no sum changes", {
  for_each_database(function(con, schema, connect) {
    store(con, fleet(), schema)
    before <- sums_of(con, schema)
    summed <- lapply(c("samples", "cpu"), function(type) summary(profile_from_con(con, schema = schema), type = type)$by_function)
    end <- as.POSIXct(new_year + 10 * day, origin = "1970-01-01")
    expect_equal(expect_invisible(roll_up_profiles(con, end, schema = schema)), 8)
    expect_equal(sums_of(con, schema), before)
    x <- validate_profile(profile_from_con(con, schema = schema))
    for (i in 1:2) {
      again <- summary(x, type = c("samples", "cpu")[[i]])$by_function
      expect_equal(again[order(again$name), ], summed[[i]][order(summed[[i]]$name), ])
    }
    # A row for each stack and set of labels.
    expect_equal(sort(x$sources$source_timestamp), new_year + c(0, 1, day + 5, day + 6))
    expect_equal(nrow(x$samples), length(before) / 2)
    expect_equal(sort(x$sources$.duration_nanos), 6e10 * c(2, 2, 4, 4))
    expect_false(".timestamp" %in% names(x$samples))
    expect_equal(roll_up_profiles(con, end, schema = schema), 0)
    expect_equal(sums_of(con, schema), before)
    # The views agree.
    values <- DBI::dbGetQuery(con, paste("SELECT sum(value) AS sum FROM", quoted(con, schema, "sample_values"), "WHERE type = 'cpu'"))
    expect_equal(values$sum, sum(summed[[2]]$self))
  })
})

test_that("hours become days, and late runs are added", {
  for_each_database(function(con, schema, connect) {
    profiles <- fleet()
    store(con, profiles[-2], schema)
    end <- as.POSIXct(new_year + 10 * day, origin = "1970-01-01")
    expect_equal(roll_up_profiles(con, end, period = "hour", schema = schema), 3)
    store(con, profiles[2], schema)
    before <- sums_of(con, schema)
    expect_equal(roll_up_profiles(con, end, period = "hour", schema = schema), 1)
    expect_equal(sums_of(con, schema), before)
    expect_equal(count_rows(con, schema, "sources"), 8)
    expect_equal(roll_up_profiles(con, end, schema = schema), 4)
    expect_equal(sums_of(con, schema), before)
    # The remaining runs are pruned like any other run.
    expect_equal(prune_profiles(con, as.POSIXct(new_year + day, origin = "1970-01-01"), schema = schema), 2)
    expect_equal(sums_of(con, schema), before[startsWith(names(before), as.character((new_year + day) %/% day))])
    validate_profile(profile_from_con(con, schema = schema))
  })
})

test_that("ids of 64 bits are summed up", {
  for_each_database(function(con, schema, connect) {
    store(con, fleet()[1], schema)
    DBI::dbExecute(con, paste("UPDATE", quoted(con, schema, ".next_ids"), "SET next_id = next_id + 3000000000"))
    store(con, fleet()[2:3], schema)
    before <- sums_of(con, schema)
    expect_equal(roll_up_profiles(con, Sys.time(), source_id > 3e9, schema = schema), 1)
    expect_equal(sums_of(con, schema), before)
    expect_equal(roll_up_profiles(con, Sys.time(), schema = schema), 1)
    expect_equal(sums_of(con, schema), before)
  })
})

test_that("only the runs that are asked for are summed up", {
  for_each_database(function(con, schema, connect) {
    store(con, fleet(), schema)
    next_day <- as.POSIXct(new_year + day, origin = "1970-01-01")
    expect_equal(roll_up_profiles(con, next_day, source_id <= 2, schema = schema), 1)
    expect_equal(roll_up_profiles(con, next_day, source_type == "pprof", schema = schema), 0)
    expect_equal(roll_up_profiles(con, next_day, schema = schema), 5)
    expect_equal(sum(DBI::dbReadTable(con, table_id(schema, "sources"))$source_timestamp >= new_year + day), 4)
  })
})

test_that("common values of all runs are kept", {
  for_each_database(function(con, schema, connect) {
    runs <- lapply(c(0, 60, 120), function(time) minute_of("shop", "1.0", new_year + time))
    for (i in 1:3) {
      runs[[i]]$.comments <- tibble::tibble(source_id = 1L, comment = c("same", paste("run", i)))
      runs[[i]]$.notes <- tibble::tibble(source_id = 1L, note = c("ours", if (i < 3) "of some"))
      runs[[i]]$sources$source_uri <- "http://shop"
      runs[[i]]$sources$.profile_id <- strrep(as.character(i), 32)
    }
    store(con, runs, schema)
    expect_equal(roll_up_profiles(con, Sys.time(), schema = schema), 2)
    x <- profile_from_con(con, schema = schema)
    expect_equal(x$.comments$comment, "same")
    expect_equal(x$.notes$note, "ours")
    expect_equal(x$sources$source_uri, "http://shop")
    expect_false(".profile_id" %in% names(x$sources))
    expect_equal(x$.source_attributes$key, "process.owner")
    expect_equal(x$.resource_attributes$value, c("shop", "1.0"))
    expect_equal(x$sources$.period, 1e7)
  })
})

test_that("runs that differ are not summed up with each other", {
  for_each_database(function(con, schema, connect) {
    runs <- lapply(0:1, function(i) minute_of("shop", paste0("1.", i), new_year + 60 * i))
    store(con, runs, schema)
    # Without a scope, runs of the same file belong together.
    files <- lapply(c("a.out", "b.out", "a.out"), function(file) {
      x <- at_time(small_profile(), new_year)
      x$sources$source_uri <- file
      x
    })
    store(con, files, schema)
    # A column of the user makes them different.
    store(con, lapply(c("x", "y"), function(team) {
      x <- at_time(small_profile(), new_year)
      x$sources$.team <- team
      x$sources$source_uri <- "c.out"
      x
    }), schema)
    # Sample types do so as well.
    store(con, lapply(c("cpu", "wall"), function(type) {
      x <- at_time(small_profile(), new_year)
      x$.sample_types <- tibble::tibble(source_id = 1L, type = type, unit = "nanoseconds", recorded = type)
      x$sample_values$type <- type
      x$sample_values$unit <- "nanoseconds"
      x$sources$source_uri <- "d.out"
      x
    }), schema)
    # Without a time there is no day.
    forever <- at_time(small_profile(), NA_real_)
    store(con, list(forever, forever), schema)
    expect_equal(roll_up_profiles(con, Sys.time(), schema = schema), 1)
    expect_equal(sum(profile_from_con(con, schema = schema)$sources$source_uri == "a.out", na.rm = TRUE), 1)
  })
})

test_that("runs whose values differ in type or unit are not summed up with each other", {
  for_each_database(function(con, schema, connect) {
    in_unit <- function(type, unit) {
      x <- at_time(small_profile(), new_year)
      x$.sample_types <- NULL
      x$sample_values$type <- type
      x$sample_values$unit <- unit
      x$sources$source_uri <- "a.out"
      x
    }
    runs <- list(
      in_unit("time", "seconds"), in_unit("time", "milliseconds"), in_unit("wall", "seconds"), in_unit("time", "seconds")
    )
    store(con, runs, schema)
    sums <- function() {
      values <- profile_from_con(con, schema = schema)$sample_values
      sums <- tapply(values$value, paste(values$type, values$unit), sum)
      stats::setNames(as.numeric(sums), names(sums))
    }
    before <- sums()
    expect_equal(roll_up_profiles(con, Sys.time(), schema = schema), 1)
    expect_equal(sums(), before)
    expect_equal(nrow(validate_profile(profile_from_con(con, schema = schema))$sources), 3)
  })
})

test_that("sums beyond the range of a double are an error", {
  for_each_database(function(con, schema, connect) {
    x <- at_time(small_profile(), new_year)
    x$sample_values$value <- 1e308
    store(con, list(x, x), schema)
    before <- profile_from_con(con, schema = schema)
    if (inherits(con, "SQLiteConnection")) {
      expect_error(roll_up_profiles(con, Sys.time(), schema = schema), class = "profile_error_unsupported")
    } else {
      expect_error(roll_up_profiles(con, Sys.time(), schema = schema))
    }
    expect_identical(profile_from_con(con, schema = schema), before)
  })
})

test_that("samples that would lose other information are not changed", {
  for_each_database(function(con, schema, connect) {
    memory <- read_quietly(rprof_path("multi_memory_gc_line.out"))
    memory <- at_time(memory, new_year)
    noted <- at_time(small_profile(), new_year)
    noted$.notes <- tibble::tibble(sample_id = 2L, note = "look at this")
    counted <- at_time(small_profile(), new_year)
    counted$sample_values$.note <- "counted twice"
    stored <- list(memory, memory, noted, noted, counted, counted)
    store(con, stored, schema)
    expect_equal(roll_up_profiles(con, Sys.time(), schema = schema), 0)
    expect_identical(profile_from_con(con, schema = schema), combine_profiles(stored))
    # The other runs of the day are summed up.
    plain <- at_time(small_profile(), new_year + 1)
    plain$sources$source_uri <- noted$sources$source_uri
    store(con, list(plain, plain, plain), schema)
    expect_equal(roll_up_profiles(con, Sys.time(), schema = schema), 2)
    expect_equal(roll_up_profiles(con, Sys.time(), schema = schema), 0)
    # Samples that differ in a column of the user remain apart.
    own <- at_time(small_profile(), new_year + 2 * day)
    own$samples$.thread <- c("main", "main", "worker")
    stack <- own$sample_locations[own$sample_locations$sample_id == 1, ]
    own$sample_locations <- vctrs::vec_rbind(!!!lapply(1:3, function(id) replace(stack, "sample_id", id)))
    store(con, list(own, own), schema)
    expect_equal(roll_up_profiles(con, Sys.time(), schema = schema), 1)
    x <- profile_from_con(con, source_timestamp == !!(new_year + 2 * day), schema = schema)
    expect_equal(sort(x$samples$.thread), c("main", "worker"))
  })
})

test_that("mappings stay with their run", {
  for_each_database(function(con, schema, connect) {
    go <- at_time(read_pprof(data_path("pprof", "go_cpu.pb.gz"), source_uri = "server"), new_year)
    store(con, list(go, go), schema)
    before <- summary(profile_from_con(con, schema = schema))$by_function
    expect_equal(roll_up_profiles(con, Sys.time(), schema = schema), 1)
    x <- profile_from_con(con, schema = schema)
    after <- summary(x)$by_function
    expect_equal(after[order(after$name), ], before[order(before$name), ])
    stored <- DBI::dbReadTable(con, table_id(schema, ".mappings"))
    expect_equal(as.numeric(stored$source_id), rep(1, 2 * nrow(go$.mappings)))
  })
})

test_that("many groups are several transactions", {
  runs <- tibble::tibble(source_id = 1:7, group = c(1L, 1L, 2L, 2L, 2L, 3L, 3L))
  parts <- parts_of_groups(runs, 3L)
  expect_equal(lapply(parts, function(part) part$source_id), list(1:2, 3:5, 6:7))
  expect_equal(do.call(rbind, parts), runs)
  expect_length(parts_of_groups(runs), 1)
  expect_length(parts_of_groups(runs[0, ]), 0)
})

test_that("after an error no day is summed up in part", {
  for_each_database(function(con, schema, connect) {
    store(con, fleet(), schema)
    x <- profile_from_con(con, schema = schema)
    replace_function("update_sources", function(...) stop("the disk is full"))
    expect_error(roll_up_profiles(con, Sys.time(), schema = schema), "the disk is full")
    expect_identical(profile_from_con(con, schema = schema), x)
    replace_function("update_sources", function(...) rlang::interrupt())
    stopped <- tryCatch(roll_up_profiles(con, Sys.time(), schema = schema), interrupt = function(e) "by Ctrl-C")
    expect_equal(stopped, "by Ctrl-C")
    expect_identical(profile_from_con(con, schema = schema), x)
  })
  for_each_database(function(con, schema, connect) {
    store(con, fleet(), schema)
    before <- sums_of(con, schema)
    # In a transaction of the user, which is rolled back.
    DBI::dbBegin(con)
    expect_equal(roll_up_profiles(con, Sys.time(), schema = schema), 8)
    DBI::dbRollback(con)
    expect_equal(count_rows(con, schema, "sources"), 12)
    expect_equal(roll_up_profiles(con, Sys.time(), schema = schema), 8)
    expect_equal(sums_of(con, schema), before)
  })
})

test_that("runs that others removed or summed up meanwhile cause no error", {
  for_each_database(function(con, schema, connect) {
    store(con, fleet(), schema)
    other <- connect_again(connect)
    end <- as.POSIXct(new_year + day, origin = "1970-01-01")
    begun <- FALSE
    meanwhile <- parts_of_groups
    replace_function("parts_of_groups", function(...) {
      parts <- meanwhile(..., size = 2L)
      if (!begun) {
        begun <<- TRUE
        prune_profiles(other, end, schema = schema)
        roll_up_profiles(other, Sys.time(), source_id > 6, schema = schema)
      }
      parts
    })
    expect_equal(roll_up_profiles(con, Sys.time(), schema = schema), 1)
    x <- validate_profile(profile_from_con(con, schema = schema))
    expect_equal(nrow(x$sources), 2)
    services <- x$.resource_attributes$value[x$.resource_attributes$key == "service.name"]
    expect_setequal(services, c("shop", "search"))
    wanted <- combine_profiles(fleet()[c(5, 6, 11, 12)])
    expect_equal(sum(x$sample_values$value), sum(wanted$sample_values$value))
  })
})

test_that("other writers can write in between", {
  skip_on_cran()
  skip_on_os("windows")
  for_each_database(function(con, schema, connect) {
    store(con, fleet(), schema)
    x <- minute_of("shop", "2.0", new_year + 100)
    file <- withr::local_tempfile()
    saveRDS(x, file)
    writer <- run_r(wait = FALSE, c(
      "library(profile)",
      sprintf("con <- %s", connect),
      sprintf("x <- readRDS(%s)", deparse(file)),
      "for (i in 1:5) {",
      "  x$sources$source_timestamp <- x$sources$source_timestamp + 1",
      sprintf("  copy_profile_to(con, x, schema = %s)", deparse(schema)),
      "}",
      "cat('done\n')"
    ))
    while (length(writer$lines()) == 0 && tools::pskill(writer$pid(), 0)) {
      roll_up_profiles(con, Sys.time(), schema = schema)
    }
    expect_printed(writer, "^done")
    roll_up_profiles(con, Sys.time(), schema = schema)
    y <- profile_from_con(con, schema = schema)
    expect_equal(nrow(y$sources), 5)
    expect_equal(
      sum(y$sample_values$value),
      sum(combine_profiles(fleet())$sample_values$value) + 5 * sum(x$sample_values$value)
    )
  })
})

test_that("arguments and the database are checked", {
  for_each_database(function(con, schema, connect) {
    expect_error(roll_up_profiles(con, "yesterday", schema = schema), class = "profile_error_argument")
    expect_error(roll_up_profiles(con, Sys.Date(), schema = schema), class = "profile_error_invalid")
    store(con, list(small_profile()), schema)
    expect_error(roll_up_profiles(con, Sys.Date(), period = "week", schema = schema), "period")
    expect_error(roll_up_profiles(con, Sys.Date(), no_column == 1, schema = schema), class = "profile_error_argument")
    expect_equal(roll_up_profiles(con, Sys.Date(), schema = schema), 0)
  })
})
