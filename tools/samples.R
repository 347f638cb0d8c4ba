# Makes inst/samples: small real profiles that the examples and the vignette read.
#
#   Rscript tools/samples.R        (with this version of the package installed)
#
# A little report is made again and again while Rprof() looks: simulated sales
# are cleaned, summed by shop, fitted and printed. Its two source files are
# written to a folder of their own, and that folder's name is replaced in what
# Rprof() wrote, so that the profiles name /home/user/report whatever the
# machine. Counts differ from run to run, so the files change when this is run:
# look at the vignette afterwards, its words are about these profiles.

library(profile)

folder <- file.path(tempdir(), "report")
dir.create(folder)

writeLines(c(
  "make_sales <- function(n) {",
  "  shop <- sample(sprintf(\"shop %02d\", 1:20), n, replace = TRUE)",
  "  price <- paste(round(runif(n, 1, 99), 2), \"EUR\")",
  "  data.frame(shop = shop, price = price, pieces = rpois(n, 3))",
  "}",
  "",
  "parse_price <- function(text) {",
  "  as.numeric(sub(\" *EUR$\", \"\", text))",
  "}",
  "",
  "clean_sales <- function(sales) {",
  "  sales$price <- parse_price(sales$price)",
  "  sales[sales$pieces > 0, ]",
  "}"
), file.path(folder, "sales.R"))

writeLines(c(
  "sum_up <- function(sales) {",
  "  total <- sum(sales$price * sales$pieces)",
  "  data.frame(shop = sales$shop[[1]], total = total)",
  "}",
  "",
  "by_shop <- function(sales) {",
  "  shops <- split(sales, sales$shop)",
  "  rows <- lapply(shops, sum_up)",
  "  do.call(rbind, rows)",
  "}",
  "",
  "fit <- function(sales) {",
  "  model <- lm(pieces ~ price + shop, data = sales)",
  "  summary(model)",
  "}",
  "",
  "report <- function(n) {",
  "  raw <- make_sales(n)",
  "  sales <- clean_sales(raw)",
  "  totals <- by_shop(sales)",
  "  model <- fit(sales)",
  "  capture.output(print(totals), print(model))",
  "}"
), file.path(folder, "report.R"))

for (file in c("sales.R", "report.R")) {
  source(file.path(folder, file), keep.source = TRUE)
}
# R compiles a function when it runs for the second time; that is not the story.
for (i in 1:3) report(2000)

record <- function(path, seconds, ...) {
  set.seed(1)
  raw <- tempfile()
  Rprof(raw, interval = 0.01, ...)
  end <- proc.time()[["elapsed"]] + seconds
  while (proc.time()[["elapsed"]] < end) report(20000)
  Rprof(NULL)
  lines <- gsub(folder, "/home/user/report", readLines(raw), fixed = TRUE)
  # This script's own frames are no part of the story either.
  lines <- gsub("(\"report\" ).*", "\\1", lines)
  keep <- !grepl("^(:[0-9:]*)?([0-9]+#[0-9]+ )?\"", lines) | grepl("\"report\" $", lines)
  con <- file(path, "wb")
  on.exit(close(con))
  writeLines(lines[keep], con)
}

samples <- file.path("inst", "samples")
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
