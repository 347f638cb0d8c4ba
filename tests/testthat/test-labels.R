# tier: gate
# Labels of running code: their effect on the code, and the samples that get them. Tests generate ticks, so that each
# sample is known.

# Generates `n` ticks. It is compiled, so that no test samples the compiler.
busy <- compiler::cmpfun(function(n = 1L) tick(n))

# A profile of an expression with only the ticks of `busy()`.
given_profile <- function(expr, ...) {
  skip_without_ticks()
  record_profile({ only_given_ticks(); expr }, interval = 0.9, ...)
}

# The labels of each sample, as one text.
label_text <- function(x) {
  text <- rep("", nrow(x$samples))
  labels <- x$.labels
  for (i in seq_along(labels$sample_id)) {
    row <- match(labels$sample_id[[i]], x$samples$sample_id)
    text[[row]] <- trimws(paste0(text[[row]], " ", labels$key[[i]], "=", labels$str[[i]]))
  }
  text
}

# The names of the frames of each sample, innermost first.
stack_names <- function(x) {
  frames <- x$sample_locations
  name <- x$functions$name[match(x$locations$function_id[match(frames$location_id, x$locations$location_id)], x$functions$function_id)]
  order <- order(frames$sample_id, frames$depth)
  unname(split(name[order], factor(frames$sample_id[order], x$samples$sample_id)))
}

# Text that is difficult for all formats.
hostile <- c("\"", "a b", " ", "x\ny", "<GC>", "&=;%41", "\\", "`'", "#File 1: a", "1#2 \"f\" ", "é \u4e2d \U1F600", "")

# Restores the sets of labels of this session afterwards.
local_label_sets <- function(envir = parent.frame()) {
  sets <- asNamespace("profile")$label_sets
  old <- as.list(sets, all.names = TRUE)
  rm(list = ls(sets, all.names = TRUE), envir = sets)
  list2env(list(
    utils = asNamespace("utils"), callers = list(), overflow_callers = list()
  ), sets)
  withr::defer({
    rm(list = ls(sets, all.names = TRUE), envir = sets)
    list2env(old, sets)
  }, envir)
  sets
}

# ---- The expression ------------------------------------------------------------------

test_that("the value of the expression is returned with its visibility", {
  expect_identical(withVisible(with_labels(c(a = "b"), 1 + 1)), list(value = 2, visible = TRUE))
  expect_identical(withVisible(with_labels(c(a = "b"), invisible(3)))[["visible"]], FALSE)
  x <- 5
  expect_identical(withVisible(with_labels(c(a = "b"), x)), list(value = 5, visible = TRUE))
  expect_null(with_labels(c(a = "b"), NULL))
})

test_that("the expression is evaluated once, where it was written, after the labels", {
  n <- 0
  with_labels(c(a = "b"), n <- n + 1)
  expect_equal(n, 1)
  expect_error(with_labels(c(a = NA), n <- n + 1), class = "profile_error_argument")
  expect_equal(n, 1)
  frame <- function() with_labels(c(a = "b"), list(environment(), parent.frame(), sys.function(), match.call()))
  called <- frame()
  expect_identical(called[[2]], environment())
  expect_identical(called[[3]], frame)
  expect_identical(called[[4]], quote(frame()))
  late <- function(x) with_labels(c(a = "b"), missing(x))
  expect_true(late())
})

test_that("labels end with the expression, however it is left", {
  tagged <- function(expr) with_labels(c(a = "b"), expr)
  expect_equal(tryCatch(tagged(stop("no")), error = conditionMessage), "no")
  expect_equal((function() { with_labels(c(a = "b"), return(1)); 2 })(), 1)
  for (i in 1:3) with_labels(c(a = "b"), if (i == 2) break else next)
  expect_equal(i, 2)
  expect_equal(callCC(function(leave) tagged(leave(4))), 4)
  expect_equal(withRestarts(tagged(invokeRestart("out", 5)), out = function(x) x), 5)
  marked <- function() any(grepl("^[.]profile_labels", vapply(sys.calls(), function(call) paste(format(call[[1]]), collapse = ""), "")))
  expect_false(marked())
  expect_true(tagged(marked()))
  f <- function() {
    with_labels(c(a = "b"), on.exit(done <<- TRUE))
    FALSE
  }
  done <- f()
  expect_false(done)
  f()
  expect_true(done)
})

test_that("wrong labels are errors", {
  bytes <- "\xff"
  Encoding(bytes) <- "bytes"
  expect_snapshot(error = TRUE, {
    with_labels("a", 1)
    with_labels(c(a = "b", "c"), 1)
    with_labels(c(a = "b", a = "c"), 1)
    with_labels(c(a = NA), 1)
    with_labels(c(a = bytes), 1)
    with_labels(list(a = 1:2), 1)
    with_labels(list(a = list()), 1)
    with_labels(mean, 1)
    with_labels(c(profile.overflow = "a"), 1)
    with_labels(c(b = "x", a = strrep("\u00e9", 100)), 1)
    label_handler(1, c(a = "b"))
    label_handler(function(x) x, "b")
    label_handler(function(x) x, function(y) y)
    label_plumber(1)
  })
  # The maximum length.
  expect_equal(with_labels(c(a = strrep("x", 448)), 1), 1)
  expect_error(with_labels(c(a = strrep("x", 449)), 1), class = "profile_error_argument")
  # None is allowed.
  expect_equal(with_labels(NULL, 1) + with_labels(character(), 1) + with_labels(list(), 1), 3)
})

