# Checks that the modules of each crate, and the C files, can be read in an order in which each needs only earlier ones:
#
#   Rscript tools/imports.R          fails if modules import each other, or against the layers of their crate, or know
#                                    R's memory outside of the crate `runtime`
#
# In each folder the modules are compared, a subfolder as one module, and the folder's own code (`mod.rs`, or the `.rs`
# file of the same name) as another one. Re-exports are followed to the module that defines the item, so that
# `pub use read::Reader;` in `mod.rs` does not make `mod.rs` depend on `read`. Methods are not seen: parts of a type may
# be in several files. Tests may import anything.

# The modules of crates with many, lowest first. Each may import those before it.
layers <- list(
  core = c(
    "message", "error", "limits", "text", "collections", "io", "retry", # what all others use
    "model", "attribute_value", "rprof_header", "protobuf", "json", # a profile, and encodings
    "schema", "tables", "analysis",
    "formats", "joint", "page"
  ),
  reader = c("memory", "running_r", "stack", "recorded", "process", "record", "heap", "live")
)

crates <- c(
  core = "core/src", runtime = "runtime/src", unwind = "unwind/src", sampler = "sampler/src", binding = "src",
  reader = "reader/src", agent = "agent/src", allocations = "allocations/src"
)

# ---- Reading Rust --------------------------------------------------------------------

matches <- function(pattern, text) regmatches(text, gregexpr(pattern, text, perl = TRUE, useBytes = TRUE))[[1]]
replace <- function(pattern, by, text) gsub(pattern, by, text, perl = TRUE, useBytes = TRUE)
test_attribute <- "#\\[cfg\\([^\n]*\\btest\\b[^\n]*\\)\\]\\s*"
# At the start of a line: `extendr_module!` has modules of the same form inside of braces.
mod_pattern <- "(?m)^(?:pub(?:\\([^)]*\\))?\\s+)?mod \\w+;"
use_pattern <- "(?:pub(?:\\([^)]*\\))?\\s+)?\\buse\\s+[^;]+;"

# The code of a file without comments, texts, modules of tests, and modules in braces that contain tests.
code_of <- function(file) {
  text <- paste(readLines(file, encoding = "UTF-8", warn = FALSE), collapse = "\n")
  text <- replace("//[^\n]*|\"(?:\\\\.|[^\"\\\\])*\"|'(?:\\\\.|[^'\\\\])'", " ", text)
  text <- replace(paste0(test_attribute, "(?:pub(?:\\([^)]*\\))? )?mod \\w+;"), " ", text)
  replace(paste0("(?s)", test_attribute, "mod \\w+ \\{.*"), " ", text)
}

# The files of modules that an attribute names, such as `#[cfg_attr(..., path = "linux/mod.rs")]`. The first one counts, and
# none of those for systems on which something is refused: `#[cfg_attr(not(...), path = "unsupported.rs")]`.
named_files <- function(file) {
  text <- paste(readLines(file, encoding = "UTF-8", warn = FALSE), collapse = "\n")
  text <- replace("#\\[cfg_attr\\(\\s*not\\((?:[^\\]\"]|\"[^\"]*\")*\\)\\]\\s*", "", text)
  found <- matches("(?:#\\[cfg_attr\\((?:[^\\]\"]|\"[^\"]*\")*\\)\\]\\s*)+(?:pub )?mod \\w+;", text)
  paths <- sub("(?s)^.*?path = \"([^\"]+)\".*", "\\1", found, perl = TRUE)
  stats::setNames(paths, sub("(?s).*mod (\\w+);", "\\1", found, perl = TRUE))
}

# The paths of a `use`, as vectors of words, named as in the file: `a::{b, c::d as e}` is b = `a b` and e = `a c d`.
# The text has no blanks, and `=` in the place of `as`.
expand_use <- function(text) {
  open <- regexpr("{", text, fixed = TRUE)
  if (open < 0) {
    parts <- strsplit(text, "=", fixed = TRUE)[[1]]
    path <- strsplit(parts[[1]], "::", fixed = TRUE)[[1]]
    if (length(path) > 1 && path[[length(path)]] == "self") {
      path <- path[-length(path)]
    }
    return(stats::setNames(list(path), if (length(parts) > 1) parts[[2]] else path[[length(path)]]))
  }
  inner <- strsplit(substr(text, open + 1, nchar(text) - 1), "")[[1]]
  # Commas inside of inner braces do not separate.
  depth <- cumsum((inner == "{") - (inner == "}"))
  inner[inner == "," & depth == 0] <- " "
  parts <- strsplit(paste(inner, collapse = ""), " ", fixed = TRUE)[[1]]
  do.call(c, lapply(paste0(substr(text, 1, open - 1), parts[parts != ""]), expand_use))
}

