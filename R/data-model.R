# The help page of the data model: every table and column of a profile.

#' Tables and columns of a profile
#'
#' @description
#' A profile is a named list of [tibbles][tibble::tibble] with class `profile_data`. Seven tables, linked
#' by integer ids, hold the samples; further tables and columns, whose names begin with a dot, hold what
#' a file format or a recorder adds.
#'
#' This page describes all of them. `vignette("data-model")` shows how to query and edit them, and
#' [validate_profile()] checks the rules.
#'
#' @section The seven tables:
#' Each table starts with its key. Ids are unique within their table and not `NA`; they need not be
#' consecutive, and rows may be in any order.
#'
#' | table | a row is | columns |
#' |---|---|---|
#' | `meta` | a property of the profile | `key`, `value` (character); the row with key `version` has value `2.0` |
#' | `sources` | a recorded run: a file, or one run of a file that `Rprof(append = TRUE)` wrote | `source_id` (integer), `source_type`, `source_uri` (character), `source_timestamp` (double) |
#' | `samples` | a sample, in the order of recording | `sample_id`, `source_id` (integer) |
#' | `sample_values` | a value of a sample | `sample_id` (integer), `type`, `unit` (character), `value` (double) |
#' | `sample_locations` | a frame of a sample's stack | `sample_id`, `depth`, `location_id` (integer) |
#' | `locations` | a line of a function | `location_id`, `function_id`, `line` (integer) |
#' | `functions` | a function in a file | `function_id` (integer), `name`, `system_name`, `filename` (character), `start_line` (integer) |
#'
#' - `source_type` is `"rprof"`, `"pprof"`, `"otlp"`, or any other word. `source_uri` is a path or `NA`.
#'   `source_timestamp` is the time at which the run began, in seconds since 1970, or `NA`. Rprof files do
#'   not contain it; for them it is the latest time at which the run can have begun, see [read_rprof()].
#' - In `sample_values`, the combination of `sample_id` and `type` is unique, and values are finite. A
#'   time profile has one row for each sample: value 1, type `samples`, unit `count`.
#' - In `sample_locations`, the combination of `sample_id` and `depth` is unique. Depth 1 is the innermost
#'   frame, the function that was running. A sample may have no frames.
#' - `function_id` in `locations` is `NA` for an address without a symbol. `line` is 0 or `NA` if
#'   unknown, and not negative.
#' - `name` and `system_name` are not empty and not `NA`. They are equal for R functions. `filename` is
#'   empty and `start_line` is 0 if unknown.
#'
#' @section Memory profiles:
#' `Rprof(memory.profiling = TRUE)` records four values with each sample. Three of them are the memory in
#' use, in bytes: `vsize_small` and `vsize_large` for small and large vectors, `nodes` for everything
#' else. Sums of these are meaningless. The fourth, `duplications`, is the number of copied vectors since
#' the previous sample.
#'
#' Two more values, in bytes, are computed from the changes of the three since the previous sample, as
#' [summaryRprof()] does it: `alloc_size` is the sum of increases, `dealloc_size` the sum of decreases.
#' Both are 0 for the first sample of a run.
#'
#' @section Further columns:
#' These columns exist only if at least one source has the information.
#'
#' | table | column | |
#' |---|---|---|
#' | `sources` | `.period` (double), `.period_type`, `.period_unit` (character) | the interval between two samples, such as 20000, `cpu`, `microseconds` |
#' | | `.duration_nanos` (double) | the duration, in nanoseconds, below 2^63 |
#' | | `.time_nanos` (character) | the start in nanoseconds, if seconds cannot represent it exactly |
#' | | `.default_type` (character) | the type of values that a viewer shows first |
#' | | `.drop_frames`, `.keep_frames` (character) | regular expressions for [drop_frames()] |
#' | | `.doc_url` (character) | the address of a description |
#' | | `.memory_profiling`, `.gc_profiling`, `.line_profiling` (logical) | the options of a run of [Rprof()] |
#' | | `.scope_id` (integer) | the recorder, a row of `.scopes` |
#' | | `.profile_id` (character) | an id, in hexadecimal digits |
#' | | `.dropped_attributes_count` (double) | the number of attributes that the recorder omitted |
#' | | `.original_payload` (character) | the file from which the profile was made, in base64 |
#' | | `.original_payload_format` (character) | the format of that file, such as `pprof` |
#' | `samples` | `.toplevel_filename` (character), `.toplevel_line` (integer) | the place that called the outermost frame, if Rprof recorded it |
#' | | `.timestamp` (double) | the time of the sample, in seconds since 1970, until the year 2262 |
#' | | `.time_nanos` (character) | the same in nanoseconds, if seconds cannot represent it exactly |
#' | | `.trace_id`, `.span_id` (character) | the span of a trace that was active, in hexadecimal digits |
#' | `locations` | `.column` (integer) | the column of the line, 0 if unknown |
#' | | `.inlined` (logical) | whether the frame was inlined into the next outer one, with which it shares its machine code |
#' | | `.frame_type` (character) | `"r"` for R code, `"native"` for machine code, or another type such as OpenTelemetry's `"cpython"`, `"jvm"`, `"kernel"`; `NA` if unknown |
#' | | `.mapping_id` (integer), `.address` (character) | where the machine code is |
#' | | `.is_folded` (logical) | whether several functions share the code, so that the function may be another one |
#' | | `.native_id` (character) | the id in the file, unless ids are 1, 2, 3, ... |
#' | `functions` | `.has_name`, `.has_system_name` (logical) | `FALSE` if the file has no such name, and the column repeats the other name or is `<unknown>` |
#' | | `.native_id` (character) | the id in the file, unless ids are 1, 2, 3, ... |
#'
#' @section Further tables:
#' These tables exist only if at least one source has the information.
#'
#' | table | a row is | columns |
#' |---|---|---|
#' | `.mappings` | a file mapped into memory, the program itself first | `mapping_id` (integer), `memory_start`, `memory_limit`, `file_offset` (addresses), `filename`, `build_id` (character), `has_functions`, `has_filenames`, `has_line_numbers`, `has_inline_frames` (logical): what has been resolved already; optionally `native_id` |
#' | `.sample_types` | a type of values that a source has, in the order of its file | `source_id` (integer), `type`, `unit` (character) as in `sample_values`, `recorded` (character): the name in the file; if two types have the same name there, `type` of the second one includes the unit |
#' | `.files` | a `#File` line of an Rprof file | `source_id`, `number` (integer), `filename` (character), `sample_id` (integer): the sample that follows, `NA` at the end |
#' | `.labels` | a label of a sample | `sample_id` (integer), `key`, `str` (character), `num` (double), `unit` (character); `type`, `value` (character) as for attributes, for values that are neither text nor integer |
#' | `.comments` | a comment | `source_id` (integer), `comment` (character) |
#' | `.resources` | what was profiled, such as a service on a host | `resource_id` (integer), `schema_url` (character), `dropped_attributes_count` (double) |
#' | `.scopes` | what recorded profiles of a resource | `scope_id`, `resource_id` (integer), `name`, `version`, `schema_url` (character), `dropped_attributes_count` (double) |
#' | `.resource_attributes`, `.scope_attributes` | an attribute of a resource or scope | `resource_id` or `scope_id` (integer), `key`, `type`, `value` (character) |
#' | `.source_attributes`, `.mapping_attributes`, `.location_attributes` | an attribute of a source, mapping or location | `source_id`, `mapping_id` or `location_id` (integer), `key`, `type`, `value`, `unit` (character) |
#' | `.resource_entities` | an entity, such as a host, that attributes of a resource describe | `resource_id` (integer), `schema_url`, `type` (character), `id_keys`, `description_keys` (character): the keys of its identifying and describing attributes, as JSON arrays such as `["host.id"]` |
#' | `.problems` | a problem found while reading | see [profile_problems()] |
#'
#' @section Attributes:
#' Attributes of OpenTelemetry have values of several types. The column `value` contains the value as a
#' string, the column `type` tells how to interpret it.
#'
#' | `type` | `value` |
#' |---|---|
#' | `string` | the string itself |
#' | `bool` | `true` or `false` |
#' | `int` | a whole number of 64 bits, in decimal |
#' | `double` | a number with as many digits as necessary, such as `0.25` or `1e300`, or `NaN`, `Infinity`, `-Infinity` |
#' | `bytes` | bytes in base64 |
#' | `array` | elements in OpenTelemetry's JSON encoding, such as `[{"stringValue":"a"},{"intValue":"1"}]` |
#' | `kvlist` | keys and values in the same encoding, such as `[{"key":"a","value":{"boolValue":true}}]` |
#' | `empty` | an empty string: the attribute has a key and no value |
#'
#' @section Numbers and addresses that R cannot represent:
#' A number that does not fit its column is also stored, in decimal, in a character column of the same name
#' with the suffix `_exact`. It takes precedence as long as the column itself is unchanged, so you can
#' ignore it when you edit. These columns are `.value_exact` in `sample_values`, `num_exact` in `.labels`,
#' `.period_exact` and `.duration_nanos_exact` in `sources`, for numbers above 2^53; `.line_exact` and
#' `.column_exact` in `locations` and `.start_line_exact` in `functions`, for negative numbers and numbers
#' above 2^31 - 1, where the column is 0.
#'
#' Addresses are character, `0x` followed by hexadecimal digits.
#'
#' @section Columns and tables of your own:
#' You can add columns and tables if their names begin with a dot. A column named `source_id`,
#' `sample_id`, `location_id`, `function_id`, `mapping_id`, `resource_id` or `scope_id` in such a table
#' refers to the table with that key: [combine_profiles()], [compact_profile()] and [copy_profile_to()]
#' keep the references correct.
#'
#' @section Types of columns:
#' Columns have the types above, without a class and without dimensions. All functions also accept
#' equivalent types: `integer64` with numbers that the type can represent exactly (up to 2^31 - 1, or 2^53
#' for double), date-times (`POSIXct`) and dates in `source_timestamp` and `.timestamp`, `I()`, and classes
#' that wrap the type itself, such as those of the packages glue and fs. Any other type, such as
#' `difftime` or a matrix, is an error, except in columns of your own. [compact_profile()] also accepts
#' factors, and whole numbers stored as double.
#'
#' @section Version 1.0:
#' Versions 1.x of this package used other tables, which all functions accept and which readers return for
#' `version = "1.0"`. They are, in this order:
#'
#' | table | columns |
#' |---|---|
#' | `meta` | `key`, `value` (character): one row, key `version`, value `1.0` |
#' | `sample_types` | `type`, `unit` (character): one row, `samples` and `count` |
#' | `samples` | `value` (integer, 1 or more), `locations` (list of tibbles with one integer column, `location_id`, innermost first) |
#' | `locations` | as in version 2.0 |
#' | `functions` | as in version 2.0 |
#'
#' A hidden component contains the origin: `.rprof`, a list with the text of `header` and `files`, or
#' `.msg` for pprof. `.problems` is as in version 2.0, see [profile_problems()]. Samples with equal stacks
#' share one tibble. Memory figures, labels, sources and time stamps cannot be represented.
#'
#' @seealso [validate_profile()], [profile_v2_from_v1()], [dm_from_profile()]
#' @name profile_data
NULL
