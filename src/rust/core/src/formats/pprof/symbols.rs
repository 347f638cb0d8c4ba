//! What samples refer to: mappings, locations and functions as messages.
//!
//! A location of the format has a line for each function that was inlined at its
//! address, where the model has one row for each. Which locations are written
//! and under which ids is for [`recorded`](super::recorded) and
//! [`merged`](super::merged) to say.

use super::proto::{function, line, location, mapping};
use crate::analysis::sample_types::is_rprof;
use crate::error::{Error, Result};
use crate::limits::memory::{TryGrow, with_room};
use crate::model::{
    Address, Function, FunctionId, LocationId, MappingId, Names, NativeId, Profile, Symbols,
};
use crate::protobuf::numbers::Texts;
use crate::protobuf::output::Output;
use crate::protobuf::wire;

/// Gives locations their ids and writes what they need.
pub trait Writing<'a> {
    /// The id of the location that these rows are.
    fn id(&mut self, run: &[LocationId], texts: &mut Texts<'a>) -> Result<u64>;

    /// Writes the tables, once all ids have been asked for. Gives the number of lines without a
    /// function that are lost.
    fn write(&mut self, texts: &mut Texts<'a>, output: &mut Output) -> Result<usize>;
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
    /// The row for what R's profiler recorded.
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
            rows.try_push(mapped, "mappings")?;
        }
        let mut mappings = Mappings { rows, of_r: None };
        let bare = || profile.locations.iter().any(|l| l.address.is_none());
        if profile.sources.iter().any(is_rprof) && (mappings.rows.is_empty() || bare()) {
            mappings.of_r = Some(mappings.rows.len());
            mappings.rows.try_push(R, "mappings")?;
        }
        Ok(mappings)
    }

    /// The row of a location's mapping, and its address.
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

/// Without a mapping that has it all, pprof looks for a binary.
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

/// All of a mapping but its id.
pub fn put_mapping<'a>(
    out: &mut Vec<u8>,
    mapped: &Mapped<'a>,
    texts: &mut Texts<'a>,
) -> Result<()> {
    for (number, value) in [
        (mapping::MEMORY_START, mapped.start),
        (mapping::MEMORY_LIMIT, mapped.limit),
        (mapping::FILE_OFFSET, mapped.offset),
        (mapping::FILENAME, texts.of(mapped.filename)?),
        (mapping::BUILD_ID, texts.of(mapped.build_id)?),
        (mapping::HAS_FUNCTIONS, mapped.symbols.functions.into()),
        (mapping::HAS_FILENAMES, mapped.symbols.filenames.into()),
        (
            mapping::HAS_LINE_NUMBERS,
            mapped.symbols.line_numbers.into(),
        ),
        (
            mapping::HAS_INLINE_FRAMES,
            mapped.symbols.inline_frames.into(),
        ),
    ] {
        put_unless_0(out, number, value);
    }
    Ok(())
}

/// All of a location but its id. Go refuses a line without a function, so such a
/// row has none. Gives the number of rows of which something is lost by that.
pub fn put_location(
    out: &mut Vec<u8>,
    profile: &Profile,
    run: &[LocationId],
    mapping: u64,
    address: Address,
    mut function: impl FnMut(FunctionId) -> Result<u64>,
) -> Result<usize> {
    let mut lost = 0;
    put_unless_0(out, location::MAPPING_ID, mapping);
    put_unless_0(out, location::ADDRESS, address.address);
    let mut inner = with_room(3 * wire::LONGEST_FIELD, "the output")?;
    for &row in run {
        let row = profile.locations.get(row);
        if let Some(id) = row.function {
            inner.clear();
            wire::put_uint(&mut inner, line::FUNCTION_ID, function(id)?);
            put_unless_0(&mut inner, line::LINE, row.line.unwrap_or(0) as u64);
            put_unless_0(&mut inner, line::COLUMN, row.column as u64);
            wire::put_bytes(out, location::LINE, &inner)?;
        } else {
            // Alone and without a line it is an address without a symbol.
            let says = row.line.unwrap_or(0) != 0 || row.column != 0;
            lost += usize::from(says || run.len() > 1);
        }
    }
    put_unless_0(out, location::IS_FOLDED, address.is_folded.into());
    Ok(lost)
}

/// All of a function but its id.
pub fn put_function<'a>(
    out: &mut Vec<u8>,
    profile: &'a Profile,
    row: &Function,
    texts: &mut Texts<'a>,
) -> Result<()> {
    let mut put = |number, id| {
        let text = texts.of_string(id, profile.strings.get(id))?;
        put_unless_0(out, number, text);
        Ok::<_, Error>(())
    };
    if matches!(row.recorded, Names::Name | Names::Both) {
        put(function::NAME, row.name)?;
    }
    // R has no name of this kind, and pprof would demangle one that is both.
    if matches!(row.recorded, Names::SystemName | Names::Both) {
        put(function::SYSTEM_NAME, row.system_name)?;
    }
    put(function::FILENAME, row.filename)?;
    put_unless_0(out, function::START_LINE, row.start_line as u64);
    Ok(())
}

fn put_unless_0(out: &mut Vec<u8>, number: u32, value: u64) {
    if value != 0 {
        wire::put_uint(out, number, value);
    }
}
