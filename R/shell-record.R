# `profile record`: runs a script, or renders a document, in a new R process, and records it there with R's profiler.
#
# The script is run by Rscript itself, so its arguments, output, input and exit status are as without this package, and
# signals that this process gets reach it. A hook, the user profile of the new process (inst/record/script.R), starts
# the profiler before the script. When the process has ended, for any reason, this process reads what was recorded.

shell_record <- function(options, values) {
  interval <- shell_interval(options)
  clock <- shell_clock(options)
  native <- isTRUE(options$native)
  if (!is.null(options$memory) && options$memory != "exact") {
    abort_usage(paste0("`--memory` is \"exact\", or not given, and not `", options$memory, "`."))
  }
  peak <- shell_peak(options)
  if (!is.null(options$pid)) {
    if (peak) {
      abort_usage("`--snapshot` is for a script. For a running process, use `profile top --snapshot peak PID`.")
    }
    if (length(values) > 0) {
      abort_usage("`--pid` records a running process, so it cannot be used with a script.")
    }
    if (!is.null(options$memory)) {
      abort_usage("`--memory` records a script from its start, so it cannot be used with `--pid`.")
    }
    output <- record_target(options, paste0("process-", options$pid))
    the$is_shell <- TRUE
    x <- profile_process(
      shell_pids(options$pid), shell_number(options, "seconds", 10), interval = interval, clock = clock, native = native,
      children = isTRUE(options$children)
    )
    shell_finish(x, output, options)
    return(0L)
  }
  if (length(values) == 0) {
    abort_usage("Expected a script, or `--pid`. See `profile record --help`.")
  }
  script <- values[[1]]
  if (!file.exists(script)) {
    abort_usage(paste0("There is no file `", script, "`."))
  }
  is_document <- grepl(document_pattern, script)
  if (is_document) check_document(script, values[-1], options$output, rlang::current_env())
  output <- record_target(options, sub(paste0("[.][rR]$|", document_pattern), "", basename(script)))
  # The snapshot is written beside it.
  if (peak) output_of_peak <- record_target(list(output = file_of_peak(output)), "")
  folder <- tempfile("record-")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  # Without the arguments, which may contain secrets.
  title <- basename(script)
  if (is_document) script <- script_of_document(script, folder)
  event <- rprof_event(if (clock == "wall") "elapsed" else "cpu", "`--clock wall`", rlang::current_env())
  started <- Sys.time()
  settings <- list(
    interval = interval, clock = clock, event = event, native = native, children = isTRUE(options$children),
    document = is_document, exact = !is.null(options$memory), peak = peak,
    positions = is_live_platform() && !native && most_deparsed_lines(rlang::current_env()) > 0,
    megabytes = 512L, titled = rlang::set_names(as.list(data_model()$titled[c("package", "function")]), c("package", "name"))
  )
  ran <- run_recorded(script, values[-1], folder, settings)
  status <- as.integer(ran$status)
  ended <- Sys.time()
  # Whatever happens now, the exit status is the script's, and what was recorded is kept.
  tryCatch(
    {
      for (note in hook_lines(folder, "notes")) shell_message("profile: ", note)
      # Other signals are sent by users, or R reports them.
      killed <- ran$endings[ran$endings$signal %in% 9 | ran$endings$for_memory, ]
      for (words in format_endings(killed, "The script")) shell_message("profile: ", words)
      recorded <- recorded_script(script, folder, started, ended, title, status > 128, settings)
      if (is.null(recorded$profile)) {
        shell_message("profile: The script ended before anything was recorded.")
      } else {
        x <- with_end_of_script(recorded$profile, ran)
        # Lines were recorded, so there is no code of the script without.
        shell_finish(x, output, options, hint_without_lines(x))
        if (!settings$children) {
          elapsed <- as.numeric(difftime(ended, started, units = "secs"))
          say_children(ran$cpu, elapsed, "The script", "`profile record --children`")
        }
      }
      if (peak) shell_finish_peak(recorded$peak, output_of_peak, options)
    },
    error = function(error) {
      shell_message("profile: ", conditionMessage(error))
      kept <- tempfile("profile-record-", dirname(tempdir()))
      if (file.rename(folder, kept)) {
        shell_message("profile: What R has recorded is kept in the folder ", kept)
      }
    }
  )
  status
}

# R Markdown.
document_pattern <- "[.](rmd|Rmd|Rmarkdown)$"

check_document <- function(document, arguments, output, call) {
  if (length(arguments) > 0) {
    abort_usage(paste0("A document takes no arguments, but there is `", arguments[[1]], "`."))
  }
  rendered <- sub(document_pattern, ".html", document)
  if (!is.null(output) && normalizePath(output, mustWork = FALSE) == normalizePath(rendered, mustWork = FALSE)) {
    abort_usage(paste0("`", output, "` is the document itself as a page. Choose another name with `-o`."))
  }
  check_package("rmarkdown", "Rendering a document needs", call)
}

