# Removes bindings of many kinds, one after the other, and compares what R's garbage collector frees with what a snapshot
# says that they retain. Prints a line for each: its name, and both numbers of objects.

compiler::enableJIT(0)
library(profile)

vector <- runif(1e5)
list_of_lists <- lapply(1:2000, function(i) list(i + 0.5, paste0("u", i)))
half_of_it <- list_of_lists[1:1000]
closure <- local({
  big <- runif(5e4)
  other <- new.env()
  other$me <- environment()
  function(x) x + big[1]
})
model <- lm(mpg ~ wt + hp, data = mtcars)
environment_of_list <- list2env(list(a = runif(3e4), f = function() 1), parent = globalenv())
formula <- (function() {
  raw <- runif(2e5)
  y ~ x
})()
linked <- local({
  first <- NULL
  for (i in 1:3000) {
    following <- new.env(hash = FALSE, parent = emptyenv())
    following$previous <- first
    if (!is.null(first)) first$following <- following
    first <- following
  }
  first
})
strings <- paste0("key", 1:5000)
times <- as.POSIXlt(Sys.time() + 1:1000)
table <- data.frame(a = 1:1000 + 0, b = paste("row", 1:1000))
sequence <- 1:1e6
deferred <- as.character(1e6:1.01e6)
pairlist <- as.pairlist(list(a = runif(10), b = list(runif(3))))
code <- quote(f(x, g(y, 1.5)))
expressions <- expression(a + b, zzz(bar(2.5)))
compiled <- compiler::cmpfun(function(x) {
  s <- 0
  for (i in seq_len(x)) s <- s + i * 3.25
  s
})
object <- new("numeric")
delayedAssign("promise", stop("never"), environment(), globalenv())
argument <- (function(x) {
  force(x)
  function() x
})(runif(100))
grown <- (function() {
  v <- numeric(0)
  for (i in 1:1000) v[i] <- i + 0
  v
})()
finalized <- new.env()
reg.finalizer(finalized, function(e) 1)
finalized$x <- as.list(1:100 + 0.5)
key <- new.env()
nothing <- NULL

kinds <- c(
  "nothing", "vector", "closure", "model", "environment_of_list", "formula", "linked", "strings", "times", "table", "sequence",
  "deferred", "pairlist", "code", "expressions", "compiled", "object", "promise", "argument", "grown", "finalized",
  "list_of_lists"
)
.Last.value <- NULL

# The numbers of objects by the binding in the global environment that alone retains them.
retained <- function() {
  x <- profile:::new_profile_data(profile:::rust(profile:::rust_own_heap(1, TRUE, FALSE), NULL), "2.0")
  name_of <- x$functions$name[match(x$locations$function_id, x$functions$function_id)]
  frames <- data.frame(
    sample = x$sample_locations$sample_id, depth = x$sample_locations$depth,
    name = name_of[match(x$sample_locations$location_id, x$locations$location_id)]
  )
  deepest <- tapply(frames$depth, frames$sample, max)
  outermost <- frames$depth == deepest[as.character(frames$sample)]
  of_global <- frames$sample[outermost & frames$name == "globalenv"]
  second <- frames[frames$depth == deepest[as.character(frames$sample)] - 1 & frames$sample %in% of_global, ]
  values <- x$sample_values[x$sample_values$unit == "count", ]
  tapply(values$value[match(second$sample, values$sample_id)], sub("( <.*>|\\(\\))?$", "", second$name), sum)
}

used <- function() {
  gc(full = TRUE)
  gc(full = TRUE)[1, 1]
}
invisible(gc())
snapshot <- retained()
snapshot <- retained()
for (kind in kinds) {
  before <- used()
  rm(list = kind)
  assign(kind, NULL, globalenv())
  after <- used()
  expected <- snapshot[paste0("$", kind)]
  cat(kind, if (is.na(expected)) 0 else expected, before - after, "\n")
}
