# tier: gate
# R and native code in one profile: each frame is in its place. Tests generate ticks, so that each sample is known.
# test-native-robust.R disturbs runs, and bench/native measures the accuracy of shares.

test_that("each tick has its native functions below the R functions that called them", {
  skip_without_native()
  for (compile in c(FALSE, TRUE)) {
    plain <- NULL
    for (flags in c("-O2 -g", "-O2")) {
      info <- paste(flags, if (compile) "compiled" else "interpreted")
      workload <- native_workload(native_library(flags), compile = compile)
      expected <- expected_ticks(workload, debug_info = flags == "-O2 -g")
      expect_no_warning(x <- record_ticks(workload))
      expect_s3_class(x, "profile_data")
      expect_silent(validate_profile(x))
      expect_equal(nrow(profile_problems(x)), 0, info = info)
      stacks <- profile_stacks(x)
      expect_equal(scenario_of(stacks), names(expected), info = info)
      expect_equal(own_frames(stacks, workload), unname(expected), info = info)
      expect_all_right(stacks, length(expected), info)

      # The R functions between them are those that R's own profiler records.
      if (is.null(plain)) plain <- rprof_ticks(workload)
      expect_equal(r_frames(from_scenario(stacks)), r_frames(from_scenario(plain)), info = info)
    }
  }
})

test_that("where C code has R run byte code, nothing is in a wrong place", {
  skip_without_native()
  for (compile in c(FALSE, TRUE)) {
    workload <- native_workload(native_library(), compile = compile)
    scenarios <- c("bytecode", "evaluated")
    expected <- expected_ticks(workload, scenarios)
    stacks <- profile_stacks(quietly(record_ticks(workload, scenarios)))
    if (getRversion() < "4.4.0") {
      expect_equal(own_frames(stacks, workload), unname(expected))
    } else {
      # Stacks of byte code may have no native frames.
      expect_none_wrong(stacks)
      expect_equal(scenario_of(stacks), names(expected))
      sure <- scenario_of(stacks) == "evaluated"
      expect_equal(own_frames(stacks, workload)[sure], unname(expected)[sure])
    }
  }
})

test_that("loops of the global environment, which R compiles first, are in no wrong place either", {
  skip_without_native()
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
  x <- quietly(record_profile(native = TRUE, interval = 0.9, {
    only_given_ticks()
    for (i in 1:3) for (loop in loops(i)) evaluating(loop)
  }))
  stacks <- profile_stacks(x)
  # Seven calls in each turn, with one, two and three ticks.
  expect_length(stacks, 7 * (1 + 2 + 3))
  inside <- lapply(stacks, function(stack) intersect(stack, c("evaluating()", "c_eval", "profile_test_looped()", "c_inner")))
  right <- c("evaluating()", "c_eval", "profile_test_looped()", "c_inner")
  # From R 4.4 on, native frames may be left out.
  allowed <- if (getRversion() < "4.4.0") list(right) else list(right, right[c(1, 3)], right[c(1, 3, 4)])
  expect_equal(setdiff(inside, allowed), list())
})

# From R 4.4 on, a call that runs in the frame of its caller may be missing for some hundred instructions of a jump, see
# src/rust/core/src/joint/interleave.rs: only frames of R remain inside of the C code that is left.
may_lack_a_call <- function(stack) {
  within <- stack[seq_along(stack) > max(0, which(stack == "c_force"))]
  getRversion() >= "4.4" && "c_force" %in% stack && length(within) > 0 && all(startsWith(within, "libR:"))
}

