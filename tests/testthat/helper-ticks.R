# Ticks that a test triggers instead of the profiler's timer, so that each sample and its stack are known. Benchmarks
# measure recordings with the timer.

skip_without_ticks <- function() {
  testthat::skip_on_cran()
  if (Sys.info()[["sysname"]] != "Linux") {
    testthat::skip("ticks can be given on Linux only")
  }
  if (!has_compiler("CC")) {
    testthat::skip("there is no C compiler: no ticks can be given")
  }
  if (is.null(ticks$give)) {
    load_ticks()
  }
}

# The functions of native/ticks.c, which is built once.
ticks <- new.env()

load_ticks <- function() {
  dir <- built_once("ticks", function(dir) {
    file.copy(testthat::test_path("native", "ticks.c"), dir)
    withr::local_dir(dir)
    run_tool(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "-o", "ticks.so", "ticks.c"))
  })
  dll <- dyn.load(file.path(dir, "ticks.so"))
  ticks$only_given <- getNativeSymbolInfo("ticks_only_given", dll)$address
  ticks$give <- getNativeSymbolInfo("ticks_give", dll)$address
}

# To be evaluated first in the recorded code, with an interval of 0.9 seconds: from here on, only `tick()` creates
# samples.
only_given_ticks <- compiler::cmpfun(function() {
  invisible(.Call(ticks$only_given))
})

# Triggers `n` ticks, in which this function is innermost. It is compiled, since otherwise the call of native code would
# be a frame.
tick <- compiler::cmpfun(function(n = 1L) {
  invisible(.Call(ticks$give, n))
})
