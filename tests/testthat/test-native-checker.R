# tier: gate
# Tests of the code that checks merged stacks, with stacks written by hand and with stacks of plain Rprof().

stack <- function(text) strsplit(text, " ", fixed = TRUE)[[1]]

verdict <- function(text) {
  found <- native_entries(list(stack(text)))
  counts <- unlist(found[c("right", "wrong", "missing", "other")])
  expect_equal(sum(counts), 1, info = text)
  expect_equal(length(found$stacks), found$wrong, info = text)
  names(counts)[counts == 1]
}

expect_verdict <- function(expected, ...) {
  for (text in c(...)) expect_equal(verdict(text), expected, info = text)
}

test_that("native frames below what called them are right", {
  expect_verdict(
    "right",
    "work() leaf() c_inner",
    "work() leaf() c_inner c_spin c_kernel",
    "leaf() c_inner libR:Rf_ScalarReal libR:Rf_allocVector",
    "leaf() c_inner <GC>",
    "leaf() c_inner <copy>",
    "copying() c_copy libR:Rf_duplicate libR:? memcpy <copy>",
    "collecting() c_collect libR:R_gc libR:? c_free <GC>",
    "lapply() FUN() c_applied c_spin",
    "nested() c_outer c_spin",
    "nested() c_outer callback() leaf() c_inner c_spin",
    "nested() c_outer callback() nested() c_outer callback() leaf() c_inner",
    "nested() c_outer callback() nested() c_outer c_spin",
    "forcing_deep() forcing_deep() forcing() c_force forced() leaf() c_inner",
    "evaluating() c_eval evaluated() leaf() c_inner",
    "evaluating() c_eval c_direct c_spin",
    "evaluating() c_eval libR:Rf_eval libR:? libR:R_doDotCall c_direct c_spin",
    "protected_unwind() c_unwind libR:R_UnwindProtect c_body tried() leaf() c_inner",
    "protected_toplevel() c_toplevel libR:R_ToplevelExec c_toplevel_body c_body c_spin",
    "protected_try() c_try tryCatch() tryCatchList() tryCatchOne() doTryCatch() c_body tried() leaf() c_inner",
    "sorting() c_sort msort_with_tmp msort_with_tmp c_compare c_spin",
    "gc() <Anonymous>() finish() c_finish",
    "cpp_exceptions() cpp_catch thrown c_spin"
  )
})

test_that("native frames elsewhere are wrong", {
  expect_verdict(
    "wrong",
    # below another function
    "work() c_inner",
    "leaf() work() c_inner",
    "leaf() identity() c_inner c_spin",
    "external() c_inner",
    "c_inner",
    "c_inner leaf()",
    # one level too far out, or in
    "nested() c_outer c_spin callback() leaf() c_inner",
    "nested() callback() c_outer leaf() c_inner",
    "nested() callback() leaf() c_outer c_inner",
    "nested() c_outer c_inner callback() leaf()",
    "nested() callback() nested() c_outer callback() leaf() c_inner",
    "nested() c_outer callback() nested() callback() leaf() c_inner",
    # the outer of two calls lost
    "forcing() forced() leaf() c_inner",
    "evaluating() evaluated() leaf() c_inner c_spin",
    "evaluating() c_direct",
    # a native function below one that does not call it
    "leaf() c_inner c_body",
    "leaf() c_spin",
    "rust() rust_inner c_spin",
    "sorting() c_sort other() c_compare",
    "sorting() other c_compare",
    # R's own frames, and items, where they are left out
    "leaf() libR:do_dotcall c_inner",
    "nested() c_outer libR:Rf_eval callback() leaf() c_inner",
    "leaf() .Call() c_inner",
    "nested() .Call() c_outer",
    "work() libR:Rf_eval leaf() c_inner",
    "sort() libR:do_sort",
    "leaf() <GC> c_inner",
    "leaf() <copy> c_inner",
    "leaf() c_inner <copy> <GC>",
    # half of it merged
    "protected_unwind() c_unwind c_body tried() leaf() c_inner callback()"
  )
})

