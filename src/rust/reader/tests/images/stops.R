# A program that stops at places where its stack is known. `examples/record_image` runs it, and records the memory
# that a reader needs at each stop; `tools/record-images` does so for several versions of R.
#
# The stack comes from R itself, by `sys.calls()`. `gate` is a connection: whoever reads a line from it stops until the
# recorder writes one.

invisible(compiler::enableJIT(0))

# The name of the function of a call, as Rprof() writes it.
name_of <- function(call) {
  head <- call[[1]]
  if (is.symbol(head)) {
    return(as.character(head))
  }
  operator <- if (is.call(head)) as.character(head[[1]])
  if (identical(operator, "[[")) {
    element <- if (is.character(head[[3]])) dQuote(head[[3]], FALSE) else as.character(head[[3]])
    return(paste0(as.character(head[[2]]), "[[", element, "]]"))
  }
  is_member <- length(operator) == 1 && operator %in% c("::", ":::", "$")
  if (is_member) paste0(as.character(head[[2]]), operator, as.character(head[[3]])) else "<Anonymous>"
}

# The same, with the place of the definition if many functions have this name.
full_name_of <- function(call, srcref) {
  name <- name_of(call)
  if (is.null(srcref) || !name %in% c("FUN", "<Anonymous>")) {
    return(name)
  }
  paste0(name, " (", attr(srcref, "srcfile")$filename, ":", srcref[[1]], ")")
}

place_of <- function(srcref, line = srcref[[1]]) {
  if (is.null(srcref)) "" else paste0(" ", attr(srcref, "srcfile")$filename, "#", line)
}

# Builtins that byte code calls, which `sys.calls()` leaves out: for each stop, their names, and the functions that call
# them.
builtins <- list(
  builtin = c(in_builtin = ".External"),
  builtins = c(of_things = "max"),
  optimize = c("stats::optimize" = ".External2"),
  methods = c(callNextMethod = ".Call")
)

# Reports the stack of the function that calls it, which must stop in the line after this call. `has_source` is whether
# that function has source references.
tell <- function(stop, has_source = TRUE) {
  calls <- sys.calls()
  srcrefs <- lapply(calls, attr, "srcref")
  own <- length(calls)
  places <- vapply(srcrefs, place_of, "")
  if (has_source) {
    places[[own]] <- place_of(srcrefs[[own]], srcrefs[[own]][[1]] + 1)
  }
  of_stop <- builtins[[stop]]
  frames <- character()
  # A function is where it has made the next inner call.
  for (i in seq_len(own - 1)) {
    name <- full_name_of(calls[[i]], attr(sys.function(i), "srcref"))
    frames <- c(frames, paste0(name, places[[i + 1]]), of_stop[names(of_stop) == name])
  }
  writeLines(enc2utf8(c(paste("stop", stop), paste("frame", rev(frames)), "ready")), useBytes = TRUE)
  flush(stdout())
}

# The functions of an environment, and those inside of them, compiled.
compiled <- function(functions) {
  for (name in ls(functions)) assign(name, compiler::cmpfun(get(name, functions)), functions)
  functions
}

# Functions of which each is also compiled.
plain <- function() {
  outer <- function(stop) {
    middle(stop,
           1 + 1)
  }
  middle <- function(stop, unused) {
    for (i in 1) {
      value <- inner(stop)
    }
    value
  }
  inner <- function(stop) {
    x <- 1
    tell(stop)
    .Internal(readLines(gate, 1L, TRUE, FALSE, "unknown", FALSE))
  }
  environment()
}
interpreted <- plain()
byte_code <- compiled(plain())

# Both kinds, in turns.
mixed <- plain()
mixed$outer <- compiler::cmpfun(mixed$outer)
mixed$inner <- compiler::cmpfun(mixed$inner)

leaf <- byte_code$inner
interpreted_leaf <- interpreted$inner

deeper <- function(n) {
  if (n > 0) {
    deeper(n - 1)
  } else {
    leaf("deep")
  }
}
deeper_compiled <- compiler::cmpfun(function(n) {
  if (n > 0) {
    deeper_compiled(n - 1)
  } else {
    deeper(60)
  }
})

# Loops have records of their own.
in_loops <- compiler::cmpfun(function() {
  repeat {
    for (i in 1) {
      while (i == 1) {
        # With a context, since `break` is in a promise.
        identity({
          leaf("loops")
          break
        })
      }
    }
    break
  }
})

