# R code that gets into native code in every way that there is.

# What may stand right above a frame, for native_entries().
native_callers <- list(
  # Each way in.
  "c_inner" = c("leaf()", "leaf_info()"),
  "c_applied" = c("FUN()", "f()", "<Anonymous>()"),
  "c_forked" = "forked()",
  "c_direct" = "c_eval ...",
  "c_finish" = "finish()",
  "e_inner" = "external()",
  "c_void" = "dot_c()",
  "f_inner" = "dot_fortran()",
  "rust_inner" = "rust()",
  "cpp_inner" = "cpp()",
  "cpp_catch" = "cpp_exceptions()",
  "c_outer" = "nested()",
  "c_force" = "forcing()",
  "c_eval" = "evaluating()",
  "c_error" = "failing()",
  "c_try" = "protected_try()",
  "c_unwind" = "protected_unwind()",
  "c_toplevel" = "protected_toplevel()",
  "c_allocate" = "allocating()",
  "c_sort" = "sorting()",
  "c_split_some" = "split_some()",
  "c_split_more" = "split_more()",
  # R functions that native code calls.
  "callback()" = "c_outer",
  "forced()" = "c_force",
  "evaluated()" = "c_eval",
  "tried()" = "c_body",
  # Native functions that others call. R_tryCatchError() is written in R.
  "c_fail" = "c_error",
  "c_body" = c("doTryCatch()", "c_unwind ...", "c_toplevel_body"),
  "c_handler" = c("value[[3L]]()", "value[[3]]()"),
  "c_cleanup" = "c_unwind ...",
  "c_toplevel_body" = "c_toplevel ...",
  "c_compare" = "c_sort ...",
  "thrown" = "cpp_catch",
  "f_spin" = "f_inner",
  "c_spin" = c(
    "c_inner", "c_applied", "c_forked", "c_direct", "c_finish", "e_inner", "c_void", "thrown", "c_outer",
    "c_fail", "c_body", "c_handler", "c_cleanup", "c_toplevel", "c_compare", "c_split_some", "c_split_more"
  ),
  "c_kernel" = "c_spin"
)

# R functions that do nothing but call native code.
native_only <- c(
  "leaf", "leaf_info", "forked", "finish", "external", "dot_c", "dot_fortran", "rust", "cpp",
  "cpp_exceptions", "nested", "forcing", "evaluating", "failing", "protected_unwind",
  "protected_toplevel", "allocating", "sorting", "split_some", "split_more"
)

