# tier: gate
# The same tests for each available database, see helper-database.R.

several <- function() {
  x <- read_quietly(rprof_path("multi_memory_gc_line.out"))
  x$functions$.package <- "base"
  x$.notes <- tibble::tibble(
    sample_id = c(3L, 1L), note = c("third", NA), size = c(2.5, 1e300)
  )
  go <- read_pprof(data_path("pprof", "go_cpu.pb.gz"))
  go$locations$.frame_type <- rep_len(c("native", NA, "go"), nrow(go$locations))
  list(
    x,
    go,
    read_quietly(rprof_path("files120_line_numfiles200.out")),
    small_profile(version = "1.0"),
    read_quietly(rprof_path("names_plain.out"))
  )
}

test_that("storing run by run is equivalent to combining", {
  for_each_database(function(con, schema, connect) {
    all <- several()
    store(con, all, schema)
    expect_identical(profile_from_con(con, schema = schema), combine_profiles(all))
  })
})

test_that("runs are filtered before they are loaded", {
  for_each_database(function(con, schema, connect) {
    all <- several()
    store(con, all, schema)
    load <- function(...) profile_from_con(con, ..., schema = schema)
    expect_identical(load(source_type == "pprof"), combine_profiles(all[[2]]))
    uri <- all[[3]]$sources$source_uri
    expect_identical(load(source_uri == uri), combine_profiles(all[[3]]))
    expect_identical(load(.period == 20000, .memory_profiling), combine_profiles(all[[1]]))
    expect_identical(load(source_id %in% c(1, 3)), combine_profiles(all[c(1, 3)]))
    none <- load(source_uri == "nowhere")
    expect_identical(none, combine_profiles())
    expect_error(load(no_column == 1), "no_column", class = "profile_error_argument")
    expect_error(load("a"), class = "profile_error_argument")
  })
})

test_that("the new ids of a profile are returned", {
  for_each_database(function(con, schema, connect) {
    x <- small_profile()
    expect_equal(copy_profile_to(con, x, schema = schema)$source_id, 1)
    y <- expect_invisible(copy_profile_to(con, combine_profiles(x, x), schema = schema))
    expect_equal(y$source_id, 2:3)
    expect_equal(count_rows(con, schema, "samples"), 9)
    expect_error(copy_profile_to(con, 1), class = "profile_error_invalid")
  })
})

test_that("ids may exceed R's integers", {
  for_each_database(function(con, schema, connect) {
    all <- several()
    copy_profile_to(con, all[[1]], schema = schema)
    DBI::dbExecute(con, paste(
      "UPDATE", quoted(con, schema, ".next_ids"), "SET next_id = next_id + 3000000000"
    ))
    store(con, all[-1], schema)
    expect_identical(profile_from_con(con, schema = schema), combine_profiles(all))
    expect_identical(
      profile_from_con(con, source_id > 3e9, source_type == "pprof", schema = schema),
      combine_profiles(all[[2]])
    )
  })
})

test_that("a profile that could not be stored leaves no rows", {
  for_each_database(function(con, schema, connect) {
    x <- small_profile()
    copy_profile_to(con, x, schema = schema)
    # The last table that is written.
    y <- x
    y$.zzz <- tibble::tibble(sample_id = 1L, what = list(mean))
    expect_error(copy_profile_to(con, y, schema = schema))
    expect_false(".zzz" %in% list_tables(con, schema))
    expect_identical(profile_from_con(con, schema = schema), x)
    copy_profile_to(con, x, schema = schema)
    expect_identical(profile_from_con(con, schema = schema), combine_profiles(x, x))
  })
})

