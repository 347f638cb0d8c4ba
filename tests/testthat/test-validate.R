# tier: fast
# Each rule of both versions, broken once.

# The error for a profile that is not valid.
broken <- function(x) {
  error <- tryCatch(
    {
      validate_profile(x)
      NULL
    },
    profile_error_invalid = identity
  )
  expect_s3_class(error, "profile_error_invalid")
  error
}

# Each expression of a block is evaluated with the valid profile as `x`, and breaks one rule of it.
# The lines of a table: the place and the rule that the error states, and the expression.
broken_rules <- function(x, cases) {
  cases <- as.list(substitute(cases))[-1]
  caller <- parent.frame()
  errors <- lapply(cases, function(case) {
    scope <- new.env(parent = caller)
    scope$x <- x
    eval(case, scope)
    error <- broken(scope$x)
    # The message is the place and the rule, so the table shows all of it.
    place <- paste0(
      "Table `", error$table, "`", if (!is.null(error$column)) paste0(", column `", error$column, "`"),
      if (!is.null(error$row)) paste0(", row ", error$row)
    )
    # "Table `samples` is missing."
    between <- if (grepl("^(is|has) ", error$rule)) " " else ": "
    expect_identical(conditionMessage(error), paste0(place, between, error$rule, "."))
    error
  })
  field <- function(name) vapply(errors, function(error) as.character(error[[name]] %||% ""), "")
  text_table(
    table = field("table"), column = field("column"), row = field("row"), rule = field("rule"),
    "broken by" = vapply(cases, one_line, "")
  )
}

test_that("results of readers are valid, and are returned invisibly", {
  for (version in c("1.0", "2.0")) {
    x <- small_profile(version = version)
    expect_identical(expect_invisible(validate_profile(x)), x)
  }
})

a_label <- function(...) {
  label <- list(sample_id = 1L, key = "k", str = NA_character_, num = 1, unit = NA_character_)
  tibble::as_tibble(utils::modifyList(label, list(...)))
}

test_that("each rule of version 2.0 is named with its place", {
  x <- small_profile()
  rules <- broken_rules(x, {
    x$samples <- NULL
    x$samples <- 1
    x$notes <- x$meta
    x$samples$source_id <- NULL
    x$samples$source_id <- as.numeric(x$samples$source_id)
    x$functions$name <- factor(x$functions$name)
    x$functions$package <- "base"
    x$meta$value <- "3.0"
    x$meta$key <- "v"
    x$meta <- x$meta[c(1, 1), ]
    x$sources$source_type <- ""
    x$sources$source_id <- NA_integer_
    x$samples$source_id[2] <- 9L
    x$samples$sample_id[3] <- 1L
    x$sample_values$sample_id[2] <- 7L
    x$sample_values <- x$sample_values[c(1, 1, 2, 3), ]
    x$sample_values$value[2] <- NA
    x$sample_values$value[2] <- Inf
    x$sample_values$type[2] <- ""
    x$sample_values$unit[2] <- NA
    x$sample_locations$sample_id[6] <- 7L
    x$sample_locations$depth[2] <- 0L
    x$sample_locations$depth[2] <- 1L
    x$sample_locations$location_id[2] <- 99L
    x$sample_locations$location_id[2] <- NA
    x$locations$location_id[2] <- 1L
    x$locations$function_id[2] <- 99L
    x$locations$line[2] <- -1L
    x$functions$function_id[2] <- 1L
    x$functions$name[2] <- ""
    x$functions$system_name[2] <- NA
    x$functions$start_line[2] <- -1L
    x$.files$source_id <- 7L
    x$.files$number <- -1L
    x$.files$filename <- NA_character_
    x$.files$number <- NULL
    x$.labels <- a_label(sample_id = 7L)
    x$.labels <- a_label(key = NA_character_)
    x$.labels <- a_label(num = 1.5)
    x$.labels <- a_label(str = factor("a"))
    x$.labels <- a_label(num_exact = "many")
    x$.comments <- tibble::tibble(source_id = 7L, comment = "a")
    x$.comments <- tibble::tibble(source_id = 1, comment = "a")
    x$sources$.period <- "often"
    x$samples$.toplevel_filename <- "a.R"
    x$.mine <- 1
  })
  expect_snapshot(writeLines(rules))
})

