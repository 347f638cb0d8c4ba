# tier: gate
# Inspecting other processes. Rust tests check stacks and lines with images of R's memory
# (src/rust/reader/tests/reader/images.rs), and the times of samples with a simulated clock (session.rs beside it).

test_that("the stack of a process that sleeps has functions, lines and state", {
  skip_without_processes()
  before <- Sys.time()
  pid <- local_r_process(sleeping_code)
  x <- wait_for_stack(pid, sleeping_stack)
  expect_s3_class(x, c("profile_stack", "tbl_df"), exact = FALSE)
  known <- x[!is.na(x$line), ]
  expect_identical(x$line[x$name %in% c("nap", "f")], c(3L, 6L))
  expect_identical(basename(known$filename), rep("code.R", nrow(known)))
  expect_match(attr(x, "system_call"), "select|poll|nanosleep")
  expect_match(attr(x, "command"), "source")
  # The system measures hundredths of a second since a start that is rounded to a second.
  expect_gt(attr(x, "start"), before - 2)
  expect_lt(attr(x, "start"), Sys.time() + 2)
  expect_identical(attr(x, "children"), integer())
  scrub <- function(lines) {
    lines <- gsub("[0-9.]+ (s|min|h) ago", "3 s ago", gsub(pid, "1234", lines, fixed = TRUE))
    activity <- grep("^Sleeping", lines)
    lines <- c(lines[[1]], "COMMAND", lines[-seq_len(activity - 1)])
    sub("call [a-z0-9_]+", "call CALL", lines)
  }
  expect_snapshot(print(x), transform = scrub)
  expect_snapshot(writeLines(format(x, n = 3)), transform = scrub)
  # No child and no part of the command is left out.
  parent <- x
  attr(parent, "children") <- 1000:1060
  attr(parent, "command") <- paste("R", strrep("long ", 100), "end")
  text <- format(parent, width = 60)
  expect_true(all(nchar(text) <= 60))
  expect_match(paste(text, collapse = " "), paste(1000:1060, collapse = ", *"))
  expect_match(paste(text, collapse = " "), "(long +){100}end")
  # Printing does not depend on the attributes that other packages drop.
  expect_output(print(x[c("name", "line")]), "tibble")
  expect_identical(nrow(as_tibble(x)), nrow(x))

  # It is stopped, and continues.
  stopped <- NULL
  expect_true(wait_for(function() {
    stop_process(pid)
    stopped <<- dump_stack(pid)
    attr(stopped, "state") == "stopped"
  }))
  expect_identical(as_tibble(stopped), as_tibble(x))
  expect_output(print(stopped), "Stopped")
  tools::pskill(pid, tools::SIGCONT)
  wait_for_stack(pid, sleeping_stack)

  # The process is in the list of all R processes.
  all <- list_r_processes()
  expect_identical(names(all), c("pid", "state", "cpu_time", "start", "script", "command"))
  expect_true(all(c(pid, Sys.getpid()) %in% all$pid))
  expect_s3_class(all$start, "POSIXct")
  expect_match(all$command[all$pid == pid], "source")
  expect_identical(all$script[all$pid == pid], NA_character_)
})

test_that("the list of processes shows whole commands and scripts", {
  list <- tibble::new_tibble(list(
    pid = c(7L, 12345L, -1L), state = c("running", "sleeping", NA), cpu_time = c(0.126, 86400, NA),
    start = Sys.time() - c(5 * 3600, 7.3e5, NA), script = c(paste0("/srv/", strrep("deep/", 20), "app.R"), NA, "own.R"),
    command = c(
      paste("R --no-echo --file=app.R --args", paste0("--option-", 1:9, collapse = " ")), "R -e f(\x1b[31m)", "R"
    )
  ), nrow = 3, class = "profile_processes")
  expect_snapshot(cat(format(list, width = 70), sep = "\n"))
  expect_identical(format(list[0, ]), "<R processes> 0")
  expect_identical(unname(utils::tail(format(list, n = 1), 1)), "... and 2 more processes")
  expect_no_match(format(list, n = 1), "12345")
  expect_error(format(list, n = -1), class = "profile_error_argument")
  expect_match(format(list["pid"]), "tibble", all = FALSE)
  expect_s3_class(as_tibble(list), c("tbl_df", "tbl", "data.frame"), exact = TRUE)
  skip_without_processes()
  expect_match(format(list_r_processes()), "(this process)", fixed = TRUE, all = FALSE)
})

