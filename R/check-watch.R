# Watches the processes of `R CMD check` from outside, for `profile_check()`: when each began and ended, its command
# line, the code that it reads, and which example runs. Nothing is changed in them, so that they do what they do without
# this.
#
# All of it is read from /proc, again and again while the check runs, by a function that `rust_run_program()` calls.

# Starts to watch the programs that this process starts from now on. Returns a list of functions: `look`, to be called
# again and again; `processes`, what was seen, see watched_processes(); `titles`, when each example began; and
# `failure`, the error that has prevented looking, NULL if there was none.
start_watch <- function() {
  others <- children_of(Sys.getpid())
  seen <- list()
  examples <- list()
  alive <- character()
  last <- as.numeric(Sys.time())
  failure <- NULL
  look <- function() {
    now <- as.numeric(Sys.time())
    before <- alive
    alive <<- character()
    visit <- function(pid, parent) {
      about <- read_process(pid, now)
      if (is.null(about)) {
        return()
      }
      key <- paste(pid, about$ticks)
      if (is.null(seen[[key]])) seen[[key]] <<- c(about, list(parent = parent))
      # R is started by shell scripts, which then execute it.
      is_young <- now - seen[[key]]$began < 5
      if (is_young && !isTRUE(seen[[key]]$is_r)) {
        seen[[key]] <<- with_command(seen[[key]], if (!is.na(parent)) seen[[parent]]$command)
      }
      alive <<- c(alive, key)
      for (child in children_of(pid)) visit(child, key)
    }
    for (pid in setdiff(children_of(Sys.getpid()), others)) visit(pid, NA_character_)
    # It ended at a moment since the last look.
    for (key in setdiff(before, alive)) seen[[key]]$ended <<- (last + now) / 2
    last <<- now
    for (key in union(before, alive)) {
      if (is_examples(seen[[key]])) examples[[key]] <<- with_new_titles(examples[[key]], seen[[key]]$output, now)
    }
  }
  list(
    # The check goes on even if this fails. The core calls it with an argument that has no meaning here.
    look = function(about) {
      tryCatch(look(), error = function(error) failure <<- error)
      TRUE
    },
    failure = function() failure,
    # Those that still run end now.
    processes = function() {
      tryCatch(look(), error = function(error) failure <<- error)
      watched_processes(lapply(seen, function(one) if (is.null(one$ended)) c(one, ended = last) else one))
    },
    titles = function() titles_with_times(examples)
  )
}

# ---- Processes -----------------------------------------------------------------------

# A row for each process: `key`, `parent` (its key, NA for a program that this process has started), `pid`, `began` and
# `ended` in seconds since the epoch, whether it `is_r`, `program`, `script` (the file that R or a shell runs, NA if
# there is none), `input` (the file that is its standard input) and `code`, the text of this file if it is temporary.
watched_processes <- function(seen) {
  column <- function(name, none) {
    unlist(lapply(unname(seen), function(one) one[[name]] %||% none))
  }
  tibble::tibble(
    key = as.character(names(seen)), parent = as.character(column("parent", NA)), pid = as.integer(column("pid", NA)),
    began = as.numeric(column("began", NA)), ended = as.numeric(column("ended", NA)),
    is_r = as.logical(column("is_r", FALSE)), program = as.character(column("program", NA)),
    script = as.character(column("script", NA)), input = as.character(column("input", NA)),
    code = as.character(column("code", NA))
  )
}

# The processes that this one has started and that have not ended.
children_of <- function(pid) {
  text <- proc_lines(pid, paste0("task/", pid, "/children"))
  if (length(text) == 0) integer() else as.integer(strsplit(trimws(text[[1]]), " +")[[1]])
}

# `pid`, `ticks` (its start on the system's clock) and `began`; NULL if it has ended.
read_process <- function(pid, now) {
  text <- proc_lines(pid, "stat")
  if (length(text) == 0) {
    return(NULL)
  }
  # The name of the program, in parentheses, may contain anything.
  fields <- strsplit(sub("^.*[)] ", "", text[[length(text)]]), " ", fixed = TRUE)[[1]]
  if (fields[[1]] %in% c("Z", "X")) {
    return(NULL)
  }
  up <- as.numeric(strsplit(readLines("/proc/uptime", 1L), " ", fixed = TRUE)[[1]][[1]])
  list(pid = pid, ticks = fields[[20]], began = now - max(0, up - as.numeric(fields[[20]]) / 100))
}

# Adds what is in the command line of a process, and the code that R reads. A process with the command line of its
# parent is a fork, which may execute a program in a moment.
with_command <- function(about, of_parent) {
  command <- command_line(about$pid)
  if (length(command) == 0 || identical(command, of_parent)) {
    return(about)
  }
  about$command <- command
  about$program <- basename(command[[1]])
  about$is_r <- endsWith(command[[1]], "/exec/R")
  if (about$is_r) {
    about$script <- script_of_r(command)
    about$input <- open_file(about$pid, 0L)
    about$output <- open_file(about$pid, 1L)
    about$code <- code_of_input(about$input)
  } else {
    about$script <- script_of_shell(command)
  }
  about
}

