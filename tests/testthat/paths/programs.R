# Tests the temporary folder, the files of the profilers, and the arguments of the pprof tool.
library(profile)
expect <- function(...) {
  if (!all(...)) stop("not so: ", deparse1(substitute(list(...))), call. = FALSE)
}
name <- basename(dirname(tempdir()))
expect(any(charToRaw(name) > as.raw(0x7f)))
x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
expect(identical(x$samples, {path <- tempfile(); write_rprof(x, path); read_rprof(path)$samples}))
expect(length(profile:::gzip(charToRaw("abc"))) > 0)

tool <- tempfile("pprof")
writeLines(c("#!/bin/sh", "eval last=\\${$#}", "[ -s \"$last\" ] && echo found; exit 1"), tool)
Sys.chmod(tool, "755")
output <- tryCatch(profile:::start_pprof(x, tool, "localhost:", NULL), profile_error_pprof = function(e) e$output)
expect(identical(output, "found"))

supported <- tryCatch({record_profile(1, native = TRUE); TRUE}, profile_error_unsupported = function(e) FALSE)
if (supported) {
  work <- function(seconds) {
    end <- proc.time()[[1]] + seconds
    while (proc.time()[[1]] < end) sum(runif(100))
  }
  setwd(tempdir())
  start_profiler(name, interval = 0.01)
  work(0.2)
  y <- stop_profiler()
  expect(nrow(y$samples) > 0, validUTF8(y$sources$source_uri), file.size(name) > 0)
  expect(identical(nrow(read_rprof(name)$sample_locations), nrow(y$sample_locations)))
  expect(nrow(record_profile(work(0.2), native = TRUE)$samples) > 0)
}
marked <- "\u20ac.out"
if (is.na(iconv(marked, "UTF-8", ""))) {
  error <- tryCatch(start_profiler(marked), profile_error = identity)
  expect(inherits(error, "profile_error_write"), !any(grepl("out$", dir())))
}
cat("done\n")
