# tier: gate
# Filters, checked by pprof's own library.

# By the expressions in the profile.
drop_by_sources <- function(x) filter_profile(x, drop = TRUE)

# A function that takes tasks (see go/filter.go) and returns the profile that Go leaves for each.
go_filter <- function() {
  judge <- go_judge()
  function(tasks) {
    lines <- judge("filter", write_file(enc2utf8(tasks)))
    expect_null(attr(lines, "status"))
    is_task <- lines == "task"
    unname(split(lines[!is_task], factor(cumsum(is_task)[!is_task], seq_along(tasks))))
  }
}

# Runs a filter in R and in Go, on many profiles; `options` contains the options for each.
expect_as_go <- function(profiles, options, filter) {
  go <- go_filter()
  files <- withr::local_tempfile(lines = character())
  write <- function(x, i, what) {
    path <- paste0(files, "-", i, what)
    withr::defer(unlink(path), envir = parent.frame(3))
    # Some irregular profiles have lines without a function, which are reported.
    suppressWarnings(write_pprof(x, path, aggregate = FALSE), classes = "profile_warning_lossy")
    path
  }
  before <- mapply(write, profiles, seq_along(profiles), "before")
  left <- Map(function(x, options) do.call(filter, c(list(x), options)), profiles, options)
  after <- mapply(write, left, seq_along(left), "after")
  said <- vapply(options, function(options) {
    paste0("\t", names(options), "=", unlist(options), collapse = "", recycle0 = TRUE)
  }, "")
  if (identical(filter, drop_by_sources)) {
    said <- rep("\tdrop=true", length(before))
  }
  expected <- go(paste0(before, said))
  seen <- go(after)
  for (i in seq_along(profiles)) {
    expect_equal(seen[[i]], expected[[i]], info = paste(i, said[[i]]))
    validate_profile(left[[i]])
  }
  # Otherwise the test would not be meaningful.
  invisible(mean(mapply(identical, expected, go(before))))
}

one_of <- function(x, n = 1) {
  x[sample.int(length(x), n, replace = TRUE)]
}

odd_names <- c(
  "a", "b", ".c", "main", "fun(int)", "ns::(anonymous namespace)::fun(a)", "operator()(b)",
  "\u00e9t\u00e9", "two\nlines", "(", "libfun"
)
odd_expressions <- c(
  "a", "^b$", "fun", "[.]go", "lib", "(?i)MAIN", "\u00e9", "^$", "prog", "operator\\(\\)", "x",
  "^(main|a)$", "two.lines", "two\\slines", "^\\PL", "n{1,2}"
)

# A profile with inlined lines, recursion, addresses without a symbol, stacks that are empty or begin within a location,
# and locations that differ only in their lines.
odd_profile <- function() {
  x <- read_pprof(data_path("pprof", "go_mutex.pb.gz"))
  x[c(".labels", ".comments", ".sample_types")] <- NULL
  names <- c(one_of(odd_names, 7), "<unknown>")
  x$functions <- tibble::tibble(
    function_id = sample.int(20, 8), name = names, system_name = names,
    filename = one_of(c("", "a.go", "lib.c", "\u00e9.go"), 8), start_line = 0L,
    .has_name = names != "<unknown>"
  )
  mapping <- x$.mappings[1, ]
  x$.mappings <- mapping[c(1, 1, 1), ]
  x$.mappings$mapping_id <- 1:3
  x$.mappings$filename <- c("prog", "lib.so", "")
  x$.mappings$memory_start <- c("0x1000", "0x2000", "0x3000")
  x$.mappings$memory_limit <- c("0x2000", "0x3000", "0x4000")
  x$.mappings$native_id <- NULL
  sizes <- sample.int(4, 10, replace = TRUE, prob = 4:1)
  place <- rep(seq_along(sizes), sizes)
  rows <- length(place)
  address <- if (one_of(c(TRUE, FALSE))) sprintf("0x%d00", seq_along(sizes)) else one_of(c("0x100", NA), 10)
  x$locations <- tibble::tibble(
    location_id = sample.int(100, rows),
    function_id = one_of(c(x$functions$function_id, NA), rows),
    line = sample.int(50, rows, replace = TRUE),
    .inlined = duplicated(place, fromLast = TRUE),
    .mapping_id = one_of(c(1:3, NA), 10)[place],
    .address = address[place]
  )
  stacks <- lapply(seq_len(15), function(i) {
    places <- one_of(seq_along(sizes), one_of(0:6))
    stack <- unlist(lapply(places, function(i) which(place == i)))
    if (i %% 5 == 0) stack[-1] else stack
  })
  n <- length(stacks)
  x$samples <- tibble::tibble(sample_id = sample.int(1000, n), source_id = x$sources$source_id)
  x$sample_values <- tibble::tibble(
    sample_id = rep(x$samples$sample_id, each = 2),
    type = rep(c("samples", "cpu"), n), unit = rep(c("count", "nanoseconds"), n),
    value = as.numeric(seq_len(2 * n))
  )
  frames <- tibble::tibble(
    sample_id = rep(x$samples$sample_id, lengths(stacks)), depth = sequence(lengths(stacks)),
    location_id = x$locations$location_id[unlist(stacks)]
  )
  x$sample_locations <- frames[sample.int(nrow(frames)), ]
  x$.labels <- tibble::tibble(
    sample_id = x$samples$sample_id, key = "number", str = NA_character_,
    num = as.numeric(seq_len(n)), unit = NA_character_
  )
  x
}

