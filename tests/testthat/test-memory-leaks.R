# tier: gate
# Memory leaks as they occur in practice: the first of the holders of a snapshot has the name of the culprit.

# Code that prints the first holder. Memory that is not in objects of R depends on the build of the package.
look_code <- c(
  "library(profile)",
  "look <- function() {",
  "  found <- holders(snapshot_memory())",
  "  found <- found[!grepl(\"^(not R's heap|free cells of R)\", found$held_by), ]",
  "  cat('held', found$retained[[1]], found$held_by[[1]], '\\n')",
  "}",
  "clean <- function() {",
  "  rm(list = setdiff(ls(globalenv(), all.names = TRUE), c('look', 'clean')), envir = globalenv())",
  "  invisible(gc())",
  "}"
)

# Evaluates blocks, each of which leaks 40 MB and calls `look()`, in one fresh process. Variables are removed after
# each. Returns their first holders, named as the blocks.
held_in <- function(...) {
  blocks <- as.list(substitute(list(...)))[-1]
  code <- lapply(blocks, function(block) c(unlist(lapply(as.list(block)[-1], deparse)), "clean()"))
  result <- run_r(c(look_code, unlist(code)))
  expect_ran(result)
  lines <- grep("^held ", result$output, value = TRUE)
  expect_length(lines, length(blocks))
  bytes <- as.numeric(sub("^held ([^ ]+) .*", "\\1", lines))
  expect_gte(min(bytes), 4e7)
  rlang::set_names(as.list(trimws(sub("^held [^ ]+ ", "", lines))), names(blocks))
}

# Expects that these texts are in a path, in this order.
expect_names <- function(path, ...) {
  at <- vapply(c(...), function(text) regexpr(text, path, fixed = TRUE)[[1]], 0L)
  expect(all(at > 0) && !is.unsorted(at), paste("The memory is held by", path))
}

test_that("models, closures and caches hold memory", {
  skip_without_snapshots()
  held <- held_in(
    model = {
      fit <- function(n) {
        raw <- numeric(n)
        d <- data.frame(x = c(1, 2, 4), y = c(1, 3, 2))
        lm(y ~ x, d)
      }
      model <- fit(5e6)
      look()
    },
    closures = {
      make_handler <- function(id) {
        data <- numeric(1e6)
        function() length(data)
      }
      handlers <- lapply(1:5, make_handler)
      look()
    },
    memoised = {
      memoised <- function(f) {
        cache <- list()
        function(key) {
          if (is.null(cache[[key]])) cache[[key]] <<- f()
          cache[[key]]
        }
      }
      load_year <- memoised(function() numeric(1e6))
      for (year in 2001:2005) load_year(as.character(year))
      look()
    },
    promise = {
      later <- function(x) function() x
      make <- function(n) {
        rows <- numeric(n)
        later(sum(rows))
      }
      total <- make(5e6)
      look()
    }
  )
  expect_names(held$model, "globalenv > $model <lm>", "attr \".Environment\"", "$raw")
  expect_names(held$closures, "globalenv > $handlers", "closure env", "$data")
  expect_names(held$memoised, "globalenv > $load_year()", "closure env", "$cache")
  expect_names(held$promise, "globalenv > $total()", "promise env", "$rows")
})

test_that("environments hold memory", {
  skip_without_snapshots()
  held <- held_in(
    log = {
      state <- get(".CompletionEnv", asNamespace("utils"))
      for (i in 1:50) state$log[[i]] <- numeric(1e5)
      rm(state)
      look()
      rm("log", envir = get(".CompletionEnv", asNamespace("utils")))
    },
    plot = {
      draw <- function(n) {
        raw <- numeric(n)
        structure(list(data = data.frame(x = 1:3), mapping = quote(x), plot_env = environment()), class = "figure")
      }
      figure <- draw(5e6)
      look()
    },
    queue = {
      new_queue <- function() {
        self <- structure(new.env(), class = "Queue")
        self$add <- function(item) self$items[[length(self$items) + 1]] <- item
        self
      }
      jobs <- new_queue()
      for (i in 1:5) jobs$add(numeric(1e6))
      look()
    },
    active = {
      shared <- local({
        store <- data.frame(price = numeric(5e6))
        env <- new.env()
        makeActiveBinding("first", function() store$price[[1]], env)
        env
      })
      look()
    }
  )
  expect_names(held$log, "namespace:utils > $.CompletionEnv", "$log")
  expect_names(held$plot, "globalenv > $figure <figure>", "$plot_env", "$raw")
  expect_names(held$queue, "globalenv > $jobs <Queue>", "$items")
  expect_names(held$active, "globalenv > $shared", "$store <data.frame>", "$price")
})

