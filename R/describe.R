# The description of a profile: one page of text for a terminal, and for programs that read text.

#' Describe a profile
#'
#' @description
#' `describe_profile()` summarises a profile on one page of text, for a terminal, a log, or a program that reads text:
#' what was recorded, the call tree, the functions and lines that take the most time, packages, garbage collection and
#' memory, irregularities, whether there are enough samples, and R code for further analysis.
#'
#' The text is ASCII, apart from names and source code, and has a fixed order. Each row has percentages and an amount.
#' All figures agree with [summary()][summary.profile_data()]; none is estimated.
#'
#' The row `paste  <- make_sales 92%` means that 92% of the total of `paste()` comes from calls in
#' `make_sales()`. Long names end in `~`.
#'
#' Allocated memory is measured by the memory in use at each sample, so the digest says "at least": what was freed
#' before the next sample is missing. `record_profile(memory = "exact")` records each vector, and the digest then shows
#' exact bytes instead. It also shows where vectors were copied or converted to another type: the three lines or functions
#' that have done so most, if it is more than 5% of all allocated bytes. If samples have the label `copy.reason`, the reason
#' of most of the copied bytes follows. Recordings with native code have a frame `<copy>` while R copies an object. If that
#' takes more than 5% of the time, the digest shows the share, and the line with most of it.
#'
#' If several processes worked together, see `record_profile(children = TRUE)`, the digest shows how well the work was
#' spread: the CPU time of each process other than the master, the slowest first, and its share of the time in which
#' they worked (`busy%`). That time begins with the first sample at which one of them computed, and ends one interval
#' after the last one. If the work had been spread evenly, each process would have used the mean of their CPU times. The
#' digest therefore shows the share of time spent waiting for the slowest process: `1 - mean / maximum`.
#'
#' Before that, the digest shows what the workers did, see *Parallel work*.
#'
#' If the memory of whole processes was recorded, as by [profile_process()] and with `children = TRUE`, the line `Memory`
#' shows the highest memory (*resident set size*), and how much several processes took together at one moment: memory that
#' forks share counts once, as for the limit of a container. The latter is measured from time to time, so it is a lower
#' bound.
#'
#' The line `Threads` shows the CPU time of other threads than R's, by the library that started them, see *Other threads* in
#' [record_profile()].
#'
#' If frameworks add more than ten frames to an average sample, the call tree is shown without them, see
#' [`filter_profile(hide_plumbing = TRUE)`][filter_profile()].
#'
#' The time of reactives of Shiny, routes, chunks of a document, and tests, is shown if samples have their labels, see
#' [with_labels()] and [label_work()]. What a process waits for is shown for recordings of real time, see *Waiting* in
#' [dump_stack()]. A note says how long R waited for a processor, if that is at least 5% of the time, and how long its cgroup
#' was throttled meanwhile.
#'
#' If loading packages takes more than 5% of the time, the digest shows the share, and the package that took most.
#'
#' Source code is shown if the profile contains it, or if [add_source_text()] can read it with its default arguments.
#'
#' @param x A profile, see [profile_data], or the path of a file for [read_profile()]. For `format()`, `print()` and
#'   `as.list()`, the description of a profile.
#' @param ... Must be empty. For `print()`, arguments of `format()`.
#' @param n The maximum number of rows of each table, by default 7; `Inf` for all. The call tree has up to twice as
#'   many, but fewer if the text would exceed `8.5 * n` lines, which is about 60 by default. The tables of packages and
#'   memory have half as many.
#' @param min_share Rows with a smaller total, as a share of the whole, are left out. In differences, which have
#'   negative values, the absolute values of self and total are used.
#' @param type The sample type to sum, as in [summary()][summary.profile_data()].
#' @param width The width of the lines, by default the width of the console.
#'
#' @return An object of class `profile_description`. `format()` returns a character vector with a string for
#'   each line, by default about 60; `print()` returns `x`, invisibly. `as.list()` returns a list whose
#'   names will not change:
#'   \describe{
#'   \item{run}{list: `samples`, `sum` (in the unit), `whole` (the sum of absolute values), `type`, `unit`, `at_least`,
#'     whether `sum` is a lower bound, `seconds` (or `NULL`), `used`, the CPU time of R's thread in seconds (`NULL`,
#'     except if it differs from `seconds`, see *CPU time* in [record_profile()]), `interval` in seconds (or `NULL` if
#'     unknown or different), `memory_time`, about how many seconds it took to record vectors (or `NULL`),
#'     `without_stack`, `without_value`, `functions`, `own_share` (the share of self of your own code, outside of
#'     packages), `types` (a tibble), `sources` (a tibble with `source_type`, `source_uri`, `source_timestamp`, and
#'     `program`, the program and the script of a process, `NA` if unknown), and `processes` (if several worked
#'     together, a list: `table`, a tibble with `process`, `role` and `cpu`, in seconds, and `elapsed`, the seconds from
#'     the first start to the last end of a source; `NA` if unknown)}
#'   \item{tree}{tibble: the [call_tree()], as it is shown}
#'   \item{functions}{tibble: `name`, `self`, `total`, `self_share`, `total_share`, `caller` (the function
#'     from which most of `total` was called, `NA` if none), `caller_share` (of the function's total)}
#'   \item{lines}{tibble: `filename`, `line`, `self`, `total`, `self_share`, `total_share`, `text` (`NA` if
#'     unknown); of packages only lines with a `self_share` of at least 1%}
#'   \item{packages}{tibble: `package` as in [call_tree()] (`NA` for unknown, `<GC>` for garbage collections, `<copy>`
#'     for copies), `self`, `self_share`}
#'   \item{labels}{list: for each of the labels `shiny.reactive`, `http.route`, `testthat.file`, `testthat.test`,
#'     `knitr.chunk`, `targets.target`, `task`, `span.name` and, for real time, `waits_for` that samples have, the table of
#'     [`summary(x, by = )`][summary.profile_data()]}
#'   \item{gc}{list: `self`, `self_share` of garbage collections, and `process`, the processes for which they were
#'     recorded, if several worked together; `NULL` if they were not recorded, or if memory is summed}
#'   \item{copying}{list: `self`, `self_share` of the frame `<copy>`, which recordings with native code have while R
#'     copies an object, see [record_profile()]; of the line with most of it, `filename` and `line` (`NA` if unknown),
#'     the `name` of the function, `place_share`, its share of `self`, and `text` (`NA` if unknown). `NULL` if there is
#'     no such frame, or if memory is summed}
#'   \item{loading}{list: `self`, `self_share` of loading and attaching packages, and `packages`, a tibble with `package`
#'     (`NA` if unknown), `self`, `total` and, if known, `self_time` and `total_time`, see *Start-up* in
#'     [summary()][summary.profile_data()]. `NULL` if no package was loaded, or if memory is summed}
#'   \item{allocated}{list: `bytes`, `functions`, a tibble with `name`, `self_alloc`, `total_alloc`, `at_least`,
#'     whether these are lower bounds because memory was measured at each sample, and `exact`, whether each vector was
#'     recorded; for profiles that also contain
#'     allocations of [Rprofmem()], or of which a part has exact bytes, `recorded`, a list with their `bytes` and
#'     `functions`, and `complete`, whether all sources have them; `NULL` if not recorded}
#'   \item{copies}{tibble: the places where vectors were copied, see `record_profile(memory = "exact")`: `name` of the
#'     function, `filename` and `line` of the innermost frame that has a line (`NA` if none has), `bytes`, `copies` (their
#'     number), `reason` (`NA` if unknown), `grows`, whether an object is extended step by step there, so that these are new
#'     vectors, each larger than the one before, `converts`, whether these are new vectors of another type, such as numbers
#'     instead of integers, `share` of all allocated bytes, and `text` of the line (`NA` if unknown)}
#'   \item{calls}{tibble: `name` of functions whose calls were counted, see `count` in [record_profile()], `calls`, their
#'     number, and `time_per_call`, the total time of a call in seconds (`NA` if unknown); `NULL` if none were}
#'   \item{parallel}{list, see *Parallel work*: `classes`, a tibble with `class`, `share` and `seconds`; `processes`, a tibble
#'     with `process` and the seconds of each class, those of slots without a worker in the row of the master; `workers`, the
#'     number of slots; `seconds`, the time of the recording; `ticks`, their number; `busy`, how many workers were busy on
#'     average, and `most`, how many can be; and `nested`, the number of processes that worked for workers. `NULL` if it is unknown}
#'   \item{spread}{list: `processes`, a tibble with `process`, `cpu` in seconds and `busy_share`; `seconds`, the time
#'     in which they worked; `even` and `slowest`, the mean and the maximum of `cpu`; and `waiting_share`. `NULL` if
#'     fewer than two processes worked for another one, or if their CPU time is unknown. Without times of samples,
#'     `seconds` and `busy_share` are `NA`}
#'   \item{peak}{list: `processes`, a tibble with `process` (`NA` if unknown), `peak`, the highest memory in bytes, and
#'     `end`, how the process ended (`NA` if by itself or unknown); `together`, the highest memory of several processes at
#'     one moment, and `count`, their number; `limit`, the limit of their cgroup, and `kills`, the number of its processes
#'     that the kernel has killed to free memory (`NA` if unknown or none). `NULL` if the memory of processes is unknown}
#'   \item{threads}{list: `used`, the tibble `threads` of [summary()][summary.profile_data()], and `processors`, how many are
#'     allowed, see *Other threads* in [record_profile()]; `NULL` if other threads have used less than 1% of the CPU time}
#'   \item{at_peak}{list: what vectors were in use when they had the most bytes, garbage included, see
#'     `record_profile(memory = "exact")`: `process` (`NULL` if there is only one), `bytes`, `seconds` since the recording
#'     began, `collected`, the most bytes right after a garbage collection; `places`, a tibble of where they were allocated,
#'     with the columns of `copies` up to `bytes`, and `text`; and `snapshot`, `NULL` or a list of what held the memory
#'     then: `bytes` of the whole process; `held`, the first rows of [holders()] without R's own objects; and `others`, the
#'     bytes of garbage, of what is not R's heap, and of free cells of R. `NULL` if vectors were not recorded}
#'   \item{notes}{character: irregularities, and whether there are too few samples}
#'   \item{next_calls}{character: R code}
#'   }
#'   The tables of this list are complete; `n` and `min_share` affect the text only.
#'
#' @section Parallel work:
#' If other processes worked for a recorded one, the digest and [profile_page()] begin with what became of the workers' time,
#' such as *2 workers were busy 66% of 12.3 s; 26% waited for others, 8% started.*
#'
#' The time of a recording has as many *slots* as there were workers at once, at most. At each tick, each slot has one
#' class, so the shares add up to 100%:
#'
#' | class | |
#' |---|---|
#' | `work` | a worker computes in a task of yours |
#' | `processor` | in a task, it waits for a processor, since others use all of them |
#' | `task_waits` | in a task, it waits for something else, such as a file |
#' | `transfer` | it sends or receives data, or the master does |
#' | `starting` | R starts, or packages are loaded outside of tasks, or the master starts workers |
#' | `serial` | the master computes, and this worker has nothing to do |
#' | `others` | another worker is in a task |
#' | `master_waits` | the master waits, and no worker is in a task |
#'
#' A worker that works is *busy*. The last three classes, and those in which the master does something, are of slots without a
#' worker, or whose worker has no task. *On average, 1.3 of at most 2 were busy* is no speed-up: workers compete for
#' processors and memory, and have work that a serial program would not have. At most as many can be busy as there are
#' workers, and processors: those that the process may use, by its affinity and the limits of its cgroup.
#'
#' Which calls are tasks is known for parallel and packages on top of it, such as future and foreach, for callr, mirai and
#' crew; other processes that R starts, such as scripts, are in a task as long as they run your code. Processes that work for
#' workers are mentioned, but not counted. There is nothing to see if workers record themselves, see *Parallel code* in
#' [record_profile()]. Forks that end within some 20 milliseconds may be missing.
#'
#' The figures are about the whole recording. They are stored as numbers of ticks in `.source_attributes`, with keys that begin
#' with `profile.parallel.`, and are lost if a process is removed from the profile. `summary(x, by = "process")` has a column
#' for each class, in seconds.
#'
#' @section Errors:
#' The errors of [summary()][summary.profile_data()], and `profile_error_argument` for other invalid arguments.
#' @seealso [call_tree()], [annotate_lines()], [profile_page()]
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#' describe_profile(x)
#' as.list(describe_profile(x))$functions
describe_profile <- function(x, ..., n = NULL, min_share = 0.02, type = NULL) {
  call <- call_without_dots()
  check_shown(n, call)
  check_share(min_share, "min_share", call)
  check_type(type, call)
  x <- as_unchecked_v2(x, call)
  x <- packages_added(x, call)
  found <- rust(rust_describe(x, type), call)
  summary <- new_summary(found$summary)
  x <- with_source_text(x, end_of_recording(x, found$summary$time), call)
  processes <- processes_of(x, call)
  parts <- list(
    run = described_run(x, summary, processes, found$memory_time),
    tree = described_tree(x, found, type, call),
    functions = described_functions(summary$by_function, found$callers),
    lines = described_lines(without_outer_lines(summary$by_line), x$.source_text),
    packages = set_column(found$packages, "self_share", found$packages$self / attr(summary, "whole")),
    labels = described_labels(x, summary, call),
    gc = described_gc(x, summary, processes),
    copying = described_copying(found$copying, summary, x$.source_text),
    loading = described_loading(found$loading, summary),
    allocated = described_memory(summary, found),
    copies = described_copies(found$copies, found$allocated, x$.source_text),
    calls = described_numbers_of_calls(summary, x, call),
    parallel = described_parallel(x),
    spread = described_spread(x, processes, call),
    peak = described_peak(x),
    threads = described_threads(summary),
    at_peak = described_at_peak(x, found, x$.source_text)
  )
  parts$notes <- described_notes(x, summary, parts)
  has_plumbing <- found$has_plumbing && is.null(attr(parts$tree, "hidden"))
  parts$next_calls <- c(
    described_calls(parts, attr(summary, "other_types"), has_plumbing),
    if (!is.null(attr(x, "snapshot", exact = TRUE))) {
      "holders(x)"
    } else if (attr(summary, "exact_memory") && has_memory_in_use(x)) {
      "holders(snapshot_memory())"
    }
  )
  structure(list(parts = parts, n = n, min_share = min_share), class = "profile_description")
}

