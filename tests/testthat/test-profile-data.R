# tier: gate
# The class: printing, `summary()`, `as_tibble()`, and methods of base generics.

test_that("a profile prints what it is", {
  expect_snapshot({
    print(small_profile())
    print(small_profile(version = "1.0"))
    x <- read_rprof(rprof_path("append_line2.out"), source_uri = "append_line2.out")
    x
    format(x, n = 1)
    x <- suppressWarnings(read_rprof(rprof_path("killed_plain.out"), source_uri = "killed_plain.out"))
    x
  })
})

test_that("a profile that is not valid can still be printed", {
  x <- small_profile()
  x$functions <- x$functions[-1, ]
  expect_snapshot(x)
  x$meta <- 1
  expect_output(print(x), "Not valid")
  x$meta <- NULL
  expect_output(print(x), "Not valid")
  x[1:6] <- NULL
  expect_output(print(x), "Not valid")
})

test_that("version 2.0 has the documented tables", {
  x <- small_profile()
  expect_s3_class(x, c("profile_v2", "profile_data"), exact = TRUE)
  types <- lapply(x, function(table) vapply(table, typeof, ""))
  for (table in x) expect_s3_class(table, "tbl_df")
  expect_equal(types[1:7], list(
    meta = c(key = "character", value = "character"),
    sources = c(
      source_id = "integer", source_type = "character", source_uri = "character",
      source_timestamp = "double", .period = "double", .period_type = "character",
      .period_unit = "character", .memory_profiling = "logical", .gc_profiling = "logical",
      .line_profiling = "logical"
    ),
    samples = c(sample_id = "integer", source_id = "integer"),
    sample_values = c(sample_id = "integer", type = "character", unit = "character", value = "double"),
    sample_locations = c(sample_id = "integer", depth = "integer", location_id = "integer"),
    locations = c(location_id = "integer", function_id = "integer", line = "integer"),
    functions = c(
      function_id = "integer", name = "character", system_name = "character",
      filename = "character", start_line = "integer"
    )
  ))
})

test_that("version 1.0 has the documented tables", {
  x <- small_profile(version = "1.0")
  expect_equal(class(x), "profile_data")
  expect_equal(names(x), c("meta", "sample_types", "samples", "locations", "functions", ".rprof"))
  expect_equal(x$meta, tibble::tibble(key = "version", value = "1.0"))
  expect_equal(x$sample_types, tibble::tibble(type = "samples", unit = "count"))
  expect_equal(x$samples$value, c(1L, 1L, 1L))
  expect_equal(x$samples$locations[[1]], tibble::tibble(location_id = 1:2))
  expect_equal(x$functions, tibble::tibble(
    function_id = 1:3, name = c("f", "g", "h"), system_name = c("f", "g", "h"),
    filename = c("a.R", "a.R", ""), start_line = c(0L, 0L, 0L)
  ))
  expect_equal(x$locations, tibble::tibble(
    location_id = 1:4, function_id = c(1L, 2L, 3L, 2L), line = c(3L, 7L, 0L, 8L)
  ))
  expect_equal(x$.rprof, list(header = "line profiling: sample.interval=10000", files = "#File 1: a.R"))
})

test_that("summary() agrees with summaryRprof() where it is right", {
  for (file in c("basic_plain.out", "basic_line.out", "basic_memgc.out", "dplyr_all.out", "multi_line.out")) {
    x <- read_rprof(rprof_path(file))
    theirs <- utils::summaryRprof(rprof_path(file))
    ours <- summary(x)$by_function
    row <- match(gsub("\"", "", rownames(theirs$by.total)), ours$name)
    expect_false(anyNA(row), info = file)
    expect_equal(ours$total_time[row], theirs$by.total$total.time, info = file)
    expect_equal(ours$self_time[row], theirs$by.total$self.time, info = file)
    expect_equal(round(100 * ours$total_share[row], 2), theirs$by.total$total.pct, info = file)
    expect_equal(attr(summary(x), "time"), theirs$sampling.time, info = file)
  }
})

