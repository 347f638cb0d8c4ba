//! Finds functions, inlined functions and their lines in debug information (DWARF).
//!
//! Debug information consists of *units*, usually one for each source file that was compiled. Each contains a tree of
//! *entries*. Functions are entries with ranges of addresses; an inlined function is an entry below the entry of the
//! function that it was inlined into. When a file is opened, only the top entry of each unit is read; the rest of a
//! unit is read when an address in it is looked up. See the DWARF standard, version 5, chapter 3.
//!
//! The crate gimli reads entries. The crate addr2line would do the rest as well, but is not used: it parses inlined
//! functions by recursion, so that half a million nested entries overflow the stack and end the process; it aborts if
//! memory runs out; and it reports only the linkage name of a function, without scopes, a readable name, or the line
//! of its definition. It would be somewhat faster, with as much memory: 2,000 addresses in a library of 53 MB took
//! 0.10 s and 93 MB, here they take 0.13 s and 98 MB.

use super::debug_info::sections;
use super::elf::Elf;
use super::files::Files;
use super::functions::{EntryAttributes, Function, FunctionInfo};
use super::lines::{self, SourceLine};
use super::ranges::Ranges;
use super::separate;
use super::units::{UnitRow, Units};
use crate::error::Result;
use crate::limits::memory::{TryCollect, TryGrow, written};
use gimli::{AttributeValue, UnitOffset};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// The maximum number of references that are followed to find a name. An entry may get its name from another one,
/// which may refer to a third one, since a function is declared, defined and inlined.
const STEPS: usize = 16;

pub struct DebugInformation<'f> {
    own: Units<'f>,
    /// The units of a file that several files share.
    shared: Units<'f>,
    /// The addresses of the rows of `own`.
    ranges: Ranges<usize>,
}

/// The position of an entry.
#[derive(Clone, Copy)]
struct Entry {
    shared: bool,
    /// The row of its unit.
    unit: usize,
    offset: UnitOffset,
}

/// A function at an address, and the line of the address in it.
pub struct Frame {
    pub info: Option<Rc<FunctionInfo>>,
    pub line: SourceLine,
}

