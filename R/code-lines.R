# Lines of functions without source references that other processes run, and those that the agent records.
#
# The reader (src/rust/reader) has recorded positions in byte code: as lines of files such as `<bytecode: 0123456789abcdef>`,
# whose names contain the digest of the code. If exactly one function of this session that is on each of these stacks has code
# with this digest, the function is compiled again as in R/lines.R, which leads to the lines of its text.

is_byte_code <- function(file) {
  grepl("^<bytecode: [0-9a-f]{16}>$", file, useBytes = TRUE)
}

# Packages of R, which can be loaded without any effect.
packages_of_r <- c(
  "base", "compiler", "graphics", "grDevices", "grid", "methods", "parallel", "splines", "stats", "stats4", "tools", "utils"
)

# Gives frames in byte code the lines of their functions. Other frames in byte code lose their positions, or keep them for
# another session.
with_lines_of_code <- function(x, call, keep = FALSE) {
  is_code <- is_byte_code(x$functions$filename)
  if (!any(is_code)) {
    return(x)
  }
  places <- places_of_code(x, is_code, call)
  x <- move_places(x, places, keep)
  with_deparsed_text(x, places)
}

# list(location, file, line, text, skipped): the rows of `locations` in byte code, with the files and lines of those that are
# known and NA for others; see `lines_of_run()` for `text` and `skipped`.
places_of_code <- function(x, is_code, call) {
  of_location <- match(x$locations$function_id, x$functions$function_id)
  rows <- which(is_code[of_location])
  code <- x$functions$filename[of_location[rows]]
  position <- x$locations$line[rows]
  known <- list(
    location = rows, file = rep(NA_character_, length(rows)), line = rep(NA_integer_, length(rows)),
    text = no_text, skipped = 0L
  )
  left <- most_deparsed_lines(call)
  if (length(rows) == 0 || left == 0 || !is_live_platform()) {
    return(known)
  }
  names <- names_of_frames(x)
  candidates <- functions_of_frames(names)
  codes <- unique(code)
  found <- tryCatch(
    rust(rust_codes_find(lapply(candidates, `[[`, "compiled"), codes), call),
    profile_error = function(error) rep(NA_integer_, length(codes))
  )
  owner <- found[match(code, codes)]
  at <- match(x$sample_locations$location_id, x$locations$location_id)
  owner[!is_on_stacks(x, at, of_location, rows, owner, candidates, names)] <- NA
  samples <- tabulate(at, nrow(x$locations))[rows]
  texts <- list()
  owners <- sort(unique(owner))
  of_owner <- vapply(owners, function(number) sum(samples[owner %in% number]), 0)
  for (number in owners[order(-of_owner, owners)]) {
    candidate <- candidates[[number]]
    copy <- recompiled(candidate$original, candidate$file, left)
    if (is.null(copy$copy)) {
      known$skipped <- known$skipped + isTRUE(copy$is_skipped)
      next
    }
    left <- left - copy$compiled
    of_this <- which(owner == number)
    lines <- rust_codes_lines(candidate$compiled, copy$copy, creators(), code[of_this], position[of_this])
    lines <- rust(lines, call) %||% rep(NA_integer_, length(of_this))
    known$line[of_this] <- lines
    known$file[of_this[!is.na(lines)]] <- candidate$file
    if (!all(is.na(lines))) texts[[candidate$file]] <- paste0(copy$text, "\n", collapse = "")
  }
  known$text <- source_texts(texts, "deparsed")
  known
}

# list(package, called, defined) of all rows of `functions`: the package, "" for none and NA if it is unknown, and names without
# a package and a title.
names_of_frames <- function(x) {
  functions <- x$functions
  package <- as.character(functions[[".package"]] %||% rep(NA_character_, nrow(functions)))
  package[is.na(package) & functions[[".package_from"]] %in% "process"] <- ""
  bare <- function(name) sub("^[A-Za-z][A-Za-z0-9.]*:::?", "", name)
  list(package = package, called = bare(functions$system_name), defined = bare(functions$name))
}

# The functions of these names in the packages of the frames, as far as these are loaded or part of R, and in the global
# environment: lists of the `original` function, the `compiled` one, its `package` and `name`, and the `file` of its text.
functions_of_frames <- function(names) {
  wanted <- unique(data.frame(package = rep(names$package, 2), name = c(names$called, names$defined)))
  anywhere <- wanted$name[is.na(wanted$package)]
  packages <- if (length(anywhere) > 0) union(loadedNamespaces(), packages_of_r) else wanted$package
  found <- lapply(setdiff(packages, c("", "profile")), function(package) {
    if (can_use_package(package)) {
      functions_in(asNamespace(package), package, c(anywhere, wanted$name[wanted$package %in% package]))
    }
  })
  found <- c(found, list(functions_in(globalenv(), "", c(anywhere, wanted$name[wanted$package %in% ""]))))
  unlist(found, recursive = FALSE)
}

