//! JSON as a tree that can be changed: objects keep the order of their fields and may repeat them.

use super::Random;
use serde_json::Value;
use std::fmt::Write;

#[derive(Clone)]
pub enum Tree {
    Object(Vec<(String, Tree)>),
    Array(Vec<Tree>),
    /// A value as it is written.
    Leaf(String),
}

/// Values that readers may not expect.
const LEAVES: [&str; 32] = [
    "null",
    "true",
    "false",
    "0",
    "-0",
    "1",
    "-1",
    "2",
    "0.5",
    "-2",
    "1e3",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "-2147483649",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "1e308",
    "-1e308",
    "1.7976931348623157e308",
    "5e-324",
    "1e999",
    "NaN",
    "\"\"",
    "\"NaN\"",
    "\"Infinity\"",
    "\"9223372036854775807\"",
    "\"\\ud800\\u0000\"",
];

impl Tree {
    /// The tree of a text in which each array has at most `longest` elements, so that it is read quickly.
    pub fn parse(text: &[u8], longest: usize) -> Option<Tree> {
        let value = serde_json::from_slice(text).ok()?;
        Some(Tree::of(value, longest))
    }

    fn of(value: Value, longest: usize) -> Tree {
        match value {
            Value::Object(fields) => {
                let fields = fields.into_iter();
                Tree::Object(fields.map(|(k, v)| (k, Tree::of(v, longest))).collect())
            }
            Value::Array(items) => {
                let items = items.into_iter().take(longest);
                Tree::Array(items.map(|v| Tree::of(v, longest)).collect())
            }
            leaf => Tree::Leaf(leaf.to_string()),
        }
    }

    pub fn write(&self, out: &mut String) {
        match self {
            Tree::Leaf(text) => out.push_str(text),
            Tree::Array(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    out.push_str(if i > 0 { "," } else { "" });
                    item.write(out);
                }
                out.push(']');
            }
            Tree::Object(fields) => {
                out.push('{');
                for (i, (name, value)) in fields.iter().enumerate() {
                    out.push_str(if i > 0 { "," } else { "" });
                    let _ = write!(out, "{}:", Value::from(name.as_str()));
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    /// The number of values, this one included.
    fn count(&self) -> usize {
        match self {
            Tree::Leaf(_) => 1,
            Tree::Array(items) => 1 + items.iter().map(Tree::count).sum::<usize>(),
            Tree::Object(fields) => 1 + fields.iter().map(|(_, v)| v.count()).sum::<usize>(),
        }
    }

    /// The value with this number, in the order of the text.
    fn at(&mut self, number: usize) -> &mut Tree {
        if number == 0 {
            return self;
        }
        let children: Vec<&mut Tree> = match self {
            Tree::Leaf(_) => unreachable!("a leaf has no other values"),
            Tree::Array(items) => items.iter_mut().collect(),
            Tree::Object(fields) => fields.iter_mut().map(|(_, value)| value).collect(),
        };
        let mut rest = number - 1;
        for child in children {
            let count = child.count();
            if rest < count {
                return child.at(rest);
            }
            rest -= count;
        }
        unreachable!("there are as many values as were counted")
    }

    /// Changes the tree in a few places.
    pub fn mutate(&mut self, random: &mut Random) {
        for _ in 0..1 + random.below(4) {
            let count = self.count();
            let other = self.at(random.below(count)).clone();
            let place = self.at(random.below(count));
            match random.below(10) {
                // Another type, an extreme number.
                0..=2 => *place = Tree::Leaf(LEAVES[random.below(LEAVES.len())].to_owned()),
                3 => *place = other,
                4 => *place = Tree::Leaf(format!("\"{}\"", "é".repeat(random.below(100_000)))),
                5 => {
                    let depth = [2, 50, 1000, 100_000][random.below(4)];
                    let (open, close) = [("[", "]"), ("{\"children\":[", "]}")][random.below(2)];
                    *place = Tree::Leaf(open.repeat(depth) + &close.repeat(depth));
                }
                6 => *place = Tree::Array(vec![place.clone(), other]),
                _ => place.rearrange(other, random),
            }
        }
    }

    /// Drops, repeats, renames, swaps or adds elements; changes a number by a little.
    fn rearrange(&mut self, other: Tree, random: &mut Random) {
        match self {
            Tree::Leaf(text) => {
                if let Ok(number) = text.parse::<i64>() {
                    *text = (number.wrapping_add(random.below(5) as i64 - 2)).to_string();
                }
            }
            Tree::Array(items) => rearrange(items, other, random),
            Tree::Object(fields) => {
                let names: Vec<_> = fields.iter().map(|(name, _)| name.clone()).collect();
                let name = names.get(random.below(names.len()));
                let name = name.map_or("a", String::as_str).to_owned();
                match fields.len() {
                    // Two fields have each other's values.
                    count @ 2.. if random.below(3) == 0 => {
                        let (one, two) = (random.below(count), random.below(count));
                        let value = fields[one].1.clone();
                        fields[one].1 = std::mem::replace(&mut fields[two].1, value);
                    }
                    _ => rearrange(fields, (name, other), random),
                }
            }
        }
    }
}

fn rearrange<T: Clone>(items: &mut Vec<T>, other: T, random: &mut Random) {
    let at = random.below(items.len());
    match random.below(5) {
        _ if items.is_empty() => items.push(other),
        0 => drop(items.remove(at)),
        1 => items.truncate(at),
        2 => items.insert(at, items[at].clone()),
        3 => items.insert(at, other),
        _ => {
            let to = random.below(items.len());
            items.swap(at, to);
        }
    }
}
