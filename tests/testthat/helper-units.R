# A profile whose labels have units, for tests of our view and of pprof's.

labelled_profile <- function() {
  x <- small_profile(.local_envir = parent.frame())
  x$.labels <- tibble::tibble(
    sample_id = c(2L, 1L, 1L, 1L, 2L, 3L, 3L, 3L, 3L, 3L),
    key = c("size", "size", "name", "request", "request", "size", "size", "latency", "size", "alignment"),
    str = c(NA, NA, "a", NA, NA, NA, NA, NA, NA, NA),
    num = c(2, 4096, NA, 100, 200, 5, 6, 7, 8, 9),
    unit = c("ms", "bytes", NA, "", NA, "\u00e4", "bytes", "", "Zoll", "ns")
  )
  x
}
