# The bill of parallel work: what became of the time that workers could have worked, for `describe_profile()`, `summary()`
# and `profile_page()`. The core computes it (core/src/analysis/parallel.rs) when a recording ends. A profile has it as
# attributes of its sources: the ticks of each class, of the worker; of slots without a worker, those of the master.

bill_key <- "profile.parallel."

# The classes, in the order of the table.
bill_classes <- c("work", "processor", "task_waits", "transfer", "starting", "serial", "others", "master_waits")

# Adds the bill to a profile of processes. `recorded$tracks`: what each did, see `recorded_of()`. `from`, `to`: when the
# recording began and ended, in seconds since 1970. There is no bill without the master, and if workers are missing.
with_bill <- function(x, recorded, from = -Inf, to = Inf) {
  tracks <- recorded$tracks
  is_here <- tracks$source %in% x$sources$source_id
  pid <- as.integer(source_attribute(x, "process.pid"))[match(tracks$source, x$sources$source_id)]
  master <- which(is_here & tracks$master == 0)
  missing <- nrow(recorded$refused) + nrow(recorded$left_out)
  if (length(master) != 1 || missing > 0) {
    return(x)
  }
  # There may be a shell between a process and its child. Processes that have worked for workers are nested.
  is_nested <- is_here & tracks$master %in% setdiff(pid, pid[[master]])
  workers <- which(is_here & !is_nested & tracks$master != 0)
  nested <- which(is_nested & have_worked(tracks))
  tick_at <- function(time) (time - tracks$began) / tracks$interval
  last <- .Machine$integer.max
  bill <- rust(rust_parallel_bill(
    tracks, master, workers, as.integer(max(1, ceiling(tick_at(from)))), as.integer(min(last, max(0, tick_at(to))))
  ), NULL)
  if (is.null(bill)) {
    return(x)
  }
  counts <- matrix(bill$counts, ncol = length(bill$classes), byrow = TRUE, dimnames = list(NULL, bill$classes))
  about <- c(slots = bill$slots, ticks = bill$ticks, time = tracks$interval * bill$ticks * 1e9, nested = length(nested))
  rows <- c(tracks$source[workers], tracks$source[[master]])
  values <- lapply(seq_along(rows), function(row) counts[row, counts[row, ] > 0])
  values[[length(rows)]] <- c(values[[length(rows)]], about)
  all <- rlang::set_names(unlist(values), paste0(bill_key, unlist(lapply(values, names))))
  x <- with_attributes(x, rep(rows, lengths(values)), all)
  if (is.na(tracks$processors)) {
    return(x)
  }
  x$.source_attributes <- vctrs::vec_rbind(x$.source_attributes, tibble::tibble(
    source_id = tracks$source[[master]], key = paste0(bill_key, "processors"), value = number_text(tracks$processors),
    type = "double", unit = NA_character_
  ))
  x
}

# Whether each process was in a task.
have_worked <- function(tracks) {
  of <- rep(seq_along(tracks$runs), tracks$runs)
  # Three states for each place, of which tasks are the first one.
  seq_along(tracks$runs) %in% of[tracks$state < 3]
}

# What `describe_profile()` calls `parallel`: NULL if there is no bill, or if parts of it are missing, as in a profile
# without some of its processes.
described_parallel <- function(x) {
  # Other tools may use the same keys for other values.
  number <- function(key) suppressWarnings(as.numeric(source_attribute(x, paste0(bill_key, key))))
  about <- lapply(rlang::set_names(c("slots", "ticks", "time", "nested", "processors")), number)
  master <- which(!is.na(about$slots))
  if (length(master) != 1) {
    return(NULL)
  }
  about <- lapply(about, `[[`, master)
  counts <- vapply(bill_classes, function(class) number(class), numeric(nrow(x$sources)))
  counts <- matrix(counts, ncol = length(bill_classes), dimnames = list(NULL, bill_classes))
  counts[is.na(counts)] <- 0
  whole <- about$slots * about$ticks
  if (anyNA(c(about$ticks, about$time)) || !isTRUE(whole > 0) || sum(counts) != whole) {
    return(NULL)
  }
  seconds <- about$time / 1e9
  name <- names_of_processes(x)
  shares <- colSums(counts) / whole
  list(
    classes = tibble::tibble(class = bill_classes, share = unname(shares), seconds = unname(shares) * seconds * about$slots),
    processes = tibble::as_tibble(c(
      list(process = name), as.list(as.data.frame(counts / about$ticks * seconds))
    ))[rowSums(counts) > 0, ],
    workers = as.integer(about$slots), seconds = seconds, busy = shares[["work"]] * about$slots,
    most = min(about$slots, about$processors, na.rm = TRUE), nested = as.integer(max(about$nested, 0, na.rm = TRUE)),
    ticks = as.integer(about$ticks)
  )
}

