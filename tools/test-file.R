# Runs one file of testthat with the installed package, as tools/test does: usage: Rscript tools/test-file.R test-units.R
#
# Ends with a line for each test that failed and a line of counts, and with an error status if any failed.

library(testthat)
Sys.setenv(NOT_CRAN = "true")
file <- commandArgs(TRUE)[[1]]
name <- sub("^test-(.*)[.]R$", "\\1", basename(file))
library(profile)

tests <- test_dir(
  "tests/testthat", package = "profile", load_package = "installed", filter = paste0("^", name, "$"),
  reporter = "summary", stop_on_failure = FALSE
)
results <- as.data.frame(tests)
bad <- sum(results$failed, results$error)
for (test in tests) {
  for (what in Filter(function(x) inherits(x, c("expectation_failure", "expectation_error")), test$results)) {
    said <- gsub("[[:space:]]+", " ", conditionMessage(what))
    cat(sprintf("failing test: %s, %s: %s\n", test$file, test$test, substr(said, 1, 300)))
  }
}
cat(sprintf("testthat: %d passed, %d failed, %d skipped\n", sum(results$passed), bad, sum(results$skipped)))
quit("no", as.integer(bad > 0))
