# tier: gate
# The agent with samples of R's own profiler: the same content and the same exact counts, and what happens if others use
# that profiler.

# Functions with lines, two thirds of whose time is in `often()`.
rprof_work <- function(envir = parent.frame()) {
  path <- withr::local_tempfile(fileext = ".R", .local_envir = envir)
  writeLines(c(
    "often <- function(n) {",
    "  x <- 0",
    "  for (i in seq_len(2 * n)) x <- x + sqrt(i)",
    "}",
    "seldom <- function(n) {",
    "  x <- 0",
    "  for (i in seq_len(n)) x <- x + sqrt(i)",
    "}",
    "work <- function(seconds) {",
    "  used <- function() sum(proc.time()[c('user.self', 'sys.self')])",
    "  end <- used() + seconds",
    "  while (used() < end) {",
    "    often(1e4)",
    "    seldom(1e4)",
    "  }",
    "}"
  ), path)
  code <- new.env()
  source(path, local = code, keep.source = TRUE)
  code$path <- path
  code
}

# The sum of the values of a type.
total_of <- function(profiles, type) {
  sum(vapply(profiles, function(x) sum(x$sample_values$value[x$sample_values$type == type]), 0))
}

# The share of each function and line in all samples that contain it.
shares <- function(profiles) {
  x <- do.call(combine_profiles, profiles)
  frames <- as_tibble(x)
  counts <- x$sample_values[x$sample_values$type == "samples", ]
  frames <- unique(frames[frames$name %in% c("often", "seldom"), c("sample_id", "name", "line", "filename")])
  frames$count <- counts$value[match(frames$sample_id, counts$sample_id)]
  sums <- tapply(frames$count, paste(frames$name, frames$line, basename(frames$filename)), sum)
  c(sums) / sum(sums)
}

rprof_user <- function() profile:::rust(profile:::rust_agent_rprof(), NULL)$user

# Descriptors of files in memory to which the agent and R have access.
memory_files <- function() {
  files <- dir("/proc/self/fd", full.names = TRUE)
  files[grepl("^/memfd:profile-agent", Sys.readlink(files))]
}

test_that("samples are those of Rprof(), with all lines in each part", {
  skip_without_rprof_agent()
  code <- rprof_work()
  path <- withr::local_tempfile()
  Rprof(path, interval = 0.01, line.profiling = TRUE)
  code$work(1.5)
  Rprof(NULL)
  theirs <- shares(list(suppressWarnings(read_rprof(path))))

  got <- list()
  start <- as.numeric(Sys.time())
  local_agent(function(x) got[[length(got) + 1]] <<- x, source = "rprof", every = 0.3)
  code$work(1.5)
  status <- stop_agent()
  expect_complete(status)
  expect_identical(status$source, "rprof")
  expect_identical(status$sent, status$taken)
  # Of 150 ticks; kernels may round the interval up.
  expect_gt(status$taken, 70)
  expect_lt(status$taken, 200)
  expect_gt(length(got), 1)
  expect_equal(total_of(got, "samples"), status$sent)
  expect_equal(total_of(got, "cpu"), status$sent * 1e7)
  ours <- shares(got)
  expect_setequal(names(ours)[ours > 0.02], names(theirs)[theirs > 0.02])
  expect_lt(max(abs(ours[names(theirs)[theirs > 0.02]] - theirs[theirs > 0.02])), 0.2)
  expect_match(names(ours), basename(code$path))
  expect_lt(got[[1]]$sources$source_timestamp - start, 60)
  end <- start
  for (x in got) {
    expect_no_error(validate_profile(x))
    expect_identical(x$sources$source_type, "process")
    expect_identical(unique(x$sample_values$type), c("samples", "cpu"))
    # They do not overlap.
    expect_gt(x$sources$source_timestamp, end - 0.05)
    end <- x$sources$source_timestamp + x$sources$.duration_nanos / 1e9
  }
  expect_identical(rprof_user(), "nobody")
})