# ---- Samples -------------------------------------------------------------------------

# Generates ticks with and without labels, and leaves labels in several ways.
labelled_rounds <- function() {
  with_labels(c(route = "/a"), busy(3))
  try(with_labels(c(route = "/b"), {
    busy(2)
    with_labels(list(step = 1L), busy(2))
    busy(1)
    stop("no")
  }), silent = TRUE)
  busy(1)
  callCC(function(leave) {
    with_labels(c(route = "/b"), with_labels(c(route = "/a"), { busy(2); leave(1) }))
  })
  busy(2)
}

rounds_labels <- rep(
  c("route=/a", "route=/b", "route=/b step=1", "route=/b", "", "route=/a", ""), c(3, 2, 2, 1, 1, 2, 2)
)

expect_no_label_frames <- function(x) {
  frames <- unlist(stack_names(x))
  expect_false(any(grepl("profile_", x$functions$name)), label = paste(x$functions$name, collapse = " "))
  expect_false("with_labels" %in% frames)
  expect_no_error(validate_profile(x))
}

test_that("samples of R's profiler get the current labels", {
  for (lines in c(TRUE, FALSE)) {
    x <- given_profile(labelled_rounds(), lines = lines, memory = FALSE)
    expect_equal(label_text(x), rounds_labels)
    expect_no_label_frames(x)
  }
})

test_that("samples with native code get them", {
  skip_without_native()
  skip_without_ticks()
  x <- record_profile({ only_given_ticks(); labelled_rounds() }, native = TRUE, interval = 0.9)
  expect_equal(label_text(x), rounds_labels)
  expect_no_label_frames(x)
  # `tick()` and the function of the C library that it calls.
  expect_true("native" %in% x$locations$.frame_type)
})

test_that("ticks at any instruction have the labels of the expression that runs, or none", {
  skip_without_native()
  skip_without_steps()
  lib <- native_library()
  inside <- compiler::cmpfun(function() with_labels(c(a = "1"), with_labels(c(b = "2"), marked())))
  marked <- compiler::cmpfun(function() NULL)
  # One-time work is done now.
  inside()
  x <- with_jit(0, record_profile(interval = 0.9, {
    only_given_ticks()
    .Call(lib$steps_start, 29L)
    inside()
    steps <- .Call(lib$steps_stop)
  }))
  # Samples outside of the expression are left out.
  expect_lte(nrow(x$samples), steps)
  expect_gt(nrow(x$samples), 300)
  # Labels begin and end once, and are complete where the expression runs.
  expect_equal(rle(label_text(x))$values, c("", "a=1", "a=1 b=2", "a=1", ""))
  here <- vapply(stack_names(x), function(names) "marked" %in% names, NA)
  expect_equal(setdiff(label_text(x)[here], "a=1 b=2"), character())
  expect_false(any(grepl("profile_labels|profile_labelled", x$functions$name)))
})

test_that("samples of other processes get them, and dump_stack() shows them", {
  skip_without_processes()
  # The process waits where the test wants it: for a line in a pipe.
  dir <- withr::local_tempdir()
  gate <- file.path(dir, "gate")
  system2("mkfifo", gate)
  code <- c(
    "library(profile)",
    sprintf("gate <- fifo('%s', 'r', blocking = TRUE)", gate),
    "waiting <- function() readLines(gate, 1)",
    "with_labels(c(route = 'wait', odd = 'a \"b\"'), {",
    "  waiting()",
    "})",
    "with_labels(c(route = '/a'), with_labels(list(step = 1L), waiting()))"
  )
  pid <- local_r_process(c("ready()", code))
  # Opening the pipe lets the process continue until it waits.
  pipe <- fifo(gate, "w", blocking = TRUE)
  withr::defer(close(pipe))
  waits_with <- function(labels) {
    dump <- NULL
    found <- wait_for(function() {
      dump <<- dump_stack(pid)
      identical(attr(dump, "labels"), labels) && "readLines" %in% dump$name
    })
    expect_true(found, info = paste(format(dump), collapse = "\n"))
    dump
  }
  dump <- waits_with(c(odd = "a \"b\"", route = "wait"))
  expect_match(format(dump), "^Labels: odd=a \"b\", route=wait$", all = FALSE)
  expect_equal(dump$name[1:2], c("readLines", "waiting"))
  expect_false(any(grepl("profile_|with_labels", dump$name)))
  # Not the line of the call of `with_labels()`.
  line <- grep("^  waiting", code) + 1
  expect_equal(dump$line[dump$name == "eval"][[1]], line)
  expect_all_labels <- function(labels) {
    x <- NULL
    expect_true(wait_for(function() {
      x <<- quietly(profile_process(pid, 0.1, interval = 0.01, clock = "wall"))
      nrow(x$samples) > 0
    }))
    expect_equal(unique(gsub("(state|waits_for(.name)?)=[^ ]+ ?", "", label_text(x))), labels)
    expect_no_label_frames(x)
  }
  expect_all_labels("odd=a \"b\" route=wait")
  writeLines("go on", pipe)
  waits_with(c(route = "/a", step = "1"))
  expect_all_labels("route=/a step=1")
})

