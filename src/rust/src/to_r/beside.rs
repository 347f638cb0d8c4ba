//! What stands beside the columns of version "2.0": those with a leading dot of
//! locations and functions, and tables with a leading dot.

use super::{COLUMNS, ids, start_functions, start_locations};
use crate::columns::{NA, NA_REAL, Tibble};
use crate::slots::Slots;
use profile_core::error::Result;
use profile_core::limits::memory::{TryCollect, TryGrow};
use profile_core::model::{
    Function, Label, Location, Mapping, Names, NativeId, Profile, StringId, Symbols, inexact,
    integer_for_r,
};
use std::ffi::CStr;
use std::fmt;

pub fn put_locations(parent: Slots, slot: usize, profile: &Profile) -> Result<()> {
    let all = || profile.locations.iter();
    let addresses = || all().map(|l| profile.address_of(l));
    let line_exact = all().any(|l| odd(l.line.unwrap_or(0)).is_some());
    let column = all().any(|l| l.column != 0);
    let column_exact = all().any(|l| odd(l.column).is_some());
    let inlined = all().any(|l| l.inlined);
    let frame_type = all().any(|l| l.frame_type.is_some());
    let mapping = addresses().any(|a| a.mapping.is_some());
    let address = addresses().any(|a| a.address != 0);
    let is_folded = addresses().any(|a| a.is_folded);
    let native_id = addresses().any(|a| a.native_id.is_some());
    let further = there(&[
        (line_exact, c".line_exact"),
        (column, c".column"),
        (column_exact, c".column_exact"),
        (inlined, c".inlined"),
        (frame_type, c".frame_type"),
        (mapping, c".mapping_id"),
        (address, c".address"),
        (is_folded, c".is_folded"),
        (native_id, c".native_id"),
    ])?;
    let mut table = start_locations(parent, slot, profile, &further)?;
    if line_exact {
        let number = |l: &Location| odd(l.line?);
        table.texts(all().map(number))?;
    }
    if column {
        table.integers(all().map(|l| integer_for_r(l.column)))?;
    }
    if column_exact {
        table.texts(all().map(|l| odd(l.column)))?;
    }
    if inlined {
        table.logicals(all().map(|l| Some(l.inlined)))?;
    }
    if frame_type {
        table.strings(all().map(|l| profile.frame_type_of(l)))?;
    }
    if mapping {
        let id = |mapping: Option<_>| mapping.map_or(NA, row_id);
        table.integers(addresses().map(|a| id(a.mapping.map(|m| m.row()))))?;
    }
    if address {
        let text = |address: u64| (address != 0).then_some(Hexadecimal(address));
        table.texts(addresses().map(|a| text(a.address)))?;
    }
    if is_folded {
        table.logicals(addresses().map(|a| Some(a.is_folded)))?;
    }
    if native_id {
        put_native_ids(&mut table, addresses().map(|a| a.native_id))?;
    }
    table.finish()
}

pub fn put_functions(parent: Slots, slot: usize, profile: &Profile) -> Result<()> {
    let all = || profile.functions.iter();
    let has_name = |f: &Function| matches!(f.recorded, Names::Name | Names::Both);
    let has_system_name = |f: &Function| matches!(f.recorded, Names::SystemName | Names::Both);
    let start_line = all().any(|f| odd(f.start_line).is_some());
    let name = !all().all(has_name);
    // Of two names that differ both are recorded, of equal ones the first.
    let system_name = all().any(|f| has_system_name(f) && f.name == f.system_name);
    let native_id = all().any(|f| f.native_id.is_some());
    let further = there(&[
        (start_line, c".start_line_exact"),
        (name, c".has_name"),
        (system_name, c".has_system_name"),
        (native_id, c".native_id"),
    ])?;
    let mut table = start_functions(parent, slot, profile, &further)?;
    if start_line {
        table.texts(all().map(|f| odd(f.start_line)))?;
    }
    if name {
        table.logicals(all().map(|f| Some(has_name(f))))?;
    }
    if system_name {
        table.logicals(all().map(|f| Some(has_system_name(f))))?;
    }
    if native_id {
        put_native_ids(&mut table, all().map(|f| f.native_id))?;
    }
    table.finish()
}

pub fn put_mappings(parent: Slots, slot: usize, profile: &Profile) -> Result<()> {
    let mut names = [
        c"mapping_id",
        c"memory_start",
        c"memory_limit",
        c"file_offset",
        c"filename",
        c"build_id",
        c"has_functions",
        c"has_filenames",
        c"has_line_numbers",
        c"has_inline_frames",
    ]
    .into_iter()
    .try_vec(COLUMNS)?;
    let all = || profile.mappings.iter();
    let native_id = all().any(|m| m.native_id.is_some());
    if native_id {
        names.try_push(c"native_id", COLUMNS)?;
    }
    let mut table = Tibble::new(parent, slot, &names, all().len())?;
    table.integers(ids(all().len()))?;
    let addresses: [fn(&Mapping) -> u64; 3] = [|m| m.start, |m| m.limit, |m| m.offset];
    for address in addresses {
        table.texts(all().map(|m| Some(Hexadecimal(address(m)))))?;
    }
    let texts: [fn(&Mapping) -> StringId; 2] = [|m| m.filename, |m| m.build_id];
    for text in texts {
        table.strings(all().map(|m| Some(profile.strings.get(text(m)))))?;
    }
    let flags: [fn(Symbols) -> bool; 4] = [
        |s| s.functions,
        |s| s.filenames,
        |s| s.line_numbers,
        |s| s.inline_frames,
    ];
    for flag in flags {
        table.logicals(all().map(|m| Some(flag(m.symbols))))?;
    }
    if native_id {
        put_native_ids(&mut table, all().map(|m| m.native_id))?;
    }
    table.finish()
}

