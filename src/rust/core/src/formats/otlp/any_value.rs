//! Reads and writes values of attributes (`AnyValue`) as protocol buffers.

use super::proto::{any_value as field, array_value, key_value, key_value_list};
use crate::attribute_value::{AnyValue, DEEPEST};
use crate::error::Result as CoreResult;
use crate::formats::problems::Problems;
use crate::formats::string_table::{NumberField, StringTable};
use crate::limits::memory::{TryGrow, copied, owned};
use crate::message;
use crate::protobuf::decode::{Message, Result, error_at};
use crate::protobuf::encode::{self, put_bytes, put_message};
use crate::protobuf::tables::StringTableBuilder;

/// Reads a value. If the message contains several values, the last one is used, as in other readers
/// of protocol buffers.
pub fn read(
    mut message: Message,
    texts: &mut StringTable,
    problems: &mut Problems,
) -> Result<AnyValue> {
    read_to(&mut message, texts, problems, 0)
}

fn read_to(
    message: &mut Message,
    texts: &mut StringTable,
    problems: &mut Problems,
    depth: usize,
) -> Result<AnyValue> {
    if depth > DEEPEST {
        return error_at(
            message.at(),
            message!("A value is nested more than {DEEPEST} times."),
        );
    }
    let mut last = None;
    while let Some(found) = message.field()? {
        if (field::STRING_VALUE..=field::STRING_VALUE_STRINDEX).contains(&found.number) {
            last = Some(found);
        }
    }
    let Some(found) = last else {
        return Ok(AnyValue::Empty);
    };
    Ok(match found.number {
        field::STRING_VALUE => AnyValue::String(texts.decode(found.message()?, problems)?),
        field::BOOL_VALUE => AnyValue::Bool(found.uint()? != 0),
        field::INT_VALUE => AnyValue::Int(found.int()?),
        field::DOUBLE_VALUE => AnyValue::Double(f64::from_bits(found.fixed64()?)),
        field::ARRAY_VALUE => AnyValue::Array(elements(
            found.message()?,
            array_value::VALUES,
            |mut any| read_to(&mut any, texts, problems, depth + 1),
        )?),
        field::KVLIST_VALUE => AnyValue::Kvlist(elements(
            found.message()?,
            key_value_list::VALUES,
            |pair| read_pair(pair, texts, problems, depth + 1),
        )?),
        field::BYTES_VALUE => AnyValue::Bytes(copied(found.message()?.bytes())?),
        field::STRING_VALUE_STRINDEX => {
            AnyValue::String(texts.string(NumberField::from_field(&found)?, problems)?)
        }
        _ => AnyValue::Empty,
    })
}

/// The elements of a repeated field.
fn elements<T>(
    mut message: Message,
    number: u32,
    mut read: impl FnMut(Message) -> Result<T>,
) -> Result<Vec<T>> {
    let mut elements = Vec::new();
    while let Some(found) = message.field()? {
        if found.number == number {
            elements.try_push(read(found.message()?)?)?;
        }
    }
    Ok(elements)
}

/// Reads a key and its value.
pub fn read_pair(
    mut message: Message,
    texts: &mut StringTable,
    problems: &mut Problems,
    depth: usize,
) -> Result<(String, AnyValue)> {
    let [mut key, mut value] = [None; 2];
    let mut index = NumberField::default();
    while let Some(found) = message.field()? {
        match found.number {
            key_value::KEY => key = Some(found.message()?),
            key_value::KEY_STRINDEX => index = NumberField::from_field(&found)?,
            key_value::VALUE => value = Some(found.message()?),
            _ => {}
        }
    }
    // The specification allows only one of the two fields, but some writers set both.
    let key = match (index.value, key) {
        (0, Some(text)) => texts.decode(text, problems)?,
        (0, None) => String::new(),
        _ => texts.string(index, problems)?,
    };
    let value = match value {
        Some(mut message) => read_to(&mut message, texts, problems, depth)?,
        None => AnyValue::Empty,
    };
    Ok((key, value))
}

/// Appends the fields of a value. Strings are written inline, which readers of all versions
/// support; keys are written as indices, since the OpenTelemetry Collector reads only these.
pub fn put(out: &mut Vec<u8>, any: &AnyValue, texts: &mut StringTableBuilder) -> CoreResult<()> {
    match any {
        AnyValue::Empty => {}
        AnyValue::String(text) => put_bytes(out, field::STRING_VALUE, text.as_bytes())?,
        AnyValue::Bool(value) => encode::put_uint(out, field::BOOL_VALUE, u64::from(*value)),
        AnyValue::Int(value) => encode::put_int(out, field::INT_VALUE, *value),
        AnyValue::Double(value) => encode::put_fixed64(out, field::DOUBLE_VALUE, value.to_bits()),
        AnyValue::Bytes(bytes) => put_bytes(out, field::BYTES_VALUE, bytes)?,
        AnyValue::Array(array) => put_message(out, field::ARRAY_VALUE, |inner| {
            let mut array = array.iter();
            array.try_for_each(|any| {
                put_message(inner, array_value::VALUES, |one| put(one, any, texts))
            })
        })?,
        AnyValue::Kvlist(pairs) => put_message(out, field::KVLIST_VALUE, |inner| {
            let mut pairs = pairs.iter();
            pairs.try_for_each(|(key, any)| {
                put_message(inner, key_value_list::VALUES, |one| {
                    put_pair(one, key, any, texts)
                })
            })
        })?,
    }
    Ok(())
}

/// Appends the fields of a key and its value.
pub fn put_pair(
    out: &mut Vec<u8>,
    key: &str,
    any: &AnyValue,
    texts: &mut StringTableBuilder,
) -> CoreResult<()> {
    put_message(out, key_value::VALUE, |value| put(value, any, texts))?;
    match texts.index(owned(key)?)? {
        0 => {}
        index => encode::put_uint(out, key_value::KEY_STRINDEX, index),
    }
    Ok(())
}
