# tier: gate
# The time of loading packages, by package: packages whose hooks and native code tick a known number of times.

# Packages: loadA imports loadB and loadC, which import loadD, and loads loadE in its hook.
write_packages <- function(dir) {
  write <- function(package, imports = NULL, suggests = NULL, namespace = NULL, code = NULL, native = NULL) {
    folder <- file.path(dir, "source", package)
    dir.create(file.path(folder, "R"), recursive = TRUE)
    writeLines(c(
      paste("Package:", package), "Version: 1.0", "Title: Ticks", "Description: Ticks.", "License: none",
      if (!is.null(imports)) paste("Imports:", toString(imports)),
      if (!is.null(suggests)) paste("Suggests:", toString(suggests))
    ), file.path(folder, "DESCRIPTION"))
    writeLines(as.character(namespace), file.path(folder, "NAMESPACE"))
    writeLines(c("give <- function(n) getOption(\"profile.give\", invisible)(n)", code), file.path(folder, "R", "code.R"))
    if (!is.null(native)) {
      dir.create(file.path(folder, "src"))
      writeLines(native, file.path(folder, "src", "code.c"))
    }
    folder
  }
  sources <- c(
    write("loadE", code = ".onLoad <- function(libname, pkgname) give(6)"),
    # Load actions run while metadata of S4 is cached.
    write(
      "loadD", imports = "methods", namespace = c("export(d)", "importFrom(methods, setLoadAction)"),
      code = c(
        "d <- function() 1", ".onLoad <- function(libname, pkgname) give(5)", "setLoadAction(function(ns) give(2))",
        "setClass(\"OfD\", representation(x = \"numeric\"))"
      )
    ),
    write(
      "loadC", imports = "loadD", namespace = c("useDynLib(loadC)", "export(c1)", "importFrom(loadD, d)"),
      code = c("c1 <- function() d()", ".onLoad <- function(libname, pkgname) give(4)"),
      native = c(
        "#include <Rinternals.h>", "#include <R_ext/Rdynload.h>",
        "void R_init_loadC(DllInfo *dll) {",
        "  SEXP name = PROTECT(Rf_mkString(\"profile.give\"));",
        "  SEXP option = PROTECT(Rf_lang3(Rf_install(\"getOption\"), name, Rf_install(\"invisible\")));",
        "  SEXP call = PROTECT(Rf_lang2(option, Rf_ScalarInteger(3)));",
        "  Rf_eval(call, R_BaseEnv);", "  UNPROTECT(3);", "}"
      )
    ),
    write(
      "loadB", imports = "loadD", namespace = c("export(b)", "import(loadD)"),
      code = c("b <- function() d()", ".onLoad <- function(libname, pkgname) give(1)")
    ),
    write(
      "loadA", imports = c("loadB", "loadC"), suggests = "loadE", namespace = c("import(loadB)", "import(loadC)"),
      code = c(
        ".onLoad <- function(libname, pkgname) {", "  give(2)", "  requireNamespace(\"loadE\", quietly = TRUE)", "}",
        ".onAttach <- function(libname, pkgname) give(3)"
      )
    )
  )
  library <- file.path(dir, "library")
  dir.create(library)
  dir.create(file.path(dir, "units"))
  # What targets does in the process that runs a target.
  unit <- write(
    "targets", namespace = c("export(target_run)", "S3method(target_run, tar_builder)"),
    code = c(
      "target_run <- function(target, envir, path_store) UseMethod(\"target_run\")",
      "target_run.tar_builder <- function(target, envir, path_store) give(4)"
    )
  )
  # In the order in which they need each other.
  arguments <- c(
    "CMD", "INSTALL", "--no-docs", "--no-test-load", "--no-staged-install", paste0("--library=", library), sources
  )
  withr::with_envvar(
    c(R_LIBS = paste(c(library, .libPaths()), collapse = .Platform$path.sep)),
    {
      run_tool(file.path(R.home("bin"), "R"), arguments)
      run_tool(
        file.path(R.home("bin"), "R"),
        c("CMD", "INSTALL", "--no-docs", "--no-test-load", paste0("--library=", file.path(dir, "units")), unit)
      )
    }
  )
}

