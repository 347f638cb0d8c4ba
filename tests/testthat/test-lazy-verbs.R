# tier: gate
# Functions of this package do not expand the columns of their arguments, and return computed columns if possible.

skip_on_cran()
lazy <- options(profile.lazy = TRUE)

profiles <- list(
  rprof = function() read_quietly(rprof_path("basic_all.out")),
  runs = function() read_quietly(rprof_path("append_plain3.out")),
  pprof = function() read_profile(data_path("pprof", "go_cpu.pb.gz")),
  otlp = function() suppressWarnings(read_profile(data_path("otlp", "python-1.45.2.pb"))),
  converted = function() profile_v2_from_v1(read_quietly(rprof_path("basic_all.out"), version = "1.0")),
  combined = function() combine_profiles(profiles$rprof(), profiles$pprof()),
  filtered = function() filter_profile(profiles$rprof(), hide = "^eval$")
)

# The names of the columns that are computed, as `table$column`.
computed <- function(x) {
  tables <- Filter(is.data.frame, unclass(x))
  columns <- lapply(tables, function(rows) names(rows)[vapply(unclass(rows), is_computed, NA)])
  paste0(rep(names(columns), lengths(columns)), "$", unlist(columns))
}

frames <- paste0("sample_locations$", c("sample_id", "depth", "location_id"))

test_that("profiles have computed columns", {
  for (of in names(profiles)) {
    x <- profiles[[of]]()
    expect_true(all(c(frames, "samples$sample_id") %in% computed(x)), info = of)
    if (nrow(x$sources) == 1) {
      expect_true("samples$source_id" %in% computed(x), info = of)
    }
  }
})

quietly <- function(code) suppressWarnings(code, classes = "profile_warning")

verbs <- list(
  validate_profile = function(x, path) validate_profile(x),
  summary = function(x, path) summary(x),
  print = function(x, path) utils::capture.output(print(x)),
  format_tables = function(x, path) format_tables(x),
  str = function(x, path) utils::capture.output(utils::str(x)),
  as_tibble = function(x, path) as_tibble(x),
  as.data.frame = function(x, path) as.data.frame(x),
  profile_problems = function(x, path) profile_problems(x),
  tables = function(x, path) list(x[names(x)], x["samples"], x$samples, x[["samples"]]),
  write_rprof = function(x, path) try(quietly(write_rprof(x, path)), silent = TRUE),
  write_pprof = function(x, path) quietly(write_pprof(x, path, source_labels = TRUE)),
  write_pprof_as_recorded = function(x, path) quietly(write_pprof(x, path, aggregate = FALSE)),
  write_speedscope = function(x, path) quietly(write_speedscope(x, path)),
  write_cpuprofile = function(x, path) quietly(write_cpuprofile(x, path)),
  write_firefox = function(x, path) quietly(write_firefox(x, path)),
  write_otlp = function(x, path) quietly(write_otlp(x, path)),
  write_otlp_json = function(x, path) quietly(write_otlp(x, path, format = "json")),
  write_collapsed = function(x, path) quietly(write_collapsed(x, path)),
  write_callgrind = function(x, path) quietly(write_callgrind(x, path)),
  as_profvis = function(x, path) as_profvis(x),
  profile_page = function(x, path) profile_page(x),
  write_page = function(x, path) write_page(x, path, base = x, source_text = FALSE),
  call_tree = function(x, path) list(call_tree(x), call_tree(x, "package"), call_tree(x, focus = "a")),
  compare_profiles = function(x, path) try(compare_profiles(x, x), silent = TRUE),
  describe_profile = function(x, path) format(describe_profile(x)),
  annotate_lines = function(x, path) try(annotate_lines(x), silent = TRUE),
  add_source_text = function(x, path) add_source_text(x),
  add_packages = function(x, path) add_packages(x),
  plot = function(x, path) plot_quietly(x),
  profile_v1_from_v2 = function(x, path) try(profile_v1_from_v2(x), silent = TRUE),
  profile_v2_from_v1 = function(x, path) profile_v2_from_v1(x),
  combine_profiles = function(x, path) combine_profiles(x),
  combine_two = function(x, path) combine_profiles(x, x),
  combine_versions = function(x, path) combine_profiles(x, profiles$converted()),
  compact_profile = function(x, path) compact_profile(x),
  focus = function(x, path) filter_profile(x, focus = "a"),
  ignore = function(x, path) filter_profile(x, ignore = "a"),
  hide = function(x, path) filter_profile(x, hide = "^a"),
  show_from = function(x, path) filter_profile(x, show_from = "e"),
  prune_from = function(x, path) filter_profile(x, prune_from = "e"),
  drop = function(x, path) filter_profile(x, drop = "a.*"),
  errors = function(x, path) {
    for (f in list(c, rbind, cbind, head, tail, unique, t)) {
      expect_error(f(x), class = "profile_error_unsupported")
    }
  }
)
if (rlang::is_installed("dm")) {
  verbs$dm <- function(x, path) {
    dm <- dm_from_profile(x)
    validate_profile(dm)
    combine_profiles(dm)
  }
}
if (rlang::is_installed("RSQLite")) {
  verbs$store_profiles <- function(x, path) {
    con <- DBI::dbConnect(RSQLite::SQLite(), path)
    on.exit(DBI::dbDisconnect(con))
    store_profiles(x, con)
  }
}

# Functions that return profiles with the same columns of samples.
same_columns <- c(
  "validate_profile", "profile_v2_from_v1", "combine_profiles", "combine_two", "combine_versions",
  "compact_profile", "drop", "dm"
)

test_that("functions compute no column of the profiles that they get", {
  for (of in names(profiles)) {
    x <- profiles[[of]]()
    before <- computed(x)
    for (verb in names(verbs)) {
      result <- verbs[[verb]](x, withr::local_tempfile())
      expect_identical(computed(x), before, info = paste(verb, "of", of))
      if (verb %in% same_columns) {
        expect_true(all(frames %in% computed(result)), info = paste(verb, "of", of))
        expect_true("samples$sample_id" %in% computed(result), info = paste(verb, "of", of))
      }
    }
  }
})

test_that("columns of samples that follow from a rule are computed in results", {
  for (of in c("rprof", "pprof", "converted")) {
    x <- profiles[[of]]()
    for (verb in c("combine_profiles", "compact_profile", "drop")) {
      result <- verbs[[verb]](x, NULL)
      of_samples <- grep("^samples.*_id$|^sample_values.(sample_id|type|unit|value)$", computed(x), value = TRUE)
      expect_true(all(of_samples %in% computed(result)), info = paste(verb, "of", of))
    }
    flat <- as_tibble(x)
    expect_identical(computed(list(flat = flat)), paste0("flat$", names(flat)), info = of)
  }
})

test_that("filters that keep all samples return computed columns", {
  x <- profiles$rprof()
  kept <- filter_profile(x, hide = "^eval$")
  expect_identical(nrow(kept$samples), nrow(x$samples))
  expect_lt(nrow(kept$sample_locations), nrow(x$sample_locations))
  expect_true(all(frames %in% computed(kept)))
  expect_identical(kept, withr::with_options(list(profile.lazy = FALSE), {
    filter_profile(profiles$rprof(), hide = "^eval$")
  }))
  expect_false(any(frames %in% computed(filter_profile(x, focus = "^deparse$"))))
})

options(lazy)
