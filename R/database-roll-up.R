# Rolls up old runs: the runs of a service in a day become one run, in which each stack occurs once.
#
# A query about several weeks has to read all samples of these weeks. After some time the minute of a sample no longer
# matters, so samples with the same stack and labels are replaced by one sample with the sums of their values. The
# result is a profile like any other, in the same tables, so queries and functions work as before.

#' Sum up old profiles in a database or a data set
#'
#' @description
#' `roll_up_profiles()` replaces the runs of each day, hour or minute by one run. It has one sample for each distinct stack
#' and set of labels, with the sums of the values. A service that sends a profile each minute has 1,440 runs a day, and
#' repeats its stacks in all of them. The time of a query grows with the number of samples; after the roll-up, it grows
#' with the number of distinct stacks.
#'
#' The sums for functions, lines, labels, services and versions do not change, nor does anything that is computed from
#' them, such as `summary()` and flame graphs. The time of day of each sample is lost, and so is the number of samples,
#' unless they have a value of type `samples`.
#'
#' @details
#' Days and hours are in UTC. A run belongs to the period in which it began.
#'
#' Runs are summed up if they have the same scope, that is, the same service, version and other attributes of the
#' resource (or, without a scope, the same `source_uri`), the same sample types, and the same values in the other
#' columns of `sources`, including your own. In the result:
#'
#' - `source_timestamp` is when the first of the runs began, and `.duration_nanos` is the sum of their durations;
#' - `source_uri`, `.profile_id`, `.dropped_attributes_count`, and rows of `.source_attributes`, `.comments` and other
#'   tables with a `source_id`, including your own, are kept if all runs have them in common; others, such as process
#'   ids that differ, are dropped, and so is `.files`;
#' - samples have no `.timestamp`, trace or span. Samples that differ in other columns are not summed.
#'
#' A run is not changed if it is the only one of its day, has no timestamp, or has samples that cannot be summed:
#' samples with the memory in use (`vsize_small`, `vsize_large` and `nodes` of `Rprof()`), samples that your own tables
#' refer to, and samples whose values have columns of your own.
#'
#' You can call the function at any time and repeatedly, for example each night. The next call adds runs that arrive
#' late. Each transaction covers some thousand runs, so that others can write in between. After an error or Ctrl-C, some
#' days may be summed up and others not, but no day is summed up in part.
#'
#' The database reuses the space for new profiles. To return it to the system, run `VACUUM` afterwards.
#'
#' ## Data sets
#'
#' In a data set of [write_profile_dataset()], the many small files of each day that has passed are replaced by few large
#' ones, some services at a time. The result takes a small part of the space and of the time of queries, so do this each
#' night with `period = "minute"`. Sums of longer periods have no `trace_id`.
#'
#' Others can write and query meanwhile, and nobody sees a day twice or not at all: what is replaced is removed by a call
#' an hour later, and a query may take as long. A file that arrives after its day was compacted, for example from a
#' machine with a wrong clock, is read too, and the next call sums it up with the others. If the process is killed, the
#' next call continues. The data set must be on a file system, since object storage cannot rename folders.
#'
#' @inheritParams copy_profile_to
#' @param con A connection, from `DBI::dbConnect()`, or the path of a data set.
#' @param before A date-time or a date: runs whose `source_timestamp` is earlier are summed up. Runs without a
#'   timestamp stay as they are. In a data set, days of writing that ended at that time, and an hour ago.
#' @param ... Conditions on the columns of `sources`, as in `dplyr::filter()`: only runs that satisfy all of them are
#'   summed up. Must be empty for a data set.
#' @param period The period whose runs become one run: `"day"`, `"hour"` or `"minute"`. Minutes and hours can be summed up
#'   to longer periods later.
#'
#' @return The number of runs that became part of another run, invisibly; for a data set, the number of days that were
#'   summed up.
#'
#' @inheritSection prune_profiles Errors
#' @seealso [prune_profiles()] to remove old runs; `vignette("always-on")` for queries
#' @export
#' @examplesIf rlang::is_installed(c("DBI", "RSQLite"))
#' con <- DBI::dbConnect(RSQLite::SQLite())
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"), source_uri = "job")
#' for (minute in 1:3) {
#'   x$sources$source_timestamp <- as.numeric(as.POSIXct("2026-01-01", tz = "UTC")) + 60 * minute
#'   copy_profile_to(con, x)
#' }
#' DBI::dbGetQuery(con, "SELECT count(*) AS samples, count(DISTINCT source_id) AS runs FROM samples")
#'
#' # What is older than yesterday:
#' roll_up_profiles(con, before = Sys.Date() - 1)
#' DBI::dbGetQuery(con, "SELECT count(*) AS samples, count(DISTINCT source_id) AS runs FROM samples")
#' DBI::dbDisconnect(con)
roll_up_profiles <- function(con, before, ..., period = c("day", "hour", "minute"), schema = NULL) {
  call <- rlang::current_env()
  period <- check_choice(period, c("day", "hour", "minute"), "period", call)
  if (!missing(con) && is_dataset_path(con)) {
    rlang::check_dots_empty(call = call)
    return(roll_up_dataset(con, check_before(before, call), period, call))
  }
  check_database(con, schema, call)
  conditions <- older_than(before, rlang::enquos(...), call)
  seconds <- dataset_periods[[period]]
  runs <- in_transaction(con, reading = TRUE, call = call, {
    there <- list_tables(con, schema)
    if (".next_ids" %in% there) {
      check_layout(there, call)
    }
    runs_of_groups(con, schema, conditions, seconds, call)
  })
  removed <- 0
  parts <- parts_of_groups(runs)
  report <- progress_report("Summing runs", "tasks")
  for (part in parts) {
    show_progress(report, removed, nrow(runs))
    removed <- removed + in_transaction(con, call = call, {
      wait_for_writers(con, schema)
      sum_runs(con, schema, part, call)
    })
  }
  invisible(removed)
}

