# tier: gate
# Native code with a glibc that is older than 2.35: the loader's list of modules says which module contains an address.

test_that("each tick has its native functions also without glibc's function for unwinders", {
  skip_without_native()
  lib <- native_library()
  hide <- file.path(
    built_once("hide", function(dir) {
      source <- normalizePath(test_path("native", "hide.c"))
      withr::local_dir(dir)
      file.copy(source, "hide.c")
      run_tool(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "-o", "hide.so", "hide.c"))
    }),
    "hide.so"
  )
  path <- withr::local_tempfile()
  result <- run_native(lib, env = paste0("env LD_PRELOAD=", hide), c(
    "workload <- native_workload(lib, compile = FALSE)",
    sprintf("x <- record_ticks(workload); saveRDS(x, \"%s\")", path),
    sprintf("dyn.load(\"%s\")", hide),
    "cat('hidden', .C('times_hidden', 0L)[[1]], '\\n')"
  ))
  expect_identical(result$status, 0L, info = paste(result$output, collapse = "\n"))
  expect_gte(as.integer(answer(result, "hidden")), 1)
  workload <- native_workload(lib, compile = FALSE)
  expected <- expected_ticks(workload, debug_info = TRUE)
  stacks <- profile_stacks(readRDS(path))
  expect_equal(scenario_of(stacks), names(expected))
  expect_equal(own_frames(stacks, workload), unname(expected))
  expect_all_right(stacks, length(expected), "the list of modules")
})
