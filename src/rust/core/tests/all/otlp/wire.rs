//! Encodes and decodes messages as protocol buffers, independently of the crate, in each layout and
//! in each form that protocol buffers allow.

use super::message::*;

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
        }
    }

    /// All forms of a layout, starting with the plain one.
    pub fn all(layout: Layout) -> Vec<Form> {
        let mut forms = Vec::new();
        for packing in [Packing::Packed, Packing::Single, Packing::Mixed] {
            for bits in 0..8 {
                forms.push(Form {
                    layout,
                    packing,
                    explicit: bits & 1 != 0,
                    reversed: bits & 2 != 0,
                    unknown: bits & 4 != 0,
                    again: false,
                });
            }
        }
        forms
    }
}

pub fn encode(data: &Data, layout: Layout) -> Vec<u8> {
    encode_as(data, Form::plain(layout))
}

/// Panics if `data` contains a field that the layout does not have.
pub fn encode_as(data: &Data, form: Form) -> Vec<u8> {
    let outermost = Form {
        unknown: false,
        ..form
    };
    message(&mut data.clone(), outermost, form).0
}

pub fn decode(bytes: &[u8], layout: Layout) -> Result<Data, String> {
    let mut data = Data::default();
    read(bytes, &mut data, layout)?;
    Ok(data)
}

