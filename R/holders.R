# What holds the memory in use: the paths of a profile below which most of it is. The core finds them. This file formats
# them as lines, in which the middle of a long path is omitted.

#' What holds the memory
#'
#' @description
#' `holders()` answers *Who holds the memory?* It returns the paths below which most of the memory in use is, for
#' snapshots of the heap of R by [snapshot_memory()] and for any other profile with memory in use, such as the heap
#' profiles of Go.
#'
#' In a snapshot, a path leads from a root, such as the global environment or a package, over variables, elements,
#' attributes and environments to the objects that would be freed without it: `globalenv > $fits > [[*]] <lm> > $terms`.
#' In profiles of other tools, paths are calls, and memory is held by the code that allocated it.
#'
#' @details
#' Not all paths are listed. Each row starts at a root and follows a path as long as one step holds at least 80% of the
#' memory of its start. Where the memory is divided, the row ends. Further steps from there, and those that branched off
#' before, start rows of their own if they hold at least 0.5% of the whole. A row may therefore be a part of another
#' one: do not add up `retained`.
#'
#' The innermost frame of a stack in a snapshot is the type of the objects, such as `numeric`. It is not a step of the
#' path. Snapshots are recognised by the types of their frames (`.frame_type` in `locations`), and, if a format such as
#' pprof has removed these, by the names of their roots. Collapsed stacks do not say what their values are: set `type`
#' and `unit` in the table `sample_values`.
#'
#' All sources are summed, such as the processes of `snapshot_memory(children = TRUE)`, which `by = "process"` keeps apart. Of
#' a profile that contains several snapshots of a process, the memory is counted several times.
#'
#' @param x A profile, see [profile_data], or the path of a file. For `format()` and `print()`, holders.
#' @param n The maximum number of rows: those with the most memory, `Inf` for all; when printing, the number of rows of `x`
#'   to show, by default all.
#' @param ... Must be empty. For `print()`, arguments of `format()`.
#' @param by What the first step of each path is, before the root: `"process"`, `"source"`, the key of a label
#'   or another word for whole samples, see *Words for `by`* in the help of [summary()][summary.profile_data()]. `NULL`
#'   for nothing.
#' @param width The width of the lines, by default the width of the console.
#'
#' @return A tibble of class `profile_holders`, in descending order of `retained`:
#'   \describe{
#'   \item{retained}{double: the bytes of everything below this path}
#'   \item{self}{double: the bytes of the objects of the path itself}
#'   \item{objects}{double: the number of objects below this path, `NA` if objects were not counted}
#'   \item{share}{double: `retained` as a share of the whole}
#'   \item{held_by}{character: the path, outermost frame first, with ` > ` between frames. A frame may contain any
#'     characters; printing shows control characters as escape sequences. More than four paths that differ only in
#'     numbers or hashes in names are one row, such as the entries of a cache: `globalenv > $cache > $key* (20)`}
#'   }
#'   Attributes: `type` and `unit`, the sample type; `sum`, its sum in bytes; `objects`, the number of all objects, or
#'   `NA`.
#'
#'   `format()` returns a character vector, in which the middle of a long path is replaced by an ellipsis. The root and
#'   the last name remain. `print()` returns `x`, invisibly.
#'
#' @section Errors:
#' - `profile_error_argument` if the profile has no memory in use, and for other invalid arguments;
#' - `profile_error_unsupported` if the values are too large to be summed;
#' - `profile_error_invalid` if `x` is not valid.
#' @seealso [snapshot_memory()] takes snapshots, [compare_profiles()] shows what has grown between two snapshots,
#'   [call_tree()] the whole tree
#' @export
#' @examples
#' x <- read_pprof(system.file("samples/proto/go_heap.pb.gz", package = "profile"))
#' holders(x, n = 3)
holders <- function(x, n = 10, ..., by = NULL) {
  call <- call_without_dots()
  n <- check_most_rows(n, call)
  at_peak <- if (!missing(x)) attr(x, "snapshot", exact = TRUE)
  x <- if (is.null(at_peak)) as_unchecked_v2(x, call) else at_peak
  if (!is.null(by)) {
    by <- check_by(by, "holders", call, x)
    x <- with_validation(list(x), call, {
      labels <- labels_with_key(x, by$word, "by", call)
      with_outer_frames(x, labels$text[match(seq_along(x$samples$sample_id), labels$sample)])
    })
  }
  found <- found_holders(list(x), 0L, 1 / 200, n, call)
  new_holders(found)
}