test_that("samples outside of the expression have none, also after an error", {
  x <- given_profile({
    try(with_labels(c(a = "b"), { busy(2); stop("no") }), silent = TRUE)
    busy(3)
  })
  expect_equal(label_text(x), rep(c("a=b", ""), 2:3))
  failing <- vapply(stack_names(x), function(names) "try" %in% names, NA)
  expect_equal(failing, rep(c(TRUE, FALSE), 2:3))
})

test_that("labels may be any text", {
  labels <- rlang::set_names(hostile, paste0("k", hostile))
  for (lines in c(TRUE, FALSE)) {
    x <- given_profile(for (i in seq_along(labels)) with_labels(labels[i], busy()), lines = lines)
    expect_equal(x$.labels$sample_id, x$samples$sample_id)
    expect_equal(x$.labels$str, hostile)
    expect_equal(x$.labels$key, paste0("k", hostile))
  }
})

test_that("functions of users are kept, whatever their names", {
  with_labels <- function(x) { eval(x); 1 }
  eval <- function(x) busy(x)
  .profile_labels <- function(x) with_labels(x)
  x <- given_profile({
    .profile_labels(1)
    (function() profile::with_labels(c(a = "b"), eval(1)))()
  })
  stacks <- lapply(stack_names(x), function(names) {
    rev(intersect(names, c("with_labels", "eval", ".profile_labels", "profile::with_labels")))
  })
  expect_equal(stacks, list(c(".profile_labels", "with_labels", "eval"), "eval"))
  expect_equal(label_text(x), c("", "a=b"))
})

test_that("labels have no frames, by whatever name with_labels() is called", {
  called <- profile::with_labels
  x <- given_profile({
    profile::with_labels(c(a = "1"), busy())
    do.call(profile::with_labels, list(c(a = "2"), quote(busy())))
    lapply(list(c(a = "3")), called, busy())
    Reduce(function(x, y) called(c(a = "4"), busy()), 1:2)
  })
  expect_equal(label_text(x), paste0("a=", 1:4))
  expect_false(any(c("profile::with_labels", "called") %in% unlist(stack_names(x))))
})

test_that("the frame of the function that has the expression has its line", {
  code <- c(
    "outer <- function() {",
    "  with_labels(c(a = '1'), {",
    "    x <- 1",
    "    busy()",
    "    with_labels(c(b = '1'), busy())",
    "  })",
    "}",
    "passing <- function(expr) {",
    "  with_labels(c(c = '1'), expr)",
    "}",
    "passed <- function() {",
    "  passing({",
    "    busy()",
    "  })",
    "}",
    "outer()",
    "passed()"
  )
  path <- withr::local_tempfile(lines = code, fileext = ".R")
  x <- given_profile(source(path, local = TRUE))
  expect_equal(label_text(x), c("a=1", "a=1 b=1", "c=1"))
  frames <- as_tibble(x)
  lines <- function(name) setdiff(frames$line[frames$name == name], 0)
  expect_equal(lines("outer"), 4:5)
  # The expression is not code of this function.
  expect_equal(lines("passing"), 9)
  expect_equal(lines("passed"), 12)
})

test_that("a recording inside of labels has them, and no frames of its callers", {
  x <- with_labels(c(a = "1"), given_profile(with_labels(c(b = "2"), busy(2))))
  expect_equal(label_text(x), rep("a=1 b=2", 2))
  expect_equal(setdiff(call_tree(x)$name, "<expression>")[[1]], "busy")
})

test_that("version 1.0 has no labels, and no frames of them", {
  skip_without_ticks()
  path <- withr::local_tempfile()
  Rprof(path, interval = 0.9)
  only_given_ticks()
  with_labels(c(a = "1"), busy(2))
  Rprof(NULL)
  x <- read_rprof(path, version = "1.0")
  expect_equal(nrow(x$samples), 2)
  expect_false(any(grepl("profile_", x$functions$name)))
})

