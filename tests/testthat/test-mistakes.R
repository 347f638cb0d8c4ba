# tier: gate
# Messages about mistakes of users: each contains the user's call, the problem, and what to do. The snapshot is a table,
# for review.

# Evaluates each expression of a block. Returns a list with its code and the reported conditions (errors, warnings and
# messages with their class and the function that they name) or else the printed value.
mistakes <- function(cases, transform = identity) {
  cases <- as.list(substitute(cases))[-1]
  caller <- parent.frame()
  lines <- lapply(cases, function(case) {
    reported <- character()
    report <- function(condition) {
      class <- grep("^(profile|rlib)_(error|warning|message)_", class(condition), value = TRUE)
      function_name <- if (!is.null(conditionCall(condition))) paste0(" in ", deparse(conditionCall(condition)[[1]]), "()")
      reported <<- c(reported, paste0("[", c(class, class(condition)[[1]])[[1]], function_name, "]"), conditionMessage(condition))
      rlang::cnd_muffle(condition)
    }
    shown <- withCallingHandlers(
      tryCatch(utils::capture.output(print(eval(case, new.env(parent = caller)))), error = function(error) {
        report(error)
        NULL
      }),
      warning = report, message = report
    )
    if (length(reported) == 0) reported <- shown
    c(paste0("> ", one_line(case)), paste0("  ", unlist(strsplit(reported, "\n"))), "")
  })
  transform(unlist(lines))
}

# A folder with some files, and `x`, a profile.
local_files <- function(envir = parent.frame()) {
  dir <- withr::local_tempdir(.local_envir = envir)
  withr::local_dir(dir, .local_envir = envir)
  withr::local_options(width = 100, cli.unicode = FALSE, .local_envir = envir)
  writeLines(c("main;work 3", "main;load 2"), "run.folded")
  dir.create("results")
  read_collapsed("run.folded")
}

# Objects of summaryRprof() and profvis, with the relevant parts.
of_summary_rprof <- list(by.self = data.frame(), by.total = data.frame(), sample.interval = 0.02, sampling.time = 1)
of_profvis <- structure(list(x = list(message = list())), class = c("profvis", "suppress_viewer", "htmlwidget"))

test_that("reading: wrong paths and objects", {
  x <- local_files()
  expect_snapshot(writeLines(mistakes({
    read_profile()
    read_profile("none.out")
    read_profile("run")
    read_profile("run.fold")
    read_profile("results")
    read_profile("nowhere/run.folded")
    read_profile("")
    read_profile(NA)
    read_profile(c("run.folded", "other.folded"))
    read_profile(x)
    read_profile(data.frame(a = 1))
    read_profile("https://me:secret@example.org/run.pb.gz?token=1")
    read_profile("file:///home/me/run.pb.gz")
    read_pprof("run.folded")
    read_rprof("run.folded", version = 2)
    read_rprof("run.folded", verison = "2.0")
    read_rprof("run.folded", "2.0")
    read_profile("run.folded", source_uri = 1)
  })))
})

test_that("objects that are no profile", {
  x <- local_files()
  expect_snapshot(writeLines(mistakes({
    describe_profile()
    describe_profile("run.folded")
    describe_profile(NULL)
    describe_profile(mean)
    describe_profile(data.frame(f = 1))
    describe_profile(list())
    describe_profile(list(x, x))
    describe_profile(of_profvis)
    describe_profile(of_summary_rprof)
    describe_profile(summary(x))
    profile_page(file("run.folded"))
    call_tree(lm(dist ~ speed, cars))
    filter_profile(quote(f()), focus = "f")
    profile_v1_from_v2(x$samples)
    validate_profile(unclass(x)["meta"])
    profile_problems(TRUE)
    combine_profiles(x, "run.folded")
    combine_profiles(list(x, NULL))
    validate_profile(x[c("meta", "samples")])
  })))
})