# A script that renders the document. The hook labels its chunks.
script_of_document <- function(document, folder) {
  script <- file.path(folder, "render.R")
  # As an absolute path, and in ASCII whatever the encoding of the script.
  path <- deparse(normalizePath(document), control = NULL)
  writeLines(paste0("rmarkdown::render(", path, ", quiet = TRUE)"), script)
  script
}

# Where the recording is to be written, checked before the work to record begins.
record_target <- function(options, name, ending = "-profile.html") {
  output <- options$output %||% own_page(paste0(name, ending))
  call <- rlang::current_env()
  writer_of(output, call)
  rust(rust_check_target(file_path(output, "profile_error_write", call)), call)
  output
}

# Runs the script and returns its exit `status`, and `cpu`, the CPU time of its process and of others that worked for it.
run_recorded <- function(script, args, folder, settings) {
  user_profile <- environment_values("R_PROFILE_USER", NA)
  library <- own_library()
  settings <- c(
    settings, folder = folder, library = library, script = script, user_profile = user_profile, collector = Sys.getpid()
  )
  hook <- file.path(folder, "hook.R")
  write_hook(hook, settings)
  restore <- set_variables(c(R_PROFILE_USER = hook))
  on.exit(restore())
  call <- rlang::current_env()
  rust(rust_run_program(c(file.path(R.home("bin"), "Rscript"), script, args), NULL), call)
}

# Writes code that R evaluates at the start of a process in place of the user's profile.
write_hook <- function(file, settings) {
  scripts <- system.file("record", c("user-profile.R", "places.R", "lines.R", "script.R"), package = "profile", mustWork = TRUE)
  # R evaluates the hook where only the package base is attached, and nothing of the hook is to be left there.
  code <- c(
    "hook <- new.env(parent = baseenv())", "hook$settings <-", deparse(settings),
    # sys.source() would restore the options that the hook sets.
    paste0("eval(parse(", vapply(scripts, deparse, ""), ", keep.source = FALSE), hook)"), "invisible()"
  )
  writeLines(c("local({", code, "})"), file)
}

# The lines of a file that the recorded process may have written.
hook_lines <- function(folder, name) {
  file <- file.path(folder, name)
  if (file.exists(file)) readLines(file, warn = FALSE) else character()
}

# A list of the `profile` of a script that has ended, NULL if there is none, and `peak`, see `end_peaks()`.
recorded_script <- function(script, folder, started, ended, title, was_killed, settings) {
  call <- rlang::current_env()
  file <- file.path(folder, "Rprof.out")
  saved <- file.path(folder, "profile.rds")
  helper <- in_folder(folder, "children")
  if (was_killed && dir.exists(helper) && !file.exists(saved) && !isTRUE(file.size(file) > 0)) {
    # R had not written any of its own samples yet.
    writeLines(sprintf("sample.interval=%.0f", settings$interval * 1e6), file)
  }
  places <- logged_places(folder)
  if (file.exists(saved)) {
    x <- readRDS(saved)
  } else if (file.exists(file) && file.size(file) > 0) {
    size_without_copies <- remove_copies(file, hook_lines(folder, "copies"))
    places$offset <- size_without_copies(places$offset)
    # If the process was killed, the last sample is incomplete.
    x <- withCallingHandlers(
      read_format(file, "rprof", "2.0", NA_character_, call),
      profile_warning_incomplete = function(warning) if (was_killed) rlang::cnd_muffle(warning)
    )
  } else {
    helped <- if (isTRUE(settings$peak) && dir.exists(helper)) result_of_helper(folder, NULL)
    return(list(profile = NULL, peak = peak_of_helper(helped)))
  }
  # Functions are found in packages that are loaded.
  for (package in hook_lines(folder, "packages")) {
    suppressWarnings(suppressMessages(requireNamespace(package, quietly = TRUE)))
  }
  x <- with_logged_places(x, places, file, was_killed, call)
  x <- with_missing_lines(x, c(sampler = hook_lines(folder, "missing")[1]))
  allocations <- read_allocations(folder, call)
  if (!is.null(allocations)) {
    x <- join_allocations(x, with_marked_places(allocations, places, call), call)
  }
  x$sources$source_uri <- NA_character_
  x$sources$source_timestamp <- as.numeric(started)
  x$.comments <- tibble::tibble(source_id = x$sources$source_id, comment = title)
  # The clock was read before.
  x <- filter_by(x, list(ignore = "^[.]end_of_recording$"), call)
  recorded <- count_ticks(x)
  # The start of R, and the hook.
  x <- filter_by(x, list(ignore = hook_functions), call)
  x <- with_cpu_time(x, cpu_of_script(hook_lines(folder, "cpu"), recorded, count_ticks(x)))
  helped <- NULL
  if (dir.exists(helper)) {
    counts <- in_folder(folder, "counts.rds")
    helped <- result_of_helper(folder, if (file.exists(counts)) readRDS(counts))
  }
  if (settings$children && !is.null(helped)) {
    # If the script was killed, it has not said when it began.
    begin <- helped$master$started %||% started
    end <- helped$master$ended %||% ended
    x$sources$source_timestamp <- as.numeric(begin)
    x <- with_children(x, helped, 0L, as.numeric(difftime(end, begin, units = "secs")), settings$clock, call)
  }
  x <- with_packages_in_tables(with_lines_of_files(x, c(script, places$file)), call)
  x <- with_defined_names(with_source_text(x, as.numeric(Sys.time()), call, outside = TRUE))
  list(profile = with_test_labels(x, folders_of_tests(code_of_file(script)), call), peak = peak_of_helper(helped))
}

