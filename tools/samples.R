# Generates inst/samples: small real profiles for examples and vignettes.
#
#   Rscript tools/samples.R             (with this version of the package installed)
#   Rscript tools/samples.R compare     only the runs of two versions
#
# Rprof() records a small report that is repeated: simulated sales are cleaned, summed by shop, fitted and
# printed. Its two source files are in inst/samples/report. They run in a temporary directory, whose name is
# replaced by /home/user/report in the profiles, so that they do not depend on the machine. Counts differ
# from run to run: after running this, check that the text of the vignettes still agrees with the profiles.

library(profile)

samples <- file.path("inst", "samples")
code <- file.path(samples, "report", c("sales.R", "report.R"))
folder <- file.path(tempdir(), "report")
dir.create(folder)
stopifnot(file.copy(code, folder))
for (file in file.path(folder, basename(code))) {
  source(file, keep.source = TRUE)
}
# Runs the report first: R compiles functions when they run for the second time, which should not be part of the
# profile.
for (i in 1:3) report(2000)

record <- function(path, seconds, ...) {
  set.seed(1)
  raw <- tempfile()
  Rprof(raw, interval = 0.01, ...)
  end <- proc.time()[["elapsed"]] + seconds
  while (proc.time()[["elapsed"]] < end) report(20000)
  Rprof(NULL)
  lines <- gsub(folder, "/home/user/report", readLines(raw), fixed = TRUE)
  # The frames of this script are removed as well.
  lines <- gsub("(\"report\" ).*", "\\1", lines)
  keep <- !grepl("^(:[0-9:]*)?([0-9]+#[0-9]+ )?\"", lines) | grepl("\"report\" $", lines)
  con <- file(path, "wb")
  on.exit(close(con))
  writeLines(lines[keep], con)
}

record_report <- function() {
  dir.create(file.path(samples, "rprof"), recursive = TRUE, showWarnings = FALSE)
  dir.create(file.path(samples, "proto"), recursive = TRUE, showWarnings = FALSE)

  one <- file.path(samples, "rprof", "1.out")
  record(one, 2.5, line.profiling = TRUE)
  record(
    file.path(samples, "rprof", "memory.out"), 1.5,
    memory.profiling = TRUE, gc.profiling = TRUE, line.profiling = TRUE
  )

  # A process that was killed leaves a file that ends in the middle of a line.
  writeBin(readBin(one, "raw", 4096), file.path(samples, "rprof", "incomplete.out"))

  write_pprof(read_rprof(one, source_uri = "1.out"), file.path(samples, "proto", "1.out.prof.pb.gz"))
}

# Runs of two versions of the report: in the new one, parse_price() accepts any currency.
record_versions <- function() {
  base <- parse_price
  new <- function(text) {
    as.numeric(gsub("[^0-9.]", "", text))
  }
  with_version <- function(version) {
    assign("parse_price", version, globalenv())
    set.seed(1)
    for (i in 1:25) report(20000)
  }
  runs <- benchmark_profile(base = with_version(base), new = with_version(new), runs = 8, measure = "time")
  dir.create(file.path(samples, "compare"), showWarnings = FALSE)
  for (version in names(runs)) {
    x <- filter_profile(runs[[version]], show_from = "^report$")
    x$sources$source_uri <- paste(version, seq_len(nrow(x$sources)))
    write_pprof(x, file.path(samples, "compare", paste0(version, ".pb.gz")), source_labels = TRUE)
  }
}

if (!"compare" %in% commandArgs(TRUE)) {
  record_report()
}
record_versions()
