# tier: gate
# Conversion from and to dm.

test_that("without dm there is a clear error", {
  skip_if(rlang::is_installed("dm"), "dm is installed")
  expect_error(
    dm_from_profile(small_profile()), "not installed",
    class = "profile_error_unsupported"
  )
})

full <- function() {
  go <- read_pprof(data_path("pprof", "go_cpu.pb.gz"))
  go$locations$.frame_type <- rep_len(c("native", NA, "go"), nrow(go$locations))
  combine_profiles(
    read_quietly(rprof_path("multi_memory_gc_line.out")),
    go,
    small_profile(version = "1.0")
  )
}

test_that("all keys are set and hold", {
  skip_if_not_installed("dm")
  x <- dm_from_profile(full())
  expect_s3_class(x, "dm")
  constraints <- dm::dm_examine_constraints(x)
  expect_true(all(constraints$is_key))
  primary <- dm::dm_get_all_pks(x)
  keys <- rlang::set_names(lapply(primary$pk_col, as.character), primary$table)
  expect_equal(keys$sample_values, c("sample_id", "type"))
  expect_equal(keys$sample_locations, c("sample_id", "depth"))
  expect_setequal(names(keys), c(
    "sources", "samples", "sample_values", "sample_locations", "locations", "functions",
    ".mappings"
  ))
  foreign <- dm::dm_get_all_fks(x)
  expect_setequal(
    paste(foreign$child_table, foreign$parent_table),
    c(
      "samples sources", "sample_values samples", "sample_locations samples",
      "sample_locations locations", "locations functions", "locations .mappings",
      ".files sources", ".labels samples", ".sample_types sources"
    )
  )
})

test_that("columns are shared", {
  skip_if_not_installed("dm")
  x <- full()
  y <- dm_from_profile(x)
  address <- function(x) rlang::obj_address(x$sample_locations$location_id)
  expect_equal(address(y), address(x))
})

test_that("conversion to dm and back changes nothing, also with as_dm()", {
  skip_if_not_installed("dm")
  x <- full()
  expect_setequal(x$locations$.frame_type, c("native", NA, "go"))
  y <- dm::as_dm(x)
  expect_identical(profile_v2_from_v1(y), x)
  expect_identical(dm::dm_get_tables(dm_from_profile(y)), dm::dm_get_tables(y))
  old <- small_profile(version = "1.0")
  expect_identical(profile_v2_from_v1(dm::as_dm(old)), profile_v2_from_v1(old))
})

test_that("it flattens to one table", {
  skip_if_not_installed("dm")
  x <- full()
  flat <- dm::dm_flatten_to_tbl(dm_from_profile(x), sample_locations, .recursive = TRUE)
  expect_equal(nrow(flat), nrow(x$sample_locations))
  expect_equal(flat$name, as_tibble(x)$name)
})

test_that("a filtered dm is a profile for every function", {
  skip_if_not_installed("dm")
  x <- full()
  f <- x$functions$name[[2]]
  y <- dm::dm_filter(dm_from_profile(x), functions = (name == !!f))
  validate_profile(y)
  with_f <- unique(as_tibble(x)$sample_id[as_tibble(x)$name == f])
  expect_gt(length(with_f), 0)
  tables <- compact_profile(y)
  expect_equal(nrow(tables$samples), length(with_f))
  expect_equal(combine_profiles(y, y)$samples$sample_id, seq_len(2 * length(with_f)))
  expect_equal(profile_problems(y), profile_problems(x))
  path <- withr::local_tempfile()
  expect_identical(expect_invisible(write_pprof(y, path)), y)
  expect_gt(nrow(read_pprof(path)$samples), 0)
  expect_identical(expect_invisible(write_rprof(y, path)), y)
  expect_s3_class(profile_v1_from_v2(y), "profile_data")
})

# Functions that take no profile.
without_profile <- c(
  "agent_status", "as_tibble", "benchmark_package", "benchmark_profile", "dump_stack", "expect_memory", "expect_no_copies",
  "find_pprof", "forward_profiles", "joint_pprof", "label_handler", "label_plumber", "label_work", "last_profile",
  "list_r_processes", "profile_check", "profile_process", "prune_profiles", "read_collapsed", "read_cpuprofile",
  "read_firefox", "read_otlp", "read_perf_script", "read_pprof", "read_profile", "read_rprof",
  "read_rprofmem", "read_speedscope", "record_profile", "roll_up_profiles", "snapshot_memory", "start_agent", "start_profiler",
  "stop_agent", "stop_profiler", "tbl_profile", "tracer_provider", "watch_process", "with_labels",
  "with_span_ids"
)