# The profile, in which the stack of each sample has one more frame around it, of this name, unless it is NA.
with_outer_frames <- function(x, names) {
  has_name <- !is.na(names)
  distinct <- unique(names[has_name])
  functions <- max(0L, x$functions$function_id) + seq_along(distinct)
  locations <- max(0L, x$locations$location_id) + seq_along(distinct)
  x$functions <- vctrs::vec_rbind(x$functions, tibble::tibble(
    function_id = functions, name = distinct, system_name = distinct, filename = "", start_line = 0L
  ))
  x$locations <- vctrs::vec_rbind(x$locations, tibble::tibble(
    location_id = locations, function_id = functions, line = 0L
  ))
  frames <- x$sample_locations
  row <- match(frames$sample_id, x$samples$sample_id)
  # The last row of each sample has its outermost frame.
  sorted <- order(row, frames$depth, method = "radix")
  outermost <- sorted[!duplicated(row[sorted], fromLast = TRUE)]
  depth <- integer(length(names))
  depth[row[outermost]] <- frames$depth[outermost]
  frames <- vctrs::vec_rbind(frames, tibble::tibble(
    sample_id = x$samples$sample_id[has_name], depth = as.integer(depth[has_name] + 1),
    location_id = locations[match(names[has_name], distinct)]
  ))
  x$sample_locations <- frames[order(c(row, which(has_name)), frames$depth, method = "radix"), ]
  x
}

# `result` of the core, see src/to_r/holders.rs, for profiles of version 2.0. `base`: the number of sources that are
# compared with the others.
found_holders <- function(profiles, base, min_share, most, call) {
  found <- rust(rust_holders(profiles, base, as.double(min_share), as.double(most)), call)
  if (is.null(found$rows)) {
    known <- data_model()$sample_types
    known <- known$type[known$role == "in use" & known$unit == "bytes"]
    of <- function(types) paste0("`", shown_label(types), "`", collapse = ", ")
    types <- utils::head(found$types, 10)
    abort_argument(c(
      "The profile has no memory in use.",
      i = paste0("It is needed as a sample type in bytes: ", of(known), "."),
      i = if (length(types) > 0) paste0("The profile has ", of(types), "."),
      i = "Use a snapshot of the heap of R, or a heap profile of another tool. For allocated memory see `summary()`."
    ), call)
  }
  found
}

new_holders <- function(found) {
  rows <- found$rows
  objects <- if (found$has_objects) rows$new_objects else rep(NA_real_, nrow(rows))
  sum <- found$new[[2]]
  tibble::new_tibble(
    list(
      retained = rows$new, self = rows$self, objects = objects, share = rows$new / sum, held_by = rows$held_by
    ),
    nrow = nrow(rows),
    type = found$type, unit = found$unit, sum = sum, objects = if (found$has_objects) found$new[[3]] else NA_real_,
    class = "profile_holders"
  )
}

# Whether all sources are snapshots of a heap. The tables may be invalid.
is_snapshot <- function(x) {
  type <- if (is.list(x)) x[["sources"]][["source_type"]]
  length(type) > 0 && all(type %in% data_model()$snapshot)
}

# ---- Text --------------------------------------------------------------------------

#' @rdname holders
#' @export
format.profile_holders <- function(x, ..., n = NULL, width = NULL) {
  is_whole <- all(c("retained", "self", "objects", "held_by") %in% names(x)) && is.numeric(attr(x, "sum"))
  text_of_table(x, n, width, is_whole, text_of_holders, Inf)
}

text_of_holders <- function(x, n, width) {
  head <- paste0("<holders> ", size_of_heap(x), " (", shown_label(attr(x, "type")), ")")
  c(
    shorten(head, width),
    if (n >= 1) holder_lines(utils::head(x, n), width),
    if (nrow(x) > n) paste0("... and ", format_count(nrow(x) - n), " more rows")
  )
}

#' @export
as_tibble.profile_holders <- function(x, ...) without_class(x)

# Such as `52.10MB in 34,210 objects`.
size_of_heap <- function(holders) {
  objects <- attr(holders, "objects")
  amount <- format_amount(attr(holders, "sum"), attr(holders, "unit"))
  paste0(amount, if (!is.na(objects)) paste(" in", count_of(objects, "object")))
}

holder_lines <- function(x, width) {
  if (nrow(x) == 0) {
    return("Nothing is in use.")
  }
  amounts <- function(values) format_amount(values, attr(x, "unit"))
  columns <- list(
    retained = amounts(x$retained),
    self = amounts(x$self),
    objects = if (!anyNA(x$objects)) vapply(x$objects, format_count, "")
  )
  path_lines(columns, x$held_by, width)
}

