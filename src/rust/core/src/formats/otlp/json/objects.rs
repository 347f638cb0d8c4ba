//! Converts JSON objects to the fields of a message, by the table of all messages
//! (`proto.rs`).
//!
//! Serde calls a visitor for each value. Fields are appended to the message in the order of
//! the JSON; no tree of values is created.

use super::context::Context;
use crate::attribute_value::DEEPEST;
use crate::error::Error;
use crate::formats::message::LARGEST;
use crate::formats::otlp::layout::older;
use crate::formats::otlp::proto::{FieldKind, FieldType, MessageType};
use crate::limits::memory::TryGrow;
use crate::protobuf::encode;
use crate::text::decoded;
use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD, HEXLOWER_PERMISSIVE};
use serde_core::de::{
    DeserializeSeed, Deserializer, Error as JsonError, IgnoredAny, MapAccess, SeqAccess, Visitor,
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
        while let Some(field) = map.next_key_seed(FieldNameSeed(self.type_, self.context))? {
            if let Some(field) = field {
                let bit = 1_u64 << field.number;
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
            } else {
                // The specification requires readers to ignore fields of newer versions.
                map.next_value::<IgnoredAny>()?;
            }
            self.context.next()?;
        }
        self.context.depth.set(depth);
        Ok(())
    }
}

/// Looks up a field by its name; the value is `None` if it is unknown.
struct FieldNameSeed<'c>(&'static MessageType, &'c Context<'c>);

impl<'de> DeserializeSeed<'de> for FieldNameSeed<'_> {
    type Value = Option<FieldType>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for FieldNameSeed<'_> {
    type Value = Option<FieldType>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: JsonError>(self, name: &str) -> Result<Self::Value, E> {
        let FieldNameSeed(type_, context) = self;
        let find = |is_name: fn(&str, &str) -> bool| {
            let mut fields = type_.fields.iter();
            fields.find(|field| is_name(name, field.name))
        };
        if let Some(&field) = find(|name, camel| name == camel) {
            return Ok(Some(field));
        }
        // A name in the form of the protocol buffers, such as `resource_profiles`, is not ignored,
        // since all data would be lost.
        if let Some(field) = find(is_snake_case) {
            return Err(E::custom(format_args!(
                "the field `{name}` must be `{}`: in OTLP/JSON, names of fields are in lowerCamelCase",
                field.name
            )));
        }
        let is_old = |old: &&str| name == *old || is_snake_case(name, old);
        if OLD_NAMES.iter().any(is_old) {
            return Err(context.fail(older(context.input)));
        }
        Ok(None)
    }
}

