//! The functions of a unit of debug information, including inlined ones.

use super::debug_info::{Failure, Slice, Unit, Value};
use super::lines::{self, SourceLine};
use super::names;
use super::ranges::Ranges;
use crate::limits::memory::TryGrow;
use gimli::constants as dw;
use gimli::{AttributeValue, Dwarf, RangeListsOffset, UnitOffset};
use std::ops::Range;
use std::rc::Rc;

pub struct Functions {
    rows: Vec<Function>,
    /// The addresses of the rows.
    ranges: Ranges<usize>,
    /// In the order of their entries.
    scopes: Vec<Scope>,
}

pub struct Function {
    pub entry: UnitOffset,
    /// The call, if the function was inlined.
    pub call: Option<Call>,
    /// Read when it is first needed.
    pub info: Option<Rc<FunctionInfo>>,
    depth: usize,
}

/// A scope: a namespace, a class or a function.
struct Scope {
    entry: UnitOffset,
    /// The row of the next outer scope.
    outer: Option<usize>,
}

/// The innermost function and scope that contain the entries below an entry at this level.
#[derive(Clone, Copy, Default)]
struct Around {
    level: isize,
    function: Option<usize>,
    scope: Option<usize>,
}

#[derive(Clone, Copy, Default)]
pub struct Call {
    /// The row of the calling function.
    pub from: usize,
    pub file: Option<u64>,
    pub line: u32,
    pub column: u32,
}

impl Functions {
    pub fn read(
        dwarf: &Dwarf<Slice>,
        unit: &Unit,
        most_ranges: usize,
    ) -> std::result::Result<Functions, Failure> {
        let mut rows: Vec<Function> = Vec::new();
        let mut ranges = Vec::new();
        let mut scopes: Vec<Scope> = Vec::new();
        let mut around: Vec<Around> = Vec::new();
        let mut entries = unit.entries_raw(None)?;
        while !entries.is_empty() {
            let entry = entries.next_offset();
            let level = entries.next_depth();
            let Some(abbreviation) = entries.read_abbreviation()? else {
                continue;
            };
            while around.last().is_some_and(|above| above.level >= level) {
                around.pop();
            }
            let mut inside = around.last().copied().unwrap_or_default();
            inside.level = level;
            let outer = inside.function;
            if is_scope(abbreviation.tag()) {
                let row = scopes.len();
                let outer = inside.scope.replace(row);
                scopes.try_push(Scope { entry, outer })?;
            }
            let inlined = abbreviation.tag() == dw::DW_TAG_inlined_subroutine;
            if inlined || abbreviation.tag() == dw::DW_TAG_subprogram {
                inside.function = Some(rows.len());
            }
            if abbreviation.has_children() {
                around.try_push(inside)?;
            }
            if inside.function == outer {
                entries.skip_attributes(abbreviation.attributes())?;
                continue;
            }
            let mut extent = Extent::default();
            let mut call = Call::default();
            for specification in abbreviation.attributes() {
                let attribute = entries.read_attribute(*specification)?;
                let value = attribute.value();
                match attribute.name() {
                    dw::DW_AT_call_file => call.file = file_of(value),
                    dw::DW_AT_call_line => call.line = number_of(value),
                    dw::DW_AT_call_column => call.column = number_of(value),
                    name => extent.note(name, value, dwarf, unit)?,
                }
            }
            let outside = outer.and_then(|outer| rows.get(outer));
            let function = Function {
                entry,
                call: outer.filter(|_| inlined).map(|from| Call { from, ..call }),
                info: None,
                depth: outside.map_or(0, |outside| outside.depth + 1),
            };
            let row = rows.len();
            rows.try_push(function)?;
            extent.each(dwarf, unit, |range| {
                if ranges.len() == most_ranges {
                    return Err(Failure::Damaged);
                }
                Ok(ranges.try_push((range, row))?)
            })?;
        }
        Ok(Functions {
            rows,
            ranges: Ranges::new(ranges)?,
            scopes,
        })
    }

    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.ranges.iter()
    }

    /// The row of the innermost function at an address.
    pub fn at(&self, address: u64) -> Option<usize> {
        let all = self.ranges.containing(address).map(|(_, row)| *row);
        all.max_by_key(|row| self.rows.get(*row).map(|function| function.depth))
    }

    /// The entry of the scope that contains a scope, such as a function.
    pub fn scope_around(&self, entry: UnitOffset) -> Option<UnitOffset> {
        let row = self
            .scopes
            .binary_search_by_key(&entry, |scope| scope.entry);
        let outer = self.scopes.get(row.ok()?)?.outer?;
        self.scopes.get(outer).map(|scope| scope.entry)
    }

    pub fn get(&self, row: usize) -> Option<&Function> {
        self.rows.get(row)
    }

    pub fn get_mut(&mut self, row: usize) -> Option<&mut Function> {
        self.rows.get_mut(row)
    }
}

fn is_scope(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        dw::DW_TAG_subprogram
            | dw::DW_TAG_namespace
            | dw::DW_TAG_class_type
            | dw::DW_TAG_structure_type
            | dw::DW_TAG_union_type
    )
}

