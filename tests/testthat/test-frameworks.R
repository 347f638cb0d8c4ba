# tier: gate
# What remains of stacks of frameworks if their plumbing is hidden, for recordings of real apps, see
# data/frameworks/record.R.

framework_files <- function() list.files(test_path("data/frameworks"), "[.]pb[.]gz$", full.names = TRUE)

# The frames of each sample, outermost first, as "name file".
frames_of <- function(x) {
  frames <- as_tibble(x)
  frames <- frames[order(frames$sample_id, -frames$depth), ]
  text <- trimws(paste(frames$name, frames$filename))
  split(text, factor(frames$sample_id, unique(frames$sample_id)))
}

names_of_frames <- function(stack) sub(" .*", "", stack)

# Whether a stack has the frames of another one, in this order.
is_part_of <- function(part, whole) {
  at <- 0L
  for (frame in part) at <- match(TRUE, whole == frame & seq_along(whole) > at)
  !is.na(at)
}

# The packages of functions are found only if they are loaded.
packages <- c(
  "shiny", "plumber", "plumber2", "knitr", "testthat", "future.apply", "promises", "httpuv", "evaluate", "rmarkdown",
  "purrr", "rlang", "magrittr", "targets", "mirai", "dplyr", "tidyselect", "S7", "otel", "furrr", "foreach", "doParallel"
)

# System names are `package::name` where the recording knew the package, see data/frameworks/record-parallel.R. NULL if it
# knew none.
with_recorded_packages <- function(x) {
  system_name <- x$functions$system_name
  is_known <- system_name != x$functions$name & grepl("^[[:alnum:].]*::", system_name)
  if (!any(is_known)) {
    return(NULL)
  }
  package <- sub("::.*", "", system_name)
  x$functions$.package <- ifelse(is_known & nzchar(package), package, NA)
  x$functions$.package_from <- ifelse(is_known, "process", NA)
  x
}

# Frames of the user, except functions of R, which may have the source file of what they evaluate.
is_users <- function(stack) {
  name <- names_of_frames(stack)
  has_file <- grepl(" ((app|crew|test-[a-z]+)[.]R|<text>)$", stack)
  grepl("^(slow$|by_)", name) | has_file & !vapply(name, exists, NA, envir = baseenv(), inherits = FALSE)
}

# The most rows before a frame of the user, in one stack, without the first of them, which is the call of the framework.
most_between <- function(stack) {
  is_mine <- is_users(stack[stack != "<expression>"])
  max(0L, diff(c(0L, which(is_mine))) - 2L)
}

# Names of a recorded version that the installed one lacks are looked up as R does, last in attached packages: with
# withr attached, `with_options()` of a newer knitr would be a function that the user has called. Only R's own packages
# and those of tests remain attached.
local_search_path <- function(.local_envir = parent.frame()) {
  kept <- paste0("package:", c("base", getOption("defaultPackages"), "testthat", "profile"))
  others <- setdiff(grep("^package:", search(), value = TRUE), kept)
  for (other in others) suppressWarnings(detach(other, character.only = TRUE))
  attach_again <- function(package) suppressPackageStartupMessages(attachNamespace(package))
  withr::defer(for (other in rev(others)) attach_again(sub("^package:", "", other)), .local_envir)
}

test_that("attached packages do not matter for these tests", {
  local_search_path()
  before <- search()
  attachNamespace("withr")
  withr::defer(if ("package:withr" %in% search()) detach("package:withr"))
  local({
    local_search_path()
    expect_identical(search(), before)
  })
  expect_true("package:withr" %in% search())
})

# What is known of the packages of functions: nothing, what is loaded, and what the recording knew, if it did.
for (file in framework_files()) for (known in c("no", "loaded", if (!is.null(with_recorded_packages(read_pprof(file)))) "recorded")) {
  test_that(paste0("the user's frames of ", basename(file), " remain, and all time, with ", known, " packages"), {
    local_search_path()
    if (known == "loaded") suppressMessages(lapply(packages, requireNamespace, quietly = TRUE))
    x <- read_pprof(file)
    if (known == "recorded") x <- with_recorded_packages(x)
    left <- filter_profile(x, hide_plumbing = TRUE)
    expect_identical(left$samples, x$samples)
    expect_identical(left$sample_values, x$sample_values)
    before <- frames_of(x)
    after <- frames_of(left)
    expect_identical(names(after), names(before))
    expect_gt(sum(vapply(before, function(stack) any(is_users(stack)), NA)), 3)
    for (id in names(before)) {
      expect_true(is_part_of(after[[id]], before[[id]]))
      mine <- function(stack) stack[is_users(stack)]
      expect_identical(mine(after[[id]]), mine(before[[id]]))
    }
    expect_lte(max(vapply(after, most_between, 0L)), 3)
  })
}

