# Checks a profile: the core checks the rules, and R raises the error.

#' Check a profile
#'
#' `validate_profile()` checks a profile against the rules of its version, which [profile_data] describes. Readers
#' return valid profiles, and writers check before they write, so you need it only after you have edited or created
#' tables yourself. [compact_profile()] repairs common effects of editing.
#'
#' @param x A profile, as returned by [read_rprof()], [read_pprof()] or [read_otlp()], or created by hand, or
#'   a dm of its tables, see [dm_from_profile()].
#'
#' @return `x`, invisibly.
#'
#' @section Errors:
#' `profile_error_invalid` for the first broken rule, with the fields `table`, `column`, `row` and `rule`
#' as far as they apply.
#'
#' @seealso [profile_data] for the tables and their rules
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#' validate_profile(x)
#'
#' x$locations$line[3] <- -1L
#' try(validate_profile(x))
validate_profile <- function(x) {
  call <- rlang::current_env()
  rust(rust_validate(as_profile(x, call)), call)
  invisible(x)
}
