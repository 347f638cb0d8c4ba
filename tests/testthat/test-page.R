# tier: fast
# The content of pages, and how they are shown in R. The page itself is tested in a browser.

test_that("versions and dms have the same page", {
  expect_same <- function(x, y) expect_identical(page_of(x)$json, page_of(y)$json)
  x <- read_rprof(rprof_path("basic_line.out"))
  expect_same(profile_v2_from_v1(profile_v1_from_v2(x)), profile_v1_from_v2(x))
  skip_if_not_installed("dm")
  expect_same(dm_from_profile(x), x)
})

test_that("the order of samples is left out if it is not wanted or not known", {
  x <- small_profile()
  expect_length(page_of(x)$order, 1)
  expect_length(page_of(x, timeline = FALSE)$order, 0)
  expect_length(page_of(read_pprof(data_path("pprof", "go_cpu.pb.gz")))$order, 0)
  x$sample_values$value[2] <- 2
  expect_length(page_of(x)$order, 0)
})

test_that("the page of processes that worked together has the title of the code, and their names", {
  x <- profile_of_processes(list(master = 0, "worker 1 of 1" = 1), recorded = c(NA, 4))
  expect_identical(page_of(x)$title, "pid:100 and 1 more")
  x$.comments <- tibble::tibble(source_id = 1L, comment = "parallel::parLapply(cluster, x, f)")
  data <- page_of(x)
  expect_identical(data$title, "parallel::parLapply(cluster, x, f)")
  expect_identical(vapply(data$sources, `[[`, "", "name"), c("master, pid 100", "worker 1 of 1, pid 101"))
  expect_identical(lapply(data$sources, `[[`, "seconds"), list(NULL, 4L))
  x$.source_attributes <- NULL
  data <- page_of(x)
  expect_identical(data$title, "pid:100 and 1 more")
  expect_false("seconds" %in% names(data$sources[[2]]))
})

test_that("packages, plumbing and source text are in a page", {
  folder <- withr::local_tempdir()
  file <- file.path(folder, "a.R")
  writeLines(c("f <- function() {", "  sort(1)", "}"), file)
  x <- small_profile()
  x$functions$filename[x$functions$filename == "a.R"] <- file
  x$functions$name[x$functions$filename == ""] <- "lapply"
  x$functions$name[[1]] <- "dplyr::filter"
  x$sources$source_timestamp <- as.numeric(Sys.time()) + 100
  x <- mark_session(x)
  data <- page_of(x)
  node <- cumsum(unlist(data$plumbing))
  name <- data$functions$name[data$frames$`function`[data$nodes$frame[node + 1] + 1] + 1]
  expect_identical(data$strings[name + 1], "lapply")
  expect_equal(data$strings[data$mine + 1], file)
  package <- data$strings[data$functions$package + 1]
  expect_equal(package[match("dplyr::filter", data$strings[data$functions$name + 1])], "dplyr")
  expect_equal(data$strings[data$texts[[1]]$file + 1], file)
  expect_equal(data$texts[[1]]$text, "f <- function() {\n  sort(1)\n}\n")
  expect_false(data$texts[[1]]$changed)
  x$sources$source_timestamp <- 0
  expect_true(page_of(x)$texts[[1]]$changed)
  # Text in a profile takes precedence.
  x$.source_text <- tibble::tibble(filename = file, text = "as it was\n")
  expect_equal(page_of(x)$texts[[1]]$text, "as it was\n")
  y <- x
  y$.source_text$text <- "in the base"
  expect_equal(page_of(x, base = y)$texts[[1]]$text, "as it was\n")
})

test_that("a heap snapshot has the kinds of its frames, and nothing of functions", {
  snapshots <- heap_page_snapshots()
  data <- page_of(snapshots$after)
  name <- data$strings[data$functions$name[data$frames$`function` + 1] + 1]
  kind <- data$strings[data$frames$kind + 1]
  locations <- snapshots$after$locations
  expect_equal(kind, locations$.frame_type[match(name, snapshots$after$functions$name)])
  # Names of types, such as `numeric`, are also names of functions of base.
  expect_setequal(data$functions$package, 0)
  expect_length(data$plumbing, 0)
  expect_length(data$mine, 0)
  expect_length(data$order, 0)
  expect_length(data$texts, 0)
  expect_equal(data$types[[data$type + 1]]$name, "inuse_space")
  expect_equal(data$sources[[1]]$type, "heap")
  expect_identical(data$heap, data_model()$heap_frames$frame_type)
  figures <- page_figures(data, data$type + 1)$by_function
  expect_equal(figures$total[figures$key == "$fits <list>"], 9.4e6)
  # pprof has no place for kinds.
  path <- withr::local_tempfile(fileext = ".pb.gz")
  write_pprof(snapshots$after, path)
  back <- page_of(read_pprof(path))
  expect_equal(back$strings[back$frames$kind + 1], rep("", length(back$frames$kind)))
  expect_null(back$heap)
  figures <- page_figures(back, back$type + 1)$by_function
  expect_equal(figures$total[figures$key == "$fits <list>"], 9.4e6)
})

