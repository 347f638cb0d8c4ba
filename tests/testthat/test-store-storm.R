# tier: thorough
# Many writers and readers of one database, for longer than in the gate.

test_that("four writers and two readers at once lose nothing and never fail", {
  expect_no_loss(20)
})
