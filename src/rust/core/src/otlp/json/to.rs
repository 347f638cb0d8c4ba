//! From a message to JSON.

use crate::cancel::Stop;
use crate::error::{Error, Result};
use crate::memory::TryGrow;
use crate::otlp::schema::{DATA, FieldType, Kind, MessageType};
use crate::protobuf::load::Watch;
use crate::protobuf::wire::{Fault, Field, Message, Result as WireResult};
use crate::save;
use data_encoding::{BASE64, HEXLOWER};
use std::io::Write;

const CHUNK: usize = 1 << 16;

/// Writes a message that was made here as JSON, on one line.
pub fn write(message: &[u8], out: &mut dyn Write, stop: Stop) -> Result<()> {
    let mut writer = Writer {
        out,
        buffer: Vec::with_capacity(2 * CHUNK),
        watch: Watch::new(stop),
    };
    let written = writer.message(Message::new(message), &DATA);
    written.map_err(|fault| match fault {
        Fault::Other(error) => error,
        Fault::At { message, .. } => Error::Unsupported(message),
    })?;
    writer.buffer.push(b'\n');
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
        self.buffer.try_extend(text.as_bytes(), "the output")
    }

    /// Field by field in the order of the schema, as the elements of one may stand apart.
    fn message(&mut self, message: Message, type_: &MessageType) -> WireResult<()> {
        self.text("{")?;
        let mut first = true;
        let mut last = 0;
        for field in type_.fields {
            // A second name for the same number is for reading only.
            if field.number == last {
                continue;
            }
            last = field.number;
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
                let text = String::from_utf8_lossy(found.message()?.bytes());
                self.text(&serde_json::Value::from(text).to_string())?;
            }
            Kind::Bytes | Kind::ProfileId => {
                self.quoted(&BASE64.encode(found.message()?.bytes()))?
            }
            Kind::Hex => self.quoted(&HEXLOWER.encode(found.message()?.bytes()))?,
            Kind::Bool => self.text(if found.uint()? != 0 { "true" } else { "false" })?,
            Kind::Double => self.double(f64::from_bits(found.fixed64()?))?,
            Kind::Fixed64 => {
                let mut between = "";
                found.each_fixed64(|number| {
                    self.text(between)?;
                    between = ",";
                    self.quoted(&number.to_string())
                })?;
            }
            Kind::Int32 | Kind::Uint32 | Kind::Int64 | Kind::Uint64 => {
                let mut between = "";
                found.each(|number| {
                    self.text(between)?;
                    between = ",";
                    match field.kind {
                        Kind::Int64 => self.quoted(&(number as i64).to_string()),
                        Kind::Uint64 => self.quoted(&number.to_string()),
                        Kind::Uint32 => self.text(&number.to_string()),
                        _ => self.text(&(number as i64).to_string()),
                    }
                })?;
            }
        }
        Ok(())
    }

    fn quoted(&mut self, text: &str) -> Result<()> {
        self.text("\"")?;
        self.text(text)?;
        self.text("\"")
    }

    fn double(&mut self, value: f64) -> Result<()> {
        match value.is_finite() {
            true => self.text(&format!("{value:?}")),
            false if value.is_nan() => self.quoted("NaN"),
            false => self.quoted(if value > 0.0 { "Infinity" } else { "-Infinity" }),
        }
    }
}