# If frameworks add more frames than this to an average sample, they are hidden. The page does the same (state.js).
most_plumbing <- 10

described_tree <- function(x, found, type, call) {
  if (found$plumbing_rows <= most_plumbing) {
    return(new_call_tree(found$tree))
  }
  x <- filter_by(x, list(), call, hide_plumbing = TRUE)
  tree <- rust(rust_call_tree(x, type, "function", NULL, "whole", NULL), call)
  structure(new_call_tree(tree), hidden = "plumbing")
}

# ---- Parts -------------------------------------------------------------------------

# `memory_time`: of recording each vector, in nanoseconds, `NA` if unknown.
described_run <- function(x, summary, processes, memory_time) {
  counted <- attr(summary, "counted")
  list(
    samples = counted$samples,
    sum = counted$sum,
    whole = attr(summary, "whole"),
    type = attr(summary, "type"),
    unit = attr(summary, "unit"),
    at_least = isTRUE(attr(summary, "sum_at_least")),
    seconds = attr(summary, "time"),
    used = attr(summary, "used"),
    # Exact allocations are not sampled.
    interval = if (is_time_or_count(summary) || !attr(summary, "exact_memory")) {
      interval_of(x, known = !is.null(attr(summary, "time")))
    },
    memory_time = if (!is.na(memory_time)) memory_time / 1e9,
    without_stack = counted$without_stack,
    without_value = counted$without_value,
    functions = nrow(summary$by_function),
    own_share = share_of_own_code(x, summary),
    types = attr(summary, "types"),
    sources = tibble::tibble(
      source_type = x$sources$source_type, source_uri = x$sources$source_uri,
      source_timestamp = x$sources$source_timestamp, program = programs_of(x)
    ),
    processes = processes
  )
}

