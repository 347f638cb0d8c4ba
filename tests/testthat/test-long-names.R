# tier: gate
# Names and other texts of up to a million characters are truncated before they are escaped, so that the time does not
# depend on their length.

long <- list(
  letters = strrep("a", 2e5), escapes = strrep("\001", 1e6), breaks = strrep("\n", 2e5), blanks = strrep("a ", 1e5),
  mixed = strrep("\u00e9\u202e", 1e5), combining = strrep("\u0301", 2e5), slashes = strrep("/", 2e5),
  package = paste0(strrep("a/", 1e5), "R/a.R"), colons = strrep("a::", 1e5), quotes = strrep("\"\\", 1e5)
)

# Every text of this profile is `text`.
profile_of_text <- function(text) {
  x <- small_profile()
  x$sources$source_type <- text
  x$sources$source_uri <- text
  x$sample_values$type <- text
  x$sample_values$unit <- text
  x$functions$name[[1]] <- text
  x$functions$system_name[[1]] <- text
  x$functions$filename <- text
  x
}

# The lines that each function shows.
shown_lines <- function(x, width = 80) {
  suppressMessages(
    list(
      print = format(x, width = width), summary = format(summary(x), width = width),
      describe = format(describe_profile(x), width = width), tree = format(call_tree(x), width = width),
      lines = format(call_tree(x, "line"), width = width), packages = format(call_tree(x, "package"), width = width),
      callers = format(callers(x, x$functions$name[[1]]), width = width), compare = format(compare_profiles(x, x), width = width)
    ),
    classes = "profile_message_source_files"
  )
}

test_that("text is cut before it is escaped", {
  sizes <- integer()
  original <- replace_unprintable
  replace_function("replace_unprintable", function(text, escape) {
    sizes <<- c(sizes, nchar(text))
    original(text, escape)
  })
  withr::local_pdf(withr::local_tempfile(fileext = ".pdf"))
  for (text in long[c("escapes", "breaks", "mixed")]) {
    x <- profile_of_text(text)
    sizes <- integer()
    shown_lines(x)
    expect_gt(length(sizes), 0)
    expect_lte(max(sizes), characters_for(80) + 1)
    sizes <- integer()
    plot(x)
    plot(x, view = "time")
    suppressMessages(plot(x, view = "lines"))
    format(profile_page(x, title = text))
    try(callers(x, paste0(text, "b")), silent = TRUE)
    try(summary(x, type = paste0(text, "b")), silent = TRUE)
    try(annotate_lines(x, paste0(text, "b")), silent = TRUE)
    expect_gt(length(sizes), 0)
    expect_lte(max(sizes), 2001)
    # For lines of any width.
    sizes <- integer()
    shown_lines(x, width = 1e6)
    expect_lte(max(sizes), most_characters + 1)
  }
})

test_that("lines fit, and show the start of a name and the end of a path", {
  for (text in long) {
    lines <- shown_lines(profile_of_text(text), 60)
    expect_lte(max(nchar(enc2native(unlist(lines)), "width")), 60)
    expect_lte(max(nchar(unlist(lines))), 400)
  }
  skip_if_not(l10n_info()[["UTF-8"]])
  lines <- shown_lines(profile_of_text(long$escapes), 60)
  expect_equal(lines$print[[6]], paste0("   66.7    66.7  ", strrep("\\001", 10), "\\0\u2026"))
  expect_equal(lines$callers[[3]], paste0("  66.7   66.7      2  ", strrep("\\001", 9), "\\\u2026"))
  x <- profile_of_text(paste0(strrep("a", 1e6), "/end.R"))
  expect_match(shown_lines(x)$print[[4]], "\u2026a+/end[.]R$")
})

