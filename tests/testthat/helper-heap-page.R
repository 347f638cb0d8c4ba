# Heap snapshots as the reader returns them, for tests of the page: a path of what holds objects, from the root to their
# type, is a stack, and its amounts are a sample.

# `paths`: the frames of each path, from the outside to the inside, separated by `;`. A frame is a kind and a name.
heap_page_profile <- function(paths, bytes, objects, pid = 123) {
  frames <- strsplit(paths, ";", fixed = TRUE)
  names <- lapply(frames, function(frames) sub("^[a-z]+ ", "", frames))
  x <- snapshot_of_frames(names, sub(" .*", "", unlist(frames)), bytes, objects, pid, NA_real_, "R")
  validate_profile(x)
  x
}

# The same session at two moments: `fits` has grown.
heap_page_snapshots <- function() {
  fits <- "root globalenv;binding $fits <list>;element [[*]] <lm>;"
  paths <- c(
    paste0(fits, "element $model <data.frame>;type numeric"),
    paste0(fits, "element $terms <terms> [shared];attribute attr \".Environment\";type environment"),
    "root globalenv;binding $f();environment closure env;binding $x;type numeric",
    "root namespace:ggplot2;binding $theme_env;binding $cache [shared];type <data.frame>",
    "root call of f();environment promise env;code in code;type function",
    "root package:stats;binding $lm();type function",
    "root free cells of R;type cells", "root not R's heap;type memory"
  )
  bytes <- c(9e6, 4e5, 8e5, 3e5, 5000, 2e5, 6e4, 1e6)
  before <- c(4e6, 8e5, 3e5, 5000, 2e5, 1e5, 9e5)
  list(
    before = heap_page_profile(paths[-2], before, c(100, 1, 20, 3, 40, 1000, 1)),
    after = heap_page_profile(paths, bytes, c(220, 50, 1, 21, 3, 40, 700, 1), pid = 124)
  )
}
