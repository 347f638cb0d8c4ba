# The workload of the tests of native code: R code that calls native code in every possible way.

# The possible direct callers of frames, for native_entries().
native_callers <- list(
  # Each way to call native code.
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
  "c_collect" = "collecting()",
  "c_copy" = "copying()",
  "c_sort" = "sorting()",
  "c_interrupt" = "interrupting()",
  "c_threads" = "threads()",
  "c_split_some" = "split_some()",
  "c_split_more" = "split_more()",
  # R functions that native code calls.
  "callback()" = "c_outer",
  "forced()" = "c_force",
  "evaluated()" = "c_eval",
  "tried()" = "c_body",
  # Native functions that other native functions call. R_tryCatchError() is written in R.
  "c_fail" = "c_error",
  "c_body" = c("doTryCatch()", "c_unwind ...", "c_toplevel_body"),
  "c_handler" = c("value[[3L]]()", "value[[3]]()"),
  "c_cleanup" = "c_unwind ...",
  "c_toplevel_body" = "c_toplevel ...",
  "c_compare" = "c_sort ...",
  "c_free" = "c_collect ...",
  "thrown" = "cpp_catch",
  "~Passed" = "thrown",
  "spin" = "cpp_inner",
  "f_spin" = "f_inner",
  "turn" = "rust_inner",
  "c_spin" = c(
    "c_inner", "c_applied", "c_forked", "c_direct", "c_finish", "e_inner", "c_void", "thrown", "~Passed", "cpp_catch",
    "c_outer", "c_fail", "c_body", "c_handler", "c_cleanup", "c_toplevel", "c_compare", "c_sort", "c_free", "c_collect",
    "c_interrupt", "c_split_some", "c_split_more"
  ),
  "c_tick" = "f_spin",
  "c_kernel" = "c_spin"
)

# R functions that only call native code.
native_only <- c(
  "leaf", "leaf_info", "forked", "finish", "external", "dot_c", "dot_fortran", "rust", "cpp",
  "cpp_exceptions", "nested", "forcing", "evaluating", "failing", "protected_unwind",
  "protected_toplevel", "collecting", "sorting", "interrupting", "threads", "split_some", "split_more"
)

# `n` is the number of units of work of native code, see native/native.h: by default, the number of ticks that it
# triggers. The native symbols are looked up by their names.
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
  cpp_exceptions <- function(n, work = 1L) .Call(cpp_catch, n, work)
  collecting <- function(n) .Call(c_collect, n)
  interrupting <- function(n) .Call(c_interrupt, n)
  threads <- function(n) .Call(c_threads, n)
  sorting <- function(n) .Call(c_sort, n)
  failing <- function(n) .Call(c_error, n)

  # R and native code in turns.
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
  jumping <- function(n) {
    repeat forcing({
      leaf(n)
      break
    })
    leaf(n)
  }
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
      Reduce(function(x, y) leaf(y), c(n, n), accumulate = TRUE)
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
      # An error in an R function that native code called jumps over both: the text is compared, but cannot be
      # subtracted from.
      tryCatch(nested(n, "some"), error = function(e) NULL)
    },
    jumped = function() jumping(n),
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
      # Compiled code may call the function of an active binding twice.
      get("active")
    },
    collected = function() collecting(n),
    called_back = function() sorting(n),
    threads = function() threads(2L),
    # These two generate no ticks themselves.
    base = function() {
      sort(as.character(rev(seq_len(2000))))
      sort(runif(5e4))
      gsub("[a-m]+(x|y)?", "-", rep(paste(letters, collapse = ""), 200))
      lm(mpg ~ wt + hp, mtcars)
      crossprod(matrix(runif(40000), 200))
    },
    loaded = function() {
      # A native library is loaded and unloaded.
      loadNamespace("splines")
      splines::bs(seq_len(500))
      unloadNamespace("splines")
    },
    finalized = function() {
      for (i in 1:3) reg.finalizer(new.env(), function(e) finish(n))
      gc(full = FALSE)
    }
  )
})

# The functions in an environment. Functions are not compiled later if R's just-in-time compiler is off, see with_jit().
# The scenarios have names in this environment, such as `in_plain()`.
native_workload <- function(lib, n = 1L, compile = FALSE) {
  env <- list2env(lib, parent = globalenv())
  env$n <- as.integer(n)
  eval(native_functions, env)
  for (name in names(env$scenarios)) assign(paste0("in_", name), env$scenarios[[name]], env)
  if (compile) {
    for (name in ls(env)) {
      # Getting the value of an active binding would call it.
      if (!bindingIsActive(name, env) && is.function(env[[name]])) {
        env[[name]] <- compiler::cmpfun(env[[name]])
      }
    }
  }
  env
}

