//! The profile in memory: columns, one file for each table.
//!
//! ```text
//! Sources ◄── Samples ──► Stacks ──► Locations ──► Functions ──► Strings
//!                │                       └──► Addresses ──► Mappings
//!        Values, Labels (as long as, or pointing into, the samples)
//!
//! Sources ──► Scopes ──► Resources
//! ```
//!
//! Ids are row numbers. Each table has its own type of ids, so that the id of a stack cannot be
//! used as the id of a location. Strings and most stacks are interned, and so are functions and
//! locations, unless a file or a user provides them as tables, whose rows are kept. Code that
//! builds a [`Profile`] gets ids only from its tables, so that an id always resolves: the checks of
//! [`crate::tables`] are for data from R.

mod addresses;
mod attributes;
mod column;
mod deparsed;
mod frames;
mod functions;
pub mod heap;
pub mod known_types;
mod labels;
mod locations;
mod mappings;
mod native_id;
mod numbers;
mod packed;
mod resources;
mod samples;
mod sources;
mod stack_cache;
mod stacks;
mod strings;
pub mod titled;
mod units;
mod values;

pub use addresses::{Address, AddressId, Addresses};
pub use attributes::{Attribute, AttributeValue, ValueKind};
pub use column::SampleColumn;
pub use deparsed::{code_of_file, file_of_code, is_deparsed};
pub use frames::Frames;
pub use functions::{
    COLLECTION, COPYING, FINALIZER, Function, FunctionId, Functions, Names, UNKNOWN,
};
pub use heap::HeapFrame;
pub use known_types::{KnownType, Role, ValueType, is_summable};
pub use labels::Label;
pub use locations::{FrameType, Location, LocationId, Locations, NATIVE};
pub use mappings::{FILE_HASH, Mapping, MappingId, PlacedMapping, Symbols};
pub use native_id::NativeId;
pub use numbers::{
    inexact, integer_for_r, is_exact, is_nearly_whole, nanoseconds, nearest, recorded_time,
    seconds, unit_of_time, whole,
};
pub use resources::{Entity, Resource, ResourceId, Scope, ScopeId};
pub use samples::{Link, Samples, Toplevel};
pub use sources::{
    PROCESS_CREATION, PROCESS_ID, PROCESS_PROGRAM, PROCESS_ROLE, PROCESS_SCRIPT, Payload, Period,
    RUN, RprofOptions, SampleType, Source, SourceFile, SourceId, SourceKind,
};
pub use stack_cache::{PackedStacks, StackCache};
pub use stacks::{LocationLists, Renumbering, Stack, StackId, Stacks};
pub use strings::{StringId, Strings};
pub use units::{Conversion, conversion, nanoseconds_in};
pub use values::Values;

use crate::collections::{Id, add, next_row};
use crate::error::Result;
use crate::limits::memory::{TryGrow, sort_by_key};

#[derive(Debug, Default, Clone)]
pub struct Profile {
    pub strings: Strings,
    pub functions: Functions,
    pub locations: Locations,
    pub addresses: Addresses,
    pub mappings: Vec<Mapping>,
    pub stacks: Stacks,
    pub sources: Vec<Source>,
    pub samples: Samples,
    pub values: Vec<Values>,
    /// In the order of their samples.
    pub labels: Vec<Label>,
    pub resources: Vec<Resource>,
    pub scopes: Vec<Scope>,
    /// The attributes of mappings and locations, in the order of their rows.
    pub mapping_attributes: Vec<(MappingId, Attribute)>,
    pub location_attributes: Vec<(LocationId, Attribute)>,
}

impl Profile {
    pub fn add_source(&mut self, source: Source) -> Result<SourceId> {
        add(&mut self.sources, source)
    }

    /// The location of an R function with one name, and its file and line.
    pub fn frame(&mut self, name: &str, filename: StringId, line: i32) -> Result<LocationId> {
        let name = self.strings.intern(name)?;
        self.frame_of(Function::named(name, filename), line)
    }

    /// The location of an R function at a line of its file.
    pub fn frame_of(&mut self, function: Function, line: i32) -> Result<LocationId> {
        let function = self.functions.intern(function)?;
        self.locations.intern(Location {
            function: Some(function),
            line: Some(i64::from(line)),
            ..Location::default()
        })
    }

    /// A function with one name.
    pub fn named_function(&mut self, name: &str, filename: StringId) -> Result<FunctionId> {
        let name = self.strings.intern(name)?;
        self.functions.intern(Function::named(name, filename))
    }

    /// The location of a function for which a file records the name, which may be empty, the source
    /// file, and the position in it; 0 if it is unknown.
    pub fn recorded_frame(
        &mut self,
        name: StringId,
        filename: StringId,
        line: i64,
        column: i64,
    ) -> Result<LocationId> {
        let none = self.strings.intern("")?;
        let names = [name, none];
        let function = Function::recorded(names, filename, 0, &mut self.strings)?;
        let function = self.functions.intern(function)?;
        self.locations.intern(Location {
            function: Some(function),
            line: Some(line),
            column,
            ..Location::default()
        })
    }

