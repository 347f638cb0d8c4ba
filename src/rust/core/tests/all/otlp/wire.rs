//! Encodes and decodes messages as protocol buffers, independently of the crate, in each layout and in each form that
//! protocol buffers allow.

use super::message::*;
use data_encoding::{BASE64, HEXLOWER};
use serde_json::{Map, Value, json};

/// The choices that protocol buffers leave to writers.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    pub layout: Layout,
    pub packing: Packing,
    /// Write zeros, empty strings and empty messages, too.
    pub explicit: bool,
    /// Write fields in descending order of their numbers.
    pub reversed: bool,
    /// Add unknown fields to each message except the outermost.
    pub unknown: bool,
    /// Write each singular field twice, first with another value, which readers must ignore.
    pub again: bool,
    /// The number of a field among all, and the wire type that it gets, which is wrong.
    pub wrong: Option<(usize, u64)>,
}

/// How repeated numbers are written; `Mixed`: the first unpacked, the others packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    Packed,
    Single,
    Mixed,
}

impl Form {
    pub fn plain(layout: Layout) -> Form {
        Form {
            layout,
            packing: Packing::Packed,
            explicit: false,
            reversed: false,
            unknown: false,
            again: false,
            wrong: None,
        }
    }

    /// All forms of a layout, starting with the plain one.
    pub fn all(layout: Layout) -> Vec<Form> {
        let packings = [Packing::Packed, Packing::Single, Packing::Mixed];
        let forms = packings
            .into_iter()
            .flat_map(|packing| (0..8).map(move |bits| (packing, bits)));
        let forms = forms.map(|(packing, bits)| Form {
            packing,
            explicit: bits & 1 != 0,
            reversed: bits & 2 != 0,
            unknown: bits & 4 != 0,
            ..Form::plain(layout)
        });
        forms.collect()
    }
}

/// The field that got another type, and its position.
#[derive(Debug)]
pub struct Changed {
    pub number: u64,
    pub at: u64,
    pub path: String,
}

struct Encoder {
    form: Form,
    fields: usize,
    changed: Option<Changed>,
}

pub fn encode(data: &Value, layout: Layout) -> Vec<u8> {
    encode_as(data, Form::plain(layout))
}

/// Panics if `data` contains a field that the layout does not have.
pub fn encode_as(data: &Value, form: Form) -> Vec<u8> {
    encoder(form).message(data, "Data", "")
}

fn encoder(form: Form) -> Encoder {
    Encoder {
        form,
        fields: 0,
        changed: None,
    }
}

/// Encodes the message with field number `at` of all fields as another wire type. Returns the bytes, and the changed
/// field, or `None` if the field may have this type. `None` if there are fewer fields.
pub fn mistyped(
    data: &Value,
    layout: Layout,
    at: usize,
    wire: u64,
) -> Option<(Vec<u8>, Option<Changed>)> {
    let mut encoder = encoder(Form {
        explicit: true,
        wrong: Some((at, wire)),
        ..Form::plain(layout)
    });
    let bytes = encoder.message(data, "Data", "");
    (at < encoder.fields).then_some((bytes, encoder.changed))
}

/// A field that contains a message of a type.
pub fn part(number: u64, type_: &str, value: &Value) -> Vec<u8> {
    delimited(
        number,
        &encoder(Form::plain(Layout::V11)).message(value, type_, ""),
    )
}

pub fn delimited(number: u64, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, number, 2, bytes.len() as u64, bytes);
    out
}

pub fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put(out: &mut Vec<u8>, number: u64, wire: u64, value: u64, bytes: &[u8]) {
    varint(out, number << 3 | wire);
    scalar(out, wire, value);
    out.extend(bytes);
}

fn scalar(out: &mut Vec<u8>, wire: u64, value: u64) {
    if wire == 1 {
        out.extend(value.to_le_bytes());
    } else {
        varint(out, value);
    }
}

/// The bits of a number, and the bytes of other values.
fn bits(kind: &str, value: &Value) -> u64 {
    match (kind, value) {
        ("bool", value) => u64::from(value.as_bool().unwrap_or_default()),
        ("double", Value::String(word)) => word
            .replace("Infinity", "inf")
            .parse::<f64>()
            .unwrap()
            .to_bits(),
        ("double", value) => value.as_f64().unwrap_or_default().to_bits(),
        _ => number(value) as u64,
    }
}

fn bytes(kind: &str, value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap_or_default();
    match kind {
        "bytes" => BASE64.decode(text.as_bytes()).unwrap(),
        "id" => HEXLOWER.decode(text.as_bytes()).unwrap(),
        _ => text.as_bytes().to_vec(),
    }
}

