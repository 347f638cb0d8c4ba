# Two expressions that are compared, such as `f_old(x)` and `f_new(x)`, are the outermost frames of their stacks. As rows
# of their own, one would be gone and the other one new, although both are the whole run. They are one row instead, with
# the name `f_old -> f_new`.

# The smallest share of each run for the outermost function of an expression. Others are garbage collections, and
# samples that were taken when the expression had not yet begun.
share_of_expression <- 0.9

# `data`: the result of `new_figures()` by function. `profiles`: those of all runs, to look up which of several functions
# is outermost. The element `expression` of the result has the names in `base` and `new`, if they were combined.
with_common_expression <- function(data, profiles) {
  whole <- list(base = whole_runs(data, FALSE), new = whole_runs(data, TRUE))
  if (any(lengths(whole) == 0)) {
    return(data)
  }
  names <- lapply(whole, function(group) data$groups$name[group])
  if (any(lengths(whole) > 1)) {
    outermost <- unique(unlist(lapply(profiles, outermost_functions)))
    whole <- Map(function(group, name) group[name %in% outermost], whole, names)
    if (any(lengths(whole) != 1)) {
      return(data)
    }
  }
  expression <- data$groups$name[unlist(whole)]
  figures <- data$figures
  figures$group[figures$group == whole$new] <- whole$base
  data$figures <- figures
  data$groups$name[whole$base] <- common_name(expression)
  data$expression <- expression
  data
}

common_name <- function(expression) paste(expression, collapse = " -> ")

# The groups that are in nearly all samples of each run of one version, and in no sample of the other one.
whole_runs <- function(data, is_new) {
  figures <- data$figures
  sums <- data$sums
  is_there <- data$is_new[figures$run] == is_new
  elsewhere <- unique(figures$group[!is_there])
  is_whole <- is_there & figures$total > 0 & figures$total >= share_of_expression * sums[figures$run]
  runs <- table(figures$group[is_whole])
  groups <- as.integer(names(runs)[runs == sum(data$is_new == is_new)])
  groups <- setdiff(groups, elsewhere)
  groups[!is.na(data$groups$name[groups])]
}

# The names of the functions at the outer end of stacks.
outermost_functions <- function(x) {
  frames <- x$sample_locations
  rows <- order(frames$sample_id, frames$depth, method = "radix")
  last <- rows[!duplicated(frames$sample_id[rows], fromLast = TRUE)]
  locations <- unique(frames$location_id[last])
  functions <- x$locations$function_id[x$locations$location_id %in% locations]
  unique(x$functions$name[x$functions$function_id %in% functions])
}
