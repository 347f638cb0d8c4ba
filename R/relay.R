# The helper of agents that send to `https://`: an R process that sends their requests with curl. The core has no
# encryption, and the thread of an agent must not call R. So the agent writes requests to files in a folder, and one
# helper process for all agents of a user sends them, with the code of `send_otlp()`. src/rust/agent/src/relay is the
# agent's side: file names, and locks that show which processes exist. The agent starts the helper, which ends when
# there is no agent left.

# ---- For the agent ---------------------------------------------------------------------

# The part of the settings that depends on `to`, see src/rust/src/agent.rs.
relay_target <- function(url, headers, timeout, limit, call) {
  need_package("curl", call)
  # The helper has another working directory.
  tls <- vapply(tls_files(call) %||% character(), normalizePath, "")
  # In the helper, as in curl, headers are bytes.
  Encoding(headers) <- "bytes"
  request <- list(
    url = url, headers = headers, coding = "protobuf", timeout = as.numeric(timeout), limit = limit, tls = tls
  )
  environment <- relay_environment()
  folder <- relay_folder(environment)
  # If the helper is killed, its temporary files are removed with the folder.
  environment[["TMPDIR"]] <- folder
  list(
    kind = "relay", path = c(folder, folder), head = serialize(request, NULL, version = 3),
    command = lines_for_c(relay_command(folder)),
    environment = lines_for_c(paste0(names(environment), "=", environment))
  )
}

# The environment variables for the helper: all variables of this process, except those that would configure R
# differently or start an agent in the helper, and those that it does not need. They are copied now, since another
# thread must not read them while R changes them.
relay_environment <- function() {
  variables <- Sys.getenv()
  variables <- rlang::set_names(as.character(variables), names(variables))
  other <- "^(OTEL_.*|R_PROFILE_AGENT|R_PROFILE|R_PROFILE_USER|R_ENVIRON|R_ENVIRON_USER|R_TESTS|R_LIBS|R_DEFAULT_PACKAGES)$"
  c(
    variables[!grepl(other, names(variables))],
    R_LIBS = paste(.libPaths(), collapse = .Platform$path.sep),
    R_DEFAULT_PACKAGES = "NULL"
  )
}

# Agents share a helper if they use the same installed package and the same settings of curl and TLS.
relay_folder <- function(environment) {
  shared <- list(
    R.home(), .libPaths(), utils::packageDescription("profile")[c("Version", "Built")],
    environment[grepl("_proxy$|^(SSL|CURL|OPENSSL)_", names(environment), ignore.case = TRUE)],
    # Containers may share a folder.
    Sys.readlink(c("/proc/self/ns/net", "/proc/self/ns/mnt"))
  )
  base <- normalizePath(dirname(tempdir()))
  file.path(base, paste("profile-relay", file.info(tempdir())$uid, substr(rlang::hash(shared), 1, 16), sep = "-"))
}

# The shell ends at once, so that the helper is not a child of R.
relay_command <- function(folder) {
  c(
    "/bin/sh", "-c", "\"$@\" &", "sh", file.path(R.home("bin"), "Rscript"), "--vanilla", "-e",
    "profile:::run_relay(commandArgs(TRUE)[[1]])", folder
  )
}

lines_for_c <- function(texts) {
  as.raw(unlist(lapply(texts, function(text) c(charToRaw(text), as.raw(0)))))
}

# ---- The helper ------------------------------------------------------------------------

# Seconds between two checks for requests: when idle, and while sending.
relay_pause <- c(idle = 0.25, busy = 0.02)
# Seconds to wait for another agent, and the age in seconds from which other files are removed.
relay_patience <- 5
relay_age <- 60

