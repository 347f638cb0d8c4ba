# Labels of running code, such as the route of a request. Each set of labels is a frame on R's stack, which every
# profiler records. `src/rust/core/src/analysis/label_frames.rs` describes these frames and converts them to labels of
# samples. The number of sets is limited, since each set is a symbol and R never frees symbols.

#' Label the samples of an expression
#'
#' @description
#' `with_labels()` evaluates an expression. Samples that a profiler takes meanwhile have the given labels, such as the
#' route of a request, the user, or the step of a job. A profile can then be split by these labels.
#'
#' `label_handler()` returns a function that calls another function with labels. `label_plumber()` labels the requests
#' of an API of plumber or plumber2. See [label_work()] for the chunks of documents, and for tests.
#'
#' @details
#' Labels are recorded by [record_profile()], [start_profiler()], [Rprof()] (see [read_rprof()]), and, from another
#' process, by [profile_process()]; [dump_stack()] shows them as well. They are rows of the table `.labels`.
#' [write_pprof()] writes them as labels, [write_otlp()] as attributes. Other formats, tables of version 1.0, and the
#' file that [stop_profiler()] writes have no labels.
#'
#' Labels can be nested. A sample has the labels of all enclosing calls of `with_labels()`; if several have the same
#' key, the innermost one counts. Labels end with the expression, even if it fails or is left by `return()`, `break` or
#' a condition. The expression is evaluated in the environment where `with_labels()` is called.
#'
#' A call costs about 2 microseconds, whether a profiler is running or not, and about 90 microseconds with labels that
#' the session has not used before. A call of a labelled handler costs about 7 microseconds.
#'
#' @section How it works:
#' Profilers of R record the stack, so the labels are encoded in the name of a function on the stack that evaluates the
#' expression. When functions of this package read or record a profile, they remove this function and the call of
#' `with_labels()` from stacks. Other tools, such as [utils::summaryRprof()], show a function with a name like
#' `.profile_labels:route=%2Fapi;`.
#'
#' @section Limits:
#' - A session has at most 1,000 different sets of labels, because R never frees the names of functions: use the pattern
#'   of a route, such as `/users/<id>`, and not the ids of users. Samples of further sets have the label
#'   `profile.overflow` instead, whose value lists the missing keys, separated by commas. Labels with these keys from
#'   outer calls are left out as well, since they would be wrong. If there are also too many different sets of keys,
#'   `profile.overflow` is `*`, and samples have no labels of outer calls.
#' - A set of labels takes at most 450 characters, including a `=` in each label and a `&` between two labels.
#'   Characters other than ASCII letters, digits and `-._~/:` count as three for each byte in UTF-8.
#' - Labels do not apply to code that runs later, such as a callback of the packages later or promises: label it
#'   separately. Forked processes, for example of `parallel::mclapply()`, keep the labels from the time of the fork.
#' - R up to 4.2 does not write more than 10,000 characters of a stack. In deep stacks the outermost calls are missing,
#'   and so are their labels.
#'
#' @section In services:
#' - plumber: `label_plumber()`, as in `pr() |> pr_get("/a", f) |> label_plumber() |> pr_run()`, or, at the end of a
#'   plumber file, `#* @plumber` before `profile::label_plumber`. The keys follow OpenTelemetry: `http.route`, the path
#'   of the endpoint as it was defined, and `http.request.method`. Filters run before the endpoint of a request is
#'   known, so their samples have no labels.
#' - plumber2: `label_plumber()` as well, as in `api() |> api_get("/a", f) |> label_plumber() |> api_run()`. The route
#'   is that of the handler that runs, in the notation of the package routr, such as `/users/:id`. Handlers of headers
#'   and of events have no labels.
#' - Shiny: samples have the label `shiny.reactive`, the name of the innermost reactive, observer or output on the stack,
#'   such as `<reactive:data>`, `<observer:observeEvent(input$go)>` or `output$plot`. This needs no code. If you
#'   label more, label the expressions, as in `observe(with_labels(c(step = "save"), save(data())))`: an expression runs
#'   later than the function that contains it, so labels of that function do not apply to it. Shiny puts no name on the
#'   stack for observers without one, which are all `<observer>`, and for outputs in `testServer()`, `<output>`. Nothing
#'   on the stack of a callback of a promise, such as `then()` in an output or in an `ExtendedTask`, says which output
#'   or task it belongs to: only the first part of an asynchronous output has its label. Label the expression of the
#'   callback, or record spans, see [tracer_provider()]: the span of an output is active in its callbacks as well, and
#'   its name is the label `span.name`.
#' - Functions that take a request, such as the `call` of an application of httpuv:
#'   `label_handler(call, function(req) c(method = req$REQUEST_METHOD))`.
#'
#' @param labels A named vector of text, or a named list of single values. Names are keys; they must be unique, and
#'   not `profile.overflow`. For `label_handler()`, this may be a function that returns labels. It is called with the
#'   arguments of `handler` that have the same names as its own arguments. If it fails, the handler runs without
#'   labels, with a warning the first time.
#' @param expr An expression.
#' @param handler A function written in R.
#' @param pr A router of plumber, or an API of plumber2. Endpoints of routers that are mounted on it are included;
#'   endpoints that are added later are not.
#'
#' @return `with_labels()`: the value of `expr`, invisibly if that is invisible.
#'
#'   `label_handler()`: a function with the same arguments as `handler`.
#'
#'   `label_plumber()`: `pr`, which is modified.
#' @section Errors:
#' `profile_error_argument` for invalid arguments, including labels that are too long. The warnings about
#' the labels of a handler and about a router without endpoints have class `profile_warning_labels`.
#' @seealso [filter_profile()]; [with_span_ids()] for ids of spans, whose number is not limited; `vignette("processes", package = "profile")`
#' @export
#' @examples
#' work <- function(n) for (i in seq_len(n)) sort(runif(1e5))
#' x <- record_profile({
#'   with_labels(c(route = "/small"), work(10))
#'   with_labels(c(route = "/large"), work(30))
#' })
#' table(x$.labels$str)
#'
#' handler <- function(req) paste("Hello", req$user)
#' labelled <- label_handler(handler, function(req) c(route = req$path))
#' labelled(list(path = "/hello", user = "you"))
with_labels <- function(labels, expr) {
  if (missing(labels) || missing(expr)) {
    missing_of_labels(missing(labels), rlang::current_env())
  }
  # The names of these variables become names of frames.
  if (is.symbol(substitute(expr))) {
    # `expr` may be an argument of the caller.
    .profile_forwarded <- caller_with(labels)
    .profile_forwarded(expr)
  } else {
    .profile_labelled <- caller_with(labels)
    .profile_labelled(expr)
  }
}

