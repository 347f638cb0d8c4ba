# Reads and writes OpenTelemetry profiles.

#' Read and write OpenTelemetry profiles
#'
#' @description
#' `read_otlp()` reads profiles in the format of [OpenTelemetry](https://opentelemetry.io), as written by
#' its collector, its system-wide profilers, and others. `write_otlp()` writes them, [send_otlp()] sends them
#' to a collector.
#'
#' @details
#' A file contains a message `ProfilesData` or `ExportProfilesServiceRequest`, as protocol buffers or as
#' JSON (OTLP/JSON), optionally compressed with gzip. It may contain several messages, as the collector writes
#' them: for JSON one on each line, otherwise each preceded by its length in four bytes.
#'
#' The format is under development, and its fields were renumbered without changing its version. Versions
#' 1.9 to 1.11 of `opentelemetry-proto` are supported; the version of a message is detected from its
#' content. Older versions are rejected with an error of class `profile_error_unsupported`. Version 1.11 is
#' written. In JSON, names of fields must be in lowerCamelCase, as the specification requires.
#'
#' # Where the data are
#'
#' | OpenTelemetry | in a profile |
#' |---|---|
#' | `Profile` | a row of `sources`; profiles of one scope that differ only in the type of their values are *one* source with several types, as in a pprof file; the same applies if one has samples with times and the other has samples without |
#' | `Sample` | a row of `samples` for each observation, that is, for each value and each time; a time without a value counts as 1 |
#' | `timestamps_unix_nano` | `.timestamp` in `samples`, in seconds, and `.time_nanos` if `.timestamp` is not exact |
#' | `Link` | `.trace_id`, `.span_id` in `samples` |
#' | attributes of samples | `.labels`: `str`, or `num` and `unit`; other types in `type` and `value`; an array of strings and integers becomes several labels with one key |
#' | `Stack`, `Location`, `Line`, `Function`, `Mapping` | as for pprof files, see [read_pprof()]; an empty location is one without a function |
#' | `profile.frame.type` | `.frame_type` in `locations`, such as `native`, `cpython`, and `r` for R code |
#' | `pprof.location.is_folded`, `pprof.mapping.has_*`, `process.executable.build_id.gnu` | `.is_folded` in `locations`, `has_*` and `build_id` in `.mappings` |
#' | `pprof.profile.comment` (also with the suffixes `.0`, `.1`, ..., as the collector writes it), `drop_frames`, `keep_frames`, `doc_url` | `.comments`; `.drop_frames`, `.keep_frames`, `.doc_url` in `sources` |
#' | `profile.unused_mappings` of a scope | `.mappings` to which no location refers |
#' | `profile.sample_types`, `profile.period` | `.sample_types` and the period in `sources`, see *Names of sample types* |
#' | `pprof.scope.default_sample_type`, `sample_type_order` | `.default_type` in `sources`; the order of `.sample_types` |
#' | other attributes of profiles, mappings, locations | `.source_attributes`, `.mapping_attributes`, `.location_attributes` (of the outermost line) |
#' | `profile_id`, `original_payload`, its format, `dropped_attributes_count` | columns of `sources` with these names, preceded by a dot |
#' | `Resource`, `InstrumentationScope`, `EntityRef`, schema URLs | `.resources`, `.scopes` and the tables of their attributes, `.resource_entities`; none if they are empty |
#'
#' See [profile_data] for these columns. [combine_profiles()], dm and databases preserve them. Other tools may have recorded
#' the command line of a process, with secrets: such attributes are read, and written again, as they are.
#'
#' `write_otlp()` writes these columns back in the same way. For data of `Rprof()` it writes the same values as
#' [write_pprof()], and the attributes `r.rprof.options` and `r.rprof.file`, from which `read_otlp()` restores an Rprof
#' source. The dictionary contains each entry once, and only entries that samples refer to; equal profiles result in
#' equal bytes. The rules of OpenTelemetry's specification are followed, with two exceptions. A mapping must have a build
#' id: none is written if it is unknown, since an empty id would be the same for all files. Values that are themselves
#' invalid, such as a negative line, are written unchanged.
#'
#' Attributes that are empty strings or `FALSE` are not written if that is equivalent to omitting them. The frame type
#' is `r` for frames that `Rprof()`, [start_agent()] or [profile_process()] recorded, unless `.frame_type` differs.
#' `.is_folded` is written unchanged: update it if you resolve addresses to functions yourself.
#'
#' # Names of sample types
#'
#' A profile of OpenTelemetry has one sample type and one period, after which other tools name it. Types are therefore
#' written as the profiler of OpenTelemetry and Grafana Pyroscope expect them:
#'
#' | type | in the message | in Pyroscope |
#' |---|---|---|
#' | `cpu` in nanoseconds | `samples` in `count`, with a period of type `cpu` in nanoseconds. The period of the source is used if all values are multiples of it, otherwise 1 | `process_cpu` |
#' | `samples`, and `cpu` if it is the number of samples times the period | the same, once | `process_cpu` |
#' | `wall` in nanoseconds | with a period of type `wall` | `wall` |
#' | times with fractions, in any unit | whole nanoseconds | |
#' | `alloc_space`, `alloc_objects`, `inuse_space`, `inuse_objects` | with a period of type `space`, in bytes | `space` |
#'
#' The attributes `profile.sample_types` and `profile.period` say what was recorded, so `read_otlp()` returns the
#' original types, values and period.
#'
#' # What is lost
#'
#' From a pprof file: ids and the order of tables except mappings, functions and locations that no sample refers to, the
#' order of labels with different keys, and the distinction between a function without name and file and a function
#' named `<unknown>`. To keep the original file, embed it: `original_payload = TRUE` writes it into the message as pprof,
#' and `read_otlp(original_payload = TRUE)` reads it from there.
#'
#' From an Rprof file: the numbers and positions of its `#File` lines, which are generated anew, and the
#' places that called the outermost frames.
#'
#' Not kept from OpenTelemetry: the order and duplicates of dictionaries; how observations are distributed
#' over samples (but see `aggregate`); the order of samples with times relative to samples without, if a
#' profile contains both, since these are written as two profiles; samples that have only times, which get the value 1 for each time;
#' envelopes without profiles; and attributes of the table above that are `false` or empty. If samples were
#' taken outside the time range of their profile, the range is extended.
#'
#' pprof cannot store resources, scopes, schema URLs, ids of profiles, counts of dropped attributes, times
#' of samples, links, and attributes that are neither strings nor integers.
#'
#' Several labels with one key become an array, which has one unit.
#'
#' An error of class `profile_error_lossy` reports content that cannot be written: a label with both a string and a
#' number, several units for one key, a sum above 2^63, a time before 1970, a negative duration, or an id of a wrong
#' length. With `original_payload = TRUE`, labels and times are written as exactly as possible instead, since the
#' payload contains their exact values.
#'
#' A warning of class `profile_warning_lossy` counts
#'
#' - periods that were rounded to whole numbers;
#' - time stamps after the year 2262 and durations of more than 292 years, which are left out;
#' - times and durations of profiles that were extended to include their samples;
#' - values that only some samples of a profile have, which are 0 in the other samples unless they are summed;
#' - repeated keys of attributes, of which the first is kept;
#' - frame types of inlined calls that differ from the type of their location.
#'
#' @inheritParams read_pprof
#' @inheritParams write_pprof
#' @param original_payload For reading: whether to read the pprof file that is embedded in the profile, instead of the
#'   profile itself. For writing: whether to embed the profile as a pprof file; only for profiles with one source.
#' @param aggregate Whether to combine samples with equal stack, attributes and link. Their values are summed, or listed
#'   with their times if they have times. If `FALSE`, each sample is written separately, in the order of `samples`.
#' @param format `"protobuf"` or `"json"`. By default JSON if the file name ends in `.json` or `.json.gz`.
#'   A file whose name ends in `.gz` is compressed.
#' @param resource Attributes of the resource, as a named character vector such as
#'   `c(service.name = "etl")`. They replace attributes of the profile with the same names.
#'
#' @return `read_otlp()`: an object of class `profile_data`, see [profile_data].
#'   `write_otlp()`: `x`, invisibly.
#'
#' @section Errors:
#' The errors of [read_pprof()] and [write_pprof()]. For invalid JSON, the message contains the line, or the field, such
#' as `dictionary.stackTable[3].locationIndices`.
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
  call <- call_without_dots()
  check_flag(original_payload, "original_payload", call)
  read_format(path, "otlp", version, source_uri, call, payload = original_payload)
}