# Seconds between two samples, if all sources have the same interval. `known`: only sources with an interval count.
interval_of <- function(x, known = FALSE) {
  period <- sampling_period(x$sources)
  has_period <- !(known & is.na(period))
  period <- unique(period[has_period])
  unit <- unique(x$sources[[".period_unit"]][has_period])
  if (length(period) != 1 || length(unit) != 1 || anyNA(c(period, unit))) {
    return(NULL)
  }
  in_seconds(period, unit)
}

# `callers`: the main caller of each function, and the part of its total that comes from there.
described_functions <- function(by_function, callers) {
  columns <- unclass(by_function)[c("name", "self", "total", "self_share", "total_share")]
  columns$caller <- callers$caller
  # In differences, a total may be 0.
  columns$caller_share <- ifelse(columns$total == 0, NA_real_, callers$total / columns$total)
  tibble::new_tibble(columns, nrow = length(columns$name))
}

# Of packages only lines that take time themselves: much of their code only calls other code, such as `tryCatch()`.
without_outer_lines <- function(by_line) {
  is_outer <- is_deparsed_package(by_line$filename) & abs(by_line[["self_share"]] %||% 1) < 0.01
  by_line[!is_outer, ]
}

described_lines <- function(by_line, texts) {
  lines <- by_line[intersect(c("filename", "line", "self", "total", "self_share", "total_share"), names(by_line))]
  split <- strsplit(texts$text, "\n", fixed = TRUE)
  file <- match(lines$filename, texts$filename)
  lines$text <- vapply(seq_len(nrow(lines)), function(i) {
    if (is.na(file[[i]])) NA_character_ else split[[file[[i]]]][lines$line[[i]]]
  }, "")
  lines
}

