# Posts a message over HTTP with curl, and retries transient errors. The traffic and the classes of curl's errors
# determine whether an error is transient, never curl's messages, which differ between versions. The R package curl has
# such classes from version 6.0 on; with older versions only the traffic is used.
#
# httr2 would add seven packages (itself, openssl, askpass, sys, R6, rappdirs, withr) and replace the loop
# and the delays, some 40 of these lines. It does not limit the size of an answer, nor distinguish a
# permanent TLS failure from a lost connection.

# Returns the answer to the first successful attempt.
post <- function(request, retries, call) {
  pool <- curl::new_pool()
  handle <- new_request(request)
  for (attempt in seq_len(retries + 1)) {
    answer <- attempt_request(handle, pool, request)
    problem <- problem_with(answer, request, call)
    if (is.null(problem)) {
      return(answer)
    }
    rule <- retry_rule(problem$result, answer, attempt, request$backoff, call)
    if (rule$again && isTRUE(rule$asked > rule$longest)) {
      problem$bullets <- c(problem$bullets, i = paste0("The server requests a delay of ", format(round(rule$asked)), " seconds."))
      rule$again <- FALSE
    }
    if (!rule$again || attempt > retries) {
      abort_send(problem, request, attempt, call)
    }
    wait <- max(rule$wait, rule$asked)
    inform_profile(
      c(paste0("Retrying in ", format(round(wait, 1)), " seconds."), problem$bullets[1]),
      "profile_message_retry"
    )
    sleep(wait)
  }
}

new_request <- function(request) {
  milliseconds <- ceiling(request$timeout * 1000)
  options <- list(
    url = request$url,
    post = TRUE,
    postfieldsize_large = length(request$body),
    copypostfields = request$body,
    timeout_ms = milliseconds,
    connecttimeout_ms = milliseconds,
    followlocation = FALSE,
    accept_encoding = "gzip",
    # Basic authentication for a user in the URL. To find the method itself, curl would first send a request without a
    # body.
    httpauth = 1,
    # An answer that is not HTTP/1 arrives as a body without a status. Otherwise, old versions of curl
    # report it like a closed connection.
    http09_allowed = TRUE
  )
  handle <- curl::new_handle(.list = c(options, request$tls))
  # Headers are sent unchanged: curl must not translate them to another encoding.
  headers <- request$headers
  Encoding(headers) <- "bytes"
  curl::handle_setheaders(handle, .list = as.list(headers))
  handle
}

# Sends the request once. In the result, `status` is 0 if there is no answer, and `failure` is curl's message if the
# answer is incomplete, with the class of curl's error if there is one.
attempt_request <- function(handle, pool, request) {
  pieces <- list()
  size <- 0
  failure <- NA_character_
  # Bytes beyond the limit are discarded until the timeout, since curl cannot be stopped here.
  keep <- function(bytes, end) {
    size <<- size + length(bytes)
    if (size <= request$limit) {
      pieces[[length(pieces) + 1]] <<- bytes
    }
  }
  seen <- watch_traffic(handle)
  # The pool keeps the connection open for the next attempt.
  done <- function(response) NULL
  fail <- function(message) failure <<- message
  curl::multi_add(handle, done = done, data = keep, fail = fail, pool = pool)
  on.exit(curl::multi_cancel(handle))
  start <- proc.time()[["elapsed"]]
  curl::multi_run(pool = pool)
  data <- curl::handle_data(handle)
  list(
    status = as.integer(data$status_code),
    failure = failure,
    seen = seen(),
    late = proc.time()[["elapsed"]] - start >= 0.99 * request$timeout,
    headers = data$headers,
    body = unlist(pieces),
    size = size
  )
}

# Records what is sent and received. The types are defined by curl's debug function,
# https://curl.se/libcurl/c/CURLOPT_DEBUGFUNCTION.html. curl reports TLS messages only if it uses OpenSSL.
watch_traffic <- function(handle) {
  data_out <- 4L
  tls_in <- 5L
  seen <- list(request = FALSE, tls_answer = FALSE, tls_alert = FALSE)
  note <- function(type, bytes) {
    if (type == data_out) {
      seen$request <<- TRUE
    } else if (type == tls_in) {
      seen$tls_answer <<- TRUE
      # A fatal alert is a message of two bytes: 2 and its number.
      seen$tls_alert <<- seen$tls_alert || (length(bytes) == 2 && bytes[[1]] == 2)
    }
  }
  curl::handle_setopt(handle, verbose = TRUE, debugfunction = note)
  function() seen
}

# NULL for success; otherwise bullets that describe the problem, and its name among the outcomes of the core.
problem_with <- function(answer, request, call) {
  if (answer$status == 0) {
    connection_problem(answer, request, call)
  } else if (answer$size > request$limit) {
    list(
      bullets = c(
        x = paste0("HTTP ", answer$status, ", with an answer larger than ", mebibytes(request$limit), "."),
        i = "The option `profile.otlp_max_response` changes the limit, in bytes."
      ),
      status = answer$status, result = "too_large"
    )
  } else {
    status_problem(answer, request, call)
  }
}

