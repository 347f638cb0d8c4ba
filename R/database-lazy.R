# Lazy tables of profiles, and their summary, which the database computes.

#' Query profiles in a database or a data set
#'
#' `tbl_profile()` returns the tables of [copy_profile_to()] as lazy tables of dbplyr, for selected runs, or the tables of
#' [write_profile_dataset()], for selected rows. The engine computes the results of `dplyr` verbs and of `summary()`.
#' Use [profile_from_con()] to load profiles into memory.
#'
#' SQLite does not wait for writers by default. Since the tables are read later, `tbl_profile()` sets the busy
#' timeout of an SQLite connection to one minute, unless it is longer already.
#'
#' @inheritParams copy_profile_to
#' @param ... For `tbl_profile()`, conditions on the columns of `sources`, or of `samples` and `day` of a data set, as in
#'   `dplyr::filter()`.
#'   For `print()`, arguments of `format()`. Otherwise, must be empty.
#' @param object,x A value of `tbl_profile()`.
#' @param n The number of sources to show, by default 3; `Inf` for all.
#' @param width The width of the lines, by default the width of the console.
#' @param type The sample type to sum.
#'
#' @return `tbl_profile()`: a list of class `tbl_profile` with a lazy table for each of the seven tables. Ids are the
#'   ids in the database. `locations` and `functions` contain the rows of all runs. For a data set, its tables `samples`,
#'   `frames` and `labels`, with the column `day`.
#'
#'   `summary()`: a lazy table with a row for each function, and columns `name`, `self`, `total`, `self_share` and
#'   `total_share`, as in [summary.profile_data()], in no particular order. Use `dplyr::collect()` to load it. `name` is
#'   `NA` for code without symbols. Shares of differences are always relative to the sum of absolute values.
#'
#'   `print()`: `x`, invisibly. `format()`: a character vector, a string for each line.
#'
#' @section Joins:
#' Join tables by the id that they have in common, see [profile_data]. `.version` in the example is a column of `sources`
#' that was added before the profiles were stored. Other tables of the database, such as `.resource_attributes` with the
#' versions of services, are available as `dplyr::tbl(con, ".resource_attributes")`.
#'
#' Count or sum before you join more tables, so that the database joins few rows. dbplyr 2.3.0, the version of Debian
#' 12, also needs this: it takes columns from the wrong table if more than two joins follow each other, which is fixed
#' in dbplyr 2.3.1.
#'
#' @section Errors:
#' The errors of [summary.profile_data()], such as `profile_error_unsupported` if the values of `type` cannot be summed.
#' @export
#' @examplesIf rlang::is_installed(c("DBI", "RSQLite", "dplyr", "dbplyr"))
#' con <- DBI::dbConnect(RSQLite::SQLite())
#' path <- system.file("samples/rprof", c("1.out", "memory.out"), package = "profile")
#' for (i in 1:2) {
#'   x <- read_rprof(path[[i]])
#'   # A column of our own
#'   x$sources$.version <- c("1.0", "1.1")[[i]]
#'   copy_profile_to(con, x)
#' }
#'
#' runs <- tbl_profile(con, source_type == "rprof")
#' runs
#' summary(runs) |>
#'   dplyr::arrange(dplyr::desc(self)) |>
#'   head(3)
#'
#' # Samples by run
#' dplyr::count(runs$samples, source_id)
#'
#' # Self by version and function: the frames at depth 1
#' runs$sample_locations |>
#'   dplyr::filter(depth == 1) |>
#'   dplyr::inner_join(runs$samples, by = "sample_id") |>
#'   dplyr::inner_join(runs$sources, by = "source_id") |>
#'   dplyr::count(.version, location_id) |>
#'   dplyr::inner_join(runs$locations, by = "location_id") |>
#'   dplyr::inner_join(runs$functions, by = "function_id") |>
#'   dplyr::count(.version, name, wt = n, name = "self") |>
#'   dplyr::arrange(dplyr::desc(self))
#'
#' # Total by version and function: each function once for a sample
#' runs$sample_locations |>
#'   dplyr::inner_join(runs$locations, by = "location_id") |>
#'   dplyr::inner_join(runs$functions, by = "function_id") |>
#'   dplyr::distinct(sample_id, name) |>
#'   dplyr::inner_join(runs$samples, by = "sample_id") |>
#'   dplyr::inner_join(runs$sources, by = "source_id") |>
#'   dplyr::count(.version, name, name = "total") |>
#'   dplyr::arrange(dplyr::desc(total))
#' DBI::dbDisconnect(con)
tbl_profile <- function(con, ..., schema = NULL) {
  call <- rlang::current_env()
  if (!missing(con) && is_dataset(con)) {
    return(structure(dataset_tables(con, rlang::enquos(...), call), class = "tbl_profile"))
  }
  check_database(con, schema, call)
  for (package in c("dplyr", "dbplyr")) {
    need_package(package, call)
  }
  conditions <- rlang::enquos(...)
  # The database computes results later, without a transaction, since stored runs do not change. SQLite must wait for
  # writers then, too.
  wait_for_others(con)
  ids <- in_transaction(con, reading = TRUE, call = call, {
    chosen_sources(con, conditions, schema, call)
  })
  names <- names(data_model()$required)
  tables <- lapply(rlang::set_names(names), function(table) {
    columns <- list_fields(con, schema, table)
    columns <- columns[!is_of_layout(table, columns)]
    # `locations` are not filtered by run, since that would require a scan of all frames. Joins do it when it is needed.
    shared <- table %in% c("locations", "functions")
    chosen <- if (shared) "" else where_sources(con, schema, table, columns, ids)
    select_lazily(con, schema, table, columns, chosen)
  })
  structure(tables, stored = lazy_sets(con, schema, ids), class = "tbl_profile")
}

