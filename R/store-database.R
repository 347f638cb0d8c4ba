# Profiles in a database: the tables of a data set (store-profiles.R), stored so that texts and frames occur once.
#
#   profile_sums      origin_key ──► profile_origins     service, version, host, run, sample type; the day of writing
#                     stack_key ───► profile_stacks ──► profile_frames
#                     label_key ───► profile_labels
#   profile_uses      content_key: a stack or a set of labels of a service
#                     service_key ─► profile_services
#
# All keys are hashes of content: the same stack has the same key in every profile, so no ids are allocated, and a writer
# adds what is missing. Views show these tables with the columns of a data set, so that reading is the same for both
# (dataset-read.R), and so are the questions of inst/dataset/questions.sql.
#
# Writers, roll-up and pruning wait for each other: `store_lock()`. So nobody removes a stack that a writer has just
# found. Readers do not wait.

# The version of the layout, in the table profile_layout.
database_layout <- 2L

# Columns and their types. `key` is a whole number below 2^53, which every driver can represent.
store_tables <- list(
  profile_layout = c(version = "whole"),
  # `period` and `apart` are NULL until samples are summed up.
  profile_origins = c(
    origin_key = "key", service = "text", version = "text", host = "text", run = "text", run_start = "double",
    day = "text", period = "text", apart = "text", sample_type = "text", unit = "text", sampling_period = "double",
    sampling_type = "text", sampling_unit = "text", default_type = "text"
  ),
  # `minute` is in minutes since 1970.
  profile_sums = c(
    origin_key = "key", minute = "whole", stack_key = "key", label_key = "key", trace_id = "text", value = "double",
    sample_count = "whole"
  ),
  profile_stacks = c(stack_key = "key", depth = "whole", frame_key = "key"),
  profile_frames = c(
    frame_key = "key", name = "text", file = "text", line = "whole", package = "text", frame_type = "text"
  ),
  profile_labels = c(
    label_key = "key", position = "whole", label = "text", value = "text", number = "double", unit = "text"
  ),
  # `day` is the last one on which it was written: conditions on the days of `frames` and `labels` must be `day >=`.
  profile_services = c(service_key = "key", service = "text"),
  profile_uses = c(service_key = "key", content_key = "key", day = "text")
)

store_primary_keys <- list(
  profile_layout = "version", profile_origins = "origin_key", profile_stacks = c("stack_key", "depth"),
  profile_frames = "frame_key", profile_labels = c("label_key", "position"), profile_services = "service_key",
  profile_uses = c("service_key", "content_key")
)

# ---- Tables and views ----------------------------------------------------------------

# Creates the tables and views, or checks that they are there.
create_store <- function(con, schema, call) {
  there <- list_tables(con, schema)
  if ("profile_layout" %in% there && check_database_layout(con, schema, call)) {
    return(invisible())
  }
  # Only PostgreSQL distinguishes `Samples` from `samples` on every machine.
  same <- if (is_postgres(con)) identity else tolower
  taken <- there[same(there) %in% c(names(store_tables), names(store_views))]
  # An engine that cannot undo CREATE may have been interrupted: the layout is noted last.
  if (length(taken) > 0 && !(dialect(con)$commits && "profile_layout" %in% there)) {
    abort_foreign(taken[[1]], call)
  }
  tryCatch(
    in_transaction(con, call = call, {
      for (table in setdiff(names(store_tables), there)) {
        create_store_table(con, schema, table)
        if (table == "profile_sums" && dialect(con)$index) {
          create_index(con, schema, "profile_sums_of_origin", table, "origin_key")
        }
      }
      for (view in setdiff(names(store_views), there)) {
        DBI::dbExecute(con, paste("CREATE VIEW", quoted(con, schema, view), "AS", store_views[[view]](con, schema)))
      }
      insert_rows(con, schema, "profile_layout", data.frame(version = database_layout))
    }),
    error = function(e) {
      # Another writer may have created them meanwhile. Listing fails if the connection was lost.
      is_there <- tryCatch("profile_layout" %in% list_tables(con, schema), error = function(other) FALSE)
      if (!is_there || !check_database_layout(con, schema, call)) rlang::cnd_signal(e)
    }
  )
}

