# tier: thorough
# Snapshots of a hundred processes that allocate, change and free objects, or collect garbage, all the time: each snapshot
# has all objects that are known to be there and no reference that leads to nothing, and each process goes on.

# What processes do forever. `kept` is not changed.
work_forever <- c(
  collects = "repeat gc()",
  collects_young = "repeat gc(full = FALSE)",
  lists = "repeat lapply(1:1000, function(i) list(i + 0.5, paste(i)))",
  strings = "repeat paste0('key', sample.int(1e6, 1000))",
  environments = "repeat { e <- NULL; for (i in 1:1000) { f <- new.env(parent = emptyenv()); f$next_one <- e; e <- f } }",
  closures = "repeat lapply(1:1000, function(i) { force(i); function() i })",
  frees = "repeat { x <- as.list(1:1e5); rm(x); gc() }",
  grows = "repeat { x <- list(); for (i in 1:1000) x[[i]] <- i }",
  large = "repeat lapply(1:50, function(i) numeric(1e4))",
  finalizers = "repeat { for (i in 1:100) reg.finalizer(new.env(), function(e) NULL); gc() }",
  deep = "f <- function(n) if (n > 0) list(n, f(n - 1)); repeat f(500)",
  assigns = "g <- new.env(); repeat for (i in 1:1000) assign(paste0('v', i %% 100), i + 0.5, envir = g)",
  frames = "repeat { d <- data.frame(a = runif(100), b = 1:100); d$c <- d$a + d$b; d[d$a > 0.5, ] }",
  errors = "repeat tryCatch(stop('a'), error = function(e) conditionMessage(e))",
  parses = "repeat eval(parse(text = 'f <- function(x) { y <- x; y + 1 }; f(1)', keep.source = TRUE))",
  compiles = "repeat compiler::cmpfun(eval(quote(function(x) { for (i in 1:10) x <- x + i; x })))"
)

# Starts processes, takes a snapshot of each, and ends them.
expect_sane_snapshots <- function(names) {
  pids <- integer()
  for (name in names) {
    code <- c("kept <- as.list(1:1e5 + 0.5)", "ready()", work_forever[[name]])
    pids[[name]] <- local_r_process(code)
  }
  for (name in names) {
    pid <- pids[[name]]
    expect_sane_snapshot(snapshot_memory(pid), "globalenv > $kept", 100001, info = name)
    before <- kernel_cpu_time(pid)
    expect_true(wait_for(function() kernel_cpu_time(pid) > before), info = name)
  }
  # Those that were read first are still running.
  for (name in names) {
    expect_false(has_ended(pids[[name]]), info = name)
  }
}

test_that("a hundred processes go on, and their snapshots have all objects", {
  skip_without_processes()
  work <- rep_len(names(work_forever), 100)
  # Four at a time.
  for (names in split(work, (seq_along(work) - 1) %/% 4)) {
    expect_sane_snapshots(names)
  }
})