local_packages <- function(env = parent.frame()) {
  skip_without_ticks()
  library <- file.path(built_once("loading", write_packages), "library")
  withr::local_libpaths(library, "prefix", .local_envir = env)
  withr::local_options(profile.give = tick, .local_envir = env)
  withr::defer(unload(), env)
}

unload <- function() {
  if ("package:loadA" %in% search()) detach("package:loadA", character.only = TRUE)
  # R does not call the initialization of a library again that is still loaded.
  if ("loadC" %in% loadedNamespaces()) library.dynam.unload("loadC", getNamespaceInfo("loadC", "path"))
  for (package in intersect(paste0("load", c("A", "B", "C", "D", "E")), loadedNamespaces())) unloadNamespace(package)
  # An option of the user, not of a package.
  setHook(packageEvent("loadB", "onLoad"), NULL, "replace")
}

# Records `library(loadA)`, in which all samples are given.
record_loads <- function(...) {
  unload()
  setHook(packageEvent("loadB", "onLoad"), function(...) tick(7))
  # As text: these packages are not declared by this one.
  eval(str2lang("record_profile({ only_given_ticks(); library(loadA) }, interval = 0.9, ...)"))
}

# The table that the hooks lead to: C has 3 ticks in its native code and 4 in its hook, and so on.
expected_loads <- function() {
  tibble::tibble(
    package = c("loadB", "loadC", "loadD", "loadE", "loadA"),
    self = c(8, 7, 7, 6, 5), total = c(15, 7, 7, 6, 33),
    on_load = c(8, 4, 5, 6, 2), s3_methods = 0, imports = 0, native = c(0, 3, 0, 0, 0), code = 0, s4 = c(0, 0, 2, 0, 0),
    attach = c(0, 0, 0, 0, 3), other = 0,
    first = c("loadA", "loadA", "loadB", "loadA", "library(loadA)"), only = c("loadA", "loadA", "shared", "loadA", NA)
  )
}

loads <- function(x, type = NULL) {
  table <- summary(x, by = "loaded", type = type)
  table[setdiff(names(table), c("self_time", "total_time"))]
}

test_that("each tick belongs to the package that is loaded innermost", {
  skip_without_native()
  local_packages()
  x <- record_loads()
  expect_equal(loads(x), expected_loads())
  expect_equal(summary(x, by = "loaded")$self_time, 0.9 * expected_loads()$self)
  expect_equal(sum(loads(x)$self), attr(summary(x), "sum"))
  # The function is still the one of base, under any name.
  named <- x$functions[grepl("^(library|loadNamespace)[(]", x$functions$name), ]
  expect_setequal(named$name, c("library(loadA)", sprintf("loadNamespace(load%s)", c("A", "B", "C", "D", "E"))))
  expect_setequal(named$system_name, c("library", "loadNamespace"))
  expect_setequal(named$.package, "base")
  # As R's profiler alone, it is no recording of native code.
  expect_false(".frame_type" %in% names(x$locations))
  expect_identical(nrow(profile_problems(x)), 0L)

  expect_equal(loads(record_loads(native = TRUE)), expected_loads())
  unload()
  direct <- eval(parse(
    text = "record_profile({ only_given_ticks(); loadD::d() }, interval = 0.9)", keep.source = TRUE
  ))
  expect_equal(loads(direct)[c("package", "self", "first")], tibble::tibble(package = "loadD", self = 7, first = "<expression>"))
})

test_that("each vector belongs to the package that is loaded innermost", {
  skip_without_native()
  local_packages()
  # A vector for each tick. There are no others of this size.
  allocate <- compiler::cmpfun(function(n) for (i in seq_len(n)) numeric(1e5))
  withr::local_options(profile.give = allocate)
  unload()
  setHook(packageEvent("loadB", "onLoad"), function(...) allocate(7))
  x <- eval(str2lang("record_profile(library(loadA), memory = \"exact\", threshold = 8e5)"))
  expect_equal(loads(x, "alloc_objects"), expected_loads())
  found <- loads(x, "alloc_space")
  figures <- vapply(found, is.double, NA)
  found[figures] <- lapply(found[figures], function(bytes) bytes / (8e5 + 48))
  expect_equal(found, expected_loads())
})

