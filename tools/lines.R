# Counts the lines of code, without comments, blank lines and help; those of tests are counted apart.
#
#   Rscript tools/lines.R [FOLDER]    of this checkout, or of another one, by crate and language

folder <- c(commandArgs(TRUE), ".")[[1]]

tests <- "/tests/|/testing[.]rs$|/tests[.]rs$|_tests[.]rs$|_tests/"
other <- "/examples/|/node_modules/|extendr-wrappers[.]R$"

# For each language: its files, and the lines that are not code.
languages <- list(
  Rust = c(files = "[.]rs$", comment = "^//"), R = c(files = "[.]R$", comment = "^#"),
  C = c(files = "[.][ch]$", comment = "^(//|/?\\*)"), page = c(files = "[.](js|mjs|css|html)$", comment = "^(//|/?\\*)")
)

# The lines of code of a file, and those of its tests: in Rust, tests are the last module of a file.
lines_of <- function(file, comment) {
  lines <- trimws(readLines(file, warn = FALSE))
  first <- which(grepl("^#\\[cfg\\(.*\\btest\\b", lines) & grepl("^(pub )?mod tests \\{", c(lines[-1], "")))
  is_test <- grepl(tests, file) | seq_along(lines) >= c(first, Inf)[[1]]
  is_code <- lines != "" & !grepl(comment, lines)
  c(code = sum(is_code & !is_test), tests = sum(is_code & is_test))
}

# The same for all files of folders, without their subfolders unless `recursive`.
count <- function(language, paths, recursive = TRUE) {
  language <- languages[[language]]
  files <- list.files(file.path(folder, paths), language[["files"]], recursive = recursive, full.names = TRUE)
  rowSums(vapply(files[!grepl(other, files)], lines_of, c(code = 0L, tests = 0L), comment = language[["comment"]]))
}

crates <- c("core", "reader", "runtime", "unwind", "sampler", "agent", "allocations")
rust <- lapply(crates, function(crate) count("Rust", file.path("src/rust", crate, c("src", "tests"))))
rust <- c(stats::setNames(rust, crates), list(binding = count("Rust", "src/rust/src")))
counts <- c(
  rust, list(
    Rust = Reduce(`+`, rust), R = count("R", c("R", "inst/record", "tests/testthat")),
    C = count("C", "src", recursive = FALSE), page = count("page", c("inst/page", "tests/page"))
  )
)
table <- do.call(rbind, counts)
table <- rbind(table, all = colSums(table[c("Rust", "R", "C", "page"), ]))
cells <- format(rbind(colnames(table), format(table, big.mark = ",")), justify = "right")
cat(paste0("  ", cells[, "code"], "  ", cells[, "tests"], "  ", c("", rownames(table))), sep = "\n")
