# A package to check, and processes of a check as `profile_check()` sees them.

# Writes the package `toy`, and returns its folder. Its function `slow()` waits until there is a file of the given name
# in the folder that the environment variable TOY_MARKS names, if it is set. `vignette`: whether it has one.
write_toy <- function(folder, vignette = TRUE) {
  toy <- file.path(folder, "toy")
  write <- function(file, ...) {
    dir.create(dirname(file.path(toy, file)), recursive = TRUE, showWarnings = FALSE)
    writeLines(c(...), file.path(toy, file))
  }
  write(
    "DESCRIPTION", "Package: toy", "Title: A Toy", "Version: 0.1", "Description: A toy for checks of packages.",
    "Authors@R: person('A', 'B', email = 'a@example.org', role = c('aut', 'cre'))", "License: GPL-3",
    "Encoding: UTF-8", if (vignette) c("Suggests: knitr", "VignetteBuilder: knitr")
  )
  write("NAMESPACE", "export(slow)")
  write(
    "R/slow.R", "slow <- function(mark) {", "  marks <- Sys.getenv('TOY_MARKS')",
    "  while (nzchar(marks) && !file.exists(file.path(marks, mark))) {", "    Sys.sleep(0.01)", "  }", "}"
  )
  write(
    "man/slow.Rd", "\\name{slow}", "\\alias{slow}", "\\title{Slow}", "\\usage{slow(mark)}",
    "\\arguments{\\item{mark}{A name.}}", "\\description{Waits.}", "\\value{Nothing.}", "\\examples{slow('example')}"
  )
  write("tests/wait.R", "toy::slow('test')")
  # Without pandoc.
  if (vignette) {
    write(
      "vignettes/one.Rhtml", "<!--", "%\\VignetteEngine{knitr::knitr}", "%\\VignetteIndexEntry{One}", "-->",
      "<html><body>",
      "<!--begin.rcode", "toy::slow('vignette')", "end.rcode-->", "</body></html>"
    )
  }
  toy
}

# The table of watched_processes(): rows are named by their keys, and each is list(parent, began, ended, ...).
seen_processes <- function(...) {
  seen <- list(...)
  watched_processes(lapply(seen, function(one) c(one, list(pid = 1L))))
}

seen <- function(parent, began, ended, ...) list(parent = parent, began = began, ended = ended, ...)

# A process of R that reads this code from a temporary file.
seen_r <- function(parent, began, ended, code = NA_character_, ...) {
  seen(parent, began, ended, is_r = TRUE, program = "R", code = code, ...)
}

skip_without_children_of_check <- function() {
  skip_without_processes()
  skip_on_cran()
}
