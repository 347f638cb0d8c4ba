# tier: gate
# The output of tools/ and configure on systems with missing dependencies. The tests are skipped outside of a checkout,
# which does not have these files.

tool_path <- function(file) {
  path <- file.path("..", "..", "tools", file)
  if (!file.exists(path)) {
    skip(paste0("tools/", file, " is not here: what it says is not tested"))
  }
  skip_on_os("windows")
  normalizePath(path)
}

# A folder of programs that is the whole PATH: programs that scripts always need, and fake programs, named shell
# scripts.
machine <- function(..., .local_envir = parent.frame()) {
  bin <- withr::local_tempdir(.local_envir = .local_envir)
  basics <- c(
    "awk", "bash", "cat", "chmod", "cut", "dirname", "env", "grep", "head", "id", "locale", "mkdir", "mv", "rm",
    "sed", "sh", "sort", "tail", "tr", "uname"
  )
  file.symlink(Sys.which(basics), file.path(bin, basics))
  fakes <- rlang::list2(...)
  for (name in names(fakes)) {
    path <- file.path(bin, name)
    unlink(path)
    writeLines(c("#!/bin/sh", fakes[[name]]), path)
    Sys.chmod(path, "755")
  }
  bin
}

# The output of a program with this PATH, with its status. The home folder is empty unless one is given.
output_on <- function(bin, program, args = character(), home = withr::local_tempdir()) {
  env <- c(paste0("PATH=", bin), paste0("HOME=", home), "CARGO_HOME=", "RUSTUP_HOME=", "XDG_CACHE_HOME=")
  lines <- suppressWarnings(system2(
    "env", c(shQuote(env), shQuote(c(program, args))), stdout = TRUE, stderr = TRUE
  ))
  list(status = attr(lines, "status"), text = paste(lines, collapse = "\n"))
}

bash_on <- function(bin, script, ...) {
  output_on(bin, file.path(bin, "bash"), script, ...)
}

nobody <- "[ \"$1\" = -u ] && echo 1000"

test_that("all programs that are missing are named at once", {
  demo <- tool_path("demo")
  test <- tool_path("test")

  result <- bash_on(machine(), demo)
  expect_identical(result$status, 1L)
  for (missing in c("cargo and rustc of Rust 1", "- cc", "- make", "- R with its headers", "https://rustup.rs")) {
    expect_match(result$text, missing, fixed = TRUE)
  }

  result <- bash_on(machine(make = "exit 0"), test)
  expect_identical(result$status, 1L)
  for (missing in c("cargo", "- cc", "- R with its headers", "- git", "- xz")) {
    expect_match(result$text, missing, fixed = TRUE)
  }
  expect_no_match(result$text, "- make", fixed = TRUE)
})

test_that("a Rust that is too old is neither used nor suggested", {
  demo <- tool_path("demo")
  policy <- function(default, web) {
    paste0(
      "[ \"$2\" = rustc ] && echo '  Candidate: ", default, "'\n",
      "[ \"$2\" = rustc-web ] && echo '  Candidate: ", web, "'\n",
      "exit 0"
    )
  }
  debian <- function(default, web) {
    bin <- machine(
      id = nobody, "apt-get" = "exit 1", "apt-cache" = policy(default, web), make = "exit 0",
      cc = "exit 0", cargo = "echo 'cargo 1.65.0'", rustc = "echo 'rustc 1.63.0 (of some day)'",
      .local_envir = parent.frame()
    )
    bash_on(bin, demo)$text
  }

  text <- debian("1.63.0+dfsg1-2", "(none)")
  expect_match(text, "rustc is 1.63.0", fixed = TRUE)
  expect_match(text, "as root: apt-get install r-base-dev\n", fixed = TRUE)
  expect_match(text, "https://rustup.rs", fixed = TRUE)

  text <- debian("1.63.0+dfsg1-2", "1.85.0+dfsg3-1~deb12u3")
  expect_match(text, "as root: apt-get install cargo-web r-base-dev\n", fixed = TRUE)

  text <- debian("1.97.1+dfsg1-1", "(none)")
  expect_match(text, "as root: apt-get install cargo r-base-dev\n", fixed = TRUE)
})

