# Stacks of R and native frames as text, and code that checks whether stacks are possible.

# A stack is a vector of frames, outermost first. Names of R functions are followed by parentheses, names of native
# functions are not, and names of R's native functions are preceded by "libR:", as in c("work()", "leaf()", "c_inner",
# "libR:Rf_ScalarReal"). "<GC>" and "<copy>" are unchanged.
marks <- c("<GC>", "<copy>")

profile_stacks <- function(x) {
  at <- match(x$sample_locations$location_id, x$locations$location_id)
  location <- x$locations[at, ]
  name <- x$functions$name[match(location$function_id, x$functions$function_id)]
  native <- location$.frame_type %in% "native"
  file <- x$.mappings$filename[match(location[[".mapping_id"]], x$.mappings$mapping_id)]
  evaluator <- native & basename(as.character(file)) %in% c("libR.so", "R")
  frame <- ifelse(native, native_name(name), ifelse(name %in% marks, name, paste0(name, "()")))
  frame <- paste0(ifelse(evaluator, "libR:", ""), frame)
  order <- order(x$sample_locations$sample_id, -x$sample_locations$depth)
  id <- factor(x$sample_locations$sample_id[order], x$samples$sample_id)
  unname(split(frame[order], id))
}

# The plain name: without the types and namespaces of C++, Rust's hash, Fortran's underscore, and suffixes of compilers.
native_name <- function(name) {
  name <- ifelse(is.na(name), "?", name)
  name <- sub("::h[0-9a-f]{16}$", "", name)
  name <- sub("[(].*$", "", name)
  name <- gsub("<[^<>]*>", "", name)
  name <- sub("^.*(::| )", "", name)
  name <- sub("[.](cold|part|isra|constprop|lto_priv).*$", "", name)
  sub("_$", "", name)
}

# The names of interpreted calls of native code in R's profiles.
native_calls <- paste0(c(".Call", ".External", ".External2", ".C", ".Fortran"), "()")

# Judges stacks. `callers` is a table of the frames that may call a frame directly: names are frames, values are their
# possible callers. "c_sort ..." means that frames which are not in the table may be in between. A frame that is not in
# the table may be anywhere. `only_native` are the R functions that only call native code.
#
# Gives numbers of samples:
# - right: with frames of the table, all of them in their places
# - wrong: with a frame where it cannot be; `stacks` has the first of them
# - missing: an R function that calls native code has none below it, or nothing of the
#   stack is native that has to be
# - other: of all these nothing; or R is about to leave native code by a long jump
native_entries <- function(stacks, callers = native_callers, only_native = native_only) {
  if (!is.null(names(stacks)) && "sample_locations" %in% names(stacks)) {
    stacks <- profile_stacks(stacks)
  }
  stacks <- lapply(stacks, as.character)
  # Equal stacks are checked once.
  key <- vapply(stacks, paste, character(1), collapse = "\n")
  first <- !duplicated(key)
  verdict <- vapply(stacks[first], judge_stack, character(1), callers, only_native)
  verdict <- verdict[match(key, key[first])]
  wrong <- stacks[verdict == "wrong"]
  counts <- table(factor(verdict, c("right", "wrong", "missing", "other")))
  c(
    as.list(counts),
    list(stacks = vapply(utils::head(unique(wrong), 5), paste, character(1), collapse = " > "))
  )
}

judge_stack <- function(stack, callers, only_native) {
  length <- length(stack)
  if (length == 0) {
    return("other")
  }
  # A garbage collection or a copy is not a call.
  marked <- stack[[length]] %in% marks
  if (marked) {
    stack <- stack[-length]
    length <- length - 1
  }
  is_r <- grepl("()", stack, fixed = TRUE) | stack %in% marks
  is_evaluator <- startsWith(stack, "libR:")
  above <- function(what) c(FALSE, what[-length])
  # R's own frames are omitted next to R functions, and a call of native code is replaced by the code that it called.
  if (any(is_evaluator & above(is_r)) || any(is_r & above(is_evaluator))) {
    return("wrong")
  }
  if (any(!is_r & above(stack %in% native_calls)) || any(marks %in% stack)) {
    return("wrong")
  }
  known <- which(stack %in% names(callers))
  placed <- vapply(known, is_placed, logical(1), stack, is_r, callers)
  if (!all(placed)) {
    # A sample that was not merged has only R's stack.
    if (all(is_r)) {
      return("missing")
    }
    return(if (is_jump(stack, is_r, known[!placed])) "other" else "wrong")
  }
  called <- length
  while (called > 0 && stack[[called]] %in% native_calls) {
    called <- called - 1
  }
  if (called > 0 && !marked && stack[[called]] %in% paste0(only_native, "()")) {
    return("missing")
  }
  if (any(!is_r[known])) "right" else "other"
}

