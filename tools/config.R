# Called by configure: finds Rust, unpacks the vendored crates, writes src/Makevars.
#
# The package contains the sources of all crates in src/rust/vendor.tar.xz (tools/vendor). It is built offline, with two
# jobs and a CARGO_HOME of its own, and leaves no files behind; only a checkout keeps its target directory, for the next
# build.
#
# DEBUG=1 builds quickly, without optimisation. In a checkout it uses the crates of the user's own cargo, like the other
# commands of a developer, so that crates are compiled once for all of them.

windows <- .Platform$OS.type == "windows"

fail <- function(...) {
  message(...)
  quit("no", status = 1)
}

minimum <- local({
  requirements <- read.dcf("DESCRIPTION", "SystemRequirements")[[1]]
  sub(".*rustc \\(>= ([0-9.]+)\\).*", "\\1", requirements)
})

# What to install, in the rest of a sentence. The packages of many systems are outdated, so rustup is listed first.
how_to_install <- function() {
  updates <- if (length(find_tools("rustup")) > 0) "run `rustup update`, or "
  paste0(
    updates, "install Rust ", minimum, " or later, on any system with https://rustup.rs, or from these packages: ",
    "cargo in Debian 13 and Fedora, cargo-web in Debian 12, rust in Homebrew."
  )
}

# ---- The tools -------------------------------------------------------------

run <- function(tool, args) {
  output <- suppressWarnings(system2(tool, args, stdout = TRUE, stderr = TRUE))
  if (!is.null(attr(output, "status"))) {
    fail(paste(c(paste(tool, args, "failed:"), output), collapse = "\n"))
  }
  output
}

# All versions on the PATH and in the directory of rustup, which may be missing from the PATH, or come after an older
# version of the system.
find_tools <- function(name) {
  # R's own "~" is the documents folder on Windows.
  home <- if (windows) Sys.getenv("USERPROFILE") else path.expand("~")
  cargo_home <- Sys.getenv("CARGO_HOME")
  folders <- file.path(c(if (nzchar(cargo_home)) cargo_home, file.path(home, ".cargo")), "bin")
  found <- c(Sys.which(name), file.path(folders, paste0(name, if (windows) ".exe")))
  found <- found[file.exists(found)]
  # Links are not resolved: rustup identifies its tools by name.
  unique(file.path(normalizePath(dirname(found), "/"), basename(found)))
}

# The value of a key in the output of `rustc -vV` or `cargo -vV`.
about <- function(tool, key) {
  sub(".*: ", "", grep(paste0("^", key, ": "), run(tool, "-vV"), value = TRUE))
}

# All versions of a tool that are new enough. Debian 12 has a cargo and a rustc of different ages.
new_enough <- function(name) {
  tools <- find_tools(name)
  if (length(tools) == 0) {
    fail("This package needs ", name, ", which is not on the PATH and not in ~/.cargo/bin: ", how_to_install())
  }
  releases <- vapply(tools, about, "", "release")
  # A nightly is 1.96.0-nightly.
  enough <- package_version(sub("-.*", "", releases)) >= minimum
  if (!any(enough)) {
    fail(
      paste0(tools, " is version ", releases, collapse = " and "), ", too old for this package: ", how_to_install()
    )
  }
  tools[enough]
}

cargos <- new_enough("cargo")
rustc <- new_enough("rustc")[[1]]
# The cargo that belongs to a rustc, else any.
cargo <- c(cargos[dirname(cargos) == dirname(rustc)], cargos)[[1]]
cat(run(cargo, "--version"), sep = "\n")
cat(run(rustc, "--version"), sep = "\n")

# ---- How to build ----------------------------------------------------------