# Columns of `sources` in which the runs of a group may differ. The common value stays; others are dropped.
columns_of_one_run <- c("source_uri", ".profile_id", ".dropped_attributes_count")

# Columns that get a new value for the group, or none, since the values of a single run do not apply to all samples.
columns_of_recording <- c(
  "source_id", "source_timestamp", ".time_nanos", ".duration_nanos", ".duration_nanos_exact",
  ".original_payload", ".original_payload_format"
)

# A table and columns of `samples` that are dropped. A row of `.files` has a position between samples, which no longer
# exist.
table_of_recording <- ".files"
columns_of_moment <- c(".timestamp", ".time_nanos", ".trace_id", ".span_id")

# ---- Which runs --------------------------------------------------------------------

# The `source_id` and the `group` of each run in a group of several runs. The first run of a group comes first.
runs_of_groups <- function(con, schema, conditions, seconds, call) {
  sources <- sources_matching(con, conditions, schema, call)
  same <- sources[setdiff(names(sources), c(columns_of_one_run, columns_of_recording))]
  same$time <- sources$source_timestamp %/% seconds
  same$types <- sample_types_of(con, schema, sources$source_id)
  same$uri <- sources$source_uri
  same$uri[!is.na(sources[[".scope_id"]])] <- NA
  # The values of samples are read last, and only of runs that are alike otherwise.
  alike <- which(vctrs::vec_duplicate_detect(same))
  sources <- slice_rows(sources, alike)
  same <- vctrs::vec_slice(same, alike)
  same$values <- value_types_of(con, schema, sources$source_id)
  runs <- tibble::new_tibble(
    list(source_id = sources$source_id, group = as.integer(vctrs::vec_group_id(same))),
    nrow = nrow(sources)
  )
  runs <- slice_rows(runs, order(runs$group, sources$source_timestamp, sources$source_id))
  slice_rows(runs, which(vctrs::vec_duplicate_detect(runs$group)))
}

# The sample types of each run as a text.
sample_types_of <- function(con, schema, source_ids) {
  texts <- rep("", length(source_ids))
  if (".sample_types" %in% list_tables(con, schema)) {
    rows <- select_rows(con, schema, ".sample_types")
    columns <- rows[setdiff(names(rows), c("source_id", ".row"))]
    kinds <- split(as.integer(vctrs::vec_group_id(columns)), rows$source_id)
    found <- match(source_ids, as.numeric(names(kinds)))
    texts[!is.na(found)] <- vapply(kinds, paste, "", collapse = " ")[found[!is.na(found)]]
  }
  texts
}

