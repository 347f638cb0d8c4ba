# Sends a profile to a collector over HTTP, as the specifications of OTLP/HTTP and of OpenTelemetry's
# exporters require:
# https://opentelemetry.io/docs/specs/otlp/#otlphttp
# https://opentelemetry.io/docs/specs/otel/protocol/exporter/

#' Send a profile to an OpenTelemetry collector
#'
#' @description
#' `send_otlp()` posts a profile over HTTP, in the format of [write_otlp()], to any server that accepts
#' OpenTelemetry profiles: a collector, Grafana Pyroscope, and others. It requires the package curl.
#'
#' Profiles are a recent part of OpenTelemetry. A collector accepts them only if it is configured to do so,
#' and only in one version of the format.
#'
#' @details
#' ## Endpoint
#'
#' | `endpoint` | the profile is sent to |
#' |---|---|
#' | a URL without a path, or with the path `/` | the path `/v1development/profiles` of that server |
#' | any other URL | that URL |
#' | `NULL`, and `OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT` is set | that URL |
#' | `NULL`, and `OTEL_EXPORTER_OTLP_ENDPOINT` is set | that URL with `/v1development/profiles` appended to its path |
#' | `NULL` | `http://localhost:4318/v1development/profiles` |
#'
#' Pyroscope requires the name of the service: `resource = c(service.name = "my-app")`.
#'
#' ## Environment variables
#'
#' These variables are used as well. A variable of the same name with `PROFILES_` after `OTLP_`, such as
#' `OTEL_EXPORTER_OTLP_PROFILES_HEADERS`, takes precedence.
#' - `OTEL_EXPORTER_OTLP_HEADERS`: headers of the request, as `name=value,name=value`, percent-encoded;
#'   `headers` adds to them;
#' - `OTEL_EXPORTER_OTLP_CERTIFICATE`: a file with the trusted certificates;
#' - `OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE`, `OTEL_EXPORTER_OTLP_CLIENT_KEY`: files with the client's
#'   certificate and key. All these files are in PEM format; they are ignored for HTTP without TLS.
#'
#' A request does not say which version of the format it has. The specification is about to define a header for that:
#' `headers = c("OTLP-Profiles-Development-Version" = "1")` sends it. The version is 1 for what this package writes, and
#' for requests without the header.
#'
#' Everything else about the connection follows curl's defaults: HTTPS is verified against the system's certificates,
#' and `http_proxy` and similar variables configure proxies. A redirect is reported as an error, with its target:
#' following it would disclose the headers, and could send a request without a body.
#'
#' ## Retries
#'
#' Transient errors are retried, up to `retries` times: no connection, a connection closed without an answer, and the
#' HTTP statuses 429, 502, 503 and 504. The first delay is about one second, and each further delay is twice as long, up
#' to half a minute; all delays vary randomly by up to half. A delay that the server requests by `Retry-After` is
#' respected; more than a minute is an error. A message of class `profile_message_retry` announces each delay.
#'
#' Other errors are not retried, in particular timeouts and partially accepted requests. Ctrl-C stops
#' waiting. A profile may arrive twice if the connection was lost after the server had accepted it.
#'
#' ## Options
#'
#' - `profile.otlp_max_request`: messages larger than this, before compression, are not sent. The default is 64 MiB.
#'   Servers have limits, too: OpenTelemetry's collector refuses more than 20 MiB, with the HTTP status 400, unless
#'   its receiver is configured with a larger `max_request_body_size`.
#' - `profile.otlp_max_response`: answers larger than this, after decompression, are not read. The default
#'   is 4 MiB.
#' - `profile.otlp_backoff`: the first delay, in seconds.
#'
#' @inheritParams write_pprof
#' @param endpoint The URL of the server, or `NULL` to use the environment variables, see below.
#' @param resource Attributes of what was profiled: a named character vector.
#' @param headers Headers of the request: a named character vector. They replace headers of the same names in
#'   environment variables.
#' @param format `"protobuf"` or `"json"`.
#' @param compress Whether to compress the request with gzip.
#' @param timeout The number of seconds to wait for the answer to each attempt.
#' @param retries The maximum number of retries.
#'
#' @return `x`, invisibly.
#'
#' @section Errors:
#' `profile_error_send` if the server did not accept the profile, or if it is unknown whether it did. The condition
#' has the fields `endpoint`; `status`, the HTTP status, `NA` without an answer; `attempts`, the number of attempts;
#' and `answer`, the server's message, or `NA`. `endpoint` and messages omit passwords and queries of URLs.
#'
#' `profile_error_argument` for invalid arguments and environment variables; `profile_error_unsupported` if curl is not
#' installed; the errors of [write_otlp()] if `x` cannot be written.
#'
#' @section Warnings:
#' - `profile_warning_rejected` if the server accepted the request but rejected some profiles; the condition
#'   has the fields `rejected`, the number of profiles, and `answer`;
#' - `profile_warning_answer` if the server accepted the profile with a message, or its answer to a
#'   successful request cannot be read;
#' - `profile_warning_unsent` if `x` has no samples, in which case nothing is sent.
#'
#' @seealso [write_otlp()]
#' @export
#' @examples
#' if (interactive()) {
#'   x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#'   send_otlp(x, "http://localhost:4040", resource = c(service.name = "my-app"))
#' }
send_otlp <- function(x, endpoint = NULL, ..., resource = character(), headers = character(), format = "protobuf",
                      compress = TRUE, aggregate = TRUE, timeout = 10, retries = 5) {
  call <- call_without_dots()
  check_texts(resource, "resource", call)
  format <- check_choice(format, c("protobuf", "json"), "format", call)
  check_flag(compress, "compress", call)
  check_flag(aggregate, "aggregate", call)
  check_sending(timeout, retries, call)
  need_package("curl", call)
  tables <- as_profile(x, call)
  json <- format == "json"
  request <- otlp_request(endpoint, headers, timeout, call, "endpoint", json, compress)
  request$body <- otlp_message(tables, json, aggregate, resource, call)
  if (nrow(tables$samples) == 0) {
    warn_profile("The profile has no samples: nothing was sent.", "profile_warning_unsent", call = call)
    return(invisible(x))
  }
  limit <- number_option("profile.otlp_max_request", 64 * 2^20, call)
  if (length(request$body) > limit) {
    problem <- list(bullets = c(
      x = paste0("The message has ", mebibytes(length(request$body)), ", the limit is ", mebibytes(limit), "."),
      i = "The option `profile.otlp_max_request` changes the limit, in bytes."
    ))
    abort_send(problem, request, attempts = 0L, call)
  }
  if (compress) {
    request$body <- gzip(request$body)
  }
  report_answer(post(request, retries, call), request, call)
  invisible(x)
}