#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn uint(&mut self, number: u64, value: u64) {
        self.varint(number << 3);
        self.varint(value);
    }

    fn fixed64(&mut self, number: u64, value: u64) {
        self.varint(number << 3 | 1);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, number: u64, bytes: &[u8]) {
        self.varint(number << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn repeated(&mut self, number: u64, values: &[u64], fixed: bool, form: Form) {
        let single = match form.packing {
            Packing::Packed => 0,
            Packing::Single => values.len(),
            Packing::Mixed => values.len().min(1),
        };
        for value in &values[..single] {
            if fixed {
                self.fixed64(number, *value);
            } else {
                self.uint(number, *value);
            }
        }
        let mut packed = Bytes::default();
        for value in &values[single..] {
            if fixed {
                packed.0.extend(value.to_le_bytes());
            } else {
                packed.varint(*value);
            }
        }
        if !packed.0.is_empty() || form.explicit {
            self.bytes(number, &packed.0);
        }
    }

    fn unknown(&mut self) {
        self.uint(2001, 7);
        self.fixed64(2002, 7);
        self.bytes(2003, b"\xff");
        self.varint(2004 << 3 | 5);
        self.0.extend([1, 2, 3, 4]);
    }
}

/// Encodes a message in form `form`, and the messages in it in form `inner`.
fn message(message_: &mut dyn Message, form: Form, inner: Form) -> Bytes {
    let mut out = Bytes::default();
    if form.unknown {
        out.unknown();
    }
    let mut fields = message_.fields(form.layout);
    if form.reversed {
        fields.reverse();
    }
    for (number, _, slot) in fields {
        let written = form.explicit;
        if form.again {
            match &slot {
                Slot::Int32(0) | Slot::Int64(0) | Slot::Uint32(0) | Slot::Uint64(0) => {}
                Slot::Int32(_) | Slot::Int64(_) | Slot::Uint32(_) | Slot::Uint64(_) => {
                    out.uint(number, u64::MAX - 7);
                }
                Slot::Fixed64(v) if **v != 0 => out.fixed64(number, u64::MAX),
                Slot::String(v) if !v.is_empty() => out.bytes(number, b"caf\xe9"),
                Slot::Bytes(v) | Slot::Id(v) if !v.is_empty() => out.bytes(number, b"caf\xe9"),
                Slot::Any(v) if **v != AnyValue::Empty => out.bytes(number, &[8 << 3, 0x7f]),
                _ => {}
            }
        }
        match slot {
            Slot::Int32(v) if *v != 0 || written => out.uint(number, *v as i64 as u64),
            Slot::Int64(v) if *v != 0 || written => out.uint(number, *v as u64),
            Slot::Uint32(v) if *v != 0 || written => out.uint(number, u64::from(*v)),
            Slot::Uint64(v) if *v != 0 || written => out.uint(number, *v),
            Slot::Fixed64(v) if *v != 0 || written => out.fixed64(number, *v),
            Slot::String(v) if !v.is_empty() || written => out.bytes(number, v.as_bytes()),
            Slot::Bytes(v) | Slot::Id(v) if !v.is_empty() || written => out.bytes(number, v),
            Slot::Int32s(v) => {
                let values: Vec<_> = v.iter().map(|v| i64::from(*v) as u64).collect();
                out.repeated(number, &values, false, form);
            }
            Slot::Int64s(v) => {
                let values: Vec<_> = v.iter().map(|v| *v as u64).collect();
                out.repeated(number, &values, false, form);
            }
            Slot::Fixed64s(v) => out.repeated(number, v, true, form),
            Slot::Strings(v) => v.iter().for_each(|v| out.bytes(number, v.as_bytes())),
            Slot::Many(v) => {
                for item in v.all() {
                    out.bytes(number, &message(item, inner, inner).0);
                }
            }
            Slot::One(v) => {
                let body = message(v, inner, inner).0;
                if !body.is_empty() || written {
                    out.bytes(number, &body);
                }
            }
            Slot::Any(v) => {
                let body = any(v, inner).0;
                if !body.is_empty() || written {
                    out.bytes(number, &body);
                }
            }
            _ => {}
        }
    }
    out
}

fn any(value: &mut AnyValue, form: Form) -> Bytes {
    let mut out = Bytes::default();
    if form.again && !matches!(value, AnyValue::Empty) {
        out.bytes(1, b"caf\xe9");
    }
    match value {
        AnyValue::Empty => {}
        AnyValue::String(v) => out.bytes(1, v.as_bytes()),
        AnyValue::Bool(v) => out.uint(2, u64::from(*v)),
        AnyValue::Int(v) => out.uint(3, *v as u64),
        AnyValue::Double(v) => out.fixed64(4, v.get().to_bits()),
        AnyValue::Array(values) => {
            let mut body = Bytes::default();
            for value in values {
                body.bytes(1, &any(value, form).0);
            }
            out.bytes(5, &body.0);
        }
        AnyValue::Kvlist(v) => {
            let mut list = KeyValueList { values: v.clone() };
            out.bytes(6, &message(&mut list, form, form).0);
        }
        AnyValue::Bytes(v) => out.bytes(7, v),
        AnyValue::StringStrindex(v) => {
            assert_eq!(form.layout, Layout::V11, "no such field");
            out.uint(8, i64::from(*v) as u64);
        }
    }
    out
}

enum Raw<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32,
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: u64) -> Result<&'a [u8], String> {
        let (taken, rest) = usize::try_from(count)
            .ok()
            .and_then(|count| self.0.split_at_checked(count))
            .ok_or("cut short")?;
        self.0 = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, String> {
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

    fn fixed64(&mut self) -> Result<u64, String> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().unwrap()))
    }

    fn field(&mut self) -> Result<(u64, Raw<'a>), String> {
        let key = self.varint()?;
        let raw = match key & 7 {
            0 => Raw::Varint(self.varint()?),
            1 => Raw::Fixed64(self.fixed64()?),
            2 => {
                let length = self.varint()?;
                Raw::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Raw::Fixed32)?,
            other => return Err(format!("wire type {other}")),
        };
        match key >> 3 {
            0 => Err("field number 0".into()),
            number => Ok((number, raw)),
        }
    }

    fn varints(mut self) -> Result<Vec<u64>, String> {
        let mut values = Vec::new();
        while !self.0.is_empty() {
            values.push(self.varint()?);
        }
        Ok(values)
    }
}

fn text(bytes: &[u8]) -> Result<String, String> {
    String::from_utf8(bytes.to_vec()).map_err(|e| e.to_string())
}

