//! Writes the tables as they are: every row, whether a sample refers to it or not, in its order,
//! and with the id that it had in its file.

use super::symbols::{self, Mappings, Writing};
use crate::analysis::inlining::{Inlining, SplitIds};
use crate::error::Result;
use crate::formats::pprof::proto::{Function, Location, Mapping, profile as field};
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryGrow, TryPut, sort_by_key};
use crate::model::{LocationId, LocationLists, NativeId, Profile, StackId};
use crate::protobuf::messages;
use crate::protobuf::output::Output;
use crate::protobuf::tables::StringTableBuilder;
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// Stacks between two checks for an interrupt.
const STACKS: usize = 10_000;

pub struct Recorded<'a> {
    profile: &'a Profile,
    mappings: Mappings<'a>,
    /// The locations in the order in which they are written.
    locations: LocationLists,
    order: Vec<StackId>,
    ids: SplitIds,
}

impl<'a> Recorded<'a> {
    pub fn new(profile: &'a Profile, inlining: &Inlining, stop: Stop) -> Result<Recorded<'a>> {
        let mut locations = LocationLists::default();
        let mut space = Vec::new();
        let mut used = Vec::new();
        used.try_fill(profile.locations.len(), false)?;
        if inlining.any {
            // Which rows are calls inlined at one address is taken from the samples first: in
            // the table, equal rows may have been merged.
            for stack in profile.stacks.ids() {
                if stack.row() % STACKS == 0 {
                    cancel::check(stop)?;
                }
                let stack = profile.stacks.get(stack).unpacked(&mut space)?;
                for run in inlining.split(stack) {
                    locations.intern(run)?;
                    run.iter().for_each(|row| used[row.row()] = true);
                }
            }
        }
        let mut rows = Vec::new();
        rows.try_extend_from(profile.locations.ids())?;
        for run in inlining.split(&rows) {
            if run.iter().all(|row| !used[row.row()]) {
                locations.push(run)?;
            }
        }
        let mut order = Vec::new();
        order.try_extend_from(locations.ids())?;
        sort_by_key(&mut order, |&run| locations.get(run).first().copied())?;
        let natives = order
            .iter()
            .map(|&run| native_id(profile, locations.get(run)));
        let mut ids = SplitIds::new(profile)?;
        for (&run, id) in order.iter().zip(self::ids(natives)?) {
            ids.set(locations.get(run), id)?;
        }
        Ok(Recorded {
            profile,
            mappings: Mappings::new(profile)?,
            locations,
            order,
            ids,
        })
    }
}

impl<'a> Writing<'a> for Recorded<'a> {
    fn ids(&self) -> &SplitIds {
        &self.ids
    }

    fn id(&mut self, run: &[LocationId], _: &mut StringTableBuilder<'a>) -> Result<u64> {
        self.ids.get(run)
    }

    fn write(&mut self, texts: &mut StringTableBuilder<'a>, output: &mut Output) -> Result<usize> {
        let profile = self.profile;
        let mut out = Vec::new();
        let mapping_ids = ids(self.mappings.rows.iter().map(|m| m.native_id))?;
        for (mapped, &id) in self.mappings.rows.iter().zip(&mapping_ids) {
            out.clear();
            let mapping = symbols::mapping(mapped, texts)?;
            messages::encode(&mut out, &Mapping { id, ..mapping })?;
            output.field(field::MAPPING, &[&out])?;
        }
        let mut lost = 0;
        let function_ids = ids(profile.functions.iter().map(|f| f.native_id))?;
        for &number in &self.order {
            let run = self.locations.get(number);
            out.clear();
            let id = self.ids.get(run)?;
            let (mapping, address) = self.mappings.of(profile, run);
            let mapping = mapping.map_or(0, |row| mapping_ids[row]);
            let (location, count) =
                symbols::location(profile, run, mapping, address, |function| {
                    Ok(function_ids[function.row()])
                })?;
            lost += count;
            messages::encode(&mut out, &Location { id, ..location })?;
            output.field(field::LOCATION, &[&out])?;
        }
        for (row, &id) in profile.functions.iter().zip(&function_ids) {
            out.clear();
            let function = symbols::function(profile, row, texts)?;
            messages::encode(&mut out, &Function { id, ..function })?;
            output.field(field::FUNCTION, &[&out])?;
        }
        Ok(lost)
    }
}

fn native_id(profile: &Profile, run: &[LocationId]) -> Option<NativeId> {
    let location = profile.locations.get(*run.first()?);
    profile.address_of(&location).native_id
}

/// The id of each row: the one that it had in its file, unless an earlier row has the same, or
/// else the lowest unused id. If no row had an id, these are 1, 2, 3, ….
fn ids(natives: impl Iterator<Item = Option<NativeId>> + Clone) -> Result<Vec<u64>> {
    // Each id, and whether it is still unused.
    let mut taken: HashMap<u64, bool, RandomState> = HashMap::default();
    for native in natives.clone().flatten() {
        taken.try_put(native.get(), true)?;
    }
    let mut ids = Vec::new();
    let mut next = 1;
    for native in natives {
        let is_left = |id: &u64| taken.get_mut(id).is_some_and(std::mem::take);
        let id = match native.map(NativeId::get).filter(is_left) {
            Some(own) => own,
            None => {
                while taken.contains_key(&next) {
                    next += 1;
                }
                next += 1;
                next - 1
            }
        };
        ids.try_push(id)?;
    }
    Ok(ids)
}
