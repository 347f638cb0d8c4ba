# tier: gate
# R and native code in one profile: is everything where it ran, and as often as it ran?
# What happens when a run is disturbed is in test-joint-robust.R.

test_that("native functions are below the R functions that called them", {
  skip_without_joint()
  sums <- 0
  seen <- character()
  for (flags in c("-O2 -g", "-O2")) {
    lib <- native_library(flags)
    for (compile in c(FALSE, TRUE)) {
      info <- paste(flags, if (compile) "compiled" else "interpreted")
      x <- joint_run(lib, compile)
      expect_s3_class(x, "profile_data")
      validate_profile(x)
      stacks <- profile_stacks(x)
      sums <- sums + expect_entries(stacks, least = 200, info = info)
      seen <- union(seen, unlist(stacks))
    }
  }
  # All of them were there to be seen.
  entries <- setdiff(grep("^(c|e|f|cpp|rust)_", names(lib), value = TRUE), c(
    "c_inner_info", "c_forked", "c_split_some", "c_split_more", "c_cpu"
  ))
  expect_equal(setdiff(entries, seen), character())
  expect_gte(sums[["right"]] / (sums[["right"]] + sums[["missing"]]), 0.99)
})

test_that("where C code has R run byte code, nothing is in a wrong place", {
  skip_without_joint()
  x <- joint_run(native_library(), TRUE, seconds = 1, scenarios = c("bytecode", "evaluated"))
  found <- native_entries(x)
  expect_equal(found$wrong, 0, info = paste(found$stacks, collapse = "\n"))
  expect_gte(found$right, 20)
  if (getRversion() < "4.4.0") {
    expect_lte(found$missing, 5)
  }
})

test_that("loops of the global environment, which R compiles first, are in no wrong place either", {
  skip_without_joint()
  lib <- native_library()
  looped <- compiler::cmpfun(function(n) .Call(lib$c_inner, n))
  assign("profile_test_looped", looped, globalenv())
  withr::defer(rm("profile_test_looped", envir = globalenv()))
  evaluating <- compiler::cmpfun(function(expr) .Call(lib$c_eval, expr, globalenv()))
  # R >= 4.5 cannot run the same loop twice like this, so each is a new one.
  loops <- function(n) {
    list(
      bquote({ for (i in 1:2) profile_test_looped(.(n)) }),
      bquote(if (TRUE) for (i in 1:2) profile_test_looped(.(n))),
      bquote({ repeat { profile_test_looped(.(n)); break } }),
      bquote(for (i in 1:2) profile_test_looped(.(n)))
    )
  }
  x <- quietly(joint_profile(
    for (i in 1:10) for (loop in loops(5000000L + i)) evaluating(loop),
    interval = 0.01
  ))
  inside <- Filter(function(stack) "profile_test_looped()" %in% stack, profile_stacks(x))
  expect_gt(length(inside), 20)
  right <- vapply(inside, function(stack) {
    evals <- which(stack == "c_eval")
    # Left out, or right.
    length(evals) == 0 || evals[[1]] < match("profile_test_looped()", stack)
  }, NA)
  expect_true(all(right), info = paste(inside[!right], collapse = "\n"))
  if (getRversion() < "4.4.0") {
    expect_gte(mean(vapply(inside, function(stack) "c_eval" %in% stack, NA)), 0.99)
  }
})

test_that("a call is in the place of what R writes for it, and R's own frames are not", {
  skip_without_joint()
  x <- joint_run(native_library(), FALSE, seconds = 1, scenarios = c("plain", "nested"))
  stacks <- profile_stacks(x)
  # A tick may come before the native function has begun, or after its end.
  expect_lt(mean(unlist(lapply(stacks, function(stack) any(stack %in% native_calls)))), 0.02)
  expect_false(any(unlist(lapply(stacks, function(stack) startsWith(stack[[1]], "libR:")))))
  deepest <- Filter(function(stack) sum(stack == "c_outer") == 3, stacks)
  expect_gt(length(deepest), 5)
})

test_that("collections of garbage are in the native function that allocated", {
  skip_without_joint()
  x <- joint_run(native_library(), TRUE, seconds = 2, scenarios = "collected")
  stacks <- profile_stacks(x)
  collecting <- Filter(function(stack) "allocating()" %in% stack && "<GC>" %in% stack, stacks)
  expect_gt(length(collecting), 5)
  expect_gte(mean(vapply(collecting, function(stack) "c_allocate" %in% stack, NA)), 0.9)
  expect_true(all(vapply(collecting, function(stack) stack[[length(stack)]] == "<GC>", NA)))
})

