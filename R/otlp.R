# OpenTelemetry profiles: reading and writing, and what becomes of each field.

#' OpenTelemetry profiles
#'
#' @description
#' `read_otlp()` reads the profiles of [OpenTelemetry](https://opentelemetry.io), as its
#' collector, its profilers for whole machines, and others write them. `write_otlp()`
#' writes them, [send_otlp()] sends them to a collector.
#'
#' @details
#' A file is a message `ProfilesData` or `ExportProfilesServiceRequest`, as protocol
#' buffers or as JSON (OTLP/JSON), compressed with gzip or not. Several messages in one file
#' are read as well: of JSON one on each line, else each behind its length in four bytes,
#' as the collector writes them.
#'
#' The format is in development, and its fields were renumbered without a mark. Versions
#' 1.8 to 1.11 of `opentelemetry-proto` are read, told apart by the message itself: read
#' with the numbers of another version its samples break rules. Older ones are refused
#' with an error of class `profile_error_unsupported`. Version 1.11 is written.
#'
#' # What becomes of it
#'
#' | OpenTelemetry | here |
#' |---|---|
#' | `Profile` | a row of `sources`; profiles of one scope that say the same of themselves and have the same samples are *one* source with several sample types, as a pprof file has them |
#' | `Sample` | a row of `samples` for each observation: each value, each time; a time without a value counts as 1 |
#' | `timestamps_unix_nano` | `.timestamp` in `samples`, in seconds, and `.time_nanos` where those are not exact |
#' | `Link` | `.trace_id`, `.span_id` in `samples` |
#' | attributes of samples | `.labels`: `str`, or `num` and `unit`; other kinds in `type` and `value`; an array of texts and integers is several labels of one key |
#' | `Stack`, `Location`, `Line`, `Function`, `Mapping` | as of pprof files, see [read_pprof()]; an empty location is one without a function |
#' | `profile.frame.type` | `.frame_type` in `locations`, such as `native`, `cpython`, and `r` for R's own frames |
#' | `pprof.location.is_folded`, `pprof.mapping.has_*`, `process.executable.build_id.gnu` | `.is_folded` in `locations`, `has_*` and `build_id` in `.mappings` |
#' | `pprof.profile.comment` (also `.0`, `.1`, … behind it, as the collector writes it), `drop_frames`, `keep_frames`, `doc_url` | `.comments`; `.drop_frames`, `.keep_frames`, `.doc_url` in `sources` |
#' | `pprof.scope.default_sample_type`, `sample_type_order` | `.default_type` in `sources`; the order of `.sample_types` |
#' | other attributes of profiles, mappings, locations | `.source_attributes`, `.mapping_attributes`, `.location_attributes` (at the outermost of its lines) |
#' | `profile_id`, `original_payload`, its format, `dropped_attributes_count` | columns of `sources` of these names, with a dot |
#' | `Resource`, `InstrumentationScope`, `EntityRef`, schema URLs | `.resources`, `.scopes` and their tables of attributes, `.resource_entities`; none where they say nothing |
#'
#' See [profile_data] for the columns of those tables. They survive [combine_profiles()],
#' dm and databases.
#'
#' `write_otlp()` goes the same way back. Of data that `Rprof()` recorded it writes the values
#' that [write_pprof()] writes, and in the attributes `r.rprof.options` and `r.rprof.file`
#' what makes it an Rprof source again when it is read. The dictionary has each thing once,
#' and nothing that no sample needs; equal profiles give equal bytes.
#'
#' Attributes that are empty texts or `FALSE`, where that means as much as none, are not
#' written again. A frame is R's own (`r`) where `Rprof()` recorded it and `.frame_type`
#' says nothing else. `.is_folded` is written as it is: whoever looks up functions for
#' addresses anew has to set it anew.
#'
#' # What is lost
#'
#' Compared with a pprof file: ids and the order of tables, and what no sample refers to;
#' the order of labels of different keys; that a function had no name at all, if it has no
#' file either (it is called `<unknown>`). With `original_payload = TRUE` the file goes along
#' as pprof, and `read_otlp(original_payload = TRUE)` reads that. Compared with an Rprof
#' file: the numbers and places of its `#File` lines, which are made anew, and the places from
#' which R was called at top level.
#'
#' In pprof have no place: resources, scopes, schema URLs, ids of profiles, counts of what
#' was dropped, times of samples, links, and attributes that are neither text nor integer.
#'
#' Of OpenTelemetry itself are not kept: the order and duplicates of dictionaries, how
#' observations are spread over samples (but see `aggregate`), the shape of samples that
#' have times only (1 is written for each), envelopes without profiles,
#' `aggregation_temporality` of version 1.8, and `false` or empty values of the attributes
#' named above. Where samples were taken outside of the time of their profile, that is
#' widened.
#'
#' Labels with several values are an array, which has one unit. An error of class
#' `profile_error_lossy` says what no attribute can hold: a label with both a text and a number,
#' several units under one key, a sum beyond 2^63, a time before 1970, a negative duration,
#' ids of another length than they must have. A warning of class `profile_warning_lossy` reports
#' periods that were rounded, as they must be whole numbers, and time stamps after the year 2262 and
#' durations of more than 292 years, which are left out. With `original_payload = TRUE` labels and times
#' are written as well as they can be, since the payload says what they were.
#'
#' @inheritParams read_pprof
#' @inheritParams write_pprof
#' @param original_payload For reading: whether to read, in place of the profile itself, the
#'   pprof file that it was made of and carries along. For writing: whether to carry it
#'   along; for profiles of one source.
#' @param aggregate Whether to put samples of the same stack, attributes and link together:
#'   with the sum of their values or, where samples have times, with all of them. Without
#'   it each sample is written for itself, in its order.
#' @param format `"protobuf"` or `"json"`. By default JSON if the name of the file ends in
#'   `.json` or `.json.gz`. A file whose name ends in `.gz` is compressed.
#' @param resource Attributes of the resource, as a character vector with names, such as
#'   `c(service.name = "etl")`. They replace those of the same names in the profile.
#'
#' @return `read_otlp()`: an object of class `profile_data`, see [profile_data].
#'   `write_otlp()`: `x`, invisibly.
#'
#' @section Errors:
#' As of [read_pprof()] and [write_pprof()]. Where JSON is wrong, the error names the line,
#' or the field, such as `dictionary.stackTable[3].locationIndices`.
#'
#' @seealso [read_profile()] for files of unknown format.
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#'
#' path <- tempfile(fileext = ".json")
#' write_otlp(x, path, resource = c(service.name = "example"))
#' y <- read_otlp(path)
#' y
#' y$.resource_attributes
read_otlp <- function(path, ..., version = "2.0", source_uri = path, original_payload = FALSE) {
  call <- rlang::current_env()
  rlang::check_dots_empty()
  check_version(version, call)
  check_flag(original_payload, "original_payload", call)
  input <- profile_input(path, source_uri, call)
  result <- rust(rust_read_otlp(input$data, input$name, version, input$uri, input$max_memory, original_payload), call)
  finish_read(result, input, version, call)
}

