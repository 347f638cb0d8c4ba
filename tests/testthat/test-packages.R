# tier: gate
# Packages of functions that are known by name only: names are looked up as R does, from where functions are called.

# A namespace that no installed package has, until the test ends. `functions`: those that it defines; `methods`: S3
# methods that are registered for its generics; `imports`: what it imports.
local_namespace <- function(name, functions, methods = list(), imports = list(), envir = parent.frame()) {
  around <- list2env(imports, new.env(parent = .BaseNamespaceEnv))
  attr(around, "name") <- paste0("imports:", name)
  namespace <- new.env(parent = around)
  info <- new.env(parent = baseenv())
  info$spec <- c(name = name, version = "1.0")
  info$exports <- new.env(parent = baseenv())
  info$imports <- list(base = TRUE)
  info$path <- tempdir()
  namespace$.__NAMESPACE__. <- info
  namespace$.packageName <- name
  own <- function(all) lapply(all, `environment<-`, namespace)
  namespace$.__S3MethodsTable__. <- list2env(own(methods), new.env(parent = baseenv()))
  list2env(own(functions), namespace)
  .Internal(registerNamespace(name, namespace))
  withr::defer(.Internal(unregisterNamespace(name)), envir = envir)
  namespace
}

in_globalenv <- function(f) `environment<-`(f, globalenv())

# A profile with a sample for each of these stacks, written outermost first.
profile_of_stacks <- function(stacks) {
  lines <- vapply(strsplit(stacks, " "), function(names) paste0(paste0("\"", rev(names), "\" "), collapse = ""), "")
  read_rprof(withr::local_tempfile(lines = c("sample.interval=10000", lines)))
}

# The package of each frame, innermost first, as `name package`.
frames_with_packages <- function(x) {
  at <- match(x$sample_locations$location_id, x$locations$location_id)
  functions <- x$functions[match(x$locations$function_id[at], x$functions$function_id), ]
  tibble::tibble(sample = x$sample_locations$sample_id, name = functions$name, package = functions$.package)
}

# The same of each stack, outermost first.
packages_of <- function(stacks, x = add_packages(profile_of_stacks(stacks))) {
  frames <- frames_with_packages(x)
  texts <- split(paste0(frames$name, ":", frames$package), frames$sample)
  unname(vapply(texts, function(texts) paste(rev(texts), collapse = " "), ""))
}

local_one_and_two <- function(envir = parent.frame()) {
  one <- local_namespace("oneofus", list(run_one = function() twice(), twice = function() 1), envir = envir)
  two <- list(run_two = function(f) tryCatch(twice()), twice = function() 2, twice_again = function() 2)
  local_namespace("twoofus", two, imports = list(run_one = one$run_one), envir = envir)
}

test_that("a name is looked up in the namespace of the caller", {
  local_one_and_two()
  expect_identical(
    packages_of(c("run_one twice", "run_two twice", "run_two run_one twice", "mean order", "lm.fit order")),
    c(
      # No namespace or package that is attached has them.
      "run_one:NA twice:NA", "run_two:NA twice:NA", "run_two:NA run_one:NA twice:NA", "mean:base order:base",
      "lm.fit:stats order:base"
    )
  )
  expect_identical(
    packages_of(c(
      "oneofus::run_one twice", "twoofus::run_two twice", "twoofus::run_two run_one twice",
      "twoofus::run_two tryCatch tryCatchList tryCatchOne doTryCatch twice", "oneofus::run_one twice_again"
    )),
    c(
      "oneofus::run_one:oneofus twice:oneofus", "twoofus::run_two:twoofus twice:twoofus",
      "twoofus::run_two:twoofus run_one:oneofus twice:oneofus",
      # The call is an argument, which is evaluated in functions of base.
      paste0(
        "twoofus::run_two:twoofus tryCatch:base tryCatchList:base tryCatchOne:base doTryCatch:base twice:twoofus"
      ),
      "oneofus::run_one:oneofus twice_again:NA"
    )
  )
})