test_that("the page of a heap snapshot has the title of its process", {
  x <- heap_page_snapshots()$after
  title <- function(x, ...) page_of(x, ...)$title
  expect_identical(title(x), "Memory of R, pid 124")
  expect_identical(title(combine_profiles(list(x, x))), "Memory of R, pid 124 and 1 more")
  expect_identical(title(x, base = heap_page_snapshots()$before), "Memory of R, pid 124, compared with Memory of R, pid 123")
  x$.source_attributes <- tibble::tibble(
    source_id = x$sources$source_id, key = "profile.process.script", type = "string", unit = "", value = "report.R"
  )
  expect_identical(title(x), "Memory of report.R, pid 124")
  x$sources$source_uri <- NA_character_
  expect_identical(title(x), "Memory of report.R")
  # Without sources, it is not known to be one.
  x$sources <- x$sources[0, ]
  expect_identical(page_title(x), "Profile")
})

test_that("heap snapshots are compared without a verdict about runs", {
  snapshots <- heap_page_snapshots()
  of <- function(x) combine_profiles(rep(list(x), 3))
  data <- page_of(of(snapshots$after), base = of(snapshots$before))
  expect_null(data$functions$found)
  expect_equal(lengths(lapply(data$sources, `[[`, "base")), rep(1, 6))
  data <- page_of(snapshots$after, base = snapshots$before)
  fits <- function(source) {
    figures <- page_figures(data, data$type + 1, source)$by_function
    figures$total[figures$key == "$fits <list>"]
  }
  expect_equal(c(fits(1), fits(2)), c(9.4e6, 4e6))
})

test_that("names that differ in a key have one in common if there are more than four", {
  entries <- function(name, ids, inside) paste0("root globalenv;binding $", name, ";binding $", ids, " <R6>;", inside)
  paths <- c(
    entries("cache", paste0("key", 1:20), "binding $value;type numeric"),
    # Of the other entries, each has a few names, which are many below what is shown as one.
    entries("cache", paste0("key", 1:3), paste0("binding $id", 1:3, ";type numeric")),
    entries("cache", paste0("key", 4:6), paste0("binding $id", 4:6, ";type numeric")),
    entries("few", paste0("key", 1:4), "type numeric"), entries("words", letters[1:6], "type numeric"),
    "root globalenv;binding $cache;binding $key21 <lm>;type list"
  )
  x <- heap_page_profile(paths, seq_along(paths) * 100, rep(1, length(paths)))
  data <- page_of(x)
  nodes <- page_nodes(data)
  nodes$alike <- data$strings[data$frames$alike[nodes$frame] + 1]
  alike <- unique(nodes[which(nodes$alike != ""), c("depth", "alike")])
  expect_identical(alike$alike[order(alike$depth)], c("$key* <R6> (20)", "$id* (6)"))
  cache <- which(nodes$name == "$cache")
  expect_identical(which(nodes$alike == "$key* <R6> (20)"), which(nodes$parent == cache & grepl("R6", nodes$name)))
  # The same names elsewhere have none.
  few <- which(nodes$parent == which(nodes$name == "$few"))
  expect_identical(nodes$alike[few], rep("", 4))
  # Both sides of a comparison count.
  data <- page_of(heap_page_profile(paths[1:3], 1:3, 1:3), base = heap_page_profile(paths[3:6], 1:4, 1:4))
  expect_setequal(data$strings[data$frames$alike + 1], c("", "$key* <R6> (6)"))
  # Calls are not keys, also if their names look like them.
  expect_null(page_of(read_collapsed(write_file(paste0("$f1;$g", 1:5, " 1"))))$frames$alike)
})

# ---- Texts -------------------------------------------------------------------------

hostile <- c(
  "</script><script>alert(1)</script>", "<!--<script>", "-->", "\"'`&amp;", "\u2028\u2029", "\u202egnp.exe", "]]>",
  "\\\"\\u0000", "</title>", "</style>", "<iframe srcdoc='x'>", "%s{x}", "\U1f600"
)

