# Labels of the chunks of knitr's documents, by its hooks. Tests and targets have theirs without a call: see
# R/test-labels.R, and src/rust/core/src/model/titled.rs.

# The labels of units of work, by which describe_profile() adds up a profile.
unit_keys <- c(
  "shiny.reactive", "http.route", "testthat.file", "testthat.test", "knitr.chunk", "targets.target", "task", "span.name"
)

#' Label chunks of documents, tests, and targets
#'
#' @description
#' Samples of units of work have their names as labels. [describe_profile()] shows which take the most time,
#' `summary(x, by = "knitr.chunk")` lists all of them, and `filter_profile(x, labels = c(knitr.chunk = "fit"))` selects
#' one.
#'
#' - `knitr.chunk` is the name of a chunk of R Markdown documents and other documents of knitr, once
#'   `label_work("knitr")` has been called, before the work to record;
#' - `testthat.file` and `testthat.test` are tests of testthat, and `targets.target` is a target of a pipeline: they need
#'   no call.
#'
#' In a shell, `profile record report.Rmd` needs no call, see `vignette("processes", package = "profile")`. It also records
#' the lines of chunks and of their expressions.
#'
#' @details
#' Labels of chunks are set as by [with_labels()]: a session has at most 1,000 different sets. Longer texts than a label can have end in `...`.
#'
#' @section Documents:
#' `label_work("knitr")` sets the hook `engine` of [knitr::opts_hooks], which knitr calls before each chunk. A hook that
#' was set before is called as before; one that is set later replaces it. For the evaluation of the chunk, this hook
#' wraps the hook `evaluate` of [knitr::knit_hooks]. The output of a document is the same as without labels. Call
#' `label_work("knitr")` in the session that renders a document, or in the first chunk of a document, for the chunks
#' that follow.
#'
#' Functions have the label of the chunk that calls them, chunks of child documents their own. The code of a chunk that
#' is not evaluated, or is loaded from the cache, takes no time. Inline code has no label, nor has what knitr does
#' between chunks. Other engines than R are left alone.
#'
#' @section Tests:
#' The results of [record_profile()], [profile_process()] and `profile record` have labels of tests by themselves, also of those that run in
#' parallel processes: `testthat.file` is the name of each file of tests, such as `test-a.R`, and `testthat.test` the
#' description of each test, with those of [testthat::describe()] around it. `summary(x, by = "testthat.test")` lists
#' them.
#'
#' They come from lines: the call of [testthat::test_that()] that runs has a line of a file, where its description is
#' found when the recording ends. Nothing of testthat is changed, and any reporter can be used. A description that is no
#' constant is its code, such as `paste("case", i)`. If the file is not found, tests have the name of the file and the
#' line, such as `test-a.R:12`: files are looked for in the working directory, in its folders `tests/testthat` and
#' `testthat`, in the folder that the recorded code names, as in `test_dir("unit")`, and in that of the process. Tests with the same description in several
#' files are added up; `filter_profile(x, labels = c(testthat.file = "test-a.R"))` selects one of the files. Code of a
#' file outside of tests has only the label of the file, and code of helpers has none.
#'
#' @section Targets:
#' In processes that are recorded with the package's sampler or from outside, the frame of targets' function `target_run()`
#' has the name of the target, which is the label `targets.target`: by [record_profile()], also with `children = TRUE` for
#' the process in which `targets::tar_make()` runs and for workers, such as those of crew, and by [profile_process()].
#' Nothing of targets is changed. This requires `r live_platforms()`. Branches of a pattern have names of their own. Loading
#' what a target needs and storing its value belong to it. targets 1.11 and 1.12 have this function.
#'
#' @section Tasks:
#' Tasks of future and mirai have no label by themselves, since nothing on the stack of the process that runs a task
#' names it; the span of every task of mirai has the name `daemon eval`. Label the expression of the task, which is sent
#' to that process with its labels:
#' ```
#' future::future(profile::with_labels(c(task = "fit"), fit(data)), label = "fit")
#' mirai::mirai(profile::with_labels(c(task = "fit"), fit(data)), fit = fit, data = data)
#' mirai::mirai_map(parts, function(part) profile::with_labels(c(task = part$name), work(part)))
#' ```
#'
#' @param package `"knitr"`.
#'
#' @return A function without arguments, invisibly, that ends the labelling. Calling `label_work()` again changes
#'   nothing.
#' @section Errors:
#' `profile_error_unsupported` if the package is not installed, or is a version that cannot be labelled;
#' `profile_error_argument` for another package.
#' @seealso [with_labels()] for other code
#' @export
#' @examplesIf rlang::is_installed("knitr")
#' end <- label_work("knitr")
#' document <- c(
#'   "```{r small}", "x <- lapply(1:10, function(i) sort(runif(1e5)))", "```",
#'   "```{r large}", "x <- lapply(1:30, function(i) sort(runif(1e5)))", "```"
#' )
#' x <- record_profile(text <- knitr::knit(text = document, quiet = TRUE))
#' try(summary(x, by = "knitr.chunk"))
#' end()
label_work <- function(package) {
  call <- rlang::current_env()
  if (missing(package)) {
    abort_missing("package", call, i = "For example `label_work(\"knitr\")`.")
  }
  check_choice(package, "knitr", "package", call)
  invisible(label_knitr(call))
}