test_that("recordings of today have packages", {
  known <- Filter(function(file) !is.null(with_recorded_packages(read_pprof(file))), framework_files())
  for (package in c("BiocParallel", "callr", "coro", "crew", "doFuture", "foreach", "furrr", "future", "mirai")) {
    expect_true(any(startsWith(basename(known), paste0(package, "-"))), label = package)
  }
})

test_that("a function that a framework calls under a name of its own is shown", {
  shown <- function(pattern) {
    x <- read_pprof(grep(pattern, framework_files(), value = TRUE))
    lapply(list(x, with_recorded_packages(x)), function(x) {
      names_of_frames(unlist(frames_of(filter_profile(x, hide_plumbing = TRUE))))
    })
  }
  for (names in shown("/future-1.75")) expect_true("...future.FUN" %in% names)
  for (names in shown("/furrr")) expect_true("...furrr_fn" %in% names)
  for (names in shown("/coro")) expect_false(any(c("user", "<<-", "env_poke", "iterator", "evalq") %in% names))
  for (names in shown("/crew")) {
    expect_false(any(c("send", "crew::crew_eval", "targets::target_run_worker", "eval_mirai") %in% names))
  }
  for (names in shown("/doFuture")) expect_false(any(c("e$fun", "doFuture2") %in% names))
})

test_that("functions that only call others are hidden, those of packages as far as they are known", {
  for (file in grep("purrr", framework_files(), value = TRUE)) {
    hidden <- filter_profile(read_pprof(file), hide_plumbing = TRUE)
    between <- unique(unlist(lapply(frames_of(hidden), function(stack) {
      own <- grep(" app[.]R$|^slow", stack)
      stack[setdiff(seq_len(max(own, 0)), own)]
    })))
    # What a verb does itself remains, such as the selection of elements.
    expect_setequal(setdiff(between, c("purrr::keep", "purrr::modify", "outer")), character())
  }
})

test_that("targets and labelled tasks have their names", {
  path <- function(pattern) grep(pattern, framework_files(), value = TRUE)
  targets <- summary(read_pprof(path("targets")), by = "targets.target")
  expect_setequal(targets$targets.target, c("one", "two", NA))
  # Twice as much work.
  total <- targets$total[match(c("one", "two"), targets$targets.target)]
  expect_gt(total[[2]], 1.5 * total[[1]])
  tasks <- summary(read_pprof(path("mirai")), by = "task")
  expect_setequal(tasks$task, c("fit", NA))
})

test_that("units of work of Shiny have names, as far as these are on the stack", {
  path <- function(pattern) test_path("data/frameworks", paste0(pattern, "-1.13.0.pb.gz"))
  events <- c("<observer>", "<observer:bindEvent(input$n)>", "<observer:observeEvent(input$n)>")
  for (name in c("shiny-async", "shiny-otel")) {
    by <- summary(read_pprof(path(name)), by = "shiny.reactive")
    expect_true(all(c(events, "<reactive:cached>", "output$sync") %in% by$shiny.reactive))
    expect_false("<output>" %in% by$shiny.reactive)
  }
  by <- summary(read_pprof(path("shiny-test")), by = "shiny.reactive")
  expect_setequal(by$shiny.reactive, c(events, "<reactive:data>", "<reactive>", "<output>", NA))
})

test_that("a Shiny app is shown by its outputs and reactives", {
  x <- read_pprof(test_path("data/frameworks/shiny-1.7.4.pb.gz"))
  # Nine of ten frames are Shiny's.
  hidden <- filter_profile(x, hide_plumbing = TRUE)
  expect_lt(nrow(hidden$sample_locations), nrow(x$sample_locations) / 10)
  stacks <- unique(vapply(frames_of(filter_profile(x, hide_plumbing = TRUE)), function(stack) {
    paste(stack[seq_len(match("slow app.R", stack, length(stack)))], collapse = " > ")
  }, ""))
  expect_snapshot(writeLines(sort(stacks[grepl("slow", stacks)])))
})

test_that("the digest of an app has its outputs, and no plumbing", {
  x <- read_pprof(test_path("data/frameworks/shiny-1.13.0.pb.gz"), source_uri = NA_character_)
  description <- describe_profile(x)
  text <- format(description, width = 100)
  expect_true("Call tree, without plumbing" %in% text)
  # What else is shown depends on the packages that are known.
  tree <- as.list(description)$tree
  expect_true(all(c("output$plot", "renderPlot", "<reactive:data>", "slow") %in% tree$name))
  expect_false(any(c("captureStackTraces", "hybrid_chain", "tryCatch", "ctx$run") %in% tree$name))
  expect_false(any(grepl("plumbing", as.list(description)$next_calls)))
  # Without a framework, the tree is as recorded.
  expect_null(attr(as.list(describe_profile(filter_profile(x, focus = "^startApp$", show_mine = TRUE)))$tree, "hidden"))
})