#' @rdname read_otlp
#' @export
write_otlp <- function(x,
                       path,
                       ...,
                       aggregate = TRUE,
                       format = NULL,
                       resource = character(),
                       original_payload = FALSE) {
  call <- rlang::current_env()
  rlang::check_dots_empty()
  tables <- as_profile(x, call)
  file <- file_path(path, "profile_error_write", call)
  if (is.null(format)) {
    format <- if (grepl("[.]json([.]gz)?$", file[[2]])) "json" else "protobuf"
  }
  check_format(format, call)
  options <- otlp_options(aggregate, format == "json", resource, original_payload, call)
  report <- rust(rust_write_otlp(tables, file, options, grepl("[.]gz$", file[[2]])), call)
  warn_losses(path_in_words(path), report, untold_messages, call)
  invisible(x)
}

# What the core must know to write a message.
otlp_options <- function(aggregate, json, resource, original_payload, call) {
  check_flag(aggregate, "aggregate", call)
  check_flag(original_payload, "original_payload", call)
  check_texts(resource, "resource", call)
  list(
    aggregate = aggregate,
    json = json,
    payload = original_payload,
    keys = as.list(enc2utf8(names(resource) %||% character())),
    values = as.list(enc2utf8(unname(resource)))
  )
}

# The message as a raw vector, to be sent.
otlp_message <- function(x, json, aggregate, resource, call) {
  options <- otlp_options(aggregate, json, resource, FALSE, call)
  result <- rust(rust_otlp_message(as_profile(x, call), options), call)
  warn_losses("The message", result$losses, untold_messages, call)
  result$message
}