# The figures of units of work.
described_labels <- function(x, summary, call) {
  # Only real time passes while a process waits.
  keys <- c(unit_keys, if (identical(attr(summary, "type"), "wall")) "waits_for")
  keys <- intersect(keys, as.character(x$.labels$key))
  rlang::set_names(lapply(keys, function(key) label_figures(x, summary, key, call)), keys)
}

described_gc <- function(x, summary, processes) {
  if (!is_time_or_count(summary)) {
    return(NULL)
  }
  row <- summary$by_function[summary$by_function$name %in% "<GC>", ]
  recorded <- nrow(row) > 0 || any(x$sources[[".gc_profiling"]], na.rm = TRUE)
  if (recorded) {
    list(self = sum(row$self), self_share = sum(row$self_share), process = if (!is.null(processes)) processes_with_gc(x))
  }
}

# The samples during which R copied objects, and the place with most of them.
described_numbers_of_calls <- function(summary, x, call) {
  figures <- with_calls_by_name(summary$by_function, attr(summary, "types"), x, call)
  if (is.null(figures[["calls"]]) || identical(attr(summary, "type"), "calls")) {
    return()
  }
  figures <- figures[!is.na(figures$calls), ]
  tibble::tibble(
    name = figures$name, calls = figures$calls, time_per_call = figures[["time_per_call"]] %||% rep(NA_real_, nrow(figures))
  )[order(-figures$calls), ]
}