# All other exported functions, as functions of a profile. `path` is a file, `con` a database or `NULL`.
with_profile <- function(path, con) {
  list(
    add_packages = add_packages,
    add_source_text = add_source_text,
    annotate_lines = annotate_lines,
    as_profvis = as_profvis,
    call_tree = call_tree,
    callees = function(x) callees(x, call_tree(x)$name[[1]]),
    callers = function(x) callers(x, call_tree(x)$name[[1]]),
    combine_profiles = function(x) list(combine_profiles(x), combine_profiles(list(x, x))),
    compact_profile = compact_profile,
    compare_profiles = function(x) compare_profiles(x, x),
    describe_profile = describe_profile,
    dm_from_profile = function(x) tables_of_profile(dm_from_profile(x)),
    expect_no_regression = function(x) expect_no_regression(x, x, inconclusive = "pass"),
    filter_profile = function(x) filter_profile(x, focus = "f"),
    holders = holders,
    profile_page = profile_page,
    profile_problems = profile_problems,
    profile_v1_from_v2 = profile_v1_from_v2,
    profile_v2_from_v1 = profile_v2_from_v1,
    # The dm is accepted, and then sent to a port without a server.
    send_otlp = function(x) {
      if (rlang::is_installed("curl")) {
        error <- tryCatch(send_otlp(x, "http://127.0.0.1:1", retries = 0), error = identity)
        expect_s3_class(error, "profile_error_send")
      }
      NULL
    },
    validate_profile = function(x) expect_identical(validate_profile(x), x),
    write_callgrind = function(x) write_callgrind(x, path),
    write_collapsed = function(x) write_collapsed(x, path),
    write_cpuprofile = function(x) write_cpuprofile(x, path),
    write_firefox = function(x) write_firefox(x, path),
    write_otlp = function(x) write_otlp(x, path),
    write_pprof = function(x) write_pprof(x, path),
    write_profile = function(x) write_profile(x, paste0(path, ".pb")),
    store_profiles = function(x) {
      if (rlang::is_installed("arrow")) store_profiles(x, withr::local_tempdir())
      if (!is.null(con)) store_profiles(x, con) else x
    },
    write_rprof = function(x) write_rprof(x, path),
    write_speedscope = function(x) write_speedscope(x, path)
  )
}

# Not skipped without dm, so that a new function must be added here.
test_that("all functions that take a profile are tested with a dm", {
  expect_setequal(c(names(with_profile(NULL, NULL)), without_profile), getNamespaceExports("profile"))
})

tables_of_profile <- function(x) as_v2(x, NULL)

test_that("every function that takes a profile takes a dm, also a filtered one", {
  skip_if_not_installed("dm")
  con <- NULL
  if (rlang::is_installed(c("DBI", "RSQLite"))) {
    con <- DBI::dbConnect(RSQLite::SQLite())
    withr::defer(DBI::dbDisconnect(con))
  }
  functions <- with_profile(withr::local_tempfile(), con)
  x <- dm_from_profile(full())
  heap <- dm_from_profile(read_pprof(system.file("samples/proto/go_heap.pb.gz", package = "profile")))
  for (name in names(functions)) {
    whole <- if (name == "holders") heap else x
    for (tables in list(whole, dm::dm_filter(whole, samples = (sample_id %in% 2:9)))) {
      plain <- tables_of_profile(tables)
      answer <- suppressWarnings(functions[[name]](tables), classes = "profile_warning_lossy")
      wanted <- suppressWarnings(functions[[name]](plain), classes = "profile_warning_lossy")
      if (grepl("^(write|validate|store)_", name)) {
        expect_identical(answer, tables, info = name)
      } else {
        expect_identical(answer, wanted, info = name)
      }
    }
  }
})

test_that("methods of generics work on the profile of a dm", {
  skip_if_not_installed("dm")
  x <- full()
  y <- tables_of_profile(dm_from_profile(x))
  expect_identical(y, x)
  expect_equal(summary(y), summary(x))
  expect_identical(as_tibble(y), as_tibble(x))
  old <- small_profile(version = "1.0")
  expect_identical(tables_of_profile(dm_from_profile(old)), profile_v2_from_v1(old))
  expect_identical(combine_profiles(dm_from_profile(x)), combine_profiles(x))
  expect_error(combine_profiles(dm::dm(cars)), class = "profile_error_invalid")
})

test_that("a filter keeps frames, or whole samples", {
  skip_if_not_installed("dm")
  x <- full()
  flat <- as_tibble(x)
  f <- x$functions$name[[2]]
  tables <- dm_from_profile(x)
  frames <- dm::dm_filter(tables, functions = (name == !!f))
  of_f <- flat$name %in% f
  expect_equal(nrow(tables_of_profile(frames)$sample_locations), sum(of_f))
  ids <- frames$samples$sample_id
  expect_setequal(ids, flat$sample_id[of_f])
  whole <- tables_of_profile(dm::dm_filter(tables, samples = (sample_id %in% !!ids)))
  kept <- unique(flat$sample_id[of_f])
  expect_gt(sum(flat$sample_id %in% kept), sum(of_f))
  expect_identical(as_tibble(whole)$name, flat$name[flat$sample_id %in% kept])
})

