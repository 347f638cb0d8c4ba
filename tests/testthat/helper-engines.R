# Engines that query data sets: DuckDB, ClickHouse and Spark, as packages of PyPI, and a server of object storage. They
# are big, so only `tools/test thorough` installs them (step `engines`) into the folder PROFILE_TEST_ENGINES.

# Trino is no package of PyPI. PROFILE_TEST_TRINO is the URL of a server on this machine, such as http://127.0.0.1:8080,
# whose catalog `hive` has the properties `hive.metastore=file` and `hive.parquet.use-column-names=true`.

# Runs a Python program with these packages; the names of the packages are needed.
needed_engine <- function(package, untested) {
  testthat::skip_on_cran()
  folder <- Sys.getenv("PROFILE_TEST_ENGINES")
  installed <- folder != "" && dir.exists(file.path(folder, package))
  testthat::skip_if(!installed, paste0("the Python package ", package, " is not installed: ", untested))
  if (package == "pyspark") {
    testthat::skip_if(Sys.which("java") == "", paste0("java is not installed: ", untested))
  }
  normalizePath(folder)
}

local_engines <- function(env = parent.frame()) {
  withr::local_envvar(PYTHONPATH = Sys.getenv("PROFILE_TEST_ENGINES"), .local_envir = env)
}

# The JSON that a program in engines/ prints at its end.
run_engines <- function(script, ...) {
  local_engines()
  log <- withr::local_tempfile()
  arguments <- shQuote(c(testthat::test_path("engines", script), ...))
  out <- suppressWarnings(system2("python3", arguments, stdout = TRUE, stderr = log))
  said <- paste(c(script, ..., utils::tail(readLines(log), 40)), collapse = "\n")
  testthat::expect_null(attr(out, "status"), label = said)
  jsonlite::fromJSON(utils::tail(out, 1), simplifyVector = FALSE)
}

sql_of_datasets <- function() system.file("dataset", package = "profile")

# The answers of an engine to the questions of inst/dataset, as data frames.
ask_engine <- function(engine, path, ...) {
  rows_of_answers(run_engines("ask.py", engine, path, sql_of_datasets(), ...))
}

rows_of_answers <- function(answers) {
  lapply(answers, function(rows) {
    columns <- lapply(seq_along(rows[[1]]), function(i) {
      unlist(lapply(rows, function(row) row[[i]] %||% NA))
    })
    as.data.frame(columns, col.names = seq_along(columns))
  })
}

# ---- A fleet ---------------------------------------------------------------------------

fleet_trace <- "0af7651916cd43dd8448eb211c80319c"

# What a process has recorded. All values are integers, whose sums are exact in any order.
profile_of_host <- function(host, service, version) {
  x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"), version = "2.0")
  n <- nrow(x$samples)
  number <- seq_len(n) + 1000 * host + 17 * (service == "mail") + 31 * (version == "2.3")
  x$sample_values <- tibble::tibble(
    sample_id = x$samples$sample_id, type = "cpu", unit = "nanoseconds", value = 1e6 + (number * 7919) %% 104729
  )
  x$sources$source_timestamp <- as.numeric(as.POSIXct("2026-11-27 23:58:00", tz = "UTC"))
  x$samples$.timestamp <- x$sources$source_timestamp + number %% 300
  in_trace <- number %% 41 == 0
  x$samples$.trace_id <- ifelse(in_trace, fleet_trace, NA)
  x$samples$.span_id <- ifelse(in_trace, "b7ad6b7169203331", NA)
  has_route <- number %% 5 > 0
  x$.labels <- tibble::tibble(
    sample_id = x$samples$sample_id[has_route], key = "route", str = paste0("/", number[has_route] %% 7), num = NA_real_,
    unit = NA_character_
  )
  x$.files <- NULL
  validate_profile(x)
  x
}

attributes_of_host <- function(host, service, version) {
  c(service.name = service, service.version = version, host.name = paste0("host-", host))
}

fleet <- expand.grid(
  service = c("shop", "mail"), version = c("2.2", "2.3"), host = 1:10, stringsAsFactors = FALSE
)[c("host", "service", "version")]

# Each host writes in a process of its own, all at the same time.
write_hosts <- function(path, hosts) {
  testthat::skip_if_not_installed("callr")
  processes <- lapply(hosts, function(host) {
    rows <- fleet[fleet$host == host, ]
    profiles <- Map(profile_of_host, rows$host, rows$service, rows$version)
    resources <- Map(attributes_of_host, rows$host, rows$service, rows$version)
    callr::r_bg(function(path, profiles, resources) {
      Map(function(x, resource) profile::store_profiles(x, path, resource = resource), profiles, resources)
      TRUE
    }, list(path, profiles, resources))
  })
  for (process in processes) {
    process$wait()
    testthat::expect_true(process$get_result())
  }
}

# What was written today becomes what was written on another day. (The clock determines the day.)
move_to_day <- function(path, day) {
  today <- list.files(path, "^day=20", recursive = TRUE, include.dirs = TRUE, full.names = TRUE)
  today <- grep("/(samples|frames|labels)/day=", today, value = TRUE)
  today <- today[basename(today) == format(Sys.time(), "day=%Y-%m-%d", tz = "UTC") & !grepl("/compact/", today)]
  file.rename(today, file.path(dirname(today), paste0("day=", day)))
}

