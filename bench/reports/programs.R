# Small versions of public reports about memory, and the tool that their authors would use. Each function is one report;
# its name says what it turned out to be. run.R runs each one in a fresh R process.

# ---- Services ----------------------------------------------------------------------

# "Memory leak?": a service behind plumber needs some KB more after each request. rstudio/plumber#450.
cache_that_grows <- function() {
  service <- start_script(
    "credentials <- new.env()",
    "locate <- function(user) {",
    "  key <- paste(user, Sys.time())",
    "  if (is.null(credentials[[key]])) credentials[[key]] <- rep(key, 20000)",
    "  credentials[[key]]",
    "}",
    "for (i in 1:50) locate(i)",
    "ready()",
    "repeat {",
    "  locate(i <- i + 1)",
    "  Sys.sleep(0.02)",
    "}"
  )
  before <- snapshot_memory(service)
  Sys.sleep(2)
  after <- snapshot_memory(service)
  print(compare_profiles(before, after, min_share = 0.01))
}

# "plumber not releasing memory": the process has 2.7 GiB, and R uses 52 MB. rstudio/plumber#496.
rows_as_json <- function() {
  answer <- function() {
    data <- data.frame(id = 1:2e5, name = paste("name", 1:2e5), value = runif(2e5))
    nchar(jsonlite::toJSON(data))
  }
  for (i in 1:3) answer()
  print(snapshot_memory())
}

# "Plumber is not releasing memory": it keeps the last answer, although gc() is called. rstudio/plumber#938.
last_answer <- function() {
  service <- start_script(
    "api <- plumber::pr()",
    "api <- plumber::pr_get(api, '/csv', function() {",
    "  paste(rep('a line of a file that is downloaded', 1e6), collapse = '\\n')",
    "}, serializer = plumber::serializer_text())",
    "api <- plumber::pr_hook(api, 'postserialize', function() gc())",
    "port <- httpuv::randomPort()",
    "ready(port)",
    "plumber::pr_run(api, port = port, quiet = TRUE, docs = FALSE)"
  )
  url <- paste0("http://127.0.0.1:", attr(service, "words")[[1]], "/csv")
  wait_until(function() !inherits(try(httr::GET(url), silent = TRUE), "try-error"))
  for (i in 1:3) httr::GET(url)
  x <- snapshot_memory(service)
  print(x)
}

# ---- Memory outside of R -----------------------------------------------------------

# "Problem retrieving memory used after gc()": the memory is that of a C++ library. apache/arrow#36161. The library is
# that of arrow if it is installed, else that of xml2.
native_library <- function() {
  before <- snapshot_memory()
  if (requireNamespace("arrow", quietly = TRUE)) {
    table <- arrow::Array$create(runif(1e7))$cast(arrow::float32())
  } else {
    page <- xml2::read_xml(paste0("<all>", paste(sprintf("<row id='%d'>text</row>", 1:2e5), collapse = ""), "</all>"))
    first <- xml2::xml_find_first(page, "//row")
    rm(page)
  }
  after <- snapshot_memory()
  print(after)
  print(compare_profiles(before, after))
}

# "memory from large list of data.table can not be reclaimed by gc()". Rdatatable/data.table#6301.
many_tables <- function() {
  make <- function() {
    replicate(1e4, data.table::as.data.table(as.list(sapply(letters, function(x) TRUE))), simplify = FALSE)
    NULL
  }
  make()
  print(gc())
  print(snapshot_memory())
}

# ---- Peaks -------------------------------------------------------------------------

# "How to measure the highest memory during parallel processing?" shinra-dev/memuse#6.
parallel_peak <- function() {
  data <- runif(2e6)
  work <- function(i) {
    sorted <- sort(data + i)
    Sys.sleep(0.3)
    mean(sorted)
  }
  x <- record_profile(parallel::mclapply(1:2, work, mc.cores = 2), children = TRUE)
  print(x)
  print(summary(x, by = "process"))
}

# "Memory issues (dcast, merge, NA)": which step needs so much more than the data? Rdatatable/data.table#1540.
merge_peak <- function() {
  report <- function() {
    orders <- data.frame(customer = rep(1:5000, each = 20), price = runif(1e5))
    visits <- data.frame(customer = rep(1:5000, each = 10), day = sample(365, 5e4, TRUE))
    joined <- merge(orders, visits, by = "customer")
    aggregate(joined["price"], joined["day"], mean)
  }
  x <- record_profile(result <- report(), snapshot = "peak")
  print(x)
  print(holders(x, n = 5))
}

# ---- Who holds it? -----------------------------------------------------------------

# "Plots can include large extraneous objects": a plot of 0.2 MB is saved as 1.4 GB. tidyverse/ggplot2#4056.
plot_of_matrix <- function() {
  plot_means <- function(size) {
    matrix <- outer(seq_len(size), seq_len(size))
    data <- data.frame(x = seq_len(size), y = rowMeans(matrix))
    ggplot2::ggplot(data, ggplot2::aes(x, y)) +
      ggplot2::geom_point() +
      ggplot2::geom_point(ggplot2::aes(x = x + 1, y = y + 1))
  }
  plot <- plot_means(2500)
  print(holders(snapshot_memory(), n = 5))
}

# "Possible memory leak": a session of Shiny has ended, and an observer keeps its data. rstudio/shiny#1253.
observer <- function() {
  shared <- shiny::reactiveValues(x = 1)
  server <- function(input, output, session) {
    data <- runif(5e6)
    shiny::observeEvent(shared$x, mean(data))
  }
  before <- snapshot_memory()
  session <- shiny::MockShinySession$new()
  shiny::withReactiveDomain(session, server(session$input, session$output, session))
  session$flushReact()
  rm(session)
  print(compare_profiles(before, snapshot_memory()))
}

# "Garbage collect future process after value has been collected": workers keep memory. HenrikBengtsson/future#69.
worker_garbage <- function() {
  future::plan(future::multisession, workers = 2)
  on.exit(future::plan(future::sequential))
  futures <- lapply(1:2, function(i) future::future(mean(cumsum(runif(4e6) + i)), seed = TRUE))
  values <- future::value(futures)
  x <- snapshot_memory(children = TRUE)
  print(summary(x, by = "process"))
  print(holders(x, n = 6, by = "process"))
}