#' @rdname with_labels
#' @export
label_handler <- function(handler, labels) {
  call <- rlang::current_env()
  if (missing(handler)) {
    abort_missing("handler", call)
  }
  if (missing(labels)) {
    missing_of_labels(TRUE, call)
  }
  if (!rlang::is_closure(handler)) {
    abort_argument(paste0("`handler` must be a function written in R, not ", describe_object(handler), "."), call)
  }
  arguments <- formals(handler)
  shared <- if (rlang::is_closure(labels)) {
    unknown <- setdiff(names(formals(labels)), names(arguments))
    if (length(unknown) > 0) {
      abort_argument(paste0("`labels` has the argument `", unknown[[1]], "`, which `handler` does not have."), call)
    }
    names(formals(labels))
  } else {
    # Errors are reported now, and not when the handler is called.
    caller_with(labels, call)
    fixed <- labels
    labels <- function() fixed
    character()
  }
  named <- substitute(handler)
  name <- if (is.symbol(named) && !as.character(named) %in% names(arguments)) named else quote(.profile_handler)

  wrapper <- function() NULL
  formals(wrapper) <- arguments
  body(wrapper) <- wrapper_body(name, names(arguments), shared)
  # Defaults of arguments may use the variables that the handler sees.
  environment(wrapper) <- list2env(
    rlang::set_names(list(handler, labels, handler_caller()), c(as.character(name), ".profile_labels", ".profile_caller")),
    parent = environment(handler)
  )
  other <- attributes(handler)
  attributes(wrapper)[setdiff(names(other), "srcref")] <- other[setdiff(names(other), "srcref")]
  wrapper
}

#' @rdname with_labels
#' @export
label_plumber <- function(pr) {
  call <- rlang::current_env()
  if (missing(pr)) {
    abort_missing("pr", call)
  }
  if (!inherits(pr, c("Plumber", "Plumber2"))) {
    abort_argument(c(
      paste0("`pr` must be a router of plumber or an API of plumber2, not ", describe_object(pr), "."),
      i = "`plumber::pr()` and `plumber2::api()` create one, `plumber::pr(\"file.R\")` from a file."
    ), call)
  }
  is_second <- inherits(pr, "Plumber2")
  count <- if (is_second) label_routes(pr$request_router) else label_endpoints(pr, "")
  if (count == 0) {
    warn_profile(c(
      "`pr` has no endpoints, so there is nothing to label.",
      i = "Call `label_plumber()` after all endpoints are defined."
    ), "profile_warning_labels", call = call)
  }
  if (!is_second) pr$registerHook("preroute", function(req) req$.profile_path <- req$PATH_INFO)
  pr
}

