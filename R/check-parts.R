# The parts of `R CMD check`: which steps its processes are, what each step is called, and how the time of the check is
# divided among them.

# What the check's processes are doing, by the code that they read: a pattern, and the part to which it belongs. The
# first pattern that matches counts.
parts_by_code <- c(
  "createExdotR" = "examples",
  "runPackageTests" = "tests",
  "[vV]ignette" = "vignettes",
  "Rd2(pdf|dvi|ex|txt|HTML)|Rdconv" = "help",
  "tools::?:?(undoc|codoc|checkDoc|checkRd)|_Rd_|parseRd|_used_in_examples" = "help",
  "_used_in_tests" = "tests",
  "^library[(]|loadNamespace[(]|load_namespace" = "load",
  "tools:" = "code"
)

# All parts, in the order of a check.
parts_of_check <- c("build", "install", "load", "code", "help", "examples", "tests", "vignettes", "other")

# The steps of a check that has run, one after the other: the processes that R has started for it. `began` and `ended`
# are seconds since the epoch, and no step begins before the previous one has ended. A tibble of `key`, the key of the
# process, `part`, `name`, `is_vignette` (whether it runs or builds vignettes), `began` and `ended`. `processes`: see
# watched_processes(). `is_built`: whether the first program has built the package, which is one step.
steps_of_check <- function(processes, is_built) {
  programs <- processes$key[is.na(processes$parent)]
  programs <- programs[order(processes$began[match(programs, processes$key)])]
  build <- if (is_built) utils::head(programs, 1)
  of_check <- setdiff(programs, build)
  keys <- c(build, processes$key[processes$parent %in% first_r_below(processes, of_check)])
  at <- match(keys, processes$key)
  named <- lapply(keys, name_of_step, processes)
  steps <- tibble::tibble(
    key = as.character(keys),
    part = vapply(named, `[[`, "", "part"), name = vapply(named, `[[`, "", "name"),
    is_vignette = vapply(named, function(one) isTRUE(one$is_vignette), NA),
    began = processes$began[at], ended = processes$ended[at]
  )
  steps$part[steps$key %in% build] <- "build"
  steps$name[steps$key %in% build] <- "R CMD build"
  steps <- steps[order(steps$began), ]
  # They run one after the other, but when they ended is known to a few hundredths of a second only.
  after <- cummax(c(-Inf, steps$ended))[seq_len(nrow(steps))]
  steps$began <- pmax(steps$began, after)
  steps$ended <- pmax(steps$ended, steps$began)
  steps
}

# The keys of processes and of all below them, from top to bottom.
keys_below <- function(processes, key) {
  found <- key
  level <- key
  while (length(level) > 0) {
    level <- setdiff(processes$key[processes$parent %in% level], found)
    found <- c(found, level)
  }
  found
}

# The keys of a process and of all above it.
keys_above <- function(processes, key) {
  found <- character()
  while (length(key) > 0 && !is.na(key)) {
    found <- c(found, key)
    key <- processes$parent[match(key, processes$key)]
  }
  found
}

# The key of the topmost process of R.
first_r_below <- function(processes, key) {
  keys <- keys_below(processes, key)
  utils::head(keys[processes$is_r[match(keys, processes$key)]], 1)
}

# list(part, name) of the step that this process is.
name_of_step <- function(key, processes) {
  found <- processes[match(keys_below(processes, key), processes$key), ]
  r <- found[found$is_r, ]
  # Only the scripts that start the first process of R say what it does.
  above <- if (nrow(r) == 0) found else found[found$key %in% keys_above(processes, r$key[[1]]), ]
  command <- basename(stats::na.omit(above$script[!above$is_r]))
  if ("INSTALL" %in% command) {
    list(part = "install", name = "R CMD INSTALL")
  } else if (nrow(r) == 0) {
    named <- c(command, stats::na.omit(setdiff(rev(found$program), c("sh", "bash", "dash"))), "sh")
    list(part = "other", name = named[[1]])
  } else if (!is.na(r$script[[1]])) {
    list(part = "other", name = basename(r$script[[1]]))
  } else if (grepl("-Ex[.]R$", r$input[[1]] %||% "")) {
    list(part = "examples", name = basename(r$input[[1]]))
  } else if (length(command) > 0) {
    list(part = part_of_code(command[[1]]), name = paste("R CMD", command[[1]]))
  } else {
    code <- statement_of_step(r$code[[1]])
    part <- part_of_code(code)
    vignette <- vignette_of_code(code)
    if (!is.na(vignette)) {
      return(list(part = "vignettes", name = vignette, is_vignette = TRUE))
    }
    in_order <- stats::na.omit(r$script[order(r$began)])
    scripts <- if (grepl("runPackageTests", code, fixed = TRUE)) unique(basename(in_order))
    list(part = part, name = if (length(scripts) > 0) paste(scripts, collapse = ", ") else short_code(code))
  }
}