# A session loads no package for this, unless it is one of the shell command.
can_use_package <- function(package) {
  may_load <- package %in% packages_of_r || isTRUE(the$is_shell)
  package %in% loadedNamespaces() ||
    may_load && suppressWarnings(suppressMessages(requireNamespace(package, quietly = TRUE)))
}

functions_in <- function(env, package, names) {
  names <- intersect(names, ls(env, all.names = TRUE, sorted = FALSE))
  found <- lapply(names, function(name) {
    value <- if (is_safe_to_read(name, env)) get0(name, env, inherits = FALSE)
    # A package may have functions of others.
    if (typeof(value) != "closure" || package != "" && !identical(environment(value), env)) {
      return(NULL)
    }
    compiled <- if (package == "") compiled_function(value) else value
    if (is.null(compiled)) {
      return(NULL)
    }
    file <- paste0("<", if (package != "") paste0(package, "::"), name, ">")
    list(original = value, compiled = compiled, package = package, name = name, file = file)
  })
  Filter(Negate(is.null), found)
}

# A function as R compiles it when it is used. In this session, it may not have been used yet.
compiled_function <- function(f) {
  plain <- as.function.default(c(formals(f), list(body(f))), environment(f))
  tryCatch(compiler::cmpfun(plain, list(optimize = 2, suppressAll = TRUE)), error = function(error) NULL)
}

# Whether the function to which the code of these `rows` of `locations` may belong is on each stack that has them. If it is
# not, another function has the same code. `at`: the rows of `locations` of all frames.
is_on_stacks <- function(x, at, of_location, rows, owner, candidates, names) {
  sample <- match(x$sample_locations$sample_id, x$samples$sample_id)
  of_frame <- of_location[at]
  is_there <- rep(FALSE, length(rows))
  for (number in unique(owner[!is.na(owner)])) {
    candidate <- candidates[[number]]
    has_name <- names$called == candidate$name | names$defined == candidate$name
    is_function <- has_name & names$package %in% c(candidate$package, NA)
    has_function <- logical(nrow(x$samples))
    has_function[sample[is_function[of_frame] %in% TRUE]] <- TRUE
    of_this <- which(owner == number)
    frames <- which(at %in% rows[of_this])
    without <- unique(at[frames[!has_function[sample[frames]]]])
    is_there[of_this] <- !rows[of_this] %in% without
  }
  is_there
}

# Moves rows of `locations` to these files and lines. Functions and locations that become equal are joined.
move_places <- function(x, places, keep) {
  is_known <- !is.na(places$line)
  moved <- if (keep) is_known else rep(TRUE, length(is_known))
  rows <- places$location[moved]
  if (length(rows) == 0) {
    return(x)
  }
  file <- ifelse(is_known, places$file, "")[moved]
  line <- ifelse(is_known, places$line, 0L)[moved]
  locations <- x$locations
  of_function <- match(locations$function_id[rows], x$functions$function_id)
  pairs <- data.frame(of_function, file)
  distinct <- unique(pairs)
  new <- slice_rows(x$functions, distinct$of_function)
  new$filename <- distinct$file
  new$function_id <- max(x$functions$function_id) + seq_len(nrow(new))
  locations$function_id[rows] <- new$function_id[match(
    paste(pairs$of_function, pairs$file), paste(distinct$of_function, distinct$file)
  )]
  locations$line[rows] <- line
  functions <- vctrs::vec_rbind(x$functions, new)
  left <- !is_byte_code(functions$filename) | functions$function_id %in% locations$function_id
  functions <- slice_rows(functions, which(left))
  of_functions <- vctrs::vec_duplicate_id(functions[names(functions) != "function_id"])
  locations$function_id <- functions$function_id[of_functions[match(locations$function_id, functions$function_id)]]
  of_locations <- vctrs::vec_duplicate_id(locations[names(locations) != "location_id"])
  ids <- locations$location_id
  x$functions <- slice_rows(functions, unique(of_functions))
  x$locations <- slice_rows(locations, unique(of_locations))
  for (table in setdiff(names(x), "locations")) {
    if ("location_id" %in% names(x[[table]])) {
      x[[table]]$location_id <- ids[of_locations[match(x[[table]]$location_id, ids)]]
    }
  }
  x
}
