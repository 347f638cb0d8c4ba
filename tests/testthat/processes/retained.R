# Plants leaks of many kinds between two snapshots, and removes them, one after the other: what R's garbage collector
# frees must be what a snapshot says that they retain. Prints a line for each: its name, the numbers of objects of the
# snapshot and of the collector, both numbers of bytes, the number of finalizers, and the path that names it in the
# comparison of the two snapshots.

compiler::enableJIT(0)
library(profile)

has <- function(package) requireNamespace(package, quietly = TRUE)
# Each kind holds such a vector, so that it is larger than all else that changes, such as what the comparison needs.
big <- function() runif(5e4)

Slots <- setClass("Slots", slots = c(data = "numeric"))
Reference <- setRefClass("Reference", fields = list(data = "list"))
if (has("R6")) {
  Stack <- R6::R6Class("Stack", public = list(push = function(x) {
    private$items <- c(private$items, list(x))
    invisible(self)
  }), private = list(items = list()))
}

# What each kind assigns to a variable of its name.
values <- list(
  nothing = function() NULL,
  vector = function() big(),
  list_of_lists = function() c(list(big()), lapply(1:1000, function(i) list(i + 0.5, paste0("u", i)))),
  closure = function() {
    data <- big()
    other <- new.env()
    other$me <- environment()
    function(x) x + data[1]
  },
  model = function() lm(mpg ~ wt + hp, data = mtcars[rep(1:32, 100), ]),
  environment_of_list = function() list2env(list(a = big(), f = function() 1), parent = globalenv()),
  formula = function() {
    raw <- big()
    y ~ x
  },
  # A list in both directions, in which each environment holds all others.
  linked = function() {
    first <- NULL
    for (i in 1:5000) {
      following <- new.env(hash = FALSE, parent = emptyenv())
      following$previous <- first
      if (!is.null(first)) first$following <- following
      first <- following
    }
    first
  },
  strings = function() paste0("key", 1:5000),
  times = function() as.POSIXlt(.POSIXct(1e9 + 1:10000, "UTC")),
  table = function() data.frame(a = 1:5000 + 0, b = paste("row", 1:5000)),
  pairlist = function() as.pairlist(list(a = big(), b = list(runif(3)))),
  code = function() bquote(f(x, g(.(big()), 1.5))),
  expressions = function() as.expression(list(quote(zzz(bar(2.5))), big())),
  compiled = function() {
    f <- eval(bquote(function(x) {
      s <- 0
      for (i in seq_len(x)) s <- s + i * .(big())
      s
    }))
    compiler::cmpfun(f)
  },
  with_source = function() eval(parse(text = c("function() {", rep("  1 + 1", 2000), "}"), keep.source = TRUE)),
  argument = function() {
    hold <- function(x) {
      force(x)
      function() x
    }
    hold(big())
  },
  grown = function() {
    v <- numeric(0)
    for (i in 1:50000) v[i] <- i + 0
    v
  },
  grown_list = function() {
    items <- list()
    for (i in 1:5000) items[[i]] <- list(i)
    items
  },
  finalized = function() {
    e <- new.env()
    reg.finalizer(e, function(e) 1)
    e$x <- as.list(1:5000 + 0.5)
    e
  },
  # Only the objects at the ends of sequences are in memory, and these hold nothing: they are in lists.
  sequence = function() list(1:1e6, big()),
  deferred = function() list(as.character(1e6:1.01e6), big()),
  wrapper = function() sort(big()),
  attribute = function() structure(list(), cached = big()),
  slot = function() Slots(data = big()),
  reference = function() Reference$new(data = list(big())),
  parents = function() {
    outer <- new.env()
    outer$data <- big()
    new.env(parent = new.env(parent = outer))
  },
  generic = function() {
    data <- big()
    structure(list(print = function() data), class = c("special", "common"))
  },
  # The strings are also held by `other_strings`.
  shared_strings = function() {
    other_strings <<- paste0("shared", 1:50000)
    rev(other_strings)
  }
)
packages <- list(
  data.table = list(
    data_table = function() data.table::data.table(a = big()),
    data_tables = function() lapply(1:5, function(i) data.table::data.table(a = big(), key = "a"))
  ),
  tibble = list(tibble = function() tibble::tibble(a = 1:5000 + 0, b = as.list(a))),
  R6 = list(
    r6_object = function() Stack$new()$push(big())$push(big()),
    r6_class = function() {
      R6::R6Class("Cache", public = list(data = big()), private = list(items = lapply(1:1000, function(i) i + 0)))
    }
  ),
  shiny = list(
    # A session ends, but an observer of a value that all sessions share still holds it.
    session_value = function() {
      value <- shiny::reactiveVal(0)
      local({
        session <- shiny::MockShinySession$new()
        data <- big()
        shiny::withReactiveDomain(session, shiny::observe({
          value()
          data
        }))
        session$flushReact()
      })
      value
    }
  ),
  memoise = list(memoised = function() {
    f <- memoise::memoise(function(n) runif(n))
    for (n in 1e5 + 1:3) f(n)
    f
  }),
  xml2 = list(pointer = function() structure(list(big()), document = xml2::read_xml("<a><b/></a>"))),
  S7 = list(s7_object = function() S7::new_class("Held", properties = list(data = S7::class_numeric))(data = big()))
)
missing <- names(packages)[!vapply(names(packages), has, NA)]
cat("missing:", missing, "\n")
values <- c(values, unlist(unname(packages[setdiff(names(packages), missing)]), recursive = FALSE))
assigned <- lapply(values, function(value) list(
  plant = function(kind) assign(kind, value(), globalenv()), remove = function(kind) assign(kind, NULL, globalenv())
))

