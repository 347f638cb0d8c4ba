# tier: fast
# Removing unused rows, and renumbering the others.

test_that("a valid profile of a reader comes back as it is", {
  for (file in regular_files()) {
    x <- read_quietly(rprof_path(file))
    if (!any(table(factor(x$samples$source_id, x$sources$source_id)) == 0)) {
      expect_identical(compact_profile(x), x, info = file)
    }
  }
})

test_that("samples can be filtered", {
  x <- read_quietly(rprof_path("multi_memory_gc_line.out"))
  kept <- seq(2, nrow(x$samples), by = 3)
  y <- x
  y$samples <- y$samples[kept, ]
  y <- compact_profile(y)
  validate_profile(y)
  expect_equal(stacks(y), stacks(x)[kept])
  expect_equal(
    y$sample_values$value,
    x$sample_values$value[x$sample_values$sample_id %in% kept]
  )
  expect_setequal(y$functions$function_id, y$locations$function_id)
  expect_setequal(y$locations$location_id, y$sample_locations$location_id)
  write_rprof(y, withr::local_tempfile())
})

test_that("removing a source removes everything that belongs to it", {
  x <- read_quietly(rprof_path("append_line2.out"))
  y <- x
  y$sources <- y$sources[2, ]
  y <- compact_profile(y)
  expect_equal(y$sources$source_id, 1)
  expect_equal(nrow(y$samples), sum(x$samples$source_id == 2))
  expect_equal(y$.files$filename, x$.files$filename[x$.files$source_id == 2])
})

test_that("frames can be dropped from either end", {
  x <- small_profile()
  outer <- x
  outer$sample_locations <- outer$sample_locations[outer$sample_locations$depth < 2, ]
  expect_equal(stacks(compact_profile(outer)), sub(" <.*", "", stacks(x)))
  inner <- x
  inner$sample_locations <- inner$sample_locations[inner$sample_locations$depth > 1, ]
  y <- compact_profile(inner)
  expect_equal(y$sample_locations$depth, rep(1L, 3))
  expect_equal(stacks(y), sub(".*< ", "", stacks(x)))
})

test_that("a function that is dropped is taken out of the stacks", {
  x <- small_profile()
  x$functions <- x$functions[x$functions$name != "g", ]
  expect_equal(stacks(compact_profile(x)), c("f", "h", "f"))
})

test_that("functions that become equal become one", {
  x <- small_profile()
  x$functions$name[x$functions$name == "h"] <- "f"
  x$functions$system_name <- x$functions$name
  x$functions$filename <- "a.R"
  y <- compact_profile(x)
  expect_equal(sort(y$functions$name), c("f", "g"))
  expect_equal(stacks(y), rep("f < g", 3))
})

test_that("values can be added, in any order", {
  x <- small_profile()
  new <- x$sample_values
  new$type <- "bytes"
  new$value <- c(10, 20, 30)
  x$sample_values <- rbind(x$sample_values, new)
  y <- compact_profile(x)
  expect_equal(y$sample_values$type, rep(c("samples", "bytes"), 3))
  expect_equal(y$sample_values$value, c(1, 10, 1, 20, 1, 30))
})

test_that("types are restored if this loses nothing", {
  x <- small_profile()
  x$locations$.frame_type <- rep_len(c("r", NA), nrow(x$locations))
  y <- x
  y$samples$sample_id <- as.numeric(y$samples$sample_id)
  y$functions$name <- factor(y$functions$name)
  y$locations <- as.data.frame(y$locations)
  y$locations$.frame_type <- factor(y$locations$.frame_type)
  y$sources$.gc_profiling <- as.numeric(y$sources$.gc_profiling)
  expect_error(validate_profile(y), class = "profile_error_invalid")
  expect_identical(compact_profile(y), x)
})

test_that("rows in any order are sorted", {
  x <- small_profile()
  y <- x
  y$sample_locations <- y$sample_locations[rev(seq_len(nrow(y$sample_locations))), ]
  y$sample_values <- y$sample_values[3:1, ]
  expect_identical(compact_profile(y), x)
})

test_that("a user's own table follows its samples", {
  x <- small_profile()
  x$.notes <- tibble::tibble(sample_id = c(1L, 3L, NA), note = c("a", "b", "c"))
  x$samples <- x$samples[2:3, ]
  y <- compact_profile(x)
  expect_equal(y$.notes, tibble::tibble(sample_id = c(2L, NA), note = c("b", "c")))
})

