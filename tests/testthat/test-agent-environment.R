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

# ---- Values in any encoding ----------------------------------------------------

# Any bytes except NUL, the same for the same seed.
random_bytes <- function(seed, size = 20) {
  withr::with_seed(seed, rawToChar(as.raw(sample(255, size, replace = TRUE))))
}

# Values for all variables that the package reads, and some with an effect on R and curl. (R itself does not start if
# HOME is not valid text.)
random_environment <- function(seed) {
  names <- c(environment_variables, "LANGUAGE", "SSL_CERT_FILE", "TZ", "http_proxy", "https_proxy", "no_proxy")
  stats::setNames(vapply(seed + seq_along(names), random_bytes, ""), names)
}

locales <- function() {
  known <- system2("locale", "-a", stdout = TRUE, stderr = FALSE)
  # A UTF-8 locale, and one for Latin-1, if there are any.
  pick <- function(pattern) utils::head(grep(pattern, known, value = TRUE, ignore.case = TRUE), 1)
  c("C", pick("^(c|en_us)[.]utf-?8$"), pick("[.]iso-?8859-?1$"))
}

test_that("all environment variables are read in one place, which knows their names", {
  namespace <- asNamespace("profile")
  reads <- function(name) {
    any(c("Sys.getenv", "rust_environment") %in% all.names(body(get(name, namespace))))
  }
  functions <- Filter(function(name) is.function(get(name, namespace)), ls(namespace, all.names = TRUE))
  expect_setequal(Filter(reads, functions), c("environment_values", "whole_environment"))
  expect_error(environment_values("NO_SUCH_VARIABLE"))
})

test_that("no value of a variable stops an application that loads the package", {
  skip_without_agent()
  # Paths are relative ones.
  withr::local_dir(withr::local_tempdir())
  withr::defer(tools::pskill(forwarders(getwd()), tools::SIGKILL))
  run <- function(variables, locale, code = "invisible(loadNamespace('profile'))") {
    fixed <- c(LC_ALL = locale, R_LIBS = libraries)
    out <- agent_script(c(code, "cat('app runs\n')"), c(variables[setdiff(names(variables), names(fixed))], fixed))
    expect_true("app runs" %in% out, info = paste(out, collapse = "\n"))
    out
  }
  for (locale in locales()) {
    for (seed in c(100, 200)) {
      variables <- random_environment(seed)
      run(variables, locale)
      variables[["R_PROFILE_AGENT"]] <- "true"
      run(variables, locale)
    }
  }
  # A value of 100 kB, for a few variables, since the system limits their sum; and empty ones.
  long <- random_environment(300)[c("R_PROFILE_AGENT", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_EXPORTER_OTLP_ENDPOINT")]
  long[] <- vapply(1:3, random_bytes, "", size = 1e5)
  run(long, "C")
  long[["R_PROFILE_AGENT"]] <- "true"
  run(replace(long, 2:3, paste0(c("a=", "http://localhost:1/"), strrep("%20", 33000))), "C")
  empty <- replace(random_environment(1), TRUE, "")
  run(c(empty, R_PROFILE_AGENT = "true"), "C")
  # A warning that is an error does not stop it, either.
  out <- run(c(R_PROFILE_AGENT = "/no/such/folder"), "C", c("options(warn = 2)", "invisible(loadNamespace('profile'))"))
  expect_match(out, "agent that `R_PROFILE_AGENT` requests cannot be started", all = FALSE)
})

test_that("a value that must be text is not used if it is none", {
  latin1 <- "caf\xe9"
  utf8 <- "caf\xc3\xa9"
  resource <- function(...) withr::with_envvar(c(...), agent_resource(character(), NULL))
  for (locale in locales()) {
    withr::local_locale(LC_CTYPE = locale)
    is_latin1 <- grepl("iso", locale, ignore.case = TRUE)
    right <- if (is_latin1) latin1 else utf8
    expect_identical(resource(OTEL_SERVICE_NAME = right)[["service.name"]], "caf\u00e9")
    expect_identical(resource(OTEL_RESOURCE_ATTRIBUTES = paste0(right, "=%20", right))[["caf\u00e9"]], " caf\u00e9")
    wrong <- list(
      list("OTEL_RESOURCE_ATTRIBUTES", "a=b,service.version=caf%E9", "bytes are not valid UTF-8"),
      list("OTEL_RESOURCE_ATTRIBUTES", "a=b,=c", "not have the form"),
      if (!is_latin1) list("OTEL_SERVICE_NAME", latin1, "not valid text in the encoding of the locale"),
      if (!is_latin1) list("OTEL_RESOURCE_ATTRIBUTES", paste0("a=b,c=", latin1), "not valid text")
    )
    for (case in Filter(Negate(is.null), wrong)) {
      variable <- stats::setNames(case[[2]], case[[1]])
      warning <- expect_warning(known <- resource(variable), class = "profile_warning_environment")
      expect_match(conditionMessage(warning), paste0("`", case[[1]], "` is not used: .*", case[[3]]))
      expect_identical(known, resource(OTEL_SERVICE_NAME = NA))
    }
    # Not a URL.
    withr::with_envvar(c(OTEL_EXPORTER_OTLP_ENDPOINT = "http://a/caf\xe9\xff"), {
      if (!is_latin1) expect_error(otlp_url(NULL, NULL), "must be a URL", class = "profile_error_argument")
    })
    # The bytes of headers are sent unchanged.
    withr::local_envvar(OTEL_EXPORTER_OTLP_HEADERS = paste0("x = ", latin1, "%20,y=", utf8, "%2c"))
    headers <- otlp_headers(character(), FALSE, FALSE, NULL)
    expect_identical(lapply(headers[c("x", "y")], charToRaw), lapply(c(x = "caf\xe9 ", y = "caf\xc3\xa9,"), charToRaw))
  }
})

test_that("folders may have any name", {
  skip_without_agent()
  skip_on_os("mac")
  server <- http_server(list(headers = protobuf()))
  base <- local_spool()
  named <- function(name) paste0(base, "/", name)
  for (locale in locales()) {
    withr::local_locale(LC_CTYPE = locale)
    for (name in c("caf\xe9", "caf\xc3\xa9")) {
      dir.create(named(name), showWarnings = FALSE)
      withr::local_envvar(R_PROFILE_AGENT = named(name))
      start_agent_by_environment()
      work_until_taken()
      expect_identical(stop_agent()$sent, agent_status()$taken)
      files <- list.files(named(name))
      expect_match(files, "[.]pb[.]gz$")
      expect_gt(length(files), 0)
      unlink(in_folder(named(name), files))

      withr::local_envvar(
        R_PROFILE_AGENT = "true", R_PROFILE_AGENT_SPOOL = paste0(named(name), "-spool"),
        OTEL_EXPORTER_OTLP_ENDPOINT = server$url
      )
      start_agent_by_environment()
      work_until_taken()
      status <- stop_agent(300)
      expect_identical(status$sent, status$taken)
    }
  }
})
