# Decodes the data of pages and computes figures from them, without code of the encoder.

# The HTML of a page as one string.
page_html <- function(page) {
  html <- if (inherits(page, "profile_page")) rawToChar(page$html) else rawToChar(file_bytes(page))
  Encoding(html) <- "UTF-8"
  html
}

page_data <- function(page) {
  testthat::skip_if_not_installed("jsonlite")
  start <- "<script id=\"data\" type=\"application/octet-stream\">"
  base64 <- sub("</script>.*", "", sub(paste0(".*", start), "", page_html(page)))
  json <- memDecompress(jsonlite::base64_dec(base64), "gzip", asChar = TRUE)
  Encoding(json) <- "UTF-8"
  data <- jsonlite::fromJSON(json, simplifyDataFrame = FALSE, simplifyMatrix = FALSE)
  data$json <- json
  data
}

# Writes a page and returns its data.
page_of <- function(x, ...) {
  path <- withr::local_tempfile(fileext = ".html")
  testthat::expect_identical(testthat::expect_invisible(write_profile(x, path, ...)), x)
  page_data(path)
}

# The nodes, starting with the root: depth, row of the parent, row of the frame (NA for the root), and the frame's name,
# file and line.
page_nodes <- function(data) {
  depth <- cumsum(data$nodes$depth)
  open <- integer()
  parent <- integer(length(depth))
  for (row in seq_along(depth)) {
    parent[[row]] <- if (row == 1) NA else open[[depth[[row]]]]
    open[[depth[[row]] + 1]] <- row
  }
  # An empty array is read as a list.
  columns <- lapply(c(data$frames, data$functions["name"], data$functions["file"]), as.numeric)
  frame <- data$nodes$frame + 1
  frame[frame == 0] <- NA
  fun <- columns$`function`[frame] + 1
  fun[!is.na(fun) & fun == 0] <- NA
  data.frame(
    depth = depth, parent = parent, frame = frame,
    name = data$strings[columns$name[fun] + 1],
    file = data$strings[columns$file[fun] + 1],
    line = columns$line[frame]
  )
}

# The sum of each node by source and type; all sources by default. What a garbage collection reports as allocated belongs
# to its caller.
page_self <- function(data, type, sources = seq_along(data$sources)) {
  self <- numeric(length(data$nodes$depth))
  for (part in data$values) {
    if (part$type + 1 == type && (part$source + 1) %in% sources) {
      at <- cumsum(part$node) + 1
      self[at] <- self[at] + part$value
    }
  }
  belonging(self, data, type)
}

belonging <- function(self, data, type) {
  if (!data$types[[type]]$allocated) {
    return(self)
  }
  nodes <- page_nodes(data)
  owner <- seq_along(self)
  for (row in seq_along(owner)[-1]) {
    parent <- nodes$parent[[row]]
    within <- owner[[parent]] != parent
    if (within || nodes$name[[row]] %in% "<GC>" && nodes$depth[[row]] > 1) owner[[row]] <- owner[[parent]]
  }
  as.vector(tapply(self, factor(owner, seq_along(self)), sum, default = 0))
}

# Self and total by key; each node has a key or NA. A key that occurs several times on a path is counted once, and a
# value belongs to the innermost node with a key.
page_sums <- function(nodes, key, self) {
  below <- self
  for (row in rev(seq_along(below))[-length(below)]) {
    below[[nodes$parent[[row]]]] <- below[[nodes$parent[[row]]]] + below[[row]]
  }
  open <- character()
  innermost <- rep(NA_character_, length(key))
  first <- logical(length(key))
  for (row in seq_along(key)[-1]) {
    outer <- open[seq_len(nodes$depth[[row]] - 1)]
    first[[row]] <- !is.na(key[[row]]) && !key[[row]] %in% outer
    open <- c(outer, key[[row]])
    innermost[[row]] <- if (is.na(key[[row]])) innermost[[nodes$parent[[row]]]] else key[[row]]
  }
  keys <- sort(unique(as.character(key[!is.na(key)])))
  add <- function(value, by) unname(vapply(split(value, factor(by, keys)), sum, 0))
  data.frame(key = keys, self = add(self, innermost), total = add(below * first, key))
}

# By function, where `<unknown>` has no name, and by line.
page_figures <- function(data, type, sources = seq_along(data$sources), self = page_self(data, type, sources)) {
  nodes <- page_nodes(data)
  name <- ifelse(is.na(nodes$name), "<unknown>", nodes$name)
  name[[1]] <- NA
  line <- ifelse(nodes$line > 0 & nodes$file != "", paste0(nodes$file, ":", nodes$line), NA)
  list(by_function = page_sums(nodes, name, self), by_line = page_sums(nodes, line, self), left_out = self[[1]])
}

# The samples of a source in their order: the node and the values of each.
page_samples <- function(data, source = 1) {
  of <- Filter(function(part) part$source + 1 == source, data$order)
  if (length(of) == 0) {
    return(NULL)
  }
  node <- rep(cumsum(of[[1]]$node) + 1, of[[1]]$run)
  values <- lapply(seq_along(data$types), function(type) {
    part <- Filter(function(part) part$type + 1 == type, of[[1]]$values)
    if (length(part) == 0) {
      return(numeric(length(node)))
    }
    values <- rep(part[[1]]$constant, length(node))
    values[cumsum(part[[1]]$sample) + 1] <- part[[1]]$value
    as.numeric(values)
  })
  list(node = node, values = values)
}

# Expects the same rows as in a table of summary(), except rows without values.
expect_figures <- function(ours, keys, theirs, info) {
  theirs <- data.frame(key = as.character(keys), self = theirs$self, total = theirs$total)
  theirs <- theirs[theirs$total != 0 | theirs$self != 0, ]
  ours <- ours[ours$total != 0 | ours$self != 0, ]
  theirs <- theirs[order(theirs$key, method = "radix"), ]
  ours <- ours[order(ours$key, method = "radix"), ]
  rownames(ours) <- rownames(theirs) <- NULL
  testthat::expect_equal(ours, theirs, info = info)
}

# Evaluates code as in a document with this output.
with_output <- function(format, code) {
  old <- knitr::opts_knit$get("rmarkdown.pandoc.to")
  knitr::opts_knit$set(rmarkdown.pandoc.to = format)
  on.exit(knitr::opts_knit$set(rmarkdown.pandoc.to = old))
  code
}

# testthat 3.1.6 does not have this function.
expect_no_match <- function(text, pattern, ...) {
  testthat::expect_false(any(grepl(pattern, text, ...)), label = paste0("the text contains `", pattern, "`"))
}
