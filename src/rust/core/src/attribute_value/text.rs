//! Converts values of attributes to text and back, without loss.
//!
//! The form of the text depends on the kind of the value: a string as it is; a boolean as `true` or
//! `false`; an integer in decimal; a double with as many digits as needed, or as `NaN`, `Infinity`
//! or `-Infinity`; bytes in base64; arrays and lists of keys and values as JSON with the elements
//! in the form of OTLP/JSON, such as `[{"stringValue":"a"}]`.

#![expect(
    clippy::disallowed_methods,
    reason = "memory for all of a value is ensured first, since JSON is read by other code"
)]

use super::{AnyValue, DEEPEST};
use crate::error::Result;
use crate::limits::memory::{ensure, ensure_tree};
use crate::model::ValueKind;
use data_encoding::BASE64;
use serde_core::Deserialize;
use serde_json::Value as Json;
use std::fmt::Write;

impl AnyValue {
    /// Converts the value to text.
    pub fn to_text(&self) -> Result<String> {
        ensure(self.longest())?;
        Ok(self.text())
    }

    /// An upper bound for the length of the text, in bytes.
    fn longest(&self) -> usize {
        // Enough for a number, and for the JSON names around a value.
        const VALUE: usize = 100;
        // JSON may encode a character as six (`\u0001`); base64 is shorter.
        let text = |text: &str| 6 * text.len();
        VALUE
            + match self {
                AnyValue::String(value) => text(value),
                AnyValue::Bytes(value) => 2 * value.len(),
                AnyValue::Array(values) => values.iter().map(AnyValue::longest).sum(),
                AnyValue::Kvlist(pairs) => {
                    let longest = |(key, value): &(String, AnyValue)| text(key) + value.longest();
                    pairs.iter().map(longest).sum()
                }
                AnyValue::Empty | AnyValue::Bool(_) | AnyValue::Int(_) | AnyValue::Double(_) => 0,
            }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        match self {
            AnyValue::Empty => {}
            AnyValue::String(value) => text.push_str(value),
            AnyValue::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
            AnyValue::Int(value) => text = value.to_string(),
            AnyValue::Double(value) => put_double(&mut text, *value),
            AnyValue::Bytes(value) => BASE64.encode_append(value, &mut text),
            AnyValue::Array(values) => put_array(&mut text, values),
            AnyValue::Kvlist(pairs) => put_pairs(&mut text, pairs),
        }
        text
    }

    /// Converts a text to a value; `None` if the text is invalid.
    pub fn parse(kind: ValueKind, text: &str) -> Result<Option<AnyValue>> {
        ensure_tree(text.len())?;
        Ok(AnyValue::of(kind, text))
    }

    fn of(kind: ValueKind, text: &str) -> Option<AnyValue> {
        Some(match kind {
            ValueKind::Empty if text.is_empty() => AnyValue::Empty,
            ValueKind::Empty => return None,
            ValueKind::String => AnyValue::String(text.to_owned()),
            ValueKind::Bool => AnyValue::Bool(text.parse().ok()?),
            ValueKind::Int => AnyValue::Int(text.parse().ok()?),
            ValueKind::Double => AnyValue::Double(double(text)?),
            ValueKind::Bytes => AnyValue::Bytes(BASE64.decode(text.as_bytes()).ok()?),
            ValueKind::Array => AnyValue::Array(array(&json(text)?, 0)?),
            ValueKind::Kvlist => AnyValue::Kvlist(pairs(&json(text)?, 0)?),
        })
    }
}

fn put_double(out: &mut String, value: f64) {
    if value.is_nan() {
        out.push_str("NaN");
    } else if value.is_infinite() {
        out.push_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
    } else {
        // `{:?}` writes the shortest text that is parsed as the same number.
        let _ = write!(out, "{value:?}");
    }
}

fn double(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => text.parse().ok().filter(|number: &f64| number.is_finite()),
    }
}

fn put_array(out: &mut String, values: &[AnyValue]) {
    out.push('[');
    for (i, value) in values.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        put_any(out, value);
    }
    out.push(']');
}

fn put_pairs(out: &mut String, pairs: &[(String, AnyValue)]) {
    out.push('[');
    for (i, (key, value)) in pairs.iter().enumerate() {
        out.push_str(if i > 0 { ",{\"key\":" } else { "{\"key\":" });
        put_quoted(out, key);
        out.push_str(",\"value\":");
        put_any(out, value);
        out.push('}');
    }
    out.push(']');
}

fn put_any(out: &mut String, value: &AnyValue) {
    out.push('{');
    match value {
        AnyValue::Empty => {}
        AnyValue::String(value) => {
            out.push_str("\"stringValue\":");
            put_quoted(out, value);
        }
        AnyValue::Bool(value) => {
            let _ = write!(out, "\"boolValue\":{value}");
        }
        AnyValue::Int(value) => {
            let _ = write!(out, "\"intValue\":\"{value}\"");
        }
        AnyValue::Double(value) => {
            out.push_str("\"doubleValue\":");
            let quote = if value.is_finite() { "" } else { "\"" };
            out.push_str(quote);
            put_double(out, *value);
            out.push_str(quote);
        }
        AnyValue::Bytes(value) => {
            out.push_str("\"bytesValue\":\"");
            BASE64.encode_append(value, out);
            out.push('"');
        }
        AnyValue::Array(values) => {
            out.push_str("\"arrayValue\":{\"values\":");
            put_array(out, values);
            out.push('}');
        }
        AnyValue::Kvlist(pairs) => {
            out.push_str("\"kvlistValue\":{\"values\":");
            put_pairs(out, pairs);
            out.push('}');
        }
    }
    out.push('}');
}

