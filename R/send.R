# Sending a profile to a collector, over HTTP. What is said and done follows OTLP/HTTP
# and what OpenTelemetry asks of exporters:
# https://opentelemetry.io/docs/specs/otlp/#otlphttp
# https://opentelemetry.io/docs/specs/otel/protocol/exporter/

#' Send a profile to an OpenTelemetry collector
#'
#' @description
#' `send_otlp()` posts a profile, as [write_otlp()] would write it, to whatever takes
#' OpenTelemetry profiles over HTTP: a collector, Grafana Pyroscope, and others. It needs
#' the package curl.
#'
#' Profiles are a young part of OpenTelemetry: a collector takes them only where it is told
#' to, and of one version of the format.
#'
#' @details
#' ## Where to
#'
#' | `endpoint` | where the profile goes |
#' |---|---|
#' | a URL without a path, or with the path `/` | to the path `/v1development/profiles` there |
#' | any other URL | to that URL as it is |
#' | `NULL`, and `OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT` is set | to that URL as it is |
#' | `NULL`, and `OTEL_EXPORTER_OTLP_ENDPOINT` is set | to that URL with `/v1development/profiles` added to its path |
#' | `NULL` | to `http://localhost:4318/v1development/profiles` |
#'
#' These environment variables count as well. One of the same name with `PROFILES_` after
#' `OTLP_`, such as `OTEL_EXPORTER_OTLP_PROFILES_HEADERS`, takes the place of the other:
#' - `OTEL_EXPORTER_OTLP_HEADERS`: headers of the request, as `name=value,name=value`, with
#'   percent codes; `headers` adds to them;
#' - `OTEL_EXPORTER_OTLP_CERTIFICATE`: a file with the certificates to trust;
#' - `OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE`, `OTEL_EXPORTER_OTLP_CLIENT_KEY`: files with
#'   those of the client. These files are in PEM format; for HTTP without TLS they do not matter.
#'
#' All else about the connection is as curl has it: HTTPS is checked against the system's
#' certificates, and a proxy is used where `http_proxy` and the like say so. A redirection is
#' an error that says where it leads: to follow it would hand the headers on, and could
#' turn the request into one that sends nothing.
#'
#' Pyroscope wants to know the service: `resource = c(service.name = "my-app")`.
#'
#' ## Trying again
#'
#' When there is no connection, when the server closes it without an answer, and when the
#' status is 429, 502, 503 or 504, the same is sent again, `retries` times at most. The first
#' wait is about a second, each further one twice as long, up to half a minute, all of them
#' up to half as long again or half as short, by chance. If the server says by `Retry-After`
#' how long to wait, it is not asked earlier; if that is more than a minute, this is an error
#' at once. A message of class `profile_message_retry` tells of every wait.
#' A profile may arrive twice: the server may have taken it before the connection was lost.
#'
#' Nothing else is tried again, above all no request that was not answered in time, and none
#' of which the server took a part. Ctrl-C ends the waiting.
#'
#' ## Options
#'
#' - `profile.otlp_max_request`: a message larger than this, before it is compressed, is not
#'   sent. By default 64 MiB, which is also what servers take by default.
#' - `profile.otlp_max_response`: an answer larger than this, after it is inflated, is not
#'   read. By default 4 MiB.
#' - `profile.otlp_backoff`: the length of the first wait, in seconds.
#'
#' @inheritParams write_pprof
#' @param endpoint Where to send it, a URL, or `NULL` for what the environment variables say,
#'   see below.
#' @param resource Attributes of what was profiled: a named character vector.
#' @param headers Headers of the request: a named character vector. They replace those of the
#'   environment variables that have the same name.
#' @param format `"protobuf"` or `"json"`.
#' @param compress Whether to compress the request, with gzip.
#' @param timeout How many seconds to wait for the answer, each time it is sent.
#' @param retries How many times to try again.
#'
#' @return `x`, invisibly.
#'
#' @section Errors:
#' `profile_error_send` when the profile was not taken, or when that is not known. The
#' condition has the fields `endpoint`; `status`, the HTTP status, `NA` without an answer;
#' `attempts`, how many times it was sent; and `answer`, what the server said, or `NA`. In
#' `endpoint` and in messages, passwords and query of the URL are left out.
#'
#' `profile_error_argument` for arguments and environment variables that make no request;
#' `profile_error_unsupported` where curl is not installed; the errors of [write_otlp()] when
#' `x` cannot be written.
#'
#' @section Warnings:
#' `profile_warning_rejected` when the server took the request but rejected profiles of it; the
#' condition has the fields `rejected`, how many, and `answer`. `profile_warning_answer` when
#' it took all and has something to say, or when its answer to a successful request cannot be
#' read. `profile_warning_unsent` when `x` has no samples: nothing is sent then.
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
  call <- rlang::current_env()
  rlang::check_dots_empty()
  check_texts(resource, "resource", call)
  check_format(format, call)
  check_flag(compress, "compress", call)
  check_flag(aggregate, "aggregate", call)
  check_sending(timeout, retries, call)
  need_package("curl", call)
  tables <- as_profile(x, call)
  json <- format == "json"
  request <- list(
    url = otlp_url(endpoint, call),
    headers = otlp_headers(headers, json, compress, call),
    coding = if (json) "json" else "protobuf",
    timeout = timeout,
    limit = number_option("profile.otlp_max_response", 4 * 2^20, call),
    backoff = number_option("profile.otlp_backoff", 1, call)
  )
  request$shown <- shown_url(request$url)
  request$tls <- if (grepl("^https:", request$url, ignore.case = TRUE)) tls_files(call)

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
  heed(deliver(request, retries, call), request, call)
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

