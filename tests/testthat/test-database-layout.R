# tier: gate
# The layout of databases: rows that are stored once, removed rows, and databases of earlier versions.

# The views as data frames.
read_view <- function(con, schema, table) {
  rows <- tibble::as_tibble(DBI::dbReadTable(con, table_id(schema, table), check.names = FALSE))
  rows[] <- lapply(rows, function(column) if (is.numeric(column)) as.numeric(column) else column)
  rows
}

test_that("the profiles of a service have their stacks once", {
  for_each_database(function(con, schema, connect) {
    x <- read_quietly(rprof_path("basic_all.out"))
    store(con, list(x), schema)
    shared <- c(".stacks", ".stack_locations", "locations", "functions")
    first <- vapply(shared, function(table) count_rows(con, schema, table), 0)
    distinct <- unique(split(x$sample_locations$location_id, x$sample_locations$sample_id))
    expect_equal(first[[".stacks"]], length(distinct))
    store(con, list(x, x), schema)
    expect_equal(vapply(shared, function(table) count_rows(con, schema, table), 0), first)
    expect_equal(count_rows(con, schema, "samples"), 3 * nrow(x$samples))
    expect_identical(profile_from_con(con, schema = schema), combine_profiles(x, x, x))
    expect_identical(profile_from_con(con, source_id == 2, schema = schema), combine_profiles(x))
  })
})

test_that("SQLite stores compound keys once", {
  skip_if_not_installed("RSQLite")
  con <- DBI::dbConnect(RSQLite::SQLite())
  withr::defer(DBI::dbDisconnect(con))
  store(con, list(read_quietly(rprof_path("basic_all.out"))), NULL)
  there <- DBI::dbGetQuery(con, "SELECT name FROM sqlite_master WHERE tbl_name = '.stack_locations' AND type IN ('table', 'index')")
  # A table with rowids would have an index of its key as well.
  expect_identical(there$name, ".stack_locations")
  plan <- DBI::dbGetQuery(con, "EXPLAIN QUERY PLAN SELECT location_id FROM \".stack_locations\" WHERE stack_id = 1")
  expect_match(plan$detail, "USING PRIMARY KEY")
})

test_that("PostgreSQL assumes that a run has a hundred samples", {
  skip_if(Sys.getenv("PROFILE_TEST_POSTGRES") == "", "PROFILE_TEST_POSTGRES is not set")
  for_each_database(function(con, schema, connect) {
    if (!is_postgres(con)) {
      return()
    }
    store(con, list(read_quietly(rprof_path("basic_all.out"))), schema)
    DBI::dbExecute(con, paste("ANALYZE", quoted(con, schema, "samples")))
    known <- DBI::dbGetQuery(con, paste(
      "SELECT n_distinct FROM pg_stats WHERE tablename = 'samples' AND attname = 'source_id' AND schemaname =",
      DBI::dbQuoteString(con, schema)
    ))
    expect_equal(known$n_distinct, -0.01, tolerance = 1e-6)
  })
})

test_that("the seven tables are the same as in the profile", {
  for_each_database(function(con, schema, connect) {
    x <- read_quietly(rprof_path("multi_memory_gc_line.out"))
    go <- read_pprof(data_path("pprof", "go_cpu.pb.gz"))
    store(con, list(x, go), schema)
    both <- combine_profiles(x, go)
    frames <- read_view(con, schema, "sample_locations")
    frames <- frames[order(frames$sample_id, frames$depth), ]
    expect_equal(frames$sample_id, both$sample_locations$sample_id)
    expect_equal(frames$depth, both$sample_locations$depth)
    names <- function(tables, ids) {
      of <- tables$locations$function_id[match(ids, tables$locations$location_id)]
      tables$functions$name[match(of, tables$functions$function_id)]
    }
    stored <- lapply(c(locations = "locations", functions = "functions"), function(table) read_view(con, schema, table))
    expect_equal(names(stored, frames$location_id), names(both, both$sample_locations$location_id))
    values <- read_view(con, schema, "sample_values")
    expected <- both$sample_values
    order <- function(rows) rows[base::order(rows$sample_id, rows$type), c("sample_id", "type", "unit", "value")]
    expect_equal(as.data.frame(order(values)), as.data.frame(order(expected)))
  })
})

test_that("sets of labels are stored once", {
  for_each_database(function(con, schema, connect) {
    x <- small_profile()
    label <- function(sample, key, str) {
      tibble::tibble(sample_id = sample, key = key, str = str, num = NA_real_, unit = NA_character_)
    }
    x$.labels <- rbind(label(1L, "route", "/a"), label(1L, "user", "x"), label(3L, "route", "/a"), label(3L, "user", "x"))
    store(con, list(x, x), schema)
    expect_equal(count_rows(con, schema, ".label_sets"), 1)
    expect_equal(count_rows(con, schema, ".set_labels"), 2)
    expect_identical(profile_from_con(con, schema = schema), combine_profiles(x, x))
    view <- read_view(con, schema, ".labels")
    expect_equal(sort(view$sample_id), c(1, 1, 3, 3, 4, 4, 6, 6))
    expect_equal(view$str[view$sample_id == 6 & view$key == "route"], "/a")
  })
})

