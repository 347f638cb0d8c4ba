# tier: thorough
# The messages of an agent that has run for a minute follow the rules, see test-otlp-rules.R.

test_that("what the agent sends in a minute follows the rules", {
  # Before the agent starts, since building the judge takes a while.
  collector_program("judge")
  server <- http_server(list(headers = protobuf()))
  local_agent(server$url, resource = c(service.name = "api"), every = 1)
  end <- Sys.time() + 60
  number <- 0
  while (Sys.time() < end) {
    number <- number + 1
    id <- sprintf("%016x", number)
    with_labels(
      c(route = paste0("/", number %% 7)),
      with_span_ids(paste0(id, id), id, summary(stats::lm(dist ~ speed, data = datasets::cars)))
    )
  }
  stop_when_sent()
  requests <- server$requests()
  expect_gt(length(requests), 1)
  path <- withr::local_tempfile(fileext = ".pb")
  traces <- character()
  for (request in requests) {
    write_bytes(inflated(request$body), path)
    expect_identical(judge_messages("combined", path), character())
    traces <- c(traces, read_otlp(path)$samples$.trace_id)
  }
  expect_gt(length(unique(stats::na.omit(traces))), 1)
})