test_that("a remaining error names the table and column", {
  x <- small_profile()
  change <- function(table, column, value, row = 1) {
    x[[table]][[column]][row] <- value
    x
  }
  twice <- change("sample_locations", "depth", 2L)
  no_table <- x
  no_table$samples <- NULL
  no_column <- x
  no_column$samples$source_id <- NULL
  expect_snapshot(error = TRUE, {
    compact_profile(change("locations", "line", 1.5))
    compact_profile(change("locations", "line", "a"))
    compact_profile(change("functions", "name", NA))
    compact_profile(change("samples", "sample_id", 2L))
    compact_profile(change("samples", "sample_id", NA))
    compact_profile(twice)
    compact_profile(no_table)
    compact_profile(no_column)
    compact_profile(1)
  })
})

test_that("version 1.0 is converted", {
  x <- small_profile(version = "1.0")
  expect_identical(compact_profile(x), profile_v2_from_v1(x))
})

test_that("unreferenced rows of OpenTelemetry tables are removed", {
  x <- otlp_profiles()[[1]]
  expect_identical(compact_profile(x), x)
  only <- function(sources) {
    y <- x
    y$samples <- y$samples[y$samples$source_id %in% sources, ]
    compact_profile(y)
  }
  resources <- function(y) attribute_words(y$.resource_attributes, "resource_id", y$.resources$resource_id)
  y <- only(3)
  expect_equal(resources(y), "service.name=string till")
  expect_equal(nrow(y$.scopes), 1)
  for (table in c(".resource_entities", ".scope_attributes", ".source_attributes", ".labels")) {
    expect_equal(nrow(y[[table]]), 0, info = table)
  }
  expect_equal(y$.comments$comment, c("sooner", "later"))
  # The program, and mappings in use.
  expect_equal(attribute_words(y$.mapping_attributes, "mapping_id", y$.mappings$mapping_id), c("", "arch=string x86"))
  expect_equal(y$.location_attributes$value, "3.25")
  expect_equal(source_words(y), source_words(x)[3])
  expect_equal(stack_words(y, all = TRUE), stack_words(x, all = TRUE)[6])
  expect_through_otlp(y)
  y <- only(2)
  expect_equal(y$.scopes$name, "allocs")
  expect_equal(y$.resource_entities$type, "service")
  expect_equal(resources(y), resources(x)[1])
  expect_equal(source_words(y), source_words(x)[2])
  expect_through_otlp(y)
  y <- only(c(1, 3))
  expect_equal(y$.scopes$resource_id, 1:2)
  expect_equal(y$sources$.scope_id, 1:2)
  expect_equal(source_words(y), source_words(x)[c(1, 3)])
  expect_through_otlp(y)
})

test_that("removing a row also removes its attributes", {
  x <- otlp_profiles()[[1]]
  y <- x
  y$.resources <- y$.resources[2, ]
  expect_equal(source_words(compact_profile(y)), source_words(x)[3])
  y <- x
  y$.scopes <- y$.scopes[y$.scopes$name %in% "allocs", ]
  expect_equal(source_words(compact_profile(y)), source_words(x)[2])
  # Without this table no source has a scope, and without scopes there are no resources.
  y <- x
  y$.scopes <- NULL
  y$.scope_attributes <- NULL
  y <- compact_profile(y)
  expect_equal(nrow(y$sources), 3)
  expect_equal(NROW(y[[".resources"]]), 0)
  expect_equal(NROW(y[[".resource_attributes"]]), 0)
  # Locations whose attributes have become equal are merged, and so are the attributes.
  y <- x
  y$.location_attributes$value[1:2] <- "2"
  y <- compact_profile(y)
  expect_equal(nrow(y$locations), 5)
  expect_equal(attribute_words(y$.location_attributes, "location_id", y$locations$location_id)[2], "clock=double 2 GHz")
  expect_equal(nrow(y$.location_attributes), 2)
  # Mappings and their locations are merged as well.
  y$.mapping_attributes <- y$.mapping_attributes[0, ]
  y <- compact_profile(y)
  expect_equal(nrow(y$.mappings), 1)
  validate_profile(y)
  # Integers that became double, and texts that became factors.
  y <- x
  y$sources$.scope_id <- as.numeric(y$sources$.scope_id)
  y$.resource_attributes$type <- factor(y$.resource_attributes$type)
  y$.location_attributes$location_id <- as.numeric(y$.location_attributes$location_id)
  expect_identical(compact_profile(y), x)
})