test_that("writing: wrong paths, swapped and missing arguments", {
  x <- local_files()
  expect_snapshot(writeLines(mistakes({
    write_pprof()
    write_pprof(x)
    write_pprof("run.pb.gz", x)
    write_collapsed("run.folded", x)
    write_firefox("run.json", x)
    write_profile("run.pb.gz", x)
    write_profile(x)
    write_profile(x, "run")
    write_profile(x, "run.json")
    write_profile(x, "results")
    write_pprof(x, "results")
    write_pprof(x, "nowhere/run.pb.gz")
    write_pprof(x, "http://localhost:4040/ingest")
    write_pprof(x, NULL)
    write_pprof(x, "run.pb.gz", agregate = FALSE)
    write_pprof(x, "run.pb.gz", aggregate = "yes")
    write_otlp(x, "run.otlp", format = "jason")
    write_collapsed(x, "out.folded", type = "time")
    write_rprof(profile_v1_from_v2(x)$samples, "Rprof.out")
  })))
})

test_that("looking: names, types, views and numbers", {
  x <- local_files()
  expect_snapshot(writeLines(mistakes({
    summary(x, type = "time")
    summary(x, type = 1)
    summary(x, tpye = "samples")
    call_tree(x, by = "lines")
    call_tree(x, by = "files")
    call_tree(x, source_id = 7)
    callers(x)
    callers(x, "wrok")
    callers(x, 1)
    callees(x, c("work", "load"))
    print(x, n = -1)
    print(x, n = "a")
    print(x, width = 0)
    print(summary(x), n = NA)
    print(call_tree(x), n = -1)
    describe_profile(x, n = "all")
    describe_profile(x, min_share = 5)
    plot(x, "flamegraph")
    plot(x, view = "flmae")
    annotate_lines(x, "app.R")
    profile_page(x, base = "old.folded")
    profile_page(x, title = c("a", "b"))
    x - x
    subset(x, value > 1)
    merge(x, x)
    c(x, x)
  })))
})

test_that("comparing", {
  x <- local_files()
  expect_snapshot(writeLines(mistakes({
    compare_profiles()
    compare_profiles(x)
    compare_profiles(new = x)
    compare_profiles("old.out", "new.out")
    compare_profiles(x, "run.folded")
    compare_profiles(x, list())
    compare_profiles(x, x, by = "fuction")
    compare_profiles(x, x, only = "wrok")
    compare_profiles(x, x, type = "time")
    compare_profiles(x, filter_profile(x, focus = "^none$"))
    expect_no_regression(x)
    expect_no_regression(x, x, tolerance = "10%")
    benchmark_profile()
    benchmark_profile(work(), run = 3)
    benchmark_profile(function() work())
    benchmark_profile(1 + 1, runs = 0)
    benchmark_profile(1 + 1, warmup = -1)
    benchmark_profile(1 + 1, measure = "byte")
  })))
})

test_that("filtering", {
  x <- local_files()
  expect_snapshot(writeLines(mistakes({
    filter_profile(x, focus = "[(")
    filter_profile(x, focus = "*work")
    filter_profile(x, focus = c("work", "load"))
    filter_profile(x, focus = 1)
    filter_profile(x, fucos = "work")
    filter_profile(x, name == "work")
    filter_profile(x, focus = "^none$")
    describe_profile(filter_profile(x, ignore = "."))
    filter_profile(x, drop = "a(")
    add_source_text(x, directory = "nowhere")
    annotate_lines(filter_profile(x, focus = "^none$"))
  })))
})

test_that("recording", {
  x <- local_files()
  work <- function() NULL
  skip_if_not(capabilities("Rprof"))
  expect_snapshot(writeLines(mistakes({
    record_profile()
    record_profile(work)
    record_profile(function() work())
    record_profile("script.R")
    record_profile(work(), 0.01)
    record_profile(work(), interval = 0)
    record_profile(work(), interval = -1)
    record_profile(work(), interval = 10)
    record_profile(work(), interval = NA)
    record_profile(work(), interval = "0.01")
    record_profile(work(), interval = 1e-9)
    record_profile(work(), memory = "yes")
    record_profile(record_profile(work()))
    stop_profiler()
    joint_pprof()
    joint_pprof(work)
  })))
  # Code that did not run for long enough, and a value that is a function.
  x <- record_profile(identity(work), interval = 0.9)
  expect_match(format(x), "takes a sample once in an interval of CPU time", all = FALSE)
  expect_no_match(format(x), "filter")
})

test_that("recording while another profiler runs", {
  skip_without_native()
  x <- local_files()
  work <- function() NULL
  withr::defer(try(stop_profiler(), silent = TRUE))
  expect_snapshot(writeLines(mistakes({
    start_profiler("a.out", interval = 0.9)
    start_profiler("b.out")
    record_profile(work(), native = TRUE)
    start_profiler("c.out", evnt = "cpu")
    start_profiler("c.out", event = "elapse")
    start_profiler("nowhere/c.out")
  })))
})

