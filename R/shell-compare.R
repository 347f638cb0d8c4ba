# `profile compare`: compares files, or two versions of a package, and judges limits.

shell_compare <- function(options, values) {
  limits <- shell_limits(options)
  outputs <- shell_outputs(options)
  report <- if (isTRUE(options$package)) {
    shell_compare_package(options, values, limits)
  } else {
    shell_compare_files(options, values, limits)
  }
  if (isTRUE(options$package) || length(limits) > 0) {
    writeLines(format_report(report, line_width(NULL, NULL)))
  } else {
    print(report$comparison)
  }
  write_comparison(report, outputs)
  status_of_limits(report$limits)
}

# Writes the report as Markdown or as a page. If time and bytes were recorded, bytes have a page of their own, beside the other.
write_comparison <- function(report, outputs) {
  for (output in outputs) {
    if (is_markdown(output)) {
      if (is.null(report[["kinds"]])) abort_usage("Snapshots of the heap are compared as text and as a page.")
      writeLines(enc2utf8(markdown_of_report(report)), output, useBytes = TRUE)
    } else {
      write_page(report[["profiles"]]$new, output, base = report[["profiles"]]$base)
      of_bytes <- report[["profiles_of_bytes"]]
      if (!is.null(of_bytes)) {
        shell_written(output)
        output <- sub("([.][^./\\\\]*)?$", "-bytes\\1", output)
        write_page(of_bytes$new, output, base = of_bytes$base)
      }
    }
    shell_written(output)
  }
}

is_markdown <- function(path) grepl("[.](md|markdown)$", path)

# Where to write, checked before the work begins.
shell_outputs <- function(options) {
  for (output in options$output) {
    folder <- dirname(output)
    if (!dir.exists(folder)) abort_usage(paste0("There is no folder `", folder, "` for `", output, "`."))
  }
  options$output
}

shell_limits <- function(options) {
  lapply(options[["fail-if"]], function(text) {
    limit <- limit_of_text(text)
    if (is.null(limit)) {
      abort_usage(c(
        paste0("`--fail-if` must be a limit such as \"time > 10%\", \"alloc > 0\" or \"alloc > 1MB\", not `", text, "`."),
        "Other sample types are limited by their names, and time by a percentage."
      ))
    }
    limit
  })
}

# ---- Files -------------------------------------------------------------------------

shell_compare_files <- function(options, values, limits) {
  given <- intersect(c("script", "tests", "measure", "time"), names(options))
  if (length(given) > 0) {
    abort_usage(paste0("`--", given[[1]], "` needs `--package`."))
  }
  files <- shell_values(values, "BASE", "NEW")
  profiles <- list(base = shell_read(files$BASE), new = shell_read(files$NEW))
  call <- rlang::current_env()
  if (length(limits) == 0 && all(vapply(profiles, is_snapshot, NA))) {
    return(list(comparison = compare_profiles(profiles$base, profiles$new), profiles = profiles))
  }
  report_of_files(files, profiles, limits, call)
}

report_of_files <- function(files, profiles, limits, call) {
  # The default type, and those of limits.
  types <- unique(c(list(NULL), lapply(limits, function(limit) limit["type"][[1]])))
  kinds <- compared_kinds(rep(list(profiles), length(types)), types, call)
  of_default <- kinds[[1]]$comparison
  is_default <- vapply(types, identical, NA, attr(of_default, "type"))
  judged <- lapply(limits, function(limit) {
    kind <- kinds[[match(list(limit$type), types)]]
    if (is.null(limit$type) && kind$data$type != "time") {
      abort_usage(paste0("The runs have no time, so `", limit$text, "` cannot be judged."))
    }
    judge_limit(limit, kind$data)
  })
  report <- new_report(c("Files", files$BASE, files$NEW), kinds[!is_default], judged)
  c(report, list(comparison = of_default, profiles = profiles))
}

# ---- Packages ----------------------------------------------------------------------