test_that("labels survive writing to pprof and OpenTelemetry", {
  x <- given_profile(with_labels(rlang::set_names(hostile[1:4], hostile[1:4]), with_labels(c(b = "x"), busy(3))), lines = FALSE)
  ways <- list(
    pprof = function(x, path) { write_pprof(x, path, aggregate = FALSE); read_pprof(path) },
    merged = function(x, path) { write_pprof(x, path); read_pprof(path) },
    otlp = function(x, path) { write_otlp(x, path); read_otlp(path) }
  )
  expected <- unique(x$.labels[c("key", "str")])
  expect_equal(nrow(expected), 5)
  for (way in ways) {
    y <- way(x, withr::local_tempfile())
    found <- unique(y$.labels[y$.labels$key %in% expected$key, c("key", "str")])
    expect_setequal(paste(found$key, found$str), paste(expected$key, expected$str))
  }
})

test_that("pprof shows labels as tags", {
  pprof <- go_pprof()
  path <- withr::local_tempfile(fileext = ".pb.gz")
  x <- given_profile({
    with_labels(c(route = "/a"), busy(3))
    with_labels(c(route = "/b"), busy(1))
  })
  write_pprof(x, path)
  out <- pprof("-tags", path)
  expect_match(out, "route: Total", all = FALSE)
  expect_match(out, "75[.]00%\\): /a$", all = FALSE)
  expect_match(out, "25[.]00%\\): /b$", all = FALSE)
})

# ---- Too many ------------------------------------------------------------------------

test_that("the number of sets is limited for 5,000 sets, and no sample has a wrong label", {
  sets <- local_label_sets()
  for (i in 1:1000) with_labels(c(id = as.character(i)), i)
  with_labels(c(id = "x", user = "y"), 1)
  for (i in 1001:5000) with_labels(list(id = i), i)
  x <- given_profile(with_labels(c(id = "1000"), {
    busy()
    with_labels(c(user = "me", id = "new"), {
      busy()
      with_labels(c(id = "7"), busy())
    })
  }))
  expect_equal(length(sets$callers), 1000)
  expect_lte(length(sets$overflow_callers), 50)
  expect_equal(label_text(x), c("id=1000", "profile.overflow=id,user", "id=7 profile.overflow=user"))

  # Keys are bounded as well.
  for (i in 1:500) with_labels(rlang::set_names("x", paste0("key", i)), i)
  expect_equal(length(sets$overflow_callers), 51)
  if (!is.null(sets$table)) expect_lte(sets$size(sets$table), 5000)
  # Known ones still work.
  x <- given_profile({
    with_labels(c(id = "1"), with_labels(c(key500 = "x"), busy()))
    with_labels(list(id = 3), busy())
  })
  expect_equal(label_text(x), c("profile.overflow=*", "id=3"))
})

test_that("without hash tables, as in R 4.1, labels are found as well", {
  sets <- local_label_sets()
  sets$utils <- new.env(parent = emptyenv())
  for (i in 1:3) with_labels(c(id = "a"), i)
  expect_equal(names(sets$callers), ".profile_labels:id=a;")
  expect_null(sets$table)
})

# ---- Handlers ------------------------------------------------------------------------

test_that("a labelled handler does what the handler does", {
  helper <- function() 10
  handler <- structure(function(x, y = helper(), ..., z) {
    list(missing(x), missing(y), y, missing(z), list(...))
  }, class = "handler", other = 1)
  labelled <- label_handler(handler, function(x) if (missing(x)) NULL else c(x = x))
  expect_equal(formals(labelled), formals(handler))
  expect_s3_class(labelled, "handler")
  expect_equal(labelled(), handler())
  expect_equal(labelled(1), handler(1))
  expect_equal(labelled(1, 2, 3, z = 4), handler(1, 2, 3, z = 4))
  expect_equal(labelled(z = 4, a = 5), handler(z = 4, a = 5))
  expect_error(label_handler(function(x) x, c(a = "b"))(), "missing")
  expect_equal(label_handler(function() 7, c(a = "b"))(), 7)
  expect_equal(label_handler(function(...) ...length(), c(a = "b"))(1, 2), 2)
  expect_equal(withVisible(label_handler(function(handler) invisible(handler), c(a = "b"))(3)), list(value = 3, visible = FALSE))
  # A name that is an argument as well.
  f <- function(f) f
  expect_equal(label_handler(f, c(a = "b"))(sum), sum)
})

test_that("samples of a labelled handler have its labels, and the frames of the handler", {
  answer <- function(req, ticks = 2) {
    busy(ticks)
    "done"
  }
  handler <- label_handler(answer, function(req) c(route = req$path))
  serve <- function(path, ...) handler(list(path = path), ...)
  x <- given_profile({
    serve("/a", 3)
    serve("/b")
  }, lines = FALSE)
  expect_equal(label_text(x), rep(c("route=/a", "route=/b"), 3:2))
  callers <- unique(lapply(stack_names(x), function(names) names[match("busy", names) + 1:2]))
  expect_equal(callers, list(c("answer", "serve")))
})

