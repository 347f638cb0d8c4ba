# tier: thorough
# Round trips of pprof files, checked by Go's own library: a file that was read and written has the same content, or the
# sums that Go computes.
#
# In addition to real files, the Go program generates irregular ones from a seed. PROFILE_TEST_GENERATED is their number,
# and PROFILE_TEST_SEED the seed of the first one.

real_files <- function() {
  c(
    dir(data_path("pprof"), full.names = TRUE),
    dir(system.file("samples/proto", package = "profile"), full.names = TRUE)
  )
}

generated_files <- function(judge, .local_envir = parent.frame()) {
  n <- as.integer(Sys.getenv("PROFILE_TEST_GENERATED", "100"))
  seed <- as.integer(Sys.getenv("PROFILE_TEST_SEED", "1"))
  dir <- withr::local_tempdir(.local_envir = .local_envir)
  out <- judge("generate", dir, n, seed)
  if (length(out) > 0) {
    stop("No profiles to try: ", paste(out, collapse = "\n"))
  }
  files <- dir(dir, full.names = TRUE)
  names(files) <- paste0(basename(files), " (PROFILE_TEST_GENERATED=1 PROFILE_TEST_SEED=", seed + seq_len(n) - 1L, ")")
  files
}

# Expects that the judge finds no differences in the results of `write()` for each of `inputs`: paths, or several paths
# separated by `;`.
expect_judged <- function(judge, inputs, write, ..., labels = inputs) {
  dir <- withr::local_tempdir()
  outputs <- file.path(dir, paste0(seq_along(inputs), ".pb.gz"))
  failed <- character()
  for (i in seq_along(inputs)) {
    tryCatch(
      # These files consist of irregular values.
      suppressWarnings(write(strsplit(inputs[[i]], ";")[[1]], outputs[[i]]), classes = "profile_warning"),
      error = function(e) failed <<- c(failed, paste0(labels[[i]], ": ", conditionMessage(e)))
    )
  }
  written <- file.exists(outputs)
  list <- file.path(dir, "list")
  writeLines(paste0(inputs, "\t", outputs)[written], list)
  said <- judge("compare", ..., list)
  for (i in seq_along(inputs)) {
    start <- paste0(inputs[[i]], ": ")
    which <- startsWith(said, start)
    said[which] <- paste0(labels[[i]], ": ", substring(said[which], nchar(start) + 1))
  }
  wrong <- c(failed, said[-length(said)])
  expect(
    length(wrong) == 0 && identical(said, paste0(length(inputs), " compared, 0 differ")),
    paste0(
      c(
        paste0("Of ", length(inputs), " files, ", length(failed), " are not written; of the others, ", said[length(said)], ":"),
        utils::head(wrong, 20),
        if (length(wrong) > 20) "..."
      ),
      collapse = "\n"
    )
  )
}

rewrite <- function(input, output) {
  write_pprof(read_pprof(input), output, aggregate = FALSE)
}

aggregate <- function(input, output) {
  write_pprof(without_forgotten(read_pprof(input)), output, aggregate = TRUE)
}

# Through OpenTelemetry, whose payload contains information without another place.
through_otlp <- function(input, output, payload = FALSE) {
  path <- withr::local_tempfile(fileext = sample(c(".otlp", ".otlp.gz", ".json", ".json.gz"), 1))
  x <- read_pprof(input)
  tryCatch(
    write_otlp(x, path, aggregate = FALSE, original_payload = payload),
    profile_error_lossy = function(e) {
      payload <<- TRUE
      write_otlp(x, path, aggregate = FALSE, original_payload = TRUE)
    }
  )
  write_pprof(read_otlp(path, original_payload = payload), output, aggregate = FALSE)
}

with_payload <- function(input, output) {
  through_otlp(input, output, payload = TRUE)
}

# Go drops labels without text, number and unit, and so sums samples that differ only in such labels.
without_forgotten <- function(x) {
  if (!is.null(x$.labels)) {
    says <- function(column, nothing) !is.na(column) & column != nothing
    labels <- x$.labels
    said <- says(labels$str, "") | says(labels$num, 0) | says(labels$unit, "")
    x$.labels <- labels[said, ]
  }
  x
}

combine <- function(inputs, output) {
  write_pprof(combine_profiles(!!!lapply(inputs, read_pprof)), output, aggregate = TRUE)
}

test_that("the judge finds what differs", {
  judge <- go_judge()
  files <- real_files()
  # Each file is changed in every place, which is slow for the three larger files.
  files <- c(files[file.size(files) < 12000], head(generated_files(judge), 20))
  expect_match(judge("selftest", files), "all noticed$")
  list <- withr::local_tempfile()
  pairs <- paste0(files[-1], "\t", files[-length(files)])
  for (mode in c("exact", "resolved", "merged")) {
    writeLines(paste0(files, "\t", files), list)
    if (mode != "merged") {
      expect_equal(judge("compare", "-mode", mode, list), paste(length(files), "compared, 0 differ"))
    }
    writeLines(pairs, list)
    said <- judge("compare", "-mode", mode, list)
    expect_equal(said[length(said)], sprintf("%1$d compared, %1$d differ", length(pairs)))
  }
})

test_that("a real file that is read and written is the same profile to Go", {
  expect_judged(go_judge(), real_files(), rewrite, "-mode", "exact")
})

test_that("any file that is read and written is the same profile to Go", {
  judge <- go_judge()
  files <- generated_files(judge)
  expect_judged(judge, files, rewrite, "-mode", "exact", labels = names(files))
})

test_that("aggregating a real file gives what Go's merge gives", {
  expect_judged(go_judge(), real_files(), aggregate, "-mode", "merged")
})

test_that("aggregating any file gives what Go's merge gives", {
  judge <- go_judge()
  files <- generated_files(judge)
  expect_judged(judge, files, aggregate, "-mode", "merged", labels = names(files))
})

test_that("combining real files gives what Go's merge of them gives", {
  judge <- go_judge()
  # Go merges only files with equal types and periods. The other files are merged with themselves.
  files <- real_files()
  pairs <- c(
    paste0(data_path("pprof", "go_heap.pb.gz"), ";", data_path("pprof", "go_allocs.pb.gz")),
    paste0(data_path("pprof", "go_block.pb.gz"), ";", data_path("pprof", "go_mutex.pb.gz")),
    paste0(files, ";", files)
  )
  # Our labels contain the file of each sample.
  expect_judged(judge, pairs, combine, "-mode", "merged", "-forget", "run")
})

test_that("a file that was converted to OpenTelemetry and back is the same profile to Go", {
  judge <- go_judge()
  expect_judged(judge, real_files(), through_otlp, "-mode", "resolved")
  files <- generated_files(judge)
  expect_judged(judge, files, through_otlp, "-mode", "resolved", labels = names(files))
})

test_that("a file that is embedded in OpenTelemetry is the same profile to Go", {
  judge <- go_judge()
  expect_judged(judge, real_files(), with_payload, "-mode", "exact")
  files <- utils::head(generated_files(judge), 50)
  expect_judged(judge, files, with_payload, "-mode", "exact", labels = names(files))
})
