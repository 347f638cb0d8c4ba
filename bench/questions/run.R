#!/usr/bin/env Rscript
# Answers public questions about copies, the programs in programs.R: records each with `record_profile(memory = "exact")`,
# prints the section about copies of its description, and compares all bytes and vectors with those of `Rprofmem()` in the
# same run.
#
# usage: bench/questions/run.R [NAME...]
#
# NAME is a function of programs.R; without names, all run. Linux only. Nothing passes or fails.

suppressPackageStartupMessages(library(profile))

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[[1]])
code <- new.env(parent = globalenv())
sys.source(file.path(dirname(normalizePath(script)), "programs.R"), code, keep.source = TRUE)
functions <- Filter(is.function, as.list(code))
names <- names(functions)[order(vapply(functions, function(f) attr(f, "srcref")[[1]], 0L))]
if (length(commandArgs(TRUE)) > 0) names <- intersect(commandArgs(TRUE), names)

# The bytes of vectors that `Rprofmem()` has recorded within a function.
rprofmem_bytes <- function(file, name) {
  lines <- grep(paste0("\"", name, "\""), readLines(file), value = TRUE, fixed = TRUE)
  as.numeric(sub(" :.*", "", lines[!startsWith(lines, "new page")]))
}

# The same of the recording.
exact_values <- function(x, name, type) {
  frames <- tibble::as_tibble(x)
  samples <- x$samples$sample_id[unique(frames$sample_id[frames$name == name])]
  x$sample_values$value[x$sample_values$type == type & x$sample_values$sample_id %in% samples]
}

for (name in names) {
  needs <- c(field = "R6", constructor = "data.table", where = "data.table", mutated = "dplyr")[name]
  if (!is.na(needs) && !requireNamespace(needs, quietly = TRUE)) {
    cat("\n", name, ": the package ", needs, " is not installed\n", sep = "")
    next
  }
  # The name is that of the function in the reasons. The first time, packages are loaded and code is compiled.
  call <- call(name)
  for (i in 1:2) suppressWarnings(eval(call, code))
  file <- tempfile()
  x <- record_profile(
    {
      utils::Rprofmem(file)
      suppressWarnings(eval(call, code))
      utils::Rprofmem("")
    },
    memory = "exact"
  )
  text <- format(describe_profile(x), width = 120)
  start <- match("Copies", text, 0)
  cat("\n", name, "\n", sep = "")
  if (start > 0) {
    rest <- text[-seq_len(start)]
    cat(rest[seq_len(match("", rest) - 1)], sep = "\n")
  }
  bytes <- rprofmem_bytes(file, name)
  found <- sum(exact_values(x, name, "alloc_space"))
  vectors <- sum(exact_values(x, name, "alloc_objects"))
  cat(sprintf(
    "  all vectors: %.0f bytes in %.0f, by `Rprofmem()` %.0f in %d; copied %.0f in %.0f\n", found, vectors, sum(bytes),
    length(bytes), sum(exact_values(x, name, "copy_space")), sum(exact_values(x, name, "copy_objects"))
  ))
}
