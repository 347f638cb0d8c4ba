# tier: gate
# Tables without rows, and missing keys: every function returns a result or raises an error of this package that says
# what is wrong.

# Functions that take a profile, with arguments for which empty tables matter. `path` is a file that may be written.
functions_with_options <- function(path) {
  c(
    list(
      validate = validate_profile, summary = summary, as_tibble = as_tibble,
      print = function(x) utils::capture.output(print(x)),
      print_summary = function(x) utils::capture.output(print(summary(x))),
      write_rprof = function(x) write_rprof(x, path),
      write_pprof = function(x) write_pprof(x, path),
      write_all = function(x) write_pprof(x, path, aggregate = FALSE),
      write_sources = function(x) write_pprof(x, path, source_labels = TRUE),
      write_speedscope = function(x) write_speedscope(x, path),
      write_firefox = function(x) write_firefox(x, path),
      write_otlp = function(x) write_otlp(x, path),
      write_otlp_all = function(x) write_otlp(x, path, aggregate = FALSE),
      write_json = function(x) write_otlp(x, path, format = "json"),
      write_collapsed = function(x) write_collapsed(x, path),
      write_callgrind = function(x) write_callgrind(x, path),
      profvis = as_profvis,
      page = profile_page,
      page_base = function(x) profile_page(x, base = x),
      write_page = function(x) write_profile(x, path, source_text = FALSE),
      tree = function(x) format(call_tree(x)),
      packages_tree = function(x) call_tree(x, "package"),
      callers = function(x) callers(x, "f"),
      compare = function(x) format(compare_profiles(x, x)),
      describe = function(x) format(describe_profile(x)),
      lines = annotate_lines,
      texts = add_source_text,
      packages = add_packages,
      plot = plot_quietly,
      plot_time = function(x) plot_quietly(x, view = "time"),
      plot_lines = function(x) plot_quietly(x, view = "lines"),
      combine = function(x) combine_profiles(x, x),
      combine_named = function(x) combine_profiles(list(a = x, b = x)),
      compact = compact_profile,
      filter = function(x) filter_profile(x, focus = "a", ignore = "b", hide = "c", show = "d"),
      prune = function(x) filter_profile(x, show_from = "a", prune_from = "b"),
      drop = function(x) filter_profile(x, drop = "a"),
      problems = profile_problems,
      to_v1 = profile_v1_from_v2, to_v2 = profile_v2_from_v1
    ),
    if (rlang::is_installed("dm")) list(dm = dm_from_profile),
    if (all(rlang::is_installed(c("DBI", "RSQLite")))) {
      list(database = function(x) {
        con <- DBI::dbConnect(RSQLite::SQLite())
        on.exit(DBI::dbDisconnect(con))
        store_profiles(x, con)
        read_profile(tbl_profile(con))
        if (all(rlang::is_installed(c("dplyr", "dbplyr")))) {
          summary(tbl_profile(con))$by_function
        }
      })
    }
  )
}

expect_result_or_class <- function(functions, x, info) {
  wrong <- lapply(names(functions), function(name) {
    tryCatch(
      {
        quietly(functions[[name]](x))
        NULL
      },
      profile_error_internal = function(cnd) paste0(name, ": ", conditionMessage(cnd)),
      profile_error = function(cnd) NULL,
      error = function(cnd) paste0(name, ": ", conditionMessage(cnd))
    )
  })
  expect_equal(unlist(wrong), NULL, info = info)
}

# All possible tables: the seven tables and the optional ones.
full_profile <- function() {
  x <- combine_profiles(
    small_profile(), quietly(read_otlp(data_path("otlp", "fleet.pb"))),
    read_rprof(rprof_path("toplevel_line.out"))
  )
  x$.labels <- tibble::tibble(
    sample_id = x$samples$sample_id[1:2], key = c("", "k"), str = c(NA, "v"), num = c(1, NA), unit = NA_character_
  )
  x$.own <- tibble::tibble(sample_id = x$samples$sample_id, note = "mine")
  validate_profile(x)
}

test_that("tables without rows are no trouble", {
  skip_on_cran()
  functions <- functions_with_options(withr::local_tempfile())
  x <- full_profile()
  old <- small_profile(version = "1.0")
  for (table in names(x)) {
    y <- x
    y[[table]] <- y[[table]][0, ]
    # A database takes longer than all other functions together, and optional tables make no difference, so they are
    # omitted.
    of_table <- if (startsWith(table, ".")) setdiff(names(functions), "database") else names(functions)
    expect_result_or_class(functions[of_table], y, table)
  }
  for (table in setdiff(names(old), ".rprof")) {
    y <- old
    y[[table]] <- y[[table]][0, ]
    expect_result_or_class(functions, y, paste(table, "of version 1.0"))
  }
  for (table in setdiff(names(x), "meta")) {
    x[[table]] <- x[[table]][0, ]
  }
  expect_result_or_class(functions, x, "all")
  expect_equal(nrow(summary(x)$by_function), 0)
})

test_that("keys that are missing are reported", {
  skip_on_cran()
  functions <- functions_with_options(withr::local_tempfile())
  functions <- functions[c("validate", "summary", "print", "combine", "compact", "filter", "write_pprof")]
  x <- full_profile()
  for (table in names(x)) {
    for (key in grep("_id$", names(x[[table]]), value = TRUE)) {
      y <- x
      y[[table]][[key]][[1]] <- NA
      expect_result_or_class(functions, y, paste(table, key))
    }
  }
  x$sample_values$sample_id[[2]] <- NA
  expect_error(compact_profile(x), "sample_values.*sample_id", class = "profile_error_invalid")
})

test_that("a profile without values has nothing to sum", {
  x <- small_profile()
  x$sample_values <- x$sample_values[0, ]
  expect_equal(attr(summary(x), "sum"), 0)
  expect_equal(attr(summary(x), "counted")$without_value, 3)
})

test_that("names of arguments and lists of profiles are ignored", {
  x <- small_profile()
  y <- read_rprof(rprof_path("basic_mem.out"))
  expected <- combine_profiles(x, y)
  expect_identical(combine_profiles(a = x, b = y), expected)
  expect_identical(combine_profiles(list(a = x, b = y)), expected)
  expect_identical(combine_profiles(a = x, y), expected)
  expect_identical(combine_profiles(profiles = list(x, b = y)), expected)
  expect_identical(combine_profiles(meta = x, sources = y), expected)
  expect_identical(combine_profiles(!!!list(a = x, b = y)), expected)
  files <- c(small = "basic_plain.out", large = "basic_mem.out")
  read <- lapply(files, function(file) read_rprof(rprof_path(file)))
  expect_identical(combine_profiles(read), combine_profiles(unname(read)))
  # Names would first be taken for ids of labels and values.
  x$.labels <- tibble::tibble(sample_id = 1L, key = "k", str = "v", num = NA_real_, unit = NA_character_)
  expect_identical(combine_profiles(a = x, b = x), combine_profiles(x, x))
  expect_error(combine_profiles(a = x, b = 1), "Argument 2", class = "profile_error_argument")
})