test_that("an inlined function is a frame with its file and line", {
  skip_without_joint()
  x <- joint_run(native_library(), TRUE, seconds = 1.5, scenarios = c("plain", "nested"))
  stacks <- profile_stacks(x)
  spins <- Filter(function(stack) "c_spin" %in% stack, stacks)
  inlined <- vapply(spins, function(stack) identical(utils::tail(stack, 2), c("c_spin", "c_kernel")), NA)
  expect_gte(mean(inlined), 0.8)

  functions <- x$functions[match(x$locations$function_id, x$functions$function_id), ]
  kernel <- functions$name %in% "c_kernel"
  expect_true(all(x$locations$.inlined[kernel]))
  expect_false(any(x$locations$.inlined[functions$name %in% c("c_spin", "c_inner")]))
  expect_equal(unique(basename(functions$filename[kernel])), "calls.c")
  source <- readLines(test_path("native", "calls.c"))
  begin <- grep("double c_kernel(", source, fixed = TRUE)
  end <- begin - 1 + match("}", source[begin:length(source)])
  expect_true(all(x$locations$line[kernel] > begin & x$locations$line[kernel] < end))
  # The line of a function that called is that of the call.
  at <- x$locations$line[functions$name %in% c("c_inner", "e_inner", "c_void", "c_outer")]
  expect_true(all(grepl("c_spin(", source[at], fixed = TRUE) | grepl("Rf_eval(", source[at], fixed = TRUE)))
})

# What addr2line says of addresses in a file: functions and lines, innermost first.
addr2line <- function(file, addresses) {
  out <- system2("addr2line", c("-a", "-f", "-i", "-e", file, addresses), stdout = TRUE)
  parts <- split(out, cumsum(grepl("^0x[0-9a-f]+$", out)))
  lapply(unname(parts), function(lines) {
    lines <- lines[-1]
    at <- seq(1, length(lines), 2)
    line <- suppressWarnings(as.integer(sub("^.*:([0-9]+).*$", "\\1", lines[at + 1])))
    paste(native_name(lines[at]), line)
  })
}

test_that("Rcpp's functions are seen, and what they call in R", {
  skip_without_joint()
  skip_if_not_installed("Rcpp")
  code <- "
    // [[Rcpp::export]]
    double rcpp_spin(int n) {
      double x = 1;
      for (int i = 0; i < n; i++) x = x * 0.999 + i % 7;
      return x;
    }
    // [[Rcpp::export]]
    double rcpp_outer(Rcpp::Function f, int n) {
      double x = Rcpp::as<double>(f(n));
      return x + 1;
    }
  "
  own <- new.env()
  Rcpp::sourceCpp(code = paste("#include <Rcpp.h>", code), env = own)
  inner <- function(n) own$rcpp_spin(n)
  x <- quietly(joint_profile(for (i in 1:40) own$rcpp_outer(inner, 8000000L), interval = 0.01))
  # R has no name for a function that C++ code was given.
  stacks <- Filter(function(stack) "<Anonymous>()" %in% stack, profile_stacks(x))
  expect_gt(length(stacks), 20)
  order <- c("rcpp_outer", "<Anonymous>()", "rcpp_spin")
  right <- vapply(stacks, function(stack) {
    at <- match(order, stack)
    !anyNA(at) && !is.unsorted(at)
  }, NA)
  expect_gte(mean(right), 0.9, label = paste(unlist(utils::head(stacks[!right], 1)), collapse = " > "))
})

test_that("names and lines are those that addr2line finds for the addresses", {
  skip_without_joint()
  if (Sys.which("addr2line") == "") {
    skip("addr2line is not installed: names and lines are not compared with its")
  }
  lib <- native_library()
  x <- joint_run(lib, TRUE, seconds = 1.5)
  mapping <- x$.mappings[basename(dirname(x$.mappings$filename)) == basename(dirname(lib$path)), ]
  expect_equal(nrow(mapping), 1)
  ours <- x$locations[x$locations$.mapping_id %in% mapping$mapping_id, ]
  # In C++ names of the linker are compared: addr2line writes them plain.
  ours$name <- x$functions$name[match(ours$function_id, x$functions$function_id)]
  ours <- ours[grepl("^(c|e)_", ours$name), ]
  offset <- as.numeric(ours$.address) - as.numeric(mapping$memory_start) + as.numeric(mapping$file_offset)
  expect_gt(nrow(ours), 20)
  theirs <- addr2line(lib$path, sprintf("0x%x", as.integer(offset)))
  agree <- mapply(function(frame, frames) frame %in% frames, paste(ours$name, ours$line), theirs)
  expect_equal(paste(ours$name, ours$line)[!agree], character())
})