# Each function here burns a millisecond, or some. `n` is how long native code
# works; the native symbols are found by their names.
native_functions <- quote({
  leaf <- function(n) .Call(c_inner, n)
  leaf_info <- function(n) .Call(c_inner_info, n)
  applied <- function(n) .Call(c_applied, n)
  forked <- function(n) .Call(c_forked, n)
  finish <- function(n) .Call(c_finish, n)
  external <- function(n) .External(e_inner, n)
  dot_c <- function(n) .C(c_void, n, 0)[[2]]
  dot_fortran <- function(n) .Fortran(f_inner, n, 0)[[2]]
  rust <- function(n) .C(rust_inner, n, 0)[[2]]
  cpp <- function(n) .Call(cpp_inner, n)
  cpp_exceptions <- function(n, each = 100000L) .Call(cpp_catch, n, each)
  allocating <- function(n) .Call(c_allocate, n)
  sorting <- function(n) .Call(c_sort, n)
  failing <- function(n) .Call(c_error, n)

  # R, native, R, native, and so on.
  nested <- function(n, depth) {
    callback <- function() if (depth > 1) nested(n, depth - 1) else leaf(n)
    .Call(c_outer, quote(callback), n, environment())
  }
  forcing <- function(x) .Call(c_force, environment())
  forced <- function(n) leaf(n)
  forcing_deep <- function(x, depth) if (depth > 0) forcing_deep(x, depth - 1) else forcing(x)
  evaluating <- function(expr) .Call(c_eval, expr, environment())
  evaluated <- function(n) leaf(n)
  bytecode <- compiler::compile(quote(evaluated(n)))
  direct_bytecode <- compiler::compile(quote(.Call(c_direct, n)))
  tried <- function() leaf(n)
  tried_badly <- function() failing(n)
  protected_try <- function(f) .Call(c_try, f, n, environment())
  protected_unwind <- function(f) .Call(c_unwind, f, n, environment())
  protected_toplevel <- function(f) .Call(c_toplevel, f, n, environment())

  defaulted <- function(n, value = leaf(n)) value
  recursive <- function(depth) if (depth > 0) recursive(depth - 1) else leaf(n)
  recalled <- function(depth) if (depth > 0) Recall(depth - 1) else leaf(n)
  leaving <- function() {
    on.exit(leaf(n))
    leaf_info(n)
  }
  looping <- function() {
    i <- 0
    repeat {
      i <- i + 1
      if (i > 2) break
      leaf(n)
    }
    while (i > 0) {
      i <- i - 1
      if (i == 1) next
      leaf(n)
    }
  }
  spin <- function(x) UseMethod("spin")
  spin.special <- function(x) {
    leaf(n)
    NextMethod()
  }
  spin.default <- function(x) leaf(n)
  makeActiveBinding("active", function() leaf(n), environment())

  split_some <- function(n) .Call(c_split_some, n)
  split_more <- function(n) .Call(c_split_more, n)
  split_r <- function(steps) {
    total <- 0
    for (i in seq_len(steps)) total <- total + i %% 7
    total
  }

  scenarios <- list(
    plain = function() {
      leaf(n)
      leaf_info(n)
      external(n)
      dot_c(n)
    },
    languages = function() {
      if (exists("f_inner")) dot_fortran(n)
      if (exists("rust_inner")) rust(n)
      cpp(n)
      cpp_exceptions(n)
    },
    nested = function() nested(n, 3),
    forced = function() {
      forcing(forced(n))
      forcing_deep(forced(n), 20)
    },
    evaluated = function() {
      evaluating(quote(evaluated(n)))
      evaluating(quote(for (i in 1:2) evaluated(n)))
      evaluating(quote(.Call(c_direct, n)))
    },
    bytecode = function() {
      evaluating(bytecode)
      evaluating(direct_bytecode)
    },
    applied = function() {
      lapply(c(n, n), applied)
      sapply(n, applied)
      vapply(n, applied, numeric(1))
      Map(applied, n)
      Reduce(function(x, y) x + leaf(y), c(n, n), accumulate = TRUE)
      Filter(applied, n)
      do.call(applied, list(n))
      do.call("leaf", list(n))
    },
    dispatched = function() spin(structure(1, class = "special")),
    recursive = function() {
      recursive(30)
      recalled(10)
    },
    promised = function() {
      identity(leaf(n))
      defaulted(n)
      suppressWarnings(suppressMessages(leaf(n)))
    },
    caught = function() {
      tryCatch(failing(n), error = function(e) leaf(n), finally = leaf(n))
      try(failing(n), silent = TRUE)
      withCallingHandlers(leaf(n), warning = function(w) leaf(n))
      withCallingHandlers(
        {
          warning("looked after")
          leaf(n)
        },
        warning = function(w) {
          leaf(n)
          tryInvokeRestart("muffleWarning")
        }
      )
      # An error in an R function that native code called jumps over both.
      tryCatch(nested(n, quote(failing(n))), error = function(e) NULL)
    },
    protected = function() {
      protected_try(quote(tried))
      protected_try(quote(tried_badly))
      protected_unwind(quote(tried))
      protected_toplevel(quote(tried))
    },
    control = function() {
      leaving()
      looping()
    },
    evals = function() {
      eval(quote(leaf(n)))
      evalq(leaf(n), new.env())
      local(leaf(n))
      active
    },
    collected = function() {
      allocating(n)
      sorting(n)
    },
    finalized = function() {
      for (i in 1:3) reg.finalizer(new.env(), function(e) finish(n))
      gc(full = FALSE)
    },
    base = function() {
      sort(as.character(rev(seq_len(2000))))
      sort(runif(5e4))
      gsub("[a-m]+(x|y)?", "-", rep(paste(letters, collapse = ""), 200))
      lm(mpg ~ wt + hp, mtcars)
      crossprod(matrix(runif(40000), 200))
    },
    loaded = function() {
      # A native library comes and goes.
      loadNamespace("splines")
      splines::bs(seq_len(500))
      unloadNamespace("splines")
    }
  )
})