test_that("a handler runs if its labels are wrong", {
  handler <- label_handler(function(req) busy(req), function(req) c(a = NA))
  expect_snapshot(x <- given_profile(handler(2)), transform = function(lines) lines[!grepl("^ *$", lines)])
  expect_equal(label_text(x), c("", ""))
  expect_silent(given_profile(handler(1)))
  failing <- label_handler(function(req) req, function(req) stop("100% wrong"))
  expect_warning(expect_equal(failing(3), 3), "100% wrong", class = "profile_warning_labels")
})

# The value of a handler: the labels of the running code as one text.
labels_now <- function() {
  names <- vapply(sys.calls(), function(call) paste(format(call[[1]]), collapse = ""), "")
  marks <- grep("^`?[.]profile_labels:", names, value = TRUE)
  utils::URLdecode(sub(";`?$", "", sub("^`?[.]profile_labels:", "", utils::tail(marks, 1))))
}

# The labels of a request.
route_labels <- function(route, method = "GET") {
  paste0("http.request.method=", method, "&http.route=", route)
}

# A router with the structure that plumber documents: endpoints by the filter that they precede, mounts, and hooks. It
# runs filters, endpoints and mounts in the order of plumber, and removes the path of a mount from `PATH_INFO`.
fake_router <- function(endpoints = list(), mounts = list(), filters = list()) {
  router <- structure(rlang::env(endpoints = endpoints, mounts = mounts, hooks = list()), class = c("Plumber", "Hookable", "R6"))
  router$registerHook <- function(stage, handler) router$hooks[[stage]] <- c(router$hooks[[stage]], handler)
  router$route <- function(req) {
    for (filter in filters) filter(req)
    for (endpoint in unlist(router$endpoints, use.names = FALSE)) {
      if (endpoint$path == req$PATH_INFO && req$REQUEST_METHOD %in% endpoint$verbs) return(endpoint$exec(req))
    }
    for (mount in names(router$mounts)) {
      if (startsWith(req$PATH_INFO, mount)) {
        req$PATH_INFO <- substr(req$PATH_INFO, nchar(mount), nchar(req$PATH_INFO))
        return(router$mounts[[mount]]$route(req))
      }
    }
    "not found"
  }
  router$call <- function(req) {
    for (hook in router$hooks$preroute) hook(req = req)
    router$route(req)
  }
  router
}

fake_endpoint <- function(verbs, path, handler) {
  hooks <- list()
  structure(
    rlang::env(
      verbs = verbs, path = path,
      registerHook = function(stage = c("preexec", "postexec", "aroundexec"), handler) hooks[[match.arg(stage)]] <<- c(hooks[[stage]], handler),
      exec = function(req) {
        run <- function(i) {
          if (i == 0) function(req, ...) handler(req) else function(req, ...) hooks$aroundexec[[i]](req = req, ..., .next = run(i - 1))
        }
        run(length(hooks$aroundexec))(req = req, res = NULL)
      }
    ),
    class = c("PlumberEndpoint", "PlumberStep", "Hookable", "R6")
  )
}

fake_request <- function(path, method = "GET") {
  rlang::env(
    REQUEST_METHOD = method, PATH_INFO = path, QUERY_STRING = "",
    rook.input = list(read_lines = function() "", read = function() raw())
  )
}

test_that("each endpoint of a router has its own labels", {
  endpoint <- function(path, verbs = "GET") fake_endpoint(verbs, path, function(req) c(labels_now(), req$seen))
  deep <- fake_router(list("__no-preempt__" = list(endpoint("/z"))))
  sub <- fake_router(list("__no-preempt__" = list(endpoint("/x"), endpoint("/y"))), list("/deep/" = deep))
  api <- fake_router(
    list("__no-preempt__" = list(endpoint("/a"), endpoint("/b", c("PUT", "POST"))), auth = list(endpoint("/pre"))),
    # The same router in two places, and one without endpoints of its own, as for static files.
    list("/v1/" = sub, "/v2/" = sub, "/" = fake_router()),
    list(function(req) req$seen <- labels_now())
  )
  expect_identical(label_plumber(api), api)
  ask <- function(...) api$call(fake_request(...))
  # Filters have none.
  expect_equal(ask("/a"), route_labels("/a"))
  expect_equal(ask("/b", "PUT"), route_labels("/b", "PUT"))
  expect_equal(ask("/b", "POST"), route_labels("/b", "POST"))
  expect_equal(ask("/pre"), route_labels("/pre"))
  for (mount in c("/v1", "/v2")) {
    for (path in c("/x", "/y", "/deep/z")) {
      expect_equal(ask(paste0(mount, path)), route_labels(paste0(mount, path)))
    }
  }
  expect_equal(ask("/none"), "not found")
  # A router that is labelled by itself as well.
  label_plumber(sub)
  expect_equal(ask("/v2/x"), route_labels("/v2/x"))
  expect_equal(sub$call(fake_request("/x")), route_labels("/x"))
  expect_snapshot(invisible(label_plumber(fake_router(mounts = list("/a/" = fake_router())))))
})

