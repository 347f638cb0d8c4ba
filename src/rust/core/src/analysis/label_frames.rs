//! Labels that R code sets for its samples, which recorders find as frames.
//!
//! A profiler of R sees only the stack, so `with_labels()` (`R/label-sets.R`) puts labels on the stack: as the name of a
//! function that only evaluates an expression.
//!
//! ```text
//! inner function of the user
//! .profile_labels:route=%2Fapi&method=GET;     the mark: keys and values
//! .profile_labelled                            calls the mark
//! with_labels                                  under any name that the user calls it by
//! outer function of the user
//! ```
//!
//! Every recorder and the reader of Rprof files call [`take_labels()`], which removes these frames and adds their
//! labels to the samples. It also adds the labels of units of work that frameworks name on the stack, see
//! [`super::frameworks`], whose frames remain. Its cost depends on the number of distinct stacks. [`Frames`] does the same for a single
//! stack.
//!
//! The expression is code of the function that contains the call of `with_labels()`. The frame of that function
//! therefore takes over the line of the mark, if both are in the same file. `.profile_forwarded` instead of
//! `.profile_labelled` indicates that the expression was passed on as an argument: it is then the code of another
//! function, and the line is not used.

mod mark;
mod stack;

pub use mark::Mark;
pub use stack::{Frames, OUTER_CALLS, OVERFLOW_KEY, SPAN_NAME};

use super::frameworks::Frameworks;
use crate::collections::{Interner, Lists};
use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryGrow, filled, with_room};
use crate::model::{
    Label, Location, LocationId, Locations, Profile, Renumbering, StackId, Stacks, StringId,
};
use stack::{Clean, Merged, Role};

/// The number of a list of labels.
type ListId = u32;

/// Removes the frames of labels from all stacks, and adds their labels to the samples.
pub fn take_labels(profile: &mut Profile, stop: Stop) -> Result<()> {
    take_labels_of_file(profile, |_| Ok(()), stop)
}

/// Takes the labels of a profile that was read from a file, in which a few bytes may represent many of them: `check` is
/// called with the memory that they need.
pub fn take_labels_of_file(
    profile: &mut Profile,
    check: impl FnOnce(u64) -> Result<()>,
    stop: Stop,
) -> Result<()> {
    let mut marks = Vec::new();
    let mut roles = with_room(profile.functions.len())?;
    for function in profile.functions.iter() {
        let name = profile.strings.get(function.name);
        roles.try_push(Role::parse(name, &mut marks)?)?;
    }
    let is_label = |role: &Role| matches!(role, Role::Mark { .. } | Role::Caller { .. });
    let units = units_of(profile)?;
    if !roles.iter().any(is_label) && units.iter().all(Option::is_none) {
        return Ok(());
    }
    let of_location = |location: &Location| match location.function {
        Some(function) if location.line_for_r() > 0 => roles[function.row()].with_line(),
        Some(function) => roles[function.row()],
        None => Role::Other,
    };
    let roles = profile.locations.iter().map(of_location).try_vec()?;
    let mut taker = Taker {
        marks,
        roles,
        units,
        stacks: Stacks::default(),
        lists: Interner::default(),
        clean: Clean::default(),
        frames: Vec::new(),
        own: Vec::new(),
    };
    let mut taken = with_room(profile.stacks.len())?;
    let stacks = std::mem::take(&mut profile.stacks);
    for (row, id) in stacks.ids().enumerate() {
        cancel::at_row(row, stop)?;
        taker.frames.clear();
        stacks.get(id).append_to(&mut taker.frames)?;
        taken.try_push(taker.take(profile)?)?;
    }
    let samples = profile.samples.stack.iter();
    let count = |stack: &StackId| taker.lists.get(taken[stack.row()].labels).len() as u64;
    check(
        samples
            .map(count)
            .sum::<u64>()
            .saturating_mul(size_of::<Label>() as u64),
    )?;
    move_toplevels(profile, &taken);
    label_samples(profile, &taken, &taker.lists, stop)?;
    for stack in &mut profile.samples.stack {
        *stack = taken[stack.row()].stack;
    }
    profile.stacks = taker.stacks;
    drop_unused(profile, stop)
}