test_that("real time passes while a process sleeps, CPU time does not", {
  skip_without_processes()
  pid <- local_r_process(sleeping_code)
  stack <- wait_for_stack(pid, sleeping_stack)
  x <- profile_process(pid, seconds = 0.1)
  expect_identical(nrow(x$samples), 0L)
  expect_match(format(x), "was not computing at any sample", all = FALSE)
  output <- capture.output(watch_process(pid, seconds = 0.2, every = 0.1, n = Inf))
  expect_match(output, "was not computing at any sample; `clock = \"wall\"` shows", all = FALSE)
  expect_match(output, sprintf("^<R process %d> 0[.0]*%% of a CPU, 0 samples", pid), all = FALSE)

  x <- profile_until(pid, clock = "wall")
  expect_identical(unique(functions_of_samples(x)), list(stack$name))
  frames <- as_tibble(x)
  expect_identical(unique(frames$line[frames$name == "nap"]), 3L)
  expect_identical(unique(frames$line[frames$name == "f"]), 6L)
  values <- x$sample_values
  expect_true(all(values$value[values$type == "wall"] > 0))
  expect_identical(unique(values$value[values$type == "cpu"]), 0)
  values <- split(x[[".labels"]]$str, x[[".labels"]]$key)
  expect_identical(values[["state"]], rep("sleeping", nrow(x$samples)))
  expect_identical(values[["waits_for"]], rep("sleep", nrow(x$samples)))

  watched <- NULL
  expect_true(wait_for(function() {
    output <<- capture.output(watched <<- withVisible(watch_process(pid, seconds = 0.2, clock = "wall")))
    any(grepl("code.R:3", output))
  }))
  expect_false(watched$visible)
  expect_s3_class(watched$value, "profile_data")
  expect_match(output, "[0-9]  Sys.sleep$", all = FALSE)
})

test_that("a process that runs is recorded", {
  skip_without_processes()
  pid <- local_r_process(process_code("lines.R"))
  before <- kernel_cpu_time(pid)
  x <- profile_until(pid, function(x) "inner" %in% x$functions$name)
  used <- kernel_cpu_time(pid) - before
  expect_identical(x$sources$source_type, "process")
  expect_identical(x$sources$source_uri, paste0("pid:", pid))
  attributes <- x[[".source_attributes"]]
  expect_identical(attributes$value[attributes$key == "process.pid"], as.character(pid))
  expect_identical(attributes$value[attributes$key == "process.executable.name"], "R")

  # Each sample has both times, and a stack that is possible.
  values <- x$sample_values
  expect_identical(unname(c(table(values$type))), rep(nrow(x$samples), 2))
  expect_true(all(values$value > 0))
  expect_cpu_times(x)
  number <- function(key) as.numeric(attributes$value[attributes$key == key])
  # The sum is the time by the clock, apart from rounding to nanoseconds, of which each tick has one at least.
  ticks <- number("profile.cpu.ticks")
  clock <- max(number("profile.cpu.clock"), ticks)
  expect_lte(abs(sum(values$value[values$type == "cpu"]) - clock), ticks / 2 + 1)
  expect_lte(number("profile.cpu.clock"), used)
  own <- lapply(functions_of_samples(x), intersect, c("inner", "outer"))
  expect_identical(setdiff(own, list(c("inner", "outer"), "outer", character())), list())
  frames <- as_tibble(x)
  # A function that R has just entered has no line yet.
  expect_true(all(frames$line[frames$name == "outer"] %in% c(0L, NA, 9:12)))
  expect_true(all(frames$line[frames$name == "inner"] %in% c(0L, NA, 2:7)))

  path <- withr::local_tempfile(fileext = ".pb.gz")
  write_pprof(x, path)
  expect_equal(sum(read_pprof(path)$sample_values$value), sum(values$value))
})

# Starts a process whose innermost call of `f()`, at this depth, runs this code.
local_deep_process <- function(depth, code, envir = parent.frame()) {
  skip_without_processes()
  skip_if(system("ulimit -s unlimited", ignore.stderr = TRUE) != 0, "the system limits the size of stacks")
  local_r_process(
    envir = envir, limits = "ulimit -s unlimited", options = "--max-ppsize=500000",
    c(
      # The stack of byte code is limited to about 7,000 calls, or fewer.
      if (depth > 3000) "invisible(compiler::enableJIT(0))",
      "options(expressions = 5e5)",
      sprintf("f <- function(n) if (n > 1) f(n - 1) else { ready(); %s }", code),
      sprintf("f(%d)", depth)
    )
  )
}