# Just before R jumps out of native code, it has removed the records of the calls that it leaves, while their frames
# still exist: the R function that called native code is then missing, also in R's own stack. In R >= 4.4, no frame shows
# that a call between compiled functions is missing, and the functions that jump for `break` and `return()` are known
# only by their addresses: they are all that native code is followed by.
is_jump <- function(stack, is_r, misplaced) {
  last_r <- max(0, which(is_r))
  if (any(misplaced < last_r)) {
    return(FALSE)
  }
  jump <- match(c("libR:Rf_error", "libR:R_ContinueUnwind"), stack)
  if (any(!is.na(jump))) {
    return(min(jump, na.rm = TRUE) > last_r)
  }
  left <- stack[seq_along(stack) > max(misplaced)]
  getRversion() >= "4.4" && all(grepl("^libR:|longjmp|pthread_cleanup", left)) &&
    any(grepl("^libR:libR[.]so[+]", utils::tail(grep("^libR:", left, value = TRUE), 1)))
}

# Whether the frame above frame `i` may call it.
is_placed <- function(i, stack, is_r, callers) {
  allowed <- callers[[stack[[i]]]]
  direct <- setdiff(allowed, grep(" ...", allowed, fixed = TRUE, value = TRUE))
  loose <- sub(" ...", "", setdiff(allowed, direct), fixed = TRUE)
  if (i > 1 && stack[[i - 1]] %in% direct) {
    return(TRUE)
  }
  between <- i - 1
  while (between > 0 && !is_r[[between]] && !stack[[between]] %in% names(callers)) {
    between <- between - 1
  }
  between > 0 && stack[[between]] %in% loose
}

# The stacks of a file of plain Rprof() in the form of profile_stacks().
rprof_stacks <- function(path) {
  x <- read_quietly(path)
  flat <- x$sample_locations
  function_id <- x$locations$function_id[match(flat$location_id, x$locations$location_id)]
  name <- x$functions$name[match(function_id, x$functions$function_id)]
  frame <- ifelse(name %in% "<GC>", "<GC>", paste0(name, "()"))
  order <- order(flat$sample_id, -flat$depth)
  unname(split(frame[order], factor(flat$sample_id[order], x$samples$sample_id)))
}

# The frames of the workload itself in these stacks, from a scenario's function inwards, such as "leaf() c_inner
# c_spin". Repeated frames are shown once: "recursive()*31". R's own functions in between differ among versions of R.
own_frames <- function(stacks, workload) {
  own <- c(names(native_callers), paste0(ls(workload), "()"))
  vapply(from_scenario(stacks), function(stack) {
    runs <- rle(stack[stack %in% own])
    paste0(runs$values, ifelse(runs$lengths > 1, paste0("*", runs$lengths), ""), collapse = " ")
  }, "")
}

# Each stack without the frames of the test and of the scenario's function.
from_scenario <- function(stacks) {
  lapply(stacks, function(stack) stack[seq_along(stack) > max(0, grep("^in_", stack))])
}

# The scenario of each stack.
scenario_of <- function(stacks) {
  vapply(stacks, function(stack) sub("^in_(.*)[(][)]$", "\\1", grep("^in_", stack, value = TRUE)[[1]]), "")
}

# The frames of these stacks that R's own profiler records: without native frames, and without the calls of native code
# that they replace.
r_frames <- function(stacks) {
  lapply(stacks, function(stack) stack[grepl("[(][)]$|^<GC>$", stack) & !stack %in% native_calls])
}

# Some samples cannot be merged if ticks occur anywhere, and a warning reports them.
quietly <- function(code) {
  suppressWarnings(code, classes = "profile_warning")
}

# The stacks of the samples that no problem reports as incomplete.
complete_stacks <- function(x) {
  incomplete <- as.integer(sub("^sample ([0-9]+).*", "\\1", profile_problems(x)$text))
  profile_stacks(x)[!seq_len(nrow(x$samples)) %in% incomplete]
}

# Expects this number of stacks, all of which have native frames in the right places.
expect_all_right <- function(x, count, info = NULL) {
  found <- native_entries(x)
  testthat::expect_equal(
    unlist(found[c("right", "wrong", "missing", "other")]), c(right = count, wrong = 0, missing = 0, other = 0),
    info = paste(c(info, found$stacks), collapse = "\n")
  )
}

# For a profiler with a timer, in benchmarks and storms: expects that no frame is in a wrong place.
expect_none_wrong <- function(x, info = NULL) {
  found <- native_entries(x)
  testthat::expect_equal(found$wrong, 0, info = paste(c(info, found$stacks), collapse = "\n"))
  found
}

# A profile whose functions with these names are native code.
marked_as_native <- function(x, names) {
  name <- x$functions$name[match(x$locations$function_id, x$functions$function_id)]
  x$locations$.frame_type <- ifelse(name %in% names, "native", "r")
  x
}
