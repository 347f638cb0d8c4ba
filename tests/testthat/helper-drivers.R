# A driver that this package does not know: SQLite, of which it sees the generics of DBI only. `transactions` is FALSE
# for a driver that has none.
other_driver <- function(path = ":memory:", transactions = TRUE, .local_envir = parent.frame()) {
  class <- if (transactions) "OtherConnection" else "OtherConnectionWithoutTransactions"
  where <- globalenv()
  methods::setClass(class, contains = "DBIConnection", slots = list(con = "ANY"), where = where)
  # A method for each class of the second argument.
  pass_on <- function(generics, seconds) {
    for (generic in generics) {
      of_dbi <- getExportedValue("DBI", generic)
      arguments <- formals(of_dbi)
      passed <- lapply(names(arguments), as.name)
      passed[[1]] <- call("@", passed[[1]], quote(con))
      method <- rlang::new_function(arguments, rlang::call2(generic, !!!passed, .ns = "DBI"))
      for (second in seconds) {
        methods::setMethod(of_dbi, c(class, second), method, where = where)
      }
    }
  }
  pass_on(c("dbIsValid", "dbListTables", if (transactions) c("dbBegin", "dbCommit", "dbRollback")), list(NULL))
  pass_on(c("dbExecute", "dbGetQuery", "dbQuoteString"), "character")
  pass_on(c("dbListFields", "dbAppendTable"), c("character", "Id"))
  pass_on("dbQuoteIdentifier", c("character", "SQL", "Id"))
  pass_on("dbDataType", "ANY")
  con <- DBI::dbConnect(RSQLite::SQLite(), path)
  withr::defer(DBI::dbDisconnect(con), envir = .local_envir)
  methods::new(class, con = con)
}

# Expects that two profiles, stored twice, are loaded with all sums, summed up and removed, and that nothing is left of a
# profile that could not be stored. `lazy` is FALSE for drivers that dbplyr does not know. `same` compares numbers.
expect_stored <- function(con, schema = NULL, lazy = TRUE, same = testthat::expect_identical) {
  old <- read_quietly(rprof_path("names_plain.out"))
  # Text that collations take for equal, long text, and characters of four bytes.
  names <- c("a", "A", "a ", "\u00e4", "\U1F600", "\\", "'", strrep("long ", 20000))
  new <- small_profile()
  new$functions <- tibble::tibble(
    function_id = seq_along(names), name = names, system_name = names, filename = names, start_line = 0L
  )
  new$locations <- tibble::tibble(location_id = seq_along(names), function_id = seq_along(names), line = 0L)
  n <- nrow(new$samples)
  new$sample_locations <- tibble::tibble(
    sample_id = rep(seq_len(n), each = length(names)), depth = rep(seq_along(names), n),
    location_id = rep(seq_along(names), n)
  )
  new$sample_values <- rbind(
    new$sample_values,
    tibble::tibble(sample_id = seq_len(n), type = "a\\b'c", unit = "A ", value = c(0.1, 1 / 3, 1e300)[seq_len(n)])
  )
  new$sample_values <- new$sample_values[order(new$sample_values$sample_id), ]
  new$.labels <- tibble::tibble(
    sample_id = c(1L, 1L, 2L), key = c("\U1F600", "size", "\U1F600"), str = c("x ", NA, "x"), num = c(NA, 2^40, NA),
    unit = c(NA, "bytes", NA)
  )
  all <- list(old, new)
  store_profiles(all, con, schema = schema)
  counts <- stored_tables_of(con, schema)
  expected <- Reduce(function(a, b) a + b, lapply(all, function(x) nrow(flat_tables(x, character(), NULL)$samples)))
  testthat::expect_equal(counts[["profile_sums"]], expected)
  read <- function() DBI::dbGetQuery(con, paste(
    "SELECT DISTINCT name FROM", quoted(con, schema, "frames"), "ORDER BY name"
  ))$name
  testthat::expect_setequal(read(), unique(c(old$functions$name, names)))
  store_profiles(all, con, schema = schema)
  # Only sums are stored again.
  twice <- counts
  twice["profile_sums"] <- 2 * counts["profile_sums"]
  testthat::expect_equal(stored_tables_of(con, schema), twice)

  failing <- function(con, schema, table, rows) {
    if (table == "profile_sums") stop("It fails.")
    insert(con, schema, table, rows)
  }
  insert <- insert_rows
  local({
    replace_function("insert_rows", failing, environment())
    testthat::expect_error(store_profiles(small_profile(), con, schema = schema), "It fails.", fixed = TRUE)
  })
  testthat::expect_equal(stored_tables_of(con, schema), twice)

  if (lazy && rlang::is_installed("dbplyr")) {
    loaded <- sums_of_store(con, schema = schema)
    flat <- function(x) lapply(flat_tables(x, character(), NULL), function(rows) {
      rows[] <- lapply(rows, function(column) if (is.factor(column)) as.character(column) else column)
      rows
    })
    whole <- bind_profiles(c(all, all), NULL)
    for (type in c("samples", "a\\b'c")) {
      wanted <- as.data.frame(summary(read_profile(tbl_profile(flat(whole))), type = type)$by_function)
      wanted <- wanted[order(wanted$name, method = "radix"), c("name", "self", "total")]
      row.names(wanted) <- NULL
      same(loaded[[type]], wanted)
    }
    labels <- as.data.frame(read_profile(tbl_profile(con, schema = schema))$.labels)[c("key", "str", "num", "unit")]
    testthat::expect_setequal(paste(labels$key, labels$str, labels$num, labels$unit), c(
      "\U1F600 x  NA NA", paste("size NA", 2^40, "bytes"), "\U1F600 x NA NA"
    ))
  }

  move_to(con, "2026-01-01", schema)
  before <- as.POSIXct("2026-01-03", tz = "UTC")
  testthat::expect_equal(roll_up_profiles(con, before, schema = schema), 1)
  testthat::expect_lt(count_rows(con, schema, "profile_sums"), twice[["profile_sums"]])
  if (lazy && rlang::is_installed("dbplyr")) same(sums_of_store(con, schema = schema), loaded)
  testthat::expect_equal(roll_up_profiles(con, before, schema = schema), 0)
  testthat::expect_equal(prune_profiles(con, before, schema = schema), 1)
  testthat::expect_equal(sum(stored_tables_of(con, schema)), 0)
  store_profiles(all, con, schema = schema)
  testthat::expect_equal(stored_tables_of(con, schema), counts)
}