test_that("the file is one that summaryRprof() reads, with the same counts", {
  skip_without_joint()
  path <- withr::local_tempfile()
  workload <- native_workload(native_library())
  start_profiler(path, interval = 0.01)
  native_work(workload, 2, c("plain", "nested", "forced"))
  x <- quietly(stop_profiler())
  theirs <- utils::summaryRprof(path)
  expect_equal(theirs$sample.interval, 0.01)
  expect_equal(theirs$sampling.time, nrow(x$samples) * 0.01)
  stacks <- profile_stacks(x)
  for (name in c("leaf", "nested", "callback", "native_work")) {
    count <- sum(vapply(stacks, function(stack) paste0(name, "()") %in% stack, NA))
    expect_gt(count, 0)
    total <- theirs$by.total[paste0("\"", name, "\""), "total.time"]
    expect_equal(total, count * 0.01, info = name)
  }
  again <- read_rprof(path)
  expect_equal(nrow(again$samples), nrow(x$samples))
})

# How much of the CPU time of a run its samples stand for, with plain Rprof() and here.
sampled_shares <- function() {
  workload <- native_workload(native_library())
  scenarios <- c("plain", "nested", "evals", "collected")
  path <- withr::local_tempfile()
  utils::Rprof(path, interval = 0.01)
  plain <- native_work(workload, 2, scenarios)
  utils::Rprof(NULL)
  plain <- nrow(read_quietly(path)$samples) * 0.01 / plain
  start_profiler(path, interval = 0.01)
  joint <- native_work(workload, 2, scenarios)
  x <- quietly(stop_profiler())
  c(plain = plain, joint = nrow(x$samples) * 0.01 / joint)
}

test_that("the number of samples is that of plain Rprof()", {
  skip_without_joint()
  differ <- function(shares) max(abs(c(diff(shares), shares - 1)))
  part <- part_of_cpu(shares <- sampled_shares())
  if (differ(shares) > 0.1) {
    # What is wrong is so twice.
    part <- part_of_cpu(shares <- sampled_shares())
  }
  label <- paste("difference of", paste(round(shares, 3), collapse = " and "))
  skip_if_busy(differ(shares) > 0.1, part)
  expect_lte(differ(shares), 0.1, label = label)
})

# How far the share of each function is from the truth, in standard deviations.
split_deviations <- function(compile) {
  workload <- native_workload(native_library(), compile = compile)
  used <- NULL
  x <- with_jit(0, quietly(joint_profile(used <- native_split(workload, 4), interval = 0.01)))
  stacks <- profile_stacks(x)
  frames <- ifelse(startsWith(names(used), "c_"), names(used), paste0(names(used), "()"))
  counts <- vapply(frames, function(frame) {
    sum(vapply(stacks, function(stack) frame %in% stack, NA))
  }, 0)
  n <- sum(counts)
  share <- used / sum(used)
  expect_gt(n, 200)
  expect_gte(n / length(stacks), 0.97)
  expect_true(all(share > 0.05))
  abs(counts / n - share) / sqrt(share * (1 - share) / n)
}

test_that("shares of time are true within what chance allows", {
  skip_without_joint()
  for (compile in c(FALSE, TRUE)) {
    part <- part_of_cpu(deviations <- split_deviations(compile))
    if (any(deviations > 3.5)) {
      # As above.
      part <- part_of_cpu(deviations <- split_deviations(compile))
    }
    skip_if_busy(any(deviations >= 3.5), part)
    expect_true(all(deviations < 3.5), info = paste(round(deviations, 2), collapse = " "))
  }
})

test_that("code outside of any R function is sampled too", {
  skip_without_joint()
  result <- run_native(native_library(), c(
    "path <- tempfile()",
    "start_profiler(path, interval = 0.01)",
    "start <- process_cpu()",
    "while (process_cpu() < start + 2) .Call(lib$c_inner, 1000000L)",
    "x <- quietly(stop_profiler())",
    "stacks <- profile_stacks(x)",
    "here <- vapply(stacks, function(stack) 'c_inner' %in% stack, NA)",
    "first <- vapply(stacks[here], function(stack) stack[[1]], '')",
    "cat('here', sum(here) > 70, mean(here) > 0.9, unique(first), '\\n')",
    "cat('read', nrow(read_rprof(path)$samples) == sum(lengths(stacks) > 0), '\\n')"
  ))
  expect_equal(result$status, 0, info = paste(result$output, collapse = "\n"))
  expect_equal(answer(result, "here"), c("TRUE", "TRUE", "c_inner"))
  expect_equal(answer(result, "read"), "TRUE")
})

