# Records the profiles in this folder, with the versions of the packages that are installed: `Rscript record.R`, in this
# folder. The work of the user is always the function `slow()`, of a file `app.R` if the framework runs a file.
#
# Frameworks for parallel work are in record-parallel.R.
#
# A file has the version of the package in its name. It has no packages of functions, which pprof files cannot hold.

library(profile)
options(keep.source = TRUE)
folder <- getwd()
work <- file.path(tempdir(), "app")
dir.create(work)
setwd(work)

lines_of_slow <- "slow <- function(n) { for (i in seq_len(n)) sort(runif(1e5)); n }"
eval(parse(text = lines_of_slow))

save_as <- function(x, package, most = 60) {
  # Only the stacks with the user's work, and some of the framework's own.
  names <- as_tibble(x)
  mine <- unique(names$sample_id[names$name == "slow"])
  others <- setdiff(x$samples$sample_id, mine)
  few <- function(ids, n) ids[unique(round(seq(1, length(ids), length.out = min(n, length(ids)))))]
  x$samples <- x$samples[x$samples$sample_id %in% c(few(mine, most), few(others, 20)), ]
  x <- compact_profile(x)
  x$functions$filename <- basename(x$functions$filename)
  x$sources$source_uri <- NA_character_
  x$.comments <- x$.source_text <- NULL
  file <- file.path(folder, paste0(package, "-", utils::packageVersion(package), ".pb.gz"))
  write_pprof(x, file)
  cat(file, file.size(file), "bytes\n")
}
record <- function(expr) record_profile(expr, interval = 0.005)