test_that("running calls hold memory", {
  skip_without_snapshots()
  held <- held_in(
    variable = {
      import <- function(n) {
        batch <- numeric(n)
        check()
        length(batch)
      }
      check <- function() look()
      import(5e6)
    },
    argument = {
      count <- function(data) check(nrow(data))
      check <- function(n) {
        force(n)
        look()
      }
      count(data.frame(price = numeric(5e6)))
    },
    at_exit = {
      make_handler <- function() {
        undo <- numeric(5e6)
        function() length(undo)
      }
      edit <- function() {
        do.call(on.exit, list(as.call(list(make_handler()))), envir = environment())
        look()
      }
      edit()
    }
  )
  expect_names(held$variable, "call of import()", "$batch")
  expect_names(held$argument, "call of count()", "$data <data.frame>", "$price")
  expect_names(held$at_exit, "call of edit()", "closure env", "$undo")
})

test_that("handlers that R calls hold memory", {
  skip_without_snapshots()
  held <- held_in(
    observer = {
      contexts <- new.env()
      observe <- function(run) {
        context <- structure(new.env(), class = "Context")
        context$run <- run
        contexts[[as.character(length(contexts) + 1)]] <- context
      }
      session <- function() {
        sales <- numeric(5e6)
        observe(function() length(sales))
        invisible()
      }
      session()
      look()
    },
    finalizer = {
      watch <- function() {
        cache <- numeric(5e6)
        handle <- new.env(parent = emptyenv())
        reg.finalizer(handle, function(e) length(cache))
        handle
      }
      handle <- watch()
      look()
    },
    conditions = {
      count_warnings <- function() {
        seen <- numeric(5e6)
        globalCallingHandlers(warning = function(w) length(seen))
      }
      count_warnings()
      look()
      globalCallingHandlers(NULL)
    },
    hook = {
      prepare <- function() {
        table <- numeric(5e6)
        setHook(packageEvent("splines", "onLoad"), function(...) length(table))
      }
      prepare()
      look()
      setHook(packageEvent("splines", "onLoad"), NULL, "replace")
    }
  )
  expect_names(held$observer, "globalenv > $contexts", "<Context>", "$sales")
  expect_names(held$finalizer, "finalizer", "closure env", "$cache")
  expect_names(held$conditions, "base", "globalCallingHandlers", "closure env", "$seen")
  expect_names(held$hook, "base > $.userHooksEnv > $UserHook::splines::onLoad", "closure env", "$table")
})

test_that("options, attributes, slots and fields hold memory", {
  skip_without_snapshots()
  held <- held_in(
    option = {
      options(app.cache = list(numeric(5e6)))
      look()
      options(app.cache = NULL)
    },
    attribute = {
      x <- structure(1:3, raw = numeric(5e6))
      look()
    },
    slot = {
      Model <- methods::setClass("Model", representation(weights = "numeric"))
      model <- Model(weights = numeric(5e6))
      look()
    },
    field = {
      Account <- methods::setRefClass("Account", fields = list(entries = "list"))
      account <- Account$new(entries = list(numeric(5e6)))
      look()
    },
    column = {
      runs <- data.frame(id = 1:2)
      runs$result <- list(numeric(5e6), 1)
      look()
    },
    default = {
      scale_by <- function(x, by = NULL) x * by
      formals(scale_by)$by <- numeric(5e6)
      look()
    }
  )
  expect_names(held$option, "base > $.Options", "$app.cache")
  expect_names(held$attribute, "globalenv > $x", "attr \"raw\"")
  expect_names(held$slot, "globalenv > $model <Model>", "weights")
  expect_names(held$field, "globalenv > $account <Account>", "entries")
  expect_names(held$column, "globalenv > $runs <data.frame>", "$result")
  expect_names(held$default, "globalenv > $scale_by()")
})

test_that("memoised functions of the package memoise hold memory", {
  skip_without_snapshots()
  skip_if_not_installed("memoise")
  held <- held_in(memoised = {
    load_year <- getExportedValue("memoise", "memoise")(function(year) numeric(1e6))
    for (year in 2001:2005) load_year(year)
    look()
  })
  expect_names(held$memoised, "globalenv > $load_year <memoised>", "cache", "$value")
})

test_that("objects of R6 hold memory", {
  skip_without_snapshots()
  skip_if_not_installed("R6")
  held <- held_in(queue = {
    Queue <- getExportedValue("R6", "R6Class")(
      "Queue",
      public = list(add = function(item) private$items[[length(private$items) + 1]] <- item),
      private = list(items = list())
    )
    jobs <- Queue$new()
    for (i in 1:5) jobs$add(numeric(1e6))
    look()
  })
  expect_names(held$queue, "globalenv > $jobs <Queue>", "$private", "$items")
})

