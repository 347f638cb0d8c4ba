# Formats values as pprof does. Only for display: the tables contain values as recorded.

# A kind of units. Each unit has a name, its size in multiples of the smallest unit, and aliases. `default`
# is shown if no unit fits.
unit_kind <- function(default, ...) {
  units <- list(...)
  list(
    default = default,
    shown = names(units),
    size = vapply(units, function(unit) unit[[1]], 0, USE.NAMES = FALSE),
    alias = unlist(lapply(units, `[[`, 2), use.names = FALSE),
    alias_of = rep(seq_along(units), lengths(lapply(units, `[[`, 2)))
  )
}

unit_kinds <- list(
  unit_kind(
    "B",
    B = list(1, c("b", "byte")),
    kB = list(2^10, c("kb", "kbyte", "kilobyte")),
    MB = list(2^20, c("mb", "mbyte", "megabyte")),
    GB = list(2^30, c("gb", "gbyte", "gigabyte")),
    TB = list(2^40, c("tb", "tbyte", "terabyte")),
    PB = list(2^50, c("pb", "pbyte", "petabyte"))
  ),
  unit_kind(
    "s",
    ns = list(1, c("ns", "nanosecond")),
    us = list(1e3, c("\u03bcs", "us", "microsecond")),
    ms = list(1e6, c("ms", "millisecond")),
    s = list(1e9, c("s", "sec", "second")),
    hrs = list(3600e9, c("hour", "hr"))
  ),
  unit_kind(
    "GCU",
    "n*GCU" = list(1e-9, "nanogcu"),
    "u*GCU" = list(1e-6, "microgcu"),
    "m*GCU" = list(1e-3, "milligcu"),
    GCU = list(1, "gcu"),
    "k*GCU" = list(1e3, "kilogcu"),
    "M*GCU" = list(1e6, "megagcu"),
    "G*GCU" = list(1e9, "gigagcu"),
    "T*GCU" = list(1e12, "teragcu"),
    "P*GCU" = list(1e15, "petagcu")
  )
)

# More bytes than any alias has, with an s at its end.
longest_unit <- 20L

# The index of a unit within its kind, NA if it is of another kind.
find_unit <- function(kind, unit) {
  # In a file a unit can be any text. chartr() would take long for it.
  unit[nchar(unit, "bytes") > longest_unit] <- ""
  # Not tolower(), which maps I to another letter in Turkish locales.
  unit <- chartr(paste(LETTERS, collapse = ""), paste(letters, collapse = ""), unit)
  # pprof counts bytes: the Greek letter has two, so "\u03bcs" loses its s and is not found. pprof shows such values
  # without a unit.
  plural <- nchar(unit, "bytes") > 2
  unit[plural] <- sub("s$", "", unit[plural])
  kind$alias_of[match(unit, kind$alias)]
}

#' Show values with units as pprof does
#'
#' @description The tables of a profile contain values as they were recorded, such as 1500000000
#' `nanoseconds`. pprof's tools show them in a readable unit: 1.50s. `scale_value()` returns the value and
#' the unit that they show, `format_value()` the text.
#'
#' Use the recorded values for computations.
#'
#' @details
#' pprof knows three kinds of units and converts within a kind. It ignores case and a plural s.
#'
#' | kind | shown as | also accepted |
#' |---|---|---|
#' | memory, in steps of 1024 | `B`, `kB`, `MB`, `GB`, `TB`, `PB` | `byte`, `kbyte`, `kilobyte`, and so on |
#' | time | `ns`, `us`, `ms`, `s`, `hrs` | `nanosecond`, `microsecond`, `millisecond`, `sec`, `second`, `hour`, `hr` |
#' | Google compute units | `n*GCU` to `P*GCU` | `nanogcu`, `microgcu`, `milligcu`, `gcu`, `kilogcu`, to `petagcu` |
#'
#' With `to = "auto"` (or `"minimum"`, which is equivalent here) each value is shown in the largest unit in
#' which it is at least one. A value that is too small for all units, such as 0, is shown in the default
#' unit: `B`, `s` or `GCU`. The default unit is also used if `to` is a unit of another kind, or unknown.
#'
#' A value in a unit that pprof does not know, such as `count`, is not changed. It is shown without a unit,
#' unless `to` is a unit other than `auto`, `minimum`, `count`, `sample` or `unit`; that unit is then shown,
#' as by pprof's option `-unit`.
#'
#' @param value The values, numeric.
#' @param unit Their unit: one string, or one for each value.
#' @param to The unit to show them in: one string. `"auto"` chooses a unit for each value.
#'
#' @return `scale_value()`: a tibble with a row for each value and the columns `value` (double) and `unit`
#'   (character), which is empty if pprof shows none.
#'
#'   `format_value()`: a character vector, with two decimals unless they are zeros, and `"0"` for values
#'   that round to it. `NA` for `NA`.
#'
#' @section Errors:
#' `profile_error_argument` if an argument is not as described.
#'
#' @seealso [label_units()] for the units of labels.
#' @export
#' @examples
#' scale_value(c(0, 900, 1.5e9), "nanoseconds")
#' scale_value(1536, "bytes", to = "MB")
#'
#' format_value(c(1.5e9, 524288, 12), c("nanoseconds", "bytes", "count"))
#'
#' # The CPU time of the stack with the greatest value
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#' path <- tempfile(fileext = ".pb.gz")
#' write_pprof(x, path)
#' values <- read_pprof(path)$sample_values
#' cpu <- values[values$type == "cpu", ]
#' format_value(max(cpu$value), cpu$unit[[1]])
scale_value <- function(value, unit, to = "auto") {
  scaled(value, unit, to, rlang::current_env())
}