test_that("ticks at any instruction are in no wrong place", {
  skip_without_native()
  skip_without_steps()
  workload <- native_workload(native_library(), compile = TRUE)
  steps <- with_jit(0, compiler::cmpfun(function(code, between) {
    .Call(workload$steps_start, between)
    eval(code, workload)
    .Call(workload$steps_stop)
  }))
  # One-time work of the dynamic linker is done now.
  rprof_ticks(workload)
  # The number of ticks of the native code itself, the number of instructions between two further ticks, and the code.
  calls <- list(
    list(1, 7L, quote(leaf(1L))), list(1, 23L, quote(external(1L))), list(1, 23L, quote(dot_c(1L))),
    list(3, 29L, quote(nested(1L, 1))), list(1, 29L, quote(forcing(forced(1L)))),
    list(1, 29L, quote(evaluating(quote(evaluated(1L))))), list(3, 29L, quote(cpp_exceptions(1L))),
    list(2, 23L, quote(sorting(1L))), list(3, 29L, quote(protected_unwind(quote(tried)))), list(2, 29L, quote(jumping(1L)))
  )
  for (call in calls) {
    info <- deparse(call[[3]])
    x <- with_jit(0, quietly(record_profile(native = TRUE, interval = 0.9, {
      only_given_ticks()
      given <- steps(call[[3]], call[[2]])
    })))
    expect_gt(given, 300)
    expect_equal(nrow(x$samples), given + call[[1]], info = info)
    # Few of them are reported as incomplete: R is about to make a call or to leave one, or C++ changes frames as it jumps.
    stacks <- complete_stacks(x)
    expect_gte(length(stacks), 0.98 * given)
    if (info == "jumping(1L)") stacks <- Filter(Negate(may_lack_a_call), stacks)
    found <- expect_none_wrong(stacks, info)
    expect_gte(found$right, call[[1]], label = info)
    expect_false(any(vapply(stacks, function(stack) startsWith(stack[[1]], "libR:"), NA)), info = info)
  }
})

test_that("an inlined function is a frame with its file and line", {
  skip_without_native()
  x <- record_ticks(native_workload(native_library(), compile = TRUE), c("plain", "nested"))
  stacks <- profile_stacks(x)
  expect_true(all(vapply(stacks, function(stack) identical(utils::tail(stack, 2), c("c_spin", "c_kernel")), NA)))

  functions <- x$functions[match(x$locations$function_id, x$functions$function_id), ]
  kernel <- functions$name %in% "c_kernel"
  expect_true(all(x$locations$.inlined[kernel]))
  expect_false(any(x$locations$.inlined[functions$name %in% c("c_spin", "c_inner")]))
  expect_equal(unique(basename(functions$filename[kernel])), "calls.c")
  # The line of the tick, and of the calls that lead to it.
  source <- readLines(test_path("native", "calls.c"))
  text <- function(names) unique(trimws(source[x$locations$line[functions$name %in% names]]))
  expect_equal(text("c_kernel"), "GIVE_TICK();")
  expect_equal(text("c_spin"), "x = c_kernel(x);")
  expect_setequal(text("c_outer"), c(
    "double x = c_spin(Rf_asInteger(n));", "x += Rf_asReal(Rf_eval(call, env));", "x += c_spin(Rf_asInteger(n));"
  ))
  expect_equal(text("c_void"), "void c_void(int *n, double *out) { *out = c_spin(*n) + 6; }")
})

# The output of addr2line for addresses in a file: functions and lines, innermost first.
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
  skip_without_native()
  skip_if_not_installed("Rcpp")
  dir <- built_once("rcpp", function(dir) {
    writeLines(c(
      "#include <Rcpp.h>",
      "// [[Rcpp::export]]",
      "double rcpp_outer(Rcpp::Function f, int n) {",
      "  double x = Rcpp::as<double>(f(n));",
      "  return x + 1;",
      "}"
    ), file.path(dir, "outer.cpp"))
    Rcpp::sourceCpp(file.path(dir, "outer.cpp"), env = new.env(), cacheDir = dir)
  })
  own <- new.env()
  Rcpp::sourceCpp(file.path(dir, "outer.cpp"), env = own, cacheDir = dir)
  lib <- native_library()
  x <- record_profile(native = TRUE, interval = 0.9, {
    only_given_ticks()
    own$rcpp_outer(function(n) .Call(lib$c_inner, n), 3L)
  })
  stacks <- profile_stacks(x)
  expect_length(stacks, 3)
  # R has no name for a function that was passed to C++ code.
  order <- c("rcpp_outer", "<Anonymous>()", "c_inner", "c_spin", "c_kernel")
  for (stack in stacks) {
    outer <- match("rcpp_outer", stack)
    expect_equal(intersect(stack[seq_along(stack) >= outer], order), order, info = paste(stack, collapse = " > "))
  }
})

