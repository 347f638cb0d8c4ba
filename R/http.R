# Posting a message until it is taken: one exchange after the other, by curl, and the
# decision whether there is another one.
#
# What went wrong is decided by what went over the wire and by the classes of curl's errors,
# never by its words, which differ between versions. Versions of the R package before 6.0
# have no classes; there the wire alone decides.

# Gives the answer of an exchange that succeeded.
deliver <- function(request, retries, call) {
  pool <- curl::new_pool()
  handle <- new_request(request)
  for (attempt in seq_len(retries + 1)) {
    answer <- exchange(handle, pool, request)
    problem <- trouble(answer, request, call)
    if (is.null(problem)) {
      return(answer)
    }
    wait <- backoff(attempt, request$backoff)
    asked <- if (problem$again) retry_after(answer, call) else NA
    if (isTRUE(asked > longest_wait)) {
      problem$bullets <- c(problem$bullets, i = paste0("It asks to wait for ", format(round(asked)), " seconds."))
      problem$again <- FALSE
    }
    if (!problem$again || attempt > retries) {
      abort_send(problem, request, attempt, call)
    }
    wait <- max(wait, asked, na.rm = TRUE)
    inform_profile(
      c(paste0("Trying again in ", format(round(wait, 1)), " seconds."), problem$bullets[1]),
      "profile_message_retry"
    )
    Sys.sleep(wait)
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
    # Of a user in the URL. Where it is open which way to take, curl asks first, without a body.
    httpauth = 1,
    # Bytes that are not HTTP/1 then arrive as a body without a status. Without this, old
    # versions of curl report them like a connection that was closed.
    http09_allowed = TRUE
  )
  handle <- curl::new_handle(.list = c(options, request$tls))
  # They are sent as they are: curl is not to take them for text in some encoding.
  headers <- request$headers
  Encoding(headers) <- "bytes"
  curl::handle_setheaders(handle, .list = as.list(headers))
  handle
}