# The routes of an API of plumber2 offer to replace their handlers. Returns the number of handlers.
label_routes <- function(router) {
  count <- 0
  for (name in router$routes) {
    route <- router$get_route(name)
    # The root is a regular expression, such as `^/v1`.
    root <- gsub("^\\^|/$", "", route$root)
    route$remap_handlers(function(method, path, handler) {
      count <<- count + 1
      route$add_handler(method, path, labelled_route(handler, paste0(root, path)))
    })
  }
  count
}

labelled_route <- function(handler, route) {
  force(handler)
  force(route)
  caller_of <- handler_caller()
  function(request, ...) {
    .profile_labelled <- caller_of(c(http.request.method = toupper(request$method), http.route = route))
    .profile_labelled(handler(request = request, ...))
  }
}

# Returns the number of endpoints.
label_endpoints <- function(pr, mount) {
  endpoints <- unlist(pr$endpoints, use.names = FALSE)
  for (endpoint in endpoints) {
    endpoint$registerHook("aroundexec", endpoint_hook(mount, endpoint$path))
  }
  count <- length(endpoints)
  mounts <- pr$mounts
  for (i in seq_along(mounts)) {
    if (inherits(mounts[[i]], "Plumber")) {
      count <- count + label_endpoints(mounts[[i]], paste0(mount, sub("/$", "", names(mounts)[[i]])))
    }
  }
  count
}

# The labels are computed for each request, because a router can be mounted in several places.
endpoint_hook <- function(mount, path) {
  force(mount)
  force(path)
  caller_of <- handler_caller()
  function(req, ..., .next) {
    route <- paste0(mount_of_request(req, mount), path)
    .profile_labelled <- caller_of(c(http.request.method = req$REQUEST_METHOD, http.route = route))
    .profile_labelled(.next(req = req, ...))
  }
}

# plumber removes the path of the mount from `PATH_INFO`. If a filter has replaced `PATH_INFO`, the mount is the one
# that was known when the router was labelled.
mount_of_request <- function(req, known) {
  whole <- req$.profile_path
  rest <- req$PATH_INFO
  if (is.null(whole) || is.null(rest) || !endsWith(whole, rest)) {
    return(known)
  }
  substr(whole, 1, nchar(whole) - nchar(rest))
}

missing_of_labels <- function(labels, call) {
  name <- if (labels) "labels" else "expr"
  abort_missing(name, call, i = "An example is `with_labels(c(route = \"/users\"), work())`.")
}

# The body of the wrapper, which passes its own arguments to the handler.
wrapper_body <- function(name, arguments, shared) {
  passed <- function(names) {
    values <- lapply(names, as.name)
    names(values) <- ifelse(names == "...", "", names)
    values
  }
  forward <- as.call(c(name, passed(arguments)))
  labels <- as.call(c(quote(.profile_labels), passed(shared)))
  named <- setdiff(arguments, "...")
  if (length(named) == 0) {
    return(bquote({
      .profile_labelled <- .profile_caller(.(labels))
      .profile_labelled(.(forward))
    }))
  }
  is_missing <- lapply(named, function(name) call("missing", as.name(name)))
  bquote({
    .profile_labelled <- .profile_caller(.(labels))
    if (.(Reduce(function(a, b) call("||", a, b), is_missing))) {
      # The handler has to know which arguments are missing.
      .profile_missing <- .(as.call(c(quote(c), rlang::set_names(is_missing, named))))
      do.call(delayedAssign, list(
        ".profile_value", .(supplied_call)(quote(.(forward)), .profile_missing), environment(), environment()
      ))
      .profile_labelled(.profile_value)
    } else {
      .profile_labelled(.(forward))
    }
  })
}

supplied_call <- function(call, missing) {
  call[!names(call) %in% names(missing)[missing]]
}

# Invalid labels must not stop a service: the handler then runs without labels.
handler_caller <- function() {
  has_warned <- FALSE
  function(labels) {
    tryCatch(caller_with(labels), error = function(error) {
      if (!has_warned) {
        has_warned <<- TRUE
        warn_profile(
          c("The labels of a handler cannot be used.", x = shown_text(conditionMessage(error))),
          "profile_warning_labels", call = NULL
        )
      }
      caller_with(character())
    })
  }
}

# Adds a label to each sample whose key and value are not `NA`; `key` may be the same for all. A label of the user with this
# key wins.
label_samples <- function(x, key, value) {
  samples <- x$samples$sample_id
  key <- ifelse(is.na(value), NA, key)
  known <- x$.labels
  is_new <- !is.na(key) & !paste(samples, key) %in% paste(known$sample_id, known$key)
  if (!any(is_new)) {
    return(x)
  }
  new <- tibble::tibble(
    sample_id = samples[is_new], key = key[is_new], str = value[is_new], num = NA_real_, unit = NA_character_
  )
  labels <- vctrs::vec_rbind(known, new)
  x$.labels <- labels[order(labels$sample_id), ]
  x
}
