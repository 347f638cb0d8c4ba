# The names and packages of methods of ggproto in recordings of R's profiler, which records what calls say.
#
# `self$draw_panel` makes a function, which calls the method by its name or, in older versions of ggplot2, as `f`. So a
# method is a frame with this name inside of such a call. Which classes have a method of this name is looked up in the
# packages that are loaded: if it is only one, the method has its name, as in functions of other processes.

# `methods`: of ggproto_methods().
with_names_of_ggproto <- function(x, methods = ggproto_methods()) {
  if (is.null(methods) || nrow(x$samples) == 0) {
    return(x)
  }
  frames <- calls_of_methods(x, unique(methods$name))
  if (length(frames$row) == 0) {
    return(x)
  }
  name <- unique(frames$name)
  only <- function(values) {
    vapply(name, function(name) {
      found <- unique(values[methods$name == name])
      if (length(found) == 1) found else NA_character_
    }, "")
  }
  class <- only(methods$class)
  package <- only(methods$package)
  shown <- ifelse(is.na(class), name, paste0(class, "$", name))
  at <- match(frames$name, name)
  x <- with_named_frames(x, frames$row, shown[at], package[at])
  with_named_frames(x, frames$outer, NULL, rep("ggplot2", length(frames$outer)))
}

# The methods of ggproto: their names, and the classes and packages that define them. NULL without ggplot2.
ggproto_methods <- function() {
  packages <- loadedNamespaces()
  if (!"ggplot2" %in% packages) {
    return(NULL)
  }
  imports <- vapply(packages, function(package) "ggplot2" %in% names(getNamespaceImports(package)), NA)
  packages <- c("ggplot2", packages[imports])
  found <- c(
    lapply(packages, function(package) methods_in(asNamespace(package), package)), list(methods_in(globalenv(), ""))
  )
  vctrs::vec_rbind(!!!found)
}

# By convention, the names of classes begin with a capital letter. Other variables are not read, as packages load them
# only when they are used.
methods_in <- function(env, package) {
  names <- ls(env, pattern = "^[[:upper:]]", sorted = FALSE)
  names <- names[!rlang::env_binding_are_active(env, names)]
  classes <- Filter(function(object) is.environment(object) && inherits(object, "ggproto"), mget(names, env))
  each <- lapply(classes, function(class) {
    members <- as.list.environment(class, all.names = TRUE)
    members <- members[vapply(members, is.function, NA) & names(members) != "super"]
    data.frame(
      name = names(members) %||% character(), class = rep(class(class)[[1]], length(members)),
      package = rep(package, length(members))
    )
  })
  vctrs::vec_rbind(!!!each)
}

# The rows of frames of methods with one of these names, their names, and the rows of the frames that have called them.
calls_of_methods <- function(x, names) {
  frames <- unclass(x$sample_locations)
  location <- match(frames$location_id, x$locations$location_id)
  type <- x$locations[[".frame_type"]]
  rows <- if (is.null(type)) seq_along(location) else which((type %in% "r")[location])
  called <- x$functions$name[match(x$locations$function_id, x$functions$function_id)]
  method <- ifelse(grepl("^[^$]+[$][^$]+$", called), sub("^[^$]+[$]", "", called), NA)
  inner <- utils::head(rows, -1)
  outer <- rows[-1]
  name <- method[location[outer]]
  is_method <- name %in% names & frames$sample_id[inner] == frames$sample_id[outer] &
    (called[location[inner]] == name | called[location[inner]] == "f")
  found <- which(is_method)
  list(row = inner[found], outer = outer[found], name = name[found])
}

# Gives these rows of `sample_locations` other names, unless they are NULL, and packages.
with_named_frames <- function(x, rows, name, package) {
  old <- match(x$sample_locations$location_id[rows], x$locations$location_id)
  of_function <- match(x$locations$function_id[old], x$functions$function_id)
  pair <- paste(of_function, name, package)
  new <- which(!duplicated(pair))
  functions <- slice_rows(x$functions, of_function[new])
  if (!is.null(name)) functions$name <- name[new]
  # What the name alone has found is wrong, also if the package is unknown, or if it is the user's code.
  known <- !package[new] %in% c(NA, "")
  functions$.package <- ifelse(known, package[new], NA_character_)
  functions$.package_from <- ifelse(known, "namespace", NA_character_)
  functions$function_id <- max(x$functions$function_id) + seq_along(new)
  place <- paste(old, match(pair, pair[new]))
  added <- which(!duplicated(place))
  locations <- slice_rows(x$locations, old[added])
  locations$function_id <- functions$function_id[match(pair[added], pair[new])]
  locations$location_id <- max(x$locations$location_id) + seq_along(added)
  x$sample_locations$location_id[rows] <- locations$location_id[match(place, place[added])]
  x$locations <- vctrs::vec_rbind(x$locations, locations)
  x$functions <- vctrs::vec_rbind(x$functions, functions)
  x
}