test_that("stacks of thousands of calls are read, also while the process computes", {
  calls <- function(names) sum(names == "f")
  for (depth in c(3000L, 20000L)) {
    pid <- local_deep_process(depth, "repeat sum(sqrt(runif(1e5)))")
    stack <- dump_stack(pid)
    expect_identical(calls(stack$name), depth)
    expect_false(attr(stack, "is_cut"))
    for (native in c(FALSE, TRUE)) {
      x <- profile_until(pid, native = native)
      expect_identical(unique(vapply(functions_of_samples(x), calls, 0L)), depth)
      expect_identical(nrow(profile_problems(x)), 0L)
      expect_cpu_times(x)
    }
  }
})

test_that("a deep stack that changes all the time is whole or marked", {
  pid <- local_deep_process(5000, "{ g <- function(n) if (n > 0) g(n - 1); repeat g(sample(3000, 1)) }")
  x <- suppressWarnings(profile_until(pid), classes = "profile_warning_incomplete")
  stacks <- functions_of_samples(x)
  marked <- vapply(stacks, function(names) names[[length(names)]] == "<outer calls not read>", NA)
  for (names in stacks[!marked]) expect_identical(sum(names == "f"), 5000L)
  problems <- profile_problems(x)
  expect_identical(sum(problems$problem == "unread_calls"), sum(marked))
})

test_that("stacks of calls that alternate are never mixed, whether the process is stopped or goes on", {
  skip_without_processes()
  pid <- local_r_process(process_code("chains.R"))
  for (pause in c(TRUE, FALSE)) {
    x <- profile_until(pid, clock = "wall", interval = 1e-3, pause = pause)
    for (names in unique(functions_of_samples(x))) {
      names <- grep("^[ab][0-9]+$", names, value = TRUE)
      letter <- substr(names, 1, 1)[seq_len(min(1, length(names)))]
      expect_identical(rev(names), paste0(rep(letter, length(names)), seq_along(names)))
    }
    attributes <- x[[".source_attributes"]]
    pauses <- as.numeric(attributes$value[grepl("^profile[.]pauses", attributes$key)])
    # How often, in total, and the longest one.
    expect_length(pauses, if (pause) 3 else 0)
    if (pause) expect_true(pauses[[3]] <= pauses[[2]] && pauses[[2]] <= pauses[[1]] * pauses[[3]])
  }
})

test_that("the recording ends if the process executes another program", {
  skip_without_processes()
  skip_if_not(has_compiler("CC"), "there is no C compiler")
  dir <- withr::local_tempdir()
  writeLines(c(
    "#include <unistd.h>",
    "void become_sleep(void) { execlp(\"sleep\", \"planted secret\", \"1000000\", (char *) 0); }"
  ), file.path(dir, "program.c"))
  withr::with_dir(dir, tools::Rcmd("SHLIB program.c", stdout = FALSE))
  for (pause in c(TRUE, FALSE)) {
    go <- file.path(dir, paste("go", pause))
    pid <- local_r_process(c(
      sprintf("dyn.load('%s')", file.path(dir, paste0("program", .Platform$dynlib.ext))),
      "ready()",
      sprintf("while (!file.exists('%s')) sum(sqrt(runif(1e4)))", go),
      ".C('become_sleep')"
    ))
    when_recorded(pid, sprintf(": > '%s'", go))
    said <- "does not run R any more, but `sleep`. It was recorded until then."
    expect_warning(profile_process(pid, seconds = 600, pause = pause), said, class = "profile_warning_incomplete")
    expect_error(dump_stack(pid), "It does not run R", class = "profile_error_process")
  }
})

test_that("a hint says why there are no lines, and how to get them", {
  skip_without_processes()
  pid <- local_r_process("f <- function() { ready(); repeat sum(sqrt(runif(1e4))) }; f()")
  says <- function(lines) {
    text <- gsub(" +", " ", paste(lines, collapse = " "))
    grepl("no lines of R code: it was parsed without source references, as Rscript does. Set `options(keep", text, fixed = TRUE)
  }
  x <- profile_until(pid)
  stack <- dump_stack(pid)
  watched <- function(x) watched_lines(list(profile = x, unread = 0, ended = integer(), left = integer()), 1, 10)
  expect_identical(c(says(format(x)), says(format(stack)), says(watched(x))), c(FALSE, FALSE, FALSE))
  x$locations$line <- 0L
  stack$line <- NA_integer_
  expect_identical(c(says(format(x)), says(format(stack)), says(watched(x))), c(TRUE, TRUE, TRUE))
  # Lines of native code are no lines of R code.
  x$locations$line[[1]] <- 7L
  x$functions$.package <- NULL
  expect_false(says(format(x)))
  x$locations$.frame_type <- c("native", rep("r", nrow(x$locations) - 1))
  expect_true(says(format(x)))
})

