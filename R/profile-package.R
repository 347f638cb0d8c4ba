#' profile: read, check, convert, combine and write profiler data
#'
#' A profiler samples a running program: at regular intervals it records the stack of functions that are
#' being executed. Functions that occur in many samples take most of the time.
#'
#' This package
#' - reads profiles of R's own [Rprof()], pprof and OpenTelemetry: [read_rprof()], [read_pprof()],
#'   [read_otlp()], or [read_profile()] for any of them;
#' - records R and native code together: [start_profiler()];
#' - continuously profiles services: [start_agent()];
#' - represents profiles as plain tables: [profile_data];
#' - summarises, filters and combines them: [summary.profile_data()], [filter_profile()],
#'   [combine_profiles()];
#' - stores them in databases: [copy_profile_to()];
#' - writes them: [write_rprof()], [write_pprof()], [write_otlp()], and sends them to a collector:
#'   [send_otlp()].
#'
#' `vignette("profile", package = "profile")` is an introduction.
#'
#' @keywords internal
#' @useDynLib profile, .registration = TRUE
#' @importFrom tibble as_tibble
#' @importFrom rlang %||%
"_PACKAGE"
