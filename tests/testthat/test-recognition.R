# tier: gate
# All sample files and all files that we write, crossed with all readers: `read_profile()` and the reader of the format
# return the same result or both refuse the file, and no other reader takes it for a damaged file of its own format.

readers <- list(
  rprof = read_rprof, pprof = read_pprof, otlp = read_otlp, speedscope = read_speedscope,
  cpuprofile = read_cpuprofile, firefox = read_firefox, rprofmem = read_rprofmem, perf = read_perf_script,
  collapsed = read_collapsed
)

# The profile without warnings, or the error.
outcome_of <- function(read, path) {
  suppressWarnings(
    tryCatch(read(path, source_uri = NA), profile_error = identity), classes = "profile_warning"
  )
}

is_error <- function(outcome) inherits(outcome, "error")

# Checks one file, and returns the format as which it is read, or NA.
cross <- function(path, info = basename(path)) {
  any <- outcome_of(read_profile, path)
  outcomes <- lapply(readers, outcome_of, path)
  refused <- vapply(outcomes, is_error, NA)
  if (is_error(any)) {
    # `Rprofmem()` leaves an empty file if nothing was allocated.
    expect_true(all(refused) || file.size(path) == 0, info = info)
    return(NA_character_)
  }
  # `source_type` may be the type of the files from which a pprof file was made.
  format <- names(readers)[!refused]
  # Pages have no reader of their own.
  expect_length(format, if (grepl("[.]html$", path)) 0 else 1)
  for (own in format) expect_identical(any, outcomes[[own]], info = info)
  for (other in names(readers)[refused]) {
    error <- outcomes[[other]]
    expect_s3_class(error, "profile_error_parse")
    # The error describes the kind of the file, not a position in it.
    expect_null(c(error$byte, error$line), info = paste(info, other))
    expect_match(conditionMessage(error), "it looks like", info = paste(info, other))
  }
  if (length(format) > 0) format[[1]] else "page"
}

sample_files <- function() {
  files <- c(
    list.files(data_path(), recursive = TRUE, full.names = TRUE),
    list.files(system.file("samples", package = "profile"), recursive = TRUE, full.names = TRUE)
  )
  files[!grepl("(README.md|profile.proto|rprof-truth.json|check/ran.rds|[.]R)$", files)]
}

test_that("each sample file is read by the reader of its format only", {
  files <- sample_files()
  formats <- vapply(files, cross, "")
  folder <- basename(dirname(files))
  expected <- folder
  expected[folder %in% c("proto", "compare", "frameworks")] <- "pprof"
  expected[grepl("^rprofmem", basename(files))] <- "rprofmem"
  # Empty files, and versions of OpenTelemetry that are too old.
  is_readable <- folder != "found" & !grepl("zero_bytes|rprofmem_empty|classes-1.6|python-1.36|rust-0.31", files)
  expect_identical(unname(formats[is_readable]), expected[is_readable])
})

# Names as the outermost function of a stack, where they may look like the start of another format, or of a comment.
outermost_names <- c(
  "f", "f g", "f 5", "12", "a;b", "x\ty", "<module> (app.py:3)", "<Anonymous>", "<GC>", "<html>", "<!x", "# x", "#x",
  "#", "// x", "//x", "//", "\"q\"", "\"f\" \"g", "[[", "(", "{main}", "{", "sample.interval=1", "192 :", "new page:",
  "R 1 2.0: 3 c:", "R 1 2.0: 3 c: x", "R 1/1 2.0: 3 c: 7f0 f (/a)", "\t             7f0 f (/a)", "R 1 c:", "for (i",
  "analysis.R:12", "names<-", "caf\u00e9", "a\001b", "heap profile: 1 @", "PK"
)

# A profile of stacks with one outermost function each.
profile_of_names <- function(names) {
  lines <- unlist(lapply(seq_along(names), function(i) paste0("NAME", i, c(";f;g 2", ";h 1"))))
  x <- read_collapsed(write_file(lines), source_uri = NA)
  at <- grepl("^NAME", x$functions$name)
  x$functions$name[at] <- names[as.integer(sub("NAME", "", x$functions$name[at]))]
  x
}

quietly_written <- function(x, write, ..., .local_envir = parent.frame()) {
  path <- withr::local_tempfile(.local_envir = .local_envir)
  suppressWarnings(write(x, path, ...), classes = "profile_warning_lossy")
  path
}

test_that("our own collapsed stacks are recognised whatever their names are", {
  for (name in outermost_names) {
    x <- profile_of_names(name)
    path <- quietly_written(x, write_collapsed)
    expect_identical(cross(path, name), "collapsed", info = name)
    y <- read_profile(path)
    expect_equal(y$sample_values$value, c(2, 1), info = name)
    # A semicolon cannot be written, and a line that looks like a comment gets a blank.
    written <- chartr(";", ":", name)
    if (grepl("^(#|//)( |$)", name)) written <- paste0(" ", written)
    outermost <- y$sample_locations$location_id[y$sample_locations$depth == c(3, 2)[y$sample_locations$sample_id]]
    expect_identical(unique(y$functions$name[y$locations$function_id[outermost]]), written, info = name)
  }
  expect_identical(cross(quietly_written(profile_of_names(outermost_names), write_collapsed)), "collapsed")
})

test_that("stacks of every sample file are recognised as collapsed stacks", {
  for (path in sample_files()) {
    x <- outcome_of(read_profile, path)
    if (is_error(x) || nrow(x$samples) == 0) next
    for (frame_types in c(FALSE, TRUE)) {
      # One file has values whose sum cannot be written.
      written <- tryCatch(
        quietly_written(x, write_collapsed, frame_types = frame_types),
        profile_error_unsupported = function(error) NULL
      )
      if (is.null(written)) {
        expect_identical(basename(path), "inf-sum.folded")
        next
      }
      if (file.size(written) == 0) next
      any <- outcome_of(read_profile, written)
      expect_false(is_error(any), info = path)
      expect_identical(any, outcome_of(read_collapsed, written), info = path)
    }
  }
})

test_that("files of the other writers are recognised", {
  writers <- list(
    rprof = write_rprof, pprof = write_pprof, speedscope = write_speedscope, cpuprofile = write_cpuprofile,
    firefox = write_firefox, otlp = write_otlp
  )
  r <- read_quietly(rprof_path("names_line.out"), source_uri = NA)
  for (x in list(r, profile_of_names(outermost_names), read_quietly(rprof_path("basic_all.out")))) {
    for (format in names(writers)) {
      path <- tryCatch(quietly_written(x, writers[[format]]), profile_error = function(error) NULL)
      if (!is.null(path)) {
        expect_identical(cross(path, format), format, info = format)
      }
    }
  }
  json <- withr::local_tempfile(fileext = ".json")
  suppressWarnings(write_otlp(r, json), classes = "profile_warning_lossy")
  expect_identical(cross(json), "otlp")
  error <- expect_error(read_profile(quietly_written(r, write_callgrind)), class = "profile_error_parse")
  expect_match(conditionMessage(error), "callgrind file")
  page <- withr::local_tempfile(fileext = ".html")
  write_profile(r, page)
  expect_identical(cross(page), "page")
})