# A profile whose names, files, types, packages, texts and URI are these.
hostile_profile <- function(texts = hostile) {
  n <- length(texts)
  x <- small_profile()
  x$functions <- tibble::tibble(
    function_id = seq_len(n), name = texts, system_name = texts, filename = texts, start_line = 0L
  )
  x$functions$.package <- texts
  x$locations <- tibble::tibble(location_id = seq_len(n), function_id = seq_len(n), line = 1L, .frame_type = texts)
  x$samples <- tibble::tibble(sample_id = 1L, source_id = 1L)
  x$sample_values <- tibble::tibble(sample_id = 1L, type = texts, unit = texts, value = 1)
  x$sample_locations <- tibble::tibble(sample_id = 1L, depth = seq_len(n), location_id = seq_len(n))
  x$.files <- NULL
  x$sources$source_uri <- texts[[1]]
  x$.source_text <- tibble::tibble(filename = texts, text = texts)
  x
}

test_that("hostile texts stay texts", {
  x <- hostile_profile()
  path <- withr::local_tempfile(fileext = ".html")
  for (title in hostile) {
    write_profile(x, path, title = title)
    html <- page_html(path)
    data <- page_data(path)
    expect_identical(data$title, title)
    tags <- regmatches(html, gregexpr("<[!/]?(script|style|title|iframe)[^>]*>|<!--|-->", html))[[1]]
    expect_equal(tags, c(
      "<title>", "</title>", "<style>", "</style>",
      "<script id=\"data\" type=\"application/octet-stream\">", "</script>",
      "<script id=\"snapshot\" type=\"application/octet-stream\">", "</script>", "<script>", "</script>"
    ))
    shown <- sub("</title>.*", "", sub(".*<title>", "", html))
    for (pair in list(c("&lt;", "<"), c("&gt;", ">"), c("&amp;", "&"))) {
      shown <- gsub(pair[[1]], pair[[2]], shown, fixed = TRUE)
    }
    expect_identical(shown, title)
  }
  all <- c(hostile, strrep("</script>", 1e5))
  data <- page_of(hostile_profile(all))
  expect_true(all(all %in% data$strings))
  expect_setequal(data$strings[data$functions$name + 1], all)
  expect_setequal(data$strings[data$functions$package + 1], all)
  expect_setequal(data$strings[data$frames$kind + 1], all)
  expect_setequal(vapply(data$types, `[[`, "", "name"), all)
  expect_identical(data$strings[vapply(data$texts, `[[`, 0L, "file") + 1], vapply(data$texts, `[[`, "", "text"))
})

test_that("texts in other encodings and of invalid bytes are shown", {
  latin1 <- "gr\xfc\xdfe"
  Encoding(latin1) <- "latin1"
  invalid <- "a\xffb"
  bytes <- "c\xfe"
  Encoding(bytes) <- "bytes"
  x <- small_profile()
  x$functions$name[[1]] <- latin1
  x$.source_text <- data.frame(filename = "a.R", text = invalid)
  data <- page_of(x, title = latin1)
  expect_true("gr\u00fc\u00dfe" %in% data$strings)
  expect_equal(data$title, "gr\u00fc\u00dfe")
  expect_equal(data$texts[[1]]$text, "a<ff>b")
  expect_error(page_of(x, title = bytes), class = "profile_error_argument")
  x$.source_text$text <- bytes
  expect_error(page_of(x), class = "profile_error_invalid")
})

test_that("equal profiles have equal pages", {
  x <- read_rprof(rprof_path("basic_all.out"))
  expect_identical(profile_page(x)$html, profile_page(x)$html)
})

# ---- Privacy -----------------------------------------------------------------------