test_that("a dm that is no profile is refused", {
  skip_if_not_installed("dm")
  x <- dm_from_profile(small_profile())
  more <- dm::dm(x, cars)
  zoomed <- dm::dm_zoom_to(x, samples)
  expect_snapshot(error = TRUE, {
    validate_profile(zoomed)
    validate_profile(dm::dm_select_tbl(x, -samples))
    validate_profile(dm::dm_select(x, locations, -line))
    validate_profile(more)
    dm_from_profile(cars)
  })
})

test_that("the error for a dm in a database explains how to load it", {
  for (package in c("dm", "DBI", "RSQLite", "dbplyr")) skip_if_not_installed(package)
  con <- DBI::dbConnect(RSQLite::SQLite())
  withr::defer(DBI::dbDisconnect(con))
  remote <- dm::copy_dm_to(con, dm_from_profile(small_profile()), temporary = FALSE, set_key_constraints = FALSE)
  expect_error(validate_profile(remote), "dplyr::collect()", fixed = TRUE, class = "profile_error_invalid")
})

test_that("a dm comes back from a database without a logical type", {
  for (package in c("dm", "DBI", "RSQLite", "dbplyr")) skip_if_not_installed(package)
  con <- DBI::dbConnect(RSQLite::SQLite())
  withr::defer(DBI::dbDisconnect(con))
  x <- full()
  tables <- dm_from_profile(x)
  # As the help says, dm cannot create indexes for names with a dot.
  remote <- dm::copy_dm_to(con, tables, temporary = FALSE, set_key_constraints = FALSE)
  expect_equal(dm::dm_get_all_fks(remote), dm::dm_get_all_fks(tables))
  loaded <- dplyr::collect(remote)
  expect_type(loaded$functions$.has_system_name, "integer")
  # dbplyr may write fewer digits of a time.
  same_but_times <- function(loaded, expected) {
    expect_equal(loaded$sources, expected$sources)
    loaded$sources <- expected$sources
    expect_identical(loaded, expected)
  }
  same_but_times(tables_of_profile(loaded), x)
  f <- x$functions$name[[2]]
  filtered <- function(tables) tables_of_profile(dplyr::collect(dm::dm_filter(tables, functions = (name == !!f))))
  same_but_times(filtered(remote), filtered(tables))
})

test_that("tables of OpenTelemetry have keys and survive conversion to dm and back", {
  skip_if_not_installed("dm")
  x <- combine_profiles(otlp_profiles())
  y <- dm_from_profile(x)
  expect_true(all(dm::dm_examine_constraints(y)$is_key))
  foreign <- dm::dm_get_all_fks(y)
  tables <- c("sources .scopes", ".scopes .resources", ".resource_entities .resources",
    ".resource_attributes .resources", ".scope_attributes .scopes", ".source_attributes sources",
    ".mapping_attributes .mappings", ".location_attributes locations")
  expect_true(all(tables %in% paste(foreign$child_table, foreign$parent_table)))
  expect_true(all(c(".resources", ".scopes") %in% dm::dm_get_all_pks(y)$table))
  expect_identical(profile_v2_from_v1(y), x)
  expect_equal(otlp_content(through_otlp(y, aggregate = FALSE)), otlp_content(x))
})

test_that("a filter reaches from resources to frames, and back", {
  skip_if_not_installed("dm")
  x <- otlp_profiles()[[1]]
  all <- dm_from_profile(x)
  y <- dm::dm_filter(all, .resources = (is.na(schema_url))) |> compact_profile()
  expect_equal(source_words(y), source_words(x)[3])
  expect_equal(stack_words(y, all = TRUE), stack_words(x, all = TRUE)[6])
  expect_equal(y$.resource_attributes$value, "till")
  expect_through_otlp(y)
  # The remaining frames determine the scopes and resources.
  y <- dm::dm_filter(all, functions = (filename == "leaf.c")) |> compact_profile()
  expect_equal(source_words(y), source_words(x)[1:2])
  expect_equal(sample_words(y), sample_words(x)[3:5])
})

test_that("keys that are all NA need no table", {
  skip_if_not_installed("dm")
  x <- small_profile()
  x$sources$.scope_id <- NA_integer_
  x$locations$.mapping_id <- NA_integer_
  validate_profile(x)
  expect_s3_class(dm_from_profile(x), "dm")
})
