# Where an agent sends profiles, and the attributes of what it profiles.

# The part of the settings that depends on `to`, see src/rust/src/agent.rs. `shown` is for messages.
agent_target <- function(to, headers, timeout, resource, spool, call) {
  limit <- number_option("profile.agent_queue_mb", 16, call) * 2^20
  if (is.function(to)) {
    # Both folders are removed at the end.
    # R removes the folder of the session if a fork calls `quit()`.
    path <- in_folder(tempfile("profile-agent-", dirname(tempdir())), "spool")
    return(list(kind = "function", shown = "a function", path = c(path, path), limit = limit))
  }
  if (identical(to, "")) {
    abort_argument("`to` must not be an empty string.", call)
  }
  if (!is.null(to) && !is_path(to)) {
    abort_argument(
      paste0("`to` must be a URL, the path of a folder, a function, or `NULL`, not ", describe_object(to), "."), call
    )
  }
  if (!is.null(to) && !grepl("^[A-Za-z][A-Za-z0-9+.-]*://", to, useBytes = TRUE)) {
    return(agent_folder(to, resource, call))
  }
  forward_target(to, headers, timeout, spool, limit, call)
}

# A server without the start of its URL, such as `localhost`, `host:4318`, or `10.0.0.1/v1development/profiles`.
is_server <- function(path) {
  grepl("^(localhost|([0-9]+[.]){3}[0-9]+|[^/]*:[0-9]+|.*/v1(development)?/profiles)(/.*)?$", path)
}

# Creates a folder, unless its name looks like a server, and returns whether that was possible.
create_folder <- function(path) {
  dir.exists(dirname(path)) && !is_server(path) && dir.create(path, showWarnings = FALSE)
}

agent_folder <- function(to, resource, call) {
  file <- file_path(to, "profile_error_write", call)
  if (!dir.exists(file[[1]]) && !create_folder(file[[1]])) {
    abort_no_folder(file, "profile_error_write", call, i = if (is_server(file[[2]])) {
      url <- paste0("http://", short_text(to))
      paste0("The URL of a server starts with `http://` or `https://`: ", in_quotes(url), ".")
    } else {
      "It is created if its parent folder exists. The URL of a server starts with `http://` or `https://`."
    })
  }
  # Services that share a folder write files with different names.
  name <- gsub("[^A-Za-z0-9._-]+", "-", resource[["service.name"]])
  path <- normalizePath(file[[1]])
  list(kind = "folder", shown = file[[2]], path = c(path, file[[2]]), name = substr(name, 1, 100))
}

# The attributes of the resource: the defaults, the attributes in environment variables, and the user's.
agent_resource <- function(resource, call) {
  host <- Sys.info()[["nodename"]]
  known <- c(
    service.name = "unknown_service:R",
    process.runtime.name = "R",
    process.runtime.version = as.character(getRversion()),
    if (is_text(host) && host != "") c(host.name = host),
    instance_attributes()
  )
  name <- environment_text("OTEL_SERVICE_NAME", call)
  for (new in list(environment_attributes(call), if (name != "") c(service.name = name), resource)) {
    known[names(new)] <- new
  }
  known
}

# What makes all parts of this process one run in a store, also those of a later agent. A fork is another process.
instance_attributes <- function() {
  if (!identical(the$instance$pid, Sys.getpid())) {
    start <- .POSIXct(as.numeric(Sys.time()) - proc.time()[["elapsed"]], "UTC")
    the$instance <- list(pid = Sys.getpid(), attributes = c(
      service.instance.id = random_uuid(), process.creation.time = format(start, "%Y-%m-%dT%H:%M:%SZ")
    ))
  }
  the$instance$attributes
}

# A random UUID, version 4 of RFC 9562.
random_uuid <- function() {
  digits <- strsplit(rlang::hash(unique_parts()), "")[[1]]
  digits[[13]] <- "4"
  digits[[17]] <- "8"
  digits <- paste(digits, collapse = "")
  paste(substring(digits, c(1, 9, 13, 17, 21), c(8, 12, 16, 20, 32)), collapse = "-")
}

# As OpenTelemetry recommends, none of the attributes is used if there is an error in one of them.
environment_attributes <- function(call) {
  name <- "OTEL_RESOURCE_ATTRIBUTES"
  attributes <- setting_headers(environment_text(name, call))
  if (!all(is_valid_text(c(names(attributes), attributes)))) {
    warn_unused(name, "its percent-encoded bytes are not valid UTF-8", call)
  } else if (any(names(attributes) == "")) {
    warn_unused(name, "it does not have the form `key=value,key=value`", call)
  } else {
    return(attributes)
  }
  character()
}