# The types and units of the values that each run has, as a text. A sample with values of one type in two units would
# not be valid.
value_types_of <- function(con, schema, source_ids) {
  columns <- Filter(is_value_column, list_fields(con, schema, "samples"))
  texts <- rep("", length(source_ids))
  names <- quoted_names(con, columns)
  is_there <- paste0("max(CASE WHEN ", names, " IS NULL THEN 0 ELSE 1 END) AS ", names, recycle0 = TRUE)
  select <- paste(c(paste0("CAST(source_id AS ", dialect(con)$double, ") AS source_id"), is_there), collapse = ", ")
  for (by_source in lists_of_ids(DBI::dbQuoteIdentifier(con, "source_id"), source_ids)) {
    found <- DBI::dbGetQuery(con, paste(
      "SELECT", select, "FROM", quoted(con, schema, "samples"), "WHERE", by_source, "GROUP BY source_id"
    ))
    texts[match(found$source_id, source_ids)] <- do.call(paste, c(list(rep("", nrow(found))), unname(found[-1])))
  }
  texts
}

# Groups that are summed up in one transaction.
parts_of_groups <- function(runs, size = 2000L) {
  first <- match(runs$group, runs$group)
  vctrs::vec_split(runs, first %/% size)$val
}

# ---- Summing up ----------------------------------------------------------------------

# Sums up the runs of some groups, and returns the number of removed runs.
sum_runs <- function(con, schema, runs, call) {
  fields <- own_fields(con, schema)
  table <- function(name) quoted(con, schema, name)
  # Temporary tables, since lists of ids could exceed the maximum length of a statement.
  DBI::dbExecute(con, "CREATE TEMPORARY TABLE profile_roll_up (source_id BIGINT, kept BIGINT)")
  chosen <- "source_id IN (SELECT source_id FROM profile_roll_up)"
  list_runs <- function(source_id, kept) {
    DBI::dbExecute(con, "DELETE FROM profile_roll_up")
    rows <- data.frame(source_id = wide_ids(source_id, NULL), kept = wide_ids(kept, NULL))
    insert_rows(con, NULL, "profile_roll_up", rows)
    # PostgreSQL never analyses temporary tables by itself, and would guess the number of runs.
    if (is_postgres(con)) DBI::dbExecute(con, "ANALYZE profile_roll_up")
  }
  list_runs(runs$source_id, runs$source_id)
  # Another process may have removed some of these runs meanwhile.
  sources <- select_rows_where(con, schema, "sources", paste("WHERE", chosen))
  whole <- runs_that_stay(con, schema, fields, chosen)
  runs <- slice_rows(runs, which(runs$source_id %in% setdiff(sources$source_id, whole)))
  runs$kept <- runs$source_id[match(runs$group, runs$group)]
  runs <- slice_rows(runs, which(runs$kept %in% runs$kept[runs$source_id != runs$kept]))
  list_runs(runs$source_id, runs$kept)

  sum_samples(con, schema, fields$samples, chosen, call)
  if (".mappings" %in% names(fields)) {
    kept <- paste0("SELECT kept FROM profile_roll_up WHERE profile_roll_up.source_id = ", table(".mappings"), ".source_id")
    DBI::dbExecute(con, paste0("UPDATE ", table(".mappings"), " SET source_id = (", kept, ") WHERE ", chosen))
  }
  gone <- "source_id IN (SELECT source_id FROM profile_roll_up WHERE source_id <> kept)"
  for (name in setdiff(names(fields), c("samples", "sources", ".mappings"))) {
    if (name == table_of_recording) {
      delete_rows(con, schema, name, chosen)
    } else if ("source_id" %in% fields[[name]]) {
      drop_uncommon_rows(con, schema, name, runs, chosen)
      delete_rows(con, schema, name, gone)
    }
  }
  update_sources(con, schema, sources, runs)
  delete_rows(con, schema, "sources", gone)
  DBI::dbExecute(con, paste(dialect(con)$drop_temporary, "profile_roll_up"))
  sum(runs$source_id != runs$kept)
}

# The chosen runs with samples that cannot be summed.
runs_that_stay <- function(con, schema, fields, chosen) {
  types <- value_types(con, schema)
  levels <- types$number[has_role(types$type, types$unit, "level")]
  levels <- quoted_names(con, intersect(value_column(levels), fields$samples))
  has_sample <- vapply(fields, function(columns) "sample_id" %in% columns, TRUE)
  others <- vapply(setdiff(names(fields)[has_sample], c("samples", table_of_recording)), quoted, "", con = con, schema = schema)
  reasons <- c(paste(levels, "IS NOT NULL", recycle0 = TRUE), paste0("sample_id IN (SELECT sample_id FROM ", others, ")", recycle0 = TRUE))
  if (length(reasons) == 0) {
    return(double())
  }
  DBI::dbGetQuery(con, paste(
    "SELECT DISTINCT CAST(source_id AS", dialect(con)$double, ") AS source_id FROM", quoted(con, schema, "samples"),
    "WHERE", chosen, "AND (", paste(reasons, collapse = " OR "), ")"
  ))$source_id
}

