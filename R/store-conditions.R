# The conditions of `tbl_profile()` and its method of `filter()`. An engine translates them: it knows comparisons of columns
# with values, and few functions.

# The conditions, with values in the place of calls that use no column: `Sys.time() - 3600` is computed here, since few
# engines can. `names` are the columns of samples.
checked_conditions <- function(conditions, names, call) {
  Map(function(condition, name) {
    code <- rlang::quo_get_expr(condition)
    if (name != "") {
      abort_argument(c(
        "A condition must not have a name.",
        i = paste0("Did you mean `", name, " == ", rlang::as_label(condition), "`?")
      ), call)
    }
    if (is.character(code) || is.numeric(code)) {
      abort_argument(c(
        paste0("A condition must be a comparison, such as `service == \"web\"`, not ", describe_object(code), "."),
        i = if (is.character(code)) "The schema of a database is the argument `schema`."
      ), call)
    }
    rlang::quo_set_expr(condition, with_values(code, names, rlang::quo_get_env(condition)))
  }, conditions, rlang::names2(conditions))
}

# Replaces calls without columns by their values. What cannot be evaluated here, such as `n()` of dplyr, is left to the
# engine. Days are texts in a store.
with_values <- function(code, names, env) {
  if (!is.call(code) || rlang::is_quosure(code) || rlang::is_call(code, c("function", "~"))) {
    return(code)
  }
  if (!any(c(names, ".data", "sql") %in% all.names(code))) {
    value <- tryCatch(eval(code, env), error = function(error) NULL)
    if (is.atomic(value) && !is.null(value)) {
      return(value)
    }
  }
  for (i in seq_along(code)[-1]) {
    if (is.call(code[[i]])) code[[i]] <- with_values(code[[i]], names, env)
    if (inherits(code[[i]], "Date") && list(quote(day)) %in% as.list(code)) code[[i]] <- format(code[[i]])
  }
  code
}

# Whether a condition compares these columns, `shared`, and no others, with values. It then says the same of rows of
# other tables with the same columns, which a function of several rows, such as `row_number()`, does not.
compares_columns <- function(code, names, shared) {
  used <- intersect(all.vars(code), names)
  length(used) > 0 && all(used %in% shared) && is_comparison(code)
}

row_wise <- c("==", "!=", "<", "<=", ">", ">=", "%in%", "&", "|", "!", "(", "is.na", "-", "+")

is_comparison <- function(code) {
  if (!is.call(code)) {
    return(TRUE)
  }
  is.symbol(code[[1]]) && as.character(code[[1]]) %in% row_wise && all(vapply(as.list(code)[-1], is_comparison, NA))
}

filter_table <- function(table, conditions, call) {
  for (condition in conditions) {
    table <- tryCatch(dplyr::filter(table, !!condition), error = function(e) {
      abort_profile(c(
        paste0("Cannot filter by `", rlang::as_label(condition), "`."),
        i = paste0("The columns are ", paste0("`", columns_of(table), "`", collapse = ", "), ".")
      ), "profile_error_argument", parent = e, call = call)
    })
  }
  table
}
