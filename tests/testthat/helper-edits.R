# Random edits of tables, like edits of users, and calls that must return the same for tables with computed columns and
# with ordinary columns.

# Profiles to edit: of both formats, with several sources, with only distinct stacks, and converted ones.
edited_files <- c(
  "basic_all.out", "basic_plain.out", "append_plain3.out", "basic_memgc.out", "go_mutex.pb.gz", "go_heap.pb.gz",
  "converted basic_all.out", "converted go_mutex.pb.gz"
)

read_to_edit <- function(file) {
  name <- sub("converted ", "", file)
  path <- if (grepl("[.]pb", name)) data_path("pprof", name) else rprof_path(name)
  read <- function(version) suppressWarnings(read_profile(path, version = version), classes = "profile_warning")
  if (name == file) read("2.0") else profile_v2_from_v1(read("1.0"))
}

# A profile of the same shape with other content: its samples and locations are in the opposite order.
read_twin <- function(file) {
  x <- read_to_edit(file)
  for (table in c("samples", "locations")) {
    x[[table]] <- x[[table]][rev(seq_len(nrow(x[[table]]))), ]
  }
  path <- withr::local_tempfile()
  write_pprof(x, path, aggregate = FALSE)
  read_pprof(path)
}

# A random edit of a profile, like an edit of a user: of `x`, and of the tables in place.
random_edit <- function() {
  row <- function(table) sample.int(nrow(table), 1)
  frames <- "sample_locations"
  column <- sample(large_tables$sample_locations, 1)
  seed <- sample.int(1e6, 1)
  value <- sample(list(1L, 2L, 3L, 7L, 0L, -1L, NA_integer_, 1000000L), 1)[[1]]
  set <- function(x, i, j, value) data.table::set(x, i, j, value)
  # A random table and column of the tables for samples and their stacks.
  any_table <- sample(c(names(large_tables), "locations", "functions"), 1)
  any_column <- function(x) sample(names(x[[any_table]]), 1)
  other_value <- function(x, j) x[[any_table]][[j]][[row(x[[any_table]])]]
  edit <- sample(list(
    nothing = function(x) x,
    nothing = function(x) x,
    read = function(x) { sum(x[[frames]]$depth + 1L); x },
    one_cell = function(x) { x[[frames]][[column]][[row(x[[frames]])]] <- value; x },
    same_cell = function(x) { i <- row(x[[frames]]); x[[frames]][[column]][i] <- x[[frames]][[column]][i]; x },
    in_place = function(x) { set(x[[frames]], row(x[[frames]]), column, value); x },
    in_place_same = function(x) {
      i <- row(x[[frames]])
      old <- x[[frames]][[column]][[i]]
      set(x[[frames]], i, column, 1L)
      set(x[[frames]], i, column, old)
      x
    },
    no_row = function(x) { x[[frames]] <- x[[frames]][-row(x[[frames]]), ]; x },
    last_row = function(x) { x[[frames]] <- x[[frames]][-nrow(x[[frames]]), ]; x },
    all_rows = function(x) { x[[frames]] <- x[[frames]][seq_len(nrow(x[[frames]])), ]; x },
    more_rows = function(x) { x[[frames]] <- rbind(x[[frames]], x[[frames]][1, ]); x },
    none = function(x) { x[[frames]] <- x[[frames]][0, ]; x },
    shuffled = function(x) { x[[frames]] <- x[[frames]][sample.int(nrow(x[[frames]])), ]; x },
    other_profile = function(x) { x[[frames]][[column]] <- fresh("basic_plain.out")[[frames]][[column]]; x },
    of_same_file = function(x) { x[[frames]][[column]] <- again()[[frames]][[column]]; x },
    whole_of_same_file = function(x) { x[[frames]] <- again()[[frames]]; x },
    exchanged = function(x) { names(x[[frames]])[1:2] <- names(x[[frames]])[2:1]; x },
    other_order = function(x) { x[[frames]] <- x[[frames]][3:1]; x },
    double = function(x) { x[[frames]][[column]] <- as.double(x[[frames]][[column]]); x },
    factor = function(x) { x[[frames]][[column]] <- factor(x[[frames]][[column]]); x },
    as_is = function(x) { x[[frames]][[column]] <- I(x[[frames]][[column]]); x },
    named = function(x) { names(x[[frames]][[column]]) <- rep("a", nrow(x[[frames]])); x },
    no_column = function(x) { x[[frames]][[column]] <- NULL; x },
    own_column = function(x) { x[[frames]]$.own <- seq_len(nrow(x[[frames]])); x },
    bad_column = function(x) { x[[frames]]$own <- 1L; x },
    plain_frame = function(x) { x[[frames]] <- as.data.frame(x[[frames]]); x },
    no_table = function(x) { x[[frames]] <- NULL; x },
    no_sample = function(x) { x$samples <- x$samples[-row(x$samples), ]; x },
    last_sample = function(x) { x$samples <- x$samples[-nrow(x$samples), ]; x },
    sample_ids = function(x) { x$samples$sample_id[[row(x$samples)]] <- value; x },
    reversed_samples = function(x) { x$samples <- x$samples[rev(seq_len(nrow(x$samples))), ]; x },
    one_more_sample = function(x) {
      x$samples <- rbind(x$samples, x$samples[1, ])
      x$samples$sample_id[[nrow(x$samples)]] <- nrow(x$samples)
      x
    },
    sample_in_place = function(x) { set(x$samples, row(x$samples), "sample_id", value); x },
    source_in_place = function(x) { set(x$samples, row(x$samples), "source_id", value); x },
    type_in_place = function(x) { set(x$sample_values, row(x$sample_values), "type", "other"); x },
    value_in_place = function(x) { set(x$sample_values, row(x$sample_values), "sample_id", value); x },
    values = function(x) { x$sample_values$value[[row(x$sample_values)]] <- sample(c(0, -1, 0.5, NA, 1e300), 1); x },
    all_values = function(x) { x$sample_values$value[] <- sample(c(0, -1, 0.5, NA, 2, Inf), 1); x },
    all_types = function(x) { x$sample_values$type[] <- sample(c("cpu", "", NA), 1); x },
    all_units = function(x) { x$sample_values$unit[] <- sample(c("bytes", "", NA), 1); x },
    all_sources = function(x) { x$samples$source_id[] <- value; x },
    one_unit = function(x) { x$sample_values$unit[[row(x$sample_values)]] <- "bytes"; x },
    no_value = function(x) { x$sample_values <- x$sample_values[-row(x$sample_values), ]; x },
    no_location = function(x) { x$locations <- x$locations[-row(x$locations), ]; x },
    last_location = function(x) { x$locations <- x$locations[-nrow(x$locations), ]; x },
    more_locations = function(x) {
      x$locations <- rbind(x$locations, x$locations[1, ])
      x$locations$location_id[[nrow(x$locations)]] <- nrow(x$locations)
      x
    },
    equal_locations = function(x) {
      i <- sample.int(nrow(x$locations), 2)
      x$locations[i[[1]], -1] <- x$locations[i[[2]], -1]
      x
    },
    reversed_locations = function(x) { x$locations <- x$locations[rev(seq_len(nrow(x$locations))), ]; x },
    location_ids = function(x) { x$locations$location_id[[row(x$locations)]] <- value; x },
    lines = function(x) { x$locations$line[[row(x$locations)]] <- value; x },
    function_names = function(x) { x$functions$name[[row(x$functions)]] <- sample(c("new", "", NA), 1); x },
    no_function = function(x) { x$functions <- x$functions[-row(x$functions), ]; x },
    any_cell = function(x) {
      j <- any_column(x)
      x[[any_table]][[j]][[row(x[[any_table]])]] <- other_value(x, j)
      x
    },
    any_cell_in_place = function(x) {
      j <- any_column(x)
      set(x[[any_table]], row(x[[any_table]]), j, other_value(x, j))
      x
    },
    any_id = function(x) {
      j <- sample(grep("_id$", names(x[[any_table]]), value = TRUE), 1)
      x[[any_table]][[j]][[row(x[[any_table]])]] <- value
      x
    },
    any_new_equal = function(x) {
      j <- any_column(x)
      x[[any_table]][[j]] <- unserialize(serialize(x[[any_table]][[j]], NULL))
      x
    },
    all_new_equal = function(x) {
      x[[any_table]][] <- lapply(x[[any_table]], function(column) column[seq_along(column)])
      x
    },
    any_shifted = function(x) {
      j <- sample(grep("_id$", names(x[[any_table]]), value = TRUE), 1)
      # For a factor, which another edit may have created, this is NA.
      x[[any_table]][[j]] <- suppressWarnings(x[[any_table]][[j]] + 1L)
      x
    },
    ids_shifted = function(x) {
      j <- sample(c("sample_id", "location_id"), 1)
      for (table in names(x)) {
        if (j %in% names(x[[table]])) x[[table]][[j]] <- suppressWarnings(x[[table]][[j]] + 1L)
      }
      x
    },
    any_row_dropped = function(x) { x[[any_table]] <- x[[any_table]][-row(x[[any_table]]), ]; x },
    any_half = function(x) { x[[any_table]] <- utils::head(x[[any_table]], nrow(x[[any_table]]) %/% 2); x },
    any_reversed = function(x) { x[[any_table]] <- x[[any_table]][rev(seq_len(nrow(x[[any_table]]))), ]; x },
    any_shuffled = function(x) { x[[any_table]] <- x[[any_table]][sample.int(nrow(x[[any_table]])), ]; x },
    any_two_rows_exchanged = function(x) {
      i <- seq_len(nrow(x[[any_table]]))
      at <- sample.int(length(i), 2)
      i[at] <- i[rev(at)]
      x[[any_table]] <- x[[any_table]][i, ]
      x
    },
    any_column_of_same_file = function(x) {
      j <- any_column(x)
      x[[any_table]][[j]] <- again()[[any_table]][[j]]
      x
    },
    any_column_of_twin = function(x) {
      y <- twin()[[any_table]]
      j <- sample(intersect(names(x[[any_table]]), names(y)), 1)
      x[[any_table]][[j]] <- y[[j]]
      x
    },
    any_table_of_twin = function(x) { x[[any_table]] <- twin()[[any_table]]; x },
    frames_and_samples_of_twin = function(x) {
      y <- twin()
      tables <- c(frames, sample(c("samples", "locations"), 1))
      x[tables] <- y[tables]
      x
    },
    dropped_and_put_back = function(x) {
      x[[any_table]] <- rbind(x[[any_table]][-1, ], x[[any_table]][1, ])
      x[[any_table]] <- x[[any_table]][c(nrow(x[[any_table]]), seq_len(nrow(x[[any_table]]) - 1)), ]
      x
    },
    dropped_stacks = function(x) filter_profile(x, drop = "[a-f].*"),
    hidden = function(x) filter_profile(x, hide = "e$"),
    to_version_1_and_back = function(x) profile_v2_from_v1(profile_v1_from_v2(x)),
    combined = function(x) combine_profiles(x, x),
    compact = function(x) compact_profile(x),
    filtered = function(x) filter_profile(x, hide = "a"),
    serialized = function(x) unserialize(serialize(x, NULL))
  ), 1)
  # The same draws for both profiles.
  function(x, again, twin) {
    set.seed(seed)
    environment(edit[[1]])$again <- again
    environment(edit[[1]])$twin <- twin
    edit[[1]](x)
  }
}