test_that("the outermost functions are looked up where they were called", {
  namespace <- local_one_and_two()
  x <- profile_of_stacks(c("twice", "run_one twice", "mean"))
  expect_identical(packages_of(x = add_packages(x)), c("twice:NA", "run_one:NA twice:NA", "mean:base"))
  expected <- c("twice:twoofus", "run_one:oneofus twice:oneofus", "mean:base")
  expect_identical(packages_of(x = with_packages_in_tables(x, NULL, namespace)), expected)
  # As for code that is evaluated in a function of a namespace.
  expect_identical(packages_of(x = with_packages_in_tables(x, NULL, new.env(parent = namespace))), expected)
})

test_that("a function whose callers disagree becomes several, and figures stay", {
  local_one_and_two()
  stacks <- c("oneofus::run_one twice", "twoofus::run_two twice", rep("main FUN twice", 2), "twoofus::run_two")
  x <- profile_of_stacks(stacks)
  y <- add_packages(x)
  expect_no_error(validate_profile(y))
  twice <- y$functions[y$functions$name == "twice", ]
  expect_setequal(twice$.package, c("oneofus", "twoofus", NA))
  expect_identical(is.na(y$functions$.package), is.na(y$functions$.package_from))
  expect_identical(unclass(summary(y))$by_function, unclass(summary(x))$by_function)
  by_package <- summary(y, by = "package")
  self <- c(by_package$self[match(c(NA, "twoofus", "oneofus"), by_package$package)], sum(by_package$self))
  expect_identical(self, c(2, 2, 1, 5))
  expect_identical(summary(x, by = "package"), by_package)
  # Once more, nothing changes.
  expect_identical(add_packages(y), y)
})

test_that("tables of users get the same rows", {
  local_one_and_two()
  stacks <- c("oneofus::run_one twice", "twoofus::run_two twice", "twoofus::run_two twice")
  x <- profile_of_stacks(stacks)
  ordinary <- withr::with_options(list(profile.lazy = FALSE), add_packages(profile_of_stacks(stacks)))
  expect_identical(packages_of(x = ordinary), packages_of(x = add_packages(x)))
  edited <- x
  edited$functions$function_id <- edited$functions$function_id * 10L
  edited$locations$function_id <- edited$locations$function_id * 10L
  edited$locations$location_id <- edited$locations$location_id * 10L
  edited$sample_locations$location_id <- edited$sample_locations$location_id * 10L
  # Not in the order of samples.
  edited$sample_locations <- edited$sample_locations[rev(seq_len(nrow(edited$sample_locations))), ]
  edited$functions$.own <- edited$functions$name
  edited$locations$.native_id <- as.character(seq_len(nrow(edited$locations)) + 100)
  edited$.location_attributes <- tibble::tibble(
    location_id = edited$locations$location_id, key = "k", type = "string",
    value = as.character(edited$locations$location_id), unit = NA_character_
  )
  y <- add_packages(edited)
  expect_no_error(validate_profile(y))
  sorted <- y
  sorted$sample_locations <- y$sample_locations[order(y$sample_locations$sample_id, y$sample_locations$depth), ]
  expect_identical(packages_of(x = sorted), packages_of(x = add_packages(x)))
  expect_identical(y$functions$.own, y$functions$name)
  expect_identical(anyDuplicated(stats::na.omit(y$locations$.native_id)), 0L)
  added <- utils::tail(y$locations$location_id, 1)
  name_of_location <- edited$functions$name[match(edited$locations$function_id, edited$functions$function_id)]
  original <- edited$locations$location_id[match("twice", name_of_location)]
  attributes <- y$.location_attributes
  expect_identical(attributes$value[attributes$location_id == added], as.character(original))
  expect_identical(combine_profiles(y)$functions$.package, y$functions$.package)
})

test_that("all verbs look up the same packages", {
  local_one_and_two()
  stacks <- c(
    "oneofus::run_one twice", "twoofus::run_two twice", "main lapply FUN twice", "main lapply FUN rlang::eval_tidy"
  )
  for (x in list(profile_of_stacks(stacks), report())) {
    y <- add_packages(x)
    expect_identical(summary(x, by = "package"), summary(y, by = "package"))
    expect_identical(call_tree(x, by = "package"), call_tree(y, by = "package"))
    expect_identical(compare_profiles(x, x, by = "package"), compare_profiles(y, y, by = "package"))
    expect_identical(as.list(describe_profile(x)), as.list(describe_profile(y)))
    expect_identical(
      as_tibble(filter_profile(x, hide_plumbing = TRUE)), as_tibble(filter_profile(y, hide_plumbing = TRUE))
    )
    # With ordinary columns, filters use rows.
    edited <- x
    edited$sample_locations$.own <- 1L
    expect_identical(
      as_tibble(filter_profile(edited, hide_plumbing = TRUE)), as_tibble(filter_profile(y, hide_plumbing = TRUE))
    )
    # Filtered profiles do not say where packages are looked up.
    expect_null(attr(filter_profile(x, hide_plumbing = TRUE), "environments"))
    expect_null(attr(y, "environments"))
  }
})