# A heading and a line for each path, with the columns of figures before it.
path_lines <- function(columns, paths, width, heading = "held by") {
  columns <- columns[lengths(columns) > 0]
  figures <- Map(function(head, column) format(c(head, column), justify = "right"), names(columns), columns)
  figures <- do.call(paste, c(list(""), unname(figures), sep = " "))
  figures <- sub("^ ", "", paste0(figures, "  "))
  space <- max(width - nchar(figures[[1]], "width"), 12)
  shorten(paste0(figures, c(heading, shorten_path(paths, space))), width)
}

# Paths for a place of this width: the outermost and the innermost steps, as many as fit.
shorten_path <- function(paths, width) {
  paths <- printable(paths, from = "middle")
  vapply(paths, shortened_path, "", width, USE.NAMES = FALSE)
}

shortened_path <- function(path, width) {
  if (shown_width(path) <= width) {
    return(path)
  }
  ellipsis <- default_ellipsis()
  steps <- with_name_last(strsplit(path, " > ", fixed = TRUE)[[1]], ellipsis)
  count <- length(steps)
  if (count < 2) {
    return(shorten(path, width))
  }
  # Without separators, and the ellipsis if steps may be left out.
  space <- width - 3 - if (count > 2) 3 + shown_width(ellipsis) else 0
  # The innermost step says most, and `[shared]` less than the names before it.
  if (shown_width(steps[[1]]) > space - min(shown_width(steps[[count]]), 2 * space %/% 3)) {
    steps[[1]] <- sub(" \\[shared\\]$", "", steps[[1]])
  }
  steps[[1]] <- shorten(steps[[1]], max(space - min(shown_width(steps[[count]]), 2 * space %/% 3), 2))
  steps[[count]] <- shorten(steps[[count]], max(space - shown_width(steps[[1]]), 2))
  size <- shown_width(steps) + 3
  space <- space - sum(size[c(1, count)] - 3)
  outer <- 1
  inner <- 1
  while (outer + inner < count) {
    from_inner <- size[[count - inner]] <= space
    from_outer <- size[[outer + 1]] <= space
    # The variable after the root comes first.
    if (from_outer && (outer <= inner || !from_inner)) {
      space <- space - size[[outer + 1]]
      outer <- outer + 1
    } else if (from_inner) {
      space <- space - size[[count - inner]]
      inner <- inner + 1
    } else {
      break
    }
  }
  left_out <- outer + inner < count
  kept <- c(utils::head(steps, outer), if (left_out) ellipsis, utils::tail(steps, inner))
  shorten(paste(kept, collapse = " > "), width, "start")
}

# The steps, of which the last one with a name and those inside of it are one: without the name, they say little.
with_name_last <- function(steps, ellipsis) {
  named <- max(1, which(startsWith(steps, "$")))
  end <- steps[named:length(steps)]
  end <- if (length(end) > 3) c(end[[1]], ellipsis, end[[length(end)]]) else end
  if (named > 1) c(steps[seq_len(named - 1)], paste(end, collapse = " > ")) else steps
}

# The width of text as it is printed. The width of some text is unknown.
shown_width <- function(text) {
  width <- nchar(enc2native(text), "width", allowNA = TRUE)
  ifelse(is.na(width), nchar(text), width)
}

# The lines of a profile that is a snapshot; NULL if it is not valid.
snapshot_lines <- function(x, n, width) {
  found <- tryCatch(
    new_holders(found_holders(list(as_unchecked_v2(x, NULL)), 0L, 1 / 200, .Machine$integer.max, NULL)),
    profile_error = function(error) NULL
  )
  if (is.null(found)) {
    return()
  }
  time <- unique(x$sources[["source_timestamp"]])
  resident <- format_resident(x, width)
  # These lines contain the parts of what is not R's heap.
  shown <- if (length(resident) > 0) found[!startsWith(found$held_by, data_model()$not_r), ] else found
  c(
    paste0("<profile ", profile_version(x), "> of the heap"),
    paste0("Size:      ", if ("profile.heap.unchecked" %in% x$.source_attributes$key) "at least ", size_of_heap(found)),
    format_sources(x$sources, width, program = programs_of(x), role = roles_of(x)),
    # Processes are read one after the other.
    if (length(time) > 0 && isTRUE(diff(range(time)) < 60)) format_recorded(min(time)),
    resident,
    if (n >= 1) holder_lines(utils::head(shown, n), width),
    format_problems(x)
  )
}