pub fn put_sample_types(parent: Slots, slot: usize, profile: &Profile) -> Result<()> {
    let names = [c"source_id", c"type", c"unit", c"recorded"];
    let all = || {
        let sources = profile.sources.iter().zip(1..);
        sources.flat_map(|(source, id)| source.types.iter().map(move |type_| (id, type_)))
    };
    let mut table = Tibble::new(parent, slot, &names, all().count())?;
    table.integers(all().map(|(id, _)| id))?;
    table.strings(all().map(|(_, t)| Some(t.type_.name.as_str())))?;
    table.strings(all().map(|(_, t)| Some(t.type_.unit.as_str())))?;
    table.strings(all().map(|(_, t)| Some(t.recorded.as_str())))?;
    table.finish()
}

pub fn put_files(parent: Slots, slot: usize, profile: &Profile) -> Result<()> {
    let names = [c"source_id", c"number", c"filename", c"sample_id"];
    let all = || {
        let sources = profile.sources.iter().zip(1..);
        sources.flat_map(|(source, id)| source.files.iter().map(move |file| (id, file)))
    };
    let mut table = Tibble::new(parent, slot, &names, all().count())?;
    table.integers(all().map(|(id, _)| id))?;
    table.integers(all().map(|(_, f)| i32::try_from(f.number).unwrap_or(NA)))?;
    table.strings(all().map(|(_, f)| Some(profile.strings.get(f.filename))))?;
    let end = profile.samples.len();
    let sample = |before: usize| if before < end { before as i32 + 1 } else { NA };
    table.integers(all().map(|(_, f)| sample(f.before)))?;
    table.finish()
}

pub fn put_labels(parent: Slots, slot: usize, profile: &Profile) -> Result<()> {
    let mut names = [c"sample_id", c"key", c"str", c"num", c"unit"]
        .into_iter()
        .try_vec(COLUMNS)?;
    let labels = &profile.labels;
    let nearly = |label: &Label| label.num.and_then(inexact);
    let exact = labels.iter().any(|label| nearly(label).is_some());
    if exact {
        names.try_push(c"num_exact", COLUMNS)?;
    }
    let other = labels.iter().any(|label| label.other.is_some());
    if other {
        names.try_extend(&[c"type", c"value"], COLUMNS)?;
    }
    let text = |id: Option<StringId>| id.map(|id| profile.strings.get(id));
    let mut table = Tibble::new(parent, slot, &names, labels.len())?;
    table.integers(labels.iter().map(|l| l.sample as i32 + 1))?;
    table.strings(labels.iter().map(|l| text(Some(l.key))))?;
    table.strings(labels.iter().map(|l| text(l.str)))?;
    table.doubles(labels.iter().map(|l| l.num.map_or(NA_REAL, |n| n as f64)))?;
    table.strings(labels.iter().map(|l| text(l.unit)))?;
    if exact {
        table.texts(labels.iter().map(nearly))?;
    }
    if other {
        table.strings(labels.iter().map(|l| Some(l.other?.kind.name())))?;
        table.strings(labels.iter().map(|l| text(Some(l.other?.text))))?;
    }
    table.finish()
}

pub fn put_comments(parent: Slots, slot: usize, profile: &Profile) -> Result<()> {
    let all = || {
        let sources = profile.sources.iter().zip(1..);
        sources.flat_map(|(source, id)| source.comments.iter().map(move |&c| (id, c)))
    };
    let mut table = Tibble::new(parent, slot, &[c"source_id", c"comment"], all().count())?;
    table.integers(all().map(|(id, _)| id))?;
    table.strings(all().map(|(_, c)| Some(profile.strings.get(c))))?;
    table.finish()
}

fn there(columns: &[(bool, &'static CStr)]) -> Result<Vec<&'static CStr>> {
    let there = columns.iter().filter(|(there, _)| *there);
    there.map(|(_, name)| *name).try_vec(COLUMNS)
}

/// The number of a line or column where R's integers do not hold it.
fn odd(number: i64) -> Option<i64> {
    (i64::from(integer_for_r(number)) != number).then_some(number)
}

fn row_id(row: usize) -> i32 {
    row as i32 + 1
}

/// An address as text.
struct Hexadecimal(u64);

impl fmt::Display for Hexadecimal {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

fn put_native_ids(table: &mut Tibble, ids: impl Iterator<Item = Option<NativeId>>) -> Result<()> {
    table.texts(ids)
}
