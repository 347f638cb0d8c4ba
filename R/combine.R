# Several profiles as one: tables under each other, ids renamed on the way.

#' Combine profiles
#'
#' Puts any number of profiles into one, with all their samples, in order, and all
#' that is known about where they came from.
#'
#' @details
#' The profiles may be of either version, of different origin, and of different
#' sample types; a sample has the values that were measured for it. Every source
#' stays a source of its own, also when one profile is given twice.
#'
#' Ids are assigned anew, from 1. Functions that are equal in every column are
#' stored once, and so are locations and mappings that have the same attributes as well.
#' Resources and scopes stay those of their sources, also where they are equal. Columns and
#' tables with a leading dot come
#' along, a user's own as well: a column that one profile lacks is `NA` there, and
#' columns called `source_id`, `sample_id`, `location_id`, `function_id`, `mapping_id`,
#' `resource_id` or `scope_id` follow
#' the ids of those tables. Rows of `meta` that are equal are stored once.
#'
#' How the arguments are grouped makes no difference: `combine_profiles(a, b, c)` is
#' `combine_profiles(combine_profiles(a, b), c)`. The time it takes grows with the
#' number of rows only.
#'
#' @param ... Profiles ([profile_data], of either version, or a dm as
#'   [dm_from_profile()] gives it), or one list of them. Their names are ignored. None at all
#'   give a profile without samples.
#'
#' @return A profile of version 2.0.
#'
#' @section Errors:
#' `profile_error_invalid` when a profile breaks a rule of its version, or when
#' columns of the same name cannot be put under each other; `profile_error_argument`
#' when an argument is no profile; `profile_error_unsupported` when a table would get
#' more than 2^31 - 1 rows.
#'
#' @seealso [copy_profile_to()] for more profiles than memory can hold.
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
  empty <- known$tables
  empty$meta <- tibble::tibble(key = "version", value = "2.0")
  profiles <- c(list(empty), profiles)
  tables <- unique(unlist(lapply(profiles, names)))
  in_order <- c(names(known$tables), names(known$dotted))
  tables <- union(intersect(in_order, tables), tables)
  bound <- rlang::set_names(vector("list", length(tables)), tables)
  ids <- list()
  for (table in parents_first(tables)) {
    in_order <- c(names(known$tables[[table]]), names(known$dotted[[table]]))
    rows <- bind_tables(profiles, table, in_order, ids, call)
    key <- names(key_parents)[match(table, key_parents)]
    if (table == "meta") {
      rows <- vctrs::vec_unique(rows)
    } else if (!is.na(key)) {
      what <- rows[names(rows) != key]
      what$attributes <- attributes_in_words(profiles, table, key, call)
      merged <- table %in% merged_tables
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
    if (table %in% attribute_tables) {
      rows <- vctrs::vec_unique(rows)
    }
    bound[[table]] <- rows
  }
  new_profile_data(bound, "2.0")
}

# Which attributes each row has, as one text for equal ones; `NULL` where none has any.
attributes_in_words <- function(profiles, table, key, call) {
  beside <- attribute_tables[table]
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
