# The page in a browser: Chromium opens it and prints the document that its scripts made.

skip_without_chromium <- function() {
  testthat::skip_on_cran()
  testthat::skip_on_os("windows")
  testthat::skip_if_not_installed("jsonlite")
  if (find_chromium() == "") {
    testthat::skip("Chromium is not installed: the page is not tested in a browser")
  }
}

# That of PROFILE_TEST_CHROMIUM, or one in the path. "" if there is none.
find_chromium <- function() {
  programs <- Sys.which(c("chromium", "chromium-browser", "google-chrome"))
  programs <- c(Sys.getenv("PROFILE_TEST_CHROMIUM"), programs)
  c(unname(programs[programs != ""]), "")[[1]]
}

# The HTML of a page with this hash, after its scripts have run.
dump_page <- function(path, hash) {
  home <- withr::local_tempdir()
  out <- file.path(home, "out")
  arguments <- c(
    "--headless=new", "--no-sandbox", "--disable-gpu", paste0("--user-data-dir=", shQuote(home)),
    # Scripts have this long, in milliseconds; the clock is advanced when they wait.
    "--virtual-time-budget=20000", "--dump-dom", shQuote(paste0("file://", normalizePath(path), "#", hash))
  )
  # On a busy machine Chromium may advance its clock before the data are decompressed.
  for (attempt in 1:5) {
    system2(find_chromium(), arguments, stdout = out, stderr = FALSE, timeout = 120)
    html <- readChar(out, file.size(out), useBytes = TRUE)
    if (grepl("<body class=\"ready\">", html, fixed = TRUE, useBytes = TRUE)) break
  }
  Encoding(html) <- "UTF-8"
  html
}

unescape_html <- function(text) {
  from <- c("&lt;", "&gt;", "&quot;", "&nbsp;", "&amp;")
  to <- c("<", ">", "\"", "\u00a0", "&")
  for (i in seq_along(from)) {
    text <- gsub(from[[i]], to[[i]], text, fixed = TRUE)
  }
  text
}

# The values of an attribute, in each of the texts; NA where it is missing.
html_attribute <- function(texts, name) {
  pattern <- paste0(" ", name, "=\"([^\"]*)\"")
  found <- regexpr(pattern, texts, perl = TRUE)
  out <- rep(NA_character_, length(texts))
  start <- attr(found, "capture.start")
  length <- attr(found, "capture.length")
  has <- found > 0
  out[has] <- unescape_html(substring(texts, start, start + length - 1)[has])
  out
}

# The table of figures: names, files and lines as text, and the exact values of its columns.
page_table <- function(html) {
  # Names may contain line ends.
  table <- substring(html, regexpr("<table[^>]* id=\"figures\"", html))
  body <- sub("(?s)^.*?<tbody>", "", sub("(?s)</table>.*$", "", table, perl = TRUE), perl = TRUE)
  rows <- strsplit(body, "</tr>", fixed = TRUE)[[1]]
  rows <- rows[grepl("<tr", rows, fixed = TRUE)]
  column <- function(id) {
    cells <- regmatches(rows, regexpr(paste0("<td data-column=\"", id, "\"[^>]*>"), rows))
    # A column is missing from the table, or the table is empty.
    if (length(cells) > 0 || length(rows) == 0) as.numeric(html_attribute(cells, "data-value"))
  }
  heads <- substring(rows, regexpr("<th ", rows, fixed = TRUE))
  list(
    name = html_attribute(heads, "data-name"),
    filename = html_attribute(heads, "data-file"),
    line = as.integer(html_attribute(heads, "data-line")),
    self = column("self"), total = column("total"), bytes = column("bytes")
  )
}

page_selftest <- function(html) {
  json <- sub("</pre>.*$", "", sub("^.*<pre id=\"selftest\">", "", html))
  jsonlite::fromJSON(unescape_html(json), simplifyVector = TRUE)
}
