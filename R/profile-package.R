#' profile: read, check, convert, combine and write profiler data
#'
#' A profile is a set of samples: now and then the profiler looked, and noted
#' which functions were running. This package reads what R's own [Rprof()], `pprof` and
#' OpenTelemetry recorded ([read_rprof()], [read_pprof()], [read_otlp()]), records R and
#' native code together ([start_profiler()]), holds profiles as plain tables
#' ([profile_data]), summarises where the time went ([summary.profile_data()]), combines
#' several into one ([combine_profiles()]) or in a database ([copy_profile_to()]),
#' writes all three formats ([write_rprof()], [write_pprof()], [write_otlp()]), and sends
#' profiles to a collector ([send_otlp()]). `vignette("profile", package = "profile")` is a
#' tour.
#'
#' @keywords internal
#' @useDynLib profile, .registration = TRUE
#' @importFrom tibble as_tibble
#' @importFrom rlang %||%
"_PACKAGE"
