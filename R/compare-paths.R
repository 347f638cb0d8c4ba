# Compares the memory in use of two profiles by path: what has grown, and who holds it. The amounts are exact, so there
# are no statistics.

# `versions`: list(base, new), lists of profiles of version 2.0. `given`: which arguments of compare_profiles() without a
# meaning for paths were given, by name.
growth_by_path <- function(versions, given, min_share, call) {
  if (any(given)) {
    abort_argument(c(
      paste0("`", names(which(given))[[1]], "` has no meaning if memory in use is compared by path."),
      i = "Use `by = \"function\"` to compare functions."
    ), call)
  }
  sides <- with_validation(unlist(versions, recursive = FALSE), call, {
    sides <- lapply(versions, function(of) if (length(of) == 1) of[[1]] else bind_profiles(of, call))
    several <- any(vapply(sides, function(x) length(sources_with_samples(x)) > 1, NA))
    Map(check_is_one_moment, sides, names(sides), several, list(call))
    sides
  })
  processes <- if (several) matched_processes(sides)
  compared <- if (several) Map(with_steps_of_processes, sides, processes) else sides
  found <- found_holders(unname(compared), nrow(sides$base$sources), min_share, .Machine$integer.max, call)
  # The names of the sample type may differ.
  empty <- c(base = found$base[[1]], new = found$new[[1]]) == 0
  if (xor(empty[["base"]], empty[["new"]])) {
    side <- names(which(empty))
    abort_argument(paste0("`", side, "` has no samples with a value of `", shown_label(found$type), "`."), call)
  }
  amounts <- function(base, new, objects) {
    list(base = base, new = new, growth = new - base, objects = if (found$has_objects) objects else NA_real_ * objects)
  }
  # The largest changes in either direction first.
  rows <- found$rows[order(-abs(found$rows$new - found$rows$base), method = "radix"), ]
  whole <- amounts(found$base[[2]], found$new[[2]], found$new[[3]] - found$base[[3]])
  tibble::new_tibble(
    c(amounts(rows$base, rows$new, rows$new_objects - rows$base_objects), list(held_by = rows$held_by)),
    nrow = nrow(rows),
    whole = tibble::new_tibble(whole, nrow = 1L),
    objects = c(base = found$base[[3]], new = found$new[[3]]),
    processes = if (several) growth_of_processes(sides, processes, found),
    type = found$type, unit = found$unit,
    class = "profile_growth"
  )
}

# ---- Processes ---------------------------------------------------------------------

# A side is the memory in use of one moment: of one source, or of different processes. `several`: whether one of the sides
# has several of them.
check_is_one_moment <- function(x, name, several, call) {
  sources <- sources_with_samples(x)
  pid <- source_attribute(x, "process.pid")[sources]
  id <- paste(pid, source_attribute(x, "process.creation.time")[sources])
  if (several && length(sources) == 1 && is.na(pid)) {
    abort_argument(paste0("The process of `", name, "` is unknown, and the other profile is of several ones."), call)
  }
  if (length(sources) == 0 || several && (anyNA(pid) || anyDuplicated(id) > 0)) {
    abort_argument(c(
      paste0("`", name, "` must have one source to be compared by path, not ", length(sources), "."),
      i = "Memory in use at several moments cannot be added up: compare two snapshots."
    ), call)
  }
}

# The rows of sources that have samples, since a filter keeps the others; all if none has.
sources_with_samples <- function(x) {
  rows <- which(x$sources$source_id %in% x$samples$source_id)
  if (length(rows) > 0) rows else seq_len(NROW(x$sources))
}

# For each side, its processes: `source`, its id; `name`, the same for processes that are compared; `step`, the first step
# of their paths; `is_single`, whether it is in this side only.
matched_processes <- function(sides) {
  about <- lapply(sides, function(x) {
    rows <- sources_with_samples(x)
    pid <- source_attribute(x, "process.pid")[rows]
    role <- roles_of(x)[rows]
    list(
      source = x$sources$source_id[rows], pid = pid,
      id = paste(pid, source_attribute(x, "process.creation.time")[rows]),
      # Without ids and the number of workers. The only process of a snapshot has no role.
      kind = ifelse(is.na(role), "master", sub(" (of|for) .*", "", role)),
      name = names_of_processes(x)[rows]
    )
  })
  base <- about$base
  new <- about$new
  # The same process, or else the first one, the second one, ... of the same role.
  matched <- match(new$id, base$id)
  old <- setdiff(seq_along(base$id), matched)
  other <- which(is.na(matched))
  matched[other] <- old[match(numbered(new$kind[other]), numbered(base$kind[old]))]
  new$is_single <- is.na(matched)
  base$is_single <- !seq_along(base$id) %in% matched
  was <- base$pid[matched]
  new$name <- paste0(new$name, ifelse(
    new$is_single, " (only in new)", ifelse(was == new$pid, "", paste0(", before pid ", was))
  ))
  kinds <- new$kind[!new$is_single]
  new$step <- ifelse(new$is_single | new$kind %in% kinds[duplicated(kinds)], new$name, new$kind)
  base$name <- base$step <- paste(base$name, "(only in base)")
  for (column in c("name", "step")) {
    base[[column]][matched[!new$is_single]] <- new[[column]][!new$is_single]
  }
  list(base = base, new = new)
}

