# Runs the R code of README.md and compares or updates its output. The blocks run in order, in one session and
# an empty directory, with the installed version of this package.
#
#   Rscript tools/readme.R            updates the output below the code
#   Rscript tools/readme.R --check    fails if the output differs
#
# A comment before a block sets options:
#
#   <!-- varies -->              the output differs in each run and is not compared
#   <!-- opens -->               the result opens in a browser, and the output is omitted
#   <!-- needs DBI, RSQLite -->  the block is not run if one of these packages is missing
#
# A block that this system does not support is reported.

check <- "--check" %in% commandArgs(TRUE)
path <- normalizePath("README.md")
lines <- readLines(path, encoding = "UTF-8")

library(profile)
options(width = 80, warn = 2)
installed <- system.file(package = "profile")
files_of_package <- list.files(installed, recursive = TRUE, all.files = TRUE)
folder <- tempfile("readme-")
dir.create(folder)
setwd(folder)

# The variables of README.md, separate from the variables of this script.
session <- new.env(parent = globalenv())

is_output <- function(lines) grepl("^#>", lines)

# Returns the code of a block, with the output of each expression below it.
run <- function(code) {
  expressions <- parse(text = code, keep.source = TRUE)
  ends <- vapply(attr(expressions, "srcref"), function(place) place[[3]], 0L)
  result <- character()
  for (i in seq_along(expressions)) {
    result <- c(result, code[seq(if (i == 1) 1 else ends[i - 1] + 1, ends[i])])
    output <- capture.output({
      value <- withVisible(eval(expressions[[i]], session))
      if (value$visible) print(value$value)
    })
    if (length(output) > 0) {
      result <- c(result, sub(" +$", "", paste("#>", output)))
    }
  }
  result
}

begins <- which(lines == "```r")
ends <- vapply(begins, function(begin) begin + which(lines[-seq_len(begin)] == "```")[[1]], 0L)
result <- lines
differ <- character()
# Blocks run in order, but are replaced from the last to the first, so that line numbers stay valid.
blocks <- Map(seq, begins + 1, ends - 1)
made <- lapply(seq_along(blocks), function(i) {
  block <- lines[blocks[[i]]]
  remark <- lines[[begins[[i]] - 1]]
  name <- paste0("README.md:", begins[[i]])
  needs <- regmatches(remark, regexec("^<!-- needs (.*) -->$", remark))[[1]][2]
  missing <- Filter(function(package) !nzchar(system.file(package = package)), strsplit(needs, ", ")[[1]])
  missing <- missing[!is.na(missing)]
  if (length(missing) > 0) {
    cat(name, ": not run, without ", toString(missing), "\n", sep = "")
    return(block)
  }
  new <- tryCatch(
    run(block[!is_output(block)]),
    profile_error_unsupported = function(error) {
      cat(name, ": not run to its end: ", conditionMessage(error), "\n", sep = "")
      block
    },
    error = function(error) {
      stop(name, ": ", conditionMessage(error), call. = FALSE)
    }
  )
  if (remark == "<!-- opens -->") {
    new <- new[!is_output(new)]
  }
  same <- if (remark == "<!-- varies -->") {
    any(is_output(new)) == any(is_output(block))
  } else {
    identical(new, block)
  }
  if (!same) {
    differ <<- c(differ, paste0(name, " prints:"), new)
  }
  new
})

changed <- setdiff(list.files(installed, recursive = TRUE, all.files = TRUE), files_of_package)
if (length(changed) > 0) {
  stop("README.md writes into the installed package: ", toString(changed))
}

if (!grepl(profile:::live_platforms(), paste(lines, collapse = " "), fixed = TRUE)) {
  differ <- c(differ, paste0("README.md does not name the platforms as the core does: ", profile:::live_platforms(), "."))
}

if (check) {
  writeLines(differ)
  cat(length(blocks), "blocks of R code\n")
  quit("no", as.integer(length(differ) > 0))
}
for (i in rev(seq_along(blocks))) {
  result <- append(result[-blocks[[i]]], made[[i]], after = begins[[i]])
}
writeLines(result, path, useBytes = TRUE)