test_that("frames, values and functions with columns of users are stored", {
  for_each_database(function(con, schema, connect) {
    x <- small_profile()
    x$sample_locations$.seen <- rep_len(c(TRUE, NA), nrow(x$sample_locations))
    x$sample_values$.note <- rep_len(c(NA, "counted twice", NA), nrow(x$sample_values))
    x$functions$.owner <- rep_len(c("us", "them"), nrow(x$functions))
    plain <- small_profile()
    store(con, list(plain, x, plain), schema)
    y <- profile_from_con(con, schema = schema)
    wanted <- combine_profiles(plain, x, plain)
    logical <- function(x) {
      x$sample_locations$.seen <- as.logical(x$sample_locations$.seen)
      x
    }
    expect_identical(logical(y), wanted)
    expect_equal(count_rows(con, schema, ".other_values"), sum(!is.na(x$sample_values$.note)))
    expect_equal(sort(read_view(con, schema, "sample_values")$sample_id), sort(wanted$sample_values$sample_id))
  })
})

test_that("more types of values than a table has columns for are stored", {
  for_each_database(function(con, schema, connect) {
    x <- small_profile()
    ids <- x$samples$sample_id
    x$sample_values <- tibble::tibble(
      sample_id = rep(ids, each = 150), type = rep(sprintf("type%d", 1:150), length(ids)), unit = "count",
      value = as.numeric(seq_len(150 * length(ids)))
    )
    store(con, list(x, x), schema)
    expect_identical(profile_from_con(con, schema = schema), combine_profiles(x, x))
    expect_equal(nrow(read_view(con, schema, "sample_values")), 2 * nrow(x$sample_values))
  })
})

test_that("rows that tables of users refer to are not shared", {
  for_each_database(function(con, schema, connect) {
    x <- small_profile()
    x$.notes <- tibble::tibble(function_id = x$functions$function_id[[1]], note = "slow")
    store(con, list(x, x), schema)
    notes <- read_view(con, schema, ".notes")
    expect_equal(length(unique(notes$function_id)), 2)
    name <- x$functions$name[[1]]
    for (id in 1:2) {
      y <- profile_from_con(con, source_id == id, schema = schema)
      expect_identical(stacks(y), stacks(x))
      expect_identical(y$functions$name[match(y$.notes$function_id, y$functions$function_id)], name)
    }
  })
})

test_that("old runs are removed with all rows that belong only to them", {
  for_each_database(function(con, schema, connect) {
    old <- at_time(read_quietly(rprof_path("basic_all.out")), 1000)
    new <- at_time(read_quietly(rprof_path("names_plain.out")), 2000)
    otlp <- otlp_profiles()[[1]]
    otlp$sources$source_timestamp <- c(1000, 2000, 1000)[seq_len(nrow(otlp$sources))]
    forever <- at_time(small_profile(), NA_real_)
    old$.notes <- tibble::tibble(sample_id = 1L, note = "old")
    store(con, list(old, new, forever), schema)
    before <- as.POSIXct(1500, origin = "1970-01-01")
    expect_equal(prune_profiles(con, before, source_uri == "nowhere", schema = schema), 0)
    expect_equal(expect_invisible(prune_profiles(con, before, schema = schema)), 1)
    expect_equal(prune_profiles(con, before, schema = schema), 0)
    left <- combine_profiles(new, forever)
    loaded <- profile_from_con(con, schema = schema)
    expect_identical(stacks(loaded), stacks(left))
    expect_identical(loaded$sources$source_uri, left$sources$source_uri)
    for (table in c("samples", "locations", "functions")) {
      expect_equal(count_rows(con, schema, table), nrow(left[[table]]), info = table)
    }
    distinct <- unique(split(left$sample_locations$location_id, left$sample_locations$sample_id))
    expect_equal(count_rows(con, schema, ".stacks"), length(distinct))
    expect_equal(count_rows(con, schema, ".notes"), 0)
    # Removed profiles can be stored again.
    store(con, list(old), schema)
    expect_identical(stacks(profile_from_con(con, source_timestamp == 1000, schema = schema)), stacks(old))

    store(con, list(otlp), schema)
    prune_profiles(con, before, schema = schema)
    expect_identical(stacks(profile_from_con(con, source_type == "otlp", schema = schema)),
      stacks(profile_from_con(con, source_type == "otlp", source_timestamp == 2000, schema = schema)))
    prune_profiles(con, as.POSIXct(3000, origin = "1970-01-01"), schema = schema)
    validate_profile(profile_from_con(con, schema = schema))
    there <- list_tables(con, schema)
    for (table in intersect(c(".scopes", ".resources", ".resource_attributes", ".mappings", ".source_attributes"), there)) {
      expect_equal(count_rows(con, schema, table), 0, info = table)
    }
    # Only runs without a timestamp are left.
    expect_identical(profile_from_con(con, schema = schema), combine_profiles(forever))
  })
})

