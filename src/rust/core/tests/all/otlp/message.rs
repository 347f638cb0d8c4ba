//! The messages of OTLP profiles, as opentelemetry-proto defines them.
//!
//! Each message lists its fields once: number, name in JSON, and a reference to the value. The
//! encoders for protocol buffers (`wire.rs`) and JSON (`json.rs`) both use these lists. Nothing here
//! comes from the crate under test, so that the tests are independent of it.

/// The versions of the wire format that can be read: v1.9, and v1.10, which is the same as v1.11.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    V9,
    V11,
}

pub const LAYOUTS: [Layout; 2] = [Layout::V9, Layout::V11];

/// A reference to the value of a field; the variant is its type in protocol buffers. `Id` is
/// `bytes`, too, but hexadecimal in JSON.
pub enum Slot<'a> {
    Int32(&'a mut i32),
    Int64(&'a mut i64),
    Uint32(&'a mut u32),
    Uint64(&'a mut u64),
    Fixed64(&'a mut u64),
    String(&'a mut String),
    Bytes(&'a mut Vec<u8>),
    Id(&'a mut Vec<u8>),
    Int32s(&'a mut Vec<i32>),
    Int64s(&'a mut Vec<i64>),
    Fixed64s(&'a mut Vec<u64>),
    Strings(&'a mut Vec<String>),
    One(&'a mut dyn Message),
    Many(&'a mut dyn Messages),
    Any(&'a mut AnyValue),
}

pub type Field<'a> = (u64, &'static str, Slot<'a>);

pub trait Message {
    /// The fields of a layout, sorted by number. Panics if a field that the layout does not have is
    /// set.
    fn fields(&mut self, layout: Layout) -> Vec<Field<'_>>;
}

/// A repeated field of messages.
pub trait Messages {
    fn add(&mut self) -> &mut dyn Message;
    fn all(&mut self) -> Vec<&mut dyn Message>;
}

impl<M: Message + Default> Messages for Vec<M> {
    fn add(&mut self) -> &mut dyn Message {
        self.push(M::default());
        self.last_mut().unwrap()
    }

    fn all(&mut self) -> Vec<&mut dyn Message> {
        self.iter_mut().map(|m| m as &mut dyn Message).collect()
    }
}

/// Visits every field that is not a message, with the path of the message and the name of the field.
pub fn walk(message: &mut dyn Message, place: &str, visit: &mut dyn FnMut(&str, &str, Slot)) {
    for (_, name, slot) in message.fields(Layout::V11) {
        match slot {
            Slot::One(inner) => walk(inner, &format!("{place}.{name}"), visit),
            Slot::Many(items) => {
                for (i, item) in items.all().into_iter().enumerate() {
                    walk(item, &format!("{place}.{name}[{i}]"), visit);
                }
            }
            slot => visit(place, name, slot),
        }
    }
}

/// Declares a message: `field: Type = Slot number "jsonName"`.
macro_rules! message {
    ($(#[$doc:meta])* $name:ident {
        $($field:ident: $type:ty = $slot:ident $number:tt $json:literal),* $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name {
            $(pub $field: $type),*
        }

        impl Message for $name {
            fn fields(&mut self, layout: Layout) -> Vec<Field<'_>> {
                let mut fields: Vec<Field> = Vec::new();
                $(match $number.number(layout) {
                    0 => assert_eq!(self.$field, <$type>::default(), "no place for {}", $json),
                    number => fields.push((number, $json, Slot::$slot(&mut self.$field))),
                })*
                fields.sort_by_key(|field| field.0);
                fields
            }
        }
    };
}

/// The number of a field in each layout: a single number for all, or one each for v1.9 and v1.11,
/// with 0 if the layout does not have the field.
trait Number {
    fn number(&self, layout: Layout) -> u64;
}

impl Number for u64 {
    fn number(&self, _: Layout) -> u64 {
        *self
    }
}

impl Number for [u64; 2] {
    fn number(&self, layout: Layout) -> u64 {
        self[layout as usize]
    }
}

message!(
    /// `ProfilesData`, and `ExportProfilesServiceRequest`, which has the same fields.
    Data {
        resource_profiles: Vec<ResourceProfiles> = Many 1 "resourceProfiles",
        dictionary: Dictionary = One 2 "dictionary",
    }
);

message!(ResourceProfiles {
    resource: Resource = One 1 "resource",
    scope_profiles: Vec<ScopeProfiles> = Many 2 "scopeProfiles",
    schema_url: String = String 3 "schemaUrl",
});

message!(Resource {
    attributes: Vec<KeyValue> = Many 1 "attributes",
    dropped_attributes_count: u32 = Uint32 2 "droppedAttributesCount",
    entity_refs: Vec<EntityRef> = Many 3 "entityRefs",
});

message!(EntityRef {
    schema_url: String = String 1 "schemaUrl",
    type_: String = String 2 "type",
    id_keys: Vec<String> = Strings 3 "idKeys",
    description_keys: Vec<String> = Strings 4 "descriptionKeys",
});

message!(ScopeProfiles {
    scope: InstrumentationScope = One 1 "scope",
    profiles: Vec<Profile> = Many 2 "profiles",
    schema_url: String = String 3 "schemaUrl",
});

message!(InstrumentationScope {
    name: String = String 1 "name",
    version: String = String 2 "version",
    attributes: Vec<KeyValue> = Many 3 "attributes",
    dropped_attributes_count: u32 = Uint32 4 "droppedAttributesCount",
});

message!(Profile {
    sample_type: ValueType = One 1 "sampleType",
    samples: Vec<Sample> = Many 2 "samples",
    time_unix_nano: u64 = Fixed64 3 "timeUnixNano",
    duration_nano: u64 = Uint64 4 "durationNano",
    period_type: ValueType = One 5 "periodType",
    period: i64 = Int64 6 "period",
    profile_id: Vec<u8> = Id 7 "profileId",
    dropped_attributes_count: u32 = Uint32 8 "droppedAttributesCount",
    original_payload_format: String = String 9 "originalPayloadFormat",
    original_payload: Vec<u8> = Bytes 10 "originalPayload",
    attribute_indices: Vec<i32> = Int32s 11 "attributeIndices",
});

message!(ValueType {
    type_strindex: i32 = Int32 1 "typeStrindex",
    unit_strindex: i32 = Int32 2 "unitStrindex",
});

message!(Sample {
    stack_index: i32 = Int32 1 "stackIndex",
    attribute_indices: Vec<i32> = Int32s [3, 2] "attributeIndices",
    link_index: i32 = Int32 [4, 3] "linkIndex",
    values: Vec<i64> = Int64s [2, 4] "values",
    timestamps_unix_nano: Vec<u64> = Fixed64s 5 "timestampsUnixNano",
});

message!(Dictionary {
    mapping_table: Vec<Mapping> = Many 1 "mappingTable",
    location_table: Vec<Location> = Many 2 "locationTable",
    function_table: Vec<Function> = Many 3 "functionTable",
    link_table: Vec<Link> = Many 4 "linkTable",
    string_table: Vec<String> = Strings 5 "stringTable",
    attribute_table: Vec<KeyValueAndUnit> = Many 6 "attributeTable",
    stack_table: Vec<Stack> = Many 7 "stackTable",
});

message!(Mapping {
    memory_start: u64 = Uint64 1 "memoryStart",
    memory_limit: u64 = Uint64 2 "memoryLimit",
    file_offset: u64 = Uint64 3 "fileOffset",
    filename_strindex: i32 = Int32 4 "filenameStrindex",
    attribute_indices: Vec<i32> = Int32s 5 "attributeIndices",
});

message!(Location {
    mapping_index: i32 = Int32 1 "mappingIndex",
    address: u64 = Uint64 2 "address",
    lines: Vec<Line> = Many 3 "lines",
    attribute_indices: Vec<i32> = Int32s 4 "attributeIndices",
});

message!(Line {
    function_index: i32 = Int32 1 "functionIndex",
    line: i64 = Int64 2 "line",
    column: i64 = Int64 3 "column",
});

message!(Function {
    name_strindex: i32 = Int32 1 "nameStrindex",
    system_name_strindex: i32 = Int32 2 "systemNameStrindex",
    filename_strindex: i32 = Int32 3 "filenameStrindex",
    start_line: i64 = Int64 4 "startLine",
});

message!(Link {
    trace_id: Vec<u8> = Id 1 "traceId",
    span_id: Vec<u8> = Id 2 "spanId",
});

message!(Stack {
    location_indices: Vec<i32> = Int32s 1 "locationIndices",
});

message!(KeyValueAndUnit {
    key_strindex: i32 = Int32 1 "keyStrindex",
    value: AnyValue = Any 2 "value",
    unit_strindex: i32 = Int32 3 "unitStrindex",
});

message!(KeyValue {
    key: String = String 1 "key",
    value: AnyValue = Any 2 "value",
    key_strindex: i32 = Int32 [0, 3] "keyStrindex",
});

message!(
    /// The message of lists of keys and values. [`AnyValue`] contains the pairs directly, so this
    /// message is used only for encoding and decoding.
    KeyValueList {
        values: Vec<KeyValue> = Many 1 "values",
    }
);

/// A value of an attribute. A missing value is `Empty`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnyValue {
    #[default]
    Empty,
    String(String),
    Bool(bool),
    Int(i64),
    Double(Double),
    Array(Vec<AnyValue>),
    Kvlist(Vec<KeyValue>),
    Bytes(Vec<u8>),
    StringStrindex(i32),
}

/// A double that is compared by its bits, so that NaN equals itself and -0 differs from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Double(u64);

impl Double {
    pub fn new(value: f64) -> Double {
        Double(value.to_bits())
    }

    pub fn get(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl std::fmt::Debug for Double {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{:?}", self.get())
    }
}
