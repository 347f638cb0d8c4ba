#' profile: read, check, convert, combine and write profiler data
#'
#' A profile is a set of samples: now and then the profiler looked, and noted
#' which functions were running. This package reads what R's own [Rprof()] and
#' `pprof` recorded ([read_rprof()], [read_pprof()]), holds it as plain tables
#' ([profile_data]), tells where the time went ([summary.profile_data()]), puts
#' several into one ([combine_profiles()]) or into a database ([copy_profile_to()]), and
#' writes both formats ([write_rprof()], [write_pprof()]).
#'
#' @keywords internal
#' @useDynLib profile, .registration = TRUE, .fixes = "C_"
#' @importFrom tibble as_tibble
#' @importFrom rlang %||%
"_PACKAGE"
