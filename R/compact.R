# The way back to a valid profile after its tables were edited.

#' Make an edited profile valid again
#'
#' @description
#' The tables of a profile are yours to edit: filter samples, drop frames, rename
#' functions, add values. `compact_profile()` then puts the rest in order, as
#' `dm_filter()` would, so that no id needs to be fixed by hand.
#'
#' @details
#' In this order:
#'
#' 1. Columns get their type back, where that loses nothing: whole numbers that
#'    became double, factors, groups, other kinds of data frames.
#' 2. What refers to a row that is gone goes too: the samples of a source, the
#'    values, frames and labels of a sample, the locations of a function, the
#'    frames of a location. The sample itself stays: without its frames of a
#'    function, it is as if that had been inlined.
#' 3. What nothing refers to goes: functions and mappings without a location (but the
#'    first mapping, which is the program), locations without a frame, sources
#'    without a sample, scopes without a source, resources without a scope; and with each
#'    its attributes.
#' 4. Functions that are now equal become one, and so do locations and mappings with equal
#'    attributes. Rows of
#'    `sample_values` and `sample_locations` are sorted by sample. Gaps in `depth`
#'    are closed. Ids are assigned anew, from 1.
#'
#' Whatever rule is broken after that is an error: nothing is guessed.
#'
#' @param x A profile, as in [profile_data], or a dm. One of version 1.0 is
#'   converted first, and so must be valid.
#'
#' @return A valid profile of version 2.0.
#'
#' @section Errors:
#' `profile_error_invalid`, as from [validate_profile()]. Rows are counted in the
#' tables as they are after the third step.
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#'
#' # Without the five outermost frames of each sample:
#' frames <- x$sample_locations
#' outermost <- ave(frames$depth, frames$sample_id, FUN = max)
#' x$sample_locations <- frames[frames$depth <= outermost - 5, ]
#' compact_profile(x)
compact_profile <- function(x) {
  call <- rlang::current_env()
  x <- as_profile(x, call)
  if (!identical(profile_version(x), "2.0")) {
    return(as_v2(x, call))
  }
  x <- restore_types(x, call)
  if (is.null(x$.mappings)) {
    x$locations$.mapping_id <- NULL
  }
  if (is.null(x$.scopes)) {
    x$sources$.scope_id <- NULL
  }
  x <- drop_orphans(settle_files(x), call)
  x <- drop_unused(x, call)
  x <- sort_rows(x, call)
  rust(rust_validate(x), call)
  x$sample_locations$depth <- depths(x$sample_locations)
  bind_profiles(list(x), call)
}

restore_types <- function(x, call) {
  known <- data_model()
  for (table in names(known$tables)) {
    if (!is.data.frame(x[[table]])) {
      rule <- if (is.null(x[[table]])) "it is missing" else "must be a data frame"
      abort_invalid(rule, table, call = call)
    }
  }
  for (table in intersect(names(x), c(names(known$tables), names(known$dotted)))) {
    wanted <- c(known$tables[[table]], known$dotted[[table]])
    columns <- as.list(x[[table]])
    for (column in intersect(names(columns), names(wanted))) {
      columns[[column]] <- tryCatch(
        vctrs::vec_cast(columns[[column]], wanted[[column]]),
        vctrs_error_cast_lossy = function(e) {
          rule <- paste0("cannot be made ", typeof(wanted[[column]]), " without a loss")
          row <- first_not_integer(columns[[column]])
          abort_invalid(rule, table, column, row, call = call)
        },
        vctrs_error_incompatible_type = function(e) {
          from <- vctrs::vec_ptype_full(columns[[column]])
          rule <- paste0("must be ", typeof(wanted[[column]]), ", not ", from)
          abort_invalid(rule, table, column, call = call)
        }
      )
    }
    missing <- setdiff(names(known$tables[[table]]), names(columns))
    if (length(missing) > 0) {
      abort_invalid("it is missing", table, missing[[1]], call = call)
    }
    x[[table]] <- tibble::new_tibble(columns, nrow = nrow(x[[table]]))
  }
  x
}

first_not_integer <- function(x) {
  if (is.numeric(x)) {
    which(x != trunc(x) | abs(x) > .Machine$integer.max)[1]
  }
}

# From the parents down: rows that refer to nothing.
drop_orphans <- function(x, call, tables = names(x)) {
  for (table in parents_first(tables)) {
    keys <- references(table, names(x[[table]]))
    for (column in names(keys)) {
      ids <- as_ids(x[[table]][[column]], table, column, call)
      rows <- rows_of_ids(ids, x, keys[[column]], call)
      if (anyNA(rows)) {
        x <- drop_rows(x, table, is.na(rows) & !is.na(ids))
      }
    }
  }
  x
}

# From the children up: rows that nothing refers to.
drop_unused <- function(x, call) {
  for (by in list(
    c("sample_locations", "location_id"),
    c("locations", "function_id"),
    c("locations", ".mapping_id"),
    c("samples", "source_id"),
    c("sources", ".scope_id"),
    c(".scopes", "resource_id")
  )) {
    key <- keys_of(by[[2]])
    parent <- key_parents[[key]]
    rows <- rows_of_ids(x[[by[[1]]]][[by[[2]]]] %||% integer(), x, key, call)
    unused <- tabulate(rows, NROW(x[[parent]])) == 0
    if (parent == ".mappings") {
      # The first one is the program, whatever was seen running.
      unused[seq_along(unused) == 1] <- FALSE
    }
    x <- drop_rows(x, parent, unused)
  }
  # What nothing refers to may still have rows in tables with a leading dot.
  drop_orphans(x, call, grep("^[.]", names(x), value = TRUE))
}

drop_rows <- function(x, table, gone) {
  if (any(gone)) {
    x[[table]] <- vctrs::vec_slice(x[[table]], !gone)
  }
  x
}

# By sample, and its frames by depth.
sort_rows <- function(x, call) {
  sorted <- list(
    sample_values = TRUE,
    sample_locations = identical(x$sample_locations$depth, depths(x$sample_locations))
  )
  for (table in names(sorted)) {
    rows <- x[[table]]
    sample <- rows_of_ids(rows$sample_id, x, "sample_id", call)
    # It cannot be told of missing ids, which the check that follows reports.
    if (!isFALSE(is.unsorted(sample)) || !sorted[[table]]) {
      order <- if (sorted[[table]]) order(sample) else order(sample, rows$depth)
      x[[table]] <- vctrs::vec_slice(rows, order)
    }
  }
  x
}

# 1, 2, 3, ... for the frames of each sample.
depths <- function(frames) {
  sequence(vctrs::vec_unrep(frames$sample_id)$times)
}
