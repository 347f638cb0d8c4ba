# Describes the content of OpenTelemetry profiles as text without ids, to compare profiles before and after writing.

otlp_path <- function(file) {
  data_path("otlp", file)
}

read_otlp_quietly <- function(path, ...) {
  suppressWarnings(read_otlp(path, ...), classes = "profile_warning")
}

# Writes a profile and reads it back.
through_otlp <- function(x, ..., fileext = ".pb") {
  path <- withr::local_tempfile(fileext = fileext)
  write_otlp(x, path, ...)
  read_otlp_quietly(path, source_uri = NA)
}

# Profiles with all tables that OpenTelemetry adds, from three writers.
otlp_profiles <- function() {
  files <- c("fleet.pb", "python-1.45.2.pb", "rust-0.33.1.pb")
  lapply(otlp_path(files), read_otlp_quietly, source_uri = NA)
}

# Expects that a profile has the same content after it was written and read.
expect_through_otlp <- function(x, info = NULL) {
  testthat::expect_equal(otlp_content(through_otlp(x, aggregate = FALSE)), otlp_content(x), info = info)
}

# The content of a profile that OpenTelemetry can store, as texts.
otlp_content <- function(x) {
  list(sources = source_words(x), samples = paste(sample_words(x), stack_words(x, all = TRUE)))
}

source_words <- function(x) {
  sources <- x$sources
  types <- x$.sample_types
  id <- sources$source_id
  paste(
    "type", sources$source_type,
    "time", exact_time(sources, "source_timestamp"),
    "took", exact_number(sources, ".duration_nanos"),
    "period", exact_number(sources, ".period"), said(sources, ".period_type"), said(sources, ".period_unit"),
    "first", said(sources, ".default_type"),
    "drop", said(sources, ".drop_frames"), "keep", said(sources, ".keep_frames"),
    "see", said(sources, ".doc_url"),
    "id", said(sources, ".profile_id"),
    "dropped", said(sources, ".dropped_attributes_count", 0),
    "payload", said(sources, ".original_payload_format"), said(sources, ".original_payload"),
    "options", said(sources, ".memory_profiling"), said(sources, ".gc_profiling"), said(sources, ".line_profiling"),
    "\ntypes", of_owner(paste(types$recorded, types$unit), types$source_id, id),
    "\ncomments", of_owner(x$.comments$comment, x$.comments$source_id, id),
    "\nattributes", attribute_words(x$.source_attributes, "source_id", id),
    "\nscope", scope_words(x)[match(said(sources, ".scope_id"), x$.scopes$scope_id)]
  )
}

scope_words <- function(x) {
  scopes <- x$.scopes
  paste(
    scopes$name, "version", scopes$version, "schema", scopes$schema_url,
    "dropped", said(scopes, "dropped_attributes_count", 0),
    "attributes", attribute_words(x$.scope_attributes, "scope_id", scopes$scope_id),
    "\nresource", resource_words(x)[match(scopes$resource_id, x$.resources$resource_id)]
  )
}

resource_words <- function(x) {
  resources <- x$.resources
  entities <- x$.resource_entities
  entity <- paste(entities$type, entities$schema_url, entities$id_keys, entities$description_keys)
  paste(
    "schema", resources$schema_url, "dropped", said(resources, "dropped_attributes_count", 0),
    "attributes", attribute_words(x$.resource_attributes, "resource_id", resources$resource_id),
    "entities", of_owner(entity, entities$resource_id, resources$resource_id)
  )
}

