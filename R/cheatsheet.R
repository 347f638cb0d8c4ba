# The cheat sheet is a help page, because vignettes are not built by `R CMD INSTALL .` from a checkout.

#' Cheat sheet: calls by task
#'
#' `x` is a profile. Each function has a help page; `package?profile` lists all of them.
#'
#' @section Record:
#' \describe{
#' \item{record code in this session:}{`x <- record_profile(f())`, more often: `record_profile(for (i in 1:100) f())`}
#' \item{... with waiting, such as for a network (R 4.4):}{`record_profile(f(), clock = "wall")`}
#' \item{... with all R processes that work for it:}{`record_profile(f(), children = TRUE)`, `vignette("parallel")`}
#' \item{... with C, C++, Fortran and Rust:}{`record_profile(f(), native = TRUE)`, `vignette("native")`}
#' \item{... although it ends with an error:}{`last_profile()`}
#' \item{read a file of `Rprof()`, pprof, perf, Firefox, ...:}{`x <- read_profile("file")`,
#'   `profile_problems(x)` if it is damaged}
#' \item{record a script from the shell:}{`profile record script.R`, `vignette("processes")`}
#' \item{render a document, and find its slow chunks:}{`profile record report.Rmd`, or `label_work("knitr")` before
#'   `x <- record_profile(rmarkdown::render("report.Rmd"))`}
#' \item{find slow tests:}{`profile record testthat.R` in `tests`, or
#'   `x <- record_profile(testthat::test_local())`}
#' \item{see where `R CMD check` spends its time:}{`profile check`, or `profile_check()`}
#' }
#'
#' @section Look:
#' \describe{
#' \item{see where the time goes:}{`profile_page(x)` in the browser, `describe_profile(x)` as text,
#'   `plot(x)` as a picture}
#' \item{see the time of each line of code:}{`annotate_lines(x, "file.R")`}
#' \item{get figures as tables:}{`summary(x)$by_function`, `summary(x)$by_line`, `call_tree(x)`}
#' \item{... by file, package, process, or label:}{`summary(x, by = "file")`, `call_tree(x, by = "package")`}
#' \item{find out who calls a function, and what it calls:}{`callers(x, "f")`, `callees(x, "f")`}
#' \item{see memory instead of time:}{`summary(x, type = "alloc_size")`, or exactly:
#'   `record_profile(f(), memory = "exact")`}
#' \item{see where R copies, and why:}{the same; `summary(x, type = "copy_space")`, `profile record --memory exact`}
#' \item{see who holds the memory:}{`holders(snapshot_memory())`, `vignette("who-holds-the-memory")`}
#' \item{... of workers:}{`holders(snapshot_memory(children = TRUE), by = "process")`}
#' \item{... when memory was highest:}{`holders(record_profile(f(), snapshot = "peak"))`}
#' \item{... of a process that may run out of memory:}{`holders(watch_process(pid, snapshot = "peak"))`,
#'   `profile record --snapshot peak`}
#' \item{... and what has grown:}{`compare_profiles(before, after)` of two snapshots}
#' \item{query all frames with dplyr or SQL:}{`as_tibble(x)`, `dm_from_profile(x)`, `vignette("data-model")`}
#' }
#'
#' @section Select:
#' \describe{
#' \item{keep only the samples with a function:}{`filter_profile(x, focus = "^f$")`}
#' \item{keep only what a function calls:}{`filter_profile(x, show_from = "^f$")`}
#' \item{hide `lapply()`, `tryCatch()`, and what Shiny, plumber, knitr, ... add:}{
#'   `filter_profile(x, hide_plumbing = TRUE)`}
#' \item{keep only my code and what it calls:}{`filter_profile(x, show_mine = TRUE)`}
#' \item{split an app by its reactives and outputs:}{`summary(x, by = "shiny.reactive")`}
#' \item{combine runs:}{`combine_profiles(x, y)`}
#' }
#'
#' @section Compare:
#' \describe{
#' \item{record runs of two versions:}{`runs <- benchmark_profile(base = f(), new = g())`}
#' \item{find out what got slower:}{`compare_profiles(runs)`}
#' \item{... by allocated bytes, which are exact:}{`benchmark_profile(..., measure = "bytes")`}
#' \item{fail a test if code got slower:}{`expect_no_regression(runs)`}
#' \item{see the difference as a picture:}{`profile_page(new, base = base)`}
#' }
#'
#' @section Running processes:
#' \describe{
#' \item{find R processes:}{`list_r_processes()`}
#' \item{see what a process is doing:}{`dump_stack(pid)` once, `watch_process(pid)` continuously}
#' \item{record a process:}{`x <- profile_process(pid, seconds = 10)`}
#' \item{record a service for weeks:}{`start_agent("http://collector:4318")`, `vignette("always-on")`}
#' \item{label samples, for example with a route:}{`with_labels(c(route = "/report"), f())`, `label_plumber(api)`}
#' \item{find out which route is slow:}{`summary(x, by = "route")`, `filter_profile(x, labels = c(route = "/report"))`}
#' }
#'
#' @section Keep and share:
#' \describe{
#' \item{write a page that anybody can open:}{`write_profile(x, "page.html")`}
#' \item{write for pprof, speedscope, Positron, Firefox:}{`write_profile(x, "p.pb.gz")`, `"p.speedscope.json"`,
#'   `"p.cpuprofile"`, `"p.firefox.json.gz"`}
#' \item{use profvis:}{`as_profvis(x)`}
#' \item{keep source code with the profile:}{`add_source_text(x)`}
#' \item{store the profiles of many services in files or a database:}{`store_profiles(x, "folder")`,
#'   `store_profiles(x, con)`, `vignette("fleet")`}
#' \item{load what a store has of a service:}{`read_profile(tbl_profile(con, service == "web"))`}
#' \item{send to an OpenTelemetry collector or Pyroscope:}{`send_otlp(x, resource = c(service.name = "report"))`}
#' }
#'
#' @section If something is missing:
#' \describe{
#' \item{no lines:}{Set `options(keep.source = TRUE)` before the code is parsed, and install packages with
#'   `--with-keep.source`.}
#' \item{few samples:}{Repeat the code, or use a shorter `interval`.}
#' \item{no names of packages:}{Load the packages that the code uses before you call `describe_profile()` or
#'   `add_packages()`.}
#' }
#'
#' @name cheatsheet
NULL
