# The functions that take a profile, for tests of what all of them do.

# `path` is a file that they may write; `other` is another profile, for functions that take two.
functions_of_profiles <- function(path, other = small_profile(), envir = parent.frame()) {
  functions <- list(
    validate = validate_profile, summary = summary, tibble = as_tibble, problems = profile_problems,
    rprof = function(x) write_rprof(x, path), pprof = function(x) write_pprof(x, path),
    otlp = function(x) write_otlp(x, path), speedscope = function(x) write_speedscope(x, path),
    cpuprofile = function(x) write_cpuprofile(x, path), firefox = function(x) write_firefox(x, path),
    collapsed = function(x) write_collapsed(x, path), callgrind = function(x) write_callgrind(x, path),
    profvis = as_profvis, page = profile_page, base = function(x) profile_page(other, base = x),
    write_page = function(x) write_page(x, path, source_text = FALSE),
    combine = combine_profiles, compact = compact_profile,
    filter = function(x) filter_profile(x, focus = "f"), drop = function(x) filter_profile(x, drop = TRUE),
    first = profile_v1_from_v2, second = profile_v2_from_v1,
    tree = call_tree, callers = function(x) callers(x, "f"), packages = add_packages, texts = add_source_text,
    description = describe_profile, new = function(x) compare_profiles(other, x),
    old = function(x) compare_profiles(x, other), lines = annotate_lines, plot = function(x) plot_quietly(x)
  )
  if (rlang::is_installed("dm")) {
    functions$dm <- dm_from_profile
  }
  if (rlang::is_installed(c("DBI", "RSQLite"))) {
    con <- DBI::dbConnect(RSQLite::SQLite())
    withr::defer(DBI::dbDisconnect(con), envir)
    functions$database <- function(x) store_profiles(x, con)
  }
  functions
}
