# tier: fast
# The CPU time that R's thread used, beside the time of the samples of R's profiler, which loses ticks.

# Eight samples, one every 20 ms.
recorded <- function(used) {
  with_cpu_time(read_rprof(system.file("samples/rprof/1.out", package = "profile"), source_uri = NA), used * 1e9)
}

# From now on until the test ends, the clock of R's thread is `now` of the caller.
with_given_clock <- function(env = rlang::caller_env()) {
  replace <- function(f) utils::assignInNamespace("time_of_thread", f, "profile")
  own <- time_of_thread
  withr::defer(replace(own), envir = env)
  replace(function() env$now)
}

# How amounts of time are shown.
shown <- function(x) {
  time_beside(attr(summary(x), "time"), attr(summary(x), "used"), attr(summary(x), "unit"))
}

facts <- function(x) {
  about <- x$.source_attributes
  about <- about[startsWith(as.character(about$key), "profile.cpu."), ]
  rlang::set_names(as.character(about$value), sub("profile.cpu.", "", as.character(about$key), fixed = TRUE))
}

test_that("the time of the samples is shown beside the CPU time, if they differ", {
  seconds <- attr(summary(recorded(1)), "time")
  few <- recorded(2 * seconds)
  many <- recorded(seconds / 4)
  expect_snapshot({
    writeLines(format(few)[1:2])
    writeLines(format(summary(few))[[1]])
    writeLines(format(describe_profile(few))[[1]])
    writeLines(format(many)[1:2])
    writeLines(format(summary(many))[[1]])
    writeLines(format(describe_profile(many))[[1]])
    writeLines(format(recorded(seconds))[1:2])
    writeLines(format(summary(recorded(seconds)))[[1]])
  })
  expect_identical(attr(summary(few), "used"), 2 * seconds)
  expect_identical(as.list(describe_profile(few))$run$used, 2 * seconds)
  expect_null(as.list(describe_profile(recorded(seconds)))$run$used)
  expect_no_error(validate_profile(few))
  expect_named(few$.source_attributes$value, NULL)
})

test_that("removed samples were not lost", {
  x <- recorded(5)
  kept <- summary(x)$by_function$name[[2]]
  part <- filter_profile(x, focus = paste0("^\\Q", kept, "\\E$"))
  expect_lt(nrow(part$samples), nrow(x$samples))
  expect_gt(nrow(part$samples), 0)
  expect_match(shown(x), "of 5 s used", fixed = TRUE)
  expect_no_match(shown(part), "used")
  # Frames were removed, but no samples.
  x$.comments <- tibble::tibble(source_id = 1L, comment = "kept")
  expect_identical(shown(filter_profile(x, hide = "^no such function$")), shown(x))
  by_hand <- x
  by_hand$samples <- x$samples[-1, ]
  by_hand$sample_values <- x$sample_values[x$sample_values$sample_id != x$samples$sample_id[[1]], ]
  by_hand$sample_locations <- x$sample_locations[x$sample_locations$sample_id != x$samples$sample_id[[1]], ]
  expect_no_match(shown(by_hand), "used")
})

test_that("several recordings are compared together, if all are known", {
  x <- recorded(5)
  expect_match(shown(combine_profiles(x, recorded(3))), "of 8 s used", fixed = TRUE)
  unknown <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
  expect_no_match(shown(combine_profiles(x, unknown)), "used")
  # A source without counts.
  allocations <- read_rprofmem(data_path("rprof", "rprofmem_basic.out"))
  expect_match(shown(combine_profiles(x, allocations)), "of 5 s used", fixed = TRUE)
})

