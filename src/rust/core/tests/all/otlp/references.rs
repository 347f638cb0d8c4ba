//! References between the tables of a message: indices that are out of range, rows that are not
//! used, and rows that are equal by value.

use super::message::*;
use std::collections::{BTreeMap, BTreeSet};

const STRING: usize = 4;

/// The seven tables, in the order of their fields, with the references of each row.
pub struct Graph {
    names: Vec<&'static str>,
    rows: Vec<Vec<Vec<Reference>>>,
    roots: Vec<Reference>,
}

struct Reference {
    table: usize,
    index: i32,
    place: String,
}

/// The table that a field refers to, by the name of the field.
fn table(name: &str) -> Option<usize> {
    match name {
        "mappingIndex" => Some(0),
        "locationIndices" => Some(1),
        "functionIndex" => Some(2),
        "linkIndex" => Some(3),
        "attributeIndices" => Some(5),
        "stackIndex" => Some(6),
        _ if name.ends_with("Strindex") => Some(STRING),
        _ => None,
    }
}

pub fn graph(data: &Data) -> Graph {
    let mut data = data.clone();
    let mut roots = Vec::new();
    for (i, given) in data.resource_profiles.iter_mut().enumerate() {
        collect(given, &format!("resourceProfiles[{i}]"), &mut roots);
    }
    let (mut names, mut rows) = (Vec::new(), Vec::new());
    for (_, name, slot) in data.dictionary.fields(Layout::V11) {
        names.push(name);
        rows.push(match slot {
            Slot::Many(items) => rows_of(name, items),
            Slot::Strings(items) => items.iter().map(|_| Vec::new()).collect(),
            _ => unreachable!(),
        });
    }
    Graph { names, rows, roots }
}

fn rows_of(name: &str, items: &mut dyn Messages) -> Vec<Vec<Reference>> {
    let references = items.all().into_iter().enumerate().map(|(i, item)| {
        let mut out = Vec::new();
        collect(item, &format!("dictionary.{name}[{i}]"), &mut out);
        out
    });
    references.collect()
}

fn collect(message: &mut dyn Message, place: &str, out: &mut Vec<Reference>) {
    each_index(message, place, &mut |table, index, place| {
        let (index, place) = (*index, place.to_string());
        out.push(Reference {
            table,
            index,
            place,
        });
    });
}

/// Called with a table, an index into it, and the path of the index.
pub type Visit<'a> = &'a mut dyn FnMut(usize, &mut i32, &str);

pub fn each_index(message: &mut dyn Message, place: &str, visit: Visit) {
    walk(message, place, &mut |place, name, slot| {
        let place = format!("{place}.{name}");
        match (slot, table(name)) {
            (Slot::Any(value), _) => each_index_of(value, &place, visit),
            (Slot::Int32(index), Some(table)) => visit(table, index, &place),
            (Slot::Int32s(indices), Some(table)) => {
                for (i, index) in indices.iter_mut().enumerate() {
                    visit(table, index, &format!("{place}[{i}]"));
                }
            }
            _ => {}
        }
    });
}

fn each_index_of(value: &mut AnyValue, place: &str, visit: Visit) {
    match value {
        AnyValue::StringStrindex(index) => visit(STRING, index, place),
        AnyValue::Array(values) => {
            for value in values {
                each_index_of(value, place, visit);
            }
        }
        AnyValue::Kvlist(pairs) => {
            for pair in pairs {
                each_index(pair, place, visit);
            }
        }
        _ => {}
    }
}

impl Graph {
    /// Returns the indices that are out of range. Index 0 means "none", even if the table is empty.
    pub fn dangling(&self) -> Vec<(&str, i32)> {
        let all = self.rows.iter().flatten().flatten().chain(&self.roots);
        let dangling = all.filter(|r| {
            let row = usize::try_from(r.index);
            r.index != 0 && !row.is_ok_and(|row| row < self.rows[r.table].len())
        });
        dangling.map(|r| (r.place.as_str(), r.index)).collect()
    }

    /// Returns the rows that no profile uses, directly or indirectly.
    pub fn orphans(&self) -> Vec<String> {
        let mut seen: BTreeSet<(usize, usize)> = BTreeSet::new();
        let mut next: Vec<_> = self.roots.iter().collect();
        while let Some(r) = next.pop() {
            if r.index != 0 && seen.insert((r.table, r.index as usize)) {
                next.extend(&self.rows[r.table][r.index as usize]);
            }
        }
        let all =
            (0..self.rows.len()).flat_map(|t| (1..self.rows[t].len()).map(move |row| (t, row)));
        all.filter(|row| !seen.contains(row))
            .map(|(t, row)| format!("dictionary.{}[{row}]", self.names[t]))
            .collect()
    }
}

/// For the rows of the tables that samples refer to: the first row that is equal by value.
pub struct Same {
    pub attributes: Vec<usize>,
    pub links: Vec<usize>,
    pub stacks: Vec<usize>,
}

impl Same {
    pub fn attribute(&self, index: i32) -> usize {
        first(&self.attributes, index)
    }

    pub fn link(&self, index: i32) -> usize {
        first(&self.links, index)
    }

    pub fn stack(&self, index: i32) -> usize {
        first(&self.stacks, index)
    }
}

fn first(same: &[usize], index: i32) -> usize {
    same.get(index as usize).copied().unwrap_or(0)
}

/// Returns for each value the index of the first value that equals it.
pub fn same<T: Ord>(values: impl Iterator<Item = T>) -> Vec<usize> {
    let mut seen = BTreeMap::new();
    let found = values
        .enumerate()
        .map(|(i, value)| *seen.entry(value).or_insert(i));
    found.collect()
}