/// A unit of work.
#[derive(Debug, Clone, Copy)]
struct OwnUnit {
    label: (StringId, StringId),
    is_weak: bool,
}

/// The unit of work that each location is.
fn units_of(profile: &mut Profile) -> Result<Vec<Option<OwnUnit>>> {
    let frameworks = Frameworks::new(profile)?;
    let mut units = with_room(profile.locations.len())?;
    for id in profile.locations.ids() {
        let strings = &mut profile.strings;
        units.try_push(match frameworks.unit(id) {
            Some(unit) => Some(OwnUnit {
                label: (strings.intern(unit.key)?, strings.intern(&unit.value)?),
                is_weak: unit.is_weak,
            }),
            None => None,
        })?;
    }
    Ok(units)
}

/// The result for a stack.
struct Taken {
    stack: StackId,
    labels: ListId,
    /// The mark whose line the toplevel call takes over.
    toplevel: Option<LocationId>,
}

struct Taker {
    marks: Vec<Mark>,
    /// By location.
    roles: Vec<Role>,
    units: Vec<Option<OwnUnit>>,
    stacks: Stacks,
    lists: Interner<Lists<(StringId, StringId)>, ListId>,
    clean: Clean,
    /// The current stack, and its roles.
    frames: Vec<LocationId>,
    own: Vec<Role>,
}

impl Taker {
    fn take(&mut self, profile: &mut Profile) -> Result<Taken> {
        self.own.clear();
        for frame in &self.frames {
            self.own.try_push(self.roles[frame.row()])?;
        }
        // The innermost unit of each key; weak ones only if there is no other. Labels of the user's code come first.
        let mut units: Vec<(StringId, StringId)> = Vec::new();
        for is_weak in [false, true] {
            let own = self
                .frames
                .iter()
                .filter_map(|frame| self.units[frame.row()]);
            for unit in own.filter(|unit| unit.is_weak == is_weak) {
                if units.iter().all(|known| known.0 != unit.label.0) {
                    units.try_push(unit.label)?;
                }
            }
        }
        if self.own.iter().all(|role| *role == Role::Other) {
            return Ok(Taken {
                stack: self.stacks.intern(&self.frames)?,
                labels: self.lists.intern(&units)?,
                toplevel: None,
            });
        }
        self.clean.set(&self.own)?;
        let toplevel = self.clean.toplevel.map(|mark| self.frames[mark]);
        for &(frame, mark) in &self.clean.moved {
            self.frames[frame] = moved(self.frames[frame], self.frames[mark], profile)?;
        }
        for (to, &from) in self.clean.kept.iter().enumerate() {
            self.frames[to] = self.frames[from];
        }
        self.frames.truncate(self.clean.kept.len());
        let mut labels = Vec::new();
        Merged::new(self.clean.marks.iter().map(|&mark| &self.marks[mark]))?.for_each(
            |key, value| {
                let strings = &mut profile.strings;
                labels.try_push((strings.intern(key)?, strings.intern(value)?))
            },
        )?;
        units.retain(|unit| labels.iter().all(|known| known.0 != unit.0));
        labels.try_extend(&units)?;
        Ok(Taken {
            stack: self.stacks.intern(&self.frames)?,
            labels: self.lists.intern(&labels)?,
            toplevel,
        })
    }
}

/// Returns a location with the line of another one, if both are in the same file.
fn moved(frame: LocationId, mark: LocationId, profile: &mut Profile) -> Result<LocationId> {
    let file = |location| profile.function_of(location).map(|f| f.filename);
    let from = profile.locations.get(mark);
    if file(frame) != file(mark) {
        return Ok(frame);
    }
    let to = profile.locations.get(frame);
    profile.locations.intern(Location {
        line: from.line,
        column: from.column,
        ..to
    })
}

