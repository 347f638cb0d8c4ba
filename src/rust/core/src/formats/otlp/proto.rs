//! Field numbers, one module for each message type, and the keys of known attributes.
//!
//! The messages are defined in `opentelemetry/proto/profiles/v1development/profiles.proto` and the
//! files that it imports.

/// `ProfilesData`, and `ExportProfilesServiceRequest`, which is the same on the wire.
pub mod data {
    pub const RESOURCE_PROFILES: u32 = 1;
    pub const DICTIONARY: u32 = 2;
}

pub mod dictionary {
    pub const MAPPING_TABLE: u32 = 1;
    pub const LOCATION_TABLE: u32 = 2;
    pub const FUNCTION_TABLE: u32 = 3;
    pub const LINK_TABLE: u32 = 4;
    pub const STRING_TABLE: u32 = 5;
    pub const ATTRIBUTE_TABLE: u32 = 6;
    pub const STACK_TABLE: u32 = 7;
}

pub mod resource_profiles {
    pub const RESOURCE: u32 = 1;
    pub const SCOPE_PROFILES: u32 = 2;
    pub const SCHEMA_URL: u32 = 3;
}

pub mod resource {
    pub const ATTRIBUTES: u32 = 1;
    pub const DROPPED_ATTRIBUTES_COUNT: u32 = 2;
    pub const ENTITY_REFS: u32 = 3;
}

pub mod entity_ref {
    pub const SCHEMA_URL: u32 = 1;
    pub const TYPE: u32 = 2;
    pub const ID_KEYS: u32 = 3;
    pub const DESCRIPTION_KEYS: u32 = 4;
}

pub mod scope_profiles {
    pub const SCOPE: u32 = 1;
    pub const PROFILES: u32 = 2;
    pub const SCHEMA_URL: u32 = 3;
}

pub mod scope {
    pub const NAME: u32 = 1;
    pub const VERSION: u32 = 2;
    pub const ATTRIBUTES: u32 = 3;
    pub const DROPPED_ATTRIBUTES_COUNT: u32 = 4;
}

pub mod profile {
    pub const SAMPLE_TYPE: u32 = 1;
    pub const SAMPLES: u32 = 2;
    pub const TIME_UNIX_NANO: u32 = 3;
    pub const DURATION_NANO: u32 = 4;
    pub const PERIOD_TYPE: u32 = 5;
    pub const PERIOD: u32 = 6;
    pub const PROFILE_ID: u32 = 7;
    pub const DROPPED_ATTRIBUTES_COUNT: u32 = 8;
    pub const ORIGINAL_PAYLOAD_FORMAT: u32 = 9;
    pub const ORIGINAL_PAYLOAD: u32 = 10;
    pub const ATTRIBUTE_INDICES: u32 = 11;
}

/// Since version 1.10; see [`SampleFields`](super::layout::SampleFields) for version 1.9.
pub mod sample {
    pub const STACK_INDEX: u32 = 1;
    pub const ATTRIBUTE_INDICES: u32 = 2;
    pub const LINK_INDEX: u32 = 3;
    pub const VALUES: u32 = 4;
    pub const TIMESTAMPS_UNIX_NANO: u32 = 5;
}

pub mod value_type {
    pub const TYPE_STRINDEX: u32 = 1;
    pub const UNIT_STRINDEX: u32 = 2;
}

pub mod mapping {
    pub const MEMORY_START: u32 = 1;
    pub const MEMORY_LIMIT: u32 = 2;
    pub const FILE_OFFSET: u32 = 3;
    pub const FILENAME_STRINDEX: u32 = 4;
    pub const ATTRIBUTE_INDICES: u32 = 5;
}

pub mod stack {
    pub const LOCATION_INDICES: u32 = 1;
}

pub mod location {
    pub const MAPPING_INDEX: u32 = 1;
    pub const ADDRESS: u32 = 2;
    pub const LINES: u32 = 3;
    pub const ATTRIBUTE_INDICES: u32 = 4;
}

pub mod line {
    pub const FUNCTION_INDEX: u32 = 1;
    pub const LINE: u32 = 2;
    pub const COLUMN: u32 = 3;
}

