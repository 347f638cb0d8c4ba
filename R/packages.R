# Determines the package of each function by its name, its file, or the loaded namespaces.

#' Add the packages of functions
#'
#' @description
#' Most profilers record names and files of functions, but not their packages. `add_packages()` adds two columns to
#' `functions`: `.package`, and `.package_from`, the rule that determined the package. Both are `NA` if the package is
#' unknown.
#'
#' @details
#' [profile_process()], the agent (see [start_agent()]) and, for child processes, [record_profile()] read from the memory
#' of the process to which package each function belongs. There `.package_from` is `"process"`; `.package` is `NA` if the
#' function belongs to none, because it was defined in the global environment. In profiles from [tbl_profile()], it is
#' `"store"` for packages that were known when the profile was stored.
#'
#' For all other functions, these rules are tried in this order:
#'
#' - `"name"`: the name contains the package, such as `dplyr::filter`, because the call did. A method for a class of S7
#'   may have a name like that, such as `print.ggplot2::ggplot`;
#' - `"file"`: the function is in a file of a package. This is a file in the directory `R` of a library, of the
#'   directory where R installed a package, of a loaded package, or of a source package (which has a file
#'   `DESCRIPTION`). For native code it is the shared library of a package. If the profile was not recorded in this
#'   session, only files `DESCRIPTION` in the working directory are read, see [add_source_text()];
#' - `"namespace"`: no file is recorded, and the name is looked up as R does: where the function was called. This is the
#'   namespace of its caller, with what it imports, then base, the global environment and attached packages; for your own
#'   code it is the global environment. If the code of the caller does not contain the name, the call may be an argument,
#'   and the callers of the caller are considered. Functions that are defined in another function, and methods, belong to
#'   the package that defines them.
#'
#' If the callers of a function find different packages, the function gets a row for each of them. A package remains
#' unknown if these rules do not lead to a single one. This applies to functions that are arguments, such as `FUN` in
#' [lapply()], to functions without a name (`<Anonymous>`), and to functions that these call, if several packages of the
#' profile have a function of this name.
#'
#' The last rule requires that the packages that the profiled code used are loaded: load them first. If dplyr is not
#' loaded, `filter()` is attributed to stats. Most packages are installed without source references, so their functions
#' have no file. [record_profile()] adds packages when recording ends, in the session in which they were used.
#'
#' Frames of heap snapshots, see [snapshot_memory()], have no package: `numeric` is a type of objects there, not the
#' function of base.
#'
#' Existing values of both columns are kept, so you can set some packages yourself.
#'
#' @param x A profile, see [profile_data].
#' @param ... Must be empty.
#'
#' @return The profile, of version 2.0, with two more columns in `functions`, and as many more rows in `functions` and
#'   `locations` as functions of several packages have the same name.
#'
#' @section Errors:
#' `profile_error_invalid` if `x` is not valid.
#' @seealso [call_tree()] with `by = "package"`
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#' x <- add_packages(x)
#' x$functions[c("name", "filename", ".package", ".package_from")]
add_packages <- function(x, ...) {
  call <- call_without_dots()
  checked_with_packages(as_unchecked_v2(x, call), call)
}

# Whether packages were determined by the rules of add_packages(): not only those that a process knows itself, or that a
# store has returned.
has_packages <- function(x) {
  from <- setdiff(x$functions[[".package_from"]], NA)
  !is.null(x$functions[[".package"]]) && (length(from) == 0 || !all(from %in% c("process", "store")))
}

# The packages of functions for which a rule needs the function only, and an attribute with which the core looks up
# others (src/rust/src/from_r/environments.rs): where a verb crosses into it, or `with_packages_in_tables()` does. The
# tables need not have been checked: the core checks them afterwards. `start`: where the outermost functions were called.
packages_added <- function(x, call, start = globalenv()) {
  all_packages_added(list(x), call, start)[[1]]
}

# The same for profiles that the core pools.
all_packages_added <- function(profiles, call, start = globalenv()) {
  profiles <- with_validation(profiles, call, lapply(profiles, with_packages, call))
  names <- with_validation(profiles, call, unique(unlist(lapply(profiles, names_to_look_up))))
  environments <- if (length(names) > 0) tables_of_environments(names, start)
  lapply(profiles, `attr<-`, "environments", environments)
}

# Adds packages to tables, which need not have been checked if nothing has to be looked up.
with_packages_in_tables <- function(x, call, start = globalenv()) {
  x <- packages_added(x, call, start)
  if (is.null(attr(x, "environments"))) x else looked_up(x, call)
}

# The same for tables that need not have been checked at all.
checked_with_packages <- function(x, call) {
  x <- packages_added(x, call)
  if (!is.null(attr(x, "environments"))) {
    return(looked_up(x, call))
  }
  rust(rust_validate(x), call)
  x
}

