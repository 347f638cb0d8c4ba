# A real OpenTelemetry Collector, and a program that judges messages with OpenTelemetry's own libraries. Both are in
# collector/, in Go, and built once for all processes of a test run. Their modules are downloaded, and kept for later
# runs if PROFILE_TEST_GOMODCACHE is set.

# The time limit for downloading and compiling, in seconds: a minute and a half on two idle cores.
collector_build_limit <- 500

# The path of a program, `judge` or `serve`.
collector_program <- function(program) {
  testthat::skip_on_os("windows")
  go <- needed_go("the OpenTelemetry Collector does not judge our messages")
  source <- normalizePath(testthat::test_path("collector"))
  dir <- built_once("collector", function(dir) build_collector(go, source, dir))
  if (!file.exists(file.path(dir, program))) {
    why <- readLines(file.path(dir, paste0(program, ".log")))
    testthat::skip(paste0(
      "the modules of the OpenTelemetry Collector cannot be had: it does not judge our messages (",
      paste(utils::tail(why, 1), collapse = ""), ")"
    ))
  }
  file.path(dir, program)
}

# Builds the programs for which there are modules into `dir`. The output of Go is in a file for each program.
build_collector <- function(go, source, dir) {
  # As configured by the user, since local_go_home() turns downloads off.
  proxy <- Sys.getenv("GOPROXY", NA)
  local_go_home()
  modules <- Sys.getenv("PROFILE_TEST_GOMODCACHE", file.path(dir, "modules"))
  withr::local_envvar(
    GOPROXY = proxy, GOMODCACHE = modules,
    # The sums of all modules are in go.sum. Without an index of versions, nothing else is asked for.
    GOSUMDB = "off", GOFLAGS = "-mod=readonly -modcacherw", CGO_ENABLED = "0"
  )
  withr::local_dir(source)
  end <- Sys.time() + collector_build_limit
  # The judge needs few modules.
  for (program in c("judge", "serve")) {
    log <- file.path(dir, paste0(program, ".log"))
    run <- function(...) {
      left <- max(1, round(as.numeric(difftime(end, Sys.time(), units = "secs"))))
      suppressWarnings(system2(go, shQuote(c(..., paste0("./", program))), stdout = log, stderr = log, timeout = left))
    }
    # Needs all modules, which may be unavailable, or require a newer version of Go. Compiling them must then succeed.
    listed <- run("list", "-deps", "-f", "{{with .Error}}{{.}}{{end}}")
    built <- if (listed == 0) run("build", "-trimpath", "-ldflags=-s", "-o", file.path(dir, program)) else listed
    if (built == 124) {
      unlink(file.path(dir, program))
      cat("downloading and compiling them took ", collector_build_limit, " s\n", sep = "", file = log, append = TRUE)
    } else if (listed == 0 && built != 0) {
      stop("`", program, "` cannot be built:\n", paste(readLines(log), collapse = "\n"), call. = FALSE)
    }
  }
}

# ---- The judge ---------------------------------------------------------------

# The output of the judge for these files.
judge_messages <- function(command, ...) {
  out <- suppressWarnings(system2(
    collector_program("judge"), shQuote(c(command, ...)), stdout = TRUE, stderr = TRUE
  ))
  testthat::expect_null(attr(out, "status"), label = paste(c("judge", command, ..., ":", out), collapse = "\n"))
  Encoding(out) <- "UTF-8"
  as.character(out)
}

# The rules that a profile breaks as a message, unless they are in `except`.
broken_rules <- function(x, except = character(), ...) {
  path <- withr::local_tempfile(fileext = ".pb")
  broken <- character()
  for (aggregate in c(TRUE, FALSE)) {
    suppressWarnings(write_otlp(x, path, aggregate = aggregate, ...), classes = "profile_warning")
    # Equal samples are combined unless the user wants each of them.
    broken <- c(broken, judge_messages(if (aggregate) "combined" else "check", path))
  }
  broken[!sub(":.*", "", broken) %in% except]
}

