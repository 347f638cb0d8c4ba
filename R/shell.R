# The shell command, exec/profile: its arguments, and what each command does. Results are printed to the standard
# output, messages and errors to the standard error.

# A command: `usage`, without the name of the program; `about`, what it does; `options`, see below; `run`, a function of
# the options and the other arguments. With `rest`, all arguments after the first one that is not an option belong to
# that one. With `pass`, unknown options and all arguments after `--` are for another command: the option `passed`.
#
# An option: the value's name in the help (none for a switch), the argument's description, and TRUE if it may be given
# several times. `more`: lines at the end of the help.
shell_commands <- function() {
  list(
    record = list(
      usage = c("record [OPTIONS] SCRIPT.R [ARGUMENTS]", "record [OPTIONS] REPORT.Rmd", "record [OPTIONS] --pid PID"),
      about = c(
        "Runs a script as Rscript does, or renders a document, records where it spends its",
        "time, and ends with its exit status. With --pid, records a running R process."
      ),
      options = list(
        output = list("FILE", "where to write: a page (.html), pprof (.pb.gz) or another format"),
        interval = list("SECONDS", "seconds between two samples, 0.01 by default"),
        clock = list("cpu|wall", "what the interval refers to: CPU time or real time"),
        memory = list("KIND", "exact: record each vector that R allocates"),
        native = list(NULL, "record C, C++, Fortran and Rust functions as well"),
        children = list(NULL, "record R processes that it starts, or that work for it, as well"),
        snapshot = list("peak", "also write what held the memory of the script when it was highest"),
        pid = list("PID", "the process to record"),
        seconds = list("SECONDS", "how long to record a process, 10 by default"),
        quiet = list(NULL, "do not print a summary")
      ),
      rest = TRUE, run = shell_record
    ),
    top = list(
      usage = "top [OPTIONS] PID",
      about = "Shows where a running R process spends its time, until Ctrl-C.",
      options = list(
        clock = list("cpu|wall", "what the interval refers to: CPU time or real time"),
        children = list(NULL, "watch R processes that it starts, or that work for it, as well"),
        snapshot = list("peak", "at the end, show what held the memory when it was highest"),
        output = list("FILE", "where to write this snapshot"),
        every = list("SECONDS", "seconds between two updates, 1 by default"),
        seconds = list("SECONDS", "how long to watch")
      ),
      run = shell_top
    ),
    dump = list(
      usage = "dump PID|CORE...", about = "Prints the stacks of running R processes, or in core files.",
      options = list(), run = shell_dump
    ),
    list = list(usage = "list", about = "Lists running R processes.", options = list(), run = shell_list),
    page = list(
      usage = "page [OPTIONS] FILE", about = "Writes a page that shows a profile in any browser.",
      options = list(
        output = list("FILE", "the page, FILE with .html by default"), base = list("FILE", "a profile to compare with")
      ),
      run = shell_page
    ),
    convert = list(
      usage = "convert IN OUT", about = "Converts a profile. The name of OUT determines its format.",
      options = list(), run = shell_convert
    ),
    check = list(
      usage = "check [OPTIONS] [PACKAGE]",
      about = c(
        "Runs R CMD check, records its processes, and shows how long its parts, examples, tests",
        "and vignettes take. Ends with the exit status of the check. PACKAGE is a tarball or a",
        "folder, which is built first. Other options, such as --as-cran, are passed on to the",
        "check, and so are all arguments after --."
      ),
      options = list(
        output = list("FILE", "the page, PACKAGE-check.html by default; the result is written beside it (.rds)"),
        base = list("FILE", "the result of another check (.rds), to compare with"),
        interval = list("SECONDS", "seconds of real time between two samples, 0.01 by default"),
        quiet = list(NULL, "do not print a summary")
      ),
      pass = TRUE, run = shell_check
    ),
    compare = list(
      usage = c("compare [OPTIONS] BASE NEW", "compare --package [OPTIONS] BASE [NEW]"),
      about = c(
        "Compares two versions. BASE and NEW are files, or folders with a file for each run;",
        "with --package, git references of the package in this folder, which are installed",
        "and run in turns. NEW is the working tree if it is not given."
      ),
      options = list(
        output = list("FILE", "a page (.html) or Markdown (.md); repeatable", TRUE),
        `fail-if` = list("LIMIT", "such as \"time > 10%\" or \"alloc > 0\", of the whole run; repeatable", TRUE),
        package = list(NULL, "compare versions of the package in this folder"),
        script = list("FILE", "what to run: an R script that loads the package"),
        tests = list(NULL, "what to run: the tests of BASE"),
        measure = list("KIND", "time or bytes instead of both"),
        time = list("SECONDS", "about how long to record time, 300 by default")
      ),
      more = c(
        "Exit status: 0; 1 for an error; 2 for wrong arguments; 3 if a limit is exceeded;",
        "4 if the runs do not show whether one is."
      ),
      run = shell_compare
    )
  )
}