test_that("texts are cut at their end, start or middle", {
  texts <- c("abcdef", "\u00e4\u00f6\u00fc\u00df\u00e9\u00e8", "abc", "", NA)
  expect_equal(cut_text(texts, 4, "end", "~"), c("abcd~", "\u00e4\u00f6\u00fc\u00df~", "abc", "", NA))
  expect_equal(cut_text(texts, 4, "start", "~"), c("~cdef", "~\u00fc\u00df\u00e9\u00e8", "abc", "", NA))
  expect_equal(cut_text(texts, 4, "middle", "~"), c("abc~f", "\u00e4\u00f6\u00fc~\u00e8", "abc", "", NA))
  expect_equal(cut_text(texts, 6, "end", "~"), texts)
  expect_equal(nchar(printable(strrep("\001", 1e6), 100, ellipsis = "~")), 401)
  expect_equal(printable(c("a\nb", NA, "\u202e\u00e4\a"), 3), c("a\\nb", NA, "\\u202e\u00e4\\a"))
  expect_equal(shown_name(strrep("\001", 1e6), 10, ellipsis = "~"), "\\001\\001\\~")
  expect_equal(shown_name(strrep("\001", 1e6), 10, "start", "~"), "~1\\001\\001")
  # Invalid text, and characters without a width, which a locale without them shows as escapes.
  broken <- rawToChar(rep(as.raw(0xe4), 1e5))
  expect_equal(shown_name(`Encoding<-`(broken, "UTF-8"), 9, ellipsis = "~"), "<e4><e4>~")
  expect_equal(shown_name(`Encoding<-`(broken, "bytes"), 9, ellipsis = "~"), "<e4><e4>~")
  skip_if_not(l10n_info()[["UTF-8"]])
  expect_equal(nchar(shown_name(paste0("a", strrep("\u0301", 1e6)), 10, ellipsis = "~")), characters_for(10) + 1)
})

test_that("messages keep both ends of a sentence", {
  x <- profile_of_text(long$breaks)
  error <- tryCatch(callers(x, paste0(long$breaks, "b")), error = identity)
  message <- conditionMessage(error)
  expect_match(message, "^The profile has no function `\\\\n\\\\n")
  expect_match(message, "\\\\nb`[.]$")
  expect_lte(nchar(message), 5000)
  # Similar names are not searched in or with names that no message can show.
  x$functions$name[[2]] <- "short_name"
  expect_error(callers(x, "name"), "Similar names: `short_name`[.]")
  expect_equal(similar_names("a", c("ba", strrep("a", 201), "A")), c("A", "ba"))
  expect_equal(similar_names(strrep("a", 201), strrep("a", 202)), character())
})

test_that("code that is suggested is complete, or left out", {
  next_calls <- function(text) suppressMessages(as.list(describe_profile(profile_of_text(text))))$next_calls
  expect_equal(next_calls(long$letters), "profile_page(x)")
  name <- paste0(strrep("\001", 400), "\"\\")
  expect_identical(eval(parse(text = next_calls(name)[[1]])[[1]][[3]]), name)
})

test_that("boxes of long names have a colour", {
  rows <- list(name = unlist(long, use.names = FALSE), package = NA_character_, filename = unlist(long, use.names = FALSE))
  expect_warning(colours <- fills(rows), NA)
  expect_false(anyNA(colours))
})

test_that("a long unit is unknown", {
  expect_equal(profile:::format_value(1, strrep("\u00e9", 1e6)), "1")
  expect_equal(profile:::format_value(2048, strrep("b", 1e6)), "2048")
  expect_equal(profile:::format_value(1e9, "nanoseconds"), "1s")
})

test_that("packages of long paths are found", {
  package <- package_of_file(
    c(long$package, paste0(long$slashes, "stats/R/a.R"), long$letters, "x/R/R/a.R", "a/stats/R/R/R/b.R", "/R/a.R", "stats/R/a.R"),
    FALSE, NULL
  )
  expect_equal(package, c(NA, "stats", NA, NA, NA, NA, "stats"))
})

test_that("rows of equal changes are in the order of their names, however long these are", {
  names <- paste0(c("ba", "ab", "aa"), strrep("x", 2e5))
  of <- function(n) read_collapsed(write_file(paste(names, n)))
  expect_identical(compare_profiles(of(1), of(2))$name, sort(names, method = "radix"))
})