/// Whether a field is as if it were not there.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields
            .iter()
            .all(|(name, v)| v.is_null() || !name.ends_with("Value") && says_nothing(v)),
        _ => false,
    }
}

impl Encoder {
    fn message(&mut self, value: &Value, type_: &str, path: &str) -> Vec<u8> {
        let form = self.form;
        let mut out = Vec::new();
        if form.unknown && !path.is_empty() {
            put(&mut out, 2001, 0, 7, b"");
            put(&mut out, 2002, 1, 7, b"");
            put(&mut out, 2003, 2, 1, b"\xff");
            put(&mut out, 2004, 5, 1, b"\x02\x03\x04");
        }
        let mut all: Vec<_> = fields(type_)
            .iter()
            .map(|field| (field.number(form.layout), field))
            .collect();
        all.sort_by_key(|(number, _)| *number);
        if form.reversed {
            all.reverse();
        }
        for (number, field) in all {
            let (given, path) = (&value[field.name], format!("{path}.{}", field.name));
            if number == 0 {
                assert!(given.is_null(), "no place for {path}");
                continue;
            }
            let is_choice = type_ == "AnyValue";
            if form.again && !field.repeated && !given.is_null() {
                if is_choice {
                    out.extend(delimited(1, b"caf\xe9"));
                }
                match field.kind {
                    "AnyValue" => out.extend(delimited(number, &[8 << 3, 0x7f])),
                    "string" | "bytes" | "id" => out.extend(delimited(number, b"caf\xe9")),
                    _ if field.is_message() => {}
                    _ => put(&mut out, number, field.wire(), u64::MAX - 7, b""),
                }
            }
            if field.is_packable() {
                self.numbers(&mut out, number, field, given, &path);
            } else if field.repeated {
                let items = given.as_array().map_or(&[][..], Vec::as_slice);
                items
                    .iter()
                    .for_each(|item| self.one(&mut out, number, field, item, &path));
            } else if if is_choice {
                !given.is_null()
            } else {
                form.explicit || !says_nothing(given)
            } {
                self.one(&mut out, number, field, given, &path);
            }
        }
        out
    }

    fn one(&mut self, out: &mut Vec<u8>, number: u64, field: &Field, value: &Value, path: &str) {
        if self.is_wrong(out, number, field, path) {
            return;
        }
        if field.wire() != 2 {
            return put(out, number, field.wire(), bits(field.kind, value), b"");
        }
        if !field.is_message() {
            return out.extend(delimited(number, &bytes(field.kind, value)));
        }
        let before = self.changed.is_some();
        let body = self.message(value, field.kind, path);
        put(out, number, 2, body.len() as u64, b"");
        if let Some(changed) = self.changed.as_mut().filter(|_| !before) {
            changed.at += out.len() as u64;
        }
        out.extend(body);
    }

    fn numbers(
        &mut self,
        out: &mut Vec<u8>,
        number: u64,
        field: &Field,
        given: &Value,
        path: &str,
    ) {
        if self.is_wrong(out, number, field, path) {
            return;
        }
        let values: Vec<_> = given
            .as_array()
            .into_iter()
            .flatten()
            .map(|v| bits(field.kind, v))
            .collect();
        let single = match self.form.packing {
            Packing::Packed => 0,
            Packing::Single => values.len(),
            Packing::Mixed => values.len().min(1),
        };
        values[..single]
            .iter()
            .for_each(|value| put(out, number, field.wire(), *value, b""));
        let mut packed = Vec::new();
        values[single..]
            .iter()
            .for_each(|value| scalar(&mut packed, field.wire(), *value));
        if !packed.is_empty() || self.form.explicit {
            out.extend(delimited(number, &packed));
        }
    }

    /// Counts the field, and writes it with another type if it is the one that should have it.
    fn is_wrong(&mut self, out: &mut Vec<u8>, number: u64, field: &Field, path: &str) -> bool {
        self.fields += 1;
        let Some((at, wire)) = self.form.wrong else {
            return false;
        };
        if self.fields - 1 != at || wire == field.wire() || wire == 2 && field.is_packable() {
            return false;
        }
        self.changed = Some(Changed {
            number,
            at: out.len() as u64,
            path: path.to_owned(),
        });
        put(out, number, wire, 1, if wire == 2 { b"\x01" } else { b"" });
        true
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: u64) -> Result<&'a [u8], String> {
        let parts = usize::try_from(count)
            .ok()
            .and_then(|count| self.0.split_at_checked(count));
        let (taken, rest) = parts.ok_or("cut short")?;
        self.0 = rest;
        Ok(taken)
    }

    fn scalar(&mut self, wire: u64) -> Result<u64, String> {
        if wire == 1 {
            return Ok(u64::from_le_bytes(self.take(8)?.try_into().unwrap()));
        }
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("varint too long".into())
    }
}