label_knitr <- function(call) {
  check_package("knitr", "Labels of chunks need", call)
  # knitr renders a document only if all of `knit_hooks` are its own, so these are changed in the document. This hook is
  # called before each chunk: each has an engine. Documents with Shiny code have a hook `label` of their own.
  hooks <- knitr::opts_hooks
  current <- hooks$get("engine")
  if (is.null(former_of(current))) {
    before_chunk <- function(options) {
      if (is.function(current)) options <- current(options)
      label_next_chunk()
      options
    }
    hooks$set(engine = structure(before_chunk, profile_former = list(current)))
  }
  function() {
    former <- former_of(hooks$get("engine"))
    # Another hook may have been set since.
    if (!is.null(former)) {
      others <- hooks$get()
      others["engine"] <- former
      hooks$restore(Filter(Negate(is.null), others))
    }
    unlabel_next_chunk()
    the$chunk_recorder <- NULL
    invisible()
  }
}

# The hook that evaluates the code of a chunk does so once with a label. A chunk without code to evaluate leaves this to
# the next one.
label_next_chunk <- function() {
  former <- knitr::knit_hooks$get("evaluate")
  if (is.null(former_of(former))) {
    labelled <- function(..., output_handler) {
      unlabel_next_chunk()
      .profile_labelled <- unit_caller("knitr.chunk", knitr::opts_current$get("label"))
      if (missing(output_handler)) {
        .profile_labelled(former(...))
      } else if (is.null(the$chunk_recorder)) {
        .profile_labelled(former(..., output_handler = output_handler))
      } else {
        chunk <- .mark_chunk(the$chunk_recorder, ..1, output_handler)
        on.exit(chunk$end())
        .profile_labelled(former(..., output_handler = chunk$handler))
      }
    }
    knitr::knit_hooks$set(evaluate = structure(labelled, profile_former = former))
  }
}

unlabel_next_chunk <- function() {
  former <- former_of(knitr::knit_hooks$get("evaluate"))
  if (!is.null(former)) knitr::knit_hooks$set(evaluate = former)
}

check_package <- function(package, need, call) {
  if (!requireNamespace(package, quietly = TRUE)) {
    abort_unsupported(paste0(need, " the package ", package, ", which cannot be loaded."), call)
  }
}

former_of <- function(f) attr(f, "profile_former", exact = TRUE)

# Work must not fail because of its name: it then has no label. The same without a name.
unit_caller <- function(key, value) {
  tryCatch(
    caller_with(if (!is.null(value)) rlang::set_names(short_label(value, key), key)),
    error = function(error) caller_with(character())
  )
}

# A value that fits into a label.
short_label <- function(value, key) {
  room <- most_label_characters - nchar(key) - 1
  if (nchar(percent_encoded(value)) <= room) {
    return(value)
  }
  characters <- strsplit(value, "")[[1]]
  ends <- cumsum(nchar(percent_encoded(characters)))
  paste0(paste(characters[ends <= room - 3], collapse = ""), "...")
}