# The stacks of all ticks of each scenario, in order, in the form of own_frames(). Most end in "c_spin c_kernel", which
# is omitted here.
native_ticks <- list(
  plain = c("leaf() c_inner", "leaf_info() c_inner", "external() e_inner", "dot_c() c_void"),
  languages = c(
    "dot_fortran() f_inner f_spin c_tick", "rust() rust_inner turn", "cpp() cpp_inner spin",
    "cpp_exceptions() cpp_catch thrown", "cpp_exceptions() cpp_catch thrown ~Passed", "cpp_exceptions() cpp_catch"
  ),
  nested = c(
    "nested() c_outer",
    "nested() c_outer callback() nested() c_outer",
    "nested() c_outer callback() nested() c_outer callback() nested() c_outer",
    "nested() c_outer callback() nested() c_outer callback() nested() c_outer callback() leaf() c_inner",
    "nested() c_outer callback() nested() c_outer callback() nested() c_outer",
    "nested() c_outer callback() nested() c_outer",
    "nested() c_outer"
  ),
  forced = c("forcing() c_force forced() leaf() c_inner", "forcing_deep()*21 forcing() c_force forced() leaf() c_inner"),
  evaluated = c(rep("evaluating() c_eval evaluated() leaf() c_inner", 3), "evaluating() c_eval c_direct"),
  bytecode = c("evaluating() c_eval evaluated() leaf() c_inner", "evaluating() c_eval c_direct"),
  applied = c(rep("c_applied", 5), rep("leaf() c_inner", 1), rep("c_applied", 2), "leaf() c_inner"),
  dispatched = c("spin() spin.special() leaf() c_inner", "spin() spin.special() spin.default() leaf() c_inner"),
  recursive = c("recursive()*31 leaf() c_inner", "recalled()*11 leaf() c_inner"),
  promised = c("leaf() c_inner", "defaulted() leaf() c_inner", "leaf() c_inner"),
  caught = c(
    "failing() c_error c_fail", "leaf() c_inner", "leaf() c_inner", "failing() c_error c_fail", "leaf() c_inner",
    "leaf() c_inner", "leaf() c_inner", "nested() c_outer", "nested() c_outer callback() nested() c_outer"
  ),
  jumped = c("jumping() forcing() c_force leaf() c_inner", "jumping() leaf() c_inner"),
  protected = c(
    "protected_try() c_try c_body",
    "protected_try() c_try c_body tried() leaf() c_inner",
    "protected_try() c_try c_body",
    "protected_try() c_try c_body tried_badly() failing() c_error c_fail",
    "protected_try() c_try c_handler",
    "protected_unwind() c_unwind c_body",
    "protected_unwind() c_unwind c_body tried() leaf() c_inner",
    "protected_unwind() c_unwind c_cleanup",
    "protected_toplevel() c_toplevel c_toplevel_body c_body",
    "protected_toplevel() c_toplevel c_toplevel_body c_body tried() leaf() c_inner",
    "protected_toplevel() c_toplevel"
  ),
  control = c("leaving() leaf_info() c_inner", "leaving() leaf() c_inner", rep("looping() leaf() c_inner", 4)),
  evals = rep("leaf() c_inner", 4),
  collected = c("collecting() c_collect c_free", "collecting() c_collect"),
  called_back = c("sorting() c_sort c_compare", "sorting() c_sort"),
  finalized = rep("finish() c_finish", 3),
  threads = rep("threads() c_threads", 2)
)

# The same as one vector named by scenario, for the functions and names that exist in this library.
expected_ticks <- function(workload, scenarios = all_scenarios(workload), debug_info = TRUE) {
  stacks <- unlist(lapply(scenarios, function(name) rlang::set_names(native_ticks[[name]], name)))
  ends <- !grepl("(c_tick|turn| spin|c_threads)$", stacks)
  stacks[ends] <- paste(stacks[ends], "c_spin c_kernel")
  for (language in c("f_inner", "rust_inner")) {
    if (is.null(workload[[language]])) stacks <- stacks[!grepl(language, stacks)]
  }
  if (debug_info) stacks else rlang::set_names(sub(" (c_kernel|turn)$", "", stacks), names(stacks))
}

# From R 4.4 on, the position among native frames is unknown for byte code that C code made R run, so this has a
# separate test.
all_scenarios <- function(workload) {
  setdiff(names(native_ticks), "bytecode")
}

# Runs the scenarios once, with the ticks that their native code triggers.
run_scenarios <- function(workload, scenarios = all_scenarios(workload)) {
  for (name in scenarios) eval(call(paste0("in_", name)), workload)
}

# A profile of these runs, without other ticks.
record_ticks <- function(workload, scenarios = all_scenarios(workload)) {
  x <- with_jit(0, record_profile(native = TRUE, interval = 0.9, {
    only_given_ticks()
    run_scenarios(workload, scenarios)
  }))
  # What R's own profiler records is compared with it.
  is_of_r <- !asNamespace("profile")$is_native(x)
  x$functions$name[is_of_r] <- x$functions$system_name[is_of_r]
  x
}

# The stacks that R's own profiler records at the same ticks.
rprof_ticks <- function(workload, scenarios = all_scenarios(workload)) {
  path <- withr::local_tempfile()
  with_jit(0, {
    utils::Rprof(path, interval = 0.9, gc.profiling = TRUE)
    only_given_ticks()
    run_scenarios(workload, scenarios)
    utils::Rprof(NULL)
  })
  rprof_stacks(path)
}

# ---- Work for a timer, in benchmarks and storms ----------------------------------------

process_cpu <- function() sum(proc.time()[1:2])

timer_scenarios <- function(workload) {
  setdiff(names(workload$scenarios), "bytecode")
}

# From now on, native code works about a millisecond in each unit, and triggers no ticks.
work_for_a_timer <- function(workload) {
  invisible(.Call(workload$set_unit, 200000L))
}

# Runs the scenarios until this much CPU time was used, and returns the CPU time. Turns of different lengths prevent
# that the work is in step with the ticks.
native_work <- function(workload, seconds, scenarios = timer_scenarios(workload)) {
  start <- process_cpu()
  # This scenario only works with ticks.
  scenarios <- setdiff(scenarios, "threads")
  on.exit(.Call(workload$set_unit, 200000L))
  repeat {
    .Call(workload$set_unit, as.integer(200000 * stats::runif(1, 0.6, 1.4)))
    for (scenario in workload$scenarios[scenarios]) {
      scenario()
      used <- process_cpu() - start
      if (used >= seconds) {
        return(used)
      }
    }
  }
}