# The lines of fake programs that answer `--version` and `-vV` like these versions of cargo and rustc.
fake_rust <- function(cargo, rustc = cargo) {
  answers <- function(name, version) {
    c(
      paste0("echo '", name, " ", version, " (of some day)'"),
      paste0("[ \"$1\" = -vV ] && echo 'release: ", version, "' && echo 'host: x86_64-unknown-linux-gnu'"),
      "exit 0"
    )
  }
  list(cargo = answers("cargo", cargo), rustc = answers("rustc", rustc))
}

test_that("configure says in one sentence which Rust is needed and how to install it", {
  config <- tool_path("config.R")
  withr::local_dir(dirname(dirname(config)))
  configure_on <- function(...) {
    result <- output_on(machine(...), file.path(R.home("bin"), "Rscript"), config)
    expect_identical(result$status, 1L)
    expect_match(result$text, "^[^\n]*[.]$")
    expect_match(result$text, "install Rust 1[.][0-9]+ or later, on any system with https://rustup.rs, or from these")
    result$text
  }

  expect_match(configure_on(), "^This package needs cargo, which is not on the PATH")
  expect_match(configure_on(cargo = fake_rust("1.999.0")$cargo), "^This package needs rustc, which is not on the PATH")

  text <- configure_on(!!!fake_rust("1.63.0"))
  expect_match(text, "^/.*/cargo is version 1[.]63[.]0, too old for this package: install")
  text <- configure_on(!!!fake_rust("1.999.0", "1.63.0"))
  expect_match(text, "^/.*/rustc is version 1[.]63[.]0, too old for this package: install")
  text <- configure_on(!!!fake_rust("1.63.0"), rustup = "exit 0")
  expect_match(text, "too old for this package: run `rustup update`, or install", fixed = TRUE)
})

# A folder with the files that configure needs.
files_of_configure <- function(env = parent.frame()) {
  config <- tool_path("config.R")
  package <- withr::local_tempdir(.local_envir = env)
  dir.create(file.path(package, "src"))
  dir.create(file.path(package, "tools"))
  top <- dirname(dirname(config))
  file.copy(file.path(top, "DESCRIPTION"), package)
  file.copy(file.path(top, "src", "Makevars.in"), file.path(package, "src"))
  file.copy(config, file.path(package, "tools"))
  package
}

test_that("a build that has failed leaves only what was there before", {
  skip_if(Sys.which("make") == "", "make is not installed")
  package <- files_of_configure()
  withr::local_dir(package)
  dir.create("src/rust/vendor", recursive = TRUE)
  file.create("src/rust/vendor/crate")
  withr::with_dir("src/rust", utils::tar("vendor.tar.xz", "vendor", compression = "xz", tar = "internal"))
  unlink("src/rust/vendor", recursive = TRUE)
  rust <- fake_rust("1.999.0")
  # It answers configure, and fails to build.
  rust$cargo <- append(rust$cargo, "[ \"$1\" = build ] && mkdir -p rust/target/a rust/cargo-home && exit 101", 0)
  bin <- machine(!!!rust)
  build <- function() {
    path <- paste0("PATH=", bin, ":", Sys.getenv("PATH"))
    configured <- system2("env", shQuote(c(path, file.path(R.home("bin"), "Rscript"), "tools/config.R")), stdout = TRUE)
    expect_null(attr(configured, "status"))
    expect_true(dir.exists("src/rust/vendor"))
    made <- suppressWarnings(system2(
      "make", c("-C", "src", "-f", "Makevars", "SHLIB=profile.so", "rust-library"), stdout = TRUE, stderr = TRUE
    ))
    expect_identical(attr(made, "status"), 2L)
    configured
  }
  expect_false(any(grepl("is kept", build())))
  expect_identical(list.files("src/rust"), "vendor.tar.xz")
  # In a checkout, earlier builds are kept.
  dir.create("src/rust/target")
  dir.create(".git")
  expect_match(build(), "^src/rust/target, about 1 GB, is kept for the next build", all = FALSE)
  expect_identical(list.files("src/rust"), c("target", "vendor.tar.xz"))
})

