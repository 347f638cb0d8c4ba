# tier: thorough
# The tests of test-lazy-edits.R with many more edits; PROFILE_TEST_GENERATED is their number.

skip_on_cran()
lazy <- options(profile.lazy = TRUE)

test_that("edited tables are checked as if nothing were known of them", {
  expect_same_after_edits(seq_len(as.integer(Sys.getenv("PROFILE_TEST_GENERATED", "1000"))))
})

options(lazy)