test_that("every sample arrives at a server, with labels and resource", {
  skip_without_rprof_agent()
  server <- http_server(list(status = 503), list(headers = protobuf()))
  local_agent(server$url, source = "rprof", resource = c(service.name = "api"))
  with_labels(c(route = "/api"), busy(0.5))
  expect_true(wait_for(function() {
    busy(0.1)
    length(server$requests()) > 3
  }))
  status <- stop_agent()
  expect_complete(status)
  expect_identical(status$sent, status$taken)
  profiles <- lapply(server$requests()[-1], profile_of_request)
  expect_equal(total_of(profiles, "samples"), status$sent)
  expect_equal(total_of(profiles, "cpu"), status$sent * 1e7)
  x <- do.call(combine_profiles, profiles)
  labels <- x$.labels[x$.labels$key == "route", ]
  expect_identical(unique(labels$str), "/api")
  labelled <- x$sample_values$sample_id %in% labels$sample_id & x$sample_values$type == "samples"
  expect_gt(sum(x$sample_values$value[labelled]), 10)
  expect_lt(sum(x$sample_values$value[labelled]), status$sent)
  expect_no_match(x$functions$name, "profile_label")
  attributes <- profiles[[1]]$.resource_attributes
  expect_identical(attributes$value[attributes$key == "service.name"], "api")
})

test_that("a warning says that R had no room for names of files", {
  skip_without_rprof_agent()
  rooms <- profile:::rprof_files
  withr::defer(utils::assignInNamespace("rprof_files", rooms, "profile"))
  utils::assignInNamespace("rprof_files", 1L, "profile")
  folder <- withr::local_tempdir()
  local_agent(folder, source = "rprof")
  for (code in list(rprof_work(), rprof_work())) code$work(0.3)
  expect_warning(status <- stop_agent(), "numfiles", class = "profile_warning_incomplete")
  expect_complete(status)
  expect_identical(status$sent, status$taken)
})

test_that("samples of wall time are taken while R waits", {
  skip_without_rprof_agent()
  skip_if(getRversion() < "4.4", "event = \"wall\" needs R 4.4")
  got <- list()
  local_agent(function(x) got[[length(got) + 1]] <<- x, source = "rprof", event = "wall")
  Sys.sleep(1)
  status <- stop_agent()
  expect_complete(status)
  expect_gt(status$sent, 30)
  expect_equal(total_of(got, "wall"), status$sent * 1e7)
  expect_equal(total_of(got, "cpu"), 0)
})

test_that("the memory of lines is freed when they are read", {
  skip_without_rprof_agent()
  folder <- withr::local_tempdir()
  local_agent(folder, source = "rprof", every = 0.1)
  # R's descriptor and ours.
  expect_length(memory_files(), 2)
  path <- sub("self", Sys.getpid(), memory_files()[[1]])
  sizes <- function() as.numeric(strsplit(system2("stat", c("-L", "-c", shQuote("%s %b"), path), stdout = TRUE), " ")[[1]])
  deep <- function(n) if (n == 0) busy(0.2) else deep(n - 1)
  expect_true(wait_for(function() {
    deep(100)
    sizes()[[1]] > 50000
  }))
  # A page that is used in part remains.
  expect_true(wait_for(function() sizes()[[2]] <= 8))
  status <- stop_agent()
  expect_complete(status)
  expect_identical(status$sent, status$taken)
  expect_length(memory_files(), 0)
})

