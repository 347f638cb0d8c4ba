# The contract of the tables; the rules are checked in the core.

#' The profile data format
#'
#' @description
#' `validate_profile()` holds a profile against the rules of its version, the one
#' in its `meta` table, and says which rule is broken where. Readers give valid
#' profiles; writers check before they write.
#'
#' @details
#' A profile is a named list of [tibbles][tibble::tibble] of class
#' `profile_data`. Tables and columns beyond those named here must have a name with a
#' leading dot. `vignette("data-model")` shows it at work.
#'
#' # Version 2.0
#'
#' Seven tables, linked by integer keys that are unique and not `NA`.
#'
#' | table | columns | meaning of a row |
#' |---|---|---|
#' | `meta` | `key`, `value` (character) | a fact about the whole; one row has key `version` and value `2.0` |
#' | `sources` | `source_id` (integer), `source_type`, `source_uri` (character), `source_timestamp` (double) | a recorded run: a file, or a block of an Rprof file written with `append = TRUE` |
#' | `samples` | `sample_id`, `source_id` (integer) | a sample, as it was recorded, in that order |
#' | `sample_values` | `sample_id` (integer), `type`, `unit` (character), `value` (double) | a number that a sample carries |
#' | `sample_locations` | `sample_id`, `depth`, `location_id` (integer) | a frame of a sample's stack |
#' | `locations` | `location_id`, `function_id`, `line` (integer) | a line of a function |
#' | `functions` | `function_id` (integer), `name`, `system_name`, `filename` (character), `start_line` (integer) | a function in a file |
#'
#' - `source_type` is `"rprof"`, `"pprof"`, `"otlp"`, or another word that is not empty;
#'   `source_uri` is a path or `NA`; `source_timestamp` is when the run began, in seconds
#'   since 1970, `NA` if unknown. Profiles of [start_profiler()] and other formats state it. An Rprof
#'   file does not: there it is the latest time at which the run can have begun, see [read_rprof()].
#' - The key of `sample_values` is `sample_id` and `type`; values are finite. A
#'   time profile has one row for each sample, 1 `samples` in `count`.
#' - The key of `sample_locations` is `sample_id` and `depth`, which is 1 for the
#'   innermost frame, the function that was running. A sample may have no frame.
#' - `function_id` in `locations` may be `NA`: an address without a symbol.
#'   `line` is 0 or `NA` if unknown, and not negative.
#' - `name` and `system_name` are not empty and not `NA`; for R functions they are
#'   equal. `filename` is empty if unknown, `start_line` 0.
#'
#' ## Types of columns
#'
#' Columns have the types above, without a class and without dimensions. All functions take as
#' well what means the same: `integer64` with numbers that the type can hold exactly
#' (up to 2^31 - 1, or 2^53 for double), date-times (`POSIXct`) and dates in `source_timestamp` and
#' `.timestamp`, `I()`, and classes that name the type themselves, as those of the packages
#' glue and fs do. Anything else, such as `difftime` or a matrix, breaks a rule; in your own
#' columns it does not. [compact_profile()] also takes factors and whole numbers that became double.
#'
#' ## Memory profiles
#'
#' `Rprof(memory.profiling = TRUE)` notes four numbers at each sample:
#' `vsize_small` and `vsize_large` (memory in use for small and large vectors) and
#' `nodes` (for all else), in bytes, and `duplications` since the sample before, a
#' count. R writes the first two in cells of 8 bytes; here, as in
#' `summaryRprof(memory = "tseries")`, they are bytes. These are levels, so their
#' sums mean nothing. From them follow `alloc_size` and `dealloc_size` in bytes:
#' the sum of what the three levels rose or fell since the sample before, by the
#' rule of [summaryRprof()]; 0 for the first sample of a run.
#'
#' ## What stands beside the seven tables
#'
#' What else a file says is kept beside the seven tables, whatever its format, by four
#' rules. A fact of a row is a column with a leading dot; several are rows of a table
#' with a leading dot. Neither is there where no source says anything of the kind. A
#' number that its column cannot hold stands, in decimal, in a character column of the
#' same name and `_exact`: that counts as long as the column has what reading it gave,
#' so you need not care when you edit. Addresses are character, `0x` and hexadecimal
#' digits, since R has no such numbers.
#'
#' - in `sources`: `.period` (double), `.period_type`, `.period_unit` (character):
#'   what lies between two samples, for Rprof the interval, such as 20000, `cpu`,
#'   `microseconds`; `.duration_nanos` (double), below 2^63; `.time_nanos` (character), the time
#'   stamp where seconds hold it only nearly; `.default_type` (character), the type a
#'   viewer shows first; `.drop_frames`, `.keep_frames` (character), expressions for
#'   [drop_frames()]; `.doc_url` (character); `.memory_profiling`, `.gc_profiling`,
#'   `.line_profiling` (logical), the options of an Rprof run; `.scope_id` (integer), what
#'   recorded it, a row of `.scopes`; `.profile_id` (character), hexadecimal digits;
#'   `.dropped_attributes_count` (double), how many attributes the recorder left out;
#'   `.original_payload` (character), in base64, the bytes of another file that a profile was
#'   made of and carries along, and `.original_payload_format` (character), such as `pprof`;
#' - in `samples`: `.toplevel_filename` (character), `.toplevel_line` (integer),
#'   the place from which the outermost frame was called, where Rprof noted it;
#'   `.timestamp` (double), when it was taken, in seconds since 1970, up to the year 2262;
#'   `.time_nanos` (character), the same in nanoseconds, where seconds hold it only nearly;
#'   `.trace_id`, `.span_id` (character), the span of a trace during which it was taken, as
#'   hexadecimal digits;
#' - in `locations`: `.column` (integer), in the line, 0 if unknown; `.inlined`
#'   (logical): whether the frame was inlined into the one that follows it outwards, so
#'   that both are the same machine code; `.frame_type` (character): what kind of frame it
#'   is, `"r"` for R's own, `"native"` for machine code, or another text that is not empty,
#'   such as OpenTelemetry has in `profile.frame.type` (`"cpython"`, `"jvm"`, `"kernel"`), `NA`
#'   if unknown; `.mapping_id` (integer), `.address` (character); `.is_folded` (logical):
#'   whether other functions share the code, so that the function may be another one;
#' - in `functions`: `.has_name`, `.has_system_name` (logical): `FALSE` where the file
#'   has no such name, and it repeats the other one here (or is `<unknown>`). Without
#'   the columns a `system_name` that is the `name` is not written;
#' - in `locations` and `functions`: `.native_id` (character), the id in the file, where
#'   those were not 1, 2, 3, …;
#' - `.mappings`: what was mapped into memory, the program itself first: `mapping_id`
#'   (integer); `memory_start`, `memory_limit`, `file_offset` (addresses); `filename`,
#'   `build_id` (character, empty if unknown); `has_functions`, `has_filenames`,
#'   `has_line_numbers`, `has_inline_frames` (logical): what need not be looked up any
#'   more; perhaps `native_id`;
#' - `.sample_types`: `source_id` (integer), `type`, `unit` (as in `sample_values`),
#'   `recorded` (character): the types that a source has, also if it has no sample, in
#'   the order of its file, and what that calls them: of two types of one name the
#'   second has its unit added here;
#' - `.files`: `source_id`, `number` (integer), `filename` (character),
#'   `sample_id` (integer), the `#File` lines of an Rprof run and the sample that
#'   each stood before, `NA` at the end;
#' - `.labels`: `sample_id` (integer), `key`, `str` (character), `num` (double),
#'   `unit` (character), the labels of samples, in their order; `type`, `value`
#'   (character), as of attributes, see below, for what is neither text nor integer, where
#'   `str` and `num` are `NA`;
#' - `.comments`: `source_id` (integer), `comment` (character);
#' - `.resources`: what was profiled, such as a service on a host: `resource_id` (integer),
#'   `schema_url` (character), `dropped_attributes_count` (double);
#' - `.scopes`: what recorded profiles of a resource: `scope_id`, `resource_id` (integer),
#'   `name`, `version`, `schema_url` (character), `dropped_attributes_count` (double);
#' - `.resource_attributes`, `.scope_attributes`, `.source_attributes`, `.mapping_attributes`,
#'   `.location_attributes`: what else is said of rows of `.resources`, `.scopes`, `sources`,
#'   `.mappings` and `locations`: the key of that table, such as `resource_id` (integer); `key`,
#'   `type`, `value` (character), see below; and `unit` (character), but not in the first two;
#' - `.resource_entities`: things, such as a host, that attributes of a resource tell of:
#'   `resource_id` (integer), `schema_url`, `type` (character), and `id_keys`,
#'   `description_keys` (character), the keys of those that identify it and of those that describe
#'   it, as JSON arrays such as `["host.id"]`;
#' - `.problems`: see [profile_problems()].
#'
#' Numbers that may have an `_exact` beside them are `.period` and `.duration_nanos`,
#' `value` in `sample_values` (`.value_exact`) and `num` in `.labels` (`num_exact`), all
#' beyond 2^53; `line`, `.column` and `start_line`, which are 0 where they were negative
#' or beyond 2^31 - 1.
#'
#' You may add columns and tables with a leading dot of your own. Where they have a
#' column called `source_id`, `sample_id`, `location_id`, `function_id`, `mapping_id`, `resource_id` or
#' `scope_id`, it refers to that table: [combine_profiles()], [compact_profile()] and
#' [copy_profile_to()] keep it right.
#'
#' ## Attributes
#'
#' Attributes of OpenTelemetry have values of several types, lists of values among them. Here
#' each is a text that says exactly the same, and the type that tells how to read it.
#'
#' | `type` | `value` |
#' |---|---|
#' | `string` | the text itself |
#' | `bool` | `true` or `false` |
#' | `int` | a whole number of 64 bits, in decimal |
#' | `double` | a number, such as `0.25` or `1e300`, with as many digits as it needs, or `NaN`, `Infinity`, `-Infinity` |
#' | `bytes` | bytes in base64 |
#' | `array` | its elements as OpenTelemetry has them in JSON, such as `[{"stringValue":"a"},{"intValue":"1"}]` |
#' | `kvlist` | keys and values, likewise, such as `[{"key":"a","value":{"boolValue":true}}]` |
#' | `empty` | nothing: the attribute has a key, and no value |
#'
#' # Version 1.0
#'
#' The tables of versions 1.x of this package, in this order.
#'
#' | table | columns |
#' |---|---|
#' | `meta` | `key`, `value` (character): one row, key `version`, value `1.0` |
#' | `sample_types` | `type`, `unit` (character): one row, `samples` and `count` |
#' | `samples` | `value` (integer, 1 or more), `locations` (list of tibbles with one integer column, `location_id`, innermost first) |
#' | `locations` | as above |
#' | `functions` | as above |
#'
#' A hidden component tells the origin: `.rprof`, a list with the text of
#' `header` and `files`, or `.msg` for pprof; another, `.problems`, has what was odd
#' ([profile_problems()]). Samples with equal stacks share one
#' tibble. Memory figures, labels, sources and time stamps have no place here.
#'
#' @param x A profile, as [read_rprof()], [read_pprof()] or [read_otlp()] gives it, or made by
#'   hand, or a dm of its tables, see [dm_from_profile()].
#'
#' @return `x`, invisibly. A broken rule is an error of class
#'   `profile_error_invalid` with the fields `table`, `column`, `row` and `rule`,
#'   as far as they apply.
#'
#' @name validate_profile
#' @aliases profile_data
#' @export
#' @examples
#' x <- read_rprof(system.file("samples/rprof/1.out", package = "profile"))
#' validate_profile(x)
#'
#' x$locations$line[3] <- -1L
#' try(validate_profile(x))
validate_profile <- function(x) {
  call <- rlang::current_env()
  rust(rust_validate(as_profile(x, call)), call)
  invisible(x)
}
