# Functions of another file than those of stops.R.

call_back <- function(f) {
  value <-
    f()
  value
}

compiled_call_back <- compiler::cmpfun(function(f) {
  for (i in 1:2) {
    if (i == 2) {
      call_back(f)
    }
  }
})