# The value, or the class and message of an error.
result_of <- function(expr) {
  tryCatch(expr, error = function(e) unclass(e)[c("message", "table", "column", "row", "rule")])
}

bytes_of <- function(write, x, ...) {
  path <- withr::local_tempfile()
  write(x, path, ...)
  file_bytes(path)
}

calls_of_edited <- list(
  as_tibble = function(x) as_tibble(x),
  validate = function(x) validate_profile(x),
  summary = function(x) summary(x),
  pprof = function(x) bytes_of(write_pprof, x),
  pprof_as_recorded = function(x) bytes_of(write_pprof, x, aggregate = FALSE),
  rprof = function(x) suppressWarnings(bytes_of(write_rprof, x)),
  otlp = function(x) suppressWarnings(bytes_of(write_otlp, x)),
  version_1 = function(x) profile_v1_from_v2(x),
  combined = function(x) combine_profiles(x, fresh("basic_plain.out")),
  alone = function(x) combine_profiles(x),
  compact = function(x) compact_profile(x),
  filtered = function(x) filter_profile(x, focus = "e", hide = "^a"),
  dropped = function(x) filter_profile(x, drop = "a.*")
)

# Expects the same results for both profiles after the random edits with these seeds.
expect_same_after_edits <- function(seeds) {
  testthat::skip_if_not_installed("data.table")
  for (i in seeds) {
    set.seed(i)
    # One or several edits.
    edits <- lapply(seq_len(sample(c(1, 1, 2, 3), 1)), function(i) random_edit())
    file <- sample(edited_files, 1)
    chosen <- c("as_tibble", sample(names(calls_of_edited), if (i %% 10 == 0) 5 else 1))
    results <- lapply(c(TRUE, FALSE), function(lazy) {
      withr::local_options(profile.lazy = lazy)
      again <- function() read_to_edit(file)
      twin <- function() read_twin(file)
      x <- result_of(Reduce(function(x, edit) edit(x, again, twin), edits, again()))
      lapply(calls_of_edited[chosen], function(call) result_of(call(x)))
    })
    if (!identical(results[[1]], results[[2]])) {
      testthat::fail(paste("seed", i))
    }
  }
  testthat::succeed()
}