test_that("stacks of two packages are told apart by the argument only", {
  skip_without_native()
  local_packages()
  # Both have the same code, and R has a vector of names for each of them.
  unload()
  x <- eval(str2lang("record_profile(for (package in c(\"loadD\", \"loadE\")) loadNamespace(package), memory = \"exact\")"))
  found <- loads(x, "alloc_objects")
  expect_setequal(found$package, c("loadD", "loadE"))
  expect_true(all(found$other > 0))
})

test_that("names of packages survive in other formats", {
  skip_without_native()
  local_packages()
  x <- record_loads()
  path <- withr::local_tempfile(fileext = ".pb.gz")
  write_pprof(x, path)
  expect_equal(loads(read_pprof(path), "samples"), expected_loads())
  path <- withr::local_tempfile(fileext = ".out")
  write_rprof(x, path)
  expect_equal(loads(read_rprof(path)), expected_loads())
  path <- withr::local_tempfile(fileext = ".txt")
  write_collapsed(x, path)
  # Its rows are sorted, so the first one is not the first sample.
  known <- setdiff(names(expected_loads()), "first")
  expect_equal(loads(read_collapsed(path))[known], expected_loads()[known])
})

test_that("the package is the value of the argument", {
  skip_without_native()
  local_packages()
  loaded <- function(code) {
    unload()
    code <- str2lang(code)
    x <- rlang::inject(record_profile({ only_given_ticks(); !!code }, interval = 0.9))
    setdiff(grep("^(library|require|requireNamespace|attachNamespace)([(]|$)", x$functions$name, value = TRUE), "library(loadA)")
  }
  stats <- "loadE"
  expect_identical(loaded('library(stats, character.only = TRUE)'), "library(loadE)")
  expect_identical(loaded('library("loadE")'), "library(loadE)")
  expect_identical(loaded('require(loadE)'), c("library(loadE)", "require(loadE)"))
  expect_identical(loaded('requireNamespace(stats)'), "requireNamespace(loadE)")
  # `attachNamespace()` has the namespace itself, as soon as it is loaded.
  names <- c("attachNamespace", "requireNamespace(loadE)", "attachNamespace(loadA)")
  expect_setequal(loaded('attachNamespace(loadNamespace("loadA"))'), names)
})

test_that("the packages that another process loads are known", {
  skip_without_processes()
  local_packages()
  loaded <- function(stop_at, code = "library(loadA)") {
    pid <- local_r_process(c(
      sprintf(".libPaths(%s)", paste(deparse(.libPaths()), collapse = "")),
      sprintf("options(profile.give = function(n) if (n == %d) { ready(); Sys.sleep(1e6) })", stop_at), code
    ))
    stack <- NULL
    wait_for(function() {
      stack <<- tryCatch(dump_stack(pid), profile_error_process = function(error) NULL)
      "Sys.sleep" %in% stack$name
    })
    is_load <- grepl("^(base::)?(library|loadNamespace|requireNamespace|attachNamespace)([(]|$)", stack$name)
    stack$name[is_load]
  }
  expect_identical(loaded(5), c("loadNamespace(loadD)", "loadNamespace(loadB)", "loadNamespace(loadA)", "library(loadA)"))
  expect_identical(
    loaded(6, c("p <- 'loadA'", "suppressMessages(base::loadNamespace(p))")),
    c("loadNamespace(loadE)", "requireNamespace(loadE)", "base::loadNamespace(loadA)")
  )
  code <- c("loadNamespace('loadC')", "p <- 'loadA'", "library(p, character.only = TRUE)")
  expect_identical(loaded(6, code)[3:4], c("loadNamespace(loadA)", "library(loadA)"))
})