join <- function(...) paste(setdiff(c(...), ""), collapse = "::")

# The modules of a crate by path; "" is lib.rs. Each has its file, code, uses, whether these are public, and submodules.
read_crate <- function(folder) {
  modules <- list()
  read_module <- function(path, file, folder) {
    code <- code_of(file)
    declared <- unique(sub("(?s).*mod (\\w+);", "\\1", matches(mod_pattern, code), perl = TRUE))
    found <- matches(use_pattern, code)
    texts <- sub("(?s)^.*?\\buse\\s+(.*);$", "\\1", found, perl = TRUE)
    uses <- lapply(gsub("\\s", "", gsub("\\s+as\\s+", "=", texts)), expand_use)
    modules[[length(modules) + 1]] <<- list(
      path = path, file = file, code = replace(paste0(use_pattern, "|", mod_pattern), " ", code),
      uses = do.call(c, uses), public = rep(grepl("^pub", found), lengths(uses)), children = declared
    )
    named <- named_files(file)
    for (child in declared) {
      # A path in an attribute starts in the folder of the file with the attribute.
      files <- c(
        file.path(dirname(file), named[names(named) == child]),
        file.path(folder, c(paste0(child, ".rs"), file.path(child, "mod.rs")))
      )
      own <- files[file.exists(files)][[1]]
      below <- if (basename(own) == "mod.rs") dirname(own) else sub("[.]rs$", "", own)
      read_module(join(path, child), own, below)
    }
  }
  read_module("", file.path(folder, "lib.rs"), folder)
  stats::setNames(modules, vapply(modules, `[[`, "", "path"))
}

# ---- Imports --------------------------------------------------------------------------

# The module that defines what a path names; NULL if it names a module, or something of another crate. `from` is the
# module in which the path stands.
target_of <- function(modules, from, path, depth = 0) {
  at <- from
  for (i in seq_along(path)) {
    name <- path[[i]]
    module <- modules[[match(at, names(modules))]]
    if (name == "crate") {
      at <- ""
    } else if (name == "super") {
      at <- sub("(^|::)[^:]+$", "", at)
    } else if (name %in% module$children) {
      at <- join(at, name)
    } else if (name != "self") {
      through <- match(name, names(module$uses))
      if (!is.na(through) && depth < 10) {
        return(target_of(modules, at, c(module$uses[[through]], path[-seq_len(i)]), depth + 1))
      }
      # The first word may be the name of another crate, or of an item in this file.
      return(if (i > 1) at)
    }
  }
  NULL
}

# All imports of a crate, as pairs of modules.
imports_of <- function(modules) {
  edges <- lapply(modules, function(module) {
    words <- unique(matches("\\w+", module$code))
    # A re-export is an import only if this file uses the item as well.
    used <- !module$public | names(module$uses) %in% words
    starts <- c("crate", "self", "super", module$children, names(module$uses))
    paths <- strsplit(unique(matches("(?<![\\w:])(?:\\w+::)+\\w+", module$code)), "::", fixed = TRUE)
    paths <- paths[vapply(paths, `[[`, "", 1) %in% starts]
    to <- lapply(c(module$uses[used], paths), target_of, modules = modules, from = module$path)
    to <- setdiff(unlist(to), module$path)
    data.frame(from = rep(module$path, length(to)), to = as.character(to))
  })
  unique(do.call(rbind, edges))
}

# ---- Checks ---------------------------------------------------------------------------

format_edges <- function(edges) paste(edges$from, "imports", edges$to, recycle0 = TRUE)

# The pairs that are part of a circle: the target reaches the start again.
in_circle <- function(from, to) {
  all <- unique(c(from, to))
  reach <- matrix(FALSE, length(all), length(all))
  reach[cbind(match(from, all), match(to, all))] <- TRUE
  for (k in seq_along(all)) {
    reach <- reach | outer(reach[, k], reach[k, ])
  }
  reach[cbind(match(to, all), match(from, all))]
}