# What the collector's library finds in a profile: a line for each type of each source, to compare with its tables.
sums_in <- function(x) {
  values <- x$sample_values
  samples <- x$samples[match(values$sample_id, x$samples$sample_id), ]
  of_sample <- function(ids) tabulate(match(ids, x$samples$sample_id), nrow(x$samples))
  frames <- of_sample(x$sample_locations$sample_id)
  # An attribute for each key.
  labels <- unique(data.frame(x$.labels$sample_id %||% integer(), x$.labels$key %||% character()))
  attributes <- of_sample(labels[[1]])
  at <- match(values$sample_id, x$samples$sample_id)
  group <- paste(samples$source_id, values$type, values$unit)
  group <- factor(group, unique(group))
  sum_of <- function(x) sprintf("%.0f", tapply(x, group, sum))
  sort(paste0(
    sub("^[0-9]+ ", "", levels(group)), " observations=", table(group), " sum=", sum_of(values$value),
    " frames=", sum_of(frames[at]), " attributes=", sum_of(attributes[at])
  ))
}

# Expects that the collector's library finds the same in both encodings of a profile as our reader.

# What other tools make of the lines of the judge: samples with a period of CPU time are CPU time, and also samples if
# the profile has them.
shown_sums <- function(lines, expected) {
  number <- function(name) as.numeric(sub(paste0(".* ", name, "=(-?[0-9]+) .*"), "\\1", lines))
  period <- number("period")
  sum <- number("sum")
  is_computed <- any(startsWith(expected, "cpu nanoseconds")) && !any(startsWith(lines, "cpu nanoseconds"))
  is_cpu <- is_computed & grepl("^samples count .* cpu nanoseconds$", lines)
  lines <- sub(" period=.*", "", lines)
  times <- sub("^samples count", "cpu nanoseconds", lines)
  for (i in which(is_cpu)) times[[i]] <- sub("sum=[0-9]+", sprintf("sum=%.0f", sum[[i]] * period[[i]]), times[[i]])
  counts <- if (any(startsWith(expected, "samples count"))) lines[is_cpu]
  sort(c(lines[!is_cpu], counts, times[is_cpu]))
}

expect_same_numbers <- function(x, info) {
  paths <- file.path(withr::local_tempdir(), c("a.pb", "a.json", "from-pb.pb", "from-json.pb"))
  for (path in paths[1:2]) suppressWarnings(write_otlp(x, path, aggregate = FALSE), classes = "profile_warning")
  found <- judge_messages("read", paths[[1]])
  testthat::expect_identical(judge_messages("read", paths[[2]]), found, info = info)
  expected <- sums_in(read_otlp_quietly(paths[[1]]))
  testthat::expect_identical(shown_sums(found, expected), expected, info = info)
  for (i in 1:2) judge_messages("convert", paths[[i]], paths[[i + 2]])
  testthat::expect_identical(file_bytes(paths[[3]]), file_bytes(paths[[4]]), info = info)
}

# ---- The collector -----------------------------------------------------------

collector_running <- new.env()

# A running collector, started once for all tests of this process: a list with its `url`, and a function `received()`
# that waits for the next `n` messages and returns them as files: a data frame with the columns `pb` and `json`.
collector <- function(.local_envir = parent.frame()) {
  skip_without_curl()
  if (is.null(collector_running$dir)) {
    start_collector()
  }
  local_settings(.local_envir)
  list(url = collector_running$url, received = received_messages)
}