test_that("each rule of tables for native code and pprof is named with its place", {
  x <- read_pprof(data_path("pprof", "go_cpu.pb.gz"))
  rules <- broken_rules(x, {
    x$.mappings <- NULL
    x$.mappings$mapping_id <- 1L
    x$.mappings$memory_start[2] <- "4096"
    x$.mappings$filename[2] <- NA
    x$.mappings$build_id <- NULL
    x$.mappings$native_id <- c("1", "0", "3")
    x$locations$.mapping_id[2] <- 9L
    x$locations$.address[2] <- "0x10000000000000000"
    x$locations$.inlined[2] <- 2
    x$locations$.frame_type <- 1L
    x$locations$.frame_type <- rep_len(c("go", "", NA), nrow(x$locations))
    x$locations$.column <- -1L
    x$locations$.line_exact <- "1e9"
    x$locations$.native_id <- "a"
    x$functions$.has_system_name <- "yes"
    x$functions$.start_line_exact <- ""
    x$sources$.time_nanos <- "now"
    x$sources$.drop_frames <- 1
    x$sample_values$.value_exact <- "9223372036854775808"
    x$.sample_types$source_id <- 7L
    x$.sample_types$type[1] <- ""
    x$.sample_types$recorded[1] <- NA
  })
  expect_snapshot(writeLines(rules))
})

test_that("each rule of tables for OpenTelemetry is named with its place", {
  x <- read_otlp(otlp_path("fleet.pb"))
  # A file may have entities without a type, and what is read is valid.
  untyped <- x
  untyped$.resource_entities$type <- NA_character_
  expect_no_error(validate_profile(untyped))
  rules <- broken_rules(x, {
    x$.resources <- NULL
    x$.resources$resource_id[2] <- 1L
    x$.resources$resource_id[2] <- NA
    x$.resources$dropped_attributes_count[1] <- -1
    x$.resources$dropped_attributes_count[1] <- 0.5
    x$.resources$dropped_attributes_count[1] <- 2^32
    x$.resources$schema_url <- NULL
    x$.resources$schema_url <- 1
    x$.scopes <- NULL
    x$.scopes$scope_id[2] <- 1L
    x$.scopes$resource_id[2] <- 9L
    x$.scopes$resource_id[2] <- NA
    x$.scopes$dropped_attributes_count[2] <- Inf
    x$.scopes$version <- NULL
    x$.resource_entities$resource_id <- 9L
    x$.resource_entities$resource_id <- NA_integer_
    x$.resource_entities$id_keys <- "service.name"
    x$.resource_entities$description_keys <- "[1]"
    x$.resource_attributes$resource_id[2] <- 9L
    x$.resource_attributes$key[2] <- NA
    x$.resource_attributes$type[2] <- "integer"
    x$.resource_attributes$value[2] <- "8.5"
    x$.resource_attributes$value[2] <- NA
    x$.resource_attributes$value[3] <- "much"
    x$.resource_attributes$value[4] <- "TRUE"
    x$.resource_attributes$value[5] <- "AP8"
    x$.resource_attributes$value[6] <- "[1]"
    x$.resource_attributes$value[7] <- "{\"cpu\": 2.5}"
    x$.resource_attributes$value[8] <- "something"
    x$.scope_attributes$scope_id <- 9L
    x$.scope_attributes$scope_id <- 1
    x$.scope_attributes$value <- NULL
    x$.source_attributes$source_id <- 9L
    x$.source_attributes$value <- "seven"
    x$.source_attributes$unit <- NULL
    x$.mapping_attributes$mapping_id[3] <- 9L
    x$.mapping_attributes$key[1] <- NA
    x$.mapping_attributes$type[3] <- "bool"
    x$.location_attributes$location_id[1] <- 9L
    x$.location_attributes$type[1] <- "text"
    x$.location_attributes$unit <- 1
    { x$.labels$type[1] <- "int"; x$.labels$value[1] <- "1" }
    { x$.labels$type[4] <- "bool"; x$.labels$value[4] <- "true" }
    x$.labels$type[5] <- "logical"
    x$.labels$value[5] <- "no"
    x$.labels$value <- 1
    x$samples$.timestamp[1] <- Inf
    x$samples$.timestamp[4] <- 1e10
    x$samples$.timestamp <- as.POSIXct(x$samples$.timestamp, "UTC", "1970-01-01") |> format()
    x$samples$.time_nanos[4] <- "late"
    x$samples$.trace_id[4] <- "abc"
    x$samples$.trace_id[5] <- "xy"
    x$samples$.span_id[1] <- "0x12"
    x$samples$.span_id <- 1
    x$sources$.scope_id[2] <- 9L
    x$sources$.scope_id <- as.numeric(x$sources$.scope_id)
    x$sources$.profile_id[1] <- "0g"
    x$sources$.profile_id[1] <- "123"
    x$sources$.dropped_attributes_count[3] <- 1.5
    x$sources$.dropped_attributes_count[3] <- -1
    x$sources$.original_payload[2] <- "AAH"
    x$sources$.original_payload[2] <- NA
    x$sources$.original_payload_format[2] <- NA
    x$sources$.original_payload <- NULL
    x$sources$.original_payload_format <- NULL
    x$locations$.is_folded <- -1L
  })
  expect_snapshot(writeLines(rules))
})