# Sends it once. `status` is 0 without an answer, `failure` is why there is no complete one:
# curl's message, with the class of its error where it has one.
exchange <- function(handle, pool, request) {
  pieces <- list()
  size <- 0
  failure <- NA_character_
  # What is too much goes by, for as long as the timeout lets it: no way to stop is open here.
  keep <- function(bytes, end) {
    size <<- size + length(bytes)
    if (size <= request$limit) {
      pieces[[length(pieces) + 1]] <<- bytes
    }
  }
  seen <- watch(handle)
  # The connection stays open for the next time.
  curl::multi_add(handle, data = keep, fail = function(message) failure <<- message, pool = pool)
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

# Notes what went over the wire. The types are those of curl's debug function,
# https://curl.se/libcurl/c/CURLOPT_DEBUGFUNCTION.html. Of TLS, curl shows messages where
# it uses OpenSSL, and nothing with other libraries.
watch <- function(handle) {
  data_out <- 4L
  tls_in <- 5L
  seen <- list(request = FALSE, tls_answer = FALSE, tls_alert = FALSE)
  note <- function(type, bytes) {
    if (type == data_out) {
      seen$request <<- TRUE
    } else if (type == tls_in) {
      seen$tls_answer <<- TRUE
      # A fatal alert is a message of two bytes, this one and its number.
      seen$tls_alert <<- seen$tls_alert || (length(bytes) == 2 && bytes[[1]] == 2)
    }
  }
  curl::handle_setopt(handle, verbose = TRUE, debugfunction = note)
  function() seen
}

# NULL, or what went wrong, in words, and whether it may go right the next time.
trouble <- function(answer, request, call) {
  if (answer$status == 0) {
    no_answer(answer, request, call)
  } else if (answer$size > request$limit) {
    list(
      bullets = c(
        x = paste0("HTTP ", answer$status, ", with an answer larger than ", mebibytes(request$limit), "."),
        i = "The option `profile.otlp_max_response` changes the limit, in bytes."
      ),
      status = answer$status, again = FALSE
    )
  } else {
    refusal(answer, request, call)
  }
}

no_answer <- function(answer, request, call) {
  why <- said_by_curl(answer, call)
  if (answer$size > 0) {
    list(
      bullets = c(
        x = "The answer is not HTTP/1.",
        i = "Is this the port for gRPC? That for HTTP is another one, often 4318."
      ),
      again = FALSE
    )
  } else if (tls_refused(answer)) {
    list(bullets = c(x = paste0("There is no secure connection: ", why)), again = FALSE)
  } else if (!answer$seen$request) {
    list(bullets = c(x = paste0("There is no connection: ", why)), again = TRUE)
  } else if (answer$late) {
    list(
      bullets = c(
        x = paste0("There was no answer within ", format(request$timeout), " seconds."),
        i = "Whether the profile has arrived is not known."
      ),
      again = FALSE
    )
  } else {
    list(bullets = c(x = paste0("The connection was closed without an answer: ", why)), again = TRUE)
  }
}

# Whether one side does not accept the other, which will not pass: a certificate that is not
# trusted, a key that does not match, a server that does not speak TLS. curl has one number for
# some of these and for a connection that was cut meanwhile, so the wire decides: to one who
# answered, but not in a way that leads to a request, there is no way. An alert may also come
# after the request: in TLS 1.3 a server looks at the client's certificate late.
#
# What fails before anything came from the server, such as a key that does not match its
# certificate, has a class in new versions of curl. In old ones it looks like a connection that
# was cut, and is tried again for nothing.
tls_refused <- function(answer) {
  inherits(answer$failure, tls_errors) || answer$seen$tls_alert ||
    (answer$seen$tls_answer && !answer$seen$request && !answer$late)
}

tls_errors <- paste0("curl_error_", c(
  "peer_failed_verification", "use_ssl_failed", "ssl_cacert_badfile", "ssl_certproblem", "ssl_cipher",
  "ssl_clientcert", "ssl_crl_badfile", "ssl_engine_initfailed", "ssl_engine_notfound", "ssl_engine_setfailed",
  "ssl_invalidcertstatus", "ssl_issuer_error", "ssl_pinnedpubkeynotmatch"
))

refusal <- function(answer, request, call) {
  status <- answer$status
  if (status >= 200 && status < 300) {
    return(NULL)
  }
  said <- understood(answer, request, success = FALSE, call)$message
  location <- if (status >= 300 && status < 400) answer_header(answer, "location", call) else ""
  list(
    bullets = c(
      x = paste0("HTTP ", status, if (said != "") paste0(": ", said)),
      i = if (location != "") paste0("It redirects to `", shown_url(location), "`; use that as `endpoint`."),
      i = if (status == 404) "Are profiles taken there, and at this path?"
    ),
    status = status, answer = if (said != "") said,
    again = status %in% c(429, 502, 503, 504)
  )
}

# ---- How long to wait --------------------------------------------------------

# In seconds.
longest_wait <- 60

backoff <- function(attempt, first = 1) {
  # By chance, but not by R's random numbers: those of a session are not to change, and
  # many sessions may start from one seed.
  chance <- (as.numeric(Sys.time()) * 1e4 + Sys.getpid() * 0.618) %% 1
  min(first * 2^(attempt - 1), longest_wait / 2) * (0.5 + chance)
}

# NA when the server does not say it, or not so that it can be understood.
retry_after <- function(answer, call) {
  value <- answer_header(answer, "retry-after", call)
  if (grepl("^[0-9]+$", value)) {
    as.numeric(value)
  } else if (grepl("[[:alpha:]]", value)) {
    # Not strptime(): it wants the months of the locale.
    as.numeric(curl::parse_date(value)) - as.numeric(Sys.time())
  } else {
    NA_real_
  }
}

# ---- What the server says ----------------------------------------------------

understood <- function(answer, request, success, call) {
  type <- tolower(trimws(sub(";.*", "", answer_header(answer, "content-type", call))))
  # It is to answer in the coding in which it was asked, but says what it did.
  coding <- switch(type,
    "application/json" = "json",
    "application/x-protobuf" = ,
    "application/protobuf" = "protobuf",
    if (type == "") request$coding else "text"
  )
  rust(rust_otlp_answer(as.raw(answer$body), coding, success), call)
}

# The last such field: the answers of proxies come before. "" if there is none.
answer_header <- function(answer, name, call) {
  text <- rawToChar(answer$headers[answer$headers != 0])
  lines <- strsplit(text, "\r?\n", useBytes = TRUE)[[1]]
  field <- paste0("^", name, ":")
  found <- grep(field, lines, ignore.case = TRUE, useBytes = TRUE, value = TRUE)
  as_line(sub(field, "", utils::tail(c("", found), 1), ignore.case = TRUE, useBytes = TRUE), call)
}

said_by_curl <- function(answer, call) {
  as_line(paste(answer$failure), call)
}

# Whatever the bytes are: text without control characters.
as_line <- function(text, call) {
  rust(rust_otlp_answer(charToRaw(text), "text", FALSE), call)$message
}

# Not by memCompress(), whose "gzip" is zlib's format.
gzip <- function(bytes) {
  path <- tempfile()
  on.exit(unlink(path))
  con <- gzfile(path, "wb")
  tryCatch(writeBin(bytes, con), finally = close(con))
  readBin(path, "raw", file.size(path))
}