test_that("formats that have a place for the CPU time keep it", {
  x <- recorded(5)
  of_time <- "R used 5 s"
  again <- function(write, read, extension, ...) {
    path <- withr::local_tempfile(fileext = extension)
    write(x, path, ...)
    read(path)
  }
  expect_identical(shown(again(write_pprof, read_pprof, ".pb.gz")), of_time)
  expect_identical(shown(again(write_pprof, read_pprof, ".pb.gz", aggregate = FALSE)), of_time)
  labelled <- again(write_pprof, read_pprof, ".pb.gz", source_labels = TRUE)
  expect_match(shown(labelled), "of 5 s used", fixed = TRUE)
  expect_identical(facts(again(write_otlp, read_otlp, ".pb")), facts(x))
  page <- again(write_profile, read_profile, ".html")
  expect_identical(facts(page), facts(x))
  expect_identical(shown(page), shown(x))
  # Twice.
  path <- withr::local_tempfile(fileext = ".pb.gz")
  write_pprof(again(write_pprof, read_pprof, ".pb.gz"), path)
  expect_identical(sum(startsWith(read_pprof(path)$.comments$comment, "profile.cpu.clock")), 1L)
  # Version 1.0 has no attributes.
  expect_no_match(shown(profile_v2_from_v1(profile_v1_from_v2(x))), "used")
})

test_that("the page has the CPU time, if it differs", {
  x <- recorded(5)
  data <- page_of(x)
  expect_equal(data$used, 5)
  expect_equal(data$sources[[1]]$clock, 5e9)
  expect_null(page_of(recorded(attr(summary(x), "time")))$used)
  part <- page_of(filter_profile(x, ignore = summary(x)$by_function$name[[1]]))
  expect_null(part$used)
  expect_null(part$sources[[1]]$clock)
})

test_that("recordings have the CPU time of the expression", {
  skip_without_ticks()
  now <- 1e9
  with_given_clock()
  work <- compiler::cmpfun(function() {
    tick(4)
    now <<- now + 9e9
  })
  x <- record_profile({ only_given_ticks(); work() }, interval = 0.9)
  expect_identical(facts(x), c(ticks = "4", clock = "9000000000"))
  expect_match(format(x)[[2]], "Samples:   4, 3.6 s of 9 s used", fixed = TRUE)
  expect_match(format(describe_profile(x))[[1]], "<profile> 4 samples, 3.6 s of 9 s used, ", fixed = TRUE)
  # An expression that fails.
  try(record_profile({ only_given_ticks(); work(); stop("Oh no") }, interval = 0.9), silent = TRUE)
  expect_identical(facts(last_profile()), c(ticks = "4", clock = "9000000000"))
  skip_if(getRversion() < "4.4")
  x <- record_profile({ only_given_ticks(); work() }, interval = 0.9, clock = "wall")
  expect_length(facts(x), 0)
})

test_that("recordings of native code have the CPU time", {
  skip_without_ticks()
  skip_if_not(is_live_platform())
  now <- 1e9
  with_given_clock()
  work <- compiler::cmpfun(function() {
    tick(4)
    now <<- now + 9e9
  })
  x <- record_profile({ only_given_ticks(); work() }, interval = 0.9, native = TRUE)
  expect_identical(facts(x), c(ticks = "4", clock = "9000000000"))
  path <- withr::local_tempfile()
  start_profiler(path, interval = 0.9)
  only_given_ticks()
  work()
  x <- stop_profiler()
  expect_identical(facts(x), c(ticks = "4", clock = "9000000000"))
  # If the code has stopped R's profiler, the CPU time until then is not known.
  start_profiler(path, interval = 0.9)
  only_given_ticks()
  work()
  utils::Rprof(NULL)
  x <- suppressWarnings(stop_profiler(), classes = "profile_warning_incomplete")
  expect_length(facts(x), 0)
})

test_that("the clock is that of this thread", {
  skip_on_os("windows")
  time <- time_of_thread()
  expect_gte(time_of_thread(), time)
  expect_null(start_cpu_clock("wall")())
})

test_that("of a script, the start of R and the hook take no time", {
  expect_identical(cpu_of_script("1000", 10, 4), 400)
  expect_identical(cpu_of_script("1000", 0, 0), 1000)
  expect_null(cpu_of_script(character(), 10, 4))
})