described_copying <- function(copying, summary, texts) {
  if (nrow(copying) == 0 || !is_time_or_count(summary)) {
    return(NULL)
  }
  row <- as.list(described_lines(copying, texts))
  list(
    self = row$self, self_share = row$self / attr(summary, "whole"), name = copying$name, filename = row$filename,
    line = row$line, place_share = copying$place / row$self, text = row$text
  )
}

# What was in use at the peak, if each vector was recorded.
described_at_peak <- function(x, found, texts) {
  row <- found$peak_source
  if (is.na(row)) {
    return(NULL)
  }
  number <- function(key) as.numeric(source_attribute(x, key)[[row]])
  places <- set_column(found$peak_places, "text", described_lines(found$peak_places, texts)$text)
  snapshot <- attr(x, "snapshot", exact = TRUE)
  list(
    process = if (nrow(x$sources) > 1) names_of_processes(x)[row], bytes = sum(places$bytes),
    seconds = number("profile.peak.after") / 1e9, collected = number("profile.peak.collected"), places = places,
    snapshot = if (!is.null(snapshot)) described_snapshot(snapshot)
  )
}

# What held the memory, without what no object of R holds, and without what each R process has.
described_snapshot <- function(x) {
  number <- function(key) as.numeric(c(source_attribute(x, key), NA)[[1]])
  held <- holders(x, n = Inf)
  others <- paste0("^(", paste(c(data_model()$not_r, roots_of_nothing, roots_of_r), collapse = "|"), ")( |$)")
  list(
    bytes = attr(held, "sum"), held = tibble::as_tibble(utils::head(held[!grepl(others, held$held_by), ], most_copies)),
    others = c(
      garbage = number("profile.heap.unheld"), "not R's heap" = sum(resident_parts(x)),
      "free cells of R" = number("profile.heap.free")
    )
  )
}
roots_of_nothing <- c("garbage not collected yet", "no holder found", "free cells of R")
roots_of_r <- c("base", "namespace:(methods|compiler|stats|utils|graphics|grDevices)", "C variables of R")