test_that("source_text = FALSE leaves out source text and paths", {
  x <- small_profile()
  x$functions <- x$functions[c(1, 1, 1, 2, 3), ]
  x$functions$function_id <- 1:5
  x$functions$filename <- c("/home/jane/secret/a.R", "C:\\Users\\jane\\a.R", "/home/jane/secret/a.R", "", "~/jane/dir/")
  x$locations <- tibble::tibble(location_id = 1:5, function_id = 1:5, line = 1L)
  x$sample_locations <- tibble::tibble(sample_id = rep(1:3, each = 5), depth = rep(1:5, 3), location_id = rep(1:5, 3))
  x$.files <- NULL
  x$sources$source_uri <- "/home/jane/Rprof.out"
  x$.source_text <- tibble::tibble(filename = "/home/jane/secret/a.R", text = "password <- 1")
  with <- page_of(x, source_text = TRUE)
  expect_match(with$json, "/home/jane/secret/a.R", fixed = TRUE)
  expect_match(with$json, "password <- 1", fixed = TRUE)
  without <- page_of(x, source_text = FALSE)
  for (part in c("jane", "secret", "Users", "password", "home")) {
    expect_no_match(without$json, part, fixed = TRUE)
  }
  expect_equal(without$strings[without$functions$file + 1], c("dir/", "", "a.R", "a.R #1"))
  # The figures of lines are the same.
  expect_equal(page_figures(without, 1)$by_line$total, page_figures(with, 1)$by_line$total)
  expect_length(without$texts, 0)
  # Real files: no directory of any path.
  for (path in c(rprof_path("dplyr_all.out"), data_path("pprof", "go_cpu.pb.gz"))) {
    x <- read_profile(path)
    folders <- setdiff(unique(dirname(x$functions$filename)), c(".", "", "/"))
    expect_gt(length(folders), 0)
    json <- page_of(x, source_text = FALSE)$json
    for (folder in folders) {
      expect_no_match(json, paste0(folder, "/"), fixed = TRUE)
    }
  }
})

test_that("labels are in a page unless they are left out", {
  x <- small_profile()
  x$.labels <- tibble::tibble(
    sample_id = c(1L, 1L), key = c("route", "bytes"), str = c("/secret", NA), num = c(NA, 5), unit = NA_character_
  )
  data <- page_of(x)
  expect_equal(data$labels, list(list(key = "route", value = "/secret", set = 0L)))
  expect_equal(sum(page_self(data, 1)), sum(page_self(page_of(x, labels = FALSE), 1)))
  expect_no_match(page_of(x, labels = FALSE)$json, "route|secret")
  expect_error(profile_page(x, labels = "route"), class = "profile_error_argument")
})

test_that("attributes, comments and own tables are not in a page", {
  x <- small_profile()
  x$.comments <- tibble::tibble(source_id = 1L, comment = "secret")
  x$.mine <- tibble::tibble(a = "secret")
  x$samples$.mine <- "secret"
  validate_profile(x)
  expect_no_match(page_of(x)$json, "secret", fixed = TRUE)
})

# ---- Showing -----------------------------------------------------------------------

test_that("printing opens the viewer, or the browser, or says where the file is", {
  page <- profile_page(small_profile(), title = "my \033 page")
  shown <- list()
  show <- function(url, height = NULL) shown[[length(shown) + 1]] <<- list(url, height)
  withr::local_options(rlang_interactive = TRUE, viewer = show, browser = function(url) shown[[length(shown) + 1]] <<- url)
  expect_silent(expect_identical(expect_invisible(print(page)), page))
  expect_equal(shown[[1]][[2]], "maximize")
  expect_identical(file_bytes(shown[[1]][[1]]), page$html)
  # Viewers show files in this directory only.
  expect_true(startsWith(shown[[1]][[1]], tempdir()))
  for (viewer in list(NULL, "viewer")) {
    withr::local_options(viewer = viewer)
    expect_silent(print(page))
    expect_match(shown[[length(shown)]], "profile-.*[.]html$")
  }
  expect_error(format(page, 1), class = "rlib_error_dots_nonempty")
})

test_that("without a display a page is described, and nothing is written", {
  page <- profile_page(small_profile(), title = "my \033 page")
  withr::local_dir(withr::local_tempdir())
  printed <- function() utils::capture.output(expect_identical(expect_invisible(print(page)), page))
  never <- function(...) stop("shown")
  withr::local_options(rlang_interactive = FALSE, viewer = never, browser = never)
  lines <- printed()
  expect_match(lines[[1]], "^<profile page> my \\\\033 page, [0-9.]+kB$")
  expect_match(lines[[2]], "`write_profile(x, \"page.html\")` writes a file", fixed = TRUE)

  # Over ssh, in an interactive session.
  skip_on_os(c("windows", "mac"))
  withr::local_options(rlang_interactive = TRUE, viewer = NULL, browser = "xdg-open")
  withr::local_envvar(DISPLAY = "", WAYLAND_DISPLAY = "")
  expect_identical(printed(), lines)
  expect_identical(dir(), character())
})