# Runs the command and returns its exit status: 2 for wrong arguments, 1 for other errors.
shell_command <- function(args) {
  tryCatch(
    withCallingHandlers(
      shell_dispatch(args),
      warning = function(warning) {
        shell_message("Warning: ", conditionMessage(warning))
        rlang::cnd_muffle(warning)
      },
      message = function(message) {
        shell_message(sub("\n$", "", conditionMessage(message)))
        rlang::cnd_muffle(message)
      }
    ),
    shell_usage = function(error) {
      shell_message("profile: ", conditionMessage(error))
      2L
    },
    error = function(error) {
      # The reader of the standard output is gone, as with `| head`: 128 and the number of the signal, as in a shell.
      if (conditionMessage(error) == gettext("ignoring SIGPIPE signal", domain = "R")) {
        return(141L)
      }
      shell_message("profile: ", conditionMessage(error))
      1L
    },
    interrupt = function(interrupt) 130L
  )
}

shell_dispatch <- function(args) {
  commands <- shell_commands()
  name <- if (length(args) > 0) args[[1]] else "--help"
  if (name %in% c("--help", "-h", "help")) {
    cat(shell_help(commands), sep = "\n")
    return(0L)
  }
  if (name == "--version") {
    cat("profile ", format(getNamespaceVersion("profile")), "\n", sep = "")
    return(0L)
  }
  command <- commands[[name]]
  if (is.null(command) || !name %in% names(commands)) {
    abort_usage(c(
      paste0("There is no command `", name, "`."), did_you_mean(name, names(commands), "`"), "See `profile --help`."
    ))
  }
  given <- shell_arguments(args[-1], command, name)
  if (isTRUE(given$options$help)) {
    cat(shell_command_help(command), sep = "\n")
    return(0L)
  }
  status <- command$run(given$options, given$values)
  if (is.integer(status)) status else 0L
}

shell_help <- function(commands) {
  usages <- vapply(commands, function(command) command$usage[[1]], "")
  abouts <- c(
    record = "run a script, and record it", top = "watch a running process", dump = "print the stack of a process",
    list = "list running R processes", page = "write a page for the browser", convert = "convert a profile",
    check = "check a package, and find what takes long", compare = "compare two versions"
  )
  c(
    "usage: profile COMMAND [OPTIONS] ...", "", paste0("  ", format(usages), "  ", abouts[names(commands)]), "",
    "`profile COMMAND --help` describes a command, `profile --version` prints the version.", "",
    "  profile record report.R                  writes report-profile.html",
    "  profile record report.Rmd                the same for a document, with its chunks",
    "  profile record -o report.pb.gz report.R  for pprof, speedscope, Pyroscope",
    "  profile record --pid 1234                a process that is already running"
  )
}

shell_command_help <- function(command) {
  c(
    paste0(c("usage: ", rep("       ", length(command$usage) - 1)), "profile ", command$usage), "", command$about,
    if (length(command$options) > 0) {
      flags <- vapply(names(command$options), function(name) {
        value <- command$options[[name]][[1]]
        paste0(if (name == "output") "-o, ", "--", name, if (!is.null(value)) paste0(" ", value))
      }, "")
      c("", paste0("  ", format(flags), "  ", vapply(command$options, `[[`, "", 2)))
    },
    if (!is.null(command$more)) c("", command$more)
  )
}

abort_usage <- function(message) {
  rlang::abort(paste(message, collapse = " "), class = "shell_usage", call = NULL)
}

# The reader of the standard error may be gone, as with `2>&1 | head`.
shell_message <- function(...) {
  tryCatch(cat(..., "\n", sep = "", file = stderr()), error = function(error) NULL)
}

# ---- Arguments ---------------------------------------------------------------------

# list(options, values): options named as in shell_commands(), and the other arguments.
shell_arguments <- function(args, command, name) {
  options <- list()
  values <- character()
  while (length(args) > 0) {
    arg <- args[[1]]
    args <- args[-1]
    if (arg == "--") {
      if (isTRUE(command$pass)) options$passed <- c(options$passed, args) else values <- c(values, args)
      break
    }
    if (!grepl("^-.", arg)) {
      values <- c(values, arg)
      if (isTRUE(command$rest)) {
        values <- c(values, args)
        break
      }
      next
    }
    option <- sub("=.*", "", sub("^--?", "", arg))
    option <- switch(option, o = "output", h = "help", option)
    if (option == "help") {
      return(list(options = list(help = TRUE), values = values))
    }
    if (isTRUE(command$pass) && !option %in% names(command$options)) {
      options$passed <- c(options$passed, arg)
      next
    }
    if (!option %in% names(command$options)) {
      abort_usage(c(
        paste0("There is no option `", sub("=.*", "", arg), "`."),
        did_you_mean(paste0("--", option), paste0("--", names(command$options)), "`"),
        paste0("See `profile ", name, " --help`.")
      ))
    }
    value_name <- command$options[[option]][[1]]
    is_repeatable <- length(command$options[[option]]) == 3
    before <- if (is_repeatable) options[[option]]
    if (is.null(value_name)) {
      options[[option]] <- TRUE
    } else if (grepl("=", arg, fixed = TRUE)) {
      options[[option]] <- c(before, sub("^[^=]*=", "", arg))
    } else if (length(args) > 0) {
      options[[option]] <- c(before, args[[1]])
      args <- args[-1]
    } else {
      abort_usage(paste0("`", arg, "` needs a value: ", value_name, "."))
    }
  }
  list(options = options, values = values)
}