test_that("stacks that were not merged are missing, if they should have been", {
  expect_verdict(
    "missing",
    "work() leaf()",
    "leaf()",
    "work() leaf() .Call()",
    "external() .External()",
    "nested() callback() leaf()",
    "nested() .Call() callback() leaf() .Call()",
    "nested() .Call() callback() work()",
    # below a frame that is right
    "nested() c_outer callback() leaf()"
  )
  expect_verdict(
    "other",
    "work()",
    "work() sort() order()",
    "work() sort() qsort",
    "leaf() identity()",
    "leaf() <GC>",
    "leaf() .Call() <GC>",
    "<GC>"
  )
  expect_equal(native_entries(list(character()))$other, 1)
})

test_that("before a long jump R has forgotten what it leaves, and only then", {
  expect_verdict(
    "other",
    "try() doTryCatch() c_error c_fail libR:Rf_error libR:Rf_errorcall libR:?",
    "protected_try() c_try doTryCatch() c_body libR:Rf_eval libR:? c_error c_fail libR:Rf_error"
  )
  expect_verdict("right", "try() doTryCatch() failing() c_error c_fail libR:Rf_error libR:Rf_errorcall")
  expect_verdict(
    "wrong",
    "try() doTryCatch() c_error c_fail c_spin",
    "try() doTryCatch() c_error c_fail libR:Rf_error handler() c_inner",
    "protected_try() c_try doTryCatch() c_error c_fail libR:Rf_error handler()",
    "nested() callback() failing() c_error c_fail libR:Rf_error"
  )
})

test_that("samples are counted, including equal ones, and the first wrong ones are reported", {
  texts <- c("leaf() c_inner", "leaf()", "work() c_inner", "leaf() c_inner", "work()", "work() c_inner")
  found <- native_entries(lapply(texts, stack))
  expect_equal(unlist(found[1:4]), c(right = 2, wrong = 2, missing = 1, other = 1))
  expect_equal(found$stacks, "work() > c_inner")
  expect_equal(unlist(native_entries(list())[1:4]), c(right = 0, wrong = 0, missing = 0, other = 0))
})

test_that("a profile's tables become stacks", {
  names <- c(
    "leaf", "c_inner", "double kernel::spin<double>(int)", "f_inner_", "Rf_eval", "<GC>",
    "rust::kernel::spin::h0123456789abcdef", "kernel::thrown(int) [clone .cold]", NA
  )
  x <- list(
    samples = tibble::tibble(sample_id = c(4L, 2L, 9L), source_id = 1L),
    sample_locations = tibble::tibble(
      sample_id = rep(c(4L, 2L), c(4, 6)), depth = c(4:1, 1:6), location_id = 10L * c(1, 2, 3, 5, 6, 8, 7, 4, 1, 9)
    ),
    locations = tibble::tibble(
      location_id = 10L * 1:9, function_id = 1:9, line = 0L,
      .frame_type = c("r", rep("native", 4), NA, "native", "native", "native"),
      .mapping_id = c(NA, 1L, 1L, 1L, 2L, NA, 1L, 1L, 1L)
    ),
    functions = tibble::tibble(function_id = 1:9, name = names),
    .mappings = tibble::tibble(mapping_id = 1:2, filename = c("/x/native.so", "/usr/lib/R/lib/libR.so"))
  )
  expect_equal(profile_stacks(x), list(
    stack("leaf() c_inner spin libR:Rf_eval"), stack("? leaf() f_inner spin thrown <GC>"), character()
  ))
})