# Lines for the imports that are part of a circle, folder by folder.
circles_in <- function(modules, edges) {
  folders <- names(modules)[vapply(modules, function(module) length(module$children) > 0, NA)]
  unlist(lapply(folders, function(folder) {
    prefix <- if (folder == "") "" else paste0(folder, "::")
    place <- function(path) {
      below <- sub("::.*", "", substring(path, nchar(prefix) + 1))
      ifelse(path == folder, "(its own code)", ifelse(startsWith(path, prefix), below, NA))
    }
    pairs <- data.frame(from = place(edges$from), to = place(edges$to))
    own <- which(!duplicated(pairs) & pairs$from != pairs$to)
    if (length(own) > 0) {
      format_edges(edges[own[in_circle(pairs$from[own], pairs$to[own])], ])
    }
  }))
}

# Lines for the imports against the order of layers.
against_layers <- function(edges, layers) {
  top <- function(path) sub("::.*", "", path)
  from <- match(top(edges$from), layers)
  to <- match(top(edges$to), layers)
  unknown <- setdiff(unique(top(c(edges$from, edges$to))), c(layers, ""))
  c(
    if (length(unknown) > 0) paste("not in the list of layers:", unknown),
    format_edges(edges[which(from < to), ])
  )
}

# What only the crate `runtime` knows of R, as patterns of code and of text.
of_runtime <- c(
  "a version of R" = "R_[0-9]_[0-9]", "the number of a type" = "\\bType\\([0-9]", "a layout of records" = "\\bBUFFER\\b"
)
# Other parts of the reader have the offsets of core files and libraries.
offset_in_r <- "\\b(?:half_at|at|word)\\((?:&?[\\w.]+,\\s*)?[1-9][0-9]*\\)"
reads_r <- "reader/src/(running_r|stack|heap)/"
names_of_r <- "\"(?:R|Rf)_[A-Za-z]+\""

# Lines for modules of these crates that contain it.
knows_r <- function(crate, modules) {
  if (!crate %in% c("unwind", "sampler", "reader", "agent", "allocations")) {
    return(NULL)
  }
  unlist(lapply(modules, function(module) {
    lines <- readLines(module$file, encoding = "UTF-8", warn = FALSE)
    lines <- lines[seq_len(match("mod tests {", trimws(lines), nomatch = length(lines)))]
    found <- names(of_runtime)[vapply(of_runtime, grepl, NA, module$code, perl = TRUE)]
    if (grepl(reads_r, module$file) && grepl(offset_in_r, module$code, perl = TRUE)) found <- c(found, "an offset in R")
    if (any(grepl(names_of_r, sub("//.*", "", lines), perl = TRUE))) found <- c(found, "the name of a variable of R")
    if (length(found) > 0) paste0(module$file, " has ", found)
  }))
}

# The same for the headers that C files include: a file with a header of the same name is one module.
includes <- function() {
  files <- list.files("src", "[.][ch]$", full.names = TRUE)
  edges <- lapply(files, function(file) {
    found <- grep("^#include \"", readLines(file), value = TRUE)
    data.frame(
      from = rep(sub("[.][ch]$", "", basename(file)), length(found)),
      to = sub("^#include \"(.*)[.]h\".*", "\\1", found)
    )
  })
  edges <- unique(do.call(rbind, edges))
  edges[edges$from != edges$to, ]
}

failed <- FALSE
report <- function(title, lines) {
  if (length(lines) > 0) {
    failed <<- TRUE
    cat(paste0(title, ":"), paste0("  ", lines), sep = "\n")
  }
}
count <- 0
for (crate in names(crates)) {
  modules <- read_crate(file.path("src/rust", crates[[crate]]))
  edges <- imports_of(modules)
  count <- count + length(modules)
  report(paste("Modules of the crate", crate, "import each other"), circles_in(modules, edges))
  report("Known outside of the crate `runtime` (tools/imports.R)", knows_r(crate, modules))
  if (!is.null(layers[[crate]])) {
    report(paste("Imports against the layers of", crate, "(tools/imports.R)"), against_layers(edges, layers[[crate]]))
  }
}
edges <- includes()
circle <- in_circle(edges$from, edges$to)
report("C files include each other", format_edges(edges[circle, ]))
cat(count, "modules of Rust,", length(unique(unlist(edges))), "of C\n")
quit("no", as.integer(failed))
