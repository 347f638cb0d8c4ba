//! The tables as they are: each row is written, whether a sample needs it or not,
//! in its order, and under the id that it had in its file.

use super::numbers::Texts;
use super::output::Output;
use super::proto::{function, location, mapping, profile as field};
use super::symbols::{Mappings, Runs, Writing, put_function, put_location, put_mapping, runs};
use super::wire;
use crate::cancel::{self, Stop};
use crate::error::{Error, Result};
use crate::memory::TryGrow;
use crate::model::{LocationId, NativeId, Profile, StackId};
use foldhash::fast::RandomState;
use std::collections::HashSet;

/// Stacks between two questions whether to stop.
const STACKS: usize = 10_000;

pub struct Recorded<'a> {
    profile: &'a Profile,
    mappings: Mappings<'a>,
    runs: Runs,
    /// The runs in the order in which they are written, and the id of each run.
    order: Vec<StackId>,
    ids: Vec<u64>,
}

impl<'a> Recorded<'a> {
    pub fn new(profile: &'a Profile, stop: Stop) -> Result<Recorded<'a>> {
        let mut runs = Runs::new(profile)?;
        let mut covered = Vec::new();
        covered.try_fill(profile.locations.len(), false, "ids")?;
        for stack in profile.stacks.ids() {
            if stack.row() % STACKS == 0 {
                cancel::check(stop)?;
            }
            for run in self::runs(profile, profile.stacks.get(stack)) {
                runs.of(run)?;
                run.iter().for_each(|row| covered[row.row()] = true);
            }
        }
        let mut rows = Vec::new();
        rows.try_extend_from(profile.locations.ids(), "ids")?;
        for run in self::runs(profile, &rows) {
            if run.iter().all(|row| !covered[row.row()]) {
                runs.of(run)?;
            }
        }
        let mut order = Vec::new();
        order.try_extend_from(runs.known.ids(), "ids")?;
        order.sort_by_key(|&run| runs.known.get(run).first().copied());
        let natives = order
            .iter()
            .map(|&run| native_id(profile, runs.known.get(run)));
        let in_order = ids(natives)?;
        let mut ids = Vec::new();
        ids.try_fill(order.len(), 0, "ids")?;
        for (&run, id) in order.iter().zip(in_order) {
            ids[run.row()] = id;
        }
        Ok(Recorded {
            profile,
            mappings: Mappings::new(profile)?,
            runs,
            order,
            ids,
        })
    }
}

impl<'a> Writing<'a> for Recorded<'a> {
    fn id(&mut self, run: &[LocationId], _: &mut Texts<'a>) -> Result<u64> {
        Ok(self.ids[self.runs.of(run)?.row()])
    }

    fn write(&mut self, texts: &mut Texts<'a>, output: &mut Output) -> Result<()> {
        let profile = self.profile;
        let mut out = Vec::new();
        let mapping_ids = ids(self.mappings.rows.iter().map(|m| m.native_id))?;
        for (mapped, &id) in self.mappings.rows.iter().zip(&mapping_ids) {
            out.clear();
            wire::put_uint(&mut out, mapping::ID, id);
            put_mapping(&mut out, mapped, texts)?;
            output.field(field::MAPPING, &[&out])?;
        }
        let function_ids = ids(profile.functions.iter().map(|f| f.native_id))?;
        for &number in &self.order {
            let run = self.runs.known.get(number);
            out.clear();
            wire::put_uint(&mut out, location::ID, self.ids[number.row()]);
            let (mapping, address) = self.mappings.of(profile, run);
            let mapping = mapping.map_or(0, |row| mapping_ids[row]);
            put_location(&mut out, profile, run, mapping, address, |function| {
                Ok(function_ids[function.row()])
            })?;
            output.field(field::LOCATION, &[&out])?;
        }
        for (row, &id) in profile.functions.iter().zip(&function_ids) {
            out.clear();
            wire::put_uint(&mut out, function::ID, id);
            put_function(&mut out, profile, row, texts)?;
            output.field(field::FUNCTION, &[&out])?;
        }
        Ok(())
    }
}

fn native_id(profile: &Profile, run: &[LocationId]) -> Option<NativeId> {
    let location = profile.locations.get(*run.first()?);
    profile.address_of(&location).native_id
}

/// The id of each row: the one that it had, where no row before it has that, else
/// the least that no row has. Without any these are the numbers of the rows.
fn ids(natives: impl Iterator<Item = Option<NativeId>> + Clone) -> Result<Vec<u64>> {
    let mut taken: HashSet<u64, RandomState> = HashSet::default();
    for native in natives.clone().flatten() {
        taken.try_reserve(1).map_err(|_| Error::Memory("ids"))?;
        taken.insert(native.get());
    }
    let mut left = taken.clone();
    let mut next = (1..).filter(|id| !taken.contains(id));
    let mut ids = Vec::new();
    for native in natives {
        let own = native.map(NativeId::get).filter(|id| left.remove(id));
        let id = own.or_else(|| next.next()).unwrap_or(0);
        ids.try_push(id, "ids")?;
    }
    Ok(ids)
}