# What is not a value of a variable. `path` is the start of its path, if it is not `globalenv > $kind`.
others <- list(
  promise = list(
    plant = function(kind) local({
      data <- big()
      delayedAssign("promise", sum(data), environment(), globalenv())
    }),
    remove = function(kind) assign(kind, NULL, globalenv())
  ),
  active = list(
    plant = function(kind) local({
      data <- big()
      rm(active, envir = globalenv())
      makeActiveBinding("active", function() data, globalenv())
    }),
    remove = function(kind) {
      rm(active, envir = globalenv())
      active <<- NULL
    }
  ),
  option = list(
    plant = function(kind) options(leak.option = big()), remove = function(kind) options(leak.option = NULL),
    path = "base > [$][.]Options > [$]leak.option"
  ),
  callback = list(
    plant = function(kind) addTaskCallback(local({
      data <- big()
      function(...) !is.null(data)
    }), name = "leak"),
    remove = function(kind) removeTaskCallback("leak"), path = "task callback leak"
  ),
  connection = list(
    plant = function(kind) {
      con <- textConnection(NULL, "w")
      writeLines(paste("line", 1:5000), con)
      # R closes connections that nothing holds.
      open_connection <<- con
    },
    remove = function(kind) close(open_connection), path = "connection [0-9]+ <textConnection>"
  ),
  device = list(
    plant = function(kind) {
      grDevices::pdf(NULL)
      grDevices::dev.control("enable")
      plot(big())
    },
    remove = function(kind) grDevices::dev.off(), path = "graphics device [0-9]+"
  )
)
kinds <- c(assigned, others)
for (kind in names(kinds)) assign(kind, NULL, globalenv())
open_connection <- NULL
other_strings <- NULL
.Last.value <- NULL

# Packages and R keep what they need again. So what is measured is not the first of its kind.
for (kind in names(kinds)) kinds[[kind]]$plant(kind)
for (kind in names(kinds)) kinds[[kind]]$remove(kind)

# At both moments there is a snapshot.
for (i in 1:2) before <- snapshot_memory()
for (kind in names(kinds)) kinds[[kind]]$plant(kind)
growth <- compare_profiles(before, snapshot_memory(), min_share = 0.001)
rm(before)

# The regular expression of the paths of a kind.
pattern <- function(kind) {
  path <- kinds[[kind]]$path
  if (is.null(path)) path <- paste0("globalenv > [$]", kind)
  paste0("^", path, "(\\(\\))?( <[^>]*>)?( > |$)")
}
patterns <- vapply(names(kinds), pattern, "")
named <- vapply(patterns, function(pattern) growth$held_by[grep(pattern, growth$held_by)[1]], "")
is_step <- grepl(" > ", growth$held_by, fixed = TRUE)
# All mock sessions of shiny 1.13 share the field `unhandledErrorCallbacks`, which the class itself holds as well.
others <- c("^not R's heap", "^free cells of R", "^namespace:shiny [$]MockShinySession")
is_known <- grepl(paste(c(others, patterns), collapse = "|"), growth$held_by)
for (path in growth$held_by[is_step & !is_known & growth$growth > 1e5]) cat("not planted:", path, "\n")

# The outermost steps of all paths of a snapshot, with bytes and objects.
retained <- function() {
  x <- profile:::new_profile_data(profile:::rust(profile:::rust_own_heap(1, 0, list(), FALSE), NULL), "2.0")
  name <- x$functions$name[match(x$locations$function_id, x$functions$function_id)]
  # Innermost first.
  frames <- x$sample_locations
  name <- name[match(frames$location_id, x$locations$location_id)]
  last <- which(!duplicated(frames$sample_id, fromLast = TRUE))
  step <- function(by) {
    at <- pmax(last - by, 1)
    ifelse(frames$sample_id[at] == frames$sample_id[last], name[at], "")
  }
  of <- function(unit) {
    values <- x$sample_values[x$sample_values$unit == unit, ]
    values$value[match(frames$sample_id[last], values$sample_id)]
  }
  # Once for each path, since they are searched for each kind.
  sums <- rowsum(cbind(bytes = of("bytes"), objects = of("count")), paste(step(0), step(1), step(2), sep = " > "))
  data.frame(path = rownames(sums), sums)
}

# What R counts: cells, units of 8 bytes of the data of vectors, cells that are vectors, and weak references.
vectors <- c("char", "logical", "integer", "double", "complex", "character", "list", "expression", "raw", "weakref")
used <- function() {
  cells <- memory.profile()
  counts <- gc(full = TRUE)
  c(counts[1, 1], counts[2, 1], sum(cells[vectors]), cells[["weakref"]])
}

invisible(gc())
snapshot <- retained()
before <- used()
# For the first ones, R allocates more.
for (kind in c("nothing", "nothing", names(kinds))) {
  suppressMessages(kinds[[kind]]$remove(kind))
  # Finalizers run, and in the next collection what they released is freed.
  gc(full = TRUE)
  after <- used()
  freed <- before - after
  at <- grepl(patterns[[kind]], snapshot$path)
  # A cell of gc() has 56 bytes, but the header of a vector has 48.
  bytes <- 56 * freed[[1]] + 8 * freed[[2]] - 8 * freed[[3]]
  cat(
    "kind", kind, sum(snapshot$objects[at]), freed[[1]], sum(snapshot$bytes[at]), bytes, freed[[4]], named[[kind]],
    "\n"
  )
  # Each collection of all garbage takes a while.
  before <- after
}
