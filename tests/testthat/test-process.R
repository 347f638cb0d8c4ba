# tier: gate
test_that("the stack of a process that sleeps has functions, lines and state", {
  skip_without_processes()
  pid <- local_r_process(c(
    "nap <- function() {",
    "  ready()",
    "  Sys.sleep(1000)",
    "}",
    "f <- function(x) {",
    "  force(x)",
    "}",
    "",
    "f(nap())"
  ))
  expect_true(wait_for_state(pid, "sleeping"))
  x <- dump_stack(pid)
  expect_s3_class(x, c("profile_stack", "tbl_df"), exact = FALSE)
  known <- x[!is.na(x$line), ]
  expect_identical(x$name[1:4], c("Sys.sleep", "nap", "force", "f"))
  expect_identical(x$line[x$name %in% c("nap", "f")], c(3L, 6L))
  expect_identical(basename(known$filename), rep("code.R", nrow(known)))
  expect_identical(attr(x, "state"), "sleeping")
  expect_match(attr(x, "system_call"), "select|poll|nanosleep")
  expect_match(attr(x, "command"), "source")
  expect_lt(abs(as.numeric(Sys.time()) - as.numeric(attr(x, "start"))), 120)
  expect_identical(attr(x, "children"), integer())
  scrub <- function(lines) {
    lines <- gsub("[0-9.]+ s ago", "3 s ago", gsub(pid, "1234", lines, fixed = TRUE))
    lines[[2]] <- "COMMAND"
    sub("call [a-z0-9_]+", "call CALL", lines)
  }
  expect_snapshot(print(x), transform = scrub)
  expect_snapshot(writeLines(format(x, n = 3)), transform = scrub)
  # Printing does not depend on the attributes that other packages drop.
  expect_output(print(x[c("name", "line")]), "tibble")
  expect_identical(nrow(as_tibble(x)), nrow(x))
})

test_that("a process that is stopped has a stack", {
  skip_without_processes()
  pid <- local_r_process(process_code("lines.R"))
  for (i in 1:100) {
    if ("outer" %in% dump_stack(pid)$name) break
    Sys.sleep(0.05)
  }
  tools::pskill(pid, tools::SIGSTOP)
  expect_true(wait_for_state(pid, "stopped"))
  one <- dump_stack(pid)
  expect_identical(as_tibble(dump_stack(pid)), as_tibble(one))
  expect_true("outer" %in% one$name)
  expect_output(print(one), "Stopped")
  tools::pskill(pid, tools::SIGCONT)
  expect_true(wait_for_state(pid, "running"))
})

test_that("stacks that were never there are not reported, and without the second reading they are", {
  skip_without_processes()
  pid <- local_r_process(process_code("chains.R"))
  impossible <- function(check) {
    x <- suppressWarnings(record_processes(pid, 1, 1e-5, "wall", FALSE, NULL, check))
    frames <- as_tibble(x)
    frames <- frames[grepl("^[ab][0-9]+$", frames$name), ]
    stacks <- split(frames$name, frames$sample_id)
    is_chain <- function(names) {
      letter <- substr(names[[1]], 1, 1)
      identical(rev(names), paste0(letter, seq_along(names)))
    }
    c(samples = length(stacks), bad = sum(!vapply(stacks, is_chain, NA)))
  }
  checked <- impossible(TRUE)
  expect_gt(checked[["samples"]], 10)
  expect_identical(checked[["bad"]], 0L)
  # Nothing changes meanwhile if both processes share a CPU.
  for (i in 1:20) {
    bad <- impossible(FALSE)[["bad"]]
    if (bad > 0) break
  }
  expect_gt(bad, 0)
})

test_that("a profile of a process has lines, CPU time and what is known of the process", {
  skip_without_processes()
  pid <- local_r_process(process_code("lines.R"))
  before <- kernel_cpu_time(pid)
  x <- suppressWarnings(profile_process(pid, seconds = 3))
  used <- kernel_cpu_time(pid) - before
  expect_s3_class(validate_profile(x), "profile_data")
  expect_identical(x$sources$source_type, "process")
  expect_identical(x$sources$source_uri, paste0("pid:", pid))
  attributes <- x[[".source_attributes"]]
  expect_identical(attributes$value[attributes$key == "process.pid"], as.character(pid))
  expect_match(attributes$value[attributes$key == "process.command_line"], "source")
  values <- x$sample_values
  sums <- tapply(values$value, values$type, sum)
  # Some milliseconds pass before the first sample and after the last.
  expect_lte(sums[["cpu"]], used)
  expect_gt(sums[["cpu"]], 0.8 * used)
  expect_gt(sums[["cpu"]], 0.3e9)
  frames <- as_tibble(x)
  expect_true(all(10:11 %in% frames$line[frames$name == "outer"]))
  # Where R has just entered a function, it has no line yet.
  expect_gt(mean(frames$line[frames$name == "outer"] %in% 10:11), 0.98)
  expect_gt(mean(frames$line[frames$name == "inner"] %in% 2:7), 0.98)
  # 3/4 of the time, by the first of two calls.
  lines <- annotate_lines(x, type = "cpu")
  outer <- lines[lines$line %in% 10:11 & basename(lines$filename) == "code.R", ]
  expect_lt(abs(outer$total_share[outer$line == 10] / sum(outer$total_share) - 0.75), 0.15)
  path <- withr::local_tempfile(fileext = ".pb.gz")
  write_pprof(x, path)
  expect_equal(sum(read_pprof(path)$sample_values$value), sum(values$value))
})

