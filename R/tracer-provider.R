# A tracer provider for the package otel, which sets the ids of the active span for profilers. It wraps another
# provider, which still makes the spans: only their methods that activate and deactivate them are replaced.

#' A tracer provider that shows profilers the active span
#'
#' @description
#' With this tracer provider of the package otel, samples have the ids of the active span, see [with_span_ids()], and its
#' name, such as `GET /a`, as the label `span.name`. It passes everything on to the tracer provider that you use otherwise.
#' Set these environment variables before R starts:
#'
#' ```
#' OTEL_R_TRACES_EXPORTER=profile::tracer_provider
#' OTEL_TRACES_EXPORTER=otlp
#' ```
#'
#' The second one is for the actual exporter. It takes all values that `OTEL_R_TRACES_EXPORTER` takes, see the help of
#' `otel::get_default_tracer_provider()`. If it is not set, there are no spans.
#'
#' @details
#' `tracer_provider$new(provider)` wraps `provider`, a tracer provider. By default it is the one that
#' `OTEL_TRACES_EXPORTER` names.
#'
#' Ids are set when a span is activated. The ids of the previous span are restored when it is deactivated, or when the
#' frame ends for which it was activated. Spans can be nested. An activation costs about
#' 2 microseconds more than without this provider.
#'
#' @section Names of spans:
#' `summary(x, by = "span.name")` shows the time of all spans with the same name, and
#' `filter_profile(x, labels = c(span.name = "GET /a"))` selects their samples. The name is the one with which a span is
#' started. Names of more than 100 characters, or 255 bytes in UTF-8, are cut, and end with `...`. A session has at most
#' 1,000 different names of spans that were active: samples of spans with further names have the label `profile.overflow`
#' with the value `span.name` instead. If [with_labels()] sets a label with one of these keys, the sample has that one.
#'
#' @format A list with the function `new`.
#' @seealso [with_span_ids()], which works without the package otel
#' @export
tracer_provider <- list(
  new = function(provider = configured_provider()) {
    with_method(provider, "get_tracer", function(get_tracer) {
      function(...) shown_tracer(get_tracer(...))
    })
  }
)

# The tracer provider that the package otel uses if there is no variable for R alone. The package creates it at its
# first use, which is inside of the creation of this one.
configured_provider <- function() {
  if (!requireNamespace("otel", quietly = TRUE)) {
    abort_unsupported("The package otel is not installed.", NULL)
  }
  if (isTRUE(the$is_wrapping)) {
    abort_argument(c(
      "`OTEL_TRACES_EXPORTER` must name another exporter than `profile::tracer_provider`, such as `otlp`.",
      i = "`OTEL_R_TRACES_EXPORTER` is the variable for `profile::tracer_provider`."
    ), NULL)
  }
  the$is_wrapping <- TRUE
  on.exit(the$is_wrapping <- FALSE)
  exporter <- environment_values("OTEL_R_TRACES_EXPORTER", NA)
  if (!is.na(exporter)) {
    Sys.unsetenv("OTEL_R_TRACES_EXPORTER")
    on.exit(Sys.setenv(OTEL_R_TRACES_EXPORTER = exporter), add = TRUE)
  }
  otel::get_default_tracer_provider()
}

# Replaces a method of an object, which is an environment or a list. `replace` gets the method, and returns the new one.
# A provider may return the same object again, whose methods were replaced before.
with_method <- function(x, name, replace) {
  method <- x[[name]]
  if (is.function(method) && is.null(attr(method, "replaced"))) {
    x[[name]] <- structure(replace(method), replaced = TRUE)
  }
  x
}

shown_tracer <- function(tracer) {
  tracer <- with_method(tracer, "start_span", function(start_span) {
    function(name = NULL, ...) shown_span(start_span(name, ...), name)
  })
  tracer <- with_method(tracer, "get_active_span", function(get_active_span) {
    function(...) {
      # The name of this span is that of the active one.
      number <- number_of_name(NULL)
      shown_span(get_active_span(...), number = number)
    }
  })
  with_method(tracer, "start_local_active_span", function(start_local_active_span) {
    function(name = NULL, ..., scope = parent.frame(), activation_scope = parent.frame()) {
      force(activation_scope)
      span <- shown_span(start_local_active_span(name, ..., scope = scope, activation_scope = activation_scope), name)
      ids <- ids_of_span(span)
      push_span(ids[[1]], ids[[2]], ids[[3]], number_of_name(name), activation_scope, end_of_span())
      span
    }
  })
}

shown_span <- function(span, name, number = number_of_name(name)) {
  # Ids and names are read at the first activation, since most spans of some programs are never active.
  ids <- NULL
  tokens <- list()
  end <- end_of_span()
  span <- with_method(span, "activate", function(activate) {
    function(activation_scope = parent.frame(), end_on_exit = FALSE) {
      force(activation_scope)
      scope <- activate(activation_scope, end_on_exit)
      if (is.null(ids)) {
        ids <<- ids_of_span(span)
      }
      token <- push_span(ids[[1]], ids[[2]], ids[[3]], number, activation_scope, end)
      if (is.null(activation_scope)) {
        tokens[[length(tokens) + 1L]] <<- list(scope, token)
      }
      invisible(scope)
    }
  })
  with_method(span, "deactivate", function(deactivate) {
    function(cscope, ...) {
      result <- deactivate(cscope, ...)
      # The last activation first, if several have equal scopes.
      for (i in rev(seq_along(tokens))) {
        if (identical(tokens[[i]][[1]], cscope)) {
          pop_span(tokens[[i]][[2]])
          tokens[[i]] <<- NULL
          break
        }
      }
      invisible(result)
    }
  })
}

# Without a valid id, no span is active.
ids_of_span <- function(span) {
  context <- span$get_context()
  flags <- if (isTRUE(context$is_sampled())) 1L else 0L
  list(context$get_trace_id(), context$get_span_id(), flags)
}

# A call that ends a span with a frame, in which `NA` is replaced by a token. It contains functions instead of their
# names, since it is evaluated in frames of others.
end_of_span <- function() {
  as.call(list(base::on.exit, as.call(list(pop_span, NA)), TRUE, FALSE))
}
