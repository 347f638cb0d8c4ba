# The profile of a check: the samples of its processes, with labels that say to which step and example they belong.

# list(profile, of_sample, step): the helper's profile without this session, and without samples of processes that only
# wait for others of the check; the key of the process of each sample, and that of the step. NULL if no process was
# recorded.
profile_of_check <- function(family, processes, steps, titles, check_folder, call) {
  own <- family$sources$source_id[[1]]
  others <- setdiff(family$sources$source_id, own)
  if (length(others) == 0) {
    return(NULL)
  }
  x <- part_with(family, others, call)
  key <- key_of_sources(x, processes)
  of_sample <- key[match(x$samples$source_id, x$sources$source_id)]
  waits <- waits_for_step(of_sample, x$samples$.timestamp, steps, processes)
  x <- filtered(x, filter_rules(samples = as.integer(!waits)), call)
  of_sample <- of_sample[!waits]
  step <- step_of_processes(steps, processes)[match(of_sample, processes$key)]
  at <- match(step, steps$key)
  part <- ifelse(is.na(at), "between", steps$part[at])
  x <- label_samples(x, "check.part", part)
  x <- label_samples(x, "check.step", steps$name[at])
  x <- label_samples(x, "check.example", example_of_samples(titles, of_sample, x$samples$.timestamp))
  x <- with_test_labels(x, file.path(check_folder, "tests", c("", "testthat")), call)
  step_of_source <- step_of_processes(steps, processes)[match(key, processes$key)]
  x <- with_steps_as_roles(x, steps$name[match(step_of_source, steps$key)])
  # The files lie in the folder of the check.
  x <- with_source_text(compact_profile(x), as.numeric(Sys.time()), call, outside = TRUE)
  list(profile = x, of_sample = of_sample, step = step)
}

# The key of the process of each source, NA if it was not seen. Ids of processes may be used again.
key_of_sources <- function(x, processes) {
  pid <- source_attribute(x, "process.pid")
  started <- x$sources$source_timestamp
  mapply(function(pid, started) {
    same <- which(processes$pid == as.integer(pid))
    if (length(same) == 0) NA_character_ else processes$key[same[which.min(abs(processes$began[same] - started))]]
  }, pid, started, USE.NAMES = FALSE)
}

# Whether a process that runs the check, the installation or the tests is waiting for another one that it has started.
waits_for_step <- function(of_sample, timestamps, steps, processes) {
  # Their code is R's own.
  is_runner <- processes$is_r & is.na(processes$script) & is.na(processes$input) |
    grepl("runPackageTests", processes$code, fixed = TRUE) & is.na(processes$script)
  waits <- logical(length(of_sample))
  for (key in processes$key[is_runner]) {
    rows <- which(of_sample == key)
    children <- processes[processes$parent %in% key, ]
    if (length(rows) > 0 && nrow(children) > 0) {
      children <- children[order(children$began), ]
      at <- findInterval(timestamps[rows], children$began)
      waits[rows] <- at > 0 & timestamps[rows] <= c(-Inf, cummax(children$ended))[at + 1]
    }
  }
  waits
}

# The example that runs at each sample, NA for none.
example_of_samples <- function(titles, of_sample, timestamps) {
  example <- rep(NA_character_, length(of_sample))
  for (key in unique(titles$key)) {
    own <- titles[titles$key == key, ]
    rows <- which(of_sample == key)
    at <- findInterval(timestamps[rows], own$time)
    example[rows] <- c(NA, ifelse(is_example_title(own$name), own$name, NA))[at + 1]
  }
  example
}

# A source has the name of its step as its role, in place of `child of 1234`.
with_steps_as_roles <- function(x, names) {
  about <- x$.source_attributes
  is_role <- about$key == "profile.process.role"
  named <- names[match(about$source_id, x$sources$source_id)]
  about$value[is_role & !is.na(named)] <- named[is_role & !is.na(named)]
  x$.source_attributes <- about
  x
}
