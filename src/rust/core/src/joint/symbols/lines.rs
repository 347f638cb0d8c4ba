//! The lines of a unit of debug information: finds the file and line of an address.

use super::debug_info::{Failure, Slice, Unit};
use super::ranges::Ranges;
use crate::limits::memory::{TryGrow, sort_by_key};
use gimli::{ColumnType, Dwarf, LineProgramHeader, LineRow};

/// A line of a source file; 0 and "" mean unknown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceLine {
    pub filename: String,
    pub line: u32,
    pub column: u32,
}

/// The lines of each run of contiguous code, in the order of addresses.
pub struct Lines {
    runs: Ranges<Vec<Line>>,
}

#[derive(Debug, Clone, Copy)]
struct Line {
    /// Its first address.
    address: u64,
    file: u64,
    line: u32,
    column: u32,
}

impl Lines {
    /// Reads the lines; `None` if the unit has none.
    pub fn read(unit: &Unit) -> Result<Option<Lines>, Failure> {
        let Some(program) = unit.line_program.clone() else {
            return Ok(None);
        };
        let mut runs = Vec::new();
        let mut run: Vec<Line> = Vec::new();
        let mut rows = program.rows();
        while let Some((_, row)) = rows.next_row()? {
            if !row.end_sequence() {
                run.try_push(Line::from(row))?;
                continue;
            }
            // Lines are sorted, unless the file is irregular. If an address has several lines, the
            // last one is used.
            sort_by_key(&mut run, |line| line.address)?;
            if let Some(first) = run.first() {
                let range = first.address..row.address();
                runs.try_push((range, std::mem::take(&mut run)))?;
            }
        }
        let runs = Ranges::new(runs)?;
        Ok(Some(Lines { runs }))
    }

    pub fn at(&self, address: u64, dwarf: &Dwarf<Slice>, unit: &Unit) -> Option<SourceLine> {
        let (_, run) = self.runs.containing(address).next()?;
        let behind = run.partition_point(|line| line.address <= address);
        let line = run.get(behind.checked_sub(1)?)?;
        Some(SourceLine {
            filename: filename(line.file, dwarf, unit),
            line: line.line,
            column: line.column,
        })
    }
}

impl From<&LineRow> for Line {
    fn from(row: &LineRow) -> Line {
        let column = match row.column() {
            ColumnType::LeftEdge => 0,
            ColumnType::Column(column) => column.get(),
        };
        Line {
            address: row.address(),
            file: row.file_index(),
            line: small(row.line().map_or(0, |line| line.get())),
            column: small(column),
        }
    }
}

/// The number of a line or column; 0 (unknown) if it is too large.
pub fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

/// The name of a file of a unit, with its folder if that is known.
pub fn filename(file: u64, dwarf: &Dwarf<Slice>, unit: &Unit) -> String {
    let program = unit.line_program.as_ref();
    let path = program.and_then(|program| path(file, program.header(), dwarf, unit));
    path.unwrap_or_default()
}

#[expect(clippy::disallowed_macros, reason = "names have an end, see names.rs")]
fn path(
    file: u64,
    header: &LineProgramHeader<Slice>,
    dwarf: &Dwarf<Slice>,
    unit: &Unit,
) -> Option<String> {
    let text = |value| {
        let bytes = dwarf.attr_string(unit, value).ok()?;
        super::names::text(bytes.slice())
    };
    // Before DWARF 5, files are numbered from 1.
    if file == 0 && header.version() < 5 {
        return None;
    }
    let file = header.file(file)?;
    let name = text(file.path_name())?;
    let folder = file.directory(header).and_then(text);
    let unit = unit
        .comp_dir
        .and_then(|folder| super::names::text(folder.slice()));
    // A relative path is relative to the preceding folder.
    let parts = [unit, folder, Some(name)].into_iter().flatten();
    parts.reduce(|path, part| match part.as_bytes() {
        [b'/', ..] => part,
        _ => format!("{}/{part}", path.trim_end_matches('/')),
    })
}
