//! Adds native frames to the profile: their functions, locations, addresses and mappings. Each
//! address is looked up once.

use super::recording::{Frame, Module, Role};
use super::symbols::{Files, Symbol, Symbolizer};
use crate::error::Result;
use crate::limits::memory::{TryCollect, TryGrow, TryPut, TryText, owned, sort_by_key};
use crate::model::{
    Address, Attribute, AttributeValue, FILE_HASH, Function, Location, LocationId, Mapping,
    MappingId, NATIVE, Names, Profile, UNKNOWN, ValueKind,
};
use std::collections::HashMap;

pub struct NativeFrames<'a> {
    modules: &'a [Module],
    symbolizer: Symbolizer<'a>,
    /// The mapping of each module that has occurred.
    mappings: Vec<Option<MappingId>>,
    /// The locations of each address that has occurred, inlined calls first.
    by_address: HashMap<(Option<usize>, u64), Vec<LocationId>>,
}

impl<'a> NativeFrames<'a> {
    pub fn new(
        modules: &'a [Module],
        files: &'a Files,
        profile: &mut Profile,
    ) -> Result<NativeFrames<'a>> {
        let mut mappings = Vec::new();
        mappings.try_fill(modules.len(), None)?;
        let mut frames = NativeFrames {
            modules,
            symbolizer: Symbolizer::new(modules, files),
            mappings,
            by_address: HashMap::new(),
        };
        // As in pprof, the first mapping is the program itself.
        let program = modules.iter().position(|m| m.role == Role::Program);
        let program = program.or(modules.iter().position(|m| m.role == Role::Evaluator));
        if let Some(program) = program {
            frames.mapping(program, profile)?;
        }
        Ok(frames)
    }

    /// The locations of a frame, innermost first.
    pub fn locations(&mut self, frame: Frame, profile: &mut Profile) -> Result<&[LocationId]> {
        let key = (frame.module, frame.address);
        if !self.by_address.contains_key(&key) {
            let new = self.look_up(frame, profile)?;
            self.by_address.try_put(key, new)?;
        }
        Ok(self.by_address.get(&key).map_or(&[], Vec::as_slice))
    }

    /// Records for each mapping which symbols were found in its file, and the hash of the file.
    pub fn finish(self, profile: &mut Profile) -> Result<()> {
        for (module, mapping) in self.mappings.iter().enumerate() {
            let Some(mapping) = *mapping else { continue };
            if let Some(row) = profile.mappings.get_mut(mapping.row()) {
                row.symbols = self.symbolizer.found(module);
            }
            if let Some(hash) = self.symbolizer.file_hash(module)? {
                let key = profile.strings.intern(FILE_HASH)?;
                let text = profile.strings.intern(&hexadecimal(&hash)?)?;
                let kind = ValueKind::String;
                let attribute = Attribute::new(key, AttributeValue { kind, text });
                profile.mapping_attributes.try_push((mapping, attribute))?;
            }
        }
        // Mappings have ids in the order in which they occurred.
        sort_by_key(&mut profile.mapping_attributes, |(mapping, _)| *mapping)
    }

    fn look_up(&mut self, frame: Frame, profile: &mut Profile) -> Result<Vec<LocationId>> {
        let mapping = match frame.module {
            Some(module) => self.mapping(module, profile)?,
            None => None,
        };
        let address = profile.intern_address(Address {
            mapping,
            address: frame.address,
            ..Address::default()
        })?;
        let unsymbolized = Location {
            address,
            frame_type: profile.frame_type(NATIVE)?,
            ..Location::default()
        };
        let symbols = match frame.module {
            Some(module) => self.symbolizer.at(module, frame.address)?,
            // Code that was generated at run time: no file contains its name.
            None => {
                let unknown = Symbol {
                    name: owned(UNKNOWN)?,
                    system_name: owned(UNKNOWN)?,
                    ..Symbol::default()
                };
                [unknown].into_iter().try_vec()?
            }
        };
        let mut locations = Vec::new();
        for (i, symbol) in symbols.iter().enumerate() {
            let name = profile.strings.intern(&symbol.name)?;
            let system_name = profile.strings.intern(&symbol.system_name)?;
            let filename = profile.strings.intern(&symbol.filename)?;
            let function = profile.functions.intern(Function {
                system_name,
                start_line: i64::from(symbol.start_line),
                recorded: Names::Both,
                ..Function::named(name, filename)
            })?;
            let location = profile.locations.intern(Location {
                function: Some(function),
                line: Some(i64::from(symbol.line)),
                column: i64::from(symbol.column),
                inlined: i + 1 < symbols.len(),
                ..unsymbolized
            })?;
            locations.try_push(location)?;
        }
        Ok(locations)
    }

    fn mapping(&mut self, module: usize, profile: &mut Profile) -> Result<Option<MappingId>> {
        let (Some(slot), Some(described)) =
            (self.mappings.get_mut(module), self.modules.get(module))
        else {
            return Ok(None);
        };
        if slot.is_none() {
            let build_id = hexadecimal(&described.build_id)?;
            let filename = profile.strings.intern(&described.path)?;
            let build_id = profile.strings.intern(&build_id)?;
            *slot = Some(profile.add_mapping(Mapping {
                start: described.code.start,
                limit: described.code.end,
                offset: described.offset,
                // `finish()` sets `symbols`.
                ..Mapping::of_file(filename, build_id)
            })?);
        }
        Ok(*slot)
    }
}

fn hexadecimal(bytes: &[u8]) -> Result<String> {
    let mut digits = String::new();
    for byte in bytes {
        digits.try_write(format_args!("{byte:02x}"))?;
    }
    Ok(digits)
}
