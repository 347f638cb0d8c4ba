//! The messages and their fields, and the keys of known attributes.
//!
//! The messages are defined in `opentelemetry/proto/profiles/v1development/profiles.proto` and the
//! files that it imports. Protocol buffers are read and written by the numbers of fields. JSON is
//! converted to and from protocol buffers by the whole table, with the names and types of fields.

/// The fields of a message.
pub struct MessageType {
    pub fields: &'static [FieldType],
}

#[derive(Clone, Copy)]
pub struct FieldType {
    pub name: &'static str,
    pub number: u32,
    pub kind: FieldKind,
    pub repeated: bool,
}

#[derive(Clone, Copy)]
pub enum FieldKind {
    Bool,
    /// In JSON, integers of 32 bits are numbers, and integers of 64 bits are strings.
    Int32,
    Uint32,
    Int64,
    Uint64,
    Fixed64,
    Double,
    Text,
    /// Base64 in JSON.
    Bytes,
    /// The id of a trace or span: hexadecimal digits in JSON.
    Hex,
    /// In JSON, the specification lists only the ids of traces and spans as hexadecimal, so this one
    /// is base64. But OpenTelemetry's collector writes hexadecimal digits, and refuses messages with
    /// others. Therefore both are read, and hexadecimal digits are written: readers of base64 accept
    /// them, too.
    ProfileId,
    Message(&'static MessageType),
}

use FieldKind::{
    Bool, Bytes, Double, Fixed64, Hex, Int32, Int64, Message, ProfileId, Text, Uint32, Uint64,
};

/// Whether a field is repeated.
const ONE: bool = false;
const MANY: bool = true;

/// Declares messages. A field is declared by the constant for its number, the number, its name in
/// JSON, whether it is repeated, and its type.
macro_rules! messages {
    ($($(#[$doc:meta])* $message:ident {
        $($field:ident $number:literal $name:literal $repeated:ident $kind:expr,)*
    })*) => {$(
        $(#[$doc])*
        pub mod $message {
            use $crate::formats::otlp::proto::*;

            $(#[allow(dead_code, reason = "not every field is read by its number")]
            pub const $field: u32 = $number;)*
            pub static SCHEMA: MessageType = MessageType {
                fields: &[$(FieldType {
                    name: $name,
                    number: $number,
                    kind: $kind,
                    repeated: $repeated,
                },)*],
            };
        }
    )*};
}

messages! {
    /// `ProfilesData`, and `ExportProfilesServiceRequest`, which is the same on the wire.
    data {
        RESOURCE_PROFILES 1 "resourceProfiles" MANY Message(&resource_profiles::SCHEMA),
        DICTIONARY 2 "dictionary" ONE Message(&dictionary::SCHEMA),
    }

    dictionary {
        MAPPING_TABLE 1 "mappingTable" MANY Message(&mapping::SCHEMA),
        LOCATION_TABLE 2 "locationTable" MANY Message(&location::SCHEMA),
        FUNCTION_TABLE 3 "functionTable" MANY Message(&function::SCHEMA),
        LINK_TABLE 4 "linkTable" MANY Message(&link::SCHEMA),
        STRING_TABLE 5 "stringTable" MANY Text,
        ATTRIBUTE_TABLE 6 "attributeTable" MANY Message(&key_value_and_unit::SCHEMA),
        STACK_TABLE 7 "stackTable" MANY Message(&stack::SCHEMA),
    }

    resource_profiles {
        RESOURCE 1 "resource" ONE Message(&resource::SCHEMA),
        SCOPE_PROFILES 2 "scopeProfiles" MANY Message(&scope_profiles::SCHEMA),
        SCHEMA_URL 3 "schemaUrl" ONE Text,
    }

    resource {
        ATTRIBUTES 1 "attributes" MANY Message(&key_value::SCHEMA),
        DROPPED_ATTRIBUTES_COUNT 2 "droppedAttributesCount" ONE Uint32,
        ENTITY_REFS 3 "entityRefs" MANY Message(&entity_ref::SCHEMA),
    }

    entity_ref {
        SCHEMA_URL 1 "schemaUrl" ONE Text,
        TYPE 2 "type" ONE Text,
        ID_KEYS 3 "idKeys" MANY Text,
        DESCRIPTION_KEYS 4 "descriptionKeys" MANY Text,
    }

    scope_profiles {
        SCOPE 1 "scope" ONE Message(&scope::SCHEMA),
        PROFILES 2 "profiles" MANY Message(&profile::SCHEMA),
        SCHEMA_URL 3 "schemaUrl" ONE Text,
    }

    scope {
        NAME 1 "name" ONE Text,
        VERSION 2 "version" ONE Text,
        ATTRIBUTES 3 "attributes" MANY Message(&key_value::SCHEMA),
        DROPPED_ATTRIBUTES_COUNT 4 "droppedAttributesCount" ONE Uint32,
    }

    profile {
        SAMPLE_TYPE 1 "sampleType" ONE Message(&value_type::SCHEMA),
        SAMPLES 2 "samples" MANY Message(&sample::SCHEMA),
        TIME_UNIX_NANO 3 "timeUnixNano" ONE Fixed64,
        DURATION_NANO 4 "durationNano" ONE Uint64,
        PERIOD_TYPE 5 "periodType" ONE Message(&value_type::SCHEMA),
        PERIOD 6 "period" ONE Int64,
        PROFILE_ID 7 "profileId" ONE ProfileId,
        DROPPED_ATTRIBUTES_COUNT 8 "droppedAttributesCount" ONE Uint32,
        ORIGINAL_PAYLOAD_FORMAT 9 "originalPayloadFormat" ONE Text,
        ORIGINAL_PAYLOAD 10 "originalPayload" ONE Bytes,
        ATTRIBUTE_INDICES 11 "attributeIndices" MANY Int32,
    }

    value_type {
        TYPE_STRINDEX 1 "typeStrindex" ONE Int32,
        UNIT_STRINDEX 2 "unitStrindex" ONE Int32,
    }

    /// Since version 1.10; see `SampleFields` in `layout.rs` for version 1.9.
    sample {
        STACK_INDEX 1 "stackIndex" ONE Int32,
        ATTRIBUTE_INDICES 2 "attributeIndices" MANY Int32,
        LINK_INDEX 3 "linkIndex" ONE Int32,
        VALUES 4 "values" MANY Int64,
        TIMESTAMPS_UNIX_NANO 5 "timestampsUnixNano" MANY Fixed64,
    }

    mapping {
        MEMORY_START 1 "memoryStart" ONE Uint64,
        MEMORY_LIMIT 2 "memoryLimit" ONE Uint64,
        FILE_OFFSET 3 "fileOffset" ONE Uint64,
        FILENAME_STRINDEX 4 "filenameStrindex" ONE Int32,
        ATTRIBUTE_INDICES 5 "attributeIndices" MANY Int32,
    }

    stack {
        LOCATION_INDICES 1 "locationIndices" MANY Int32,
    }

    location {
        MAPPING_INDEX 1 "mappingIndex" ONE Int32,
        ADDRESS 2 "address" ONE Uint64,
        LINES 3 "lines" MANY Message(&line::SCHEMA),
        ATTRIBUTE_INDICES 4 "attributeIndices" MANY Int32,
    }

    line {
        FUNCTION_INDEX 1 "functionIndex" ONE Int32,
        LINE 2 "line" ONE Int64,
        COLUMN 3 "column" ONE Int64,
    }

    function {
        NAME_STRINDEX 1 "nameStrindex" ONE Int32,
        SYSTEM_NAME_STRINDEX 2 "systemNameStrindex" ONE Int32,
        FILENAME_STRINDEX 3 "filenameStrindex" ONE Int32,
        START_LINE 4 "startLine" ONE Int64,
    }

    link {
        TRACE_ID 1 "traceId" ONE Hex,
        SPAN_ID 2 "spanId" ONE Hex,
    }

    /// Attributes in the dictionary.
    key_value_and_unit {
        KEY_STRINDEX 1 "keyStrindex" ONE Int32,
        VALUE 2 "value" ONE Message(&any_value::SCHEMA),
        UNIT_STRINDEX 3 "unitStrindex" ONE Int32,
    }

    /// Attributes of resources and scopes.
    key_value {
        KEY 1 "key" ONE Text,
        VALUE 2 "value" ONE Message(&any_value::SCHEMA),
        KEY_STRINDEX 3 "keyStrindex" ONE Int32,
    }

    any_value {
        STRING_VALUE 1 "stringValue" ONE Text,
        BOOL_VALUE 2 "boolValue" ONE Bool,
        INT_VALUE 3 "intValue" ONE Int64,
        DOUBLE_VALUE 4 "doubleValue" ONE Double,
        ARRAY_VALUE 5 "arrayValue" ONE Message(&array_value::SCHEMA),
        KVLIST_VALUE 6 "kvlistValue" ONE Message(&key_value_list::SCHEMA),
        BYTES_VALUE 7 "bytesValue" ONE Bytes,
        STRING_VALUE_STRINDEX 8 "stringValueStrindex" ONE Int32,
    }

    array_value {
        VALUES 1 "values" MANY Message(&any_value::SCHEMA),
    }

    key_value_list {
        VALUES 1 "values" MANY Message(&key_value::SCHEMA),
    }
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