# Whether samples or their time are summed, not memory.
is_time_or_count <- function(summary) {
  type <- attr(summary, "type")
  unit <- attr(summary, "unit")
  of_memory <- c("allocated", "freed", "in use", "peak", "copies", "share")
  !any(vapply(of_memory, function(role) has_role(type, unit, role), NA))
}

# The processes of which garbage collections were recorded, if others worked with them: only R's own profiler records
# them.
processes_with_gc <- function(x) {
  records <- x$sources[[".gc_profiling"]] %in% TRUE
  name <- names_of_processes(x)
  if (any(records) && !all(name %in% name[records])) unique(name[records])
}

# `found`: of the core: `recorded` is a summary of allocations that were recorded one by one as a source of their own.
described_memory <- function(summary, found) {
  functions <- summary$by_function
  if (!"self_alloc" %in% names(functions)) {
    return(NULL)
  }
  allocations <- function(name, self, total) {
    functions <- tibble::tibble(name = name, self_alloc = self, total_alloc = total)
    functions <- functions[order(-abs(self), name, method = "radix"), ]
    list(bytes = sum(functions$self_alloc), functions = functions)
  }
  memory <- allocations(functions$name, functions$self_alloc, functions$total_alloc)
  memory$at_least <- attr(summary, "at_least")
  memory$exact <- attr(summary, "exact_memory")
  if (!is.null(found$recorded)) {
    rows <- found$recorded$by_function
    memory$recorded <- allocations(rows$name, rows$self, rows$total)
    memory$recorded$complete <- found$is_complete
  }
  memory
}

