# Formats values for display, as pprof does. The tables contain values as recorded.

# A kind of units, such as time. Each unit has a name, its size in multiples of the smallest unit, and aliases.
# `default` is used if no unit fits.
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

# The maximum size of a name in bytes, more than any alias with a plural s.
longest_unit <- 20L

# The index of a unit within its kind, NA if it is of another kind.
find_unit <- function(kind, unit) {
  # A unit from a file can be any text, and chartr() would be slow for a long one.
  unit[nchar(unit, "bytes") > longest_unit] <- ""
  # Not tolower(), which maps I to another letter in Turkish locales.
  unit <- chartr(paste(LETTERS, collapse = ""), paste(letters, collapse = ""), unit)
  # pprof counts bytes: the Greek letter has two, so "\u03bcs" loses its s and is not found. pprof shows such values
  # without a unit.
  plural <- nchar(unit, "bytes") > 2
  unit[plural] <- sub("s$", "", unit[plural])
  kind$alias_of[match(unit, kind$alias)]
}

# Values in the largest unit in which they are at least one, as pprof shows them: a tibble with the columns `value` and
# `unit`, which is empty for units that pprof does not know, such as `count`. A value that is too small for all units,
# such as 0, is in the default unit of its kind. `unit`: one string, or one for each value.
scale_value <- function(value, unit) {
  value <- as.double(value)
  unit <- enc2utf8(rep_len(unit, length(value)))
  shown <- rep_len("", length(value))
  # The smallest 64-bit integer has no positive counterpart: pprof leaves it negative, too small for any unit.
  negative <- which(value < 0 & value != -2^63)
  value[negative] <- -value[negative]
  for (kind in unit_kinds) {
    from <- find_unit(kind, unit)
    rows <- which(!is.na(from))
    base <- value[rows] * kind$size[from[rows]]
    target <- findInterval(base, kind$size)
    target[!(target %in% seq_along(kind$size))] <- match(kind$default, kind$shown)
    # The product may be too large for a double although the result is not.
    factor <- kind$size[from[rows]] / kind$size[target]
    value[rows] <- ifelse(is.infinite(base), value[rows] * factor, base / kind$size[target])
    shown[rows] <- kind$shown[target]
  }
  value[negative] <- -value[negative]
  tibble::new_tibble(list(value = value, unit = shown), nrow = length(value))
}

# Values as text: two decimals unless they are zeros, "0" for a value that rounds to 0, and NA for NA.
format_value <- function(value, unit) {
  scaled <- scale_value(value, unit)
  # pprof has no larger values, and all their digits would not be readable.
  is_large <- !is.na(scaled$value) & abs(scaled$value) >= 2^64
  number <- sub("\\.00$", "", sprintf(c("%.2f", "%.4g")[1 + is_large], scaled$value))
  text <- paste0(number, scaled$unit)
  text[number %in% c("0", "-0")] <- "0"
  text[is.na(scaled$value)] <- NA
  text
}

# The sampling period of each source, in its own unit. Producers of pprof files write 0 for an unknown one.
sampling_period <- function(sources) {
  period <- sources[[".period"]]
  period[!is.na(period) & period <= 0] <- NA
  period
}

# The seconds in the units of sampling periods.
seconds_in <- c(nanoseconds = 1e-9, microseconds = 1e-6, milliseconds = 1e-3, seconds = 1)
