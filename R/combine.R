# Combines profiles: binds the rows of their tables and assigns new ids.

#' Combine profiles
#'
#' `combine_profiles()` returns one profile with the samples of all profiles, in order, and all information about their
#' sources.
#'
#' @details
#' The profiles may have different versions, origins and sample types; each sample keeps its own values.
#' Each source remains a separate source, even if the same profile is given twice.
#'
#' Ids are assigned anew, from 1. Functions that are equal in all columns are stored once. The same applies to locations
#' and mappings with equal attributes, and to rows of `meta`. Resources and scopes are not merged.
#'
#' Columns and tables with a leading dot are kept, including your own. A column that is missing from a
#' profile is `NA` for its rows. Columns named `source_id`, `sample_id`, `location_id`, `function_id`,
#' `mapping_id`, `resource_id` or `scope_id` are updated to the new ids.
#'
#' Grouping makes no difference: `combine_profiles(a, b, c)` equals
#' `combine_profiles(combine_profiles(a, b), c)`. The time required is proportional to the number of rows.
#'
#' If profiles have values of a type in several units of time, or of memory, all get the first unit or, if this would round
#' values, the smallest one. If that would round values as well, they keep their units; summaries and comparisons convert
#' them.
#'
#' @param ... Profiles ([profile_data], of either version, or a dm as returned by [dm_from_profile()]), or
#'   one list of them. Names are ignored. Without profiles, the result is a profile without samples.
#'
#' @return A profile of version 2.0.
#'
#' @section Errors:
#' - `profile_error_invalid` if a profile is not valid, or columns of the same name have types that cannot
#'   be combined;
#' - `profile_error_argument` if an argument is not a profile;
#' - `profile_error_unsupported` if a table would have more than 2^31 - 1 rows.
#'
#' @seealso [store_profiles()] for more profiles than fit into memory.
#' @export
#' @examples
#' path <- system.file("samples/rprof", c("1.out", "memory.out"), package = "profile")
#' both <- combine_profiles(lapply(path, read_rprof))
#' both
#' both$sources
combine_profiles <- function(...) {
  call <- rlang::current_env()
  profiles <- rlang::list2(...)
  if (length(profiles) == 1 && rlang::is_bare_list(profiles[[1]])) {
    profiles <- profiles[[1]]
  }
  # Names would be taken for names of tables and rows below.
  profiles <- unname(profiles)
  for (i in seq_along(profiles)) {
    if (!is_profile(profiles[[i]])) {
      abort_argument(c(
        paste0("Argument ", i, " must be a profile, not ", describe_object(profiles[[i]]), "."),
        i = profile_hint(profiles[[i]])
      ), call)
    }
  }
  profiles <- lapply(profiles, function(x) {
    x <- as_profile(x, call)
    if (identical(profile_version(x), "1.0")) as_v2(x, call) else x
  })
  bind_profiles(profiles, call)
}

# Checks profiles of version 2.0 and binds the rows of their tables. The core processes the tables and
# columns of the schema; user-defined columns and tables are combined here. `close_gaps`: whether `depth` is
# renumbered.
bind_profiles <- function(profiles, call, own = own_columns_of(profiles), close_gaps = FALSE) {
  if (length(profiles) == 0) {
    empty <- data_model()$required
    empty$meta <- tibble::tibble(key = "version", value = "2.0")
    profiles <- list(empty)
  }
  if (length(own) == 0) {
    result <- rust(rust_combine(profiles, NULL, close_gaps, lazy_columns(call)), call)
    return(mark_session_of(new_profile_data(result$tables, "2.0"), profiles))
  }
  compared <- intersect(names(own), c("meta", data_model()$merged, data_model()$attributes))
  groups <- with_validation(profiles, call, lapply(rlang::set_names(compared), function(table) {
    group_rows(profiles, table, own[[table]], call)
  }))
  result <- rust(rust_combine(profiles, groups, close_gaps, lazy_columns(call)), call)
  tables <- result$tables
  for (table in names(own)) {
    rows <- bind_tables(profiles, table, own[[table]], result$ids, call)
    if (!is.null(result$kept[[table]])) {
      rows <- vctrs::vec_slice(rows, result$kept[[table]])
    }
    tables[[table]] <- tibble::new_tibble(c(tables[[table]], rows), nrow = nrow(rows))
  }
  mark_session_of(new_profile_data(tables, "2.0"), profiles)
}

