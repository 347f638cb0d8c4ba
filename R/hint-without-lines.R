# Why the R code of a profile has no lines, and how to get them. What is said has to be true of this profile:
# `options(keep.source = TRUE)` helps neither with packages nor in documents of knitr.

# The attribute of a source whose code has no lines, apart from the text that R makes of functions of packages: where it was
# read, as far as its recording knows.
no_lines_since <- "profile.without_lines"

# Adds this attribute. `keeps_source`: the option when the recording began.
with_reason_for_no_lines <- function(x, keeps_source) {
  reason <- if (isTRUE(getOption("knitr.in.progress"))) "knitr" else if (!interactive() && !keeps_source) "script"
  if (is.null(reason) || nrow(x$sources) == 0 || nrow(x$samples) == 0 || has_lines_of_r(used_locations(x), deparsed = FALSE)) {
    return(x)
  }
  x$.source_attributes <- vctrs::vec_rbind(x$.source_attributes, tibble::tibble(
    source_id = x$sources$source_id[[1]], key = no_lines_since, value = reason, type = "string", unit = NA_character_
  ))
  x
}

# Whether all runs of a profile are known to be without lines.
are_without_lines <- function(x) {
  about <- x[[".source_attributes"]]
  !is.null(about) && all(x$sources$source_id %in% about$source_id[about$key %in% no_lines_since])
}

# Callers of a recorded expression may be left in `locations`, although no sample has them.
used_locations <- function(x) {
  used <- which(x$locations$location_id %in% x$sample_locations$location_id)
  list(locations = slice_rows(x$locations, used), functions = x$functions)
}

# Whether functions with these names could have lines, but have none.
lacks_lines <- function(x, names) {
  !has_lines_of_r(x) || are_without_lines(x) && !has_only_packages(x, names)
}

# The hint for a profile and the names of its functions that have samples, by default all; or for code of which nothing is
# known.
hint_without_lines <- function(x = NULL, names = x[["functions"]]$name) {
  about <- x[[".source_attributes"]]
  reason <- unique(about$value[about$key %in% no_lines_since])
  option <- "`options(keep.source\u00a0=\u00a0TRUE)`"
  what <- if (!is.null(x) && has_lines_of_r(x)) "your R code:" else "R code:"
  paste("There are no lines of", what, if (has_only_packages(x, names)) {
    paste(
      "it belongs to packages that were installed without source references. Install them with the option",
      "`--with-keep.source`, or while the environment variable `R_KEEP_PKG_SOURCE` is `yes`."
    )
  } else if (identical(reason, "knitr")) {
    paste(
      "knitr keeps no source references of the code of a document. Write functions to a file, and read it with",
      "`source(file, keep.source\u00a0=\u00a0TRUE)`."
    )
  } else if (identical(reason, "script")) {
    paste0(
      "it was parsed without source references, as Rscript does. Set ", option, " in the first line of the script."
    )
  } else {
    paste0("it was parsed without source references, as Rscript does. Set ", option, " before R reads it.")
  }, "See `?read_rprof`.")
}

# Whether all functions with these names are known to belong to packages, apart from names that say nothing.
has_only_packages <- function(x, names) {
  functions <- unclass(x[["functions"]])
  package <- functions[[".package"]]
  if (is.null(package) || all(is.na(package))) {
    return(FALSE)
  }
  is_clear <- functions$name %in% setdiff(names, common_names) & !startsWith(functions$name, "<") & !(is_native(x) | is_of_heap(x))
  !anyNA(package[is_clear])
}