test_that("filters leave what Go leaves of real profiles", {
  files <- dir(data_path("pprof"), full.names = TRUE)
  options <- list(
    list(focus = "runtime"), list(ignore = "runtime"), list(hide = "runtime"), list(show = "main|sort"),
    list(show_from = "main"), list(prune_from = "malloc"), list(focus = "gen$"), list(hide = "[.]s$"),
    list(focus = "main", ignore = "build", hide = "^runtime", show_from = "func1", prune_from = "new")
  )
  profiles <- rep(lapply(files, read_pprof), each = length(options))
  expect_as_go(profiles, rep(options, length(files)), filter_profile)
})

test_that("filters keep what Go keeps of irregular profiles", {
  withr::local_seed(1)
  profiles <- lapply(1:300, function(i) odd_profile())
  options <- lapply(profiles, function(x) {
    all <- c("focus", "ignore", "hide", "show", "show_from", "prune_from")
    all <- sample(all, one_of(c(1, 1, 2, 3)))
    as.list(rlang::set_names(one_of(odd_expressions, length(all)), all))
  })
  expect_lt(expect_as_go(profiles, options, filter_profile), 0.5)
})

test_that("frames are dropped as Go drops them", {
  withr::local_seed(2)
  real <- lapply(dir(data_path("pprof"), full.names = TRUE), function(file) {
    x <- read_pprof(file)
    x$sources$.drop_frames <- "runtime[.].*|sort.*|node.*|malloc"
    x$sources$.keep_frames <- "runtime[.]main|.*alloc.*"
    x
  })
  odd <- lapply(1:300, function(i) {
    x <- odd_profile()
    x$sources$.drop_frames <- one_of(c(
      "a|b", ".*fun", "main|c", "a)|(b", "[a-c]+", "ns::\\(anonymous namespace\\)::fun", "operator\\(\\)",
      ".*", "", "two.lines|c", "[^x]+", NA
    ))
    x$sources$.keep_frames <- one_of(c("a", "fun", NA, "", "l?.*"))
    x
  })
  profiles <- c(real, odd)
  expect_lt(expect_as_go(profiles, rep(list(list()), length(profiles)), drop_by_sources), 0.7)
})

# "f < g", "h < g", "f < g", and a stack that is deeper.
stacked <- function(...) {
  path <- withr::local_tempfile()
  write_file(
    "line profiling: sample.interval=10000", "#File 1: a.R",
    "1#3 \"f\" 1#7 \"g\" 1#17 ", "\"h\" 1#8 \"g\" 1#18 ", "#File 2: b.R",
    "\"f\" \"h\" \"f\" \"g\" 2#1 \"main\" 2#11 ", "\"<GC>\" \"f\" ",
    path = path
  )
  read_rprof(path, ..., source_uri = "stacked.out")
}

test_that("each filter works as documented", {
  x <- stacked()
  all <- c("f < g", "h < g", "f < h < f < g < main", "<GC> < f")
  left <- function(...) stacks(compact_profile(filter_profile(x, ...)))
  expect_equal(left(), all)
  expect_equal(left(focus = ""), all)
  expect_equal(left(focus = "h"), all[2:3])
  expect_equal(left(ignore = "h"), all[c(1, 4)])
  expect_equal(left(focus = "f", ignore = "main|GC"), all[1])
  expect_equal(left(hide = "^f$"), c("g", "h < g", "h < g < main", "<GC>"))
  expect_equal(left(show = "^f$"), c("f", "f < f", "f"))
  expect_equal(left(show_from = "f|h"), c("f", "h", "f < h < f", "<GC> < f"))
  expect_equal(left(prune_from = "h|g"), c("g", "h < g", "h < f < g < main", "<GC> < f"))
  expect_equal(left(hide = "g", show_from = "h", prune_from = "h"), c("h", "h"))
  expect_equal(left(focus = "nothing"), character())
})

test_that("files match as functions do, but not where stacks are pruned", {
  x <- stacked()
  x$functions$filename[x$functions$name == "h"] <- "of_h.R"
  expect_equal(nrow(filter_profile(x, focus = "of_h")$samples), 2)
  expect_identical(filter_profile(x, prune_from = "of_h"), x)
  expect_identical(filter_profile(x, drop = "of_h.R"), x)
})