# ---- Arguments and environment ----------------------------------------------

check_sending <- function(timeout, retries, call) {
  # curl counts milliseconds.
  longest <- .Machine$integer.max / 1000
  if (!is.numeric(timeout) || length(timeout) != 1 || !isTRUE(timeout > 0 && timeout < longest)) {
    abort_argument("`timeout` must be a number of seconds, greater than 0.", call)
  }
  if (!rlang::is_integerish(retries, 1, finite = TRUE) || retries < 0) {
    abort_argument("`retries` must be a whole number, 0 or greater.", call)
  }
}

number_option <- function(option, default, call) {
  value <- getOption(option, default)
  if (!is.numeric(value) || length(value) != 1 || !isTRUE(value >= 0)) {
    abort_argument(paste0("The option `", option, "` must be a number, 0 or greater."), call)
  }
  value
}

otlp_url <- function(endpoint, call, argument) {
  path <- "/v1development/profiles"
  if (!is.null(endpoint)) {
    parts <- url_parts(endpoint, paste0("`", argument, "`"), call)
    bare <- parts$path %in% c("", "/")
    return(if (bare) paste0(parts$site, path, parts$query) else enc2utf8(endpoint))
  }
  # NA for a value that is not valid text, which is not a URL. Empty variables are treated as not set, here and below.
  own <- utf8_text(environment_values("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT"))
  if (!identical(own, "")) {
    url_parts(own, "The environment variable `OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT`", call)
    return(own)
  }
  base <- utf8_text(environment_values("OTEL_EXPORTER_OTLP_ENDPOINT"))
  base <- if (identical(base, "")) "http://localhost:4318" else base
  parts <- url_parts(base, "The environment variable `OTEL_EXPORTER_OTLP_ENDPOINT`", call)
  paste0(parts$site, sub("/$", "", parts$path), path, parts$query)
}

