# tier: thorough
# Garbage collections at each allocation of compiled code, and anywhere in R: the tests of the gate with smaller steps.

test_that("garbage collections at any time change no result", {
  skip_on_cran()
  for (how in list(c(1, "inside"), c(7, "everywhere"))) {
    expect_equal(run_script(test_path("border", "torture.R"), how), "38 calls; these differ: ")
  }
})

test_that("each method of lazy columns works with garbage collections at any time", {
  skip_on_cran()
  for (step in c(1, 7)) {
    expect_match(run_script(test_path("lazy", "methods.R"), step), "^[0-9]+ results are the same$")
  }
})
