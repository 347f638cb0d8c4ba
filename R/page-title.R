# The titles of pages: of one profile, of a snapshot of the heap, and of a profile with its base.

page_title <- function(x) {
  if (nrow(x$sources) > 0 && all(x$sources$source_type %in% data_model()$snapshot)) {
    return(snapshot_title(x))
  }
  uri <- x$sources$source_uri
  uri <- uri[!is.na(uri)]
  # Several runs of the same code have the same comment.
  code <- unique(as.character(x$.comments$comment)[!duplicated(x$.comments$source_id)])
  # If several processes worked together, the code is a better title than the id of the first process.
  if (worked_together(x) && length(code) > 0) uri <- character()
  title <- if (length(uri) > 0) {
    valid_text(file_name(uri[[1]]))
  } else if (length(code) > 0) {
    cut_text(valid_text(code[[1]]), 100, "end")
  } else {
    "Profile"
  }
  more <- if (length(uri) == 0 && length(code) > 0) length(code) - 1 else nrow(x$sources) - 1
  paste0(title, if (more > 0) paste0(" and ", more, " more"))
}

# Such as `Memory of report.R, pid 1234`, or `Memory of R, pid 1234 and 2 more`.
snapshot_title <- function(x) {
  uri <- valid_text(file_name(x$sources$source_uri))
  script <- valid_text(source_attribute(x, "profile.process.script")[1])
  what <- if (!script %in% c(NA, "")) script else if (startsWith(uri[1], "pid:") %in% TRUE) "R"
  process <- if (startsWith(uri[1], "pid:") %in% TRUE) sub("^pid:", "pid ", uri[1]) else uri[!is.na(uri)][1]
  more <- nrow(x$sources) - 1
  paste0(
    "Memory of ", paste(c(what, stats::na.omit(process)), collapse = ", "), if (more > 0) paste0(" and ", more, " more")
  )
}

# The title of a page with a base, such as `new, compared with base`.
compared_title <- function(x, base) {
  titles <- c(title_of_runs(x), title_of_runs(base))
  if (titles[[1]] == titles[[2]]) {
    return(paste(titles[[1]], "compared with its base"))
  }
  paste0(titles[[1]], ", compared with ", titles[[2]])
}

# The common name of runs whose names differ by a number, such as `new 1` and `new 2`, or the title of a page of them.
title_of_runs <- function(x) {
  uri <- x$sources$source_uri
  name <- unique(sub("[-_ .#]*[0-9]+(?=([.][A-Za-z.]+)?$)", "", file_name(uri), perl = TRUE))
  if (length(uri) > 1 && length(name) == 1 && name %in% setdiff(name, c(NA, ""))) {
    return(valid_text(name))
  }
  page_title(x)
}
