//! Adds what was found out about the memory to what was recorded.

use super::MemoryWatch;
use crate::recorded::memory::{END, GROUP_PEAK, KILLS, LIMIT, PEAK, PROCESSES, TOGETHER};
use crate::recorded::result::{Ended, Recorded};
use crate::recorded::source::{add_numbers, attribute};
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, owned};
use profile_core::model::{Attribute, Profile, SourceId, ValueKind};

impl MemoryWatch {
    /// Adds the highest memory of each process and of all together, and how processes have ended. `roles` are those of
    /// sources.
    pub fn report<'r>(
        &self,
        roles: impl Iterator<Item = (SourceId, Option<&'r str>)> + Clone,
        recorded: &mut Recorded,
    ) -> Result<()> {
        let profile = &mut recorded.profile;
        for one in self.processes() {
            let row = one.source.row();
            // It had ended before it was read.
            let peak = (one.peak > 0).then_some(one.peak);
            add(profile, row, PEAK, peak)?;
            let Some(ending) = one.ending else {
                continue;
            };
            let end = attribute(END, ValueKind::String, &ending.in_words(), profile)?;
            push(profile, row, end)?;
            let mut roles = roles.clone();
            let role = roles.find(|(source, _)| *source == one.source);
            recorded.endings.try_push(Ended {
                pid: one.pid,
                role: owned(role.and_then(|(_, role)| role).unwrap_or_default())?,
                ending,
            })?;
        }
        let together = self.together();
        let group = self.of_group();
        for (key, number) in [
            (TOGETHER, together.map(|together| together.bytes)),
            (PROCESSES, together.map(|together| together.processes)),
            (LIMIT, group.limit),
            (GROUP_PEAK, group.peak),
            (KILLS, (group.kills > 0).then_some(group.kills)),
        ] {
            add(profile, 0, key, number)?;
        }
        Ok(())
    }
}

/// Adds a number to what is known about a source, if it is known.
fn add(profile: &mut Profile, row: usize, key: &str, number: Option<u64>) -> Result<()> {
    let Some(number) = number else {
        return Ok(());
    };
    let mut sources = std::mem::take(&mut profile.sources);
    let added = match sources.get_mut(row) {
        Some(source) => add_numbers(source, &[(key, number)], profile),
        None => Ok(()),
    };
    profile.sources = sources;
    added
}

fn push(profile: &mut Profile, row: usize, attribute: Attribute) -> Result<()> {
    match profile.sources.get_mut(row) {
        Some(source) => source.attributes.try_push(attribute),
        None => Ok(()),
    }
}
