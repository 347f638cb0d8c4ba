# Sums up and removes the days of a database, see store-database.R.

roll_up_database <- function(con, schema, before, period, apart, call) {
  days <- in_transaction(con, reading = TRUE, call = call, {
    closed_days(days_of_database(con, schema), before, current_time())
  })
  report <- progress_report("Summing days", "tasks")
  summed <- 0
  for (i in seq_along(days)) {
    show_progress(report, i - 1, length(days))
    # A transaction for each day, so that others can write in between.
    summed <- summed + in_transaction(con, call = call, {
      store_lock(con, schema)
      sum_database_day(con, schema, days[[i]], period, apart, call)
    })
  }
  invisible(summed)
}

# The days on which rows were written.
days_of_database <- function(con, schema) {
  day <- DBI::dbQuoteIdentifier(con, "day")
  as.character(DBI::dbGetQuery(con, paste("SELECT DISTINCT", day, "FROM", quoted(con, schema, "profile_origins")))[[1]])
}

# Returns whether there was something to sum up.
sum_database_day <- function(con, schema, day, period, apart, call) {
  origins <- read_origins(con, schema, day)
  new <- summed_origins(origins, period, apart)
  kept <- keys_of_rows(new, call)
  if (identical(kept, origins$origin_key)) {
    return(FALSE)
  }
  # Minutes of the longest period that the day is summed up to.
  minutes <- max(dataset_periods[new$period]) / 60
  sums <- quoted(con, schema, "profile_sums")
  # In these engines, temporary tables outlive a rollback.
  if (dialect(con)$commits) DBI::dbExecute(con, "DROP TEMPORARY TABLE IF EXISTS profile_roll_up, profile_new")
  DBI::dbExecute(con, "CREATE TEMPORARY TABLE profile_roll_up (origin_key BIGINT, kept BIGINT)")
  keys <- data.frame(origin_key = wide_ids(origins$origin_key, call), kept = wide_ids(kept, call))
  insert_rows(con, NULL, "profile_roll_up", keys)
  # PostgreSQL never analyses temporary tables by itself, and would guess the number of origins.
  if (is_postgres(con)) DBI::dbExecute(con, "ANALYZE profile_roll_up")
  minute <- DBI::dbQuoteIdentifier(con, "minute")
  # A NULL that has the type of the column.
  trace <- if (minutes == 1) "s.trace_id" else "NULLIF(s.trace_id, s.trace_id)"
  # Before 1970, the remainder is negative.
  start <- sprintf("s.%1$s - ((s.%1$s %% %2$d + %2$d) %% %2$d)", minute, as.integer(minutes))
  by <- c("r.kept", start, "s.stack_key", "s.label_key", trace)
  columns <- names(store_tables$profile_sums)
  DBI::dbExecute(con, paste(
    "CREATE TEMPORARY TABLE profile_new AS SELECT", paste(by, "AS", quoted_names(con, columns[1:5]), collapse = ", "),
    ", sum(s.value) AS value, sum(s.sample_count) AS sample_count FROM", sums,
    "s JOIN profile_roll_up r ON r.origin_key = s.origin_key GROUP BY", paste(by, collapse = ", ")
  ))
  check_sums(con, call)
  delete_rows(con, schema, "profile_sums", "origin_key IN (SELECT origin_key FROM profile_roll_up)")
  all <- paste(quoted_names(con, columns), collapse = ", ")
  DBI::dbExecute(con, paste0("INSERT INTO ", sums, " (", all, ") SELECT ", all, " FROM profile_new"))
  delete_rows(con, schema, "profile_origins", "origin_key IN (SELECT origin_key FROM profile_roll_up)")
  for (table in c("profile_roll_up", "profile_new")) DBI::dbExecute(con, paste(dialect(con)$drop_temporary, table))
  rows <- tibble::add_column(new, origin_key = wide_ids(kept, call), .before = 1)[!duplicated(kept), ]
  insert_rows(con, schema, "profile_origins", rows)
  TRUE
}

# The origins of a day, with their keys as numbers.
read_origins <- function(con, schema, day) {
  columns <- store_tables$profile_origins
  key <- DBI::dbQuoteIdentifier(con, "origin_key")
  select <- c(paste("CAST(", key, "AS", dialect(con)$double, ") AS", key), quoted_names(con, names(columns)[-1]))
  rows <- DBI::dbGetQuery(con, paste(
    "SELECT", paste(select, collapse = ", "), "FROM", quoted(con, schema, "profile_origins"), "WHERE",
    DBI::dbQuoteIdentifier(con, "day"), "=", quoted_text(con, day)
  ))
  rows <- tibble::as_tibble(rlang::set_names(as.list(rows), names(columns)))
  is_text <- columns == "text"
  rows[is_text] <- lapply(rows[is_text], as.character)
  rows[!is_text] <- lapply(rows[!is_text], as.numeric)
  rows
}

# What origins become. What was summed up stays so.
summed_origins <- function(origins, period, apart) {
  new <- origins[names(origins) != "origin_key"]
  shorter <- is.na(new$period) | dataset_periods[new$period] < dataset_periods[[period]]
  new$period[shorter] <- period
  # All samples of a day are summed up to the same period.
  new$period[] <- names(which.max(dataset_periods[unique(new$period)]))
  # Also what came after the day was summed up, as in a data set: `plan_day()`.
  apart <- dataset_parts[max(match(c(apart, origins$apart), dataset_parts), na.rm = TRUE)]
  new$apart[] <- apart
  if (apart != "run") {
    new$run[] <- NA
    new$run_start[] <- NA
  }
  if (apart == "none") new$host[] <- NA
  new
}

# Databases sum values beyond the range of a double to infinity, which no profile may contain.
check_sums <- function(con, call) {
  if (any(is.infinite(DBI::dbGetQuery(con, "SELECT max(abs(value)) AS largest FROM profile_new")$largest))) {
    abort_sums(call)
  }
}

abort_sums <- function(call) {
  abort_unsupported("The sums of values are beyond the range of a double.", call)
}

prune_database <- function(con, schema, before, call) {
  in_transaction(con, call = call, {
    store_lock(con, schema)
    days <- closed_days(days_of_database(con, schema), before, current_time())
    if (length(days) > 0) {
      day <- DBI::dbQuoteIdentifier(con, "day")
      gone <- paste(day, "<=", quoted_text(con, max(days)))
      origins <- quoted(con, schema, "profile_origins")
      delete_rows(con, schema, "profile_sums", paste("origin_key IN (SELECT origin_key FROM", origins, "WHERE", gone, ")"))
      delete_rows(con, schema, "profile_origins", gone)
      # Nobody has used these later.
      delete_rows(con, schema, "profile_uses", gone)
      # Without DISTINCT, PostgreSQL would expect more rows than it can hash, and scan them for each row.
      unused <- function(table, key, by, column) {
        delete_rows(con, schema, table, paste(
          key, "NOT IN (SELECT DISTINCT", column, "FROM", quoted(con, schema, by), ")"
        ))
      }
      unused("profile_stacks", "stack_key", "profile_uses", "content_key")
      unused("profile_labels", "label_key", "profile_uses", "content_key")
      unused("profile_frames", "frame_key", "profile_stacks", "frame_key")
      unused("profile_services", "service_key", "profile_uses", "service_key")
    }
  })
  invisible(length(days))
}