test_that("documents of knitr embed a page", {
  skip_if_not_installed("knitr")
  page <- profile_page(hostile_profile(), title = "\"<a>&\n")
  frame <- with_output("html", knitr::knit_print(page, list(out.height = 321)))
  frame <- unclass(frame)[[1]]
  expect_no_match(frame, "\n\n")
  expect_match(frame, "height: 321px;", fixed = TRUE)
  attributes <- regmatches(frame, gregexpr("[a-z]+=\"[^\"]*\"", frame))[[1]]
  value <- function(name) {
    text <- sub("\"$", "", sub("^[a-z]+=\"", "", attributes[startsWith(attributes, name)]))
    for (pair in list(c("&#9;", "\t"), c("&#10;", "\n"), c("&quot;", "\""), c("&amp;", "&"))) {
      text <- gsub(pair[[1]], pair[[2]], text, fixed = TRUE)
    }
    text
  }
  expect_equal(value("title"), "Profile: \"<a>&\n")
  expect_identical(value("srcdoc"), page_html(page))
  expect_match(unclass(with_output("html", knitr::knit_print(page)))[[1]], "height: 600px;", fixed = TRUE)
  expect_match(unclass(with_output("html", knitr::knit_print(page, list(out.height = "50vh"))))[[1]], "height: 50vh;", fixed = TRUE)
  sized <- unclass(with_output("html", knitr::knit_print(page, list(out.width = "70%", out.height = "50vh"))))[[1]]
  expect_match(sized, "width: 70%; height: 50vh;", fixed = TRUE)
  expect_match(knitr::knit_print(page), "in HTML documents only")
  for (format in c("latex", "gfm", "markdown_strict", "epub3")) {
    expect_match(with_output(format, knitr::knit_print(page)), "in HTML documents only", info = format)
  }
})

test_that("a self-contained document shows the page", {
  skip_on_cran()
  skip_if_not_installed("rmarkdown")
  if (!rmarkdown::pandoc_available()) {
    skip("pandoc is not installed: documents with a page are not tested")
  }
  folder <- withr::local_tempdir()
  file <- file.path(folder, "doc.Rmd")
  writeLines(c(
    "---", "title: x", "output:", "  html_document:", "    self_contained: true", "---", "",
    "```{r, echo = FALSE, out.height = \"400px\"}", "page", "```", "", "Text after it."
  ), file)
  page <- profile_page(small_profile())
  out <- rmarkdown::render(file, quiet = TRUE, envir = rlang::env(page = page))
  html <- page_html(out)
  srcdoc <- sub("\".*", "", sub(".* srcdoc=\"", "", html))
  # Replaces character references that pandoc writes.
  for (pair in list(c("&#9;", "\t"), c("&#10;", "\n"), c("&quot;", "\""), c("&#39;", "'"), c("&lt;", "<"), c("&gt;", ">"), c("&amp;", "&"))) {
    srcdoc <- gsub(pair[[1]], pair[[2]], srcdoc, fixed = TRUE)
  }
  expect_identical(srcdoc, page_html(page))
})

# ---- Errors ------------------------------------------------------------------------

test_that("wrong arguments are errors", {
  x <- small_profile()
  bad <- x
  bad$locations$line[[1]] <- -1L
  text <- function(text) {
    x$.source_text <- text
    x
  }
  path <- withr::local_tempfile(fileext = ".html")
  errors <- errors_of({
    profile_page(1)
    profile_page(x, 2)
    profile_page(bad)
    profile_page(x, base = 1)
    profile_page(x, base = bad)
    profile_page(x, source_text = NA)
    profile_page(x, timeline = 1)
    profile_page(x, title = c("a", "b"))
    profile_page(text(1))
    profile_page(text(data.frame(filename = "a.R", text = 1)))
    write_profile(x, "")
    write_profile(x, path, title = NA)
    write_profile(x, "missing/page.html")
  })
  expect_snapshot(writeLines(errors))
  expect_false(file.exists(path))
})

test_that("a file stays if its new content cannot be written", {
  folder <- withr::local_tempdir()
  path <- file.path(folder, "page.html")
  x <- small_profile()
  write_profile(x, path)
  before <- file_bytes(path)
  x$locations$line[[1]] <- -1L
  expect_error(write_profile(x, path), class = "profile_error_invalid")
  expect_identical(file_bytes(path), before)
  expect_equal(dir(folder, all.files = TRUE, no.. = TRUE), "page.html")
  skip_on_os(c("windows", "mac"))
  expect_error(write_page(small_profile(), "/dev/full"), class = "profile_error_write")
})

