//! Writes what samples refer to: the mapping, locations and functions.

use super::columns::is_rprof;
use super::numbers::{Numbers, Texts};
use super::output::Output;
use super::proto::{function, line, location, mapping, profile as field};
use super::wire;
use crate::error::Result;
use crate::model::{FunctionId, LocationId, Profile};

/// The id of the only mapping.
const MAPPING: u64 = 1;

/// Writes the locations in `rows`, numbered from 1 in this order, and their
/// functions.
pub fn write<'a>(
    profile: &'a Profile,
    rows: &[u32],
    texts: &mut Texts<'a>,
    output: &mut Output,
) -> Result<()> {
    let mapped = profile.sources.iter().any(is_rprof);
    if mapped {
        // Without a mapping that has it all, pprof looks for a binary.
        let mut out = Vec::new();
        wire::put_uint(&mut out, mapping::ID, MAPPING);
        wire::put_uint(&mut out, mapping::FILENAME, texts.of("R")?);
        wire::put_uint(&mut out, mapping::HAS_FUNCTIONS, 1);
        wire::put_uint(&mut out, mapping::HAS_FILENAMES, 1);
        wire::put_uint(&mut out, mapping::HAS_LINE_NUMBERS, 1);
        output.field(field::MAPPING, &[&out])?;
    }
    let mut functions = Numbers::new(profile.functions.len())?;
    let mut out = Vec::new();
    let mut inner = Vec::new();
    for (number, &row) in (1..).zip(rows) {
        let row = profile.locations.get(LocationId(row));
        out.clear();
        wire::put_uint(&mut out, location::ID, number);
        if mapped {
            wire::put_uint(&mut out, location::MAPPING_ID, MAPPING);
        }
        // Go refuses a line without a function, so such a location has none.
        if let Some(function) = row.function {
            let (id, _) = functions.of(function.0)?;
            inner.clear();
            wire::put_uint(&mut inner, line::FUNCTION_ID, u64::from(id));
            put_unless_0(&mut inner, line::LINE, row.line.unwrap_or(0));
            wire::put_head(&mut out, location::LINE, inner.len());
            out.extend_from_slice(&inner);
        }
        output.field(field::LOCATION, &[&out])?;
    }
    for (number, &row) in (1..).zip(&functions.rows) {
        let row = profile.functions.get(FunctionId(row));
        let mut text = |id| texts.of_string(id, profile.strings.get(id));
        out.clear();
        wire::put_uint(&mut out, function::ID, number);
        wire::put_uint(&mut out, function::NAME, text(row.name)?);
        // Left empty it is the name; pprof would demangle a name that is both.
        if row.system_name != row.name {
            wire::put_uint(&mut out, function::SYSTEM_NAME, text(row.system_name)?);
        }
        wire::put_uint(&mut out, function::FILENAME, text(row.filename)?);
        put_unless_0(&mut out, function::START_LINE, row.start_line);
        output.field(field::FUNCTION, &[&out])?;
    }
    Ok(())
}

fn put_unless_0(out: &mut Vec<u8>, number: u32, value: i32) {
    if value != 0 {
        wire::put_int(out, number, i64::from(value));
    }
}
