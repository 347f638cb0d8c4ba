# The names of functions whose calls do not tell them apart, from the text of their source files: R's profiler only
# records what calls say. Functions of other processes have such names already, see `?profile_process`.
#
# The line where a function runs is within its definition, and the code around the definition says what it is: a method
# of a class, an active binding, a variable, or nothing, so that the place of the definition is its name.

# The names under which functions call those that they were given as an argument, as in `reader/src/stack/names.rs`.
common_names <- c("<Anonymous>", "FUN", "fun", "fn", "func", ".f", ".fn", ".fun")

# Gives functions the names of their definition. The frames of each sample have to be stored from the innermost one on.
with_defined_names <- function(x) {
  place <- place_in_source(x)
  files <- unique(place$file[!is.na(place$file)])
  name <- definition <- rep(NA_character_, nrow(x$locations))
  for (file in files) {
    rows <- which(place$file %in% file)
    definitions <- definitions_in(place$text[[rows[[1]]]], place$line[rows])
    found <- definition_at(definitions, place$line[rows], place$called[rows])
    name[rows] <- defined_name(definitions[found, ], place$called[rows], file)
    # A function that is called by another name may be any around it, unless its package is known to be another one.
    unclear <- is.na(found) & !place$is_of_package[rows]
    found[unclear] <- definition_at(definitions, place$line[rows][unclear], rep("FUN", sum(unclear)))
    definition[rows] <- ifelse(is.na(found), NA, paste(file, found))
  }
  name[has_own_caller(x, definition)] <- NA
  of_s7 <- name_of_s7_method(x)
  name[is.na(name)] <- of_s7[is.na(name)]
  with_names_of_locations(x, name)
}

# For each location: what its call says and, if it is R code in a file whose text is known, the file, line and text. Not
# for files in which all names are clear.
place_in_source <- function(x) {
  row <- match(x$locations$function_id, x$functions$function_id)
  called <- x$functions$name[row]
  file <- x$functions$filename[row]
  known <- x$.source_text %||% no_text
  is_file <- !is.na(known$text) & !known$changed %in% TRUE & !startsWith(known$filename, "<")
  known <- slice_rows(known, which(is_file))
  text <- known$text[match(file, known$filename)]
  is_of_process <- x$functions[[".package_from"]][row] %in% "process"
  is_placed <- !is.na(text) & x$locations$line %in% seq_len(1e6) & !(is_of_process %in% TRUE) & !is_native_location(x)
  is_unclear <- called %in% common_names | grepl("$", called, fixed = TRUE)
  has_classes <- grepl("\\b(ggproto|setRefClass)\\(", known$text, perl = TRUE)
  wanted <- c(unique(file[is_placed & is_unclear]), known$filename[has_classes])
  file[!is_placed | !file %in% wanted] <- NA
  # Functions of packages without source references have the lines of the user's code that they evaluate.
  is_of_package <- !is.na(x$functions[[".package"]][row]) & !x$functions[[".package_from"]][row] %in% "file"
  list(called = called, file = file, line = x$locations$line, text = text, is_of_package = is_of_package)
}

# ---- What the text defines ----------------------------------------------------------

# The functions that code defines around these lines: first and last line, name and, for methods, class. No rows if the
# code cannot be parsed.
definitions_in <- function(text, lines) {
  found <- tryCatch(
    {
      code <- parse(text = text, keep.source = TRUE, encoding = "UTF-8")
      definitions_in_parts(as.list(code), attr(code, "srcref"), sort(unique(lines)))
    },
    # The code may be of another version of R, or nested too deeply.
    error = function(e) NULL
  )
  column <- function(name, type) vapply(found, `[[`, type, name)
  data.frame(
    first = column("first", 0L), last = column("last", 0L), name = column("name", ""), class = column("class", "")
  )
}