fn move_toplevels(profile: &mut Profile, taken: &[Taken]) {
    for toplevel in &mut profile.samples.toplevel {
        let stack = profile.samples.stack[toplevel.sample];
        let Some(mark) = taken[stack.row()].toplevel else {
            continue;
        };
        let location = profile.locations.get(mark);
        let function = location.function.map(|f| profile.functions.get(f));
        let line = location.line_for_r();
        if function.is_some_and(|f| f.filename == toplevel.filename) {
            toplevel.line = line;
        }
    }
}

/// Adds labels after those that a sample already has. They replace the name of its span, which is not from the user.
fn label_samples(
    profile: &mut Profile,
    taken: &[Taken],
    lists: &Interner<Lists<(StringId, StringId)>, ListId>,
    stop: Stop,
) -> Result<()> {
    let old = std::mem::take(&mut profile.labels);
    let mut old = old.into_iter().peekable();
    let strings = &profile.strings;
    let is_of_span = |key| [SPAN_NAME, OVERFLOW_KEY].contains(&strings.get(key));
    for (sample, stack) in profile.samples.stack.iter().enumerate() {
        cancel::at_row(sample, stop)?;
        let new = lists.get(taken[stack.row()].labels);
        while let Some(label) = old.next_if(|label| label.sample <= sample) {
            let is_replaced = new.iter().any(|&(key, _)| key == label.key) && is_of_span(label.key);
            if !is_replaced {
                profile.labels.try_push(label)?;
            }
        }
        for &(key, value) in new {
            let label = Label {
                str: Some(value),
                ..Label::new(sample, key)
            };
            profile.labels.try_push(label)?;
        }
    }
    Ok(())
}

/// Removes locations that no stack uses any more, and their functions.
fn drop_unused(profile: &mut Profile, stop: Stop) -> Result<()> {
    let mut used = filled(profile.locations.len(), false)?;
    for id in profile.stacks.ids() {
        profile.stacks.get(id).try_for_each(|location| {
            used[location.row()] = true;
            Ok(())
        })?;
    }
    let (locations, functions) = (
        std::mem::take(&mut profile.locations),
        std::mem::take(&mut profile.functions),
    );
    let mut is_used = filled(functions.len(), false)?;
    for (location, _) in locations.iter().zip(&used).filter(|(_, used)| **used) {
        if let Some(function) = location.function {
            is_used[function.row()] = true;
        }
    }
    // The order is kept.
    let new_functions = functions.iter().zip(&is_used).map(|(function, &is_used)| {
        let new = is_used.then(|| profile.functions.intern(*function));
        new.transpose()
    });
    let new_functions = new_functions.try_vec_of()?;
    let mut kept = Locations::default();
    let new_locations = locations.iter().zip(&used).map(|(location, &used)| {
        let function = location.function.and_then(|f| new_functions[f.row()]);
        let location = Location {
            function,
            ..*location
        };
        used.then(|| kept.intern(location)).transpose()
    });
    let new_locations = new_locations.try_vec_of()?;
    profile.locations = kept;
    profile.location_attributes.retain_mut(|(location, _)| {
        let new = new_locations[location.row()];
        *location = new.unwrap_or(*location);
        new.is_some()
    });
    // Unused locations are in no stack, so any row will do.
    let rows = new_locations.iter().map(|new| new.unwrap_or(LocationId(0)));
    let numbers = Renumbering::new(rows.try_vec()?)?;
    let old = std::mem::take(&mut profile.stacks);
    let new = profile.stacks.add_renumbered(&old, &numbers, stop)?;
    for stack in &mut profile.samples.stack {
        *stack = new[stack.row()];
    }
    Ok(())
}

#[cfg(test)]
mod tests;