test_that("each endpoint of plumber has its own labels, from code", {
  skip_if_not_installed("plumber")
  handler <- function(req) c(labels_now(), req$seen)
  sub <- plumber::pr_get(plumber::pr_get(plumber::pr(), "/x", handler), "/y/<id:int>", handler)
  sub <- plumber::pr_mount(sub, "/deep", plumber::pr_get(plumber::pr(), "/z", handler))
  api <- plumber::pr_get(plumber::pr(), "/a", handler)
  api <- plumber::pr_post(api, "/a", handler)
  api <- plumber::pr_handle(api, c("PUT", "DELETE"), "/b/<id>/c", function(req, id) handler(req))
  api <- plumber::pr_filter(api, "f", function(req) {
    req$seen <- labels_now()
    plumber::forward()
  })
  api <- plumber::pr_get(api, "/pre", handler, preempt = "f")
  api <- plumber::pr_mount(plumber::pr_mount(api, "/v1", sub), "/v2", sub)
  expect_identical(label_plumber(api), api)
  ask <- function(...) unlist(jsonlite::fromJSON(api$call(fake_request(...))$body))
  expect_equal(ask("/a"), route_labels("/a"))
  expect_equal(ask("/a", "POST"), route_labels("/a", "POST"))
  expect_equal(ask("/b/1/c", "PUT"), route_labels("/b/<id>/c", "PUT"))
  expect_equal(ask("/b/2/c", "DELETE"), route_labels("/b/<id>/c", "DELETE"))
  expect_equal(ask("/pre"), route_labels("/pre"))
  for (mount in c("/v1", "/v2")) {
    expect_equal(ask(paste0(mount, "/x")), route_labels(paste0(mount, "/x")))
    expect_equal(ask(paste0(mount, "/y/3")), route_labels(paste0(mount, "/y/<id:int>")))
    expect_equal(ask(paste0(mount, "/deep/z")), route_labels(paste0(mount, "/deep/z")))
  }
})

test_that("each endpoint of plumber has its own labels, from a file", {
  skip_if_not_installed("plumber")
  path <- withr::local_tempfile(fileext = ".R", lines = c(
    "#* @filter g", "function(req) { req$seen <- labels_now(); plumber::forward() }",
    "#* @get /one", "#* @post /one", "function(req) c(labels_now(), req$seen)",
    "#* @get /two", "#* @preempt g", "function() labels_now()",
    "#* @get /three/<n:int>", "function(n) labels_now()",
    "#* @plumber",
    "function(pr) plumber::pr_mount(pr, '/m', plumber::pr_get(plumber::pr(), '/in', function() labels_now()))",
    "#* @plumber", "profile::label_plumber"
  ))
  api <- plumber::pr(path, envir = rlang::env(parent = globalenv(), labels_now = labels_now))
  ask <- function(...) unlist(jsonlite::fromJSON(api$call(fake_request(...))$body))
  expect_equal(ask("/one"), route_labels("/one"))
  expect_equal(ask("/one", "POST"), route_labels("/one", "POST"))
  expect_equal(ask("/two"), route_labels("/two"))
  expect_equal(ask("/three/3"), route_labels("/three/<n:int>"))
  expect_equal(ask("/m/in"), route_labels("/m/in"))
})

test_that("samples of requests of plumber have the labels of their endpoints", {
  skip_if_not_installed("plumber")
  api <- plumber::pr_get(plumber::pr(), "/users/<id>", function(id, res) busy())
  api <- plumber::pr_get(api, "/groups", function() busy())
  sub <- plumber::pr_post(plumber::pr(), "/b", function(req) busy())
  api <- plumber::pr_mount(api, "/sub", sub)
  label_plumber(api)
  x <- given_profile({
    api$call(fake_request("/users/7"))
    api$call(fake_request("/users/8"))
    api$call(fake_request("/groups"))
    api$call(fake_request("/sub/b", "POST"))
  })
  expect_equal(label_text(x), c(
    rep("http.request.method=GET http.route=/users/<id>", 2), "http.request.method=GET http.route=/groups",
    "http.request.method=POST http.route=/sub/b"
  ))
  expect_false(any(grepl("profile_", x$functions$name)))
})

# The routes of an API of plumber2, as the package routr documents them: handlers by method and path below a root, which
# is a regular expression.
fake_route <- function(..., root = "^/") {
  route <- rlang::env(root = root, handlers = list())
  route$add_handler <- function(method, path, handler) {
    route$handlers <- c(route$handlers, list(list(method = method, path = path, handler = handler)))
  }
  route$remap_handlers <- function(.f) {
    former <- route$handlers
    route$handlers <- list()
    for (one in former) .f(method = one$method, path = one$path, handler = one$handler)
  }
  for (one in list(...)) do.call(route$add_handler, one)
  route
}

fake_api <- function(...) {
  routes <- list(...)
  router <- list(routes = names(routes), get_route = function(name) routes[[name]])
  structure(rlang::env(request_router = router), class = c("Plumber2", "Fire", "R6"))
}