test_that("nothing is left by a process that was killed", {
  skip_on_cran()
  skip_on_os("windows")
  for_each_database(function(con, schema, connect) {
    # The same profile, so that it needs no new columns: PostgreSQL lets readers wait for them.
    x <- read_quietly(normalizePath(rprof_path("basic_all.out")))
    copy_profile_to(con, x, schema = schema)
    ready <- tempfile()
    # The process stops for ever between two tables of its transaction.
    process <- run_r(wait = FALSE, c(
      "library(profile)",
      sprintf("con <- %s", connect),
      "append <- getFromNamespace('append_rows', 'profile')",
      "slow <- function(con, schema, table, rows) {",
      "  append(con, schema, table, rows)",
      sprintf("  if (table == 'samples') { file.create(%s); Sys.sleep(3600) }", deparse(ready)),
      "}",
      "assignInNamespace('append_rows', slow, 'profile')",
      sprintf("x <- read_rprof(%s)", deparse(normalizePath(rprof_path("basic_all.out")))),
      sprintf("copy_profile_to(con, x, schema = %s)", deparse(schema))
    ))
    expect_event(function() file.exists(ready), process)
    # Another process does not see the profile, before or after.
    expect_identical(profile_from_con(con, schema = schema), x)
    tools::pskill(process$pid(), tools::SIGKILL)
    copy_profile_to(con, x, schema = schema)
    expect_identical(profile_from_con(con, schema = schema), combine_profiles(x, x))
  })
})

test_that("Ctrl-C leaves nothing, and a connection that works", {
  skip_on_cran()
  skip_on_os("windows")
  listen <- listen_to_interrupts()
  for_each_database(function(con, schema, connect) {
    ready <- tempfile()
    process <- run_r(wait = FALSE, env = listen, c(
      "library(profile)",
      sprintf("con <- %s", connect),
      "append <- getFromNamespace('append_rows', 'profile')",
      "slow <- function(con, schema, table, rows) {",
      "  append(con, schema, table, rows)",
      sprintf("  if (table == 'samples') { file.create(%s); Sys.sleep(3600) }", deparse(ready)),
      "}",
      "assignInNamespace('append_rows', slow, 'profile')",
      sprintf("x <- read_rprof(%s)", deparse(normalizePath(rprof_path("basic_all.out")))),
      sprintf("store <- function() copy_profile_to(con, x, schema = %s)", deparse(schema)),
      "end <- tryCatch(store(), interrupt = function(e) 'interrupted')",
      "assignInNamespace('append_rows', append, 'profile')",
      "store()",
      "cat(end)"
    ))
    expect_event(function() file.exists(ready), process)
    tools::pskill(process$pid(), tools::SIGINT)
    expect_printed(process, "^interrupted")
    expect_identical(
      stacks(profile_from_con(con, schema = schema)),
      stacks(read_rprof(rprof_path("basic_all.out")))
    )
  })
})

test_that("writers at once lose nothing", {
  skip_on_cran()
  skip_on_os("windows")
  for_each_database(function(con, schema, connect) {
    start <- tempfile()
    file <- normalizePath(rprof_path("basic_all.out"))
    x <- read_quietly(file)
    writers <- lapply(1:3, function(i) {
      run_r(wait = FALSE, c(
        "library(profile)",
        sprintf("con <- %s", connect),
        sprintf("x <- read_rprof(%s, source_uri = 'writer %d')", deparse(file), i),
        sprintf("while (!file.exists(%s)) Sys.sleep(0.005)", deparse(start)),
        sprintf("for (i in 1:5) copy_profile_to(con, x, schema = %s)", deparse(schema)),
        "cat('done\n')"
      ))
    })
    file.create(start)
    for (writer in writers) expect_printed(writer, "^done")
    y <- profile_from_con(con, schema = schema)
    expect_equal(as.vector(table(y$sources$source_uri)), c(5, 5, 5))
    expect_identical(stacks(y), rep(stacks(x), 15))
    expect_equal(nrow(y$sample_values), 15 * nrow(x$sample_values))
  })
})

test_that("the database sums as R does", {
  for (package in c("dplyr", "dbplyr")) skip_if_not_installed(package)
  for_each_database(function(con, schema, connect) {
    all <- several()
    store(con, all, schema)
    expect_sums <- function(lazy, x, type = NULL) {
      wanted <- summary(x, type = type %||% "samples")$by_function
      sums <- dplyr::collect(summary(lazy, type = type %||% "samples"))
      expect_equal(nrow(sums), nrow(wanted))
      sums <- sums[match(wanted$name, sums$name), ]
      columns <- c("name", "self", "total", "self_share", "total_share")
      expect_equal(as.data.frame(sums[columns]), as.data.frame(wanted[columns]))
    }
    expect_sums(tbl_profile(con, schema = schema), combine_profiles(all))
    go <- tbl_profile(con, source_type == "pprof", schema = schema)
    expect_sums(go, all[[2]])
    expect_sums(go, all[[2]], "cpu")
    expect_match(format(go), "go_cpu", all = FALSE)
    expect_equal(dplyr::collect(dplyr::count(go$samples))$n |> as.numeric(), nrow(all[[2]]$samples))
    expect_error(summary(go, type = 1), class = "profile_error_argument")
  })
})

