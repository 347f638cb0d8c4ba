# The forwarder, an R process that sends the chunks of agents. The core has no encryption, and the thread of an agent
# must not call R. So the agent writes chunks to a folder, its spool, and one forwarder for all agents of a user with the
# same target sends them. src/rust/agent/src is the agent's side: `spool` defines the names of files, `lock` shows which
# processes exist, and `forward` starts the forwarder, which ends when there is no agent left.

# ---- For the agent ---------------------------------------------------------------------

# The part of the settings that depends on `to`, see src/rust/src/agent.rs.
forward_target <- function(to, headers, timeout, spool, limit, call) {
  need_package("curl", call)
  request <- otlp_request(to, headers, timeout, call)
  environment <- forward_environment()
  folder <- spool_folder(request, environment, spool, call)
  # If the forwarder is killed, its temporary files are removed with the folder.
  environment[["TMPDIR"]] <- folder
  list(
    kind = "forward", shown = request$shown, path = c(folder, shown_text(folder)), limit = limit,
    target = serialize(request, NULL, version = 3), command = lines_for_c(forward_command(folder)),
    environment = lines_for_c(paste0(names(environment), "=", environment))
  )
}

# The environment variables for the forwarder: all variables of this process, except those that would configure R
# differently or start an agent in the forwarder, and those that it does not need. They are copied now, since another
# thread must not read them while R changes them.
forward_environment <- function() {
  variables <- whole_environment()
  other <- "^(OTEL_.*|R_PROFILE_AGENT.*|R_PROFILE_RECORDING|R_PROFILE|R_PROFILE_USER|R_ENVIRON|R_ENVIRON_USER|R_TESTS|R_LIBS|R_DEFAULT_PACKAGES)$"
  c(
    variables[!grepl(other, names(variables), useBytes = TRUE)],
    R_LIBS = paste(.libPaths(), collapse = .Platform$path.sep),
    R_DEFAULT_PACKAGES = "NULL"
  )
}

# Agents with the same target share a spool and a forwarder, and an agent sends what an earlier one has left. The name
# is in a private folder, since the hash is computed from secrets.
spool_folder <- function(request, environment, spool, call) {
  spool <- spool %||% environment_values("R_PROFILE_AGENT_SPOOL")
  is_own <- spool != ""
  base <- if (is_own) {
    file_path(spool, "profile_error_write", call)[[1]]
  } else {
    in_folder(dirname(tempdir()), paste0("profile-spool-", file.info(tempdir())$uid))
  }
  if (!dir.exists(dirname(base))) {
    abort_no_folder(c(base, shown_text(spool)), "profile_error_write", call)
  }
  target <- list(
    request[c("url", "headers", "tls")],
    environment[grepl("_proxy$|^(SSL|CURL|OPENSSL)_", names(environment), ignore.case = TRUE, useBytes = TRUE)],
    # Containers may share a temporary folder, but not a network.
    if (!is_own) Sys.readlink("/proc/self/ns/net")
  )
  # The forwarder has another working directory.
  in_folder(in_folder(normalizePath(dirname(base)), basename(base)), substr(rlang::hash(target), 1, 16))
}

# The shell ends at once, so that the forwarder is not a child of R.
forward_command <- function(folder) {
  c(
    "/bin/sh", "-c", "\"$@\" &", "sh", file.path(R.home("bin"), "Rscript"), "--vanilla", "-e",
    "profile:::run_forwarder(commandArgs(TRUE)[[1]])", folder
  )
}

lines_for_c <- function(texts) {
  as.raw(unlist(lapply(texts, function(text) c(charToRaw(text), as.raw(0)))))
}

# ---- The forwarder ---------------------------------------------------------------------

# Seconds between two checks for files: when idle, and after something was sent, since other files often follow.
forward_pause <- c(idle = 0.25, busy = 0.02)
# Seconds to wait for another agent, unless the option `profile.forward_patience` says otherwise, and the age in seconds
# from which other files are removed.
forward_patience <- 5
forward_age <- 60

# Runs until there is no agent, and nothing that can be sent; or until another forwarder has taken over.
run_forwarder <- function(folder) {
  Sys.umask("077")
  setwd(folder)
  path <- c(folder, shown_text(folder))
  target <- in_folder(folder, "target")
  if (rust(rust_forwarder(path, FALSE), NULL) == "end") {
    unlink(target)
    return(invisible())
  }
  # It contains secrets, so it is removed at once.
  request <- unserialize(readBin(target, "raw", file.size(target)))
  unlink(target)
  # An agent of an older version has none.
  patience <- request$patience %||% forward_patience
  tidy_spool(folder)
  note_available(folder)
  sender <- new_sender(folder, request, character(), function(kind, text) {
    write_report(folder, text, if (kind == "again") "unavailable" else "report")
  })
  now <- function() proc.time()[["elapsed"]]
  last_agent <- last_sent <- last_tidy <- now()
  repeat {
    if (sender$step()) {
      last_sent <- now()
      note_available(folder)
    }
    state <- rust(rust_forwarder(path, FALSE), NULL)
    if (state == "end") {
      return(invisible())
    }
    if (state == "send") {
      last_agent <- now()
    }
    is_stuck <- sender$is_idle() || sender$attempts() > 0
    if (is_stuck && now() - last_agent > patience) {
      rust(rust_forwarder(path, TRUE), NULL)
      return(invisible())
    }
    if (now() - last_tidy > forward_age) {
      tidy_spool(folder)
      last_tidy <- now()
    }
    Sys.sleep(forward_pause[[if (now() - last_sent > 0.5) "idle" else "busy"]])
  }
}

# What agents report as the last error. If the disk is full, they report nothing. While the file "unavailable" exists,
# an agent that is stopped does not wait until its parts are sent.
write_report <- function(folder, text, name = "report") {
  report <- in_folder(folder, name)
  new <- paste0(report, ".new")
  try(
    suppressWarnings({
      writeBin(charToRaw(enc2utf8(text)), new)
      file.rename(new, report)
    }),
    silent = TRUE
  )
}

# The last error remains, for agents that have not seen it.
note_available <- function(folder) {
  unavailable <- in_folder(folder, "unavailable")
  if (file.exists(unavailable)) {
    suppressWarnings(file.rename(unavailable, in_folder(folder, "report")))
  }
}

# Removes temporary files of forwarders and agents that were killed, and touches the lock, so that programs that remove
# old temporary files keep it. An agent that runs renames its new files at once.
tidy_spool <- function(folder) {
  Sys.setFileTime(in_folder(folder, "lock"), Sys.time())
  new <- list.files(folder, "[.]new$", full.names = TRUE)
  age <- as.numeric(difftime(Sys.time(), file.mtime(new), units = "secs"))
  unlink(new[which(age > forward_age)])
  unlink(in_folder(folder, setdiff(list.files(folder, "^Rtmp"), basename(tempdir()))), recursive = TRUE)
}