test_that("builtins that byte-compiled functions call are seen, as Rprof() sees them", {
  skip_without_processes()
  path <- withr::local_tempfile()
  pid <- local_r_process(c(
    "x <- sin(1:5e4)",
    "Summary.own <- function(..., na.rm) cumsum(x)",
    "own <- structure(list(), class = 'own')",
    "by_name <- function() for (i in 1:60) sum(x)",
    "by_instruction <- function() for (i in 1:60) x + 1",
    "by_method <- function() for (i in 1:40) max(own)",
    "by_native <- function() for (i in 1:4) stats::optimize(function(z) sum(x * z), 0:1)",
    "by_same_name <- function() {",
    "  sum <- function(x) c(x, x)",
    "  for (i in 1:40) sum(x)",
    "}",
    "functions <- ls(pattern = '^by_')",
    "for (name in functions) assign(name, compiler::cmpfun(get(name)))",
    "work <- compiler::cmpfun(function() for (name in functions) get(name)())",
    "for (i in 1:3) work()",
    sprintf("Rprof('%s', interval = 0.005)", path),
    "end <- proc.time()[[1]] + 4",
    "while (proc.time()[[1]] < end) work()",
    "Rprof(NULL)",
    "ready()",
    "repeat work()"
  ))
  x <- suppressWarnings(profile_process(pid, seconds = 4, interval = 0.002))
  # The functions of each stack, from the one of these that runs to the innermost one.
  frames <- as_tibble(x)
  stacks <- split(frames$name, frames$sample_id)
  inner <- lapply(stacks, function(names) names[seq_len(match("work", names, 1) - 1)])
  inner <- vapply(inner, paste, "", collapse = " ", USE.NAMES = FALSE)
  # Each function of the workload is called by the value of `get()`, so that it has no name.
  possible <- c(
    "", "get", "(get )?<Anonymous>", "sum <Anonymous>", "(cumsum )?(Summary.own )?(max )?<Anonymous>",
    "((list |(sum )?(f )?(<Anonymous> )?(.External2 )?)?stats::optimize )?<Anonymous>", "(c )?sum <Anonymous>"
  )
  is_possible <- grepl(paste0("^(", paste(possible, collapse = "|"), ")$"), inner)
  expect_identical(unique(inner[!is_possible]), character())
  # Those that take a notable part of the time.
  share <- function(x) {
    by_function <- summary(x)$by_function
    stats::setNames(by_function$total_share, by_function$name)
  }
  names <- c("sum", "cumsum", "max", ".External2", "c")
  difference <- share(x)[names] - share(suppressWarnings(read_rprof(path)))[names]
  expect_lt(max(abs(difference)), 0.1)
})

test_that("real time passes while a process sleeps, CPU time does not", {
  skip_without_processes()
  pid <- local_r_process(c("ready()", "Sys.sleep(1000)"))
  expect_true(wait_for_state(pid, "sleeping"))
  x <- profile_process(pid, seconds = 0.5)
  expect_identical(nrow(x$samples), 0L)
  x <- profile_process(pid, seconds = 0.5, event = "wall")
  expect_gt(nrow(x$samples), 20)
  wall <- x$sample_values$value[x$sample_values$type == "wall"]
  expect_lt(abs(sum(wall) / 5e8 - 1), 0.2)
  expect_identical(unique(x[[".labels"]]$str[x[[".labels"]]$key == "state"]), "sleeping")
})

test_that("a process that ends gives the profile until then", {
  skip_without_processes()
  pid <- local_r_process(c("ready()", "x <- 0", "while (proc.time()[[1]] < 3) x <- x + 1"))
  time <- system.time(x <- suppressWarnings(profile_process(pid, seconds = 60)))[["elapsed"]]
  expect_lt(time, 30)
  expect_gt(nrow(x$samples), 5)
  expect_error(dump_stack(pid), class = "profile_error_process")
})

test_that("a process is watched until it ends", {
  skip_without_processes()
  pid <- local_r_process(c(process_code("lines.R")[2:13], "ready()", "while (proc.time()[[1]] < 3) outer()"))
  output <- capture.output(x <- withVisible(watch_process(pid, every = 0.5)))
  expect_false(x$visible)
  expect_s3_class(x$value, "profile_data")
  heads <- grep(paste0("^<R process ", pid, "> [0-9.]+% of a CPU, "), output)
  expect_gt(length(heads), 1)
  expect_match(output, paste0("ended: ", pid), all = FALSE)
  expect_match(output, "code.R:4", all = FALSE)
  expect_match(output, "[0-9]  inner$", all = FALSE)
})

