//! Assigns packages to the functions of a profile that are known by name only.
//!
//! A function whose callers find different packages becomes several rows, and so do its locations, so that stacks refer
//! to the right ones. Stacks keep their numbers.

use super::callers::Callers;
use super::environments::{Environments, Home};
use super::known::Known;
use crate::collections::next_row;
use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryGrow, TryPut, filled};
use crate::model::{Address, FunctionId, Functions, Location, LocationId, Locations};
use crate::model::{Profile, Stacks};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// How these packages are known, in the column `.package_from`.
const FROM_NAMESPACE: &str = "namespace";

/// The old row of each row that was added to a table. Samples have other stacks if locations were added.
#[derive(Debug, Default)]
pub struct Added {
    pub functions: Vec<u32>,
    pub locations: Vec<u32>,
}

/// Sets the packages of functions.
pub fn assign_packages(
    profile: &mut Profile,
    environments: &Environments,
    stop: Stop,
) -> Result<Added> {
    let (rows, stacks) = {
        let mut callers = Callers::new(profile, environments)?;
        find_environments(profile, &mut callers, stop)?;
        let mut rows = Rows::new(profile)?;
        let mut new = Vec::new();
        walk(profile, &mut callers, stop, |stack, homes| {
            rows.renumber(profile, stack, homes, &mut new)
        })?;
        let stacks = match rows.locations.added.is_empty() {
            true => None,
            false => Some(rows.stacks(profile, &mut callers, stop)?),
        };
        rows.without_stacks(profile, &mut callers)?;
        (rows, stacks)
    };
    rows.set_locations(profile)?;
    rows.set_functions(profile, environments)?;
    if let Some(stacks) = stacks {
        profile.stacks = stacks;
    }
    let old_rows = |split: &Split| split.added.iter().map(|&(row, _)| row).try_vec();
    Ok(Added {
        functions: old_rows(&rows.functions)?,
        locations: old_rows(&rows.locations)?,
    })
}

/// Finds the environments of the profile's functions: until there are no more, since where a caller is not known, it
/// may be of any of them.
fn find_environments(profile: &Profile, callers: &mut Callers, stop: Stop) -> Result<()> {
    loop {
        let before = callers.in_use();
        callers.used_any = false;
        walk(profile, callers, stop, |_, _| Ok(()))?;
        if callers.in_use() == before || !callers.used_any {
            return Ok(());
        }
    }
}

/// Passes each stack to `each`, in order, with what is found for its locations, see [`Callers::walk()`].
fn walk(
    profile: &Profile,
    callers: &mut Callers,
    stop: Stop,
    mut each: impl FnMut(&[LocationId], &[Option<Home>]) -> Result<()>,
) -> Result<()> {
    let used = profile.samples.used_stacks(profile.stacks.len())?;
    let (mut space, mut homes) = (Vec::new(), Vec::new());
    callers.restart();
    for (row, id) in profile.stacks.ids().enumerate() {
        cancel::at_row(row, stop)?;
        let stack = profile.stacks.get(id).unpacked(&mut space)?;
        if used[row] {
            callers.walk(stack, &mut homes)?;
        } else {
            homes.clear();
            homes.try_fill(stack.len(), None)?;
        }
        each(stack, &homes)?;
    }
    Ok(())
}

/// The rows of a table, one for each environment that was found for an old row. The first one that is found keeps the
/// number of the old row.
#[derive(Default)]
struct Split {
    first: Vec<Option<Home>>,
    further: HashMap<(u32, Home), u32, RandomState>,
    /// The old row of each further one.
    added: Vec<(u32, Home)>,
}

impl Split {
    fn new(rows: usize) -> Result<Split> {
        Ok(Split {
            first: filled(rows, None)?,
            ..Split::default()
        })
    }

    /// The new number of a row in this environment.
    fn row(&mut self, row: u32, home: Home, table: &'static str) -> Result<u32> {
        let first = &mut self.first[row as usize];
        if first.get_or_insert(home) == &home {
            return Ok(row);
        }
        if let Some(&new) = self.further.get(&(row, home)) {
            return Ok(new);
        }
        let new = next_row(self.first.len() + self.added.len(), table)?;
        self.further.try_put((row, home), new)?;
        self.added.try_push((row, home))?;
        Ok(new)
    }