command_line <- function(pid) {
  file <- paste0("/proc/", pid, "/cmdline")
  bytes <- tryCatch(readBin(file, "raw", 65536L), error = function(error) raw(), warning = function(warning) raw())
  ends <- which(bytes == 0)
  starts <- c(1L, ends[-length(ends)] + 1L)
  if (length(ends) == 0) {
    return(character())
  }
  mapply(function(from, to) valid_text(rawToChar(bytes[seq_len(to - from) + from - 1L])), starts, ends)
}

# The file in `-f FILE` or `--file=FILE`; what follows `--args` is for the script.
script_of_r <- function(command) {
  own <- command[seq_len(min(c(which(command == "--args"), length(command) + 1L)) - 1L)]
  after <- own[which(own == "-f") + 1L]
  named <- sub("^--file=", "", grep("^--file=", own, value = TRUE))
  found <- c(after, named)
  found <- found[!is.na(found) & found != "-"]
  if (length(found) > 0) found[[1]] else NA_character_
}

# A script such as `/usr/lib/R/bin/INSTALL`; that of R itself only starts another program.
script_of_shell <- function(command) {
  is_shell <- basename(command[[1]]) %in% c("sh", "bash", "dash")
  is_script <- is_shell && length(command) > 1 && !startsWith(command[[2]], "-")
  if (is_script && !basename(command[[2]]) %in% c("R", "Rcmd")) command[[2]] else NA_character_
}

# The path of an open file, NA if it is a pipe or a terminal.
open_file <- function(pid, descriptor) {
  path <- Sys.readlink(paste0("/proc/", pid, "/fd/", descriptor))
  is_file <- !is.na(path) && startsWith(path, "/") && !startsWith(path, "/dev/")
  if (is_file) sub(" [(]deleted[)]$", "", path) else NA_character_
}

# The code that R reads, from a temporary file, as the check writes them for `system2(input = )`.
code_of_input <- function(file) {
  if (is.na(file) || grepl("[.][rR]$", file)) {
    return(NA_character_)
  }
  size <- file.size(file)
  if (is.na(size) || size == 0 || size > 1e5) {
    return(NA_character_)
  }
  lines <- tryCatch(readLines(file, warn = FALSE), error = function(error) NULL, warning = function(warning) NULL)
  if (is.null(lines)) NA_character_ else paste(lines, collapse = "\n")
}

# The lines of a file in /proc; none if the process has ended.
proc_lines <- function(pid, name) {
  file <- paste0("/proc/", pid, "/", name)
  tryCatch(readLines(file, warn = FALSE), error = function(error) character(), warning = function(warning) character())
}

# ---- Examples ------------------------------------------------------------------------

# Whether a process runs the examples of a package: all of them are one script, whose output has the title of each.
is_examples <- function(about) {
  isTRUE(about$is_r) && grepl("-Ex[.]R$", about$input %||% "") && !is.na(about$output %||% NA)
}

# Reads what a process has written since the last time. `state`: list(offset, left, names, times), the number of bytes
# that were read, those of the last line if it is incomplete, and the titles that were found, with the times.
with_new_titles <- function(state, file, now) {
  state <- state %||% list(offset = 0, left = raw(), names = character(), times = numeric())
  size <- file.size(file)
  if (is.na(size) || size <= state$offset) {
    return(state)
  }
  connection <- base::file(file, "rb")
  on.exit(close(connection))
  seek(connection, state$offset)
  bytes <- readBin(connection, "raw", size - state$offset)
  state$offset <- state$offset + length(bytes)
  bytes <- c(state$left, bytes)
  end <- max(0L, which(bytes == as.raw(10L)))
  state$left <- bytes[seq_along(bytes) > end]
  whole <- bytes[seq_len(end)]
  names <- titles_of_examples(strsplit(rawToChar(whole[whole != 0]), "\n", fixed = TRUE, useBytes = TRUE)[[1]])
  state$names <- c(state$names, names)
  state$times <- c(state$times, rep(now, length(names)))
  state
}

# The titles in the output of R that runs `PKG-Ex.R`. The first one is `</HEADER>`, and the last one `<FOOTER>`.
titles_of_examples <- function(lines) {
  found <- grep("^> ### [*] ", lines, value = TRUE, useBytes = TRUE)
  valid_text(sub("^> ### [*] ", "", found, useBytes = TRUE))
}

# Whether these are titles of examples.
is_example_title <- function(names) !names %in% c("</HEADER>", "<FOOTER>")

# A row for each title: the `key` of the process, `name`, and `time`, when it was found.
titles_with_times <- function(examples) {
  tibble::tibble(
    key = rep(as.character(names(examples)), lengths(lapply(examples, `[[`, "names"))),
    name = as.character(unlist(lapply(unname(examples), `[[`, "names"))),
    time = as.numeric(unlist(lapply(unname(examples), `[[`, "times")))
  )
}
