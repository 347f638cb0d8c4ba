# tier: gate
# The GitHub Action: its steps that are shell code run here, on a shallow clone of a merge as GitHub checks it out, with files
# for GITHUB_STEP_SUMMARY and GITHUB_OUTPUT. Steps that use other actions cannot be tested without GitHub.

action_file <- function() {
  skip_on_cran()
  skip_on_os("windows")
  if (Sys.which("bash") == "") skip("bash is not installed: the steps of the action are not tested")
  path <- file.path("..", "..", ".github", "actions", "compare", "action.yml")
  if (!file.exists(path)) skip("The action is not here: its steps are not tested")
  normalizePath(path)
}

# The steps as list(name, env, run): `env` are the variables with the texts of their expressions.
steps_of <- function(file) {
  lines <- readLines(file)
  lines <- lines[seq(match("  steps:", lines) + 1, length(lines))]
  starts <- grep("^    - name: ", lines)
  steps <- Map(function(from, to) lines[from:to], starts, c(starts[-1] - 1, length(lines)))
  steps <- lapply(steps, function(step) {
    block <- function(head) {
      at <- match(head, step)
      if (is.na(at)) {
        return(character())
      }
      rest <- step[-seq_len(at)]
      # Indented by more than the key.
      rest <- rest[cumsum(!grepl("^        |^$", rest)) == 0]
      sub("^        ", "", rest)
    }
    env <- strsplit(block("      env:"), ": ", fixed = TRUE)
    names <- vapply(env, `[[`, "", 1)
    list(
      name = sub("^    - name: ", "", step[[1]]), run = block("      run: |"),
      env = rlang::set_names(vapply(env, `[[`, "", 2), names)
    )
  })
  rlang::set_names(steps, vapply(steps, `[[`, "", "name"))
}

# Runs a step as GitHub does. `inputs`: those of the action; `outputs`: of the previous step.
run_step <- function(step, folder, inputs = list(), outputs = list(), env = character()) {
  defaults <- list(
    script = "", `fail-if` = "", inconclusive = "pass", measure = "", time = "300", base = "HEAD^1", path = "."
  )
  inputs <- utils::modifyList(defaults, inputs)
  value_of <- function(expression) {
    name <- sub("^\\$\\{\\{ (.*) \\}\\}$", "\\1", expression)
    if (startsWith(name, "inputs.")) inputs[[sub("^inputs[.]", "", name)]] else outputs[[sub("^steps[.]compare[.]outputs[.]", "", name)]]
  }
  at <- function(name) file.path(folder, name)
  writeLines(step$run, at("step.sh"))
  for (file in c("summary", "output")) if (!file.exists(at(file))) file.create(at(file))
  withr::local_envvar(c(
    vapply(step$env, value_of, ""),
    GITHUB_STEP_SUMMARY = at("summary"), GITHUB_OUTPUT = at("output"), RUNNER_TEMP = at("temp"),
    GITHUB_ACTION_PATH = dirname(action_file()), R_LIBS = paste(.libPaths(), collapse = ":"), env
  ))
  dir.create(at("temp"), FALSE)
  status <- withr::with_dir(at("checkout"), suppressWarnings(system2(
    "bash", c("--noprofile", "--norc", "-eo", "pipefail", at("step.sh")), stdout = at("out"), stderr = at("err")
  )))
  output <- strsplit(readLines(at("output")), "=", fixed = TRUE)
  list(
    status = status, out = readLines(at("out"), warn = FALSE), err = readLines(at("err"), warn = FALSE),
    summary = readLines(at("summary"), encoding = "UTF-8"),
    outputs = rlang::set_names(lapply(output, `[[`, 2), vapply(output, `[[`, "", 1))
  )
}

# As actions/checkout with `fetch-depth: 2`: the merge of the pull request and its parents.
merged_checkout <- function(folder, old, new) {
  repository <- package_repository(old, old, .local_envir = parent.frame())
  git(repository, "checkout", "--quiet", "-b", "feature")
  writeLines(c("work <- function(n) {", new, "}"), file.path(repository, "R", "work.R"))
  commit(repository, "change")
  git(repository, "checkout", "--quiet", "main")
  git(repository, "merge", "--quiet", "--no-ff", "--message", "merge", "feature")
  git(repository, "clone", "--quiet", "--depth", "2", paste0("file://", repository), file.path(folder, "checkout"))
}

test_that("no input and no output is part of shell code", {
  for (step in steps_of(action_file())) expect_no_match(step$run, "${{", fixed = TRUE)
})

test_that("a pull request that allocates more fails, and its summary says why", {
  skip_if_not(capabilities("profmem"), "this R cannot record allocations")
  steps <- steps_of(action_file())
  folder <- withr::local_tempdir()
  merged_checkout(folder, "  numeric(n)", "  c(numeric(n), numeric(n))")
  compared <- run_step(
    steps$Compare, folder, list(script = "run.R", measure = "bytes", `fail-if` = "alloc > 0\n\nalloc_objects > 100\n")
  )
  expect_identical(compared$status, 0L, label = paste(compared$err, collapse = "\n"))
  expect_identical(compared$outputs$status, "3")
  expect_true(all(c("comparison.md", "comparison.html", "comparison.txt") %in% list.files(compared$outputs$folder)))
  # Amounts, and functions of R that have allocated, depend on its version.
  is_function <- grepl("^[|] `(?!alloc)", compared$summary, perl = TRUE)
  expect_match(compared$summary[is_function], "| `work` |", fixed = TRUE, all = FALSE)
  masked <- gsub("\\([0-9a-f]{7}\\)", "(COMMIT)", compared$summary[!is_function])
  masked <- gsub("[0-9.]+(%|B|kB|MB|x)", "N", gsub("[0-9]+ -> [0-9]+, exact, [+][0-9]+", "N -> N, exact, +N", masked))
  masked <- gsub("Whole run: [0-9]+ -> [0-9]+", "Whole run: N -> N", masked)
  expect_snapshot(writeLines(masked))
  judged <- run_step(steps$Judge, folder, outputs = compared$outputs)
  expect_identical(judged$status, 3L)
})