test_that("a value without a type is an error", {
  x <- read_otlp(otlp_path("fleet.pb"))
  untyped <- function(table, row) {
    function(x) {
      x[[table]]$type[row] <- NA
      x
    }
  }
  for (change in list(
    attributes = untyped(".resource_attributes", 2),
    attributes = untyped(".mapping_attributes", 1),
    labels = untyped(".labels", 5),
    # A column of types requires a column of values, and vice versa.
    labels = function(x) { x$.labels$value <- NULL; x },
    labels = function(x) { x$.labels$type <- NULL; x }
  )) {
    expect_error(validate_profile(change(x)), class = "profile_error_invalid")
  }
})

test_that("tables of OpenTelemetry are optional and may be incomplete", {
  x <- read_otlp(otlp_path("fleet.pb"))
  for (table in c(".resource_entities", grep("_attributes$", names(x), value = TRUE))) {
    y <- x
    y[[table]] <- NULL
    expect_error(validate_profile(y), NA)
  }
  x$sources$.scope_id[2] <- NA
  x$.resources$dropped_attributes_count <- NA_real_
  x$.scopes$dropped_attributes_count <- 2^32 - 1
  x$.resource_entities$id_keys <- NA_character_
  x$.resource_entities$schema_url <- NA_character_
  x$samples$.trace_id[4] <- "ABCDEF"
  x$samples$.timestamp[1] <- -1
  x$sources$.original_payload[2] <- ""
  x$.resource_attributes$value[3] <- "-Infinity"
  x$.resource_attributes$value[8] <- NA
  expect_error(validate_profile(x), NA)
})

test_that("a type in two units is one key", {
  x <- small_profile()
  extra <- x$sample_values
  extra$unit <- "other"
  both <- function(x) {
    x$sample_values <- rbind(x$sample_values, extra[2, ])
    x
  }
  expect_match(conditionMessage(broken(both(x))), "row 4: duplicate type `samples` in sample 2")
  x$sample_values$unit[2] <- "other"
  validate_profile(x)
})

test_that("unusual but valid tables are accepted", {
  x <- small_profile()
  x$locations$function_id[1] <- NA
  x$locations$line[1] <- NA
  x$functions$.package <- "base"
  x$.mine <- tibble::tibble(a = 1)
  validate_profile(x)
  # rows in any order, ids of any size, depths with gaps
  x <- small_profile()
  before <- stacks(x)
  shuffle <- c(6, 1, 4, 2, 3, 5)
  x$sample_locations <- x$sample_locations[shuffle, ]
  x$sample_locations$depth <- x$sample_locations$depth * 10L
  x$locations$location_id <- x$locations$location_id * 1000L
  x$sample_locations$location_id <- x$sample_locations$location_id * 1000L
  validate_profile(x)
  expect_equal(stacks(x), before)
})

test_that("each rule of version 1.0 is named with its place", {
  x <- small_profile(version = "1.0")
  rules <- broken_rules(x, {
    x$samples <- NULL
    x <- structure(x[c(2, 1, 3:5)], names = names(x)[c(2, 1, 3:5)], class = class(x))
    x$notes <- x$meta
    x$meta <- rbind(x$meta, x$meta)
    x$sample_types$unit <- "seconds"
    x$samples$value[2] <- 0L
    x$samples$value[2] <- NA
    x$samples$locations[[2]] <- 1:3
    x$samples$locations[[2]]$location_id[1] <- 99L
    x$locations$function_id[2] <- 99L
    x$locations$line[2] <- -1L
    x$locations$location_id[2] <- 1L
    x$functions$name[1] <- ""
    x$functions$filename <- NULL
  })
  expect_snapshot(writeLines(rules))
  expect_error(validate_profile(1), class = "profile_error_invalid")
  expect_error(validate_profile(data.frame()), class = "profile_error_invalid")
})

test_that("an error has the place in fields and the user's call", {
  x <- small_profile()
  x$locations$line[2] <- -1L
  error <- tryCatch(validate_profile(x), error = identity)
  expect_equal(
    error[c("table", "column", "row", "rule")],
    list(table = "locations", column = "line", row = 2, rule = "must not be negative")
  )
  expect_equal(as.character(conditionCall(error)[[1]]), "validate_profile")
})