/// Whether a name with underscores is `camel`, a name in lowerCamelCase.
fn is_snake_case(name: &str, camel: &str) -> bool {
    let mut bytes = name.bytes();
    let is_same = camel.bytes().all(|wanted| {
        if wanted.is_ascii_uppercase() {
            bytes.next() == Some(b'_') && bytes.next() == Some(wanted.to_ascii_lowercase())
        } else {
            bytes.next() == Some(wanted)
        }
    });
    is_same && bytes.next().is_none()
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
    /// The kind of the value, `None` if it must be an array.
    fn kind(&self) -> Option<FieldKind> {
        Some(self.field.kind).filter(|_| !self.field.repeated)
    }

    /// Reserves memory for a field with `bytes` bytes of content.
    fn reserve<E: JsonError>(&mut self, bytes: usize) -> Result<(), E> {
        let reserved = self.out.try_reserve(bytes + 2 * encode::MAX_VARINT_FIELD);
        reserved.map_err(|_| self.context.fail::<E>(Error::Memory))?;
        if self.out.len() + bytes > LARGEST {
            return Err(E::custom("the message is larger than 2 GiB"));
        }
        Ok(())
    }

    fn invalid_string<E: JsonError>(&self, text: &str) -> E {
        let end = text.char_indices().nth(QUOTED);
        let start = end.and_then(|(end, _)| text.get(..end));
        match start {
            None => self.unexpected(format_args!("the string {text:?}")),
            Some(start) => self.unexpected(format_args!("the string {start:?}…")),
        }
    }

    fn number<E: JsonError>(mut self, number: i128) -> Result<(), E> {
        self.reserve(0)?;
        let (fits, wanted) = match self.kind() {
            Some(FieldKind::Int32) => (i32::try_from(number).is_ok(), "32 bits"),
            Some(FieldKind::Uint32) => (u32::try_from(number).is_ok(), "32 bits, not negative"),
            Some(FieldKind::Int64) => (i64::try_from(number).is_ok(), "64 bits"),
            Some(FieldKind::Uint64 | FieldKind::Fixed64) => {
                (u64::try_from(number).is_ok(), "64 bits, not negative")
            }
            Some(FieldKind::Double) => return self.double(number as f64),
            _ => return Err(self.unexpected(format_args!("the number {number}"))),
        };
        if !fits {
            return Err(E::custom(format_args!(
                "`{}` must be a whole number of {wanted}, not {number}",
                self.field.name
            )));
        }
        match self.field.kind {
            FieldKind::Fixed64 => encode::put_fixed64(self.out, self.field.number, number as u64),
            _ => encode::put_int(self.out, self.field.number, number as i64),
        }
        Ok(())
    }

    fn double<E: JsonError>(mut self, value: f64) -> Result<(), E> {
        self.reserve(0)?;
        let is_whole = value.fract() == 0.0 && value.abs() < 1e30;
        match self.kind() {
            Some(FieldKind::Double) => {
                encode::put_fixed64(self.out, self.field.number, value.to_bits())
            }
            // `1e3` is a whole number, too.
            _ if is_whole => return self.number(value as i128),
            _ => return Err(self.unexpected(format_args!("the number {value}"))),
        }
        Ok(())
    }

    fn bytes<E: JsonError>(mut self, bytes: &[u8]) -> Result<(), E> {
        self.reserve(bytes.len())?;
        encode::put_length_header(self.out, self.field.number, bytes.len());
        self.out
            .try_extend(bytes)
            .map_err(|error| self.context.fail::<E>(error))
    }

    fn hexadecimal<E: JsonError>(self, text: &str) -> Result<(), E> {
        let bytes = decoded(&HEXLOWER_PERMISSIVE, text.as_bytes());
        match bytes.map_err(|error| self.context.fail::<E>(error))? {
            Some(bytes) => self.bytes(&bytes),
            None => Err(self.invalid_string(text)),
        }
    }

    fn unexpected<E: JsonError>(&self, found: fmt::Arguments) -> E {
        let wanted = match self.field.kind {
            _ if self.field.repeated => "an array",
            FieldKind::Message(_) => "an object",
            FieldKind::Text => "a string",
            FieldKind::Bytes | FieldKind::ProfileId => "bytes in base64",
            FieldKind::Hex => "hexadecimal digits, two for each byte",
            FieldKind::Bool => "true or false",
            FieldKind::Double => "a number",
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

    fn visit_bool<E: JsonError>(mut self, value: bool) -> Result<(), E> {
        let Some(FieldKind::Bool) = self.kind() else {
            return Err(self.unexpected(format_args!("{value}")));
        };
        self.reserve(0)?;
        encode::put_uint(self.out, self.field.number, u64::from(value));
        Ok(())
    }

    fn visit_i64<E: JsonError>(self, value: i64) -> Result<(), E> {
        self.number(value.into())
    }

    fn visit_u64<E: JsonError>(self, value: u64) -> Result<(), E> {
        self.number(value.into())
    }

    fn visit_f64<E: JsonError>(self, value: f64) -> Result<(), E> {
        self.double(value)
    }

    fn visit_str<E: JsonError>(self, text: &str) -> Result<(), E> {
        match self.kind() {
            Some(FieldKind::Text) => self.bytes(text.as_bytes()),
            Some(FieldKind::ProfileId) if text.len() == 32 => self.hexadecimal(text),
            Some(FieldKind::Hex) => self.hexadecimal(text),
            Some(FieldKind::Bytes | FieldKind::ProfileId) => {
                let digits = text.trim_end_matches('=').as_bytes();
                for encoding in [&BASE64_NOPAD, &BASE64URL_NOPAD] {
                    let bytes = decoded(encoding, digits);
                    if let Some(bytes) = bytes.map_err(|error| self.context.fail::<E>(error))? {
                        return self.bytes(&bytes);
                    }
                }
                Err(self.unexpected(format_args!("another string")))
            }
            Some(FieldKind::Double) => match text {
                "NaN" => self.double(f64::NAN),
                "Infinity" => self.double(f64::INFINITY),
                "-Infinity" => self.double(f64::NEG_INFINITY),
                _ => match text.parse::<f64>() {
                    Ok(value) if value.is_finite() => self.double(value),
                    _ => Err(self.invalid_string(text)),
                },
            },
            None | Some(FieldKind::Bool | FieldKind::Message(_)) => {
                Err(self.unexpected(format_args!("a string")))
            }
            Some(_) => match text.parse() {
                Ok(number) => self.number(number),
                Err(_) => Err(self.invalid_string(text)),
            },
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, map: A) -> Result<(), A::Error> {
        let Some(FieldKind::Message(type_)) = self.kind() else {
            return Err(self.unexpected(format_args!("an object")));
        };
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
            return Err(self.context.fail(older(self.context.input)));
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