test_that("a package that only masks functions takes none from others", {
  skip_if_not_installed("bit64")
  before <- add_packages(report())
  expect_true(all(c("order", "%in%") %in% before$functions$name))
  suppressPackageStartupMessages(loadNamespace("bit64"))
  expect_identical(add_packages(report())$functions, before$functions)
  # From there, `order` is its own.
  stacks <- c(
    "bit64::order order.default", "bit64::as.factor.integer64 order", "mean order", "bit64::rank FUN order",
    # Neither function has a call of `order()` in its code.
    "bit64::rank order"
  )
  expect_identical(packages_of(stacks), c(
    "bit64::order:bit64 order.default:bit64", "bit64::as.factor.integer64:bit64 order:bit64", "mean:base order:base",
    "bit64::rank:bit64 FUN:NA order:NA", "bit64::rank:bit64 order:NA"
  ))
})

test_that("what the user defines hides functions of packages, for code of the user", {
  withr::defer(rm(list = "median", envir = globalenv()))
  stacks <- c("median sort", "mad median", "sort median")
  before <- c("median:stats sort:base", "mad:stats median:stats", "sort:base median:stats")
  expect_identical(packages_of(stacks), before)
  assign("median", in_globalenv(function(x) sort(x)), globalenv())
  expect_identical(packages_of(stacks), c("median:NA sort:base", "mad:stats median:stats", "sort:base median:NA"))
  # Something else does not.
  assign("median", 1, globalenv())
  expect_identical(packages_of(stacks), before)
})

test_that("looking up names runs no code", {
  names <- c("profile_test_active", "profile_test_lazy")
  withr::defer(rm(list = names, envir = globalenv()))
  ran <- character()
  makeActiveBinding(names[[1]], function() ran <<- c(ran, "active"), globalenv())
  delayedAssign(names[[2]], ran <- c(ran, "lazy"), assign.env = globalenv())
  expect_identical(packages_of(names), paste0(names, ":NA"))
  expect_identical(ran, character())
})

test_that("methods are found where they are registered", {
  draw <- function(x) UseMethod("draw")
  methods <- list(draw.thing = function(x) 1, `draw.drawing::thing` = function(x) 2)
  local_namespace("drawing", list(draw = draw), methods)
  withr::defer(rm(list = "draw.mine", envir = globalenv()))
  assign("draw.mine", in_globalenv(function(x) 1), globalenv())
  stacks <- c("drawing::draw draw.thing", "drawing::draw draw.drawing::thing", "drawing::draw draw.mine", "draw.other")
  expect_identical(packages_of(stacks), c(
    "drawing::draw:drawing draw.thing:drawing", "drawing::draw:drawing draw.drawing::thing:drawing",
    "drawing::draw:drawing draw.mine:NA", "draw.other:NA"
  ))
  functions <- add_packages(profile_of_stacks("drawing::draw draw.drawing::thing"))$functions
  from <- paste(functions$name, functions$.package_from)
  expect_setequal(from, c("drawing::draw name", "draw.drawing::thing namespace"))
})

test_that("`a::b` has a package only if `a` is one", {
  names <- c("stats::lm", "print.ggplot2::ggplot", "not.a.package::f", "notloaded::f", "stats:::f")
  unknown <- rep(FALSE, length(names))
  expect_identical(package_in_name(names, unknown, !unknown), c("stats", NA, NA, "notloaded", "stats"))
  # In other languages, it need not be one.
  expect_identical(package_in_name(names, unknown, unknown), c("stats", NA, NA, NA, "stats"))
  path <- withr::local_tempfile(lines = c("main;std::sort 2", "main;base::sort 1"))
  functions <- add_packages(read_collapsed(path))$functions
  expect_identical(functions$.package[functions$name == "std::sort"], NA_character_)
})