test_that("Rprof() of others interrupts the agent, and is not disturbed", {
  skip_without_rprof_agent()
  got <- list()
  local_agent(function(x) got[[length(got) + 1]] <<- x, source = "rprof", every = 0.1)
  events <- if (getRversion() >= "4.4") list("cpu", "elapsed") else list(NULL)
  for (event in events) {
    busy(0.3)
    status <- agent_status()
    expect_identical(status$state, "running")
    paused <- status$paused
    path <- withr::local_tempfile()
    rlang::inject(Rprof(path, interval = 0.01, !!!list(event = event)[!is.null(event)]))
    expect_identical(agent_status()$state, "paused")
    # What was recorded until then is read.
    expect_true(wait_for(function() agent_status()$paused > paused))
    taken <- agent_status()$taken
    busy(0.5)
    expect_true(wait_for(function() agent_status()$paused > paused + 0.3))
    status <- agent_status()
    expect_identical(status$state, "paused")
    expect_identical(status$taken, taken)
    Rprof(NULL)
    theirs <- read_rprof(path)
    expect_gt(nrow(theirs$samples), 10)
    expect_length(theirs$sources$source_id, 1)
    expect_identical(agent_status()$state, "running")
    expect_true(wait_for(function() {
      busy(0.1)
      agent_status()$taken > taken
    }))
  }
  # Nobody's, without another one.
  Rprof(NULL)
  expect_identical(agent_status()$state, "running")
  status <- stop_agent()
  expect_identical(status$last_error, NA_character_)
  expect_complete(status)
  expect_equal(total_of(got, "samples"), status$sent)
  expect_identical(status$sent, status$taken)
})

test_that("profilers of this package interrupt the agent, which goes on by itself", {
  skip_without_rprof_agent()
  folder <- withr::local_tempdir()
  local_agent(folder, source = "rprof")
  x <- record_profile(busy(0.5))
  expect_gt(nrow(x$samples), 10)
  expect_identical(rprof_user(), "agent")
  expect_error(suppressMessages(record_profile(stop("no"))), "no")
  expect_identical(rprof_user(), "agent")
  path <- withr::local_tempfile()
  joint <- tryCatch(start_profiler(path), profile_error_unsupported = function(e) NULL)
  if (is.null(joint)) {
    expect_identical(rprof_user(), "agent")
  } else {
    expect_identical(agent_status()$state, "paused")
    # A busy machine loses most of its samples.
    busy(1)
    expect_gt(nrow(suppressWarnings(stop_profiler())$samples), 5)
    expect_identical(rprof_user(), "agent")
    expect_error(joint_profile(stop("no")), "no")
    expect_identical(rprof_user(), "agent")
  }
  expect_identical(agent_status()$state, "running")
  expect_complete(stop_agent())
})

test_that("the agent goes on when R is idle", {
  skip_without_rprof_agent()
  skip_if_not_installed("later")
  folder <- withr::local_tempdir()
  local_agent(folder, source = "rprof")
  Rprof(NULL)
  expect_identical(rprof_user(), "nobody")
  expect_true(wait_for(function() {
    later::run_now(0.1)
    rprof_user() == "agent"
  }))
  stop_agent()
})

test_that("it does not start while another profiler runs", {
  skip_without_rprof_agent()
  folder <- withr::local_tempdir()
  path <- withr::local_tempfile()
  events <- if (getRversion() >= "4.4") list("cpu", "elapsed") else list(NULL)
  for (event in events) {
    rlang::inject(Rprof(path, interval = 0.01, !!!list(event = event)[!is.null(event)]))
    withr::defer(Rprof(NULL))
    expect_error(start_agent(folder, source = "rprof"), "Another profiler is running", class = "profile_error_unsupported")
    busy(0.3)
    Rprof(NULL)
    expect_gt(nrow(read_rprof(path)$samples), 5)
  }
  expect_identical(agent_status()$state %in% c("none", "stopped"), TRUE)
  expect_length(memory_files(), 0)
})

test_that("a forked process has no samples of the agent, and may start one", {
  skip_without_rprof_agent()
  got <- list()
  local_agent(function(x) got[[length(got) + 1]] <<- x, source = "rprof")
  busy(0.3)
  in_child <- function() {
    child_only <- function() busy(0.5)
    state <- agent_status()$state
    child_only()
    folder <- tempfile()
    dir.create(folder)
    start_agent(folder, every = 0.2, source = "rprof")
    child_only()
    status <- stop_agent()
    profiles <- lapply(dir(folder, full.names = TRUE), read_pprof)
    unlink(folder, recursive = TRUE)
    list(state = state, status = status, names = unlist(lapply(profiles, function(x) x$functions$name)))
  }
  for (child in parallel::mclapply(1:2, function(i) in_child(), mc.cores = 2)) {
    expect_identical(child$state, "none")
    expect_complete(child$status)
    expect_identical(child$status$sent, child$status$taken)
    expect_gt(child$status$sent, 5)
    expect_true("child_only" %in% child$names)
  }
  expect_identical(agent_status()$state, "running")
  busy(0.3)
  status <- stop_agent()
  expect_complete(status)
  expect_equal(total_of(got, "samples"), status$sent)
  x <- do.call(combine_profiles, got)
  expect_true("busy_loop" %in% x$functions$name)
  expect_false("child_only" %in% x$functions$name)
})