# Whether vectors that this session has allocated are still in use, so that a snapshot shows what holds them.
has_memory_in_use <- function(x) {
  types <- types_with_role(unique(x$sample_values$type), "in use", "bytes")
  is_of_session(x) && is_live_platform() && any(x$sample_values$value[x$sample_values$type %in% types] > 0)
}

# Whether functions of R were recorded.
is_of_r <- function(x) {
  any(x$sources$source_type %in% c("rprof", "process")) || "r" %in% x$locations[[".frame_type"]]
}

# The share of functions that are known to have no package, or have a file and no package, as in a script, or are in the
# workspace of the session that recorded them.
share_of_own_code <- function(x, summary) {
  functions <- as.list(x$functions)
  is_own <- functions$filename != "" & !is_deparsed_package(functions$filename) | functions[[".package_from"]] %in% "process" |
    is_of_session(x) & functions$name %in% ls(globalenv(), all.names = TRUE)
  own <- functions$name[is_own & is.na(functions[[".package"]])]
  by_function <- summary$by_function
  sum(by_function$self_share[by_function$name %in% own])
}

# The least number of compilations, in words; nothing if it may be a single one. Between two samples with calls of the
# compiler, one without them shows that the first call has ended. So samples must be in the order in which they were taken.
in_compilations <- function(x, names) {
  if (!all(x$sources$source_type %in% c("rprof", "process"))) {
    return("")
  }
  of_compiler <- x$functions$function_id[x$functions$name %in% names]
  frames <- x$sample_locations$location_id %in% x$locations$location_id[x$locations$function_id %in% of_compiler]
  is_compiling <- x$samples$sample_id %in% x$sample_locations$sample_id[frames]
  begins <- tapply(is_compiling, x$samples$source_id, function(compiling) sum(diff(c(FALSE, compiling)) == 1))
  if (sum(begins) > 1) paste0(", in at least ", count_of(sum(begins), "compilation")) else ""
}

# The time that R's compiler took, by the functions with which R calls it when a function or a loop runs.
note_of_compiler <- function(summary, x) {
  by_function <- summary$by_function
  names <- c("compiler:::tryCmpfun", "compiler:::tryCompile")
  share <- sum(by_function$total_share[by_function$name %in% names])
  if (is_time_or_count(summary) && isTRUE(share >= 0.05)) {
    paste0(
      "R's compiler took ", trimws(percent(share)), "% of the time", in_compilations(x, names), ". It compiles a function at one of its first calls; ",
      "functions that are created again and again, with different code, are compiled each time."
    )
  }
}

