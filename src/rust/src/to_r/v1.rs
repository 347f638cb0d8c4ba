//! Creates the five tables of version "1.0", and the hidden component for their origin.

use super::tables::Tables;
use crate::arena::{Arena, RObject};
use crate::tibble::Tibble;
use profile_core::analysis::convert::{ColumnsV1, Origin, to_v1};
use profile_core::error::Result;
use profile_core::formats::problems::Problems;
use profile_core::limits::cancel::Stop;
use profile_core::limits::memory::TryCollect;
use profile_core::model::Profile;
use profile_core::schema::{FUNCTIONS, LOCATIONS, META_V1, PROBLEMS, Table, Version};

pub fn tables<'call>(
    arena: Arena<'call>,
    profile: &Profile,
    problems: &Problems,
    stop: Stop,
) -> Result<RObject<'call>> {
    let columns = to_v1(profile, stop)?;
    let mut tables = Tables::new(arena, false);
    META_V1.write(profile, Version::One, &mut tables, stop)?;
    let mut types = Tibble::new(arena, 1)?;
    types.texts("type", [Some("samples")])?;
    types.texts("unit", [Some("count")])?;
    tables.add("sample_types", types.finish()?)?;
    tables.add("samples", samples(arena, &columns)?)?;
    LOCATIONS.write(profile, Version::One, &mut tables, stop)?;
    FUNCTIONS.write(profile, Version::One, &mut tables, stop)?;
    let texts = |texts: &[String]| {
        let texts = texts.iter().map(String::as_str);
        arena.texts(&texts.try_vec()?)
    };
    match &columns.origin {
        Origin::Manual => {}
        Origin::Rprof { headers, files } => {
            let fields = [("header", texts(headers)?), ("files", texts(files)?)];
            tables.add(".rprof", arena.list(&fields)?)?;
        }
        Origin::Pprof { comments } => {
            let fields = [("comment", texts(comments)?)];
            tables.add(".msg", arena.list(&fields)?)?;
        }
    }
    PROBLEMS.write_rows(profile, &problems.rows(None)?, Version::Two, &mut tables)?;
    tables.finish()
}

fn samples<'call>(arena: Arena<'call>, columns: &ColumnsV1) -> Result<RObject<'call>> {
    let mut samples = Tibble::new(arena, columns.value.len())?;
    samples.integers("value", columns.value.iter().copied())?;
    samples.stack_tibbles(
        "locations",
        &columns.location_ids,
        &columns.ends,
        &columns.stack_of,
    )?;
    samples.finish()
}
