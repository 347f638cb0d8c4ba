# One profile of a process that records itself, with or without those that work for it: `record_profile()` and
# `profile record`.

# Adds the processes that the helper has recorded to the profile of their master, whose samples get the same unit, and the
# times at which they were taken. `frames` is the number of its callers' frames.
with_children <- function(x, recorded, frames, duration, clock, call) {
  if (inherits(recorded, "error")) {
    warn_profile(c("The profile is incomplete.", x = conditionMessage(recorded)), "profile_warning_incomplete", call = call)
    return(x)
  }
  is_marked <- is_of_session(x)
  recorded$profile <- join_allocations_of_others(recorded$profile, recorded$allocations$forks, call)
  started <- x$sources$source_timestamp[[1]]
  recorded$profile <- without_programs(recorded, started, call)
  recorded$profile <- with_bill(recorded$profile, recorded, started, started + duration)
  family <- recorded$profile
  own <- x$sources$source_id[[1]]
  about <- family$.source_attributes
  about <- about[about$source_id == family$sources$source_id[[1]], ]
  about$source_id <- rep(own, nrow(about))
  of_session <- x$.source_attributes
  x$.source_attributes <- vctrs::vec_rbind(of_session[!of_session$key %in% about$key, ], about)
  x <- by_clock(x, clock, duration, recorded$readings, call)
  counts <- count_missed_forks(recorded, x$sources$source_timestamp[[1]])
  if (!is.null(counts)) {
    about <- c(profile.process.forks = counts$forks, profile.process.forks.missed = counts$missed)
    x <- with_attributes(x, own, about)
  }
  x$sources$source_uri[[1]] <- family$sources$source_uri[[1]]
  # Forks have the frames of the master's callers as well.
  forks <- forks_since(family, x$sources$source_timestamp[[1]])
  others <- setdiff(family$sources$source_id[-1], forks)
  parts <- list(
    x,
    if (length(forks) > 0) without_callers(part_with(family, forks, call), frames, call),
    if (length(others) > 0) part_with(family, others, call)
  )
  cpu <- sum(x$sample_values$value[x$sample_values$type == "cpu"]) / 1e9
  words <- c(
    format_left(recorded$left), format_missing_children(recorded), format_missed_forks(counts, cpu),
    # What is reported about the master is said elsewhere: it has no role there.
    format_kills(recorded$endings[nzchar(recorded$endings$role), ])
  )
  if (length(words) > 0) {
    warn_profile(c(
      "The profile is incomplete.", rlang::set_names(words, "x"),
      i = if (any(!recorded$refused$pid %in% names(recorded$own))) {
        "Workers that exist already record themselves if you name their cluster: `children = cluster`."
      }
    ), "profile_warning_incomplete", call = call)
  }
  all <- bind_profiles(c(parts[lengths(parts) > 0], own_profiles(recorded)), call)
  all <- join_allocations_of_others(all, recorded$allocations$workers, call)
  all <- with_lines_of_code(all, call)
  say_without_allocations(all)
  # The helper is a part of the session.
  if (is_marked) mark_session(all) else all
}

# Says which processes have not recorded the vectors that they allocate, if this one has.
say_without_allocations <- function(x) {
  is_exact <- source_attribute(x, "profile.memory") %in% "exact"
  # Forks that have allocated none have no such attribute.
  pids <- source_attribute(x, "process.pid")[!is_exact & !grepl("^fork", roles_of(x))]
  if (is_exact[[1]] && length(pids) > 0) {
    inform_profile(c(
      paste0("Without the allocations of ", count_of(length(pids), "process", "processes"), " (", some_of(pids), ")."),
      i = "Those of a cluster that exists already are recorded with `children = cluster`."
    ), "profile_message_memory")
  }
}

# The first of many ids.
some_of <- function(ids) paste(c(utils::head(ids, 5), if (length(ids) > 5) "..."), collapse = ", ")