test_that("names and lines agree with addr2line", {
  skip_without_native()
  if (Sys.which("addr2line") == "") {
    skip("addr2line is not installed: names and lines are not compared with its")
  }
  lib <- native_library()
  x <- record_ticks(native_workload(lib, compile = TRUE))
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

test_that("summaryRprof() reads the file, with the same counts", {
  skip_without_native()
  path <- withr::local_tempfile()
  workload <- native_workload(native_library())
  scenarios <- c("plain", "nested", "forced")
  start_profiler(path, interval = 0.9)
  only_given_ticks()
  run_scenarios(workload, scenarios)
  x <- stop_profiler()
  count <- length(expected_ticks(workload, scenarios))
  expect_equal(nrow(x$samples), count)
  theirs <- utils::summaryRprof(path)
  expect_equal(theirs$sample.interval, 0.9)
  expect_equal(theirs$sampling.time, count * 0.9)
  shown <- profile_stacks(x)
  for (name in c("leaf", "nested", "callback", "run_scenarios", "in_plain")) {
    frames <- sum(vapply(shown, function(stack) paste0(name, "()") %in% stack, NA))
    expect_gt(frames, 0)
    expect_equal(theirs$by.total[paste0("\"", name, "\""), "total.time"], frames * 0.9, info = name)
  }
  again <- read_rprof(path)
  expect_equal(stacks(again), stacks(x))
})

test_that("code outside of any R function is sampled too", {
  skip_without_native()
  result <- run_native(native_library(), c(
    "path <- tempfile()",
    "start_profiler(path, interval = 0.9)",
    "invisible(.Call(lib$ticks_only_given))",
    "invisible(.Call(lib$c_inner, 3L))",
    "x <- stop_profiler()",
    "for (stack in profile_stacks(x)) cat('stack', stack, '\\n')",
    "cat('read', nrow(read_rprof(path)$samples), '\\n')"
  ))
  expect_equal(result$status, 0, info = paste(result$output, collapse = "\n"))
  expect_equal(grep("^stack", result$output, value = TRUE), rep("stack c_inner c_spin c_kernel ", 3))
  expect_equal(answer(result, "read"), "3")
})

test_that("time that passes is sampled where R can do that", {
  skip_without_native()
  path <- withr::local_tempfile()
  if (getRversion() < "4.4.0") {
    expect_error(start_profiler(path, event = "elapsed"), class = "profile_error_unsupported")
    expect_error(stop_profiler(), class = "profile_error")
    skip("R < 4.4 knows CPU time only")
  }
  # R's own thread generates these ticks. Waits until R has written the line of a tick.
  start_profiler(path, event = "elapsed", interval = 0.01)
  size <- file.size(path)
  expect_true(wait_for(function() file.size(path) > size))
  x <- quietly(stop_profiler())
  expect_gt(nrow(x$samples), 0)
  expect_none_wrong(x)
})

test_that("R's copies are frames of their own, inside of what made R copy", {
  skip_without_native()
  lib <- native_library()
  # Assignments copy, and a C function.
  copies <- function(x) {
    y <- x
    y[1] <- 1
  }
  copying <- function(x) .Call(lib$c_copy, x)
  data <- as.numeric(seq_len(1e7))
  for (compile in c(FALSE, TRUE)) {
    if (compile) {
      copies <- compiler::cmpfun(copies)
      copying <- compiler::cmpfun(copying)
    }
    found <- NULL
    all_found <- wait_for(function() {
      x <- with_jit(0, quietly(record_profile(native = TRUE, interval = 0.005, {
        for (i in 1:10) {
          copies(data)
          copying(data)
        }
      })))
      stacks <- profile_stacks(x)
      expect_none_wrong(stacks)
      found <<- c(found, Filter(function(stack) "<copy>" %in% stack, stacks))
      inside <- function(name) any(vapply(found, function(stack) name %in% stack, NA))
      inside("copies()") && inside("copying()")
    })
    expect_true(all_found)
    # Between the function of R and the copy, there is only the C function with what it called.
    for (stack in unique(found)) {
      from <- match(c("copies()", "copying()"), stack)
      inner <- stack[-seq_len(max(from, na.rm = TRUE))]
      of_r <- grepl("^libR:|^__|mem(cpy|move)", inner)
      expected <- if (is.na(from[[1]])) c("c_copy", "<copy>") else "<copy>"
      expect_equal(inner[!of_r], expected, info = paste(stack, collapse = " "))
    }
  }
})

test_that("a recording with R's timer has samples, and each is legal", {
  skip_without_native()
  workload <- native_workload(native_library())
  withr::defer(.Call(workload$set_unit, 0L))
  path <- withr::local_tempfile()
  steps <- 1e6
  # The number of samples grows with the work; at least one is certain.
  expect_true(wait_for(function() {
    .Call(workload$set_unit, as.integer(steps))
    steps <<- min(2 * steps, 1e9)
    start_profiler(path, interval = 0.01)
    run_scenarios(workload, c("plain", "nested", "forced"))
    x <- quietly(stop_profiler())
    found <- native_entries(x)
    expect_equal(found$wrong, 0, info = paste(found$stacks, collapse = "\n"))
    expect_equal(sum(unlist(found[1:4])), nrow(x$samples))
    expect_equal(nrow(read_quietly(path)$samples), nrow(x$samples))
    expect_silent(validate_profile(x))
    found$right > 0
  }))
})

test_that("native frames are in a summary, and in pprof files", {
  skip_without_native()
  workload <- native_workload(native_library(), compile = TRUE)
  scenarios <- c("plain", "nested", "languages")
  x <- record_ticks(workload, scenarios)
  path <- withr::local_tempfile()
  write_pprof(x, path)
  expect_setequal(stacks(read_pprof(path)), stacks(x))
  functions <- summary(x)$by_function
  spins <- functions[functions$name == "c_spin", ]
  expect_equal(sum(spins$total), sum(grepl("c_spin", expected_ticks(workload, scenarios))))
})

test_that("pprof shows the source and the machine code of native functions", {
  skip_without_native()
  pprof <- skip_without_pprof()
  x <- record_ticks(native_workload(native_library("-O2 -g"), compile = TRUE), c("plain", "nested"))
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
  expect_match(show("-list=^c_spin$"), "x = c_kernel(x);", fixed = TRUE)
  assembly <- show("-disasm=c_spin")
  expect_match(assembly, "ROUTINE =+ c_spin")
  expect_match(assembly, "syscall", ignore.case = TRUE)
  expect_match(show("-weblist=c_spin"), "double x = 1;", fixed = TRUE)
})

test_that("the start time of a run is kept in all formats", {
  skip_without_native()
  path <- withr::local_tempfile()
  before <- as.numeric(Sys.time())
  start_profiler(path, interval = 0.9)
  begun <- as.numeric(Sys.time())
  only_given_ticks()
  run_scenarios(native_workload(native_library()), "plain")
  stopping <- as.numeric(Sys.time())
  x <- stop_profiler()
  after <- as.numeric(Sys.time())
  start <- x$sources$source_timestamp
  duration <- x$sources$.duration_nanos / 1e9
  # The clocks of R and of the kernel differ by their resolution.
  expect_gte(start, before - 0.02)
  expect_lte(start, begun + 0.02)
  expect_gte(start + duration, stopping - 0.02)
  expect_lte(start + duration, after + 0.02)

  file <- withr::local_tempfile()
  for (way in list(list(write_pprof, read_pprof), list(write_otlp, read_otlp))) {
    way[[1]](x, file)
    sources <- way[[2]](file)$sources
    expect_equal(sources$source_timestamp, start, tolerance = 1e-14)
    expect_equal(sources$.duration_nanos / 1e9, duration)
  }

  skip_if_not_installed("RSQLite")
  skip_if_not_installed("dplyr")
  con <- DBI::dbConnect(RSQLite::SQLite())
  withr::defer(DBI::dbDisconnect(con))
  store_profiles(x, con)
  # A store has seconds.
  times <- .POSIXct(c(before, after) + c(-1, 1), "UTC")
  found <- read_profile(tbl_profile(con, run_start >= !!times[1], run_start <= !!times[2]))
  expect_identical(found$sources$source_timestamp, floor(start))
  expect_equal(nrow(read_profile(tbl_profile(con, run_start > !!times[2]))$samples), 0)
})
