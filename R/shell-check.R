# `profile check`: checks a package as `R CMD check` does, and shows where the time goes.

shell_check <- function(options, values) {
  if (length(values) > 1) {
    abort_usage(paste0("Expected one folder or tarball, got ", count_of(length(values), "argument"), "."))
  }
  path <- c(values, ".")[[1]]
  interval <- shell_interval(options)
  name <- if (dir.exists(path)) basename(normalizePath(path)) else sub("_.*", "", basename(path))
  output <- record_target(options, name, "-check.html")
  result <- paste0(sub("[.][Hh][Tt][Mm][Ll]?$", "", output), ".rds")
  if (result == paste0(output, ".rds")) {
    abort_usage(paste0("`--output` must be a page, whose name ends with `.html`, not `", output, "`."))
  }
  if (is.null(options$output) && file.exists(result) && !is_check_file(result)) {
    why <- paste0("The file `", result, "` exists and is not the result of a check.")
    abort_usage(paste(why, "Choose another name with `-o`."))
  }
  x <- profile_check(path, args = as.character(options$passed), base = options$base, interval = interval)
  # The exit status is that of the check, whatever happens now.
  tryCatch(
    {
      if (!isTRUE(options$quiet)) shell_message(paste(format(x), collapse = "\n"))
      saveRDS(x, result)
      shell_written(result)
      if (!is.null(x$profile)) {
        write_page(x$profile, output, title = paste("R CMD check of", x$package))
        shell_written(output)
      }
    },
    error = function(error) shell_message("profile: ", conditionMessage(error))
  )
  x$status
}

is_check_file <- function(file) {
  inherits(tryCatch(suppressWarnings(readRDS(file)), error = function(error) NULL), "profile_check")
}