test_that("if the process ends, the profile until then is returned", {
  skip_without_processes()
  pid <- local_r_process(sleeping_code)
  when_recorded(pid, paste("kill -KILL", pid))
  x <- profile_process(pid, seconds = Inf, clock = "wall")
  expect_s3_class(validate_profile(x), "profile_data")
  expect_true(all(unlist(functions_of_samples(x)) %in% c(sleeping_stack, "eval", "withVisible", "source")))
  expect_true(wait_for(function() has_ended(pid)))
  expect_error(dump_stack(pid), class = "profile_error_process")

  pid <- local_r_process(sleeping_code)
  when_recorded(pid, paste("kill -KILL", pid))
  output <- capture.output(watch_process(pid, every = 0.1, clock = "wall"))
  expect_match(output, paste0("^<R process ", pid, "> "), all = FALSE)
  expect_match(output, paste0("ended: ", pid), all = FALSE)
})

test_that("Ctrl-C ends a recording and returns it", {
  skip_without_processes()
  pid <- local_r_process(sleeping_code)
  wait_for_stack(pid, sleeping_stack)
  for (native in c(FALSE, TRUE)) {
    result <- withr::local_tempfile()
    recorder <- local_r_process(with_package(
      "ready()",
      sprintf("x <- suppressWarnings(profile_process(%d, seconds = 1e6, clock = 'wall', native = %s))", pid, native),
      sprintf("cat(nrow(x$samples) > 0, nrow(validate_profile(x)$sources), file = '%s')", result)
    ))
    expect_true(wait_for(function() is_recorded(pid, by = recorder)))
    # It waits between two samples, and a process that is stopped has waited, too. The preparation has 40 pauses.
    waiting <- if (native) pid else recorder
    before <- waits_of(waiting)
    expect_true(wait_for(function() waits_of(waiting) > before + if (native) 5 else 100))
    tools::pskill(recorder, tools::SIGINT)
    # `cat()` writes one value after the other.
    expect_true(wait_for(function() is_written(result) && identical(readLines(result, warn = FALSE), "TRUE 1")))
  }
  wait_for_stack(pid, sleeping_stack)
})

test_that("processes are shown by what they run", {
  sources <- tibble::tibble(source_type = "process", source_uri = c("pid:1", "pid:2", NA, "pid:4"))
  programs <- c("R app.R", "R f\x1b[31m", NA, "never shown")
  expect_equal(format_sources(sources, 60, "~", programs), c(
    "Sources:   process pid:1, R app.R", "           process pid:2, R f\\033[31m", "           process",
    "           and 1 more"
  ))
  with_names <- function(...) {
    names <- c(...)
    x <- small_profile()
    x$.source_attributes <- tibble::tibble(
      source_id = 1L, key = names(names), type = "string", value = unname(names), unit = NA_character_
    )
    x
  }
  x <- with_names(process.executable.name = "R", profile.process.script = "my app.R")
  expect_match(format(x), ", R my app.R$", all = FALSE)
  expect_equal(as.list(describe_profile(x))$run$sources$program, "R my app.R")
  expect_equal(programs_of(with_names(process.executable.name = "R")), "R")
  # Other tools may have recorded it.
  expect_equal(programs_of(with_names(process.command_line = "/usr/bin/python3 app.py --token=x")), "python3")
  expect_equal(as.list(describe_profile(small_profile()))$run$sources$program, NA_character_)
})

test_that("the names of a process are those of its program and script", {
  names <- function(...) names_of_process(c(...))
  r <- c(process.executable.name = "R")
  script <- c(r, profile.process.script = "app.R")
  expect_identical(names("/usr/lib/R/bin/exec/R", "--no-echo", "--file=/srv/x/app.R", "--args", "--token=1"), script)
  expect_identical(names("R", "-f", "x/app.R", "--restore", "--args", "--file=b.R"), script)
  expect_identical(names("R", "-e", "f('token')"), r)
  expect_identical(names("R", "--file=-"), r)
  expect_identical(names("R", "--args", "-f", "b.R"), r)
  expect_identical(names("R", "-f"), r)
})