test_that("methods of S4 belong to the package that defines them", {
  namespace <- local_namespace("fourth", list())
  generic <- `environment<-`(function(shape) standardGeneric("area"), namespace)
  suppressMessages(methods::setGeneric("area", generic, where = namespace, package = "fourth"))
  methods::setMethod("area", "numeric", `environment<-`(function(shape) 1, namespace), where = namespace)
  expect_identical(topenv(environment(namespace$area), NULL), namespace)
  stack <- "fourth::area standardGeneric fourth::area .local"
  expect_identical(packages_of(stack), "fourth::area:fourth standardGeneric:base fourth::area:fourth .local:fourth")
  # Another package has a method, too.
  other <- local_namespace("fifth", list())
  methods::setMethod(namespace$area, "character", `environment<-`(function(shape) 2, other), where = namespace)
  expect_identical(packages_of(stack), "fourth::area:fourth standardGeneric:base fourth::area:NA .local:NA")
})

test_that("names that exist nowhere do not become symbols of R", {
  make <- function(prefix) profile_of_stacks(paste0(prefix, seq_len(2000), " lapply mean"))
  # What is loaded at the first call does not count.
  add_packages(make("nosuchfunction_first_"))
  describe_profile(make("nosuchfunction_second_"))
  x <- make("nosuchfunction_third_")
  before <- memory.profile()[["symbol"]]
  add_packages(x)
  describe_profile(x)
  expect_lt(memory.profile()[["symbol"]] - before, 100)
})

# ---- An independent truth --------------------------------------------------------------

# The name of the frame of a call, as Rprof() writes it.
name_of_call <- function(call) {
  head <- call[[1]]
  is_pair <- is.call(head) && length(head) == 3 && as.character(head[[1]])[[1]] %in% c("::", ":::", "$", "@")
  if (is.symbol(head)) {
    as.character(head)
  } else if (is_pair && is.symbol(head[[2]]) && is.symbol(head[[3]])) {
    paste0(head[[2]], head[[1]], head[[3]])
  } else {
    "<Anonymous>"
  }
}

# Stacks as they were at each call of `see()`: the names of frames, outermost first, and the packages of their functions
# by the environments of these functions.
local_seen <- function(envir = parent.frame()) {
  seen <- new.env()
  seen$stacks <- list()
  see <- function(...) {
    functions <- lapply(seq_len(sys.nframe()), sys.function)
    names <- vapply(sys.calls(), name_of_call, "")
    packages <- vapply(functions, function(f) {
      if (is.primitive(f)) {
        return("base")
      }
      home <- topenv(environment(f), NULL)
      if (isNamespace(home)) environmentName(home) else ""
    }, "")
    seen$stacks <- c(seen$stacks, list(list(names = names, packages = packages)))
    1
  }
  environment(see) <- list2env(list(seen = seen, name_of_call = name_of_call), parent = globalenv())
  methods <- list(
    print.profile_seen = function(x, ...) invisible(see()), format.profile_seen = function(x, ...) as.character(see()),
    length.profile_seen = function(x) see(), `[.profile_seen` = function(x, i) { see(); NextMethod() },
    as.character.profile_seen = function(x, ...) as.character(see()), xtfrm.profile_seen = function(x) see() + 0:2,
    summary.profile_seen = function(object, ...) see(), unique.profile_seen = function(x, ...) { see(); NextMethod() },
    Ops.profile_seen = function(e1, e2) see() == 1, rep.profile_seen = function(x, ...) { see(); NextMethod() },
    str.profile_seen = function(object, ...) see(), c.profile_seen = function(...) { see(); NextMethod() }
  )
  methods <- lapply(methods, `environment<-`, globalenv())
  list2env(c(list(see = see), methods), globalenv())
  withr::defer(rm(list = c("see", names(methods)), envir = globalenv()), envir = envir)
  seen
}

