//! Values of attributes on the wire.

use super::proto::{any_value as field, key_value, values};
use crate::attribute_value::{Any, DEEPEST};
use crate::error::Result as CoreResult;
use crate::formats::problems::Problems;
use crate::formats::string_table::{Index, TextTable};
use crate::limits::memory::{TryGrow, owned};
use crate::message;
use crate::protobuf::numbers::Texts;
use crate::protobuf::wire::{self, Message, Result, fault, put_bytes};

/// Reads a value. Of several the last one counts, as in all readers of protocol
/// buffers.
pub fn read(mut message: Message, texts: &mut TextTable, problems: &mut Problems) -> Result<Any> {
    read_to(&mut message, texts, problems, 0)
}

fn read_to(
    message: &mut Message,
    texts: &mut TextTable,
    problems: &mut Problems,
    depth: usize,
) -> Result<Any> {
    if depth > DEEPEST {
        return fault(
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
        return Ok(Any::Empty);
    };
    Ok(match found.number {
        field::STRING_VALUE => Any::String(texts.decode(found.message()?, problems)?),
        field::BOOL_VALUE => Any::Bool(found.uint()? != 0),
        field::INT_VALUE => Any::Int(found.int()?),
        field::DOUBLE_VALUE => Any::Double(f64::from_bits(found.fixed64()?)),
        field::ARRAY_VALUE => {
            let mut array = Vec::new();
            let mut inner = found.message()?;
            while let Some(found) = inner.field()? {
                if found.number == values::VALUES {
                    let any = read_to(&mut found.message()?, texts, problems, depth + 1)?;
                    array.try_push(any, "an attribute")?;
                }
            }
            Any::Array(array)
        }
        field::KVLIST_VALUE => {
            let mut pairs = Vec::new();
            let mut inner = found.message()?;
            while let Some(found) = inner.field()? {
                if found.number == values::VALUES {
                    let pair = read_pair(found.message()?, texts, problems, depth + 1)?;
                    pairs.try_push(pair, "an attribute")?;
                }
            }
            Any::Kvlist(pairs)
        }
        field::BYTES_VALUE => {
            let mut bytes = Vec::new();
            bytes.try_extend(found.message()?.bytes(), "an attribute")?;
            Any::Bytes(bytes)
        }
        field::STRING_VALUE_STRINDEX => Any::String(texts.string(Index::of(&found)?, problems)?),
        _ => Any::Empty,
    })
}

/// Reads a key and its value.
pub fn read_pair(
    mut message: Message,
    texts: &mut TextTable,
    problems: &mut Problems,
    depth: usize,
) -> Result<(String, Any)> {
    let [mut key, mut value] = [None; 2];
    let mut index = Index::default();
    while let Some(found) = message.field()? {
        match found.number {
            key_value::KEY => key = Some(found.message()?),
            key_value::KEY_STRINDEX => index = Index::of(&found)?,
            key_value::VALUE => value = Some(found.message()?),
            _ => {}
        }
    }
    // One of the two is set, but some writers write the other, too.
    let key = match (index.index, key) {
        (0, Some(text)) => texts.decode(text, problems)?,
        (0, None) => String::new(),
        _ => texts.string(index, problems)?,
    };
    let value = match value {
        Some(mut message) => read_to(&mut message, texts, problems, depth)?,
        None => Any::Empty,
    };
    Ok((key, value))
}

/// Appends the fields of a value. Its texts are written as they are, which readers of all
/// versions see; keys as indices, since OpenTelemetry's collector sees no others.
pub fn put(out: &mut Vec<u8>, any: &Any, texts: &mut Texts) -> CoreResult<()> {
    match any {
        Any::Empty => {}
        Any::String(text) => put_bytes(out, field::STRING_VALUE, text.as_bytes())?,
        Any::Bool(value) => wire::put_uint(out, field::BOOL_VALUE, u64::from(*value)),
        Any::Int(value) => wire::put_int(out, field::INT_VALUE, *value),
        Any::Double(value) => wire::put_fixed64(out, field::DOUBLE_VALUE, value.to_bits()),
        Any::Bytes(bytes) => put_bytes(out, field::BYTES_VALUE, bytes)?,
        Any::Array(array) => {
            let mut inner = Vec::new();
            for any in array {
                let mut one = Vec::new();
                put(&mut one, any, texts)?;
                put_bytes(&mut inner, values::VALUES, &one)?;
            }
            put_bytes(out, field::ARRAY_VALUE, &inner)?;
        }
        Any::Kvlist(pairs) => {
            let mut inner = Vec::new();
            for (key, any) in pairs {
                let mut one = Vec::new();
                put_pair(&mut one, key, any, texts)?;
                put_bytes(&mut inner, values::VALUES, &one)?;
            }
            put_bytes(out, field::KVLIST_VALUE, &inner)?;
        }
    }
    Ok(())
}

/// Appends the fields of a key and its value.
pub fn put_pair(out: &mut Vec<u8>, key: &str, any: &Any, texts: &mut Texts) -> CoreResult<()> {
    let mut value = Vec::new();
    put(&mut value, any, texts)?;
    put_bytes(out, key_value::VALUE, &value)?;
    match texts.of(owned(key, "the output")?)? {
        0 => {}
        index => wire::put_uint(out, key_value::KEY_STRINDEX, index),
    }
    Ok(())
}