test_that("frames are dropped by an expression for the whole name", {
  x <- stacked()
  left <- function(...) stacks(filter_profile(x, ...))
  expect_equal(left(drop = "f"), c("g", "h < g", "g < main", "<GC> < f"))
  expect_equal(left(drop = "f|h|g"), c("f < g", "h < g", "main", "<GC> < f"))
  expect_equal(left(drop = ".*", keep = "f|main"), c("f < g", "h < g", "main", "f"))
  expect_equal(left(drop = "mai"), stacks(x))
  x$functions$name[x$functions$name == "h"] <- ".h(int)"
  expect_equal(left(drop = "h"), c("f < g", "g", "f < g < main", "<GC> < f"))
})

test_that("each source may have its own frames to drop", {
  x <- stacked()
  two <- combine_profiles(x, x, x)
  expect_identical(filter_profile(two, drop = TRUE), two)
  two$sources$.drop_frames <- c("f", NA, "h|f")
  two$sources$.keep_frames <- c(NA, "f", "h")
  dropped <- c("g", "h < g", "g < main", "<GC> < f")
  expect_equal(stacks(filter_profile(two, drop = TRUE)), c(dropped, stacks(x), dropped))
  kept <- c("f < g", "g", "f < g < main", "<GC> < f")
  expect_equal(stacks(filter_profile(two, drop = TRUE, keep = "f")), c(stacks(x), stacks(x), kept))
  expect_equal(stacks(filter_profile(two, drop = "f")), rep(dropped, 3))
  expect_identical(filter_profile(two, drop = ""), two)
  two$sources$.drop_frames <- c("f", NA, "(")
  expect_error(filter_profile(two, drop = TRUE), "sources\\$.drop_frames", class = "profile_error_argument")
})

test_that("rows of removed samples are removed, all others are kept", {
  x <- stacked()
  x$.notes <- tibble::tibble(sample_id = c(2L, 3L, NA), note = c("a", "b", "c"))
  x$sample_locations$.mine <- seq_len(nrow(x$sample_locations))
  y <- filter_profile(x, focus = "main", hide = "^h$|main")
  validate_profile(y)
  expect_equal(y$samples$sample_id, 3L)
  expect_equal(y$sample_values$sample_id, 3L)
  expect_equal(y$.notes$note, c("b", "c"))
  expect_equal(y$sample_locations$depth, 1:3)
  expect_equal(y$sample_locations$.mine, c(5L, 7L, 8L))
  expect_equal(x$.files$sample_id, c(1L, 3L))
  expect_equal(y$.files$sample_id, c(3L, 3L))
  expect_identical(y[c("sources", "locations", "functions")], x[c("sources", "locations", "functions")])
  expect_output(print(y), "Samples: *1,")
})

test_that("the position of the outermost call is removed with its frame", {
  x <- stacked()
  expect_equal(x$samples$.toplevel_line, c(17L, 18L, 11L, NA))
  y <- filter_profile(x, hide = "main")
  expect_equal(y$samples$.toplevel_line, c(17L, 18L, NA, NA))
  expect_equal(y$samples$.toplevel_filename, c("a.R", "a.R", NA, NA))
  path <- withr::local_tempfile()
  write_rprof(y, path)
  expect_equal(stacks(read_rprof(path)), stacks(y))
})

test_that("a function is not inlined into the next frame when the one around it is hidden", {
  x <- small_profile()
  f <- x$locations$location_id[match("f", x$functions$name)]
  x$sample_locations <- x$sample_locations[c(1:4, 1:2), ]
  x$sample_locations$sample_id <- c(1L, 1L, 2L, 2L, 1L, 1L)
  x$sample_locations$depth <- c(1:2, 1:2, 3:4)
  x$locations$.inlined <- x$locations$location_id == f
  y <- filter_profile(x, hide = "g")
  validate_profile(y)
  expect_equal(stacks(y), c("f < f", "h"))
  added <- nrow(x$locations) + 1L
  expect_equal(y$sample_locations$location_id, c(added, 3L, f))
  expect_identical(y$locations[-added, ], x$locations)
  expect_equal(y$locations$function_id[added], x$locations$function_id[x$locations$location_id == f])
  expect_false(y$locations$.inlined[added])
  # If there is no ambiguity, nothing is added.
  expect_identical(filter_profile(x, hide = "f")$locations, x$locations)
  expect_identical(filter_profile(x, prune_from = "g")$locations, x$locations)
})

