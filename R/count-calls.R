# Numbers of calls, `record_profile(count = )`. A sampling profiler knows the time of a function, but not how often it was
# called. While the expression is evaluated, a function that is to be counted begins with the statement
#
#   <counter>[[1L]]
#
# with a counter of src/counter.c, an integer that counts how often it is read. This is done only to functions of the
# user: those of the global environment, of functions around the call, and of packages that are loaded for development.

# Checks what is to be counted, and returns list(start, end, counts): functions that begin to count, that restore what was
# changed, and that return a table of counts. NULL if nothing is counted. `env`: where names of functions are looked up.
counting_of <- function(count, env, call) {
  if (isFALSE(count) || is.null(count)) {
    return()
  }
  if (!isTRUE(count) && (!is.character(count) || length(count) == 0 || anyNA(count) || !all(nzchar(count)))) {
    abort_argument("`count` must be names of functions, or `TRUE` or `FALSE`.", call)
  }
  check_no_hashes(call)
  found <- if (isTRUE(count)) all_counted(env) else lapply(unique(count), counted_function, env, call)
  for (i in seq_along(found)) found[[i]] <- c(found[[i]], counting_function(found[[i]]$f))
  list(
    start = function() for (one in found) replace_everywhere(one$name, one$f, one$counting, one$places),
    end = function() for (one in found) replace_everywhere(one$name, one$counting, one$f, one$places),
    counts = function() {
      srcfile <- vapply(found, function(one) file_of_function(one$f), "")
      tibble::tibble(
        name = vapply(found, `[[`, "", "name"), filename = srcfile,
        calls = vapply(found, function(one) .External(profile_count, one$counter), 0)
      )
    }
  )
}

# What hashes functions to know whether they have changed would see the counters.
check_no_hashes <- function(call) {
  in_cached_chunk <- isTRUE(getOption("knitr.in.progress")) && isNamespaceLoaded("knitr") &&
    isTRUE(as.numeric(knitr::opts_current$get("cache")) > 0)
  in_pipeline <- isNamespaceLoaded("targets") && isTRUE(asNamespace("targets")$tar_active())
  if (in_cached_chunk || in_pipeline) {
    who <- if (in_pipeline) "targets" else "the cache of knitr"
    abort_unsupported(c(
      paste0("Calls cannot be counted here: ", who, " hashes functions, whose code is changed while they are counted."),
      i = "Use `count = FALSE`."
    ), call)
  }
}

# ---- Which functions -------------------------------------------------------------------

# list(name, f, places): a function, and the environments in which it has this name.
counted_function <- function(name, env, call) {
  where <- env_of_function(name, env)
  if (is.null(where)) {
    abort_argument(paste0("`count`: there is no function `", shown_text(name), "()`."), call)
  }
  f <- where[[name]]
  why <- why_uncounted(f)
  if (!is.null(why)) {
    abort_argument(c(paste0("`count`: calls of `", shown_text(name), "()` cannot be counted."), x = why), call)
  }
  list(name = name, f = f, places = places_of_function(name, f, where))
}

# The environment of the function that a call by this name finds.
env_of_function <- function(name, env) {
  while (!identical(env, emptyenv())) {
    if (exists(name, env, inherits = FALSE) && !bindingIsActive(name, env) && exists(name, env, mode = "function", inherits = FALSE)) {
      return(env)
    }
    env <- parent.env(env)
  }
}

# Why calls of a function cannot be counted; NULL if they can.
why_uncounted <- function(f) {
  if (is.primitive(f)) {
    return("It is a primitive function.")
  }
  home <- topenv(environment(f))
  if (!identical(home, globalenv()) && !is_in_development(home)) {
    return(paste0(
      "It belongs to the package ", environmentName(home), ", and only functions of your own are changed: those that you",
      " have defined, or loaded with `pkgload::load_all()`."
    ))
  }
  if (isS4(f)) {
    return("It is a function of S4: count the functions that its methods call.")
  }
  if (inherits(f, "memoised")) {
    return("It is memoised: its code is hashed.")
  }
}

# pkgload marks namespaces so.
is_in_development <- function(env) isNamespace(env) && exists(".__DEVTOOLS__", env, inherits = FALSE)

# All functions of the user that can be counted, of each environment from here on.
all_counted <- function(env) {
  own <- list()
  while (!identical(env, globalenv()) && !identical(env, emptyenv()) && !isNamespace(env)) {
    own <- c(own, env)
    env <- parent.env(env)
  }
  namespaces <- Filter(is_in_development, lapply(loadedNamespaces(), asNamespace))
  found <- list()
  for (where in c(own, globalenv(), namespaces)) {
    names <- ls(where, all.names = TRUE, sorted = FALSE)
    # Promises, such as arguments of functions, are not forced.
    names <- names[!rlang::env_binding_are_active(where, names) & !rlang::env_binding_are_lazy(where, names)]
    names <- Filter(function(name) is.function(where[[name]]) && is.null(why_uncounted(where[[name]])), names)
    # R and pkgload call these themselves.
    names <- if (isNamespace(where)) grep("^[.](on(Load|Attach|Unload|Detach)|First[.]lib|__)", names, value = TRUE, invert = TRUE) else names
    found <- c(found, lapply(names, function(name) {
      list(name = name, f = where[[name]], places = places_of_function(name, where[[name]], where))
    }))
  }
  found
}