# The profiles of processes that have recorded themselves, with what is known about them.
own_profiles <- function(recorded) {
  own <- Filter(function(one) !is.null(one$profile), recorded$own)
  roles <- recorded$refused$role[match(names(own), recorded$refused$pid)]
  # The helper looks for workers twice in a second, and may have missed some of them.
  is_worker <- is.na(roles) | startsWith(roles, "worker")
  roles[is_worker] <- sprintf("worker %d of %d", seq_len(sum(is_worker)), sum(is_worker))
  Map(function(pid, one, role) {
    x <- one$profile
    about <- c(one$names, profile.process.role = role)
    rows <- tibble::tibble(
      source_id = x$sources$source_id, key = names(about), value = unname(about), type = "string", unit = NA_character_
    )
    x$.source_attributes <- vctrs::vec_rbind(x$.source_attributes, rows)
    x$sources$source_uri <- paste0("pid:", pid)
    x
  }, names(own), own, roles, USE.NAMES = FALSE)
}

# Without forks that have executed a program before it was noticed: the master knows its forks that go on with R. A library
# that executes programs may also create forks of the other kind: these have worked for some time.
without_programs <- function(recorded, started, call) {
  family <- recorded$profile
  if (is.null(recorded$master$forks)) {
    return(family)
  }
  forks <- forks_since(family, started)
  at <- match(forks, family$sources$source_id)
  computed <- as.numeric(source_attribute(family, "profile.cpu.clock")[at]) / 1e9
  # Of a source without a duration, nothing is known.
  lived <- (family$sources[[".duration_nanos"]] %||% rep(NA_real_, nrow(family$sources)))[at] / 1e9
  has_worked <- computed >= 0.02 | lived >= 1
  programs <- forks[!source_attribute(family, "process.pid")[at] %in% recorded$master$forks & !has_worked %in% TRUE]
  if (length(programs) == 0) family else part_with(family, setdiff(family$sources$source_id, programs), call)
}

# How many forks of the master have ended before they could be recorded: `forks`, `missed`, and `cpu`, the CPU time in seconds
# of these and of other programs that it has started. NULL if that is unknown, or the master was killed.
count_missed_forks <- function(recorded, started = -Inf) {
  forks <- recorded$master$forks
  if (is.null(forks)) {
    return(NULL)
  }
  family <- recorded$profile
  roles <- roles_of(family)
  roles[family$sources$source_timestamp < started] <- NA
  pid <- source_attribute(family, "process.pid")
  forks <- union(as.character(forks), pid[family$sources$source_id %in% forks_since(family, started)])
  found <- c(pid, recorded$refused$pid, recorded$left_out$pid)
  clock <- as.numeric(source_attribute(family, "profile.cpu.clock")) / 1e9
  of_children <- sum(clock[grepl("^(fork|child|callr)", roles)], na.rm = TRUE)
  list(
    forks = length(forks), missed = sum(!forks %in% found), cpu = max(0, recorded$master$cpu - of_children)
  )
}

# Forks that have used much CPU time, also in comparison to `cpu`, the time of the master.
format_missed_forks <- function(counts, cpu) {
  if (isTRUE(counts$missed > 0 && counts$cpu > max(0.05, 0.05 * (counts$cpu + cpu)))) {
    paste0(
      format_count(counts$missed), " of the ", count_of(counts$forks, "process", "processes"), " that R has forked ended",
      " before they could be recorded. They and other programs used up to ", format_seconds(counts$cpu), " of CPU time."
    )
  }
}