test_that("targets have their names in workers", {
  skip_without_native()
  local_packages()
  if (isNamespaceLoaded("targets")) skip("targets is loaded")
  library <- file.path(built_once("loading", write_packages), "units")
  code <- c(
    "target <- new.env(parent = emptyenv(), hash = FALSE)", "target$command <- list()", "target$name <- 'fit_model'",
    "class(target) <- 'tar_builder'"
  )
  # As workers are recorded.
  pid <- local_r_process(c(
    sprintf("loadNamespace('targets', lib.loc = %s)", deparse(library)),
    "options(profile.give = function(n) { ready(); Sys.sleep(1e6) })", code, "targets::target_run(target, globalenv(), 'store')"
  ))
  stack <- NULL
  wait_for(function() {
    stack <<- tryCatch(dump_stack(pid), profile_error_process = function(error) NULL)
    "Sys.sleep" %in% stack$name
  })
  expect_true("targets::target_run(fit_model)" %in% stack$name)
  # In this process.
  withr::defer(unloadNamespace("targets"))
  do.call(loadNamespace, list("targets", lib.loc = library))
  eval(parse(text = code))
  target_run <- asNamespace("targets")$target_run
  x <- record_profile({ only_given_ticks(); target_run(target, NULL, "") }, interval = 0.9, native = TRUE)
  expect_equal(summary(x, by = "targets.target")[1:2], tibble::tibble(targets.target = "fit_model", samples = 4L))
  expect_identical(nrow(summary(x, by = "loaded")), 0L)
  # If the expression loads the package.
  unloadNamespace("targets")
  hooks <- as.list(.userHooksEnv)
  x <- record_profile({
    only_given_ticks()
    target_run <- do.call(loadNamespace, list("targets", lib.loc = library))$target_run
    target_run(target, NULL, "")
  }, interval = 0.9)
  expect_equal(summary(x, by = "targets.target")[1:2], tibble::tibble(targets.target = "fit_model", samples = 4L))
  expect_identical(Filter(length, as.list(.userHooksEnv)), Filter(length, hooks))
})

test_that("loads without names are reported", {
  path <- withr::local_tempfile(lines = c(
    "sample.interval=10000", "\"f\" \".onLoad\" \"runHook\" \"loadNamespace\" \"library\" ", "\"lazyLoad\" \"loadNamespace\" ",
    "\"g\" "
  ))
  x <- read_rprof(path)
  expect_message(table <- loads(x), class = "profile_message_loaded")
  expect_identical(table$package, NA_character_)
  expect_identical(unlist(table[c("self", "total", "on_load", "code", "s4")], use.names = FALSE), c(2, 2, 1, 1, 0))
  expect_identical(c(table$first, table$only), c(NA_character_, NA_character_))
  expect_match(format(describe_profile(x), width = 100), "Loading packages: 66.7% (0.02 s), packages unknown", fixed = TRUE, all = FALSE)
  # No package is loaded.
  none <- read_rprof(withr::local_tempfile(lines = c("sample.interval=10000", "\"loadNamespaces\" ")))
  expect_no_message(table <- loads(none))
  expect_identical(dim(table), c(0L, 13L))
  expect_no_match(format(describe_profile(none)), "Loading packages")
  expect_error(call_tree(none, by = "loaded"), class = "profile_error_argument")
})

test_that("the digest names the package that took most", {
  skip_without_native()
  local_packages()
  description <- describe_profile(record_loads())
  expect_match(
    format(description, width = 100), "Loading packages: 100.0% (29.7 s), most in loadB (7.2 s)", fixed = TRUE, all = FALSE
  )
  expect_true("summary(x, by = \"loaded\")" %in% as.list(description)$next_calls)
  loading <- as.list(description)$loading
  expect_equal(loading[c("self", "self_share")], list(self = 33, self_share = 1))
  expect_equal(loading$packages[1:3], expected_loads()[1:3])
  expect_equal(loading$packages$self_time, 0.9 * expected_loads()$self)
})