test_that("summaryRprof() takes the header of a second run for a sample, summary() does not", {
  path <- rprof_path("append_plain3.out")
  expect_true("sample.interval=20000" %in% rownames(utils::summaryRprof(path)$by.total))
  expect_false("sample.interval=20000" %in% summary(read_rprof(path))$by_function$name)
})

test_that("summary() by line agrees with summaryRprof()", {
  for (file in c("basic_line.out", "multi_line.out", "files120_line_numfiles200.out")) {
    x <- read_rprof(rprof_path(file))
    theirs <- utils::summaryRprof(rprof_path(file), lines = "show")$by.line
    theirs <- theirs[rownames(theirs) != "<no location>", ]
    ours <- summary(x)$by_line
    row <- match(rownames(theirs), paste0(basename(ours$filename), "#", ours$line))
    expect_false(anyNA(row), info = file)
    expect_equal(round(ours$self_time[row], 3), theirs$self.time, info = file)
    expect_equal(round(ours$total_time[row], 3), theirs$total.time, info = file)
  }
})

test_that("summary() of memory agrees with summaryRprof()", {
  for (file in c("basic_all.out", "basic_mem.out", "dplyr_memgc.out")) {
    x <- read_rprof(rprof_path(file))
    theirs <- utils::summaryRprof(rprof_path(file), memory = "both")$by.total
    ours <- summary(x)$by_function
    name <- gsub("\"", "", rownames(theirs))
    row <- match(name, ours$name)
    # A garbage collection allocates nothing itself.
    expected <- ifelse(name == "<GC>", 0, as.numeric(theirs$mem.total))
    expect_equal(round(ours$total_alloc[row] / 2^20, 1), expected, info = file)
    # What its samples report belongs to its caller.
    frames <- as_tibble(x)
    frames <- frames[frames$name != "<GC>", ]
    caller <- frames$name[match(x$samples$sample_id, frames$sample_id)]
    bytes <- x$sample_values$value[x$sample_values$type == "alloc_size"]
    self <- tapply(bytes, factor(caller, ours$name), sum, default = 0)
    expect_equal(ours$self_alloc, as.vector(self), info = file)
    expect_true(attr(summary(x), "at_least"))
  }
})

test_that("summary() sums the requested type", {
  x <- read_rprof(rprof_path("basic_all.out"))
  by_alloc <- summary(x, type = "alloc_size")$by_function
  expect_equal(by_alloc$self, by_alloc$self_alloc)
  expect_error(summary(x, type = "space"), class = "profile_error_unsupported")
})

test_that("levels cannot be summed", {
  x <- read_rprof(rprof_path("basic_all.out"))
  expect_snapshot(error = TRUE, {
    summary(x, type = "vsize_small")
    summary(x, type = "space")
  })
  for (type in c("vsize_small", "vsize_large", "nodes")) {
    expect_error(summary(x, type = type), class = "profile_error_unsupported", info = type)
  }
  # Duplications are counted since the previous sample.
  expect_gt(attr(summary(x, type = "duplications"), "sum"), 0)
  # Levels are not the default type either, even if there is no other type.
  x$sample_values <- x$sample_values[x$sample_values$type %in% c("vsize_large", "nodes"), ]
  expect_equal(attr(summary(x), "counted")$without_value, nrow(x$samples))
  expect_snapshot(error = TRUE, summary(x, type = "nodes"))
})

# The values of a type in the tables, computed without the core.
counted_by_hand <- function(x, type) {
  values <- x$sample_values[x$sample_values$type == type, ]
  has_stack <- values$sample_id %in% x$sample_locations$sample_id
  list(
    samples = sum(has_stack), sum = sum(values$value[has_stack]),
    without_stack = sum(!has_stack), sum_without_stack = sum(values$value[!has_stack]),
    without_value = nrow(x$samples) - nrow(values) - beside_samples(x, type)
  )
}

# The number of rows of allocations, which are no samples of another type.
beside_samples <- function(x, type) {
  sum(is_allocation_row(x) & !x$samples$sample_id %in% x$sample_values$sample_id[x$sample_values$type == type])
}