# A builtin that byte code calls has no record. It stops in the builtin itself.
table_head <- utils:::C_readtablehead
in_builtin <- compiler::cmpfun(function() {
  tell("builtin")
  .External(table_head, gate, 1L, "#", TRUE, "\"'", ",", FALSE)
})

# Builtins that call R functions.
Summary.thing <- function(..., na.rm) {
  of_instruction(...)
}
of_things <- compiler::cmpfun(function(thing) {
  value <- max(thing)
  value
})
# The compiler has an instruction for this one, which is no frame.
of_instruction <- compiler::cmpfun(function(thing) {
  sqrt(thing)
})
Math.thing <- function(x, ...) interpreted_leaf("builtins")

# Methods, from the outermost to the innermost.
describe <- function(x, ...) UseMethod("describe")
describe.special <- function(x, ...) {
  NextMethod()
}
describe.default <- function(x) {
  area(new("Square", size = 1))
}
setClass("Shape", representation(size = "numeric"))
setClass("Square", contains = "Shape")
setGeneric("area", function(shape, ...) standardGeneric("area"))
setMethod("area", "Square", function(shape, ...) {
  callNextMethod()
})
setMethod("area", "Shape", function(shape, ...) {
  counter$add()
})
Counter <- suppressMessages(setRefClass("Counter", fields = list(n = "numeric"), methods = list(
  add = function() {
    n <<- n + 1
    self$run()
  }
)))
counter <- Counter$new(n = 0)
private <- new.env()
self <- list2env(list(run = function() {
  private$step()
}))
private$step <- compiler::cmpfun(function() {
  leaf("methods")
})

# Names.
größe <- compiler::cmpfun(function(x) {
  (function(x) (function() leaf("names"))())(1)
})
steps <- list(go = function() {
  base::identity(größe(1))
})

# Functions of base that call others.
functionals <- function() {
  lapply(1, function(i) {
    vapply(i, function(j) {
      nchar(Reduce(function(x, y) {
        leaf("functionals")
      }, Filter(Negate(is.null), 1:2)))
    }, 1)
  })
}

# Lazy evaluation.
lazy <- function(x, y = x) {
  suppressWarnings(withVisible(force(y)))
}
lazy_compiled <- compiler::cmpfun(function(x) {
  lazy(x)
})

# Conditions.
fail <- function(message) {
  stop(message)
}
handled <- function() {
  tryCatch(
    withCallingHandlers(fail("as intended"), error = function(condition) leaf("handler")),
    error = function(condition) leaf("exiting handler"),
    finally = 1
  )
}
finalized <- function() {
  reg.finalizer(new.env(), function(object) {
    leaf("finalizer")
  })
  gc(full = FALSE)
}

# Code that is evaluated.
evaluated <- function() {
  eval(quote(do.call("within_local", list())), new.env())
}
within_local <- function() {
  local({
    with(list(y = 2), evalq(leaf("eval"), environment()))
  })
}

# As with_labels() of this package does it.
with_labels <- function(expr) {
  .profile_labelled <- function(expr) {
    `.profile_labels:route=%2Fapi;`(expr)
  }
  `.profile_labels:route=%2Fapi;` <- function(expr) expr
  .profile_labelled(expr)
}

without_source <- compiler::cmpfun(eval(parse(
  text = "function() {\n  tell('no source', has_source = FALSE)\n  .Internal(readLines(gate, 1L, TRUE, FALSE, 'unknown', FALSE))\n}",
  keep.source = FALSE
)))

thing <- structure(1, class = "thing")
stops <- list(
  function() interpreted$outer("interpreted"),
  function() byte_code$outer("byte code"),
  function() mixed$outer("mixed"),
  function() deeper_compiled(60),
  function() in_loops(),
  function() in_builtin(),
  function() of_things(thing),
  function() compiled_call_back(function() leaf("files")),
  function() functionals(),
  function() try(stats::optimize(function(x) stop(leaf("optimize")), 0:1), TRUE),
  function() describe(structure(1, class = "special")),
  function() steps[["go"]](),
  function() lazy_compiled(leaf("promise")),
  function() handled(),
  function() {
    on.exit(leaf("exit"))
    1
  },
  function() evaluated(),
  function() finalized(),
  function() with_labels(leaf("labels")),
  function() without_source()
)

for (run in stops) run()
