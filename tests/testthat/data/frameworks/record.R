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

save_as <- function(x, package, most = 60, name = package) {
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
  file <- file.path(folder, paste0(name, "-", utils::packageVersion(package), ".pb.gz"))
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
  # Visits the app in `app.R` with a browser.
  visit <- function(name) {
    source("app.R", keep.source = TRUE)
    port <- httpuv::randomPort()
    browser <- paste(
      "chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --virtual-time-budget=15000 --dump-dom"
    )
    system(sprintf("(sleep 3; timeout 25 %s http://127.0.0.1:%d >/dev/null 2>&1) &", browser, port))
    cat("Without chromium, open http://127.0.0.1:", port, "\n", sep = "")
    save_as(record({
      later::later(function() shiny::stopApp(), 14)
      shiny::runApp(app, port = port, launch.browser = FALSE, quiet = TRUE)
    }), "shiny", name = name)
  }
  visit("shiny")
  writeLines(c(
    "library(shiny)", "library(promises)", lines_of_slow,
    "later_value <- function(n) promise(function(resolve, reject) later::later(function() resolve(n), 0.05))",
    "server <- function(input, output, session) {",
    "  observe({ slow(10) })",
    "  observe({ slow(10) }) |> bindEvent(input$n)",
    "  observeEvent(input$n, { slow(10) })",
    "  task <- ExtendedTask$new(function(n) later_value(n) %...>% { slow(10) })",
    "  observe(task$invoke(5))",
    "  data <- reactive({ later_value(10) %...>% slow() })",
    "  cached <- reactive({ slow(10) }) |> bindCache(input$n)",
    "  output$sync <- renderText({ cached() + slow(10) })",
    "  output$chain <- renderText({ later_value(10) %...>% { slow(.) } %...>% paste() })",
    "  output$then <- renderText({ then(later_value(10), function(x) slow(x)) })",
    "  output$failing <- renderText({ later_value(10) %...>% { stop('x') } %...!% (function(e) slow(10)) })",
    "  output$task <- renderText({ paste(task$result(), slow(5)) })",
    "  output$data <- renderText({ data() %...>% { slow(.) } })",
    "  output$plot <- renderPlot({ data() %...>% { slow(.); plot(1) } })",
    "}",
    "outputs <- c('sync', 'chain', 'then', 'failing', 'task', 'data')",
    "ui <- fluidPage(sliderInput('n', 'n', 1, 100, 20), plotOutput('plot'), lapply(outputs, textOutput))",
    "app <- shinyApp(ui, server)"
  ), "app.R")
  visit("shiny-async")
  # The same with active spans, which this tracer provider of otel only makes.
  trace_with <- function(provider) {
    the <- getNamespace("otel")$the
    the$tracer_provider <- provider
  }
  object <- function(class, ...) structure(list2env(list(...)), class = class)
  nothing <- function(...) invisible()
  context <- list(
    get_trace_id = function() strrep("1", 32), get_span_id = function() strrep("2", 16), is_valid = function() TRUE
  )
  span <- object(
    "otel_span", get_context = function() context, is_valid = function() TRUE, is_recording = function() TRUE,
    activate = nothing, deactivate = nothing, end = nothing, set_attribute = nothing, add_event = nothing,
    record_exception = nothing, set_status = nothing, update_name = nothing
  )
  tracer <- object(
    "otel_tracer", start_span = function(...) span, get_active_span = function() span, is_enabled = function(...) TRUE,
    get_active_span_context = function() context, flush = nothing
  )
  if (requireNamespace("otel", quietly = TRUE)) {
    trace_with(object("otel_tracer_provider", get_tracer = function(...) tracer, flush = nothing))
    visit("shiny-otel")
    trace_with(NULL)
  }
  writeLines(c(
    "library(shiny)", lines_of_slow,
    "server <- function(input, output, session) {",
    "  observe({ slow(10); input$n })",
    "  observe({ slow(10) }) |> bindEvent(input$n)",
    "  observeEvent(input$n, { slow(10) })",
    "  data <- reactive({ slow(10); input$n })",
    "  event <- eventReactive(input$n, { slow(10) })",
    "  bound <- reactive({ slow(10) }) |> bindEvent(input$n)",
    "  output$text <- renderText({ slow(10); data() })",
    "  output$table <- renderTable({ slow(10); data.frame(a = event() + bound()) })",
    "  output$plot <- renderPlot({ slow(10); plot(1) })",
    "  module('m')",
    "}",
    "module <- function(id) {",
    "  moduleServer(id, function(input, output, session) { slow(10); output$text <- renderText({ slow(10) }) })",
    "}"
  ), "app.R")
  source("app.R", keep.source = TRUE)
  save_as(record(shiny::testServer(server, {
    session$setInputs(n = 1)
    slow(10)
    output$text
    session$setInputs(n = 2)
  })), "shiny", name = "shiny-test")
}
if (requireNamespace("plumber", quietly = TRUE)) {
  writeLines(c(
    lines_of_slow,
    "api <- plumber::pr() |>",
    "  plumber::pr_get('/a/<n>', function(n) slow(as.integer(n))) |>",
    "  plumber::pr_filter('log', function(req) { slow(3); plumber::forward() })"
  ), "app.R")
  for (name in c("plumber", "plumber-labelled")) {
    source("app.R", keep.source = TRUE)
    if (name == "plumber-labelled") label_plumber(api)
    port <- httpuv::randomPort()
    client <- sprintf("Sys.sleep(2); for (i in 1:3) readLines('http://127.0.0.1:%d/a/20', warn = FALSE)", port)
    system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(client)), wait = FALSE, stdout = FALSE)
    later::later(function() httpuv::interrupt(), 10)
    save_as(record(plumber::pr_run(api, port = port, quiet = TRUE)), "plumber", name = name)
  }
}
if (requireNamespace("plumber2", quietly = TRUE)) {
  writeLines(c(
    lines_of_slow,
    "later_value <- function(n) {",
    "  promises::promise(function(resolve, reject) later::later(function() resolve(n), 0.05))",
    "}",
    "draw <- plumber2::device_formatter(grDevices::pdf)",
    "api <- plumber2::api() |>",
    "  plumber2::api_get('/a/<n>', function(n) slow(as.integer(n))) |>",
    "  plumber2::api_get(",
    "    '/plot/<n>', function(n) plot(slow(as.integer(n))), serializers = list('application/pdf' = draw)",
    "  ) |>",
    "  plumber2::api_get('/then/<n>', function(n) promises::then(later_value(as.integer(n)), function(x) slow(x))) |>",
    "  plumber2::api_get('/*', function(n) { slow(3); plumber2::Next }, route = 'log') |>",
    "  profile::label_plumber()",
    "api$on('before-request', function(...) slow(3))"
  ), "app.R")
  source("app.R", keep.source = TRUE)
  port <- httpuv::randomPort()
  client <- paste(
    "Sys.sleep(2); for (path in rep(c('a', 'plot', 'then'), 2))",
    "try(readBin(url(sprintf('http://127.0.0.1:%d/%%s/20', path), 'rb'), 'raw', 10))"
  )
  client <- sprintf(client, port)
  system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(client)), wait = FALSE, stdout = FALSE)
  later::later(function() plumber2::api_stop(api), 10)
  save_as(
    record(plumber2::api_run(api, host = "127.0.0.1", port = port, block = TRUE, showcase = FALSE, silent = TRUE)),
    "plumber2"
  )
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
  writeLines(c(
    "local_edition(3)", lines_of_slow,
    "test_that('snapshots', {",
    "  expect_snapshot({ x <- slow(10) })",
    "  expect_snapshot(error = TRUE, { slow(10); stop('x') })",
    "  expect_snapshot_value(slow(10))",
    "  expect_snapshot_output(slow(10))",
    "})",
    "test_that('conditions', {",
    "  expect_error({ slow(10); stop('x') })",
    "  expect_warning({ slow(10); warning('x') })",
    "  expect_message({ slow(10); message('x') })",
    "  expect_no_error(slow(10))",
    "  expect_silent(slow(10))",
    "  expect_output({ slow(10); print(1) })",
    "})",
    "test_that('values', {",
    "  expect_equal(slow(10), 10)",
    "  expect_identical(slow(10), 10)",
    "  expect_match(as.character(slow(10)), '1')",
    "  expect_invisible(invisible(slow(10)))",
    "  expect_named(c(a = slow(10)), 'a')",
    "  expect_equal(capture_output(slow(10)), '')",
    "})"
  ), "tests/test-app.R")
  save_as(record(testthat::test_dir("tests", reporter = "silent")), "testthat", name = "testthat-expectations")
  # A package, for tests in several processes, one of which is enough.
  writeLines(c(
    "Package: app", "Version: 1.0", "Title: App", "Config/testthat/edition: 3", "Config/testthat/parallel: true"
  ), "DESCRIPTION")
  writeLines("export(a)", "NAMESPACE")
  dir.create("R")
  writeLines("a <- 1", "R/a.R")
  dir.create("tests/testthat")
  for (name in c("test-a.R", "test-b.R")) file.copy("tests/test-app.R", file.path("tests/testthat", name))
  Sys.setenv(TESTTHAT_CPUS = "2", TESTTHAT_PARALLEL = "true")
  x <- record_profile(testthat::test_local(".", reporter = "silent", stop_on_failure = FALSE), children = TRUE)
  Sys.unsetenv(c("TESTTHAT_CPUS", "TESTTHAT_PARALLEL"))
  save_as(
    filter_profile(x, labels = list(source = summary(x, by = "source")$source[[1]])), "testthat",
    name = "testthat-parallel"
  )
  unlink(c("DESCRIPTION", "NAMESPACE", "R", "tests"), recursive = TRUE)
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
  run_all <- function() while (!later::loop_empty()) later::run_now(1)
  p <- promise(function(resolve, reject) later::later(function() resolve(slow(20)), 0.1)) %...>%
    (function(v) slow(20)) %...>% {
      slow(20)
    }
  save_as(record(run_all()), "promises")
  p <- promise(function(resolve, reject) later::later(function() reject("early"), 0.1)) %...!%
    (function(e) slow(20)) %...T>%
    (function(v) slow(20)) %...>% (function(v) {
      slow(20)
      stop("caught")
    })
  p <- catch(hybrid_then(finally(p, function() slow(20)), function(v) NULL), function(e) slow(20))
  save_as(record(run_all()), "promises", name = "promises-rejected")
}
if (requireNamespace("dplyr", quietly = TRUE)) {
  verbs <- c(
    by_mutate = "mutate(data, x = slow(10))",
    by_group = "data |> group_by(g) |> mutate(x = slow(n))",
    by_rowwise = "data |> rowwise() |> mutate(x = slow(n))",
    by_across = "mutate(data, across(everything(), function(x) { slow(5); x }))",
    by_transmute = "transmute(data, x = slow(10))",
    by_summarise = "data |> group_by(g) |> summarise(x = slow(n))",
    by_reframe = "data |> reframe(x = slow(5), .by = g)",
    by_filter = "filter(data, slow(10) > 1)",
    by_arrange = "arrange(data, slow(10))",
    by_group_by = "group_by(data, x = slow(10))",
    by_count = "count(data, slow(10))",
    by_distinct = "distinct(data, slow(10))",
    by_slice = "slice(data, slow(1) + slow(9))",
    by_slice_max = "slice_max(data, c(slow(10), 1))",
    by_pull = "pull(data, { slow(10); g })",
    by_select = "select(data, where(function(x) slow(5) > 1))",
    by_rename_with = "rename_with(data, function(x) { slow(10); toupper(x) })",
    by_do = "data |> group_by(g) |> do(data.frame(x = slow(5)))",
    by_group_map = "data |> group_by(g) |> group_map(function(d, k) slow(5))",
    by_group_modify = "data |> group_by(g) |> group_modify(function(d, k) { slow(5); d })",
    by_if_else = "mutate(data, if_else(g == 1, slow(10), 1))",
    by_case_when = "mutate(data, case_when(g == 1 ~ slow(5), TRUE ~ slow(5)))"
  )
  writeLines(c(
    "suppressMessages(library(dplyr))", lines_of_slow, "data <- tibble(g = 1:2, n = 5)",
    paste0(names(verbs), " <- function() ", verbs),
    paste0("app <- function() { ", paste0(names(verbs), "()", collapse = "; "), " }")
  ), "app.R")
  source("app.R", keep.source = TRUE)
  save_as(record(app()), "dplyr", 4 * length(verbs))
}
# Methods, of S4 and reference classes.
verbs <- c(
  by_method = "work(new('thing', n = 1))",
  by_next_method = "work(new('more', n = 1))",
  by_summary = "summary(new('thing', n = 1))",
  by_plus = "new('thing', n = 1) + new('thing', n = 1)",
  by_show = "print(new('thing', n = 1))",
  by_reference = "Reference$new(n = 1)$add(20)"
)
writeLines(c(
  lines_of_slow,
  "setGeneric('work', function(x, ...) standardGeneric('work'))",
  "setClass('thing', representation(n = 'numeric'))",
  "setClass('more', contains = 'thing')",
  "setMethod('work', 'thing', function(x, n = 20, ...) slow(n))",
  "setMethod('work', 'more', function(x, n = 10, ...) { slow(n); callNextMethod(x, n = 10) })",
  "setMethod('summary', 'thing', function(object, n = 1, ...) slow(20))",
  "setMethod('+', signature('thing', 'thing'), function(e1, e2) slow(20))",
  "setMethod('show', 'thing', function(object) slow(20))",
  "Reference <- setRefClass('Reference', fields = list(n = 'numeric'), methods = list(add = function(k) slow(k)))",
  paste0(names(verbs), " <- function() ", verbs),
  paste0("app <- function() { ", paste0(names(verbs), "()", collapse = "; "), " }")
), "app.R")
source("app.R", keep.source = TRUE)
save_as(record(app()), "methods")
if (requireNamespace("S7", quietly = TRUE)) {
  verbs <- c(
    by_method = "area(Shape(n = 20))",
    by_super = "area(Square(n = 10))",
    by_print = "print(Shape(n = 10))",
    by_plus = "Shape(n = 1) + Shape(n = 1)",
    by_length = "length(Shape(n = 1))",
    by_property = "Shape(n = 1)@work"
  )
  writeLines(c(
    lines_of_slow,
    "area <- S7::new_generic('area', 'shape')",
    "work <- S7::new_property(getter = function(self) slow(20))",
    "Shape <- S7::new_class('Shape', properties = list(n = S7::class_numeric, work = work))",
    "Square <- S7::new_class('Square', parent = Shape)",
    "S7::method(area, Shape) <- function(shape) slow(shape@n)",
    "S7::method(area, Square) <- function(shape) { slow(10); area(S7::super(shape, Shape)) }",
    "S7::method(print, Shape) <- function(x, ...) slow(20)",
    "S7::method(`+`, list(Shape, Shape)) <- function(e1, e2) slow(20)",
    "S7::method(length, Shape) <- function(x) as.integer(slow(20))",
    paste0(names(verbs), " <- function() ", verbs),
    paste0("app <- function() { ", paste0(names(verbs), "()", collapse = "; "), " }")
  ), "app.R")
  source("app.R", keep.source = TRUE)
  save_as(record(app()), "S7")
}