test_that("each handler of an API of plumber2 has its own labels", {
  handler <- function(request, keys, ...) c(labels_now(), keys, ...)
  default <- fake_route(list("get", "/a/:n", handler), list("all", "/*", handler))
  mounted <- fake_route(list("post", "/b", handler), root = "^/v1")
  api <- fake_api(log = default, mounted = mounted)
  expect_identical(label_plumber(api), api)
  ask <- function(route, i, method) {
    one <- route$handlers[[i]]
    one$handler(request = list(method = method), response = NULL, keys = "key", id = "id")
  }
  expect_equal(ask(default, 1, "get"), c(route_labels("/a/:n"), "key", id = "id"))
  expect_equal(ask(default, 2, "put")[[1]], route_labels("/*", "PUT"))
  expect_equal(ask(mounted, 1, "post")[[1]], route_labels("/v1/b", "POST"))
  expect_equal(vapply(default$handlers, `[[`, "", "path"), c("/a/:n", "/*"))
  expect_warning(label_plumber(fake_api()), class = "profile_warning_labels")
})

test_that("samples of requests of plumber2 have the labels of their handlers", {
  x <- read_pprof(test_path("data/frameworks/plumber2-0.2.0.pb.gz"))
  expect_setequal(summary(x, by = "http.route")$http.route, c("/a/:n", "/plot/:n", "/*", NA))
  expect_setequal(summary(x, by = "http.request.method")$http.request.method, c("GET", NA))
})

test_that("handlers that are labelled in a loop have their own labels", {
  handlers <- list(a = function() labels_now(), b = function() labels_now(), c = function() labels_now())
  paths <- names(handlers)
  labelled <- list()
  for (path in paths) labelled[[path]] <- label_handler(handlers[[path]], c(route = path))
  mapped <- Map(function(handler, path) label_handler(handler, c(route = path)), handlers, paths)
  applied <- lapply(paths, function(path) label_handler(handlers[[path]], list(route = path)))
  expected <- paste0("route=", paths)
  expect_equal(vapply(labelled, function(f) f(), "", USE.NAMES = FALSE), expected)
  expect_equal(vapply(mapped, function(f) f(), "", USE.NAMES = FALSE), expected)
  expect_equal(vapply(applied, function(f) f(), ""), expected)
})

test_that("outputs of Shiny that are made in a loop have their own labels", {
  skip_if_not_installed("shiny")
  server <- function(input, output, session) {
    for (id in c("p", "q")) local({
      id <- id
      output[[id]] <- shiny::renderText(with_labels(c(output = id), labels_now()))
    })
    lapply(c("r", "s"), function(id) output[[id]] <- shiny::renderText(with_labels(c(output = id), labels_now())))
  }
  quietly(shiny::testServer(server, {
    for (id in c("p", "q", "r", "s")) expect_equal(output[[id]], paste0("output=", id))
  }))
})

# A promise of an argument is evaluated when the function is called: in a loop, that is after the loop.
test_that("functions that return functions force their arguments", {
  namespace <- asNamespace("profile")
  # The functions in the value of an expression; `assigned` are expressions that were assigned to names.
  returned <- function(expr, assigned = list()) {
    if (is.symbol(expr)) {
      name <- as.character(expr)
      return(unlist(lapply(assigned[names(assigned) == name], returned, assigned[names(assigned) != name]), recursive = FALSE))
    }
    if (!is.call(expr)) return(list())
    of_all <- function(parts) unlist(lapply(unname(parts), returned, assigned), recursive = FALSE)
    switch(paste(as.character(expr[[1]]), collapse = ""),
      "function" = list(expr),
      "{" = returned(expr[[length(expr)]], assigned),
      "if" = of_all(as.list(expr)[-(1:2)]),
      list = , c = , structure = , return = of_all(as.list(expr)[-1]),
      list()
    )
  }
  assignments <- function(expr) {
    if (!is.call(expr) || identical(expr[[1]], quote(`function`))) return(list())
    own <- if (identical(expr[[1]], quote(`<-`)) && is.symbol(expr[[2]])) rlang::set_names(list(expr[[3]]), as.character(expr[[2]]))
    c(own, unlist(lapply(as.list(expr)[-1], function(part) if (is.call(part)) assignments(part)), recursive = FALSE))
  }
  forced <- function(expr) {
    if (!is.call(expr)) return(character())
    if (identical(expr[[1]], quote(force))) return(as.character(expr[[2]]))
    unlist(lapply(as.list(expr)[-1], function(part) if (is.call(part)) forced(part)))
  }
  late <- list()
  factories <- character()
  for (name in ls(namespace, all.names = TRUE)) {
    f <- get(name, namespace)
    if (!is.function(f) || is.primitive(f)) next
    closures <- returned(body(f), assignments(body(f)))
    if (length(closures) == 0) next
    factories <- c(factories, name)
    used <- unique(unlist(lapply(closures, function(closure) setdiff(all.names(closure[[3]]), names(closure[[2]])))))
    missing <- setdiff(intersect(used, names(formals(f))), forced(body(f)))
    if (length(missing) > 0) late[[name]] <- missing
  }
  expect_equal(late, list())
  # The check finds the functions for which it is made.
  expect_true(all(c("endpoint_hook", "start_recording", "transaction_of", "savepoint_of", "new_sender") %in% factories))
})