test_that("print() and summary() count the same samples, and all samples are accounted for", {
  files <- c(rprof_path(rprof_files()), dir(data_path("pprof"), full.names = TRUE))
  of_old_versions <- data_path("otlp", c("classes-1.6.pb", "python-1.36.0.json", "python-1.36.0.pb", "rust-0.31.0.pb"))
  files <- c(files, setdiff(dir(data_path("otlp"), "[.](pb|json|gz)$", full.names = TRUE), of_old_versions))
  profiles <- lapply(files, function(file) quietly(read_profile(file, source_uri = file)))
  # Samples without a stack, with values of other types, or without any.
  profiles$combined <- combine_profiles(profiles[c(1, 2, length(rprof_files()) + 1:5)])
  profiles$bare <- profiles[[4]]
  profiles$bare$sample_locations <- profiles$bare$sample_locations[-(1:500), ]
  profiles$no_values <- profiles[[4]]
  profiles$no_values$sample_values <- profiles$no_values$sample_values[0, ]
  left_out <- 0
  number <- function(line, pattern) {
    as.numeric(gsub(",", "", sub(paste0(".*?([0-9,.]+)", pattern, ".*"), "\\1", line, perl = TRUE)))
  }
  for (i in seq_along(profiles)) {
    x <- profiles[[i]]
    info <- c(files, names(profiles)[-seq_along(files)])[[i]]
    summary <- summary(x)
    counted <- attr(summary, "counted")
    by_hand <- counted_by_hand(x, attr(summary, "type"))
    expect_equal(counted, by_hand, info = info)
    expect_equal(sum(summary$by_function$self), counted$sum, info = info)
    all <- nrow(x$samples) - beside_samples(x, attr(summary, "type"))
    expect_equal(counted$samples + counted$without_stack + counted$without_value, all, info = info)

    lines <- format(x, width = Inf)
    samples <- grep("^Samples: ", lines, value = TRUE)
    of_samples <- attr(summary, "type") == "samples"
    expect_equal(number(samples, ""), if (of_samples) counted$sum else counted$samples, info = info)
    expect_equal(number(samples, " functions?"), nrow(summary$by_function), info = info)
    time <- attr(summary, "time")
    if (!is.null(time)) {
      # Not beside values that are times.
      shown <- if (attr(summary, "unit") == "count") signif(time, 3) else NA_real_
      expect_equal(number(samples, " s,"), shown, info = info)
      expect_equal(sum(summary$by_function$self_time), time, info = info)
    }
    missing <- grep("^Left out: ", lines, value = TRUE)
    expect_equal(length(missing), as.numeric(counted$samples < all), info = info)
    if (length(missing) > 0) {
      left_out <- left_out + 1
      numbers <- as.numeric(gsub(",", "", regmatches(missing, gregexpr("[0-9,]+(?= samples? without)", missing, perl = TRUE))[[1]]))
      expect_equal(sum(numbers), all - counted$samples, info = info)
    }
    expect_true(all(missing %in% format(summary, width = Inf)), info = info)
  }
  expect_gte(left_out, 4)
})

test_that("values are shown in units that can be read, and tables keep them as they are", {
  x <- read_rprof(rprof_path("basic_all.out"), source_uri = "basic_all.out")
  heap <- read_pprof(data_path("pprof", "go_heap.pb.gz"), source_uri = "go_heap.pb.gz")
  expect_snapshot(print(heap))
  # Tibbles look different from version to version.
  shown <- function(x, ...) paste(format(summary(x, ...), width = 200), collapse = "\n")
  expect_match(shown(x), "lm[.]fit +45 +50 ")
  expect_match(shown(x), " 491[.]05MB.* 503[.]72MB")
  expect_match(shown(x), "`self_alloc` and `total_alloc` are at least what is shown.", fixed = TRUE)
  expect_no_match(shown(heap), "at least")
  expect_match(shown(x, type = "alloc_size"), "<profile summary> at least 1.74GB alloc_size")
  expect_match(shown(x, type = "alloc_size"), "lm[.]fit +491[.]05MB +503[.]72MB ")
  expect_match(shown(heap), "main[.]words +1[.]59MB +2[.]55MB")
  expect_match(shown(heap), "main[.]go:19 +9[.]15MB")
  expect_type(summary(heap)$by_function$self, "double")
  expect_type(summary(x)$by_function$self_alloc, "double")
})