# Functions of the hook, inst/record/script.R, of R/chunk-places.R, and of the start of R.
hook_functions <- "^[.](First[.]sys|after_expression|mark_place|mark_chunk|label_units)$"

# The CPU time of the samples that are left of all that were recorded, which have the same share of the whole time: the hook
# cannot know when R has started. NULL if the script was killed, so that nothing is known.
cpu_of_script <- function(used, recorded, left) {
  if (length(used) == 1) as.numeric(used) * if (recorded > 0) left / recorded else 1
}

# Removes what child processes have written to the file, see inst/record/script.R. Returns a function that converts sizes
# that the file has had to sizes without that.
remove_copies <- function(file, copies) {
  if (length(copies) == 0) {
    return(identity)
  }
  bytes <- readBin(file, "raw", file.size(file))
  for (range in strsplit(copies, " ")) {
    range <- as.numeric(range)
    if (range[[1]] <= range[[2]]) bytes[seq(range[[1]], range[[2]])] <- as.raw(0)
  }
  # R's profiler writes no NUL.
  is_left <- bytes != 0
  writeBin(bytes[is_left], file)
  left <- c(0, cumsum(is_left))
  function(size) left[pmin(size, length(is_left)) + 1]
}

# Moves lines of single expressions, and of chunks, to their place in these files.
with_lines_of_files <- function(x, files) {
  functions <- x$functions
  pattern <- "^(.*)[?]line=([0-9]+)$"
  file <- sub(pattern, "\\1", functions$filename)
  of_part <- file != functions$filename & file %in% files
  by <- integer(nrow(functions))
  by[of_part] <- as.integer(sub(pattern, "\\2", functions$filename[of_part])) - 1L
  functions$filename[of_part] <- file[of_part]
  moved <- functions$start_line > 0
  functions$start_line[moved] <- functions$start_line[moved] + by[moved]
  x$functions <- with_lines_in_names(functions)
  locations <- x$locations
  shift <- by[match(locations$function_id, functions$function_id)]
  has_line <- which(locations$line > 0 & !is.na(shift))
  locations$line[has_line] <- locations$line[has_line] + shift[has_line]
  x$locations <- locations
  compact_profile(x)
}

# The same in names such as `FUN (report.R?line=10:2)`, which functions of child processes have.
with_lines_in_names <- function(functions) {
  moved <- function(names) {
    pattern <- "^(.*)[?]line=([0-9]+):([0-9]+)[)]$"
    rows <- grep(pattern, names)
    number <- function(group) as.integer(sub(pattern, group, names[rows]))
    names[rows] <- paste0(sub(pattern, "\\1:", names[rows]), number("\\2") + number("\\3") - 1L, ")")
    names
  }
  functions$name <- moved(functions$name)
  functions$system_name <- moved(functions$system_name)
  functions
}

# The functions that write formats which can be read.
with_reader <- function() {
  formats <- data_model()$formats
  formats$writer[!is.na(formats$reader)]
}

# Writes the profile, and prints a summary to the standard error, without the note `omit`. If the file cannot be written any
# more, the profile is kept elsewhere.
shell_finish <- function(x, output, options, omit = NULL) {
  if (!isTRUE(options$quiet)) {
    description <- describe_profile(x, n = 4)
    # Enough for the hottest branches, although the rest is short.
    description$tree_rows <- 8
    real_time <- "Time is real time (`--clock wall`): it passes, too, while the program waits."
    notes <- setdiff(description$parts$notes, omit)
    description$parts$notes <- c(if (identical(options$clock, "wall")) real_time, notes)
    # The steps use `x`, which a shell does not have.
    if (!is.na(match(writer_of(output, rlang::current_env()), with_reader()))) {
      opens <- paste0("x <- read_profile(", encodeString(output, quote = "\""), ")")
      description$parts$next_calls <- c(opens, description$parts$next_calls)
    }
    shell_message(paste(format(description), collapse = "\n"))
  }
  tryCatch(
    {
      write_profile(x, output)
      shell_written(output)
    },
    error = function(error) {
      shell_message("profile: ", conditionMessage(error))
      kept <- tempfile("profile-record-", dirname(tempdir()), ".pb.gz")
      write_profile(x, kept)
      shell_written(kept)
    }
  )
}