# Notes that are necessary to interpret the figures.
described_notes <- function(x, summary, parts) {
  run <- parts$run
  unknown <- parts$packages$self_share[is.na(parts$packages$package)]
  changed <- x$.source_text$filename[x$.source_text$changed %in% TRUE]
  problems <- NROW(x[[".problems"]])
  notes <- c(
    if (run$samples == 0) "There are no samples with a stack.",
    all_zero(summary),
    if (isTRUE(attr(summary, "since_previous"))) since_previous(shown_label(run$type)),
    if (run$type == "samples" && run$sum > 0 && run$sum == run$whole && run$sum < 100) {
      # Twice the standard deviation of a binomial share of one half.
      paste0(
        "Few samples: with ", format_count(run$sum), ", a share is uncertain by up to ",
        round(100 / sqrt(run$sum)), " percentage points."
      )
    },
    if (run$without_stack > 0) {
      paste0(count_of(run$without_stack, "sample"), " without a stack (no function was recorded): not counted.")
    },
    if (run$without_value > 0) {
      paste0(count_of(run$without_value, "sample"), " without a value of ", shown_label(run$type), ": not counted.")
    },
    if (!is.null(run$memory_time)) {
      whole <- run$used %||% run$seconds
      paste0(
        "Recording memory took about ", format_seconds(run$memory_time),
        if (!is.null(whole)) paste(" of", format_seconds(whole)), "."
      )
    },
    if (shows_bound(parts$allocated) && !isTRUE(attr(summary, "since_previous"))) {
      paste("Allocated memory is a lower bound.", exact_memory)
    },
    if (!is.null(parts$peak)) notes_of_ends(parts$peak),
    if (problems > 0) paste0(count_of(problems, "problem"), " in the file: see profile_problems(x)."),
    note_of_compiler(summary, x),
    if (is_time_or_count(summary)) note_of_delay(x, run$seconds %||% in_seconds(run$whole, run$unit)),
    if (any(source_attribute(x, "profile.waits.refused") %in% "1")) {
      "What some samples wait for is unknown, because the system does not permit to see it: see *Waiting* in `?dump_stack`."
    },
    note_of_missing_lines(x),
    if (functions_without_lines(x) > 0) {
      paste0("Without lines, since they have few samples: ", count_of(functions_without_lines(x), "function"), ".")
    },
    if (any(is_byte_code(x$functions$filename))) {
      "Positions in packages were recorded: `add_source_text(x)` looks up their lines."
    },
    hint_for(x, summary),
    if (is_snapshot(x)) described_resident(x),
    if (is_of_r(x) && isTRUE(abs(unknown) - share_of_own_code(x, summary) >= 0.5)) {
      "The package of most functions is unknown: load the packages that were used, see ?add_packages."
    },
    if (length(changed) > 0) {
      paste0(
        "Changed after the profile was recorded, so lines may differ: ",
        paste(shown_name(file_name(utils::head(changed, 3)), 60, ellipsis = "~"), collapse = ", "),
        if (length(changed) > 3) ", ...", "."
      )
    }
  )
  as.character(notes)
}

# NULL if it is no time.
in_seconds <- function(value, unit) if (unit %in% names(seconds_in)) value * seconds_in[[unit]]

described_resident <- function(x) {
  facts <- resident_facts(x)
  paste0(names(facts), ": ", facts, ".")[seq_along(facts)]
}

# Whether the digest shows a lower bound of the allocated memory.
shows_bound <- function(memory) {
  isTRUE(memory$at_least) && memory$bytes > 0 && !isTRUE(memory$recorded$complete)
}

described_calls <- function(parts, other_types, has_plumbing) {
  hottest <- setdiff(parts$functions$name, "<GC>")
  # A call with a shortened name would not work.
  is_short <- function(name) length(name) > 0 && nchar(valid_text(name[[1]])) <= 500
  file <- files_by_time(parts$lines)
  # Code of the user, or else of a package.
  is_package <- is_deparsed_package(file)
  file <- c(file[!is_package], file[is_package & !startsWith(file, "<base::")])
  c(
    if (is_snapshot(parts$run)) "holders(x)",
    vapply(names(parts$labels), function(key) paste0("summary(x, by = ", in_quotes(key), ")"), "", USE.NAMES = FALSE),
    if (is_shown_loading(parts$loading)) "summary(x, by = \"loaded\")",
    if (length(other_types) > 0) paste0("describe_profile(x, type = ", in_quotes(other_types[[1]]), ")"),
    if (is_short(hottest)) paste0("callers(x, ", in_quotes(hottest[[1]]), ")"),
    if (is_short(file)) paste0("annotate_lines(x, ", in_quotes(file[[1]]), ")"),
    if (has_plumbing) "describe_profile(filter_profile(x, hide_plumbing = TRUE))",
    "profile_page(x)"
  )
}

# A string as R code. R does not accept a string with both octal and Unicode escapes, nor characters that change
# the direction of text.
in_quotes <- function(text) {
  text <- gsub("([\\\\\"])", "\\\\\\1", valid_text(text))
  text <- replace_unprintable(text, function(char) sprintf("\\u%04x", utf8ToInt(char)))
  paste0("\"", text, "\"")
}