test_that("names are in any encoding, and characters are more than bytes", {
  x <- stacked()
  x$functions$name[x$functions$name == "h"] <- iconv("\u00e9t\u00e9", "UTF-8", "latin1")
  expect_equal(nrow(filter_profile(x, focus = "^\u00e9.\u00e9$")$samples), 2)
  expect_equal(nrow(filter_profile(x, focus = iconv("\u00e9t", "UTF-8", "latin1"))$samples), 2)
  expect_equal(nrow(filter_profile(x, focus = "^[\\x{e9}]t")$samples), 2)
  expect_equal(nrow(filter_profile(stacked(), focus = "[\\x{2603}h]")$samples), 2)
  expect_equal(nrow(filter_profile(x, focus = "(?i)\u00c9T")$samples), 2)
})

test_that("version 1.0 and a dm are accepted", {
  x <- stacked()
  y <- filter_profile(stacked(version = "1.0"), hide = "h")
  expect_equal(stacks(y), stacks(filter_profile(x, hide = "h")))
  expect_equal(stacks(filter_profile(stacked(version = "1.0"), drop = "f"))[1], "g")
  skip_if_not_installed("dm")
  expect_equal(stacks(filter_profile(dm_from_profile(x), hide = "h")), stacks(y))
})

test_that("empty profiles are not changed", {
  x <- combine_profiles()
  expect_identical(filter_profile(x, focus = "a", hide = "b"), x)
  expect_identical(filter_profile(x, drop = "a"), x)
  expect_error(filter_profile(x, focus = "("), class = "profile_error_argument")
})

test_that("an invalid expression is an error", {
  x <- stacked()
  for (no in list(1, NA_character_, c("a", "b"), character(), quote(a))) {
    expect_error(filter_profile(x, focus = no), "`focus`", class = "profile_error_argument")
    expect_error(filter_profile(x, drop = "a", keep = no), "`keep`", class = "profile_error_argument")
  }
  expect_error(filter_profile(x, hide = "a["), "`hide`.*a\\[", class = "profile_error_argument")
  expect_error(filter_profile(x, drop = "a", keep = "a("), "`keep`.*a\\(", class = "profile_error_argument")
  expect_error(filter_profile(x, "main"), class = "rlib_error_dots_nonempty")
  expect_error(filter_profile(1, focus = "a"), class = "profile_error_invalid")
  # If the engine gives up, this is not treated as a name without a match.
  x$functions$name[1] <- strrep("a", 50)
  expect_error(filter_profile(x, focus = "^(a+)+$(?<=b)"), "`focus`", class = "profile_error_argument")
  x$functions$name[1] <- strrep("a", 1e6)
  expect_equal(nrow(filter_profile(x, focus = "^(a|b)*c")$samples), 0)
})

test_that("information of OpenTelemetry is kept for the remaining samples", {
  x <- combine_profiles(otlp_profiles())
  words <- function(y) sub("^[0-9]+ at", "at", sample_words(y))
  y <- filter_profile(x, focus = "^work$|^inner$")
  kept <- grepl("(^| )(work|inner)@", stack_words(x))
  expect_equal(words(y), words(x)[kept])
  expect_equal(stack_words(y, all = TRUE), stack_words(x, all = TRUE)[kept])
  expect_identical(y$.scopes, x$.scopes)
  y <- compact_profile(y)
  expect_equal(words(y), words(x)[kept])
  expect_equal(stack_words(y, all = TRUE), stack_words(x, all = TRUE)[kept])
  expect_equal(source_words(y), source_words(x)[sort(unique(x$samples$source_id[kept]))])
  expect_through_otlp(y)
  # Samples keep their times, links and labels if frames are removed.
  y <- filter_profile(x, show_from = "^work$")
  shown <- grepl("(^| )work@", stack_words(x))
  expect_equal(words(y), words(x)[shown])
  expect_through_otlp(compact_profile(y))
  # The files of mappings are matched.
  y <- compact_profile(filter_profile(x, focus = "libr[.]so"))
  expect_equal(attribute_words(y$.resource_attributes, "resource_id", y$.resources$resource_id), "service.name=string rusty")
})

test_that("drop = TRUE uses the expressions in OpenTelemetry profiles", {
  x <- otlp_profiles()[[1]]
  x$sources$.drop_frames <- c("work", NA, NA)
  x$sources$.keep_frames <- NA_character_
  y <- filter_profile(x, drop = TRUE)
  expect_equal(stacks(y)[c(1, 2, 4)], c("main", "main", "leaf < work < NA < main"))
})

test_that("tables that are not valid are an error, without a warning", {
  x <- unclass(small_profile())
  x <- structure(c(x, x), class = "profile_data")
  for (f in list(function(x) filter_profile(x, focus = "f"), drop_by_sources, function(x) callers(x, "f"))) {
    expect_no_warning(error <- tryCatch(f(x), error = identity))
    expect_s3_class(error, "profile_error_invalid")
  }
})
