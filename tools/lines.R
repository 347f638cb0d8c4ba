# Counts the lines of code: without comments, blank lines, help and tests.
#
#   Rscript tools/lines.R [FOLDER]    of this checkout, or of another one, by crate and language

folder <- c(commandArgs(TRUE), ".")[[1]]

files_in <- function(path, pattern) {
  files <- list.files(file.path(folder, path), pattern, recursive = TRUE, full.names = TRUE)
  files[!grepl("/(tests|target|examples)/|/testing[.]rs$|/tests[.]rs$|_tests[.]rs$|_tests/|extendr-wrappers[.]R$", files)]
}

# Lines of a file that are code. `comment` is a pattern of lines that are not.
code_lines <- function(file, comment) {
  lines <- trimws(readLines(file, warn = FALSE))
  # In Rust, tests are the last module of a file.
  tests <- which(grepl("^#\\[cfg\\(.*\\btest\\b", lines) & grepl("^(pub )?mod tests \\{", c(lines[-1], "")))
  if (length(tests) > 0) {
    lines <- lines[seq_len(tests[[1]] - 1)]
  }
  sum(lines != "" & !grepl(comment, lines))
}

count <- function(files, comment) sum(vapply(files, code_lines, 0L, comment = comment))

rust <- c(
  core = "core/src", reader = "reader/src", runtime = "runtime/src", unwind = "unwind/src", sampler = "sampler/src",
  agent = "agent/src", binding = "src"
)
counts <- vapply(file.path("src/rust", rust), function(path) count(files_in(path, "[.]rs$"), "^//"), 0L)
names(counts) <- names(rust)
counts <- c(
  counts, Rust = sum(counts), R = count(c(files_in("R", "[.]R$"), files_in("inst/record", "[.]R$")), "^#"),
  C = count(list.files(file.path(folder, "src"), "[.][ch]$", full.names = TRUE), "^(//|/?\\*)"),
  page = count(files_in("inst/page", "[.](js|css|html)$"), "^(//|/?\\*)")
)
cat(sprintf("%8s  %s\n", format(counts, big.mark = ","), names(counts)), sep = "")