otlp_url <- function(endpoint, call) {
  path <- "/v1development/profiles"
  if (!is.null(endpoint)) {
    parts <- url_parts(endpoint, "`endpoint`", call)
    bare <- parts$path %in% c("", "/")
    return(if (bare) paste0(parts$site, path, parts$query) else enc2utf8(endpoint))
  }
  own <- Sys.getenv("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT")
  if (own != "") {
    url_parts(own, "The environment variable `OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT`", call)
    return(enc2utf8(own))
  }
  # One that is empty is as if not set, here and below.
  base <- Sys.getenv("OTEL_EXPORTER_OTLP_ENDPOINT")
  base <- if (base == "") "http://localhost:4318" else base
  parts <- url_parts(base, "The environment variable `OTEL_EXPORTER_OTLP_ENDPOINT`", call)
  paste0(parts$site, sub("/$", "", parts$path), path, parts$query)
}

# curl would say of a URL that makes no sense what it says of one that does not answer.
url_parts <- function(url, what, call) {
  host <- "([^/?#@]*@)?(\\[[0-9A-Fa-f:.]+\\]|[^][/?#@:<>\"\\\\^`{|}]+)(:[0-9]{0,5})?"
  pattern <- paste0("^(https?://", host, ")([^?#]*)([^#]*)")
  found <- if (is_text(url) && !grepl("[\x01- \x7f]", url)) {
    regmatches(enc2utf8(url), regexec(pattern, enc2utf8(url), ignore.case = TRUE))[[1]]
  }
  if (length(found) == 0 || !grepl("^(/|$)", found[6]) || as.numeric(sub("^:?", "0", found[5])) > 65535) {
    abort_argument(paste0(what, " must be a URL such as `http://localhost:4318`."), call)
  }
  list(site = found[2], path = found[6], query = found[7])
}

# There may be secrets in it.
shown_url <- function(url) {
  sub("[?#].*", "", sub("//[^/?#]*@", "//", url))
}

otel_setting <- function(name) {
  values <- Sys.getenv(paste0("OTEL_EXPORTER_OTLP_", c("PROFILES_", ""), name), names = TRUE)
  utils::head(values[values != ""], 1)
}