test_that("inconclusive comparisons pass or fail as wanted, and errors fail", {
  steps <- steps_of(action_file())
  folder <- withr::local_tempdir()
  dir.create(file.path(folder, "checkout"))
  judge <- function(status, inconclusive = "pass") {
    run_step(steps$Judge, folder, list(inconclusive = inconclusive), list(status = status))
  }
  expect_identical(judge("0")$status, 0L)
  expect_identical(judge("1")$status, 1L)
  unclear <- judge("4")
  expect_identical(unclear$status, 0L)
  expect_match(unclear$out, "^::warning::")
  expect_identical(judge("4", "fail")$status, 4L)
  # There is no repository: the summary says that the comparison has failed.
  writeLines("Package: smallpkg", file.path(folder, "checkout", "DESCRIPTION"))
  withr::local_envvar(GIT_CEILING_DIRECTORIES = folder)
  failed <- run_step(steps$Compare, folder, list(script = "$(touch evaluated)", measure = "bytes"))
  expect_identical(failed$outputs$status, "1")
  expect_match(failed$summary, "the comparison has failed")
  expect_false(file.exists(file.path(folder, "checkout", "evaluated")))
})

test_that("the package is installed from the action's own commit, unless it is there", {
  steps <- steps_of(action_file())
  folder <- withr::local_tempdir()
  dir.create(file.path(folder, "checkout"))
  version <- read.dcf(file.path(dirname(action_file()), "..", "..", "..", "DESCRIPTION"), "Version")[[1]]
  skip_if_not(version == format(utils::packageVersion("profile")), "the installed package has another version")
  expect_identical(run_step(steps[["Install profile"]], folder)$out, "profile is installed")
  # Without it, `R CMD INSTALL` is called, here a program that prints its arguments.
  bin <- file.path(folder, "bin")
  dir.create(bin)
  writeLines(c("#!/bin/sh", "echo R \"$@\""), file.path(bin, "R"))
  writeLines(c("#!/bin/sh", "case \"$*\" in *packageVersion*) exit 1;; esac"), file.path(bin, "Rscript"))
  Sys.chmod(file.path(bin, c("R", "Rscript")), "755")
  installed <- run_step(steps[["Install profile"]], folder, env = c(PATH = paste0(bin, ":", Sys.getenv("PATH"))))
  root <- normalizePath(file.path(dirname(action_file()), "..", "..", ".."))
  expect_identical(installed$out, paste("R CMD INSTALL --no-docs", root))
})

# ---- The comment -------------------------------------------------------------------

test_that("the comment of the vignette has the text of others without markup, once", {
  file <- file.path("..", "..", "vignettes", "comparing.Rmd")
  if (!file.exists(file)) skip("The vignette is not here: its workflow is not tested")
  action_file()
  lines <- readLines(file, encoding = "UTF-8")
  from <- grep("^          marker=", lines)
  code <- lines[seq(from, from + match("```", lines[-seq_len(from)]) - 1)]
  expect_no_match(code, "${{", fixed = TRUE)
  folder <- withr::local_tempdir()
  at <- function(name) file.path(folder, name)
  dir.create(at("bin"))
  # Programs in place of GitHub's: one page of results, the artifact, and what is sent.
  writeLines(c(
    "#!/bin/bash", "echo \"$1 $2 $3 $4\" >> calls",
    "case \"$*\" in",
    "  'run download'*) mkdir -p artifact; cp text artifact/comparison.txt ;;",
    "  *'/pulls?'*) cat pulls ;;",
    "  *--paginate*comments*) cat comments ;;",
    "  *--method*) cp comment.md sent ;;",
    "esac"
  ), at("bin/gh"))
  Sys.chmod(at("bin/gh"), "755")
  writeLines(code, at("comment.sh"))
  run <- function(text, pulls, comments) {
    unlink(at(c("calls", "sent")))
    writeLines(text, at("text"))
    writeLines(pulls, at("pulls"))
    writeLines(comments, at("comments"))
    withr::local_envvar(
      PATH = paste0(at("bin"), ":", Sys.getenv("PATH")), GH_REPO = "owner/package", RUN = "7", HEAD_SHA = "abc"
    )
    status <- withr::with_dir(folder, system2("bash", c("-e", "comment.sh")))
    list(status = status, calls = readLines(at("calls")), sent = if (file.exists(at("sent"))) readLines(at("sent")))
  }
  text <- c("work </pre><script> & @someone", "::error::x", strrep("long ", 20000))
  new <- run(text, "12", character())
  expect_identical(new$status, 0L)
  expect_match(new$calls, "api --method POST repos/owner/package/issues/12/comments", fixed = TRUE, all = FALSE)
  expect_identical(new$sent[[1]], "<!-- performance of this pull request -->")
  expect_identical(new$sent[[3]], "work &lt;/pre&gt;&lt;script&gt; &amp; &#64;&#8203;someone")
  expect_lt(sum(nchar(new$sent)), 65536)
  again <- run(text, "12", "34")
  expect_match(again$calls, "api --method PATCH repos/owner/package/issues/comments/34", fixed = TRUE, all = FALSE)
  # The commit is no longer the head of a pull request.
  none <- run(text, character(), character())
  expect_identical(none$status, 0L)
  expect_null(none$sent)
})