# Source, time, link, values and labels of each sample.
sample_words <- function(x) {
  samples <- x$samples
  values <- x$sample_values
  labels <- x$.labels
  number <- exact_number(labels, "num")
  plain <- ifelse(is.na(labels$str), number, dQuote(labels$str, FALSE))
  other <- said(labels, "type")
  label <- paste0(
    labels$key, "=", ifelse(is.na(other), plain, paste(other, said(labels, "value"))), unit_words(labels)
  )
  link <- paste0(" of ", said(samples, ".trace_id"), "/", said(samples, ".span_id"))
  value <- paste(exact_number(values, "value", ".value_exact"), values$unit, values$type)
  paste0(
    match(samples$source_id, x$sources$source_id), " at ", exact_time(samples, ".timestamp"),
    ifelse(is.na(said(samples, ".trace_id")), "", link),
    ": ", of_owner(value, values$sample_id, samples$sample_id),
    "; ", of_owner(label, labels$sample_id, samples$sample_id)
  )
}

# The stack of each sample, innermost first. A frame that was inlined ends in "~"; `all`: including all information
# about the address.
stack_words <- function(x, all = FALSE) {
  frames <- x$sample_locations
  frames <- frames[order(frames$sample_id, frames$depth), ]
  words <- location_words(x, all)[match(frames$location_id, x$locations$location_id)]
  of_owner(words, frames$sample_id, x$samples$sample_id, " < ")
}

location_words <- function(x, all) {
  locations <- x$locations
  functions <- x$functions[match(locations$function_id, x$functions$function_id), ]
  column <- said(locations, ".column", 0)
  type <- said(locations, ".frame_type")
  place <- paste0(
    functions$name, "@", functions$filename, ":", exact_number(locations, "line", ".line_exact"),
    ifelse(column == 0, "", paste0(":", column))
  )
  words <- paste0(
    ifelse(is.na(locations$function_id), "?", place),
    ifelse(is.na(type), "", paste0("{", type, "}")),
    ifelse(said(locations, ".inlined", FALSE), "~", "")
  )
  if (!all) {
    return(words)
  }
  paste0(
    words, "(", functions$system_name, " from ", exact_number(functions, "start_line", ".start_line_exact"),
    " at ", said(locations, ".address"),
    " in ", mapping_words(x)[match(said(locations, ".mapping_id"), x$.mappings$mapping_id)],
    " folded ", said(locations, ".is_folded", FALSE),
    " attributes ", attribute_words(x$.location_attributes, "location_id", locations$location_id), ")"
  )
}

mapping_words <- function(x) {
  mappings <- x$.mappings
  columns <- unname(as.list(mappings[setdiff(names(mappings), c("mapping_id", "native_id"))]))
  attributes <- attribute_words(x$.mapping_attributes, "mapping_id", mappings$mapping_id)
  do.call(paste, c(columns, list(attributes)))
}

attribute_words <- function(attributes, key, owners) {
  words <- paste0(attributes$key, "=", attributes$type, " ", attributes$value, unit_words(attributes))
  of_owner(words, attributes[[key]], owners)
}

unit_words <- function(rows) {
  unit <- said(rows, "unit")
  ifelse(is.na(unit), "", paste0(" ", unit))
}

# Joins the texts of each owner.
of_owner <- function(words, ids, owners, sep = ", ") {
  words <- words[seq_along(ids)]
  unname(vapply(split(as.character(words), factor(ids, owners)), paste, "", collapse = sep))
}

# An optional column, whose values may be missing.
said <- function(rows, column, else_ = NA) {
  x <- as.list(rows)[[column]] %||% rep(else_, NROW(rows))
  ifelse(is.na(x), else_, x)
}

# Numbers as text with all digits.
exact_number <- function(rows, column, exact = paste0(column, "_exact")) {
  number <- as.numeric(said(rows, column))
  exact <- said(rows, exact)
  ifelse(is.na(exact), ifelse(is.na(number), "-", sprintf("%.0f", number)), exact)
}

# Nanoseconds since 1970.
exact_time <- function(rows, column) {
  seconds <- as.numeric(said(rows, column))
  exact <- said(rows, ".time_nanos")
  nanos <- sub(".", "", sprintf("%.9f", seconds), fixed = TRUE)
  ifelse(is.na(exact), ifelse(is.na(seconds), "-", nanos), exact)
}