# The machine that R was built for, which may differ from the machine of rustc if one of them runs in emulation.
compiler <- run(file.path(R.home("bin"), "R"), "CMD config CC")
arm <- grepl("aarch64|arm64", R.version$arch)
env <- paste0("RUSTC=\"", rustc, "\"")
# extendr gets the version from the headers of this R, and not from the R on the PATH.
env <- c(env, paste0("R_INCLUDE_DIR=\"", normalizePath(R.home("include"), "/"), "\""))
wasm <- any(grepl("emcc", compiler))
if (wasm) {
  triple <- "wasm32-unknown-emscripten"
  libs <- ""
  # Panics cannot be caught on this platform: a panic, which is a bug, ends the process.
  env <- c(env, "CARGO_PROFILE_RELEASE_PANIC=abort", "CARGO_PROFILE_DEV_PANIC=abort")
} else if (windows) {
  # R is built with GCC (on ARM with LLVM), so Rust must not be built for MSVC.
  triple <- if (arm) "aarch64-pc-windows-gnullvm" else "x86_64-pc-windows-gnu"
  libs <- "-lkernel32 -lntdll -luserenv -lws2_32 -ldbghelp"
  # Rust links the build scripts of crates with libgcc_eh, which Rtools does not have: its libgcc contains everything. An
  # empty library satisfies the linker.
  mock <- "src/rust/libgcc"
  dir.create(mock, showWarnings = FALSE)
  file.create(file.path(mock, "libgcc_eh.a"))
  env <- c(env, paste0("LIBRARY_PATH=\"$$LIBRARY_PATH;", normalizePath(mock, "/"), "\""))
  # The linker of Rtools is not where cargo expects it.
  linker <- "x86_64-w64-mingw32.static.posix-gcc.exe"
  if (!arm && nzchar(Sys.which(linker))) {
    env <- c(env, paste0("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=", linker))
  }
} else if (Sys.info()[["sysname"]] == "Darwin") {
  triple <- if (arm) "aarch64-apple-darwin" else "x86_64-apple-darwin"
  libs <- "-lm"
} else {
  triple <- about(rustc, "host")
  libs <- "-lpthread -ldl -lm"
}

profile <- if (Sys.getenv("DEBUG") %in% c("", "0", "false")) "release" else "debug"
args <- c("--locked", paste0("--target=", triple), if (profile == "release") "--release")

# Line feeds only, also on Windows, where make does not understand others.
write_lines <- function(lines, path) {
  con <- file(path, "wb")
  on.exit(close(con))
  writeLines(lines, con)
}

# In a linked work tree of git it is a file.
checkout <- file.exists(".git")
crates <- "src/rust/vendor.tar.xz"
vendored <- file.exists(crates) && !(checkout && profile == "debug")
if (vendored) {
  utils::untar(crates, exdir = "src/rust", tar = "internal")
  rust <- normalizePath("src/rust", "/")
  write_lines(
    c(
      "[source.crates-io]", "replace-with = \"vendored\"",
      "[source.vendored]", paste0("directory = \"", rust, "/vendor\"")
    ),
    "src/rust/vendor-config.toml"
  )
  env <- c(env, paste0("CARGO_HOME=\"", rust, "/cargo-home\""))
  # CRAN allows two jobs.
  args <- c(args, "--offline", "--config rust/vendor-config.toml", "-j 2")
}

# ---- Makevars --------------------------------------------------------------

remove_crates <- "rm -rf rust/vendor rust/cargo-home rust/vendor-config.toml rust/libgcc"
values <- c(
  REMOVE_CRATES = remove_crates,
  # A build that has failed leaves only what was there before.
  FAILED = paste(c(
    if (vendored) remove_crates else ":", if (!dir.exists("src/rust/target")) "rm -rf rust/target"
  ), collapse = "; "),
  LIBDIR = paste0("rust/target/", triple, "/", profile),
  LIBS = libs,
  AFTER = paste(c(if (vendored) "remove-crates", if (vendored && !checkout) "remove-target"), collapse = " "),
  ENV = paste(env, collapse = " "),
  CARGO = cargo,
  # Removes debug information and the names of internal functions, which take half a megabyte. A debug build keeps them.
  # The strip of WebAssembly does not support this.
  STRIP = if (profile == "release" && !wasm) "strip -S -x" else ": not stripped:",
  ARGS = paste(args, collapse = " ")
)
lines <- readLines("src/Makevars.in")
for (key in names(values)) {
  lines <- gsub(paste0("@", key, "@"), values[[key]], lines, fixed = TRUE)
}
write_lines(lines, if (windows) "src/Makevars.win" else "src/Makevars")
if (checkout) {
  cat(
    "src/rust/target, about 1 GB, is kept for the next build. To delete it: rm -r ",
    normalizePath("src/rust", "/"), "/target\n", sep = ""
  )
}
