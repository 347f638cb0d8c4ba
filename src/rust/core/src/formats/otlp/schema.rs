//! The schema of the messages, used to convert JSON to protocol buffers: the name, number and type
//! of each field.
//!
//! In JSON, field names are in lower camel case. A few fields had other names before version 1.9,
//! which are listed as well. Field numbers are those of the current version.

use super::layout::COMMENTS_OF_JSON;

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
    /// In JSON, base64 according to the specification, but some writers use hexadecimal digits.
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
        many(1, "resourceProfiles", Message(&RESOURCE_PROFILES)),
        one(2, "dictionary", Message(&DICTIONARY)),
    }
    DICTIONARY {
        many(1, "mappingTable", Message(&MAPPING)),
        many(2, "locationTable", Message(&LOCATION)),
        many(3, "functionTable", Message(&FUNCTION)),
        many(4, "linkTable", Message(&LINK)),
        many(5, "stringTable", Text),
        many(6, "attributeTable", Message(&KEY_VALUE_AND_UNIT)),
        many(7, "stackTable", Message(&STACK)),
    }
    RESOURCE_PROFILES {
        one(1, "resource", Message(&RESOURCE)),
        many(2, "scopeProfiles", Message(&SCOPE_PROFILES)),
        one(3, "schemaUrl", Text),
    }
    RESOURCE {
        many(1, "attributes", Message(&KEY_VALUE)),
        one(2, "droppedAttributesCount", Uint32),
        many(3, "entityRefs", Message(&ENTITY_REF)),
    }
    ENTITY_REF {
        one(1, "schemaUrl", Text),
        one(2, "type", Text),
        many(3, "idKeys", Text),
        many(4, "descriptionKeys", Text),
    }
    SCOPE_PROFILES {
        one(1, "scope", Message(&SCOPE)),
        many(2, "profiles", Message(&PROFILE)),
        one(3, "schemaUrl", Text),
    }
    SCOPE {
        one(1, "name", Text),
        one(2, "version", Text),
        many(3, "attributes", Message(&KEY_VALUE)),
        one(4, "droppedAttributesCount", Uint32),
    }
    PROFILE {
        one(1, "sampleType", Message(&VALUE_TYPE)),
        many(2, "samples", Message(&SAMPLE)),
        many(2, "sample", Message(&SAMPLE)),
        one(3, "timeUnixNano", Fixed64),
        one(4, "durationNano", Uint64),
        one(5, "periodType", Message(&VALUE_TYPE)),
        one(6, "period", Int64),
        one(7, "profileId", ProfileId),
        one(8, "droppedAttributesCount", Uint32),
        one(9, "originalPayloadFormat", Text),
        one(10, "originalPayload", Bytes),
        many(11, "attributeIndices", Int32),
        many(COMMENTS_OF_JSON, "commentStrindices", Int32),
    }
    VALUE_TYPE {
        one(1, "typeStrindex", Int32),
        one(2, "unitStrindex", Int32),
    }
    SAMPLE {
        one(1, "stackIndex", Int32),
        many(2, "attributeIndices", Int32),
        one(3, "linkIndex", Int32),
        many(4, "values", Int64),
        many(5, "timestampsUnixNano", Fixed64),
    }
    MAPPING {
        one(1, "memoryStart", Uint64),
        one(2, "memoryLimit", Uint64),
        one(3, "fileOffset", Uint64),
        one(4, "filenameStrindex", Int32),
        many(5, "attributeIndices", Int32),
    }
    STACK {
        many(1, "locationIndices", Int32),
    }
    LOCATION {
        one(1, "mappingIndex", Int32),
        one(2, "address", Uint64),
        many(3, "lines", Message(&LINE)),
        many(3, "line", Message(&LINE)),
        many(4, "attributeIndices", Int32),
    }
    LINE {
        one(1, "functionIndex", Int32),
        one(2, "line", Int64),
        one(3, "column", Int64),
    }
    FUNCTION {
        one(1, "nameStrindex", Int32),
        one(2, "systemNameStrindex", Int32),
        one(3, "filenameStrindex", Int32),
        one(4, "startLine", Int64),
    }
    LINK {
        one(1, "traceId", Hex),
        one(2, "spanId", Hex),
    }
    KEY_VALUE_AND_UNIT {
        one(1, "keyStrindex", Int32),
        one(2, "value", Message(&ANY_VALUE)),
        one(3, "unitStrindex", Int32),
    }
    KEY_VALUE {
        one(1, "key", Text),
        one(2, "value", Message(&ANY_VALUE)),
        one(3, "keyStrindex", Int32),
    }
    ANY_VALUE {
        one(1, "stringValue", Text),
        one(2, "boolValue", Bool),
        one(3, "intValue", Int64),
        one(4, "doubleValue", Double),
        one(5, "arrayValue", Message(&ARRAY_VALUE)),
        one(6, "kvlistValue", Message(&KEY_VALUE_LIST)),
        one(7, "bytesValue", Bytes),
        one(8, "stringValueStrindex", Int32),
    }
    ARRAY_VALUE {
        many(1, "values", Message(&ANY_VALUE)),
    }
    KEY_VALUE_LIST {
        many(1, "values", Message(&KEY_VALUE)),
    }
}