# The functions in an environment. Those that are not compiled stay so where R's
# just-in-time compiler is off, see with_jit().
native_workload <- function(lib, n = 1000000L, compile = FALSE) {
  env <- list2env(lib, parent = globalenv())
  env$n <- as.integer(n)
  eval(native_functions, env)
  if (compile) {
    for (name in ls(env)) {
      # To look at an active binding is to call it.
      if (!bindingIsActive(name, env) && is.function(env[[name]])) {
        env[[name]] <- compiler::cmpfun(env[[name]])
      }
    }
    env$scenarios <- lapply(env$scenarios, compiler::cmpfun)
  }
  env
}

# What native_functions have no time for, in each turn: the unwinder of C++ at work
# nearly all the time.
throw_often <- function(workload) {
  for (i in 1:20) with(workload, cpp_exceptions(50000L, 200L))
}

process_cpu <- function() sum(proc.time()[1:2])

# From R 4.4 on it cannot be told where byte code that C code had R run stands among native
# frames; so this has a test of its own.
all_scenarios <- function(workload) {
  setdiff(names(workload$scenarios), "bytecode")
}

# Goes through scenarios until so much CPU time was used, and gives how much it was. Turns
# of many lengths keep the work out of step with the ticks.
native_work <- function(workload, seconds, scenarios = all_scenarios(workload)) {
  start <- process_cpu()
  n <- workload$n
  on.exit(workload$n <- n)
  repeat {
    workload$n <- as.integer(n * stats::runif(1, 0.6, 1.4))
    for (scenario in workload$scenarios[scenarios]) {
      scenario()
      used <- process_cpu() - start
      if (used >= seconds) {
        return(used)
      }
    }
  }
}

# Three functions share the time, in turns of many lengths: gives the CPU time that each of
# them had.
native_split <- function(workload, seconds) {
  # By their names they are known in a profile.
  for (name in c("split_some", "split_more", "split_r")) assign(name, workload[[name]])
  cpu <- function() .Call(workload$c_cpu)
  start <- cpu()
  split_r(100000)
  # As many steps of R as take the time of one step of native code.
  steps <- split_some(1000000L) / 1e6 / ((cpu() - start) / 1e5)

  used <- c(c_split_some = 0, c_split_more = 0, split_r = 0)
  while (sum(used) < seconds) {
    n <- stats::runif(3, 500000, 3000000)
    used[[1]] <- used[[1]] + split_some(n[[1]])
    used[[2]] <- used[[2]] + split_more(n[[2]])
    start <- cpu()
    split_r(n[[3]] * steps)
    used[[3]] <- used[[3]] + cpu() - start
  }
  used
}

# A profile of the workload, 100 samples for a second of CPU time: newer R takes no more.
# The just-in-time compiler is off: what shall be compiled is.
joint_run <- function(lib, compile, seconds = 3, scenarios = NULL) {
  with_jit(0, {
    workload <- native_workload(lib, compile = compile)
    # What is done the first time only is done.
    native_work(workload, 0.1)
    scenarios <- if (is.null(scenarios)) all_scenarios(workload) else scenarios
    quietly(joint_profile(native_work(workload, seconds, scenarios), interval = 0.01))
  })
}