test_that("time that passes is sampled where R can do that", {
  skip_without_joint()
  path <- withr::local_tempfile()
  if (getRversion() < "4.4.0") {
    expect_error(start_profiler(path, event = "elapsed"), class = "profile_error_unsupported")
    expect_error(stop_profiler(), class = "profile_error")
    skip("R < 4.4 knows CPU time only")
  }
  workload <- native_workload(native_library())
  start_profiler(path, event = "elapsed", interval = 0.01)
  native_work(workload, 0.5, c("plain", "nested"))
  Sys.sleep(0.5)
  x <- quietly(stop_profiler())
  stacks <- profile_stacks(x)
  expect_entries(stacks, least = 30)
  expect_gt(sum(vapply(stacks, function(stack) "Sys.sleep()" %in% stack, NA)), 25)
})

test_that("native frames are in a summary, and in pprof files", {
  skip_without_joint()
  x <- joint_run(native_library(), TRUE, seconds = 1, scenarios = c("plain", "nested", "languages"))
  path <- withr::local_tempfile()
  write_pprof(x, path)
  expect_setequal(stacks(read_pprof(path)), stacks(x))
  functions <- summary(x)$by_function
  spins <- functions[functions$name == "c_spin", ]
  seen <- vapply(profile_stacks(x), function(stack) "c_spin" %in% stack, NA)
  expect_equal(sum(spins$total), sum(seen))
})

test_that("pprof shows the source and the machine code of native functions", {
  skip_without_joint()
  pprof <- skip_without_pprof()
  x <- joint_run(native_library("-O2 -g"), TRUE, seconds = 1, scenarios = c("plain", "nested"))
  path <- withr::local_tempfile(fileext = ".pb.gz")
  write_pprof(x, path)
  show <- function(option) {
    page <- withr::local_tempfile()
    args <- c(attr(pprof, "args"), option, paste0("-output=", page), shQuote(path))
    output <- suppressWarnings(system2(pprof, args, stdout = TRUE, stderr = TRUE))
    if (any(grepl("no matches found", output)) && grepl("go", attr(pprof, "found"))) {
      skip("Go's copy of pprof knew no shared libraries for long, and this is such a one")
    }
    paste(readLines(page), collapse = "\n")
  }
  source <- readLines(test_path("native", "calls.c"))
  loop <- trimws(grep("for \\(.*i < n", source, value = TRUE)[[1]])
  expect_match(show("-list=^c_spin$"), loop, fixed = TRUE)
  assembly <- show("-disasm=c_spin")
  expect_match(assembly, "ROUTINE =+ c_spin")
  # A kernel of floating point numbers; each disassembler has its own way to write.
  expect_match(assembly, "(add|mul)(sd|pd)", ignore.case = TRUE)
  expect_match(show("-weblist=c_spin"), "double x = 1;", fixed = TRUE)
})

test_that("a run has the time of its start, in all that it is written to", {
  skip_without_joint()
  path <- withr::local_tempfile()
  before <- as.numeric(Sys.time())
  start_profiler(path, interval = 0.01)
  begun <- as.numeric(Sys.time())
  native_work(native_workload(native_library()), 0.3, "plain")
  Sys.sleep(0.3)
  x <- quietly(stop_profiler())
  after <- as.numeric(Sys.time())
  start <- x$sources$source_timestamp
  duration <- x$sources$.duration_nanos / 1e9
  # The clocks of R and of the kernel differ by their resolution.
  expect_gte(start, before - 0.02)
  expect_lte(start, begun + 0.02)
  expect_gte(start + duration, begun + 0.6 - 0.02)
  expect_lte(start + duration, after + 0.02)

  file <- withr::local_tempfile()
  for (way in list(list(write_pprof, read_pprof), list(write_otlp, read_otlp))) {
    way[[1]](x, file)
    sources <- way[[2]](file)$sources
    expect_equal(sources$source_timestamp, start, tolerance = 1e-14)
    expect_equal(sources$.duration_nanos / 1e9, duration)
  }
  # The file of Rprof() was written at the end, and tells the time that it sampled.
  expect_gte(read_rprof(path)$sources$source_timestamp, start)

  skip_if_not_installed("RSQLite")
  skip_if_not_installed("dplyr")
  con <- DBI::dbConnect(RSQLite::SQLite())
  withr::defer(DBI::dbDisconnect(con))
  copy_profile_to(con, x)
  found <- profile_from_con(con, source_timestamp >= !!before - 1, source_timestamp <= !!after + 1)
  expect_equal(nrow(found$samples), nrow(x$samples))
  expect_equal(nrow(profile_from_con(con, source_timestamp > !!after + 1)$samples), 0)
})
