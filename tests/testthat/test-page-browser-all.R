# tier: thorough
# The page in a browser shows the figures of the profile, for every sample file.

all_shown_files <- function() {
  pprof <- dir(data_path("pprof"), full.names = TRUE)
  samples <- dir(system.file("samples", package = "profile"), "[.](out|gz)$", recursive = TRUE, full.names = TRUE)
  c(rprof_path(rprof_files()), pprof, samples)
}

test_that("the table has the figures of summary(), for each file", {
  skip_without_chromium()
  for (file in all_shown_files()) expect_shown_functions(file)
})

test_that("the table by line has the figures of summary(), for each file with lines", {
  skip_without_chromium()
  for (file in all_shown_files()) expect_shown_lines(file)
})