impl<'f> DebugInformation<'f> {
    /// Reads the units of a file. `None` if it has no debug information.
    pub fn read(
        elf: &Elf<'f>,
        folders: &[PathBuf],
        files: &'f Files,
    ) -> Result<Option<DebugInformation<'f>>> {
        if !elf.has(".debug_info") {
            return Ok(None);
        }
        let (mut dwarf, size) = sections(elf)?;
        let mut shared_size = 0;
        if let Some(elf) = separate::shared(elf, folders, files)? {
            let (supplement, size) = sections(&elf)?;
            dwarf.set_sup(supplement);
            shared_size = size;
        }
        let shared = dwarf.sup.clone().unwrap_or_default();
        let own = Units::read(Arc::new(dwarf), size)?;
        let shared = Units::read(shared, shared_size)?;
        let mut information = DebugInformation {
            own,
            shared,
            ranges: Ranges::new(Vec::new())?,
        };
        information.read_ranges()?;
        Ok(Some(information))
    }

    fn read_ranges(&mut self) -> Result<()> {
        let mut ranges = Vec::new();
        let Units {
            dwarf,
            rows,
            most_ranges,
        } = &mut self.own;
        for (row, unit_row) in rows.iter_mut().enumerate() {
            if !unit_row.has_code {
                continue;
            }
            let before = ranges.len();
            if let Ok(mut all) = dwarf.unit_ranges(&unit_row.unit) {
                while let Ok(Some(range)) = all.next() {
                    if ranges.len() == *most_ranges {
                        break;
                    }
                    if range.begin < range.end {
                        ranges.try_push((range.begin..range.end, row))?;
                    }
                }
            }
            if ranges.len() == before {
                // The unit itself has no address ranges, but its functions have.
                let (_, content) = unit_row.load(dwarf, *most_ranges)?;
                let functions = content.functions.iter();
                for range in functions.flat_map(|functions| functions.ranges()) {
                    ranges.try_push((range, row))?;
                }
            }
        }
        self.ranges = Ranges::new(ranges)?;
        Ok(())
    }

    /// The functions at an address, innermost first. The result is empty if nothing is known; if only a line is
    /// known, it is one frame without a function.
    pub fn at(&mut self, address: u64) -> Result<Vec<Frame>> {
        let mut line = None;
        let mut found = None;
        let Units {
            dwarf,
            rows,
            most_ranges,
        } = &mut self.own;
        // The range of a unit may include addresses of other units.
        for (_, row) in self.ranges.containing(address) {
            let Some(unit_row) = rows.get_mut(*row) else {
                continue;
            };
            let (unit, content) = unit_row.load(dwarf, *most_ranges)?;
            let lines = content.lines.as_ref();
            let here = lines.and_then(|lines| lines.at(address, dwarf, unit));
            let functions = content.functions.as_ref();
            if let Some(function) = functions.and_then(|functions| functions.at(address)) {
                line = here;
                found = Some((*row, function));
                break;
            }
            line = line.or(here);
        }
        match (found, line) {
            (Some((row, function)), line) => self.frames(row, function, line.unwrap_or_default()),
            (None, Some(line)) => [Frame { info: None, line }].into_iter().try_vec(),
            (None, None) => Ok(Vec::new()),
        }
    }

    /// The frames of a function and of those that it was inlined into, innermost first.
    fn frames(&mut self, row: usize, function: usize, line: SourceLine) -> Result<Vec<Frame>> {
        let mut frames = Vec::new();
        let mut next = Some((function, line));
        while let Some((function, line)) = next {
            let info = self.info(row, function)?;
            frames.try_push(Frame { info, line })?;
            next = self.caller(row, function);
        }
        Ok(frames)
    }

    /// The function that a function was inlined into, and the line of the call.
    fn caller(&self, row: usize, function: usize) -> Option<(usize, SourceLine)> {
        let UnitRow { unit, content, .. } = self.own.rows.get(row)?;
        let functions = content.as_ref()?.functions.as_ref()?;
        let call = functions.get(function)?.call?;
        let filename = |file| lines::filename(file, &self.own.dwarf, unit);
        let line = SourceLine {
            filename: call.file.map(filename).unwrap_or_default(),
            line: call.line,
            column: call.column,
        };
        Some((call.from, line))
    }

    fn function(&mut self, row: usize, function: usize) -> Option<&mut Function> {
        let content = self.own.rows.get_mut(row)?.content.as_mut()?;
        content.functions.as_mut()?.get_mut(function)
    }

    fn info(&mut self, row: usize, function: usize) -> Result<Option<Rc<FunctionInfo>>> {
        let Some(known) = self.function(row, function) else {
            return Ok(None);
        };
        if known.info.is_some() {
            return Ok(known.info.clone());
        }
        let entry = Entry {
            shared: false,
            unit: row,
            offset: known.entry,
        };
        let info = match self.look_up(entry) {
            Some((attributes, last)) if attributes.demangled().is_none() && self.is_of_cxx(row) => {
                attributes.into_info(&self.name_around(last)?)
            }
            Some((attributes, _)) => attributes.into_info(""),
            None => FunctionInfo::default(),
        };
        let info = Some(Rc::new(info));
        if let Some(known) = self.function(row, function) {
            known.info.clone_from(&info);
        }
        Ok(info)
    }

    /// The attributes of an entry and of those that it refers to, and the last of these entries. `None` if one is
    /// missing, since an incomplete name would be wrong.
    fn look_up(&self, mut entry: Entry) -> Option<(EntryAttributes, Entry)> {
        let mut attributes = EntryAttributes::default();
        let mut complete = false;
        for _ in 0..STEPS {
            let units = self.units(entry.shared);
            let unit_row = units.rows.get(entry.unit);
            let read = unit_row.map(|of| attributes.read(&units.dwarf, &of.unit, entry.offset));
            let next = match read {
                Some(Ok(Some(AttributeValue::UnitRef(offset)))) => Some(Entry { offset, ..entry }),
                Some(Ok(Some(AttributeValue::DebugInfoRef(at)))) => self.entry(entry.shared, at.0),
                Some(Ok(Some(AttributeValue::DebugInfoRefSup(at)))) => self.entry(true, at.0),
                Some(Ok(None)) => {
                    complete = true;
                    None
                }
                _ => None,
            };
            match next {
                Some(next) => entry = next,
                None => break,
            }
        }
        (complete || attributes.linkage.is_some()).then_some((attributes, entry))
    }

    /// The entry at an offset of its section.
    fn entry(&self, shared: bool, offset: usize) -> Option<Entry> {
        let units = &self.units(shared).rows;
        let behind = units.partition_point(|unit| unit.start <= offset);
        let unit = behind.checked_sub(1)?;
        let offset = offset.checked_sub(units.get(unit)?.start)?;
        Some(Entry {
            shared,
            unit,
            offset: UnitOffset(offset),
        })
    }

    fn units(&self, shared: bool) -> &Units<'f> {
        if shared { &self.shared } else { &self.own }
    }

    /// The name of the scopes that contain a C++ function, such as `ns::(anonymous namespace)::`. It is used for
    /// functions without a linkage name, which no other file can call, and for those whose linkage name cannot be
    /// demangled.
    fn name_around(&mut self, mut entry: Entry) -> Result<String> {
        let mut name = String::new();
        for _ in 0..STEPS {
            let units = if entry.shared {
                &mut self.shared
            } else {
                &mut self.own
            };
            let Some(unit_row) = units.rows.get_mut(entry.unit) else {
                break;
            };
            let (_, content) = unit_row.load(&units.dwarf, units.most_ranges)?;
            let functions = content.functions.as_ref();
            let around = functions.and_then(|all| all.scope_around(entry.offset));
            let Some(offset) = around else { break };
            let Some((attributes, last)) = self.look_up(Entry { offset, ..entry }) else {
                break;
            };
            if let Some(whole) = attributes.demangled() {
                return written(format_args!("{whole}::{name}"));
            }
            name = written(format_args!("{}::{name}", attributes.plain_or_anonymous()))?;
            entry = last;
        }
        Ok(name)
    }

    fn is_of_cxx(&self, row: usize) -> bool {
        let unit_row = self.own.rows.get(row);
        unit_row.is_some_and(|unit_row| unit_row.is_of_cxx)
    }
}
