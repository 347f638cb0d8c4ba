# The report of `profile compare`: what was compared, whether limits are exceeded, and the largest changes by function, as text
# and as Markdown for the pull requests of a forge.

# The comparisons of two versions, one for each kind of amount. `versions`: a named list of lists(base, new), each of one kind.
# `types`: for each, the sample type, NULL for the default. Returns a list of list(comparison, data).
compared_kinds <- function(versions, types, call) {
  Map(function(of, type) {
    of <- lapply(of, function(x) if (is_profile(x)) list(x) else x)
    data <- figures_of_runs(of, type, "function", call)
    list(comparison = comparison_of(data, call), data = data)
  }, versions, types)
}

# list(title, kinds, limits, notes): a report. `title`: what is compared, `base`, and `new`; `kinds`: of `compared_kinds()`;
# `limits`: of `judge_limit()`.
new_report <- function(title, kinds, limits, notes = character()) {
  list(title = title, kinds = kinds, limits = limits, notes = notes)
}

# The verdict on all limits in a few words.
verdict_of_report <- function(limits) {
  results <- vapply(limits, `[[`, "", "result")
  if (length(results) == 0) {
    "no limit was given"
  } else if ("exceeded" %in% results) {
    "a limit is exceeded"
  } else if ("inconclusive" %in% results) {
    "inconclusive"
  } else {
    "within the limits"
  }
}

# The functions that explain the change. Callers change by the same amount as the function that was changed, so of the
# functions with at least half of the largest certain change, those that changed most in proportion come first, if at least
# their own test (of this row alone) finds a change. Then come the others, those with a verdict first. Of functions with the
# same amounts, such as a function and its only caller, only the one with the largest own amount is a row.
changed_rows <- function(kind, n) {
  rows <- kind$comparison
  rows <- rows[rows$new != rows$base & !is.na(rows$name), ]
  figures <- kind$data$figures
  own <- tapply(figures$self, factor(figures$group, seq_len(nrow(kind$data$groups))), sum, default = 0)
  rows <- rows[order(-own[match(rows$name, kind$data$groups$name)]), ]
  rows <- rows[!duplicated(rows[c("base", "new")]), ]
  growth <- abs(rows$new - rows$base)
  is_found <- rows$verdict %in% c("more", "less")
  explains <- any(is_found) & growth >= max(growth[is_found], 0) / 2 & (rows$p_value < significance_level) %in% TRUE
  proportion <- ifelse(explains, abs(log(rows$ratio)), 0)
  order <- order(!explains, !is_found & !explains, -proportion, -growth, rows$name, method = "radix")
  utils::head(rows[order, ], n)
}

# What a comparison of the whole run may have missed; NULL if it is exact or there are too few runs.
missed_in_whole <- function(comparison) {
  detectable <- attr(comparison, "whole")$detectable
  if (is.na(detectable) || detectable == 1) {
    return(NULL)
  }
  what <- shown_label(attr(comparison, "type"))
  if (is.finite(detectable) && detectable < 10) {
    paste0(
      "Such comparisons can miss differences of the whole run below ", sub("^[+]", "", change(detectable)), " (", what, ")."
    )
  } else {
    paste0("The runs vary so much that even differences of 10x can be missed (", what, ").")
  }
}

notes_of_report <- function(report) {
  few <- vapply(report$kinds, function(kind) !has_verdicts(kind$comparison), NA)
  c(
    unlist(lapply(report$kinds, function(kind) attr(kind$comparison, "few_samples"))),
    if (any(few)) {
      paste0("There is no verdict: that needs at least ", minimum_runs, " runs of each version.")
    },
    unlist(lapply(report$kinds, function(kind) missed_in_whole(kind$comparison))), report$notes
  )
}

# ---- Text --------------------------------------------------------------------------

