# tier: gate
# The process of the pprof tool that shows a profile. The recording by `joint_pprof()` is in test-native-robust.R.

is_gone <- function(pid) {
  wait_for(function() !tools::pskill(pid, 0))
}

# The expression is not recorded: these programs do not look at the profile.
joint_pprof_of <- function(x, ...) {
  replace_function("record_profile", function(...) x)
  joint_pprof(NULL, ...)
}

test_that("arguments are checked before the expression is recorded", {
  skip_on_os("windows")
  dir <- withr::local_tempdir()
  withr::local_options(profile.pprof = fake_program("exit 1", path = file.path(dir, "pprof")))
  expect_snapshot(error = TRUE, {
    joint_pprof(stop("recorded"), host = "::1")
    joint_pprof(stop("recorded"), port = 0)
    joint_pprof(stop("recorded"), browse = NA)
    joint_pprof_of(filter_profile(small_profile(), focus = "^none$"))
  })
  expect_error(joint_pprof(stop("recorded"), "127.0.0.1"), class = "rlib_error_dots_nonempty")
  withr::local_options(profile.pprof = file.path(dir, "none"))
  expect_error(joint_pprof(stop("recorded")), class = "profile_error_unsupported")
})

test_that("pprof shows a profile until its process ends", {
  skip_without_pprof()
  seed <- .GlobalEnv$.Random.seed
  process <- expect_no_warning(local_pprof_process(small_profile()))
  other <- local_pprof_process(small_profile(version = "1.0"))
  expect_identical(.GlobalEnv$.Random.seed, seed)

  expect_match(process$url, "^http://127\\.0\\.0\\.1:[0-9]+$")
  expect_identical(format(process), paste0("<pprof> ", process$url, " (pid ", process$pid, ")"))
  # Without Graphviz older versions have no graph to show at /ui/.
  expect_match(pprof_page(process), "^HTTP/1.[01] (200|501) ")
  for (path in c("/ui/top", "/ui/flamegraph")) {
    text <- pprof_page(process, path)
    expect_match(text, "^HTTP/1.[01] 200 ", info = path)
    expect_match(text, "\"g\"", info = path)
    expect_match(text, "\"h\"", info = path)
  }
  tools::pskill(process$pid)
  expect_true(is_gone(process$pid))
  expect_match(pprof_page(other, "/ui/top"), "^HTTP/1.[01] 200 ")
})

# A program that says what pprof says when it serves, and runs until it is ended.
local_fake_server <- function(.local_envir = parent.frame()) {
  dir <- withr::local_tempdir(.local_envir = .local_envir)
  tool <- fake_program(
    "echo $$ > \"$0-pid\"", "echo 'Main binary filename not available.' >&2",
    "echo 'Serving web UI on http://localhost:4711' >&2", "exec sleep 3600", path = file.path(dir, "pprof")
  )
  withr::local_options(profile.pprof = tool, .local_envir = .local_envir)
  tool
}

test_that("the browser is opened, and a process without a handle runs until the session ends", {
  skip_on_cran()
  skip_on_os("windows")
  tool <- local_fake_server()
  result <- run_r(c(
    sprintf("options(profile.pprof = '%s', browser = function(url) cat('open', url, '\\n'))", tool),
    "assignInNamespace('record_profile', function(...) profile::read_rprof(system.file('samples/rprof/1.out', package = 'profile')), 'profile')",
    "pid <- profile::joint_pprof(1, browse = TRUE)$pid",
    "gc(); gc()",
    # A fork has a copy of the handle, and ends as R ends.
    "fork <- parallel:::mcfork(); if (inherits(fork, 'masterProcess')) { gc(); parallel:::mcexit() }",
    "parallel::mccollect(fork)",
    "cat(pid, tools::pskill(pid, 0), '\\n')"
  ))
  expect_ran(result)
  pid <- readLines(paste0(tool, "-pid"))
  expect_true("open http://localhost:4711/ui/flamegraph " %in% result$output)
  expect_true(paste(pid, "TRUE ") %in% result$output)
  expect_true(is_gone(as.integer(pid)))
})

test_that("the output of pprof is in the error if it ends", {
  skip_on_cran()
  skip_on_os("windows")
  dir <- withr::local_tempdir()
  tool <- fake_program("echo \"cannot do ${1}: {x}\" >&2", "exit 1", path = file.path(dir, "pprof"))
  withr::local_options(profile.pprof = tool)
  expect_snapshot(error = TRUE, joint_pprof_of(small_profile()))
  cnd <- tryCatch(joint_pprof_of(small_profile()), error = identity)
  expect_s3_class(cnd, c("profile_error_pprof", "profile_error"), exact = FALSE)
  expect_match(cnd$output, "^cannot do -http=")

  # A file that the system cannot execute.
  write_bytes(as.raw(c(0x7f, 0x45, 0x4c, 0x46, 0, 0, 0xff)), tool)
  expect_error(joint_pprof_of(small_profile()), class = "profile_error_pprof")
})

test_that("a session may use parallel before and after pprof has run", {
  skip_on_cran()
  skip_on_os("windows")
  dir <- withr::local_tempdir()
  tool <- fake_program("exit 1", path = file.path(dir, "pprof"))
  result <- run_r(c(
    "library(profile)",
    "fork <- function() stopifnot(identical(parallel::mclapply(1:2, identity, mc.cores = 2), list(1L, 2L)))",
    "x <- read_rprof(system.file('samples/rprof/1.out', package = 'profile'))",
    "fork()", sprintf("try(profile:::start_pprof(x, '%s', 'localhost:', NULL), silent = TRUE)", tool), "fork()", "cat('done')"
  ))
  expect_identical(result, list(status = 0L, output = "done"))
})

test_that("Ctrl-C ends a tool that never answers", {
  skip_on_cran()
  skip_on_os("windows")
  listen <- listen_to_interrupts()
  dir <- withr::local_tempdir()
  tool <- fake_program("echo waiting", "echo $$ > \"$0-pid\"", "exec sleep 3600", path = file.path(dir, "pprof"))
  process <- run_r(wait = FALSE, env = listen, c(
    "library(profile)",
    "x <- read_rprof(system.file('samples/rprof/1.out', package = 'profile'))",
    sprintf("end <- tryCatch({ profile:::start_pprof(x, '%s', 'localhost:', NULL); 'shown' }, interrupt = function(e) 'interrupted')", tool),
    "cat(end, '\\n')"
  ))
  expect_event(function() file.exists(paste0(tool, "-pid")), process)
  tools::pskill(process$pid(), tools::SIGINT)
  expect_equal(trimws(expect_printed(process, ".")), "interrupted")
  expect_true(is_gone(as.integer(readLines(paste0(tool, "-pid")))))
})
