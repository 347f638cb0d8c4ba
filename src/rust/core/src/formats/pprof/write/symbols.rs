//! Mappings, locations and functions as messages.
//!
//! A location of the format has a line for each function that was inlined at its address; the
//! model has a row for each. [`recorded`](super::recorded) and [`merged`](super::merged) determine
//! which locations are written, and their ids.

use crate::analysis::inlining::SplitIds;
use crate::analysis::sample_types::is_rprof;
use crate::error::{Error, Result};
use crate::formats::pprof::proto;
use crate::limits::memory::{TryGrow, with_room};
use crate::model::{
    Address, Function, FunctionId, LocationId, MappingId, Names, NativeId, Profile, Symbols,
};
use crate::protobuf::output::Output;
use crate::protobuf::tables::StringTableBuilder;

/// Assigns ids to locations, and writes them with their functions and mappings.
pub trait Writing<'a> {
    /// The ids that were assigned.
    fn ids(&self) -> &SplitIds;

    /// The id of the location that consists of these rows.
    fn id(&mut self, run: &[LocationId], texts: &mut StringTableBuilder<'a>) -> Result<u64>;

    /// Writes the tables, after all ids were assigned. Returns the number of lines without a
    /// function that are lost.
    fn write(&mut self, texts: &mut StringTableBuilder<'a>, output: &mut Output) -> Result<usize>;
}

/// A mapping as it is written.
#[derive(Debug, Clone, Copy)]
pub struct Mapped<'a> {
    pub start: u64,
    pub limit: u64,
    pub offset: u64,
    pub filename: &'a str,
    pub build_id: &'a str,
    pub symbols: Symbols,
    pub native_id: Option<NativeId>,
}

pub struct Mappings<'a> {
    pub rows: Vec<Mapped<'a>>,
    /// The row for code that R's profiler recorded.
    of_r: Option<usize>,
}

impl<'a> Mappings<'a> {
    pub fn new(profile: &'a Profile) -> Result<Mappings<'a>> {
        let text = |id| profile.strings.get(id);
        let mut rows = Vec::new();
        for mapping in &profile.mappings {
            let mapped = Mapped {
                start: mapping.start,
                limit: mapping.limit,
                offset: mapping.offset,
                filename: text(mapping.filename),
                build_id: text(mapping.build_id),
                symbols: mapping.symbols,
                native_id: mapping.native_id,
            };
            rows.try_push(mapped)?;
        }
        let mut mappings = Mappings { rows, of_r: None };
        let bare = || profile.locations.iter().any(|l| l.address.is_none());
        if profile.sources.iter().any(is_rprof) && (mappings.rows.is_empty() || bare()) {
            mappings.of_r = Some(mappings.rows.len());
            mappings.rows.try_push(R)?;
        }
        Ok(mappings)
    }

    /// The row of a location's mapping, and the address of the location.
    pub fn of(&self, profile: &Profile, run: &[LocationId]) -> (Option<usize>, Address) {
        let Some(&first) = run.first() else {
            return Default::default();
        };
        let location = profile.locations.get(first);
        let address = profile.address_of(&location);
        let row = match location.address {
            Some(_) => address.mapping.map(MappingId::row),
            None => self.of_r,
        };
        (row, address)
    }
}

/// States that all symbols are known. Without such a mapping, pprof looks for a binary.
const R: Mapped = Mapped {
    start: 0,
    limit: 0,
    offset: 0,
    filename: "R",
    build_id: "",
    symbols: Symbols {
        functions: true,
        filenames: true,
        line_numbers: true,
        inline_frames: false,
    },
    native_id: None,
};

/// A mapping without its id.
pub fn mapping<'a>(
    mapped: &Mapped<'a>,
    texts: &mut StringTableBuilder<'a>,
) -> Result<proto::Mapping> {
    Ok(proto::Mapping {
        id: 0,
        memory_start: mapped.start,
        memory_limit: mapped.limit,
        file_offset: mapped.offset,
        filename: texts.index(mapped.filename)? as i64,
        build_id: texts.index(mapped.build_id)? as i64,
        has_functions: mapped.symbols.functions,
        has_filenames: mapped.symbols.filenames,
        has_line_numbers: mapped.symbols.line_numbers,
        has_inline_frames: mapped.symbols.inline_frames,
    })
}

/// A location without its id. Go refuses a line without a function, so such a row has none.
/// Also returns the number of rows that lose their line this way.
pub fn location(
    profile: &Profile,
    run: &[LocationId],
    mapping_id: u64,
    address: Address,
    mut function: impl FnMut(FunctionId) -> Result<u64>,
) -> Result<(proto::Location, usize)> {
    let mut lost = 0;
    let mut lines = with_room(run.len())?;
    for &row in run {
        let row = profile.locations.get(row);
        if let Some(id) = row.function {
            let line = proto::Line {
                function_id: function(id)?,
                line: row.line.unwrap_or(0),
                column: row.column,
            };
            lines.try_push(line)?;
        } else {
            // A single row without a line is an address without a symbol.
            let says = row.line.unwrap_or(0) != 0 || row.column != 0;
            lost += usize::from(says || run.len() > 1);
        }
    }
    let location = proto::Location {
        id: 0,
        mapping_id,
        address: address.address,
        line: lines,
        is_folded: address.is_folded,
    };
    Ok((location, lost))
}

/// A function without its id.
pub fn function<'a>(
    profile: &'a Profile,
    row: &Function,
    texts: &mut StringTableBuilder<'a>,
) -> Result<proto::Function> {
    let mut text = |id, is_recorded| {
        if is_recorded {
            Ok::<_, Error>(texts.index_of_id(id, profile.strings.get(id))? as i64)
        } else {
            Ok(0)
        }
    };
    let has_name = matches!(row.recorded, Names::Name | Names::Both);
    // R has no system names. If both names were equal, pprof would demangle them.
    let has_system_name = matches!(row.recorded, Names::SystemName | Names::Both);
    Ok(proto::Function {
        id: 0,
        name: text(row.name, has_name)?,
        system_name: text(row.system_name, has_system_name)?,
        filename: text(row.filename, true)?,
        start_line: row.start_line,
    })
}