# The profile in which functions that belong to several packages have several rows.
looked_up <- function(x, call) {
  frames <- x$sample_locations
  as_stacks <- has_plain_rows(frames) && length(frames) == 3
  found <- rust(rust_packages(x, as_stacks, lazy_columns(call)), call)
  attr(x, "environments") <- NULL
  functions <- with_further_rows(x$functions, "function_id", found$functions)
  functions <- set_column(functions, ".package", found$package)
  functions <- set_column(functions, ".package_from", found$package_from)
  locations <- with_further_rows(x$locations, "location_id", found$locations)
  if (nrow(locations) > nrow(x$locations) || nrow(functions) > nrow(x$functions)) {
    locations <- set_column(locations, "function_id", functions$function_id[found$function_of])
  }
  if (!is.null(found$frames)) {
    x$sample_locations <- with_columns(frames, found$frames[names(frames)])
  } else if (!is.null(found$location_of)) {
    x$sample_locations <- set_column(frames, "location_id", locations$location_id[found$location_of])
  }
  x$.location_attributes <- with_attributes_of(x$.location_attributes, locations$location_id, found$locations)
  x$functions <- functions
  x$locations <- locations
  x
}

# These rows of a table, of which those behind the table are copies with new ids.
with_further_rows <- function(rows, key, at) {
  old <- rows[[key]]
  if (length(at) == length(old)) {
    return(rows)
  }
  added <- seq_along(at) > length(old)
  rows <- slice_rows(rows, at)
  ids <- c(old, setdiff(seq_along(at), old)[seq_len(sum(added))])
  rows <- set_column(rows, key, ids)
  # A file has each of its ids once.
  if (!is.null(rows[[".native_id"]])) rows[[".native_id"]][added] <- NA
  rows
}

# The attributes of locations, also of copies. `at`: the row of the original of each location.
with_attributes_of <- function(attributes, ids, at) {
  added <- which(duplicated(at))
  if (is.null(attributes) || length(added) == 0) {
    return(attributes)
  }
  copies <- lapply(added, function(i) {
    rows <- slice_rows(attributes, which(attributes$location_id == ids[[at[[i]]]]))
    set_column(rows, "location_id", rep(ids[[i]], nrow(rows)))
  })
  vctrs::vec_rbind(attributes, !!!copies)
}

# The names of functions that are looked up, and of their callers, whose code may contain them.
names_to_look_up <- function(x) {
  functions <- unclass(x$functions)
  if (!is.character(functions$name) || !is.character(functions$filename)) {
    return(NULL)
  }
  unknown <- is.na(functions[[".package"]]) & is.na(functions[[".package_from"]])
  unknown <- unknown & (is.na(functions$filename) | functions$filename == "" | is_deparsed_package(functions$filename))
  if (!any(unknown & !is_native(x) & !is_of_heap(x))) {
    return(NULL)
  }
  names <- without_titles(functions$name)
  names <- unique(c(names, sub("^[[:alnum:].]+:::?(?=.)", "", names, perl = TRUE)))
  # The longest name that R allows.
  names[!is.na(names) & names != "" & nchar(names, "bytes") <= 10000]
}

# The names of functions without the titles of their calls, such as `loadNamespace` of `loadNamespace(dplyr)`.
without_titles <- function(names) {
  titled <- data_model()$titled
  known <- paste0("(?:", titled$package, "::)?", titled$`function`, collapse = "|")
  sub(paste0("^(", known, ")[(].+[)]$"), "\\1", names, perl = TRUE)
}

with_packages <- function(x, call) {
  functions <- unclass(x$functions)
  known <- intersect(c(".package", ".package_from"), names(functions))
  if (!all(vapply(functions[c("name", "filename", known)], is.character, NA))) {
    return(x)
  }
  rules <- list(
    name = package_in_name(functions$name, is_native(x), is_code_of_r(x)),
    file = package_of_file(functions$filename, is_of_session(x), call),
    file = package_of_library(x)
  )
  of_heap <- is_of_heap(x)
  package <- functions[[".package"]] %||% rep(NA_character_, length(functions$name))
  from <- functions[[".package_from"]] %||% rep(NA_character_, length(functions$name))
  for (i in seq_along(rules)) {
    # That a function has no package may be known, too.
    new <- is.na(package) & is.na(from) & !is.na(rules[[i]]) & !of_heap
    package[new] <- rules[[i]][new]
    from[new] <- names(rules)[[i]]
  }
  x$functions <- set_column(set_column(x$functions, ".package", package), ".package_from", from)
  x
}

# Whether each function is native code, in which `a::b` is a name of C++ or Rust.
is_native <- function(x) {
  x$functions$function_id %in% x$locations$function_id[is_native_location(x)]
}

is_native_location <- function(x) {
  (x$locations[[".frame_type"]] %||% NA) %in% "native" | !is.na(x$locations[[".address"]] %||% NA)
}

# Whether each function is a frame of heap snapshots, such as `numeric` or `$x`, and not code.
is_of_heap <- function(x) {
  is_frame <- x$locations[[".frame_type"]] %in% data_model()$heap_frames$frame_type
  x$functions$function_id %in% x$locations$function_id[is_frame]
}

