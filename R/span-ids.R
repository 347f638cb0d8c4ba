# The active span, whose ids are stored with samples. `src/span.c` holds the ids where profilers find them.

#' Record the trace and span that samples belong to
#'
#' @description
#' `with_span_ids()` evaluates an expression. Samples that are taken meanwhile have the ids of a trace and a span, so
#' that a tracing system can show the profile of a span. Use it for spans of other systems than the package otel. For
#' spans of otel, set an environment variable, see [tracer_provider].
#'
#' @details
#' The ids are the columns `.trace_id` and `.span_id` of `samples`. `filter_profile(labels = c(trace_id = id))` selects
#' the samples of a trace, and `summary(by = "span_id")` shows the time of each span. [write_otlp()] and [send_otlp()]
#' write them as links, [write_pprof()] as labels `trace_id` and `span_id`. These spans have no names. Spans of otel have,
#' see [tracer_provider].
#'
#' These functions record them:
#' - the agent, with `method = "reader"`, which is the default where it is supported, see [start_agent()];
#' - [profile_process()], of a process that uses this package;
#' - [record_profile()], [start_profiler()] and [joint_pprof()], not on Windows. Without memory figures, names of functions
#'   with line feeds prevent that, with a warning.
#'
#' Spans can be nested: a sample has the ids of the innermost one. The span ends with the expression, even if it fails
#' or is left by `return()`, `break` or a condition. It does not apply to code that runs later, such as a callback of the
#' packages later or promises. Unlike labels, see [with_labels()], the number of different spans is not limited.
#'
#' A call costs about 2 microseconds.
#'
#' @section Other profilers:
#' On Linux, the ids and the name are published as the thread context of OpenTelemetry's proposal OTEP 4947, in the
#' thread-local variable `otel_thread_ctx_v1` of the package's library. The name is left out if another library has
#' published the keys of attributes.
#'
#' @param trace_id,span_id The ids, as 32 and 16 hexadecimal digits that are not all zero.
#' @param expr An expression.
#' @return The value of `expr`, invisibly if that is invisible.
#' @section Errors:
#' `profile_error_argument` for invalid arguments.
#' @seealso [tracer_provider]; `vignette("opentelemetry", package = "profile")`
#' @export
#' @examples
#' x <- record_profile(
#'   with_span_ids("5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174", {
#'     for (i in 1:20) sort(runif(1e5))
#'   })
#' )
#' unique(x$samples$.span_id)
with_span_ids <- function(trace_id, span_id, expr) {
  if (missing(trace_id) || missing(span_id) || missing(expr)) {
    name <- c("trace_id", "span_id", "expr")[[which(c(missing(trace_id), missing(span_id), missing(expr)))[[1]]]]
    abort_missing(name, rlang::current_env(), i = "An example is `with_span_ids(trace_id, span_id, work())`.")
  }
  .profile_token <- push_span(trace_id, span_id, 0L, 0L)
  on.exit(pop_span(.profile_token))
  if (.profile_token <= 0) {
    refuse_ids(trace_id, span_id, rlang::current_env())
  }
  expr
}

# The package may be unloaded while a span is active, or while otel keeps a wrapped provider. Calls of its library would
# then be errors in functions of others, so these functions do nothing.
push_span <- function(trace_id, span_id, flags, name, frame = NULL, end = NULL) {
  if (is.null(the$is_unloaded)) .External(profile_push_span, trace_id, span_id, flags, name, frame, end)
}

# The number of a name, for `push_span()`; with `NULL`, of the name of the active span.
number_of_name <- function(name) {
  if (is.null(the$is_unloaded)) .External(profile_span_name, name) else 0L
}

pop_span <- function(token) {
  if (is.null(the$is_unloaded)) .External(profile_pop_span, token)
}

# Says what is wrong with ids that were not accepted.
refuse_ids <- function(trace_id, span_id, call) {
  check_id(trace_id, 32L, "trace_id", call)
  check_id(span_id, 16L, "span_id", call)
  abort_memory("There is not enough memory for another span.", call)
}

check_id <- function(x, digits, name, call) {
  if (!is_text(x) || !grepl(paste0("^[0-9a-fA-F]{", digits, "}$"), x)) {
    abort_argument(paste0("`", name, "` must be a string of ", digits, " hexadecimal digits."), call)
  }
  if (!grepl("[^0]", x)) {
    abort_argument(paste0("`", name, "` must not consist of zeros, which stand for no ", sub("_id", "", name), "."), call)
  }
}

# ---- R's own profiler -----------------------------------------------------------------

# The size of the profiler's file shows when a span began. R up to 4.2 buffers lines.
log_spans <- function(path) {
  .External(profile_log_spans, enc2native(path), getRversion() < "4.3.0")
}

# The ids and the label of the span of each sample in the file at `path`; NULL if there were none.
logged_spans <- function(path, call) {
  log <- .External(profile_logged_spans)
  if (is.null(log) || all(is.na(log$span_id))) {
    return(NULL)
  }
  starts <- rust(rust_sample_lines(c(path, path)), call)
  # A line that starts at the offset of a change was written after it.
  change <- findInterval(starts, log$offset)
  change[change == 0L] <- NA
  lapply(list(.trace_id = log$trace_id, .span_id = log$span_id, key = log$key, value = log$value), `[`, change)
}

# Adds these ids and labels to the samples of the same file.
with_spans <- function(x, spans, call) {
  if (is.null(spans)) {
    return(x)
  }
  if (length(spans$.span_id) != nrow(x$samples)) {
    warn_profile(c(
      "The ids of spans are not in the profile, since it is unknown which samples belong to them.",
      x = "Names of functions contain line feeds, so the lines of the profiler cannot be told apart.",
      i = "With `memory = TRUE` they can."
    ), "profile_warning_incomplete", call = call)
    return(x)
  }
  x$samples[c(".trace_id", ".span_id")] <- spans[c(".trace_id", ".span_id")]
  label_samples(x, spans$key, spans$value)
}

