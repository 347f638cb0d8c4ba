//! A message as a tree of encoded fields, to encode single fields with a wrong type.

use super::message::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Varint,
    Fixed64,
    Bytes,
}

/// A field of a message.
pub struct Node {
    number: u64,
    path: String,
    content: Content,
}

enum Content {
    Varint(u64),
    Fixed64(u64),
    Bytes(Vec<u8>),
    /// Packed numbers of one kind, which readers must also accept unpacked.
    Packed(Kind, Vec<u8>),
    Message(Vec<Node>),
}

/// The field that got another type, and its position.
#[derive(Debug)]
pub struct Changed {
    pub number: u64,
    pub at: u64,
    pub path: String,
}

/// All fields, including those without a value.
pub fn tree(message: &mut dyn Message, layout: Layout) -> Vec<Node> {
    nodes(message, layout, "")
}

fn nodes(message: &mut dyn Message, layout: Layout, path: &str) -> Vec<Node> {
    let mut out = Vec::new();
    for (number, name, slot) in message.fields(layout) {
        let path = format!("{path}.{name}");
        let mut add = |content| {
            let path = path.clone();
            out.push(Node {
                number,
                path,
                content,
            });
        };
        match slot {
            Slot::Int32(v) => add(Content::Varint(*v as u64)),
            Slot::Int64(v) => add(Content::Varint(*v as u64)),
            Slot::Uint32(v) => add(Content::Varint(u64::from(*v))),
            Slot::Uint64(v) => add(Content::Varint(*v)),
            Slot::Fixed64(v) => add(Content::Fixed64(*v)),
            Slot::String(v) => add(Content::Bytes(v.as_bytes().to_vec())),
            Slot::Bytes(v) | Slot::Id(v) => add(Content::Bytes(v.clone())),
            Slot::Int32s(v) => add(packed(v.iter().map(|v| *v as u64))),
            Slot::Int64s(v) => add(packed(v.iter().map(|v| *v as u64))),
            Slot::Fixed64s(v) => {
                let bytes = v.iter().flat_map(|v| v.to_le_bytes());
                add(Content::Packed(Kind::Fixed64, bytes.collect()));
            }
            Slot::Strings(v) => {
                let all = v.iter().map(|v| v.as_bytes().to_vec());
                all.for_each(|v| add(Content::Bytes(v)));
            }
            Slot::One(v) => add(Content::Message(nodes(v, layout, &path))),
            Slot::Many(v) => {
                let all = v.all().into_iter();
                all.for_each(|v| add(Content::Message(nodes(v, layout, &path))));
            }
            Slot::Any(v) => add(Content::Message(any(v, layout, &path))),
        }
    }
    out
}

fn any(value: &mut AnyValue, layout: Layout, path: &str) -> Vec<Node> {
    let (number, content) = match value {
        AnyValue::Empty => return Vec::new(),
        AnyValue::String(v) => (1, Content::Bytes(v.as_bytes().to_vec())),
        AnyValue::Bool(v) => (2, Content::Varint(u64::from(*v))),
        AnyValue::Int(v) => (3, Content::Varint(*v as u64)),
        AnyValue::Double(v) => (4, Content::Fixed64(v.get().to_bits())),
        AnyValue::Array(values) => {
            let path = format!("{path}.values");
            let values = values.iter_mut().map(|value| Node {
                number: 1,
                path: path.clone(),
                content: Content::Message(any(value, layout, &path)),
            });
            (5, Content::Message(values.collect()))
        }
        AnyValue::Kvlist(values) => {
            let values = std::mem::take(values);
            let nodes = nodes(&mut KeyValueList { values }, layout, path);
            (6, Content::Message(nodes))
        }
        AnyValue::Bytes(v) => (7, Content::Bytes(v.clone())),
        AnyValue::StringStrindex(v) => (8, Content::Varint(*v as u64)),
    };
    let path = format!("{path}.{number}");
    vec![Node {
        number,
        path,
        content,
    }]
}

fn packed(values: impl Iterator<Item = u64>) -> Content {
    let mut bytes = Vec::new();
    values.for_each(|value| varint(&mut bytes, value));
    Content::Packed(Kind::Varint, bytes)
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The number of fields.
pub fn count(tree: &[Node]) -> usize {
    let inner = |node: &Node| match &node.content {
        Content::Message(nodes) => count(nodes),
        _ => 0,
    };
    tree.iter().map(|node| 1 + inner(node)).sum()
}

/// Encodes the message with field number `at` as type `kind`. Returns the bytes, and the changed
/// field, or `None` if the field may have this type.
pub fn mistyped(tree: &[Node], at: usize, kind: Kind) -> (Vec<u8>, Option<Changed>) {
    let (mut left, mut changed) = (at as i64, None);
    let mut out = Vec::new();
    put(tree, kind, &mut left, &mut changed, &mut out);
    (out, changed)
}

fn put(
    tree: &[Node],
    kind: Kind,
    left: &mut i64,
    changed: &mut Option<Changed>,
    out: &mut Vec<u8>,
) {
    for node in tree {
        let is_it = *left == 0;
        *left -= 1;
        let fits = match &node.content {
            Content::Varint(_) => kind == Kind::Varint,
            Content::Fixed64(_) => kind == Kind::Fixed64,
            Content::Packed(one, _) => kind == *one || kind == Kind::Bytes,
            Content::Bytes(_) | Content::Message(_) => kind == Kind::Bytes,
        };
        if is_it && !fits {
            *changed = Some(Changed {
                number: node.number,
                at: out.len() as u64,
                path: node.path.clone(),
            });
            match kind {
                Kind::Varint => out.extend([(node.number << 3) as u8, 1]),
                Kind::Fixed64 => {
                    out.push((node.number << 3 | 1) as u8);
                    out.extend(1_u64.to_le_bytes());
                }
                Kind::Bytes => out.extend([(node.number << 3 | 2) as u8, 1, 1]),
            }
            continue;
        }
        match &node.content {
            Content::Varint(value) => {
                out.push((node.number << 3) as u8);
                varint(out, *value);
            }
            Content::Fixed64(value) => {
                out.push((node.number << 3 | 1) as u8);
                out.extend(value.to_le_bytes());
            }
            Content::Bytes(bytes) | Content::Packed(_, bytes) => {
                head(out, node.number, bytes.len());
                out.extend(bytes);
            }
            Content::Message(nodes) => {
                let (mut inner, before) = (Vec::new(), changed.is_some());
                put(nodes, kind, left, changed, &mut inner);
                head(out, node.number, inner.len());
                if let Some(changed) = changed.as_mut().filter(|_| !before) {
                    changed.at += out.len() as u64;
                }
                out.extend(inner);
            }
        }
    }
}

fn head(out: &mut Vec<u8>, number: u64, length: usize) {
    out.push((number << 3 | 2) as u8);
    varint(out, length as u64);
}
