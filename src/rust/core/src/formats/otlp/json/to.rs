//! Converts a message to JSON.

use crate::error::{Error, Result};
use crate::formats::otlp::proto::{FieldKind, FieldType, MessageType, data};
use crate::io::save;
use crate::json::Json;
use crate::limits::cancel::Stop;
use crate::message;
use crate::protobuf::decode::{DecodeError, Field, Message, Result as WireResult};
use data_encoding::{BASE64, Encoding, HEXLOWER};
use std::fmt::Display;
use std::io::Write;

/// Writes a message that the writer created as JSON, on one line.
pub fn write(message: &[u8], out: &mut dyn Write, stop: Stop) -> Result<()> {
    let mut json = Json::new(&mut *out, stop)?;
    put_message(&mut json, Message::new(message), &data::SCHEMA)?;
    json.finish()?;
    out.write_all(b"\n").map_err(save::failed)
}

/// The error of a message that was not created by the writer.
fn failed(error: DecodeError) -> Error {
    match error {
        DecodeError::Other(error) => error,
        DecodeError::At { message, .. } => Error::Unsupported(message),
    }
}

/// Writes the fields in the order of the schema, since the elements of a repeated field may
/// be separated by other fields.
fn put_message(json: &mut Json, message: Message, type_: &MessageType) -> Result<()> {
    json.object(|json| {
        for field in type_.fields {
            let mut all = values(message, field.number).peekable();
            if all.peek().is_none() {
                continue;
            }
            json.field(field.name)?;
            let mut put = |json: &mut Json| {
                all.try_for_each(|found| put_value(json, &found.map_err(failed)?, field))
            };
            if field.repeated {
                json.array(put)?;
            } else {
                put(json)?;
            }
        }
        Ok(())
    })
}

/// The values of a field.
fn values(mut message: Message, number: u32) -> impl Iterator<Item = WireResult<Field>> {
    let all = std::iter::from_fn(move || message.field().transpose());
    all.filter(move |found| found.as_ref().map_or(true, |found| found.number == number))
}

fn put_value(json: &mut Json, found: &Field, field: &FieldType) -> Result<()> {
    let inner = || found.message().map_err(failed);
    match field.kind {
        FieldKind::Message(type_) => put_message(json, inner()?, type_),
        FieldKind::Text => match std::str::from_utf8(inner()?.bytes()) {
            Ok(text) => json.text(text),
            Err(error) => Err(Error::Unsupported(message!("{error}"))),
        },
        FieldKind::Bytes => encoded(json, inner()?.bytes(), &BASE64),
        FieldKind::Hex | FieldKind::ProfileId => encoded(json, inner()?.bytes(), &HEXLOWER),
        FieldKind::Bool => json.flag(found.uint().map_err(failed)? != 0),
        FieldKind::Double => double(json, f64::from_bits(found.fixed64().map_err(failed)?)),
        FieldKind::Fixed64 => {
            let put = found.each_fixed64(|number| quoted(json, number));
            put.map_err(failed)
        }
        FieldKind::Int32 | FieldKind::Uint32 | FieldKind::Int64 | FieldKind::Uint64 => {
            let put = found.each(|number| match field.kind {
                FieldKind::Int64 => quoted(json, number as i64),
                FieldKind::Uint64 => quoted(json, number),
                FieldKind::Uint32 => json.formatted(format_args!("{number}")),
                _ => json.integer(number as i64),
            });
            put.map_err(failed)
        }
    }
}

fn quoted(json: &mut Json, value: impl Display) -> Result<()> {
    json.formatted(format_args!("\"{value}\""))
}

fn encoded(json: &mut Json, bytes: &[u8], encoding: &Encoding) -> Result<()> {
    quoted(json, encoding.encode_display(bytes))
}

fn double(json: &mut Json, value: f64) -> Result<()> {
    if value.is_finite() {
        json.formatted(format_args!("{value:?}"))
    } else if value.is_nan() {
        json.text("NaN")
    } else if value > 0.0 {
        json.text("Infinity")
    } else {
        json.text("-Infinity")
    }
}