test_that("agent and servers", {
  x <- local_files()
  skip_without_curl()
  withr::local_envvar(OTEL_EXPORTER_OTLP_ENDPOINT = NA, OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT = NA)
  expect_snapshot(writeLines(mistakes({
    start_agent("host:4318")
    start_agent("localhost")
    start_agent("10.0.0.1/v1development/profiles")
    start_agent("none/profiles")
    start_agent("grpc://host:4317")
    start_agent(1)
    start_agent("")
    start_agent("results", interval = 0)
    start_agent("results", every = 0)
    start_agent("results", clock = "cup")
    start_agent("results", resource = "shop")
    stop_agent()
    stop_agent(timeout = -1)
    send_otlp()
    send_otlp(x, "localhost:4318")
    send_otlp(x, "host")
    send_otlp(x, "http://host:99999")
    send_otlp(x, "http://localhost:1", retries = 0)
    send_otlp(x, "http://localhost:4318", resource = "shop")
    send_otlp(x, "http://localhost:4318", timeout = 0)
  }, function(lines) sub("Connection failed: .*", "Connection failed: ...", lines))))
})

test_that("labels", {
  x <- local_files()
  expect_snapshot(writeLines(mistakes({
    with_labels()
    with_labels(c(a = "b"))
    with_labels("a", 1)
    with_labels(list(a = 1:2), 1)
    label_handler()
    label_handler(sum, c(a = "b"))
    label_handler("f", c(a = "b"))
    label_handler(function(x) x)
    label_handler(function(x) x, function(req) c(a = req))
    label_plumber()
    label_plumber("plumber.R")
  })))
})

test_that("processes", {
  skip_without_processes()
  x <- local_files()
  expect_snapshot(writeLines(mistakes({
    dump_stack()
    dump_stack("1234")
    dump_stack("R")
    dump_stack(-1)
    dump_stack(1.5)
    dump_stack(NA)
    dump_stack(c(1, 2))
    dump_stack(data.frame(pid = 1L))
    # No process has this number: it is above the largest one.
    dump_stack(2^31 - 1)
    profile_process()
    profile_process(1, seconds = 0)
    profile_process(1, interval = 5)
    profile_process(1, clock = "wal")
    watch_process("1234")
    watch_process(1, every = 0)
  })))
  # A process that is not R: a waiting shell.
  path <- withr::local_tempfile()
  system2("sh", c("-c", shQuote(paste0("echo $$ > ", path, "; exec sleep 600"))), wait = FALSE, stdout = FALSE)
  expect_true(wait_for(function() is_written(path)))
  pid <- as.integer(readLines(path))
  withr::defer(tools::pskill(pid))
  expect_error(dump_stack(pid), class = "profile_error_process")
})

test_that("databases", {
  skip_if_not_installed("RSQLite")
  skip_if_not_installed("dplyr")
  skip_if_not_installed("dbplyr")
  x <- local_files()
  con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
  withr::defer(DBI::dbDisconnect(con))
  closed <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
  DBI::dbDisconnect(closed)
  store_profiles(x, con)
  runs <- tbl_profile(con)
  expect_snapshot(writeLines(mistakes({
    store_profiles()
    store_profiles(x)
    store_profiles(con, x)
    store_profiles(x, "runs.sqlite")
    store_profiles(x, closed)
    store_profiles(x, con, schema = "main2")
    store_profiles(x, con, schema = 1)
    tbl_profile()
    read_profile(tbl_profile(con, uri == "run.folded"))
    read_profile(tbl_profile(con, source_type = "pprof"))
    read_profile(tbl_profile(con, run_start > !!Sys.time()))
    prune_profiles(con)
    prune_profiles(con, "2020-01-01")
    roll_up_profiles(con, Sys.time(), period = "week")
    describe_profile(runs)
    dplyr::filter(runs, source_id == 1)
    dplyr::arrange(runs, name)
    dplyr::filter(x, name == "work")
    dplyr::mutate(x, share = 1)
    dplyr::count(x, name)
  })))
})

# ---- All functions ------------------------------------------------------------------

