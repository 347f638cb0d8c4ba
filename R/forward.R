# Sends the profiles in a folder to a server with curl, by the rules of `send_otlp()`, for `forward_profiles()` and the
# forwarder of agents (forwarder.R). forward-dataset.R adds them to a data set instead.

#' Send the profiles in a folder to an OpenTelemetry collector, or to a data set
#'
#' @description
#' `forward_profiles()` sends the profiles that [start_agent()] writes to a folder to an OpenTelemetry collector, or adds
#' them to a data set of [store_profiles()], and removes each file that the server has accepted or that was added.
#' Run it in a separate process next to a service, such as a sidecar container that shares a folder with it: the process
#' of the service then needs neither the network nor any secrets.
#'
#' Usually you need not call it: an agent whose `to` is a URL starts a forwarder itself.
#'
#' @details
#' `from` is one of these folders:
#' - the argument `to` of [start_agent()], with files in the format of [write_pprof()]. There should be only one call for
#'   a folder at a time;
#' - the spool that [agent_status()] reports, with parts that an agent could not send before it ended.
#'
#' The oldest profile is sent first. Transient errors are retried by the rules of [send_otlp()], and here also timeouts;
#' a delay that the server requests by `Retry-After` is respected up to a day.
#' A file that the server refuses, or that is no profile, is renamed: `.refused` is appended to its name. If the process
#' is killed after the server has accepted a profile, the same profile is sent again. It then has the same profile id,
#' so that a server can recognize it.
#'
#' A data set gets a file about every five minutes, with the profiles of all agents that use the folder, so that one
#' process for each machine is enough and a fleet needs no server. If the process is killed, the next one knows which
#' profiles it has added: each is added once.
#'
#' The environment variables of [send_otlp()] apply.
#'
#' @inheritParams send_otlp
#' @param from The path of a folder.
#' @param to The URL of the server, or `NULL` to use environment variables, see [send_otlp()]. For a data set, the path of
#'   a folder that exists, or a path of object storage that begins with `s3://` or `gs://`.
#' @param resource Attributes of the service, for profiles in the format of [write_pprof()]: a named character vector.
#'   They replace the attributes that agents write to their files.
#' @param once If `FALSE`, new files are sent as they appear, until the call is interrupted. If `TRUE`, the call ends
#'   when the folder is empty.
#' @param retries The maximum number of consecutive retries. By default, there is no limit.
#'
#' @return If `once`, invisibly, the number of profiles that were `sent` and `refused`: an integer vector with these
#'   names.
#'
#' @section Errors:
#' `profile_error_send` if a profile could not be sent after `retries` retries, with the fields described in
#' [send_otlp()], and `profile_error_write` for a data set; `profile_error_open` if the folder cannot be read;
#' `profile_error_argument` for invalid arguments, and if another process forwards the spool; `profile_error_unsupported`
#' if curl is not installed, and if a spool belongs to another user.
#'
#' @section Messages:
#' `profile_message_retry` announces each delay, and `profile_message_forward` reports a refused
#' profile, or what a server says about a profile that it has accepted.
#'
#' @seealso [start_agent()], [send_otlp()]
#' @export
#' @examples
#' folder <- tempfile("profiles-")
#' dir.create(folder)
#' # This folder is empty, so nothing is sent.
#' if (rlang::is_installed("curl")) {
#'   print(forward_profiles(folder, "http://localhost:4318", once = TRUE))
#' }
forward_profiles <- function(from, to = NULL, ..., resource = character(), headers = character(), timeout = 10,
                             once = FALSE, retries = Inf) {
  call <- call_without_dots()
  if (missing(from)) {
    abort_missing("from", call)
  }
  if (!is_path(from) || from == "") {
    abort_argument(paste0("`from` must be the path of a folder, not ", describe_object(from), "."), call)
  }
  check_texts(resource, "resource", call)
  check_flag(once, "once", call)
  if (!identical(retries, Inf)) {
    check_sending(timeout, retries, call)
  }
  check_sending(timeout, 0, call)
  is_dataset <- is_dataset_target(to)
  if (!is_dataset) {
    need_package("curl", call)
    request <- otlp_request(to, headers, timeout, call)
  }
  folder <- native_text(from)
  if (is.na(folder) || !dir.exists(folder)) {
    abort_no_folder(c(folder, shown_text(from)), "profile_error_open", call)
  }
  folder <- normalizePath(folder)
  path <- c(folder, shown_text(folder))
  is_spool <- file.exists(in_folder(folder, "lock"))
  if (is_spool) {
    if (rust(rust_forwarder(path, FALSE), call) == "end") {
      abort_argument("Another process forwards the profiles of this folder.", call)
    }
    on.exit(rust(rust_forwarder(path, TRUE), NULL))
  }
  tell <- function(kind, text) {
    class <- if (kind == "again") "profile_message_retry" else "profile_message_forward"
    inform_profile(text, class)
  }
  sender <- if (is_dataset) {
    new_dataset_sender(folder, to, resource, once, tell, call)
  } else {
    new_sender(folder, request, resource, tell)
  }
  repeat {
    has_sent <- sender$step()
    if (sender$attempts() > retries) {
      if (is_dataset) abort_profile(sender$last(), "profile_error_write", path = to, call = call)
      abort_send(list(bullets = c(x = sender$last())), request, sender$attempts(), call)
    }
    if (once && sender$is_idle()) {
      return(invisible(sender$counts()))
    }
    if (!has_sent) {
      sleep(forward_pause[["idle"]])
    }
  }
}

