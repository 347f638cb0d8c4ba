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

# Expects that two profiles, stored twice, are loaded as they were, summed up, rolled up and removed, and that nothing is
# left of a profile that could not be stored. `lazy` is FALSE for drivers that dbplyr does not know.
expect_stored <- function(
  con, schema = NULL, lazy = TRUE, wide = "9007199254740993", same = testthat::expect_identical
) {
  old <- at_time(read_quietly(rprof_path("names_plain.out")), 1000)
  # Text that collations take for equal, long text, and characters of four bytes.
  names <- c("a", "A", "a ", "\u00e4", "\U1F600", "\\", "'", strrep("long ", 20000))
  new <- small_profile()
  new <- at_time(new, 200000)
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
  new$samples$.wide <- bit64::as.integer64(wide)
  new$samples$.flag <- c(TRUE, NA, FALSE)[seq_len(n)]
  new$samples$.text <- c("x", NA, "")[seq_len(n)]
  new$.notes <- tibble::tibble(sample_id = 1L, key = "\U1F600", size = pi)
  all <- list(old, new)
  store(con, all, schema)
  loaded <- function(...) {
    x <- profile_from_con(con, ..., schema = schema)
    if (!is.null(x$samples$.flag)) x$samples$.flag <- as.logical(x$samples$.flag)
    if (!is.null(x$samples$.wide)) x$samples$.wide <- bit64::as.integer64(x$samples$.wide)
    x
  }
  same(loaded(), combine_profiles(all))
  store(con, all, schema)
  same(loaded(), combine_profiles(c(all, all)))
  testthat::expect_equal(count_rows(con, schema, "functions"), nrow(combine_profiles(all)$functions))

  failing <- new
  failing$.later <- tibble::tibble(sample_id = c(1L, 99L))
  testthat::expect_error(copy_profile_to(con, failing, schema = schema), class = "profile_error_invalid")
  same(loaded(), combine_profiles(c(all, all)))

  if (lazy && rlang::is_installed("dbplyr")) {
    sums <- dplyr::collect(summary(tbl_profile(con, schema = schema)))
    wanted <- summary(combine_profiles(c(all, all)))$by_function
    testthat::expect_equal(nrow(sums), nrow(wanted))
    testthat::expect_equal(sums$total[match(wanted$name, sums$name)], wanted$total)
  }

  before <- as.POSIXct(300000, origin = "1970-01-01")
  testthat::expect_equal(roll_up_profiles(con, before, schema = schema), 1)
  testthat::expect_equal(nrow(loaded()$sources), 3)
  testthat::expect_equal(sum(loaded()$sample_values$value), sum(combine_profiles(c(all, all))$sample_values$value))
  testthat::expect_equal(prune_profiles(con, before, schema = schema), 3)
  for (table in c("sources", "samples", ".stacks", "functions", ".notes")) {
    testthat::expect_equal(count_rows(con, schema, table), 0, info = table)
  }
  store(con, all, schema)
  same(loaded(), combine_profiles(all))
}

# Expects that a copy in a transaction of the user is refused, and that the transaction goes on. `sql` is FALSE if a
# transaction can be begun by the driver only.
expect_untouched <- function(con, sql = TRUE) {
  DBI::dbExecute(con, "CREATE TABLE of_user (a INTEGER)")
  execute <- function(sql) function(con) DBI::dbExecute(con, sql)
  ways <- list(c(DBI::dbBegin, DBI::dbRollback), if (sql) c(execute("BEGIN"), execute("ROLLBACK")))
  for (way in Filter(length, ways)) {
    way[[1]](con)
    DBI::dbExecute(con, "INSERT INTO of_user VALUES (1)")
    testthat::expect_error(copy_profile_to(con, small_profile()), class = "profile_error_unsupported")
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
