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
  for (name in names(versions)) {
    sources <- sum(vapply(versions[[name]], function(x) NROW(x[["sources"]]), 0L))
    if (sources != 1) {
      abort_argument(c(
        paste0("`", name, "` must have one source to be compared by path, not ", sources, "."),
        i = "Memory in use at several moments cannot be added up: compare two snapshots."
      ), call)
    }
  }
  profiles <- unlist(versions, recursive = FALSE, use.names = FALSE)
  found <- found_holders(profiles, 1L, min_share, .Machine$integer.max, call)
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
    type = found$type, unit = found$unit,
    class = "profile_growth"
  )
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
  shown <- utils::head(x, n)
  columns <- list(
    growth = with_sign(shown$growth, amounts),
    base = amounts(shown$base),
    new = amounts(shown$new),
    objects = if (!anyNA(shown$objects)) with_sign(shown$objects, function(n) vapply(n, format_count, ""))
  )
  c(
    shorten(wrap("", head, width), width),
    if (nrow(x) == 0) "No difference was found." else if (n >= 1) path_lines(columns, shown$held_by, width),
    if (nrow(x) > n) paste0("... and ", format_count(nrow(x) - n), " more rows")
  )
}

#' @export
as_tibble.profile_growth <- function(x, ...) without_class(x)

# Numbers as text, with a sign unless they are 0.
with_sign <- function(values, format) {
  paste0(c("-", "", "+")[sign(values) + 2], format(abs(values)))
}
