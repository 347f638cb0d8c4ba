//! Encodes and decodes messages as OTLP/JSON, independently of the crate. OTLP/JSON is the JSON
//! mapping of protocol buffers, except that trace and span ids are hexadecimal, enums are integers,
//! and unknown names are ignored. Names are from v1.11.

use super::message::*;
use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD, HEXLOWER_PERMISSIVE};
use serde_json::{Map, Value, json};

/// Panics if `data` contains a field that v1.11 does not have.
pub fn to_json(data: &Data) -> Value {
    object(&mut data.clone())
}

pub fn from_json(value: &Value) -> Result<Data, String> {
    let mut data = Data::default();
    read(value, &mut data)?;
    Ok(data)
}

/// Values that equal the default of their type are optional; they are omitted.
fn object(message: &mut dyn Message) -> Value {
    let mut out = Map::new();
    for (_, name, slot) in message.fields(Layout::V11) {
        let value = match slot {
            Slot::Int32(v) if *v != 0 => json!(v),
            Slot::Uint32(v) if *v != 0 => json!(v),
            Slot::Int64(v) if *v != 0 => json!(v.to_string()),
            Slot::Uint64(v) | Slot::Fixed64(v) if *v != 0 => json!(v.to_string()),
            Slot::String(v) if !v.is_empty() => json!(v),
            Slot::Bytes(v) if !v.is_empty() => json!(BASE64.encode(v)),
            Slot::Id(v) if !v.is_empty() => json!(HEXLOWER_PERMISSIVE.encode(v)),
            Slot::Int32s(v) if !v.is_empty() => json!(v),
            Slot::Int64s(v) if !v.is_empty() => v.iter().map(i64::to_string).collect(),
            Slot::Fixed64s(v) if !v.is_empty() => v.iter().map(u64::to_string).collect(),
            Slot::Strings(v) if !v.is_empty() => json!(v),
            Slot::One(v) => match object(v) {
                Value::Object(fields) if fields.is_empty() => continue,
                value => value,
            },
            Slot::Many(v) => match v.all() {
                items if items.is_empty() => continue,
                items => items.into_iter().map(object).collect(),
            },
            Slot::Any(v) if *v != AnyValue::Empty => any(v),
            _ => continue,
        };
        out.insert(name.to_string(), value);
    }
    Value::Object(out)
}

fn any(value: &AnyValue) -> Value {
    match value {
        AnyValue::Empty => json!({}),
        AnyValue::String(v) => json!({ "stringValue": v }),
        AnyValue::Bool(v) => json!({ "boolValue": v }),
        AnyValue::Int(v) => json!({ "intValue": v.to_string() }),
        AnyValue::Double(v) => json!({ "doubleValue": double(v.get()) }),
        AnyValue::Array(v) => {
            let values: Value = v.iter().map(any).collect();
            json!({ "arrayValue": { "values": values } })
        }
        AnyValue::Kvlist(v) => {
            let mut list = KeyValueList { values: v.clone() };
            json!({ "kvlistValue": object(&mut list) })
        }
        AnyValue::Bytes(v) => json!({ "bytesValue": BASE64.encode(v) }),
        AnyValue::StringStrindex(v) => json!({ "stringValueStrindex": v }),
    }
}

fn double(value: f64) -> Value {
    if value.is_nan() {
        json!("NaN")
    } else if value.is_infinite() {
        json!(if value > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        json!(value)
    }
}

fn read(value: &Value, into: &mut dyn Message) -> Result<(), String> {
    let given = value.as_object().ok_or("not an object")?;
    for (_, name, slot) in into.fields(Layout::V11) {
        // Null means the default.
        let Some(value) = given.get(name).filter(|value| !value.is_null()) else {
            continue;
        };
        read_field(value, slot).map_err(|e| format!("{name}: {e}"))?;
    }
    Ok(())
}

fn read_field(value: &Value, slot: Slot) -> Result<(), String> {
    match slot {
        Slot::Int32(v) => *v = integer(value)?,
        Slot::Uint32(v) => *v = integer(value)?,
        Slot::Int64(v) => *v = integer(value)?,
        Slot::Uint64(v) | Slot::Fixed64(v) => *v = integer(value)?,
        Slot::String(v) => *v = text(value)?.to_string(),
        Slot::Bytes(v) => *v = base64(value)?,
        Slot::Id(v) => {
            let hex = HEXLOWER_PERMISSIVE.decode(text(value)?.as_bytes());
            *v = hex.map_err(|e| e.to_string())?;
        }
        Slot::Int32s(v) => *v = list(value)?.iter().map(integer).collect::<Result<_, _>>()?,
        Slot::Int64s(v) => *v = list(value)?.iter().map(integer).collect::<Result<_, _>>()?,
        Slot::Fixed64s(v) => *v = list(value)?.iter().map(integer).collect::<Result<_, _>>()?,
        Slot::Strings(v) => {
            for item in list(value)? {
                v.push(text(item)?.to_string());
            }
        }
        Slot::One(v) => read(value, v)?,
        Slot::Many(v) => {
            for item in list(value)? {
                read(item, v.add())?;
            }
        }
        Slot::Any(v) => *v = read_any(value)?,
    }
    Ok(())
}

fn read_any(value: &Value) -> Result<AnyValue, String> {
    let given = value.as_object().ok_or("not an object")?;
    let mut out = AnyValue::Empty;
    for (name, value) in given.iter().filter(|(_, value)| !value.is_null()) {
        let read = match name.as_str() {
            "stringValue" => AnyValue::String(text(value)?.to_string()),
            "boolValue" => AnyValue::Bool(value.as_bool().ok_or("not a boolean")?),
            "intValue" => AnyValue::Int(integer(value)?),
            "doubleValue" => AnyValue::Double(Double::new(read_double(value)?)),
            "arrayValue" => {
                let values = value.get("values").map(list).transpose()?.unwrap_or(&[]);
                AnyValue::Array(values.iter().map(read_any).collect::<Result<_, _>>()?)
            }
            "kvlistValue" => {
                let mut list = KeyValueList::default();
                read(value, &mut list)?;
                AnyValue::Kvlist(list.values)
            }
            "bytesValue" => AnyValue::Bytes(base64(value)?),
            "stringValueStrindex" => AnyValue::StringStrindex(integer(value)?),
            _ => continue,
        };
        if out != AnyValue::Empty {
            return Err(format!("{name} beside another value"));
        }
        out = read;
    }
    Ok(out)
}

/// Integers may be JSON numbers or strings.
fn integer<T: TryFrom<i128>>(value: &Value) -> Result<T, String> {
    let number = match value {
        Value::String(text) => text.parse::<i128>().ok(),
        Value::Number(number) => number.as_i128(),
        _ => None,
    };
    number
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| format!("not an integer of its type: {value}"))
}

fn read_double(value: &Value) -> Result<f64, String> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            other => other.parse().ok(),
        },
        _ => None,
    }
    .ok_or_else(|| format!("not a double: {value}"))
}

/// Readers accept both alphabets of base64, with and without padding.
fn base64(value: &Value) -> Result<Vec<u8>, String> {
    let text = text(value)?.as_bytes();
    [BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD]
        .iter()
        .find_map(|alphabet| alphabet.decode(text).ok())
        .ok_or_else(|| format!("not base64: {value}"))
}

fn text(value: &Value) -> Result<&str, String> {
    value
        .as_str()
        .ok_or_else(|| format!("not a string: {value}"))
}

fn list(value: &Value) -> Result<&[Value], String> {
    Ok(value
        .as_array()
        .ok_or_else(|| format!("not a list: {value}"))?)
}
