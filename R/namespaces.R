# What R's environments bind: from these tables the core finds out which function a name stands for, as R does. Names
# that no environment has are never looked up in R, which would keep each as a symbol until it ends.
#
# Everything is numbered from 1: names, tables of bindings, and environments, of which the first is the global one and
# all others are the loaded namespaces. The *home* of a function is the environment to which it belongs; it is 0 if
# finding it would run code. The core describes these tables in `analysis/packages/environments.rs`.

# The tables for these names. `start`: the environment in which the outermost functions were called. NULL if no
# environment has any of these names.
tables_of_environments <- function(names, start = globalenv()) {
  packages <- c("", loadedNamespaces())
  namespaces <- lapply(packages[-1], asNamespace)
  own <- lapply(namespaces, bindings_of, names, packages)
  imports <- lapply(namespaces, function(namespace) {
    # What is behind the namespace of base is no import.
    if (!identical(namespace, .BaseNamespaceEnv)) bindings_of(parent.env(namespace), names, packages)
  })
  methods <- lapply(namespaces, function(namespace) {
    table <- namespace[[".__S3MethodsTable__."]]
    if (is.environment(table)) bindings_of(table, names, packages)
  })
  attached <- lapply(environments_behind(globalenv()), function(env) {
    # Promises in packages load functions; the user's may do anything.
    bindings_of(env, names, packages, has_promises = !startsWith(attr(env, "name") %||% "", "package:"))
  })
  bindings <- c(own, imports, methods, attached)
  if (!any(lengths(lapply(bindings, `[[`, "names")) > 0)) {
    return(NULL)
  }
  count <- length(namespaces)
  first_attached <- 3L * count + 1L
  base <- match("base", packages) - 1L
  code <- code_of_functions(c(attached[1], own), c(own, imports, attached), names)
  list(
    names = enc2utf8(names),
    packages = enc2utf8(packages),
    bindings = lapply(bindings, function(table) {
      list(names = as.integer(table$names), homes = as.integer(table$homes))
    }),
    own = c(first_attached, seq_len(count)),
    imports = c(0L, seq_len(count) + count),
    methods = c(0L, seq_len(count) + 2L * count),
    # The last environment that is attached is base.
    search = c(base, seq(first_attached, length.out = length(attached)), base),
    start = home_number(topenv(start, NULL), packages),
    code = code,
    generics = s4_generics(own, packages)
  )
}

# The environment, and those in which R continues, without base.
environments_behind <- function(env) {
  found <- list()
  while (!identical(env, emptyenv()) && !identical(env, baseenv())) {
    found <- c(found, list(env))
    env <- parent.env(env)
  }
  found
}

# The functions that an environment binds to these names: list(names, homes, functions). A home is 0 for what cannot be
# read without running code. `has_promises`: whether promises may run other code than what loads functions.
bindings_of <- function(env, names, packages, has_promises = FALSE) {
  at <- match(ls(env, all.names = TRUE, sorted = FALSE), names)
  at <- at[!is.na(at)]
  if (length(at) == 0) {
    return(NULL)
  }
  found <- names[at]
  is_unread <- unname(rlang::env_binding_are_active(env, found))
  if (has_promises) {
    is_unread <- is_unread | unname(rlang::env_binding_are_lazy(env, found))
  }
  functions <- rep(list(NULL), length(at))
  functions[!is_unread] <- functions_named(found[!is_unread], env)
  homes <- vapply(functions, function(f) if (is.null(f)) 0L else home_of(f, packages), 0L)
  keep <- is_unread | lengths(functions) > 0
  list(names = at[keep], homes = homes[keep], functions = functions[keep])
}

# Functions of an environment by names that it has, NULL for other objects.
functions_named <- function(names, env) {
  find <- function(names) unname(mget(names, env, mode = "function", ifnotfound = list(NULL), inherits = FALSE))
  tryCatch(find(names), error = function(e) {
    # A package may contain objects that raise errors when they are used.
    lapply(names, function(name) tryCatch(find(name)[[1]], error = function(e) NULL))
  })
}

# A function that a package imports or exports again belongs to the original package.
home_of <- function(f, packages) {
  if (is.primitive(f)) match("base", packages) else home_number(topenv(environment(f), NULL), packages)
}

home_number <- function(env, packages) {
  if (identical(env, globalenv())) {
    1L
  } else if (isNamespace(env)) {
    match(environmentName(env), packages, nomatch = 0L)
  } else {
    0L
  }
}