# A day that is compacted and whose first folder of sums is obsolete; one whose folder is not valid yet; and one that
# writers have just written. The files of writers remain beside all folders.
fleet_dataset <- function(path) {
  write_hosts(path, 1:4)
  move_to_day(path, "2026-11-25")
  write_hosts(path, 5:7)
  move_to_day(path, "2026-11-26")
  compact_dataset(path)
  becomes_valid <- function(day, seconds) {
    folder <- list.files(file.path(path, paste0("compact/samples/day=", day)), full.names = TRUE)
    file.rename(folder, file.path(dirname(folder), paste0("valid_from=", seconds)))
  }
  becomes_valid("2026-11-25", "1700000000")
  becomes_valid("2026-11-26", "9999999999")
  # Who reads the obsolete folder gets the sums of another day.
  of_day <- function(...) file.path(path, "compact/samples", ...)
  obsolete <- of_day("day=2026-11-25", "valid_from=1600000000")
  dir.create(obsolete)
  file.copy(list.files(of_day("day=2026-11-26", "valid_from=9999999999"), full.names = TRUE), obsolete)
  write_hosts(path, 8:10)
}

# In a copy, who reads the folder that is not valid yet gets the sums of another day. (This package may read it early,
# since it lists all files at once.)
spoiled_dataset <- function(path, to) {
  file.copy(list.files(path, full.names = TRUE), to, recursive = TRUE)
  folders <- c("day=2026-11-25/valid_from=1700000000", "day=2026-11-26/valid_from=9999999999")
  folders <- file.path(to, "compact/samples", folders)
  file.copy(list.files(folders[[1]], full.names = TRUE), folders[[2]], overwrite = TRUE)
}

# ---- The answers -----------------------------------------------------------------------

# Computed from the profiles that were recorded.
answers_of_profiles <- function() {
  of <- function(rows) bind_profiles(Map(profile_of_host, rows$host, rows$service, rows$version), NULL)
  all <- of(fleet)
  shop <- of(fleet[fleet$service == "shop", ])
  functions <- function(x) as.data.frame(summary(x, type = "cpu")$by_function)[c("name", "self", "total")]
  total <- function(x) functions(x)[c("name", "total")]
  versions <- merge(
    total(of(fleet[fleet$version == "2.2", ])), total(of(fleet[fleet$version == "2.3", ])), by = "name"
  )
  tree <- callers(all, "paste", type = "cpu")
  above <- tree[which(tree$depth == 2), c("name", "total")]
  of_trace <- filter_profile(all, labels = c(trace_id = fleet_trace))
  labels <- as.data.frame(summary(all, type = "cpu", by = "route"))
  lines <- as.data.frame(summary(shop, type = "cpu")$by_line)
  lines <- lines[!is.na(lines$line) & lines$self > 0, c("filename", "line", "self")]
  hosts <- do.call(rbind, Map(function(host, service, version) {
    x <- profile_of_host(host, service, version)
    data.frame(
      host = paste0("host-", host), minute = 60 * floor(x$samples$.timestamp / 60), total = x$sample_values$value, n = 1
    )
  }, shop_rows$host, shop_rows$service, shop_rows$version))
  runs <- do.call(rbind, Map(function(host, service, version) {
    x <- profile_of_host(host, service, version)
    run <- flat_tables(x, attributes_of_host(host, service, version), NULL)$samples[1, ]
    data.frame(
      run = as.character(run$run), run_start = as.numeric(run$run_start), host = paste0("host-", host),
      total = sum(x$sample_values$value)
    )
  }, shop_rows$host, shop_rows$service, shop_rows$version))
  list(
    "functions of a service" = sorted(functions(shop)), "functions of the fleet" = sorted(functions(all)),
    "callers of a function" = sorted(as.data.frame(above)), "what changed between two versions" = sorted(versions),
    "runs of a service" = sorted(runs), "the flame graph of a trace" = paths_of_profile(of_trace),
    "sums by a label" = sorted(labels[!is.na(labels$route), c("route", "total")]),
    "lines of a service" = sorted(lines),
    "hosts and minutes" = sorted(stats::aggregate(cbind(total, n) ~ host + minute, hosts, sum))
  )
}

shop_rows <- fleet[fleet$service == "shop", ]

# The sums of stacks, as texts of names.
paths_of_profile <- function(x) {
  flat <- as_tibble(x)
  flat <- flat[order(flat$sample_id, -flat$depth), ]
  paths <- tapply(flat$name, flat$sample_id, paste, collapse = ";")
  # Each sample has one value; as_tibble() numbers the samples anew.
  sums_of_paths(as.vector(paths), x$sample_values$value[as.integer(names(paths))])
}

paths_of_rows <- function(rows) {
  names(rows) <- c("service", "stack_key", "depth", "name", "size")
  stack <- paste(rows$service, rows$stack_key)
  # The outermost frame of each stack is first.
  paths <- tapply(rows$name, stack, paste, collapse = ";")
  sums_of_paths(as.vector(paths), rows$size[match(names(paths), stack)])
}

sums_of_paths <- function(paths, values) {
  sums <- tapply(values, paths, sum)
  sorted(data.frame(path = names(sums), total = as.vector(sums)))
}

# In an order that depends on no engine and no locale, and without names.
sorted <- function(rows) {
  rows <- rows[do.call(order, c(unname(as.list(rows)), method = "radix")), , drop = FALSE]
  lapply(unname(as.list(rows)), function(column) if (is.numeric(column)) as.numeric(column) else as.character(column))
}

# Expects the same values to the last unit.
expect_answers <- function(answers, expected, engine) {
  testthat::expect_identical(names(answers), names(expected))
  for (question in names(expected)) {
    rows <- answers[[question]]
    found <- if (question == "the flame graph of a trace") paths_of_rows(rows) else sorted(rows)
    testthat::expect_identical(found, expected[[question]], label = paste0(engine, ": ", question))
  }
}
