# tier: gate
# Labels of what is running: what they do to the code, and to which samples they are given.

busy <- function(seconds) {
  end <- proc.time()[[1]] + seconds
  while (proc.time()[[1]] < end) sort(runif(5e3))
}

# Does several things again and again, so that each has samples also on a busy machine, which loses some.
in_turns <- function(things) {
  for (i in 1:10) for (thing in things) thing()
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

# The labels of samples that are inside of `busy()`. Others may be those of R's compiler, before the labels.
busy_labels <- function(x) label_text(x)[vapply(stack_names(x), function(names) "busy" %in% names, NA)]

# Text that any format has trouble with.
hostile <- c("\"", "a b", " ", "x\ny", "<GC>", "&=;%41", "\\", "`'", "#File 1: a", "1#2 \"f\" ", "é \u4e2d \U1F600", "")

# The sets of labels of this session are as before afterwards.
local_label_sets <- function(envir = parent.frame()) {
  sets <- asNamespace("profile")$label_sets
  old <- as.list(sets, all.names = TRUE)
  rm(list = ls(sets, all.names = TRUE), envir = sets)
  list2env(list(
    utils = asNamespace("utils"), marks = character(), callers = list(), overflow_marks = character(), overflow_callers = list()
  ), sets)
  withr::defer({
    rm(list = ls(sets, all.names = TRUE), envir = sets)
    list2env(old, sets)
  }, envir)
  sets
}

# ---- The expression ------------------------------------------------------------------

test_that("the value is that of the expression, and as visible", {
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
  # Just not too long.
  expect_equal(with_labels(c(a = strrep("x", 448)), 1), 1)
  expect_error(with_labels(c(a = strrep("x", 449)), 1), class = "profile_error_argument")
  # None is allowed.
  expect_equal(with_labels(NULL, 1) + with_labels(character(), 1) + with_labels(list(), 1), 3)
})

# ---- Samples -------------------------------------------------------------------------

# Uses CPU time with labels, and returns how much of it with which.
labelled_rounds <- function(rounds) {
  cpu <- function() sum(proc.time()[1:2])
  begin <- cpu()
  began <- proc.time()[[3]]
  used <- c(a = 0, b = 0, step = 0)
  timed <- function(name, expr) {
    start <- cpu()
    force(expr)
    used[[name]] <<- used[[name]] + cpu() - start
  }
  # Short parts in turns, since a busy machine may lose samples for a while, of lengths that are not
  # those of intervals.
  for (i in seq_len(rounds)) {
    timed("a", with_labels(c(route = "/a"), busy(0.033)))
    timed("b", try(with_labels(c(route = "/b"), {
      busy(0.021)
      timed("step", with_labels(list(step = 1L), busy(0.021)))
      stop("no")
    }), silent = TRUE))
    timed("a", callCC(function(leave) {
      with_labels(c(route = "/b"), with_labels(c(route = "/a"), { busy(0.012); leave(1) }))
    }))
    busy(0.02)
  }
  all <- cpu() - begin
  shares <- c(
    "route=/a" = used[["a"]], "route=/b" = used[["b"]] - used[["step"]], "route=/b step=1" = used[["step"]],
    none = all - used[["a"]] - used[["b"]]
  ) / all
  structure(shares, part_of_cpu = all / (proc.time()[[3]] - began))
}

expect_shares <- function(x, expected, type, without = "route=wait") {
  labels <- label_text(x)
  labels <- sub("^state=[a-z]+ ?", "", labels)
  labels[labels == ""] <- "none"
  values <- x$sample_values[x$sample_values$type == type, ]
  weight <- values$value[match(x$samples$sample_id, values$sample_id)]
  weight[is.na(weight) | labels == without] <- 0
  found <- tapply(weight, labels, sum) / sum(weight)
  found <- found[names(found) != without]
  expect_setequal(names(found), names(expected))
  off <- abs(found[names(expected)] - expected)
  skip_if_busy(max(off) >= 0.03, attr(expected, "part_of_cpu"))
  expect_lt(max(off), 0.03, label = paste0(names(expected), " ", round(found[names(expected)], 3), " of ", round(expected, 3), collapse = ", "))
}

expect_no_label_frames <- function(x) {
  expect_false(any(grepl("profile_", x$functions$name)), label = paste(x$functions$name, collapse = " "))
  # Only what it does itself, before the expression.
  own <- vapply(stack_names(x), function(names) "with_labels" %in% names, NA)
  expect_lt(mean(own), 0.02)
  expect_no_error(validate_profile(x))
}

test_that("samples of R's profiler get the labels that were there", {
  skip_on_cran()
  for (lines in c(TRUE, FALSE)) {
    x <- record_profile(expected <- labelled_rounds(60), interval = 0.01, lines = lines, memory = FALSE)
    expect_shares(x, expected, "samples")
    expect_no_label_frames(x)
  }
})

test_that("samples of the joint profiler get them", {
  skip_without_joint()
  x <- quietly(joint_profile(expected <- labelled_rounds(60), interval = 0.01))
  expect_shares(x, expected, "samples")
  expect_no_label_frames(x)
  expect_true("native" %in% x$locations$.frame_type)
})

test_that("samples of other processes get them, and dump_stack() shows them", {
  skip_without_processes()
  result <- withr::local_tempfile()
  code <- c(
    "library(profile)",
    paste0(c("busy", "labelled_rounds"), " <- ", lapply(list(busy, labelled_rounds), function(f) paste(deparse(f), collapse = "\n"))),
    "ready()",
    "with_labels(c(route = 'wait', odd = 'a \"b\"'), {",
    "  Sys.sleep(2)",
    "})",
    sprintf("saveRDS(labelled_rounds(40), '%s')", result),
    "with_labels(c(route = 'wait'), Sys.sleep(1))"
  )
  pid <- local_r_process(code)
  wait_for_state(pid, "sleeping")
  dump <- dump_stack(pid)
  expect_equal(attr(dump, "labels"), c(odd = "a \"b\"", route = "wait"))
  expect_match(format(dump), "^Labels: odd=a \"b\", route=wait$", all = FALSE)
  expect_equal(dump$name[[1]], "Sys.sleep")
  expect_false(any(grepl("profile_|with_labels", dump$name)))
  # Not that of the call of `with_labels()`.
  line <- grep("Sys.sleep[(]2", unlist(strsplit(code, "\n")))
  expect_equal(dump$line[dump$name == "eval"][[1]], line)
  x <- quietly(profile_process(pid, 60, interval = 0.007))
  expect_shares(x, readRDS(result), "cpu")
  expect_no_label_frames(x)
})

test_that("samples outside of the expression have none, also after an error", {
  x <- record_profile(in_turns(list(
    function() try(with_labels(c(a = "b"), { busy(0.05); stop("no") }), silent = TRUE),
    function() busy(0.05)
  )))
  tree <- stack_names(x)
  failing <- vapply(tree, function(names) "try" %in% names & "busy" %in% names, NA)
  expect_gt(sum(failing), 5)
  expect_setequal(label_text(x)[failing], "a=b")
  after <- vapply(tree, function(names) !"try" %in% names & "busy" %in% names, NA)
  expect_gt(sum(after), 5)
  expect_setequal(label_text(x)[after], "")
})

test_that("labels may be any text", {
  labels <- rlang::set_names(hostile, paste0("k", hostile))
  for (lines in c(TRUE, FALSE)) {
    x <- record_profile(in_turns(lapply(seq_along(labels), function(i) {
      function() with_labels(labels[i], busy(0.02))
    })), lines = lines)
    expect_setequal(paste0("k", x$.labels$str), x$.labels$key)
    expect_setequal(x$.labels$str, hostile)
  }
})

test_that("functions of users stay, whatever they are called", {
  with_labels <- function(x) { eval(x); 1 }
  eval <- function(x) busy(x)
  .profile_labels <- function(x) with_labels(x)
  x <- record_profile(in_turns(list(
    function() .profile_labels(0.05),
    function() (function() profile::with_labels(c(a = "b"), eval(0.05)))()
  )))
  stacks <- unique(lapply(stack_names(x), function(names) {
    rev(intersect(names, c("with_labels", "eval", ".profile_labels", "profile::with_labels", "<Anonymous>")))
  }))
  expect_true(list(c(".profile_labels", "with_labels", "eval")) %in% stacks)
  expect_true(any(vapply(stacks, function(names) identical(setdiff(names, "<Anonymous>"), "eval"), NA)))
  expect_setequal(busy_labels(x), c("", "a=b"))
})

test_that("labels have no frames, by whatever name with_labels() is called", {
  called <- profile::with_labels
  x <- record_profile(in_turns(list(
    function() profile::with_labels(c(a = "1"), busy(0.03)),
    function() do.call(profile::with_labels, list(c(a = "2"), quote(busy(0.03)))),
    function() lapply(list(c(a = "3")), called, busy(0.03)),
    function() Reduce(function(x, y) called(c(a = "4"), busy(0.03)), 1:2)
  )))
  expect_setequal(busy_labels(x), paste0("a=", 1:4))
  # Without samples of what it does itself.
  inside <- Filter(function(names) "busy" %in% names, stack_names(x))
  expect_false(any(c("profile::with_labels", "called") %in% unlist(inside)))
})

test_that("the frame of the function that has the expression has its line", {
  code <- c(
    "outer <- function() {",
    "  with_labels(c(a = '1'), {",
    "    x <- 1",
    "    busy(0.03)",
    "    with_labels(c(b = '1'), busy(0.03))",
    "  })",
    "}",
    "passing <- function(expr) {",
    "  with_labels(c(c = '1'), expr)",
    "}",
    "passed <- function() {",
    "  passing({",
    "    busy(0.03)",
    "  })",
    "}",
    "outer()",
    "passed()"
  )
  path <- withr::local_tempfile(lines = code, fileext = ".R")
  x <- record_profile(in_turns(list(function() source(path, local = TRUE))))
  frames <- as_tibble(x)
  # Before the labels, the line is that of `with_labels()`.
  frames <- frames[frames$sample_id %in% frames$sample_id[frames$name == "busy"], ]
  lines <- function(name) setdiff(unique(frames$line[frames$name == name]), 0)
  expect_setequal(lines("outer"), 4:5)
  # The expression is not code of this function.
  expect_setequal(lines("passing"), 9)
  expect_setequal(lines("passed"), 12)
})

test_that("a recording inside of labels has them, and no frames of its callers", {
  x <- with_labels(c(a = "1"), record_profile(with_labels(c(b = "2"), busy(0.3))))
  expect_setequal(busy_labels(x), "a=1 b=2")
  expect_equal(call_tree(x)$name[[1]], "busy")
})

test_that("version 1.0 has no labels, and no frames of them", {
  path <- withr::local_tempfile()
  Rprof(path, interval = 0.01)
  with_labels(c(a = "1"), busy(0.3))
  Rprof(NULL)
  x <- read_rprof(path, version = "1.0")
  expect_false(any(grepl("profile_", x$functions$name)))
})

test_that("labels come back from pprof and OpenTelemetry", {
  x <- record_profile(with_labels(rlang::set_names(hostile[1:4], hostile[1:4]), with_labels(c(b = "x"), busy(0.3))), lines = FALSE)
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
  x <- record_profile({
    in_turns(list(function() with_labels(c(route = "/a"), busy(0.03)), function() with_labels(c(route = "/b"), busy(0.03))))
  })
  write_pprof(x, path)
  out <- pprof("-tags", path)
  expect_match(out, "route: Total", all = FALSE)
  expect_match(out, "[0-9]%\\): /a$", all = FALSE)
  expect_match(out, "[0-9]%\\): /b$", all = FALSE)
})

# ---- Too many ------------------------------------------------------------------------

test_that("5,000 sets of labels stay bounded, and no sample has a wrong one", {
  sets <- local_label_sets()
  for (i in 1:1000) with_labels(c(id = as.character(i)), i)
  with_labels(c(id = "x", user = "y"), 1)
  for (i in 1001:5000) with_labels(list(id = i), i)
  x <- record_profile(in_turns(list(function() with_labels(c(id = "1000"), {
    busy(0.03)
    with_labels(c(user = "me", id = "new"), {
      busy(0.03)
      with_labels(c(id = "7"), busy(0.03))
    })
  }))))
  expect_equal(length(sets$marks), 1000)
  expect_lte(length(sets$overflow_marks), 50)
  expect_setequal(
    busy_labels(x), c("id=1000", "profile.overflow=id,user", "id=7 profile.overflow=user")
  )

  # Keys are bounded as well.
  for (i in 1:500) with_labels(rlang::set_names("x", paste0("key", i)), i)
  expect_equal(length(sets$overflow_marks), 50)
  if (!is.null(sets$table)) expect_lte(sets$size(sets$table), 5000)
  x <- record_profile(with_labels(c(id = "1"), with_labels(c(key500 = "x"), busy(0.3))))
  expect_setequal(busy_labels(x), "profile.overflow=*")
  # Known ones still work.
  x <- record_profile(with_labels(list(id = 3), busy(0.3)))
  expect_setequal(busy_labels(x), "id=3")
})

test_that("without hash tables, as in R 4.1, labels are found as well", {
  sets <- local_label_sets()
  sets$utils <- new.env(parent = emptyenv())
  for (i in 1:3) with_labels(c(id = "a"), i)
  expect_equal(sets$marks, ".profile_labels:id=a;")
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
  answer <- function(req, seconds = 0.04) {
    busy(seconds)
    "done"
  }
  handler <- label_handler(answer, function(req) c(route = req$path))
  serve <- function(path, ...) handler(list(path = path), ...)
  x <- record_profile({
    in_turns(list(function() serve("/a", 0.05), function() serve("/b")))
  }, lines = FALSE)
  # Others are those of R's compiler, and of what calls the handler.
  inside <- vapply(stack_names(x), function(names) "busy" %in% names, NA)
  expect_setequal(label_text(x)[inside], c("route=/a", "route=/b"))
  callers <- lapply(stack_names(x)[inside], function(names) names[match("busy", names) + 1:2])
  expect_setequal(callers, list(c("answer", "serve")))
})

test_that("a handler runs if its labels are wrong", {
  handler <- label_handler(function(req) busy(req), function(req) c(a = NA))
  expect_snapshot(x <- record_profile(handler(0.3)), transform = function(lines) lines[!grepl("^ *$", lines)])
  expect_silent(handler(0.01))
  expect_setequal(label_text(x), "")
  failing <- label_handler(function(req) req, function(req) stop("100% wrong"))
  expect_warning(expect_equal(failing(3), 3), "100% wrong", class = "profile_warning_labels")
})

test_that("requests of plumber are labelled by their endpoints", {
  skip_if_not_installed("plumber")
  request <- function(path, method = "GET") {
    rlang::env(REQUEST_METHOD = method, PATH_INFO = path, QUERY_STRING = "", rook.input = list(read_lines = function() "", read = function() raw()))
  }
  api <- plumber::pr_get(plumber::pr(), "/users/<id>", function(id, res) busy(0.03))
  sub <- plumber::pr_post(plumber::pr(), "/b", function(req) busy(0.03))
  api <- plumber::pr_mount(api, "/sub", sub)
  expect_identical(label_plumber(api), api)
  x <- record_profile(in_turns(list(
    function() api$call(request("/users/7")), function() api$call(request("/users/8")),
    function() api$call(request("/sub/b", "POST"))
  )))
  inside <- vapply(stack_names(x), function(names) "busy" %in% names, NA)
  expect_setequal(label_text(x)[inside], c(
    "http.request.method=GET http.route=/users/<id>", "http.request.method=POST http.route=/sub/b"
  ))
  expect_false(any(grepl("profile_", x$functions$name)))
  # As a file of plumber says it.
  path <- withr::local_tempfile(fileext = ".R", lines = c("#* @get /c", "function() 1", "#* @plumber", "profile::label_plumber"))
  hooks <- plumber::pr(path)$endpoints[[1]][[1]]$.__enclos_env__$private$hooks$aroundexec
  expect_length(hooks, 1)
})

test_that("outputs and observers of Shiny are labelled", {
  skip_if_not_installed("shiny")
  server <- function(input, output, session) {
    output$text <- shiny::renderText(with_labels(c(output = "text"), { busy(0.3); input$n }))
    shiny::observe(with_labels(c(observer = "n"), { busy(0.3); input$n }))
  }
  labelled <- label_handler(server, c(part = "server"))
  x <- quietly(record_profile(shiny::testServer(labelled, {
    session$setInputs(n = 1)
    expect_equal(output$text, "1")
  })))
  inside <- vapply(stack_names(x), function(names) "busy" %in% names, NA)
  expect_setequal(label_text(x)[inside], c("output=text", "observer=n"))
})
