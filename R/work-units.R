# Labels of the chunks of knitr's documents, and of the targets of a pipeline; tests have theirs without a call
# (R/test-labels.R). Labels are frames on the stack (R/labels.R), so the functions of these packages that evaluate a chunk
# or a target are made to do so with labels. A changed function has the original one as its attribute `profile_former`.

# The labels of units of work, by which describe_profile() adds up a profile.
unit_keys <- c(
  "shiny.reactive", "http.route", "testthat.file", "testthat.test", "knitr.chunk", "targets.target", "task", "span.name"
)

#' Label the chunks of a document, or targets
#'
#' @description
#' Labels the samples of the units of work of a package, by their names:
#'
#' - `label_work("knitr")`: `knitr.chunk` is the name of each chunk of R Markdown documents and other documents of
#'   knitr;
#' - `label_work("targets")`: `targets.target` is the name of each target of a pipeline.
#'
#' Tests of testthat need no call: they always have labels, see below.
#'
#' Call it once, before the work to record. [describe_profile()] then shows which chunks and targets take the most time, `summary(x, by = "knitr.chunk")` lists all of them, and
#' `filter_profile(x, labels = c(knitr.chunk = "fit"))` selects one.
#'
#' In a shell, `profile record report.Rmd` needs no call, see `vignette("processes", package = "profile")`. It also records
#' the lines of chunks and of their expressions.
#'
#' @details
#' Labels are set as by [with_labels()]: a session has at most 1,000 different sets, here names of chunks
#' and targets. Longer texts than a label can have end in `...`.
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
#' targets has no hook around the code of a target. `label_work("targets")` therefore changes the function
#' `builder_update_build()` in its namespace, which evaluates a target, in this session only. One call in it is
#' evaluated with a label, and nothing else changes. The returned function restores it. The command of
#' a target remains the same, so no target becomes outdated. targets 1.12.0 has this function.
#'
#' Write `profile::label_work("targets")` at the top of `_targets.R`, which `targets::tar_make()` runs in a process of
#' its own: `record_profile(targets::tar_make(), children = TRUE)` records it, or, in this session,
#' `record_profile(targets::tar_make(callr_function = NULL))`. `profile record` of a script with the latter needs no
#' call. Branches of a pattern have names of their own. What targets does before and after the command of a target, such
#' as storing its value, has no label.
#'
#' Workers, such as those of crew, do not run `_targets.R`. Where processes are recorded by [profile_process()] or with
#' `children = TRUE`, the name of the target is read from the memory of the process, from the frame of targets' function
#' `target_run()`, and is the same label: no call is needed. There, loading what the target needs and storing its value have the
#' label as well. targets 1.12 has this function, which workers call as well.
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
#' @param package `"knitr"` or `"targets"`.
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
#' @examples
#'
#' # At the top of the file _targets.R: profile::label_work("targets")
label_work <- function(package) {
  call <- rlang::current_env()
  label <- list(knitr = label_knitr, targets = label_targets)
  if (missing(package)) {
    abort_missing("package", call, i = "For example `label_work(\"knitr\")`.")
  }
  package <- check_choice(package, names(label), "package", call)
  invisible(label[[package]](call))
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

label_targets <- function(call) {
  label_functions("targets", "targets", list(
    builder_update_build = quote(.profile_unit("targets.target", target_get_name(target), command_produce_build))
  ), call)
}

# Changes functions in the namespace of a package, and returns a function that restores them. `units`: for each
# function, a call with the key and the value of its label, and the name of the function whose call is evaluated with
# it.
label_functions <- function(package, what, units, call) {
  check_package(package, paste("Labels of", what, "need"), call)
  namespace <- asNamespace(package)
  # All are found before one is changed.
  labelled <- list()
  for (name in names(units)) {
    labelled[[name]] <- labelled_function(package, name, units[[name]], call)
  }
  for (name in names(labelled)) replace_in_namespace(name, labelled[[name]], namespace)
  function() {
    for (name in names(labelled)) {
      former <- former_of(namespace[[name]])
      if (!is.null(former)) replace_in_namespace(name, former, namespace)
    }
    invisible()
  }
}

check_package <- function(package, need, call) {
  if (!requireNamespace(package, quietly = TRUE)) {
    abort_unsupported(paste0(need, " the package ", package, ", which cannot be loaded."), call)
  }
}

former_of <- function(f) attr(f, "profile_former", exact = TRUE)

# A function of a package in which the call of a function, the last argument of the call `unit`, is replaced by `unit`
# with this call as its last argument.
labelled_function <- function(package, name, unit, call) {
  former <- get0(name, asNamespace(package), mode = "function", inherits = FALSE)
  if (!is.null(former_of(former))) {
    return(former)
  }
  count <- 0
  edited <- function(code) {
    if (!is.call(code)) {
      return(code)
    }
    if (identical(code[[1]], unit[[4]])) {
      count <<- count + 1
      unit[[4]] <- code
      return(unit)
    }
    for (i in seq_along(code)) {
      # An argument may be missing, as in `x[1, ]`.
      if (!identical(code[[i]], quote(expr = ))) code[i] <- list(edited(code[[i]]))
    }
    code
  }
  labelled <- former
  if (is.function(former)) body(labelled) <- edited(body(utils::removeSource(former)))
  if (count != 1) {
    abort_unsupported(c(
      paste0("This version of ", package, ", ", format(getNamespaceVersion(package)), ", cannot be labelled."),
      i = paste0("`", name, "()` is not as in the versions that are known, see `?label_work`.")
    ), call)
  }
  environment(labelled) <- rlang::env(environment(former), .profile_unit = with_unit)
  structure(labelled, profile_former = former)
}

replace_in_namespace <- function(name, value, namespace) {
  is_locked <- bindingIsLocked(name, namespace)
  if (is_locked) rlang::env_binding_unlock(namespace, name)
  assign(name, value, namespace)
  if (is_locked) rlang::env_binding_lock(namespace, name)
}

# Evaluates an expression with a label.
with_unit <- function(key, value, expr) {
  .profile_forwarded <- unit_caller(key, value)
  .profile_forwarded(expr)
}

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