# The same for statements with their source references, of which most do not contain any of the lines.
definitions_in_parts <- function(parts, srcrefs, lines) {
  if (length(srcrefs) == length(parts)) {
    ranges <- vapply(srcrefs, function(srcref) as.integer(srcref)[c(1, 3)], integer(2))
    has_lines <- findInterval(ranges[2, ], lines) > findInterval(ranges[1, ] - 1L, lines)
    parts <- parts[has_lines]
  }
  do.call(c, lapply(parts, definitions_of, no_role, lines))
}

# What is known of the value of code if it is a function: its name and, if it is a method, its class. `lists_members`:
# if it is a list of functions, these are methods of the class.
role <- function(name = NULL, class = NULL, lists_members = FALSE) {
  list(name = name %||% NA_character_, class = class %||% NA_character_, lists_members = lists_members)
}

no_role <- role()

definitions_of <- function(code, role, lines) {
  if (!is.call(code)) {
    return(NULL)
  }
  parts <- as.list(code)
  if (is_call_of(code, "{")) {
    return(definitions_in_parts(parts, attr(code, "srcref"), lines))
  }
  if (is_call_of(code, "function")) {
    range <- as.integer(parts[[4]])[c(1, 3)]
    own <- list(first = range[[1]], last = range[[2]], name = role$name, class = role$class)
    return(c(list(own), definitions_in_parts(c(as.list(parts[[2]]), parts[3]), NULL, lines)))
  }
  roles <- roles_of_parts(parts, role)
  do.call(c, lapply(seq_along(parts), function(i) definitions_of(parts[[i]], roles[[i]], lines)))
}

# The roles of the parts of a call, whose value has this role.
roles_of_parts <- function(parts, role) {
  roles <- rep(list(no_role), length(parts))
  tag <- names(parts) %||% rep("", length(parts))
  head <- parts[[1]]
  object <- NULL
  if (is_call_of(head, c("::", ":::", "$")) && length(head) == 3) {
    if (is_call_of(head, "$")) object <- text_in(head[[2]])
    head <- head[[3]]
  }
  called <- if (is.symbol(head)) paste0(if (!is.null(object)) "$", as.character(head)) else ""
  first <- if (length(parts) > 1) text_in(parts[[2]], is.character)
  with_tag <- which(tag != "")
  switch(called,
    "<-" = , "<<-" = , "=" = if (length(parts) == 3) roles[[3]] <- role(name_of_target(parts[[2]])),
    # Returns the same function.
    "(" = , cmpfun = if (length(parts) > 1) roles[[2]] <- role,
    assign = , makeActiveBinding = roles[-(1:2)] <- list(role(first)),
    R6Class = , setRefClass = {
      class <- role(class = first %||% role$name, lists_members = TRUE)
      roles[tag %in% c("public", "private", "active", "methods")] <- list(class)
    },
    ggproto = roles[with_tag] <- lapply(tag[with_tag], role, first %||% role$name),
    "$methods" = {
      roles[-1] <- list(role(class = object, lists_members = TRUE))
      roles[with_tag] <- lapply(tag[with_tag], role, object)
    },
    "$set" = if (length(parts) > 3) roles[[4]] <- role(text_in(parts[[3]], is.character), object),
    list = if (role$lists_members) roles[with_tag] <- lapply(tag[with_tag], role, role$class)
  )
  roles
}

# What a value is assigned to: a variable, an element such as `x$f`, or for S7 a method, as in `method(area, Circle)`.
name_of_target <- function(code) {
  if (is_call_of(code, "$") && length(code) == 3) {
    parts <- c(text_in(code[[2]]), text_in(code[[3]]))
    if (length(parts) == 2) paste(parts, collapse = "$")
  } else if (rlang::is_call(code, "method", n = 2)) {
    classes <- if (is_call_of(code[[3]], "list")) as.list(code[[3]])[-1] else code[3]
    paste0(text_in(code[[2]]), "(", toString(vapply(as.list(classes), rlang::as_label, "")), ")")
  } else {
    text_in(code)
  }
}

