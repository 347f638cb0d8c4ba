# Calls each entry point with garbage collections, and compares the results with calls without.
#
# usage: Rscript torture.R STEP inside          a collection at each STEPth allocation inside of the calls of compiled code
#        Rscript torture.R STEP everywhere      also in R's own code, which takes minutes

library(profile)

# Profiles that fill all tables, small enough for many collections.
folder <- tempfile()
dir.create(folder)
at <- function(file) file.path(folder, file)
lines <- c(
  "memory profiling: sample.interval=20000", "#File 1: a.R",
  ":1:2:3:4:\"f\" 1#1 \"g\" ", ":5:6:7:8:\"f\" ", ":1:2:3:4:\"f\" 1#1 \"g\" ", "x"
)
writeLines(lines, at("in.out"))
x <- suppressWarnings(read_rprof(at("in.out")))
y <- suppressWarnings(read_rprof(at("in.out"), version = "1.0"))
write_pprof(x, at("in.pb"), aggregate = FALSE)
suppressWarnings(write_otlp(x, at("in.otlp"), original_payload = TRUE))
suppressWarnings(write_speedscope(x, at("in.speedscope")))
suppressWarnings(write_firefox(x, at("in.firefox")))
suppressWarnings(write_cpuprofile(x, at("in.cpuprofile")))
writeLines(c("f;g 1", "f 2"), at("in.txt"))
writeLines(c("R 1 2.5: 3 cycles: ", "\t7f0 f (m)"), at("in.perf"))
writeLines(c("80 :\"f\" ", "new page:\"g\" "), at("in.mem"))
internal <- asNamespace("profile")
bad <- x
bad$locations$line[[1]] <- -1L
calls <- list(
  function() suppressWarnings(read_rprof(at("in.out"))),
  function() suppressWarnings(read_rprof(at("in.out"), version = "1.0")),
  function() read_pprof(at("in.pb")),
  function() read_otlp(at("in.otlp")),
  function() read_otlp(at("in.otlp"), original_payload = TRUE),
  function() read_speedscope(at("in.speedscope")),
  function() read_cpuprofile(at("in.cpuprofile")),
  function() read_firefox(at("in.firefox")),
  function() read_profile(at("in.pb")),
  function() { suppressWarnings(write_rprof(x, at("out"))); readLines(at("out")) },
  function() { write_pprof(x, at("out")); readBin(at("out"), "raw", 1e5) },
  function() { suppressWarnings(write_otlp(x, at("out.otlp"))); readBin(at("out.otlp"), "raw", 1e5) },
  function() { suppressWarnings(write_speedscope(x, at("out"))); readBin(at("out"), "raw", 1e5) },
  function() { suppressWarnings(write_cpuprofile(x, at("out"))); readBin(at("out"), "raw", 1e5) },
  function() { write_collapsed(x, at("out.txt")); readLines(at("out.txt")) },
  function() { write_callgrind(x, at("out")); readLines(at("out")) },
  function() read_collapsed(at("in.txt")),
  function() read_perf_script(at("in.perf")),
  function() read_rprofmem(at("in.mem")),
  function() { suppressWarnings(write_firefox(x, at("out"))); readBin(at("out"), "raw", 1e5) },
  function() { write_profile(x, at("out.html")); readBin(at("out.html"), "raw", 1e6) },
  function() profile_page(x, base = x)$html,
  function() as_profvis(x)$x$message$prof,
  function() call_tree(x, "line"),
  function() callers(x, "f"),
  function() add_packages(x),
  function() profile_v1_from_v2(x),
  function() profile_v2_from_v1(y),
  function() validate_profile(x),
  function() tryCatch(validate_profile(bad), error = function(e) unclass(e)[c("message", "table", "row")]),
  function() tryCatch(read_rprof(at("none")), error = conditionMessage),
  function() summary(x),
  function() tibble::as_tibble(x),
  function() filter_profile(x, focus = "f"),
  function() combine_profiles(x, x),
  function() internal$rust(internal$rust_otlp_answer(charToRaw("{}"), "json", TRUE), NULL),
  function() internal$rust(internal$rust_schema(), NULL),
  function() internal$rust(internal$rust_native_state(), NULL)
)

# A function that collects garbage while `f` runs, but not while its arguments are evaluated. If it calls back, the
# allocations of R's code are no cause either, which would take a minute: there is a collection before and after it.
torture <- function(f) {
  force(f)
  function(...) {
    arguments <- lapply(list(...), function(x) if (is.function(x)) calls_back(x) else x)
    gctorture2(step)
    on.exit(gctorture2(0))
    do.call(f, arguments)
  }
}

calls_back <- function(f) {
  force(f)
  function(...) {
    gctorture2(0)
    on.exit(gctorture2(step))
    gc()
    value <- f(...)
    gc()
    value
  }
}

with_torture <- function(call) {
  gctorture2(step)
  on.exit(gctorture2(0))
  call()
}

step <- as.integer(commandArgs(TRUE)[[1]])
plain <- lapply(calls, function(call) call())
if (commandArgs(TRUE)[[2]] == "inside") {
  for (name in ls(internal, pattern = "^rust_")) {
    utils::assignInNamespace(name, torture(internal[[name]]), "profile")
  }
  again <- lapply(calls, function(call) call())
} else {
  again <- lapply(calls, with_torture)
}
same <- mapply(identical, plain, again)
cat(length(same), "calls; these differ:", which(!same))