# What to send besides the profile, see `new_request()`. `argument`: the name of the argument `to`.
otlp_request <- function(to, headers, timeout, call, argument = "to", json = FALSE, compress = TRUE) {
  url <- otlp_url(to, call, argument)
  headers <- otlp_headers(headers, json, compress, call)
  # Headers are sent unchanged.
  Encoding(headers) <- "bytes"
  list(
    url = url, shown = shown_url(url), headers = headers, coding = if (json) "json" else "protobuf",
    timeout = as.numeric(timeout),
    limit = number_option("profile.otlp_max_response", 4 * 2^20, call),
    backoff = number_option("profile.otlp_backoff", 1, call),
    patience = number_option("profile.forward_patience", forward_patience, call),
    tls = if (grepl("^https:", url, ignore.case = TRUE)) {
      # The forwarder has another working directory.
      vapply(tls_files(call) %||% character(), normalizePath, "")
    }
  )
}

# ---- Sending -----------------------------------------------------------------------------

# Sends the files in a folder, one at a time, the oldest first. `tell()` is called with what happened to a file,
# "again", "sent" or "refused", and a text.
new_sender <- function(folder, request, resource, tell) {
  force(request)
  force(resource)
  force(tell)
  counts <- c(sent = 0L, refused = 0L)
  attempts <- 0
  next_time <- 0
  last <- NA_character_
  pool <- curl::new_pool()
  # Of a forwarder that was killed.
  for (file in list.files(folder, "[.]sending$", full.names = TRUE)) {
    file.rename(file, with_end(file, ".otlp.gz"))
  }
  files <- function() spooled_files(folder)
  # Returns whether a file was sent or refused.
  step <- function() {
    if (current_time() < next_time || length(waiting <- files()) == 0) {
      return(FALSE)
    }
    taken <- take_file(waiting[[1]])
    # The folder may have been removed meanwhile.
    if (is.null(taken) || !file.exists(taken$held)) {
      return(FALSE)
    }
    result <- forward_file(taken, request, resource, attempts + 1, pool)
    if (result$kind == "again") {
      attempts <<- attempts + 1
      next_time <<- current_time() + result$wait
    } else {
      attempts <<- 0
      counts[[result$kind]] <<- counts[[result$kind]] + 1L
    }
    finish_file(taken, result)
    if (!is.na(result$text)) {
      last <<- result$text
      tell(result$kind, result$text)
    }
    result$kind != "again"
  }
  list(
    step = step, is_idle = function() length(files()) == 0, attempts = function() attempts, last = function() last,
    counts = function() counts
  )
}

# The oldest file comes first: chunks of agents have names that begin with the time.
spooled_files <- function(folder) {
  chunks <- list.files(folder, "[.]otlp[.]gz$")
  files <- list.files(folder, "[.]pb[.]gz$")
  files <- files[order(file.mtime(in_folder(folder, files)), nchar(files, "bytes"), files)]
  in_folder(folder, c(sort(chunks), files))
}

# Only names are searched, since the path of a folder may not be valid text.
is_chunk <- function(path) grepl("[.]otlp[.]gz$", basename(path))

# The path of a chunk in another state.
with_end <- function(path, end) {
  in_folder(dirname(path), sub("[.](otlp[.]gz|sending)$", end, basename(path)))
}

