# Called by configure: finds Rust, unpacks vendored crates, writes src/Makevars.
#
# A release tarball carries the crates in src/rust/vendor.tar.xz and builds
# offline, in its own folder, with a CARGO_HOME of its own; it leaves nothing
# behind. A checkout builds from the registry and keeps its target folder.
#
# DEBUG=1 builds quickly instead of well.

fail <- function(...) {
  message(...)
  quit("no", status = 1)
}

minimum <- local({
  requirements <- read.dcf("DESCRIPTION", "SystemRequirements")[[1]]
  sub(".*rustc \\(>= ([0-9.]+)\\).*", "\\1", requirements)
})

windows <- .Platform$OS.type == "windows"
r_cmd <- file.path(R.home("bin"), "R")
compiler <- system2(r_cmd, c("CMD", "config", "CC"), stdout = TRUE)
wasm <- any(grepl("emcc", compiler)) || grepl("wasm|emscripten", R.version$platform)

find_tool <- function(name) {
  found <- Sys.which(name)
  if (found == "") {
    # Where rustup puts it, for shells that do not have it on the PATH.
    home <- Sys.getenv("CARGO_HOME", file.path(path.expand("~"), ".cargo"))
    found <- Sys.which(file.path(home, "bin", name))
  }
  if (found == "") {
    fail(
      name, " was not found on the PATH or in ~/.cargo/bin.\n",
      "This package needs Rust ", minimum, " or later: install it from ",
      "https://rustup.rs, or with the system's packages\n",
      "(Debian, Ubuntu: apt-get install cargo; Fedora: dnf install cargo; macOS: brew install rust)."
    )
  }
  # Not the file a link points to: rustup tells its tools apart by the name.
  file.path(normalizePath(dirname(found), "/"), basename(found))
}

cargo <- find_tool("cargo")
rustc <- find_tool("rustc")
cat(system2(cargo, "--version", stdout = TRUE), "\n")
version <- system2(rustc, "--version", stdout = TRUE)
cat(version, "\n")
number <- sub("^rustc ([0-9.]+).*", "\\1", version[[1]])
if (package_version(number) < minimum) {
  fail("Rust ", minimum, " or later is needed, found ", number, ". `rustup update` gets a newer one.")
}

rust <- normalizePath("src/rust", "/")
env <- paste0("PATH=\"", dirname(rustc), ":$(PATH)\"")
args <- "--locked"

vendored <- file.path(rust, "vendor.tar.xz")
release <- file.exists(vendored)
if (release) {
  utils::untar(vendored, exdir = rust, tar = "internal")
  config <- file.path(rust, "vendor-config.toml")
  writeLines(
    c(
      "[source.crates-io]", "replace-with = \"vendored\"",
      "[source.vendored]", paste0("directory = \"", file.path(rust, "vendor"), "\"")
    ),
    config
  )
  env <- c(env, paste0("CARGO_HOME=\"", file.path(rust, "cargo-home"), "\""))
  # Two jobs are what CRAN allows.
  args <- c(args, "--offline", "--config rust/vendor-config.toml", "-j 2")
}

profile <- if (Sys.getenv("DEBUG") %in% c("", "0", "false")) "release" else "debug"
if (profile == "release") {
  args <- c(args, "--release")
}

triple <- ""
libs <- "-lpthread -ldl -lm"
if (wasm) {
  triple <- "wasm32-unknown-emscripten"
  # There is no unwinding there: a panic, which is a bug, ends the process.
  env <- c(env, "CARGO_PROFILE_RELEASE_PANIC=abort", "CARGO_PROFILE_DEV_PANIC=abort")
} else if (windows) {
  triple <- "x86_64-pc-windows-gnu"
  libs <- "-lws2_32 -ladvapi32 -luserenv -lbcrypt -lntdll"
  # rustc's GNU target names a library that Rtools does not have; it is not used.
  file.create("src/libgcc_eh.a")
  env <- c(env, "LIBRARY_PATH=\"$(CURDIR):$(LIBRARY_PATH)\"")
} else if (Sys.info()[["sysname"]] == "Darwin") {
  libs <- "-liconv -lm"
}
if (triple != "") {
  args <- c(args, paste0("--target=", triple))
}

fill <- function(name) {
  lines <- readLines(paste0(name, ".in"))
  values <- c(
    TRIPLE_DIR = if (triple == "") "" else paste0(triple, "/"),
    PROFILE = profile,
    LIBS = libs,
    AFTER = if (release) "after-release" else "",
    ENV = paste(env, collapse = " "),
    CARGO = cargo,
    ARGS = paste(args, collapse = " ")
  )
  for (key in names(values)) {
    lines <- gsub(paste0("@", key, "@"), values[[key]], lines, fixed = TRUE)
  }
  writeLines(lines, name)
}
fill(if (windows) "src/Makevars.win" else "src/Makevars")
