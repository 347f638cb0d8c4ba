# tier: gate
# A request that takes part in several processes is one trace: its id is passed on, and each process has its own span.

test_that("a request that is passed on to three processes is one trace", {
  skip_without_agent()
  trace <- "5b8efff798038103d269b633813fc60c"
  span <- "00000000000000a0"
  folder <- withr::local_tempdir()
  child <- function(number) c(
    "library(profile)",
    script_work,
    # What is passed on, as W3C defines it: version-trace-span-flags.
    "passed_on <- strsplit(Sys.getenv('TRACEPARENT'), '-')[[1]]",
    sprintf("start_agent('%s', every = 0.05, interval = 0.01)", file.path(folder, number)),
    "work_until_taken(2)",
    sprintf("with_span_ids(passed_on[[2]], '00000000000000a%d', work_until_taken(5))", number),
    "stop_agent(300)"
  )
  seen <- list()
  local_agent(function(x) seen[[length(seen) + 1]] <<- x)
  in_request <- function() {
    for (number in 1:3) {
      dir.create(file.path(folder, number))
      agent_script(child(number), environment = c(TRACEPARENT = paste("00", trace, span, "01", sep = "-")))
    }
    taken <- agent_status()$taken
    work_until(function() agent_status()$taken > taken)
  }
  with_span_ids(trace, span, in_request())
  stop_agent(300)

  files <- list.files(folder, full.names = TRUE, recursive = TRUE)
  expect_setequal(basename(dirname(files)), 1:3)
  all <- combine_profiles(c(seen, lapply(files, read_profile)))
  request <- filter_profile(all, labels = c(trace_id = trace))
  expect_identical(unique(request$samples$.trace_id), trace)
  # Each process had other samples before, and its own span.
  expect_true(anyNA(all$samples$.trace_id))
  expect_identical(nrow(request$samples), sum(!is.na(all$samples$.trace_id)))
  spans <- paste0("00000000000000a", 0:3)
  found <- summary(request, by = "span_id")
  expect_setequal(found$span_id, spans)
  expect_identical(sum(found$samples), nrow(request$samples))
  # A process may have several files.
  uri <- request$sources$source_uri[match(request$samples$source_id, request$sources$source_id)]
  processes <- ifelse(uri %in% files, basename(dirname(uri)), "0")
  of_span <- tapply(processes, request$samples$.span_id, function(x) length(unique(x)))
  expect_setequal(processes, 0:3)
  expect_true(all(of_span == 1))
})