test_that("a time is the same in each class", {
  new_york <- as.POSIXct("2026-01-01 19:30", tz = "America/New_York")
  for_each_database(function(con, schema, connect) {
    for (before in list(new_york, as.POSIXlt(new_york), as.POSIXlt(new_york, tz = "UTC"))) {
      # One run before, and one run at the time.
      times <- as.numeric(new_york) - 1:0
      store(con, lapply(times, at_time, x = small_profile()), schema)
      expect_equal(roll_up_profiles(con, before, schema = schema), 0)
      expect_equal(prune_profiles(con, before, schema = schema), 1)
      expect_equal(profile_from_con(con, schema = schema)$sources$source_timestamp, times[[2]])
      expect_equal(prune_profiles(con, as.POSIXlt(new_york + 1), schema = schema), 1)
    }
    # The days of both classes begin in UTC.
    store(con, list(at_time(small_profile(), as.numeric(as.POSIXct("2026-01-02", tz = "UTC")))), schema)
    expect_equal(prune_profiles(con, as.Date("2026-01-02"), schema = schema), 0)
    expect_equal(prune_profiles(con, as.POSIXlt(as.Date("2026-01-03")), schema = schema), 1)
    for (before in list(as.POSIXlt(c(new_york, new_york)), as.POSIXlt(NA))) {
      expect_error(prune_profiles(con, before, schema = schema), class = "profile_error_argument")
    }
  })
})

test_that("the arguments for removing runs are checked", {
  for_each_database(function(con, schema, connect) {
    expect_error(prune_profiles(con, "yesterday", schema = schema), class = "profile_error_argument")
    expect_error(prune_profiles(con, 5, schema = schema), class = "profile_error_argument")
    expect_error(prune_profiles(con, as.Date(NA), schema = schema), class = "profile_error_argument")
    expect_error(prune_profiles(con, Sys.Date(), schema = schema), class = "profile_error_invalid")
    store(con, list(small_profile()), schema)
    expect_error(prune_profiles(con, Sys.Date(), no_column == 1, schema = schema), class = "profile_error_argument")
  })
})

# The tables that version 2.0.0 of this package wrote.
store_as_before <- function(con, x, schema) {
  write <- function(name, rows) DBI::dbWriteTable(con, table_id(schema, name), as.data.frame(rows))
  for (table in names(x)) {
    rows <- x[[table]]
    keyed <- c("meta", "sources", "samples", "sample_locations", "locations", "functions", ".mappings")
    if (!table %in% keyed) rows$.row <- seq_len(nrow(rows))
    write(table, rows)
  }
  keys <- data_model()$keys
  write(".next_ids", data.frame(key = c(names(keys), ".row"), next_id = 1e6))
}

test_that("databases of the previous layout are read-only", {
  for (package in c("dplyr", "dbplyr")) skip_if_not_installed(package)
  for_each_database(function(con, schema, connect) {
    x <- combine_profiles(read_quietly(rprof_path("basic_all.out")), read_quietly(rprof_path("names_plain.out")))
    store_as_before(con, x, schema)
    expect_identical(profile_from_con(con, schema = schema), x)
    expect_identical(stacks(profile_from_con(con, source_id == 2, schema = schema)), stacks(x)[x$samples$source_id == 2])
    sums <- dplyr::collect(summary(tbl_profile(con, schema = schema)))
    wanted <- summary(x, type = "samples")$by_function
    expect_equal(sums$total[match(wanted$name, sums$name)], wanted$total)
    tables <- sort(list_tables(con, schema))
    for (change in list(
      function() copy_profile_to(con, x, schema = schema),
      function() prune_profiles(con, Sys.Date(), schema = schema),
      function() roll_up_profiles(con, Sys.Date(), schema = schema)
    )) {
      error <- expect_error(change(), class = "profile_error_unsupported")
      expect_match(conditionMessage(error), "earlier version")
    }
    expect_equal(sort(list_tables(con, schema)), tables)
    expect_identical(profile_from_con(con, schema = schema), x)
  })
})

test_that("names of the layout are reserved", {
  for_each_database(function(con, schema, connect) {
    for (table in setdiff(stored_tables, ".next_ids")) {
      x <- small_profile()
      x[[table]] <- tibble::tibble(a = 1)
      expect_unstorable(con, schema, x, table)
    }
    for (column in c(".stack_id", ".label_set_id", ".value_7")) {
      x <- small_profile()
      x$samples[[column]] <- 1:3
      expect_unstorable(con, schema, x, "samples", column)
    }
    x <- small_profile()
    x$functions$.key <- "a"
    expect_unstorable(con, schema, x, "functions", ".key")
  })
})