# `is_of_r`: whether the profile says that functions are R code.
package_in_name <- function(name, is_native, is_of_r = TRUE) {
  pattern <- "^([[:alpha:]][[:alnum:].]*[[:alnum:]]):::?."
  found <- !is_native & grepl(pattern, name, perl = TRUE)
  package <- ifelse(found, sub(paste0(pattern, ".*"), "\\1", name, perl = TRUE), NA_character_)
  # R found a function `a::b` in the package `a`, unless it is a method for the class `b` of a package, such as
  # `print.pkg::b`. In other languages, names with colons mean something else.
  unclear <- unique(package[found & !(is_of_r & !grepl(".", package, fixed = TRUE))])
  installed <- nzchar(vapply(unclear, function(package) system.file(package = package), ""))
  package[package %in% setdiff(unclear[!installed], loadedNamespaces())] <- NA
  package
}

# Whether each function is R code, as far as the profile says so.
is_code_of_r <- function(x) {
  type <- x$locations[[".frame_type"]]
  if (is.null(type)) {
    return(rep(all(x$sources$source_type %in% c("rprof", "rprofmem", "process")), length(x$functions$function_id)))
  }
  x$functions$function_id %in% x$locations$function_id[type %in% "r"]
}

# `anywhere`: whether descriptions of packages outside of the working directory may be read.
package_of_file <- function(file, anywhere, call) {
  files <- unique(file[!is.na(file)])
  # A lazy quantifier at the start would take quadratic time.
  pattern <- "^(.*/)?([^/]+)/R/[^/]+[.][RrSsq]$"
  path <- gsub("\\", "/", valid_text(files), fixed = TRUE)
  in_r <- grepl(pattern, path, perl = TRUE)
  parent <- ifelse(in_r, sub(pattern, "\\1", path, perl = TRUE), "")
  package <- ifelse(in_r, sub(pattern, "\\2", path, perl = TRUE), NA_character_)
  # To install a package, R copies it to a directory `R.INSTALL...`, and records paths there.
  known <- is_in_library(path) | package %in% loadedNamespaces()
  for (i in which(in_r & !known)) {
    package[[i]] <- package_of_directory(paste0(parent[[i]], package[[i]]), anywhere, call)
  }
  package[match(file, files)]
}

# The package whose sources are in this directory.
package_of_directory <- function(directory, anywhere, call) {
  description <- source_file(in_folder(directory, "DESCRIPTION"), NULL, anywhere, "description", call)
  if (is.null(description$bytes)) {
    return(NA_character_)
  }
  lines <- textConnection(strsplit(lines_of_text(rawToChar(description$bytes)), "\n", fixed = TRUE)[[1]])
  on.exit(close(lines))
  tryCatch(read.dcf(lines, "Package")[[1]], error = function(e) NA_character_)
}

# Native functions in the shared library of a package.
package_of_library <- function(x) {
  package <- rep(NA_character_, nrow(x$functions))
  mapping <- x$locations[[".mapping_id"]]
  if (is.null(mapping) || is.null(x$.mappings)) {
    return(package)
  }
  file <- gsub("\\", "/", x$.mappings$filename, fixed = TRUE)
  pattern <- "^.*/([^/]+)/libs/(?:[^/]+/)?\\1[.](so|dll|dylib)$"
  of_mapping <- rep(NA_character_, length(file))
  found <- grepl(pattern, file, perl = TRUE)
  of_mapping[found] <- sub(pattern, "\\1", file[found], perl = TRUE)
  of_location <- of_mapping[match(mapping, x$.mappings$mapping_id)]
  # A function has a package only if all of its locations are in the library of this package.
  each <- split(of_location, factor(x$locations$function_id, x$functions$function_id))
  vapply(each, function(packages) {
    packages <- unique(packages)
    if (length(packages) == 1) packages else NA_character_
  }, "", USE.NAMES = FALSE)
}

# Whether files are R code of a package in a library, or of one that R was installing. Libraries of users have the
# platform in their name, or folders for versions of R in it, and renv's also for platforms.
is_in_library <- function(path) {
  version <- "(R-)?[0-9]+[.][0-9]+"
  library <- paste0("(site-|win-|[^/]+-(linux|apple|solaris|freebsd)[^/]*-)?library((/[^/]+)?/", version, "(/[^/]+)?)?")
  grepl(paste0("(^|/)(", library, "|R[.]INSTALL[[:xdigit:]]+)/[^/]+/R/[^/]+$"), path, perl = TRUE)
}

# The rows of `functions` whose code is in the user's source files: R code outside of libraries of packages. Code
# without a file has the name of what it was read from, such as `<text>`.
own_functions <- function(x) {
  functions <- unclass(x$functions)
  files <- unique(as.character(functions[["filename"]]))
  path <- gsub("\\", "/", valid_text(files), fixed = TRUE)
  own <- files[!is.na(files) & files != "" & !is_in_library(path) & !is_deparsed_package(path)]
  functions[["filename"]] %in% own & !(is_native(x) | is_of_heap(x))
}