format_report <- function(report, width, n = 10) {
  notes <- unique(notes_of_report(report))
  c(
    shorten(wrap("", paste0(report$title[[1]], ": ", report$title[[2]], " -> ", report$title[[3]]), width), width),
    unlist(lapply(report$kinds, function(kind) {
      comparison <- kind$comparison
      rows <- changed_rows(kind, n)
      c(
        "", shorten(wrap("", comparison_head(comparison), width), width),
        wrap("Whole run: ", format_whole_run(attr(comparison, "whole"), attr(comparison, "unit")), width),
        if (nrow(rows) > 0) {
          comparison_lines(rows, "amount", attr(comparison, "unit"), width, has_verdicts(comparison))
        }
      )
    })),
    if (length(report$limits) > 0) {
      c("", unlist(lapply(report$limits, function(limit) {
        wrap(paste0(limit$text, ": "), paste0(limit$result, " (", limit$figures, ", ", limit$reason, ")"), width)
      })))
    },
    if (length(notes) > 0) c("", unlist(lapply(notes, function(note) wrap("", note, width))))
  )
}

# ---- Markdown ----------------------------------------------------------------------

# Names come from the code that is compared, so they are inside code spans: nothing in them is markup, a link or a mention.
markdown_of_report <- function(report, n = 10) {
  notes <- unique(notes_of_report(report))
  c(
    paste0("### Performance: ", verdict_of_report(report$limits)), "",
    do.call(sprintf, c("%s: %s -> %s", as.list(markdown_code(report$title)))), "",
    if (length(report$limits) > 0) {
      c(markdown_table(
        limit = vapply(report$limits, function(limit) markdown_code(limit$text), ""),
        result = vapply(report$limits, function(limit) {
          if (limit$result == "within") limit$result else paste0("**", limit$result, "**")
        }, ""),
        `whole run` = vapply(report$limits, function(limit) markdown_text(paste0(limit$figures, ", ", limit$reason)), "")
      ), "")
    },
    unlist(lapply(report$kinds, function(kind) {
      comparison <- kind$comparison
      rows <- changed_rows(kind, n)
      whole <- format_whole_run(attr(comparison, "whole"), attr(comparison, "unit"))
      columns <- comparison_columns(rows, "amount", attr(comparison, "unit"), has_verdicts(comparison))
      c(
        markdown_head(comparison), "", paste0("Whole run: ", markdown_text(whole), "."), "",
        if (nrow(rows) > 0) {
          c(do.call(markdown_table, c(list(`function` = markdown_code(rows$name)), lapply(columns, markdown_text))), "")
        }
      )
    })),
    unlist(lapply(notes, function(note) c(markdown_text(note), "")))
  )
}

markdown_table <- function(...) {
  columns <- list(...)
  row <- function(cells) paste0("| ", paste(cells, collapse = " | "), " |")
  c(
    row(names(columns)), row(c("---", rep("---:", length(columns) - 1))),
    vapply(seq_along(columns[[1]]), function(i) row(vapply(columns, `[[`, "", i)), "")
  )
}

# As comparison_head(). The type may come from a file.
markdown_head <- function(comparison) {
  runs <- attr(comparison, "runs")
  type <- markdown_code(attr(comparison, "type"))
  paste0("**", type, " per run, ", count_of(runs[["base"]], "run"), " of base and ", runs[["new"]], " of new**")
}

# Any text as a code span in a cell of a table.
markdown_code <- function(text) {
  text <- gsub("`", "'", printable(text, 100), fixed = TRUE)
  paste0("`", gsub("|", "\\|", text, fixed = TRUE), "`")
}

# Any text without markup and mentions.
markdown_text <- function(text) {
  text <- gsub("\u00a0", " ", printable(text, 500), fixed = TRUE)
  text <- gsub("([\\\\`*_\\[\\]#|~!])", "\\\\\\1", text, perl = TRUE)
  text <- gsub("&", "&amp;", text, fixed = TRUE)
  text <- gsub("<", "&lt;", text, fixed = TRUE)
  gsub("@", "@<!-- -->", text, fixed = TRUE)
}
