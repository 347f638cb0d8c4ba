# Makes inst/samples: small real profiles that the examples and the vignette read.
#
#   Rscript tools/samples.R        (with this version of the package installed)
#
# A little report is made again and again while Rprof() looks: simulated sales
# are cleaned, joined, fitted and printed. Its two source files are written to a
# folder of their own, so that the profiles name /home/user/report whatever the
# machine. Runs differ in their counts, so the files change when this is run.

library(profile)

folder <- file.path(tempdir(), "report")
dir.create(folder)

writeLines(c(
  "make_sales <- function(n) {",
  "  data.frame(",
  "    shop = sample(sprintf(\"shop %02d\", 1:20), n, replace = TRUE),",
  "    price = paste0(round(runif(n, 1, 99), 2), \" EUR\"),",
  "    pieces = rpois(n, 3)",
  "  )",
  "}",
  "",
  "parse_price <- function(text) {",
  "  as.numeric(sub(\" EUR\", \"\", text))",
  "}",
  "",
  "clean_sales <- function(sales) {",
  "  sales$price <- parse_price(sales$price)",
  "  sales[sales$pieces > 0, ]",
  "}"
), file.path(folder, "sales.R"))

writeLines(c(
  "by_shop <- function(sales) {",
  "  total <- tapply(sales$price * sales$pieces, sales$shop, sum)",
  "  sort(total, decreasing = TRUE)",
  "}",
  "",
  "fit <- function(sales) {",
  "  model <- lm(pieces ~ price + shop, data = sales)",
  "  summary(model)",
  "}",
  "",
  "report <- function(n) {",
  "  sales <- clean_sales(make_sales(n))",
  "  totals <- by_shop(sales)",
  "  model <- fit(sales)",
  "  capture.output(print(totals), print(model))",
  "}"
), file.path(folder, "report.R"))

options(keep.source = TRUE)
# Real paths here, neutral ones in the samples.
for (file in c("sales.R", "report.R")) {
  source(file.path(folder, file), keep.source = TRUE)
}

record <- function(path, seconds, ...) {
  set.seed(1)
  raw <- tempfile()
  Rprof(raw, interval = 0.01, ...)
  end <- proc.time()[["elapsed"]] + seconds
  while (proc.time()[["elapsed"]] < end) report(20000)
  Rprof(NULL)
  lines <- gsub(folder, "/home/user/report", readLines(raw), fixed = TRUE)
  # This script's own frames are no part of the story.
  lines <- gsub("(\"report\" ).*", "\\1", lines)
  keep <- !grepl("^(:[0-9:]*)?\"", lines) | grepl("\"report\" $", lines)
  con <- file(path, "wb")
  writeLines(lines[keep], con)
  close(con)
}

samples <- file.path("inst", "samples")
dir.create(file.path(samples, "rprof"), recursive = TRUE, showWarnings = FALSE)
dir.create(file.path(samples, "proto"), recursive = TRUE, showWarnings = FALSE)

one <- file.path(samples, "rprof", "1.out")
record(one, 3, line.profiling = TRUE)
record(file.path(samples, "rprof", "memory.out"), 2, memory.profiling = TRUE, gc.profiling = TRUE, line.profiling = TRUE)

# A process that was killed leaves a file that ends in the middle of a line.
bytes <- readBin(one, "raw", file.size(one))
writeBin(bytes[seq_len(4096)], file.path(samples, "rprof", "incomplete.out"))

write_pprof(read_rprof(one, source_uri = "1.out"), file.path(samples, "proto", "1.out.prof.pb.gz"))