test_that("a process that waits says so", {
  skip_without_processes()
  pid <- local_r_process(c("ready()", "Sys.sleep(1000)"))
  expect_true(wait_for_state(pid, "sleeping"))
  output <- capture.output(watch_process(pid, seconds = 0.3, every = 0.1))
  expect_match(output, "no CPU time", all = FALSE)
  expect_gt(sum(grepl("^<R process", output)), 1)
  expect_snapshot(error = TRUE, {
    watch_process(pid, every = 0)
    watch_process(pid, n = 0)
  })
})

test_that("Ctrl-C ends a recording and returns it", {
  skip_without_processes()
  pid <- local_r_process(process_code("lines.R"))
  result <- withr::local_tempfile()
  recorder <- local_r_process(c(
    sprintf(".libPaths(%s)", paste(deparse(.libPaths()), collapse = "")),
    "library(profile)",
    "ready()",
    sprintf("x <- suppressWarnings(profile_process(%d, seconds = 600))", pid),
    sprintf("cat(nrow(x$samples) > 5, nrow(validate_profile(x)$sources), file = '%s')", result)
  ))
  expect_true(wait_for(function() "rust_processes_record" %in% dump_stack(recorder)$name))
  Sys.sleep(3)
  tools::pskill(recorder, tools::SIGINT)
  expect_true(wait_for(function() is_written(result)))
  expect_identical(readLines(result, warn = FALSE), "TRUE 1")
})

test_that("children are recorded", {
  skip_without_processes()
  skip_if_not_installed("parallel")
  pid <- local_r_process(c(
    "work <- function(i) repeat sort(runif(1e5))",
    "ready()",
    "parallel::mclapply(1:2, work, mc.cores = 2)"
  ))
  withr::defer(for (child in children) tools::pskill(child, tools::SIGKILL))
  children <- integer()
  for (i in 1:100) {
    children <- attr(dump_stack(pid), "children")
    if (length(children) == 2) break
    Sys.sleep(0.05)
  }
  expect_length(children, 2)
  x <- suppressWarnings(profile_process(pid, seconds = 2, children = TRUE))
  expect_setequal(x$sources$source_uri, paste0("pid:", c(pid, children)))
  frames <- as_tibble(x)
  for (child in which(x$sources$source_uri != paste0("pid:", pid))) {
    names <- frames$name[frames$source_id == x$sources$source_id[[child]]]
    expect_true("FUN" %in% names, info = paste(unique(names), collapse = " "))
  }
  expect_output(print(dump_stack(pid)), "started the processes")
})

test_that("deep stacks are read", {
  skip_without_processes()
  pid <- local_r_process(
    c("options(expressions = 20000)", "deeper <- function(n) if (n > 0) deeper(n - 1) else { ready(); Sys.sleep(1000) }", "deeper(3000)"),
    limits = "ulimit -s unlimited 2>/dev/null || ulimit -s $(ulimit -H -s)"
  )
  x <- dump_stack(pid)
  expect_identical(sum(x$name == "deeper"), 3001L)
  expect_output(print(x), "and [0-9,]+ calls more")
})

test_that("this process and its like are listed", {
  skip_without_processes()
  pid <- local_r_process(c("ready()", "Sys.sleep(1000)"))
  all <- list_r_processes()
  expect_identical(names(all), c("pid", "state", "cpu_time", "start", "command"))
  expect_true(all(c(pid, Sys.getpid()) %in% all$pid))
  expect_s3_class(all$start, "POSIXct")
  expect_match(all$command[all$pid == pid], "source")
})

test_that("a process that has ended is none, even if its parent has not noticed", {
  skip_without_processes()
  dir <- withr::local_tempdir()
  system2("sh", c("-c", shQuote(sprintf("sleep 0.1 & echo $! > %s/pid; exec sleep 100", dir))), wait = FALSE)
  pid <- pid_in(file.path(dir, "pid"))
  status <- strsplit(readLines(sprintf("/proc/%d/stat", pid)), " ")[[1]]
  withr::defer(tools::pskill(as.integer(status[[4]])))
  for (i in 1:100) {
    Sys.sleep(0.05)
    if (grepl("^[0-9]+ \\(sleep\\) Z", readLines(sprintf("/proc/%d/stat", pid)))) break
  }
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

test_that("what is no R process is an error with the reason", {
  skip_without_processes()
  path <- withr::local_tempfile()
  system2("sh", c("-c", shQuote(sprintf("echo $$ > %s; exec sleep 100", path))), wait = FALSE)
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
    profile_process(1, event = "x")
    profile_process(1, children = 1)
  })
})