test_that("R quits with a last attempt to send, and the package can be unloaded", {
  skip_without_rprof_agent()
  server <- http_server(list(headers = protobuf()))
  code <- c(
    "f <- function() { x <- 0; for (i in 1:1e5) x <- x + i; x }",
    sprintf("profile::start_agent('%s', every = 100, source = 'rprof')", server$url),
    "end <- Sys.time() + 0.7; while (Sys.time() < end) f()"
  )
  agent_script(c(code, "quit('no', status = 3)"), status = 3L)
  requests <- server$requests()
  expect_length(requests, 1)
  expect_gt(total_of(list(profile_of_request(requests[[1]])), "samples"), 10)
  out <- agent_script(c(
    code, "unloadNamespace('profile')", "invisible(gc())",
    "end <- Sys.time() + 0.3; while (Sys.time() < end) f()",
    "files <- dir('/proc/self/fd', full.names = TRUE)",
    "cat(sum(grepl('memfd:profile', Sys.readlink(files))), is.null(getLoadedDLLs()[['profile']]), '\\n')"
  ))
  expect_identical(trimws(utils::tail(out, 1)), "0 TRUE")
  expect_length(server$requests(), 2)
})

test_that("it can be started and stopped 50 times", {
  skip_without_rprof_agent()
  folder <- withr::local_tempdir()
  files <- function() length(dir("/proc/self/fd"))
  before <- NULL
  sent <- 0
  for (i in 1:50) {
    start_agent(folder, source = "rprof")
    busy(0.03)
    status <- stop_agent()
    expect_complete(status)
    sent <- sent + status$sent
    if (i == 10) before <- files()
  }
  expect_identical(files(), before)
  expect_gt(sent, 20)
})

# As if R's memory could not be read.
local_refusal <- function(envir = parent.frame()) {
  dump <- profile:::rust_process_dump
  replace <- function(f) utils::assignInNamespace("rust_process_dump", f, "profile")
  withr::defer(replace(dump), envir = envir)
  replace(function(pid) {
    list(NULL, list(class = "profile_error_process", message = "R's memory looks new."), NULL)
  })
}

test_that("\"auto\" is Rprof() where R's memory cannot be read", {
  skip_without_rprof_agent()
  folder <- withr::local_tempdir()
  local_refusal()
  local_agent(folder, source = "auto")
  expect_identical(agent_status()$source, "rprof")
  busy(0.3)
  status <- stop_agent()
  expect_gt(status$sent, 5)
})

test_that("\"auto\" says why there is no source", {
  skip_without_agent()
  folder <- withr::local_tempdir()
  local_refusal()
  error <- expect_error(start_agent(folder, interval = 0.001), class = "profile_error_unsupported")
  expect_match(conditionMessage(error), "R's memory looks new.", fixed = TRUE)
  why <- if (getRversion() < "4.3") "need R 4.3 or later" else "every 0.01 seconds at most"
  expect_match(conditionMessage(error), why, fixed = TRUE)
  expect_true(agent_status()$state %in% c("none", "stopped"))
})

test_that("the reader is preferred", {
  folder <- withr::local_tempdir()
  local_agent(folder)
  expect_identical(agent_status()$source, "reader")
  stop_agent()
})

test_that("older versions of R are refused", {
  skip_if(getRversion() >= "4.3", "this version of R writes lines at once")
  folder <- withr::local_tempdir()
  expect_error(start_agent(folder, source = "rprof"), "need R 4.3 or later", class = "profile_error_unsupported")
})