if (requireNamespace("shiny", quietly = TRUE)) {
  writeLines(c(
    "library(shiny)", lines_of_slow,
    "server <- function(input, output, session) {",
    "  data <- reactive({ slow(20); runif(1000) })",
    "  observeEvent(input$n, { slow(10) })",
    "  output$plot <- renderPlot({ slow(15); plot(data()) })",
    "  output$text <- renderText({ paste(mean(data()), slow(5)) })",
    "}",
    "ui <- fluidPage(sliderInput('n', 'n', 1, 100, 20), plotOutput('plot'), textOutput('text'))",
    "app <- shinyApp(ui, server)"
  ), "app.R")
  source("app.R", keep.source = TRUE)
  port <- httpuv::randomPort()
  browser <- "chromium --headless --no-sandbox --disable-gpu --virtual-time-budget=15000 --dump-dom"
  system(sprintf("(sleep 3; timeout 25 %s http://127.0.0.1:%d >/dev/null 2>&1) &", browser, port))
  cat("Without chromium, open http://127.0.0.1:", port, "\n", sep = "")
  save_as(record({
    later::later(function() shiny::stopApp(), 14)
    shiny::runApp(app, port = port, launch.browser = FALSE, quiet = TRUE)
  }), "shiny")
}
if (requireNamespace("plumber", quietly = TRUE)) {
  writeLines(c(
    lines_of_slow,
    "api <- plumber::pr() |>",
    "  plumber::pr_get('/a/<n>', function(n) slow(as.integer(n))) |>",
    "  plumber::pr_filter('log', function(req) { slow(3); plumber::forward() })"
  ), "app.R")
  source("app.R", keep.source = TRUE)
  port <- httpuv::randomPort()
  client <- sprintf("Sys.sleep(2); for (i in 1:3) readLines('http://127.0.0.1:%d/a/20', warn = FALSE)", port)
  system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(client)), wait = FALSE, stdout = FALSE)
  later::later(function() httpuv::interrupt(), 6)
  save_as(record(plumber::pr_run(api, port = port, quiet = TRUE)), "plumber")
}
if (requireNamespace("knitr", quietly = TRUE)) {
  writeLines(c(
    "```{r}", lines_of_slow, "```", "", "```{r one}", "slow(20)", "```", "",
    "```{r two}", "x <- sapply(1:3, function(i) slow(10))", "```", "", "Inline `r slow(5)`."
  ), "app.Rmd")
  save_as(record(knitr::knit("app.Rmd", "app.md", quiet = TRUE)), "knitr")
}
if (requireNamespace("rmarkdown", quietly = TRUE)) {
  # Values that are printed by methods of the user, in a document and as its data.
  writeLines(c(
    "---", "title: \"`r slow(5)`\"", "params:", "  n: !r slow(5)", "---", "", "```{r}", lines_of_slow,
    "print.own <- function(x, ...) { slow(10); cat('own') }",
    "knit_print.shown <- function(x, ...) { slow(10); 'shown' }",
    "registerS3method('knit_print', 'shown', knit_print.shown, asNamespace('knitr'))", "```", "", "```{r one}",
    "x <- structure(1, class = 'own')", "x", "structure(1, class = 'shown')", "plot(slow(10))", "```", "",
    "Inline `r slow(5)`.", "", "```{r two, echo = slow(5) > 0}", "local({ slow(params$n) })", "```"
  ), "page.Rmd")
  save_as(record(rmarkdown::render("page.Rmd", run_pandoc = FALSE, quiet = TRUE)), "rmarkdown")
}
if (requireNamespace("testthat", quietly = TRUE)) {
  dir.create("tests")
  writeLines(c(
    lines_of_slow,
    "test_that('it is fast', {", "  expect_equal(slow(20), 20)", "})",
    "test_that('it is large', {", "  x <- slow(10)", "  expect_true(x > 1)", "})",
    "describe('it', {", "  it('works', {", "    expect_equal(slow(20), 20)", "  })", "})"
  ), "tests/test-app.R")
  save_as(record(testthat::test_dir("tests", reporter = "silent")), "testthat")
}
if (requireNamespace("purrr", quietly = TRUE)) {
  # Functions that call others, each from a function of the user.
  verbs <- c(
    by_map = "purrr::map(1:3, function(i) slow(8))",
    by_map2 = "purrr::map2_dbl(1:3, 1:3, function(i, j) slow(8))",
    by_pmap = "purrr::pmap(list(1:3, 1:3), function(i, j) slow(8))",
    by_imap = "purrr::imap(1:3, ~ slow(8))",
    by_walk = "purrr::walk(1:3, slow_once)",
    by_keep = "purrr::keep(1:3, function(i) slow(8) > 0)",
    by_modify = "purrr::modify(c(8, 8, 8), slow)",
    by_reduce = "purrr::reduce(1:4, function(a, i) slow(8))",
    by_accumulate = "purrr::accumulate(1:4, function(a, i) slow(8))",
    by_possibly = "purrr::possibly(slow, 0)(24)",
    by_safely = "purrr::map(1:3, purrr::safely(slow_once))",
    by_quietly = "purrr::quietly(slow)(24)",
    by_compose = "purrr::compose(slow, slow)(12)",
    by_partial = "purrr::partial(slow, n = 24)()",
    by_exec = "rlang::exec(slow, 24)",
    by_inject = "{ n <- 24; rlang::inject(slow(!!n)) }",
    by_try_fetch = "rlang::try_fetch(slow(24), error = identity)",
    by_with_handlers = "rlang::with_options(slow(24), digits = 7)",
    by_eval_tidy = "rlang::eval_tidy(rlang::quo(slow(n)), list(n = 24))",
    by_pipe = "8 %>% slow() %>% slow %>% { slow(.) }",
    by_method = "worker$new()$run(24)",
    by_try = "try(tryCatch(withCallingHandlers(slow(24), warning = identity), error = identity))",
    by_lapply = "lapply(1:3, function(i) slow(8))",
    by_vapply = "vapply(c(8, 8, 8), slow, 0)",
    by_mapply = "mapply(function(i, j) slow(8), 1:3, 1:3)",
    by_Map = "Map(function(i) slow(8), 1:3)",
    by_Reduce = "Reduce(function(a, i) slow(8), 1:4)",
    by_Filter = "Filter(function(i) slow(8) > 0, 1:3)",
    by_apply = "apply(matrix(8, 1, 3), 2, slow)",
    by_outer = "outer(1:3, 1, Vectorize(function(i, j) slow(8)))",
    by_tapply = "tapply(c(8, 8, 8), 1:3, slow)",
    by_rapply = "rapply(list(8, 8, 8), slow)",
    by_do.call = "{ do.call('slow', list(12)); do.call(slow, list(12)) }",
    by_local = "local({ slow(24) })",
    by_with = "with(list(n = 24), slow(n))"
  )
  writeLines(c(
    "library(magrittr)", lines_of_slow, "slow_once <- function(i) slow(8)",
    "worker <- R6::R6Class('worker', public = list(run = function(n) private$go(n)), private = list(go = function(n) slow(n)))",
    paste0(names(verbs), " <- function() ", verbs),
    paste0("app <- function() { ", paste0(names(verbs), "()", collapse = "; "), " }")
  ), "app.R")
  source("app.R", keep.source = TRUE)
  save_as(record(app()), "purrr", 4 * length(verbs))
}
if (requireNamespace("promises", quietly = TRUE)) {
  library(promises)
  p <- promise(function(resolve, reject) later::later(function() resolve(slow(20)), 0.1)) %...>%
    (function(v) slow(20)) %...>% {
      slow(20)
    }
  save_as(record(while (!later::loop_empty()) later::run_now(1)), "promises")
}