pub mod function {
    pub const NAME_STRINDEX: u32 = 1;
    pub const SYSTEM_NAME_STRINDEX: u32 = 2;
    pub const FILENAME_STRINDEX: u32 = 3;
    pub const START_LINE: u32 = 4;
}

pub mod link {
    pub const TRACE_ID: u32 = 1;
    pub const SPAN_ID: u32 = 2;
}

/// Attributes in the dictionary.
pub mod key_value_and_unit {
    pub const KEY_STRINDEX: u32 = 1;
    pub const VALUE: u32 = 2;
    pub const UNIT_STRINDEX: u32 = 3;
}

/// Attributes of resources and scopes.
pub mod key_value {
    pub const KEY: u32 = 1;
    pub const VALUE: u32 = 2;
    pub const KEY_STRINDEX: u32 = 3;
}

pub mod any_value {
    pub const STRING_VALUE: u32 = 1;
    pub const BOOL_VALUE: u32 = 2;
    pub const INT_VALUE: u32 = 3;
    pub const DOUBLE_VALUE: u32 = 4;
    pub const ARRAY_VALUE: u32 = 5;
    pub const KVLIST_VALUE: u32 = 6;
    pub const BYTES_VALUE: u32 = 7;
    pub const STRING_VALUE_STRINDEX: u32 = 8;
}

/// `ArrayValue` and `KeyValueList`.
pub mod values {
    pub const VALUES: u32 = 1;
}

/// Keys of attributes that the reader or the writer interprets. They are defined by the semantic
/// conventions `pprof`, `profile` and `process`, except those that start with `r.`, which this
/// project defines.
pub mod keys {
    pub const FRAME_TYPE: &str = "profile.frame.type";
    pub const IS_FOLDED: &str = "pprof.location.is_folded";
    pub const HAS_FUNCTIONS: &str = "pprof.mapping.has_functions";
    pub const HAS_FILENAMES: &str = "pprof.mapping.has_filenames";
    pub const HAS_LINE_NUMBERS: &str = "pprof.mapping.has_line_numbers";
    pub const HAS_INLINE_FRAMES: &str = "pprof.mapping.has_inline_frames";
    /// The build id in the notes of an ELF file.
    pub const BUILD_ID: &str = "process.executable.build_id.gnu";
    /// An array of strings. The OpenTelemetry Collector instead writes a string attribute for each
    /// comment, and appends `.0`, `.1`, … to the key.
    pub const COMMENT: &str = "pprof.profile.comment";
    pub const DROP_FRAMES: &str = "pprof.profile.drop_frames";
    pub const KEEP_FRAMES: &str = "pprof.profile.keep_frames";
    pub const DOC_URL: &str = "pprof.profile.doc_url";
    pub const DEFAULT_SAMPLE_TYPE: &str = "pprof.scope.default_sample_type";
    pub const SAMPLE_TYPE_ORDER: &str = "pprof.scope.sample_type_order";
    /// What the values of a profile were recorded as, see [`super::recorded`].
    pub const SAMPLE_TYPES: &str = "profile.sample_types";
    /// The period of the source, if the profile has another one: an array of its value, type and unit.
    pub const PERIOD: &str = "profile.period";
    /// The mappings of the file to which no location refers: an array of two arrays. The first has their file names and
    /// build ids; the second has an array of seven integers for each mapping: its position among all mappings of the
    /// file, from 0; start; limit; offset; the positions of file name and build id in the first array; and the sum of 1
    /// if functions are known, 2 for file names, 4 for line numbers, and 8 for inlined functions.
    pub const UNUSED_MAPPINGS: &str = "profile.unused_mappings";
    /// The options of `Rprof()`, such as `memory gc`, or `none`.
    pub const RPROF_OPTIONS: &str = "r.rprof.options";
    /// The file that `Rprof()` wrote.
    pub const RPROF_FILE: &str = "r.rprof.file";
}

/// What values of the type `samples/count` with a period of type `cpu/nanoseconds` were recorded as.
pub mod recorded {
    /// The CPU time: the value times the period.
    pub const CPU: &str = "cpu";
    /// The number of samples, and the CPU time.
    pub const SAMPLES_AND_CPU: &str = "samples,cpu";
}
