# tier: gate
# Edited tables with computed columns: all functions return what they return for ordinary columns.

skip_on_cran()
lazy <- options(profile.lazy = TRUE)

# test-lazy-edits-many.R has more of them.
test_that("edited tables are checked as if nothing were known of them", {
  expect_same_after_edits(1:60)
})

options(lazy)
