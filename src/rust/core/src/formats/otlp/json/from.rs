//! From JSON to the message that it stands for.

use crate::attribute_value::DEEPEST;
use crate::error::{Error, Position};
use crate::formats::message::LARGEST;
use crate::formats::otlp::layout::older;
use crate::formats::otlp::schema::{DATA, FieldType, Kind, MessageType};
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryGrow, ensure};
use crate::message;
use crate::protobuf::encode;
use crate::text::decoded;
use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD, HEXLOWER_PERMISSIVE};
use memchr::{memchr, memchr2, memrchr};
use serde_core::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use std::cell::Cell;
use std::fmt;
use std::result::Result;

/// Names of fields that only versions before 1.8 have.
const OLD_NAMES: [&str; 6] = [
    "attributeUnits",
    "defaultSampleTypeIndex",
    "locationIndices",
    "locationsStartIndex",
    "profile",
    "stringTable",
];
/// Fields and elements between two questions whether to stop.
const ELEMENTS: usize = 1000;
const WHAT: &str = "a message";
/// Objects in each other: three for each level of a value, and a few above it.
const DEEPEST_OBJECT: usize = 3 * DEEPEST + 20;
/// So many characters of a text are quoted.
const QUOTED: usize = 40;

/// A message that JSON was turned into.
pub struct Text {
    pub message: Vec<u8>,
    /// Where there may be others.
    pub line: Option<u64>,
}

/// The messages of a text: one, or one on each line, as exporters to files write them.
pub fn messages(text: &[u8], input: &str, stop: Stop) -> Result<Vec<Text>, Error> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let context = Context {
        stop,
        interrupted: Cell::new(false),
        short: Cell::new(false),
        old: Cell::new(false),
        seen: Cell::new(0),
        depth: Cell::new(0),
    };
    match message(text, &context) {
        Ok(message) => [Text {
            message,
            line: None,
        }]
        .into_iter()
        .try_vec("messages"),
        Err(_) if context.interrupted.get() => Err(Error::Interrupted),
        Err(_) if context.short.get() => Err(Error::Memory(WHAT)),
        Err(_) if context.old.get() => Err(older(input, "1.7")),
        Err(error) => {
            let lines = (1..).zip(text.split(|&byte| byte == b'\n'));
            let mut full = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
            // If the first line is no whole message, it is one message that is wrong.
            let one = |line| message(line, &context);
            let first = full.next().and_then(|(n, line)| Some((n, one(line).ok()?)));
            let Some((number, message)) = first else {
                return Err(match context.interrupted.get() {
                    true => Error::Interrupted,
                    false if context.short.get() => Error::Memory(WHAT),
                    false => wrong(&error, 0, input),
                });
            };
            let first = Text {
                message,
                line: Some(number),
            };
            let mut messages = [first].into_iter().try_vec("messages")?;
            for (number, line) in full {
                let message = one(line).map_err(|error| match context.interrupted.get() {
                    true => Error::Interrupted,
                    false if context.short.get() => Error::Memory(WHAT),
                    false if context.old.get() => older(input, "1.7"),
                    false => wrong(&error, number - 1, input),
                })?;
                let text = Text {
                    message,
                    line: Some(number),
                };
                messages.try_push(text, "messages")?;
            }
            Ok(messages)
        }
    }
}

fn wrong(error: &serde_json::Error, lines_before: u64, input: &str) -> Error {
    let text = message!("{error}");
    let end = text.rfind(" at line ").unwrap_or(text.len());
    Error::Parse {
        input: message!("{input}"),
        position: Position::Line(lines_before + error.line() as u64),
        message: message!("At column {}: {}.", error.column(), &text[..end]),
    }
}

struct Context<'s> {
    stop: Stop<'s>,
    interrupted: Cell<bool>,
    /// Memory ran out.
    short: Cell<bool>,
    /// It is of a version that is not read.
    old: Cell<bool>,
    /// Fields and elements so far.
    seen: Cell<usize>,
    /// Objects that are open.
    depth: Cell<usize>,
}

impl Context<'_> {
    /// An error for which [`messages()`] puts [`Error::Memory`].
    fn no_memory<E: serde_core::de::Error>(&self) -> E {
        self.short.set(true);
        E::custom("there is no memory for it")
    }

    /// The next field or element.
    fn next<E: serde_core::de::Error>(&self) -> Result<(), E> {
        let seen = self.seen.replace(self.seen.get().wrapping_add(1));
        if seen % ELEMENTS == 0 && cancel::check(self.stop).is_err() {
            self.interrupted.set(true);
            return Err(E::custom("interrupted"));
        }
        Ok(())
    }
}

fn message(text: &[u8], context: &Context) -> serde_json::Result<Vec<u8>> {
    // Where it has escapes, a text is copied into a vector that doubles.
    let room = ensure(3 * longest_escaped(text), WHAT);
    room.map_err(|_| context.no_memory::<serde_json::Error>())?;
    let mut out = Vec::new();
    let mut json = serde_json::Deserializer::from_slice(text);
    // Its own limit ends before that of values, so they are counted here.
    json.disable_recursion_limit();
    context.depth.set(0);
    let whole = Whole {
        type_: &DATA,
        out: &mut out,
        context,
    };
    whole.deserialize(&mut json)?;
    json.end()?;
    Ok(out)
}