test_that("samples that are not counted are shown", {
  x <- small_profile()
  x$sample_locations <- x$sample_locations[x$sample_locations$sample_id != 2, ]
  x$sample_values <- x$sample_values[x$sample_values$sample_id != 3, ]
  y <- x
  y$sample_values$value[[2]] <- 1000
  expect_snapshot({
    x
    y
  })
  x$sample_values <- x$sample_values[0, ]
  x$sample_locations <- x$sample_locations[0, ]
  expect_snapshot(x)
  expect_equal(dim(summary(x)$by_function), c(0, 5))
  expect_equal(attr(summary(x), "sum"), 0)
})

test_that("missing lines and samples are explained", {
  path <- write_file("line profiling: sample.interval=20000", "\"f\" \"g\" ")
  expect_snapshot({
    read_rprof(path, source_uri = "none.out")
    read_rprof(path, source_uri = "none.out", version = "1.0")
    read_rprof(rprof_path("empty_line.out"), source_uri = "empty_line.out")
  })
  expect_false(any(grepl("Hint", format(small_profile()))))
  expect_false(any(grepl("Hint", format(read_rprof(rprof_path("basic_plain.out"))))))
  expect_false(any(grepl("Hint", format(read_pprof(data_path("pprof", "go_mutex.pb.gz"))))))
})

test_that("lines fit the width", {
  long <- paste0(strrep("name_", 30), "end")
  path <- write_file("line profiling: sample.interval=20000", "#File 1: a.R", paste0("1#1 \"", long, "\" \"\u4e2d\u6587", strrep("\u4e2d", 60), "\" "))
  x <- read_rprof(path, source_uri = paste0("/", strrep("folder/", 20), "Rprof.out"))
  for (width in c(30, 60, 80, 133)) {
    expect_true(all(nchar(format(x, width = width), "width") <= width), info = paste(width))
    expect_true(all(nchar(format(summary(x), width = width), "width") <= width), info = paste(width))
    withr::with_options(list(width = width), {
      expect_identical(format(x), format(x, width = width))
      expect_identical(format(summary(x)), format(summary(x), width = width))
    })
  }
  expect_true(any(grepl(long, format(x, width = Inf), fixed = TRUE)))
  # The start of a name and the end of a path.
  ellipsis <- if (l10n_info()[["UTF-8"]]) "\u2026" else "~"
  lines <- format(x, width = 50)
  expect_true(paste0("  100.0   100.0  ", substr(long, 1, 32), ellipsis) %in% lines)
  expect_true(paste0("Sources:   rprof ", ellipsis, "r/folder/folder/folder/Rprof.out") %in% lines)
  for (width in list(0, NA, "a", c(50, 60))) {
    expect_error(format(x, width = width), class = "profile_error_argument")
    expect_error(format(summary(x), width = width), class = "profile_error_argument")
  }
})

test_that("no name gets control characters through to the terminal", {
  bad <- c("\033[31mred", "bell\a", "back\rover", "two\nlines", "del\177", "c1\u009b31m", "\u202eevil\u202c", "\u2066x\u2069")
  x <- small_profile()
  obeyed <- function(text) {
    any(grepl("[\u0001-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]", text, perl = TRUE))
  }
  expect_safe <- function(expr, info) {
    said <- tryCatch(utils::capture.output(print(expr)), profile_error = conditionMessage)
    expect_false(obeyed(enc2utf8(said)), info = info)
    expect_false(any(grepl("^lines", said)), info = info)
  }
  for (name in bad) {
    info <- encodeString(name)
    y <- x
    y$functions$name[] <- y$functions$system_name[] <- name
    y$functions$filename[] <- paste0("dir/", name)
    y$functions <- unique(y$functions[-1])
    y$functions <- tibble::add_column(y$functions, function_id = seq_len(nrow(y$functions)), .before = 1)
    y$locations$function_id[] <- 1L
    y$sources$source_uri <- y$sources$source_type <- name
    y$sample_values$type[] <- name
    y$sample_values$unit[] <- name
    expect_safe(y, info)
    expect_safe(summary(y), info)
    expect_safe(summary(y, type = paste0(name, "none")), info)
    y$functions$start_line <- name
    expect_safe(y, info)
    y[[name]] <- y$functions
    y$samples <- NULL
    expect_safe(y, info)
    y$meta$value <- name
    expect_safe(y, info)
    for (f in list(read_rprof, read_pprof, read_otlp, read_profile)) {
      expect_safe(f(name), info)
    }
    expect_safe(write_rprof(x, file.path(name, "a")), info)
    expect_safe(read_pprof(write_file(name)), info)
  }
  # Names are unchanged except for printing.
  expect_identical(printable(c("a\tb", NA, "\u00e9 \u200b", "back\\slash")), c("a\\tb", NA, "\u00e9 \u200b", "back\\slash"))
})