test_that("configure selects a Rust that is new enough", {
  rscript <- file.path(R.home("bin"), "Rscript")
  package <- files_of_configure()
  old <- machine(!!!fake_rust("1.63.0"))
  new <- machine(!!!fake_rust("1.999.0"))

  withr::local_dir(package)
  home <- withr::local_tempdir()
  dir.create(file.path(home, ".cargo"))
  file.symlink(new, file.path(home, ".cargo", "bin"))
  env <- c(paste0("PATH=", old, ":", Sys.getenv("PATH")), paste0("HOME=", home), "CARGO_HOME=")
  lines <- system2(
    "env", shQuote(c(env, rscript, "tools/config.R")),
    stdout = TRUE, stderr = TRUE
  )
  expect_null(attr(lines, "status"), label = paste(lines, collapse = "\n"))
  makevars <- readLines("src/Makevars")
  taken <- file.path(normalizePath(file.path(home, ".cargo", "bin")), c("cargo", "rustc"))
  expect_match(makevars, paste0("RUSTC=\"", taken[2], "\" "), fixed = TRUE, all = FALSE)
  expect_match(makevars, paste0("\"", taken[1], "\" build"), fixed = TRUE, all = FALSE)
})

# The oldest supported version.
oldest <- function(tool) {
  field <- read.dcf(file.path(dirname(dirname(tool)), "DESCRIPTION"), "SystemRequirements")[[1]]
  sub(".*rustc \\(>= ([0-9.]+)\\).*", "\\1", field)
}

test_that("the oldest Rust is the machine's or one of rustup, if they have it", {
  tool <- tool_path("oldest-rust")
  version <- paste0(oldest(tool), ".1")

  bin <- machine(!!!fake_rust(version))
  expect_identical(bash_on(bin, tool), list(status = NULL, text = file.path(bin, "rustc")))

  home <- withr::local_tempdir()
  toolchains <- file.path(home, ".rustup", "toolchains", paste0(oldest(tool), c("0-host", "-host")))
  for (folder in file.path(toolchains, "bin")) {
    dir.create(folder, recursive = TRUE)
    file.symlink(file.path(bin, "rustc"), folder)
  }
  result <- bash_on(machine(!!!fake_rust("1.999.0")), tool, home = home)
  expect_identical(result, list(status = NULL, text = file.path(toolchains[[2]], "bin", "rustc")))

  result <- bash_on(machine(!!!fake_rust("1.999.0")), tool)
  expect_identical(result, list(status = 1L, text = "this is not Debian, and rustup is not installed"))
})

