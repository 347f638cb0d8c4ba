# The help page of the data model: every table and column of a profile.

#' Tables and columns of a profile
#'
#' @description
#' A profile is a named list of [tibbles][tibble::tibble] with class `profile_data`. Seven tables, linked by integer
#' ids, contain the samples. Further tables and columns, whose names begin with a dot, contain additional information of
#' a file format or a recorder.
#'
#' This page describes all of them. `vignette("data-model")` shows how to query and edit them, and
#' [validate_profile()] checks the rules.
#'
#' @section The seven tables:
#' Every profile has `sources`, `samples`, `sample_values`, `sample_locations`, `locations`, `functions` and
#' `meta`. Ids are unique within their table and not `NA`; they need not be consecutive, and rows may be in
#' any order.
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
#' @eval source("tools/help.R")$value$sample_types
#'
#' @section Memory profiles:
#' `Rprof(memory.profiling = TRUE)` records four values with each sample. Three of them are the memory in use, in bytes:
#' `vsize_small` and `vsize_large` for small and large vectors, `nodes` for everything else. Sums over samples of memory
#' in use are meaningless. The fourth value, `duplications`, is the number of copied vectors since the previous sample.
#'
#' Two more values, in bytes, are computed from the changes of the memory in use since the previous sample, as in
#' [summaryRprof()]: `alloc_size` is the sum of increases, `dealloc_size` the sum of decreases. Both are 0 for the first
#' sample of a run. They are lower bounds: memory that was allocated and freed between two samples is missing.
#'
#' What was allocated or copied since the previous sample may belong to functions and lines that ran before.
#'
#' `record_profile(memory = "exact")` records each vector. The source then has the attribute `profile.memory` with the value
#' `exact`, and, besides its samples, a row of `samples` for each stack that has allocated. These rows have no value of
#' `samples`, and are not counted as samples. `alloc_space` and `alloc_objects` are all vectors. `copy_space` and
#' `copy_objects` are the part of them that was copied from other vectors, `inuse_space` and `inuse_objects` the part that
#' was still in use at the end of the recording, `peak_space` and `peak_objects` the part that was in use when most was. A
#' vector that was converted to another type has the label `allocation` with the value `conversion`. `gc_share` is a share
#' of the time of garbage collections, in proportion to the bytes that the stack has allocated since the previous
#' collection. This time is a part of the time of the samples, so it must not be added to it, and it does not say how much
#' faster code without these allocations would be.
#'
#' @eval source("tools/help.R")$value$required_tables
#' @eval source("tools/help.R")$value$optional_tables
#'
#' @section Attributes:
#' Attributes of OpenTelemetry have values of several types. The column `value` contains the value as a
#' string, the column `type` describes how to interpret it.
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
#' Recorders of this package store what they know about a source as attributes with keys that begin with `profile.`. Those
#' about CPU time are described in [record_profile()] and [profile_process()].
#'
#' @section Numbers and addresses that R cannot represent:
#' A number that does not fit its column is also stored, in decimal, in a character column of the same name with the
#' suffix `_exact`. The exact number applies as long as the column itself is unchanged, so you can ignore it when you
#' edit. These columns are `.value_exact` in `sample_values`, `num_exact` in `.labels`, `.period_exact` and
#' `.duration_nanos_exact` in `sources`, for numbers above 2^53; `.line_exact` and `.column_exact` in `locations` and
#' `.start_line_exact` in `functions`, for negative numbers and numbers above 2^31 - 1, where the column is 0.
#'
#' Addresses are character, `0x` followed by hexadecimal digits.
#'
#' @section Columns and tables of your own:
#' You can add tables, and columns to any table. The names of your tables begin with a dot, and so do the names of your
#' columns in the seven tables, such as `.version` in `sources`. All functions, including [store_profiles()], refuse
#' other names with an error of class `profile_error_invalid`, so that a misspelt name is noticed. In a table whose name
#' begins with a dot, columns can have any name, such as `note` in `.notes`.
#'
#' A column named `source_id`, `sample_id`, `location_id`, `function_id`, `mapping_id`, `resource_id` or `scope_id` in
#' such a table refers to the table with that key. [combine_profiles()], [compact_profile()] and [store_profiles()]
#' update it.
#'
#' @section Types of columns:
#' Columns have the types above, without a class and without dimensions. All functions also accept equivalent types:
#' `integer64` with numbers that the type can represent exactly (up to 2^31 - 1, or 2^53 for double), 0 and 1 in logical
#' columns, as databases without a logical type return them, date-times (`POSIXct`, `POSIXlt`) and dates in
#' `source_timestamp` and `.timestamp`, `I()`, and classes that wrap the type itself, such as the classes of the
#' packages glue and fs. Any other type, such as `difftime` or a matrix, is an error, except in columns of your own.
#' [compact_profile()] also accepts factors, and whole numbers stored as double.
#'
#' @section Computed columns:
#' Most stacks occur many times, but `sample_locations` has a row for each frame of each sample. Some columns are
#' therefore not stored, and R computes their values when they are needed: the three columns of this table, the ids in
#' `samples` and `sample_values`, types and units, values that are equal in all rows, and the columns of `as_tibble()`.
#' Use them like any other column. If a function needs all values of a column at once, the column is stored from then
#' on, like an ordinary one. Files, databases, and R processes without this package receive ordinary columns.
#'
#' Functions of this package recognise tables that were not changed since they were returned, and do not check them
#' again. Assigning to cells or dropping rows converts a table to an ordinary one. `object.size()` counts computed
#' values as if they were stored.
#'
#' With `options(profile.lazy = FALSE)`, all columns are stored from the start.
#'
#' @section Version 1.0:
#' Versions 1.x of this package used other tables. All functions accept them, and readers return them for
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
