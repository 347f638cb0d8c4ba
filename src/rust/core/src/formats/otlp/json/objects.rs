//! Converts JSON objects to the fields of a message, by the table of all messages
//! (`proto.rs`).
//!
//! Serde calls a visitor for each value. Fields are appended to the message in the order of
//! the JSON; no tree of values is created.

use super::context::Context;
use crate::attribute_value::DEEPEST;
use crate::formats::message::LARGEST;
use crate::formats::otlp::proto::{FieldType, Kind, MessageType};
use crate::limits::memory::TryGrow;
use crate::protobuf::encode;
use crate::text::decoded;
use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD, HEXLOWER_PERMISSIVE};
use serde_core::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use std::fmt;
use std::result::Result;

/// Names of fields that only versions before 1.9 have.
const OLD_NAMES: [&str; 9] = [
    "attributeUnits",
    "commentStrindices",
    "defaultSampleTypeIndex",
    "line",
    "locationIndices",
    "locationsStartIndex",
    "profile",
    "sample",
    "stringTable",
];
/// The maximum depth of objects: three for each level of a value, and a few around it.
const DEEPEST_OBJECT: usize = 3 * DEEPEST + 20;
/// The maximum number of characters of a string that errors quote.
const QUOTED: usize = 40;

/// Appends the fields of an object to `out`.
pub struct ObjectSeed<'o, 'c> {
    pub type_: &'static MessageType,
    pub out: &'o mut Vec<u8>,
    pub context: &'c Context<'c>,
}

impl<'de> DeserializeSeed<'de> for ObjectSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ObjectSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.context.next()?;
        let depth = self.context.depth.get();
        if depth >= DEEPEST_OBJECT {
            return Err(A::Error::custom(format_args!(
                "a value is nested more than {DEEPEST} times"
            )));
        }
        self.context.depth.set(depth + 1);
        // A bit for each field number. A message would join the values of a field that occurs twice.
        let mut seen = 0_u64;
        while let Some(name) = map.next_key_seed(FieldNameSeed(self.type_))? {
            match name {
                FieldName::Known(field) => {
                    let bit = 1_u64 << (field.number % 64);
                    if seen & bit != 0 {
                        return Err(A::Error::custom(format_args!(
                            "the field `{}` occurs twice in this object",
                            field.name
                        )));
                    }
                    seen |= bit;
                    map.next_value_seed(FieldSeed {
                        field,
                        out: self.out,
                        context: self.context,
                    })?;
                }
                FieldName::Outdated => {
                    self.context.outdated.set(true);
                    return Err(A::Error::custom("an old version"));
                }
                FieldName::SnakeCase(name) => {
                    return Err(A::Error::custom(format_args!(
                        "the field `{}` must be `{name}`: in OTLP/JSON, names of fields are in lowerCamelCase",
                        SnakeCase(name)
                    )));
                }
                // The specification requires readers to ignore fields of newer versions.
                FieldName::Unknown => map.next_value::<IgnoredAny>().map(|_| ())?,
            }
            self.context.next()?;
        }
        self.context.depth.set(depth);
        Ok(())
    }
}

