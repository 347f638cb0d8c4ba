# The places of a recorded script, or of the chunks of a document: code that is in no function is in no stack of R's
# profiler, so the recorded process logs when it begins to run (inst/record/places.R). Here it becomes the outermost
# frame of the samples, `<script>` or `<document>`, with its line.

# The log, a row for each change: list(kind, offset, first, last, file), where the lines are `NA` if no such code runs, and
# 0 if they are unknown.
logged_places <- function(folder) {
  pattern <- "^([a-z]+) ([0-9]+) (NA|[0-9]+) (NA|[0-9]+) (.*)$"
  # If the process was killed, the last line may be cut.
  lines <- grep(pattern, hook_lines(folder, "places"), value = TRUE)
  part <- function(group) sub(pattern, paste0("\\", group), lines)
  number <- function(group) as.integer(ifelse(part(group) == "NA", NA, part(group)))
  list(kind = part(1), offset = as.numeric(part(2)), first = number(3), last = number(4), file = part(5))
}

# The place of each kind at each sample of R's file, whose samples start at the offsets `starts`. NULL if it is not known.
places_of_samples <- function(log, starts) {
  kinds <- c(document = "document", script = "script")
  kinds <- kinds[kinds %in% log$kind]
  lapply(kinds, function(kind) {
    rows <- which(log$kind == kind)
    # The last row at an offset counts.
    rows <- rev(rows)[!duplicated(rev(log$offset[rows]))]
    rows <- rows[order(log$offset[rows])]
    at <- findInterval(starts, log$offset[rows])
    at[at == 0L] <- NA
    lapply(log[c("first", "last", "file")], function(column) column[rows][at])
  })
}

# Adds the places of a log to a profile of R's file.
with_logged_places <- function(x, log, file, was_killed, call) {
  if (length(log$kind) == 0 || nrow(x$samples) == 0) {
    return(x)
  }
  starts <- rust(rust_sample_lines(c(file, file)), call)
  # The last sample of a process that was killed may be incomplete.
  if (was_killed && nrow(x$samples) == length(starts) + 1) starts <- c(starts, Inf)
  if (nrow(x$samples) != length(starts)) {
    shell_message("profile: Code outside of functions has no lines: it is unknown when the samples were taken.")
    return(x)
  }
  if (any(log$kind == "document" & log$first %in% 0L)) {
    shell_message("profile: Some chunks have no lines: the document does not have their code as knitr evaluates it.")
  }
  with_places(x, places_of_samples(log, starts), call)
}

# Adds the places of a log to the vectors that were allocated meanwhile: each has a mark, the number of rows that the log had.
with_marked_places <- function(x, log, call) {
  labels <- x$.labels
  is_mark <- labels$key %in% "profile.mark"
  marks <- as.numeric(labels$str[is_mark])[match(x$samples$sample_id, labels$sample_id[is_mark])]
  x$.labels <- if (!all(is_mark)) slice_rows(labels, !is_mark)
  kinds <- c(document = "document", script = "script")
  places <- lapply(kinds[kinds %in% log$kind], function(kind) {
    rows <- which(log$kind == kind)
    at <- findInterval(marks, rows)
    # A row without lines at the same offset says that the one before was wrong.
    is_wrong <- c(log$first[rows][-1] %in% 0L & diff(log$offset[rows]) == 0, FALSE)
    at[at == 0L | is_wrong[pmax(at, 1L)]] <- NA
    lapply(log[c("first", "last", "file")], function(column) column[rows][at])
  })
  with_places(x, places, call)
}

# Adds these places to a profile that has a sample for each.
with_places <- function(x, places, call) {
  for (kind in names(places)) {
    place <- places[[kind]]
    line <- place$first
    if (kind == "script") {
      x <- with_lines_of_expressions(x, place)
      line <- line_of_toplevel(x, place)
    }
    x <- with_outermost(x, paste0("<", kind, ">"), place$file, line)
  }
  # The new frames say that.
  if ("script" %in% names(places)) x$samples[c(".toplevel_filename", ".toplevel_line")] <- NULL
  compact_profile(x)
}

# R itself writes the line from which the outermost function was called if it is in braces, counted from the beginning of
# the expression.
line_of_toplevel <- function(x, place) {
  written <- x$samples[[".toplevel_line"]]
  line <- place$first
  if (is.null(written)) {
    return(line)
  }
  found <- place$first + written - 1L
  is_own <- x$samples[[".toplevel_filename"]] %in% "" & place$first > 0 & written > 0 & found <= place$last
  line[which(is_own)] <- found[which(is_own)]
  line
}

# Functions that the running expression has defined: their file has no name yet, and their lines are counted from its
# beginning.
with_lines_of_expressions <- function(x, place) {
  frames <- x$sample_locations
  at <- match(frames$location_id, x$locations$location_id)
  of_location <- match(x$locations$function_id, x$functions$function_id)
  is_unnamed <- x$locations$line > 0 & x$functions$filename[of_location] == ""
  if (!any(is_unnamed, na.rm = TRUE)) {
    return(x)
  }
  sample <- match(frames$sample_id, x$samples$sample_id)
  line <- place$first[sample] + x$locations$line[at] - 1L
  moved <- which(is_unnamed[at] & place$first[sample] > 0 & line <= place$last[sample])
  new <- data.frame(at = at[moved], line = line[moved], file = place$file[sample[moved]])
  distinct <- unique(new)
  locations <- slice_rows(x$locations, distinct$at)
  locations$line <- distinct$line
  functions <- slice_rows(x$functions, of_location[distinct$at])
  functions$filename <- distinct$file
  add_frames(x, moved, vctrs::vec_match(new, distinct), locations, functions)
}

# Gives these rows of `sample_locations` new locations, each with a function of its own; `which` is the number of the
# location of each row.
add_frames <- function(x, rows, which, locations, functions) {
  n <- nrow(locations)
  functions$function_id <- locations$function_id <- max(0L, x$functions$function_id) + seq_len(n)
  locations$location_id <- max(0L, x$locations$location_id) + seq_len(n)
  x$sample_locations$location_id[rows] <- locations$location_id[which]
  x$locations <- vctrs::vec_rbind(x$locations, locations)
  x$functions <- vctrs::vec_rbind(x$functions, functions)
  x
}

# Adds an outermost frame with this function to each sample whose line is not `NA`.
with_outermost <- function(x, name, file, line) {
  new <- which(!is.na(line))
  if (length(new) == 0) {
    return(x)
  }
  frames <- x$sample_locations
  places <- data.frame(file = file[new], line = line[new])
  distinct <- unique(places)
  functions <- vctrs::vec_init(x$functions, nrow(distinct))
  functions$name <- functions$system_name <- rep(name, nrow(distinct))
  functions$filename <- distinct$file
  functions$start_line <- rep(0L, nrow(distinct))
  locations <- vctrs::vec_init(x$locations, nrow(distinct))
  locations$line <- distinct$line
  if (!is.null(locations[[".frame_type"]])) locations$.frame_type <- rep("r", nrow(distinct))
  depths <- tabulate(match(frames$sample_id, x$samples$sample_id), nrow(x$samples))
  added <- vctrs::vec_init(frames, length(new))
  added$sample_id <- x$samples$sample_id[new]
  added$depth <- depths[new] + 1L
  x$sample_locations <- vctrs::vec_rbind(frames, added)
  x <- add_frames(x, nrow(frames) + seq_along(new), vctrs::vec_match(places, distinct), locations, functions)
  frames <- x$sample_locations
  x$sample_locations <- slice_rows(frames, order(match(frames$sample_id, x$samples$sample_id), frames$depth))
  x
}
