# Combines profiles: binds the rows of their tables and assigns new ids.

#' Combine profiles
#'
#' Combines any number of profiles into one, with all their samples, in order, and all information about
#' their sources.
#'
#' @details
#' The profiles may have different versions, origins and sample types; each sample keeps its own values.
#' Each source remains a separate source, even if the same profile is given twice.
#'
#' Ids are assigned anew, from 1. Functions that are equal in all columns are stored once, and so are equal
#' locations and mappings with equal attributes, and equal rows of `meta`. Resources and scopes are not
#' merged.
#'
#' Columns and tables with a leading dot are kept, including your own. A column that is missing from a
#' profile is `NA` for its rows. Columns named `source_id`, `sample_id`, `location_id`, `function_id`,
#' `mapping_id`, `resource_id` or `scope_id` are updated to the new ids.
#'
#' Grouping makes no difference: `combine_profiles(a, b, c)` equals
#' `combine_profiles(combine_profiles(a, b), c)`. The time required is proportional to the number of rows.
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
#' @seealso [copy_profile_to()] for more profiles than fit into memory.
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
  # What follows would take names for those of tables and rows.
  profiles <- unname(profiles)
  for (i in seq_along(profiles)) {
    if (!is_profile(profiles[[i]])) {
      abort_argument(paste0("Argument ", i, " is not a profile."), call)
    }
  }
  profiles <- lapply(profiles, function(x) settle_files(as_v2(x, call)))
  bind_profiles(profiles, call)
}

# Profiles whose ids resolve, under each other.
bind_profiles <- function(profiles, call) {
  known <- data_model()
  empty <- known$required
  empty$meta <- tibble::tibble(key = "version", value = "2.0")
  profiles <- c(list(empty), profiles)
  tables <- unique(unlist(lapply(profiles, names)))
  in_order <- c(names(known$required), names(known$optional))
  tables <- union(intersect(in_order, tables), tables)
  bound <- rlang::set_names(vector("list", length(tables)), tables)
  ids <- list()
  for (table in parents_first(tables)) {
    in_order <- c(names(known$required[[table]]), names(known$optional[[table]]))
    rows <- bind_tables(profiles, table, in_order, ids, call)
    key <- names(data_model()$keys)[match(table, data_model()$keys)]
    if (table == "meta") {
      rows <- vctrs::vec_unique(rows)
    } else if (!is.na(key)) {
      what <- rows[names(rows) != key]
      what$attributes <- attributes_in_words(profiles, table, key, call)
      merged <- table %in% data_model()$merged
      first <- if (merged) vctrs::vec_duplicate_id(what) else seq_len(nrow(rows))
      kept <- first == seq_along(first)
      new <- cumsum(kept)[first]
      sizes <- vapply(profiles, function(x) NROW(x[[table]]), 0L)
      ids[[key]] <- split_by_size(new, sizes)
      if (!all(kept)) {
        rows <- vctrs::vec_slice(rows, kept)
      }
      rows[[key]] <- seq_len(nrow(rows))
    }
    if (table %in% data_model()$attributes) {
      rows <- vctrs::vec_unique(rows)
    }
    bound[[table]] <- rows
  }
  new_profile_data(bound, "2.0")
}

# Which attributes each row has, as one text for equal ones; `NULL` where none has any.
attributes_in_words <- function(profiles, table, key, call) {
  beside <- data_model()$attributes[table]
  if (is.na(beside) || !any(vapply(profiles, function(x) NROW(x[[beside]]) > 0, TRUE))) {
    return(NULL)
  }
  sizes <- vapply(profiles, function(x) NROW(x[[table]]), 0L)
  attributes <- lapply(profiles, function(x) x[[beside]])
  rows <- Map(function(x, attributes, before) {
    ids <- as_ids(attributes[[key]] %||% integer(), beside, key, call)
    rows_of_ids(ids, x, key, call) + before
  }, profiles, attributes, cumsum(sizes) - sizes)
  # Whatever stands in them, equal attributes get equal numbers.
  said <- vctrs::vec_rbind(!!!lapply(attributes, function(x) x[setdiff(names(x), key)]))
  numbers <- split(vctrs::vec_group_id(said), factor(unlist(rows), seq_len(sum(sizes))))
  vapply(numbers, function(numbers) paste(sort(numbers), collapse = " "), "", USE.NAMES = FALSE)
}

# One table of all profiles. `in_order`: the columns that it is known to have; `ids`:
# the new ids of the tables it refers to.
bind_tables <- function(profiles, table, in_order, ids, call) {
  there <- vapply(profiles, function(x) !is.null(x[[table]]), TRUE)
  profiles <- profiles[there]
  parts <- lapply(profiles, `[[`, table)
  if (!all(vapply(parts, is.data.frame, TRUE))) {
    abort_invalid("must be a data frame", table, call = call)
  }
  sizes <- vapply(parts, nrow, 0L)
  if (sum(as.numeric(sizes)) > .Machine$integer.max) {
    abort_profile(
      paste0("Table `", table, "` would have more rows than a data frame can have."),
      "profile_error_unsupported",
      call = call
    )
  }
  # A tibble's `[[` takes its time, column by column and profile by profile.
  parts <- lapply(parts, unclass)
  columns <- unique(unlist(lapply(parts, names)))
  columns <- union(intersect(in_order, columns), columns)
  keys <- references(table, columns)
  out <- lapply(rlang::set_names(columns), function(column) {
    pieces <- Map(function(part, size) {
      part[[column]] %||% vctrs::unspecified(size)
    }, parts, sizes)
    if (column %in% names(keys)) {
      bind_ids(pieces, profiles, ids[[keys[[column]]]][there], table, column, call)
    } else {
      tryCatch(vctrs::vec_c(!!!pieces), vctrs_error_incompatible_type = function(e) {
        said <- Filter(function(piece) !inherits(piece, "vctrs_unspecified"), pieces)
        types <- unique(vapply(said, vctrs::vec_ptype_full, ""))
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

split_by_size <- function(x, sizes) {
  ends <- cumsum(sizes)
  Map(function(end, size) x[seq.int(end - size + 1, length.out = size)], ends, sizes)
}