test_that("outputs and observers of Shiny are labelled", {
  skip_if_not_installed("shiny")
  server <- function(input, output, session) {
    output$text <- shiny::renderText(with_labels(c(output = "text"), { busy(2); input$n }))
    shiny::observe(with_labels(c(observer = "n"), { busy(1); input$n }))
  }
  labelled <- label_handler(server, c(part = "server"))
  x <- quietly(given_profile(shiny::testServer(labelled, {
    session$setInputs(n = 1)
    expect_equal(output$text, "1")
  })))
  # Each runs when the session starts, and when the input changes.
  # They have the label `shiny.reactive` as well, whose value depends on the version of Shiny.
  counts <- table(sub(" shiny.reactive=.*", "", label_text(x)))
  expect_equal(sort(names(counts)), c("observer=n", "output=text"))
  expect_equal(counts[["output=text"]], 2 * counts[["observer=n"]])
})

# ---- Figures by label ----------------------------------------------------------------

# Eight samples: the labels of each as `key=value`.
labelled_profile <- function() {
  path <- withr::local_tempfile(lines = c("sample.interval=10000", paste0("\"", c("f", "g", "f", "h", "f", "g", "h", "f"), "\" \"main\" ")))
  x <- read_rprof(path)
  labels <- list("a", "a", "b", "b", "b", NULL, "a", c("a", "b"))
  route <- tibble::tibble(sample_id = rep(1:8, lengths(labels)), key = "route", str = unlist(labels), num = NA_real_, unit = NA_character_)
  size <- tibble::tibble(sample_id = c(1L, 2L), key = "size", str = NA_character_, num = c(512, 1e6), unit = NA_character_)
  x$.labels <- rbind(route, size)
  validate_profile(x)
}

test_that("summary(by = ) has the figures of each value of a label", {
  x <- labelled_profile()
  # A sample with two values counts for both; equal totals are in the order of the values.
  expect_identical(as.list(summary(x, by = "route")), list(
    route = c("a", "b", NA), samples = c(4L, 4L, 1L), total = c(4, 4, 1), total_share = c(4, 4, 1) / 8,
    total_time = c(4, 4, 1) / 100
  ))
  expect_identical(summary(x, by = "size")$size, c(NA, "1000000", "512"))
  memory <- read_rprof(rprof_path("basic_mem.out"))
  memory$.labels <- tibble::tibble(
    sample_id = memory$samples$sample_id, key = "half",
    str = rep(c("first", "second"), length.out = nrow(memory$samples)), num = NA_real_, unit = NA_character_
  )
  by_half <- summary(memory, by = "half")
  whole <- summary(memory)
  expect_equal(sum(by_half$total), attr(whole, "sum"))
  expect_equal(sum(by_half$total_time), attr(whole, "time"))
  expect_equal(sum(by_half$total_alloc), sum(whole$by_function$self_alloc))
})

test_that("filter_profile(labels = ) keeps the samples with these labels", {
  x <- labelled_profile()
  ids <- function(labels) filter_profile(x, labels = labels)$samples$sample_id
  expect_identical(ids(c(route = "a")), c(1L, 2L, 7L, 8L))
  expect_identical(ids(list(route = c("a", "b"))), c(1:5, 7L, 8L))
  expect_identical(ids(list(route = NA)), 6L)
  expect_identical(ids(list(route = c("b", NA))), c(3:6, 8L))
  expect_identical(ids(list(route = "a", size = 1e6)), 2L)
  expect_identical(ids(NULL), 1:8)
  kept <- filter_profile(x, labels = c(route = "a"), focus = "^f$")
  expect_identical(kept$samples$sample_id, c(1L, 8L))
  expect_identical(kept$.labels$sample_id, c(1L, 8L, 8L, 1L))
  expect_no_error(validate_profile(kept))
  # The result does not depend on how the frames are stored.
  own <- x
  own$sample_locations$.own <- 1
  expect_identical(filter_profile(own, labels = c(route = "b"))$samples, filter_profile(x, labels = c(route = "b"))$samples)
})

test_that("unknown labels and values are reported", {
  x <- labelled_profile()
  expect_snapshot(error = TRUE, {
    filter_profile(x, labels = c(rout = "a"))
    filter_profile(x, labels = c(route = "aa"))
    filter_profile(x, labels = "a")
    filter_profile(x, labels = list(route = NULL))
    summary(x, by = "routes")
    summary(x, by = 1)
    summary(read_rprof(rprof_path("basic_line.out")), by = "route")
  })
})
