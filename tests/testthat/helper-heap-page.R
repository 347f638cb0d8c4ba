# Heap snapshots as the reader returns them, for tests of the page: a path of what holds objects, from the root to their
# type, is a stack, and its amounts are a sample.

# `paths`: the frames of each path, from the outside to the inside, separated by `;`. A frame is a kind and a name.
heap_page_profile <- function(paths, bytes, objects, uri = "pid:123") {
  frames <- strsplit(paths, ";", fixed = TRUE)
  text <- unique(unlist(frames))
  name <- sub("^[a-z]+ ", "", text)
  id <- seq_along(text)
  samples <- seq_along(paths)
  depth <- unlist(lapply(frames, function(path) rev(seq_along(path))))
  tables <- list(
    meta = tibble::tibble(key = "version", value = "2.0"),
    sources = tibble::tibble(
      source_id = 1L, source_type = "heap", source_uri = uri, source_timestamp = NA_real_, .default_type = "inuse_space"
    ),
    samples = tibble::tibble(sample_id = samples, source_id = 1L),
    sample_values = tibble::tibble(
      sample_id = rep(samples, 2), type = rep(c("inuse_space", "inuse_objects"), each = length(paths)),
      unit = rep(c("bytes", "count"), each = length(paths)), value = c(bytes, objects)
    ),
    sample_locations = tibble::tibble(
      sample_id = rep(samples, lengths(frames)), depth = depth, location_id = match(unlist(frames), text)
    ),
    locations = tibble::tibble(location_id = id, function_id = id, line = 0L, .frame_type = sub(" .*", "", text)),
    functions = tibble::tibble(function_id = id, name = name, system_name = name, filename = "", start_line = 0L)
  )
  x <- profile:::new_profile_data(tables, "2.0")
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
    after = heap_page_profile(paths, bytes, c(220, 50, 1, 21, 3, 40, 700, 1), uri = "pid:124")
  )
}