test_that("packages are known whatever else is recorded", {
  skip_without_native()
  local_packages()
  # The code does not say that it loads packages.
  load <- eval(str2lang("function() library(loadA)"))
  recorded <- function(...) {
    unload()
    setHook(packageEvent("loadB", "onLoad"), function(...) tick(7))
    record_profile({ only_given_ticks(); load() }, interval = 0.9, ...)
  }
  expect_equal(loads(recorded()), expected_loads())
  expect_equal(loads(recorded(lines = FALSE, memory = FALSE, gc = FALSE)), expected_loads())
  withr::local_options(profile.deparsed_lines = 0)
  without <- recorded()
  expect_equal(loads(without), expected_loads())
  expect_false(any(is_deparsed_package(without$functions$filename)))
  expect_equal(loads(recorded(native = TRUE, lines = FALSE)), expected_loads())
})

test_that("frames with a title have lines of their text", {
  skip_without_native()
  local_packages()
  x <- record_loads()
  named <- x$functions[grepl("^(library|loadNamespace)[(]load", x$functions$name), ]
  has_text <- named$filename %in% c("<base::library>", "<base::loadNamespace>")
  expect_true(any(has_text))
  expect_identical(unique(named$filename[!has_text & named$filename != ""]), character())
  expect_true(all(x$locations$line[x$locations$function_id %in% named$function_id[has_text]] > 0))
})

test_that("fresh runs load packages in new processes", {
  skip_without_native()
  local_packages()
  # In the process, nothing but the ticks is a sample.
  dll <- file.path(built_once("ticks", function(dir) stop("`skip_without_ticks()` builds it.")), "ticks.so")
  code <- rlang::expr({
    dyn.load(!!dll)
    options(profile.give = compiler::cmpfun(function(n) invisible(.Call("ticks_give", as.integer(n)))))
    .Call("ticks_only_given")
    !!str2lang("library(loadA)")
  })
  runs <- rlang::inject(benchmark_profile(!!code, fresh = TRUE, runs = 2, warmup = 0, interval = 0.9, measure = "time")) |>
    suppressMessages()
  expect_identical(nrow(runs$sources), 2L)
  expected <- expected_loads()
  # Without the hook of the user.
  expected[1, c("self", "total", "on_load")] <- list(1, 8, 1)
  expected$total[[5]] <- 26
  figures <- setdiff(names(expected), c("package", "first", "only"))
  expected[figures] <- 2 * expected[figures]
  table <- loads(runs)
  expect_equal(table[match(expected$package, table$package), ], expected)
  # It is comparable, and nothing was loaded here.
  expect_s3_class(compare_profiles(list(base = runs, new = runs)), "profile_comparison")
  expect_false(any(startsWith(loadedNamespaces(), "load")))
  expect_false(any(c("loadNamespace(rlang)", "loadNamespace(profile)") %in% runs$functions$name))
})

test_that("variables of fresh runs are global", {
  withr::defer(rm(list = c("one_global", "add_global"), envir = globalenv()))
  assign("one_global", 1, globalenv())
  assign("add_global", rlang::new_function(alist(n = ), quote(if (n + one_global != 3) stop("wrong")), globalenv()), globalenv())
  run <- function(code) {
    code <- substitute(code)
    suppressMessages(rlang::inject(benchmark_profile(!!code, fresh = TRUE, runs = 1, warmup = 0, measure = "time")))
  }
  expect_s3_class(run(add_global(2)), "profile_data")
  expect_error(run(add_global(3)), "^wrong$")
  expect_s3_class(suppressMessages(benchmark_profile(for (i in 1:10) sqrt(i), fresh = TRUE, runs = 1, warmup = 0)), "profile_data")
  local_value <- 2
  error <- expect_error(benchmark_profile(add_global(local_value), fresh = TRUE), class = "profile_error_argument")
  expect_match(conditionMessage(error), "the local variable `local_value` does not exist", fixed = TRUE)
  expect_error(run(quit("no", 3)), "has ended with status 3", class = "profile_error_process")
  expect_error(benchmark_profile(1 + 1, fresh = NA), class = "profile_error_argument")
})