# Replaces the samples of the chosen runs. A sum has the id of the first sample in it.
sum_samples <- function(con, schema, fields, chosen, call) {
  is_value <- is_value_column(fields)
  values <- quoted_names(con, fields[is_value])
  same <- setdiff(fields[!is_value], c("sample_id", "source_id", columns_of_moment))
  same <- quoted_names(con, same)
  columns <- paste(c("sample_id", "source_id", same, values), collapse = ", ")
  by <- c("r.kept", paste0("s.", same, recycle0 = TRUE))
  sums <- paste0("sum(s.", values, ") AS ", values, recycle0 = TRUE)
  selected <- c("min(s.sample_id) AS sample_id", paste(by, "AS", c("source_id", same)), sums)
  samples <- quoted(con, schema, "samples")
  DBI::dbExecute(con, paste(
    "CREATE TEMPORARY TABLE profile_sums AS SELECT", paste(selected, collapse = ", "),
    "FROM", samples, "AS s JOIN profile_roll_up AS r ON r.source_id = s.source_id",
    "GROUP BY", paste(by, collapse = ", ")
  ))
  check_sums(con, values, call)
  delete_rows(con, schema, "samples", chosen)
  DBI::dbExecute(con, paste0("INSERT INTO ", samples, " (", columns, ") SELECT ", columns, " FROM profile_sums"))
  DBI::dbExecute(con, paste(dialect(con)$drop_temporary, "profile_sums"))
}

# Databases sum values beyond the range of a double to infinity, which no profile may contain.
check_sums <- function(con, values, call) {
  if (length(values) == 0) {
    return()
  }
  largest <- DBI::dbGetQuery(con, paste("SELECT", paste0("max(abs(", values, "))", collapse = ", "), "FROM profile_sums"))
  if (any(is.infinite(unlist(largest)))) {
    abort_unsupported("The sums of values are beyond the range of a double.", call)
  }
}

# Removes rows of the run that is kept, unless all runs of its group have them.
drop_uncommon_rows <- function(con, schema, table, runs, chosen) {
  rows <- select_rows_where(con, schema, table, paste("WHERE", chosen))
  kept <- runs$kept[match(rows$source_id, runs$source_id)]
  content <- rows[setdiff(names(rows), c("source_id", ".row"))]
  content$kept <- kept
  of_run <- tibble::new_tibble(list(content = as.integer(vctrs::vec_group_id(content)), run = rows$source_id), nrow = nrow(rows))
  having <- tabulate(vctrs::vec_unique(of_run)$content)
  size <- table(runs$kept)
  uncommon <- rows$source_id == kept & having[of_run$content] < size[as.character(kept)]
  for (by_row in lists_of_ids(DBI::dbQuoteIdentifier(con, ".row"), rows$.row[uncommon])) {
    delete_rows(con, schema, table, by_row)
  }
}

# Updates the columns of the runs that are kept.
update_sources <- function(con, schema, sources, runs) {
  sources <- slice_rows(sources, match(runs$source_id, sources$source_id))
  columns <- intersect(names(sources), c(columns_of_one_run, columns_of_recording))
  first <- split(seq_len(nrow(runs)), runs$kept)
  for (rows in first) {
    set <- vapply(columns, FUN.VALUE = "", function(column) {
      values <- sources[[column]][rows]
      value <- if (column %in% columns_of_one_run) {
        if (vctrs::vec_unique_count(values) == 1) values[[1]] else NA
      } else {
        switch(column, .duration_nanos = sum(values), .time_nanos = values[[1]], NA)
      }
      literal <- if (is.na(value)) "NULL" else literals(value, con)
      paste(DBI::dbQuoteIdentifier(con, column), "=", literal)
    })
    set <- set[!columns %in% c("source_id", "source_timestamp")]
    kept <- format(runs$kept[[rows[[1]]]], scientific = FALSE)
    DBI::dbExecute(con, paste("UPDATE", quoted(con, schema, "sources"), "SET", paste(set, collapse = ", "), "WHERE source_id =", kept))
  }
}
