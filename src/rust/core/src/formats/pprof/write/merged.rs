//! Writes the rows of tables to which samples refer, and merges equal rows by the rules of Go.
//!
//! Two rows are merged if their fields are equal, apart from ids. Mappings are merged if they have
//! the same file and size; addresses in the second mapping are converted to addresses in the first
//! one, since a program is loaded at different addresses in each run.

use super::symbols::{self, Mapped, Mappings, Writing};
use crate::analysis::inlining::SplitIds;
use crate::collections::Interner;
use crate::error::Result;
use crate::formats::pprof::proto::{Function, Location, Mapping, profile as field};
use crate::limits::memory::TryGrow;
use crate::model::{FunctionId, LocationId, Profile};
use crate::protobuf::output::Output;
use crate::protobuf::tables::{EncodedTable, StringTableBuilder};
use crate::protobuf::{encode, messages};

/// Sizes of mappings are rounded up to a multiple of this before they are compared, as in Go.
const PAGE: u64 = 0x1000;

pub struct Merged<'a> {
    profile: &'a Profile,
    mappings: Mappings<'a>,
    /// The rows of the mappings that are written, in the order of first use.
    used: Vec<usize>,
    /// The keys by which these mappings are compared.
    keys: Interner<Vec<Key<'a>>>,
    ids: SplitIds,
    /// By row; 0 is none.
    function_ids: Vec<u32>,
    /// Locations and functions without their ids, which are their numbers + 1.
    locations: EncodedTable,
    functions: EncodedTable,
    /// Lines without a function.
    lost: usize,
}

impl<'a> Merged<'a> {
    pub fn new(profile: &'a Profile) -> Result<Merged<'a>> {
        let mut function_ids = Vec::new();
        function_ids.try_fill(profile.functions.len(), 0)?;
        let mut merged = Merged {
            profile,
            mappings: Mappings::new(profile)?,
            used: Vec::new(),
            keys: Interner::default(),
            ids: SplitIds::new(profile)?,
            function_ids,
            locations: EncodedTable::default(),
            functions: EncodedTable::default(),
            lost: 0,
        };
        if !merged.mappings.rows.is_empty() {
            // The first one is the program itself, and stays the first.
            merged.mapping(0)?;
        }
        Ok(merged)
    }

    /// The id of a mapping, and the row of the one that it is merged into.
    fn mapping(&mut self, row: usize) -> Result<(u64, usize)> {
        let number = self.keys.intern(key(&self.mappings.rows[row]))?;
        if number as usize == self.used.len() {
            self.used.try_push(row)?;
        }
        Ok((u64::from(number) + 1, self.used[number as usize]))
    }

    fn location(&mut self, run: &[LocationId], texts: &mut StringTableBuilder<'a>) -> Result<u32> {
        let (mapping, mut address) = self.mappings.of(self.profile, run);
        let mut mapping_id = 0;
        if let Some(row) = mapping {
            let (id, into) = self.mapping(row)?;
            mapping_id = id;
            let rows = &self.mappings.rows;
            let moved = rows[into].start.wrapping_sub(rows[row].start);
            address.address = address.address.wrapping_add(moved);
        }
        let profile = self.profile;
        let (location, lost) = symbols::location(profile, run, mapping_id, address, |id| {
            self.function(id, texts).map(u64::from)
        })?;
        self.lost += lost;
        let mut out = Vec::new();
        messages::encode(&mut out, &location)?;
        Ok(self.locations.intern(&out)? + 1)
    }

    fn function(&mut self, id: FunctionId, texts: &mut StringTableBuilder<'a>) -> Result<u32> {
        let known = self.function_ids[id.row()];
        if known != 0 {
            return Ok(known);
        }
        let row = self.profile.functions.get(id);
        let mut out = Vec::new();
        messages::encode(&mut out, &symbols::function(self.profile, &row, texts)?)?;
        let number = self.functions.intern(&out)? + 1;
        self.function_ids[id.row()] = number;
        Ok(number)
    }
}

impl<'a> Writing<'a> for Merged<'a> {
    fn ids(&self) -> &SplitIds {
        &self.ids
    }

    fn id(&mut self, run: &[LocationId], texts: &mut StringTableBuilder<'a>) -> Result<u64> {
        let known = self.ids.get(run)?;
        if known != 0 {
            return Ok(known);
        }
        let id = u64::from(self.location(run, texts)?);
        self.ids.set(run, id)?;
        Ok(id)
    }

    fn write(&mut self, texts: &mut StringTableBuilder<'a>, output: &mut Output) -> Result<usize> {
        let mut out = Vec::new();
        for (id, &row) in (1..).zip(&self.used) {
            out.clear();
            let mapping = symbols::mapping(&self.mappings.rows[row], texts)?;
            messages::encode(&mut out, &Mapping { id, ..mapping })?;
            output.field(field::MAPPING, &[&out])?;
        }
        for (table, number, pieces) in [
            (field::LOCATION, Location::ID, &self.locations),
            (field::FUNCTION, Function::ID, &self.functions),
        ] {
            for (id, piece) in (1..).zip(pieces.iter()) {
                out.clear();
                encode::put_uint(&mut out, number, id);
                output.field(table, &[&out, piece])?;
            }
        }
        Ok(self.lost)
    }
}

/// How many pages a mapping has, its offset, and its file.
type Key<'a> = (u64, u64, &'a str);

fn key<'a>(mapped: &Mapped<'a>) -> Key<'a> {
    let size = mapped.limit.wrapping_sub(mapped.start);
    let pages = size.wrapping_add(PAGE - 1) / PAGE;
    let file = match mapped.build_id {
        "" => mapped.filename,
        build_id => build_id,
    };
    (pages, mapped.offset, file)
}