#' @rdname read_otlp
#' @export
write_otlp <- function(
    x, path, ..., aggregate = TRUE, format = NULL, resource = character(), original_payload = FALSE) {
  call <- call_without_dots()
  if (is.null(format)) {
    file <- file_path(path, "profile_error_write", call)
    format <- if (grepl("[.]json([.]gz)?$", file[[2]])) "json" else "protobuf"
  }
  format <- check_choice(format, c("protobuf", "json"), "format", call)
  options <- otlp_options(aggregate, format == "json", resource, original_payload, call)
  write_format(x, path, "otlp", options, call)
}

# The options of the core for writing a message.
otlp_options <- function(aggregate, json, resource, original_payload, call) {
  check_flag(aggregate, "aggregate", call)
  check_flag(original_payload, "original_payload", call)
  check_texts(resource, "resource", call)
  list(
    aggregate = aggregate,
    json = json,
    payload = original_payload,
    keys = enc2utf8(names(resource) %||% character()),
    values = enc2utf8(unname(resource))
  )
}

# The message as a raw vector, for sending.
otlp_message <- function(x, json, aggregate, resource, call) {
  options <- otlp_options(aggregate, json, resource, FALSE, call)
  result <- rust(rust_written(as_profile(x, call), "otlp", options), call)
  warn_losses(result$losses, "the message", call)
  result$bytes
}