# What functions contain, for those where this matters: the functions that they define, their arguments and what may be
# bound to other functions, names that stand for different functions elsewhere, and whether they may call methods for
# classes of S3. `own`: the bindings of the global
# environment and all namespaces, in their order; `all`: with those of all other environments.
code_of_functions <- function(own, all, names) {
  name <- unlist(lapply(all, `[[`, "names"))
  home <- unlist(lapply(all, `[[`, "homes"))
  # A number for each pair.
  is_first <- !duplicated(home * (length(names) + 1) + name)
  contested <- unique(name[is_first][duplicated(name[is_first])])
  # A local function hides another one, and has no other origin if its name is bound nowhere.
  maybe_local <- c(contested, setdiff(seq_along(names), name))
  entries <- do.call(c, lapply(seq_along(own), function(i) {
    table <- own[[i]]
    is_own <- vapply(table$functions, is.function, NA) & table$homes == i
    Map(function(f, name) list(f = f, environment = i, name = name), table$functions[is_own], table$names[is_own])
  }))
  # Those of R's builtin functions are NULL.
  functions <- lapply(entries, `[[`, "f")
  arguments <- numbers_in(lapply(functions, function(f) names(formals(f))), names)
  symbols <- lapply(functions, function(f) all.names(body(f), unique = TRUE))
  mentioned <- numbers_in(symbols, names)
  parts <- Map(function(entry, arguments, mentioned, symbols) {
    wanted <- names[setdiff(intersect(mentioned, maybe_local), arguments)]
    values <- if (length(wanted) > 0 && "function" %in% symbols) assigned_in(body(entry$f), wanted)
    # If another value is assigned as well, it may be any function.
    locals <- setdiff(values$functions, values$others)
    list(
      environment = entry$environment, name = entry$name, locals = match(locals, names),
      arguments = c(arguments, match(intersect(values$functions, values$others), names)),
      mentions = intersect(mentioned, contested),
      dispatches = is.primitive(entry$f) || any(c("UseMethod", ".Internal") %in% symbols)
    )
  }, entries, arguments, mentioned, symbols)
  # If all names are clear, it does not matter who mentions them.
  is_needed <- vapply(parts, function(part) length(part$locals) + length(part$arguments) > 0, NA)
  unname(if (length(contested) > 0) parts else parts[is_needed])
}

# For each vector of texts, the numbers of those that are among `names`.
numbers_in <- function(texts, names) {
  found <- match(unlist(texts), names)
  groups <- factor(rep(seq_along(texts), lengths(texts)), seq_along(texts))
  lapply(unname(split(found, groups)), function(numbers) unique(numbers[!is.na(numbers)]))
}

# The names, among those `wanted`, to which the statements of code assign functions that they define, and other values.
assigned_in <- function(code, wanted) {
  if (!is_call_of(code, c("{", "if", "for", "while", "repeat", "function", "<-", "<<-", "=", "local"))) {
    return(NULL)
  }
  parts <- as.list(code)
  inner <- lapply(parts[vapply(parts, is.call, NA)], assigned_in, wanted)
  found <- list(
    functions = unlist(lapply(inner, `[[`, "functions")), others = unlist(lapply(inner, `[[`, "others"))
  )
  is_assignment <- length(parts) == 3 && is_call_of(code, c("<-", "<<-", "="))
  if (is_assignment && (is.symbol(parts[[2]]) || is.character(parts[[2]]))) {
    kind <- if (is_call_of(parts[[3]], "function")) "functions" else "others"
    found[[kind]] <- c(found[[kind]], intersect(as.character(parts[[2]]), wanted))
  }
  found
}

is_call_of <- function(code, names) is.call(code) && is.symbol(code[[1]]) && as.character(code[[1]]) %in% names

# The S4 generics among these functions of namespaces, with the homes of their methods.
s4_generics <- function(own, packages) {
  found <- lapply(seq_along(own), function(i) {
    table <- own[[i]]
    methods <- lapply(table$functions, function(f) if (isS4(f)) environment(f)[[".MTable"]])
    is_generic <- vapply(methods, is.environment, NA)
    Map(function(methods, name) {
      functions <- Filter(is.function, as.list(methods, all.names = TRUE))
      homes <- unique(vapply(unname(functions), home_of, 0L, packages))
      list(environment = i + 1L, name = name, homes = homes)
    }, methods[is_generic], table$names[is_generic])
  })
  unname(do.call(c, found))
}
