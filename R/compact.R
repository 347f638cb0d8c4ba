# Makes a profile valid again after its tables were edited.

#' Make an edited profile valid again
#'
#' @description
#' You can edit the tables of a profile: filter samples, remove frames, rename functions, add values.
#' `compact_profile()` then removes the rows that are no longer needed, as `dm_filter()` would, and renumbers ids.
#'
#' @details
#' There are four steps:
#'
#' 1. Columns and tables are converted back to their correct type if this loses nothing: columns that became double or
#'    factors, tables that became grouped or other kinds of data frames.
#' 2. Rows that refer to a missing row are removed: the samples of a missing source; the values, frames and labels of a
#'    missing sample; the locations of a missing function; the frames of a missing location. A sample is kept if only
#'    some of its frames are removed, as if the removed functions had been inlined.
#' 3. Rows that nothing refers to are removed: functions and mappings without a location (except the first
#'    mapping, which is the program), locations without a frame, sources without a sample, scopes without a
#'    source, resources without a scope; and their attributes.
#' 4. Equal functions are merged, and so are equal locations and mappings with equal attributes.
#'    `sample_values` and `sample_locations` are sorted by sample. `depth` is renumbered without gaps. Ids
#'    are assigned anew, from 1.
#'
#' If the result still breaks a rule, this is an error.
#'
#' @param x A profile, see [profile_data], or a dm. A profile of version 1.0 must be valid; it is converted
#'   to version 2.0.
#'
#' @return A valid profile of version 2.0.
#'
#' @section Errors:
#' `profile_error_invalid`, as for [validate_profile()]. Row numbers refer to the tables after the third step.
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#'
#' # Remove the five outermost frames of each sample:
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
  if (is.null(x$.mappings) && ".mapping_id" %in% names(x$locations)) {
    x$locations$.mapping_id <- NULL
  }
  if (is.null(x$.scopes) && ".scope_id" %in% names(x$sources)) {
    x$sources$.scope_id <- NULL
  }
  own <- own_columns_of(list(x))
  compacted <- function(x) {
    rust(rust_compact(integer_ids(x, own, call), length(own) == 0, lazy_columns(call)), call)
  }
  found <- compacted(x)
  if (!found$has_types) {
    x <- restore_types(x, call)
    found <- compacted(x)
  }
  if (!is.null(found$tables)) {
    return(mark_session_of(new_profile_data(found$tables, "2.0"), list(x)))
  }
  bind_profiles(list(keep_rows(x, found$rows)), call, own, close_gaps = TRUE)
}

# Converts ids in user-defined columns to integer, the type of ids in the schema.
integer_ids <- function(x, own, call) {
  for (table in names(own)) {
    for (column in names(references(table, own[[table]]))) {
      ids <- x[[table]][[column]]
      if (!is.integer(ids) || !is.null(attributes(ids))) {
        x[[table]][[column]] <- as_ids(ids, table, column, call)
      }
    }
  }
  x
}

# Selects these rows of these tables, in this order.
keep_rows <- function(x, rows) {
  for (table in names(rows)) {
    x[[table]] <- slice_rows(x[[table]], rows[[table]])
  }
  x
}

restore_types <- function(x, call) {
  known <- data_model()
  for (table in names(known$required)) {
    if (!is.data.frame(x[[table]])) {
      rule <- if (is.null(x[[table]])) "is missing" else "must be a data frame"
      abort_invalid(rule, table, call = call)
    }
  }
  for (table in intersect(names(x), c(names(known$required), names(known$optional)))) {
    wanted <- c(known$required[[table]], known$optional[[table]])
    columns <- as.list(x[[table]])
    for (column in intersect(names(columns), names(wanted))) {
      if (is.null(attributes(columns[[column]])) && typeof(columns[[column]]) == typeof(wanted[[column]])) {
        next
      }
      columns[[column]] <- tryCatch(
        vctrs::vec_cast(columns[[column]], wanted[[column]]),
        vctrs_error_cast_lossy = function(e) {
          rule <- paste0("cannot be converted to ", typeof(wanted[[column]]), " without loss")
          values <- columns[[column]]
          row <- if (is.numeric(values)) which(values != trunc(values) | abs(values) > .Machine$integer.max)[1]
          abort_invalid(rule, table, column, row, call = call)
        },
        vctrs_error_incompatible_type = function(e) {
          from <- vctrs::vec_ptype_full(columns[[column]])
          rule <- paste0("must be ", typeof(wanted[[column]]), ", not ", from)
          abort_invalid(rule, table, column, call = call)
        }
      )
    }
    missing <- setdiff(names(known$required[[table]]), names(columns))
    if (length(missing) > 0) {
      abort_invalid("is missing", table, missing[[1]], call = call)
    }
    x[[table]] <- tibble::new_tibble(columns, nrow = nrow(x[[table]]))
  }
  x
}

drop_rows <- function(x, table, gone) {
  if (any(gone)) {
    x[[table]] <- slice_rows(x[[table]], !gone)
  }
  x
}