# The sentence with which the digest and the page begin.
sentence_of_bill <- function(parallel) {
  share <- rlang::set_names(parallel$classes$share, parallel$classes$class)
  percents <- function(share) sprintf("%.0f%%", 100 * share)
  words <- c(
    processor = "waited for a processor", task_waits = "waited in tasks", others = "waited for others",
    serial = "waited for the master", starting = "started", transfer = "transferred data",
    master_waits = "were idle like the master"
  )
  rest <- sort(share[names(words)], decreasing = TRUE)
  rest <- rest[rest >= 0.01]
  paste0(
    if (parallel$workers == 1) "1 worker was" else paste(format_count(parallel$workers), "workers were"), " busy ",
    percents(share[["work"]]), " of ", format_seconds(parallel$seconds),
    if (length(rest) > 0) paste0("; ", paste(percents(rest), words[names(rest)], collapse = ", ")), "."
  )
}

bill_words <- c(
  work = "busy: computed in tasks", processor = "in tasks, waited for a processor", task_waits = "in tasks, waited",
  transfer = "transferred data", starting = "started R, packages or workers", serial = "waited for the master (serial)",
  others = "waited for other workers", master_waits = "idle, and the master waited"
)

# The lines of the digest: the sentence, and a table.
format_parallel <- function(parallel, n, width) {
  if (is.null(parallel) || n < 1) {
    return()
  }
  rows <- parallel$classes[parallel$classes$share > 0, ]
  c(
    "", wrap("Parallel:  ", sentence_of_bill(parallel), width),
    description_table(
      "what the workers did",
      list(shares = list(rows$share), amount = format_amount(rows$seconds * 1e9, "nanoseconds")),
      c("share%", "time"), unname(bill_words[rows$class])
    )[-1],
    wrap("", paste(notes_of_bill(parallel), collapse = " "), width)
  )
}

# How many workers were busy on average, which is no speed-up, and what is not counted.
notes_of_bill <- function(parallel) {
  most <- format_number(parallel$most)
  c(
    paste0(
      "On average, ", format_number(parallel$busy), " of at most ", most, if (parallel$most == 1) " was" else " were", " busy",
      if (parallel$most < parallel$workers) {
        paste0(": ", count_of(parallel$workers, "worker"), " shared ", most, if (most == "1") " processor" else " processors")
      }, "."
    ),
    if (parallel$nested > 0) {
      paste0("Not counted: ", count_of(parallel$nested, "process", "processes"), " that worked for workers.")
    }
  )
}

# The same as texts for the page.
parallel_of_page <- function(parallel) {
  if (is.null(parallel)) {
    return(NULL)
  }
  rows <- parallel$classes[parallel$classes$share > 0, ]
  cells <- rbind(
    unname(bill_words[rows$class]), paste0(trimws(percent(rows$share)), "%"), format_amount(rows$seconds * 1e9, "nanoseconds")
  )
  list(
    sentence = sentence_of_bill(parallel), columns = c("what the workers did", "share", "time"), cells = as.character(cells),
    notes = notes_of_bill(parallel)
  )
}

format_number <- function(number) format(round(number, 1), trim = TRUE)

# The columns of `summary(by = "process")`, in seconds: a row of the bill for each of these processes, NA if it has none.
bill_columns <- function(x, processes) {
  rows <- described_parallel(x)$processes
  if (is.null(rows)) {
    return(NULL)
  }
  # A process that has executed R again has two sources.
  sums <- rowsum(as.data.frame(rows[bill_classes]), rows$process)
  as.list(sums[match(processes, rownames(sums)), ])
}