test_that("all tables can be joined in one pipe of dplyr", {
  for (package in c("dplyr", "dbplyr")) skip_if_not_installed(package)
  # The pipes of the example in `?tbl_profile`.
  self_by <- function(runs, column) {
    runs$sample_locations |>
      dplyr::filter(depth == 1) |>
      dplyr::inner_join(runs$samples, by = "sample_id") |>
      dplyr::inner_join(runs$sources, by = "source_id") |>
      dplyr::count(.data[[column]], location_id) |>
      dplyr::inner_join(runs$locations, by = "location_id") |>
      dplyr::inner_join(runs$functions, by = "function_id") |>
      dplyr::count(.data[[column]], name, wt = n, name = "self") |>
      dplyr::collect()
  }
  total_by <- function(runs, column) {
    runs$sample_locations |>
      dplyr::inner_join(runs$locations, by = "location_id") |>
      dplyr::inner_join(runs$functions, by = "function_id") |>
      dplyr::distinct(sample_id, name) |>
      dplyr::inner_join(runs$samples, by = "sample_id") |>
      dplyr::inner_join(runs$sources, by = "source_id") |>
      dplyr::count(.data[[column]], name, name = "total") |>
      dplyr::collect()
  }
  # Named numbers, such as `c("1.1 f" = 3)`.
  figures <- function(rows) {
    figures <- rlang::set_names(as.numeric(rows[[3]]), paste(rows[[1]], rows[[2]]))
    figures[order(names(figures))]
  }
  counted <- function(flat, versions) {
    figures(dplyr::count(data.frame(version = versions[flat$source_id], name = flat$name), version, name))
  }
  for_each_database(function(con, schema, connect) {
    versions <- c("1.0", "1.1", "1.0")
    files <- c("basic_all.out", "basic_mem.out", "names_plain.out")
    all <- Map(files, versions, f = function(file, version) {
      x <- read_quietly(rprof_path(file))
      x$sources$.version <- version
      x
    })
    store(con, all, schema)
    runs <- tbl_profile(con, schema = schema)
    flat <- as_tibble(combine_profiles(all))
    expect_equal(figures(self_by(runs, ".version")), counted(flat[flat$depth == 1, ], versions))
    once <- unique(flat[c("sample_id", "source_id", "name")])
    expect_equal(figures(total_by(runs, ".version")), counted(once, versions))

    # The service of a profile of OpenTelemetry, which is an attribute of its resource.
    x <- otlp_profiles()[[1]]
    store(con, list(x), schema)
    named <- function(table) dplyr::tbl(con, if (is.null(schema)) table else dbplyr::in_schema(schema, table))
    runs <- tbl_profile(con, source_type == "otlp", schema = schema)
    runs$sources <- named(".resource_attributes") |>
      dplyr::filter(key == "service.name") |>
      dplyr::inner_join(named(".scopes"), by = "resource_id") |>
      dplyr::inner_join(runs$sources, by = c(scope_id = ".scope_id")) |>
      dplyr::transmute(source_id, service = value)
    attributes <- x$.resource_attributes[x$.resource_attributes$key == "service.name", ]
    resource <- x$.scopes$resource_id[match(x$sources$.scope_id, x$.scopes$scope_id)]
    services <- attributes$value[match(resource, attributes$resource_id)]
    flat <- as_tibble(x)
    flat <- flat[flat$depth == 1 & !is.na(services[flat$source_id]) & !is.na(flat$name), ]
    expect_gt(nrow(flat), 0)
    expect_equal(figures(self_by(runs, "service")), counted(flat, services))
  })
})