# Checked here, since curl reports an invalid URL like a server that does not answer.
url_parts <- function(url, what, call) {
  parts <- parsed_url(url)
  if (is.null(parts)) {
    # Without a scheme, `localhost:4318` looks like one.
    guess <- if (is_text(url) && !grepl("://", url, fixed = TRUE)) paste0("http://", url)
    abort_argument(c(
      paste0(what, " must be a URL such as `http://localhost:4318`."),
      i = if (!is.null(parsed_url(guess))) {
        paste0("Did you mean ", in_quotes(short_text(shown_url(guess))), "?")
      } else if (is_text(url) && grepl("://", url, fixed = TRUE) && !grepl("^https?://", url, ignore.case = TRUE)) {
        "Profiles are sent by HTTP, usually to port 4318: the URL starts with `http://` or `https://`."
      } else if (is_text(url) && grepl(":[0-9]+", url)) {
        "The number of a port is at most 65535."
      }
    ), call)
  }
  parts
}

# NULL if it is not a valid URL.
parsed_url <- function(url) {
  host <- "([^/?#@]*@)?(\\[[0-9A-Fa-f:.]+\\]|[^][/?#@:<>\"\\\\^`{|}]+)(:[0-9]{0,5})?"
  pattern <- paste0("^(https?://", host, ")([^?#]*)([^#]*)")
  found <- if (is_text(url) && !grepl("[\x01- \x7f]", url)) {
    regmatches(enc2utf8(url), regexec(pattern, enc2utf8(url), ignore.case = TRUE))[[1]]
  }
  if (length(found) > 0 && grepl("^(/|$)", found[6]) && as.numeric(sub("^:?", "0", found[5])) <= 65535) {
    list(site = found[2], path = found[6], query = found[7])
  }
}

# Without passwords and queries, which may contain secrets.
shown_url <- function(url) {
  sub("[?#].*", "", sub("//[^/?#]*@", "//", url))
}

otel_setting <- function(name) {
  names <- paste0("OTEL_EXPORTER_OTLP_", c("PROFILES_", ""), name)
  values <- rlang::set_names(environment_values(names), names)
  utils::head(values[nzchar(values)], 1)
}

otlp_headers <- function(headers, json, compress, call) {
  check_texts(headers, "headers", call, bytes = TRUE)
  own <- c(
    # Without parameters, since servers compare the whole value.
    "Content-Type" = if (json) "application/json" else "application/x-protobuf",
    "Content-Encoding" = if (compress) "gzip",
    "User-Agent" = paste0("OTel-OTLP-Exporter-R/", utils::packageVersion("profile"))
  )
  setting <- otel_setting("HEADERS")
  variable <- paste0("The environment variable `", names(setting), "`")
  own <- with_headers(own, setting_headers(setting), variable, call)
  with_headers(own, headers, "`headers`", call)
}

# Values are not shown in messages, since they may be secrets.
with_headers <- function(headers, new, what, call) {
  # A line feed in a value would start another header.
  token <- grepl("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$", names(new), useBytes = TRUE)
  value <- grepl("[^ ]", new, useBytes = TRUE) & !grepl("[\x01-\x1f\x7f]", new, useBytes = TRUE)
  if (!all(token & value)) {
    abort_argument(paste(what, "must have names and values that are valid in HTTP headers."), call)
  }
  fixed <- c("content-type", "content-encoding", "content-length", "transfer-encoding")
  if (any(tolower(names(new)) %in% fixed)) {
    abort_argument(paste(what, "must not contain the type, encoding or length of the body."), call)
  }
  c(headers[!tolower(names(headers)) %in% tolower(names(new))], new)
}

# The options of curl with the names of PEM files. The files are checked here, since curl opens them only when it is
# connected, and old versions report a failure like a lost connection.
tls_files <- function(call) {
  c(
    cainfo = pem_file("CERTIFICATE", "CERTIFICATE", call),
    sslcert = pem_file("CLIENT_CERTIFICATE", "CERTIFICATE", call),
    sslkey = pem_file("CLIENT_KEY", "PRIVATE KEY", call)
  )
}