create_store_table <- function(con, schema, table) {
  engine <- dialect(con)
  types <- list(
    key = engine$id, whole = engine$id, double = engine$double, text = engine[["text"]] %||% "TEXT"
  )
  columns <- store_tables[[table]]
  parts <- paste(quoted_names(con, names(columns)), unlist(types[columns]))
  key <- store_primary_keys[[table]]
  if (!is.null(key)) {
    parts <- c(parts, paste0("PRIMARY KEY (", paste(quoted_names(con, key), collapse = ", "), ")"))
  }
  # Otherwise SQLite stores a compound key twice: in the rows and in an index of them.
  layout <- if (is_sqlite(con) && length(key) > 1) " WITHOUT ROWID"
  DBI::dbExecute(con, paste0(
    "CREATE TABLE ", quoted(con, schema, table), " (", paste(parts, collapse = ", "), ")", engine$table, layout
  ))
}

# Whether the database has the layout of this version; FALSE if its creation was interrupted.
check_database_layout <- function(con, schema, call) {
  version <- as.numeric(read_table(con, schema, "profile_layout")$version)
  if (length(version) > 0 && version[[1]] != database_layout) {
    abort_unsupported(c(
      paste0(
        "The database has layout ", version[[1]], ", and this version of the package knows layout ", database_layout, "."
      ),
      i = "Use the version of the package that wrote it."
    ), call)
  }
  length(version) > 0
}

used_by_service <- function(con, schema) {
  services <- in_view(con, schema, "profile_services")
  paste(services, "v JOIN", in_view(con, schema, "profile_uses"), "u ON u.service_key = v.service_key")
}

# The queries of the views, which have the columns of a data set.
store_views <- list(
  samples = function(con, schema) {
    time <- dialect(con)$time
    paste(
      "SELECT o.service, o.version, o.host, o.run,", sprintf(time, "o.run_start"), "AS run_start,",
      sprintf(time, "s.minute * 60"), "AS", paste0(DBI::dbQuoteIdentifier(con, "minute"), ","),
      "o.sample_type, o.unit, s.value, s.sample_count, s.stack_key, s.label_key, s.trace_id,",
      "o.sampling_period, o.sampling_type, o.sampling_unit, o.default_type,",
      paste("o.day AS", DBI::dbQuoteIdentifier(con, "day")),
      "FROM", in_view(con, schema, "profile_sums"), "s JOIN", in_view(con, schema, "profile_origins"),
      "o ON o.origin_key = s.origin_key"
    )
  },
  frames = function(con, schema) {
    paste(
      "SELECT v.service, t.stack_key, t.depth, f.name, f.file, f.line, f.package, f.frame_type,",
      paste("u.day AS", DBI::dbQuoteIdentifier(con, "day")), "FROM",
      used_by_service(con, schema), "JOIN", in_view(con, schema, "profile_stacks"),
      "t ON t.stack_key = u.content_key JOIN", in_view(con, schema, "profile_frames"), "f ON f.frame_key = t.frame_key"
    )
  },
  labels = function(con, schema) {
    paste(
      "SELECT v.service, l.label_key, l.label, l.value, l.number, l.unit,",
      paste("u.day AS", DBI::dbQuoteIdentifier(con, "day")), "FROM",
      used_by_service(con, schema), "JOIN", in_view(con, schema, "profile_labels"),
      "l ON l.label_key = u.content_key"
    )
  }
)

# ---- Writing -------------------------------------------------------------------------

# Adds flat tables in one transaction.
store_in_database <- function(con, schema, tables, call) {
  rows <- stored_rows(tables, today_in_utc(), call)
  commits <- dialect(con)$commits
  if (commits) creating(con, schema, create_store(con, schema, call), call)
  in_transaction(con, call = call, {
    if (!commits) create_store(con, schema, call)
    store_lock(con, schema)
    for (table in names(rows)) {
      append_missing(con, schema, table, rows[[table]], call)
    }
    note_day(con, schema, rows$profile_uses)
  })
}

