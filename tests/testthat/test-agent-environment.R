# tier: gate
# Starting the agent by environment variables, in processes whose code does not mention it.

packages <- paste(c("datasets,utils,grDevices,graphics,stats,methods", "profile"), collapse = ",")
libraries <- paste(.libPaths(), collapse = .Platform$path.sep)

test_that("a script is profiled without changing it", {
  skip_without_agent()
  server <- http_server(list(headers = protobuf()))
  # The script computes until there is something to send; R sends it when it quits.
  code <- c(script_work, "work_until_taken()", "cat('done\\n')")
  variables <- c(
    R_PROFILE_AGENT = "true", R_DEFAULT_PACKAGES = packages, OTEL_EXPORTER_OTLP_ENDPOINT = server$url,
    OTEL_SERVICE_NAME = "my-api", R_LIBS = libraries
  )
  expect_identical(agent_script(code, variables), "done")
  # If the forwarder does not start in time, it sends them later.
  profiles <- list()
  expect_true(wait_for(function() {
    profiles <<- lapply(server$requests(), profile_of_request)
    samples_of(profiles) >= 20
  }))
  expect_true(has_seen(profiles, "f"))
  x <- profiles[[1]]
  attributes <- rlang::set_names(x$.resource_attributes$value, x$.resource_attributes$key)
  expect_identical(attributes[["service.name"]], "my-api")

  # By a line in Rprofile.site, and to a folder.
  folder <- withr::local_tempdir()
  profile <- withr::local_tempfile(lines = "if (Sys.getenv('R_PROFILE_AGENT') != '') invisible(loadNamespace('profile'))")
  variables[["R_DEFAULT_PACKAGES"]] <- NA
  variables <- c(variables, R_PROFILE = profile)
  variables[["R_PROFILE_AGENT"]] <- folder
  expect_identical(agent_script(code, variables), "done")
  expect_gt(length(dir(folder, "[.]pb[.]gz$")), 0)
})

test_that("the agent can be turned off", {
  skip_without_agent()
  on <- c(R_PROFILE_AGENT = withr::local_tempdir(), OTEL_SDK_DISABLED = NA)
  for (off in list(c(R_PROFILE_AGENT = "false"), c(R_PROFILE_AGENT = ""), c(OTEL_SDK_DISABLED = "TRUE"))) {
    withr::local_envvar(replace(on, names(off), off))
    start_agent_by_environment()
    expect_true(agent_status()$state %in% c("none", "stopped"))
  }
  withr::local_envvar(on)
  start_agent_by_environment()
  expect_identical(agent_status()$state, "running")
  stop_agent(0)
})

test_that("an application runs without the agent if it cannot start", {
  skip_without_agent()
  variables <- c(R_PROFILE_AGENT = "/no/such/folder", R_DEFAULT_PACKAGES = packages, R_LIBS = libraries)
  out <- agent_script("cat('done\\n')", variables)
  expect_identical(utils::tail(out, 1), "done")
  expect_match(paste(out, collapse = " "), "agent that `R_PROFILE_AGENT` requests cannot be started")
  expect_match(paste(out, collapse = " "), "there is no such folder")
})
