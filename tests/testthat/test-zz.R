test_that('x', {
con <- zz()
expect_stored(con, lazy=FALSE, wide='1000', same = function(...) expect_equal(..., tolerance = 1e-14))
expect_untouched(con)
DBI::dbDisconnect(con)
})