select_lazily <- function(con, schema, table, columns, where = "") {
  names <- paste(DBI::dbQuoteIdentifier(con, columns), collapse = ", ")
  dplyr::tbl(con, dbplyr::sql(paste("SELECT", names, "FROM", quoted(con, schema, table), where)), vars = columns)
}

# The tables for a summary, which first sums the values of one type by stack. There are far fewer stacks than rows in
# `sample_values` and `sample_locations`. NULL for databases of earlier versions.
lazy_sets <- function(con, schema, ids) {
  if (is_old_layout(list_tables(con, schema))) {
    return(NULL)
  }
  fields <- c("sample_id", "source_id", list_fields(con, schema, "samples"))
  columns <- unique(fields[fields %in% c("sample_id", "source_id") | is_of_layout("samples", fields)])
  list(
    types = value_types(con, schema),
    samples = select_lazily(con, schema, "samples", columns, where_sources(con, schema, "samples", columns, ids)),
    others = select_lazily(con, schema, ".other_values", c("sample_id", "type", "unit", "value")),
    frames = select_lazily(con, schema, ".stack_locations", c("stack_id", "depth", "location_id"))
  )
}

#' @rdname tbl_profile
#' @export
format.tbl_profile <- function(x, ..., n = NULL, width = NULL) {
  call <- text_call()
  n <- check_shown(n, call) %||% 3
  width <- line_width(width, call)
  if (is_tbl_dataset(x)) {
    return(shorten(format_dataset(x, width, n), width))
  }
  samples <- dplyr::collect(dplyr::count(x$samples))$n
  lines <- c(
    "<profile 2.0 in a database>",
    paste0("Samples:   ", format_count(as.numeric(samples))),
    format_sources(dplyr::collect(x$sources), width, n = n)
  )
  shorten(lines, width)
}