test_that("the database sums no more types than R does", {
  for (package in c("dplyr", "dbplyr")) skip_if_not_installed(package)
  for_each_database(function(con, schema, connect) {
    x <- read_quietly(rprof_path("basic_mem.out"))
    copy_profile_to(con, x, schema = schema)
    stored <- tbl_profile(con, schema = schema)
    refused <- function(summary) {
      tryCatch(
        {
          summary
          FALSE
        },
        profile_error_unsupported = function(cnd) grepl("cannot be summed", conditionMessage(cnd))
      )
    }
    for (type in unique(x$sample_values$type)) {
      expect_equal(refused(summary(stored, type = type)), refused(summary(x, type = type)), info = type)
    }
    expect_true(refused(summary(stored, type = "nodes")))
  })
})

test_that("a database without profiles is refused", {
  for_each_database(function(con, schema, connect) {
    expect_error(profile_from_con(con, schema = schema), "sources", class = "profile_error_invalid")
  })
})

test_that("information of OpenTelemetry is stored, and loaded with its sources", {
  for_each_database(function(con, schema, connect) {
    # Profiles without this information are stored first and in between, so columns and tables are added.
    plain <- small_profile()
    otlp <- otlp_profiles()
    store(con, c(list(plain), otlp[1], list(plain), otlp[2:3]), schema)
    all <- combine_profiles(plain, otlp[[1]], plain, otlp[[2]], otlp[[3]])
    load <- function(...) profile_from_con(con, ..., schema = schema)
    expect_identical(load(), all)
    for (table in c(".resources", ".scopes", ".resource_entities", grep("_attributes$", names(all), value = TRUE))) {
      expect_equal(count_rows(con, schema, table), nrow(all[[table]]), info = table)
    }
    # A single profile, and several profiles as if they had been combined.
    expect_identical(load(source_id %in% 2:4), combine_profiles(otlp[[1]]))
    expect_identical(load(source_id %in% 6:8), combine_profiles(otlp[[2]]))
    expect_identical(load(source_id %in% c(2:4, 9, 10)), combine_profiles(otlp[[1]], otlp[[3]]))
    expect_identical(load(source_type == "otlp"), combine_profiles(otlp))
    expect_identical(load(source_type == "rprof"), combine_profiles(plain, plain))
  })
})

test_that("a source is loaded with its own scope, resource, mappings and attributes", {
  for_each_database(function(con, schema, connect) {
    x <- otlp_profiles()[[1]]
    store(con, list(otlp_profiles()[[2]], x), schema)
    resources <- function(y) attribute_words(y$.resource_attributes, "resource_id", y$.resources$resource_id)
    for (i in 1:3) {
      y <- profile_from_con(con, source_id == 3 + i, schema = schema)
      validate_profile(y)
      expect_equal(source_words(y), source_words(x)[i])
      own <- x$samples$source_id == i
      expect_equal(stack_words(y, all = TRUE), stack_words(x, all = TRUE)[own])
      expect_equal(sub("^1 at", "at", sample_words(y)), sub("^[0-9] at", "at", sample_words(x)[own]))
      expect_equal(nrow(y$.scopes), 1)
      expect_equal(resources(y), resources(x)[c(1, 1, 2)[i]])
      expect_equal(NROW(y[[".resource_entities"]]), c(1, 1, 0)[i])
      expect_equal(NROW(y[[".scope_attributes"]]), c(1, 0, 0)[i])
      expect_equal(NROW(y[[".source_attributes"]]), c(1, 0, 0)[i])
      expect_equal(y$.location_attributes$value, list(c("1.5", "3.25", "true"), "true", "3.25")[[i]])
      if (i == 3) {
        expect_equal(y$.mapping_attributes$value, "x86")
      }
      expect_through_otlp(y)
    }
    none <- profile_from_con(con, source_id == 99, schema = schema)
    expect_identical(none, combine_profiles())
    both <- profile_from_con(con, .profile_id == "000102030405060708090a0b0c0d0e0f", schema = schema)
    expect_equal(both$.scopes$name, c("py.producer", "allocs"))
    expect_equal(resources(both)[1], "service.name=string pyshop")
  })
})

test_that("a valid profile that was stored can be loaded", {
  for_each_database(function(con, schema, connect) {
    x <- otlp_profiles()[[1]]
    # Scopes without a source.
    x$sources$.scope_id <- NULL
    copy_profile_to(con, x, schema = schema)
    y <- tryCatch(profile_from_con(con, schema = schema), error = identity)
    expect_s3_class(y, "profile_data")
  })
})