# Makes other writers wait until the end of the transaction. SQLite's transaction does that itself.
store_lock <- function(con, schema) {
  layout <- quoted(con, schema, "profile_layout")
  if (!is_sqlite(con)) DBI::dbExecute(con, paste("UPDATE", layout, "SET version = version"))
}

# The rows of the tables of the database, sorted by key.
stored_rows <- function(tables, day, call) {
  samples <- tables$samples
  origins <- samples[intersect(names(store_tables$profile_origins), names(samples))]
  origins$run_start <- as.numeric(origins$run_start)
  origins$day <- rep(day, nrow(origins))
  origins$period <- origins$apart <- rep(NA_character_, nrow(origins))
  origins[] <- lapply(origins, function(column) if (is.factor(column)) as.character(column) else column)
  distinct <- vctrs::vec_unique(origins)
  keys <- keys_of_rows(distinct, call)
  frames <- tables$frames
  stacks <- frames[!duplicated(frames[c("stack_key", "depth")]), ]
  labels <- tables$labels
  labels$position <- sequence(rle(paste(labels$service, labels$label_key))$lengths)
  services <- tibble::tibble(service = unique(as.character(samples$service)))
  services$service_key <- keys_of_rows(services, call)
  uses <- vctrs::vec_rbind(!!!lapply(c("stack_key", "label_key"), function(key) {
    uses <- vctrs::vec_unique(samples[c("service", key)])
    uses <- uses[!is.na(uses[[key]]), ]
    of_service <- services$service_key[match(as.character(uses$service), services$service)]
    tibble::tibble(service_key = of_service, content_key = number_of_key(uses[[key]]), day = day)
  }))
  rows <- list(
    profile_frames = with_number(frames[!duplicated(frames$frame_key), ], "frame_key"),
    profile_stacks = with_number(stacks, c("stack_key", "frame_key")),
    profile_labels = with_number(labels[!duplicated(labels[c("label_key", "position")]), ], "label_key"),
    profile_services = services, profile_uses = uses, profile_origins = tibble::add_column(distinct, origin_key = keys),
    profile_sums = with_number(tibble::tibble(
      origin_key = keys[vctrs::vec_match(origins, distinct)], minute = as.numeric(samples$minute) / 60,
      samples[c("stack_key", "label_key", "trace_id", "value", "sample_count")]
    ), c("stack_key", "label_key"))
  )
  Map(function(rows, columns, key) {
    if (!is.null(key)) rows <- rows[do.call(order, unname(as.list(rows[key]))), ]
    columns <- lapply(rlang::set_names(names(columns)), function(column) database_column(rows[[column]], columns[[column]], call))
    as.data.frame(columns, stringsAsFactors = FALSE)
  }, rows, store_tables[names(rows)], store_primary_keys[match(names(rows), names(store_primary_keys))])
}

with_number <- function(rows, keys) {
  rows[keys] <- lapply(rows[keys], number_of_key)
  rows
}

# Keys are in base64 for URLs.
letters_of_keys <- c(LETTERS, letters, 0:9, "-", "_")

# The first 53 bits of a key: 8 characters of 6 bits, and 5 bits of the ninth. A million stacks have two equal ones with a
# probability of 1 to 20,000.
number_of_key <- function(keys) {
  texts <- if (is.factor(keys)) levels(keys) else unique(keys)
  numbers <- rep(0, length(texts))
  for (position in 1:8) {
    numbers <- numbers * 64 + match(substr(texts, position, position), letters_of_keys) - 1
  }
  numbers <- numbers * 32 + (match(substr(texts, 9, 9), letters_of_keys) - 1) %/% 2
  if (is.factor(keys)) numbers[as.integer(keys)] else numbers[match(keys, texts)]
}

keys_of_rows <- function(rows, call) {
  number_of_key(rust(rust_content_keys(as.list(rows), nrow(rows)), call))
}

