# The page in a browser: one Chromium process for all pages of a test file, which is controlled by messages of the
# DevTools protocol (https://chromedevtools.github.io/devtools-protocol/). The messages are passed in two pipes, as JSON
# followed by a zero byte. Chromium ends when its pipe is closed, and therefore also when this process ends for any
# reason.

skip_without_chromium <- function() {
  testthat::skip_on_cran()
  testthat::skip_on_os("windows")
  testthat::skip_if_not_installed("jsonlite")
  if (find_chromium() == "") {
    testthat::skip("Chromium is not installed: the page is not tested in a browser")
  }
}

# The program in PROFILE_TEST_CHROMIUM, or a program in the path; "" if none is found.
find_chromium <- function() {
  programs <- Sys.which(c("chromium", "chromium-browser", "google-chrome"))
  programs <- c(Sys.getenv("PROFILE_TEST_CHROMIUM"), programs)
  c(unname(programs[programs != ""]), "")[[1]]
}

browser <- new.env()

start_browser <- function() {
  browser$dir <- dir <- tempfile("browser-")
  dir.create(dir)
  at <- function(name) shQuote(file.path(dir, name))
  system2("mkfifo", c(at("to"), at("from")))
  command <- paste(
    # A browser that hangs is ended; its pipe is then closed, too.
    "exec timeout -k 5 540", shQuote(find_chromium()), "--headless=new --no-sandbox --disable-gpu --remote-debugging-pipe",
    # Pages in the background are not slowed down.
    "--disable-background-timer-throttling --disable-renderer-backgrounding --disable-backgrounding-occluded-windows",
    paste0("--user-data-dir=", at("home")), "3<", at("to"), "4>", at("from"), ">", at("output"), "2>&1 < /dev/null"
  )
  system2("sh", c("-c", shQuote(command)), wait = FALSE)
  browser$to <- fifo(file.path(dir, "to"), "wb", blocking = TRUE)
  browser$from <- fifo(file.path(dir, "from"), "rb", blocking = TRUE)
  browser$received <- raw()
  browser$asked <- 0
  withr::defer(
    {
      close(browser$to)
      close(browser$from)
      browser$to <- NULL
      unlink(dir, recursive = TRUE)
    },
    testthat::teardown_env()
  )
}

# The result of a method with these parameters; `session` is a page.
ask_browser <- function(method, ..., session = NULL) {
  if (is.null(browser$to)) {
    start_browser()
  }
  browser$asked <- browser$asked + 1
  message <- list(id = browser$asked, method = method, params = rlang::set_names(list(...), ...names()))
  message$sessionId <- session
  writeBin(c(charToRaw(jsonlite::toJSON(message, auto_unbox = TRUE, digits = NA)), as.raw(0)), browser$to)
  repeat {
    answer <- next_message()
    # Other messages are events.
    if (identical(as.numeric(answer$id), browser$asked)) break
  }
  if (!is.null(answer$error)) {
    stop(method, ": ", answer$error$message)
  }
  answer$result
}

next_message <- function() {
  while (!any(end <- browser$received == 0)) {
    bytes <- readBin(browser$from, "raw", 2^16)
    if (length(bytes) == 0) {
      output <- readLines(file.path(browser$dir, "output"), warn = FALSE)
      stop("The browser has ended:\n", paste(utils::tail(output, 20), collapse = "\n"))
    }
    browser$received <- c(browser$received, bytes)
  }
  end <- which(end)[[1]]
  json <- rawToChar(browser$received[seq_len(end - 1)])
  Encoding(json) <- "UTF-8"
  browser$received <- browser$received[-seq_len(end)]
  jsonlite::fromJSON(json, simplifyVector = FALSE)
}

# The HTML of a page with this hash, after its scripts have run.
dump_page <- function(path, hash) {
  evaluate_in_page(path, hash, "document.documentElement.outerHTML")
}

