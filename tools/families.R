# Checks that _pkgdown.yml, the package's help page (R/profile-package.R) and the table of README.md name the same
# families of functions in the same order; that each exported function is in exactly one family of _pkgdown.yml and of
# the help page; that README.md puts functions into the same families; and that the functions of R/cheatsheet.R exist.
#
#   Rscript tools/families.R

read <- function(file) readLines(file, encoding = "UTF-8")

# A list of families, each with the names of its functions. `heads` are the numbers of the lines that begin a family.
families <- function(lines, heads, title, names_in) {
  ends <- c(heads[-1] - 1, length(lines))
  members <- Map(function(from, to) names_in(lines[from:to]), heads, ends)
  stats::setNames(members, title(lines[heads]))
}

matches <- function(lines, pattern) {
  unlist(regmatches(lines, gregexpr(pattern, lines, perl = TRUE)))
}

site <- read("_pkgdown.yml")
site <- families(
  site, grep("^- title: ", site), function(head) sub("^- title: ", "", head),
  function(lines) sub("^  - ", "", lines[startsWith(lines, "  - ")])
)

help <- read("R/profile-package.R")
help <- help[seq_len(grep("^#' @", help)[[1]] - 1)]
help <- families(
  help, grep("^#' ## ", help), function(head) sub("^#' ## ", "", head),
  function(lines) ifelse(
    nzchar(target <- sub("^.*\\]\\[", "", named <- matches(lines, "\\[[\\w.]+\\(\\)\\](?:\\[[\\w.]+\\])?"))) & grepl("][", named, fixed = TRUE),
    sub("\\]$", "", target), sub("^\\[([\\w.]+)\\(\\)\\].*", "\\1", named, perl = TRUE)
  )
)

readme <- read("README.md")
readme <- readme[seq(grep("^\\| family \\| to \\| use \\|$", readme) + 2, length(readme))]
readme <- readme[seq_len(which(!startsWith(readme, "|"))[[1]] - 1)]
first <- sub("^\\| ([^|]*) \\|.*", "\\1", readme)
readme <- families(
  readme, which(first != "" & !startsWith(first, "|")), function(head) sub("^\\| ([^|]*) \\|.*", "\\1", head),
  function(lines) sub("^`([\\w.]+)\\(.*", "\\1", matches(lines, "`[\\w.]+\\("), perl = TRUE)
)

exports <- sub("^export\\((.*)\\)$", "\\1", grep("^export\\(", read("NAMESPACE"), value = TRUE))
exported <- function(members) intersect(sub("\\.profile_(data|comparison)$", "", members), exports)

wrong <- character()
fail <- function(...) wrong <<- c(wrong, paste0(...))
if (!identical(names(site), names(help))) fail("_pkgdown.yml and the help page have other families.")
if (!identical(names(site), names(readme))) fail("_pkgdown.yml and README.md have other families.")
for (family in intersect(names(site), names(help))) {
  if (!setequal(exported(site[[family]]), exported(help[[family]]))) {
    differ <- c(
      setdiff(exported(site[[family]]), exported(help[[family]])), setdiff(exported(help[[family]]), exported(site[[family]]))
    )
    fail(family, ": in _pkgdown.yml or the help page only: ", toString(differ))
  }
  unknown <- setdiff(readme[[family]], c(exports, "summary", "plot", "print"))
  if (length(unknown) > 0) fail(family, ": in README.md, but not exported: ", toString(unknown))
  elsewhere <- setdiff(exported(readme[[family]]), exported(site[[family]]))
  if (length(elsewhere) > 0) fail(family, ": of another family, but in README.md: ", toString(elsewhere))
}
members <- unlist(lapply(site, exported))
for (name in setdiff(exports, members)) fail("In no family: ", name)
for (name in unique(members[duplicated(members)])) fail("In several families: ", name)

# Names with an underscore that no other package has.
called <- matches(read("R/cheatsheet.R"), "(?<![\\w.:])[a-z]+_\\w+(?=\\()")
for (name in setdiff(called, exports)) fail("R/cheatsheet.R calls ", name, "(), which is not exported.")

if (length(wrong) > 0) {
  cat(wrong, sep = "\n")
  quit(status = 1)
}
cat(length(exports), " exported functions in ", length(site), " families\n", sep = "")