part_of_code <- function(code) {
  found <- vapply(names(parts_by_code), grepl, NA, code)
  if (any(found)) unname(parts_by_code[found][[1]]) else "other"
}

# The code without calls that only set options, and those that hide messages.
statement_of_step <- function(code) {
  if (is.na(code)) {
    return("")
  }
  parsed <- tryCatch(parse(text = code, keep.source = FALSE), error = function(error) NULL)
  settings <- c("options", "Sys.setenv", "Sys.setlocale")
  is_setting <- vapply(parsed, function(one) is.call(one) && name_of_called(one) %in% settings, NA)
  statement <- as.list(parsed[!is_setting])
  if (length(statement) == 0) {
    return(cut_text(gsub("[[:space:]]+", " ", code), 200, "end"))
  }
  one <- statement[[1]]
  while (is.call(one) && length(one) > 1 && grepl("^(suppress.*|invisible)$", name_of_called(one))) one <- one[[2]]
  code_in_one_line(one)
}

# The called function, such as `tools::codoc()`. Profiles contain no code, but the package that is loaded:
# `library(toy)`.
short_code <- function(code) {
  loads <- "^(library|loadNamespace)[(][\"']?([[:alnum:].]+)[\"']?[,)].*$"
  if (grepl(loads, code)) {
    return(sub(loads, "\\1(\\2)", code))
  }
  called <- "^([.A-Za-z0-9_:]+)[(].*$"
  if (grepl(called, code)) paste0(sub(called, "\\1", code), "()") else "other code"
}

# The name of a vignette whose code runs, or that is built again, NA for other code.
vignette_of_code <- function(code) {
  pattern <- "^tools::?:?[.]?(run_one_vignette|buildOneVignette|buildVignette)[(][\"']([^\"']+)[\"'].*$"
  if (grepl(pattern, code)) {
    paste0(basename(sub(pattern, "\\2", code)), if (!grepl("run_one_vignette", code, fixed = TRUE)) ", built again")
  } else if (grepl("^tools::?:?buildVignettes[(]", code)) {
    "all vignettes, built again"
  } else {
    NA_character_
  }
}

# A row for each part that has run: `part`, `processes`, `time` in seconds, its `share`, and `memory`, the highest of
# one process in bytes; at the end, `between`, so that the sum of all rows is the time of the whole.
parts_of_steps <- function(steps, processes, memory, whole) {
  of_step <- step_of_processes(steps, processes)
  rows <- lapply(intersect(parts_of_check, steps$part), function(part) {
    keys <- steps$key[steps$part == part]
    members <- processes$key[of_step %in% keys & processes$is_r]
    tibble::tibble(
      part = part, processes = length(members), time = sum((steps$ended - steps$began)[steps$part == part]),
      memory = highest(memory[members])
    )
  })
  parts <- vctrs::vec_rbind(
    tibble::tibble(part = character(), processes = integer(), time = numeric(), memory = numeric()), !!!rows
  )
  rest <- processes$key[is.na(of_step) & processes$is_r]
  between <- tibble::tibble(
    part = "between", processes = length(rest), time = whole - sum(parts$time), memory = highest(memory[rest])
  )
  parts <- vctrs::vec_rbind(parts, between)
  parts$share <- parts$time / whole
  parts[c("part", "processes", "time", "share", "memory")]
}

highest <- function(values) {
  values <- values[!is.na(values)]
  if (length(values) == 0) NA_real_ else max(values)
}

# The step to which each process belongs, as its key; NA for the check itself.
step_of_processes <- function(steps, processes) {
  step <- ifelse(processes$key %in% steps$key, processes$key, NA_character_)
  # Parents are seen before their children.
  for (i in seq_along(step)) {
    if (is.na(step[[i]])) step[[i]] <- c(step[match(processes$parent[[i]], processes$key)], NA)[[1]]
  }
  step
}