# Code that calls `see()` from many functions of R, evaluated in the global environment.
calls_of_see <- quote({
  lapply(1, function(i) see()); sapply(1:2, see); vapply(1, see, 1); Map(see, 1); Reduce(function(a, b) see(), 1:3)
  tryCatch(see(), finally = see()); try(see()); suppressWarnings(see()); withCallingHandlers(see())
  tryCatch(stop("a"), error = function(e) see()); outer(1, 1, Vectorize(function(a, b) see()))
  apply(matrix(1:4, 2), 1, see); tapply(1:4, c(1, 1, 2, 2), see); ave(1:4, c(1, 1, 2, 2), FUN = see)
  aggregate(x ~ g, data.frame(x = 1:4, g = c(1, 1, 2, 2)), function(x) see()); by(data.frame(a = 1:2), 1:2, see)
  optimize(function(x) see() + x^2, c(-1, 1), tol = 0.5); integrate(Vectorize(function(x) see()), 0, 1, rel.tol = 0.9)
  optim(1, function(x) see() + x^2, method = "BFGS", control = list(maxit = 1)); replicate(2, see())
  uniroot(function(x) see() - 1 + x, c(-1, 1), tol = 0.5); do.call("see", list()); do.call(see, list()); Negate(see)(1)
  eval(quote(see())); evalq(see(), new.env()); local(see()); with(list(a = 1), see()); system.time(see())
  within(data.frame(a = 1), b <- see()); transform(data.frame(a = 1), b = see()); subset(data.frame(a = 1), see() == 1)
  lm(dist ~ I(speed + see()), cars); predict(lm(dist ~ I(speed^see()), cars)); glm(dist ~ I(speed^see()), data = cars)
  utils::capture.output(print(structure(1:3, class = "profile_seen")))
  format(list(structure(1:3, class = "profile_seen")))
  sort(structure(1:3, class = "profile_seen")); order(structure(1:3, class = "profile_seen"))
  factor(structure(1:3, class = "profile_seen")); unique(structure(1:3, class = "profile_seen"))
  rev(structure(1:3, class = "profile_seen")); head(structure(1:3, class = "profile_seen"))
  utils::str(list(structure(1:3, class = "profile_seen"))); summary(list(structure(1:3, class = "profile_seen")))
  split(structure(1:3, class = "profile_seen"), 1:3); toString(structure(1:3, class = "profile_seen"))
  paste(structure(1:3, class = "profile_seen")); structure(1:3, class = "profile_seen") == 1
  order(see()); quantile(see(), 0.5); nchar(see()); formatC(see()); mean(see()); isTRUE(see()); sprintf("%s", see())
  tools::toTitleCase(as.character(see())); methods::is(see(), "numeric"); utils::head(see())
})

expect_true_packages <- function(seen) {
  lines <- vapply(seen$stacks, function(stack) {
    paste0(paste0("\"", rev(stack$names), "\" "), collapse = "")
  }, "")
  x <- add_packages(read_rprof(withr::local_tempfile(lines = c("sample.interval=10000", lines))))
  frames <- frames_with_packages(x)
  expect_identical(frames$name, unlist(lapply(seen$stacks, function(stack) rev(stack$names))))
  frames$truth <- unlist(lapply(seen$stacks, function(stack) rev(stack$packages)))
  wrong <- frames[!is.na(frames$package) & frames$package != frames$truth, c("name", "package", "truth")]
  expect_identical(unique(paste(wrong$name, wrong$package, wrong$truth)), character())
  # Functions without a name, and arguments.
  unknown <- frames[is.na(frames$package) & frames$truth != "", ]
  expect_true(all(unknown$name %in% c("<Anonymous>", "FUN", "f")), label = toString(unique(unknown$name)))
  frames
}

test_that("packages are those of the environments of functions", {
  seen <- local_seen()
  sink <- withr::local_tempfile()
  withr::with_output_sink(sink, for (code in as.list(calls_of_see)[-1]) {
    suppressWarnings(try(eval(code, globalenv()), silent = TRUE))
  })
  expect_gt(length(seen$stacks), 100)
  frames <- expect_true_packages(seen)
  expect_true(all(c("base", "stats", "utils") %in% frames$package))
  # Also if another package masks `order`.
  skip_if_not_installed("bit64")
  suppressPackageStartupMessages(loadNamespace("bit64"))
  expect_identical(expect_true_packages(seen), frames)
})
