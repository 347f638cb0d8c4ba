# The comparison at the start of a page with a base: the result of compare_profiles() with its default arguments, as text.

# The number of differences that the page lists.
most_differences <- 20

# `data`: figures by function, see `new_figures()`. Returns the functions for which a difference was found, `NULL` if there
# are too few runs, and the text of the page; `NULL` if the runs cannot be compared.
page_comparison <- function(data, profiles, call) {
  data <- with_common_expression(data, profiles)
  compared <- tryCatch(
    comparison_of(data, call),
    # Runs without samples, or with unknown periods.
    profile_error_unsupported = function(error) NULL
  )
  if (is.null(compared)) {
    return()
  }
  whole <- attr(compared, "whole")
  certain <- compared[compared$verdict %in% c("more", "less"), ]
  found <- as.character(certain$name)
  common <- if (!is.null(data$expression)) common_name(data$expression)
  if (any(found %in% common)) {
    found <- c(found, data$expression)
  }
  shown <- utils::head(certain, most_differences)
  columns <- list()
  if (nrow(shown) > 0) {
    names <- printable(ifelse(is.na(shown$name), "(unknown)", shown$name), 200)
    columns <- c(list(name = names), comparison_columns(shown, attr(compared, "scale"), attr(compared, "unit"), TRUE))
  }
  more <- nrow(certain) - nrow(shown)
  list(
    found = if (has_verdicts(compared)) found,
    text = list(
      head = comparison_head(compared),
      whole = format_whole_run(whole, attr(compared, "unit")),
      verdict = if (is.na(whole$verdict)) "" else whole$verdict,
      notes = c(
        if (more > 0) paste0("And ", format_count(more), " more."),
        comparison_notes(compared, shown), note_on_memory(profiles, data$is_new)
      ),
      columns = as.character(names(columns)),
      cells = if (length(columns) > 0) as.vector(t(do.call(cbind, columns))) else character(),
      expression = as.character(c(data$expression, common))
    )
  )
}

# The page shows types that the comparison does not use: a warning if the memory of one side was measured at samples, and
# each vector of the other one was recorded.
note_on_memory <- function(profiles, is_new) {
  is_exact <- unlist(lapply(profiles, function(x) source_attribute(x, "profile.memory") %in% "exact"))
  has_memory <- unlist(lapply(profiles, function(x) {
    (x$sources[[".memory_profiling"]] %||% rep(FALSE, nrow(x$sources))) %in% TRUE
  }))
  is_sampled <- has_memory & !is_exact
  sides <- c("`base`", "`new`")[is_new + 1]
  pairs <- setdiff(unique(sides[is_sampled]), sides[is_exact])
  if (any(is_exact) && length(pairs) > 0) {
    paste0(
      "The memory of ", pairs[[1]], " was measured at samples, and the memory of the other side is exact: their bytes ",
      "cannot be compared. Record both with `record_profile(memory = \"exact\")`."
    )
  }
}