fn read(bytes: &[u8], into: &mut dyn Message, layout: Layout) -> Result<(), String> {
    let mut reader = Reader(bytes);
    while !reader.0.is_empty() {
        let (number, raw) = reader.field()?;
        let fields = into.fields(layout);
        let Some((_, name, slot)) = fields.into_iter().find(|field| field.0 == number) else {
            continue;
        };
        match (slot, raw) {
            (Slot::Int32(v), Raw::Varint(raw)) => *v = raw as i32,
            (Slot::Int64(v), Raw::Varint(raw)) => *v = raw as i64,
            (Slot::Uint32(v), Raw::Varint(raw)) => *v = raw as u32,
            (Slot::Uint64(v), Raw::Varint(raw)) => *v = raw,
            (Slot::Fixed64(v), Raw::Fixed64(raw)) => *v = raw,
            (Slot::String(v), Raw::Bytes(raw)) => *v = text(raw)?,
            (Slot::Bytes(v) | Slot::Id(v), Raw::Bytes(raw)) => *v = raw.to_vec(),
            (Slot::Int32s(v), Raw::Varint(raw)) => v.push(raw as i32),
            (Slot::Int32s(v), Raw::Bytes(raw)) => {
                v.extend(Reader(raw).varints()?.into_iter().map(|v| v as i32));
            }
            (Slot::Int64s(v), Raw::Varint(raw)) => v.push(raw as i64),
            (Slot::Int64s(v), Raw::Bytes(raw)) => {
                v.extend(Reader(raw).varints()?.into_iter().map(|v| v as i64));
            }
            (Slot::Fixed64s(v), Raw::Fixed64(raw)) => v.push(raw),
            (Slot::Fixed64s(v), Raw::Bytes(raw)) => {
                let mut packed = Reader(raw);
                while !packed.0.is_empty() {
                    v.push(packed.fixed64()?);
                }
            }
            (Slot::Strings(v), Raw::Bytes(raw)) => v.push(text(raw)?),
            (Slot::One(v), Raw::Bytes(raw)) => read(raw, v, layout)?,
            (Slot::Many(v), Raw::Bytes(raw)) => read(raw, v.add(), layout)?,
            (Slot::Any(v), Raw::Bytes(raw)) => *v = read_any(raw, layout)?,
            _ => return Err(format!("wrong wire type for {name}")),
        }
    }
    Ok(())
}

fn read_any(bytes: &[u8], layout: Layout) -> Result<AnyValue, String> {
    let mut value = AnyValue::Empty;
    let mut reader = Reader(bytes);
    while !reader.0.is_empty() {
        value = match reader.field()? {
            (1, Raw::Bytes(raw)) => AnyValue::String(text(raw)?),
            (2, Raw::Varint(raw)) => AnyValue::Bool(raw != 0),
            (3, Raw::Varint(raw)) => AnyValue::Int(raw as i64),
            (4, Raw::Fixed64(raw)) => AnyValue::Double(Double::new(f64::from_bits(raw))),
            (5, Raw::Bytes(raw)) => {
                let mut values = Vec::new();
                let mut items = Reader(raw);
                while !items.0.is_empty() {
                    match items.field()? {
                        (1, Raw::Bytes(raw)) => values.push(read_any(raw, layout)?),
                        (1, _) => return Err("wrong wire type in an array".into()),
                        _ => {}
                    }
                }
                AnyValue::Array(values)
            }
            (6, Raw::Bytes(raw)) => {
                let mut list = KeyValueList::default();
                read(raw, &mut list, layout)?;
                AnyValue::Kvlist(list.values)
            }
            (7, Raw::Bytes(raw)) => AnyValue::Bytes(raw.to_vec()),
            (8, Raw::Varint(raw)) if layout == Layout::V11 => AnyValue::StringStrindex(raw as i32),
            (1..=7, _) => return Err("wrong wire type in a value".into()),
            _ => value,
        };
    }
    Ok(value)
}