    /// All rows: the old row, and the environment if one was looked for.
    fn rows(&self) -> impl Iterator<Item = (u32, Option<Home>)> + '_ {
        let added = self.added.iter().map(|&(row, home)| (row, Some(home)));
        (0..).zip(self.first.iter().copied()).chain(added)
    }
}

/// The new rows of locations and functions.
struct Rows {
    locations: Split,
    functions: Split,
}

impl Rows {
    fn new(profile: &Profile) -> Result<Rows> {
        Ok(Rows {
            locations: Split::new(profile.locations.len())?,
            functions: Split::new(profile.functions.len())?,
        })
    }

    /// Writes the new numbers of the locations of a stack to `new`. `homes`: what was found for those that were looked
    /// up.
    fn renumber(
        &mut self,
        profile: &Profile,
        stack: &[LocationId],
        homes: &[Option<Home>],
        new: &mut Vec<LocationId>,
    ) -> Result<()> {
        new.clear();
        for (&id, &home) in stack.iter().zip(homes) {
            let function = profile.locations.get(id).function;
            new.try_push(match function.zip(home) {
                None => id,
                Some((function, home)) => {
                    self.functions.row(function.0, home, "functions")?;
                    LocationId(self.locations.row(id.0, home, "locations")?)
                }
            })?;
        }
        Ok(())
    }

    /// All stacks, in their order, with the new locations.
    fn stacks(&mut self, profile: &Profile, callers: &mut Callers, stop: Stop) -> Result<Stacks> {
        let mut stacks = Stacks::default();
        let mut new = Vec::new();
        walk(profile, callers, stop, |stack, homes| {
            self.renumber(profile, stack, homes, &mut new)?;
            stacks.push(&new).map(|_| ())
        })?;
        Ok(stacks)
    }

    /// Finds the packages of functions that no stack has.
    fn without_stacks(&mut self, profile: &Profile, callers: &mut Callers) -> Result<()> {
        for (row, id) in profile.functions.ids().enumerate() {
            let known = callers.known_of_function(&profile.functions.get(id));
            if let (None, Known::Name(Some(name))) = (self.functions.first[row], known) {
                self.functions.first[row] = Some(callers.without_caller(name)?);
            }
        }
        Ok(())
    }

    fn set_locations(&self, profile: &mut Profile) -> Result<()> {
        let mut locations = Locations::default();
        for (number, (row, home)) in self.locations.rows().enumerate() {
            let mut old = profile.locations.get(LocationId(row));
            if number >= self.locations.first.len() {
                // A file has its id once.
                let address = profile.address_of(&old);
                old.address = profile.intern_address(Address {
                    native_id: None,
                    ..address
                })?;
            }
            let function = old.function.zip(home).map(|(function, home)| {
                let new = self.functions.further.get(&(function.0, home));
                FunctionId(new.copied().unwrap_or(function.0))
            });
            locations.push(Location {
                function: function.or(old.function),
                ..old
            })?;
        }
        profile.locations = locations;
        for (number, &(row, _)) in self.locations.added.iter().enumerate() {
            let new = LocationId(next_row(self.locations.first.len() + number, "locations")?);
            let all = profile.location_attributes.iter();
            let own = all
                .filter(|(of, _)| of.0 == row)
                .map(|&(_, attribute)| (new, attribute));
            let own = own.try_vec()?;
            profile.location_attributes.try_extend(&own)?;
        }
        Ok(())
    }

    fn set_functions(&self, profile: &mut Profile, environments: &Environments) -> Result<()> {
        let from = profile.strings.intern(FROM_NAMESPACE)?;
        let mut functions = Functions::default();
        for (number, (row, home)) in self.functions.rows().enumerate() {
            let mut old = profile.functions.get(FunctionId(row));
            if number >= self.functions.first.len() {
                old.native_id = None;
            }
            if let Some(home) = home {
                let package = home.and_then(|home| environments.package(home));
                let package = package
                    .map(|name| profile.strings.intern(name))
                    .transpose()?;
                if package != old.package {
                    old.package = package;
                    old.package_from = package.map(|_| from);
                }
            }
            functions.push(old)?;
        }
        profile.functions = functions;
        Ok(())
    }
}
