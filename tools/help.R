# The parts of help pages that describe the data model, as the core declares it. Comments in R/ insert the values of this
# file, as in `@eval source("tools/help.R")$value$sample_types`.

local({
  model <- profile:::data_model()

  # A section with the tables and columns of the schema.
  tables <- function(title, about, required) {
    tables <- model$tables[model$tables$required == required, ]
    parts <- lapply(seq_len(nrow(tables)), function(i) {
      columns <- model$columns[model$columns$table == tables$table[[i]], ]
      is_reference <- !is.na(columns$refers_to) & columns$refers_to != columns$table
      type <- ifelse(is_reference, paste0("id of `", columns$refers_to, "`"), columns$type)
      unit <- ifelse(is.na(columns$unit), "", paste0(" (", columns$unit, ")"))
      c(
        paste0("| `", tables$table[[i]], "` | | | *", tables$doc[[i]], "* |"),
        paste0("| | `", columns$column, "` | ", type, unit, " | ", columns$doc, " |")
      )
    })
    head <- c("| table | column | type | meaning |", "|---|---|---|---|")
    c(paste0("@section ", title, ":"), about, "", head, unlist(parts))
  }

  by_writer <- split(model$file_names$name, factor(model$file_names$writer, unique(model$file_names$writer)))
  # The help page with the arguments of pages.
  names(by_writer)[names(by_writer) == "write_page"] <- "profile_page"
  names <- vapply(by_writer, function(names) paste0("`", names, "`", collapse = ", "), "")

  list(
    required_tables = tables(
      "Columns of the seven tables",
      "Columns whose names begin with a dot exist only if at least one source has the information.",
      required = TRUE
    ),
    optional_tables = tables(
      "Further tables", "These tables exist only if at least one source has the information.",
      required = FALSE
    ),
    sample_types = c(
      "@section Sample types:",
      "Readers keep the sample types of a file, which may have any name and unit. The meaning of these is known:",
      "`summary()` and pages show the first type of the role *allocated* in bytes beside counts of samples, and",
      "`plot()` shows types of the role *level* below the stacks. Values of levels are not summed.",
      "", "| type | unit | role | meaning, used by |", "|---|---|---|---|",
      with(model$sample_types, paste0("| `", type, "` | `", unit, "` | ", role, " | ", doc, " |"))
    ),
    heap_frames = c(
      "@section Kinds of frames:", "| `.frame_type` | meaning |", "|---|---|",
      with(model$heap_frames, paste0("| `", frame_type, "` | ", doc, " |"))
    ),
    file_names = c(
      "@details", "| name of the file | function |", "|---|---|",
      paste0("| ", names, " | [", names(by_writer), "()] |")
    )
  )
})
