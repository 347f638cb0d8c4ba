# Records where functions of packages are in their byte code, beside R's profiler, in the process of a script (see R/lines.R and
# script.R, which evaluates this before it begins). The script must not see other packages than without the recording, so only
# the native code of this package is loaded until the script has ended.

# Begins to record, when R's profiler is on; NULL if that is impossible.
begin_positions <- NULL
# Whether positions are recorded.
has_positions <- FALSE

prepare_positions <- function() {
  native <- library.dynam("profile", "profile", settings$library)
  routine <- function(name) getNativeSymbolInfo(paste0("wrap__rust_", name), native)$address
  # As when the package is loaded (R/rust.R).
  .External(getNativeSymbolInfo("profile_load", native)$address, as.numeric(file.mtime(native[["path"]])))
  checked <- function(outcome) if (is.null(outcome[[2]])) outcome[[1]] else stop(outcome[[2]]$message, call. = FALSE)
  look <- routine("lines_look")
  find <- routine("lines_find")
  block <- routine("native_block")
  start <- routine("native_start")
  # As `found_positions()` in R/lines.R: R's variables are found by calls of byte code.
  looked <- compiler::cmpfun(function() .Call(look))
  found <- compiler::cmpfun(function() .Call(find))
  deeper <- compiler::cmpfun(function(depth) if (depth == 0) found() else do.call(deeper, list(depth - 1)))
  checked(looked())
  is_found <- FALSE
  for (depth in 1:4) is_found <- is_found || checked(deeper(depth))
  if (!is_found) stop("the variables in which this R keeps positions in byte code were not found.")
  titled <- Map(function(package, name) {
    if (isNamespaceLoaded(package)) get0(name, asNamespace(package), mode = "function", inherits = FALSE)
  }, settings$titled$package, settings$titled$name)
  options <- list(
    path = c(file, file), native = FALSE, positions = TRUE, megabytes = settings$megabytes, titled = titled,
    version = unlist(getRversion())[1:2]
  )
  begin_positions <<- compiler::cmpfun(function(record) {
    # The signal is blocked until both are ready.
    .Call(block, TRUE)
    on.exit(.Call(block, FALSE))
    record()
    options$closures <- sys.nframe()
    # Not an argument, since that would add a frame.
    outcome <- .Call(start, options)
    checked(outcome)
    has_positions <<- TRUE
  })
}

miss_positions <- function(error) {
  writeLines(gsub("\n", " ", conditionMessage(error)), file.path(settings$folder, "missing"))
}

# Ends R's profiler, and saves the profile with the lines. R's file remains as it is.
save_with_lines <- function() {
  profile <- profile_namespace()
  profile$rust_native_block(TRUE)
  on.exit(profile$rust_native_block(FALSE))
  utils::Rprof(NULL)
  # What child processes have written to the file is removed later.
  if (file.exists(file.path(settings$folder, "copies"))) {
    return()
  }
  x <- withCallingHandlers(profile$read_with_lines(file, TRUE, NULL), warning = function(warning) {
    note(gsub("\n[^ ]+ ", " ", conditionMessage(warning)))
    tryInvokeRestart("muffleWarning")
  })
  saveRDS(x, file.path(settings$folder, "profile.rds"))
}
