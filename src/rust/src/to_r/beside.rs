//! What stands beside the columns of version "2.0": those with a leading dot of
//! locations and functions, and tables with a leading dot.

use super::ids;
use crate::arena::{Arena, Value};
use crate::tibble::{NA, NA_REAL, Tibble};
use profile_core::error::Result;
use profile_core::model::{
    Function, Label, Location, Mapping, Names, Profile, StringId, Symbols, inexact, integer_for_r,
};
use std::fmt;

pub fn locations<'call>(arena: Arena<'call>, profile: &Profile) -> Result<Value<'call>> {
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
    let mut table = super::locations(arena, profile)?;
    if line_exact {
        let number = |l: &Location| odd(l.line?);
        table.texts(".line_exact", all().map(number))?;
    }
    if column {
        table.integers(".column", all().map(|l| integer_for_r(l.column)))?;
    }
    if column_exact {
        table.texts(".column_exact", all().map(|l| odd(l.column)))?;
    }
    if inlined {
        table.logicals(".inlined", all().map(|l| Some(l.inlined)))?;
    }
    if frame_type {
        table.strings(".frame_type", all().map(|l| profile.frame_type_of(l)))?;
    }
    if mapping {
        let id = |mapping: Option<_>| mapping.map_or(NA, row_id);
        table.integers(
            ".mapping_id",
            addresses().map(|a| id(a.mapping.map(|m| m.row()))),
        )?;
    }
    if address {
        let text = |address: u64| (address != 0).then_some(Hexadecimal(address));
        table.texts(".address", addresses().map(|a| text(a.address)))?;
    }
    if is_folded {
        table.logicals(".is_folded", addresses().map(|a| Some(a.is_folded)))?;
    }
    if native_id {
        table.texts(".native_id", addresses().map(|a| a.native_id))?;
    }
    table.finish()
}

pub fn functions<'call>(arena: Arena<'call>, profile: &Profile) -> Result<Value<'call>> {
    let all = || profile.functions.iter();
    let has_name = |f: &Function| matches!(f.recorded, Names::Name | Names::Both);
    let has_system_name = |f: &Function| matches!(f.recorded, Names::SystemName | Names::Both);
    let start_line = all().any(|f| odd(f.start_line).is_some());
    let name = !all().all(has_name);
    // Of two names that differ both are recorded, of equal ones the first.
    let system_name = all().any(|f| has_system_name(f) && f.name == f.system_name);
    let native_id = all().any(|f| f.native_id.is_some());
    let mut table = super::functions(arena, profile)?;
    if start_line {
        table.texts(".start_line_exact", all().map(|f| odd(f.start_line)))?;
    }
    if name {
        table.logicals(".has_name", all().map(|f| Some(has_name(f))))?;
    }
    if system_name {
        table.logicals(".has_system_name", all().map(|f| Some(has_system_name(f))))?;
    }
    if native_id {
        table.texts(".native_id", all().map(|f| f.native_id))?;
    }
    table.finish()
}

pub fn mappings<'call>(arena: Arena<'call>, profile: &Profile) -> Result<Value<'call>> {
    let all = || profile.mappings.iter();
    let native_id = all().any(|m| m.native_id.is_some());
    let mut table = Tibble::new(arena, all().len())?;
    table.integers("mapping_id", ids(all().len()))?;
    let address = |of: fn(&Mapping) -> u64| all().map(move |m| Some(Hexadecimal(of(m))));
    table.texts("memory_start", address(|m| m.start))?;
    table.texts("memory_limit", address(|m| m.limit))?;
    table.texts("file_offset", address(|m| m.offset))?;
    let text = |id| Some(profile.strings.get(id));
    table.strings("filename", all().map(|m| text(m.filename)))?;
    table.strings("build_id", all().map(|m| text(m.build_id)))?;
    let flag = |of: fn(Symbols) -> bool| all().map(move |m| Some(of(m.symbols)));
    table.logicals("has_functions", flag(|s| s.functions))?;
    table.logicals("has_filenames", flag(|s| s.filenames))?;
    table.logicals("has_line_numbers", flag(|s| s.line_numbers))?;
    table.logicals("has_inline_frames", flag(|s| s.inline_frames))?;
    if native_id {
        table.texts("native_id", all().map(|m| m.native_id))?;
    }
    table.finish()
}

pub fn sample_types<'call>(arena: Arena<'call>, profile: &Profile) -> Result<Value<'call>> {
    let all = || {
        let sources = profile.sources.iter().zip(1..);
        sources.flat_map(|(source, id)| source.types.iter().map(move |type_| (id, type_)))
    };
    let mut table = Tibble::new(arena, all().count())?;
    table.integers("source_id", all().map(|(id, _)| id))?;
    table.strings("type", all().map(|(_, t)| Some(t.type_.name.as_str())))?;
    table.strings("unit", all().map(|(_, t)| Some(t.type_.unit.as_str())))?;
    table.strings("recorded", all().map(|(_, t)| Some(t.recorded.as_str())))?;
    table.finish()
}

pub fn files<'call>(arena: Arena<'call>, profile: &Profile) -> Result<Value<'call>> {
    let all = || {
        let sources = profile.sources.iter().zip(1..);
        sources.flat_map(|(source, id)| source.files.iter().map(move |file| (id, file)))
    };
    let mut table = Tibble::new(arena, all().count())?;
    table.integers("source_id", all().map(|(id, _)| id))?;
    table.integers(
        "number",
        all().map(|(_, f)| i32::try_from(f.number).unwrap_or(NA)),
    )?;
    table.strings(
        "filename",
        all().map(|(_, f)| Some(profile.strings.get(f.filename))),
    )?;
    let end = profile.samples.len();
    let sample = |before: usize| if before < end { before as i32 + 1 } else { NA };
    table.integers("sample_id", all().map(|(_, f)| sample(f.before)))?;
    table.finish()
}

pub fn labels<'call>(arena: Arena<'call>, profile: &Profile) -> Result<Value<'call>> {
    let labels = &profile.labels;
    let nearly = |label: &Label| label.num.and_then(inexact);
    let exact = labels.iter().any(|label| nearly(label).is_some());
    let other = labels.iter().any(|label| label.other.is_some());
    let text = |id: Option<StringId>| id.map(|id| profile.strings.get(id));
    let mut table = Tibble::new(arena, labels.len())?;
    table.integers("sample_id", labels.iter().map(|l| l.sample as i32 + 1))?;
    table.strings("key", labels.iter().map(|l| text(Some(l.key))))?;
    table.strings("str", labels.iter().map(|l| text(l.str)))?;
    table.doubles(
        "num",
        labels.iter().map(|l| l.num.map_or(NA_REAL, |n| n as f64)),
    )?;
    table.strings("unit", labels.iter().map(|l| text(l.unit)))?;
    if exact {
        table.texts("num_exact", labels.iter().map(nearly))?;
    }
    if other {
        table.strings("type", labels.iter().map(|l| Some(l.other?.kind.name())))?;
        table.strings("value", labels.iter().map(|l| text(Some(l.other?.text))))?;
    }
    table.finish()
}

pub fn comments<'call>(arena: Arena<'call>, profile: &Profile) -> Result<Value<'call>> {
    let all = || {
        let sources = profile.sources.iter().zip(1..);
        sources.flat_map(|(source, id)| source.comments.iter().map(move |&c| (id, c)))
    };
    let mut table = Tibble::new(arena, all().count())?;
    table.integers("source_id", all().map(|(id, _)| id))?;
    table.strings("comment", all().map(|(_, c)| Some(profile.strings.get(c))))?;
    table.finish()
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