# The environments in which a function is found by a name: of a package for development also where it is attached, and where
# methods of S3 are registered.
places_of_function <- function(name, f, where) {
  others <- NULL
  if (isNamespace(where)) {
    attached <- paste0("package:", getNamespaceName(where))
    tables <- lapply(loadedNamespaces(), function(package) asNamespace(package)[[".__S3MethodsTable__."]])
    others <- c(if (attached %in% search()) as.environment(attached), Filter(is.environment, tables))
  }
  c(where, Filter(function(env) identical(get0(name, env, inherits = FALSE), f), others))
}

# ---- Replacing -------------------------------------------------------------------------

# list(counting, counter): a function that does the same and counts its calls, compiled, as R would compile it.
counting_function <- function(f) {
  counter <- .External(profile_counter)
  counting <- f
  body(counting) <- counting_body(body(f), as.call(list(quote(`[[`), counter, 1L)), attr(f, "srcref"))
  attributes(counting) <- attributes(f)
  list(counting = compiler::cmpfun(counting, list(optimize = 2, suppressAll = TRUE)), counter = counter)
}

# The body of a function with another first statement. R compiles code with lines only if its outermost block has them.
counting_body <- function(body, first, srcref) {
  is_block <- is.call(body) && identical(body[[1]], quote(`{`))
  if (!is_block) {
    block <- as.call(list(quote(`{`), first, body))
    if (!is.null(srcref)) attributes(block) <- list(srcref = list(srcref, srcref, srcref), srcfile = attr(srcref, "srcfile"))
    return(block)
  }
  # The value of an empty block.
  if (length(body) == 1) {
    return(as.call(list(quote(`{`), first, NULL)))
  }
  block <- as.call(append(as.list(body), first, 1))
  attributes(block) <- attributes(body)
  lines <- attr(body, "srcref")
  if (is.list(lines) && length(lines) > 0) attr(block, "srcref") <- append(lines, lines[1], 1)
  block
}

# Gives a name another value wherever it has the former one: the expression may have defined the function anew.
replace_everywhere <- function(name, former, value, places) {
  for (env in places) {
    if (!identical_objects(get0(name, env, inherits = FALSE), former)) next
    is_locked <- bindingIsLocked(name, env)
    if (is_locked) rlang::env_binding_unlock(env, name)
    assign(name, value, env)
    if (is_locked) rlang::env_binding_lock(env, name)
  }
}

# Whether two functions are the same object: equal code has different counters.
identical_objects <- function(a, b) rlang::is_reference(a, b)

file_of_function <- function(f) {
  srcfile <- attr(attr(f, "srcref"), "srcfile")
  if (is.environment(srcfile)) as.character(srcfile$filename %||% "") else ""
}

# ---- The result ------------------------------------------------------------------------

# Adds the counts of calls, as values of the type `calls`: a row for each function, whose stack is this function only. `counts`:
# name, filename, calls.
with_calls <- function(x, counts) {
  counts <- counts[counts$calls > 0, ]
  if (NROW(counts) == 0) {
    return(x)
  }
  functions <- x$functions
  known <- mapply(function(name, file) {
    rows <- which(functions$name == name & (!nzchar(file) | basename(functions$filename) == basename(file)))
    functions$function_id[rows[1]]
  }, counts$name, counts$filename)
  new <- is.na(known)
  known[new] <- max(0L, functions$function_id) + seq_len(sum(new))
  x$functions <- vctrs::vec_rbind(functions, tibble::tibble(
    function_id = known[new], name = counts$name[new], system_name = counts$name[new], filename = counts$filename[new],
    start_line = 0L
  ))
  rows <- seq_len(nrow(counts))
  location <- max(0L, x$locations$location_id) + rows
  sample <- max(0L, x$samples$sample_id) + rows
  locations <- tibble::tibble(location_id = location, function_id = as.integer(known), line = 0L)
  if (!is.null(x$locations[[".frame_type"]])) locations$.frame_type <- "r"
  x$locations <- vctrs::vec_rbind(x$locations, locations)
  x$samples <- vctrs::vec_rbind(x$samples, tibble::tibble(sample_id = sample, source_id = x$sources$source_id[[1]]))
  x$sample_locations <- vctrs::vec_rbind(x$sample_locations, tibble::tibble(
    sample_id = sample, depth = 1L, location_id = location
  ))
  x$sample_values <- vctrs::vec_rbind(x$sample_values, tibble::tibble(
    sample_id = sample, type = "calls", unit = "count", value = counts$calls
  ))
  x
}

# Adds the columns `calls` and `time_per_call` to figures by function, if calls were counted. `types`: of the profile.
with_calls_by_name <- function(figures, types, x, call) {
  if (!any(types$type == "calls" & types$unit == "count")) {
    return(figures)
  }
  counted <- rust(rust_summarise(x, "calls", "function"), call)$by_function
  calls <- counted$self[match(figures$name, counted$name)]
  figures$calls <- ifelse(calls > 0, calls, NA)
  figures$time_per_call <- figures[["total_time"]] / figures$calls
  figures
}