fn put_quoted(out: &mut String, text: &str) {
    out.push_str(&Json::from(text).to_string());
}

/// Parses JSON up to the maximum depth of values, which is above the default limit of serde_json:
/// each level has three or four brackets.
fn json(text: &str) -> Option<Json> {
    if deepest(text) > 4 * (DEEPEST + 1) {
        return None;
    }
    let mut json = serde_json::Deserializer::from_str(text);
    json.disable_recursion_limit();
    let value = Json::deserialize(&mut json).ok()?;
    json.end().ok().map(|()| value)
}

/// Returns the maximum number of nested brackets.
fn deepest(text: &str) -> usize {
    let (mut depth, mut deepest, mut quoted): (usize, _, _) = (0, 0, false);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if quoted => drop(bytes.next()),
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => depth += 1,
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

fn array(json: &Json, depth: usize) -> Option<Vec<AnyValue>> {
    let values = json.as_array()?.iter();
    values.map(|json| any(json, depth + 1)).collect()
}

fn pairs(json: &Json, depth: usize) -> Option<Vec<(String, AnyValue)>> {
    let pair = |json: &Json| {
        let value = json.get("value");
        let value = value.map_or(Some(AnyValue::Empty), |json| any(json, depth + 1))?;
        Some((json.get("key")?.as_str()?.to_owned(), value))
    };
    json.as_array()?.iter().map(pair).collect()
}

fn any(json: &Json, depth: usize) -> Option<AnyValue> {
    if depth > DEEPEST {
        return None;
    }
    let object = json.as_object()?;
    let mut members = object.iter();
    let Some((name, value)) = members.next() else {
        return Some(AnyValue::Empty);
    };
    if members.next().is_some() {
        return None;
    }
    let none = Json::Array(Vec::new());
    let values = value.get("values").unwrap_or(&none);
    Some(match name.as_str() {
        "stringValue" => AnyValue::String(value.as_str()?.to_owned()),
        "boolValue" => AnyValue::Bool(value.as_bool()?),
        "intValue" => AnyValue::Int(value.as_str()?.parse().ok()?),
        "doubleValue" => AnyValue::Double(match value {
            Json::String(text) => double(text)?,
            number => number.as_f64()?,
        }),
        "bytesValue" => AnyValue::Bytes(BASE64.decode(value.as_str()?.as_bytes()).ok()?),
        "arrayValue" => AnyValue::Array(array(values, depth)?),
        "kvlistValue" => AnyValue::Kvlist(pairs(values, depth)?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_nested_as_deep_as_they_may_be() {
        let wraps: [fn(AnyValue) -> AnyValue; 2] = [
            |any| AnyValue::Array(vec![any]),
            |any| AnyValue::Kvlist(vec![("[{\\\"".to_owned(), any)]),
        ];
        for wrap in wraps {
            let nested = |depth| (0..depth).fold(AnyValue::Int(7), |any, _| wrap(any));
            for depth in [1, 42, DEEPEST] {
                let any = nested(depth);
                assert_eq!(
                    AnyValue::parse(any.kind(), &any.to_text().unwrap()).unwrap(),
                    Some(any)
                );
            }
            let deeper = nested(DEEPEST + 1);
            assert_eq!(
                AnyValue::parse(deeper.kind(), &deeper.to_text().unwrap()).unwrap(),
                None
            );
        }
        let brackets = "[".repeat(1_000_000);
        assert_eq!(AnyValue::parse(ValueKind::Array, &brackets).unwrap(), None);
    }

    #[test]
    fn values_come_back_from_their_texts() {
        let leaves = vec![
            AnyValue::Empty,
            AnyValue::String("a \"quoted\" ü\n".to_owned()),
            AnyValue::String(String::new()),
            AnyValue::Bool(false),
            AnyValue::Int(i64::MIN),
            AnyValue::Double(0.1 + 0.2),
            AnyValue::Double(-0.0),
            AnyValue::Double(1e300),
            AnyValue::Double(f64::NEG_INFINITY),
            AnyValue::Bytes(vec![0, 255, 3]),
        ];
        let pairs = leaves.iter().map(|any| ("key".to_owned(), any.clone()));
        let tree = AnyValue::Kvlist(
            pairs
                .chain([("".to_owned(), AnyValue::Array(leaves.clone()))])
                .collect(),
        );
        for any in leaves.into_iter().chain([tree]) {
            let text = any.to_text().unwrap();
            assert_eq!(
                AnyValue::parse(any.kind(), &text).unwrap(),
                Some(any),
                "{text}"
            );
        }
        let Some(AnyValue::Double(nan)) = AnyValue::parse(ValueKind::Double, "NaN").unwrap() else {
            panic!("no double")
        };
        assert!(nan.is_nan());
        for (kind, text) in [
            (ValueKind::Empty, "x"),
            (ValueKind::Bool, "TRUE"),
            (ValueKind::Int, "1.5"),
            (ValueKind::Int, "9223372036854775808"),
            (ValueKind::Double, "1e999"),
            (ValueKind::Bytes, "a"),
            (ValueKind::Array, "{}"),
            (ValueKind::Array, "[1]"),
            (
                ValueKind::Array,
                "[{\"intValue\":\"1\",\"boolValue\":true}]",
            ),
            (ValueKind::Kvlist, "[{\"value\":{}}]"),
        ] {
            assert_eq!(AnyValue::parse(kind, text).unwrap(), None, "{text}");
        }
    }
}