# Arguments with which an exported function works, by name.
right_arguments <- function(path) {
  list(
    x = quote(x), object = quote(x), path = path, con = quote(con), base = quote(x), new = quote(x), name = "work", value = 1,
    unit = "bytes", from = "/no/such/folder", pid = quote(Sys.getpid()), before = quote(Sys.time()), handler = quote(function(x) x),
    labels = quote(c(a = "b")), package = "knitr", expr = quote(1 + 1), pr = 1,
    trace_id = "5b8efff798038103d269b633813fc60c", span_id = "eee19b7ec3c1b174"
  )
}

# Values of wrong kinds, for every argument.
wrong_values <- list(
  quote(NULL), 1, "a", NA, -1, Inf, quote(list()), quote(data.frame()), quote(mean), quote(c(1, 2)), quote(letters), quote(1i),
  quote(new.env()), quote(quote(f(x))), quote(factor("a")), quote(as.POSIXct("2020-01-01")),
  quote(as.POSIXlt("2020-01-01"))
)

# These calls must not start a server or a recording, or wait for processes and servers.
with_effects <- c("joint_pprof", "start_agent", "start_profiler", "send_otlp", "forward_profiles", "watch_process", "profile_process")

test_that("no exported function ends in an error of an internal call", {
  x <- local_files()
  con <- NULL
  if (rlang::is_installed(c("DBI", "RSQLite", "dplyr", "dbplyr"))) {
    con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
    withr::defer(DBI::dbDisconnect(con))
    store_profiles(x, con)
  }
  caller <- environment()
  bad <- character()
  try_call <- function(name, arguments) {
    call <- as.call(c(list(as.name(name)), arguments))
    error <- tryCatch(
      {
        utils::capture.output(suppressWarnings(suppressMessages(eval(call, caller))))
        NULL
      },
      error = identity
    )
    is_right <- is.null(error) || inherits(error, c("profile_error", "rlib_error_dots_nonempty")) &&
      identical(as.character(conditionCall(error)[[1]]), name)
    if (!is_right) {
      bad <<- c(bad, paste0(one_line(call), ": ", conditionMessage(error)[[1]]))
    }
  }
  exports <- setdiff(sort(getNamespaceExports("profile")), "as_tibble")
  # `tracer_provider` is a list.
  exports <- Filter(function(name) is.function(get(name, asNamespace("profile"))), exports)
  calls <- 0
  for (name in exports) {
    arguments <- formals(get(name, asNamespace("profile")))
    arguments <- arguments[names(arguments) != "..."]
    required <- names(arguments)[vapply(arguments, function(default) identical(default, quote(expr = )), NA)]
    right <- right_arguments(if (startsWith(name, "read")) "run.folded" else "out.folded")[required]
    if (length(required) > 0) try_call(name, list())
    for (argument in required) try_call(name, right[setdiff(required, argument)])
    for (argument in if (!name %in% with_effects) names(arguments)) {
      for (value in wrong_values) {
        given <- right
        given[argument] <- list(value)
        try_call(name, given)
        calls <- calls + 1
      }
    }
  }
  expect_equal(bad, character())
  expect_gt(calls, 1000)
})

test_that("a file that does not exist is not an object that is no profile", {
  withr::local_dir(withr::local_tempdir())
  x <- small_profile()
  write_rprof(x, "run.out")
  expect_snapshot(error = TRUE, {
    describe_profile("typo.out")
    call_tree("typo.out")
    profile_page("typo.out")
    profile_page(x, base = "old.out")
    compare_profiles("ru.out", x)
    compare_profiles(c("run.out", "typo.out"), x)
    expect_no_regression(x, "typo.out")
    describe_profile(".")
    filter_profile("typo.out", focus = "f")
    summary.profile_data("typo.out")
    combine_profiles(x, "typo.out")
    combine_profiles(x, "run.out")
    validate_profile("ru.out")
    write_pprof("ru.out", "a.pb.gz")
    describe_profile("")
  })
})

# For `type = NULL`, see test-compare.R.
test_that("the sampled time is suggested if it was not requested", {
  x <- small_profile()
  x$sources$.period_value <- NULL
  profiles <- list(read_rprof(rprof_path("basic_all.out")), x)
  expect_snapshot(error = TRUE, compare_profiles(profiles[[1]], profiles[[2]], type = "samples"))
})