# The columns that are not in the schema, named by table; of tables that are not in the schema, all columns.
own_columns_of <- function(profiles) {
  known <- data_model()$column_names
  own <- list()
  for (x in profiles) {
    tables <- unclass(x)
    # The core refuses tables with other names.
    for (table in names(tables)[Encoding(names(tables)) != "bytes"]) {
      columns <- names(tables[[table]])
      of_schema <- known[[table]]
      if (is.null(of_schema) || anyNA(match(columns, of_schema))) {
        own[[table]] <- as.character(unique(c(own[[table]], columns[!columns %in% of_schema])))
      }
    }
  }
  own
}

# A number for each row, which is equal for rows with equal values in these columns. Ids are compared only within a
# profile.
group_rows <- function(profiles, table, columns, call) {
  keyed <- names(references(table, columns))
  rows <- bind_tables(profiles, table, setdiff(columns, keyed), list(), call)
  present <- Filter(function(x) !is.null(x[[table]]), profiles)
  sizes <- vapply(present, function(x) nrow(x[[table]]), 0L)
  for (column in keyed) {
    ids <- Map(function(x, size) x[[table]][[column]] %||% rep(NA, size), present, sizes)
    ids <- lapply(ids, as_ids, table, column, call)
    of <- ifelse(is.na(unlist(ids)), NA, rep(seq_along(sizes), sizes))
    rows[[column]] <- tibble::tibble(of = of, id = unlist(ids))
  }
  as.integer(vctrs::vec_group_id(rows))
}

# Binds these columns of one table of all profiles. `ids`: the new ids of the tables that the columns refer to.
bind_tables <- function(profiles, table, columns, ids, call) {
  present <- vapply(profiles, function(x) !is.null(x[[table]]), TRUE)
  profiles <- profiles[present]
  parts <- lapply(profiles, `[[`, table)
  if (!all(vapply(parts, is.data.frame, TRUE))) {
    abort_invalid("must be a data frame", table, call = call)
  }
  sizes <- vapply(parts, nrow, 0L)
  if (sum(as.numeric(sizes)) > .Machine$integer.max) {
    abort_unsupported(paste0("Table `", table, "` would have more rows than a data frame can have."), call)
  }
  # The method `[[` of tibbles is slow if it is called for each column of each profile.
  parts <- lapply(parts, unclass)
  keys <- references(table, columns)
  out <- lapply(rlang::set_names(columns), function(column) {
    pieces <- Map(function(part, size) {
      part[[column]] %||% vctrs::unspecified(size)
    }, parts, sizes)
    if (column %in% names(keys)) {
      bind_ids(pieces, profiles, ids[[keys[[column]]]][present], table, column, call)
    } else {
      tryCatch(vctrs::vec_c(!!!pieces), vctrs_error_incompatible_type = function(e) {
        typed <- Filter(function(piece) !inherits(piece, "vctrs_unspecified"), pieces)
        types <- unique(vapply(typed, vctrs::vec_ptype_full, ""))
        rule <- paste("cannot be both", paste(types, collapse = " and "))
        abort_invalid(rule, table, column, call = call)
      })
    }
  })
  tibble::new_tibble(out, nrow = sum(sizes))
}

bind_ids <- function(pieces, profiles, new, table, column, call) {
  key <- keys_of(column)
  pieces <- lapply(pieces, as_ids, table, column, call)
  old <- lapply(profiles, ids_of, key)
  new <- new %||% rep(list(integer()), length(profiles))
  bound <- rename_ids(pieces, old, new, key, call)
  check_resolved(unlist(pieces), bound, table, column, call)
  bound
}