/// Looks up the name of a field.
struct FieldNameSeed(&'static MessageType);

enum FieldName {
    Known(FieldType),
    /// The field belongs to a version that is not supported.
    Outdated,
    /// The name of a field in the form of the protocol buffers, such as `resource_profiles`. It is not ignored, since
    /// all data would be lost.
    SnakeCase(&'static str),
    Unknown,
}

/// Writes a name in lowerCamelCase with underscores.
struct SnakeCase(&'static str);

impl fmt::Display for SnakeCase {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0
            .chars()
            .try_for_each(|c| match c.is_ascii_uppercase() {
                true => write!(f, "_{}", c.to_ascii_lowercase()),
                false => write!(f, "{c}"),
            })
    }
}

/// Whether a name with underscores is `camel`, a name in lowerCamelCase.
fn is_snake_case(name: &str, camel: &str) -> bool {
    let mut bytes = name.bytes();
    let is_same = camel
        .bytes()
        .all(|wanted| match wanted.is_ascii_uppercase() {
            true => bytes.next() == Some(b'_') && bytes.next() == Some(wanted.to_ascii_lowercase()),
            false => bytes.next() == Some(wanted),
        });
    is_same && bytes.next().is_none() && name != camel
}

impl<'de> DeserializeSeed<'de> for FieldNameSeed {
    type Value = FieldName;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<FieldName, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for FieldNameSeed {
    type Value = FieldName;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E>(self, name: &str) -> Result<FieldName, E> {
        Ok(
            match self.0.fields.iter().find(|field| field.name == name) {
                Some(&field) => FieldName::Known(field),
                None if OLD_NAMES.contains(&name) => FieldName::Outdated,
                None if name.contains('_') => self.snake_case(name),
                None => FieldName::Unknown,
            },
        )
    }
}

impl FieldNameSeed {
    fn snake_case(&self, name: &str) -> FieldName {
        let mut fields = self.0.fields.iter();
        match fields.find(|field| is_snake_case(name, field.name)) {
            Some(field) => FieldName::SnakeCase(field.name),
            None if OLD_NAMES.iter().any(|old| is_snake_case(name, old)) => FieldName::Outdated,
            None => FieldName::Unknown,
        }
    }
}

/// Appends a field with its value to `out`; null is the same as a missing field.
struct FieldSeed<'o, 'c> {
    field: FieldType,
    out: &'o mut Vec<u8>,
    context: &'c Context<'c>,
}

impl<'de> DeserializeSeed<'de> for FieldSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl FieldSeed<'_, '_> {
    /// Reserves memory for a field with `bytes` bytes of content.
    fn reserve<E: serde_core::de::Error>(&mut self, bytes: usize) -> Result<(), E> {
        let reserved = self.out.try_reserve(bytes + 2 * encode::MAX_VARINT_FIELD);
        reserved.map_err(|_| self.context.no_memory::<E>())?;
        match self.out.len() + bytes > LARGEST {
            true => Err(E::custom("the message is larger than 2 GiB")),
            false => Ok(()),
        }
    }

    fn invalid_string<E: serde_core::de::Error>(&self, text: &str) -> E {
        let end = text.char_indices().nth(QUOTED);
        let start = end.and_then(|(end, _)| text.get(..end));
        match start {
            None => self.unexpected(format_args!("the string {text:?}")),
            Some(start) => self.unexpected(format_args!("the string {start:?}…")),
        }
    }

    fn number<E: serde_core::de::Error>(mut self, number: i128) -> Result<(), E> {
        self.reserve(0)?;
        let name = self.field.name;
        let (fits, wanted) = match self.field.kind {
            Kind::Int32 => (i32::try_from(number).is_ok(), "32 bits"),
            Kind::Uint32 => (u32::try_from(number).is_ok(), "32 bits, not negative"),
            Kind::Int64 => (i64::try_from(number).is_ok(), "64 bits"),
            Kind::Uint64 | Kind::Fixed64 => {
                (u64::try_from(number).is_ok(), "64 bits, not negative")
            }
            Kind::Double => return self.double(number as f64),
            _ => return Err(self.unexpected(format_args!("the number {number}"))),
        };
        if !fits {
            return Err(E::custom(format_args!(
                "`{name}` must be a whole number of {wanted}, not {number}"
            )));
        }
        match self.field.kind {
            Kind::Fixed64 => encode::put_fixed64(self.out, self.field.number, number as u64),
            _ => encode::put_int(self.out, self.field.number, number as i64),
        }
        Ok(())
    }

    fn double<E: serde_core::de::Error>(mut self, value: f64) -> Result<(), E> {
        self.reserve(0)?;
        let is_whole = value.fract() == 0.0 && value.abs() < 1e30;
        match self.field.kind {
            Kind::Double => encode::put_fixed64(self.out, self.field.number, value.to_bits()),
            // `1e3` is a whole number, too.
            _ if is_whole => return self.number(value as i128),
            _ => return Err(self.unexpected(format_args!("the number {value}"))),
        }
        Ok(())
    }

    fn bytes<E: serde_core::de::Error>(mut self, bytes: &[u8]) -> Result<(), E> {
        self.reserve(bytes.len())?;
        encode::put_length_header(self.out, self.field.number, bytes.len());
        self.out
            .try_extend(bytes)
            .map_err(|_| self.context.no_memory::<E>())
    }

    fn hexadecimal<E: serde_core::de::Error>(self, text: &str) -> Result<(), E> {
        match decoded(&HEXLOWER_PERMISSIVE, text.as_bytes())
            .map_err(|_| self.context.no_memory::<E>())?
        {
            Some(bytes) => self.bytes(&bytes),
            None => Err(self.invalid_string(text)),
        }
    }

    fn unexpected<E: serde_core::de::Error>(&self, found: fmt::Arguments) -> E {
        let wanted = match self.field.kind {
            _ if self.field.repeated => "an array",
            Kind::Message(_) => "an object",
            Kind::Text => "a string",
            Kind::Bytes | Kind::ProfileId => "bytes in base64",
            Kind::Hex => "hexadecimal digits, two for each byte",
            Kind::Bool => "true or false",
            Kind::Double => "a number",
            _ => "a whole number",
        };
        E::custom(format_args!(
            "`{}` must be {wanted}, not {found}",
            self.field.name
        ))
    }
}

impl<'de> Visitor<'de> for FieldSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "the value of `{}`", self.field.name)
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: serde_core::de::Error>(mut self, value: bool) -> Result<(), E> {
        match self.field.kind {
            Kind::Bool if !self.field.repeated => {
                self.reserve(0)?;
                encode::put_uint(self.out, self.field.number, u64::from(value));
                Ok(())
            }
            _ => Err(self.unexpected(format_args!("{value}"))),
        }
    }

    fn visit_i64<E: serde_core::de::Error>(self, value: i64) -> Result<(), E> {
        match self.field.repeated {
            true => Err(self.unexpected(format_args!("the number {value}"))),
            false => self.number(value.into()),
        }
    }

    fn visit_u64<E: serde_core::de::Error>(self, value: u64) -> Result<(), E> {
        match self.field.repeated {
            true => Err(self.unexpected(format_args!("the number {value}"))),
            false => self.number(value.into()),
        }
    }

    fn visit_f64<E: serde_core::de::Error>(self, value: f64) -> Result<(), E> {
        match self.field.repeated {
            true => Err(self.unexpected(format_args!("the number {value}"))),
            false => self.double(value),
        }
    }

    fn visit_str<E: serde_core::de::Error>(self, text: &str) -> Result<(), E> {
        if self.field.repeated {
            return Err(self.unexpected(format_args!("a string")));
        }
        match self.field.kind {
            Kind::Text => self.bytes(text.as_bytes()),
            Kind::ProfileId if text.len() == 32 => self.hexadecimal(text),
            Kind::Hex => self.hexadecimal(text),
            Kind::Bytes | Kind::ProfileId => {
                let text = text.trim_end_matches('=').as_bytes();
                let bytes = match decoded(&BASE64_NOPAD, text)
                    .map_err(|_| self.context.no_memory::<E>())?
                {
                    Some(bytes) => Some(bytes),
                    None => decoded(&BASE64URL_NOPAD, text)
                        .map_err(|_| self.context.no_memory::<E>())?,
                };
                match bytes {
                    Some(bytes) => self.bytes(&bytes),
                    None => Err(self.unexpected(format_args!("another string"))),
                }
            }
            Kind::Double => match text {
                "NaN" => self.double(f64::NAN),
                "Infinity" => self.double(f64::INFINITY),
                "-Infinity" => self.double(f64::NEG_INFINITY),
                _ => match text.parse::<f64>() {
                    Ok(value) if value.is_finite() => self.double(value),
                    _ => Err(self.invalid_string(text)),
                },
            },
            Kind::Bool | Kind::Message(_) => Err(self.unexpected(format_args!("a string"))),
            _ => match text.parse() {
                Ok(number) => self.number(number),
                Err(_) => Err(self.invalid_string(text)),
            },
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, map: A) -> Result<(), A::Error> {
        let Kind::Message(type_) = self.field.kind else {
            return Err(self.unexpected(format_args!("an object")));
        };
        if self.field.repeated {
            return Err(self.unexpected(format_args!("an object")));
        }
        // The length precedes the content, which is moved when the length is known.
        let start = self.out.len();
        let object = ObjectSeed {
            type_,
            out: self.out,
            context: self.context,
        };
        object.visit_map(map)?;
        self.reserve(0)?;
        let end = self.out.len();
        encode::put_length_header(self.out, self.field.number, end - start);
        self.out[start..].rotate_left(end - start);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        if self.field.name == "sampleType" {
            // Until version 1.7 it was an array; now each type has its own profile.
            self.context.outdated.set(true);
        }
        if !self.field.repeated {
            return Err(self.unexpected(format_args!("an array")));
        }
        let element = FieldType {
            repeated: false,
            ..self.field
        };
        loop {
            self.context.next()?;
            let seed = FieldSeed {
                field: element,
                out: self.out,
                context: self.context,
            };
            if seq.next_element_seed(seed)?.is_none() {
                return Ok(());
            }
        }
    }
}
