# tier: gate
# Starting the agent by environment variables, in processes whose code knows nothing of it.

code <- c(
  "f <- function() { x <- 0; for (i in 1:1e5) x <- x + i; x }",
  "end <- Sys.time() + 1; while (Sys.time() < end) f()",
  "cat('done\\n')"
)
packages <- paste(c("datasets,utils,grDevices,graphics,stats,methods", "profile"), collapse = ",")

test_that("a script is profiled without changing it", {
  skip_without_agent()
  server <- http_server(list(headers = protobuf()))
  variables <- c(
    R_PROFILE_AGENT = "true", R_DEFAULT_PACKAGES = packages, OTEL_EXPORTER_OTLP_ENDPOINT = server$url,
    OTEL_SERVICE_NAME = "my-api", R_LIBS = paste(.libPaths(), collapse = .Platform$path.sep)
  )
  expect_identical(agent_script(code, variables), "done")
  x <- profile_of_request(server$requests()[[1]])
  expect_gt(nrow(x$samples), 20)
  expect_true("f" %in% x$functions$name)
  attributes <- rlang::set_names(x$.resource_attributes$value, x$.resource_attributes$key)
  expect_identical(attributes[["service.name"]], "my-api")

  # By a line in Rprofile.site, and to a folder.
  folder <- withr::local_tempdir()
  profile <- withr::local_tempfile(lines = "if (Sys.getenv('R_PROFILE_AGENT') != '') invisible(loadNamespace('profile'))")
  variables[["R_DEFAULT_PACKAGES"]] <- NA
  variables <- c(variables, R_PROFILE = profile)
  variables[["R_PROFILE_AGENT"]] <- folder
  expect_identical(agent_script(code, variables), "done")
  expect_length(dir(folder), 1)

  for (off in list(c(R_PROFILE_AGENT = "false"), c(R_PROFILE_AGENT = ""), c(OTEL_SDK_DISABLED = "TRUE"))) {
    changed <- variables
    changed[names(off)] <- off
    state <- agent_script("cat(profile::agent_status()$state)", changed)
    expect_identical(state, "none")
  }
})

test_that("an application runs without the agent if it cannot start", {
  skip_without_agent()
  variables <- c(
    R_PROFILE_AGENT = "/no/such/folder", R_DEFAULT_PACKAGES = packages,
    R_LIBS = paste(.libPaths(), collapse = .Platform$path.sep)
  )
  out <- agent_script(code, variables)
  expect_identical(utils::tail(out, 1), "done")
  expect_match(paste(out, collapse = " "), "agent that `R_PROFILE_AGENT` asks for cannot be started")
  expect_match(paste(out, collapse = " "), "there is no such folder")
})
