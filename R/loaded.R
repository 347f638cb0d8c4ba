# The time that it takes to load and attach packages, by package: `summary(by = "loaded")`.

loading_figures <- function(x, type, call) {
  found <- rust(rust_loading(x, type), call)
  table <- found$packages
  if (anyNA(table$package)) {
    inform_profile(c("Which packages were loaded is unknown.", i = how_to_know_packages), "profile_message_loaded")
  }
  # The caller of an unknown load may be a load as well.
  table$first[is.na(table$package)] <- NA
  table$only <- only_packages_that_need(table, found$askers)
  table$by_user <- NULL
  table
}

how_to_know_packages <- paste(
  "Only the sampler of this package records that:",
  "use `record_profile()` or, for a script, `profile record --native`. See *Start-up* in `?summary.profile_data`."
)

# For each package the only other one that needs it, of those in the table; "shared" if there are several, or if the user
# asked for it as well; `NA` if only the user did, or if it is unknown what others need. A package is loaded only once, so
# that the samples show who asked first. Others that need it have it in their descriptions.
only_packages_that_need <- function(table, askers) {
  declared <- lapply(rlang::set_names(table$package), packages_needed_by)
  is_known <- lengths(declared) > 0
  vapply(seq_len(nrow(table)), function(i) {
    package <- table$package[[i]]
    if (is.na(package)) {
      return(NA_character_)
    }
    by_description <- table$package[is_known & vapply(declared, function(needed) package %in% needed, NA)]
    by <- setdiff(union(askers$asker[askers$package %in% package], by_description), package)
    if (length(by) + table$by_user[[i]] > 1) {
      "shared"
    } else if (length(by) == 1 && all(is_known[-i])) {
      by
    } else {
      NA_character_
    }
  }, "")
}

# The names in the fields Depends and Imports of an installed package; with an "R", so that it is never empty. NULL if it is
# not installed.
packages_needed_by <- function(package) {
  file <- if (!is.na(package)) system.file("Meta", "package.rds", package = package) else ""
  if (nzchar(file)) {
    description <- tryCatch(readRDS(file), error = function(error) NULL)
    c("R", names(description$Depends), names(description$Imports))
  }
}

# ---- In the digest -----------------------------------------------------------------

# Loading is shown if it takes a considerable part of the time.
least_loading <- 0.05

described_loading <- function(loading, summary) {
  table <- loading$packages
  if (nrow(table) == 0 || !is_time_or_count(summary)) {
    return(NULL)
  }
  list(
    self = sum(table$self), self_share = sum(table$self) / attr(summary, "whole"),
    packages = table[intersect(c("package", "self", "total", "self_time", "total_time"), names(table))]
  )
}

is_shown_loading <- function(loading) !is.null(loading) && isTRUE(abs(loading$self_share) > least_loading)

description_loading <- function(loading, run, width, shown) {
  if (is_shown_loading(loading)) {
    amount <- function(rows) {
      time <- rows[["self_time"]]
      if (is.null(time)) format_amount(sum(rows$self), run$unit) else format_seconds(sum(time))
    }
    most <- loading$packages[1, ]
    package <- if (is.na(most$package)) "packages unknown" else paste0("most in ", shown(most$package), " (", amount(most), ")")
    text <- paste0(trimws(percent(loading$self_share)), "% (", amount(loading$packages), "), ", package)
    wrap("Loading packages: ", text, width)
  }
}