# The values of a command that needs exactly these.
shell_values <- function(values, ...) {
  names <- c(...)
  if (length(values) != length(names)) {
    expected <- if (length(names) > 0) paste(names, collapse = " ") else "no arguments"
    abort_usage(paste0("Expected ", expected, ", got ", count_of(length(values), "argument"), "."))
  }
  rlang::set_names(as.list(values), names)
}

shell_number <- function(options, name, default) {
  given <- options[[name]]
  number <- if (is.null(given)) default else suppressWarnings(as.numeric(given))
  if (is.na(number) || number <= 0) {
    abort_usage(paste0("`--", name, "` must be a positive number, not `", given, "`."))
  }
  number
}

shell_interval <- function(options) {
  interval <- shell_number(options, "interval", 0.01)
  if (!is_interval(interval)) {
    abort_usage(c(
      paste0("`--interval` must be ", interval_rule, ", not ", options$interval, "."),
      if (interval >= 1 && interval < 1000) paste0("If these are milliseconds, use `--interval ", interval / 1000, "`.")
    ))
  }
  interval
}

shell_clock <- function(options) {
  clock <- options$clock %||% "cpu"
  if (!clock %in% c("cpu", "wall")) {
    abort_usage(paste0("`--clock` must be cpu or wall, not `", clock, "`."))
  }
  clock
}

# Whether `--snapshot peak` is given.
shell_peak <- function(options) {
  if (!is.null(options$snapshot) && options$snapshot != "peak") {
    abort_usage(paste0("`--snapshot` is \"peak\", or not given, and not `", options$snapshot, "`."))
  }
  !is.null(options$snapshot)
}

shell_pids <- function(values) {
  pids <- suppressWarnings(as.integer(values))
  if (length(values) == 0 || anyNA(pids)) {
    abort_usage("Expected the number of a process. `profile list` lists R processes.")
  }
  pids
}

# ---- Commands ----------------------------------------------------------------------

shell_top <- function(options, values) {
  output <- options$output
  if (!is.null(output)) {
    if (!shell_peak(options)) {
      abort_usage("`--output` is for a snapshot: add `--snapshot peak`. `profile record --pid` writes a profile.")
    }
    record_target(options, "")
  }
  x <- watch_process(
    shell_pids(values), shell_number(options, "seconds", Inf), every = shell_number(options, "every", 1),
    clock = shell_clock(options), children = isTRUE(options$children), snapshot = if (shell_peak(options)) "peak"
  )
  if (!is.null(output)) {
    write_profile(x, output)
    shell_written(output)
  }
}

shell_dump <- function(options, values) {
  if (length(values) == 0) {
    abort_usage("Expected the number of a process, or a core file. `profile list` lists R processes.")
  }
  for (i in seq_along(values)) {
    if (i > 1) cat("\n")
    is_number <- grepl("^[0-9]+$", values[[i]])
    print(dump_stack(if (is_number) as.numeric(values[[i]]) else values[[i]]))
  }
}

shell_list <- function(options, values) {
  shell_values(values)
  print(list_r_processes())
}

shell_page <- function(options, values) {
  file <- shell_values(values, "FILE")[[1]]
  # Without the extensions of profiles, such as `.pb.gz`.
  name <- sub("[.](gz|pb|out|json|otlp|pprof|prof)(?=[.]|$).*", "", basename(file), perl = TRUE)
  output <- options$output %||% own_page(paste0(name, ".html"))
  base <- if (!is.null(options$base)) shell_read(options$base)
  write_page(shell_read(file), output, base = base)
  shell_written(output)
}

shell_convert <- function(options, values) {
  files <- shell_values(values, "IN", "OUT")
  write_profile(read_profile(files$IN), files$OUT)
  shell_written(files$OUT)
}

# The profile in a file, or the runs in the files of a folder.
shell_read <- function(path) {
  if (!dir.exists(path)) {
    return(read_profile(path))
  }
  files <- list.files(path, full.names = TRUE)
  files <- files[!dir.exists(files)]
  if (length(files) == 0) {
    abort_usage(paste0("The folder `", path, "` contains no files."))
  }
  combine_profiles(lapply(files, read_profile))
}

# The name of a file that the user has not chosen: only a page of this package is replaced.
own_page <- function(path) {
  if (file.exists(path) && !is_page_file(path)) {
    abort_usage(paste0("The file `", path, "` exists and is not a page of a profile. Choose another name with `-o`."))
  }
  path
}

shell_written <- function(path) {
  shell_message("Written to ", path)
}

is_page_file <- function(file) {
  head <- tryCatch(readLines(file, 8, warn = FALSE), error = function(error) "")
  any(grepl("<meta name=\"generator\" content=\"profile\">", head, fixed = TRUE, useBytes = TRUE))
}