pub fn decode(bytes: &[u8], layout: Layout) -> Result<Value, String> {
    let mut data = json!({});
    read(bytes, "Data", &mut data, layout)?;
    Ok(data)
}

fn read(bytes: &[u8], type_: &str, into: &mut Value, layout: Layout) -> Result<(), String> {
    let mut reader = Reader(bytes);
    while !reader.0.is_empty() {
        let key = reader.scalar(0)?;
        let (number, wire) = (key >> 3, key & 7);
        let (value, bytes) = match wire {
            0 | 1 => (reader.scalar(wire)?, &[][..]),
            2 => {
                let length = reader.scalar(0)?;
                (0, reader.take(length)?)
            }
            5 => (0, reader.take(4)?),
            other => return Err(format!("wire type {other}")),
        };
        let found = fields(type_)
            .iter()
            .find(|field| field.number(layout) == number);
        let Some(field) = found.filter(|_| number != 0) else {
            if number == 0 {
                return Err("field number 0".into());
            }
            continue;
        };
        let is_packed = wire == 2 && field.is_packable();
        if wire != field.wire() && !is_packed {
            return Err(format!("wrong wire type for {}", field.name));
        }
        let is_choice = type_ == "AnyValue";
        if is_choice {
            *into = json!({});
        }
        let place = &mut into[field.name];
        if field.repeated && place.is_null() {
            *place = json!([]);
        }
        let mut packed = Reader(bytes);
        while is_packed && !packed.0.is_empty() {
            let value = decoded(field.kind, packed.scalar(field.wire())?, b"")?;
            place.as_array_mut().unwrap().push(value);
        }
        if is_packed {
        } else if field.is_message() && !field.repeated {
            if place.is_null() {
                *place = json!({});
            }
            read(bytes, field.kind, place, layout)?;
        } else if field.repeated {
            let mut item = json!({});
            if field.is_message() {
                read(bytes, field.kind, &mut item, layout)?;
            } else {
                item = decoded(field.kind, value, bytes)?;
            }
            place.as_array_mut().unwrap().push(item);
        } else {
            *place = decoded(field.kind, value, bytes)?;
        }
        if !is_choice && is_default(place) {
            into.as_object_mut().unwrap().remove(field.name);
        }
    }
    Ok(())
}

fn decoded(kind: &str, value: u64, bytes: &[u8]) -> Result<Value, String> {
    Ok(match kind {
        "int32" => json!(value as i32),
        "uint32" => json!(value as u32),
        "int64" => json!((value as i64).to_string()),
        "bool" => json!(value != 0),
        "double" => double(f64::from_bits(value)),
        "bytes" => json!(BASE64.encode(bytes)),
        "id" => json!(HEXLOWER.encode(bytes)),
        "string" => json!(std::str::from_utf8(bytes).map_err(|error| error.to_string())?),
        _ => json!(value.to_string()),
    })
}

pub fn double(value: f64) -> Value {
    match value {
        _ if value.is_nan() => json!("NaN"),
        f64::INFINITY => json!("Infinity"),
        f64::NEG_INFINITY => json!("-Infinity"),
        _ => json!(value),
    }
}

/// Whether a field that is not a choice has the value that it has if it is not there.
pub fn is_default(value: &Value) -> bool {
    [
        json!(0),
        json!("0"),
        json!(""),
        json!([]),
        json!({}),
        Value::Null,
    ]
    .contains(value)
}

/// A message without the fields that have the default value.
pub fn object(fields: Value) -> Value {
    let Value::Object(fields) = fields else {
        panic!("{fields}")
    };
    let fields: Map<_, _> = fields
        .into_iter()
        .filter(|(_, value)| !is_default(value))
        .collect();
    Value::Object(fields)
}

/// A message as the decoder returns it.
pub fn without_nothing(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(without_nothing).collect(),
        Value::Object(fields) => {
            let fields = fields
                .into_iter()
                .map(|(name, value)| (name, without_nothing(value)));
            Value::Object(
                fields
                    .filter(|(name, value)| name.ends_with("Value") || !is_default(value))
                    .collect(),
            )
        }
        value => value,
    }
}
