# Lines of functions without source references, such as those of installed packages.
#
# The sampler (src/rust/sampler) has recorded positions in the byte code of these functions. When the recording ends,
# each function is compiled again from its deparsed text, with source references: if the instructions are the same,
# these have the line of each position. The file of a function `lm` of the package stats is `<stats::lm>`, and that of a
# function `f` in the global environment is `<f>`, as if it had been typed.

# The number of lines of text that are compiled for a recording. A line takes about 0.2 ms.
most_deparsed_lines <- function(call) {
  most <- getOption("profile.deparsed_lines", 4000)
  if (!rlang::is_bare_numeric(most, 1) || is.na(most) || most < 0) {
    abort_argument("The option `profile.deparsed_lines` must be a number of lines.", call)
  }
  most
}

# Functions that were compiled from their text: list(text, copy), by file.
the$recompiled <- new.env(parent = emptyenv())

# Whether positions in byte code can be recorded: R's variables are known that contain them.
can_record_positions <- function() {
  if (is.null(the$has_positions)) {
    the$has_positions <- is_live_platform() && tryCatch(found_positions(), profile_error = function(error) FALSE)
  }
  the$has_positions
}

# Looks at these variables at several depths of the C stack. Other variables of R may still refer to where an earlier call
# was on the stack, and look the same at one depth.
found_positions <- function(most = 4) {
  rust(rust_lines_look(), NULL)
  for (depth in seq_len(most)) {
    if (rust(deeper(depth), NULL)) {
      return(TRUE)
    }
  }
  FALSE
}

# `do.call()` calls another interpreter of byte code, which has its own variables on the stack.
deeper <- function(depth) if (depth == 0) rust_lines_find() else do.call(deeper, list(depth - 1))

# Ends the run of the sampler, whose signal must be blocked. Returns list(lines, text, skipped): the lines of recorded
# positions for the core, the table `.source_text` of their functions, and the number of functions that were left out,
# because they would take too long.
lines_of_run <- function(call) {
  if (!is.null(native$end_following)) native$end_following()
  namespaces <- loadedNamespaces()
  namespaces <- rlang::set_names(lapply(namespaces, asNamespace), namespaces)
  symbols <- lapply(ls(baseenv(), all.names = TRUE, sorted = FALSE), as.name)
  found <- rust(rust_lines_end(creators(), namespaces, symbols, globalenv()), call)
  files <- paste0(
    "<", ifelse(found$package == "", "", paste0(found$package, "::")), found$name, ">",
    recycle0 = TRUE
  )
  lines <- texts <- list()
  left <- most_deparsed_lines(call)
  skipped <- 0L
  for (i in order(-found$samples, files)) {
    # Frames of this package are removed, or have lines of the code that they evaluate.
    if (found$package[[i]] == "profile") next
    copy <- recompiled(found$functions[[i]], files[[i]], left)
    if (is.null(copy$copy)) {
      skipped <- skipped + isTRUE(copy$is_skipped)
      next
    }
    left <- left - copy$compiled
    positions <- rust(rust_lines_of(found$functions[[i]], copy$copy), call)
    if (length(positions$row) > 0) {
      positions$file <- rep(files[[i]], length(positions$row))
      lines[[length(lines) + 1]] <- positions
      texts[[files[[i]]]] <- paste0(copy$text, "\n", collapse = "")
    }
  }
  column <- function(name) unlist(lapply(lines, `[[`, name))
  list(
    lines = if (length(lines) > 0) list(row = column("row"), file = column("file"), line = column("line")),
    text = source_texts(texts, "deparsed"),
    skipped = skipped
  )
}

# Two functions whose code creates a promise, and a function, by which the core knows these instructions.
creators <- function() {
  if (is.null(the$creators)) {
    functions <- list(function() identity(nchar("")), function() function() NULL)
    the$creators <- lapply(functions, compiler::cmpfun, list(optimize = 2, suppressAll = TRUE))
  }
  the$creators
}