# The text of a symbol or a string, `NULL` if it is not one of the wanted kind.
text_in <- function(code, is_wanted = function(code) is.symbol(code) || is.character(code)) {
  if (is_wanted(code) && length(code) == 1) as.character(code)
}

# ---- Which of them runs -------------------------------------------------------------

# The row of the definition of the function that runs at each line: the innermost one around it that the call may mean.
# `NA` if there is none, or if several in the same lines have different names.
definition_at <- function(definitions, line, called) {
  vapply(seq_along(line), function(i) {
    around <- which(definitions$first <= line[[i]] & definitions$last >= line[[i]])
    around <- around[is_called(definitions[around, ], called[[i]])]
    size <- definitions$last[around] - definitions$first[around]
    around <- around[size == min(size, Inf)]
    # What is called by a common name, in lines that define several functions, is rarely the one with a name.
    if (anyNA(definitions$name[around])) around <- around[is.na(definitions$name[around])]
    names <- unique(definitions[around, c("name", "class")])
    if (nrow(names) == 1) around[[1]] else NA_integer_
  }, 0L)
}

# Whether a call may be of each of the definitions. Methods of ggproto are called as `f` or by their name, other methods
# as members of any object.
is_called <- function(definitions, called) {
  is_method <- !is.na(definitions$class)
  name <- ifelse(is_method, sub("^[^$]+[$]", "", called), called)
  called %in% common_names | definitions$name %in% name | is_method & called == "f"
}

# The names of these definitions, `NA` where what the call says remains.
defined_name <- function(definitions, called, file) {
  name <- ifelse(is.na(definitions$class), definitions$name, paste0(definitions$class, "$", definitions$name))
  place <- paste0(called, " (", sub(".*[/\\]", "", file), ":", definitions$first, ")")
  name <- ifelse(is.na(name), place, name)
  ifelse(is.na(definitions$first) | name == called, NA, name)
}

# Which locations have, in some sample, a caller in the same definition. Then their line may be in an argument of the
# call: R evaluates arguments inside the function, but their code belongs to the caller.
has_own_caller <- function(x, definition) {
  rows <- unclass(x$sample_locations)
  at <- match(rows$location_id, x$locations$location_id)
  number <- match(definition, unique(definition[!is.na(definition)]))
  is_defined <- which(!is.na(number[at]))
  # A number for each pair.
  pair <- as.numeric(rows$sample_id[is_defined]) * (max(number, 0, na.rm = TRUE) + 1) + number[at[is_defined]]
  inner <- duplicated(pair, fromLast = TRUE)
  seq_along(definition) %in% at[is_defined[inner]]
}

# `print(ggplot2::ggplot)` for methods of S3 generics for classes of S7, such as `print.ggplot2::ggplot`.
name_of_s7_method <- function(x) {
  row <- match(x$locations$function_id, x$functions$function_id)
  called <- x$functions$name[row]
  pattern <- "^(.+)[.]([[:alpha:]][[:alnum:].]*)::([^:].*)$"
  is_method <- grepl(pattern, called) & !x$functions[[".package_from"]][row] %in% "name" & !is_native_location(x)
  ifelse(is_method, sub(pattern, "\\1(\\2::\\3)", called), NA)
}

# Gives the functions of these locations other names, `NA` for those that remain.
with_names_of_locations <- function(x, name) {
  changed <- which(!is.na(name))
  if (length(changed) == 0) {
    return(x)
  }
  old <- x$locations$function_id[changed]
  pair <- paste(old, name[changed])
  new <- which(!duplicated(pair))
  functions <- slice_rows(x$functions, match(old[new], x$functions$function_id))
  functions$name <- name[changed][new]
  functions$function_id <- max(x$functions$function_id) + seq_along(new)
  x$locations$function_id[changed] <- functions$function_id[match(pair, pair[new])]
  is_left <- x$functions$function_id %in% x$locations$function_id | !x$functions$function_id %in% old
  x$functions <- vctrs::vec_rbind(slice_rows(x$functions, which(is_left)), functions)
  x
}
