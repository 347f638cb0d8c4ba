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
#' function belongs to none, because it was defined in the global environment.
#'
#' For all other functions, these rules are tried in this order:
#'
#' - `"name"`: the name contains the package, such as `dplyr::filter`, because the call did;
#' - `"file"`: the function is in a file of a package. This is a file in the directory `R` of a library, of the
#'   directory where R installed a package, of a loaded package, or of a source package (which has a file
#'   `DESCRIPTION`). For native code it is the shared library of a package. If the profile was not recorded in this
#'   session, only files `DESCRIPTION` in the working directory are read, see [add_source_text()];
#' - `"namespace"`: no file is recorded, exactly one of the loaded namespaces has a function of this name, and the
#'   global environment has none. Internal functions of a package are considered only if the profile contains an
#'   exported function or a method of this package, which could have called them.
#'
#' The last rule requires that the packages that the profiled code used are loaded: load them first. If dplyr is not
#' loaded, `filter()` is attributed to stats. Most packages are installed without source references, so their functions
#' have no file. [record_profile()] adds packages when recording ends, in the session in which they were used.
#'
#' Frames of heap snapshots, see [memory_profile()], have no package: `numeric` is a type of objects there, not the
#' function of base.
#'
#' Existing values of both columns are kept, so you can set some packages yourself.
#'
#' @param x A profile, see [profile_data].
#' @param ... Must be empty.
#'
#' @return The profile, of version 2.0, with two more columns in `functions`.
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
  x <- packages_added(as_unchecked_v2(x, call), call)
  rust(rust_validate(x), call)
  x
}

# Whether packages were determined by the rules of add_packages(): not only those that a process knows itself.
has_packages <- function(x) {
  from <- setdiff(x$functions[[".package_from"]], NA)
  !is.null(x$functions[[".package"]]) && !identical(from, "process")
}

# The tables need not have been checked: the core checks them afterwards.
packages_added <- function(x, call) {
  with_validation(list(x), call, with_packages(x, call))
}

with_packages <- function(x, call) {
  functions <- unclass(x$functions)
  known <- intersect(c(".package", ".package_from"), names(functions))
  if (!all(vapply(functions[c("name", "filename", known)], is.character, NA))) {
    return(x)
  }
  rules <- list(
    name = package_in_name(functions$name, is_native(x)),
    file = package_of_file(functions$filename, is_of_session(x), call),
    file = package_of_library(x),
    namespace = package_with_function(functions)
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

package_in_name <- function(name, is_native) {
  pattern <- "^([[:alpha:]][[:alnum:].]*[[:alnum:]]):::?."
  found <- !is_native & grepl(pattern, name, perl = TRUE)
  ifelse(found, sub(paste0(pattern, ".*"), "\\1", name, perl = TRUE), NA_character_)
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

# The package of each function, if exactly one loaded namespace can have it.
package_with_function <- function(functions) {
  no_file <- is.na(functions$filename) | functions$filename == ""
  names <- setdiff(functions$name[no_file], c(ls(globalenv(), all.names = TRUE), NA, ""))
  # The longest name that R allows.
  names <- names[nchar(names, "bytes") <= 10000]
  packages <- loadedNamespaces()
  each <- lapply(packages, functions_among, names)
  found <- list(
    name = unlist(lapply(each, `[[`, "name")),
    exported = unlist(lapply(each, `[[`, "exported")),
    package = rep(packages, vapply(each, function(own) length(own$name), 0L))
  )
  # An internal function is called by functions of its package, of which the outermost one is exported.
  reachable <- found$package %in% found$package[found$exported]
  name <- found$name[reachable]
  package <- found$package[reachable]
  is_unique <- !name %in% name[duplicated(name)]
  package <- package[is_unique][match(functions$name, name[is_unique])]
  package[!no_file] <- NA_character_
  package
}

# The functions of a package with these names, and whether code of other packages may call them: exported ones,
# and methods.
functions_among <- function(package, names) {
  namespace <- asNamespace(package)
  find <- function(names) mget(names, namespace, mode = "function", ifnotfound = list(NULL), inherits = FALSE)
  values <- tryCatch(find(names), error = function(e) {
    # A package may contain objects that raise errors when they are used.
    lapply(names, function(name) tryCatch(find(name)[[1]], error = function(e) NULL))
  })
  # A re-exported function belongs to the original package.
  is_own <- function(value) is.primitive(value) || identical(topenv(environment(value)), namespace)
  there <- which(lengths(values) > 0)
  own <- names[there[vapply(values[there], is_own, NA)]]
  exported <- rep(TRUE, length(own))
  if (package != "base" && length(own) > 0) {
    exported <- rlang::env_has(getNamespaceInfo(namespace, "exports"), own) |
      rlang::env_has(namespace[[".__S3MethodsTable__."]], own)
  }
  list(name = own, exported = unname(exported))
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
  own <- files[!is.na(files) & files != "" & !is_in_library(path)]
  functions[["filename"]] %in% own & !(is_native(x) | is_of_heap(x))
}
