# Samples by their labels: for `filter_profile(labels = )` and `summary(by = )`.

# The values of labels as text: strings, attributes of OpenTelemetry of other types, and numbers with their unit.
label_text <- function(labels) {
  text <- as.character(labels$str)
  if (!is.null(labels[["value"]])) {
    text <- ifelse(is.na(text), labels$value, text)
  }
  if (!is.null(labels[["num"]])) {
    number <- number_text(labels$num)
    unit <- as.character(labels[["unit"]] %||% NA)
    text <- ifelse(is.na(text) & !is.na(labels$num), paste0(number, ifelse(is.na(unit), "", paste0(" ", unit))), text)
  }
  text
}

# Texts of samples that are found like labels, NULL for another key: columns, as which pprof stores them, and what is
# known of sources. A label with the same key comes first.
text_like_label <- function(x, key) {
  column <- c(trace_id = ".trace_id", span_id = ".span_id")
  if (key %in% names(column)) {
    return(x$samples[[column[[key]]]])
  }
  sources <- x$sources
  uri <- as.character(sources$source_uri)
  of_source <- switch(key,
    run = paste0("run-", seq_along(uri)),
    source = ifelse(is.na(uri), paste(sources$source_type, sources$source_id), uri),
    process = names_of_processes(x)
  )
  of_source[match(x$samples$source_id, sources$source_id)]
}

# What processes are called: "worker 1 of 2, pid 1234". NULL if no source is a process.
names_of_processes <- function(x) {
  pid <- source_attribute(x, "process.pid")
  role <- roles_of(x)
  if (!all(is.na(pid))) ifelse(is.na(pid), NA, paste0(ifelse(is.na(role), "", paste0(role, ", ")), "pid ", pid))
}

# The part of each process among others that work together, such as "worker 1 of 2".
roles_of <- function(x) source_attribute(x, "profile.process.role")

# An attribute of each source.
source_attribute <- function(x, key) {
  attributes <- x[[".source_attributes"]]
  attributes <- attributes[attributes$key %in% key, ]
  as.character(attributes$value)[match(x$sources$source_id, attributes$source_id)]
}

# The rows of the table of labels with a key, as list(sample, text); `sample` is the row of the sample.
labels_with_key <- function(x, key, argument, call) {
  labels <- as.list(x$.labels)
  if (!has_label(x, key)) {
    text <- text_like_label(x, key)
    if (is.null(text)) {
      abort_unknown_label(x, key, argument, call)
    }
    return(list(sample = which(!is.na(text)), text = as.character(text[!is.na(text)])))
  }
  rows <- which(labels$key == key)
  list(
    sample = match(labels$sample_id[rows], x$samples$sample_id),
    text = label_text(lapply(labels[intersect(names(labels), c("str", "value", "num", "unit"))], `[`, rows))
  )
}

# A named list of values as text, of which NA stands for samples without the label.
check_labels_to_keep <- function(labels, call) {
  if (is.null(labels)) {
    return(list())
  }
  values <- as.list(labels)
  is_value <- function(value) is.atomic(value) && length(value) > 0 && !is.null(value)
  if (!rlang::is_named(values) || anyDuplicated(names(values)) || !all(vapply(values, is_value, NA))) {
    abort_argument(c(
      "`labels` must be values with names, or `NULL`.",
      i = "For example `c(route = \"/api\")`, or `list(route = c(\"/api\", \"/health\"))` for several values."
    ), call)
  }
  lapply(values, function(value) {
    if (is.numeric(value)) ifelse(is.na(value), NA, number_text(value)) else as.character(value)
  })
}

number_text <- function(number) {
  format(number, trim = TRUE, digits = 15, scientific = FALSE)
}

# For each sample, whether it has one of the values of each label.
has_labels <- function(x, labels, call) {
  keep <- rep(TRUE, nrow(x$samples))
  for (key in names(labels)) {
    found <- labels_with_key(x, key, "labels", call)
    wanted <- labels[[key]]
    # A number is also found without its unit.
    plain <- sub("^([-+0-9.eE]+) .*", "\\1", found$text)
    unknown <- setdiff(wanted, c(found$text, plain, NA))
    if (length(unknown) > 0) {
      known <- unique(found$text)
      value <- shown_label(unknown[[1]])
      abort_argument(c(
        paste0("`labels`: no sample has the label `", shown_label(key), "` with the value `", value, "`."),
        i = did_you_mean(unknown[[1]], known, "`"),
        i = paste0("Values: ", in_backticks(shown_label(utils::head(known, 10))), if (length(known) > 10) ", ...", ".")
      ), call)
    }
    has <- seq_along(keep) %in% found$sample[found$text %in% wanted | plain %in% wanted & !is.na(plain)]
    if (anyNA(wanted)) {
      has <- has | !seq_along(keep) %in% found$sample
    }
    keep <- keep & has
  }
  keep
}