# The profile, in which paths start with a process. If a process is in one side only, what it holds has not grown: there are
# no further steps.
with_steps_of_processes <- function(x, processes) {
  process <- match(x$samples$source_id, processes$source)
  left_out <- x$samples$sample_id[processes$is_single[process]]
  x$sample_locations <- x$sample_locations[!x$sample_locations$sample_id %in% left_out, ]
  with_outer_frames(x, processes$step[process])
}

numbered <- function(names) paste(names, stats::ave(seq_along(names), names, FUN = seq_along))

# The growth of each process as a whole, the largest changes first.
growth_of_processes <- function(sides, processes, found) {
  names <- unique(c(processes$base$name, processes$new$name))
  sums <- Map(function(x, processes) {
    values <- x$sample_values[x$sample_values$type == found$type & x$sample_values$unit == found$unit, ]
    source <- x$samples$source_id[match(values$sample_id, x$samples$sample_id)]
    name <- processes$name[match(source, processes$source)]
    as.vector(tapply(values$value, factor(name, names), sum, default = 0))
  }, sides, processes)
  growth <- sums$new - sums$base
  rows <- tibble::tibble(process = names, base = sums$base, new = sums$new, growth = growth)
  rows[order(-abs(growth), method = "radix"), ]
}

# ---- Text --------------------------------------------------------------------------

#' @rdname compare_profiles
#' @export
format.profile_growth <- function(x, ..., n = NULL, width = NULL) {
  is_whole <- is.data.frame(attr(x, "whole")) && all(c("base", "new", "growth", "objects", "held_by") %in% names(x))
  text_of_table(x, n, width, is_whole, text_of_growth, 20)
}

text_of_growth <- function(x, n, width) {
  whole <- attr(x, "whole")
  unit <- attr(x, "unit")
  amounts <- function(values) format_amount(values, unit)
  counts <- vapply(attr(x, "objects"), format_count, "")
  head <- paste0(
    "<growth by path> ", shown_label(attr(x, "type")), " ", amounts(whole$base), "\u00a0->\u00a0", amounts(whole$new), ", ",
    with_sign(whole$growth, amounts),
    if (!is.na(whole$objects)) paste0("; objects\u00a0", counts[["base"]], "\u00a0->\u00a0", counts[["new"]])
  )
  rows <- as_tibble(x)
  processes <- attr(x, "processes")
  if (!is.null(processes)) {
    # Rows of whole processes are in their table.
    rows <- rows[grepl(" > ", rows$held_by, fixed = TRUE), ]
  }
  shown <- utils::head(rows, n)
  of <- utils::head(processes, n)
  columns <- list(
    growth = with_sign(shown$growth, amounts),
    base = amounts(shown$base),
    new = amounts(shown$new),
    objects = if (!anyNA(shown$objects)) with_sign(shown$objects, function(n) vapply(n, format_count, ""))
  )
  c(
    shorten(wrap("", head, width), width),
    if (NROW(of) > 0) {
      figures <- list(growth = with_sign(of$growth, amounts), base = amounts(of$base), new = amounts(of$new))
      path_lines(figures, of$process, width, "process")
    },
    if (NROW(processes) > n) paste0("... and ", format_count(nrow(processes) - n), " more processes"),
    if (nrow(x) == 0) "No difference was found." else if (nrow(shown) > 0) path_lines(columns, shown$held_by, width),
    if (nrow(rows) > n) paste0("... and ", format_count(nrow(rows) - n), " more rows")
  )
}

#' @export
as_tibble.profile_growth <- function(x, ...) without_class(x)

# Numbers as text, with a sign unless they are 0.
with_sign <- function(values, format) {
  paste0(c("-", "", "+")[sign(values) + 2], format(abs(values)))
}
