# Profiles with exact allocations beside the samples, as `record_profile(memory = "exact")` records them: each stack that has
# allocated is a row more, without a count of samples.

exact_types <- tibble::tibble(
  type = c("alloc_space", "alloc_objects", "copy_space", "copy_objects", "inuse_space", "inuse_objects", "gc_share"),
  unit = c(rep(c("bytes", "count"), 3), "nanoseconds")
)

# A script with five lines, sampled with memory and lines.
fit_script <- c(
  "fit <- function(x) {", "  for (i in 1:400) x[i] <- v", "  y <- rep(x, 2)", "  names(y)[1] <- \"a\"", "  y", "}"
)

# Ten samples of `fit()`, in memory of about 8 MB.
fit_samples <- function(envir = parent.frame()) {
  path <- withr::local_tempfile(.local_envir = envir)
  levels <- 1e6 + 1e4 * c(0, 3, 1, 5, 2, 4, 8, 6, 7, 9)
  x <- read_rprof(write_file(
    path = path,
    "memory profiling: GC profiling: line profiling: sample.interval=10000",
    "#File 1: fit.R",
    sprintf(":0:%.0f:800000:%d:1#2 \"fit\" 1#9 \"main\" ", levels[1:6], 1:6),
    sprintf(":0:%.0f:800000:0:\"rep\" 1#3 \"fit\" 1#9 \"main\" ", levels[7:9]),
    sprintf(":0:%.0f:800000:0:\"<GC>\" 1#2 \"fit\" 1#9 \"main\" ", levels[[10]])
  ), source_uri = NA)
  x$sources$source_timestamp <- 1700000000
  x$.source_text <- tibble::tibble(filename = "fit.R", text = paste(fit_script, collapse = "\n"), changed = FALSE)
  x
}

# The stacks that have allocated, innermost frame first, as `name:line`, and their values. Line 2 copies 3.2 GB, line 4 has
# copied because the vector is shared, line 1 is not sampled, and the last row has no lines.
fit_allocations <- list(
  list(stack = c("fit:2", "main:9"), values = c(3.2e9, 400, 3.2e9, 400, 8e6, 1, 7e8)),
  list(stack = c("rep:0", "fit:3", "main:9"), values = c(1.6e9, 100, NA, NA, 16e6, 1, 2e8)),
  list(
    stack = c("names<-:0", "fit:4", "main:9"), values = c(8e8, 50, 8e8, 50, NA, NA, 1e8),
    labels = c(copy.reason = "`y` is also `z` in `main()`")
  ),
  list(stack = c("fit:1", "main:9"), values = c(4e8, 10, NA, NA, NA, NA, NA), labels = c(allocation = "conversion")),
  list(stack = c("load:0"), values = c(1e6, 5, 1e6, 5, NA, NA, NA))
)

# Adds allocations to the first source of a profile. `time`: about how long recording them took, in nanoseconds. `share`:
# whether the types contain the share of collections.
with_exact_memory <- function(x, allocations = fit_allocations, share = TRUE, time = NULL) {
  types <- if (share) exact_types else exact_types[-7, ]
  of_file <- x$functions$filename[match("fit", x$functions$name)]
  source <- x$sources$source_id[[1]]
  for (row in allocations) {
    id <- max(x$samples$sample_id) + 1L
    x$samples <- vctrs::vec_rbind(x$samples, tibble::tibble(sample_id = id, source_id = source))
    known <- !is.na(row$values[seq_len(nrow(types))])
    x$sample_values <- vctrs::vec_rbind(x$sample_values, tibble::tibble(
      sample_id = id, type = types$type[known], unit = types$unit[known], value = row$values[seq_along(known)][known]
    ))
    frames <- strsplit(row$stack, ":", fixed = TRUE)
    for (depth in seq_along(frames)) {
      name <- frames[[depth]][[1]]
      line <- as.integer(frames[[depth]][[2]])
      if (!name %in% x$functions$name) {
        x$functions <- vctrs::vec_rbind(x$functions, tibble::tibble(
          function_id = max(x$functions$function_id) + 1L, name = name, system_name = name,
          filename = if (line > 0) of_file else "", start_line = 0L
        ))
      }
      called <- x$functions$function_id[match(name, x$functions$name)]
      x$locations <- vctrs::vec_rbind(x$locations, tibble::tibble(
        location_id = max(x$locations$location_id) + 1L, function_id = called, line = line
      ))
      x$sample_locations <- vctrs::vec_rbind(x$sample_locations, tibble::tibble(
        sample_id = id, depth = depth, location_id = max(x$locations$location_id)
      ))
    }
    if (!is.null(row$labels)) {
      x$.labels <- vctrs::vec_rbind(x$.labels, tibble::tibble(
        sample_id = id, key = names(row$labels), str = unname(row$labels), num = NA_real_, unit = NA_character_
      ))
    }
  }
  x$.source_attributes <- vctrs::vec_rbind(x$.source_attributes, tibble::tibble(
    source_id = source, key = "profile.memory", value = "exact", type = "string", unit = NA_character_
  ))
  if (!is.null(time)) x <- with_attributes(x, source, c(profile.memory.time = time))
  validate_profile(x)
}

exact_profile <- function(envir = parent.frame(), ...) with_exact_memory(fit_samples(envir), ...)