# Whole numbers are integers if they fit, since some drivers write a double as 3e+09.
database_column <- function(x, type, call) {
  switch(type,
    text = as.character(x),
    double = as.numeric(x),
    key = , whole = wide_ids(as.numeric(x), call)
  )
}

# Appends the rows whose key the table does not contain.
append_missing <- function(con, schema, table, rows, call) {
  key <- store_primary_keys[[table]]
  if (!is.null(key) && nrow(rows) > 0) {
    first <- setdiff(key, c("depth", "position", "service_key"))
    found <- stored_keys_in(con, schema, table, key, if (length(first) > 0) first else key, rows)
    known <- lapply(rows[names(found)], as.numeric)
    rows <- rows[!vctrs::vec_in(tibble::as_tibble(known), found), ]
  }
  # In parts, since drivers copy all columns.
  size <- 1e6
  for (before in seq(0, max(nrow(rows) - 1, 0), by = size)) {
    part <- slice_rows(rows, before + seq_len(min(size, nrow(rows) - before)))
    if (nrow(part) > 0) insert_rows(con, schema, table, part)
  }
}

# Sets the last day of stacks and sets of labels that were there.
note_day <- function(con, schema, uses) {
  day <- DBI::dbQuoteIdentifier(con, "day")
  for (of_service in split(uses, as.numeric(uses$service_key))) {
    today <- quoted_text(con, of_service$day[[1]])
    for (by_key in lists_of_ids("content_key", unique(as.numeric(of_service$content_key)))) {
      DBI::dbExecute(con, paste(
        "UPDATE", quoted(con, schema, "profile_uses"), "SET", day, "=", today, "WHERE",
        lists_of_ids("service_key", as.numeric(of_service$service_key[[1]])), "AND", by_key, "AND", day, "<", today
      ))
    }
  }
}

# The keys of rows with the same `column` as `rows` that a table contains; of a stack or a set of labels, the key of its
# first row.
stored_keys_in <- function(con, schema, table, key, column, rows) {
  columns <- setdiff(key, c("depth", "position"))
  ids <- quoted_names(con, columns)
  select <- paste("CAST(", ids, "AS", dialect(con)$double, ") AS", ids)
  first <- setdiff(key, columns)
  where <- if (length(first) > 0) paste("AND", DBI::dbQuoteIdentifier(con, first), "= 1")
  wanted <- lists_of_ids(quoted_names(con, column), unique(as.numeric(rows[[column]])))
  found <- lapply(unname(wanted), function(by_key) {
    rows <- DBI::dbGetQuery(con, paste(
      "SELECT", paste(select, collapse = ", "), "FROM", quoted(con, schema, table), "WHERE", by_key, where
    ))
    tibble::as_tibble(lapply(rlang::set_names(as.list(rows), columns), as.numeric))
  })
  vctrs::vec_rbind(!!!found)
}

# ---- Reading -------------------------------------------------------------------------

# The views as tables of a data set, which dataset-read.R queries.
tables_of_database <- function(con, schema, call) {
  check_database(con, "from", schema, call)
  for (package in c("dplyr", "dbplyr")) need_package(package, call)
  # SQLite does not wait for writers by default, and the tables are read later.
  wait_for_others(con)
  check_has_profiles(con, schema, call)
  tables <- lapply(rlang::set_names(names(dataset_columns)), function(table) {
    columns <- list_fields(con, schema, table)
    names <- paste(quoted_names(con, columns), collapse = ", ")
    list(dplyr::tbl(con, dbplyr::sql(paste("SELECT", names, "FROM", quoted(con, schema, table))), vars = columns))
  })
  structure(tables, last_day = TRUE)
}

check_has_profiles <- function(con, schema, call) {
  if (!"profile_layout" %in% list_tables(con, schema) || !check_database_layout(con, schema, call)) {
    abort_profile(c(
      "The database contains no profiles.", i = "`store_profiles()` stores them."
    ), "profile_error_open", call = call)
  }
}