test_that("my code is the user's files and what they call directly", {
  x <- read_pprof(test_path("data/frameworks/shiny-1.7.4.pb.gz"))
  mine <- filter_profile(x, show_mine = TRUE)
  expect_identical(mine$samples, x$samples)
  expect_identical(mine$sample_values, x$sample_values)
  before <- frames_of(x)
  after <- frames_of(mine)
  for (id in names(before)) {
    stack <- before[[id]]
    is_mine <- grepl(" app.R$", stack)
    shown <- stack[is_mine | c(FALSE, is_mine[-length(is_mine)])]
    expect_identical(after[[id]], if (length(shown) > 0) shown else stack[[1]])
  }
})

test_that("code in libraries is not mine", {
  paths <- c(
    "/usr/lib/R/library/stats/R/a.R" = TRUE,
    "/usr/local/lib/R/site-library/dplyr/R/a.R" = TRUE,
    "/home/u/R/x86_64-pc-linux-gnu-library/4.3/shiny/R/a.R" = TRUE,
    "C:/Users/u/AppData/Local/R/win-library/4.3/shiny/R/a.R" = TRUE,
    "/Users/u/Library/R/arm64/4.3/library/shiny/R/a.R" = TRUE,
    "/home/u/app/renv/library/R-4.3/x86_64-pc-linux-gnu/shiny/R/a.R" = TRUE,
    "/home/u/app/renv/library/linux-debian-trixie/R-4.5/x86_64-pc-linux-gnu/shiny/R/a.R" = TRUE,
    "/tmp/RtmpA/R.INSTALL1a2b/own/R/a.R" = TRUE,
    "/home/u/my-library/app/R/a.R" = FALSE,
    "/home/u/library/project/app/R/a.R" = FALSE,
    "/home/u/app/R/a.R" = FALSE,
    "app.R" = FALSE
  )
  expect_identical(is_in_library(names(paths)), unname(paths))
  path <- withr::local_tempfile(lines = c("sample.interval=10000", "\"sort\" \"f\" "))
  x <- read_rprof(path)
  expect_error(filter_profile(x, show_mine = TRUE), "no source files of yours", class = "profile_error_argument")
  x$functions$filename <- c(`Encoding<-`("a\xff.R", "latin1"), "")[seq_len(nrow(x$functions))]
  expect_identical(nrow(filter_profile(x, show_mine = TRUE)$samples), 1L)
  expect_identical(nrow(filter_profile(x, hide_plumbing = TRUE)$samples), 1L)
})

test_that("what is plumbing or mine is no expression", {
  path <- withr::local_tempfile(lines = c("sample.interval=10000", "\"plumbing\" \"mine\" ", "\"mine\" "))
  x <- read_rprof(path)
  expect_true("plumbing" %in% summary(filter_profile(x, hide = "mine"))$by_function$name)
  expect_false("plumbing" %in% summary(filter_profile(x, hide = "plumbing"))$by_function$name)
  expect_identical(summary(filter_profile(x, show = "mine"))$by_function$name, "mine")
})

test_that("units of work become labels when samples are read", {
  path <- withr::local_tempfile(lines = c(
    "line profiling: sample.interval=10000", "#File 1: app.R",
    "\"g\" 1#2 \"output$plot\" \"func\" \"<observer:output$plot>\" \"runApp\" ",
    "\"<reactive:data>\" \"output$plot\" \"<observer:output$plot>\" \"runApp\" ",
    "\"f\" \"<observer:save>\" \"runApp\" ",
    "\"runApp\" "
  ))
  x <- read_rprof(path)
  expect_identical(x$.labels$key, rep("shiny.reactive", 3))
  expect_identical(x$.labels$str, c("output$plot", "<reactive:data>", "<observer:save>"))
  by <- summary(x, by = "shiny.reactive")
  expect_identical(sort(by$samples), rep(1L, 4))
  expect_setequal(by$shiny.reactive, c("output$plot", "<reactive:data>", "<observer:save>", NA))
})

test_that("samples have the label of the unit of work that they belong to", {
  skip_without_ticks()
  busy <- compiler::cmpfun(function(n) tick(n))
  # The names that Shiny gives to these functions.
  `<reactive:data>` <- function() busy(3L)
  `<observer:save>` <- function() {
    busy(2L)
    `<reactive:data>`()
  }
  `<observer:output$plot>` <- function() busy(1L)
  x <- record_profile(
    {
      only_given_ticks()
      `<observer:save>`()
      `<observer:output$plot>`()
      busy(4L)
    },
    interval = 0.9
  )
  by <- summary(x, by = "shiny.reactive")
  expected <- c(`<reactive:data>` = 3L, `<observer:save>` = 2L, `output$plot` = 1L)
  expect_identical(by$samples[match(names(expected), by$shiny.reactive)], unname(expected))
  expect_identical(by$samples[is.na(by$shiny.reactive)], 4L)
})
