//! Converts the tables of a file to tables of the model, row by row.

use super::ids::Ids;
use super::outline::Outline;
use crate::collections::Lists;
use crate::formats::pprof::proto;
use crate::formats::problems::Problems;
use crate::formats::string_table::NumberField;
use crate::limits::memory::TryGrow;
use crate::model::{
    Address, Function, FunctionId, Location, LocationId, Mapping, MappingId, Profile, Symbols,
};
use crate::protobuf::decode::{Message, Result};

/// Adds the mappings, and returns their ids in the file.
pub fn mappings(
    outline: &mut Outline,
    profile: &mut Profile,
    problems: &mut Problems,
) -> Result<Ids> {
    let ids = ids("mapping", proto::Mapping::ID, &outline.mappings)?;
    let texts = &mut outline.texts;
    for &message in &outline.mappings {
        let at = message.at();
        let mut message = message;
        let mut id = 0;
        let [mut start, mut limit, mut offset] = [0; 3];
        let [mut filename, mut build_id] = [NumberField { value: 0, at }; 2];
        let mut symbols = Symbols::default();
        while let Some(found) = message.field()? {
            match found.number {
                proto::Mapping::ID => id = found.uint()?,
                proto::Mapping::MEMORY_START => start = found.uint()?,
                proto::Mapping::MEMORY_LIMIT => limit = found.uint()?,
                proto::Mapping::FILE_OFFSET => offset = found.uint()?,
                proto::Mapping::FILENAME => filename = NumberField::from_field(&found)?,
                proto::Mapping::BUILD_ID => build_id = NumberField::from_field(&found)?,
                proto::Mapping::HAS_FUNCTIONS => symbols.functions = found.uint()? != 0,
                proto::Mapping::HAS_FILENAMES => symbols.filenames = found.uint()? != 0,
                proto::Mapping::HAS_LINE_NUMBERS => symbols.line_numbers = found.uint()? != 0,
                proto::Mapping::HAS_INLINE_FRAMES => symbols.inline_frames = found.uint()? != 0,
                _ => {}
            }
        }
        let strings = &mut profile.strings;
        let filename = texts.id(filename, strings, problems)?;
        let build_id = texts.id(build_id, strings, problems)?;
        let mapping = Mapping {
            start,
            limit,
            offset,
            symbols,
            native_id: ids.native(id),
            ..Mapping::of_file(filename, build_id)
        };
        profile.add_mapping(mapping)?;
    }
    Ok(ids)
}

/// Adds the functions, and returns their ids in the file.
pub fn functions(
    outline: &mut Outline,
    profile: &mut Profile,
    problems: &mut Problems,
) -> Result<Ids> {
    let ids = ids("function", proto::Function::ID, &outline.functions)?;
    let texts = &mut outline.texts;
    for &message in &outline.functions {
        let at = message.at();
        let mut message = message;
        let mut id = 0;
        let [mut name, mut system_name, mut filename, mut start_line] =
            [NumberField { value: 0, at }; 4];
        while let Some(found) = message.field()? {
            match found.number {
                proto::Function::ID => id = found.uint()?,
                proto::Function::NAME => name = NumberField::from_field(&found)?,
                proto::Function::SYSTEM_NAME => system_name = NumberField::from_field(&found)?,
                proto::Function::FILENAME => filename = NumberField::from_field(&found)?,
                proto::Function::START_LINE => start_line = NumberField::from_field(&found)?,
                _ => {}
            }
        }
        let start_line = problems.line_number(start_line.value as i64, start_line.at);
        let strings = &mut profile.strings;
        let mut text = |index| texts.id(index, strings, problems);
        let names = [text(name)?, text(system_name)?];
        let filename = text(filename)?;
        let function = Function::recorded(names, filename, start_line, strings)?;
        profile.functions.push(Function {
            native_id: ids.native(id),
            ..function
        })?;
    }
    Ok(ids)
}

/// The locations of a file. Each is a range of rows in the model, one for each inlined call,
/// innermost first.
pub struct Locations {
    pub ids: Ids,
    frames: Lists<LocationId>,
}

impl Locations {
    /// The number of locations, if their ids are 1, 2, 3, … and none has more than one line:
    /// then the row in the model is the id minus 1.
    #[inline]
    pub fn count_if_plain(&self) -> Option<u32> {
        let single = self.frames.items().len() == self.frames.len();
        (single && self.ids.are_row_numbers()).then(|| self.ids.count())
    }

    #[inline]
    pub fn run(&self, row: usize) -> &[LocationId] {
        self.frames.get(row)
    }
}

/// Adds the locations. As in Go, an unknown mapping is treated as no mapping.
pub fn locations(
    outline: &Outline,
    mappings: &Ids,
    functions: &Ids,
    profile: &mut Profile,
    problems: &mut Problems,
) -> Result<Locations> {
    let mut locations = Locations {
        ids: ids("location", proto::Location::ID, &outline.locations)?,
        frames: Lists::default(),
    };
    let mut lines = Vec::new();
    for &message in &outline.locations {
        let mut message = message;
        let mut address = Address::default();
        lines.clear();
        while let Some(found) = message.field()? {
            match found.number {
                proto::Location::ID => address.native_id = locations.ids.native(found.uint()?),
                proto::Location::MAPPING_ID => {
                    address.mapping = mappings.row(found.uint()?).map(MappingId);
                }
                proto::Location::ADDRESS => address.address = found.uint()?,
                proto::Location::LINE => {
                    let line = self::line(found.message()?, functions, problems)?;
                    lines.try_push(line)?;
                }
                proto::Location::IS_FOLDED => address.is_folded = found.uint()? != 0,
                _ => {}
            }
        }
        if lines.is_empty() {
            // An address without a symbol.
            lines.try_push(Location::default())?;
        }
        let address = profile.intern_address(address)?;
        let outermost = lines.len() - 1;
        for (i, &line) in lines.iter().enumerate() {
            let frame = profile.locations.push(Location {
                address,
                inlined: i < outermost,
                ..line
            })?;
            locations.frames.push_item(frame)?;
        }
        locations.frames.close()?;
    }
    Ok(locations)
}

fn line(mut message: Message, functions: &Ids, problems: &mut Problems) -> Result<Location> {
    let [mut function, mut line, mut column] = [NumberField::default(); 3];
    while let Some(found) = message.field()? {
        match found.number {
            proto::Line::FUNCTION_ID => function = NumberField::from_field(&found)?,
            proto::Line::LINE => line = NumberField::from_field(&found)?,
            proto::Line::COLUMN => column = NumberField::from_field(&found)?,
            _ => {}
        }
    }
    let function = match function.value {
        0 => None,
        id => Some(FunctionId(functions.find(id, function.at)?)),
    };
    let mut number = |number: NumberField| problems.line_number(number.value as i64, number.at);
    Ok(Location {
        function,
        line: Some(number(line)),
        column: number(column),
        ..Location::default()
    })
}

/// The ids of a table, from field `number` of its rows.
fn ids(what: &'static str, number: u32, table: &[Message]) -> Result<Ids> {
    let mut ids = Ids::new(what, table.len());
    for &message in table {
        let at = message.at();
        let mut message = message;
        let mut id = 0;
        while let Some(found) = message.field()? {
            if found.number == number {
                id = found.uint()?;
            }
        }
        ids.add(id, at)?;
    }
    Ok(ids)
}