test_that("plain Rprof() sees the R functions that the judge knows", {
  skip_without_native()
  lib <- native_library()
  for (compile in c(FALSE, TRUE)) {
    info <- if (compile) "compiled" else "interpreted"
    workload <- native_workload(lib, compile = compile)
    seen <- rprof_ticks(workload)
    expect_equal(scenario_of(seen), names(expected_ticks(workload)), info = info)
    # No stack is merged, and all should be.
    counts <- unlist(native_entries(seen)[c("right", "wrong", "missing", "other")])
    expect_equal(counts[["wrong"]] + counts[["right"]], 0, info = info)
    # Places where no native frame is expected: a function without a name, R's own handlers, garbage collections.
    not_due <- "c_applied|c_try c_body c_spin|c_try c_handler|c_free"
    expect_equal(counts[["other"]], sum(grepl(not_due, expected_ticks(workload))), info = info)
    # The checker's functions exist, and no other function of the workload calls native code.
    languages <- c(dot_fortran = "f_inner", rust = "rust_inner")
    missing <- names(languages)[!vapply(languages, exists, NA, envir = workload)]
    expected <- paste0(setdiff(native_only, c("forked", "interrupting", "split_some", "split_more", missing)), "()")
    expect_equal(setdiff(expected, unlist(seen)), character(), info = info)
    expect_equal(setdiff(grep("()", names(native_callers), fixed = TRUE, value = TRUE), unlist(seen)), character())
    callers <- unlist(lapply(seen, function(stack) stack[which(stack %in% native_calls) - 1]))
    ours <- setdiff(callers[callers %in% paste0(ls(workload), "()")], unlist(native_callers))
    expect_equal(setdiff(ours, "protected_try()"), character(), info = info)
    if (!compile) {
      expect_true(all(c(".Call()", ".External()", ".C()") %in% unlist(seen)))
    }
  }
})

test_that("the library is as intended, with and without debug information", {
  skip_without_native()
  for (flags in c("-O2 -g", "-O2")) {
    lib <- native_library(flags)
    # Native frames of the library have names in both.
    names <- system2("nm", c("-D", "--defined-only", lib$path), stdout = TRUE)
    entries <- setdiff(grep("^(c|e|f|cpp|rust)_", names(lib), value = TRUE), "c_inner_info")
    expect_true(all(sub("^f_inner$", "f_inner_", entries) %in% sub("^.* ", "", names)))
    sections <- system2("readelf", c("-S", "--wide", lib$path), stdout = TRUE)
    expect_equal(any(grepl(".debug_info", sections, fixed = TRUE)), flags == "-O2 -g")
    # Work instead of ticks, for profilers with a timer: the value depends on the amount of work.
    .Call(lib$set_unit, 1000L)
    expect_true(.Call(lib$c_inner, 1L) != .Call(lib$c_inner, 2L))
    expect_equal(.Call(lib$c_inner, 3L), .External(lib$e_inner, 3L) - 4)
    expect_equal(.C(lib$c_void, 3L, 0)[[2]], .Call(lib$c_inner, 3L) + 5)
    expect_gt(.Call(lib$c_split_some, 100L), 0)
    .Call(lib$set_unit, 0L)
  }
})

test_that("disturbances of a profiler occur", {
  skip_without_native()
  lib <- native_library()
  expect_equal(.Call(lib$busy_start, 2L), 2L)
  expect_gte(.Call(lib$busy_stop), 0)
  result <- run_native(lib, c(
    "owner <- function(when) cat(when, basename(.Call(lib$sigprof_owner)), '\\n')",
    "owner('before')",
    "Rprof(tempfile(), interval = 0.9)",
    "invisible(.Call(lib$storm_start, 200L, system.file('libs', 'splines.so', package = 'splines')))",
    # Until there are samples.
    "repeat { cpu <- sum(rnorm(1e4)); if (all(.Call(lib$storm_counts) > 10)) break }",
    "cat('sent', all(.Call(lib$storm_stop) > 10), '\\n')",
    "owner('during')",
    ".Call(lib$sigprof_take)",
    "owner('taken')",
    ".Call(lib$sigprof_return)",
    "Rprof(NULL)",
    "owner('after')"
  ))
  expect_equal(result$status, 0, info = paste(result$output, collapse = "\n"))
  expect_equal(answer(result, "before"), "default")
  expect_equal(answer(result, "sent"), "TRUE")
  expect_match(answer(result, "during"), "^(libR.so|R)$")
  expect_equal(answer(result, "taken"), "native.so")
  expect_match(answer(result, "after"), "^(libR.so|R)$")
})
