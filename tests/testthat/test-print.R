# tier: gate
# `n` of print() and format(), for each class of the package.

# An object of each class that shows rows. Each has 30 rows with a word such as `work_01`, of different size.
objects_with_rows <- function() {
  words <- sprintf("work_%02d", 1:30)
  path <- withr::local_tempfile()
  writeLines(paste(words, 100 + 1:30), path)
  x <- read_collapsed(path, source_uri = "work")
  x$functions$filename <- "work.R"
  x$locations$line <- seq_len(nrow(x$locations))
  x$.source_text <- tibble::tibble(filename = "work.R", text = paste0(words, "()", collapse = "\n"), changed = FALSE)
  heap <- function(scale) {
    y <- x
    y$sample_values$type <- "inuse_space"
    y$sample_values$unit <- "bytes"
    y$sample_values$value <- scale * y$sample_values$value
    y
  }
  rows <- list(
    profile_data = x,
    profile_summary = summary(x),
    profile_description = describe_profile(x, min_share = 0),
    profile_call_tree = call_tree(x),
    profile_lines = annotate_lines(x),
    profile_holders = holders(heap(1000), n = 30),
    profile_growth = compare_profiles(heap(1000), heap(3000), by = "path", min_share = 0),
    profile_comparison = compare_profiles(x, x, by = "function", min_share = 0),
    profile_stack = tibble::new_tibble(
      list(name = words, filename = rep("work.R", 30), line = 1:30),
      nrow = 30L, pid = 1L, command = "R", start = as.POSIXct(NA), state = "running", system_call = NA_character_,
      children = integer(), toplevel = data.frame(filename = character(), line = integer()), is_cut = FALSE,
      class = "profile_stack"
    ),
    profile_processes = tibble::new_tibble(
      list(
        pid = 1:30, state = rep("running", 30), cpu_time = 1:30 + 0, start = as.POSIXct(rep(NA, 30)),
        script = paste0(words, ".R"), command = rep("R", 30)
      ),
      nrow = 30L, class = "profile_processes"
    )
  )
  if (rlang::is_installed(c("DBI", "RSQLite", "dplyr", "dbplyr"))) {
    con <- DBI::dbConnect(RSQLite::SQLite())
    withr::defer_parent(DBI::dbDisconnect(con))
    for (word in words) store_profiles(small_profile(), con, resource = c(service.name = word))
    rows$tbl_profile <- tbl_profile(con)
  }
  rows
}

test_that("print() shows `n` rows of each object", {
  withr::local_options(width = 100, cli.unicode = FALSE)
  objects <- objects_with_rows()
  for (class in names(objects)) {
    x <- objects[[class]]
    expect_s3_class(x, class)
    shown <- function(...) {
      lines <- utils::capture.output(print(x, ...))
      expect_identical(lines, utils::capture.output(writeLines(format(x, ...))), info = class)
      # A description has several tables. The functions are counted.
      if (class == "profile_description") {
        lines <- lines[cumsum(grepl("  function  <- ", lines, fixed = TRUE)) > 0]
        lines <- lines[cumsum(lines == "") == 0]
      }
      sum(grepl("work_[0-9]{2}", lines))
    }
    expect_identical(shown(n = Inf), 30L, info = class)
    expect_identical(shown(n = 0), 0L, info = class)
    # A branch of a call tree is shown or not by its size, so there may be fewer lines.
    counts <- vapply(c(1, 3, 29), function(n) shown(n = n), 0L)
    if (class == "profile_call_tree") {
      expect_true(all(counts <= c(1, 3, 29)))
    } else {
      expect_identical(counts, c(1L, 3L, 29L), info = class)
    }
    expect_identical(format(x, n = NULL), format(x), info = class)
    if (is.data.frame(x)) {
      # Without its columns, it prints as a tibble.
      expect_identical(format(x[1], n = 3), format(as_tibble(x[1]), n = 3), info = class)
    }
    for (wrong in list(-1, NA, "a", c(1, 2))) {
      error <- expect_error(print(x, n = wrong), "`n` must be a number of rows", class = "profile_error_argument")
      expect_identical(as.character(conditionCall(error)[[1]]), "print", info = class)
    }
  }
  recording <- structure(objects$profile_data, class = c("profile_recording", class(objects$profile_data)))
  expect_identical(
    utils::capture.output(print(recording, n = 3)), format(describe_profile(objects$profile_data), n = 3)
  )
})

test_that("each class with a method of print() or format() is tested here, or shows no rows", {
  # A recording prints a description; the tables of a check are tested in test-check-parts.R.
  without_rows <- c(
    "profile_agent_status", "profile_amounts", "profile_check", "profile_page", "profile_recording", "pprof_tool", "pprof_process"
  )
  skip_if_not_installed("dbplyr")
  skip_if_not_installed("RSQLite")
  known <- c(names(objects_with_rows()), without_rows)
  methods <- getNamespaceInfo("profile", "S3methods")
  classes <- unique(methods[methods[, 1] %in% c("print", "format"), 2])
  expect_setequal(classes, known)
})