connection_problem <- function(answer, request, call) {
  why <- as_line(paste(answer$failure), call)
  problem <- function(result, ...) list(bullets = c(...), result = result)
  if (answer$size > 0) {
    hint <- "Is this the gRPC port? HTTP uses another one, often 4318."
    problem("not_http", x = "The answer is not HTTP/1.", i = hint)
  } else if (is_tls_failure(answer)) {
    problem("tls", x = paste0("TLS connection failed: ", why))
  } else if (!answer$seen$request) {
    problem("not_sent", x = paste0("Connection failed: ", why))
  } else if (answer$late) {
    late <- paste0("No answer within ", format(request$timeout), " seconds.")
    problem("late", x = late, i = "It is unknown whether the profile has arrived.")
  } else {
    problem("closed", x = paste0("The connection was closed without an answer: ", why))
  }
}

# Whether client and server cannot agree on TLS, which is permanent: an untrusted certificate, a key that
# does not match, a server without TLS. curl uses one error code for some of these and for lost
# connections, so the traffic decides: if the server answered, but no request could be sent, the failure is
# permanent. An alert may also follow the request, since in TLS 1.3 servers check the client's certificate
# late.
#
# A failure before the server has answered, such as a key that does not match its certificate, has a class
# in new versions of curl. With old ones it looks like a lost connection and is retried in vain.
is_tls_failure <- function(answer) {
  inherits(answer$failure, tls_errors) || answer$seen$tls_alert ||
    (answer$seen$tls_answer && !answer$seen$request && !answer$late)
}

tls_errors <- paste0("curl_error_", c(
  "peer_failed_verification", "use_ssl_failed", "ssl_cacert_badfile", "ssl_certproblem", "ssl_cipher",
  "ssl_clientcert", "ssl_crl_badfile", "ssl_engine_initfailed", "ssl_engine_notfound", "ssl_engine_setfailed",
  "ssl_invalidcertstatus", "ssl_issuer_error", "ssl_pinnedpubkeynotmatch"
))

status_problem <- function(answer, request, call) {
  status <- answer$status
  if (status >= 200 && status < 300) {
    return(NULL)
  }
  message <- read_answer(answer, request, success = FALSE, call)$message
  location <- if (status >= 300 && status < 400) answer_header(answer, "location", call) else ""
  list(
    bullets = c(
      x = paste0("HTTP ", status, if (message != "") paste0(": ", message)),
      i = if (location != "") paste0("The server redirects to `", shown_url(location), "`; use this as `endpoint`."),
      i = if (status == 404) "Does the server accept profiles at this path?"
    ),
    status = status, answer = if (message != "") message,
    result = "status"
  )
}

# ---- Whether to try again, and when ------------------------------------------

# OpenTelemetry's rules, <https://opentelemetry.io/docs/specs/otlp/#otlphttp-response>, for all that sends profiles. A request
# that is answered too late may have arrived.
transient_results <- c("not_sent", "closed")
transient_statuses <- c(429, 502, 503, 504)
# The longest delay before it is varied, and the longest one that a server may request while a user waits, in seconds.
longest_delay <- 30
longest_patience <- 60

# A list: whether to try `again`; after how many seconds, `wait`; the delay that the server has `asked` for, if any; and the
# `longest` one that a user accepts. `first`: the delay after the first attempt, which doubles each time.
retry_rule <- function(result, answer, attempt, first, call) {
  # Up to half shorter or longer, so that not all clients retry at the same time. R's generator is not used, since that would
  # change the random numbers of the user.
  chance <- (as.numeric(Sys.time()) * 1e4) %% 1
  list(
    again = if (result == "status") answer$status %in% transient_statuses else result %in% transient_results,
    wait = min(first * 2^(attempt - 1), longest_delay) * (0.5 + chance),
    asked = requested_delay(answer_header(answer, "retry-after", call)),
    longest = longest_patience
  )
}

# The delay in seconds that the header `Retry-After` requests: a number of seconds or a date, which may have passed.
requested_delay <- function(header) {
  if (grepl("^[0-9]+$", header)) {
    return(as.numeric(header))
  }
  date <- as.numeric(curl::parse_date(header))
  date[!is.na(date)] - current_time()
}

# The clock. Tests replace it, so that they need not wait.
current_time <- function() as.numeric(Sys.time())
sleep <- function(seconds) Sys.sleep(seconds)

# ---- The content of answers --------------------------------------------------

read_answer <- function(answer, request, success, call) {
  type <- tolower(trimws(sub(";.*", "", answer_header(answer, "content-type", call))))
  # The server should answer in the encoding of the request, but the header is authoritative.
  coding <- switch(type,
    "application/json" = "json",
    "application/x-protobuf" = ,
    "application/protobuf" = "protobuf",
    if (type == "") request$coding else "text"
  )
  rust(rust_otlp_answer(as.raw(answer$body), coding, success), call)
}

# The last header field with a name, since answers of proxies come first. "" if there is none.
answer_header <- function(answer, name, call) {
  text <- rawToChar(answer$headers[answer$headers != 0])
  lines <- strsplit(text, "\r?\n", useBytes = TRUE)[[1]]
  field <- paste0("^", name, ":")
  found <- grep(field, lines, ignore.case = TRUE, useBytes = TRUE, value = TRUE)
  trimws(as_line(sub(field, "", utils::tail(c("", found), 1), ignore.case = TRUE, useBytes = TRUE), call))
}

# Any bytes as text without control characters.
as_line <- function(text, call) {
  rust(rust_otlp_answer(charToRaw(text), "text", FALSE), call)$message
}

# memCompress() cannot be used: its "gzip" is zlib's format.
gzip <- function(bytes) {
  path <- tempfile()
  on.exit(unlink(path))
  con <- gzfile(path, "wb")
  tryCatch(writeBin(bytes, con), finally = close(con))
  readBin(path, "raw", file.size(path))
}