test_that("names are shown without harm in a locale that has no such characters", {
  skip_on_os("windows")
  path <- write_file("sample.interval=20000", "\"\u00e9\u001b[31m\u202e\" \"g\" ")
  code <- sprintf("x <- profile::read_rprof('%s', source_uri = 'a'); x; summary(x); print(x, width = 20)", path)
  run <- run_r(code, env = "env LC_ALL=C")
  expect_ran(run)
  expect_true(any(grepl("\\\\033[31m", run$output, fixed = TRUE)) || any(grepl("\\033[31m", run$output, fixed = TRUE)))
  expect_false(any(grepl("\033", run$output, fixed = TRUE)))
  expect_false(any(grepl("\u202e", enc2utf8(run$output), fixed = TRUE)))
})

test_that("as_tibble() has a row for each frame", {
  expect_equal(as_tibble(small_profile()), tibble::tibble(
    sample_id = c(1L, 1L, 2L, 2L, 3L, 3L),
    source_id = 1L,
    depth = c(1L, 2L, 1L, 2L, 1L, 2L),
    name = c("f", "g", "h", "g", "f", "g"),
    filename = c("a.R", "a.R", "", "a.R", "a.R", "a.R"),
    line = c(3L, 7L, 0L, 8L, 3L, 7L)
  ))
})

test_that("the calls of packages built on profile 1.x run unchanged", {
  # jointprof adds columns with a leading dot, shifts ids and validates
  x <- read_rprof(rprof_path("basic_line.out"), version = "1.0")
  y <- read_rprof(rprof_path("multi_line.out"), version = "1.0")
  shift <- max(x$locations$location_id)
  y$samples$locations <- lapply(y$samples$locations, function(l) {
    l$location_id <- l$location_id + shift
    l
  })
  y$locations$location_id <- y$locations$location_id + shift
  shift <- max(x$functions$function_id)
  y$locations$function_id <- y$locations$function_id + shift
  y$functions$function_id <- y$functions$function_id + shift
  validate_profile(y)
  n <- nrow(y$samples)
  x$samples <- x$samples[seq_len(n), ]
  x$samples$.pprof_locations <- y$samples$locations
  x$locations <- tibble::as_tibble(rbind(x$locations, y$locations))
  x$functions <- tibble::as_tibble(rbind(x$functions, y$functions))
  x$samples$.rprof_locations <- x$samples$locations
  x$samples$locations <- Map(
    function(a, b) tibble::tibble(location_id = c(a$location_id, b$location_id)),
    x$samples$locations, x$samples$.pprof_locations
  )
  names(x$samples$locations) <- NULL
  validate_profile(x)
  path <- withr::local_tempfile()
  write_rprof(x, path)
  expect_equal(nrow(read_rprof(path)$samples), n)
  write_pprof(x, path)
  # proffer converts in both directions with the default version
  samples <- read_rprof(path = rprof_path("basic_line.out"))
  write_pprof(x = samples, path = path)
  write_rprof(x = read_pprof(path = path), path = path)
  expect_equal(nrow(read_rprof(path)$samples), nrow(samples$samples))
})