test_that("deep stacks are read", {
  skip_without_processes()
  pid <- local_r_process(
    c("options(expressions = 20000)", "deeper <- function(n) if (n > 0) deeper(n - 1) else { ready(); Sys.sleep(1e6) }", "deeper(3000)"),
    limits = "ulimit -s unlimited 2>/dev/null || ulimit -s $(ulimit -H -s)"
  )
  x <- wait_for_stack(pid, c("Sys.sleep", rep("deeper", 3001), "eval"))
  expect_output(print(x), "and [0-9,]+ calls more")
})

test_that("a process that has ended is none, even if its parent has not noticed", {
  skip_without_processes()
  dir <- withr::local_tempdir()
  # It ends after its parent has executed a program that does not wait for children, as shells do.
  until <- "until read name < /proc/$PPID/comm && [ $name = sleep ]; do :; done"
  command <- sprintf("%s sh -c '%s' & echo $! > %s/pid; exec sleep 1000000", end_with_us(), until, dir)
  system2("sh", c("-c", shQuote(command)), wait = FALSE)
  pid <- pid_in(file.path(dir, "pid"))
  status <- strsplit(readLines(sprintf("/proc/%d/stat", pid)), " ")[[1]]
  withr::defer(tools::pskill(as.integer(status[[4]])))
  expect_true(wait_for(function() has_ended(pid)))
  error <- expect_error(dump_stack(pid), class = "profile_error_process")
  expect_match(conditionMessage(error), "has ended")
  expect_error(profile_process(pid), class = "profile_error_process")
})

test_that("the error says why the system refuses", {
  skip_without_processes()
  if (Sys.info()[["effective_user"]] != "root" || Sys.which("setpriv") == "") {
    skip("not root, or no setpriv: no process of another user")
  }
  # In a folder that only root may enter, no script could be read.
  expression <- sprintf("cat(tryCatch(profile::dump_stack(%d), profile_error_process = conditionMessage))", Sys.getpid())
  output <- suppressWarnings(system2(
    "env",
    c(
      "TMPDIR=/tmp", paste0("R_LIBS=", shQuote(paste(.libPaths(), collapse = ":"))), "setpriv", "--reuid=65534",
      "--clear-groups", shQuote(file.path(R.home("bin"), "Rscript")), "-e", shQuote(expression)
    ),
    stdout = TRUE, stderr = TRUE
  ))
  skip_if(any(grepl("no package called|cannot open|Permission denied", output)), "another user cannot read this library")
  expect_match(
    output, "It belongs to user 0, and this is user 65534: run this as that user, or as root.",
    fixed = TRUE, all = FALSE
  )
})

test_that("a process that does not run R is an error with the reason", {
  skip_without_processes()
  path <- withr::local_tempfile()
  system2("sh", c("-c", shQuote(sprintf("%s echo $$ > %s; exec sleep 1000000", end_with_us(), path))), wait = FALSE)
  pid <- pid_in(path)
  withr::defer(tools::pskill(pid))
  error <- expect_error(dump_stack(pid), class = "profile_error_process")
  expect_match(conditionMessage(error), "does not run R")
  error <- expect_error(profile_process(.Machine$integer.max), class = "profile_error_process")
  expect_match(conditionMessage(error), "There is no process")
  expect_snapshot(error = TRUE, {
    dump_stack(1:2)
    dump_stack("1")
    dump_stack(1.5)
    profile_process(NA)
    profile_process(1, seconds = 0)
    profile_process(1, interval = 2)
    profile_process(1, 1, 2)
    profile_process(1, clock = "x")
    profile_process(1, children = "yes")
    profile_process(1, pause = NA)
    profile_process(1, native = TRUE, pause = FALSE)
    watch_process(1, every = 0)
    watch_process(1, n = 0)
  })
})

test_that("functions have the package that they belong to in the process", {
  skip_without_processes()
  # Here, splines need not be loaded, and stats has a function `filter()`.
  pid <- local_r_process(c(
    "filter <- function(...) {",
    "  ready()",
    "  Sys.sleep(1e6)",
    "}",
    "ns <- splines::ns",
    "ns(filter())"
  ))
  names <- c("Sys.sleep", "filter", "ns")
  packages <- c("base", NA, "splines")
  stack <- wait_for_stack(pid, names)
  expect_identical(stack$package[1:3], packages)
  x <- profile_until(pid, clock = "wall")
  for (x in list(x, add_packages(x))) {
    functions <- x$functions[match(names, x$functions$name), ]
    expect_identical(functions$.package, packages)
    expect_identical(functions$.package_from, rep("process", 3))
  }
  expect_true(all(c("base", "splines") %in% call_tree(x, by = "package")$package))
})