#' @rdname scale_value
#' @export
format_value <- function(value, unit, to = "auto") {
  scaled <- scaled(value, unit, to, rlang::current_env())
  # pprof has no larger values. With all their digits they would not be readable.
  is_large <- !is.na(scaled$value) & abs(scaled$value) >= 2^64
  number <- sub("\\.00$", "", sprintf(c("%.2f", "%.4g")[1 + is_large], scaled$value))
  text <- paste0(number, scaled$unit)
  text[number %in% c("0", "-0")] <- "0"
  text[is.na(scaled$value)] <- NA
  text
}

scaled <- function(value, unit, to, call) {
  if (missing(value)) {
    abort_missing("value", call)
  }
  if (missing(unit)) {
    abort_missing("unit", call, i = "It is a unit such as `\"nanoseconds\"` or `\"bytes\"`.")
  }
  if (!is.numeric(value)) {
    abort_argument("`value` must be numeric.", call)
  }
  texts <- is.character(unit) && all(is.na(unit) | is_valid_text(unit))
  if (!texts || !(length(unit) %in% c(1, length(value)))) {
    abort_argument("`unit` must be one string, or one for each value.", call)
  }
  if (!is_text(to)) {
    abort_argument("`to` must be one string.", call)
  }
  value <- as.double(value)
  unit <- enc2utf8(rep_len(unit, length(value)))
  to <- enc2utf8(to)

  plain <- c("count", "sample", "unit", "minimum", "auto")
  shown <- rep_len(if (to %in% plain) "" else to, length(value))
  # The smallest 64-bit integer has no positive counterpart: pprof leaves it negative, too small for any unit.
  negative <- which(value < 0 & value != -2^63)
  value[negative] <- -value[negative]
  for (kind in unit_kinds) {
    from <- find_unit(kind, unit)
    rows <- which(!is.na(from))
    base <- value[rows] * kind$size[from[rows]]
    target <- if (to %in% c("minimum", "auto")) {
      findInterval(base, kind$size)
    } else {
      rep_len(find_unit(kind, to), length(rows))
    }
    target[!(target %in% seq_along(kind$size))] <- match(kind$default, kind$shown)
    # The product may be too large for a double although the result is not.
    factor <- kind$size[from[rows]] / kind$size[target]
    value[rows] <- ifelse(is.infinite(base), value[rows] * factor, base / kind$size[target])
    shown[rows] <- kind$shown[target]
  }
  value[negative] <- -value[negative]
  tibble::tibble(value = value, unit = shown)
}

#' Units of numeric labels
#'
#' A label of a sample can be a number with a unit, such as 4096 `bytes`. pprof's tools show all labels with
#' the same key in the same unit, which `label_units()` returns.
#'
#' The unit is the first one among the labels with that key, in the order of the samples. If none has a
#' unit, it is `bytes` for the keys `request` and `alignment`, and otherwise the key itself. pprof does not
#' convert labels with other units: it shows their number with the unit of the key, which is wrong.
#' `ignored` lists these units.
#'
#' @param x A profile, see [profile_data], or a dm of its tables.
#'
#' @return A tibble with a row for each key of numeric labels, in the order of the samples: `key` and `unit`
#'   (character), and `ignored`, a list of character vectors: the other units of labels with that key,
#'   sorted. It has no rows if there are no numeric labels.
#'
#' @section Errors:
#' `profile_error_invalid` if `x` is not valid.
#'
#' @seealso [format_value()] shows a number with its unit.
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#' x$.labels <- tibble::tibble(
#'   sample_id = x$samples$sample_id[1:3],
#'   key = "size",
#'   str = NA_character_,
#'   num = c(4096, 8192, 1),
#'   unit = c("bytes", "bytes", "kilobytes")
#' )
#' label_units(x)
#' label_units(x)$ignored
label_units <- function(x) {
  x <- as_v2(x, rlang::current_env())
  labels <- x[[".labels"]] %||%
    data.frame(sample_id = integer(), key = character(), num = double(), unit = character())
  labels <- labels[order(match(labels$sample_id, x$samples$sample_id)), ]
  labels <- labels[!is.na(labels$num), ]
  key <- unique(as.character(labels$key))
  units <- lapply(split(labels$unit, factor(labels$key, key)), function(unit) {
    unique(unit[!is.na(unit) & unit != ""])
  })
  # Selected by position, since an empty key cannot be used as a name.
  silent <- lengths(units) == 0
  units[silent] <- ifelse(key[silent] %in% c("request", "alignment"), "bytes", key[silent])
  tibble::tibble(
    key = key,
    unit = vapply(units, `[[`, "", 1, USE.NAMES = FALSE),
    ignored = lapply(unname(units), function(unit) sort(unit[-1], method = "radix"))
  )
}
