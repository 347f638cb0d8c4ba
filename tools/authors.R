# Generates inst/AUTHORS, the authors of the Rust crates that a release contains.
#
#   Rscript tools/authors.R            writes the file
#   Rscript tools/authors.R --check    fails when it is not up to date

metadata <- function() {
  output <- system2(
    "cargo",
    c("metadata", "--format-version", "1", "--locked", "--manifest-path", "src/rust/Cargo.toml"),
    stdout = TRUE
  )
  Encoding(output) <- "UTF-8"
  jsonlite::fromJSON(paste(output, collapse = ""), simplifyVector = FALSE)
}

or <- function(x, other) if (length(x) == 0) other else x

crate <- function(package) {
  authors <- or(unlist(package$authors), paste("the authors of", package$name))
  # Without mail addresses.
  authors <- trimws(sub("<[^>]*>", "", authors))
  c(
    paste0(package$name, " ", package$version),
    paste0("  Authors: ", paste(authors, collapse = ", ")),
    paste0("  License: ", or(package$license, "see its sources")),
    paste0("  Source:  ", or(package$repository, "see its sources")),
    ""
  )
}

packages <- Filter(function(p) !is.null(p$source), metadata()$packages)
packages <- packages[order(vapply(packages, `[[`, "", "name"), method = "radix")]
lines <- c(
  "The release of this package contains the sources of these Rust crates. Their",
  "authors hold the copyright and license them as stated.",
  "",
  unlist(lapply(packages, crate))
)

path <- file.path("inst", "AUTHORS")
if ("--check" %in% commandArgs(TRUE)) {
  if (!file.exists(path) || !identical(readLines(path, encoding = "UTF-8"), lines)) {
    message(path, " is not up to date: run `Rscript tools/authors.R`.")
    quit("no", status = 1)
  }
  cat(length(packages), "crates\n")
} else {
  writeLines(lines, path, useBytes = TRUE)
}
