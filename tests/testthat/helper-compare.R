# Profiles of runs with known differences.

# A profile with a run for each element of `runs`, a vector of counts of samples by stack, written `a>b`
# (outermost first). `interval` in seconds, for each run.
profile_of_runs <- function(runs, interval = 0.01) {
  profiles <- Map(function(counts, interval) {
    path <- tempfile(fileext = ".out")
    on.exit(unlink(path))
    stacks <- rep(strsplit(names(counts), ">", fixed = TRUE), counts)
    lines <- vapply(stacks, function(stack) paste0("\"", rev(stack), "\" ", collapse = ""), "")
    writeLines(c(paste0("sample.interval=", 1e6 * interval), lines), path)
    read_rprof(path)
  }, runs, interval)
  combine_profiles(unname(profiles))
}

# The counts of runs of one program: `times` of functions in seconds, in a run on a machine whose speed varies
# with this standard deviation, sampled at regular times.
sampled_runs <- function(n, times, sd = 0.05, interval = 0.01) {
  lapply(seq_len(n), function(i) {
    exact <- times * exp(stats::rnorm(1, sd = sd)) * exp(stats::rnorm(length(times), sd = sd / 2))
    stats::setNames(floor(exact / interval + stats::runif(length(times))), names(times))
  })
}
