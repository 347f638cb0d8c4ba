# Files for viewers: written and read back, and checked by other tools. These tools are npm packages, which tools/test
# installs (tests/page/package.json).

# Writes a profile in a format and reads it back. `...`: arguments of the writer.
read_written <- function(x, format, ...) {
  path <- withr::local_tempfile()
  get(paste0("write_", format))(x, path, ...)
  get(paste0("read_", format))(path, source_uri = "copy")
}

# Prints the errors about irregular texts.
print_refusals <- function(read, ...) {
  for (text in c(...)) {
    error <- expect_error(read(write_bytes(text)), class = "profile_error_parse")
    cat(sub("`[^`]*`", "`x`", conditionMessage(error)), "\n", sep = "")
  }
}

viewer_directory <- function() {
  cache <- file.path(Sys.getenv("XDG_CACHE_HOME", "~/.cache"), "profile-page-tests")
  normalizePath(Sys.getenv("NODE_MODULES", cache), mustWork = FALSE)
}

# Node from the same directory: Firefox's tool needs a recent version.
find_node <- function() {
  own <- file.path(viewer_directory(), "node_modules", ".bin", "node")
  if (file.exists(own)) own else Sys.which("node")[[1]]
}

skip_without_viewer <- function(package) {
  testthat::skip_on_cran()
  testthat::skip_on_os("windows")
  testthat::skip_if_not_installed("jsonlite")
  installed <- dir.exists(file.path(viewer_directory(), "node_modules", package))
  if (!installed || find_node() == "") {
    testthat::skip(paste0("npm's package ", package, " is not installed: files are not judged by it"))
  }
}

skip_without_speedscope <- function() {
  skip_without_viewer("speedscope")
  skip_without_viewer("puppeteer-core")
  skip_without_chromium()
}

# The output of a script of the directory `viewers`, which prints JSON.
run_viewer <- function(script, ...) {
  withr::local_envvar(NODE_MODULES = viewer_directory())
  script <- normalizePath(testthat::test_path("viewers", script))
  # The argument `timeout` of system2() is not used: it fails if the package later is in use, whose thread receives the
  # signal.
  output <- system2("timeout", c("300", shQuote(c(find_node(), script, ...))), stdout = TRUE)
  jsonlite::fromJSON(paste(output, collapse = "\n"), simplifyVector = FALSE)
}

# For each file its profiles; for each profile the sums of its stacks (outermost frame first), sorted by name.
in_speedscope <- function(...) {
  files <- run_viewer("speedscope.cjs", find_chromium(), ...)
  lapply(files, function(file) {
    file$profiles <- lapply(file$profiles, function(profile) {
      profile$stacks <- in_order(unlist(profile$stacks))
      profile
    })
    file
  })
}

in_order <- function(sums) {
  sums <- sums[sums != 0]
  sums[order(names(sums), method = "radix")]
}

# The sums of a type by stack, as `in_speedscope()` returns them. `factor`: the number by which counts are multiplied.
sums_by_stack <- function(x, type, source = 1L, factor = 1) {
  values <- x$sample_values[x$sample_values$type == type, ]
  values <- values$value[match(x$samples$sample_id, values$sample_id)] * factor
  mine <- x$samples$source_id == source & !is.na(values)
  names <- vapply(strsplit(stacks(x), " < ", fixed = TRUE), function(s) paste(rev(s), collapse = ";"), "")
  sums <- tapply(values[mine], names[mine], sum)
  in_order(stats::setNames(as.numeric(sums), names(sums)))
}