# list(text, copy, compiled): the lines of a function as text, the function compiled from them, and how many lines were
# compiled for it now; list(is_skipped) if these would be more than `most`, and NULL if its text is no such function.
recompiled <- function(original, file, most) {
  env <- environment(original)
  tryCatch(
    {
      # Without attributes, and without classes, whose methods may do anything.
      plain <- as.function.default(c(formals(original), list(body(original))), env)
      text <- deparse(plain)
      known <- the$recompiled[[file]]
      if (identical(known$text, text) && identical(environment(known$copy), env)) {
        return(c(known, compiled = 0))
      }
      if (length(text) > most) {
        return(list(is_skipped = TRUE))
      }
      parsed <- parse(text = text, keep.source = TRUE, encoding = "UTF-8")
      if (length(parsed) != 1 || !rlang::is_call(parsed[[1]], "function")) {
        return(NULL)
      }
      copy <- compiler::cmpfun(eval(parsed[[1]], env), list(optimize = 2, suppressAll = TRUE))
      the$recompiled[[file]] <- list(text = text, copy = copy)
      list(text = text, copy = copy, compiled = length(text))
    },
    error = function(error) NULL
  )
}

# The profile of R's file at `path`, after the run of the sampler beside R's profiler, with the lines of its positions.
read_with_lines <- function(path, memory, call) {
  found <- suspendInterrupts(lines_of_run(call))
  input <- profile_input(path, NA_character_, call)
  result <- rust(rust_lines_read(input, memory, found$lines, lazy_columns(call)), call)
  warn_problems(result$counts, input$name, call)
  with_deparsed_text(new_profile_data(result$tables, "2.0"), found)
}

with_deparsed_text <- function(x, found) {
  text <- found$text[found$text$filename %in% x$functions$filename, ]
  if (nrow(text) > 0) x$.source_text <- rbind_text(x$.source_text %||% no_text, text)
  if (found$skipped > 0 && nrow(x$sources) > 0) {
    x <- with_attributes(x, x$sources$source_id[[1]], c(profile.lines.skipped = found$skipped))
  }
  x
}

# Keeps why lines of packages are missing, see `start_with_sampler()`.
with_missing_lines <- function(x, missing) {
  if (isTRUE(nzchar(missing)) && !is.na(missing) && nrow(x$sources) > 0) {
    rows <- tibble::tibble(
      source_id = x$sources$source_id[[1]], key = paste0("profile.missing.", names(missing)), value = unname(missing),
      type = "string", unit = NA_character_
    )
    x$.source_attributes <- vctrs::vec_rbind(x$.source_attributes, rows)
  }
  x
}

# What lines of packages, and titles, are missing for, as a note; NULL if they are not.
note_of_missing_lines <- function(x) {
  about <- x$.source_attributes
  value <- function(key) unique(about$value[about$key %in% key])
  c(
    vapply(value("profile.missing.sampler"), function(why) {
      paste("Without lines of packages, and names of loaded packages, since only R's profiler could record:", why)
    }, "", USE.NAMES = FALSE),
    vapply(value("profile.missing.positions"), function(why) paste("Without lines of packages:", why), "", USE.NAMES = FALSE)
  )
}

# The number of functions whose lines were not looked up.
functions_without_lines <- function(x) {
  about <- x$.source_attributes
  values <- if (!is.null(about)) about$value[about$key %in% "profile.lines.skipped"]
  sum(suppressWarnings(as.numeric(values)), na.rm = TRUE)
}

# Whether files are texts of functions in packages, such as `<stats::lm>`, or stand for byte code. The core has the same rule
# (model/deparsed.rs).
is_deparsed_package <- function(file) {
  grepl("^<[a-zA-Z][a-zA-Z0-9.]*::.+>$", file, useBytes = TRUE) | is_byte_code(file)
}
