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
#' `vignette("cheatsheet", package = "profile")` shows these calls on one page. `R CMD INSTALL .` from a checkout does not
#' build vignettes; then see `vignettes/cheatsheet.Rmd` there.
#'
#' - *Why is my code slow?* [record_profile()], then [profile_page()] or [describe_profile()]
#' - *How do I profile a script?* `profile record script.R` in a shell, see `vignette("processes", package = "profile")`
#' - *Which line takes the time?* [annotate_lines()]; [add_source_text()] if the files have moved
#' - *Who calls this function? What does it call?* [callers()], [callees()], [call_tree()]
#' - *What allocates memory?* `summary(x, type = "alloc_size")`; for exact amounts `record_profile(memory = "exact")`,
#'   [read_rprofmem()] and [benchmark_profile()]
#' - *Who holds the memory? What has grown?* [snapshot_memory()] takes a snapshot, of this session or of a running process;
#'   [holders()], and [compare_profiles()] for two snapshots
#' - *Which C, C++, Fortran or Rust function is slow?* [record_profile()] with `native = TRUE`
#' - *Did it get slower? Is the new version faster?* [benchmark_profile()], [compare_profiles()];
#'   [expect_no_regression()] in tests
#' - *What is this process doing? Why does it hang?* [list_r_processes()], [dump_stack()], [watch_process()],
#'   [profile_process()]
#' - *What does my service spend its time on? Which route is slow?* [start_agent()], [with_labels()],
#'   [label_plumber()], `summary(x, by = "route")`
#' - *Which chunk, which test, which target is slow?* `profile record report.Rmd`, `profile record testthat.R`;
#'   [label_work()]
#' - *How do I open a file of another profiler?* [read_profile()]; [profile_problems()] if it is damaged
#' - *How do I share a profile, or open it in another viewer?* [write_profile()]: a page, pprof, speedscope, Positron,
#'   Firefox; [as_profvis()], [joint_pprof()]
#' - *How do I see only a part?* [filter_profile()]
#' - *How do I put profiles into a report?* [plot()][plot.profile_data()], [profile_page()] in R Markdown and Quarto
#' - *How do I calculate with a profile?* [summary()][summary.profile_data()], [as_tibble()][as_tibble.profile_data],
#'   [dm_from_profile()]
#' - *How do I keep hundreds of profiles?* [store_profiles()], [tbl_profile()], [roll_up_profiles()]
#' - *How do I keep the profiles of a fleet?* [store_profiles()]
#' - *How do I send profiles to a collector?* [send_otlp()], [start_agent()], [forward_profiles()]
#'
#' All functions, by family:
#'
#' ## Record
#' [record_profile()], [last_profile()]; R and native code under the names of jointprof: [start_profiler()],
#' [stop_profiler()]
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
#' [compare_profiles()], [benchmark_profile()], [expect_no_regression()]
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
#' @seealso `vignette("profile", package = "profile")` is an introduction, `vignette("cheatsheet", package = "profile")`
#'   an overview on one page.
#' @keywords internal
#' @useDynLib profile, .registration = TRUE
#' @importFrom tibble as_tibble
#' @importFrom rlang %||%
"_PACKAGE"
