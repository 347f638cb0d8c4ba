//! The tables that samples refer to: stacks, frames, functions. They are shared by all threads from version 60 on, and
//! before that each thread has its own.

use super::columns::{self, Column, get, index, refer, row_of, whole};
use crate::error::{Error, Result};
use crate::formats::json_file::{JsonKind, Reader, fields};
use crate::limits::memory::{TryGrow, TryPut};
use crate::message;
use crate::model::{
    Address, Function, Location, LocationId, Mapping, MappingId, NATIVE, Profile, StackId,
    StringId, Strings, integer_for_r,
};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// The tables of a thread or of the file.
#[derive(Default)]
pub struct TableSet {
    pub lists: Lists,
    pub tables: Tables,
    /// Whether a table has the form of Gecko.
    pub is_gecko: bool,
}

/// The lists to which the tables refer. From version 41 on, increasingly many of them are shared by all threads.
#[derive(Default)]
pub struct Lists {
    strings: Vec<StringId>,
    libs: Vec<Lib>,
    source_file: Column,
}

#[derive(Default)]
pub struct Tables {
    stack_frame: Column,
    /// The row of the caller's stack, up to version 65, and the distance to it since then.
    stack_prefix: Column,
    stack_offset: Column,
    frame_func: Column,
    frame_line: Column,
    frame_column: Column,
    frame_address: Column,
    /// Since version 70.
    frame_lib: Column,
    func_name: Column,
    /// A string, up to version 57, and a row of `sources` since then.
    func_file: Column,
    func_source: Column,
    func_line: Column,
    func_resource: Column,
    resource_name: Column,
    /// In old files it ends with the last row that has a library.
    resource_lib: Column,
    /// The ids of rows in the model, if they have occurred.
    stacks: Vec<Option<StackId>>,
    locations: Vec<Option<LocationId>>,
}

/// A program or library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Lib {
    path: Option<StringId>,
    name: Option<StringId>,
    id: Option<StringId>,
}

