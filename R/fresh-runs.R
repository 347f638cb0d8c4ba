# Runs of `benchmark_profile(fresh = TRUE)`: each in a new R process, which evaluates inst/record/fresh.R.

# Checks that an expression can be evaluated in another process, and returns list(code, globals): the variables of the
# global environment that it needs.
portable_code <- function(expr, env, call) {
  names <- all.names(expr, unique = TRUE)
  local <- character()
  while (!identical(env, globalenv()) && !identical(env, emptyenv())) {
    # What is attached, and base, exists in the other process as well.
    if (!identical(env, baseenv()) && !identical(env, .BaseNamespaceEnv)) {
      has <- vapply(names, exists, NA, envir = env, inherits = FALSE)
      local <- union(local, names[has])
    }
    env <- parent.env(env)
  }
  if (length(local) > 0) {
    abort_argument(c(
      paste0(
        "With `fresh = TRUE` the expression runs in a new R process, where ",
        if (length(local) > 1) "the local variables " else "the local variable ", in_backticks(shown_label(local)),
        if (length(local) > 1) " do not exist." else " does not exist."
      ),
      i = "Use constants, variables of the global environment, or functions of packages."
    ), call)
  }
  list(code = expr, globals = globals_used(names))
}

# The variables of the global environment with these names, and those that their functions use.
globals_used <- function(names) {
  found <- list()
  while (length(names) > 0) {
    new <- mget(names, globalenv(), ifnotfound = list(NULL), inherits = FALSE)
    new <- new[vapply(names, exists, NA, envir = globalenv(), inherits = FALSE)]
    found <- c(found, new)
    functions <- Filter(is.function, new)
    used <- unlist(lapply(functions, function(f) c(all.names(body(f)), unlist(lapply(formals(f), all.names)))))
    names <- setdiff(used, names(found))
  }
  found
}

# One run. `way`: "time" or "Rprofmem". `folder` is a new one if it is not given. The attribute `failed` is the number of tests
# that have failed, if tests were run.
fresh_run <- function(
    work, times, way, interval, call, libraries = .libPaths(), folder = NULL, has_sampler = TRUE) {
  if (is.null(folder)) {
    folder <- new_recording_folder()
    remove_folder <- remover_of(folder)
    on.exit(remove_folder())
  }
  settings <- list(
    libraries = libraries, code = work$code, globals = work$globals, times = times, way = way, interval = interval, folder = folder,
    library = if (has_sampler && is_live_platform()) getLoadedDLLs()[["profile"]][["path"]],
    titled = data_model()$titled$`function`
  )
  saveRDS(settings, in_folder(folder, "settings.rds"))
  script <- in_folder(folder, "run.R")
  path <- function(file) deparse(file, control = NULL)
  writeLines(c(
    paste0("settings <- readRDS(", path(in_folder(folder, "settings.rds")), ")"),
    readLines(system.file("record", "fresh.R", package = "profile"))
  ), script)
  result <- run_in_new_process(script, folder, call)
  if (!is.null(result$error)) {
    stop(result$error)
  }
  x <- if (result$has_sampler) {
    new_profile_data(result$stopped$tables, "2.0")
  } else {
    format <- if (way == "time") "rprof" else "rprofmem"
    read_format(in_folder(folder, "recorded.out"), format, "2.0", NA_character_, call)
  }
  x <- without_code_of_callers(without_own_frames(x, result$frames, call))
  if (is.null(result$failed)) x else structure(x, failed = result$failed)
}

# Without the profiles of the site and of the user, which may load packages.
run_in_new_process <- function(script, folder, call) {
  output <- in_folder(folder, "output")
  program <- file.path(R.home("bin"), "Rscript")
  status <- system2(program, c("--vanilla", shQuote(script)), stdout = output, stderr = output)
  result <- in_folder(folder, "result.rds")
  if (!file.exists(result)) {
    last <- utils::tail(readLines(output, warn = FALSE), 1)
    abort_profile(
      c(paste0("The R process of a run has ended with status ", status, "."), x = if (length(last) > 0) shown_text(last)),
      "profile_error_process", call = call
    )
  }
  readRDS(result)
}