shell_compare_package <- function(options, values, limits) {
  if (!length(values) %in% 1:2) {
    abort_usage(paste0("Expected BASE [NEW], got ", count_of(length(values), "argument"), "."))
  }
  if (is.null(options$script) != isTRUE(options$tests)) {
    abort_usage("Expected either `--script FILE` or `--tests`: what to run with both versions.")
  }
  measures <- shell_measures(options, limits)
  seconds <- shell_number(options, "time", 300)
  call <- rlang::current_env()
  code <- code_of_package_run(options$script, isTRUE(options$tests), call)
  versions <- install_versions(values[[1]], if (length(values) == 2) values[[2]], ".", is.null(code), call)
  on.exit(unlink(versions$folder, recursive = TRUE))
  # Enough runs for the smallest limit.
  shares <- unlist(lapply(limits, function(limit) if (is.null(limit$type)) limit$share))
  runs <- lapply(rlang::set_names(measures), function(measure) {
    runs_of_versions(versions, code, measure, min(shares, if (is.null(shares)) 0.1), seconds, 0.01, call)
  })
  report_of_package(versions$package, versions$titles, options$script %||% "its tests", runs, limits, call)
}

# `bytes` first, since they are exact.
shell_measures <- function(options, limits) {
  measures <- if (is.null(options$measure)) c("bytes", "time") else strsplit(options$measure, ",", fixed = TRUE)[[1]]
  if (length(measures) == 0 || !all(measures %in% c("bytes", "time"))) {
    abort_usage(paste0("`--measure` must be time, bytes or bytes,time, not `", options$measure, "`."))
  }
  measures <- intersect(c("bytes", "time"), measures)
  if (is.null(options$measure) && !isTRUE(unname(capabilities("profmem")))) {
    shell_message("profile: This R cannot record allocations, so only time is compared.")
    measures <- "time"
  }
  for (limit in limits) {
    measure <- measure_of_limit(limit)
    if (is.na(measure)) {
      abort_usage(paste0("Of a package, only time and `alloc` can be limited, not `", limit$text, "`."))
    }
    if (!measure %in% measures) {
      abort_usage(paste0("`", limit$text, "` cannot be judged: ", measure, " is not measured."))
    }
  }
  measures
}

measure_of_limit <- function(limit) {
  allocated <- c(exact_type("allocated"), exact_type("allocated", "count"))
  if (is.null(limit$type)) "time" else if (limit$type %in% allocated) "bytes" else NA_character_
}

# `runs`: of `runs_of_versions()`, named by measure.
report_of_package <- function(package, titles, what, runs, limits, call) {
  types <- unique(unlist(lapply(limits, `[[`, "type")))
  kinds <- list()
  for (measure in names(runs)) {
    # Bytes, and the number of vectors if it is limited.
    of_measure <- if (measure == "bytes") as.list(union(exact_type("allocated"), types)) else list(NULL)
    versions <- rep(list(runs[[measure]][c("base", "new")]), length(of_measure))
    kinds <- c(kinds, compared_kinds(versions, of_measure, call))
  }
  is_of <- function(kind, limit) kind$data$type == (limit$type %||% "time")
  judged <- lapply(limits, function(limit) judge_limit(limit, Find(function(kind) is_of(kind, limit), kinds)$data))
  title <- c(paste0(package, ", ", what), titles[["base"]], titles[["new"]])
  report <- new_report(title, unname(kinds), judged, notes_of_runs(runs))
  # A page shows one kind of runs.
  pages <- list(runs[["time"]], runs[["bytes"]])
  pages <- pages[lengths(pages) > 0]
  c(report, list(profiles = pages[[1]], profiles_of_bytes = if (length(pages) == 2) pages[[2]]))
}

# How many runs there are, and failing tests.
notes_of_runs <- function(runs) {
  plan <- runs[["time"]]$plan
  failed <- do.call(pmax, unname(lapply(runs, `[[`, "failed")))
  c(
    if (!is.null(plan)) {
      paste0(
        "The number of runs was fixed after ", runs_of_pilot, " pilot runs of each version, which are not used",
        if (plan$is_bounded) paste0("; ", plan$wanted, " were wanted, but the time was too short"), "."
      )
    },
    if (any(failed > 0)) {
      paste0("Failing tests: ", failed[["base"]], " of base, ", failed[["new"]], " of new.")
    }
  )
}
