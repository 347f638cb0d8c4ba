# tier: gate
# How many rows frameworks leave before code of the user if their plumbing is hidden, for the recordings of
# data/frameworks: of names only, and with the packages that were known when they were recorded.

framework_recordings <- function() {
  files <- list.files(test_path("data/frameworks"), "[.]pb[.]gz$", full.names = TRUE)
  recordings <- lapply(files, read_pprof)
  names(recordings) <- basename(files)
  known <- Filter(Negate(is.null), lapply(recordings, with_recorded_packages))
  names(known) <- paste(names(known), "with packages")
  c(recordings, known)
}

# System names are `package::name` where the recording knew the package, see data/frameworks/record-parallel.R.
with_recorded_packages <- function(x) {
  system_name <- x$functions$system_name
  is_known <- system_name != x$functions$name & grepl("^[[:alnum:].]*::", system_name)
  if (!any(is_known)) {
    return(NULL)
  }
  package <- sub("::.*", "", system_name)
  x$functions$.package <- ifelse(is_known & nzchar(package), package, NA)
  x$functions$.package_from <- ifelse(is_known, "process", NA)
  x
}

# The frames of each sample, from the outermost one, and whether they are the user's. Functions of base that evaluate the
# user's code have its file.
stacks_of <- function(x) {
  frames <- as_tibble(x)
  frames <- frames[order(frames$sample_id, -frames$depth), ]
  frames <- frames[frames$name != "<expression>", ]
  has_file <- grepl("^(app|crew|test-app)[.]R$|^<text>$", frames$filename)
  is_of_base <- vapply(frames$name, exists, NA, envir = baseenv(), inherits = FALSE)
  is_mine <- has_file & !is_of_base | grepl("^(slow$|by_)", frames$name)
  id <- factor(frames$sample_id, unique(frames$sample_id))
  list(name = split(frames$name, id), is_mine = split(is_mine, id))
}

# The largest number of other rows before a frame of the user, without the first of them, which is the call of the
# framework.
most_rows <- function(stacks) {
  rows <- vapply(stacks$is_mine, function(is_mine) max(0L, diff(c(0L, which(is_mine))) - 2L), 0L)
  max(rows)
}

test_that("few rows are between the call of a framework and the code of the user", {
  for (name in names(recordings <- framework_recordings())) {
    x <- recordings[[name]]
    hidden <- filter_profile(x, hide_plumbing = TRUE)
    stacks <- stacks_of(hidden)
    expect_gt(sum(unlist(stacks$is_mine)), 3, label = name)
    expect_lte(most_rows(stacks), 3, label = name)
    # Nothing of the user is lost.
    before <- stacks_of(x)
    mine <- function(stacks) Map(`[`, stacks$name, stacks$is_mine)
    expect_identical(mine(stacks)[names(mine(before))], mine(before), label = name)
    expect_identical(hidden$sample_values, x$sample_values, label = name)
  }
})

test_that("recordings of today have packages", {
  known <- grep("with packages", names(framework_recordings()), value = TRUE)
  for (package in c("BiocParallel", "callr", "coro", "crew", "doFuture", "foreach", "furrr", "future", "mirai")) {
    expect_true(any(startsWith(known, paste0(package, "-"))), label = package)
  }
})

test_that("a function that a framework calls under a name of its own is shown", {
  recordings <- framework_recordings()
  shown <- function(pattern) {
    found <- lapply(recordings[grepl(pattern, names(recordings))], function(x) {
      unlist(stacks_of(filter_profile(x, hide_plumbing = TRUE))$name)
    })
    expect_length(found, 2)
    found
  }
  for (names in shown("^future-1.75")) expect_true("...future.FUN" %in% names)
  for (names in shown("^furrr")) expect_true("...furrr_fn" %in% names)
  for (names in shown("^coro")) expect_false(any(c("user", "<<-", "env_poke", "iterator", "evalq") %in% names))
  for (names in shown("^crew")) {
    expect_false(any(c("send", "crew::crew_eval", "targets::target_run_worker", "eval_mirai") %in% names))
  }
  for (names in shown("^doFuture")) expect_false(any(c("e$fun", "doFuture2") %in% names))
})