test_that("observers of Shiny hold the memory of sessions", {
  skip_without_snapshots()
  skip_if_not_installed("shiny")
  # Each session observes a value that all sessions share, which so holds the data of sessions that have ended.
  held <- held_in(session = {
    visitors <- shiny::reactiveVal(0)
    server <- function(input, output, session) {
      sales <- numeric(5e6)
      shiny::observe({
        visitors()
        length(sales)
      })
    }
    invisible(local({
      session <- shiny::MockShinySession$new()
      shiny::withReactiveDomain(session, server(session$input, session$output, session))
      session$flushReact()
    }))
    look()
  })
  expect_names(held$session, "globalenv > $visitors", "<Observer>", "$sales")
})

test_that("devices that keep what was drawn hold memory", {
  skip_without_snapshots()
  held <- held_in(
    device = {
      pdf(NULL)
      dev.control("enable")
      draw <- function() {
        x <- numeric(5e6)
        plot(x, type = "n", axes = FALSE)
      }
      draw()
      look()
      invisible(dev.off())
    }
  )
  expect_names(held$device, "graphics device 2")
})

test_that("what was removed is garbage until it is collected", {
  skip_without_snapshots()
  result <- run_r(c(
    "library(profile)", "invisible(snapshot_memory())",
    # R collects garbage when it needs memory, which it does not just after a collection.
    "for (gc in c(FALSE, TRUE)) {", "  invisible(gc())", "  x <- numeric(5e6)", "  rm(x)",
    "  found <- holders(snapshot_memory(gc = gc), n = 1000)",
    "  cat('unheld', sum(found$retained[grepl('^garbage not collected yet', found$held_by)]) > 4e7, '\\n')",
    "  cat('riddle', sum(found$retained[grepl('^no holder found', found$held_by)]) > 1e5, '\\n')",
    "}"
  ))
  expect_ran(result)
  lines <- grep("^(unheld|riddle)", trimws(result$output), value = TRUE)
  expect_identical(lines, c("unheld TRUE", "riddle FALSE", "unheld FALSE", "riddle FALSE"))
})

test_that("the entries of a cache are one row", {
  skip_without_snapshots()
  result <- run_r(c(
    "library(profile)", "before <- snapshot_memory()", "cache <- new.env()",
    "for (i in 1:20) assign(paste0('key', i), list(value = numeric(1e5)), cache)",
    "after <- snapshot_memory()",
    "cat('row', holders(after, n = 1000)$held_by, '\\n', sep = '\\nrow ')",
    "cat('row', compare_profiles(before, after)$held_by, '\\n', sep = '\\nrow ')"
  ))
  expect_ran(result)
  expect_true("row globalenv > $cache > $key* > $value (20)" %in% result$output)
  expect_true("row globalenv > $cache > $key* > $value (20 new)" %in% result$output)
})

test_that("vectors count with the memory they were given", {
  skip_without_snapshots()
  result <- run_r(c(
    "library(profile)",
    "for (package in c('data.table', 'R6')) if (!requireNamespace(package, quietly = TRUE)) { cat('absent\\n'); quit('no') }",
    "data.table::setDTthreads(1)",
    "tables <- replicate(2e4, data.table::data.table(a = 1L), simplify = FALSE)",
    "grown <- numeric(); for (i in 1:1e5) grown[[i]] <- i",
    "tibbles <- replicate(2000, tibble::tibble(a = 1:3, b = letters[1:3]), simplify = FALSE)",
    "Queue <- R6::R6Class('Queue', public = list(items = NULL, add = function(x) self$items <- c(self$items, x)))",
    "queues <- replicate(5000, Queue$new()$add(1))",
    "for (i in 1:2) counts <- gc()",
    "x <- snapshot_memory(gc = FALSE)",
    "attributes <- x$.source_attributes",
    "data <- attributes$value[attributes$key == 'profile.heap.data']",
    "cat('share', as.numeric(data) / 8 / counts['Vcells', 1], '\\n')",
    "cat('tables', holders(x, n = 1000)$retained[holders(x, n = 1000)$held_by == 'globalenv > $tables'] > 1.6e8, '\\n')"
  ))
  expect_ran(result)
  skip_if("absent" %in% result$output, "data.table and R6 are not installed")
  share <- as.numeric(sub("^share ", "", grep("^share", result$output, value = TRUE)))
  expect_lt(abs(share - 1), 0.005)
  expect_true(any(grepl("^tables TRUE", result$output)))
})
