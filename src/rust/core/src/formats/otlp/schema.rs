//! The schema of the messages, used to convert JSON to protocol buffers: the name, number and type
//! of each field.
//!
//! In JSON, field names are in lower camel case.

use super::proto::{
    any_value, data, dictionary, entity_ref, function, key_value, key_value_and_unit, line, link,
    location, mapping, profile, resource, resource_profiles, sample, scope, scope_profiles, stack,
    value_type, values,
};

pub struct MessageType {
    pub fields: &'static [FieldType],
}

#[derive(Clone, Copy)]
pub struct FieldType {
    pub name: &'static str,
    pub number: u32,
    pub kind: Kind,
    pub repeated: bool,
}

#[derive(Clone, Copy)]
pub enum Kind {
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

use Kind::{
    Bool, Bytes, Double, Fixed64, Hex, Int32, Int64, Message, ProfileId, Text, Uint32, Uint64,
};

const fn one(number: u32, name: &'static str, kind: Kind) -> FieldType {
    FieldType {
        name,
        number,
        kind,
        repeated: false,
    }
}

const fn many(number: u32, name: &'static str, kind: Kind) -> FieldType {
    FieldType {
        name,
        number,
        kind,
        repeated: true,
    }
}

/// Declares message types and their fields.
macro_rules! messages {
    ($($name:ident { $($field:expr,)* })*) => {
        $(pub static $name: MessageType = MessageType { fields: &[$($field,)*] };)*
    };
}

messages! {
    DATA {
        many(data::RESOURCE_PROFILES, "resourceProfiles", Message(&RESOURCE_PROFILES)),
        one(data::DICTIONARY, "dictionary", Message(&DICTIONARY)),
    }
    DICTIONARY {
        many(dictionary::MAPPING_TABLE, "mappingTable", Message(&MAPPING)),
        many(dictionary::LOCATION_TABLE, "locationTable", Message(&LOCATION)),
        many(dictionary::FUNCTION_TABLE, "functionTable", Message(&FUNCTION)),
        many(dictionary::LINK_TABLE, "linkTable", Message(&LINK)),
        many(dictionary::STRING_TABLE, "stringTable", Text),
        many(dictionary::ATTRIBUTE_TABLE, "attributeTable", Message(&KEY_VALUE_AND_UNIT)),
        many(dictionary::STACK_TABLE, "stackTable", Message(&STACK)),
    }
    RESOURCE_PROFILES {
        one(resource_profiles::RESOURCE, "resource", Message(&RESOURCE)),
        many(resource_profiles::SCOPE_PROFILES, "scopeProfiles", Message(&SCOPE_PROFILES)),
        one(resource_profiles::SCHEMA_URL, "schemaUrl", Text),
    }
    RESOURCE {
        many(resource::ATTRIBUTES, "attributes", Message(&KEY_VALUE)),
        one(resource::DROPPED_ATTRIBUTES_COUNT, "droppedAttributesCount", Uint32),
        many(resource::ENTITY_REFS, "entityRefs", Message(&ENTITY_REF)),
    }
    ENTITY_REF {
        one(entity_ref::SCHEMA_URL, "schemaUrl", Text),
        one(entity_ref::TYPE, "type", Text),
        many(entity_ref::ID_KEYS, "idKeys", Text),
        many(entity_ref::DESCRIPTION_KEYS, "descriptionKeys", Text),
    }
    SCOPE_PROFILES {
        one(scope_profiles::SCOPE, "scope", Message(&SCOPE)),
        many(scope_profiles::PROFILES, "profiles", Message(&PROFILE)),
        one(scope_profiles::SCHEMA_URL, "schemaUrl", Text),
    }
    SCOPE {
        one(scope::NAME, "name", Text),
        one(scope::VERSION, "version", Text),
        many(scope::ATTRIBUTES, "attributes", Message(&KEY_VALUE)),
        one(scope::DROPPED_ATTRIBUTES_COUNT, "droppedAttributesCount", Uint32),
    }
    PROFILE {
        one(profile::SAMPLE_TYPE, "sampleType", Message(&VALUE_TYPE)),
        many(profile::SAMPLES, "samples", Message(&SAMPLE)),
        one(profile::TIME_UNIX_NANO, "timeUnixNano", Fixed64),
        one(profile::DURATION_NANO, "durationNano", Uint64),
        one(profile::PERIOD_TYPE, "periodType", Message(&VALUE_TYPE)),
        one(profile::PERIOD, "period", Int64),
        one(profile::PROFILE_ID, "profileId", ProfileId),
        one(profile::DROPPED_ATTRIBUTES_COUNT, "droppedAttributesCount", Uint32),
        one(profile::ORIGINAL_PAYLOAD_FORMAT, "originalPayloadFormat", Text),
        one(profile::ORIGINAL_PAYLOAD, "originalPayload", Bytes),
        many(profile::ATTRIBUTE_INDICES, "attributeIndices", Int32),
    }
    VALUE_TYPE {
        one(value_type::TYPE_STRINDEX, "typeStrindex", Int32),
        one(value_type::UNIT_STRINDEX, "unitStrindex", Int32),
    }
    SAMPLE {
        one(sample::STACK_INDEX, "stackIndex", Int32),
        many(sample::ATTRIBUTE_INDICES, "attributeIndices", Int32),
        one(sample::LINK_INDEX, "linkIndex", Int32),
        many(sample::VALUES, "values", Int64),
        many(sample::TIMESTAMPS_UNIX_NANO, "timestampsUnixNano", Fixed64),
    }
    MAPPING {
        one(mapping::MEMORY_START, "memoryStart", Uint64),
        one(mapping::MEMORY_LIMIT, "memoryLimit", Uint64),
        one(mapping::FILE_OFFSET, "fileOffset", Uint64),
        one(mapping::FILENAME_STRINDEX, "filenameStrindex", Int32),
        many(mapping::ATTRIBUTE_INDICES, "attributeIndices", Int32),
    }
    STACK {
        many(stack::LOCATION_INDICES, "locationIndices", Int32),
    }
    LOCATION {
        one(location::MAPPING_INDEX, "mappingIndex", Int32),
        one(location::ADDRESS, "address", Uint64),
        many(location::LINES, "lines", Message(&LINE)),
        many(location::ATTRIBUTE_INDICES, "attributeIndices", Int32),
    }
    LINE {
        one(line::FUNCTION_INDEX, "functionIndex", Int32),
        one(line::LINE, "line", Int64),
        one(line::COLUMN, "column", Int64),
    }
    FUNCTION {
        one(function::NAME_STRINDEX, "nameStrindex", Int32),
        one(function::SYSTEM_NAME_STRINDEX, "systemNameStrindex", Int32),
        one(function::FILENAME_STRINDEX, "filenameStrindex", Int32),
        one(function::START_LINE, "startLine", Int64),
    }
    LINK {
        one(link::TRACE_ID, "traceId", Hex),
        one(link::SPAN_ID, "spanId", Hex),
    }
    KEY_VALUE_AND_UNIT {
        one(key_value_and_unit::KEY_STRINDEX, "keyStrindex", Int32),
        one(key_value_and_unit::VALUE, "value", Message(&ANY_VALUE)),
        one(key_value_and_unit::UNIT_STRINDEX, "unitStrindex", Int32),
    }
    KEY_VALUE {
        one(key_value::KEY, "key", Text),
        one(key_value::VALUE, "value", Message(&ANY_VALUE)),
        one(key_value::KEY_STRINDEX, "keyStrindex", Int32),
    }
    ANY_VALUE {
        one(any_value::STRING_VALUE, "stringValue", Text),
        one(any_value::BOOL_VALUE, "boolValue", Bool),
        one(any_value::INT_VALUE, "intValue", Int64),
        one(any_value::DOUBLE_VALUE, "doubleValue", Double),
        one(any_value::ARRAY_VALUE, "arrayValue", Message(&ARRAY_VALUE)),
        one(any_value::KVLIST_VALUE, "kvlistValue", Message(&KEY_VALUE_LIST)),
        one(any_value::BYTES_VALUE, "bytesValue", Bytes),
        one(any_value::STRING_VALUE_STRINDEX, "stringValueStrindex", Int32),
    }
    ARRAY_VALUE {
        many(values::VALUES, "values", Message(&ANY_VALUE)),
    }
    KEY_VALUE_LIST {
        many(values::VALUES, "values", Message(&KEY_VALUE)),
    }
}