start_collector <- function() {
  program <- collector_program("serve")
  dir <- tempfile("collector-")
  dir.create(dir)
  output <- file.path(dir, "output")
  command <- paste("echo $$;", end_with_us(), "exec", shQuote(program), shQuote(dir))
  system2("sh", c("-c", shQuote(command)), stdout = output, stderr = output, wait = FALSE)
  address <- file.path(dir, "address")
  if (!wait_for(function() file.exists(address), 120)) {
    stop("The collector did not start:", last_lines(readLines(output)))
  }
  process <- as.integer(readLines(output, n = 1))
  withr::defer(
    {
      tools::pskill(process)
      unlink(dir, recursive = TRUE)
      collector_running$dir <- NULL
    },
    testthat::teardown_env()
  )
  collector_running$url <- paste0("http://", readLines(address))
  collector_running$taken <- c(pb = 0, json = 0)
  collector_running$dir <- dir
}

# The collector has written a message completely when its length (protocol buffers) or its line feed (JSON) says so. The
# files are read from where the last messages ended.
received_messages <- function(n = 1) {
  dir <- collector_running$dir
  rest <- function(kind) {
    con <- file(file.path(dir, paste0("received.", kind)), "rb")
    on.exit(close(con))
    seek(con, collector_running$taken[[kind]])
    readBin(con, "raw", file.size(file.path(dir, paste0("received.", kind))))
  }
  complete <- list(
    pb = function(bytes) {
      ends <- numeric()
      at <- 0
      while (at + 4 <= length(bytes)) {
        at <- at + 4 + sum(as.numeric(bytes[at + 1:4]) * 256^(3:0))
        if (at <= length(bytes)) ends <- c(ends, at)
      }
      ends
    },
    json = function(bytes) which(bytes == charToRaw("\n"))
  )
  skipped <- c(pb = 4, json = 0)
  files <- lapply(c(pb = "pb", json = "json"), function(kind) {
    came <- wait_for(function() length(complete[[kind]](rest(kind))) >= n)
    log <- readLines(file.path(dir, "output"))
    testthat::expect(came, paste0("The collector did not write the messages that it received:", last_lines(log)))
    bytes <- rest(kind)
    ends <- complete[[kind]](bytes)[seq_len(n)]
    starts <- c(0, ends)[seq_len(n)]
    collector_running$taken[[kind]] <- collector_running$taken[[kind]] + ends[[n]]
    vapply(seq_len(n), function(i) {
      path <- tempfile(fileext = paste0(".", kind))
      write_bytes(bytes[seq(starts[[i]] + skipped[[kind]] + 1, ends[[i]])], path)
    }, "")
  })
  data.frame(files)
}

# Posts bytes as they are. Returns the status and the content of the answer.
post_bytes <- function(url, bytes, type = "application/x-protobuf") {
  handle <- curl::new_handle(post = TRUE, postfieldsize = length(bytes), postfields = bytes)
  curl::handle_setheaders(handle, "Content-Type" = type)
  answer <- curl::curl_fetch_memory(paste0(url, "/v1development/profiles"), handle)
  list(status = answer$status_code, content = answer$content)
}

# ---- What is sent ------------------------------------------------------------

# Profiles of all kinds that can be written as messages, by name: each file of the tests' data, and a snapshot of memory.
all_profiles <- function() {
  files <- list.files(data_path(), recursive = TRUE, full.names = TRUE)
  names(files) <- sub("^.*?data/", "", files)
  profiles <- lapply(files, function(file) {
    tryCatch(
      suppressWarnings(read_profile(file, source_uri = NA), classes = "profile_warning"),
      profile_error = function(error) NULL
    )
  })
  profiles$memory <- models_snapshot()
  Filter(function(x) !is.null(x) && can_be_sent(x), profiles)
}

# Some files have no samples, or values that no message can store.
can_be_sent <- function(x) {
  path <- withr::local_tempfile()
  nrow(x$samples) > 0 && tryCatch(
    {
      suppressWarnings(write_otlp(x, path), classes = "profile_warning")
      suppressWarnings(write_otlp(x, path, aggregate = FALSE), classes = "profile_warning")
      TRUE
    },
    profile_error_lossy = function(error) FALSE
  )
}
