# Evaluated by a new R process for one run of `benchmark_profile(fresh = TRUE)` (R/fresh-runs.R): records an expression. This
# package and those that it needs are not loaded, since loading packages may be what is recorded. The sampler of its shared
# library is used without them, to note which packages are loaded; where it does not work, R's profiler records alone.
#
# `settings`: libraries, code, globals (a list), times, way ("time" or "Rprofmem"), interval, library (the shared library, or NULL),
# titled (names of functions, of which those of base are used), folder (of this run).

.libPaths(settings$libraries)
invisible(list2env(settings$globals, globalenv()))
run <- as.function(list(settings$code), envir = globalenv())
environment(run) <- globalenv()
path <- file.path(settings$folder, "recorded.out")
dll <- NULL

sampler <- function(name, ...) {
  outcome <- .Call(getNativeSymbolInfo(paste0("wrap__rust_native_", name), dll), ...)
  if (!is.null(outcome[[2]])) stop(outcome[[2]]$message, call. = FALSE)
  outcome[[1]]
}

# Whether the sampler works here, and can start.
prepare <- function() {
  if (settings$way != "time" || is.null(settings$library)) {
    return(FALSE)
  }
  tryCatch(
    {
      dll <<- dyn.load(settings$library)
      .External(getNativeSymbolInfo("profile_load", dll), as.numeric(file.mtime(settings$library)))
      sampler("check", settings_of_sampler())
      TRUE
    },
    error = function(error) FALSE
  )
}

# To be evaluated as an argument of `sampler()`, which is the innermost function when it calls the sampler.
settings_of_sampler <- function() {
  list(
    path = c(path, path), megabytes = 512L, closures = sys.nframe() - 1L, native = FALSE, positions = FALSE,
    titled = lapply(settings$titled, get0, envir = baseenv(), mode = "function", inherits = FALSE),
    version = unlist(getRversion())[1:2]
  )
}

.start_of_run <- function() {
  if (settings$way == "Rprofmem") {
    utils::Rprofmem(path)
  } else if (has_sampler) {
    sampler("block", TRUE)
    on.exit(sampler("block", FALSE))
    utils::Rprof(path, interval = settings$interval, gc.profiling = TRUE, memory.profiling = TRUE)
    sampler("start", settings_of_sampler())
  } else {
    utils::Rprof(path, interval = settings$interval, gc.profiling = TRUE)
  }
}

.end_of_run <- function() {
  if (settings$way == "Rprofmem") {
    utils::Rprofmem("")
  } else if (has_sampler) {
    sampler("block", TRUE)
    on.exit(sampler("block", FALSE))
    utils::Rprof(NULL)
    sampler("stop", c(path, path), path, NA_character_, FALSE, NULL, NULL, FALSE)
  } else {
    utils::Rprof(NULL)
  }
}

record <- function() {
  gc(FALSE)
  .start_of_run()
  for (i in seq_len(settings$times)) {
    run()
  }
  # The frames up to this function, and the one of `run()`.
  list(stopped = .end_of_run(), frames = sys.nframe() + 1L)
}

has_sampler <- prepare()
result <- tryCatch(record(), error = function(error) list(error = error))
result$has_sampler <- has_sampler
# By tests, see R/benchmark-package.R.
result$failed <- getOption("profile.failed_tests")
saveRDS(result, file.path(settings$folder, "result.rds"))
