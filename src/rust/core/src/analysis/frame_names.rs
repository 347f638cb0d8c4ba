//! The name, the file and the position under which a frame is shown. All views and all formats
//! without addresses use these names.
//!
//! Code without symbols has no names of functions. It is shown under the name of the program or
//! library that contains it, such as `[libfoo.so.1]`, as in pprof and in flame graphs of perf. Only
//! if that is unknown as well, the address is shown. Views that distinguish lines also distinguish
//! addresses.

use super::source_facts::file_name;
use crate::collections::{Interner, TextList};
use crate::error::Result;
use crate::limits::memory::{TryAdd, TryGrow, filled, with_room, written};
use crate::model::{Function, LocationId, Names, Profile, StringId, UNKNOWN};
use foldhash::fast::RandomState;
use std::borrow::Cow;
use std::collections::HashSet;

/// A frame as viewers show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownFrame<'p> {
    pub name: Cow<'p, str>,
    /// The source file, or the program or library if only the address is known; may be empty.
    pub file: &'p str,
    /// 0 if it is unknown, like the column.
    pub line: i64,
    pub column: i64,
}

pub fn shown(profile: &Profile, id: LocationId) -> Result<ShownFrame<'_>> {
    let location = profile.locations.get(id);
    let function = profile.function_of(id);
    let position = |number: i64| if function.is_some() { number.max(0) } else { 0 };
    Ok(ShownFrame {
        name: name(profile, id)?,
        file: file(profile, id).map_or("", |file| profile.strings.get(file)),
        line: position(location.line.unwrap_or(0)),
        column: position(location.column),
    })
}

/// The function of a location, unless its name is unknown.
fn named_function(profile: &Profile, id: LocationId) -> Option<Function> {
    let function = profile.function_of(id)?;
    let is_named =
        function.recorded != Names::Neither && profile.strings.get(function.name) != UNKNOWN;
    is_named.then_some(function)
}

fn name(profile: &Profile, id: LocationId) -> Result<Cow<'_, str>> {
    if let Some(function) = named_function(profile, id) {
        return Ok(Cow::Borrowed(profile.strings.get(function.name)));
    }
    if let Some(module) = module(profile, id) {
        let path = profile.strings.get(module);
        return Ok(match file_name(path) {
            "" => Cow::Owned(written(format_args!("[{path}]"))?),
            // Such as `[vdso]`.
            name if name.starts_with('[') && name.ends_with(']') => Cow::Borrowed(name),
            name => Cow::Owned(written(format_args!("[{name}]"))?),
        });
    }
    match address(profile, id) {
        // If the source file is known, it says more than the address.
        address if address != 0 && file(profile, id).is_none() => {
            Ok(Cow::Owned(written(format_args!("{address:#x}"))?))
        }
        _ => Ok(Cow::Borrowed(UNKNOWN)),
    }
}

/// The source file of a location, or the program or library that contains it.
pub fn file(profile: &Profile, id: LocationId) -> Option<StringId> {
    let is_known = |file: &StringId| !profile.strings.get(*file).is_empty();
    let source = profile.function_of(id).map(|function| function.filename);
    match source.filter(is_known) {
        None if named_function(profile, id).is_none() => module(profile, id),
        source => source,
    }
}

/// The program or library that contains a location, if its name is known.
pub fn module(profile: &Profile, id: LocationId) -> Option<StringId> {
    let address = profile.address_of(&profile.locations.get(id));
    let mapping = profile.mappings.get(address.mapping?.row())?;
    Some(mapping.filename).filter(|file| !profile.strings.get(*file).is_empty())
}

/// 0 if it is unknown.
pub fn address(profile: &Profile, id: LocationId) -> u64 {
    profile.address_of(&profile.locations.get(id)).address
}

/// The names of all locations.
pub struct FrameNames {
    texts: Interner<TextList>,
    of_location: Vec<u32>,
    /// By location.
    has_symbol: Vec<bool>,
}

impl FrameNames {
    pub fn new(profile: &Profile) -> Result<FrameNames> {
        let mut names = FrameNames {
            texts: Interner::default(),
            of_location: with_room(profile.locations.len())?,
            has_symbol: with_room(profile.locations.len())?,
        };
        // The rows of names of functions. Most functions have several locations.
        let mut rows = filled(profile.strings.len(), None)?;
        for id in profile.locations.ids() {
            let function = named_function(profile, id);
            let row = match function.map(|function| &mut rows[function.name.row()]) {
                Some(Some(row)) => *row,
                Some(new) => {
                    let row = names.texts.intern(&name(profile, id)?)?;
                    *new = Some(row);
                    row
                }
                None => names.texts.intern(&name(profile, id)?)?,
            };
            names.of_location.try_push(row)?;
            names.has_symbol.try_push(function.is_some())?;
        }
        Ok(names)
    }

    /// The row of the name of a location.
    #[inline]
    pub fn row(&self, id: LocationId) -> u32 {
        self.of_location[id.row()]
    }

    pub fn get(&self, row: u32) -> &str {
        self.texts.get(row)
    }

    /// The row of a name.
    pub fn find(&self, name: &str) -> Option<u32> {
        (0..self.count() as u32).find(|row| self.get(*row) == name)
    }

    /// The number of distinct names.
    pub fn count(&self) -> usize {
        self.texts.len()
    }

    pub fn of(&self, id: LocationId) -> &str {
        self.get(self.row(id))
    }

    /// The names by which a user may look for functions: the names of all locations, of functions without a location,
    /// and [`UNKNOWN`] if there are locations without a symbol.
    pub fn known<'p>(&'p self, profile: &'p Profile) -> Result<Vec<&'p str>> {
        let mut seen: HashSet<&str, RandomState> = HashSet::default();
        let mut known = Vec::new();
        let shown = profile.locations.ids().map(|id| self.of(id));
        let functions = profile.functions.iter();
        let functions = functions.map(|function| profile.strings.get(function.name));
        let without_symbol = self.has_symbol.contains(&false).then_some(UNKNOWN);
        for name in shown.chain(functions).chain(without_symbol) {
            if seen.try_add(name)? {
                known.try_push(name)?;
            }
        }
        Ok(known)
    }

    /// Whether a location has a function with a name.
    pub fn has_symbol(&self, id: LocationId) -> bool {
        self.has_symbol[id.row()]
    }

    /// Whether a location has this name. [`UNKNOWN`] stands for all locations without a symbol.
    pub fn is(&self, id: LocationId, name: &str) -> bool {
        self.of(id) == name || name == UNKNOWN && !self.has_symbol(id)
    }

    /// The address, which distinguishes locations without a symbol that have the same name; 0 for
    /// all others.
    pub fn address(&self, profile: &Profile, id: LocationId) -> u64 {
        if self.has_symbol(id) {
            0
        } else {
            address(profile, id)
        }
    }
}
