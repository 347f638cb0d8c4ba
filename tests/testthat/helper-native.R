# Native code to profile: builds the library in native/, and starts R processes that use it.

# Native code can be recorded on this platform only, and the tests need compilers.
skip_without_native <- function() {
  testthat::skip_on_cran()
  if (!is_live_platform()) {
    testthat::skip(paste("native code is recorded only on", live_platforms()))
  }
  for (tool in c("CC", "CXX")) {
    if (!has_compiler(tool)) {
      testthat::skip(paste0("there is no compiler (", tool, "): nothing native to profile"))
    }
  }
}

skip_without_steps <- function() {
  testthat::skip_if_not(R.version$arch == "x86_64", "only x86-64 can stop after each instruction")
}

# Whether the compiler that R was configured with is installed.
has_compiler <- function(variable) {
  if (is.null(compilers[[variable]])) {
    r <- file.path(R.home("bin"), "R")
    command <- suppressWarnings(system2(r, c("CMD", "config", variable), stdout = TRUE, stderr = TRUE))
    compilers[[variable]] <- Sys.which(sub(" .*", "", command[[1]])) != "" && Sys.which("make") != ""
  }
  compilers[[variable]]
}

compilers <- new.env()

# Fortran and Rust are optional; the workload omits the parts that need a missing compiler.
native_symbols <- c(
  "c_inner", "c_applied", "c_forked", "c_direct", "c_finish", "e_inner", "c_void", "f_inner",
  "cpp_inner", "cpp_catch", "rust_inner", "c_outer", "c_force", "c_eval", "c_error", "c_try",
  "c_unwind", "c_toplevel", "c_collect", "c_copy", "c_finalizer", "c_allocate", "c_sort", "c_interrupt", "c_threads", "c_split_some", "c_split_more", "c_cpu", "c_changed",
  "set_unit", "steps_start", "steps_stop", "busy_start", "busy_stop", "storm_start", "storm_counts", "storm_stop", "sigprof_owner",
  "sigprof_take", "sigprof_return", "ticks_only_given", "ticks_give"
)

# The library, built with these flags once in a test run, as native_load() returns it. A library
# that is built without -g is stripped: only exported names remain.
native_library <- function(flags = "-O2 -g") {
  dir <- built_once(paste0("native", gsub("[^A-Za-z0-9]+", "-", flags)), function(dir) build_native(flags, dir))
  with_its_ticks(native_load(file.path(dir, "native.so")))
}

# The library also contains the functions that only_given_ticks() and tick() need.
with_its_ticks <- function(lib) {
  ticks$only_given <- lib$ticks_only_given
  ticks$give <- lib$ticks_give
  lib
}

build_native <- function(flags, dir) {
  file.copy(base::dir(testthat::test_path("native"), full.names = TRUE), dir)
  withr::local_dir(dir)
  # Cold parts of functions have no exported names.
  if (!grepl("-g", flags)) {
    flags <- paste(flags, "-fno-reorder-blocks-and-partition")
  }
  # R's own flags come last, so the user's flags replace them.
  languages <- c("C", "CXX", paste0("CXX", c(11, 14, 17, 20, 23, 26)), "F", "FC")
  writeLines(paste0(languages, "FLAGS = ", flags), "Makevars.user")
  sources <- c("calls.c", "threads.c", "ticks.c", "cplusplus.cpp")
  libraries <- "-lpthread -ldl"
  if (has_compiler("FC")) {
    sources <- c(sources, "fortran.f90")
  }
  if (Sys.which("rustc") != "") {
    debug <- if (grepl("-g", flags, fixed = TRUE)) "-g"
    run_tool("rustc", c(
      "--crate-type", "staticlib", "--edition", "2021", "-O", debug, "-o", "librust.a", "rust.rs"
    ))
    libraries <- paste("-Wl,-u,rust_inner librust.a", libraries)
  }
  withr::local_envvar(R_MAKEVARS_USER = file.path(getwd(), "Makevars.user"), PKG_LIBS = libraries)
  run_tool(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "-o", "native.so", sources))
  if (!grepl("-g", flags)) {
    run_tool("strip", c("--strip-all", "native.so"))
  }
}

run_tool <- function(command, args) {
  out <- suppressWarnings(system2(command, args, stdout = TRUE, stderr = TRUE))
  if (!is.null(attr(out, "status"))) {
    stop("The test library cannot be built:\n", paste(out, collapse = "\n"), call. = FALSE)
  }
}

# A list of the addresses that .Call() and similar functions take, with the path of the library.
native_load <- function(path) {
  dll <- dyn.load(path)
  lib <- list(path = path)
  for (name in native_symbols) {
    info <- tryCatch(getNativeSymbolInfo(name, dll), error = function(e) NULL)
    lib[[name]] <- info$address
  }
  # As in packages with registered routines.
  lib$c_inner_info <- getNativeSymbolInfo("c_inner", dll)
  lib
}

# Evaluates `code` with R's just-in-time compiler at this level. At level 0, functions are not
# compiled.
with_jit <- function(level, code) {
  old <- compiler::enableJIT(level)
  on.exit(compiler::enableJIT(old))
  force(code)
}

# Runs code in a separate R process with these helpers and `lib`. A process that hangs is ended,
# with status 124.
run_native <- function(lib, code, seconds = 300, env = "") {
  helpers <- file.path(
    normalizePath(testthat::test_path()), c("helper-native.R", "helper-stacks.R", "helper-ticks.R", "helper-workload.R")
  )
  run_r(
    c(
      "library(profile)",
      sprintf("source(%s)", encodeString(helpers, quote = "\"")),
      sprintf("lib <- with_its_ticks(native_load(%s))", encodeString(lib$path, quote = "\"")),
      code
    ),
    env = paste(env, "timeout -k 5", seconds)
  )
}

# The words that such a process printed after the word `name`.
answer <- function(result, name) {
  lines <- grep(paste0("^", name, " "), result$output, value = TRUE)
  strsplit(trimws(utils::tail(lines, 1)), " ")[[1]][-1]
}