otlp_headers <- function(headers, json, compress, call) {
  check_texts(headers, "headers", call, bytes = TRUE)
  own <- c(
    # Servers compare this as a whole: it has no parameters.
    "Content-Type" = if (json) "application/json" else "application/x-protobuf",
    "Content-Encoding" = if (compress) "gzip",
    "User-Agent" = paste0("OTel-OTLP-Exporter-R/", utils::packageVersion("profile"))
  )
  setting <- otel_setting("HEADERS")
  variable <- paste0("The environment variable `", names(setting), "`")
  own <- with_headers(own, setting_headers(setting), variable, call)
  with_headers(own, headers, "`headers`", call)
}

# Values are not shown: there are secrets among them.
with_headers <- function(headers, new, what, call) {
  # A line feed in a value would start a header of its own.
  token <- grepl("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$", names(new), useBytes = TRUE)
  value <- grepl("[^ ]", new, useBytes = TRUE) & !grepl("[\x01-\x1f\x7f]", new, useBytes = TRUE)
  if (!all(token & value)) {
    abort_argument(paste(what, "must have names and values that HTTP allows in headers."), call)
  }
  fixed <- c("content-type", "content-encoding", "content-length", "transfer-encoding")
  if (any(tolower(names(new)) %in% fixed)) {
    abort_argument(paste(what, "must not say what the body is and how long, which `send_otlp()` does."), call)
  }
  c(headers[!tolower(names(headers)) %in% tolower(names(new))], new)
}

# The options of curl that name files. Whether these are there is checked here: curl opens them
# when it is connected, and its old versions do not tell a failure from a lost connection.
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
        x = paste0("`", setting, "` ", if (is.null(lines)) "cannot be read." else "contains none.")
      ),
      call
    )
  }
  unname(setting)
}

# Of "name=value,name=value"; what is no such pair has a name that is not allowed.
setting_headers <- function(setting) {
  pairs <- trimws(unlist(strsplit(setting, ",", fixed = TRUE)))
  pairs <- pairs[pairs != ""]
  rlang::set_names(
    curl::curl_unescape(trimws(sub("^[^=]*=?", "", pairs))),
    curl::curl_unescape(trimws(sub("=.*", "", pairs)))
  )
}

# ---- What came of it ---------------------------------------------------------

# The answer to a request that succeeded.
heed <- function(answer, request, call) {
  said <- understood(answer, request, success = TRUE, call)
  if (!said$read || !is.na(answer$failure)) {
    said <- understood(answer, request, success = FALSE, call)
    warn_profile(
      c(
        paste0("`", request$shown, "` did not answer as OTLP wants it: whether it took the profile is not known."),
        x = paste0("HTTP ", answer$status, if (said$message != "") paste0(": ", said$message)),
        x = if (!is.na(answer$failure)) paste0("The answer broke off: ", said_by_curl(answer, call))
      ),
      "profile_warning_answer",
      answer = said$message, call = call
    )
  } else if (said$rejected > 0) {
    rejected <- format(said$rejected, big.mark = ",", scientific = FALSE)
    warn_profile(
      c(
        paste0("`", request$shown, "` rejected profiles: ", rejected, "."),
        x = if (said$message != "") paste0("It says: ", said$message)
      ),
      "profile_warning_rejected",
      rejected = said$rejected, answer = said$message, call = call
    )
  } else if (said$message != "") {
    warn_profile(
      c(paste0("`", request$shown, "` took the profile and has something to say."), i = said$message),
      "profile_warning_answer",
      answer = said$message, call = call
    )
  }
}

# `problem` has `bullets`, and what was answered, if anything was.
abort_send <- function(problem, request, attempts, call) {
  abort_profile(
    c(
      paste0("Sending the profile to `", request$shown, "` failed."),
      problem$bullets,
      i = if (attempts > 1) paste0("It was tried ", attempts, " times.")
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