#' @rdname tbl_profile
#' @export
summary.tbl_profile <- function(object, ..., type = "samples") {
  call <- call_without_dots()
  if (!is_text(type)) {
    abort_argument("`type` must be one string, the name of a sample type.", call)
  }
  .data <- rlang::.data
  if (is_tbl_dataset(object)) {
    stacks <- dataset_stacks(object, type)
    frames <- dplyr::inner_join(stacks$frames, stacks$values, by = "stack_id")
  } else {
    check_summable(object, type, call)
    stacks <- stacks_with_values(object, type)
    names <- dplyr::inner_join(
      dplyr::select(object$locations, "location_id", "function_id"),
      dplyr::select(object$functions, "function_id", "name"),
      by = "function_id"
    )
    # Only stacks with a value. An address without a symbol has no name.
    frames <- dplyr::inner_join(stacks$frames, stacks$values, by = "stack_id")
    frames <- dplyr::left_join(frames, names, by = "location_id")
  }
  innermost <- dplyr::summarise(
    dplyr::group_by(stacks$frames, .data$stack_id),
    depth = min(.data$depth, na.rm = TRUE), .groups = "drop"
  )
  self <- dplyr::inner_join(frames, innermost, by = c("stack_id", "depth"))
  # A function that occurs several times on a stack is counted once.
  total <- dplyr::distinct(frames, .data$stack_id, .data$name, .data$value, .data$size)
  sum_by_name <- function(rows) {
    rows <- dplyr::group_by(rows, .data$name)
    dplyr::summarise(
      rows,
      # A column named `sum` would be taken for the function.
      amount = sum(.data$value, na.rm = TRUE), size = sum(.data$size, na.rm = TRUE), .groups = "drop"
    )
  }
  sums <- dplyr::left_join(
    dplyr::select(sum_by_name(total), "name", total = "amount"),
    dplyr::rename(sum_by_name(self), self = "amount"),
    by = "name", na_matches = "na"
  )
  sums <- dplyr::mutate(sums, self = dplyr::coalesce(.data$self, 0), size = dplyr::coalesce(.data$size, 0))
  # Each sample with a frame is part of the self of one function. Shares are relative to the sum of absolute values.
  dplyr::transmute(
    sums,
    name = .data$name, self = .data$self, total = .data$total,
    self_share = .data$self / sum(.data$size, na.rm = TRUE),
    total_share = .data$total / sum(.data$size, na.rm = TRUE)
  )
}

# The frames of stacks, and for each stack the sum of its values and of their absolute values. In databases of earlier
# versions each sample has its own stack.
stacks_with_values <- function(object, type) {
  .data <- rlang::.data
  stored <- attr(object, "stored")
  if (is.null(stored)) {
    values <- dplyr::filter(object$sample_values, .data$type == !!type)
    return(list(
      values = dplyr::transmute(values, stack_id = .data$sample_id, .data$value, size = abs(.data$value)),
      frames = dplyr::select(object$sample_locations, stack_id = "sample_id", "depth", "location_id")
    ))
  }
  samples <- dplyr::rename(stored$samples, stack_id = ".stack_id")
  others <- dplyr::filter(stored$others, .data$type == !!type)
  others <- dplyr::inner_join(others, dplyr::select(samples, "sample_id", "stack_id"), by = "sample_id")
  parts <- list(dplyr::select(others, "stack_id", "value"))
  numbers <- stored$types$number[stored$types$type == type]
  for (column in intersect(value_column(numbers), colnames(samples))) {
    part <- dplyr::select(samples, "stack_id", value = dplyr::all_of(column))
    parts <- c(parts, list(dplyr::filter(part, !is.na(.data$value))))
  }
  values <- dplyr::group_by(Reduce(dplyr::union_all, parts), .data$stack_id)
  list(
    values = dplyr::summarise(
      values,
      size = sum(abs(.data$value), na.rm = TRUE), value = sum(.data$value, na.rm = TRUE), .groups = "drop"
    ),
    frames = stored$frames
  )
}

# The unit is queried for the names of such types only.
check_summable <- function(object, type, call) {
  known <- data_model()$sample_types
  unit <- known$unit[known$type == type & !known$summable]
  if (length(unit) == 0) {
    return()
  }
  .data <- rlang::.data
  found <- dplyr::filter(object$sample_values, .data$type == !!type, .data$unit %in% !!unit)
  if (nrow(dplyr::collect(utils::head(found, 1))) > 0) {
    allocated <- known$type[known$role == "allocated"][[1]]
    abort_unsupported(paste0(
      "`", type, "` cannot be summed: it is the memory in use at each sample, ",
      "not the memory allocated since the previous one. Use `type = \"", allocated, "\"`."
    ), call)
  }
}