# Expects that storing in a transaction of the user is refused, and that the transaction goes on. `sql` is FALSE if a
# transaction can be begun by the driver only.
expect_untouched <- function(con, sql = TRUE) {
  DBI::dbExecute(con, "CREATE TABLE of_user (a INTEGER)")
  execute <- function(sql) function(con) DBI::dbExecute(con, sql)
  ways <- list(c(DBI::dbBegin, DBI::dbRollback), if (sql) c(execute("BEGIN"), execute("ROLLBACK")))
  for (way in Filter(length, ways)) {
    way[[1]](con)
    DBI::dbExecute(con, "INSERT INTO of_user VALUES (1)")
    testthat::expect_error(store_profiles(small_profile(), con), class = "profile_error_unsupported")
    testthat::expect_equal(count_rows(con, NULL, "of_user"), 1)
    way[[2]](con)
    testthat::expect_equal(count_rows(con, NULL, "of_user"), 0)
  }
}

# Starts a server of MariaDB with an empty database `test`, without network, and ends it after the test. Returns its
# socket.
local_mariadb <- function(.local_envir = parent.frame()) {
  testthat::skip_on_cran()
  programs <- Sys.which(c("mariadb-install-db", "mariadbd", "mariadb"))
  testthat::skip_if(any(programs == ""), "mariadb-server is not installed: MariaDB is not tested")
  # The path of a socket may have 107 bytes only.
  dir <- withr::local_tempdir(tmpdir = "/tmp", .local_envir = .local_envir)
  data <- file.path(dir, "data")
  socket <- file.path(dir, "socket")
  log <- file.path(dir, "log")
  user <- paste0("--user=", Sys.info()[["user"]])
  run <- function(program, ..., wait = TRUE) {
    system2(programs[[program]], shQuote(c("--no-defaults", ...)), stdout = log, stderr = log, wait = wait)
  }
  run("mariadb-install-db", user, paste0("--datadir=", data), "--auth-root-authentication-method=normal")
  pid <- file.path(dir, "pid")
  run("mariadbd", user, paste0("--datadir=", data), paste0("--socket=", socket), paste0("--pid-file=", pid),
    "--skip-networking", wait = FALSE)
  withr::defer(tools::pskill(as.integer(readLines(pid)), tools::SIGKILL), envir = .local_envir, priority = "first")
  admin <- function(sql) run("mariadb", "-u", "root", "-S", socket, "-e", sql)
  ready <- wait_for(function() file.exists(pid) && admin("CREATE DATABASE IF NOT EXISTS test") == 0)
  testthat::expect(ready, paste(readLines(log, warn = FALSE, skipNul = TRUE), collapse = "\n"))
  function() {
    admin("DROP DATABASE test; CREATE DATABASE test")
    socket
  }
}