fn file_of(value: Value) -> Option<u64> {
    match value {
        AttributeValue::FileIndex(file) => Some(file),
        value => value.udata_value(),
    }
}

fn number_of(value: Value) -> u32 {
    lines::small(value.udata_value().unwrap_or(0))
}

/// The attributes of an entry that describe its addresses.
#[derive(Default)]
pub struct Extent {
    low: Option<u64>,
    high: Option<u64>,
    size: Option<u64>,
    list: Option<RangeListsOffset>,
}

impl Extent {
    fn note(
        &mut self,
        name: gimli::DwAt,
        value: Value,
        dwarf: &Dwarf<Slice>,
        unit: &Unit,
    ) -> gimli::Result<()> {
        match name {
            dw::DW_AT_low_pc => self.low = dwarf.attr_address(unit, value)?,
            dw::DW_AT_high_pc => match value {
                AttributeValue::Udata(size) => self.size = Some(size),
                value => self.high = dwarf.attr_address(unit, value)?,
            },
            dw::DW_AT_ranges => self.list = dwarf.attr_ranges_offset(unit, value)?,
            _ => {}
        }
        Ok(())
    }

    fn each(
        &self,
        dwarf: &Dwarf<Slice>,
        unit: &Unit,
        mut give: impl FnMut(Range<u64>) -> std::result::Result<(), Failure>,
    ) -> std::result::Result<(), Failure> {
        if let Some(list) = self.list {
            let mut list = dwarf.ranges(unit, list)?;
            while let Some(range) = list.next()? {
                if range.begin < range.end {
                    give(range.begin..range.end)?;
                }
            }
            return Ok(());
        }
        let high = self.high.or_else(|| self.low?.checked_add(self.size?));
        match (self.low, high) {
            (Some(low), Some(high)) if low < high => give(low..high),
            _ => Ok(()),
        }
    }
}

/// The names of a function, and where it is defined.
#[derive(Debug, Default)]
pub struct FunctionInfo {
    /// Empty if it is unknown.
    pub name: String,
    pub system_name: String,
    /// The line of its definition.
    pub start: SourceLine,
}

/// The attributes of an entry and of those that it refers to.
#[derive(Default)]
pub struct EntryAttributes {
    /// The name in the source code, without its scopes.
    pub plain: Option<String>,
    /// The linker's name.
    pub linkage: Option<String>,
    start: Option<SourceLine>,
    is_namespace: bool,
}

impl EntryAttributes {
    /// Reads an entry, and returns a reference to the next entry to read.
    pub fn read<'f>(
        &mut self,
        dwarf: &Dwarf<Slice<'f>>,
        unit: &Unit<'f>,
        entry: UnitOffset,
    ) -> gimli::Result<Option<Value<'f>>> {
        let text = |value| -> gimli::Result<Option<String>> {
            let bytes = dwarf.attr_string(unit, value)?;
            Ok(names::text(bytes.slice()))
        };
        let mut next = None;
        let (mut file, mut line) = (None, 0);
        let mut entries = unit.entries_raw(Some(entry))?;
        let Some(abbreviation) = entries.read_abbreviation()? else {
            return Ok(None);
        };
        self.is_namespace = abbreviation.tag() == dw::DW_TAG_namespace;
        for specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(*specification)?;
            let value = attribute.value();
            match attribute.name() {
                dw::DW_AT_linkage_name | dw::DW_AT_MIPS_linkage_name if self.linkage.is_none() => {
                    self.linkage = text(value)?;
                }
                dw::DW_AT_name if self.plain.is_none() => self.plain = text(value)?,
                dw::DW_AT_abstract_origin | dw::DW_AT_specification => next = Some(value),
                dw::DW_AT_decl_file => file = file_of(value),
                dw::DW_AT_decl_line => line = number_of(value),
                _ => {}
            }
        }
        if let (None, Some(file), 1..) = (&self.start, file, line) {
            self.start = Some(SourceLine {
                filename: lines::filename(file, dwarf, unit),
                line,
                column: 0,
            });
        }
        Ok(next)
    }

    pub fn plain_or_anonymous(&self) -> &str {
        match &self.plain {
            Some(plain) => plain,
            None if self.is_namespace => "(anonymous namespace)",
            None => "(anonymous class)",
        }
    }

    /// The demangled linkage name.
    pub fn demangled(&self) -> Option<String> {
        self.linkage.as_deref().and_then(names::demangle)
    }

    /// `around`: the name of the scope that contains the function, empty if there is none.
    #[expect(clippy::disallowed_macros, reason = "names have an end, see names.rs")]
    pub fn into_info(self, around: &str) -> FunctionInfo {
        let demangled = self.demangled();
        // Demanglers do not handle Fortran's linkage names, such as `dgemm_` for `dgemm`.
        let plain = self.plain.as_deref();
        let name = demangled.or_else(|| plain.map(|plain| format!("{around}{plain}")));
        let system_name = self.linkage.or(self.plain).unwrap_or_default();
        FunctionInfo {
            name: name.unwrap_or_else(|| system_name.clone()),
            system_name,
            start: self.start.unwrap_or_default(),
        }
    }
}
