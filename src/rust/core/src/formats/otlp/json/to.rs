//! Converts a message to JSON.

use crate::error::{Error, Result};
use crate::formats::otlp::proto::{FieldType, Kind, MessageType, data};
use crate::io::save;
use crate::limits::cancel::{Stop, Watch};
use crate::limits::memory::{Growing, TryGrow, with_room};
use crate::protobuf::decode::{DecodeError, Field, Message, Result as WireResult};
use crate::text;
use data_encoding::{BASE64, Encoding, HEXLOWER};
use std::fmt;
use std::io::Write;

const CHUNK: usize = 1 << 16;

/// Writes a message that the writer created as JSON, on one line.
pub fn write(message: &[u8], out: &mut dyn Write, stop: Stop) -> Result<()> {
    let mut writer = Writer {
        out,
        buffer: with_room(2 * CHUNK)?,
        watch: Watch::new(stop),
    };
    let written = writer.message(Message::new(message), &data::SCHEMA);
    written.map_err(|error| match error {
        DecodeError::Other(error) => error,
        DecodeError::At { message, .. } => Error::Unsupported(message),
    })?;
    writer.text("\n")?;
    writer.flush()
}

struct Writer<'o, 's> {
    out: &'o mut dyn Write,
    buffer: Vec<u8>,
    watch: Watch<'s>,
}

impl Writer<'_, '_> {
    fn flush(&mut self) -> Result<()> {
        self.out.write_all(&self.buffer).map_err(save::failed)?;
        self.buffer.clear();
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<()> {
        self.buffer.try_extend(text.as_bytes())
    }

    /// Writes the fields in the order of the schema, since the elements of a repeated field may
    /// be separated by other fields.
    fn message(&mut self, message: Message, type_: &MessageType) -> WireResult<()> {
        self.text("{")?;
        let mut first = true;
        for field in type_.fields {
            let mut rest = message;
            let mut count = 0;
            while let Some(found) = rest.field()? {
                if found.number != field.number {
                    continue;
                }
                if count == 0 {
                    self.text(if first { "\"" } else { ",\"" })?;
                    self.text(field.name)?;
                    self.text(if field.repeated { "\":[" } else { "\":" })?;
                    first = false;
                } else if field.repeated {
                    self.text(",")?;
                }
                count += 1;
                self.field(&found, field)?;
            }
            if count > 0 && field.repeated {
                self.text("]")?;
            }
        }
        self.text("}")?;
        Ok(())
    }

    fn field(&mut self, found: &Field, field: &FieldType) -> WireResult<()> {
        self.watch.reach(found.at)?;
        if self.buffer.len() > CHUNK {
            self.flush()?;
        }
        match field.kind {
            Kind::Message(type_) => self.message(found.message()?, type_)?,
            Kind::Text => {
                self.text("\"")?;
                for chunk in found.message()?.bytes().utf8_chunks() {
                    self.put(format_args!("{}", text::Escaped(chunk.valid())))?;
                    if !chunk.invalid().is_empty() {
                        self.text("\u{fffd}")?;
                    }
                }
                self.text("\"")?;
            }
            Kind::Bytes => self.encoded(found.message()?.bytes(), &BASE64)?,
            Kind::Hex | Kind::ProfileId => self.encoded(found.message()?.bytes(), &HEXLOWER)?,
            Kind::Bool => self.text(if found.uint()? != 0 { "true" } else { "false" })?,
            Kind::Double => self.double(f64::from_bits(found.fixed64()?))?,
            Kind::Fixed64 => {
                let mut between = "";
                found.each_fixed64(|number| {
                    self.text(between)?;
                    between = ",";
                    self.quoted(format_args!("{number}"))
                })?;
            }
            Kind::Int32 | Kind::Uint32 | Kind::Int64 | Kind::Uint64 => {
                let mut between = "";
                found.each(|number| {
                    self.text(between)?;
                    between = ",";
                    match field.kind {
                        Kind::Int64 => self.quoted(format_args!("{}", number as i64)),
                        Kind::Uint64 => self.quoted(format_args!("{number}")),
                        Kind::Uint32 => self.put(format_args!("{number}")),
                        _ => self.put(format_args!("{}", number as i64)),
                    }
                })?;
            }
        }
        Ok(())
    }

    fn put(&mut self, text: fmt::Arguments) -> Result<()> {
        let mut out = Growing(&mut self.buffer);
        out.write_fmt(text).map_err(save::failed)
    }

    fn quoted(&mut self, text: fmt::Arguments) -> Result<()> {
        self.put(format_args!("\"{text}\""))
    }

    fn encoded(&mut self, bytes: &[u8], encoding: &Encoding) -> Result<()> {
        self.quoted(format_args!("{}", encoding.encode_display(bytes)))
    }

    fn double(&mut self, value: f64) -> Result<()> {
        if value.is_finite() {
            self.put(format_args!("{value:?}"))
        } else if value.is_nan() {
            self.text("\"NaN\"")
        } else if value > 0.0 {
            self.text("\"Infinity\"")
        } else {
            self.text("\"-Infinity\"")
        }
    }
}