/// The length of the longest text with escapes.
fn longest_escaped(text: &[u8]) -> usize {
    let mut longest = 0;
    let mut at = 0;
    while let Some(escape) = memchr(b'\\', &text[at..]).map(|escape| at + escape) {
        let start = memrchr(b'"', &text[at..escape]).map_or(at, |quote| at + quote);
        at = escape;
        while let Some(next) = memchr2(b'\\', b'"', &text[at..]).map(|next| at + next) {
            let is_end = text[next] == b'"';
            at = (next + if is_end { 1 } else { 2 }).min(text.len());
            if is_end {
                break;
            }
        }
        longest = longest.max(at - start);
    }
    longest
}

/// An object, whose fields are appended.
struct Whole<'o, 'c> {
    type_: &'static MessageType,
    out: &'o mut Vec<u8>,
    context: &'c Context<'c>,
}

impl<'de> DeserializeSeed<'de> for Whole<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Whole<'_, '_> {
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
        while let Some(name) = map.next_key_seed(Name(self.type_))? {
            match name {
                Known::Field(field) => map.next_value_seed(OfField {
                    field,
                    out: self.out,
                    context: self.context,
                })?,
                Known::Old => {
                    self.context.old.set(true);
                    return Err(A::Error::custom("an old version"));
                }
                // So the rules have it: readers of older versions see newer fields.
                Known::Not => map.next_value::<IgnoredAny>().map(|_| ())?,
            }
            self.context.next()?;
        }
        self.context.depth.set(depth);
        Ok(())
    }
}

/// The name of a field, looked up where it stands.
struct Name(&'static MessageType);

enum Known {
    Field(FieldType),
    Old,
    Not,
}

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Known;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Known, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Known;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E>(self, name: &str) -> Result<Known, E> {
        Ok(
            match self.0.fields.iter().find(|field| field.name == name) {
                Some(&field) => Known::Field(field),
                None if OLD_NAMES.contains(&name) => Known::Old,
                None => Known::Not,
            },
        )
    }
}

/// What a field holds. Null is as if it were not there.
struct OfField<'o, 'c> {
    field: FieldType,
    out: &'o mut Vec<u8>,
    context: &'c Context<'c>,
}

impl<'de> DeserializeSeed<'de> for OfField<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl OfField<'_, '_> {
    fn room<E: serde_core::de::Error>(&mut self, bytes: usize) -> Result<(), E> {
        let room = self.out.try_reserve(bytes + 2 * encode::MAX_VARINT_FIELD);
        room.map_err(|_| self.context.no_memory::<E>())?;
        match self.out.len() + bytes > LARGEST {
            true => Err(E::custom("it is more than a message of 2 GiB can hold")),
            false => Ok(()),
        }
    }

    fn not_text<E: serde_core::de::Error>(&self, text: &str) -> E {
        let end = text.char_indices().nth(QUOTED);
        let start = end.and_then(|(end, _)| text.get(..end));
        match start {
            None => self.unexpected(format_args!("the text {text:?}")),
            Some(start) => self.unexpected(format_args!("the text {start:?}…")),
        }
    }

    fn number<E: serde_core::de::Error>(mut self, number: i128) -> Result<(), E> {
        self.room(0)?;
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
        self.room(0)?;
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
        self.room(bytes.len())?;
        encode::put_length_header(self.out, self.field.number, bytes.len());
        // There is room.
        self.out
            .try_extend(bytes, "a message")
            .map_err(|_| self.context.no_memory::<E>())
    }

    fn hexadecimal<E: serde_core::de::Error>(self, text: &str) -> Result<(), E> {
        match decoded(&HEXLOWER_PERMISSIVE, text.as_bytes())
            .map_err(|_| self.context.no_memory::<E>())?
        {
            Some(bytes) => self.bytes(&bytes),
            None => Err(self.not_text(text)),
        }
    }

    fn unexpected<E: serde_core::de::Error>(&self, found: fmt::Arguments) -> E {
        let wanted = match self.field.kind {
            _ if self.field.repeated => "an array",
            Kind::Message(_) => "an object",
            Kind::Text => "a text",
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

impl<'de> Visitor<'de> for OfField<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "what `{}` holds", self.field.name)
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: serde_core::de::Error>(mut self, value: bool) -> Result<(), E> {
        match self.field.kind {
            Kind::Bool if !self.field.repeated => {
                self.room(0)?;
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
            return Err(self.unexpected(format_args!("a text")));
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
                    None => Err(self.unexpected(format_args!("some other text"))),
                }
            }
            Kind::Double => match text {
                "NaN" => self.double(f64::NAN),
                "Infinity" => self.double(f64::INFINITY),
                "-Infinity" => self.double(f64::NEG_INFINITY),
                _ => match text.parse::<f64>() {
                    Ok(value) if value.is_finite() => self.double(value),
                    _ => Err(self.not_text(text)),
                },
            },
            Kind::Bool | Kind::Message(_) => Err(self.unexpected(format_args!("a text"))),
            _ => match text.parse() {
                Ok(number) => self.number(number),
                Err(_) => Err(self.not_text(text)),
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
        // How long it is stands before it, so it is moved once that is known.
        let start = self.out.len();
        let whole = Whole {
            type_,
            out: self.out,
            context: self.context,
        };
        whole.visit_map(map)?;
        self.room(0)?;
        let end = self.out.len();
        encode::put_length_header(self.out, self.field.number, end - start);
        self.out[start..].rotate_left(end - start);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        if self.field.name == "sampleType" {
            // It was an array until version 1.8 gave each type a profile of its own.
            self.context.old.set(true);
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
            let seed = OfField {
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