format_missing_children <- function(recorded) {
  own <- recorded$own
  failed <- Filter(function(one) is.null(one$profile), own)
  # Why this may not look into a worker matters only if it has not tried to record itself.
  refused <- recorded$refused[!recorded$refused$pid %in% names(own), ]
  pid <- c(names(failed), refused$pid)
  why <- c(vapply(failed, `[[`, "", "why", USE.NAMES = FALSE), refused$why)
  # The same reason may name its process.
  alike <- mapply(function(pid, why) gsub(paste0("\\b", pid, "\\b"), "", why), pid, why, USE.NAMES = FALSE)
  c(
    vapply(unique(alike), function(one) {
      of <- pid[alike == one]
      paste0(
        "Without ", count_of(length(of), "process", "processes"), " (", some_of(of), "): ", why[match(one, alike)]
      )
    }, "", USE.NAMES = FALSE),
    if (nrow(recorded$left_out) > 0) {
      paste0("Without ", count_of(nrow(recorded$left_out), "process", "processes"), ": at most 256 are recorded.")
    }
  )
}

# The sources that are forks of the master, or of such forks.
forks_since <- function(family, started) {
  role <- ifelse(family$sources$source_timestamp >= started, roles_of(family), NA)
  pid <- source_attribute(family, "process.pid")
  found <- pid[[1]]
  repeat {
    of_fork <- role %in% paste("fork of", found)
    if (all(pid[of_fork] %in% found)) {
      return(family$sources$source_id[of_fork])
    }
    found <- union(found, pid[of_fork])
  }
}

# Some of the sources of a profile.
part_with <- function(x, sources, call) {
  keep <- x$samples$source_id %in% sources
  x <- filtered(x, filter_rules(samples = as.integer(keep)), call)
  x[] <- lapply(x, function(table) {
    if ("source_id" %in% names(table)) table[table$source_id %in% sources, ] else table
  })
  x
}

# A sample of R's profiler is a count; samples of other processes are times. `readings`: of the master's clock, by the helper.
by_clock <- function(x, clock, duration, readings, call) {
  tables <- rust_by_clock(x, clock, duration, as.numeric(readings$date), as.numeric(readings$cpu), lazy_columns(call))
  new_profile_data(rust(tables, call), "2.0")
}

# Adds whole numbers to what is known about a source.
with_attributes <- function(x, source, values) {
  rows <- tibble::tibble(
    source_id = source, key = names(values), value = sprintf("%.0f", values), type = "int", unit = NA_character_
  )
  x$.source_attributes <- vctrs::vec_rbind(x$.source_attributes, rows)
  x
}

# ---- Without them ------------------------------------------------------------------

# Begins to look out for processes that work for this one, and returns a function that ends this. It returns `threads`, see
# `with_thread_times()`, and `say`, a function that says how to record the processes if they have worked while this one has
# waited.
start_lookout <- function(started) {
  force(started)
  children <- function() sum(proc.time()[c("user.child", "sys.child")])
  before <- children()
  rust(rust_lookout_start(), NULL)
  function() {
    seen <- rust(rust_lookout_end(), NULL)
    cpu <- seen$cpu
    # Forks may have ended before they were seen.
    if (seen$forks > 0 && isNamespaceLoaded("parallel")) {
      cpu <- c(cpu, max(0, children() - before - sum(cpu[-1])))
    }
    elapsed <- as.numeric(difftime(Sys.time(), started, units = "secs"))
    list(
      threads = seen$threads, say = function() say_children(cpu, elapsed, "R", "`record_profile(..., children = TRUE)`")
    )
  }
}

# `cpu`: the CPU time of the recorded process and of each other one, in seconds.
say_children <- function(cpu, elapsed, who, how) {
  own <- sum(cpu[1], na.rm = TRUE)
  cpu <- cpu[-1]
  if (sum(cpu) < 0.1 || sum(cpu) < own / 2 || elapsed < 1.5 * own) {
    return()
  }
  inform_profile(c(
    paste0(
      who, " has waited: it used ", format_seconds(own), " of CPU time in ", format_seconds(elapsed), ". Other R processes",
      " that work for it used ", format_seconds(sum(cpu)), ", and are not in the profile."
    ),
    i = paste0(how, " records them as well.")
  ), "profile_message_children")
}