# Each of these samples, rows of the table, with its value of a label. A sample with several values occurs with each of
# them; one without the label has the value NA.
samples_by_label <- function(x, samples, key, call) {
  found <- labels_with_key(x, key, "by", call)
  without <- setdiff(samples, found$sample)
  of_value <- found$sample %in% samples
  unique(data.frame(
    sample = c(found$sample[of_value], without),
    text = c(found$text[of_value], rep(NA_character_, length(without)))
  ))
}

# The table of `summary(by = key)`. `summary`: of the whole profile, which the core has checked.
label_figures <- function(x, summary, key, call) {
  has_stack <- x$samples$sample_id %in% x$sample_locations$sample_id
  value_of <- function(type, unit) amounts_of_samples(x, type, unit, call)
  value <- value_of(attr(summary, "type"), attr(summary, "unit"))
  pairs <- samples_by_label(x, which(has_stack & !is.na(value)), key, call)
  values <- unique(pairs$text)
  group <- match(pairs$text, values)
  sum_of <- function(amount) as.vector(rowsum(amount[pairs$sample], group, reorder = FALSE))
  total <- sum_of(value)
  # A row of an aggregated profile may stand for many samples.
  samples <- value_of("samples", "count")
  samples[is.na(samples)] <- 1
  if (any(x$sample_values$type %in% "samples")) samples[is_allocation_row(x)] <- 0
  samples <- sum_of(samples)
  if (all(samples == trunc(samples) & samples <= .Machine$integer.max)) samples <- as.integer(samples)
  columns <- list(values, samples, total, total / attr(summary, "whole"))
  names(columns) <- c(key, "samples", "total", "total_share")
  seconds <- seconds_of_samples(x, value, attr(summary, "type"), attr(summary, "unit"))
  if (!is.null(seconds)) {
    columns$total_time <- sum_of(seconds)
  }
  if ("total_alloc" %in% names(summary$by_function)) {
    allocated <- value_of(attr(summary, "alloc_type"), "bytes")
    allocated[is.na(allocated)] <- 0
    columns$total_alloc <- sum_of(allocated)
  }
  peak <- if (key == "process" && !has_label(x, key)) described_peak(x)$processes
  if (!is.null(peak)) {
    # A process that has executed R again has two sources.
    peak <- peak[order(-peak$peak), ]
    columns$peak_memory <- peak$peak[match(values, peak$process)]
  }
  figures <- tibble::new_tibble(columns, nrow = length(values))
  if (!is.null(peak)) {
    figures <- vctrs::vec_rbind(figures, figures_of_idle(figures, peak))
  }
  if (key == "process" && !has_label(x, key)) {
    bill <- bill_columns(x, figures$process)
    figures[names(bill)] <- bill
  }
  figures[order(-abs(figures$total), figures[[key]], method = "radix"), ]
}

# The values of samples of a type, in a unit; NA if a sample has none.
amounts_of_samples <- function(x, type, unit, call) {
  values <- x$sample_values
  units <- as.character(unique(values$unit))
  factor <- rust(rust_unit_factors(units, unit), call)[match(values$unit, units)]
  rows <- which(values$type == type & !is.na(factor))
  (values$value[rows] * factor[rows])[match(x$samples$sample_id, values$sample_id[rows])]
}

# The seconds that each sample represents; NULL if that is not known for all sources.
seconds_of_samples <- function(x, value, type, unit) {
  if (unit %in% names(seconds_in)) {
    return(value * seconds_in[[unit]])
  }
  period <- intervals_of(x)
  if (has_role(type, unit, "count") && length(period) > 0 && !anyNA(period)) {
    value * period[match(x$samples$source_id, x$sources$source_id)]
  }
}

# Processes that were never seen computing, such as one that waited for its forks: their memory is known.
figures_of_idle <- function(figures, peak) {
  idle <- peak[!is.na(peak$process) & !duplicated(peak$process) & !peak$process %in% figures$process, ]
  rows <- vctrs::vec_init(figures, nrow(idle))
  for (column in setdiff(names(rows), "process")) rows[[column]][] <- 0L
  rows$process <- idle$process
  rows$peak_memory <- idle$peak
  rows
}