pem_file <- function(name, label, call) {
  setting <- otel_setting(name)
  if (length(setting) == 0) {
    return(NULL)
  }
  lines <- tryCatch(readLines(setting, warn = FALSE), error = function(e) NULL, warning = function(w) NULL)
  if (!any(grepl(paste0("^-----BEGIN .*", label, "-----"), lines, useBytes = TRUE))) {
    what <- if (label == "CERTIFICATE") "certificates" else "a private key"
    abort_argument(
      c(
        paste0("The environment variable `", names(setting), "` must name a file with ", what, " in PEM format."),
        x = paste0("`", shown_text(setting), "` ", if (is.null(lines)) "cannot be read." else "contains none.")
      ),
      call
    )
  }
  unname(setting)
}

# Parses "name=value,name=value". Anything else results in a name that is not valid. Values may be any bytes.
setting_headers <- function(setting) {
  without <- function(pattern, x) gsub(pattern, "", x, useBytes = TRUE)
  trimmed <- function(x) without("^[ \t\r\n]+|[ \t\r\n]+$", x)
  pairs <- trimmed(unlist(strsplit(setting, ",", fixed = TRUE, useBytes = TRUE)))
  pairs <- pairs[nzchar(pairs)]
  rlang::set_names(
    percent_decoded(trimmed(without("^[^=]*=?", pairs))),
    percent_decoded(trimmed(without("=.*", pairs)))
  )
}

# utils::URLdecode() warns about a percent sign without digits.
percent_decoded <- function(texts) {
  vapply(texts, function(text) {
    bytes <- charToRaw(text)
    codes <- gregexpr("%[0-9A-Fa-f]{2}", text, useBytes = TRUE)[[1]]
    if (codes[[1]] > 0) {
      digits <- rawToChar(bytes[rbind(codes + 1, codes + 2)])
      at <- 2 * seq_along(codes)
      bytes[codes] <- as.raw(strtoi(substring(digits, at - 1, at), 16L))
      bytes <- bytes[-c(codes + 1, codes + 2)]
    }
    decoded <- rawToChar(bytes[bytes != 0])
    Encoding(decoded) <- "UTF-8"
    decoded
  }, "", USE.NAMES = FALSE)
}

# ---- Reporting the result ----------------------------------------------------

# Warns about the answer to a successful request, unless it confirms that everything was accepted.
report_answer <- function(answer, request, call) {
  report <- read_answer(answer, request, success = TRUE, call)
  if (!report$read || !is.na(answer$failure)) {
    report <- read_answer(answer, request, success = FALSE, call)
    warn_profile(c(
      paste0(
        "The answer of `", request$shown, "` does not conform to OTLP: it is unknown whether the profile was accepted."
      ),
      x = paste0("HTTP ", answer$status, if (report$message != "") paste0(": ", report$message)),
      x = if (!is.na(answer$failure)) paste0("The answer is incomplete: ", as_line(paste(answer$failure), call))
    ), "profile_warning_answer", answer = report$message, call = call)
  } else if (report$rejected > 0) {
    warn_profile(c(
      paste0("`", request$shown, "` rejected ", count_of(report$rejected, "profile"), "."),
      x = if (report$message != "") paste0("Message: ", report$message)
    ), "profile_warning_rejected", rejected = report$rejected, answer = report$message, call = call)
  } else if (report$message != "") {
    warn_profile(
      c(paste0("`", request$shown, "` accepted the profile with a message."), i = report$message),
      "profile_warning_answer", answer = report$message, call = call
    )
  }
}

# `problem` has `bullets`, and `status` and `answer` if there was an answer.
abort_send <- function(problem, request, attempts, call) {
  abort_profile(
    c(
      paste0("Sending the profile to `", request$shown, "` failed."),
      problem$bullets,
      i = if (attempts > 1) paste0("Number of attempts: ", attempts, ".")
    ),
    "profile_error_send",
    endpoint = request$shown,
    status = if (is.null(problem$status)) NA_integer_ else problem$status,
    attempts = attempts,
    answer = if (is.null(problem$answer)) NA_character_ else problem$answer,
    call = call
  )
}

mebibytes <- function(bytes) {
  paste(format(bytes / 2^20, digits = 3, big.mark = ",", scientific = FALSE), "MiB")
}