# Takes a chunk, so that its agent does not drop it meanwhile. NULL if the agent has just dropped it.
take_file <- function(path) {
  held <- if (is_chunk(path)) with_end(path, ".sending") else path
  if (held != path && !suppressWarnings(file.rename(path, held))) {
    return(NULL)
  }
  list(path = path, held = held)
}

# After a chunk has got its last name, it is not sent again, and its agent counts and removes it.
finish_file <- function(taken, result) {
  if (!is_chunk(taken$path)) {
    switch(result$kind, sent = unlink(taken$path), refused = file.rename(taken$path, paste0(taken$path, ".refused")))
    return()
  }
  end <- switch(result$kind,
    again = ".otlp.gz",
    sent = paste0(".sent", if (result$rejected > 0) paste0("-", format(result$rejected, scientific = FALSE))),
    refused = ".refused"
  )
  # Fails if the folder was removed meanwhile.
  suppressWarnings(file.rename(taken$held, with_end(taken$held, end)))
}

# The maximum delay in seconds that a server may request: a header with a wrong number must not end the sending forever.
forward_longest <- 24 * 3600

# Sends a file once. In the result, `kind` is "sent", "refused" or "again"; `text` is NA if there is nothing to say.
forward_file <- function(taken, request, resource, attempt, pool) {
  refused <- function(error) {
    list(kind = "refused", text = paste0("`", basename(taken$path), "`: ", shown_text(conditionMessage(error))))
  }
  tryCatch(
    {
      request$body <- if (is_chunk(taken$path)) {
        readBin(taken$held, "raw", file.size(taken$held))
      } else {
        message_of_file(taken$path, resource)
      }
      answer <- attempt_request(new_request(request), pool, request)
      forward_result(answer, request, attempt)
    },
    profile_error = refused
  )
}

# The profile id is computed from the file, so that it is the same if the file is sent again.
message_of_file <- function(path, resource) {
  x <- suppressWarnings(read_pprof(path, source_uri = NA), "profile_warning")
  x$sources$.profile_id <- rep(rlang::hash_file(path), nrow(x$sources))
  found <- attributes_in_comments(x$.comments$comment)
  resource <- c(found[setdiff(names(found), names(resource))], resource)
  gzip(suppressWarnings(otlp_message(x, FALSE, TRUE, resource, NULL), "profile_warning"))
}

# The attributes of the resource that an agent has written as comments such as `resource.service.version: 2.3`.
# `analysis/flat/origins.rs` reads those that data sets need.
attributes_in_comments <- function(comments) {
  parts <- regmatches(comments, regexec("^resource[.](.+?): (.*)$", comments))
  parts <- parts[lengths(parts) > 0]
  attributes <- rlang::set_names(vapply(parts, `[`, "", 3), vapply(parts, `[`, "", 2))
  attributes[!duplicated(names(attributes))]
}

# A server that does not answer in time may have got the profile, which is nevertheless sent again: its profile id shows
# that it is the same.
forward_result <- function(answer, request, attempt) {
  problem <- problem_with(answer, request, NULL)
  if (is.null(problem)) {
    return(forward_success(answer, request))
  }
  rule <- retry_rule(problem$result, answer, attempt, request$backoff, NULL)
  again <- rule$again || problem$result == "late"
  is_long <- again && isTRUE(rule$asked > rule$longest)
  wait <- min(max(rule$wait, rule$asked), forward_longest)
  delay <- format(round(wait), scientific = FALSE)
  list(
    kind = if (again) "again" else "refused", wait = wait,
    text = paste0(
      request$shown, ": ", problem$bullets[[1]],
      if (is_long) paste0(" (retrying in ", delay, " seconds, as the server requests)")
    )
  )
}

forward_success <- function(answer, request) {
  report <- read_answer(answer, request, success = TRUE, NULL)
  said <- function(text) paste0(c(text, report$message[report$message != ""]), collapse = ": ")
  list(
    kind = "sent", rejected = if (report$read) report$rejected else 0,
    text = if (!report$read || !is.na(answer$failure)) {
      paste0(request$shown, ": HTTP ", answer$status, ": the answer does not conform to OTLP.")
    } else if (report$rejected > 0) {
      said(paste0(request$shown, " rejected ", format(report$rejected, scientific = FALSE), " profiles"))
    } else if (report$message != "") {
      said(paste0(request$shown, ": HTTP ", answer$status))
    } else {
      NA_character_
    }
  )
}