# The sums and trees of a page, see page/selftest.js.
page_selftest <- function(path) {
  code <- paste(readLines(test_path("page", "selftest.js")), collapse = "\n")
  json <- evaluate_in_page(path, "", paste0("(() => {", code, "\nreturn JSON.stringify(selftest(app.model)); })()"))
  jsonlite::fromJSON(json, simplifyVector = TRUE)
}

# The value of an expression in a page, after its scripts have run.
evaluate_in_page <- function(path, hash, expression) {
  page <- ask_browser("Target.createTarget", url = "about:blank")$targetId
  on.exit(ask_browser("Target.closeTarget", targetId = page))
  session <- ask_browser("Target.attachToTarget", targetId = page, flatten = TRUE)$sessionId
  ask_browser("Page.navigate", url = paste0("file://", normalizePath(path), "#", hash), session = session)
  # The data are decompressed after the page has been loaded.
  ready <- "new Promise((resolve) => {
    const look = () => {
      if (document.body?.classList.contains('ready')) resolve();
      else setTimeout(look, 5);
    };
    look();
  })"
  ask_browser("Runtime.evaluate", expression = ready, awaitPromise = TRUE, session = session)
  answer <- ask_browser(
    "Runtime.evaluate", expression = expression, returnByValue = TRUE, awaitPromise = TRUE, session = session
  )
  if (!is.null(answer$exceptionDetails)) {
    stop(answer$exceptionDetails$exception$description)
  }
  answer$result$value
}

unescape_html <- function(text) {
  from <- c("&lt;", "&gt;", "&quot;", "&nbsp;", "&amp;")
  to <- c("<", ">", "\"", "\u00a0", "&")
  for (i in seq_along(from)) {
    text <- gsub(from[[i]], to[[i]], text, fixed = TRUE)
  }
  text
}

# The HTML of a page of `x` that shows the whole table of the type that summary() shows by default.
dump_table <- function(x, hash = "", ...) {
  path <- browser_page(x, ...)
  dump_page(path, paste0("tab=table&rows=all&type=", max(page_data(path)$type, 0), hash))
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

# ---- A profile and what its page shows ----------------------------------------

read_for_page <- function(path) {
  suppressWarnings(read_profile(path), classes = "profile_warning")
}

# The path of a page, which is removed at the end of the test.
browser_page <- function(x, ..., .local_envir = parent.frame()) {
  path <- withr::local_tempfile(fileext = ".html", .local_envir = .local_envir)
  write_profile(x, path, ...)
  path
}

expect_shown_functions <- function(file) {
  x <- read_for_page(file)
  functions <- summary(x)$by_function
  shown <- page_table(dump_table(x))
  name <- enc2utf8(as.character(functions$name))
  name[is.na(name)] <- "<unknown>"
  expect_shown(shown, functions, shown$name, name, basename(file))
  # The table has the same order as summary(): by self, then by total.
  testthat::expect_false(is.unsorted(-shown$self), label = basename(file))
}

expect_shown_lines <- function(file) {
  x <- read_for_page(file)
  lines <- summary(x)$by_line
  if (nrow(lines) == 0) {
    return()
  }
  shown <- page_table(dump_table(x, "&by=line"))
  expected <- paste0(enc2utf8(lines$filename), ":", lines$line)
  expect_shown(shown, lines, paste0(shown$filename, ":", shown$line), expected, basename(file))
}

# Expects that the rows of a table equal the rows of a summary, by key. Bytes are as recorded by Rprof.
expect_shown <- function(shown, summary, key, expected, label) {
  testthat::expect_identical(sort(key, method = "radix"), sort(expected, method = "radix"), label = label)
  at <- match(key, expected)
  testthat::expect_equal(shown$self, summary$self[at], label = label)
  testthat::expect_equal(shown$total, summary$total[at], label = label)
  if (!is.null(summary[["self_alloc"]])) {
    testthat::expect_equal(shown$bytes, summary$self_alloc[at], label = label)
  }
}