impl TableSet {
    /// Reads a table if it is one of these. Returns whether it is.
    pub fn field(&mut self, key: &str, json: &mut Reader, strings: &mut Strings) -> Result<bool> {
        match key {
            "stackTable" | "frameTable" | "funcTable" | "resourceTable" => self.table(key, json)?,
            "sources" if json.peek()? == JsonKind::Object => {
                fields! { json,
                    "filename" => columns::read(json, &mut self.lists.source_file)?,
                }
            }
            "stringArray" | "stringTable" if json.peek()? == JsonKind::Array => {
                json.begin_array()?;
                while json.element()? {
                    let string = strings.intern(json.text_if_any()?.unwrap_or_default())?;
                    json.take(2 * size_of::<StringId>())?;
                    self.lists.strings.try_push(string)?;
                }
            }
            "libs" if json.peek()? == JsonKind::Array => {
                json.begin_array()?;
                while json.element()? {
                    match json.peek()? {
                        JsonKind::Object => {
                            let lib = Lib::read(json, strings)?;
                            self.lists.libs.try_push(lib)?;
                        }
                        _ => json.skip()?,
                    }
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn table(&mut self, table: &str, json: &mut Reader) -> Result<()> {
        if json.peek()? != JsonKind::Object {
            return json.skip();
        }
        json.begin_object()?;
        while let Some(key) = json.key()? {
            self.is_gecko |= key.as_str() == "schema";
            match self.tables.column(table, key.as_str()) {
                Some(column) => columns::read(json, column)?,
                None => json.skip()?,
            }
        }
        Ok(())
    }
}

impl Lib {
    fn read(json: &mut Reader, strings: &mut Strings) -> Result<Lib> {
        let mut lib = Lib::default();
        let mut breakpad = None;
        json.begin_object()?;
        while let Some(key) = json.key()? {
            let slot = match key.as_str() {
                "path" => &mut lib.path,
                "name" => &mut lib.name,
                "codeId" => &mut lib.id,
                "breakpadId" => &mut breakpad,
                _ => {
                    json.skip()?;
                    continue;
                }
            };
            let text = json.text_if_any()?;
            *slot = text.map(|text| strings.intern(text)).transpose()?;
        }
        json.take(4 * size_of::<Lib>())?;
        lib.id = lib.id.or(breakpad);
        Ok(lib)
    }
}

/// The lists to which tables refer: the lists of the thread or, if it has none, of the file.
pub struct View<'v> {
    strings: &'v [StringId],
    libs: &'v [Lib],
    source_file: &'v [f64],
}

impl<'v> View<'v> {
    pub fn new(own: &'v Lists, shared: &'v Lists) -> View<'v> {
        fn first<'l, T>(own: &'l [T], shared: &'l [T]) -> &'l [T] {
            if own.is_empty() { shared } else { own }
        }
        View {
            strings: first(&own.strings, &shared.strings),
            libs: first(&own.libs, &shared.libs),
            source_file: first(&own.source_file, &shared.source_file),
        }
    }

    fn string(&self, column: &[f64], row: u32, json: &Reader) -> Result<Option<StringId>> {
        Ok(refer(column, row, self.strings, json)?.copied())
    }
}

/// The mappings of libraries.
pub type Mappings = HashMap<Lib, MappingId, RandomState>;

impl Tables {
    /// The place for a column, if it is used.
    fn column(&mut self, table: &str, column: &str) -> Option<&mut Column> {
        Some(match (table, column) {
            ("stackTable", "frame") => &mut self.stack_frame,
            ("stackTable", "prefix") => &mut self.stack_prefix,
            ("stackTable", "prefixOffset") => &mut self.stack_offset,
            ("frameTable", "func") => &mut self.frame_func,
            ("frameTable", "line") => &mut self.frame_line,
            ("frameTable", "column") => &mut self.frame_column,
            ("frameTable", "address") => &mut self.frame_address,
            ("frameTable", "lib") => &mut self.frame_lib,
            ("funcTable", "name") => &mut self.func_name,
            ("funcTable", "fileName") => &mut self.func_file,
            ("funcTable", "source") => &mut self.func_source,
            ("funcTable", "lineNumber") => &mut self.func_line,
            ("funcTable", "resource") => &mut self.func_resource,
            ("resourceTable", "name") => &mut self.resource_name,
            ("resourceTable", "lib") => &mut self.resource_lib,
            _ => return None,
        })
    }

    pub fn has_stacks(&self) -> bool {
        !self.stack_frame.is_empty()
    }

    /// The stack with this row.
    pub fn stack(
        &mut self,
        row: u32,
        view: &View,
        profile: &mut Profile,
        mappings: &mut Mappings,
        json: &mut Reader,
    ) -> Result<StackId> {
        if let Some(Some(stack)) = self.stacks.get(row as usize) {
            return Ok(*stack);
        }
        let mut locations = Vec::new();
        let mut next = Some(row);
        while let Some(row) = next {
            let Some(frame) = index(&self.stack_frame, row, json)? else {
                return Err(missing("Stack", row, self.stack_frame.len(), json));
            };
            if locations.len() > self.stack_frame.len() {
                return Err(json.error(message!("Stack {row} is among its own callers.")));
            }
            let location = self.location(frame, view, profile, mappings, json)?;
            locations.try_push(location)?;
            next = self.caller(row, json)?;
        }
        json.take(2 * size_of_val(&locations[..]))?;
        let stack = profile.stacks.intern(&locations)?;
        self.stacks.try_fill(self.stack_frame.len(), None)?;
        self.stacks[row as usize] = Some(stack);
        Ok(stack)
    }

    /// The row of the caller's stack.
    fn caller(&self, row: u32, json: &Reader) -> Result<Option<u32>> {
        let Some(offset) = get(&self.stack_offset, row) else {
            return index(&self.stack_prefix, row, json);
        };
        let offset = crate::model::whole(offset).and_then(|offset| u32::try_from(offset).ok());
        match offset.map(|offset| (offset, row.checked_sub(offset))) {
            Some((0, _)) => Ok(None),
            Some((_, Some(caller))) => Ok(Some(caller)),
            _ => Err(json.error(message!(
                "The `prefixOffset` of stack {row} leads to no stack."
            ))),
        }
    }

    fn location(
        &mut self,
        row: u32,
        view: &View,
        profile: &mut Profile,
        mappings: &mut Mappings,
        json: &mut Reader,
    ) -> Result<LocationId> {
        if let Some(Some(location)) = self.locations.get(row as usize) {
            return Ok(*location);
        }
        let Some(func) = index(&self.frame_func, row, json)? else {
            return Err(missing("Frame", row, self.frame_func.len(), json));
        };
        // The model has no address 0: the start of a library, which contains no code.
        let address = columns::address(&self.frame_address, row, json)?.filter(|&at| at != 0);
        let mut lib = refer(&self.frame_lib, row, view.libs, json)?;
        if lib.is_none() {
            let resource = row_of(&self.func_resource, func, &self.resource_name, json)?;
            if let Some(resource) = resource {
                lib = refer(&self.resource_lib, resource, view.libs, json)?;
            }
        }
        let mapping = match lib {
            Some(lib) => Some(mapping_of(lib, profile, mappings)?),
            None => None,
        };
        let Some(name) = view.string(&self.func_name, func, json)? else {
            return Err(missing("Function", func, self.func_name.len(), json));
        };
        // The viewer looks up the symbols of these.
        let is_unknown = address.is_some() && profile.strings.get(name).starts_with("0x");
        let is_native = address.is_some() || mapping.is_some();
        let address = profile.intern_address(Address {
            mapping,
            address: address.unwrap_or(0),
            ..Address::default()
        })?;
        let function = if is_unknown {
            None
        } else {
            let empty = profile.strings.intern("")?;
            let mut file = view.string(&self.func_file, func, json)?;
            if file.is_none() {
                let source = row_of(&self.func_source, func, view.source_file, json)?;
                if let Some(source) = source {
                    file = view.string(view.source_file, source, json)?;
                }
            }
            let file = file.unwrap_or(empty);
            let start = whole(&self.func_line, func).unwrap_or(0);
            let start = i64::from(integer_for_r(start));
            let strings = &mut profile.strings;
            let function = Function::recorded([name, empty], file, start, strings)?;
            Some(profile.functions.intern(function)?)
        };
        let at = json.position() as usize;
        let line = whole(&self.frame_line, row).unwrap_or(0);
        let line = json.problems.line_number(line, at);
        let column = whole(&self.frame_column, row).unwrap_or(0);
        let column = json.problems.line_number(column, at);
        let frame_type = if is_native {
            profile.frame_type(NATIVE)?
        } else {
            None
        };
        let location = profile.locations.intern(Location {
            function,
            line: function.map(|_| line),
            column: function.map_or(0, |_| column),
            address,
            frame_type,
            ..Location::default()
        })?;
        self.locations.try_fill(self.frame_func.len(), None)?;
        self.locations[row as usize] = Some(location);
        Ok(location)
    }
}

fn mapping_of(lib: &Lib, profile: &mut Profile, mappings: &mut Mappings) -> Result<MappingId> {
    if let Some(&mapping) = mappings.get(lib) {
        return Ok(mapping);
    }
    let empty = profile.strings.intern("")?;
    let path = lib.path.filter(|&path| path != empty);
    let filename = path.or(lib.name).unwrap_or(empty);
    let mapping = Mapping::of_file(filename, lib.id.unwrap_or(empty));
    let mapping = profile.add_mapping(mapping)?;
    mappings.try_put(*lib, mapping)?;
    Ok(mapping)
}

fn missing(what: &str, row: u32, count: usize, json: &Reader) -> Error {
    json.error(message!(
        "{what} {row} is out of range or incomplete ({count} rows in its table)."
    ))
}