    pub fn add_mapping(&mut self, mapping: Mapping) -> Result<MappingId> {
        add(&mut self.mappings, mapping)
    }

    /// Adds mappings between those from row `first`: `position` counts all mappings from there, old and new. If there
    /// are fewer, a mapping becomes the last.
    pub fn place_mappings(&mut self, first: usize, mut placed: Vec<PlacedMapping>) -> Result<()> {
        sort_by_key(&mut placed, |placed| placed.position)?;
        let old = self.mappings.split_off(first);
        // The new ids of the old mappings.
        let mut moved = Vec::new();
        let mut placed = placed.into_iter().peekable();
        let mut old = old.into_iter().peekable();
        loop {
            let position = self.mappings.len() - first;
            let id = MappingId(next_row(self.mappings.len(), "mappings")?);
            let is_due = |placed: &PlacedMapping| placed.position <= position;
            match placed.next_if(|placed| is_due(placed) || old.peek().is_none()) {
                Some(new) => self.mappings.try_push(new.mapping)?,
                None => match old.next() {
                    Some(mapping) => {
                        self.mappings.try_push(mapping)?;
                        moved.try_push(id)?;
                    }
                    None => break,
                },
            }
        }
        let new_id = |id: MappingId| match id.row().checked_sub(first) {
            Some(row) => moved.get(row).copied().unwrap_or(id),
            None => id,
        };
        for (id, _) in &mut self.mapping_attributes {
            *id = new_id(*id);
        }
        // Different mappings stay different, so each address keeps its row.
        let mut addresses = Addresses::default();
        for address in self.addresses.iter() {
            addresses.intern(Address {
                mapping: address.mapping.map(new_id),
                ..*address
            })?;
        }
        self.addresses = addresses;
        Ok(())
    }

    pub fn add_resource(&mut self, resource: Resource) -> Result<ResourceId> {
        add(&mut self.resources, resource)
    }

    pub fn add_scope(&mut self, scope: Scope) -> Result<ScopeId> {
        add(&mut self.scopes, scope)
    }

    /// The frame type with this name; `None` for an empty text.
    pub fn frame_type(&mut self, text: &str) -> Result<Option<FrameType>> {
        let text = self.strings.intern(text)?;
        Ok(self.frame_type_of_text(text))
    }

    /// The frame type whose name is this interned text; `None` for an empty text.
    pub fn frame_type_of_text(&self, text: StringId) -> Option<FrameType> {
        let is_none = self.strings.get(text).is_empty();
        (!is_none).then(|| FrameType::new(text))
    }

    /// The frame type of a location as a text, if it is known.
    pub fn frame_type_of(&self, location: &Location) -> Option<&str> {
        let type_ = location.frame_type?;
        Some(self.strings.get(type_.text()))
    }

    /// `None` for an address without any information.
    pub fn intern_address(&mut self, address: Address) -> Result<Option<AddressId>> {
        if address == Address::default() {
            Ok(None)
        } else {
            self.addresses.intern(address).map(Some)
        }
    }

    /// The address of a location. For R code it contains no information.
    pub fn address_of(&self, location: &Location) -> Address {
        match location.address {
            Some(id) => self.addresses.get(id),
            None => Address::default(),
        }
    }

    /// Whether the function of a location was inlined into the function of the next location in a
    /// stack, so that both have the same address.
    pub fn is_inlined_into(&self, inner: LocationId, outer: LocationId) -> bool {
        let inner = self.locations.get(inner);
        inner.inlined && inner.address == self.locations.get(outer).address
    }

    /// The function of a location, if it is known.
    pub fn function_of(&self, location: LocationId) -> Option<Function> {
        let function = self.locations.get(location).function?;
        Some(self.functions.get(function))
    }

    /// The column of the type that counts samples.
    pub fn counts(&self) -> Option<&Values> {
        self.known(&known_types::SAMPLES)
    }

    pub fn value(&self, name: &str, unit: &str) -> Option<&Values> {
        self.values
            .iter()
            .find(|v| v.type_.name == name && v.type_.unit == unit)
    }

    pub fn known(&self, known: &KnownType) -> Option<&Values> {
        self.values.iter().find(|values| *known == values.type_)
    }

    /// The values of memory (`bytes`) or objects (`count`) in use: of the first known type that the profile has.
    pub fn in_use(&self, unit: &str) -> Option<&Values> {
        let mut known = known_types::with_role(Role::InUse, unit);
        known.find_map(|known| self.known(known))
    }

    pub fn source_ids(&self) -> impl ExactSizeIterator<Item = SourceId> + use<> {
        (0..self.sources.len() as u32).map(SourceId::from_row)
    }
}
