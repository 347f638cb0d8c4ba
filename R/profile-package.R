#' profile: record, read, show, compare and write profiler data
#'
#' A profiler samples a running program: at regular intervals it records the stack of functions that are
#' being executed. Functions that occur in many samples take most of the time.
#'
#' Eight functions do most of the work: [record_profile()] or [read_profile()] return a profile, [profile_page()] and
#' [summary()][summary.profile_data()] show it, [compare_profiles()] compares it with another one, [filter_profile()]
#' selects a part, [write_profile()] writes a file, and [profile_process()] profiles a process that is already running.
#' A profile is a list of plain tables, see [profile_data].
#'
#' [cheatsheet] lists calls by task. From a shell, `profile record script.R` records a script, see
#' `vignette("processes", package = "profile")`.
#'
#' All functions, by family:
#'
#' ## Record
#' [record_profile()], [last_profile()]; the check of a package: [profile_check()]; R and native code under the names of
#' jointprof: [start_profiler()], [stop_profiler()]
#'
#' ## Read and write
#' Any format: [read_profile()], [write_profile()]. One format: [read_rprof()], [write_rprof()]; [read_pprof()],
#' [write_pprof()]; [read_otlp()], [write_otlp()]; [read_speedscope()], [write_speedscope()]; [read_cpuprofile()],
#' [write_cpuprofile()]; [read_firefox()], [write_firefox()]; [read_collapsed()], [write_collapsed()];
#' [read_perf_script()]; [read_rprofmem()]; [write_callgrind()]. Check: [validate_profile()], [profile_problems()]
#'
#' ## Look
#' In the browser: [profile_page()]. As text, tables and pictures: [describe_profile()],
#' [summary()][summary.profile_data()], [plot()][plot.profile_data()], [call_tree()], [callers()], [callees()],
#' [holders()], [annotate_lines()], [print()][print.profile_data]. In other viewers: [as_profvis()], [find_pprof()], [joint_pprof()]
#'
#' ## Compare
#' [compare_profiles()], [benchmark_profile()], [benchmark_package()], [expect_no_regression()],
#' [expect_memory()], [expect_no_copies()]
#'
#' ## Edit and combine
#' [filter_profile()], [combine_profiles()], [compact_profile()]. Add information: [add_packages()],
#' [add_source_text()]. Other containers: [as_tibble()][as_tibble.profile_data], [dm_from_profile()],
#' [profile_v1_from_v2()], [profile_v2_from_v1()]
#'
#' ## Processes
#' [profile_process()], [snapshot_memory()], [watch_process()], [dump_stack()], [list_r_processes()]
#'
#' ## Agent and labels
#' [start_agent()], [agent_status()], [stop_agent()]; [with_labels()], [label_handler()], [label_plumber()],
#' [label_work()];
#' [with_span_ids()], [tracer_provider()][tracer_provider]
#'
#' ## Databases and senders
#' [store_profiles()], [tbl_profile()], [roll_up_profiles()],
#' [prune_profiles()]; [send_otlp()],
#' [forward_profiles()]
#'
#' @seealso [cheatsheet]; `vignette("profile", package = "profile")` is an introduction. `R CMD INSTALL .` from a checkout
#'   does not build vignettes; their sources are in `vignettes/`.
#' @keywords internal
#' @useDynLib profile, .registration = TRUE
#' @importFrom tibble as_tibble
#' @importFrom rlang %||%
"_PACKAGE"