test_that("the oldest Rust is taken from Debian's archive, and kept", {
  tool <- tool_path("oldest-rust")
  version <- paste0(oldest(tool), ".0-1~deb12u3")
  web <- paste0("libstd-rust-web-", oldest(tool))
  row <- function(name, version, kind = "Packages") paste0(" ", name, " | ", version, " | http://a.mirror main ", kind)
  apt_cache <- function(versions) {
    c(
      # Without lists of packages it prints nothing.
      "[ -e \"$HOME/lists\" ] || exit 0",
      "[ \"$1\" = madison ] && cat <<'END'",
      row("rustc", "1.63.0-2"), row("rustc-web", c("1.999.0-1", versions)), row("rustc-web", version, "Sources"),
      "END",
      paste0("[ \"$*\" = 'show rustc-web=", version, " ", web, "=", version, "' ] && cat <<'END'"),
      paste0("Depends: libc6 (>= 2.34), libstd-rust-web-dev (= ", version, "), gcc | clang, binutils (>= 2.26)"),
      "Depends: libc6 (>= 2.34), libllvm19, libstdc++6 (>= 11)",
      "END",
      "exit 0"
    )
  }
  # A package is a text that says what it is; the compiler is one that prints the folder of its libraries.
  apt_get <- c(
    "[ \"$*\" = '-qq update' ] && exec mkdir \"$HOME/lists\"",
    "shift 4; for package in \"$@\"; do echo \"$package\" >\"${package%%=*}.deb\"; done"
  )
  dpkg <- c(
    "cat \"$2\" >>\"$HOME/packages\"",
    "mkdir -p \"$3/usr/bin\" \"$3/usr/lib/x86_64-linux-gnu\"",
    paste0("printf '#!/bin/sh\\necho rustc ", version, "\\n' >\"$3/usr/bin/rustc\""),
    "chmod +x \"$3/usr/bin/rustc\""
  )
  debian <- function(...) {
    machine(
      !!!fake_rust("1.999.0"), id = "echo 0", "apt-cache" = apt_cache(version), dpkg = dpkg, ...,
      .local_envir = parent.frame()
    )
  }

  home <- withr::local_tempdir()
  kept <- file.path(home, ".cache", "profile-rust", oldest(tool), "rustc")
  expect_identical(bash_on(debian("apt-get" = apt_get), tool, home = home), list(status = NULL, text = kept))
  expect_setequal(
    readLines(file.path(home, "packages")),
    c(paste0(c("rustc-web", web, "libstd-rust-web-dev"), "=", version), "libllvm19")
  )
  # Nothing is downloaded again.
  expect_identical(bash_on(debian("apt-get" = "exit 1"), tool, home = home), list(status = NULL, text = kept))

  home <- withr::local_tempdir()
  dir.create(file.path(home, "lists"))
  result <- bash_on(debian("apt-get" = "exit 100"), tool, home = home)
  expect_identical(result$status, 1L)
  expect_match(result$text, paste0("apt cannot download rustc-web=", version, ".*, and rustup is not installed$"))
  expect_identical(list.files(file.path(home, ".cache", "profile-rust")), character())

  none <- machine(!!!fake_rust("1.999.0"), id = "echo 0", "apt-cache" = apt_cache(character()), "apt-get" = apt_get)
  result <- bash_on(none, tool)
  expect_identical(result, list(status = 1L, text = "apt has no package of this version, and rustup is not installed"))
})

test_that("a package is reported as missing on CRAN only if CRAN was queried", {
  setup <- tool_path("setup")
  ask <- function(mirror) {
    profile <- write_file(paste0("options(repos = c(CRAN = \"", mirror, "\"))"))
    library <- withr::local_tempdir()
    withr::local_envvar(R_PROFILE_USER = profile, R_LIBS_USER = library)
    withr::local_dir(dirname(dirname(setup)))
    script <- write_file(
      ". tools/setup", "apt_works() { return 1; }", "want_packages no.such.package", "echo \"$skipped\""
    )
    system2("bash", shQuote(script), stdout = TRUE, stderr = TRUE)
  }

  text <- ask("file:///no/such/mirror")
  expect_match(
    text, "no.such.package (not installed: CRAN cannot be reached at file:///no/such/mirror)",
    fixed = TRUE, all = FALSE
  )
  expect_false(any(grepl("not available", text)))
  expect_identical(text[length(text)], "1")

  # Here is a mirror, with another package.
  mirror <- withr::local_tempdir()
  contrib <- file.path(mirror, "src", "contrib")
  dir.create(contrib, recursive = TRUE)
  writeLines(c("Package: other", "Version: 1.0"), file.path(contrib, "PACKAGES"))
  text <- ask(paste0("file://", mirror))
  expect_match(text, "no.such.package.* is not available for this version of R", all = FALSE)
  expect_match(text, "no.such.package (not installed: see above)", fixed = TRUE, all = FALSE)
})