# Runs until there is no agent, or another helper has taken over.
run_relay <- function(folder) {
  Sys.umask("077")
  setwd(folder)
  path <- c(folder, folder)
  if (rust(rust_relay(path, FALSE), NULL) == "end") {
    return(invisible())
  }
  # Requests of a helper that was killed.
  for (name in relay_files("sending")) {
    write_relay_answer(name, charToRaw("closed\nthe helper process was started again"))
  }
  # One connection for each request: agents may have different certificates.
  pool <- curl::new_pool(total_con = 1000, host_con = 1000, multiplex = FALSE)
  attempts <- list()
  now <- function() proc.time()[["elapsed"]]
  last_agent <- last_request <- last_tidy <- now()
  repeat {
    for (name in relay_files("request")) {
      attempts[[name]] <- begin_relay_attempt(name, pool)
      last_request <- now()
    }
    if (length(attempts) > 0) {
      curl::multi_run(timeout = 0, pool = pool)
      attempts <- attempts[!vapply(names(attempts), function(name) end_relay_attempt(name, attempts[[name]]), NA)]
    }
    idle <- length(attempts) == 0
    state <- rust(rust_relay(path, idle && now() - last_agent > relay_patience), NULL)
    if (state == "send") {
      last_agent <- now()
    } else if (state == "close") {
      # An agent that starts now creates another folder of this name.
      setwd("/")
      old <- paste0(folder, "-", Sys.getpid())
      if (file.rename(folder, old)) {
        unlink(old, recursive = TRUE)
      }
      return(invisible())
    } else if (state == "end") {
      return(invisible())
    }
    if (now() - last_tidy > relay_age) {
      tidy_relay(names(attempts))
      last_tidy <- now()
    }
    # A request is often followed by others.
    Sys.sleep(relay_pause[[if (idle && now() - last_request > 0.5) "idle" else "busy"]])
  }
}

# The names of requests whose files have this extension.
relay_files <- function(extension) {
  pattern <- paste0("[.]", extension, "$")
  sub(pattern, "", list.files(pattern = pattern))
}

# Takes a request and begins to send it. NULL if the request is gone, because its agent has withdrawn it.
begin_relay_attempt <- function(name, pool) {
  sending <- paste0(name, ".sending")
  if (!suppressWarnings(file.rename(paste0(name, ".request"), sending))) {
    return(NULL)
  }
  tryCatch(
    {
      request <- read_relay_request(sending)
      handle <- new_request(request)
      curl::handle_setopt(handle, forbid_reuse = TRUE)
      c(begin_attempt(handle, pool, request), list(request = request[c("url", "coding", "timeout", "limit")]))
    },
    error = function(error) {
      write_relay_answer(name, charToRaw(paste0("not_sent\n", conditionMessage(error))))
      NULL
    }
  )
}

read_relay_request <- function(path) {
  con <- file(path, "rb")
  on.exit(close(con))
  request <- unserialize(con)
  request$body <- readBin(con, "raw", file.size(path))
  request
}

# Whether an attempt has ended, because the server has answered or because the agent has removed the request.
end_relay_attempt <- function(name, attempt) {
  if (!file.exists(paste0(name, ".sending"))) {
    attempt$cancel()
    return(TRUE)
  }
  if (!attempt$has_ended()) {
    return(FALSE)
  }
  write_relay_answer(name, relay_answer(attempt$answer(), attempt$request))
  attempt$cancel()
  TRUE
}

# The answer for the agent: a complete response, which the agent evaluates as if it had received it itself, or the name
# of an outcome and the reason.
relay_answer <- function(answer, request) {
  problem <- problem_with(answer, request, NULL)
  if (!is.null(problem) && problem$result != "status") {
    why <- if (is.na(answer$failure)) "" else curl_message(answer, NULL)
    return(charToRaw(paste0(problem$result, "\n", why)))
  }
  fields <- c("Content-Type", "Retry-After")
  values <- vapply(fields, function(field) answer_header(answer, field, NULL), "")
  body <- as.raw(answer$body)
  lines <- c(
    paste("HTTP/1.1", answer$status, ""),
    paste0(fields, ": ", values)[values != ""],
    paste0("Content-Length: ", length(body))
  )
  c(charToRaw(paste0(lines, "\r\n", collapse = "")), charToRaw("\r\n"), body)
}

write_relay_answer <- function(name, bytes) {
  new <- paste0(name, ".new")
  # If the disk is full, the agent waits until it times out, and does not send the request twice.
  try(
    {
      writeBin(bytes, new)
      file.rename(new, paste0(name, ".answer"))
    },
    silent = TRUE
  )
  unlink(paste0(name, ".sending"))
}

# Removes files of killed processes, and touches the lock, so that programs that remove old temporary files keep it.
tidy_relay <- function(sending) {
  Sys.setFileTime("lock", Sys.time())
  files <- setdiff(list.files(), c("lock", "log", basename(tempdir()), paste0(sending, ".sending")))
  unlink(files[which(Sys.time() - file.mtime(files) > relay_age)], recursive = TRUE)
}
